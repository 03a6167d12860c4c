// SPDX-License-Identifier: BSD-2-Clause
//
// memory.c - one figure bounds the memory of a store; who uses it; reads that leave the cache
// alone.
//
// Prints:
// > used is within the budget of 8388608
// > a scan that does not fill the cache read 5000 keys
// > only what is in memory: OK

#include "must.h"

static void fill(tamis_db *db)
{
    tamis_error err = {0};
    tamis_write_options fast = {.size = sizeof fast, .sync = TAMIS_SYNC_NEVER};
    char key[16], value[400];
    for (int i = 0; i < (int)sizeof value; i++) value[i] = (char)i;
    for (int i = 0; i < 5000; i++) {
        int n = snprintf(key, sizeof key, "%06d", i);
        must(tamis_put(db, NULL, &fast, key, (size_t)n, value, sizeof value, &err), &err);
    }
    must(tamis_flush(db, NULL, &err), &err);
}

static int scan(tamis_db *db)
{
    tamis_error err = {0};
    tamis_iter *it;
    int n = 0;
    // Blocks of a long scan would only push out those that point reads need again.
    tamis_read_options ro = {.size = sizeof ro, .no_cache_fill = 1};
    must(tamis_iter_create(db, NULL, &ro, &it, &err), &err);
    for (tamis_iter_first(it); tamis_iter_valid(it); tamis_iter_next(it)) n++;
    must(tamis_iter_status(it, &err), &err);
    tamis_iter_free(it);
    return n;
}

int main(void)
{
    tamis_error err = {0};
    tamis_db *db;
    tamis_options o = tamis_options_init();
    o.memory_budget = 8u << 20;
    must(tamis_open("memory.db", &o, &db, &err), &err);
    fill(db);

    tamis_memory m = {.size = sizeof m};
    must(tamis_memory_usage(db, &m, &err), &err);
    printf("used is %s the budget of %llu\n", m.used <= m.budget ? "within" : "above",
           (unsigned long long)m.budget);
    fprintf(stderr, "memtables %llu, filters %llu, indexes %llu, data blocks %llu\n",
            (unsigned long long)m.memtables, (unsigned long long)m.filters,
            (unsigned long long)m.indexes, (unsigned long long)m.data_blocks);

    printf("a scan that does not fill the cache read %d keys\n", scan(db));

    // Reads the block, then asks again for what is in memory alone.
    must(tamis_has(db, NULL, NULL, "000042", 6, &err), &err);
    tamis_read_options cached = {.size = sizeof cached, .cached_only = 1};
    int st = tamis_has(db, NULL, &cached, "000042", 6, &err); // BUSY: a file would be read
    printf("only what is in memory: %s\n", tamis_status_name(st));

    must(tamis_close(db, 0, &err), &err);
    return 0;
}
