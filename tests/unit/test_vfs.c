// SPDX-License-Identifier: BSD-2-Clause
//
// What every tamis_vfs must do, run on the operating system's files (_i = 0) and those in memory
// (_i = 1).
#include "tests/unit/vfs_support.h"

// ---- Directories -------------------------------------------------------------------------------

static int open_at_path(env *e, const char *path, uint32_t flags, int *created)
{
    tamis_dir *dir = (tamis_dir *)e;
    int rc = e->vfs->dir_open(e->vfs, path, flags, &dir, created);
    ck_assert((dir != NULL) == (rc == 0));
    if (dir != NULL) e->vfs->dir_close(dir);
    return rc;
}

START_TEST(directories_open_by_path)
{
    env e = env_open(_i);
    char path[400];
    int created = 7;
    snprintf(path, sizeof path, "%s/a", e.path);
    ck_assert_int_eq(open_at_path(&e, path, TAMIS_DIR_EXISTING, &created), ENOENT);
    ck_assert_int_eq(created, 0);
    ck_assert_int_eq(open_at_path(&e, path, TAMIS_DIR_CREATE, &created), 0);
    ck_assert_int_eq(created, 1);
    ck_assert_int_eq(open_at_path(&e, path, TAMIS_DIR_CREATE, &created), 0);
    ck_assert_int_eq(created, 0);
    ck_assert_int_eq(open_at_path(&e, path, TAMIS_DIR_EXISTING, NULL), 0);
    ck_assert_int_eq(open_at_path(&e, path, 2, NULL), EINVAL);

    snprintf(path, sizeof path, "%s//./a/../a/", e.path);
    ck_assert_int_eq(open_at_path(&e, path, TAMIS_DIR_EXISTING, NULL), 0);
    snprintf(path, sizeof path, "%s/none/a", e.path);
    ck_assert_int_eq(open_at_path(&e, path, TAMIS_DIR_CREATE, NULL), ENOENT); // no parent
    make_file(e.root, "file", "x");
    snprintf(path, sizeof path, "%s/file", e.path);
    ck_assert_int_eq(open_at_path(&e, path, TAMIS_DIR_CREATE, NULL), ENOTDIR);
    strcat(path, "/a");
    ck_assert_int_eq(open_at_path(&e, path, TAMIS_DIR_CREATE, NULL), ENOTDIR);
    ck_assert_int_eq(open_at_path(&e, "", TAMIS_DIR_CREATE, NULL), ENOENT);
    ck_assert_int_eq(open_at_path(&e, "/", TAMIS_DIR_CREATE, &created), 0);
    ck_assert_int_eq(created, 0);
    ck_assert_int_eq(open_at_path(&e, ".", TAMIS_DIR_EXISTING, NULL), 0);
    ck_assert_int_eq(open_at_path(&e, "/..", TAMIS_DIR_EXISTING, NULL), 0);

    char *deep = malloc(5000);
    memset(deep, '/', 4999);
    deep[4999] = '\0';
    ck_assert_int_eq(open_at_path(&e, deep, TAMIS_DIR_EXISTING, NULL), ENAMETOOLONG);
    snprintf(deep, 5000, "%s/%0256d", e.path, 1);
    ck_assert_int_eq(open_at_path(&e, deep, TAMIS_DIR_CREATE, NULL), ENAMETOOLONG);
    free(deep);
    env_close(&e);
}
END_TEST

START_TEST(directories_open_in_another)
{
    env e = env_open(_i);
    tamis_dir *dir = NULL;
    int created = 7;
    ck_assert_int_eq(e.vfs->dir_open_at(e.root, "a", TAMIS_DIR_EXISTING, &dir, &created), ENOENT);
    ck_assert_ptr_null(dir);
    ck_assert_int_eq(created, 0);
    ck_assert_int_eq(e.vfs->dir_open_at(e.root, "a", TAMIS_DIR_CREATE, &dir, &created), 0);
    ck_assert_int_eq(created, 1);
    make_file(dir, "inside", "x");
    e.vfs->dir_close(dir);
    ck_assert_int_eq(e.vfs->dir_open_at(e.root, "a", TAMIS_DIR_CREATE, &dir, &created), 0);
    ck_assert_int_eq(created, 0);
    ck_assert_str_eq(text_of(dir, "inside"), "x");
    ck_assert_int_eq(e.vfs->dir_sync(dir), 0);
    e.vfs->dir_close(dir);
    ck_assert_int_eq(e.vfs->dir_open_at(e.root, "a", 2, &dir, NULL), EINVAL);
    ck_assert_ptr_null(dir);
    make_file(e.root, "file", "x");
    ck_assert_int_eq(e.vfs->dir_open_at(e.root, "file", TAMIS_DIR_CREATE, &dir, NULL), ENOTDIR);
    env_close(&e);
}
END_TEST

typedef struct listing {
    tamis_dir *dir;
    size_t count, stop_after;
    bool unlink;
    char names[64][300];
} listing;

static int list_one(void *ctx, const char *name)
{
    listing *l = ctx;
    ck_assert_uint_lt(l->count, 64);
    strcpy(l->names[l->count++], name);
    if (l->unlink) ck_assert_int_eq(l->dir->vfs->unlink(l->dir, name), 0);
    return l->count == l->stop_after;
}

static bool listed(const listing *l, const char *name)
{
    for (size_t i = 0; i < l->count; i++) {
        if (strcmp(l->names[i], name) == 0) return true;
    }
    return false;
}

static void list(listing *l, tamis_dir *dir)
{
    l->dir = dir;
    l->count = 0;
    ck_assert_int_eq(dir->vfs->dir_list(dir, list_one, l), 0);
}

START_TEST(lists)
{
    env e = env_open(_i);
    listing l = {0};
    list(&l, e.root);
    ck_assert_uint_eq(l.count, 0);
    make_file(e.root, "a", "1");
    make_file(e.root, "b", "2");
    make_file(e.root, "c", "3");
    e.vfs->dir_close(open_dir(e.root, "d", TAMIS_DIR_CREATE));
    for (int i = 0; i < 2; i++) { // each listing starts at the beginning
        list(&l, e.root);
        ck_assert_uint_eq(l.count, 4);
        ck_assert(listed(&l, "a") && listed(&l, "b") && listed(&l, "c") && listed(&l, "d"));
    }
    l.stop_after = 2;
    list(&l, e.root);
    ck_assert_uint_eq(l.count, 2);
    ck_assert_int_eq(e.vfs->rename(e.root, "d", e.root, "0", TAMIS_RENAME_REPLACE), 0);
    char path[400];
    snprintf(path, sizeof path, "%s/0", e.path);
    ck_assert_int_eq(e.vfs->dir_remove(e.vfs, path), 0);
    l = (listing){.unlink = true}; // names may be removed while they are listed
    list(&l, e.root);
    ck_assert_uint_eq(l.count, 3);
    list(&l, e.root);
    ck_assert_uint_eq(l.count, 0);
    env_close(&e);
}
END_TEST

START_TEST(directories_are_removed_when_empty)
{
    env e = env_open(_i);
    char path[400];
    snprintf(path, sizeof path, "%s/a", e.path);
    ck_assert_int_eq(e.vfs->dir_remove(e.vfs, path), ENOENT);
    tamis_dir *dir = open_dir(e.root, "a", TAMIS_DIR_CREATE), *other = NULL;
    make_file(dir, "f", "x");
    ck_assert_int_eq(e.vfs->dir_remove(e.vfs, path), ENOTEMPTY);
    ck_assert_int_eq(e.vfs->unlink(e.root, "a"), EISDIR);
    ck_assert_int_eq(e.vfs->unlink(dir, "f"), 0);
    ck_assert_int_eq(e.vfs->dir_remove(e.vfs, path), 0);
    ck_assert_int_eq(e.vfs->dir_remove(e.vfs, path), ENOENT);

    // The handle is of a directory that no name leads to.
    tamis_file *file;
    listing l = {0};
    list(&l, dir);
    ck_assert_uint_eq(l.count, 0);
    ck_assert_int_eq(e.vfs->file_open(dir, "f", TAMIS_FILE_CREATE, &file), ENOENT);
    ck_assert_int_eq(e.vfs->dir_open_at(dir, "d", TAMIS_DIR_CREATE, &other, NULL), ENOENT);
    ck_assert_int_eq(e.vfs->lock(dir, "l", TAMIS_LOCK_EXCLUSIVE, &file), ENOENT);
    make_file(e.root, "f", "x");
    ck_assert_int_eq(e.vfs->rename(e.root, "f", dir, "f", 0), ENOENT);
    ck_assert_int_eq(e.vfs->link(e.root, "f", dir, "f"), ENOENT);
    e.vfs->dir_close(dir);

    snprintf(path, sizeof path, "%s/f", e.path);
    ck_assert_int_eq(e.vfs->dir_remove(e.vfs, path), ENOTDIR);
    snprintf(path, sizeof path, "%s/.", e.path);
    ck_assert_int_eq(e.vfs->dir_remove(e.vfs, path), EINVAL);
    snprintf(path, sizeof path, "%s/..", e.path);
    ck_assert_int_eq(e.vfs->dir_remove(e.vfs, path), ENOTEMPTY);
    e.vfs->dir_close(NULL);
    env_close(&e);
}
END_TEST

// ---- Names -------------------------------------------------------------------------------------

START_TEST(unusual_names_are_names)
{
    static const char *const names[] = {
        " ",           "...", ".hidden",  "-rf",          "%s%n",
        "a\nb",        "\\",  "\x01\x7f", "\xff\xfe\x80", "a\tb ",
        "caf\xc3\xa9", "*",   "\"'`$(x)", "a.tmp",        "A",
        "a",
    };
    env e = env_open(_i);
    char longest[256];
    memset(longest, 'n', 255);
    longest[255] = '\0';
    for (size_t i = 0; i < TM_COUNT(names); i++) make_file(e.root, names[i], names[i]);
    make_file(e.root, longest, "longest");
    listing l = {0};
    list(&l, e.root);
    ck_assert_uint_eq(l.count, TM_COUNT(names) + 1);
    for (size_t i = 0; i < TM_COUNT(names); i++) {
        ck_assert(listed(&l, names[i]));
        ck_assert_str_eq(text_of(e.root, names[i]), names[i]);
        ck_assert_int_eq(e.vfs->unlink(e.root, names[i]), 0);
    }
    ck_assert_str_eq(text_of(e.root, longest), "longest");
    env_close(&e);
}
END_TEST

// All functions with a name refuse this one.
static void refuse_name(env *e, const char *bad, int rc)
{
    tamis_file *file = NULL;
    tamis_dir *dir = NULL;
    const tamis_vfs *vfs = e->vfs;
    ck_assert_int_eq(vfs->file_open(e->root, bad, TAMIS_FILE_READ, &file), rc);
    ck_assert_int_eq(vfs->file_open(e->root, bad, TAMIS_FILE_CREATE, &file), rc);
    ck_assert_int_eq(vfs->lock(e->root, bad, TAMIS_LOCK_EXCLUSIVE, &file), rc);
    ck_assert_int_eq(vfs->lock(e->root, bad, TAMIS_LOCK_SHARED, &file), rc);
    ck_assert_ptr_null(file);
    ck_assert_int_eq(vfs->dir_open_at(e->root, bad, TAMIS_DIR_CREATE, &dir, NULL), rc);
    ck_assert_int_eq(vfs->dir_open_at(e->root, bad, TAMIS_DIR_EXISTING, &dir, NULL), rc);
    ck_assert_ptr_null(dir);
    ck_assert_int_eq(vfs->unlink(e->root, bad), rc);
    for (uint32_t flags = 0; flags < 2; flags++) {
        ck_assert_int_eq(vfs->rename(e->root, bad, e->root, "to", flags), rc);
        ck_assert_int_eq(vfs->rename(e->root, "file", e->root, bad, flags), rc);
    }
    ck_assert_int_eq(vfs->link(e->root, bad, e->root, "to"), rc);
    ck_assert_int_eq(vfs->link(e->root, "file", e->root, bad), rc);
}

START_TEST(what_is_no_name_is_refused)
{
    env e = env_open(_i);
    char longer[257];
    memset(longer, 'n', 256);
    longer[256] = '\0';
    make_file(e.root, "file", "x");
    e.vfs->dir_close(open_dir(e.root, "sub", TAMIS_DIR_CREATE));
    refuse_name(&e, "", ENOENT);
    refuse_name(&e, ".", EINVAL);
    refuse_name(&e, "..", EINVAL);
    refuse_name(&e, "/", EINVAL);
    refuse_name(&e, "sub/file", EINVAL);
    refuse_name(&e, "../file", EINVAL);
    refuse_name(&e, NULL, EINVAL);
    refuse_name(&e, longer, ENAMETOOLONG);
    listing l = {0};
    list(&l, e.root);
    ck_assert_uint_eq(l.count, 2);
    env_close(&e);
}
END_TEST

// ---- Entries -----------------------------------------------------------------------------------

START_TEST(rename_replaces_or_spares)
{
    env e = env_open(_i);
    const tamis_vfs *vfs = e.vfs;
    make_file(e.root, "a", "A");
    make_file(e.root, "b", "B");
    tamis_file *open_a = open_file(e.root, "a", TAMIS_FILE_READ);
    ck_assert_int_eq(vfs->rename(e.root, "a", e.root, "b", TAMIS_RENAME_NOREPLACE), EEXIST);
    ck_assert_str_eq(text_of(e.root, "a"), "A");
    ck_assert_str_eq(text_of(e.root, "b"), "B");
    ck_assert_int_eq(vfs->rename(e.root, "a", e.root, "c", TAMIS_RENAME_NOREPLACE), 0);
    ck_assert_str_eq(text_of(e.root, "a"), "-");
    ck_assert_int_eq(vfs->rename(e.root, "c", e.root, "b", TAMIS_RENAME_REPLACE), 0);
    ck_assert_str_eq(text_of(e.root, "b"), "A");
    ck_assert_str_eq(text_of(e.root, "c"), "-");
    char c;
    ck_assert_uint_eq(read_some(open_a, 0, &c, 1), 1); // the handle goes with the file
    ck_assert_int_eq(c, 'A');
    close_file(open_a);

    for (uint32_t flags = 0; flags < 2; flags++) {
        ck_assert_int_eq(vfs->rename(e.root, "none", e.root, "b", flags), ENOENT);
        ck_assert_int_eq(vfs->rename(e.root, "none", e.root, "z", flags), ENOENT);
    }
    ck_assert_int_eq(vfs->rename(e.root, "b", e.root, "z", 2), EINVAL);
    ck_assert_int_eq(vfs->rename(e.root, "b", e.root, "b", TAMIS_RENAME_REPLACE), 0);
    ck_assert_int_eq(vfs->rename(e.root, "b", e.root, "b", TAMIS_RENAME_NOREPLACE), EEXIST);
    ck_assert_int_eq(vfs->link(e.root, "b", e.root, "b2"), 0);
    ck_assert_int_eq(vfs->rename(e.root, "b", e.root, "b2", TAMIS_RENAME_REPLACE), 0);
    ck_assert_str_eq(text_of(e.root, "b"), "A"); // two names of one file stay
    ck_assert_str_eq(text_of(e.root, "b2"), "A");
    env_close(&e);
}
END_TEST

START_TEST(rename_goes_to_other_directories_and_moves_directories)
{
    env e = env_open(_i);
    const tamis_vfs *vfs = e.vfs;
    tamis_dir *p = open_dir(e.root, "p", TAMIS_DIR_CREATE);
    tamis_dir *q = open_dir(e.root, "q", TAMIS_DIR_CREATE);
    make_file(p, "f", "F");
    make_file(q, "f", "old");
    ck_assert_int_eq(vfs->rename(p, "f", q, "f", TAMIS_RENAME_NOREPLACE), EEXIST);
    ck_assert_int_eq(vfs->rename(p, "f", q, "f", TAMIS_RENAME_REPLACE), 0);
    ck_assert_str_eq(text_of(q, "f"), "F");
    ck_assert_str_eq(text_of(p, "f"), "-");

    ck_assert_int_eq(vfs->rename(e.root, "p", q, "f", 0), ENOTDIR);
    ck_assert_int_eq(vfs->rename(q, "f", e.root, "p", 0), EISDIR);
    ck_assert_int_eq(vfs->rename(e.root, "p", e.root, "q", 0), ENOTEMPTY);
    ck_assert_int_eq(vfs->rename(e.root, "q", q, "q", 0), EINVAL);
    ck_assert_int_eq(vfs->rename(e.root, "q", q, "q", TAMIS_RENAME_NOREPLACE), EINVAL);
    ck_assert_int_eq(vfs->rename(e.root, "q", e.root, "p", TAMIS_RENAME_NOREPLACE), EEXIST);
    ck_assert_int_eq(vfs->rename(e.root, "q", e.root, "p", 0), 0); // over an empty one
    tamis_dir *again = open_dir(e.root, "p", TAMIS_DIR_EXISTING);
    ck_assert_str_eq(text_of(again, "f"), "F");
    ck_assert_int_eq(vfs->rename(e.root, "p", e.root, "dst", TAMIS_RENAME_NOREPLACE), 0);
    make_file(q, "g", "G"); // the handle goes with the directory
    ck_assert_str_eq(text_of(again, "g"), "G");
    ck_assert_int_eq(vfs->rename(q, "g", p, "g", 0), ENOENT); // p was replaced and is no more

    tamis_vfs *other;
    tamis_dir *elsewhere;
    ck_assert_int_eq(tamis_vfs_memory(&other, NULL), TAMIS_OK);
    ck_assert_int_eq(other->dir_open(other, "/", TAMIS_DIR_EXISTING, &elsewhere, NULL), 0);
    ck_assert_int_eq(vfs->rename(q, "f", elsewhere, "f", 0), EXDEV);
    ck_assert_int_eq(vfs->link(q, "f", elsewhere, "f"), EXDEV);
    other->dir_close(elsewhere);
    tamis_vfs_free(other);
    vfs->dir_close(p);
    vfs->dir_close(q);
    vfs->dir_close(again);
    env_close(&e);
}
END_TEST

START_TEST(links_are_names_of_one_file)
{
    env e = env_open(_i);
    const tamis_vfs *vfs = e.vfs;
    tamis_dir *sub = open_dir(e.root, "sub", TAMIS_DIR_CREATE);
    make_file(e.root, "a", "A");
    make_file(e.root, "b", "B");
    ck_assert_int_eq(vfs->link(e.root, "a", sub, "a"), 0);
    ck_assert_int_eq(vfs->link(e.root, "a", e.root, "b"), EEXIST);
    ck_assert_int_eq(vfs->link(e.root, "none", e.root, "c"), ENOENT);
    ck_assert_int_eq(vfs->link(e.root, "sub", e.root, "c"), EPERM);
    tamis_file *file = open_file(sub, "a", TAMIS_FILE_WRITE);
    write_all(file, 1, "AA", 2);
    close_file(file);
    ck_assert_str_eq(text_of(e.root, "a"), "AAA");
    ck_assert_int_eq(vfs->unlink(e.root, "a"), 0);
    ck_assert_int_eq(vfs->unlink(e.root, "a"), ENOENT);
    ck_assert_str_eq(text_of(sub, "a"), "AAA");

    // Without a name the file lives as long as a handle; the name is free at once.
    file = open_file(sub, "a", TAMIS_FILE_WRITE);
    ck_assert_int_eq(vfs->unlink(sub, "a"), 0);
    make_file(sub, "a", "new");
    write_all(file, 3, "A", 1);
    ck_assert_uint_eq(size_of(file), 4);
    ck_assert_int_eq(vfs->data_sync(file), 0);
    close_file(file);
    ck_assert_str_eq(text_of(sub, "a"), "new");
    vfs->dir_close(sub);
    env_close(&e);
}
END_TEST

// ---- Files -------------------------------------------------------------------------------------

START_TEST(files_open_in_three_modes)
{
    env e = env_open(_i);
    const tamis_vfs *vfs = e.vfs;
    tamis_file *file = (tamis_file *)&e;
    ck_assert_int_eq(vfs->file_open(e.root, "f", TAMIS_FILE_READ, &file), ENOENT);
    ck_assert_ptr_null(file);
    ck_assert_int_eq(vfs->file_open(e.root, "f", TAMIS_FILE_WRITE, &file), ENOENT);
    ck_assert_int_eq(vfs->file_open(e.root, "f", 3, &file), EINVAL);
    file = open_file(e.root, "f", TAMIS_FILE_CREATE);
    write_all(file, 0, "abc", 3);
    char buf[4] = "";
    ck_assert_uint_eq(read_some(file, 0, buf, 3), 3);
    ck_assert_str_eq(buf, "abc");
    close_file(file);
    ck_assert_int_eq(vfs->file_open(e.root, "f", TAMIS_FILE_CREATE, &file), EEXIST);
    ck_assert_ptr_null(file);

    file = open_file(e.root, "f", TAMIS_FILE_WRITE);
    write_all(file, 1, "X", 1);
    close_file(file);
    file = open_file(e.root, "f", TAMIS_FILE_READ);
    size_t put = 7;
    ck_assert_int_eq(vfs->write_at(file, 0, "Y", 1, &put), EBADF);
    ck_assert_uint_eq(put, 0);
    ck_assert_int_eq(vfs->truncate(file, 0), EINVAL);
    ck_assert_int_eq(vfs->reserve(file, 0, 1), EBADF);
    ck_assert_int_eq(vfs->data_sync(file), 0);
    ck_assert_str_eq(text_of(e.root, "f"), "aXc");
    close_file(file);

    vfs->dir_close(open_dir(e.root, "d", TAMIS_DIR_CREATE));
    ck_assert_int_eq(vfs->file_open(e.root, "d", TAMIS_FILE_READ, &file), EINVAL);
    ck_assert_int_eq(vfs->file_open(e.root, "d", TAMIS_FILE_WRITE, &file), EINVAL);
    ck_assert_int_eq(vfs->file_open(e.root, "d", TAMIS_FILE_CREATE, &file), EEXIST);
    ck_assert_int_eq(vfs->file_close(NULL), 0);
    env_close(&e);
}
END_TEST

START_TEST(ranges_beyond_any_file)
{
    env e = env_open(_i);
    const tamis_vfs *vfs = e.vfs;
    tamis_file *file = open_file(e.root, "f", TAMIS_FILE_CREATE);
    const uint64_t last = INT64_MAX;
    size_t n = 7;
    char c = 0;
    ck_assert_int_eq(vfs->write_at(file, last, "x", 1, &n), EFBIG);
    ck_assert_int_eq(vfs->write_at(file, UINT64_MAX, "x", 1, &n), EFBIG);
    ck_assert_uint_eq(n, 0);
    ck_assert_int_eq(vfs->read_at(file, last, &c, 1, &n), EINVAL);
    ck_assert_int_eq(vfs->read_at(file, UINT64_MAX, &c, 1, &n), EINVAL);
    ck_assert_int_eq(vfs->read_at(file, last - 1, &c, 1, &n), 0);
    ck_assert_uint_eq(n, 0);
    ck_assert_int_eq(vfs->truncate(file, last + 1), EFBIG);
    ck_assert_int_eq(vfs->reserve(file, last, 1), EFBIG);
    ck_assert_int_eq(vfs->reserve(file, 1, UINT64_MAX), EFBIG);
    ck_assert_int_eq(vfs->reserve(file, 1, 0), 0);
    ck_assert_int_eq(vfs->write_at(file, 5, NULL, 0, &n), 0);
    ck_assert_uint_eq(n, 0);
    ck_assert_uint_eq(size_of(file), 0);

    write_all(file, (uint64_t)1 << 40, "far", 3); // holes cost nothing
    ck_assert_uint_eq(size_of(file), ((uint64_t)1 << 40) + 3);
    ck_assert_uint_eq(read_some(file, (uint64_t)1 << 39, &c, 1), 1);
    ck_assert_int_eq(c, 0);
    ck_assert_uint_eq(read_some(file, ((uint64_t)1 << 40) + 2, &c, 1), 1);
    ck_assert_int_eq(c, 'r');
    ck_assert_uint_eq(read_some(file, ((uint64_t)1 << 40) + 3, &c, 1), 0);
    close_file(file);
    env_close(&e);
}
END_TEST

// A file as an array is what both have to be like.
START_TEST(random_writes_reads_and_truncations)
{
    enum { MAX = 40000 };
    env e = env_open(_i);
    tamis_file *file = open_file(e.root, "f", TAMIS_FILE_CREATE);
    uint8_t *model = calloc(1, MAX), *buf = malloc(MAX);
    uint64_t size = 0;
    tm_random r = tm_random_seed(20240607);
    for (int i = 0; i < 2500; i++) {
        uint64_t at = tm_random_below(&r, MAX - 10000);
        size_t n = (size_t)tm_random_below(&r, tm_random_below(&r, 2) ? 100 : 10000);
        uint64_t what = tm_random_below(&r, 20);
        if (what < 8) {
            memset(model + at, i, n);
            write_all(file, at, model + at, n);
            if (n > 0) size = TM_MAX(size, at + n);
        } else if (what == 8) {
            ck_assert_int_eq(e.vfs->truncate(file, at), 0);
            if (at < size) memset(model + at, 0, size - at);
            size = at;
        } else if (what == 9) {
            ck_assert_int_eq(e.vfs->data_sync(file), 0);
        } else if (what == 10) {
            ck_assert_int_eq(e.vfs->reserve(file, at, n), 0);
        } else if (what == 11 && e.vfs->advise != NULL) {
            ck_assert_int_eq(e.vfs->write_back(file, at, n), 0);
            ck_assert_int_eq(e.vfs->advise(file, at, n, i % 2), 0);
        } else {
            memset(buf, 0xee, n);
            uint64_t want = at < size ? TM_MIN(n, size - at) : 0;
            ck_assert_uint_eq(read_some(file, at, buf, n), want);
            ck_assert_mem_eq(buf, model + at, want);
        }
        if (i % 16 == 0) ck_assert_uint_eq(size_of(file), size);
    }
    ck_assert_uint_eq(read_some(file, 0, buf, MAX), size);
    ck_assert_mem_eq(buf, model, size);
    free(model);
    free(buf);
    close_file(file);
    env_close(&e);
}
END_TEST

START_TEST(reserve_changes_nothing_to_be_seen)
{
    env e = env_open(_i);
    tamis_file *file = open_file(e.root, "f", TAMIS_FILE_CREATE);
    char buf[16];
    write_all(file, 0, "abc", 3);
    ck_assert_int_eq(e.vfs->reserve(file, 0, 100000), 0);
    ck_assert_int_eq(e.vfs->reserve(file, 2, 1), 0);
    ck_assert_uint_eq(size_of(file), 3);
    ck_assert_uint_eq(read_some(file, 0, buf, 16), 3);
    ck_assert_mem_eq(buf, "abc", 3);
    write_all(file, 8, "x", 1);
    ck_assert_uint_eq(read_some(file, 0, buf, 16), 9);
    ck_assert_mem_eq(buf, "abc\0\0\0\0\0x", 9);
    close_file(file);
    env_close(&e);
}
END_TEST

START_TEST(maps_where_it_can)
{
    env e = env_open(_i);
    if (e.vfs->map != NULL) {
        make_file(e.root, "f", "mapped");
        tamis_file *file = open_file(e.root, "f", TAMIS_FILE_READ);
        const void *p = &e;
        ck_assert_int_eq(e.vfs->map(file, 0, &p), EINVAL);
        ck_assert_ptr_null(p);
        ck_assert_int_eq(e.vfs->map(file, 6, &p), 0);
        ck_assert_mem_eq(p, "mapped", 6);
        ck_assert_int_eq(e.vfs->unmap(file, p, 6), 0);
        close_file(file);
    }
    env_close(&e);
}
END_TEST

// ---- Locks -------------------------------------------------------------------------------------

static int try_lock(tamis_dir *dir, const char *name, uint32_t kind)
{
    tamis_file *lock = (tamis_file *)dir;
    int rc = dir->vfs->lock(dir, name, kind, &lock);
    ck_assert((lock != NULL) == (rc == 0));
    if (rc == 0) ck_assert_int_eq(dir->vfs->unlock(lock), 0);
    return rc;
}

START_TEST(locks_exclude_each_other)
{
    env e = env_open(_i);
    tamis_file *one, *two;
    ck_assert_int_eq(e.vfs->lock(e.root, "LOCK", TAMIS_LOCK_EXCLUSIVE, &one), 0);
    ck_assert(exists(e.root, "LOCK"));
    ck_assert_int_eq(try_lock(e.root, "LOCK", TAMIS_LOCK_EXCLUSIVE), EWOULDBLOCK);
    ck_assert_int_eq(try_lock(e.root, "LOCK", TAMIS_LOCK_SHARED), EWOULDBLOCK);
    ck_assert_int_eq(try_lock(e.root, "LOCK2", TAMIS_LOCK_EXCLUSIVE), 0); // one lock a name
    ck_assert_int_eq(e.vfs->unlock(one), 0);

    ck_assert_int_eq(e.vfs->lock(e.root, "LOCK", TAMIS_LOCK_SHARED, &one), 0);
    ck_assert_int_eq(e.vfs->lock(e.root, "LOCK", TAMIS_LOCK_SHARED, &two), 0);
    ck_assert_int_eq(try_lock(e.root, "LOCK", TAMIS_LOCK_EXCLUSIVE), EWOULDBLOCK);
    ck_assert_int_eq(e.vfs->unlock(one), 0);
    ck_assert_int_eq(try_lock(e.root, "LOCK", TAMIS_LOCK_EXCLUSIVE), EWOULDBLOCK);
    ck_assert_int_eq(try_lock(e.root, "LOCK", TAMIS_LOCK_SHARED), 0);
    ck_assert_int_eq(e.vfs->unlock(two), 0);
    ck_assert_int_eq(try_lock(e.root, "LOCK", TAMIS_LOCK_EXCLUSIVE), 0);

    ck_assert_int_eq(try_lock(e.root, "made", TAMIS_LOCK_SHARED), 0); // made as well
    ck_assert(exists(e.root, "made"));
    ck_assert_int_eq(e.vfs->lock(e.root, "LOCK", 2, &one), EINVAL);
    e.vfs->dir_close(open_dir(e.root, "d", TAMIS_DIR_CREATE));
    ck_assert_int_eq(try_lock(e.root, "d", TAMIS_LOCK_EXCLUSIVE), EINVAL);
    ck_assert_int_eq(try_lock(e.root, "d", TAMIS_LOCK_SHARED), EINVAL);
    ck_assert_int_eq(e.vfs->unlock(NULL), 0);
    env_close(&e);
}
END_TEST

START_TEST(locks_stay_when_other_handles_close)
{
    env e = env_open(_i);
    tamis_file *lock;
    ck_assert_int_eq(e.vfs->lock(e.root, "LOCK", TAMIS_LOCK_EXCLUSIVE, &lock), 0);
    close_file(open_file(e.root, "LOCK", TAMIS_FILE_WRITE));
    close_file(open_file(e.root, "LOCK", TAMIS_FILE_READ));
    ck_assert_int_eq(try_lock(e.root, "LOCK", TAMIS_LOCK_EXCLUSIVE), EWOULDBLOCK);
    tamis_dir *again = NULL; // by another handle of the directory too
    ck_assert_int_eq(e.vfs->dir_open(e.vfs, e.path, TAMIS_DIR_EXISTING, &again, NULL), 0);
    ck_assert_int_eq(try_lock(again, "LOCK", TAMIS_LOCK_SHARED), EWOULDBLOCK);
    ck_assert_int_eq(e.vfs->link(e.root, "LOCK", e.root, "same"), 0);
    ck_assert_int_eq(try_lock(again, "same", TAMIS_LOCK_EXCLUSIVE), EWOULDBLOCK);
    e.vfs->dir_close(again);

    // Removed and made anew, it is another file, and another lock.
    ck_assert_int_eq(e.vfs->unlink(e.root, "LOCK"), 0);
    ck_assert_int_eq(try_lock(e.root, "LOCK", TAMIS_LOCK_EXCLUSIVE), 0);
    ck_assert_int_eq(e.vfs->unlock(lock), 0);
    env_close(&e);
}
END_TEST

// ---- Clock, randomness, room -------------------------------------------------------------------

START_TEST(clock_and_randomness)
{
    env e = env_open(_i);
    uint64_t start = e.vfs->monotonic_ns(e.vfs), wall = e.vfs->wall_ms(e.vfs), before = start;
    for (int i = 0; i < 1000; i++) {
        uint64_t now = e.vfs->monotonic_ns(e.vfs);
        ck_assert_uint_ge(now, before);
        before = now;
    }
    ck_assert_uint_gt(wall, 1600000000000u);
    ck_assert_uint_lt(wall, 9999999999999u);
    e.vfs->sleep_us(e.vfs, 0);
    e.vfs->sleep_us(e.vfs, 20000);
    ck_assert_uint_ge(e.vfs->monotonic_ns(e.vfs) - start, 20000000u);
    ck_assert_uint_ge(e.vfs->wall_ms(e.vfs) - wall, 19u);

    enum { N = 1000 };
    uint8_t a[N + 1], b[N + 1];
    memset(a, 0, sizeof a);
    memset(b, 0, sizeof b);
    ck_assert_int_eq(e.vfs->random(e.vfs, a, N), 0);
    ck_assert_int_eq(e.vfs->random(e.vfs, b, N), 0);
    ck_assert_int_eq(e.vfs->random(e.vfs, NULL, 0), 0);
    ck_assert_int_ne(memcmp(a, b, 16), 0);
    ck_assert(a[N] == 0 && b[N] == 0);
    size_t counts[256] = {0}, most = 0;
    for (size_t i = 0; i < N; i++) most = TM_MAX(most, ++counts[a[i]]);
    ck_assert_uint_lt(most, 30); // 4 on average
    env_close(&e);
}
END_TEST

START_TEST(there_is_room)
{
    env e = env_open(_i);
    uint64_t bytes = 0;
    ck_assert_int_eq(e.vfs->dir_free_bytes(e.root, &bytes), 0);
    ck_assert_uint_gt(bytes, 1 << 20);
    ck_assert_uint_eq(e.vfs->size, sizeof(tamis_vfs));
    env_close(&e);
}
END_TEST

// ---- Threads -----------------------------------------------------------------------------------

enum { THREADS = 4, ROUNDS = 100 };

typedef struct worker {
    env *e;
    tamis_file *shared;
    int number;
    pthread_t thread;
} worker;

static int count_one(void *ctx, const char *name)
{
    (void)name;
    ++*(size_t *)ctx;
    return 0;
}

static void *work(void *arg)
{
    worker *w = arg;
    const tamis_vfs *vfs = w->e->vfs;
    char name[32], to[32], buf[5000];
    for (int i = 0; i < ROUNDS; i++) {
        ck_assert_uint_eq(read_some(w->shared, 0, buf, sizeof buf), sizeof buf);
        size_t same = 0;
        while (same < sizeof buf && buf[same] == 's') same++;
        ck_assert_uint_eq(same, sizeof buf);
        snprintf(name, sizeof name, "%d-%d", w->number, i);
        snprintf(to, sizeof to, "%d", w->number);
        tamis_file *file = open_file(w->e->root, name, TAMIS_FILE_CREATE), *lock;
        fill(file, 0, 'x', 1000);
        close_file(file);
        ck_assert_int_eq(vfs->rename(w->e->root, name, w->e->root, to, 0), 0);
        if (vfs->lock(w->e->root, "LOCK", (uint32_t)i % 2, &lock) == 0) {
            ck_assert_int_eq(vfs->unlock(lock), 0);
        }
        size_t count = 0;
        ck_assert_int_eq(vfs->dir_list(w->e->root, count_one, &count), 0);
        ck_assert_uint_ge(count, 2);
        ck_assert_uint_gt(vfs->monotonic_ns(vfs), 0);
    }
    return NULL;
}

START_TEST(many_threads)
{
    env e = env_open(_i);
    tamis_file *shared = open_file(e.root, "shared", TAMIS_FILE_CREATE);
    fill(shared, 0, 's', 5000);
    worker workers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.e = &e, .shared = shared, .number = i};
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(workers[i].thread, NULL);
    size_t count = 0;
    ck_assert_int_eq(e.vfs->dir_list(e.root, count_one, &count), 0);
    ck_assert_uint_eq(count, THREADS + 2); // the lock's, and the shared one
    close_file(shared);
    env_close(&e);
}
END_TEST

// ---- Out of memory -----------------------------------------------------------------------------

static uint64_t allocations_left;

static bool allow(void *ctx, size_t n)
{
    (void)ctx;
    (void)n;
    if (allocations_left == 0) return false;
    allocations_left--;
    return true;
}

// What it does is the same when one step of it could not get memory and was done again.
static bool any_failed;
#define AGAIN(call)                                                                                \
    do {                                                                                           \
        int rc_ = (call);                                                                          \
        if (rc_ == ENOMEM) {                                                                       \
            any_failed = true;                                                                     \
            tm_mem_set_hook(NULL, NULL);                                                           \
            rc_ = (call);                                                                          \
        }                                                                                          \
        ck_assert_int_eq(rc_, 0);                                                                  \
    } while (0)

static void script(env *e)
{
    const tamis_vfs *vfs = e->vfs;
    tamis_dir *dir;
    tamis_file *file, *lock;
    size_t n, count = 0;
    int created;
    char text[5001];
    char want[4500];
    memset(text, 't', sizeof text);
    memset(want, 't', sizeof want);
    memcpy(want + 100, "new", 3);
    AGAIN(vfs->dir_open_at(e->root, "d", TAMIS_DIR_CREATE, &dir, &created));
    ck_assert_int_eq(created, 1);
    AGAIN(vfs->lock(dir, "LOCK", TAMIS_LOCK_EXCLUSIVE, &lock));
    AGAIN(vfs->file_open(dir, "f", TAMIS_FILE_CREATE, &file));
    for (size_t at = 0; at < sizeof text; at += n) { // memory may end in the middle
        AGAIN(vfs->write_at(file, at, text, sizeof text - at, &n));
    }
    AGAIN(vfs->reserve(file, 10000, 50000));
    AGAIN(vfs->data_sync(file));
    AGAIN(vfs->write_at(file, 100, "new", 3, &n));
    AGAIN(vfs->truncate(file, 4500));
    AGAIN(vfs->link(dir, "f", e->root, "g"));
    AGAIN(vfs->rename(dir, "f", e->root, "h", TAMIS_RENAME_NOREPLACE));
    AGAIN(vfs->unlink(e->root, "g"));
    AGAIN(vfs->dir_sync(e->root));
    count = 0;
    AGAIN(vfs->dir_list(dir, count_one, &count));
    tm_mem_set_hook(NULL, NULL);
    ck_assert_uint_eq(count, 1); // its lock
    ck_assert(!exists(e->root, "g"));
    ck_assert_uint_eq(size_of(file), 4500);
    ck_assert_uint_eq(read_some(file, 0, text, sizeof text), 4500);
    ck_assert_mem_eq(text, want, 4500);
    ck_assert_int_eq(vfs->unlock(lock), 0);
    close_file(file);
    vfs->dir_close(dir);
}

START_TEST(failed_allocations_change_nothing)
{
    uint64_t n = 0;
    do {
        env e = env_open(_i);
        any_failed = false;
        allocations_left = n++;
        tm_mem_set_hook(allow, NULL);
        script(&e);
        ck_assert(exists(e.root, "h"));
        env_close(&e);
        ck_assert_uint_lt(n, 1000);
    } while (any_failed);
    ck_assert_uint_ge(n, _i == MEMORY ? 20 : 4);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("vfs");
    TCase *t = tcase_create("each");
    tcase_add_loop_test(t, directories_open_by_path, 0, KINDS);
    tcase_add_loop_test(t, directories_open_in_another, 0, KINDS);
    tcase_add_loop_test(t, lists, 0, KINDS);
    tcase_add_loop_test(t, directories_are_removed_when_empty, 0, KINDS);
    tcase_add_loop_test(t, unusual_names_are_names, 0, KINDS);
    tcase_add_loop_test(t, what_is_no_name_is_refused, 0, KINDS);
    tcase_add_loop_test(t, rename_replaces_or_spares, 0, KINDS);
    tcase_add_loop_test(t, rename_goes_to_other_directories_and_moves_directories, 0, KINDS);
    tcase_add_loop_test(t, links_are_names_of_one_file, 0, KINDS);
    tcase_add_loop_test(t, files_open_in_three_modes, 0, KINDS);
    tcase_add_loop_test(t, ranges_beyond_any_file, 0, KINDS);
    tcase_add_loop_test(t, random_writes_reads_and_truncations, 0, KINDS);
    tcase_add_loop_test(t, reserve_changes_nothing_to_be_seen, 0, KINDS);
    tcase_add_loop_test(t, maps_where_it_can, 0, KINDS);
    tcase_add_loop_test(t, locks_exclude_each_other, 0, KINDS);
    tcase_add_loop_test(t, locks_stay_when_other_handles_close, 0, KINDS);
    tcase_add_loop_test(t, clock_and_randomness, 0, KINDS);
    tcase_add_loop_test(t, there_is_room, 0, KINDS);
    tcase_add_loop_test(t, many_threads, 0, KINDS);
    tcase_add_loop_test(t, failed_allocations_change_nothing, 0, KINDS);
    tcase_set_timeout(t, 60);
    suite_add_tcase(s, t);
    return support_main(s);
}
