// SPDX-License-Identifier: BSD-2-Clause
#include "filter/filter.h"

#include "filter/bloom.h"
#include "filter/filter_kinds.h"

// ---- Kinds --------------------------------------------------------------------------------------

const tm_filter_ops *tm_filter_ops_of(uint32_t kind)
{
    static const tm_filter_ops *const table[] = {
        [TM_FILTER_BLOOM] = &tm_bloom_ops,
        [TM_FILTER_BLOCKED] = &tm_blocked_ops,
    };
    return kind < TM_COUNT(table) ? table[kind] : NULL;
}

const char *tm_filter_kind_name(tm_filter_kind kind)
{
    if (kind == TM_FILTER_NONE) return "none";
    const tm_filter_ops *ops = tm_filter_ops_of((uint32_t)kind);
    return ops != NULL ? ops->name : "unknown";
}

int tm_filter_kind_parse(const char *text, tm_filter_kind *out, tamis_error *err)
{
    for (tm_filter_kind kind = TM_FILTER_NONE; kind <= TM_FILTER_BLOCKED; kind++) {
        if (text != NULL && strcmp(text, tm_filter_kind_name(kind)) == 0) {
            *out = kind;
            return TAMIS_OK;
        }
    }
    return tm_fail(err, TAMIS_INVALID, "filter kind '%.40s': give one of none, bloom, blocked",
                   text != NULL ? text : "");
}

double tm_filter_expected_rate(const tm_filter_contract *c)
{
    const tm_filter_ops *ops = tm_filter_ops_of(c->kind);
    return ops != NULL ? ops->expected_rate(c->keys_added, c->bits, c->probes) : 1;
}

// ---- The contract -------------------------------------------------------------------------------

enum { PARAMETERS_AT = 48 };

void tm_filter_contract_encode(const tm_filter_contract *c, uint8_t out[TM_FILTER_HEADER])
{
    memset(out, 0, TM_FILTER_HEADER);
    out[0] = c->kind;
    out[1] = c->format;
    out[2] = c->hash_version;
    out[3] = c->probes;
    tm_put32(out + 4, c->millibits);
    tm_put64(out + 8, c->seed);
    tm_put64(out + 16, c->keys_expected);
    tm_put64(out + 24, c->keys_added);
    tm_put64(out + 32, c->bits);
    tm_put64(out + 40, c->set_bits);
}

static tm_filter_contract contract_decode(const uint8_t *p)
{
    return (tm_filter_contract){
        .kind = p[0],
        .format = p[1],
        .hash_version = p[2],
        .probes = p[3],
        .millibits = tm_get32(p + 4),
        .seed = tm_get64(p + 8),
        .keys_expected = tm_get64(p + 16),
        .keys_added = tm_get64(p + 24),
        .bits = tm_get64(p + 32),
        .set_bits = tm_get64(p + 40),
    };
}

static int bad(tamis_error *err, const char *what)
{
    return tm_fail_corrupt(err, 0, 0, "filter: %s", what);
}

static bool counts_fit(const tm_filter_contract *c)
{
    if (c->set_bits > c->bits) return false;
    if (c->keys_added == 0 || c->set_bits == 0) return c->keys_added == c->set_bits;
    // set_bits <= keys_added * probes
    return (c->set_bits - 1) / c->probes < c->keys_added;
}

// The bits behind the last one, which pad the array to whole lines, are zero.
static bool padding_clear(const uint8_t *array, uint64_t bits, uint64_t bytes)
{
    uint64_t at = bits / 8;
    if (bits % 8 != 0) {
        if (array[at] >> (bits % 8) != 0) return false;
        at++;
    }
    for (; at < bytes; at++) {
        if (array[at] != 0) return false;
    }
    return true;
}

static int contract_check(const tm_filter_contract *c, tm_slice image, tamis_error *err)
{
    const tm_filter_ops *ops = tm_filter_ops_of(c->kind);
    if (ops == NULL) {
        return tm_fail(err, TAMIS_UNSUPPORTED, "filter: kind %u is not known here", c->kind);
    }
    if (c->format != TM_FILTER_FORMAT) {
        return tm_fail(err, TAMIS_UNSUPPORTED, "filter: format %u is not known here", c->format);
    }
    if (c->hash_version != TM_FILTER_HASH_XXH3) {
        return tm_fail(err, TAMIS_UNSUPPORTED, "filter: hash version %u is not known here",
                       c->hash_version);
    }
    for (size_t i = PARAMETERS_AT; i < TM_FILTER_HEADER; i++) {
        if (image.data[i] != 0) return bad(err, "a field that must be zero is not");
    }
    if (c->probes < 1 || c->probes > ops->max_probes) return bad(err, "number of probes");
    if (c->millibits < TM_FILTER_MIN_MILLIBITS || c->millibits > TM_FILTER_MAX_MILLIBITS) {
        return bad(err, "bits a key");
    }
    uint64_t bytes = image.len - TM_FILTER_HEADER;
    if (c->bits == 0 || tm_filter_array_bytes(c->bits) != bytes) return bad(err, "length");
    if (ops->whole_lines && c->bits % TM_BLOCKED_LINE_BITS != 0) return bad(err, "length");
    if (!padding_clear(image.data + TM_FILTER_HEADER, c->bits, bytes)) {
        return bad(err, "bits behind the end are set");
    }
    if (!counts_fit(c)) return bad(err, "counts of keys and bits do not fit");
    return TAMIS_OK;
}

// ---- Asking -------------------------------------------------------------------------------------

int tm_filter_view_init(tm_filter_view *v, tm_slice image, tm_filter_contract *contract,
                        tamis_error *err)
{
    *v = (tm_filter_view){0};
    if (image.len < TM_FILTER_HEADER) return bad(err, "shorter than its contract");
    tm_filter_contract c = contract_decode(image.data);
    TM_TRY(contract_check(&c, image, err));
    *v = (tm_filter_view){
        .kind = (tm_filter_kind)c.kind,
        .probes = c.probes,
        .lines = tm_filter_ops_of(c.kind)->view_lines(c.bits),
        .bits = image.data + TM_FILTER_HEADER,
    };
    if (contract != NULL) *contract = c;
    return TAMIS_OK;
}

bool tm_filter_may_contain_slow(const tm_filter_view *v, uint64_t hash)
{
    const tm_filter_ops *ops = tm_filter_ops_of((uint32_t)v->kind);
    return ops == NULL || ops->test(v, hash);
}

void tm_filter_prefetch_slow(const tm_filter_view *v, uint64_t hash)
{
    const tm_filter_ops *ops = tm_filter_ops_of((uint32_t)v->kind);
    if (ops != NULL) ops->prefetch(v, hash);
}

void tm_filter_may_contain_many(const tm_filter_view *v, const uint64_t *hashes, size_t n,
                                bool *out)
{
    const tm_filter_ops *ops = tm_filter_ops_of((uint32_t)v->kind);
    if (ops != NULL) {
        ops->test_many(v, hashes, n, out);
    } else {
        for (size_t i = 0; i < n; i++) out[i] = true;
    }
}

bool tm_filter_contains_all(const tm_filter_view *v, const uint64_t *hashes, size_t n,
                            size_t *missing)
{
    enum { GROUP = 64 };
    bool maybe[GROUP];
    for (size_t at = 0; at < n; at += GROUP) {
        size_t count = TM_MIN(n - at, GROUP);
        tm_filter_may_contain_many(v, hashes + at, count, maybe);
        for (size_t i = 0; i < count; i++) {
            if (maybe[i]) continue;
            if (missing != NULL) *missing = at + i;
            return false;
        }
    }
    return true;
}

void tm_filter_observe(const tm_filter_view *v, tm_filter_observed *out)
{
    const tm_filter_ops *ops = tm_filter_ops_of((uint32_t)v->kind);
    if (ops != NULL) {
        ops->observe(v, NULL, out);
    } else {
        *out = (tm_filter_observed){.rate = 1};
    }
}
