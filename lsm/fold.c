// SPDX-License-Identifier: BSD-2-Clause

#include "lsm/fold.h"

#include "base/mem.h"

void tm_fold_deinit(tm_fold *f)
{
    tm_buf_deinit(&f->bytes);
    tm_buf_deinit(&f->ends);
    tm_buf_deinit(&f->slices);
    tm_buf_deinit(&f->out);
}

void tm_fold_clear(tm_fold *f)
{
    tm_buf_clear(&f->bytes);
    tm_buf_clear(&f->ends);
}

int tm_fold_add(tm_fold *f, tm_slice operand)
{
    size_t end = f->bytes.len + operand.len;
    TM_TRY(tm_buf_append(&f->bytes, operand.data, operand.len));
    return tm_buf_append(&f->ends, &end, sizeof end);
}

typedef struct sink {
    tm_buf *out;
    int status;
    bool given;
} sink;

static int emit(void *ctx, const void *value, size_t vlen)
{
    sink *s = ctx;
    s->given = true;
    if (s->status != TAMIS_OK) return s->status;
    if (vlen > TAMIS_MAX_VALUE)
        s->status = TAMIS_TOOLARGE;
    else
        s->status = tm_buf_set(s->out, tm_slice_of(value, vlen));
    return s->status;
}

static int failed(const tamis_merger *m, int status, const sink *s, tamis_error *err)
{
    if (s->status == TAMIS_NOMEM) return tm_fail_nomem(err);
    if (s->status == TAMIS_TOOLARGE) {
        return tm_fail(err, TAMIS_TOOLARGE, "the merger \"%.100s\" made a value above %zu bytes",
                       m->name, TAMIS_MAX_VALUE);
    }
    bool ours = status == TAMIS_OK || status > 0 || status < TAMIS_POISONED ||
                status == TAMIS_NOTFOUND || status == TAMIS_BUSY;
    return tm_fail(err, ours ? TAMIS_ABORTED : status, "the merger \"%.100s\" %s", m->name,
                   status == TAMIS_OK ? "handed out no value" : "failed");
}

// Operands oldest first, without the skipped oldest ones.
static int turn_round(tm_fold *f)
{
    size_t n = tm_fold_count(f);
    const size_t *ends = (const size_t *)(const void *)f->ends.data;
    tm_buf_clear(&f->slices);
    for (size_t i = n; i > 0; i--) {
        size_t begin = i > 1 ? ends[i - 2] : 0;
        tamis_slice s = {f->bytes.data + begin, ends[i - 1] - begin};
        TM_TRY(tm_buf_append(&f->slices, &s, sizeof s));
    }
    return TAMIS_OK;
}

static int call(tm_fold *f, const tamis_merger *m, tm_slice key, const tamis_slice *base,
                const tamis_slice *operands, size_t n, tamis_error *err)
{
    sink s = {&f->out, TAMIS_OK, false};
    tm_buf_clear(&f->out);
    int st = m->merge(m->ctx, key.data, key.len, base, operands, n, emit, &s);
    if (st != TAMIS_OK || s.status != TAMIS_OK || !s.given) return failed(m, st, &s, err);
    return TAMIS_OK;
}

int tm_fold_finish(tm_fold *f, const tamis_merger *m, tm_slice key, const tm_slice *base,
                   tamis_error *err)
{
    if (m == NULL) {
        return tm_fail(err, TAMIS_UNSUPPORTED,
                       "the key has merge operands, and the family's merger was not given at open");
    }
    if (turn_round(f) != TAMIS_OK) return tm_fail_nomem(err);
    tamis_slice b = {base ? base->data : NULL, base ? base->len : 0};
    return call(f, m, key, base ? &b : NULL, (const tamis_slice *)(const void *)f->slices.data,
                tm_fold_count(f), err);
}

int tm_fold_operands(tm_fold *f, const tamis_merger *m, tm_slice key, tamis_error *err)
{
    if (turn_round(f) != TAMIS_OK) return tm_fail_nomem(err);
    const tamis_slice *s = (const tamis_slice *)(const void *)f->slices.data;
    return call(f, m, key, &s[0], s + 1, tm_fold_count(f) - 1, err);
}

// ---- Ready-made mergers ------------------------------------------------------------------------

static int add(void *ctx, const void *key, size_t klen, const tamis_slice *base,
               const tamis_slice *operands, size_t n,
               int (*give)(void *sink, const void *value, size_t vlen), void *to)
{
    uint64_t sum = 0;
    uint8_t out[8];
    (void)ctx;
    (void)key;
    (void)klen;
    if (base != NULL && base->len != 8) return TAMIS_INVALID;
    if (base != NULL) sum = tm_get64(base->data);
    for (size_t i = 0; i < n; i++) {
        if (operands[i].len != 8) return TAMIS_INVALID;
        sum += tm_get64(operands[i].data);
    }
    tm_put64(out, sum);
    return give(to, out, sizeof out);
}

static int append(void *ctx, const void *key, size_t klen, const tamis_slice *base,
                  const tamis_slice *operands, size_t n,
                  int (*give)(void *sink, const void *value, size_t vlen), void *to)
{
    tm_buf all = {0};
    (void)ctx;
    (void)key;
    (void)klen;
    int st = base ? tm_buf_append(&all, base->data, base->len) : TAMIS_OK;
    for (size_t i = 0; st == TAMIS_OK && i < n; i++) {
        st = tm_buf_append(&all, operands[i].data, operands[i].len);
    }
    if (st == TAMIS_OK) st = give(to, all.data, all.len);
    tm_buf_deinit(&all);
    return st;
}

const tamis_merger *tamis_merger_add(void)
{
    static const tamis_merger m = {sizeof m, "tamis.add", NULL, TAMIS_MERGER_ASSOCIATIVE, add};
    return &m;
}

const tamis_merger *tamis_merger_append(void)
{
    static const tamis_merger m = {sizeof m, "tamis.append", NULL, TAMIS_MERGER_ASSOCIATIVE,
                                   append};
    return &m;
}
