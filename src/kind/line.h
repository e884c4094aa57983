/* What the kernels of the kinds line, line2 and counting share. line.c tells
 * how a line works. */
#ifndef CALYX_LINE_H
#define CALYX_LINE_H

#include "base/bits.h"
#include "kind/kernel.h"

enum {
    LINE_BYTES = 64,
    LINE_WORDS = 16,         /* of 32 bits */
    LINE_CHOICE = LINE_WORDS /* the salt after those of the words */
};

/* Odd multipliers, one for each word of a line and one for the choice. */
extern const uint32_t line_salt[LINE_WORDS + 1];

/* A choice gives each word a rank: word w's is the w-th nibble from below. The
 * words with ranks below the number of probes take part. */
extern const uint64_t line_ranks[256];

static inline uint32_t line_choice(uint64_t hash) {
    return (uint32_t)hash * line_salt[LINE_CHOICE] >> 24;
}

/* The words that a key takes, each as the top bit of its nibble. Bytes hold
 * every other rank, with room for the difference. */
static inline uint64_t line_words(uint64_t hash, uint32_t probes) {
    const uint64_t each = UINT64_C(0x0101010101010101);
    const uint64_t limit = (0x7F + probes) * each;
    const uint64_t ranks = line_ranks[line_choice(hash)];
    const uint64_t even = limit - (ranks & 0x0F * each);
    const uint64_t odd = limit - (ranks >> 4 & 0x0F * each);
    return (even & 0x80 * each) >> 4 | (odd & 0x80 * each);
}

static inline int line_first(uint64_t words) {
    return __builtin_ctzll(words) / 4;
}

/* Which of the 32 bits of a word a key sets. */
static inline uint32_t line_spot(uint64_t hash, int word) {
    return (uint32_t)hash * line_salt[word] >> 27;
}

static inline size_t line_offset(uint64_t hash, const struct shape *shape) {
    return (size_t)(LINE_BYTES * scale64(hash, shape->blocks));
}

/* The hash that picks the second line of a key, and the bits there. */
static inline uint64_t line_second(uint64_t hash) {
    return (hash ^ hash >> 32) * UINT64_C(0x9E3779B97F4A7C15);
}

/* Bits that a key misses in a line, as a line of 8 words of 64. */
struct line_mask {
    _Alignas(LINE_BYTES) uint64_t word[LINE_BYTES / 8];
};

/* Set them in a line that other threads may be adding to. The locked
 * instruction is dear, so it is used only for the words given, one bit each,
 * where something is missing. */
static inline void line_share(uint8_t *line, const struct line_mask *missing,
                              uint32_t words) {
    for (; words; words &= words - 1) {
        const int i = __builtin_ctz(words);
        set64(line + 8 * i, missing->word[i]);
    }
}

MELT void line_call(const uint8_t *body, const struct shape *shape,
                    uint64_t hash, enum distance distance) {
    call_line(body + line_offset(hash, shape), distance);
}

MELT void line2_call(const uint8_t *body, const struct shape *shape,
                     uint64_t hash, enum distance distance) {
    line_call(body, shape, hash, distance);
    line_call(body, shape, line_second(hash), distance);
}

/* Add a hash to a counting filter, whose lines are followed by its counters. */
bool counting_add(uint8_t *body, const struct shape *shape,
                  const uint64_t *hash);
void counting_call(const uint8_t *body, const struct shape *shape,
                   uint64_t hash, enum distance distance);

/* What a level brings: is this key in this line? Add it. */
typedef bool in_line(const uint8_t *line, const uint64_t *hash,
                     uint32_t probes);
typedef bool add_to_line(uint8_t *line, const uint64_t *hash, uint32_t probes);

MELT bool has_in_two(const uint8_t *body, const struct shape *shape,
                     const uint64_t *hash, in_line *in) {
    const uint64_t second = line_second(*hash);
    const uint32_t each = shape->probes / 2;
    const bool here = in(body + line_offset(*hash, shape), hash, each);
    const bool there = in(body + line_offset(second, shape), &second, each);
    return here & there; /* no branch: both lines are on their way anyway */
}

MELT bool add_to_two(uint8_t *body, const struct shape *shape,
                     const uint64_t *hash, add_to_line *add) {
    const uint64_t second = line_second(*hash);
    const uint32_t each = shape->probes / 2;
    const bool here = add(body + line_offset(*hash, shape), hash, each);
    const bool there = add(body + line_offset(second, shape), &second, each);
    return here | there;
}

/* Define the kernels of one level, of three functions that the level brings:
 * is this key in this line? add it; add it while other threads do. A counting
 * filter is asked as a line filter is. */
#define LINE_KERNELS(level, cpu, TARGET, in, add, share)                       \
    TARGET MELT bool one_##level##_has(const uint8_t *body,                    \
                                       const struct shape *shape,              \
                                       const uint64_t *hash) {                 \
        return in(body + line_offset(*hash, shape), hash, shape->probes);      \
    }                                                                          \
    TARGET MELT bool one_##level##_add(                                        \
        uint8_t *body, const struct shape *shape, const uint64_t *hash) {      \
        return add(body + line_offset(*hash, shape), hash, shape->probes);     \
    }                                                                          \
    TARGET MELT bool one_##level##_share(                                      \
        uint8_t *body, const struct shape *shape, const uint64_t *hash) {      \
        return share(body + line_offset(*hash, shape), hash, shape->probes);   \
    }                                                                          \
    TARGET MELT bool two_##level##_has(const uint8_t *body,                    \
                                       const struct shape *shape,              \
                                       const uint64_t *hash) {                 \
        return has_in_two(body, shape, hash, in);                              \
    }                                                                          \
    TARGET MELT bool two_##level##_add(                                        \
        uint8_t *body, const struct shape *shape, const uint64_t *hash) {      \
        return add_to_two(body, shape, hash, add);                             \
    }                                                                          \
    TARGET MELT bool two_##level##_share(                                      \
        uint8_t *body, const struct shape *shape, const uint64_t *hash) {      \
        return add_to_two(body, shape, hash, share);                           \
    }                                                                          \
    KERNEL(line_##level, cpu, TARGET, one_##level##_has, line_call,            \
           one_##level##_add, line_call)                                       \
    KERNEL(line_##level##_shared, cpu, TARGET, one_##level##_has, line_call,   \
           one_##level##_share, line_call)                                     \
    KERNEL(line2_##level, cpu, TARGET, two_##level##_has, line2_call,          \
           two_##level##_add, line2_call)                                      \
    KERNEL(line2_##level##_shared, cpu, TARGET, two_##level##_has, line2_call, \
           two_##level##_share, line2_call)                                    \
    KERNEL(counting_##level, cpu, TARGET, one_##level##_has, line_call,        \
           counting_add, counting_call)

#define LINE_DECLARE(level)                                         \
    extern const struct kernel line_##level, line_##level##_shared, \
        line2_##level, line2_##level##_shared, counting_##level;

LINE_DECLARE(scalar)
LINE_DECLARE(avx2)
LINE_DECLARE(avx512)

/* The rate of a line filter whose lines took `items` keys of so many probes. */
double line_fpr(uint64_t lines, uint32_t probes, double items);

/* The kernels of a kind, best first. */
#if ON_X86
#define LINE_LEVELS(kind, suffix) \
    &kind##_avx512##suffix, &kind##_avx2##suffix, &kind##_scalar##suffix
#else
#define LINE_LEVELS(kind, suffix) &kind##_scalar##suffix
#endif

#endif
