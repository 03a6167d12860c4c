// SPDX-License-Identifier: BSD-2-Clause

#include "sstable/format.h"

#include "base/hash.h"

int tm_table_features_check(uint64_t required, uint64_t file_number, uint64_t offset,
                            tamis_error *err)
{
    static const char *const names[] = {"range deletes", "merge operands", "expiring entries",
                                        "separated values", "two-level index partitions"};
    uint64_t unknown = required & ~TM_TABLE_KNOWN_FEATURES;
    if (unknown == 0) return TAMIS_OK;
    unsigned bit = (unsigned)__builtin_ctzll(unknown);
    int st = tm_fail(err, TAMIS_UNSUPPORTED,
                     "table %06llu needs a feature that this library cannot read: bit %u (%s)",
                     (unsigned long long)file_number, bit,
                     bit < TM_COUNT(names) ? names[bit] : "of a newer version");
    if (err != NULL) {
        err->file_number = file_number;
        err->offset = offset;
    }
    return st;
}

static int check_version(uint16_t major, uint64_t file_number, tamis_error *err)
{
    if (major == TM_TABLE_MAJOR) return TAMIS_OK;
    return tm_fail(err, TAMIS_UNSUPPORTED, "table %06llu has format %u; this library reads %u",
                   (unsigned long long)file_number, major, TM_TABLE_MAJOR);
}

// ---- Header ------------------------------------------------------------------------------------

void tm_table_header_encode(const tm_table_header *h, uint8_t out[TM_TABLE_HEADER_BYTES])
{
    memcpy(out, TM_TABLE_MAGIC, 8);
    tm_put16(out + 8, TM_TABLE_MAJOR);
    tm_put16(out + 10, TM_TABLE_MINOR);
    tm_put32(out + 12, TM_TABLE_HEADER_BYTES);
    tm_put64(out + 16, h->required);
    tm_put64(out + 24, h->optional);
    memcpy(out + 32, h->id, 16);
    tm_put64(out + 48, 0);
    tm_put64(out + 56, tm_checksum(out, 56));
}

int tm_table_header_decode(tm_table_header *h, const uint8_t bytes[TM_TABLE_HEADER_BYTES],
                           uint64_t file_number, tamis_error *err)
{
    unsigned long long number = file_number;
    if (memcmp(bytes, TM_TABLE_MAGIC, 8) != 0) {
        return tm_fail_corrupt(err, file_number, 0, "%06llu.sst does not begin as a table", number);
    }
    uint64_t found = tm_checksum(bytes, 56), stored = tm_get64(bytes + 56);
    if (found != stored) {
        return tm_fail_corrupt(err, file_number, 0,
                               "%06llu.sst: header: checksum %016llx expected, %016llx found",
                               number, (unsigned long long)stored, (unsigned long long)found);
    }
    TM_TRY(check_version(tm_get16(bytes + 8), file_number, err));
    if (tm_get32(bytes + 12) != TM_TABLE_HEADER_BYTES || tm_get64(bytes + 48) != 0) {
        return tm_fail_corrupt(err, file_number, 0, "%06llu.sst: header: fields are wrong", number);
    }
    h->required = tm_get64(bytes + 16);
    h->optional = tm_get64(bytes + 24);
    memcpy(h->id, bytes + 32, 16);
    return tm_table_features_check(h->required, file_number, 16, err);
}

// ---- Frames ------------------------------------------------------------------------------------

const char *tm_block_kind_name(uint8_t kind)
{
    static const char *const names[] = {"data",      "index",        "filter",
                                        "top-level", "range-delete", "properties"};
    if (kind < TM_BLOCK_DATA || kind > TM_BLOCK_PROPERTIES) return "unknown";
    return names[kind - TM_BLOCK_DATA];
}

static uint64_t place_modifier(const uint8_t id[16], uint64_t offset)
{
    uint8_t place[24];
    memcpy(place, id, 16);
    tm_put64(place + 16, offset);
    return tm_checksum(place, sizeof place);
}

void tm_frame_encode(tm_frame *f, uint8_t *frame, const uint8_t id[16], uint64_t offset)
{
    frame[8] = f->kind;
    frame[9] = f->compression;
    tm_put16(frame + 10, 0);
    tm_put32(frame + 12, f->stored);
    tm_put32(frame + 16, f->raw);
    tm_put32(frame + 20, f->entries);
    f->checksum =
        tm_checksum(frame + 8, TM_FRAME_BYTES - 8 + (size_t)f->stored) ^ place_modifier(id, offset);
    tm_put64(frame, f->checksum);
}

static int bad_frame(uint64_t number, uint64_t offset, const char *what, tamis_error *err)
{
    return tm_fail_corrupt(err, number, offset, "%06llu.sst: block at offset %llu: %s",
                           (unsigned long long)number, (unsigned long long)offset, what);
}

int tm_frame_decode(tm_frame *f, const uint8_t bytes[TM_FRAME_BYTES], uint64_t room,
                    uint64_t file_number, uint64_t offset, tamis_error *err)
{
    f->checksum = tm_get64(bytes);
    f->kind = bytes[8];
    f->compression = bytes[9];
    f->stored = tm_get32(bytes + 12);
    f->raw = tm_get32(bytes + 16);
    f->entries = tm_get32(bytes + 20);
    if (f->kind < TM_BLOCK_DATA || f->kind > TM_BLOCK_PROPERTIES) {
        return bad_frame(file_number, offset, "its kind is unknown", err);
    }
    if (f->compression > TM_STORED_LZ4 || tm_get16(bytes + 10) != 0) {
        return bad_frame(file_number, offset, "its compression is unknown", err);
    }
    if (room < TM_FRAME_BYTES || f->stored > room - TM_FRAME_BYTES) {
        return bad_frame(file_number, offset, "it reaches beyond its place in the file", err);
    }
    bool plain = f->compression == TM_STORED_RAW;
    if (f->raw > TM_MAX_BLOCK_RAW || (plain && f->raw != f->stored) ||
        (!plain && (uint64_t)f->raw > (uint64_t)f->stored * 255 + 64)) {
        return bad_frame(file_number, offset, "its lengths do not fit each other", err);
    }
    return TAMIS_OK;
}

int tm_frame_verify(const tm_frame *f, const uint8_t *bytes, const uint8_t id[16],
                    uint64_t file_number, uint64_t offset, tamis_error *err)
{
    uint64_t found =
        tm_checksum(bytes + 8, TM_FRAME_BYTES - 8 + (size_t)f->stored) ^ place_modifier(id, offset);
    if (TM_LIKELY(found == f->checksum)) return TAMIS_OK;
    return tm_fail_corrupt(err, file_number, offset,
                           "%06llu.sst: %s block at offset %llu: checksum %016llx expected, "
                           "%016llx found",
                           (unsigned long long)file_number, tm_block_kind_name(f->kind),
                           (unsigned long long)offset, (unsigned long long)f->checksum,
                           (unsigned long long)found);
}

int tm_frame_expect(const tm_frame *f, tm_block_kind kind, uint64_t file_number, uint64_t offset,
                    tamis_error *err)
{
    if (TM_LIKELY(f->kind == kind)) return TAMIS_OK;
    return tm_fail_corrupt(err, file_number, offset,
                           "%06llu.sst: block at offset %llu: a %s block was expected, a %s block "
                           "found",
                           (unsigned long long)file_number, (unsigned long long)offset,
                           tm_block_kind_name((uint8_t)kind), tm_block_kind_name(f->kind));
}

// ---- Values of index entries and of the top level ----------------------------------------------

uint8_t *tm_index_value_encode(const tm_index_value *v, uint8_t *out)
{
    return tm_put_varint(tm_put_varint(out, v->offset), v->length);
}

uint8_t *tm_top_value_encode(const tm_top_value *v, uint8_t *out)
{
    out = tm_put_varint(out, v->index_offset);
    out = tm_put_varint(out, v->index_length);
    out = tm_put_varint(out, v->filter_length);
    out = tm_put_varint(out, v->data_offset);
    return tm_put_varint(out, v->entries);
}

bool tm_index_value_decode(tm_index_value *v, tm_slice bytes, uint64_t limit)
{
    tm_cursor c = tm_cursor_of(bytes);
    uint64_t offset = tm_read_varint(&c), length = tm_read_varint(&c);
    if (c.bad || tm_cursor_left(&c) != 0 || length < TM_FRAME_BYTES || length > UINT32_MAX ||
        offset > limit || length > limit - offset) {
        return false;
    }
    *v = (tm_index_value){offset, (uint32_t)length};
    return true;
}

bool tm_top_value_decode(tm_top_value *v, tm_slice bytes, uint64_t tail_offset)
{
    tm_cursor c = tm_cursor_of(bytes);
    uint64_t index_offset = tm_read_varint(&c), index_length = tm_read_varint(&c);
    uint64_t filter_length = tm_read_varint(&c), data_offset = tm_read_varint(&c);
    uint64_t entries = tm_read_varint(&c);
    if (c.bad || tm_cursor_left(&c) != 0) return false;
    if (index_length < TM_FRAME_BYTES || index_length > UINT32_MAX || filter_length > UINT32_MAX ||
        (filter_length != 0 && filter_length < TM_FRAME_BYTES)) {
        return false;
    }
    if (index_offset > tail_offset || index_length > tail_offset - index_offset ||
        data_offset < TM_TABLE_HEADER_BYTES || filter_length > index_offset ||
        data_offset > index_offset - filter_length) {
        return false;
    }
    *v = (tm_top_value){index_offset, (uint32_t)index_length, (uint32_t)filter_length, data_offset,
                        entries};
    return true;
}

// ---- Properties --------------------------------------------------------------------------------

tm_property_type tm_property_type_of(tm_slice name)
{
    static const char *const texts[] = {"comparator", "compression", "family", "filter", "writer"};
    static const char *const numbers[] = {
        "created_ms",    "data_blocks",      "data_bytes",   "deletes",
        "entries",       "family_id",        "filter_bytes", "filter_expected_ppb",
        "filter_keys",   "filter_millibits", "index_bytes",  "keys",
        "max_seq",       "merges",           "min_seq",      "partitions",
        "range_deletes", "raw_bytes"};
    for (size_t i = 0; i < TM_COUNT(texts); i++) {
        if (tm_slice_equal(name, tm_slice_str(texts[i]))) return TM_PROPERTY_TEXT;
    }
    for (size_t i = 0; i < TM_COUNT(numbers); i++) {
        if (tm_slice_equal(name, tm_slice_str(numbers[i]))) return TM_PROPERTY_NUMBER;
    }
    return TM_PROPERTY_BYTES;
}

int tm_properties_put(tm_buf *out, const char *name, tm_slice value)
{
    size_t begin = out->len;
    int st = tm_buf_put_slice(out, tm_slice_str(name));
    if (st == TAMIS_OK) st = tm_buf_put_slice(out, value);
    if (st != TAMIS_OK) out->len = begin;
    return st;
}

int tm_properties_put_number(tm_buf *out, const char *name, uint64_t value)
{
    uint8_t bytes[TM_MAX_VARINT64];
    return tm_properties_put(out, name,
                             tm_slice_of(bytes, (size_t)(tm_put_varint(bytes, value) - bytes)));
}

bool tm_properties_next(tm_cursor *c, tm_slice *name, tm_slice *value)
{
    if (c->bad || tm_cursor_left(c) == 0) return false;
    *name = tm_read_slice(c);
    *value = tm_read_slice(c);
    return !c->bad;
}

bool tm_properties_find(tm_slice raw, const char *name, tm_slice *value)
{
    tm_cursor c = tm_cursor_of(raw);
    tm_slice wanted = tm_slice_str(name), n;
    while (tm_properties_next(&c, &n, value)) {
        if (tm_slice_equal(n, wanted)) return true;
    }
    return false;
}

bool tm_properties_find_number(tm_slice raw, const char *name, uint64_t *value)
{
    tm_slice bytes;
    if (!tm_properties_find(raw, name, &bytes)) return false;
    tm_cursor c = tm_cursor_of(bytes);
    uint64_t v = tm_read_varint(&c);
    if (c.bad || tm_cursor_left(&c) != 0) return false;
    *value = v;
    return true;
}

int tm_properties_check(tm_slice raw, uint32_t count, uint64_t file_number, uint64_t offset,
                        tamis_error *err)
{
    tm_cursor c = tm_cursor_of(raw);
    tm_slice name, value, last = {0};
    uint32_t n = 0;
    while (tm_properties_next(&c, &name, &value)) {
        if (n > 0 && tm_slice_compare(last, name) >= 0) break;
        if (tm_property_type_of(name) == TM_PROPERTY_NUMBER) {
            tm_cursor v = tm_cursor_of(value);
            (void)tm_read_varint(&v);
            if (v.bad || tm_cursor_left(&v) != 0) break;
        }
        last = name;
        n++;
    }
    if (!c.bad && tm_cursor_left(&c) == 0 && n == count) return TAMIS_OK;
    return tm_fail_corrupt(err, file_number, offset,
                           "%06llu.sst: properties at offset %llu cannot be read",
                           (unsigned long long)file_number, (unsigned long long)offset);
}

// ---- Footer ------------------------------------------------------------------------------------

void tm_footer_encode(const tm_footer *f, uint8_t out[TM_TABLE_FOOTER_BYTES])
{
    memset(out, 0, TM_TABLE_FOOTER_BYTES);
    memcpy(out, f->id, 16);
    tm_put64(out + 16, f->top_offset);
    tm_put32(out + 24, f->top_length);
    tm_put32(out + 28, f->partitions);
    tm_put64(out + 32, f->properties_offset);
    tm_put32(out + 40, f->properties_length);
    tm_put64(out + 48, f->range_offset);
    tm_put32(out + 56, f->range_length);
    tm_put32(out + 60, f->fragments);
    tm_put64(out + 64, f->hash_seed);
    tm_put64(out + 72, f->entries);
    tm_put64(out + 80, f->file_bytes);
    tm_put32(out + 88, f->flags);
    tm_put64(out + 96, f->required);
    tm_put16(out + 104, TM_TABLE_MAJOR);
    tm_put16(out + 106, TM_TABLE_MINOR);
    memcpy(out + 112, TM_TABLE_END_MAGIC, 8);
    tm_put64(out + 120, tm_checksum(out, 120));
}

static void read_footer(tm_footer *f, const uint8_t *b)
{
    memcpy(f->id, b, 16);
    f->top_offset = tm_get64(b + 16);
    f->top_length = tm_get32(b + 24);
    f->partitions = tm_get32(b + 28);
    f->properties_offset = tm_get64(b + 32);
    f->properties_length = tm_get32(b + 40);
    f->range_offset = tm_get64(b + 48);
    f->range_length = tm_get32(b + 56);
    f->fragments = tm_get32(b + 60);
    f->hash_seed = tm_get64(b + 64);
    f->entries = tm_get64(b + 72);
    f->file_bytes = tm_get64(b + 80);
    f->flags = tm_get32(b + 88);
    f->required = tm_get64(b + 96);
}

// The tail's parts follow each other without gaps, from behind the header to the end of the file.
static bool tail_fits(const tm_footer *f, const uint8_t *b)
{
    if (tm_get32(b + 44) != 0 || tm_get32(b + 92) != 0 || tm_get32(b + 108) != 0) return false;
    if (f->flags & ~(TM_FOOTER_BYTEWISE | TM_FOOTER_FILTERS)) return false;
    uint64_t at = f->properties_offset;
    if (f->range_length != 0) {
        if (f->range_length < TM_FRAME_BYTES || f->range_offset > f->file_bytes) return false;
        at = f->range_offset;
        if (at + f->range_length != f->properties_offset) return false;
    } else if (f->range_offset != 0 || f->fragments != 0) {
        return false;
    }
    if (at < TM_TABLE_HEADER_BYTES || f->properties_offset > f->file_bytes ||
        f->properties_length < TM_FRAME_BYTES || f->top_length < TM_FRAME_BYTES) {
        return false;
    }
    return f->properties_offset + f->properties_length == f->top_offset &&
           f->top_offset <= f->file_bytes &&
           f->top_offset + f->top_length + TM_TABLE_FOOTER_BYTES == f->file_bytes;
}

int tm_footer_decode(tm_footer *f, const uint8_t bytes[TM_TABLE_FOOTER_BYTES], uint64_t file_bytes,
                     uint64_t file_number, tamis_error *err)
{
    unsigned long long number = file_number;
    uint64_t offset = file_bytes - TM_TABLE_FOOTER_BYTES;
    if (memcmp(bytes + 112, TM_TABLE_END_MAGIC, 8) != 0) {
        return tm_fail_corrupt(err, file_number, offset, "%06llu.sst does not end as a table",
                               number);
    }
    uint64_t found = tm_checksum(bytes, 120), stored = tm_get64(bytes + 120);
    if (found != stored) {
        return tm_fail_corrupt(err, file_number, offset,
                               "%06llu.sst: footer: checksum %016llx expected, %016llx found",
                               number, (unsigned long long)stored, (unsigned long long)found);
    }
    TM_TRY(check_version(tm_get16(bytes + 104), file_number, err));
    read_footer(f, bytes);
    TM_TRY(tm_table_features_check(f->required, file_number, offset + 96, err));
    if (f->file_bytes != file_bytes || !tail_fits(f, bytes)) {
        return tm_fail_corrupt(err, file_number, offset,
                               "%06llu.sst: footer: offsets or sizes do not fit the file", number);
    }
    return TAMIS_OK;
}
