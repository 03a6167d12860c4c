// SPDX-License-Identifier: BSD-2-Clause
//
// snapshot.c - reading the state of an earlier moment.
//
// Prints:
// > now: new
// > then: old
// > close: BUSY

#include "must.h"

static void show(tamis_db *db, const char *what, const tamis_read_options *ro)
{
    tamis_error err = {0};
    char buf[16];
    size_t len;
    must(tamis_get_into(db, NULL, ro, "key", 3, buf, sizeof buf, &len, &err), &err);
    printf("%s: %.*s\n", what, (int)len, buf);
}

int main(void)
{
    tamis_error err = {0};
    tamis_db *db;
    must(tamis_open("snapshot.db", NULL, &db, &err), &err);
    must(tamis_put(db, NULL, NULL, "key", 3, "old", 3, &err), &err);

    tamis_snapshot *then;
    must(tamis_snapshot_create(db, &then, &err), &err);
    must(tamis_put(db, NULL, NULL, "key", 3, "new", 3, &err), &err);

    tamis_read_options ro = {.size = sizeof ro, .snapshot = then};
    show(db, "now", NULL);
    show(db, "then", &ro);

    int st = tamis_close(db, 0, &err);            // refused: the snapshot lives
    printf("close: %s\n", tamis_status_name(st)); // err.message counts what lives

    tamis_snapshot_release(then);
    must(tamis_close(db, 0, &err), &err);
    return 0;
}
