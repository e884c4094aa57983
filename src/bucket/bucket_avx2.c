/*
 * The bucket kind with AVX2: all lanes of a bucket are two vectors.
 */
#include "bucket/bucket.h"

#if ON_X86
#include <immintrin.h>

#include "bucket/bucket_has_batch.h"
#include "bucket/bucket_remove.h"

/* Every processor with AVX2 has these. */
#define TARGET                                                               \
    __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt"), no_sanitize("threa" \
                                                                     "d")))

TARGET ALWAYS_INLINE __m256i load_half(const void *from) {
    return _mm256_load_si256((const __m256i *)from);
}

TARGET ALWAYS_INLINE uint32_t signs8(__m256i lanes) {
    return (uint32_t)_mm256_movemask_epi8(lanes);
}

/* Packing works on each half of its operands by itself: 0, 2, 1, 3. */
TARGET ALWAYS_INLINE uint32_t signs16(__m256i low, __m256i high) {
    return signs8(_mm256_permute4x64_epi64(_mm256_packs_epi16(low, high),
                                           _MM_SHUFFLE(3, 1, 2, 0)));
}

/* Zero where a code agrees with what is wanted, as far as its stop bit. Bit 0
 * of what is wanted is 1: a stop bit, or after one. An empty lane less 1 stays
 * 0 here, so all its bits count, and bit 0 differs. */
TARGET ALWAYS_INLINE __m256i begins16(__m256i code, __m256i want) {
    const __m256i less = _mm256_subs_epu16(code, _mm256_set1_epi16(1));
    return _mm256_andnot_si256(_mm256_xor_si256(code, less),
                               _mm256_xor_si256(code, want));
}

TARGET ALWAYS_INLINE __m256i begins32(__m256i code, __m256i want,
                                      __m256i vary) {
    const __m256i less = _mm256_add_epi32(code, _mm256_set1_epi32(-1));
    return _mm256_andnot_si256(
        _mm256_and_si256(_mm256_xor_si256(code, less), vary),
        _mm256_xor_si256(code, want));
}

/* The last word is no entry. */
TARGET ALWAYS_INLINE bool find(const uint8_t *line, uint32_t want,
                               uint32_t varies) {
    const __m256i zero = _mm256_setzero_si256();
    const __m256i wanted = _mm256_set1_epi32((int)want);
    const __m256i vary = _mm256_set1_epi32((int)varies);
    const __m256i a = load_half(line), b = load_half(line + 32);
    const __m256i hit =
        _mm256_packs_epi32(_mm256_cmpeq_epi32(begins32(a, wanted, vary), zero),
                           _mm256_cmpeq_epi32(begins32(b, wanted, vary), zero));
    const __m256i empty = _mm256_packs_epi32(_mm256_cmpeq_epi32(a, zero),
                                             _mm256_cmpeq_epi32(b, zero));
    const __m256i last = _mm256_set_epi32(INT32_MIN >> 15, 0, 0, 0, 0, 0, 0, 0);
    return signs8(_mm256_andnot_si256(last, _mm256_andnot_si256(empty, hit))) !=
           0;
}

TARGET ALWAYS_INLINE uint64_t equal16(__m256i a, __m256i b, __m256i to) {
    return signs16(_mm256_cmpeq_epi16(a, to), _mm256_cmpeq_epi16(b, to));
}

TARGET ALWAYS_INLINE struct lane_masks compare16(const uint8_t *line,
                                                 uint32_t lane,
                                                 uint32_t varies) {
    const __m256i a = load_half(line), b = load_half(line + 32);
    const __m256i wanted = _mm256_set1_epi16((short)lane);
    const __m256i zero = _mm256_setzero_si256();
    const __m256i odd = _mm256_or_si256(wanted, _mm256_set1_epi16(1));
    struct lane_masks masks = {.equal = equal16(a, b, wanted),
                               .zero = equal16(a, b, zero)};
    if (varies) masks.begun = equal16(begins16(a, odd), begins16(b, odd), zero);
    return masks;
}

TARGET ALWAYS_INLINE struct lane_match match16(const uint8_t *line,
                                               uint32_t code, uint32_t varies) {
    const struct lane_masks masks = compare16(line, code, varies);
    return (struct lane_match){
        .lanes = (uint32_t)(varies ? masks.begun : masks.equal),
        .last = (uint32_t)_mm256_extract_epi32(load_half(line + 32), 7),
    };
}

/* Eight bits as eight bytes of 0 or 1. Not by pdep, which is slow before Zen 3.
 */
ALWAYS_INLINE uint64_t bits_to_bytes(uint64_t bits) {
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t apart = bits * ones & UINT64_C(0x8040201008040201);
    return (apart + 0x7F * ones) >> 7 & ones;
}

/* A bit for each of eight words: its sign. */
TARGET ALWAYS_INLINE uint32_t signs32(__m256i words) {
    return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(words));
}

/* lanes_answer of eight, a bit for each. Shifts by 32 and more leave 0. */
struct eight_answers {
    uint32_t has, spilled;
};

TARGET ALWAYS_INLINE struct eight_answers answer_8(const struct lane_hits *hits,
                                                   size_t i) {
    const __m256i lanes = load_half(hits->lanes + i);
    const __m256i code = load_half(hits->code + i);
    const __m256i last = load_half(hits->last + i);
    const __m256i one = _mm256_set1_epi32(1);
    const __m256i low = _mm256_and_si256(_mm256_srli_epi32(last, 16),
                                         _mm256_set1_epi32(LOW_MASK));
    const __m256i below = _mm256_sub_epi32(_mm256_sllv_epi32(one, low), one);
    const __m256i flip =
        _mm256_srai_epi32(_mm256_slli_epi32(code, 32 - WIDTH_GROWING), 31);
    const __m256i all =
        _mm256_set1_epi32((int)(uint32_t)all_slots(WIDTH_GROWING));
    const __m256i like = _mm256_and_si256(_mm256_and_si256(lanes, all),
                                          _mm256_xor_si256(below, flip));
    const __m256i number =
        _mm256_and_si256(_mm256_srli_epi32(code, WIDTH_GROWING - 6),
                         _mm256_set1_epi32(CLASSES - 1));
    return (struct eight_answers){
        .has =
            ~signs32(_mm256_cmpeq_epi32(like, _mm256_setzero_si256())) & 0xFF,
        .spilled = signs32(_mm256_sllv_epi32(last, number)),
    };
}

TARGET ALWAYS_INLINE size_t resolve(const struct lane_hits *hits, size_t i,
                                    bool *found, struct spill_list *spills) {
    const struct eight_answers a = answer_8(hits, i);
    const struct eight_answers b = answer_8(hits, i + EIGHT);
    const uint32_t has = a.has | b.has << EIGHT;
    store64(found, bits_to_bytes(a.has));
    store64(found + EIGHT, bits_to_bytes(b.has));
    append_spills(spills, i, (a.spilled | b.spilled << EIGHT) & ~has, 1);
    return (size_t)__builtin_popcount(has);
}

#define STEPS                                                  \
    ((struct bucket_steps){                                    \
        .scans = {.compare16 = compare16, .match16 = match16}, \
        .scale = scale64_mulx,                                 \
        .resolve = resolve,                                    \
        .find = find,                                          \
    })
#include "bucket/bucket_kernel_template.h"

const struct kernel bucket_avx2 = BUCKET_KERNEL(CPU_AVX2);
#endif
