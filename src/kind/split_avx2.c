/* The split kind on x86 with AVX2: one 256-bit register is one block. */
#include "base/cpu.h"
#if ON_X86

#include <immintrin.h>

#include "kind/split.h"

/* The low half of a hash in all eight words; line_avx2.c says why in assembly.
 */
AVX2 ALWAYS_INLINE __m256i low_half(const uint64_t *hash) {
    __m256i all;
    __asm__("vpbroadcastd %1, %0" : "=x"(all) : "m"(*hash));
    return all;
}

/* One bit set in each of eight lanes. */
AVX2 ALWAYS_INLINE __m256i bits_of(const uint64_t *hash) {
    const __m256i salt = _mm256_loadu_si256((const __m256i *)split_salt);
    const __m256i spot =
        _mm256_srli_epi32(_mm256_mullo_epi32(low_half(hash), salt), 27);
    return _mm256_sllv_epi32(_mm256_set1_epi32(1), spot);
}

AVX2 ALWAYS_INLINE bool has(const uint8_t *body, const struct shape *shape,
                            const uint64_t *hash) {
    const __m256i *at = (const __m256i *)(body + split_offset(*hash, shape));
    return _mm256_testc_si256(_mm256_loadu_si256(at), bits_of(hash));
}

AVX2 ALWAYS_INLINE bool add(uint8_t *body, const struct shape *shape,
                            const uint64_t *hash) {
    __m256i *at = (__m256i *)(body + split_offset(*hash, shape));
    const __m256i old = _mm256_load_si256(at), bits = bits_of(hash);
    _mm256_store_si256(at, _mm256_or_si256(old, bits));
    return !_mm256_testc_si256(old, bits);
}

AVX2 static bool split_avx2_has(const uint8_t *body, const struct shape *shape,
                                uint64_t hash) {
    return has(body, shape, &hash);
}

AVX2 static bool split_avx2_add(uint8_t *body, const struct shape *shape,
                                uint64_t hash) {
    return add(body, shape, &hash);
}

AVX2 static bool split_avx2_add_atomic(uint8_t *body, const struct shape *shape,
                                       uint64_t hash) {
    return split_add_one_atomic(body, shape, &hash);
}

AVX2 static size_t split_avx2_has_batch(const uint8_t *body,
                                        const struct shape *shape,
                                        struct batch batch, bool *found) {
    return has_batch_generic(body, shape, batch, found, has, split_prefetch);
}

AVX2 static size_t split_avx2_add_batch(uint8_t *body,
                                        const struct shape *shape,
                                        struct batch batch, bool *fresh) {
    return add_batch_generic(body, shape, batch, fresh, add, split_prefetch,
                             NULL);
}

AVX2 static size_t split_avx2_add_batch_atomic(uint8_t *body,
                                               const struct shape *shape,
                                               struct batch batch,
                                               bool *fresh) {
    return add_batch_generic(body, shape, batch, fresh, split_add_one_atomic,
                             split_prefetch, NULL);
}

const struct kernel split_avx2 = {
    .level = CPU_AVX2,
    .has = split_avx2_has,
    .add = split_avx2_add,
    .has_batch = split_avx2_has_batch,
    .add_batch = split_avx2_add_batch,
};

const struct kernel split_avx2_atomic = {
    .level = CPU_AVX2,
    .has = split_avx2_has,
    .add = split_avx2_add_atomic,
    .has_batch = split_avx2_has_batch,
    .add_batch = split_avx2_add_batch_atomic,
};

#endif
