// SPDX-License-Identifier: BSD-2-Clause
//
// events.c - hearing what the store does in the background. The LOG file in its folder tells the
// same, for people.
//
// Prints:
// > flushes: 1, tables made: 1, errors: 0

#include <stdatomic.h>

#include "must.h"

typedef struct tally {
    _Atomic int flushes, tables, errors; // callbacks come from several threads
} tally;

// Be quick, and do not call back into the store.
static void on_event(void *ctx, const tamis_event *e)
{
    tally *t = ctx;
    switch (e->kind) {
    case TAMIS_EVENT_FLUSH_END:
        atomic_fetch_add(&t->flushes, 1);
        break;
    case TAMIS_EVENT_TABLE_CREATED:
        atomic_fetch_add(&t->tables, 1);
        break;
    case TAMIS_EVENT_BACKGROUND_ERROR:
        atomic_fetch_add(&t->errors, 1);
        break;
    default:
        break;
    }
    fprintf(stderr, "%llu %s\n", (unsigned long long)e->wall_ms, e->text);
}

int main(void)
{
    tamis_error err = {0};
    tamis_db *db;
    tally t = {0};
    tamis_options o = tamis_options_init();
    o.on_event = on_event;
    o.on_event_ctx = &t;
    must(tamis_open("events.db", &o, &db, &err), &err);
    must(tamis_put(db, NULL, NULL, "key", 3, "value", 5, &err), &err);
    must(tamis_flush(db, NULL, &err), &err);
    must(tamis_wait_idle(db, 0, &err), &err);
    must(tamis_close(db, 0, &err), &err);
    printf("flushes: %d, tables made: %d, errors: %d\n", t.flushes, t.tables, t.errors);
    return 0;
}
