/*
 * Template: batches of the line kind with vectors of x86, unrolled by 8.
 * Included once a level, after the level defined TARGET, the attribute that
 * enables its instructions. The level passes process_batch, below, its steps:
 *
 *     process_1     one key, for the last few of a batch
 *     process_8     8 keys; stores their hit masks, 8 bytes
 *     all_hit       hit masks of 32 keys to 0xFF (every bit was set) or 0
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
#include "kind/avx2.h"
#include "kind/line.h"

/* ---- Lines, and which of them to prefetch -------------------------------- */

ALWAYS_INLINE uint8_t *line_of(const struct part_view *part, uint64_t hash) {
    return (uint8_t *)part->body + line_offset(hash, &part->shape);
}

/* Eight hashes to prefetch into L2, and eight into L1, if wanted. */
struct prefetch_8 {
    bool into_l2, into_l1;
    const uint64_t *far, *near;
};

ALWAYS_INLINE void prefetch_at(const struct part_view *part,
                               struct prefetch_8 ahead, size_t i) {
    if (ahead.into_l2) prefetch_l2(line_of(part, ahead.far[i]));
    if (ahead.into_l1) prefetch_l1(line_of(part, ahead.near[i]));
}

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

/* Hash, if these are numbers, and prefetch some of a batch. */
TARGET ALWAYS_INLINE void prefetch_some(const struct part_view *part,
                                        struct batch batch, size_t from,
                                        size_t to, bool numbers) {
    if (numbers) {
        size_t i = from;
        for (; i + 8 <= to; i += 8) hash_8(batch, i);
        for (; i < to; i++) hash_1(batch, i);
    }
    for (size_t i = from; i < to; i++)
        prefetch_l2(line_of(part, batch.hashes[i]));
}

/* ---- The loop ------------------------------------------------------------ */

/* What is fixed when the loop is compiled. */
struct batch_variant {
    bool numbers; /* the batch has numbers                               */
    bool near;    /* prefetch into L1, too                               */
    bool fresh;   /* answer "was not there" instead of "was there"       */
};

struct batch_steps {
    bool (*process_1)(uint8_t *line, const uint64_t *hash,
                      struct line_choice choice); /* returns the answer */
    void (*process_8)(const struct part_view *part, const uint64_t *hashes,
                      struct line_choice choice, struct prefetch_8 ahead,
                      uint8_t *hit_masks);
    __m256i (*all_hit)(__m256i hit_masks);
};

/* The 8 hashes to prefetch into L1 at hash i; near the end of all, those at
 * hand, which does no harm. */
ALWAYS_INLINE const uint64_t *near_hashes(struct batch batch, size_t i) {
    const size_t at = i + PREFETCH_DISTANCE_L1;
    return batch.hashes + (at + 8 <= batch.n + batch.more ? at : i);
}

/* Convert the hit masks of n keys to answers, if wanted; returns the number of
 * trues. There are 32 bytes of padding behind the masks. */
TARGET ALWAYS_INLINE size_t convert_hits(const uint8_t *hit_masks, size_t n,
                                         bool *answers, bool fresh,
                                         __m256i (*all_hit_of)(__m256i)) {
    const __m256i ones = _mm256_set1_epi8(1);
    size_t total = 0;
    for (size_t i = 0; i < n; i += 32) {
        const size_t some = n - i < 32 ? n - i : 32;
        const __m256i hits =
            all_hit_of(_mm256_loadu_si256((const __m256i *)(hit_masks + i)));
        const __m256i yes = fresh ? _mm256_andnot_si256(hits, ones)
                                  : _mm256_and_si256(hits, ones);
        const uint32_t trues =
            (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(yes, ones));
        total +=
            (size_t)__builtin_popcountll(trues & ((UINT64_C(1) << some) - 1));
        if (answers && some == 32) {
            _mm256_storeu_si256((__m256i *)(answers + i), yes);
        } else if (answers) {
            bool all[32];
            _mm256_storeu_si256((__m256i *)all, yes);
            memcpy(answers + i, all, some);
        }
    }
    return total;
}

TARGET ALWAYS_INLINE size_t process_variant(const uint8_t *body,
                                            const struct shape *shape,
                                            struct batch batch, bool *answers,
                                            struct line_choice choice,
                                            struct batch_variant variant,
                                            struct batch_steps steps) {
    const struct part_view part = {body, *shape};
    const size_t prologue = prologue_length(&batch);
    const size_t steady = steady_length(&batch);
    const size_t unrolled = steady & ~(size_t)7;
    uint8_t hit_masks[BATCH_MAX + 32];
    size_t i = 0;
    prefetch_some(&part, batch, batch.prefetched, prologue, variant.numbers);
    for (; i < unrolled; i += 8) {
        if (variant.numbers) hash_8(batch, i + PREFETCH_DISTANCE);
        const struct prefetch_8 ahead = {true, variant.near,
                                         batch.hashes + i + PREFETCH_DISTANCE,
                                         near_hashes(batch, i)};
        steps.process_8(&part, batch.hashes + i, choice, ahead, hit_masks + i);
    }
    prefetch_some(&part, batch, i + PREFETCH_DISTANCE,
                  steady + PREFETCH_DISTANCE, variant.numbers);
    for (; i + 8 <= batch.n; i += 8) {
        const struct prefetch_8 ahead = {false, variant.near, NULL,
                                         near_hashes(batch, i)};
        steps.process_8(&part, batch.hashes + i, choice, ahead, hit_masks + i);
    }
    memset(hit_masks + i, 0, 32);
    size_t total =
        convert_hits(hit_masks, i, answers, variant.fresh, steps.all_hit);
    for (; i < batch.n; i++) {
        const uint64_t *const hash = &batch.hashes[i];
        const bool yes = steps.process_1(line_of(&part, *hash), hash, choice);
        if (answers) answers[i] = yes;
        total += yes;
    }
    return total;
}

/* Beyond a typical L3 it pays to prefetch into L1, too; within, that would cost
 * 10 %. */
enum { BEYOND_L3 = (32 << 20) / LINE_BYTES };

/* What line_has_batch and line_add_batch do. Assigning `twice` its known value
 * lets the compiler specialise the call below. */
TARGET ALWAYS_INLINE size_t process_batch(const uint8_t *body,
                                          const struct shape *shape,
                                          struct batch batch, bool *answers,
                                          bool takes_numbers, bool fresh,
                                          struct batch_steps steps) {
    const struct batch_variant numbers = {true, true, fresh};
    const struct batch_variant far = {false, true, fresh};
    const struct batch_variant close = {false, false, fresh};
    struct line_choice choice = line_choices[shape->probes];
    if (choice.twice) {
        choice.twice = true;
        if (takes_numbers && batch.numbers)
            return process_variant(body, shape, batch, answers, choice, numbers,
                                   steps);
        return process_variant(body, shape, batch, answers, choice, far, steps);
    }
    choice.twice = false;
    if (takes_numbers && batch.numbers)
        return process_variant(body, shape, batch, answers, choice, numbers,
                               steps);
    if (shape->blocks >= BEYOND_L3)
        return process_variant(body, shape, batch, answers, choice, far, steps);
    return process_variant(body, shape, batch, answers, choice, close, steps);
}
