// SPDX-License-Identifier: BSD-2-Clause
//
// families.c - several spaces of keys in one store, changed together.
//
// Prints:
// > users/anna: 1 post
// > posts: 1
// > gone: NOTFOUND
// > default
// > members

#include "must.h"

static int print_name(void *ctx, const char *name, uint32_t id)
{
    (void)ctx;
    (void)id;
    printf("%s\n", name);
    return 0;
}

static int count(tamis_db *db, tamis_cf *cf)
{
    tamis_error err = {0};
    tamis_iter *it;
    int n = 0;
    must(tamis_iter_create(db, cf, NULL, &it, &err), &err);
    for (tamis_iter_first(it); tamis_iter_valid(it); tamis_iter_next(it)) n++;
    tamis_iter_free(it);
    return n;
}

int main(void)
{
    tamis_error err = {0};
    tamis_db *db;
    must(tamis_open("families.db", NULL, &db, &err), &err);

    tamis_cf *users, *posts;
    tamis_cf_options short_lived = {.size = sizeof short_lived, .extra = "ttl=30d; filter_bits=14"};
    must(tamis_cf_open(db, "users", NULL, 1, &users, &err), &err);
    must(tamis_cf_open(db, "posts", &short_lived, 1, &posts, &err), &err);

    // Both or neither, whatever happens.
    tamis_batch *b = tamis_batch_create(db, 0);
    (void)tamis_batch_put(b, users, "anna", 4, "1 post", 6);
    (void)tamis_batch_put(b, posts, "anna/1", 6, "hello", 5);
    must(tamis_commit(db, NULL, b, NULL, &err), &err);
    tamis_batch_free(b);

    char buf[16];
    size_t len;
    must(tamis_get_into(db, users, NULL, "anna", 4, buf, sizeof buf, &len, &err), &err);
    printf("users/anna: %.*s\nposts: %d\n", (int)len, buf, count(db, posts));

    must(tamis_cf_drop(db, "posts", &err), &err);
    int st = tamis_put(db, posts, NULL, "k", 1, "v", 1, &err);
    printf("gone: %s\n", tamis_status_name(st));
    must(tamis_cf_rename(db, "users", "members", &err), &err); // the handle stays good
    must(tamis_cf_list(db, print_name, NULL, &err), &err);

    tamis_cf_close(users);
    tamis_cf_close(posts);
    must(tamis_close(db, 0, &err), &err);
    return 0;
}
