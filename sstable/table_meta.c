// SPDX-License-Identifier: BSD-2-Clause

#include "sstable/table_meta.h"

#include "sstable/format.h"

void tm_table_meta_init(tm_table_meta *m)
{
    memset(m, 0, sizeof *m);
}

void tm_table_meta_deinit(tm_table_meta *m)
{
    tm_buf_deinit(&m->smallest);
    tm_buf_deinit(&m->largest);
}

int tm_table_meta_copy(tm_table_meta *to, const tm_table_meta *from)
{
    tm_table_meta copy = *from;
    tm_buf_init(&copy.smallest);
    tm_buf_init(&copy.largest);
    int st = tm_buf_set(&copy.smallest, tm_buf_slice(&from->smallest));
    if (st == TAMIS_OK) st = tm_buf_set(&copy.largest, tm_buf_slice(&from->largest));
    if (st != TAMIS_OK) {
        tm_table_meta_deinit(&copy);
        return st;
    }
    *to = copy;
    return TAMIS_OK;
}

static int encode(const tm_table_meta *m, tm_buf *out)
{
    TM_TRY(tm_buf_put_varint(out, m->number));
    TM_TRY(tm_buf_append(out, m->id, sizeof m->id));
    TM_TRY(tm_buf_put_varint(out, m->file_bytes));
    TM_TRY(tm_buf_put_varint(out, m->tail_offset));
    TM_TRY(tm_buf_append(out, m->digest, sizeof m->digest));
    const uint64_t figures[] = {m->entries,   m->deletes, m->range_deletes,
                                m->raw_bytes, m->min_seq, m->max_seq};
    for (size_t i = 0; i < TM_COUNT(figures); i++) TM_TRY(tm_buf_put_varint(out, figures[i]));
    TM_TRY(tm_buf_put_slice(out, tm_buf_slice(&m->smallest)));
    TM_TRY(tm_buf_put_slice(out, tm_buf_slice(&m->largest)));
    uint8_t flags = (uint8_t)m->flags;
    TM_TRY(tm_buf_append(out, &flags, 1));
    TM_TRY(tm_buf_put_varint(out, m->created_ms));
    TM_TRY(tm_buf_put_varint(out, m->filter_bytes));
    TM_TRY(tm_buf_put_varint(out, m->filter_keys));
    TM_TRY(tm_buf_put64(out, m->hash_seed));
    TM_TRY(tm_buf_put_varint(out, m->expires_ms));
    return tm_buf_put_varint(out, m->half_ms);
}

int tm_table_meta_encode(const tm_table_meta *m, tm_buf *out)
{
    size_t begin = out->len;
    int st = encode(m, out);
    if (st != TAMIS_OK) out->len = begin;
    return st;
}

static bool plausible(const tm_table_meta *m)
{
    return m->number != 0 && m->file_bytes >= TM_TABLE_HEADER_BYTES + TM_TABLE_FOOTER_BYTES &&
           m->tail_offset >= TM_TABLE_HEADER_BYTES &&
           m->tail_offset <= m->file_bytes - TM_TABLE_FOOTER_BYTES && m->min_seq <= m->max_seq &&
           m->max_seq <= TM_MAX_SEQ && m->smallest.len <= TM_MAX_KEY_BYTES &&
           m->largest.len <= TM_MAX_KEY_BYTES &&
           (m->flags & ~(TM_TABLE_LARGEST_EXCLUSIVE | TM_TABLE_UNBOUNDED)) == 0 &&
           m->entries + m->range_deletes != 0 && m->deletes <= m->entries;
}

int tm_table_meta_decode(tm_table_meta *m, tm_slice record, tamis_error *err)
{
    tm_cursor c = tm_cursor_of(record);
    tm_table_meta d;
    tm_table_meta_init(&d);
    d.number = tm_read_varint(&c);
    tm_slice id = tm_read_bytes(&c, sizeof d.id);
    d.file_bytes = tm_read_varint(&c);
    d.tail_offset = tm_read_varint(&c);
    tm_slice digest = tm_read_bytes(&c, sizeof d.digest);
    uint64_t *figures[] = {&d.entries,   &d.deletes, &d.range_deletes,
                           &d.raw_bytes, &d.min_seq, &d.max_seq};
    for (size_t i = 0; i < TM_COUNT(figures); i++) *figures[i] = tm_read_varint(&c);
    tm_slice smallest = tm_read_slice(&c), largest = tm_read_slice(&c);
    d.flags = tm_read8(&c);
    d.created_ms = tm_read_varint(&c);
    d.filter_bytes = tm_read_varint(&c);
    d.filter_keys = tm_read_varint(&c);
    d.hash_seed = tm_read64(&c);
    if (tm_cursor_left(&c) > 0) d.expires_ms = tm_read_varint(&c); // older records end before
    if (tm_cursor_left(&c) > 0) d.half_ms = tm_read_varint(&c);
    int st = TAMIS_OK;
    if (!c.bad) {
        memcpy(d.id, id.data, sizeof d.id);
        memcpy(d.digest, digest.data, sizeof d.digest);
        st = tm_buf_set(&d.smallest, smallest);
        if (st == TAMIS_OK) st = tm_buf_set(&d.largest, largest);
    }
    if (st != TAMIS_OK) {
        tm_table_meta_deinit(&d);
        return tm_fail_nomem(err);
    }
    if (c.bad || !plausible(&d)) {
        tm_table_meta_deinit(&d);
        return tm_fail_corrupt(err, 0, 0, "a table record cannot be read");
    }
    *m = d;
    return TAMIS_OK;
}
