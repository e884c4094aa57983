/* The kinds of lines on x86 with AVX2: a line is two registers of 8 words. */
#include "base/cpu.h"
#if ON_X86

#include <immintrin.h>

#include "kind/line.h"

#define AVX2 __attribute__((target("avx2"), no_sanitize("thread")))

struct line {
    __m256i low, high; /* words 0 to 7, and 8 to 15 */
};

/* One bit in each of eight words, for those words whose rank is below the
 * number of probes. `ranks` holds eight nibbles, lowest first. The nibble of
 * each word is shifted to the top; what follows it there does not matter to a
 * comparison with a limit whose other bits are all set. */
AVX2 MELT __m256i bits_in(uint64_t hash, uint32_t ranks, const uint32_t *salt,
                          uint32_t probes) {
    const __m256i to_top = _mm256_setr_epi32(28, 24, 20, 16, 12, 8, 4, 0);
    const uint32_t highest = (probes << 28) - 1;
    const __m256i limit = _mm256_set1_epi32((int)(highest ^ 0x80000000u));

    const __m256i rank =
        _mm256_sllv_epi32(_mm256_set1_epi32((int)ranks), to_top);
    const __m256i spared = _mm256_cmpgt_epi32(rank, limit);
    const __m256i product =
        _mm256_mullo_epi32(_mm256_set1_epi32((int)(uint32_t)hash),
                           _mm256_loadu_si256((const __m256i *)salt));
    const __m256i bits =
        _mm256_sllv_epi32(_mm256_set1_epi32(1), _mm256_srli_epi32(product, 27));
    return _mm256_andnot_si256(spared, bits);
}

/* Comparisons are signed, so ranks of 0 to 15 must become -8 to 7: their top
 * bits are turned over, as they are in the choice whose b differs by 8. */
AVX2 MELT struct line mask_of(uint64_t hash, uint32_t probes) {
    const uint64_t *ranks = &line_ranks[line_choice(hash) ^ 8];
    const struct line mask = {bits_in(hash, load32(ranks), line_salt, probes),
                              bits_in(hash, load32((const uint8_t *)ranks + 4),
                                      line_salt + 8, probes)};
    return mask;
}

AVX2 MELT struct line load(const uint8_t *line) {
    const struct line is = {_mm256_load_si256((const __m256i *)line),
                            _mm256_load_si256((const __m256i *)(line + 32))};
    return is;
}

AVX2 MELT bool covers(struct line line, struct line mask) {
    return _mm256_testc_si256(line.low, mask.low) &
           _mm256_testc_si256(line.high, mask.high);
}

AVX2 MELT bool in_line_avx2(const uint8_t *line, uint64_t hash,
                            uint32_t probes) {
    return covers(load(line), mask_of(hash, probes));
}

AVX2 MELT bool add_to_line_avx2(uint8_t *line, uint64_t hash, uint32_t probes) {
    const struct line mask = mask_of(hash, probes), old = load(line);
    _mm256_store_si256((__m256i *)line, _mm256_or_si256(old.low, mask.low));
    _mm256_store_si256((__m256i *)(line + 32),
                       _mm256_or_si256(old.high, mask.high));
    return !covers(old, mask);
}

AVX2 MELT bool share_line_avx2(uint8_t *line, uint64_t hash, uint32_t probes) {
    const struct line mask = mask_of(hash, probes);
    if (covers(load(line), mask)) return false;
    struct line_mask words;
    _mm256_store_si256((__m256i *)&words.word[0], mask.low);
    _mm256_store_si256((__m256i *)&words.word[4], mask.high);
    return line_share(line, &words);
}

LINE_KERNELS(avx2, CPU_AVX2, AVX2, in_line_avx2, add_to_line_avx2,
             share_line_avx2)

#endif
