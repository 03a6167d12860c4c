// SPDX-License-Identifier: BSD-2-Clause
#include "iter_support.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/vfs_memory.h"
#include "lsm/level_iter.h"
#include "sstable/table_writer.h"

enum { TABLES_MAX = 8, KEYS = 400 };

typedef struct level {
    tm_order order;
    entry entries[KEYS * 2];
    size_t n;
    tamis_vfs *vfs;
    tamis_dir *dir;
    tm_cache *cache;
    tm_table_cache *files;
    tm_table_env env;
    tm_table_meta metas[TABLES_MAX];
    tm_table *tables[TABLES_MAX];
    size_t count;
    tm_read_counts counts;
    tm_table_iter_options options;
    tm_iter *it;
} level;

// A table of the entries [from, to) and a range delete (start NULL: none).
static void write_table(level *l, size_t from, size_t to, const char *start, const char *limit)
{
    tm_table_writer *w;
    size_t i = l->count++;
    tm_table_writer_options o = {
        .order = l->order,
        .block_bytes = 256,
        .partition_bytes = 128,
        .index_bytes = 512,
        .filter = TM_FILTER_BLOCKED,
        .filter_millibits = 10000,
        .family_name = tm_slice_str("default"),
        .id = {(uint8_t)(i + 1)},
    };
    ck_assert_int_eq(tm_table_writer_create(l->dir, i + 1, &o, &w, NULL), TAMIS_OK);
    for (size_t k = from; k < to; k++) {
        const entry *e = &l->entries[k];
        ck_assert_int_eq(
            tm_table_writer_add(w, entry_key(e), e->trailer, tm_slice_str(e->value), NULL),
            TAMIS_OK);
    }
    if (start != NULL) {
        ck_assert_int_eq(
            tm_table_writer_add_range(w, tm_slice_str(start), tm_slice_str(limit), 9999, NULL),
            TAMIS_OK);
    }
    tm_table_meta_init(&l->metas[i]);
    ck_assert_int_eq(tm_table_writer_finish(w, &l->metas[i], NULL), TAMIS_OK);
    tm_table_writer_destroy(w);
    ck_assert_int_eq(tm_table_open(&l->env, &l->metas[i], &l->order, false, &l->tables[i], NULL),
                     0);
}

static void open_files(level *l)
{
    memset(l, 0, sizeof(*l));
    l->order = tm_order_bytewise();
    ck_assert_int_eq(tamis_vfs_memory(&l->vfs, NULL), TAMIS_OK);
    ck_assert_int_eq(tm_dir_open(l->vfs, "/t", TAMIS_DIR_CREATE, &l->dir, NULL, NULL), TAMIS_OK);
    ck_assert_int_eq(tm_cache_create(1 << 20, &l->cache, NULL), TAMIS_OK);
    ck_assert_int_eq(tm_table_cache_create(l->dir, 4, &l->files, NULL), TAMIS_OK);
    l->env = (tm_table_env){.vfs = l->vfs, .cache = l->cache, .files = l->files};
    l->options = (tm_table_iter_options){.counts = &l->counts};
}

// Six tables. Keys k0000, k0003, ...; every fifth with two versions. The third table has a range
// delete only; the fourth's goes up to the fifth's first key, the last one's to the end.
static void open_level(level *l)
{
    open_files(l);
    size_t cuts[5] = {0};
    for (size_t i = 0; i < KEYS; i++) {
        if (i % 100 == 0) cuts[i / 100] = l->n;
        for (size_t v = 0; v < (i % 5 == 0 ? 2u : 1u); v++) {
            entry *e = &l->entries[l->n++];
            snprintf(e->key, sizeof(e->key), "k%04u", (unsigned)(i * 3) % 10000);
            snprintf(e->value, sizeof(e->value), "value %u %u", (unsigned)i, (unsigned)v);
            e->trailer = tm_trailer(1000 - 3 * v, TM_KIND_PUT);
        }
    }
    cuts[4] = l->n;
    write_table(l, cuts[0], cuts[1], NULL, NULL);
    write_table(l, cuts[1], cuts[2], "k0300", "k0301");
    write_table(l, 0, 0, "k0598", "k0599");
    write_table(l, cuts[2], cuts[3], "k0890", "k0900");
    write_table(l, cuts[3], cuts[4], NULL, NULL);
    write_table(l, 0, 0, "k5", "");
    ck_assert_int_eq(
        tm_level_iter_create(&l->order, l->tables, l->count, &l->options, &l->it, NULL), TAMIS_OK);
}

static void close_level(level *l)
{
    tm_iter_destroy(l->it);
    for (size_t i = 0; i < l->count; i++) {
        tm_table_close(l->tables[i]);
        tm_table_meta_deinit(&l->metas[i]);
    }
    tm_epoch_synchronize();
    tm_cache_destroy(l->cache);
    tm_table_cache_destroy(l->files);
    tm_dir_close(l->dir);
    tamis_vfs_free(l->vfs);
}

static size_t find(const level *l, tm_slice key, uint64_t trailer)
{
    size_t i = 0;
    while (i < l->n && tm_order_compare_internal(&l->order, entry_key(&l->entries[i]),
                                                 l->entries[i].trailer, key, trailer) < 0) {
        i++;
    }
    return i;
}

static void check_at(const level *l, size_t at)
{
    const tm_iter *it = l->it;
    ck_assert_int_eq(it->status, TAMIS_OK);
    ck_assert_int_eq(it->valid, at < l->n);
    if (at >= l->n) return;
    const entry *e = &l->entries[at];
    bool same = tm_slice_equal(it->key, entry_key(e)) && it->trailer == e->trailer &&
                tm_slice_equal(it->value, tm_slice_str(e->value));
    if (!same) ck_abort_msg("not at entry %zu", at);
}

START_TEST(no_table)
{
    static level l;
    open_files(&l);
    ck_assert_int_eq(tm_level_iter_create(&l.order, NULL, 0, &l.options, &l.it, NULL), TAMIS_OK);
    l.it->ops->first(l.it);
    check_at(&l, 0);
    l.it->ops->last(l.it);
    check_at(&l, 0);
    l.it->ops->seek(l.it, tm_slice_str("a"), 5);
    check_at(&l, 0);
    l.it->ops->seek_before(l.it, tm_slice_str("a"), 5);
    check_at(&l, 0);
    close_level(&l);
}
END_TEST

START_TEST(whole_walks)
{
    static level l;
    open_level(&l);
    ck_assert(!l.it->valid);
    l.it->ops->first(l.it);
    for (size_t i = 0; i < l.n; i++) {
        check_at(&l, i);
        l.it->ops->next(l.it);
    }
    check_at(&l, SIZE_MAX);
    l.it->ops->last(l.it);
    for (size_t i = l.n; i > 0; i--) {
        check_at(&l, i - 1);
        l.it->ops->prev(l.it);
    }
    check_at(&l, SIZE_MAX);
    close_level(&l);
}
END_TEST

START_TEST(every_seek)
{
    static level l;
    open_level(&l);
    for (unsigned i = 0; i < KEYS * 3 + 10; i++) {
        static const uint64_t trailers[] = {0, 997 << 8 | 1, 998 << 8, 1000 << 8 | 1, UINT64_MAX};
        char key[12];
        snprintf(key, sizeof(key), "k%04u", i % 10000);
        uint64_t trailer = trailers[i * 7 % TM_COUNT(trailers)];
        size_t at = find(&l, tm_slice_str(key), trailer);
        l.it->ops->seek(l.it, tm_slice_str(key), trailer);
        check_at(&l, at);
        if (l.it->valid) {
            l.it->ops->prev(l.it);
            check_at(&l, at - 1);
        }
        l.it->ops->seek_before(l.it, tm_slice_str(key), trailer);
        check_at(&l, at - 1);
        if (l.it->valid) {
            l.it->ops->next(l.it);
            check_at(&l, at);
        }
    }
    l.it->ops->seek(l.it, tm_slice_str("z"), 0); // in the last table, which has no entry
    check_at(&l, SIZE_MAX);
    l.it->ops->seek_before(l.it, tm_slice_str("z"), 0);
    check_at(&l, l.n - 1);
    l.it->ops->seek_before(l.it, tm_slice_str("a"), 0);
    check_at(&l, SIZE_MAX);
    close_level(&l);
}
END_TEST

static bool refuse(void *ctx, size_t n)
{
    (void)ctx;
    (void)n;
    return false;
}

START_TEST(a_failure_is_told_and_passes)
{
    static level l;
    open_level(&l);
    tm_iter *none = (tm_iter *)&l;
    tm_mem_set_hook(refuse, NULL);
    ck_assert_int_eq(tm_level_iter_create(&l.order, l.tables, 6, &l.options, &none, NULL),
                     TAMIS_NOMEM);
    l.it->ops->first(l.it);
    tm_mem_set_hook(NULL, NULL);
    ck_assert_ptr_null(none);
    ck_assert(!l.it->valid);
    ck_assert_int_eq(l.it->status, TAMIS_NOMEM);
    ck_assert_int_eq(l.it->error.code, TAMIS_NOMEM);
    l.it->ops->first(l.it);
    check_at(&l, 0);
    tm_iter_destroy(l.it);
    l.options.cached_only = true; // BUSY where a file would be read: what follows is not in memory
    ck_assert_int_eq(tm_level_iter_create(&l.order, l.tables, 6, &l.options, &l.it, NULL), 0);
    l.it->ops->last(l.it);
    ck_assert(!l.it->valid);
    ck_assert_int_eq(l.it->status, TAMIS_BUSY);
    close_level(&l);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("level_iter");
    TCase *c = tcase_create("level_iter");
    tcase_set_timeout(c, 30);
    tcase_add_test(c, no_table);
    tcase_add_test(c, whole_walks);
    tcase_add_test(c, every_seek);
    tcase_add_test(c, a_failure_is_told_and_passes);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    SRunner *r = srunner_create(suite());
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
