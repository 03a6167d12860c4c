// SPDX-License-Identifier: BSD-2-Clause
#include "wal/wal_look.h"

enum {
    WINDOW_BYTES = 256 * 1024,
    ONE_BIT_RECORD_MAX = 16 * 1024,
    SECTOR_BYTES = 512
};

// ---- The window --------------------------------------------------------------------------------

int tm_wal_view_open(tm_wal_view *v, tamis_dir *dir, const char *name, const tm_wal_place *place,
                     tamis_error *err)
{
    *v = (tm_wal_view){.place = *place};
    TM_TRY(tm_file_open(dir, name, place->number, TAMIS_FILE_READ, &v->file, err));
    int st = tm_file_size(&v->file, &v->size, err);
    if (st != TAMIS_OK) tm_wal_view_close(v);
    return st;
}

void tm_wal_view_close(tm_wal_view *v)
{
    tm_buf_deinit(&v->window);
    (void)tm_file_close(&v->file, NULL); // it was only read
}

// Moves the window to offset, and reads it full, at least n bytes.
static int refill(tm_wal_view *v, uint64_t offset, size_t n, tamis_error *err)
{
    uint64_t left = v->size - offset;
    size_t want = TM_MAX(n, (size_t)WINDOW_BYTES);
    if (want > left) want = (size_t)left;
    size_t keep = 0;
    if (offset >= v->at && offset - v->at < v->window.len) {
        keep = v->window.len - (size_t)(offset - v->at);
        memmove(v->window.data, v->window.data + (v->window.len - keep), keep);
    }
    v->at = offset;
    v->window.len = keep;
    if (want <= keep) return TAMIS_OK;
    if (tm_buf_reserve(&v->window, want - keep) != TAMIS_OK) return tm_fail_nomem(err);
    TM_TRY(tm_file_read(&v->file, offset + keep, v->window.data + keep, want - keep, err));
    v->window.len = want;
    return TAMIS_OK;
}

int tm_wal_view_bytes(tm_wal_view *v, uint64_t offset, size_t n, uint8_t **out, tamis_error *err)
{
    assert(offset <= v->size && n <= v->size - offset);
    bool inside = offset >= v->at && offset - v->at <= v->window.len &&
                  n <= v->window.len - (size_t)(offset - v->at);
    if (!inside) TM_TRY(refill(v, offset, n, err));
    *out = n > 0 ? v->window.data + (size_t)(offset - v->at) : v->window.data;
    return TAMIS_OK;
}

// What the window has from offset on, up to limit: enough for a header, if there is as much.
static int stretch(tm_wal_view *v, uint64_t offset, uint64_t limit, const uint8_t **out, size_t *n,
                   tamis_error *err)
{
    uint64_t left = limit - offset;
    uint8_t *p;
    TM_TRY(tm_wal_view_bytes(v, offset, (size_t)TM_MIN(left, (uint64_t)TM_WAL_FRAME_MAX), &p, err));
    size_t there = v->window.len - (size_t)(offset - v->at);
    *out = p;
    *n = (size_t)TM_MIN(left, (uint64_t)there);
    return TAMIS_OK;
}

// ---- One record --------------------------------------------------------------------------------

int tm_wal_look_at(tm_wal_view *v, uint64_t offset, uint64_t limit, tm_wal_look *out,
                   tamis_error *err)
{
    *out = (tm_wal_look){.verdict = TM_WAL_NONE, .fault = {.what = "the file ends"}};
    if (offset >= limit) return TAMIS_OK;
    const uint8_t *head;
    size_t n;
    TM_TRY(stretch(v, offset, limit, &head, &n, err));
    out->fault.what = "zeros";
    if (head[0] == 0) return TAMIS_OK;

    out->verdict = TM_WAL_BAD;
    tm_wal_frame *f = &out->frame;
    if (!tm_wal_frame_decode(head, n, &v->place, offset, f, &out->fault)) return TAMIS_OK;
    out->header_good = true;
    if (f->payload_bytes > limit - offset - f->header_bytes) {
        out->fault = (tm_wal_fault){.what = "a record that ends behind the end of the file"};
        return TAMIS_OK;
    }
    uint8_t *p;
    TM_TRY(tm_wal_view_bytes(v, offset, f->header_bytes + f->payload_bytes, &p, err));
    const uint8_t *payload = p + f->header_bytes;
    if (!tm_wal_frame_check(p, payload, f, &v->place, offset, &out->fault)) return TAMIS_OK;
    out->verdict = TM_WAL_GOOD;
    out->payload = tm_slice_of(payload, f->payload_bytes);
    out->fault = (tm_wal_fault){.what = NULL};
    return TAMIS_OK;
}

// ---- Stretches ---------------------------------------------------------------------------------

int tm_wal_find_header(tm_wal_view *v, uint64_t *offset, uint64_t limit, tm_wal_frame *frame,
                       tamis_error *err)
{
    while (*offset < limit) {
        const uint8_t *p;
        size_t n;
        TM_TRY(stretch(v, *offset, limit, &p, &n, err));
        // The last few bytes of the window are looked at again with what follows them.
        bool last = n == limit - *offset;
        size_t stop = last ? n : n - TM_WAL_FRAME_MAX + 1;
        for (size_t i = 0; i < stop; i++) {
            if (p[i] < TM_WAL_FRAME_MIN || p[i] > TM_WAL_FRAME_MAX) continue;
            if (tm_wal_frame_decode(p + i, n - i, &v->place, *offset + i, frame, NULL)) {
                *offset += i;
                return TAMIS_OK;
            }
        }
        *offset += stop;
    }
    *offset = limit;
    return TAMIS_OK;
}

int tm_wal_trim_zeros(tm_wal_view *v, uint64_t from, uint64_t limit, uint64_t *end,
                      tamis_error *err)
{
    *end = from;
    while (from < limit) {
        const uint8_t *p;
        size_t n;
        TM_TRY(stretch(v, from, limit, &p, &n, err));
        size_t last = n;
        while (last > 0 && p[last - 1] == 0) last--;
        if (last > 0) *end = from + last;
        from += n;
    }
    return TAMIS_OK;
}

// ---- One flipped bit ---------------------------------------------------------------------------

// Whether the record's part of the sector with its byte number byte is zeros.
static bool sector_is_lost(const uint8_t *record, size_t n, uint64_t offset, size_t byte)
{
    size_t in_sector = (size_t)((offset + byte) % SECTOR_BYTES);
    size_t from = byte > in_sector ? byte - in_sector : 0;
    size_t to = TM_MIN(n, byte + (SECTOR_BYTES - in_sector));
    for (size_t i = from; i < to; i++) {
        if (record[i] != 0) return false;
    }
    return true;
}

// Tries the bits of the header: each may change its length, and that of the payload.
static int try_header(tm_wal_view *v, uint64_t offset, uint64_t limit, bool *out, tamis_error *err)
{
    uint8_t head[TM_WAL_FRAME_MAX];
    size_t n = (size_t)TM_MIN(limit - offset, (uint64_t)sizeof(head));
    uint8_t *p;
    TM_TRY(tm_wal_view_bytes(v, offset, n, &p, err));
    memcpy(head, p, n);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        size_t byte = bit / 8;
        uint8_t mask = (uint8_t)(1u << bit % 8);
        tm_wal_frame f;
        head[byte] ^= mask;
        // Bits behind the header change nothing: it stays wrong.
        if (tm_wal_frame_decode(head, n, &v->place, offset, &f, NULL) &&
            f.payload_bytes <= limit - offset - f.header_bytes) {
            size_t record = f.header_bytes + f.payload_bytes;
            TM_TRY(tm_wal_view_bytes(v, offset, record, &p, err));
            *out = tm_wal_frame_check(head, p + f.header_bytes, &f, &v->place, offset, NULL) &&
                   !sector_is_lost(p, record, offset, byte);
            if (*out) return TAMIS_OK;
        }
        head[byte] ^= mask;
    }
    return TAMIS_OK;
}

// Tries the bits of the payload behind a header that is right.
static bool try_payload(tm_wal_view *v, uint64_t offset, const tm_wal_frame *f, uint8_t *p)
{
    uint8_t *payload = p + f->header_bytes;
    for (size_t bit = 0; bit < 8 * (size_t)f->payload_bytes; bit++) {
        uint8_t mask = (uint8_t)(1u << bit % 8);
        payload[bit / 8] ^= mask;
        bool good = tm_wal_frame_check(p, payload, f, &v->place, offset, NULL);
        payload[bit / 8] ^= mask;
        if (good) {
            size_t record = f->header_bytes + f->payload_bytes;
            return !sector_is_lost(p, record, offset, f->header_bytes + bit / 8);
        }
    }
    return false;
}

int tm_wal_one_bit_off(tm_wal_view *v, uint64_t offset, uint64_t limit, bool *out,
                       tamis_error *err)
{
    tm_wal_look look;
    *out = false;
    if (offset >= limit) return TAMIS_OK;
    TM_TRY(tm_wal_look_at(v, offset, limit, &look, err));
    if (look.verdict == TM_WAL_GOOD) return TAMIS_OK;
    if (!look.header_good) return try_header(v, offset, limit, out, err);

    const tm_wal_frame *f = &look.frame;
    size_t record = f->header_bytes + f->payload_bytes;
    if (record > ONE_BIT_RECORD_MAX || record > limit - offset) return TAMIS_OK;
    uint8_t *p;
    TM_TRY(tm_wal_view_bytes(v, offset, record, &p, err));
    *out = try_payload(v, offset, f, p);
    return TAMIS_OK;
}
