/*
 * calyx: a key at a time without a call.
 *
 * A call into a shared library, and the choices behind it, take longer than a
 * question to a filter that is in the cache; and while a processor waits for
 * memory, they leave it less room to look ahead to the next question. Here the
 * questions are part of your own loop:
 *
 *     calyx_quick q;
 *     calyx_take_quick(f, &q);
 *     for (...) found += calyx_quick_has_u64(&q, number[i]);
 *
 * The answers, and the bits, are those of calyx_has_u64 and its kin, whatever
 * the filter. What is inlined is the kind "line" of fixed size with its default
 * hash, not concurrent, in programs compiled for AVX2 (-mavx2, or
 * -march=haswell and later); anything else calls the library. For many keys at
 * once the calls of calyx.h are faster still.
 *
 * How a line works is told in src/kind/line.c; this is line_avx2.c for one key.
 */
#ifndef CALYX_INLINE_H
#define CALYX_INLINE_H

#include <calyx/calyx.h>

#if defined(__AVX2__) && defined(__SIZEOF_INT128__)
#define CALYX_INLINES 1
#include <immintrin.h>

/* XXH3 of the 8 bytes of a number. */
static inline uint64_t calyx_quick_hash_u64(const calyx_quick *q, uint64_t x) {
    const uint64_t prime = UINT64_C(0x9FB21C651E98DF25);
    x = (x << 32 | x >> 32) ^ q->flip;
    x ^= (x << 49 | x >> 15) ^ (x << 24 | x >> 40);
    x *= prime;
    x = (x ^ ((x >> 35) + 8)) * prime;
    return x ^ x >> 28;
}

static inline __m256i *calyx_quick_line(const calyx_quick *q, uint64_t hash) {
    __extension__ typedef unsigned __int128 wide;
    return (__m256i *)(q->lines + 64 * (size_t)((wide)hash * q->count >> 64));
}

/* The bits of a key in one half of a line: one in each of the 8 words that take
 * part. */
static inline __m256i calyx_quick_bits(const calyx_quick *q, uint64_t hash,
                                       size_t half) {
    const __m256i *salts = (const __m256i *)(q->salts + 8 * half);
    const uint32_t mixed = (uint32_t)hash * q->salts[16] >> 16;
    const uint8_t *row = q->rows + 16 * (mixed * q->row_count >> 16);
    const __m256i product = _mm256_mullo_epi32(_mm256_set1_epi32((int)hash),
                                               _mm256_loadu_si256(salts));
    const __m256i ones = _mm256_cvtepu8_epi32(
        _mm_loadl_epi64((const __m128i *)(row + 8 * half)));
    return _mm256_sllv_epi32(ones, _mm256_srli_epi32(product, 27));
}
#else
#define CALYX_INLINES 0
#endif

static inline bool calyx_quick_has_u64(const calyx_quick *q, uint64_t number) {
#if CALYX_INLINES
    if (q->lines) {
        const uint64_t hash = calyx_quick_hash_u64(q, number);
        const __m256i *line = calyx_quick_line(q, hash);
        const __m256i missing = _mm256_or_si256(
            _mm256_andnot_si256(line[0], calyx_quick_bits(q, hash, 0)),
            _mm256_andnot_si256(line[1], calyx_quick_bits(q, hash, 1)));
        return _mm256_testz_si256(missing, missing);
    }
#endif
    return calyx_has_u64(q->filter, number);
}

static inline calyx_status calyx_quick_add_u64(const calyx_quick *q,
                                               uint64_t number, bool *fresh) {
#if CALYX_INLINES
    if (q->lines) {
        const uint64_t hash = calyx_quick_hash_u64(q, number);
        __m256i *line = calyx_quick_line(q, hash);
        const __m256i low = calyx_quick_bits(q, hash, 0), old0 = line[0];
        const __m256i high = calyx_quick_bits(q, hash, 1), old1 = line[1];
        const __m256i missing = _mm256_or_si256(
            _mm256_andnot_si256(old0, low), _mm256_andnot_si256(old1, high));
        const bool is_fresh = !_mm256_testz_si256(missing, missing);
        line[0] = _mm256_or_si256(old0, low);
        line[1] = _mm256_or_si256(old1, high);
        *q->items += is_fresh;
        if (fresh) *fresh = is_fresh;
        return CALYX_OK;
    }
#endif
    return calyx_add_u64(q->filter, number, fresh);
}

#endif
