/*
 * The bucket kind with AVX-512: a bucket is one vector.
 */
#include "bucket/bucket.h"

#if ON_AVX512
#include <immintrin.h>

#include "bucket/bucket_template.h"

#define TARGET                                                           \
    __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt,avx512f,avx512vl," \
                          "avx512bw,avx512cd,avx512dq"),                 \
                   no_sanitize("thread")))

/* Zero where a code agrees with what is wanted, as far as its stop bit: of a
 * code, the same less 1, and what is wanted, ~(a ^ b) & (a ^ c). */
TARGET ALWAYS_INLINE __m512i begins(__m512i code, __m512i less, __m512i want) {
    return _mm512_ternarylogic_epi32(code, less, want, 0x42);
}

/* A mask in a general register. Else the compiler takes others, that are there,
 * to a mask register, and that is slow. */
TARGET ALWAYS_INLINE uint64_t in_register(uint64_t mask) {
    __asm__("" : "+r"(mask));
    return mask;
}

TARGET ALWAYS_INLINE uint64_t equal8(const uint8_t *line, uint32_t lane) {
    return in_register(_mm512_cmpeq_epi8_mask(_mm512_load_si512(line),
                                              _mm512_set1_epi8((char)lane)));
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
        const __m512i less = _mm512_add_epi16(whole, _mm512_set1_epi16(-1));
        const __m512i differ = begins(whole, less, wanted);
        masks.begun = in_register(_mm512_mask_testn_epi16_mask(
            _mm512_test_epi16_mask(whole, whole), differ, differ));
    }
    return masks;
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

/* All bytes one further on. */
TARGET ALWAYS_INLINE __m512i next_bytes(__m512i line) {
    const __m512i quarters =
        _mm512_alignr_epi32(line, _mm512_setzero_si512(), 12);
    return _mm512_alignr_epi8(line, quarters, 15);
}

/* put_in_run, in one register. */
TARGET ALWAYS_INLINE void insert(uint8_t *line, uint32_t width, uint32_t code,
                                 uint64_t end, uint64_t used) {
    const uint64_t here = UINT64_C(1) << end;
    const uint64_t behind = (UINT64_C(2) << used) - 2 * here;
    const uint64_t ends = UINT64_MAX
                          << (ends_at(width) + 1 + run_of(code, width));
    const __m512i old = _mm512_load_si512(line);
    __m512i now = _mm512_mask_mov_epi8(old, behind, next_bytes(old));
    now = _mm512_mask_set1_epi8(now, here, (char)lane_of(code, width));
    now = _mm512_mask_add_epi8(now, ends, now, _mm512_set1_epi8(1));
    _mm512_store_si512(line, now);
    open_planes(line, width, (uint32_t)end, code & slot_mask(width));
}

#define STEPS                                                \
    ((struct bucket_steps){                                  \
        .scans = {.equal8 = equal8, .compare16 = compare16}, \
        .find = find,                                        \
        .put_in_run = insert,                                \
    })
#include "bucket/bucket_kernel_template.h"

const struct kernel bucket_avx512 = BUCKET_KERNEL(CPU_AVX512);
#endif
