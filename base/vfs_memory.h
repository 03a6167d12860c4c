// SPDX-License-Identifier: BSD-2-Clause
//
// vfs_memory.h - the file system in memory, as its four files share it:
//
//   vfs_memory.c        the functions of tamis_vfs: handles, call counting, failures, clock
//   vfs_memory_tree.c   paths; names made, removed and moved
//   vfs_memory_image.c  inodes, their pages, directory entries, and what makes them durable
//   vfs_memory_crash.c  what a crash leaves
//
// Everything exists twice: as the running system sees it (now) and as the disk has it (disk).
//
//   directory inode                       file inode
//   +- entries, sorted by name -------+   +- size, disk_size, sizes[] since the last sync -+
//   | "CURRENT"     now --> inode 7   |   | pages, sorted by number:                       |
//   |               disk -> inode 4   |   |   no 0   now == disk        clean              |
//   | "CURRENT.tmp" now --> NULL      |   |   no 1   now != disk, dirty a crash decides    |
//   |               disk -> NULL      |   |   no 2   now != disk        lost by a failed   |
//   +---------------------------------+   |                             sync               |
//   and one list of pending operations,   +------------------------------------------------+
//   in order: each sets disk of one or two entries (from to NULL, to to the inode)
//
// INVARIANTS
//  1. Applying all pending operations in order makes disk equal to now in every entry.
//  2. A rename is one operation on two entries: it is applied whole or not at all.
//  3. An operation is never applied before an earlier one that shares an entry with it; directories
//     that move count as sharing one, so that no set of applied moves can form a cycle.
//  4. Bytes of a page behind the size (now: size, disk: disk_size) are zeros, or not there.
//  5. refs of an inode = entries naming it (now and disk each) + operations + handles; without any
//     it is freed. A pending operation keeps its entries and their directories.
//  6. No allocation is needed to make things durable, nor for a crash.
//
// Threads: one mutex, in tm_memfs; all functions here are called with it held.
// Errors: errno values, as in tamis_vfs.h. Memory: everything belongs to the tm_memfs.
#ifndef TM_VFS_MEMORY_H
#define TM_VFS_MEMORY_H

#include "base/random.h"
#include "base/sync.h"
#include "tamis_vfs.h"

enum { TM_MEMFS_PAGE = 4096, TM_MEMFS_SECTOR = 512, TM_MEMFS_NAME_MAX = 255 };

typedef struct tm_memfs_inode tm_memfs_inode;

typedef struct tm_memfs_page {
    uint64_t no;   // offset / TM_MEMFS_PAGE
    uint8_t *now;  // NULL reads as zeros
    uint8_t *disk; // likewise; the same buffer as now where they agree
    bool dirty;    // now is to be written: a crash decides
    bool held;     // takes room: written or reserved
} tm_memfs_page;

typedef struct tm_memfs_entry {
    tm_memfs_inode *dir;
    tm_memfs_inode *now, *disk; // NULL: no such name
    uint32_t pending;           // operations that point here
    bool mark;                  // scratch of one pass over the operations
    char name[TM_MEMFS_NAME_MAX + 1];
} tm_memfs_entry;

typedef struct tm_memfs_op {
    struct tm_memfs_op *prev, *next;
    tm_memfs_entry *from; // NULL: a name was made
    tm_memfs_entry *to;   // NULL: a name was removed; both: a rename
    tm_memfs_inode *inode;
    bool mark;
} tm_memfs_op;

struct tm_memfs_inode {
    tm_memfs_inode *prev, *next; // all inodes, oldest first
    tm_memfs_inode *next_dead;
    uint32_t refs;
    uint32_t links; // entries naming it now
    uint32_t opens; // handles, those from before a crash not counted
    bool is_dir;
    bool counted; // its pages are part of used_pages: it can be reached by name or handle

    // Files.
    uint64_t size, disk_size;
    uint64_t *sizes; // each size since the last sync, the last is size
    size_t n_sizes, cap_sizes;
    tm_memfs_page *pages;
    size_t n_pages, cap_pages;
    uint64_t held; // pages that are
    uint32_t shared_locks;
    bool exclusive_lock;

    // Directories.
    tm_memfs_inode *parent; // NULL once removed
    tm_memfs_entry **entries;
    size_t n_entries, cap_entries;
};

typedef struct tm_memfs {
    tamis_vfs vfs; // ctx is this struct
    tm_mutex mutex;
    tm_memfs_inode *root;
    tm_memfs_inode *first, *last;
    tm_memfs_op *first_op, *last_op;
    uint64_t epoch; // crashes so far; handles of earlier epochs are dead
    uint64_t used_pages, limit_bytes;

    uint64_t calls;      // that could fail
    uint64_t fail_at;    // 0: none
    int fail_error;      // errno, 0 cut short, -1 stop
    bool fail_sticky;    // go on with later calls of the same kind
    int fail_kind;       // which are these, once fail_at has passed; 0: not yet
    bool stopped;        // until the crash
    uint64_t elapsed_ns; // both clocks
    tm_random random;
} tm_memfs;

// ---- vfs_memory_image.c ------------------------------------------------------------------------

tm_memfs_inode *tm_memfs_inode_create(tm_memfs *fs, bool is_dir) TM_CHECK_RESULT; // one ref, yours
void tm_memfs_inode_unref(tm_memfs *fs, tm_memfs_inode *inode);
void tm_memfs_inode_destroy(tm_memfs *fs, tm_memfs_inode *inode); // whatever still points to it
// Puts its pages into used_pages or takes them out, as links and opens now say.
void tm_memfs_account(tm_memfs *fs, tm_memfs_inode *inode);

// Files. write: short at the limit, ENOSPC if nothing fits.
size_t tm_memfs_read(const tm_memfs_inode *inode, uint64_t offset, void *buf, size_t n);
int tm_memfs_write(tm_memfs *fs, tm_memfs_inode *inode, uint64_t offset, const void *buf, size_t n,
                   size_t *put) TM_CHECK_RESULT;
int tm_memfs_reserve(tm_memfs *fs, tm_memfs_inode *inode, uint64_t offset,
                     uint64_t n) TM_CHECK_RESULT;
int tm_memfs_truncate(tm_memfs *fs, tm_memfs_inode *inode, uint64_t size) TM_CHECK_RESULT;
void tm_memfs_sync_file(tm_memfs_inode *inode);
// As Linux after a failed write-back: pages and size count as written, and the disk has the old.
void tm_memfs_fail_sync_file(tm_memfs_inode *inode);

// Entries. lookup: NULL if there is no such name now.
tm_memfs_entry *tm_memfs_lookup(const tm_memfs_inode *dir, const char *name);
// Makes the name if it is missing (with now and disk NULL). ENOMEM.
int tm_memfs_entry_make(tm_memfs *fs, tm_memfs_inode *dir, const char *name,
                        tm_memfs_entry **out) TM_CHECK_RESULT;
void tm_memfs_entry_tidy(tm_memfs *fs, tm_memfs_entry *entry); // freed if it means nothing
void tm_memfs_entry_set(tm_memfs *fs, tm_memfs_entry *entry, tm_memfs_inode *inode); // now
bool tm_memfs_dir_empty(const tm_memfs_inode *dir);

// Pending operations. One is allocated first, so that what follows cannot fail.
tm_memfs_op *tm_memfs_op_create(void) TM_CHECK_RESULT;
void tm_memfs_op_append(tm_memfs *fs, tm_memfs_op *op, tm_memfs_entry *from, tm_memfs_entry *to,
                        tm_memfs_inode *inode);
void tm_memfs_op_apply(tm_memfs *fs, const tm_memfs_op *op); // sets disk
void tm_memfs_op_drop(tm_memfs *fs, tm_memfs_op *op);        // takes it off the list and frees it
static inline bool tm_memfs_op_moves_dir(const tm_memfs_op *op)
{
    return op->from != NULL && op->to != NULL && op->inode->is_dir;
}
void tm_memfs_sync_dir(tm_memfs *fs, const tm_memfs_inode *dir);

// ---- vfs_memory_tree.c -------------------------------------------------------------------------

// The directory that holds the last part of a path, and that part; "." for "/" itself.
int tm_memfs_walk(tm_memfs *fs, const char *path, tm_memfs_inode **dir,
                  char last[TM_MEMFS_NAME_MAX + 1]) TM_CHECK_RESULT;
// From a directory to one in it, "." or ".."; ENOENT, ENOTDIR.
int tm_memfs_step(tm_memfs_inode *dir, const char *part, tm_memfs_inode **out) TM_CHECK_RESULT;

// Removed directories live on in handles, but take no new entries.
static inline bool tm_memfs_is_gone(const tm_memfs *fs, const tm_memfs_inode *dir)
{
    return dir->links == 0 && dir != fs->root;
}

// Names were checked. make: a new inode under a name that is free. All-or-nothing.
int tm_memfs_make(tm_memfs *fs, tm_memfs_inode *dir, const char *name, bool is_dir,
                  tm_memfs_inode **out) TM_CHECK_RESULT;
int tm_memfs_remove(tm_memfs *fs, tm_memfs_entry *entry) TM_CHECK_RESULT;
int tm_memfs_rename(tm_memfs *fs, tm_memfs_inode *from_dir, const char *from,
                    tm_memfs_inode *to_dir, const char *to, uint32_t flags) TM_CHECK_RESULT;
int tm_memfs_link(tm_memfs *fs, const tm_memfs_inode *from_dir, const char *from,
                  tm_memfs_inode *to_dir, const char *to) TM_CHECK_RESULT;

// ---- vfs_memory_crash.c ------------------------------------------------------------------------

// Leaves what a crash would; handles and locks of before are dead.
void tm_memfs_crash(tm_memfs *fs, tamis_crash kind, uint64_t seed);

#endif // TM_VFS_MEMORY_H
