/*
 * Template: the kernel functions of the counting kind for one vector level.
 * Included once a level, after the vocabulary that line_vector_template.h
 * lists. counting.c describes the algorithm.
 */

TARGET ALWAYS_INLINE bool count_low(uint8_t *body, const struct shape *shape,
                                    size_t line, const uint64_t *hash,
                                    struct line_mask *carry, bool *carries) {
    uint8_t *const plane0 = body + plane_offset(shape, line, 0);
    const vline mask = vmask(hash, line_choices[shape->probes]);
    const vline old = vload(body + line), p0 = vload(plane0);
    const vline again = vand(old, mask), next = vand(p0, again);
    vstore(body + line, vor(old, mask));
    vstore(plane0, vxor(p0, again));
    vstore(carry, next);
    *carries = vany(next);
    return vany(vandnot(mask, old));
}

TARGET ALWAYS_INLINE void count_high(uint8_t *body, const struct shape *shape,
                                     size_t line,
                                     const struct line_mask *carry) {
    uint8_t *const plane1 = body + plane_offset(shape, line, 1);
    const vline p1 = vload(plane1), more = vload(carry);
    const vline next = vand(p1, more);
    vstore(plane1, vxor(p1, more));
    if (__builtin_expect(vany(next), false)) {
        struct line_mask rest;
        vstore(&rest, next);
        counting_carry(body, shape, line, &rest);
    }
}

/* Counters that reach into plane 3 are left to the scalar kernel, so none that
 * is met here is at 15. */
TARGET ALWAYS_INLINE enum removal remove_one(uint8_t *body,
                                             const struct shape *shape,
                                             const uint64_t *hash) {
    static const struct line_mask zeros;
    const size_t at = line_offset(*hash, shape);
    const uint32_t marks = marks_of(body, shape, at);
    uint8_t *const line = body + at;
    uint8_t *const plane0 = body + plane_offset(shape, at, 0);
    uint8_t *const plane1 = body + plane_offset(shape, at, 1);
    const uint8_t *const plane2 = body + plane_offset(shape, at, 2);
    if (__builtin_expect(marks > 1, false))
        return remove_one_scalar(body, shape, hash);

    const vline mask = vmask(hash, line_choices[shape->probes]);
    const vline old = vload(line);
    if (vany(vandnot(mask, old))) return KEY_ABSENT;
    const vline p0 = vload(plane0), p1 = vload(plane1);
    const vline p2 = vload(marks ? plane2 : (const uint8_t *)&zeros);
    const vline counted = vand(mask, vor(vor(p0, p1), p2));
    const vline borrow1 = vandnot(counted, p0), borrow2 = vandnot(borrow1, p1);
    vstore(line, vandnot(old, vandnot(mask, counted)));
    vstore(plane0, vxor(p0, counted));
    vstore(plane1, vxor(p1, borrow1));
    if (__builtin_expect(vany(borrow2), false)) {
        struct line_mask borrow;
        vstore(&borrow, borrow2);
        counting_borrow(body, shape, at, &borrow);
    }
    return KEY_REMOVED;
}

TARGET NO_CANARY static bool counting_add(uint8_t *body,
                                          const struct shape *shape,
                                          uint64_t hash) {
    return count_one(body, shape, &hash, count_low, count_high);
}

TARGET static size_t counting_add_batch(uint8_t *body,
                                        const struct shape *shape,
                                        struct batch batch, bool *fresh) {
    return count_batch(body, shape, batch, fresh, count_low, count_high);
}

TARGET NO_CANARY static enum removal counting_remove(uint8_t *body,
                                                     const struct shape *shape,
                                                     uint64_t hash) {
    return remove_one(body, shape, &hash);
}

TARGET static size_t counting_remove_batch(uint8_t *body,
                                           const struct shape *shape,
                                           struct batch batch, bool *found) {
    return remove_batch_generic(body, shape, batch, found, remove_one);
}
