#include "layout/first_part.h"

#include <string.h>

#include "wire/dump.h"

/* The kind that grows in place, and takes no item twice. */
static const char TABLE[] = "distinct";

static bool can_keep_rate(const char *kind,
                          const struct filter_params *params) {
    const calyx_options want = {.kind = kind,
                                .capacity = params->capacity,
                                .fpr = params->error,
                                .growth = dump_growth(params->expansion)};
    calyx_info info;
    return calyx_plan(&want, &info, NULL) == CALYX_OK;
}

/* The smallest kind that items can be removed from, if it keeps the rate.
 * Counters keep lower rates in filters that do not grow. */
static const char *removable_kind(const struct filter_params *params) {
    return params->expansion || can_keep_rate("bucket", params) ? "bucket"
                                                                : "counting";
}

/* A filter that grows without an end in sight is a table: lookups in it take
 * one cache line, however often it has grown. A filter that was reserved mostly
 * has the size that it needs: there bits take half the memory. One cache line
 * per key while that costs little memory; see README.md. */
static const char *usual_kind(const struct filter_params *params) {
    const double least_line2 = params->expansion ? 1e-10 : 1e-14;
    if (params->removable) return removable_kind(params);
    if (params->unreserved && params->expansion && can_keep_rate(TABLE, params))
        return TABLE;
    if (params->error >= 1e-3) return "line";
    return params->error >= least_line2 ? "line2" : "flat";
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
 * `line2` where it needs a smaller block. */
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
        strcmp(usual, "line") == 0) {
        const uint64_t block2 = first_block(params, "line2", &rate2);
        if (block2 && block2 < block) {
            params->kind = "line2";
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
