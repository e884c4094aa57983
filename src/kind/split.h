/* What the kernels of the split kind share. */
#ifndef CALYX_SPLIT_H
#define CALYX_SPLIT_H

#include "base/bits.h"
#include "kind/batch_loops.h"

enum { SPLIT_BYTES = 32, SPLIT_LANES = 8 };

/* Odd multipliers fixed by the Parquet specification. */
extern const uint32_t split_salt[SPLIT_LANES];

/* Which block: the high half of the hash. The low half picks the bits. */
static inline size_t split_offset(uint64_t hash, const struct shape *shape) {
    return (size_t)SPLIT_BYTES *
           scale32((uint32_t)(hash >> 32), (uint32_t)shape->blocks);
}

ALWAYS_INLINE void split_prefetch(const uint8_t *body,
                                  const struct shape *shape, uint64_t hash) {
    prefetch_l2(body + split_offset(hash, shape));
}

/* Add while other threads do. The locked instructions take so long that vectors
 * would not help. */
bool split_add_one_atomic(uint8_t *body, const struct shape *shape,
                          const uint64_t *hash);

extern const struct kernel split_scalar, split_scalar_atomic;
extern const struct kernel split_avx2, split_avx2_atomic;

#endif
