// SPDX-License-Identifier: BSD-2-Clause
//
// The manifest as a file: what survives what, and what a failed call leaves.
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lsm/filename.h"
#include "lsm/manifest.h"

static tamis_vfs *vfs;
static tamis_dir *dir;
static const uint8_t id[16] = {1, 2, 3};

static void setup(void)
{
    ck_assert_int_eq(tamis_vfs_memory(&vfs, NULL), TAMIS_OK);
    ck_assert_int_eq(vfs->dir_open(vfs, "d", TAMIS_DIR_CREATE, &dir, NULL), 0);
}

static void teardown(void)
{
    vfs->dir_close(dir);
    tamis_vfs_free(vfs);
}

static tm_edit numbered(uint64_t n)
{
    tm_edit e;
    tm_edit_init(&e);
    e.has_next_file = true;
    e.next_file = n;
    return e;
}

static tm_manifest *make(uint64_t number, uint64_t edits)
{
    tm_manifest *m = NULL;
    bool poisoned = false;
    tamis_error err;
    tm_edit e = numbered(100);
    ck_assert_int_eq(tm_manifest_create(dir, number, id, &e, &m, &poisoned, &err), TAMIS_OK);
    for (uint64_t i = 1; i <= edits; i++) {
        e = numbered(100 + i);
        ck_assert_int_eq(tm_manifest_append(m, &e, &poisoned, &err), TAMIS_OK);
    }
    return m;
}

static int count(void *ctx, tm_edit *e, tamis_error *err)
{
    uint64_t *next = ctx;
    (void)err;
    ck_assert_uint_eq(e->next_file, 100 + *next);
    ++*next;
    return TAMIS_OK;
}

static int read_all(uint64_t number, uint64_t vouched, uint64_t *edits, tm_manifest_end *end)
{
    *edits = 0;
    memset(end, 0, sizeof *end);
    return tm_manifest_read(dir, number, vouched, count, edits, end, NULL);
}

START_TEST(edits_come_back_in_order)
{
    uint64_t number = 0, edits;
    tm_manifest_end end;
    ck_assert_int_eq(tm_current_read(dir, &number, NULL), TAMIS_NOTFOUND);
    tm_manifest *m = make(5, 20);
    ck_assert_int_eq(tm_current_read(dir, &number, NULL), TAMIS_OK);
    ck_assert_uint_eq(number, 5);
    ck_assert_int_eq(read_all(5, 0, &edits, &end), TAMIS_OK);
    ck_assert_uint_eq(edits, 21);
    ck_assert_mem_eq(end.store_id, id, sizeof id);
    ck_assert_int_eq(tm_manifest_close(m, true, NULL), TAMIS_OK);
    ck_assert_int_eq(read_all(5, 0, &edits, &end), TAMIS_OK);
    ck_assert(end.whole && end.sealed);
    ck_assert_int_eq(read_all(6, 0, &edits, &end), TAMIS_NOTFOUND);
}
END_TEST

static void cut(const char *name, uint64_t length)
{
    tamis_file *f = NULL;
    ck_assert_int_eq(vfs->file_open(dir, name, TAMIS_FILE_WRITE, &f), 0);
    ck_assert_int_eq(vfs->truncate(f, length), 0);
    (void)vfs->file_close(f);
}

static uint64_t length_of(const char *name)
{
    tamis_file *f = NULL;
    uint64_t n = 0;
    ck_assert_int_eq(vfs->file_open(dir, name, TAMIS_FILE_READ, &f), 0);
    ck_assert_int_eq(vfs->file_size(f, &n), 0);
    (void)vfs->file_close(f);
    return n;
}

// A torn end is cut off whole edits, unless something vouches for what is missing.
START_TEST(a_torn_end_is_told_from_a_loss)
{
    uint64_t edits, whole;
    tm_manifest_end end;
    tm_manifest *m = make(5, 20);
    uint64_t synced = tm_manifest_synced(m);
    (void)!tm_manifest_close(m, false, NULL);
    ck_assert_int_eq(read_all(5, synced, &whole, &end), TAMIS_OK);
    uint64_t length = length_of("MANIFEST-000005");
    ck_assert_uint_le(synced, length);
    uint64_t last = 21;
    for (uint64_t n = synced - 1; n > 200; n -= 7) {
        cut("MANIFEST-000005", n);
        int st = read_all(5, 0, &edits, &end);
        if (st == TAMIS_OK) {
            ck_assert_uint_le(edits, last);
            last = edits;
        } else {
            ck_assert_int_eq(st, TAMIS_CORRUPT);
        }
        ck_assert_int_ne(read_all(5, synced, &edits, &end), TAMIS_OK);
    }
    ck_assert_uint_lt(last, 21);
}
END_TEST

START_TEST(a_current_that_is_garbage_is_told)
{
    static const char *const texts[] = {"", "MANIFEST-000005", "x\n", "../MANIFEST-000005\n"};
    uint64_t number;
    (void)!tm_manifest_close(make(5, 1), true, NULL);
    for (size_t i = 0; i < 4; i++) {
        tamis_file *f = NULL;
        size_t moved;
        cut("CURRENT", 0);
        ck_assert_int_eq(vfs->file_open(dir, "CURRENT", TAMIS_FILE_WRITE, &f), 0);
        ck_assert_int_eq(vfs->write_at(f, 0, texts[i], strlen(texts[i]), &moved), 0);
        (void)vfs->file_close(f);
        ck_assert_int_eq(tm_current_read(dir, &number, NULL), TAMIS_CORRUPT);
    }
}
END_TEST

// Each call fails once: the old manifest or the new one is in force, and whole.
START_TEST(a_failed_call_leaves_one_in_force)
{
    for (uint64_t call = 1;; call++) {
        uint64_t number, edits;
        tm_manifest_end end;
        tm_manifest *m = NULL;
        bool poisoned = false;
        tm_edit e = numbered(100);
        if (call > 1) {
            teardown();
            setup();
        }
        (void)!tm_manifest_close(make(5, 3), true, NULL);
        tamis_vfs_memory_fail(vfs, tamis_vfs_memory_calls(vfs) + call, EIO, 0);
        int st = tm_manifest_create(dir, 9, id, &e, &m, &poisoned, NULL);
        tamis_vfs_memory_fail(vfs, 0, 0, 0);
        ck_assert_int_eq(tm_current_read(dir, &number, NULL), TAMIS_OK);
        ck_assert(number == 5 || number == 9);
        ck_assert_int_eq(read_all(number, 0, &edits, &end), TAMIS_OK);
        if (st == TAMIS_OK) {
            ck_assert_uint_eq(number, 9);
            (void)!tm_manifest_close(m, true, NULL);
            if (call > 30) break;
            continue;
        }
        ck_assert(number == 5 || poisoned);
    }
}
END_TEST

START_TEST(a_failed_append_breaks_it)
{
    for (uint64_t call = 1; call < 4; call++) {
        uint64_t edits;
        tm_manifest_end end;
        bool poisoned = false;
        tm_edit e = numbered(104);
        if (call > 1) {
            teardown();
            setup();
        }
        tm_manifest *m = make(5, 3);
        tamis_vfs_memory_fail(vfs, tamis_vfs_memory_calls(vfs) + call, EIO, 1);
        int st = tm_manifest_append(m, &e, &poisoned, NULL);
        tamis_vfs_memory_fail(vfs, 0, 0, 0);
        if (st != TAMIS_OK) {
            ck_assert(tm_manifest_broken(m) || poisoned);
            if (tm_manifest_broken(m)) {
                ck_assert_int_ne(tm_manifest_append(m, &e, &poisoned, NULL), TAMIS_OK);
            }
        }
        (void)!tm_manifest_close(m, false, NULL);
        ck_assert_int_eq(read_all(5, 0, &edits, &end), TAMIS_OK);
        ck_assert_uint_ge(edits, 4);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("manifest");
    TCase *t = tcase_create("manifest");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, edits_come_back_in_order);
    tcase_add_test(t, a_torn_end_is_told_from_a_loss);
    tcase_add_test(t, a_current_that_is_garbage_is_told);
    tcase_add_test(t, a_failed_call_leaves_one_in_force);
    tcase_add_test(t, a_failed_append_breaks_it);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
