/*
 * The loop over a batch of hashes in one ribbon layer, for every level: given a
 * function that prepares a few queries and one that answers a query, they are
 * inlined into one loop. batch_loops.h would prepare each query twice: once to
 * prefetch it, and once to answer it.
 */
#ifndef CALYX_RIBBON_BATCH_H
#define CALYX_RIBBON_BATCH_H

#include "kind/prefetch.h"
#include "ribbon/ribbon.h"

/* Queries between prefetch and answer. A query reads two or three lines, so
 * that these are as many lines as PREFETCH_DISTANCE has. */
enum { RIBBON_AHEAD = 64, MOST_LANES = 8 };

/* Queries that were prepared and not answered, by number % RIBBON_AHEAD. */
struct query_ring {
    _Alignas(64) uint64_t words_at[RIBBON_AHEAD], flag[RIBBON_AHEAD];
    uint64_t coefficients[RIBBON_AHEAD], result[RIBBON_AHEAD];
    uint64_t mask[RIBBON_AHEAD], stride[RIBBON_AHEAD];
};

/* The number of words that a kernel reads of a group, decided once a batch. */
enum reading { READ_8, READ_16, READ_32 };

ALWAYS_INLINE enum reading reading_of(const struct shape *shape) {
    const uint32_t most = shape->probes + (shape->wide > 0);
    return most <= 8 ? READ_8 : most <= 16 ? READ_16 : READ_32;
}

/* Vectors prepare queries with numbers of groups of 32 bits. */
ALWAYS_INLINE bool has_many_groups(const struct shape *shape) {
    return shape->blocks >= UINT32_MAX - LOT_GROUPS;
}

/* Prepare the queries of some hashes, and put them into the ring from place
 * `to` on. */
typedef void prepare_some(const struct shape *, const uint64_t *hashes,
                          struct query_ring *, size_t to);
typedef bool answer_one(const uint8_t *body, const struct query_ring *,
                        size_t at, enum reading);

/* All that a kernel reads for a query: up to the last byte of its last vector,
 * even if no word is there. */
ALWAYS_INLINE void prefetch_query(const uint8_t *body,
                                  const struct query_ring *ring, size_t i,
                                  enum reading reading) {
    const uint8_t *const words = body + ring->words_at[i];
    const size_t reach = reading == READ_8 ? 15 : reading == READ_16 ? 31 : 63;
    prefetch_l2(body + ring->flag[i] / 8);
    prefetch_l2(words);
    if (reading != READ_8) prefetch_l2(words + 64);
    if (reading == READ_32) prefetch_l2(words + 128);
    prefetch_l2(words + (SPAN_GROUPS - 1) * ring->stride[i] + reach);
}

/* Prepare the queries from `from` on; the last ones may be fewer than lanes.
 */
ALWAYS_INLINE void prepare_at(const struct shape *shape,
                              const struct batch *batch, size_t all,
                              size_t from, size_t lanes, prepare_some *prepare,
                              struct query_ring *ring) {
    if (from + lanes <= all) {
        prepare(shape, batch->hashes + from, ring, from % RIBBON_AHEAD);
        return;
    }
    uint64_t last[MOST_LANES] = {0};
    for (size_t i = from; i < all; i++) last[i - from] = batch->hashes[i];
    prepare(shape, last, ring, from % RIBBON_AHEAD);
}

ALWAYS_INLINE size_t ribbon_batch_reading(
    const uint8_t *body, const struct shape *given, struct batch batch,
    bool *found, uint16_t *bumped, size_t lanes, prepare_some *prepare,
    answer_one *answer, enum reading reading) {
    const struct shape shape = *given;
    const size_t all = batch.n + batch.more;
    struct query_ring ring;
    size_t bumps = 0;
    for (size_t j = 0; j < RIBBON_AHEAD && j < all; j += lanes) {
        prepare_at(&shape, &batch, all, j, lanes, prepare, &ring);
        for (size_t i = j; i < j + lanes && j >= batch.prefetched; i++)
            prefetch_query(body, &ring, i, reading);
    }
    for (size_t i = 0; i < batch.n; i += lanes) {
        const size_t end = i + lanes < batch.n ? i + lanes : batch.n;
        const size_t ahead = i + RIBBON_AHEAD;
        for (size_t j = i; j < end; j++) {
            const size_t at = j % RIBBON_AHEAD;
            const uint64_t flag = ring.flag[at];
            const bool is_bumped = body[flag / 8] >> flag % 8 & 1;
            found[j] = answer(body, &ring, at, reading) & !is_bumped;
            bumped[bumps] = (uint16_t)j;
            bumps += is_bumped;
        }
        if (ahead >= all) continue;
        prepare_at(&shape, &batch, all, ahead, lanes, prepare, &ring);
        for (size_t j = i; j < i + lanes; j++)
            prefetch_query(body, &ring, j % RIBBON_AHEAD, reading);
    }
    return bumps;
}

/* Returns the number of hashes that were bumped. */
ALWAYS_INLINE size_t ribbon_batch_generic(const uint8_t *body,
                                          const struct shape *shape,
                                          struct batch batch, bool *found,
                                          uint16_t *bumped, size_t lanes,
                                          prepare_some *prepare,
                                          answer_one *answer) {
    switch (reading_of(shape)) {
        case READ_8:
            return ribbon_batch_reading(body, shape, batch, found, bumped,
                                        lanes, prepare, answer, READ_8);
        case READ_16:
            return ribbon_batch_reading(body, shape, batch, found, bumped,
                                        lanes, prepare, answer, READ_16);
        default:
            return ribbon_batch_reading(body, shape, batch, found, bumped,
                                        lanes, prepare, answer, READ_32);
    }
}

#endif
