/* How runs are added to and removed from counting filters, at any cpu_level.
 * counting.c tells what lies where. */
#ifndef CALYX_COUNTING_H
#define CALYX_COUNTING_H

#include "kind/line.h"

enum {
    PLANES = 4,
    FIRST_MARKED = 2, /* the planes from here on are marked where in use */
    MARKS = PLANES - FIRST_MARKED
};

/* Where plane k of the line at this offset stands. */
MELT size_t plane_offset(const struct shape *shape, size_t line, size_t k) {
    return (k + 1) * LINE_BYTES * (size_t)shape->blocks + line;
}

/* The marks of a line: bit 0 for plane 2, bit 1 for plane 3. Those of four
 * lines share a byte. */
MELT uint32_t marks_of(const uint8_t *body, const struct shape *shape,
                       size_t line) {
    const size_t i = line / LINE_BYTES;
    const uint8_t four = body[plane_offset(shape, 0, PLANES) + i / 4];
    return (uint32_t)four >> MARKS * (i % 4) & 3;
}

/* ---- Adding -------------------------------------------------------------- */

/* An addition has two steps. The first adds a key to its line and to plane 0,
 * stores in `carry` what has to be added to plane 1, and tells in *carries
 * whether that is anything; it returns whether any bit was missing. The second
 * adds to plane 1, and on from there. */
typedef bool count_low(uint8_t *body, const struct shape *shape, size_t line,
                       const uint64_t *hash, struct line_mask *carry,
                       bool *carries);
typedef void count_high(uint8_t *body, const struct shape *shape, size_t line,
                        const struct line_mask *carry);

count_low counting_low_scalar;
count_high counting_high_scalar;

/* Add 1 in plane 2, and so in plane 3, to the counters in `carry`. */
void counting_carry(uint8_t *body, const struct shape *shape, size_t line,
                    struct line_mask *carry);

MELT bool count_one(uint8_t *body, const struct shape *shape,
                    const uint64_t *hash, count_low *low, count_high *high) {
    const size_t line = line_offset(*hash, shape);
    struct line_mask carry;
    bool carries;
    const bool missing = low(body, shape, line, hash, &carry, &carries);
    if (carries) high(body, shape, line, &carry);
    return missing;
}

/* ---- Removing ------------------------------------------------------------ */

/* Remove a key, if it is there, and tell whether it was. */
enum removal counting_remove_scalar(uint8_t *body, const struct shape *shape,
                                    const uint64_t *hash);

/* Take 1 off in plane 2, and so in plane 3, from the counters in `borrow`. */
void counting_borrow(uint8_t *body, const struct shape *shape, size_t line,
                     struct line_mask *borrow);

/* ---- Calling ------------------------------------------------------------- */

/* Not by a pointer to call_line or call_near: given one here, gcc 12 left the
 * calls out. */
MELT void call_from(bool near, const uint8_t *line) {
    if (near)
        call_near(line);
    else
        call_line(line);
}

/* Call what a touch of a key wants: the line and plane 0. Removing must know
 * all of a counter, so it wants plane 1, and plane 2 where it is marked; where
 * not, the line once more, which is cheaper than a branch. */
MELT void call_counters(const uint8_t *body, const struct shape *shape,
                        uint64_t hash, bool removes, bool near) {
    const size_t line = line_offset(hash, shape);
    call_from(near, body + line);
    call_from(near, body + plane_offset(shape, line, 0));
    if (!removes) return;
    call_from(near, body + plane_offset(shape, line, 1));
    const size_t marked = marks_of(body, shape, line) & 1;
    call_from(near, body + line + marked * plane_offset(shape, 0, 2));
}

#define COUNTING_CALL(name, removes, near)                         \
    MELT void name(const uint8_t *body, const struct shape *shape, \
                   uint64_t hash) {                                \
        call_counters(body, shape, hash, removes, near);           \
    }
COUNTING_CALL(call_to_remove, true, false)
COUNTING_CALL(call_near_to_remove, true, true)

/* ---- Adding many --------------------------------------------------------- */

/* Less than half of the keys carry anything into plane 1. So its lines are
 * called when that is known, and the second step is made after so many keys. */
enum { LATER = 128 };

struct carries {
    struct line_mask of[LATER];
    size_t line[LATER], n;
};

MELT bool count_for_now(uint8_t *body, const struct shape *shape,
                        const uint64_t *hash, struct carries *later,
                        count_low *low) {
    const size_t line = line_offset(*hash, shape);
    bool carries;
    const bool missing =
        low(body, shape, line, hash, &later->of[later->n], &carries);
    call_near(body + line + carries * plane_offset(shape, 0, 1));
    later->line[later->n] = line;
    later->n += carries;
    return missing;
}

MELT size_t count_each(uint8_t *body, const struct shape *given, struct run run,
                       bool *fresh, count_low *low, count_high *high) {
    const struct shape shape = *given;
    const size_t first = to_call_first(&run), with = with_ahead(&run);
    bool answers[RUN];
    bool *const to = fresh ? fresh : answers;
    for (size_t j = run.called; j < first; j++)
        call_counters(body, &shape, run.hashes[j], false, false);
    for (size_t i = 0; i < run.n;) {
        const size_t end = run.n - i < LATER ? run.n : i + LATER;
        struct carries later;
        later.n = 0;
        for (; i < end && i < with; i++) {
            call_counters(body, &shape, run.hashes[i + AHEAD], false, false);
            call_counters(body, &shape, run.hashes[i + NEAR], false, true);
            to[i] = count_for_now(body, &shape, &run.hashes[i], &later, low);
        }
        for (; i < end; i++)
            to[i] = count_for_now(body, &shape, &run.hashes[i], &later, low);
        for (size_t j = 0; j < later.n; j++)
            high(body, &shape, later.line[j], &later.of[j]);
    }
    return count_true(to, run.n);
}

/* ---- Removing many ------------------------------------------------------- */

typedef enum removal remove_one(uint8_t *body, const struct shape *shape,
                                const uint64_t *hash);

MELT size_t remove_each(uint8_t *body, const struct shape *given,
                        struct run run, bool *found, remove_one *remove) {
    const struct shape shape = *given;
    const size_t first = to_call_first(&run), with = with_ahead(&run);
    bool answers[RUN];
    bool *const to = found ? found : answers;
    size_t removed = 0, i = 0;
    for (size_t j = run.called; j < first; j++)
        call_to_remove(body, &shape, run.hashes[j]);
    for (; i < run.n; i++) {
        if (i < with) {
            call_to_remove(body, &shape, run.hashes[i + AHEAD]);
            call_near_to_remove(body, &shape, run.hashes[i + NEAR]);
        }
        const enum removal became = remove(body, &shape, &run.hashes[i]);
        to[i] = became != KEY_ABSENT;
        removed += became == KEY_REMOVED;
    }
    return removed;
}

/* ---- The kernel ---------------------------------------------------------- */

/* Define `const struct kernel name` of what a level brings; `remove_` does as
 * the scalar one. A counting filter is asked as a line filter is: the rest is
 * of the kernel for that. */
#define COUNTING_KERNEL(name, cpu, TARGET, has_, has_run_, low, high, remove_, \
                        has_in_any_, hashes_numbers_)                          \
    TARGET MELT bool name##_count(uint8_t *body, const struct shape *shape,    \
                                  const uint64_t *hash) {                      \
        return count_one(body, shape, hash, low, high);                        \
    }                                                                          \
    SINGLES(name##_has, name##_add, TARGET, has_, name##_count)                \
    TARGET static size_t name##_add_run(uint8_t *body,                         \
                                        const struct shape *shape,             \
                                        struct run run, bool *fresh) {         \
        return count_each(body, shape, run, fresh, low, high);                 \
    }                                                                          \
    TARGET static size_t name##_remove_run(uint8_t *body,                      \
                                           const struct shape *shape,          \
                                           struct run run, bool *found) {      \
        return remove_each(body, shape, run, found, remove_);                  \
    }                                                                          \
    TARGET static enum removal name##_remove(                                  \
        uint8_t *body, const struct shape *shape, uint64_t hash) {             \
        return remove_(body, shape, &hash);                                    \
    }                                                                          \
    const struct kernel name = {cpu,                                           \
                                name##_has,                                    \
                                name##_add,                                    \
                                has_run_,                                      \
                                name##_add_run,                                \
                                name##_remove,                                 \
                                name##_remove_run,                             \
                                has_in_any_,                                   \
                                hashes_numbers_};

#endif
