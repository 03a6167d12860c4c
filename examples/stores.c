// SPDX-License-Identifier: BSD-2-Clause
//
// stores.c - several stores in one process: each has its own budget, threads and lock.
//
// Prints:
// > users: anna
// > orders: 3 tables of paper
// > a second handle on one folder: LOCKED

#include "must.h"

static tamis_db *open_small(const char *path)
{
    tamis_error err = {0};
    tamis_db *db;
    tamis_options o = tamis_options_init();
    o.memory_budget = 4u << 20;
    o.background_threads = 1;
    must(tamis_open(path, &o, &db, &err), &err);
    return db;
}

static void show(tamis_db *db, const char *what)
{
    tamis_error err = {0};
    tamis_value v;
    must(tamis_get(db, NULL, NULL, "1", 1, &v, &err), &err);
    printf("%s: %.*s\n", what, (int)v.len, (const char *)v.data);
    tamis_value_release(&v);
}

int main(void)
{
    tamis_error err = {0};
    tamis_db *users = open_small("users.db"), *orders = open_small("orders.db"), *again;
    must(tamis_put(users, NULL, NULL, "1", 1, "anna", 4, &err), &err);
    must(tamis_put(orders, NULL, NULL, "1", 1, "3 tables of paper", 17, &err), &err);
    show(users, "users");
    show(orders, "orders");
    int st = tamis_open("users.db", NULL, &again, &err);
    printf("a second handle on one folder: %s\n", tamis_status_name(st));
    must(tamis_close(users, 0, &err), &err);
    must(tamis_close(orders, 0, &err), &err);
    return 0;
}
