/*
 * Building a ribbon layer, lot by lot: Gaussian elimination in a band.
 *
 * Equations are added group by group, in the order of their first rows. Each is
 * reduced by those before it until it starts at a row that has none yet, which
 * takes about 11 steps. If a group contradicts what is there, its equations are
 * taken out again, its flag is set and its hashes are bumped. Then each row
 * follows from the 47 rows after it, from the last row to the first.
 *
 *     1 . 1 1 . 1             equations by their first rows: a band along
 *       1 1 . . 1 1           the diagonal, the ribbon. One whose first row
 *           1 . 1 1 . 1       is taken gets the equation of that row added:
 *             1 1 . 1 . 1     then its first coefficient is 0.
 */
#include <math.h>
#include <string.h>

#include "ribbon/ribbon.h"

/* ---- The shape of a layer ------------------------------------------------ */

/* Hashes for each row. More than 1: what does not fit is bumped, so that nearly
 * all rows are used. Each 0.01 more saves 0.2 % of the bits, and bumps 0.7 % of
 * the hashes more, which makes lookups as much slower. */
static const double LOAD = 1.03;

/* Of value layers: a hash more costs little more than a bit in the next layer,
 * and where a group has more equations than rows, one bit is right by chance
 * half of the time. */
static const double VALUE_LOAD = 1.09;

/* Every lot must have room for an equation. */
static uint64_t fit_end(uint64_t groups) {
    const uint64_t last = groups % LOT_GROUPS;
    return last && last < SPAN_GROUPS ? groups - last + SPAN_GROUPS : groups;
}

/* Small layers get more rows, so that a small one has no smaller ones after
 * it. */
static double plan_rows(uint64_t hashes, double load) {
    const double n = (double)hashes;
    return n / load + sqrt(n);
}

static uint64_t plan_groups(uint64_t hashes, double load) {
    const double groups = plan_rows(hashes, load) / (double)GROUP_ROWS;
    return fit_end((uint64_t)fmax(SPAN_GROUPS, ceil(groups)));
}

static struct shape plan_value_layer(uint64_t hashes) {
    return (struct shape){
        .blocks = plan_groups(hashes, VALUE_LOAD), .probes = 1, .values = 1};
}

/* A share x of the groups with one word more makes the rate x / 2^(words + 1) +
 * (1 - x) / 2^words. */
static struct shape plan_layer(uint64_t hashes, double fpr) {
    struct shape shape = {.blocks = plan_groups(hashes, LOAD)};
    const double words = floor(-log2(fpr));
    shape.probes = (uint32_t)fmin(MOST_WORDS, fmax(1, words));
    const double x = 2 - ldexp(fpr, (int)shape.probes + 1);
    const double wide =
        fmax(0, ceil(x * (double)shape.blocks / (double)WIDE_UNIT));
    shape.wide = WIDE_UNIT * (uint64_t)wide;
    if (shape.probes == MOST_WORDS) shape.wide = 0;
    if (shape.wide + SPAN_GROUPS > shape.blocks) {
        shape.wide = 0;
        shape.probes++;
    }
    return shape;
}

/* Measured: nearly straight lines in the load. */
static double bumped_share(uint64_t hashes, bool values) {
    const double most = values ? VALUE_LOAD : LOAD;
    const double load = (double)hashes / plan_rows(hashes, most);
    const double share = values ? 0.0839 + 0.763 * (load - VALUE_LOAD)
                                : 0.0415 + 0.72 * (load - LOAD);
    return hashes ? fmax(0.003, share) : 0;
}

/* ---- Lots ---------------------------------------------------------------- */

static uint64_t lots(const struct shape *shape) {
    return (shape->blocks + LOT_GROUPS - 1) / LOT_GROUPS;
}

/* Hashes of value layers are even, except for what the builder has in bit 0. */
static struct lot lot(const struct shape *shape, uint64_t number) {
    const uint64_t group = number * LOT_GROUPS;
    const uint64_t at = words_at(group, shape);
    const uint64_t first = lowest_scaled64(group, shape->blocks);
    return (struct lot){first + (first & shape->values), at,
                        flags_at(group, shape) + FLAG_BYTES - at};
}

/* ---- Elimination --------------------------------------------------------- */

/* The equation whose first row is this one, unless there are no coefficients:
 * bit 0 is 1, and bit i belongs to row + i. */
struct equation {
    uint64_t coefficients;
    uint64_t result;
};

/* An equation on its way to a row that has none. */
struct reduction {
    struct equation is;
    struct equation *at;
};

/* One step: to the first row left in the equation, and, if that row has an
 * equation, add that. Returns false at the end: it has its row, or no
 * coefficient is left. */
ALWAYS_INLINE bool reduce(struct reduction *r) {
    if (!r->is.coefficients) return false;
    const int skip = __builtin_ctzll(r->is.coefficients);
    r->at += skip;
    r->is.coefficients >>= skip;
    if (!r->at->coefficients) {
        *r->at = r->is;
        r->is.result = 0;
        return false;
    }
    r->is.coefficients ^= r->at->coefficients;
    r->is.result ^= r->at->result;
    return true;
}

/* More hashes cannot be in the rows that a group covers. */
enum { MOST_OF_GROUP = SPAN_GROUPS * GROUP_ROWS };

/* Add the equations of a group, all or none. Where no coefficient is left, no
 * result may be left either. Two equations go side by side, since each step
 * waits for the one before it. */
static bool add_group(struct equation *rows, const struct equation *added,
                      size_t n) {
    struct equation *placed[MOST_OF_GROUP + 1];
    size_t count = 0;
    for (size_t i = 0; i < n; i += 2) {
        static const struct equation nothing = {0, 0};
        struct reduction a = {added[i], rows};
        struct reduction b = {i + 1 < n ? added[i + 1] : nothing, rows};
        bool more_a, more_b;
        do {
            more_a = reduce(&a);
            more_b = reduce(&b);
        } while (more_a & more_b);
        while (more_a) more_a = reduce(&a);
        while (more_b) more_b = reduce(&b);
        if (a.is.coefficients) placed[count++] = a.at;
        if (b.is.coefficients) placed[count++] = b.at;
        /* 0 = 1, a contradiction: take the equations of the group out. */
        if (a.is.result | b.is.result) {
            while (count) *placed[--count] = nothing;
            return false;
        }
    }
    return true;
}

/* From the last row to the first, each bit follows from the 47 after it. Rows
 * without an equation become 0. */
static void solve(const struct equation *rows, uint64_t groups, uint32_t words,
                  uint8_t *to) {
    uint64_t bits[MOST_WORDS] = {0}; /* bit i: of row + i */
    for (uint64_t group = groups; group-- > 0;) {
        for (uint32_t i = GROUP_ROWS; i-- > 0;) {
            const struct equation *const e = &rows[GROUP_ROWS * group + i];
            for (uint32_t w = 0; w < words; w++) {
                const uint64_t later = bits[w] << 1;
                const uint64_t sum =
                    (uint64_t)__builtin_parityll(later & e->coefficients);
                bits[w] = later | (sum ^ (e->result >> result_place(w) & 1));
            }
        }
        for (uint32_t w = 0; w < words; w++)
            store16(to + 2 * (group * words + w), (uint32_t)bits[w]);
    }
}

/* ---- One lot ------------------------------------------------------------- */

struct lot_rows {
    struct equation rows[LOT_GROUPS * GROUP_ROWS];
};

/* 1 for a hash of a value layer whose key is excluded. */
static uint64_t excluded_bit(const struct shape *shape, uint64_t hash) {
    return hash & shape->values;
}

/* Number of hashes, from the first on, that belong to a group. */
static size_t count_group(const struct shape *shape, uint64_t group,
                          const uint64_t *hashes, size_t n) {
    size_t i = 0;
    while (i < n &&
           group_of(hashes[i] - excluded_bit(shape, hashes[i]), shape) == group)
        i++;
    return i;
}

/* Bit 0 of the result has the place 0. */
static bool build_group(const struct shape *shape, struct equation *rows,
                        uint32_t mask, const uint64_t *hashes, size_t n) {
    struct equation added[MOST_OF_GROUP];
    if (n > MOST_OF_GROUP) return false;
    for (size_t i = 0; i < n; i++) {
        const uint64_t excluded = excluded_bit(shape, hashes[i]);
        const uint64_t mixed = ribbon_mix(hashes[i] - excluded);
        added[i] = (struct equation){ribbon_coefficients(mixed),
                                     (ribbon_result(mixed) & mask) ^ excluded};
    }
    return add_group(rows, added, n);
}

static uint64_t bumped_hash(const struct shape *shape, uint64_t hash) {
    const uint64_t excluded = excluded_bit(shape, hash);
    return shape->values ? ribbon_next_value_hash(hash - excluded) | excluded
                         : ribbon_next_hash(hash);
}

static size_t build(const struct shape *shape, uint64_t number,
                    const uint64_t *hashes, size_t n, void *scratch,
                    uint8_t *bytes, uint64_t *bumped) {
    struct lot_rows *const lot_rows = scratch;
    const uint64_t first = number * LOT_GROUPS, end = lot_end(first, shape);
    const uint64_t at = words_at(first, shape);
    uint8_t *const flags = bytes + (flags_at(first, shape) - at);
    const uint64_t words_end =
        words_at(end - 1, shape) - at + 2 * words_of(end - 1, shape);
    size_t bumps = 0;
    memset(lot_rows, 0,
           (size_t)(end - first) * GROUP_ROWS * sizeof lot_rows->rows[0]);
    memset(bytes + words_end, 0,
           (size_t)(flags + FLAG_BYTES - bytes) - (size_t)words_end);
    if (n == 0) memset(flags, 0xFF, FLAG_BYTES); /* every answer is "no" */
    for (uint64_t group = first; group < end; group++) {
        /* Add the equations of a group, or set its flag and bump its hashes. */
        const size_t here = count_group(shape, group, hashes, n);
        struct equation *const rows =
            &lot_rows->rows[GROUP_ROWS * (first_group(group, shape) - first)];
        if (!build_group(shape, rows, result_mask(words_of(group, shape)),
                         hashes, here)) {
            const uint64_t in_lot = group - first;
            flags[in_lot / 8] = (uint8_t)(flags[in_lot / 8] | 1 << in_lot % 8);
            for (size_t i = 0; i < here; i++)
                bumped[bumps++] = bumped_hash(shape, hashes[i]);
        }
        hashes += here;
        n -= here;
    }
    /* Groups of one width share no row with groups of the other width. */
    for (uint64_t group = first, to; group < end; group = to) {
        to = span_end(group, shape);
        solve(&lot_rows->rows[GROUP_ROWS * (group - first)], to - group,
              words_of(group, shape), bytes + (words_at(group, shape) - at));
    }
    return bumps;
}

const struct construction ribbon_construction = {
    .most_layers = 24,
    .scratch_bytes = sizeof(struct lot_rows),
    .layer = plan_layer,
    .value_layer = plan_value_layer,
    .bumped_share = bumped_share,
    .lots = lots,
    .lot = lot,
    .build = build,
    .next_hash = ribbon_next_hash,
    .next_value_hash = ribbon_next_value_hash,
    .is_bumped_in_copies = ribbon_is_bumped_in_copies,
};
