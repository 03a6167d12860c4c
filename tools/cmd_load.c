// SPDX-License-Identifier: BSD-2-Clause
//
// cmd_load.c - load and dump: many pairs in and out, in one of three formats.
//
//   tsv   key TAB value NEWLINE, with backslash escapes (text.h); --hex: both in hexadecimal
//   json  {"key": "...", "value": "..."} a line; "key_hex" and "value_hex" for what is no UTF-8
//   nul   key NUL value NUL, as they are (bytes other than NUL)

#include "tools/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef enum format { TSV, JSON, NUL } format;

static bool parse_format(const cli_args *a, const char *standard, format *out)
{
    static const char *const names[] = {"tsv", "json", "nul"};
    const char *name = a->format ? a->format : standard;
    for (int i = 0; i < 3; i++) {
        if (strcmp(name, names[i]) != 0) continue;
        *out = (format)i;
        if (!a->hex || i == TSV) return true;
        cli_usage("--hex goes with the format tsv, not with %s", name);
        return false;
    }
    cli_usage("--format takes tsv, json or nul, not \"%s\"", name);
    return false;
}

// ---- Reading a pair -----------------------------------------------------------------------------

static bool parse_tsv(const cli_args *a, const char *line, size_t n, text_buf *key, text_buf *value,
                      const char **why)
{
    const char *tab = memchr(line, '\t', n);
    *why = "no tab between key and value";
    if (tab == NULL) return false;
    size_t klen = (size_t)(tab - line);
    if (a->hex) {
        return text_unhex(line, klen, key, why) && text_unhex(tab + 1, n - klen - 1, value, why);
    }
    return text_unescape(line, klen, key, why) && text_unescape(tab + 1, n - klen - 1, value, why);
}

typedef struct json_reader {
    const char *p, *end;
} json_reader;

static void skip_space(json_reader *r)
{
    while (r->p < r->end && strchr(" \t\r\n", *r->p) != NULL && *r->p != '\0') r->p++;
}
static bool take(json_reader *r, char c)
{
    skip_space(r);
    if (r->p == r->end || *r->p != c) return false;
    r->p++;
    return true;
}
// The inside of a string, still escaped.
static bool take_string(json_reader *r, const char **s, size_t *n)
{
    if (!take(r, '"')) return false;
    *s = r->p;
    while (r->p < r->end && *r->p != '"') r->p += *r->p == '\\' ? 2 : 1;
    if (r->p >= r->end) return false;
    *n = (size_t)(r->p - *s);
    r->p++;
    return true;
}

static bool name_is(const char *s, size_t n, const char *name)
{
    return n == strlen(name) && memcmp(s, name, n) == 0;
}

static bool parse_json(const char *line, size_t n, text_buf *key, text_buf *value, const char **why)
{
    json_reader r = {line, line + n};
    bool has_key = false, has_value = false, more = true;
    *why = "not a JSON object with \"key\" and \"value\" as strings";
    if (!take(&r, '{')) return false;
    while (more) {
        const char *name, *s;
        size_t name_len, len;
        *why = "not a JSON object with \"key\" and \"value\" as strings";
        if (!take_string(&r, &name, &name_len) || !take(&r, ':') || !take_string(&r, &s, &len)) {
            return false;
        }
        bool key_text = name_is(name, name_len, "key"),
             key_hex = name_is(name, name_len, "key_hex");
        bool val_text = name_is(name, name_len, "value");
        bool val_hex = name_is(name, name_len, "value_hex");
        *why = "an unknown field, or one that is there twice";
        if ((key_text || key_hex) && !has_key) {
            has_key = true;
            if (!(key_hex ? text_unhex : text_unjson)(s, len, key, why)) return false;
        } else if ((val_text || val_hex) && !has_value) {
            has_value = true;
            if (!(val_hex ? text_unhex : text_unjson)(s, len, value, why)) return false;
        } else {
            return false;
        }
        more = take(&r, ',');
    }
    *why = "not a JSON object with \"key\" and \"value\" as strings";
    if (!take(&r, '}')) return false;
    skip_space(&r);
    return r.p == r.end && has_key && has_value;
}

// ---- load ---------------------------------------------------------------------------------------

typedef struct loading {
    cli_args *a;
    format format;
    FILE *f;
    tamis_db *db;
    tamis_batch *batch;
    text_buf key, value;
    char *line;
    size_t line_cap;
    uint64_t lines, pairs, bad, bytes, allowed_bad, file_bytes, read;
    bool skip_all;
} loading;

static int report_bad(loading *l, const char *why)
{
    l->bad++;
    fprintf(stderr, "tamis: line %llu: %s\n", (unsigned long long)l->lines, why);
    if (l->skip_all || l->bad <= l->allowed_bad) return EXIT_OK;
    return EXIT_FAILED;
}

static int commit(loading *l)
{
    tamis_error err;
    int st = tamis_commit(l->db, NULL, l->batch, NULL, &err);
    tamis_batch_clear(l->batch);
    return st == TAMIS_OK ? EXIT_OK : cli_failed("load", st, &err);
}

static int add_pair(loading *l)
{
    // Looked at here, because a batch keeps its failures: the pairs beside this one would be lost.
    if (l->key.len > TAMIS_MAX_KEY) return report_bad(l, "the key is longer than 65535 bytes");
    if (l->value.len > TAMIS_MAX_VALUE) return report_bad(l, "the value is longer than 1 GiB");
    int st =
        tamis_batch_put(l->batch, l->a->cf, l->key.data, l->key.len, l->value.data, l->value.len);
    if (st != TAMIS_OK) return cli_failed("load", st, NULL);
    l->pairs++;
    l->bytes += l->key.len + l->value.len;
    uint64_t most = l->a->has_batch ? l->a->batch : 1000;
    if (tamis_batch_count(l->batch) < most && tamis_batch_bytes(l->batch) < (4u << 20)) {
        return EXIT_OK;
    }
    if ((l->pairs & 0xfff) < most) cli_progress("loading", l->read, l->file_bytes);
    return commit(l);
}

// The next pair. *end: there is none; *why is set when it is bad.
static void next_pair(loading *l, bool *end, const char **why)
{
    int delimiter = l->format == NUL ? 0 : '\n';
    l->key.len = l->value.len = 0;
    *why = NULL;
    ssize_t n = getdelim(&l->line, &l->line_cap, delimiter, l->f);
    *end = n < 0;
    if (n < 0) return;
    l->lines++;
    l->read += (uint64_t)n;
    if (n > 0 && l->line[n - 1] == delimiter) n--;
    if (l->format == NUL) {
        if (!text_append(&l->key, l->line, (size_t)n)) *why = "out of memory";
        n = getdelim(&l->line, &l->line_cap, 0, l->f);
        if (n < 0) {
            *why = "a key without a value at the end";
            return;
        }
        l->read += (uint64_t)n;
        if (n > 0 && l->line[n - 1] == 0) n--;
        if (!text_append(&l->value, l->line, (size_t)n)) *why = "out of memory";
        return;
    }
    bool ok = l->format == JSON ? parse_json(l->line, (size_t)n, &l->key, &l->value, why)
                                : parse_tsv(l->a, l->line, (size_t)n, &l->key, &l->value, why);
    if (ok) *why = NULL;
}

static int load_all(loading *l)
{
    int code = EXIT_OK;
    while (code == EXIT_OK && !cli_interrupted()) {
        bool end;
        const char *why;
        next_pair(l, &end, &why);
        if (end) break;
        code = why != NULL ? report_bad(l, why) : add_pair(l);
    }
    if (ferror(l->f) && !cli_interrupted()) {
        fprintf(stderr, "tamis: cannot read the input: %s\n", strerror(errno));
        code = EXIT_FAILED;
    }
    // What was read whole before a bad line is kept: the message says where to go on.
    int last = tamis_batch_count(l->batch) > 0 ? commit(l) : EXIT_OK;
    return code == EXIT_OK ? last : code;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void summarise(const loading *l, double took)
{
    if (l->a->json) {
        printf("{\"lines\":%llu,\"pairs\":%llu,\"bytes\":%llu,\"bad\":%llu,\"seconds\":%.3f}\n",
               (unsigned long long)l->lines, (unsigned long long)l->pairs,
               (unsigned long long)l->bytes, (unsigned long long)l->bad, took);
    } else if (!l->a->quiet) {
        double mb = (double)l->bytes / 1e6, s = took > 0 ? took : 1;
        printf("%llu pairs, %.1f MB, %llu bad lines, %.2f s, %.0f pairs/s, %.1f MB/s\n",
               (unsigned long long)l->pairs, mb, (unsigned long long)l->bad, took,
               (double)l->pairs / s, mb / s);
    }
}

static bool parse_on_error(loading *l)
{
    const char *typed = l->a->on_error;
    uint64_t n;
    if (typed == NULL || strcmp(typed, "stop") == 0) return true;
    l->skip_all = strcmp(typed, "skip") == 0;
    if (l->skip_all) return true;
    if (cli_number(typed, &n)) {
        l->allowed_bad = n;
        return true;
    }
    cli_usage("--on-error takes stop, skip or a number of bad lines, not \"%s\"", typed);
    return false;
}

static bool open_input(loading *l)
{
    const char *name = l->a->rest_count ? l->a->rest[0] : "-";
    l->f = strcmp(name, "-") ? fopen(name, "r") : stdin;
    if (l->f == NULL) {
        cli_usage("cannot read %s: %s", name, strerror(errno));
        return false;
    }
    if (l->f != stdin && fseek(l->f, 0, SEEK_END) == 0) {
        long size = ftell(l->f);
        l->file_bytes = size > 0 ? (uint64_t)size : 0;
        rewind(l->f);
    }
    return true;
}

int cmd_load(cli_args *a)
{
    loading l = {.a = a};
    if (!cli_expect(a, 0, 1,
                    "load STORE [FILE|-] [--format tsv|json|nul] [--on-error stop|skip|N]") ||
        !parse_format(a, "tsv", &l.format) || !parse_on_error(&l)) {
        return EXIT_USAGE;
    }
    if (a->has_batch && a->batch == 0) return cli_usage("--batch takes a number above 0");
    if (!open_input(&l)) return EXIT_USAGE;
    // Without a word on it, the log is synced once at the end instead of at each batch.
    if (a->options.sync == TAMIS_SYNC_DEFAULT) a->options.sync = TAMIS_SYNC_NEVER;
    int code = EXIT_FAILED;
    l.db = cli_open(a, 0, &code);
    if (l.db != NULL) l.batch = tamis_batch_create(l.db, 0);
    if (l.db != NULL && l.batch == NULL) cli_failed("load", TAMIS_NOMEM, NULL);
    if (l.db != NULL) {
        tamis_error err;
        double begin = seconds();
        cli_watch_interrupt();
        code = load_all(&l);
        int st = tamis_sync_wal(l.db, &err);
        if (st != TAMIS_OK && code == EXIT_OK) code = cli_failed("load", st, &err);
        if (code == EXIT_OK && a->flush && (st = tamis_flush(l.db, a->cf, &err)) != TAMIS_OK) {
            code = cli_failed("flush", st, &err);
        }
        cli_progress_end();
        if (code == EXIT_OK && cli_interrupted()) code = EXIT_STOPPED;
        code = cli_close(a, l.db, code);
        summarise(&l, seconds() - begin);
    }
    if (l.f != stdin) fclose(l.f);
    tamis_batch_free(l.batch);
    text_free(&l.key);
    text_free(&l.value);
    free(l.line);
    return cli_finish_output(stdout, code);
}

// ---- dump ---------------------------------------------------------------------------------------

typedef struct dumping {
    cli_args *a;
    format format;
    FILE *f;
    bool has_nul;
} dumping;

static bool dump_pair(void *ctx, tamis_slice key, tamis_slice value)
{
    dumping *d = ctx;
    if (d->format == TSV) {
        cli_put(d->a, d->f, key.data, key.len);
        fputc('\t', d->f);
        cli_put(d->a, d->f, value.data, value.len);
        fputc('\n', d->f);
    } else if (d->format == JSON) {
        text_put_json_pair(d->f, key.data, key.len, value.data, value.len);
    } else {
        d->has_nul = (key.len > 0 && memchr(key.data, 0, key.len) != NULL) ||
                     (value.len > 0 && memchr(value.data, 0, value.len) != NULL);
        if (d->has_nul) return false;
        fwrite(key.data, 1, key.len, d->f);
        fputc(0, d->f);
        fwrite(value.data, 1, value.len, d->f);
        fputc(0, d->f);
    }
    return cli_output_ok(d->f);
}

int cmd_dump(cli_args *a)
{
    dumping d = {.a = a, .f = stdout};
    if (!cli_expect(a, 0, 1, "dump STORE [FILE|-] [--format tsv|json|nul] [--from K] [--to K]") ||
        !parse_format(a, a->json ? "json" : "tsv", &d.format)) {
        return EXIT_USAGE;
    }
    int code = EXIT_OK;
    tamis_db *db = cli_open(a, TAMIS_OPEN_EXISTING | TAMIS_OPEN_READONLY, &code);
    if (db == NULL) return code;
    const char *name = a->rest_count ? a->rest[0] : a->output ? a->output : "-";
    if (strcmp(name, "-") != 0 && (d.f = fopen(name, "w")) == NULL) {
        return cli_close(a, db, cli_usage("cannot write %s: %s", name, strerror(errno)));
    }
    cli_watch_interrupt();
    code = cli_walk(a, db, dump_pair, &d);
    if (d.has_nul) {
        fputs("tamis: a key or value holds a NUL byte: use --format tsv or json\n", stderr);
        code = EXIT_FAILED;
    }
    code = cli_finish_output(d.f, cli_close(a, db, code));
    if (d.f != stdout && fclose(d.f) != 0 && code == EXIT_OK) {
        fprintf(stderr, "tamis: cannot write the output: %s: %s\n", name, strerror(errno));
        code = EXIT_FAILED;
    }
    return code;
}
