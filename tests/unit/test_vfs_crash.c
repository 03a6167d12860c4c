// SPDX-License-Identifier: BSD-2-Clause
//
// What a crash leaves of the file system in memory. Most tests build one situation again and again,
// crash it with another seed each time, and hold the set of outcomes against the full list: none
// that is forbidden may occur, and each that is allowed has to.
#include "tests/unit/vfs_support.h"

enum { PAGE = 4096, SECTOR = 512, SEEDS = 600 };

// ---- Outcomes ----------------------------------------------------------------------------------

typedef struct outcomes {
    char text[64][128];
    size_t seen[64];
    size_t count;
} outcomes;

static void outcomes_add(outcomes *o, const char *text)
{
    for (size_t i = 0; i < o->count; i++) {
        if (strcmp(o->text[i], text) == 0) {
            o->seen[i]++;
            return;
        }
    }
    ck_assert_uint_lt(o->count, 64);
    snprintf(o->text[o->count], sizeof o->text[0], "%s", text);
    o->seen[o->count++] = 1;
}

// allowed ends with a NULL.
static void outcomes_check(const outcomes *o, const char *const *allowed)
{
    size_t n = 0;
    for (; allowed[n] != NULL; n++) {
        bool found = false;
        for (size_t i = 0; i < o->count; i++) {
            if (strcmp(o->text[i], allowed[n]) == 0) found = o->seen[i] > 0;
        }
        ck_assert_msg(found, "never left: %s", allowed[n]);
    }
    for (size_t i = 0; i < o->count; i++) {
        bool found = false;
        for (size_t k = 0; k < n; k++) found = found || strcmp(o->text[i], allowed[k]) == 0;
        ck_assert_msg(found, "must not be left: %s (%zu times)", o->text[i], o->seen[i]);
    }
}

// ---- Looking at what is left -------------------------------------------------------------------

// "a=1 c=3": name and content of those that are there, in the order given.
static const char *contents(tamis_dir *dir, const char *names)
{
    static char out[128];
    out[0] = '\0';
    for (const char *p = names; *p != '\0'; p++) {
        const char name[2] = {*p, '\0'};
        if (!exists(dir, name)) continue;
        if (out[0] != '\0') strcat(out, " ");
        snprintf(out + strlen(out), sizeof out - strlen(out), "%s=%s", name, text_of(dir, name));
    }
    return out;
}

// Each page as one letter ('0' for zeros, '?' for a mix), and what is behind the last one.
static const char *pages(tamis_dir *dir, const char *name)
{
    static char out[128];
    static char buf[PAGE];
    size_t n = 0;
    if (!exists(dir, name)) return "-";
    tamis_file *file = open_file(dir, name, TAMIS_FILE_READ);
    for (uint64_t at = 0; at < size_of(file); at += PAGE) {
        size_t got = read_some(file, at, buf, PAGE);
        bool same = true;
        for (size_t i = 1; i < got; i++) same = same && buf[i] == buf[0];
        out[n++] = !same ? '?' : buf[0] == '\0' ? '0' : buf[0];
        if (got < PAGE) n += (size_t)snprintf(out + n, 32, "+%zu", got);
    }
    out[n] = '\0';
    close_file(file);
    return out;
}

#define ALLOWED(...)                                                                               \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

// A situation, which may leave a handle in *file, and what to look at after the crash.
typedef void make_fn(disk *d, tamis_file **file);
typedef const char *look_fn(disk *d);

static void check_crashes(tamis_crash kind, make_fn *make, look_fn *look,
                          const char *const *allowed)
{
    outcomes o = {.count = 0};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        tamis_file *file = NULL;
        disk d = disk_open();
        make(&d, &file);
        crash(&d, kind, seed);
        outcomes_add(&o, look(&d));
        if (seed % 100 == 0) { // what is left is durable
            char left[128];
            snprintf(left, sizeof left, "%s", look(&d));
            if (kind != TAMIS_CRASH_KEEP_ALL) crash(&d, TAMIS_CRASH_LOSE_ALL, 0);
            ck_assert_str_eq(look(&d), left);
        }
        if (file != NULL) close_dead(file);
        disk_close(&d);
    }
    outcomes_check(&o, allowed);
}

static const char *look_pages(disk *d)
{
    return pages(d->root, "f");
}

static const char *look_contents(disk *d)
{
    return contents(d->root, "abcdef");
}

// ---- Pages and sizes ---------------------------------------------------------------------------

// One durable page 'a', overwritten by 'b', and one of 'c' behind it.
static void make_two_pages(disk *d, tamis_file **file)
{
    *file = open_file(d->root, "f", TAMIS_FILE_CREATE);
    fill(*file, 0, 'a', PAGE);
    sync_data(*file);
    sync_dir(d->root);
    fill(*file, 0, 'b', PAGE);
    fill(*file, PAGE, 'c', PAGE);
}

START_TEST(pages_and_size_are_kept_or_lost_one_by_one)
{
    check_crashes(TAMIS_CRASH_RANDOM, make_two_pages, look_pages,
                  ALLOWED("a", "b", "a0", "ac", "b0", "bc"));
    check_crashes(TAMIS_CRASH_LOSE_ALL, make_two_pages, look_pages, ALLOWED("a"));
    check_crashes(TAMIS_CRASH_KEEP_ALL, make_two_pages, look_pages, ALLOWED("bc"));
}
END_TEST

START_TEST(a_kill_leaves_unsynced_data_unsynced)
{
    tamis_file *file;
    disk d = disk_open();
    make_two_pages(&d, &file);
    crash(&d, TAMIS_CRASH_KEEP_ALL, 1);
    ck_assert_str_eq(pages(d.root, "f"), "bc");
    crash(&d, TAMIS_CRASH_KEEP_ALL, 2);
    crash(&d, TAMIS_CRASH_LOSE_ALL, 3);
    ck_assert_str_eq(pages(d.root, "f"), "a");
    close_dead(file);
    disk_close(&d);
}
END_TEST

static void make_appends(disk *d, tamis_file **file)
{
    *file = open_file(d->root, "f", TAMIS_FILE_CREATE);
    sync_dir(d->root);
    write_all(*file, 0, "aa", 2);
    write_all(*file, 2, "aa", 2);
    write_all(*file, 4, "aaaa", 4);
}

START_TEST(the_size_is_one_that_the_file_had)
{
    check_crashes(TAMIS_CRASH_RANDOM, make_appends, look_pages,
                  ALLOWED("", "0+2", "a+2", "0+4", "a+4", "0+8", "a+8"));
}
END_TEST

// Two durable pages cut to half a page, then grown again by a write further on.
static void make_cut_and_grow(disk *d, tamis_file **file)
{
    *file = open_file(d->root, "f", TAMIS_FILE_CREATE);
    fill(*file, 0, 'a', 2 * PAGE);
    sync_data(*file);
    sync_dir(d->root);
    ck_assert_int_eq(d->vfs->truncate(*file, 0), 0);
    fill(*file, PAGE, 'b', PAGE);
}

START_TEST(what_a_kept_truncation_cut_off_does_not_come_back)
{
    // Without the truncation all is old, but for the new page if it was written; with it, no 'a'.
    check_crashes(TAMIS_CRASH_RANDOM, make_cut_and_grow, look_pages,
                  ALLOWED("aa", "ab", "", "00", "0b"));
    check_crashes(TAMIS_CRASH_KEEP_ALL, make_cut_and_grow, look_pages, ALLOWED("0b"));
    check_crashes(TAMIS_CRASH_LOSE_ALL, make_cut_and_grow, look_pages, ALLOWED("aa"));
}
END_TEST

static void make_cut_synced(disk *d, tamis_file **file)
{
    *file = open_file(d->root, "f", TAMIS_FILE_CREATE);
    fill(*file, 0, 'a', 2 * PAGE);
    sync_data(*file);
    sync_dir(d->root);
    ck_assert_int_eq(d->vfs->truncate(*file, 0), 0);
    ck_assert_int_eq(d->vfs->reserve(*file, 0, PAGE), 0); // room, not the old content
    sync_data(*file);
    fill(*file, PAGE, 'b', PAGE);
}

static void make_cut_and_grow_synced(disk *d, tamis_file **file)
{
    make_cut_synced(d, file);
    sync_data(*file);
}

START_TEST(what_a_synced_truncation_cut_off_is_gone)
{
    check_crashes(TAMIS_CRASH_RANDOM, make_cut_synced, look_pages, ALLOWED("", "00", "0b"));
    check_crashes(TAMIS_CRASH_LOSE_ALL, make_cut_and_grow_synced, look_pages, ALLOWED("0b"));
}
END_TEST

static void make_cut_in_page(disk *d, tamis_file **file)
{
    *file = open_file(d->root, "f", TAMIS_FILE_CREATE);
    fill(*file, 0, 'a', PAGE);
    sync_data(*file);
    sync_dir(d->root);
    ck_assert_int_eq(d->vfs->truncate(*file, 10), 0);
}

START_TEST(a_cut_inside_a_page)
{
    check_crashes(TAMIS_CRASH_RANDOM, make_cut_in_page, look_pages,
                  ALLOWED("a", "a+10", "?")); // "?": the zeros were written, the size not
    disk d = disk_open();
    tamis_file *file;
    make_cut_in_page(&d, &file);
    sync_data(file);
    ck_assert_int_eq(d.vfs->truncate(file, 20), 0);
    char buf[20];
    ck_assert_uint_eq(read_some(file, 0, buf, 20), 20);
    ck_assert_mem_eq(buf, "aaaaaaaaaa\0\0\0\0\0\0\0\0\0\0", 20);
    sync_data(file);
    crash(&d, TAMIS_CRASH_LOSE_ALL, 0);
    close_dead(file);
    file = open_file(d.root, "f", TAMIS_FILE_READ);
    ck_assert_uint_eq(read_some(file, 0, buf, 20), 20);
    ck_assert_mem_eq(buf, "aaaaaaaaaa\0\0\0\0\0\0\0\0\0\0", 20);
    close_file(file);
    disk_close(&d);
}
END_TEST

START_TEST(synced_data_stays)
{
    for (int kind = TAMIS_CRASH_KEEP_ALL; kind <= TAMIS_CRASH_TORN; kind++) {
        for (uint64_t seed = 0; seed < 50; seed++) {
            tamis_file *file;
            disk d = disk_open();
            make_two_pages(&d, &file);
            ck_assert_int_eq(d.vfs->reserve(file, 0, 10 * PAGE), 0);
            sync_data(file);
            crash(&d, (tamis_crash)kind, seed);
            ck_assert_str_eq(pages(d.root, "f"), "bc");
            close_dead(file);
            disk_close(&d);
        }
    }
}
END_TEST

START_TEST(data_is_durable_by_file_whatever_its_name)
{
    disk d = disk_open();
    make_file(d.root, "a", "1");
    ck_assert_int_eq(d.vfs->link(d.root, "a", d.root, "b"), 0);
    sync_dir(d.root);
    tamis_file *file = open_file(d.root, "a", TAMIS_FILE_WRITE);
    write_all(file, 0, "22", 2);
    ck_assert_int_eq(d.vfs->rename(d.root, "a", d.root, "c", 0), 0);
    sync_data(file); // not the directory
    crash(&d, TAMIS_CRASH_LOSE_ALL, 0);
    ck_assert_str_eq(contents(d.root, "abc"), "a=22 b=22");
    close_dead(file);
    disk_close(&d);
}
END_TEST

// ---- Torn pages --------------------------------------------------------------------------------

// Where a page turns from x to y: 0 if all is y, PAGE if all is x, -1 if it does so more than once.
static int turns_at(const char *page, char x, char y)
{
    int at = 0;
    while (at < PAGE && page[at] == x) at++;
    for (int i = at; i < PAGE; i++) {
        if (page[i] != y) return -1;
    }
    return at;
}

START_TEST(one_page_is_torn_at_a_sector)
{
    bool first_at[9] = {false}, second_at[9] = {false};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        tamis_file *file;
        char page[2][PAGE];
        disk d = disk_open();
        make_two_pages(&d, &file);
        crash(&d, TAMIS_CRASH_TORN, seed);
        close_dead(file);
        file = open_file(d.root, "f", TAMIS_FILE_READ);
        ck_assert_uint_eq(read_some(file, 0, page[0], PAGE), PAGE);
        size_t got = read_some(file, PAGE, page[1], PAGE);
        ck_assert(got == 0 || got == PAGE);
        int first = turns_at(page[0], 'b', 'a'), second = got ? turns_at(page[1], 'c', '\0') : 0;
        ck_assert_int_ge(first, 0);
        ck_assert_int_ge(second, 0);
        ck_assert_int_eq(first % SECTOR, 0);
        ck_assert_int_eq(second % SECTOR, 0);
        bool first_torn = first % PAGE != 0, second_torn = second % PAGE != 0;
        ck_assert(!first_torn || !second_torn);
        ck_assert(first_torn || second_torn || got == 0); // then the torn one was cut off
        first_at[first / SECTOR] = true;
        second_at[second / SECTOR] = true;
        close_file(file);
        disk_close(&d);
    }
    for (int i = 0; i <= 8; i++) ck_assert(first_at[i] && second_at[i]);
}
END_TEST

// The one page that can be torn, and a hundred of a file without a name.
static void make_nameless(disk *d, tamis_file **file)
{
    tamis_file *named = open_file(d->root, "f", TAMIS_FILE_CREATE);
    fill(named, 0, 'a', PAGE);
    sync_data(named);
    fill(named, 0, 'b', PAGE);
    close_file(named);
    *file = open_file(d->root, "g", TAMIS_FILE_CREATE);
    fill(*file, 0, 'c', 100 * PAGE);
    ck_assert_int_eq(d->vfs->unlink(d->root, "g"), 0);
    sync_dir(d->root);
}

START_TEST(the_torn_page_is_one_that_is_left)
{
    check_crashes(TAMIS_CRASH_TORN, make_nameless, look_pages, ALLOWED("?"));
}
END_TEST

START_TEST(nothing_is_torn_where_all_is_synced)
{
    disk d = disk_open();
    make_file(d.root, "a", "1");
    sync_dir(d.root);
    for (uint64_t seed = 0; seed < 50; seed++) crash(&d, TAMIS_CRASH_TORN, seed);
    ck_assert_str_eq(contents(d.root, "a"), "a=1");
    disk_close(&d);
}
END_TEST

// ---- Failed syncs ------------------------------------------------------------------------------

static void fail_next(disk *d, int error)
{
    tamis_vfs_memory_fail(d->vfs, tamis_vfs_memory_calls(d->vfs) + 1, error, 0);
}

static void make_failed_sync(disk *d, tamis_file **file)
{
    make_two_pages(d, file);
    fail_next(d, EIO);
    ck_assert_int_eq(d->vfs->data_sync(*file), EIO);
    ck_assert_str_eq(pages(d->root, "f"), "bc"); // as long as the machine runs
}

static void make_failed_then_good_sync(disk *d, tamis_file **file)
{
    make_failed_sync(d, file);
    fill(*file, 2 * PAGE, 'd', PAGE);
    sync_data(*file); // says that all is well
}

static void make_failed_then_rewritten(disk *d, tamis_file **file)
{
    make_failed_sync(d, file);
    write_all(*file, 0, "b", 1); // makes the whole page dirty again
    sync_data(*file);
}

static void make_interrupted_sync(disk *d, tamis_file **file)
{
    make_two_pages(d, file);
    fail_next(d, EINTR);
    ck_assert_int_eq(d->vfs->data_sync(*file), EINTR);
    sync_data(*file);
}

START_TEST(a_failed_sync_loses_what_it_was_to_write)
{
    check_crashes(TAMIS_CRASH_RANDOM, make_failed_sync, look_pages, ALLOWED("a"));
    check_crashes(TAMIS_CRASH_KEEP_ALL, make_failed_sync, look_pages, ALLOWED("bc"));
    check_crashes(TAMIS_CRASH_RANDOM, make_failed_then_good_sync, look_pages, ALLOWED("a0d"));
    check_crashes(TAMIS_CRASH_LOSE_ALL, make_failed_then_rewritten, look_pages, ALLOWED("b0"));
    check_crashes(TAMIS_CRASH_LOSE_ALL, make_interrupted_sync, look_pages, ALLOWED("bc"));
}
END_TEST

START_TEST(a_failed_directory_sync_leaves_things_pending)
{
    disk d = disk_open();
    make_file(d.root, "a", "1");
    fail_next(&d, EIO);
    ck_assert_int_eq(d.vfs->dir_sync(d.root), EIO);
    crash(&d, TAMIS_CRASH_KEEP_ALL, 0);
    sync_dir(d.root);
    crash(&d, TAMIS_CRASH_LOSE_ALL, 0);
    ck_assert_str_eq(contents(d.root, "a"), "a=1");
    disk_close(&d);
}
END_TEST

// ---- Entries -----------------------------------------------------------------------------------

static void make_three_changes(disk *d, tamis_file **file)
{
    (void)file;
    make_file(d->root, "b", "2");
    make_file(d->root, "c", "3");
    make_file(d->root, "d", "4");
    sync_dir(d->root);
    make_file(d->root, "a", "1");
    ck_assert_int_eq(d->vfs->unlink(d->root, "b"), 0);
    ck_assert_int_eq(d->vfs->rename(d->root, "c", d->root, "d", 0), 0);
}

START_TEST(entries_are_kept_or_lost_one_by_one)
{
    check_crashes(TAMIS_CRASH_RANDOM, make_three_changes, look_contents,
                  ALLOWED("b=2 c=3 d=4", "a=1 b=2 c=3 d=4", "c=3 d=4", "a=1 c=3 d=4", "b=2 d=3",
                          "a=1 b=2 d=3", "d=3", "a=1 d=3"));
    check_crashes(TAMIS_CRASH_LOSE_ALL, make_three_changes, look_contents, ALLOWED("b=2 c=3 d=4"));
    check_crashes(TAMIS_CRASH_KEEP_ALL, make_three_changes, look_contents, ALLOWED("a=1 d=3"));
}
END_TEST

static void make_name_used_again(disk *d, tamis_file **file)
{
    (void)file;
    make_file(d->root, "a", "1");
    sync_dir(d->root);
    ck_assert_int_eq(d->vfs->unlink(d->root, "a"), 0);
    make_file(d->root, "a", "2");
    ck_assert_int_eq(d->vfs->link(d->root, "a", d->root, "b"), 0);
    ck_assert_int_eq(d->vfs->unlink(d->root, "a"), 0);
}

START_TEST(a_name_has_one_of_its_states)
{
    check_crashes(TAMIS_CRASH_RANDOM, make_name_used_again, look_contents,
                  ALLOWED("", "a=1", "a=2", "b=2", "a=1 b=2", "a=2 b=2"));
}
END_TEST

static void make_rename_chain(disk *d, tamis_file **file)
{
    (void)file;
    make_file(d->root, "a", "1");
    make_file(d->root, "c", "3");
    sync_dir(d->root);
    ck_assert_int_eq(d->vfs->rename(d->root, "a", d->root, "b", TAMIS_RENAME_NOREPLACE), 0);
    ck_assert_int_eq(d->vfs->rename(d->root, "b", d->root, "c", 0), 0);
}

// CURRENT.tmp over CURRENT, and the next CURRENT.tmp.
static void make_switch(disk *d, tamis_file **file)
{
    (void)file;
    make_file(d->root, "a", "old");
    make_file(d->root, "b", "new");
    sync_dir(d->root);
    ck_assert_int_eq(d->vfs->rename(d->root, "b", d->root, "a", 0), 0);
    make_file(d->root, "b", "next");
}

static void make_rename_of_new(disk *d, tamis_file **file)
{
    (void)file;
    make_file(d->root, "a", "old");
    sync_dir(d->root);
    make_file(d->root, "b", "new");
    ck_assert_int_eq(d->vfs->rename(d->root, "b", d->root, "a", 0), 0);
    ck_assert_int_eq(d->vfs->unlink(d->root, "a"), 0);
}

START_TEST(renames_are_whole)
{
    check_crashes(TAMIS_CRASH_RANDOM, make_rename_chain, look_contents,
                  ALLOWED("a=1 c=3", "b=1 c=3", "c=1"));
    check_crashes(TAMIS_CRASH_RANDOM, make_switch, look_contents,
                  ALLOWED("a=old b=new", "a=new", "a=new b=next"));
    check_crashes(TAMIS_CRASH_RANDOM, make_rename_of_new, look_contents,
                  ALLOWED("a=old", "a=old b=new", "a=new", ""));
}
END_TEST

static void make_unsynced_content(disk *d, tamis_file **file)
{
    *file = open_file(d->root, "f", TAMIS_FILE_CREATE);
    fill(*file, 0, 'a', 2 * PAGE);
    sync_dir(d->root);
}

static void make_unsynced_name(disk *d, tamis_file **file)
{
    *file = open_file(d->root, "f", TAMIS_FILE_CREATE);
    fill(*file, 0, 'a', PAGE);
    sync_data(*file);
}

static void make_unlinked(disk *d, tamis_file **file)
{
    make_two_pages(d, file);
    ck_assert_int_eq(d->vfs->unlink(d->root, "f"), 0);
}

START_TEST(content_and_name_are_two_things)
{
    check_crashes(TAMIS_CRASH_LOSE_ALL, make_unsynced_content, look_pages, ALLOWED(""));
    check_crashes(TAMIS_CRASH_RANDOM, make_unsynced_content, look_pages,
                  ALLOWED("", "00", "0a", "a0", "aa"));
    check_crashes(TAMIS_CRASH_LOSE_ALL, make_unsynced_name, look_pages, ALLOWED("-"));
    check_crashes(TAMIS_CRASH_RANDOM, make_unsynced_name, look_pages, ALLOWED("-", "a"));
    // An unlinked file may be there again, with or without its last writes.
    check_crashes(TAMIS_CRASH_RANDOM, make_unlinked, look_pages,
                  ALLOWED("-", "a", "b", "a0", "ac", "b0", "bc"));
}
END_TEST

// ---- Several directories -----------------------------------------------------------------------

static const char *look_two(disk *d)
{
    static char out[128];
    out[0] = '\0';
    for (int i = 0; i < 2; i++) {
        const char name[2] = {(char)('p' + i), '\0'};
        tamis_dir *dir = NULL;
        if (d->vfs->dir_open_at(d->root, name, TAMIS_DIR_EXISTING, &dir, NULL) != 0) continue;
        snprintf(out + strlen(out), sizeof out - strlen(out), "%s(%s)", name, contents(dir, "abc"));
        d->vfs->dir_close(dir);
    }
    return out;
}

// p(a=1) q(a=0), and a moved from p to q; the sources of what is synced say which.
static void make_move(disk *d, int synced)
{
    tamis_dir *p = open_dir(d->root, "p", TAMIS_DIR_CREATE);
    tamis_dir *q = open_dir(d->root, "q", TAMIS_DIR_CREATE);
    sync_dir(d->root);
    make_file(q, "a", "0");
    sync_dir(q);
    make_file(p, "a", "1"); // not synced: the sync of q has to bring it
    ck_assert_int_eq(d->vfs->rename(p, "a", q, "a", 0), 0);
    make_file(p, "a", "2");
    make_file(q, "b", "3");
    if (synced == 1) sync_dir(p);
    if (synced == 2) sync_dir(q);
    d->vfs->dir_close(p);
    d->vfs->dir_close(q);
}

static void make_move_unsynced(disk *d, tamis_file **file)
{
    (void)file;
    make_move(d, 0);
}
static void make_move_source_synced(disk *d, tamis_file **file)
{
    (void)file;
    make_move(d, 1);
}
static void make_move_target_synced(disk *d, tamis_file **file)
{
    (void)file;
    make_move(d, 2);
}

START_TEST(moves_between_directories_are_whole)
{
    check_crashes(TAMIS_CRASH_LOSE_ALL, make_move_unsynced, look_two, ALLOWED("p()q(a=0)"));
    check_crashes(TAMIS_CRASH_LOSE_ALL, make_move_source_synced, look_two, ALLOWED("p(a=2)q(a=1)"));
    check_crashes(TAMIS_CRASH_LOSE_ALL, make_move_target_synced, look_two,
                  ALLOWED("p()q(a=1 b=3)"));
    check_crashes(TAMIS_CRASH_RANDOM, make_move_unsynced, look_two,
                  ALLOWED("p()q(a=0)", "p(a=1)q(a=0)", "p()q(a=1)", "p(a=2)q(a=1)", "p()q(a=0 b=3)",
                          "p(a=1)q(a=0 b=3)", "p()q(a=1 b=3)", "p(a=2)q(a=1 b=3)"));
    check_crashes(TAMIS_CRASH_RANDOM, make_move_source_synced, look_two,
                  ALLOWED("p(a=2)q(a=1)", "p(a=2)q(a=1 b=3)"));
}
END_TEST

static void make_nested(disk *d, tamis_file **file)
{
    (void)file;
    tamis_dir *p = open_dir(d->root, "p", TAMIS_DIR_CREATE);
    make_file(p, "a", "1");
    sync_dir(p); // its own entries, but not its name
    make_file(p, "b", "2");
    d->vfs->dir_close(p);
}

static void make_removed_directory(disk *d, tamis_file **file)
{
    make_nested(d, file);
    sync_dir(d->root);
    tamis_dir *p = open_dir(d->root, "p", TAMIS_DIR_EXISTING);
    ck_assert_int_eq(d->vfs->unlink(p, "a"), 0);
    ck_assert_int_eq(d->vfs->unlink(p, "b"), 0);
    d->vfs->dir_close(p);
    ck_assert_int_eq(d->vfs->dir_remove(d->vfs, "p"), 0);
}

START_TEST(a_directory_takes_along_what_is_in_it)
{
    check_crashes(TAMIS_CRASH_LOSE_ALL, make_nested, look_two, ALLOWED(""));
    check_crashes(TAMIS_CRASH_RANDOM, make_nested, look_two, ALLOWED("", "p(a=1)", "p(a=1 b=2)"));
    check_crashes(TAMIS_CRASH_LOSE_ALL, make_removed_directory, look_two, ALLOWED("p(a=1)"));
    check_crashes(TAMIS_CRASH_RANDOM, make_removed_directory, look_two,
                  ALLOWED("", "p()", "p(a=1)", "p(b=2)", "p(a=1 b=2)"));
}
END_TEST

static char tree[128];

static int look_one(void *ctx, const char *name)
{
    tamis_dir *dir = open_dir(ctx, name, TAMIS_DIR_EXISTING);
    ck_assert_uint_lt(strlen(tree), 100); // a cycle would fill it
    strcat(strcat(tree, name), "(");
    ck_assert_int_eq(dir->vfs->dir_list(dir, look_one, dir), 0);
    strcat(tree, ")");
    dir->vfs->dir_close(dir);
    return 0;
}

static const char *look_tree(disk *d)
{
    tree[0] = '\0';
    ck_assert_int_eq(d->vfs->dir_list(d->root, look_one, d->root), 0);
    return tree;
}

// Three moves, of which the first and the last alone would put two directories into each other.
static void make_moves(disk *d, tamis_file **file)
{
    (void)file;
    tamis_dir *p = open_dir(d->root, "p", TAMIS_DIR_CREATE);
    tamis_dir *q = open_dir(d->root, "q", TAMIS_DIR_CREATE);
    sync_dir(d->root);
    ck_assert_int_eq(d->vfs->rename(d->root, "q", p, "q", 0), 0);
    ck_assert_int_eq(d->vfs->rename(p, "q", d->root, "r", 0), 0);
    ck_assert_int_eq(d->vfs->rename(d->root, "p", q, "p", 0), 0);
    d->vfs->dir_close(p);
    d->vfs->dir_close(q);
}

static void make_moves_synced(disk *d, tamis_file **file)
{
    make_moves(d, file);
    tamis_dir *q = open_dir(d->root, "r", TAMIS_DIR_EXISTING);
    sync_dir(q);
    d->vfs->dir_close(q);
}

START_TEST(directories_do_not_end_up_in_each_other)
{
    check_crashes(TAMIS_CRASH_RANDOM, make_moves, look_tree,
                  ALLOWED("p()q()", "p(q())", "p()r()", "r(p())"));
    check_crashes(TAMIS_CRASH_LOSE_ALL, make_moves_synced, look_tree, ALLOWED("r(p())"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("vfs_crash");
    TCase *t = tcase_create("crash");
    tcase_add_test(t, pages_and_size_are_kept_or_lost_one_by_one);
    tcase_add_test(t, a_kill_leaves_unsynced_data_unsynced);
    tcase_add_test(t, the_size_is_one_that_the_file_had);
    tcase_add_test(t, what_a_kept_truncation_cut_off_does_not_come_back);
    tcase_add_test(t, what_a_synced_truncation_cut_off_is_gone);
    tcase_add_test(t, a_cut_inside_a_page);
    tcase_add_test(t, synced_data_stays);
    tcase_add_test(t, data_is_durable_by_file_whatever_its_name);
    tcase_add_test(t, one_page_is_torn_at_a_sector);
    tcase_add_test(t, the_torn_page_is_one_that_is_left);
    tcase_add_test(t, nothing_is_torn_where_all_is_synced);
    tcase_add_test(t, a_failed_sync_loses_what_it_was_to_write);
    tcase_add_test(t, a_failed_directory_sync_leaves_things_pending);
    tcase_add_test(t, entries_are_kept_or_lost_one_by_one);
    tcase_add_test(t, a_name_has_one_of_its_states);
    tcase_add_test(t, renames_are_whole);
    tcase_add_test(t, content_and_name_are_two_things);
    tcase_add_test(t, moves_between_directories_are_whole);
    tcase_add_test(t, a_directory_takes_along_what_is_in_it);
    tcase_add_test(t, directories_do_not_end_up_in_each_other);
    tcase_set_timeout(t, 60);
    suite_add_tcase(s, t);
    return support_main(s);
}
