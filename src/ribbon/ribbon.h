/*
 * What lookups in the ribbon kind and its construction must agree on: from a
 * hash and a shape to an equation and its place. ribbon.c has the idea.
 *
 * Rows come in groups of 16, the blocks of the shape. A group stores a word of
 * 16 bits for each result bit, bit i for row i: `probes` words, or one more in
 * the first `wide` groups. Groups come in lots of 512: the words of the groups,
 * zeros up to a multiple of 64 bytes, and 64 bytes of flags, one bit a group.
 *
 *     lot     [ group 0 | group 1 | ... | group 511 | zeros | flags ]
 *     group   [ word 0 | word 1 | ... ]    a word for each column, bit i: row i
 *
 * An equation of a group covers the rows of this group and of the next two. It
 * does not leave its lot, nor the groups of one width: there it starts earlier.
 */
#ifndef CALYX_RIBBON_H
#define CALYX_RIBBON_H

#include "base/bits.h"
#include "base/compiler.h"
#include "kind/kind.h"

enum {
    GROUP_ROWS = 16,
    SPAN_GROUPS = 3, /* that an equation covers: 48 rows. 64 save 0.8 % of the
                        bits; lookups from memory then take 6 to 12 % longer,
                        building 37 % */
    LOT_GROUPS = 512,
    FLAG_BYTES = 64, /* of a lot                                           */
    WIDE_UNIT = 32,  /* `wide` is a multiple, so that lots are aligned     */
    MOST_WORDS = 31  /* of a group; kernels read 32, into the flags after  */
};

/*
 * The equation of a hash: of the 48 rows that it covers, those whose
 * coefficient is 1 sum up, modulo 2, to the result, in each result bit.
 *
 * The high bits of the hash choose the group, so in a group of a large filter
 * they are all alike: the low half has to go through both products. All factors
 * have 32 bits, as vectors multiply.
 */
static const uint64_t LOW_FACTOR = 0xD6E8FEB5;
static const uint64_t HIGH_FACTOR = 0xCA9B0C7D;
static const uint64_t RESULT_FACTOR = 0xB5297A4D;

ALWAYS_INLINE uint64_t swap_halves(uint64_t x) {
    return x << 32 | x >> 32;
}

ALWAYS_INLINE uint64_t ribbon_mix(uint64_t hash) {
    const uint64_t low = (uint32_t)hash * LOW_FACTOR;
    const uint64_t high = ((hash ^ low) >> 32) * HIGH_FACTOR;
    return swap_halves(low) ^ high;
}

ALWAYS_INLINE uint64_t ribbon_coefficients(uint64_t mixed) {
    return mixed >> (64 - SPAN_GROUPS * GROUP_ROWS);
}

/* Result bit i is bit 2i for i < 16, else bit 2 (i - 16) + 1: vectors want it
 * so. The low bits of the product mix too little and are dropped. */
ALWAYS_INLINE uint32_t ribbon_result(uint64_t mixed) {
    return (uint32_t)((uint32_t)(mixed ^ mixed >> 32) * RESULT_FACTOR >> 24);
}

/* Where word i of a group has its result bit. */
ALWAYS_INLINE uint32_t result_place(uint32_t i) {
    return 2 * (i % 16) + i / 16;
}

/* The first n of the even places, n at most 16. */
ALWAYS_INLINE uint32_t even_places(uint32_t n) {
    return UINT32_C(0x55555555) & (uint32_t)((UINT64_C(1) << 2 * n) - 1);
}

/* The places of all words of a group. */
ALWAYS_INLINE uint32_t result_mask(uint32_t words) {
    return words <= 16 ? even_places(words)
                       : even_places(16) | even_places(words - 16) << 1;
}

ALWAYS_INLINE uint64_t ribbon_next_hash(uint64_t hash) {
    return (hash ^ hash >> 32) * UINT64_C(0x9E3779B97F4A7C15);
}

/* The lowest bit is for the builder. */
ALWAYS_INLINE uint64_t ribbon_next_value_hash(uint64_t hash) {
    return ribbon_next_hash(hash) & ~UINT64_C(1);
}

/* ---- Places -------------------------------------------------------------- */

ALWAYS_INLINE uint64_t lesser(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

ALWAYS_INLINE uint64_t group_of(uint64_t hash, const struct shape *shape) {
    return scale64(hash, shape->blocks);
}

ALWAYS_INLINE uint64_t lot_end(uint64_t group, const struct shape *shape) {
    return lesser((group | (LOT_GROUPS - 1)) + 1, shape->blocks);
}

/* Equations that start at or after a group cover none from here on: they do not
 * leave their lot, nor the groups of one width. */
ALWAYS_INLINE uint64_t span_end(uint64_t group, const struct shape *shape) {
    const uint64_t end = group < shape->wide ? shape->wide : shape->blocks;
    return lesser((group | (LOT_GROUPS - 1)) + 1, end);
}

/* The first of the three groups that the equations of a group cover. */
ALWAYS_INLINE uint64_t first_group(uint64_t group, const struct shape *shape) {
    return lesser(group, span_end(group, shape) - SPAN_GROUPS);
}

ALWAYS_INLINE uint32_t words_of(uint64_t group, const struct shape *shape) {
    return shape->probes + (group < shape->wide);
}

/* Bytes of the words of all groups before this one. */
ALWAYS_INLINE uint64_t words_before(uint64_t group, const struct shape *shape) {
    return 2 * (group * shape->probes + lesser(group, shape->wide));
}

/* Byte offsets in the body: of the words of a group, and of its flag. */
ALWAYS_INLINE uint64_t words_at(uint64_t group, const struct shape *shape) {
    return group / LOT_GROUPS * FLAG_BYTES + words_before(group, shape);
}

/* Of the flags of its lot. */
ALWAYS_INLINE uint64_t flags_at(uint64_t group, const struct shape *shape) {
    const uint64_t end = words_before(lot_end(group, shape), shape);
    return (group / LOT_GROUPS * FLAG_BYTES + end + 63) / 64 * 64;
}

ALWAYS_INLINE bool is_bumped(const uint8_t *flags, uint64_t group) {
    return flags[group % LOT_GROUPS / 8] >> group % 8 & 1;
}

/* Without a branch on whether the equations hold: it would be mispredicted
 * once in a while, after a wait for memory, and all work after it be lost. */
ALWAYS_INLINE enum layer_answer layer_answer(bool bumped, bool holds) {
    return (enum layer_answer)(2 * bumped | (holds & !bumped));
}

/* Bytes of a body. */
uint64_t ribbon_bytes(const struct shape *shape);

/* What a lookup in a layer tests: of `count` columns, the bits in these rows
 * from first_row on sum up to `sums`, modulo 2, and must to `wanted`. */
struct layer_equations {
    uint64_t group, first_row, rows;
    uint32_t count, sums, wanted;
    bool is_bumped;
};

struct layer_equations ribbon_equations(const uint8_t *body,
                                        const struct shape *shape,
                                        uint64_t hash);
bool ribbon_is_bumped_in_copies(const struct shape *shape, uint64_t hash,
                                const uint8_t *copies);

extern const struct construction ribbon_construction;
extern const struct kernel ribbon_scalar, ribbon_avx2, ribbon_avx512,
    ribbon_neon;

/* has_batch by the has_batch_in_layer of a kernel. */
size_t ribbon_has_batch(const struct kernel *kernel, const uint8_t *body,
                        const struct shape *shape, struct batch batch,
                        bool *found);

#endif
