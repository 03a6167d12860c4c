// SPDX-License-Identifier: BSD-2-Clause
//
// Random changes of files and directories in memory, and random crashes: what must hold whatever
// was done. The single cases are in test_vfs_crash.c.
#include "tests/unit/vfs_support.h"

enum { PAGE = 4096 };

static char tree[1 << 16];

typedef struct walk {
    tamis_dir *dir;
    bool sync;
} walk;

static int walk_one(void *ctx, const char *name)
{
    walk *w = ctx;
    const tamis_vfs *vfs = w->dir->vfs;
    tamis_file *file;
    char *end = tree + strlen(tree), data[3 * PAGE];
    size_t room = sizeof tree - strlen(tree);
    ck_assert_uint_gt(room, 1000); // a cycle would fill it
    if (vfs->file_open(w->dir, name, TAMIS_FILE_READ, &file) != 0) {
        walk down = {open_dir(w->dir, name, TAMIS_DIR_EXISTING), w->sync};
        snprintf(end, room, "%s(", name);
        if (w->sync) sync_dir(down.dir);
        ck_assert_int_eq(vfs->dir_list(down.dir, walk_one, &down), 0);
        strcat(tree, ")");
        vfs->dir_close(down.dir);
        return 0;
    }
    uint64_t sum = 0, size = size_of(file);
    ck_assert_uint_eq(read_some(file, 0, data, sizeof data), size);
    for (size_t i = 0; i < size; i++) sum = sum * 31 + (uint8_t)data[i];
    snprintf(end, room, "%s=%u:%x;", name, (unsigned)size, (unsigned)sum);
    if (w->sync) sync_data(file);
    close_file(file);
    return 0;
}

// A text of the whole tree; with sync, it is also made durable.
static const char *describe(disk *d, bool sync)
{
    walk w = {d->root, sync};
    tree[0] = '\0';
    if (sync) sync_dir(d->root);
    ck_assert_int_eq(d->vfs->dir_list(d->root, walk_one, &w), 0);
    return tree;
}

// A random directory: the root, one in it, or one in that.
static tamis_dir *some_dir(disk *d, tm_random *r)
{
    tamis_dir *dir = NULL;
    char path[16] = "/";
    for (uint64_t i = tm_random_below(r, 3); i > 0; i--) {
        snprintf(path + strlen(path), 4, "%c/", (int)('p' + tm_random_below(r, 3)));
    }
    return d->vfs->dir_open(d->vfs, path, TAMIS_DIR_CREATE, &dir, NULL) == 0 ? dir : NULL;
}

static void change_file(disk *d, tamis_dir *dir, const char *name, tm_random *r)
{
    tamis_file *file = NULL;
    uint32_t mode = tm_random_below(r, 3) == 0 ? TAMIS_FILE_CREATE : TAMIS_FILE_WRITE;
    if (d->vfs->file_open(dir, name, mode, &file) != 0) return;
    for (uint64_t i = tm_random_below(r, 3); i > 0; i--) {
        uint64_t at = tm_random_below(r, 2 * PAGE), n = tm_random_below(r, PAGE);
        if (tm_random_below(r, 4) == 0)
            ck_assert_int_eq(d->vfs->truncate(file, at), 0);
        else
            fill(file, at, (char)('a' + tm_random_below(r, 26)), (size_t)n);
    }
    if (tm_random_below(r, 4) == 0) sync_data(file);
    if (tm_random_below(r, 9) == 0) ck_assert_int_eq(d->vfs->reserve(file, 0, 3 * PAGE), 0);
    close_file(file);
}

static void random_step(disk *d, tm_random *r)
{
    tamis_dir *one = some_dir(d, r), *two = some_dir(d, r);
    // Letters of files and of directories: both kinds are moved.
    const char a[2] = {"abcpqr"[tm_random_below(r, 6)], '\0'};
    const char b[2] = {"abcpqr"[tm_random_below(r, 6)], '\0'};
    if (one != NULL && two != NULL) {
        switch (tm_random_below(r, 8)) {
        case 0:
        case 1:
            change_file(d, one, a, r);
            break;
        case 2:
        case 3:
            (void)d->vfs->rename(one, a, two, b, (uint32_t)tm_random_below(r, 2));
            break;
        case 4:
            (void)d->vfs->link(one, a, two, b);
            break;
        case 5:
            (void)d->vfs->unlink(one, a);
            break;
        case 6: {
            char path[8];
            snprintf(path, sizeof path, "%s/%s", a, b);
            (void)d->vfs->dir_remove(d->vfs, tm_random_below(r, 2) ? path : a);
            break;
        }
        default:
            if (tm_random_below(r, 4) == 0) sync_dir(one);
        }
    }
    if (one != NULL) d->vfs->dir_close(one);
    if (two != NULL) d->vfs->dir_close(two);
}

static uint64_t free_bytes(disk *d)
{
    uint64_t bytes;
    ck_assert_int_eq(d->vfs->dir_free_bytes(d->root, &bytes), 0);
    return bytes;
}

typedef struct removal {
    tamis_dir *dir;
    char path[4000];
} removal;

// Removes an entry with all that is in it.
static int remove_entry(void *ctx, const char *name)
{
    removal *r = ctx;
    const tamis_vfs *vfs = r->dir->vfs;
    int rc = vfs->unlink(r->dir, name);
    if (rc == EISDIR) {
        tamis_dir *parent = r->dir;
        size_t len = strlen(r->path);
        snprintf(r->path + len, sizeof r->path - len, "/%s", name);
        r->dir = open_dir(parent, name, TAMIS_DIR_EXISTING);
        ck_assert_int_eq(vfs->dir_list(r->dir, remove_entry, r), 0);
        vfs->dir_close(r->dir);
        r->dir = parent;
        rc = vfs->dir_remove(vfs, r->path);
        r->path[len] = '\0';
    }
    ck_assert_int_eq(rc, 0);
    return 0;
}

// Whatever was done: a crash that loses all gives the state of the last full sync, one that keeps
// all changes nothing, what a random one leaves is durable, and no room gets lost.
START_TEST(any_sequence_of_changes)
{
    char before[1 << 14];
    for (uint64_t seed = (uint64_t)_i * 50; seed < ((uint64_t)_i + 1) * 50; seed++) {
        tm_random r = tm_random_seed(seed);
        disk d = disk_open();
        uint64_t all = free_bytes(&d);
        for (int round = 0; round < 20; round++) {
            for (uint64_t i = tm_random_below(&r, 60); i > 0; i--) random_step(&d, &r);
            uint64_t what = tm_random_below(&r, 4);
            if (what == 0) {
                snprintf(before, sizeof before, "%s", describe(&d, true));
                ck_assert_str_eq(describe(&d, false), before);
                crash(&d, TAMIS_CRASH_LOSE_ALL, seed);
                ck_assert_str_eq(describe(&d, false), before);
            } else if (what == 1) {
                snprintf(before, sizeof before, "%s", describe(&d, false));
                crash(&d, TAMIS_CRASH_KEEP_ALL, seed);
                ck_assert_str_eq(describe(&d, false), before);
            } else {
                crash(&d, what == 2 ? TAMIS_CRASH_RANDOM : TAMIS_CRASH_TORN,
                      seed + (uint64_t)round);
                snprintf(before, sizeof before, "%s", describe(&d, false));
                crash(&d, TAMIS_CRASH_LOSE_ALL, seed);
                ck_assert_str_eq(describe(&d, false), before);
            }
        }
        tm_random deep = tm_random_seed(seed + 1);
        for (int i = 0; i < 30; i++) random_step(&d, &deep);
        if (seed % 2 == 0) crash(&d, TAMIS_CRASH_RANDOM, seed);
        removal all_of_it = {.dir = d.root};
        ck_assert_int_eq(d.vfs->dir_list(d.root, remove_entry, &all_of_it), 0);
        ck_assert_str_eq(describe(&d, false), "");
        ck_assert_uint_eq(free_bytes(&d), all);
        disk_close(&d);
    }
}
END_TEST

START_TEST(one_seed_gives_one_outcome)
{
    char first[1 << 14];
    for (uint64_t seed = 0; seed < 30; seed++) {
        for (int again = 0; again < 2; again++) {
            tm_random r = tm_random_seed(seed);
            disk d = disk_open();
            for (int i = 0; i < 100; i++) random_step(&d, &r);
            crash(&d, TAMIS_CRASH_TORN, seed);
            if (again)
                ck_assert_str_eq(describe(&d, false), first);
            else
                snprintf(first, sizeof first, "%s", describe(&d, false));
            disk_close(&d);
        }
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("vfs_crash_random");
    TCase *t = tcase_create("random");
    tcase_add_loop_test(t, any_sequence_of_changes, 0, 8);
    tcase_add_test(t, one_seed_gives_one_outcome);
    tcase_set_timeout(t, 60);
    suite_add_tcase(s, t);
    return support_main(s);
}
