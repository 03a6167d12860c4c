// SPDX-License-Identifier: BSD-2-Clause
//
// tamis_filter.c - the public filter library, over the kinds that the store uses. In memory a
// filter is the store's image (filter.h): room for the contract, then the bits. A stored filter has
// a header with magic, version and checksum before that image; README.md gives its bytes.
#include "tamis_filter.h"

#include <math.h>

#include "base/hash.h"
#include "base/mem.h"
#include "filter/filter.h"
#include "filter/filter_kinds.h"
#include "filter/filter_math.h"

struct tamis_filter {
    const tm_filter_ops *ops;
    tm_filter_contract contract; // set_bits is counted when asked for
    uint8_t *image;              // aligned to a cache line; the contract is encoded when stored
    tm_filter_view view;         // of image
};

static uint8_t *bits_of(const tamis_filter *f)
{
    return f->image + TM_FILTER_HEADER;
}

// ---- Plan ---------------------------------------------------------------------------------------

// bits must be >= 0. The limit, 128 TiB, is what processors address.
static int set_size(tm_filter_contract *c, const tm_filter_ops *ops, double bits, tamis_error *err)
{
    if (!(bits < (double)(SIZE_MAX / 4) && bits < 0x1p50)) {
        return tm_fail(err, TAMIS_TOOLARGE, "filter: %g bits do not fit into memory", bits);
    }
    c->bits = TM_MAX((uint64_t)ceil(bits), 1);
    if (ops->whole_lines) c->bits = tm_filter_array_bytes(c->bits) * 8;
    return TAMIS_OK;
}

static int plan_by_rate(tm_filter_contract *c, const tm_filter_ops *ops, double rate,
                        tamis_error *err)
{
    if (!(rate > 0 && rate < 1)) {
        return tm_fail(err, TAMIS_INVALID, "filter: rate %g is not between 0 and 1", rate);
    }
    double bits;
    if (c->kind == TM_FILTER_BLOCKED) {
        bits = (double)tm_filter_lines_blocked(c->keys_expected, rate) * TM_BLOCKED_LINE_BITS;
    } else {
        bits = (double)tm_filter_bits_standard(c->keys_expected, rate);
        if (tm_filter_bits_per_key_standard(rate) * 1000 > TM_FILTER_MAX_MILLIBITS) bits = 0;
    }
    if (bits < 1) {
        return tm_fail(err, TAMIS_INVALID,
                       "filter: kind %s does not reach rate %g with %u bits a key", ops->name, rate,
                       TM_FILTER_MAX_MILLIBITS / 1000);
    }
    double millibits = 1000 * bits / (double)c->keys_expected;
    millibits = TM_MIN(TM_MAX(millibits, TM_FILTER_MIN_MILLIBITS), TM_FILTER_MAX_MILLIBITS);
    c->millibits = (uint32_t)(millibits + 0.5);
    return set_size(c, ops, bits, err);
}

static int plan_by_bits(tm_filter_contract *c, const tm_filter_ops *ops, double bits_per_key,
                        tamis_error *err)
{
    double millibits = bits_per_key * 1000;
    if (!(millibits >= TM_FILTER_MIN_MILLIBITS && millibits <= TM_FILTER_MAX_MILLIBITS)) {
        return tm_fail(err, TAMIS_INVALID, "filter: %g bits a key, allowed are %g to %g",
                       bits_per_key, TM_FILTER_MIN_MILLIBITS / 1000.0,
                       TM_FILTER_MAX_MILLIBITS / 1000.0);
    }
    c->millibits = (uint32_t)(millibits + 0.5);
    return set_size(c, ops, (double)c->keys_expected * bits_per_key, err);
}

// Everything of the contract but the counts.
static int plan(const tamis_filter_params *p, tm_filter_contract *c, tamis_error *err)
{
    if (p == NULL || p->size < sizeof(*p)) {
        return tm_fail(err, TAMIS_INVALID, "filter: params.size is not set");
    }
    int32_t kind = p->kind == TAMIS_FILTER_DEFAULT ? TAMIS_FILTER_BLOCKED : p->kind;
    const tm_filter_ops *ops = kind > 0 ? tm_filter_ops_of((uint32_t)kind) : NULL;
    if (ops == NULL) return tm_fail(err, TAMIS_INVALID, "filter: kind %d is not known", (int)kind);
    if (p->expected_keys == 0) return tm_fail(err, TAMIS_INVALID, "filter: expected_keys is 0");
    if (p->expected_keys > UINT64_C(1) << 56) {
        return tm_fail(err, TAMIS_TOOLARGE, "filter: expected_keys: too many for any memory");
    }
    if (p->rate != 0 && p->bits_per_key != 0) {
        return tm_fail(err, TAMIS_INVALID, "filter: give rate or bits_per_key, not both");
    }
    if (p->probes > ops->max_probes) {
        return tm_fail(err, TAMIS_INVALID, "filter: %u probes, kind %s has at most %u", p->probes,
                       ops->name, ops->max_probes);
    }
    *c = (tm_filter_contract){
        .kind = (uint8_t)kind,
        .format = TM_FILTER_FORMAT,
        .hash_version = TM_FILTER_HASH_XXH3,
        .seed = p->seed,
        .keys_expected = p->expected_keys,
    };
    if (p->rate != 0) {
        TM_TRY(plan_by_rate(c, ops, p->rate, err));
    } else {
        TM_TRY(plan_by_bits(c, ops, p->bits_per_key != 0 ? p->bits_per_key : 10, err));
    }
    c->probes = (uint8_t)(p->probes != 0 ? p->probes : ops->best_probes(c->keys_expected, c->bits));
    return TAMIS_OK;
}

// ---- Create -------------------------------------------------------------------------------------

// The bits are not set. NULL: no memory.
static tamis_filter *allocate(const tm_filter_contract *c)
{
    uint64_t bytes = tm_filter_array_bytes(c->bits);
    tamis_filter *f = tm_calloc(1, sizeof(*f));
    if (f == NULL) return NULL;
    f->image = tm_alloc_aligned(TM_CACHE_LINE, TM_FILTER_HEADER + (size_t)bytes);
    if (f->image == NULL) {
        tm_free(f);
        return NULL;
    }
    f->ops = tm_filter_ops_of(c->kind);
    f->contract = *c;
    f->view = (tm_filter_view){
        .kind = (tm_filter_kind)c->kind,
        .probes = c->probes,
        .lines = f->ops->view_lines(c->bits),
        .bits = bits_of(f),
    };
    return f;
}

int tamis_filter_create(const tamis_filter_params *params, tamis_filter **out, tamis_error *err)
{
    *out = NULL;
    tm_filter_contract c = {0};
    TM_TRY(plan(params, &c, err));
    *out = allocate(&c);
    if (*out == NULL) return tm_fail_nomem(err);
    tamis_filter_clear(*out);
    return TAMIS_OK;
}

void tamis_filter_free(tamis_filter *f)
{
    if (f == NULL) return;
    tm_free(f->image);
    tm_free(f);
}

void tamis_filter_clear(tamis_filter *f)
{
    memset(bits_of(f), 0, (size_t)tm_filter_array_bytes(f->contract.bits));
    f->contract.keys_added = 0;
}

// ---- Add and ask --------------------------------------------------------------------------------

uint64_t tamis_filter_hash(const tamis_filter *f, const void *key, size_t len)
{
    return tm_hash64(len != 0 ? key : "", len, f->contract.seed);
}

int tamis_filter_add_hash(tamis_filter *f, uint64_t hash)
{
    return (int)tamis_filter_add_hashes(f, &hash, 1);
}

int tamis_filter_add(tamis_filter *f, const void *key, size_t len)
{
    return tamis_filter_add_hash(f, tamis_filter_hash(f, key, len));
}

int tamis_filter_may_contain_hash(const tamis_filter *f, uint64_t hash)
{
    return tm_filter_may_contain(&f->view, hash);
}

int tamis_filter_may_contain(const tamis_filter *f, const void *key, size_t len)
{
    return tm_filter_may_contain(&f->view, tamis_filter_hash(f, key, len));
}

size_t tamis_filter_add_hashes(tamis_filter *f, const uint64_t *hashes, size_t n)
{
    size_t changed = f->ops->add_many(bits_of(f), &f->contract, hashes, n);
    f->contract.keys_added += changed;
    return changed;
}

enum { GROUP = 64 }; // keys hashed before the first is looked up

static size_t hash_group(const tamis_filter *f, const tamis_slice *keys, size_t n,
                         uint64_t hashes[GROUP])
{
    size_t count = TM_MIN(n, GROUP);
    for (size_t i = 0; i < count; i++) {
        hashes[i] = tamis_filter_hash(f, keys[i].data, keys[i].len);
    }
    return count;
}

size_t tamis_filter_add_many(tamis_filter *f, const tamis_slice *keys, size_t n)
{
    uint64_t hashes[GROUP];
    size_t changed = 0;
    for (size_t at = 0; at < n;) {
        size_t count = hash_group(f, keys + at, n - at, hashes);
        changed += tamis_filter_add_hashes(f, hashes, count);
        at += count;
    }
    return changed;
}

size_t tamis_filter_may_contain_hashes(const tamis_filter *f, const uint64_t *hashes, size_t n,
                                       uint8_t *out)
{
    bool maybe[GROUP];
    size_t hits = 0;
    for (size_t at = 0; at < n; at += GROUP) {
        size_t count = TM_MIN(n - at, GROUP);
        tm_filter_may_contain_many(&f->view, hashes + at, count, maybe);
        for (size_t i = 0; i < count; i++) {
            out[at + i] = maybe[i];
            hits += maybe[i];
        }
    }
    return hits;
}

size_t tamis_filter_may_contain_many(const tamis_filter *f, const tamis_slice *keys, size_t n,
                                     uint8_t *out)
{
    uint64_t hashes[GROUP];
    size_t hits = 0;
    for (size_t at = 0; at < n;) {
        size_t count = hash_group(f, keys + at, n - at, hashes);
        hits += tamis_filter_may_contain_hashes(f, hashes, count, out + at);
        at += count;
    }
    return hits;
}

// ---- Describe -----------------------------------------------------------------------------------

static int give_info(const tm_filter_contract *c, const tm_filter_observed *seen,
                     tamis_filter_info *out, tamis_error *err)
{
    if (out->size < sizeof(*out)) {
        return tm_fail(err, TAMIS_INVALID, "filter: info.size is not set");
    }
    const tm_filter_ops *ops = tm_filter_ops_of(c->kind);
    *out = (tamis_filter_info){
        .size = out->size,
        .kind = c->kind,
        .probes = c->probes,
        .name = ops->name,
        .seed = c->seed,
        .bits = c->bits,
        .bytes = sizeof(tamis_filter) + TM_FILTER_HEADER + tm_filter_array_bytes(c->bits),
        .expected_keys = c->keys_expected,
        .added_keys = c->keys_added,
        .bits_per_key = (double)c->bits / (double)TM_MAX(c->keys_expected, 1),
        .expected_rate = ops->expected_rate(c->keys_expected, c->bits, c->probes),
        .rate_at_added = ops->expected_rate(c->keys_added, c->bits, c->probes),
        .set_bits = seen->set_bits,
        .fill = seen->fill,
        .rate_from_fill = seen->rate,
        .estimated_keys = seen->keys,
    };
    return TAMIS_OK;
}

int tamis_filter_plan(const tamis_filter_params *params, tamis_filter_info *out, tamis_error *err)
{
    tm_filter_contract c = {0};
    TM_TRY(plan(params, &c, err));
    return give_info(&c, &(tm_filter_observed){0}, out, err);
}

int tamis_filter_describe(const tamis_filter *f, tamis_filter_info *out, tamis_error *err)
{
    tm_filter_observed seen;
    tm_filter_observe(&f->view, &seen);
    return give_info(&f->contract, &seen, out, err);
}

// ---- Unite --------------------------------------------------------------------------------------

static int check_shape(const tamis_filter *a, const tamis_filter *b, tamis_error *err)
{
    const tm_filter_contract *x = &a->contract, *y = &b->contract;
    const char *what = x->kind != y->kind                   ? "kind"
                       : x->bits != y->bits                 ? "number of bits"
                       : x->probes != y->probes             ? "number of probes"
                       : x->seed != y->seed                 ? "seed"
                       : x->format != y->format             ? "format"
                       : x->hash_version != y->hash_version ? "hash"
                                                            : NULL;
    if (what == NULL) return TAMIS_OK;
    return tm_fail(err, TAMIS_INVALID, "filter: the two filters differ in their %s", what);
}

static void observe_both(const tamis_filter *a, const tamis_filter *b, tm_filter_observed *out)
{
    a->ops->observe(&a->view, bits_of(b), out);
}

int tamis_filter_union(tamis_filter *dst, const tamis_filter *src, tamis_error *err)
{
    TM_TRY(check_shape(dst, src, err));
    tm_filter_observed seen;
    observe_both(dst, src, &seen);
    uint8_t *to = bits_of(dst);
    const uint8_t *from = bits_of(src);
    for (uint64_t i = 0; i < tm_filter_array_bytes(dst->contract.bits); i++) {
        to[i] = (uint8_t)(to[i] | from[i]);
    }
    // How many of the keys are in both is not known; the bits tell it nearly.
    uint64_t a = dst->contract.keys_added, b = src->contract.keys_added;
    uint64_t most = a <= UINT64_MAX - b ? a + b : UINT64_MAX, least = TM_MAX(a, b);
    uint64_t keys = seen.keys < 0x1p63 ? (uint64_t)ceil(seen.keys) : most;
    dst->contract.keys_added = TM_MAX(TM_MIN(keys, most), least);
    return TAMIS_OK;
}

int tamis_filter_overlap(const tamis_filter *a, const tamis_filter *b, double *either, double *both,
                         tamis_error *err)
{
    TM_TRY(check_shape(a, b, err));
    tm_filter_observed of_a, of_b, of_either;
    tm_filter_observe(&a->view, &of_a);
    tm_filter_observe(&b->view, &of_b);
    observe_both(a, b, &of_either);
    if (either != NULL) *either = of_either.keys;
    if (both != NULL) *both = TM_MAX(of_a.keys + of_b.keys - of_either.keys, 0);
    return TAMIS_OK;
}

// ---- Store and load -----------------------------------------------------------------------------

static const uint8_t magic[8] = {'t', 'a', 'm', 'i', 's', 'F', 'L', 'T'};

enum {
    MAJOR = 1,
    MINOR = 0,
    MAJOR_AT = 8,
    MINOR_AT = 10,
    HEADER_LENGTH_AT = 12,
    BODY_LENGTH_AT = 16,
    ZERO_AT = 24,
    CHECKSUM_AT = 56, // of the header before it and the body
    HEADER_LENGTH = 64
};

uint64_t tamis_filter_image_size(const tamis_filter *f)
{
    return HEADER_LENGTH + TM_FILTER_HEADER + tm_filter_array_bytes(f->contract.bits);
}

int tamis_filter_store(const tamis_filter *f, void *buf, size_t cap, size_t *len, tamis_error *err)
{
    uint64_t size = tamis_filter_image_size(f), body = size - HEADER_LENGTH;
    if (len != NULL) *len = (size_t)size;
    if (size > cap) {
        return tm_fail(err, TAMIS_TOOLARGE, "filter: the image has %llu bytes, the buffer %zu",
                       (unsigned long long)size, cap);
    }
    tm_filter_observed seen;
    tm_filter_observe(&f->view, &seen);
    tm_filter_contract c = f->contract;
    c.set_bits = seen.set_bits;

    uint8_t *p = buf;
    memset(p, 0, HEADER_LENGTH);
    memcpy(p, magic, sizeof(magic));
    tm_put16(p + MAJOR_AT, MAJOR);
    tm_put16(p + MINOR_AT, MINOR);
    tm_put32(p + HEADER_LENGTH_AT, HEADER_LENGTH);
    tm_put64(p + BODY_LENGTH_AT, body);
    tm_filter_contract_encode(&c, p + HEADER_LENGTH);
    memcpy(p + HEADER_LENGTH + TM_FILTER_HEADER, bits_of(f), (size_t)(body - TM_FILTER_HEADER));
    tm_put64(p + CHECKSUM_AT, tm_checksum2(p, CHECKSUM_AT, p + HEADER_LENGTH, (size_t)body));
    return TAMIS_OK;
}

static int check_header(const uint8_t *p, size_t len, tamis_error *err)
{
    if (len < HEADER_LENGTH || memcmp(p, magic, sizeof(magic)) != 0) {
        return tm_fail_corrupt(err, 0, 0, "filter: not a filter image");
    }
    if (tm_get16(p + MAJOR_AT) != MAJOR) {
        return tm_fail(err, TAMIS_UNSUPPORTED, "filter: image version %u, this library reads %u",
                       tm_get16(p + MAJOR_AT), MAJOR);
    }
    size_t body = len - HEADER_LENGTH;
    if (tm_get32(p + HEADER_LENGTH_AT) != HEADER_LENGTH || tm_get64(p + BODY_LENGTH_AT) != body) {
        return tm_fail_corrupt(err, 0, 0, "filter: image of %zu bytes is cut or too long", len);
    }
    if (tm_get64(p + CHECKSUM_AT) != tm_checksum2(p, CHECKSUM_AT, p + HEADER_LENGTH, body)) {
        return tm_fail_corrupt(err, 0, CHECKSUM_AT, "filter: the image's checksum is wrong");
    }
    for (size_t i = ZERO_AT; i < CHECKSUM_AT; i++) {
        if (p[i] == 0) continue;
        return tm_fail_corrupt(err, 0, i, "filter: a field that must be zero is not");
    }
    return TAMIS_OK;
}

int tamis_filter_load(const void *buf, size_t len, tamis_filter **out, tamis_error *err)
{
    *out = NULL;
    const uint8_t *p = buf;
    TM_TRY(check_header(p, len, err));
    tm_slice body = tm_slice_of(p + HEADER_LENGTH, len - HEADER_LENGTH);
    tm_filter_view view;
    tm_filter_contract c;
    TM_TRY(tm_filter_view_init(&view, body, &c, err));
    tm_filter_observed seen;
    tm_filter_observe(&view, &seen);
    if (seen.set_bits != c.set_bits) {
        return tm_fail_corrupt(err, 0, HEADER_LENGTH, "filter: %llu bits are set, not %llu",
                               (unsigned long long)seen.set_bits, (unsigned long long)c.set_bits);
    }
    *out = allocate(&c);
    if (*out == NULL) return tm_fail_nomem(err);
    memcpy((*out)->image, body.data, body.len);
    return TAMIS_OK;
}
