/* The kinds of lines on x86 with AVX-512: a line is one register. */
#include "base/cpu.h"
#if ON_X86

#include "kind/counting.h"
#include "kind/line_runs.h"

#define AVX512 \
    __attribute__((target("avx512f,avx512vl,bmi2"), no_sanitize("thread")))

/* The low half of a hash in all 16 words: avx2.h tells why so. */
AVX512 MELT __m512i low_halves(const uint64_t *hash) {
    __m512i all;
    __asm__("vpbroadcastd %1, %0" : "=v"(all) : "m"(*hash));
    return all;
}

/* Eight words, in both halves of a register. */
AVX512 MELT __m512i both_halves(const void *words) {
    return _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)words));
}

/* One bit in each column of a row. A shift by 32 and more, or by less than
 * none, leaves nothing. */
AVX512 MELT __m512i spread(__m512i row, __m512i product) {
    const __m512i second_half = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 32,
                                                  32, 32, 32, 32, 32, 32, 32);
    const __m512i spot = _mm512_srli_epi32(product, FIRST_SPOT);
    return _mm512_srlv_epi32(row, _mm512_sub_epi32(spot, second_half));
}

AVX512 MELT __m512i mask_of(const uint64_t *hash, struct line_choice from) {
    const uint8_t *const rows = (const uint8_t *)line_rows;
    const __m512i row = both_halves(rows + line_chosen(*hash, from));
    const __m512i product =
        _mm512_mullo_epi32(low_halves(hash), both_halves(line_salt));
    if (!from.twice) return spread(row, product);
    const __m512i all = _mm512_set1_epi32((int)(UINT32_C(1) << 31));
    const __m512i second = _mm512_slli_epi32(product, FIRST_SPOT - SECOND_SPOT);
    return _mm512_or_si512(spread(all, product), spread(row, second));
}

/* Which words of 64 bits are not all zeros, one bit each. */
AVX512 MELT uint32_t words_in(__m512i line) {
    return _mm512_test_epi64_mask(line, line);
}

/* Which words miss bits of this key? */
AVX512 MELT uint32_t missing_to(const uint8_t *line, const uint64_t *hash,
                                struct line_choice from) {
    const __m512i mask = mask_of(hash, from), is = _mm512_load_si512(line);
    return words_in(_mm512_andnot_si512(is, mask));
}

/* Add it, and tell which did. */
AVX512 MELT uint32_t missed_by(uint8_t *line, const uint64_t *hash,
                               struct line_choice from) {
    const __m512i mask = mask_of(hash, from), old = _mm512_load_si512(line);
    _mm512_store_si512(line, _mm512_or_si512(old, mask));
    return words_in(_mm512_andnot_si512(old, mask));
}

TOUCH_EIGHT(has_eight_avx512, AVX512, missing_to)
TOUCH_EIGHT(add_eight_avx512, AVX512, missed_by)

AVX512 MELT bool in_line_avx512(const uint8_t *line, const uint64_t *hash,
                                struct line_choice from) {
    return missing_to(line, hash, from) == 0;
}

AVX512 MELT bool add_to_line_avx512(uint8_t *line, const uint64_t *hash,
                                    struct line_choice from) {
    return missed_by(line, hash, from) != 0;
}

AVX512 MELT uint32_t missing_avx512(const uint8_t *line, const uint64_t *hash,
                                    struct line_choice from,
                                    struct line_mask *to) {
    const __m512i missing =
        _mm512_andnot_si512(_mm512_load_si512(line), mask_of(hash, from));
    _mm512_store_si512(to, missing);
    return words_in(missing);
}

AVX512 MELT bool share_line_avx512(uint8_t *line, const uint64_t *hash,
                                   struct line_choice from) {
    return share_one(line, hash, from, missing_avx512) != 0;
}

LINE_SINGLES(avx512, AVX512, in_line_avx512, add_to_line_avx512,
             share_line_avx512)
LINE_RUN(avx512_has_run, AVX512, const, true, true, in_line_avx512,
         has_eight_avx512, are_zeros)
LINE_RUN(avx512_add_run, AVX512, , false, false, add_to_line_avx512,
         add_eight_avx512, are_zeros)
LINE_KERNELS_OF_RUNS(avx512, CPU_AVX512, AVX512, missing_avx512)
LINE2_KERNELS(avx512, CPU_AVX512, AVX512)

/* ---- Counting: line_avx2.c, step for step -------------------------------- */

AVX512 MELT bool any(__m512i line) {
    return words_in(line) != 0;
}

AVX512 MELT bool low_avx512(uint8_t *body, const struct shape *shape,
                            size_t line, const uint64_t *hash,
                            struct line_mask *carry, bool *carries) {
    uint8_t *const plane0 = body + plane_offset(shape, line, 0);
    const __m512i mask = mask_of(hash, line_choices[shape->probes]);
    const __m512i old = _mm512_load_si512(body + line);
    const __m512i p0 = _mm512_load_si512(plane0);
    const __m512i again = _mm512_and_si512(old, mask);
    const __m512i next = _mm512_and_si512(p0, again);
    _mm512_store_si512(body + line, _mm512_or_si512(old, mask));
    _mm512_store_si512(plane0, _mm512_xor_si512(p0, again));
    _mm512_store_si512(carry, next);
    *carries = any(next);
    return any(_mm512_andnot_si512(old, mask));
}

AVX512 MELT void high_avx512(uint8_t *body, const struct shape *shape,
                             size_t line, const struct line_mask *carry) {
    uint8_t *const plane1 = body + plane_offset(shape, line, 1);
    const __m512i p1 = _mm512_load_si512(plane1);
    const __m512i more = _mm512_load_si512(carry);
    const __m512i next = _mm512_and_si512(p1, more);
    _mm512_store_si512(plane1, _mm512_xor_si512(p1, more));
    if (__builtin_expect(any(next), false)) {
        struct line_mask rest;
        _mm512_store_si512(&rest, next);
        counting_carry(body, shape, line, &rest);
    }
}

AVX512 MELT enum removal remove_avx512(uint8_t *body, const struct shape *shape,
                                       const uint64_t *hash) {
    const size_t at = line_offset(*hash, shape);
    const uint32_t marks = marks_of(body, shape, at);
    uint8_t *const line = body + at;
    uint8_t *const plane0 = body + plane_offset(shape, at, 0);
    uint8_t *const plane1 = body + plane_offset(shape, at, 1);
    if (__builtin_expect(marks > 1, false))
        return counting_remove_scalar(body, shape, hash);

    const __m512i mask = mask_of(hash, line_choices[shape->probes]);
    const __m512i old = _mm512_load_si512(line);
    if (any(_mm512_andnot_si512(old, mask))) return KEY_ABSENT;
    const __m512i p0 = _mm512_load_si512(plane0);
    const __m512i p1 = _mm512_load_si512(plane1);
    const __m512i p2 = _mm512_maskz_loadu_epi64(
        (__mmask8)(0 - marks), body + plane_offset(shape, at, 2));
    const __m512i counted =
        _mm512_and_si512(mask, _mm512_or_si512(_mm512_or_si512(p0, p1), p2));
    const __m512i borrow1 = _mm512_andnot_si512(p0, counted);
    const __m512i borrow2 = _mm512_andnot_si512(p1, borrow1);
    const __m512i gone = _mm512_andnot_si512(counted, mask);
    _mm512_store_si512(line, _mm512_andnot_si512(gone, old));
    _mm512_store_si512(plane0, _mm512_xor_si512(p0, counted));
    _mm512_store_si512(plane1, _mm512_xor_si512(p1, borrow1));
    if (__builtin_expect(any(borrow2), false)) {
        struct line_mask borrow;
        _mm512_store_si512(&borrow, borrow2);
        counting_borrow(body, shape, at, &borrow);
    }
    return KEY_REMOVED;
}

COUNTING_KERNEL(counting_avx512, CPU_AVX512, AVX512, one_avx512_has,
                avx512_has_run, low_avx512, high_avx512, remove_avx512,
                line_has_in_any, true)

#endif
