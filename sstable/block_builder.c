// SPDX-License-Identifier: BSD-2-Clause

#include "sstable/block_builder.h"

#include "base/mem.h"

enum { KEEP_BYTES = 1 << 20, FIRST_ITEMS = 64 };

void tm_block_builder_init(tm_block_builder *b, bool bytewise)
{
    memset(b, 0, sizeof *b);
    b->heads = bytewise;
}

void tm_block_builder_deinit(tm_block_builder *b)
{
    tm_buf_deinit(&b->bytes);
    tm_free(b->items);
    b->items = NULL;
    b->n = b->cap = 0;
}

void tm_block_builder_reset(tm_block_builder *b)
{
    if (b->bytes.cap > KEEP_BYTES) tm_buf_deinit(&b->bytes);
    tm_buf_clear(&b->bytes);
    b->n = 0;
}

static int more_items(tm_block_builder *b, tamis_error *err)
{
    uint32_t cap = b->cap ? b->cap * 2 : FIRST_ITEMS;
    tm_block_item *items = cap > b->cap ? tm_realloc(b->items, (size_t)cap * sizeof *items) : NULL;
    if (items == NULL) return tm_fail_nomem(err);
    b->items = items;
    b->cap = cap;
    return TAMIS_OK;
}

static void first_entry(tm_block_builder *b, tm_slice key, tm_slice value, uint64_t seq,
                        uint8_t kind)
{
    b->prefix_len = b->heads ? (uint32_t)key.len : 0;
    b->key_min = b->key_max = (uint32_t)key.len;
    b->value_min = b->value_max = (uint32_t)value.len;
    b->seq_min = b->seq_max = seq;
    b->kind_or = b->kind_and = kind;
    b->key_bytes = 0;
}

int tm_block_builder_add(tm_block_builder *b, tm_slice key, uint64_t trailer, tm_slice value,
                         tamis_error *err)
{
    if (key.len > TM_MAX_KEY_BYTES || value.len > TM_MAX_VALUE_BYTES ||
        b->bytes.len + key.len + value.len > TM_MAX_BLOCK_RAW - 65536) {
        return tm_fail(err, TAMIS_TOOLARGE, "an entry of %zu + %zu bytes does not fit into a block",
                       key.len, value.len);
    }
    if (TM_UNLIKELY(b->n == b->cap)) TM_TRY(more_items(b, err));
    if (tm_buf_reserve(&b->bytes, key.len + value.len) != TAMIS_OK) return tm_fail_nomem(err);
    uint64_t seq = tm_trailer_seq(trailer);
    uint8_t kind = (uint8_t)trailer;
    if (b->n == 0) {
        first_entry(b, key, value, seq, kind);
    } else if (b->prefix_len > 0) { // keys ascend, but the layout must hold for any
        const tm_block_item *first = &b->items[0];
        tm_slice f = tm_slice_of(b->bytes.data + first->at, TM_MIN(first->key_len, b->prefix_len));
        if (key.len < b->prefix_len || memcmp(key.data, f.data, b->prefix_len) != 0) {
            b->prefix_len = (uint32_t)tm_slice_common(f, key);
        }
    }
    tm_block_item *it = &b->items[b->n++];
    *it = (tm_block_item){trailer, (uint32_t)b->bytes.len, (uint32_t)key.len, (uint32_t)value.len};
    uint8_t *at = b->bytes.data + b->bytes.len;
    if (key.len > 0) memcpy(at, key.data, key.len);
    if (value.len > 0) memcpy(at + key.len, value.data, value.len);
    b->bytes.len += key.len + value.len;
    b->key_bytes += key.len;
    b->key_min = TM_MIN(b->key_min, it->key_len);
    b->key_max = TM_MAX(b->key_max, it->key_len);
    b->value_min = TM_MIN(b->value_min, it->value_len);
    b->value_max = TM_MAX(b->value_max, it->value_len);
    b->seq_min = TM_MIN(b->seq_min, seq);
    b->seq_max = TM_MAX(b->seq_max, seq);
    b->kind_or |= kind;
    b->kind_and &= kind;
    return TAMIS_OK;
}

// ---- Layout ------------------------------------------------------------------------------------

typedef struct layout {
    uint8_t flags, value_width;
    size_t prefix, heads, suffixes, values, seqs, kinds, entries; // where the columns begin
} layout;

static void plan(const tm_block_builder *b, layout *l)
{
    uint32_t longest = b->key_max - b->prefix_len;
    size_t n = b->n;
    l->flags = 0;
    l->value_width = b->value_max <= 0xff ? 1 : b->value_max <= 0xffff ? 2 : 4;
    if (b->heads) l->flags |= TM_ENTRIES_HEADS;
    if (b->key_min == b->key_max) l->flags |= TM_ENTRIES_ONE_SUFFIX_LEN;
    if (b->value_min == b->value_max) l->flags |= TM_ENTRIES_ONE_VALUE_LEN;
    if (b->seq_min == b->seq_max) l->flags |= TM_ENTRIES_ONE_SEQ;
    if (b->kind_or == b->kind_and) l->flags |= TM_ENTRIES_ONE_KIND;
    if (b->seq_max - b->seq_min > UINT32_MAX) l->flags |= TM_ENTRIES_WIDE_SEQ;
    if (longest > 0xff) l->flags |= TM_ENTRIES_WIDE_SUFFIX;
    l->prefix = TM_BLOCK_FIXED;
    l->heads = (l->prefix + b->prefix_len + 3) & ~(size_t)3;
    l->suffixes = l->heads + (b->heads ? 4 * n : 0);
    l->values = l->suffixes;
    if (!(l->flags & TM_ENTRIES_ONE_SUFFIX_LEN)) {
        l->values += l->flags & TM_ENTRIES_WIDE_SUFFIX ? 2 * n : n;
    }
    l->seqs = l->values + (l->flags & TM_ENTRIES_ONE_VALUE_LEN ? 0 : l->value_width * n);
    l->kinds = l->seqs;
    if (!(l->flags & TM_ENTRIES_ONE_SEQ))
        l->kinds += l->flags & TM_ENTRIES_WIDE_SEQ ? 8 * n : 4 * n;
    l->entries = l->kinds + (l->flags & TM_ENTRIES_ONE_KIND ? 0 : n);
}

size_t tm_block_builder_estimate(const tm_block_builder *b)
{
    layout l;
    if (b->n == 0) return TM_BLOCK_FIXED;
    plan(b, &l);
    // Heads hold 4 bytes of each suffix; a suffix shorter than that leaves nothing in its entry.
    uint64_t suffix_bytes = b->key_bytes - (uint64_t)b->n * b->prefix_len;
    uint64_t in_heads = 0;
    if (b->heads && b->key_min - b->prefix_len >= 4) in_heads = (uint64_t)b->n * 4;
    uint64_t value_bytes = b->bytes.len - b->key_bytes;
    return l.entries + (size_t)(suffix_bytes - in_heads + value_bytes);
}

static void put_fixed(const tm_block_builder *b, const layout *l, uint8_t *out)
{
    bool one_suffix = l->flags & TM_ENTRIES_ONE_SUFFIX_LEN;
    out[0] = l->flags;
    out[1] = l->value_width;
    tm_put16(out + 2, (uint16_t)b->prefix_len);
    tm_put16(out + 4, one_suffix ? (uint16_t)(b->key_min - b->prefix_len) : 0);
    out[6] = l->flags & TM_ENTRIES_ONE_KIND ? b->kind_or : 0;
    out[7] = 0;
    tm_put32(out + 8, l->flags & TM_ENTRIES_ONE_VALUE_LEN ? b->value_min : 0);
    tm_put64(out + 12, b->seq_min);
    if (b->prefix_len > 0) memcpy(out + l->prefix, b->bytes.data + b->items[0].at, b->prefix_len);
    memset(out + l->prefix + b->prefix_len, 0, l->heads - l->prefix - b->prefix_len);
}

static void put_columns(const tm_block_builder *b, const layout *l, uint8_t *out)
{
    for (uint32_t i = 0; i < b->n; i++) {
        const tm_block_item *it = &b->items[i];
        uint32_t suffix = it->key_len - b->prefix_len;
        if (b->heads) {
            const uint8_t *s = b->bytes.data + it->at + b->prefix_len;
            tm_put32(out + l->heads + 4 * (size_t)i, tm_head32(s, suffix));
        }
        if (!(l->flags & TM_ENTRIES_ONE_SUFFIX_LEN)) {
            if (l->flags & TM_ENTRIES_WIDE_SUFFIX) {
                tm_put16(out + l->suffixes + 2 * (size_t)i, (uint16_t)suffix);
            } else {
                out[l->suffixes + i] = (uint8_t)suffix;
            }
        }
        if (!(l->flags & TM_ENTRIES_ONE_VALUE_LEN)) {
            uint8_t *p = out + l->values + (size_t)l->value_width * i;
            if (l->value_width == 1)
                *p = (uint8_t)it->value_len;
            else if (l->value_width == 2)
                tm_put16(p, (uint16_t)it->value_len);
            else
                tm_put32(p, it->value_len);
        }
        uint64_t delta = tm_trailer_seq(it->trailer) - b->seq_min;
        if (!(l->flags & TM_ENTRIES_ONE_SEQ)) {
            if (l->flags & TM_ENTRIES_WIDE_SEQ)
                tm_put64(out + l->seqs + 8 * (size_t)i, delta);
            else
                tm_put32(out + l->seqs + 4 * (size_t)i, (uint32_t)delta);
        }
        if (!(l->flags & TM_ENTRIES_ONE_KIND)) out[l->kinds + i] = (uint8_t)it->trailer;
    }
}

static uint8_t *put_entries(const tm_block_builder *b, uint8_t *p)
{
    for (uint32_t i = 0; i < b->n; i++) {
        const tm_block_item *it = &b->items[i];
        uint32_t skip = b->prefix_len;
        if (b->heads) skip += TM_MIN(it->key_len - b->prefix_len, 4u);
        size_t n = (size_t)it->key_len - skip + it->value_len; // rest and value stand together
        if (n > 0) memcpy(p, b->bytes.data + it->at + skip, n);
        p += n;
    }
    return p;
}

int tm_block_builder_finish(tm_block_builder *b, tm_buf *out, tamis_error *err)
{
    layout l;
    if (b->n == 0) b->prefix_len = 0;
    plan(b, &l);
    size_t most = l.entries + b->bytes.len;
    if (tm_buf_reserve(out, most) != TAMIS_OK) return tm_fail_nomem(err);
    uint8_t *raw = out->data + out->len;
    put_fixed(b, &l, raw);
    put_columns(b, &l, raw);
    out->len += (size_t)(put_entries(b, raw + l.entries) - raw);
    return TAMIS_OK;
}
