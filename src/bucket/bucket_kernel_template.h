/*
 * Template: the kernel of a processor level, BUCKET_KERNEL. Included once a
 * level, after it defined
 *
 *     TARGET      the attributes of its functions
 *     STEPS       its struct bucket_steps (bucket_has.h)
 *
 * The algorithms are inline functions: has_in_table in bucket_has.h, and the
 * loops in bucket_has_batch.h and bucket_add.h. Here each is compiled with the
 * steps of the level, and as a function of its own where it is rarely needed:
 * so the common lookup, which its bucket answers, needs no stack. Batches have
 * a loop for each of enum batch_loop: has_loops and add_loops list them.
 */

/* ---- One key ------------------------------------------------------------- */

/* Other threads may be adding: a "no" counts if nothing moved meanwhile. */
TARGET NOINLINE static bool table_has_shared(const struct bucket_table *t,
                                             uint64_t hash) {
    return has_concurrent(t, hash, STEPS);
}

/* The bucket lacks the key, and has spilled entries. */
TARGET NOINLINE static bool table_has_spilled(const struct bucket_table *t,
                                              uint64_t hash) {
    return has_spilled_key(t, hash, STEPS);
}

/* Of any width, at any stage. */
TARGET NOINLINE static bool table_has_any(const struct bucket_table *t,
                                          uint64_t hash) {
    const struct slow_paths slow = {.spilled = table_has_spilled};
    return has_in_any_table(t, hash, STEPS, slow);
}

TARGET static bool table_has(const struct bucket_table *t, uint64_t hash) {
    const struct slow_paths slow = {
        .shared = table_has_shared,
        .spilled = table_has_spilled,
        .any = table_has_any,
    };
    return has_in_table(t, hash, STEPS, slow);
}

/* ---- Batches of lookups -------------------------------------------------- */

TARGET NOINLINE static size_t has_batch_any(const struct bucket_table *t,
                                            struct batch batch, bool *found,
                                            const struct batch_form *form) {
    return has_batch_in_loop(t, batch, found, form, LOOP_ANY, STEPS);
}

#ifdef __OPTIMIZE_SIZE__
static has_loop *const has_loops[LOOPS] = {has_batch_any};
#else
TARGET NOINLINE static size_t has_batch_growing(const struct bucket_table *t,
                                                struct batch batch, bool *found,
                                                const struct batch_form *form) {
    return has_batch_in_loop(t, batch, found, form, LOOP_GROWING, STEPS);
}

TARGET NOINLINE static size_t has_batch_row(const struct bucket_table *t,
                                            struct batch batch, bool *found,
                                            const struct batch_form *form) {
    return has_batch_in_loop(t, batch, found, form, LOOP_ROW, STEPS);
}

TARGET NOINLINE static size_t has_batch_apart(const struct bucket_table *t,
                                              struct batch batch, bool *found,
                                              const struct batch_form *form) {
    return has_batch_in_loop(t, batch, found, form, LOOP_APART, STEPS);
}

TARGET NOINLINE static size_t has_batch_others(const struct bucket_table *t,
                                               struct batch batch, bool *found,
                                               const struct batch_form *form) {
    return has_batch_in_loop(t, batch, found, form, LOOP_OTHERS, STEPS);
}

static has_loop *const has_loops[LOOPS] = {
    [LOOP_ANY] = has_batch_any,       [LOOP_GROWING] = has_batch_growing,
    [LOOP_ROW] = has_batch_row,       [LOOP_APART] = has_batch_apart,
    [LOOP_OTHERS] = has_batch_others,
};
#endif

TARGET static size_t table_has_batch(const struct bucket_table *t,
                                     struct batch batch, bool *found) {
    return has_batch_in_table(t, batch, found, table_has, has_loops);
}

/* ---- Additions, removal, counts ------------------------------------------ */

TARGET NOINLINE static enum insertion table_add(struct bucket_table *t,
                                                uint64_t hash, bool *fresh) {
    return add_to_table(t, hash, fresh, STEPS);
}

TARGET NOINLINE static size_t add_batch_any(struct bucket_table *t,
                                            struct batch batch, bool *fresh,
                                            size_t *added,
                                            const struct batch_form *form) {
    return add_batch_in_loop(t, batch, fresh, added, form, LOOP_ANY, STEPS,
                             table_add);
}

#ifdef __OPTIMIZE_SIZE__
static add_loop *const add_loops[LOOPS] = {add_batch_any};
#else
TARGET NOINLINE static size_t add_batch_growing(struct bucket_table *t,
                                                struct batch batch, bool *fresh,
                                                size_t *added,
                                                const struct batch_form *form) {
    return add_batch_in_loop(t, batch, fresh, added, form, LOOP_GROWING, STEPS,
                             table_add);
}

TARGET NOINLINE static size_t add_batch_row(struct bucket_table *t,
                                            struct batch batch, bool *fresh,
                                            size_t *added,
                                            const struct batch_form *form) {
    return add_batch_in_loop(t, batch, fresh, added, form, LOOP_ROW, STEPS,
                             table_add);
}

TARGET NOINLINE static size_t add_batch_apart(struct bucket_table *t,
                                              struct batch batch, bool *fresh,
                                              size_t *added,
                                              const struct batch_form *form) {
    return add_batch_in_loop(t, batch, fresh, added, form, LOOP_APART, STEPS,
                             table_add);
}

TARGET NOINLINE static size_t add_batch_others(struct bucket_table *t,
                                               struct batch batch, bool *fresh,
                                               size_t *added,
                                               const struct batch_form *form) {
    return add_batch_in_loop(t, batch, fresh, added, form, LOOP_OTHERS, STEPS,
                             table_add);
}

static add_loop *const add_loops[LOOPS] = {
    [LOOP_ANY] = add_batch_any,       [LOOP_GROWING] = add_batch_growing,
    [LOOP_ROW] = add_batch_row,       [LOOP_APART] = add_batch_apart,
    [LOOP_OTHERS] = add_batch_others,
};
#endif

TARGET static size_t table_add_batch(struct bucket_table *t, struct batch batch,
                                     bool *fresh, size_t *added) {
    return add_batch_to_table(t, batch, fresh, added, add_loops);
}

TARGET static enum removal table_remove(struct bucket_table *t, uint64_t hash) {
    return is_lane(t->width) ? remove_from_table(t, hash, WIDTH_GROWING, STEPS)
                             : remove_from_table(t, hash, t->width, STEPS);
}

TARGET static uint32_t table_count(const struct bucket_table *t,
                                   uint64_t hash) {
    return count_in_table(t, hash, STEPS, table_has);
}

static const struct table_kernel bucket_table_kernel = {
    .has = table_has,
    .has_batch = table_has_batch,
    .add = table_add,
    .add_batch = table_add_batch,
    .remove = table_remove,
    .count = table_count,
};

/* ---- One segment alone --------------------------------------------------- */

static bool bucket_has(const uint8_t *body, const struct shape *shape,
                       uint64_t hash) {
    struct bucket_table t;
    table_of(&t, body, shape);
    return table_has(&t, hash);
}

static bool bucket_add(uint8_t *body, const struct shape *shape,
                       uint64_t hash) {
    struct bucket_table t;
    bool fresh = false;
    table_of(&t, body, shape);
    table_add(&t, hash, &fresh);
    return fresh;
}

static size_t bucket_has_batch(const uint8_t *body, const struct shape *shape,
                               struct batch batch, bool *found) {
    struct bucket_table t;
    table_of(&t, body, shape);
    return table_has_batch(&t, batch, found);
}

/* A hash that finds no room is left out. */
static size_t bucket_add_batch(uint8_t *body, const struct shape *shape,
                               struct batch batch, bool *fresh) {
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
        i += table_add_batch(&t, rest, to + i, &added);
        if (i < batch.n) to[i] = false;
    }
    return count_true(to, batch.n);
}

static enum removal bucket_remove(uint8_t *body, const struct shape *shape,
                                  uint64_t hash) {
    struct bucket_table t;
    table_of(&t, body, shape);
    return table_remove(&t, hash);
}

static size_t bucket_remove_batch(uint8_t *body, const struct shape *shape,
                                  struct batch batch, bool *found) {
    struct bucket_table t;
    size_t removed = 0;
    table_of(&t, body, shape);
    for (size_t i = 0; i < batch.n; i++) {
        const enum removal became = table_remove(&t, batch.hashes[i]);
        if (found) found[i] = became != KEY_ABSENT;
        removed += became == KEY_REMOVED;
    }
    return removed;
}

#define BUCKET_KERNEL(cpu_level)                                      \
    {                                                                 \
        .level = cpu_level, .has = bucket_has, .add = bucket_add,     \
        .has_batch = bucket_has_batch, .add_batch = bucket_add_batch, \
        .remove = bucket_remove, .remove_batch = bucket_remove_batch, \
        .table = &bucket_table_kernel,                                \
    }
