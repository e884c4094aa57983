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

/* ---- The rate ------------------------------------------------------------ */

/*
 * The textbook's (1 - u)^k, where u = (1 - 1/m)^(kn) is the share of bits that
 * are not set, takes the bits for independent. They are not: the share of set
 * bits varies, and the mean of its k-th power is more than the power of its
 * mean. For one key at 1e-6 that makes a factor of 4, for ten keys 10 %.
 *
 * Exactly: the probes of an absent key fall on d different bits of m with some
 * odds. N = kn probes of the keys set all d of them with odds
 *
 *     sum over i of (-1)^i C(d,i) (1 - i/m)^N                               (1)
 *
 * Where most bits are unset, its terms cancel, and no digit is left. Then count
 * the t of N probes that fall on these d bits. They cover all d in c(t,d) of
 * d^t ways:
 *
 *     sum over t of C(N,t) (1 - d/m)^(N-t) c(t,d) / m^t                     (2)
 *
 * where c(t,d) = d (c(t-1,d) + c(t-1,d-1)); all terms are positive.
 */
enum { MOST_PROBES = 64 };

struct odds_by_bits {
    double of[MOST_PROBES + 1]; /* for each number of bits */
};

/* The odds that k probes fall on d different bits of m. */
static struct odds_by_bits odds_of_bits(double m, uint32_t k) {
    struct odds_by_bits odds = {{1}};
    for (uint32_t i = 0; i < k; i++) {
        for (uint32_t d = i + 1; d > 0; d--)
            odds.of[d] = odds.of[d] * (d / m) +
                         odds.of[d - 1] * fmax(0, 1 - (d - 1) / m);
        odds.of[0] = 0;
    }
    return odds;
}

/* By (1), for 1 to k bits. */
static struct odds_by_bits covered_by_signs(double m, uint32_t k,
                                            double probes) {
    struct odds_by_bits unset, covered;
    double ways[MOST_PROBES + 1] = {1};
    for (uint32_t i = 0; i <= k; i++)
        unset.of[i] = i < m ? exp(probes * log1p(-(double)i / m)) : 0;
    for (uint32_t d = 1; d <= k; d++) {
        covered.of[d] = 0;
        for (uint32_t i = d; i > 0; i--) ways[i] += ways[i - 1];
        for (uint32_t i = 0; i <= d; i++)
            covered.of[d] += (i % 2 ? -ways[i] : ways[i]) * unset.of[i];
    }
    return covered;
}

/* By (2), up to a t that fewer than one in 10^15 exceed. No power underflows:
 * where terms cancel, N is at most 2.4 m, and d at most 64. */
static struct odds_by_bits covered_by_counts(double m, uint32_t k,
                                             double probes) {
    struct odds_by_bits covered = {{0}}, ways = {{1}}; /* c(t,d) / t!         */
    struct odds_by_bits elsewhere = {{0}};             /* (1 - d/m)^(N-t)     */
    struct odds_by_bits inverse = {{0}};               /* 1 / (1 - d/m)       */
    double chosen = 1;                                 /* N!/(N-t)! / m^t     */
    for (uint32_t d = 1; d <= k && d < m; d++) {
        elsewhere.of[d] = exp(probes * log1p(-(double)d / m));
        inverse.of[d] = m / (m - d);
    }
    const double mean = k * probes / m;
    const double most = fmin(probes, k + mean + 12 * sqrt(mean + 1) + 20);
    for (double t = 1; t <= most; t++) {
        chosen *= (probes - t + 1) / m;
        for (uint32_t d = k; d > 0; d--) {
            ways.of[d] = d * (ways.of[d] + ways.of[d - 1]) / t;
            elsewhere.of[d] *= inverse.of[d];
            if (d >= m) elsewhere.of[d] = t == probes;
            covered.of[d] += chosen * elsewhere.of[d] * ways.of[d];
        }
        ways.of[0] = 0;
    }
    return covered;
}

static double exact_fpr(double m, uint32_t k, double probes) {
    const double most_cancelled = 100000; /* leaves 11 digits of 16 */
    const double unset = exp(probes * log1p(-1 / m));
    const bool cancels = pow((1 + unset) / (1 - unset), k) > most_cancelled;
    const struct odds_by_bits odds = odds_of_bits(m, k);
    const struct odds_by_bits covered = cancels
                                            ? covered_by_counts(m, k, probes)
                                            : covered_by_signs(m, k, probes);
    double rate = 0;
    for (uint32_t d = 1; d <= k && d <= m; d++)
        rate += odds.of[d] * covered.of[d];
    return rate;
}

/* For many bits, by mean and variance of the share of set bits. */
static double nearly_exact_fpr(double m, double k, double probes) {
    const double load = probes / m, set = -expm1(probes * log1p(-1 / m));
    const double unset = 1 - set;
    const double variance = unset * (1 - (1 + load) * unset) / (m * set * set);
    return pow(set, k) * (1 + k * (k - 1) / 2 * variance);
}

static double fpr(const struct shape *shape, double items) {
    const double many = 32; /* times k^2: then both agree in 5 digits */
    const double m = (double)shape->blocks, k = shape->probes;
    const double probes = round(shape->probes * items);
    if (probes < 1) return 0;
    if (m < 2) return 1;
    const double rate = fmin(m, probes) <= many * k * k
                            ? exact_fpr(m, shape->probes, probes)
                            : nearly_exact_fpr(m, k, probes);
    return fmin(1, fmax(0, rate));
}

/* All bits of a few, which are in the cache: which one is the first that is not
 * set cannot be predicted. */
static bool has_in_few_bits(const uint8_t *bits, const struct shape *shape,
                            uint64_t hash) {
    const uint64_t blocks = shape->blocks;
    unsigned all = 1;
    for (uint32_t i = shape->probes; i > 0; i--, hash = step(hash)) {
        const uint64_t bit = scale64(hash, blocks);
        all &= (unsigned)bits[bit / 8] >> bit % 8;
    }
    return all;
}

static bool has_in_bits(const uint8_t *bits, const struct shape *shape,
                        uint64_t hash) {
    enum { FEW = 8 * 4096 };
    if (shape->blocks <= FEW) return has_in_few_bits(bits, shape, hash);
    for (uint32_t i = 0; i < shape->probes; i++, hash = step(hash)) {
        const uint64_t bit = scale64(hash, shape->blocks);
        if (!(bits[bit / 8] >> bit % 8 & 1)) return false;
    }
    return true;
}

static void add_to_bits(uint8_t *bits, const struct shape *shape,
                        uint64_t hash) {
    for (uint32_t i = 0; i < shape->probes; i++, hash = step(hash)) {
        const uint64_t bit = scale64(hash, shape->blocks);
        bits[bit / 8] = (uint8_t)(bits[bit / 8] | 1u << bit % 8);
    }
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
    .has_in_bits = has_in_bits,
    .add_to_bits = add_to_bits,
    .most_blocks = UINT64_C(1) << 44,
    .most_probes = MOST_PROBES,
    .probe_step = 1,
    .least_fpr = 1e-15,
    .fpr = fpr,
    .kernels = kernels,
    .atomic_kernels = atomic_kernels,
};
