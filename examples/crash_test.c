// SPDX-License-Identifier: BSD-2-Clause
//
// crash_test.c - testing an application's own promises on files in memory: the power fails, and
// what was not synced is lost.
//
// Prints:
// > synced: there
// > not synced: gone
// > every call from the 20th on fails: IO

#include <tamis_vfs.h>

#include "must.h"

static tamis_db *open_on(tamis_vfs *disk)
{
    tamis_error err = {0};
    tamis_db *db;
    tamis_options o = tamis_options_init();
    o.vfs = disk;
    o.flags = TAMIS_OPEN_NO_BACKGROUND; // no threads: every run does the same
    must(tamis_open("test.db", &o, &db, &err), &err);
    return db;
}

static const char *look(tamis_db *db, const char *key, size_t klen)
{
    tamis_error err = {0};
    int st = tamis_has(db, NULL, NULL, key, klen, &err);
    if (st != TAMIS_NOTFOUND) must(st, &err);
    return st == TAMIS_OK ? "there" : "gone";
}

int main(void)
{
    tamis_error err = {0};
    tamis_vfs *disk;
    tamis_write_options never = {.size = sizeof never, .sync = TAMIS_SYNC_NEVER};
    must(tamis_vfs_memory(&disk, &err), &err);

    tamis_db *db = open_on(disk);
    must(tamis_put(db, NULL, NULL, "synced", 6, "1", 1, &err), &err);
    must(tamis_put(db, NULL, &never, "not", 3, "1", 1, &err), &err);
    tamis_vfs_memory_crash(disk, TAMIS_CRASH_LOSE_ALL, 0);
    (void)tamis_close(db, 0, &err); // its files are gone: this may fail, and frees it all the same

    db = open_on(disk);
    printf("synced: %s\n", look(db, "synced", 6));
    printf("not synced: %s\n", look(db, "not", 3));
    must(tamis_close(db, 0, &err), &err);

    // The machine stops in the middle of an open.
    tamis_options o = tamis_options_init();
    o.vfs = disk;
    tamis_vfs_memory_fail(disk, tamis_vfs_memory_calls(disk) + 20, -1, 0);
    int st = tamis_open("test.db", &o, &db, &err);
    printf("every call from the 20th on fails: %s\n", tamis_status_name(st));
    tamis_vfs_memory_crash(disk, TAMIS_CRASH_RANDOM, 1); // starts it again
    db = open_on(disk);
    must(tamis_close(db, 0, &err), &err);
    tamis_vfs_free(disk);
    return 0;
}
