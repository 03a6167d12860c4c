// SPDX-License-Identifier: BSD-2-Clause
//
// db_obsolete.c - files go when a durable edit has dropped them and no reader is left.

#include "lsm/db.h"
#include "lsm/filename.h"

#include "base/mem.h"

void tm_db_clean_dead(struct tamis_db *db)
{
    // Acquire pairs with the release of the push: the table is ours alone.
    tm_file_ref *f = atomic_exchange_explicit(&db->dead.head, NULL, memory_order_acquire);
    while (f != NULL) {
        tm_file_ref *next = f->next_dead;
        uint64_t number = f->meta->number;
        bool dropped = atomic_load_explicit(&f->dropped, memory_order_acquire);
        tm_table_close(f->table);
        tm_free(f);
        if (dropped) {
            char name[TM_NAME_MAX];
            tm_filename(name, TM_FILE_TABLE, number);
            if (tm_dir_unlink(db->dir, name, NULL) == TAMIS_OK) {
                tamis_event e = {.kind = TAMIS_EVENT_TABLE_DELETED, .file_number = number};
                tm_db_event(db, &e, "deleted %s", name);
            } // else: found and removed by the next open
        }
        f = next;
    }
}

void tm_db_delete_logs(struct tamis_db *db, uint64_t min_log)
{
    char name[TM_NAME_MAX];
    tm_db_forget_logs(db, min_log);
    for (;;) {
        uint64_t number = 0;
        tm_mutex_lock(&db->mu.m);
        tm_buf *live = &db->mu.live_logs;
        if (live->len > 0) memcpy(&number, live->data, sizeof number);
        bool old = live->len > 0 && number < min_log;
        if (old) {
            live->len -= sizeof number;
            memmove(live->data, live->data + sizeof number, live->len);
        }
        tm_mutex_unlock(&db->mu.m);
        if (!old) return;
        tm_filename(name, TM_FILE_LOG, number);
        (void)!tm_dir_unlink(db->dir, name, NULL);
    }
}
