/*
 * Prefetching, for the loops of the kernels.
 *
 * A lookup does little work and waits long for memory. So a batch keeps many
 * waits going at once: before the bits of a hash are processed, the cache lines
 * of the hashes that follow are prefetched into L2, PREFETCH_DISTANCE ahead,
 * and where that pays, into L1 shortly before they are used. Prefetching only a
 * few hashes ahead, as most filters do, takes twice as long from main memory.
 */
#ifndef CALYX_PREFETCH_H
#define CALYX_PREFETCH_H

#include "base/compiler.h"
#include "kind/kernel.h"

enum { PREFETCH_DISTANCE_L1 = 16 }; /* in hashes; into L2: kernel.h */

ALWAYS_INLINE void prefetch_l2(const uint8_t *line) {
    __builtin_prefetch(line, 0, 2);
}

ALWAYS_INLINE void prefetch_l1(const uint8_t *line) {
    __builtin_prefetch(line, 0, 3);
}

/* Number of hashes to prefetch before the main loop starts. */
static inline size_t prologue_length(const struct batch *batch) {
    const size_t all = batch->n + batch->more;
    return all < PREFETCH_DISTANCE ? all : PREFETCH_DISTANCE;
}

/* Number of iterations that have a hash PREFETCH_DISTANCE ahead to prefetch. */
static inline size_t steady_length(const struct batch *batch) {
    const size_t all = batch->n + batch->more;
    const size_t most = all < PREFETCH_DISTANCE ? 0 : all - PREFETCH_DISTANCE;
    return most < batch->n ? most : batch->n;
}

#endif
