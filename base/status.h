// SPDX-License-Identifier: BSD-2-Clause
//
// status.h - how failures travel.
//
// A function that can fail returns an int (tamis_status) and takes a tamis_error *err last, which
// may be NULL. The detail is filled where the failure is first seen, and not overwritten on the way
// up. NOTFOUND is an answer and never fills err.
#ifndef TM_STATUS_H
#define TM_STATUS_H

#include "base/base.h"

// Returns the failure to the caller.
#define TM_TRY(expr)                                                                               \
    do {                                                                                           \
        int tm_try_status_ = (expr);                                                               \
        if (TM_UNLIKELY(tm_try_status_ != TAMIS_OK)) return tm_try_status_;                        \
    } while (0)

// Keeps the failure in the variable st and goes to the label out, which undoes in reverse order.
#define TM_GOTO(expr)                                                                              \
    do {                                                                                           \
        st = (expr);                                                                               \
        if (TM_UNLIKELY(st != TAMIS_OK)) goto out;                                                 \
    } while (0)

// Fills *err (if any) and returns code, so that a failure is one line: return tm_fail(err, ...).
// The message is cut at a character where it is too long; control characters and what is not UTF-8
// become '?'. Arguments may point into *err. retryable is set for NOSPACE, BUSY and LOCKED.
int tm_fail(tamis_error *err, int code, const char *fmt, ...) TM_PRINTF(3, 4);

// A failed call to the operating system: what is a verb with its object ("write 000012.log").
// ENOSPC and EDQUOT give NOSPACE, ENOMEM NOMEM, everything else IO. The message ends with the
// text for sys. retryable is set for NOSPACE, EMFILE, ENFILE, EINTR and EAGAIN.
int tm_fail_sys(tamis_error *err, int sys, uint64_t file_number, uint64_t offset, const char *fmt,
                ...) TM_PRINTF(5, 6);

// Damaged data. Every CORRUPT of the library is made here: one place for a breakpoint.
int tm_fail_corrupt(tamis_error *err, uint64_t file_number, uint64_t offset, const char *fmt, ...)
    TM_PRINTF(4, 5);

int tm_fail_nomem(tamis_error *err);

// Copies a failure kept elsewhere to *to (if any) and returns its code.
int tm_fail_copy(tamis_error *to, const tamis_error *from);

#endif // TM_STATUS_H
