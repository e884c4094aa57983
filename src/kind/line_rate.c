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
#include <float.h>
#include <math.h>

#include "kind/line.h"

/* The odds that a key that takes `takes` columns, a bit in each, misses all
 * bits in `ones` columns and both in `twos` others. Where it takes such a
 * column, it misses with odds 63/64, or 62/64. Column by column, ways[n]
 * becomes the sum of the odds over all ways to take n of the columns so far;
 * only for n that the columns left can still make `takes` of. */
static double miss(uint32_t takes, uint32_t ones, uint32_t twos) {
    static const double all[LINE_COLUMNS + 1] = {1,  8,  28, 56, 70,
                                                 56, 28, 8,  1};
    double ways[LINE_COLUMNS + 1] = {1};
    for (uint32_t i = 0; i < LINE_COLUMNS; i++) {
        const double odds = (i < ones ? 63 : i < ones + twos ? 62 : 64) / 64.;
        const uint32_t left = LINE_COLUMNS - 1 - i;
        const uint32_t least = takes > left ? takes - left : 1;
        for (uint32_t n = i + 1 < takes ? i + 1 : takes; n >= least; n--)
            ways[n] += odds * ways[n - 1];
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

/* The sum, and the sum of its terms without their signs. */
struct signed_sum {
    double sum, terms;
};

static struct signed_sum rate_by_signs(double lines, uint32_t takes,
                                       uint32_t again, double items) {
    const struct weights weights = weigh(takes, again);
    struct signed_sum rate = {0, 0};
    for (uint32_t twos = 0; twos <= again; twos++)
        for (uint32_t ones = 0; ones <= takes - twos; ones++) {
            const double missed =
                miss(takes, ones, twos) * miss(again, ones, twos);
            const double term = weights.of[ones][twos] *
                                exp(items * log1p((missed - 1) / lines));
            rate.sum += term;
            rate.terms += fabs(term);
        }
    return rate;
}

/* ---- Low rates ----------------------------------------------------------- */

/*
 * At low rates the terms above cancel to the last of their digits, and what is
 * left differs from one compiler to the next; so would the size of a filter. So
 * low rates are summed over the number of keys in a line instead, key by key,
 * with positive terms only. The state is in how many columns two bits of the
 * absent key are unset, and in how many one: `twos` and `ones`.
 */
enum { SIDE = LINE_COLUMNS + 1, STATES = SIDE * (SIDE + 1) / 2 };

struct states {
    double odds[STATES];
};

/* By the number of columns with any unset bit, then by twos: a key never leads
 * to a higher number. */
static uint32_t state_of(uint32_t twos, uint32_t ones) {
    const uint32_t any = twos + ones;
    return any * (any + 1) / 2 + twos;
}

/* choose[m][n]: the ways to choose n of m things. hits[u][m][n]: the odds that
 * n of m columns are hit in a bit that is unset, if u in each are. */
struct line_tables {
    double choose[SIDE][SIDE], hits[3][SIDE][SIDE];
};

static void fill_tables(struct line_tables *tables) {
    *tables = (struct line_tables){0};
    tables->choose[0][0] = tables->hits[1][0][0] = tables->hits[2][0][0] = 1;
    for (uint32_t m = 1; m < SIDE; m++)
        for (uint32_t n = 0; n <= m; n++) {
            tables->choose[m][n] = tables->choose[m - 1][n];
            if (n > 0) tables->choose[m][n] += tables->choose[m - 1][n - 1];
            for (int u = 1; u <= 2; u++) {
                double(*const hits)[SIDE] = tables->hits[u];
                hits[m][n] = hits[m - 1][n] * (64 - u) / 64;
                if (n > 0) hits[m][n] += hits[m - 1][n - 1] * u / 64;
            }
        }
}

/* A bit in each of x columns with two unset bits, and in y with one. */
static void hit_columns(const struct line_tables *tables, struct states *to,
                        double odds, uint32_t twos, uint32_t ones, uint32_t x,
                        uint32_t y) {
    for (uint32_t i = 0; i <= x; i++)
        for (uint32_t j = 0; j <= y; j++)
            to->odds[state_of(twos - i, ones + i - j)] +=
                odds * tables->hits[2][x][i] * tables->hits[1][y][j];
}

/* A bit in each of `takes` columns, from a given state. */
static void add_to_some(const struct line_tables *tables, uint32_t takes,
                        uint32_t twos, uint32_t ones, struct states *to) {
    const uint32_t others = LINE_COLUMNS - twos - ones;
    const double all = tables->choose[LINE_COLUMNS][takes];
    for (uint32_t x = 0; x <= twos && x <= takes; x++)
        for (uint32_t y = 0; y <= ones && x + y <= takes; y++) {
            const double ways = tables->choose[twos][x] *
                                tables->choose[ones][y] *
                                tables->choose[others][takes - x - y];
            hit_columns(tables, to, ways / all, twos, ones, x, y);
        }
}

/* What a key does, from each state that can be reached: a bit in every column,
 * unless it takes fewer, then one in some of them. */
struct key_step {
    struct line_tables tables;
    struct states to[STATES];
};

static void add_to(struct states *sum, double odds, const struct states *to,
                   uint32_t last) {
    for (uint32_t i = 0; i <= last; i++) sum->odds[i] += odds * to->odds[i];
}

/* First the bits in every column; these lead to states that come before, of
 * which the steps are known. */
static void step_from(struct key_step *step, uint32_t takes, uint32_t twos,
                      uint32_t ones, const struct states *in_some) {
    const uint32_t state = state_of(twos, ones);
    struct states first = {{0}};
    if (takes < LINE_COLUMNS) {
        step->to[state] = in_some[state];
        return;
    }
    hit_columns(&step->tables, &first, 1, twos, ones, twos, ones);
    step->to[state] = (struct states){{0}};
    for (uint32_t i = 0; i <= state; i++)
        if (first.odds[i] > 0)
            add_to(&step->to[state], first.odds[i], &in_some[i], i);
}

static void fill_step(struct key_step *step, uint32_t takes, uint32_t again) {
    struct states in_some[STATES] = {{{0}}};
    const uint32_t some = takes < LINE_COLUMNS ? takes : again;
    fill_tables(&step->tables);
    for (uint32_t any = 0; any <= takes; any++)
        for (uint32_t twos = 0; twos <= any && twos <= again; twos++) {
            const uint32_t state = state_of(twos, any - twos);
            add_to_some(&step->tables, some, twos, any - twos, &in_some[state]);
            step_from(step, takes, twos, any - twos, in_some);
        }
}

static struct states add_key(const struct key_step *step,
                             const struct states *from) {
    struct states to = {{0}};
    for (uint32_t i = 0; i < STATES; i++)
        if (from->odds[i] > 0) add_to(&to, from->odds[i], &step->to[i], i);
    return to;
}

/* The sum over the number of keys in the line, a binomial distribution, until
 * all that could follow is too small to matter. The second bit of the absent
 * key may fall on the first. */
static double rate_by_keys(double lines, uint32_t takes, uint32_t again,
                           double items) {
    struct key_step step;
    fill_step(&step, takes, again);
    struct states now = {{0}};
    for (uint32_t twos = 0; twos <= again; twos++)
        now.odds[state_of(twos, takes - twos)] =
            step.tables.hits[1][again][again - twos];
    double odds = exp(items * log1p(-1 / lines)), rate = 0;
    for (double keys = 1; keys <= items; keys++) {
        odds *= (items - keys + 1) / keys / (lines - 1);
        now = add_key(&step, &now);
        rate += odds * now.odds[0];
        if (keys > 2 * items / lines && odds < 1e-17 * rate) break;
    }
    return rate;
}

/* Estimate the error of a sum's logarithm. A term's exponent is a multiple of
 * the keys in a line. With 8 units in the last place for each, the estimate is
 * over 30 times the largest error that was measured. A sum that loses 12 digits
 * of 16 is right to 1 %, as unit.plan checks. */
static double error_of(const struct signed_sum *sum, double keys_in_line) {
    const double most = 0.01;
    const double units = 8 * (1 + keys_in_line) * sum->terms;
    return sum->sum > 0 ? fmin(most, units * DBL_EPSILON / sum->sum) : most;
}

/* By keys if sum / terms is less than `most_lost`. */
static double line_rate(uint64_t lines, uint32_t probes, double items,
                        double most_lost, double *error) {
    const uint32_t takes = probes < LINE_COLUMNS ? probes : LINE_COLUMNS;
    const uint32_t again = probes - takes;
    const double count = (double)lines;
    const struct signed_sum sum = rate_by_signs(count, takes, again, items);
    const bool cancels =
        lines > 1 && items >= 1 && sum.sum < most_lost * sum.terms;
    const double rate =
        cancels ? rate_by_keys(count, takes, again, items) : sum.sum;
    const double twins = ldexp(items / count, -32);
    *error = cancels ? 1e-12 : error_of(&sum, items / count);
    return fmin(1, fmax(0, rate) + twins);
}

double line_fpr(uint64_t lines, uint32_t probes, double items) {
    double ignored;
    return line_rate(lines, probes, items, 1e-5, &ignored); /* 11 digits */
}

double line_quick_fpr(uint64_t lines, uint32_t probes, double items,
                      double *error) {
    return line_rate(lines, probes, items, 1e-12, error); /* 4 digits */
}

/* A second bit falls on the first with odds 1/64. */
double line_bits_of_key(uint32_t probes) {
    const uint32_t again = probes > LINE_COLUMNS ? probes - LINE_COLUMNS : 0;
    return probes - again / 64.;
}
