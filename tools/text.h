// SPDX-License-Identifier: BSD-2-Clause
//
// text.h - bytes as text and back: backslash escapes, hexadecimal, JSON strings.
//
//   escapes: \t \n \r \0 \\ \xNN; what is not printable ASCII or UTF-8 is written as \xNN
#ifndef TAMIS_TEXT_H
#define TAMIS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct text_buf { // all-zero is empty
    char *data;
    size_t len, cap;
} text_buf;

void text_free(text_buf *b);
bool text_append(text_buf *b, const void *data, size_t n); // false: out of memory

// Appends what s means to out. false: a bad escape, and *why says so; or out of memory.
bool text_unescape(const char *s, size_t n, text_buf *out, const char **why);
bool text_unhex(const char *s, size_t n, text_buf *out, const char **why);
// A JSON string's inside (without its quotes).
bool text_unjson(const char *s, size_t n, text_buf *out, const char **why);

void text_put_escaped(FILE *f, const void *data, size_t n);
void text_put_hex(FILE *f, const void *data, size_t n);
// As a JSON string, with quotes. Only for bytes that are UTF-8: others would not come back.
void text_put_json(FILE *f, const void *data, size_t n);
// {"key":"...","value":"..."}; what is no UTF-8 goes into "key_hex" or "value_hex".
void text_put_json_pair(FILE *f, const void *key, size_t klen, const void *value, size_t vlen);

#endif // TAMIS_TEXT_H
