// SPDX-License-Identifier: BSD-2-Clause
#include "base/file.h"

#include <errno.h>

// Calls that a signal interrupted had no effect and are repeated. Not used for syncs.
#define REPEAT(rc, call)                                                                           \
    do {                                                                                           \
        (rc) = (call);                                                                             \
    } while ((rc) == EINTR)

enum { FRUITLESS_MAX = 16 }; // writes in a row that move nothing, before that is a failure

static int fail(tamis_error *err, int rc, const char *verb, const tm_file *file, uint64_t offset)
{
    return tm_fail_sys(err, rc, file->number, offset, "%s %s", verb, file->label);
}

// For calls that make a name: st is what tm_fail_sys said about rc.
static int name_status(tamis_error *err, int rc, int st)
{
    if (rc != EEXIST) return st;
    if (err != NULL) err->code = TAMIS_EXISTS;
    return TAMIS_EXISTS;
}

// ---- Files -------------------------------------------------------------------------------------

int tm_file_open(tamis_dir *dir, const char *name, uint64_t number, uint32_t mode, tm_file *out,
                 tamis_error *err)
{
    *out = (tm_file){.number = number};
    size_t n = TM_MIN(strlen(name), sizeof(out->label) - 1);
    memcpy(out->label, name, n); // the rest is zeros
    tamis_file *f = NULL;
    int rc;
    REPEAT(rc, dir->vfs->file_open(dir, name, mode, &f));
    if (rc == ENOENT && mode != TAMIS_FILE_CREATE) return TAMIS_NOTFOUND;
    if (rc == ELOOP || rc == EINVAL) {
        return tm_fail_sys(err, rc, number, 0, "open %s, which is no regular file", name);
    }
    if (rc != 0) {
        return name_status(err, rc, tm_fail_sys(err, rc, number, 0, "open %s", name));
    }
    out->f = f;
    return TAMIS_OK;
}

int tm_file_close(tm_file *file, tamis_error *err)
{
    tamis_file *f = file->f;
    if (f == NULL) return TAMIS_OK;
    file->f = NULL;
    int rc = f->vfs->file_close(f);
    return rc == 0 ? TAMIS_OK : fail(err, rc, "close", file, 0);
}

int tm_file_read_some(tm_file *file, uint64_t offset, void *buf, size_t n, size_t *got,
                      tamis_error *err)
{
    *got = 0;
    while (*got < n && offset <= INT64_MAX - *got) { // no file goes on behind that
        size_t moved = 0, left = n - *got;
        uint64_t at = offset + *got;
        int rc;
        REPEAT(rc, file->f->vfs->read_at(file->f, at, (uint8_t *)buf + *got, left, &moved));
        if (rc == 0 && moved > left) rc = EIO; // an implementation gone wrong
        if (rc != 0) return fail(err, rc, "read", file, at);
        if (moved == 0) break;
        *got += moved;
    }
    return TAMIS_OK;
}

int tm_file_read(tm_file *file, uint64_t offset, void *buf, size_t n, tamis_error *err)
{
    size_t got;
    TM_TRY(tm_file_read_some(file, offset, buf, n, &got, err));
    if (got == n) return TAMIS_OK;
    return tm_fail_corrupt(err, file->number, offset + got,
                           "%s ends too early: %zu bytes wanted at offset %llu, %zu there",
                           file->label, n, (unsigned long long)offset, got);
}

int tm_file_write(tm_file *file, uint64_t offset, const void *buf, size_t n, tamis_error *err)
{
    const uint8_t *p = buf;
    int fruitless = 0;
    if (offset > INT64_MAX || n > INT64_MAX - offset) {
        return fail(err, EFBIG, "write", file, offset);
    }
    while (n > 0) {
        size_t moved = 0;
        int rc;
        REPEAT(rc, file->f->vfs->write_at(file->f, offset, p, n, &moved));
        if (rc == 0 && moved > n) rc = EIO;
        if (rc == 0 && moved == 0 && ++fruitless == FRUITLESS_MAX) rc = EIO;
        if (rc != 0) return fail(err, rc, "write", file, offset);
        if (moved == 0) continue;
        fruitless = 0;
        p += moved;
        offset += moved;
        n -= moved;
    }
    return TAMIS_OK;
}

int tm_file_size(tm_file *file, uint64_t *size, tamis_error *err)
{
    int rc;
    REPEAT(rc, file->f->vfs->file_size(file->f, size));
    return rc == 0 ? TAMIS_OK : fail(err, rc, "read the size of", file, 0);
}

int tm_file_truncate(tm_file *file, uint64_t size, tamis_error *err)
{
    int rc;
    REPEAT(rc, file->f->vfs->truncate(file->f, size));
    return rc == 0 ? TAMIS_OK : fail(err, rc, "truncate", file, size);
}

int tm_file_reserve(tm_file *file, uint64_t offset, uint64_t n, tamis_error *err)
{
    int rc;
    REPEAT(rc, file->f->vfs->reserve(file->f, offset, n));
    bool done = rc == 0 || rc == ENOTSUP || rc == ENOSYS;
    return done ? TAMIS_OK : fail(err, rc, "reserve room for", file, offset);
}

int tm_file_sync(tm_file *file, tamis_error *err)
{
    int rc = file->f->vfs->data_sync(file->f);
    return rc == 0 ? TAMIS_OK : fail(err, rc, "sync", file, 0);
}

void tm_file_write_back(tm_file *file, uint64_t offset, uint64_t n)
{
    const tamis_vfs *vfs = file->f->vfs;
    if (vfs->write_back != NULL) (void)vfs->write_back(file->f, offset, n);
}

void tm_file_advise(tm_file *file, uint64_t offset, uint64_t n, bool will_need)
{
    const tamis_vfs *vfs = file->f->vfs;
    if (vfs->advise != NULL) (void)vfs->advise(file->f, offset, n, will_need);
}

// ---- Directories -------------------------------------------------------------------------------

int tm_dir_open(const tamis_vfs *vfs, const char *path, uint32_t flags, tamis_dir **out,
                bool *created, tamis_error *err)
{
    *out = NULL;
    tamis_dir *dir = NULL;
    int made = 0, rc;
    REPEAT(rc, vfs->dir_open(vfs, path, flags, &dir, &made));
    if (rc == ENOENT) return TAMIS_NOTFOUND; // the folder, or with CREATE the one above it
    if (rc != 0) return tm_fail_sys(err, rc, 0, 0, "open directory %s", path);
    *out = dir;
    if (created != NULL) *created = made != 0;
    return TAMIS_OK;
}

void tm_dir_close(tamis_dir *dir)
{
    if (dir != NULL) dir->vfs->dir_close(dir);
}

int tm_dir_sync(tamis_dir *dir, tamis_error *err)
{
    int rc = dir->vfs->dir_sync(dir);
    return rc == 0 ? TAMIS_OK : tm_fail_sys(err, rc, 0, 0, "sync the directory");
}

int tm_dir_rename(tamis_dir *from_dir, const char *from, tamis_dir *to_dir, const char *to,
                  uint32_t flags, tamis_error *err)
{
    int rc;
    REPEAT(rc, from_dir->vfs->rename(from_dir, from, to_dir, to, flags));
    if (rc == 0) return TAMIS_OK;
    return name_status(err, rc, tm_fail_sys(err, rc, 0, 0, "rename %s to %s", from, to));
}

int tm_dir_unlink(tamis_dir *dir, const char *name, tamis_error *err)
{
    int rc;
    REPEAT(rc, dir->vfs->unlink(dir, name));
    if (rc == ENOENT) return TAMIS_NOTFOUND;
    return rc == 0 ? TAMIS_OK : tm_fail_sys(err, rc, 0, 0, "unlink %s", name);
}

// ---- Whole files -------------------------------------------------------------------------------

int tm_file_load(tamis_dir *dir, const char *name, size_t limit, tm_buf *out, tamis_error *err)
{
    tm_file file;
    uint64_t size = 0;
    tm_buf_clear(out);
    int st = tm_file_open(dir, name, 0, TAMIS_FILE_READ, &file, err);
    if (st != TAMIS_OK) return st;
    TM_GOTO(tm_file_size(&file, &size, err));
    if (size > limit) {
        st = tm_fail(err, TAMIS_TOOLARGE, "%s has %llu bytes, at most %zu are expected", file.label,
                     (unsigned long long)size, limit);
        goto out;
    }
    if (tm_buf_reserve(out, (size_t)size) != TAMIS_OK) {
        st = tm_fail_nomem(err);
        goto out;
    }
    TM_GOTO(tm_file_read_some(&file, 0, out->data, (size_t)size, &out->len, err));
out:
    if (st != TAMIS_OK) tm_buf_clear(out);
    TM_IGNORE(tm_file_close(&file, NULL)); // it was only read
    return st;
}

int tm_file_replace(tamis_dir *dir, const char *name, const char *tmp, tm_slice content,
                    tamis_error *err)
{
    tm_file file;
    bool made = true; // tmp is there
    int st = tm_dir_unlink(dir, tmp, err);
    if (st != TAMIS_OK && st != TAMIS_NOTFOUND) return st;
    TM_TRY(tm_file_open(dir, tmp, 0, TAMIS_FILE_CREATE, &file, err));
    assert(tm_file_is_open(&file));
    TM_GOTO(tm_file_write(&file, 0, content.data, content.len, err));
    TM_GOTO(tm_file_sync(&file, err));
    TM_GOTO(tm_file_close(&file, err));
    TM_GOTO(tm_dir_rename(dir, tmp, dir, name, TAMIS_RENAME_REPLACE, err));
    made = false;
    TM_GOTO(tm_dir_sync(dir, err));
out:
    TM_IGNORE(tm_file_close(&file, NULL));
    if (made) TM_IGNORE(tm_dir_unlink(dir, tmp, NULL)); // the first failure is the one to tell
    return st;
}
