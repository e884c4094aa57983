/*
 * The line kind: a blocked Bloom filter whose block is one cache line.
 *
 * A line is 8 columns of 64 bits. A key goes to one line, picked by the high
 * bits of its hash; there it takes k of the 8 columns, and sets one bit in
 * each. So every lookup costs one cache line, and with vectors half a dozen
 * instructions, whatever k is.
 *
 *     hash  hhhhhhhhhhhhhhhhhhhh..llllllllllllllll
 *           |  * lines >> 64      |
 *           v                     | bits 5 and up:    the choice of columns
 *     line  which of them         | * salt[w] >> 26:  the spot in column w
 *                                 v
 *             column 0   column 1   column 2         column 7
 *           [ 0000..0  | ........ | 0001..0  | ... | ........ ]  words 0 to 7
 *           [ 0100..0  | ........ | 0000..0  | ... | ........ ]  words 8 to 15
 *
 * Why columns, and not k bits anywhere in the line? Because a register holds 8
 * words, and a shift by a different amount in each of them finds all k bits at
 * once. The two words of a column lie 32 bytes apart, so that one instruction
 * picks the right one for every column. It costs next to nothing in rate, as
 * long as every pair of columns is chosen equally often: 9.93 bits a key for
 * 1 %, where k bits anywhere in the line need 9.92, and bits anywhere in memory
 * 9.59.
 *
 * The choice. For each k there is a list of sets of k columns, its length a
 * power of two, so that a few bits of the hash pick one. Every column is in as
 * many of them as any other, and every pair of columns too, or nearly: at the
 * loads for which k is the best number, that changes the rate by less than a
 * thousandth of it. More than 8 probes take every column, and a second bit in
 * k - 8 of them.
 *
 * The price of one line is that lines fill unevenly, which costs memory at low
 * rates: 15.6 bits for 0.1 % (textbook 14.4), 22.1 for 0.01 % (19.2). The kind
 * line2 gives each key two lines with half the probes in each. The luck of the
 * two evens out, at the price of a second cache line: 14.6 and 19.9 bits.
 */
#include "kind/line.h"

#include <math.h>

#include "base/bits.h"
#include "kind/counting.h"
#include "kind/kind.h"

const uint32_t line_salt[LINE_COLUMNS] = {
    0x47B6137Bu, 0x44974D91u, 0x8824AD5Bu, 0xA2B7289Du,
    0x705495C7u, 0x2DF1424Bu, 0x9EFC4947u, 0x5C6BFB31u,
};

/* All sets of one column; of two columns, with four sets twice; of three
 * columns, with eight sets twice; of four columns, except six sets. A test
 * counts columns and pairs. Sets of more than four columns are complements of
 * sets of three, two and one. */
#define SETS_OF_1(X) \
    X(0x01), X(0x02), X(0x04), X(0x08), X(0x10), X(0x20), X(0x40), X(0x80)
#define SETS_OF_2(X)                                                        \
    X(0x03), X(0x05), X(0x06), X(0x09), X(0x0A), X(0x0C), X(0x11), X(0x12), \
        X(0x14), X(0x18), X(0x21), X(0x22), X(0x24), X(0x28), X(0x30),      \
        X(0x41), X(0x42), X(0x44), X(0x48), X(0x50), X(0x60), X(0x81),      \
        X(0x82), X(0x84), X(0x88), X(0x90), X(0xA0), X(0xC0), X(0x03),      \
        X(0x0C), X(0x30), X(0xC0)
#define SETS_OF_3(X)                                                        \
    X(0x07), X(0x0B), X(0x0D), X(0x0E), X(0x13), X(0x15), X(0x16), X(0x19), \
        X(0x1A), X(0x1C), X(0x23), X(0x25), X(0x26), X(0x29), X(0x2A),      \
        X(0x2C), X(0x31), X(0x32), X(0x34), X(0x38), X(0x43), X(0x45),      \
        X(0x46), X(0x49), X(0x4A), X(0x4C), X(0x51), X(0x52), X(0x54),      \
        X(0x58), X(0x61), X(0x62), X(0x64), X(0x68), X(0x70), X(0x83),      \
        X(0x85), X(0x86), X(0x89), X(0x8A), X(0x8C), X(0x91), X(0x92),      \
        X(0x94), X(0x98), X(0xA1), X(0xA2), X(0xA4), X(0xA8), X(0xB0),      \
        X(0xC1), X(0xC2), X(0xC4), X(0xC8), X(0xD0), X(0xE0), X(0x0B),      \
        X(0x16), X(0x2C), X(0x58), X(0xB0), X(0x61), X(0xC2), X(0x85)
#define SETS_OF_4(X)                                                        \
    X(0x17), X(0x1B), X(0x1D), X(0x1E), X(0x27), X(0x2B), X(0x2D), X(0x2E), \
        X(0x35), X(0x36), X(0x39), X(0x3A), X(0x3C), X(0x47), X(0x4B),      \
        X(0x4D), X(0x4E), X(0x53), X(0x56), X(0x59), X(0x5A), X(0x5C),      \
        X(0x63), X(0x65), X(0x66), X(0x69), X(0x6A), X(0x6C), X(0x71),      \
        X(0x72), X(0x74), X(0x78), X(0x87), X(0x8B), X(0x8D), X(0x8E),      \
        X(0x93), X(0x95), X(0x96), X(0x99), X(0x9A), X(0x9C), X(0xA3),      \
        X(0xA5), X(0xA6), X(0xA9), X(0xAC), X(0xB1), X(0xB2), X(0xB4),      \
        X(0xB8), X(0xC3), X(0xC5), X(0xC6), X(0xC9), X(0xCA), X(0xD1),      \
        X(0xD2), X(0xD4), X(0xD8), X(0xE1), X(0xE2), X(0xE4), X(0xE8)

#define SET(set)         (set)
#define OTHER_SET(set)   (LINE_ALL ^ (set))
#define TOP(set, column) (uint32_t)(set) >> (column) << 31
#define ROW(set)                                                         \
    {                                                                    \
        TOP(set, 0), TOP(set, 1), TOP(set, 2), TOP(set, 3), TOP(set, 4), \
            TOP(set, 5), TOP(set, 6), TOP(set, 7)                        \
    }
#define OTHER_ROW(set) ROW(LINE_ALL ^ (set))

#define LISTS(X, OTHER)                                                       \
    SETS_OF_1(X), SETS_OF_2(X), SETS_OF_3(X), SETS_OF_4(X), SETS_OF_3(OTHER), \
        SETS_OF_2(OTHER), SETS_OF_1(OTHER), X(LINE_ALL)

const uint8_t line_sets[LINE_SETS] = {LISTS(SET, OTHER_SET)};
_Alignas(64) const line_row line_rows[LINE_SETS] = {LISTS(ROW, OTHER_ROW)};

/* For 1 to 8 columns: at which set their list starts, and its length. Keys of 9
 * to 16 probes choose by the same lists the columns of their second bits. */
#define CHOICES(twice)                                                \
    CHOICE(0, 8, twice), CHOICE(8, 32, twice), CHOICE(40, 64, twice), \
        CHOICE(104, 64, twice), CHOICE(168, 64, twice),               \
        CHOICE(232, 32, twice), CHOICE(264, 8, twice), CHOICE(272, 1, twice)
#define CHOICE(first, count, twice) \
    { (first) * sizeof(line_row), ((count)-1) * sizeof(line_row), twice }

const struct line_choice line_choices[2 * LINE_COLUMNS + 1] = {
    {0, 0, false}, CHOICES(false), CHOICES(true)};

/* ---- The scalar kernels: the definition ---------------------------------- */

ALWAYS_INLINE bool in_columns(const uint8_t *line, uint64_t hash,
                              uint32_t columns, int start) {
    for (; columns; columns &= columns - 1) {
        const int column = __builtin_ctz(columns);
        const uint32_t spot = line_spot(hash, column, start);
        if (!(peek32(line + line_word(column, spot)) & line_bit(spot)))
            return false;
    }
    return true;
}

ALWAYS_INLINE bool in_line(const uint8_t *line, const uint64_t *hash,
                           struct line_choice choice) {
    const uint32_t set = line_set(*hash, choice);
    if (!choice.twice) return in_columns(line, *hash, set, FIRST_SPOT);
    return in_columns(line, *hash, LINE_ALL, FIRST_SPOT) &&
           in_columns(line, *hash, set, SECOND_SPOT);
}

/* How the words of a line are read and written. */
struct word_access {
    uint32_t (*load)(const void *);
    void (*store)(void *, uint32_t);
};

ALWAYS_INLINE bool add_to_columns(uint8_t *line, uint64_t hash,
                                  uint32_t columns, int start,
                                  struct word_access words) {
    uint32_t missing = 0;
    for (; columns; columns &= columns - 1) {
        const int column = __builtin_ctz(columns);
        const uint32_t spot = line_spot(hash, column, start);
        uint8_t *const word = line + line_word(column, spot);
        const uint32_t old = words.load(word);
        missing |= line_bit(spot) & ~old;
        words.store(word, old | line_bit(spot));
    }
    return missing != 0;
}

ALWAYS_INLINE bool add_by(struct word_access words, uint8_t *line,
                          uint64_t hash, struct line_choice choice) {
    const uint32_t set = line_set(hash, choice);
    if (!choice.twice)
        return add_to_columns(line, hash, set, FIRST_SPOT, words);
    const bool first = add_to_columns(line, hash, LINE_ALL, FIRST_SPOT, words);
    const bool second = add_to_columns(line, hash, set, SECOND_SPOT, words);
    return first | second;
}

/* Other threads may be reading. */
ALWAYS_INLINE bool add_to_line(uint8_t *line, const uint64_t *hash,
                               struct line_choice choice) {
    return add_by((struct word_access){peek32, poke32}, line, *hash, choice);
}

ALWAYS_INLINE bool add_to_line_atomic(uint8_t *line, const uint64_t *hash,
                                      struct line_choice choice) {
    struct line_mask bits = line_bits(*hash, choice);
    uint32_t words = 0;
    for (size_t i = 0; i < LINE_BYTES / 8; i++) {
        bits.word[i] &= ~peek64(line + 8 * i);
        words |= (uint32_t)(bits.word[i] != 0) << i;
    }
    line_set_atomic(line, &bits, words);
    return words != 0;
}

#define TARGET
#include "kind/line_template.h"

const struct kernel line_scalar = {
    .level = CPU_SCALAR,
    .has = line_has,
    .add = line_add,
    .has_batch = line_has_batch,
    .add_batch = line_add_batch,
};

#if !CALYX_NO_LINE2
const struct kernel line2_scalar = {
    .level = CPU_SCALAR,
    .has = line2_has,
    .add = line2_add,
    .has_batch = line2_has_batch,
    .add_batch = line2_add_batch,
};

const struct kernel line2_scalar_atomic = {
    .level = CPU_SCALAR,
    .has = line2_has,
    .add = line2_add_atomic,
    .has_batch = line2_has_batch,
    .add_batch = line2_add_batch_atomic,
};
#endif

#if !CALYX_NO_COUNTING
/* A counting filter looks keys up as a line filter does, so its kernel is
 * here. */

NO_CANARY static bool counting_add(uint8_t *body, const struct shape *shape,
                                   uint64_t hash) {
    return count_one(body, shape, &hash, count_low_scalar, count_high_scalar);
}

static size_t counting_add_batch(uint8_t *body, const struct shape *shape,
                                 struct batch batch, bool *fresh) {
    return count_batch(body, shape, batch, fresh, count_low_scalar,
                       count_high_scalar);
}

NO_CANARY static enum removal counting_remove(uint8_t *body,
                                              const struct shape *shape,
                                              uint64_t hash) {
    return remove_one_scalar(body, shape, &hash);
}

static size_t counting_remove_batch(uint8_t *body, const struct shape *shape,
                                    struct batch batch, bool *found) {
    return remove_batch_generic(body, shape, batch, found, remove_one_scalar);
}

const struct kernel counting_scalar = {
    .level = CPU_SCALAR,
    .has = line_has,
    .add = counting_add,
    .has_batch = line_has_batch,
    .add_batch = counting_add_batch,
    .remove = counting_remove,
    .remove_batch = counting_remove_batch,
};
#endif

/* ---- Rates --------------------------------------------------------------- */

static double fpr_of_one(const struct shape *shape, double items) {
    return line_fpr(shape->blocks, shape->probes, items);
}

static double quick_fpr_of_one(const struct shape *shape, double items,
                               double *error) {
    return line_quick_fpr(shape->blocks, shape->probes, items, error);
}

/* ---- Bits at any address ------------------------------------------------- */

static void add_to_unaligned_line(uint8_t *line, uint64_t hash,
                                  struct line_choice choice) {
    add_by((struct word_access){load32, store32}, line, hash, choice);
}

static bool in_unaligned_line(const uint8_t *line, uint64_t hash,
                              struct line_choice choice) {
    struct line_mask copy;
    __builtin_memcpy(&copy, line, LINE_BYTES);
    return in_line((const uint8_t *)&copy, &hash, choice);
}

static bool line_has_in_bits(const uint8_t *bits, const struct shape *shape,
                             uint64_t hash) {
    return in_unaligned_line(bits + line_offset(hash, shape), hash,
                             line_choices[shape->probes]);
}

static void line_add_to_bits(uint8_t *bits, const struct shape *shape,
                             uint64_t hash) {
    add_to_unaligned_line(bits + line_offset(hash, shape), hash,
                          line_choices[shape->probes]);
}

/* ---- The table of line --------------------------------------------------- */

static const struct kernel *const line_kernels[] = {
#if ON_X86
    &line_avx2,
#elif ON_SIMD128
    &line_simd128,
#elif ON_NEON
    &line_neon,
#endif
    &line_scalar};

const struct kind kind_line = {
    .name = "line",
    .code = 6,
    .hash = "xxh3",
    .can = CAN_BLOOM | CALYX_CAN_RANGE | CALYX_CAN_PARTS,
    .block_bits = 8 * LINE_BYTES,
    .one_block = true,
    .has_in_bits = line_has_in_bits,
    .add_to_bits = line_add_to_bits,
    .most_blocks = UINT64_C(1) << 35,
    .most_probes = 2 * LINE_COLUMNS,
    .probe_step = 1,
    .least_fpr = 1e-8,
    .fpr = fpr_of_one,
    .quick_fpr = quick_fpr_of_one,
    .bits_of_key = line_bits_of_key,
    .kernels = line_kernels,
    .atomic_kernels = line_kernels,
};

/* ---- line2 --------------------------------------------------------------- */

#if !CALYX_NO_LINE2
/* Every key adds to two lines of one body, and passes if it passes both. */
static double fpr_of_two(const struct shape *shape, double items) {
    return pow(line_fpr(shape->blocks, shape->probes / 2, 2 * items), 2);
}

static double quick_fpr_of_two(const struct shape *shape, double items,
                               double *error) {
    const double rate =
        line_quick_fpr(shape->blocks, shape->probes / 2, 2 * items, error);
    *error *= 2;
    return rate * rate;
}

static double bits_in_two(uint32_t probes) {
    return 2 * line_bits_of_key(probes / 2);
}

static size_t offsets_of_two(const struct shape *shape, uint64_t hash,
                             uint64_t *at) {
    at[0] = line_offset(hash, shape);
    at[1] = line_offset(line_second(hash), shape);
    return 2;
}

static bool has_in_copies_of_two(const struct shape *shape, uint64_t hash,
                                 const uint8_t *copies) {
    const struct line_choice choice = line_choices[shape->probes / 2];
    const uint64_t second = line_second(hash);
    return in_line(copies, &hash, choice) &&
           in_line(copies + LINE_BYTES, &second, choice);
}

static bool line2_has_in_bits(const uint8_t *bits, const struct shape *shape,
                              uint64_t hash) {
    const struct line_choice choice = line_choices[shape->probes / 2];
    const uint64_t second = line_second(hash);
    return in_unaligned_line(bits + line_offset(hash, shape), hash, choice) &&
           in_unaligned_line(bits + line_offset(second, shape), second, choice);
}

static void line2_add_to_bits(uint8_t *bits, const struct shape *shape,
                              uint64_t hash) {
    const struct line_choice choice = line_choices[shape->probes / 2];
    const uint64_t second = line_second(hash);
    add_to_unaligned_line(bits + line_offset(hash, shape), hash, choice);
    add_to_unaligned_line(bits + line_offset(second, shape), second, choice);
}

static const struct kernel *const line2_kernels[] = {
#if ON_X86
    &line2_avx2,
#elif ON_SIMD128
    &line2_simd128,
#elif ON_NEON
    &line2_neon,
#endif
    &line2_scalar};

static const struct kernel *const line2_atomic_kernels[] = {
#if ON_X86
    &line2_avx2_atomic,
#elif ON_SIMD128
    &line2_simd128_atomic,
#elif ON_NEON
    &line2_neon_atomic,
#endif
    &line2_scalar_atomic};

const struct kind kind_line2 = {
    .name = "line2",
    .code = 7,
    .hash = "xxh3",
    .can = CAN_BLOOM,
    .block_bits = 8 * LINE_BYTES,
    .offsets = offsets_of_two,
    .has_in_copies = has_in_copies_of_two,
    .has_in_bits = line2_has_in_bits,
    .add_to_bits = line2_add_to_bits,
    .most_blocks = UINT64_C(1) << 35,
    .most_probes = 4 * LINE_COLUMNS,
    .probe_step = 2,
    .least_fpr = 1e-14,
    .fpr = fpr_of_two,
    .quick_fpr = quick_fpr_of_two,
    .bits_of_key = bits_in_two,
    .kernels = line2_kernels,
    .atomic_kernels = line2_atomic_kernels,
};
#endif
