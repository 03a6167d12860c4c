// SPDX-License-Identifier: BSD-2-Clause
//
// blocked_simd.c - lookups in a blocked filter with vector instructions, where the processor has
// them. The plain C form (blocked.h) is the specification; a test compares the others with it.
//
// The form is chosen at run time, and its code compiled by function attributes, so that one build
// runs everywhere. Per lookup with 6 probes, in a filter of 16 KiB that is in the first-level cache
// (gcc 12 -O2, Sapphire Rapids): plain, inlined 5.8 ns; AVX2 and AVX-512, by a call, 2.9. In
// batches 5.8, 2.4 and 1.8. Out of the cache the vector forms gain more: fewer instructions between
// two loads let more loads overlap.
#include "filter/blocked.h"

#define HAVE_X86 TM_BLOCKED_VECTORS
#if HAVE_X86
#include <immintrin.h>
#endif

enum { AHEAD = 8 }; // lines fetched ahead of the one that is tested

// The loop that all forms share: test is inlined, with what does not change kept in registers.
#define DEFINE_TEST_MANY(name, test, attributes)                                                   \
    attributes static void name(const uint8_t *bits, uint64_t lines, uint32_t probes,              \
                                const uint64_t *hashes, size_t n, bool *out)                       \
    {                                                                                              \
        for (size_t i = 0; i < n && i < AHEAD; i++) {                                              \
            __builtin_prefetch(tm_blocked_line(bits, lines, hashes[i]));                           \
        }                                                                                          \
        for (size_t i = 0; i < n; i++) {                                                           \
            if (n - i > AHEAD) {                                                                   \
                __builtin_prefetch(tm_blocked_line(bits, lines, hashes[i + AHEAD]));               \
            }                                                                                      \
            out[i] = test(bits, lines, probes, hashes[i]);                                         \
        }                                                                                          \
    }

static bool test_plain(const uint8_t *bits, uint64_t lines, uint32_t probes, uint64_t hash)
{
    return tm_blocked_test(bits, lines, probes, hash);
}
DEFINE_TEST_MANY(test_many_plain, tm_blocked_test, )

#if HAVE_X86

// ---- AVX-512: the line in one register, one lane a probe ----------------------------------------

#define TARGET_512 __attribute__((target("avx512f")))

// A lane holds g >> (55 - 9 * lane), whose low 9 bits are the probe. The permutation reads the low
// 3 bits of (probe >> 6), the rotation the low 6 bits of its count, so that nothing needs masking.
TARGET_512 static inline __mmask8 fields_512(__m512i line, uint64_t g)
{
    const __m512i shifts = _mm512_setr_epi64(55, 46, 37, 28, 19, 10, 1, 0);
    __m512i fields = _mm512_srlv_epi64(_mm512_set1_epi64((long long)g), shifts);
    __m512i words = _mm512_permutexvar_epi64(_mm512_srli_epi64(fields, 6), line);
    return _mm512_test_epi64_mask(_mm512_rorv_epi64(words, fields), _mm512_set1_epi64(1));
}

TARGET_512 static bool test_avx512(const uint8_t *bits, uint64_t lines, uint32_t probes,
                                   uint64_t hash)
{
    uint32_t first = TM_MIN(probes, TM_BLOCKED_PROBES_PER_MUL);
    __m512i line = _mm512_loadu_si512(tm_blocked_line(bits, lines, hash));
    uint64_t g = hash * TM_BLOCKED_MUL_1;
    unsigned missing = ((1u << first) - 1) & ~(unsigned)fields_512(line, g);
    if (probes > first) {
        unsigned want = (1u << (probes - first)) - 1;
        missing |= want & ~(unsigned)fields_512(line, tm_blocked_second(g));
    }
    return missing == 0;
}
DEFINE_TEST_MANY(test_many_avx512, test_avx512, TARGET_512)

// ---- AVX2: the line in two registers of eight 32-bit words --------------------------------------

#define TARGET_256 __attribute__((target("avx2")))

// The probes of g in 32-bit lanes, each with its 9 bits at the bottom and others above them; in the
// order 0 1 4 5 2 3 6 -.
TARGET_256 static inline __m256i fields_256(uint64_t g)
{
    __m256i all = _mm256_set1_epi64x((long long)g);
    __m256i a = _mm256_srlv_epi64(all, _mm256_setr_epi64x(55, 46, 37, 28));
    __m256i b = _mm256_srlv_epi64(all, _mm256_setr_epi64x(19, 10, 1, 0));
    return _mm256_castps_si256(
        _mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), _MM_SHUFFLE(2, 0, 2, 0)));
}

// The first count probes of g.
TARGET_256 static inline bool test_256(__m256i low, __m256i high, uint64_t g, uint32_t count)
{
    const __m256i number = _mm256_setr_epi32(0, 1, 4, 5, 2, 3, 6, 7); // of the probe in a lane
    __m256i live = _mm256_srli_epi32(_mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), number), 31);
    __m256i fields = fields_256(g);
    __m256i word = _mm256_srli_epi32(fields, 5); // the permutations read its low 3 bits
    __m256i in_low = _mm256_permutevar8x32_epi32(low, word);
    __m256i in_high = _mm256_permutevar8x32_epi32(high, word);
    // Bit 8 of the probe, moved to the sign, chooses the half.
    __m256i words = _mm256_castps_si256(
        _mm256_blendv_ps(_mm256_castsi256_ps(in_low), _mm256_castsi256_ps(in_high),
                         _mm256_castsi256_ps(_mm256_slli_epi32(fields, 23))));
    __m256i bit = _mm256_sllv_epi32(live, _mm256_and_si256(fields, _mm256_set1_epi32(31)));
    return _mm256_testc_si256(words, bit) != 0;
}

TARGET_256 static bool test_avx2(const uint8_t *bits, uint64_t lines, uint32_t probes,
                                 uint64_t hash)
{
    uint32_t first = TM_MIN(probes, TM_BLOCKED_PROBES_PER_MUL);
    const uint8_t *line = tm_blocked_line(bits, lines, hash);
    __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)line);
    __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(line + 32));
    uint64_t g = hash * TM_BLOCKED_MUL_1;
    bool hit = test_256(low, high, g, first);
    if (probes > first) hit &= test_256(low, high, tm_blocked_second(g), probes - first);
    return hit;
}
DEFINE_TEST_MANY(test_many_avx2, test_avx2, TARGET_256)

// Both are a load and a bit test: the compiler's run-time library asked the processor (and the
// system, for the registers) at start-up. The first processors with AVX-512 slow down for a while
// when 512-bit registers are used; those with VBMI2 do not.
static inline bool have_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vbmi2");
}

static inline bool have_avx2(void)
{
    return __builtin_cpu_supports("avx2") != 0;
}

#endif // HAVE_X86

// ---- Choice -------------------------------------------------------------------------------------

tm_blocked_form tm_blocked_form_at(size_t i)
{
    switch (i) {
#if HAVE_X86
    case 1:
        return (tm_blocked_form){"avx2", have_avx2(), test_avx2, test_many_avx2};
    case 2:
        return (tm_blocked_form){"avx512", have_avx512(), test_avx512, test_many_avx512};
#else
    case 1:
        return (tm_blocked_form){"avx2", false, NULL, NULL};
    case 2:
        return (tm_blocked_form){"avx512", false, NULL, NULL};
#endif
    default:
        return (tm_blocked_form){"plain", true, test_plain, test_many_plain};
    }
}

bool tm_blocked_ask(const uint8_t *bits, uint64_t lines, uint32_t probes, uint64_t hash)
{
#if HAVE_X86
    if (have_avx512()) return test_avx512(bits, lines, probes, hash);
    if (have_avx2()) return test_avx2(bits, lines, probes, hash);
#endif
    return test_plain(bits, lines, probes, hash);
}

void tm_blocked_ask_many(const uint8_t *bits, uint64_t lines, uint32_t probes,
                         const uint64_t *hashes, size_t n, bool *out)
{
#if HAVE_X86
    if (have_avx512()) {
        test_many_avx512(bits, lines, probes, hashes, n, out);
        return;
    }
    if (have_avx2()) {
        test_many_avx2(bits, lines, probes, hashes, n, out);
        return;
    }
#endif
    test_many_plain(bits, lines, probes, hashes, n, out);
}
