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
 *           v                     | * salt[16]:       the choice of words
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
 * The choice. For each k there are a few sets of k words, such that these sets
 * and what xor makes of them, word w becoming w ^ b for any b below 16, hold
 * every pair of words equally often. Mathematicians call that a block design.
 * One set will do for k = 6, and few for any k, so the rows that tell which
 * words take part stay in the first-level cache. Rotating one set, which is
 * simpler, does not treat all pairs alike, and takes 10.12 bits.
 *
 * The price of one line is that lines fill unevenly, which tells at low rates:
 * 15.6 bits for 0.1 % (textbook 14.4), 22.1 for 0.01 % (19.2). The kind line2
 * gives each key two lines with half the probes in each. The luck of the two
 * evens out, at the price of a second cache line: 14.6 and 19.8 bits.
 */
#include "kind/line.h"

#include <math.h>

#include "base/bits.h"
#include "kind/counting.h"
#include "kind/kind.h"

const uint32_t line_salt[LINE_WORDS + 1] = {
    0x47B6137Bu, 0x44974D91u, 0x8824AD5Bu, 0xA2B7289Du, 0x705495C7u,
    0x2DF1424Bu, 0x9EFC4947u, 0x5C6BFB31u, 0x9E3779B1u, 0x85EBCA77u,
    0xC2B2AE3Du, 0x27D4EB2Fu, 0x165667B1u, 0xCC9E2D51u, 0x1B873593u,
    0xE6546B65u, 0xB5297A4Du,
};

/* The sets, in bits: bit w for word w. They were found by multiplying one set
 * by elements of the field GF(16); a test counts the pairs. Those for more than
 * eight words are what the others leave out. */
#define SETS_OF_1(X) X(0x0001)
#define SETS_OF_2(X)                                                      \
    X(0x0003), X(0x0005), X(0x0011), X(0x0101), X(0x0006), X(0x0014),     \
        X(0x0110), X(0x0108), X(0x0012), X(0x0104), X(0x0018), X(0x0140), \
        X(0x0180), X(0x0120), X(0x0102)
#define SETS_OF_3(X) X(0x001C), X(0x0121), X(0x0150), X(0x0106), X(0x0188)
#define SETS_OF_4(X) X(0x003C), X(0x1212), X(0x0550), X(0x0609), X(0x1188)
#define SETS_OF_5(X) X(0x011B), X(0x0368), X(0x1524)
#define SETS_OF_6(X) X(0x0356)
#define SETS_OF_7(X) X(0x035B), X(0x1791), X(0x154B), X(0x126E), X(0x17C2)
#define SETS_OF_8(X)                                                      \
    X(0x00FF), X(0x5555), X(0x6666), X(0x6969), X(0x6996), X(0x3CC3),     \
        X(0x5AA5), X(0x33CC), X(0x5A5A), X(0x6699), X(0x3C3C), X(0x0FF0), \
        X(0x55AA), X(0x3333), X(0x0F0F)

/* Sixteen rows for a set, one for each b. */
#define FOUR(set, w)                                                \
    (set) >> (w)&1, (set) >> ((w) ^ 1) & 1, (set) >> ((w) ^ 2) & 1, \
        (set) >> ((w) ^ 3) & 1
#define ROW(set, b)                                           \
    {                                                         \
        FOUR(set, b), FOUR(set, (b) ^ 4), FOUR(set, (b) ^ 8), \
            FOUR(set, (b) ^ 12)                               \
    }
#define ROWS(set)                                                             \
    ROW(set, 0), ROW(set, 1), ROW(set, 2), ROW(set, 3), ROW(set, 4),          \
        ROW(set, 5), ROW(set, 6), ROW(set, 7), ROW(set, 8), ROW(set, 9),      \
        ROW(set, 10), ROW(set, 11), ROW(set, 12), ROW(set, 13), ROW(set, 14), \
        ROW(set, 15)
#define OTHERS(set) ROWS(0xFFFF ^ (set))

_Alignas(64) const uint8_t line_rows[][LINE_WORDS] = {
    SETS_OF_1(ROWS),   SETS_OF_2(ROWS),   SETS_OF_3(ROWS),   SETS_OF_4(ROWS),
    SETS_OF_5(ROWS),   SETS_OF_6(ROWS),   SETS_OF_7(ROWS),   SETS_OF_8(ROWS),
    SETS_OF_7(OTHERS), SETS_OF_6(OTHERS), SETS_OF_5(OTHERS), SETS_OF_4(OTHERS),
    SETS_OF_3(OTHERS), SETS_OF_2(OTHERS), SETS_OF_1(OTHERS), ROWS(0xFFFF),
};

const struct line_choice line_choices[LINE_WORDS + 1] = {
    {0, 0},    {0, 16},    {16, 240},   {256, 80},  {336, 80},  {416, 48},
    {464, 16}, {480, 80},  {560, 240},  {800, 80},  {880, 16},  {896, 48},
    {944, 80}, {1024, 80}, {1104, 240}, {1344, 16}, {1360, 16},
};

/* ---- The plain kernels: the definition the others are held to ------------ */

MELT bool in_line_scalar(const uint8_t *line, const uint64_t *given,
                         const uint8_t *row) {
    const uint64_t hash = *given;
    uint64_t words = line_words(row);
    for (; words; words &= words - 1) {
        const int word = line_first(words);
        if (!(peek32(line + 4 * word) >> line_spot(hash, word) & 1))
            return false;
    }
    return true;
}

MELT bool add_to_line_scalar(uint8_t *line, const uint64_t *given,
                             const uint8_t *row) {
    const uint64_t hash = *given;
    uint64_t words = line_words(row);
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
                            const uint8_t *row) {
    const uint64_t hash = *given;
    struct line_mask missing = {{0}};
    uint64_t words = line_words(row);
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

LINE_SINGLES(scalar, , in_line_scalar, add_to_line_scalar, share_line_scalar)
LINE_KERNELS(scalar, CPU_SCALAR, )
LINE2_KERNELS(scalar, CPU_SCALAR, )
COUNTING_KERNEL(counting_scalar, CPU_SCALAR, , one_scalar_has,
                line_scalar_has_run, counting_add_scalar,
                counting_remove_scalar)

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
    .one_block = true,
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
