// SPDX-License-Identifier: BSD-2-Clause
//
// cmd_filter.c - filters on paper: what size, rate and number of keys go together, for each kind.

#include "cli.h"

#include <stdlib.h>
#include <string.h>

#include "tamis_filter.h"

typedef struct wish {
    uint64_t keys;
    double rate, bits;
    bool has_keys, has_rate, has_bits, json;
} wish;

static bool positive(const char *name, const char *typed, double *out)
{
    char *end;
    *out = strtod(typed, &end);
    if (end != typed && strcmp(end, "%") == 0) {
        *out /= 100;
        end++;
    }
    if (end == typed || *end != '\0' || !(*out > 0)) {
        cli_usage("%s takes a number above 0, not \"%s\"", name, typed);
        return false;
    }
    return true;
}

static bool parse(wish *w, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        double v;
        if (strcmp(argv[i], "--json") == 0) {
            w->json = true;
            continue;
        }
        bool keys = strcmp(argv[i], "--keys") == 0, rate = strcmp(argv[i], "--rate") == 0;
        bool bits = strcmp(argv[i], "--bits") == 0;
        if (!keys && !rate && !bits) {
            cli_usage("filter: unknown argument %s; see: tamis help filter", argv[i]);
            return false;
        }
        if (i + 1 == argc) {
            cli_usage("%s needs a value", argv[i]);
            return false;
        }
        if (!positive(argv[i], argv[i + 1], &v)) return false;
        if (keys) {
            w->keys = (uint64_t)v;
            w->has_keys = true;
        } else if (rate) {
            w->rate = v;
            w->has_rate = true;
        } else {
            w->bits = v;
            w->has_bits = true;
        }
        i++;
    }
    if (w->has_rate == w->has_bits) {
        cli_usage("filter: give one of --rate (such as 1%% or 0.01) and --bits (a key)");
        return false;
    }
    if (w->has_rate && w->rate >= 1) {
        cli_usage("--rate must be below 1");
        return false;
    }
    return true;
}

int cmd_filter(int argc, char **argv)
{
    wish w = {.keys = 1000000};
    if (!parse(&w, argc, argv)) return EXIT_USAGE;
    static const int32_t kinds[] = {TAMIS_FILTER_BLOOM, TAMIS_FILTER_BLOCKED};
    if (!w.json)
        printf("kind           keys  bits/key  probes  false-positive rate         bytes\n");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        tamis_filter_params p = {.size = sizeof p, .kind = kinds[i], .expected_keys = w.keys};
        tamis_filter_info info = {.size = sizeof info};
        tamis_error err = {0};
        if (w.has_rate)
            p.rate = w.rate;
        else
            p.bits_per_key = w.bits;
        int st = tamis_filter_plan(&p, &info, &err);
        if (st != TAMIS_OK) return cli_failed("filter", st, &err);
        if (w.json) {
            printf("{\"kind\":\"%s\",\"keys\":%llu,\"bits_per_key\":%.4f,\"probes\":%u,"
                   "\"expected_rate\":%.8g,\"bytes\":%llu}\n",
                   info.name, (unsigned long long)info.expected_keys, info.bits_per_key,
                   info.probes, info.expected_rate, (unsigned long long)info.bytes);
        } else {
            printf("%-8s %10llu  %8.3f  %6u  %17.6f %%  %12llu\n", info.name,
                   (unsigned long long)info.expected_keys, info.bits_per_key, info.probes,
                   info.expected_rate * 100, (unsigned long long)info.bytes);
        }
    }
    return cli_finish_output(stdout, EXIT_OK);
}
