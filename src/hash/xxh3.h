/*
 * XXH3 of 64 bits, the default hash, of numbers: inlined into callers, since a
 * call would cost as much as the hash. hash.c hashes bytes.
 */
#ifndef CALYX_XXH3_H
#define CALYX_XXH3_H

#include "base/compiler.h" /* before xxhash.h */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/bits.h"

static inline uint64_t xxh3_of_number(uint64_t number, uint64_t seed) {
    number = little64(number);
    return XXH3_64bits_withSeed(&number, sizeof number, seed);
}

/* What XXH3 flips the eight bytes of a number by, once their halves are
 * swapped: two words of its secret, less the seed, whose low half, turned round
 * byte by byte, is first xored onto the high one. */
static inline uint64_t xxh3_flip(uint64_t seed) {
    const uint64_t words =
        UINT64_C(0x1CAD21F72C81017C) ^ UINT64_C(0xDB979083E96DD4DE);
    const uint64_t turned = __builtin_bswap32((uint32_t)seed);
    return words - (seed ^ turned << 32);
}

/* xxh3_of_number of many, for processors that are CPU_AVX2 or better. */
void xxh3_numbers_avx2(uint64_t seed, const uint64_t *numbers, size_t n,
                       uint64_t *hashes);

#endif
