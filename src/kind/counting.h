/* What the kernels of the counting kind share. counting.c explains what lies
 * where. */
#ifndef CALYX_COUNTING_H
#define CALYX_COUNTING_H

#include "kind/line.h"

enum {
    PLANES = 4,
    FIRST_MARKED = 2, /* the planes from here on are marked where in use */
    MARKS = PLANES - FIRST_MARKED
};

/* Where plane k of the line at this offset stands. */
ALWAYS_INLINE size_t plane_offset(const struct shape *shape, size_t line,
                                  size_t k) {
    return (k + 1) * LINE_BYTES * (size_t)shape->blocks + line;
}

/* The marks of a line: bit 0 for plane 2, bit 1 for plane 3. The marks of
 * four lines share a byte. */
ALWAYS_INLINE uint32_t marks_of(const uint8_t *body, const struct shape *shape,
                                size_t line) {
    const size_t i = line / LINE_BYTES;
    const uint8_t four = body[plane_offset(shape, 0, PLANES) + i / 4];
    return (uint32_t)four >> MARKS * (i % 4) & 3;
}

/* ---- One key ------------------------------------------------------------- */

/* An addition has two steps. `count_low` adds a key to its line and to plane 0,
 * stores in `carry` what has to be added to plane 1, and in *carries whether
 * that is anything; it returns whether any bit was missing. `count_high` adds
 * the carry to plane 1, and on from there. */
typedef bool count_low_step(uint8_t *body, const struct shape *shape,
                            size_t line, const uint64_t *hash,
                            struct line_mask *carry, bool *carries);
typedef void count_high_step(uint8_t *body, const struct shape *shape,
                             size_t line, const struct line_mask *carry);

count_low_step count_low_scalar;
count_high_step count_high_scalar;

ALWAYS_INLINE bool count_one(uint8_t *body, const struct shape *shape,
                             const uint64_t *hash, count_low_step *low,
                             count_high_step *high) {
    const size_t line = line_offset(*hash, shape);
    struct line_mask carry;
    bool carries;
    const bool missing = low(body, shape, line, hash, &carry, &carries);
    if (carries) high(body, shape, line, &carry);
    return missing;
}

typedef enum removal remove_step(uint8_t *body, const struct shape *shape,
                                 const uint64_t *hash);
enum removal remove_one_scalar(uint8_t *body, const struct shape *shape,
                               const uint64_t *hash);

/* Add 1 in plane 2, and from there in plane 3, to the counters in `carry`; take
 * 1 off those in `borrow`. */
void counting_carry(uint8_t *body, const struct shape *shape, size_t line,
                    struct line_mask *carry);
void counting_borrow(uint8_t *body, const struct shape *shape, size_t line,
                     struct line_mask *borrow);

/* ---- Prefetching --------------------------------------------------------- */

enum cache_level { INTO_L1, INTO_L2 };

/* Not by a pointer to prefetch_l1 or prefetch_l2: given one here, gcc 12 drops
 * the prefetches. */
ALWAYS_INLINE void prefetch_into(enum cache_level level, const uint8_t *line) {
    if (level == INTO_L1)
        prefetch_l1(line);
    else
        prefetch_l2(line);
}

ALWAYS_INLINE void prefetch_to_add(const uint8_t *body,
                                   const struct shape *shape, uint64_t hash,
                                   enum cache_level level) {
    const size_t line = line_offset(hash, shape);
    prefetch_into(level, body + line);
    prefetch_into(level, body + plane_offset(shape, line, 0));
}

/* Removing must know all of a counter, so it needs plane 1, and plane 2 where
 * it is marked; where not, the line once more, which is cheaper than a branch.
 */
ALWAYS_INLINE void prefetch_to_remove(const uint8_t *body,
                                      const struct shape *shape, uint64_t hash,
                                      enum cache_level level) {
    const size_t line = line_offset(hash, shape);
    prefetch_to_add(body, shape, hash, level);
    prefetch_into(level, body + plane_offset(shape, line, 1));
    const size_t marked = marks_of(body, shape, line) & 1;
    prefetch_into(level, body + line + marked * plane_offset(shape, 0, 2));
}

/* ---- A batch ------------------------------------------------------------- */

/* Fewer than half of the keys carry anything into plane 1. So its lines are
 * prefetched when that is known, and the second step is made after this many
 * keys. */
enum { DEFERRED_MAX = 128 };

struct deferred_carries {
    struct line_mask carry[DEFERRED_MAX];
    size_t line[DEFERRED_MAX], n;
};

ALWAYS_INLINE bool count_deferred(uint8_t *body, const struct shape *shape,
                                  const uint64_t *hash,
                                  struct deferred_carries *later,
                                  count_low_step *low) {
    const size_t line = line_offset(*hash, shape);
    bool carries;
    const bool missing =
        low(body, shape, line, hash, &later->carry[later->n], &carries);
    prefetch_l1(body + line + carries * plane_offset(shape, 0, 1));
    later->line[later->n] = line;
    later->n += carries;
    return missing;
}

ALWAYS_INLINE size_t count_batch(uint8_t *body, const struct shape *given,
                                 struct batch batch, bool *fresh,
                                 count_low_step *low, count_high_step *high) {
    const struct shape shape = *given;
    const size_t prologue = prologue_length(&batch);
    const size_t steady = steady_length(&batch);
    const uint64_t *const hashes = batch.hashes;
    bool answers[BATCH_MAX];
    bool *const to = fresh ? fresh : answers;
    for (size_t j = batch.prefetched; j < prologue; j++)
        prefetch_to_add(body, &shape, hashes[j], INTO_L2);
    for (size_t i = 0; i < batch.n;) {
        const size_t end =
            batch.n - i < DEFERRED_MAX ? batch.n : i + DEFERRED_MAX;
        struct deferred_carries later;
        later.n = 0;
        for (; i < end && i < steady; i++) {
            prefetch_to_add(body, &shape, hashes[i + PREFETCH_DISTANCE],
                            INTO_L2);
            prefetch_to_add(body, &shape, hashes[i + PREFETCH_DISTANCE_L1],
                            INTO_L1);
            to[i] = count_deferred(body, &shape, &hashes[i], &later, low);
        }
        for (; i < end; i++)
            to[i] = count_deferred(body, &shape, &hashes[i], &later, low);
        for (size_t j = 0; j < later.n; j++)
            high(body, &shape, later.line[j], &later.carry[j]);
    }
    return count_true(to, batch.n);
}

ALWAYS_INLINE size_t remove_batch_generic(uint8_t *body,
                                          const struct shape *given,
                                          struct batch batch, bool *found,
                                          remove_step *remove) {
    const struct shape shape = *given;
    const size_t prologue = prologue_length(&batch);
    const size_t steady = steady_length(&batch);
    const uint64_t *const hashes = batch.hashes;
    bool answers[BATCH_MAX];
    bool *const to = found ? found : answers;
    size_t removed = 0;
    for (size_t j = batch.prefetched; j < prologue; j++)
        prefetch_to_remove(body, &shape, hashes[j], INTO_L2);
    for (size_t i = 0; i < batch.n; i++) {
        if (i < steady) {
            prefetch_to_remove(body, &shape, hashes[i + PREFETCH_DISTANCE],
                               INTO_L2);
            prefetch_to_remove(body, &shape, hashes[i + PREFETCH_DISTANCE_L1],
                               INTO_L1);
        }
        const enum removal became = remove(body, &shape, &hashes[i]);
        to[i] = became != KEY_ABSENT;
        removed += became == KEY_REMOVED;
    }
    return removed;
}

#endif
