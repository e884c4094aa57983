/* What the kernels of the kinds line, line2 and counting share. line.c tells
 * how a line works. */
#ifndef CALYX_LINE_H
#define CALYX_LINE_H

#include "base/bits.h"
#include "kind/kernel.h"

enum {
    LINE_BYTES = 64,
    LINE_COLUMNS = 8, /* of 64 bits: word w and word w + 8, of 32 bits each */
    LINE_SETS = 273,  /* of 1 to 8 columns, that keys choose from */
    LINE_ALL = 255    /* the set of all columns */
};

/* Odd multipliers, one for each column of a line. */
extern const uint32_t line_salt[LINE_COLUMNS];

/* Which columns a key takes: bit w for column w. The sets that have the same
 * number of columns stand together. */
extern const uint8_t line_sets[LINE_SETS];

/* The same for vectors: the top bit of word w for column w. */
typedef uint32_t line_row[LINE_COLUMNS];
extern const line_row line_rows[LINE_SETS];

/* Among which sets keys of so many probes choose: `first` is where they start
 * in line_rows, and `mask` has the bits of a hash that tell how far from there,
 * both in bytes. `twice`: keys take all columns, and a second bit in those of
 * the set. */
struct line_choice {
    uint16_t first, mask;
    bool twice;
};
extern const struct line_choice line_choices[2 * LINE_COLUMNS + 1];

static inline size_t line_chosen(uint64_t hash, struct line_choice from) {
    return from.first + (size_t)(hash & from.mask);
}

static inline uint32_t line_set(uint64_t hash, struct line_choice from) {
    return line_sets[line_chosen(hash, from) / sizeof(line_row)];
}

/* Where the bits of a product start that tell the spot of the bit in a column,
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
                                         struct line_choice from) {
    struct line_mask mask = {{0}};
    const uint32_t set = line_set(hash, from);
    line_mark(&mask, hash, from.twice ? LINE_ALL : set, FIRST_SPOT);
    if (from.twice) line_mark(&mask, hash, set, SECOND_SPOT);
    return mask;
}

/* Set bits that are missing in a line that other threads may be adding to. The
 * locked instruction is dear, so it is used only for the words given, one bit
 * each, where something is missing. */
static inline void line_share(uint8_t *line, const struct line_mask *missing,
                              uint32_t words) {
    for (; words; words &= words - 1) {
        const int i = __builtin_ctz(words);
        set64(line + 8 * i, missing->word[i]);
    }
}

MELT void line_call(const uint8_t *body, const struct shape *shape,
                    uint64_t hash) {
    call_line(body + line_offset(hash, shape));
}

MELT void line2_call(const uint8_t *body, const struct shape *shape,
                     uint64_t hash) {
    line_call(body, shape, hash);
    line_call(body, shape, line_second(hash));
}

/* What a level brings: is this key in this line? Add it, and tell whether any
 * bit was missing. */
typedef bool in_line(const uint8_t *line, const uint64_t *hash,
                     struct line_choice from);
typedef bool add_to_line(uint8_t *line, const uint64_t *hash,
                         struct line_choice from);

MELT bool has_in_one(const uint8_t *body, const struct shape *shape,
                     const uint64_t *hash, uint32_t probes, in_line *in) {
    return in(body + line_offset(*hash, shape), hash, line_choices[probes]);
}

MELT bool add_to_one(uint8_t *body, const struct shape *shape,
                     const uint64_t *hash, uint32_t probes, add_to_line *add) {
    return add(body + line_offset(*hash, shape), hash, line_choices[probes]);
}

MELT bool has_in_two(const uint8_t *body, const struct shape *shape,
                     const uint64_t *hash, in_line *in) {
    const uint64_t second = line_second(*hash);
    const uint32_t each = shape->probes / 2;
    const bool here = has_in_one(body, shape, hash, each, in);
    const bool there = has_in_one(body, shape, &second, each, in);
    return here & there; /* no branch: both lines are on their way anyway */
}

MELT bool add_to_two(uint8_t *body, const struct shape *shape,
                     const uint64_t *hash, add_to_line *add) {
    const uint64_t second = line_second(*hash);
    const uint32_t each = shape->probes / 2;
    const bool here = add_to_one(body, shape, hash, each, add);
    const bool there = add_to_one(body, shape, &second, each, add);
    return here | there;
}

/* Define functions on single hashes, as KERNEL wants them, of three that the
 * level brings: is this key in this line? add it; add it while other threads
 * do. */
#define LINE_SINGLES(level, TARGET, in, add, share)                       \
    TARGET MELT bool one_##level##_has(const uint8_t *body,               \
                                       const struct shape *shape,         \
                                       const uint64_t *hash) {            \
        return has_in_one(body, shape, hash, shape->probes, in);          \
    }                                                                     \
    TARGET MELT bool one_##level##_add(                                   \
        uint8_t *body, const struct shape *shape, const uint64_t *hash) { \
        return add_to_one(body, shape, hash, shape->probes, add);         \
    }                                                                     \
    TARGET MELT bool one_##level##_share(                                 \
        uint8_t *body, const struct shape *shape, const uint64_t *hash) { \
        return add_to_one(body, shape, hash, shape->probes, share);       \
    }                                                                     \
    TARGET MELT bool two_##level##_has(const uint8_t *body,               \
                                       const struct shape *shape,         \
                                       const uint64_t *hash) {            \
        return has_in_two(body, shape, hash, in);                         \
    }                                                                     \
    TARGET MELT bool two_##level##_add(                                   \
        uint8_t *body, const struct shape *shape, const uint64_t *hash) { \
        return add_to_two(body, shape, hash, add);                        \
    }                                                                     \
    TARGET MELT bool two_##level##_share(                                 \
        uint8_t *body, const struct shape *shape, const uint64_t *hash) { \
        return add_to_two(body, shape, hash, share);                      \
    }

/* Of those, the kernels of line2, and of line where the level has no loops of
 * its own for it. */
#define LINE2_KERNELS(level, cpu, TARGET)                                      \
    KERNEL(line2_##level, cpu, TARGET, two_##level##_has, line2_call,          \
           two_##level##_add, line2_call)                                      \
    KERNEL(line2_##level##_shared, cpu, TARGET, two_##level##_has, line2_call, \
           two_##level##_share, line2_call)

#define LINE_KERNELS(level, cpu, TARGET)                                     \
    KERNEL(line_##level, cpu, TARGET, one_##level##_has, line_call,          \
           one_##level##_add, line_call)                                     \
    KERNEL(line_##level##_shared, cpu, TARGET, one_##level##_has, line_call, \
           one_##level##_share, line_call)

#define LINE_DECLARE(level)                                         \
    extern const struct kernel line_##level, line_##level##_shared, \
        line2_##level, line2_##level##_shared, counting_##level;

LINE_DECLARE(scalar)
LINE_DECLARE(avx2)
LINE_DECLARE(avx512)
LINE_DECLARE(simd128)

/* The rate of a line filter whose lines took `items` keys of so many probes. */
double line_fpr(uint64_t lines, uint32_t probes, double items);
double line_bits_of_key(uint32_t probes);

/* The kernels of a kind, best first. */
#if ON_X86
#define LINE_LEVELS(kind, suffix) \
    &kind##_avx512##suffix, &kind##_avx2##suffix, &kind##_scalar##suffix
#elif ON_SIMD128
#define LINE_LEVELS(kind, suffix) \
    &kind##_simd128##suffix, &kind##_scalar##suffix
#else
#define LINE_LEVELS(kind, suffix) &kind##_scalar##suffix
#endif

#endif
