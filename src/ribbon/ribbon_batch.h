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
enum { RIBBON_AHEAD = 64, MOST_LANES = 4 };

/* Queries that were prepared and not answered, by number % RIBBON_AHEAD.
 * Addresses are numbers, as vectors compute them. */
struct query_ring {
    _Alignas(64) uint64_t words[RIBBON_AHEAD]; /* address of the first group */
    uint64_t stride[RIBBON_AHEAD];             /* bytes of a group           */
    uint64_t flags[RIBBON_AHEAD];              /* address of the flag's byte */
    uint64_t flag[RIBBON_AHEAD];               /* and its bit there          */
    uint64_t coefficients[RIBBON_AHEAD], result[RIBBON_AHEAD];
    uint64_t mask[RIBBON_AHEAD]; /* bits of the result that count */
};

ALWAYS_INLINE const uint8_t *words_in(const struct query_ring *ring,
                                      size_t at) {
    return (const uint8_t *)(uintptr_t)ring->words[at];
}

ALWAYS_INLINE const uint8_t *flags_in(const struct query_ring *ring,
                                      size_t at) {
    return (const uint8_t *)(uintptr_t)ring->flags[at];
}

/* The number of words that a kernel reads of a group, decided once a batch. */
enum read_width { READ_8, READ_16, READ_32 };

ALWAYS_INLINE enum read_width read_width_of(const struct shape *shape) {
    const uint32_t most = shape->probes + (shape->wide > 0);
    return most <= 8 ? READ_8 : most <= 16 ? READ_16 : READ_32;
}

/* Vectors prepare queries with numbers of groups of 32 bits. */
ALWAYS_INLINE bool has_many_groups(const struct shape *shape) {
    return shape->blocks >= UINT32_MAX - LOT_GROUPS;
}

/* Prepare the queries of `lanes` hashes, and put them into the ring from place
 * `to` on. */
typedef void prepare_some(const uint8_t *body, const struct shape *,
                          const uint64_t *hashes, struct query_ring *,
                          size_t to);

/* For levels without vectors of 64-bit numbers: one query. Its coefficients and
 * its result are computed later, from the mixed hash. */
ALWAYS_INLINE void prepare_one(const uint8_t *body, const struct shape *shape,
                               const uint64_t *hashes, struct query_ring *ring,
                               size_t to) {
    const uint64_t group = group_of(*hashes, shape);
    const uint64_t address = (uint64_t)(uintptr_t)body;
    ring->words[to] = address + words_at(first_group(group, shape), shape);
    ring->stride[to] = 2 * words_of(group, shape);
    ring->flags[to] = address + flags_at(group, shape) + group % LOT_GROUPS / 8;
    ring->flag[to] = group % 8;
    ring->coefficients[to] = ribbon_mix(*hashes);
}

/* Do the equations of the query at this place of the ring hold? */
typedef bool holds_one(const struct query_ring *, size_t at, enum read_width);

/* Where answers go. */
struct layer_answers {
    bool *found;
    uint16_t *bumped;
    size_t bumps; /* in `bumped` so far */
};

/* All that a kernel reads for a query: up to the last byte of its last vector,
 * even if no word is there. */
ALWAYS_INLINE void prefetch_query(const struct query_ring *ring, size_t at,
                                  enum read_width width) {
    const uint8_t *const words = words_in(ring, at);
    const size_t reach = width == READ_8 ? 15 : width == READ_16 ? 31 : 63;
    prefetch_l2(flags_in(ring, at));
    prefetch_l2(words);
    if (width != READ_8) prefetch_l2(words + 64);
    if (width == READ_32) prefetch_l2(words + 128);
    prefetch_l2(words + (SPAN_GROUPS - 1) * ring->stride[at] + reach);
}

/* Prepare the queries from number `from` on, and prefetch them. The last ones
 * may be fewer than lanes; then others are invented. */
ALWAYS_INLINE void prepare_at(const uint8_t *body, const struct shape *shape,
                              const struct batch *batch, size_t from,
                              size_t lanes, prepare_some *prepare,
                              enum read_width width, bool prefetches,
                              struct query_ring *ring) {
    const size_t all = batch->n + batch->more, at = from % RIBBON_AHEAD;
    const uint64_t *hashes = batch->hashes + from;
    uint64_t last[MOST_LANES] = {0};
    if (from + lanes > all) {
        for (size_t i = from; i < all; i++) last[i - from] = batch->hashes[i];
        hashes = last;
    }
    prepare(body, shape, hashes, ring, at);
    if (!prefetches) return;
#pragma GCC unroll 4
    for (size_t i = 0; i < lanes; i++) prefetch_query(ring, at + i, width);
}

ALWAYS_INLINE void answer_one(const struct query_ring *ring, size_t at,
                              size_t number, enum read_width width,
                              holds_one *holds, struct layer_answers *answers) {
    const uint32_t bumped =
        (uint32_t)*flags_in(ring, at) >> ring->flag[at] & 1u;
    answers->found[number] = holds(ring, at, width) & !bumped;
    answers->bumped[answers->bumps] = (uint16_t)number;
    answers->bumps += bumped;
}

ALWAYS_INLINE size_t ribbon_batch_of(const uint8_t *body,
                                     const struct shape *given,
                                     struct batch batch,
                                     struct layer_answers answers, size_t lanes,
                                     prepare_some *prepare, holds_one *holds,
                                     enum read_width width) {
    const struct shape shape = *given;
    const size_t all = batch.n + batch.more;
    struct query_ring ring;
    size_t i = 0;
    /* Fill the ring; the batch before has prefetched the first queries. */
    for (size_t j = 0; j < RIBBON_AHEAD && j < all; j += lanes)
        prepare_at(body, &shape, &batch, j, lanes, prepare, width,
                   j >= batch.prefetched, &ring);
    /* Answer the oldest queries; prepare later ones in their places. */
    for (; i + lanes <= batch.n; i += lanes) {
        const size_t at = i % RIBBON_AHEAD;
#pragma GCC unroll 4
        for (size_t j = 0; j < lanes; j++)
            answer_one(&ring, at + j, i + j, width, holds, &answers);
        if (i + RIBBON_AHEAD < all)
            prepare_at(body, &shape, &batch, i + RIBBON_AHEAD, lanes, prepare,
                       width, true, &ring);
    }
    for (; i < batch.n; i++)
        answer_one(&ring, i % RIBBON_AHEAD, i, width, holds, &answers);
    return answers.bumps;
}

/* Returns the number of hashes that were bumped. */
ALWAYS_INLINE size_t ribbon_batch_generic(const uint8_t *body,
                                          const struct shape *shape,
                                          struct batch batch, bool *found,
                                          uint16_t *bumped, size_t lanes,
                                          prepare_some *prepare,
                                          holds_one *holds) {
    const struct layer_answers to = {found, bumped, 0};
    switch (read_width_of(shape)) {
        case READ_8:
            return ribbon_batch_of(body, shape, batch, to, lanes, prepare,
                                   holds, READ_8);
        case READ_16:
            return ribbon_batch_of(body, shape, batch, to, lanes, prepare,
                                   holds, READ_16);
        default:
            return ribbon_batch_of(body, shape, batch, to, lanes, prepare,
                                   holds, READ_32);
    }
}

#endif
