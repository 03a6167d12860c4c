// SPDX-License-Identifier: BSD-2-Clause
//
// Record files: what is written comes back, and the bytes are those of docs/format.md.
#include "wal_support.h"

// ---- Round trips -------------------------------------------------------------------------------

static const size_t sizes[] = {
    0,           1,           2,       49,          50,          113,         114,
    127,         128,         255,     4096,        16383,       16384,       65471,
    65472,       65473,       65536,   MIB / 4 - 1, MIB / 4,     MIB / 4 + 1, MIB - 65,
    MIB - 1,     MIB,         MIB + 1, 2 * MIB - 1, 2 * MIB,     2 * MIB + 1, 3 * MIB,
    3 * MIB + 7, MIB / 2 + 3, 0,
};

START_TEST(all_sizes_come_back)
{
    tm_wal_writer *w = new_log(0);
    for (size_t i = 0; i < TM_COUNT(sizes); i++) append_ok(w, sizes[i], i);
    uint64_t end = tm_wal_writer_end(w);
    close_log(w);
    scan_ok();
    ck_assert_uint_eq(got.n, TM_COUNT(sizes));
    for (size_t i = 0; i < TM_COUNT(sizes); i++) ck_record(i, sizes[i], i);
    ck_assert_uint_eq(got.end.logical_end, end);
    ck_assert_uint_eq(got.end.file_bytes, end);
    ck_assert_uint_eq(got.end.cut_bytes, 0);
    ck_assert_uint_eq(got.end.vouched, 0);
    ck_assert_uint_eq(got.end.last_seq, 1000 + TM_COUNT(sizes) - 1);
    ck_assert(got.end.whole && !got.end.sealed);

    ck_assert_int_eq(salvage_log(false), TAMIS_OK);
    ck_assert_uint_eq(got.n, TM_COUNT(sizes));
    for (size_t i = 0; i < TM_COUNT(sizes); i++) ck_record(i, sizes[i], i);
    ck_assert_uint_eq(got.n_lost, 0);
}
END_TEST

// Records across every place of the reader's window.
START_TEST(many_small_records_come_back)
{
    tm_wal_writer *w = new_log(MIB);
    for (size_t i = 0; i < 3000; i++) append_ok(w, i * 7 % 701, i);
    close_log(w);
    scan_ok();
    ck_assert_uint_eq(got.n, 3000);
    for (size_t i = 0; i < 3000; i++) ck_record(i, i * 7 % 701, i);
    ck_assert(got.end.whole);
}
END_TEST

START_TEST(empty_log)
{
    tm_wal_writer *w = new_log(0);
    ck_assert_uint_eq(tm_wal_writer_end(w), TM_WAL_HEADER_BYTES);
    ck_assert_uint_eq(tm_wal_writer_synced(w), 0);
    ck_assert_uint_eq(tm_wal_writer_number(w), LOG_NUMBER);
    close_log(w);
    scan_ok();
    ck_assert_uint_eq(got.n, 0);
    ck_assert(got.end.whole && !got.end.sealed);
    ck_assert_uint_eq(got.end.logical_end, TM_WAL_HEADER_BYTES);
    ck_assert_uint_eq(got.end.manifest, 7);
    ck_assert_uint_eq(got.end.manifest_synced, 500);
    CK_OK(tm_wal_writer_close(NULL, err));
    tm_wal_reader_close(NULL);
}
END_TEST

START_TEST(parts_are_joined)
{
    size_t n = 2 * MIB + 100;
    uint8_t *p = malloc(n);
    fill_payload(p, n, 0);
    tm_wal_writer *w = new_log(0);
    // Cut at odd places, also at those where records end, with empty parts between.
    const size_t cuts[] = {0, 0, 1, 1, 100, MIB - 1, MIB, MIB, MIB + 5, 2 * MIB, n, n};
    tm_slice parts[TM_COUNT(cuts)];
    size_t from = 0;
    for (size_t i = 0; i < TM_COUNT(cuts); i++) {
        parts[i] = tm_slice_of(cuts[i] > from ? p + from : NULL, cuts[i] - from);
        from = cuts[i];
    }
    CK_OK(tm_wal_writer_append(w, parts, TM_COUNT(parts), 1000, 77, err));
    CK_OK(tm_wal_writer_append(w, parts, 5, 1077, 0, err));
    CK_OK(tm_wal_writer_append(w, NULL, 0, 1078, 3, err));
    close_log(w);
    scan_ok();
    ck_assert_uint_eq(got.n, 3);
    ck_assert_uint_eq(got.records[0].len, n);
    ck_assert_uint_eq(got.records[0].hash, tm_checksum(p, n));
    ck_assert_uint_eq(got.records[0].count, 77);
    ck_assert_uint_eq(got.records[1].len, 100);
    ck_assert_uint_eq(got.records[1].hash, tm_checksum(p, 100));
    ck_assert_uint_eq(got.records[2].len, 0);
    ck_assert_uint_eq(got.end.last_seq, 1080);
    free(p);
}
END_TEST

START_TEST(one_write_for_each_mebibyte)
{
    tm_wal_writer *w = new_log(0);
    const struct {
        size_t n;
        uint64_t writes;
    } cases[] = {{0, 1}, {100, 1}, {MIB, 1}, {MIB + 1, 2}, {2 * MIB, 2}, {3 * MIB + 1, 4}};
    for (size_t i = 0; i < TM_COUNT(cases); i++) {
        uint64_t before = tamis_vfs_memory_calls(vfs);
        append_ok(w, cases[i].n, i);
        ck_assert_uint_eq(tamis_vfs_memory_calls(vfs) - before, cases[i].writes);
    }
    close_log(w);
}
END_TEST

START_TEST(room_is_reserved_in_steps)
{
    tm_wal_writer *w = new_log(100000);
    uint64_t before = tamis_vfs_memory_calls(vfs), end = tm_wal_writer_end(w);
    for (size_t i = 0; i < 250; i++) append_ok(w, 1000, i);
    uint64_t steps = (tm_wal_writer_end(w) - 1) / 100000 - (end - 1) / 100000;
    ck_assert_uint_eq(steps, 2);
    ck_assert_uint_eq(tamis_vfs_memory_calls(vfs) - before, 250 + steps);
    uint64_t size;
    tm_file f;
    CK_OK(tm_file_open(dir, LOG_NAME, 0, TAMIS_FILE_READ, &f, err));
    CK_OK(tm_file_size(&f, &size, err));
    ck_assert_uint_eq(size, tm_wal_writer_end(w));
    CK_OK(tm_file_close(&f, err));
    close_log(w);
}
END_TEST

// ---- Manifest fields, syncs, seals -------------------------------------------------------------

START_TEST(manifest_is_told_when_it_is_news)
{
    tm_wal_writer *w = new_log(0);
    append_ok(w, 10, 0); // as the header says
    tm_wal_writer_set_manifest(w, 7, 600);
    append_ok(w, 10, 1);
    append_ok(w, 10, 2);
    tm_wal_writer_set_manifest(w, 7, 600);
    append_ok(w, 10, 3);
    tm_wal_writer_set_manifest(w, 20, 128);
    append_ok(w, 2 * MIB + 1, 4);
    append_ok(w, 10, 5);
    tm_wal_writer_set_manifest(w, 20, 999);
    CK_OK(tm_wal_writer_seal(w, err));
    close_log(w);
    scan_ok();
    const uint64_t expected[][2] = {{0, 0}, {7, 600}, {0, 0}, {0, 0}, {20, 128}, {0, 0}, {20, 999}};
    ck_assert_uint_eq(got.n, TM_COUNT(expected));
    for (size_t i = 0; i < TM_COUNT(expected); i++) {
        ck_assert_uint_eq(got.records[i].manifest, expected[i][0]);
        ck_assert_uint_eq(got.records[i].manifest_synced, expected[i][1]);
    }
    ck_assert_uint_eq(got.end.manifest, 20);
    ck_assert_uint_eq(got.end.manifest_synced, 999);
}
END_TEST

START_TEST(records_vouch_for_what_was_synced)
{
    tm_wal_writer *w = new_log(0);
    append_ok(w, 10, 0);
    append_ok(w, 10, 1);
    uint64_t end = tm_wal_writer_end(w);
    CK_OK(tm_wal_writer_sync(w, err));
    ck_assert_uint_eq(tm_wal_writer_synced(w), end);
    append_ok(w, 10, 2);
    scan_ok();
    ck_assert_uint_eq(got.end.vouched, end);
    append_ok(w, 10, 3);
    scan_ok();
    ck_assert_uint_eq(got.end.vouched, end);

    end = tm_wal_writer_end(w);
    uint64_t before = tamis_vfs_memory_calls(vfs);
    CK_OK(tm_wal_writer_sync(w, err));
    CK_OK(tm_wal_writer_sync(w, err)); // nothing new: no call
    ck_assert_uint_eq(tamis_vfs_memory_calls(vfs) - before, 1);
    append_ok(w, 2 * MIB, 4); // its first record vouches already
    scan_ok();
    ck_assert_uint_eq(got.end.vouched, end);
    close_log(w);
}
END_TEST

START_TEST(seal_vouches_for_all)
{
    tm_wal_writer *w = new_log(0);
    append_ok(w, 10, 0);
    append_ok(w, 10, 1);
    uint64_t end = tm_wal_writer_end(w);
    CK_OK(tm_wal_writer_seal(w, err));
    uint64_t sealed_end = tm_wal_writer_end(w);
    ck_assert_uint_gt(sealed_end, end);
    ck_assert_uint_eq(tm_wal_writer_synced(w), sealed_end);
    uint64_t before = tamis_vfs_memory_calls(vfs);
    CK_OK(tm_wal_writer_seal(w, err));
    ck_assert_uint_eq(tamis_vfs_memory_calls(vfs), before);
    ck_assert_uint_eq(tm_wal_writer_end(w), sealed_end);
    scan_ok();
    ck_assert_uint_eq(got.n, 3);
    ck_assert(got.records[2].seal);
    ck_assert_uint_eq(got.records[2].len, 0);
    ck_assert_uint_eq(got.records[2].count, 0);
    ck_assert_uint_eq(got.records[2].offset, end);
    ck_assert(got.end.sealed && got.end.whole);
    ck_assert_uint_eq(got.end.vouched, end);
    ck_assert_uint_eq(got.end.last_seq, 1001);

    append_ok(w, 10, 2); // goes on behind a seal
    scan_ok();
    ck_assert_uint_eq(got.n, 4);
    ck_assert(!got.end.sealed && got.end.whole);
    ck_assert_uint_eq(got.end.vouched, sealed_end);
    CK_OK(tm_wal_writer_seal(w, err));
    scan_ok();
    ck_assert_uint_eq(got.n, 5);
    ck_assert(got.end.sealed);
    close_log(w);
}
END_TEST

START_TEST(seal_of_an_empty_manifest)
{
    tm_wal_header h = {.kind = TM_WAL_MANIFEST, .number = 3, .base = 1};
    tm_wal_writer *w;
    CK_OK(tm_wal_writer_create(dir, "MANIFEST-000003", &h, 4096, &w, err));
    CK_OK(tm_wal_writer_seal(w, err));
    ck_assert_uint_eq(tm_wal_writer_synced(w), tm_wal_writer_end(w));
    close_log(w);
    tm_wal_reader *r;
    CK_OK(tm_wal_reader_open(dir, "MANIFEST-000003", 3, TM_WAL_MANIFEST, NULL, &r, err));
    ck_assert_int_eq(tm_wal_reader_header(r)->kind, TM_WAL_MANIFEST);
    ck_assert_uint_eq(tm_wal_reader_header(r)->base, 1);
    got.n = 0;
    CK_OK(tm_wal_reader_scan(r, 0, UINT64_MAX, keep_record, &got, &got.end, err));
    ck_assert_uint_eq(got.n, 1);
    ck_assert(got.end.sealed && got.end.whole);
    tm_wal_reader_close(r);
}
END_TEST

// ---- Reading on purpose less than all ----------------------------------------------------------

START_TEST(nothing_behind_the_end_that_is_told)
{
    uint64_t ends[6];
    tm_wal_writer *w = new_log(0);
    for (size_t i = 0; i < 6; i++) {
        append_ok(w, 100, i);
        ends[i] = tm_wal_writer_end(w);
    }
    close_log(w);
    for (size_t i = 0; i < 6; i++) {
        ck_assert_int_eq(scan_log(ends[i], ends[i]), TAMIS_OK);
        ck_assert_uint_eq(got.n, i + 1);
        ck_assert_uint_eq(got.end.logical_end, ends[i]);
        ck_assert(got.end.whole);
        ck_assert_uint_eq(got.end.cut_bytes, 0);
        // An end within a record: the caller sees that the log ends before.
        ck_assert_int_eq(scan_log(0, ends[i] - 1), TAMIS_OK);
        ck_assert_uint_eq(got.n, i);
        ck_assert_uint_lt(got.end.logical_end, ends[i] - 1);
        ck_assert(!got.end.whole);
        // Nothing counts behind the end, what is said of it neither.
        ck_assert_int_eq(scan_log(ends[i] + 1, ends[i]), TAMIS_OK);
        ck_assert_int_eq(scan_log(ends[5] + 1, UINT64_MAX), TAMIS_CORRUPT);
    }
    ck_assert_int_eq(scan_log(0, ends[5] + 1), TAMIS_OK);
    ck_assert_uint_eq(got.end.logical_end, ends[5]);
    ck_assert_int_eq(scan_log(0, 0), TAMIS_OK); // no sense in it, no harm
    ck_assert_uint_eq(got.n, 0);
}
END_TEST

START_TEST(callback_ends_the_scan)
{
    tm_wal_writer *w = new_log(0);
    for (size_t i = 0; i < 6; i++) append_ok(w, i == 3 ? 2 * MIB : 100, i);
    close_log(w);
    for (size_t i = 1; i <= 6; i++) {
        got.stop_after = i;
        ck_assert_int_eq(scan_log(0, UINT64_MAX), TAMIS_ABORTED);
        ck_assert_str_eq(got.error.message, "enough");
        ck_assert_uint_eq(got.n, i);
        ck_assert_int_eq(salvage_log(false), TAMIS_ABORTED);
        ck_assert_uint_eq(got.n, i);
    }
    tm_wal_reader *r; // a reader can be used again, also if it was stopped at a large payload
    CK_OK(tm_wal_reader_open(dir, LOG_NAME, LOG_NUMBER, TM_WAL_LOG, NULL, &r, err));
    got.n = 0;
    got.stop_after = 4;
    ck_assert_int_eq(tm_wal_reader_scan(r, 0, UINT64_MAX, keep_record, &got, &got.end, NULL),
                     TAMIS_ABORTED);
    got.stop_after = 0;
    for (int i = 0; i < 2; i++) {
        got.n = 0;
        CK_OK(tm_wal_reader_scan(r, 0, UINT64_MAX, keep_record, &got, &got.end, err));
        ck_assert_uint_eq(got.n, 6);
    }
    tm_wal_reader_close(r);
}
END_TEST

// ---- The file's header -------------------------------------------------------------------------

static int open_number(uint64_t number, tm_wal_kind kind, const uint8_t *store_id)
{
    tm_wal_reader *r;
    got.error = (tamis_error){0};
    int st = tm_wal_reader_open(dir, LOG_NAME, number, kind, store_id, &r, &got.error);
    tm_wal_reader_close(r);
    return st;
}

START_TEST(header_comes_back)
{
    ck_assert_int_eq(open_number(12, TM_WAL_LOG, NULL), TAMIS_NOTFOUND);
    close_log(new_log(0));
    tm_wal_reader *r;
    CK_OK(tm_wal_reader_open(dir, LOG_NAME, LOG_NUMBER, TM_WAL_LOG, NULL, &r, err));
    const tm_wal_header *h = tm_wal_reader_header(r);
    ck_assert_int_eq(h->kind, log_header.kind);
    ck_assert_uint_eq(h->required, log_header.required);
    ck_assert_uint_eq(h->optional, log_header.optional);
    ck_assert_uint_eq(h->number, log_header.number);
    ck_assert_mem_eq(h->store_id, log_header.store_id, 16);
    ck_assert_uint_eq(h->base, log_header.base);
    ck_assert_uint_eq(h->previous, log_header.previous);
    ck_assert_uint_eq(h->previous_end, log_header.previous_end);
    ck_assert_uint_eq(h->previous_synced, log_header.previous_synced);
    ck_assert_uint_eq(h->manifest, log_header.manifest);
    ck_assert_uint_eq(h->manifest_synced, log_header.manifest_synced);
    tm_wal_reader_close(r);

    ck_assert_int_eq(open_number(12, TM_WAL_LOG, log_header.store_id), TAMIS_OK);
    ck_assert_int_eq(open_number(13, TM_WAL_LOG, NULL), TAMIS_CORRUPT);
    ck_assert_int_eq(open_number(12, TM_WAL_MANIFEST, NULL), TAMIS_CORRUPT);
    uint8_t other[16] = {0};
    ck_assert_int_eq(open_number(12, TM_WAL_LOG, other), TAMIS_CORRUPT);
    ck_assert_ptr_nonnull(strstr(got.error.message, "another store"));
}
END_TEST

// Changes bytes of a header and makes its checksum right again.
static int open_changed(size_t at, const void *bytes, size_t n)
{
    uint8_t h[TM_WAL_HEADER_BYTES];
    tm_wal_header_encode(&log_header, h);
    memcpy(h + at, bytes, n);
    tm_put64(h + 120, tm_checksum(h, 120));
    store_file(LOG_NAME, h, sizeof h);
    return open_number(12, TM_WAL_LOG, log_header.store_id);
}

START_TEST(header_of_another_version)
{
    ck_assert_int_eq(open_changed(0, "", 0), TAMIS_OK);
    ck_assert_int_eq(open_changed(8, "\2\0", 2), TAMIS_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(got.error.message, "version 2"));
    ck_assert_int_eq(open_changed(10, "\7\0", 2), TAMIS_OK); // a minor one
    ck_assert_int_eq(open_changed(16, "\17", 1), TAMIS_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(got.error.message, "bit 3"));
    ck_assert_int_eq(open_changed(23, "\200", 1), TAMIS_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(got.error.message, "bit 63"));
    ck_assert_uint_eq(got.error.file_number, 12);
    ck_assert_int_eq(open_changed(24, "\377\377\377\377\377\377\377\377", 8), TAMIS_OK);
    ck_assert_int_eq(open_changed(12, "\100", 1), TAMIS_CORRUPT);
    ck_assert_int_eq(open_changed(0, "tamisMAN", 8), TAMIS_CORRUPT);
    for (size_t at = 104; at < 120; at++) {
        ck_assert_int_eq(open_changed(at, "\1", 1), TAMIS_CORRUPT);
    }
    ck_assert_int_eq(open_changed(71, "\100", 1), TAMIS_OK);       // a far end
    ck_assert_int_eq(open_changed(79, "\100", 1), TAMIS_CORRUPT);  // durable beyond the end
    // A manifest names no other file.
    tm_wal_header m = {.kind = TM_WAL_MANIFEST, .number = 12, .manifest = 1}, decoded;
    uint8_t bytes[TM_WAL_HEADER_BYTES];
    tm_wal_header_encode(&m, bytes);
    ck_assert_int_eq(tm_wal_header_decode(bytes, TM_WAL_MANIFEST, 12, &decoded, NULL),
                     TAMIS_CORRUPT);
}
END_TEST

// ---- The bytes ---------------------------------------------------------------------------------

START_TEST(bytes_are_those_of_the_format)
{
    tm_wal_writer *w = new_log(0);
    tm_slice parts[2] = {tm_slice_str("some "), tm_slice_str("payload")};
    CK_OK(tm_wal_writer_append(w, parts, 2, 300, 5, err));
    tm_wal_writer_set_manifest(w, 8, 70000);
    CK_OK(tm_wal_writer_append(w, parts, 1, 305, 1, err));
    CK_OK(tm_wal_writer_seal(w, err));
    close_log(w);

    uint8_t expected[512] = {0}, *p = expected;
    memcpy(p, "tamisWAL\1\0\0\0\200\0\0\0", 16);
    tm_put64(p + 16, 1);
    tm_put64(p + 24, 0x80);
    tm_put64(p + 32, 12);
    memcpy(p + 40, log_header.store_id, 16);
    tm_put64(p + 56, 9);
    tm_put64(p + 64, 4000);
    tm_put64(p + 72, 3000);
    tm_put64(p + 80, 1000);
    tm_put64(p + 88, 7);
    tm_put64(p + 96, 500);
    tm_put64(p + 120, tm_checksum(p, 120));
    tm_slice none = tm_slice_str(""), both = tm_slice_str("some payload");
    size_t n = 128;
    n += spell_record(p + n, n, 1, 12, (const uint64_t[]){300, 5, n}, 3, none, both);
    n += spell_record(p + n, n, 0x11, 5, (const uint64_t[]){305, 1, n, 8, 70000}, 5, none,
                      parts[0]);
    n += spell_record(p + n, n, 5, 0, (const uint64_t[]){305, 0, 0}, 3, none, none);
    tm_buf file = load_file(LOG_NAME);
    ck_assert_uint_eq(file.len, n);
    ck_assert_mem_eq(file.data, expected, n);
    tm_buf_deinit(&file);
}
END_TEST

START_TEST(pieces_are_those_of_the_format)
{
    tm_wal_writer *w = new_log(0);
    tm_wal_writer_set_manifest(w, 8, 1);
    append_ok(w, 2 * MIB + 3, 0);
    close_log(w);
    tm_buf file = load_file(LOG_NAME);
    const unsigned types[] = {0x12, 3, 4};
    const uint64_t lengths[] = {MIB, MIB, 3}, counts[] = {0, 0, 1};
    uint64_t at = TM_WAL_HEADER_BYTES;
    for (size_t i = 0; i < 3; i++) {
        tm_cursor c = tm_cursor_of(tm_slice_of(file.data + at + 14, file.len - at - 14));
        ck_assert_uint_eq(file.data[at + 1], types[i]);
        ck_assert_uint_eq(tm_read_varint(&c), lengths[i]);
        ck_assert_uint_eq(tm_read_varint(&c), 1000);
        ck_assert_uint_eq(tm_read_varint(&c), counts[i]);
        ck_assert_uint_eq(tm_read_varint(&c), at); // nothing was synced
        if (i == 0) {
            ck_assert_uint_eq(tm_read_varint(&c), 8);
            ck_assert_uint_eq(tm_read_varint(&c), 1);
        }
        ck_assert_uint_eq((uint64_t)(c.p - file.data), at + file.data[at]);
        at += file.data[at] + lengths[i];
    }
    ck_assert_uint_eq(at, file.len);
    tm_buf_deinit(&file);
}
END_TEST

START_TEST(numbers_too_large_are_refused)
{
    tm_wal_writer *w = new_log(0);
    append_ok(w, 10, 0);
    uint64_t end = tm_wal_writer_end(w);
    tm_slice part = tm_slice_str("x");
    ck_assert_int_eq(tm_wal_writer_append(w, &part, 1, UINT64_MAX, 1, NULL), TAMIS_INVALID);
    ck_assert_int_eq(tm_wal_writer_append(w, &part, 1, 2, UINT64_MAX - 1, NULL), TAMIS_INVALID);
    tm_slice huge[2] = {{part.data, SIZE_MAX}, {part.data, 1}};
    ck_assert_int_eq(tm_wal_writer_append(w, huge, 2, 1001, 1, NULL), TAMIS_TOOLARGE);
    ck_assert_uint_eq(tm_wal_writer_end(w), end);
    append_ok(w, 10, 1);
    close_log(w);
    scan_ok();
    ck_assert_uint_eq(got.n, 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wal");
    TCase *tc = tcase_create("wal");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, all_sizes_come_back);
    tcase_add_test(tc, many_small_records_come_back);
    tcase_add_test(tc, empty_log);
    tcase_add_test(tc, parts_are_joined);
    tcase_add_test(tc, one_write_for_each_mebibyte);
    tcase_add_test(tc, room_is_reserved_in_steps);
    tcase_add_test(tc, manifest_is_told_when_it_is_news);
    tcase_add_test(tc, records_vouch_for_what_was_synced);
    tcase_add_test(tc, seal_vouches_for_all);
    tcase_add_test(tc, seal_of_an_empty_manifest);
    tcase_add_test(tc, nothing_behind_the_end_that_is_told);
    tcase_add_test(tc, callback_ends_the_scan);
    tcase_add_test(tc, header_comes_back);
    tcase_add_test(tc, header_of_another_version);
    tcase_add_test(tc, bytes_are_those_of_the_format);
    tcase_add_test(tc, pieces_are_those_of_the_format);
    tcase_add_test(tc, numbers_too_large_are_refused);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
