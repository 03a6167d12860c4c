// SPDX-License-Identifier: BSD-2-Clause
//
// The public calls, one by one: what they do, and what they say to arguments and states that cannot
// be. test_family.c and test_data_model.c have the calls of the data model.
#include "tests/unit/store_kit.h"

#include <sys/stat.h>
#include <unistd.h>

// ---- Opening and closing -----------------------------------------------------------------------

static void refused(const tamis_options *o, const char *path, int status, const char *word)
{
    tamis_db *db = (tamis_db *)(uintptr_t)1;
    kit_fails(tamis_open(path, o, &db, &kit_error), status, word);
    ck_assert_ptr_null(db);
}

START_TEST(what_open_refuses_leaves_nothing_behind)
{
    tamis_options o = kit_options();
    tamis_dir *dir = NULL;
    refused(&o, NULL, TAMIS_INVALID, "path");
    refused(&o, "", TAMIS_INVALID, "path");
    refused(&o, "no/parent/store", TAMIS_NOTFOUND, "parent");
    o.flags |= TAMIS_OPEN_EXISTING;
    refused(&o, "store", TAMIS_NOTFOUND, "store");
    o = kit_options();
    o.extra = "filter=cuckoo";
    refused(&o, "store", TAMIS_INVALID, "filter");
    o = kit_options();
    o.memory_budget = 1;
    refused(&o, "store", TAMIS_INVALID, "memory_budget");
    tamis_comparator c = {.size = sizeof c};
    o = kit_options();
    o.comparator = &c;
    refused(&o, "store", TAMIS_INVALID, "comparator");
    ck_assert_int_ne(kit_vfs->dir_open(kit_vfs, "store", TAMIS_DIR_EXISTING, &dir, NULL), 0);
    o = kit_options();
    kit_fails(tamis_open("store", &o, NULL, &kit_error), TAMIS_INVALID, "out");
    // A folder of somebody else's.
    tamis_file *f = NULL;
    ck_assert_int_eq(kit_vfs->dir_open(kit_vfs, "store", TAMIS_DIR_CREATE, &dir, NULL), 0);
    ck_assert_int_eq(kit_vfs->file_open(dir, "letter.txt", TAMIS_FILE_CREATE, &f), 0);
    (void)kit_vfs->file_close(f);
    refused(&o, "store", TAMIS_INVALID, "letter.txt");
    ck_assert_int_eq(kit_files(""), 1);
    kit_fails(tamis_destroy("store", &o, &kit_error), TAMIS_NOTFOUND, "no store");
    ck_assert_int_eq(kit_files(""), 1);
    kit_vfs->dir_close(dir);
}
END_TEST

START_TEST(flags_of_open)
{
    tamis_options o = kit_options();
    kit_close(kit_open(NULL));
    o.flags |= TAMIS_OPEN_NEW;
    refused(&o, "store", TAMIS_EXISTS, "already");
    o = kit_options();
    tamis_db *db = kit_open(&o);
    refused(&o, "store", TAMIS_LOCKED, "open already");
    tamis_options ro = o;
    ro.flags = TAMIS_OPEN_READONLY;
    refused(&ro, "store", TAMIS_LOCKED, "open already");
    kit_fails(tamis_destroy("store", &o, &kit_error), TAMIS_LOCKED, "open");
    tamis_report report = {.size = sizeof report};
    kit_fails(tamis_verify_path("store", &o, NULL, NULL, NULL, &report, &kit_error), TAMIS_LOCKED,
              "open");
    kit_put(db, NULL, "k", "v");
    kit_close(db);
    db = kit_open(&ro);
    tamis_db *second = kit_open(&ro); // readers beside each other
    ck_assert_str_eq(kit_get(second, NULL, NULL, "k"), "v");
    kit_close(second);
    uint32_t did;
    kit_fails(tamis_put(db, NULL, NULL, "k", 1, "v", 1, &kit_error), TAMIS_READONLY, "READONLY");
    kit_fails(tamis_delete(db, NULL, NULL, "k", 1, &kit_error), TAMIS_READONLY, "READONLY");
    kit_fails(tamis_flush(db, NULL, &kit_error), TAMIS_READONLY, "READONLY");
    kit_fails(tamis_compact(db, NULL, NULL, &kit_error), TAMIS_READONLY, "READONLY");
    kit_fails(tamis_sync_wal(db, &kit_error), TAMIS_READONLY, "READONLY");
    kit_fails(tamis_step(db, &did, &kit_error), TAMIS_READONLY, "READONLY");
    kit_ok(tamis_wait_idle(db, 0, &kit_error));
    kit_close(db);
    kit_ok(tamis_destroy("store", &o, &kit_error));
    kit_fails(tamis_destroy("store", &o, &kit_error), TAMIS_NOTFOUND, "folder");
    kit_fails(tamis_destroy(NULL, &o, &kit_error), TAMIS_INVALID, "path");
}
END_TEST

START_TEST(close_counts_its_children)
{
    tamis_db *db = kit_open(NULL);
    kit_put(db, NULL, "k", "a value");
    tamis_iter *it = NULL;
    tamis_snapshot *s = NULL;
    tamis_value v = {0};
    kit_ok(tamis_iter_create(db, NULL, NULL, &it, &kit_error));
    kit_ok(tamis_snapshot_create(db, &s, &kit_error));
    kit_ok(tamis_get(db, NULL, NULL, "k", 1, &v, &kit_error));
    kit_fails(tamis_close(db, 0, &kit_error), TAMIS_BUSY, "1 iterators, 1 snapshots and 1 values");
    kit_fails(tamis_close(db, 64, &kit_error), TAMIS_INVALID, "flags");
    ck_assert_str_eq(kit_get(db, NULL, NULL, "k"), "a value"); // nothing was done
    tamis_iter_first(it);
    ck_assert(tamis_iter_valid(it));
    kit_ok(tamis_close(db, TAMIS_CLOSE_DETACH, &kit_error));
    tamis_iter_next(it);
    ck_assert(!tamis_iter_valid(it));
    kit_fails(tamis_iter_status(it, &kit_error), TAMIS_CLOSED, "closed");
    ck_assert_int_eq(memcmp(v.data, "a value", v.len), 0); // values keep their bytes
    tamis_value_release(&v);
    tamis_value_release(&v); // an empty one is fine
    tamis_iter_free(it);
    tamis_snapshot_release(s);
    tamis_iter_free(NULL);
    tamis_snapshot_release(NULL);
    ck_assert_int_eq(tamis_close(NULL, 0, NULL), TAMIS_OK);
}
END_TEST

// Every call on a store that was closed under it.
START_TEST(after_close_every_call_says_so)
{
    tamis_db *db = kit_open(NULL);
    tamis_snapshot *s = NULL; // keeps the handle's memory
    kit_ok(tamis_snapshot_create(db, &s, &kit_error));
    kit_ok(tamis_close(db, TAMIS_CLOSE_DETACH, &kit_error));
    tamis_value v;
    tamis_iter *it = NULL;
    tamis_snapshot *s2 = NULL;
    tamis_memory m = {.size = sizeof m};
    size_t len;
    uint64_t n;
    uint32_t did;
    char buf[8];
    tamis_slice key = {"k", 1};
    int status;
    kit_fails(tamis_put(db, NULL, NULL, "k", 1, "v", 1, &kit_error), TAMIS_CLOSED, "closed");
    kit_fails(tamis_get(db, NULL, NULL, "k", 1, &v, &kit_error), TAMIS_CLOSED, "closed");
    kit_fails(tamis_get_into(db, NULL, NULL, "k", 1, buf, 8, &len, &kit_error), TAMIS_CLOSED, "");
    kit_fails(tamis_multi_get(db, NULL, NULL, 1, &key, &v, &status, &kit_error), TAMIS_CLOSED, "");
    kit_fails(tamis_iter_create(db, NULL, NULL, &it, &kit_error), TAMIS_CLOSED, "closed");
    kit_fails(tamis_snapshot_create(db, &s2, &kit_error), TAMIS_CLOSED, "closed");
    kit_fails(tamis_flush(db, NULL, &kit_error), TAMIS_CLOSED, "closed");
    kit_fails(tamis_wait_idle(db, 0, &kit_error), TAMIS_CLOSED, "closed");
    kit_fails(tamis_step(db, &did, &kit_error), TAMIS_CLOSED, "closed");
    kit_fails(tamis_memory_usage(db, &m, &kit_error), TAMIS_CLOSED, "closed");
    kit_fails(tamis_counter(db, "gets", &n, &kit_error), TAMIS_CLOSED, "closed");
    kit_fails(tamis_property(db, NULL, "stats", buf, 8, &len, &kit_error), TAMIS_CLOSED, "closed");
    kit_fails(tamis_close(db, 0, &kit_error), TAMIS_CLOSED, "closed");
    tamis_snapshot_release(s);
}
END_TEST

// ---- Keys and values ---------------------------------------------------------------------------

START_TEST(keys_and_values_of_every_length)
{
    tamis_db *db = kit_open(NULL);
    uint8_t *big = malloc(TAMIS_MAX_KEY + 1);
    char buf[16];
    size_t len;
    memset(big, 'k', TAMIS_MAX_KEY + 1);
    kit_ok(tamis_put(db, NULL, NULL, big, TAMIS_MAX_KEY, big, TAMIS_MAX_KEY, &kit_error));
    kit_ok(tamis_put(db, NULL, NULL, NULL, 0, NULL, 0, &kit_error)); // the empty key
    kit_fails(tamis_put(db, NULL, NULL, big, TAMIS_MAX_KEY + 1, "", 0, &kit_error), TAMIS_TOOLARGE,
              "65536");
    kit_fails(tamis_put(db, NULL, NULL, NULL, 3, "", 0, &kit_error), TAMIS_INVALID, "key");
    kit_fails(tamis_put(db, NULL, NULL, "k", 1, NULL, 3, &kit_error), TAMIS_INVALID, "val");
    kit_fails(tamis_put(db, NULL, NULL, "k", 1, big, TAMIS_MAX_VALUE + 1, &kit_error),
              TAMIS_TOOLARGE, "1073741824"); // refused by its length alone
    for (int i = 0; i < 2; i++) {
        kit_ok(tamis_get_into(db, NULL, NULL, "", 0, buf, 0, &len, &kit_error));
        ck_assert_uint_eq(len, 0);
        tamis_value v;
        kit_ok(tamis_get(db, NULL, NULL, big, TAMIS_MAX_KEY, &v, &kit_error));
        ck_assert_uint_eq(v.len, TAMIS_MAX_KEY);
        ck_assert_int_eq(memcmp(v.data, big, v.len), 0);
        tamis_value_release(&v);
        kit_fails(
            tamis_get_into(db, NULL, NULL, big, TAMIS_MAX_KEY, buf, sizeof buf, &len, &kit_error),
            TAMIS_TOOLARGE, "65535");
        ck_assert_uint_eq(len, TAMIS_MAX_KEY); // how much it needs
        kit_fails(tamis_get_into(db, NULL, NULL, big, TAMIS_MAX_KEY + 1, buf, 1, &len, &kit_error),
                  TAMIS_TOOLARGE, "key");
        ck_assert_int_eq(kit_count(db, NULL, NULL), 2);
        kit_ok(tamis_compact(db, NULL, NULL, &kit_error));
    }
    kit_fails(tamis_get_into(db, NULL, NULL, "k", 1, NULL, 5, &len, &kit_error), TAMIS_INVALID,
              "buf");
    kit_fails(tamis_get_into(db, NULL, NULL, "k", 1, buf, 5, NULL, &kit_error), TAMIS_INVALID,
              "len");
    kit_fails(tamis_get(db, NULL, NULL, "k", 1, NULL, &kit_error), TAMIS_INVALID, "out");
    kit_fails(tamis_get(NULL, NULL, NULL, "k", 1, NULL, &kit_error), TAMIS_INVALID, "NULL");
    kit_close(db);
    free(big);
}
END_TEST

START_TEST(option_structs_are_checked)
{
    tamis_db *db = kit_open(NULL), *other = NULL;
    tamis_options o = kit_options();
    tamis_write_options wo = {.size = 1};
    tamis_read_options ro = {.size = 5000};
    tamis_snapshot *s = NULL;
    tamis_iter *it = NULL;
    kit_fails(tamis_put(db, NULL, &wo, "k", 1, "v", 1, &kit_error), TAMIS_INVALID, "size");
    wo = (tamis_write_options){.size = sizeof wo, .sync = 7};
    kit_fails(tamis_put(db, NULL, &wo, "k", 1, "v", 1, &kit_error), TAMIS_INVALID, "sync");
    kit_fails(tamis_has(db, NULL, &ro, "k", 1, &kit_error), TAMIS_INVALID, "size");
    kit_ok(tamis_open("other", &o, &other, &kit_error));
    kit_ok(tamis_snapshot_create(other, &s, &kit_error));
    ro = (tamis_read_options){.size = sizeof ro, .snapshot = s};
    kit_fails(tamis_has(db, NULL, &ro, "k", 1, &kit_error), TAMIS_INVALID, "another store");
    kit_fails(tamis_iter_create(db, NULL, &ro, &it, &kit_error), TAMIS_INVALID, "another store");
    ck_assert_ptr_null(it);
    tamis_snapshot_release(s);
    kit_close(other);
    kit_close(db);
}
END_TEST

START_TEST(many_keys_in_one_call)
{
    tamis_db *db = kit_open(NULL);
    kit_fill(db, NULL, "key", 100, 10);
    tamis_slice keys[4] = {{"key00007", 8}, {"none", 4}, {"key00007", 8}, {"key00099", 8}};
    tamis_value values[4];
    int statuses[4];
    kit_ok(tamis_multi_get(db, NULL, NULL, 4, keys, values, statuses, &kit_error));
    ck_assert(statuses[0] == TAMIS_OK && statuses[1] == TAMIS_NOTFOUND);
    ck_assert(statuses[2] == TAMIS_OK && statuses[3] == TAMIS_OK);
    ck_assert_uint_eq(values[2].len, 10);
    for (int i = 0; i < 4; i++) tamis_value_release(&values[i]);
    kit_ok(tamis_multi_get(db, NULL, NULL, 0, NULL, NULL, NULL, &kit_error));
    kit_fails(tamis_multi_get(db, NULL, NULL, 1, NULL, values, statuses, &kit_error), TAMIS_INVALID,
              "keys");
    kit_close(db);
}
END_TEST

// ---- Iterators ---------------------------------------------------------------------------------

static void at(tamis_iter *it, const char *key)
{
    size_t len = 0;
    const void *k = tamis_iter_key(it, &len);
    if (key == NULL) {
        ck_assert(!tamis_iter_valid(it) && k == NULL && len == 0);
        ck_assert_int_eq(tamis_iter_status(it, NULL), TAMIS_OK);
        return;
    }
    ck_assert(tamis_iter_valid(it));
    ck_assert_uint_eq(len, strlen(key));
    ck_assert_int_eq(memcmp(k, key, len), 0);
}

START_TEST(an_iterator_at_all_its_edges)
{
    tamis_db *db = kit_open(NULL);
    tamis_iter *it = NULL;
    kit_ok(tamis_iter_create(db, NULL, NULL, &it, &kit_error)); // an empty store
    at(it, NULL);
    tamis_iter_first(it);
    at(it, NULL);
    tamis_iter_last(it);
    at(it, NULL);
    tamis_iter_next(it);
    tamis_iter_prev(it);
    at(it, NULL);
    for (char c = 'b'; c <= 'f'; c += 2) {
        char k[2] = {c, 0};
        kit_put(db, NULL, k, "v");
    }
    tamis_iter_first(it);
    at(it, NULL); // its view is older
    kit_ok(tamis_iter_refresh(it, NULL, &kit_error));
    at(it, NULL);
    tamis_iter_first(it);
    at(it, "b");
    tamis_iter_prev(it);
    at(it, NULL);
    tamis_iter_next(it); // not valid before: stays so
    at(it, NULL);
    tamis_iter_seek(it, "c", 1);
    at(it, "d");
    tamis_iter_prev(it);
    at(it, "b");
    tamis_iter_next(it);
    at(it, "d");
    tamis_iter_seek_for_prev(it, "e", 1);
    at(it, "d");
    tamis_iter_seek_for_prev(it, "a", 1);
    at(it, NULL);
    tamis_iter_seek(it, "g", 1);
    at(it, NULL);
    tamis_iter_seek(it, NULL, 5);
    kit_fails(tamis_iter_status(it, &kit_error), TAMIS_INVALID, "NULL");
    tamis_read_options ro = {.size = sizeof ro, .lower = {"c", 1}, .upper = {"f", 1}};
    kit_ok(tamis_iter_refresh(it, &ro, &kit_error));
    tamis_iter_first(it);
    at(it, "d");
    tamis_iter_next(it);
    at(it, NULL); // f is not in [c, f)
    tamis_iter_last(it);
    at(it, "d");
    tamis_iter_seek(it, "a", 1);
    at(it, "d");
    tamis_iter_seek_for_prev(it, "z", 1);
    at(it, "d");
    ro.size = 9999; // a refresh that fails leaves it as it was
    kit_fails(tamis_iter_refresh(it, &ro, &kit_error), TAMIS_INVALID, "size");
    at(it, "d");
    tamis_iter_free(it);
    tamis_slice k[2], v[2];
    ck_assert_uint_eq(tamis_iter_next_many(NULL, 2, 0, k, v), 0);
    kit_close(db);
}
END_TEST

// An iterator that was freed and is used again sees what has come since.
START_TEST(an_iterator_used_again_is_a_new_one)
{
    tamis_db *db = kit_open(NULL);
    tamis_iter *it = NULL;
    tamis_read_options ro = {.size = sizeof ro, .upper = {"b", 1}};
    for (int i = 0; i < 10; i++) {
        char key[16];
        snprintf(key, sizeof key, "a%d", i);
        kit_put(db, NULL, key, "v");
        if (i == 5) {
            kit_ok(tamis_delete_range(db, NULL, NULL, "a0", 2, "a2", 2, &kit_error));
        }
        if (i == 7) kit_ok(tamis_flush(db, NULL, &kit_error));
        kit_ok(tamis_iter_create(db, NULL, i % 2 ? &ro : NULL, &it, &kit_error));
        at(it, NULL);
        int n = 0;
        for (tamis_iter_first(it); tamis_iter_valid(it); tamis_iter_next(it)) n++;
        ck_assert_int_eq(n, i < 5 ? i + 1 : i - 1);
        tamis_iter_free(it);
    }
    kit_close(db);
}
END_TEST

// ---- Insight -----------------------------------------------------------------------------------

START_TEST(lists_of_what_can_be_asked)
{
    tamis_db *db = kit_open(NULL);
    const char *name, *doc;
    char *text = malloc(100000);
    size_t len, i;
    uint64_t v;
    kit_fill(db, NULL, "key", 500, 100);
    kit_ok(tamis_compact(db, NULL, NULL, &kit_error));
    for (i = 0; tamis_property_at(i, &name, &doc) == TAMIS_OK; i++) {
        size_t need = 0;
        ck_assert_int_eq(tamis_property(db, NULL, name, NULL, 0, &need, NULL), TAMIS_TOOLARGE);
        kit_ok(tamis_property(db, NULL, name, text, 100000, &len, &kit_error));
        ck_assert(text[0] == '{' && text[len - 1] == '}' && text[len] == '\0' && doc[0]);
    }
    ck_assert_uint_ge(i, 6);
    for (i = 0; tamis_counter_at(i, &name, &doc) == TAMIS_OK; i++) {
        kit_ok(tamis_counter(db, name, &v, &kit_error));
    }
    ck_assert_uint_ge(i, 40);
    kit_fails(tamis_property(db, NULL, "nonsense", text, 100, &len, &kit_error), TAMIS_NOTFOUND,
              "nonsense");
    kit_fails(tamis_counter(db, "nonsense", &v, &kit_error), TAMIS_NOTFOUND, "nonsense");
    kit_fails(tamis_get_option(db, NULL, "blok_size", text, 100, &len, &kit_error), TAMIS_NOTFOUND,
              "block_size");
    kit_fails(tamis_filter_stats(db, NULL, 7, NULL, &kit_error), TAMIS_INVALID, "out");
    tamis_filter_report f = {.size = sizeof f};
    kit_fails(tamis_filter_stats(db, NULL, 7, &f, &kit_error), TAMIS_INVALID, "level");
    kit_ok(tamis_filter_stats(db, NULL, -1, &f, &kit_error));
    ck_assert_uint_eq(f.keys, 500);
    tamis_range r[2] = {{{"key00000", 8}, {"key00250", 8}}, {{"", 0}, {NULL, 0}}};
    uint64_t bytes[2], entries[2];
    kit_ok(tamis_approximate_size(db, NULL, r, 2, bytes, entries, &kit_error));
    ck_assert_uint_eq(entries[1], 500);
    ck_assert(entries[0] <= 500 && bytes[0] < bytes[1]); // entries: to a partition
    kit_ok(tamis_approximate_size(db, NULL, r, 2, NULL, NULL, &kit_error));
    tamis_report report = {.size = sizeof report};
    kit_ok(tamis_verify(db, NULL, NULL, NULL, &report, &kit_error));
    ck_assert(report.damaged == 0 && report.entries == 500);
    free(text);
    kit_close(db);
}
END_TEST

static void count_step(void *ctx, const tamis_step_info *s)
{
    int *n = ctx;
    ck_assert(s->what != NULL && s->outcome != NULL);
    ++*n;
}

START_TEST(explain_tells_as_get_answers)
{
    tamis_db *db = kit_open(NULL);
    int n = 0;
    kit_fill(db, NULL, "key", 500, 100);
    kit_ok(tamis_compact(db, NULL, NULL, &kit_error));
    kit_put(db, NULL, "new", "v");
    kit_ok(tamis_explain(db, NULL, NULL, "key00001", 8, count_step, &n, &kit_error));
    ck_assert_int_ge(n, 4);
    ck_assert_int_eq(tamis_explain(db, NULL, NULL, "key00001x", 9, count_step, &n, &kit_error),
                     TAMIS_NOTFOUND);
    n = 0;
    kit_ok(tamis_explain(db, NULL, NULL, "new", 3, count_step, &n, &kit_error));
    ck_assert_int_eq(n, 1); // the memtable is enough
    kit_fails(tamis_explain(db, NULL, NULL, "k", 1, NULL, NULL, &kit_error), TAMIS_INVALID, "step");
    kit_close(db);
}
END_TEST

START_TEST(sequence_numbers_ascend)
{
    tamis_db *db = kit_open(NULL);
    tamis_batch *b = tamis_batch_create(db, 0);
    uint64_t before = 0, seq = 0;
    tamis_snapshot *s = NULL;
    kit_ok(tamis_commit(db, NULL, b, &before, &kit_error)); // nothing: the number at hand
    for (int i = 0; i < 3; i++) (void)tamis_batch_put(b, NULL, "k", 1, "v", 1);
    kit_ok(tamis_commit(db, NULL, b, &seq, &kit_error));
    ck_assert_uint_eq(seq, before + 3);
    kit_ok(tamis_commit(db, NULL, b, &seq, &kit_error)); // again
    ck_assert_uint_eq(seq, before + 6);
    kit_ok(tamis_snapshot_create(db, &s, &kit_error));
    ck_assert_uint_eq(tamis_snapshot_seq(s), seq);
    ck_assert_uint_eq(tamis_snapshot_seq(NULL), 0);
    tamis_snapshot_release(s);
    kit_fails(tamis_commit(db, NULL, NULL, &seq, &kit_error), TAMIS_INVALID, "batch");
    tamis_batch_free(b);
    kit_close(db);
    db = kit_open(NULL);
    b = tamis_batch_create(db, 0);
    (void)tamis_batch_put(b, NULL, "k", 1, "v", 1);
    uint64_t later = 0;
    kit_ok(tamis_commit(db, NULL, b, &later, &kit_error));
    ck_assert_uint_gt(later, seq); // over a reopen, too
    tamis_batch_free(b);
    kit_close(db);
}
END_TEST

START_TEST(a_store_on_a_real_disk)
{
    char path[] = "/tmp/tamis-test-XXXXXX", store[64];
    tamis_options o = tamis_options_init();
    tamis_db *db = NULL;
    struct stat st;
    ck_assert_ptr_nonnull(mkdtemp(path));
    snprintf(store, sizeof store, "%s/store", path);
    kit_ok(tamis_open(store, &o, &db, &kit_error));
    kit_put(db, NULL, "k", "v");
    kit_ok(tamis_flush(db, NULL, &kit_error));
    ck_assert_int_eq(stat(store, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0077, 0); // nobody else's business
    kit_close(db);
    kit_ok(tamis_open(store, NULL, &db, &kit_error));
    ck_assert_str_eq(kit_get(db, NULL, NULL, "k"), "v");
    uint32_t did;
    kit_fails(tamis_step(db, &did, &kit_error), TAMIS_MISUSE, "threads");
    kit_close(db);
    kit_ok(tamis_destroy(store, NULL, &kit_error));
    ck_assert_int_ne(stat(store, &st), 0);
    ck_assert_int_eq(rmdir(path), 0);
}
END_TEST

START_TEST(versions_and_features)
{
    ck_assert_uint_eq(tamis_version(), TAMIS_VERSION_MAJOR * 1000000 + TAMIS_VERSION_MINOR * 1000 +
                                           TAMIS_VERSION_PATCH);
    ck_assert_int_eq(strncmp(tamis_version_string(), "0.", 2), 0);
    ck_assert_int_eq(tamis_has_feature("lz4"), 1);
    ck_assert_int_eq(tamis_has_feature("time travel"), 0);
    ck_assert_int_eq(tamis_has_feature(NULL), 0);
    for (int i = 3; i > -30; i--) ck_assert_ptr_nonnull(tamis_status_name(i));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("store");
    TCase *t = tcase_create("store");
    tcase_add_checked_fixture(t, kit_setup, kit_teardown);
    tcase_add_test(t, what_open_refuses_leaves_nothing_behind);
    tcase_add_test(t, flags_of_open);
    tcase_add_test(t, close_counts_its_children);
    tcase_add_test(t, after_close_every_call_says_so);
    tcase_add_test(t, keys_and_values_of_every_length);
    tcase_add_test(t, option_structs_are_checked);
    tcase_add_test(t, many_keys_in_one_call);
    tcase_add_test(t, an_iterator_at_all_its_edges);
    tcase_add_test(t, an_iterator_used_again_is_a_new_one);
    tcase_add_test(t, lists_of_what_can_be_asked);
    tcase_add_test(t, explain_tells_as_get_answers);
    tcase_add_test(t, sequence_numbers_ascend);
    tcase_add_test(t, a_store_on_a_real_disk);
    tcase_add_test(t, versions_and_features);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
