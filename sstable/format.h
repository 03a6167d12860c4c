// SPDX-License-Identifier: BSD-2-Clause
//
// format.h - the fixed parts of a table file as C: header, frames, index values, properties,
// footer. docs/format.md, section Tables, is the definition; this file is its translation.
//
//   header 64 | frame frame ... | range? | properties | top level | footer 128
//   frame = 24 bytes (checksum, kind, compression, lengths, entries) and the stored payload
//
// INVARIANTS
//  F1  Nothing that a decoder here gave out points or reaches outside the file: places and lengths
//      are checked against the room that the caller states.
//  F2  A frame is believed only after tm_frame_verify; its header alone may be damaged.
//  F3  Encoders write exactly the stated number of bytes to memory that the caller made room for.
//
// Errors: CORRUPT with file number and offset for damage, UNSUPPORTED for a version or a required
// feature that this library does not know, naming it.
#ifndef TM_FORMAT_H
#define TM_FORMAT_H

#include "base/coding.h"

#define TM_TABLE_HEADER_BYTES 64u
#define TM_TABLE_FOOTER_BYTES 128u
#define TM_FRAME_BYTES 24u
#define TM_TABLE_MAGIC "tamisSST"
#define TM_TABLE_END_MAGIC "tamisEND"
#define TM_TABLE_MAJOR 1u
#define TM_TABLE_MINOR 0u

// Limits. A block holds at most one value of the greatest length besides small ones.
#define TM_MAX_KEY_BYTES 65535u
#define TM_MAX_VALUE_BYTES ((uint32_t)1 << 30)
#define TM_MAX_BLOCK_RAW (((uint32_t)1 << 30) + 128u * 1024u)

// Required features: what a reader must know to read the entries.
#define TM_TABLE_HAS_RANGE_DELETES ((uint64_t)1 << 0)
#define TM_TABLE_HAS_MERGES ((uint64_t)1 << 1)
#define TM_TABLE_HAS_EXPIRY ((uint64_t)1 << 2)
#define TM_TABLE_HAS_SEPARATED_VALUES ((uint64_t)1 << 3) // not read by this version
#define TM_TABLE_HAS_TWO_LEVEL_INDEX ((uint64_t)1 << 4)  // not read by this version
#define TM_TABLE_KNOWN_FEATURES                                                                    \
    (TM_TABLE_HAS_RANGE_DELETES | TM_TABLE_HAS_MERGES | TM_TABLE_HAS_EXPIRY)

// UNSUPPORTED if required has a bit that this library does not read; the message names it.
int tm_table_features_check(uint64_t required, uint64_t file_number, uint64_t offset,
                            tamis_error *err) TM_CHECK_RESULT;

// ---- Header ------------------------------------------------------------------------------------

typedef struct tm_table_header {
    uint64_t required, optional; // those known before the first entry; the footer has them all
    uint8_t id[16];
} tm_table_header;

void tm_table_header_encode(const tm_table_header *h, uint8_t out[TM_TABLE_HEADER_BYTES]);
int tm_table_header_decode(tm_table_header *h, const uint8_t bytes[TM_TABLE_HEADER_BYTES],
                           uint64_t file_number, tamis_error *err) TM_CHECK_RESULT;

// ---- Frames ------------------------------------------------------------------------------------

typedef enum tm_block_kind {
    TM_BLOCK_DATA = 0xD1,
    TM_BLOCK_INDEX = 0xD2,
    TM_BLOCK_FILTER = 0xD3,
    TM_BLOCK_TOP = 0xD4,
    TM_BLOCK_RANGE = 0xD5,
    TM_BLOCK_PROPERTIES = 0xD6
} tm_block_kind;

const char *tm_block_kind_name(uint8_t kind); // "data", ...; "unknown"

enum { TM_STORED_RAW = 0, TM_STORED_LZ4 = 1 };

typedef struct tm_frame {
    uint64_t checksum;
    uint8_t kind;        // tm_block_kind
    uint8_t compression; // TM_STORED_*
    uint32_t stored;     // bytes of the payload in the file; equals raw where not compressed
    uint32_t raw;        // bytes before compression
    uint32_t entries;
} tm_frame;

static inline uint64_t tm_frame_length(const tm_frame *f) // in the file
{
    return (uint64_t)TM_FRAME_BYTES + f->stored;
}

// Fills the 24 bytes at frame for the payload that stands right behind them. kind, compression,
// stored, raw and entries are read from *f; its checksum is computed and set.
void tm_frame_encode(tm_frame *f, uint8_t *frame, const uint8_t id[16], uint64_t offset);

// Reads the 24 bytes at the file offset offset. room: bytes from there to the end of what the frame
// may occupy (at least 24). Checks kinds, zero field, lengths against room, the bounds on raw.
int tm_frame_decode(tm_frame *f, const uint8_t bytes[TM_FRAME_BYTES], uint64_t room,
                    uint64_t file_number, uint64_t offset, tamis_error *err) TM_CHECK_RESULT;

// bytes: the frame's 24 bytes and, right behind them, its f->stored bytes of payload, as they stand
// in the file at offset. CORRUPT if the checksum does not match this table and place.
int tm_frame_verify(const tm_frame *f, const uint8_t *bytes, const uint8_t id[16],
                    uint64_t file_number, uint64_t offset, tamis_error *err) TM_CHECK_RESULT;

// CORRUPT unless the (verified) frame is of the kind that the reader came for.
int tm_frame_expect(const tm_frame *f, tm_block_kind kind, uint64_t file_number, uint64_t offset,
                    tamis_error *err) TM_CHECK_RESULT;

// ---- Values of index entries and of the top level ----------------------------------------------

typedef struct tm_index_value { // of a data block, in its partition's index
    uint64_t offset;            // of its frame, less the partition's data_offset
    uint32_t length;            // with the frame
} tm_index_value;

typedef struct tm_top_value { // of a partition, in the top level
    uint64_t index_offset;    // of the index frame
    uint32_t index_length;    // with the frame
    // With the frame, which ends where the index frame begins; 0: no filter
    uint32_t filter_length;
    uint64_t data_offset;     // of the partition's first data frame
    uint64_t entries;         // in the partition
} tm_top_value;

#define TM_INDEX_VALUE_MAX 15
#define TM_TOP_VALUE_MAX 40
uint8_t *tm_index_value_encode(const tm_index_value *v, uint8_t *out); // returns behind the last
uint8_t *tm_top_value_encode(const tm_top_value *v, uint8_t *out);
// false: does not parse, or reaches outside. limit: bytes of the partition's data area, from its
// data_offset to its filter (or index) frame.
bool tm_index_value_decode(tm_index_value *v, tm_slice bytes, uint64_t limit) TM_CHECK_RESULT;
// tail_offset: where the partitions end.
bool tm_top_value_decode(tm_top_value *v, tm_slice bytes, uint64_t tail_offset) TM_CHECK_RESULT;
// Where the data area of the partition ends: at its filter, if any, else at its index.
static inline uint64_t tm_top_value_data_end(const tm_top_value *v)
{
    return v->index_offset - v->filter_length;
}

// ---- Properties --------------------------------------------------------------------------------

typedef enum tm_property_type {
    TM_PROPERTY_NUMBER, // a varint
    TM_PROPERTY_TEXT,   // UTF-8
    TM_PROPERTY_BYTES   // a key, or a name that this version does not know
} tm_property_type;

tm_property_type tm_property_type_of(tm_slice name);

// Appended in ascending order of the names; the caller's duty.
int tm_properties_put(tm_buf *out, const char *name, tm_slice value) TM_CHECK_RESULT;
int tm_properties_put_number(tm_buf *out, const char *name, uint64_t value) TM_CHECK_RESULT;

// Walks: start with tm_cursor_of(raw). true: *name and *value are set. false: the end, or c->bad.
bool tm_properties_next(tm_cursor *c, tm_slice *name, tm_slice *value);
// false: not there, or the block is damaged before it.
bool tm_properties_find(tm_slice raw, const char *name, tm_slice *value);
bool tm_properties_find_number(tm_slice raw, const char *name, uint64_t *value);
// Everything parses, names strictly ascending, count pairs in all. CORRUPT at offset otherwise.
int tm_properties_check(tm_slice raw, uint32_t count, uint64_t file_number, uint64_t offset,
                        tamis_error *err) TM_CHECK_RESULT;

// ---- Footer ------------------------------------------------------------------------------------

#define TM_FOOTER_BYTEWISE 1u // keys are in bytewise order: heads and prefixes are there
#define TM_FOOTER_FILTERS 2u  // partitions have filters

typedef struct tm_footer {
    uint8_t id[16];
    uint64_t top_offset;
    uint32_t top_length, partitions;
    uint64_t properties_offset;
    uint32_t properties_length;
    uint64_t range_offset; // 0, 0, 0: none
    uint32_t range_length, fragments;
    uint64_t hash_seed;
    uint64_t entries;
    uint64_t file_bytes;
    uint32_t flags; // TM_FOOTER_*
    uint64_t required;
} tm_footer;

void tm_footer_encode(const tm_footer *f, uint8_t out[TM_TABLE_FOOTER_BYTES]);
// file_bytes: the file's true size. Checks magic, checksum, version, features, and that range
// block, properties, top level and footer follow each other without gaps behind the header.
int tm_footer_decode(tm_footer *f, const uint8_t bytes[TM_TABLE_FOOTER_BYTES], uint64_t file_bytes,
                     uint64_t file_number, tamis_error *err) TM_CHECK_RESULT;
// Where the partitions end and the tail begins.
static inline uint64_t tm_footer_tail(const tm_footer *f)
{
    return f->range_length != 0 ? f->range_offset : f->properties_offset;
}

#endif // TM_FORMAT_H
