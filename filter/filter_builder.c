// SPDX-License-Identifier: BSD-2-Clause
//
// filter_builder.c - from the hashes of a partition to an image. See filter.h.
#include "base/mem.h"
#include "filter/filter.h"
#include "filter/filter_kinds.h"

#define LINE_MILLIBITS (UINT64_C(1000) * TM_BLOCKED_LINE_BITS)
// Keeps count * millibits, and a filter's size, far from overflow.
#define MAX_KEYS (SIZE_MAX / 8 < UINT64_C(1) << 40 ? SIZE_MAX / 8 : (size_t)1 << 40)

int tm_filter_builder_init(tm_filter_builder *b, tm_filter_kind kind, uint32_t millibits,
                           uint64_t seed, tamis_error *err)
{
    *b = (tm_filter_builder){.kind = kind, .millibits = millibits, .seed = seed};
    if (kind == TM_FILTER_NONE) return TAMIS_OK;
    if (tm_filter_ops_of((uint32_t)kind) == NULL) {
        return tm_fail(err, TAMIS_INVALID, "filter kind %d is not known", (int)kind);
    }
    if (millibits < TM_FILTER_MIN_MILLIBITS || millibits > TM_FILTER_MAX_MILLIBITS) {
        return tm_fail(err, TAMIS_INVALID,
                       "filter: %u thousandths of a bit a key, allowed are %u to %u", millibits,
                       TM_FILTER_MIN_MILLIBITS, TM_FILTER_MAX_MILLIBITS);
    }
    return TAMIS_OK;
}

void tm_filter_builder_deinit(tm_filter_builder *b)
{
    tm_free(b->hashes);
    *b = (tm_filter_builder){0};
}

static int grow(tm_filter_builder *b)
{
    if (b->count >= MAX_KEYS) return TAMIS_NOMEM;
    size_t capacity = b->capacity == 0 ? 1024 : TM_MIN(b->capacity * 2, MAX_KEYS);
    uint64_t *hashes = tm_realloc(b->hashes, capacity * sizeof(*hashes));
    if (hashes == NULL) return TAMIS_NOMEM;
    b->hashes = hashes;
    b->capacity = capacity;
    return TAMIS_OK;
}

int tm_filter_builder_add(tm_filter_builder *b, uint64_t hash)
{
    if (b->count > 0 && b->hashes[b->count - 1] == hash) return TAMIS_OK;
    if (b->kind == TM_FILTER_NONE) return TAMIS_OK;
    if (b->count == b->capacity) TM_TRY(grow(b));
    b->hashes[b->count++] = hash;
    return TAMIS_OK;
}

size_t tm_filter_builder_keys(const tm_filter_builder *b)
{
    return b->count;
}

static uint64_t wanted_millibits(const tm_filter_builder *b)
{
    return (uint64_t)b->count * b->millibits + b->carry_millibits;
}

static uint64_t lines_now(const tm_filter_builder *b)
{
    return TM_MAX(wanted_millibits(b) / LINE_MILLIBITS, 1);
}

size_t tm_filter_builder_bytes(const tm_filter_builder *b)
{
    if (b->kind == TM_FILTER_NONE) return 0;
    return TM_FILTER_HEADER + (size_t)lines_now(b) * TM_BLOCKED_LINE_BYTES;
}

int tm_filter_builder_finish(tm_filter_builder *b, tm_buf *out, tm_filter_contract *contract,
                             tamis_error *err)
{
    if (contract != NULL) *contract = (tm_filter_contract){0};
    if (b->kind == TM_FILTER_NONE) return TAMIS_OK;
    const tm_filter_ops *ops = tm_filter_ops_of((uint32_t)b->kind);
    uint64_t lines = lines_now(b);
    size_t length = tm_filter_builder_bytes(b), count = b->count;
    if (tm_buf_reserve(out, length) != TAMIS_OK) return tm_fail_nomem(err);

    tm_filter_contract c = {
        .kind = (uint8_t)b->kind,
        .format = TM_FILTER_FORMAT,
        .hash_version = TM_FILTER_HASH_XXH3,
        .millibits = b->millibits,
        .seed = b->seed,
        .keys_expected = count,
        .keys_added = count,
        .bits = lines * TM_BLOCKED_LINE_BITS,
    };
    c.probes = (uint8_t)(count == 0 ? 1 : ops->best_probes(count, c.bits));
    uint8_t *image = out->data + out->len;
    memset(image, 0, length);
    ops->add_many(image + TM_FILTER_HEADER, &c, b->hashes, count);
    for (size_t at = TM_FILTER_HEADER; at < length; at += 8) {
        c.set_bits += (uint64_t)__builtin_popcountll(tm_get64(image + at));
    }
    tm_filter_contract_encode(&c, image);

    // From the image, as a reader will: a filter that hides a key is worse than none.
    tm_filter_view view;
    TM_TRY(tm_filter_view_init(&view, tm_slice_of(image, length), NULL, err));
    size_t missing;
    if (!tm_filter_contains_all(&view, b->hashes, count, &missing)) {
        return tm_fail_corrupt(err, 0, 0, "filter: key %zu of %zu is not in the finished filter",
                               missing, count);
    }
    out->len += length;
    // A partition that got its line although it was too small for one owes nothing.
    uint64_t wanted = wanted_millibits(b), given = lines * LINE_MILLIBITS;
    b->carry_millibits = wanted > given ? wanted - given : 0;
    b->count = 0;
    if (contract != NULL) *contract = c;
    return TAMIS_OK;
}
