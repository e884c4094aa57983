/* The kinds of lines on x86 with AVX-512: a line is one register. */
#include "base/cpu.h"
#if ON_X86

#include <immintrin.h>

#include "kind/line.h"

#define AVX512 \
    __attribute__((target("avx512f,avx512vl"), no_sanitize("thread")))

/* The low half of a hash in all 16 words: avx2.h tells why so. */
AVX512 MELT __m512i low_half(const uint64_t *hash) {
    __m512i all;
    __asm__("vpbroadcastd %1, %0" : "=v"(all) : "m"(*hash));
    return all;
}

/* One bit in each of 16 words, for those words whose rank is below the number
 * of probes. The nibble of each word is shifted to the top; what follows it
 * there does not matter to a comparison with a limit whose other bits are all
 * set. */
AVX512 MELT __m512i mask_of(const uint64_t *hash, uint32_t probes) {
    const __m512i to_top = _mm512_setr_epi32(28, 24, 20, 16, 12, 8, 4, 0, 28,
                                             24, 20, 16, 12, 8, 4, 0);
    const __m512i highest = _mm512_set1_epi32((int)((probes << 28) - 1));
    const uint64_t ranks = line_ranks[line_choice(*hash)];

    const __m512i halves =
        _mm512_inserti64x4(_mm512_set1_epi32((int)(uint32_t)ranks),
                           _mm256_set1_epi32((int)(uint32_t)(ranks >> 32)), 1);
    const __mmask16 taken =
        _mm512_cmple_epu32_mask(_mm512_sllv_epi32(halves, to_top), highest);
    const __m512i product =
        _mm512_mullo_epi32(low_half(hash), _mm512_loadu_si512(line_salt));
    return _mm512_maskz_sllv_epi32(taken, _mm512_set1_epi32(1),
                                   _mm512_srli_epi32(product, 27));
}

AVX512 MELT bool covers(__m512i line, __m512i mask) {
    const __m512i missing = _mm512_andnot_si512(line, mask);
    return _mm512_test_epi32_mask(missing, missing) == 0;
}

AVX512 MELT bool in_line_avx512(const uint8_t *line, const uint64_t *hash,
                                uint32_t probes) {
    return covers(_mm512_load_si512(line), mask_of(hash, probes));
}

AVX512 MELT bool add_to_line_avx512(uint8_t *line, const uint64_t *hash,
                                    uint32_t probes) {
    const __m512i mask = mask_of(hash, probes), old = _mm512_load_si512(line);
    _mm512_store_si512(line, _mm512_or_si512(old, mask));
    return !covers(old, mask);
}

AVX512 MELT bool share_line_avx512(uint8_t *line, const uint64_t *hash,
                                   uint32_t probes) {
    const __m512i missing =
        _mm512_andnot_si512(_mm512_load_si512(line), mask_of(hash, probes));
    struct line_mask bits;
    _mm512_store_si512(&bits, missing);
    const uint32_t words = _mm512_test_epi64_mask(missing, missing);
    line_share(line, &bits, words);
    return words != 0;
}

LINE_KERNELS(avx512, CPU_AVX512, AVX512, in_line_avx512, add_to_line_avx512,
             share_line_avx512)

#endif
