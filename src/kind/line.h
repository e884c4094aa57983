/* What the kernels of the kinds line, line2 and counting share. line.c explains
 * how a line works. */
#ifndef CALYX_LINE_H
#define CALYX_LINE_H

#include "base/bits.h"
#include "kind/batch_loops.h"

enum {
    LINE_BYTES = 64,
    LINE_COLUMNS = 8, /* of 64 bits: word w and word w + 8, of 32 bits each */
    LINE_SETS = 273,  /* of 1 to 8 columns, that keys choose from */
    LINE_ALL = 255    /* the set of all columns */
};

extern const struct kind kind_line;

/* Odd multipliers, one for each column of a line. */
extern const uint32_t line_salt[LINE_COLUMNS];

/* Which columns a key takes: bit w for column w. The sets that have the same
 * number of columns stand together. */
extern const uint8_t line_sets[LINE_SETS];

/* The same for vectors: the top bit of word w for column w. */
typedef uint32_t line_row[LINE_COLUMNS];
extern const line_row line_rows[LINE_SETS];

/* The sets that keys with a given number of probes choose from: `first` is
 * their start in line_rows, and `mask` selects the bits of a hash that are the
 * offset from there, both in bytes. `twice`: keys take all columns, and a
 * second bit in the columns of the set. Aligned for one instruction less a
 * lookup. */
struct line_choice {
    _Alignas(8) uint16_t first;
    uint16_t mask;
    bool twice;
};
extern const struct line_choice line_choices[2 * LINE_COLUMNS + 1];

static inline size_t line_chosen(uint64_t hash, struct line_choice choice) {
    return choice.first + (size_t)(hash & choice.mask);
}

static inline uint32_t line_set(uint64_t hash, struct line_choice choice) {
    return line_sets[line_chosen(hash, choice) / sizeof(line_row)];
}

/* The lowest bit of a product that is part of the spot of the bit in a column,
 * and of the second bit if there is one. */
enum { FIRST_SPOT = 26, SECOND_SPOT = 20 };

/* Which of the 64 bits of a column a key sets, counted from the top of the two
 * words. */
static inline uint32_t line_spot(uint64_t hash, int column, int start) {
    return (uint32_t)hash * line_salt[column] >> start & 63;
}

/* Where that is: spots from 32 on are in the second half of the line. */
static inline size_t line_word(int column, uint32_t spot) {
    return 4 * (size_t)column + (spot & 32);
}

static inline uint32_t line_bit(uint32_t spot) {
    return UINT32_C(1) << 31 >> (spot & 31);
}

static inline size_t line_offset(uint64_t hash, const struct shape *shape) {
    return (size_t)(LINE_BYTES * scale64(hash, shape->blocks));
}

ALWAYS_INLINE uint8_t *line_of(const struct part_view *part, uint64_t hash) {
    return (uint8_t *)part->body + line_offset(hash, &part->shape);
}

/* The hash that picks the second line of a key, and the bits there. */
static inline uint64_t line_second(uint64_t hash) {
    return (hash ^ hash >> 32) * UINT64_C(0x9E3779B97F4A7C15);
}

/* Bits of a line, as 8 words of 64. */
struct line_mask {
    _Alignas(LINE_BYTES) uint64_t word[LINE_BYTES / 8];
};

static inline void line_mark(struct line_mask *mask, uint64_t hash,
                             uint32_t columns, int start) {
    for (; columns; columns &= columns - 1) {
        const int column = __builtin_ctz(columns);
        const uint32_t spot = line_spot(hash, column, start);
        const size_t at = line_word(column, spot);
        mask->word[at / 8] |= (uint64_t)line_bit(spot) << 8 * (at % 8);
    }
}

/* All bits of a key. */
static inline struct line_mask line_bits(uint64_t hash,
                                         struct line_choice choice) {
    struct line_mask mask = {{0}};
    const uint32_t set = line_set(hash, choice);
    line_mark(&mask, hash, choice.twice ? LINE_ALL : set, FIRST_SPOT);
    if (choice.twice) line_mark(&mask, hash, set, SECOND_SPOT);
    return mask;
}

/* Set bits that are missing in a line that other threads may be adding to. The
 * locked instruction is slow, so it is used only for the words given, one bit
 * each, where something is missing. */
static inline void line_set_atomic(uint8_t *line,
                                   const struct line_mask *missing,
                                   uint32_t words) {
    for (; words; words &= words - 1) {
        const int i = __builtin_ctz(words);
        set64(line + 8 * i, missing->word[i]);
    }
}

/* ---- Prefetching --------------------------------------------------------- */

ALWAYS_INLINE void line_prefetch(const uint8_t *body, const struct shape *shape,
                                 uint64_t hash) {
    prefetch_l2(body + line_offset(hash, shape));
}

ALWAYS_INLINE void line2_prefetch(const uint8_t *body,
                                  const struct shape *shape, uint64_t hash) {
    line_prefetch(body, shape, hash);
    line_prefetch(body, shape, line_second(hash));
}

/* Eight hashes to prefetch into L2, and eight into L1, if wanted. */
struct prefetch_8 {
    const uint64_t *far, *near;
    bool into_l2, into_l1;
};

ALWAYS_INLINE void prefetch_at(const struct part_view *part,
                               struct prefetch_8 ahead, size_t i) {
    if (ahead.into_l2) prefetch_l2(line_of(part, ahead.far[i]));
    if (ahead.into_l1) prefetch_l1(line_of(part, ahead.near[i]));
}

/* ---- The kernels --------------------------------------------------------- */

extern const struct kernel line_scalar;
extern const struct kernel line2_scalar, line2_scalar_atomic, counting_scalar;
#if ON_X86
extern const struct kernel line_avx2;
extern const struct kernel line2_avx2, line2_avx2_atomic, counting_avx2;
/* The has_in_any of all these; in line_avx2.c. */
void line_has_in_any(const struct part_view *parts, size_t count,
                     const uint64_t *hashes, size_t n, bool *found);
#elif ON_SIMD128
extern const struct kernel line_simd128;
extern const struct kernel line2_simd128, line2_simd128_atomic;
extern const struct kernel counting_simd128;
#elif ON_NEON
extern const struct kernel line_neon;
extern const struct kernel line2_neon, line2_neon_atomic, counting_neon;
#endif

/* The rate of a line filter that holds `items` keys (line_rate.c). *error
 * becomes an upper estimate of what the logarithm of the quick one is wrong by.
 */
double line_fpr(uint64_t lines, uint32_t probes, double items);
double line_quick_fpr(uint64_t lines, uint32_t probes, double items,
                      double *error);
/* The mean number of bits that a key sets. */
double line_bits_of_key(uint32_t probes);

#endif
