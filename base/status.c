// SPDX-License-Identifier: BSD-2-Clause
#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGE_BYTES = sizeof(((tamis_error *)NULL)->message) };

static_assert(sizeof(tamis_error) == 320, "the layout of tamis_error is frozen");

static const char *const names[] = {
    [-TAMIS_OK] = "OK",
    [-TAMIS_NOTFOUND] = "NOTFOUND",
    [-TAMIS_INVALID] = "INVALID",
    [-TAMIS_MISUSE] = "MISUSE",
    [-TAMIS_NOMEM] = "NOMEM",
    [-TAMIS_IO] = "IO",
    [-TAMIS_NOSPACE] = "NOSPACE",
    [-TAMIS_CORRUPT] = "CORRUPT",
    [-TAMIS_LOCKED] = "LOCKED",
    [-TAMIS_BUSY] = "BUSY",
    [-TAMIS_READONLY] = "READONLY",
    [-TAMIS_CLOSED] = "CLOSED",
    [-TAMIS_EXISTS] = "EXISTS",
    [-TAMIS_UNSUPPORTED] = "UNSUPPORTED",
    [-TAMIS_TOOLARGE] = "TOOLARGE",
    [-TAMIS_ABORTED] = "ABORTED",
    [-TAMIS_POISONED] = "POISONED",
};

const char *tamis_status_name(int status)
{
    bool known = status <= 0 && status > -(int)TM_COUNT(names) && names[-status] != NULL;
    return known ? names[-status] : "UNKNOWN";
}

// The number of bytes that a sequence with this first byte has; 0 if none begins so. Overlong
// spellings of two bytes and what is above U+10FFFF are told by the first byte.
static size_t utf8_length(uint8_t first)
{
    if (first < 0x80) return 1;
    if (first >= 0xc2 && first <= 0xdf) return 2;
    if (first >= 0xe0 && first <= 0xef) return 3;
    if (first >= 0xf0 && first <= 0xf4) return 4;
    return 0;
}

static bool utf8_second_fits(uint8_t first, uint8_t second)
{
    switch (first) {
    case 0xe0:
        return second >= 0xa0; // overlong
    case 0xed:
        return second <= 0x9f; // surrogates
    case 0xf0:
        return second >= 0x90; // overlong
    case 0xf4:
        return second <= 0x8f; // above U+10FFFF
    default:
        return true;
    }
}

// Makes text printable UTF-8 in place: what is not, is replaced by '?'. A sequence that stops at
// the end of the text was cut there, and goes.
static void make_printable(char *text)
{
    uint8_t *p = (uint8_t *)text;
    while (*p != 0) {
        size_t n = utf8_length(*p), i = 1;
        while (i < n && (p[i] & 0xc0) == 0x80) i++;
        if (n > 1 && i < n && p[i] == 0) {
            *p = 0;
            return;
        }
        bool good = n > 0 && i == n && (n == 1 || utf8_second_fits(p[0], p[1]));
        if (!good || *p < 0x20 || *p == 0x7f) {
            *p++ = '?';
        } else {
            p += n;
        }
    }
}

// Arguments may point into *err: the text is put together beside it first.
static void fill(tamis_error *err, const tamis_error *head, const char *tail, const char *fmt,
                 va_list args)
{
    char text[MESSAGE_BYTES];
    size_t tail_len = strlen(tail);
    assert(tail_len < MESSAGE_BYTES / 2);
    if (vsnprintf(text, sizeof(text) - tail_len, fmt, args) < 0) text[0] = 0;
    make_printable(text); // before the tail: a cut sequence must stand at the end
    size_t len = strlen(text);
    memcpy(text + len, tail, tail_len + 1);
    *err = *head;
    memcpy(err->message, text, len + tail_len + 1);
}

int tm_fail(tamis_error *err, int code, const char *fmt, ...)
{
    if (err != NULL) {
        bool passes = code == TAMIS_NOSPACE || code == TAMIS_BUSY || code == TAMIS_LOCKED;
        tamis_error head = {.code = code, .retryable = passes};
        va_list args;
        va_start(args, fmt);
        fill(err, &head, "", fmt, args);
        va_end(args);
    }
    return code;
}

int tm_fail_sys(tamis_error *err, int sys, uint64_t file_number, uint64_t offset, const char *fmt,
                ...)
{
    int code = TAMIS_IO;
    if (sys == ENOSPC || sys == EDQUOT) code = TAMIS_NOSPACE;
    if (sys == ENOMEM) code = TAMIS_NOMEM;
    if (err != NULL) {
        bool passes = code == TAMIS_NOSPACE || sys == EMFILE || sys == ENFILE || sys == EINTR ||
                      sys == EAGAIN;
        tamis_error head = {.code = code,
                            .sys = sys,
                            .retryable = passes,
                            .file_number = file_number,
                            .offset = offset};
        char tail[MESSAGE_BYTES / 2 - 8] = ": ";
        // It may fail with the buffer untouched, cut, or filled with "Unknown error".
        (void)strerror_r(sys, tail + 2, sizeof(tail) - 2);
        if (tail[2] == 0) snprintf(tail + 2, sizeof(tail) - 2, "error %d", sys);
        make_printable(tail);
        va_list args;
        va_start(args, fmt);
        fill(err, &head, tail, fmt, args);
        va_end(args);
    }
    return code;
}

int tm_fail_corrupt(tamis_error *err, uint64_t file_number, uint64_t offset, const char *fmt, ...)
{
    if (err != NULL) {
        tamis_error head = {.code = TAMIS_CORRUPT, .file_number = file_number, .offset = offset};
        va_list args;
        va_start(args, fmt);
        fill(err, &head, "", fmt, args);
        va_end(args);
    }
    return TAMIS_CORRUPT;
}

int tm_fail_nomem(tamis_error *err)
{
    return tm_fail(err, TAMIS_NOMEM, "out of memory");
}

int tm_fail_copy(tamis_error *to, const tamis_error *from)
{
    int code = from->code;
    if (to != NULL && to != from) *to = *from;
    return code;
}
