/*
 * The bucket kind with AVX-512: a bucket is one vector, and the addresses of
 * eight hashes are computed together.
 */
#include "bucket/bucket.h"

#if ON_AVX512
#include <immintrin.h>

#include "bucket/bucket_template.h"

#define TARGET                                                           \
    __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt,avx512f,avx512vl," \
                          "avx512bw,avx512cd,avx512dq"),                 \
                   no_sanitize("thread")))

/* ---- Scans --------------------------------------------------------------- */

/* Zero where a code agrees with what is wanted, as far as its stop bit: of a
 * code, the same less 1, and what is wanted, ~(a ^ b) & (a ^ c). */
TARGET ALWAYS_INLINE __m512i begins(__m512i code, __m512i less, __m512i want) {
    return _mm512_ternarylogic_epi32(code, less, want, 0x42);
}

TARGET ALWAYS_INLINE struct lane_masks scan_lanes8(__m512i line, uint32_t want,
                                                   uint32_t varies) {
    const __m512i wanted = _mm512_set1_epi8((char)want);
    struct lane_masks masks = {
        .equal = _mm512_cmpeq_epi8_mask(line, wanted),
        .zero = _mm512_testn_epi8_mask(line, line),
    };
    if (varies) {
        const __m512i less = _mm512_add_epi8(line, _mm512_set1_epi8(-1));
        const __m512i differ = begins(line, less, wanted);
        masks.begun = _mm512_testn_epi8_mask(differ, differ);
    }
    return masks;
}

TARGET ALWAYS_INLINE struct lane_masks scan_lanes16(__m512i line, uint32_t want,
                                                    uint32_t varies) {
    const __m512i wanted = _mm512_set1_epi16((short)want);
    struct lane_masks masks = {
        .equal = _mm512_cmpeq_epi16_mask(line, wanted),
        .zero = _mm512_testn_epi16_mask(line, line),
    };
    if (varies) {
        const __m512i less = _mm512_add_epi16(line, _mm512_set1_epi16(-1));
        const __m512i differ = begins(line, less, wanted);
        masks.begun = _mm512_testn_epi16_mask(differ, differ);
    }
    return masks;
}

TARGET ALWAYS_INLINE struct bucket_scan scan(const uint8_t *line,
                                             uint32_t width, uint32_t want,
                                             uint32_t varies) {
    const uint32_t lane = want >> planes_of(width);
    const __m512i whole = _mm512_load_si512(line);
    return scan_planes(line, width, want, varies,
                       lane_bits(width) == 8
                           ? scan_lanes8(whole, lane, varies)
                           : scan_lanes16(whole, lane, varies));
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

/* ---- Addresses ----------------------------------------------------------- */

TARGET ALWAYS_INLINE __m512i shift_right(__m512i words, uint32_t by) {
    return _mm512_srl_epi64(words, _mm_cvtsi32_si128((int)by));
}

TARGET ALWAYS_INLINE void put_words(void *to, __m512i words) {
    _mm256_storeu_si256((__m256i *)to, _mm512_cvtepi64_epi32(words));
}

/*
 * The starts of the segments at these places. All but 1 in 256 keys are in the
 * newest ones, 4 for the last level and 32 before: these are in five vectors.
 * A gather would take a third of a lookup.
 */
TARGET ALWAYS_INLINE __m512i find_starts(const struct bucket_table *t,
                                         uint32_t level, __m512i place,
                                         bool is_mixed_level) {
    enum { NEAR = 9 * POSITIONS };
    const uint32_t end = POSITIONS * (level + 2);
    if (end < NEAR || is_mixed_level)
        return _mm512_i64gather_epi64(place, t->start, 8);
    uint8_t *const *const from = t->start + end - NEAR;
    const __m512i at =
        _mm512_sub_epi64(place, _mm512_set1_epi64((int)(end - NEAR)));
    const __m512i a = _mm512_loadu_si512(from),
                  b = _mm512_loadu_si512(from + 8);
    const __m512i c = _mm512_loadu_si512(from + 16);
    const __m512i d = _mm512_loadu_si512(from + 24);
    const __m512i e = _mm512_loadu_si512(from + 32 - 4);
    const __m512i low = _mm512_permutex2var_epi64(a, at, b);
    const __m512i high = _mm512_permutex2var_epi64(c, at, d);
    const __m512i last =
        _mm512_permutexvar_epi64(_mm512_add_epi64(at, _mm512_set1_epi64(4)), e);
    const __mmask8 is_high = _mm512_test_epi64_mask(at, _mm512_set1_epi64(16));
    const __mmask8 is_last = _mm512_cmpge_epi64_mask(at, _mm512_set1_epi64(32));
    const __mmask8 is_far = _mm512_movepi64_mask(at);
    __m512i starts = _mm512_mask_mov_epi64(low, is_high, high);
    starts = _mm512_mask_mov_epi64(starts, is_last, last);
    if (__builtin_expect(is_far, 0))
        starts =
            _mm512_mask_i64gather_epi64(starts, is_far, place, t->start, 8);
    return starts;
}

/*
 * query_of for eight hashes. Group and fraction are the halves of a word here:
 * 32 bits of the fraction are enough, for codes have at most 24.
 */
TARGET ALWAYS_INLINE void prepare_vector(const struct bucket_table *t,
                                         const uint64_t *hashes,
                                         struct batch_form form,
                                         struct bucket_ring *ring, size_t i) {
    const uint32_t width = form.width;
    const uint32_t number = stage_number(t->stage);
    const uint32_t level = number / POSITIONS;
    const bool doubles = number % POSITIONS == POSITIONS - 1;
    const long long positions = POSITIONS + number % POSITIONS;
    const __m512i one = _mm512_set1_epi64(1), zero = _mm512_setzero_si512();
    const __m512i groups = _mm512_set1_epi64((long long)(t->groups << level));
    const __m512i hash = _mm512_loadu_si512(hashes);
    const __m512i low = _mm512_mul_epu32(hash, groups);
    const __m512i high = _mm512_mul_epu32(_mm512_srli_epi64(hash, 32), groups);
    __m512i at = _mm512_add_epi64(high, _mm512_srli_epi64(low, 32));
    __m512i y = _mm512_srli_epi64(at, 32);
    __m512i levels = _mm512_set1_epi64(level), p = _mm512_set1_epi64(positions);
    const __mmask8 moved = _mm512_cmplt_epu64_mask(
        y, _mm512_set1_epi64((long long)(t->stage & MOVED_MASK)));
    if (doubles) {
        at = _mm512_mask_add_epi64(at, moved, at, at);
        y = _mm512_mask_srli_epi64(y, moved, at, 32);
        levels = _mm512_mask_add_epi64(levels, moved, levels, one);
        p = _mm512_mask_mov_epi64(p, moved, _mm512_set1_epi64(POSITIONS));
    } else {
        p = _mm512_mask_add_epi64(p, moved, p, one);
    }
    const __m512i c = _mm512_srli_epi64(_mm512_mul_epu32(at, p), 32);
    if (form.adds) {
        const __m512i rest = _mm512_set1_epi64((1LL << (31 - width)) - 1);
        const __m512i first =
            _mm512_mul_epu32(_mm512_andnot_si512(rest, at), p);
        const __m512i last = _mm512_mul_epu32(_mm512_or_si512(rest, at), p);
        ring->borders[i / EIGHT] = _mm512_cmpneq_epi64_mask(
            _mm512_srli_epi64(first, 32), _mm512_srli_epi64(last, 32));
    }
    /* As find_line does. */
    const __m512i end = _mm512_or_si512(y, _mm512_sllv_epi64(one, levels));
    const __m512i lowest = _mm512_and_si512(end, _mm512_sub_epi64(zero, end));
    const __m512i even =
        _mm512_sub_epi64(_mm512_set1_epi64(63), _mm512_lzcnt_epi64(lowest));
    const __mmask8 old =
        _mm512_cmplt_epu64_mask(c, _mm512_set1_epi64(POSITIONS));
    const __mmask8 inner = _mm512_cmplt_epu64_mask(even, levels);
    __m512i shift = _mm512_maskz_mov_epi64(old, even);
    shift = _mm512_mask_add_epi64(shift, old & inner, shift, one);
    __m512i back = _mm512_add_epi64(levels, one);
    back = _mm512_mask_sub_epi64(back, old, levels, even);
    const __m512i place =
        _mm512_add_epi64(_mm512_slli_epi64(back, 2),
                         _mm512_and_si512(c, _mm512_set1_epi64(POSITIONS - 1)));
    const __m512i offset = _mm512_slli_epi64(_mm512_srlv_epi64(y, shift), 6);
    const __m512i starts = find_starts(t, level, place, moved && doubles);
    _mm512_storeu_si512(ring->line + i, _mm512_add_epi64(starts, offset));
    put_words(ring->place + i, place);
    /* As code_of does. */
    const __m512i left = shift_right(_mm512_slli_epi64(at, 34), 64 - width);
    __m512i code;
    if (form.varies) {
        code = _mm512_andnot_si512(one, left);
    } else {
        const __mmask8 none =
            _mm512_testn_epi64_mask(left, _mm512_set1_epi64(slot_mask(width)));
        code = _mm512_mask_or_epi64(left, none, left, one);
    }
    const __m512i classes = _mm512_and_si512(shift_right(code, width - 6),
                                             _mm512_set1_epi64(CLASSES - 1));
    put_words(ring->want + i, code);
    const __mmask8 is_high =
        _mm512_test_epi64_mask(code, _mm512_set1_epi64(1 << (width - 1)));
    _mm512_storeu_si512(
        ring->flip + i,
        _mm512_maskz_set1_epi64(is_high, (long long)all_slots(width)));
    put_words(
        ring->bit + i,
        _mm512_add_epi64(classes, _mm512_set1_epi64(class_bit(0, width))));
}

/* Groups have numbers of 31 bits, except in tables of 2^33 buckets and more. */
TARGET ALWAYS_INLINE void prepare(const struct bucket_table *t,
                                  const uint64_t *hashes,
                                  struct batch_form form,
                                  struct bucket_ring *ring, size_t i) {
    if (__builtin_expect(groups_now(t, t->stage) >> 31 == 0, true))
        prepare_vector(t, hashes, form, ring, i);
    else
        prepare_one_by_one(t, hashes, form, ring, i);
}

/* ---- The kernel ---------------------------------------------------------- */

TARGET static bool table_has(const struct bucket_table *t, uint64_t hash) {
    return has_in_table(t, hash, scan, find);
}

TARGET static size_t table_has_batch(const struct bucket_table *t,
                                     struct batch batch, bool *found) {
    return has_batch_in_table(t, batch, found, scan, find, prepare);
}

TARGET static enum insertion table_add(struct bucket_table *t, uint64_t hash,
                                       bool *fresh) {
    return add_to_table(t, hash, fresh, scan);
}

TARGET static size_t table_add_batch(struct bucket_table *t, struct batch batch,
                                     bool *fresh, size_t *added) {
    return add_batch_to_table(t, batch, fresh, added, scan, prepare);
}

TARGET static enum removal table_remove(struct bucket_table *t, uint64_t hash) {
    return remove_from_table(t, hash, scan);
}

TARGET static uint32_t table_count(const struct bucket_table *t,
                                   uint64_t hash) {
    return count_in_table(t, hash, scan, find);
}

static const struct table_kernel bucket_table_avx512 = {
    .has = table_has,
    .has_batch = table_has_batch,
    .add = table_add,
    .add_batch = table_add_batch,
    .remove = table_remove,
    .count = table_count,
};

TARGET static bool bucket_has(const uint8_t *body, const struct shape *shape,
                              uint64_t hash) {
    return has_in_body(body, shape, hash, scan, find);
}

TARGET static bool bucket_add(uint8_t *body, const struct shape *shape,
                              uint64_t hash) {
    return add_to_body(body, shape, hash, scan);
}

TARGET static size_t bucket_has_batch(const uint8_t *body,
                                      const struct shape *shape,
                                      struct batch batch, bool *found) {
    return has_batch_in_body(body, shape, batch, found, scan, find, prepare);
}

TARGET static size_t bucket_add_batch(uint8_t *body, const struct shape *shape,
                                      struct batch batch, bool *fresh) {
    return add_batch_to_body(body, shape, batch, fresh, scan, prepare);
}

TARGET static enum removal bucket_remove(uint8_t *body,
                                         const struct shape *shape,
                                         uint64_t hash) {
    return remove_from_body(body, shape, hash, scan);
}

TARGET static size_t bucket_remove_batch(uint8_t *body,
                                         const struct shape *shape,
                                         struct batch batch, bool *found) {
    return remove_batch_from_body(body, shape, batch, found, scan);
}

const struct kernel bucket_avx512 = {
    .level = CPU_AVX512,
    .has = bucket_has,
    .add = bucket_add,
    .has_batch = bucket_has_batch,
    .add_batch = bucket_add_batch,
    .remove = bucket_remove,
    .remove_batch = bucket_remove_batch,
    .table = &bucket_table_avx512,
};
#endif
