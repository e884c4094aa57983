/* The kinds of lines on x86 with AVX2: a line is two registers of 8 words,
 * and a column stands in the same place of both. */
#include "base/cpu.h"
#if ON_X86

#include "kind/avx2.h"
#include "kind/counting.h"
#include "kind/line_runs.h"

struct line {
    __m256i low, high; /* words 0 to 7, and 8 to 15 */
};

AVX2 MELT __m256i product_of(const uint64_t *hash) {
    return _mm256_mullo_epi32(low_half(hash),
                              _mm256_loadu_si256((const __m256i *)line_salt));
}

AVX2 MELT __m256i row_of(const uint64_t *hash, struct line_choice from) {
    const uint8_t *const rows = (const uint8_t *)line_rows;
    return _mm256_load_si256(
        (const __m256i *)(rows + line_chosen(*hash, from)));
}

/* The row of all columns. */
AVX2 MELT __m256i all_columns(void) {
    return _mm256_set1_epi32((int)(UINT32_C(1) << 31));
}

/* What tells the spots of the second bits. */
AVX2 MELT __m256i second(__m256i product) {
    return _mm256_slli_epi32(product, FIRST_SPOT - SECOND_SPOT);
}

AVX2 MELT struct line in_any(struct line a, struct line b) {
    return (struct line){_mm256_or_si256(a.low, b.low),
                         _mm256_or_si256(a.high, b.high)};
}

/* One bit in each column of a row. A shift by 32 and more, or by less than
 * none, leaves nothing. */
AVX2 MELT struct line spread(__m256i row, __m256i product) {
    const __m256i spot = _mm256_srli_epi32(product, FIRST_SPOT);
    const __m256i beyond = _mm256_sub_epi32(spot, _mm256_set1_epi32(32));
    return (struct line){_mm256_srlv_epi32(row, spot),
                         _mm256_srlv_epi32(row, beyond)};
}

AVX2 MELT struct line mask_of(const uint64_t *hash, struct line_choice from) {
    const __m256i product = product_of(hash), row = row_of(hash, from);
    if (!from.twice) return spread(row, product);
    return in_any(spread(all_columns(), product), spread(row, second(product)));
}

AVX2 MELT struct line load(const uint8_t *line) {
    const struct line is = {_mm256_load_si256((const __m256i *)line),
                            _mm256_load_si256((const __m256i *)(line + 32))};
    return is;
}

AVX2 MELT void store(void *to, struct line line) {
    _mm256_store_si256((__m256i *)to, line.low);
    _mm256_store_si256((__m256i *)((uint8_t *)to + 32), line.high);
}

/* What a has and b has not. */
AVX2 MELT struct line less(struct line a, struct line b) {
    return (struct line){_mm256_andnot_si256(b.low, a.low),
                         _mm256_andnot_si256(b.high, a.high)};
}

/* Which columns of a row miss their bit: their top bits. The top bit of a
 * product tells which word of the column to look at, the next five where. */
AVX2 MELT __m256i missing_in(const uint8_t *line, __m256i product,
                             __m256i row) {
    const __m256 word = _mm256_blendv_ps(
        _mm256_load_ps((const float *)line),
        _mm256_load_ps((const float *)line + 8), _mm256_castsi256_ps(product));
    const __m256i spot =
        _mm256_srli_epi32(_mm256_add_epi32(product, product), 27);
    return _mm256_andnot_si256(
        _mm256_sllv_epi32(_mm256_castps_si256(word), spot), row);
}

/* Which columns miss a bit of this key: their top bits. */
AVX2 MELT __m256i missing_to(const uint8_t *line, const uint64_t *hash,
                             struct line_choice from) {
    const __m256i product = product_of(hash), row = row_of(hash, from);
    if (!from.twice) return missing_in(line, product, row);
    return _mm256_or_si256(missing_in(line, product, all_columns()),
                           missing_in(line, second(product), row));
}

/* Add a key, and tell which columns missed no bit of it, by all their bits. */
AVX2 MELT __m256i kept_by(uint8_t *line, const uint64_t *hash,
                          struct line_choice from) {
    const struct line old = load(line);
    const struct line new = in_any(old, mask_of(hash, from));
    store(line, new);
    return _mm256_and_si256(_mm256_cmpeq_epi32(old.low, new.low),
                            _mm256_cmpeq_epi32(old.high, new.high));
}

/* The top bits of eight columns. */
AVX2 MELT uint32_t bits_of(__m256i columns) {
    return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(columns));
}

/* Define a touch_eight of either, which goes by fours. Packing halves the
 * length of what stands for a column, and keeps its top bit. It works on either
 * half of a register alone: so of 32 bits the lower 16 are of the first four
 * columns, four bits for each key, and the upper of the last four. (The keys as
 * an array would leave gcc 12 too few registers.) */
#define TOUCH_FOURS(name, columns_of)                                          \
    AVX2 MELT __m256i name##_at(const struct field *part,                      \
                                const uint64_t *hashes, size_t i,              \
                                struct line_choice from, struct calls calls) { \
        call_at(part, calls, i);                                               \
        return columns_of(line_of(part, hashes[i]), &hashes[i], from);         \
    }                                                                          \
    AVX2 MELT void name(const struct field *part, const uint64_t *hashes,      \
                        struct line_choice from, struct calls calls,           \
                        uint8_t *told) {                                       \
        _Pragma("GCC unroll 2") for (size_t i = 0; i < 8; i += 4) {            \
            const __m256i a = name##_at(part, hashes, i, from, calls);         \
            const __m256i b = name##_at(part, hashes, i + 1, from, calls);     \
            const __m256i first = _mm256_packs_epi32(a, b);                    \
            const __m256i c = name##_at(part, hashes, i + 2, from, calls);     \
            const __m256i d = name##_at(part, hashes, i + 3, from, calls);     \
            const __m256i last = _mm256_packs_epi32(c, d);                     \
            const __m256i four = _mm256_packs_epi16(first, last);              \
            store32(told + i, (uint32_t)_mm256_movemask_epi8(four));           \
        }                                                                      \
    }
TOUCH_FOURS(has_eight_avx2, missing_to)
TOUCH_FOURS(add_eight_avx2, kept_by)

/* Of 32 keys by fours, which have no bit? */
AVX2 MELT __m256i have_no_bit(__m256i fours) {
    const __m256i all = _mm256_or_si256(fours, _mm256_srli_epi32(fours, 16));
    const __m256i by_twos = _mm256_shuffle_epi8(
        all, _mm256_broadcastsi128_si256(_mm_setr_epi8(
                 0, 0, 1, 1, 4, 4, 5, 5, 8, 8, 9, 9, 12, 12, 13, 13)));
    const __m256i own = _mm256_set1_epi16((short)0xF00F);
    return are_zeros(_mm256_and_si256(by_twos, own));
}

AVX2 MELT __m256i have_all_bits(__m256i fours) {
    return have_no_bit(_mm256_xor_si256(fours, _mm256_set1_epi8(-1)));
}

AVX2 MELT bool in_line_avx2(const uint8_t *line, const uint64_t *hash,
                            struct line_choice from) {
    return bits_of(missing_to(line, hash, from)) == 0;
}

AVX2 MELT bool add_to_line_avx2(uint8_t *line, const uint64_t *hash,
                                struct line_choice from) {
    return bits_of(kept_by(line, hash, from)) != LINE_ALL;
}

/* Which of four words of 64 bits are not all zeros, one bit each. */
AVX2 MELT uint32_t words_in(__m256i half) {
    const __m256i zeros = _mm256_cmpeq_epi64(half, _mm256_setzero_si256());
    return 15 ^ (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(zeros));
}

AVX2 MELT uint32_t missing_avx2(const uint8_t *line, const uint64_t *hash,
                                struct line_choice from, struct line_mask *to) {
    const struct line missing = less(mask_of(hash, from), load(line));
    store(to, missing);
    return words_in(missing.low) | words_in(missing.high) << 4;
}

AVX2 MELT bool share_line_avx2(uint8_t *line, const uint64_t *hash,
                               struct line_choice from) {
    return share_one(line, hash, from, missing_avx2) != 0;
}

/* ---- Four questions of many parts ---------------------------------------- */

/*
 * A filter that has grown asks every part, and a key sets the same bits in a
 * line of each that has the same number of probes. So masks are made once for
 * four keys, and held against one part after the other without leaving their
 * registers. They are kept inside out, as all the bits that a key does not
 * want: then one instruction loads a line and puts it to the question.
 */
struct four {
    struct line unwanted[4];
};

AVX2 MELT struct line unwanted_by(const uint64_t *hash, uint32_t probes) {
    const struct line mask = mask_of(hash, line_choices[probes]);
    const __m256i all = _mm256_set1_epi32(-1);
    return (struct line){_mm256_xor_si256(mask.low, all),
                         _mm256_xor_si256(mask.high, all)};
}

AVX2 MELT struct four four_of(const uint64_t *hashes, uint32_t probes) {
    return (struct four){
        {unwanted_by(&hashes[0], probes), unwanted_by(&hashes[1], probes),
         unwanted_by(&hashes[2], probes), unwanted_by(&hashes[3], probes)}};
}

/* All ones if the key i is in its line. */
AVX2 MELT __m256i covered(const struct four *four, const uintptr_t *lines,
                          size_t i) {
    const struct line line = load((const uint8_t *)lines[i]);
    return _mm256_and_si256(_mm256_or_si256(line.low, four->unwanted[i].low),
                            _mm256_or_si256(line.high, four->unwanted[i].high));
}

/* Which of four keys are in their lines: all ones in a word of each, in either
 * half. Packing makes each word half as long, and -1 only of -1. */
AVX2 MELT __m256i found_in(const struct four *four, const uintptr_t *lines) {
    const __m256i first =
        _mm256_packs_epi32(covered(four, lines, 0), covered(four, lines, 1));
    const __m256i last =
        _mm256_packs_epi32(covered(four, lines, 2), covered(four, lines, 3));
    const __m256i all = _mm256_packs_epi16(first, last);
    const __m256i both =
        _mm256_and_si256(all, _mm256_permute4x64_epi64(all, 0x4E));
    return _mm256_cmpeq_epi32(both, _mm256_set1_epi32(-1));
}

/* A ring of groups of four keys. Their lines are called a while before they are
 * asked, and worked out a group before that: a tenth faster than to call them
 * at once. */
enum { GROUPS = 8, CALLED_AHEAD = 4, WORKED_OUT_AHEAD = 5 };

typedef uintptr_t lines_of_four[FIELDS_AT_ONCE][4];

/* scale64 for four hashes, of fewer than 2^32 lines, as addresses. */
AVX2 MELT __m256i lines_of(__m256i hashes, const struct field *part) {
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

AVX2 MELT void work_out_four(uintptr_t *lines, const uint64_t *hashes,
                             const struct field *part) {
    const __m256i four = _mm256_loadu_si256((const __m256i *)hashes);
    _mm256_store_si256((__m256i *)lines, lines_of(four, part));
}

AVX2 MELT void call_four(const uintptr_t *lines) {
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++) call_near((const uint8_t *)lines[i]);
}

/* Answers of four, from words to bytes, beside those that are there. */
AVX2 MELT void or_answers(bool *to, __m256i found) {
    const __m128i halves = _mm_packs_epi32(_mm256_castsi256_si128(found),
                                           _mm256_extracti128_si256(found, 1));
    const __m128i bytes = _mm_packs_epi16(halves, halves);
    store32(to,
            load32(to) | ((uint32_t)_mm_cvtsi128_si32(bytes) & 0x01010101u));
}

AVX2 void line_has_in_any(const struct field *parts, size_t count,
                          const uint64_t *hashes, size_t n, bool *found) {
    _Alignas(32) lines_of_four ring[GROUPS];
    const size_t groups = n / 4;
    for (size_t g = 0; g < groups && g < WORKED_OUT_AHEAD; g++)
        for (size_t p = 0; p < count; p++) {
            work_out_four(ring[g][p], &hashes[4 * g], &parts[p]);
            if (g < CALLED_AHEAD) call_four(ring[g][p]);
        }
    for (size_t g = 0; g < groups; g++) {
        /* Near the end, groups at hand are called again: that does no harm. */
        const size_t called = g + CALLED_AHEAD < groups ? g + CALLED_AHEAD : g;
        const size_t last = groups - 1, ahead = g + WORKED_OUT_AHEAD;
        const uint64_t *const later =
            &hashes[4 * (ahead < last ? ahead : last)];
        const uint64_t *const now = &hashes[4 * g];
        uint32_t probes = parts[0].shape.probes;
        struct four four = four_of(now, probes);
        __m256i yes = _mm256_setzero_si256();
        for (size_t p = 0; p < count; p++) {
            if (__builtin_expect(probes != parts[p].shape.probes, false)) {
                probes = parts[p].shape.probes;
                four = four_of(now, probes);
            }
            work_out_four(ring[ahead % GROUPS][p], later, &parts[p]);
            call_four(ring[called % GROUPS][p]);
            yes = _mm256_or_si256(yes, found_in(&four, ring[g % GROUPS][p]));
        }
        or_answers(&found[4 * g], yes);
    }
    for (size_t i = 4 * groups; i < n; i++)
        for (size_t p = 0; p < count && !found[i]; p++)
            found[i] = in_line_avx2(
                parts[p].body + line_offset(hashes[i], &parts[p].shape),
                &hashes[i], line_choices[parts[p].shape.probes]);
}

/* ---- The kernels --------------------------------------------------------- */

LINE_SINGLES(avx2, AVX2, in_line_avx2, add_to_line_avx2, share_line_avx2)
LINE_RUN(avx2_has_run, AVX2, const, true, true, in_line_avx2, has_eight_avx2,
         have_no_bit)
LINE_RUN(avx2_add_run, AVX2, , false, false, add_to_line_avx2, add_eight_avx2,
         have_all_bits)
LINE_KERNELS_OF_RUNS(avx2, CPU_AVX2, AVX2, missing_avx2)
LINE2_KERNELS(avx2, CPU_AVX2, AVX2)

/* ---- Counting ------------------------------------------------------------ */

AVX2 MELT struct line in_both(struct line a, struct line b) {
    return (struct line){_mm256_and_si256(a.low, b.low),
                         _mm256_and_si256(a.high, b.high)};
}

AVX2 MELT struct line in_one(struct line a, struct line b) {
    return (struct line){_mm256_xor_si256(a.low, b.low),
                         _mm256_xor_si256(a.high, b.high)};
}

AVX2 MELT bool any(struct line a) {
    const __m256i both = _mm256_or_si256(a.low, a.high);
    return !_mm256_testz_si256(both, both);
}

AVX2 MELT bool low_avx2(uint8_t *body, const struct shape *shape, size_t line,
                        const uint64_t *hash, struct line_mask *carry,
                        bool *carries) {
    uint8_t *const plane0 = body + plane_offset(shape, line, 0);
    const struct line mask = mask_of(hash, line_choices[shape->probes]);
    const struct line old = load(body + line), p0 = load(plane0);
    const struct line again = in_both(old, mask), next = in_both(p0, again);
    store(body + line, in_any(old, mask));
    store(plane0, in_one(p0, again));
    store(carry, next);
    *carries = any(next);
    return any(less(mask, old));
}

AVX2 MELT void high_avx2(uint8_t *body, const struct shape *shape, size_t line,
                         const struct line_mask *carry) {
    uint8_t *const plane1 = body + plane_offset(shape, line, 1);
    const struct line p1 = load(plane1), more = load((const uint8_t *)carry);
    const struct line next = in_both(p1, more);
    store(plane1, in_one(p1, more));
    if (__builtin_expect(any(next), false)) {
        struct line_mask rest;
        store(&rest, next);
        counting_carry(body, shape, line, &rest);
    }
}

/* Counters that reach into plane 3 are left to the plain kernel; so none that
 * is met here is at 15. */
AVX2 MELT enum removal remove_avx2(uint8_t *body, const struct shape *shape,
                                   const uint64_t *hash) {
    const size_t at = line_offset(*hash, shape);
    static const struct line_mask nothing;
    const uint32_t marks = marks_of(body, shape, at);
    uint8_t *const line = body + at;
    uint8_t *const plane0 = body + plane_offset(shape, at, 0);
    uint8_t *const plane1 = body + plane_offset(shape, at, 1);
    const uint8_t *const plane2 = body + plane_offset(shape, at, 2);
    if (__builtin_expect(marks > 1, false))
        return counting_remove_scalar(body, shape, hash);

    const struct line mask = mask_of(hash, line_choices[shape->probes]),
                      old = load(line);
    if (any(less(mask, old))) return KEY_ABSENT;
    const struct line p0 = load(plane0), p1 = load(plane1);
    const struct line p2 = load(marks ? plane2 : (const uint8_t *)&nothing);
    const struct line counted = in_both(mask, in_any(in_any(p0, p1), p2));
    const struct line borrow1 = less(counted, p0), borrow2 = less(borrow1, p1);
    store(line, less(old, less(mask, counted)));
    store(plane0, in_one(p0, counted));
    store(plane1, in_one(p1, borrow1));
    if (__builtin_expect(any(borrow2), false)) {
        struct line_mask borrow;
        store(&borrow, borrow2);
        counting_borrow(body, shape, at, &borrow);
    }
    return KEY_REMOVED;
}

COUNTING_KERNEL(counting_avx2, CPU_AVX2, AVX2, one_avx2_has, avx2_has_run,
                low_avx2, high_avx2, remove_avx2, line_has_in_any, true)

#endif
