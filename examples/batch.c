// SPDX-License-Identifier: BSD-2-Clause
//
// batch.c - several writes at one moment, or none of them.
//
// Prints:
// > 3 operations
// > anna has 70, ben has 30
// > TOOLARGE: a key of 65536 bytes: at most 65535

#include <string.h>

#include "must.h"

static void move_money(tamis_db *db, tamis_batch *b)
{
    tamis_error err = {0};
    // What these return may be ignored: a failure is kept in the batch, and commit returns it.
    (void)tamis_batch_put(b, NULL, "account/anna", 12, "70", 2);
    (void)tamis_batch_put(b, NULL, "account/ben", 11, "30", 2);
    (void)tamis_batch_delete(b, NULL, "transfer/17", 11);
    printf("%zu operations\n", tamis_batch_count(b));
    must(tamis_commit(db, NULL, b, NULL, &err), &err);
    tamis_batch_clear(b); // ready for the next one; its memory is kept
}

static void show(tamis_db *db)
{
    tamis_error err = {0};
    char anna[8], ben[8];
    size_t a, b;
    must(tamis_get_into(db, NULL, NULL, "account/anna", 12, anna, sizeof anna, &a, &err), &err);
    must(tamis_get_into(db, NULL, NULL, "account/ben", 11, ben, sizeof ben, &b, &err), &err);
    printf("anna has %.*s, ben has %.*s\n", (int)a, anna, (int)b, ben);
}

static void fail_late(tamis_db *db, tamis_batch *b)
{
    static char huge[TAMIS_MAX_KEY + 1];
    tamis_error err = {0};
    (void)tamis_batch_put(b, NULL, "account/anna", 12, "0", 1);
    (void)tamis_batch_put(b, NULL, huge, sizeof huge, "", 0); // too large: told by commit
    int st = tamis_commit(db, NULL, b, NULL, &err);
    printf("%s: %s\n", tamis_status_name(st), err.message);
}

int main(void)
{
    tamis_error err = {0};
    tamis_db *db;
    must(tamis_open("batch.db", NULL, &db, &err), &err);
    tamis_batch *b = tamis_batch_create(db, 0);
    if (b == NULL) return 1; // out of memory
    move_money(db, b);
    show(db);
    fail_late(db, b); // nothing of it was applied
    tamis_batch_free(b);
    must(tamis_close(db, 0, &err), &err);
    return 0;
}
