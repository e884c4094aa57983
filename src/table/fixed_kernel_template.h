/*
 * The kernel of fixed tables, a template. A processor level defines
 *
 *     TARGET           the attribute that enables its instructions
 *     look_at_4        lookups of the first keys of a batch, or of none
 *     insert_slot      an addition to a line that has room
 *
 * A lookup finds its run by the header: the sum of the counts before it is the
 * slot where the run begins. The slots that 64 bits from there on hold are
 * compared with the remainder, all at once. fixed.c has the idea, and all that
 * is rare: longer runs, spilled keys, full lines.
 */
#include "kind/prefetch.h"
#include "table/fixed.h"

/* Is a key in its line? If it is not found at the first look, it may still be
 * in a run that is longer than a word, or spilled: `again`. */
struct fixed_look {
    bool found, again;
};

TARGET ALWAYS_INLINE struct fixed_look look_in(const struct fixed_table *t,
                                               const uint8_t *line,
                                               uint64_t header, uint64_t begin,
                                               uint64_t count,
                                               uint64_t remainder) {
    const uint64_t fields = t->form.fields;
    /* The run as far as one word has it; `more`, if it may be elsewhere. */
    const bool found =
        equal_fields(&t->form, get_window(line, begin * t->form.bits),
                     remainder, count < fields ? count : fields) != 0;
    const bool more = (count > fields) | may_have_spilled(header, begin, count);
    return (struct fixed_look){found, !found & more};
}

TARGET ALWAYS_INLINE struct fixed_look look_at(const struct fixed_table *t,
                                               const struct fixed_place *at) {
    const uint8_t *const line = fixed_line(t, at->line);
    const uint64_t header = get_header(line);
    return look_in(t, line, header, run_begin(header, at->run),
                   run_count(header, at->run), at->remainder);
}

TARGET static bool has(const uint8_t *body, const struct shape *shape,
                       uint64_t hash) {
    const struct fixed_table t = fixed_table_of(body, shape);
    const struct fixed_place at = fixed_place_of(&t, hash);
    const struct fixed_look look = look_at(&t, &at);
    if (__builtin_expect(look.again, false)) return fixed_look_again(&t, &at);
    return look.found;
}

/* Look at some hashes of a batch again. noinline: else what the loop for all
 * hashes needs would not stay in registers. */
TARGET NOINLINE static size_t look_again(const struct fixed_table *t,
                                         const uint64_t *hashes,
                                         const struct again_list *again,
                                         bool *found) {
    enum { AHEAD = 8 };
    size_t yes = 0;
    for (size_t k = 0; k < again->n + AHEAD; k++) {
        if (k < again->n)
            prefetch_l1(
                spill_line_of(t, scale64(hashes[again->at[k]], t->blocks)));
        if (k < AHEAD) continue;
        const size_t i = again->at[k - AHEAD];
        const struct fixed_place at = fixed_place_of(t, hashes[i]);
        found[i] = fixed_look_again(t, &at);
        yes += found[i];
    }
    return yes;
}

/* Before a batch: lines that the batch before it has not prefetched. */
TARGET ALWAYS_INLINE void prefetch_first(const struct fixed_table *t,
                                         const struct batch *batch) {
    const size_t n = prologue_length(batch);
    for (size_t i = batch->prefetched; i < n; i++)
        prefetch_l1(fixed_line(t, scale64(batch->hashes[i], t->blocks)));
}

/* The keys to look at again are listed without a branch, which nobody could
 * predict. */
TARGET static size_t has_batch(const uint8_t *body, const struct shape *shape,
                               struct batch batch, bool *found) {
    const struct fixed_table t = fixed_table_of(body, shape);
    struct again_list again;
    bool ignored[BATCH_MAX];
    size_t yes = 0;
    if (!found) found = ignored;
    again.n = 0;
    prefetch_first(&t, &batch);
    for (size_t i = look_at_4(&t, &batch, found, &again, &yes); i < batch.n;
         i++) {
        const size_t ahead = i + PREFETCH_DISTANCE;
        if (ahead < batch.n + batch.more)
            prefetch_l1(fixed_line(&t, scale64(batch.hashes[ahead], t.blocks)));
        const struct fixed_place at = fixed_place_of(&t, batch.hashes[i]);
        const struct fixed_look look = look_at(&t, &at);
        found[i] = look.found;
        yes += look.found;
        again.at[again.n] = (uint16_t)i;
        again.n += look.again;
    }
    return yes + look_again(&t, batch.hashes, &again, found);
}

TARGET ALWAYS_INLINE struct fixed_addition add_at(const struct fixed_table *t,
                                                  const struct fixed_place *at,
                                                  uint64_t most_copies) {
    uint8_t *const line = fixed_line(t, at->line);
    const uint64_t header = get_header(line);
    const uint64_t begin = run_begin(header, at->run);
    const uint64_t count = run_count(header, at->run);
    /* A full line or a full run spills; a saturated line stays as it is. */
    if (__builtin_expect((slots_used(header) >= t->form.slots) |
                             (count == RUN_MOST) | ((header & SATURATED) != 0),
                         false))
        return fixed_add_spilling(t, at, most_copies);
    const struct fixed_look look =
        look_in(t, line, header, begin, count, at->remainder);
    bool found = look.found;
    if (__builtin_expect(count > t->form.fields, false))
        found = match_run(t, line, header, at).n > 0;
    if (found && most_copies == 1) return (struct fixed_addition){false, false};
    /* The first slot of the run; its count is one more. */
    insert_slot(t, line, begin, at->remainder,
                header + (UINT64_C(1) << 3 * at->run));
    return (struct fixed_addition){!found, true};
}

/* Of a line that has spilled keys, what the next one will be spilled to. */
TARGET ALWAYS_INLINE void prefetch_for_add(const struct fixed_table *t,
                                           uint64_t hash) {
    const uint64_t number = scale64(hash, t->blocks);
    uint8_t *const line = fixed_line(t, number);
    const bool spills = get_header(line) >> SPILLED_FLAG & 1;
    prefetch_l1(spills ? spill_line_of(t, number) : line);
}

/* Returns how many count as one more. */
TARGET ALWAYS_INLINE size_t add_each(uint8_t *body, const struct shape *shape,
                                     struct batch batch, bool *fresh,
                                     uint64_t most_copies) {
    const struct fixed_table t = fixed_table_of(body, shape);
    const size_t all = batch.n + batch.more;
    size_t more = 0;
    prefetch_first(&t, &batch);
    for (size_t i = 0; i < batch.n; i++) {
        const size_t ahead = i + PREFETCH_DISTANCE;
        if (ahead < all)
            prefetch_l1(fixed_line(&t, scale64(batch.hashes[ahead], t.blocks)));
        const size_t near = i + PREFETCH_DISTANCE_L1;
        if (near < all) prefetch_for_add(&t, batch.hashes[near]);
        const struct fixed_place at = fixed_place_of(&t, batch.hashes[i]);
        const struct fixed_addition is = add_at(&t, &at, most_copies);
        if (fresh) fresh[i] = is.fresh;
        more += is.counts;
    }
    return more;
}

TARGET static bool add_copy(uint8_t *body, const struct shape *shape,
                            uint64_t hash) {
    const struct fixed_table t = fixed_table_of(body, shape);
    const struct fixed_place at = fixed_place_of(&t, hash);
    return add_at(&t, &at, FIXED_COPIES_MOST).fresh;
}

TARGET static bool add_once(uint8_t *body, const struct shape *shape,
                            uint64_t hash) {
    const struct fixed_table t = fixed_table_of(body, shape);
    const struct fixed_place at = fixed_place_of(&t, hash);
    return add_at(&t, &at, 1).fresh;
}

TARGET static size_t add_copies(uint8_t *body, const struct shape *shape,
                                struct batch batch, bool *fresh) {
    return add_each(body, shape, batch, fresh, FIXED_COPIES_MOST);
}

TARGET static size_t add_all_once(uint8_t *body, const struct shape *shape,
                                  struct batch batch, bool *fresh) {
    return add_each(body, shape, batch, fresh, 1);
}

TARGET static enum removal remove_copy(uint8_t *body, const struct shape *shape,
                                       uint64_t hash) {
    const struct fixed_table t = fixed_table_of(body, shape);
    const struct fixed_place at = fixed_place_of(&t, hash);
    return fixed_remove(&t, &at);
}

TARGET static size_t remove_copies(uint8_t *body, const struct shape *shape,
                                   struct batch batch, bool *found) {
    const struct fixed_table t = fixed_table_of(body, shape);
    const size_t all = batch.n + batch.more;
    size_t removed = 0;
    prefetch_first(&t, &batch);
    for (size_t i = 0; i < batch.n; i++) {
        const size_t ahead = i + PREFETCH_DISTANCE;
        if (ahead < all)
            prefetch_l1(fixed_line(&t, scale64(batch.hashes[ahead], t.blocks)));
        const struct fixed_place at = fixed_place_of(&t, batch.hashes[i]);
        const enum removal became = fixed_remove(&t, &at);
        if (found) found[i] = became != KEY_ABSENT;
        removed += became == KEY_REMOVED;
    }
    return removed;
}

#define FIXED_BUCKET_KERNEL(cpu)                                             \
    {                                                                        \
        .level = (cpu), .has = has, .add = add_copy, .has_batch = has_batch, \
        .add_batch = add_copies, .remove = remove_copy,                      \
        .remove_batch = remove_copies                                        \
    }
#define FIXED_DISTINCT_KERNEL(cpu)                                           \
    {                                                                        \
        .level = (cpu), .has = has, .add = add_once, .has_batch = has_batch, \
        .add_batch = add_all_once                                            \
    }
