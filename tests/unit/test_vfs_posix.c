// SPDX-License-Identifier: BSD-2-Clause
//
// What only the operating system's files can show: planted links, FIFOs and devices, modes, other
// processes, and kernels that lack a call (by a filter in a child process).
#include "tests/unit/vfs_support.h"

#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

static const char *path_in(const env *e, const char *name)
{
    static char path[4][600];
    static unsigned turn;
    char *out = path[turn++ % 4];
    snprintf(out, sizeof path[0], "%s/%s", e->path, name);
    return out;
}

static size_t open_descriptors(void)
{
    size_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir != NULL && readdir(dir) != NULL) count++;
    if (dir != NULL) closedir(dir);
    return count;
}

// ---- What may stand under a name ---------------------------------------------------------------

static int try_open(env *e, const char *name, uint32_t mode)
{
    tamis_file *file = NULL;
    int rc = e->vfs->file_open(e->root, name, mode, &file);
    if (rc == 0) close_file(file);
    return rc;
}

static int try_lock(env *e, const char *name, uint32_t kind)
{
    tamis_file *lock = NULL;
    int rc = e->vfs->lock(e->root, name, kind, &lock);
    if (rc == 0) ck_assert_int_eq(e->vfs->unlock(lock), 0);
    return rc;
}

static void refuse(env *e, const char *name, int rc)
{
    alarm(10); // an open of a FIFO could wait for ever
    ck_assert_int_eq(try_open(e, name, TAMIS_FILE_READ), rc);
    ck_assert_int_eq(try_open(e, name, TAMIS_FILE_WRITE), rc);
    ck_assert_int_eq(try_open(e, name, TAMIS_FILE_CREATE), EEXIST);
    ck_assert_int_eq(try_lock(e, name, TAMIS_LOCK_EXCLUSIVE), rc);
    ck_assert_int_eq(try_lock(e, name, TAMIS_LOCK_SHARED), rc);
    alarm(0);
}

START_TEST(only_regular_files_are_opened)
{
    env e = env_open(POSIX);
    make_file(e.root, "file", "content");
    size_t before = open_descriptors();
    ck_assert_int_eq(symlink("file", path_in(&e, "link")), 0);
    ck_assert_int_eq(symlink("nothing", path_in(&e, "dangling")), 0);
    ck_assert_int_eq(symlink("loop", path_in(&e, "loop")), 0);
    ck_assert_int_eq(mkfifo(path_in(&e, "fifo"), 0600), 0);
    ck_assert_int_eq(mkdir(path_in(&e, "directory"), 0700), 0);
    ck_assert_int_eq(symlink("directory", path_in(&e, "to-directory")), 0);
    refuse(&e, "link", ELOOP);
    refuse(&e, "dangling", ELOOP);
    refuse(&e, "loop", ELOOP);
    refuse(&e, "to-directory", ELOOP);
    refuse(&e, "fifo", EINVAL);
    refuse(&e, "directory", EINVAL);

    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, path_in(&e, "socket"), sizeof address.sun_path - 1);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0) refuse(&e, "socket", EINVAL);
    close(fd);
    // Only for root, and not in every sandbox.
    if (mknod(path_in(&e, "null"), S_IFCHR | 0600, makedev(1, 3)) == 0) {
        refuse(&e, "null", EINVAL);
    }
    ck_assert_uint_eq(open_descriptors(), before);
    ck_assert(!exists(e.root, "nothing")); // no link was followed to make its target
    ck_assert_str_eq(text_of(e.root, "file"), "content");
    env_close(&e);
}
END_TEST

START_TEST(entries_are_never_followed)
{
    env e = env_open(POSIX);
    tamis_dir *dir = NULL;
    make_file(e.root, "file", "content");
    ck_assert_int_eq(mkdir(path_in(&e, "directory"), 0700), 0);
    ck_assert_int_eq(symlink("directory", path_in(&e, "link")), 0);
    ck_assert_int_eq(e.vfs->dir_open_at(e.root, "link", TAMIS_DIR_EXISTING, &dir, NULL), ELOOP);
    ck_assert_int_eq(e.vfs->dir_open_at(e.root, "link", TAMIS_DIR_CREATE, &dir, NULL), ELOOP);
    ck_assert_ptr_null(dir);
    ck_assert_int_eq(symlink("file", path_in(&e, "to-file")), 0);
    ck_assert_int_eq(e.vfs->unlink(e.root, "to-file"), 0); // the link goes, not the file
    ck_assert_int_eq(symlink("file", path_in(&e, "to-file")), 0);
    make_file(e.root, "new", "N");
    ck_assert_int_eq(e.vfs->rename(e.root, "new", e.root, "to-file", TAMIS_RENAME_NOREPLACE),
                     EEXIST);
    ck_assert_int_eq(e.vfs->rename(e.root, "new", e.root, "to-file", TAMIS_RENAME_REPLACE), 0);
    ck_assert_str_eq(text_of(e.root, "to-file"), "N");
    ck_assert_str_eq(text_of(e.root, "file"), "content");
    env_close(&e);
}
END_TEST

START_TEST(the_store_itself_may_be_behind_a_link)
{
    env e = env_open(POSIX);
    tamis_dir *dir = NULL;
    int created = 7;
    make_file(e.root, "file", "content");
    char link[400];
    snprintf(link, sizeof link, "%s-link", e.path);
    ck_assert_int_eq(symlink("store", link), 0);
    ck_assert_int_eq(e.vfs->dir_open(e.vfs, link, TAMIS_DIR_CREATE, &dir, &created), 0);
    ck_assert_int_eq(created, 0);
    ck_assert_str_eq(text_of(dir, "file"), "content");
    e.vfs->dir_close(dir);
    snprintf(link, sizeof link, "%s-dangling", e.path);
    ck_assert_int_eq(symlink("nowhere", link), 0);
    ck_assert_int_eq(e.vfs->dir_open(e.vfs, link, TAMIS_DIR_CREATE, &dir, &created), ENOENT);
    ck_assert_ptr_null(dir);
    ck_assert_int_eq(created, 0);
    env_close(&e);
}
END_TEST

// ---- Modes and descriptors ---------------------------------------------------------------------

static unsigned mode_of(const env *e, const char *name)
{
    struct stat st;
    ck_assert_int_eq(lstat(path_in(e, name), &st), 0);
    return st.st_mode & 07777;
}

START_TEST(modes_are_private)
{
    env e = env_open(POSIX);
    static const struct {
        mode_t umask;
        unsigned dir, file;
    } cases[] = {{0000, 0700, 0600}, {0077, 0700, 0600}, {0200, 0500, 0400}};
    for (size_t i = 0; i < TM_COUNT(cases); i++) {
        char dir[8], file[8], lock[8];
        snprintf(dir, sizeof dir, "d%zu", i);
        snprintf(file, sizeof file, "f%zu", i);
        snprintf(lock, sizeof lock, "l%zu", i);
        mode_t old = umask(cases[i].umask);
        e.vfs->dir_close(open_dir(e.root, dir, TAMIS_DIR_CREATE));
        close_file(open_file(e.root, file, TAMIS_FILE_CREATE));
        ck_assert_int_eq(try_lock(&e, lock, TAMIS_LOCK_EXCLUSIVE), 0);
        umask(old);
        ck_assert_uint_eq(mode_of(&e, dir), cases[i].dir);
        ck_assert_uint_eq(mode_of(&e, file), cases[i].file);
        ck_assert_uint_eq(mode_of(&e, lock), cases[i].file);
    }
    ck_assert_uint_eq(mode_of(&e, "."), 0700);
    env_close(&e);
}
END_TEST

// Gives up root's rights, before which modes do not count. Such a child leaves by _exit: it could
// not write what tools add to exit.
static void become_nobody(void)
{
    if (geteuid() == 0) CHILD_CHECK(setgid(65534) == 0 && setuid(65534) == 0);
}

static void make_closed_directory(void *arg)
{
    env *e = arg;
    tamis_dir *dir = NULL;
    int created = 7;
    become_nobody();
    umask(0777);
    CHILD_CHECK(e->vfs->dir_open_at(e->root, "d", TAMIS_DIR_CREATE, &dir, &created) == EACCES);
    CHILD_CHECK(dir == NULL && created == 0);
    _exit(0);
}

START_TEST(a_directory_that_cannot_be_opened_is_not_left_behind)
{
    env e = env_open(POSIX);
    ck_assert_int_eq(chmod(e.path, 0777), 0);
    ck_assert_int_eq(run_child(make_closed_directory, &e), 0);
    ck_assert_int_ne(access(path_in(&e, "d"), F_OK), 0);
    env_close(&e);
}
END_TEST

START_TEST(descriptors_do_not_survive_exec_and_do_not_leak)
{
    size_t before = open_descriptors();
    env e = env_open(POSIX);
    tamis_file *file = open_file(e.root, "f", TAMIS_FILE_CREATE), *lock;
    ck_assert_int_eq(e.vfs->lock(e.root, "LOCK", TAMIS_LOCK_EXCLUSIVE, &lock), 0);
    ck_assert_uint_eq(open_descriptors(), before + 3);
    size_t closed_on_exec = 0;
    for (int fd = 0; fd < 100; fd++) {
        char link[64], target[600];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, target, sizeof target - 1);
        if (n < 0) continue;
        target[n] = '\0';
        if (strncmp(target, e.path, strlen(e.path)) != 0) continue;
        ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        closed_on_exec++;
    }
    ck_assert_uint_eq(closed_on_exec, 3);

    // At the end of descriptors every open fails and leaves nothing.
    struct rlimit limit, whole;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &whole), 0);
    limit = whole;
    limit.rlim_cur = 3;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    tamis_dir *dir = NULL;
    tamis_file *other = NULL;
    int created = 7;
    ck_assert_int_eq(e.vfs->file_open(e.root, "f", TAMIS_FILE_READ, &other), EMFILE);
    ck_assert_int_eq(e.vfs->file_open(e.root, "g", TAMIS_FILE_CREATE, &other), EMFILE);
    ck_assert_int_eq(e.vfs->lock(e.root, "LOCK", TAMIS_LOCK_SHARED, &other), EMFILE);
    ck_assert_int_eq(e.vfs->dir_open(e.vfs, "/", TAMIS_DIR_CREATE, &dir, &created), EMFILE);
    ck_assert_int_eq(created, 0);
    size_t listed = 0;
    ck_assert_int_eq(e.vfs->dir_list(e.root, NULL, &listed), EMFILE);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &whole), 0);
    ck_assert(other == NULL && dir == NULL);
    ck_assert_int_eq(e.vfs->unlock(lock), 0);
    close_file(file);
    env_close(&e);
}
END_TEST

START_TEST(write_errors_are_told)
{
    env e = env_open(POSIX);
    tamis_file *file = open_file(e.root, "f", TAMIS_FILE_CREATE);
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {10000, RLIM_INFINITY};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    char buf[8000] = {0};
    size_t put = 7;
    ck_assert_int_eq(e.vfs->write_at(file, 0, buf, sizeof buf, &put), 0);
    ck_assert_uint_eq(put, sizeof buf);
    ck_assert_int_eq(e.vfs->write_at(file, put, buf, sizeof buf, &put), 0); // a short one
    ck_assert_uint_eq(put, 2000);
    ck_assert_int_eq(e.vfs->write_at(file, 10000, buf, sizeof buf, &put), EFBIG);
    ck_assert_uint_eq(put, 0);
    ck_assert_int_eq(e.vfs->truncate(file, 20000), EFBIG);
    ck_assert_uint_eq(size_of(file), 10000);
    close_file(file);
    env_close(&e);
}
END_TEST

// ---- Locks among processes ---------------------------------------------------------------------

typedef struct lock_case {
    env *e;
    uint32_t kind;
    int want;
} lock_case;

static void lock_in_child(void *arg)
{
    const lock_case *c = arg;
    tamis_file *lock = NULL;
    int rc = c->e->vfs->lock(c->e->root, "LOCK", c->kind, &lock);
    CHILD_CHECK(rc == c->want);
    // The child ends without unlocking; its end must not disturb the parent's lock.
}

static void expect_in_child(env *e, uint32_t kind, int want)
{
    lock_case c = {e, kind, want};
    ck_assert_int_eq(run_child(lock_in_child, &c), 0);
}

static void locks_among_processes(env *e)
{
    tamis_file *lock;
    for (int round = 0; round < 2; round++) {
        ck_assert_int_eq(e->vfs->lock(e->root, "LOCK", TAMIS_LOCK_EXCLUSIVE, &lock), 0);
        for (int i = 0; i < 2; i++) {
            expect_in_child(e, TAMIS_LOCK_EXCLUSIVE, EWOULDBLOCK);
            expect_in_child(e, TAMIS_LOCK_SHARED, EWOULDBLOCK);
            close_file(open_file(e->root, "LOCK", TAMIS_FILE_WRITE)); // loses nothing
        }
        ck_assert_int_eq(e->vfs->unlock(lock), 0);
        expect_in_child(e, TAMIS_LOCK_EXCLUSIVE, 0);
        ck_assert_int_eq(e->vfs->lock(e->root, "LOCK", TAMIS_LOCK_SHARED, &lock), 0);
        expect_in_child(e, TAMIS_LOCK_SHARED, 0);
        expect_in_child(e, TAMIS_LOCK_EXCLUSIVE, EWOULDBLOCK);
        ck_assert_int_eq(e->vfs->unlock(lock), 0);
        expect_in_child(e, TAMIS_LOCK_EXCLUSIVE, 0);
    }
}

START_TEST(locks_hold_against_other_processes)
{
    env e = env_open(POSIX);
    locks_among_processes(&e);
    env_close(&e);
}
END_TEST

static void unlock_inherited(void *arg)
{
    tamis_file *lock = arg;
    CHILD_CHECK(lock->vfs->unlock(lock) == 0);
}

START_TEST(a_child_cannot_give_up_its_parents_lock)
{
    env e = env_open(POSIX);
    tamis_file *lock;
    ck_assert_int_eq(e.vfs->lock(e.root, "LOCK", TAMIS_LOCK_EXCLUSIVE, &lock), 0);
    ck_assert_int_eq(run_child(unlock_inherited, lock), 0);
    expect_in_child(&e, TAMIS_LOCK_EXCLUSIVE, EWOULDBLOCK);
    ck_assert_int_eq(try_lock(&e, "LOCK", TAMIS_LOCK_EXCLUSIVE), EWOULDBLOCK);
    ck_assert_int_eq(e.vfs->unlock(lock), 0);
    env_close(&e);
}
END_TEST

START_TEST(a_child_does_not_keep_its_parents_lock)
{
    env e = env_open(POSIX);
    tamis_file *lock;
    int to_child[2], to_parent[2];
    char c = 0;
    ck_assert_int_eq(pipe(to_child) | pipe(to_parent), 0);
    ck_assert_int_eq(e.vfs->lock(e.root, "LOCK", TAMIS_LOCK_EXCLUSIVE, &lock), 0);
    pid_t pid = fork();
    if (pid == 0) { // has a copy of the lock's descriptor, and of the table
        CHILD_CHECK(try_lock(&e, "LOCK", TAMIS_LOCK_EXCLUSIVE) == EWOULDBLOCK);
        CHILD_CHECK(write(to_parent[1], "x", 1) == 1);
        CHILD_CHECK(read(to_child[0], &c, 1) == 1);
        CHILD_CHECK(try_lock(&e, "LOCK", TAMIS_LOCK_EXCLUSIVE) == 0);
        _exit(0);
    }
    ck_assert_int_eq(read(to_parent[0], &c, 1), 1);
    ck_assert_int_eq(e.vfs->unlock(lock), 0); // while the child lives
    ck_assert_int_eq(try_lock(&e, "LOCK", TAMIS_LOCK_EXCLUSIVE), 0);
    ck_assert_int_eq(write(to_child[1], "x", 1), 1);
    int status = -1;
    waitpid(pid, &status, 0);
    ck_assert_int_eq(status, 0);
    env_close(&e);
}
END_TEST

static void lock_read_only(void *arg)
{
    env *e = arg;
    become_nobody();
    tamis_dir *dir = NULL;
    tamis_file *lock = NULL, *other = NULL;
    CHILD_CHECK(e->vfs->dir_open(e->vfs, e->path, TAMIS_DIR_CREATE, &dir, NULL) == 0);
    CHILD_CHECK(e->vfs->lock(dir, "LOCK", TAMIS_LOCK_SHARED, &lock) == 0);
    CHILD_CHECK(e->vfs->lock(dir, "LOCK", TAMIS_LOCK_EXCLUSIVE, &other) == EACCES);
    CHILD_CHECK(e->vfs->lock(dir, "missing", TAMIS_LOCK_SHARED, &other) == ENOENT);
    CHILD_CHECK(e->vfs->lock(dir, "missing", TAMIS_LOCK_EXCLUSIVE, &other) == EACCES);
    CHILD_CHECK(e->vfs->unlock(lock) == 0);
    CHILD_CHECK(e->vfs->file_open(dir, "new", TAMIS_FILE_CREATE, &other) == EACCES);
    CHILD_CHECK(other == NULL);
    e->vfs->dir_close(dir);
    _exit(0);
}

START_TEST(a_shared_lock_needs_no_right_to_write)
{
    env e = env_open(POSIX);
    make_file(e.root, "LOCK", "");
    char parent[400];
    snprintf(parent, sizeof parent, "%s/..", e.path);
    ck_assert_int_eq(chmod(parent, 0755) | chmod(base_path, 0755), 0);
    ck_assert_int_eq(chmod(path_in(&e, "LOCK"), 0444) | chmod(e.path, 0555), 0);
    ck_assert_int_eq(run_child(lock_read_only, &e), 0);
    ck_assert_int_eq(chmod(e.path, 0755), 0);
    env_close(&e);
}
END_TEST

// ---- Kernels that lack something ---------------------------------------------------------------

// From now on the system call nr answers error in this process; with arg >= 0 only where that
// argument has the value. False if the sandbox does not allow filters.
static bool deny(long nr, int arg, uint32_t value, int error)
{
    const uint32_t low = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0;
    uint32_t at =
        (uint32_t)offsetof(struct seccomp_data, args) + 8 * (uint32_t)TM_MAX(arg, 0) + low;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, arg >= 0 ? 1 : 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = TM_COUNT(code), .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

#define DENY(...)                                                                                  \
    do {                                                                                           \
        if (!deny(__VA_ARGS__)) _exit(0);                                                          \
    } while (0)

static void expect_noreplace(env *e)
{
    const tamis_vfs *vfs = e->vfs;
    struct stat st;
    CHILD_CHECK(vfs->rename(e->root, "a", e->root, "b", TAMIS_RENAME_NOREPLACE) == EEXIST);
    CHILD_CHECK(vfs->rename(e->root, "a", e->root, "a", TAMIS_RENAME_NOREPLACE) == EEXIST);
    CHILD_CHECK(vfs->rename(e->root, "none", e->root, "c", TAMIS_RENAME_NOREPLACE) == ENOENT);
    CHILD_CHECK(vfs->rename(e->root, "a", e->root, "c", TAMIS_RENAME_NOREPLACE) == 0);
    CHILD_CHECK(lstat(path_in(e, "a"), &st) != 0 && errno == ENOENT);
    CHILD_CHECK(lstat(path_in(e, "c"), &st) == 0 && st.st_size == 1 && st.st_nlink == 1);
    CHILD_CHECK(lstat(path_in(e, "b"), &st) == 0 && st.st_size == 2);
    CHILD_CHECK(vfs->rename(e->root, "d", e->root, "b", TAMIS_RENAME_NOREPLACE) == EEXIST);
    CHILD_CHECK(vfs->rename(e->root, "d", e->root, "e", TAMIS_RENAME_NOREPLACE) == EEXIST);
    CHILD_CHECK(vfs->rename(e->root, "d", e->root, "d2", TAMIS_RENAME_NOREPLACE) == 0);
    CHILD_CHECK(lstat(path_in(e, "d2"), &st) == 0 && S_ISDIR(st.st_mode));
    CHILD_CHECK(vfs->rename(e->root, "b", e->root, "b2", TAMIS_RENAME_REPLACE) == 0);
}

static void noreplace_by_links(void *arg)
{
    DENY(SYS_renameat2, 4, 1, ENOSYS);
    expect_noreplace(arg);
}

static void noreplace_unknown_to_the_file_system(void *arg)
{
    DENY(SYS_renameat2, 4, 1, EINVAL);
    expect_noreplace(arg);
}

static void noreplace_by_a_look(void *arg)
{
    DENY(SYS_renameat2, 4, 1, ENOSYS);
    DENY(SYS_linkat, -1, 0, EPERM);
    expect_noreplace(arg);
}

static void noreplace_keeps_the_source(void *arg)
{
    env *e = arg;
    struct stat st;
    DENY(SYS_renameat2, 4, 1, ENOSYS);
    DENY(SYS_unlinkat, 2, 0, EIO);
    CHILD_CHECK(e->vfs->rename(e->root, "a", e->root, "c", TAMIS_RENAME_NOREPLACE) == EIO);
    CHILD_CHECK(lstat(path_in(e, "a"), &st) == 0);
}

static void locks_by_flock(void *arg)
{
    env *e = arg;
    DENY(SYS_fcntl, 1, F_OFD_SETLK, EINVAL);
    locks_among_processes(e);
}

static void lock_errors_are_told(void *arg)
{
    env *e = arg;
    tamis_file *lock = NULL;
    DENY(SYS_fcntl, 1, F_OFD_SETLK, ENOLCK);
    CHILD_CHECK(e->vfs->lock(e->root, "LOCK", TAMIS_LOCK_EXCLUSIVE, &lock) == ENOLCK);
    CHILD_CHECK(lock == NULL);
}

static void random_without_the_call(void *arg)
{
    env *e = arg;
    uint8_t a[600] = {0}, b[600] = {0};
    DENY(SYS_getrandom, -1, 0, ENOSYS);
    CHILD_CHECK(getrandom(a, 1, 0) == -1 && errno == ENOSYS);
    CHILD_CHECK(e->vfs->random(e->vfs, a, sizeof a) == 0);
    CHILD_CHECK(e->vfs->random(e->vfs, b, sizeof b) == 0);
    CHILD_CHECK(memcmp(a, b, 16) != 0 && memcmp(a + 500, b + 500, 16) != 0);
}

static void random_errors_are_told(void *arg)
{
    env *e = arg;
    uint8_t a[16];
    DENY(SYS_getrandom, -1, 0, EPERM);
    CHILD_CHECK(e->vfs->random(e->vfs, a, sizeof a) == EPERM);
}

static void no_hints(void *arg)
{
    env *e = arg;
    tamis_file *file = open_file(e->root, "b", TAMIS_FILE_WRITE);
    DENY(SYS_fallocate, -1, 0, EOPNOTSUPP);
    DENY(SYS_sync_file_range, -1, 0, ENOSYS);
    DENY(SYS_fadvise64, -1, 0, ENOSYS);
    CHILD_CHECK(e->vfs->reserve(file, 0, 1000) == 0);
    CHILD_CHECK(e->vfs->write_back(file, 0, 1000) == 0);
    CHILD_CHECK(e->vfs->advise(file, 0, 1000, 1) == 0);
    CHILD_CHECK(e->vfs->file_close(file) == 0);
}

static void no_reservation(void *arg)
{
    env *e = arg;
    tamis_file *file = open_file(e->root, "b", TAMIS_FILE_WRITE);
    DENY(SYS_fallocate, 3, 1000, ENOSYS);
    DENY(SYS_fallocate, 3, 2000, ENOSPC);
    CHILD_CHECK(e->vfs->reserve(file, 0, 1000) == 0);
    CHILD_CHECK(e->vfs->reserve(file, 0, 2000) == ENOSPC);
    CHILD_CHECK(e->vfs->file_close(file) == 0);
}

static void sync_errors_are_told(void *arg)
{
    env *e = arg;
    tamis_file *file = open_file(e->root, "b", TAMIS_FILE_WRITE);
    DENY(SYS_fdatasync, -1, 0, EIO);
    DENY(SYS_fsync, -1, 0, EIO);
    CHILD_CHECK(e->vfs->data_sync(file) == EIO);
    CHILD_CHECK(e->vfs->dir_sync(e->root) == EIO);
    CHILD_CHECK(e->vfs->file_close(file) == 0);
}

static void directories_without_sync(void *arg)
{
    env *e = arg;
    DENY(SYS_fsync, -1, 0, EINVAL);
    CHILD_CHECK(e->vfs->dir_sync(e->root) == 0);
}

static void (*const lacking[])(void *arg) = {
    noreplace_by_links,
    noreplace_unknown_to_the_file_system,
    noreplace_by_a_look,
    noreplace_keeps_the_source,
    locks_by_flock,
    lock_errors_are_told,
    random_without_the_call,
    random_errors_are_told,
    no_hints,
    no_reservation,
    sync_errors_are_told,
    directories_without_sync,
};

START_TEST(kernels_that_lack_a_call)
{
    env e = env_open(POSIX);
    make_file(e.root, "a", "A");
    make_file(e.root, "b", "BB");
    e.vfs->dir_close(open_dir(e.root, "d", TAMIS_DIR_CREATE));
    e.vfs->dir_close(open_dir(e.root, "e", TAMIS_DIR_CREATE));
    ck_assert_int_eq(run_child(lacking[_i], &e), 0);
    env_close(&e);
}
END_TEST

// ---- A lock file that is replaced --------------------------------------------------------------

typedef struct churn {
    env *e;
    const char *held; // says that somebody holds the lock
    int taken;
} churn;

// Takes the lock, removes its file as the deletion of a store does, and gives it up, over and over.
static void churn_locks(void *arg)
{
    churn *c = arg;
    const tamis_vfs *vfs = c->e->vfs;
    while (c->taken < 200) {
        tamis_file *lock;
        int rc = vfs->lock(c->e->root, "LOCK", TAMIS_LOCK_EXCLUSIVE, &lock);
        CHILD_CHECK(rc == 0 || rc == EWOULDBLOCK);
        if (rc != 0) continue;
        int fd = open(c->held, O_CREAT | O_EXCL | O_WRONLY, 0600);
        CHILD_CHECK(fd >= 0); // two holders at once
        close(fd);
        CHILD_CHECK(unlink(c->held) == 0);
        CHILD_CHECK(vfs->unlink(c->e->root, "LOCK") == 0);
        CHILD_CHECK(vfs->unlock(lock) == 0);
        c->taken++;
    }
}

START_TEST(the_lock_is_on_the_file_that_has_the_name)
{
    env e = env_open(POSIX);
    churn c = {.e = &e, .held = path_in(&e, "held")};
    pid_t pid = fork();
    if (pid == 0) {
        churn_locks(&c);
        _exit(0);
    }
    int mine = run_child(churn_locks, &c), status = -1;
    waitpid(pid, &status, 0);
    ck_assert_int_eq(mine, 0);
    ck_assert_int_eq(status, 0);
    env_close(&e);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("vfs_posix");
    TCase *t = tcase_create("posix");
    tcase_add_test(t, only_regular_files_are_opened);
    tcase_add_test(t, entries_are_never_followed);
    tcase_add_test(t, the_store_itself_may_be_behind_a_link);
    tcase_add_test(t, modes_are_private);
    tcase_add_test(t, a_directory_that_cannot_be_opened_is_not_left_behind);
    tcase_add_test(t, descriptors_do_not_survive_exec_and_do_not_leak);
    tcase_add_test(t, write_errors_are_told);
    tcase_add_test(t, locks_hold_against_other_processes);
    tcase_add_test(t, a_child_cannot_give_up_its_parents_lock);
    tcase_add_test(t, a_child_does_not_keep_its_parents_lock);
    tcase_add_test(t, a_shared_lock_needs_no_right_to_write);
    tcase_add_loop_test(t, kernels_that_lack_a_call, 0, (int)TM_COUNT(lacking));
    tcase_add_test(t, the_lock_is_on_the_file_that_has_the_name);
    tcase_set_timeout(t, 60);
    suite_add_tcase(s, t);
    return support_main(s);
}
