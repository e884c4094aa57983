/*
 * The ribbon kind on x86 with AVX-512 and GFNI: Ice Lake, Zen 4 and later.
 * Other processors with AVX-512 use the kernel of AVX2.
 *
 * GF2P8AFFINEQB multiplies a matrix of 8 by 8 bits, which is a number of 64
 * bits, by a vector of 8 bits: 8 rows of 8 result bits by 8 coefficients. It
 * takes 8 matrices at once, and the 48 rows of an equation have 6 for each 8
 * result bits: one instruction does what are 15 with AVX2. A batch takes 16
 * queries a step. Their places are computed in lanes of 32 bits, and what one
 * query does by itself is to load its words and its flag.
 */
#include "base/cpu.h"
#if ON_AVX512

#define TARGET                                                               \
    __attribute__((target("avx2,bmi2,popcnt,gfni,avx512f,avx512vl,avx512bw," \
                          "avx512dq,avx512vbmi,avx512vbmi2,avx512bitalg"),   \
                   no_sanitize("thread")))

#include <string.h>

#include "ribbon/ribbon_batch.h"
#include "ribbon/ribbon_rows_template.h"

enum {
    HALF = 8,  /* queries whose sums are in one vector           */
    STEP = 16, /* queries that are prepared together             */
    AHEAD = PREFETCH_DISTANCE, /* queries between prefetch and answer: 64
                                  are 3 % faster in cache, and 3 to 15 %
                                  slower at 10 million keys */
    RING_STEPS = AHEAD / STEP
};

/* The bytes i, 8 + i, 16 + i ... of 64: byte i of each of 8 numbers. */
#define BYTES_OF_8(i) \
    (i), 8 + (i), 16 + (i), 24 + (i), 32 + (i), 40 + (i), 48 + (i), 56 + (i)

/* ---- What all queries of a batch need ------------------------------------ */

/* Numbers are here, and not in the code, because the compiler would take
 * literals to vectors by way of general registers, again and again. Offsets are
 * in bytes, offsets of words in words. */
struct layer_numbers {
    /* READ_8: which byte of the words of an equation is row i % 8 of matrix i /
     * 8, in a narrow group and in a wide one. */
    _Alignas(64) uint8_t order[2][64];
    uint8_t mask[2][32]; /* bits of the result that count, see sums_of */
    uint64_t blocks, low_factor, high_factor, result_factor;
    uint64_t even_bits, odd_bits; /* matrices: see packed_bits */
    int32_t wide, probes;
    int32_t span_last[2]; /* last group of the narrow, and of the wide ones */
    int32_t stride[2];    /* words of a group; READ_8: offset in `order`    */
    int32_t in_lot, minus_two, flag_byte;
    /* The flags of lot i are flags_base + i * lot_bytes + what is wide before
     * its end; the flags of the last lot, if it is shorter, are flags_base +
     * last_flags. */
    int32_t flags_base, lot_bytes, wide_bytes, last_flags;
};

/* Lanes of 32 bits hold every offset in bytes, as a positive number. */
static bool fits_lanes(const struct shape *shape) {
    return ribbon_bytes(shape) <= INT32_MAX;
}

/* The byte of row `row` of matrix `matrix`, in words of which a group has
 * `count`: matrix 2 g + h is half h of group g, and its row 7 - i has result
 * bit i, as GF2P8AFFINEQB wants it. Bytes beyond those that are read are
 * anything: their bits are masked off, or have no coefficients. */
static uint8_t byte_of(uint32_t matrix, uint32_t row, uint32_t count) {
    const uint32_t group = matrix / 2, half = matrix % 2;
    const uint32_t at = 2 * (group * count + 7 - row) + half;
    return (uint8_t)(at < 32 ? at : at + 16); /* see words_8 */
}

static void set_numbers(struct layer_numbers *to, const struct shape *shape,
                        enum read_width width) {
    const uint64_t last = shape->blocks - 1;
    to->blocks = shape->blocks;
    to->low_factor = LOW_FACTOR;
    to->high_factor = HIGH_FACTOR;
    to->result_factor = RESULT_FACTOR;
    to->even_bits = UINT64_C(0x0104104000000000);
    to->odd_bits = UINT64_C(0x0208208000000000);
    to->wide = (int32_t)shape->wide;
    to->probes = (int32_t)shape->probes;
    to->in_lot = LOT_GROUPS - 1;
    to->minus_two = 1 - SPAN_GROUPS;
    to->flag_byte = FLAG_BYTES - 1;
    to->flags_base = 2 * LOT_GROUPS * to->probes + 2;
    to->lot_bytes = 2 * LOT_GROUPS * to->probes + FLAG_BYTES;
    to->wide_bytes = 2 * to->wide - 2;
    to->last_flags = (int32_t)flags_at(last, shape) - to->flags_base;
    to->span_last[0] = (int32_t)last;
    to->span_last[1] = to->wide - 1;
    for (uint32_t wide = 0; wide < 2; wide++) {
        const uint32_t words = shape->probes + wide;
        const uint64_t mask = (UINT64_C(1) << words) - 1;
        to->stride[wide] = width == READ_8 ? (int32_t)(64 * wide) : (int)words;
        for (uint32_t i = 0; i < 32; i++)
            to->mask[wide][i] = (uint8_t)(mask >> i / 8 * 8);
        for (uint32_t i = 0; width == READ_8 && i < 64; i++)
            to->order[wide][i] = byte_of(i / 8, i % 8, words);
    }
}

/* ---- From hashes to queries ---------------------------------------------- */

/* A step of prepared queries. */
struct query_step {
    _Alignas(64) int32_t words[STEP]; /* offset of the first group       */
    int32_t stride[STEP];             /* as in layer_numbers             */
    int32_t flags[STEP];              /* offset of the flag's byte, less
                                         flags_base                      */
    uint64_t coefficients[STEP];
    uint8_t result[2][32]; /* of each half, see sums_of              */
    uint8_t flag[STEP];    /* the flag's bit in its byte             */
    uint16_t wide;         /* bit i: query i has one word more       */
};

TARGET ALWAYS_INLINE __m512i all_64(uint64_t x) {
    return _mm512_set1_epi64((long long)x);
}

TARGET ALWAYS_INLINE __m512i all_32(int32_t x) {
    return _mm512_set1_epi32(x);
}

/* group_of of 8 hashes, in the upper halves. */
TARGET ALWAYS_INLINE __m512i scaled_8(const struct layer_numbers *layer,
                                      __m512i hash) {
    const __m512i blocks = all_64(layer->blocks);
    return _mm512_add_epi64(
        _mm512_mul_epu32(_mm512_srli_epi64(hash, 32), blocks),
        _mm512_srli_epi64(_mm512_mul_epu32(hash, blocks), 32));
}

/* Each byte to 4 of its bits, the even or the odd ones; then two to a byte. */
TARGET ALWAYS_INLINE __m512i packed_bits(__m512i x, uint64_t which) {
    x = _mm512_gf2p8affine_epi64_epi8(x, all_64(which), 0);
    return _mm512_or_si512(x, _mm512_srli_epi64(x, 4));
}

TARGET ALWAYS_INLINE void store_bytes(uint8_t *to, __m512i x,
                                      enum read_width width) {
    if (width == READ_8)
        _mm_storel_epi64((__m128i *)to, _mm512_castsi512_si128(x));
    else if (width == READ_16)
        _mm_store_si128((__m128i *)to, _mm512_castsi512_si128(x));
    else
        _mm256_store_si256((__m256i *)to, _mm512_castsi512_si256(x));
}

TARGET ALWAYS_INLINE __m256i load_bytes(const uint8_t *from,
                                        enum read_width width) {
    if (width == READ_8)
        return _mm256_castsi128_si256(_mm_loadl_epi64((const __m128i *)from));
    if (width == READ_16)
        return _mm256_castsi128_si256(_mm_load_si128((const __m128i *)from));
    return _mm256_load_si256((const __m256i *)from);
}

/* ribbon_mix of 8 hashes, and what comes of it. The result of a query starts at
 * bit 24 of the product: its bytes 3 and 5 are packed from the even bits, 4 and
 * 6 from the odd ones. */
TARGET ALWAYS_INLINE void mix_8(const struct layer_numbers *layer, __m512i hash,
                                enum read_width width, uint64_t *coefficients,
                                uint8_t *result) {
    static const _Alignas(64) uint8_t places[64] = {
        BYTES_OF_8(3), BYTES_OF_8(5), BYTES_OF_8(4), BYTES_OF_8(6)};
    const __m512i low = _mm512_mul_epu32(hash, all_64(layer->low_factor));
    const __m512i high =
        _mm512_mul_epu32(_mm512_srli_epi64(_mm512_xor_si512(hash, low), 32),
                         all_64(layer->high_factor));
    const __m512i mixed =
        _mm512_xor_si512(_mm512_shuffle_epi32(low, (_MM_PERM_ENUM)0xB1), high);
    const __m512i product =
        _mm512_mul_epu32(_mm512_xor_si512(mixed, _mm512_srli_epi64(mixed, 32)),
                         all_64(layer->result_factor));
    __m512i packed = packed_bits(product, layer->even_bits);
    if (width == READ_32) {
        const __m512i odd = packed_bits(product, layer->odd_bits);
        packed = _mm512_mask_blend_epi8(UINT64_C(0x5050505050505050), packed,
                                        _mm512_slli_epi64(odd, 8));
    }
    _mm512_store_si512(coefficients, _mm512_srli_epi64(mixed, 16));
    store_bytes(result,
                _mm512_permutexvar_epi8(_mm512_load_si512(places), packed),
                width);
}

/* The functions of ribbon.h on 16 hashes. */
TARGET ALWAYS_INLINE void prepare_step(const struct layer_numbers *layer,
                                       const __m512i hashes[2],
                                       enum read_width width,
                                       struct query_step *to) {
    const __m512i upper = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19,
                                            21, 23, 25, 27, 29, 31);
    const __m128i bits = _mm_setr_epi8(1, 2, 4, 8, 16, 32, 64, -128, 1, 2, 4, 8,
                                       16, 32, 64, -128);
    const __m512i group = _mm512_permutex2var_epi32(
        scaled_8(layer, hashes[0]), upper, scaled_8(layer, hashes[1]));
    const __m512i wide = all_32(layer->wide);
    const __mmask16 is_wide = _mm512_cmplt_epi32_mask(group, wide);
    const __m512i lot = _mm512_srli_epi32(group, 9); /* LOT_GROUPS */
    const __m512i lot_last = _mm512_or_si512(group, all_32(layer->in_lot));
    const __m512i span_last = _mm512_min_epi32(
        lot_last, _mm512_mask_blend_epi32(is_wide, all_32(layer->span_last[0]),
                                          all_32(layer->span_last[1])));
    const __m512i first = _mm512_min_epi32(
        group, _mm512_add_epi32(span_last, all_32(layer->minus_two)));
    const __m512i words = _mm512_add_epi32(
        _mm512_add_epi32(_mm512_mullo_epi32(first, all_32(layer->probes)),
                         _mm512_min_epi32(first, wide)),
        _mm512_slli_epi32(lot, 5)); /* FLAG_BYTES / 2 */
    const __m512i flags = _mm512_min_epi32(
        all_32(layer->last_flags),
        _mm512_add_epi32(_mm512_mullo_epi32(lot, all_32(layer->lot_bytes)),
                         _mm512_min_epi32(_mm512_slli_epi32(lot_last, 1),
                                          all_32(layer->wide_bytes))));
    const __m512i byte =
        _mm512_and_si512(_mm512_srli_epi32(group, 3), all_32(layer->flag_byte));
    _mm512_store_si512(to->words, words);
    _mm512_store_si512(to->flags, _mm512_add_epi32(flags, byte));
    _mm512_store_si512(
        to->stride, _mm512_mask_blend_epi32(is_wide, all_32(layer->stride[0]),
                                            all_32(layer->stride[1])));
    _mm_store_si128(
        (__m128i *)to->flag,
        _mm_shuffle_epi8(bits, _mm_and_si128(_mm512_cvtepi32_epi8(group),
                                             _mm_set1_epi8(15))));
    to->wide = is_wide;
    mix_8(layer, hashes[0], width, to->coefficients, to->result[0]);
    mix_8(layer, hashes[1], width, to->coefficients + HALF, to->result[1]);
}

/* The hashes of a step; the lanes after the last hash are 0. */
TARGET ALWAYS_INLINE void prepare_from(const struct layer_numbers *layer,
                                       const struct batch *batch, size_t from,
                                       enum read_width width,
                                       struct query_step *to) {
    const size_t all = batch->n + batch->more;
    const uint64_t *const at = batch->hashes + from;
    __m512i hashes[2];
    if (from + STEP <= all) {
        hashes[0] = _mm512_loadu_si512(at);
        hashes[1] = _mm512_loadu_si512(at + HALF);
    } else {
        const uint32_t there = (UINT32_C(1) << (all - from)) - 1;
        hashes[0] = _mm512_maskz_loadu_epi64((__mmask8)there, at);
        hashes[1] =
            _mm512_maskz_loadu_epi64((__mmask8)(there >> HALF), at + HALF);
    }
    prepare_step(layer, hashes, width, to);
}

/* All that is read of the words, even if no word is there. Flags need it if
 * there are too many for L2. */
ALWAYS_INLINE void prefetch_step(const uint8_t *body,
                                 const struct layer_numbers *layer,
                                 const struct query_step *step,
                                 enum read_width width, bool flags) {
#pragma GCC unroll 16
    for (int i = 0; i < STEP; i++) {
        const uint8_t *const words = body + 2 * (ptrdiff_t)step->words[i];
        if (flags) prefetch_l2(body + layer->flags_base + step->flags[i]);
        prefetch_l2(words);
        if (width == READ_8) {
            prefetch_l2(words + 47);
            continue;
        }
        prefetch_l2(words + 64);
        if (width == READ_32) prefetch_l2(words + 128);
        prefetch_l2(words + 4 * (ptrdiff_t)step->stride[i] +
                    (width == READ_16 ? 31 : 63));
    }
}

/* ---- Sums ---------------------------------------------------------------- */

/*
 * The sums of 8 queries: bytes 0 to 7 are the first 8 result bits of queries 0
 * to 7, bytes 8 to 15 their next 8 bits, and so on.
 *
 * A number of 64 bits in `x` has, in byte i, 8 coefficients of query i. All
 * bytes are multiplied by a matrix of query i, and byte i is stored. What is
 * left is to add up the matrices of a query.
 */
TARGET ALWAYS_INLINE __m512i multiply(__m512i sums, int query, __m512i x,
                                      __m512i matrices) {
    const uint64_t bytes = UINT64_C(0x0101010101010101);
    return _mm512_mask_gf2p8affine_epi64_epi8(sums, bytes << query, x, matrices,
                                              0);
}

TARGET ALWAYS_INLINE __m512i permuted(const uint8_t *order, __m512i x) {
    return _mm512_permutexvar_epi8(_mm512_load_si512(order), x);
}

TARGET ALWAYS_INLINE __m256i load_32(const uint8_t *from) {
    return _mm256_loadu_si256((const __m256i *)from);
}

TARGET ALWAYS_INLINE __m512i joined(__m256i low, __m256i high) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

TARGET ALWAYS_INLINE __m256i sum_of_halves(__m512i x) {
    return _mm256_xor_si256(_mm512_castsi512_si256(x),
                            _mm512_extracti64x4_epi64(x, 1));
}

/* Words of 16 bits to two matrices of 8 rows. */
TARGET ALWAYS_INLINE __m512i matrices_of(__m512i words) {
    return _mm512_shuffle_epi8(
        words, _mm512_broadcast_i32x4(_mm_setr_epi8(
                   14, 12, 10, 8, 6, 4, 2, 0, 15, 13, 11, 9, 7, 5, 3, 1)));
}

ALWAYS_INLINE const uint8_t *group_words(const uint8_t *body,
                                         const struct query_step *step, int i,
                                         int group) {
    return body +
           2 * ((ptrdiff_t)step->words[i] + group * (ptrdiff_t)step->stride[i]);
}

/* Six matrices of a query, of up to 48 bytes. Two loads of 32 bytes touch fewer
 * lines than one of 64. Coefficients 6 and 7 are 0. */
TARGET ALWAYS_INLINE __m256i sums_8(const uint8_t *body,
                                    const struct layer_numbers *layer,
                                    const struct query_step *step, int from) {
    static const _Alignas(64) uint8_t turned[64] = {
        BYTES_OF_8(0), BYTES_OF_8(1), BYTES_OF_8(2), BYTES_OF_8(3),
        BYTES_OF_8(4), BYTES_OF_8(5), BYTES_OF_8(6), BYTES_OF_8(7)};
    const __m512i x =
        permuted(turned, _mm512_load_si512(&step->coefficients[from]));
    __m512i sums = _mm512_setzero_si512();
#pragma GCC unroll 8
    for (int i = 0; i < HALF; i++) {
        const uint8_t *const words = group_words(body, step, from + i, 0);
        const __m512i both = joined(load_32(words), load_32(words + 16));
        sums =
            multiply(sums, i, x,
                     permuted(layer->order[0] + step->stride[from + i], both));
    }
    const __m256i y = sum_of_halves(sums);
    const __m128i z = _mm_xor_si128(_mm256_castsi256_si128(y),
                                    _mm256_extracti128_si256(y, 1));
    return _mm256_castsi128_si256(_mm_xor_si128(z, _mm_unpackhi_epi64(z, z)));
}

/* Twelve matrices of a query: one vector has the matrices of its first two
 * groups; another one has the matrices of its third group, and of the third
 * group of the next query. */
TARGET ALWAYS_INLINE __m256i sums_16(const uint8_t *body,
                                     const struct query_step *step, int from) {
    static const _Alignas(64) uint8_t turned[2][64] = {
        {BYTES_OF_8(0), BYTES_OF_8(1), BYTES_OF_8(0), BYTES_OF_8(1),
         BYTES_OF_8(2), BYTES_OF_8(3), BYTES_OF_8(2), BYTES_OF_8(3)},
        {BYTES_OF_8(4), BYTES_OF_8(5), BYTES_OF_8(4), BYTES_OF_8(5),
         BYTES_OF_8(4), BYTES_OF_8(5), BYTES_OF_8(4), BYTES_OF_8(5)}};
    const __m512i c = _mm512_load_si512(&step->coefficients[from]);
    const __m512i x = permuted(turned[0], c), third = permuted(turned[1], c);
    const uint64_t low = UINT32_C(0x01010101), high = low << 32;
    __m512i sums = _mm512_setzero_si512(), others = sums;
#pragma GCC unroll 4
    for (int i = 0; i < HALF; i += 2) {
        const int a = from + i, b = a + 1;
        sums = multiply(
            sums, i, x,
            matrices_of(joined(load_32(group_words(body, step, a, 0)),
                               load_32(group_words(body, step, a, 1)))));
        sums = multiply(
            sums, i + 1, x,
            matrices_of(joined(load_32(group_words(body, step, b, 0)),
                               load_32(group_words(body, step, b, 1)))));
        others = _mm512_mask_gf2p8affine_epi64_epi8(
            others, low << i | high << (i + 1), third,
            matrices_of(joined(load_32(group_words(body, step, a, 2)),
                               load_32(group_words(body, step, b, 2)))),
            0);
    }
    const __m256i y = sum_of_halves(_mm512_xor_si512(sums, others));
    return _mm256_permute4x64_epi64(
        _mm256_xor_si256(y, _mm256_shuffle_epi32(y, 0x4E)), 0x08);
}

/* Eight matrices of each group. */
TARGET ALWAYS_INLINE __m256i sums_32(const uint8_t *body,
                                     const struct query_step *step, int from) {
    static const _Alignas(64) uint8_t turned[SPAN_GROUPS][64] = {
        {BYTES_OF_8(0), BYTES_OF_8(1), BYTES_OF_8(0), BYTES_OF_8(1),
         BYTES_OF_8(0), BYTES_OF_8(1), BYTES_OF_8(0), BYTES_OF_8(1)},
        {BYTES_OF_8(2), BYTES_OF_8(3), BYTES_OF_8(2), BYTES_OF_8(3),
         BYTES_OF_8(2), BYTES_OF_8(3), BYTES_OF_8(2), BYTES_OF_8(3)},
        {BYTES_OF_8(4), BYTES_OF_8(5), BYTES_OF_8(4), BYTES_OF_8(5),
         BYTES_OF_8(4), BYTES_OF_8(5), BYTES_OF_8(4), BYTES_OF_8(5)}};
    const __m512i c = _mm512_load_si512(&step->coefficients[from]);
    const __m512i upper = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    __m512i all = _mm512_setzero_si512();
    for (int j = 0; j < SPAN_GROUPS; j++) {
        const __m512i x = permuted(turned[j], c);
        __m512i sums = _mm512_setzero_si512();
#pragma GCC unroll 8
        for (int i = 0; i < HALF; i++)
            sums = multiply(sums, i, x,
                            matrices_of(_mm512_loadu_si512(
                                group_words(body, step, from + i, j))));
        all = _mm512_xor_si512(all, sums);
    }
    return sum_of_halves(_mm512_permutexvar_epi64(upper, all));
}

TARGET ALWAYS_INLINE __m256i sums_of(const uint8_t *body,
                                     const struct layer_numbers *layer,
                                     const struct query_step *step, int from,
                                     enum read_width width) {
    if (width == READ_8) return sums_8(body, layer, step, from);
    if (width == READ_16) return sums_16(body, step, from);
    return sums_32(body, step, from);
}

/* ---- Answers ------------------------------------------------------------- */

/* Which of 8 queries have sums that agree with their results? */
TARGET ALWAYS_INLINE __mmask8 which_hold(const uint8_t *body,
                                         const struct layer_numbers *layer,
                                         const struct query_step *step,
                                         int from, enum read_width width) {
    const __m256i sums = sums_of(body, layer, step, from, width);
    const __m256i result = load_bytes(step->result[from / HALF], width);
    const uint32_t wide = (uint32_t)step->wide >> from & 0xFF;
    const __m256i mask = _mm256_mask_blend_epi8(
        width == READ_8 ? wide : wide * UINT32_C(0x01010101),
        load_32(layer->mask[0]), load_32(layer->mask[1]));
    uint32_t agree =
        ~_mm256_test_epi8_mask(_mm256_xor_si256(sums, result), mask);
    if (width == READ_32) agree &= agree >> 16;
    if (width != READ_8) agree &= agree >> 8;
    return (__mmask8)agree;
}

/* Which of 8 queries are bumped? */
TARGET ALWAYS_INLINE __mmask8 which_bumped(const uint8_t *body,
                                           const struct layer_numbers *layer,
                                           const struct query_step *step,
                                           int from) {
    const char *const base = (const char *)body + layer->flags_base;
    const int32_t *const at = &step->flags[from];
    __m128i flags = _mm_cvtsi32_si128(base[at[0]]);
    flags = _mm_insert_epi8(flags, base[at[1]], 1);
    flags = _mm_insert_epi8(flags, base[at[2]], 2);
    flags = _mm_insert_epi8(flags, base[at[3]], 3);
    flags = _mm_insert_epi8(flags, base[at[4]], 4);
    flags = _mm_insert_epi8(flags, base[at[5]], 5);
    flags = _mm_insert_epi8(flags, base[at[6]], 6);
    flags = _mm_insert_epi8(flags, base[at[7]], 7);
    return (__mmask8)_mm_test_epi8_mask(
        flags, _mm_loadl_epi64((const __m128i *)&step->flag[from]));
}

/* Answer 8 queries, of which the first has this number. Eight places of
 * `bumped` are written: no more were bumped before than there are queries
 * before. */
TARGET ALWAYS_INLINE void answer_half(const uint8_t *body,
                                      const struct layer_numbers *layer,
                                      const struct query_step *step, int from,
                                      size_t number, enum read_width width,
                                      struct layer_answers *answers) {
    const __mmask8 bumped = which_bumped(body, layer, step, from);
    const __mmask8 yes = which_hold(body, layer, step, from, width) & ~bumped;
    const __m128i numbers = _mm_add_epi16(
        _mm_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7), _mm_set1_epi16((short)number));
    _mm_storel_epi64((__m128i *)(answers->found + number),
                     _mm_maskz_mov_epi8(yes, _mm_set1_epi8(1)));
    _mm_storeu_si128((__m128i *)(answers->bumped + answers->bumps),
                     _mm_maskz_compress_epi16(bumped, numbers));
    answers->bumps += (size_t)__builtin_popcount(bumped);
}

/* Answer the last queries of a batch, fewer than a step. */
TARGET static void answer_rest(const uint8_t *body,
                               const struct layer_numbers *layer,
                               const struct query_step *step, size_t number,
                               size_t count, enum read_width width,
                               struct layer_answers *answers) {
    bool found[STEP];
    uint16_t bumped[2 * STEP];
    struct layer_answers rest = {found, bumped, 0};
    answer_half(body, layer, step, 0, 0, width, &rest);
    answer_half(body, layer, step, HALF, HALF, width, &rest);
    memcpy(answers->found + number, found, count);
    for (size_t i = 0; i < rest.bumps && bumped[i] < count; i++)
        answers->bumped[answers->bumps++] = (uint16_t)(number + bumped[i]);
}

/* A step is prefetched when the next one has been prepared: loads that follow a
 * store of 64 bytes at once have to wait for it. */
TARGET ALWAYS_INLINE size_t batch_of_width(const uint8_t *body,
                                           const struct shape *shape,
                                           struct batch batch,
                                           struct layer_answers answers,
                                           enum read_width width, bool flags) {
    const size_t all = batch.n + batch.more;
    struct query_step ring[RING_STEPS];
    struct layer_numbers numbers;
    const struct layer_numbers *layer = &numbers;
    size_t i = 0;
    set_numbers(&numbers, shape, width);
    __asm__("" : "+r"(layer) : : "memory"); /* no literals: see layer_numbers */
    for (size_t j = 0; j < AHEAD && j < all; j += STEP)
        prepare_from(layer, &batch, j, width, &ring[j / STEP]);
    for (size_t j = 0; j < AHEAD && j < all; j += STEP)
        if (j >= batch.prefetched)
            prefetch_step(body, layer, &ring[j / STEP], width, flags);
    const struct query_step *ready = NULL; /* and not prefetched */
    for (; i + STEP <= batch.n; i += STEP) {
        struct query_step *const step = &ring[i / STEP % RING_STEPS];
        answer_half(body, layer, step, 0, i, width, &answers);
        answer_half(body, layer, step, HALF, i + HALF, width, &answers);
        if (ready) prefetch_step(body, layer, ready, width, flags);
        ready = NULL;
        if (i + AHEAD < all) {
            prepare_from(layer, &batch, i + AHEAD, width, step);
            ready = step;
        }
    }
    if (ready) prefetch_step(body, layer, ready, width, flags);
    if (i < batch.n)
        answer_rest(body, layer, &ring[i / STEP % RING_STEPS], i, batch.n - i,
                    width, &answers);
    return answers.bumps;
}

/* Flags of more groups than these do not stay in L2. */
enum { GROUPS_IN_L2 = 1 << 21 };

TARGET static size_t ribbon_avx512_has_batch_in_layer(const uint8_t *body,
                                                      const struct shape *shape,
                                                      struct batch batch,
                                                      bool *found,
                                                      uint16_t *bumped) {
    const struct layer_answers to = {found, bumped, 0};
    if (!fits_lanes(shape))
        return ribbon_avx2.has_batch_in_layer(body, shape, batch, found,
                                              bumped);
    if (read_width_of(shape) == READ_32)
        return batch_of_width(body, shape, batch, to, READ_32, true);
    if (read_width_of(shape) == READ_16)
        return batch_of_width(body, shape, batch, to, READ_16, true);
    if (shape->blocks > GROUPS_IN_L2)
        return batch_of_width(body, shape, batch, to, READ_8, true);
    return batch_of_width(body, shape, batch, to, READ_8, false);
}

static size_t ribbon_avx512_has_batch(const uint8_t *body,
                                      const struct shape *shape,
                                      struct batch batch, bool *found) {
    return ribbon_has_batch(&ribbon_avx512, body, shape, batch, found);
}

/* ---- One lookup ---------------------------------------------------------- */

/* Which of 16 sums, or of 8, are 1? */
TARGET ALWAYS_INLINE uint32_t odd_sums_16(const uint8_t *words, uint64_t stride,
                                          uint64_t coefficients) {
    return _mm256_test_epi16_mask(
        _mm256_popcnt_epi16(chosen_rows_16(words, stride, coefficients)),
        _mm256_set1_epi16(1));
}

TARGET ALWAYS_INLINE uint32_t odd_sums_8(const uint8_t *words, uint64_t stride,
                                         uint64_t coefficients) {
    return _mm_test_epi16_mask(
        _mm_popcnt_epi16(chosen_rows_8(words, stride, coefficients)),
        _mm_set1_epi16(1));
}

TARGET ALWAYS_INLINE uint32_t odd_sums(const uint8_t *words, uint64_t stride,
                                       uint64_t coefficients,
                                       enum read_width width) {
    if (width == READ_8) return odd_sums_8(words, stride, coefficients);
    const uint32_t low = odd_sums_16(words, stride, coefficients);
    if (width == READ_16) return low;
    return low | odd_sums_16(words + 32, stride, coefficients) << 16;
}

/* The branch on the flag comes first: where it is taken wrong, that is known
 * before the words have come from memory. */
TARGET static enum layer_answer ribbon_avx512_has_in_layer(
    const uint8_t *body, const struct shape *shape, uint64_t hash) {
    const uint64_t group = group_of(hash, shape);
    if (is_bumped(body + flags_at(group, shape), group)) return LAYER_BUMPED;
    const enum read_width width = read_width_of(shape);
    const uint64_t mixed = ribbon_mix(hash);
    const uint32_t words = words_of(group, shape);
    const uint32_t sums =
        odd_sums(body + words_at(first_group(group, shape), shape), 2 * words,
                 ribbon_coefficients(mixed), width);
    uint32_t result = _pext_u32(ribbon_result(mixed), 0x55555555);
    if (width == READ_32)
        result |= _pext_u32(ribbon_result(mixed), 0xAAAAAAAA) << 16;
    return _bzhi_u32(sums ^ result, words) == 0 ? LAYER_YES : LAYER_NO;
}

TARGET static bool ribbon_avx512_has(const uint8_t *body,
                                     const struct shape *shape, uint64_t hash) {
    return ribbon_avx512_has_in_layer(body, shape, hash) == LAYER_YES;
}

/* Every processor with GFNI and AVX-512 has the others. */
static bool has_gfni(void) {
    __builtin_cpu_init();
    return __builtin_cpu_supports("gfni") &&
           __builtin_cpu_supports("avx512vbmi") &&
           __builtin_cpu_supports("avx512vbmi2") &&
           __builtin_cpu_supports("avx512bitalg");
}

const struct kernel ribbon_avx512 = {
    .level = CPU_AVX512,
    .runs = has_gfni,
    .has = ribbon_avx512_has,
    .has_batch = ribbon_avx512_has_batch,
    .has_in_layer = ribbon_avx512_has_in_layer,
    .has_batch_in_layer = ribbon_avx512_has_batch_in_layer,
};

#endif
