// SPDX-License-Identifier: BSD-2-Clause

#include "tools/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---- Messages -----------------------------------------------------------------------------------

int cli_usage(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fputs("tamis: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    return EXIT_USAGE;
}

int cli_failed(const char *what, int status, const tamis_error *err)
{
    const char *message = err != NULL && err->code == status ? err->message : "";
    fprintf(stderr, "tamis: %s: %s%s%s\n", what, tamis_status_name(status), *message ? ": " : "",
            message);
    return status == TAMIS_INVALID ? EXIT_USAGE : EXIT_FAILED;
}

// ---- ^C, pipes ----------------------------------------------------------------------------------

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

void cli_watch_interrupt(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_interrupt;
    action.sa_flags = (int)SA_RESETHAND; // a second ^C ends the program at once
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

bool cli_interrupted(void)
{
    return interrupted != 0;
}

static int output_error; // errno of the first write that failed

bool cli_output_ok(FILE *f)
{
    if (!ferror(f)) return true;
    if (output_error == 0) output_error = errno ? errno : EIO;
    return false;
}

int cli_finish_output(FILE *f, int code)
{
    errno = 0;
    if (fflush(f) == 0 && cli_output_ok(f)) return code;
    (void)cli_output_ok(f);
    if (output_error == EPIPE) return code; // whoever read has had enough
    fprintf(stderr, "tamis: cannot write the output: %s\n", strerror(output_error));
    return EXIT_FAILED;
}

static bool progress_shown;

void cli_progress_end(void)
{
    if (progress_shown) fputc('\n', stderr);
    progress_shown = false;
}

void cli_progress(const char *what, uint64_t done, uint64_t total)
{
    static int terminal = -1;
    static uint64_t shown = UINT64_MAX;
    if (terminal < 0) terminal = isatty(STDERR_FILENO);
    if (!terminal) return;
    uint64_t percent = total ? done * 100 / total : 0;
    uint64_t mark = total ? percent : done;
    if (mark == shown) return;
    shown = mark;
    progress_shown = true;
    if (total == 0) {
        fprintf(stderr, "\r%s: %llu", what, (unsigned long long)done);
    } else {
        char bar[41];
        for (int i = 0; i < 40; i++) bar[i] = (uint64_t)i * 100 < percent * 40 ? '#' : '.';
        bar[40] = '\0';
        fprintf(stderr, "\r%s [%s] %3llu %%", what, bar, (unsigned long long)percent);
    }
}

// ---- Arguments ----------------------------------------------------------------------------------

bool cli_number(const char *typed, uint64_t *out)
{
    char *end;
    errno = 0;
    if (typed[0] < '0' || typed[0] > '9') return false;
    *out = strtoull(typed, &end, 10);
    return errno == 0 && *end == '\0';
}

bool cli_size(const char *typed, uint64_t *out)
{
    char *end;
    errno = 0;
    if (typed[0] < '0' || typed[0] > '9') return false;
    unsigned long long n = strtoull(typed, &end, 10);
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    static const char *const letters[] = {"B", "K", "M", "G", "T"};
    for (unsigned i = 0; errno == 0 && i < 5; i++) {
        if (strcmp(end, units[i]) != 0 && strcmp(end, letters[i]) != 0) continue;
        if (i > 0 && n > UINT64_MAX >> (10 * i)) return false;
        *out = (uint64_t)n << (10 * i);
        return true;
    }
    return false;
}

bool cli_duration(const char *typed, uint64_t *out)
{
    static const struct {
        const char *name;
        uint64_t ms;
    } units[] = {{"ms", 1},       {"s", 1000},      {"min", 60000},       {"h", 3600000},
                 {"d", 86400000}, {"w", 604800000}, {"y", 31536000000ull}};
    char *end;
    errno = 0;
    if (typed[0] < '0' || typed[0] > '9') return false;
    unsigned long long n = strtoull(typed, &end, 10);
    for (size_t i = 0; errno == 0 && i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(end, units[i].name) != 0) continue;
        if (n > UINT64_MAX / units[i].ms) return false;
        *out = (uint64_t)n * units[i].ms;
        return true;
    }
    return false;
}

typedef enum kind { FLAG, TEXT, NUMBER, SIZE, SYNC, OPTION } kind;
typedef struct option {
    const char *name;
    kind kind;
    size_t field;
    const char *verbs; // that have a use for it; NULL: all
} option;
#define FIELD(f) offsetof(cli_args, f)
static const option options[] = {
    {"--json", FLAG, FIELD(json), NULL},
    {"--hex", FLAG, FIELD(hex), NULL},
    {"--quiet", FLAG, FIELD(quiet), NULL},
    {"--reverse", FLAG, FIELD(reverse), "scan dump"},
    {"--flush", FLAG, FIELD(flush), "load"},
    {"--from", TEXT, FIELD(from), "scan dump compact"},
    {"--to", TEXT, FIELD(to), "scan dump compact"},
    {"--prefix", TEXT, FIELD(prefix), "scan dump"},
    {"--format", TEXT, FIELD(format), "load dump"},
    {"--on-error", TEXT, FIELD(on_error), "load"},
    {"--keys", TEXT, FIELD(keys), "get"},
    {"--output", TEXT, FIELD(output), "dump"},
    {"--range", FLAG, FIELD(range), "delete"},
    {"--number", FLAG, FIELD(number), "put get scan merge"},
    {"--ttl", TEXT, FIELD(ttl), "put"},
    {"--family", TEXT, FIELD(family), "put get delete scan load dump stats explain compact merge"},
    {"--merger", TEXT, FIELD(merger), "merge family"},
    {"--limit", NUMBER, FIELD(limit), "scan dump"},
    {"--batch", NUMBER, FIELD(batch), "load"},
    {"--budget", SIZE, FIELD(options.memory_budget), NULL},
    {"--sync", SYNC, 0, NULL},
    {"--option", OPTION, 0, NULL},
};

static bool set_sync(cli_args *a, const char *value)
{
    static const char *const names[] = {"always", "interval", "never"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(value, names[i]) != 0) continue;
        a->options.sync = TAMIS_SYNC_ALWAYS + i;
        return true;
    }
    cli_usage("--sync takes always, interval or never, not \"%s\"", value);
    return false;
}

static bool set_value(cli_args *a, const option *o, const char *value)
{
    void *field = (char *)a + o->field;
    switch (o->kind) {
    case TEXT:
        *(const char **)field = value;
        return true;
    case NUMBER:
        if (!cli_number(value, field)) {
            cli_usage("%s takes a number, not \"%s\"", o->name, value);
            return false;
        }
        a->has_limit = a->has_limit || strcmp(o->name, "--limit") == 0;
        a->has_batch = a->has_batch || strcmp(o->name, "--batch") == 0;
        return true;
    case SIZE:
        if (!cli_size(value, field)) {
            cli_usage("%s takes a size such as 64MiB, not \"%s\"", o->name, value);
            return false;
        }
        return true;
    case SYNC:
        return set_sync(a, value);
    default: {
        size_t len = strlen(a->extra);
        int n = snprintf(a->extra + len, sizeof a->extra - len, "%s%s", len ? "; " : "", value);
        if (n < 0 || (size_t)n >= sizeof a->extra - len) {
            cli_usage("too many options");
            return false;
        }
        return true;
    }
    }
}

static bool is_used(const option *o, const char *verb)
{
    const char *p = o->verbs;
    size_t n = strlen(verb);
    if (p == NULL) return true;
    while ((p = strstr(p, verb)) != NULL) {
        if ((p == o->verbs || p[-1] == ' ') && (p[n] == ' ' || p[n] == '\0')) return true;
        p += n;
    }
    return false;
}

static bool parse_option(cli_args *a, int argc, char **argv, int *i)
{
    const char *word = argv[*i], *eq = strchr(word, '=');
    size_t len = eq ? (size_t)(eq - word) : strlen(word);
    for (size_t k = 0; k < sizeof options / sizeof options[0]; k++) {
        const option *o = &options[k];
        if (strlen(o->name) != len || strncmp(o->name, word, len) != 0) continue;
        if (!is_used(o, a->verb)) {
            cli_usage("%s has no use for %s; see: tamis help %s", a->verb, o->name, a->verb);
            return false;
        }
        if (o->kind == FLAG) {
            if (eq != NULL) {
                cli_usage("%s takes no value", o->name);
                return false;
            }
            *(bool *)((char *)a + o->field) = true;
            return true;
        }
        if (eq != NULL) return set_value(a, o, eq + 1);
        if (*i + 1 == argc) {
            cli_usage("%s needs a value", o->name);
            return false;
        }
        return set_value(a, o, argv[++*i]);
    }
    cli_usage("unknown option %s; see: tamis help %s%s", word, a->verb,
              word[1] == '-' ? "" : " (-- before what is no option, though it starts so)");
    return false;
}

bool cli_parse(cli_args *a, int argc, char **argv)
{
    memset(a, 0, sizeof *a);
    a->verb = argv[0];
    a->options = tamis_options_init();
    a->rest = argv; // filled from the front, behind which it never overtakes the reading
    bool only_words = false;
    for (int i = 1; i < argc; i++) {
        if (!only_words && strcmp(argv[i], "--") == 0) {
            only_words = true;
        } else if (!only_words && argv[i][0] == '-' && argv[i][1] != '\0') {
            if (!parse_option(a, argc, argv, &i)) return false;
        } else if (a->store == NULL) {
            a->store = argv[i];
        } else {
            a->rest[a->rest_count++] = argv[i];
        }
    }
    a->options.extra = a->extra;
    if (a->store == NULL || *a->store == '\0') {
        cli_usage("%s needs the path of a store; see: tamis help %s", a->verb, a->verb);
        return false;
    }
    return true;
}

bool cli_expect(const cli_args *a, int least, int most, const char *usage)
{
    if (a->rest_count >= least && a->rest_count <= most) return true;
    cli_usage("usage: tamis %s", usage);
    return false;
}

bool cli_key_bytes(const cli_args *a, const char *typed, size_t len, text_buf *out)
{
    const char *why;
    out->len = 0;
    bool ok = a->hex ? text_unhex(typed, len, out, &why) : text_unescape(typed, len, out, &why);
    if (!ok) cli_usage("\"%s\": %s", typed, why);
    return ok;
}

bool cli_key(const cli_args *a, const char *typed, text_buf *out)
{
    return cli_key_bytes(a, typed, strlen(typed), out);
}

bool cli_value(const cli_args *a, const char *typed, text_buf *out)
{
    if (!a->number) return cli_key(a, typed, out);
    char *end;
    uint8_t bytes[8];
    errno = 0;
    uint64_t n = typed[0] == '-' ? (uint64_t)strtoll(typed, &end, 10) : strtoull(typed, &end, 10);
    if (errno != 0 || *end != '\0' || end == typed) {
        cli_usage("\"%s\" is no 64-bit integer", typed);
        return false;
    }
    for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(n >> (8 * i));
    out->len = 0;
    return text_append(out, bytes, sizeof bytes);
}

void cli_put_value(const cli_args *a, FILE *f, const void *data, size_t len)
{
    const uint8_t *p = data;
    uint64_t n = 0;
    if (!a->number || len != 8) {
        cli_put(a, f, data, len);
        return;
    }
    for (int i = 0; i < 8; i++) n |= (uint64_t)p[i] << (8 * i);
    fprintf(f, "%lld", (long long)n);
}

void cli_put(const cli_args *a, FILE *f, const void *data, size_t len)
{
    if (a->hex)
        text_put_hex(f, data, len);
    else
        text_put_escaped(f, data, len);
}

// ---- The store ----------------------------------------------------------------------------------

bool cli_merger(const cli_args *a, const tamis_merger **out)
{
    *out = NULL;
    if (a->merger == NULL) return true;
    if (strcmp(a->merger, "add") == 0) *out = tamis_merger_add();
    if (strcmp(a->merger, "append") == 0) *out = tamis_merger_append();
    if (*out == NULL) cli_usage("--merger takes add or append, not \"%s\"", a->merger);
    return *out != NULL;
}

tamis_db *cli_open(cli_args *a, uint32_t flags, int *code)
{
    tamis_db *db = NULL;
    tamis_error err = {0};
    tamis_options o = a->options;
    tamis_cf_options c = {.size = sizeof c};
    if (!cli_merger(a, &c.merger)) {
        *code = EXIT_USAGE;
        return NULL;
    }
    o.flags |= flags;
    if (a->family == NULL) o.merger = c.merger;
    int st = tamis_open(a->store, &o, &db, &err);
    if (st == TAMIS_OK && a->family != NULL) {
        st = tamis_cf_open(db, a->family, c.merger ? &c : NULL, 0, &a->cf, &err);
        if (st != TAMIS_OK) {
            (void)tamis_close(db, 0, NULL);
            db = NULL;
        }
    }
    if (st != TAMIS_OK) {
        *code = st == TAMIS_INVALID ? EXIT_USAGE : EXIT_FAILED;
        if (err.message[0] == '\0')
            fprintf(stderr, "tamis: %s: %s\n", a->store, tamis_status_name(st));
        else
            fprintf(stderr, "tamis: %s: %s\n", tamis_status_name(st), err.message);
    }
    return db;
}

int cli_close(cli_args *a, tamis_db *db, int code)
{
    tamis_error err = {0};
    tamis_cf_close(a->cf);
    a->cf = NULL;
    int st = tamis_close(db, 0, &err);
    return st == TAMIS_OK ? code : cli_failed("close", st, &err);
}
