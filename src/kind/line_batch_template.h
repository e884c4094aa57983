/*
 * Template: batches of the line kind with vectors of x86, unrolled by 8.
 * line_avx2.c includes it after it defined
 *
 *     TARGET                 the attribute that enables its instructions
 *     in_line, add_to_line   one key, as for line_template.h
 *     has_8, add_8           8 keys; prefetch their `ahead`, and store their
 *                            hit masks, 8 bytes
 *     all_hit                hit masks of 32 keys to 0xFF (every bit was set)
 *                            or 0
 *
 * The format of the hit masks is the level's own, whatever is cheapest to
 * store; they become booleans after the loop. A set bit always means a hit.
 *
 * A lookup has to fit into the time in which memory delivers the next line, so
 * every instruction counts. Each loop is compiled several times: for keys that
 * set a second bit in a column and for others, for filters within the caches
 * and beyond, and for hashes or numbers.
 */
#include <string.h>

#include "hash/xxh3_avx2.h"

/* ---- Numbers, hashed on the way ------------------------------------------ */

TARGET ALWAYS_INLINE void hash_4(struct batch batch, size_t i) {
    const __m256i four = _mm256_loadu_si256((const __m256i *)&batch.numbers[i]);
    _mm256_storeu_si256((__m256i *)&batch.hashes[i],
                        xxh3_of_four(four, xxh3_all(batch.flip)));
}

TARGET ALWAYS_INLINE void hash_8(struct batch batch, size_t i) {
    hash_4(batch, i);
    hash_4(batch, i + 4);
}

TARGET ALWAYS_INLINE void hash_1(struct batch batch, size_t i) {
    const __m256i hash =
        xxh3_of_four(xxh3_all(batch.numbers[i]), xxh3_all(batch.flip));
    _mm_storel_epi64((__m128i *)&batch.hashes[i], _mm256_castsi256_si128(hash));
}

/* ---- The loop ------------------------------------------------------------ */

typedef void process_8(const struct part_view *part, const uint64_t *hashes,
                       struct line_choice choice, struct prefetch_8 ahead,
                       uint8_t *hit_masks);

/* What is fixed when the loop is compiled. */
struct batch_variant {
    process_8 *process; /* has_8 or add_8                             */
    bool adds;          /* then it answers "was new", else "is there" */
    bool numbers;       /* the batch has numbers                      */
    bool near;          /* prefetch into L1, too                      */
};

/* Hash, if these are numbers, and prefetch some of a batch. */
TARGET ALWAYS_INLINE void prefetch_some(const struct part_view *part,
                                        struct batch batch, size_t from,
                                        size_t to, bool numbers) {
    const struct prefetch_8 into_l2 = {.far = batch.hashes, .into_l2 = true};
    if (numbers) {
        size_t i = from;
        for (; i + 8 <= to; i += 8) hash_8(batch, i);
        for (; i < to; i++) hash_1(batch, i);
    }
    for (size_t i = from; i < to; i++) prefetch_at(part, into_l2, i);
}

/* The 8 hashes to prefetch into L1 at hash i; near the end of all, those at
 * hand, which does no harm. */
ALWAYS_INLINE const uint64_t *near_hashes(struct batch batch, size_t i) {
    const size_t at = i + PREFETCH_DISTANCE_L1;
    return batch.hashes + (at + 8 <= batch.n + batch.more ? at : i);
}

/* Store the answers of n keys, at most 32, if wanted; returns the number of
 * trues. */
TARGET ALWAYS_INLINE size_t store_answers(__m256i hits, size_t n, bool fresh,
                                          bool *answers) {
    const __m256i ones = _mm256_set1_epi8(1);
    const __m256i yes =
        fresh ? _mm256_andnot_si256(hits, ones) : _mm256_and_si256(hits, ones);
    const uint32_t trues =
        (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(yes, ones));
    if (answers && n == 32) {
        _mm256_storeu_si256((__m256i *)answers, yes);
    } else if (answers) {
        bool all[32];
        _mm256_storeu_si256((__m256i *)all, yes);
        memcpy(answers, all, n);
    }
    return (size_t)__builtin_popcountll(trues & ((UINT64_C(1) << n) - 1));
}

TARGET ALWAYS_INLINE size_t process_variant(const uint8_t *body,
                                            const struct shape *shape,
                                            struct batch batch, bool *answers,
                                            struct line_choice choice,
                                            struct batch_variant variant) {
    const struct part_view part = {body, *shape};
    const size_t prologue = prologue_length(&batch);
    const size_t steady = steady_length(&batch);
    const size_t unrolled = steady & ~(size_t)7;
    uint8_t hit_masks[BATCH_MAX + 32];
    size_t i = 0;
    /* Start: prefetch the lines that the batch before has not prefetched. */
    prefetch_some(&part, batch, batch.prefetched, prologue, variant.numbers);
    /* Steady: set or test 8 keys, and prefetch the lines of the 8 keys that are
     * PREFETCH_DISTANCE ahead. */
    for (; i < unrolled; i += 8) {
        if (variant.numbers) hash_8(batch, i + PREFETCH_DISTANCE);
        const struct prefetch_8 ahead = {batch.hashes + i + PREFETCH_DISTANCE,
                                         near_hashes(batch, i), true,
                                         variant.near};
        variant.process(&part, batch.hashes + i, choice, ahead, hit_masks + i);
    }
    /* The end of what is to be prefetched: fewer than 8 keys. */
    prefetch_some(&part, batch, i + PREFETCH_DISTANCE,
                  steady + PREFETCH_DISTANCE, variant.numbers);
    /* The rest: all lines are on their way. */
    for (; i + 8 <= batch.n; i += 8) {
        const struct prefetch_8 ahead = {NULL, near_hashes(batch, i), false,
                                         variant.near};
        variant.process(&part, batch.hashes + i, choice, ahead, hit_masks + i);
    }
    /* Hit masks to answers, 32 keys at once; the padding is not counted. */
    memset(hit_masks + i, 0, 32);
    size_t total = 0;
    for (size_t j = 0; j < i; j += 32) {
        const __m256i hits =
            all_hit(_mm256_loadu_si256((const __m256i *)(hit_masks + j)));
        total += store_answers(hits, i - j < 32 ? i - j : 32, variant.adds,
                               answers ? answers + j : NULL);
    }
    /* Fewer than 8 keys at the end, one by one. */
    for (; i < batch.n; i++) {
        const uint64_t *const hash = &batch.hashes[i];
        uint8_t *const line = line_of(&part, *hash);
        const bool yes = variant.adds ? add_to_line(line, hash, choice)
                                      : in_line(line, hash, choice);
        if (answers) answers[i] = yes;
        total += yes;
    }
    return total;
}

/* Beyond a typical L3 it pays to prefetch into L1, too; within, that would cost
 * 10 %. */
enum { BEYOND_L3 = (32 << 20) / LINE_BYTES };

/* Only lookups take numbers. Assigning `twice` its known value lets the
 * compiler specialise the call below. */
TARGET ALWAYS_INLINE size_t process_batch(const uint8_t *body,
                                          const struct shape *shape,
                                          struct batch batch, bool *answers,
                                          bool adds) {
    process_8 *const process = adds ? add_8 : has_8;
    const struct batch_variant numbers = {process, adds, true, true};
    const struct batch_variant far = {process, adds, false, true};
    const struct batch_variant close = {process, adds, false, false};
    struct line_choice choice = line_choices[shape->probes];
    if (choice.twice) {
        choice.twice = true;
        if (!adds && batch.numbers)
            return process_variant(body, shape, batch, answers, choice,
                                   numbers);
        return process_variant(body, shape, batch, answers, choice, far);
    }
    choice.twice = false;
    if (!adds && batch.numbers)
        return process_variant(body, shape, batch, answers, choice, numbers);
    if (shape->blocks >= BEYOND_L3)
        return process_variant(body, shape, batch, answers, choice, far);
    return process_variant(body, shape, batch, answers, choice, close);
}

/* ---- The kernel ---------------------------------------------------------- */

TARGET static size_t line_has_batch(const uint8_t *body,
                                    const struct shape *shape,
                                    struct batch batch, bool *found) {
    return process_batch(body, shape, batch, found, false);
}

TARGET static size_t line_add_batch(uint8_t *body, const struct shape *shape,
                                    struct batch batch, bool *fresh) {
    return process_batch(body, shape, batch, fresh, true);
}
