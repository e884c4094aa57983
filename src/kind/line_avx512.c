/* The kinds of lines on x86 with AVX-512: a line is one register. */
#include "base/cpu.h"
#if ON_AVX512

#include <immintrin.h>

#include "kind/counting.h"

#define TARGET \
    __attribute__((target("avx512f,avx512vl,bmi2"), no_sanitize("thread")))
#define LINE_VECTOR_BATCHES 1

/* ---- The vocabulary (line_vector_template.h) ----------------------------- */

typedef __m512i vline;

TARGET ALWAYS_INLINE vline vload(const void *line) {
    return _mm512_loadu_si512(line);
}

TARGET ALWAYS_INLINE void vstore(void *line, vline a) {
    _mm512_store_si512(line, a);
}

TARGET ALWAYS_INLINE vline vor(vline a, vline b) {
    return _mm512_or_si512(a, b);
}

TARGET ALWAYS_INLINE vline vand(vline a, vline b) {
    return _mm512_and_si512(a, b);
}

TARGET ALWAYS_INLINE vline vxor(vline a, vline b) {
    return _mm512_xor_si512(a, b);
}

TARGET ALWAYS_INLINE vline vandnot(vline a, vline b) {
    return _mm512_andnot_si512(b, a);
}

TARGET ALWAYS_INLINE uint32_t vwords(vline a) {
    return _mm512_test_epi64_mask(a, a);
}

TARGET ALWAYS_INLINE bool vany(vline a) {
    return vwords(a) != 0;
}

/* The low half of a hash in all 16 words; line_avx2.c says why in assembly.
 */
TARGET ALWAYS_INLINE __m512i low_halves(const uint64_t *hash) {
    __m512i all;
    __asm__("vpbroadcastd %1, %0" : "=v"(all) : "m"(*hash));
    return all;
}

/* Eight words, in both halves of a register. */
TARGET ALWAYS_INLINE __m512i both_halves(const void *words) {
    return _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)words));
}

/* One bit in each column of a row. A shift by 32 and more, or by a negative
 * number, leaves nothing. */
TARGET ALWAYS_INLINE vline spread(__m512i row, __m512i products) {
    const __m512i second_half = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 32,
                                                  32, 32, 32, 32, 32, 32, 32);
    const __m512i spot = _mm512_srli_epi32(products, FIRST_SPOT);
    return _mm512_srlv_epi32(row, _mm512_sub_epi32(spot, second_half));
}

TARGET ALWAYS_INLINE vline vmask(const uint64_t *hash,
                                 struct line_choice choice) {
    const uint8_t *const rows = (const uint8_t *)line_rows;
    const __m512i row = both_halves(rows + line_chosen(*hash, choice));
    const __m512i products =
        _mm512_mullo_epi32(low_halves(hash), both_halves(line_salt));
    if (!choice.twice) return spread(row, products);
    const __m512i all = _mm512_set1_epi32((int)(UINT32_C(1) << 31));
    const __m512i second =
        _mm512_slli_epi32(products, FIRST_SPOT - SECOND_SPOT);
    return vor(spread(all, products), spread(row, second));
}

/* ---- One key ------------------------------------------------------------- */

enum { ALL_WORDS = 255 };

/* The words of 64 bits that have every bit of a mask, one bit each. */
TARGET ALWAYS_INLINE uint32_t hit_words(vline line, vline mask) {
    const __m512i missing = vandnot(mask, line);
    return _mm512_testn_epi64_mask(missing, missing);
}

TARGET ALWAYS_INLINE uint32_t hits_of(uint8_t *line, const uint64_t *hash,
                                      struct line_choice choice) {
    return hit_words(vload(line), vmask(hash, choice));
}

TARGET ALWAYS_INLINE uint32_t add_and_hits_of(uint8_t *line,
                                              const uint64_t *hash,
                                              struct line_choice choice) {
    const vline mask = vmask(hash, choice), old = vload(line);
    vstore(line, vor(old, mask));
    return hit_words(old, mask);
}

TARGET ALWAYS_INLINE bool in_line(const uint8_t *line, const uint64_t *hash,
                                  struct line_choice choice) {
    return hit_words(vload(line), vmask(hash, choice)) == ALL_WORDS;
}

TARGET ALWAYS_INLINE bool add_to_line(uint8_t *line, const uint64_t *hash,
                                      struct line_choice choice) {
    return add_and_hits_of(line, hash, choice) != ALL_WORDS;
}

#include "kind/line_vector_template.h"

#include "kind/line_template.h"

/* ---- Eight keys ---------------------------------------------------------- */

/* Hit masks of one byte a key. */
TARGET ALWAYS_INLINE void hits_of_8(
    const struct part_view *part, const uint64_t *hashes,
    struct line_choice choice, struct prefetch_8 ahead, uint8_t *hit_masks,
    uint32_t (*hits_of_1)(uint8_t *, const uint64_t *, struct line_choice)) {
    uint64_t all = 0;
#pragma GCC unroll 8
    for (size_t i = 0; i < 8; i++) {
        uint8_t *const line = line_of(part, hashes[i]);
        prefetch_at(part, ahead, i);
        all |= (uint64_t)hits_of_1(line, &hashes[i], choice) << 8 * i;
    }
    store64(hit_masks, all);
}

TARGET ALWAYS_INLINE void has_8(const struct part_view *part,
                                const uint64_t *hashes,
                                struct line_choice choice,
                                struct prefetch_8 ahead, uint8_t *hit_masks) {
    hits_of_8(part, hashes, choice, ahead, hit_masks, hits_of);
}

TARGET ALWAYS_INLINE void add_8(const struct part_view *part,
                                const uint64_t *hashes,
                                struct line_choice choice,
                                struct prefetch_8 ahead, uint8_t *hit_masks) {
    hits_of_8(part, hashes, choice, ahead, hit_masks, add_and_hits_of);
}

TARGET ALWAYS_INLINE __m256i all_hit(__m256i hit_masks) {
    return _mm256_cmpeq_epi8(hit_masks, _mm256_set1_epi8(-1));
}

#include "kind/line_batch_template.h"

#if !CALYX_NO_COUNTING
#include "kind/counting_template.h"
#endif

/* ---- The kernels --------------------------------------------------------- */

const struct kernel line_avx512 = {
    .level = CPU_AVX512,
    .has = line_has,
    .add = line_add,
    .has_batch = line_has_batch,
    .add_batch = line_add_batch,
    .has_in_any = line_has_in_any,
    .hashes_numbers = true,
};

#if !CALYX_NO_LINE2
const struct kernel line2_avx512 = {
    .level = CPU_AVX512,
    .has = line2_has,
    .add = line2_add,
    .has_batch = line2_has_batch,
    .add_batch = line2_add_batch,
};

const struct kernel line2_avx512_atomic = {
    .level = CPU_AVX512,
    .has = line2_has,
    .add = line2_add_atomic,
    .has_batch = line2_has_batch,
    .add_batch = line2_add_batch_atomic,
};
#endif

#if !CALYX_NO_COUNTING
const struct kernel counting_avx512 = {
    .level = CPU_AVX512,
    .has = line_has,
    .add = counting_add,
    .has_batch = line_has_batch,
    .add_batch = counting_add_batch,
    .remove = counting_remove,
    .remove_batch = counting_remove_batch,
    .has_in_any = line_has_in_any,
    .hashes_numbers = true,
};
#endif

#endif
