// SPDX-License-Identifier: BSD-2-Clause
//
// vfs_memory.c - tamis_vfs on files in memory: handles, the counting and failing of calls, the
// clock. vfs_memory.h says where the rest is.
//
// Every function that can fail is a gate (enter: lock, count, fail if told to) and a body that runs
// with the mutex held. A call that is made to fail has no effect, with one exception: a data_sync
// that fails with EIO leaves the file's pages and size clean but not durable, as Linux does. Reads
// see them until a crash, a later data_sync does not write them, and says that all is well.
//
// The tree starts with "/", which is "." too: relative and absolute paths mean the same.
#include <errno.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/vfs_memory.h"
#include "base/vfs_name.h"

#define DISK_BYTES         ((uint64_t)1 << 40) // what dir_free_bytes starts from without a limit
#define CLOCK_STEP_NS      1000                // how far a look at the clock moves it
#define MONOTONIC_START_NS 1000000000u         // one second after the machine's start
#define WALL_START_MS      1700000000000u      // 2023-11-14T22:13:20Z
#define RANDOM_SEED        0x74616d69735f7266u // any fixed number

// The kinds of calls, for failures that stay.
enum {
    CALL_DIR_OPEN = 1,
    CALL_DIR_SYNC,
    CALL_DIR_LIST,
    CALL_DIR_FREE_BYTES,
    CALL_DIR_REMOVE,
    CALL_RENAME,
    CALL_LINK,
    CALL_UNLINK,
    CALL_FILE_OPEN,
    CALL_READ,
    CALL_WRITE,
    CALL_RESERVE,
    CALL_TRUNCATE,
    CALL_FILE_SIZE,
    CALL_DATA_SYNC,
    CALL_LOCK,
    CALL_RANDOM
};

typedef struct mem_dir {
    tamis_dir head;
    tm_memfs *fs;
    tm_memfs_inode *inode;
    uint64_t epoch;
} mem_dir;

typedef struct mem_file {
    tamis_file head;
    tm_memfs *fs;
    tm_memfs_inode *inode;
    uint64_t epoch;
    bool writable;
    uint32_t lock_kind; // of a lock file
} mem_file;

static mem_dir *as_dir(tamis_dir *dir)
{
    return (mem_dir *)dir;
}

static mem_file *as_file(tamis_file *file)
{
    return (mem_file *)file;
}

// ---- The gate ----------------------------------------------------------------------------------

// Takes the mutex, counts the call, and says how it is to fail, 0 if not. cut (may be NULL) tells
// that it is to do half of its work.
static int enter(tm_memfs *fs, int kind, bool *cut)
{
    tm_mutex_lock(&fs->mutex);
    fs->calls++;
    if (cut != NULL) *cut = false;
    if (fs->stopped) return EIO;
    bool fails = fs->fail_kind == kind;
    if (fs->calls == fs->fail_at) {
        fails = true;
        if (fs->fail_error == -1) {
            fs->stopped = true;
            return EIO;
        }
        if (fs->fail_sticky) fs->fail_kind = kind;
    }
    if (!fails) return 0;
    if (cut != NULL) *cut = fs->fail_error == 0;
    return fs->fail_error;
}

static int enter_dir(const mem_dir *dir, int kind)
{
    int rc = enter(dir->fs, kind, NULL);
    return rc == 0 && dir->epoch != dir->fs->epoch ? EIO : rc;
}

static int enter_file(const mem_file *file, int kind, bool *cut)
{
    int rc = enter(file->fs, kind, cut);
    return rc == 0 && file->epoch != file->fs->epoch ? EIO : rc;
}

static int leave(tm_memfs *fs, int rc)
{
    tm_mutex_unlock(&fs->mutex);
    return rc;
}

// A handle goes, whatever became of the file system. EIO after a crash or stop.
static int release(tm_memfs *fs, tm_memfs_inode *inode, uint64_t epoch)
{
    int rc = fs->stopped ? EIO : 0;
    if (epoch == fs->epoch) {
        inode->opens--;
        tm_memfs_account(fs, inode);
    } else {
        rc = EIO;
    }
    tm_memfs_inode_unref(fs, inode);
    return rc;
}

static int check_name(const char *name)
{
    int rc = tm_vfs_check_name(name);
    return rc == 0 && strlen(name) > TM_MEMFS_NAME_MAX ? ENAMETOOLONG : rc;
}

static bool in_range(uint64_t offset, uint64_t n)
{
    return offset <= INT64_MAX && n <= INT64_MAX - offset;
}

// ---- Directories -------------------------------------------------------------------------------

static int open_dir(tm_memfs *fs, tm_memfs_inode *parent, const char *name, uint32_t flags,
                    tamis_dir **out, int *created)
{
    tm_memfs_inode *inode;
    if (flags > TAMIS_DIR_CREATE) return EINVAL;
    mem_dir *dir = tm_alloc(sizeof *dir);
    if (dir == NULL) return ENOMEM;
    int rc = tm_memfs_step(parent, name, &inode);
    bool make = rc == ENOENT && flags == TAMIS_DIR_CREATE && tm_vfs_check_name(name) == 0 &&
                !tm_memfs_is_gone(fs, parent);
    if (make) rc = tm_memfs_make(fs, parent, name, true, &inode);
    if (rc != 0) {
        tm_free(dir);
        return rc;
    }
    inode->refs++;
    inode->opens++;
    *dir = (mem_dir){.head.vfs = &fs->vfs, .fs = fs, .inode = inode, .epoch = fs->epoch};
    *out = &dir->head;
    if (created != NULL) *created = make;
    return 0;
}

static int mem_dir_open(const tamis_vfs *vfs, const char *path, uint32_t flags, tamis_dir **out,
                        int *created)
{
    tm_memfs *fs = vfs->ctx;
    tm_memfs_inode *parent;
    char name[TM_MEMFS_NAME_MAX + 1];
    *out = NULL;
    if (created != NULL) *created = 0;
    int rc = enter(fs, CALL_DIR_OPEN, NULL);
    if (rc == 0) rc = tm_memfs_walk(fs, path, &parent, name);
    if (rc == 0) rc = open_dir(fs, parent, name, flags, out, created);
    return leave(fs, rc);
}

static int mem_dir_open_at(tamis_dir *dir, const char *name, uint32_t flags, tamis_dir **out,
                           int *created)
{
    mem_dir *d = as_dir(dir);
    *out = NULL;
    if (created != NULL) *created = 0;
    int rc = enter_dir(d, CALL_DIR_OPEN);
    if (rc == 0) rc = check_name(name);
    if (rc == 0) rc = open_dir(d->fs, d->inode, name, flags, out, created);
    return leave(d->fs, rc);
}

static int mem_dir_sync(tamis_dir *dir)
{
    mem_dir *d = as_dir(dir);
    int rc = enter_dir(d, CALL_DIR_SYNC);
    if (rc == 0) tm_memfs_sync_dir(d->fs, d->inode);
    return leave(d->fs, rc);
}

// The names are copied first: each may call the file system, and change the directory.
static int mem_dir_list(tamis_dir *dir, int (*each)(void *ctx, const char *name), void *ctx)
{
    mem_dir *d = as_dir(dir);
    tm_buf names;
    tm_buf_init(&names);
    int rc = enter_dir(d, CALL_DIR_LIST);
    for (size_t i = 0; rc == 0 && i < d->inode->n_entries; i++) {
        const tm_memfs_entry *entry = d->inode->entries[i];
        if (entry->now == NULL) continue;
        if (tm_buf_append(&names, entry->name, strlen(entry->name) + 1) != TAMIS_OK) rc = ENOMEM;
    }
    leave(d->fs, rc);
    for (size_t at = 0; rc == 0 && at < names.len;) {
        const char *name = (const char *)names.data + at;
        if (each(ctx, name) != 0) break;
        at += strlen(name) + 1;
    }
    tm_buf_deinit(&names);
    return rc;
}

static int mem_dir_free_bytes(tamis_dir *dir, uint64_t *bytes)
{
    mem_dir *d = as_dir(dir);
    *bytes = 0;
    int rc = enter_dir(d, CALL_DIR_FREE_BYTES);
    if (rc == 0) {
        uint64_t all = d->fs->limit_bytes != 0 ? d->fs->limit_bytes : DISK_BYTES;
        uint64_t used = d->fs->used_pages * TM_MEMFS_PAGE;
        *bytes = all > used ? all - used : 0;
    }
    return leave(d->fs, rc);
}

static void mem_dir_close(tamis_dir *dir)
{
    if (dir == NULL) return;
    mem_dir *d = as_dir(dir);
    tm_memfs *fs = d->fs;
    tm_mutex_lock(&fs->mutex);
    release(fs, d->inode, d->epoch);
    tm_mutex_unlock(&fs->mutex);
    tm_free(d);
}

static int remove_dir(tm_memfs *fs, const char *path)
{
    tm_memfs_inode *parent;
    char name[TM_MEMFS_NAME_MAX + 1];
    int rc = tm_memfs_walk(fs, path, &parent, name);
    if (rc != 0) return rc;
    if (strcmp(name, ".") == 0) return EINVAL;
    if (strcmp(name, "..") == 0) return ENOTEMPTY;
    tm_memfs_entry *entry = tm_memfs_lookup(parent, name);
    if (entry == NULL) return ENOENT;
    if (!entry->now->is_dir) return ENOTDIR;
    return tm_memfs_dir_empty(entry->now) ? tm_memfs_remove(fs, entry) : ENOTEMPTY;
}

static int mem_dir_remove(const tamis_vfs *vfs, const char *path)
{
    tm_memfs *fs = vfs->ctx;
    int rc = enter(fs, CALL_DIR_REMOVE, NULL);
    if (rc == 0) rc = remove_dir(fs, path);
    return leave(fs, rc);
}

// ---- Entries -----------------------------------------------------------------------------------

static int check_two(const tamis_dir *from_dir, const char *from, tamis_dir *to_dir, const char *to)
{
    if (from_dir->vfs != to_dir->vfs) return EXDEV;
    if (as_dir(to_dir)->epoch != as_dir(to_dir)->fs->epoch) return EIO;
    int rc = check_name(from);
    return rc != 0 ? rc : check_name(to);
}

static int mem_rename(tamis_dir *from_dir, const char *from, tamis_dir *to_dir, const char *to,
                      uint32_t flags)
{
    mem_dir *f = as_dir(from_dir), *t = as_dir(to_dir);
    int rc = enter_dir(f, CALL_RENAME);
    if (rc == 0) rc = check_two(from_dir, from, to_dir, to);
    if (rc == 0 && flags > TAMIS_RENAME_NOREPLACE) rc = EINVAL;
    if (rc == 0) rc = tm_memfs_rename(f->fs, f->inode, from, t->inode, to, flags);
    return leave(f->fs, rc);
}

static int mem_link(tamis_dir *from_dir, const char *from, tamis_dir *to_dir, const char *to)
{
    mem_dir *f = as_dir(from_dir), *t = as_dir(to_dir);
    int rc = enter_dir(f, CALL_LINK);
    if (rc == 0) rc = check_two(from_dir, from, to_dir, to);
    if (rc == 0) rc = tm_memfs_link(f->fs, f->inode, from, t->inode, to);
    return leave(f->fs, rc);
}

static int mem_unlink(tamis_dir *dir, const char *name)
{
    mem_dir *d = as_dir(dir);
    int rc = enter_dir(d, CALL_UNLINK);
    if (rc == 0) rc = check_name(name);
    if (rc == 0) {
        tm_memfs_entry *entry = tm_memfs_lookup(d->inode, name);
        if (entry == NULL)
            rc = ENOENT;
        else
            rc = entry->now->is_dir ? EISDIR : tm_memfs_remove(d->fs, entry);
    }
    return leave(d->fs, rc);
}

// ---- Files -------------------------------------------------------------------------------------

// The file of a name, made if asked for and missing. A fresh one must be new.
static int find_file(tm_memfs *fs, tm_memfs_inode *dir, const char *name, bool make, bool fresh,
                     tm_memfs_inode **out)
{
    tm_memfs_entry *entry = tm_memfs_lookup(dir, name);
    if (entry == NULL) {
        return make && !tm_memfs_is_gone(fs, dir) ? tm_memfs_make(fs, dir, name, false, out)
                                                  : ENOENT;
    }
    if (fresh) return EEXIST;
    if (entry->now->is_dir) return EINVAL;
    *out = entry->now;
    return 0;
}

static int mem_file_open(tamis_dir *dir, const char *name, uint32_t mode, tamis_file **out)
{
    mem_dir *d = as_dir(dir);
    tm_memfs *fs = d->fs;
    tm_memfs_inode *inode;
    bool create = mode == TAMIS_FILE_CREATE;
    *out = NULL;
    mem_file *file = tm_calloc(1, sizeof *file);
    int rc = enter_dir(d, CALL_FILE_OPEN);
    if (rc == 0) rc = check_name(name);
    if (rc == 0 && mode > TAMIS_FILE_CREATE) rc = EINVAL;
    if (rc == 0 && file == NULL) rc = ENOMEM;
    if (rc == 0) rc = find_file(fs, d->inode, name, create, create, &inode);
    if (rc == 0) {
        inode->refs++;
        inode->opens++;
        tm_memfs_account(fs, inode);
        *file = (mem_file){.head.vfs = &fs->vfs, .fs = fs, .inode = inode, .epoch = fs->epoch};
        file->writable = mode != TAMIS_FILE_READ;
        *out = &file->head;
    } else {
        tm_free(file);
    }
    return leave(fs, rc);
}

// Half, but never nothing: a caller that goes on gets there.
static size_t half(size_t n)
{
    return n - n / 2;
}

static int mem_read_at(tamis_file *file, uint64_t offset, void *buf, size_t n, size_t *got)
{
    mem_file *f = as_file(file);
    bool cut;
    *got = 0;
    int rc = enter_file(f, CALL_READ, &cut);
    if (rc == 0 && !in_range(offset, n)) rc = EINVAL;
    if (rc == 0) *got = tm_memfs_read(f->inode, offset, buf, cut ? half(n) : n);
    return leave(f->fs, rc);
}

static int mem_write_at(tamis_file *file, uint64_t offset, const void *buf, size_t n, size_t *put)
{
    mem_file *f = as_file(file);
    bool cut;
    *put = 0;
    int rc = enter_file(f, CALL_WRITE, &cut);
    if (rc == 0 && !f->writable) rc = EBADF;
    if (rc == 0 && !in_range(offset, n)) rc = EFBIG;
    if (rc == 0) rc = tm_memfs_write(f->fs, f->inode, offset, buf, cut ? half(n) : n, put);
    return leave(f->fs, rc);
}

static int mem_reserve(tamis_file *file, uint64_t offset, uint64_t n)
{
    mem_file *f = as_file(file);
    int rc = enter_file(f, CALL_RESERVE, NULL);
    if (rc == 0 && !f->writable) rc = EBADF;
    if (rc == 0 && !in_range(offset, n)) rc = EFBIG;
    if (rc == 0) rc = tm_memfs_reserve(f->fs, f->inode, offset, n);
    return leave(f->fs, rc);
}

static int mem_truncate(tamis_file *file, uint64_t size)
{
    mem_file *f = as_file(file);
    int rc = enter_file(f, CALL_TRUNCATE, NULL);
    if (rc == 0 && !f->writable) rc = EINVAL; // as ftruncate has it
    if (rc == 0 && !in_range(size, 0)) rc = EFBIG;
    if (rc == 0) rc = tm_memfs_truncate(f->fs, f->inode, size);
    return leave(f->fs, rc);
}

static int mem_file_size(tamis_file *file, uint64_t *size)
{
    mem_file *f = as_file(file);
    *size = 0;
    int rc = enter_file(f, CALL_FILE_SIZE, NULL);
    if (rc == 0) *size = f->inode->size;
    return leave(f->fs, rc);
}

static int mem_data_sync(tamis_file *file)
{
    mem_file *f = as_file(file);
    int rc = enter(f->fs, CALL_DATA_SYNC, NULL);
    bool alive = f->epoch == f->fs->epoch && !f->fs->stopped;
    if (rc == EIO && alive) tm_memfs_fail_sync_file(f->inode);
    if (rc == 0 && alive) tm_memfs_sync_file(f->inode);
    if (rc == 0 && !alive) rc = EIO;
    return leave(f->fs, rc);
}

static int mem_file_close(tamis_file *file)
{
    if (file == NULL) return 0;
    mem_file *f = as_file(file);
    tm_memfs *fs = f->fs;
    tm_mutex_lock(&fs->mutex);
    int rc = release(fs, f->inode, f->epoch);
    tm_mutex_unlock(&fs->mutex);
    tm_free(f);
    return rc;
}

// ---- Locks -------------------------------------------------------------------------------------

static int take_lock(tm_memfs_inode *inode, uint32_t kind)
{
    if (inode->exclusive_lock) return EWOULDBLOCK;
    if (kind == TAMIS_LOCK_EXCLUSIVE && inode->shared_locks > 0) return EWOULDBLOCK;
    if (kind == TAMIS_LOCK_EXCLUSIVE)
        inode->exclusive_lock = true;
    else
        inode->shared_locks++;
    return 0;
}

static int mem_lock(tamis_dir *dir, const char *name, uint32_t kind, tamis_file **out)
{
    mem_dir *d = as_dir(dir);
    tm_memfs *fs = d->fs;
    tm_memfs_inode *inode;
    *out = NULL;
    mem_file *file = tm_calloc(1, sizeof *file);
    int rc = enter_dir(d, CALL_LOCK);
    if (rc == 0) rc = check_name(name);
    if (rc == 0 && kind > TAMIS_LOCK_EXCLUSIVE) rc = EINVAL;
    if (rc == 0 && file == NULL) rc = ENOMEM;
    if (rc == 0) rc = find_file(fs, d->inode, name, true, false, &inode);
    if (rc == 0) rc = take_lock(inode, kind);
    if (rc == 0) {
        inode->refs++;
        inode->opens++;
        tm_memfs_account(fs, inode);
        *file = (mem_file){.head.vfs = &fs->vfs, .fs = fs, .inode = inode, .epoch = fs->epoch};
        file->writable = kind == TAMIS_LOCK_EXCLUSIVE;
        file->lock_kind = kind;
        *out = &file->head;
    } else {
        tm_free(file);
    }
    return leave(fs, rc);
}

static int mem_unlock(tamis_file *lock_file)
{
    if (lock_file == NULL) return 0;
    mem_file *f = as_file(lock_file);
    tm_memfs *fs = f->fs;
    tm_mutex_lock(&fs->mutex);
    if (f->epoch == fs->epoch) {
        if (f->lock_kind == TAMIS_LOCK_EXCLUSIVE)
            f->inode->exclusive_lock = false;
        else
            f->inode->shared_locks--;
    }
    tm_mutex_unlock(&fs->mutex);
    return mem_file_close(lock_file);
}

// ---- Clock and randomness ----------------------------------------------------------------------

static uint64_t tick(const tamis_vfs *vfs)
{
    tm_memfs *fs = vfs->ctx;
    tm_mutex_lock(&fs->mutex);
    fs->elapsed_ns += CLOCK_STEP_NS;
    uint64_t elapsed_ns = fs->elapsed_ns;
    tm_mutex_unlock(&fs->mutex);
    return elapsed_ns;
}

static uint64_t mem_monotonic_ns(const tamis_vfs *vfs)
{
    return MONOTONIC_START_NS + tick(vfs);
}

static uint64_t mem_wall_ms(const tamis_vfs *vfs)
{
    return WALL_START_MS + tick(vfs) / 1000000u;
}

// Nobody waits in a made-up time; but a caller that polls must let others run.
static void mem_sleep_us(const tamis_vfs *vfs, uint64_t us)
{
    tm_memfs *fs = vfs->ctx;
    tm_mutex_lock(&fs->mutex);
    fs->elapsed_ns += us * 1000;
    tm_mutex_unlock(&fs->mutex);
    tm_thread_yield();
}

static int mem_random(const tamis_vfs *vfs, void *buf, size_t n)
{
    tm_memfs *fs = vfs->ctx;
    uint8_t *p = buf;
    int rc = enter(fs, CALL_RANDOM, NULL);
    for (size_t i = 0; rc == 0 && i < n; i++) p[i] = (uint8_t)tm_random_next(&fs->random);
    return leave(fs, rc);
}

// ---- The file system ---------------------------------------------------------------------------

static const tamis_vfs mem_table = {
    .size = sizeof(tamis_vfs),
    .dir_open = mem_dir_open,
    .dir_open_at = mem_dir_open_at,
    .dir_sync = mem_dir_sync,
    .dir_list = mem_dir_list,
    .dir_free_bytes = mem_dir_free_bytes,
    .dir_close = mem_dir_close,
    .dir_remove = mem_dir_remove,
    .rename = mem_rename,
    .link = mem_link,
    .unlink = mem_unlink,
    .file_open = mem_file_open,
    .read_at = mem_read_at,
    .write_at = mem_write_at,
    .reserve = mem_reserve,
    .truncate = mem_truncate,
    .file_size = mem_file_size,
    .data_sync = mem_data_sync,
    .file_close = mem_file_close,
    .lock = mem_lock,
    .unlock = mem_unlock,
    .monotonic_ns = mem_monotonic_ns,
    .wall_ms = mem_wall_ms,
    .sleep_us = mem_sleep_us,
    .random = mem_random,
};

int tamis_vfs_memory(tamis_vfs **out, tamis_error *err)
{
    if (out == NULL) return tm_fail(err, TAMIS_INVALID, "out must not be NULL");
    *out = NULL;
    tm_memfs *fs = tm_calloc(1, sizeof *fs);
    if (fs == NULL) return tm_fail_nomem(err);
    int st = tm_mutex_init(&fs->mutex, err);
    if (st != TAMIS_OK) {
        tm_free(fs);
        return st;
    }
    fs->root = tm_memfs_inode_create(fs, true);
    if (fs->root == NULL) {
        tm_mutex_deinit(&fs->mutex);
        tm_free(fs);
        return tm_fail_nomem(err);
    }
    fs->root->parent = fs->root;
    fs->random = tm_random_seed(RANDOM_SEED);
    fs->vfs = mem_table;
    fs->vfs.ctx = fs;
    *out = &fs->vfs;
    return TAMIS_OK;
}

// NULL for a file system of another kind, which the functions below leave alone.
static tm_memfs *memfs_of(const tamis_vfs *vfs)
{
    return vfs != NULL && vfs->dir_open == mem_dir_open ? vfs->ctx : NULL;
}

void tamis_vfs_free(tamis_vfs *vfs)
{
    tm_memfs *fs = memfs_of(vfs);
    if (fs == NULL) return;
    while (fs->first_op != NULL) {
        tm_memfs_op *op = fs->first_op;
        fs->first_op = op->next;
        tm_free(op);
    }
    while (fs->first != NULL) tm_memfs_inode_destroy(fs, fs->first);
    tm_mutex_deinit(&fs->mutex);
    tm_free(fs);
}

void tamis_vfs_memory_crash(tamis_vfs *vfs, tamis_crash kind, uint64_t seed)
{
    tm_memfs *fs = memfs_of(vfs);
    if (fs == NULL) return;
    tm_mutex_lock(&fs->mutex);
    tm_memfs_crash(fs, kind, seed);
    tm_mutex_unlock(&fs->mutex);
}

uint64_t tamis_vfs_memory_calls(const tamis_vfs *vfs)
{
    tm_memfs *fs = memfs_of(vfs);
    if (fs == NULL) return 0;
    tm_mutex_lock(&fs->mutex);
    uint64_t calls = fs->calls;
    tm_mutex_unlock(&fs->mutex);
    return calls;
}

void tamis_vfs_memory_fail(tamis_vfs *vfs, uint64_t n, int error, int sticky)
{
    tm_memfs *fs = memfs_of(vfs);
    if (fs == NULL) return;
    tm_mutex_lock(&fs->mutex);
    fs->fail_at = n;
    fs->fail_error = error;
    fs->fail_sticky = sticky != 0;
    fs->fail_kind = 0;
    if (n == 0) fs->stopped = false;
    tm_mutex_unlock(&fs->mutex);
}

void tamis_vfs_memory_limit(tamis_vfs *vfs, uint64_t bytes)
{
    tm_memfs *fs = memfs_of(vfs);
    if (fs == NULL) return;
    tm_mutex_lock(&fs->mutex);
    fs->limit_bytes = bytes;
    tm_mutex_unlock(&fs->mutex);
}

void tamis_vfs_memory_advance_ms(tamis_vfs *vfs, uint64_t ms)
{
    tm_memfs *fs = memfs_of(vfs);
    if (fs == NULL) return;
    tm_mutex_lock(&fs->mutex);
    fs->elapsed_ns += ms * 1000000u;
    tm_mutex_unlock(&fs->mutex);
}
