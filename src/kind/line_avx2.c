/* The kinds of lines on x86 with AVX2: a line is two registers of 8 words. */
#include "base/cpu.h"
#if ON_X86

#include "kind/avx2.h"
#include "kind/line.h"

struct line {
    __m256i low, high; /* words 0 to 7, and 8 to 15 */
};

/* One bit in each of eight words, for those words whose rank is below the
 * number of probes. `ranks` holds eight nibbles, lowest first. The nibble of
 * each word is shifted to the top; what follows it there does not matter to a
 * comparison with a limit whose other bits are all set. */
AVX2 MELT __m256i bits_in(__m256i hash, uint32_t ranks, const uint32_t *salt,
                          uint32_t probes) {
    const __m256i to_top = _mm256_setr_epi32(28, 24, 20, 16, 12, 8, 4, 0);
    const uint32_t highest = (probes << 28) - 1;
    const __m256i limit = _mm256_set1_epi32((int)(highest ^ 0x80000000u));

    const __m256i rank =
        _mm256_sllv_epi32(_mm256_set1_epi32((int)ranks), to_top);
    const __m256i spared = _mm256_cmpgt_epi32(rank, limit);
    const __m256i product =
        _mm256_mullo_epi32(hash, _mm256_loadu_si256((const __m256i *)salt));
    const __m256i bits =
        _mm256_sllv_epi32(_mm256_set1_epi32(1), _mm256_srli_epi32(product, 27));
    return _mm256_andnot_si256(spared, bits);
}

/* Comparisons are signed, so ranks of 0 to 15 must become -8 to 7: their top
 * bits are turned over, as they are in the choice whose b differs by 8. */
AVX2 MELT struct line mask_of(const uint64_t *hash, uint32_t probes) {
    const uint64_t *ranks = &line_ranks[line_choice(*hash) ^ 8];
    const __m256i low = low_half(hash);
    const struct line mask = {bits_in(low, load32(ranks), line_salt, probes),
                              bits_in(low, load32((const uint8_t *)ranks + 4),
                                      line_salt + 8, probes)};
    return mask;
}

AVX2 MELT struct line load(const uint8_t *line) {
    const struct line is = {_mm256_load_si256((const __m256i *)line),
                            _mm256_load_si256((const __m256i *)(line + 32))};
    return is;
}

AVX2 MELT bool covers(struct line line, struct line mask) {
    const __m256i missing =
        _mm256_or_si256(_mm256_andnot_si256(line.low, mask.low),
                        _mm256_andnot_si256(line.high, mask.high));
    return _mm256_testz_si256(missing, missing);
}

AVX2 MELT bool in_line_avx2(const uint8_t *line, const uint64_t *hash,
                            uint32_t probes) {
    return covers(load(line), mask_of(hash, probes));
}

AVX2 MELT bool add_to_line_avx2(uint8_t *line, const uint64_t *hash,
                                uint32_t probes) {
    const struct line mask = mask_of(hash, probes), old = load(line);
    _mm256_store_si256((__m256i *)line, _mm256_or_si256(old.low, mask.low));
    _mm256_store_si256((__m256i *)(line + 32),
                       _mm256_or_si256(old.high, mask.high));
    return !covers(old, mask);
}

/* Which of four words of 64 bits are not all zeros, one bit each. */
AVX2 MELT uint32_t words_in(__m256i half) {
    const __m256i zeros = _mm256_cmpeq_epi64(half, _mm256_setzero_si256());
    return 15 ^ (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(zeros));
}

AVX2 MELT bool share_line_avx2(uint8_t *line, const uint64_t *hash,
                               uint32_t probes) {
    const struct line mask = mask_of(hash, probes), old = load(line);
    const struct line missing = {_mm256_andnot_si256(old.low, mask.low),
                                 _mm256_andnot_si256(old.high, mask.high)};
    struct line_mask bits;
    _mm256_store_si256((__m256i *)&bits.word[0], missing.low);
    _mm256_store_si256((__m256i *)&bits.word[4], missing.high);
    const uint32_t words = words_in(missing.low) | words_in(missing.high) << 4;
    line_share(line, &bits, words);
    return words != 0;
}

LINE_KERNELS(avx2, CPU_AVX2, AVX2, in_line_avx2, add_to_line_avx2,
             share_line_avx2)

#endif
