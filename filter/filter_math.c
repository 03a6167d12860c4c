// SPDX-License-Identifier: BSD-2-Clause
#include "filter/filter_math.h"

#include <math.h>

#include "filter/filter.h"
#include "filter/bloom.h"

enum { PROBES_CAP = 64 }; // the chains below hold this many states

// ---- Standard -----------------------------------------------------------------------------------

static double clamp01(double x)
{
    return x >= 1 ? 1 : x > 0 ? x : 0; // NaN gives 0
}

double tm_filter_rate_standard(double keys, double bits, double probes)
{
    if (!(keys > 0)) return 0;
    if (!(bits > 0) || !(probes > 0)) return 1;
    return clamp01(pow(-expm1(-probes * keys / bits), probes));
}

double tm_filter_rate_bound(double keys, double bits, double probes)
{
    if (!(keys > 0)) return 0;
    if (!(bits > 1) || !(probes > 0)) return 1;
    return clamp01(pow(-expm1(-probes * (keys + 0.5) / (bits - 1)), probes));
}

double tm_filter_rate_distinct(double keys, double bits, double probes)
{
    if (!(keys > 0)) return 0;
    if (!(probes > 0) || !(bits > probes)) return 1;
    return clamp01(pow(-expm1(keys * log1p(-probes / bits)), probes));
}

uint32_t tm_filter_probes_standard(double bits_per_key)
{
    if (!(bits_per_key > 0)) return 1;
    uint32_t middle = (uint32_t)(TM_MIN(bits_per_key, 1e6) * TM_LN2 + 0.5);
    uint32_t best = 1;
    double best_rate = 2;
    for (uint32_t k = TM_MAX(middle, 2) - 1; k <= middle + 1; k++) {
        double rate = tm_filter_rate_standard(1, bits_per_key, k);
        if (rate < best_rate) {
            best_rate = rate;
            best = k;
        }
    }
    return best;
}

double tm_filter_bits_per_key_standard(double rate)
{
    if (!(rate < 1)) return 0;
    return -log(TM_MAX(rate, 1e-300)) / (TM_LN2 * TM_LN2);
}

uint64_t tm_filter_bits_standard(uint64_t keys, double rate)
{
    double bits = ceil((double)keys * tm_filter_bits_per_key_standard(rate));
    if (!(bits >= 1)) return 1;
    return bits < 0x1p63 ? (uint64_t)bits : UINT64_MAX;
}

// ---- Occupancy: how many of s bits t probes set -------------------------------------------------

// hit[d] is the probability that d given bits of s are all set after some number of probes. One
// more probe hits one of the d, after which the rest must hit the other d - 1, or it does not:
//   hit(t + 1, d) = (1 - d/s) hit(t, d) + (d/s) hit(t, d - 1)
// All terms are positive, so nothing cancels (the closed form alternates in sign).
typedef struct occupancy {
    double s;
    uint32_t k;
    double hit[PROBES_CAP + 1];
    double weight[PROBES_CAP + 1]; // probability that k probes fall on d distinct bits
} occupancy;

static void occupancy_init(occupancy *o, double s, uint32_t k)
{
    memset(o, 0, sizeof(*o));
    o->s = s;
    o->k = k;
    o->hit[0] = 1;
    o->weight[0] = 1;
    for (uint32_t t = 0; t < k; t++) {
        for (uint32_t d = k; d > 0; d--) {
            double repeat = o->weight[d] * d / s;
            o->weight[d] = repeat + o->weight[d - 1] * TM_MAX(s - d + 1, 0) / s;
        }
        o->weight[0] = 0;
    }
}

static void occupancy_probe(occupancy *o)
{
    for (uint32_t d = o->k; d > 0; d--) {
        double share = TM_MIN(d / o->s, 1);
        o->hit[d] += share * (o->hit[d - 1] - o->hit[d]);
    }
}

static double occupancy_rate(const occupancy *o)
{
    double rate = 0;
    for (uint32_t d = 1; d <= o->k; d++) rate += o->weight[d] * o->hit[d];
    return clamp01(rate);
}

double tm_filter_rate_exact(uint64_t keys, uint64_t bits, uint32_t probes)
{
    if (keys == 0) return 0;
    if (bits == 0 || probes == 0 || probes > PROBES_CAP) return 1;
    occupancy o;
    occupancy_init(&o, (double)bits, probes);
    // Nothing changes any more once every bit has been hit some fifty times over.
    uint64_t steps = (uint64_t)TM_MIN(TM_MIN((double)keys * probes, 60 * o.s), 0x1p62);
    for (uint64_t t = 0; t < steps; t++) occupancy_probe(&o);
    return occupancy_rate(&o);
}

// ---- Blocked ------------------------------------------------------------------------------------

// The binomial weights of a line's load, i = first .. last, in proportion to that of the mode: no
// factorials, so no loss of precision at any n. Outside, the weights are below 1e-17 of the mode.
typedef struct loads {
    double n, odds; // odds = p / (1 - p)
    uint64_t first;
    double weight; // of load `first`
} loads;

#define LOAD_CUT 1e-17

static void loads_init(loads *l, double n, double lines)
{
    double p = 1 / lines;
    l->n = n;
    l->odds = p / (1 - p);
    double i = floor((n + 1) * p), w = 1;
    i = TM_MIN(i, n);
    while (i > 0 && w > LOAD_CUT) { // weight(i - 1) / weight(i) = i / ((n - i + 1) odds)
        w *= i / ((n - i + 1) * l->odds);
        i--;
    }
    l->first = (uint64_t)i;
    l->weight = w;
}

static double loads_step(const loads *l, uint64_t i, double w) // weight(i + 1) from weight(i)
{
    return w * (l->n - (double)i) / (double)(i + 1) * l->odds;
}

double tm_filter_rate_blocked(uint64_t keys, uint64_t lines, uint32_t probes)
{
    if (keys == 0) return 0;
    if (lines == 0 || probes == 0 || probes > PROBES_CAP) return 1;
    double n = (double)keys, mean = n / (double)lines, s = TM_BLOCKED_LINE_BITS;
    if (lines == 1) return tm_filter_rate_exact(keys, TM_BLOCKED_LINE_BITS, probes);
    if (mean * probes > 60 * s) return 1; // every bit of every line is set
    loads l;
    loads_init(&l, n, (double)lines);
    occupancy o;
    occupancy_init(&o, s, probes);
    for (uint64_t t = 0; t < l.first * probes; t++) occupancy_probe(&o);
    double sum = 0, total = 0, w = l.weight;
    for (uint64_t i = l.first; i <= keys; i++) {
        sum += w * occupancy_rate(&o);
        total += w;
        w = loads_step(&l, i, w);
        if ((double)i > mean && w < LOAD_CUT) break;
        for (uint32_t t = 0; t < probes; t++) occupancy_probe(&o);
    }
    return clamp01(sum / total);
}

double tm_filter_rate_split(uint64_t keys, uint64_t lines, uint32_t lanes, uint32_t lane_bits)
{
    if (keys == 0) return 0;
    if (lines == 0 || lanes == 0 || lane_bits < 2) return 1;
    double n = (double)keys, mean = n / (double)lines;
    double log_miss = log1p(-1.0 / lane_bits);
    if (lines == 1) return clamp01(pow(-expm1(n * log_miss), lanes));
    if (mean > 60.0 * lane_bits) return 1;
    loads l;
    loads_init(&l, n, (double)lines);
    double sum = 0, total = 0, w = l.weight;
    for (uint64_t i = l.first; i <= keys; i++) {
        sum += w * pow(-expm1((double)i * log_miss), lanes);
        total += w;
        w = loads_step(&l, i, w);
        if ((double)i > mean && w < LOAD_CUT) break;
    }
    return clamp01(sum / total);
}

// The rate falls and then rises with k, so the search goes on while it falls, from where the table
// of blocked.c starts it.
static double best_blocked(uint64_t keys, uint64_t lines, uint32_t *probes)
{
    uint32_t k = tm_blocked_best_probes(
        (uint64_t)TM_MIN((double)lines * (TM_BLOCKED_LINE_BITS * 1000.0) / (double)keys, 1e9));
    double rate = tm_filter_rate_blocked(keys, lines, k);
    for (int step = -1; step <= 1; step += 2) {
        for (;;) {
            uint32_t next = k + (uint32_t)step;
            if (next < 1 || next > TM_BLOCKED_MAX_PROBES) break;
            double other = tm_filter_rate_blocked(keys, lines, next);
            if (other >= rate) break;
            rate = other;
            k = next;
        }
    }
    *probes = k;
    return rate;
}

uint32_t tm_filter_probes_blocked(uint64_t keys, uint64_t lines)
{
    uint32_t k = 1;
    if (keys > 0 && lines > 0) best_blocked(keys, lines, &k);
    return k;
}

uint64_t tm_filter_lines_blocked(uint64_t keys, double rate)
{
    if (keys == 0 || !(rate < 1)) return 1;
    uint32_t k;
    double most = ceil((double)keys * (TM_FILTER_MAX_MILLIBITS / 1000.0 / TM_BLOCKED_LINE_BITS));
    uint64_t low = 1, high = most < 0x1p54 ? (uint64_t)most : UINT64_C(1) << 54;
    if (best_blocked(keys, high, &k) > rate) return 0;
    while (low < high) { // the answer is in [low, high]
        uint64_t middle = low + (high - low) / 2;
        if (best_blocked(keys, middle, &k) <= rate) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return high;
}

uint32_t tm_filter_millibits_for_rate(uint32_t kind, double rate)
{
    uint32_t low = TM_FILTER_MIN_MILLIBITS, high = TM_FILTER_MAX_MILLIBITS;
    if (!(rate < 1)) return low;
    if (kind == TM_FILTER_BLOOM) {
        double millibits = ceil(1000 * tm_filter_bits_per_key_standard(rate));
        return millibits > high ? 0 : (uint32_t)TM_MAX(millibits, low);
    }
    if (kind != TM_FILTER_BLOCKED) return 0;
    const uint64_t lines = 255; // and the contract: 16 KiB
    const uint64_t bits1000 = lines * TM_BLOCKED_LINE_BITS * 1000;
    uint32_t k;
    if (best_blocked(bits1000 / high, lines, &k) > rate) return 0;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (best_blocked(bits1000 / middle, lines, &k) <= rate) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return high;
}

// ---- Looking at bits ----------------------------------------------------------------------------

double tm_filter_rate_of_fill(uint64_t set_bits, uint64_t bits, uint32_t probes)
{
    if (bits == 0) return 1;
    return clamp01(pow((double)set_bits / (double)bits, probes));
}

double tm_filter_keys_of_fill(uint64_t set_bits, uint64_t bits, uint32_t probes)
{
    if (bits == 0 || probes == 0 || set_bits == 0) return 0;
    double m = (double)bits, fill = TM_MIN((double)set_bits, m - 0.5) / m;
    return -(m / probes) * log1p(-TM_MIN(fill, 1 - 0x1p-53));
}

void tm_filter_wilson(uint64_t hits, uint64_t trials, double z, double *low, double *high)
{
    *low = 0;
    *high = 1;
    if (trials == 0) return;
    double n = (double)trials, p = TM_MIN((double)hits, n) / n, zz = z * z;
    double middle = (p + zz / (2 * n)) / (1 + zz / n);
    double half = z * sqrt(p * (1 - p) / n + zz / (4 * n * n)) / (1 + zz / n);
    *low = clamp01(middle - half);
    *high = clamp01(middle + half);
}
