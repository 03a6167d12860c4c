// SPDX-License-Identifier: BSD-2-Clause
//
// vfs_posix.c - tamis_vfs on a POSIX operating system: the only file of the library that makes
// system calls on files, clocks and randomness.
//
// A hostile or careless neighbour may plant anything under a name of the store. Hence:
//  1. Names are looked up from a directory descriptor (openat), never as a path again.
//  2. O_NOFOLLOW everywhere but for the path of the store itself, which may be a link.
//  3. O_NONBLOCK, so that a FIFO cannot hang an open, then fstat: regular files only.
//  4. O_EXCL for what is made; modes 0700 and 0600, which the umask can only tighten.
//
// Calls that a kernel or file system lacks have a substitute where one keeps the meaning, and are
// left out where they were hints. Handles work in a child of fork as descriptors do; "Locks" below
// says what such a child may do with the parent's lock.
#define _GNU_SOURCE       // F_OFD_SETLK, fallocate, renameat2, sync_file_range
#define _FILE_OFFSET_BITS 64

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sync.h"
#include "base/vfs_name.h"
#include "tamis_vfs.h"

static_assert(sizeof(off_t) == 8, "file offsets need 64 bits");

#define DIR_MODE  0700
#define FILE_MODE 0600
// O_NOCTTY: a terminal planted under a name must not become the process's own.
#define OPEN_FLAGS   (O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
#define TRANSFER_MAX ((size_t)1 << 30) // bytes of one read or write; above, a short one
#define LOCK_TRIES   100               // lock files replaced under us before we give up
#define REPLACED     (-1)

typedef struct posix_dir {
    tamis_dir head;
    int fd;
} posix_dir;

// Immutable once opened; the list fields belong to lock_mutex.
typedef struct posix_file {
    tamis_file head;
    int fd;
    // A lock file's:
    struct posix_file *next_lock;
    pid_t pid; // who took the lock; a child of fork inherits the handle but not the ownership
    dev_t dev;
    ino_t ino;
    uint32_t kind;
    bool by_flock; // the kernel has no open-file-description locks
} posix_file;

static posix_dir *as_dir(tamis_dir *dir)
{
    return (posix_dir *)dir;
}

static posix_file *as_file(tamis_file *file)
{
    return (posix_file *)file;
}

static int result(int rc)
{
    return rc == 0 ? 0 : errno;
}

// [offset, offset + n) as the kernel counts.
static bool in_range(uint64_t offset, uint64_t n)
{
    return offset <= INT64_MAX && n <= INT64_MAX - offset;
}

// ---- Directories -------------------------------------------------------------------------------

static int dir_wrap(int fd, tamis_dir **out)
{
    posix_dir *dir = tm_alloc(sizeof *dir);
    if (dir == NULL) {
        close(fd);
        return ENOMEM;
    }
    dir->head.vfs = tamis_vfs_default();
    dir->fd = fd;
    *out = &dir->head;
    return 0;
}

// Opens, and only where nothing is there makes the directory: so a store on a read-only file system
// opens too. Of two processes that make it at once, one has created set.
static int dir_open_from(int at, const char *path, int follow, uint32_t flags, tamis_dir **out,
                         int *created)
{
    const int open_flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | follow;
    bool made = false;
    *out = NULL;
    if (created != NULL) *created = 0;
    if (flags > TAMIS_DIR_CREATE) return EINVAL;

    int fd = openat(at, path, open_flags);
    if (fd < 0 && errno == ENOENT && flags == TAMIS_DIR_CREATE) {
        if (mkdirat(at, path, DIR_MODE) == 0)
            made = true;
        else if (errno != EEXIST)
            return errno;
        fd = openat(at, path, open_flags);
    }
    int rc = fd < 0 ? errno : dir_wrap(fd, out);
    if (rc != 0 && made) (void)unlinkat(at, path, AT_REMOVEDIR); // as if nothing had happened
    if (rc == 0 && created != NULL) *created = made;
    return rc;
}

static int posix_dir_open(const tamis_vfs *vfs, const char *path, uint32_t flags, tamis_dir **out,
                          int *created)
{
    (void)vfs;
    return dir_open_from(AT_FDCWD, path, 0, flags, out, created);
}

static int posix_dir_open_at(tamis_dir *dir, const char *name, uint32_t flags, tamis_dir **out,
                             int *created)
{
    *out = NULL;
    int rc = tm_vfs_check_name(name);
    if (rc == 0) rc = dir_open_from(as_dir(dir)->fd, name, O_NOFOLLOW, flags, out, created);
    struct stat st;
    if (rc == ENOTDIR && fstatat(as_dir(dir)->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISLNK(st.st_mode)) {
        rc = ELOOP; // the kernel says ENOTDIR when it is also asked for a directory
    }
    return rc;
}

// EINVAL is a file system that cannot sync directories and has nothing to sync.
static int posix_dir_sync(tamis_dir *dir)
{
    int rc = result(fsync(as_dir(dir)->fd));
    return rc == EINVAL ? 0 : rc;
}

static int posix_dir_list(tamis_dir *dir, int (*each)(void *ctx, const char *name), void *ctx)
{
    // A description of its own: the position in the directory is not shared with other listings.
    int fd = openat(as_dir(dir)->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return errno;
    DIR *stream = fdopendir(fd);
    if (stream == NULL) {
        int rc = errno;
        close(fd);
        return rc;
    }
    int rc = 0;
    for (;;) {
        errno = 0;
        struct dirent *entry = readdir(stream); // NOLINT(concurrency-mt-unsafe): our own stream
        if (entry == NULL) {
            rc = errno;
            break;
        }
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (each(ctx, entry->d_name) != 0) break;
    }
    closedir(stream);
    return rc;
}

static int posix_dir_free_bytes(tamis_dir *dir, uint64_t *bytes)
{
    struct statvfs st;
    *bytes = 0;
    if (fstatvfs(as_dir(dir)->fd, &st) != 0) return errno;
    uint64_t blocks = st.f_bavail, unit = st.f_frsize;
    *bytes = unit != 0 && blocks > UINT64_MAX / unit ? UINT64_MAX : blocks * unit;
    return 0;
}

static void posix_dir_close(tamis_dir *dir)
{
    if (dir == NULL) return;
    close(as_dir(dir)->fd);
    tm_free(as_dir(dir));
}

static int posix_dir_remove(const tamis_vfs *vfs, const char *path)
{
    (void)vfs;
    return result(unlinkat(AT_FDCWD, path, AT_REMOVEDIR));
}

// ---- Entries -----------------------------------------------------------------------------------

// Where the kernel or the file system has no rename that spares its target. A file is linked under
// its new name, which fails if that is taken, and unlinked under the old one; a crash in between
// leaves both names. What cannot be linked (a directory, or no links in this file system) is looked
// for and renamed: only a racing process could still lose a file.
static int rename_noreplace(int from_fd, const char *from, int to_fd, const char *to)
{
    if (linkat(from_fd, from, to_fd, to, 0) == 0) {
        if (unlinkat(from_fd, from, 0) == 0) return 0;
        int rc = errno;
        (void)unlinkat(to_fd, to, 0);
        return rc;
    }
    if (errno == EEXIST || errno == ENOENT || errno == EXDEV || errno == ENAMETOOLONG) return errno;
    struct stat st;
    if (fstatat(to_fd, to, &st, AT_SYMLINK_NOFOLLOW) == 0) return EEXIST;
    if (errno != ENOENT) return errno;
    return result(renameat(from_fd, from, to_fd, to));
}

static int posix_rename(tamis_dir *from_dir, const char *from, tamis_dir *to_dir, const char *to,
                        uint32_t flags)
{
    int rc = tm_vfs_check_name(from);
    if (rc == 0) rc = tm_vfs_check_name(to);
    if (rc != 0) return rc;
    if (flags > TAMIS_RENAME_NOREPLACE) return EINVAL;
    if (from_dir->vfs != to_dir->vfs) return EXDEV;
    int from_fd = as_dir(from_dir)->fd, to_fd = as_dir(to_dir)->fd;
    if (flags == TAMIS_RENAME_REPLACE) return result(renameat(from_fd, from, to_fd, to));
#ifdef RENAME_NOREPLACE
    rc = result(renameat2(from_fd, from, to_fd, to, RENAME_NOREPLACE));
    if (rc != ENOSYS && rc != EINVAL) return rc; // EINVAL: this file system does not know the flag
#endif
    return rename_noreplace(from_fd, from, to_fd, to);
}

static int posix_link(tamis_dir *from_dir, const char *from, tamis_dir *to_dir, const char *to)
{
    int rc = tm_vfs_check_name(from);
    if (rc == 0) rc = tm_vfs_check_name(to);
    if (rc != 0) return rc;
    if (from_dir->vfs != to_dir->vfs) return EXDEV;
    return result(linkat(as_dir(from_dir)->fd, from, as_dir(to_dir)->fd, to, 0));
}

static int posix_unlink(tamis_dir *dir, const char *name)
{
    int rc = tm_vfs_check_name(name);
    return rc != 0 ? rc : result(unlinkat(as_dir(dir)->fd, name, 0));
}

// ---- Files -------------------------------------------------------------------------------------

// What to call the failed open of a name: systems differ in what they say of things that are no
// files (ENXIO for a socket, EISDIR for a directory, EMLINK for a link).
static int open_error(int dir_fd, const char *name, int rc)
{
    struct stat st;
    if (rc == ENOENT || rc == EEXIST) return rc;
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || S_ISREG(st.st_mode)) return rc;
    return S_ISLNK(st.st_mode) ? ELOOP : EINVAL;
}

// A descriptor of a regular file, and its identity.
static int open_regular(int dir_fd, const char *name, int flags, int *out, struct stat *st)
{
    *out = -1;
    *st = (struct stat){.st_size = 0};
    int fd = openat(dir_fd, name, flags | OPEN_FLAGS, FILE_MODE);
    if (fd < 0) return open_error(dir_fd, name, errno);
    int rc = result(fstat(fd, st));
    if (rc == 0 && !S_ISREG(st->st_mode)) rc = EINVAL;
    if (rc != 0) {
        close(fd);
        return rc;
    }
    *out = fd;
    return 0;
}

static int posix_file_open(tamis_dir *dir, const char *name, uint32_t mode, tamis_file **out)
{
    static const int flags[] = {
        [TAMIS_FILE_READ] = O_RDONLY,
        [TAMIS_FILE_WRITE] = O_RDWR,
        [TAMIS_FILE_CREATE] = O_RDWR | O_CREAT | O_EXCL,
    };
    *out = NULL;
    int rc = tm_vfs_check_name(name);
    if (rc != 0) return rc;
    if (mode >= TM_COUNT(flags)) return EINVAL;
    posix_file *file = tm_calloc(1, sizeof *file);
    if (file == NULL) return ENOMEM;
    struct stat st;
    rc = open_regular(as_dir(dir)->fd, name, flags[mode], &file->fd, &st);
    if (rc != 0) {
        tm_free(file);
        return rc;
    }
    file->head.vfs = tamis_vfs_default();
    *out = &file->head;
    return 0;
}

static int posix_read_at(tamis_file *file, uint64_t offset, void *buf, size_t n, size_t *got)
{
    *got = 0;
    if (!in_range(offset, n)) return EINVAL;
    ssize_t done = pread(as_file(file)->fd, buf, TM_MIN(n, TRANSFER_MAX), (off_t)offset);
    if (done < 0) return errno;
    *got = (size_t)done;
    return 0;
}

static int posix_write_at(tamis_file *file, uint64_t offset, const void *buf, size_t n, size_t *put)
{
    *put = 0;
    if (!in_range(offset, n)) return EFBIG;
    ssize_t done = pwrite(as_file(file)->fd, buf, TM_MIN(n, TRANSFER_MAX), (off_t)offset);
    if (done < 0) return errno;
    *put = (size_t)done;
    return 0;
}

// Saves the file system from looking for room at each append, and tells early that there is none.
// Where it is not to be had, doing nothing is right: no promise depends on it.
static int posix_reserve(tamis_file *file, uint64_t offset, uint64_t n)
{
    if (!in_range(offset, n)) return EFBIG;
    if (n == 0) return 0;
#ifdef FALLOC_FL_KEEP_SIZE
    int rc = result(fallocate(as_file(file)->fd, FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)n));
    if (rc == ENOSYS || rc == EOPNOTSUPP) rc = 0;
    return rc;
#else
    (void)file;
    return 0;
#endif
}

static int posix_truncate(tamis_file *file, uint64_t size)
{
    if (!in_range(size, 0)) return EFBIG;
    return result(ftruncate(as_file(file)->fd, (off_t)size));
}

static int posix_file_size(tamis_file *file, uint64_t *size)
{
    struct stat st;
    *size = 0;
    if (fstat(as_file(file)->fd, &st) != 0) return errno;
    *size = (uint64_t)st.st_size;
    return 0;
}

static int posix_data_sync(tamis_file *file)
{
    return result(fdatasync(as_file(file)->fd));
}

// Starts the writing only: waiting here would take an error away from the next data_sync.
static int posix_write_back(tamis_file *file, uint64_t offset, uint64_t n)
{
    if (!in_range(offset, n)) return EINVAL;
    if (n == 0) return 0; // which the kernel takes for "to the end"
#ifdef SYNC_FILE_RANGE_WRITE
    int rc =
        result(sync_file_range(as_file(file)->fd, (off_t)offset, (off_t)n, SYNC_FILE_RANGE_WRITE));
    return rc == ENOSYS ? 0 : rc;
#else
    (void)file;
    return 0;
#endif
}

static int posix_advise(tamis_file *file, uint64_t offset, uint64_t n, int will_need)
{
    if (!in_range(offset, n)) return EINVAL;
    if (n == 0) return 0;
    int rc = posix_fadvise(as_file(file)->fd, (off_t)offset, (off_t)n,
                           will_need ? POSIX_FADV_WILLNEED : POSIX_FADV_DONTNEED);
    return rc == ENOSYS ? 0 : rc;
}

static int posix_map(tamis_file *file, uint64_t n, const void **out)
{
    *out = NULL;
    if (n == 0) return EINVAL;
    if (n > SIZE_MAX) return ENOTSUP;
    void *p = mmap(NULL, (size_t)n, PROT_READ, MAP_SHARED, as_file(file)->fd, 0);
    if (p == MAP_FAILED) return errno;
    *out = p;
    return 0;
}

static int posix_unmap(tamis_file *file, const void *p, uint64_t n)
{
    (void)file;
    // mmap gave it, and unmapping does not write.
    return result(munmap((void *)(uintptr_t)p, (size_t)n)); // NOLINT(performance-no-int-to-ptr)
}

// EINTR is no failure of close: the descriptor is gone, and closing it again could hit another's.
static int posix_file_close(tamis_file *file)
{
    if (file == NULL) return 0;
    int rc = result(close(as_file(file)->fd));
    tm_free(as_file(file));
    return rc == EINTR ? 0 : rc;
}

// ---- Locks -------------------------------------------------------------------------------------
//
// The kernel's lock belongs to the open file description (not, as fcntl's older ones, to the
// process, whose every close of any descriptor of the file would drop it). Between handles of one
// process the table below decides first, by device and inode, so that the answer is the same on
// kernels and file systems that do not tell their own descriptions apart.
//
// fork: the child's copy of the descriptor shares the description. The parent's unlock therefore
// releases explicitly, whatever children still hold; the child's unlock only closes its copy.

static tm_mutex lock_mutex = {PTHREAD_MUTEX_INITIALIZER};
static posix_file *lock_list; // by lock_mutex

static bool held_here(const posix_file *lock)
{
    for (const posix_file *p = lock_list; p != NULL; p = p->next_lock) {
        if (p->pid == lock->pid && p->dev == lock->dev && p->ino == lock->ino &&
            (p->kind == TAMIS_LOCK_EXCLUSIVE || lock->kind == TAMIS_LOCK_EXCLUSIVE)) {
            return true;
        }
    }
    return false;
}

static int kernel_lock(posix_file *lock)
{
    int rc = EINVAL;
#ifdef F_OFD_SETLK
    struct flock range = {
        .l_type = lock->kind == TAMIS_LOCK_EXCLUSIVE ? F_WRLCK : F_RDLCK,
        .l_whence = SEEK_SET,
    };
    rc = result(fcntl(lock->fd, F_OFD_SETLK, &range));
#endif
    if (rc == EINVAL) { // the other lock that belongs to the description
        lock->by_flock = true;
        rc = result(
            flock(lock->fd, (lock->kind == TAMIS_LOCK_EXCLUSIVE ? LOCK_EX : LOCK_SH) | LOCK_NB));
    }
    return rc == EAGAIN || rc == EACCES ? EWOULDBLOCK : rc;
}

static void kernel_unlock(const posix_file *lock)
{
#ifdef F_OFD_SETLK
    struct flock range = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    if (!lock->by_flock) (void)fcntl(lock->fd, F_OFD_SETLK, &range);
#endif
    if (lock->by_flock) (void)flock(lock->fd, LOCK_UN);
}

// A writer's lock file is made where it is missing. A reader must do with what is there in a folder
// that it may not write to.
static int lock_open(int dir_fd, const char *name, uint32_t kind, int *fd, struct stat *st)
{
    if (kind == TAMIS_LOCK_EXCLUSIVE) return open_regular(dir_fd, name, O_RDWR | O_CREAT, fd, st);
    int rc = open_regular(dir_fd, name, O_RDONLY, fd, st);
    if (rc != ENOENT) return rc;
    rc = open_regular(dir_fd, name, O_RDONLY | O_CREAT, fd, st);
    return rc == EACCES || rc == EPERM || rc == EROFS ? ENOENT : rc;
}

// One try. REPLACED: the file was, before it was locked, and the new one is to be tried.
static int lock_once(int dir_fd, const char *name, posix_file *lock)
{
    struct stat st, now;
    int rc = lock_open(dir_fd, name, lock->kind, &lock->fd, &st);
    if (rc != 0) return rc;
    lock->dev = st.st_dev;
    lock->ino = st.st_ino;
    lock->pid = getpid();

    tm_mutex_lock(&lock_mutex);
    rc = held_here(lock) ? EWOULDBLOCK : kernel_lock(lock);
    if (rc == 0 && (fstatat(dir_fd, name, &now, AT_SYMLINK_NOFOLLOW) != 0 ||
                    now.st_dev != st.st_dev || now.st_ino != st.st_ino)) {
        kernel_unlock(lock);
        rc = REPLACED;
    }
    if (rc == 0) {
        lock->next_lock = lock_list;
        lock_list = lock;
    }
    tm_mutex_unlock(&lock_mutex);

    if (rc != 0) close(lock->fd);
    return rc;
}

static int posix_lock(tamis_dir *dir, const char *name, uint32_t kind, tamis_file **out)
{
    *out = NULL;
    int rc = tm_vfs_check_name(name);
    if (rc != 0) return rc;
    if (kind > TAMIS_LOCK_EXCLUSIVE) return EINVAL;
    posix_file *lock = tm_calloc(1, sizeof *lock);
    if (lock == NULL) return ENOMEM;
    lock->head.vfs = tamis_vfs_default();
    lock->kind = kind;
    rc = REPLACED;
    for (int i = 0; i < LOCK_TRIES && rc == REPLACED; i++) {
        rc = lock_once(as_dir(dir)->fd, name, lock);
    }
    if (rc != 0) {
        tm_free(lock);
        return rc == REPLACED ? EWOULDBLOCK : rc; // others come and go
    }
    *out = &lock->head;
    return 0;
}

static int posix_unlock(tamis_file *lock_file)
{
    if (lock_file == NULL) return 0;
    posix_file *lock = as_file(lock_file);
    tm_mutex_lock(&lock_mutex);
    posix_file **link = &lock_list;
    while (*link != NULL && *link != lock) link = &(*link)->next_lock;
    if (*link != NULL) *link = lock->next_lock;
    if (lock->pid == getpid()) kernel_unlock(lock);
    tm_mutex_unlock(&lock_mutex);
    return posix_file_close(lock_file);
}

// ---- Clock and randomness ----------------------------------------------------------------------

static uint64_t posix_monotonic_ns(const tamis_vfs *vfs)
{
    (void)vfs;
    struct timespec t = {0, 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &t); // fails for a bad clock only
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t posix_wall_ms(const tamis_vfs *vfs)
{
    (void)vfs;
    struct timespec t = {0, 0};
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec < 0 ? 0 : (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

static void posix_sleep_us(const tamis_vfs *vfs, uint64_t us)
{
    (void)vfs;
    const uint64_t day_s = 86400; // longer than any wait here; keeps a 32-bit time_t from wrapping
    struct timespec left = {
        .tv_sec = (time_t)TM_MIN(us / 1000000u, day_s),
        .tv_nsec = (long)(us % 1000000u) * 1000,
    };
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {}
}

// For kernels without getrandom.
static int read_urandom(uint8_t *p, size_t n)
{
    struct stat st;
    int fd = openat(AT_FDCWD, "/dev/urandom", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return errno;
    int rc = result(fstat(fd, &st));
    if (rc == 0 && !S_ISCHR(st.st_mode)) rc = ENODEV; // a file of the same name is not random
    while (rc == 0 && n > 0) {
        ssize_t got = read(fd, p, n);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            rc = got < 0 ? errno : EIO;
            break;
        }
        p += got;
        n -= (size_t)got;
    }
    close(fd);
    return rc;
}

static int posix_random(const tamis_vfs *vfs, void *buf, size_t n)
{
    (void)vfs;
    uint8_t *p = buf;
    while (n > 0) {
        ssize_t got = getrandom(p, TM_MIN(n, 256), 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno == ENOSYS ? read_urandom(p, n) : errno;
        p += got;
        n -= (size_t)got;
    }
    return 0;
}

// ---- The table ---------------------------------------------------------------------------------

const tamis_vfs *tamis_vfs_default(void)
{
    static const tamis_vfs table = {
        .size = sizeof(tamis_vfs),
        .dir_open = posix_dir_open,
        .dir_open_at = posix_dir_open_at,
        .dir_sync = posix_dir_sync,
        .dir_list = posix_dir_list,
        .dir_free_bytes = posix_dir_free_bytes,
        .dir_close = posix_dir_close,
        .dir_remove = posix_dir_remove,
        .rename = posix_rename,
        .link = posix_link,
        .unlink = posix_unlink,
        .file_open = posix_file_open,
        .read_at = posix_read_at,
        .write_at = posix_write_at,
        .reserve = posix_reserve,
        .truncate = posix_truncate,
        .file_size = posix_file_size,
        .data_sync = posix_data_sync,
        .write_back = posix_write_back,
        .advise = posix_advise,
        .map = posix_map,
        .unmap = posix_unmap,
        .file_close = posix_file_close,
        .lock = posix_lock,
        .unlock = posix_unlock,
        .monotonic_ns = posix_monotonic_ns,
        .wall_ms = posix_wall_ms,
        .sleep_us = posix_sleep_us,
        .random = posix_random,
    };
    return &table;
}
