// SPDX-License-Identifier: BSD-2-Clause
//
// vfs_memory_tree.c - names made, removed and moved, and the way from a path to a name.
#include <errno.h>

#include "base/mem.h"
#include "base/vfs_memory.h"

#define PATH_LIMIT 4096 // bytes of a path with its NUL

// ---- Changes of the tree -----------------------------------------------------------------------

// Makes a new inode under a name that is free.
int tm_memfs_make(tm_memfs *fs, tm_memfs_inode *dir, const char *name, bool is_dir,
                  tm_memfs_inode **out)
{
    tm_memfs_entry *entry = NULL;
    tm_memfs_op *op = tm_memfs_op_create();
    tm_memfs_inode *inode = tm_memfs_inode_create(fs, is_dir);
    int rc = op == NULL || inode == NULL ? ENOMEM : 0;
    if (rc == 0) rc = tm_memfs_entry_make(fs, dir, name, &entry);
    if (rc == 0) {
        tm_memfs_op_append(fs, op, NULL, entry, inode);
        tm_memfs_entry_set(fs, entry, inode);
        *out = inode;
    } else {
        tm_free(op);
    }
    if (inode != NULL) tm_memfs_inode_unref(fs, inode); // the entry holds it, or nothing does
    return rc;
}

int tm_memfs_remove(tm_memfs *fs, tm_memfs_entry *entry)
{
    tm_memfs_op *op = tm_memfs_op_create();
    if (op == NULL) return ENOMEM;
    tm_memfs_op_append(fs, op, entry, NULL, entry->now);
    tm_memfs_entry_set(fs, entry, NULL);
    return 0;
}

static bool is_inside(const tm_memfs *fs, const tm_memfs_inode *inode, const tm_memfs_inode *dir)
{
    while (inode != NULL && inode != dir && inode != fs->root) inode = inode->parent;
    return inode == dir;
}

static int check_replace(const tm_memfs_inode *moved, const tm_memfs_inode *target)
{
    if (target->is_dir && !moved->is_dir) return EISDIR;
    if (!target->is_dir && moved->is_dir) return ENOTDIR;
    return target->is_dir && !tm_memfs_dir_empty(target) ? ENOTEMPTY : 0;
}

int tm_memfs_rename(tm_memfs *fs, tm_memfs_inode *from_dir, const char *from,
                    tm_memfs_inode *to_dir, const char *to, uint32_t flags)
{
    tm_memfs_entry *source = tm_memfs_lookup(from_dir, from);
    if (source == NULL || tm_memfs_is_gone(fs, to_dir)) return ENOENT;
    tm_memfs_entry *target = tm_memfs_lookup(to_dir, to);
    tm_memfs_inode *inode = source->now;
    if (target != NULL && flags == TAMIS_RENAME_NOREPLACE) return EEXIST;
    if (target != NULL && target->now == inode) return 0; // two names of one file stay, says POSIX
    if (inode->is_dir && is_inside(fs, to_dir, inode)) return EINVAL;
    int rc = target != NULL ? check_replace(inode, target->now) : 0;
    if (rc != 0) return rc;

    tm_memfs_op *op = tm_memfs_op_create();
    if (op == NULL) return ENOMEM;
    rc = tm_memfs_entry_make(fs, to_dir, to, &target);
    if (rc != 0) {
        tm_free(op);
        return rc;
    }
    tm_memfs_op_append(fs, op, source, target, inode);
    tm_memfs_entry_set(fs, source, NULL);
    tm_memfs_entry_set(fs, target, inode);
    return 0;
}

int tm_memfs_link(tm_memfs *fs, const tm_memfs_inode *from_dir, const char *from,
                  tm_memfs_inode *to_dir, const char *to)
{
    tm_memfs_entry *source = tm_memfs_lookup(from_dir, from), *target;
    if (source == NULL || tm_memfs_is_gone(fs, to_dir)) return ENOENT;
    if (tm_memfs_lookup(to_dir, to) != NULL) return EEXIST;
    if (source->now->is_dir) return EPERM;
    tm_memfs_op *op = tm_memfs_op_create();
    if (op == NULL) return ENOMEM;
    int rc = tm_memfs_entry_make(fs, to_dir, to, &target);
    if (rc != 0) {
        tm_free(op);
        return rc;
    }
    tm_memfs_op_append(fs, op, NULL, target, source->now);
    tm_memfs_entry_set(fs, target, source->now);
    return 0;
}

// ---- Paths -------------------------------------------------------------------------------------

// Splits off the first part of a path; found says whether there was one. ENAMETOOLONG.
static int next_part(const char **path, char part[TM_MEMFS_NAME_MAX + 1], bool *found)
{
    const char *p = *path;
    while (*p == '/') p++;
    size_t len = 0;
    while (p[len] != '\0' && p[len] != '/') len++;
    *found = len > 0;
    if (len > TM_MEMFS_NAME_MAX) return ENAMETOOLONG;
    memcpy(part, p, len);
    part[len] = '\0';
    *path = p + len;
    return 0;
}

int tm_memfs_step(tm_memfs_inode *dir, const char *part, tm_memfs_inode **out)
{
    *out = NULL;
    if (strcmp(part, ".") == 0) {
        *out = dir;
    } else if (strcmp(part, "..") == 0) {
        *out = dir->parent;
    } else {
        tm_memfs_entry *entry = tm_memfs_lookup(dir, part);
        if (entry != NULL) *out = entry->now;
    }
    if (*out == NULL) return ENOENT;
    return (*out)->is_dir ? 0 : ENOTDIR;
}

// The directory that holds the last part of the path, and that part; "." for "/" itself.
int tm_memfs_walk(tm_memfs *fs, const char *path, tm_memfs_inode **dir,
                  char last[TM_MEMFS_NAME_MAX + 1])
{
    char part[TM_MEMFS_NAME_MAX + 1];
    bool found;
    if (path == NULL) return EINVAL;
    if (path[0] == '\0') return ENOENT;
    if (strlen(path) >= PATH_LIMIT) return ENAMETOOLONG;
    *dir = fs->root;
    int rc = next_part(&path, last, &found);
    if (rc == 0 && !found) memcpy(last, ".", 2);
    while (rc == 0) {
        rc = next_part(&path, part, &found);
        if (rc != 0 || !found) break;
        rc = tm_memfs_step(*dir, last, dir);
        memcpy(last, part, sizeof part);
    }
    return rc;
}
