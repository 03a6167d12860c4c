// SPDX-License-Identifier: BSD-2-Clause
//
// file.c over a file system made here: it moves at most so many bytes a call, interrupts calls,
// lets the n-th fail, and writes down what was called.
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/mem.h"

enum { FILES = 3, BYTES = 512 };

typedef struct fake_file {
    char name[16];
    uint8_t data[BYTES];
    uint64_t size;
    bool there, synced;
} fake_file;

typedef struct fake_handle {
    tamis_file head;
    fake_file *file;
} fake_handle;

static struct {
    tamis_vfs vfs;
    tamis_dir dir;
    fake_file files[FILES];
    fake_handle handles[4];
    int open_handles, open_dirs;
    char log[1024];     // one word a call
    int interruptions;  // the next so many calls answer EINTR
    int calls, fail_at; // the call of this number answers fail_with
    int fail_with;
    size_t most;     // bytes a read or write moves
    bool idle, liar; // reads and writes move nothing; say more than they moved
    int advice;      // of the last hint
    bool dir_made;
} fake;

static int called(const char *word, const char *name)
{
    size_t n = strlen(fake.log);
    snprintf(fake.log + n, sizeof(fake.log) - n, "%s%s%s%s", n ? " " : "", word, name ? ":" : "",
             name ? name : "");
    if (fake.interruptions > 0) {
        fake.interruptions--;
        return EINTR;
    }
    return ++fake.calls == fake.fail_at ? fake.fail_with : 0;
}

static fake_file *find(const char *name)
{
    for (int i = 0; i < FILES; i++) {
        if (fake.files[i].there && strcmp(fake.files[i].name, name) == 0) return &fake.files[i];
    }
    return NULL;
}

static bool holds(const char *name, const char *content)
{
    const fake_file *f = find(name);
    return f != NULL && f->size == strlen(content) && memcmp(f->data, content, f->size) == 0;
}

static fake_file *add(const char *name, const char *content)
{
    for (int i = 0; i < FILES; i++) {
        fake_file *f = &fake.files[i];
        if (f->there) continue;
        *f = (fake_file){.there = true, .size = strlen(content)};
        snprintf(f->name, sizeof(f->name), "%s", name);
        memcpy(f->data, content, strlen(content));
        return f;
    }
    return NULL;
}

static int fake_dir_open(const tamis_vfs *vfs, const char *path, uint32_t flags, tamis_dir **out,
                         int *created)
{
    int rc = called("dir_open", NULL);
    if (rc != 0) return rc;
    if (strcmp(path, "missing") == 0) return ENOENT;
    fake.dir.vfs = vfs;
    *out = &fake.dir;
    if (created != NULL) *created = flags == TAMIS_DIR_CREATE && !fake.dir_made;
    fake.dir_made = true;
    fake.open_dirs++;
    return 0;
}

static void fake_dir_close(tamis_dir *dir)
{
    ck_assert_ptr_eq(dir, &fake.dir);
    fake.open_dirs--;
}

static int fake_dir_sync(tamis_dir *dir)
{
    (void)dir;
    return called("dir_sync", NULL);
}

static int fake_rename(tamis_dir *from_dir, const char *from, tamis_dir *to_dir, const char *to,
                       uint32_t flags)
{
    (void)from_dir;
    (void)to_dir;
    int rc = called("rename", from);
    if (rc != 0) return rc;
    fake_file *f = find(from), *old = find(to);
    if (f == NULL) return ENOENT;
    if (old != NULL && flags == TAMIS_RENAME_NOREPLACE) return EEXIST;
    if (old != NULL) old->there = false;
    snprintf(f->name, sizeof(f->name), "%s", to);
    return 0;
}

static int fake_unlink(tamis_dir *dir, const char *name)
{
    (void)dir;
    int rc = called("unlink", name);
    if (rc != 0) return rc;
    fake_file *f = find(name);
    if (f == NULL) return ENOENT;
    f->there = false;
    return 0;
}

static int fake_file_open(tamis_dir *dir, const char *name, uint32_t mode, tamis_file **out)
{
    int rc = called("open", name);
    if (rc != 0) return rc;
    fake_file *f = find(name);
    if (mode == TAMIS_FILE_CREATE && f != NULL) return EEXIST;
    if (mode == TAMIS_FILE_CREATE) f = add(name, "");
    if (f == NULL) return ENOENT;
    fake_handle *h = &fake.handles[fake.open_handles++];
    h->head.vfs = dir->vfs;
    h->file = f;
    *out = &h->head;
    return 0;
}

static fake_file *file_of(tamis_file *f)
{
    return TM_CONTAINER(f, fake_handle, head)->file;
}

static int fake_read_at(tamis_file *file, uint64_t offset, void *buf, size_t n, size_t *got)
{
    int rc = called("read", NULL);
    if (rc != 0) return rc;
    fake_file *f = file_of(file);
    size_t left = offset < f->size ? (size_t)(f->size - offset) : 0;
    *got = fake.idle ? 0 : TM_MIN(TM_MIN(n, left), fake.most);
    if (*got != 0) memcpy(buf, f->data + offset, *got);
    if (fake.liar) *got = n + 1;
    return 0;
}

static int fake_write_at(tamis_file *file, uint64_t offset, const void *buf, size_t n, size_t *put)
{
    int rc = called("write", NULL);
    if (rc != 0) return rc;
    fake_file *f = file_of(file);
    if (offset > BYTES || n > BYTES - offset) return ENOSPC;
    *put = fake.idle ? 0 : TM_MIN(n, fake.most);
    if (*put != 0) memcpy(f->data + offset, buf, *put);
    f->size = TM_MAX(f->size, offset + *put);
    f->synced = false;
    if (fake.liar) *put = n + 1;
    return 0;
}

static int fake_reserve(tamis_file *file, uint64_t offset, uint64_t n)
{
    (void)file;
    (void)offset;
    (void)n;
    return called("reserve", NULL);
}

static int fake_truncate(tamis_file *file, uint64_t size)
{
    int rc = called("truncate", NULL);
    if (rc == 0) file_of(file)->size = size;
    return rc;
}

static int fake_file_size(tamis_file *file, uint64_t *size)
{
    int rc = called("size", NULL);
    *size = file_of(file)->size;
    return rc;
}

static int fake_data_sync(tamis_file *file)
{
    int rc = called("sync", NULL);
    if (rc == 0) file_of(file)->synced = true;
    return rc;
}

static int fake_write_back(tamis_file *file, uint64_t offset, uint64_t n)
{
    (void)file;
    fake.advice = (int)(offset + n);
    return called("write_back", NULL);
}

static int fake_advise(tamis_file *file, uint64_t offset, uint64_t n, int will_need)
{
    (void)file;
    fake.advice = (int)(offset + n) * (will_need ? 1 : -1);
    return called("advise", NULL);
}

static int fake_file_close(tamis_file *file)
{
    (void)file;
    fake.open_handles--;
    return called("close", NULL);
}

static tamis_dir *set_up(void)
{
    memset(&fake, 0, sizeof(fake));
    fake.most = SIZE_MAX;
    fake.vfs = (tamis_vfs){.size = sizeof(tamis_vfs),
                           .dir_open = fake_dir_open,
                           .dir_close = fake_dir_close,
                           .dir_sync = fake_dir_sync,
                           .rename = fake_rename,
                           .unlink = fake_unlink,
                           .file_open = fake_file_open,
                           .read_at = fake_read_at,
                           .write_at = fake_write_at,
                           .reserve = fake_reserve,
                           .truncate = fake_truncate,
                           .file_size = fake_file_size,
                           .data_sync = fake_data_sync,
                           .write_back = fake_write_back,
                           .advise = fake_advise,
                           .file_close = fake_file_close};
    fake.dir.vfs = &fake.vfs;
    return &fake.dir;
}

static tm_file open_new(tamis_dir *dir, const char *name, uint64_t number)
{
    tm_file f;
    tamis_error err;
    ck_assert_int_eq(tm_file_open(dir, name, number, TAMIS_FILE_CREATE, &f, &err), TAMIS_OK);
    return f;
}

// The next call fails so.
static void fail_next(int rc)
{
    fake.fail_at = fake.calls + 1;
    fake.fail_with = rc;
    fake.log[0] = 0;
}

static const tamis_error untouched = {.code = 77, .message = "untouched"};

// ---- Opening, closing --------------------------------------------------------------------------

START_TEST(a_missing_file_is_an_answer)
{
    tamis_dir *dir = set_up();
    tm_file f;
    tamis_error err = untouched;
    ck_assert_int_eq(tm_file_open(dir, "none", 1, TAMIS_FILE_READ, &f, &err), TAMIS_NOTFOUND);
    ck_assert_int_eq(tm_file_open(dir, "none", 1, TAMIS_FILE_WRITE, &f, &err), TAMIS_NOTFOUND);
    ck_assert_int_eq(err.code, 77);
    ck_assert(!tm_file_is_open(&f));
    ck_assert_int_eq(tm_file_close(&f, &err), TAMIS_OK);
    ck_assert_int_eq(err.code, 77);
    fail_next(ENOENT); // for a new file it means that the folder is gone
    ck_assert_int_eq(tm_file_open(dir, "new", 1, TAMIS_FILE_CREATE, &f, &err), TAMIS_IO);
    ck_assert_int_eq(err.sys, ENOENT);
}
END_TEST

START_TEST(opening_fails_with_a_reason)
{
    tamis_dir *dir = set_up();
    tm_file f;
    tamis_error err;
    add("000012.sst", "x");
    const char *name = "000012.sst";
    ck_assert_int_eq(tm_file_open(dir, name, 12, TAMIS_FILE_CREATE, &f, &err), TAMIS_EXISTS);
    ck_assert_int_eq(err.code, TAMIS_EXISTS);
    ck_assert_int_eq(err.sys, EEXIST);
    ck_assert_int_eq(tm_file_open(dir, name, 12, TAMIS_FILE_CREATE, &f, NULL), TAMIS_EXISTS);
    fail_next(EMFILE);
    ck_assert_int_eq(tm_file_open(dir, name, 12, TAMIS_FILE_READ, &f, &err), TAMIS_IO);
    ck_assert_str_eq(err.message, "open 000012.sst: Too many open files");
    ck_assert_uint_eq(err.retryable, 1);
    ck_assert_uint_eq(err.file_number, 12);
    fail_next(ELOOP);
    ck_assert_int_eq(tm_file_open(dir, name, 12, TAMIS_FILE_READ, &f, &err), TAMIS_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "no regular file"));
    ck_assert(!tm_file_is_open(&f));
    fail_next(ENOMEM);
    ck_assert_int_eq(tm_file_open(dir, name, 12, TAMIS_FILE_READ, &f, &err), TAMIS_NOMEM);
}
END_TEST

START_TEST(a_close_is_final)
{
    tamis_dir *dir = set_up();
    tm_file f = open_new(dir, "a-name-of-more-than-thirty-one-bytes", 5);
    tamis_error err;
    ck_assert_str_eq(f.label, "a-name-of-more-than-thirty-one-");
    ck_assert_uint_eq(f.number, 5);
    ck_assert(tm_file_is_open(&f));
    fail_next(EIO);
    ck_assert_int_eq(tm_file_close(&f, &err), TAMIS_IO);
    ck_assert_str_eq(err.message, "close a-name-of-more-than-thirty-one-: Input/output error");
    ck_assert(!tm_file_is_open(&f));
    ck_assert_int_eq(tm_file_close(&f, &err), TAMIS_OK);
    ck_assert_str_eq(fake.log, "close"); // once
    ck_assert_int_eq(fake.open_handles, 0);
}
END_TEST

// ---- Reading, writing --------------------------------------------------------------------------

START_TEST(pieces_and_interruptions_are_put_together)
{
    for (size_t most = 1; most < 12; most++) {
        tamis_dir *dir = set_up();
        tm_file f = open_new(dir, "f", 1);
        tamis_error err;
        fake.most = most;
        fake.interruptions = 3;
        ck_assert_int_eq(tm_file_write(&f, 2, "0123456789", 10, &err), TAMIS_OK);
        char out[16] = {0};
        fake.interruptions = 3;
        ck_assert_int_eq(tm_file_read(&f, 2, out, 10, &err), TAMIS_OK);
        ck_assert_str_eq(out, "0123456789");
        uint64_t size = 0;
        fake.interruptions = 1;
        ck_assert_int_eq(tm_file_size(&f, &size, &err), TAMIS_OK);
        ck_assert_uint_eq(size, 12);
        fake.interruptions = 1;
        ck_assert_int_eq(tm_file_truncate(&f, 5, &err), TAMIS_OK);
        ck_assert_uint_eq(fake.files[0].size, 5);
        fake.interruptions = 1;
        ck_assert_int_eq(tm_file_reserve(&f, 0, 100, &err), TAMIS_OK);
        fake.log[0] = 0;
        ck_assert_int_eq(tm_file_write(&f, 0, NULL, 0, &err), TAMIS_OK);
        ck_assert_int_eq(tm_file_read(&f, 0, NULL, 0, &err), TAMIS_OK);
        ck_assert_str_eq(fake.log, "");
        ck_assert_int_eq(tm_file_close(&f, &err), TAMIS_OK);
    }
}
END_TEST

START_TEST(the_end_of_a_file_is_told)
{
    tamis_dir *dir = set_up();
    tm_file f = open_new(dir, "000007.sst", 7);
    tamis_error err;
    char out[16];
    size_t got = 99;
    ck_assert_int_eq(tm_file_write(&f, 0, "abcdef", 6, &err), TAMIS_OK);
    ck_assert_int_eq(tm_file_read_some(&f, 4, out, 10, &got, &err), TAMIS_OK);
    ck_assert_uint_eq(got, 2);
    static const uint64_t behind[] = {6, 7, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX};
    for (size_t i = 0; i < TM_COUNT(behind); i++) {
        got = 99;
        ck_assert_int_eq(tm_file_read_some(&f, behind[i], out, 10, &got, &err), TAMIS_OK);
        ck_assert_uint_eq(got, 0);
        ck_assert_int_eq(tm_file_read(&f, behind[i], out, 10, &err), TAMIS_CORRUPT);
        ck_assert_uint_eq(err.file_number, 7);
        ck_assert_uint_eq(err.offset, behind[i]);
    }
    ck_assert_int_eq(tm_file_read(&f, 4, out, 3, &err), TAMIS_CORRUPT);
    ck_assert_uint_eq(err.offset, 6);
    ck_assert_str_eq(err.message, "000007.sst ends too early: 3 bytes wanted at offset 4, 2 there");
    ck_assert_int_eq(tm_file_read(&f, 4, out, 2, &err), TAMIS_OK);
    ck_assert_int_eq(tm_file_close(&f, NULL), TAMIS_OK);
}
END_TEST

// The second of several calls fails: the offset is the one it was at.
START_TEST(failures_tell_the_offset)
{
    tamis_dir *dir = set_up();
    tm_file f = open_new(dir, "000003.log", 3);
    tamis_error err;
    char out[16];
    size_t got;
    fake.most = 4;
    fail_next(ENOSPC);
    fake.fail_at++;
    ck_assert_int_eq(tm_file_write(&f, 100, "0123456789", 10, &err), TAMIS_NOSPACE);
    ck_assert_str_eq(err.message, "write 000003.log: No space left on device");
    ck_assert_uint_eq(err.offset, 104);
    ck_assert_uint_eq(err.file_number, 3);
    ck_assert_int_eq(tm_file_write(&f, 0, "0123456789", 10, &err), TAMIS_OK);
    fail_next(EIO);
    fake.fail_at++;
    ck_assert_int_eq(tm_file_read(&f, 1, out, 9, &err), TAMIS_IO);
    ck_assert_uint_eq(err.offset, 5);
    ck_assert_str_eq(err.message, "read 000003.log: Input/output error");
    fail_next(EIO);
    ck_assert_int_eq(tm_file_read_some(&f, 1, out, 9, &got, &err), TAMIS_IO);
    ck_assert_int_eq(tm_file_close(&f, NULL), TAMIS_OK);
}
END_TEST

START_TEST(a_broken_file_system_does_not_hang_or_overrun)
{
    tamis_dir *dir = set_up();
    tm_file f = open_new(dir, "f", 1);
    tamis_error err;
    char out[16];
    fake.liar = true;
    ck_assert_int_eq(tm_file_write(&f, 0, "abc", 3, &err), TAMIS_IO);
    ck_assert_int_eq(tm_file_read(&f, 0, out, 3, &err), TAMIS_IO);
    fake.liar = false;
    fake.idle = true;
    ck_assert_int_eq(tm_file_write(&f, 0, "abc", 3, &err), TAMIS_IO);
    ck_assert_int_eq(err.sys, EIO);
    ck_assert_int_eq(tm_file_read(&f, 0, out, 3, &err), TAMIS_CORRUPT);
    fake.idle = false;
    ck_assert_int_eq(tm_file_write(&f, UINT64_MAX, "abc", 3, &err), TAMIS_IO);
    ck_assert_int_eq(err.sys, EFBIG);
    ck_assert_int_eq(tm_file_write(&f, INT64_MAX - 2, "abc", 3, &err), TAMIS_IO);
    ck_assert_int_eq(tm_file_close(&f, NULL), TAMIS_OK);
}
END_TEST

START_TEST(other_calls_pass_failures_on)
{
    tamis_dir *dir = set_up();
    tm_file f = open_new(dir, "f", 1);
    tamis_error err;
    uint64_t size;
    fail_next(EIO);
    ck_assert_int_eq(tm_file_size(&f, &size, &err), TAMIS_IO);
    fail_next(EIO);
    ck_assert_int_eq(tm_file_truncate(&f, 0, &err), TAMIS_IO);
    fail_next(EDQUOT);
    ck_assert_int_eq(tm_file_reserve(&f, 0, 10, &err), TAMIS_NOSPACE);
    static const int cannot[] = {ENOTSUP, ENOSYS};
    for (size_t i = 0; i < TM_COUNT(cannot); i++) {
        fail_next(cannot[i]);
        ck_assert_int_eq(tm_file_reserve(&f, 0, 10, &err), TAMIS_OK);
    }
    ck_assert_int_eq(tm_file_close(&f, NULL), TAMIS_OK);
}
END_TEST

START_TEST(a_sync_is_never_repeated)
{
    tamis_dir *dir = set_up();
    tm_file f = open_new(dir, "f", 1);
    tamis_error err;
    static const int failures[] = {EINTR, EAGAIN, EIO, ENOSPC};
    for (size_t i = 0; i < TM_COUNT(failures); i++) {
        fail_next(failures[i]);
        ck_assert_int_ne(tm_file_sync(&f, &err), TAMIS_OK);
        ck_assert_str_eq(fake.log, "sync");
        ck_assert_int_eq(err.sys, failures[i]);
        fail_next(failures[i]);
        ck_assert_int_ne(tm_dir_sync(dir, &err), TAMIS_OK);
        ck_assert_str_eq(fake.log, "dir_sync");
        ck_assert_int_eq(err.sys, failures[i]);
    }
    ck_assert_int_eq(tm_file_sync(&f, &err), TAMIS_OK);
    ck_assert_int_eq(tm_dir_sync(dir, &err), TAMIS_OK);
    ck_assert_int_eq(tm_file_close(&f, NULL), TAMIS_OK);
}
END_TEST

START_TEST(hints_may_be_missing_and_may_fail)
{
    tamis_dir *dir = set_up();
    tm_file f = open_new(dir, "f", 1);
    fail_next(EIO);
    tm_file_write_back(&f, 10, 20);
    ck_assert_int_eq(fake.advice, 30);
    tm_file_advise(&f, 1, 2, true);
    ck_assert_int_eq(fake.advice, 3);
    tm_file_advise(&f, 1, 2, false);
    ck_assert_int_eq(fake.advice, -3);
    ck_assert_str_eq(fake.log, "write_back advise advise");
    fake.vfs.write_back = NULL;
    fake.vfs.advise = NULL;
    tm_file_write_back(&f, 10, 20);
    tm_file_advise(&f, 1, 2, true);
    ck_assert_int_eq(tm_file_close(&f, NULL), TAMIS_OK);
}
END_TEST

// ---- Directories -------------------------------------------------------------------------------

START_TEST(directories_open_and_close)
{
    (void)set_up();
    tamis_dir *dir = &fake.dir;
    bool created = false;
    tamis_error err = untouched;
    ck_assert_int_eq(tm_dir_open(&fake.vfs, "missing", TAMIS_DIR_EXISTING, &dir, NULL, &err),
                     TAMIS_NOTFOUND);
    ck_assert_int_eq(err.code, 77);
    ck_assert_ptr_null(dir);
    tm_dir_close(dir);
    ck_assert_int_eq(tm_dir_open(&fake.vfs, "missing", TAMIS_DIR_CREATE, &dir, NULL, &err),
                     TAMIS_NOTFOUND);
    fake.interruptions = 2;
    ck_assert_int_eq(tm_dir_open(&fake.vfs, "d", TAMIS_DIR_CREATE, &dir, &created, &err), TAMIS_OK);
    ck_assert(created);
    tm_dir_close(dir);
    ck_assert_int_eq(tm_dir_open(&fake.vfs, "d", TAMIS_DIR_CREATE, &dir, &created, &err), TAMIS_OK);
    ck_assert(!created);
    tm_dir_close(dir);
    ck_assert_int_eq(fake.open_dirs, 0);
}
END_TEST

START_TEST(names_are_changed)
{
    tamis_dir *dir = set_up();
    tamis_error err = untouched;
    add("a", "A");
    add("b", "B");
    ck_assert_int_eq(tm_dir_unlink(dir, "c", &err), TAMIS_NOTFOUND);
    ck_assert_int_eq(err.code, 77);
    ck_assert_int_eq(tm_dir_rename(dir, "a", dir, "b", TAMIS_RENAME_NOREPLACE, &err), TAMIS_EXISTS);
    ck_assert_int_eq(err.code, TAMIS_EXISTS);
    ck_assert_str_eq(err.message, "rename a to b: File exists");
    ck_assert_int_eq(tm_dir_rename(dir, "c", dir, "b", TAMIS_RENAME_REPLACE, &err), TAMIS_IO);
    fake.interruptions = 1;
    ck_assert_int_eq(tm_dir_rename(dir, "a", dir, "b", TAMIS_RENAME_REPLACE, &err), TAMIS_OK);
    ck_assert_ptr_null(find("a"));
    ck_assert(holds("b", "A"));
    fail_next(EACCES);
    ck_assert_int_eq(tm_dir_unlink(dir, "b", &err), TAMIS_IO);
    ck_assert_str_eq(err.message, "unlink b: Permission denied");
    fake.interruptions = 1;
    ck_assert_int_eq(tm_dir_unlink(dir, "b", &err), TAMIS_OK);
    ck_assert_ptr_null(find("b"));
}
END_TEST

// ---- Whole files -------------------------------------------------------------------------------

START_TEST(a_small_file_is_loaded)
{
    tamis_dir *dir = set_up();
    tamis_error err = untouched;
    tm_buf b = {0};
    add("f", "0123456789");
    add("empty", "");
    ck_assert_int_eq(tm_buf_append(&b, "old", 3), TAMIS_OK);
    fake.most = 3;
    ck_assert_int_eq(tm_file_load(dir, "f", 10, &b, &err), TAMIS_OK);
    ck_assert(tm_slice_equal(tm_buf_slice(&b), tm_slice_str("0123456789")));
    ck_assert_int_eq(tm_file_load(dir, "empty", 10, &b, &err), TAMIS_OK);
    ck_assert_uint_eq(b.len, 0);
    ck_assert_int_eq(tm_file_load(dir, "none", 10, &b, &err), TAMIS_NOTFOUND);
    ck_assert_int_eq(err.code, 77);
    ck_assert_int_eq(tm_file_load(dir, "f", 9, &b, &err), TAMIS_TOOLARGE);
    ck_assert_str_eq(err.message, "f has 10 bytes, at most 9 are expected");
    ck_assert_uint_eq(b.len, 0);
    ck_assert_int_eq(fake.open_handles, 0);
    tm_buf_deinit(&b);
}
END_TEST

static bool deny(void *ctx, size_t n)
{
    (void)ctx;
    (void)n;
    return false;
}

START_TEST(loading_fails_cleanly_at_every_call)
{
    bool through = false;
    for (int n = 1; !through; n++) {
        tamis_dir *dir = set_up();
        tamis_error err = untouched;
        tm_buf b = {0};
        add("f", "0123456789");
        fake.most = 4;
        fake.fail_at = n;
        fake.fail_with = EIO;
        int st = tm_file_load(dir, "f", 100, &b, &err);
        through = fake.calls < n;
        // A failed close is no failure: the file was only read.
        bool at_close = n == 6;
        ck_assert_int_eq(st, through || at_close ? TAMIS_OK : TAMIS_IO);
        ck_assert_uint_eq(b.len, st == TAMIS_OK ? 10 : 0);
        ck_assert_int_eq(err.code, st == TAMIS_OK ? 77 : TAMIS_IO);
        if (through) ck_assert_str_eq(fake.log, "open:f size read read read close");
        ck_assert_int_eq(fake.open_handles, 0);
        tm_buf_deinit(&b);
        ck_assert_int_lt(n, 20);
    }
    tamis_dir *dir = set_up();
    tamis_error err;
    tm_buf b = {0};
    add("f", "0123456789");
    tm_mem_set_hook(deny, NULL);
    ck_assert_int_eq(tm_file_load(dir, "f", 100, &b, &err), TAMIS_NOMEM);
    tm_mem_set_hook(NULL, NULL);
    ck_assert_int_eq(err.code, TAMIS_NOMEM);
    ck_assert_int_eq(fake.open_handles, 0);
}
END_TEST

START_TEST(a_file_is_replaced_in_the_safe_order)
{
    tamis_dir *dir = set_up();
    tamis_error err;
    add("CURRENT", "old");
    add("tmp", "of a crash");
    ck_assert_int_eq(tm_file_replace(dir, "CURRENT", "tmp", tm_slice_str("new"), &err), TAMIS_OK);
    ck_assert_str_eq(fake.log, "unlink:tmp open:tmp write sync close rename:tmp dir_sync");
    ck_assert_ptr_null(find("tmp"));
    ck_assert(holds("CURRENT", "new"));
    ck_assert(find("CURRENT")->synced);
    ck_assert_int_eq(fake.open_handles, 0);
}
END_TEST

START_TEST(replacing_fails_cleanly_at_every_call)
{
    int failures = 0;
    for (int n = 1; n <= 7; n++) {
        tamis_dir *dir = set_up();
        tamis_error err = untouched;
        add("CURRENT", "old");
        fake.fail_at = n;
        fake.fail_with = EIO;
        int st = tm_file_replace(dir, "CURRENT", "tmp", tm_slice_str("new"), &err);
        failures += st != TAMIS_OK;
        ck_assert_int_eq(st, TAMIS_IO);
        ck_assert_int_eq(err.sys, EIO);
        ck_assert(holds("CURRENT", n < 7 ? "old" : "new"));
        ck_assert_ptr_null(find("tmp"));
        ck_assert_int_eq(fake.open_handles, 0);
    }
    ck_assert_int_eq(failures, 7);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("file");
    TCase *t = tcase_create("file");
    tcase_add_test(t, a_missing_file_is_an_answer);
    tcase_add_test(t, opening_fails_with_a_reason);
    tcase_add_test(t, a_close_is_final);
    tcase_add_test(t, pieces_and_interruptions_are_put_together);
    tcase_add_test(t, the_end_of_a_file_is_told);
    tcase_add_test(t, failures_tell_the_offset);
    tcase_add_test(t, a_broken_file_system_does_not_hang_or_overrun);
    tcase_add_test(t, other_calls_pass_failures_on);
    tcase_add_test(t, a_sync_is_never_repeated);
    tcase_add_test(t, hints_may_be_missing_and_may_fail);
    tcase_add_test(t, directories_open_and_close);
    tcase_add_test(t, names_are_changed);
    tcase_add_test(t, a_small_file_is_loaded);
    tcase_add_test(t, loading_fails_cleanly_at_every_call);
    tcase_add_test(t, a_file_is_replaced_in_the_safe_order);
    tcase_add_test(t, replacing_fails_cleanly_at_every_call);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
