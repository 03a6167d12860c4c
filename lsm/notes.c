// SPDX-License-Identifier: BSD-2-Clause

#include "lsm/notes.h"

#include <errno.h>
#include <stdio.h>

#include "lsm/filename.h"

int tm_notes_init(tm_notes *n, tamis_error *err)
{
    memset(n, 0, sizeof *n);
    TM_TRY(tm_mutex_init(&n->m, err));
    n->ready = true;
    return TAMIS_OK;
}

static void start_file(tm_notes *n)
{
    int sys = n->dir->vfs->rename(n->dir, TM_NAME_NOTES, n->dir, TM_NAME_NOTES_OLD,
                                  TAMIS_RENAME_REPLACE);
    if (sys != 0 && sys != ENOENT) { // a LOG that cannot be moved is not written over
        n->dir = NULL;
        return;
    }
    n->end = 0;
    if (tm_file_open(n->dir, TM_NAME_NOTES, 0, TAMIS_FILE_CREATE, &n->file, NULL) != TAMIS_OK) {
        n->dir = NULL;
    }
}

void tm_notes_open(tm_notes *n, tamis_dir *dir, uint64_t limit)
{
    tm_mutex_lock(&n->m);
    n->dir = dir;
    n->limit = limit;
    start_file(n);
    tm_mutex_unlock(&n->m);
}

// "2026-12-01T05:10:19.123Z "
static int format_time(char *out, size_t cap, uint64_t wall_ms)
{
    uint64_t seconds = wall_ms / 1000, days = seconds / 86400, second = seconds % 86400;
    // Civil date from days since 1970 (Hinnant, "chrono-compatible low-level date algorithms").
    uint64_t z = days + 719468, era = z / 146097, doe = z - era * 146097;
    uint64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    uint64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
    uint64_t day = doy - (153 * mp + 2) / 5 + 1, month = mp < 10 ? mp + 3 : mp - 9;
    uint64_t year = yoe + era * 400 + (month <= 2);
    return snprintf(out, cap, "%04llu-%02llu-%02lluT%02llu:%02llu:%02llu.%03lluZ ",
                    (unsigned long long)year, (unsigned long long)month, (unsigned long long)day,
                    (unsigned long long)(second / 3600), (unsigned long long)(second / 60 % 60),
                    (unsigned long long)(second % 60), (unsigned long long)(wall_ms % 1000));
}

void tm_notes_write(tm_notes *n, uint64_t wall_ms, const char *line)
{
    char text[640];
    int head = format_time(text, sizeof text, wall_ms);
    int len = snprintf(text + head, sizeof text - (size_t)head, "%s\n", line);
    size_t total = TM_MIN((size_t)head + (size_t)TM_MAX(len, 0), sizeof text - 1);
    text[total - 1] = '\n';
    tm_mutex_lock(&n->m);
    if (n->dir != NULL && n->end > n->limit) {
        (void)!tm_file_close(&n->file, NULL);
        start_file(n);
    }
    if (n->dir != NULL && tm_file_write(&n->file, n->end, text, total, NULL) == TAMIS_OK) {
        n->end += total;
    }
    tm_mutex_unlock(&n->m);
}

void tm_notes_close(tm_notes *n)
{
    if (!n->ready) return;
    tm_mutex_lock(&n->m);
    if (n->dir != NULL) (void)!tm_file_close(&n->file, NULL);
    n->dir = NULL;
    tm_mutex_unlock(&n->m);
}

void tm_notes_deinit(tm_notes *n)
{
    if (!n->ready) return;
    tm_mutex_deinit(&n->m);
    n->ready = false;
}
