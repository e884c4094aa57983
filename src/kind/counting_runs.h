/*
 * The loops of the vector kernels over runs of counting filters: line_runs.h,
 * with the planes of a line called beside it, near and far.
 */
#ifndef CALYX_COUNTING_RUNS_H
#define CALYX_COUNTING_RUNS_H

#include "kind/counting.h"
#include "kind/line_runs.h"

/* What a level brings: add a key to the line at this offset and count it, or
 * take it off, as counting_add_scalar and counting_remove_scalar do. */
typedef bool touch_counters(uint8_t *body, const struct shape *shape, size_t at,
                            const uint64_t *hash, struct line_choice from);

MELT bool touch_single(uint8_t *body, const struct shape *shape,
                       const uint64_t *hash, touch_counters *touch) {
    return touch(body, shape, line_offset(*hash, shape), hash,
                 line_choices[shape->probes]);
}

AVX2 MELT bool touch_at(uint8_t *body, const struct shape *shape,
                        struct run now, size_t i, struct line_choice from,
                        touch_counters *touch) {
    return touch(body, shape, line_offset(now.hashes[i], shape), &now.hashes[i],
                 from);
}

/* Not by a pointer to call_line or call_near: given one here, gcc 12 left the
 * calls out. */
MELT void call_from(bool near, const uint8_t *line) {
    if (near)
        call_near(line);
    else
        call_line(line);
}

/* Call what a touch of this line may want: the line and two planes; and for
 * removing, which must know all of a counter, plane 2 where it is marked (where
 * not, the line once more: that is cheaper than a branch). */
MELT void call_counters(bool near, const uint8_t *body,
                        const struct shape *shape, const uint8_t *line,
                        bool removes) {
    const size_t plane = LINE_BYTES * (size_t)shape->blocks;
    call_from(near, line);
    call_from(near, line + plane);
    call_from(near, line + 2 * plane);
    if (!removes) return;
    const size_t marked = marks_of(body, shape, (size_t)(line - body)) & 1;
    call_from(near, line + 3 * plane * marked);
}

AVX2 MELT size_t touch_counted(uint8_t *body, const struct shape *given,
                               struct run now, struct run next, bool *answers,
                               touch_counters *touch, bool removes) {
    const struct shape shape = *given;
    const struct field part = {body, shape};
    const struct line_choice from = line_choices[shape.probes];
    const size_t both = (now.n < next.n ? now.n : next.n) & ~(size_t)7;
    bool own[RUN];
    bool *const to = answers ? answers : own;
    size_t i = 0;
    for (; i < both; i += 8) {
        const uint64_t *const near = near_to(now, next, i, i);
        for (size_t j = 0; j < 8; j++) {
            call_counters(false, body, &shape,
                          line_of(&part, next.hashes[i + j]), removes);
            call_counters(true, body, &shape, line_of(&part, near[j]), removes);
            to[i + j] = touch_at(body, &shape, now, i + j, from, touch);
        }
    }
    for (size_t j = i; j < next.n; j++)
        call_counters(false, body, &shape, line_of(&part, next.hashes[j]),
                      removes);
    for (; i < now.n; i++) to[i] = touch_at(body, &shape, now, i, from, touch);
    return count_true(to, now.n);
}

/* Define `const struct kernel name` of what a level brings. */
#define COUNTING_KERNEL_OF_RUNS(name, cpu, TARGET, has_, has_run_, add_,       \
                                remove_)                                       \
    TARGET static bool name##_has(const uint8_t *body,                         \
                                  const struct shape *shape, uint64_t hash) {  \
        return has_(body, shape, &hash);                                       \
    }                                                                          \
    TARGET static bool name##_add(uint8_t *body, const struct shape *shape,    \
                                  uint64_t hash) {                             \
        return touch_single(body, shape, &hash, add_);                         \
    }                                                                          \
    TARGET static bool name##_remove(uint8_t *body, const struct shape *shape, \
                                     uint64_t hash) {                          \
        return touch_single(body, shape, &hash, remove_);                      \
    }                                                                          \
    TARGET static size_t name##_add_run(                                       \
        uint8_t *body, const struct shape *shape, struct run now,              \
        struct run next, bool *fresh) {                                        \
        return touch_counted(body, shape, now, next, fresh, add_, false);      \
    }                                                                          \
    TARGET static size_t name##_remove_run(                                    \
        uint8_t *body, const struct shape *shape, struct run now,              \
        struct run next, bool *found) {                                        \
        return touch_counted(body, shape, now, next, found, remove_, true);    \
    }                                                                          \
    const struct kernel name = {cpu,                                           \
                                name##_has,                                    \
                                name##_add,                                    \
                                has_run_,                                      \
                                name##_add_run,                                \
                                name##_remove,                                 \
                                name##_remove_run,                             \
                                line_has_in_any,                               \
                                true};

#endif
