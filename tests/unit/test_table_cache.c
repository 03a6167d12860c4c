// SPDX-License-Identifier: BSD-2-Clause
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/random.h"
#include "base/sync.h"
#include "sstable/table_cache.h"

// ---- Files in memory, with a limit of descriptors ----------------------------------------------

enum { FILES = 40 };

static tamis_vfs *memory;
static tamis_dir *dir;
static tamis_vfs limited;         // memory, but for open and close
static _Atomic int descriptors, descriptors_most, descriptors_limit, opens;
static tm_table_cache *cache;
static tm_open_table *places[FILES];

static int limited_open(tamis_dir *d, const char *name, uint32_t mode, tamis_file **out)
{
    if (atomic_fetch_add(&descriptors, 1) >= descriptors_limit) {
        atomic_fetch_sub(&descriptors, 1);
        return EMFILE;
    }
    int rc = memory->file_open(d, name, mode, out);
    if (rc != 0) {
        atomic_fetch_sub(&descriptors, 1);
        return rc;
    }
    (*out)->vfs = &limited;
    atomic_fetch_add(&opens, 1);
    int now = descriptors;
    if (now > descriptors_most) descriptors_most = now;
    return 0;
}

static int limited_close(tamis_file *file)
{
    atomic_fetch_sub(&descriptors, 1);
    return memory->file_close(file);
}

// FILES files; file i holds the byte i.
static void set_up(uint32_t max_open)
{
    ck_assert_int_eq(tamis_vfs_memory(&memory, NULL), TAMIS_OK);
    ck_assert_int_eq(tm_dir_open(memory, "/t", TAMIS_DIR_CREATE, &dir, NULL, NULL), TAMIS_OK);
    for (uint64_t i = 0; i < FILES; i++) {
        char name[TM_TABLE_NAME_BYTES];
        uint8_t byte = (uint8_t)i;
        tm_file f;
        tm_table_cache_name(i, name);
        ck_assert_int_eq(tm_file_open(dir, name, i, TAMIS_FILE_CREATE, &f, NULL), TAMIS_OK);
        ck_assert_int_eq(tm_file_write(&f, 0, &byte, 1, NULL), TAMIS_OK);
        ck_assert_int_eq(tm_file_close(&f, NULL), TAMIS_OK);
    }
    limited = *memory;
    limited.file_open = limited_open;
    limited.file_close = limited_close;
    dir->vfs = &limited;
    descriptors = descriptors_most = opens = 0;
    descriptors_limit = 1000;
    ck_assert_int_eq(tm_table_cache_create(dir, max_open, &cache, NULL), TAMIS_OK);
    for (uint64_t i = 0; i < FILES; i++) {
        ck_assert_int_eq(tm_table_cache_add(cache, i, &places[i], NULL), TAMIS_OK);
    }
}

static void tear_down(void)
{
    for (uint64_t i = 0; i < FILES; i++) tm_table_cache_remove(cache, places[i]);
    ck_assert_uint_eq(tm_table_cache_open_files(cache), 0);
    ck_assert_int_eq(descriptors, 0);
    tm_table_cache_destroy(cache);
    dir->vfs = memory;
    tm_dir_close(dir);
    tamis_vfs_free(memory);
}

static tm_file *take(uint64_t i)
{
    tm_file *f = NULL;
    uint8_t byte = 0xff;
    ck_assert_int_eq(tm_table_cache_acquire(cache, places[i], &f, NULL), TAMIS_OK);
    ck_assert_uint_eq(f->number, i);
    ck_assert_int_eq(tm_file_read(f, 0, &byte, 1, NULL), TAMIS_OK);
    ck_assert_uint_eq(byte, i);
    return f;
}

static void give(uint64_t i) { tm_table_cache_release(cache, places[i]); }

// ---- Tests -------------------------------------------------------------------------------------

START_TEST(names)
{
    char name[TM_TABLE_NAME_BYTES];
    tm_table_cache_name(12, name);
    ck_assert_str_eq(name, "000012.sst");
    tm_table_cache_name(1234567, name);
    ck_assert_str_eq(name, "1234567.sst");
    tm_table_cache_name(UINT64_MAX, name);
    ck_assert_str_eq(name, "18446744073709551615.sst");
}
END_TEST

START_TEST(the_limit_holds)
{
    set_up(5);
    for (int round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < FILES; i++) {
            take(i);
            give(i);
            ck_assert_uint_le(tm_table_cache_open_files(cache), 5);
        }
    }
    ck_assert_int_eq(descriptors, 5);
    ck_assert_int_eq(descriptors_most, 5);
    ck_assert_int_eq(opens, 3 * FILES); // the oldest goes, and is wanted first
    tear_down();
}
END_TEST

START_TEST(the_least_recently_used_is_closed)
{
    set_up(3);
    for (uint64_t i = 0; i < 3; i++) {
        take(i);
        give(i);
    }
    take(0); // now 1 is the oldest
    give(0);
    take(3);
    give(3);
    int before = opens;
    take(0);
    give(0);
    take(2);
    give(2);
    take(3);
    give(3);
    ck_assert_int_eq(opens, before);
    take(1);
    give(1);
    ck_assert_int_eq(opens, before + 1);
    tear_down();
}
END_TEST

START_TEST(files_in_use_stay_open_beyond_the_limit)
{
    set_up(2);
    tm_file *files[10];
    for (uint64_t i = 0; i < 10; i++) files[i] = take(i);
    ck_assert_uint_eq(tm_table_cache_open_files(cache), 10);
    ck_assert_ptr_eq(take(3), files[3]); // twice
    give(3);
    for (uint64_t i = 0; i < 10; i++) {
        uint8_t byte;
        ck_assert_int_eq(tm_file_read(files[i], 0, &byte, 1, NULL), TAMIS_OK);
        ck_assert_uint_eq(byte, i);
        give(i);
    }
    ck_assert_uint_eq(tm_table_cache_open_files(cache), 2);
    tear_down();
}
END_TEST

START_TEST(no_descriptor_left_closes_others)
{
    set_up(1000);
    descriptors_limit = 20;
    for (uint64_t i = 0; i < FILES; i++) {
        take(i);
        give(i);
    }
    ck_assert_int_le(descriptors_most, 20);
    // None to close: all are in use. The failure says that it may pass.
    for (uint64_t i = 0; i < 20; i++) take(i);
    tm_file *f = NULL;
    tamis_error err = {0};
    ck_assert_int_eq(tm_table_cache_acquire(cache, places[20], &f, &err), TAMIS_IO);
    ck_assert_int_eq(err.sys, EMFILE);
    ck_assert_uint_eq(err.retryable, 1);
    ck_assert_uint_eq(err.file_number, 20);
    ck_assert_uint_eq(tm_table_cache_open_files(cache), 20);
    give(0);
    take(20);
    give(20);
    for (uint64_t i = 1; i < 20; i++) give(i);
    tear_down();
}
END_TEST

START_TEST(failures_of_open)
{
    set_up(10);
    tm_file *f = NULL;
    tamis_error err = {0};
    tamis_vfs_memory_fail(memory, tamis_vfs_memory_calls(memory) + 1, EIO, 0);
    ck_assert_int_eq(tm_table_cache_acquire(cache, places[1], &f, &err), TAMIS_IO);
    ck_assert_int_eq(err.sys, EIO);
    ck_assert_int_eq(tm_table_cache_acquire(cache, places[1], &f, NULL), TAMIS_OK);
    give(1);
    // ENFILE the first time only, with nothing to close but this: the next try.
    take(2);
    give(2);
    tamis_vfs_memory_fail(memory, tamis_vfs_memory_calls(memory) + 1, ENFILE, 0);
    take(3);
    give(3);
    ck_assert_int_eq(tm_dir_unlink(dir, "000005.sst", NULL), TAMIS_OK);
    ck_assert_int_eq(tm_table_cache_acquire(cache, places[5], &f, &err), TAMIS_CORRUPT);
    ck_assert_uint_eq(err.file_number, 5);
    ck_assert_ptr_nonnull(strstr(err.message, "000005.sst"));
    tear_down();
}
END_TEST

static bool deny(void *ctx, size_t n)
{
    (void)n;
    return --*(int *)ctx >= 0;
}

START_TEST(without_memory)
{
    set_up(10);
    tm_table_cache *c = NULL;
    tm_open_table *t = NULL;
    tm_file *f = NULL;
    tamis_error err;
    int allowed = 0;
    tm_mem_set_hook(deny, &allowed);
    ck_assert_int_eq(tm_table_cache_create(dir, 1, &c, &err), TAMIS_NOMEM);
    ck_assert_int_eq(tm_table_cache_add(cache, 1, &t, &err), TAMIS_NOMEM);
    ck_assert_int_eq(tm_table_cache_acquire(cache, places[1], &f, &err), TAMIS_NOMEM);
    tm_mem_set_hook(NULL, NULL);
    ck_assert_uint_eq(tm_table_cache_open_files(cache), 0);
    take(1);
    give(1);
    tm_table_cache_remove(cache, NULL);
    tm_table_cache_destroy(NULL);
    tear_down();
}
END_TEST

static void *work(void *arg)
{
    tm_random r = tm_random_seed(*(uint64_t *)arg);
    for (int i = 0; i < 3000; i++) {
        uint64_t a = tm_random_below(&r, FILES), b = tm_random_below(&r, FILES);
        take(a);
        take(b);
        give(a);
        give(b);
    }
    return NULL;
}

START_TEST(many_threads)
{
    set_up(6);
    descriptors_limit = 12;
    tm_thread threads[4];
    uint64_t seeds[4] = {1, 2, 3, 4};
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(tm_thread_start(&threads[i], work, &seeds[i], "worker", NULL), TAMIS_OK);
    }
    for (int i = 0; i < 4; i++) tm_thread_join(&threads[i]);
    ck_assert_uint_le(tm_table_cache_open_files(cache), 6);
    tear_down();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("table_cache");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, names);
    tcase_add_test(t, the_limit_holds);
    tcase_add_test(t, the_least_recently_used_is_closed);
    tcase_add_test(t, files_in_use_stay_open_beyond_the_limit);
    tcase_add_test(t, no_descriptor_left_closes_others);
    tcase_add_test(t, failures_of_open);
    tcase_add_test(t, without_memory);
    tcase_add_test(t, many_threads);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
