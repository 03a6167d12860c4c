// SPDX-License-Identifier: BSD-2-Clause
//
// vfs_support.h - what the tests of the file systems share. Include it first.
#ifndef VFS_SUPPORT_H
#define VFS_SUPPORT_H

#define _GNU_SOURCE

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/mem.h"
#include "base/random.h"
#include "tamis_vfs.h"

// Where the tests work on the operating system's files; made by support_main.
static char base_path[256];

static inline int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static inline int support_main(Suite *suite)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(base_path, sizeof base_path, "%s/tamis-test-XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(base_path) == NULL) {
        perror(base_path);
        return EXIT_FAILURE;
    }
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    nftw(base_path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

// For what has to happen in another process: prints what failed and ends that process.
#define CHILD_CHECK(x)                                                                             \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            fprintf(stderr, "%s:%d: in a child: %s\n", __FILE__, __LINE__, #x);                    \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static inline int run_child(void (*run)(void *arg), void *arg)
{
    pid_t pid = fork();
    if (pid == 0) {
        run(arg);
        exit(0);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    return status;
}

// ---- One file system under test ----------------------------------------------------------------

enum { POSIX = 0, MEMORY = 1, KINDS = 2 };

typedef struct env {
    int kind;
    const tamis_vfs *vfs;
    tamis_vfs *memory; // or NULL
    char path[300];    // of root
    tamis_dir *root;   // an empty directory
} env;

static inline env env_open(int kind)
{
    env e = {.kind = kind};
    if (kind == MEMORY) {
        ck_assert_int_eq(tamis_vfs_memory(&e.memory, NULL), TAMIS_OK);
        e.vfs = e.memory;
        strcpy(e.path, "/store");
    } else {
        e.vfs = tamis_vfs_default();
        snprintf(e.path, sizeof e.path, "%s/XXXXXX", base_path);
        ck_assert_ptr_nonnull(mkdtemp(e.path));
        strcat(e.path, "/store");
    }
    int created = 0;
    ck_assert_int_eq(e.vfs->dir_open(e.vfs, e.path, TAMIS_DIR_CREATE, &e.root, &created), 0);
    ck_assert_int_eq(created, 1);
    return e;
}

static inline void env_close(env *e)
{
    e->vfs->dir_close(e->root);
    tamis_vfs_free(e->memory);
}

// ---- Short ways --------------------------------------------------------------------------------

static inline tamis_file *open_file(tamis_dir *dir, const char *name, uint32_t mode)
{
    tamis_file *file = NULL;
    int rc = dir->vfs->file_open(dir, name, mode, &file);
    ck_assert_msg(rc == 0, "open %s: %s", name, strerror(rc));
    ck_assert_ptr_eq(file->vfs, dir->vfs);
    return file;
}

static inline tamis_dir *open_dir(tamis_dir *dir, const char *name, uint32_t flags)
{
    tamis_dir *out = NULL;
    int rc = dir->vfs->dir_open_at(dir, name, flags, &out, NULL);
    ck_assert_msg(rc == 0, "open directory %s: %s", name, strerror(rc));
    ck_assert_ptr_eq(out->vfs, dir->vfs);
    return out;
}

static inline void close_file(tamis_file *file)
{
    ck_assert_int_eq(file->vfs->file_close(file), 0);
}

static inline void write_all(tamis_file *file, uint64_t offset, const void *data, size_t n)
{
    const char *p = data;
    while (n > 0) {
        size_t put = 0;
        ck_assert_int_eq(file->vfs->write_at(file, offset, p, n, &put), 0);
        ck_assert(put > 0 && put <= n);
        offset += put;
        p += put;
        n -= put;
    }
}

static inline void fill(tamis_file *file, uint64_t offset, char c, size_t n)
{
    char *data = malloc(n + 1);
    memset(data, c, n);
    write_all(file, offset, data, n);
    free(data);
}

static inline uint64_t size_of(tamis_file *file)
{
    uint64_t size = 0;
    ck_assert_int_eq(file->vfs->file_size(file, &size), 0);
    return size;
}

// One read: all there is, up to n.
static inline size_t read_some(tamis_file *file, uint64_t offset, void *buf, size_t n)
{
    size_t got = 0;
    ck_assert_int_eq(file->vfs->read_at(file, offset, buf, n, &got), 0);
    return got;
}

// A new file of that text; the entry is not synced.
static inline void make_file(tamis_dir *dir, const char *name, const char *text)
{
    tamis_file *file = open_file(dir, name, TAMIS_FILE_CREATE);
    write_all(file, 0, text, strlen(text));
    ck_assert_int_eq(dir->vfs->data_sync(file), 0);
    close_file(file);
}

static inline bool exists(tamis_dir *dir, const char *name)
{
    tamis_file *file = NULL;
    int rc = dir->vfs->file_open(dir, name, TAMIS_FILE_READ, &file);
    if (rc == 0) close_file(file);
    ck_assert(rc == 0 || rc == ENOENT || rc == EINVAL);
    return rc != ENOENT;
}

// The content of a small file as a string, "-" if there is none of that name.
static inline const char *text_of(tamis_dir *dir, const char *name)
{
    static char text[8][256]; // so that a few can be looked at together
    static unsigned turn;
    char *out = text[turn++ % 8];
    if (!exists(dir, name)) return "-";
    tamis_file *file = open_file(dir, name, TAMIS_FILE_READ);
    size_t got = read_some(file, 0, out, 255);
    out[got] = '\0';
    close_file(file);
    return out;
}

// ---- A file system that crashes ----------------------------------------------------------------

typedef struct disk {
    tamis_vfs *vfs;
    tamis_dir *root;
} disk;

static inline disk disk_open(void)
{
    disk d = {NULL, NULL};
    ck_assert_int_eq(tamis_vfs_memory(&d.vfs, NULL), TAMIS_OK);
    ck_assert_int_eq(d.vfs->dir_open(d.vfs, "/", TAMIS_DIR_EXISTING, &d.root, NULL), 0);
    return d;
}

static inline void disk_close(disk *d)
{
    d->vfs->dir_close(d->root);
    tamis_vfs_free(d->vfs);
}

static inline void crash(disk *d, tamis_crash kind, uint64_t seed)
{
    tamis_vfs_memory_crash(d->vfs, kind, seed);
    d->vfs->dir_close(d->root);
    ck_assert_int_eq(d->vfs->dir_open(d->vfs, "/", TAMIS_DIR_EXISTING, &d->root, NULL), 0);
}

static inline void sync_dir(tamis_dir *dir)
{
    ck_assert_int_eq(dir->vfs->dir_sync(dir), 0);
}

static inline void sync_data(tamis_file *file)
{
    ck_assert_int_eq(file->vfs->data_sync(file), 0);
}

// The file before the last crash is of no use any more.
static inline void close_dead(tamis_file *file)
{
    ck_assert_int_eq(file->vfs->file_close(file), EIO);
}

#endif // VFS_SUPPORT_H
