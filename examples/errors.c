// SPDX-License-Identifier: BSD-2-Clause
//
// errors.c - what to do about a status. The memory file system gives a full disk on demand.
//
// Prints:
// > NOSPACE: make room, the store goes on by itself
// > stored after 1 tries more
// > MISUSE or CLOSED would be a bug of ours

#include <tamis_vfs.h>

#include "must.h"

typedef enum reaction { DONE, ABSENT, TRY_AGAIN, REOPEN, RESTORE, FIX_THE_CODE, GIVE_UP } reaction;

static reaction react(int st, const tamis_error *err)
{
    switch (st) {
    case TAMIS_OK:
        return DONE;
    case TAMIS_NOTFOUND:
        return ABSENT;  // an answer: err was not touched
    case TAMIS_NOSPACE: // disk or quota full
    case TAMIS_BUSY:    // no_stall, cached_only, or children that live
    case TAMIS_LOCKED:  // somebody else has the store open
        return TRY_AGAIN;
    case TAMIS_POISONED: // a sync failed: close, look at the disk, open again
        return REOPEN;
    case TAMIS_CORRUPT: // err has file and offset: verify, and bring back a copy
        return RESTORE;
    case TAMIS_INVALID: // these four are mistakes of the program
    case TAMIS_MISUSE:
    case TAMIS_TOOLARGE:
    case TAMIS_READONLY:
        return FIX_THE_CODE;
    default: // NOMEM, IO, ...
        return err->retryable ? TRY_AGAIN : GIVE_UP;
    }
}

static int put_large(tamis_db *db, tamis_error *err)
{
    static char value[100000];
    return tamis_put(db, NULL, NULL, "key", 3, value, sizeof value, err);
}

int main(void)
{
    tamis_error err = {0};
    tamis_vfs *disk;
    tamis_db *db;
    must(tamis_vfs_memory(&disk, &err), &err);
    tamis_options o = tamis_options_init();
    o.vfs = disk;
    o.extra = "log_reserve = 0"; // else the log has room already
    must(tamis_open("errors.db", &o, &db, &err), &err);

    tamis_vfs_memory_limit(disk, 50000);
    int tries = 0;
    int st = put_large(db, &err);
    while (react(st, &err) == TRY_AGAIN && tries < 10) {
        printf("%s: make room, the store goes on by itself\n", tamis_status_name(st));
        tamis_vfs_memory_limit(disk, 0); // somebody deleted something
        tries++;
        st = put_large(db, &err);
    }
    if (react(st, &err) == DONE) printf("stored after %d tries more\n", tries);
    if (react(TAMIS_MISUSE, &err) == FIX_THE_CODE) puts("MISUSE or CLOSED would be a bug of ours");

    must(tamis_close(db, 0, &err), &err);
    tamis_vfs_free(disk);
    return 0;
}
