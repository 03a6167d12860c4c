// SPDX-License-Identifier: BSD-2-Clause
//
// insight.c - counters, reports, what the filters save, and one lookup told step by step.
//
// Prints:
// > 1000 lookups of absent keys, 1000 filter checks
// > data blocks read are as many as false positives: yes
// > filter: no
// > explain: NOTFOUND

#include <string.h>

#include "must.h"

static uint64_t counter(tamis_db *db, const char *name)
{
    tamis_error err = {0};
    uint64_t v;
    must(tamis_counter(db, name, &v, &err), &err);
    return v;
}

static void fill(tamis_db *db)
{
    tamis_error err = {0};
    tamis_write_options fast = {.size = sizeof fast, .sync = TAMIS_SYNC_NEVER};
    for (int i = 0; i < 20000; i += 2) { // even numbers only
        char key[16];
        int n = snprintf(key, sizeof key, "%08d", i);
        must(tamis_put(db, NULL, &fast, key, (size_t)n, "value", 5, &err), &err);
    }
    must(tamis_flush(db, NULL, &err), &err);
}

static void miss(tamis_db *db)
{
    tamis_error err = {0};
    for (int i = 1; i < 2000; i += 2) { // odd ones: absent, and between the keys that are there
        char key[16];
        int n = snprintf(key, sizeof key, "%08d", i);
        if (tamis_has(db, NULL, NULL, key, (size_t)n, &err) != TAMIS_NOTFOUND) exit(1);
    }
    tamis_filter_report r = {.size = sizeof r};
    must(tamis_filter_stats(db, NULL, -1, &r, &err), &err);
    printf("1000 lookups of absent keys, %llu filter checks\n", (unsigned long long)r.probes);
    fprintf(stderr, "said no %llu times; false positives %.4f, by the formula %.4f\n",
            (unsigned long long)r.negatives, r.observed_rate, r.expected_rate);
    uint64_t looked = counter(db, "data_blocks_read") + counter(db, "data_blocks_cached");
    printf("data blocks read are as many as false positives: %s\n",
           looked == r.false_positives ? "yes" : "no");
}

static void show_report(tamis_db *db, const char *name)
{
    tamis_error err = {0};
    size_t len;
    // With no room it tells the length.
    if (tamis_property(db, NULL, name, NULL, 0, &len, &err) != TAMIS_TOOLARGE) exit(1);
    size_t cap = len + 256; // it may have grown meanwhile
    char *json = malloc(cap);
    if (json == NULL) exit(1);
    must(tamis_property(db, NULL, name, json, cap, &len, &err), &err);
    fprintf(stderr, "%s\n", json);
    free(json);
}

static void show_step(void *ctx, const tamis_step_info *s)
{
    (void)ctx;
    printf("%s: %s\n", s->what, s->outcome);
}

int main(void)
{
    tamis_error err = {0};
    tamis_db *db;
    must(tamis_open("insight.db", NULL, &db, &err), &err);
    fill(db);
    miss(db);
    show_report(db, "filters");
    int st = tamis_explain(db, NULL, NULL, "00000001", 8, show_step, NULL, &err);
    printf("explain: %s\n", tamis_status_name(st));
    must(tamis_close(db, 0, &err), &err);
    return 0;
}
