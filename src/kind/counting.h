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

/* Add a key, and tell whether any bit was missing. */
bool counting_add_scalar(uint8_t *body, const struct shape *shape,
                         const uint64_t *hash);

/* Add 1 in plane 2, and so in plane 3, to the counters in `carry`. */
void counting_carry(uint8_t *body, const struct shape *shape, size_t line,
                    struct line_mask *carry);

/* ---- Removing ------------------------------------------------------------ */

/* Remove a key, if it is there, and tell whether it was. */
bool counting_remove_scalar(uint8_t *body, const struct shape *shape,
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

/* Call what a touch of a key may want: the line and two planes. Plane 1 is
 * wanted by less than half of the additions; to find out which costs more than
 * to call it for all. Removing must know all of a counter, so it wants plane 2
 * where it is marked; where not, the line once more, which is cheaper than a
 * branch. */
MELT void call_counters(const uint8_t *body, const struct shape *shape,
                        uint64_t hash, bool removes, bool near) {
    const size_t line = line_offset(hash, shape);
    call_from(near, body + line);
    call_from(near, body + plane_offset(shape, line, 0));
    call_from(near, body + plane_offset(shape, line, 1));
    if (!removes) return;
    const size_t marked = marks_of(body, shape, line) & 1;
    call_from(near, body + line + marked * plane_offset(shape, 0, 2));
}

#define COUNTING_CALL(name, removes, near)                         \
    MELT void name(const uint8_t *body, const struct shape *shape, \
                   uint64_t hash) {                                \
        call_counters(body, shape, hash, removes, near);           \
    }
COUNTING_CALL(call_to_count, false, false)
COUNTING_CALL(call_near_to_count, false, true)
COUNTING_CALL(call_to_remove, true, false)
COUNTING_CALL(call_near_to_remove, true, true)

/* ---- The kernel ---------------------------------------------------------- */

/* Define `const struct kernel name` of what a level brings; `add_` and
 * `remove_` do as those above. A counting filter is asked as a line filter is:
 * the rest is of the kernel for that. */
#define COUNTING_KERNEL(name, cpu, TARGET, has_, has_run_, add_, remove_,      \
                        has_in_any_, hashes_numbers_)                          \
    SINGLES(name##_has, name##_add, TARGET, has_, add_)                        \
    TARGET static size_t name##_add_run(uint8_t *body,                         \
                                        const struct shape *shape,             \
                                        struct run run, bool *fresh) {         \
        return add_each(body, shape, run, fresh, add_, call_to_count,          \
                        call_near_to_count);                                   \
    }                                                                          \
    TARGET static size_t name##_remove_run(uint8_t *body,                      \
                                           const struct shape *shape,          \
                                           struct run run, bool *found) {      \
        return add_each(body, shape, run, found, remove_, call_to_remove,      \
                        call_near_to_remove);                                  \
    }                                                                          \
    TARGET static bool name##_remove(uint8_t *body, const struct shape *shape, \
                                     uint64_t hash) {                          \
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
