/*
 * The split kind: a blocked Bloom filter whose blocks are split in lanes.
 *
 * A block is 256 bits: eight lanes of 32. A key goes to one block, picked by
 * the high half of its hash, and sets one bit in each lane, picked by the low
 * half times a constant of that lane.
 *
 *     hash  hhhhhhhhhhhhhhhh llllllllllllllll
 *           |                |
 *           v                v   * salt[i] >> 27
 *     block [ 0100..0 | 0001..0 | 1000..0 | ... | 0010..0 ]
 *              lane 0    lane 1    lane 2          lane 7
 *
 * The bits follow the Parquet specification (SBBF), so with its hash,
 * xxh64 with seed 0, a body can be handed to a Parquet reader as it is. For all
 * else the line kind is at least as fast, and smaller: a block of 256 bits
 * fills more unevenly than a line of 512, and eight probes are the best number
 * at no rate but 0.4 %. The number of blocks must fit the 32 bits that pick
 * one.
 */
#include "kind/split.h"

#include <math.h>

#include "kind/kind.h"

const uint32_t split_salt[SPLIT_LANES] = {
    0x47B6137Bu, 0x44974D91u, 0x8824AD5Bu, 0xA2B7289Du,
    0x705495C7u, 0x2DF1424Bu, 0x9EFC4947u, 0x5C6BFB31u,
};

/* ---- The scalar kernel: the definition ----------------------------------- */

static uint32_t lane_bit(uint64_t hash, int lane) {
    return UINT32_C(1) << ((uint32_t)hash * split_salt[lane] >> 27);
}

ALWAYS_INLINE bool has(const uint8_t *body, const struct shape *shape,
                       const uint64_t *given) {
    const uint64_t hash = *given;
    const uint8_t *block = body + split_offset(hash, shape);
    for (int lane = 0; lane < SPLIT_LANES; lane++)
        if (!(peek32(block + 4 * lane) & lane_bit(hash, lane))) return false;
    return true;
}

ALWAYS_INLINE bool add(uint8_t *body, const struct shape *shape,
                       const uint64_t *given) {
    const uint64_t hash = *given;
    uint8_t *block = body + split_offset(hash, shape);
    uint32_t missing = 0;
    for (int lane = 0; lane < SPLIT_LANES; lane++) {
        const uint32_t old = load32(block + 4 * lane);
        const uint32_t bit = lane_bit(hash, lane);
        missing |= bit & ~old;
        store32(block + 4 * lane, old | bit);
    }
    return missing != 0;
}

bool split_add_one_atomic(uint8_t *body, const struct shape *shape,
                          const uint64_t *given) {
    const uint64_t hash = *given;
    uint8_t *block = body + split_offset(hash, shape);
    bool missing = false;
    for (int lane = 0; lane < SPLIT_LANES; lane += 2) {
        const uint64_t bits = (uint64_t)lane_bit(hash, lane) |
                              (uint64_t)lane_bit(hash, lane + 1) << 32;
        if (!(bits & ~peek64(block + 4 * lane))) continue;
        set64(block + 4 * lane, bits);
        missing = true;
    }
    return missing;
}

static bool split_scalar_has(const uint8_t *body, const struct shape *shape,
                             uint64_t hash) {
    return has(body, shape, &hash);
}

static bool split_scalar_add(uint8_t *body, const struct shape *shape,
                             uint64_t hash) {
    return add(body, shape, &hash);
}

static bool split_scalar_add_atomic(uint8_t *body, const struct shape *shape,
                                    uint64_t hash) {
    return split_add_one_atomic(body, shape, &hash);
}

static size_t split_scalar_has_batch(const uint8_t *body,
                                     const struct shape *shape,
                                     struct batch batch, bool *found) {
    return has_batch_generic(body, shape, batch, found, has, split_prefetch);
}

static size_t split_scalar_add_batch(uint8_t *body, const struct shape *shape,
                                     struct batch batch, bool *fresh) {
    return add_batch_generic(body, shape, batch, fresh, add, split_prefetch,
                             NULL);
}

static size_t split_scalar_add_batch_atomic(uint8_t *body,
                                            const struct shape *shape,
                                            struct batch batch, bool *fresh) {
    return add_batch_generic(body, shape, batch, fresh, split_add_one_atomic,
                             split_prefetch, NULL);
}

const struct kernel split_scalar = {
    .level = CPU_SCALAR,
    .has = split_scalar_has,
    .add = split_scalar_add,
    .has_batch = split_scalar_has_batch,
    .add_batch = split_scalar_add_batch,
};

const struct kernel split_scalar_atomic = {
    .level = CPU_SCALAR,
    .has = split_scalar_has,
    .add = split_scalar_add_atomic,
    .has_batch = split_scalar_has_batch,
    .add_batch = split_scalar_add_batch_atomic,
};

/* ---- The rate ------------------------------------------------------------ */

/* Summed over the number of keys in the block, a binomial distribution: in each
 * lane they leave a given bit unset with odds 31/32 each. */
static double rate_by_keys(double blocks, double items) {
    double odds = exp(items * log1p(-1 / blocks)), unset = 1, rate = 0;
    for (double keys = 1; keys <= items; keys++) {
        odds *= (items - keys + 1) / keys / (blocks - 1);
        unset *= 31. / 32;
        rate += odds * pow(1 - unset, SPLIT_LANES);
        if (keys > 2 * items / blocks && odds < 1e-17 * rate) break;
    }
    return rate;
}

/* As for a line (line_rate.c), but every key takes every lane: a given bits in
 * as many lanes stay unset with odds (31/32)^a for each key in the block. */
static double fpr(const struct shape *shape, double items) {
    const double blocks = (double)shape->blocks;
    const double most_lost = 1e-5; /* leaves 11 digits of 16 */
    double rate = 0, terms = 0, sign = 1, ways = 1, miss = 1;
    for (int a = 0; a <= SPLIT_LANES; a++) {
        const double term = ways * exp(items * log1p((miss - 1) / blocks));
        rate += sign * term;
        terms += term;
        sign = -sign;
        ways = ways * (SPLIT_LANES - a) / (a + 1);
        miss *= 31. / 32;
    }
    if (blocks > 1 && items >= 1 && rate < most_lost * terms)
        rate = rate_by_keys(blocks, items);
    const double twins = ldexp(items / blocks, -32);
    return fmin(1, fmax(0, rate) + twins);
}

static size_t offsets(const struct shape *shape, uint64_t hash, uint64_t *at) {
    *at = split_offset(hash, shape);
    return 1;
}

/* Within a block, the place of the block does not matter. */
static bool has_in_copies(const struct shape *shape, uint64_t hash,
                          const uint8_t *copies) {
    const struct shape one = {.blocks = 1, .probes = shape->probes};
    return has(copies + split_offset(hash, shape) % 64, &one, &hash);
}

/* ---- Bits at any address ------------------------------------------------- */

static bool has_in_bits(const uint8_t *bits, const struct shape *shape,
                        uint64_t hash) {
    const uint8_t *const block = bits + split_offset(hash, shape);
    uint32_t missing = 0;
    for (int lane = 0; lane < SPLIT_LANES; lane++)
        missing |= lane_bit(hash, lane) & ~load32(block + 4 * lane);
    return missing == 0;
}

static void add_to_bits(uint8_t *bits, const struct shape *shape,
                        uint64_t hash) {
    add(bits, shape, &hash); /* which wants no alignment */
}

/* ---- The kind ------------------------------------------------------------ */

static const struct kernel *const kernels[] = {
#if ON_X86
    &split_avx2,
#endif
    &split_scalar,
};

static const struct kernel *const atomic_kernels[] = {
#if ON_X86
    &split_avx2_atomic,
#endif
    &split_scalar_atomic,
};

const struct kind kind_split = {
    .name = "split",
    .code = 3,
    .hash = "xxh64",
    .can = CAN_BLOOM | CALYX_CAN_RANGE | CALYX_CAN_PARTS,
    .block_bits = 8 * SPLIT_BYTES,
    .offsets = offsets,
    .has_in_copies = has_in_copies,
    .has_in_bits = has_in_bits,
    .add_to_bits = add_to_bits,
    .most_blocks = UINT32_MAX,
    .most_probes = SPLIT_LANES,
    .probe_step = SPLIT_LANES,
    .least_fpr = 1e-7,
    .fpr = fpr,
    .kernels = kernels,
    .atomic_kernels = atomic_kernels,
};
