// SPDX-License-Identifier: BSD-2-Clause

#include "sstable/table_verify.h"

#include "base/hash.h"
#include "base/mem.h"
#include "sstable/block.h"
#include "sstable/compress.h"
#include "sstable/format.h"

enum { DIGEST_BYTES = 256 << 10 };

typedef struct placed { // a data block of the partition at hand
    uint64_t offset, length;
    uint32_t first_at, first_len, last_at, last_len; // keys, in check.keys
    uint64_t first_trailer, last_trailer;
} placed;

typedef struct check {
    tm_file *file;
    const tm_table_meta *meta;
    const tm_order *order; // NULL: unknown, and the table is not bytewise
    tm_order own;
    void (*finding)(void *ctx, const tamis_error *e);
    int (*progress)(void *ctx, uint64_t bytes);
    void *ctx;
    tm_table_check sum;
    tamis_error first; // the first finding
    tm_footer footer;
    tm_block top;
    tm_buf frame, raw, offsets, top_frame, top_raw, top_offsets, scratch;
    // The partition at hand.
    uint32_t partition;
    tm_buf blocks, keys, hashes;
    uint64_t partition_entries;
    uint32_t filter_length; // of the filter frame that stands before the index
    bool damaged_partition; // some of its blocks could not be read: no comparisons
    // The whole table.
    tm_buf last_key;
    uint64_t last_trailer;
    bool has_last;
    uint64_t keys_seen, deletes, raw_bytes, min_seq, max_seq;
    bool lost_blocks;
    uint8_t *key;
} check;

static void found(check *c, const tamis_error *e)
{
    if (c->sum.damaged++ == 0) c->first = *e;
    if (c->finding != NULL) c->finding(c->ctx, e);
}

static void found_at(check *c, uint64_t offset, const char *what)
{
    tamis_error e = {0};
    (void)!tm_fail_corrupt(&e, c->meta->number, offset, "%06llu.sst: at offset %llu: %s",
                           (unsigned long long)c->meta->number, (unsigned long long)offset, what);
    found(c, &e);
}

static bool same(const uint8_t *a, const uint8_t *b, size_t n)
{
    return memcmp(a, b, n) == 0;
}

// ---- Frames ------------------------------------------------------------------------------------

// Reads the frame at offset whole. CORRUPT is a finding that was told; *skip gets its length where
// that can be believed, else 0.
static int read_frame(check *c, uint64_t offset, uint64_t limit, tm_buf *frame, tm_frame *f,
                      uint64_t *skip, tamis_error *err)
{
    uint8_t head[TM_FRAME_BYTES];
    tamis_error e = {0};
    *skip = 0;
    if (limit < offset || limit - offset < TM_FRAME_BYTES) {
        found_at(c, offset, "a block is cut");
        return TAMIS_CORRUPT;
    }
    TM_TRY(tm_file_read(c->file, offset, head, sizeof head, err));
    if (tm_frame_decode(f, head, limit - offset, c->meta->number, offset, &e) != TAMIS_OK) {
        found(c, &e);
        return TAMIS_CORRUPT;
    }
    size_t n = (size_t)tm_frame_length(f);
    tm_buf_clear(frame);
    if (tm_buf_reserve(frame, n) != TAMIS_OK) return tm_fail_nomem(err);
    TM_TRY(tm_file_read(c->file, offset, frame->data, n, err));
    frame->len = n;
    *skip = n;
    c->sum.blocks++;
    if (tm_frame_verify(f, frame->data, c->meta->id, c->meta->number, offset, &e) != TAMIS_OK) {
        found(c, &e);
        return TAMIS_CORRUPT;
    }
    return TAMIS_OK;
}

static int inflate(check *c, const tm_frame *f, const tm_buf *frame, tm_buf *raw, uint64_t offset,
                   tamis_error *err)
{
    tamis_error e = {0};
    tm_buf_clear(raw);
    if (tm_buf_reserve(raw, f->raw) != TAMIS_OK) return tm_fail_nomem(err);
    if (tm_decompress(f, frame->data + TM_FRAME_BYTES, raw->data, c->meta->number, offset, &e) !=
        0) {
        found(c, &e);
        return TAMIS_CORRUPT;
    }
    raw->len = f->raw;
    return TAMIS_OK;
}

static int open_entries(check *c, const tm_frame *f, const tm_buf *frame, tm_buf *raw,
                        tm_buf *offsets, tm_block *b, uint64_t offset, tamis_error *err)
{
    tamis_error e = {0};
    TM_TRY(inflate(c, f, frame, raw, offset, err));
    if (f->entries > f->raw) {
        found_at(c, offset, "a block counts more entries than it can hold");
        return TAMIS_CORRUPT;
    }
    tm_buf_clear(offsets);
    if (tm_buf_reserve(offsets, ((size_t)f->entries + 1) * sizeof(uint32_t)) != TAMIS_OK) {
        return tm_fail_nomem(err);
    }
    if (tm_block_init(b, tm_buf_slice(raw), f->entries, c->footer.flags & TM_FOOTER_BYTEWISE,
                      (uint32_t *)(void *)offsets->data, c->meta->number, offset, &e) != TAMIS_OK) {
        found(c, &e);
        return TAMIS_CORRUPT;
    }
    return TAMIS_OK;
}

// ---- Data --------------------------------------------------------------------------------------

static int keep_key(check *c, tm_slice key, uint32_t *at, uint32_t *len)
{
    *at = (uint32_t)c->keys.len;
    *len = (uint32_t)key.len;
    return tm_buf_append(&c->keys, key.data, key.len);
}

static int check_entry(check *c, const tm_block *b, uint32_t i, uint64_t offset, placed *p,
                       tamis_error *err)
{
    tm_slice key = tm_slice_of(c->key, tm_block_key(b, i, c->key));
    uint64_t trailer = tm_block_trailer(b, i), seq = tm_trailer_seq(trailer);
    bool new_key = true;
    if (c->has_last && c->order != NULL) {
        int order = tm_order_compare(c->order, tm_buf_slice(&c->last_key), key);
        if (order > 0 || (order == 0 && c->last_trailer <= trailer)) {
            found_at(c, offset, "keys are not in order");
        }
        new_key = order != 0;
    }
    if (tm_trailer_kind(trailer) > TM_KIND_MAX) found_at(c, offset, "an entry is of no known kind");
    tm_kind kind = tm_trailer_kind(trailer);
    if (kind == TM_KIND_DELETE || kind == TM_KIND_SINGLE_DELETE) c->deletes++;
    c->min_seq = c->sum.entries == 0 ? seq : TM_MIN(c->min_seq, seq);
    c->max_seq = c->sum.entries == 0 ? seq : TM_MAX(c->max_seq, seq);
    c->raw_bytes += key.len + tm_block_value(b, i).len;
    c->sum.entries++;
    c->partition_entries++;
    int st = TAMIS_OK;
    if (new_key && c->order != NULL) {
        uint64_t hash;
        st = tm_order_hash(c->order, key, c->footer.hash_seed, &c->scratch, &hash);
        if (st == TAMIS_OK) st = tm_buf_append(&c->hashes, &hash, sizeof hash);
    }
    if (st == TAMIS_OK && i == 0) {
        p->first_trailer = trailer;
        st = keep_key(c, key, &p->first_at, &p->first_len);
    }
    if (st == TAMIS_OK && i + 1 == b->n) {
        p->last_trailer = trailer;
        st = keep_key(c, key, &p->last_at, &p->last_len);
    }
    if (st == TAMIS_OK) st = tm_buf_set(&c->last_key, key);
    c->last_trailer = trailer;
    c->has_last = true;
    return st == TAMIS_OK ? st : tm_fail_nomem(err);
}

static int check_data(check *c, const tm_frame *f, uint64_t offset, tamis_error *err)
{
    tm_block b;
    placed p = {.offset = offset, .length = tm_frame_length(f)};
    TM_TRY(open_entries(c, f, &c->frame, &c->raw, &c->offsets, &b, offset, err));
    if (b.n == 0) found_at(c, offset, "a data block is empty");
    for (uint32_t i = 0; i < b.n; i++) TM_TRY(check_entry(c, &b, i, offset, &p, err));
    return tm_buf_append(&c->blocks, &p, sizeof p) == TAMIS_OK ? TAMIS_OK : tm_fail_nomem(err);
}

// ---- Filter and index --------------------------------------------------------------------------

static int check_filter(check *c, const tm_frame *f, uint64_t offset)
{
    tm_filter_view v;
    tm_filter_contract contract;
    tamis_error e = {0};
    size_t n = c->hashes.len / sizeof(uint64_t), missing;
    if (f->compression != TM_STORED_RAW) {
        found_at(c, offset, "a filter is compressed");
        return TAMIS_CORRUPT;
    }
    tm_slice image = tm_slice_of(c->frame.data + TM_FRAME_BYTES, f->stored);
    if (tm_filter_view_init(&v, image, &contract, &e) != TAMIS_OK) {
        e.file_number = c->meta->number;
        e.offset = offset;
        found(c, &e);
        return TAMIS_CORRUPT;
    }
    if (contract.seed != c->footer.hash_seed) found_at(c, offset, "a filter has another seed");
    if (!c->damaged_partition && c->order != NULL) {
        if (contract.keys_added != n) found_at(c, offset, "a filter counts other keys");
        if (!tm_filter_contains_all(&v, (const uint64_t *)(void *)c->hashes.data, n, &missing)) {
            found_at(c, offset, "a filter hides a key");
        }
    }
    return TAMIS_OK;
}

static tm_slice kept(const check *c, uint32_t at, uint32_t len)
{
    return tm_slice_of(c->keys.data + at, len);
}

static bool separates(const check *c, tm_slice key, uint64_t trailer, const placed *p,
                      const placed *next)
{
    if (c->order == NULL) return true;
    tm_slice last = kept(c, p->last_at, p->last_len);
    if (tm_order_compare_internal(c->order, last, p->last_trailer, key, trailer) > 0) return false;
    if (next == NULL) return true;
    tm_slice first = kept(c, next->first_at, next->first_len);
    return tm_order_compare_internal(c->order, key, trailer, first, next->first_trailer) < 0;
}

static int check_index(check *c, const tm_frame *f, uint64_t offset, uint64_t begin,
                       tamis_error *err)
{
    tm_block b;
    TM_TRY(open_entries(c, f, &c->frame, &c->raw, &c->offsets, &b, offset, err));
    size_t n = c->blocks.len / sizeof(placed);
    const placed *p = (const placed *)(void *)c->blocks.data;
    if (c->damaged_partition) return TAMIS_OK;
    if (b.n != n) {
        found_at(c, offset, "an index counts other blocks than there are");
        return TAMIS_OK;
    }
    uint64_t limit = offset - c->filter_length - begin;
    for (uint32_t i = 0; i < b.n; i++) {
        tm_index_value v;
        if (!tm_index_value_decode(&v, tm_block_value(&b, i), limit) ||
            begin + v.offset != p[i].offset || v.length != p[i].length) {
            found_at(c, offset, "an index does not name its blocks");
            break;
        }
        tm_slice key = tm_slice_of(c->key, tm_block_key(&b, i, c->key));
        if (!separates(c, key, tm_block_trailer(&b, i), &p[i], i + 1 < n ? &p[i + 1] : NULL)) {
            found_at(c, offset, "an index sends searches to the wrong block");
            break;
        }
    }
    return TAMIS_OK;
}

// The top level's entry of the partition that just ended.
static void check_top(check *c, uint64_t begin, uint64_t index_offset, uint64_t index_length)
{
    tm_top_value v;
    size_t n = c->blocks.len / sizeof(placed);
    const placed *p = (const placed *)(void *)c->blocks.data;
    if (c->top.raw == NULL) return; // told already
    if (c->partition >= c->top.n) {
        found_at(c, index_offset, "the top level lacks a partition");
        return;
    }
    if (!tm_top_value_decode(&v, tm_block_value(&c->top, c->partition), c->meta->tail_offset) ||
        v.index_offset != index_offset || v.index_length != index_length ||
        v.data_offset != begin || v.filter_length != c->filter_length ||
        (!c->damaged_partition && v.entries != c->partition_entries)) {
        found_at(c, c->footer.top_offset, "the top level does not describe a partition");
    }
    tm_slice key = tm_slice_of(c->key, tm_block_key(&c->top, c->partition, c->key));
    if (!c->damaged_partition && n > 0 &&
        !separates(c, key, tm_block_trailer(&c->top, c->partition), &p[n - 1], NULL)) {
        found_at(c, c->footer.top_offset, "the top level sends searches to the wrong partition");
    }
}

static void begin_partition(check *c)
{
    tm_buf_clear(&c->blocks);
    tm_buf_clear(&c->keys);
    tm_buf_clear(&c->hashes);
    c->partition_entries = 0;
    c->filter_length = 0;
    c->damaged_partition = false;
}

// Where the partition behind offset begins by the top level; the tail's offset if there is none.
static uint64_t next_partition(check *c, uint64_t offset)
{
    for (uint32_t i = 0; c->top.raw != NULL && i < c->top.n; i++) {
        tm_top_value v;
        if (!tm_top_value_decode(&v, tm_block_value(&c->top, i), c->meta->tail_offset)) continue;
        if (v.data_offset > offset) {
            c->partition = i;
            return v.data_offset;
        }
    }
    return c->meta->tail_offset;
}

static int check_frame(check *c, const tm_frame *f, uint64_t at, uint64_t *begin, tamis_error *err)
{
    int st;
    switch (f->kind) {
    case TM_BLOCK_DATA:
        if (c->filter_length != 0) found_at(c, at, "a data block stands behind a filter");
        st = check_data(c, f, at, err);
        break;
    case TM_BLOCK_FILTER:
        c->filter_length = (uint32_t)tm_frame_length(f);
        st = check_filter(c, f, at);
        return st == TAMIS_CORRUPT ? TAMIS_OK : st; // costs speed only
    case TM_BLOCK_INDEX:
        st = check_index(c, f, at, *begin, err);
        if (st != TAMIS_OK && st != TAMIS_CORRUPT) return st;
        check_top(c, *begin, at, tm_frame_length(f));
        begin_partition(c);
        c->partition++;
        *begin = at + tm_frame_length(f);
        return TAMIS_OK;
    default:
        found_at(c, at, "a block stands where it must not");
        return TAMIS_OK;
    }
    if (st == TAMIS_CORRUPT) c->damaged_partition = c->lost_blocks = true;
    return st == TAMIS_CORRUPT ? TAMIS_OK : st;
}

static int walk(check *c, tamis_error *err)
{
    uint64_t at = TM_TABLE_HEADER_BYTES, begin = at, tail = c->meta->tail_offset;
    begin_partition(c);
    while (at < tail) {
        tm_frame f;
        uint64_t skip;
        int st = read_frame(c, at, tail, &c->frame, &f, &skip, err);
        if (st == TAMIS_OK) {
            TM_TRY(check_frame(c, &f, at, &begin, err));
        } else if (st == TAMIS_CORRUPT) {
            // The frame's kind and length may be what is damaged: go on where the top level says.
            c->lost_blocks = true;
            at = begin = next_partition(c, at);
            begin_partition(c);
            continue;
        } else {
            return st;
        }
        at += skip;
        if (c->progress != NULL) TM_TRY(c->progress(c->ctx, skip));
    }
    if (c->blocks.len > 0) found_at(c, tail, "the last partition has no index");
    if (!c->lost_blocks && c->top.raw != NULL && c->partition != c->top.n) {
        found_at(c, c->footer.top_offset, "the top level counts other partitions");
    }
    return TAMIS_OK;
}

// ---- Tail and totals ---------------------------------------------------------------------------

static int check_ranges(check *c, uint64_t *count, tamis_error *err)
{
    tm_frame f;
    uint64_t skip, at = c->footer.range_offset;
    tm_range_set set;
    tamis_error e = {0};
    *count = 0;
    if (c->footer.range_length == 0) return TAMIS_OK;
    int st = read_frame(c, at, at + c->footer.range_length, &c->frame, &f, &skip, err);
    if (st == TAMIS_OK && f.kind != TM_BLOCK_RANGE) {
        found_at(c, at, "no range-delete block where the footer says");
        return TAMIS_OK;
    }
    if (st == TAMIS_OK) st = inflate(c, &f, &c->frame, &c->raw, at, err);
    if (st != TAMIS_OK || c->order == NULL) return st == TAMIS_CORRUPT ? TAMIS_OK : st;
    if (tm_range_set_decode(&set, tm_buf_slice(&c->raw), c->order, &e) != TAMIS_OK) {
        found_at(c, at, "the range deletes cannot be read");
        return TAMIS_OK;
    }
    if (set.n != c->footer.fragments) found_at(c, at, "the footer counts other range deletes");
    for (uint32_t i = 0; i < set.n; i++) *count += set.fragments[i].count;
    if (*count != c->meta->range_deletes) found_at(c, at, "other range deletes than recorded");
    tm_range_set_deinit(&set);
    return TAMIS_OK;
}

static int check_properties(check *c, tamis_error *err)
{
    tm_frame f;
    uint64_t skip, at = c->footer.properties_offset, v;
    tamis_error e = {0};
    int st = read_frame(c, at, at + c->footer.properties_length, &c->frame, &f, &skip, err);
    if (st == TAMIS_OK) st = inflate(c, &f, &c->frame, &c->raw, at, err);
    if (st != TAMIS_OK) return st == TAMIS_CORRUPT ? TAMIS_OK : st;
    tm_slice raw = tm_buf_slice(&c->raw);
    if (f.kind != TM_BLOCK_PROPERTIES ||
        tm_properties_check(raw, f.entries, c->meta->number, at, &e) != TAMIS_OK) {
        found_at(c, at, "the properties cannot be read");
        return TAMIS_OK;
    }
    if (!c->lost_blocks &&
        (!tm_properties_find_number(raw, "entries", &v) || v != c->sum.entries)) {
        found_at(c, at, "the properties count other entries");
    }
    return TAMIS_OK;
}

static void check_totals(check *c)
{
    const tm_table_meta *m = c->meta;
    if (c->footer.entries != m->entries)
        found_at(c, m->tail_offset, "the footer counts other entries");
    if (c->footer.hash_seed != m->hash_seed) found_at(c, m->tail_offset, "another hash seed");
    if (c->lost_blocks) return;
    if (c->sum.entries != m->entries || c->deletes != m->deletes || c->raw_bytes != m->raw_bytes) {
        found_at(c, m->tail_offset, "other entries than recorded");
    }
    if (c->sum.entries > 0 && (c->min_seq < m->min_seq || c->max_seq > m->max_seq)) {
        found_at(c, m->tail_offset, "sequence numbers beyond those recorded");
    }
    if (c->has_last && c->order != NULL && !(m->flags & TM_TABLE_UNBOUNDED) &&
        tm_order_compare(c->order, tm_buf_slice(&c->last_key), tm_buf_slice(&m->largest)) > 0) {
        found_at(c, m->tail_offset, "the last key stands behind the largest recorded");
    }
}

static int check_digest(check *c, tamis_error *err)
{
    static const uint8_t none[16];
    uint8_t digest[16];
    if (same(c->meta->digest, none, 16)) return TAMIS_OK;
    tm_digest *d = tm_digest_create();
    if (d == NULL || tm_buf_reserve(&c->frame, DIGEST_BYTES) != TAMIS_OK) {
        tm_digest_destroy(d);
        return tm_fail_nomem(err);
    }
    int st = TAMIS_OK;
    tm_buf_clear(&c->frame);
    if (c->frame.cap < DIGEST_BYTES) st = tm_buf_reserve(&c->frame, DIGEST_BYTES);
    for (uint64_t at = 0; st == TAMIS_OK && at < c->meta->file_bytes; at += DIGEST_BYTES) {
        size_t n = (size_t)TM_MIN((uint64_t)DIGEST_BYTES, c->meta->file_bytes - at);
        st = tm_file_read(c->file, at, c->frame.data, n, err);
        if (st == TAMIS_OK) tm_digest_update(d, c->frame.data, n);
    }
    tm_digest_final(d, digest);
    tm_digest_destroy(d);
    if (st == TAMIS_OK && !same(digest, c->meta->digest, 16)) {
        found_at(c, 0, "the digest of the file differs from the one recorded");
    }
    return st;
}

// Header, footer and top level: what the walk is compared with. CORRUPT: told, no walk is possible.
static int open_file(check *c, tamis_error *err)
{
    uint8_t head[TM_TABLE_HEADER_BYTES], foot[TM_TABLE_FOOTER_BYTES];
    tm_table_header h;
    tamis_error e = {0};
    uint64_t size, skip;
    tm_frame f;
    TM_TRY(tm_file_size(c->file, &size, err));
    if (size != c->meta->file_bytes || size < sizeof head + sizeof foot) {
        found_at(c, size, "the file has another size than recorded");
        return TAMIS_CORRUPT;
    }
    TM_TRY(tm_file_read(c->file, 0, head, sizeof head, err));
    TM_TRY(tm_file_read(c->file, size - sizeof foot, foot, sizeof foot, err));
    if (tm_table_header_decode(&h, head, c->meta->number, &e) != TAMIS_OK)
        found(c, &e);
    else if (!same(h.id, c->meta->id, 16))
        found_at(c, 32, "another table than recorded");
    if (tm_footer_decode(&c->footer, foot, size, c->meta->number, &e) != TAMIS_OK) {
        found(c, &e);
        return TAMIS_CORRUPT;
    }
    if (!same(c->footer.id, c->meta->id, 16) ||
        tm_footer_tail(&c->footer) != c->meta->tail_offset) {
        found_at(c, size - sizeof foot, "another table than recorded");
        return TAMIS_CORRUPT;
    }
    if (c->footer.flags & TM_FOOTER_BYTEWISE) {
        c->own = tm_order_bytewise();
        c->order = &c->own;
    }
    uint64_t at = c->footer.top_offset;
    int st = read_frame(c, at, at + c->footer.top_length, &c->top_frame, &f, &skip, err);
    if (st == TAMIS_OK && f.kind == TM_BLOCK_TOP) {
        st = open_entries(c, &f, &c->top_frame, &c->top_raw, &c->top_offsets, &c->top, at, err);
        if (st != TAMIS_OK) c->top.raw = NULL;
    } else if (st == TAMIS_OK) {
        found_at(c, at, "no top level where the footer says");
    }
    return st == TAMIS_CORRUPT ? TAMIS_OK : st;
}

int tm_table_verify_file(tm_file *file, const tm_table_meta *meta, const tm_order *order,
                         void (*finding)(void *ctx, const tamis_error *e),
                         int (*progress)(void *ctx, uint64_t bytes), void *ctx, tm_table_check *out,
                         tamis_error *err)
{
    check c = {.file = file,
               .meta = meta,
               .order = order,
               .finding = finding,
               .progress = progress,
               .ctx = ctx};
    uint64_t ranges;
    c.key = tm_alloc(TM_MAX_KEY_BYTES + TM_BLOCK_KEY_SLACK);
    int st = c.key ? open_file(&c, err) : tm_fail_nomem(err);
    if (st == TAMIS_OK) {
        TM_GOTO(walk(&c, err));
        TM_GOTO(check_ranges(&c, &ranges, err));
        TM_GOTO(check_properties(&c, err));
        check_totals(&c);
        TM_GOTO(check_digest(&c, err));
    }
out:;
    tm_buf *bufs[] = {&c.frame,   &c.raw,    &c.offsets, &c.top_frame, &c.top_raw, &c.top_offsets,
                      &c.scratch, &c.blocks, &c.keys,    &c.hashes,    &c.last_key};
    for (size_t i = 0; i < TM_COUNT(bufs); i++) tm_buf_deinit(bufs[i]);
    tm_free(c.key);
    if (out != NULL) *out = c.sum;
    if ((st == TAMIS_OK || st == TAMIS_CORRUPT) && c.sum.damaged > 0) {
        return tm_fail_copy(err, &c.first);
    }
    return st;
}
