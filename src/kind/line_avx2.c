/*
 * The kinds of lines on x86 with AVX2: a line is two registers of 8 words, and
 * a column stands in the same place of both.
 *
 * A lookup works on all 8 columns at once:
 *
 *     products_of       low half of the hash * the salt of each column
 *     row_of            a 1 in the top bit of each column that the key takes
 *     bits_in_columns   the bit of the key in each column, as the top bit: the
 *                       top bit of a product picks one of two words, the next
 *                       five bits shift the bit of the key up
 *     testc             every column of the row has a 1? (in_line)
 *
 * An addition makes the mask of the key (vmask) in both registers, and ORs it.
 */
#include "base/cpu.h"
#if ON_X86

#include <immintrin.h>

#include "kind/counting.h"

#define TARGET              AVX2
#define LINE_VECTOR_BATCHES 1

/* ---- The vocabulary (line_vector_template.h) ----------------------------- */

typedef struct {
    __m256i low, high; /* words 0 to 7, and 8 to 15 */
} vline;

AVX2 ALWAYS_INLINE vline vload(const void *line) {
    const __m256i *const half = line;
    return (vline){_mm256_loadu_si256(half), _mm256_loadu_si256(half + 1)};
}

AVX2 ALWAYS_INLINE void vstore(void *line, vline a) {
    __m256i *const half = line;
    _mm256_store_si256(half, a.low);
    _mm256_store_si256(half + 1, a.high);
}

AVX2 ALWAYS_INLINE vline vor(vline a, vline b) {
    return (vline){_mm256_or_si256(a.low, b.low),
                   _mm256_or_si256(a.high, b.high)};
}

AVX2 ALWAYS_INLINE vline vand(vline a, vline b) {
    return (vline){_mm256_and_si256(a.low, b.low),
                   _mm256_and_si256(a.high, b.high)};
}

AVX2 ALWAYS_INLINE vline vxor(vline a, vline b) {
    return (vline){_mm256_xor_si256(a.low, b.low),
                   _mm256_xor_si256(a.high, b.high)};
}

AVX2 ALWAYS_INLINE vline vandnot(vline a, vline b) {
    return (vline){_mm256_andnot_si256(b.low, a.low),
                   _mm256_andnot_si256(b.high, a.high)};
}

AVX2 ALWAYS_INLINE bool vany(vline a) {
    const __m256i both = _mm256_or_si256(a.low, a.high);
    return !_mm256_testz_si256(both, both);
}

AVX2 ALWAYS_INLINE uint32_t nonzero_words(__m256i half) {
    const __m256i zeros = _mm256_cmpeq_epi64(half, _mm256_setzero_si256());
    return 15 ^ (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(zeros));
}

AVX2 ALWAYS_INLINE uint32_t vwords(vline a) {
    return nonzero_words(a.low) | nonzero_words(a.high) << 4;
}

/* The low half of a hash in all eight words. In assembly for gcc, to load it
 * from memory: gcc would broadcast it from a general register, through a slow
 * port, which costs 25 % of a lookup. clang loads it from memory by itself. */
AVX2 ALWAYS_INLINE __m256i low_half(const uint64_t *hash) {
#ifdef __clang__
    return _mm256_set1_epi32((int)*hash);
#else
    __m256i all;
    __asm__("vpbroadcastd %1, %0" : "=x"(all) : "xm"(*hash));
    return all;
#endif
}

/* The products of a key for all 8 columns. Their upper bits are the spots of
 * its bits, and the bits below the spots of its second bits. */
AVX2 ALWAYS_INLINE __m256i products_of(const uint64_t *hash) {
    return _mm256_mullo_epi32(low_half(hash),
                              _mm256_loadu_si256((const __m256i *)line_salt));
}

AVX2 ALWAYS_INLINE __m256i second_products(__m256i products) {
    return _mm256_slli_epi32(products, FIRST_SPOT - SECOND_SPOT);
}

/* The columns that a key takes: the top bits of their words. */
AVX2 ALWAYS_INLINE __m256i row_of(const uint64_t *hash,
                                  struct line_choice choice) {
    const uint8_t *const rows = (const uint8_t *)line_rows;
    return _mm256_load_si256(
        (const __m256i *)(rows + line_chosen(*hash, choice)));
}

AVX2 ALWAYS_INLINE __m256i all_columns(void) {
    return _mm256_set1_epi32((int)(UINT32_C(1) << 31));
}

/* One bit in each column of a row: its top bit goes down by the spot in the
 * first word, or by the spot - 32 in the second. A shift by 32 and more, or by
 * a negative number, leaves nothing: so one of the two words stays 0. */
AVX2 ALWAYS_INLINE vline spread(__m256i row, __m256i products) {
    const __m256i spot = _mm256_srli_epi32(products, FIRST_SPOT);
    const __m256i beyond = _mm256_sub_epi32(spot, _mm256_set1_epi32(32));
    return (vline){_mm256_srlv_epi32(row, spot),
                   _mm256_srlv_epi32(row, beyond)};
}

AVX2 ALWAYS_INLINE vline vmask(const uint64_t *hash,
                               struct line_choice choice) {
    const __m256i products = products_of(hash), row = row_of(hash, choice);
    if (__builtin_expect(!choice.twice, true)) return spread(row, products);
    return vor(spread(all_columns(), products),
               spread(row, second_products(products)));
}

/* ---- One key ------------------------------------------------------------- */

/* The bit of a key in each column, as the top bits of words. The top bit of a
 * product selects the word of the column, the next five the bit: the sum of the
 * product with itself drops the top bit. */
AVX2 ALWAYS_INLINE __m256i bits_in_columns(const uint8_t *line,
                                           __m256i products) {
    const __m256 word =
        _mm256_blendv_ps(_mm256_loadu_ps((const float *)line),
                         _mm256_loadu_ps((const float *)line + 8),
                         _mm256_castsi256_ps(products));
    const __m256i spot =
        _mm256_srli_epi32(_mm256_add_epi32(products, products), 27);
    return _mm256_sllv_epi32(_mm256_castps_si256(word), spot);
}

/* Columns of a row that lack their bit: the top bits of their words. */
AVX2 ALWAYS_INLINE __m256i missing_in_row(const uint8_t *line, __m256i products,
                                          __m256i row) {
    return _mm256_andnot_si256(bits_in_columns(line, products), row);
}

/* Columns that lack a bit of this key: the top bits of their words. (Hits would
 * take one more instruction a key; has_8 inverts four keys at once.) */
AVX2 ALWAYS_INLINE __m256i missing_columns(const uint8_t *line,
                                           const uint64_t *hash,
                                           struct line_choice choice) {
    const __m256i products = products_of(hash), row = row_of(hash, choice);
    if (!choice.twice) return missing_in_row(line, products, row);
    return _mm256_or_si256(
        missing_in_row(line, products, all_columns()),
        missing_in_row(line, second_products(products), row));
}

/* Add a key; returns the columns that had every bit of it, all ones. */
AVX2 ALWAYS_INLINE __m256i add_and_hit_columns(uint8_t *line,
                                               const uint64_t *hash,
                                               struct line_choice choice) {
    const vline old = vload(line);
    const vline new = vor(old, vmask(hash, choice));
    vstore(line, new);
    return _mm256_and_si256(_mm256_cmpeq_epi32(old.low, new.low),
                            _mm256_cmpeq_epi32(old.high, new.high));
}

/* The top bits of the words of eight columns. */
AVX2 ALWAYS_INLINE uint32_t top_bits(__m256i columns) {
    return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(columns));
}

/* testc: does the line have all bits of the row? */
AVX2 ALWAYS_INLINE bool in_line(const uint8_t *line, const uint64_t *hash,
                                struct line_choice choice) {
    const __m256i products = products_of(hash), row = row_of(hash, choice);
    if (__builtin_expect(!choice.twice, true))
        return _mm256_testc_si256(bits_in_columns(line, products), row);
    const __m256i missing = missing_columns(line, hash, choice);
    return _mm256_testz_si256(missing, missing);
}

AVX2 ALWAYS_INLINE bool add_to_line(uint8_t *line, const uint64_t *hash,
                                    struct line_choice choice) {
    return top_bits(add_and_hit_columns(line, hash, choice)) != LINE_ALL;
}

#include "kind/line_vector_template.h"

#include "kind/line_template.h"

/* ---- Eight keys ---------------------------------------------------------- */

/* The top bits of the columns of four keys. Packing halves the size of a word
 * and keeps its top bit. It works on each half of a register alone: so of 32
 * bits the lower 16 are of the first four columns, four bits a key, and the
 * upper 16 of the last four. */
AVX2 ALWAYS_INLINE uint32_t pack_4(__m256i first_2, __m256i last_2) {
    return (uint32_t)_mm256_movemask_epi8(_mm256_packs_epi16(first_2, last_2));
}

AVX2 ALWAYS_INLINE __m256i missing_at(const struct part_view *part,
                                      const uint64_t *hashes, size_t i,
                                      struct line_choice choice,
                                      struct prefetch_8 ahead) {
    prefetch_at(part, ahead, i);
    return missing_columns(line_of(part, hashes[i]), &hashes[i], choice);
}

AVX2 ALWAYS_INLINE __m256i add_at(const struct part_view *part,
                                  const uint64_t *hashes, size_t i,
                                  struct line_choice choice,
                                  struct prefetch_8 ahead) {
    prefetch_at(part, ahead, i);
    return add_and_hit_columns(line_of(part, hashes[i]), &hashes[i], choice);
}

/* The keys as an array would leave gcc 12 too few registers. */
AVX2 ALWAYS_INLINE void has_8(const struct part_view *part,
                              const uint64_t *hashes, struct line_choice choice,
                              struct prefetch_8 ahead, uint8_t *hit_masks) {
#pragma GCC unroll 2
    for (size_t i = 0; i < 8; i += 4) {
        const __m256i a = missing_at(part, hashes, i, choice, ahead);
        const __m256i b = missing_at(part, hashes, i + 1, choice, ahead);
        const __m256i first = _mm256_packs_epi32(a, b);
        const __m256i c = missing_at(part, hashes, i + 2, choice, ahead);
        const __m256i d = missing_at(part, hashes, i + 3, choice, ahead);
        const __m256i last = _mm256_packs_epi32(c, d);
        store32(hit_masks + i, ~pack_4(first, last));
    }
}

AVX2 ALWAYS_INLINE void add_8(const struct part_view *part,
                              const uint64_t *hashes, struct line_choice choice,
                              struct prefetch_8 ahead, uint8_t *hit_masks) {
#pragma GCC unroll 2
    for (size_t i = 0; i < 8; i += 4) {
        const __m256i a = add_at(part, hashes, i, choice, ahead);
        const __m256i b = add_at(part, hashes, i + 1, choice, ahead);
        const __m256i first = _mm256_packs_epi32(a, b);
        const __m256i c = add_at(part, hashes, i + 2, choice, ahead);
        const __m256i d = add_at(part, hashes, i + 3, choice, ahead);
        const __m256i last = _mm256_packs_epi32(c, d);
        store32(hit_masks + i, pack_4(first, last));
    }
}

/* A key hits if its four bits are set in both halves of its group of four. Two
 * keys share a byte of `both`: the byte is doubled, and each key compares its
 * half of its own copy. */
AVX2 ALWAYS_INLINE __m256i all_hit(__m256i hit_masks) {
    const __m256i both =
        _mm256_and_si256(hit_masks, _mm256_srli_epi32(hit_masks, 16));
    const __m256i by_twos = _mm256_shuffle_epi8(
        both, _mm256_broadcastsi128_si256(_mm_setr_epi8(
                  0, 0, 1, 1, 4, 4, 5, 5, 8, 8, 9, 9, 12, 12, 13, 13)));
    const __m256i own = _mm256_set1_epi16((short)0xF00F);
    return _mm256_cmpeq_epi8(_mm256_and_si256(by_twos, own), own);
}

#include "kind/line_batch_template.h"

/* ---- Four keys in many parts --------------------------------------------- */

/*
 * A lookup in a grown filter looks at every part, and a key has the same bits
 * in each part that has the same number of probes. So masks are made once for
 * four keys, and compared with one part after the other while they are in
 * registers. They are stored inverted: then one instruction loads a line and
 * ORs it.
 */
struct masks_4 {
    vline inverted[4];
};

AVX2 ALWAYS_INLINE vline inverted_mask(const uint64_t *hash, uint32_t probes) {
    const vline mask = vmask(hash, line_choices[probes]);
    const __m256i all = _mm256_set1_epi32(-1);
    return (vline){_mm256_xor_si256(mask.low, all),
                   _mm256_xor_si256(mask.high, all)};
}

AVX2 ALWAYS_INLINE struct masks_4 masks_of(const uint64_t *hashes,
                                           uint32_t probes) {
    return (struct masks_4){
        {inverted_mask(&hashes[0], probes), inverted_mask(&hashes[1], probes),
         inverted_mask(&hashes[2], probes), inverted_mask(&hashes[3], probes)}};
}

/* All ones if the key i is in its line. */
AVX2 ALWAYS_INLINE __m256i covered(const struct masks_4 *masks,
                                   const uintptr_t *lines, size_t i) {
    const vline line = vload((const uint8_t *)lines[i]);
    return _mm256_and_si256(
        _mm256_or_si256(line.low, masks->inverted[i].low),
        _mm256_or_si256(line.high, masks->inverted[i].high));
}

/* Which of four keys are in their lines: all ones in a word of each, in either
 * half. Packing makes each word half as long, and -1 only of -1. */
AVX2 ALWAYS_INLINE __m256i found_in(const struct masks_4 *masks,
                                    const uintptr_t *lines) {
    const __m256i first =
        _mm256_packs_epi32(covered(masks, lines, 0), covered(masks, lines, 1));
    const __m256i last =
        _mm256_packs_epi32(covered(masks, lines, 2), covered(masks, lines, 3));
    const __m256i all = _mm256_packs_epi16(first, last);
    const __m256i both =
        _mm256_and_si256(all, _mm256_permute4x64_epi64(all, 0x4E));
    return _mm256_cmpeq_epi32(both, _mm256_set1_epi32(-1));
}

/* A ring of groups of four keys. Their lines are prefetched some groups before
 * they are used, and their addresses computed a group before that: 10 % faster
 * than both at once. */
enum { GROUPS = 8, PREFETCHED_AHEAD = 4, COMPUTED_AHEAD = 5 };

typedef uintptr_t lines_of_four[PARTS_AT_ONCE][4];

/* scale64 for four hashes, of fewer than 2^32 lines, as addresses. */
AVX2 ALWAYS_INLINE __m256i lines_of(__m256i hashes,
                                    const struct part_view *part) {
    const __m256i body = _mm256_set1_epi64x((long long)(uintptr_t)part->body);
    const __m256i blocks = _mm256_set1_epi64x((long long)part->shape.blocks);
    const __m256i high =
        _mm256_mul_epu32(_mm256_srli_epi64(hashes, 32), blocks);
    const __m256i low = _mm256_mul_epu32(hashes, blocks);
    const __m256i sum = _mm256_add_epi64(high, _mm256_srli_epi64(low, 32));
    /* 64 times what lies above the low 32 bits */
    const __m256i offset = _mm256_and_si256(_mm256_srli_epi64(sum, 26),
                                            _mm256_set1_epi64x(-LINE_BYTES));
    return _mm256_add_epi64(body, offset);
}

AVX2 ALWAYS_INLINE void compute_4(uintptr_t *lines, const uint64_t *hashes,
                                  const struct part_view *part) {
    const __m256i four = _mm256_loadu_si256((const __m256i *)hashes);
    _mm256_store_si256((__m256i *)lines, lines_of(four, part));
}

AVX2 ALWAYS_INLINE void prefetch_4(const uintptr_t *lines) {
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++) prefetch_l1((const uint8_t *)lines[i]);
}

/* OR the answers for four keys, from words to bytes, into `to`. */
AVX2 ALWAYS_INLINE void or_answers(bool *to, __m256i found) {
    const __m128i halves = _mm_packs_epi32(_mm256_castsi256_si128(found),
                                           _mm256_extracti128_si256(found, 1));
    const __m128i bytes = _mm_packs_epi16(halves, halves);
    store32(to,
            load32(to) | ((uint32_t)_mm_cvtsi128_si32(bytes) & 0x01010101u));
}

AVX2 void line_has_in_any(const struct part_view *parts, size_t count,
                          const uint64_t *hashes, size_t n, bool *found) {
    _Alignas(32) lines_of_four ring[GROUPS];
    const size_t groups = n / 4;
    /* Fill the ring: compute the first groups, and prefetch all but one. */
    for (size_t g = 0; g < groups && g < COMPUTED_AHEAD; g++)
        for (size_t p = 0; p < count; p++) {
            compute_4(ring[g][p], &hashes[4 * g], &parts[p]);
            if (g < PREFETCHED_AHEAD) prefetch_4(ring[g][p]);
        }
    for (size_t g = 0; g < groups; g++) {
        /* Near the end, groups at hand are prefetched again: harmless. */
        const size_t next =
            g + PREFETCHED_AHEAD < groups ? g + PREFETCHED_AHEAD : g;
        const size_t last = groups - 1, ahead = g + COMPUTED_AHEAD;
        const uint64_t *const later =
            &hashes[4 * (ahead < last ? ahead : last)];
        const uint64_t *const now = &hashes[4 * g];
        uint32_t probes = parts[0].shape.probes;
        struct masks_4 masks = masks_of(now, probes);
        __m256i yes = _mm256_setzero_si256();
        for (size_t p = 0; p < count; p++) {
            if (__builtin_expect(probes != parts[p].shape.probes, false)) {
                probes = parts[p].shape.probes;
                masks = masks_of(now, probes);
            }
            compute_4(ring[ahead % GROUPS][p], later, &parts[p]);
            prefetch_4(ring[next % GROUPS][p]);
            yes = _mm256_or_si256(yes, found_in(&masks, ring[g % GROUPS][p]));
        }
        or_answers(&found[4 * g], yes);
    }
    /* Fewer than four keys at the end, part after part until one has them. */
    for (size_t i = 4 * groups; i < n; i++)
        for (size_t p = 0; p < count && !found[i]; p++)
            found[i] =
                in_line(parts[p].body + line_offset(hashes[i], &parts[p].shape),
                        &hashes[i], line_choices[parts[p].shape.probes]);
}

#if !CALYX_NO_COUNTING
#include "kind/counting_template.h"
#endif

/* ---- The kernels --------------------------------------------------------- */

const struct kernel line_avx2 = {
    .level = CPU_AVX2,
    .has = line_has,
    .add = line_add,
    .has_batch = line_has_batch,
    .add_batch = line_add_batch,
    .has_in_any = line_has_in_any,
    .hashes_numbers = true,
};

#if !CALYX_NO_LINE2
const struct kernel line2_avx2 = {
    .level = CPU_AVX2,
    .has = line2_has,
    .add = line2_add,
    .has_batch = line2_has_batch,
    .add_batch = line2_add_batch,
};

const struct kernel line2_avx2_atomic = {
    .level = CPU_AVX2,
    .has = line2_has,
    .add = line2_add_atomic,
    .has_batch = line2_has_batch,
    .add_batch = line2_add_batch_atomic,
};
#endif

#if !CALYX_NO_COUNTING
const struct kernel counting_avx2 = {
    .level = CPU_AVX2,
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
