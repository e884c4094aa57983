/*
 * The ribbon kind on x86 with AVX-512: as with AVX2, with eight queries
 * prepared out at once, and up to 32 words in one vector.
 */
#include "base/cpu.h"
#if ON_X86

#include <immintrin.h>

#include "ribbon/ribbon_batch.h"

#define AVX512                                                    \
    __attribute__((target("avx2,bmi2,avx512f,avx512vl,avx512bw"), \
                   no_sanitize("thread")))

/* ---- One lookup ---------------------------------------------------------- */

enum { A_XOR_B_AND_C = 0x78 }; /* truth table, for ternarylogic */

/* Bytes 2j and 2j + 1 of the coefficients, in each lane of 16 bits. */
#define CHOICE(j) ((short)((2 * (j) + 1) << 8 | 2 * (j)))

/* The parity of 4 bits, as a mask bit. */
AVX512 ALWAYS_INLINE __m128i odd_nibbles(void) {
    return _mm_setr_epi8(0, -1, -1, 0, -1, 0, 0, -1, -1, 0, 0, -1, 0, -1, -1,
                         0);
}

/* The sums of 8, 16 and 32 words, at the even places of a mask. */
AVX512 ALWAYS_INLINE uint32_t sums_8(const uint8_t *words, uint64_t stride,
                                     uint64_t coefficients) {
    const __m128i all = _mm_cvtsi64_si128((long long)coefficients);
    __m128i x = _mm_setzero_si128();
    for (int j = 0; j < SPAN_GROUPS; j++)
        x = _mm_ternarylogic_epi64(
            x, _mm_loadu_si128((const __m128i *)(words + (size_t)j * stride)),
            _mm_shuffle_epi8(all, _mm_set1_epi16(CHOICE(j))), A_XOR_B_AND_C);
    x = _mm_xor_si128(x, _mm_srli_epi16(x, 8));
    x = _mm_xor_si128(x, _mm_srli_epi16(x, 4));
    x = _mm_shuffle_epi8(odd_nibbles(), _mm_and_si128(x, _mm_set1_epi8(15)));
    return (uint32_t)_mm_movemask_epi8(x);
}

AVX512 ALWAYS_INLINE uint32_t sums_16(const uint8_t *words, uint64_t stride,
                                      uint64_t coefficients) {
    const __m256i all = _mm256_set1_epi64x((long long)coefficients);
    __m256i x = _mm256_setzero_si256();
    for (int j = 0; j < SPAN_GROUPS; j++)
        x = _mm256_ternarylogic_epi64(
            x,
            _mm256_loadu_si256((const __m256i *)(words + (size_t)j * stride)),
            _mm256_shuffle_epi8(all, _mm256_set1_epi16(CHOICE(j))),
            A_XOR_B_AND_C);
    x = _mm256_xor_si256(x, _mm256_srli_epi16(x, 8));
    x = _mm256_xor_si256(x, _mm256_srli_epi16(x, 4));
    x = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(odd_nibbles()),
                            _mm256_and_si256(x, _mm256_set1_epi8(15)));
    return (uint32_t)_mm256_movemask_epi8(x);
}

AVX512 ALWAYS_INLINE uint64_t sums_32(const uint8_t *words, uint64_t stride,
                                      uint64_t coefficients) {
    const __m512i all = _mm512_set1_epi64((long long)coefficients);
    __m512i x = _mm512_setzero_si512();
    for (int j = 0; j < SPAN_GROUPS; j++)
        x = _mm512_ternarylogic_epi64(
            x, _mm512_loadu_si512(words + (size_t)j * stride),
            _mm512_shuffle_epi8(all, _mm512_set1_epi16(CHOICE(j))),
            A_XOR_B_AND_C);
    x = _mm512_xor_si512(x, _mm512_srli_epi16(x, 8));
    x = _mm512_xor_si512(x, _mm512_srli_epi16(x, 4));
    x = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(odd_nibbles()),
                            _mm512_and_si512(x, _mm512_set1_epi8(15)));
    return _mm512_movepi8_mask(x);
}

AVX512 ALWAYS_INLINE bool sums_agree(const uint8_t *words, uint64_t stride,
                                     uint64_t coefficients, uint32_t result,
                                     uint32_t mask, enum reading reading) {
    if (reading == READ_8)
        return ((sums_8(words, stride, coefficients) ^ result) & mask) == 0;
    if (reading == READ_16)
        return ((sums_16(words, stride, coefficients) ^ result) & mask) == 0;
    const uint32_t even = even_places(16);
    const uint64_t sums = sums_32(words, stride, coefficients);
    const uint32_t both =
        ((uint32_t)sums & even) | ((uint32_t)(sums >> 32) & even) << 1;
    return ((both ^ result) & mask) == 0;
}

AVX512 static enum layer_answer ribbon_avx512_has_in_layer(
    const uint8_t *body, const struct shape *shape, uint64_t hash) {
    const uint64_t group = group_of(hash, shape), mixed = ribbon_mix(hash);
    const uint32_t words = words_of(group, shape);
    const uint8_t *const at = body + words_at(first_group(group, shape), shape);
    const bool bumped = is_bumped(body + flags_at(group, shape), group);
    const bool agree =
        sums_agree(at, 2 * words, ribbon_coefficients(mixed),
                   ribbon_result(mixed), result_mask(words), reading_of(shape));
    return layer_answer(bumped, agree);
}

static bool ribbon_avx512_has(const uint8_t *body, const struct shape *shape,
                              uint64_t hash) {
    return ribbon_avx512_has_in_layer(body, shape, hash) == LAYER_YES;
}

/* ---- Many lookups -------------------------------------------------------- */

AVX512 ALWAYS_INLINE __m512i eight(uint64_t x) {
    return _mm512_set1_epi64((long long)x);
}

AVX512 ALWAYS_INLINE void store_eight(uint64_t *to, __m512i x) {
    _mm512_store_si512(to, x);
}

/* As words_before in ribbon.h; numbers of groups have 32 bits here. */
AVX512 ALWAYS_INLINE __m512i eight_words_before(__m512i groups,
                                                const struct shape *shape) {
    return _mm512_slli_epi64(
        _mm512_add_epi64(_mm512_mul_epu32(groups, eight(shape->probes)),
                         _mm512_min_epu64(groups, eight(shape->wide))),
        1);
}

/* The functions of ribbon.h on eight hashes. */
AVX512 ALWAYS_INLINE void prepare_eight(const struct shape *shape,
                                        const uint64_t *hashes,
                                        struct query_ring *ring, size_t to) {
    const __m512i hash = _mm512_loadu_si512(hashes);
    const __m512i high = _mm512_srli_epi64(hash, 32);
    const __m512i blocks = eight(shape->blocks), wide = eight(shape->wide);
    const __m512i group = _mm512_srli_epi64(
        _mm512_add_epi64(_mm512_mul_epu32(high, blocks),
                         _mm512_srli_epi64(_mm512_mul_epu32(hash, blocks), 32)),
        32);
    const __mmask8 is_wide = _mm512_cmplt_epu64_mask(group, wide);
    const __m512i lot_end = _mm512_add_epi64(
        _mm512_or_si512(group, eight(LOT_GROUPS - 1)), eight(1));
    const __m512i span_end = _mm512_min_epu64(
        lot_end, _mm512_mask_blend_epi64(is_wide, blocks, wide));
    const __m512i first =
        _mm512_min_epu64(group, _mm512_sub_epi64(span_end, eight(SPAN_GROUPS)));
    const __m512i flags_before = _mm512_slli_epi64(
        _mm512_srli_epi64(group, 9), 6); /* LOT_GROUPS, FLAG_BYTES */
    const __m512i words_end =
        eight_words_before(_mm512_min_epu64(lot_end, blocks), shape);
    const __m512i flags = _mm512_andnot_si512(
        eight(63),
        _mm512_add_epi64(_mm512_add_epi64(flags_before, eight(63)), words_end));
    const __m512i low = _mm512_mul_epu32(hash, eight(LOW_FACTOR));
    const __m512i mixed = _mm512_xor_si512(
        _mm512_rol_epi64(low, 32),
        _mm512_mul_epu32(_mm512_srli_epi64(_mm512_xor_si512(hash, low), 32),
                         eight(HIGH_FACTOR)));
    const __m512i folded =
        _mm512_xor_si512(mixed, _mm512_srli_epi64(mixed, 32));
    const uint32_t words = shape->probes;
    store_eight(
        &ring->words_at[to],
        _mm512_add_epi64(flags_before, eight_words_before(first, shape)));
    store_eight(
        &ring->flag[to],
        _mm512_add_epi64(_mm512_slli_epi64(flags, 3),
                         _mm512_and_si512(group, eight(LOT_GROUPS - 1))));
    store_eight(&ring->coefficients[to], _mm512_srli_epi64(mixed, 16));
    store_eight(
        &ring->result[to],
        _mm512_srli_epi64(_mm512_mul_epu32(folded, eight(RESULT_FACTOR)), 24));
    store_eight(&ring->mask[to],
                _mm512_mask_blend_epi64(is_wide, eight(result_mask(words)),
                                        eight(result_mask(words + 1))));
    store_eight(&ring->stride[to],
                _mm512_mask_blend_epi64(is_wide, eight(2 * words),
                                        eight(2 * words + 2)));
}

AVX512 ALWAYS_INLINE bool answer_eight(const uint8_t *body,
                                       const struct query_ring *ring, size_t at,
                                       enum reading reading) {
    return sums_agree(body + ring->words_at[at], ring->stride[at],
                      ring->coefficients[at], (uint32_t)ring->result[at],
                      (uint32_t)ring->mask[at], reading);
}

AVX512 static size_t ribbon_avx512_has_batch_in_layer(const uint8_t *body,
                                                      const struct shape *shape,
                                                      struct batch batch,
                                                      bool *found,
                                                      uint16_t *bumped) {
    if (has_many_groups(shape))
        return ribbon_scalar.has_batch_in_layer(body, shape, batch, found,
                                                bumped);
    return ribbon_batch_generic(body, shape, batch, found, bumped, 8,
                                prepare_eight, answer_eight);
}

static size_t ribbon_avx512_has_batch(const uint8_t *body,
                                      const struct shape *shape,
                                      struct batch batch, bool *found) {
    return ribbon_has_batch(&ribbon_avx512, body, shape, batch, found);
}

const struct kernel ribbon_avx512 = {
    .level = CPU_AVX512,
    .has = ribbon_avx512_has,
    .has_batch = ribbon_avx512_has_batch,
    .has_in_layer = ribbon_avx512_has_in_layer,
    .has_batch_in_layer = ribbon_avx512_has_batch_in_layer,
};

#endif
