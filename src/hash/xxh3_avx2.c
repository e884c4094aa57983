/*
 * xxh3 of numbers, four at a time.
 *
 * For eight bytes xxh3 is short: swap the halves, flip bits by the seed, xor
 * with two rotations, multiply, mix, multiply, mix. In plain registers that
 * takes longer than all that a line filter does with the hash; here less than
 * half as long, though a product of 64 bits has to be put together of three.
 */
#include "base/cpu.h"
#if ON_X86

#include <immintrin.h>

#include "hash/xxh3.h"

#define AVX2 __attribute__((target("avx2")))

static const uint64_t PRIME = UINT64_C(0x9FB21C651E98DF25);

AVX2 static inline __m256i all(uint64_t word) {
    return _mm256_set1_epi64x((long long)word);
}

AVX2 static inline __m256i times_prime(__m256i x) {
    const __m256i low = all(PRIME & UINT32_MAX), high = all(PRIME >> 32);
    const __m256i across =
        _mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64(x, 32), low),
                         _mm256_mul_epu32(x, high));
    return _mm256_add_epi64(_mm256_mul_epu32(x, low),
                            _mm256_slli_epi64(across, 32));
}

AVX2 static inline __m256i rotated_by_24(__m256i x) {
    const __m256i bytes = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(5, 6, 7, 0, 1, 2, 3, 4, 13, 14, 15, 8, 9, 10, 11, 12));
    return _mm256_shuffle_epi8(x, bytes);
}

AVX2 static inline __m256i rotated_by_49(__m256i x) {
    return _mm256_or_si256(_mm256_slli_epi64(x, 49), _mm256_srli_epi64(x, 15));
}

AVX2 static inline __m256i hash_four(__m256i x, __m256i flip) {
    enum { SWAP = 0xB1, SIZE = 8 };
    x = _mm256_xor_si256(_mm256_shuffle_epi32(x, SWAP), flip);
    x = _mm256_xor_si256(x,
                         _mm256_xor_si256(rotated_by_24(x), rotated_by_49(x)));
    x = times_prime(x);
    x = _mm256_xor_si256(x,
                         _mm256_add_epi64(_mm256_srli_epi64(x, 35), all(SIZE)));
    x = times_prime(x);
    return _mm256_xor_si256(x, _mm256_srli_epi64(x, 28));
}

AVX2 void xxh3_numbers_avx2(uint64_t seed, const uint64_t *numbers, size_t n,
                            uint64_t *hashes) {
    const __m256i flip = all(xxh3_flip(seed));
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const __m256i four = _mm256_loadu_si256((const __m256i *)&numbers[i]);
        _mm256_storeu_si256((__m256i *)&hashes[i], hash_four(four, flip));
    }
    for (; i < n; i++) hashes[i] = xxh3_of_number(numbers[i], seed);
}

#endif
