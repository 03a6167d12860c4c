// SPDX-License-Identifier: BSD-2-Clause
//
// filter_math.h - what a filter costs and how often it errs: each formula with its source.
//
// n keys, m bits, b = m/n bits a key, k probes, e = false-positive rate: the share of absent keys
// that get "maybe", FP / (FP + TN). (Not the share of "maybe" that is wrong, FP / (FP + TP), which
// depends on what is asked.)
//
// All functions are total: any argument gives a number in range, never NaN. keys = 0 gives rate 0;
// no bits at all gives rate 1. Pure functions, any thread.
#ifndef TM_FILTER_MATH_H
#define TM_FILTER_MATH_H

#include "base/base.h"

#define TM_LN2 0.69314718055994530942

// ---- Standard Bloom filter ----------------------------------------------------------------------

// e = (1 - e^(-kn/m))^k (Bloom 1970, in the form of Broder, Mitzenmacher 2004). A little low at
// small m, where the next but one is exact.
double tm_filter_rate_standard(double keys, double bits, double probes);
// e <= (1 - e^(-k(n + 1/2)/(m - 1)))^k, for ideal hashing and any m > 1 (Goel, Gupta, "Small subset
// queries and Bloom filters using ternary associative memories", 2010).
double tm_filter_rate_bound(double keys, double bits, double probes);
// E[(U/m)^k], U the distinct bits that k * n independent probes set: exact. Takes k * n * k steps.
double tm_filter_rate_exact(uint64_t keys, uint64_t bits, uint32_t probes);
// e = (1 - (1 - k/m)^n)^k: k distinct bits a key, as Bloom wrote it.
double tm_filter_rate_distinct(double keys, double bits, double probes);
// The whole number of probes with the lowest rate_standard: b ln 2 rounded, or a neighbour. >= 1.
uint32_t tm_filter_probes_standard(double bits_per_key);
// b = ln(1/e) / (ln 2)^2 = 1.4427 log2(1/e), at the best (fractional) k.
double tm_filter_bits_per_key_standard(double rate);
// m = ceil(-n ln e / (ln 2)^2); at least 1. UINT64_MAX where it would be larger.
uint64_t tm_filter_bits_standard(uint64_t keys, double rate);

// ---- Cache-local Bloom filters ------------------------------------------------------------------

// Lines of 512 bits, each key in one of them, k independent probes in its line:
//   e = sum over i of Binomial(n, 1/lines)(i) * f(i),  f(i) = E[(U_i / 512)^k]
// with U_i as in rate_exact, for i keys in 512 bits. Exact under ideal hashing. (Poisson(n/lines)
// for the binomial reads high: at 64 lines by 0.2 % with 10 bits a key, by 1.2 % with 20.)
double tm_filter_rate_blocked(uint64_t keys, uint64_t lines, uint32_t probes);
// Split blocks, as in Parquet: lines of `lanes` words of `lane_bits` bits, one probe a word:
//   f(i) = (1 - (1 - 1/lane_bits)^i)^lanes
double tm_filter_rate_split(uint64_t keys, uint64_t lines, uint32_t lanes, uint32_t lane_bits);
// The lowest rate over k = 1 to 14.
uint32_t tm_filter_probes_blocked(uint64_t keys, uint64_t lines);
// The fewest lines whose rate at the best k is at most rate; 0 if no 100 bits a key reach it.
uint64_t tm_filter_lines_blocked(uint64_t keys, double rate);

// ---- Bits a key for a wanted rate ---------------------------------------------------------------

// In thousandths, rounded up, for partitions of 16 KiB; 0 if the kind does not reach the rate with
// TM_FILTER_MAX_MILLIBITS. kind is a tm_filter_kind.
uint32_t tm_filter_millibits_for_rate(uint32_t kind, double rate);

// ---- Looking at bits ----------------------------------------------------------------------------

// e = fill^k.
double tm_filter_rate_of_fill(uint64_t set_bits, uint64_t bits, uint32_t probes);
// Distinct keys: -(m/k) ln(1 - X/m) (Swamidass, Baldi 2007). A full filter tells only a lower
// limit, taken at X = m - 1/2.
double tm_filter_keys_of_fill(uint64_t set_bits, uint64_t bits, uint32_t probes);

// Wilson's interval for a share of which `hits` of `trials` were seen, at z standard deviations
// (1.96 for 95 %, 3.29 for 99.9 %). 0 to 1 where there are no trials.
void tm_filter_wilson(uint64_t hits, uint64_t trials, double z, double *low, double *high);

#endif // TM_FILTER_MATH_H
