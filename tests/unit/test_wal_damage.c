// SPDX-License-Identifier: BSD-2-Clause
//
// Torn or rotten: what a reader makes of record files with wrong, missing and foreign bytes.
#include "wal_support.h"

// ---- One wrong bit -----------------------------------------------------------------------------

// Flips each bit of the file; all must be told as damage, with what was read before it.
static void ck_every_bit_is_told(const tm_buf *file)
{
    for (size_t bit = 0; bit < 8 * file->len; bit++) {
        uint8_t byte = (uint8_t)(file->data[bit / 8] ^ 1u << bit % 8);
        poke(LOG_NAME, bit / 8, &byte, 1);
        scan_log(0, UINT64_MAX);
        poke(LOG_NAME, bit / 8, &file->data[bit / 8], 1);
        if (got.status != TAMIS_CORRUPT) ck_abort_msg("bit %zu is not told", bit);
        ck_assert_uint_eq(got.error.file_number, LOG_NUMBER);
        if (bit / 8 < TM_WAL_HEADER_BYTES) continue;
        size_t n = 0;
        while (n < SMALL && small_starts[n + 1] <= bit / 8) n++;
        ck_corrupt_at(small_starts[n]);
        ck_small_prefix(n);
        ck_assert_ptr_nonnull(strstr(got.error.message, LOG_NAME));
    }
    scan_ok();
}

START_TEST(every_bit_of_a_sealed_log)
{
    small_log(0, true);
    tm_buf file = load_file(LOG_NAME);
    ck_every_bit_is_told(&file);
    tm_buf_deinit(&file);
}
END_TEST

START_TEST(every_bit_of_a_log_that_nobody_vouches_for)
{
    small_log(0, false);
    tm_buf file = load_file(LOG_NAME);
    ck_every_bit_is_told(&file);
    tm_buf_deinit(&file);
}
END_TEST

START_TEST(every_bit_of_the_unused_room)
{
    small_log(0, true);
    scan_ok();
    uint64_t end = got.end.logical_end;
    static const uint8_t zeros[300];
    poke(LOG_NAME, end, zeros, sizeof zeros);
    scan_ok();
    ck_assert(got.end.whole && got.end.sealed);
    ck_assert_uint_eq(got.end.file_bytes, end + sizeof zeros);
    for (size_t bit = 0; bit < 8 * sizeof zeros; bit++) {
        uint8_t byte = (uint8_t)(1u << bit % 8);
        poke(LOG_NAME, end + bit / 8, &byte, 1);
        scan_ok(); // no record is lost, but it does not pass for whole
        ck_assert_uint_eq(got.n, SMALL + 1);
        ck_assert(!got.end.whole && got.end.sealed);
        ck_assert_uint_eq(got.end.logical_end, end);
        ck_assert_uint_eq(got.end.cut_bytes, bit / 8 + 1);
        poke(LOG_NAME, end + bit / 8, zeros, 1);
    }
}
END_TEST

START_TEST(one_bit_of_a_larger_record)
{
    // Up to 16 KiB a wrong bit in the payload is found; that of a header always.
    const struct {
        size_t n;
        bool found;
    } cases[] = {{16000, true}, {16384 - 24, true}, {16384, false}, {200000, false}};
    for (size_t i = 0; i < TM_COUNT(cases); i++) {
        tm_wal_writer *w = new_log(0);
        append_ok(w, 10, 0);
        uint64_t start = tm_wal_writer_end(w);
        append_ok(w, cases[i].n, 1);
        uint64_t last = tm_wal_writer_end(w) - 1;
        close_log(w);
        tm_buf file = load_file(LOG_NAME);
        uint8_t byte = file.data[last] ^ 0x40;
        poke(LOG_NAME, last, &byte, 1);
        ck_assert_int_eq(scan_log(0, UINT64_MAX), cases[i].found ? TAMIS_CORRUPT : TAMIS_OK);
        if (!cases[i].found) ck_assert_uint_eq(got.end.cut_bytes, last + 1 - start);
        poke(LOG_NAME, last, &file.data[last], 1);
        byte = file.data[start + 14] ^ 0x40; // in the payload's length
        poke(LOG_NAME, start + 14, &byte, 1);
        ck_assert_int_eq(scan_log(0, UINT64_MAX), TAMIS_CORRUPT);
        ck_corrupt_at(start);
        tm_buf_deinit(&file);
        CK_OK(tm_dir_unlink(dir, LOG_NAME, err));
    }
}
END_TEST

// A record with one bit set in its part of the last sector, which was not written.
START_TEST(a_lost_sector_may_look_like_one_bit)
{
    uint8_t p[600] = {0};
    fill_payload(p, 100, 0);
    for (uint64_t shift = 0; shift < 3; shift++) {
        tm_wal_writer *w = new_log(0);
        // Header 21 bytes: the record's first 384 bytes end with the sector.
        size_t n = 384 - 21 + 30;
        memset(p + 100, 0, sizeof p - 100);
        p[384 - 21 + 7] = 0x10;
        if (shift == 1) p[384 - 21 - 1] = 1; // that of the sector before: no matter
        if (shift == 2) p[n - 1] = 1;        // a second one in the sector
        tm_slice part = tm_slice_of(p, n);
        CK_OK(tm_wal_writer_append(w, &part, 1, 1000, 1, err));
        ck_assert_uint_eq(tm_wal_writer_end(w), 128 + 21 + n);
        close_log(w);
        scan_ok();
        ck_assert_uint_eq(got.n, 1);
        uint8_t zero = 0;
        poke(LOG_NAME, 512 + 7, &zero, 1);
        if (shift == 2) {
            ck_assert_int_eq(scan_log(0, UINT64_MAX), TAMIS_CORRUPT); // no sector was lost
        } else {
            scan_ok();
            ck_assert(!got.end.whole);
        }
        ck_assert_uint_eq(got.n, 0);
        CK_OK(tm_dir_unlink(dir, LOG_NAME, err));
    }
}
END_TEST

// ---- Cut off -----------------------------------------------------------------------------------

static void ck_cut_at(uint64_t length, uint64_t vouched)
{
    scan_log(vouched, UINT64_MAX);
    if (length < TM_WAL_HEADER_BYTES) {
        ck_assert_int_eq(got.status, TAMIS_CORRUPT);
        ck_assert_uint_eq(got.n, 0);
        return;
    }
    size_t n = 0;
    while (n < SMALL && small_starts[n + 1] <= length) n++;
    ck_small_prefix(n);
    uint64_t end = small_starts[n]; // of the records that are whole
    if (vouched > end) {
        ck_corrupt_at(end);
        return;
    }
    ck_assert_int_eq(got.status, TAMIS_OK);
    ck_assert_uint_eq(got.end.logical_end, end);
    ck_assert_uint_eq(got.end.cut_bytes, length - end);
    ck_assert(got.end.whole == (length == end));
}

// One bit does not make up for bytes that are not there.
START_TEST(one_bit_of_a_record_that_is_cut)
{
    small_log(0, false);
    tm_buf file = load_file(LOG_NAME);
    uint64_t last = small_starts[SMALL - 1];
    for (uint64_t length = last + 2; length < file.len; length++) {
        for (size_t bit = 0; bit < 8 * 20; bit++) {
            if (last + bit / 8 >= length) break;
            file.data[last + bit / 8] ^= (uint8_t)(1u << bit % 8);
            store_file(LOG_NAME, file.data, length);
            file.data[last + bit / 8] ^= (uint8_t)(1u << bit % 8);
            scan_ok();
            ck_small_prefix(SMALL - 1);
        }
    }
    tm_buf_deinit(&file);
}
END_TEST

START_TEST(cut_at_every_length)
{
    small_log(3, false);
    tm_buf file = load_file(LOG_NAME);
    for (uint64_t length = 0; length <= file.len; length++) {
        store_file(LOG_NAME, file.data, length);
        // Zero bytes at the end of what is left are taken for room.
        if (length > 0 && file.data[length - 1] == 0) continue;
        ck_cut_at(length, 0);
        ck_cut_at(length, small_starts[4]);
        ck_cut_at(length, file.len);
    }
    tm_buf_deinit(&file);
}
END_TEST

// As a file whose size was written and whose last bytes were not.
START_TEST(zeros_from_every_offset)
{
    small_log(0, false);
    tm_buf file = load_file(LOG_NAME);
    for (uint64_t from = file.len; from-- > TM_WAL_HEADER_BYTES;) {
        uint8_t was = file.data[from];
        file.data[from] = 0;
        if (was == 0) continue;
        store_file(LOG_NAME, file.data, file.len);
        size_t n = 0;
        while (n < SMALL && small_starts[n + 1] <= from) n++;
        int st = scan_log(0, UINT64_MAX);
        ck_small_prefix(n);
        // One lost byte with one bit set is one flipped bit; where the rest of the sector is more
        // than that byte, no sector was lost.
        bool one_bit = (was & (was - 1)) == 0;
        if (!one_bit) ck_assert_int_eq(st, TAMIS_OK);
        if (st == TAMIS_OK) ck_assert(got.end.whole == (from <= small_starts[n]));
    }
    tm_buf_deinit(&file);
}
END_TEST

START_TEST(a_large_payload_cut_between_its_pieces)
{
    tm_wal_writer *w = new_log(0);
    append_ok(w, 50, 0);
    uint64_t start = tm_wal_writer_end(w);
    append_ok(w, 2 * MIB + 9, 1);
    close_log(w);
    tm_buf file = load_file(LOG_NAME);
    uint64_t second = start + file.data[start] + MIB;
    uint64_t third = second + file.data[second] + MIB;
    const uint64_t lengths[] = {file.len - 1, third + 1, third, third - 1, second + 1, second,
                                start + 30};
    for (size_t i = 0; i < TM_COUNT(lengths); i++) {
        cut(LOG_NAME, lengths[i]);
        scan_ok();
        ck_assert_uint_eq(got.n, 1);
        ck_assert_uint_eq(got.end.logical_end, start);
        ck_assert_uint_eq(got.end.cut_bytes, lengths[i] - start);
        ck_assert(!got.end.whole);
        // What is vouched for decides by the first piece that is missing.
        uint64_t missing = lengths[i] >= third ? third : lengths[i] >= second ? second : start;
        ck_assert_int_eq(scan_log(missing, UINT64_MAX), TAMIS_OK);
        ck_assert_int_eq(scan_log(missing + 1, UINT64_MAX), TAMIS_CORRUPT);
        ck_corrupt_at(missing);
        ck_assert_int_eq(salvage_log(false), TAMIS_OK);
        ck_assert_uint_eq(got.n, 1);
        ck_assert_uint_eq(got.n_lost, 1);
        ck_assert_uint_eq(got.lost[0].from, start);
        ck_assert_uint_eq(got.lost[0].to, lengths[i]);
    }
    tm_buf_deinit(&file);
}
END_TEST

// ---- Tears and holes ---------------------------------------------------------------------------

START_TEST(noise_in_the_last_record_is_a_tear)
{
    small_log(SMALL - 1, false);
    tm_buf file = load_file(LOG_NAME);
    tm_random random = tm_random_seed(1);
    uint64_t start = small_starts[SMALL - 1];
    for (int round = 0; round < 300; round++) {
        uint64_t from = start + tm_random_below(&random, file.len - start - 4);
        tm_buf copy = {0};
        CK_OK(tm_buf_set(&copy, tm_buf_slice(&file)));
        for (uint64_t i = from; i < from + 4; i++) {
            copy.data[i] ^= (uint8_t)(1 + tm_random_below(&random, 255));
        }
        store_file(LOG_NAME, copy.data, copy.len);
        scan_ok();
        ck_small_prefix(SMALL - 1);
        ck_assert_uint_eq(got.end.logical_end, start);
        ck_assert(got.end.vouched == 0 || got.end.vouched == start); // is its header there?
        ck_assert(!got.end.whole);
        ck_assert_uint_le(got.end.cut_bytes, file.len - start);
        // Somebody else may know better.
        ck_assert_int_eq(scan_log(start + 1, UINT64_MAX), TAMIS_CORRUPT);
        ck_corrupt_at(start);
        tm_buf_deinit(&copy);
    }
    tm_buf_deinit(&file);
}
END_TEST

// Record hole (0 to 5) of a small log becomes zeros.
static void make_hole(size_t hole, size_t sync_after, bool seal)
{
    static const uint8_t zeros[512];
    small_log(sync_after, seal);
    poke(LOG_NAME, small_starts[hole], zeros, small_starts[hole + 1] - small_starts[hole]);
}

START_TEST(a_hole_is_judged_by_what_stands_behind)
{
    for (size_t hole = 0; hole < SMALL; hole++) {
        for (size_t sync_after = 0; sync_after < SMALL; sync_after++) {
            make_hole(hole, sync_after, false);
            scan_log(0, UINT64_MAX);
            ck_small_prefix(hole);
            // The record behind the sync tells of it, if it is not the hole itself.
            if (hole < sync_after) {
                ck_corrupt_at(small_starts[hole]);
                continue;
            }
            ck_assert_int_eq(got.status, TAMIS_OK);
            ck_assert_uint_eq(got.end.logical_end, small_starts[hole]);
            bool last = hole == SMALL - 1;
            ck_assert(got.end.whole == last); // zeros where it stood: never begun
            uint64_t used = last ? 0 : small_starts[SMALL] - small_starts[hole];
            ck_assert_uint_eq(got.end.cut_bytes, used);
        }
        make_hole(hole, 0, true);
        ck_assert_int_eq(scan_log(0, UINT64_MAX), TAMIS_CORRUPT);
        ck_corrupt_at(small_starts[hole]);
        ck_small_prefix(hole);
    }
}
END_TEST

// The only record that vouches has lost its own payload.
START_TEST(a_header_alone_is_testimony)
{
    static const uint8_t zeros[512];
    tm_wal_writer *w = new_log(0);
    append_ok(w, 100, 0);
    uint64_t hole = tm_wal_writer_end(w);
    append_ok(w, 100, 1);
    CK_OK(tm_wal_writer_sync(w, err));
    tm_wal_writer_set_manifest(w, 8, 4321);
    uint64_t third = tm_wal_writer_end(w);
    append_ok(w, 5000, 2);
    close_log(w);
    poke(LOG_NAME, third + 100, zeros, sizeof zeros);
    scan_ok(); // all below the third is readable
    ck_assert_uint_eq(got.n, 2);
    ck_assert_uint_eq(got.end.vouched, third);
    ck_assert_uint_eq(got.end.manifest, 8);
    ck_assert_uint_eq(got.end.manifest_synced, 4321);
    poke(LOG_NAME, hole, zeros, 100);
    ck_assert_int_eq(scan_log(0, UINT64_MAX), TAMIS_CORRUPT);
    ck_corrupt_at(hole);
    cut(LOG_NAME, third + 1000); // and the rest of the file
    ck_assert_int_eq(scan_log(0, UINT64_MAX), TAMIS_CORRUPT);
    ck_corrupt_at(hole);
}
END_TEST

// It is found wherever the windows of the search end.
START_TEST(testimony_at_every_place_of_the_window)
{
    static const uint8_t zeros[64];
    for (size_t n = 256 * 1024 - 160; n < 256 * 1024 + 10; n++) {
        tm_wal_writer *w = new_log(0);
        append_ok(w, n, 0);
        CK_OK(tm_wal_writer_sync(w, err));
        append_ok(w, 3, 1);
        close_log(w);
        poke(LOG_NAME, 128, zeros, sizeof zeros);
        ck_assert_int_eq(scan_log(0, UINT64_MAX), TAMIS_CORRUPT);
        ck_corrupt_at(128);
        CK_OK(tm_dir_unlink(dir, LOG_NAME, err));
    }
}
END_TEST

// What a value spells is no record, though it stood at the very place where it would be one.
START_TEST(a_record_within_a_payload_is_none)
{
    uint8_t inner[256] = {1};
    size_t start = 128 + 21 + 100, n = 100; // a header of 21 bytes, and 100 of the payload
    n += spell_record(inner + n, start, 1, 5, (const uint64_t[]){1000, 1, 0}, 3, tm_slice_str(""),
                      tm_slice_str("inner"));
    memset(inner + n, 7, sizeof inner - n);
    tm_slice part = tm_slice_of(inner, sizeof inner);
    tm_wal_writer *w = new_log(0);
    CK_OK(tm_wal_writer_append(w, &part, 1, 1000, 1, err));
    ck_assert_uint_eq(tm_wal_writer_end(w), 128 + 21 + sizeof inner);
    append_ok(w, 10, 1);
    close_log(w);
    poke(LOG_NAME, 128 + 21 + 3, "noise", 5);
    scan_ok();
    ck_assert_uint_eq(got.n, 0);
    ck_assert_uint_eq(got.end.vouched, 0); // the inner one would say otherwise
    ck_assert_int_eq(salvage_log(false), TAMIS_OK);
    ck_assert_uint_eq(got.n, 1);
    ck_record(0, 10, 1);
}
END_TEST

START_TEST(a_hole_of_pages_in_a_long_log)
{
    static const uint8_t zeros[8192];
    for (int synced = 0; synced < 2; synced++) {
        tm_wal_writer *w = new_log(0);
        for (uint64_t i = 0; i < 2000; i++) {
            append_ok(w, 400, i);
            if (i == 1500 && synced) CK_OK(tm_wal_writer_sync(w, err));
        }
        close_log(w);
        uint64_t page = (uint64_t)300 * 1024 / 4096 * 4096;
        poke(LOG_NAME, page, zeros, sizeof zeros);
        scan_log(0, UINT64_MAX);
        ck_assert_int_eq(got.status, synced ? TAMIS_CORRUPT : TAMIS_OK);
        for (size_t i = 0; i < got.n; i++) ck_record(i, 400, i);
        ck_assert_uint_lt(got.end.logical_end, page);
        ck_assert_uint_gt(got.end.logical_end, page - 1000);
        uint64_t read = got.n;
        ck_assert_int_eq(salvage_log(false), TAMIS_OK);
        ck_assert_uint_eq(got.n_lost, 1);
        ck_assert_uint_le(got.lost[0].from, page);
        ck_assert_uint_ge(got.lost[0].to, page + sizeof zeros);
        size_t lost = 2000 - got.n;
        ck_assert_uint_ge(lost, 19);
        ck_assert_uint_le(lost, 21);
        for (size_t i = 0; i < got.n; i++) ck_record(i, 400, i < read ? i : i + lost);
        CK_OK(tm_dir_unlink(dir, LOG_NAME, err));
    }
}
END_TEST

// ---- Bytes of other files, places and appends --------------------------------------------------

// Puts the header of the small log before records that were written for another file or store.
static void ck_foreign(uint64_t number, uint8_t store)
{
    small_log(0, true);
    tm_buf ours = load_file(LOG_NAME);
    tm_wal_header h = log_header;
    h.number = number;
    h.store_id[0] = store;
    tm_wal_writer *w;
    CK_OK(tm_wal_writer_create(dir, "other.log", &h, 0, &w, err));
    for (size_t i = 0; i < SMALL; i++) append_ok(w, small_sizes[i], i);
    CK_OK(tm_wal_writer_seal(w, err));
    close_log(w);
    tm_buf theirs = load_file("other.log");
    ck_assert_uint_eq(ours.len, theirs.len);
    // From the third record on, as a file that was used before would have it.
    memcpy(ours.data + small_starts[2], theirs.data + small_starts[2], ours.len - small_starts[2]);
    store_file(LOG_NAME, ours.data, ours.len);
    scan_ok();
    ck_small_prefix(2);
    ck_assert_uint_eq(got.end.vouched, 0);
    ck_assert_uint_eq(got.end.cut_bytes, ours.len - 2 - small_starts[2]); // a seal ends with zeros
    ck_assert_int_eq(salvage_log(false), TAMIS_OK);
    ck_small_prefix(2);
    CK_OK(tm_dir_unlink(dir, "other.log", err));
    tm_buf_deinit(&ours);
    tm_buf_deinit(&theirs);
}

START_TEST(records_of_another_file_are_none)
{
    ck_foreign(LOG_NUMBER + 1, log_header.store_id[0]);
    ck_foreign(LOG_NUMBER, 99);
}
END_TEST

START_TEST(records_of_another_place_are_none)
{
    small_log(0, false);
    tm_buf file = load_file(LOG_NAME);
    uint64_t n = small_starts[3] - small_starts[2];
    tm_buf moved = {0}; // the third record once more behind all, and once for the first
    CK_OK(tm_buf_append(&moved, file.data, file.len));
    CK_OK(tm_buf_append(&moved, file.data + small_starts[2], n));
    store_file(LOG_NAME, moved.data, moved.len);
    scan_ok();
    ck_small_prefix(SMALL);
    ck_assert_uint_eq(got.end.cut_bytes, n);
    moved.len = TM_WAL_HEADER_BYTES;
    CK_OK(tm_buf_append(&moved, file.data + small_starts[2], n));
    store_file(LOG_NAME, moved.data, moved.len);
    scan_ok();
    ck_small_prefix(0);
    tm_buf_deinit(&moved);
    tm_buf_deinit(&file);
}
END_TEST

// The pieces of two large payloads that were written to the same place, as an append that was
// undone and the next one would leave them if the disk kept some of the older.
START_TEST(pieces_of_two_appends_are_not_mixed)
{
    tm_buf files[2];
    for (uint64_t i = 0; i < 2; i++) {
        tm_wal_writer *w = new_log(0);
        append_ok(w, 2 * MIB + 9, i);
        close_log(w);
        files[i] = load_file(LOG_NAME);
        CK_OK(tm_dir_unlink(dir, LOG_NAME, err));
    }
    ck_assert_uint_eq(files[0].len, files[1].len);
    uint64_t second = 128 + files[0].data[128] + MIB;
    uint64_t third = second + files[0].data[second] + MIB;
    const uint64_t bounds[] = {128, second, third, files[0].len};
    for (unsigned mix = 0; mix < 8; mix++) {
        tm_buf b = {0};
        CK_OK(tm_buf_append(&b, files[0].data, 128));
        for (unsigned i = 0; i < 3; i++) {
            const tm_buf *from = &files[mix >> i & 1];
            CK_OK(tm_buf_append(&b, from->data + bounds[i], bounds[i + 1] - bounds[i]));
        }
        store_file(LOG_NAME, b.data, b.len);
        scan_ok();
        ck_assert_uint_eq(got.n, mix == 0 || mix == 7 ? 1 : 0);
        if (got.n == 1) ck_record(0, 2 * MIB + 9, mix & 1);
        else ck_assert_uint_eq(got.end.cut_bytes, b.len - 128);
        tm_buf_deinit(&b);
    }
    // Without its middle; the other pieces say that they belong together.
    for (int in_header = 0; in_header < 2; in_header++) {
        uint64_t at = in_header ? second + 3 : second + 1000;
        store_file(LOG_NAME, files[0].data, files[0].len);
        poke(LOG_NAME, at, "noise", 5);
        ck_assert_int_eq(salvage_log(false), TAMIS_OK);
        ck_assert_uint_eq(got.n, 0);
        ck_assert_uint_eq(got.n_lost, 1);
    }
    // A piece without those before it.
    for (unsigned first = 1; first < 3; first++) {
        static const uint8_t zeros[MIB + 64];
        tm_buf b = {0};
        CK_OK(tm_buf_append(&b, files[0].data, files[0].len));
        memcpy(b.data + 128, zeros, bounds[first] - 128 > sizeof zeros ? sizeof zeros
                                                                        : bounds[first] - 128);
        store_file(LOG_NAME, b.data, b.len);
        ck_assert_int_eq(salvage_log(false), TAMIS_OK);
        ck_assert_uint_eq(got.n, 0);
        ck_assert_uint_eq(got.n_lost, 1);
        tm_buf_deinit(&b);
    }
    tm_buf_deinit(&files[0]);
    tm_buf_deinit(&files[1]);
}
END_TEST

// ---- Headers that lie --------------------------------------------------------------------------

START_TEST(records_that_contradict_themselves)
{
    const struct {
        unsigned type;
        uint64_t n, numbers[5];
        size_t n_numbers;
        const char *spare;
        size_t n_spare;
        bool good;
    } cases[] = {
        {1, 0, {5, 1, 0}, 3, "", 0, true},
        {5, 0, {5, 0, 0}, 3, "", 0, true},
        {0x11, 0, {5, 1, 0, 3, 4}, 5, "", 0, true},
        {1, 0, {5, 1, 128}, 3, "", 0, true},                // vouches for nothing
        {1, 0, {5, 1, 129}, 3, "", 0, false},               // for less than nothing
        {1, 1, {5, 1, 0}, 3, "", 0, false},                 // behind the end of the file
        {1, MIB, {5, 1, 0}, 3, "", 0, false},
        {1, MIB + 1, {5, 1, 0}, 3, "", 0, false},
        {1, UINT64_MAX, {5, 1, 0}, 3, "", 0, false},
        {1, 0, {UINT64_MAX, 0, 0}, 3, "", 0, true},
        {1, 0, {UINT64_MAX, 1, 0}, 3, "", 0, false},        // its last operation has no number
        {1, 0, {2, UINT64_MAX - 1, 0}, 3, "", 0, false},
        {1, 0, {5, 1}, 2, "", 0, false},                    // too short: 17 bytes
        {1, 0, {5, 1, 0}, 3, "\0", 1, false},               // one byte more
        {0x11, 0, {5, 1, 0}, 3, "", 0, false},              // no manifest fields
        {0x11, 0, {5, 1, 0, 3}, 4, "", 0, false},
        {1, 0, {5, 1}, 2, "\200\0", 2, false},              // a long spelling of 0
        {1, 0, {5, 1}, 2, "\200", 1, false},                // no end
        {1, 0, {5, 1}, 2, "\377\377\377\377\377\377\377\377\377\2", 10, false},
        {0, 0, {5, 1, 0}, 3, "", 0, false},
        {6, 0, {5, 1, 0}, 3, "", 0, false},
        {15, 0, {5, 1, 0}, 3, "", 0, false},
        {0x21, 0, {5, 1, 0}, 3, "", 0, false},
        {0x81, 0, {5, 1, 0}, 3, "", 0, false},
        {5, 0, {5, 1, 0}, 3, "", 0, false},                 // a seal with an operation
        {2, 0, {5, 1, 0}, 3, "", 0, false},                 // a first piece that counts
        {3, 0, {5, 0, 0}, 3, "", 0, false},                 // a middle without a first
        {4, 0, {5, 1, 0}, 3, "", 0, false},
        {2, 0, {5, 0, 0}, 3, "", 0, false},                 // a first without a last
    };
    uint8_t bytes[256];
    tm_wal_header_encode(&log_header, bytes);
    for (size_t i = 0; i < TM_COUNT(cases); i++) {
        size_t h = spell_record(bytes + 128, 128, cases[i].type, cases[i].n, cases[i].numbers,
                                cases[i].n_numbers, tm_slice_of(cases[i].spare, cases[i].n_spare),
                                tm_slice_str(""));
        store_file(LOG_NAME, bytes, 128 + h);
        int st = scan_log(0, UINT64_MAX);
        if ((got.n == 1) != cases[i].good) ck_abort_msg("case %zu: %zu records", i, got.n);
        ck_assert_int_eq(st, TAMIS_OK);
        ck_assert(got.end.whole == cases[i].good);
        ck_assert_int_eq(salvage_log(false), TAMIS_OK);
        ck_assert_uint_eq(got.n, cases[i].good ? 1 : 0);
        ck_assert_uint_eq(got.n_lost, cases[i].good ? 0 : 1);
    }
    // A header of the greatest length, and one above.
    static const char numbers[] = "\377\377\377\377\377\377\377\377\177" // count
                                  "\1"
                                  "\377\377\377\377\377\377\377\377\177"
                                  "\377\377\377\377\377\377\377\377\177";
    const uint64_t seq = UINT64_MAX >> 1;
    size_t h = spell_record(bytes + 128, 128, 0x11, 0, &seq, 1, tm_slice_of(numbers, 28),
                            tm_slice_str(""));
    ck_assert_uint_eq(h, 52);
    store_file(LOG_NAME, bytes, 128 + h);
    scan_ok();
    ck_assert_uint_eq(got.n, 1);
    bytes[128] = 65;
    store_file(LOG_NAME, bytes, sizeof bytes);
    scan_log(0, UINT64_MAX);
    ck_assert_uint_eq(got.n, 0);
}
END_TEST

START_TEST(a_payload_above_the_limit)
{
    for (size_t over = 0; over < 2; over++) {
        size_t n = MIB + over;
        uint8_t *bytes = malloc(128 + 64 + n), *payload = malloc(n);
        fill_payload(payload, n, 0);
        tm_wal_header_encode(&log_header, bytes);
        size_t size = 128 + spell_record(bytes + 128, 128, 1, n, (const uint64_t[]){1000, 1, 0}, 3,
                                         tm_slice_str(""), tm_slice_of(payload, n));
        store_file(LOG_NAME, bytes, size);
        scan_ok();
        ck_assert_uint_eq(got.n, over ? 0 : 1);
        free(payload);
        free(bytes);
    }
}
END_TEST

// Headers that are right, each with a payload of a mebibyte that is wrong, one every 18 bytes: a
// search that looked at all of these payloads would not come back.
START_TEST(hostile_headers_cost_no_more_than_their_bytes)
{
    size_t n = 4 * MIB;
    uint8_t *bytes = calloc(1, n + 64);
    tm_wal_header_encode(&log_header, bytes);
    size_t h = 0;
    for (size_t at = 128; at + 64 < n; at += h) {
        const uint64_t numbers[] = {5, 1, at};
        h = spell_record(bytes + at, at, 1, at % 5 == 0 ? 0x7ffff : MIB - 64, numbers, 3,
                         tm_slice_str(""), tm_slice_str(""));
    }
    store_file(LOG_NAME, bytes, n);
    scan_ok();
    ck_assert_uint_eq(got.n, 0);
    ck_assert_int_eq(salvage_log(false), TAMIS_OK);
    ck_assert_uint_eq(got.n, 0);
    // Nearly headers, at every offset.
    memset(bytes + 128, 0x20, n - 128);
    for (size_t at = 129; at < n; at += 2) bytes[at] = 0x11;
    store_file(LOG_NAME, bytes, n);
    scan_ok();
    ck_assert_uint_eq(got.n, 0);
    ck_assert_uint_eq(got.end.cut_bytes, n - 128);
    free(bytes);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wal_damage");
    TCase *tc = tcase_create("damage");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, every_bit_of_a_sealed_log);
    tcase_add_test(tc, every_bit_of_a_log_that_nobody_vouches_for);
    tcase_add_test(tc, every_bit_of_the_unused_room);
    tcase_add_test(tc, one_bit_of_a_larger_record);
    tcase_add_test(tc, a_lost_sector_may_look_like_one_bit);
    tcase_add_test(tc, one_bit_of_a_record_that_is_cut);
    tcase_add_test(tc, a_payload_above_the_limit);
    tcase_add_test(tc, cut_at_every_length);
    tcase_add_test(tc, zeros_from_every_offset);
    tcase_add_test(tc, a_large_payload_cut_between_its_pieces);
    tcase_add_test(tc, noise_in_the_last_record_is_a_tear);
    tcase_add_test(tc, a_hole_is_judged_by_what_stands_behind);
    tcase_add_test(tc, a_header_alone_is_testimony);
    tcase_add_test(tc, testimony_at_every_place_of_the_window);
    tcase_add_test(tc, a_record_within_a_payload_is_none);
    tcase_add_test(tc, a_hole_of_pages_in_a_long_log);
    tcase_add_test(tc, records_of_another_file_are_none);
    tcase_add_test(tc, records_of_another_place_are_none);
    tcase_add_test(tc, pieces_of_two_appends_are_not_mixed);
    tcase_add_test(tc, records_that_contradict_themselves);
    tcase_add_test(tc, hostile_headers_cost_no_more_than_their_bytes);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
