// SPDX-License-Identifier: BSD-2-Clause
//
// A good table, changed as the input says, its checksums made right again: what stands behind the
// checksums must bear any content. Input: records of 4 bytes (offset, 2 bytes; the new byte; how:
// even = replace, odd = add).
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "sstable/format.h"
#include "sstable/table.h"
#include "sstable/table_writer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ENTRIES = 60, NUMBER = 3 };

static tamis_vfs *vfs;
static tamis_dir *dir;
static tm_table_meta meta;
static uint8_t *good, *changed;
static size_t length;

#define MUST(x)                                                                                    \
    do {                                                                                           \
        if (!(x)) abort();                                                                         \
    } while (0)

static tm_slice key_of(uint32_t i, char key[16])
{
    memcpy(key, "fuzz000000", 10);
    key[6] = (char)('0' + i / 10 % 10);
    key[7] = (char)('0' + i % 10);
    return tm_slice_of(key, 8 + i % 3);
}

static void make_table(void)
{
    tm_table_writer_options o = {.order = tm_order_bytewise(),
                                 .block_bytes = 160,
                                 .partition_bytes = 128,
                                 .index_bytes = 100,
                                 .compression = TM_COMPRESSION_LZ4,
                                 .filter = TM_FILTER_BLOCKED,
                                 .filter_millibits = 10000,
                                 .hash_seed = 1};
    tm_table_writer *w;
    char key[16];
    MUST(tamis_vfs_memory(&vfs, NULL) == TAMIS_OK);
    MUST(tm_dir_open(vfs, "/f", TAMIS_DIR_CREATE, &dir, NULL, NULL) == TAMIS_OK);
    MUST(tm_table_writer_create(dir, NUMBER, &o, &w, NULL) == TAMIS_OK);
    for (uint32_t i = 0; i < ENTRIES; i++) {
        tm_slice value = tm_slice_of("valuevaluevaluevaluevalue", i % 26);
        MUST(tm_table_writer_add(w, key_of(i, key), tm_trailer(i + 1, TM_KIND_PUT), value, NULL) ==
             TAMIS_OK);
    }
    MUST(tm_table_writer_add_range(w, tm_slice_str("a"), tm_slice_str("c"), 9, NULL) == TAMIS_OK);
    tm_table_meta_init(&meta);
    MUST(tm_table_writer_finish(w, &meta, NULL) == TAMIS_OK);
    tm_table_writer_destroy(w);
    length = (size_t)meta.file_bytes;
    good = malloc(length);
    changed = malloc(length);
    MUST(good != NULL && changed != NULL);
    tm_file f;
    MUST(tm_file_open(dir, "000003.sst", NUMBER, TAMIS_FILE_READ, &f, NULL) == TAMIS_OK);
    MUST(tm_file_read(&f, 0, good, length, NULL) == TAMIS_OK);
    MUST(tm_file_close(&f, NULL) == TAMIS_OK);
}

// Checksums of the frames, as far as they can be found, and of the footer.
static void seal(void)
{
    uint64_t end = length - TM_TABLE_FOOTER_BYTES;
    for (uint64_t at = TM_TABLE_HEADER_BYTES; end - at >= TM_FRAME_BYTES;) {
        tm_frame f;
        if (tm_frame_decode(&f, changed + at, end - at, NUMBER, at, NULL) != TAMIS_OK) break;
        tm_frame_encode(&f, changed + at, meta.id, at);
        at += tm_frame_length(&f);
    }
    tm_put64(changed + length - 8, tm_checksum(changed + end, TM_TABLE_FOOTER_BYTES - 8));
}

static void walk(tm_table *t)
{
    tm_read_counts counts = {0};
    tm_table_iter_options o = {.counts = &counts};
    tm_iter *it;
    char key[16];
    size_t steps = 0, sum = 0;
    if (tm_table_iter_create(t, &o, &it, NULL) != TAMIS_OK) return;
    // As long as blocks claim to hold entries; a block holds no more than it has bytes.
    for (it->ops->first(it); it->valid && steps < 100000; it->ops->next(it), steps++) {
        for (size_t i = 0; i < it->key.len; i++) sum += it->key.data[i];
        for (size_t i = 0; i < it->value.len; i += 64) sum += it->value.data[i];
    }
    for (it->ops->last(it); it->valid && steps < 200000; it->ops->prev(it), steps++) {}
    it->ops->seek(it, key_of((uint32_t)sum % ENTRIES, key), 5);
    it->ops->seek_before(it, key_of((uint32_t)sum % ENTRIES, key), 5);
    tm_iter_destroy(it);
}

static void look_up(tm_table *t)
{
    tm_read_counts counts = {0};
    for (uint32_t i = 0; i < ENTRIES; i++) {
        tm_read_ctx rc = {.mode = TM_READ_PINNED, .counts = &counts};
        char key[16];
        tm_slice k = key_of(i, key);
        tm_buf scratch = {0};
        tm_probe p;
        tm_found found;
        uint64_t hash, cover;
        MUST(tm_order_hash(&(tm_order){.bytewise = true}, k, 1, &scratch, &hash) == TAMIS_OK);
        if (tm_table_range_cover(t, &rc, k, 100, &cover) == TAMIS_OK &&
            tm_table_route(t, &rc, k, UINT64_MAX, hash, &p) == TAMIS_OK &&
            tm_table_probe(&p, &rc) &&
            tm_table_find(&p, &rc, k, UINT64_MAX, &found) == TAMIS_OK && found.value.len > 0) {
            volatile uint8_t last = found.value.data[found.value.len - 1];
            (void)last;
        }
        tm_read_ctx_reset(&rc);
    }
}

static void ignore_property(void *ctx, const char *name, tm_slice value)
{
    *(size_t *)ctx += strlen(name) + value.len;
}

static void ignore_finding(void *ctx, const tamis_error *e)
{
    *(size_t *)ctx += (size_t)e->code;
}

static void read_all(void)
{
    tm_cache *cache;
    tm_table_cache *files;
    tm_table *t;
    size_t sum = 0;
    uint64_t offset, entries;
    tm_table_filter_info info;
    tm_order order = tm_order_bytewise();
    MUST(tm_cache_create(1 << 20, &cache, NULL) == TAMIS_OK);
    MUST(tm_table_cache_create(dir, 2, &files, NULL) == TAMIS_OK);
    tm_table_env env = {.vfs = vfs, .cache = cache, .files = files};
    MUST(tm_table_open(&env, &meta, &order, false, &t, NULL) == TAMIS_OK);
    look_up(t);
    walk(t);
    TM_IGNORE(tm_table_approximate_offset(t, tm_slice_str("fuzz3"), &offset, &entries, NULL));
    TM_IGNORE(tm_table_filter(t, &info, NULL));
    TM_IGNORE(tm_table_properties(t, ignore_property, &sum, NULL));
    TM_IGNORE(tm_table_verify(t, ignore_finding, NULL, &sum, NULL, NULL));
    tm_table_close(t);
    tm_cache_destroy(cache);
    tm_table_cache_destroy(files);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (good == NULL) make_table();
    memcpy(changed, good, length);
    for (size_t i = 0; size - i >= 4; i += 4) {
        size_t at = tm_get16(data + i) % length;
        changed[at] = (uint8_t)(data[i + 3] % 2 == 0 ? data[i + 2] : changed[at] + data[i + 2]);
    }
    seal();
    tm_file f;
    MUST(tm_file_open(dir, "000003.sst", NUMBER, TAMIS_FILE_WRITE, &f, NULL) == TAMIS_OK);
    MUST(tm_file_write(&f, 0, changed, length, NULL) == TAMIS_OK);
    MUST(tm_file_close(&f, NULL) == TAMIS_OK);
    read_all();
    return 0;
}
