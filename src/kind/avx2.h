/* What the AVX2 kernels share. */
#ifndef CALYX_AVX2_H
#define CALYX_AVX2_H

#include <immintrin.h>

#include "kind/prefetch.h"

#define AVX2 __attribute__((target("avx2,bmi2"), no_sanitize("thread")))

/* The low half of a hash in all eight words. In assembly, to load it from
 * memory: the compiler would broadcast it from a general register, through a
 * slow port, which costs 25 % of a lookup. */
AVX2 ALWAYS_INLINE __m256i low_half(const uint64_t *hash) {
    __m256i all;
    __asm__("vpbroadcastd %1, %0" : "=x"(all) : "m"(*hash));
    return all;
}

#endif
