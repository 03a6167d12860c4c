// SPDX-License-Identifier: BSD-2-Clause
//
// iterate.c - walking in order: all, a range, a prefix, backwards.
//
// Prints:
// > all: a/1 a/2 b/1 b/2 b/3 c/1
// > from b to c: b/1 b/2 b/3
// > prefix b/, backwards: b/3 b/2 b/1
// > first at or behind b/2x: b/3
// > last at or before b/2x: b/2

#include "must.h"

static void show_key(const tamis_iter *it)
{
    size_t len;
    const char *key = tamis_iter_key(it, &len);
    printf(" %.*s", (int)len, key);
}

static void walk_all(tamis_db *db)
{
    tamis_error err = {0};
    tamis_iter *it;
    must(tamis_iter_create(db, NULL, NULL, &it, &err), &err);
    printf("all:");
    for (tamis_iter_first(it); tamis_iter_valid(it); tamis_iter_next(it)) show_key(it);
    puts("");
    must(tamis_iter_status(it, &err), &err); // the end, or an error?
    tamis_iter_free(it);
}

static void walk_range(tamis_db *db)
{
    tamis_error err = {0};
    tamis_iter *it;
    tamis_read_options ro = {.size = sizeof ro};
    ro.lower = (tamis_slice){"b", 1}; // included
    ro.upper = (tamis_slice){"c", 1}; // not included
    must(tamis_iter_create(db, NULL, &ro, &it, &err), &err);
    printf("from b to c:");
    for (tamis_iter_first(it); tamis_iter_valid(it); tamis_iter_next(it)) show_key(it);
    puts("");
    must(tamis_iter_status(it, &err), &err);
    tamis_iter_free(it);
}

static void walk_prefix_back(tamis_db *db)
{
    tamis_error err = {0};
    tamis_iter *it;
    tamis_read_options ro = {.size = sizeof ro, .prefix = {"b/", 2}};
    must(tamis_iter_create(db, NULL, &ro, &it, &err), &err);
    printf("prefix b/, backwards:");
    for (tamis_iter_last(it); tamis_iter_valid(it); tamis_iter_prev(it)) show_key(it);
    puts("");
    must(tamis_iter_status(it, &err), &err);
    tamis_iter_free(it);
}

static void seek_both_ways(tamis_db *db)
{
    tamis_error err = {0};
    tamis_iter *it;
    must(tamis_iter_create(db, NULL, NULL, &it, &err), &err);
    tamis_iter_seek(it, "b/2x", 4);
    printf("first at or behind b/2x:");
    if (tamis_iter_valid(it)) show_key(it);
    tamis_iter_seek_for_prev(it, "b/2x", 4);
    printf("\nlast at or before b/2x:");
    if (tamis_iter_valid(it)) show_key(it);
    puts("");
    must(tamis_iter_status(it, &err), &err);
    tamis_iter_free(it);
}

int main(void)
{
    static const char *const keys[] = {"b/3", "a/1", "c/1", "b/1", "a/2", "b/2"};
    tamis_error err = {0};
    tamis_db *db;
    must(tamis_open("iterate.db", NULL, &db, &err), &err);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        must(tamis_put(db, NULL, NULL, keys[i], 3, "", 0, &err), &err);
    }
    walk_all(db);
    walk_range(db);
    walk_prefix_back(db);
    seek_both_ways(db);
    must(tamis_close(db, 0, &err), &err);
    return 0;
}
