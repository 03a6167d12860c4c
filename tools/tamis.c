// SPDX-License-Identifier: BSD-2-Clause
//
// tamis.c - the command: tamis VERB STORE ...

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench.h"
#include "tools/cli.h"

typedef struct verb {
    const char *name;
    int (*run)(cli_args *a);
    const char *usage, *summary, *help;
} verb;

#define COMMON                                                                                     \
    "\nOptions of every verb on a store:\n"                                                        \
    "  --budget SIZE         memory budget, such as 64MiB\n"                                       \
    "  --option NAME=VALUE   a fine option (tamis stats STORE options lists them); repeatable\n"   \
    "  --sync MODE           always, interval or never\n"                                          \
    "  --hex                 keys and values are typed and shown in hexadecimal\n"                 \
    "  --json                reports as JSON\n"                                                    \
    "  --                    what follows is no option\n"                                          \
    "Verbs on keys also take --family NAME: their column family.\n"                                \
    "Without --hex, \\t \\n \\r \\0 \\\\ and \\xNN stand for the bytes they name.\n"

static const verb verbs[] = {
    {"put", cmd_put, "put STORE KEY VALUE [--ttl TIME]",
     "store a value (makes the store if it is not there)",
     "The write is durable when the command ends, unless --sync says otherwise.\n"
     "--ttl: gone after TIME, such as 90s, 15min, 7d. --number: the value is a 64-bit integer.\n"},
    {"get", cmd_get, "get STORE KEY... [--keys FILE]", "show values",
     "One key: its value as it is. Many: key, tab, value. --keys reads one key a line.\n"
     "--quiet says nothing of keys that are not there. Exit code 1 if any is not.\n"},
    {"delete", cmd_delete, "delete STORE KEY...", "delete keys",
     "No error for absent keys.\n"
     "delete STORE --range FROM [TO] deletes every key from FROM up to, not with, TO (or to the\n"
     "end) at one moment.\n"},
    {"merge", cmd_merge, "merge STORE KEY OPERAND [--merger add|append]",
     "add to a value without reading it",
     "The merger is said once, for a family that has none: add (64-bit integers; OPERAND and,\n"
     "with --number, what get shows are decimal) or append. Later it is known.\n"},
    {"family", cmd_family, "family STORE [list | create NAME | drop NAME | rename FROM TO]",
     "column families",
     "create takes --option NAME=VALUE (of scope family, such as ttl=7d) and --merger.\n"
     "drop deletes all that the family holds.\n"},
    {"scan", cmd_scan, "scan STORE [--from K] [--to K] [--prefix P] [--limit N] [--reverse]",
     "show keys and values in order", "--from is included, --to is not.\n"},
    {"load", cmd_load, "load STORE [FILE|-] [--format tsv|json|nul] [--on-error stop|skip|N]",
     "store many pairs from a file or standard input",
     "tsv:  key TAB value, with escapes (or --hex)\n"
     "json: {\"key\": \"...\", \"value\": \"...\"} a line; key_hex and value_hex for other bytes\n"
     "nul:  key NUL value NUL\n"
     "--on-error: stop at the first bad line (default), skip them, or stop after N.\n"
     "--batch N pairs a batch (1000). --flush writes all into tables at the end.\n"
     "--json shows the summary as JSON; it does not choose the format.\n"
     "Without --sync the log is synced once, at the end. ^C ends after the batch at hand.\n"},
    {"dump", cmd_dump, "dump STORE [FILE|-] [--format tsv|json|nul] [--from K] [--to K]",
     "write pairs as load reads them", "Also --prefix, --limit, --reverse, as scan.\n"},
    {"stats", cmd_stats, "stats STORE [levels|tables|options|memory|filters|stats]",
     "levels, filters, memory, counters", "A named report is JSON.\n"},
    {"explain", cmd_explain, "explain STORE KEY", "tell a lookup step by step",
     "Each memtable, table, filter and block that the lookup meets, and what came of it.\n"},
    {"verify", cmd_verify, "verify STORE", "check every byte",
     "All checksums, the order of keys, every key against its filter, tables against the\n"
     "manifest. Needs no comparator. Exit code 1 if there is damage.\n"},
    {"compact", cmd_compact, "compact STORE [--from K] [--to K]", "rewrite into the last level",
     ""},
    {"destroy", cmd_destroy, "destroy STORE", "delete the files of a store, and no others", ""},
};

static void show_help(FILE *f)
{
    fputs("usage: tamis VERB STORE ...\n\n", f);
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        fprintf(f, "  %-9s %s\n", verbs[i].name, verbs[i].summary);
    }
    fputs("  filter    filters on paper: keys, bits and false-positive rate, for each kind\n"
          "  bench     measure: workloads, and the I/O that filters save (bench misses)\n"
          "  help      this, or help on a verb\n"
          "\nExit codes: 0 done; 1 not there, or damage found; 2 wrong command line; 3 error;\n"
          "130 stopped by ^C.\n",
          f);
}

static const verb *find_verb(const char *name)
{
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verbs[i].name, name) == 0) return &verbs[i];
    }
    return NULL;
}

static int run_help(int argc, char **argv)
{
    if (argc < 2) {
        show_help(stdout);
        return EXIT_OK;
    }
    const verb *v = find_verb(argv[1]);
    if (v != NULL) {
        printf("usage: tamis %s\n\n%s.\n%s%s", v->usage, v->summary, v->help, COMMON);
    } else if (strcmp(argv[1], "filter") == 0) {
        puts("usage: tamis filter [--keys N] (--rate R | --bits B) [--json]\n"
             "       tamis filter --size SIZE (--keys N | --rate R | --bits B) [--json]\n"
             "       tamis filter STORE [--json]\n\n"
             "What each kind of filter needs for N keys (default 1,000,000): bits a key, probes,\n"
             "bytes, and the false-positive rate by the exact formula. --rate takes 0.01 or 1%;\n"
             "--size with --rate or --bits tells for how many keys it does, with --keys the rate.\n"
             "With a store: the filters of its tables, level by level.");
    } else if (strcmp(argv[1], "bench") == 0) {
        char *help[] = {"bench", "--help", NULL};
        return tamis_bench_main(2, help);
    } else {
        return cli_usage("no verb is called %s; see: tamis help", argv[1]);
    }
    return EXIT_OK;
}

int main(int argc, char **argv)
{
    (void)signal(SIGPIPE, SIG_IGN); // a closed pipe is a write error, which ends the work quietly
    if (argc < 2) {
        show_help(stderr);
        return EXIT_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        return cli_finish_output(stdout, run_help(argc - 1, argv + 1));
    }
    if (strcmp(name, "version") == 0 || strcmp(name, "--version") == 0) {
        printf("tamis %s, format level %u\n", tamis_version_string(), tamis_format_version());
        return cli_finish_output(stdout, EXIT_OK);
    }
    if (strcmp(name, "bench") == 0) return tamis_bench_main(argc - 1, argv + 1);
    if (argc > 2 && (strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0)) {
        char *help[] = {"help", argv[1], NULL};
        return cli_finish_output(stdout, run_help(2, help));
    }
    if (strcmp(name, "filter") == 0) return cmd_filter(argc - 1, argv + 1);
    const verb *v = find_verb(name);
    if (v == NULL) return cli_usage("no verb is called %s; see: tamis help", name);
    static cli_args args;
    return cli_parse(&args, argc - 1, argv + 1) ? v->run(&args) : EXIT_USAGE;
}
