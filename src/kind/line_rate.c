/*
 * The false-positive rate of a line filter, exactly.
 *
 * An absent key passes if none of its bits is unset. By inclusion and exclusion
 * that is a sum over the sets of bits that might be unset:
 *
 *     rate = sum over sets A of the absent key's bits of
 *            (-1)^|A| P(all bits of A are unset)
 *
 * Only the numbers matter of columns in which A has one bit, and two: `ones`
 * and `twos`. Let `miss` be the odds that another key of this line misses all
 * of A. A key falls into this line with odds 1 in `lines`, so n keys leave A
 * unset with odds (1 - (1-miss)/lines)^n.
 *
 * One more chance to pass: another key of the line agrees in all 32 bits that
 * choose the pattern.
 */
#include <math.h>

#include "kind/line.h"

/* The odds that a key that takes `takes` columns, a bit in each, misses all
 * bits in `ones` columns and both in `twos` others. Where it takes such a
 * column, it misses with odds 63/64, or 62/64. Column by column, ways[n]
 * becomes the sum of the odds over all ways to take n of the columns so far. */
static double miss(uint32_t takes, uint32_t ones, uint32_t twos) {
    double ways[LINE_COLUMNS + 1] = {1}, all[LINE_COLUMNS + 1] = {1};
    for (uint32_t i = 0; i < LINE_COLUMNS; i++) {
        const double odds = (i < ones ? 63 : i < ones + twos ? 62 : 64) / 64.;
        for (uint32_t n = i + 1; n > 0; n--) {
            ways[n] += odds * ways[n - 1];
            all[n] += all[n - 1];
        }
    }
    return ways[takes] / all[takes];
}

/* The number of sets A with given ones and twos, with their signs. A
 * column that the absent key takes once adds nothing to A, or one bit with a
 * minus. In one that it takes twice, the second bit falls on the first with
 * odds 1/64; so it adds two bits with weight 63/64, and one, with a minus, with
 * weight 2 * 63/64 + 1/64. */
struct weights {
    double of[LINE_COLUMNS + 1][LINE_COLUMNS + 1]; /* [ones][twos] */
};

static struct weights weigh(uint32_t takes, uint32_t again) {
    struct weights w = {{{1}}};
    for (uint32_t i = 0; i < takes; i++) {
        const double one = i < again ? 127. / 64 : 1;
        const double two = i < again ? 63. / 64 : 0;
        for (uint32_t a = i + 2; a-- > 0;)
            for (uint32_t b = i + 2 - a; b-- > 0;) {
                if (a > 0) w.of[a][b] -= one * w.of[a - 1][b];
                if (b > 0) w.of[a][b] += two * w.of[a][b - 1];
            }
    }
    return w;
}

double line_fpr(uint64_t lines, uint32_t probes, double items) {
    const uint32_t takes = probes < LINE_COLUMNS ? probes : LINE_COLUMNS;
    const uint32_t again = probes - takes;
    const struct weights weights = weigh(takes, again);
    double rate = 0;
    for (uint32_t twos = 0; twos <= again; twos++)
        for (uint32_t ones = 0; ones <= takes - twos; ones++) {
            const double missed =
                miss(takes, ones, twos) * miss(again, ones, twos);
            const double unset =
                exp(items * log1p((missed - 1) / (double)lines));
            rate += weights.of[ones][twos] * unset;
        }
    const double twins = ldexp(items / (double)lines, -32);
    return fmin(1, fmax(0, rate) + twins);
}

/* A second bit falls on the first with odds 1/64. */
double line_bits_of_key(uint32_t probes) {
    const uint32_t again = probes > LINE_COLUMNS ? probes - LINE_COLUMNS : 0;
    return probes - again / 64.;
}
