/*
 * xxh3 of numbers, four at a time, inlined into the loops of the vector
 * kernels.
 *
 * For eight bytes xxh3 is short: swap the halves, flip bits by the seed, xor
 * with two rotations, multiply, mix, multiply, mix. In plain registers that
 * takes longer than all that a line filter does with the hash; here less than
 * half as long, though a product of 64 bits has to be put together of three.
 */
#ifndef CALYX_XXH3_AVX2_H
#define CALYX_XXH3_AVX2_H

#include <immintrin.h>

#include "base/cpu.h"
#include "hash/xxh3.h"

AVX2 ALWAYS_INLINE __m256i xxh3_all(uint64_t word) {
    return _mm256_set1_epi64x((long long)word);
}

AVX2 ALWAYS_INLINE __m256i xxh3_times_prime(__m256i x) {
    const uint64_t prime = UINT64_C(0x9FB21C651E98DF25);
    const __m256i low = xxh3_all(prime & UINT32_MAX),
                  high = xxh3_all(prime >> 32);
    const __m256i across =
        _mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64(x, 32), low),
                         _mm256_mul_epu32(x, high));
    return _mm256_add_epi64(_mm256_mul_epu32(x, low),
                            _mm256_slli_epi64(across, 32));
}

AVX2 ALWAYS_INLINE __m256i xxh3_rotated_by_24(__m256i x) {
    const __m256i bytes = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(5, 6, 7, 0, 1, 2, 3, 4, 13, 14, 15, 8, 9, 10, 11, 12));
    return _mm256_shuffle_epi8(x, bytes);
}

AVX2 ALWAYS_INLINE __m256i xxh3_rotated_by_49(__m256i x) {
    return _mm256_or_si256(_mm256_slli_epi64(x, 49), _mm256_srli_epi64(x, 15));
}

AVX2 ALWAYS_INLINE __m256i xxh3_of_four(__m256i x, __m256i flip) {
    enum { SWAP = 0xB1, SIZE = 8 };
    x = _mm256_xor_si256(_mm256_shuffle_epi32(x, SWAP), flip);
    x = _mm256_xor_si256(
        x, _mm256_xor_si256(xxh3_rotated_by_24(x), xxh3_rotated_by_49(x)));
    x = xxh3_times_prime(x);
    x = _mm256_xor_si256(
        x, _mm256_add_epi64(_mm256_srli_epi64(x, 35), xxh3_all(SIZE)));
    x = xxh3_times_prime(x);
    return _mm256_xor_si256(x, _mm256_srli_epi64(x, 28));
}

#endif
