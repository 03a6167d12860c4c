// SPDX-License-Identifier: BSD-2-Clause

#include "sstable/range_set.h"

#include "base/mem.h"

typedef struct item { // a range delete; places are in the builder's bytes
    uint64_t seq;
    uint64_t start, limit;
    uint32_t start_len, limit_len;
    uint32_t unbounded, zero;
} item;

// ---- Collecting --------------------------------------------------------------------------------

void tm_range_builder_init(tm_range_builder *b)
{
    memset(b, 0, sizeof *b);
}

void tm_range_builder_deinit(tm_range_builder *b)
{
    tm_buf_deinit(&b->bytes);
    tm_buf_deinit(&b->items);
}

int tm_range_builder_add(tm_range_builder *b, tm_slice start, tm_slice limit, uint64_t seq)
{
    size_t kept = b->bytes.len;
    item it = {.seq = seq,
               .start = kept,
               .start_len = (uint32_t)start.len,
               .limit = kept + start.len,
               .limit_len = (uint32_t)limit.len,
               .unbounded = limit.len == 0};
    int st = tm_buf_append(&b->bytes, start.data, start.len);
    if (st == TAMIS_OK) st = tm_buf_append(&b->bytes, limit.data, limit.len);
    if (st == TAMIS_OK) st = tm_buf_append(&b->items, &it, sizeof it);
    if (st != TAMIS_OK) {
        b->bytes.len = kept;
        return st;
    }
    b->n++;
    return TAMIS_OK;
}

int tm_range_builder_add_set(tm_range_builder *b, const tm_range_set *s)
{
    tm_slice open = {0};
    for (uint32_t i = 0; i < s->n; i++) {
        const tm_range_fragment *f = &s->fragments[i];
        for (uint32_t k = 0; k < f->count; k++) {
            TM_TRY(tm_range_builder_add(b, f->start, f->unbounded ? open : f->limit,
                                        s->seqs[f->first + k]));
        }
    }
    return TAMIS_OK;
}

// ---- Fragmenting -------------------------------------------------------------------------------

typedef struct sweep {
    const tm_order *order;
    const uint8_t *bytes;
    item *items;      // by start, ascending
    uint32_t n, next; // items before next were active once
    tm_slice *edges;  // all starts and limits, ascending, each once
    uint32_t edge_count;
    uint32_t *active; // items that cover the stretch at hand
    uint32_t active_count;
    tm_buf fragments, seqs;
} sweep;

static tm_slice start_of(const sweep *s, const item *it)
{
    return tm_slice_of(s->bytes + it->start, it->start_len);
}
static tm_slice limit_of(const sweep *s, const item *it)
{
    return tm_slice_of(s->bytes + it->limit, it->limit_len);
}

// Heap sort by a comparison that may be the user's: never more than n log n calls, no recursion,
// and no harm from an inconsistent order.
static void sort_edges(sweep *s)
{
    uint32_t n = s->edge_count;
    tm_slice *a = s->edges;
    for (uint32_t begin = n / 2, end = n; end > 1;) {
        tm_slice moved;
        if (begin > 0) {
            moved = a[--begin];
        } else {
            moved = a[--end];
            a[end] = a[0];
        }
        uint32_t hole = begin, child;
        while ((child = 2 * hole + 1) < end) {
            if (child + 1 < end && tm_order_compare(s->order, a[child], a[child + 1]) < 0) child++;
            if (tm_order_compare(s->order, moved, a[child]) >= 0) break;
            a[hole] = a[child];
            hole = child;
        }
        a[hole] = moved;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (kept == 0 || tm_order_compare(s->order, a[kept - 1], a[i]) != 0) a[kept++] = a[i];
    }
    s->edge_count = kept;
}

static void sort_items(sweep *s)
{
    uint32_t n = s->n;
    item *a = s->items;
    for (uint32_t begin = n / 2, end = n; end > 1;) {
        item moved;
        if (begin > 0) {
            moved = a[--begin];
        } else {
            moved = a[--end];
            a[end] = a[0];
        }
        uint32_t hole = begin, child;
        while ((child = 2 * hole + 1) < end) {
            if (child + 1 < end && tm_order_compare(s->order, start_of(s, &a[child]),
                                                    start_of(s, &a[child + 1])) < 0) {
                child++;
            }
            if (tm_order_compare(s->order, start_of(s, &moved), start_of(s, &a[child])) >= 0) break;
            a[hole] = a[child];
            hole = child;
        }
        a[hole] = moved;
    }
}

// Active items are kept newest first.
static void activate(sweep *s, uint32_t index)
{
    uint32_t i = s->active_count++;
    while (i > 0 && s->items[s->active[i - 1]].seq < s->items[index].seq) {
        s->active[i] = s->active[i - 1];
        i--;
    }
    s->active[i] = index;
}

static void step_to(sweep *s, tm_slice edge)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->active_count; i++) {
        const item *it = &s->items[s->active[i]];
        if (it->unbounded || tm_order_compare(s->order, limit_of(s, it), edge) > 0) {
            s->active[kept++] = s->active[i];
        }
    }
    s->active_count = kept;
    for (; s->next < s->n; s->next++) {
        const item *it = &s->items[s->next];
        if (tm_order_compare(s->order, start_of(s, it), edge) > 0) break;
        bool empty =
            !it->unbounded && tm_order_compare(s->order, start_of(s, it), limit_of(s, it)) >= 0;
        if (!empty) activate(s, s->next);
    }
}

// The fragment [edge, limit); grows the one before if that ends here and is covered alike.
static int emit(sweep *s, tm_slice edge, tm_slice limit, bool unbounded)
{
    uint32_t first = (uint32_t)(s->seqs.len / sizeof(uint64_t)), count = 0;
    uint64_t last = 0;
    for (uint32_t i = 0; i < s->active_count; i++) {
        uint64_t seq = s->items[s->active[i]].seq;
        if (i > 0 && seq == last) continue;
        TM_TRY(tm_buf_append(&s->seqs, &seq, sizeof seq));
        last = seq;
        count++;
    }
    if (s->fragments.len > 0) {
        tm_range_fragment *p =
            (tm_range_fragment *)(void *)(s->fragments.data + s->fragments.len) - 1;
        if (!p->unbounded && p->count == count && tm_order_compare(s->order, p->limit, edge) == 0 &&
            memcmp(s->seqs.data + p->first * sizeof(uint64_t),
                   s->seqs.data + first * sizeof(uint64_t), count * sizeof(uint64_t)) == 0) {
            p->limit = limit;
            p->unbounded = unbounded;
            s->seqs.len = first * sizeof(uint64_t);
            return TAMIS_OK;
        }
    }
    tm_range_fragment f = {edge, limit, unbounded, first, count};
    return tm_buf_append(&s->fragments, &f, sizeof f);
}

static int run_sweep(sweep *s)
{
    tm_slice open = {0};
    for (uint32_t i = 0; i < s->edge_count; i++) {
        step_to(s, s->edges[i]);
        if (s->active_count == 0) continue;
        bool last = i + 1 == s->edge_count; // only ranges without an end get here
        TM_TRY(emit(s, s->edges[i], last ? open : s->edges[i + 1], last));
    }
    return TAMIS_OK;
}

int tm_range_builder_finish(const tm_range_builder *b, const tm_order *order, tm_range_set *out)
{
    memset(out, 0, sizeof *out);
    if (b->n == 0) return TAMIS_OK;
    uint8_t *bytes = tm_alloc(b->bytes.len + 1);
    sweep s = {.order = order, .bytes = bytes, .n = b->n};
    s.items = tm_alloc(b->items.len);
    s.edges = tm_alloc((size_t)b->n * 2 * sizeof *s.edges);
    s.active = tm_alloc((size_t)b->n * sizeof *s.active);
    int st = bytes && s.items && s.edges && s.active ? TAMIS_OK : TAMIS_NOMEM;
    if (st == TAMIS_OK) {
        if (b->bytes.len > 0) memcpy(bytes, b->bytes.data, b->bytes.len);
        memcpy(s.items, b->items.data, b->items.len);
        for (uint32_t i = 0; i < s.n; i++) {
            s.edges[s.edge_count++] = start_of(&s, &s.items[i]);
            if (!s.items[i].unbounded) s.edges[s.edge_count++] = limit_of(&s, &s.items[i]);
        }
        sort_edges(&s);
        sort_items(&s);
        st = run_sweep(&s);
    }
    tm_free(s.items);
    tm_free(s.edges);
    tm_free(s.active);
    if (st != TAMIS_OK) {
        tm_free(bytes);
        tm_buf_deinit(&s.fragments);
        tm_buf_deinit(&s.seqs);
        return st;
    }
    out->fragments = (tm_range_fragment *)(void *)s.fragments.data;
    out->n = (uint32_t)(s.fragments.len / sizeof(tm_range_fragment));
    out->seqs = (uint64_t *)(void *)s.seqs.data;
    out->bytes = bytes;
    out->memory = s.fragments.cap + s.seqs.cap + b->bytes.len + 1;
    return TAMIS_OK;
}

// ---- Asking ------------------------------------------------------------------------------------

void tm_range_set_deinit(tm_range_set *s)
{
    tm_free(s->fragments);
    tm_free(s->seqs);
    tm_free(s->bytes);
    memset(s, 0, sizeof *s);
}

uint32_t tm_range_set_find(const tm_range_set *s, const tm_order *order, tm_slice key)
{
    uint32_t low = 0, high = s->n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        const tm_range_fragment *f = &s->fragments[mid];
        if (!f->unbounded && tm_order_compare(order, f->limit, key) <= 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

uint64_t tm_range_set_cover(const tm_range_set *s, const tm_order *order, tm_slice key,
                            uint64_t seq)
{
    uint32_t i = tm_range_set_find(s, order, key);
    if (i == s->n || tm_order_compare(order, s->fragments[i].start, key) > 0) return 0;
    const tm_range_fragment *f = &s->fragments[i];
    uint32_t low = f->first, high = f->first + f->count; // descending: the first that is <= seq
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (s->seqs[mid] > seq)
            low = mid + 1;
        else
            high = mid;
    }
    return low < f->first + f->count ? s->seqs[low] : 0;
}

// ---- The block ---------------------------------------------------------------------------------

static int encode(const tm_range_set *s, tm_buf *out)
{
    TM_TRY(tm_buf_put_varint(out, s->n));
    for (uint32_t i = 0; i < s->n; i++) {
        const tm_range_fragment *f = &s->fragments[i];
        TM_TRY(tm_buf_put_slice(out, f->start));
        TM_TRY(tm_buf_put_slice(out, f->limit));
        TM_TRY(tm_buf_put_varint(out, f->count));
        for (uint32_t k = 0; k < f->count; k++) {
            TM_TRY(tm_buf_put_varint(out, s->seqs[f->first + k]));
        }
    }
    return TAMIS_OK;
}

int tm_range_set_encode(const tm_range_set *s, tm_buf *out)
{
    size_t begin = out->len;
    int st = encode(s, out);
    if (st != TAMIS_OK) out->len = begin;
    return st;
}

// One fragment; c->bad if it does not parse or stand behind the one before it.
static int decode_fragment(tm_cursor *c, tm_range_set *s, const tm_order *order, bool last,
                           tm_buf *seqs)
{
    tm_range_fragment *f = &s->fragments[s->n];
    f->start = tm_read_slice(c);
    f->limit = tm_read_slice(c);
    f->unbounded = f->limit.len == 0;
    uint64_t count = tm_read_varint(c), before = UINT64_MAX;
    if (c->bad || count == 0 || count > tm_cursor_left(c) || (f->unbounded && !last) ||
        (!f->unbounded && tm_order_compare(order, f->start, f->limit) >= 0) ||
        (s->n > 0 && tm_order_compare(order, s->fragments[s->n - 1].limit, f->start) > 0)) {
        c->bad = true;
        return TAMIS_OK;
    }
    f->first = (uint32_t)(seqs->len / sizeof(uint64_t));
    f->count = (uint32_t)count;
    for (uint64_t k = 0; k < count; k++) {
        uint64_t seq = tm_read_varint(c);
        if (c->bad || seq >= before || seq > TM_MAX_SEQ) {
            c->bad = true;
            return TAMIS_OK;
        }
        TM_TRY(tm_buf_append(seqs, &seq, sizeof seq));
        before = seq;
    }
    s->n++;
    return TAMIS_OK;
}

int tm_range_set_decode(tm_range_set *s, tm_slice raw, const tm_order *order, tamis_error *err)
{
    memset(s, 0, sizeof *s);
    tm_buf seqs;
    tm_buf_init(&seqs);
    s->bytes = tm_alloc(raw.len + 1);
    if (s->bytes == NULL) return tm_fail_nomem(err);
    if (raw.len > 0) memcpy(s->bytes, raw.data, raw.len);
    tm_cursor c = tm_cursor_of(tm_slice_of(s->bytes, raw.len));
    uint64_t n = tm_read_varint(&c);
    if (n > tm_cursor_left(&c) / 4) c.bad = true; // a fragment has at least four bytes
    int st = TAMIS_OK;
    if (!c.bad && n > 0) {
        s->fragments = tm_alloc((size_t)n * sizeof *s->fragments);
        if (s->fragments == NULL) st = TAMIS_NOMEM;
    }
    for (uint64_t i = 0; st == TAMIS_OK && !c.bad && i < n; i++) {
        st = decode_fragment(&c, s, order, i + 1 == n, &seqs);
    }
    s->seqs = (uint64_t *)(void *)seqs.data;
    s->memory = raw.len + 1 + (size_t)n * sizeof *s->fragments + seqs.cap;
    if (st == TAMIS_OK && !c.bad && tm_cursor_left(&c) == 0) return TAMIS_OK;
    tm_range_set_deinit(s);
    return st != TAMIS_OK ? tm_fail_nomem(err)
                          : tm_fail_corrupt(err, 0, 0, "the range deletes cannot be read");
}
