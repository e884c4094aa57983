/*
 * Filters with filters: union, intersection, how much two overlap. It works on
 * bits that stand at the same place for the same key, so the filters must be
 * made alike.
 */
#include <math.h>
#include <string.h>

#include "base/bits.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/allow_list.h"
#include "filter/filter.h"

/* ---- Do they fit? -------------------------------------------------------- */

bool calyx_same_hash(const calyx_filter *a, const calyx_filter *b) {
    return a->hash == b->hash && a->secret.seed == b->secret.seed &&
           memcmp(a->secret.key, b->secret.key, sizeof a->secret.key) == 0;
}

calyx_status check_same_hash(const calyx_filter *a, const calyx_filter *b,
                             calyx_error *why) {
    const calyx_status no = CALYX_MISMATCH;
    calyx_status can = check_can(a->kind, CALYX_CAN_MERGE, "combined", why);
    if (can == CALYX_OK)
        can = check_can(b->kind, CALYX_CAN_MERGE, "combined", why);
    if (can != CALYX_OK) return can;
    if (a->kind != b->kind)
        return fail(why, no, "one filter is of kind %s, the other of kind %s",
                    a->kind->name, b->kind->name);
    if (a->hash != b->hash)
        return fail(why, no, "one filter hashes with %s, the other with %s",
                    a->hash->name, b->hash->name);
    if (a->secret.seed != b->secret.seed)
        /* Without the seeds: readers of this text need not know them. */
        return fail(why, no,
                    "their seeds differ; make both with the same seed");
    if (memcmp(a->secret.key, b->secret.key, sizeof a->secret.key) != 0)
        return fail(why, no, "the filters have different secret keys");
    return CALYX_OK;
}

static calyx_status check_fit(const calyx_filter *a, const calyx_filter *b,
                              calyx_error *why) {
    calyx_status status = check_same_hash(a, b, why);
    if (status == CALYX_OK) status = a->engine->check_alike(a, b, why);
    if (status == CALYX_OK) status = check_whole(a, why);
    return status == CALYX_OK ? check_whole(b, why) : status;
}

static calyx_status fail_read_only(const calyx_filter *f, calyx_error *why) {
    const calyx_status can =
        check_can(f->kind, CALYX_CAN_MERGE, "combined", why);
    if (can != CALYX_OK) return can;
    return fail(why, CALYX_READ_ONLY,
                "this filter is used in place, not in memory of its own; "
                "change a copy");
}

/* Where a key stands in one part here, it may stand in another there. */
static calyx_status fail_grown(calyx_error *why, const char *what) {
    return fail(why, CALYX_CANNOT,
                "the filters have grown, and the same key may stand in "
                "different parts of them: %s needs filters of one part",
                what);
}

/* ---- Union and intersection ---------------------------------------------- */

void or_bits(uint8_t *body, const uint8_t *other, uint64_t bytes) {
    for (uint64_t i = 0; i < bytes; i += 8)
        store64(body + i, load64(body + i) | peek64(other + i));
}

static void and_bits(uint8_t *body, const uint8_t *other, uint64_t bytes) {
    for (uint64_t i = 0; i < bytes; i += 8)
        store64(body + i, load64(body + i) & peek64(other + i));
}

/* The counters of a union are the sums, the counters of an intersection the
 * lesser ones; their bits go with them. */
static void join(const struct kind *kind, struct part *p, const struct part *q,
                 uint64_t from, uint64_t to, enum joining how) {
    for (uint64_t i = from; i < to; i++) {
        const struct block_ref other = {q->body, &q->shape, i};
        kind->counting->join(p->body, &p->shape, i, &other, how);
    }
}

/* The number of keys estimated from the bits, within its bounds. */
static uint64_t items_between(const calyx_filter *f, const struct part *p,
                              uint64_t set, uint64_t least, uint64_t most) {
    const double keys = round(keys_for_bits(f->kind, &p->shape, set));
    if (keys <= (double)least) return least;
    return keys >= (double)most ? most : (uint64_t)keys;
}

static uint32_t parts_older(const struct part *p) {
    uint32_t n = 0;
    while ((p = p->older)) n++;
    return n;
}

static bool is_chain(const calyx_filter *f) {
    return !f->engine->merge_some && newest_of(f)->older;
}

/* The number of items in a file may be too low; see repair_items. */
static bool is_empty(const calyx_filter *f) {
    for (const struct part *p = newest_of(f); p; p = p->older)
        if (f->lent || items_of(p) > 0) return false;
    return true;
}

/*
 * All parts of a chain but the newest are full. United with the full parts of
 * another chain, they would have twice the keys that they were planned for, and
 * up to 300 times the rate. Into the empty parts of calyx_new_alike a chain can
 * be merged: that is a copy. But not one that counts: an older part would gain
 * bits, and remove no longer find a key where add has put it.
 */
static calyx_status check_chains(const calyx_filter *f,
                                 const calyx_filter *other, calyx_error *why) {
    if (f == other || (!is_chain(f) && !is_chain(other))) return CALYX_OK;
    if (is_counting(f)) return fail_grown(why, "merging what counts");
    if (is_empty(f) &&
        parts_older(newest_of(f)) == parts_older(newest_of(other)))
        return CALYX_OK;
    return fail(why, CALYX_CANNOT,
                "filters that have grown cannot be merged: parts that are full "
                "in both would be overfull, at a far higher rate; query both, "
                "or make them of kind distinct, which merges at any size");
}

calyx_status calyx_fits(const calyx_filter *f, const calyx_filter *other,
                        calyx_error *why) {
    if (f->read_only) return fail_read_only(f, why);
    calyx_status status = check_same_hash(f, other, why);
    if (status == CALYX_OK) status = check_chains(f, other, why);
    if (status == CALYX_OK) status = check_fit(f, other, why);
    if (status != CALYX_OK || f == other) return status;
    return check_lists(f, other, why);
}

calyx_status calyx_merge(calyx_filter *f, const calyx_filter *other,
                         calyx_error *why) {
    calyx_status status = calyx_fits(f, other, why);
    const uint64_t end =
        f == other ? 0 : row_bytes_to(other->kind, newest_of(other));
    calyx_progress at = {0};
    while (at.at < end && status == CALYX_OK)
        status = calyx_merge_some(f, other, UINT64_MAX, &at, why);
    return status;
}

calyx_status calyx_intersect(calyx_filter *f, const calyx_filter *other,
                             calyx_error *why) {
    /* A file in place only ever gains bits, so that a crash loses none. */
    const calyx_status can =
        check_can(f->kind, CALYX_CAN_INTERSECT, "combined", why);
    if (can != CALYX_OK) return can;
    const calyx_status fit =
        f->lent ? fail_read_only(f, why) : check_fit(f, other, why);
    if (fit != CALYX_OK || f == other) return fit;
    if (newest_of(f)->older) return fail_grown(why, "an intersection");
    struct part *const p = newest_of(f);
    const struct part *q = newest_of(other);
    while (q->older) q = q->older; /* the other may just have grown */
    const calyx_status lists = intersect_lists(f, other, why);
    if (lists != CALYX_OK) return lists;
    if (is_counting(f))
        join(f->kind, p, q, 0, p->shape.blocks, LEAST);
    else
        and_bits(p->body, q->body, bits_bytes(f->kind, &p->shape));
    const uint64_t a = items_of(p), b = items_of(q);
    p->items = items_between(f, p, count_bits(f->kind, p), 0, a < b ? a : b);
    return check_whole(other, why);
}

calyx_status calyx_compare(const calyx_filter *a, const calyx_filter *b,
                           calyx_overlap *result, calyx_error *why) {
    return calyx_compare_some(a, b, UINT64_MAX, &(calyx_progress){0}, result,
                              why);
}

/* ---- In steps ------------------------------------------------------------ */

/* What a step goes over: some bytes of one part of each filter. */
struct stretch {
    struct part *p;       /* to merge into                    */
    const struct part *q; /* the same part of the other       */
    uint64_t from, bytes;
    bool ends; /* with the part */
};

static calyx_status find_stretch(const calyx_filter *f,
                                 const calyx_filter *other, uint64_t at,
                                 uint64_t most, struct stretch *s,
                                 calyx_error *why) {
    const struct part *q = newest_of(other);
    uint64_t begins = row_bytes_to(other->kind, q);
    if (at % ALIGNMENT != 0 || most < ALIGNMENT || at >= begins)
        return fail(why, CALYX_BAD_ARGUMENT,
                    "a step goes over at least 64 bytes from a multiple of 64 "
                    "below %llu; found %llu bytes from %llu",
                    (unsigned long long)begins, (unsigned long long)most,
                    (unsigned long long)at);
    while (at < (begins -= bits_bytes(other->kind, &q->shape))) q = q->older;
    struct part *p = newest_of(f);
    const uint32_t there = parts_older(p), wanted = parts_older(q);
    if (there < wanted)
        return fail(why, CALYX_MISMATCH,
                    "the filters have grown to different numbers of parts");
    for (uint32_t i = there; i > wanted; i--) p = p->older;
    const uint64_t left = begins + bits_bytes(other->kind, &q->shape) - at;
    most -= most % ALIGNMENT;
    *s = (struct stretch){p, q, at - begins, most < left ? most : left,
                          left <= most};
    return check_shape(p, q, why);
}

static uint64_t unite_and_count(uint8_t *body, const uint8_t *other,
                                uint64_t bytes) {
    uint64_t set = 0;
    for (uint64_t i = 0; i < bytes; i += 8) {
        const uint64_t both = load64(body + i) | peek64(other + i);
        store64(body + i, both);
        set += (uint64_t)__builtin_popcountll(both);
    }
    return set;
}

/* Before the first bits of a file are set. */
static calyx_status mark_file(calyx_filter *f, calyx_error *why) {
    const calyx_status marked = mark_whole(f);
    if (marked == CALYX_OK) return CALYX_OK;
    return fail(why, marked, "the file could not be marked as changing");
}

/* A step by an engine whose keys are more than bits. */
static calyx_status merge_keys(calyx_filter *f, const calyx_filter *other,
                               uint64_t most, calyx_progress *at,
                               calyx_error *why) {
    calyx_status status =
        f->read_only ? fail_read_only(f, why) : check_fit(f, other, why);
    /* Until the first keys are added: `f` still answers without the other. */
    if (status == CALYX_OK && at->at == 0 && at->bits[0] == 0)
        status = unite_lists(f, other, why);
    if (status != CALYX_OK) return status;
    if (f == other) {
        at->at = row_bytes_to(other->kind, newest_of(other));
        return CALYX_OK;
    }
    status = f->engine->merge_some(f, other, most, at, why);
    if (status != CALYX_OK) return status;
    /* 0: all buckets are merged, or none yet, as `f` is growing first. */
    if (at->bits[0] == 0) drop_listed_of(f, other);
    return check_whole(other, why);
}

calyx_status calyx_merge_some(calyx_filter *f, const calyx_filter *other,
                              uint64_t most, calyx_progress *at,
                              calyx_error *why) {
    if (f->engine->merge_some) return merge_keys(f, other, most, at, why);
    struct stretch s;
    calyx_status status =
        f->read_only ? fail_read_only(f, why) : check_same_hash(f, other, why);
    if (status == CALYX_OK)
        status = find_stretch(f, other, at->at, most, &s, why);
    if (status == CALYX_OK) status = check_whole(f, why);
    if (status == CALYX_OK) status = check_whole(other, why);
    const bool counts = is_counting(f);
    /* Between steps filters may grow, unless they count. */
    if (status == CALYX_OK && (counts || (at->at == 0 && is_chain(other))))
        status = check_chains(f, other, why);
    if (status == CALYX_OK && f != other) status = mark_file(f, why);
    if (status != CALYX_OK) return status;
    /* While `f` still answers without the other. */
    if (at->at == 0) status = unite_lists(f, other, why);
    if (status != CALYX_OK) return status;

    const uint64_t block = f->kind->block_bits / 8; /* of those that count */
    if (counts && f != other)
        join(f->kind, s.p, s.q, s.from / block, (s.from + s.bytes) / block,
             SUMS);
    else if (f != other)
        at->bits[0] +=
            unite_and_count(s.p->body + s.from, s.q->body + s.from, s.bytes);
    at->at += s.bytes;
    if (s.ends && f != other) {
        const uint64_t a = items_of(s.p), b = items_of(s.q);
        s.p->items =
            counts ? a + b
                   : items_between(f, s.p, at->bits[0], a > b ? a : b, a + b);
        at->bits[0] = 0;
        /* A key of the other may have come on the list since the first step. */
        drop_listed_of(f, other);
    }
    return check_whole(other, why);
}

static void count_three(const uint8_t *p, const uint8_t *q, uint64_t bytes,
                        uint64_t *bits) {
    for (uint64_t i = 0; i < bytes; i += 8) {
        const uint64_t a = peek64(p + i), b = peek64(q + i);
        bits[0] += (uint64_t)__builtin_popcountll(a);
        bits[1] += (uint64_t)__builtin_popcountll(b);
        bits[2] += (uint64_t)__builtin_popcountll(a | b);
    }
}

calyx_status calyx_compare_some(const calyx_filter *a, const calyx_filter *b,
                                uint64_t most, calyx_progress *at,
                                calyx_overlap *overlap, calyx_error *why) {
    struct stretch s;
    calyx_status status =
        check_can(a->kind, CALYX_CAN_INTERSECT, "compared", why);
    if (status == CALYX_OK) status = check_fit(a, b, why);
    if (status == CALYX_OK && newest_of(a)->older)
        return fail_grown(why, "a comparison");
    if (status == CALYX_OK) status = find_stretch(a, b, at->at, most, &s, why);
    if (status != CALYX_OK) return status;
    count_three(s.p->body + s.from, s.q->body + s.from, s.bytes, at->bits);
    at->at += s.bytes;
    if (!s.ends) return CALYX_OK;

    const struct shape *shape = &s.p->shape;
    const double in_a = keys_for_bits(a->kind, shape, at->bits[0]);
    const double in_b = keys_for_bits(a->kind, shape, at->bits[1]);
    const double either = keys_for_bits(a->kind, shape, at->bits[2]);
    const double both = fmax(0, in_a + in_b - either);
    *overlap = (calyx_overlap){.either = either,
                               .both = both,
                               .jaccard = either > 0 ? both / either : 1};
    return CALYX_OK;
}
