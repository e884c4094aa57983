/*
 * A kernel sets and tests the bits of one kind of filter at one cpu_level.
 * Every kernel of a kind leaves exactly the same bits behind: that is what
 * lets a filter built on one machine be read on any other.
 *
 * A question costs little work and one long wait for memory, so the kernels
 * that take many hashes keep many waits going at once. To "call" a line is to
 * ask memory for it without waiting (a prefetch). Before the bits of a hash are
 * touched, the lines of the hashes that follow are called into the second-level
 * cache, far ahead; and where that pays, each is called into the first shortly
 * before its touch. Calling only a few hashes ahead, as most filters do, takes
 * twice as long from main memory.
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

enum {
    RUN = 1024, /* hashes in a run at most                  */
    AHEAD = 128 /* hashes between the call of a line and its touch: so many
                   lines are on their way at a time */
};

/* Hashes to touch, and hashes behind them, which other runs will touch. */
struct run {
    const uint64_t *hashes;
    size_t n, more;
    size_t called; /* how many had their lines called by the run before */
    /* For kernels that hash numbers: what is to be hashed into the room of
     * `hashes` when the lines are called, and by which xxh3_flip. Else NULL. */
    const uint64_t *numbers;
    uint64_t flip;
};

/* A run with nothing before or behind it. */
static inline struct run run_of(const uint64_t *hashes, size_t n) {
    return (struct run){.hashes = hashes, .n = n};
}

/* Of how many hashes of a run has the line to be called before the first is
 * touched? */
static inline size_t to_call_first(const struct run *run) {
    const size_t all = run->n + run->more;
    return all < AHEAD ? all : AHEAD;
}

/* How many of its hashes, at the touch, have one AHEAD that is to be called? */
static inline size_t with_ahead(const struct run *run) {
    const size_t all = run->n + run->more;
    const size_t most = all < AHEAD ? 0 : all - AHEAD;
    return most < run->n ? most : run->n;
}

/* A part of a filter, as a kernel sees it. */
struct field {
    const uint8_t *body;
    struct shape shape;
};

/* What became of a key that was to be removed. One is stuck if its counters
 * have all come to their highest, where they stay. */
enum removal { KEY_ABSENT = 0, KEY_REMOVED = 1, KEY_STUCK = 2 };

struct kernel {
    enum cpu_level level;

    bool (*has)(const uint8_t *body, const struct shape *shape, uint64_t hash);
    /* Tells whether any bit was missing. */
    bool (*add)(uint8_t *body, const struct shape *shape, uint64_t hash);

    /* The same for each hash of a run. On the way, the lines of the first AHEAD
     * hashes behind it are called. `found` and `fresh` may be NULL; both return
     * how many were true. */
    size_t (*has_run)(const uint8_t *body, const struct shape *shape,
                      struct run run, bool *found);
    size_t (*add_run)(uint8_t *body, const struct shape *shape, struct run run,
                      bool *fresh);
    /* Remove a key; or each of a run, where `found` tells which were there, and
     * the number is returned of those that were removed. The others change
     * nothing. NULL for kinds that do not count. */
    enum removal (*remove)(uint8_t *body, const struct shape *shape,
                           uint64_t hash);
    size_t (*remove_run)(uint8_t *body, const struct shape *shape,
                         struct run run, bool *found);

    /* Ask several parts, of fewer than 2^32 blocks each, for n hashes at once:
     * `found` becomes true for those that any part has, and else stays as it
     * was. NULL if that is no better than to ask one part after the other. */
    void (*has_in_any)(const struct field *parts, size_t count,
                       const uint64_t *hashes, size_t n, bool *found);

    /* Does has_run take runs of numbers? They are hashed while lines are
     * awaited, which from memory costs next to nothing. */
    bool hashes_numbers;
};

enum { FIELDS_AT_ONCE = 16 }; /* the most parts that has_in_any takes */

/* From a list that runs from the best level down to CPU_SCALAR, the first that
 * is no better than `level`. A filter asks once, when it is made. */
static inline const struct kernel *kernel_up_to(
    const struct kernel *const *list, enum cpu_level level) {
    while ((*list)->level > level) list++;
    return *list;
}

/* ---- How a kernel makes its runs of its single calls --------------------- */

/* Given constant functions, these melt into one loop in each kernel. Where one
 * of them is given to another, gcc -Og cannot do that ("inlining failed") and
 * wants -DCALYX_NO_MELT=1: the kernels are slow then, and easy to step through.
 * CMakeLists.txt sees to it. */
#if CALYX_NO_MELT
#define MELT static inline
#else
#define MELT static inline __attribute__((always_inline))
#endif

/* Hashes between the call of a line into the first-level cache and its
 * touch. */
enum { NEAR = 16 };

MELT void call_line(const uint8_t *line) {
    __builtin_prefetch(line, 0, 2); /* into the second-level cache */
}

MELT void call_near(const uint8_t *line) {
    __builtin_prefetch(line, 0, 3); /* into the first */
}

/* Hashes are handed on by their address: a vector kernel loads them straight
 * into a vector, which is cheaper than by way of a plain register. */
typedef bool has_one(const uint8_t *, const struct shape *, const uint64_t *);
typedef bool add_one(uint8_t *, const struct shape *, const uint64_t *);
typedef void call_one(const uint8_t *, const struct shape *, uint64_t);

/* How many of less than 2048 answers are true, eight at a time. */
MELT size_t count_true(const bool *answers, size_t n) {
    const uint64_t bytes = UINT64_C(0x00FF00FF00FF00FF);
    uint64_t sums = 0;
    size_t i = 0, total = 0;
    for (; i + 8 <= n; i += 8) sums += load64(answers + i);
    for (; i < n; i++) total += answers[i];
    sums = (sums & bytes) + (sums >> 8 & bytes);
    return total + (size_t)(sums * UINT64_C(0x0001000100010001) >> 48);
}
_Static_assert(RUN < 2048, "count_true counts the answers of a run");

/* The shape is copied, so that the compiler sees that no store changes it. The
 * loop over hashes that have one ahead does not ask whether they have. */
MELT size_t has_each(const uint8_t *body, const struct shape *given,
                     struct run run, bool *found, has_one *has,
                     call_one *call) {
    const struct shape shape = *given;
    const size_t first = to_call_first(&run), with = with_ahead(&run);
    bool answers[RUN];
    bool *const to = found ? found : answers;
    size_t i = 0;
    for (size_t j = run.called; j < first; j++)
        call(body, &shape, run.hashes[j]);
    for (; i < with; i++) {
        call(body, &shape, run.hashes[i + AHEAD]);
        to[i] = has(body, &shape, &run.hashes[i]);
    }
    for (; i < run.n; i++) to[i] = has(body, &shape, &run.hashes[i]);
    return count_true(to, run.n);
}

/* `near` calls the lines of a hash into the first-level cache, shortly before
 * they are touched; NULL where that does not pay. */
MELT size_t add_each(uint8_t *body, const struct shape *given, struct run run,
                     bool *fresh, add_one *add, call_one *call,
                     call_one *near) {
    const struct shape shape = *given;
    const size_t first = to_call_first(&run), with = with_ahead(&run);
    bool answers[RUN];
    bool *const to = fresh ? fresh : answers;
    size_t i = 0;
    for (size_t j = run.called; j < first; j++)
        call(body, &shape, run.hashes[j]);
    for (; i < with; i++) {
        call(body, &shape, run.hashes[i + AHEAD]);
        if (near) near(body, &shape, run.hashes[i + NEAR]);
        to[i] = add(body, &shape, &run.hashes[i]);
    }
    for (; i < run.n; i++) to[i] = add(body, &shape, &run.hashes[i]);
    return count_true(to, run.n);
}

/* Define a kernel of functions on single hashes: one to ask and one to add,
 * each with one to call the lines that it will touch. TARGET is the attribute
 * that lets the compiler use the instructions of the level. KERNEL makes the
 * loops over runs too; SINGLES is for a kernel that has its own. */
#define SINGLES(has_name, add_name, TARGET, has_, add_)                     \
    TARGET static bool has_name(const uint8_t *body,                        \
                                const struct shape *shape, uint64_t hash) { \
        return has_(body, shape, &hash);                                    \
    }                                                                       \
    TARGET static bool add_name(uint8_t *body, const struct shape *shape,   \
                                uint64_t hash) {                            \
        return add_(body, shape, &hash);                                    \
    }

#define KERNEL(name, cpu, TARGET, has_, has_call, add_, add_call)       \
    SINGLES(name##_has, name##_add, TARGET, has_, add_)                 \
    TARGET static size_t name##_has_run(const uint8_t *body,            \
                                        const struct shape *shape,      \
                                        struct run run, bool *found) {  \
        return has_each(body, shape, run, found, has_, has_call);       \
    }                                                                   \
    TARGET static size_t name##_add_run(uint8_t *body,                  \
                                        const struct shape *shape,      \
                                        struct run run, bool *fresh) {  \
        return add_each(body, shape, run, fresh, add_, add_call, NULL); \
    }                                                                   \
    const struct kernel name = {                                        \
        cpu,  name##_has, name##_add, name##_has_run, name##_add_run,   \
        NULL, NULL,       NULL,       false};

#endif
