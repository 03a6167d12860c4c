// SPDX-License-Identifier: BSD-2-Clause
#include "wal/wal_format.h"

#include "base/coding.h"
#include "base/hash.h"

// ---- The file's header -------------------------------------------------------------------------

enum { // offsets of its fields
    AT_MAGIC = 0,
    AT_MAJOR = 8,
    AT_MINOR = 10,
    AT_LENGTH = 12,
    AT_REQUIRED = 16,
    AT_OPTIONAL = 24,
    AT_NUMBER = 32,
    AT_STORE_ID = 40,
    AT_PREVIOUS = 56,
    AT_PREVIOUS_END = 64,
    AT_PREVIOUS_SYNCED = 72,
    AT_BASE = 80,
    AT_MANIFEST = 88,
    AT_MANIFEST_SYNCED = 96,
    AT_ZERO = 104,
    AT_CHECKSUM = 120
};

static const char magics[2][9] = {[TM_WAL_LOG] = "tamisWAL", [TM_WAL_MANIFEST] = "tamisMAN"};

void tm_wal_header_encode(const tm_wal_header *h, uint8_t out[TM_WAL_HEADER_BYTES])
{
    memset(out, 0, TM_WAL_HEADER_BYTES);
    memcpy(out + AT_MAGIC, magics[h->kind], 8);
    tm_put16(out + AT_MAJOR, TM_WAL_MAJOR);
    tm_put16(out + AT_MINOR, TM_WAL_MINOR);
    tm_put32(out + AT_LENGTH, TM_WAL_HEADER_BYTES);
    tm_put64(out + AT_REQUIRED, h->required);
    tm_put64(out + AT_OPTIONAL, h->optional);
    tm_put64(out + AT_NUMBER, h->number);
    memcpy(out + AT_STORE_ID, h->store_id, 16);
    tm_put64(out + AT_PREVIOUS, h->previous);
    tm_put64(out + AT_PREVIOUS_END, h->previous_end);
    tm_put64(out + AT_PREVIOUS_SYNCED, h->previous_synced);
    tm_put64(out + AT_BASE, h->base);
    tm_put64(out + AT_MANIFEST, h->manifest);
    tm_put64(out + AT_MANIFEST_SYNCED, h->manifest_synced);
    tm_put64(out + AT_CHECKSUM, tm_checksum(out, AT_CHECKSUM));
}

static bool all_zero(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] != 0) return false;
    }
    return true;
}

// What a header says that the format rules out although its sum is right; NULL if nothing.
static const char *contradiction(const uint8_t *bytes, const tm_wal_header *h)
{
    if (tm_get32(bytes + AT_LENGTH) != TM_WAL_HEADER_BYTES) return "its length is not 128";
    if (!all_zero(bytes + AT_ZERO, AT_CHECKSUM - AT_ZERO)) return "a zero field is not zero";
    if (h->previous_synced > h->previous_end) return "the log before is durable beyond its end";
    bool names = (h->previous | h->previous_end | h->manifest | h->manifest_synced) != 0;
    if (h->kind == TM_WAL_MANIFEST && names) return "a manifest names another file";
    return NULL;
}

static int check_version(const uint8_t *bytes, uint64_t number, tamis_error *err)
{
    uint32_t major = tm_get16(bytes + AT_MAJOR);
    uint64_t unknown = tm_get64(bytes + AT_REQUIRED) & ~TM_WAL_KNOWN_FEATURES;
    int st = TAMIS_OK;
    if (major != TM_WAL_MAJOR) {
        st = tm_fail(err, TAMIS_UNSUPPORTED,
                     "record file %06llu has format version %u, this library reads version %u",
                     (unsigned long long)number, (unsigned)major, (unsigned)TM_WAL_MAJOR);
    } else if (unknown != 0) {
        unsigned bit = 0;
        while (!(unknown >> bit & 1)) bit++;
        st = tm_fail(err, TAMIS_UNSUPPORTED,
                     "record file %06llu needs feature bit %u, which this library does not know",
                     (unsigned long long)number, bit);
    }
    if (st != TAMIS_OK && err != NULL) err->file_number = number;
    return st;
}

int tm_wal_header_decode(const uint8_t bytes[TM_WAL_HEADER_BYTES], tm_wal_kind kind,
                         uint64_t number, tm_wal_header *out, tamis_error *err)
{
    const char *name = kind == TM_WAL_LOG ? "log" : "manifest";
    unsigned long long no = number;
    if (memcmp(bytes + AT_MAGIC, magics[kind], 8) != 0) {
        const char *why = all_zero(bytes, TM_WAL_HEADER_BYTES) ? "all zeros" : "wrong magic";
        return tm_fail_corrupt(err, number, AT_MAGIC, "%s %06llu has no header: %s", name, no, why);
    }
    uint64_t expected = tm_get64(bytes + AT_CHECKSUM), found = tm_checksum(bytes, AT_CHECKSUM);
    if (expected != found) {
        return tm_fail_corrupt(err, number, AT_CHECKSUM,
                               "header of %s %06llu: checksum expected %016llx, found %016llx",
                               name, no, (unsigned long long)expected, (unsigned long long)found);
    }
    TM_TRY(check_version(bytes, number, err));
    *out = (tm_wal_header){
        .kind = kind,
        .required = tm_get64(bytes + AT_REQUIRED),
        .optional = tm_get64(bytes + AT_OPTIONAL),
        .number = tm_get64(bytes + AT_NUMBER),
        .previous = tm_get64(bytes + AT_PREVIOUS),
        .previous_end = tm_get64(bytes + AT_PREVIOUS_END),
        .previous_synced = tm_get64(bytes + AT_PREVIOUS_SYNCED),
        .base = tm_get64(bytes + AT_BASE),
        .manifest = tm_get64(bytes + AT_MANIFEST),
        .manifest_synced = tm_get64(bytes + AT_MANIFEST_SYNCED),
    };
    memcpy(out->store_id, bytes + AT_STORE_ID, 16);
    const char *wrong = contradiction(bytes, out);
    if (wrong != NULL) {
        return tm_fail_corrupt(err, number, 0, "header of %s %06llu: %s", name, no, wrong);
    }
    if (out->number != number) {
        return tm_fail_corrupt(err, number, AT_NUMBER, "%s %06llu says that it is number %llu",
                               name, no, (unsigned long long)out->number);
    }
    return TAMIS_OK;
}

bool tm_wal_header_was_written(const uint8_t bytes[TM_WAL_HEADER_BYTES])
{
    uint8_t copy[TM_WAL_HEADER_BYTES];
    memcpy(copy, bytes, sizeof(copy));
    if (tm_get64(copy + AT_CHECKSUM) == tm_checksum(copy, AT_CHECKSUM)) return true;
    for (size_t bit = 0; bit < 8 * sizeof(copy); bit++) {
        uint8_t mask = (uint8_t)(1u << bit % 8);
        copy[bit / 8] ^= mask;
        if (tm_get64(copy + AT_CHECKSUM) == tm_checksum(copy, AT_CHECKSUM)) return true;
        copy[bit / 8] ^= mask;
    }
    return false;
}

// ---- The header of a record --------------------------------------------------------------------

enum {
    AT_FRAME_LENGTH = 0,
    AT_TYPE = 1,
    AT_HEADER_SUM = 2,
    AT_RECORD_SUM = 6,
    AT_VARINTS = 14,
    TYPE_MASK = 0x0f,
    MANIFEST_BIT = 0x10
};

static uint64_t mask_of(const tm_wal_place *place, uint64_t offset)
{
    uint8_t bytes[32];
    memcpy(bytes, place->store_id, 16);
    tm_put64(bytes + 16, place->number);
    tm_put64(bytes + 24, offset);
    return tm_checksum(bytes, sizeof(bytes));
}

// Over all of the header but the sum itself.
static uint32_t header_sum(const uint8_t *p, size_t h, uint64_t mask)
{
    uint8_t bytes[TM_WAL_FRAME_MAX];
    bytes[0] = p[AT_FRAME_LENGTH];
    bytes[1] = p[AT_TYPE];
    memcpy(bytes + 2, p + AT_RECORD_SUM, h - AT_RECORD_SUM);
    return (uint32_t)(tm_checksum(bytes, h - AT_RECORD_SUM + 2) ^ mask);
}

int tm_wal_frame_encode(tm_wal_frame *f, const tm_wal_place *place, uint64_t offset,
                        uint8_t *payload, tamis_error *err)
{
    uint8_t varints[6 * TM_MAX_VARINT64], *v = varints;
    assert(f->payload_bytes <= TM_WAL_PAYLOAD_MAX && f->vouched <= offset);
    v = tm_put_varint(v, f->payload_bytes);
    v = tm_put_varint(v, f->seq);
    v = tm_put_varint(v, f->count);
    v = tm_put_varint(v, offset - f->vouched);
    if (f->has_manifest) {
        v = tm_put_varint(v, f->manifest);
        v = tm_put_varint(v, f->manifest_synced);
    }
    size_t h = AT_VARINTS + (size_t)(v - varints);
    if (h > TM_WAL_FRAME_MAX || f->count > UINT64_MAX - f->seq) {
        return tm_fail(err, TAMIS_INVALID, "numbers too large for a record: sequence %llu + %llu",
                       (unsigned long long)f->seq, (unsigned long long)f->count);
    }
    uint8_t *p = payload - h;
    uint8_t type = (uint8_t)(f->type | (f->has_manifest ? MANIFEST_BIT : 0));
    uint64_t mask = mask_of(place, offset);
    memcpy(p + AT_VARINTS, varints, h - AT_VARINTS);
    // The sum covers the first two bytes, the varints and the payload. Standing right before the
    // varints for a moment, they let it run over one piece of memory.
    p[AT_VARINTS - 2] = (uint8_t)h;
    p[AT_VARINTS - 1] = type;
    uint64_t sum = tm_checksum(p + AT_VARINTS - 2, h - AT_VARINTS + 2 + f->payload_bytes);
    p[AT_FRAME_LENGTH] = (uint8_t)h;
    p[AT_TYPE] = type;
    tm_put64(p + AT_RECORD_SUM, sum ^ mask);
    tm_put32(p + AT_HEADER_SUM, header_sum(p, h, mask));
    f->header_bytes = (uint32_t)h;
    return TAMIS_OK;
}

// Fills *fault, if asked for, and gives false.
static bool no(tm_wal_fault *fault, const char *what)
{
    if (fault != NULL) *fault = (tm_wal_fault){.what = what};
    return false;
}

static bool no_sum(tm_wal_fault *fault, const char *what, uint64_t expected, uint64_t found)
{
    if (fault != NULL) *fault = (tm_wal_fault){what, true, expected, found};
    return false;
}

// The varints of the header of h bytes at p; false where they do not fill it or contradict.
static bool read_numbers(const uint8_t *p, size_t h, uint64_t offset, tm_wal_frame *f)
{
    tm_cursor c = tm_cursor_of(tm_slice_of(p + AT_VARINTS, h - AT_VARINTS));
    uint64_t payload = tm_read_varint(&c);
    f->seq = tm_read_varint(&c);
    f->count = tm_read_varint(&c);
    uint64_t unsynced = tm_read_varint(&c);
    if (f->has_manifest) {
        f->manifest = tm_read_varint(&c);
        f->manifest_synced = tm_read_varint(&c);
    }
    if (c.bad || tm_cursor_left(&c) != 0) return false;
    if (payload > TM_WAL_PAYLOAD_MAX || unsynced > offset) return false;
    if (f->count > UINT64_MAX - f->seq) return false;
    f->payload_bytes = (uint32_t)payload;
    f->vouched = offset - unsynced;
    switch (f->type) {
    case TM_WAL_FIRST:
    case TM_WAL_MIDDLE: return f->count == 0;
    case TM_WAL_SEAL: return f->count == 0 && payload == 0;
    default: return true;
    }
}

bool tm_wal_frame_decode(const uint8_t *p, size_t n, const tm_wal_place *place, uint64_t offset,
                         tm_wal_frame *f, tm_wal_fault *fault)
{
    size_t h = n > 0 ? p[AT_FRAME_LENGTH] : 0;
    if (h < TM_WAL_FRAME_MIN || h > TM_WAL_FRAME_MAX) return no(fault, "no record's header");
    if (h > n) return no(fault, "a header that ends behind the end of the file");
    unsigned type = p[AT_TYPE] & TYPE_MASK;
    *f = (tm_wal_frame){.type = (tm_wal_type)type,
                        .has_manifest = (p[AT_TYPE] & MANIFEST_BIT) != 0,
                        .header_bytes = (uint32_t)h};
    bool makes_sense = type >= TM_WAL_WHOLE && type <= TM_WAL_SEAL &&
                       (p[AT_TYPE] & ~(TYPE_MASK | MANIFEST_BIT)) == 0 &&
                       read_numbers(p, h, offset, f);
    // A search tries every offset: the sum comes last, unless its failure is to be told.
    if (!makes_sense && fault == NULL) return false;
    uint64_t mask = mask_of(place, offset);
    uint32_t expected = tm_get32(p + AT_HEADER_SUM), found = header_sum(p, h, mask);
    if (expected != found) return no_sum(fault, "header checksum", expected, found);
    if (!makes_sense) return no(fault, "a header that contradicts itself");
    f->checksum = tm_get64(p + AT_RECORD_SUM) ^ mask;
    return true;
}

bool tm_wal_frame_check(const uint8_t *head, const uint8_t *payload, const tm_wal_frame *f,
                        const tm_wal_place *place, uint64_t offset, tm_wal_fault *fault)
{
    uint8_t bytes[TM_WAL_FRAME_MAX];
    size_t h = f->header_bytes;
    bytes[0] = head[AT_FRAME_LENGTH];
    bytes[1] = head[AT_TYPE];
    memcpy(bytes + 2, head + AT_VARINTS, h - AT_VARINTS);
    uint64_t found = tm_checksum2(bytes, h - AT_VARINTS + 2, payload, f->payload_bytes);
    if (found == f->checksum) return true;
    uint64_t mask = mask_of(place, offset);
    return no_sum(fault, "record checksum", f->checksum ^ mask, found ^ mask);
}
