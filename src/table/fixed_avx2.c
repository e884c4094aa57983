/*
 * The kernel of fixed tables for x86 with AVX2: four keys at a time.
 *
 * A lookup is arithmetic on words, except for two loads that depend on it: of
 * the header, and of the word that its run begins in. So a batch is processed
 * in passes over some 64 keys: lines and headers; then vectors derive from four
 * headers where the runs begin; then the words are loaded, and compared.
 */
#include "base/cpu.h"
#if ON_X86

#include <immintrin.h>

#include "kind/prefetch.h"
#include "table/fixed.h"

AVX2 ALWAYS_INLINE __m256i four(uint64_t x) {
    return _mm256_set1_epi64x((long long)x);
}

AVX2 ALWAYS_INLINE __m256i load_four(const uint64_t *from) {
    return _mm256_load_si256((const __m256i *)from);
}

AVX2 ALWAYS_INLINE void store_four(uint64_t *to, __m256i x) {
    _mm256_store_si256((__m256i *)to, x);
}

/* A word at any byte, that another thread may be writing to: then the lookup is
 * repeated. */
typedef uint64_t __attribute__((aligned(1), may_alias)) loose_word;

AVX2 ALWAYS_INLINE uint64_t loose_word_at(const uint8_t *at) {
    return *(const loose_word *)at;
}

enum { KEYS = 64 }; /* of a pass */

struct pass {
    _Alignas(32) const uint8_t *line[KEYS];
    _Alignas(32) uint64_t rest[KEYS]; /* after the line in hash * blocks      */
    _Alignas(32) uint64_t header[KEYS];
    _Alignas(32) uint64_t begin[KEYS];  /* of the run: a bit of the line      */
    _Alignas(32) uint64_t want[KEYS];   /* the remainder in all fields        */
    _Alignas(32) uint64_t counts[KEYS]; /* bits of fields that the run has    */
    _Alignas(32) uint64_t again[KEYS];
    _Alignas(32) uint64_t word[KEYS];
};

/* (1 << n) - 1 */
AVX2 ALWAYS_INLINE __m256i ones_below(__m256i n) {
    return _mm256_sub_epi64(_mm256_sllv_epi64(four(1), n), four(1));
}

/* sum_counts: 10 fields of 6 bits become 5, which a product of 32 bits adds. */
AVX2 ALWAYS_INLINE __m256i sum_four(__m256i counts) {
    const __m256i odd = four(UINT64_C(0x01C71C71C71C71C7));
    const __m256i pairs =
        _mm256_add_epi64(_mm256_and_si256(counts, odd),
                         _mm256_and_si256(_mm256_srli_epi64(counts, 3), odd));
    const __m256i fives =
        _mm256_and_si256(_mm256_add_epi64(pairs, _mm256_srli_epi64(pairs, 30)),
                         four((1 << 30) - 1));
    return _mm256_and_si256(
        _mm256_srli_epi64(_mm256_mul_epu32(fives, four(0x01041041)), 24),
        four(63));
}

/* From the rests and headers of four keys, what fixed_place_of and look_in
 * compute for one: `run` is the bit of the header where the run's count is. */
AVX2 ALWAYS_INLINE void derive_four(const struct fixed_table *t,
                                    struct pass *pass, size_t i) {
    const struct slot_form *const form = &t->form;
    const __m256i bits = four(form->bits), fields = four(form->fields);
    /* The rest * 20: the whole part is the run, the rest of it times R the
     * remainder. `want` repeats the remainder in every field. */
    const __m256i runs =
        _mm256_mul_epu32(load_four(pass->rest + i), four(RUNS));
    const __m256i run = _mm256_mul_epu32(_mm256_srli_epi64(runs, 32), four(3));
    const __m256i remainder =
        _mm256_srli_epi64(_mm256_mul_epu32(runs, four(t->remainders)), 32);
    const __m256i want = _mm256_add_epi64(
        _mm256_mul_epu32(remainder, four(form->ones & UINT32_MAX)),
        _mm256_slli_epi64(_mm256_mul_epu32(remainder, four(form->ones >> 32)),
                          32));
    /* The counts before the run add up to its first slot. */
    const __m256i header = load_four(pass->header + i);
    const __m256i begin = sum_four(_mm256_and_si256(header, ones_below(run)));
    const __m256i count =
        _mm256_and_si256(_mm256_srlv_epi64(header, run), four(RUN_MOST));
    const __m256i in_word =
        _mm256_mul_epu32(_mm256_min_epu32(count, fields), bits);
    /* may_have_spilled */
    const __m256i may_be =
        _mm256_or_si256(_mm256_cmpeq_epi64(begin, _mm256_setzero_si256()),
                        _mm256_cmpeq_epi64(count, four(RUN_MOST)));
    const __m256i spilled = _mm256_srli_epi64(header, SPILLED_FLAG);
    store_four(pass->begin + i, _mm256_mul_epu32(begin, bits));
    store_four(pass->want + i, want);
    store_four(pass->counts + i,
               _mm256_and_si256(ones_below(in_word), four(form->high)));
    store_four(pass->again + i,
               _mm256_or_si256(_mm256_cmpgt_epi64(count, fields),
                               _mm256_and_si256(spilled, may_be)));
}

/* Compare four. Returns a bit for each key that was found, and 4 bits above for
 * the keys to look at again. As equal_fields does: adding `low` to the low bits
 * of a field carries into its highest bit unless they are 0. */
AVX2 ALWAYS_INLINE uint32_t compare_four(const struct slot_form *form,
                                         const struct pass *pass, size_t i) {
    const __m256i low = four(form->high - form->ones);
    const __m256i shift = _mm256_and_si256(load_four(pass->begin + i), four(7));
    const __m256i differ =
        _mm256_xor_si256(_mm256_srlv_epi64(load_four(pass->word + i), shift),
                         load_four(pass->want + i));
    const __m256i unequal = _mm256_or_si256(
        _mm256_add_epi64(_mm256_and_si256(differ, low), low), differ);
    const __m256i equal =
        _mm256_andnot_si256(unequal, load_four(pass->counts + i));
    const __m256i none = _mm256_cmpeq_epi64(equal, _mm256_setzero_si256());
    const __m256i again = _mm256_slli_epi64(
        _mm256_and_si256(none, load_four(pass->again + i)), 63);
    const int absent = _mm256_movemask_pd(_mm256_castsi256_pd(none));
    return (uint32_t)((absent ^ 15) |
                      _mm256_movemask_pd(_mm256_castsi256_pd(again)) << 4);
}

AVX2 ALWAYS_INLINE void load_lines(const struct fixed_table *t,
                                   const struct batch *batch, size_t from,
                                   size_t n, struct pass *pass) {
    const size_t all = batch->n + batch->more;
    for (size_t i = 0; i < n; i++) {
        const size_t ahead = from + i + PREFETCH_DISTANCE;
        if (ahead < all)
            prefetch_l1(
                fixed_line(t, scale64(batch->hashes[ahead], t->blocks)));
        const struct scaled place =
            scale_whole(batch->hashes[from + i], t->blocks);
        pass->line[i] = fixed_line(t, place.whole);
        pass->rest[i] = place.rest >> 32;
        pass->header[i] = get_header(pass->line[i]);
    }
}

/* Look at keys of a batch, four at a time, as far as that goes. Returns their
 * number. */
AVX2 static size_t look_at_4(const struct fixed_table *t,
                             const struct batch *batch, bool *found,
                             struct again_list *again, size_t *yes) {
    const size_t whole = batch->n / 4 * 4;
    struct pass pass;
    for (size_t from = 0; from < whole; from += KEYS) {
        const size_t n = whole - from < KEYS ? whole - from : KEYS;
        load_lines(t, batch, from, n, &pass);
        for (size_t i = 0; i < n; i += 4) derive_four(t, &pass, i);
        for (size_t i = 0; i < n; i++)
            pass.word[i] = loose_word_at(pass.line[i] + pass.begin[i] / 8 % 64);
        for (size_t i = 0; i < n; i += 4) {
            const uint32_t answer = compare_four(&t->form, &pass, i);
            const uint32_t is = answer & 15;
            store32(found + from + i, is * 0x00204081 & 0x01010101);
            *yes += (size_t)__builtin_popcount(is);
            for (uint32_t left = answer >> 4; left; left &= left - 1)
                again->at[again->n++] =
                    (uint16_t)(from + i + (size_t)__builtin_ctz(left));
        }
    }
    return whole;
}

/* ---- Additions ----------------------------------------------------------- */

/* Bits from `bit` on, in the words of half a line that begin at these bits. */
AVX2 ALWAYS_INLINE __m256i bits_from(__m256i bit, __m256i words) {
    return _mm256_sllv_epi64(four(UINT64_MAX), _mm256_subs_epu16(bit, words));
}

/* Half a line with a slot inserted, given what its slots become if they all
 * move up: old bits before the slot, the remainder, moved bits after it. */
AVX2 ALWAYS_INLINE __m256i insert_in_half(__m256i half, __m256i moved,
                                          __m256i words, uint64_t bit,
                                          uint64_t bits, uint64_t remainder) {
    const __m256i at = _mm256_sub_epi64(four(bit), words);
    const __m256i back = _mm256_sub_epi64(words, four(bit));
    const __m256i value =
        _mm256_or_si256(_mm256_sllv_epi64(four(remainder), at),
                        _mm256_srlv_epi64(four(remainder), back));
    const __m256i from = bits_from(four(bit), words);
    const __m256i after = bits_from(four(bit + bits), words);
    return _mm256_or_si256(
        _mm256_or_si256(_mm256_andnot_si256(from, half), value),
        _mm256_and_si256(moved, after));
}

AVX2 ALWAYS_INLINE void insert_slot(const struct fixed_table *t, uint8_t *line,
                                    uint64_t slot, uint64_t remainder,
                                    uint64_t header) {
    const uint64_t bits = t->form.bits, bit = slot * bits;
    const __m128i up = _mm_cvtsi32_si128((int)bits);
    const __m128i down = _mm_cvtsi32_si128((int)(64 - bits));
    const __m256i low = _mm256_load_si256((const __m256i *)line);
    const __m256i high = _mm256_load_si256((const __m256i *)(line + 32));
    /* `before`: the word before each word, whose top bits move up into it. The
     * word before the upper half is word 3. */
    const __m256i low_next = _mm256_permute4x64_epi64(low, 0x93);
    const __m256i high_next = _mm256_permute4x64_epi64(high, 0x93);
    const __m256i before_low =
        _mm256_blend_epi32(low_next, _mm256_setzero_si256(), 0x03);
    const __m256i before_high = _mm256_blend_epi32(high_next, low_next, 0x03);
    const __m256i low_now = insert_in_half(
        low,
        _mm256_or_si256(_mm256_sll_epi64(low, up),
                        _mm256_srl_epi64(before_low, down)),
        _mm256_setr_epi64x(0, 64, 128, 192), bit, bits, remainder);
    const __m256i high_now = insert_in_half(
        high,
        _mm256_or_si256(_mm256_sll_epi64(high, up),
                        _mm256_srl_epi64(before_high, down)),
        _mm256_setr_epi64x(256, 320, 384, 448), bit, bits, remainder);
    _mm256_store_si256((__m256i *)line, low_now);
    _mm256_store_si256((__m256i *)(line + 32),
                       _mm256_blend_epi32(high_now, four(header), 0xC0));
}

#define TARGET AVX2
#include "table/fixed_kernel_template.h"

const struct kernel fixed_bucket_avx2 = FIXED_BUCKET_KERNEL(CPU_AVX2);
const struct kernel fixed_distinct_avx2 = FIXED_DISTINCT_KERNEL(CPU_AVX2);
#endif
