/* The kinds of lines on x86 with AVX2: a line is two registers of 8 words. */
#include "base/cpu.h"
#if ON_X86

#include "kind/avx2.h"
#include "kind/counting.h"
#include "kind/line_runs.h"

struct line {
    __m256i low, high; /* words 0 to 7, and 8 to 15 */
};

/* One bit in each of eight words that take part, by eight bytes of a row. */
AVX2 MELT __m256i bits_in(__m256i hash, const uint8_t *row,
                          const uint32_t *salt) {
    const __m256i product =
        _mm256_mullo_epi32(hash, _mm256_loadu_si256((const __m256i *)salt));
    const __m256i ones =
        _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)row));
    return _mm256_sllv_epi32(ones, _mm256_srli_epi32(product, 27));
}

AVX2 MELT struct line mask_of(const uint64_t *hash, const uint8_t *row) {
    const __m256i low = low_half(hash);
    const struct line mask = {bits_in(low, row, line_salt),
                              bits_in(low, row + 8, line_salt + 8)};
    return mask;
}

AVX2 MELT struct line load(const uint8_t *line) {
    const struct line is = {_mm256_load_si256((const __m256i *)line),
                            _mm256_load_si256((const __m256i *)(line + 32))};
    return is;
}

/* What a mask has and a line has not, all in one register. */
AVX2 MELT __m256i missing_of(struct line line, struct line mask) {
    return _mm256_or_si256(_mm256_andnot_si256(line.low, mask.low),
                           _mm256_andnot_si256(line.high, mask.high));
}

AVX2 MELT bool in_line_avx2(const uint8_t *line, const uint64_t *hash,
                            const uint8_t *row) {
    const __m256i missing = missing_of(load(line), mask_of(hash, row));
    return _mm256_testz_si256(missing, missing);
}

/* Tells what was missing. */
AVX2 MELT __m256i add_mask(uint8_t *line, struct line mask) {
    const struct line old = load(line);
    _mm256_store_si256((__m256i *)line, _mm256_or_si256(old.low, mask.low));
    _mm256_store_si256((__m256i *)(line + 32),
                       _mm256_or_si256(old.high, mask.high));
    return missing_of(old, mask);
}

AVX2 MELT bool add_to_line_avx2(uint8_t *line, const uint64_t *hash,
                                const uint8_t *row) {
    const __m256i missing = add_mask(line, mask_of(hash, row));
    return !_mm256_testz_si256(missing, missing);
}

/* Which of four words of 64 bits are not all zeros, one bit each. */
AVX2 MELT uint32_t words_in(__m256i half) {
    const __m256i zeros = _mm256_cmpeq_epi64(half, _mm256_setzero_si256());
    return 15 ^ (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(zeros));
}

AVX2 MELT uint32_t missing_avx2(const uint8_t *line, const uint64_t *hash,
                                const uint8_t *row, struct line_mask *to) {
    const struct line mask = mask_of(hash, row), old = load(line);
    const struct line missing = {_mm256_andnot_si256(old.low, mask.low),
                                 _mm256_andnot_si256(old.high, mask.high)};
    _mm256_store_si256((__m256i *)&to->word[0], missing.low);
    _mm256_store_si256((__m256i *)&to->word[4], missing.high);
    return words_in(missing.low) | words_in(missing.high) << 4;
}

AVX2 MELT bool share_line_avx2(uint8_t *line, const uint64_t *hash,
                               const uint8_t *row) {
    struct line_mask missing;
    const uint32_t words = missing_avx2(line, hash, row, &missing);
    line_share(line, &missing, words);
    return words != 0;
}

/* ---- Eight questions at once --------------------------------------------- */

/* What hash i + j of a run misses, with call j; and the same when it is added.
 */
typedef __m256i missing_at(struct run now, size_t i, struct calls calls,
                           size_t j);

AVX2 MELT __m256i asked_at(struct run now, size_t i, struct calls calls,
                           size_t j) {
    call_at(calls, j);
    return missing_of(load(line_at(now, i + j)),
                      mask_of(&now.hashes[i + j], row_at(now, i + j)));
}

AVX2 MELT __m256i added_at(struct run now, size_t i, struct calls calls,
                           size_t j) {
    call_at(calls, j);
    return add_mask(line_at(now, i + j),
                    mask_of(&now.hashes[i + j], row_at(now, i + j)));
}

/* Packing makes each word half as long, but never zero if it was not; so what
 * eight keys miss comes to fit into two registers, of 32 bits a key in each
 * half. */
AVX2 MELT __m256i missing_by_two(struct run now, size_t i, struct calls calls,
                                 size_t j, missing_at *at) {
    const __m256i first = at(now, i, calls, j);
    const __m256i second = at(now, i, calls, j + 1);
    return _mm256_packs_epi32(first, second);
}

AVX2 MELT __m256i missing_by_four(struct run now, size_t i, struct calls calls,
                                  size_t j, missing_at *at) {
    const __m256i first = missing_by_two(now, i, calls, j, at);
    const __m256i last = missing_by_two(now, i, calls, j + 2, at);
    return _mm256_packs_epi16(first, last);
}

/* Which of eight keys miss nothing: all ones in the word of each. */
AVX2 MELT __m256i found_of(__m256i first, __m256i last) {
    const __m256i missing =
        _mm256_or_si256(_mm256_permute2x128_si256(first, last, 0x20),
                        _mm256_permute2x128_si256(first, last, 0x31));
    return _mm256_cmpeq_epi32(missing, _mm256_setzero_si256());
}

/* The same with a byte for each key. */
AVX2 MELT __m128i bytes_of(__m256i found) {
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(found),
                                          _mm256_extracti128_si256(found, 1));
    return _mm_packs_epi16(words, words);
}

AVX2 MELT __m128i found_by_eight(struct run now, size_t i, struct calls calls,
                                 missing_at *at) {
    const __m256i first = missing_by_four(now, i, calls, 0, at);
    const __m256i last = missing_by_four(now, i, calls, 4, at);
    return bytes_of(found_of(first, last));
}

AVX2 MELT void store_answers(bool *to, __m128i answers) {
    _mm_storel_epi64((__m128i *)to, answers);
}

AVX2 MELT void in_eight_avx2(struct run now, size_t i, struct calls calls,
                             bool *to) {
    const __m128i found = found_by_eight(now, i, calls, asked_at);
    store_answers(to + i, _mm_and_si128(found, _mm_set1_epi8(1)));
}

AVX2 MELT void add_eight_avx2(struct run now, size_t i, struct calls calls,
                              bool *to) {
    const __m128i found = found_by_eight(now, i, calls, added_at);
    store_answers(to + i, _mm_andnot_si128(found, _mm_set1_epi8(1)));
}

/* ---- Eight questions of many parts --------------------------------------- */

/*
 * A filter that has grown asks every part, and a key sets the same bits in a
 * line of each that has the same number of probes. So the masks of eight keys
 * are made once, and then held against one part after the other.
 */
struct eight {
    uint32_t probes; /* that the masks are for; 0 before the first */
    struct line mask[8];
};

AVX2 MELT void make_masks(struct eight *to, const uint64_t *hashes,
                          uint32_t probes) {
    uint32_t rows[8];
    store_rows(rows, hashes, line_choices[probes]);
    for (size_t i = 0; i < 8; i++)
        to->mask[i] = mask_of(&hashes[i], all_rows() + rows[i]);
    to->probes = probes;
}

AVX2 MELT __m256i lacks(const struct eight *eight, const uintptr_t *lines,
                        size_t i) {
    return missing_of(load((const uint8_t *)lines[i]), eight->mask[i]);
}

AVX2 MELT __m256i lack_by_four(const struct eight *eight,
                               const uintptr_t *lines, size_t i) {
    const __m256i first =
        _mm256_packs_epi32(lacks(eight, lines, i), lacks(eight, lines, i + 1));
    const __m256i last = _mm256_packs_epi32(lacks(eight, lines, i + 2),
                                            lacks(eight, lines, i + 3));
    return _mm256_packs_epi16(first, last);
}

enum { GROUPS_AHEAD = 2, GROUPS = 4 }; /* of eight; a ring */

/* While one group of eight is asked of a part, the lines of a later one are
 * called there. */
AVX2 void line_has_in_any(const struct field *parts, size_t count,
                          const uint64_t *hashes, size_t n, bool *found) {
    uintptr_t lines[GROUPS][FIELDS_AT_ONCE][8];
    const size_t groups = n / 8;
    for (size_t g = 0; g < groups + GROUPS_AHEAD; g++) {
        const size_t now = g - GROUPS_AHEAD;
        const bool asks = g >= GROUPS_AHEAD, calls = g < groups;
        struct eight eight;
        eight.probes = 0;
        __m256i yes = _mm256_setzero_si256();
        for (size_t p = 0; p < count; p++) {
            uintptr_t *const later = lines[g % GROUPS][p];
            if (calls) {
                store_lines(later, &hashes[8 * g], &parts[p]);
#pragma GCC unroll 8
                for (size_t i = 0; i < 8; i++)
                    call_near((const uint8_t *)later[i]);
            }
            if (!asks) continue;
            if (eight.probes != parts[p].shape.probes)
                make_masks(&eight, &hashes[8 * now], parts[p].shape.probes);
            const uintptr_t *const at = lines[now % GROUPS][p];
            yes = _mm256_or_si256(yes, found_of(lack_by_four(&eight, at, 0),
                                                lack_by_four(&eight, at, 4)));
        }
        if (asks) {
            const __m128i any =
                _mm_loadl_epi64((const __m128i *)&found[8 * now]);
            const __m128i here = _mm_and_si128(bytes_of(yes), _mm_set1_epi8(1));
            store_answers(&found[8 * now], _mm_or_si128(any, here));
        }
    }
    for (size_t i = 8 * groups; i < n; i++)
        for (size_t p = 0; p < count && !found[i]; p++)
            found[i] = in_line_avx2(
                parts[p].body + line_offset(hashes[i], &parts[p].shape),
                &hashes[i], line_row(hashes[i], parts[p].shape.probes));
}

/* ---- The kernels --------------------------------------------------------- */

LINE_SINGLES(avx2, AVX2, in_line_avx2, add_to_line_avx2, share_line_avx2)
LINE_KERNELS_OF_EIGHT(avx2, CPU_AVX2, AVX2, in_line_avx2, in_eight_avx2,
                      add_to_line_avx2, add_eight_avx2, share_line_avx2,
                      missing_avx2)
LINE2_KERNELS(avx2, CPU_AVX2, AVX2)

/* ---- Counting ------------------------------------------------------------ */

AVX2 MELT void store(void *to, struct line line) {
    _mm256_store_si256((__m256i *)to, line.low);
    _mm256_store_si256((__m256i *)((uint8_t *)to + 32), line.high);
}

AVX2 MELT struct line in_both(struct line a, struct line b) {
    return (struct line){_mm256_and_si256(a.low, b.low),
                         _mm256_and_si256(a.high, b.high)};
}

AVX2 MELT struct line in_any(struct line a, struct line b) {
    return (struct line){_mm256_or_si256(a.low, b.low),
                         _mm256_or_si256(a.high, b.high)};
}

AVX2 MELT struct line in_one(struct line a, struct line b) {
    return (struct line){_mm256_xor_si256(a.low, b.low),
                         _mm256_xor_si256(a.high, b.high)};
}

/* What a has and b has not. */
AVX2 MELT struct line less(struct line a, struct line b) {
    return (struct line){_mm256_andnot_si256(b.low, a.low),
                         _mm256_andnot_si256(b.high, a.high)};
}

AVX2 MELT bool any(struct line a) {
    const __m256i both = _mm256_or_si256(a.low, a.high);
    return !_mm256_testz_si256(both, both);
}

AVX2 MELT bool count_avx2(uint8_t *body, const struct shape *shape,
                          const uint64_t *hash) {
    const size_t at = line_offset(*hash, shape);
    uint8_t *const line = body + at;
    uint8_t *const plane0 = body + plane_offset(shape, at, 0);
    uint8_t *const plane1 = body + plane_offset(shape, at, 1);
    const struct line mask = mask_of(hash, line_row(*hash, shape->probes)),
                      old = load(line);
    const struct line p0 = load(plane0), p1 = load(plane1);
    const struct line again = in_both(old, mask);
    const struct line carry1 = in_both(p0, again), carry2 = in_both(p1, carry1);
    store(line, in_any(old, mask));
    store(plane0, in_one(p0, again));
    store(plane1, in_one(p1, carry1));
    if (__builtin_expect(any(carry2), false)) {
        struct line_mask carry;
        store(&carry, carry2);
        counting_carry(body, shape, at, &carry);
    }
    return any(less(mask, old));
}

/* Counters that reach into plane 3 are left to the plain kernel; so none that
 * is met here is at 15. */
AVX2 MELT bool remove_avx2(uint8_t *body, const struct shape *shape,
                           const uint64_t *hash) {
    static const struct line_mask nothing;
    const size_t at = line_offset(*hash, shape);
    const uint32_t marks = marks_of(body, shape, at);
    uint8_t *const line = body + at;
    uint8_t *const plane0 = body + plane_offset(shape, at, 0);
    uint8_t *const plane1 = body + plane_offset(shape, at, 1);
    const uint8_t *const plane2 = body + plane_offset(shape, at, 2);
    if (__builtin_expect(marks > 1, false))
        return counting_remove_scalar(body, shape, hash);

    const struct line mask = mask_of(hash, line_row(*hash, shape->probes)),
                      old = load(line);
    if (any(less(mask, old))) return false;
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
    return true;
}

COUNTING_KERNEL(counting_avx2, CPU_AVX2, AVX2, one_avx2_has, line_avx2_has_run,
                line_has_in_any, count_avx2, remove_avx2)

#endif
