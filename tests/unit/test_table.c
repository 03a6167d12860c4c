// SPDX-License-Identifier: BSD-2-Clause
//
// Lookups in tables, and insight. See also test_table_iter.c, test_table_damage.c.
#include "base/sync.h"
#include "sstable/compress.h"
#include "tests/unit/table_kit.h"

#define LARGE ((size_t)64 * 1024 * 1024)

static const kit_shape shapes[] = {
    {"numbers", 3000, 1, 0, 40, 1024, 512, 4096, TM_COMPRESSION_LZ4, TM_FILTER_BLOCKED, 10000,
     false, false, 1},
    {"one partition", 300, 1, 0, 40, 1024, 65536, 65536, TM_COMPRESSION_NONE, TM_FILTER_BLOCKED,
     10000, false, false, 2},
    {"random bytes", 800, 3, 1, 20, 256, 256, 300, TM_COMPRESSION_NONE, TM_FILTER_BLOOM, 8000,
     false, false, 3},
    {"long starts", 1500, 2, 2, 10, 512, 256, 512, TM_COMPRESSION_LZ4, TM_FILTER_BLOCKED, 12000,
     false, false, 4},
    {"equal heads", 1000, 2, 3, 30, 512, 256, 512, TM_COMPRESSION_NONE, TM_FILTER_BLOCKED, 10000,
     false, false, 5},
    {"many versions", 20, 400, 0, 30, 512, 256, 512, TM_COMPRESSION_LZ4, TM_FILTER_BLOCKED, 10000,
     false, false, 6},
    {"no filter", 1000, 2, 0, 30, 512, 256, 512, TM_COMPRESSION_NONE, TM_FILTER_NONE, 0, false,
     false, 7},
    {"reverse", 1000, 2, 0, 30, 512, 256, 512, TM_COMPRESSION_LZ4, TM_FILTER_BLOCKED, 10000, true,
     false, 8},
    {"large values", 60, 2, 0, 20000, 4096, 4096, 4096, TM_COMPRESSION_LZ4, TM_FILTER_BLOCKED,
     10000, false, false, 9},
    {"ranges", 200, 2, 0, 20, 512, 256, 512, TM_COMPRESSION_LZ4, TM_FILTER_BLOCKED, 10000, false,
     true, 10},
    {"one entry", 1, 1, 0, 20, 4096, 4096, 4096, TM_COMPRESSION_NONE, TM_FILTER_BLOCKED, 10000,
     false, false, 11},
};
enum { SHAPES = TM_COUNT(shapes), NUMBERS = 0, ONE_PARTITION = 1, VERSIONS = 5, RANGES = 9 };

// ---- Right answers -----------------------------------------------------------------------------

// Keys at, just below, just above each key there is: so at every bound of blocks and partitions.
static void get_around(kit *k, const kit_entry *e, tm_random *r, tm_read_counts *counts)
{
    tm_read_mode mode;
    uint8_t near[200];
    size_t n = e->key.len;
    memcpy(near, e->key.data, n);
    kit_get(k, e->key, TM_MAX_SEQ << 8 | 0xff, counts, &mode);
    kit_get(k, e->key, e->trailer, counts, &mode);
    kit_get(k, e->key, e->trailer - 1, counts, &mode);
    kit_get(k, e->key, e->trailer + 1, counts, &mode);
    kit_get(k, e->key, tm_random_below(r, 1000) << 8, counts, &mode);
    kit_get(k, e->key, 0, counts, &mode);
    near[n] = 0;
    kit_get(k, tm_slice_of(near, n + 1), UINT64_MAX, counts, &mode);
    if (n == 0) return;
    kit_get(k, tm_slice_of(near, n - 1), UINT64_MAX, counts, &mode);
    near[n - 1]--;
    memset(near + n, 0xff, 8);
    kit_get(k, tm_slice_of(near, n + 8), UINT64_MAX, counts, &mode);
}

static void get_all(kit *k, uint32_t step, tm_read_counts *counts)
{
    tm_random r = tm_random_seed(99);
    tm_read_mode mode;
    for (uint32_t i = 0; i < k->n; i += step) get_around(k, &k->entries[i], &r, counts);
    kit_get(k, tm_slice_of(NULL, 0), UINT64_MAX, counts, &mode);
    kit_get(k, tm_slice_str("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), 0, counts, &mode);
    for (uint32_t i = 0; i < k->n; i += step) {
        const kit_entry *e = &k->entries[tm_random_below(&r, k->n)];
        get_around(k, e, &r, counts);
    }
}

START_TEST(lookups_with_all_in_memory)
{
    kit k;
    kit_begin(&k, &shapes[_i]);
    kit_open(&k, LARGE);
    tm_read_counts counts = {0};
    get_all(&k, 1, &counts);
    for (int kind = 0; kind <= TM_CACHED_TOP; kind++) {
        if (counts.read_blocks[kind] != 0) ck_assert_uint_gt(counts.cached_blocks[kind], 0);
    }
    ck_assert_uint_eq(counts.read_blocks[TM_CACHED_TOP], 1);
    ck_assert_uint_eq(counts.filter_unavailable, 0);
    ck_assert_uint_eq(counts.filter_checks, counts.filter_negatives + counts.filter_true_positives +
                                                counts.filter_false_positives);
    if (shapes[_i].filter == TM_FILTER_NONE) {
        ck_assert_uint_eq(counts.filter_checks, 0);
    } else if (k.n > 10) {
        ck_assert_uint_gt(counts.filter_negatives, counts.filter_false_positives * 10);
    }
    // Everything is there now: nothing is read, nobody waits.
    uint64_t reads = kit_reads;
    counts = (tm_read_counts){0};
    get_all(&k, 7, &counts);
    ck_assert_uint_eq(kit_reads, reads);
    for (uint32_t i = 0; i < k.n; i += 13) {
        tm_read_mode mode;
        kit_get(&k, k.entries[i].key, UINT64_MAX, NULL, &mode);
        ck_assert_int_eq(mode, shapes[_i].reverse ? TM_READ_PINNED : TM_READ_EPOCH);
    }
    kit_close(&k);
    kit_end(&k);
}
END_TEST

START_TEST(lookups_with_little_memory)
{
    static const size_t budgets[] = {0, 300, 3000, 10000, 60000};
    kit k;
    kit_begin(&k, &shapes[_i]);
    for (size_t i = 0; i < TM_COUNT(budgets); i++) {
        tm_cache_usage u;
        kit_open(&k, budgets[i]);
        get_all(&k, 5, NULL);
        tm_cache_usage_get(k.cache, &u);
        size_t sum = u.retired + u.charged - u.bytes[TM_CACHED_RANGE]; // ranges are kept anyhow
        for (int kind = 0; kind < TM_CACHED_KINDS; kind++) sum += u.bytes[kind];
        ck_assert_uint_le(sum, budgets[i]);
        kit_close(&k);
    }
    kit_end(&k);
}
END_TEST

START_TEST(each_mode_holds_as_it_says)
{
    kit k;
    kit_begin(&k, &shapes[NUMBERS]);
    kit_open(&k, LARGE);
    tm_read_counts counts = {0};
    tm_read_ctx rc = {.mode = TM_READ_CACHED, .counts = &counts};
    const kit_entry *e = &k.entries[500];
    tm_found found;
    uint64_t reads = kit_reads;
    ck_assert_int_eq(kit_lookup(&k, &rc, e->key, UINT64_MAX, &found), TAMIS_BUSY);
    rc.mode = TM_READ_EPOCH;
    tm_epoch_slot *s = tm_epoch_enter();
    ck_assert_int_eq(kit_lookup(&k, &rc, e->key, UINT64_MAX, &found), TAMIS_BUSY);
    tm_epoch_exit(s);
    ck_assert_uint_eq(kit_reads, reads);
    rc.mode = TM_READ_PINNED;
    ck_assert_int_eq(kit_lookup(&k, &rc, e->key, UINT64_MAX, &found), TAMIS_OK);
    ck_assert_uint_eq(kit_reads, reads + 4); // tail, filter, index, data
    ck_assert_uint_eq(rc.pin_count, 4);
    tm_cached *kept = found.block;
    tm_cached_ref(kept);
    tm_read_ctx_reset(&rc);
    // The value outlives the block's place in the cache.
    tm_cache_set_budget(k.cache, 0);
    ck_assert(tm_slice_equal(found.value, e->value));
    tm_cached_unref(kept);
    tm_cache_set_budget(k.cache, LARGE);
    ck_assert_int_eq(kit_lookup(&k, &rc, e->key, UINT64_MAX, &found), TAMIS_OK);
    tm_read_ctx_reset(&rc);
    rc.mode = TM_READ_CACHED;
    ck_assert_int_eq(kit_lookup(&k, &rc, e->key, UINT64_MAX, &found), TAMIS_OK);
    ck_assert_uint_eq(rc.pin_count, 4);
    tm_read_ctx_reset(&rc);
    // Absent keys cost no more than the filter.
    counts = (tm_read_counts){0};
    rc.mode = TM_READ_PINNED;
    for (uint32_t i = 0; i < 1000; i++) {
        char absent[32];
        int n = snprintf(absent, sizeof absent, "key%08uabsent", (unsigned)i * 9);
        ck_assert_int_eq(kit_lookup(&k, &rc, tm_slice_of(absent, (size_t)n), UINT64_MAX, &found),
                         TAMIS_NOTFOUND);
        tm_read_ctx_reset(&rc);
    }
    ck_assert_uint_ge(counts.filter_negatives, 970);
    ck_assert_uint_le(counts.read_blocks[TM_CACHED_DATA], counts.filter_false_positives);
    kit_close(&k);
    kit_end(&k);
}
END_TEST

START_TEST(all_versions_of_a_key_by_one_context)
{
    kit k;
    kit_begin(&k, &shapes[VERSIONS]);
    kit_open(&k, 4096); // the pins hold what has no room
    tm_read_counts counts = {0};
    tm_read_ctx rc = {.mode = TM_READ_PINNED, .counts = &counts};
    uint32_t i = 0;
    while (i < k.n) {
        tm_slice key = k.entries[i].key;
        tm_probe p;
        tm_found found = {.trailer = UINT64_MAX}, first = {0};
        uint32_t from = i;
        counts = (tm_read_counts){0};
        uint64_t hash = kit_hash(&k, key);
        ck_assert_int_eq(tm_table_route(k.table, &rc, key, UINT64_MAX, hash, &p), TAMIS_OK);
        ck_assert(tm_table_probe(&p, &rc));
        for (; i < k.n && tm_slice_equal(k.entries[i].key, key); i++) {
            ck_assert_int_eq(tm_table_find(&p, &rc, key, found.trailer - 1, &found), TAMIS_OK);
            ck_assert_uint_eq(found.trailer, k.entries[i].trailer);
            ck_assert(tm_slice_equal(found.value, k.entries[i].value));
            if (i == from) first = found;
        }
        ck_assert_int_eq(tm_table_find(&p, &rc, key, found.trailer - 1, &found), TAMIS_NOTFOUND);
        ck_assert_uint_eq(counts.filter_true_positives, 1);
        ck_assert_uint_eq(counts.filter_false_positives, 0);
        ck_assert(tm_slice_equal(first.value, k.entries[from].value)); // held until reset
        tm_read_ctx_reset(&rc);
    }
    kit_close(&k);
    kit_end(&k);
}
END_TEST

START_TEST(hidden_by_a_snapshot_is_no_false_positive)
{
    kit k;
    kit_begin(&k, &shapes[_i]);
    kit_open(&k, LARGE);
    tm_read_counts counts = {0};
    uint64_t asked = 0;
    tm_read_mode mode;
    for (uint32_t i = 0; i < k.n; i++) {
        bool oldest = i + 1 == k.n || !tm_slice_equal(k.entries[i].key, k.entries[i + 1].key);
        if (!oldest) continue;
        kit_get(&k, k.entries[i].key, k.entries[i].trailer - 1, &counts, &mode);
        asked++;
    }
    if (shapes[_i].filter != TM_FILTER_NONE) {
        ck_assert_uint_eq(counts.filter_true_positives, asked);
    }
    ck_assert_uint_eq(counts.filter_false_positives, 0);
    kit_close(&k);
    kit_end(&k);
}
END_TEST

typedef struct told {
    char text[400];
    size_t n;
} told;

static void tell(void *ctx, const tm_read_step *s)
{
    told *t = ctx;
    ck_assert_uint_eq(s->file_number, 7);
    ck_assert_uint_gt(s->bytes, 0);
    t->n += (size_t)snprintf(t->text + t->n, sizeof t->text - t->n, "%s %s%s; ", s->what,
                             s->outcome, s->cached ? " cached" : "");
}

START_TEST(explain_is_told_each_step)
{
    kit k;
    kit_begin(&k, &shapes[NUMBERS]);
    kit_open(&k, LARGE);
    told t = {0};
    tm_read_counts counts = {0};
    tm_found found;
    tm_read_ctx rc = {.mode = TM_READ_PINNED, .counts = &counts, .step = tell, .step_ctx = &t};
    uint32_t i = 600;
    while (tm_trailer_kind(k.entries[i].trailer) != TM_KIND_PUT) i++;
    ck_assert_int_eq(kit_lookup(&k, &rc, k.entries[i].key, UINT64_MAX, &found), TAMIS_OK);
    ck_assert_str_eq(t.text, "index read; filter maybe; index read; data found; ");
    t = (told){0};
    ck_assert_int_eq(kit_lookup(&k, &rc, k.entries[i].key, UINT64_MAX, &found), TAMIS_OK);
    ck_assert_str_eq(t.text, "filter maybe cached; index read cached; data found cached; ");
    t = (told){0};
    ck_assert_int_eq(kit_lookup(&k, &rc, k.entries[i].key, 0, &found), TAMIS_NOTFOUND);
    ck_assert_str_eq(t.text, "filter maybe cached; index read cached; data absent cached; ");
    bool no = false, wrong = false;
    for (uint32_t j = 0; j < 3000 && !(no && wrong); j++) {
        char absent[32];
        int n = snprintf(absent, sizeof absent, "key%08uabsent", (unsigned)j);
        t = (told){0};
        ck_assert_int_eq(kit_lookup(&k, &rc, tm_slice_of(absent, (size_t)n), UINT64_MAX, &found),
                         TAMIS_NOTFOUND);
        no |= strstr(t.text, "filter no") != NULL;
        wrong |= strstr(t.text, "data false-positive") != NULL;
    }
    ck_assert(no && wrong);
    tm_read_ctx_reset(&rc);
    kit_close(&k);
    kit_end(&k);
}
END_TEST

// ---- Range deletes -----------------------------------------------------------------------------

static uint64_t cover_of(kit *k, tm_read_mode mode, const char *key, uint64_t seq)
{
    uint64_t cover = 12345;
    tm_read_counts counts = {0};
    tm_read_ctx rc = {.mode = mode, .counts = &counts};
    ck_assert_int_eq(tm_table_range_cover(k->table, &rc, tm_slice_str(key), seq, &cover), TAMIS_OK);
    tm_read_ctx_reset(&rc);
    return cover;
}

START_TEST(range_deletes)
{
    kit k;
    kit_begin(&k, &shapes[RANGES]);
    ck_assert_uint_eq(k.meta.range_deletes, 3);
    kit_open(&k, LARGE);
    uint64_t cover;
    tm_read_counts counts = {0};
    tm_read_ctx rc = {.mode = TM_READ_EPOCH, .counts = &counts};
    tm_slice b = tm_slice_str("b");
    ck_assert_int_eq(tm_table_range_cover(k.table, &rc, b, 900, &cover), TAMIS_BUSY);
    ck_assert_uint_eq(cover_of(&k, TM_READ_PINNED, "b", 900), 500);
    ck_assert_uint_eq(cover_of(&k, TM_READ_EPOCH, "b", 499), 0);
    ck_assert_uint_eq(cover_of(&k, TM_READ_EPOCH, "bzz", 500), 500);
    ck_assert_uint_eq(cover_of(&k, TM_READ_EPOCH, "c", 900), 0);
    ck_assert_uint_eq(cover_of(&k, TM_READ_EPOCH, "key00000050", 900), 501);
    ck_assert_uint_eq(cover_of(&k, TM_READ_CACHED, "zzz", 900), 502);
    const tm_range_set *set = NULL;
    ck_assert_int_eq(tm_table_ranges(k.table, &set, NULL), TAMIS_OK);
    ck_assert_uint_eq(set->n, 3);
    tm_cache_usage u;
    tm_cache_usage_get(k.cache, &u);
    ck_assert_uint_gt(u.bytes[TM_CACHED_RANGE], 0);
    kit_close(&k);
    // The top level's read brings them along.
    kit_open(&k, LARGE);
    tm_read_mode mode;
    kit_get(&k, k.entries[0].key, UINT64_MAX, NULL, &mode);
    ck_assert_uint_eq(cover_of(&k, TM_READ_EPOCH, "b", 900), 500);
    kit_close(&k);
    kit_end(&k);

    kit_begin(&k, &shapes[ONE_PARTITION]);
    kit_open(&k, LARGE);
    ck_assert_uint_eq(cover_of(&k, TM_READ_EPOCH, "b", 900), 0);
    ck_assert_int_eq(tm_table_ranges(k.table, &set, NULL), TAMIS_OK);
    ck_assert_ptr_null(set);
    kit_close(&k);
    kit_end(&k);
}
END_TEST

// ---- Filters that cannot be used ---------------------------------------------------------------

// Calls change for each filter frame of the file, and writes it back.
static uint32_t each_filter(kit *k, void (*change)(kit *k, uint8_t *frame, uint64_t offset))
{
    uint32_t n = 0;
    size_t size = (size_t)k->meta.file_bytes;
    uint8_t *file = tm_alloc(size);
    ck_assert_ptr_nonnull(file);
    kit_bytes(k, 0, file, size, false);
    for (uint64_t at = TM_TABLE_HEADER_BYTES; at < k->meta.tail_offset;) {
        tm_frame f;
        ck_assert_int_eq(tm_frame_decode(&f, file + at, size - at, 7, at, NULL), TAMIS_OK);
        if (f.kind == TM_BLOCK_FILTER) {
            change(k, file + at, at);
            n++;
        }
        at += tm_frame_length(&f);
    }
    kit_bytes(k, 0, file, size, true);
    tm_free(file);
    return n;
}

static void encode_again(kit *k, uint8_t *frame, uint64_t offset)
{
    tm_frame f;
    ck_assert_int_eq(tm_frame_decode(&f, frame, UINT32_MAX, 7, offset, NULL), TAMIS_OK);
    tm_frame_encode(&f, frame, k->meta.id, offset);
}

static void rot(kit *k, uint8_t *frame, uint64_t offset)
{
    (void)k;
    frame[TM_FRAME_BYTES + 70 + offset % 32] ^= 4;
}

static void unknown_kind(kit *k, uint8_t *frame, uint64_t offset)
{
    frame[TM_FRAME_BYTES] = 77;
    encode_again(k, frame, offset);
}

static void other_seed(kit *k, uint8_t *frame, uint64_t offset)
{
    frame[TM_FRAME_BYTES + 8] ^= 1;
    encode_again(k, frame, offset);
}

static void empty_bits(kit *k, uint8_t *frame, uint64_t offset)
{
    memset(frame + TM_FRAME_BYTES + TM_FILTER_HEADER, 0, 64);
    encode_again(k, frame, offset);
}

START_TEST(unusable_filters_say_maybe)
{
    static void (*const changes[])(kit *, uint8_t *, uint64_t) = {rot, unknown_kind, other_seed};
    for (size_t c = 0; c < TM_COUNT(changes); c++) {
        kit k;
        kit_begin(&k, &shapes[NUMBERS]);
        uint32_t partitions = each_filter(&k, changes[c]);
        ck_assert_uint_gt(partitions, 1);
        kit_open(&k, LARGE);
        tm_read_counts counts = {0};
        get_all(&k, 3, &counts);
        ck_assert_uint_eq(counts.filter_checks, 0);
        ck_assert_uint_gt(counts.filter_unavailable, k.n);
        ck_assert_uint_eq(counts.filter_true_positives + counts.filter_false_positives, 0);
        ck_assert_uint_eq(counts.read_blocks[TM_CACHED_FILTER], partitions); // once each
        kit_close(&k);
        kit_end(&k);
    }
}
END_TEST

START_TEST(a_filter_that_hides_keys_is_found_out)
{
    kit k;
    kit_begin(&k, &shapes[ONE_PARTITION]);
    kit_open(&k, LARGE);
    k.env.verify_filters = true;
    tm_table_close(k.table);
    ck_assert_int_eq(tm_table_open(&k.env, &k.meta, &k.order, true, &k.table, NULL), TAMIS_OK);
    tm_read_counts counts = {0};
    get_all(&k, 1, &counts); // a good one does not
    ck_assert_uint_gt(counts.filter_negatives, 0);
    kit_close(&k);
    ck_assert_uint_eq(each_filter(&k, empty_bits), 1);
    kit_open(&k, LARGE);
    k.env.verify_filters = true;
    tm_table_close(k.table);
    ck_assert_int_eq(tm_table_open(&k.env, &k.meta, &k.order, true, &k.table, NULL), TAMIS_OK);
    uint32_t found_out = 0;
    for (uint32_t i = 0; i < k.n; i++) {
        tamis_error err = {0};
        tm_read_ctx rc = {.mode = TM_READ_PINNED, .counts = &counts, .err = &err};
        tm_found found;
        int st = kit_lookup(&k, &rc, k.entries[i].key, UINT64_MAX, &found);
        if (st == TAMIS_CORRUPT) {
            ck_assert_ptr_nonnull(strstr(err.message, "hides a key"));
            ck_assert_uint_eq(err.file_number, 7);
            found_out++;
        } else {
            ck_assert_int_eq(st, TAMIS_OK);
        }
        tm_read_ctx_reset(&rc);
    }
    ck_assert_uint_gt(found_out, 10);
    kit_close(&k);
    kit_end(&k);
}
END_TEST

// ---- Insight -----------------------------------------------------------------------------------

START_TEST(offsets_ascend_with_keys)
{
    kit k;
    kit_begin(&k, &shapes[_i]);
    kit_open(&k, 100000);
    uint64_t last = 0, last_entries = 0;
    for (uint32_t i = 0; i < k.n; i++) {
        uint64_t offset, entries;
        tm_slice key = k.entries[i].key;
        int st = tm_table_approximate_offset(k.table, key, &offset, &entries, NULL);
        ck_assert_int_eq(st, TAMIS_OK);
        ck_assert_uint_ge(offset, last);
        ck_assert_uint_ge(entries, last_entries);
        ck_assert_uint_le(entries, i);
        ck_assert_uint_lt(offset, k.meta.tail_offset);
        last = offset;
        last_entries = entries;
    }
    ck_assert_uint_gt(last * 3, k.n > 100 ? k.meta.tail_offset : 0);
    kit_close(&k);
    kit_end(&k);
}
END_TEST

static void note_property(void *ctx, const char *name, tm_slice value)
{
    uint32_t *seen = ctx;
    bool entries = strcmp(name, "entries") == 0 && tm_slice_equal(value, tm_slice_str("300"));
    bool family = strcmp(name, "family") == 0 && tm_slice_equal(value, tm_slice_str("default"));
    *seen += entries || family ? 1001 : 1;
}

static void count_finding(void *ctx, const tamis_error *e)
{
    ck_assert_int_ne(e->code, TAMIS_OK);
    ++*(uint32_t *)ctx;
}

START_TEST(properties_filter_and_verify)
{
    kit k;
    kit_begin(&k, &shapes[ONE_PARTITION]);
    ck_assert_uint_eq(k.n, 300);
    kit_open(&k, LARGE);
    uint32_t seen = 0;
    ck_assert_int_eq(tm_table_properties(k.table, note_property, &seen, NULL), TAMIS_OK);
    ck_assert_uint_ge(seen, 2015);
    for (int again = 0; again < 2; again++) {
        tm_table_filter_info info;
        ck_assert_int_eq(tm_table_filter(k.table, &info, NULL), TAMIS_OK);
        ck_assert_int_eq(info.kind, TM_FILTER_BLOCKED);
        ck_assert_uint_eq(info.millibits, 10000);
        ck_assert_uint_eq(info.keys, 300);
        ck_assert_uint_eq(info.bytes, k.meta.filter_bytes);
        ck_assert_double_gt(info.expected_rate, 0.002);
        ck_assert_double_lt(info.expected_rate, 0.02);
    }
    uint32_t findings = 0;
    tm_table_check check = {0};
    int st = tm_table_verify(k.table, count_finding, NULL, &findings, &check, NULL);
    ck_assert_int_eq(st, TAMIS_OK);
    ck_assert_uint_eq(findings, 0);
    ck_assert_uint_eq(check.entries, 300);
    uint8_t byte = 0xff;
    kit_bytes(&k, 200, &byte, 1, true);
    ck_assert_int_eq(tm_table_verify(k.table, count_finding, NULL, &findings, &check, NULL),
                     TAMIS_CORRUPT);
    ck_assert_uint_gt(findings, 0);
    kit_close(&k);
    kit_end(&k);
}
END_TEST

// ---- Threads -----------------------------------------------------------------------------------

typedef struct worker {
    kit *k;
    uint64_t seed;
} worker;

static void *work(void *arg)
{
    worker *w = arg;
    tm_random r = tm_random_seed(w->seed);
    for (int i = 0; i < 1500; i++) {
        tm_read_mode mode;
        kit_get(w->k, w->k->entries[tm_random_below(&r, w->k->n)].key,
                tm_random_below(&r, 1000) << 8 | 0xff, NULL, &mode);
        if (i % 64 == 0) tm_cache_charge(w->k->cache, i % 128 == 0 ? 20000 : -20000);
        if (i % 100 == 0) (void)cover_of(w->k, TM_READ_PINNED, "b", 900);
    }
    return NULL;
}

START_TEST(many_threads)
{
    kit k;
    kit_begin(&k, &shapes[_i]);
    kit_open(&k, 60000);
    tm_thread threads[4];
    worker workers[4];
    for (int i = 0; i < 4; i++) {
        workers[i] = (worker){&k, (uint64_t)i};
        ck_assert_int_eq(tm_thread_start(&threads[i], work, &workers[i], "worker", NULL), TAMIS_OK);
    }
    for (int i = 0; i < 4; i++) tm_thread_join(&threads[i]);
    tm_cache_usage u;
    tm_cache_usage_get(k.cache, &u);
    tm_cache_charge(k.cache, -(int64_t)u.charged);
    kit_close(&k);
    kit_end(&k);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("table");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, lookups_with_all_in_memory, 0, SHAPES);
    tcase_add_loop_test(t, lookups_with_little_memory, 0, SHAPES);
    tcase_add_test(t, each_mode_holds_as_it_says);
    tcase_add_test(t, all_versions_of_a_key_by_one_context);
    tcase_add_loop_test(t, hidden_by_a_snapshot_is_no_false_positive, 0, SHAPES);
    tcase_add_test(t, explain_is_told_each_step);
    tcase_add_test(t, range_deletes);
    tcase_add_test(t, unusable_filters_say_maybe);
    tcase_add_test(t, a_filter_that_hides_keys_is_found_out);
    tcase_add_loop_test(t, offsets_ascend_with_keys, 0, SHAPES);
    tcase_add_test(t, properties_filter_and_verify);
    tcase_add_loop_test(t, many_threads, 0, SHAPES);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
