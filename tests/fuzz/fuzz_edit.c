// SPDX-License-Identifier: BSD-2-Clause
//
// Any bytes as a row of manifest edits: each a length byte and a payload, whose chain is made to
// fit so that the fields behind it are reached. What decodes must encode to something that decodes.
#include <stdint.h>
#include <stdlib.h>

#include "base/hash.h"
#include "lsm/edit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_edit(tm_edit *state, const uint8_t *p, size_t n)
{
    tm_buf payload = {0};
    uint8_t zero[8] = {0};
    // The fields, then a chain that fits.
    if (tm_buf_append(&payload, p, n) == 0 && tm_buf_put_varint(&payload, 11) == 0 &&
        tm_buf_put64(&payload, tm_checksum2(zero, sizeof zero, p, n)) == 0) {
        tm_edit e, again;
        uint64_t chain = 0;
        tm_edit_init(&e);
        tm_edit_init(&again);
        if (tm_edit_decode(&e, tm_buf_slice(&payload), &chain, 1, 0, NULL) == TAMIS_OK) {
            (void)!tm_edit_merge(state, &e, 1, NULL);
            uint64_t before = 0, after = 0;
            tm_buf_clear(&payload);
            if (tm_edit_encode(&e, &before, &payload) != TAMIS_OK ||
                tm_edit_decode(&again, tm_buf_slice(&payload), &after, 1, 0, NULL) != TAMIS_OK) {
                abort();
            }
        }
        tm_edit_deinit(&e);
        tm_edit_deinit(&again);
    }
    tm_buf_deinit(&payload);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tm_edit state, plain;
    uint64_t chain = 0;
    tm_edit_init(&state);
    tm_edit_init(&plain);
    (void)!tm_edit_decode(&plain, tm_slice_of(data, size), &chain, 1, 0, NULL);
    tm_edit_deinit(&plain);
    for (size_t at = 0; at < size;) {
        size_t n = data[at++];
        if (n > size - at) n = size - at;
        try_edit(&state, data + at, n);
        at += n;
    }
    tm_edit_deinit(&state);
    return 0;
}
