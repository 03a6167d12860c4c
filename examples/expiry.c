// SPDX-License-Identifier: BSD-2-Clause
//
// expiry.c - values that go by themselves. The files are in memory here, for their clock.
//
// Prints:
// > at once: OK OK
// > after 2 minutes: NOTFOUND OK
// > after 2 hours: NOTFOUND NOTFOUND

#include "must.h"

static void look(tamis_db *db, const char *when)
{
    tamis_error err = {0};
    int a = tamis_has(db, NULL, NULL, "code", 4, &err);
    int b = tamis_has(db, NULL, NULL, "session", 7, &err);
    printf("%s: %s %s\n", when, tamis_status_name(a), tamis_status_name(b));
}

int main(void)
{
    tamis_error err = {0};
    tamis_vfs *vfs;
    tamis_db *db;
    must(tamis_vfs_memory(&vfs, &err), &err);
    tamis_options o = tamis_options_init();
    o.vfs = vfs;

    o.extra = "ttl=1h"; // of puts that do not say
    must(tamis_open("store", &o, &db, &err), &err);
    tamis_write_options soon = {.size = sizeof soon, .ttl_ms = 60000};
    must(tamis_put(db, NULL, NULL, "session", 7, "anna", 4, &err), &err);
    must(tamis_put(db, NULL, &soon, "code", 4, "1234", 4, &err), &err);

    look(db, "at once");
    tamis_vfs_memory_advance_ms(vfs, 2 * 60000);
    look(db, "after 2 minutes");
    tamis_vfs_memory_advance_ms(vfs, 2 * 3600000);
    look(db, "after 2 hours");
    must(tamis_close(db, 0, &err), &err);
    tamis_vfs_free(vfs);
    return 0;
}
