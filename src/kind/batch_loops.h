/*
 * The loops over a batch, for kinds and levels that have none of their own:
 * given functions for one hash, these are inlined into one loop each.
 */
#ifndef CALYX_BATCH_LOOPS_H
#define CALYX_BATCH_LOOPS_H

#include "base/bits.h"
#include "kind/prefetch.h"

/* Hashes are passed by address: a vector kernel loads them straight into a
 * vector, which is cheaper than by way of a general register. */
typedef bool has_one(const uint8_t *, const struct shape *, const uint64_t *);
typedef bool add_one(uint8_t *, const struct shape *, const uint64_t *);
typedef void prefetch_one(const uint8_t *, const struct shape *, uint64_t);

/* Number of trues among fewer than 2048, eight at a time. */
ALWAYS_INLINE size_t count_true(const bool *answers, size_t n) {
    const uint64_t bytes = UINT64_C(0x00FF00FF00FF00FF);
    uint64_t sums = 0;
    size_t i = 0, total = 0;
    for (; i + 8 <= n; i += 8) sums += load64(answers + i);
    for (; i < n; i++) total += answers[i];
    sums = (sums & bytes) + (sums >> 8 & bytes);
    return total + (size_t)(sums * UINT64_C(0x0001000100010001) >> 48);
}
_Static_assert(BATCH_MAX < 2048, "count_true counts the answers of a batch");

/* The shape is copied, so that the compiler sees that no store changes it. */
ALWAYS_INLINE size_t has_batch_generic(const uint8_t *body,
                                       const struct shape *given,
                                       struct batch batch, bool *found,
                                       has_one *has, prefetch_one *prefetch) {
    const struct shape shape = *given;
    const size_t prologue = prologue_length(&batch);
    const size_t steady = steady_length(&batch);
    bool answers[BATCH_MAX];
    bool *const to = found ? found : answers;
    size_t i = 0;
    for (size_t j = batch.prefetched; j < prologue; j++)
        prefetch(body, &shape, batch.hashes[j]);
    for (; i < steady; i++) {
        prefetch(body, &shape, batch.hashes[i + PREFETCH_DISTANCE]);
        to[i] = has(body, &shape, &batch.hashes[i]);
    }
    for (; i < batch.n; i++) to[i] = has(body, &shape, &batch.hashes[i]);
    return count_true(to, batch.n);
}

/* `prefetch_near` prefetches into L1; NULL where that does not pay. */
ALWAYS_INLINE size_t add_batch_generic(uint8_t *body, const struct shape *given,
                                       struct batch batch, bool *fresh,
                                       add_one *add, prefetch_one *prefetch,
                                       prefetch_one *prefetch_near) {
    const struct shape shape = *given;
    const size_t prologue = prologue_length(&batch);
    const size_t steady = steady_length(&batch);
    bool answers[BATCH_MAX];
    bool *const to = fresh ? fresh : answers;
    size_t i = 0;
    for (size_t j = batch.prefetched; j < prologue; j++)
        prefetch(body, &shape, batch.hashes[j]);
    for (; i < steady; i++) {
        prefetch(body, &shape, batch.hashes[i + PREFETCH_DISTANCE]);
        if (prefetch_near)
            prefetch_near(body, &shape, batch.hashes[i + PREFETCH_DISTANCE_L1]);
        to[i] = add(body, &shape, &batch.hashes[i]);
    }
    for (; i < batch.n; i++) to[i] = add(body, &shape, &batch.hashes[i]);
    return count_true(to, batch.n);
}

#endif
