// SPDX-License-Identifier: BSD-2-Clause
//
// A program outside the tree: sees only what was installed. Prints the version of the library it
// runs with; fails if that is not the one whose header it was compiled with.

#include <tamis.h>
#include <tamis_filter.h>
#include <tamis_types.h>
#include <tamis_vfs.h>

#include <stdio.h>

int main(void) {
    uint32_t header = TAMIS_VERSION_MAJOR * 1000000 + TAMIS_VERSION_MINOR * 1000 +
                      TAMIS_VERSION_PATCH;
    uint32_t library = tamis_version();
    if (library != header) {
        fprintf(stderr, "header %lu, library %lu\n", (unsigned long)header, (unsigned long)library);
        return 1;
    }
    printf("%d.%d.%d\n", TAMIS_VERSION_MAJOR, TAMIS_VERSION_MINOR, TAMIS_VERSION_PATCH);
    return 0;
}
