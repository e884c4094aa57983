/* The split kind on x86 with AVX2: one 256-bit register is one block. */
#include "base/cpu.h"
#if ON_X86

#include "kind/avx2.h"
#include "kind/split.h"

/* One bit set in each of eight lanes. */
AVX2 MELT __m256i bits_of(const uint64_t *hash) {
    const __m256i salt = _mm256_loadu_si256((const __m256i *)split_salt);
    const __m256i spot =
        _mm256_srli_epi32(_mm256_mullo_epi32(low_half(hash), salt), 27);
    return _mm256_sllv_epi32(_mm256_set1_epi32(1), spot);
}

AVX2 MELT bool has(const uint8_t *body, const struct shape *shape,
                   const uint64_t *hash) {
    const __m256i *at = (const __m256i *)(body + split_offset(*hash, shape));
    return _mm256_testc_si256(_mm256_load_si256(at), bits_of(hash));
}

AVX2 MELT bool add(uint8_t *body, const struct shape *shape,
                   const uint64_t *hash) {
    __m256i *at = (__m256i *)(body + split_offset(*hash, shape));
    const __m256i old = _mm256_load_si256(at), bits = bits_of(hash);
    _mm256_store_si256(at, _mm256_or_si256(old, bits));
    return !_mm256_testc_si256(old, bits);
}

KERNEL(split_avx2, CPU_AVX2, AVX2, has, split_call, add, split_call)
KERNEL(split_avx2_shared, CPU_AVX2, AVX2, has, split_call, split_share,
       split_call)

#endif
