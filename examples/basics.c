// SPDX-License-Identifier: BSD-2-Clause
//
// basics.c - put, get, delete; three ways to read a value.
//
// Prints:
// > pinned: drum sieve
// > copied: drum sieve
// > too small: the value has 10 bytes
// > there
// > gone

#include <string.h>

#include "must.h"

static void read_pinned(tamis_db *db)
{
    tamis_error err;
    tamis_value v;
    int st = tamis_get(db, NULL, NULL, "tamis", 5, &v, &err);
    if (st == TAMIS_OK) {
        printf("pinned: %.*s\n", (int)v.len, (const char *)v.data);
        tamis_value_release(&v); // v.data must not be used any more
    } else if (st == TAMIS_NOTFOUND) {
        puts("no such key");
    } else {
        must(st, &err);
    }
}

static void read_copied(tamis_db *db)
{
    tamis_error err;
    char buf[64];
    size_t len;
    must(tamis_get_into(db, NULL, NULL, "tamis", 5, buf, sizeof buf, &len, &err), &err);
    printf("copied: %.*s\n", (int)len, buf);

    int st = tamis_get_into(db, NULL, NULL, "tamis", 5, buf, 4, &len, &err);
    if (st == TAMIS_TOOLARGE) printf("too small: the value has %zu bytes\n", len);
}

int main(void)
{
    tamis_error err = {0};
    tamis_db *db;
    must(tamis_open("basics.db", NULL, &db, &err), &err);

    must(tamis_put(db, NULL, NULL, "tamis", 5, "drum sieve", 10, &err), &err);
    read_pinned(db);
    read_copied(db);
    if (tamis_has(db, NULL, NULL, "tamis", 5, &err) == TAMIS_OK) puts("there");

    must(tamis_delete(db, NULL, NULL, "tamis", 5, &err), &err);
    must(tamis_delete(db, NULL, NULL, "tamis", 5, &err), &err); // OK although it is gone
    if (tamis_has(db, NULL, NULL, "tamis", 5, &err) == TAMIS_NOTFOUND) puts("gone");

    must(tamis_close(db, 0, &err), &err);
    return 0;
}
