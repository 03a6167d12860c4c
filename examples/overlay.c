// SPDX-License-Identifier: BSD-2-Clause
//
// overlay.c - reading through a batch before it is committed; savepoints; a batch as bytes.
//
// Prints:
// > through the batch: 70
// > the store: 100
// > after the rollback: 100
// > after the commit: 90

#include "must.h"

static void show(tamis_db *db, const char *what, const tamis_batch *overlay)
{
    tamis_error err = {0};
    tamis_read_options ro = {.size = sizeof ro, .overlay = overlay};
    char buf[8];
    size_t len;
    must(tamis_get_into(db, NULL, &ro, "anna", 4, buf, sizeof buf, &len, &err), &err);
    printf("%s: %.*s\n", what, (int)len, buf);
}

int main(void)
{
    tamis_error err = {0};
    tamis_db *db;
    must(tamis_open("overlay.db", NULL, &db, &err), &err);
    must(tamis_put(db, NULL, NULL, "anna", 4, "100", 3, &err), &err);

    tamis_batch *b = tamis_batch_create(db, TAMIS_BATCH_INDEXED);
    (void)tamis_batch_savepoint(b);
    (void)tamis_batch_put(b, NULL, "anna", 4, "70", 2);
    show(db, "through the batch", b);
    show(db, "the store", NULL);
    (void)tamis_batch_rollback(b); // to the savepoint
    show(db, "after the rollback", b);

    (void)tamis_batch_put(b, NULL, "anna", 4, "90", 2);
    tamis_slice bytes; // to keep, or to send elsewhere; with a checksum
    must(tamis_batch_data(b, &bytes, &err), &err);
    tamis_batch *copy = tamis_batch_create(db, 0);
    must(tamis_batch_load(copy, bytes.data, bytes.len, &err), &err);
    must(tamis_commit(db, NULL, copy, NULL, &err), &err);
    show(db, "after the commit", NULL);

    tamis_batch_free(copy);
    tamis_batch_free(b);
    must(tamis_close(db, 0, &err), &err);
    return 0;
}
