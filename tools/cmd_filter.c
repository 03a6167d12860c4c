// SPDX-License-Identifier: BSD-2-Clause
//
// cmd_filter.c - filters on paper: what size, rate and number of keys go together, for each kind;
// and the filters that a store has, level by level.

#include "tools/cli.h"

#include <stdlib.h>
#include <string.h>

#include "tamis_filter.h"

typedef struct wish {
    const char *store;
    uint64_t keys, bytes;
    double rate, bits;
    bool has_keys, has_bytes, has_rate, has_bits, json;
} wish;

static const int32_t kinds[] = {TAMIS_FILTER_BLOOM, TAMIS_FILTER_BLOCKED};
#define KINDS (sizeof kinds / sizeof kinds[0])

// ---- Arguments ----------------------------------------------------------------------------------

// "1000000", "1e6", "0.01", "1%".
static bool parse_real(const char *name, const char *typed, double least, double most, double *out)
{
    char *end;
    *out = strtod(typed, &end);
    if (end != typed && strcmp(end, "%") == 0) {
        *out /= 100;
        end++;
    }
    if (end != typed && *end == '\0' && *out >= least && *out <= most) return true;
    cli_usage("filter: %s takes a number from %g to %g, not \"%s\"", name, least, most, typed);
    return false;
}

static bool parse_value(wish *w, const char *name, const char *typed)
{
    double v;
    if (strcmp(name, "--keys") == 0) {
        if (!parse_real(name, typed, 1, 1e15, &v)) return false;
        w->keys = (uint64_t)v;
        w->has_keys = true;
    } else if (strcmp(name, "--rate") == 0) {
        if (!parse_real(name, typed, 1e-12, 0.999999, &w->rate)) return false;
        w->has_rate = true;
    } else if (strcmp(name, "--bits") == 0) {
        if (!parse_real(name, typed, 0.1, 100, &w->bits)) return false;
        w->has_bits = true;
    } else {
        if (!cli_size(typed, &w->bytes) || w->bytes == 0 || w->bytes > (uint64_t)1 << 50) {
            cli_usage("filter: --size takes a size such as 1MiB, not \"%s\"", typed);
            return false;
        }
        w->has_bytes = true;
    }
    return true;
}

static bool parse_one(wish *w, int argc, char **argv, int *i)
{
    static const char *const names[] = {"--keys", "--rate", "--bits", "--size"};
    const char *word = argv[*i], *eq = strchr(word, '=');
    size_t len = eq != NULL ? (size_t)(eq - word) : strlen(word);
    if (strcmp(word, "--json") == 0) {
        w->json = true;
        return true;
    }
    if (word[0] != '-' && *word != '\0' && w->store == NULL) {
        w->store = word;
        return true;
    }
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        if (strlen(names[k]) != len || strncmp(names[k], word, len) != 0) continue;
        if (eq != NULL) return parse_value(w, names[k], eq + 1);
        if (*i + 1 < argc) return parse_value(w, names[k], argv[++*i]);
        cli_usage("filter: %s needs a value", names[k]);
        return false;
    }
    cli_usage("filter: unknown argument \"%s\"; see: tamis help filter", word);
    return false;
}

static bool parse(wish *w, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (!parse_one(w, argc, argv, &i)) return false;
    }
    bool asked = w->has_keys || w->has_bytes || w->has_rate || w->has_bits;
    if (w->store != NULL) {
        if (asked) cli_usage("filter: a store goes with none of --keys, --size, --rate, --bits");
        return !asked;
    }
    // Of --rate, --bits and --size one is wanted; or --size with --keys or with one of the others.
    int given = w->has_rate + w->has_bits + w->has_bytes;
    bool sized = w->has_bytes && w->has_keys + w->has_rate + w->has_bits == 1;
    if (sized || (given == 1 && !w->has_bytes)) return true;
    cli_usage("filter: give --rate (such as 1%%) or --bits (a key), perhaps with --keys; or --size "
              "with one of --keys, --rate and --bits");
    return false;
}

// ---- The calculator -----------------------------------------------------------------------------

static int plan(int32_t kind, uint64_t keys, double rate, double bits, tamis_filter_info *info)
{
    tamis_filter_params p = tamis_filter_params_init();
    tamis_error err = {0};
    p.kind = kind;
    p.expected_keys = keys;
    p.rate = rate;
    p.bits_per_key = bits;
    *info = (tamis_filter_info){.size = sizeof *info};
    int st = tamis_filter_plan(&p, info, &err);
    return st == TAMIS_OK ? EXIT_OK : cli_failed("filter", st, &err);
}

// The most keys of which a filter of w->bits or w->rate has at most w->bytes: size grows with keys.
static int plan_by_size(const wish *w, int32_t kind, tamis_filter_info *info)
{
    uint64_t low = 1, high = w->bytes * 80; // 0.1 bits a key are the least
    while (low < high) {
        uint64_t middle = low + (high - low + 1) / 2;
        int code = plan(kind, middle, w->rate, w->bits, info);
        if (code != EXIT_OK) return code;
        if (info->bits / 8 <= w->bytes)
            low = middle;
        else
            high = middle - 1;
    }
    return plan(kind, low, w->rate, w->bits, info);
}

static int plan_wish(const wish *w, int32_t kind, tamis_filter_info *info)
{
    if (!w->has_bytes) {
        return plan(kind, w->has_keys ? w->keys : 1000000, w->rate, w->bits, info);
    }
    if (!w->has_keys) return plan_by_size(w, kind, info);
    double bits = (double)w->bytes * 8 / (double)w->keys;
    if (bits >= 0.1 && bits <= 100) return plan(kind, w->keys, 0, bits, info);
    return cli_usage("filter: --size and --keys make %g bits a key; 0.1 to 100 are allowed", bits);
}

static void show_plan(const wish *w, const tamis_filter_info *info)
{
    if (w->json) {
        printf("{\"kind\":\"%s\",\"keys\":%llu,\"bits_per_key\":%.4f,\"probes\":%u,"
               "\"expected_rate\":%.8g,\"bytes\":%llu}\n",
               info->name, (unsigned long long)info->expected_keys, info->bits_per_key,
               info->probes, info->expected_rate, (unsigned long long)info->bytes);
    } else {
        printf("%-8s %12llu  %8.3f  %6u  %17.6f %%  %12llu\n", info->name,
               (unsigned long long)info->expected_keys, info->bits_per_key, info->probes,
               info->expected_rate * 100, (unsigned long long)info->bytes);
    }
}

static int calculate(const wish *w)
{
    tamis_filter_info info[KINDS];
    for (size_t i = 0; i < KINDS; i++) {
        int code = plan_wish(w, kinds[i], &info[i]);
        if (code != EXIT_OK) return code;
    }
    if (!w->json)
        printf("kind             keys  bits/key  probes  false-positive rate         bytes\n");
    for (size_t i = 0; i < KINDS; i++) show_plan(w, &info[i]);
    return EXIT_OK;
}

// ---- The filters of a store ---------------------------------------------------------------------

static void show_level(const wish *w, int level, const tamis_filter_report *r)
{
    char name[16] = "\"all\"";
    if (level >= 0) snprintf(name, sizeof name, "%d", level);
    if (w->json) {
        printf("{\"level\":%s,\"keys\":%llu,\"bits_per_key\":%.4f,\"expected_rate\":%.8g,"
               "\"bytes\":%llu}\n",
               name, (unsigned long long)r->keys, r->bits_per_key, r->expected_rate,
               (unsigned long long)r->filter_bytes);
    } else {
        printf("%5s %16llu  %8.3f  %17.6f %%  %12llu\n", level < 0 ? "all" : name,
               (unsigned long long)r->keys, r->bits_per_key, r->expected_rate * 100,
               (unsigned long long)r->filter_bytes);
    }
}

static int show_store(const wish *w)
{
    cli_args a = {.verb = "filter", .store = w->store, .options = tamis_options_init()};
    tamis_error err = {0};
    int code = EXIT_OK, st = TAMIS_OK;
    tamis_db *db = cli_open(&a, TAMIS_OPEN_EXISTING | TAMIS_OPEN_READONLY, &code);
    if (db == NULL) return code;
    if (!w->json) printf("level             keys  bits/key  false-positive rate         bytes\n");
    // Past the last level the library answers INVALID.
    for (int level = -1; st == TAMIS_OK; level++) {
        tamis_filter_report r = {.size = sizeof r};
        st = tamis_filter_stats(db, NULL, level, &r, &err);
        if (st == TAMIS_OK && (level < 0 || r.keys > 0)) show_level(w, level, &r);
    }
    if (st != TAMIS_INVALID) code = cli_failed("filter", st, &err);
    return cli_close(&a, db, code);
}

int cmd_filter(int argc, char **argv)
{
    wish w = {0};
    if (!parse(&w, argc, argv)) return EXIT_USAGE;
    return cli_finish_output(stdout, w.store != NULL ? show_store(&w) : calculate(&w));
}
