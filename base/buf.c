// SPDX-License-Identifier: BSD-2-Clause
#include "base/buf.h"

#include "base/mem.h"

void tm_buf_deinit(tm_buf *b)
{
    tm_free(b->data);
    tm_buf_init(b);
}

// Doubles, so that appending n bytes one by one copies O(n).
int tm_buf_grow(tm_buf *b, size_t extra)
{
    if (extra > PTRDIFF_MAX - b->len) return TAMIS_NOMEM; // len <= PTRDIFF_MAX, by this very line
    size_t need = b->len + extra;
    size_t cap = TM_MAX(need, TM_MAX(b->cap * 2, (size_t)64));
    uint8_t *data = tm_realloc(b->data, cap);
    if (data == NULL && cap > need) { // where twice as much is not to be had
        cap = need;
        data = tm_realloc(b->data, cap);
    }
    if (data == NULL) return TAMIS_NOMEM;
    b->data = data;
    b->cap = cap;
    return TAMIS_OK;
}
