// SPDX-License-Identifier: BSD-2-Clause
//
// readonly.c - looking at a store without changing a byte of it.
//
// Prints:
// > beside a writer: LOCKED
// > value: 1
// > a put: READONLY

#include "must.h"

int main(void)
{
    tamis_error err = {0};
    tamis_db *writer, *reader, *another;
    tamis_options ro = tamis_options_init();
    ro.flags = TAMIS_OPEN_READONLY;

    must(tamis_open("readonly.db", NULL, &writer, &err), &err);
    must(tamis_put(writer, NULL, NULL, "key", 3, "1", 1, &err), &err);
    int st = tamis_open("readonly.db", &ro, &reader, &err);
    printf("beside a writer: %s\n", tamis_status_name(st));
    must(tamis_close(writer, 0, &err), &err);

    // Readers may be many, of one process or several.
    must(tamis_open("readonly.db", &ro, &reader, &err), &err);
    must(tamis_open("readonly.db", &ro, &another, &err), &err);
    char buf[8];
    size_t len;
    must(tamis_get_into(reader, NULL, NULL, "key", 3, buf, sizeof buf, &len, &err), &err);
    printf("value: %.*s\n", (int)len, buf);
    st = tamis_put(reader, NULL, NULL, "key", 3, "2", 1, &err);
    printf("a put: %s\n", tamis_status_name(st));
    must(tamis_close(another, 0, &err), &err);
    must(tamis_close(reader, 0, &err), &err);
    return 0;
}
