// SPDX-License-Identifier: BSD-2-Clause
#include "wal/wal_reader.h"

#include <stdio.h>

#include "base/mem.h"
#include "wal/wal_look.h"

enum { KEPT_PAYLOAD_MAX = 4 << 20 }; // memory for large payloads beyond it is not kept

// The pieces of a payload that stands in several records.
typedef struct pieces {
    bool open;      // a first was read, its last not yet
    uint64_t start; // offset of the first
    uint64_t seq;
    uint64_t manifest, manifest_synced;
    tm_buf joined;
} pieces;

struct tm_wal_reader {
    tm_wal_view view;
    tm_wal_header header;
    pieces pieces;
};

// ---- Life --------------------------------------------------------------------------------------

int tm_wal_reader_open_blind(tamis_dir *dir, const char *name, uint64_t number, tm_wal_kind kind,
                             const uint8_t store_id[16], tm_wal_reader **out, tamis_error *err)
{
    *out = NULL;
    tm_wal_reader *r = tm_calloc(1, sizeof(*r));
    if (r == NULL) return tm_fail_nomem(err);
    tm_wal_place place = {.number = number};
    memcpy(place.store_id, store_id, sizeof(place.store_id));
    int st = tm_wal_view_open(&r->view, dir, name, &place, err);
    if (st != TAMIS_OK) {
        tm_free(r);
        return st;
    }
    r->header = (tm_wal_header){.kind = kind, .number = number};
    memcpy(r->header.store_id, store_id, sizeof(r->header.store_id));
    *out = r;
    return TAMIS_OK;
}

void tm_wal_reader_close(tm_wal_reader *r)
{
    if (r == NULL) return;
    tm_buf_deinit(&r->pieces.joined);
    tm_wal_view_close(&r->view);
    tm_free(r);
}

static int read_header(tm_wal_reader *r, const uint8_t *store_id, tamis_error *err)
{
    tm_wal_view *v = &r->view;
    if (v->size < TM_WAL_HEADER_BYTES) {
        return tm_fail_corrupt(err, v->place.number, v->size,
                               "%s has no header: it ends after %u of %u bytes", v->file.label,
                               (unsigned)v->size, (unsigned)TM_WAL_HEADER_BYTES);
    }
    uint8_t *bytes;
    TM_TRY(tm_wal_view_bytes(v, 0, TM_WAL_HEADER_BYTES, &bytes, err));
    TM_TRY(tm_wal_header_decode(bytes, r->header.kind, v->place.number, &r->header, err));
    if (store_id != NULL && memcmp(r->header.store_id, store_id, 16) != 0) {
        return tm_fail_corrupt(err, v->place.number, 0, "%s belongs to another store",
                               v->file.label);
    }
    memcpy(v->place.store_id, r->header.store_id, sizeof(v->place.store_id));
    return TAMIS_OK;
}

int tm_wal_reader_open(tamis_dir *dir, const char *name, uint64_t number, tm_wal_kind kind,
                       const uint8_t *store_id, tm_wal_reader **out, tamis_error *err)
{
    static const uint8_t any[16];
    *out = NULL;
    tm_wal_reader *r;
    TM_TRY(tm_wal_reader_open_blind(dir, name, number, kind, any, &r, err));
    int st = read_header(r, store_id, err);
    if (st != TAMIS_OK) {
        tm_wal_reader_close(r);
        return st;
    }
    *out = r;
    return TAMIS_OK;
}

const tm_wal_header *tm_wal_reader_header(const tm_wal_reader *r)
{
    return &r->header;
}

// ---- Records from pieces -----------------------------------------------------------------------

// Whether a record may stand where this one does. A piece that is left over from an append that was
// undone has another sequence number than the piece before it.
static bool fits(const pieces *s, const tm_wal_frame *f)
{
    bool continues = f->type == TM_WAL_MIDDLE || f->type == TM_WAL_LAST;
    return s->open ? continues && f->seq == s->seq : !continues;
}

static void drop_pieces(pieces *s)
{
    s->open = false;
    if (s->joined.cap > KEPT_PAYLOAD_MAX) tm_buf_deinit(&s->joined);
    tm_buf_clear(&s->joined);
}

static int add_piece(pieces *s, uint64_t offset, const tm_wal_look *look, tamis_error *err)
{
    const tm_wal_frame *f = &look->frame;
    if (!s->open) {
        tm_buf_clear(&s->joined);
        s->open = true;
        s->start = offset;
        s->seq = f->seq;
        s->manifest = f->manifest;
        s->manifest_synced = f->manifest_synced;
    }
    int st = tm_buf_append(&s->joined, look->payload.data, look->payload.len);
    return st == TAMIS_OK ? st : tm_fail_nomem(err);
}

// Takes in a record that fits. *whole: rec is to be delivered, and its pieces dropped afterwards.
static int add_record(pieces *s, uint64_t offset, const tm_wal_look *look, bool *whole,
                      tm_wal_record *rec, tamis_error *err)
{
    const tm_wal_frame *f = &look->frame;
    *whole = true;
    if (!s->open && f->type != TM_WAL_FIRST) {
        *rec = (tm_wal_record){.payload = look->payload,
                               .offset = offset,
                               .manifest = f->manifest,
                               .manifest_synced = f->manifest_synced,
                               .seal = f->type == TM_WAL_SEAL};
    } else {
        TM_TRY(add_piece(s, offset, look, err));
        *whole = f->type == TM_WAL_LAST;
        *rec = (tm_wal_record){.payload = tm_buf_slice(&s->joined),
                               .offset = s->start,
                               .manifest = s->manifest,
                               .manifest_synced = s->manifest_synced};
    }
    rec->seq = f->seq;
    rec->count = f->count;
    return TAMIS_OK;
}

// ---- Scan --------------------------------------------------------------------------------------

static void note_testimony(tm_wal_end *end, const tm_wal_frame *f)
{
    end->vouched = TM_MAX(end->vouched, f->vouched);
    bool newer = f->manifest > end->manifest ||
                 (f->manifest == end->manifest && f->manifest_synced > end->manifest_synced);
    if (f->has_manifest && newer) {
        end->manifest = f->manifest;
        end->manifest_synced = f->manifest_synced;
    }
}

// Reads records up to limit or the first one that is none; *offset and *look tell where and why.
static int scan_records(tm_wal_reader *r, uint64_t limit, tm_wal_each each, void *ctx,
                        uint64_t *offset, tm_wal_look *look, tm_wal_end *end, tamis_error *err)
{
    pieces *s = &r->pieces;
    for (;;) {
        TM_TRY(tm_wal_look_at(&r->view, *offset, limit, look, err));
        if (look->verdict != TM_WAL_GOOD || !fits(s, &look->frame)) return TAMIS_OK;
        bool whole;
        tm_wal_record rec;
        TM_TRY(add_record(s, *offset, look, &whole, &rec, err));
        note_testimony(end, &look->frame);
        *offset += look->frame.header_bytes + look->frame.payload_bytes;
        if (!whole) continue;
        TM_TRY(each(ctx, &rec, err));
        drop_pieces(s);
        end->logical_end = *offset;
        end->sealed = rec.seal;
        if (rec.count > 0) end->last_seq = TM_MAX(end->last_seq, rec.seq + (rec.count - 1));
    }
}

// What records behind the unreadable one say.
static int scan_testimony(tm_wal_reader *r, uint64_t offset, const tm_wal_look *look,
                          uint64_t limit, tm_wal_end *end, tamis_error *err)
{
    tm_wal_frame f = look->frame;
    bool found = look->header_good;
    for (;;) {
        if (found) note_testimony(end, &f);
        uint64_t step = found ? f.header_bytes + f.payload_bytes : 1; // a payload has no records
        offset = step < limit - offset ? offset + step : limit;
        TM_TRY(tm_wal_find_header(&r->view, &offset, limit, &f, err));
        if (offset == limit) return TAMIS_OK;
        found = true;
    }
}

static int fail_damaged(const tm_wal_reader *r, uint64_t offset, const tm_wal_look *look,
                        const char *why, tamis_error *err)
{
    const tm_wal_fault *f = &look->fault;
    const char *what = f->what != NULL ? f->what : "a piece of a record without the others";
    char sums[64] = "";
    if (f->sums) {
        snprintf(sums, sizeof(sums), " expected %016llx, found %016llx",
                 (unsigned long long)f->expected, (unsigned long long)f->found);
    }
    return tm_fail_corrupt(err, r->view.place.number, offset,
                           "%s is damaged at offset %llu: %s%s; %s", r->view.file.label,
                           (unsigned long long)offset, what, sums, why);
}

static int fail_vouched(const tm_wal_reader *r, uint64_t offset, const tm_wal_look *look,
                        uint64_t vouched, tamis_error *err)
{
    char why[64];
    snprintf(why, sizeof(why), "it was durable up to offset %llu", (unsigned long long)vouched);
    return fail_damaged(r, offset, look, why, err);
}

// Nothing can be read at offset, or nothing that fits: the end, the tail, or damage?
static int judge(tm_wal_reader *r, uint64_t vouched, uint64_t limit, uint64_t offset,
                 const tm_wal_look *look, tm_wal_end *end, tamis_error *err)
{
    if (vouched > offset) return fail_vouched(r, offset, look, vouched, err);
    uint64_t used;
    TM_TRY(tm_wal_trim_zeros(&r->view, offset, limit, &used, err));
    if (used > offset) {
        TM_TRY(scan_testimony(r, offset, look, limit, end, err));
        if (end->vouched > offset) return fail_vouched(r, offset, look, end->vouched, err);
        bool one_bit;
        TM_TRY(tm_wal_one_bit_off(&r->view, offset, limit, &one_bit, err));
        if (one_bit) return fail_damaged(r, offset, look, "one flipped bit explains it", err);
    }
    end->cut_bytes = used - end->logical_end;
    end->whole = used == end->logical_end; // then no piece is waiting for its last either
    return TAMIS_OK;
}

int tm_wal_reader_scan(tm_wal_reader *r, uint64_t vouched, uint64_t stop_at, tm_wal_each each,
                       void *ctx, tm_wal_end *end, tamis_error *err)
{
    uint64_t offset = TM_MIN(r->view.size, (uint64_t)TM_WAL_HEADER_BYTES);
    uint64_t limit = TM_MAX(offset, TM_MIN(r->view.size, stop_at));
    *end = (tm_wal_end){.logical_end = offset,
                        .file_bytes = r->view.size,
                        .manifest = r->header.manifest,
                        .manifest_synced = r->header.manifest_synced};
    drop_pieces(&r->pieces);
    tm_wal_look look;
    TM_TRY(scan_records(r, limit, each, ctx, &offset, &look, end, err));
    return judge(r, TM_MIN(vouched, stop_at), limit, offset, &look, end, err);
}

// ---- Damaged files -----------------------------------------------------------------------------

int tm_wal_was_begun(tamis_dir *dir, const char *name, uint64_t number, const uint8_t store_id[16],
                     bool *begun, tamis_error *err)
{
    tm_wal_place place = {.number = number};
    memcpy(place.store_id, store_id, sizeof(place.store_id));
    *begun = false;
    tm_wal_view v;
    TM_TRY(tm_wal_view_open(&v, dir, name, &place, err));
    int st = TAMIS_OK;
    uint64_t offset = TM_WAL_HEADER_BYTES;
    if (v.size < offset) goto out;
    uint8_t *bytes;
    TM_GOTO(tm_wal_view_bytes(&v, 0, TM_WAL_HEADER_BYTES, &bytes, err));
    *begun = tm_wal_header_was_written(bytes);
    while (!*begun && offset < v.size) {
        tm_wal_frame f;
        TM_GOTO(tm_wal_find_header(&v, &offset, v.size, &f, err));
        if (offset == v.size) break;
        *begun = f.vouched > 0;
        uint64_t step = f.header_bytes + f.payload_bytes;
        offset = step < v.size - offset ? offset + step : v.size;
    }
out:
    tm_wal_view_close(&v);
    return st;
}

typedef struct salvage {
    tm_wal_each each;
    void (*lost)(void *ctx, uint64_t from, uint64_t to);
    void *ctx;
    uint64_t good; // up to here all was delivered or told as lost
} salvage;

static void tell_lost(salvage *s, uint64_t to)
{
    if (to > s->good && s->lost != NULL) s->lost(s->ctx, s->good, to);
}

static int salvage_record(tm_wal_reader *r, salvage *s, uint64_t offset, const tm_wal_look *look,
                          tamis_error *err)
{
    pieces *p = &r->pieces;
    if (!fits(p, &look->frame)) drop_pieces(p); // then it may begin something of its own
    if (!fits(p, &look->frame)) return TAMIS_OK;
    bool whole;
    tm_wal_record rec;
    TM_TRY(add_record(p, offset, look, &whole, &rec, err));
    if (!whole) return TAMIS_OK;
    tell_lost(s, rec.offset);
    TM_TRY(s->each(s->ctx, &rec, err));
    drop_pieces(p);
    s->good = offset + look->frame.header_bytes + look->frame.payload_bytes;
    return TAMIS_OK;
}

int tm_wal_reader_salvage(tm_wal_reader *r, tm_wal_each each,
                          void (*lost)(void *ctx, uint64_t from, uint64_t to), void *ctx,
                          tamis_error *err)
{
    tm_wal_view *v = &r->view;
    salvage s = {each, lost, ctx, TM_WAL_HEADER_BYTES};
    uint64_t offset = TM_WAL_HEADER_BYTES;
    drop_pieces(&r->pieces);
    while (offset < v->size) {
        tm_wal_look look;
        TM_TRY(tm_wal_look_at(v, offset, v->size, &look, err));
        if (look.verdict == TM_WAL_GOOD) TM_TRY(salvage_record(r, &s, offset, &look, err));
        else drop_pieces(&r->pieces);
        // Behind a header that is right comes its payload, be it readable or not.
        uint64_t step = look.header_good ? look.frame.header_bytes + look.frame.payload_bytes : 1;
        offset = step < v->size - offset ? offset + step : v->size;
        if (look.header_good) continue;
        tm_wal_frame f;
        TM_TRY(tm_wal_find_header(v, &offset, v->size, &f, err));
    }
    if (s.good >= v->size) return TAMIS_OK;
    uint64_t used;
    TM_TRY(tm_wal_trim_zeros(v, s.good, v->size, &used, err));
    tell_lost(&s, used);
    return TAMIS_OK;
}
