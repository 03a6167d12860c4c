// SPDX-License-Identifier: BSD-2-Clause

#include "tools/text.h"

#include <stdlib.h>
#include <string.h>

void text_free(text_buf *b)
{
    free(b->data);
    *b = (text_buf){NULL, 0, 0};
}

bool text_append(text_buf *b, const void *data, size_t n)
{
    if (b->cap - b->len < n) {
        size_t cap = b->cap ? b->cap * 2 : 256;
        while (cap - b->len < n) cap *= 2;
        char *p = realloc(b->data, cap);
        if (p == NULL) return false;
        b->data = p;
        b->cap = cap;
    }
    if (n > 0) memcpy(b->data + b->len, data, n);
    b->len += n;
    return true;
}

static bool put(text_buf *b, int c)
{
    char byte = (char)c;
    return text_append(b, &byte, 1);
}

static int hex_digit(int c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool text_unescape(const char *s, size_t n, text_buf *out, const char **why)
{
    *why = "out of memory";
    for (size_t i = 0; i < n; i++) {
        if (s[i] != '\\') {
            if (!put(out, s[i])) return false;
            continue;
        }
        *why = "a backslash at the end";
        if (++i == n) return false;
        int c;
        switch (s[i]) {
        case 't':
            c = '\t';
            break;
        case 'n':
            c = '\n';
            break;
        case 'r':
            c = '\r';
            break;
        case '0':
            c = 0;
            break;
        case '\\':
            c = '\\';
            break;
        case 'x':
            *why = "\\x needs two hexadecimal digits";
            if (n - i < 3 || hex_digit(s[i + 1]) < 0 || hex_digit(s[i + 2]) < 0) return false;
            c = hex_digit(s[i + 1]) * 16 + hex_digit(s[i + 2]);
            i += 2;
            break;
        default:
            *why = "an unknown escape: \\t \\n \\r \\0 \\\\ \\xNN are known";
            return false;
        }
        *why = "out of memory";
        if (!put(out, c)) return false;
    }
    return true;
}

bool text_unhex(const char *s, size_t n, text_buf *out, const char **why)
{
    *why = "an odd number of hexadecimal digits";
    if (n % 2 != 0) return false;
    for (size_t i = 0; i < n; i += 2) {
        *why = "not hexadecimal";
        if (hex_digit(s[i]) < 0 || hex_digit(s[i + 1]) < 0) return false;
        *why = "out of memory";
        if (!put(out, hex_digit(s[i]) * 16 + hex_digit(s[i + 1]))) return false;
    }
    return true;
}

static bool put_utf8(text_buf *out, unsigned long c)
{
    if (c < 0x80) return put(out, (int)c);
    if (c < 0x800) return put(out, (int)(0xc0 | c >> 6)) && put(out, (int)(0x80 | (c & 63)));
    if (c < 0x10000) {
        return put(out, (int)(0xe0 | c >> 12)) && put(out, (int)(0x80 | (c >> 6 & 63))) &&
               put(out, (int)(0x80 | (c & 63)));
    }
    return put(out, (int)(0xf0 | c >> 18)) && put(out, (int)(0x80 | (c >> 12 & 63))) &&
           put(out, (int)(0x80 | (c >> 6 & 63))) && put(out, (int)(0x80 | (c & 63)));
}

// Four digits at s; false if there are not four.
static bool four_digits(const char *s, size_t n, unsigned long *out)
{
    *out = 0;
    if (n < 4) return false;
    for (size_t i = 0; i < 4; i++) {
        int d = hex_digit(s[i]);
        if (d < 0) return false;
        *out = *out * 16 + (unsigned long)d;
    }
    return true;
}

// \uXXXX at s (behind the u); *used gets the characters read.
static bool unicode_escape(const char *s, size_t n, text_buf *out, size_t *used, const char **why)
{
    unsigned long c, low;
    *why = "\\u needs four hexadecimal digits";
    if (!four_digits(s, n, &c)) return false;
    *used = 4;
    if (c >= 0xd800 && c < 0xdc00) {
        *why = "half of a surrogate pair";
        if (n < 10 || s[4] != '\\' || s[5] != 'u' || !four_digits(s + 6, n - 6, &low)) return false;
        if (low < 0xdc00 || low > 0xdfff) return false;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        *used = 10;
    } else if (c >= 0xdc00 && c < 0xe000) {
        *why = "half of a surrogate pair";
        return false;
    }
    *why = "out of memory";
    return put_utf8(out, c);
}

// Length of the UTF-8 character at p, 0 if there is none.
static size_t utf8_length(const unsigned char *p, size_t n)
{
    size_t len = p[0] < 0x80                   ? 1
                 : p[0] >= 0xc2 && p[0] < 0xe0 ? 2
                 : p[0] >= 0xe0 && p[0] < 0xf0 ? 3
                 : p[0] >= 0xf0 && p[0] < 0xf5 ? 4
                                               : 0;
    if (len == 0 || len > n) return 0;
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80) return 0;
    }
    if (len == 3 && ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f))) return 0;
    if (len == 4 && ((p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))) return 0;
    return len;
}

static bool is_utf8(const void *data, size_t n)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < n;) {
        size_t len = utf8_length(p + i, n - i);
        if (len == 0) return false;
        i += len;
    }
    return true;
}

bool text_unjson(const char *s, size_t n, text_buf *out, const char **why)
{
    *why = "a string that is not UTF-8";
    if (!is_utf8(s, n)) return false;
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    for (size_t i = 0; i < n; i++) {
        *why = "out of memory";
        if (s[i] != '\\') {
            *why = "a control character in a string";
            if ((unsigned char)s[i] < 0x20 || !put(out, s[i])) return false;
            continue;
        }
        *why = "a backslash at the end";
        if (++i == n) return false;
        const char *known = s[i] != '\0' ? strchr(from, s[i]) : NULL;
        if (known != NULL) {
            if (!put(out, to[known - from])) return false;
        } else if (s[i] == 'u') {
            size_t used = 0;
            if (!unicode_escape(s + i + 1, n - i - 1, out, &used, why)) return false;
            i += used;
        } else {
            *why = "an unknown escape in a string";
            return false;
        }
    }
    return true;
}

void text_put_escaped(FILE *f, const void *data, size_t n)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < n;) {
        size_t len = utf8_length(p + i, n - i);
        if (p[i] == '\\')
            fputs("\\\\", f);
        else if (p[i] == '\t')
            fputs("\\t", f);
        else if (p[i] == '\n')
            fputs("\\n", f);
        else if (p[i] == '\r')
            fputs("\\r", f);
        else if (p[i] < 0x20 || p[i] == 0x7f || len == 0)
            fprintf(f, "\\x%02x", p[i]);
        else
            fwrite(p + i, 1, len, f);
        i += len ? len : 1;
    }
}

void text_put_hex(FILE *f, const void *data, size_t n)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i++) fprintf(f, "%02x", p[i]);
}

void text_put_json(FILE *f, const void *data, size_t n)
{
    const unsigned char *p = data;
    fputc('"', f);
    for (size_t i = 0; i < n;) {
        size_t len = utf8_length(p + i, n - i);
        if (p[i] == '"' || p[i] == '\\')
            fprintf(f, "\\%c", p[i]);
        else if (p[i] < 0x20 || len == 0)
            fprintf(f, "\\u%04x", p[i]);
        else
            fwrite(p + i, 1, len, f);
        i += len ? len : 1;
    }
    fputc('"', f);
}

static void put_json_field(FILE *f, const char *name, const void *data, size_t n)
{
    if (is_utf8(data, n)) {
        fprintf(f, "\"%s\":", name);
        text_put_json(f, data, n);
    } else {
        fprintf(f, "\"%s_hex\":\"", name);
        text_put_hex(f, data, n);
        fputc('"', f);
    }
}

void text_put_json_pair(FILE *f, const void *key, size_t klen, const void *value, size_t vlen)
{
    fputc('{', f);
    put_json_field(f, "key", key, klen);
    fputc(',', f);
    put_json_field(f, "value", value, vlen);
    fputs("}\n", f);
}
