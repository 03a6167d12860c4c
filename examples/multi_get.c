// SPDX-License-Identifier: BSD-2-Clause
//
// multi_get.c - many keys in one view of the store.
//
// Prints:
// > one = 1
// > two = 2
// > nine: NOTFOUND

#include "must.h"

int main(void)
{
    tamis_error err = {0};
    tamis_db *db;
    must(tamis_open("multi.db", NULL, &db, &err), &err);
    must(tamis_put(db, NULL, NULL, "one", 3, "1", 1, &err), &err);
    must(tamis_put(db, NULL, NULL, "two", 3, "2", 1, &err), &err);

    const tamis_slice keys[] = {{"one", 3}, {"two", 3}, {"nine", 4}};
    enum { N = sizeof keys / sizeof keys[0] };
    tamis_value values[N];
    int statuses[N];
    must(tamis_multi_get(db, NULL, NULL, N, keys, values, statuses, &err), &err);
    for (size_t i = 0; i < N; i++) {
        const char *key = keys[i].data;
        if (statuses[i] == TAMIS_OK) {
            printf("%s = %.*s\n", key, (int)values[i].len, (const char *)values[i].data);
        } else {
            printf("%s: %s\n", key, tamis_status_name(statuses[i]));
        }
        tamis_value_release(&values[i]); // those that are empty, too
    }
    must(tamis_close(db, 0, &err), &err);
    return 0;
}
