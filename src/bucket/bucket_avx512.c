/*
 * The bucket kind with AVX-512: a bucket is one vector.
 */
#include "bucket/bucket.h"

#if ON_AVX512
#include <immintrin.h>

#include "bucket/bucket_has_batch.h"
#include "bucket/bucket_remove.h"

#define TARGET                                                           \
    __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt,avx512f,avx512vl," \
                          "avx512bw,avx512cd,avx512dq"),                 \
                   no_sanitize("thread")))

/* Zero where a code agrees with what is wanted, as far as its stop bit: of what
 * is wanted, the code less 1, and the code, ~(c ^ b) & (c ^ a). */
TARGET ALWAYS_INLINE __m512i begins(__m512i code, __m512i less, __m512i want) {
    return _mm512_ternarylogic_epi32(want, less, code, 0x18);
}

/* A mask in a general register. Else the compiler takes others, that are there,
 * to a mask register, and that is slow. */
TARGET ALWAYS_INLINE uint64_t in_register(uint64_t mask) {
    __asm__("" : "+r"(mask));
    return mask;
}

TARGET ALWAYS_INLINE struct lane_masks compare16(const uint8_t *line,
                                                 uint32_t lane,
                                                 uint32_t varies) {
    const __m512i whole = _mm512_load_si512(line);
    const __m512i wanted = _mm512_set1_epi16((short)lane);
    struct lane_masks masks = {
        .equal = in_register(_mm512_cmpeq_epi16_mask(whole, wanted)),
        .zero = in_register(_mm512_testn_epi16_mask(whole, whole)),
    };
    if (varies) {
        /* Bit 0 is a stop bit or after one. With a 1 there a lane of 0
         * differs, as 0 is less than 1 by 0. */
        const __m512i one = _mm512_set1_epi16(1);
        const __m512i less = _mm512_subs_epu16(whole, one);
        const __m512i differ =
            begins(whole, less, _mm512_set1_epi16((short)(lane | 1)));
        masks.begun = in_register(_mm512_testn_epi16_mask(differ, differ));
    }
    return masks;
}

/* Of a lane of 0 nothing is left but the 1 of what is wanted. */
TARGET ALWAYS_INLINE struct lane_match match16(const uint8_t *line,
                                               uint32_t code, uint32_t varies) {
    const __m512i whole = _mm512_load_si512(line);
    const __m512i wanted = _mm512_set1_epi16((short)code);
    const __m512i less = _mm512_subs_epu16(whole, _mm512_set1_epi16(1));
    const __m512i differ = begins(whole, less, wanted);
    const __m128i end = _mm512_extracti32x4_epi32(whole, 3);
    return (struct lane_match){
        .lanes = varies ? _mm512_testn_epi16_mask(differ, differ)
                        : _mm512_cmpeq_epi16_mask(whole, wanted),
        .last = (uint32_t)_mm_extract_epi32(end, 3),
    };
}

/* lanes_answer of sixteen. Shifts by 32 and more leave 0. */
TARGET ALWAYS_INLINE size_t resolve(const struct lane_hits *hits, size_t i,
                                    bool *found, struct spill_list *spills) {
    const __m512i lanes = _mm512_load_si512(hits->lanes + i);
    const __m512i code = _mm512_load_si512(hits->code + i);
    const __m512i last = _mm512_load_si512(hits->last + i);
    const __m512i one = _mm512_set1_epi32(1);
    const __m512i low = _mm512_and_si512(_mm512_srli_epi32(last, 16),
                                         _mm512_set1_epi32(LOW_MASK));
    const __m512i below = _mm512_sub_epi32(_mm512_sllv_epi32(one, low), one);
    const __m512i flip =
        _mm512_srai_epi32(_mm512_slli_epi32(code, 32 - WIDTH_GROWING), 31);
    /* lanes & (below ^ flip) */
    const __m512i like = _mm512_ternarylogic_epi32(lanes, below, flip, 0x60);
    const __mmask16 has = _mm512_test_epi32_mask(
        like, _mm512_set1_epi32((int)(uint32_t)all_slots(WIDTH_GROWING)));
    _mm_storeu_si128((__m128i *)found,
                     _mm_maskz_mov_epi8(has, _mm_set1_epi8(1)));

    const __m512i number =
        _mm512_and_si512(_mm512_srli_epi32(code, WIDTH_GROWING - 6),
                         _mm512_set1_epi32(CLASSES - 1));
    const __mmask16 spilled =
        _mm512_movepi32_mask(_mm512_sllv_epi32(last, number));
    const uint32_t maybe = spilled & ~(uint32_t)has;
    const __m512i places = _mm512_add_epi32(
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
        _mm512_set1_epi32((int)i));
    _mm512_storeu_si512(spills->at + spills->n,
                        _mm512_maskz_compress_epi32((__mmask16)maybe, places));
    spills->n += (size_t)__builtin_popcount(maybe);
    return (size_t)__builtin_popcount(has);
}

/* The last word is no entry. */
TARGET ALWAYS_INLINE bool find(const uint8_t *line, uint32_t want,
                               uint32_t varies) {
    const __m512i entries = _mm512_load_si512(line);
    const __m512i less = _mm512_add_epi32(entries, _mm512_set1_epi32(-1));
    const __m512i wanted = _mm512_set1_epi32((int)want);
    const __m512i differ = varies ? begins(entries, less, wanted)
                                  : _mm512_xor_si512(entries, wanted);
    const __mmask16 used = _mm512_test_epi32_mask(entries, entries);
    return (_mm512_mask_testn_epi32_mask(used, differ, differ) & 0x7FFF) != 0;
}

#define STEPS                                                  \
    ((struct bucket_steps){                                    \
        .scans = {.compare16 = compare16, .match16 = match16}, \
        .scale = scale64_mulx,                                 \
        .resolve = resolve,                                    \
        .find = find,                                          \
    })
#include "bucket/bucket_kernel_template.h"

const struct kernel bucket_avx512 = BUCKET_KERNEL(CPU_AVX512);
#endif
