// SPDX-License-Identifier: BSD-2-Clause
//
// The controls of the file system in memory: counted and failing calls, limits, the clock, and what
// becomes of handles in a crash. What a crash leaves of files is in test_vfs_crash.c.
#include "tests/unit/vfs_support.h"

// ---- One call of each kind ---------------------------------------------------------------------

// What the calls work on: two files, two directories, a free lock, and what they make.
typedef struct stage {
    env e;
    tamis_dir *sub;
    tamis_file *file;
    tamis_dir *made_dir;
    tamis_file *made_file;
    size_t moved; // bytes or names
} stage;

static stage stage_open(void)
{
    stage s = {.e = env_open(MEMORY)};
    s.sub = open_dir(s.e.root, "sub", TAMIS_DIR_CREATE);
    make_file(s.e.root, "a", "A");
    make_file(s.e.root, "b", "B");
    s.e.vfs->dir_close(open_dir(s.e.root, "empty", TAMIS_DIR_CREATE));
    s.file = open_file(s.e.root, "file", TAMIS_FILE_CREATE);
    write_all(s.file, 0, "12345678", 8);
    return s;
}

// Closes what a call made, before the next one.
static void stage_clear(stage *s)
{
    if (s->made_dir != NULL) s->e.vfs->dir_close(s->made_dir);
    if (s->made_file != NULL) (void)s->e.vfs->file_close(s->made_file);
    s->made_dir = NULL;
    s->made_file = NULL;
}

static void stage_close(stage *s)
{
    stage_clear(s);
    (void)s->e.vfs->file_close(s->file);
    s->e.vfs->dir_close(s->sub);
    env_close(&s->e);
}

static int count_one(void *ctx, const char *name)
{
    (void)name;
    ++*(size_t *)ctx;
    return 0;
}

typedef int call_fn(stage *s);
static char buffer[16];

static int call_dir_open(stage *s)
{
    return s->e.vfs->dir_open(s->e.vfs, "/store/newdir", TAMIS_DIR_CREATE, &s->made_dir, NULL);
}
static int call_dir_open_at(stage *s)
{
    return s->e.vfs->dir_open_at(s->sub, "new", TAMIS_DIR_CREATE, &s->made_dir, NULL);
}
static int call_dir_sync(stage *s)
{
    return s->e.vfs->dir_sync(s->e.root);
}
static int call_dir_list(stage *s)
{
    return s->e.vfs->dir_list(s->e.root, count_one, &s->moved);
}
static int call_dir_free_bytes(stage *s)
{
    uint64_t bytes;
    return s->e.vfs->dir_free_bytes(s->e.root, &bytes);
}
static int call_dir_remove(stage *s)
{
    return s->e.vfs->dir_remove(s->e.vfs, "/store/empty");
}
static int call_rename(stage *s)
{
    return s->e.vfs->rename(s->e.root, "a", s->sub, "a", TAMIS_RENAME_NOREPLACE);
}
static int call_link(stage *s)
{
    return s->e.vfs->link(s->e.root, "file", s->sub, "file2");
}
static int call_unlink(stage *s)
{
    return s->e.vfs->unlink(s->e.root, "b");
}
static int call_create(stage *s)
{
    return s->e.vfs->file_open(s->e.root, "new", TAMIS_FILE_CREATE, &s->made_file);
}
static int call_read(stage *s)
{
    return s->e.vfs->read_at(s->file, 0, buffer, 7, &s->moved);
}
static int call_write(stage *s)
{
    return s->e.vfs->write_at(s->file, 4, "xxxxxxx", 7, &s->moved);
}
static int call_reserve(stage *s)
{
    return s->e.vfs->reserve(s->file, 0, 10000);
}
static int call_truncate(stage *s)
{
    return s->e.vfs->truncate(s->file, 2);
}
static int call_file_size(stage *s)
{
    uint64_t size;
    return s->e.vfs->file_size(s->file, &size);
}
static int call_data_sync(stage *s)
{
    return s->e.vfs->data_sync(s->file);
}
static int call_lock(stage *s)
{
    return s->e.vfs->lock(s->sub, "LOCK", TAMIS_LOCK_EXCLUSIVE, &s->made_file);
}
static int call_random(stage *s)
{
    return s->e.vfs->random(s->e.vfs, buffer, 8);
}

static call_fn *const calls[] = {
    call_dir_open,   call_dir_open_at, call_dir_sync, call_dir_list, call_dir_free_bytes,
    call_dir_remove, call_rename,      call_link,     call_unlink,   call_create,
    call_read,       call_write,       call_reserve,  call_truncate, call_file_size,
    call_data_sync,  call_lock,        call_random,
};
enum { CALLS = sizeof calls / sizeof calls[0] };

// A text of all names and contents below a directory, and the room they take.
static char state[4096];
typedef struct walk {
    tamis_dir *dir;
    int depth;
} walk;

static int describe_one(void *ctx, const char *name)
{
    walk *w = ctx;
    const tamis_vfs *vfs = w->dir->vfs;
    tamis_file *file;
    char *end = state + strlen(state);
    size_t room = sizeof state - strlen(state);
    if (vfs->file_open(w->dir, name, TAMIS_FILE_READ, &file) == 0) {
        char text[100] = "";
        read_some(file, 0, text, 99);
        snprintf(end, room, "%d %s=%s;", w->depth, name, text);
        close_file(file);
        return 0;
    }
    snprintf(end, room, "%d %s/;", w->depth, name);
    walk down = {open_dir(w->dir, name, TAMIS_DIR_EXISTING), w->depth + 1};
    ck_assert_int_eq(vfs->dir_list(down.dir, describe_one, &down), 0);
    vfs->dir_close(down.dir);
    return 0;
}

static const char *describe(const env *e)
{
    uint64_t bytes = 0;
    walk w = {NULL, 0};
    ck_assert_int_eq(e->vfs->dir_open(e->vfs, "/", TAMIS_DIR_EXISTING, &w.dir, NULL), 0);
    state[0] = '\0';
    ck_assert_int_eq(w.dir->vfs->dir_list(w.dir, describe_one, &w), 0);
    ck_assert_int_eq(w.dir->vfs->dir_free_bytes(w.dir, &bytes), 0);
    snprintf(state + strlen(state), sizeof state - strlen(state), "free %llu",
             (unsigned long long)bytes);
    e->vfs->dir_close(w.dir);
    return state;
}

// ---- Counting and failing ----------------------------------------------------------------------

START_TEST(each_call_counts_once)
{
    stage s = stage_open();
    uint64_t before = tamis_vfs_memory_calls(s.e.vfs);
    ck_assert_int_eq(calls[_i](&s), 0);
    ck_assert_uint_eq(tamis_vfs_memory_calls(s.e.vfs), before + 1);
    s.e.vfs->monotonic_ns(s.e.vfs);
    s.e.vfs->wall_ms(s.e.vfs);
    s.e.vfs->sleep_us(s.e.vfs, 1);
    close_file(s.file); // not counted
    ck_assert_uint_eq(tamis_vfs_memory_calls(s.e.vfs), before + 1);
    s.file = open_file(s.e.root, "file", TAMIS_FILE_READ);
    stage_close(&s);
}
END_TEST

START_TEST(the_nth_call_fails_without_effect)
{
    static const int errors[] = {EIO, ENOSPC, EINTR, EMFILE, ENOENT};
    for (size_t i = 0; i < TM_COUNT(errors); i++) {
        stage s = stage_open();
        char before[4096];
        strcpy(before, describe(&s.e));
        uint64_t n = tamis_vfs_memory_calls(s.e.vfs);
        tamis_vfs_memory_fail(s.e.memory, n + 2, errors[i], 0);
        ck_assert_int_eq(call_file_size(&s), 0); // call n + 1
        ck_assert_int_eq(calls[_i](&s), errors[i]);
        ck_assert_uint_eq(s.moved, 0);
        ck_assert(s.made_dir == NULL && s.made_file == NULL);
        ck_assert_str_eq(describe(&s.e), before);
        ck_assert_int_eq(calls[_i](&s), 0); // once, and no more
        stage_close(&s);
    }
}
END_TEST

START_TEST(a_sticky_failure_stays_with_its_kind)
{
    stage s = stage_open();
    uint64_t n = tamis_vfs_memory_calls(s.e.vfs);
    tamis_vfs_memory_fail(s.e.memory, n + 1, ENOSPC, 1);
    for (int round = 0; round < 3; round++) ck_assert_int_eq(calls[_i](&s), ENOSPC);
    for (int other = 0; other < CALLS; other++) {
        // Both directory opens are of one kind.
        if (other == _i || (other < 2 && _i < 2)) continue;
        ck_assert_int_eq(calls[other](&s), 0);
        stage_clear(&s);
    }
    ck_assert_int_eq(calls[_i](&s), ENOSPC);
    tamis_vfs_memory_crash(s.e.memory, TAMIS_CRASH_KEEP_ALL, 0);
    stage_close(&s);

    s = stage_open(); // before the n-th call nothing of the kind fails, and n = 0 takes it back
    tamis_vfs_memory_fail(s.e.memory, tamis_vfs_memory_calls(s.e.vfs) + 2, ENOSPC, 1);
    ck_assert_int_eq(calls[_i](&s), 0);
    stage_clear(&s);
    ck_assert_int_eq(calls[_i](&s), ENOSPC);
    tamis_vfs_memory_fail(s.e.memory, 0, 0, 0);
    ck_assert_int_ne(calls[_i](&s), ENOSPC);
    stage_close(&s);
}
END_TEST

START_TEST(a_stopped_machine_answers_eio_until_the_crash)
{
    stage s = stage_open();
    char before[4096];
    strcpy(before, describe(&s.e));
    tamis_vfs_memory_fail(s.e.memory, tamis_vfs_memory_calls(s.e.vfs) + 1, -1, 0);
    for (int round = 0; round < 2; round++) {
        ck_assert_int_eq(calls[_i](&s), EIO);
        for (int other = 0; other < CALLS; other++) ck_assert_int_eq(calls[other](&s), EIO);
    }
    ck_assert_int_eq(s.e.vfs->file_close(s.file), EIO);
    s.file = NULL;
    ck_assert(s.made_dir == NULL && s.made_file == NULL);
    tamis_vfs_memory_crash(s.e.memory, TAMIS_CRASH_KEEP_ALL, 0);
    ck_assert_str_eq(describe(&s.e), before); // and it runs again
    stage_close(&s);
}
END_TEST

START_TEST(a_cut_call_does_half)
{
    stage s = stage_open();
    tamis_vfs_memory_fail(s.e.memory, tamis_vfs_memory_calls(s.e.vfs) + 1, 0, 1);
    ck_assert_int_eq(call_write(&s), 0);
    ck_assert_uint_eq(s.moved, 4);
    ck_assert_int_eq(call_read(&s), 0);
    ck_assert_uint_eq(s.moved, 7); // another kind
    ck_assert_mem_eq(buffer, "1234xxx", 7);
    ck_assert_uint_eq(size_of(s.file), 8);
    fill(s.file, 0, 'y', 1000); // going on gets there
    ck_assert_uint_eq(size_of(s.file), 1000);
    tamis_vfs_memory_fail(s.e.memory, tamis_vfs_memory_calls(s.e.vfs) + 1, 0, 0);
    ck_assert_int_eq(call_read(&s), 0);
    ck_assert_uint_eq(s.moved, 4);
    ck_assert_int_eq(call_read(&s), 0);
    ck_assert_uint_eq(s.moved, 7);
    for (int i = 0; i < CALLS; i++) { // what has no half is done
        if (calls[i] == call_read || calls[i] == call_write) continue;
        stage t = stage_open();
        tamis_vfs_memory_fail(t.e.memory, tamis_vfs_memory_calls(t.e.vfs) + 1, 0, 0);
        ck_assert_int_eq(calls[i](&t), 0);
        stage_close(&t);
    }
    stage_close(&s);
}
END_TEST

// ---- Handles after a crash ---------------------------------------------------------------------

START_TEST(handles_die_in_a_crash)
{
    for (int kind = TAMIS_CRASH_KEEP_ALL; kind <= TAMIS_CRASH_TORN; kind++) {
        stage s = stage_open();
        ck_assert_int_eq(s.e.vfs->dir_sync(s.e.root), 0);
        tamis_dir *top = NULL;
        ck_assert_int_eq(s.e.vfs->dir_open(s.e.vfs, ".", TAMIS_DIR_EXISTING, &top, NULL), 0);
        ck_assert_int_eq(s.e.vfs->dir_sync(top), 0);
        tamis_vfs_memory_crash(s.e.memory, (tamis_crash)kind, 1);
        for (int i = 0; i < CALLS; i++) {
            if (calls[i] == call_dir_open || calls[i] == call_dir_remove ||
                calls[i] == call_random) {
                continue; // work without a handle
            }
            ck_assert_int_eq(calls[i](&s), EIO);
        }
        ck_assert(s.made_dir == NULL && s.made_file == NULL);
        // Nor may the second directory of a rename be an old one.
        tamis_dir *now = NULL;
        ck_assert_int_eq(s.e.vfs->dir_open(s.e.vfs, s.e.path, TAMIS_DIR_EXISTING, &now, NULL), 0);
        ck_assert_int_eq(s.e.vfs->rename(now, "a", s.e.root, "z", 0), EIO);
        ck_assert_int_eq(s.e.vfs->link(now, "a", s.e.root, "z"), EIO);
        ck_assert_str_eq(text_of(now, "a"), "A");
        ck_assert_int_eq(s.e.vfs->file_close(s.file), EIO);
        s.file = NULL;
        s.e.vfs->dir_close(now);
        s.e.vfs->dir_close(top);
        stage_close(&s);
    }
}
END_TEST

START_TEST(locks_are_gone_after_a_crash)
{
    for (int kind = TAMIS_CRASH_KEEP_ALL; kind <= TAMIS_CRASH_TORN; kind++) {
        env e = env_open(MEMORY);
        tamis_file *exclusive, *shared, *again;
        ck_assert_int_eq(e.vfs->lock(e.root, "X", TAMIS_LOCK_EXCLUSIVE, &exclusive), 0);
        ck_assert_int_eq(e.vfs->lock(e.root, "S", TAMIS_LOCK_SHARED, &shared), 0);
        ck_assert_int_eq(e.vfs->dir_sync(e.root), 0);
        tamis_vfs_memory_crash(e.memory, (tamis_crash)kind, 1);
        tamis_dir *now = NULL;
        ck_assert_int_eq(e.vfs->dir_open(e.vfs, e.path, TAMIS_DIR_CREATE, &now, NULL), 0);
        ck_assert_int_eq(e.vfs->lock(now, "X", TAMIS_LOCK_EXCLUSIVE, &again), 0);
        ck_assert_int_eq(e.vfs->unlock(exclusive), EIO); // touches the new lock no more
        ck_assert_int_eq(e.vfs->lock(now, "X", TAMIS_LOCK_SHARED, &exclusive), EWOULDBLOCK);
        ck_assert_int_eq(e.vfs->unlock(again), 0);
        ck_assert_int_eq(e.vfs->lock(now, "S", TAMIS_LOCK_SHARED, &again), 0);
        ck_assert_int_eq(e.vfs->unlock(shared), EIO);
        ck_assert_int_eq(e.vfs->lock(now, "S", TAMIS_LOCK_EXCLUSIVE, &shared), EWOULDBLOCK);
        ck_assert_int_eq(e.vfs->unlock(again), 0);
        e.vfs->dir_close(now);
        env_close(&e);
    }
}
END_TEST

// ---- Room --------------------------------------------------------------------------------------

enum { PAGE = 4096 };

static uint64_t free_pages(env *e)
{
    uint64_t bytes = 0;
    ck_assert_int_eq(e->vfs->dir_free_bytes(e->root, &bytes), 0);
    ck_assert_uint_eq(bytes % PAGE, 0);
    return bytes / PAGE;
}

START_TEST(writes_stop_at_the_limit)
{
    env e = env_open(MEMORY);
    tamis_file *file = open_file(e.root, "f", TAMIS_FILE_CREATE);
    char *data = calloc(1, 10 * PAGE);
    size_t put = 7;
    tamis_vfs_memory_limit(e.memory, 4 * PAGE);
    ck_assert_uint_eq(free_pages(&e), 4);
    ck_assert_int_eq(e.vfs->write_at(file, 100, data, 10 * PAGE, &put), 0);
    ck_assert_uint_eq(put, 4 * PAGE - 100); // what fits
    ck_assert_uint_eq(size_of(file), 4 * PAGE);
    ck_assert_int_eq(e.vfs->write_at(file, 4 * PAGE, data, 1, &put), ENOSPC);
    ck_assert_uint_eq(put, 0);
    ck_assert_uint_eq(size_of(file), 4 * PAGE);
    ck_assert_int_eq(e.vfs->write_at(file, 0, data, 4 * PAGE, &put), 0); // needs no more room
    ck_assert_uint_eq(put, 4 * PAGE);
    ck_assert_int_eq(e.vfs->reserve(file, 4 * PAGE, 1), ENOSPC);
    ck_assert_int_eq(e.vfs->data_sync(file), 0);
    ck_assert_uint_eq(free_pages(&e), 0);
    tamis_file *other = open_file(e.root, "g", TAMIS_FILE_CREATE); // names need none

    ck_assert_int_eq(e.vfs->truncate(file, 2 * PAGE + 1), 0);
    ck_assert_uint_eq(free_pages(&e), 1);
    ck_assert_int_eq(e.vfs->write_at(other, 0, data, 2 * PAGE, &put), 0);
    ck_assert_uint_eq(put, PAGE);
    tamis_vfs_memory_limit(e.memory, 5 * PAGE + 1); // there is room again
    write_all(other, PAGE, data, PAGE);
    ck_assert_int_eq(e.vfs->write_at(other, 2 * PAGE, data, 1, &put), ENOSPC);
    tamis_vfs_memory_limit(e.memory, PAGE); // more in use than there is
    ck_assert_uint_eq(free_pages(&e), 0);
    ck_assert_int_eq(e.vfs->write_at(other, 2 * PAGE, data, 1, &put), ENOSPC);
    tamis_vfs_memory_limit(e.memory, 0);
    fill(other, 0, 'x', 20 * PAGE);
    free(data);
    close_file(file);
    close_file(other);
    env_close(&e);
}
END_TEST

START_TEST(reserved_room_is_there)
{
    env e = env_open(MEMORY);
    tamis_file *log = open_file(e.root, "log", TAMIS_FILE_CREATE);
    tamis_file *file = open_file(e.root, "f", TAMIS_FILE_CREATE);
    size_t put;
    tamis_vfs_memory_limit(e.memory, 8 * PAGE);
    ck_assert_int_eq(e.vfs->reserve(log, 0, 9 * PAGE), ENOSPC); // all or nothing
    ck_assert_uint_eq(free_pages(&e), 8);
    ck_assert_int_eq(e.vfs->reserve(log, UINT64_C(1) << 50, UINT64_C(1) << 60), ENOSPC);
    ck_assert_int_eq(e.vfs->reserve(log, 1, 5 * PAGE - 1), 0);
    ck_assert_uint_eq(free_pages(&e), 3);
    ck_assert_int_eq(e.vfs->reserve(log, PAGE, 5 * PAGE), 0); // counted once
    ck_assert_uint_eq(free_pages(&e), 2);
    fill(file, 0, 'x', 2 * PAGE);
    ck_assert_int_eq(e.vfs->write_at(file, 2 * PAGE, "x", 1, &put), ENOSPC);
    fill(log, 0, 'l', 6 * PAGE); // was kept for it
    ck_assert_int_eq(e.vfs->write_at(log, 6 * PAGE, "x", 1, &put), ENOSPC);

    // Unlinked, a file takes room until its last handle is closed.
    ck_assert_int_eq(e.vfs->unlink(e.root, "log"), 0);
    ck_assert_uint_eq(free_pages(&e), 0);
    close_file(log);
    ck_assert_uint_eq(free_pages(&e), 6);
    ck_assert_int_eq(e.vfs->link(e.root, "f", e.root, "g"), 0);
    ck_assert_int_eq(e.vfs->unlink(e.root, "f"), 0);
    close_file(file);
    ck_assert_uint_eq(free_pages(&e), 6);
    make_file(e.root, "h", "x");
    ck_assert_uint_eq(free_pages(&e), 5);
    ck_assert_int_eq(e.vfs->rename(e.root, "h", e.root, "g", 0), 0);
    ck_assert_uint_eq(free_pages(&e), 7);

    file = open_file(e.root, "r", TAMIS_FILE_CREATE); // truncation lets reserved room go
    ck_assert_int_eq(e.vfs->reserve(file, 0, 4 * PAGE), 0);
    ck_assert_uint_eq(free_pages(&e), 3);
    ck_assert_int_eq(e.vfs->truncate(file, 0), 0);
    ck_assert_uint_eq(free_pages(&e), 7);
    close_file(file);
    env_close(&e);
}
END_TEST

START_TEST(room_after_a_crash)
{
    env e = env_open(MEMORY);
    tamis_dir *top = NULL;
    ck_assert_int_eq(e.vfs->dir_open(e.vfs, "/", TAMIS_DIR_EXISTING, &top, NULL), 0);
    ck_assert_int_eq(e.vfs->dir_sync(top), 0);
    tamis_vfs_memory_limit(e.memory, 100 * PAGE);
    tamis_file *kept = open_file(e.root, "kept", TAMIS_FILE_CREATE);
    fill(kept, 0, 'x', 3 * PAGE);
    ck_assert_int_eq(e.vfs->data_sync(kept), 0);
    fill(kept, 3 * PAGE, 'x', 3 * PAGE);
    ck_assert_int_eq(e.vfs->dir_sync(e.root), 0);
    tamis_file *lost = open_file(e.root, "lost", TAMIS_FILE_CREATE);
    fill(lost, 0, 'x', 10 * PAGE);
    tamis_file *nameless = open_file(e.root, "nameless", TAMIS_FILE_CREATE);
    fill(nameless, 0, 'x', 7 * PAGE);
    ck_assert_int_eq(e.vfs->unlink(e.root, "nameless"), 0);
    ck_assert_uint_eq(free_pages(&e), 100 - 23);

    tamis_vfs_memory_crash(e.memory, TAMIS_CRASH_KEEP_ALL, 0);
    e.vfs->dir_close(e.root);
    ck_assert_int_eq(e.vfs->dir_open(e.vfs, e.path, TAMIS_DIR_EXISTING, &e.root, NULL), 0);
    ck_assert_uint_eq(free_pages(&e), 100 - 16); // without handles the nameless one is gone
    tamis_vfs_memory_crash(e.memory, TAMIS_CRASH_LOSE_ALL, 0);
    e.vfs->dir_close(e.root);
    ck_assert_int_eq(e.vfs->dir_open(e.vfs, e.path, TAMIS_DIR_EXISTING, &e.root, NULL), 0);
    ck_assert_uint_eq(free_pages(&e), 97);
    ck_assert_int_eq(e.vfs->file_close(kept), EIO);
    ck_assert_int_eq(e.vfs->file_close(lost), EIO);
    ck_assert_int_eq(e.vfs->file_close(nameless), EIO);
    ck_assert_uint_eq(free_pages(&e), 97);
    ck_assert_int_eq(e.vfs->unlink(e.root, "kept"), 0);
    ck_assert_uint_eq(free_pages(&e), 100);
    e.vfs->dir_close(top);
    env_close(&e);
}
END_TEST

// ---- Clock, randomness, life -------------------------------------------------------------------

START_TEST(time_and_chance_are_the_same_every_time)
{
    env a = env_open(MEMORY), b = env_open(MEMORY);
    uint64_t ns = a.vfs->monotonic_ns(a.vfs), ms = a.vfs->wall_ms(a.vfs);
    ck_assert_uint_eq(b.vfs->monotonic_ns(b.vfs), ns);
    ck_assert_uint_eq(b.vfs->wall_ms(b.vfs), ms);
    ck_assert_uint_eq(a.vfs->monotonic_ns(a.vfs), ns + 2000); // a microsecond each look
    tamis_vfs_memory_advance_ms(a.memory, 3600000);
    ck_assert_uint_eq(a.vfs->monotonic_ns(a.vfs), ns + 3000 + UINT64_C(3600000000000));
    ck_assert_uint_eq(a.vfs->wall_ms(a.vfs), ms + 3600000);
    a.vfs->sleep_us(a.vfs, 5);
    ck_assert_uint_eq(a.vfs->monotonic_ns(a.vfs), ns + 10000 + UINT64_C(3600000000000));

    uint8_t x[64], y[64], z[64];
    ck_assert_int_eq(a.vfs->random(a.vfs, x, sizeof x), 0);
    ck_assert_int_eq(b.vfs->random(b.vfs, y, 10), 0);
    ck_assert_int_eq(b.vfs->random(b.vfs, y + 10, sizeof y - 10), 0);
    ck_assert_mem_eq(x, y, sizeof x);
    ck_assert_int_eq(a.vfs->random(a.vfs, z, sizeof z), 0);
    ck_assert_int_ne(memcmp(x, z, 8), 0);
    env_close(&a);
    env_close(&b);
}
END_TEST

START_TEST(the_tree_begins_with_its_root)
{
    tamis_vfs *vfs;
    tamis_dir *dir = NULL, *other = NULL;
    ck_assert_int_eq(tamis_vfs_memory(&vfs, NULL), TAMIS_OK);
    ck_assert_uint_eq(vfs->size, sizeof(tamis_vfs));
    ck_assert_int_eq(vfs->dir_open(vfs, ".", TAMIS_DIR_EXISTING, &dir, NULL), 0);
    size_t count = 0;
    ck_assert_int_eq(vfs->dir_list(dir, count_one, &count), 0);
    ck_assert_uint_eq(count, 0);
    vfs->dir_close(open_dir(dir, "here", TAMIS_DIR_CREATE));
    static const char *const same[] = {"here", "/here", "./here", "here/", "//here//.", "../here"};
    for (size_t i = 0; i < TM_COUNT(same); i++) {
        ck_assert_int_eq(vfs->dir_open(vfs, same[i], TAMIS_DIR_EXISTING, &other, NULL), 0);
        vfs->dir_close(other);
    }
    ck_assert_int_eq(vfs->dir_remove(vfs, "/"), EINVAL);
    ck_assert_int_eq(vfs->dir_open(vfs, NULL, TAMIS_DIR_EXISTING, &other, NULL), EINVAL);
    vfs->dir_close(dir);
    tamis_vfs_free(vfs);
}
END_TEST

START_TEST(the_controls_leave_other_file_systems_alone)
{
    tamis_vfs copy = *tamis_vfs_default();
    tamis_vfs_memory_crash(&copy, TAMIS_CRASH_LOSE_ALL, 1);
    tamis_vfs_memory_fail(&copy, 1, EIO, 1);
    tamis_vfs_memory_limit(&copy, 1);
    tamis_vfs_memory_advance_ms(&copy, 1);
    ck_assert_uint_eq(tamis_vfs_memory_calls(&copy), 0);
    tamis_vfs_free(&copy);
    tamis_vfs_free(NULL);
    ck_assert_uint_eq(tamis_vfs_memory_calls(NULL), 0);
    ck_assert_mem_eq(&copy, tamis_vfs_default(), sizeof copy);
    ck_assert_int_eq(tamis_vfs_memory(NULL, NULL), TAMIS_INVALID);
}
END_TEST

static uint64_t allocations_left;

static bool allow(void *ctx, size_t n)
{
    (void)ctx;
    (void)n;
    return allocations_left != 0 && allocations_left-- != 0;
}

START_TEST(making_one_without_memory)
{
    uint64_t n = 0;
    int rc;
    do {
        tamis_vfs *vfs = (tamis_vfs *)&n;
        tamis_error err = {0};
        allocations_left = n++;
        tm_mem_set_hook(allow, NULL);
        rc = tamis_vfs_memory(&vfs, &err);
        tm_mem_set_hook(NULL, NULL);
        ck_assert(rc == TAMIS_OK || (rc == TAMIS_NOMEM && err.code == rc && vfs == NULL));
        tamis_vfs_free(vfs);
    } while (rc != TAMIS_OK);
    ck_assert_uint_ge(n, 3);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("vfs_memory");
    TCase *t = tcase_create("memory");
    tcase_add_loop_test(t, each_call_counts_once, 0, CALLS);
    tcase_add_loop_test(t, the_nth_call_fails_without_effect, 0, CALLS);
    tcase_add_loop_test(t, a_sticky_failure_stays_with_its_kind, 0, CALLS);
    tcase_add_loop_test(t, a_stopped_machine_answers_eio_until_the_crash, 0, CALLS);
    tcase_add_test(t, a_cut_call_does_half);
    tcase_add_test(t, handles_die_in_a_crash);
    tcase_add_test(t, locks_are_gone_after_a_crash);
    tcase_add_test(t, writes_stop_at_the_limit);
    tcase_add_test(t, reserved_room_is_there);
    tcase_add_test(t, room_after_a_crash);
    tcase_add_test(t, time_and_chance_are_the_same_every_time);
    tcase_add_test(t, the_tree_begins_with_its_root);
    tcase_add_test(t, the_controls_leave_other_file_systems_alone);
    tcase_add_test(t, making_one_without_memory);
    tcase_set_timeout(t, 60);
    suite_add_tcase(s, t);
    return support_main(s);
}
