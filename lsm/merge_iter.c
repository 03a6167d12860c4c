// SPDX-License-Identifier: BSD-2-Clause
#include "lsm/merge_iter.h"

#include "base/mem.h"

typedef struct player { // a child in the tournament
    uint64_t head;      // of its key, upside down when walking back; at its end the greatest
    tm_iter *it;
} player;

typedef struct merge_iter {
    tm_iter it;
    tm_order order;
    bool back; // the direction in which the tree is played
    size_t n;
    player *players;
    uint32_t *tree; // [0] the winner; [1 .. n) losers
} merge_iter;

static inline merge_iter *of(tm_iter *it)
{
    return (merge_iter *)(void *)it;
}

// ---- The tournament ----------------------------------------------------------------------------

static inline void set_head(const merge_iter *m, player *p)
{
    uint64_t head = 0;
    if (!p->it->valid) {
        head = UINT64_MAX;
    } else if (m->order.bytewise) {
        head = tm_head64(p->it->key.data, p->it->key.len);
        if (m->back) head = ~head;
    }
    p->head = head;
}

// Whether child a's entry comes before child b's in the direction of the walk.
static bool wins_tie(const merge_iter *m, uint32_t a, uint32_t b)
{
    const tm_iter *x = m->players[a].it, *y = m->players[b].it;
    if (!x->valid || !y->valid) return x->valid || (!y->valid && a < b);
    int c = tm_order_compare_internal(&m->order, x->key, x->trailer, y->key, y->trailer);
    if (c == 0) c = a < b ? -1 : 1;
    return m->back ? c > 0 : c < 0;
}

static inline bool wins(const merge_iter *m, uint32_t a, uint32_t b)
{
    uint64_t x = m->players[a].head, y = m->players[b].head;
    if (TM_LIKELY(x != y)) return x < y;
    return wins_tie(m, a, b);
}

// Plays the matches of child w from its leaf up.
static inline void replay(merge_iter *m, uint32_t w)
{
    for (size_t i = (w + m->n) / 2; i > 0; i /= 2) {
        uint32_t other = m->tree[i];
        if (wins(m, other, w)) {
            m->tree[i] = w;
            w = other;
        }
    }
    m->tree[0] = w;
}

// Plays all matches: who comes first to an inner place waits there for the other side's winner.
static void play_all(merge_iter *m)
{
    for (size_t i = 0; i < m->n; i++) {
        set_head(m, &m->players[i]);
        m->tree[i] = UINT32_MAX;
    }
    for (uint32_t child = 0; child < m->n; child++) {
        uint32_t w = child;
        size_t i = (child + m->n) / 2;
        while (i > 0 && m->tree[i] != UINT32_MAX) {
            uint32_t other = m->tree[i];
            if (wins(m, other, w)) {
                m->tree[i] = w;
                w = other;
            }
            i /= 2;
        }
        m->tree[i] = w;
    }
}

// Shows the winner's entry, or the end.
static inline void show(merge_iter *m)
{
    const tm_iter *c = m->players[m->tree[0]].it;
    m->it.valid = c->valid;
    m->it.key = c->key;
    m->it.trailer = c->trailer;
    m->it.value = c->value;
}

static void fail_as(merge_iter *m, const tm_iter *child)
{
    m->it.error = child->error;
    tm_iter_fail(&m->it, child->status);
}

// After every child was moved.
static void begin(merge_iter *m, bool back)
{
    m->it.status = TAMIS_OK;
    for (size_t i = 0; i < m->n; i++) {
        const tm_iter *c = m->players[i].it;
        if (!c->valid && c->status != TAMIS_OK) {
            fail_as(m, c);
            return;
        }
    }
    m->back = back;
    play_all(m);
    show(m);
}

// After the current child was moved in the direction of the walk.
static inline void go_on(merge_iter *m)
{
    uint32_t w = m->tree[0];
    player *p = &m->players[w];
    if (TM_UNLIKELY(!p->it->valid && p->it->status != TAMIS_OK)) {
        fail_as(m, p->it);
        return;
    }
    set_head(m, p);
    replay(m, w);
    show(m);
}

// ---- Movements ---------------------------------------------------------------------------------

static void merge_first(tm_iter *it)
{
    merge_iter *m = of(it);
    for (size_t i = 0; i < m->n; i++) m->players[i].it->ops->first(m->players[i].it);
    begin(m, false);
}

static void merge_last(tm_iter *it)
{
    merge_iter *m = of(it);
    for (size_t i = 0; i < m->n; i++) m->players[i].it->ops->last(m->players[i].it);
    begin(m, true);
}

static void merge_seek(tm_iter *it, tm_slice key, uint64_t trailer)
{
    merge_iter *m = of(it);
    for (int stage = 0; stage < TM_ITER_STAGES; stage++) { // their memory waits overlap
        for (size_t i = 0; i < m->n; i++) {
            tm_iter *c = m->players[i].it;
            if (c->ops->approach != NULL) c->ops->approach(c, key, trailer, stage);
        }
    }
    for (size_t i = 0; i < m->n; i++) m->players[i].it->ops->seek(m->players[i].it, key, trailer);
    begin(m, false);
}

static void merge_seek_before(tm_iter *it, tm_slice key, uint64_t trailer)
{
    merge_iter *m = of(it);
    for (size_t i = 0; i < m->n; i++) {
        m->players[i].it->ops->seek_before(m->players[i].it, key, trailer);
    }
    begin(m, true);
}

// Puts a child that is not the current one to the other side of the current entry, which it may
// have too: the entries of earlier children then stand before the current one.
static void cross(const merge_iter *m, uint32_t i, bool back)
{
    tm_iter *c = m->players[i].it;
    tm_slice key = m->it.key;
    uint64_t trailer = m->it.trailer;
    bool same_before = i < m->tree[0]; // an equal entry of this child comes before the current one
    uint64_t from = same_before && trailer > 0 ? trailer - 1 : trailer; // the next place in order
    if (back) {
        c->ops->seek_before(c, key, from);
    } else {
        c->ops->seek(c, key, from);
    }
}

static void turn(merge_iter *m, bool back)
{
    for (uint32_t i = 0; i < m->n; i++) {
        if (i != m->tree[0]) cross(m, i, back);
    }
    tm_iter *c = m->players[m->tree[0]].it; // last: its key was needed
    if (back) {
        c->ops->prev(c);
    } else {
        c->ops->next(c);
    }
    begin(m, back);
}

static void merge_next(tm_iter *it)
{
    merge_iter *m = of(it);
    if (TM_UNLIKELY(m->back)) {
        turn(m, false);
        return;
    }
    tm_iter *c = m->players[m->tree[0]].it;
    c->ops->next(c);
    go_on(m);
}

static void merge_prev(tm_iter *it)
{
    merge_iter *m = of(it);
    if (TM_UNLIKELY(!m->back)) {
        turn(m, true);
        return;
    }
    tm_iter *c = m->players[m->tree[0]].it;
    c->ops->prev(c);
    go_on(m);
}

// ---- Life --------------------------------------------------------------------------------------

static void merge_destroy(tm_iter *it)
{
    merge_iter *m = of(it);
    for (size_t i = 0; i < m->n; i++) tm_iter_destroy(m->players[i].it);
    tm_free(m->players);
    tm_free(m->tree);
    tm_free(m);
}

static void merge_rest(tm_iter *it)
{
    merge_iter *m = of(it);
    for (size_t i = 0; i < m->n; i++) tm_iter_rest(m->players[i].it);
}

static const tm_iter_ops merge_ops = {merge_first,       merge_last, merge_seek,
                                      merge_seek_before, merge_next, merge_prev,
                                      merge_destroy,     merge_rest, NULL};

static void end(tm_iter *it)
{
    it->valid = false;
}

static void end_at(tm_iter *it, tm_slice key, uint64_t trailer)
{
    (void)key;
    (void)trailer;
    it->valid = false;
}

static void end_destroy(tm_iter *it)
{
    tm_free(it);
}

static const tm_iter_ops empty_ops = {end, end, end_at, end_at, end, end, end_destroy, NULL, NULL};

static int create_empty(tm_iter **out, tamis_error *err)
{
    *out = tm_calloc(1, sizeof(**out));
    if (*out == NULL) return tm_fail_nomem(err);
    (*out)->ops = &empty_ops;
    return TAMIS_OK;
}

int tm_merge_iter_create(const tm_order *order, tm_iter **children, size_t n, tm_iter **out,
                         tamis_error *err)
{
    *out = NULL;
    if (n == 0) return create_empty(out, err);
    if (n == 1) {
        *out = children[0];
        return TAMIS_OK;
    }
    merge_iter *m = n <= UINT32_MAX / 2 ? tm_calloc(1, sizeof(*m)) : NULL;
    player *players = tm_calloc(n, sizeof(*players));
    uint32_t *tree = tm_calloc(n, sizeof(*tree));
    if (m == NULL || players == NULL || tree == NULL) {
        tm_free(tree);
        tm_free(players);
        tm_free(m);
        for (size_t i = 0; i < n; i++) tm_iter_destroy(children[i]);
        return tm_fail_nomem(err);
    }
    m->it.ops = &merge_ops;
    m->order = *order;
    m->n = n;
    m->players = players;
    m->tree = tree;
    for (size_t i = 0; i < n; i++) players[i].it = children[i];
    *out = &m->it;
    return TAMIS_OK;
}

size_t tm_merge_iter_child(const tm_iter *it)
{
    if (it->ops != &merge_ops) return 0;
    return ((const merge_iter *)(const void *)it)->tree[0];
}

void tm_merge_iter_skip_child(tm_iter *it, const tm_slice *to, bool back)
{
    assert(it->valid);
    bool merges = it->ops == &merge_ops;
    tm_iter *c = merges ? of(it)->players[of(it)->tree[0]].it : it;
    assert(!merges || of(it)->back == back);
    if (to != NULL && back) {
        c->ops->seek_before(c, *to, UINT64_MAX);
    } else if (to != NULL) {
        c->ops->seek(c, *to, UINT64_MAX);
    } else if (back) { // before its first
        c->ops->first(c);
        if (c->valid) c->ops->prev(c);
    } else {
        c->ops->last(c);
        if (c->valid) c->ops->next(c);
    }
    if (merges) go_on(of(it));
}
