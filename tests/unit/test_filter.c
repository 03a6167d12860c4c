// SPDX-License-Identifier: BSD-2-Clause
//
// Building and asking filters: no key is ever denied, images are what README.md says, damage is
// met with a status. False-positive rates are in test_filter_rate.c.
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/random.h"
#include "filter/filter.h"
#include "filter/filter_math.h"
#include "filter/bloom.h"

static const tm_filter_kind kinds[] = {TM_FILTER_BLOOM, TM_FILTER_BLOCKED};

static uint64_t key_hash(uint64_t i)
{
    uint8_t key[8];
    tm_put64(key, i);
    return tm_hash64(key, sizeof(key), 42);
}

// An image over the hashes of keys 0 .. n-1.
static void build(tm_filter_kind kind, uint32_t millibits, size_t n, tm_buf *out,
                  tm_filter_contract *contract)
{
    tamis_error err;
    tm_filter_builder b;
    ck_assert_int_eq(tm_filter_builder_init(&b, kind, millibits, 42, &err), TAMIS_OK);
    for (size_t i = 0; i < n; i++) ck_assert_int_eq(tm_filter_builder_add(&b, key_hash(i)), 0);
    size_t bytes = tm_filter_builder_bytes(&b), before = out->len;
    ck_assert_int_eq(tm_filter_builder_finish(&b, out, contract, &err), TAMIS_OK);
    ck_assert_uint_eq(out->len - before, bytes);
    tm_filter_builder_deinit(&b);
}

static void view(const tm_buf *image, tm_filter_view *v, tm_filter_contract *contract)
{
    tamis_error err;
    ck_assert_int_eq(tm_filter_view_init(v, tm_buf_slice(image), contract, &err), TAMIS_OK);
}

// ---- Kinds -------------------------------------------------------------------------------------

START_TEST(kinds_have_names)
{
    static const char *const names[] = {"none", "bloom", "blocked"};
    tm_filter_kind kind;
    tamis_error err;
    for (size_t i = 0; i < TM_COUNT(names); i++) {
        ck_assert_int_eq(tm_filter_kind_parse(names[i], &kind, &err), TAMIS_OK);
        ck_assert_uint_eq(kind, i);
        ck_assert_str_eq(tm_filter_kind_name(kind), names[i]);
    }
    static const char *const wrong[] = {"", "Bloom", "bloom ", "blo", "ribbon", "unknown"};
    for (size_t i = 0; i < TM_COUNT(wrong); i++) {
        ck_assert_int_eq(tm_filter_kind_parse(wrong[i], &kind, &err), TAMIS_INVALID);
    }
    ck_assert_int_eq(tm_filter_kind_parse(NULL, &kind, NULL), TAMIS_INVALID);
    ck_assert_str_eq(tm_filter_kind_name((tm_filter_kind)77), "unknown");
}
END_TEST

START_TEST(builder_refuses_what_it_cannot_build)
{
    tm_filter_builder b;
    tamis_error err;
    ck_assert_int_eq(tm_filter_builder_init(&b, (tm_filter_kind)3, 10000, 0, &err), TAMIS_INVALID);
    ck_assert_int_eq(tm_filter_builder_init(&b, TM_FILTER_BLOOM, 99, 0, &err), TAMIS_INVALID);
    ck_assert_int_eq(tm_filter_builder_init(&b, TM_FILTER_BLOCKED, 100001, 0, &err), TAMIS_INVALID);
    ck_assert_int_eq(tm_filter_builder_init(&b, TM_FILTER_BLOOM, 100, 0, NULL), TAMIS_OK);
    tm_filter_builder_deinit(&b);
    tm_filter_builder_deinit(&b);
}
END_TEST

START_TEST(none_builds_nothing)
{
    tm_buf out = {0};
    tm_filter_contract c = {.kind = 9};
    build(TM_FILTER_NONE, 0, 100, &out, &c);
    ck_assert_uint_eq(out.len, 0);
    ck_assert_uint_eq(c.kind, TM_FILTER_NONE);
    tm_filter_view v = {0}; // says "maybe" to all
    bool maybe[3] = {false};
    ck_assert(tm_filter_may_contain(&v, 1));
    tm_filter_prefetch(&v, 1);
    tm_filter_may_contain_many(&v, (uint64_t[]){1, 2, 3}, 3, maybe);
    ck_assert(maybe[0] && maybe[1] && maybe[2]);
    ck_assert_double_eq(tm_filter_expected_rate(&c), 1);
    tm_filter_observed seen;
    tm_filter_observe(&v, &seen);
    ck_assert_double_eq(seen.rate, 1);
    ck_assert_int_eq(tm_filter_view_init(&v, tm_buf_slice(&out), NULL, NULL), TAMIS_CORRUPT);
    tm_buf_deinit(&out);
}
END_TEST

// ---- No key is denied --------------------------------------------------------------------------

static void check_all_found(tm_filter_kind kind, uint32_t millibits, size_t n)
{
    tm_buf out = {0};
    tm_filter_contract c;
    build(kind, millibits, n, &out, NULL);
    tm_filter_view v;
    view(&out, &v, &c);
    ck_assert_uint_eq(c.keys_added, n);
    for (size_t i = 0; i < n; i++) {
        uint64_t hash = key_hash(i);
        tm_filter_prefetch(&v, hash);
        ck_assert_msg(tm_filter_may_contain(&v, hash), "%s: key %zu of %zu at %u is denied",
                      tm_filter_kind_name(kind), i, n, millibits);
    }
    if (n == 0) { // nothing was added: always "no"
        for (uint64_t i = 0; i < 1000; i++) ck_assert(!tm_filter_may_contain(&v, key_hash(i)));
    }
    tm_buf_deinit(&out);
}

START_TEST(no_key_is_denied)
{
    static const uint32_t millibits[] = {100,   999,   1000,  5500,  9585,  10000,
                                         12345, 16384, 27397, 27398, 64000, 100000};
    static const size_t edges[] = {100,  255,  256,  257,   511,   512,  513,
                                   1023, 1024, 1025, 13056, 13057, 50000};
    for (size_t k = 0; k < TM_COUNT(kinds); k++) {
        for (size_t m = 0; m < TM_COUNT(millibits); m++) {
            for (size_t n = 0; n <= 64; n++) check_all_found(kinds[k], millibits[m], n);
            // Around the number of keys at which a line is added.
            size_t line = (size_t)(512000 / millibits[m]);
            for (size_t n = line; n <= line + 2; n++) check_all_found(kinds[k], millibits[m], n);
        }
        for (size_t i = 0; i < TM_COUNT(edges); i++) check_all_found(kinds[k], 10000, edges[i]);
    }
}
END_TEST

START_TEST(extreme_hashes_are_found)
{
    static const uint64_t hashes[] = {
        0, 1, UINT64_MAX, UINT64_MAX - 1, UINT64_C(1) << 63, UINT32_MAX, UINT64_C(1) << 32};
    for (size_t k = 0; k < TM_COUNT(kinds); k++) {
        tm_filter_builder b;
        tm_buf out = {0};
        ck_assert_int_eq(tm_filter_builder_init(&b, kinds[k], 80000, 0, NULL), 0);
        for (size_t i = 0; i < TM_COUNT(hashes); i++) {
            ck_assert_int_eq(tm_filter_builder_add(&b, hashes[i]), 0);
        }
        ck_assert_int_eq(tm_filter_builder_finish(&b, &out, NULL, NULL), 0);
        tm_filter_view v;
        view(&out, &v, NULL);
        ck_assert(tm_filter_contains_all(&v, hashes, TM_COUNT(hashes), NULL));
        tm_filter_builder_deinit(&b);
        tm_buf_deinit(&out);
    }
}
END_TEST

START_TEST(a_denied_key_is_noticed)
{
    enum { N = 500 };
    uint64_t hashes[N];
    for (size_t i = 0; i < N; i++) hashes[i] = key_hash(i);
    for (size_t k = 0; k < TM_COUNT(kinds); k++) {
        tm_buf out = {0};
        build(kinds[k], 10000, N, &out, NULL);
        tm_filter_view v;
        view(&out, &v, NULL);
        size_t missing = N;
        ck_assert(tm_filter_contains_all(&v, hashes, N, &missing));
        ck_assert(tm_filter_contains_all(&v, hashes, 0, &missing));
        ck_assert_uint_eq(missing, N);
        // Any bit that is cleared belongs to some key.
        for (size_t at = TM_FILTER_HEADER; at < out.len; at++) {
            if (out.data[at] == 0) continue;
            uint8_t byte = out.data[at];
            out.data[at] &= (uint8_t)(byte - 1);
            ck_assert(!tm_filter_contains_all(&v, hashes, N, &missing));
            ck_assert(!tm_filter_may_contain(&v, hashes[missing]));
            ck_assert(tm_filter_contains_all(&v, hashes, missing, NULL));
            out.data[at] = byte;
        }
        tm_buf_deinit(&out);
    }
}
END_TEST

// ---- Sizes -------------------------------------------------------------------------------------

START_TEST(contract_says_how_it_was_built)
{
    static const struct {
        tm_filter_kind kind;
        uint32_t millibits;
        size_t n;
        uint64_t bits;
        uint8_t probes; // by the bits there are: 40 keys in 512 bits have 12.8 each
    } table[] = {
        {TM_FILTER_BLOOM, 10000, 40, 512, 9},        {TM_FILTER_BLOCKED, 10000, 40, 512, 8},
        {TM_FILTER_BLOOM, 10000, 1024, 10240, 7},    {TM_FILTER_BLOCKED, 10000, 1024, 10240, 6},
        {TM_FILTER_BLOCKED, 9585, 1068, 9728, 6},    {TM_FILTER_BLOOM, 100000, 1024, 102400, 30},
        {TM_FILTER_BLOCKED, 100000, 256, 25600, 14}, {TM_FILTER_BLOCKED, 500, 10240, 5120, 1},
        {TM_FILTER_BLOCKED, 10000, 0, 512, 1},
    };
    for (size_t i = 0; i < TM_COUNT(table); i++) {
        tm_buf out = {0};
        tm_filter_contract c, read;
        build(table[i].kind, table[i].millibits, table[i].n, &out, &c);
        ck_assert_uint_eq(c.kind, table[i].kind);
        ck_assert_uint_eq(c.format, 1);
        ck_assert_uint_eq(c.hash_version, 1);
        ck_assert_uint_eq(c.millibits, table[i].millibits);
        ck_assert_uint_eq(c.seed, 42);
        ck_assert_uint_eq(c.keys_expected, table[i].n);
        ck_assert_uint_eq(c.keys_added, table[i].n);
        ck_assert_uint_eq(c.bits, table[i].bits);
        ck_assert_uint_eq(c.probes, table[i].probes);
        ck_assert_uint_eq(out.len, TM_FILTER_HEADER + c.bits / 8);
        tm_filter_view v;
        view(&out, &v, &read);
        ck_assert_mem_eq(&read, &c, sizeof(c));
        tm_filter_observed seen;
        tm_filter_observe(&v, &seen);
        ck_assert_uint_eq(seen.set_bits, c.set_bits);
        tm_buf_deinit(&out);
    }
}
END_TEST

START_TEST(rounding_is_carried_to_the_next_partition)
{
    tm_random random = tm_random_seed(7);
    for (size_t k = 0; k < TM_COUNT(kinds); k++) {
        tm_filter_builder b;
        uint64_t bits = 0, wanted = 0;
        ck_assert_int_eq(tm_filter_builder_init(&b, kinds[k], 9585, 0, NULL), 0);
        for (int partition = 0; partition < 200; partition++) {
            uint64_t n = 100 + tm_random_below(&random, 300);
            tm_buf out = {0};
            tm_filter_contract c;
            for (uint64_t i = 0; i < n; i++) {
                ck_assert_int_eq(tm_filter_builder_add(&b, tm_random_next(&random)), 0);
            }
            ck_assert_uint_eq(tm_filter_builder_keys(&b), n);
            ck_assert_int_eq(tm_filter_builder_finish(&b, &out, &c, NULL), 0);
            ck_assert_uint_eq(tm_filter_builder_keys(&b), 0);
            wanted += n * 9585;
            bits += c.bits;
            ck_assert_uint_le(bits * 1000, wanted); // never more, never a whole line less
            ck_assert_uint_gt(bits * 1000 + 512000, wanted);
            tm_buf_deinit(&out);
        }
        tm_filter_builder_deinit(&b);
    }
}
END_TEST

START_TEST(tiny_partitions_leave_no_debt)
{
    tm_filter_builder b;
    tm_filter_contract c;
    tm_buf out = {0};
    ck_assert_int_eq(tm_filter_builder_init(&b, TM_FILTER_BLOCKED, 10000, 0, NULL), 0);
    for (uint64_t i = 0; i < 100; i++) {
        ck_assert_int_eq(tm_filter_builder_add(&b, key_hash(i)), 0);
        ck_assert_int_eq(tm_filter_builder_finish(&b, &out, &c, NULL), 0);
        ck_assert_uint_eq(c.bits, 512);
    }
    ck_assert_uint_eq(out.len, 100 * 128);
    for (uint64_t i = 0; i < 1024; i++) ck_assert_int_eq(tm_filter_builder_add(&b, key_hash(i)), 0);
    ck_assert_int_eq(tm_filter_builder_finish(&b, &out, &c, NULL), 0);
    ck_assert_uint_eq(c.bits, 10240);
    tm_filter_builder_deinit(&b);
    tm_buf_deinit(&out);
}
END_TEST

START_TEST(equal_neighbours_count_once)
{
    for (size_t k = 0; k < TM_COUNT(kinds); k++) {
        tm_filter_builder b;
        tm_buf once = {0}, often = {0};
        build(kinds[k], 10000, 300, &once, NULL);
        ck_assert_int_eq(tm_filter_builder_init(&b, kinds[k], 10000, 42, NULL), 0);
        for (uint64_t i = 0; i < 300; i++) {
            for (uint64_t j = 0; j <= i % 5; j++) {
                ck_assert_int_eq(tm_filter_builder_add(&b, key_hash(i)), 0);
            }
            ck_assert_uint_eq(tm_filter_builder_keys(&b), i + 1);
        }
        ck_assert_int_eq(tm_filter_builder_finish(&b, &often, NULL, NULL), 0);
        ck_assert_uint_eq(once.len, often.len);
        ck_assert_mem_eq(once.data, often.data, once.len);
        // The last key of a partition is no neighbour of the next one's first.
        ck_assert_int_eq(tm_filter_builder_add(&b, key_hash(299)), 0);
        ck_assert_uint_eq(tm_filter_builder_keys(&b), 1);
        tm_filter_builder_deinit(&b);
        tm_buf_deinit(&once);
        tm_buf_deinit(&often);
    }
}
END_TEST

// ---- The bits are those of the specification ---------------------------------------------------

// README.md once more, in the plainest way: bit by bit, arithmetic on 32-bit halves.
static uint64_t plain_range(uint64_t x, uint64_t n) // floor(x * n / 2^64)
{
    uint64_t x0 = x & UINT32_MAX, x1 = x >> 32, n0 = n & UINT32_MAX, n1 = n >> 32;
    uint64_t middle = x1 * n0 + (x0 * n0 >> 32);
    uint64_t other = x0 * n1 + (middle & UINT32_MAX);
    return x1 * n1 + (middle >> 32) + (other >> 32);
}

static void plain_positions(const tm_filter_contract *c, uint64_t h, uint64_t *positions)
{
    const uint64_t g = UINT64_C(0x9e3779b97f4a7c15), p = UINT64_C(0xc2b2ae3d27d4eb4f);
    if (c->kind == TM_FILTER_BLOCKED) {
        uint64_t line = plain_range(h, c->bits / 512);
        for (unsigned i = 0; i < c->probes; i++) {
            uint64_t mixed = h * g;
            if (i >= 7) mixed = (mixed ^ mixed / (UINT64_C(1) << 32)) * p;
            positions[i] = line * 512 + (mixed >> (55 - 9 * (i % 7))) % 512;
        }
        return;
    }
    uint64_t b = h * g, d = h * p;
    b ^= b >> 32;
    d ^= d >> 29;
    for (uint64_t i = 0; i < c->probes; i++) { // closed form, in place of repeated sums
        uint64_t pairs = i * (i - 1) / 2, triples = i * (i - 1) / 2 * (i - 2) / 3;
        if (i < 2) pairs = 0;
        if (i < 3) triples = 0;
        positions[i] = plain_range(h + i * b + pairs * d + triples * g, c->bits);
    }
}

START_TEST(images_follow_the_specification)
{
    static const uint32_t millibits[] = {700, 5000, 10000, 17300, 31000, 90000};
    for (size_t k = 0; k < TM_COUNT(kinds); k++) {
        for (size_t m = 0; m < TM_COUNT(millibits); m++) {
            tm_buf out = {0};
            tm_filter_contract c;
            size_t n = 1000;
            build(kinds[k], millibits[m], n, &out, &c);
            uint8_t *bits = calloc(1, c.bits / 8);
            ck_assert_ptr_nonnull(bits);
            for (size_t i = 0; i < n; i++) {
                uint64_t positions[TM_BLOOM_MAX_PROBES];
                plain_positions(&c, key_hash(i), positions);
                for (unsigned j = 0; j < c.probes; j++) {
                    ck_assert_uint_lt(positions[j], c.bits);
                    bits[positions[j] / 8] |= (uint8_t)(1 << positions[j] % 8);
                }
            }
            ck_assert_mem_eq(out.data + TM_FILTER_HEADER, bits, c.bits / 8);
            free(bits);
            tm_buf_deinit(&out);
        }
    }
}
END_TEST

// Frozen: these bytes are in files. Keys 0 to 29 as 8 bytes little-endian, seed 42.
static const char *const golden[][2] = {
    // clang-format off
    {"bloom 10000 30",
     "0101010c102700002a000000000000001e000000000000001e00000000000000"
     "0002000000000000fa0000000000000000000000000000000000000000000000"
     "c4e5bf61c96e2e2f9baeca658ec4433b955b53dbb3c64940cbd16256d5dd5f98"
     "4a287074bc4ac16149c8609a2b039c53ab75c75a5b05a701b072aa2e06d4a31d"},
    {"blocked 10000 30",
     "0201010a102700002a000000000000001e000000000000001e00000000000000"
     "0002000000000000e80000000000000000000000000000000000000000000000"
     "a6ce2be4647c6f994440131b18991989539b07dc8760f5047059b0a080050338"
     "0d8aaad3236b4d70b84ed8681aa999eaf705eadf81a8298de46ef0a50ad58437"},
    {"blocked 5000 250",
     "02010103881300002a00000000000000fa00000000000000fa00000000000000"
     "0004000000000000190200000000000000000000000000000000000000000000"
     "8fe1c2fea351abacdd3788a3abf7c8fa7bf83fcb5f56a59272bec4cdd1112778"
     "1db04c98e662b36271de5c10d07f889e68857aeae86b10c299b3a02f6ededb92"
     "04becafc447ce793b0c0d70fdd38955b2e9ae3ec3f167f00bf37d0a23de09b25"
     "44c1d8e8391918dc036d99d09a35b749f5cf43ed5b209bfef45ded41cb93a275"},
    // clang-format on
};

START_TEST(golden_images)
{
    for (size_t i = 0; i < TM_COUNT(golden); i++) {
        char name[16], hex[1024] = "";
        unsigned millibits, n;
        tm_filter_kind kind;
        ck_assert_int_eq(sscanf(golden[i][0], "%15s %u %u", name, &millibits, &n), 3);
        ck_assert_int_eq(tm_filter_kind_parse(name, &kind, NULL), TAMIS_OK);
        tm_buf out = {0};
        build(kind, millibits, n, &out, NULL);
        ck_assert_uint_lt(2 * out.len, sizeof(hex));
        for (size_t at = 0; at < out.len; at++) sprintf(hex + 2 * at, "%02x", out.data[at]);
        ck_assert_str_eq(hex, golden[i][1]);
        tm_buf_deinit(&out);
    }
}
END_TEST

START_TEST(vector_forms_equal_the_plain_one)
{
    enum { BATCH = 61, ROUNDS = 600 };
    static const uint64_t line_counts[] = {1, 2, 3, 255, 1000};
    tm_random random = tm_random_seed(3);
    uint8_t *memory = malloc(1000 * 64 + 64);
    ck_assert_ptr_nonnull(memory);
    for (size_t shift = 0; shift < 64; shift += 21) { // lines need not be aligned
        uint8_t *bits = memory + shift;
        // Seven of eight bits set, so that many say "maybe".
        for (size_t i = 0; i < 1000 * 64; i += 8) {
            tm_put64(bits + i,
                     tm_random_next(&random) | tm_random_next(&random) | tm_random_next(&random));
        }
        for (uint32_t probes = 1; probes <= 14; probes++) {
            uint64_t hits = 0;
            for (int round = 0; round < ROUNDS; round++) {
                uint64_t lines = line_counts[round % (int)TM_COUNT(line_counts)], hashes[BATCH];
                bool want[BATCH], got[BATCH];
                for (size_t i = 0; i < BATCH; i++) {
                    hashes[i] = tm_random_next(&random);
                    want[i] = tm_blocked_test(bits, lines, probes, hashes[i]);
                    hits += want[i];
                }
                for (size_t f = 0; f < TM_BLOCKED_FORMS; f++) {
                    tm_blocked_form form = tm_blocked_form_at(f);
                    if (!form.supported) continue;
                    size_t n = (size_t)round % (BATCH + 1);
                    form.test_many(bits, lines, probes, hashes, n, got);
                    ck_assert_mem_eq(got, want, n);
                    for (size_t i = 0; i < BATCH; i++) {
                        got[i] = form.test(bits, lines, probes, hashes[i]);
                    }
                    ck_assert_mem_eq(got, want, BATCH);
                }
                tm_blocked_ask_many(bits, lines, probes, hashes, BATCH, got);
                ck_assert_mem_eq(got, want, BATCH);
                ck_assert(tm_blocked_ask(bits, lines, probes, hashes[0]) == want[0]);
            }
            ck_assert_uint_gt(hits, 0);
            ck_assert_uint_lt(hits, BATCH * ROUNDS);
        }
    }
    free(memory);
}
END_TEST

START_TEST(batches_equal_single_answers)
{
    enum { N = 1000 };
    uint64_t hashes[N];
    bool maybe[N];
    for (size_t k = 0; k < TM_COUNT(kinds); k++) {
        tm_buf out = {0};
        build(kinds[k], 3000, N / 2, &out, NULL);
        tm_filter_view v;
        view(&out, &v, NULL);
        for (size_t i = 0; i < N; i++) hashes[i] = key_hash(i);
        for (size_t n = 0; n < N; n += n < 40 ? 1 : 97) {
            memset(maybe, 2, sizeof(maybe));
            tm_filter_may_contain_many(&v, hashes, n, maybe);
            for (size_t i = 0; i < n; i++)
                ck_assert(maybe[i] == tm_filter_may_contain(&v, hashes[i]));
        }
        tm_buf_deinit(&out);
    }
}
END_TEST

START_TEST(an_image_may_stand_anywhere)
{
    for (size_t k = 0; k < TM_COUNT(kinds); k++) {
        tm_buf out = {0};
        build(kinds[k], 10000, 500, &out, NULL);
        tm_filter_view straight;
        view(&out, &straight, NULL);
        for (size_t shift = 1; shift < 64; shift += 9) {
            uint8_t *copy = malloc(out.len + shift);
            ck_assert_ptr_nonnull(copy);
            memcpy(copy + shift, out.data, out.len);
            tm_filter_view v;
            ck_assert_int_eq(
                tm_filter_view_init(&v, tm_slice_of(copy + shift, out.len), NULL, NULL), 0);
            for (uint64_t i = 0; i < 2000; i++) {
                ck_assert(tm_filter_may_contain(&v, key_hash(i)) ==
                          tm_filter_may_contain(&straight, key_hash(i)));
            }
            free(copy);
        }
        tm_buf_deinit(&out);
    }
}
END_TEST

// ---- Damage ------------------------------------------------------------------------------------

// The image in memory of exactly its size, so that a sanitizer sees every read beyond it.
static int try_image(const uint8_t *image, size_t len, bool *answers, size_t n)
{
    uint8_t *copy = malloc(len + (len == 0));
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, image, len);
    tm_filter_view v;
    tamis_error err;
    int st = tm_filter_view_init(&v, tm_slice_of(copy, len), NULL, &err);
    if (st != TAMIS_OK) {
        ck_assert(st == TAMIS_CORRUPT || st == TAMIS_UNSUPPORTED);
        ck_assert_int_eq(err.code, st);
        ck_assert_uint_gt(strlen(err.message), 10);
        ck_assert_uint_eq(v.kind, TM_FILTER_NONE);
    }
    for (size_t i = 0; i < n; i++) {
        answers[i] = tm_filter_may_contain(&v, key_hash(i));
        if (st != TAMIS_OK) ck_assert(answers[i]);
    }
    tm_filter_observed seen;
    tm_filter_observe(&v, &seen);
    free(copy);
    return st;
}

START_TEST(damaged_contracts)
{
    enum { N = 300 };
    bool whole[N], damaged[N];
    for (size_t k = 0; k < TM_COUNT(kinds); k++) {
        tm_buf out = {0};
        build(kinds[k], 10000, 150, &out, NULL);
        ck_assert_int_eq(try_image(out.data, out.len, whole, N), TAMIS_OK);
        size_t accepted = 0;
        for (size_t at = 0; at < TM_FILTER_HEADER; at++) {
            uint8_t byte = out.data[at];
            for (int value = 0; value < 256; value++) {
                if (value == byte) continue;
                out.data[at] = (uint8_t)value;
                int st = try_image(out.data, out.len, damaged, N);
                if (at == 1 || at == 2) ck_assert_int_eq(st, TAMIS_UNSUPPORTED);
                if (at >= 32 && at < 40) { // the size: blocked must be exact, bloom within a line
                    if (kinds[k] == TM_FILTER_BLOCKED || at > 33)
                        ck_assert_int_eq(st, TAMIS_CORRUPT);
                }
                if (at >= 48) ck_assert_int_eq(st, TAMIS_CORRUPT);
                // What decides over the answers is the kind, the probes and the size.
                if (st == TAMIS_OK && at >= 4 && (at < 32 || at >= 40)) {
                    ck_assert_mem_eq(damaged, whole, N);
                    accepted++;
                }
            }
            out.data[at] = byte;
        }
        ck_assert_uint_gt(accepted, 8 * 255); // the seed is not checked here, nor are the keys
        tm_buf_deinit(&out);
    }
}
END_TEST

START_TEST(cut_images)
{
    for (size_t k = 0; k < TM_COUNT(kinds); k++) {
        tm_buf out = {0};
        build(kinds[k], 10000, 150, &out, NULL);
        for (size_t len = 0; len < out.len; len++) {
            ck_assert_int_eq(try_image(out.data, len, NULL, 0), TAMIS_CORRUPT);
        }
        size_t whole = out.len;
        for (size_t more = 1; more <= 64; more++) {
            ck_assert_int_eq(tm_buf_append(&out, "\0", 1), 0);
            ck_assert_int_eq(try_image(out.data, out.len, NULL, 0), TAMIS_CORRUPT);
        }
        ck_assert_uint_eq(out.len, whole + 64);
        tm_buf_deinit(&out);
    }
}
END_TEST

static int with_field(const tm_buf *image, size_t at, uint64_t value, size_t bytes)
{
    uint8_t copy[2048], number[8];
    ck_assert_uint_le(image->len, sizeof(copy));
    memcpy(copy, image->data, image->len);
    tm_put64(number, value);
    memcpy(copy + at, number, bytes);
    return try_image(copy, image->len, NULL, 0);
}

START_TEST(fields_that_do_not_fit)
{
    tm_buf out = {0};
    tm_filter_contract c;
    build(TM_FILTER_BLOCKED, 10000, 150, &out, &c);
    ck_assert_int_eq(with_field(&out, 0, 0, 1), TAMIS_UNSUPPORTED); // kinds
    ck_assert_int_eq(with_field(&out, 0, 3, 1), TAMIS_UNSUPPORTED);
    ck_assert_int_eq(with_field(&out, 0, 255, 1), TAMIS_UNSUPPORTED);
    ck_assert_int_eq(with_field(&out, 3, 0, 1), TAMIS_CORRUPT); // probes
    ck_assert_int_eq(with_field(&out, 3, 15, 1), TAMIS_CORRUPT);
    ck_assert_int_eq(with_field(&out, 4, 99, 4), TAMIS_CORRUPT); // bits a key
    ck_assert_int_eq(with_field(&out, 4, 100001, 4), TAMIS_CORRUPT);
    ck_assert_int_eq(with_field(&out, 24, 0, 8), TAMIS_CORRUPT); // keys added
    ck_assert_int_eq(with_field(&out, 24, (c.set_bits - 1) / c.probes, 8), TAMIS_CORRUPT);
    ck_assert_int_eq(with_field(&out, 24, UINT64_MAX, 8), TAMIS_OK);
    ck_assert_int_eq(with_field(&out, 32, 0, 8), TAMIS_CORRUPT); // bits
    ck_assert_int_eq(with_field(&out, 32, c.bits - 1, 8), TAMIS_CORRUPT);
    ck_assert_int_eq(with_field(&out, 32, UINT64_MAX, 8), TAMIS_CORRUPT);
    ck_assert_int_eq(with_field(&out, 32, UINT64_MAX - 511, 8), TAMIS_CORRUPT);
    ck_assert_int_eq(with_field(&out, 40, c.bits + 1, 8), TAMIS_CORRUPT); // set bits
    ck_assert_int_eq(with_field(&out, 40, 0, 8), TAMIS_CORRUPT);
    ck_assert_int_eq(with_field(&out, 40, (uint64_t)c.probes * 150 + 1, 8), TAMIS_CORRUPT);
    tm_buf_clear(&out);
    // Bits behind the end of a standard filter must be clear.
    build(TM_FILTER_BLOOM, 10000, 150, &out, &c);
    ck_assert_int_eq(with_field(&out, 3, 31, 1), TAMIS_CORRUPT);
    ck_assert_int_eq(with_field(&out, 32, c.bits - 512, 8), TAMIS_CORRUPT);
    out.data[out.len - 1] = 0x7f;
    ck_assert_int_eq(with_field(&out, 32, c.bits - 1, 8), TAMIS_OK);
    ck_assert_int_eq(with_field(&out, 32, c.bits - 2, 8), TAMIS_CORRUPT);
    ck_assert_int_eq(with_field(&out, 32, c.bits - 8, 8), TAMIS_CORRUPT);
    tm_buf_deinit(&out);
}
END_TEST

// ---- Memory ------------------------------------------------------------------------------------

static bool allow_until(void *ctx, size_t n)
{
    (void)n;
    size_t *left = ctx;
    if (*left == 0) return false;
    (*left)--;
    return true;
}

START_TEST(memory_that_ends_changes_nothing)
{
    tm_buf want = {0};
    build(TM_FILTER_BLOCKED, 10000, 5000, &want, NULL);
    size_t failures = 0;
    for (size_t allowed = 0; allowed < 20; allowed++) {
        size_t left = allowed;
        tm_filter_builder b;
        tm_buf out = {0};
        tamis_error err = {0};
        ck_assert_int_eq(tm_filter_builder_init(&b, TM_FILTER_BLOCKED, 10000, 42, NULL), 0);
        tm_mem_set_hook(allow_until, &left);
        for (uint64_t i = 0; i < 5000; i++) {
            if (tm_filter_builder_add(&b, key_hash(i)) == TAMIS_OK) continue;
            ck_assert_uint_eq(tm_filter_builder_keys(&b), i);
            failures++;
            left = 1;
            ck_assert_int_eq(tm_filter_builder_add(&b, key_hash(i)), TAMIS_OK);
        }
        if (tm_filter_builder_finish(&b, &out, NULL, &err) != TAMIS_OK) {
            ck_assert_int_eq(err.code, TAMIS_NOMEM);
            ck_assert_uint_eq(out.len, 0);
            ck_assert_uint_eq(tm_filter_builder_keys(&b), 5000);
            failures++;
            left = 1;
            ck_assert_int_eq(tm_filter_builder_finish(&b, &out, NULL, &err), TAMIS_OK);
        }
        tm_mem_set_hook(NULL, NULL);
        ck_assert_uint_eq(out.len, want.len);
        ck_assert_mem_eq(out.data, want.data, want.len);
        tm_filter_builder_deinit(&b);
        tm_buf_deinit(&out);
    }
    ck_assert_uint_gt(failures, 4);
    tm_buf_deinit(&want);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("filter");
    TCase *tc = tcase_create("filter");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, kinds_have_names);
    tcase_add_test(tc, builder_refuses_what_it_cannot_build);
    tcase_add_test(tc, none_builds_nothing);
    tcase_add_test(tc, no_key_is_denied);
    tcase_add_test(tc, extreme_hashes_are_found);
    tcase_add_test(tc, a_denied_key_is_noticed);
    tcase_add_test(tc, contract_says_how_it_was_built);
    tcase_add_test(tc, rounding_is_carried_to_the_next_partition);
    tcase_add_test(tc, tiny_partitions_leave_no_debt);
    tcase_add_test(tc, equal_neighbours_count_once);
    tcase_add_test(tc, images_follow_the_specification);
    tcase_add_test(tc, golden_images);
    tcase_add_test(tc, vector_forms_equal_the_plain_one);
    tcase_add_test(tc, batches_equal_single_answers);
    tcase_add_test(tc, an_image_may_stand_anywhere);
    tcase_add_test(tc, damaged_contracts);
    tcase_add_test(tc, cut_images);
    tcase_add_test(tc, fields_that_do_not_fit);
    tcase_add_test(tc, memory_that_ends_changes_nothing);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
