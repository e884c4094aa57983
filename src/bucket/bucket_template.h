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

/* Has a line of spilled entries one that matches? */
typedef bool find_spilled(const uint8_t *line, uint32_t want, uint32_t varies);

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
        if (scan_like(copy.bytes, t->width, at.want, at.varies, scan).hits)
            return true;
        if (may_be_spilled(copy.bytes, t->width, at.want) &&
            has_spilled(t, &at))
            return true;
        if (__atomic_load_n(at_version, __ATOMIC_ACQUIRE) == version &&
            stage_number(stage_of(t)) == stage_number(stage))
            return false;
    }
}

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

ALWAYS_INLINE bool has_unshared(const struct bucket_table *t, uint64_t hash,
                                uint32_t width, scan_bucket *scan,
                                find_spilled *find) {
    const struct bucket_query q = query_of(t, t->stage, hash, width);
    const bool hit = scan_like(q.line, width, q.want, q.varies, scan).hits != 0;
    const bool spilled = may_be_spilled(q.line, width, q.want);
    /* One branch that is rarely taken. */
    return __builtin_expect(!hit & spilled, false)
               ? has_spilled_hash(t, hash, find)
               : hit;
}

/* The widths of filters at 1 %, fixed and growing, are constants. */
ALWAYS_INLINE bool has_in_table(const struct bucket_table *t, uint64_t hash,
                                scan_bucket *scan, find_spilled *find) {
    if (__builtin_expect(t->shared, false))
        return has_while_written(t, hash, scan);
    return t->width == WIDTH_GROWING
               ? has_unshared(t, hash, WIDTH_GROWING, scan, find)
           : t->width == WIDTH_FIXED
               ? has_unshared(t, hash, WIDTH_FIXED, scan, find)
               : has_unshared(t, hash, t->width, scan, find);
}

/* ---- Borders ------------------------------------------------------------- */

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

ALWAYS_INLINE bool is_at_border(const struct bucket_table *t, uint64_t hash) {
    const struct bucket_address a = address_of(t, t->stage, hash);
    return other_position(t, &a) != position_of(a.fraction, a.positions);
}

/* ---- Many ---------------------------------------------------------------- */

enum {
    EIGHT = 8, /* hashes that are processed together */
    /* Addresses are written as a vector. To read one of them at once, and not
     * eight hashes later, would wait until it is written. */
    PREPARE_DISTANCE = PREFETCH_DISTANCE + EIGHT,
    RING = 2 * PREFETCH_DISTANCE,
    QUEUE_TURN = PREFETCH_DISTANCE / 2
};
_Static_assert(PREPARE_DISTANCE + EIGHT + QUEUE_TURN <= RING,
               "queries stay in the ring until they are queued");

/* Queries that are prepared, by arrays: `bit` is that of the class in the
 * header of the bucket. */
struct bucket_ring {
    const uint8_t *line[RING];
    uint32_t place[RING];
    uint32_t want[RING];
    uint64_t flip[RING];
    uint32_t bit[RING];
    uint8_t
        borders[RING / EIGHT]; /* hashes that are at a border of positions */
};

/* What the hashes of a batch have in common. */
struct batch_form {
    uint32_t width;
    uint32_t varies; /* is their level 1 or more? */
    bool adds;       /* then `borders` are wanted */
};

/* Prepare the queries of eight hashes from place i of the ring on. */
typedef void prepare_8(const struct bucket_table *t, const uint64_t *hashes,
                       struct batch_form form, struct bucket_ring *ring,
                       size_t i);

ALWAYS_INLINE void prepare_one_by_one(const struct bucket_table *t,
                                      const uint64_t *hashes,
                                      struct batch_form form,
                                      struct bucket_ring *ring, size_t i) {
    uint32_t borders = 0;
    for (size_t j = 0; j < EIGHT; j++) {
        const struct bucket_query q =
            query_of(t, t->stage, hashes[j], form.width);
        ring->line[i + j] = q.line;
        ring->place[i + j] = q.place;
        ring->want[i + j] = q.want;
        ring->flip[i + j] = flip_of(q.want, form.width);
        ring->bit[i + j] = class_bit(q.want, form.width);
        if (form.adds) borders |= (uint32_t)is_at_border(t, hashes[j]) << j;
    }
    ring->borders[i / EIGHT] = (uint8_t)borders;
}

/* Prepare the queries of the hashes from i on. Behind the last hash, the lines
 * are those of some hash. */
ALWAYS_INLINE void prepare_queries(const struct bucket_table *t,
                                   const uint64_t *hashes, size_t n, size_t i,
                                   struct batch_form form,
                                   struct bucket_ring *ring,
                                   prepare_8 *prepare) {
    uint64_t last[EIGHT] = {0};
    const uint64_t *from = hashes + i;
    if (__builtin_expect(n - i < EIGHT, false)) {
        memcpy(last, from, (n - i) * sizeof *from);
        from = last;
    }
    prepare(t, from, form, ring, i % RING);
}

/* Hashes of a batch that were not found in their bucket, but may be among the
 * entries that it has spilled. */
struct spill_queue {
    size_t n, prefetched;
    uint16_t number[BATCH_MAX + 1];
    uint32_t want[BATCH_MAX]; /* with the tag */
    const uint8_t *line[BATCH_MAX];
};

/* Prefetch the lines of spilled entries, before the ring goes round. */
ALWAYS_INLINE void prefetch_queued(const struct bucket_table *t,
                                   const struct bucket_ring *ring,
                                   uint32_t width, struct spill_queue *queue) {
    for (size_t i = queue->prefetched; i < queue->n; i++) {
        const size_t at = queue->number[i] % RING;
        const uint32_t place = ring->place[at];
        const uint64_t index =
            (uint64_t)(ring->line[at] - t->segment[place]) / BUCKET_BYTES;
        queue->line[i] = t->spill[place] + index / SPILL_BUCKETS * BUCKET_BYTES;
        queue->want[i] = ring->want[at] | (uint32_t)(index % SPILL_BUCKETS)
                                              << width;
        prefetch_l1(queue->line[i]);
    }
    queue->prefetched = queue->n;
}

/* Most spilled entries are in the first line. */
ALWAYS_INLINE void has_queued(const struct bucket_table *t,
                              const uint64_t *hashes, uint32_t varies,
                              const struct spill_queue *queue, bool *found,
                              find_spilled *find) {
    for (size_t i = 0; i < queue->n; i++) {
        const uint16_t number = queue->number[i];
        const uint8_t *const line = queue->line[i];
        const bool here = find(line, queue->want[i], varies);
        found[number] = here;
        if (__builtin_expect(!here & !!load32(line + 4 * SPILL_ENTRIES), false))
            found[number] = has_spilled_hash(t, hashes[number], find);
    }
}

/* Whether to look among spilled entries would be a branch that none could
 * foresee: it is postponed. */
ALWAYS_INLINE void has_prepared(const struct bucket_ring *ring, size_t i,
                                struct batch_form form, bool *found,
                                struct spill_queue *queue, scan_bucket *scan) {
    const size_t at = i % RING;
    const uint8_t *const line = ring->line[at];
    const uint32_t header = get_header(line);
    const uint64_t hits =
        scan(line, form.width, ring->want[at], form.varies).hits;
    const bool hit = (hits & slots_like(header, ring->flip[at])) != 0;
    found[i] = hit;
    queue->number[queue->n] = (uint16_t)i;
    queue->n += header >> ring->bit[at] & !hit;
}

/* Prepare the first queries of a batch, and prefetch their lines. */
ALWAYS_INLINE void fill_ring(const struct bucket_table *t,
                             const struct batch *batch, struct batch_form form,
                             struct bucket_ring *ring, prepare_8 *prepare) {
    const size_t all = batch->n + batch->more;
    for (size_t i = 0; i < all && i < PREPARE_DISTANCE; i += EIGHT)
        prepare_queries(t, batch->hashes, all, i, form, ring, prepare);
    for (size_t i = 0; i < all && i < PREFETCH_DISTANCE; i++)
        prefetch_l2(ring->line[i]);
}

/* Queries are prepared when their line is prefetched. */
ALWAYS_INLINE size_t has_batch_unshared(const struct bucket_table *given,
                                        struct batch batch, bool *found,
                                        struct batch_form form,
                                        scan_bucket *scan, find_spilled *find,
                                        prepare_8 *prepare) {
    /* A copy, so that the compiler sees that no store changes it. */
    const struct bucket_table t = *given;
    const size_t all = batch.n + batch.more;
    struct bucket_ring ring;
    struct spill_queue queue;
    queue.n = queue.prefetched = 0;
    fill_ring(&t, &batch, form, &ring, prepare);
    for (size_t i = 0; i < batch.n; i += EIGHT) {
        const size_t ahead = i + PREFETCH_DISTANCE;
        if (ahead + EIGHT < all)
            prepare_queries(&t, batch.hashes, all, ahead + EIGHT, form, &ring,
                            prepare);
        if (ahead < all && batch.n - i >= EIGHT) {
            UNROLL
            for (size_t j = 0; j < EIGHT; j++) {
                prefetch_l2(ring.line[ahead % RING + j]);
                has_prepared(&ring, i + j, form, found, &queue, scan);
            }
        } else {
            for (size_t j = i; j < batch.n && j < i + EIGHT; j++)
                has_prepared(&ring, j, form, found, &queue, scan);
        }
        if ((i + EIGHT) % QUEUE_TURN == 0)
            prefetch_queued(&t, &ring, form.width, &queue);
    }
    prefetch_queued(&t, &ring, form.width, &queue);
    has_queued(given, batch.hashes, form.varies, &queue, found, find);
    return count_true(found, batch.n);
}

/* Are hashes at two levels, of which one is 0? */
static inline bool is_mixed(const struct bucket_table *t) {
    return stage_number(t->stage) == POSITIONS - 1 && t->stage & MOVED_MASK;
}

static inline uint32_t varies_now(const struct bucket_table *t) {
    return stage_number(t->stage) < POSITIONS ? 0 : UINT32_MAX;
}

/* The hashes of a batch have nothing in common, or another thread writes. */
ALWAYS_INLINE void has_each(const struct bucket_table *t, struct batch batch,
                            bool *found, scan_bucket *scan,
                            find_spilled *find) {
    const size_t all = batch.n + batch.more;
    const uint64_t stage = stage_of(t);
    for (size_t i = 0; i < all && i < PREFETCH_DISTANCE; i++)
        prefetch_l2(query_of(t, stage, batch.hashes[i], t->width).line);
    for (size_t i = 0; i < batch.n; i++) {
        const size_t j = i + PREFETCH_DISTANCE;
        if (j < all)
            prefetch_l2(query_of(t, stage, batch.hashes[j], t->width).line);
        found[i] = has_in_table(t, batch.hashes[i], scan, find);
    }
}

ALWAYS_INLINE size_t has_batch_in_table(const struct bucket_table *t,
                                        struct batch batch, bool *found,
                                        scan_bucket *scan, find_spilled *find,
                                        prepare_8 *prepare) {
    bool answers[BATCH_MAX];
    bool *const to = found ? found : answers;
    const struct batch_form fixed = {.width = WIDTH_FIXED};
    const struct batch_form grown = {WIDTH_GROWING, UINT32_MAX, false};
    /* The stage of a shared table is not for plain reads. */
    if (t->shared || is_mixed(t)) {
        has_each(t, batch, to, scan, find);
        return count_true(to, batch.n);
    }
    const struct batch_form form = {t->width, varies_now(t), false};
    if (form.width == grown.width && form.varies)
        return has_batch_unshared(t, batch, to, grown, scan, find, prepare);
    if (form.width == fixed.width && !form.varies)
        return has_batch_unshared(t, batch, to, fixed, scan, find, prepare);
    return has_batch_unshared(t, batch, to, form, scan, find, prepare);
}

/* ---- Add ----------------------------------------------------------------- */

/* Number of slots with this very code, among those that match. */
static inline uint32_t copies_in(const uint8_t *line, uint32_t width,
                                 uint64_t hits, uint32_t code) {
    uint32_t copies = 0;
    for (; hits; hits &= hits - 1)
        copies +=
            get_code(line, (uint32_t)__builtin_ctzll(hits), width) == code;
    return copies;
}

/* Spill a code from a full bucket. */
static inline bool spill_from(const struct bucket_table *t,
                              const struct bucket_place *at, uint32_t code) {
    uint8_t *const line = bucket_line(at);
    if (!spill(t, at, code, NULL)) return false;
    put_header(line, CLASSES_AT,
               line[CLASSES_AT] | classes_of(code, t->width, at->varies));
    return true;
}

/* Entries that additions may spill from one bucket. */
static inline uint32_t spill_most(const struct bucket_table *t) {
    return t->adds == SPILL_NEAR ? SPILL_MOST / 2 : SPILL_MOST;
}

/* A bucket that is full, or has many copies of a code. */
static inline enum insertion add_to_full(const struct bucket_table *t,
                                         const struct bucket_place *at,
                                         const struct bucket_scan *here,
                                         bool *fresh) {
    const uint32_t code = new_code(at);
    const bool full = here->used == all_slots(t->width);
    const struct spill_scan there =
        full ? scan_spilled(t, at) : (struct spill_scan){0};
    const uint32_t copies =
        copies_in(bucket_line(at), t->width, here->hits, code) +
        (there.longest.code == code ? there.copies : 0);
    *fresh = here->hits == 0 && there.hits == 0;
    if (copies >= COPIES_MOST) return KEY_AT_MOST;
    if (!full)
        put_code(bucket_line(at), t->width, here->used, code);
    else if (there.entries >= spill_most(t) || !spill_from(t, at, code))
        return NO_ROOM;
    return KEY_ADDED;
}

/* Add to a bucket that is not full, and has few copies of the code; else false.
 */
ALWAYS_INLINE bool add_to_line(uint8_t *line, uint32_t width, uint32_t want,
                               uint32_t varies, bool *fresh,
                               scan_bucket *scan) {
    const struct bucket_scan here = scan_like(line, width, want, varies, scan);
    if (__builtin_expect(here.used == all_slots(width) ||
                             __builtin_popcountll(here.hits) >= COPIES_MOST,
                         false))
        return false;
    put_code(line, width, here.used, want | (varies & 1));
    *fresh = here.hits == 0;
    return true;
}

ALWAYS_INLINE enum insertion add_at(struct bucket_table *t,
                                    const struct bucket_place *at, bool *fresh,
                                    scan_bucket *scan) {
    uint8_t *const line = bucket_line(at);
    if (add_to_line(line, t->width, at->want, at->varies, fresh, scan))
        return KEY_ADDED;
    const struct bucket_scan here =
        scan_like(line, t->width, at->want, at->varies, scan);
    return add_to_full(t, at, &here, fresh);
}

/* Number of entries with the code of a new key, up to COPIES_MOST or more. */
static inline uint32_t copies_at(const struct bucket_table *t,
                                 const struct bucket_place *at) {
    const uint32_t code = new_code(at);
    uint32_t copies = 0;
    for (uint32_t i = 0; i < slots_of(t->width); i++)
        copies += get_code(bucket_line(at), i, t->width) == code;
    if (!may_be_spilled(bucket_line(at), t->width, code)) return copies;
    const struct spill_scan there = scan_spilled(t, at);
    return copies + (there.longest.code == code ? there.copies : 0);
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
    if (__builtin_expect(is_at_border(t, hash), false))
        return add_at_border(t, &a, &at, fresh, scan);
    return add_at(t, &at, fresh, scan);
}

/* Add the hashes of a batch until one finds no room. Returns the number of
 * those before it, and of these that were added. The stage does not change. */
ALWAYS_INLINE size_t add_batch_of(struct bucket_table *t, struct batch batch,
                                  bool *fresh, size_t *added,
                                  struct batch_form form, scan_bucket *scan,
                                  prepare_8 *prepare) {
    const struct bucket_table copy = *t;
    const size_t all = batch.n + batch.more;
    struct bucket_ring ring;
    size_t i = 0;
    *added = 0;
    fill_ring(&copy, &batch, form, &ring, prepare);
    for (; i < batch.n; i++) {
        const size_t ahead = i + PREFETCH_DISTANCE;
        if (ahead < all) {
            if (i % EIGHT == 0 && ahead + EIGHT < all)
                prepare_queries(&copy, batch.hashes, all, ahead + EIGHT, form,
                                &ring, prepare);
            prefetch_l2(ring.line[ahead % RING]);
        }
        const size_t at = i % RING;
        bool is = false;
        if (__builtin_expect(ring.borders[at / EIGHT] >> at % EIGHT & 1 ||
                                 !add_to_line((uint8_t *)ring.line[at],
                                              form.width, ring.want[at],
                                              form.varies, &is, scan),
                             false)) {
            const enum insertion became =
                add_to_table(t, batch.hashes[i], &is, scan);
            if (became == NO_ROOM) break;
            *added -= became == KEY_AT_MOST;
        }
        ++*added;
        if (fresh) fresh[i] = is;
    }
    return i;
}

ALWAYS_INLINE size_t add_batch_to_table(struct bucket_table *t,
                                        struct batch batch, bool *fresh,
                                        size_t *added, scan_bucket *scan,
                                        prepare_8 *prepare) {
    const struct batch_form fixed = {.width = WIDTH_FIXED, .adds = true};
    const struct batch_form grown = {WIDTH_GROWING, UINT32_MAX, true};
    const struct batch_form form = {t->width, varies_now(t), true};
    if (form.width == grown.width && form.varies)
        return add_batch_of(t, batch, fresh, added, grown, scan, prepare);
    if (form.width == fixed.width && !form.varies)
        return add_batch_of(t, batch, fresh, added, fixed, scan, prepare);
    return add_batch_of(t, batch, fresh, added, form, scan, prepare);
}

/* ---- Remove -------------------------------------------------------------- */

/* Put the classes of the entries that are still spilled. */
static inline void renew_classes(const struct bucket_table *t,
                                 const struct bucket_place *at) {
    put_header(bucket_line(at), CLASSES_AT, scan_spilled(t, at).classes);
}

/* Take a slot. If the bucket was full, an entry that it spilled comes back. */
static inline void empty_slot(const struct bucket_table *t,
                              const struct bucket_place *at, uint32_t i,
                              uint64_t used, const struct spill_scan *there) {
    uint8_t *const line = bucket_line(at);
    take_code(line, t->width, used, i);
    if (!there->any.word) return;
    /* The only empty slot is between the two halves. */
    const uint64_t empty = UINT64_C(1) << low_slots(line, t->width);
    put_code(line, t->width, ~empty, there->any.code);
    drop_spilled(t, at, &there->any, NULL);
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
    const struct bucket_scan here =
        scan_like(line, t->width, at.want, at.varies, scan);
    const struct spill_scan there =
        line[CLASSES_AT] ? scan_spilled(t, &at) : (struct spill_scan){0};
    uint32_t longest = 0, slot = 0;
    for (uint64_t hits = here.hits; hits; hits &= hits - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(hits);
        const uint32_t code = get_code(line, i, t->width);
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
    if (there.any.word) renew_classes(t, &at);
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
        scan_like(copy.bytes, t->width, at.want, at.varies, scan);
    uint32_t n = (uint32_t)__builtin_popcountll(here.hits);
    if (may_be_spilled(copy.bytes, t->width, at.want))
        n += scan_spilled(t, &at).hits;
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
                                       scan_bucket *scan, find_spilled *find,
                                       prepare_8 *prepare) {
    struct bucket_table t;
    table_of(&t, body, shape);
    return has_batch_in_table(&t, batch, found, scan, find, prepare);
}

/* A hash that finds no room is left out. */
ALWAYS_INLINE size_t add_batch_to_body(uint8_t *body, const struct shape *shape,
                                       struct batch batch, bool *fresh,
                                       scan_bucket *scan, prepare_8 *prepare) {
    bool answers[BATCH_MAX];
    bool *const to = fresh ? fresh : answers;
    struct bucket_table t;
    table_of(&t, body, shape);
    for (size_t i = 0; i < batch.n; i++) {
        const struct batch rest = {
            .hashes = batch.hashes + i,
            .n = batch.n - i,
            .more = batch.more,
        };
        size_t added;
        i += add_batch_to_table(&t, rest, to + i, &added, scan, prepare);
        if (i < batch.n) to[i] = false;
    }
    return count_true(to, batch.n);
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
