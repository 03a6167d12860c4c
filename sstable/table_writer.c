// SPDX-License-Identifier: BSD-2-Clause

#include "sstable/table_writer.h"

#include <stdio.h>

#include "base/hash.h"
#include "base/mem.h"
#include "sstable/block_builder.h"
#include "sstable/compress.h"
#include "sstable/format.h"
#include "sstable/range_set.h"

enum { WRITE_BYTES = 256 << 10 };

struct tm_table_writer {
    tm_table_writer_options o;
    tm_file file;
    tamis_dir *dir;
    uint64_t number;
    bool created, finished, failed;
    // The file so far: [0, flushed) is written, buffer follows.
    tm_buf buffer;
    uint64_t flushed, written_back;
    tm_digest *digest;
    tm_compressor compressor;
    tm_buf raw; // of the block being finished
    // The data block, the partition, the top level.
    tm_block_builder data, index, top;
    tm_filter_builder filter;
    uint64_t partition_begin; // offset of its first data block
    uint64_t partition_entries;
    tm_buf last_key; // of the closed data block whose index entry is still to be made
    uint64_t last_trailer;
    tm_index_value last_block;
    bool index_due; // there is such a block
    tm_buf separator, scratch;
    tm_range_builder ranges;
    // Figures.
    tm_table_meta meta;
    bool lasting;          // some entry does not go by itself
    uint64_t expiring[65]; // entries by the bits of the time that they live on from created_ms
    uint64_t keys, merges, data_blocks, data_bytes, index_bytes, partitions;
    double expected_rate_sum;
    uint64_t required;
    bool has_key;
};

static void table_name(char out[32], uint64_t number)
{
    snprintf(out, 32, "%06llu.sst", (unsigned long long)number);
}

// ---- The file ----------------------------------------------------------------------------------

static uint64_t here(const tm_table_writer *w)
{
    return w->flushed + w->buffer.len;
}

static int flush_buffer(tm_table_writer *w, tamis_error *err)
{
    if (w->buffer.len == 0) return TAMIS_OK;
    size_t n = w->buffer.len;
    tm_digest_update(w->digest, w->buffer.data, n);
    TM_TRY(tm_file_write(&w->file, w->flushed, w->buffer.data, n, err));
    w->flushed += n;
    if (w->buffer.cap > 4 * WRITE_BYTES) tm_buf_deinit(&w->buffer); // a large value went through
    tm_buf_clear(&w->buffer);
    if (w->o.write_back_bytes != 0 && w->flushed - w->written_back >= w->o.write_back_bytes) {
        tm_file_write_back(&w->file, w->written_back, w->flushed - w->written_back);
        w->written_back = w->flushed;
    }
    if (w->o.on_write != NULL) w->o.on_write(w->o.on_write_ctx, n);
    return TAMIS_OK;
}

// Appends a frame with the payload raw, compressed where that pays. length: with the frame.
static int put_frame(tm_table_writer *w, tm_block_kind kind, tm_slice raw, uint32_t entries,
                     bool compress, uint64_t *offset, uint32_t *length, tamis_error *err)
{
    if (raw.len > TM_MAX_BLOCK_RAW) {
        return tm_fail(err, TAMIS_TOOLARGE, "a %s block would have %zu bytes",
                       tm_block_kind_name((uint8_t)kind), raw.len);
    }
    if (tm_buf_reserve(&w->buffer, TM_FRAME_BYTES + raw.len) != TAMIS_OK) return tm_fail_nomem(err);
    uint8_t *frame = w->buffer.data + w->buffer.len, *payload = frame + TM_FRAME_BYTES;
    tm_frame f = {.kind = (uint8_t)kind, .raw = (uint32_t)raw.len, .entries = entries};
    uint32_t stored = 0;
    if (compress && w->o.compression == TM_COMPRESSION_LZ4) {
        stored = tm_compress(&w->compressor, raw.data, f.raw, payload);
    }
    f.compression = stored != 0 ? TM_STORED_LZ4 : TM_STORED_RAW;
    if (stored == 0) {
        if (raw.len > 0) memcpy(payload, raw.data, raw.len);
        stored = f.raw;
    }
    f.stored = stored;
    *offset = here(w);
    tm_frame_encode(&f, frame, w->o.id, *offset);
    *length = (uint32_t)tm_frame_length(&f);
    w->buffer.len += *length;
    return w->buffer.len >= WRITE_BYTES ? flush_buffer(w, err) : TAMIS_OK;
}

static int put_block(tm_table_writer *w, tm_block_kind kind, tm_block_builder *b, uint64_t *offset,
                     uint32_t *length, tamis_error *err)
{
    tm_buf_clear(&w->raw);
    TM_TRY(tm_block_builder_finish(b, &w->raw, err));
    TM_TRY(put_frame(w, kind, tm_buf_slice(&w->raw), tm_block_builder_count(b), true, offset,
                     length, err));
    tm_block_builder_reset(b);
    if (w->raw.cap > 4 * WRITE_BYTES) tm_buf_deinit(&w->raw);
    return TAMIS_OK;
}

// ---- Blocks and partitions ---------------------------------------------------------------------

// The separator between what ended with last_key and next (NULL: the end of the table).
static int make_separator(tm_table_writer *w, const tm_slice *next, uint64_t *trailer,
                          tamis_error *err)
{
    tm_slice last = tm_buf_slice(&w->last_key);
    tm_buf_clear(&w->separator);
    *trailer = 0;
    int st;
    if (next != NULL && tm_order_compare(&w->o.order, last, *next) == 0) {
        *trailer = w->last_trailer; // versions of one key on both sides
        st = tm_buf_append(&w->separator, last.data, last.len);
    } else if (next != NULL) {
        st = tm_order_separator(&w->o.order, last, *next, &w->separator);
    } else {
        st = tm_buf_append(&w->separator, last.data, last.len);
    }
    return st == TAMIS_OK ? st : tm_fail_nomem(err);
}

// Makes the index entry of the closed data block, which needs to know what follows.
static int settle(tm_table_writer *w, const tm_slice *next, tamis_error *err)
{
    uint8_t value[TM_INDEX_VALUE_MAX];
    uint64_t trailer;
    if (!w->index_due) return TAMIS_OK;
    TM_TRY(make_separator(w, next, &trailer, err));
    uint8_t *end = tm_index_value_encode(&w->last_block, value);
    TM_TRY(tm_block_builder_add(&w->index, tm_buf_slice(&w->separator), trailer,
                                tm_slice_of(value, (size_t)(end - value)), err));
    w->index_due = false;
    return TAMIS_OK;
}

static int close_data(tm_table_writer *w, tamis_error *err)
{
    if (tm_block_builder_count(&w->data) == 0) return TAMIS_OK;
    uint64_t offset;
    uint32_t length;
    int st = tm_buf_set(&w->last_key, tm_block_builder_last_key(&w->data));
    if (st != TAMIS_OK) return tm_fail_nomem(err);
    w->last_trailer = tm_block_builder_last_trailer(&w->data);
    w->partition_entries += tm_block_builder_count(&w->data);
    TM_TRY(put_block(w, TM_BLOCK_DATA, &w->data, &offset, &length, err));
    w->last_block = (tm_index_value){offset - w->partition_begin, length};
    w->index_due = true;
    w->data_blocks++;
    w->data_bytes += length;
    return TAMIS_OK;
}

static int put_filter(tm_table_writer *w, uint32_t *length, tamis_error *err)
{
    tm_filter_contract contract;
    uint64_t offset;
    *length = 0;
    if (w->o.filter == TM_FILTER_NONE) return TAMIS_OK;
    uint64_t keys = tm_filter_builder_keys(&w->filter);
    tm_buf_clear(&w->raw);
    TM_TRY(tm_filter_builder_finish(&w->filter, &w->raw, &contract, err)); // W3
    TM_TRY(put_frame(w, TM_BLOCK_FILTER, tm_buf_slice(&w->raw), 0, false, &offset, length, err));
    w->expected_rate_sum += tm_filter_expected_rate(&contract) * (double)w->partition_entries;
    w->meta.filter_bytes += *length;
    w->meta.filter_keys += keys;
    return TAMIS_OK;
}

// Ends the partition in front of next (NULL: the end of the table).
static int close_partition(tm_table_writer *w, const tm_slice *next, tamis_error *err)
{
    TM_TRY(close_data(w, err));
    TM_TRY(settle(w, next, err));
    if (tm_block_builder_count(&w->index) == 0) return TAMIS_OK;
    // The index's last separator is the partition's: it bounds all that stands in it.
    uint8_t value[TM_TOP_VALUE_MAX];
    tm_slice separator = tm_block_builder_last_key(&w->index);
    if (tm_buf_set(&w->separator, separator) != TAMIS_OK) return tm_fail_nomem(err);
    tm_top_value v = {.data_offset = w->partition_begin, .entries = w->partition_entries};
    TM_TRY(put_filter(w, &v.filter_length, err));
    TM_TRY(put_block(w, TM_BLOCK_INDEX, &w->index, &v.index_offset, &v.index_length, err));
    uint8_t *end = tm_top_value_encode(&v, value);
    TM_TRY(tm_block_builder_add(&w->top, tm_buf_slice(&w->separator), 0,
                                tm_slice_of(value, (size_t)(end - value)), err));
    w->index_bytes += v.index_length;
    w->partitions++;
    w->partition_begin = here(w);
    w->partition_entries = 0;
    return TAMIS_OK;
}

static bool partition_full(const tm_table_writer *w)
{
    if (w->o.filter != TM_FILTER_NONE &&
        tm_filter_builder_bytes(&w->filter) >= w->o.partition_bytes) {
        return true;
    }
    return tm_block_builder_estimate(&w->index) >= w->o.index_bytes;
}

// ---- Entries -----------------------------------------------------------------------------------

static void count_expiry(tm_table_writer *w, uint64_t expires_ms)
{
    uint64_t lives = expires_ms > w->o.created_ms ? expires_ms - w->o.created_ms : 0;
    w->expiring[lives == 0 ? 0 : 64 - __builtin_clzll(lives)]++;
    w->meta.expires_ms = TM_MAX(w->meta.expires_ms, expires_ms);
}

// When at least half of all entries have expired, rounded up to a power of two from now on.
static uint64_t half_expired(const tm_table_writer *w)
{
    uint64_t sum = 0;
    for (unsigned bits = 0; bits < 63; bits++) {
        sum += w->expiring[bits];
        if (sum > 0 && sum * 2 >= w->meta.entries) return w->o.created_ms + ((uint64_t)1 << bits);
    }
    return 0;
}

static void count_entry(tm_table_writer *w, tm_slice key, uint64_t trailer, tm_slice value)
{
    uint64_t seq = tm_trailer_seq(trailer);
    tm_table_meta *m = &w->meta;
    if (m->entries == 0 && m->range_deletes == 0) m->min_seq = m->max_seq = seq;
    m->min_seq = TM_MIN(m->min_seq, seq);
    m->max_seq = TM_MAX(m->max_seq, seq);
    m->entries++;
    m->raw_bytes += key.len + value.len;
    switch (tm_trailer_kind(trailer)) {
    case TM_KIND_DELETE:
    case TM_KIND_SINGLE_DELETE:
        m->deletes++;
        break;
    case TM_KIND_MERGE:
        w->lasting = true;
        w->merges++;
        w->required |= TM_TABLE_HAS_MERGES;
        break;
    case TM_KIND_PUT_EXPIRY:
    case TM_KIND_DELETE_EXPIRY:
        if (value.len >= 8) count_expiry(w, tm_get64(value.data));
        w->required |= TM_TABLE_HAS_EXPIRY;
        break;
    case TM_KIND_VALUE_POINTER:
        w->lasting = true;
        w->required |= TM_TABLE_HAS_SEPARATED_VALUES;
        break;
    default:
        w->lasting = true;
        break;
    }
}

// The key and trailer before the one that is added.
static tm_slice previous_key(const tm_table_writer *w, uint64_t *trailer)
{
    if (tm_block_builder_count(&w->data) > 0) {
        *trailer = tm_block_builder_last_trailer(&w->data);
        return tm_block_builder_last_key(&w->data);
    }
    *trailer = w->last_trailer;
    return tm_buf_slice(&w->last_key);
}

static int out_of_order(tm_table_writer *w, tamis_error *err)
{
    return tm_fail_corrupt(err, w->number, here(w),
                           "%06llu.sst: the entries to write are not in order",
                           (unsigned long long)w->number);
}

static int add(tm_table_writer *w, tm_slice key, uint64_t trailer, tm_slice value, tamis_error *err)
{
    bool new_key = true;
    if (w->has_key) {
        uint64_t before_trailer;
        tm_slice before = previous_key(w, &before_trailer);
        int c = tm_order_compare(&w->o.order, before, key);
        if (c > 0 || (c == 0 && before_trailer <= trailer)) return out_of_order(w, err); // W1
        new_key = c != 0;
    }
    if (key.len > TM_MAX_KEY_BYTES || value.len > TM_MAX_VALUE_BYTES ||
        tm_trailer_kind(trailer) > TM_KIND_MAX) {
        return tm_fail_corrupt(err, w->number, here(w), "an entry to write is out of bounds");
    }
    if (new_key && partition_full(w)) TM_TRY(close_partition(w, &key, err)); // W2
    size_t entry = key.len + value.len;
    bool full = tm_block_builder_estimate(&w->data) >= w->o.block_bytes;
    if (tm_block_builder_count(&w->data) > 0 && (full || entry >= w->o.block_bytes)) {
        TM_TRY(close_data(w, err));
    }
    TM_TRY(settle(w, &key, err));
    TM_TRY(tm_block_builder_add(&w->data, key, trailer, value, err));
    if (new_key) {
        uint64_t hash = 0;
        if (w->o.filter != TM_FILTER_NONE) {
            int st = tm_order_hash(&w->o.order, key, w->o.hash_seed, &w->scratch, &hash);
            if (st == TAMIS_OK) st = tm_filter_builder_add(&w->filter, hash);
            if (st != TAMIS_OK) return tm_fail_nomem(err);
        }
        w->keys++;
    }
    if (!w->has_key) {
        if (tm_buf_set(&w->meta.smallest, key) != TAMIS_OK) return tm_fail_nomem(err);
        w->has_key = true;
    }
    count_entry(w, key, trailer, value);
    // A value larger than a block stands alone in it.
    return entry >= w->o.block_bytes ? close_data(w, err) : TAMIS_OK;
}

int tm_table_writer_add(tm_table_writer *w, tm_slice key, uint64_t trailer, tm_slice value,
                        tamis_error *err)
{
    if (w->failed) return tm_fail(err, TAMIS_MISUSE, "the table failed before");
    int st = add(w, key, trailer, value, err);
    w->failed = st != TAMIS_OK;
    return st;
}

int tm_table_writer_add_range(tm_table_writer *w, tm_slice start, tm_slice limit, uint64_t seq,
                              tamis_error *err)
{
    if (tm_range_builder_add(&w->ranges, start, limit, seq) != TAMIS_OK) return tm_fail_nomem(err);
    tm_table_meta *m = &w->meta;
    if (m->entries == 0 && m->range_deletes == 0) m->min_seq = m->max_seq = seq;
    m->min_seq = TM_MIN(m->min_seq, seq);
    m->max_seq = TM_MAX(m->max_seq, seq);
    m->range_deletes++;
    return TAMIS_OK;
}

// ---- The tail ----------------------------------------------------------------------------------

// Bounds cover the range deletes, too.
static int widen_bounds(tm_table_writer *w, const tm_range_set *set, tamis_error *err)
{
    tm_table_meta *m = &w->meta;
    const tm_order *order = &w->o.order;
    if (set->n == 0) return TAMIS_OK;
    tm_slice first = set->fragments[0].start;
    const tm_range_fragment *last = &set->fragments[set->n - 1];
    int st = TAMIS_OK;
    if (!w->has_key || tm_order_compare(order, first, tm_buf_slice(&m->smallest)) < 0) {
        st = tm_buf_set(&m->smallest, first);
    }
    if (last->unbounded) {
        m->flags |= TM_TABLE_UNBOUNDED;
        if (!w->has_key && st == TAMIS_OK) st = tm_buf_set(&m->largest, last->start);
    } else if (!w->has_key || tm_order_compare(order, last->limit, tm_buf_slice(&m->largest)) > 0) {
        m->flags |= TM_TABLE_LARGEST_EXCLUSIVE;
        if (st == TAMIS_OK) st = tm_buf_set(&m->largest, last->limit);
    }
    return st == TAMIS_OK ? st : tm_fail_nomem(err);
}

static int fill_properties(tm_table_writer *w, tm_buf *out)
{
    const tm_table_meta *m = &w->meta;
    tm_slice text = tm_slice_str(tm_order_name(&w->o.order));
    double rate = m->entries ? w->expected_rate_sum / (double)m->entries : 0;
    TM_TRY(tm_properties_put(out, "comparator", text));
    TM_TRY(tm_properties_put(
        out, "compression", tm_slice_str(w->o.compression == TM_COMPRESSION_LZ4 ? "lz4" : "none")));
    TM_TRY(tm_properties_put_number(out, "created_ms", w->o.created_ms));
    TM_TRY(tm_properties_put_number(out, "data_blocks", w->data_blocks));
    TM_TRY(tm_properties_put_number(out, "data_bytes", w->data_bytes));
    TM_TRY(tm_properties_put_number(out, "deletes", m->deletes));
    TM_TRY(tm_properties_put_number(out, "entries", m->entries));
    TM_TRY(tm_properties_put(out, "family", w->o.family_name));
    TM_TRY(tm_properties_put_number(out, "family_id", w->o.family_id));
    TM_TRY(tm_properties_put(out, "filter", tm_slice_str(tm_filter_kind_name(w->o.filter))));
    TM_TRY(tm_properties_put_number(out, "filter_bytes", m->filter_bytes));
    TM_TRY(tm_properties_put_number(out, "filter_expected_ppb", (uint64_t)(rate * 1e9 + 0.5)));
    TM_TRY(tm_properties_put_number(out, "filter_keys", m->filter_keys));
    TM_TRY(tm_properties_put_number(out, "filter_millibits", w->o.filter_millibits));
    TM_TRY(tm_properties_put_number(out, "index_bytes", w->index_bytes));
    TM_TRY(tm_properties_put_number(out, "keys", w->keys));
    TM_TRY(tm_properties_put(out, "largest", tm_buf_slice(&m->largest)));
    TM_TRY(tm_properties_put_number(out, "max_seq", m->max_seq));
    TM_TRY(tm_properties_put_number(out, "merges", w->merges));
    TM_TRY(tm_properties_put_number(out, "min_seq", m->min_seq));
    TM_TRY(tm_properties_put_number(out, "partitions", w->partitions));
    TM_TRY(tm_properties_put_number(out, "range_deletes", m->range_deletes));
    TM_TRY(tm_properties_put_number(out, "raw_bytes", m->raw_bytes));
    TM_TRY(tm_properties_put(out, "smallest", tm_buf_slice(&m->smallest)));
    return tm_properties_put(out, "writer", tm_slice_str("tamis"));
}
enum { PROPERTY_COUNT = 25 };

static int put_ranges(tm_table_writer *w, tm_footer *foot, tamis_error *err)
{
    tm_range_set set;
    if (tm_range_builder_finish(&w->ranges, &w->o.order, &set) != TAMIS_OK) {
        return tm_fail_nomem(err);
    }
    tm_buf_clear(&w->raw);
    int st = widen_bounds(w, &set, err);
    w->meta.range_deletes = 0;
    for (uint32_t i = 0; i < set.n; i++) w->meta.range_deletes += set.fragments[i].count;
    if (st == TAMIS_OK && set.n > 0) {
        w->required |= TM_TABLE_HAS_RANGE_DELETES;
        foot->fragments = set.n;
        st = tm_range_set_encode(&set, &w->raw);
        if (st != TAMIS_OK)
            st = tm_fail_nomem(err);
        else
            st = put_frame(w, TM_BLOCK_RANGE, tm_buf_slice(&w->raw), set.n, true,
                           &foot->range_offset, &foot->range_length, err);
    }
    tm_range_set_deinit(&set);
    return st;
}

static int put_tail(tm_table_writer *w, tamis_error *err)
{
    tm_footer foot = {.hash_seed = w->o.hash_seed, .entries = w->meta.entries};
    uint8_t bytes[TM_TABLE_FOOTER_BYTES];
    memcpy(foot.id, w->o.id, sizeof foot.id);
    w->meta.tail_offset = here(w);
    TM_TRY(put_ranges(w, &foot, err));
    tm_buf_clear(&w->raw);
    if (fill_properties(w, &w->raw) != TAMIS_OK) return tm_fail_nomem(err);
    TM_TRY(put_frame(w, TM_BLOCK_PROPERTIES, tm_buf_slice(&w->raw), PROPERTY_COUNT, true,
                     &foot.properties_offset, &foot.properties_length, err));
    foot.partitions = tm_block_builder_count(&w->top);
    TM_TRY(put_block(w, TM_BLOCK_TOP, &w->top, &foot.top_offset, &foot.top_length, err));
    if (w->o.order.bytewise) foot.flags |= TM_FOOTER_BYTEWISE;
    if (w->o.filter != TM_FILTER_NONE) foot.flags |= TM_FOOTER_FILTERS;
    foot.required = w->required;
    foot.file_bytes = here(w) + TM_TABLE_FOOTER_BYTES;
    tm_footer_encode(&foot, bytes);
    if (tm_buf_append(&w->buffer, bytes, sizeof bytes) != TAMIS_OK) return tm_fail_nomem(err);
    return flush_buffer(w, err);
}

static int finish(tm_table_writer *w, tm_table_meta *meta, tamis_error *err)
{
    tm_table_meta *m = &w->meta;
    if (m->entries + m->range_deletes == 0) {
        return tm_fail(err, TAMIS_MISUSE, "a table needs an entry");
    }
    TM_TRY(close_partition(w, NULL, err));
    if (w->has_key && tm_buf_set(&m->largest, tm_buf_slice(&w->last_key)) != TAMIS_OK) {
        return tm_fail_nomem(err);
    }
    TM_TRY(put_tail(w, err));
    TM_TRY(tm_file_sync(&w->file, err));
    TM_TRY(tm_file_close(&w->file, err)); // W4
    m->number = w->number;
    memcpy(m->id, w->o.id, sizeof m->id);
    m->file_bytes = w->flushed;
    m->created_ms = w->o.created_ms;
    m->hash_seed = w->o.hash_seed;
    m->half_ms = half_expired(w);
    if (w->lasting || m->range_deletes > 0) m->expires_ms = 0;
    tm_digest_final(w->digest, m->digest);
    *meta = *m;
    tm_table_meta_init(m); // its keys went to the caller
    w->finished = true;
    return TAMIS_OK;
}

int tm_table_writer_finish(tm_table_writer *w, tm_table_meta *meta, tamis_error *err)
{
    if (w->failed || w->finished) return tm_fail(err, TAMIS_MISUSE, "the table failed before");
    int st = finish(w, meta, err);
    w->failed = st != TAMIS_OK;
    return st;
}

// ---- Life --------------------------------------------------------------------------------------

int tm_table_writer_create(tamis_dir *dir, uint64_t number, const tm_table_writer_options *options,
                           tm_table_writer **out, tamis_error *err)
{
    char name[32];
    uint8_t bytes[TM_TABLE_HEADER_BYTES];
    tm_table_header header = {0};
    tm_table_writer *w = tm_calloc(1, sizeof *w);
    if (w == NULL) return tm_fail_nomem(err);
    w->o = *options;
    w->dir = dir;
    w->number = number;
    tm_block_builder_init(&w->data, options->order.bytewise);
    tm_block_builder_init(&w->index, options->order.bytewise);
    tm_block_builder_init(&w->top, options->order.bytewise);
    tm_range_builder_init(&w->ranges);
    tm_table_meta_init(&w->meta);
    table_name(name, number);
    memcpy(header.id, options->id, sizeof header.id);
    tm_table_header_encode(&header, bytes);
    int st = tm_compressor_init(&w->compressor, err);
    if (st != TAMIS_OK) goto out;
    if ((w->digest = tm_digest_create()) == NULL ||
        tm_buf_reserve(&w->buffer, WRITE_BYTES + 4 * options->block_bytes) != TAMIS_OK ||
        tm_buf_append(&w->buffer, bytes, sizeof bytes) != TAMIS_OK) {
        st = tm_fail_nomem(err);
        goto out;
    }
    TM_GOTO(tm_filter_builder_init(&w->filter, options->filter, options->filter_millibits,
                                   options->hash_seed, err));
    TM_GOTO(tm_file_open(dir, name, number, TAMIS_FILE_CREATE, &w->file, err));
    w->created = true;
    w->partition_begin = TM_TABLE_HEADER_BYTES;
    *out = w;
    w = NULL;
out:
    tm_table_writer_destroy(w);
    return st;
}

void tm_table_writer_destroy(tm_table_writer *w)
{
    if (w == NULL) return;
    (void)!tm_file_close(&w->file, NULL);
    if (w->created && !w->finished) {
        char name[32];
        table_name(name, w->number);
        (void)!tm_dir_unlink(w->dir, name, NULL);
    }
    tm_digest_destroy(w->digest);
    tm_compressor_deinit(&w->compressor);
    tm_block_builder_deinit(&w->data);
    tm_block_builder_deinit(&w->index);
    tm_block_builder_deinit(&w->top);
    tm_filter_builder_deinit(&w->filter);
    tm_range_builder_deinit(&w->ranges);
    tm_table_meta_deinit(&w->meta);
    tm_buf_deinit(&w->buffer);
    tm_buf_deinit(&w->raw);
    tm_buf_deinit(&w->last_key);
    tm_buf_deinit(&w->separator);
    tm_buf_deinit(&w->scratch);
    tm_free(w);
}

uint64_t tm_table_writer_bytes(const tm_table_writer *w)
{
    return here(w) + tm_block_builder_estimate(&w->data) + tm_block_builder_estimate(&w->index) +
           tm_filter_builder_bytes(&w->filter) + tm_block_builder_estimate(&w->top) +
           TM_TABLE_FOOTER_BYTES;
}

uint64_t tm_table_writer_entries(const tm_table_writer *w)
{
    return w->meta.entries;
}

size_t tm_table_writer_memory(const tm_table_writer *w)
{
    return sizeof *w + w->buffer.cap + w->raw.cap + tm_block_builder_memory(&w->data) +
           tm_block_builder_memory(&w->index) + tm_block_builder_memory(&w->top) +
           w->filter.capacity * sizeof(uint64_t) + w->ranges.bytes.cap + w->ranges.items.cap;
}
