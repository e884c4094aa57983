/*
 * A layout in one line, for the bits that tutorials and programs of one's own
 * have written:
 *
 *     murmur3-32 seeds 41..47 mod 5000000 msb
 *     fnv1a double 7 mod 1000
 *     murmur3-64 seeds 0..2 mask 1024 byte
 *
 * The words, in this order: a hash, how its numbers are computed, how a key
 * gets its k numbers, how a number becomes a position, and where the bit of a
 * position lies. doc/OTHERS.md has the whole grammar.
 */
#ifndef CALYX_FOREIGN_LAYOUT_LINE_H
#define CALYX_FOREIGN_LAYOUT_LINE_H

#include <calyx/calyx.h>

#include "foreign/textbook/line_hash.h"

/* Where bit p lies. */
enum bit_order {
    IN_WORDS,     /* bit p % 64 of word p / 64, 8 bytes, little-endian */
    IN_BIG_WORDS, /* the same of big-endian words */
    LSB_FIRST,    /* bit p % 8 of byte p / 8; no more bytes than are needed */
    MSB_FIRST,    /* the same from the highest bit on, as SETBIT has it */
    BYTE_EACH     /* byte p is 0 or 1 */
};

enum { LINE_MOST_SEEDS = 64, LINE_MOST_TEXT = 832 };

struct layout_line {
    const struct line_hash *hash; /* NULL: no line was given */
    bool is_signed;               /* a number may be below 0 */
    bool wraps;                   /* sums are cut to 64 bits */
    bool is_double; /* number i is first + i * second, for i = 0 to k - 1 */
    uint32_t seeds[LINE_MOST_SEEDS]; /* one for each number; with is_double,
                                        none, or of the first and the second */
    uint32_t seed_count;
    uint32_t probes;    /* k */
    uint64_t flips;     /* with is_double, the hash has one number and there are
                           no seeds: the second is the first xor this */
    uint64_t positions; /* the modulus, or the mask and 1 */
    enum bit_order order;
    char text[LINE_MOST_TEXT]; /* the line, with all that can be left out */
};

/* Fails with the word that is wrong. */
calyx_status layout_line_parse(const char *text, struct layout_line *line,
                               calyx_error *why);

/* What is wrong with it by design: more absent keys pass than the formula says.
 * NULL: nothing is known. */
const char *layout_line_flaw(const struct layout_line *line);

#endif
