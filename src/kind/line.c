/*
 * The line kind: a blocked Bloom filter whose block is one cache line.
 *
 * A line is 16 words of 32 bits. A key goes to one line, picked by the high
 * bits of its hash; there it takes k of the 16 words, and sets one bit in each.
 * So every question costs one cache line, and with vectors a dozen
 * instructions, whatever k is.
 *
 *     hash  hhhhhhhhhhhhhhhhhhhh..llllllllllllllll
 *           |  * lines >> 64      |
 *           v                     | * salt[16] >> 24: the choice of words
 *     line  which of them         | * salt[w] >> 27:  the bit in word w
 *                                 v
 *           [ 0100..0 | ........ | 0001..0 | ... | ........ | 0010..0 ]
 *             word 0     word 1     word 2                    word 15
 *
 * Why words, and not k bits anywhere in the line? Because a register holds a
 * line as 16 words, and a shift by a different amount in each of them makes
 * all k bits at once. It costs nothing in rate, as long as every pair of words
 * is chosen equally often: 9.91 bits a key for 1 %, where k bits anywhere in
 * the line need 9.92, and bits anywhere in memory 9.59.
 *
 * The choice. Number the words as the 16 elements of the field GF(16) and let
 * the rank of word w be a*w + b in that field, for a and b that the hash picks.
 * The words with the k lowest ranks take part. Such maps send any two words to
 * any two ranks equally often, which a mere rotation would not: rotating takes
 * 10.12 bits. The field's 15 possible a make 15 rows below; the
 * sixteenth, which saves a division, is the first again.
 *
 * The price of one line is that lines fill unevenly, which tells at low rates:
 * 15.6 bits for 0.1 % (textbook 14.4), 22.1 for 0.01 % (19.2). The kind line2
 * gives each key two lines with half the probes in each. The luck of the two
 * evens out, at the price of a second cache line: 14.6 and 19.8 bits.
 */
#include "kind/line.h"

#include <math.h>

#include "base/bits.h"
#include "kind/kind.h"

const uint32_t line_salt[LINE_WORDS + 1] = {
    0x47B6137Bu, 0x44974D91u, 0x8824AD5Bu, 0xA2B7289Du, 0x705495C7u,
    0x2DF1424Bu, 0x9EFC4947u, 0x5C6BFB31u, 0x9E3779B1u, 0x85EBCA77u,
    0xC2B2AE3Du, 0x27D4EB2Fu, 0x165667B1u, 0xCC9E2D51u, 0x1B873593u,
    0xE6546B65u, 0xB5297A4Du,
};

/* A row for each a; along it, the nibbles of a*w plus b, which is to say xor b,
 * for b from 0 to 15. The field's polynomial is x^4 + x + 1. */
#define PLUS(row, b) ((row) ^ (b)*UINT64_C(0x1111111111111111))
#define FOUR(row, b) \
    PLUS(row, b), PLUS(row, (b) + 1), PLUS(row, (b) + 2), PLUS(row, (b) + 3)
#define ROW(row) FOUR(row, 0), FOUR(row, 4), FOUR(row, 8), FOUR(row, 12)

const uint64_t line_ranks[256] = {
    ROW(0xFEDCBA9876543210), ROW(0xDF9B5713ECA86420), ROW(0x2147ED8B9AFC5630),
    ROW(0x9D15AE26FB73C840), ROW(0x63C914BE8D27FA50), ROW(0x428EF93517DBAC60),
    ROW(0xBC5243AD618F9E70), ROW(0x192A7F4CD5E6B380), ROW(0xE7F6C5D4A3B28190),
    ROW(0xC6B1285F394ED7A0), ROW(0x386D92C74F1AE5B0), ROW(0x843FD16A2E957BC0),
    ROW(0x7AE36BF258C149D0), ROW(0x5BA48679C23D1FE0), ROW(0xA5783CE1B4692DF0),
    ROW(0xFEDCBA9876543210),
};

/* ---- The plain kernels: the definition the others are held to ------------ */

MELT bool in_line_scalar(const uint8_t *line, const uint64_t *given,
                         uint32_t probes) {
    const uint64_t hash = *given;
    uint64_t words = line_words(hash, probes);
    for (; words; words &= words - 1) {
        const int word = line_first(words);
        if (!(peek32(line + 4 * word) >> line_spot(hash, word) & 1))
            return false;
    }
    return true;
}

MELT bool add_to_line_scalar(uint8_t *line, const uint64_t *given,
                             uint32_t probes) {
    const uint64_t hash = *given;
    uint64_t words = line_words(hash, probes);
    uint32_t missing = 0;
    for (; words; words &= words - 1) {
        const int word = line_first(words);
        const uint32_t old = load32(line + 4 * word);
        const uint32_t bit = UINT32_C(1) << line_spot(hash, word);
        missing |= bit & ~old;
        store32(line + 4 * word, old | bit);
    }
    return missing != 0;
}

MELT bool share_line_scalar(uint8_t *line, const uint64_t *given,
                            uint32_t probes) {
    const uint64_t hash = *given;
    struct line_mask missing = {{0}};
    uint64_t words = line_words(hash, probes);
    uint32_t places = 0;
    for (; words; words &= words - 1) {
        const int word = line_first(words);
        const uint32_t bit = UINT32_C(1) << line_spot(hash, word);
        if (peek32(line + 4 * word) & bit) continue;
        missing.word[word / 2] |= (uint64_t)bit << 32 * (word % 2);
        places |= UINT32_C(1) << word / 2;
    }
    line_share(line, &missing, places);
    return places != 0;
}

LINE_KERNELS(scalar, CPU_SCALAR, , in_line_scalar, add_to_line_scalar,
             share_line_scalar)

/* ---- The rate ------------------------------------------------------------ */

/*
 * A stranger passes if none of its k bits is unset. By inclusion and exclusion
 * that is a sum over the sets of bits that might be unset:
 *
 *     rate = sum over a = 0..k of (-1)^a C(k, a) P(a given bits are unset)
 *
 * The a bits are in a different word each. A key that shares this line takes k
 * of the 16 words, h of them among those a, with the odds of drawing k cards
 * of which h are marked; and it misses the bit in each with odds 31/32. Let
 * `miss` be the mean of (31/32)^h. A key falls into this line with odds 1 in
 * `lines`, so n keys leave the a bits unset with odds (1 - (1-miss)/lines)^n.
 *
 * One more chance to pass: another key of the line agrees in all 32 bits that
 * choose the pattern.
 */
static double choose(uint32_t n, uint32_t k) {
    double ways = 1;
    for (uint32_t i = 0; i < k; i++) ways = ways * (n - i) / (i + 1);
    return ways;
}

static double miss(uint32_t probes, uint32_t marked) {
    const double all = choose(LINE_WORDS, probes);
    double mean = 0, odds = 1;
    for (uint32_t h = 0; h <= marked && h <= probes; h++, odds *= 31. / 32)
        if (probes - h <= LINE_WORDS - marked)
            mean += odds * choose(marked, h) *
                    choose(LINE_WORDS - marked, probes - h) / all;
    return mean;
}

double line_fpr(uint64_t lines, uint32_t probes, double items) {
    double rate = 0, sign = 1;
    for (uint32_t a = 0; a <= probes; a++, sign = -sign)
        rate += sign * choose(probes, a) *
                exp(items * log1p((miss(probes, a) - 1) / (double)lines));
    const double twins = ldexp(items / (double)lines, -32);
    return fmin(1, fmax(0, rate) + twins);
}

static double fpr_of_one(const struct shape *shape, double items) {
    return line_fpr(shape->blocks, shape->probes, items);
}

/* Every key adds to two lines of one body, and passes if it passes both. */
static double fpr_of_two(const struct shape *shape, double items) {
    return pow(line_fpr(shape->blocks, shape->probes / 2, 2 * items), 2);
}

/* ---- The kinds ----------------------------------------------------------- */

static const struct kernel *const line_kernels[] = {LINE_LEVELS(line, )};
static const struct kernel *const line_shared[] = {LINE_LEVELS(line, _shared)};
static const struct kernel *const line2_kernels[] = {LINE_LEVELS(line2, )};
static const struct kernel *const line2_shared[] = {
    LINE_LEVELS(line2, _shared)};

const struct kind kind_line = {
    .name = "line",
    .code = 1,
    .hash = "xxh3",
    .block_bits = 8 * LINE_BYTES,
    .most_blocks = UINT64_C(1) << 35,
    .most_probes = LINE_WORDS,
    .probe_step = 1,
    .least_fpr = 1e-8,
    .fpr = fpr_of_one,
    .kernels = line_kernels,
    .shared = line_shared,
};

const struct kind kind_line2 = {
    .name = "line2",
    .code = 2,
    .hash = "xxh3",
    .block_bits = 8 * LINE_BYTES,
    .most_blocks = UINT64_C(1) << 35,
    .most_probes = 2 * LINE_WORDS,
    .probe_step = 2,
    .least_fpr = 1e-14,
    .fpr = fpr_of_two,
    .kernels = line2_kernels,
    .shared = line2_shared,
};
