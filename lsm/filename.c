// SPDX-License-Identifier: BSD-2-Clause

#include "lsm/filename.h"

#include <stdio.h>

void tm_filename(char out[TM_NAME_MAX], tm_file_kind kind, uint64_t number)
{
    unsigned long long n = number;
    switch (kind) {
    case TM_FILE_MANIFEST:
        snprintf(out, TM_NAME_MAX, "MANIFEST-%06llu", n);
        break;
    case TM_FILE_LOG:
        snprintf(out, TM_NAME_MAX, "%06llu.log", n);
        break;
    default:
        snprintf(out, TM_NAME_MAX, "%06llu.sst", n);
        break;
    }
}

// Decimal digits from *p on; false if there are none or too many.
static bool parse_number(const char **p, uint64_t *out)
{
    uint64_t n = 0;
    size_t digits = 0;
    for (; **p >= '0' && **p <= '9'; (*p)++, digits++) {
        if (digits == 19) return false;
        n = n * 10 + (uint64_t)(**p - '0');
    }
    *out = n;
    return n > 0; // no file has number 0
}

tm_file_kind tm_filename_parse(const char *name, uint64_t *number)
{
    *number = 0;
    if (strcmp(name, TM_NAME_CURRENT) == 0) return TM_FILE_CURRENT;
    if (strcmp(name, TM_NAME_CURRENT_TMP) == 0) return TM_FILE_TEMP;
    if (strcmp(name, TM_NAME_LOCK) == 0) return TM_FILE_LOCK;
    if (strcmp(name, TM_NAME_NOTES) == 0 || strcmp(name, TM_NAME_NOTES_OLD) == 0) {
        return TM_FILE_NOTES;
    }
    if (strcmp(name, TM_NAME_LOST) == 0) return TM_FILE_LOST;

    const char *p = name;
    tm_file_kind kind = TM_FILE_OTHER;
    uint64_t n = 0;
    if (strncmp(p, "MANIFEST-", 9) == 0) {
        p += 9;
        if (parse_number(&p, &n) && *p == '\0') kind = TM_FILE_MANIFEST;
    } else if (parse_number(&p, &n)) {
        if (strcmp(p, ".log") == 0) kind = TM_FILE_LOG;
        if (strcmp(p, ".sst") == 0) kind = TM_FILE_TABLE;
    }
    if (kind == TM_FILE_OTHER) return TM_FILE_OTHER;
    char canonical[TM_NAME_MAX];
    tm_filename(canonical, kind, n);
    if (strcmp(canonical, name) != 0) return TM_FILE_OTHER;
    *number = n;
    return kind;
}
