// SPDX-License-Identifier: BSD-2-Clause
//
// store_kit.h - for suites on a whole store through its public calls: a store on files in memory,
// its background work stepped by the test.
#ifndef TM_STORE_KIT_H
#define TM_STORE_KIT_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lsm/tamis.h"

static tamis_vfs *kit_vfs;
static tamis_error kit_error; // of the last call

#define kit_ok(call)                                                                               \
    do {                                                                                           \
        int kit_status_ = (call);                                                                  \
        ck_assert_msg(kit_status_ == TAMIS_OK, "%s: %s: %s", #call,                                \
                      tamis_status_name(kit_status_), kit_error.message);                          \
    } while (0)
// The call fails with status, and the message has word in it.
#define kit_fails(call, status, word)                                                              \
    do {                                                                                           \
        memset(&kit_error, 0, sizeof kit_error);                                                   \
        int kit_status_ = (call);                                                                  \
        ck_assert_msg(kit_status_ == (status), "%s: %s", #call, tamis_status_name(kit_status_));   \
        ck_assert_msg(strstr(kit_error.message, word) != NULL, "%s: \"%s\"", #call,                \
                      kit_error.message);                                                          \
    } while (0)

static inline void kit_setup(void)
{
    ck_assert_int_eq(tamis_vfs_memory(&kit_vfs, NULL), TAMIS_OK);
}

static inline void kit_teardown(void)
{
    tamis_vfs_free(kit_vfs);
    kit_vfs = NULL;
}

static inline tamis_options kit_options(void)
{
    tamis_options o = tamis_options_init();
    o.vfs = kit_vfs;
    o.flags = TAMIS_OPEN_NO_BACKGROUND;
    o.sync = TAMIS_SYNC_NEVER;
    o.memory_budget = 4u << 20;
    o.extra = "write_buffer=64KiB; block_size=1KiB; table_size=32KiB; seed=7";
    return o;
}

static inline tamis_db *kit_open(const tamis_options *o)
{
    tamis_options standard = kit_options();
    tamis_db *db = NULL;
    kit_ok(tamis_open("store", o ? o : &standard, &db, &kit_error));
    return db;
}

static inline void kit_close(tamis_db *db)
{
    kit_ok(tamis_close(db, 0, &kit_error));
}

static inline void kit_put(tamis_db *db, tamis_cf *cf, const char *key, const char *value)
{
    kit_ok(tamis_put(db, cf, NULL, key, strlen(key), value, strlen(value), &kit_error));
}

// Keys "<name>00000" to count - 1, all with values of the given length.
static inline void kit_fill(tamis_db *db, tamis_cf *cf, const char *name, int count, size_t vlen)
{
    char key[64], *value = malloc(vlen + 1);
    memset(value, 'v', vlen + 1);
    for (int i = 0; i < count; i++) {
        int n = snprintf(key, sizeof key, "%s%05d", name, i);
        kit_ok(tamis_put(db, cf, NULL, key, (size_t)n, value, vlen, &kit_error));
    }
    free(value);
}

// The value as text; "(none)" if the key is not there.
static inline const char *kit_get(tamis_db *db, tamis_cf *cf, const tamis_read_options *ro,
                                  const char *key)
{
    static char buf[4096];
    size_t len = 0;
    int st = tamis_get_into(db, cf, ro, key, strlen(key), buf, sizeof buf - 1, &len, &kit_error);
    if (st == TAMIS_NOTFOUND) return "(none)";
    kit_ok(st);
    buf[len] = '\0';
    return buf;
}

static inline int kit_count(tamis_db *db, tamis_cf *cf, const tamis_read_options *ro)
{
    tamis_iter *it = NULL;
    int n = 0;
    kit_ok(tamis_iter_create(db, cf, ro, &it, &kit_error));
    for (tamis_iter_first(it); tamis_iter_valid(it); tamis_iter_next(it)) n++;
    kit_ok(tamis_iter_status(it, &kit_error));
    tamis_iter_free(it);
    return n;
}

static inline uint64_t kit_counter(tamis_db *db, const char *name)
{
    uint64_t v = 0;
    kit_ok(tamis_counter(db, name, &v, &kit_error));
    return v;
}

static inline void kit_idle(tamis_db *db)
{
    kit_ok(tamis_wait_idle(db, 0, &kit_error));
}

typedef struct kit_listing {
    const char *ending;
    int count;
} kit_listing;

static inline int kit_list_one(void *ctx, const char *name)
{
    kit_listing *l = ctx;
    size_t n = strlen(name), e = strlen(l->ending);
    if (n >= e && strcmp(name + n - e, l->ending) == 0) l->count++;
    return 0;
}

// Files of the store whose names end so.
static inline int kit_files(const char *ending)
{
    tamis_dir *dir = NULL;
    kit_listing l = {ending, 0};
    ck_assert_int_eq(kit_vfs->dir_open(kit_vfs, "store", TAMIS_DIR_EXISTING, &dir, NULL), 0);
    ck_assert_int_eq(kit_vfs->dir_list(dir, kit_list_one, &l), 0);
    kit_vfs->dir_close(dir);
    return l.count;
}

#endif // TM_STORE_KIT_H
