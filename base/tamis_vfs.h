// SPDX-License-Identifier: BSD-2-Clause
//
// tamis_vfs.h - the files, clock and randomness that a store lives on, as a table of functions.
//
// The library touches the operating system through this table alone. Two come with it: the POSIX
// one (tamis_vfs_default) and one that keeps files in memory (tamis_vfs_memory), which can lose
// unsynced data and fail the n-th call, for tests of the library and of applications.
//
// RULES
//  Result    Every function returns 0 or a positive errno value. Nothing is retried inside:
//            callers continue short reads and writes and repeat EINTR.
//  Threads   All functions may be called from any threads at once; one file may be read from many
//            threads at once, but is written by one at a time.
//  Names     A name has no '/'; it is looked up in a directory handle and never follows a symbolic
//            link in its last part.
#ifndef TAMIS_VFS_H
#define TAMIS_VFS_H

#include "tamis_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tamis_vfs tamis_vfs;

// The head of every open directory and file; implementations put it first in their own struct.
typedef struct tamis_dir {
    const tamis_vfs *vfs;
} tamis_dir;
typedef struct tamis_file {
    const tamis_vfs *vfs;
} tamis_file;

#define TAMIS_DIR_CREATE   1u // dir_open: make the directory (mode 0700) if it is missing
#define TAMIS_DIR_EXISTING 0u // dir_open: it must be there

#define TAMIS_FILE_READ   0u // file_open: existing regular file, for reading
#define TAMIS_FILE_WRITE  1u // file_open: existing regular file, for reading and writing
#define TAMIS_FILE_CREATE 2u // file_open: must not exist; made with mode 0600, reading and writing

#define TAMIS_RENAME_REPLACE   0u
#define TAMIS_RENAME_NOREPLACE 1u // EEXIST if the target is there

#define TAMIS_LOCK_SHARED    0u
#define TAMIS_LOCK_EXCLUSIVE 1u

struct tamis_vfs {
    size_t size; // sizeof(tamis_vfs)
    void *ctx;

    // Directories. created (may be NULL) tells whether dir_open made it. The parent is opened by
    // path when its entry has to be synced: dir_open(parent), dir_sync.
    int (*dir_open)(const tamis_vfs *vfs, const char *path, uint32_t flags, tamis_dir **out,
                    int *created);
    // Like dir_open for a directory inside another one.
    int (*dir_open_at)(tamis_dir *dir, const char *name, uint32_t flags, tamis_dir **out,
                       int *created);
    int (*dir_sync)(tamis_dir *dir); // entries made, renamed and removed so far are durable
    // Calls each for every entry but "." and ".."; stops early when it returns non-zero.
    int (*dir_list)(tamis_dir *dir, int (*each)(void *ctx, const char *name), void *ctx);
    int (*dir_free_bytes)(tamis_dir *dir, uint64_t *bytes); // room for an ordinary user
    void (*dir_close)(tamis_dir *dir);
    int (*dir_remove)(const tamis_vfs *vfs, const char *path); // must be empty

    // Entries.
    int (*rename)(tamis_dir *from_dir, const char *from, tamis_dir *to_dir, const char *to,
                  uint32_t flags);
    int (*link)(tamis_dir *from_dir, const char *from, tamis_dir *to_dir, const char *to);
    int (*unlink)(tamis_dir *dir, const char *name);

    // Files. Not a regular file: ELOOP for a symbolic link, EINVAL for anything else.
    int (*file_open)(tamis_dir *dir, const char *name, uint32_t mode, tamis_file **out);
    int (*read_at)(tamis_file *file, uint64_t offset, void *buf, size_t n, size_t *got);
    int (*write_at)(tamis_file *file, uint64_t offset, const void *buf, size_t n, size_t *put);
    int (*reserve)(tamis_file *file, uint64_t offset, uint64_t n); // room, contents read as zeros,
                                                                   // size unchanged
    int (*truncate)(tamis_file *file, uint64_t size);
    int (*file_size)(tamis_file *file, uint64_t *size);
    int (*data_sync)(tamis_file *file); // data and size are durable
    // Hint: start writing back [offset, offset + n) now; no promise. May be NULL.
    int (*write_back)(tamis_file *file, uint64_t offset, uint64_t n);
    // Hint: [offset, offset + n) will be read soon (1) or not again (0). May be NULL.
    int (*advise)(tamis_file *file, uint64_t offset, uint64_t n, int will_need);
    // Maps [0, n) read-only. May be NULL or answer ENOTSUP; the store works without.
    int (*map)(tamis_file *file, uint64_t n, const void **out);
    int (*unmap)(tamis_file *file, const void *p, uint64_t n);
    int (*file_close)(tamis_file *file); // an error is reported, the handle is gone all the same

    // One lock a name; EWOULDBLOCK when held by another handle or process. The handle of the lock
    // file is given up by unlock.
    int (*lock)(tamis_dir *dir, const char *name, uint32_t kind, tamis_file **out);
    int (*unlock)(tamis_file *lock_file);

    // Clock and randomness.
    uint64_t (*monotonic_ns)(const tamis_vfs *vfs);
    uint64_t (*wall_ms)(const tamis_vfs *vfs); // milliseconds since 1970-01-01 UTC
    void (*sleep_us)(const tamis_vfs *vfs, uint64_t us);
    int (*random)(const tamis_vfs *vfs, void *buf, size_t n);
};

// The operating system's. Never NULL, never freed.
TAMIS_API const tamis_vfs *tamis_vfs_default(void);

// ---- Files in memory, for tests ----------------------------------------------------------------

// A new, empty file system in memory. Freed by tamis_vfs_free after every store on it is closed.
TAMIS_API int tamis_vfs_memory(tamis_vfs **out, tamis_error *err);
TAMIS_API void tamis_vfs_free(tamis_vfs *vfs); // NULL is fine

// What a crash leaves of the bytes and directory entries that were not synced.
typedef enum tamis_crash {
    TAMIS_CRASH_KEEP_ALL = 0, // as after the death of the process alone: all is there, but what
                              // was not synced may still be lost by a later crash
    TAMIS_CRASH_LOSE_ALL = 1, // only what was synced
    TAMIS_CRASH_RANDOM = 2,   // any part of the unsynced pages, sizes and entries, by the seed
    TAMIS_CRASH_TORN = 3      // as RANDOM, and one page is cut at a 512-byte sector, by the seed
} tamis_crash;
// Turns the file system into what a crash now would leave. Open handles answer EIO from then on;
// they are still to be closed.
TAMIS_API void tamis_vfs_memory_crash(tamis_vfs *vfs, tamis_crash kind, uint64_t seed);

// The number of calls that could fail so far (all but the clock, closes, unlock and hints).
TAMIS_API uint64_t tamis_vfs_memory_calls(const tamis_vfs *vfs);
// Lets call number n (as counted above, the first is 1) fail with errno error; with sticky, every
// later call of that kind too, until this is called with n = 0. error = 0: the call is cut short
// (a read or write moves half of its bytes). error = -1: from that call on every call answers EIO,
// as if the machine had stopped there (for tamis_vfs_memory_crash, which starts it again).
// A call that fails has no effect, but for data_sync with EIO: as on Linux, what was to be synced
// counts as written then, and is lost in the next crash although later syncs succeed.
TAMIS_API void tamis_vfs_memory_fail(tamis_vfs *vfs, uint64_t n, int error, int sticky);
// Writes and allocations answer ENOSPC once this many bytes are in use; 0 = no limit.
TAMIS_API void tamis_vfs_memory_limit(tamis_vfs *vfs, uint64_t bytes);
// Moves both clocks forward.
TAMIS_API void tamis_vfs_memory_advance_ms(tamis_vfs *vfs, uint64_t ms);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // TAMIS_VFS_H
