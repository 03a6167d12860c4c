// SPDX-License-Identifier: BSD-2-Clause
//
// step.c - a host with one thread: background work is done when the host has time for it.
//
// Prints:
// > there was work to do
// > 2000 keys

#include "must.h"

int main(void)
{
    tamis_error err = {0};
    tamis_db *db;
    tamis_options o = tamis_options_init();
    o.flags = TAMIS_OPEN_NO_BACKGROUND;
    o.sync = TAMIS_SYNC_NEVER;
    o.extra = "write_buffer = 16KiB; level0_compact = 2";
    must(tamis_open("step.db", &o, &db, &err), &err);

    unsigned long steps = 0;
    for (int i = 0; i < 2000; i++) {
        must(tamis_put(db, NULL, NULL, &i, sizeof i, "a value of some bytes", 21, &err), &err);
        uint32_t did_work = 0;
        must(tamis_step(db, &did_work, &err), &err); // a flush, or a compaction, or nothing
        steps += did_work;
    }
    puts(steps > 0 ? "there was work to do" : "nothing to do");

    tamis_iter *it;
    int n = 0;
    must(tamis_iter_create(db, NULL, NULL, &it, &err), &err);
    for (tamis_iter_first(it); tamis_iter_valid(it); tamis_iter_next(it)) n++;
    must(tamis_iter_status(it, &err), &err);
    tamis_iter_free(it);
    printf("%d keys\n", n);
    must(tamis_close(db, 0, &err), &err);
    return 0;
}
