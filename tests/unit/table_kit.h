// SPDX-License-Identifier: BSD-2-Clause
//
// table_kit.h - a table on files in memory beside the sorted array that it was made from, for the
// tests of tables.
#ifndef TM_TABLE_KIT_H
#define TM_TABLE_KIT_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/random.h"
#include "sstable/format.h"
#include "sstable/table.h"
#include "sstable/table_writer.h"

// ---- The sorted array --------------------------------------------------------------------------

typedef struct kit_entry {
    tm_slice key, value; // in the kit's memory
    uint64_t trailer;
} kit_entry;

typedef struct kit_shape {
    const char *name;
    uint32_t keys;
    uint32_t versions;      // most of one key
    uint32_t key_style;     // 0 numbers, 1 random bytes, 2 long common starts, 3 equal heads
    uint32_t value_max;     // bytes
    uint32_t block_bytes, partition_bytes, index_bytes;
    tm_compression compression;
    tm_filter_kind filter;
    uint32_t millibits;
    bool reverse;           // a comparator of the user's
    bool ranges;            // three range deletes
    uint64_t seed;
} kit_shape;

typedef struct kit {
    kit_shape shape;
    tm_order order;
    kit_entry *entries;     // in internal order
    uint32_t n;
    uint8_t *bytes;         // of keys and values
    tamis_vfs *memory;
    tamis_vfs spied;        // memory, with reads counted
    tamis_dir *dir;
    tm_cache *cache;
    tm_table_cache *files;
    tm_table_env env;
    tm_table_meta meta;
    tm_table *table;
} kit;

static _Atomic uint64_t kit_reads; // calls of read_at

static inline int kit_reverse(void *ctx, const void *a, size_t alen, const void *b, size_t blen)
{
    (void)ctx;
    return tm_slice_compare(tm_slice_of(b, blen), tm_slice_of(a, alen));
}

static inline tm_order kit_order(bool reverse)
{
    tamis_comparator c = {.size = sizeof c, .name = "test.reverse", .compare = kit_reverse};
    return tm_order_of(reverse ? &c : NULL);
}

static inline size_t kit_make_key(const kit_shape *s, tm_random *r, uint32_t i, uint8_t *out)
{
    static const char start[] = "a rather long start that all of the keys have in common/";
    uint64_t number = (uint64_t)i * 3 + tm_random_below(r, 2);
    switch (s->key_style) {
    case 0: return (size_t)snprintf((char *)out, 64, "key%08u", (unsigned)number);
    case 1: {
        size_t n = tm_random_below(r, 12);
        for (size_t j = 0; j < n; j++) out[j] = (uint8_t)tm_random_below(r, 5) * 63;
        return n;
    }
    case 2: return (size_t)snprintf((char *)out, 128, "%s%llx", start, (unsigned long long)number);
    default: return (size_t)snprintf((char *)out, 64, "same%s%u", i % 2 ? "" : "head", (unsigned)i);
    }
}

static const tm_order *kit_sort_order;
static inline int kit_compare(const void *a, const void *b)
{
    const kit_entry *x = a, *y = b;
    return tm_order_compare_internal(kit_sort_order, x->key, x->trailer, y->key, y->trailer);
}

static inline void kit_make_entries(kit *k)
{
    const kit_shape *s = &k->shape;
    tm_random r = tm_random_seed(s->seed + 1);
    uint32_t most = s->keys * s->versions;
    size_t room = (size_t)most * (128 + s->value_max), used = 0;
    k->entries = tm_calloc(most, sizeof *k->entries);
    k->bytes = tm_alloc(room);
    ck_assert(k->entries != NULL && k->bytes != NULL);
    for (uint32_t i = 0; i < s->keys; i++) {
        uint8_t *key = k->bytes + used;
        size_t key_len = kit_make_key(s, &r, i, key);
        used += key_len;
        uint32_t versions = 1 + (uint32_t)tm_random_below(&r, s->versions);
        for (uint32_t v = 0; v < versions; v++) {
            size_t value_len = tm_random_below(&r, s->value_max + 1);
            uint8_t *value = k->bytes + used;
            for (size_t j = 0; j < value_len; j++) value[j] = (uint8_t)((i + j) * (v + 1) >> 2);
            used += value_len;
            tm_kind kind = tm_random_below(&r, 8) == 0 ? TM_KIND_DELETE : TM_KIND_PUT;
            if (kind == TM_KIND_DELETE) value_len = 0;
            uint64_t seq = 1 + tm_random_below(&r, 1000);
            k->entries[k->n++] = (kit_entry){tm_slice_of(key, key_len),
                                             tm_slice_of(value, value_len), tm_trailer(seq, kind)};
        }
    }
    kit_sort_order = &k->order;
    qsort(k->entries, k->n, sizeof *k->entries, kit_compare);
    uint32_t n = 0; // drops what is there twice (also one sequence number with two kinds)
    for (uint32_t i = 0; i < k->n; i++) {
        bool twice = n > 0 && tm_slice_equal(k->entries[n - 1].key, k->entries[i].key) &&
                     k->entries[n - 1].trailer >> 8 == k->entries[i].trailer >> 8;
        if (!twice) k->entries[n++] = k->entries[i];
    }
    k->n = n;
}

// The first entry at or behind (key, trailer).
static inline uint32_t kit_bound(const kit *k, tm_slice key, uint64_t trailer)
{
    uint32_t low = 0, high = k->n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        const kit_entry *e = &k->entries[mid];
        int c = tm_order_compare_internal(&k->order, e->key, e->trailer, key, trailer);
        if (c < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

// ---- The table ---------------------------------------------------------------------------------

static inline int kit_read_at(tamis_file *file, uint64_t offset, void *buf, size_t n, size_t *got)
{
    atomic_fetch_add(&kit_reads, 1);
    const tamis_vfs *real = file->vfs->ctx;
    return real->read_at(file, offset, buf, n, got);
}

static inline void kit_write(kit *k)
{
    const kit_shape *s = &k->shape;
    tm_table_writer_options o = {
        .order = k->order,
        .block_bytes = s->block_bytes,
        .partition_bytes = s->partition_bytes,
        .index_bytes = s->index_bytes,
        .compression = s->compression,
        .filter = s->filter,
        .filter_millibits = s->millibits,
        .hash_seed = 0x1234567 + s->seed,
        .family_name = tm_slice_str("default"),
        .id = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
        .created_ms = 1700000000000,
    };
    tm_table_writer *w;
    tamis_error err = {0};
    int st = tm_table_writer_create(k->dir, 7, &o, &w, &err);
    for (uint32_t i = 0; st == TAMIS_OK && i < k->n; i++) {
        const kit_entry *e = &k->entries[i];
        st = tm_table_writer_add(w, e->key, e->trailer, e->value, &err);
    }
    if (s->ranges) {
        static const char *bounds[] = {"b", "c", "key00000050", "key00000100", "x", ""};
        for (uint64_t i = 0; st == TAMIS_OK && i < 3; i++) {
            st = tm_table_writer_add_range(w, tm_slice_str(bounds[i * 2]),
                                           tm_slice_str(bounds[i * 2 + 1]), 500 + i, &err);
        }
    }
    tm_table_meta_init(&k->meta);
    if (st == TAMIS_OK) st = tm_table_writer_finish(w, &k->meta, &err);
    ck_assert_msg(st == TAMIS_OK, "%s: %s", s->name, err.message);
    tm_table_writer_destroy(w);
}

static inline void kit_open(kit *k, size_t budget)
{
    ck_assert_int_eq(tm_cache_create(budget, &k->cache, NULL), TAMIS_OK);
    ck_assert_int_eq(tm_table_cache_create(k->dir, 4, &k->files, NULL), TAMIS_OK);
    k->env = (tm_table_env){.vfs = k->memory, .cache = k->cache, .files = k->files};
    ck_assert_int_eq(tm_table_open(&k->env, &k->meta, &k->order, false, &k->table, NULL), TAMIS_OK);
}

// Nothing of the table is left in the cache.
static inline void kit_close(kit *k)
{
    tm_cache_usage u;
    ck_assert(tm_cache_check(k->cache));
    tm_table_close(k->table);
    tm_epoch_synchronize();
    tm_cache_usage_get(k->cache, &u);
    for (int i = 0; i < TM_CACHED_KINDS; i++) ck_assert_uint_eq(u.bytes[i], 0);
    ck_assert_uint_eq(u.pinned, 0);
    ck_assert_uint_eq(u.retired, 0);
    ck_assert_uint_eq(u.charged, 0);
    tm_cache_destroy(k->cache);
    tm_table_cache_destroy(k->files);
    k->table = NULL;
}

static inline int kit_open_file(tamis_dir *d, const char *name, uint32_t mode, tamis_file **out)
{
    const tamis_vfs *memory = d->vfs->ctx;
    int rc = memory->file_open(d, name, mode, out);
    if (rc == 0) (*out)->vfs = d->vfs;
    return rc;
}

static inline void kit_begin(kit *k, const kit_shape *s)
{
    *k = (kit){.shape = *s, .order = kit_order(s->reverse)};
    kit_make_entries(k);
    ck_assert_int_eq(tamis_vfs_memory(&k->memory, NULL), TAMIS_OK);
    ck_assert_int_eq(tm_dir_open(k->memory, "/t", TAMIS_DIR_CREATE, &k->dir, NULL, NULL), TAMIS_OK);
    kit_write(k);
    k->spied = *k->memory;
    k->spied.ctx = k->memory;
    k->spied.file_open = kit_open_file;
    k->spied.read_at = kit_read_at;
    k->dir->vfs = &k->spied;
}

static inline void kit_end(kit *k)
{
    tm_table_meta_deinit(&k->meta);
    k->dir->vfs = k->memory;
    tm_dir_close(k->dir);
    tamis_vfs_free(k->memory);
    tm_free(k->bytes);
    tm_free(k->entries);
}

// Reads or changes bytes of the file, past everything.
static inline void kit_bytes(kit *k, uint64_t offset, void *buf, size_t n, bool write)
{
    tm_file f;
    k->dir->vfs = k->memory;
    ck_assert_int_eq(tm_file_open(k->dir, "000007.sst", 7, TAMIS_FILE_WRITE, &f, NULL), TAMIS_OK);
    if (write) {
        ck_assert_int_eq(tm_file_write(&f, offset, buf, n, NULL), TAMIS_OK);
    } else {
        ck_assert_int_eq(tm_file_read(&f, offset, buf, n, NULL), TAMIS_OK);
    }
    ck_assert_int_eq(tm_file_close(&f, NULL), TAMIS_OK);
    k->dir->vfs = &k->spied;
}

// ---- Lookups -----------------------------------------------------------------------------------

static inline uint64_t kit_hash(const kit *k, tm_slice key)
{
    tm_buf scratch = {0};
    uint64_t hash;
    ck_assert_int_eq(tm_order_hash(&k->order, key, k->meta.hash_seed, &scratch, &hash), TAMIS_OK);
    tm_buf_deinit(&scratch);
    return hash;
}

static inline int kit_lookup(kit *k, tm_read_ctx *rc, tm_slice key, uint64_t trailer,
                             tm_found *found)
{
    tm_probe p;
    TM_TRY(tm_table_route(k->table, rc, key, trailer, kit_hash(k, key), &p));
    if (!tm_table_probe(&p, rc)) return TAMIS_NOTFOUND;
    return tm_table_find(&p, rc, key, trailer, found);
}

// The answer to a lookup that gave st is right.
static inline void kit_check(const kit *k, tm_slice key, uint64_t trailer, int st,
                             const tm_found *found)
{
    uint32_t i = kit_bound(k, key, trailer);
    bool there = i < k->n && tm_order_compare(&k->order, k->entries[i].key, key) == 0;
    ck_assert_msg(st == (there ? TAMIS_OK : TAMIS_NOTFOUND), "%s: status %d for entry %u",
                  k->shape.name, st, i);
    if (!there) return;
    ck_assert_uint_eq(found->trailer, k->entries[i].trailer);
    ck_assert(tm_slice_equal(found->value, k->entries[i].value));
}

// Without I/O if it can be, else pinned. mode: what it took.
static inline void kit_get(kit *k, tm_slice key, uint64_t trailer, tm_read_counts *counts,
                    tm_read_mode *mode)
{
    tm_read_counts own = {0};
    tm_found found;
    tm_read_ctx rc = {.mode = TM_READ_EPOCH, .counts = &own};
    tm_epoch_slot *e = tm_epoch_enter();
    ck_assert_ptr_nonnull(e);
    int st = kit_lookup(k, &rc, key, trailer, &found);
    if (st != TAMIS_BUSY) kit_check(k, key, trailer, st, &found);
    tm_epoch_exit(e);
    *mode = TM_READ_EPOCH;
    if (st == TAMIS_BUSY) {
        own = (tm_read_counts){0};
        rc = (tm_read_ctx){.mode = TM_READ_PINNED, .counts = &own};
        kit_check(k, key, trailer, kit_lookup(k, &rc, key, trailer, &found), &found);
        tm_read_ctx_reset(&rc);
        *mode = TM_READ_PINNED;
    }
    if (counts == NULL) return;
    uint64_t *to = (uint64_t *)(void *)counts;
    const uint64_t *from = (const uint64_t *)(const void *)&own;
    for (size_t i = 0; i < sizeof own / sizeof *to; i++) to[i] += from[i];
}

#endif // TM_TABLE_KIT_H
