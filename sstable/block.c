// SPDX-License-Identifier: BSD-2-Clause

#include "sstable/block.h"

// ---- Opening -----------------------------------------------------------------------------------

// Columns are laid out one behind the other; what reaches beyond raw makes at = SIZE_MAX.
static size_t take_column(size_t at, uint64_t bytes, size_t len)
{
    return at > len || bytes > len - at ? SIZE_MAX : at + (size_t)bytes;
}

static const char *place_columns(tm_block *b, tm_slice raw, bool bytewise, const uint8_t **values,
                                 size_t *entries_at)
{
    const uint8_t *p = raw.data;
    uint64_t n = b->n;
    if (raw.len < TM_BLOCK_FIXED) return "it is too short";
    b->flags = p[0];
    uint8_t width = p[1];
    b->prefix_len = tm_get16(p + 2);
    b->suffix_len = tm_get16(p + 4);
    b->kind = p[6];
    b->base_seq = tm_get64(p + 12);
    bool heads = b->flags & TM_ENTRIES_HEADS;
    if ((b->flags & 128) || p[7] != 0 || (width != 1 && width != 2 && width != 4)) {
        return "its first fields are wrong";
    }
    if (heads != bytewise || (!heads && b->prefix_len != 0)) return "its keys are of another order";
    if (b->base_seq > TM_MAX_SEQ) return "its sequence numbers are out of range";
    b->prefix = p + TM_BLOCK_FIXED;
    size_t at = take_column(TM_BLOCK_FIXED, b->prefix_len, raw.len);
    if (at != SIZE_MAX) at = take_column(at, (4 - (at & 3)) & 3, raw.len);
    b->heads = heads && at != SIZE_MAX ? p + at : NULL;
    at = take_column(at, heads ? 4 * n : 0, raw.len);
    b->suffixes = b->flags & TM_ENTRIES_ONE_SUFFIX_LEN || at == SIZE_MAX ? NULL : p + at;
    if (!(b->flags & TM_ENTRIES_ONE_SUFFIX_LEN)) {
        at = take_column(at, b->flags & TM_ENTRIES_WIDE_SUFFIX ? 2 * n : n, raw.len);
    }
    *values = b->flags & TM_ENTRIES_ONE_VALUE_LEN || at == SIZE_MAX ? NULL : p + at;
    at = take_column(at, b->flags & TM_ENTRIES_ONE_VALUE_LEN ? 0 : width * n, raw.len);
    b->seqs = b->flags & TM_ENTRIES_ONE_SEQ || at == SIZE_MAX ? NULL : p + at;
    if (!(b->flags & TM_ENTRIES_ONE_SEQ)) {
        at = take_column(at, b->flags & TM_ENTRIES_WIDE_SEQ ? 8 * n : 4 * n, raw.len);
    }
    b->kinds = b->flags & TM_ENTRIES_ONE_KIND || at == SIZE_MAX ? NULL : p + at;
    at = take_column(at, b->flags & TM_ENTRIES_ONE_KIND ? 0 : n, raw.len);
    if (at == SIZE_MAX) return "its columns reach beyond its end";
    *entries_at = at;
    return NULL;
}

// Where each entry begins: all of one size, or the sums of the two length columns.
static const char *fill_offsets(const tm_block *b, tm_slice raw, const uint8_t *values,
                                size_t entries_at, uint32_t *offsets)
{
    uint64_t at = entries_at;
    uint8_t width = raw.data[1];
    uint32_t one_value = tm_get32(raw.data + 8);
    uint32_t most = TM_MAX_KEY_BYTES - b->prefix_len;
    if (b->suffixes == NULL && values == NULL) {
        uint64_t size = (uint64_t)tm_block_rest_len(b, 0) + one_value;
        if (b->suffix_len > most && b->n > 0) return "a key is too long";
        if (b->n > 0 && size > (raw.len - at) / b->n) return "its entries reach beyond its end";
        for (uint32_t i = 0; i <= b->n; i++) offsets[i] = (uint32_t)(at + size * i);
        at += size * b->n;
    } else {
        for (uint32_t i = 0; i < b->n; i++) {
            uint32_t value = one_value;
            if (values != NULL) {
                const uint8_t *v = values + (size_t)i * width;
                value = width == 1 ? *v : width == 2 ? tm_get16(v) : tm_get32(v);
            }
            if (tm_block_suffix_len(b, i) > most) return "a key is too long";
            offsets[i] = (uint32_t)at;
            at += (uint64_t)tm_block_rest_len(b, i) + value;
            if (at > raw.len) return "its entries reach beyond its end";
        }
        offsets[b->n] = (uint32_t)at;
    }
    return at == raw.len ? NULL : "its entries end before its end";
}

int tm_block_init(tm_block *b, tm_slice raw, uint32_t entries, bool bytewise, uint32_t *offsets,
                  uint64_t file_number, uint64_t offset, tamis_error *err)
{
    const uint8_t *values = NULL;
    size_t entries_at = 0;
    memset(b, 0, sizeof *b);
    b->raw = raw.data;
    b->offsets = offsets;
    b->n = entries;
    const char *wrong = raw.len > TM_MAX_BLOCK_RAW
                            ? "it is too long"
                            : place_columns(b, raw, bytewise, &values, &entries_at);
    if (wrong == NULL) wrong = fill_offsets(b, raw, values, entries_at, offsets);
    if (wrong == NULL) return TAMIS_OK;
    b->n = 0;
    return tm_fail_corrupt(err, file_number, offset, "%06llu.sst: block at offset %llu: %s",
                           (unsigned long long)file_number, (unsigned long long)offset, wrong);
}

// ---- Keys --------------------------------------------------------------------------------------

uint32_t tm_block_key_suffix(const tm_block *b, uint32_t i, uint8_t *out)
{
    uint32_t suffix = tm_block_suffix_len(b, i);
    const uint8_t *rest = b->raw + b->offsets[i];
    uint8_t *p = out + b->prefix_len;
    if (b->heads != NULL) {
        tm_put32be(p, tm_block_head(b, i)); // a short suffix is followed by zeros in the slack
        if (suffix > 4) memcpy(p + 4, rest, suffix - 4);
    } else if (suffix > 0) {
        memcpy(p, rest, suffix);
    }
    return b->prefix_len + suffix;
}

uint32_t tm_block_key(const tm_block *b, uint32_t i, uint8_t *out)
{
    if (b->prefix_len > 0) memcpy(out, b->prefix, b->prefix_len);
    return tm_block_key_suffix(b, i, out);
}

// Suffix of entry i against a suffix given as its head and whole bytes; both with heads.
static int compare_suffix(const tm_block *b, uint32_t i, uint32_t head, tm_slice suffix)
{
    uint32_t own = tm_block_head(b, i), own_len = tm_block_suffix_len(b, i);
    if (own != head) return own < head ? -1 : 1;
    if (own_len > 4 && suffix.len > 4) {
        return tm_slice_compare(tm_slice_of(b->raw + b->offsets[i], own_len - 4),
                                tm_slice_of(suffix.data + 4, suffix.len - 4));
    }
    // Heads are equal and one suffix ends inside its head: it is the other one's beginning, padded
    // with zeros that the other one really has.
    return (own_len > suffix.len) - (own_len < suffix.len);
}

int tm_block_compare_keys(const tm_block *b, const tm_order *order, uint32_t i, uint32_t j)
{
    if (b->heads == NULL) return tm_order_compare(order, tm_block_rest(b, i), tm_block_rest(b, j));
    uint32_t hi = tm_block_head(b, i), hj = tm_block_head(b, j);
    if (hi != hj) return hi < hj ? -1 : 1;
    uint32_t li = tm_block_suffix_len(b, i), lj = tm_block_suffix_len(b, j);
    if (li > 4 && lj > 4) return tm_slice_compare(tm_block_rest(b, i), tm_block_rest(b, j));
    return (li > lj) - (li < lj);
}

bool tm_block_is_sorted(const tm_block *b, const tm_order *order, uint32_t *at)
{
    for (uint32_t i = 1; i < b->n; i++) {
        int c = tm_block_compare_keys(b, order, i - 1, i);
        if (c > 0 || (c == 0 && tm_block_trailer(b, i - 1) <= tm_block_trailer(b, i))) {
            *at = i;
            return false;
        }
    }
    return true;
}

// ---- Search ------------------------------------------------------------------------------------

// The first i in [low, n) that is not before (suffix, trailer), where [low, n) begins with the
// entries whose heads equal head.
static uint32_t search_equal(const tm_block *b, uint32_t low, uint32_t high, uint32_t head,
                             tm_slice suffix, uint64_t trailer, bool *equal)
{
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        int c = compare_suffix(b, mid, head, suffix);
        if (c < 0 || (c == 0 && tm_block_trailer(b, mid) > trailer))
            low = mid + 1;
        else
            high = mid;
    }
    *equal = low < b->n && compare_suffix(b, low, head, suffix) == 0;
    return low;
}

// The first entry whose head is not less. Each step halves the rest without a branch on the data.
static uint32_t search_heads(const tm_block *b, uint32_t head)
{
    uint32_t base = 0, n = b->n;
    while (n > 1) {
        uint32_t half = n / 2;
        base = tm_block_head(b, base + half - 1) < head ? base + half : base;
        n -= half;
    }
    return base + (n == 1 && tm_block_head(b, base) < head);
}

static uint32_t lower_bound(const tm_block *b, const tm_order *order, tm_slice key,
                            uint64_t trailer, bool *equal)
{
    *equal = false;
    if (TM_UNLIKELY(b->heads == NULL)) {
        uint32_t low = 0, high = b->n;
        while (low < high) {
            uint32_t mid = low + (high - low) / 2;
            int c = tm_order_compare(order, tm_block_rest(b, mid), key);
            if (c < 0 || (c == 0 && tm_block_trailer(b, mid) > trailer))
                low = mid + 1;
            else
                high = mid;
        }
        *equal = low < b->n && tm_order_compare(order, tm_block_rest(b, low), key) == 0;
        return low;
    }
    size_t common = TM_MIN(key.len, (size_t)b->prefix_len);
    int c = common > 0 ? memcmp(key.data, b->prefix, common) : 0;
    if (c != 0) return c < 0 ? 0 : b->n;
    if (key.len < b->prefix_len) return 0;
    tm_slice suffix = tm_slice_of(key.data + b->prefix_len, key.len - b->prefix_len);
    uint32_t head = tm_head32(suffix.data, suffix.len);
    uint32_t low = search_heads(b, head);
    if (low == b->n || tm_block_head(b, low) != head) return low;
    // Mostly one entry has this head, seldom many: look at the next, then gallop.
    uint32_t high = low + 1;
    for (uint32_t step = 1; high < b->n && tm_block_head(b, high) == head; step *= 2) {
        if (step > b->n - high) {
            high = b->n;
            break;
        }
        high += step;
    }
    return search_equal(b, low, high, head, suffix, trailer, equal);
}

uint32_t tm_block_lower_bound(const tm_block *b, const tm_order *order, tm_slice key,
                              uint64_t trailer)
{
    bool equal;
    return lower_bound(b, order, key, trailer, &equal);
}

bool tm_block_find(const tm_block *b, const tm_order *order, tm_slice key, uint64_t trailer,
                   uint32_t *i)
{
    bool equal;
    *i = lower_bound(b, order, key, trailer, &equal);
    return equal;
}
