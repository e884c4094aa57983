/*
 * A kernel sets and tests the bits of one kind of filter at one cpu_level.
 * Every kernel of a kind leaves exactly the same bits behind: that is what
 * lets a filter built on one machine be read on any other.
 *
 * A question costs little work and one long wait for memory, so the kernels
 * that take many hashes keep many waits going at once. A run of hashes passes
 * through three stations: far ahead, its lines are called into the second-level
 * cache; a few hashes ahead, into the first; then the bits are touched. Calling
 * only a few ahead, as most filters do, takes twice as long from main memory.
 */
#ifndef CALYX_KERNEL_H
#define CALYX_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/cpu.h"

/* The numbers that decide where the bits of a hash go. */
struct shape {
    uint64_t blocks;
    uint32_t probes;
};

struct kernel {
    enum cpu_level level;

    bool (*has)(const uint8_t *body, const struct shape *shape, uint64_t hash);
    /* Tells whether any bit was missing. */
    bool (*add)(uint8_t *body, const struct shape *shape, uint64_t hash);

    /* The same for a run of n hashes, at most RUN, whose lines were called
     * before; the lines of the `ahead` hashes that follow them are called on
     * the way. So a run of none calls the lines of the first. `found` and
     * `fresh` may be NULL; both return how many were true. */
    size_t (*has_run)(const uint8_t *body, const struct shape *shape,
                      const uint64_t *hashes, size_t n, size_t ahead,
                      bool *found);
    size_t (*add_run)(uint8_t *body, const struct shape *shape,
                      const uint64_t *hashes, size_t n, size_t ahead,
                      bool *fresh);
};

/* From a list that runs from the best level down to CPU_SCALAR, the first that
 * is no better than `level`. A filter asks once, when it is made. */
static inline const struct kernel *kernel_up_to(
    const struct kernel *const *list, enum cpu_level level) {
    while ((*list)->level > level) list++;
    return *list;
}

enum {
    RUN = 256, /* hashes in a run: so many lines are on their way at a time */
    NEAR = 12  /* hashes between the call into the first cache and the touch */
};

/* ---- How a kernel makes its runs of its single calls --------------------- */

/* Given constant functions, these melt into one loop in each kernel. */
#define MELT static inline __attribute__((always_inline))

enum distance { FAR_OFF, NEAR_BY };

MELT void call_line(const uint8_t *line, enum distance distance) {
    if (distance == FAR_OFF)
        __builtin_prefetch(line, 0, 2); /* into the second-level cache */
    else
        __builtin_prefetch(line, 0, 3); /* into the first */
}

/* Hashes are handed on by their address: a vector kernel loads them straight
 * into a vector, which is cheaper than by way of a plain register. */
typedef bool has_one(const uint8_t *, const struct shape *, const uint64_t *);
typedef bool add_one(uint8_t *, const struct shape *, const uint64_t *);
typedef void call_one(const uint8_t *, const struct shape *, uint64_t,
                      enum distance);

/* A run, and what is called on the way. */
struct run {
    const uint64_t *hashes;
    size_t n, ahead;
};

/* How many hashes of a run, from its start, have one to call at both distances:
 * the loop over these needs not ask. */
MELT size_t well_ahead(struct run run) {
    const size_t all = run.n + run.ahead;
    const size_t near = all > NEAR ? all - NEAR : 0;
    const size_t far = run.ahead < run.n ? run.ahead : run.n;
    return near < far ? near : far;
}

MELT void call_both(const uint8_t *body, const struct shape *shape,
                    struct run run, size_t i, call_one *call) {
    call(body, shape, run.hashes[run.n + i], FAR_OFF);
    call(body, shape, run.hashes[i + NEAR], NEAR_BY);
}

MELT void call_any(const uint8_t *body, const struct shape *shape,
                   struct run run, size_t i, call_one *call) {
    if (i < run.ahead) call(body, shape, run.hashes[run.n + i], FAR_OFF);
    if (i + NEAR < run.n + run.ahead)
        call(body, shape, run.hashes[i + NEAR], NEAR_BY);
}

MELT void call_rest(const uint8_t *body, const struct shape *shape,
                    struct run run, call_one *call) {
    for (size_t i = run.n; i < run.ahead; i++)
        call(body, shape, run.hashes[run.n + i], FAR_OFF);
}

/* How many of a run's answers are true, eight at a time. */
MELT size_t count_true(const bool *answers, size_t n) {
    const uint64_t bytes = UINT64_C(0x00FF00FF00FF00FF);
    uint64_t sums = 0;
    size_t i = 0, total = 0;
    for (; i + 8 <= n; i += 8) sums += load64(answers + i);
    for (; i < n; i++) total += answers[i];
    sums = (sums & bytes) + (sums >> 8 & bytes);
    return total + (size_t)(sums * UINT64_C(0x0001000100010001) >> 48);
}

/* The shape is copied, so that the compiler sees that no store changes it. */
MELT size_t has_each(const uint8_t *body, const struct shape *given,
                     struct run run, bool *found, has_one *has,
                     call_one *call) {
    const struct shape shape = *given;
    const size_t well = well_ahead(run);
    bool answers[RUN];
    bool *const to = found ? found : answers;
    size_t i = 0;
    for (; i < well; i++) {
        call_both(body, &shape, run, i, call);
        to[i] = has(body, &shape, &run.hashes[i]);
    }
    for (; i < run.n; i++) {
        call_any(body, &shape, run, i, call);
        to[i] = has(body, &shape, &run.hashes[i]);
    }
    call_rest(body, &shape, run, call);
    return count_true(to, run.n);
}

MELT size_t add_each(uint8_t *body, const struct shape *given, struct run run,
                     bool *fresh, add_one *add, call_one *call) {
    const struct shape shape = *given;
    const size_t well = well_ahead(run);
    bool answers[RUN];
    bool *const to = fresh ? fresh : answers;
    size_t i = 0;
    for (; i < well; i++) {
        call_both(body, &shape, run, i, call);
        to[i] = add(body, &shape, &run.hashes[i]);
    }
    for (; i < run.n; i++) {
        call_any(body, &shape, run, i, call);
        to[i] = add(body, &shape, &run.hashes[i]);
    }
    call_rest(body, &shape, run, call);
    return count_true(to, run.n);
}

/* Define `const struct kernel name` of functions on single hashes: one to ask
 * and one to add, each with one to call the lines that it will touch. TARGET is
 * the attribute that lets the compiler use the instructions of the level. */
#define KERNEL(name, cpu, TARGET, has_, has_call, add_, add_call)             \
    TARGET static bool name##_has(const uint8_t *body,                        \
                                  const struct shape *shape, uint64_t hash) { \
        return has_(body, shape, &hash);                                      \
    }                                                                         \
    TARGET static bool name##_add(uint8_t *body, const struct shape *shape,   \
                                  uint64_t hash) {                            \
        return add_(body, shape, &hash);                                      \
    }                                                                         \
    TARGET static size_t name##_has_run(                                      \
        const uint8_t *body, const struct shape *shape,                       \
        const uint64_t *hashes, size_t n, size_t ahead, bool *found) {        \
        const struct run run = {hashes, n, ahead};                            \
        return has_each(body, shape, run, found, has_, has_call);             \
    }                                                                         \
    TARGET static size_t name##_add_run(                                      \
        uint8_t *body, const struct shape *shape, const uint64_t *hashes,     \
        size_t n, size_t ahead, bool *fresh) {                                \
        const struct run run = {hashes, n, ahead};                            \
        return add_each(body, shape, run, fresh, add_, add_call);             \
    }                                                                         \
    const struct kernel name = {cpu, name##_has, name##_add, name##_has_run,  \
                                name##_add_run};

#endif
