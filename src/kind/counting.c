/*
 * The counting kind: a line filter that can forget. Each bit of the lines has
 * a counter of 4 bits, the number of keys that set it.
 *
 *     [ lines | plane 0 | plane 1 | plane 2 | plane 3 | marks ]
 *
 * Lookups read the lines alone, and cost as much as in a line filter. The four
 * bits of a counter lie far apart: a plane has one of them for each bit of
 * the lines, at the same place. So one instruction adds to all counters of a
 * line, and, what matters for speed, few counters reach into planes 2 and 3,
 * which then need not be touched.
 *
 * A bit that is set counts for 1, and the counter for what goes beyond:
 *
 *     bit   plane 0, 1, 2, 3      keys
 *      0      0  0  0  0            0
 *      1      0  0  0  0            1
 *      1      1  0  0  0            2
 *      1      0  1  0  0            3
 *      1      1  1  0  0            4
 *              ...
 *      1      ?  1  1  1           15 or more
 *
 * In a filter filled to capacity, half of the additions reach plane 1, one in
 * fifty plane 2. But a removal must know which of its counters are zero, and
 * so look at every plane. Two marks per line say whether
 * planes 2 and 3 have any bit set there; if not, it skips them.
 *
 * A counter that has reached 15 stays there. From then on the number of keys
 * is unknown, and counting down would one day clear a bit that
 * some key still needs. So no overflow makes a key vanish; the price is that a
 * bit which 15 keys shared at once stays set until the filter is cleared. Plane
 * 0 goes on flipping there, and means nothing.
 */
#include "kind/counting.h"

#include "kind/kind.h"

enum { WORDS = LINE_BYTES / 8, HIGHEST = 15 };

static uint8_t *plane_of(const uint8_t *body, const struct shape *shape,
                         size_t line, size_t k) {
    return (uint8_t *)body + plane_offset(shape, line, k);
}

static void mark(uint8_t *body, const struct shape *shape, size_t line,
                 size_t k, bool used) {
    const size_t i = line / LINE_BYTES;
    const unsigned bit = 1u << (MARKS * (i % 4) + k - FIRST_MARKED);
    uint8_t *const four = plane_of(body, shape, 0, PLANES) + i / 4;
    *four = (uint8_t)(used ? *four | bit : *four & ~bit);
}

/* ---- Add ----------------------------------------------------------------- */

NO_CANARY bool count_low_scalar(uint8_t *body, const struct shape *shape,
                                size_t line, const uint64_t *hash,
                                struct line_mask *carry, bool *carries) {
    uint8_t *const plane0 = plane_of(body, shape, line, 0);
    const struct line_mask mask = line_bits(*hash, line_choices[shape->probes]);
    uint64_t missing = 0, some = 0;
    for (size_t i = 0; i < WORDS; i++) {
        const uint64_t old = load64(body + line + 8 * i);
        const uint64_t p0 = load64(plane0 + 8 * i);
        const uint64_t again = old & mask.word[i];
        store64(body + line + 8 * i, old | mask.word[i]);
        store64(plane0 + 8 * i, p0 ^ again);
        carry->word[i] = p0 & again;
        missing |= mask.word[i] & ~old;
        some |= carry->word[i];
    }
    *carries = some != 0;
    return missing != 0;
}

/* Flip these bits of a plane, and keep in `bits` those that were as `was` says:
 * ones carry what is added, zeros what is subtracted. */
static bool flip(uint8_t *body, const struct shape *shape, size_t line,
                 size_t k, struct line_mask *bits, bool was) {
    uint8_t *const plane = plane_of(body, shape, line, k);
    const uint64_t kept = was ? 0 : UINT64_MAX;
    uint64_t more = 0, used = 0;
    for (size_t i = 0; i < WORDS; i++) {
        const uint64_t old = load64(plane + 8 * i);
        const uint64_t new = old ^ bits->word[i];
        store64(plane + 8 * i, new);
        bits->word[i] &= old ^ kept;
        more |= bits->word[i];
        used |= new;
    }
    if (k >= FIRST_MARKED) mark(body, shape, line, k, used != 0);
    return more != 0;
}

NO_CANARY void count_high_scalar(uint8_t *body, const struct shape *shape,
                                 size_t line, const struct line_mask *carry) {
    struct line_mask next = *carry;
    if (flip(body, shape, line, 1, &next, true))
        counting_carry(body, shape, line, &next);
}

void counting_carry(uint8_t *body, const struct shape *shape, size_t line,
                    struct line_mask *carry) {
    for (size_t k = 2; k < PLANES; k++)
        if (!flip(body, shape, line, k, carry, true)) return;
    /* These were at 15, and went round to 0: back. */
    struct line_mask back;
    for (size_t k = 1; k < PLANES; k++) {
        back = *carry;
        flip(body, shape, line, k, &back, true);
    }
}

/* ---- Remove -------------------------------------------------------------- */

/* Are all counters of a key at 15? */
static bool is_stuck(const uint8_t *body, const struct shape *shape,
                     size_t line, const struct line_mask *mask) {
    uint64_t below = 0;
    for (size_t i = 0; i < WORDS; i++) {
        uint64_t full = mask->word[i];
        for (size_t k = 1; k < PLANES; k++)
            full &= load64(plane_of(body, shape, line, k) + 8 * i);
        below |= mask->word[i] & ~full;
    }
    return !below;
}

NO_CANARY enum removal remove_one_scalar(uint8_t *body,
                                         const struct shape *shape,
                                         const uint64_t *hash) {
    const size_t line = line_offset(*hash, shape);
    const struct line_mask mask = line_bits(*hash, line_choices[shape->probes]);
    uint64_t missing = 0;
    for (size_t i = 0; i < WORDS; i++)
        missing |= mask.word[i] & ~load64(body + line + 8 * i);
    if (missing) return KEY_ABSENT;

    /* Planes without a mark have no bit set, and need not be touched. */
    const uint32_t marks = marks_of(body, shape, line);
    if (marks > 1 && is_stuck(body, shape, line, &mask)) return KEY_STUCK;
    const size_t planes = marks ? FIRST_MARKED + marks / 2 + 1 : FIRST_MARKED;
    uint64_t used[PLANES] = {0};
    for (size_t i = 0; i < WORDS; i++) {
        uint8_t *at[PLANES];
        uint64_t p[PLANES] = {0}, some = 0;
        for (size_t k = 0; k < planes; k++) {
            at[k] = plane_of(body, shape, line, k) + 8 * i;
            p[k] = load64(at[k]);
            some |= p[k];
        }
        const uint64_t full = p[1] & p[2] & p[3];
        uint8_t *const bits = body + line + 8 * i;
        store64(bits, load64(bits) & (some | ~mask.word[i]));
        uint64_t borrow = mask.word[i] & some;
        for (size_t k = 0; k < planes; k++) {
            if (k == 1) borrow &= ~full;
            store64(at[k], p[k] ^ borrow);
            used[k] |= p[k] ^ borrow;
            borrow &= ~p[k];
        }
    }
    for (size_t k = FIRST_MARKED; k < planes; k++)
        mark(body, shape, line, k, used[k] != 0);
    return KEY_REMOVED;
}

void counting_borrow(uint8_t *body, const struct shape *shape, size_t line,
                     struct line_mask *borrow) {
    if (flip(body, shape, line, 2, borrow, false))
        flip(body, shape, line, 3, borrow, false);
}

/* ---- Count --------------------------------------------------------------- */

static uint32_t counting_count(const uint8_t *body, const struct shape *shape,
                               uint64_t hash) {
    const size_t line = line_offset(hash, shape);
    const struct line_mask bits = line_bits(hash, line_choices[shape->probes]);
    uint32_t least = HIGHEST;
    for (size_t i = 0; i < WORDS; i++)
        for (uint64_t left = bits.word[i]; left; left &= left - 1) {
            const size_t at = line + 8 * i;
            const int bit = __builtin_ctzll(left);
            uint64_t count = load64(body + at) >> bit & 1;
            for (size_t k = 0; k < PLANES; k++)
                count += (load64(plane_of(body, shape, at, k)) >> bit & 1) << k;
            if (count < least) least = (uint32_t)count;
        }
    return least;
}

/* ---- Two filters --------------------------------------------------------- */

/* 64 bits of a line, with their counters. */
struct counters {
    uint64_t bits, plane[PLANES];
};

static uint64_t full(const struct counters *c) {
    return c->plane[1] & c->plane[2] & c->plane[3];
}

/* The bit that both have set counts for 2 in the sum, and for 1 in its bit; so
 * the counters get the other, as if it were carried from below. */
static struct counters added(const struct counters *a,
                             const struct counters *b) {
    struct counters sum = {.bits = a->bits | b->bits};
    uint64_t carry = a->bits & b->bits;
    for (size_t k = 0; k < PLANES; k++) {
        const uint64_t one = a->plane[k] ^ b->plane[k];
        sum.plane[k] = one ^ carry;
        carry = (a->plane[k] & b->plane[k]) | (one & carry);
    }
    carry |= full(a) | full(b);
    for (size_t k = 1; k < PLANES; k++) sum.plane[k] |= carry;
    return sum;
}

/* The highest plane in which two counters differ decides. */
static struct counters lesser(const struct counters *a,
                              const struct counters *b) {
    struct counters least = {.bits = a->bits & b->bits};
    uint64_t less = 0, equal = UINT64_MAX;
    for (size_t k = PLANES; k-- > 0;) {
        const uint64_t differ = equal & (a->plane[k] ^ b->plane[k]);
        less |= differ & b->plane[k];
        equal &= ~differ;
    }
    for (size_t k = 0; k < PLANES; k++)
        least.plane[k] =
            least.bits & ((less & a->plane[k]) | (~less & b->plane[k]));
    return least;
}

static struct counters load(const uint8_t *body, const struct shape *shape,
                            size_t at) {
    struct counters c = {.bits = load64(body + at)};
    for (size_t k = 0; k < PLANES; k++)
        c.plane[k] = load64(plane_of(body, shape, at, k));
    return c;
}

static void counting_join(uint8_t *body, const struct shape *shape,
                          uint64_t block, const struct block_ref *other,
                          enum joining how) {
    const size_t line = LINE_BYTES * (size_t)block;
    const size_t there = LINE_BYTES * (size_t)other->number;
    uint64_t used[PLANES] = {0};
    for (size_t i = 0; i < LINE_BYTES; i += 8) {
        const struct counters a = load(body, shape, line + i);
        const struct counters b = load(other->body, other->shape, there + i);
        const struct counters c = how == SUMS ? added(&a, &b) : lesser(&a, &b);
        store64(body + line + i, c.bits);
        for (size_t k = 0; k < PLANES; k++) {
            store64(plane_of(body, shape, line + i, k), c.plane[k]);
            used[k] |= c.plane[k];
        }
    }
    for (size_t k = FIRST_MARKED; k < PLANES; k++)
        mark(body, shape, line, k, used[k] != 0);
}

static double counting_fpr(const struct shape *shape, double items) {
    return line_fpr(shape->blocks, shape->probes, items);
}

static double counting_quick_fpr(const struct shape *shape, double items,
                                 double *error) {
    return line_quick_fpr(shape->blocks, shape->probes, items, error);
}

static const struct kernel *const counting_kernels[] = {
#if ON_X86
    &counting_avx2,
#elif ON_SIMD128
    &counting_simd128,
#elif ON_NEON
    &counting_neon,
#endif
    &counting_scalar};

/* One line in each plane, and the line of its marks. */
static size_t counter_offsets(const struct shape *shape, uint64_t hash,
                              uint64_t *at) {
    const size_t line = line_offset(hash, shape);
    for (size_t k = 0; k < PLANES; k++) at[k] = plane_offset(shape, line, k);
    const size_t marks = plane_offset(shape, 0, PLANES);
    at[PLANES] = marks + line / LINE_BYTES / 4 / LINE_BYTES * LINE_BYTES;
    return PLANES + 1;
}

static const struct counting in_planes = {
    .count = counting_count,
    .join = counting_join,
    .counter_offsets = counter_offsets,
};

const struct kind kind_counting = {
    .name = "counting",
    .code = 8,
    .hash = "xxh3",
    .can = CALYX_CAN_ADD | CALYX_CAN_REMOVE | CALYX_CAN_COUNT |
           CALYX_CAN_MERGE | CALYX_CAN_INTERSECT | CALYX_CAN_FOLD |
           CALYX_CAN_GROW | CALYX_CAN_RANGE,
    .block_bits = 8 * LINE_BYTES,
    .one_block = true,
    .counter_bits = PLANES * 8 * LINE_BYTES + MARKS,
    .most_blocks = UINT64_C(1) << 35,
    .most_probes = 2 * LINE_COLUMNS,
    .probe_step = 1,
    .least_fpr = 1e-8,
    .fpr = counting_fpr,
    .quick_fpr = counting_quick_fpr,
    .bits_of_key = line_bits_of_key,
    .kernels = counting_kernels,
    .counting = &in_planes,
};
