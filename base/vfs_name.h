// SPDX-License-Identifier: BSD-2-Clause
//
// vfs_name.h - what the file systems of tamis_vfs.h take for a name.
//
// A name is one entry of the directory it is looked up in: never a path, and never the directory
// itself or the one above. Any other bytes are allowed.
#ifndef TM_VFS_NAME_H
#define TM_VFS_NAME_H

#include <errno.h>

#include "base/base.h"

// 0, or ENOENT for an empty name (as the operating system has it), EINVAL for no name at all.
static inline int tm_vfs_check_name(const char *name)
{
    if (name == NULL || strchr(name, '/') != NULL) return EINVAL;
    if (name[0] == '\0') return ENOENT;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) return EINVAL;
    return 0;
}

#endif // TM_VFS_NAME_H
