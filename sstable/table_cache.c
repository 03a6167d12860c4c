// SPDX-License-Identifier: BSD-2-Clause
#include "sstable/table_cache.h"

#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/sync.h"

typedef enum place_state { PLACE_CLOSED, PLACE_OPENING, PLACE_OPEN } place_state;

struct tm_open_table {
    uint64_t number;          // constant
    place_state state;        // the cache's mutex guards the rest; file is read without it by users
    uint32_t users;           // acquired, not yet released
    tm_open_table *prev, *next; // among the idle: open, users == 0
    tm_file file;
};

struct tm_table_cache {
    tamis_dir *dir;
    uint32_t max_open;
    tm_mutex mutex;
    tm_cond opened; // a place left PLACE_OPENING
    uint32_t open;  // places that are not PLACE_CLOSED
    uint32_t places;
    tm_open_table *newest, *oldest; // the idle
};

// Idle files that are closed when the system has no descriptor left, before the next try: others in
// this process want some, too.
#define CLOSED_AT_ONCE 8u

void tm_table_cache_name(uint64_t number, char out[TM_TABLE_NAME_BYTES])
{
    (void)snprintf(out, TM_TABLE_NAME_BYTES, "%06llu.sst", (unsigned long long)number);
}

// ---- Life --------------------------------------------------------------------------------------

int tm_table_cache_create(tamis_dir *dir, uint32_t max_open, tm_table_cache **out, tamis_error *err)
{
    int st;
    tm_table_cache *c = tm_calloc(1, sizeof *c);
    if (c == NULL) return tm_fail_nomem(err);
    c->dir = dir;
    c->max_open = TM_MAX(max_open, 1);
    TM_GOTO(tm_mutex_init(&c->mutex, err));
    st = tm_cond_init(&c->opened, err);
    if (st == TAMIS_OK) {
        *out = c;
        return TAMIS_OK;
    }
    tm_mutex_deinit(&c->mutex);
out:
    tm_free(c);
    return st;
}

void tm_table_cache_destroy(tm_table_cache *c)
{
    if (c == NULL) return;
    assert(c->places == 0 && c->open == 0);
    tm_cond_deinit(&c->opened);
    tm_mutex_deinit(&c->mutex);
    tm_free(c);
}

int tm_table_cache_add(tm_table_cache *c, uint64_t number, tm_open_table **out, tamis_error *err)
{
    tm_open_table *t = tm_calloc(1, sizeof *t);
    if (t == NULL) return tm_fail_nomem(err);
    t->number = number;
    tm_mutex_lock(&c->mutex);
    c->places++;
    tm_mutex_unlock(&c->mutex);
    *out = t;
    return TAMIS_OK;
}

// ---- The idle, all with the mutex --------------------------------------------------------------

static void idle_add(tm_table_cache *c, tm_open_table *t)
{
    t->prev = NULL;
    t->next = c->newest;
    *(t->next != NULL ? &t->next->prev : &c->oldest) = t;
    c->newest = t;
}

static void idle_remove(tm_table_cache *c, tm_open_table *t)
{
    *(t->prev != NULL ? &t->prev->next : &c->newest) = t->next;
    *(t->next != NULL ? &t->next->prev : &c->oldest) = t->prev;
    t->prev = t->next = NULL;
}

// Takes up to n of the longest idle out, for the caller to close without the mutex.
static uint32_t idle_take(tm_table_cache *c, tm_file *files, uint32_t n)
{
    uint32_t taken = 0;
    for (; taken < n && c->oldest != NULL; taken++) {
        tm_open_table *t = c->oldest;
        idle_remove(c, t);
        files[taken] = t->file;
        t->state = PLACE_CLOSED;
        c->open--;
    }
    return taken;
}

static void close_all(tm_file *files, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) (void)tm_file_close(&files[i], NULL);
}

void tm_table_cache_remove(tm_table_cache *c, tm_open_table *t)
{
    if (t == NULL) return;
    tm_mutex_lock(&c->mutex);
    assert(t->users == 0 && t->state != PLACE_OPENING);
    bool open = t->state == PLACE_OPEN;
    if (open) {
        idle_remove(c, t);
        c->open--;
    }
    c->places--;
    tm_mutex_unlock(&c->mutex);
    if (open) (void)tm_file_close(&t->file, NULL);
    tm_free(t);
}

// ---- Acquire and release -----------------------------------------------------------------------

// Opens t, which is PLACE_OPENING and so this thread's alone. Without the mutex.
static int open_file(tm_table_cache *c, tm_open_table *t, tamis_error *err)
{
    char name[TM_TABLE_NAME_BYTES];
    tm_table_cache_name(t->number, name);
    for (;;) {
        tamis_error why = {0};
        int st = tm_file_open(c->dir, name, t->number, TAMIS_FILE_READ, &t->file, &why);
        if (st == TAMIS_OK) return TAMIS_OK;
        if (st == TAMIS_NOTFOUND) {
            return tm_fail_corrupt(err, t->number, 0, "the table file %s is missing", name);
        }
        if (why.sys != EMFILE && why.sys != ENFILE) return tm_fail_copy(err, &why);
        tm_file files[CLOSED_AT_ONCE];
        tm_mutex_lock(&c->mutex);
        uint32_t n = idle_take(c, files, CLOSED_AT_ONCE);
        tm_mutex_unlock(&c->mutex);
        if (n == 0) return tm_fail_copy(err, &why);
        close_all(files, n);
    }
}

// Turns a closed place into an open one. Enters and leaves with the mutex, lets go of it between.
static int open_place(tm_table_cache *c, tm_open_table *t, tamis_error *err)
{
    tm_file file; // one in, one out; more than one only after max_open was exceeded
    t->state = PLACE_OPENING;
    c->open++;
    while (c->open > c->max_open && idle_take(c, &file, 1) == 1) {
        tm_mutex_unlock(&c->mutex);
        close_all(&file, 1);
        tm_mutex_lock(&c->mutex);
    }
    tm_mutex_unlock(&c->mutex);
    int st = open_file(c, t, err);
    tm_mutex_lock(&c->mutex);
    t->state = st == TAMIS_OK ? PLACE_OPEN : PLACE_CLOSED;
    if (st != TAMIS_OK) c->open--;
    tm_cond_broadcast(&c->opened);
    return st;
}

int tm_table_cache_acquire(tm_table_cache *c, tm_open_table *t, tm_file **out, tamis_error *err)
{
    int st = TAMIS_OK;
    tm_mutex_lock(&c->mutex);
    while (t->state == PLACE_OPENING) tm_cond_wait(&c->opened, &c->mutex);
    if (t->state == PLACE_CLOSED) {
        st = open_place(c, t, err);
    } else if (t->users == 0) {
        idle_remove(c, t);
    }
    if (st == TAMIS_OK) {
        t->users++;
        *out = &t->file;
    }
    tm_mutex_unlock(&c->mutex);
    return st;
}

void tm_table_cache_release(tm_table_cache *c, tm_open_table *t)
{
    tm_file file;
    uint32_t n = 0;
    tm_mutex_lock(&c->mutex);
    assert(t->users > 0 && t->state == PLACE_OPEN);
    if (--t->users == 0) {
        idle_add(c, t);
        if (c->open > c->max_open) n = idle_take(c, &file, 1);
    }
    tm_mutex_unlock(&c->mutex);
    close_all(&file, n);
}

uint32_t tm_table_cache_open_files(tm_table_cache *c)
{
    tm_mutex_lock(&c->mutex);
    uint32_t n = c->open;
    tm_mutex_unlock(&c->mutex);
    return n;
}
