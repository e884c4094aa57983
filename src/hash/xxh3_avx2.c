/* xxh3 of an array of numbers, for filters whose kernel does not hash them on
 * its way; see xxh3_avx2.h. */
#include "base/cpu.h"
#if ON_X86

#include "hash/xxh3_avx2.h"

AVX2 void xxh3_numbers_avx2(uint64_t seed, const uint64_t *numbers, size_t n,
                            uint64_t *hashes) {
    const __m256i flip = xxh3_all(xxh3_flip(seed));
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const __m256i four = _mm256_loadu_si256((const __m256i *)&numbers[i]);
        _mm256_storeu_si256((__m256i *)&hashes[i], xxh3_of_four(four, flip));
    }
    for (; i < n; i++) hashes[i] = xxh3_of_number(numbers[i], seed);
}

#endif
