// SPDX-License-Identifier: BSD-2-Clause
#include "base/ikey.h"

#include "base/hash.h"

tm_order tm_order_of(const tamis_comparator *c)
{
    tm_order o = {.bytewise = true};
    if (c == NULL) return o;
    // An application built with an older header has a shorter struct, one with a newer a longer.
    size_t known = TM_MIN(c->size, sizeof(o.user));
    tamis_comparator user = {0};
    memcpy(&user, c, known);
    // A field that is not there whole is not there.
    if (known < offsetof(tamis_comparator, ctx)) user.name = NULL;
    if (known < offsetof(tamis_comparator, compare)) user.ctx = NULL;
    if (known < offsetof(tamis_comparator, separator)) user.compare = NULL;
    if (known < offsetof(tamis_comparator, canonical)) user.separator = NULL;
    if (known < sizeof(user)) user.canonical = NULL;
    if (user.name != NULL && strcmp(user.name, TM_BYTEWISE_NAME) == 0) return o;
    user.size = sizeof(user);
    o.bytewise = false;
    o.user = user;
    return o;
}

const char *tm_order_name(const tm_order *o)
{
    if (o->bytewise) return TM_BYTEWISE_NAME;
    return o->user.name != NULL ? o->user.name : "";
}

// The length of the shortest s with a <= s < b, which is a's first bytes with the last of them
// raised by one; a.len if nothing is shorter than a.
//
// Let k be where a and b first differ. No s of at most k bytes will do: it is a prefix of a, so
// below a, or it leaves the common prefix, and is then below a or above b. With k + 1 bytes only
// a[k] + 1 and more at k is at or above a (a is longer), and this is below b if it is below b[k],
// or is b[k] with more of b behind it. Otherwise s must keep a[k], is then below b whatever
// follows, and is shortest where the first byte of a that can be raised is raised.
static size_t bytewise_separator_len(tm_slice a, tm_slice b)
{
    size_t k = tm_slice_common(a, b);
    if (k == a.len || k == b.len || a.data[k] >= b.data[k]) return a.len;
    size_t i = k;
    if (a.data[k] + 1 == b.data[k] && b.len == k + 1) {
        i++;
        while (i < a.len && a.data[i] == 0xff) i++;
    }
    return i + 1 < a.len ? i + 1 : a.len;
}

// What the application's separator gives is checked: a wrong one would misplace keys in an index.
static int user_separator(const tm_order *o, tm_slice a, tm_slice b, tm_buf *out)
{
    TM_TRY(tm_buf_set(out, a));
    TM_TRY(tm_buf_reserve(out, 1)); // it gets a pointer even for an empty a
    size_t n = o->user.separator(o->user.ctx, a.data, a.len, b.data, b.len, out->data);
    tm_slice s = tm_slice_of(out->data, n);
    if (n < a.len && tm_order_compare(o, a, s) <= 0 && tm_order_compare(o, s, b) < 0) {
        out->len = n;
        return TAMIS_OK;
    }
    return tm_buf_set(out, a);
}

int tm_order_separator(const tm_order *o, tm_slice a, tm_slice b, tm_buf *out)
{
    if (!o->bytewise && o->user.separator != NULL) return user_separator(o, a, b, out);
    size_t n = o->bytewise ? bytewise_separator_len(a, b) : a.len;
    TM_TRY(tm_buf_set(out, tm_slice_of(a.data, n)));
    if (n < a.len) out->data[n - 1]++;
    return TAMIS_OK;
}

int tm_order_hash(const tm_order *o, tm_slice key, uint64_t seed, tm_buf *scratch, uint64_t *hash)
{
    if (!o->bytewise && o->user.canonical != NULL) {
        TM_TRY(tm_buf_set(scratch, key)); // out holds defined bytes whatever the callback writes
        TM_TRY(tm_buf_reserve(scratch, 1));
        size_t n = o->user.canonical(o->user.ctx, key.data, key.len, scratch->data);
        if (n <= key.len) key = tm_slice_of(scratch->data, n);
    }
    *hash = tm_hash64(key.data, key.len, seed);
    return TAMIS_OK;
}
