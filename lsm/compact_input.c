// SPDX-License-Identifier: BSD-2-Clause

#include "lsm/compact_input.h"

#include "base/mem.h"
#include "lsm/merge_iter.h"
#include "sstable/table_scan.h"

// ---- One table ---------------------------------------------------------------------------------

// A sequential scan whose file is opened at the first movement and held until it is closed.
typedef struct table_input {
    tm_iter base;
    tm_compact_input *in;
    tm_file_ref *file;
    tm_open_table *place;
    tm_file *open;
    tm_iter *scan;
} table_input;

static void on_read(void *ctx, uint64_t bytes)
{
    ((tm_compact_input *)ctx)->bytes_read += bytes;
}

static void mirror(table_input *it)
{
    it->base.valid = it->scan->valid;
    it->base.status = it->scan->status;
    it->base.key = it->scan->key;
    it->base.trailer = it->scan->trailer;
    it->base.value = it->scan->value;
    if (!it->base.valid && it->base.status != TAMIS_OK) it->base.error = it->scan->error;
}

// False: the iterator has failed.
static bool ensure_open(table_input *it)
{
    tm_compact_input *in = it->in;
    tamis_error *err = &it->base.error;
    tm_table_scan_options o = {in->readahead, on_read, in};
    it->base.valid = false;
    it->base.status = TAMIS_OK;
    if (it->scan != NULL) return true;
    int st = TAMIS_OK;
    if (it->place == NULL) {
        st = tm_table_cache_add(in->files, it->file->meta->number, &it->place, err);
    }
    if (st == TAMIS_OK && it->open == NULL) {
        st = tm_table_cache_acquire(in->files, it->place, &it->open, err);
    }
    if (st == TAMIS_OK) {
        st = tm_table_scan_create(it->open, it->file->meta, &in->order, &o, &it->scan, err);
    }
    if (st != TAMIS_OK) tm_iter_fail(&it->base, st);
    return st == TAMIS_OK;
}

static void close_table(table_input *it)
{
    tm_iter_destroy(it->scan);
    it->scan = NULL;
    if (it->open != NULL) tm_table_cache_release(it->in->files, it->place);
    it->open = NULL;
    tm_table_cache_remove(it->in->files, it->place);
    it->place = NULL;
}

static void table_first(tm_iter *base)
{
    table_input *it = TM_CONTAINER(base, table_input, base);
    if (!ensure_open(it)) return;
    it->scan->ops->first(it->scan);
    mirror(it);
}
static void table_seek(tm_iter *base, tm_slice key, uint64_t trailer)
{
    table_input *it = TM_CONTAINER(base, table_input, base);
    if (!ensure_open(it)) return;
    it->scan->ops->seek(it->scan, key, trailer);
    mirror(it);
}
static void table_next(tm_iter *base)
{
    table_input *it = TM_CONTAINER(base, table_input, base);
    it->scan->ops->next(it->scan);
    mirror(it);
}
static void table_destroy(tm_iter *base)
{
    table_input *it = TM_CONTAINER(base, table_input, base);
    close_table(it);
    tm_free(it);
}
static const tm_iter_ops table_ops = {
    .first = table_first, .seek = table_seek, .next = table_next, .destroy = table_destroy};

static int make_table(tm_compact_input *in, tm_file_ref *f, tm_iter **out, tamis_error *err)
{
    table_input *it = tm_calloc(1, sizeof *it);
    if (it == NULL) return tm_fail_nomem(err);
    it->base.ops = &table_ops;
    it->in = in;
    it->file = f;
    *out = &it->base;
    return TAMIS_OK;
}

// ---- The tables of a sorted level --------------------------------------------------------------

typedef struct chain_input {
    tm_iter base;
    tm_iter **parts;
    uint32_t count, at;
} chain_input;

// Takes over the part at hand, or goes on to the next one that has an entry.
static void settle(chain_input *it)
{
    for (;;) {
        tm_iter *p = it->parts[it->at];
        it->base.valid = p->valid;
        it->base.status = p->status;
        if (p->valid) {
            it->base.key = p->key;
            it->base.trailer = p->trailer;
            it->base.value = p->value;
            return;
        }
        if (p->status != TAMIS_OK) {
            it->base.error = p->error;
            return;
        }
        if (it->at + 1 == it->count) return;
        close_table(TM_CONTAINER(p, table_input, base));
        it->at++;
        it->parts[it->at]->ops->first(it->parts[it->at]);
    }
}

static void chain_first(tm_iter *base)
{
    chain_input *it = TM_CONTAINER(base, chain_input, base);
    it->at = 0;
    it->parts[0]->ops->first(it->parts[0]);
    settle(it);
}
static void chain_seek(tm_iter *base, tm_slice key, uint64_t trailer)
{
    chain_input *it = TM_CONTAINER(base, chain_input, base);
    table_input *t = TM_CONTAINER(it->parts[0], table_input, base);
    it->at = 0;
    while (it->at + 1 < it->count && tm_file_locate(&t->in->order, t->file->meta, key) > 0) {
        it->at++;
        t = TM_CONTAINER(it->parts[it->at], table_input, base);
    }
    table_seek(&t->base, key, trailer);
    settle(it);
}
static void chain_next(tm_iter *base)
{
    chain_input *it = TM_CONTAINER(base, chain_input, base);
    it->parts[it->at]->ops->next(it->parts[it->at]);
    settle(it);
}
static void chain_destroy(tm_iter *base)
{
    chain_input *it = TM_CONTAINER(base, chain_input, base);
    for (uint32_t i = 0; i < it->count; i++) tm_iter_destroy(it->parts[i]);
    tm_free(it->parts);
    tm_free(it);
}
static const tm_iter_ops chain_ops = {
    .first = chain_first, .seek = chain_seek, .next = chain_next, .destroy = chain_destroy};

static int make_chain(tm_compact_input *in, tm_file_ref *const *files, uint32_t n, tm_iter **out,
                      tamis_error *err)
{
    chain_input *it = tm_calloc(1, sizeof *it);
    if (it == NULL) return tm_fail_nomem(err);
    it->base.ops = &chain_ops;
    it->parts = tm_calloc(n, sizeof *it->parts);
    int st = it->parts ? TAMIS_OK : tm_fail_nomem(err);
    for (uint32_t i = 0; st == TAMIS_OK && i < n; i++) {
        st = make_table(in, files[i], &it->parts[i], err);
        if (st == TAMIS_OK) it->count++;
    }
    if (st != TAMIS_OK) {
        chain_destroy(&it->base);
        return st;
    }
    *out = &it->base;
    return TAMIS_OK;
}

// ---- All of them -------------------------------------------------------------------------------

int tm_compact_input_open(tm_compact_input *in, const tm_pick *p, tm_iter **out, tamis_error *err)
{
    uint32_t n = 0, lone = p->level == 0 ? p->count[0] : 0;
    tm_iter **children = tm_calloc((size_t)lone + 2, sizeof *children);
    if (children == NULL) return tm_fail_nomem(err);
    int st = TAMIS_OK;
    for (uint32_t i = 0; st == TAMIS_OK && i < lone; i++) {
        st = make_table(in, p->inputs[0][i], &children[n], err);
        if (st == TAMIS_OK) n++;
    }
    for (int w = 0; st == TAMIS_OK && w < 2; w++) {
        if (p->count[w] == 0 || (w == 0 && lone > 0)) continue;
        st = make_chain(in, p->inputs[w], p->count[w], &children[n], err);
        if (st == TAMIS_OK) n++;
    }
    if (st == TAMIS_OK) {
        st = tm_merge_iter_create(&in->order, children, n, out, err); // takes them
    } else {
        for (uint32_t i = 0; i < n; i++) tm_iter_destroy(children[i]);
    }
    tm_free(children);
    return st;
}
