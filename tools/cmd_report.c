// SPDX-License-Identifier: BSD-2-Clause
//
// cmd_report.c - stats, explain, verify, compact, destroy.

#include "tools/cli.h"

#include <stdlib.h>
#include <string.h>

// A property as text on the heap; NULL: told.
static char *property(tamis_db *db, tamis_cf *cf, const char *name)
{
    tamis_error err;
    size_t len = 0;
    int st = tamis_property(db, cf, name, NULL, 0, &len, &err);
    char *text = malloc(len + 1024);
    if (text != NULL && (st == TAMIS_OK || st == TAMIS_TOOLARGE)) {
        st = tamis_property(db, cf, name, text, len + 1024, &len, &err);
    }
    if (text != NULL && st == TAMIS_OK) return text;
    free(text);
    cli_failed(name, st, &err);
    return NULL;
}

static uint64_t counter(tamis_db *db, const char *name)
{
    uint64_t v = 0;
    (void)tamis_counter(db, name, &v, NULL);
    return v;
}

// ---- stats --------------------------------------------------------------------------------------

// Finds "name":number in one object of the JSON that the library writes.
static double number_in(const char *object, const char *name)
{
    char pattern[64];
    const char *end = strchr(object, '}');
    snprintf(pattern, sizeof pattern, "\"%s\":", name);
    const char *p = strstr(object, pattern);
    return p != NULL && (end == NULL || p < end) ? strtod(p + strlen(pattern), NULL) : 0;
}

static void show_levels(const char *json)
{
    printf("level   tables            bytes          entries    deletes     target bytes  score\n");
    for (const char *p = strchr(json, '['); p != NULL && (p = strchr(p, '{')) != NULL; p++) {
        if (number_in(p, "tables") == 0) continue;
        printf("%5.0f %8.0f %16.0f %16.0f %10.0f %16.0f  %5.2f\n", number_in(p, "level"),
               number_in(p, "tables"), number_in(p, "bytes"), number_in(p, "entries"),
               number_in(p, "deletes"), number_in(p, "target_bytes"), number_in(p, "score"));
    }
}

static void show_filters(tamis_db *db, tamis_cf *cf)
{
    printf("\nfilters    keys  bits/key       probes    negatives  false pos.   expected   observed"
           "\n");
    for (int l = -1; l < 7; l++) {
        tamis_filter_report r = {.size = sizeof r};
        if (tamis_filter_stats(db, cf, l, &r, NULL) != TAMIS_OK) continue;
        if (l >= 0 && r.keys == 0 && r.probes == 0) continue;
        char name[16] = "all";
        if (l >= 0) snprintf(name, sizeof name, "%d", l);
        printf("%5s %10llu  %8.2f %12llu %12llu %11llu  %8.4f %%  %8.4f %%\n", name,
               (unsigned long long)r.keys, r.bits_per_key, (unsigned long long)r.probes,
               (unsigned long long)r.negatives, (unsigned long long)r.false_positives,
               r.expected_rate * 100, r.observed_rate * 100);
    }
}

static void show_memory(tamis_db *db)
{
    tamis_memory m = {.size = sizeof m};
    if (tamis_memory_usage(db, &m, NULL) != TAMIS_OK) return;
    printf("\nmemory   %.1f of %.1f MiB: memtables %.1f, filters %.1f, indexes %.1f, data %.1f, "
           "buffers %.1f\n",
           (double)m.used / 1048576, (double)m.budget / 1048576, (double)m.memtables / 1048576,
           (double)m.filters / 1048576, (double)m.indexes / 1048576,
           (double)m.data_blocks / 1048576, (double)m.buffers / 1048576);
}

static void show_counters(tamis_db *db)
{
    const char *name, *doc;
    printf("\n");
    for (size_t i = 0; tamis_counter_at(i, &name, &doc) == TAMIS_OK; i++) {
        uint64_t v = counter(db, name);
        if (v != 0) printf("%-26s %14llu  %s\n", name, (unsigned long long)v, doc);
    }
}

int cmd_stats(cli_args *a)
{
    if (!cli_expect(a, 0, 1, "stats STORE [stats|levels|tables|options|memory|filters]")) {
        return EXIT_USAGE;
    }
    const char *name, *doc;
    bool known = a->rest_count == 0;
    for (size_t i = 0; !known && tamis_property_at(i, &name, &doc) == TAMIS_OK; i++) {
        known = strcmp(name, a->rest[0]) == 0;
    }
    if (!known) return cli_usage("stats has no report \"%s\"; see: tamis help stats", a->rest[0]);
    int code = EXIT_OK;
    tamis_db *db = cli_open(a, TAMIS_OPEN_EXISTING | TAMIS_OPEN_READONLY, &code);
    if (db == NULL) return code;
    char *text = property(db, a->cf, a->rest_count ? a->rest[0] : a->json ? "stats" : "levels");
    if (text == NULL) {
        code = EXIT_FAILED;
    } else if (a->json || a->rest_count) {
        puts(text);
    } else {
        show_levels(text);
        show_filters(db, a->cf);
        show_memory(db);
        show_counters(db);
    }
    free(text);
    return cli_finish_output(stdout, cli_close(a, db, code));
}

// ---- explain ------------------------------------------------------------------------------------

typedef struct explaining {
    const cli_args *a;
    int steps;
} explaining;

static void show_step(void *ctx, const tamis_step_info *s)
{
    explaining *e = ctx;
    if (e->a->json) {
        printf("%s{\"what\":\"%s\",\"outcome\":\"%s\",\"level\":%d,\"table\":%llu,\"offset\":%llu,"
               "\"bytes\":%llu,\"cached\":%d,\"nanos\":%llu}",
               e->steps ? "," : "", s->what, s->outcome, (int)s->level,
               (unsigned long long)s->file_number, (unsigned long long)s->offset,
               (unsigned long long)s->bytes, (int)s->cached, (unsigned long long)s->nanos);
    } else {
        char level[32] = "memory", table[32] = "";
        if (s->level >= 0) snprintf(level, sizeof level, "level %d", (int)s->level);
        if (s->file_number)
            snprintf(table, sizeof table, "%06llu", (unsigned long long)s->file_number);
        printf("%2d  %-8s %-8s %-14s %-15s", e->steps + 1, level, table, s->what, s->outcome);
        if (s->bytes) {
            printf(" %8llu bytes at %-10llu %-6s %8.1f us", (unsigned long long)s->bytes,
                   (unsigned long long)s->offset, s->cached ? "memory" : "file",
                   (double)s->nanos / 1000);
        }
        putchar('\n');
    }
    e->steps++;
}

int cmd_explain(cli_args *a)
{
    if (!cli_expect(a, 1, 1, "explain STORE KEY")) return EXIT_USAGE;
    text_buf key = {0};
    if (!cli_key(a, a->rest[0], &key)) {
        text_free(&key);
        return EXIT_USAGE;
    }
    int code = EXIT_OK;
    tamis_db *db = cli_open(a, TAMIS_OPEN_EXISTING | TAMIS_OPEN_READONLY, &code);
    if (db != NULL) {
        explaining e = {a, 0};
        tamis_error err;
        if (a->json) printf("{\"steps\":[");
        int st = tamis_explain(db, a->cf, NULL, key.data, key.len, show_step, &e, &err);
        if (a->json)
            printf("],\"result\":\"%s\"}\n", tamis_status_name(st));
        else
            printf("=> %s\n", st == TAMIS_OK         ? "found"
                              : st == TAMIS_NOTFOUND ? "not there"
                                                     : "failed");
        code = st == TAMIS_OK         ? EXIT_OK
               : st == TAMIS_NOTFOUND ? EXIT_ABSENT
                                      : cli_failed("explain", st, &err);
        code = cli_close(a, db, code);
    }
    text_free(&key);
    return cli_finish_output(stdout, code);
}

// ---- verify -------------------------------------------------------------------------------------

static int show_verify_progress(void *ctx, uint64_t done, uint64_t total, const char *what)
{
    (void)ctx;
    (void)what;
    cli_progress("verifying", done, total);
    return cli_interrupted();
}

static void show_finding(void *ctx, const tamis_error *e)
{
    const cli_args *a = ctx;
    if (a->json) {
        printf("{\"finding\":");
        text_put_json(stdout, e->message, strlen(e->message));
        printf(",\"status\":\"%s\",\"file\":%llu,\"offset\":%llu}\n", tamis_status_name(e->code),
               (unsigned long long)e->file_number, (unsigned long long)e->offset);
    } else {
        printf("%s: %s\n", e->code == TAMIS_UNSUPPORTED ? "note" : "damage", e->message);
    }
}

int cmd_verify(cli_args *a)
{
    if (!cli_expect(a, 0, 0, "verify STORE")) return EXIT_USAGE;
    tamis_report r = {.size = sizeof r};
    tamis_error err = {0};
    cli_watch_interrupt();
    int st =
        tamis_verify_path(a->store, &a->options, show_verify_progress, show_finding, a, &r, &err);
    cli_progress_end();
    if (st == TAMIS_ABORTED) return cli_finish_output(stdout, EXIT_STOPPED);
    if (st != TAMIS_OK && r.damaged == 0) return cli_failed("verify", st, &err);
    if (a->json) {
        printf("{\"files\":%llu,\"blocks\":%llu,\"entries\":%llu,\"damaged\":%llu,"
               "\"lost_files\":%llu}\n",
               (unsigned long long)r.files, (unsigned long long)r.blocks,
               (unsigned long long)r.entries, (unsigned long long)r.damaged,
               (unsigned long long)r.lost_files);
    } else {
        printf("%s: %llu files, %llu blocks, %llu entries, %llu damaged, %llu files that nothing "
               "names\n",
               r.damaged ? "DAMAGED" : "ok", (unsigned long long)r.files,
               (unsigned long long)r.blocks, (unsigned long long)r.entries,
               (unsigned long long)r.damaged, (unsigned long long)r.lost_files);
    }
    return cli_finish_output(stdout, r.damaged ? EXIT_ABSENT : EXIT_OK);
}

// ---- compact, destroy ---------------------------------------------------------------------------

static bool is_range(const cli_args *a, const text_buf *from, const text_buf *to)
{
    size_t n = from->len < to->len ? from->len : to->len;
    int c = n > 0 ? memcmp(from->data, to->data, n) : 0;
    if (a->from == NULL || a->to == NULL || to->len == 0 || c < 0) return true;
    if (c == 0 && from->len <= to->len) return true;
    cli_usage("--from \"%s\" is behind --to \"%s\"", a->from, a->to);
    return false;
}

int cmd_compact(cli_args *a)
{
    if (!cli_expect(a, 0, 0, "compact STORE [--from K] [--to K]")) return EXIT_USAGE;
    text_buf from = {0}, to = {0};
    int code = EXIT_USAGE;
    if ((a->from == NULL || cli_key(a, a->from, &from)) &&
        (a->to == NULL || cli_key(a, a->to, &to)) && is_range(a, &from, &to)) {
        tamis_db *db = cli_open(a, TAMIS_OPEN_EXISTING, &code);
        if (db != NULL) {
            tamis_error err;
            tamis_range range = {{from.data, from.len}, {to.data, to.len}};
            int st = tamis_compact(db, a->cf, a->from || a->to ? &range : NULL, &err);
            if (st == TAMIS_OK) st = tamis_wait_idle(db, 0, &err);
            uint64_t in = counter(db, "compact_bytes_read"),
                     out = counter(db, "compact_bytes_written");
            code = cli_close(a, db, st == TAMIS_OK ? EXIT_OK : cli_failed("compact", st, &err));
            if (code == EXIT_OK && a->json) {
                printf("{\"bytes_read\":%llu,\"bytes_written\":%llu}\n", (unsigned long long)in,
                       (unsigned long long)out);
            } else if (code == EXIT_OK && !a->quiet) {
                printf("%llu bytes read, %llu written\n", (unsigned long long)in,
                       (unsigned long long)out);
            }
        }
    }
    text_free(&from);
    text_free(&to);
    return cli_finish_output(stdout, code);
}

int cmd_destroy(cli_args *a)
{
    if (!cli_expect(a, 0, 0, "destroy STORE")) return EXIT_USAGE;
    tamis_error err = {0};
    int st = tamis_destroy(a->store, &a->options, &err);
    return st == TAMIS_OK ? EXIT_OK : cli_failed("destroy", st, &err);
}
