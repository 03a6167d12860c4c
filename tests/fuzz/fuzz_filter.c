// SPDX-License-Identifier: BSD-2-Clause
//
// Both loaders on any bytes: the image of a table's filter block, and the library's image with its
// header. The first byte chooses; for a library image it also says whether the checksum is made
// right first, so that fuzzing gets behind it.
//
// What must hold: a status that is allowed here; "maybe" to everything after a failure; a loaded
// filter stores the very bytes it came from; the batch answers as the single call does.
#include <stdlib.h>
#include <string.h>

#include "base/coding.h"
#include "base/hash.h"
#include "filter/filter.h"
#include "tamis_filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) abort();
}

static void status_allowed(int st)
{
    must(st == TAMIS_OK || st == TAMIS_CORRUPT || st == TAMIS_UNSUPPORTED || st == TAMIS_NOMEM);
}

static const uint64_t hashes[] = {0,
                                  1,
                                  UINT64_MAX,
                                  UINT64_C(0x8000000000000000),
                                  UINT64_C(0x0123456789abcdef),
                                  UINT64_C(0xfedcba9876543210)};
enum { HASHES = sizeof(hashes) / sizeof(hashes[0]) };

static void try_view(tm_slice image)
{
    tm_filter_view v;
    tm_filter_contract c;
    tm_filter_observed seen;
    tamis_error err;
    bool maybe[HASHES];
    int st = tm_filter_view_init(&v, image, &c, &err);
    status_allowed(st);
    tm_filter_may_contain_many(&v, hashes, HASHES, maybe);
    for (size_t i = 0; i < HASHES; i++) {
        tm_filter_prefetch(&v, hashes[i]);
        must(maybe[i] == tm_filter_may_contain(&v, hashes[i]));
        must(st == TAMIS_OK || maybe[i]);
    }
    tm_filter_observe(&v, &seen);
    if (st != TAMIS_OK) return;
    must(seen.fill >= 0 && seen.fill <= 1 && seen.rate >= 0 && seen.rate <= 1 && seen.keys >= 0);
    double rate = tm_filter_expected_rate(&c);
    must(rate >= 0 && rate <= 1);
    uint8_t again[TM_FILTER_HEADER];
    tm_filter_contract_encode(&c, again);
    must(memcmp(again, image.data, sizeof(again)) == 0);
}

static void try_load(const uint8_t *image, size_t len)
{
    tamis_filter *f;
    tamis_error err;
    int st = tamis_filter_load(image, len, &f, &err);
    status_allowed(st);
    must((st == TAMIS_OK) == (f != NULL));
    if (f == NULL) return;
    uint8_t *again = malloc(len);
    tamis_filter_info info = {.size = sizeof(info)};
    must(again != NULL);
    must(tamis_filter_image_size(f) == len);
    must(tamis_filter_store(f, again, len, NULL, &err) == TAMIS_OK);
    // The minor version (and so the checksum) is the library's own.
    must(memcmp(again, image, 10) == 0 && memcmp(again + 12, image + 12, 44) == 0);
    must(memcmp(again + 64, image + 64, len - 64) == 0);
    must(tamis_filter_describe(f, &info, &err) == TAMIS_OK);
    for (size_t i = 0; i < HASHES; i++) {
        (void)tamis_filter_add_hash(f, hashes[i]);
        must(tamis_filter_may_contain_hash(f, hashes[i]) == 1);
        must(tamis_filter_add_hash(f, hashes[i]) == 0);
    }
    must(tamis_filter_union(f, f, &err) == TAMIS_OK);
    free(again);
    tamis_filter_free(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        try_view((tm_slice){NULL, 0});
        try_load(NULL, 0);
        return 0;
    }
    size_t len = size - 1;
    uint8_t *copy = malloc(len + (len == 0));
    if (copy == NULL) return 0;
    memcpy(copy, data + 1, len);
    if (data[0] % 4 == 0) {
        try_view(tm_slice_of(copy, len));
    } else {
        if (data[0] % 4 != 1 && len >= 64) {
            tm_put64(copy + 56, tm_checksum2(copy, 56, copy + 64, len - 64));
        }
        try_load(copy, len);
    }
    free(copy);
    return 0;
}
