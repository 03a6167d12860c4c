// SPDX-License-Identifier: BSD-2-Clause
//
// cmd_family.c - family (list, create, drop, rename), merge.

#include "tools/cli.h"

#include <string.h>

// ---- family -------------------------------------------------------------------------------------

typedef struct listing {
    const cli_args *a;
    tamis_db *db;
    bool first;
} listing;

static uint64_t bytes_of(tamis_db *db, tamis_cf *cf, uint64_t *entries)
{
    tamis_range all = {{"", 0}, {NULL, 0}};
    uint64_t bytes = 0;
    (void)tamis_approximate_size(db, cf, &all, 1, &bytes, entries, NULL);
    return bytes;
}

static int show_family(void *ctx, const char *name, uint32_t id)
{
    listing *l = ctx;
    tamis_cf *cf = NULL;
    uint64_t entries = 0;
    if (tamis_cf_open(l->db, name, NULL, 0, &cf, NULL) != TAMIS_OK) return 0;
    uint64_t bytes = bytes_of(l->db, cf, &entries);
    if (l->a->json) {
        fputs(l->first ? "[{\"name\":" : ",{\"name\":", stdout);
        text_put_json(stdout, name, strlen(name));
        printf(",\"number\":%u,\"table_entries\":%llu,\"table_bytes\":%llu}", (unsigned)id,
               (unsigned long long)entries, (unsigned long long)bytes);
    } else {
        printf("%6u %14llu %14llu  ", (unsigned)id, (unsigned long long)entries,
               (unsigned long long)bytes);
        text_put_escaped(stdout, name, strlen(name));
        fputc('\n', stdout);
    }
    l->first = false;
    tamis_cf_close(cf);
    return 0;
}

static int list(cli_args *a)
{
    int code = EXIT_OK;
    tamis_error err;
    tamis_db *db = cli_open(a, TAMIS_OPEN_EXISTING | TAMIS_OPEN_READONLY, &code);
    if (db == NULL) return code;
    listing l = {a, db, true};
    if (!a->json) printf("number  table entries    table bytes  name\n");
    int st = tamis_cf_list(db, show_family, &l, &err);
    if (a->json) puts("]");
    if (st != TAMIS_OK) code = cli_failed("family list", st, &err);
    return cli_finish_output(stdout, cli_close(a, db, code));
}

// The options on the command line are the new family's.
static int create(cli_args *a)
{
    tamis_cf_options o = {.size = sizeof o, .extra = a->extra};
    tamis_cf *cf = NULL;
    tamis_error err;
    int code = EXIT_OK;
    if (!cli_merger(a, &o.merger)) return EXIT_USAGE;
    a->options.extra = NULL;
    a->merger = NULL;
    tamis_db *db = cli_open(a, TAMIS_OPEN_EXISTING, &code);
    if (db == NULL) return code;
    int st = tamis_cf_open(db, a->rest[1], &o, 1, &cf, &err);
    if (st != TAMIS_OK) code = cli_failed("family create", st, &err);
    tamis_cf_close(cf);
    return cli_close(a, db, code);
}

static int change(cli_args *a, bool drop)
{
    tamis_error err;
    int code = EXIT_OK;
    tamis_db *db = cli_open(a, TAMIS_OPEN_EXISTING, &code);
    if (db == NULL) return code;
    int st = drop ? tamis_cf_drop(db, a->rest[1], &err)
                  : tamis_cf_rename(db, a->rest[1], a->rest[2], &err);
    if (st != TAMIS_OK) code = cli_failed(drop ? "family drop" : "family rename", st, &err);
    return cli_close(a, db, code);
}

int cmd_family(cli_args *a)
{
    const char *what = a->rest_count ? a->rest[0] : "list";
    if (strcmp(what, "list") == 0 && a->rest_count <= 1) return list(a);
    if (strcmp(what, "create") == 0 && a->rest_count == 2) return create(a);
    if (strcmp(what, "drop") == 0 && a->rest_count == 2) return change(a, true);
    if (strcmp(what, "rename") == 0 && a->rest_count == 3) return change(a, false);
    return cli_usage("usage: tamis family STORE [list | create NAME | drop NAME | rename FROM TO]");
}

// ---- merge --------------------------------------------------------------------------------------

int cmd_merge(cli_args *a)
{
    if (!cli_expect(a, 2, 2, "merge STORE KEY OPERAND [--merger add|append]")) return EXIT_USAGE;
    text_buf key = {0}, operand = {0};
    int code = EXIT_USAGE;
    if (a->merger != NULL && strcmp(a->merger, "add") == 0) a->number = true;
    if (cli_key(a, a->rest[0], &key) && cli_value(a, a->rest[1], &operand)) {
        tamis_db *db = cli_open(a, 0, &code);
        if (db != NULL) {
            tamis_error err;
            int st =
                tamis_merge(db, a->cf, NULL, key.data, key.len, operand.data, operand.len, &err);
            code = cli_close(a, db, st == TAMIS_OK ? EXIT_OK : cli_failed("merge", st, &err));
        }
    }
    text_free(&key);
    text_free(&operand);
    return code;
}
