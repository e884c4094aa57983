/*
 * The flat kind: the filter of Burton Bloom's paper. Every bit of the array is
 * open to every key, so no Bloom filter of its size has a lower false-positive
 * rate; and every probe may be a cache miss, so few are slower. Its blocks
 * are single bits: any number m of them will do, with any k up to 64.
 */
#include <math.h>

#include "base/bits.h"
#include "kind/batch_loops.h"
#include "kind/kind.h"

/* The k probes of a key are the steps of a small random-number generator that
 * starts at the hash, each scaled to [0, m). The constants are Knuth's, of
 * MMIX. Only the high bits count, and they are the good ones. */
ALWAYS_INLINE uint64_t step(uint64_t x) {
    return x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
}

ALWAYS_INLINE bool has(const uint8_t *body, const struct shape *shape,
                       const uint64_t *given) {
    uint64_t hash = *given;
    for (uint32_t i = 0; i < shape->probes; i++, hash = step(hash)) {
        const uint64_t bit = scale64(hash, shape->blocks);
        if (!(peek64(body + bit / 64 * 8) >> bit % 64 & 1)) return false;
    }
    return true;
}

ALWAYS_INLINE bool add(uint8_t *body, const struct shape *shape,
                       const uint64_t *given) {
    uint64_t hash = *given;
    uint64_t missing = 0;
    for (uint32_t i = 0; i < shape->probes; i++, hash = step(hash)) {
        const uint64_t bit = scale64(hash, shape->blocks);
        uint8_t *word = body + bit / 64 * 8;
        const uint64_t old = load64(word), mask = UINT64_C(1) << bit % 64;
        missing |= mask & ~old;
        store64(word, old | mask);
    }
    return missing != 0;
}

ALWAYS_INLINE bool add_atomic(uint8_t *body, const struct shape *shape,
                              const uint64_t *given) {
    uint64_t hash = *given;
    bool missing = false;
    for (uint32_t i = 0; i < shape->probes; i++, hash = step(hash)) {
        const uint64_t bit = scale64(hash, shape->blocks);
        uint8_t *word = body + bit / 64 * 8;
        const uint64_t mask = UINT64_C(1) << bit % 64;
        if (peek64(word) & mask) continue;
        set64(word, mask);
        missing = true;
    }
    return missing;
}

ALWAYS_INLINE void prefetch(const uint8_t *body, const struct shape *shape,
                            uint64_t hash) {
    for (uint32_t i = 0; i < shape->probes; i++, hash = step(hash))
        prefetch_l2(body + scale64(hash, shape->blocks) / 8);
}

static bool flat_scalar_has(const uint8_t *body, const struct shape *shape,
                            uint64_t hash) {
    return has(body, shape, &hash);
}

static bool flat_scalar_add(uint8_t *body, const struct shape *shape,
                            uint64_t hash) {
    return add(body, shape, &hash);
}

static bool flat_scalar_add_atomic(uint8_t *body, const struct shape *shape,
                                   uint64_t hash) {
    return add_atomic(body, shape, &hash);
}

static size_t flat_scalar_has_batch(const uint8_t *body,
                                    const struct shape *shape,
                                    struct batch batch, bool *found) {
    return has_batch_generic(body, shape, batch, found, has, prefetch);
}

static size_t flat_scalar_add_batch(uint8_t *body, const struct shape *shape,
                                    struct batch batch, bool *fresh) {
    return add_batch_generic(body, shape, batch, fresh, add, prefetch, NULL);
}

static size_t flat_scalar_add_batch_atomic(uint8_t *body,
                                           const struct shape *shape,
                                           struct batch batch, bool *fresh) {
    return add_batch_generic(body, shape, batch, fresh, add_atomic, prefetch,
                             NULL);
}

static const struct kernel flat_scalar = {
    .level = CPU_SCALAR,
    .has = flat_scalar_has,
    .add = flat_scalar_add,
    .has_batch = flat_scalar_has_batch,
    .add_batch = flat_scalar_add_batch,
};

static const struct kernel flat_scalar_atomic = {
    .level = CPU_SCALAR,
    .has = flat_scalar_has,
    .add = flat_scalar_add_atomic,
    .has_batch = flat_scalar_has_batch,
    .add_batch = flat_scalar_add_batch_atomic,
};

/* The textbook's (1 - (1 - 1/m)^(kn))^k, which for large m is
 * (1 - e^(-kn/m))^k. */
static double fpr(const struct shape *shape, double items) {
    const double bits = (double)shape->blocks, k = shape->probes;
    if (bits < 2) return items > 0;
    return pow(-expm1(k * items * log1p(-1 / bits)), k);
}

static size_t offsets(const struct shape *shape, uint64_t hash, uint64_t *at) {
    for (uint32_t i = 0; i < shape->probes; i++, hash = step(hash))
        at[i] = scale64(hash, shape->blocks) / 8;
    return shape->probes;
}

static bool has_in_copies(const struct shape *shape, uint64_t hash,
                          const uint8_t *copies) {
    for (uint32_t i = 0; i < shape->probes; i++, hash = step(hash)) {
        const uint64_t bit = scale64(hash, shape->blocks);
        if (!(copies[64 * i + bit / 8 % 64] >> bit % 8 & 1)) return false;
    }
    return true;
}

static const struct kernel *const kernels[] = {&flat_scalar};
static const struct kernel *const atomic_kernels[] = {&flat_scalar_atomic};

const struct kind kind_flat = {
    .name = "flat",
    .code = 4,
    .hash = "xxh3",
    .can = CAN_BLOOM,
    .block_bits = 1,
    .offsets = offsets,
    .has_in_copies = has_in_copies,
    .most_blocks = UINT64_C(1) << 44,
    .most_probes = 64,
    .probe_step = 1,
    .least_fpr = 1e-15,
    .fpr = fpr,
    .kernels = kernels,
    .atomic_kernels = atomic_kernels,
};
