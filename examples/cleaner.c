// SPDX-License-Identifier: BSD-2-Clause
//
// cleaner.c - a compaction filter: what compactions find out of date is dropped or rewritten.
//
// Prints:
// > a: new format
// > b: NOTFOUND

#include "must.h"

#include <string.h>

static int clean(void *ctx, int level, const void *key, size_t klen, const void *val, size_t vlen,
                 int (*replace)(void *sink, const void *value, size_t vlen), void *sink)
{
    (void)ctx;
    (void)level;
    (void)key;
    (void)klen;
    if (vlen == 8 && memcmp(val, "obsolete", 8) == 0) return TAMIS_DROP;
    if (vlen == 10 && memcmp(val, "old format", 10) == 0) {
        return replace(sink, "new format", 10) == TAMIS_OK ? TAMIS_REPLACE : TAMIS_KEEP;
    }
    return TAMIS_KEEP;
}

int main(void)
{
    tamis_error err = {0};
    tamis_db *db;
    char buf[16];
    size_t len;
    tamis_compaction_filter cleaner = {sizeof cleaner, "example.clean", NULL, clean};
    tamis_options o = tamis_options_init();
    o.compaction_filter = &cleaner;
    must(tamis_open("cleaner.db", &o, &db, &err), &err);
    must(tamis_put(db, NULL, NULL, "a", 1, "old format", 10, &err), &err);
    must(tamis_put(db, NULL, NULL, "b", 1, "obsolete", 8, &err), &err);
    must(tamis_compact(db, NULL, NULL, &err), &err);
    must(tamis_get_into(db, NULL, NULL, "a", 1, buf, sizeof buf, &len, &err), &err);
    printf("a: %.*s\n", (int)len, buf);
    printf("b: %s\n", tamis_status_name(tamis_has(db, NULL, NULL, "b", 1, &err)));
    must(tamis_close(db, 0, &err), &err);
    return 0;
}
