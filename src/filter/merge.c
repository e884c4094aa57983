/*
 * Filters with filters: union, intersection, how much two overlap. It works on
 * bits that stand at the same place for the same key, so the filters must be
 * made alike.
 */
#include <math.h>
#include <string.h>

#include "base/bits.h"
#include "base/error.h"
#include "filter/filter.h"

/* ---- Do they fit? -------------------------------------------------------- */

static calyx_status check_fit(const calyx_filter *a, const calyx_filter *b,
                              calyx_error *why) {
    const calyx_status no = CALYX_MISMATCH;
    if (a->kind != b->kind)
        return fail(why, no, "one filter is of kind %s, the other of kind %s",
                    a->kind->name, b->kind->name);
    if (a->hash != b->hash)
        return fail(why, no, "one filter hashes with %s, the other with %s",
                    a->hash->name, b->hash->name);
    if (a->secret.seed != b->secret.seed)
        /* Not which: who may read this text need not know them. */
        return fail(why, no, "their seeds differ; make both with the same");
    if (memcmp(a->secret.key, b->secret.key, sizeof a->secret.key) != 0)
        return fail(why, no, "the filters have different secret keys");

    const struct part *p = newest_of(a), *q = newest_of(b);
    for (; p && q; p = p->older, q = q->older)
        if (p->shape.blocks != q->shape.blocks ||
            p->shape.probes != q->shape.probes)
            return fail(why, no,
                        "one filter has a part of %llu blocks with %u probes "
                        "where the other has %llu with %u; make both for the "
                        "same number of keys, at the same rate",
                        (unsigned long long)p->shape.blocks, p->shape.probes,
                        (unsigned long long)q->shape.blocks, q->shape.probes);
    if (p || q)
        return fail(why, no,
                    "the filters have grown to different numbers of parts");
    const calyx_status whole = check_whole(a, why);
    return whole == CALYX_OK ? check_whole(b, why) : whole;
}

static calyx_status fail_read_only(calyx_error *why) {
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

void unite_bits(uint8_t *body, const uint8_t *other, uint64_t bytes) {
    for (uint64_t i = 0; i < bytes; i += 8)
        store64(body + i, load64(body + i) | load64(other + i));
}

static void common_bits(uint8_t *body, const uint8_t *other, uint64_t bytes) {
    for (uint64_t i = 0; i < bytes; i += 8)
        store64(body + i, load64(body + i) & load64(other + i));
}

/* The counters of a union are the sums, those of an intersection the lesser
 * ones; their bits go with them. */
static void join(const struct kind *kind, struct part *p, const struct part *q,
                 enum joining how) {
    for (uint64_t i = 0; i < p->shape.blocks; i++) {
        const struct block other = {q->body, &q->shape, i};
        kind->join(p->body, &p->shape, i, &other, how);
    }
}

/* What the bits say of the number of keys, kept within what it can be. */
static uint64_t items_between(const calyx_filter *f, const struct part *p,
                              uint64_t least, uint64_t most) {
    const double keys =
        round(keys_for_bits(f->kind, &p->shape, count_bits(f->kind, p)));
    if (keys <= (double)least) return least;
    return keys >= (double)most ? most : (uint64_t)keys;
}

calyx_status calyx_fits(const calyx_filter *f, const calyx_filter *other,
                        calyx_error *why) {
    const calyx_status fit =
        f->read_only ? fail_read_only(why) : check_fit(f, other, why);
    if (fit != CALYX_OK || f == other) return fit;
    /* Else an older part would gain bits, and remove no longer find a key
     * where add has put it. */
    if (is_counting(f) && newest_of(f)->older)
        return fail_grown(why, "merging what counts");
    return CALYX_OK;
}

calyx_status calyx_merge(calyx_filter *f, const calyx_filter *other,
                         calyx_error *why) {
    const calyx_status fit = calyx_fits(f, other, why);
    if (fit != CALYX_OK || f == other) return fit;
    const calyx_status marked =
        f->ranges ? f->ranges->mark_all(f, false) : CALYX_OK;
    if (marked != CALYX_OK)
        return fail(why, marked, "the file could not be marked as changing");
    struct part *p = newest_of(f);
    for (const struct part *q = newest_of(other); q;
         p = p->older, q = q->older) {
        if (is_counting(f))
            join(f->kind, p, q, SUMS);
        else
            unite_bits(p->body, q->body, bits_bytes(f->kind, &p->shape));
        const uint64_t a = items_of(p), b = items_of(q);
        p->items =
            is_counting(f) ? a + b : items_between(f, p, a > b ? a : b, a + b);
    }
    return check_whole(other, why);
}

calyx_status calyx_intersect(calyx_filter *f, const calyx_filter *other,
                             calyx_error *why) {
    /* A file in place only ever gains bits, so that a crash loses none. */
    const calyx_status fit =
        f->image ? fail_read_only(why) : check_fit(f, other, why);
    if (fit != CALYX_OK || f == other) return fit;
    if (newest_of(f)->older) return fail_grown(why, "an intersection");
    struct part *p = newest_of(f);
    for (const struct part *q = newest_of(other); q;
         p = p->older, q = q->older) {
        if (is_counting(f))
            join(f->kind, p, q, LEAST);
        else
            common_bits(p->body, q->body, bits_bytes(f->kind, &p->shape));
        const uint64_t a = items_of(p), b = items_of(q);
        p->items = items_between(f, p, 0, a < b ? a : b);
    }
    return check_whole(other, why);
}

calyx_status calyx_compare(const calyx_filter *a, const calyx_filter *b,
                           calyx_overlap *result, calyx_error *why) {
    const calyx_status fit = check_fit(a, b, why);
    if (fit != CALYX_OK) return fit;
    const struct part *p = newest_of(a), *q = newest_of(b);
    if (p->older) return fail_grown(why, "a comparison");

    uint64_t united = 0;
    const uint64_t bytes = bits_bytes(a->kind, &p->shape);
    for (uint64_t i = 0; i < bytes; i += 8)
        united += (uint64_t)__builtin_popcountll(peek64(p->body + i) |
                                                 peek64(q->body + i));
    const double in_a =
        keys_for_bits(a->kind, &p->shape, count_bits(a->kind, p));
    const double in_b =
        keys_for_bits(a->kind, &p->shape, count_bits(a->kind, q));
    const double either = keys_for_bits(a->kind, &p->shape, united);
    const double both = fmax(0, in_a + in_b - either);
    *result = (calyx_overlap){either, both, either > 0 ? both / either : 1};
    return CALYX_OK;
}
