/*
 * The bucket kind with AVX2: all lanes of a bucket are two vectors.
 */
#include "bucket/bucket.h"

#if ON_X86
#include "bucket/bucket_template.h"
#include "kind/avx2.h"

/* Every processor with AVX2 has these. */
#undef AVX2
#define AVX2 \
    __attribute__((target("avx2,bmi,bmi2,popcnt"), no_sanitize("thread")))

AVX2 ALWAYS_INLINE __m256i load_half(const uint8_t *from) {
    return _mm256_load_si256((const __m256i *)from);
}

AVX2 ALWAYS_INLINE uint32_t signs8(__m256i lanes) {
    return (uint32_t)_mm256_movemask_epi8(lanes);
}

/* Packing works on each half of its operands by itself: 0, 2, 1, 3. */
AVX2 ALWAYS_INLINE uint32_t signs16(__m256i low, __m256i high) {
    return signs8(_mm256_permute4x64_epi64(_mm256_packs_epi16(low, high),
                                           _MM_SHUFFLE(3, 1, 2, 0)));
}

/* Zero where a code agrees with what is wanted, as far as its stop bit. */
AVX2 ALWAYS_INLINE __m256i begins8(__m256i code, __m256i want) {
    const __m256i less = _mm256_add_epi8(code, _mm256_set1_epi8(-1));
    return _mm256_andnot_si256(_mm256_xor_si256(code, less),
                               _mm256_xor_si256(code, want));
}

AVX2 ALWAYS_INLINE __m256i begins16(__m256i code, __m256i want) {
    const __m256i less = _mm256_add_epi16(code, _mm256_set1_epi16(-1));
    return _mm256_andnot_si256(_mm256_xor_si256(code, less),
                               _mm256_xor_si256(code, want));
}

AVX2 ALWAYS_INLINE __m256i begins32(__m256i code, __m256i want, __m256i vary) {
    const __m256i less = _mm256_add_epi32(code, _mm256_set1_epi32(-1));
    return _mm256_andnot_si256(
        _mm256_and_si256(_mm256_xor_si256(code, less), vary),
        _mm256_xor_si256(code, want));
}

/* The last word is no entry. */
AVX2 ALWAYS_INLINE bool find(const uint8_t *line, uint32_t want,
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

AVX2 ALWAYS_INLINE uint64_t equal8(__m256i a, __m256i b, __m256i to) {
    return signs8(_mm256_cmpeq_epi8(a, to)) |
           (uint64_t)signs8(_mm256_cmpeq_epi8(b, to)) << 32;
}

AVX2 ALWAYS_INLINE uint64_t equal16(__m256i a, __m256i b, __m256i to) {
    return signs16(_mm256_cmpeq_epi16(a, to), _mm256_cmpeq_epi16(b, to));
}

AVX2 ALWAYS_INLINE struct lane_masks scan_lanes8(const uint8_t *line,
                                                 uint32_t want,
                                                 uint32_t varies) {
    const __m256i a = load_half(line), b = load_half(line + 32);
    const __m256i wanted = _mm256_set1_epi8((char)want);
    const __m256i zero = _mm256_setzero_si256();
    struct lane_masks masks = {.equal = equal8(a, b, wanted),
                               .zero = equal8(a, b, zero)};
    if (varies)
        masks.begun = equal8(begins8(a, wanted), begins8(b, wanted), zero);
    return masks;
}

AVX2 ALWAYS_INLINE struct lane_masks scan_lanes16(const uint8_t *line,
                                                  uint32_t want,
                                                  uint32_t varies) {
    const __m256i a = load_half(line), b = load_half(line + 32);
    const __m256i wanted = _mm256_set1_epi16((short)want);
    const __m256i zero = _mm256_setzero_si256();
    struct lane_masks masks = {.equal = equal16(a, b, wanted),
                               .zero = equal16(a, b, zero)};
    if (varies)
        masks.begun = equal16(begins16(a, wanted), begins16(b, wanted), zero);
    return masks;
}

AVX2 ALWAYS_INLINE struct bucket_scan scan(const uint8_t *line, uint32_t width,
                                           uint32_t want, uint32_t varies) {
    const uint32_t lane = want >> planes_of(width);
    return scan_planes(line, width, want, varies,
                       lane_bits(width) == 8
                           ? scan_lanes8(line, lane, varies)
                           : scan_lanes16(line, lane, varies));
}

AVX2 static bool table_has(const struct bucket_table *t, uint64_t hash) {
    return has_in_table(t, hash, scan, find);
}

AVX2 static size_t table_has_batch(const struct bucket_table *t,
                                   struct batch batch, bool *found) {
    return has_batch_in_table(t, batch, found, scan, find, prepare_one_by_one);
}

AVX2 static enum insertion table_add(struct bucket_table *t, uint64_t hash,
                                     bool *fresh) {
    return add_to_table(t, hash, fresh, scan);
}

AVX2 static size_t table_add_batch(struct bucket_table *t, struct batch batch,
                                   bool *fresh, size_t *added) {
    return add_batch_to_table(t, batch, fresh, added, scan, prepare_one_by_one);
}

AVX2 static enum removal table_remove(struct bucket_table *t, uint64_t hash) {
    return remove_from_table(t, hash, scan);
}

AVX2 static uint32_t table_count(const struct bucket_table *t, uint64_t hash) {
    return count_in_table(t, hash, scan, find);
}

static const struct table_kernel bucket_table_avx2 = {
    .has = table_has,
    .has_batch = table_has_batch,
    .add = table_add,
    .add_batch = table_add_batch,
    .remove = table_remove,
    .count = table_count,
};

AVX2 static bool bucket_has(const uint8_t *body, const struct shape *shape,
                            uint64_t hash) {
    return has_in_body(body, shape, hash, scan, find);
}

AVX2 static bool bucket_add(uint8_t *body, const struct shape *shape,
                            uint64_t hash) {
    return add_to_body(body, shape, hash, scan);
}

AVX2 static size_t bucket_has_batch(const uint8_t *body,
                                    const struct shape *shape,
                                    struct batch batch, bool *found) {
    return has_batch_in_body(body, shape, batch, found, scan, find,
                             prepare_one_by_one);
}

AVX2 static size_t bucket_add_batch(uint8_t *body, const struct shape *shape,
                                    struct batch batch, bool *fresh) {
    return add_batch_to_body(body, shape, batch, fresh, scan,
                             prepare_one_by_one);
}

AVX2 static enum removal bucket_remove(uint8_t *body, const struct shape *shape,
                                       uint64_t hash) {
    return remove_from_body(body, shape, hash, scan);
}

AVX2 static size_t bucket_remove_batch(uint8_t *body, const struct shape *shape,
                                       struct batch batch, bool *found) {
    return remove_batch_from_body(body, shape, batch, found, scan);
}

const struct kernel bucket_avx2 = {
    .level = CPU_AVX2,
    .has = bucket_has,
    .add = bucket_add,
    .has_batch = bucket_has_batch,
    .add_batch = bucket_add_batch,
    .remove = bucket_remove,
    .remove_batch = bucket_remove_batch,
    .table = &bucket_table_avx2,
};
#endif
