/*
 * The ribbon kind on x86 with AVX2.
 *
 * The words of 8 or 16 result bits are one vector: a lookup is three loads,
 * three ANDs, two XORs, and the parity of 16 bits in each lane. Words that a
 * group does not have belong to the next group: they are masked off at the end.
 */
#include "base/cpu.h"
#if ON_X86

#define TARGET AVX2

#include "ribbon/ribbon_batch.h"
#include "ribbon/ribbon_rows_template.h"

/* ---- One lookup ---------------------------------------------------------- */

/* The parity of each lane of 16 bits, in its lower byte's mask bit. XOR folds
 * 16 bits to 8, and to 4, and a table has the parity of these. */
TARGET ALWAYS_INLINE uint32_t parity_16(__m256i x) {
    const __m256i odd = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, -1, -1, 0, -1, 0, 0, -1, -1, 0, 0, -1, 0, -1, -1, 0));
    x = _mm256_xor_si256(x, _mm256_srli_epi16(x, 8));
    x = _mm256_xor_si256(x, _mm256_srli_epi16(x, 4));
    x = _mm256_shuffle_epi8(odd, _mm256_and_si256(x, _mm256_set1_epi8(15)));
    return (uint32_t)_mm256_movemask_epi8(x);
}

TARGET ALWAYS_INLINE uint32_t parity_8(__m128i x) {
    const __m128i odd =
        _mm_setr_epi8(0, -1, -1, 0, -1, 0, 0, -1, -1, 0, 0, -1, 0, -1, -1, 0);
    x = _mm_xor_si128(x, _mm_srli_epi16(x, 8));
    x = _mm_xor_si128(x, _mm_srli_epi16(x, 4));
    x = _mm_shuffle_epi8(odd, _mm_and_si128(x, _mm_set1_epi8(15)));
    return (uint32_t)_mm_movemask_epi8(x);
}

/* The sums of 16 words, and of 8. */
TARGET ALWAYS_INLINE uint32_t sums_16(const uint8_t *words, uint64_t stride,
                                      uint64_t coefficients) {
    return parity_16(chosen_rows_16(words, stride, coefficients));
}

TARGET ALWAYS_INLINE uint32_t sums_8(const uint8_t *words, uint64_t stride,
                                     uint64_t coefficients) {
    return parity_8(chosen_rows_8(words, stride, coefficients));
}

/* Do the sums agree with the result where the mask is set? Words from the 16th
 * on have the odd places. */
TARGET ALWAYS_INLINE bool sums_agree(const uint8_t *words, uint64_t stride,
                                     uint64_t coefficients, uint32_t result,
                                     uint32_t mask, enum read_width width) {
    if (width == READ_8)
        return ((sums_8(words, stride, coefficients) ^ result) & mask) == 0;
    const uint32_t even = UINT32_C(0x55555555);
    uint32_t sums = sums_16(words, stride, coefficients) & even;
    if (width == READ_32)
        sums |= (sums_16(words + 32, stride, coefficients) & even) << 1;
    return ((sums ^ result) & mask) == 0;
}

TARGET static enum layer_answer ribbon_avx2_has_in_layer(
    const uint8_t *body, const struct shape *shape, uint64_t hash) {
    const uint64_t group = group_of(hash, shape), mixed = ribbon_mix(hash);
    const uint32_t words = words_of(group, shape);
    const uint8_t *const at = body + words_at(first_group(group, shape), shape);
    const bool bumped = is_bumped(body + flags_at(group, shape), group);
    const bool agree = sums_agree(at, 2 * words, ribbon_coefficients(mixed),
                                  ribbon_result(mixed), result_mask(words),
                                  read_width_of(shape));
    return layer_answer(bumped, agree);
}

TARGET static bool ribbon_avx2_has(const uint8_t *body,
                                   const struct shape *shape, uint64_t hash) {
    return ribbon_avx2_has_in_layer(body, shape, hash) == LAYER_YES;
}

/* ---- Many lookups -------------------------------------------------------- */

TARGET ALWAYS_INLINE __m256i four(uint64_t x) {
    return _mm256_set1_epi64x((long long)x);
}

TARGET ALWAYS_INLINE void store_four(uint64_t *to, __m256i x) {
    _mm256_store_si256((__m256i *)to, x);
}

/* As words_before in ribbon.h; numbers of groups have 32 bits here, so that the
 * upper half of each lane is 0. */
TARGET ALWAYS_INLINE __m256i four_words_before(__m256i groups,
                                               const struct shape *shape) {
    return _mm256_slli_epi64(
        _mm256_add_epi64(_mm256_mul_epu32(groups, four(shape->probes)),
                         _mm256_min_epu32(groups, four(shape->wide))),
        1);
}

/* The functions of ribbon.h on four hashes. */
TARGET ALWAYS_INLINE void prepare_four(const uint8_t *body,
                                       const struct shape *shape,
                                       const uint64_t *hashes,
                                       struct query_ring *ring, size_t to) {
    /* group_of: scale64 with products of 32 bits */
    const __m256i hash = _mm256_loadu_si256((const __m256i *)hashes);
    const __m256i high = _mm256_srli_epi64(hash, 32);
    const __m256i blocks = four(shape->blocks), wide = four(shape->wide);
    const __m256i group = _mm256_srli_epi64(
        _mm256_add_epi64(_mm256_mul_epu32(high, blocks),
                         _mm256_srli_epi64(_mm256_mul_epu32(hash, blocks), 32)),
        32);
    /* span_end and first_group */
    const __m256i is_wide = _mm256_cmpgt_epi64(wide, group); /* -1: yes */
    const __m256i lot_end =
        _mm256_add_epi64(_mm256_or_si256(group, four(LOT_GROUPS - 1)), four(1));
    const __m256i span_end =
        _mm256_min_epu32(lot_end, _mm256_blendv_epi8(blocks, wide, is_wide));
    const __m256i first =
        _mm256_min_epu32(group, _mm256_sub_epi64(span_end, four(SPAN_GROUPS)));
    /* words_at and flags_at, from the address of the body on */
    const __m256i lot =
        _mm256_add_epi64(/* LOT_GROUPS, FLAG_BYTES */
                         _mm256_slli_epi64(_mm256_srli_epi64(group, 9), 6),
                         four((uint64_t)(uintptr_t)body));
    const __m256i flags = _mm256_andnot_si256(
        four(63),
        _mm256_add_epi64(
            _mm256_add_epi64(lot, four(63)),
            four_words_before(_mm256_min_epu32(lot_end, blocks), shape)));
    /* ribbon_mix, and what ribbon_result folds */
    const __m256i low = _mm256_mul_epu32(hash, four(LOW_FACTOR));
    const __m256i mixed = _mm256_xor_si256(
        _mm256_shuffle_epi32(low, 0xB1),
        _mm256_mul_epu32(_mm256_srli_epi64(_mm256_xor_si256(hash, low), 32),
                         four(HIGH_FACTOR)));
    const __m256i folded =
        _mm256_xor_si256(mixed, _mm256_srli_epi64(mixed, 32));
    const __m256i in_lot = _mm256_and_si256(group, four(LOT_GROUPS - 1));
    const uint32_t words = shape->probes;
    store_four(&ring->words[to],
               _mm256_add_epi64(lot, four_words_before(first, shape)));
    store_four(&ring->flags[to],
               _mm256_add_epi64(flags, _mm256_srli_epi64(in_lot, 3)));
    store_four(&ring->flag[to], _mm256_and_si256(in_lot, four(7)));
    store_four(&ring->coefficients[to], _mm256_srli_epi64(mixed, 16));
    store_four(
        &ring->result[to],
        _mm256_srli_epi64(_mm256_mul_epu32(folded, four(RESULT_FACTOR)), 24));
    store_four(&ring->mask[to],
               _mm256_blendv_epi8(four(result_mask(words)),
                                  four(result_mask(words + 1)), is_wide));
    store_four(&ring->stride[to],
               _mm256_slli_epi64(_mm256_sub_epi64(four(words), is_wide), 1));
}

TARGET ALWAYS_INLINE bool vector_holds(const struct query_ring *ring, size_t at,
                                       enum read_width width) {
    return sums_agree(words_in(ring, at), ring->stride[at],
                      ring->coefficients[at], (uint32_t)ring->result[at],
                      (uint32_t)ring->mask[at], width);
}

TARGET static size_t ribbon_avx2_has_batch_in_layer(const uint8_t *body,
                                                    const struct shape *shape,
                                                    struct batch batch,
                                                    bool *found,
                                                    uint16_t *bumped) {
    if (has_many_groups(shape))
        return ribbon_scalar.has_batch_in_layer(body, shape, batch, found,
                                                bumped);
    return ribbon_batch_generic(body, shape, batch, found, bumped, 4,
                                prepare_four, vector_holds);
}

static size_t ribbon_avx2_has_batch(const uint8_t *body,
                                    const struct shape *shape,
                                    struct batch batch, bool *found) {
    return ribbon_has_batch(&ribbon_avx2, body, shape, batch, found);
}

const struct kernel ribbon_avx2 = {
    .level = CPU_AVX2,
    .has = ribbon_avx2_has,
    .has_batch = ribbon_avx2_has_batch,
    .has_in_layer = ribbon_avx2_has_in_layer,
    .has_batch_in_layer = ribbon_avx2_has_batch_in_layer,
};

#endif
