/*
 * Planning: from what people want (keys, a rate, memory) to the numbers that
 * fix a filter. A kind has the rate of a shape; this file solves for the rest.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "engine/table_engine.h"

static const uint64_t MOST_KEYS = UINT64_C(1) << 40;
static const uint64_t MOST_BITS = UINT64_C(1) << 44;

/* Numbers that decide the size of a filter, or are written to files, must not
 * depend on the last digits of a rate, which differ from one compiler and
 * processor to the next: sizes that differ cannot be merged. So they have 24
 * bits, as a float has. */
static double rounded(double x) {
    int exponent;
    const double fraction = frexp(x, &exponent);
    return ldexp(round(ldexp(fraction, 24)), exponent - 24);
}

/* ---- Shapes -------------------------------------------------------------- */

/* The rate, with the odds that a key has the hash of another. */
static double with_same_hash(double rate, double items) {
    return fmin(1, rate + ldexp(items, -64));
}

double expected_rate(const struct kind *kind, const struct shape *shape,
                     double items) {
    return with_same_hash(kind->fpr(shape, items), items);
}

/* A way to get the rate of a shape; *error as in quick_fpr. */
typedef double rate_of_shape(const struct kind *kind, const struct shape *shape,
                             double items, double *error);

static double exact_rate(const struct kind *kind, const struct shape *shape,
                         double items, double *error) {
    *error = 0;
    return expected_rate(kind, shape, items);
}

static double quick_rate(const struct kind *kind, const struct shape *shape,
                         double items, double *error) {
    return with_same_hash(kind->quick_fpr(shape, items, error), items);
}

/* What a search for blocks is for. */
struct search {
    const struct kind *kind;
    uint32_t probes;
    double capacity, fpr;
};

/* How far a rate is above what is wanted, as a logarithm. */
static double rate_excess(double rate, double fpr) {
    return log(fmax(rate, 1e-300) / fpr);
}

/* The rate of `blocks` blocks: nearly a straight line, and falling. */
static double excess(const struct search *s, rate_of_shape *rate, double blocks,
                     double *error) {
    const struct shape shape = {.blocks = (uint64_t)blocks,
                                .probes = s->probes};
    return rate_excess(rate(s->kind, &shape, s->capacity, error), s->fpr);
}

/* The fewest blocks that keep to the rate, or a number over `most_blocks`. */
static double fewest_blocks(const struct search *s, rate_of_shape *rate) {
    const double most = (double)s->kind->most_blocks;
    double low = 0, over = 100; /* `low` is too few; its excess, a guess */
    double high = ceil(s->capacity * -log(s->fpr) / s->kind->block_bits);
    double under, ignored;
    while ((under = excess(s, rate, high, &ignored)) > 0) {
        if (high >= most) return 2 * most;
        low = high, over = under;
        high = fmin(most, floor(1.5 * high) + 1);
    }
    /* Follow the straight line between the two; now and then halve instead, for
     * where it bends. */
    for (int step = 0; high - low > 1; step++) {
        const double line = low + (high - low) * over / (over - under);
        const double guess = step % 3 == 2 ? (low + high) / 2 : line;
        const double mid = fmin(high - 1, fmax(low + 1, floor(guess)));
        const double is = excess(s, rate, mid, &ignored);
        if (is > 0)
            low = mid, over = is;
        else
            high = mid, under = is;
    }
    return high;
}

/* Are these blocks too few by the exact rate? Mostly the quick one is good
 * enough to say so: one block changes the rate by more than its error. */
static bool are_too_few(const struct search *s, double blocks) {
    double error;
    const double quick = excess(s, quick_rate, blocks, &error);
    if (fabs(quick) > error) return quick > 0;
    return excess(s, exact_rate, blocks, &error) > 0;
}

/* The same by the exact rate, from a number of blocks nearby: in steps that
 * double until one is too few and one is not, then by halves. */
static double exact_blocks(const struct search *s, double near) {
    const double most = (double)s->kind->most_blocks;
    double low = near, high = near, step = 1;
    if (near > most) return fewest_blocks(s, exact_rate);
    if (are_too_few(s, near)) {
        do {
            if (high >= most) return 2 * most;
            low = high;
            high = fmin(most, high + step);
            step *= 2;
        } while (are_too_few(s, high));
    } else {
        do {
            high = low;
            low = fmax(0, low - step);
            step *= 2;
        } while (low > 0 && !are_too_few(s, low));
    }
    while (high - low > 1) {
        const double mid = floor((low + high) / 2);
        *(are_too_few(s, mid) ? &low : &high) = mid;
    }
    return high;
}

/* Large filters get a number of blocks that many powers of two divide, so that
 * they can be folded; it costs them less than a 4096th. */
static double foldable(double blocks) {
    double unit = 1;
    while (unit * 2 * 4096 <= blocks) unit *= 2;
    return ceil(blocks / unit) * unit;
}

/* The exact blocks for the probes of `s`, if they may be fewer than `best`. */
static double blocks_below(const struct search *s, double best) {
    const double margin = 1.001; /* more than quick_fpr is wrong by */
    if (!s->kind->quick_fpr) return fewest_blocks(s, exact_rate);
    const double near = fewest_blocks(s, quick_rate);
    return near > margin * best ? near : exact_blocks(s, near);
}

static bool is_fixed_table(const struct kind *kind) {
    return kind->is_table && !kind->segments;
}

/* The same for tables that do not grow, where probes stand for the number of
 * remainders, 16 for each doubling: the smallest shape, and of these the one
 * with the fewest, whose rate is next to what is wanted. */
static bool plan_slots(const struct kind *kind, uint64_t capacity, double fpr,
                       struct shape *shape) {
    enum { FEWEST = 32, EACH_DOUBLING = 16, TRIED = 3 * EACH_DOUBLING };
    const double most = (double)kind->most_blocks;
    const double first = EACH_DOUBLING * log2(0.5 / fpr / FEWEST);
    const uint32_t from = first > 1 ? (uint32_t)first : 1;
    double best = 4 * most;
    for (uint32_t k = from; k <= kind->most_probes && k < from + TRIED; k++) {
        const struct search search = {kind, k, (double)capacity, fpr};
        const double blocks = fewest_blocks(&search, exact_rate);
        if (blocks < best) best = blocks, shape->probes = k;
    }
    if (best > most) return false;
    shape->blocks = (uint64_t)fmin(most, foldable(best));
    return true;
}

/* Choose the smallest shape that holds `capacity` keys at `fpr`; false if none
 * will do. `probes` is a number to keep to, or 0 for the best. */
static bool plan_shape(const struct kind *kind, uint64_t capacity, double fpr,
                       uint32_t probes, struct shape *shape) {
    const uint32_t step = kind->probe_step;
    const double most = (double)kind->most_blocks;
    if (is_fixed_table(kind) && !probes)
        return plan_slots(kind, capacity, fpr, shape);
    /* No kind of Bloom filter wants more probes than the textbook filter does;
     * try fewer as long as that saves memory. */
    uint32_t k = probes;
    if (!k && !kind->segments)
        k = ((uint32_t)ceil(-log2(fpr)) + step) / step * step;
    if (!k) k = kind->most_probes;
    if (k > kind->most_probes) k = kind->most_probes;

    double best = 4 * most;
    for (; k >= step; k -= step) {
        const struct search search = {kind, k, (double)capacity, fpr};
        const double blocks = blocks_below(&search, best);
        if (blocks > best && best <= most) break;
        if (blocks < best) best = blocks, shape->probes = k;
        if (probes) break;
    }
    if (best > most) return false;
    shape->blocks = (uint64_t)fmin(most, foldable(best));
    return true;
}

/* The lowest rate of a number of blocks, and the probes that it takes; `probes`
 * is a number to keep to, or 0 for the best. Once there are too many, the rate
 * only rises. *error becomes the largest of those that were compared. */
static double lowest_rate(const struct kind *kind, rate_of_shape *rate_of,
                          struct shape *shape, uint32_t probes, double items,
                          double *error) {
    const uint32_t step = kind->probe_step;
    struct shape tried = {.blocks = shape->blocks};
    double lowest = 2, this_error;
    *error = 0;
    for (uint32_t k = probes ? probes : step; k <= kind->most_probes;
         k += step) {
        tried.probes = k;
        const double rate = rate_of(kind, &tried, items, &this_error);
        *error = fmax(*error, this_error);
        if (rate < lowest) lowest = rate, shape->probes = k;
        if (rate > 4 * lowest || probes) break;
    }
    return lowest;
}

/* Two keys with one hash are one key, which must stay a small part of the
 * rate. */
static double most_keys_at(double fpr) {
    return fmin((double)MOST_KEYS, ldexp(fpr, 60));
}

/* Do these blocks hold this number of keys at this rate? */
static bool hold_keys(const struct kind *kind, uint64_t blocks, double fpr,
                      uint32_t probes, uint64_t keys) {
    const double items = (double)keys;
    struct shape shape = {.blocks = blocks};
    double error;
    if (kind->quick_fpr) {
        const double quick = rate_excess(
            lowest_rate(kind, quick_rate, &shape, probes, items, &error), fpr);
        if (fabs(quick) > error) return quick <= 0;
    }
    return lowest_rate(kind, exact_rate, &shape, probes, items, &error) <= fpr;
}

/* A number of keys, rounded down by less than a 4096th. */
static uint64_t in_12_bits(uint64_t keys) {
    uint64_t unit = 1;
    while (unit * 2 * 4096 <= keys) unit *= 2;
    return keys - keys % unit;
}

/* The most keys that these blocks hold at this rate, of large numbers less a
 * 4096th (see rounded()); may be 0. */
static uint64_t most_keys(const struct kind *kind, uint64_t blocks, double fpr,
                          uint32_t probes) {
    const uint64_t most = (uint64_t)most_keys_at(fpr);
    uint64_t low = 0, high = 1;
    while (high <= most && hold_keys(kind, blocks, fpr, probes, high))
        low = high, high *= 2;
    if (high > most) high = most + 1;
    while (in_12_bits(low) < in_12_bits(high - 1)) {
        const uint64_t mid = low + (high - low) / 2;
        *(hold_keys(kind, blocks, fpr, probes, mid) ? &low : &high) = mid;
    }
    return in_12_bits(low);
}

/* ---- Layers -------------------------------------------------------------- */

/* Shape of the first layer of a static filter, and the bytes and layers that
 * all of them are expected to take. */
struct layers_plan {
    struct shape first;
    uint64_t bytes;
    uint32_t layers;
};

/* Of the answers of value layers, any is as likely for a key that they do not
 * know. */
static const double VALUE_RATE = 0.5;

static struct shape layer_for(const struct construction *c, uint64_t hashes,
                              double fpr, bool values) {
    return values ? c->value_layer(hashes) : c->layer(hashes, fpr);
}

static struct layers_plan plan_stage(const struct kind *kind, uint64_t hashes,
                                     double fpr, bool values) {
    const struct construction *const c = kind->construction;
    struct layers_plan plan = {.first = layer_for(c, hashes, fpr, values)};
    double n = (double)hashes;
    do {
        const uint64_t here = (uint64_t)n;
        const struct shape shape = layer_for(c, here, fpr, values);
        plan.bytes += body_bytes(kind, &shape);
        plan.layers++;
        n = round(n * c->bumped_share(here, values));
    } while (n >= 1 && plan.layers < c->most_layers);
    return plan;
}

static struct layers_plan plan_layers(const struct kind *kind,
                                      uint64_t capacity, double fpr) {
    return plan_stage(kind, capacity, fpr, false);
}

/* An exact filter whose first layers have `bits` result bits; 0: it has none,
 * and all keys of the universe are in value layers. */
static struct layers_plan plan_exact_at(const struct kind *kind,
                                        const calyx_options *want, int bits) {
    const double passing = ldexp((double)want->excluded, -bits);
    const struct layers_plan values =
        plan_stage(kind, want->capacity + (uint64_t)passing, VALUE_RATE, true);
    if (!bits) return values;
    struct layers_plan all = plan_layers(kind, want->capacity, ldexp(1, -bits));
    all.bytes += values.bytes;
    all.layers += values.layers;
    return all;
}

/* The smallest that keeps the rate for keys outside of the universe. Between
 * two whole numbers of result bits the size is nearly linear in the share of
 * the groups with one more, so no other rate is better than both. */
static struct layers_plan plan_exact(const struct kind *kind,
                                     const calyx_options *want, double *fpr) {
    struct layers_plan best = {.bytes = UINT64_MAX};
    for (int bits = 0; ldexp(1, -bits) >= kind->least_fpr; bits++) {
        const double outside = VALUE_RATE * ldexp(1, -bits);
        const struct layers_plan plan = plan_exact_at(kind, want, bits);
        if (plan.bytes >= best.bytes || (want->fpr != 0 && outside > want->fpr))
            continue;
        best = plan;
        *fpr = outside;
    }
    return best;
}

/* The highest rate that is tried to fit keys into bits. */
static const double STATIC_MOST_FPR = 0.5;

/* How many hashes a layer bumps is chance, and so is the size, give or take
 * 0.2 sqrt(keys) bytes: plans in bits leave room for five times that. */
static uint64_t layers_bits(const struct kind *kind, uint64_t keys,
                            double fpr) {
    return 8 * plan_layers(kind, keys, fpr).bytes +
           8 * (uint64_t)sqrt((double)keys);
}

/* The lowest rate at which these keys fit into the bits; over 1 if none. */
static double rate_in_bits(const struct kind *kind, uint64_t keys,
                           uint64_t bits) {
    double high = STATIC_MOST_FPR, low = kind->least_fpr;
    if (layers_bits(kind, keys, high) > bits) return 2;
    if (layers_bits(kind, keys, low) <= bits) return low;
    while (high / low > 1.0001) {
        const double mid = sqrt(low * high);
        *(layers_bits(kind, keys, mid) > bits ? &low : &high) = mid;
    }
    return high;
}

/* The most keys that fit into the bits at this rate; may be 0. */
static uint64_t keys_in_bits(const struct kind *kind, double fpr,
                             uint64_t bits) {
    uint64_t low = 0, high = (uint64_t)most_keys_at(fpr) + 1;
    while (high - low > 1) {
        const uint64_t mid = low + (high - low) / 2;
        *(layers_bits(kind, mid, fpr) > bits ? &high : &low) = mid;
    }
    return low;
}

/* ---- Growth -------------------------------------------------------------- */

/*
 * The rates of all parts add up, so each part gets a share of the promise, and
 * the shares of all the parts there may ever be sum to less than one: 70 % for
 * the first, which is all that a filter of the right size will ever need, and
 * for each that follows a fixed fraction of what is left. The fraction is such
 * that growing 32-fold uses up half of it.
 *
 * Each part makes the whole `growth` times larger. Small parts cost little
 * memory whatever their rate, but each is one more to query; so they grow
 * fourfold, and leave their share of the rate to those that are large.
 *
 * A growth under 2 asks for little memory, also for small filters. Their parts
 * get the same share of the rate as large ones do, and make the whole larger by
 * three and by two steps of 1.6 in turn: so it holds a little more than 10 and
 * 100 times the keys of the first part after two parts more, and four. And a
 * small part is as large as a block of an allocator, which has four sizes to
 * each doubling: what lies between would be lost.
 *
 * doc/MATH.md has the cost in bits per key, and what else was tried.
 */
static const double FIRST_SHARE = 0.7;
static const double HALF_LIFE = 5; /* doublings in which half is used up */
static const double SMALL = 50000; /* keys */
static const double SMALL_GROWTH = 4;

static const double FINE = 2; /* growth under this: small filters are small */
static const double FINE_GROWTH[] = {1.6 * 1.6, 1.6 * 1.6 * 1.6};
static const uint64_t SMALL_BYTES = 64 << 10;

static double size_share(double capacity) {
    return fmin(1, fmax(0.01, capacity / SMALL));
}

/* A table that grows: see PLANNED_DOUBLINGS. At level 0 a code is one bit
 * longer, so a doubling adds twice the first rate. */
static double first_table_fpr(double fpr) {
    return rounded(fpr / (2 * PLANNED_DOUBLINGS));
}

static double first_fpr(double fpr, uint64_t capacity) {
    return rounded(fpr * FIRST_SHARE * size_share((double)capacity));
}

/* The smallest size class of allocators for these bytes: 4, 5, 6 or 7 times a
 * power of two. */
static uint64_t allocated(uint64_t bytes) {
    uint64_t unit = ALIGNMENT;
    while (8 * unit <= bytes) unit *= 2;
    return (bytes + unit - 1) / unit * unit;
}

/* Let a small part use all of the memory that it takes: its rate falls. */
static void fill_allocation(const struct kind *kind, struct part *p) {
    const uint64_t bytes = body_bytes(kind, &p->shape);
    if (kind->counter_bits || bytes > SMALL_BYTES) return;
    p->shape.blocks = 8 * allocated(bytes) / kind->block_bits;
    p->fpr = rounded(expected_rate(kind, &p->shape, (double)p->capacity));
}

/* Parts with the same number of probes are queried faster together, which is
 * worth a hundredth of the memory. */
static bool plan_alike(const struct kind *kind, struct part *next,
                       uint32_t probes) {
    struct shape best = {0}, alike = {0};
    if (!plan_shape(kind, next->capacity, next->fpr, 0, &best)) return false;
    const bool fits =
        probes != best.probes &&
        plan_shape(kind, next->capacity, next->fpr, probes, &alike) &&
        (double)alike.blocks <= 1.01 * (double)best.blocks;
    next->shape = fits ? alike : best;
    return true;
}

bool plan_growth(const calyx_filter *f, const struct part *last,
                 struct part *next) {
    double total = 0, left = f->fpr;
    int parts = 0;
    for (const struct part *p = last; p; p = p->older, parts++) {
        total += (double)p->capacity;
        left -= p->fpr;
    }
    const double most = most_keys_at(f->fpr);
    if (total >= most) return false;
    const bool fine = f->growth < FINE;
    const double step = fine ? FINE_GROWTH[parts % 2] : SMALL_GROWTH;
    const double jump = fmin(step * total, SMALL);
    const double grown = fmin(most, fmax(f->growth * total, jump));
    const double capacity = ceil(fmin(rounded(grown - total), most - total));
    const double fraction = 1 - pow(f->growth, -1 / HALF_LIFE);
    const double share = fine ? 1 : size_share(capacity);
    next->capacity = (uint64_t)capacity;
    next->fpr = fmax(f->kind->least_fpr, rounded(left * fraction * share));
    if (!plan_alike(f->kind, next, last->shape.probes)) return false;
    if (fine) fill_allocation(f->kind, next);
    return true;
}

/* ---- Options ------------------------------------------------------------- */

calyx_status choose_kernel(const char *name, calyx_filter *f,
                           calyx_error *why) {
    const bool is_option = name != NULL;
    if (!is_option) name = getenv("CALYX_KERNEL");
    enum cpu_level level = cpu_best();
    if (name && *name && !cpu_level_named(name, &level)) {
        /* One environment may serve processors that differ. */
        if (is_option || !cpu_level_is_elsewhere(name))
            return fail_unknown(why, "kernel for this processor", name,
                                calyx_kernels());
        level = cpu_best();
    }
    f->kernel = kernel_up_to(
        f->concurrent ? f->kind->atomic_kernels : f->kind->kernels, level);
    return CALYX_OK;
}

static calyx_status choose_hash(const calyx_options *want, calyx_filter *head,
                                calyx_error *why) {
    const char *name = want->hash ? want->hash : head->kind->hash;
    head->hash = hash_named(name);
    if (!head->hash) return fail_unknown(why, "hash", name, calyx_hashes());
    if (head->hash->keyed && !want->key)
        return fail(why, CALYX_BAD_ARGUMENT, "%s needs a key of 16 bytes",
                    name);
    if (head->hash->keyed && want->seed)
        return fail(why, CALYX_BAD_ARGUMENT,
                    "%s takes a key of 16 bytes, not a seed", name);
    if (!head->hash->keyed && want->key)
        return fail(why, CALYX_BAD_ARGUMENT,
                    "%s takes a seed, not a key; siphash takes a key", name);
    head->secret.seed = want->seed;
    if (want->key) memcpy(head->secret.key, want->key, sizeof head->secret.key);
    return CALYX_OK;
}

/* Written so that NaN fails too. */
static bool lies_between(double x, double low, double high) {
    return x >= low && x <= high;
}

static uint32_t least_blocks(const struct kind *kind) {
    return kind->segments ? kind->segments->least_blocks : 1;
}

static calyx_status check_numbers(const calyx_options *want,
                                  const struct kind *kind, calyx_error *why) {
    const calyx_status bad = CALYX_BAD_ARGUMENT;
    const uint32_t least = kind->block_bits * least_blocks(kind);
    if (want->capacity > MOST_KEYS)
        return fail(why, bad, "capacity must be at most 2^40 keys, not %llu",
                    (unsigned long long)want->capacity);
    if (want->bits > MOST_BITS)
        return fail(why, bad, "bits must be at most 2^44, not %llu",
                    (unsigned long long)want->bits);
    if (want->bits && want->bits < least)
        return fail(why, bad, "%s filters have at least %u bits, not %llu",
                    kind->name, least, (unsigned long long)want->bits);
    if (want->fpr != 0 && !(want->fpr > 0 && want->fpr < 1))
        return fail(why, bad, "fpr must lie between 0 and 1, not be %g",
                    want->fpr);
    if (want->probes > kind->most_probes || want->probes % kind->probe_step)
        return fail(why, bad,
                    "%s filters take %u to %u probes in steps of %u, not %u",
                    kind->name, kind->probe_step, kind->most_probes,
                    kind->probe_step, want->probes);
    if (want->capacity && want->fpr != 0 && want->bits)
        return fail(why, bad,
                    "capacity, fpr and bits are all given; any two of them "
                    "decide the third");
    if (want->first_fpr != 0 && want->growth == 0)
        return fail(why, bad,
                    "first_fpr is for filters that grow, and growth is 0");
    const double fpr = want->fpr != 0 ? want->fpr : 0.01;
    if (want->first_fpr != 0 && !(want->first_fpr > 0 && want->first_fpr < fpr))
        return fail(why, bad,
                    "first_fpr must lie between 0 and fpr, which is %g, not be "
                    "%g",
                    fpr, want->first_fpr);
    if (want->growth == 0) return CALYX_OK;

    if (!lies_between(want->growth, 1.25, 16))
        return fail(why, bad, "growth must be 0 or from 1.25 to 16, not %g",
                    want->growth);
    if (want->bits || want->probes || want->strict)
        return fail(why, bad,
                    "a growing filter chooses its own bits and probes, and is "
                    "never full: give capacity and fpr, not bits, probes or "
                    "strict");
    return CALYX_OK;
}

/* The kind that keeps the lowest rates. */
static const struct kind *lowest_kind(void) {
    const struct kind *lowest = kind_named(*calyx_kinds());
    for (const char *const *name = calyx_kinds(); *name; name++) {
        const struct kind *const kind = kind_named(*name);
        if (kind->least_fpr < lowest->least_fpr) lowest = kind;
    }
    return lowest;
}

static double least_rate(const struct kind *kind, bool grows) {
    const double times = !grows           ? 1
                         : kind->segments ? 2 * PLANNED_DOUBLINGS
                                          : 1e4;
    return times * kind->least_fpr;
}

/* Can this kind keep this rate? 100 * 1e-6 is 0.0001 to people, and a little
 * less to a processor: what prints as the lowest rate is the lowest rate. */
static calyx_status check_kind_rate(calyx_filter *head, calyx_error *why) {
    const bool grows = head->growth > 0;
    const struct kind *const kind = head->kind, *const lowest = lowest_kind();
    const double least = least_rate(kind, grows);
    if (head->fpr >= least * (1 - 1e-9)) {
        head->fpr = fmax(head->fpr, least);
        return CALYX_OK;
    }
    return fail(why, CALYX_BAD_ARGUMENT,
                "%s%s filters keep rates down to %g, not %g; of all kinds %s "
                "goes lowest, to %g",
                grows ? "growing " : "", kind->name, least, head->fpr,
                lowest->name, least_rate(lowest, grows));
}

static calyx_status check_hash_rate(const calyx_filter *head, uint64_t capacity,
                                    calyx_error *why) {
    if ((double)capacity <= most_keys_at(head->fpr)) return CALYX_OK;
    return fail(why, CALYX_BAD_ARGUMENT,
                "a hash of 64 bits keeps rates down to %g with %llu keys, not "
                "%g",
                ldexp((double)capacity, -60), (unsigned long long)capacity,
                head->fpr);
}

/* A default would be too small for most, and their rate would rise unseen. */
static calyx_status check_size(const calyx_options *want, calyx_error *why) {
    if (want->capacity || want->bits || want->growth > 0) return CALYX_OK;
    return fail(why, CALYX_BAD_ARGUMENT,
                "a filter of fixed size needs capacity, the number of keys to "
                "hold, or bits; or give growth");
}

/* Options that would decide what a static kind decides by itself. Probes beside
 * bits are the probes of a plan, and follow from it again. */
static calyx_status check_static(const calyx_options *want,
                                 const struct kind *kind, calyx_error *why) {
    if ((!want->probes || want->bits) && want->growth == 0 && !want->strict &&
        !want->concurrent)
        return CALYX_OK;
    return fail(why, CALYX_CANNOT,
                "%s filters are built once from all their keys: give capacity, "
                "fpr or bits, not probes, growth, strict or concurrent",
                kind->name);
}

static calyx_status check_exact(const calyx_options *want,
                                const struct kind *kind, calyx_error *why) {
    const uint64_t most = UINT64_C(1) << 40;
    if (!want->exact && want->excluded)
        return fail(why, CALYX_BAD_ARGUMENT,
                    "only a filter with `exact` has excluded keys");
    if (!want->exact) return CALYX_OK;
    if (!kind->construction)
        return fail(why, CALYX_CANNOT,
                    "an exact filter is built once from all keys, of kind "
                    "ribbon, not %s",
                    kind->name);
    if (want->bits || want->excluded > most)
        return fail(why, CALYX_BAD_ARGUMENT,
                    "the size of an exact filter follows from its keys: give "
                    "no bits, and at most %llu excluded keys",
                    (unsigned long long)most);
    return CALYX_OK;
}

/* The part is the first layer of the whole. */
static calyx_status choose_exact(const calyx_options *want, calyx_filter *head,
                                 struct part *first, calyx_error *why) {
    calyx_options all = *want;
    all.capacity = first->capacity;
    const struct layers_plan plan = plan_exact(head->kind, &all, &head->fpr);
    if (plan.layers == 0)
        return fail(why, CALYX_BAD_ARGUMENT,
                    "exact %s filters keep a rate of %g for keys outside of "
                    "the universe at the least, not %g",
                    head->kind->name, VALUE_RATE * head->kind->least_fpr,
                    want->fpr);
    first->shape = plan.first;
    first->fpr = plan.first.values ? VALUE_RATE : head->fpr / VALUE_RATE;
    return CALYX_OK;
}

/* choose_shape for static kinds. */
static calyx_status choose_layers(const calyx_options *want, calyx_filter *head,
                                  struct part *first, calyx_error *why) {
    const struct kind *const kind = head->kind;
    if (want->exact) return choose_exact(want, head, first, why);
    if (want->bits && want->capacity) {
        head->fpr = rate_in_bits(kind, want->capacity, want->bits);
        if (head->fpr > 1)
            return fail(
                why, CALYX_BAD_ARGUMENT,
                "for %llu keys %s filters have at least %llu bits, not %llu",
                (unsigned long long)want->capacity, kind->name,
                (unsigned long long)layers_bits(kind, want->capacity,
                                                STATIC_MOST_FPR),
                (unsigned long long)want->bits);
    } else if (want->bits) {
        first->capacity = keys_in_bits(kind, head->fpr, want->bits);
        if (first->capacity == 0)
            return fail(why, CALYX_BAD_ARGUMENT,
                        "%llu bits hold no key at a rate of %g",
                        (unsigned long long)want->bits, head->fpr);
    }
    first->shape = kind->construction->layer(first->capacity, head->fpr);
    first->fpr = head->fpr;
    return CALYX_OK;
}

/* The probes of a table that grows, as of a large one; 0 for other kinds. In a
 * small table more probes may take no more blocks, but later segments have the
 * same number. */
static uint32_t growing_probes(const struct kind *kind, double fpr) {
    struct shape large = {0};
    if (!kind->segments) return 0;
    if (!plan_shape(kind, 1 << 20, fpr, 0, &large)) return 0;
    return large.probes > kind->segments->growing_probes
               ? large.probes
               : kind->segments->growing_probes;
}

static bool plan_small(const calyx_filter *head, uint32_t probes,
                       struct part *first) {
    const struct segments *const segments = head->kind->segments;
    return segments && segments->begins_small && head->growth > 0 &&
           segments->begins_small(probes, head->concurrent, &first->capacity,
                                  &first->shape);
}

/* Fill in the shape, and whichever of capacity and fpr was not given. */
static calyx_status choose_shape(const calyx_options *want, calyx_filter *head,
                                 struct part *first, calyx_error *why) {
    const struct kind *kind = head->kind;
    struct shape *shape = &first->shape;
    if (!want->bits) {
        first->fpr = head->growth == 0      ? head->fpr
                     : want->first_fpr != 0 ? want->first_fpr
                     : head->kind->segments
                         ? first_table_fpr(head->fpr)
                         : first_fpr(head->fpr, first->capacity);
        const uint32_t probes = want->probes || head->growth == 0
                                    ? want->probes
                                    : growing_probes(kind, first->fpr);
        if (plan_small(head, probes, first)) return CALYX_OK;
        if (plan_shape(kind, first->capacity, first->fpr, probes, shape))
            return CALYX_OK;
        return fail(why, CALYX_BAD_ARGUMENT,
                    "a %s filter cannot be large enough for %llu keys at a "
                    "rate of %g",
                    kind->name, (unsigned long long)first->capacity, head->fpr);
    }
    shape->blocks = want->bits / kind->block_bits;
    if (shape->blocks > kind->most_blocks)
        return fail(why, CALYX_BAD_ARGUMENT,
                    "%s filters have at most %llu bits, not %llu", kind->name,
                    (unsigned long long)(kind->most_blocks * kind->block_bits),
                    (unsigned long long)want->bits);
    if (want->capacity == 0) {
        first->capacity =
            most_keys(kind, shape->blocks, head->fpr, want->probes);
        if (first->capacity == 0)
            return fail(why, CALYX_BAD_ARGUMENT,
                        "%llu bits hold no key at a rate of %g",
                        (unsigned long long)want->bits, head->fpr);
    }
    const double items = (double)first->capacity;
    double ignored;
    first->fpr = rounded(
        lowest_rate(kind, exact_rate, shape, want->probes, items, &ignored));
    if (kind->is_table && first->fpr >= 1) /* keys find no slot */
        return fail(why, CALYX_BAD_ARGUMENT,
                    "%llu bits of a %s filter have no room for %llu keys",
                    (unsigned long long)want->bits, kind->name,
                    (unsigned long long)first->capacity);
    if (want->fpr == 0) head->fpr = first->fpr;
    return CALYX_OK;
}

static calyx_status find_kind(const char *name, const struct kind **kind,
                              calyx_error *why) {
    *kind = kind_named(name);
    if (*kind) return CALYX_OK;
    const struct left_out *const left_out = kind_left_out(name, 0);
    if (!left_out) return fail_unknown(why, "kind", name, calyx_kinds());
    return fail(why, CALYX_CANNOT,
                "this library was built without the kind '%s' (%s)", name,
                left_out->by);
}

/*
 * A filter that grows from an unknown size has many steps before it, and
 * lookups in a table take the same time after any number of them. Of a known
 * size it may need none, and many threads add to a table by turns: a chain of
 * parts.
 */
static const char *default_kind(const calyx_options *want) {
    const struct kind *const table = kind_named("distinct");
    const bool is_open =
        want->growth > 0 && !want->capacity && want->first_fpr == 0;
    return table && is_open && !want->concurrent ? table->name
                                                 : calyx_kinds()[0];
}

calyx_status plan_filter(const calyx_options *want, calyx_filter *head,
                         struct part *first, calyx_error *why) {
    *head = (calyx_filter){0};
    *first = (struct part){0};
    const char *name = want->kind ? want->kind : default_kind(want);
    calyx_status status = find_kind(name, &head->kind, why);
    if (status == CALYX_OK && head->kind->fixed && want->growth == 0)
        head->kind = head->kind->fixed;
    if (status == CALYX_OK && head->kind->construction)
        status = check_static(want, head->kind, why);
    if (status != CALYX_OK) return status;
    if (want->concurrent && !head->kind->atomic_kernels)
        return fail(why, CALYX_CANNOT,
                    "%s filters take one writer at a time, not concurrent ones",
                    name);

    head->concurrent = want->concurrent;
    status = check_reserved(want->reserved, sizeof want->reserved / 8,
                            "calyx_options", why);
    if (status == CALYX_OK) status = check_exact(want, head->kind, why);
    if (status == CALYX_OK) status = check_numbers(want, head->kind, why);
    if (status == CALYX_OK) status = choose_kernel(want->kernel, head, why);
    if (status == CALYX_OK) status = choose_hash(want, head, why);
    if (status != CALYX_OK) return status;

    head->memory = want->memory ? *want->memory : memory_default;
    head->growth = want->growth;
    head->strict = want->strict;
    head->fpr = want->fpr != 0 ? want->fpr : 0.01;
    first->capacity = want->capacity ? want->capacity : 1000;
    status = check_kind_rate(head, why);
    if (status == CALYX_OK && !want->bits)
        status = check_hash_rate(head, first->capacity, why);
    if (status == CALYX_OK) status = check_size(want, why);
    if (status != CALYX_OK) return status;
    return head->kind->construction ? choose_layers(want, head, first, why)
                                    : choose_shape(want, head, first, why);
}

/* ---- The public calls ---------------------------------------------------- */

/* The most blocks whose body takes at most these bytes. */
static uint64_t blocks_within(const struct kind *kind, uint64_t bytes) {
    uint64_t low = 0, over = 8 * bytes / kind->block_bits + 1;
    while (over - low > 1) {
        const struct shape shape = {.blocks = low + (over - low) / 2};
        *(body_bytes(kind, &shape) > bytes ? &over : &low) = shape.blocks;
    }
    return low < kind->most_blocks ? low : kind->most_blocks;
}

calyx_status calyx_bits_within(const char *name, uint64_t bytes, uint64_t *bits,
                               calyx_error *why) {
    const struct kind *kind;
    const calyx_status status =
        find_kind(name ? name : *calyx_kinds(), &kind, why);
    if (status != CALYX_OK) return status;
    if (bytes > MOST_BITS / 8)
        return fail(why, CALYX_BAD_ARGUMENT,
                    "a filter takes at most 2^41 bytes, not %llu",
                    (unsigned long long)bytes);
    const struct shape least = {.blocks = least_blocks(kind)};
    const uint64_t needed =
        kind->construction ? ALIGNMENT : body_bytes(kind, &least);
    if (bytes < needed)
        return fail(why, CALYX_BAD_ARGUMENT,
                    "the smallest %s filter takes %llu bytes, not %llu",
                    kind->name, (unsigned long long)needed,
                    (unsigned long long)bytes);
    *bits = kind->construction ? 8 * bytes
                               : blocks_within(kind, bytes) * kind->block_bits;
    return CALYX_OK;
}

calyx_status calyx_plan(const calyx_options *want, calyx_info *info,
                        calyx_error *why) {
    calyx_filter head;
    struct part first;
    const calyx_status status = plan_filter(want, &head, &first, why);
    if (status != CALYX_OK) return status;
    if (head.kind->segments && head.kind->segments->shape_for)
        first.shape =
            head.kind->segments->shape_for(&first.shape, first.capacity);
    struct layers_plan all = {.bytes = body_bytes(head.kind, &first.shape),
                              .layers = 1};
    calyx_options exact = *want;
    exact.capacity = first.capacity;
    if (want->exact)
        all = plan_exact(head.kind, &exact, &head.fpr);
    else if (head.kind->construction)
        all = plan_layers(head.kind, first.capacity, head.fpr);
    *info = (calyx_info){
        .kind = head.kind->name,
        .kernel = cpu_level_name(head.kernel->level),
        .hash = head.hash->name,
        .seed = head.secret.seed,
        .capacity = first.capacity,
        .bits = want->exact ? 8 * all.bytes
                : head.kind->construction
                    ? layers_bits(head.kind, first.capacity, head.fpr)
                    : kind_bits(head.kind, &first.shape),
        .bytes = all.bytes,
        .parts = all.layers,
        .probes = first.shape.probes,
        .growth = head.growth,
        .fpr = head.fpr,
        .strict = head.strict,
        .concurrent = head.concurrent,
        .can = head.kind->can,
        .universe = want->exact ? first.capacity + want->excluded : 0,
        .huge_pages = !want->memory && memory_is_huge((size_t)all.bytes),
    };
    head.newest = &first;
    choose_engine(&head);
    if (head.engine->add_info && !want->exact)
        head.engine->add_info(&head, info);
    return CALYX_OK;
}

calyx_status calyx_rate_at(const calyx_options *want, uint64_t items,
                           double *fpr, calyx_error *why) {
    calyx_filter head;
    struct part first;
    const calyx_status status = plan_filter(want, &head, &first, why);
    if (status == CALYX_OK)
        *fpr = expected_rate(head.kind, &first.shape, (double)items);
    return status;
}

/* A filter saves most lookups of absent keys in the store; a table saves all of
 * them. A table that is half full takes two slots per key. */
calyx_status calyx_weigh(const calyx_options *want, const calyx_workload *load,
                         calyx_costs *costs, calyx_error *why) {
    if (!lies_between(load->filter_time, 0, 1e300) ||
        !lies_between(load->store_time, 0, 1e300) ||
        !lies_between(load->present, 0, 1) ||
        !lies_between(load->key_bytes, 0, 1e6))
        return fail(why, CALYX_BAD_ARGUMENT,
                    "times must be 0 or more, present from 0 to 1 and "
                    "key_bytes from 0 to 1000000; they are %g, %g, %g, %g",
                    load->filter_time, load->store_time, load->present,
                    load->key_bytes);
    calyx_info info;
    calyx_status status = check_reserved(
        load->reserved, sizeof load->reserved / 8, "calyx_workload", why);
    if (status == CALYX_OK) status = calyx_plan(want, &info, why);
    if (status != CALYX_OK) return status;
    const double key_bytes = load->key_bytes > 0 ? load->key_bytes : 8;
    const double passed = load->present + (1 - load->present) * info.fpr;
    *costs = (calyx_costs){
        .filter = {load->filter_time + passed * load->store_time, info.bytes},
        .table = {load->filter_time + load->present * load->store_time,
                  (uint64_t)(2 * key_bytes * (double)info.capacity)},
        .nothing = {load->store_time, 0},
    };
    return CALYX_OK;
}
