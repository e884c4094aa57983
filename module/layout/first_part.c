#include "layout/first_part.h"

#include "wire/dump.h"

/* The kinds that new filters are of, those preferred first. Two lines are
 * chosen down to `least`, the rate where more are needed: if the filter does
 * not grow, and if it does. */
enum { ONE_LINE, TWO_LINES };
static const struct {
    const char *kind;
    double least[2];
} choices[] = {
    [ONE_LINE] = {"line", {1e-3, 1e-3}},
    [TWO_LINES] = {"line2", {1e-14, 1e-10}},
    {"flat", {0, 0}},
    {"distinct", {0, 0}},
    {"bucket", {0, 0}},
    {"counting", {0, 0}},
};
enum { CHOICES = sizeof choices / sizeof *choices };

static bool can_keep_rate(const char *kind,
                          const struct filter_params *params) {
    const calyx_options want = {.kind = kind,
                                .capacity = params->capacity,
                                .fpr = params->error,
                                .growth = dump_growth(params->expansion)};
    calyx_info info;
    return calyx_plan(&want, &info, NULL) == CALYX_OK;
}

/* In filters that grow no kind keeps lower rates than the first. */
const char *kind_for(uint32_t abilities, const struct filter_params *params) {
    const bool grows = params->expansion > 0;
    const char *kind = NULL;
    for (int i = 0; i < CHOICES; i++) {
        const double least = choices[i].least[grows];
        if ((calyx_kind_can(choices[i].kind) & abilities) != abilities ||
            params->error < least)
            continue;
        kind = choices[i].kind;
        if (grows || least > 0 || can_keep_rate(kind, params)) break;
    }
    return kind;
}

/* A filter that grows without an end in sight is a table that takes no item
 * twice: lookups in it take one cache line, however often it has grown. A
 * filter that was reserved mostly has the size that it needs: there bits take
 * half the memory. One cache line per key while that costs little memory; see
 * doc/KINDS.md. */
static const char *usual_kind(const struct filter_params *params) {
    enum {
        TABLE = CALYX_CAN_GROW_IN_PLACE | CALYX_CAN_MERGE,
        BITS = CALYX_CAN_SHARE | CALYX_CAN_FOLD
    };
    if (params->removable) return kind_for(CALYX_CAN_REMOVE, params);
    if (params->unreserved && params->expansion) {
        const char *const table = kind_for(TABLE, params);
        if (can_keep_rate(table, params)) return table;
    }
    return kind_for(BITS, params);
}

/*
 * The first part of a small filter that grows. The library would leave most of
 * the error rate to later parts. But filters for 512 items or more are mostly
 * reserved at about the right size: here the first part gets 95 % of the rate.
 * Smaller ones are mostly made by BF.ADD and may become large: their first part
 * gets 10 %.
 *
 * The part fills a block of the server's allocator, which has four sizes per
 * doubling; room between two sizes would be lost.
 */
enum { FEW = 512, MANY = 50000 };

static uint64_t next_block(uint64_t bytes) {
    uint64_t unit = 64;
    while (8 * unit <= bytes) unit *= 2;
    return (bytes / unit + 1) * unit;
}

/* The smallest such block, and its rate; 0: none. */
static uint64_t first_block(const struct filter_params *params,
                            const char *kind, double *rate) {
    const double share = params->capacity < FEW ? 0.1 : 0.95;
    const uint64_t most = 4 * params->capacity; /* bytes */
    for (uint64_t bytes = 64; bytes <= most + 64; bytes = next_block(bytes)) {
        const calyx_options want = {
            .kind = kind, .capacity = params->capacity, .bits = 8 * bytes};
        if (8 * bytes < params->capacity * 4 || /* far too few: skip */
            calyx_rate_at(&want, params->capacity, rate, NULL) != CALYX_OK)
            continue;
        *rate *= 1 + 1e-9; /* the library would not find it by the bit */
        if (*rate <= share * params->error) return bytes;
    }
    return 0;
}

/* Filters of this size are in the cache, where a second line costs nothing: use
 * two where they need a smaller block. */
static double choose_first(struct filter_params *params) {
    const char *const usual = usual_kind(params);
    double rate = 0, rate2;
    const bool free = !params->kind;
    if (free) params->kind = usual;
    if (!params->expansion || params->capacity >= MANY ||
        params_can_remove(params) ||
        calyx_kind_can(params->kind) & CALYX_CAN_GROW_IN_PLACE)
        return 0;
    const uint64_t block = first_block(params, params->kind, &rate);
    if (block && free && params->capacity >= FEW &&
        usual == choices[ONE_LINE].kind) {
        const char *const two = choices[TWO_LINES].kind;
        const uint64_t block2 = first_block(params, two, &rate2);
        if (block2 && block2 < block) {
            params->kind = two;
            return rate2;
        }
    }
    return block ? rate : 0;
}

/* Cached: most filters are made like the last one, and choosing takes longer
 * than making. */
double first_part_rate(struct filter_params *params) {
    static struct {
        double error, rate;
        uint64_t capacity;
        uint32_t expansion;
        bool removable, unreserved;
        const char *kind;
    } last;
    if (!params->kind && last.kind && params->error == last.error &&
        params->capacity == last.capacity &&
        params->expansion == last.expansion &&
        params->removable == last.removable &&
        params->unreserved == last.unreserved) {
        params->kind = last.kind;
        return last.rate;
    }
    const bool free = !params->kind;
    const double rate = choose_first(params);
    if (free) {
        last.error = params->error;
        last.rate = rate;
        last.capacity = params->capacity;
        last.expansion = params->expansion;
        last.removable = params->removable;
        last.unreserved = params->unreserved;
        last.kind = params->kind;
    }
    return rate;
}
