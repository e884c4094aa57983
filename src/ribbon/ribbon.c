/*
 * The ribbon kind: a set that is built once, in 1.03 times the fewest bits that
 * a filter of its rate can have. A bumped ribbon filter (Dillinger and Walzer
 * 2021; BuRR: Dillinger, Hübschle-Schneider, Sanders, Walzer 2022).
 *
 * Picture a table of bits with about as many rows as keys. A key has an
 * equation for each result bit: of 48 neighbouring rows, those that its hash
 * chooses sum up, modulo 2, to a bit of its hash. A lookup tests whether the
 * equations hold. For an absent key each holds by chance, with odds 1/2; the
 * construction solves the equations of all keys.
 *
 * One column of the table, with equations of 6 rows in place of 48, and hashes
 * that want a sum of 1:
 *
 *     row           0  1  2  3  4  5  6  7  8  9
 *     bit           1  0  1  1  0  0  1  0  1  0
 *     key           1  .  1  1  .  1               1 + 1 + 1 + 0 = 1: holds
 *     absent key       1  1  .  .  1  1            0 + 1 + 0 + 1 = 0: "no"
 *
 * Where more keys start than rows are free, the keys of a group of 16 rows are
 * bumped to the next layer, a smaller filter of the same make, and a flag says
 * so. BuRR bumps by thresholds and is 2 % smaller; one flag needs less code,
 * and less work in a lookup.
 *
 *     layer 0   [ groups of 16 rows ............... | flags ]
 *                    | keys of groups whose flag is set, 4 % of all
 *                    v
 *     layer 1   [ groups ... | flags ]    and so on, until nothing is bumped
 *
 * So a lookup reads the flag of its group and the words of three groups. If the
 * flag is set, the next layer decides; else the equations do.
 *
 * ribbon.h has the places, ribbon_build.c the construction, doc/MATH.md why it
 * works.
 */
#include <math.h>

#include "kind/batch_loops.h"
#include "ribbon/ribbon_batch.h"

/* ---- Lookup -------------------------------------------------------------- */

/* Result bit i: what the rows sum up to, given the words of the first group. */
ALWAYS_INLINE uint32_t sum_of(const uint8_t *words, uint32_t count, uint32_t i,
                              uint64_t coefficients) {
    uint64_t rows = 0; /* 48 bits of column i */
    for (uint32_t j = 0; j < SPAN_GROUPS; j++)
        rows |= (uint64_t)load16(words + 2 * (j * count + i)) << GROUP_ROWS * j;
    return (uint32_t)__builtin_parityll(rows & coefficients);
}

/* Do the equations hold? */
static bool holds(const uint8_t *words, uint32_t count, uint64_t mixed) {
    const uint64_t coefficients = ribbon_coefficients(mixed);
    const uint32_t result = ribbon_result(mixed);
    for (uint32_t i = 0; i < count; i++)
        if (sum_of(words, count, i, coefficients) !=
            (result >> result_place(i) & 1))
            return false;
    return true;
}

struct layer_equations ribbon_equations(const uint8_t *body,
                                        const struct shape *shape,
                                        uint64_t hash) {
    const uint64_t group = group_of(hash, shape), mixed = ribbon_mix(hash);
    const uint64_t first = first_group(group, shape);
    const uint8_t *const words = body + words_at(first, shape);
    struct layer_equations is = {
        .group = group,
        .first_row = first * GROUP_ROWS,
        .rows = ribbon_coefficients(mixed),
        .count = words_of(group, shape),
        .is_bumped = is_bumped(body + flags_at(group, shape), group),
    };
    for (uint32_t i = 0; i < is.count; i++) {
        is.sums |= sum_of(words, is.count, i, is.rows) << i;
        is.wanted |= (ribbon_result(mixed) >> result_place(i) & 1) << i;
    }
    return is;
}

static enum layer_answer ribbon_scalar_has_in_layer(const uint8_t *body,
                                                    const struct shape *shape,
                                                    uint64_t hash) {
    const uint64_t group = group_of(hash, shape);
    if (is_bumped(body + flags_at(group, shape), group)) return LAYER_BUMPED;
    return holds(body + words_at(first_group(group, shape), shape),
                 words_of(group, shape), ribbon_mix(hash))
               ? LAYER_YES
               : LAYER_NO;
}

static bool ribbon_scalar_has(const uint8_t *body, const struct shape *shape,
                              uint64_t hash) {
    return ribbon_scalar_has_in_layer(body, shape, hash) == LAYER_YES;
}

/* ---- Many lookups -------------------------------------------------------- */

ALWAYS_INLINE bool scalar_holds(const struct query_ring *ring, size_t at,
                                enum read_width width) {
    (void)width;
    return holds(words_in(ring, at), (uint32_t)ring->stride[at] / 2,
                 ring->coefficients[at]);
}

static size_t ribbon_scalar_has_batch_in_layer(const uint8_t *body,
                                               const struct shape *shape,
                                               struct batch batch, bool *found,
                                               uint16_t *bumped) {
    return ribbon_batch_generic(body, shape, batch, found, bumped, 1,
                                prepare_one, scalar_holds);
}

static size_t ribbon_scalar_has_batch(const uint8_t *body,
                                      const struct shape *shape,
                                      struct batch batch, bool *found) {
    return ribbon_has_batch(&ribbon_scalar, body, shape, batch, found);
}

size_t ribbon_has_batch(const struct kernel *kernel, const uint8_t *body,
                        const struct shape *shape, struct batch batch,
                        bool *found) {
    bool answers[BATCH_MAX];
    uint16_t bumped[BATCH_MAX + 1];
    bool *const to = found ? found : answers;
    kernel->has_batch_in_layer(body, shape, batch, to, bumped);
    return count_true(to, batch.n);
}

const struct kernel ribbon_scalar = {
    .level = CPU_SCALAR,
    .has = ribbon_scalar_has,
    .has_batch = ribbon_scalar_has_batch,
    .has_in_layer = ribbon_scalar_has_in_layer,
    .has_batch_in_layer = ribbon_scalar_has_batch_in_layer,
};

/* ---- Shapes and rates ---------------------------------------------------- */

uint64_t ribbon_bytes(const struct shape *shape) {
    return flags_at(shape->blocks - 1, shape) + FLAG_BYTES;
}

static uint64_t body_bits(const struct shape *shape) {
    return 8 * ribbon_bytes(shape);
}

/* No lot, and no stretch of groups of one width in a lot, is shorter than an
 * equation. */
static bool is_shape(const struct shape *shape) {
    const uint64_t last = shape->blocks % LOT_GROUPS;
    if (shape->blocks < SPAN_GROUPS || (last && last < SPAN_GROUPS))
        return false;
    if (shape->wide == 0) return true;
    return shape->wide % WIDE_UNIT == 0 && shape->probes < MOST_WORDS &&
           shape->wide + SPAN_GROUPS <= shape->blocks;
}

/* Of one layer. It does not depend on the number of keys. */
static double fpr(const struct shape *shape, double items) {
    (void)items;
    const double wide = (double)shape->wide / (double)shape->blocks;
    return ldexp(1 - wide / 2, -(int)shape->probes);
}

/* ---- Lookups in copies of lines ------------------------------------------ */

/* The line of the flag first, then the lines of the words. */
static size_t offsets(const struct shape *shape, uint64_t hash, uint64_t *at) {
    const uint64_t group = group_of(hash, shape);
    const uint64_t words = words_at(first_group(group, shape), shape);
    const uint64_t bytes = SPAN_GROUPS * 2 * words_of(group, shape);
    size_t n = 0;
    at[n++] = flags_at(group, shape);
    for (uint64_t line = words / 64; line <= (words + bytes - 1) / 64; line++)
        at[n++] = 64 * line;
    return n;
}

bool ribbon_is_bumped_in_copies(const struct shape *shape, uint64_t hash,
                                const uint8_t *copies) {
    return is_bumped(copies, group_of(hash, shape));
}

/* The lines of the words follow each other, in the body and in the copies. */
static bool has_in_copies(const struct shape *shape, uint64_t hash,
                          const uint8_t *copies) {
    const uint64_t group = group_of(hash, shape);
    const uint64_t words = words_at(first_group(group, shape), shape);
    return !is_bumped(copies, group) &&
           holds(copies + 64 + words % 64, words_of(group, shape),
                 ribbon_mix(hash));
}

static const struct kernel *const kernels[] = {
#if ON_AVX512
    &ribbon_avx512,
#endif
#if ON_X86
    &ribbon_avx2,
#endif
#if ON_NEON
    &ribbon_neon,
#endif
    &ribbon_scalar,
};

const struct kind kind_ribbon = {
    .name = "ribbon",
    .code = 9,
    .hash = "xxh3",
    .can = CALYX_CAN_STATIC | CALYX_CAN_PARTS,
    .body_bits = body_bits,
    .is_shape = is_shape,
    .offsets = offsets,
    .has_in_copies = has_in_copies,
    .most_blocks = UINT64_C(1) << 37,
    .most_probes = MOST_WORDS,
    .probe_step = 1,
    .least_fpr = 0x1p-31,
    .fpr = fpr,
    .kernels = kernels,
    .construction = &ribbon_construction,
};
