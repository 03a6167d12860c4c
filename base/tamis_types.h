// SPDX-License-Identifier: BSD-2-Clause
//
// tamis_types.h - the plain types that every public header of tamis shares: status codes, the
// error detail, borrowed bytes, and the comparator. Included by tamis.h, tamis_vfs.h and
// tamis_filter.h; applications include one of those.
#ifndef TAMIS_TYPES_H
#define TAMIS_TYPES_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TAMIS_API          __attribute__((visibility("default")))
#define TAMIS_CHECK_RESULT __attribute__((warn_unused_result))
#else
#define TAMIS_API
#define TAMIS_CHECK_RESULT
#endif

#ifdef __cplusplus
extern "C" {
#endif

// ---- Status and errors -------------------------------------------------------------------------

// Every function that can fail returns one of these as an int. The values are frozen: new ones are
// only added. NOTFOUND is an answer, not an error, and leaves the tamis_error alone.
typedef enum tamis_status {
    TAMIS_OK = 0,
    TAMIS_NOTFOUND = -1,     // the key, file, option or property is not there
    TAMIS_INVALID = -2,      // an argument or option is out of range; the message names it
    TAMIS_MISUSE = -3,       // wrong state: a closed handle, an iterator not valid, a child of fork
    TAMIS_NOMEM = -4,        // an allocation failed; nothing was changed
    TAMIS_IO = -5,           // the operating system reported an error: see tamis_error.sys
    TAMIS_NOSPACE = -6,      // disk or quota full; clears itself when there is room again
    TAMIS_CORRUPT = -7,      // damaged data: file and offset are in tamis_error
    TAMIS_LOCKED = -8,       // another process or handle has this folder open
    TAMIS_BUSY = -9,         // would have to wait, or children are still alive
    TAMIS_READONLY = -12,    // a write on a read-only store
    TAMIS_CLOSED = -13,      // the store was closed with TAMIS_CLOSE_DETACH
    TAMIS_EXISTS = -14,      // already there and must not be
    TAMIS_UNSUPPORTED = -15, // a newer file format, or a feature that is not built in
    TAMIS_TOOLARGE = -16,    // above a documented limit, or the caller's buffer is too small
    TAMIS_ABORTED = -17,     // a callback asked to stop
    TAMIS_POISONED = -18     // an earlier sync failed: no writes until the store is reopened
} tamis_status;

// The detail of one failure, on the caller's stack; 320 bytes, layout frozen. Filled in place:
// no allocation, nothing per thread, so it is safe wherever calls hop between threads.
typedef struct tamis_error {
    int32_t code;         // a tamis_status
    int32_t sys;          // errno, 0 if the operating system was not involved
    uint32_t retryable;   // 1: the same call may succeed later with nothing else changed
    uint32_t reserved0;   // 0
    uint64_t file_number; // the damaged or failing file, 0 if none
    uint64_t offset;      // byte offset in it
    uint64_t reserved[3]; // 0
    char message[264];    // NUL-terminated UTF-8: what failed, where, and what to do
} tamis_error;

// The name of a status, such as "NOTFOUND"; "UNKNOWN" for a number that is none. Never NULL.
TAMIS_API const char *tamis_status_name(int status);

// ---- Bytes -------------------------------------------------------------------------------------

// Borrowed bytes. data may be NULL where len is 0.
typedef struct tamis_slice {
    const void *data;
    size_t len;
} tamis_slice;

// ---- Comparator --------------------------------------------------------------------------------

// A total order on keys. Two different byte strings must never compare equal, unless canonical is
// given. The name is stored with the data and checked at every open. Callbacks may run on any
// thread, and must not call back into the store. The struct is copied; name and ctx must outlive
// the store.
typedef struct tamis_comparator {
    size_t size; // sizeof(tamis_comparator)
    const char *name;
    void *ctx;
    // Less than, equal to or greater than 0, as memcmp.
    int (*compare)(void *ctx, const void *a, size_t alen, const void *b, size_t blen);
    // Optional: writes a short key k with a <= k < b into out (capacity alen) and returns its
    // length; returning alen keeps a.
    size_t (*separator)(void *ctx, const void *a, size_t alen, const void *b, size_t blen,
                        void *out);
    // Optional: for an order in which different bytes may compare equal. Writes the one spelling
    // that stands for all equal keys into out (capacity len) and returns its length (<= len).
    // Filters hash that spelling.
    size_t (*canonical)(void *ctx, const void *key, size_t len, void *out);
} tamis_comparator;

#ifdef __cplusplus
} // extern "C"
#endif

#endif // TAMIS_TYPES_H
