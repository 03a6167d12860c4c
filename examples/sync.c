// SPDX-License-Identifier: BSD-2-Clause
//
// sync.c - when a write is durable: chosen for the store, for one write, or by hand.
//
// Prints:
// > logs were synced 2 times

#include "must.h"

int main(void)
{
    tamis_error err = {0};
    tamis_db *db;
    tamis_options o = tamis_options_init();
    o.sync = TAMIS_SYNC_NEVER; // of writes that do not say otherwise
    must(tamis_open("sync.db", &o, &db, &err), &err);

    uint64_t before, after;
    must(tamis_counter(db, "log_syncs", &before, &err), &err);

    // Fast: a thousand writes, no sync.
    for (int i = 0; i < 1000; i++) {
        must(tamis_put(db, NULL, NULL, &i, sizeof i, "x", 1, &err), &err);
    }
    // All of them are durable now.
    must(tamis_sync_wal(db, &err), &err);

    // This one is durable when the call returns, and so is all that came before it.
    tamis_write_options durable = {.size = sizeof durable, .sync = TAMIS_SYNC_ALWAYS};
    must(tamis_put(db, NULL, &durable, "paid", 4, "yes", 3, &err), &err);

    must(tamis_counter(db, "log_syncs", &after, &err), &err);
    printf("logs were synced %d times\n", (int)(after - before));
    must(tamis_close(db, 0, &err), &err);
    return 0;
}
