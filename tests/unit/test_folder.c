// SPDX-License-Identifier: BSD-2-Clause
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lsm/folder.h"

// ---- Names -------------------------------------------------------------------------------------

START_TEST(names_go_both_ways)
{
    static const tm_file_kind kinds[] = {TM_FILE_MANIFEST, TM_FILE_LOG, TM_FILE_TABLE};
    static const uint64_t numbers[] = {
        1, 9, 999999, 1000000, 123456789012ull, 1000000000000000000ull};
    for (size_t k = 0; k < 3; k++) {
        for (size_t i = 0; i < 6; i++) {
            char name[TM_NAME_MAX];
            uint64_t number = 0;
            tm_filename(name, kinds[k], numbers[i]);
            ck_assert_int_eq(tm_filename_parse(name, &number), kinds[k]);
            ck_assert_uint_eq(number, numbers[i]);
        }
    }
    char name[TM_NAME_MAX];
    tm_filename(name, TM_FILE_TABLE, 12);
    ck_assert_str_eq(name, "000012.sst");
    tm_filename(name, TM_FILE_LOG, 7);
    ck_assert_str_eq(name, "000007.log");
    tm_filename(name, TM_FILE_MANIFEST, 3);
    ck_assert_str_eq(name, "MANIFEST-000003");
}
END_TEST

START_TEST(only_the_exact_spelling_is_ours)
{
    static const char *const others[] = {"",
                                         "12.sst",
                                         "0000012.sst",
                                         "000012.SST",
                                         "000012.sst2",
                                         "000012",
                                         "000012.sst ",
                                         "+00012.sst",
                                         "-00012.sst",
                                         "00001a.sst",
                                         "000000.sst",
                                         "MANIFEST-",
                                         "MANIFEST-3",
                                         "MANIFEST-000003.tmp",
                                         "manifest-000003",
                                         ".sst",
                                         "99999999999999999999999.sst",
                                         "../000001.sst",
                                         "current",
                                         "CURRENT.tmp2",
                                         "lost.d",
                                         "LOG.old2"};
    uint64_t number;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        ck_assert_msg(tm_filename_parse(others[i], &number) == TM_FILE_OTHER, "%s", others[i]);
    }
    ck_assert_int_eq(tm_filename_parse("CURRENT", &number), TM_FILE_CURRENT);
    ck_assert_int_eq(tm_filename_parse("LOCK", &number), TM_FILE_LOCK);
    ck_assert_int_eq(tm_filename_parse("LOG", &number), TM_FILE_NOTES);
    ck_assert_int_eq(tm_filename_parse("LOG.old", &number), TM_FILE_NOTES);
    ck_assert_int_eq(tm_filename_parse("CURRENT.tmp", &number), TM_FILE_TEMP);
    ck_assert_int_eq(tm_filename_parse("lost", &number), TM_FILE_LOST);
}
END_TEST

// ---- The folder --------------------------------------------------------------------------------

static void touch(tamis_vfs *vfs, tamis_dir *dir, const char *name)
{
    tamis_file *f = NULL;
    ck_assert_int_eq(vfs->file_open(dir, name, TAMIS_FILE_CREATE, &f), 0);
    (void)vfs->file_close(f);
}

START_TEST(what_stands_in_a_folder)
{
    tamis_vfs *vfs;
    tamis_dir *dir;
    tm_folder f;
    tamis_error err;
    ck_assert_int_eq(tamis_vfs_memory(&vfs, NULL), TAMIS_OK);
    ck_assert_int_eq(vfs->dir_open(vfs, "d", TAMIS_DIR_CREATE, &dir, NULL), 0);
    ck_assert_int_eq(tm_folder_list(dir, &f, &err), TAMIS_OK);
    ck_assert(!f.has_current && !f.has_other && f.highest == 0);
    tm_folder_deinit(&f);
    static const char *const names[] = {"000030.sst",      "000002.sst", "000011.sst", "000040.log",
                                        "MANIFEST-000041", "CURRENT",    "LOCK",       "LOG"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) touch(vfs, dir, names[i]);
    ck_assert_int_eq(tm_folder_list(dir, &f, &err), TAMIS_OK);
    ck_assert(f.has_current && f.has_lock && f.has_notes && !f.has_temp && !f.has_other);
    ck_assert_uint_eq(tm_folder_count(&f.tables), 3);
    ck_assert_uint_eq(tm_folder_at(&f.tables, 0), 2);
    ck_assert_uint_eq(tm_folder_at(&f.tables, 2), 30);
    ck_assert(tm_folder_has(&f.tables, 11) && !tm_folder_has(&f.tables, 12));
    ck_assert(tm_folder_has(&f.logs, 40) && tm_folder_has(&f.manifests, 41));
    ck_assert_uint_eq(f.highest, 41);
    tm_folder_deinit(&f);
    touch(vfs, dir,
          "notes of somebody, with a name that is longer than the room for it in the list");
    ck_assert_int_eq(tm_folder_list(dir, &f, &err), TAMIS_OK);
    ck_assert(f.has_other);
    ck_assert_uint_lt(strlen(f.other), sizeof f.other);
    tm_folder_deinit(&f);
    vfs->dir_close(dir);
    tamis_vfs_free(vfs);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("folder");
    TCase *t = tcase_create("names");
    tcase_add_test(t, names_go_both_ways);
    tcase_add_test(t, only_the_exact_spelling_is_ours);
    tcase_add_test(t, what_stands_in_a_folder);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
