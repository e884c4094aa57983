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
        /* Bit 0 is a stop bit or behind one. With a 1 there a lane of 0
         * differs, as 0 is less than 1 by 0. */
        const __m512i one = _mm512_set1_epi16(1);
        const __m512i less = _mm512_subs_epu16(whole, one);
        const __m512i differ =
            begins(whole, less, _mm512_set1_epi16((short)(lane | 1)));
        masks.begun = in_register(_mm512_testn_epi16_mask(differ, differ));
    }
    return masks;
}

/* scale64 of eight hashes, given their high halves, too; n is below 2^32. */
TARGET ALWAYS_INLINE __m512i scale8(__m512i hash, __m512i high, uint64_t n) {
    const __m512i by = _mm512_set1_epi64((long long)n);
    const __m512i low = _mm512_srli_epi64(_mm512_mul_epu32(hash, by), 32);
    return _mm512_srli_epi64(_mm512_add_epi64(_mm512_mul_epu32(high, by), low),
                             32);
}

/* segment_place of eight, less 4 * MOST_ZEROS. */
TARGET ALWAYS_INLINE __m512i places8(__m512i unit) {
    const __m512i zeros =
        _mm512_lzcnt_epi64(_mm512_or_si512(unit, _mm512_set1_epi64(1)));
    return _mm512_sub_epi64(
        _mm512_srli_epi64(_mm512_sllv_epi64(unit, zeros), 61),
        _mm512_slli_epi64(zeros, 2));
}

TARGET ALWAYS_INLINE void find_lines(const struct bucket_table *t,
                                     const struct batch_form *form,
                                     const uint64_t *hashes, uint8_t **lines) {
    if (form->scale.buckets > UINT32_MAX) {
        find_lines_each(t, form, hashes, lines);
        return;
    }
    const __m512i hash = _mm512_loadu_si512(hashes);
    const __m512i high = _mm512_srli_epi64(hash, 32);
    const __m512i bucket = scale8(hash, high, form->scale.buckets);
    const __m512i place = _mm512_add_epi64(
        places8(scale8(hash, high, form->scale.units)),
        _mm512_set1_epi64(4 * MOST_ZEROS - (long long)form->newest.place));
    const uintptr_t *const newest = form->newest.start;
    const __m512i start = _mm512_mask_blend_epi64(
        _mm512_test_epi64_mask(place, _mm512_set1_epi64(16)),
        _mm512_permutex2var_epi64(_mm512_load_si512(newest), place,
                                  _mm512_load_si512(newest + 8)),
        _mm512_permutex2var_epi64(_mm512_load_si512(newest + 16), place,
                                  _mm512_load_si512(newest + 24)));
    _mm512_storeu_si512(lines,
                        _mm512_add_epi64(start, _mm512_slli_epi64(bucket, 6)));
    uint32_t older = _mm512_cmpge_epu64_mask(place, _mm512_set1_epi64(NEWEST));
    for (; __builtin_expect(older != 0, false); older &= older - 1) {
        const uint32_t j = (uint32_t)__builtin_ctz(older);
        lines[j] = line_of_hash(t, hashes[j], form->scale);
    }
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
    const struct plane_words planes =
        open_planes(line, width, (uint32_t)end, code & slot_mask(width));
    const __m512i old = _mm512_load_si512(line);
    __m512i now = _mm512_mask_mov_epi8(old, behind, next_bytes(old));
    now = _mm512_mask_set1_epi8(now, here, (char)lane_of(code, width));
    now = _mm512_mask_add_epi8(now, ends, now, _mm512_set1_epi8(1));
    _mm512_store_si512(line, now);
    put_planes(line, width, planes);
}

#define STEPS                                                \
    ((struct bucket_steps){                                  \
        .scans = {.equal8 = equal8, .compare16 = compare16}, \
        .find_lines = find_lines,                            \
        .find = find,                                        \
        .put_in_run = insert,                                \
    })
#include "bucket/bucket_kernel_template.h"

const struct kernel bucket_avx512 = BUCKET_KERNEL(CPU_AVX512);
#endif
