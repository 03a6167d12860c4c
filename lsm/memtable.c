// SPDX-License-Identifier: BSD-2-Clause
#include "lsm/memtable.h"

#include "base/mem.h"
#include "lsm/mem_ranges.h"
#include "lsm/memtree.h"

enum {
    CHUNK_MIN = 64 << 10,
    CHUNK_MAX = 4 << 20,
    CHUNKS = 16,             // of a write buffer
    FILTER_BYTES_A_BIT = 12, // of a write buffer
    FILTER_WORDS_MIN = 64,
    PROBES = 4 // bits of a key, all in one word
};

struct tm_memtable {
    // Fixed after create.
    tm_order order;
    uint64_t hash_seed;
    _Atomic uint64_t *filter;
    size_t filter_words;

    _Atomic uint32_t refs;
    tm_memtree tree;
    tm_mem_ranges ranges;
    tm_mem_arena arena;                // the writer's
    _Atomic uint64_t entries, deletes; // stored by the writer
    tm_cache *cache;                   // the writer's: where memory is charged; NULL so far
    size_t charged;
};

// ---- Life --------------------------------------------------------------------------------------

int tm_memtable_create(const tm_order *order, uint64_t hash_seed, size_t write_buffer,
                       tm_memtable **out, tamis_error *err)
{
    *out = NULL;
    tm_memtable *m = tm_alloc_aligned(TM_CACHE_LINE, sizeof(*m)); // the tree's alignment
    if (m == NULL) return tm_fail_nomem(err);
    memset(m, 0, sizeof(*m));
    int st = tm_mem_ranges_init(&m->ranges, order, err);
    if (st != TAMIS_OK) {
        tm_free(m);
        return st;
    }
    m->order = *order;
    m->hash_seed = hash_seed;
    size_t words = write_buffer / FILTER_BYTES_A_BIT / 64;
    m->filter_words = TM_MAX(words, (size_t)FILTER_WORDS_MIN);
    m->filter = tm_calloc(m->filter_words, sizeof(*m->filter));
    size_t chunk = TM_MAX(write_buffer / CHUNKS, (size_t)CHUNK_MIN);
    tm_mem_arena_init(&m->arena, TM_MIN(chunk, (size_t)CHUNK_MAX));
    atomic_init(&m->entries, 0);
    atomic_init(&m->deletes, 0);
    atomic_init(&m->refs, 1);
    if (m->filter == NULL || !tm_memtree_init(&m->tree, order, &m->arena)) {
        tm_memtable_unref(m);
        return tm_fail_nomem(err);
    }
    *out = m;
    return TAMIS_OK;
}

void tm_memtable_ref(tm_memtable *m)
{
    atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
}

void tm_memtable_unref(tm_memtable *m)
{
    // Release: what this thread did with it comes before the free; acquire: the free sees it.
    if (m == NULL || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1) return;
    if (m->cache != NULL) tm_cache_charge(m->cache, -(int64_t)m->charged);
    tm_mem_ranges_deinit(&m->ranges);
    tm_mem_arena_deinit(&m->arena);
    tm_free(m->filter);
    tm_free(m);
}

void tm_memtable_charge(tm_memtable *m, tm_cache *cache)
{
    size_t bytes = tm_memtable_bytes(m);
    if (TM_LIKELY(bytes == m->charged)) return;
    m->cache = cache;
    tm_cache_charge(cache, (int64_t)bytes - (int64_t)m->charged);
    m->charged = bytes;
}

// ---- The filter --------------------------------------------------------------------------------

// The upper bits of the hash choose the word, the lower ones the bits in it.
static inline _Atomic uint64_t *filter_word(const tm_memtable *m, uint64_t hash)
{
    return &m->filter[tm_mulhi64(hash, m->filter_words)];
}

static inline uint64_t filter_bits(uint64_t hash)
{
    uint64_t bits = 0;
    for (unsigned i = 0; i < PROBES; i++) bits |= (uint64_t)1 << (hash >> (6 * i) & 63);
    return bits;
}

static inline void filter_add(tm_memtable *m, uint64_t hash)
{
    // Relaxed, by M2; and no read-modify-write, as there is one writer.
    _Atomic uint64_t *word = filter_word(m, hash);
    uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
    atomic_store_explicit(word, old | filter_bits(hash), memory_order_relaxed);
}

static inline bool filter_has(const tm_memtable *m, uint64_t hash)
{
    uint64_t bits = filter_bits(hash);
    return (atomic_load_explicit(filter_word(m, hash), memory_order_relaxed) & bits) == bits;
}

void tm_memtable_prefetch(const tm_memtable *m, uint64_t hash)
{
    __builtin_prefetch((const void *)filter_word(m, hash));
}

// ---- Writing -----------------------------------------------------------------------------------

// Bytes that one entry or range delete takes beside its keys and values, rounded.
#define OVERHEAD (TM_MAX(sizeof(tm_mem_entry), (size_t)TM_MEM_RANGE_HEAD) + 7)

int tm_memtable_reserve(tm_memtable *m, size_t n, size_t count, tamis_error *err)
{
    size_t nodes = tm_memtree_bound(&m->tree, count);
    if (nodes == SIZE_MAX || n > PTRDIFF_MAX / 2 || nodes > PTRDIFF_MAX / 4 ||
        count > PTRDIFF_MAX / 4 / OVERHEAD) {
        return tm_fail_nomem(err);
    }
    if (tm_mem_arena_ensure(&m->arena, n + nodes + count * OVERHEAD)) return TAMIS_OK;
    return tm_fail_nomem(err);
}

static void count_entry(tm_memtable *m, tm_kind kind)
{
    // Relaxed, and no read-modify-write: figures with one writer.
    uint64_t n = atomic_load_explicit(&m->entries, memory_order_relaxed);
    atomic_store_explicit(&m->entries, n + 1, memory_order_relaxed);
    if (kind != TM_KIND_DELETE && kind != TM_KIND_SINGLE_DELETE && kind != TM_KIND_DELETE_EXPIRY) {
        return;
    }
    n = atomic_load_explicit(&m->deletes, memory_order_relaxed);
    atomic_store_explicit(&m->deletes, n + 1, memory_order_relaxed);
}

int tm_memtable_add(tm_memtable *m, tm_slice key, uint64_t trailer, tm_slice value, uint64_t hash,
                    tamis_error *err)
{
    if (key.len > UINT16_MAX || value.len > INT32_MAX) {
        return tm_fail(err, TAMIS_TOOLARGE, "a key of %zu or a value of %zu bytes", key.len,
                       value.len);
    }
    __builtin_prefetch((const void *)filter_word(m, hash), 1);
    tm_memtree_path path;
    size_t need, bytes = tm_mem_arena_round(sizeof(tm_mem_entry) + key.len + value.len);
    tm_memtree_locate(&m->tree, key, trailer, &path, &need);
    if (!tm_mem_arena_ensure(&m->arena, bytes + need)) return tm_fail_nomem(err);
    tm_mem_entry *e = tm_mem_arena_alloc(&m->arena, bytes);
    e->trailer = trailer;
    e->key_len = (uint32_t)key.len;
    e->value_len = (uint32_t)value.len;
    if (key.len != 0) memcpy(e->bytes, key.data, key.len);
    if (value.len != 0) memcpy(e->bytes + key.len, value.data, value.len);
    filter_add(m, hash); // M2
    tm_memtree_link(&m->tree, &m->arena, &path, e);
    count_entry(m, tm_trailer_kind(trailer));
    return TAMIS_OK;
}

int tm_memtable_add_range(tm_memtable *m, tm_slice start, tm_slice limit, uint64_t seq,
                          tamis_error *err)
{
    if (start.len > UINT16_MAX || limit.len > UINT16_MAX) {
        return tm_fail(err, TAMIS_TOOLARGE, "a range of keys of %zu and %zu bytes", start.len,
                       limit.len);
    }
    if (!tm_mem_arena_ensure(&m->arena, tm_mem_ranges_need(start, limit))) {
        return tm_fail_nomem(err);
    }
    tm_mem_ranges_add(&m->ranges, &m->arena, start, limit, seq);
    count_entry(m, TM_KIND_RANGE_DELETE);
    return TAMIS_OK;
}

// ---- Reading -----------------------------------------------------------------------------------

bool tm_memtable_get(const tm_memtable *m, tm_slice key, uint64_t trailer, uint64_t hash,
                     uint64_t *found_trailer, tm_slice *value)
{
    if (!filter_has(m, hash)) return false;
    tm_memtree_cursor c;
    const tm_mem_entry *e = tm_memtree_seek(&m->tree, &c, key, trailer);
    if (e == NULL || tm_order_compare(&m->order, tm_mem_entry_key(e), key) != 0) return false;
    *found_trailer = e->trailer;
    *value = tm_mem_entry_value(e);
    return true;
}

int tm_memtable_range_cover(tm_memtable *m, tm_slice key, uint64_t seq, uint64_t *cover,
                            tamis_error *err)
{
    return tm_mem_ranges_cover(&m->ranges, key, seq, cover, err);
}

int tm_memtable_range_sets(tm_memtable *m, tm_buf *out, tamis_error *err)
{
    return tm_mem_ranges_sets(&m->ranges, out, err);
}

int tm_memtable_ranges(tm_memtable *m, const tm_range_set **out, tamis_error *err)
{
    return tm_mem_ranges_all(&m->ranges, out, err);
}

size_t tm_memtable_data(const tm_memtable *m)
{
    return atomic_load_explicit(&m->arena.used, memory_order_relaxed) +
           atomic_load_explicit(&m->ranges.bytes, memory_order_relaxed);
}

size_t tm_memtable_bytes(const tm_memtable *m)
{
    return sizeof(*m) + m->filter_words * sizeof(*m->filter) +
           atomic_load_explicit(&m->arena.bytes, memory_order_relaxed) +
           atomic_load_explicit(&m->ranges.bytes, memory_order_relaxed);
}

uint64_t tm_memtable_entries(const tm_memtable *m)
{
    return atomic_load_explicit(&m->entries, memory_order_relaxed);
}

uint64_t tm_memtable_deletes(const tm_memtable *m)
{
    return atomic_load_explicit(&m->deletes, memory_order_relaxed);
}

uint64_t tm_memtable_hash_seed(const tm_memtable *m)
{
    return m->hash_seed;
}

// ---- Iterating ---------------------------------------------------------------------------------

typedef struct mem_iter {
    tm_iter it;
    tm_memtree_cursor at;
    tm_memtable *m;
} mem_iter;

static inline mem_iter *of(tm_iter *it)
{
    return (mem_iter *)(void *)it;
}

static inline void show(tm_iter *it, const tm_mem_entry *e)
{
    it->status = TAMIS_OK;
    it->valid = e != NULL;
    if (e == NULL) return;
    it->key = tm_mem_entry_key(e);
    it->trailer = e->trailer;
    it->value = tm_mem_entry_value(e);
}

static void iter_first(tm_iter *it)
{
    show(it, tm_memtree_first(&of(it)->m->tree, &of(it)->at));
}

static void iter_last(tm_iter *it)
{
    show(it, tm_memtree_last(&of(it)->m->tree, &of(it)->at));
}

static void iter_seek(tm_iter *it, tm_slice key, uint64_t trailer)
{
    show(it, tm_memtree_seek(&of(it)->m->tree, &of(it)->at, key, trailer));
}

static void iter_seek_before(tm_iter *it, tm_slice key, uint64_t trailer)
{
    show(it, tm_memtree_seek_before(&of(it)->m->tree, &of(it)->at, key, trailer));
}

static void iter_next(tm_iter *it)
{
    show(it, tm_memtree_next(&of(it)->at));
}

static void iter_prev(tm_iter *it)
{
    show(it, tm_memtree_prev(&of(it)->at));
}

static void iter_destroy(tm_iter *it)
{
    tm_memtable_unref(of(it)->m);
    tm_free(it);
}

static const tm_iter_ops iter_ops = {iter_first,       iter_last, iter_seek,
                                     iter_seek_before, iter_next, iter_prev,
                                     iter_destroy,     NULL,      NULL};

bool tm_memtable_has_ranges(const tm_memtable *m)
{
    return atomic_load_explicit(&m->ranges.newest, memory_order_acquire) != NULL;
}

int tm_memtable_iter_create(tm_memtable *m, tm_iter **out, tamis_error *err)
{
    mem_iter *i = tm_calloc(1, sizeof(*i));
    *out = NULL;
    if (i == NULL) return tm_fail_nomem(err);
    i->it.ops = &iter_ops;
    tm_memtable_ref(m);
    i->m = m;
    *out = &i->it;
    return TAMIS_OK;
}
