// SPDX-License-Identifier: BSD-2-Clause
//
// file.h - the tamis_vfs calls as the library uses them: whole reads and writes, EINTR repeated,
// failures as a status with file and offset in the error.
//
// label is how messages call the file ("000012.sst"); number is its file number or 0.
//
// Errors: as tm_fail_sys says, and EEXIST gives EXISTS (open for TAMIS_FILE_CREATE, rename without
// replacing). A sync is never repeated, not even after EINTR.
#ifndef TM_FILE_H
#define TM_FILE_H

#include "base/buf.h"
#include "tamis_vfs.h"

typedef struct tm_file {
    tamis_file *f;
    uint64_t number;
    char label[32];
} tm_file;

// Missing: NOTFOUND without touching err. mode: TAMIS_FILE_*.
int tm_file_open(tamis_dir *dir, const char *name, uint64_t number, uint32_t mode, tm_file *out,
                 tamis_error *err) TM_CHECK_RESULT;
int tm_file_close(tm_file *file, tamis_error *err); // closing a closed one is fine
static inline bool tm_file_is_open(const tm_file *file)
{
    return file->f != NULL;
}

// Exactly n bytes, or CORRUPT when the file ends before.
int tm_file_read(tm_file *file, uint64_t offset, void *buf, size_t n,
                 tamis_error *err) TM_CHECK_RESULT;
// Up to n bytes; *got < n only at the end of the file.
int tm_file_read_some(tm_file *file, uint64_t offset, void *buf, size_t n, size_t *got,
                      tamis_error *err) TM_CHECK_RESULT;
// All n bytes. After a failure nothing is known about [offset, offset + n).
int tm_file_write(tm_file *file, uint64_t offset, const void *buf, size_t n,
                  tamis_error *err) TM_CHECK_RESULT;
int tm_file_size(tm_file *file, uint64_t *size, tamis_error *err) TM_CHECK_RESULT;
int tm_file_truncate(tm_file *file, uint64_t size, tamis_error *err) TM_CHECK_RESULT;
// Where the file system cannot reserve, nothing happens, and all is well.
int tm_file_reserve(tm_file *file, uint64_t offset, uint64_t n, tamis_error *err) TM_CHECK_RESULT;
int tm_file_sync(tm_file *file, tamis_error *err) TM_CHECK_RESULT; // a failure is final
void tm_file_write_back(tm_file *file, uint64_t offset, uint64_t n);
void tm_file_advise(tm_file *file, uint64_t offset, uint64_t n, bool will_need);

// NOTFOUND without touching err: it is missing, or with TAMIS_DIR_CREATE the folder above it is.
// created may be NULL.
int tm_dir_open(const tamis_vfs *vfs, const char *path, uint32_t flags, tamis_dir **out,
                bool *created, tamis_error *err) TM_CHECK_RESULT;
void tm_dir_close(tamis_dir *dir); // NULL is fine
int tm_dir_sync(tamis_dir *dir, tamis_error *err) TM_CHECK_RESULT;
int tm_dir_rename(tamis_dir *from_dir, const char *from, tamis_dir *to_dir, const char *to,
                  uint32_t flags, tamis_error *err) TM_CHECK_RESULT;
int tm_dir_unlink(tamis_dir *dir, const char *name, tamis_error *err) TM_CHECK_RESULT; // NOTFOUND

// Reads a whole small file (at most limit bytes, else TOOLARGE) in place of out's content, which is
// empty after a failure. Missing: NOTFOUND.
int tm_file_load(tamis_dir *dir, const char *name, size_t limit, tm_buf *out,
                 tamis_error *err) TM_CHECK_RESULT;
// Replaces name by a new file with this content, durably: writes tmp, syncs, renames, syncs dir. A
// tmp left by a crash is written anew. After a failure either content may be there, whole.
int tm_file_replace(tamis_dir *dir, const char *name, const char *tmp, tm_slice content,
                    tamis_error *err) TM_CHECK_RESULT;

#endif // TM_FILE_H
