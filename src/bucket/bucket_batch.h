/*
 * Batches of the bucket kind: what the hashes of a batch have in common, which
 * loop is compiled for that, and where the lines of its hashes are.
 */
#ifndef CALYX_BUCKET_BATCH_H
#define CALYX_BUCKET_BATCH_H

#include "bucket/bucket_has.h"
#include "kind/batch_loops.h"

enum { EIGHT = 8, RING = 2 * PREFETCH_DISTANCE };

/* What the hashes of a batch have in common, and a copy of what decides where
 * they are, which no store changes. */
struct batch_form {
    uint32_t width;
    bool is_one;        /* segment                                       */
    bool is_row;        /* do all lie in a row, at one level above 0?    */
    bool is_special;    /* has it a loop of its own? Then it is unrolled */
    uint64_t last_here; /* hash whose group has not moved                */
    uintptr_t start;    /* of all buckets, if is_one or is_row           */
    struct bucket_scale scale;
    struct bucket_scale next;            /* for hashes after last_here */
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
                                        uint64_t stage,
                                        struct segment_starts *starts) {
    const uint32_t number = stage_number(stage);
    const bool is_moving = (stage & MOVED_MASK) != 0;
    struct batch_form form = {
        .width = t->width,
        .is_one = stage == 0,
        .last_here = UINT64_MAX,
        .start = t->start[segment_index(0)],
        .scale = scale_at(t, number),
        .starts = starts,
    };
    if (form.is_one) return form;
    form.is_row = !is_moving && form.scale.level && is_in_row(t, number);
    if (!form.is_row) fill_starts(t, &form.scale, &starts[0]);
    if (!is_moving) return form;
    form.next = scale_at(t, number + 1);
    form.last_here =
        lowest_scaled64(groups_left(t, stage), form.scale.groups) - 1;
    if (!form.is_row) fill_starts(t, &form.next, &starts[1]);
    return form;
}

/* Has the group of a hash moved? */
ALWAYS_INLINE bool has_moved(const struct batch_form *form, uint64_t hash) {
    return !form->is_one && hash > form->last_here;
}

/*
 * Loops over a batch that are compiled by themselves, for tables at 1 %: of one
 * segment; that have grown to twice their size or more, in a row or apart; and
 * all others, in which groups may be moving, and hashes at two levels. Other
 * widths share one, as all do where size counts more.
 */
enum batch_loop {
    LOOP_ANY,
    LOOP_GROWING,
    LOOP_ROW,
    LOOP_APART,
    LOOP_OTHERS,
    LOOPS
};

static inline enum batch_loop loop_of(const struct batch_form *form) {
#ifndef __OPTIMIZE_SIZE__
    if (form->is_one && form->width == WIDTH_GROWING) return LOOP_GROWING;
    if (form->width == WIDTH_GROWING) {
        if (form->scale.level == 0 || form->last_here != UINT64_MAX)
            return LOOP_OTHERS;
        return form->is_row ? LOOP_ROW : LOOP_APART;
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
    to.is_row = loop == LOOP_ROW;
    if (loop != LOOP_OTHERS) {
        to.last_here = UINT64_MAX;
        to.scale.level = !to.is_one;
    }
    to.width = WIDTH_GROWING;
    return to;
}

ALWAYS_INLINE struct bucket_scale scale_in(const struct batch_form *form,
                                           uint64_t hash) {
    return has_moved(form, hash) ? form->next : form->scale;
}

/* noinline: what is rare shall not take registers from what is not. */
__attribute__((noinline, cold)) static uint8_t *line_in_oldest(
    const struct bucket_table *t, uint64_t hash, struct bucket_scale scale) {
    return line_of_hash(t, hash, scale);
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
        if (__builtin_expect(start == 0, false))
            return line_in_oldest(t, hash, scale_in(form, hash));
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
    uint32_t want, varies;
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
            .want = code_from(at.rest, form->width, 0),
        };
    }
    const struct bucket_scale scale = scale_in(form, hash);
    const uint32_t varies = varies_at(&scale);
    return (struct bucket_query){
        .line = form->is_row ? line_in(t, form, hash) : *place,
        .want = code_of(hash, scale, form->width, varies),
        .varies = varies,
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

#endif
