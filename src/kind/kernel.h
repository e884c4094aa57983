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

    /* The same for a run of n hashes whose lines were called before; the lines
     * of the `ahead` hashes that follow them are called on the way. So a run of
     * none calls the lines of the first. `found` and `fresh` may be NULL; both
     * return how many were true. */
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

typedef bool has_one(const uint8_t *, const struct shape *, uint64_t);
typedef bool add_one(uint8_t *, const struct shape *, uint64_t);
typedef void call_one(const uint8_t *, const struct shape *, uint64_t,
                      enum distance);

MELT void call_both(const uint8_t *body, const struct shape *shape,
                    const uint64_t *hashes, size_t i, size_t n, size_t ahead,
                    call_one *call) {
    if (i < ahead) call(body, shape, hashes[n + i], FAR_OFF);
    if (i + NEAR < n + ahead) call(body, shape, hashes[i + NEAR], NEAR_BY);
}

MELT void call_rest(const uint8_t *body, const struct shape *shape,
                    const uint64_t *hashes, size_t n, size_t ahead,
                    call_one *call) {
    for (size_t i = n; i < ahead; i++)
        call(body, shape, hashes[n + i], FAR_OFF);
}

/* The shape is copied, so that the compiler sees that no store changes it. */
MELT size_t has_each(const uint8_t *body, const struct shape *given,
                     const uint64_t *hashes, size_t n, size_t ahead,
                     bool *found, has_one *has, call_one *call) {
    const struct shape shape = *given;
    size_t total = 0;
    for (size_t i = 0; i < n; i++) {
        call_both(body, &shape, hashes, i, n, ahead, call);
        const bool yes = has(body, &shape, hashes[i]);
        if (found) found[i] = yes;
        total += yes;
    }
    call_rest(body, &shape, hashes, n, ahead, call);
    return total;
}

MELT size_t add_each(uint8_t *body, const struct shape *given,
                     const uint64_t *hashes, size_t n, size_t ahead,
                     bool *fresh, add_one *add, call_one *call) {
    const struct shape shape = *given;
    size_t total = 0;
    for (size_t i = 0; i < n; i++) {
        call_both(body, &shape, hashes, i, n, ahead, call);
        const bool yes = add(body, &shape, hashes[i]);
        if (fresh) fresh[i] = yes;
        total += yes;
    }
    call_rest(body, &shape, hashes, n, ahead, call);
    return total;
}

/* Define `const struct kernel name` of functions on single hashes: one to ask
 * and one to add, each with one to call the lines that it will touch. TARGET is
 * the attribute that lets the compiler use the instructions of the level. */
#define KERNEL(name, cpu, TARGET, has_, has_call, add_, add_call)              \
    TARGET static size_t name##_has_run(                                       \
        const uint8_t *body, const struct shape *shape,                        \
        const uint64_t *hashes, size_t n, size_t ahead, bool *found) {         \
        return has_each(body, shape, hashes, n, ahead, found, has_, has_call); \
    }                                                                          \
    TARGET static size_t name##_add_run(                                       \
        uint8_t *body, const struct shape *shape, const uint64_t *hashes,      \
        size_t n, size_t ahead, bool *fresh) {                                 \
        return add_each(body, shape, hashes, n, ahead, fresh, add_, add_call); \
    }                                                                          \
    const struct kernel name = {cpu, has_, add_, name##_has_run,               \
                                name##_add_run};

#endif
