// SPDX-License-Identifier: BSD-2-Clause
//
// cmd_data.c - put, get, delete, scan.

#include "tools/cli.h"

#include <stdlib.h>
#include <string.h>

int cmd_put(cli_args *a)
{
    if (!cli_expect(a, 2, 2, "put STORE KEY VALUE [--ttl TIME]")) return EXIT_USAGE;
    tamis_write_options wo = {.size = sizeof wo};
    if (a->ttl != NULL && (!cli_duration(a->ttl, &wo.ttl_ms) || wo.ttl_ms == 0)) {
        return cli_usage("--ttl takes a time such as 90s, 15min or 7d, not \"%s\"", a->ttl);
    }
    text_buf key = {0}, value = {0};
    int code = EXIT_USAGE;
    if (cli_key(a, a->rest[0], &key) && cli_value(a, a->rest[1], &value)) {
        tamis_db *db = cli_open(a, 0, &code);
        if (db != NULL) {
            tamis_error err;
            int st = tamis_put(db, a->cf, &wo, key.data, key.len, value.data, value.len, &err);
            code = cli_close(a, db, st == TAMIS_OK ? EXIT_OK : cli_failed("put", st, &err));
        }
    }
    text_free(&key);
    text_free(&value);
    return code;
}

static int delete_range(cli_args *a)
{
    if (!cli_expect(a, 1, 2, "delete STORE --range FROM [TO]")) return EXIT_USAGE;
    text_buf from = {0}, to = {0};
    int code = EXIT_USAGE;
    if (cli_key(a, a->rest[0], &from) && (a->rest_count < 2 || cli_key(a, a->rest[1], &to))) {
        tamis_db *db = cli_open(a, TAMIS_OPEN_EXISTING, &code);
        if (db != NULL) {
            tamis_error err;
            int st =
                tamis_delete_range(db, a->cf, NULL, from.data, from.len, to.data, to.len, &err);
            code = cli_close(a, db, st == TAMIS_OK ? EXIT_OK : cli_failed("delete", st, &err));
        }
    }
    text_free(&from);
    text_free(&to);
    return code;
}

int cmd_delete(cli_args *a)
{
    if (a->range) return delete_range(a);
    if (!cli_expect(a, 1, INT32_MAX, "delete STORE KEY...")) return EXIT_USAGE;
    text_buf key = {0};
    int code = EXIT_OK;
    for (int i = 0; i < a->rest_count; i++) { // all of them are right, or none is deleted
        if (!cli_key(a, a->rest[i], &key)) code = EXIT_USAGE;
    }
    tamis_db *db = code == EXIT_OK ? cli_open(a, TAMIS_OPEN_EXISTING, &code) : NULL;
    for (int i = 0; db != NULL && code == EXIT_OK && i < a->rest_count; i++) {
        tamis_error err;
        if (!cli_key(a, a->rest[i], &key)) code = EXIT_USAGE;
        int st = tamis_delete(db, a->cf, NULL, key.data, key.len, &err);
        if (st != TAMIS_OK) code = cli_failed("delete", st, &err);
    }
    text_free(&key);
    return db != NULL ? cli_close(a, db, code) : code;
}

// ---- get ----------------------------------------------------------------------------------------

static void show_value(const cli_args *a, const text_buf *key, const tamis_value *v, bool many)
{
    if (a->json) {
        text_put_json_pair(stdout, key->data, key->len, v->data, v->len);
        return;
    }
    if (many) {
        cli_put(a, stdout, key->data, key->len);
        fputc('\t', stdout);
    }
    if (many || a->hex || a->number)
        cli_put_value(a, stdout, v->data, v->len);
    else
        fwrite(v->data, 1, v->len, stdout);
    fputc('\n', stdout);
}

static int get_one(cli_args *a, tamis_db *db, const text_buf *key, bool many, int code)
{
    tamis_value v;
    tamis_error err;
    int st = tamis_get(db, a->cf, NULL, key->data, key->len, &v, &err);
    if (st == TAMIS_OK) {
        show_value(a, key, &v, many);
        tamis_value_release(&v);
        return code;
    }
    if (st != TAMIS_NOTFOUND) return cli_failed("get", st, &err);
    if (!a->quiet) {
        fputs("tamis: not there: ", stderr);
        cli_put(a, stderr, key->data, key->len);
        fputc('\n', stderr);
    }
    return code == EXIT_OK ? EXIT_ABSENT : code;
}

// One key a line, escaped.
static int get_listed(cli_args *a, tamis_db *db, FILE *f, int code)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    text_buf key = {0};
    while ((n = getline(&line, &cap, f)) >= 0 && code != EXIT_FAILED && code != EXIT_USAGE) {
        if (n > 0 && line[n - 1] == '\n') line[--n] = '\0';
        code =
            cli_key_bytes(a, line, (size_t)n, &key) ? get_one(a, db, &key, true, code) : EXIT_USAGE;
        if (!cli_output_ok(stdout)) break;
    }
    free(line);
    text_free(&key);
    return code;
}

int cmd_get(cli_args *a)
{
    if (!cli_expect(a, a->keys ? 0 : 1, INT32_MAX, "get STORE KEY... [--keys FILE]")) {
        return EXIT_USAGE;
    }
    FILE *f = a->keys == NULL ? NULL : strcmp(a->keys, "-") ? fopen(a->keys, "r") : stdin;
    if (a->keys != NULL && f == NULL) return cli_usage("cannot read %s", a->keys);
    text_buf key = {0};
    int code = EXIT_OK;
    for (int i = 0; i < a->rest_count; i++) {
        if (!cli_key(a, a->rest[i], &key)) code = EXIT_USAGE;
    }
    tamis_db *db = NULL;
    if (code == EXIT_OK) db = cli_open(a, TAMIS_OPEN_EXISTING | TAMIS_OPEN_READONLY, &code);
    bool many = a->rest_count > 1 || f != NULL;
    for (int i = 0; db != NULL && i < a->rest_count; i++) {
        if (cli_key(a, a->rest[i], &key)) code = get_one(a, db, &key, many, code);
    }
    if (db != NULL && f != NULL) code = get_listed(a, db, f, code);
    if (f != NULL && f != stdin) fclose(f);
    text_free(&key);
    if (db != NULL) code = cli_close(a, db, code);
    return cli_finish_output(stdout, code);
}

// ---- scan ---------------------------------------------------------------------------------------

typedef struct range_text {
    text_buf from, to, prefix;
} range_text;

static bool parse_range(const cli_args *a, range_text *r, tamis_read_options *ro)
{
    *ro = (tamis_read_options){.size = sizeof *ro};
    if (a->from != NULL && !cli_key(a, a->from, &r->from)) return false;
    if (a->to != NULL && !cli_key(a, a->to, &r->to)) return false;
    if (a->prefix != NULL && !cli_key(a, a->prefix, &r->prefix)) return false;
    if (a->from != NULL) ro->lower = (tamis_slice){r->from.data ? r->from.data : "", r->from.len};
    if (a->to != NULL) ro->upper = (tamis_slice){r->to.data ? r->to.data : "", r->to.len};
    if (a->prefix != NULL) {
        ro->prefix = (tamis_slice){r->prefix.data ? r->prefix.data : "", r->prefix.len};
    }
    return true;
}

int cli_walk(cli_args *a, tamis_db *db, bool (*each)(void *ctx, tamis_slice key, tamis_slice value),
             void *ctx)
{
    range_text r = {0};
    tamis_read_options ro;
    tamis_iter *it = NULL;
    tamis_error err = {0};
    uint64_t n = 0;
    int code = EXIT_OK, st = TAMIS_OK;
    if (!parse_range(a, &r, &ro)) {
        code = EXIT_USAGE;
    } else if ((st = tamis_iter_create(db, a->cf, &ro, &it, &err)) != TAMIS_OK) {
        code = cli_failed(a->verb, st, &err);
    } else {
        if (a->reverse)
            tamis_iter_last(it);
        else
            tamis_iter_first(it);
        while (tamis_iter_valid(it) && !cli_interrupted() && (!a->has_limit || n < a->limit)) {
            tamis_slice key, value;
            key.data = tamis_iter_key(it, &key.len);
            value.data = tamis_iter_value(it, &value.len);
            n++;
            if (!each(ctx, key, value)) break;
            if (a->reverse)
                tamis_iter_prev(it);
            else
                tamis_iter_next(it);
        }
        st = tamis_iter_status(it, &err);
        if (st != TAMIS_OK)
            code = cli_failed(a->verb, st, &err);
        else if (cli_interrupted())
            code = EXIT_STOPPED;
    }
    tamis_iter_free(it);
    text_free(&r.from);
    text_free(&r.to);
    text_free(&r.prefix);
    return code;
}

static bool show_pair(void *ctx, tamis_slice key, tamis_slice value)
{
    const cli_args *a = ctx;
    if (a->json) {
        text_put_json_pair(stdout, key.data, key.len, value.data, value.len);
    } else {
        cli_put(a, stdout, key.data, key.len);
        fputc('\t', stdout);
        cli_put_value(a, stdout, value.data, value.len);
        fputc('\n', stdout);
    }
    return cli_output_ok(stdout);
}

int cmd_scan(cli_args *a)
{
    if (!cli_expect(a, 0, 0,
                    "scan STORE [--from K] [--to K] [--prefix P] [--limit N] [--reverse]")) {
        return EXIT_USAGE;
    }
    int code = EXIT_OK;
    tamis_db *db = cli_open(a, TAMIS_OPEN_EXISTING | TAMIS_OPEN_READONLY, &code);
    if (db != NULL) code = cli_close(a, db, cli_walk(a, db, show_pair, a));
    return cli_finish_output(stdout, code);
}
