// SPDX-License-Identifier: BSD-2-Clause
//
// Reads any bytes in any order of kinds. The first half of the input says what to read, the second
// is read. What was read, written again, must give the same bytes; separators of what was read must
// lie where they should.
#include <stdlib.h>

#include "base/ikey.h"

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) abort();                                                                 \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Reads one thing and writes it to again.
static void read_one(tm_cursor *c, uint8_t kind, tm_buf *again, tm_slice *last)
{
    switch (kind % 8) {
    case 0: {
        uint8_t v = tm_read8(c);
        if (!c->bad) MUST(tm_buf_append(again, &v, 1) == TAMIS_OK);
        break;
    }
    case 1: {
        uint16_t v = tm_read16(c);
        if (!c->bad) MUST(tm_buf_put16(again, v) == TAMIS_OK);
        break;
    }
    case 2: {
        uint32_t v = tm_read32(c);
        if (!c->bad) MUST(tm_buf_put32(again, v) == TAMIS_OK);
        break;
    }
    case 3: {
        uint64_t v = tm_read64(c);
        if (!c->bad) MUST(tm_buf_put64(again, v) == TAMIS_OK);
        break;
    }
    case 4:
    case 5: {
        uint64_t v = tm_read_varint(c);
        if (!c->bad) MUST(tm_buf_put_varint(again, v) == TAMIS_OK);
        break;
    }
    case 6:
        *last = tm_read_bytes(c, kind >> 3);
        if (!c->bad) MUST(tm_buf_append(again, last->data, last->len) == TAMIS_OK);
        break;
    default:
        *last = tm_read_slice(c);
        if (!c->bad) MUST(tm_buf_put_slice(again, *last) == TAMIS_OK);
        break;
    }
}

static void separate(tm_slice a, tm_slice b)
{
    tm_order order = tm_order_bytewise();
    tm_buf s = {0};
    if (tm_slice_compare(a, b) >= 0) return;
    MUST(tm_order_separator(&order, a, b, &s) == TAMIS_OK);
    MUST(s.len <= a.len);
    MUST(tm_slice_compare(a, tm_buf_slice(&s)) <= 0);
    MUST(tm_slice_compare(tm_buf_slice(&s), b) < 0);
    tm_buf_deinit(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t kinds = size / 2;
    tm_slice input = tm_slice_of(data + kinds, size - kinds);
    tm_cursor c = tm_cursor_of(input);
    tm_buf again = {0};
    tm_slice last = tm_slice_of(NULL, 0);
    for (size_t i = 0; i < kinds && !c.bad; i++) {
        tm_slice before = last;
        read_one(&c, data[i], &again, &last);
        MUST(c.p <= c.end && c.end == input.data + input.len);
        if (c.bad) {
            MUST(tm_cursor_left(&c) == 0);
            MUST(tm_read_varint(&c) == 0 && tm_read_slice(&c).len == 0);
            break;
        }
        MUST(again.len == input.len - tm_cursor_left(&c));
        separate(before, last);
        separate(last, before);
    }
    MUST(again.len <= input.len);
    MUST(tm_slice_starts_with(input, tm_buf_slice(&again)));
    tm_buf_deinit(&again);
    return 0;
}
