/* The default hash, to be melted into callers that hash a number at a time: the
 * call would cost as much as the hashing. */
#ifndef CALYX_XXH3_H
#define CALYX_XXH3_H

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/bits.h"

static inline uint64_t xxh3_of_number(uint64_t number, uint64_t seed) {
    number = little64(number);
    return XXH3_64bits_withSeed(&number, sizeof number, seed);
}

/* The same of many, for processors that are CPU_AVX2 or better. */
void xxh3_numbers_avx2(uint64_t seed, const uint64_t *numbers, size_t n,
                       uint64_t *hashes);

#endif
