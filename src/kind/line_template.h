/*
 * Template: the kernel functions of the kinds line and line2 for one processor
 * level. line.c, line_avx2.c and line_simd128.c include it once
 * each, after they defined, for this level,
 *
 *     TARGET                 the attribute that enables its instructions
 *     in_line                is this key in this line?
 *     add_to_line            add it; returns whether any bit was missing
 *     add_to_line_atomic     the same while other threads add to the line
 *     LINE_VECTOR_BATCHES    1 if the level has batches of line of its own, by
 *                            line_batch_template.h
 *
 * All three functions take (line, hash, choice), with the hash by address.
 * `_atomic` functions are for line2 filters that many threads add to. Filters
 * of kind line have one block a key, and so locks (engine/stripes.h).
 */

/* ---- line: one line a key ------------------------------------------------ */

TARGET ALWAYS_INLINE bool line_has_one(const uint8_t *body,
                                       const struct shape *shape,
                                       const uint64_t *hash) {
    return in_line(body + line_offset(*hash, shape), hash,
                   line_choices[shape->probes]);
}

TARGET ALWAYS_INLINE bool line_add_one(uint8_t *body, const struct shape *shape,
                                       const uint64_t *hash) {
    return add_to_line(body + line_offset(*hash, shape), hash,
                       line_choices[shape->probes]);
}

TARGET NO_CANARY static bool line_has(const uint8_t *body,
                                      const struct shape *shape,
                                      uint64_t hash) {
    return line_has_one(body, shape, &hash);
}

TARGET NO_CANARY static bool line_add(uint8_t *body, const struct shape *shape,
                                      uint64_t hash) {
    return line_add_one(body, shape, &hash);
}

#if !LINE_VECTOR_BATCHES
TARGET static size_t line_has_batch(const uint8_t *body,
                                    const struct shape *shape,
                                    struct batch batch, bool *found) {
    return has_batch_generic(body, shape, batch, found, line_has_one,
                             line_prefetch);
}

TARGET static size_t line_add_batch(uint8_t *body, const struct shape *shape,
                                    struct batch batch, bool *fresh) {
    return add_batch_generic(body, shape, batch, fresh, line_add_one,
                             line_prefetch, NULL);
}

#endif

#if !CALYX_NO_LINE2
/* ---- line2: two lines a key, with half the probes in each ---------------- */

TARGET ALWAYS_INLINE bool line2_has_one(const uint8_t *body,
                                        const struct shape *shape,
                                        const uint64_t *hash) {
    const uint64_t second = line_second(*hash);
    const struct line_choice choice = line_choices[shape->probes / 2];
    const bool here = in_line(body + line_offset(*hash, shape), hash, choice);
    const bool there =
        in_line(body + line_offset(second, shape), &second, choice);
    return here & there; /* no branch: both lines are prefetched anyway */
}

TARGET ALWAYS_INLINE bool line2_add_one(uint8_t *body,
                                        const struct shape *shape,
                                        const uint64_t *hash) {
    const uint64_t second = line_second(*hash);
    const struct line_choice choice = line_choices[shape->probes / 2];
    const bool here =
        add_to_line(body + line_offset(*hash, shape), hash, choice);
    const bool there =
        add_to_line(body + line_offset(second, shape), &second, choice);
    return here | there;
}

TARGET ALWAYS_INLINE bool line2_add_one_atomic(uint8_t *body,
                                               const struct shape *shape,
                                               const uint64_t *hash) {
    const uint64_t second = line_second(*hash);
    const struct line_choice choice = line_choices[shape->probes / 2];
    const bool here =
        add_to_line_atomic(body + line_offset(*hash, shape), hash, choice);
    const bool there =
        add_to_line_atomic(body + line_offset(second, shape), &second, choice);
    return here | there;
}

TARGET NO_CANARY static bool line2_has(const uint8_t *body,
                                       const struct shape *shape,
                                       uint64_t hash) {
    return line2_has_one(body, shape, &hash);
}

TARGET NO_CANARY static bool line2_add(uint8_t *body, const struct shape *shape,
                                       uint64_t hash) {
    return line2_add_one(body, shape, &hash);
}

TARGET NO_CANARY static bool line2_add_atomic(uint8_t *body,
                                              const struct shape *shape,
                                              uint64_t hash) {
    return line2_add_one_atomic(body, shape, &hash);
}

TARGET static size_t line2_has_batch(const uint8_t *body,
                                     const struct shape *shape,
                                     struct batch batch, bool *found) {
    return has_batch_generic(body, shape, batch, found, line2_has_one,
                             line2_prefetch);
}

TARGET static size_t line2_add_batch(uint8_t *body, const struct shape *shape,
                                     struct batch batch, bool *fresh) {
    return add_batch_generic(body, shape, batch, fresh, line2_add_one,
                             line2_prefetch, NULL);
}

TARGET static size_t line2_add_batch_atomic(uint8_t *body,
                                            const struct shape *shape,
                                            struct batch batch, bool *fresh) {
    return add_batch_generic(body, shape, batch, fresh, line2_add_one_atomic,
                             line2_prefetch, NULL);
}
#endif
