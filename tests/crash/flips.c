// SPDX-License-Identifier: BSD-2-Clause
//
// flips.c - one bit of every byte of every file of a small store is flipped, and every file is cut
// at every length. Each time the store is opened (read-only, so that it stays as it is), all keys
// are read by get and by scan, and the files are verified. Verdicts, by kind of file:
//
//   refused   it does not open, with an error
//   told      it opens; what is damaged answers with an error, all else rightly
//   harmless  every answer is right (damaged filters cost speed only)
//   silent    a wrong answer, or a key missing without an error: must never be
//
//   crash_flips [--every N]     (1: every byte and length; else each N-th in large files)
//
// A flip must also be found by verify. A cut log may lose its end (nothing says how long the last
// log was): what is left must be a prefix.

#include "tests/support/store_model.h"

#include <time.h>

#include "lsm/filename.h"

enum { REFUSED, TOLD, HARMLESS, SILENT, UNSEEN, VERDICTS, KINDS = 4 };
static const char *const kind_names[KINDS] = {"CURRENT", "manifest", "log", "table"};
static uint64_t verdicts[2][KINDS][VERDICTS];
static uint64_t every = 23; // the n-th byte of large files; 1: all of them

static tamis_vfs *vfs;
static model m;
static uint64_t batches[200];
static size_t batch_count;

static void must(int st, const tamis_error *e, const char *what)
{
    if (st == TAMIS_OK) return;
    printf("flips: %s: %s\n", what, e ? e->message : tamis_status_name(st));
    exit(1);
}

static tamis_options store_options(void)
{
    tamis_options o = tamis_options_init();
    o.vfs = vfs;
    o.sync = TAMIS_SYNC_ALWAYS;
    o.memory_budget = 16u << 20;
    o.extra = "block_size=512; partition_size=1KiB; table_size=32KiB; write_buffer=24KiB; "
              "level0_compact=3; log_reserve=0; seed=5";
    model_use_families(&o);
    return o;
}

static void make_store(void)
{
    enum { MOST = 6 };
    model_op ops[MOST];
    tamis_db *db;
    tamis_error e;
    tm_random r = tm_random_seed(11);
    tamis_options o = store_options();
    o.flags = TAMIS_OPEN_NO_BACKGROUND;
    model_make_keys(&m, &r);
    must(tamis_open("store", &o, &db, &e), &e, "open");
    tamis_cf *cf[MODEL_FAMILIES];
    tamis_batch *b = tamis_batch_create(db, 0);
    must(model_open_families(db, cf, 1, &e), &e, "families");
    for (batch_count = 0; batch_count < 110; batch_count++) {
        uint64_t seq;
        uint32_t did;
        size_t n = model_random_batch(&m, &r, MODEL_FAMILIES, MOST, ops, b);
        must(tamis_commit(db, NULL, b, &seq, &e), &e, "commit");
        model_apply(&m, ops, n, seq);
        batches[batch_count] = seq;
        for (size_t f = 0; f < MODEL_FAMILIES; f++) {
            if (batch_count == 60) must(tamis_compact(db, cf[f], NULL, &e), &e, "compact");
            if (batch_count == 90) must(tamis_flush(db, cf[f], &e), &e, "flush");
        }
        must(tamis_step(db, &did, &e), &e, "step");
    }
    tamis_batch_free(b);
    model_close_families(cf);
    must(tamis_close(db, 0, &e), &e, "close"); // with writes in the log
}

// ---- Reading everything ------------------------------------------------------------------------

// True: all that was answered is right at seq. *errors tells whether something failed.
static bool family_right(tamis_db *db, tamis_cf *cf, size_t f, uint64_t seq, bool *errors)
{
    static uint8_t buf[MODEL_MAX_VALUE];
    tamis_iter *it = NULL;
    size_t len;
    bool right = true;
    for (size_t k = 0; k < MODEL_KEYS && right; k++) {
        tm_slice key = model_key_slice(&m, k);
        uint64_t expected = model_at(&m, f, k, seq);
        int st = tamis_get_into(db, cf, NULL, key.data, key.len, buf, sizeof buf, &len, NULL);
        if (st == TAMIS_OK)
            right = expected != 0 && model_value_is(f, expected, buf, len);
        else if (st == TAMIS_NOTFOUND)
            right = expected == 0;
        else
            *errors = true;
    }
    if (tamis_iter_create(db, cf, NULL, &it, NULL) != TAMIS_OK) {
        *errors = true;
        return right;
    }
    size_t k = 0;
    tamis_iter_first(it);
    for (; right && tamis_iter_valid(it); tamis_iter_next(it), k++) {
        while (k < MODEL_KEYS && model_at(&m, f, k, seq) == 0) k++;
        size_t klen, vlen;
        const void *key = tamis_iter_key(it, &klen), *value = tamis_iter_value(it, &vlen);
        right = k < MODEL_KEYS && tm_slice_equal(tm_slice_of(key, klen), model_key_slice(&m, k)) &&
                model_value_is(f, model_at(&m, f, k, seq), value, vlen);
    }
    if (tamis_iter_status(it, NULL) != TAMIS_OK)
        *errors = true;
    else
        for (; right && k < MODEL_KEYS; k++) right = model_at(&m, f, k, seq) == 0;
    tamis_iter_free(it);
    return right;
}

static bool reads_right(tamis_db *db, uint64_t seq, bool *errors)
{
    model_avoid_tick();
    bool right = true;
    for (size_t f = 0; f < MODEL_FAMILIES && right; f++) {
        tamis_cf *cf = NULL;
        int st = tamis_cf_open(db, model_families[f], NULL, 0, &cf, NULL);
        if (st == TAMIS_OK)
            right = family_right(db, cf, f, seq, errors);
        else if (st == TAMIS_NOTFOUND) // right only where nothing is lost
            for (size_t k = 0; k < MODEL_KEYS; k++) right = right && model_at(&m, f, k, seq) == 0;
        else
            *errors = true;
        tamis_cf_close(cf);
    }
    return right;
}

static int judge(bool prefix_allowed)
{
    tamis_db *db;
    tamis_error e;
    tamis_options o = store_options();
    o.flags = TAMIS_OPEN_READONLY;
    if (tamis_open("store", &o, &db, &e) != TAMIS_OK) {
        if (e.message[0] == '\0') must(TAMIS_INVALID, NULL, "an error without a message");
        return REFUSED;
    }
    bool errors = false;
    bool right = reads_right(db, m.last_seq, &errors);
    for (size_t i = batch_count; !right && prefix_allowed && i > 0; i--) {
        errors = false;
        right = reads_right(db, batches[i - 1], &errors);
    }
    must(tamis_close(db, 0, &e), &e, "close");
    return !right ? SILENT : errors ? TOLD : HARMLESS;
}

static bool verify_finds(void)
{
    tamis_options o = store_options();
    return tamis_verify_path("store", &o, NULL, NULL, NULL, NULL, NULL) != TAMIS_OK;
}

// ---- Files -------------------------------------------------------------------------------------

typedef struct listed {
    char names[64][TM_NAME_MAX];
    size_t n;
} listed;

static int add_name(void *ctx, const char *name)
{
    listed *l = ctx;
    if (l->n < 64) snprintf(l->names[l->n++], TM_NAME_MAX, "%s", name);
    return 0;
}

static int kind_of(const char *name)
{
    uint64_t number;
    switch (tm_filename_parse(name, &number)) {
    case TM_FILE_CURRENT:
        return 0;
    case TM_FILE_MANIFEST:
        return 1;
    case TM_FILE_LOG:
        return 2;
    case TM_FILE_TABLE:
        return 3;
    default:
        return -1; // LOCK and LOG say nothing that is relied on
    }
}

static void change_file(tamis_dir *dir, const char *name, int kind)
{
    tamis_file *f;
    uint64_t size;
    size_t moved;
    if (vfs->file_open(dir, name, TAMIS_FILE_WRITE, &f) != 0) abort();
    if (vfs->file_size(f, &size) != 0) abort();
    uint8_t *bytes = malloc(size + 1);
    if (bytes == NULL || vfs->read_at(f, 0, bytes, size, &moved) != 0 || moved != size) abort();
    uint64_t step = size > 4096 ? every : 1;
    for (uint64_t at = 0; at < size; at += step) {
        uint8_t flipped = bytes[at] ^ (uint8_t)(1u << at % 8);
        if (vfs->write_at(f, at, &flipped, 1, &moved) != 0) abort();
        int verdict = judge(false);
        verdicts[0][kind][verdict]++;
        if (verdict == SILENT)
            printf("flips: silent: %s, byte %llu\n", name, (unsigned long long)at);
        if (!verify_finds()) {
            verdicts[0][kind][UNSEEN]++;
            printf("flips: not found by verify: %s, byte %llu\n", name, (unsigned long long)at);
        }
        if (vfs->write_at(f, at, &bytes[at], 1, &moved) != 0) abort();
    }
    for (uint64_t at = 0; at < size; at += step) { // cut, from the longest on
        uint64_t length = size - 1 - at;
        if (vfs->truncate(f, length) != 0) abort();
        int verdict = judge(kind == 2);
        verdicts[1][kind][verdict]++;
        if (verdict == SILENT)
            printf("flips: silent: %s cut to %llu\n", name, (unsigned long long)length);
    }
    if (vfs->write_at(f, 0, bytes, size, &moved) != 0) abort();
    free(bytes);
    (void)vfs->file_close(f);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--every") == 0) every = strtoull(argv[2], NULL, 10);
    if (every == 0) return fprintf(stderr, "flips: --every takes a number above 0\n"), 2;
    tamis_dir *dir;
    listed files = {.n = 0};
    time_t begin = time(NULL);
    must(tamis_vfs_memory(&vfs, NULL), NULL, "vfs");
    model_clock = vfs;
    make_store();
    if (judge(false) != HARMLESS || verify_finds())
        must(TAMIS_CORRUPT, NULL, "the unchanged store");
    if (vfs->dir_open(vfs, "store", TAMIS_DIR_EXISTING, &dir, NULL) != 0) abort();
    if (vfs->dir_list(dir, add_name, &files) != 0) abort();
    for (size_t i = 0; i < files.n; i++) {
        int kind = kind_of(files.names[i]);
        if (kind >= 0) change_file(dir, files.names[i], kind);
    }
    vfs->dir_close(dir);
    tamis_vfs_free(vfs);
    model_free(&m);
    uint64_t bad = 0;
    printf("              refused     told  harmless   silent  unseen by verify\n");
    for (int way = 0; way < 2; way++) {
        for (int k = 0; k < KINDS; k++) {
            const uint64_t *v = verdicts[way][k];
            printf("%-4s %-8s %8llu %8llu  %8llu %8llu %8llu\n", way ? "cut" : "flip",
                   kind_names[k], (unsigned long long)v[REFUSED], (unsigned long long)v[TOLD],
                   (unsigned long long)v[HARMLESS], (unsigned long long)v[SILENT],
                   (unsigned long long)v[UNSEEN]);
            bad += v[SILENT] + v[UNSEEN];
        }
    }
    printf("flips: %ld s, %llu silent or unseen\n", (long)(time(NULL) - begin),
           (unsigned long long)bad);
    return bad ? 1 : 0;
}
