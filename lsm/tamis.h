// SPDX-License-Identifier: BSD-2-Clause
//
// tamis.h - the public interface of tamis, an embedded, ordered key-value store.
//
// RULES THAT HOLD FOR EVERY FUNCTION
//  Status    Functions that can fail return int: TAMIS_OK (0) or a negative tamis_status.
//            TAMIS_NOTFOUND is an answer, not an error, and leaves *err alone.
//  Errors    The last argument err may be NULL. On failure it is filled in place.
//  Bytes     Keys and values are (pointer, length): any bytes, empty allowed, NULL allowed where
//            the length is 0. Keys have up to TAMIS_MAX_KEY bytes, values up to TAMIS_MAX_VALUE.
//  Ownership Inputs are copied before the call returns. What a create or open gives, the free or
//            close of the same name takes; both accept NULL. Pointers from an iterator live until
//            its next movement, those of a tamis_value until its release.
//  Options   An options argument may be NULL (all defaults). Every options struct starts with its
//            own size; 0 or NULL in a field is the default. New fields are only appended.
//  Threads   tamis_db, tamis_cf and tamis_snapshot may be used by any threads at once. tamis_iter,
//            tamis_batch and tamis_value belong to one thread at a time, and may be handed on.
//            Callbacks may run on background threads and must not call back into the store.
//  Process   One writing process a folder. No signal handlers, no atexit, nothing printed. After
//            fork() a child must not use inherited handles: they answer TAMIS_MISUSE there.
//  Lifetime  tamis_close refuses with TAMIS_BUSY while iterators, snapshots or values live, and
//            counts them in the message; with TAMIS_CLOSE_DETACH they stay valid objects that
//            answer TAMIS_CLOSED (values keep their bytes). Never use after free.
#ifndef TAMIS_H
#define TAMIS_H

#include "tamis_types.h"
#include "tamis_vfs.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- Version -----------------------------------------------------------------------------------

#define TAMIS_VERSION_MAJOR 0
#define TAMIS_VERSION_MINOR 1
#define TAMIS_VERSION_PATCH 0
// major * 1000000 + minor * 1000 + patch of the library that is linked.
TAMIS_API uint32_t tamis_version(void);
// "0.1.0", followed in brackets by the compiler and the libraries it was built with. Static.
TAMIS_API const char *tamis_version_string(void);
// 1 if the library was built with the feature: "lz4".
TAMIS_API int tamis_has_feature(const char *name);
// The newest format level this library writes and reads.
TAMIS_API uint32_t tamis_format_version(void);

// ---- Limits ------------------------------------------------------------------------------------

#define TAMIS_MAX_KEY   ((size_t)65535)   // bytes of a key
#define TAMIS_MAX_VALUE ((size_t)1 << 30) // bytes of a value
#define TAMIS_MAX_BATCH ((size_t)2 << 30) // bytes of a batch

// ---- Handles and small values ------------------------------------------------------------------

typedef struct tamis_db tamis_db;             // an open store
typedef struct tamis_cf tamis_cf;             // a column family; NULL is the default one
typedef struct tamis_snapshot tamis_snapshot; // a frozen view
typedef struct tamis_iter tamis_iter;         // an ordered cursor
typedef struct tamis_batch tamis_batch;       // writes applied all or not at all

typedef struct tamis_value { // a pinned value: points into a block or memtable without a copy
    const void *data;
    size_t len;
    void *pin, *owner; // private
} tamis_value;

// [start, limit); limit.data NULL or limit.len 0 is "to the end".
typedef struct tamis_range {
    tamis_slice start, limit;
} tamis_range;

// ---- Plug-ins ----------------------------------------------------------------------------------

// Structs start with their size. Strings and contexts must outlive the store; the structs are
// copied. Callbacks run on any thread, several at once, and must not call back into the store.

#define TAMIS_MERGER_ASSOCIATIVE 1u // operands are values: merging two of them makes one of them

// Makes one value out of an older value and the operands written to the key since.
typedef struct tamis_merger {
    size_t size;
    const char *name; // kept in the store and compared at open; up to 255 bytes
    void *ctx;
    uint32_t flags; // TAMIS_MERGER_ASSOCIATIVE or 0
    // base is NULL where the key had no value. operands: n of them, oldest first. Calls emit once
    // with the result (copied) and returns TAMIS_OK; any other status is the answer for this key
    // alone, and its entries stay as they are.
    int (*merge)(void *ctx, const void *key, size_t klen, const tamis_slice *base,
                 const tamis_slice *operands, size_t n,
                 int (*emit)(void *sink, const void *value, size_t vlen), void *sink);
} tamis_merger;
// Ready-made. Their names, "tamis.add" and "tamis.append", are known to every store: a family made
// with one of them needs not be given it again.
// Adds 64-bit little-endian integers, wrapping; no value counts as 0. INVALID for other lengths.
TAMIS_API const tamis_merger *tamis_merger_add(void);
TAMIS_API const tamis_merger *tamis_merger_append(void); // joins the bytes

typedef enum tamis_verdict { TAMIS_KEEP = 0, TAMIS_DROP = 1, TAMIS_REPLACE = 2 } tamis_verdict;

// Asked by compactions and flushes about the value of each key, once each time it is rewritten, if
// it is the newest of its key among what is rewritten, newer than every snapshot, and no
// unfinished merge. Iterators without a snapshot may see the key either way.
typedef struct tamis_compaction_filter {
    size_t size;
    const char *name; // for messages
    void *ctx;
    // Returns a tamis_verdict: keep; drop (as if deleted); or replace by what it handed to replace
    // (copied). Anything else fails the compaction, which keeps everything.
    int (*filter)(void *ctx, int level, const void *key, size_t klen, const void *val, size_t vlen,
                  int (*replace)(void *sink, const void *value, size_t vlen), void *sink);
} tamis_compaction_filter;

// ---- Events ------------------------------------------------------------------------------------

typedef enum tamis_event_kind {
    TAMIS_EVENT_FLUSH_BEGIN = 1,
    TAMIS_EVENT_FLUSH_END,
    TAMIS_EVENT_COMPACT_BEGIN,
    TAMIS_EVENT_COMPACT_END,
    TAMIS_EVENT_TABLE_CREATED,
    TAMIS_EVENT_TABLE_DELETED,
    TAMIS_EVENT_STALL_BEGIN,
    TAMIS_EVENT_STALL_END,
    TAMIS_EVENT_BACKGROUND_ERROR,
    TAMIS_EVENT_RECOVERED,
    TAMIS_EVENT_LOG // a line that the LOG file got too
} tamis_event_kind;

typedef struct tamis_event { // fields that a kind does not use are 0
    size_t size;
    int32_t kind;     // tamis_event_kind
    int32_t level;    // output level; for TAMIS_EVENT_LOG the severity: 0 info, 1 warning, 2 error
    uint64_t wall_ms; // when, milliseconds since 1970
    uint64_t job;     // number of the flush or compaction
    uint64_t file_number;
    uint64_t bytes_in, bytes_out;
    uint64_t duration_us;
    const char *text; // one line for people; valid during the callback
} tamis_event;

// ---- Options -----------------------------------------------------------------------------------

typedef enum tamis_sync {
    TAMIS_SYNC_DEFAULT = 0,  // write options: the store's; store options: TAMIS_SYNC_ALWAYS
    TAMIS_SYNC_ALWAYS = 1,   // durable when the call returns
    TAMIS_SYNC_INTERVAL = 2, // durable after sync_interval_ms at most
    TAMIS_SYNC_NEVER = 3 // survives the process; after power loss a prefix of the commits is there
} tamis_sync;

typedef enum tamis_open_flags {
    TAMIS_OPEN_EXISTING = 1,      // fail with NOTFOUND rather than create
    TAMIS_OPEN_NEW = 2,           // fail with EXISTS rather than open
    TAMIS_OPEN_READONLY = 4,      // change no byte; LOCKED beside a writer, fine beside readers
    TAMIS_OPEN_NO_BACKGROUND = 16 // no threads: call tamis_step (tests, single-threaded hosts)
} tamis_open_flags;

// One column family. Zero after size = as the store's defaults.
typedef struct tamis_cf_options {
    size_t size;
    const char *extra; // options of scope "family": "filter=bloom; block_size=16KiB; ttl=7d";
                       // copied, and kept in the store until others are given
    const tamis_comparator *comparator; // NULL = bytewise; fixed when the family is created
    const tamis_merger *merger;         // NULL = none, or as it was
    const tamis_compaction_filter *compaction_filter;
} tamis_cf_options;

typedef struct tamis_family { // what a family of this name is given at open
    const char *name;
    tamis_cf_options options;
} tamis_family;

// Whole store. Zero after size = good defaults. Everything finer is a named option in "extra";
// tamis_option_at lists them.
typedef struct tamis_options {
    size_t size;
    uint32_t flags;              // tamis_open_flags
    int32_t sync;                // tamis_sync for writes that do not say; default ALWAYS
    uint64_t memory_budget;      // bytes for memtables, cache, filters, indexes, buffers together;
                                 // default 64 MiB
    uint32_t background_threads; // flush and compaction; default: processors, 2 to 4
    uint32_t sync_interval_ms;   // for TAMIS_SYNC_INTERVAL; default 100
    const char *extra;           // "filter=blocked; filter_bits=10; block_size=4KiB"; copied
    const tamis_comparator *comparator; // NULL = bytewise; copied
    const tamis_vfs *vfs;               // NULL = tamis_vfs_default(); must outlive the store
    void (*on_event)(void *ctx, const tamis_event *event);
    void *on_event_ctx;
    const tamis_merger *merger;                       // of the default family
    const tamis_compaction_filter *compaction_filter; // of the default family
    // Plug-ins of other families that are in the store already: needed where one has a comparator
    // of its own (it may have writes in the log), else a convenience: background work uses them
    // before tamis_cf_open is called. Names that are not in the store are passed over.
    const tamis_family *families;
    size_t family_count;
} tamis_options;
// An options struct with every field at its default: tamis_options o = tamis_options_init();
static inline tamis_options tamis_options_init(void)
{
    tamis_options o = {
        sizeof(tamis_options), 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0};
    return o;
}

typedef struct tamis_read_options {
    size_t size;
    const tamis_snapshot *snapshot; // NULL = the newest committed state
    // Iterators: keys in [lower, upper) only, and/or keys that start with prefix; data NULL = none.
    tamis_slice lower, upper, prefix; // copied
    uint32_t no_cache_fill;           // 1: do not let this read push hot blocks out of the cache
    uint32_t cached_only;             // 1: no I/O; BUSY where a file would have to be read
    const tamis_batch *overlay; // an indexed batch: read as if it were committed on top already
} tamis_read_options;

typedef struct tamis_write_options {
    size_t size;
    int32_t sync;      // tamis_sync; 0 = the store's setting
    uint32_t no_stall; // 1: answer BUSY instead of waiting for flushes and compaction
    uint64_t ttl_ms;   // tamis_put: the value is gone after so long; 0 = the family's option "ttl"
} tamis_write_options;
#define TAMIS_TTL_NEVER UINT64_MAX // the value stays, whatever the family's option says

typedef struct tamis_option_info { // one row of the table behind "extra"; strings are static
    size_t size;
    const char *name;
    const char *type;            // "bool", "int", "size", "duration", "float", or "enum:a|b|c"
    const char *def, *min, *max; // min and max are "" where they make no sense
    const char *doc;
    const char *scope; // "store", or "family": may differ from family to family
} tamis_option_info;

// Row i of the option table; NOTFOUND past the end. Set out->size first.
TAMIS_API int tamis_option_at(size_t i, tamis_option_info *out);
// The value in force for a family, as text. *len gets its length; TOOLARGE if it does not fit in
// cap bytes with its NUL. NOTFOUND with the nearest name in the message for an unknown name.
TAMIS_API int tamis_get_option(tamis_db *db, tamis_cf *cf, const char *name, char *buf, size_t cap,
                               size_t *len, tamis_error *err);

// ---- Store -------------------------------------------------------------------------------------

#define TAMIS_CLOSE_DETACH 1u // close although children live; they then answer TAMIS_CLOSED
#define TAMIS_CLOSE_FLUSH  2u // flush memtables first, so that the next open replays nothing

// Opens the store in the folder path, or creates it (the parent must exist). *out is NULL on
// failure, and nothing is left behind. A folder that holds files but no store is refused. Errors:
// INVALID (an option, named), NOTFOUND and EXISTS (by flags), LOCKED, CORRUPT, UNSUPPORTED (newer
// format), IO, NOSPACE, NOMEM.
TAMIS_API int tamis_open(const char *path, const tamis_options *opt, tamis_db **out,
                         tamis_error *err);
// Syncs the log in every sync mode, stops background work, and frees db. BUSY (and nothing is
// done) while children live and flags lack TAMIS_CLOSE_DETACH. After any other failure the store
// is closed and freed nevertheless; the failure says what may not be durable.
TAMIS_API int tamis_close(tamis_db *db, uint32_t flags, tamis_error *err);
// Deletes the files of the store in path, and the folder if it is empty then. No other file is
// touched. NOTFOUND if there is no store, LOCKED if it is open. Uses opt->vfs only.
TAMIS_API int tamis_destroy(const char *path, const tamis_options *opt, tamis_error *err);

// ---- Column families ---------------------------------------------------------------------------

// A family is a space of keys of its own, with its own order, options, memtable and levels; log,
// sequence numbers, snapshots and memory budget are the store's. "default" is always there, and is
// what NULL means. Names have 1 to 255 bytes.

// A handle of the family: give it back with tamis_cf_close. With create, a family that is not there
// is made, durably; else NOTFOUND. opt (may be NULL) for a family that is there: another comparator
// or merger than it has is refused by name (INVALID), a first merger is taken over, a compaction
// filter is put into force, and extra (if not NULL) replaces the options that were given before.
TAMIS_API int tamis_cf_open(tamis_db *db, const char *name, const tamis_cf_options *opt,
                            uint32_t create, tamis_cf **out, tamis_error *err);
// NULL is fine. Handles may outlive tamis_close; they then answer TAMIS_CLOSED.
TAMIS_API void tamis_cf_close(tamis_cf *cf);
// Deletes a family and all it holds at one moment, durably; its space is freed when its readers are
// gone. Handles answer NOTFOUND from then on; iterators read on. INVALID for "default".
TAMIS_API int tamis_cf_drop(tamis_db *db, const char *name, tamis_error *err);
// Atomic and durable; handles stay good. EXISTS if to is there. INVALID for "default".
TAMIS_API int tamis_cf_rename(tamis_db *db, const char *from, const char *to, tamis_error *err);
// One call a family, in the order of their making. each returns 0, or another value to stop; it
// may call back into the store.
TAMIS_API int tamis_cf_list(tamis_db *db, int (*each)(void *ctx, const char *name, uint32_t id),
                            void *ctx, tamis_error *err);

// ---- Reads -------------------------------------------------------------------------------------

// Points *out at the value without copying it; give it back with tamis_value_release. NOTFOUND
// leaves *out empty.
TAMIS_API int tamis_get(tamis_db *db, tamis_cf *cf, const tamis_read_options *ro, const void *key,
                        size_t klen, tamis_value *out, tamis_error *err);
// Copies the value into buf and its length into *len, with no allocation. TOOLARGE if it has more
// than cap bytes; *len tells how many.
TAMIS_API int tamis_get_into(tamis_db *db, tamis_cf *cf, const tamis_read_options *ro,
                             const void *key, size_t klen, void *buf, size_t cap, size_t *len,
                             tamis_error *err);
// OK or NOTFOUND, without touching the value.
TAMIS_API int tamis_has(tamis_db *db, tamis_cf *cf, const tamis_read_options *ro, const void *key,
                        size_t klen, tamis_error *err);
// What memory alone can tell, with no I/O: NOTFOUND if the key is certainly absent, OK if it may
// be there. Filters that are not in memory count as "maybe".
TAMIS_API int tamis_may_contain(tamis_db *db, tamis_cf *cf, const void *key, size_t klen,
                                tamis_error *err);
// n lookups in one view of the store. statuses[i] is what tamis_get would return for keys[i];
// values[i] is to be released where it is TAMIS_OK. Returns TAMIS_OK unless the call as a whole
// failed, in which case nothing needs releasing. err gets the first failure among the keys.
TAMIS_API int tamis_multi_get(tamis_db *db, tamis_cf *cf, const tamis_read_options *ro, size_t n,
                              const tamis_slice *keys, tamis_value *values, int *statuses,
                              tamis_error *err);
TAMIS_API void tamis_value_release(tamis_value *v); // any thread; NULL and empty ones are fine

// A frozen view of the newest committed state. Costs a list entry; keeps old versions of keys (not
// files) until it is released.
TAMIS_API int tamis_snapshot_create(tamis_db *db, tamis_snapshot **out, tamis_error *err);
TAMIS_API void tamis_snapshot_release(tamis_snapshot *s);
TAMIS_API uint64_t tamis_snapshot_seq(const tamis_snapshot *s); // its sequence number

// ---- Writes ------------------------------------------------------------------------------------

// Insert or replace. Errors: TOOLARGE, NOSPACE (nothing of the write is visible, now or later),
// POISONED (an earlier sync failed), BUSY (no_stall), READONLY, IO, NOMEM. After IO from a failed
// sync the write is unknown: not visible now; after reopening there whole or not at all.
TAMIS_API int tamis_put(tamis_db *db, tamis_cf *cf, const tamis_write_options *wo, const void *key,
                        size_t klen, const void *val, size_t vlen, tamis_error *err);
// OK although the key is absent.
TAMIS_API int tamis_delete(tamis_db *db, tamis_cf *cf, const tamis_write_options *wo,
                           const void *key, size_t klen, tamis_error *err);

// Deletes every key in [start, limit) at one moment, at the cost of one write; an empty limit is
// "to the end". INVALID if start is behind limit.
TAMIS_API int tamis_delete_range(tamis_db *db, tamis_cf *cf, const tamis_write_options *wo,
                                 const void *start, size_t slen, const void *limit, size_t llen,
                                 tamis_error *err);
// Adds an operand to the key; the family's merger makes a value of it and what is below, when it is
// read or compacted. INVALID if the family has no merger. Operands do not expire: when an expiring
// value below them is gone, they are merged with none.
TAMIS_API int tamis_merge(tamis_db *db, tamis_cf *cf, const tamis_write_options *wo,
                          const void *key, size_t klen, const void *operand, size_t olen,
                          tamis_error *err);

#define TAMIS_BATCH_INDEXED 1u // can be read through: tamis_read_options.overlay

// An empty batch for db; NULL if out of memory, or if db is NULL or flags are unknown (0, or
// TAMIS_BATCH_INDEXED). An operation that fails leaves the batch as it was, and the failure is kept
// and returned by tamis_commit too. It may outlive tamis_close.
TAMIS_API tamis_batch *tamis_batch_create(tamis_db *db, uint32_t flags);
TAMIS_API void tamis_batch_free(tamis_batch *b);
TAMIS_API void tamis_batch_clear(tamis_batch *b); // empties it, keeps the memory
TAMIS_API int tamis_batch_put(tamis_batch *b, tamis_cf *cf, const void *key, size_t klen,
                              const void *val, size_t vlen);
// A put that is gone ttl_ms from now (0: never, whatever the family's option says).
TAMIS_API int tamis_batch_put_ttl(tamis_batch *b, tamis_cf *cf, const void *key, size_t klen,
                                  const void *val, size_t vlen, uint64_t ttl_ms);
TAMIS_API int tamis_batch_delete(tamis_batch *b, tamis_cf *cf, const void *key, size_t klen);
TAMIS_API int tamis_batch_delete_range(tamis_batch *b, tamis_cf *cf, const void *start, size_t slen,
                                       const void *limit, size_t llen);
TAMIS_API int tamis_batch_merge(tamis_batch *b, tamis_cf *cf, const void *key, size_t klen,
                                const void *operand, size_t olen);
TAMIS_API size_t tamis_batch_count(const tamis_batch *b); // operations in it
TAMIS_API size_t tamis_batch_bytes(const tamis_batch *b); // bytes it will add to the log
// Marks, last in first out. Rollback undoes what came after the last mark, and takes it away;
// MISUSE without one. A failure that is kept goes with what it was about.
TAMIS_API int tamis_batch_savepoint(tamis_batch *b);
TAMIS_API int tamis_batch_rollback(tamis_batch *b);
// The batch as bytes that tamis_batch_load takes, in this store or another (docs/format.md), with
// a checksum. They live until the batch is changed or freed.
TAMIS_API int tamis_batch_data(tamis_batch *b, tamis_slice *out, tamis_error *err);
// Adds the operations of a serialised batch to b, all or none. CORRUPT if the bytes are damaged.
// Families are known by id: those of the store that they were written for.
TAMIS_API int tamis_batch_load(tamis_batch *b, const void *data, size_t len, tamis_error *err);
// Applies all of b at one moment, over all families, or nothing. *seq (may be NULL) gets the
// sequence number of its last operation. The batch is unchanged and may be committed again.
TAMIS_API int tamis_commit(tamis_db *db, const tamis_write_options *wo, tamis_batch *b,
                           uint64_t *seq, tamis_error *err);

// ---- Iterators ---------------------------------------------------------------------------------

// Born not valid. After any movement, tamis_iter_valid tells whether there is an entry; when there
// is none, tamis_iter_status tells the end from an error. The view is frozen at creation.
TAMIS_API int tamis_iter_create(tamis_db *db, tamis_cf *cf, const tamis_read_options *ro,
                                tamis_iter **out, tamis_error *err);
TAMIS_API void tamis_iter_free(tamis_iter *it);
TAMIS_API int tamis_iter_valid(const tamis_iter *it); // 1: key and value may be read
TAMIS_API void tamis_iter_first(tamis_iter *it);      // first key within the bounds
TAMIS_API void tamis_iter_last(tamis_iter *it);       // last key within the bounds
TAMIS_API void tamis_iter_seek(tamis_iter *it, const void *key, size_t klen); // first key >= key
TAMIS_API void tamis_iter_seek_for_prev(tamis_iter *it, const void *key,
                                        size_t klen); // last <= key
TAMIS_API void tamis_iter_next(tamis_iter *it);       // not valid before: stays so
TAMIS_API void tamis_iter_prev(tamis_iter *it);
TAMIS_API const void *tamis_iter_key(const tamis_iter *it, size_t *len);
TAMIS_API const void *tamis_iter_value(const tamis_iter *it, size_t *len);
TAMIS_API int tamis_iter_status(const tamis_iter *it, tamis_error *err); // OK at the plain end
// Hands out the entry at hand and those behind it, up to n, and up to max_bytes of keys and values
// (0: no limit; one entry always fits), and moves behind the last: one call instead of many, for
// bindings. The bytes live until the next movement. Returns how many there are; 0 at the end.
TAMIS_API size_t tamis_iter_next_many(tamis_iter *it, size_t n, size_t max_bytes, tamis_slice *keys,
                                      tamis_slice *values);
// A new view with new options, as if it were freed and created again; not valid afterwards. On
// failure the iterator stays as it was.
TAMIS_API int tamis_iter_refresh(tamis_iter *it, const tamis_read_options *ro, tamis_error *err);

// ---- Upkeep ------------------------------------------------------------------------------------

TAMIS_API int tamis_sync_wal(tamis_db *db, tamis_error *err); // all commits so far are durable
TAMIS_API int tamis_flush(tamis_db *db, tamis_cf *cf, tamis_error *err); // memtable to table; waits
// Rewrites every table that overlaps range into the last level; NULL = everything. Waits.
TAMIS_API int tamis_compact(tamis_db *db, tamis_cf *cf, const tamis_range *range, tamis_error *err);
// Waits until no background work is due; BUSY after timeout_us (0 = no limit).
TAMIS_API int tamis_wait_idle(tamis_db *db, uint64_t timeout_us, tamis_error *err);
// TAMIS_OPEN_NO_BACKGROUND: does one unit of due work; *did_work tells whether there was any.
TAMIS_API int tamis_step(tamis_db *db, uint32_t *did_work, tamis_error *err);

typedef struct tamis_report {
    size_t size;
    uint64_t files, blocks, entries; // looked at
    uint64_t damaged;                // blocks, filters or files found damaged
    uint64_t lost_files;             // files of the store's kind that nothing names
} tamis_report;
// done and total are bytes; what names the file. Non-zero stops the work: ABORTED.
typedef int (*tamis_progress)(void *ctx, uint64_t done, uint64_t total, const char *what);
// Reads everything: all checksums, key order, every key against its filter, levels, the manifest
// against the folder. Goes on after damage; returns CORRUPT with the first of it in err. each (may
// be NULL) is called with a line for each finding.
TAMIS_API int tamis_verify(tamis_db *db, tamis_progress progress,
                           void (*each)(void *ctx, const tamis_error *finding), void *ctx,
                           tamis_report *out, tamis_error *err);

// The same for a store that is not open, whatever state it is in: also where tamis_open refuses, or
// where the comparator is not at hand (then order is not checked; a finding with code
// TAMIS_UNSUPPORTED says so, and is not counted as damage). Changes nothing. LOCKED if it is open.
TAMIS_API int tamis_verify_path(const char *path, const tamis_options *opt, tamis_progress progress,
                                void (*each)(void *ctx, const tamis_error *finding), void *ctx,
                                tamis_report *out, tamis_error *err);

// ---- Insight -----------------------------------------------------------------------------------

typedef struct tamis_memory { // bytes; the parts add up to used
    size_t size;
    uint64_t budget, used;
    uint64_t memtables, filters, indexes, data_blocks, buffers, other;
    uint64_t pinned; // part of the above that iterators and values hold
} tamis_memory;
TAMIS_API int tamis_memory_usage(tamis_db *db, tamis_memory *out, tamis_error *err);

// Does the filter earn its keep? Since open, over all tables of a level (-1 = all levels).
typedef struct tamis_filter_report {
    size_t size;
    uint64_t probes;          // filter checks
    uint64_t negatives;       // "no": reads avoided
    uint64_t true_positives;  // "maybe", and the table has an entry for the key
    uint64_t false_positives; // "maybe", and it has none
    uint64_t unavailable;     // filters that were damaged, unknown or unreadable: "maybe"
    uint64_t partitions_read; // filter partitions read from files
    uint64_t bytes_read;      // and their bytes
    uint64_t memory;          // bytes of filter partitions in memory now
    uint64_t filter_bytes;    // bytes of filters in the tables
    uint64_t keys;            // keys in these filters
    double bits_per_key;      // as built
    double expected_rate;     // false-positive rate by the formula, from the contracts
    double observed_rate;     // false_positives / (false_positives + negatives); 0 if none
} tamis_filter_report;
TAMIS_API int tamis_filter_stats(tamis_db *db, tamis_cf *cf, int level, tamis_filter_report *out,
                                 tamis_error *err);

typedef struct tamis_step_info { // one step of a read
    size_t size;
    const char
        *what; // "memtable", "immutable", "table", "range-deletes", "filter", "index", "data"
    const char *outcome; // "no", "maybe", "found", "deleted", "absent", "false-positive",
                         // "out-of-range", "read", "covered"
    int32_t level;       // -1 in memory
    int32_t cached;      // 1: no I/O
    uint64_t file_number, offset, bytes, nanos;
} tamis_step_info;
// tamis_get, told step by step: every memtable and table looked at or left out, every filter's
// verdict and whether it was right, every block and where it came from. Returns as tamis_has.
TAMIS_API int tamis_explain(tamis_db *db, tamis_cf *cf, const tamis_read_options *ro,
                            const void *key, size_t klen,
                            void (*step)(void *ctx, const tamis_step_info *s), void *ctx,
                            tamis_error *err);

// A report as JSON text: "stats", "levels", "tables", "options", "memory", "filters". *len gets
// its length; TOOLARGE if it does not fit in cap bytes with its NUL (cap 0 asks for the length).
TAMIS_API int tamis_property(tamis_db *db, tamis_cf *cf, const char *name, char *buf, size_t cap,
                             size_t *len, tamis_error *err);
// The i-th property's name and what it tells; NOTFOUND past the end.
TAMIS_API int tamis_property_at(size_t i, const char **name, const char **doc);
// One figure, cheap enough to poll. Names: tamis_counter_at.
TAMIS_API int tamis_counter(tamis_db *db, const char *name, uint64_t *out, tamis_error *err);
TAMIS_API int tamis_counter_at(size_t i, const char **name, const char **doc);
// Bytes on disk and entries in [start, limit) of each range, from indexes alone. Either array may
// be NULL.
TAMIS_API int tamis_approximate_size(tamis_db *db, tamis_cf *cf, const tamis_range *ranges,
                                     size_t n, uint64_t *bytes, uint64_t *entries,
                                     tamis_error *err);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // TAMIS_H
