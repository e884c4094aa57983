/*
 * Lookups of single keys in the bucket kind, given what a processor level has
 * of its own. All is inlined into the functions of a kernel that has these
 * steps (bucket_kernel_template.h), as are batches, additions and removal,
 * whose headers include this one.
 */
#ifndef CALYX_BUCKET_HAS_H
#define CALYX_BUCKET_HAS_H

#include "bucket/bucket_spill.h"

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
};

/* A lookup of one key, as a function of a processor level. */
typedef bool table_lookup(const struct bucket_table *t, uint64_t hash);

struct line_copy {
    _Alignas(64) uint8_t bytes[BUCKET_BYTES];
};

/* Vectors load a line that another thread may be writing to as it is; every
 * word of 64 bits is whole. The thread sanitizer wants to see atomic loads. */
#if defined(__SANITIZE_THREAD__)
enum { LOADS_ARE_ATOMIC = true };
#else
enum { LOADS_ARE_ATOMIC = false };
#endif

ALWAYS_INLINE const uint8_t *load_line(struct line_copy *copy,
                                       const uint8_t *line) {
    if (!LOADS_ARE_ATOMIC) return line;
    copy_line(copy->bytes, line);
    return copy->bytes;
}

/* What was loaded before comes before what is loaded next. */
ALWAYS_INLINE void order_loads(void) {
    if (!LOADS_ARE_ATOMIC) __atomic_thread_fence(__ATOMIC_ACQUIRE);
}

/*
 * While another thread writes: a "no" counts if nothing moved meanwhile. The
 * stage is read again after the version: so a move that ended before is seen
 * in the stage, and one that begins later in the version. A writer may have
 * lost its processor in the middle of a move: after some looks the answer is
 * "yes", as a filter may say, and nobody waits.
 */
ALWAYS_INLINE bool has_concurrent(const struct bucket_table *t, uint64_t hash,
                                  struct bucket_steps steps) {
    enum { LOOKS_MOST = 1024 };
    for (uint32_t i = 0; i < LOOKS_MOST; i++) {
        struct line_copy copy;
        const uint64_t stage = stage_of(t);
        const struct bucket_scale scale = scale_of(t, stage, hash);
        const uint32_t *const at_version =
            version_of(t, scale64(hash, scale.groups));
        const uint32_t version = __atomic_load_n(at_version, __ATOMIC_ACQUIRE);
        if (version % 2 || stage_of(t) != stage) continue;
        const struct bucket_ref at = locate(t, scale, hash);
        const uint8_t *const line = load_line(&copy, bucket_line(&at));
        const struct line_answer answer =
            match_line(line, t->width, at.want, at.varies, steps.scans);
        if (answer.has) return true;
        if (answer.spilled >> SPILLED_BIT && has_spilled(t, &at, line))
            return true;
        order_loads();
        if (__atomic_load_n(at_version, __ATOMIC_ACQUIRE) == version &&
            stage_number(stage_of(t)) == stage_number(stage))
            return false;
    }
    return true;
}

ALWAYS_INLINE bool find_spilled(const struct bucket_table *t,
                                const struct bucket_ref *at,
                                struct bucket_steps steps) {
    struct probing p = first_probe(t, at);
    if (is_saturated(bucket_line(at))) return true;
    do {
        if (steps.find(p.lines + p.line * BUCKET_BYTES,
                       at->want | tag_of(at, p.number) << t->width, at->varies))
            return true;
    } while (goes_on(&p) && next_probe(&p));
    return false;
}

/* Look up a key that its bucket does not have, in a table that is not shared.
 */
ALWAYS_INLINE bool has_spilled_key(const struct bucket_table *t, uint64_t hash,
                                   struct bucket_steps steps) {
    const struct bucket_ref at = locate(t, scale_of(t, t->stage, hash), hash);
    return find_spilled(t, &at, steps);
}

/* Lookups that are functions of their own, so that others need no stack. */
struct slow_paths {
    table_lookup *shared;  /* has_concurrent */
    table_lookup *spilled; /* has_spilled_key   */
    table_lookup *any;     /* has_in_any_table  */
};

ALWAYS_INLINE bool has_unshared(const struct bucket_table *t, uint64_t hash,
                                uint32_t width, struct bucket_scale scale,
                                uint32_t varies, const uint8_t *line,
                                struct bucket_steps steps,
                                struct slow_paths slow) {
    const uint32_t want = code_of(hash, scale, width, varies);
    const struct line_answer answer =
        match_line(line, width, want, varies, steps.scans);
    /* One branch that is rarely taken. */
    if (__builtin_expect(answer.spilled >> SPILLED_BIT & !answer.has, false))
        return slow.spilled(t, hash);
    return answer.has;
}

/* Look up a key in a table of any width, at any stage. */
ALWAYS_INLINE bool has_in_any_table(const struct bucket_table *t, uint64_t hash,
                                    struct bucket_steps steps,
                                    struct slow_paths slow) {
    const struct bucket_scale scale = scale_of(t, t->stage, hash);
    return has_unshared(t, hash, t->width, scale, varies_at(&scale),
                        line_of_hash(t, hash, scale), steps, slow);
}

/* The width of most filters is a constant here. */
ALWAYS_INLINE bool has_in_table(const struct bucket_table *t, uint64_t hash,
                                struct bucket_steps steps,
                                struct slow_paths slow) {
    if (__builtin_expect(t->shared, false)) return slow.shared(t, hash);
    if (t->width != WIDTH_GROWING) return slow.any(t, hash);
    if (t->stage == 0) {
        const struct bucket_scale first = scale_at(t, 0);
        const uint8_t *const line =
            (const uint8_t *)t->start[segment_index(0)] +
            scale64(hash, first.buckets) * BUCKET_BYTES;
        return has_unshared(t, hash, WIDTH_GROWING, first, 0, line, steps,
                            slow);
    }
    const struct bucket_scale scale = scale_of(t, t->stage, hash);
    return has_unshared(t, hash, WIDTH_GROWING, scale, varies_at(&scale),
                        line_of_hash(t, hash, scale), steps, slow);
}

#endif
