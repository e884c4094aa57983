/*
 * Additions to the bucket kind. A code goes to its bucket; a full one spills an
 * entry (bucket_spill.c). A batch stops at the first hash that finds no room,
 * so that the table can grow before it.
 */
#ifndef CALYX_BUCKET_ADD_H
#define CALYX_BUCKET_ADD_H

#include "bucket/bucket_batch.h"

/* Count slots that match a key. */
static inline void count_slots(const uint8_t *line, uint32_t width,
                               uint32_t varies, uint64_t hits,
                               struct copies *copies) {
    for (; hits; hits &= hits - 1)
        count_copy(copies,
                   get_code(line, (uint32_t)__builtin_ctzll(hits), width),
                   varies);
}

/* Do entries stay of which a key has these copies? No removal takes one of
 * COPIES_MOST copies, nor a short code, and both move on as they are. */
static inline bool any_stays(const struct copies *copies, uint32_t width,
                             uint32_t varies) {
    for (uint32_t stop = 0; stop < width; stop++)
        if (copies->of[stop] >= COPIES_MOST ||
            (copies->of[stop] && is_short(UINT32_C(1) << stop, width, varies)))
            return true;
    return false;
}

/* A key has most_copies entries, or one that is permanent: it is not added. */
static inline bool is_at_most(struct bucket_table *t,
                              const struct bucket_ref *at,
                              const struct bucket_scan *here,
                              struct spill_scan *there) {
    const uint8_t *const line = bucket_line(at);
    if (here->hits & permanent_slots(line, t->width)) return true;
    const uint32_t hits = (uint32_t)__builtin_popcountll(here->hits);
    if (hits + there->hits < t->most_copies) return false;
    if (t->most_copies == 1) return true;
    count_slots(line, t->width, at->varies, here->hits, &there->copies);
    const bool stays = any_stays(&there->copies, t->width, at->varies);
    if (stays && has_permanent(line, t->width, at->want)) return true;
    return bucket_make_permanent(t, at) || stays;
}

/* Are there entries of a class, or may there be more than one line has? */
static inline bool needs_scan(const struct bucket_table *t,
                              const struct bucket_ref *at) {
    const struct probing p = first_probe(t, at);
    return may_be_spilled(bucket_line(at), t->width, at->want) || goes_on(&p);
}

/* A bucket that is full, or has many copies of a code, or a permanent one. */
static inline enum insertion add_to_full(struct bucket_table *t,
                                         const struct bucket_ref *at,
                                         const struct bucket_scan *here,
                                         bool *fresh) {
    const uint32_t code = new_code(at);
    const bool full = here->used == all_slots(t->width);
    *fresh = false;
    if (is_saturated(bucket_line(at))) return KEY_AT_MOST;
    struct spill_scan there = full && needs_scan(t, at)
                                  ? scan_spilled(t, at)
                                  : (struct spill_scan){0};
    *fresh = here->hits == 0 && there.hits == 0;
    if (is_at_most(t, at, here, &there)) return KEY_AT_MOST;
    if (!full)
        put_code(bucket_line(at), t->width, here->used, code);
    else if (there.entries >= spill_most(t) || !spill_from(t, at, code))
        return NO_ROOM;
    return KEY_ADDED;
}

/* What became of a key that was to be added to a line. It is not added if the
 * line is full, or has many copies of its code, or a permanent one. */
enum line_insertion { NOT_ADDED, ADDED_FRESH, ADDED_AGAIN };

ALWAYS_INLINE enum line_insertion add_to_line(uint8_t *line, uint32_t width,
                                              uint32_t want, uint32_t varies,
                                              uint32_t most_copies,
                                              struct bucket_steps steps) {
    const struct bucket_scan here =
        scan_bucket(line, width, want, varies, steps.scans);
    const uint32_t copies = (uint32_t)__builtin_popcountll(here.hits);
    if (__builtin_expect(here.used == all_slots(width) ||
                             copies >= most_copies || line[LOW_AT] > LOW_MASK,
                         false))
        return NOT_ADDED;
    put_code(line, width, here.used, want | (varies & 1));
    return here.hits ? ADDED_AGAIN : ADDED_FRESH;
}

ALWAYS_INLINE enum insertion add_at(struct bucket_table *t,
                                    const struct bucket_ref *at, bool *fresh,
                                    struct bucket_steps steps) {
    uint8_t *const line = bucket_line(at);
    const enum line_insertion became = add_to_line(
        line, t->width, at->want, at->varies, t->most_copies, steps);
    *fresh = became == ADDED_FRESH;
    if (became != NOT_ADDED) return KEY_ADDED;
    const struct bucket_scan here =
        scan_bucket(line, t->width, at->want, at->varies, steps.scans);
    return add_to_full(t, at, &here, fresh);
}

/* Number of entries with the code of a new key, up to COPIES_MOST or more. */
static inline uint32_t copies_at(const struct bucket_table *t,
                                 const struct bucket_ref *at) {
    const uint8_t *const line = bucket_line(at);
    const uint32_t code = new_code(at);
    struct spill_scan there = may_be_spilled(line, t->width, code)
                                  ? scan_spilled(t, at)
                                  : (struct spill_scan){0};
    uint32_t copies = *copies_of(&there.copies, code, at->varies);
    for (uint64_t used = used_slots(line, t->width); used; used &= used - 1)
        copies +=
            get_code(line, (uint32_t)__builtin_ctzll(used), t->width) == code;
    return copies;
}

/* ---- Borders ------------------------------------------------------------- */

/* The bucket on the other side, if the range of a new code goes over a border
 * between two of its group; else its own. */
static inline uint64_t other_bucket(const struct bucket_table *t,
                                    const struct bucket_scale *scale,
                                    uint64_t hash) {
    const uint64_t group = scale64(hash, scale->groups);
    const uint64_t fraction = hash * scale->groups;
    const uint64_t rest = UINT64_MAX >> (t->width + 1);
    const uint64_t low = scale64(fraction & ~rest, scale->positions);
    const uint64_t high = scale64(fraction | rest, scale->positions);
    const uint64_t here = scale64(fraction, scale->positions);
    return group * scale->positions + (here == low ? high : low);
}

/* May the range go over a border? The fraction within the bucket says how far
 * away that is. */
ALWAYS_INLINE bool is_near_border(uint64_t hash, struct bucket_scale scale,
                                  uint32_t width) {
    const uint64_t length = (uint64_t)scale.positions << (63 - width);
    return scale.positions != POSITIONS &&
           hash * scale.buckets + length < 2 * length;
}

/*
 * A move takes equal codes on both sides of a border for entries of the same
 * keys (bucket_grow.c), and leaves as many as the side with more of them had.
 * So a new key there makes its side have one more than both had before. Where
 * codes are distinct, one entry will do for both sides.
 */
ALWAYS_INLINE enum insertion add_at_border(struct bucket_table *t,
                                           uint64_t other_number,
                                           const struct bucket_ref *at,
                                           bool *fresh,
                                           struct bucket_steps steps) {
    struct bucket_ref other = *at;
    find_bucket(t, other_number / t->groups, other_number, &other);
    const uint32_t copies = copies_at(t, &other);
    const enum insertion became = add_at(t, at, fresh, steps);
    enum insertion next = became;
    while (next == KEY_ADDED && copies_at(t, at) <= copies) {
        bool ignored;
        next = add_at(t, at, &ignored, steps);
    }
    return next == NO_ROOM ? NO_ROOM : became;
}

ALWAYS_INLINE enum insertion add_to_table(struct bucket_table *t, uint64_t hash,
                                          bool *fresh,
                                          struct bucket_steps steps) {
    const struct bucket_scale scale = scale_of(t, t->stage, hash);
    const struct bucket_ref at = locate(t, scale, hash);
    if (__builtin_expect(is_near_border(hash, scale, t->width), false) &&
        t->most_copies > 1) {
        const uint64_t other = other_bucket(t, &scale, hash);
        if (other != scale64(hash, scale.buckets))
            return add_at_border(t, other, &at, fresh, steps);
    }
    return add_at(t, &at, fresh, steps);
}

/* add_to_table, as a function of its own: what is rare shall not take registers
 * from what is not. */
typedef enum insertion add_hash_alone(struct bucket_table *t, uint64_t hash,
                                      bool *fresh);

/* Look at a line that will soon be added to, which takes it into L1, and
 * prefetch what its next entry will be spilled to. */
ALWAYS_INLINE void prefetch_near(const struct bucket_table *t,
                                 const struct batch_form *form, uint64_t hash,
                                 uint8_t *const *place) {
    const struct bucket_query q = query_in(t, form, hash, place);
    if (__builtin_expect(!get_classes(q.line), true)) return;
    const struct bucket_ref at = locate(t, scale_in(form, hash), hash);
    const struct probing p = first_probe(t, &at);
    prefetch_l1(p.lines + p.line * BUCKET_BYTES);
}

/* Add the hashes of a batch until one finds no room. Returns the number of
 * those before it, and of these that were added. The stage does not change. */
ALWAYS_INLINE size_t add_batch_in_loop(
    struct bucket_table *t, struct batch batch, bool *fresh, size_t *added,
    const struct batch_form *given, enum batch_loop loop,
    struct bucket_steps steps, add_hash_alone *add_alone) {
    const struct batch_form known = form_in(loop, given), *const form = &known;
    const size_t all = batch.n + batch.more;
    const uint32_t most_copies = t->most_copies;
    struct line_ring ring;
    size_t i = 0, at_most = 0;
    prefetch_first(t, form, &batch, &ring);
    for (; i < batch.n; i++) {
        const uint64_t hash = batch.hashes[i];
        const size_t ahead = i + PREFETCH_DISTANCE;
        if (ahead < all)
            prefetch_line(t, form, batch.hashes[ahead],
                          &ring.line[ahead % RING]);
        const size_t near = i + PREFETCH_DISTANCE_L1;
        if (near < all)
            prefetch_near(t, form, batch.hashes[near], &ring.line[near % RING]);
        const struct bucket_query q =
            query_in(t, form, hash, &ring.line[i % RING]);
        enum line_insertion here = NOT_ADDED;
        if (__builtin_expect(
                !is_near_border(hash, scale_in(form, hash), form->width), true))
            here = add_to_line(q.line, form->width, q.want, q.varies,
                               most_copies, steps);
        bool is = here == ADDED_FRESH;
        if (__builtin_expect(here == NOT_ADDED, false)) {
            bool is_fresh = false;
            const enum insertion became = add_alone(t, hash, &is_fresh);
            if (became == NO_ROOM) break;
            at_most += became == KEY_AT_MOST;
            is = is_fresh;
        }
        if (fresh) fresh[i] = is;
    }
    *added = i - at_most;
    return i;
}

typedef size_t add_loop(struct bucket_table *t, struct batch batch, bool *fresh,
                        size_t *added, const struct batch_form *form);

ALWAYS_INLINE size_t add_batch_to_table(struct bucket_table *t,
                                        struct batch batch, bool *fresh,
                                        size_t *added, add_loop *const *loops) {
    struct segment_starts starts[2];
    const struct batch_form form = form_of(t, t->stage, starts);
    return loops[loop_of(&form)](t, batch, fresh, added, &form);
}

#endif
