/*
 * Template: the functions of the bucket kind, given one that scans a bucket at
 * a processor level. All are inlined into the kernel that names its scan.
 * Lookups take a second one, of the same level, that scans a line of spilled
 * entries.
 */
#ifndef CALYX_BUCKET_TEMPLATE_H
#define CALYX_BUCKET_TEMPLATE_H

#include "bucket/bucket_spill.h"
#include "kind/batch_loops.h"

/* ---- Has ----------------------------------------------------------------- */

ALWAYS_INLINE bool has_at(const struct bucket_table *t,
                          const struct bucket_place *at, const uint8_t *line,
                          scan_bucket *scan) {
    const struct bucket_scan here = scan(line, t->width, at->want, at->varies);
    if (here.hits) return true;
    return here.used == slots_of(t->width) && has_spilled(t, at);
}

struct line_copy {
    _Alignas(64) uint8_t bytes[BUCKET_BYTES];
};

/*
 * While another thread writes: a "no" counts if nothing moved meanwhile. The
 * stage is read again behind the version: so a move that ended before is seen
 * in the stage, and one that begins later in the version.
 */
ALWAYS_INLINE bool has_while_written(const struct bucket_table *t,
                                     uint64_t hash, scan_bucket *scan) {
    for (;;) {
        struct line_copy copy = {{0}};
        const uint64_t stage = stage_of(t);
        const struct bucket_address a = address_of(t, stage, hash);
        const uint32_t *const at_version = version_of(t, &a);
        const uint32_t version = __atomic_load_n(at_version, __ATOMIC_ACQUIRE);
        if (version % 2 || stage_of(t) != stage) continue;
        const struct bucket_place at = place_of(t, stage, hash);
        copy_line(copy.bytes, bucket_line(&at));
        if (has_at(t, &at, copy.bytes, scan)) return true;
        if (__atomic_load_n(at_version, __ATOMIC_ACQUIRE) == version &&
            stage_number(stage_of(t)) == stage_number(stage))
            return false;
    }
}

/* Has a line of spilled entries one that matches? */
typedef bool find_spilled(const uint8_t *line, uint32_t want, uint32_t varies);

ALWAYS_INLINE bool has_spilled_hash(const struct bucket_table *t, uint64_t hash,
                                    find_spilled *find) {
    const struct bucket_place at = place_of(t, t->stage, hash);
    struct probing p = first_probe(t, &at);
    do {
        if (find(p.lines + p.line * BUCKET_BYTES,
                 at.want | tag_of(&at, p.number) << t->width, at.varies))
            return true;
    } while (goes_on(&p) && next_probe(&p));
    return false;
}

ALWAYS_INLINE bool has_in_table(const struct bucket_table *t, uint64_t hash,
                                scan_bucket *scan, find_spilled *find) {
    if (__builtin_expect(t->shared, false))
        return has_while_written(t, hash, scan);
    const struct bucket_query q = query_of(t, t->stage, hash, t->width);
    if (scan(q.line, t->width, q.want, q.varies).hits) return true;
    return is_bucket_full(q.line, t->width) && has_spilled_hash(t, hash, find);
}

/* Numbers of the hashes in a batch to look for among spilled entries. */
struct spill_queue {
    size_t n;
    uint16_t number[PREFETCH_DISTANCE];
};

ALWAYS_INLINE void has_queued(const struct bucket_table *t,
                              const uint64_t *hashes, struct spill_queue *queue,
                              bool *found, find_spilled *find) {
    while (queue->n > 0) {
        const uint16_t i = queue->number[--queue->n];
        found[i] = has_spilled_hash(t, hashes[i], find);
    }
}

ALWAYS_INLINE void queue_spilled(const struct bucket_table *t,
                                 const uint64_t *hashes, size_t i,
                                 struct spill_queue *queue, bool *found,
                                 find_spilled *find) {
    const struct bucket_place at = place_of(t, t->stage, hashes[i]);
    prefetch_l1(spill_line_of(&at));
    queue->number[queue->n++] = (uint16_t)i;
    if (queue->n == PREFETCH_DISTANCE)
        has_queued(t, hashes, queue, found, find);
}

/* Queries are prepared when their line is prefetched. */
ALWAYS_INLINE size_t has_batch_unshared(const struct bucket_table *given,
                                        struct batch batch, bool *found,
                                        uint32_t width, scan_bucket *scan,
                                        find_spilled *find) {
    enum { RING = 2 * PREFETCH_DISTANCE };
    /* A copy, so that the compiler sees that no store changes it. */
    const struct bucket_table t = *given;
    const size_t prologue = prologue_length(&batch);
    const size_t all = batch.n + batch.more;
    struct bucket_query ring[RING];
    struct spill_queue queue;
    queue.n = 0;
    for (size_t j = 0; j < prologue; j++) {
        ring[j] = query_of(&t, t.stage, batch.hashes[j], width);
        prefetch_l2(ring[j].line);
    }
    for (size_t i = 0; i < batch.n; i++) {
        const size_t j = i + PREFETCH_DISTANCE;
        if (j < all) {
            ring[j % RING] = query_of(&t, t.stage, batch.hashes[j], width);
            prefetch_l2(ring[j % RING].line);
        }
        const struct bucket_query q = ring[i % RING];
        found[i] = scan(q.line, width, q.want, q.varies).hits != 0;
        if (!found[i] & is_bucket_full(q.line, width))
            queue_spilled(given, batch.hashes, i, &queue, found, find);
    }
    has_queued(given, batch.hashes, &queue, found, find);
    return count_true(found, batch.n);
}

/* The widths of filters at 1 %, fixed and growing, are constants. */
ALWAYS_INLINE size_t has_batch_in_table(const struct bucket_table *t,
                                        struct batch batch, bool *found,
                                        scan_bucket *scan, find_spilled *find) {
    bool answers[BATCH_MAX];
    bool *const to = found ? found : answers;
    if (t->shared) {
        for (size_t i = 0; i < batch.n; i++)
            to[i] = has_while_written(t, batch.hashes[i], scan);
        return count_true(to, batch.n);
    }
    switch (t->width) {
        case 12: return has_batch_unshared(t, batch, to, 12, scan, find);
        case 17: return has_batch_unshared(t, batch, to, 17, scan, find);
        default: return has_batch_unshared(t, batch, to, t->width, scan, find);
    }
}

/* ---- Add ----------------------------------------------------------------- */

/* Number of slots with this very code, among those that match. */
static inline uint32_t copies_in(const uint8_t *line, uint32_t width,
                                 uint64_t hits, uint32_t code) {
    uint32_t copies = 0;
    for (; hits; hits &= hits - 1)
        copies +=
            get_slot(line, (uint32_t)__builtin_ctzll(hits), width) == code;
    return copies;
}

/* A bucket that is full, or has many copies of a code. */
static inline enum insertion add_to_full(const struct bucket_table *t,
                                         const struct bucket_place *at,
                                         const struct bucket_scan *here,
                                         bool *fresh) {
    const uint32_t code = new_code(at);
    const bool full = here->used == slots_of(t->width);
    const struct spill_scan there =
        full ? scan_spilled(t, at) : (struct spill_scan){0};
    const uint32_t copies =
        copies_in(bucket_line(at), t->width, here->hits, code) +
        (there.longest.code == code ? there.copies : 0);
    *fresh = here->hits == 0 && there.hits == 0;
    if (copies >= COPIES_MOST) return KEY_AT_MOST;
    if (!full)
        put_slot(bucket_line(at), here->used, t->width, code);
    else if (there.entries >= SPILL_MOST || !spill(t, at, code, NULL))
        return NO_ROOM;
    return KEY_ADDED;
}

ALWAYS_INLINE enum insertion add_at(struct bucket_table *t,
                                    const struct bucket_place *at, bool *fresh,
                                    scan_bucket *scan) {
    uint8_t *const line = bucket_line(at);
    const struct bucket_scan here = scan(line, t->width, at->want, at->varies);
    if (__builtin_expect(here.used == slots_of(t->width) ||
                             __builtin_popcountll(here.hits) >= COPIES_MOST,
                         false))
        return add_to_full(t, at, &here, fresh);
    put_slot(line, here.used, t->width, new_code(at));
    *fresh = here.hits == 0;
    return KEY_ADDED;
}

/* Number of entries with the code of a new key, up to COPIES_MOST or more. */
static inline uint32_t copies_at(const struct bucket_table *t,
                                 const struct bucket_place *at) {
    const uint32_t code = new_code(at);
    uint32_t copies = 0, i = 0;
    for (; i < slots_of(t->width); i++) {
        const uint32_t here = get_slot(bucket_line(at), i, t->width);
        if (here == 0) return copies;
        copies += here == code;
    }
    const struct spill_scan there = scan_spilled(t, at);
    return copies + (there.longest.code == code ? there.copies : 0);
}

/* The position on the other side, if the range of a new code goes over a border
 * between two; else its own. */
ALWAYS_INLINE uint32_t other_position(const struct bucket_table *t,
                                      const struct bucket_address *a) {
    const uint64_t f = a->fraction >> 32;
    const uint64_t rest = (UINT64_C(1) << (31 - t->width)) - 1;
    const uint32_t low = (uint32_t)((f & ~rest) * a->positions >> 32);
    const uint32_t high = (uint32_t)((f | rest) * a->positions >> 32);
    return position_of(a->fraction, a->positions) == low ? high : low;
}

/*
 * A move takes equal codes on both sides of a border for entries of the same
 * keys (bucket_grow.c), and leaves as many as the side with more of them had.
 * So a new key there makes its side have one more than both had before.
 */
ALWAYS_INLINE enum insertion add_at_border(struct bucket_table *t,
                                           const struct bucket_address *a,
                                           const struct bucket_place *at,
                                           bool *fresh, scan_bucket *scan) {
    struct bucket_place other = *at;
    find_bucket(t, a->level, a->y, other_position(t, a), &other);
    const uint32_t copies = copies_at(t, &other);
    const enum insertion became = add_at(t, at, fresh, scan);
    enum insertion next = became;
    while (next == KEY_ADDED && copies_at(t, at) <= copies) {
        bool ignored;
        next = add_at(t, at, &ignored, scan);
    }
    return next == NO_ROOM ? NO_ROOM : became;
}

ALWAYS_INLINE enum insertion add_to_table(struct bucket_table *t, uint64_t hash,
                                          bool *fresh, scan_bucket *scan) {
    const struct bucket_address a = address_of(t, t->stage, hash);
    const struct bucket_place at = place_of(t, t->stage, hash);
    if (__builtin_expect(other_position(t, &a) !=
                             position_of(a.fraction, a.positions),
                         false))
        return add_at_border(t, &a, &at, fresh, scan);
    return add_at(t, &at, fresh, scan);
}

/* ---- Remove -------------------------------------------------------------- */

/* Empty a slot; the last one in use takes its place. If the bucket was full, an
 * entry that it spilled comes back, so that only full buckets have some. */
static inline void empty_slot(const struct bucket_table *t,
                              const struct bucket_place *at, uint32_t i,
                              uint32_t used, const struct spill_scan *there) {
    uint8_t *const line = bucket_line(at);
    const uint32_t last = used - 1;
    const uint32_t code = get_slot(line, last, t->width);
    if (there->any.word) {
        put_slot(line, i, t->width, there->any.code);
        drop_spilled(t, at, &there->any, NULL);
        return;
    }
    if (i != last) put_slot(line, i, t->width, code);
    put_slot(line, last, t->width, 0);
}

/*
 * Of the entries that match, the longest leaves. All entries that match a hash
 * have a beginning of the same bits, so whoever matched the longest matches the
 * others, too: every key that stays still has an entry of its own.
 */
ALWAYS_INLINE enum removal remove_from_table(struct bucket_table *t,
                                             uint64_t hash, scan_bucket *scan) {
    const struct bucket_address a = address_of(t, t->stage, hash);
    const struct bucket_place at = place_of(t, t->stage, hash);
    const uint8_t *const line = bucket_line(&at);
    const struct bucket_scan here = scan(line, t->width, at.want, at.varies);
    const struct spill_scan there = here.used == slots_of(t->width)
                                        ? scan_spilled(t, &at)
                                        : (struct spill_scan){0};
    uint32_t longest = 0, slot = 0;
    for (uint64_t hits = here.hits; hits; hits &= hits - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(hits);
        const uint32_t code = get_slot(line, i, t->width);
        if (!longest || is_longer(code, longest)) longest = code, slot = i;
    }
    if (!longest && !there.longest.word) return KEY_ABSENT;
    const bool spilled = there.longest.word &&
                         (!longest || is_longer(there.longest.code, longest));
    const uint32_t code = spilled ? there.longest.code : longest;
    const uint32_t copies = copies_in(line, t->width, here.hits, code) +
                            (there.longest.code == code ? there.copies : 0);
    if (copies >= COPIES_MOST || is_short(code, t->width, at.varies))
        return KEY_STUCK;
    begin_move(t, &a);
    if (spilled)
        drop_spilled(t, &at, &there.longest, NULL);
    else
        empty_slot(t, &at, slot, here.used, &there);
    end_move(t, &a);
    return KEY_REMOVED;
}

ALWAYS_INLINE uint32_t count_in_table(const struct bucket_table *t,
                                      uint64_t hash, scan_bucket *scan,
                                      find_spilled *find) {
    if (!has_in_table(t, hash, scan, find)) return 0;
    const struct bucket_place at = place_of(t, stage_of(t), hash);
    struct line_copy copy = {{0}};
    copy_line(copy.bytes, bucket_line(&at));
    const struct bucket_scan here =
        scan(copy.bytes, t->width, at.want, at.varies);
    uint32_t n = (uint32_t)__builtin_popcountll(here.hits);
    if (here.used == slots_of(t->width)) n += scan_spilled(t, &at).hits;
    if (n == 0) return 1; /* it was moved, or removed, meanwhile */
    return n < COPIES_MOST ? n : COPIES_MOST;
}

/* ---- One segment alone --------------------------------------------------- */

ALWAYS_INLINE bool has_in_body(const uint8_t *body, const struct shape *shape,
                               uint64_t hash, scan_bucket *scan,
                               find_spilled *find) {
    struct bucket_table t;
    table_of(&t, body, shape);
    return has_in_table(&t, hash, scan, find);
}

ALWAYS_INLINE bool add_to_body(uint8_t *body, const struct shape *shape,
                               uint64_t hash, scan_bucket *scan) {
    struct bucket_table t;
    bool fresh = false;
    table_of(&t, body, shape);
    add_to_table(&t, hash, &fresh, scan);
    return fresh;
}

ALWAYS_INLINE size_t has_batch_in_body(const uint8_t *body,
                                       const struct shape *shape,
                                       struct batch batch, bool *found,
                                       scan_bucket *scan, find_spilled *find) {
    struct bucket_table t;
    table_of(&t, body, shape);
    return has_batch_in_table(&t, batch, found, scan, find);
}

ALWAYS_INLINE size_t add_batch_to_body(uint8_t *body, const struct shape *shape,
                                       struct batch batch, bool *fresh,
                                       scan_bucket *scan) {
    struct bucket_table t;
    size_t total = 0;
    table_of(&t, body, shape);
    for (size_t i = 0; i < batch.n; i++) {
        bool is = false;
        add_to_table(&t, batch.hashes[i], &is, scan);
        if (fresh) fresh[i] = is;
        total += is;
    }
    return total;
}

ALWAYS_INLINE enum removal remove_from_body(uint8_t *body,
                                            const struct shape *shape,
                                            uint64_t hash, scan_bucket *scan) {
    struct bucket_table t;
    table_of(&t, body, shape);
    return remove_from_table(&t, hash, scan);
}

ALWAYS_INLINE size_t remove_batch_from_body(uint8_t *body,
                                            const struct shape *shape,
                                            struct batch batch, bool *found,
                                            scan_bucket *scan) {
    struct bucket_table t;
    size_t removed = 0;
    table_of(&t, body, shape);
    for (size_t i = 0; i < batch.n; i++) {
        const enum removal became =
            remove_from_table(&t, batch.hashes[i], scan);
        if (found) found[i] = became != KEY_ABSENT;
        removed += became == KEY_REMOVED;
    }
    return removed;
}

#endif
