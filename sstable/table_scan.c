// SPDX-License-Identifier: BSD-2-Clause

#include "sstable/table_scan.h"

#include "base/mem.h"
#include "sstable/block.h"
#include "sstable/compress.h"
#include "sstable/format.h"

typedef struct table_scan {
    tm_iter base;
    tm_file *file;
    tm_order order;
    tm_table_scan_options o;
    uint64_t number, file_bytes, tail;
    uint8_t id[16];
    uint64_t at;        // offset of the next frame
    uint64_t window_at; // what window holds: [window_at, window_at + window.len)
    tm_buf window;
    tm_buf raw; // the block at hand, decompressed
    tm_buf offsets;
    tm_block block;
    uint32_t i;
    // What was given last, to check the order over the whole file. Keys are assembled in turn into
    // two buffers, so that the one before stays.
    tm_buf keys[2];
    uint32_t turn;
    bool has_last;
} table_scan;

// ---- Reading ahead -----------------------------------------------------------------------------

// Makes [offset, offset + n) stand in the window; n is within the file's data area.
static int need(table_scan *s, uint64_t offset, size_t n)
{
    if (offset >= s->window_at && offset - s->window_at <= s->window.len &&
        n <= s->window.len - (size_t)(offset - s->window_at)) {
        return TAMIS_OK;
    }
    uint64_t left = s->tail - offset;
    size_t want = TM_MAX(n, (size_t)TM_MIN((uint64_t)s->o.readahead_bytes, left));
    size_t kept = 0;
    if (offset >= s->window_at && offset - s->window_at < s->window.len) { // the part that is there
        kept = s->window.len - (size_t)(offset - s->window_at);
        memmove(s->window.data, s->window.data + (size_t)(offset - s->window_at), kept);
    }
    s->window.len = kept;
    s->window_at = offset;
    if (tm_buf_reserve(&s->window, want - kept) != TAMIS_OK) return tm_fail_nomem(&s->base.error);
    TM_TRY(
        tm_file_read(s->file, offset + kept, s->window.data + kept, want - kept, &s->base.error));
    s->window.len = want;
    if (s->o.on_read != NULL) s->o.on_read(s->o.on_read_ctx, want - kept);
    return TAMIS_OK;
}

static const uint8_t *window_at(const table_scan *s, uint64_t offset)
{
    return s->window.data + (size_t)(offset - s->window_at);
}

// Opens the frame at offset as a block of entries, decompressed into s->raw.
static int open_block(table_scan *s, const tm_frame *f, uint64_t offset)
{
    tamis_error *err = &s->base.error;
    tm_buf_clear(&s->raw);
    tm_buf_clear(&s->offsets);
    if (f->entries > f->raw || tm_buf_reserve(&s->raw, f->raw) != TAMIS_OK ||
        tm_buf_reserve(&s->offsets, ((size_t)f->entries + 1) * sizeof(uint32_t)) != TAMIS_OK) {
        return f->entries > f->raw
                   ? tm_fail_corrupt(err, s->number, offset,
                                     "%06llu.sst: block at offset %llu counts too many entries",
                                     (unsigned long long)s->number, (unsigned long long)offset)
                   : tm_fail_nomem(err);
    }
    TM_TRY(tm_decompress(f, window_at(s, offset) + TM_FRAME_BYTES, s->raw.data, s->number, offset,
                         err));
    return tm_block_init(&s->block, tm_slice_of(s->raw.data, f->raw), f->entries, s->order.bytewise,
                         (uint32_t *)(void *)s->offsets.data, s->number, offset, err);
}

// Reads and checks the frame at offset, which ends at or before limit.
static int read_frame(table_scan *s, uint64_t offset, uint64_t limit, tm_frame *f)
{
    tamis_error *err = &s->base.error;
    if (limit - offset < TM_FRAME_BYTES) {
        return tm_fail_corrupt(err, s->number, offset, "%06llu.sst: block at offset %llu is cut",
                               (unsigned long long)s->number, (unsigned long long)offset);
    }
    TM_TRY(need(s, offset, TM_FRAME_BYTES));
    TM_TRY(tm_frame_decode(f, window_at(s, offset), limit - offset, s->number, offset, err));
    TM_TRY(need(s, offset, (size_t)tm_frame_length(f)));
    return tm_frame_verify(f, window_at(s, offset), s->id, s->number, offset, err);
}

// ---- Walking -----------------------------------------------------------------------------------

static void give_entry(table_scan *s)
{
    uint32_t turn = s->turn ^ 1;
    tm_buf *out = &s->keys[turn];
    size_t room = tm_block_key_len(&s->block, s->i) + TM_BLOCK_KEY_SLACK;
    tm_buf_clear(out);
    if (TM_UNLIKELY(tm_buf_reserve(out, room) != TAMIS_OK)) {
        tm_iter_fail(&s->base, tm_fail_nomem(&s->base.error));
        return;
    }
    tm_slice key = tm_slice_of(out->data, tm_block_key(&s->block, s->i, out->data));
    uint64_t trailer = tm_block_trailer(&s->block, s->i);
    if (s->has_last &&
        tm_order_compare_internal(&s->order, s->base.key, s->base.trailer, key, trailer) >= 0) {
        tm_iter_fail(&s->base,
                     tm_fail_corrupt(&s->base.error, s->number, s->at,
                                     "%06llu.sst: keys before offset %llu are not in "
                                     "order",
                                     (unsigned long long)s->number, (unsigned long long)s->at));
        return;
    }
    s->turn = turn;
    s->has_last = true;
    s->base.key = key;
    s->base.trailer = trailer;
    s->base.value = tm_block_value(&s->block, s->i);
    s->base.valid = true;
}

// Goes to the first entry of the next data block that has one.
static void next_block(table_scan *s)
{
    while (s->at < s->tail) {
        tm_frame f;
        int st = read_frame(s, s->at, s->tail, &f);
        if (st == TAMIS_OK && f.kind == TM_BLOCK_DATA) st = open_block(s, &f, s->at);
        if (st != TAMIS_OK) {
            tm_iter_fail(&s->base, st);
            return;
        }
        s->at += tm_frame_length(&f);
        if (f.kind != TM_BLOCK_DATA) continue; // filters and indexes between the partitions
        s->i = 0;
        if (s->block.n > 0) {
            give_entry(s);
            return;
        }
    }
    s->base.valid = false;
}

static void reset(table_scan *s)
{
    s->base.valid = false;
    s->base.status = TAMIS_OK;
    s->has_last = false;
    s->block.n = 0;
    s->i = 0;
}

static void scan_first(tm_iter *it)
{
    table_scan *s = TM_CONTAINER(it, table_scan, base);
    reset(s);
    s->at = TM_TABLE_HEADER_BYTES;
    next_block(s);
}

static void scan_next(tm_iter *it)
{
    table_scan *s = TM_CONTAINER(it, table_scan, base);
    if (TM_LIKELY(++s->i < s->block.n))
        give_entry(s);
    else
        next_block(s);
}

// Where the data block that may hold (key, trailer) begins; s->tail: behind everything.
static int locate(table_scan *s, tm_slice key, uint64_t trailer, uint64_t *offset)
{
    tamis_error *err = &s->base.error;
    uint8_t bytes[TM_TABLE_FOOTER_BYTES];
    tm_footer foot;
    tm_frame f;
    uint64_t saved_tail = s->tail;
    TM_TRY(tm_file_read(s->file, s->file_bytes - sizeof bytes, bytes, sizeof bytes, err));
    TM_TRY(tm_footer_decode(&foot, bytes, s->file_bytes, s->number, err));
    s->tail = s->file_bytes; // the top level stands behind the data area
    int st = read_frame(s, foot.top_offset, s->file_bytes, &f);
    if (st == TAMIS_OK) st = tm_frame_expect(&f, TM_BLOCK_TOP, s->number, foot.top_offset, err);
    if (st == TAMIS_OK) st = open_block(s, &f, foot.top_offset);
    s->tail = saved_tail;
    TM_TRY(st);
    uint32_t p = tm_block_lower_bound(&s->block, &s->order, key, trailer);
    *offset = s->tail;
    if (p == s->block.n) return TAMIS_OK;
    tm_top_value top;
    if (!tm_top_value_decode(&top, tm_block_value(&s->block, p), s->tail)) {
        return tm_fail_corrupt(err, s->number, foot.top_offset,
                               "%06llu.sst: the top level is wrong", (unsigned long long)s->number);
    }
    TM_TRY(read_frame(s, top.index_offset, s->tail, &f));
    TM_TRY(tm_frame_expect(&f, TM_BLOCK_INDEX, s->number, top.index_offset, err));
    TM_TRY(open_block(s, &f, top.index_offset));
    uint32_t b = tm_block_lower_bound(&s->block, &s->order, key, trailer);
    tm_index_value v = {0};
    *offset = top.index_offset + top.index_length; // behind its blocks: the next partition
    if (b == s->block.n) return TAMIS_OK;
    if (!tm_index_value_decode(&v, tm_block_value(&s->block, b),
                               tm_top_value_data_end(&top) - top.data_offset)) {
        return tm_fail_corrupt(err, s->number, top.index_offset, "%06llu.sst: an index is wrong",
                               (unsigned long long)s->number);
    }
    *offset = top.data_offset + v.offset;
    return TAMIS_OK;
}

static void scan_seek(tm_iter *it, tm_slice key, uint64_t trailer)
{
    table_scan *s = TM_CONTAINER(it, table_scan, base);
    reset(s);
    int st = locate(s, key, trailer, &s->at);
    if (st != TAMIS_OK) {
        tm_iter_fail(it, st);
        return;
    }
    next_block(s);
    while (it->valid &&
           tm_order_compare_internal(&s->order, it->key, it->trailer, key, trailer) < 0) {
        scan_next(it);
    }
}

static void refuse(tm_iter *it)
{
    tm_iter_fail(it, tm_fail(&it->error, TAMIS_MISUSE, "a table scan only goes forward"));
}
static void refuse_seek(tm_iter *it, tm_slice key, uint64_t trailer)
{
    (void)key;
    (void)trailer;
    refuse(it);
}

static void scan_destroy(tm_iter *it)
{
    table_scan *s = TM_CONTAINER(it, table_scan, base);
    tm_buf_deinit(&s->window);
    tm_buf_deinit(&s->raw);
    tm_buf_deinit(&s->offsets);
    tm_buf_deinit(&s->keys[0]);
    tm_buf_deinit(&s->keys[1]);
    tm_free(s);
}

static const tm_iter_ops scan_ops = {
    .first = scan_first,
    .last = refuse,
    .seek = scan_seek,
    .seek_before = refuse_seek,
    .next = scan_next,
    .prev = refuse,
    .destroy = scan_destroy,
};

int tm_table_scan_create(tm_file *file, const tm_table_meta *meta, const tm_order *order,
                         const tm_table_scan_options *options, tm_iter **out, tamis_error *err)
{
    uint8_t bytes[TM_TABLE_HEADER_BYTES];
    tm_table_header header;
    TM_TRY(tm_file_read(file, 0, bytes, sizeof bytes, err));
    TM_TRY(tm_table_header_decode(&header, bytes, meta->number, err));
    if (memcmp(header.id, meta->id, sizeof header.id) != 0) {
        return tm_fail_corrupt(err, meta->number, 32, "%06llu.sst is another table than recorded",
                               (unsigned long long)meta->number);
    }
    table_scan *s = tm_calloc(1, sizeof *s);
    if (s == NULL) return tm_fail_nomem(err);
    s->base.ops = &scan_ops;
    s->file = file;
    s->order = *order;
    s->o = *options;
    s->number = meta->number;
    s->file_bytes = meta->file_bytes;
    s->tail = meta->tail_offset;
    memcpy(s->id, meta->id, sizeof s->id);
    *out = &s->base;
    return TAMIS_OK;
}
