// SPDX-License-Identifier: BSD-2-Clause
#include "lsm/memtree.h"

enum {
    SLOTS = 14, // so that places and their number fit in the order word
    HALF = SLOTS / 2,
    STREAK = 2 // additions at the end of a leaf that make a sequence
};

struct tm_memtree_node {
    _Atomic uint64_t order; // bits 0-3: n; 4 bits each from 4: the slot at place 0, 1, ...
    uint32_t heads[SLOTS];  // of the keys, behind their common bytes
    uint16_t common;        // so many bytes all keys here share
    uint16_t level;         // 0: leaf
    const tm_mem_entry *entries[SLOTS];
};
typedef struct leaf {
    tm_memtree_node node;
    _Atomic(struct leaf *) next, prev; // T3
} leaf;
typedef struct inner {
    tm_memtree_node node; // entries[0] and heads[0] are not used: slot 0 is always at place 0
    _Atomic(tm_memtree_node *) children[SLOTS];
} inner;

static_assert(sizeof(leaf) % 8 == 0 && sizeof(inner) % 8 == 0, "the arena hands out whole words");

// ---- The order word ----------------------------------------------------------------------------

#define IDENTITY 0x00dcba9876543210u // slot i at place i

static inline uint32_t order_count(uint64_t order)
{
    return (uint32_t)(order & 15);
}

static inline uint32_t order_slot(uint64_t order, uint32_t place)
{
    return (uint32_t)(order >> (4 + 4 * place)) & 15;
}

static uint64_t order_identity(uint32_t n)
{
    return (IDENTITY & (((uint64_t)1 << (4 * n)) - 1)) << 4 | n;
}

// With the next free slot, n, at place; n < SLOTS.
static uint64_t order_insert(uint64_t order, uint32_t place)
{
    uint32_t shift = 4 + 4 * place;
    uint64_t before = order & (((uint64_t)1 << shift) - 1);
    uint64_t behind = (order >> shift) << 4 | order_count(order);
    return (before | behind << shift) + 1;
}

// T1: pairs with the release store in publish.
static inline uint64_t load_order(const tm_memtree_node *n)
{
    return atomic_load_explicit(&n->order, memory_order_acquire);
}

// T1: the slots are written before whoever sees the word looks at them.
static inline void publish(tm_memtree_node *n, uint64_t order)
{
    atomic_store_explicit(&n->order, order, memory_order_release);
}

// ---- Searching a node --------------------------------------------------------------------------

static inline uint32_t head_of(const tm_memtree_node *n, const tm_order *o, tm_slice key)
{
    if (TM_UNLIKELY(!o->bytewise)) return 0;
    return tm_head32(key.data + n->common, key.len - n->common);
}

static inline int compare(const tm_order *o, const tm_mem_entry *e, tm_slice key, uint64_t trailer)
{
    return tm_order_compare_internal(o, tm_mem_entry_key(e), e->trailer, key, trailer);
}

// Where heads are equal: the first place in [low, high) whose entry is at or behind the key.
static uint32_t search_entries(const tm_memtree_node *n, uint64_t order, const tm_order *o,
                               tm_slice key, uint64_t trailer, uint32_t low, uint32_t high)
{
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (compare(o, n->entries[order_slot(order, mid)], key, trailer) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

// The first place, from slot first on, whose entry is at or behind the key. Counting needs neither
// the order of the heads nor a branch on them.
static inline uint32_t search(const tm_memtree_node *n, uint64_t order, uint32_t first,
                              const tm_order *o, tm_slice key, uint64_t trailer)
{
    uint32_t head = head_of(n, o, key), count = order_count(order), below = first, equal = 0;
    for (uint32_t i = first; i < count; i++) {
        below += n->heads[i] < head;
        equal += n->heads[i] == head;
    }
    if (equal == 0) return below;
    return search_entries(n, order, o, key, trailer, below, below + equal);
}

static inline const inner *inner_of(const tm_memtree_node *n)
{
    return (const inner *)(const void *)n;
}

// The child that holds the key: the last one whose first entry is at or before it, so the one
// before the first place at or behind the next trailer. (From trailer 0 on, which no entry has, the
// end of the child before is as good: its next entry is the same.)
static inline uint32_t search_inner(const tm_memtree_node *n, uint64_t order, const tm_order *o,
                                    tm_slice key, uint64_t trailer)
{
    return search(n, order, 1, o, key, trailer > 0 ? trailer - 1 : 0) - 1;
}

static inline tm_memtree_node *child(const tm_memtree_node *n, uint64_t order, uint32_t place)
{
    // Acquire: pairs with the release in set_child.
    return atomic_load_explicit(&inner_of(n)->children[order_slot(order, place)],
                                memory_order_acquire);
}

static inline void prefetch_node(const tm_memtree_node *n)
{
    for (size_t i = 0; i < sizeof(leaf); i += TM_CACHE_LINE) {
        __builtin_prefetch((const char *)n + i);
    }
}

// ---- Nodes -------------------------------------------------------------------------------------

static uint16_t common_bytes(const tm_order *o, const tm_mem_entry *low, const tm_mem_entry *high)
{
    if (!o->bytewise || low == NULL || high == NULL) return 0;
    size_t n = tm_slice_common(tm_mem_entry_key(low), tm_mem_entry_key(high));
    return (uint16_t)TM_MIN(n, UINT16_MAX);
}

static void init_node(tm_memtree_node *n, const tm_order *o, uint16_t level,
                      const tm_mem_entry *low, const tm_mem_entry *high)
{
    atomic_init(&n->order, 0);
    n->level = level;
    n->common = common_bytes(o, low, high);
}

static leaf *new_leaf(tm_mem_arena *a, const tm_order *o, const tm_mem_entry *low,
                      const tm_mem_entry *high)
{
    leaf *l = tm_mem_arena_alloc(a, sizeof(*l));
    init_node(&l->node, o, 0, low, high);
    return l;
}

static inner *new_inner(tm_mem_arena *a, const tm_order *o, uint16_t level, const tm_mem_entry *low,
                        const tm_mem_entry *high)
{
    inner *n = tm_mem_arena_alloc(a, sizeof(*n));
    init_node(&n->node, o, level, low, high);
    return n;
}

static void set_slot(tm_memtree_node *n, const tm_order *o, uint32_t slot, const tm_mem_entry *e)
{
    n->entries[slot] = e;
    n->heads[slot] = head_of(n, o, tm_mem_entry_key(e));
}

// Release: pairs with the acquire in child; what stands below is written before.
static void set_child(inner *n, uint32_t slot, tm_memtree_node *c)
{
    atomic_store_explicit(&n->children[slot], c, memory_order_release);
}

// Copies places [from, to) to the empty node n, which nobody sees yet. The first entry of an inner
// node is left out.
static void copy_places(tm_memtree_node *n, const tm_order *o, const tm_memtree_node *source,
                        uint32_t from, uint32_t to)
{
    uint64_t order = load_order(source);
    bool same_heads = n->common == source->common; // then the keys need not be looked at
    for (uint32_t i = n->level > 0 ? from + 1 : from; i < to; i++) {
        uint32_t slot = order_slot(order, i);
        if (same_heads) {
            n->entries[i - from] = source->entries[slot];
            n->heads[i - from] = source->heads[slot];
        } else {
            set_slot(n, o, i - from, source->entries[slot]);
        }
    }
    atomic_store_explicit(&n->order, order_identity(to - from), memory_order_relaxed);
}

static inner *inner_at(const tm_memtree_step *s)
{
    return (inner *)(void *)s->node;
}

static leaf *leaf_at(const tm_memtree_step *s)
{
    return (leaf *)(void *)s->node;
}

bool tm_memtree_init(tm_memtree *t, const tm_order *order, tm_mem_arena *a)
{
    if (!tm_mem_arena_ensure(a, sizeof(leaf))) return false;
    memset(t, 0, sizeof(*t));
    t->order = *order;
    leaf *l = new_leaf(a, order, NULL, NULL);
    atomic_init(&l->next, NULL);
    atomic_init(&l->prev, NULL);
    atomic_init(&t->root, &l->node);
    t->counts[0] = 1;
    return true;
}

// ---- Finding the place of an addition ----------------------------------------------------------

static bool is_full(const tm_memtree_node *n)
{
    return order_count(atomic_load_explicit(&n->order, memory_order_relaxed)) == SLOTS;
}

// Where keys ascend, a full leaf stays whole, and what comes begins a new leaf. (A leaf that was
// left whole is split in halves when it is met again: the hint has moved on, and its high is set.)
static bool leaf_appends(const tm_memtree *t, const tm_memtree_step *s)
{
    if (s->at < SLOTS) return false;
    return s->high == NULL || (s->node == t->hint && t->streak >= STREAK);
}

// Bytes of the new nodes that an entry at the path's end takes, at most.
static size_t needed(const tm_memtree_path *path)
{
    if (TM_LIKELY(!is_full(path->steps[0].node))) return 0;
    size_t need = 2 * sizeof(leaf);
    for (uint32_t i = 1; i <= path->height; i++) {
        if (!is_full(path->steps[i].node)) return need;
        need += 2 * sizeof(inner);
    }
    return need + sizeof(inner); // a new root
}

// At the end of the leaf that was added to last? Then nothing has to be searched.
static bool locate_by_hint(const tm_memtree *t, tm_slice key, uint64_t trailer,
                           tm_memtree_path *path)
{
    if (t->streak < STREAK || is_full(t->hint)) return false;
    uint64_t order = load_order(t->hint);
    uint32_t n = order_count(order);
    const tm_mem_entry *last = t->hint->entries[order_slot(order, n - 1)], *high = t->hint_high;
    if (compare(&t->order, last, key, trailer) >= 0) return false;
    if (high != NULL && compare(&t->order, high, key, trailer) <= 0) return false;
    path->height = 0;
    path->steps[0] = (tm_memtree_step){.node = t->hint, .high = high, .at = n};
    return true;
}

void tm_memtree_locate(const tm_memtree *t, tm_slice key, uint64_t trailer, tm_memtree_path *path,
                       size_t *need)
{
    *need = 0;
    if (locate_by_hint(t, key, trailer, path)) return;
    tm_memtree_node *n = atomic_load_explicit(&t->root, memory_order_relaxed);
    const tm_mem_entry *low = NULL, *high = NULL;
    path->height = n->level;
    while (n->level > 0) {
        uint64_t order = load_order(n);
        uint32_t at = search_inner(n, order, &t->order, key, trailer);
        tm_memtree_node *below = child(n, order, at);
        prefetch_node(below);
        path->steps[n->level] = (tm_memtree_step){n, low, high, at};
        if (at > 0) low = n->entries[order_slot(order, at)];
        if (at + 1 < order_count(order)) high = n->entries[order_slot(order, at + 1)];
        n = below;
    }
    uint32_t at = search(n, load_order(n), 0, &t->order, key, trailer);
    path->steps[0] = (tm_memtree_step){n, low, high, at};
    *need = needed(path);
}

// ---- Adding ------------------------------------------------------------------------------------

// Puts an entry into a free slot of n.
static void add_slot(tm_memtree_node *n, const tm_order *o, uint32_t place, const tm_mem_entry *e)
{
    uint64_t order = atomic_load_explicit(&n->order, memory_order_relaxed);
    set_slot(n, o, order_count(order), e);
    publish(n, order_insert(order, place)); // T1
}

static void new_root(tm_memtree *t, tm_mem_arena *a, tm_memtree_node *left,
                     const tm_mem_entry *first, tm_memtree_node *right)
{
    uint16_t level = (uint16_t)(left->level + 1);
    assert(level < TM_MEMTREE_LEVELS);
    inner *n = new_inner(a, &t->order, level, NULL, NULL);
    set_child(n, 0, left);
    set_child(n, 1, right);
    set_slot(&n->node, &t->order, 1, first);
    publish(&n->node, order_identity(2));
    t->counts[level] = 1;
    // Release: pairs with the acquire of readers that begin at the root.
    atomic_store_explicit(&t->root, &n->node, memory_order_release);
}

static void add_child(tm_memtree *t, tm_mem_arena *a, tm_memtree_path *path, uint32_t level,
                      tm_memtree_node *left, const tm_mem_entry *first, tm_memtree_node *right);

static inner *copy_inner(const tm_memtree *t, tm_mem_arena *a, const tm_memtree_step *s,
                         uint32_t from, uint32_t to, const tm_mem_entry *low,
                         const tm_mem_entry *high)
{
    inner *n = new_inner(a, &t->order, s->node->level, low, high);
    uint64_t order = load_order(s->node);
    for (uint32_t i = from; i < to; i++) set_child(n, i - from, child(s->node, order, i));
    copy_places(&n->node, &t->order, s->node, from, to);
    return n;
}

// Makes room in a full inner node of the path by a split in halves (as T2), and changes its step to
// the half that holds the path's child.
static void split_inner(tm_memtree *t, tm_mem_arena *a, tm_memtree_path *path, uint32_t level)
{
    tm_memtree_step *s = &path->steps[level];
    const tm_mem_entry *first = s->node->entries[order_slot(load_order(s->node), HALF)];
    inner *left = copy_inner(t, a, s, 0, HALF, s->low, first);
    inner *right = copy_inner(t, a, s, HALF, SLOTS, first, s->high);
    add_child(t, a, path, level + 1, &left->node, first, &right->node);
    t->counts[level]++;
    if (s->at < HALF) {
        *s = (tm_memtree_step){&left->node, s->low, first, s->at};
    } else {
        *s = (tm_memtree_step){&right->node, first, s->high, s->at - HALF};
    }
}

// In the inner node at level of the path, the path's child becomes left (if it is another), and
// right, which begins with the entry first, comes behind it. T5: right is shown before left
// replaces the old child, which has all that either has.
static void add_child(tm_memtree *t, tm_mem_arena *a, tm_memtree_path *path, uint32_t level,
                      tm_memtree_node *left, const tm_mem_entry *first, tm_memtree_node *right)
{
    if (level > path->height) {
        new_root(t, a, left, first, right);
        return;
    }
    tm_memtree_step *s = &path->steps[level];
    if (is_full(s->node)) split_inner(t, a, path, level);
    set_child(inner_at(s), order_count(load_order(s->node)), right);
    add_slot(s->node, &t->order, s->at + 1, first);
    set_child(inner_at(s), order_slot(load_order(s->node), s->at), left);
}

static leaf *load_leaf(_Atomic(leaf *) const *link)
{
    // Acquire: pairs with the release in store_leaf.
    return atomic_load_explicit(link, memory_order_acquire);
}

// T3. The leaf that a link leads to is written before, with its own links.
static void store_leaf(_Atomic(leaf *) *link, leaf *l)
{
    atomic_store_explicit(link, l, memory_order_release);
}

// Puts left (which may be old itself) and right in the place of old.
static void link_leaves(leaf *old, leaf *left, leaf *right)
{
    leaf *before = load_leaf(&old->prev), *behind = load_leaf(&old->next);
    atomic_init(&right->prev, left);
    atomic_init(&right->next, behind);
    if (left != old) {
        atomic_init(&left->prev, before);
        atomic_init(&left->next, right);
        if (before != NULL) store_leaf(&before->next, left);
    } else {
        store_leaf(&left->next, right);
    }
    if (behind != NULL) store_leaf(&behind->prev, right);
}

// T2. The first n entries go to one leaf, the others to another; e, too. The step becomes the leaf
// that e is in.
static void split_leaf(tm_memtree *t, tm_mem_arena *a, tm_memtree_path *path, uint32_t n,
                       const tm_mem_entry *e)
{
    tm_memtree_step *s = &path->steps[0];
    const tm_mem_entry *low = s->low, *high = s->high;
    const tm_mem_entry *first =
        n < SLOTS ? s->node->entries[order_slot(load_order(s->node), n)] : e;
    leaf *old = leaf_at(s), *left = old, *right = new_leaf(a, &t->order, first, high);
    // A whole leaf is copied only if its heads tell more, now that it has a bound.
    if (n < SLOTS || common_bytes(&t->order, low, first) > s->node->common) {
        left = new_leaf(a, &t->order, low, first);
        copy_places(&left->node, &t->order, s->node, 0, n);
    }
    copy_places(&right->node, &t->order, s->node, n, SLOTS);
    if (s->at <= n && n < SLOTS) {
        *s = (tm_memtree_step){&left->node, low, first, s->at};
    } else {
        *s = (tm_memtree_step){&right->node, first, high, s->at - n};
    }
    add_slot(s->node, &t->order, s->at, e);
    link_leaves(old, left, right);
    add_child(t, a, path, 1, &left->node, first, &right->node);
    t->counts[0]++;
}

void tm_memtree_link(tm_memtree *t, tm_mem_arena *a, tm_memtree_path *path, const tm_mem_entry *e)
{
    tm_memtree_step *s = &path->steps[0];
    uint32_t streak = s->node == t->hint ? t->streak : 0;
    if (!is_full(s->node)) {
        streak = s->at == order_count(load_order(s->node)) ? streak + 1 : 0;
        add_slot(s->node, &t->order, s->at, e);
    } else {
        bool appends = leaf_appends(t, s);
        streak = appends ? streak + 1 : 0;
        split_leaf(t, a, path, appends ? SLOTS : HALF, e);
    }
    t->hint = s->node;
    t->hint_high = s->high;
    t->streak = TM_MIN(streak, (uint32_t)STREAK);
}

// How often nodes of a level are split by n additions to it. One that is there may be full, and
// split twice (first at its end, which leaves it full). One that comes has 8 slots filled at most,
// so takes 6 additions before.
static size_t splits_bound(size_t nodes, size_t n)
{
    return TM_MIN(n, 2 * nodes + n / 3 + 2);
}

size_t tm_memtree_bound(const tm_memtree *t, size_t n)
{
    if (n > SIZE_MAX / (32 * sizeof(inner))) return SIZE_MAX;
    uint32_t height = atomic_load_explicit(&t->root, memory_order_relaxed)->level;
    size_t splits = splits_bound(t->counts[0], n), bytes = 2 * sizeof(leaf) * splits;
    for (uint32_t level = 1; level <= height; level++) {
        splits = splits_bound(t->counts[level], splits);
        bytes += 2 * sizeof(inner) * splits;
    }
    while (splits > 0) { // a root above, which begins with 2 of 14
        splits /= 6;
        bytes += sizeof(inner) + 2 * sizeof(inner) * splits;
    }
    return bytes;
}

// ---- Reading -----------------------------------------------------------------------------------

static const tm_mem_entry *entry_at(const tm_memtree_cursor *c)
{
    return c->leaf->entries[order_slot(c->order, c->at)];
}

static void enter(tm_memtree_cursor *c, const leaf *l)
{
    c->leaf = &l->node;
    c->order = load_order(&l->node);
    c->at = 0;
}

// The entry at c, which may stand at the end of its leaf. Only the first leaf is ever empty.
static const tm_mem_entry *settle_forward(tm_memtree_cursor *c)
{
    while (TM_UNLIKELY(c->at >= order_count(c->order))) {
        const leaf *next = load_leaf(&((const leaf *)(const void *)c->leaf)->next);
        if (next == NULL) return NULL;
        enter(c, next);
    }
    return entry_at(c);
}

// The entry before c.
static const tm_mem_entry *step_back(tm_memtree_cursor *c)
{
    while (TM_UNLIKELY(c->at == 0)) {
        const leaf *prev = load_leaf(&((const leaf *)(const void *)c->leaf)->prev);
        if (prev == NULL) return NULL;
        enter(c, prev);
        c->at = order_count(c->order);
    }
    c->at--;
    return entry_at(c);
}

static const tm_memtree_node *load_root(const tm_memtree *t)
{
    // Acquire: pairs with the release in new_root.
    return atomic_load_explicit(&t->root, memory_order_acquire);
}

// T5: the child is that of the view only if the view is still the newest.
static inline const tm_memtree_node *child_for(const tm_memtree_node *n, const tm_order *o,
                                               tm_slice key, uint64_t trailer)
{
    const tm_memtree_node *c;
    uint64_t order;
    do {
        order = load_order(n);
        c = child(n, order, search_inner(n, order, o, key, trailer));
    } while (TM_UNLIKELY(load_order(n) != order));
    return c;
}

static const tm_memtree_node *last_child(const tm_memtree_node *n)
{
    const tm_memtree_node *c;
    uint64_t order;
    do {
        order = load_order(n);
        c = child(n, order, order_count(order) - 1);
    } while (load_order(n) != order);
    return c;
}

static inline void descend(const tm_memtree *t, tm_memtree_cursor *c, tm_slice key,
                           uint64_t trailer)
{
    const tm_memtree_node *n = load_root(t);
    while (n->level > 0) {
        n = child_for(n, &t->order, key, trailer);
        prefetch_node(n);
    }
    uint64_t order = load_order(n);
    *c = (tm_memtree_cursor){n, order, search(n, order, 0, &t->order, key, trailer)};
}

const tm_mem_entry *tm_memtree_first(const tm_memtree *t, tm_memtree_cursor *c)
{
    const tm_memtree_node *n = load_root(t);
    while (n->level > 0) n = child(n, load_order(n), 0);
    *c = (tm_memtree_cursor){n, load_order(n), 0};
    return settle_forward(c);
}

const tm_mem_entry *tm_memtree_last(const tm_memtree *t, tm_memtree_cursor *c)
{
    const tm_memtree_node *n = load_root(t);
    while (n->level > 0) n = last_child(n);
    *c = (tm_memtree_cursor){.leaf = n, .order = load_order(n)};
    c->at = order_count(c->order);
    return step_back(c);
}

const tm_mem_entry *tm_memtree_seek(const tm_memtree *t, tm_memtree_cursor *c, tm_slice key,
                                    uint64_t trailer)
{
    descend(t, c, key, trailer);
    bool at_end = c->at >= order_count(c->order);
    const tm_mem_entry *e = settle_forward(c);
    // The next leaf may be one that was appended meanwhile, and begin before the key. (The key need
    // not have that leaf's common bytes: heads do not apply.)
    while (TM_UNLIKELY(at_end) && e != NULL && compare(&t->order, e, key, trailer) < 0) {
        c->at =
            search_entries(c->leaf, c->order, &t->order, key, trailer, 0, order_count(c->order));
        e = settle_forward(c);
    }
    return e;
}

const tm_mem_entry *tm_memtree_seek_before(const tm_memtree *t, tm_memtree_cursor *c, tm_slice key,
                                           uint64_t trailer)
{
    descend(t, c, key, trailer);
    return step_back(c);
}

const tm_mem_entry *tm_memtree_next(tm_memtree_cursor *c)
{
    c->at++;
    return settle_forward(c);
}

const tm_mem_entry *tm_memtree_prev(tm_memtree_cursor *c)
{
    return step_back(c);
}
