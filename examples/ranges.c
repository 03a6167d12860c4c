// SPDX-License-Identifier: BSD-2-Clause
//
// ranges.c - deleting all keys of a range with one write.
//
// Prints:
// > before: 1000
// > after: 500
// > in the snapshot: 1000

#include "must.h"

static int count(tamis_db *db, const tamis_snapshot *snapshot)
{
    tamis_error err = {0};
    tamis_read_options ro = {.size = sizeof ro, .snapshot = snapshot};
    tamis_iter *it;
    int n = 0;
    must(tamis_iter_create(db, NULL, &ro, &it, &err), &err);
    for (tamis_iter_first(it); tamis_iter_valid(it); tamis_iter_next(it)) n++;
    tamis_iter_free(it);
    return n;
}

int main(void)
{
    tamis_error err = {0};
    tamis_db *db;
    char key[16];
    tamis_write_options fast = {.size = sizeof fast, .sync = TAMIS_SYNC_NEVER};
    must(tamis_open("ranges.db", NULL, &db, &err), &err);
    for (int i = 0; i < 1000; i++) {
        int n = snprintf(key, sizeof key, "day/%04d", i);
        must(tamis_put(db, NULL, &fast, key, (size_t)n, "x", 1, &err), &err);
    }
    printf("before: %d\n", count(db, NULL));
    tamis_snapshot *then;
    must(tamis_snapshot_create(db, &then, &err), &err);

    // From day/0500 up to, not with, day0: the first key behind all that begin with "day/".
    must(tamis_delete_range(db, NULL, NULL, "day/0500", 8, "day0", 4, &err), &err);

    printf("after: %d\nin the snapshot: %d\n", count(db, NULL), count(db, then));
    tamis_snapshot_release(then);
    must(tamis_close(db, 0, &err), &err);
    return 0;
}
