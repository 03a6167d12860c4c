// SPDX-License-Identifier: BSD-2-Clause
//
// comparator.c - an order of the application's own: letters without regard to case. Two spellings
// compare equal, hence canonical: filters hash the one spelling that stands for all of them.
//
// Prints:
// > anna Ben CARL
// > ANNA is there
// > INVALID: the store was made with comparator "example.nocase", not "tamis.bytewise"

#include <ctype.h>

#include "must.h"

static int compare(void *ctx, const void *a, size_t alen, const void *b, size_t blen)
{
    const unsigned char *x = a, *y = b;
    (void)ctx;
    for (size_t i = 0; i < alen && i < blen; i++) {
        int d = tolower(x[i]) - tolower(y[i]);
        if (d != 0) return d;
    }
    return (alen > blen) - (alen < blen);
}

// Equal keys give equal bytes here, and others do not.
static size_t canonical(void *ctx, const void *key, size_t len, void *out)
{
    const unsigned char *from = key;
    unsigned char *to = out;
    (void)ctx;
    for (size_t i = 0; i < len; i++) to[i] = (unsigned char)tolower(from[i]);
    return len;
}

static const tamis_comparator nocase = {
    .size = sizeof nocase,
    .name = "example.nocase", // stored with the data: never change what it stands for
    .compare = compare,
    .canonical = canonical,
};

int main(void)
{
    tamis_error err = {0};
    tamis_db *db;
    tamis_options o = tamis_options_init();
    o.comparator = &nocase;
    must(tamis_open("comparator.db", &o, &db, &err), &err);
    must(tamis_put(db, NULL, NULL, "CARL", 4, "", 0, &err), &err);
    must(tamis_put(db, NULL, NULL, "anna", 4, "", 0, &err), &err);
    must(tamis_put(db, NULL, NULL, "Ben", 3, "", 0, &err), &err);

    tamis_iter *it;
    must(tamis_iter_create(db, NULL, NULL, &it, &err), &err);
    const char *between = "";
    for (tamis_iter_first(it); tamis_iter_valid(it); tamis_iter_next(it), between = " ") {
        size_t len;
        const char *key = tamis_iter_key(it, &len);
        printf("%s%.*s", between, (int)len, key);
    }
    puts("");
    must(tamis_iter_status(it, &err), &err);
    tamis_iter_free(it);

    must(tamis_flush(db, NULL, &err), &err); // into a table, with a filter
    if (tamis_has(db, NULL, NULL, "ANNA", 4, &err) == TAMIS_OK) puts("ANNA is there");
    must(tamis_close(db, 0, &err), &err);

    int st = tamis_open("comparator.db", NULL, &db, &err); // without the comparator
    printf("%s: %s\n", tamis_status_name(st), err.message);
    return 0;
}
