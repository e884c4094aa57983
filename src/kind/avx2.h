/* What the AVX2 kernels share. */
#ifndef CALYX_AVX2_H
#define CALYX_AVX2_H

#include <immintrin.h>

#include "kind/kernel.h"

#define AVX2 __attribute__((target("avx2,bmi2"), no_sanitize("thread")))

/* The low half of a hash in all eight words. From memory that is one load; the
 * compiler, having the hash in a register, would send it from there, by a road
 * so slow that it costs a quarter of the whole question. */
AVX2 MELT __m256i low_half(const uint64_t *hash) {
    __m256i all;
    __asm__("vpbroadcastd %1, %0" : "=x"(all) : "m"(*hash));
    return all;
}

#endif
