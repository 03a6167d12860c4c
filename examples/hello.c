// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <tamis.h>

int main(void)
{
    tamis_error err = {0};
    tamis_db *db;
    int st = tamis_open("hello.db", NULL, &db, &err); // creates it if it is not there
    if (st == TAMIS_OK) {
        // Durable when the call returns: that is the default.
        st = tamis_put(db, NULL, NULL, "sieve", 5, "a tamis", 7, &err);
    }
    if (st == TAMIS_OK) {
        tamis_value v; // points into the store's memory, without a copy
        st = tamis_get(db, NULL, NULL, "sieve", 5, &v, &err);
        if (st == TAMIS_OK) printf("%.*s\n", (int)v.len, (const char *)v.data);
        tamis_value_release(&v);
    }
    if (st == TAMIS_OK && tamis_has(db, NULL, NULL, "colander", 8, &err) == TAMIS_NOTFOUND) {
        puts("no colander");
    }
    if (st != TAMIS_OK) fprintf(stderr, "%s: %s\n", tamis_status_name(st), err.message);
    int closed = tamis_close(db, 0, &err);
    return st == TAMIS_OK && closed == TAMIS_OK ? 0 : 1;
}
