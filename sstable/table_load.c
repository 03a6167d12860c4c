// SPDX-License-Identifier: BSD-2-Clause
//
// table_load.c - blocks from the file into their form in memory.
#include "base/mem.h"
#include "sstable/compress.h"
#include "sstable/table_internal.h"

// ---- Bytes of the file -------------------------------------------------------------------------

int tm_table_read(tm_table *t, uint64_t offset, void *buf, size_t n, tamis_error *err)
{
    tm_file *file;
    TM_TRY(tm_table_cache_acquire(t->env.files, t->file, &file, err));
    int st = tm_file_read(file, offset, buf, n, err);
    tm_table_cache_release(t->env.files, t->file);
    return st;
}

int tm_table_check_frame(const tm_table *t, tm_block_kind kind, const uint8_t *bytes,
                         uint64_t offset, uint32_t length, tm_frame *f, tamis_error *err)
{
    uint64_t number = t->meta.number;
    if (length < TM_FRAME_BYTES) {
        return tm_fail_corrupt(err, number, offset, "a %s block of %u bytes, less than its frame",
                               tm_block_kind_name((uint8_t)kind), length);
    }
    TM_TRY(tm_frame_decode(f, bytes, length, number, offset, err));
    if (tm_frame_length(f) != length) {
        return tm_fail_corrupt(err, number, offset,
                               "the %s block should have %u bytes with its frame, which says %llu",
                               tm_block_kind_name((uint8_t)kind), length,
                               (unsigned long long)tm_frame_length(f));
    }
    TM_TRY(tm_frame_verify(f, bytes, t->meta.id, number, offset, err));
    return tm_frame_expect(f, kind, number, offset, err);
}

// The checked frame at offset: in what was read ahead, or in *scratch, which the caller frees.
static int get_frame(tm_table *t, const tm_load *how, tm_block_kind kind, uint64_t offset,
                     uint32_t length, uint8_t **scratch, const uint8_t **bytes, tm_frame *f,
                     tamis_error *err)
{
    *bytes = tm_readahead_find(how->ahead, offset, length);
    if (*bytes == NULL) {
        *scratch = tm_alloc(length);
        if (*scratch == NULL) return tm_fail_nomem(err);
        TM_TRY(tm_table_read(t, offset, *scratch, length, err));
        *bytes = *scratch;
    }
    return tm_table_check_frame(t, kind, *bytes, offset, length, f, err);
}

static void count_read(const tm_load *how, tm_cached_kind kind, uint64_t bytes)
{
    how->counts->read_blocks[kind]++;
    how->counts->read_bytes[kind] += bytes;
}

// ---- Blocks of entries -------------------------------------------------------------------------

// What the three kinds differ in.
typedef struct form {
    size_t head_bytes;   // of the struct
    size_t entry_min;    // raw bytes that an entry takes at least
    size_t entry_parts;  // tm_partition an entry
    size_t entry_slots;  // slots an entry
} form;

static const form forms[] = {
    [TM_CACHED_DATA] = {sizeof(tm_data_block), 1, 0, 0},
    [TM_CACHED_INDEX] = {sizeof(tm_index_block), 2, 0, 1},
    [TM_CACHED_TOP] = {sizeof(tm_top_block), 2, 1, 2},
};

_Static_assert(offsetof(tm_index_block, block) == offsetof(tm_data_block, block), "one form");
_Static_assert(offsetof(tm_top_block, block) == offsetof(tm_data_block, block), "one form");

static void free_block(tm_cached *b) { tm_free(b); }

// Gives one piece of memory with the struct (what stands behind its tm_block is the caller's to
// fill), the raw bytes and the arrays. Partitions, if any, stand right before the slots.
static int build(tm_table *t, tm_cached_kind kind, const tm_frame *f, const uint8_t *payload,
                 uint64_t offset, void **out, tamis_error *err)
{
    const form *fm = &forms[kind];
    uint64_t n = f->entries;
    if (n > f->raw / fm->entry_min) {
        return tm_fail_corrupt(err, t->meta.number, offset, "%u entries in a block of %u bytes",
                               f->entries, f->raw);
    }
    // No overflow: raw is about 2^30 at most, and n is not above it.
    uint64_t raw_at = (fm->head_bytes + 15) & ~(uint64_t)15;
    uint64_t offsets_at = (raw_at + f->raw + 7) & ~(uint64_t)7;
    uint64_t parts_at = (offsets_at + (n + 1) * sizeof(uint32_t) + 7) & ~(uint64_t)7;
    uint64_t slots_at = parts_at + n * fm->entry_parts * sizeof(tm_partition);
    uint64_t slots = n * fm->entry_slots;
    uint64_t total = slots_at + slots * sizeof(tm_cache_slot);
    if (total > PTRDIFF_MAX) return tm_fail_nomem(err);
    uint8_t *mem = tm_alloc_aligned(TM_CACHE_LINE, (size_t)total);
    if (mem == NULL) return tm_fail_nomem(err);

    tm_cached *head = (tm_cached *)(void *)mem;
    tm_cached_init(head, t->env.cache, kind, (size_t)total, free_block);
    head->slots = (tm_cache_slot *)(void *)(mem + slots_at);
    head->slot_count = (uint32_t)slots;
    for (size_t i = 0; i < slots; i++) atomic_init(&head->slots[i], NULL);
    tm_block *block = (tm_block *)(void *)(mem + offsetof(tm_data_block, block));
    int st;
    TM_GOTO(tm_decompress(f, payload, mem + raw_at, t->meta.number, offset, err));
    TM_GOTO(tm_block_init(block, tm_slice_of(mem + raw_at, f->raw), f->entries, t->order.bytewise,
                          (uint32_t *)(void *)(mem + offsets_at), t->meta.number, offset, err));
    *out = mem;
    return TAMIS_OK;
out:
    tm_free(mem);
    return st;
}

// Reads the frame at offset and builds the block.
static int load_entries(tm_table *t, const tm_load *how, tm_cached_kind kind, tm_block_kind stored,
                        uint64_t offset, uint32_t length, void **out, tamis_error *err)
{
    uint8_t *scratch = NULL;
    const uint8_t *bytes = NULL;
    tm_frame f;
    int st;
    TM_GOTO(get_frame(t, how, stored, offset, length, &scratch, &bytes, &f, err));
    TM_GOTO(build(t, kind, &f, bytes + TM_FRAME_BYTES, offset, out, err));
    count_read(how, kind, length);
out:
    tm_free(scratch);
    return st;
}

// ---- Data and index ----------------------------------------------------------------------------

int tm_table_data_place(const tm_table *t, const tm_index_block *index, uint32_t i,
                        uint64_t *offset, uint32_t *length, tamis_error *err)
{
    tm_index_value v;
    uint64_t area = index->data_end - index->data_begin;
    if (!tm_index_value_decode(&v, tm_block_value(&index->block, i), area)) {
        return tm_fail_corrupt(err, t->meta.number, index->offset,
                               "entry %u of the index leads to no data block", i);
    }
    *offset = index->data_begin + v.offset;
    *length = v.length;
    return TAMIS_OK;
}

int tm_table_load_data(tm_table *t, const tm_load *how, tm_index_block *index, uint32_t i,
                       tm_data_block **out, tamis_error *err)
{
    uint64_t offset;
    uint32_t length;
    void *mem;
    TM_TRY(tm_table_data_place(t, index, i, &offset, &length, err));
    TM_TRY(load_entries(t, how, TM_CACHED_DATA, TM_BLOCK_DATA, offset, length, &mem, err));
    *out = (tm_data_block *)(void *)tm_cache_insert(t->env.cache, &index->head.slots[i],
                                                    &index->head, mem, how->cold);
    return TAMIS_OK;
}

int tm_table_load_index(tm_table *t, const tm_load *how, tm_top_block *top, uint32_t p,
                        tm_index_block **out, tamis_error *err)
{
    const tm_partition *part = &top->partitions[p];
    void *mem;
    TM_TRY(load_entries(t, how, TM_CACHED_INDEX, TM_BLOCK_INDEX, part->index_offset,
                        part->index_length, &mem, err));
    tm_index_block *index = mem;
    index->data_begin = part->data_offset;
    index->data_end = tm_partition_filter_offset(part);
    index->offset = part->index_offset;
    *out = (tm_index_block *)(void *)tm_cache_insert(
        t->env.cache, tm_table_index_slot(top, p), &top->head, &index->head, how->cold);
    return TAMIS_OK;
}

// ---- Filters -----------------------------------------------------------------------------------

#define FILTER_IMAGE_AT (3 * TM_CACHE_LINE)
_Static_assert(sizeof(tm_filter_block) + TM_FRAME_BYTES <= FILTER_IMAGE_AT, "the frame has room");

// OK, or why the filter in mem (its frame right before its image) cannot be used.
static int open_filter(tm_table *t, uint8_t *mem, uint64_t offset, uint32_t length)
{
    tm_frame f;
    tm_filter_contract contract;
    tm_filter_view view;
    const uint8_t *image = mem + FILTER_IMAGE_AT;
    TM_TRY(tm_table_check_frame(t, TM_BLOCK_FILTER, image - TM_FRAME_BYTES, offset, length, &f,
                                NULL));
    if (f.compression != TM_STORED_RAW) return TAMIS_UNSUPPORTED;
    TM_TRY(tm_filter_view_init(&view, tm_slice_of(image, f.stored), &contract, NULL));
    // Asked with hashes of another seed it would hide keys.
    if (contract.seed != t->meta.hash_seed || view.bits == NULL) return TAMIS_CORRUPT;
    ((tm_filter_block *)(void *)mem)->view = view;
    return TAMIS_OK;
}

tm_filter_block *tm_table_load_filter(tm_table *t, const tm_load *how, tm_top_block *top,
                                      uint32_t p)
{
    const tm_partition *part = &top->partitions[p];
    uint64_t offset = tm_partition_filter_offset(part);
    // What is no whole frame is read as one, and found wanting.
    size_t length = TM_MAX(part->filter_length, TM_FRAME_BYTES);
    size_t total = FILTER_IMAGE_AT + length - TM_FRAME_BYTES;
    uint8_t *mem = tm_alloc_aligned(TM_CACHE_LINE, total);
    if (mem == NULL) return NULL;
    int st = tm_table_read(t, offset, mem + FILTER_IMAGE_AT - TM_FRAME_BYTES, length, NULL);
    if (st == TAMIS_OK) {
        st = open_filter(t, mem, offset, part->filter_length);
        count_read(how, TM_CACHED_FILTER, length);
    }
    if (st != TAMIS_OK) { // a marker, so that it is not read again for each lookup
        tm_free(mem);
        if (st != TAMIS_CORRUPT && st != TAMIS_UNSUPPORTED) return NULL;
        total = sizeof(tm_filter_block);
        mem = tm_alloc_aligned(TM_CACHE_LINE, total);
        if (mem == NULL) return NULL;
        ((tm_filter_block *)(void *)mem)->view = (tm_filter_view){0};
    }
    tm_filter_block *filter = (tm_filter_block *)(void *)mem;
    tm_cached_init(&filter->head, t->env.cache, TM_CACHED_FILTER, total, free_block);
    return (tm_filter_block *)(void *)tm_cache_insert(
        t->env.cache, tm_table_filter_slot(top, p), &top->head, &filter->head, how->cold);
}

// ---- The tail: range deletes, properties, top level, footer ------------------------------------

typedef struct tail {
    uint8_t *bytes;
    uint64_t from; // its offset in the file
    tm_footer footer;
} tail;

static int tail_differs(const tm_table *t, tamis_error *err, const char *what)
{
    return tm_fail_corrupt(err, t->meta.number, t->meta.file_bytes - TM_TABLE_FOOTER_BYTES,
                           "the table's footer and the manifest differ in %s", what);
}

static int check_footer(const tm_table *t, const tm_footer *f, tamis_error *err)
{
    const tm_table_meta *m = &t->meta;
    if (memcmp(f->id, m->id, sizeof f->id) != 0) return tail_differs(t, err, "the table's id");
    if (tm_footer_tail(f) != m->tail_offset) return tail_differs(t, err, "where the tail begins");
    if (f->entries != m->entries) return tail_differs(t, err, "the number of entries");
    if (f->hash_seed != m->hash_seed) return tail_differs(t, err, "the hash seed");
    if ((f->range_length != 0) != (m->range_deletes != 0)) {
        return tail_differs(t, err, "whether there are range deletes");
    }
    if (((f->flags & TM_FOOTER_BYTEWISE) != 0) != t->order.bytewise) {
        return tail_differs(t, err, "the order of keys");
    }
    return TAMIS_OK;
}

static int read_whole_tail(tm_table *t, tail *a, tamis_error *err)
{
    const tm_table_meta *m = &t->meta;
    tm_file *file;
    uint64_t size = 0, n = m->file_bytes - m->tail_offset;
    TM_TRY(tm_table_cache_acquire(t->env.files, t->file, &file, err));
    int st;
    TM_GOTO(tm_file_size(file, &size, err));
    if (size != m->file_bytes) {
        TM_GOTO(tm_fail_corrupt(err, m->number, TM_MIN(size, m->file_bytes),
                                "the table has %llu bytes, by the manifest %llu",
                                (unsigned long long)size, (unsigned long long)m->file_bytes));
    }
    a->bytes = n <= PTRDIFF_MAX ? tm_alloc((size_t)n) : NULL;
    TM_GOTO(a->bytes != NULL ? TAMIS_OK : tm_fail_nomem(err));
    TM_GOTO(tm_file_read(file, m->tail_offset, a->bytes, (size_t)n, err));
out:
    tm_table_cache_release(t->env.files, t->file);
    return st;
}

// One read. a->bytes is the caller's to free, also after a failure.
static int read_tail(tm_table *t, tail *a, tamis_error *err)
{
    const tm_table_meta *m = &t->meta;
    *a = (tail){.from = m->tail_offset};
    if (m->tail_offset < TM_TABLE_HEADER_BYTES || m->file_bytes < m->tail_offset ||
        m->file_bytes - m->tail_offset < TM_TABLE_FOOTER_BYTES) {
        return tm_fail_corrupt(err, m->number, m->tail_offset,
                               "by the manifest the table's tail begins outside of the table");
    }
    TM_TRY(read_whole_tail(t, a, err));
    const uint8_t *footer = a->bytes + (m->file_bytes - m->tail_offset - TM_TABLE_FOOTER_BYTES);
    TM_TRY(tm_footer_decode(&a->footer, footer, m->file_bytes, m->number, err));
    return check_footer(t, &a->footer, err);
}

static int decode_ranges(tm_table *t, const tail *a, tm_range_set *set, tamis_error *err)
{
    const tm_footer *foot = &a->footer;
    uint64_t at = foot->range_offset;
    const uint8_t *bytes = a->bytes + (at - a->from);
    tm_frame f;
    TM_TRY(tm_table_check_frame(t, TM_BLOCK_RANGE, bytes, at, foot->range_length, &f, err));
    uint8_t *raw = tm_alloc(f.raw);
    if (raw == NULL) return tm_fail_nomem(err);
    tamis_error why = {0};
    int st;
    TM_GOTO(tm_decompress(&f, bytes + TM_FRAME_BYTES, raw, t->meta.number, at, err));
    st = tm_range_set_decode(set, tm_slice_of(raw, f.raw), &t->order, &why);
    if (st == TAMIS_CORRUPT) {
        st = tm_fail_corrupt(err, t->meta.number, at, "range deletes: %s", why.message);
    } else if (st != TAMIS_OK) {
        (void)tm_fail_copy(err, &why);
    } else if (set->n != foot->fragments || set->n != f.entries) {
        tm_range_set_deinit(set);
        st = tm_fail_corrupt(err, t->meta.number, at,
                             "the range deletes are not the %u fragments that the footer tells of",
                             foot->fragments);
    }
out:
    tm_free(raw);
    return st;
}

// Keeps the range deletes in the table, unless another thread has done so meanwhile.
static int keep_ranges(tm_table *t, const tm_load *how, const tail *a, tamis_error *err)
{
    if (atomic_load_explicit(&t->ranges, memory_order_relaxed) != NULL) return TAMIS_OK;
    tm_range_set *set = tm_calloc(1, sizeof *set), *none = NULL;
    if (set == NULL) return tm_fail_nomem(err);
    int st = decode_ranges(t, a, set, err);
    if (st != TAMIS_OK) {
        tm_free(set);
        return st;
    }
    count_read(how, TM_CACHED_RANGE, a->footer.range_length);
    size_t memory = sizeof *set + set->memory;
    // Release: readers that load the pointer see the set.
    if (atomic_compare_exchange_strong_explicit(&t->ranges, &none, set, memory_order_release,
                                                memory_order_relaxed)) {
        tm_cache_keep(t->env.cache, TM_CACHED_RANGE, (int64_t)memory);
    } else {
        tm_range_set_deinit(set);
        tm_free(set);
    }
    return TAMIS_OK;
}

int tm_table_load_ranges(tm_table *t, const tm_load *how, tamis_error *err)
{
    tail a;
    int st;
    TM_GOTO(read_tail(t, &a, err));
    TM_GOTO(keep_ranges(t, how, &a, err));
out:
    tm_free(a.bytes);
    return st;
}

// The partitions stand without gaps between header and tail, and their entries add up.
static int fill_partitions(const tm_table *t, tm_top_block *top, tamis_error *err)
{
    tm_partition *parts = (tm_partition *)(void *)top->head.slots - top->block.n;
    uint64_t at = TM_TABLE_HEADER_BYTES, entries = 0, tail_at = tm_footer_tail(&top->footer);
    for (uint32_t i = 0; i < top->block.n; i++) {
        tm_top_value v;
        if (!tm_top_value_decode(&v, tm_block_value(&top->block, i), tail_at) ||
            v.data_offset != at || tm_top_value_data_end(&v) < at ||
            v.entries > top->footer.entries - entries) {
            return tm_fail_corrupt(err, t->meta.number, top->footer.top_offset,
                                   "partition %u of the top level does not fit", i);
        }
        parts[i] = (tm_partition){.data_offset = v.data_offset,
                                  .index_offset = v.index_offset,
                                  .entries_before = entries,
                                  .index_length = v.index_length,
                                  .filter_length = v.filter_length};
        at = v.index_offset + v.index_length;
        entries += v.entries;
    }
    if (at != tail_at || entries != top->footer.entries || top->block.n != top->footer.partitions) {
        return tm_fail_corrupt(err, t->meta.number, top->footer.top_offset,
                               "the top level does not describe the whole table");
    }
    top->partitions = parts;
    return TAMIS_OK;
}

static int build_top(tm_table *t, const tail *a, tm_top_block **out, tamis_error *err)
{
    const tm_footer *foot = &a->footer;
    uint64_t at = foot->top_offset;
    const uint8_t *bytes = a->bytes + (at - a->from);
    tm_frame f;
    void *mem;
    TM_TRY(tm_table_check_frame(t, TM_BLOCK_TOP, bytes, at, foot->top_length, &f, err));
    TM_TRY(build(t, TM_CACHED_TOP, &f, bytes + TM_FRAME_BYTES, at, &mem, err));
    tm_top_block *top = mem;
    top->footer = *foot;
    int st = fill_partitions(t, top, err);
    if (st != TAMIS_OK) {
        tm_free(top);
        return st;
    }
    *out = top;
    return TAMIS_OK;
}

int tm_table_load_top(tm_table *t, const tm_load *how, tm_top_block **out, tamis_error *err)
{
    tail a;
    tm_top_block *top;
    int st;
    TM_GOTO(read_tail(t, &a, err));
    TM_GOTO(build_top(t, &a, &top, err));
    count_read(how, TM_CACHED_TOP, a.footer.file_bytes - a.from - a.footer.range_length);
    // The range deletes are at hand. Damage in them is for those to meet who ask for them.
    if (a.footer.range_length != 0) (void)keep_ranges(t, how, &a, NULL);
    *out = (tm_top_block *)(void *)tm_cache_insert(t->env.cache, &t->top, NULL, &top->head,
                                                   how->cold);
out:
    tm_free(a.bytes);
    return st;
}

// ---- In memory or loaded -----------------------------------------------------------------------

int tm_table_pin_top(tm_table *t, const tm_load *how, tm_top_block **out, tamis_error *err)
{
    tm_cached *b = tm_cache_pin(&t->top);
    if (b == NULL) return tm_table_load_top(t, how, out, err);
    tm_table_count_cached(how->counts, b);
    *out = (tm_top_block *)(void *)b;
    return TAMIS_OK;
}

int tm_table_pin_index(tm_table *t, const tm_load *how, tm_top_block *top, uint32_t p,
                       tm_index_block **out, tamis_error *err)
{
    tm_cached *b = tm_cache_pin(tm_table_index_slot(top, p));
    if (b == NULL) return tm_table_load_index(t, how, top, p, out, err);
    tm_table_count_cached(how->counts, b);
    *out = (tm_index_block *)(void *)b;
    return TAMIS_OK;
}
