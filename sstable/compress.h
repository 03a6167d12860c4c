// SPDX-License-Identifier: BSD-2-Clause
//
// compress.h - the compression of blocks; the only user of LZ4.
//
// Threads: a compressor belongs to one thread at a time; tm_decompress may run anywhere.
#ifndef TM_COMPRESS_H
#define TM_COMPRESS_H

#include "sstable/format.h"

typedef struct tm_compressor { // all-zero before init
    void *state;               // LZ4's hash table, kept from block to block
} tm_compressor;

int tm_compressor_init(tm_compressor *c, tamis_error *err) TM_CHECK_RESULT;
void tm_compressor_deinit(tm_compressor *c);

// Compresses raw into out, which has room for raw_len bytes. Returns the stored length, or 0 where
// that would not save at least an eighth (out is then undefined and the block is stored as it is).
uint32_t tm_compress(tm_compressor *c, const uint8_t *raw, uint32_t raw_len, uint8_t *out);

// Gives the f->raw bytes of a verified frame in out, from its payload: decompressed, or copied.
// CORRUPT where the payload is not exactly that.
int tm_decompress(const tm_frame *f, const uint8_t *payload, uint8_t *out, uint64_t file_number,
                  uint64_t offset, tamis_error *err) TM_CHECK_RESULT;

#endif // TM_COMPRESS_H
