// SPDX-License-Identifier: BSD-2-Clause
//
// must.h - ends an example with the message when a call failed. Good enough here; an application
// decides by the status (docs/guide.md, "Errors").
#ifndef EXAMPLE_MUST_H
#define EXAMPLE_MUST_H

#include <stdio.h>
#include <stdlib.h>

#include <tamis.h>

static inline void must(int st, const tamis_error *err)
{
    if (st == TAMIS_OK) return;
    fprintf(stderr, "%s: %s\n", tamis_status_name(st), err->message);
    exit(1);
}

#endif // EXAMPLE_MUST_H
