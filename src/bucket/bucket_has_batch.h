/*
 * Lookups of many keys in the bucket kind. A loop compares the lines
 * of a batch; then vectors derive the answers, and the few hashes that may be
 * among spilled entries are looked up there.
 */
#ifndef CALYX_BUCKET_HAS_BATCH_H
#define CALYX_BUCKET_HAS_BATCH_H

#include "bucket/bucket_batch.h"

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

/* Append the hashes of a mask that has one bit in every `step`. */
ALWAYS_INLINE void append_spills(struct spill_list *spills, size_t i,
                                 uint64_t maybe, uint32_t step) {
    for (; maybe; maybe &= maybe - 1)
        spills->at[spills->n++] =
            (uint32_t)(i + (size_t)__builtin_ctzll(maybe) / step);
}

/* Append the hashes that their lines do not have but may have spilled: `found`
 * and `spilled` come from struct line_answer. */
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
 * the code to look for, and the last word of the line. What follows
 * from them is the same for all hashes, so vectors compute it for sixteen at
 * once.
 */
struct lane_hits {
    _Alignas(64) uint32_t lanes[BATCH_MAX + SIXTEEN];
    _Alignas(64) uint32_t code[BATCH_MAX + SIXTEEN];
    _Alignas(64) uint32_t last[BATCH_MAX + SIXTEEN];
};

/* For levels without vectors. */
static inline size_t resolve_each(const struct lane_hits *hits, size_t i,
                                  bool *found, struct spill_list *spills) {
    size_t yes = 0;
    for (size_t k = 0; k < SIXTEEN; k++, i++) {
        const struct line_answer answer =
            lanes_answer(hits->lanes[i], hits->last[i], hits->code[i]);
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
        hits->lanes[k] = hits->code[k] = hits->last[k] = 0;
    yes += steps.resolve(hits, i, rest, spills);
    memcpy(found + i, rest, n - i);
    return yes;
}

/* The line that an entry of a hash is spilled to first, and what it is there.
 */
struct spill_query {
    const uint8_t *line;
    uint32_t want, varies;
};

ALWAYS_INLINE struct spill_query spill_query_of(const struct bucket_table *t,
                                                const struct batch_form *form,
                                                uint64_t hash) {
    const struct bucket_scale scale = scale_in(form, hash);
    const uint64_t bucket = scale64(hash, scale.buckets);
    const uint64_t unit = form->is_one ? 0 : scale64(hash, scale.units);
    const uint32_t number = form->is_one ? 0 : segment_of(unit);
    const uint64_t begin = segment_begin(number) * t->groups;
    const uint32_t varies = varies_at(&scale);
    const struct bucket_ref at = {
        .index = bucket - begin,
        .want = code_of(hash, scale, form->width, varies),
    };
    const uint8_t *const lines =
        segment_lines(t, number, line_at(t, unit, begin));
    return (struct spill_query){
        .line = lines + at.index / SPILL_BUCKETS * BUCKET_BYTES,
        .want = at.want | tag_of(&at, 0) << form->width,
        .varies = varies,
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
            bool is = steps.find(q.line, q.want, q.varies);
            if (!is && passes_on(q.line)) {
                const uint64_t hash = hashes[at[i]];
                const struct bucket_ref place =
                    locate(t, scale_in(form, hash), hash);
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
        const uint32_t code = q.want | (q.varies & 1);
        const struct lane_match match =
            steps.scans.match16(q.line, code, q.varies);
        to->hits.lanes[i] = match.lanes;
        to->hits.code[i] = code;
        to->hits.last[i] = match.last;
        return;
    }
    const struct line_answer answer =
        match_line(q.line, form->width, q.want, q.varies, steps.scans);
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

ALWAYS_INLINE size_t has_each(const struct bucket_table *t, struct batch batch,
                              bool *found, table_lookup *has) {
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
        const bool is = has(t, batch.hashes[i]);
        if (found) found[i] = is;
        n += is;
    }
    return n;
}

/* The loops of a processor level, by enum batch_loop. */
typedef size_t has_loop(const struct bucket_table *t, struct batch batch,
                        bool *found, const struct batch_form *form);

/*
 * Beside a writer a batch is answered like any other. Then those keys that it
 * did not find are looked up again whose entries may have moved meanwhile: so
 * it reads the versions before the stage, and once more when it is done. What
 * it finds is there, or was.
 */
struct version_copy {
    uint32_t of[STRIPES];
};

ALWAYS_INLINE struct version_copy copy_versions(const struct bucket_table *t) {
    struct version_copy copy;
    for (uint32_t i = 0; i < STRIPES; i++)
        copy.of[i] = __atomic_load_n(&t->versions[i], __ATOMIC_ACQUIRE);
    return copy;
}

/* A bit for each stripe in which entries have moved since, or were moving. */
ALWAYS_INLINE uint64_t moved_since(const struct bucket_table *t,
                                   const struct version_copy *before,
                                   uint64_t stage) {
    uint64_t moved = 0;
    order_loads();
    for (uint32_t i = 0; i < STRIPES; i++) {
        const uint32_t now = __atomic_load_n(&t->versions[i], __ATOMIC_RELAXED);
        moved |= (uint64_t)(now != before->of[i] || now % 2) << i;
    }
    return stage_number(stage_of(t)) == stage_number(stage) ? moved
                                                            : UINT64_MAX;
}

ALWAYS_INLINE size_t has_batch_concurrent(const struct bucket_table *t,
                                          struct batch batch, bool *found,
                                          table_lookup *has,
                                          has_loop *const *loops) {
    bool answers[BATCH_MAX];
    bool *const to = found ? found : answers;
    struct segment_starts starts[2];
    const struct version_copy before = copy_versions(t);
    const uint64_t stage = stage_of(t);
    const struct batch_form form = form_of(t, stage, starts);
    size_t yes = loops[loop_of(&form)](t, batch, to, &form);
    const uint64_t moved = moved_since(t, &before, stage);
    for (size_t i = 0; moved && i < batch.n; i++) {
        const uint64_t hash = batch.hashes[i];
        const uint64_t group = scale64(hash, scale_in(&form, hash).groups);
        if (to[i] || !(moved >> group % STRIPES & 1)) continue;
        to[i] = has(t, hash);
        yes += to[i];
    }
    return yes;
}

/* Few hashes are looked up one by one: to compare the versions costs more. */
ALWAYS_INLINE size_t has_batch_in_table(const struct bucket_table *t,
                                        struct batch batch, bool *found,
                                        table_lookup *has,
                                        has_loop *const *loops) {
    if (t->shared)
        return LOADS_ARE_ATOMIC || batch.n <= EIGHT
                   ? has_each(t, batch, found, has)
                   : has_batch_concurrent(t, batch, found, has, loops);
    struct segment_starts starts[2];
    const struct batch_form form = form_of(t, t->stage, starts);
    return loops[loop_of(&form)](t, batch, found, &form);
}

#endif
