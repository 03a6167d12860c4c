// SPDX-License-Identifier: BSD-2-Clause
//
// cli.h - what the verbs of the command share: arguments, opening a store, messages, exit codes.
//
// EXIT CODES  0 done; 1 the key is not there, or verify found damage; 2 the command line is wrong,
//             an option's value included; 3 an error of the store or the system; 130 stopped by ^C.
#ifndef TAMIS_CLI_H
#define TAMIS_CLI_H

#include <stdbool.h>
#include <stdio.h>

#include "tamis.h"
#include "tools/text.h"

enum { EXIT_OK = 0, EXIT_ABSENT = 1, EXIT_USAGE = 2, EXIT_FAILED = 3, EXIT_STOPPED = 130 };

typedef struct cli_args {
    const char *verb;
    const char *store;
    char **rest; // what is no option, behind the store
    int rest_count;
    bool json, hex, reverse, quiet, flush, range, number;
    const char *from, *to, *prefix; // as typed
    const char *format;             // tsv, json, nul
    const char *on_error;           // stop, skip, or a number
    const char *keys;               // a file of keys
    const char *output;
    const char *family; // NULL: the default one
    const char *merger; // add, append
    const char *ttl;
    uint64_t limit, batch;
    bool has_limit, has_batch;
    tamis_options options;
    char extra[2048];
    tamis_cf *cf; // of --family, while the store is open
} cli_args;

// Parses argv behind the verb. False: told on stderr, exit with EXIT_USAGE.
bool cli_parse(cli_args *a, int argc, char **argv);
// The number of arguments behind the store must be within [least, most].
bool cli_expect(const cli_args *a, int least, int most, const char *usage);
// Opens the store with flags added; NULL: told on stderr, and *code is what to exit with.
tamis_db *cli_open(cli_args *a, uint32_t flags, int *code);
// Closes; returns code, or EXIT_FAILED if that fails.
int cli_close(cli_args *a, tamis_db *db, int code);
// The merger of --merger; NULL if it is not given. False: told on stderr.
bool cli_merger(const cli_args *a, const tamis_merger **out);
// Tells a failure of the library; returns EXIT_FAILED, or EXIT_USAGE for INVALID.
int cli_failed(const char *what, int status, const tamis_error *err);
int cli_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
// A key as typed: escapes, or hexadecimal with --hex. False: told on stderr.
bool cli_key(const cli_args *a, const char *typed, text_buf *out);
// A value as typed; with --number a decimal integer, kept as 8 bytes, little-endian.
bool cli_value(const cli_args *a, const char *typed, text_buf *out);
bool cli_key_bytes(const cli_args *a, const char *typed, size_t len, text_buf *out);
// Puts bytes on stdout in the chosen spelling.
void cli_put(const cli_args *a, FILE *f, const void *data, size_t len);
// Shows a value; with --number as an integer, if it has 8 bytes.
void cli_put_value(const cli_args *a, FILE *f, const void *data, size_t len);
bool cli_size(const char *typed, uint64_t *out);     // "64MiB"
bool cli_duration(const char *typed, uint64_t *out); // "90s" in milliseconds
bool cli_number(const char *typed, uint64_t *out);   // digits only

// ^C: set once; long work looks at it and ends cleanly.
void cli_watch_interrupt(void);
bool cli_interrupted(void);
// False: output cannot be written any more (a closed pipe is no error).
bool cli_output_ok(FILE *f);
int cli_finish_output(FILE *f, int code); // flushes; EXIT_FAILED if that fails for a real reason

// A line on stderr that is written over, only on a terminal; total 0 is "not known". _end goes on
// to the next line, if there is one to leave.
void cli_progress(const char *what, uint64_t done, uint64_t total);
void cli_progress_end(void);

// Walks the range of --from, --to, --prefix, --limit and --reverse; each returns false to stop.
int cli_walk(cli_args *a, tamis_db *db, bool (*each)(void *ctx, tamis_slice key, tamis_slice value),
             void *ctx);

int cmd_put(cli_args *a);
int cmd_get(cli_args *a);
int cmd_delete(cli_args *a);
int cmd_scan(cli_args *a);
int cmd_load(cli_args *a);
int cmd_dump(cli_args *a);
int cmd_stats(cli_args *a);
int cmd_explain(cli_args *a);
int cmd_verify(cli_args *a);
int cmd_compact(cli_args *a);
int cmd_destroy(cli_args *a);
int cmd_merge(cli_args *a);
int cmd_family(cli_args *a);
int cmd_filter(int argc, char **argv);

#endif // TAMIS_CLI_H
