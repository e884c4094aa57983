/*
 * The flat kind: the filter of Burton Bloom's paper. Every bit of the array is
 * open to every key, so no Bloom filter of its size lets fewer strangers
 * through; and every probe may be a cache miss, so few are slower. Its blocks
 * are single bits: any number m of them will do, with any k up to 64.
 */
#include <math.h>

#include "base/bits.h"
#include "kind/kind.h"

/* The k probes of a key are the steps of a small random-number generator that
 * starts at the hash, each scaled to [0, m). The constants are Knuth's, of
 * MMIX. Only the high bits count, and they are the good ones. */
MELT uint64_t step(uint64_t x) {
    return x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
}

MELT bool has(const uint8_t *body, const struct shape *shape,
              const uint64_t *given) {
    uint64_t hash = *given;
    for (uint32_t i = 0; i < shape->probes; i++, hash = step(hash)) {
        const uint64_t bit = scale64(hash, shape->blocks);
        if (!(peek64(body + bit / 64 * 8) >> bit % 64 & 1)) return false;
    }
    return true;
}

MELT bool add(uint8_t *body, const struct shape *shape, const uint64_t *given) {
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

MELT bool share(uint8_t *body, const struct shape *shape,
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

MELT void call(const uint8_t *body, const struct shape *shape, uint64_t hash) {
    for (uint32_t i = 0; i < shape->probes; i++, hash = step(hash))
        call_line(body + scale64(hash, shape->blocks) / 8);
}

KERNEL(flat_scalar, CPU_SCALAR, , has, call, add, call)
KERNEL(flat_scalar_shared, CPU_SCALAR, , has, call, share, call)

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

static const struct kernel *const kernels[] = {&flat_scalar};
static const struct kernel *const shared[] = {&flat_scalar_shared};

const struct kind kind_flat = {
    .name = "flat",
    .code = 4,
    .hash = "xxh3",
    .block_bits = 1,
    .offsets = offsets,
    .most_blocks = UINT64_C(1) << 44,
    .most_probes = 64,
    .probe_step = 1,
    .least_fpr = 1e-15,
    .fpr = fpr,
    .kernels = kernels,
    .shared = shared,
};
