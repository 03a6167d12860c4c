// SPDX-License-Identifier: BSD-2-Clause
//
// merge.c - changing a value without reading it: a ready-made counter, and a merger of one's own.
//
// Prints:
// > hits: 12
// > largest: 9

#include "must.h"

#include <string.h>

static void put_number(uint8_t *out, uint64_t n)
{
    for (int i = 0; i < 8; i++) out[i] = (uint8_t)(n >> (8 * i));
}

static uint64_t get_number(const uint8_t *p)
{
    uint64_t n = 0;
    for (int i = 0; i < 8; i++) n |= (uint64_t)p[i] << (8 * i);
    return n;
}

// Keeps the largest of one-digit numbers.
static int largest(void *ctx, const void *key, size_t klen, const tamis_slice *base,
                   const tamis_slice *operands, size_t n,
                   int (*emit)(void *sink, const void *value, size_t vlen), void *sink)
{
    (void)ctx;
    (void)key;
    (void)klen;
    char best = '0';
    if (base != NULL && base->len == 1) best = *(const char *)base->data;
    for (size_t i = 0; i < n; i++) {
        if (operands[i].len != 1) return TAMIS_INVALID; // the answer for this key alone
        char c = *(const char *)operands[i].data;
        if (c > best) best = c;
    }
    return emit(sink, &best, 1);
}

int main(void)
{
    tamis_error err = {0};
    tamis_db *db;
    uint8_t number[8];
    char buf[8];
    size_t len;

    tamis_merger merger = {sizeof merger, "example.largest", NULL, TAMIS_MERGER_ASSOCIATIVE,
                           largest};
    tamis_options o = tamis_options_init();
    o.merger = &merger; // of the default family
    must(tamis_open("merge.db", &o, &db, &err), &err);

    tamis_cf *counters;
    tamis_cf_options adds = {.size = sizeof adds, .merger = tamis_merger_add()};
    must(tamis_cf_open(db, "counters", &adds, 1, &counters, &err), &err);
    put_number(number, 5);
    must(tamis_merge(db, counters, NULL, "hits", 4, number, 8, &err), &err);
    put_number(number, 7);
    must(tamis_merge(db, counters, NULL, "hits", 4, number, 8, &err), &err);
    must(tamis_get_into(db, counters, NULL, "hits", 4, buf, sizeof buf, &len, &err), &err);
    printf("hits: %llu\n", (unsigned long long)get_number((const uint8_t *)buf));

    must(tamis_merge(db, NULL, NULL, "score", 5, "4", 1, &err), &err);
    must(tamis_merge(db, NULL, NULL, "score", 5, "9", 1, &err), &err);
    must(tamis_merge(db, NULL, NULL, "score", 5, "2", 1, &err), &err);
    must(tamis_get_into(db, NULL, NULL, "score", 5, buf, sizeof buf, &len, &err), &err);
    printf("largest: %.*s\n", (int)len, buf);

    tamis_cf_close(counters);
    must(tamis_close(db, 0, &err), &err);
    return 0;
}
