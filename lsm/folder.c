// SPDX-License-Identifier: BSD-2-Clause

#include "lsm/folder.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct listing {
    tm_folder *f;
    int status;
} listing;

static int add_name(void *ctx, const char *name)
{
    listing *l = ctx;
    tm_folder *f = l->f;
    uint64_t number;
    tm_buf *numbers = NULL;
    switch (tm_filename_parse(name, &number)) {
    case TM_FILE_CURRENT:
        f->has_current = true;
        break;
    case TM_FILE_TEMP:
        f->has_temp = true;
        break;
    case TM_FILE_LOCK:
        f->has_lock = true;
        break;
    case TM_FILE_NOTES:
        f->has_notes = true;
        break;
    case TM_FILE_LOST:
        f->has_lost = true;
        break;
    case TM_FILE_MANIFEST:
        numbers = &f->manifests;
        break;
    case TM_FILE_LOG:
        numbers = &f->logs;
        break;
    case TM_FILE_TABLE:
        numbers = &f->tables;
        break;
    case TM_FILE_OTHER:
        if (!f->has_other) {
            size_t n = TM_MIN(strlen(name), sizeof f->other - 1);
            for (size_t i = 0; i < n; i++) { // it goes into messages
                f->other[i] = name[i] >= 0x20 && name[i] < 0x7f ? name[i] : '?';
            }
            f->other[n] = '\0';
        }
        f->has_other = true;
        break;
    }
    if (numbers != NULL) {
        l->status = tm_buf_append(numbers, &number, sizeof number);
        f->highest = TM_MAX(f->highest, number);
    }
    return l->status != TAMIS_OK;
}

static int compare_numbers(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

int tm_folder_list(tamis_dir *dir, tm_folder *out, tamis_error *err)
{
    memset(out, 0, sizeof *out);
    listing l = {out, TAMIS_OK};
    int sys = dir->vfs->dir_list(dir, add_name, &l);
    if (l.status != TAMIS_OK) {
        tm_folder_deinit(out);
        return tm_fail_nomem(err);
    }
    if (sys != 0) {
        tm_folder_deinit(out);
        return tm_fail_sys(err, sys, 0, 0, "list the store's folder");
    }
    tm_buf *all[] = {&out->manifests, &out->logs, &out->tables};
    for (size_t i = 0; i < TM_COUNT(all); i++) {
        if (all[i]->len > 0) qsort(all[i]->data, tm_folder_count(all[i]), 8, compare_numbers);
    }
    return TAMIS_OK;
}

void tm_folder_deinit(tm_folder *f)
{
    tm_buf_deinit(&f->manifests);
    tm_buf_deinit(&f->logs);
    tm_buf_deinit(&f->tables);
}

uint64_t tm_folder_at(const tm_buf *numbers, size_t i)
{
    uint64_t n;
    memcpy(&n, numbers->data + i * sizeof n, sizeof n);
    return n;
}

bool tm_folder_has(const tm_buf *numbers, uint64_t number)
{
    for (size_t i = 0; i < tm_folder_count(numbers); i++) {
        if (tm_folder_at(numbers, i) == number) return true;
    }
    return false;
}
