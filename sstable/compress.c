// SPDX-License-Identifier: BSD-2-Clause

#include "sstable/compress.h"

#include <lz4.h>

#include "base/mem.h"

int tm_compressor_init(tm_compressor *c, tamis_error *err)
{
    c->state = tm_alloc((size_t)LZ4_sizeofState());
    return c->state != NULL ? TAMIS_OK : tm_fail_nomem(err);
}

void tm_compressor_deinit(tm_compressor *c)
{
    tm_free(c->state);
    c->state = NULL;
}

uint32_t tm_compress(tm_compressor *c, const uint8_t *raw, uint32_t raw_len, uint8_t *out)
{
    uint32_t worthwhile = raw_len - raw_len / 8;
    if (raw_len < 16 || raw_len > (uint32_t)LZ4_MAX_INPUT_SIZE) return 0;
    // With less room than the worst case, LZ4 gives up as soon as it cannot fit.
    int n = LZ4_compress_fast_extState(c->state, (const char *)raw, (char *)out, (int)raw_len,
                                       (int)worthwhile, 1);
    return n > 0 ? (uint32_t)n : 0;
}

int tm_decompress(const tm_frame *f, const uint8_t *payload, uint8_t *out, uint64_t file_number,
                  uint64_t offset, tamis_error *err)
{
    if (f->compression == TM_STORED_RAW) {
        if (f->raw > 0) memcpy(out, payload, f->raw);
        return TAMIS_OK;
    }
    int n = LZ4_decompress_safe((const char *)payload, (char *)out, (int)f->stored, (int)f->raw);
    if (n >= 0 && (uint32_t)n == f->raw) return TAMIS_OK;
    return tm_fail_corrupt(
        err, file_number, offset, "%06llu.sst: %s block at offset %llu cannot be decompressed",
        (unsigned long long)file_number, tm_block_kind_name(f->kind), (unsigned long long)offset);
}
