/*
 * Template: the functions of the bucket kind, given those that compare lanes at
 * a processor level. All are inlined into the kernel that has these
 * (bucket_kernel.h).
 */
#ifndef CALYX_BUCKET_TEMPLATE_H
#define CALYX_BUCKET_TEMPLATE_H

#include "bucket/bucket_spill.h"
#include "kind/batch_loops.h"

struct lane_hits;
struct spill_list;

/* What a processor level has of its own. */
struct bucket_steps {
    struct lane_scans scans;
    /* scale64. */
    uint64_t (*scale)(uint64_t hash, uint64_t n);
    /* Answer hashes i to i + 15 of a batch, and append those that may be among
     * spilled entries to a list. Returns the number of "yes". */
    size_t (*resolve)(const struct lane_hits *hits, size_t i, bool *found,
                      struct spill_list *spills);
    /* Has a line of spilled entries one that matches? */
    bool (*find)(const uint8_t *line, uint32_t want, uint32_t varies);
    /* put_in_run, for lines that nobody else reads: behind the slot where the
     * run ends, with this number of slots in use. */
    void (*put_in_run)(uint8_t *line, uint32_t width, uint32_t code,
                       uint64_t end, uint64_t used);
};

/* ---- Has ----------------------------------------------------------------- */

struct line_copy {
    _Alignas(64) uint8_t bytes[BUCKET_BYTES];
};

/*
 * While another thread writes: a "no" counts if nothing moved meanwhile. The
 * stage is read again behind the version: so a move that ended before is seen
 * in the stage, and one that begins later in the version.
 */
ALWAYS_INLINE bool has_while_written(const struct bucket_table *t,
                                     uint64_t hash, struct bucket_steps steps) {
    for (;;) {
        struct line_copy copy = {{0}};
        const uint64_t stage = stage_of(t);
        const struct bucket_scale scale = scale_of(t, stage, hash);
        const uint32_t *const at_version =
            version_of(t, scale64(hash, scale.groups));
        const uint32_t version = __atomic_load_n(at_version, __ATOMIC_ACQUIRE);
        if (version % 2 || stage_of(t) != stage) continue;
        const struct bucket_place at = place_of(t, scale, hash);
        copy_line(copy.bytes, bucket_line(&at));
        const struct line_answer answer =
            ask_line(copy.bytes, t->width, at.want, at.varies, steps.scans);
        if (answer.has) return true;
        if (answer.spilled >> SPILLED_BIT && has_spilled(t, &at)) return true;
        if (__atomic_load_n(at_version, __ATOMIC_ACQUIRE) == version &&
            stage_number(stage_of(t)) == stage_number(stage))
            return false;
    }
}

ALWAYS_INLINE bool find_spilled(const struct bucket_table *t,
                                const struct bucket_place *at,
                                struct bucket_steps steps) {
    struct probing p = first_probe(t, at);
    do {
        if (steps.find(p.lines + p.line * BUCKET_BYTES,
                       at->want | tag_of(t->width, at, p.number) << t->width,
                       at->varies))
            return true;
    } while (goes_on(&p) && next_probe(&p));
    return false;
}

ALWAYS_INLINE bool has_unshared(const struct bucket_table *t, uint64_t hash,
                                uint32_t width, struct bucket_scale scale,
                                uint32_t varies, const uint8_t *line,
                                struct bucket_steps steps) {
    const uint32_t want = code_of(hash, scale, width, varies);
    const struct line_answer answer =
        ask_line(line, width, want, varies, steps.scans);
    /* One branch that is rarely taken. */
    if (__builtin_expect(answer.spilled >> SPILLED_BIT & !answer.has, false)) {
        const struct bucket_place at = place_of(t, scale, hash);
        return find_spilled(t, &at, steps);
    }
    return answer.has;
}

/* The widths of most filters are constants here. */
ALWAYS_INLINE bool has_in_table(const struct bucket_table *t, uint64_t hash,
                                struct bucket_steps steps) {
    if (__builtin_expect(t->shared, false))
        return has_while_written(t, hash, steps);
    if (t->stage == 0) {
        const struct bucket_scale first = scale_at(t, 0);
        const uint8_t *const line =
            (const uint8_t *)t->start[segment_place(0)] +
            scale64(hash, first.buckets) * BUCKET_BYTES;
        switch (t->width) {
            case WIDTH_FIXED:
                return has_unshared(t, hash, WIDTH_FIXED, first, 0, line,
                                    steps);
            case WIDTH_FIXED_LOW:
                return has_unshared(t, hash, WIDTH_FIXED_LOW, first, 0, line,
                                    steps);
            case WIDTH_GROWING:
                return has_unshared(t, hash, WIDTH_GROWING, first, 0, line,
                                    steps);
            default:
                return has_unshared(t, hash, t->width, first, 0, line, steps);
        }
    }
    const struct bucket_scale scale = scale_of(t, t->stage, hash);
    const uint8_t *const line = line_of_hash(t, hash, scale);
    return t->width == WIDTH_GROWING && scale.level
               ? has_unshared(t, hash, WIDTH_GROWING, scale, UINT32_MAX, line,
                              steps)
               : has_unshared(t, hash, t->width, scale, varies_at(&scale), line,
                              steps);
}

/* ---- Many ---------------------------------------------------------------- */

enum { EIGHT = 8, RING = 2 * PREFETCH_DISTANCE };

/* What the hashes of a batch have in common, and a copy of what decides where
 * they are, which no store changes. */
struct batch_form {
    uint32_t width;
    uint32_t varies;    /* is their level 1 or more?                    */
    bool is_one;        /* segment                                      */
    bool is_row;        /* are all segments in a row?                   */
    bool is_moving;     /* are groups on their way to the next stage?   */
    bool is_special;    /* has it a loop of its own? Then it is unrolled */
    uint64_t last_here; /* hash whose group has not moved, if any has    */
    uintptr_t start;    /* of all buckets, if is_one or is_row          */
    struct bucket_scale scale, next;
    const struct segment_starts *starts; /* of scale and next, if neither */
};

/* Is the line of a hash found again when it is needed? With one product, that
 * is faster than to remember it. */
ALWAYS_INLINE bool finds_again(const struct batch_form *form) {
    return form->is_one || form->is_row;
}

/* `starts` is memory for two, of which it makes what it needs. They are not
 * members: then the compiler would not keep the others in registers. */
static inline struct batch_form form_of(const struct bucket_table *t,
                                        struct segment_starts *starts) {
    const uint32_t number = stage_number(t->stage);
    struct batch_form form = {
        .width = t->width,
        .varies = number < POSITIONS ? 0 : UINT32_MAX,
        .is_one = t->stage == 0,
        .start = t->start[segment_place(0)],
        .is_moving = (t->stage & MOVED_MASK) != 0,
        .scale = scale_at(t, number),
        .starts = starts,
    };
    if (form.is_one) return form;
    form.is_row = is_in_row(t, number + form.is_moving);
    if (!form.is_row) fill_starts(t, &form.scale, &starts[0]);
    if (!form.is_moving) return form;
    form.next = scale_at(t, number + 1);
    form.last_here =
        lowest_scaled64(groups_left(t, t->stage), form.scale.groups) - 1;
    if (!form.is_row) fill_starts(t, &form.next, &starts[1]);
    return form;
}

/* Has the group of a hash moved? */
ALWAYS_INLINE bool has_moved(const struct batch_form *form, uint64_t hash) {
    return form->is_moving && hash > form->last_here;
}

/*
 * Loops over a batch that are compiled by themselves: for tables of one segment
 * at 1 % and 0.1 %, and for those that have grown at 1 %, in a row or apart,
 * and perhaps with groups on their way. All other forms share one, as all do
 * where size counts more.
 */
enum batch_loop {
    LOOP_ANY,
    LOOP_FIXED,
    LOOP_FIXED_LOW,
    LOOP_GROWING,
    LOOP_ROW,
    LOOP_ROW_MOVING,
    LOOP_APART,
    LOOP_APART_MOVING,
    LOOPS
};

static inline enum batch_loop loop_of(const struct batch_form *form) {
#ifndef __OPTIMIZE_SIZE__
    if (form->is_one && form->width == WIDTH_FIXED) return LOOP_FIXED;
    if (form->is_one && form->width == WIDTH_FIXED_LOW) return LOOP_FIXED_LOW;
    if (form->is_one && form->width == WIDTH_GROWING) return LOOP_GROWING;
    if (form->width == WIDTH_GROWING && form->varies) {
        if (form->is_row) return form->is_moving ? LOOP_ROW_MOVING : LOOP_ROW;
        return form->is_moving ? LOOP_APART_MOVING : LOOP_APART;
    }
#endif
    (void)form;
    return LOOP_ANY;
}

/* Assign the members that such a loop implies: so the compiler knows them. */
ALWAYS_INLINE struct batch_form form_in(enum batch_loop loop,
                                        const struct batch_form *form) {
    struct batch_form to = *form;
    if (loop == LOOP_ANY) return to;
    to.is_special = true;
    to.is_one = loop <= LOOP_GROWING;
    to.is_row = loop == LOOP_ROW || loop == LOOP_ROW_MOVING;
    to.is_moving = loop == LOOP_ROW_MOVING || loop == LOOP_APART_MOVING;
    to.varies = to.is_one ? 0 : UINT32_MAX;
    to.width = loop == LOOP_FIXED       ? WIDTH_FIXED
               : loop == LOOP_FIXED_LOW ? WIDTH_FIXED_LOW
                                        : WIDTH_GROWING;
    return to;
}

/* Are hashes at two levels, of which one is 0? */
static inline bool is_mixed(const struct bucket_table *t) {
    return stage_number(t->stage) == POSITIONS - 1 && t->stage & MOVED_MASK;
}

ALWAYS_INLINE struct bucket_scale scale_in(const struct batch_form *form,
                                           uint64_t hash) {
    return has_moved(form, hash) ? form->next : form->scale;
}

/* noinline: what is rare shall not take registers from what is not. */
__attribute__((noinline, cold)) static uint8_t *line_in_oldest(
    const struct bucket_table *t, uint64_t hash) {
    return line_of_hash(t, hash, scale_of(t, t->stage, hash));
}

ALWAYS_INLINE uint8_t *line_in(const struct bucket_table *t,
                               const struct batch_form *form, uint64_t hash) {
    uintptr_t start = form->start;
    uint64_t buckets = form->scale.buckets;
    if (finds_again(form)) {
        if (has_moved(form, hash)) buckets = form->next.buckets;
    } else {
        const struct segment_starts *const starts =
            &form->starts[has_moved(form, hash)];
        start = starts->start[scale64(hash, starts->units)];
        if (__builtin_expect(start == 0, false)) return line_in_oldest(t, hash);
        buckets = starts->buckets;
    }
    return (uint8_t *)(start +
                       (uintptr_t)scale64(hash, buckets) * BUCKET_BYTES);
}

/* A byte of that line, for a prefetch, if the form finds it again: one product,
 * without a shift. The level's own way to multiply is 2 % faster in rows, and
 * slower elsewhere. */
ALWAYS_INLINE const uint8_t *byte_in_line(const struct batch_form *form,
                                          uint64_t hash,
                                          struct bucket_steps steps) {
    const uint64_t bytes =
        BUCKET_BYTES *
        (has_moved(form, hash) ? form->next.buckets : form->scale.buckets);
    const uint64_t at =
        form->is_row ? steps.scale(hash, bytes) : scale64(hash, bytes);
    return (const uint8_t *)(form->start + (uintptr_t)at);
}

/* A line, and what to look for in it. */
struct bucket_query {
    uint8_t *line;
    uint32_t want;
};

ALWAYS_INLINE struct bucket_query query_in(const struct bucket_table *t,
                                           const struct batch_form *form,
                                           uint64_t hash,
                                           uint8_t *const *place) {
    if (form->is_one) {
        const struct scaled at = scale_whole(hash, form->scale.buckets);
        return (struct bucket_query){
            .line =
                (uint8_t *)(form->start + (uintptr_t)at.whole * BUCKET_BYTES),
            .want = code_from(at.rest, form->width, form->varies),
        };
    }
    return (struct bucket_query){
        .line = form->is_row ? line_in(t, form, hash) : *place,
        .want = code_of(hash, scale_in(form, hash), form->width, form->varies),
    };
}

/* The lines of hashes that are prefetched. */
struct line_ring {
    uint8_t *line[RING];
};

ALWAYS_INLINE void prefetch_line(const struct bucket_table *t,
                                 const struct batch_form *form, uint64_t hash,
                                 uint8_t **place) {
    uint8_t *const line = line_in(t, form, hash);
    if (!finds_again(form)) *place = line;
    prefetch_l2(line);
}

/* Fill the ring, and prefetch what the previous batch has not. */
ALWAYS_INLINE void prefetch_first(const struct bucket_table *t,
                                  const struct batch_form *form,
                                  const struct batch *batch,
                                  struct line_ring *ring) {
    const size_t end = prologue_length(batch);
    size_t i = finds_again(form) ? batch->prefetched : 0;
    for (; i < batch->prefetched; i++)
        ring->line[i] = line_in(t, form, batch->hashes[i]);
    for (; i < end; i++)
        prefetch_line(t, form, batch->hashes[i], &ring->line[i]);
}

/*
 * Hashes of a batch, by their places in it, that were not found in their
 * bucket, but may be among the entries that it has spilled: to look for these
 * at once would be a branch that none could foresee.
 */
enum { SIXTEEN = 16 };
struct spill_list {
    size_t n;
    uint32_t at[BATCH_MAX + SIXTEEN];
};

/* Those of a mask that has one bit in every `step`. */
ALWAYS_INLINE void append_spills(struct spill_list *spills, size_t i,
                                 uint64_t maybe, uint32_t step) {
    for (; maybe; maybe &= maybe - 1)
        spills->at[spills->n++] =
            (uint32_t)(i + (size_t)__builtin_ctzll(maybe) / step);
}

/* Those of n hashes, of which the lines have said this: struct line_answer. */
ALWAYS_INLINE void list_spills(const bool *found, const uint8_t *spilled,
                               size_t n, struct spill_list *spills) {
    const uint64_t ones = UINT64_C(0x0101010101010101);
    size_t i = 0;
    for (; i + EIGHT <= n; i += EIGHT)
        append_spills(
            spills, i,
            load64(spilled + i) >> SPILLED_BIT & ~load64(found + i) & ones, 8);
    for (; i < n; i++)
        append_spills(spills, i, spilled[i] >> SPILLED_BIT & !found[i], 1);
}

/*
 * What a batch finds in its lines where a slot is a lane: the lanes that match,
 * the code that is wanted, and the last word of the line. What follows
 * from these is the same for all hashes, so vectors compute it for sixteen at
 * once.
 */
struct lane_hits {
    _Alignas(64) uint32_t lanes[BATCH_MAX + SIXTEEN];
    _Alignas(64) uint32_t want[BATCH_MAX + SIXTEEN];
    _Alignas(64) uint32_t last[BATCH_MAX + SIXTEEN];
};

/* For levels without vectors. */
static inline size_t resolve_each(const struct lane_hits *hits, size_t i,
                                  bool *found, struct spill_list *spills) {
    size_t yes = 0;
    for (size_t k = 0; k < SIXTEEN; k++, i++) {
        const struct line_answer answer =
            lanes_answer(hits->lanes[i], hits->last[i], hits->want[i]);
        found[k] = answer.has;
        yes += answer.has;
        append_spills(spills, i, answer.spilled >> SPILLED_BIT & !answer.has,
                      1);
    }
    return yes;
}

/* Answer a batch. The last of its sixteens may have a rest that is not there.
 */
ALWAYS_INLINE size_t resolve_all(struct lane_hits *hits, size_t n, bool *found,
                                 struct spill_list *spills,
                                 struct bucket_steps steps) {
    bool rest[SIXTEEN];
    size_t i = 0, yes = 0;
    for (; i + SIXTEEN <= n; i += SIXTEEN)
        yes += steps.resolve(hits, i, found + i, spills);
    if (i == n) return yes;
    for (size_t k = n; k < i + SIXTEEN; k++)
        hits->lanes[k] = hits->want[k] = hits->last[k] = 0;
    yes += steps.resolve(hits, i, rest, spills);
    memcpy(found + i, rest, n - i);
    return yes;
}

/* The line that an entry of a hash is spilled to first, and what it is there.
 */
struct spill_query {
    const uint8_t *line;
    uint32_t want;
};

ALWAYS_INLINE struct spill_query spill_query_of(const struct bucket_table *t,
                                                const struct batch_form *form,
                                                uint64_t hash) {
    const struct bucket_scale scale = scale_in(form, hash);
    const uint64_t bucket = scale64(hash, scale.buckets);
    const uint64_t unit = form->is_one ? 0 : scale64(hash, scale.units);
    const uint32_t number = form->is_one ? 0 : segment_of(unit);
    const uint64_t begin = segment_begin(number) * t->groups;
    const struct bucket_place at = {
        .index = bucket - begin,
        .want = code_of(hash, scale, form->width, form->varies),
    };
    const uint8_t *const lines =
        segment_lines(t, number, line_at(t, unit, begin));
    return (struct spill_query){
        .line = lines + at.index / SPILL_BUCKETS * BUCKET_BYTES,
        .want = at.want | tag_of(form->width, &at, 0) << form->width,
    };
}

/* Look up the hashes of a list among spilled entries. Most are in the first
 * line of these, which is prefetched for many at a time. Returns the number of
 * "yes". */
ALWAYS_INLINE size_t has_spilled_of_batch(const struct bucket_table *t,
                                          const struct batch_form *form,
                                          const uint64_t *hashes,
                                          const struct spill_list *spills,
                                          bool *found,
                                          struct bucket_steps steps) {
    enum { AT_ONCE = 128 };
    struct spill_query query[AT_ONCE];
    size_t yes = 0;
    for (size_t from = 0, n; from < spills->n; from += n) {
        const uint32_t *const at = spills->at + from;
        n = spills->n - from < AT_ONCE ? spills->n - from : AT_ONCE;
        for (size_t i = 0; i < n; i++) {
            query[i] = spill_query_of(t, form, hashes[at[i]]);
            prefetch_l1(query[i].line);
        }
        for (size_t i = 0; i < n; i++) {
            const struct spill_query q = query[i];
            bool is = steps.find(q.line, q.want, form->varies);
            if (!is && passes_on(q.line)) {
                const uint64_t hash = hashes[at[i]];
                const struct bucket_place place =
                    place_of(t, scale_in(form, hash), hash);
                is = find_spilled(t, &place, steps);
            }
            found[at[i]] = is;
            yes += is;
        }
    }
    return yes;
}

/* What a batch finds in its lines. */
struct batch_findings {
    struct lane_hits hits; /* if slots are lanes; else as struct line_answer: */
    bool has[BATCH_MAX];
    uint8_t spilled[BATCH_MAX];
    struct spill_list spills;
};

ALWAYS_INLINE void has_prefetched(const struct bucket_table *t,
                                  const struct batch_form *form, uint64_t hash,
                                  uint8_t *const *place, size_t i,
                                  struct batch_findings *to,
                                  struct bucket_steps steps) {
    const struct bucket_query q = query_in(t, form, hash, place);
    if (is_lane(form->width)) {
        const uint32_t want = q.want | (form->varies & 1);
        const struct lane_match match =
            steps.scans.match16(q.line, want, form->varies);
        to->hits.lanes[i] = match.lanes;
        to->hits.want[i] = want;
        to->hits.last[i] = match.last;
        return;
    }
    const struct line_answer answer =
        ask_line(q.line, form->width, q.want, form->varies, steps.scans);
    to->has[i] = answer.has;
    to->spilled[i] = answer.spilled;
}

/* From what a batch has found in its buckets, and not among spilled entries.
 * Returns the number of "yes". */
ALWAYS_INLINE size_t answer_batch(struct batch_findings *from, uint32_t width,
                                  size_t n, bool *found,
                                  struct bucket_steps steps) {
    if (is_lane(width))
        return resolve_all(&from->hits, n, found, &from->spills, steps);
    list_spills(from->has, from->spilled, n, &from->spills);
    if (found != from->has) memcpy(found, from->has, n);
    return count_true(from->has, n);
}

ALWAYS_INLINE size_t has_batch_in_loop(const struct bucket_table *t,
                                       struct batch batch, bool *found,
                                       const struct batch_form *given,
                                       enum batch_loop loop,
                                       struct bucket_steps steps) {
    const struct batch_form known = form_in(loop, given), *const form = &known;
    const size_t steady =
        form->is_special ? steady_length(&batch) / EIGHT * EIGHT : 0;
    const size_t all = batch.n + batch.more;
    const uint64_t *const hashes = batch.hashes;
    struct line_ring ring;
    struct batch_findings findings;
    size_t i = 0;
    findings.spills.n = 0;
    prefetch_first(t, form, &batch, &ring);
    for (; i < steady; i += EIGHT) {
        const uint64_t *const ahead = hashes + i + PREFETCH_DISTANCE;
        uint8_t **const here = ring.line + i % RING;
        uint8_t **const near = ring.line + (i + EIGHT) % RING;
        uint8_t **const far = ring.line + (i + PREFETCH_DISTANCE) % RING;
#pragma GCC unroll 8
        for (size_t j = 0; j < EIGHT; j++) {
            if (finds_again(form)) {
                prefetch_l2(byte_in_line(form, ahead[j], steps));
                prefetch_l1(byte_in_line(form, hashes[i + EIGHT + j], steps));
            } else {
                far[j] = line_in(t, form, ahead[j]);
                prefetch_l2(far[j]);
                prefetch_l1(near[j]);
            }
            has_prefetched(t, form, hashes[i + j], &here[j], i + j, &findings,
                           steps);
        }
    }
    for (; i < batch.n; i++) {
        const size_t ahead = i + PREFETCH_DISTANCE;
        if (ahead < all)
            prefetch_line(t, form, hashes[ahead], &ring.line[ahead % RING]);
        has_prefetched(t, form, hashes[i], &ring.line[i % RING], i, &findings,
                       steps);
    }
    bool *const has = found ? found : findings.has;
    const size_t yes =
        answer_batch(&findings, form->width, batch.n, has, steps);
    return yes +
           has_spilled_of_batch(t, form, hashes, &findings.spills, has, steps);
}

/* The hashes of a batch have nothing in common, or another thread writes. */
ALWAYS_INLINE size_t has_each(const struct bucket_table *t, struct batch batch,
                              bool *found, struct bucket_steps steps) {
    const size_t all = batch.n + batch.more;
    const uint64_t stage = stage_of(t);
    size_t n = 0;
    for (size_t i = batch.prefetched; i < prologue_length(&batch); i++)
        prefetch_l2(line_of_hash(t, batch.hashes[i],
                                 scale_of(t, stage, batch.hashes[i])));
    for (size_t i = 0; i < batch.n; i++) {
        const size_t j = i + PREFETCH_DISTANCE;
        if (j < all)
            prefetch_l2(line_of_hash(t, batch.hashes[j],
                                     scale_of(t, stage, batch.hashes[j])));
        const bool is = has_in_table(t, batch.hashes[i], steps);
        if (found) found[i] = is;
        n += is;
    }
    return n;
}

/* The loops of a processor level, by enum batch_loop. */
typedef size_t has_loop(const struct bucket_table *t, struct batch batch,
                        bool *found, const struct batch_form *form);

ALWAYS_INLINE size_t has_batch_in_table(const struct bucket_table *t,
                                        struct batch batch, bool *found,
                                        struct bucket_steps steps,
                                        has_loop *const *loops) {
    /* The stage of a shared table is not for plain reads. */
    if (t->shared || is_mixed(t)) return has_each(t, batch, found, steps);
    struct segment_starts starts[2];
    const struct batch_form form = form_of(t, starts);
    return loops[loop_of(&form)](t, batch, found, &form);
}

/* ---- Add ----------------------------------------------------------------- */

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
                              const struct bucket_place *at,
                              const struct bucket_scan *here,
                              struct spill_scan *there) {
    const uint8_t *const line = bucket_line(at);
    if (here->hits & permanent_slots(line, t->width)) return true;
    const uint32_t hits = (uint32_t)__builtin_popcountll(here->hits);
    if (hits + there->hits < t->most_copies) return false;
    if (t->most_copies == 1) return true;
    count_slots(line, t->width, at->varies, here->hits, &there->copies);
    const bool stays = any_stays(&there->copies, t->width, at->varies);
    if (has_runs(t->width) ||
        (stays && has_permanent(line, t->width, at->want)))
        return stays;
    return bucket_make_permanent(t, at) || stays;
}

/* Are there entries of a class, or may there be more than one line has? */
static inline bool needs_scan(const struct bucket_table *t,
                              const struct bucket_place *at) {
    const struct probing p = first_probe(t, at);
    return may_be_spilled(bucket_line(at), t->width, at->want) || goes_on(&p);
}

/* A bucket that is full, or has many copies of a code, or a permanent one. */
static inline enum insertion add_to_full(struct bucket_table *t,
                                         const struct bucket_place *at,
                                         const struct bucket_scan *here,
                                         bool *fresh) {
    const uint32_t code = new_code(at);
    const bool full = here->used == all_slots(t->width);
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

/* Nobody else reads the line, or it has halves. */
ALWAYS_INLINE enum line_insertion add_to_line(uint8_t *line, uint32_t width,
                                              uint32_t want, uint32_t varies,
                                              uint32_t most_copies,
                                              struct bucket_steps steps) {
    uint64_t hits;
    if (has_runs(width)) {
        const struct run_bounds run =
            bounds_of(line, width, run_of(want, width));
        const uint64_t used = line[BUCKET_BYTES - 1] & END_MASK;
        hits = in_run(scan_slots8(line, width, want, steps.scans), run);
        if (__builtin_expect(used >= slots_of(width) ||
                                 (uint32_t)__builtin_popcountll(hits) >=
                                     most_copies,
                             false))
            return NOT_ADDED;
        steps.put_in_run(line, width, want, run.end, used);
    } else {
        const struct bucket_scan here =
            scan_bucket(line, width, want, varies, steps.scans);
        hits = here.hits;
        if (__builtin_expect(here.used == all_slots(width) ||
                                 (uint32_t)__builtin_popcountll(hits) >=
                                     most_copies ||
                                 line[LOW_AT] > LOW_MASK,
                             false))
            return NOT_ADDED;
        put_in_half(line, width, here.used, want | (varies & 1));
    }
    return hits ? ADDED_AGAIN : ADDED_FRESH;
}

ALWAYS_INLINE enum insertion add_at(struct bucket_table *t,
                                    const struct bucket_place *at, bool *fresh,
                                    struct bucket_steps steps) {
    uint8_t *const line = bucket_line(at);
    if (!(t->shared && has_runs(t->width))) {
        const enum line_insertion became = add_to_line(
            line, t->width, at->want, at->varies, t->most_copies, steps);
        *fresh = became == ADDED_FRESH;
        if (became != NOT_ADDED) return KEY_ADDED;
    }
    const struct bucket_scan here =
        scan_bucket(line, t->width, at->want, at->varies, steps.scans);
    return add_to_full(t, at, &here, fresh);
}

/* Number of entries with the code of a new key, up to COPIES_MOST or more. */
static inline uint32_t copies_at(const struct bucket_table *t,
                                 const struct bucket_place *at) {
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
    return !has_runs(width) && scale.positions != POSITIONS &&
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
                                           const struct bucket_place *at,
                                           bool *fresh,
                                           struct bucket_steps steps) {
    struct bucket_place other = *at;
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
    const struct bucket_place at = place_of(t, scale, hash);
    if (__builtin_expect(is_near_border(hash, scale, t->width), false) &&
        t->most_copies > 1) {
        const uint64_t other = other_bucket(t, &scale, hash);
        if (other != scale64(hash, scale.buckets))
            return add_at_border(t, other, &at, fresh, steps);
    }
    if (has_runs(t->width)) begin_move(t, scale64(hash, scale.groups));
    const enum insertion became = add_at(t, &at, fresh, steps);
    if (has_runs(t->width)) end_move(t, scale64(hash, scale.groups));
    return became;
}

/* add_to_table, as a function of its own: what is rare shall not take registers
 * from what is not. */
typedef enum insertion add_hash_alone(struct bucket_table *t, uint64_t hash,
                                      bool *fresh);

/* Is a line full? In halves, has it ever spilled? */
ALWAYS_INLINE bool looks_full(const uint8_t *line, uint32_t width) {
    return has_runs(width)
               ? (line[BUCKET_BYTES - 1] & END_MASK) >= slots_of(width)
               : line[CLASSES_AT] != 0;
}

/* Look at a line that will soon be added to, which takes it into L1, and
 * prefetch what its next entry will be spilled to. */
ALWAYS_INLINE void prefetch_near(const struct bucket_table *t,
                                 const struct batch_form *form, uint64_t hash,
                                 uint8_t *const *place) {
    const struct bucket_query q = query_in(t, form, hash, place);
    if (__builtin_expect(!looks_full(q.line, form->width), true)) return;
    const struct bucket_place at = place_of(t, scale_in(form, hash), hash);
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
            here = add_to_line(q.line, form->width, q.want, form->varies,
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

/* In runs of a shared table readers must know. */
ALWAYS_INLINE size_t add_each(struct bucket_table *t, struct batch batch,
                              bool *fresh, size_t *added,
                              add_hash_alone *add_alone) {
    size_t i = 0, at_most = 0;
    for (; i < batch.n; i++) {
        bool is = false;
        const enum insertion became = add_alone(t, batch.hashes[i], &is);
        if (became == NO_ROOM) break;
        at_most += became == KEY_AT_MOST;
        if (fresh) fresh[i] = is;
    }
    *added = i - at_most;
    return i;
}

typedef size_t add_loop(struct bucket_table *t, struct batch batch, bool *fresh,
                        size_t *added, const struct batch_form *form);

ALWAYS_INLINE size_t add_batch_to_table(struct bucket_table *t,
                                        struct batch batch, bool *fresh,
                                        size_t *added,
                                        add_hash_alone *add_alone,
                                        add_loop *const *loops) {
    if (is_mixed(t) || (t->shared && has_runs(t->width)))
        return add_each(t, batch, fresh, added, add_alone);
    struct segment_starts starts[2];
    const struct batch_form form = form_of(t, starts);
    return loops[loop_of(&form)](t, batch, fresh, added, &form);
}

/* ---- Remove -------------------------------------------------------------- */

/* Take a slot. If the bucket was full, an entry that it spilled comes back. */
static inline void empty_slot(const struct bucket_table *t,
                              const struct bucket_place *at, uint32_t i,
                              uint64_t used, const struct spill_scan *there) {
    uint8_t *const line = bucket_line(at);
    take_code(line, t->width, used, i);
    if (!there->any.word) return;
    put_code(line, t->width, used_slots(line, t->width), there->any.code);
    drop_spilled(t, at, &there->any, NULL);
}

/*
 * Of the entries that match, the longest leaves. All entries that match a hash
 * have a beginning of the same bits, so whoever matched the longest matches the
 * others, too: every key that stays still has an entry of its own.
 */
ALWAYS_INLINE enum removal remove_from_table(struct bucket_table *t,
                                             uint64_t hash,
                                             struct bucket_steps steps) {
    const struct bucket_scale scale = scale_of(t, t->stage, hash);
    const struct bucket_place at = place_of(t, scale, hash);
    uint8_t *const line = bucket_line(&at);
    const struct bucket_scan here =
        scan_bucket(line, t->width, at.want, at.varies, steps.scans);
    struct spill_scan there = get_classes(line, t->width)
                                  ? scan_spilled(t, &at)
                                  : (struct spill_scan){0};
    uint32_t longest = 0, slot = 0;
    for (uint64_t hits = here.hits; hits; hits &= hits - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(hits);
        const uint32_t code = get_code(line, i, t->width);
        if (!longest || is_longer(code, longest)) longest = code, slot = i;
    }
    if (!here.hits && !there.longest.word) return KEY_ABSENT;
    const bool spilled = there.longest.word &&
                         (!here.hits || is_longer(there.longest.code, longest));
    const uint32_t code = spilled ? there.longest.code : longest;
    count_slots(line, t->width, at.varies, here.hits, &there.copies);
    if (*copies_of(&there.copies, code, at.varies) >= COPIES_MOST ||
        is_short(code, t->width, at.varies) ||
        (!spilled && permanent_slots(line, t->width) >> slot & 1))
        return KEY_STUCK;
    begin_move(t, scale64(hash, scale.groups));
    if (spilled)
        drop_spilled(t, &at, &there.longest, NULL);
    else
        empty_slot(t, &at, slot, here.used, &there);
    if (there.any.word)
        put_classes(line, t->width, scan_spilled(t, &at).classes);
    end_move(t, scale64(hash, scale.groups));
    return KEY_REMOVED;
}

ALWAYS_INLINE uint32_t count_in_table(const struct bucket_table *t,
                                      uint64_t hash,
                                      struct bucket_steps steps) {
    if (!has_in_table(t, hash, steps)) return 0;
    const struct bucket_place at =
        place_of(t, scale_of(t, stage_of(t), hash), hash);
    struct line_copy copy = {{0}};
    copy_line(copy.bytes, bucket_line(&at));
    const struct bucket_scan here =
        scan_bucket(copy.bytes, t->width, at.want, at.varies, steps.scans);
    if (here.hits & permanent_slots(copy.bytes, t->width)) return COPIES_MOST;
    struct spill_scan there = may_be_spilled(copy.bytes, t->width, at.want)
                                  ? scan_spilled(t, &at)
                                  : (struct spill_scan){0};
    count_slots(copy.bytes, t->width, at.varies, here.hits, &there.copies);
    /* A short code stands once, however often its keys were added. */
    if (any_stays(&there.copies, t->width, at.varies)) return COPIES_MOST;
    const uint32_t n = (uint32_t)__builtin_popcountll(here.hits) + there.hits;
    if (n == 0) return 1; /* it was moved, or removed, meanwhile */
    return n < COPIES_MOST ? n : COPIES_MOST;
}

#endif
