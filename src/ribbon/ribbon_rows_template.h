/*
 * The rows of one query on x86: the sum of those that it chooses, word by word.
 * The parity of a word is then the sum of a result bit. Included by each level.
 *
 * Define TARGET before, the attribute that enables the instructions.
 */
#include <immintrin.h>

#include "ribbon/ribbon.h"

/* Of 16 words, and of 8. */
TARGET ALWAYS_INLINE __m256i chosen_rows_16(const uint8_t *words,
                                            uint64_t stride,
                                            uint64_t coefficients) {
    const __m256i all = _mm256_set1_epi64x((long long)coefficients);
    __m256i x = _mm256_setzero_si256();
    for (int j = 0; j < SPAN_GROUPS; j++) {
        /* The 16 coefficients of group j in every lane, then its words. */
        const __m256i chosen = _mm256_shuffle_epi8(
            all, _mm256_set1_epi16((short)((2 * j + 1) << 8 | 2 * j)));
        const __m256i rows =
            _mm256_loadu_si256((const __m256i *)(words + (size_t)j * stride));
        x = _mm256_xor_si256(x, _mm256_and_si256(rows, chosen));
    }
    return x;
}

TARGET ALWAYS_INLINE __m128i chosen_rows_8(const uint8_t *words,
                                           uint64_t stride,
                                           uint64_t coefficients) {
    const __m128i all = _mm_cvtsi64_si128((long long)coefficients);
    __m128i x = _mm_setzero_si128();
    for (int j = 0; j < SPAN_GROUPS; j++) {
        const __m128i chosen = _mm_shuffle_epi8(
            all, _mm_set1_epi16((short)((2 * j + 1) << 8 | 2 * j)));
        const __m128i rows =
            _mm_loadu_si128((const __m128i *)(words + (size_t)j * stride));
        x = _mm_xor_si128(x, _mm_and_si128(rows, chosen));
    }
    return x;
}
