/*
 * The loops of the vector kernels over runs of line filters.
 *
 * A question has to fit into the time in which memory brings the next line, so
 * every instruction counts. Keys are touched by eights, and what they missed is
 * told in the form that comes cheapest; answers are made of it when the run is
 * over. And LINE_RUN has each loop compiled several times: for keys that take a
 * second bit and for others, in filters that the caches hold or do not, and for
 * hashes or numbers.
 */
#ifndef CALYX_LINE_RUNS_H
#define CALYX_LINE_RUNS_H

#include <string.h>

#include "hash/xxh3_avx2.h"
#include "kind/avx2.h"
#include "kind/line.h"

/* `hashes` of a run of numbers is the room for what they hash to. */
AVX2 MELT void hash_four_at(struct run run, size_t i) {
    const __m256i four = _mm256_loadu_si256((const __m256i *)&run.numbers[i]);
    _mm256_storeu_si256((__m256i *)&run.hashes[i],
                        xxh3_of_four(four, xxh3_all(run.flip)));
}

AVX2 MELT void hash_one_at(struct run run, size_t i) {
    const __m256i hash =
        xxh3_of_four(xxh3_all(run.numbers[i]), xxh3_all(run.flip));
    _mm_storel_epi64((__m128i *)&run.hashes[i], _mm256_castsi256_si128(hash));
}

AVX2 MELT void hash_eight_at(struct run run, size_t i) {
    hash_four_at(run, i);
    hash_four_at(run, i + 4);
}

MELT uint8_t *line_of(const struct field *part, uint64_t hash) {
    return (uint8_t *)part->body + line_offset(hash, &part->shape);
}

/* Call the lines of some hashes of a run, and hash them before, if it `hashes`
 * numbers. */
AVX2 MELT void call_some(const struct field *part, struct run run, size_t from,
                         size_t to, bool hashes) {
    if (hashes) {
        size_t i = from;
        for (; i + 8 <= to; i += 8) hash_eight_at(run, i);
        for (; i < to; i++) hash_one_at(run, i);
    }
    for (size_t i = from; i < to; i++) call_line(line_of(part, run.hashes[i]));
}

/* The has_in_any of all vector kernels. */
void line_has_in_any(const struct field *parts, size_t count,
                     const uint64_t *hashes, size_t n, bool *found);

/* Eight hashes each whose lines are called on the way, from far off and from
 * near by, if that is wanted. */
struct calls {
    bool from_far, from_near;
    const uint64_t *far, *near;
};

AVX2 MELT void call_at(const struct field *part, struct calls calls, size_t i) {
    if (calls.from_far) call_line(line_of(part, calls.far[i]));
    if (calls.from_near) call_near(line_of(part, calls.near[i]));
}

/* Touch the lines of eight hashes, with calls, and tell what was missing there
 * by eight bytes, of whatever form. A tell_nothing knows that form: of what 32
 * hashes told, it makes a byte of ones for each that missed nothing. */
typedef void touch_eight(const struct field *part, const uint64_t *hashes,
                         struct line_choice from, struct calls calls,
                         uint8_t *told);
typedef __m256i tell_nothing(__m256i told);

/* Define a touch_eight whose form is a byte for each hash, of a function that
 * tells what one missed by a number of at most 255. */
#define TOUCH_EIGHT(name, TARGET, number_of)                                \
    TARGET MELT void name(const struct field *part, const uint64_t *hashes, \
                          struct line_choice from, struct calls calls,      \
                          uint8_t *told) {                                  \
        uint64_t all = 0;                                                   \
        _Pragma("GCC unroll 8") for (size_t i = 0; i < 8; i++) {            \
            uint8_t *const line = line_of(part, hashes[i]);                 \
            call_at(part, calls, i);                                        \
            all |= (uint64_t)number_of(line, &hashes[i], from) << 8 * i;    \
        }                                                                   \
        store64(told, all);                                                 \
    }

/* The tell_nothing for such bytes, if 0 stands for nothing. */
AVX2 MELT __m256i are_zeros(__m256i told) {
    return _mm256_cmpeq_epi8(told, _mm256_setzero_si256());
}

/* The answer for one hash. */
typedef bool touch_one(uint8_t *line, const uint64_t *hash,
                       struct line_choice from);

/* The eight hashes NEAR on from hash i; near the end of all, those at hand,
 * which does no harm. */
MELT const uint64_t *near_to(struct run run, size_t i) {
    const size_t at = i + NEAR;
    return run.hashes + (at + 8 <= run.n + run.more ? at : i);
}

/* Turn what n hashes told into answers: `answer` for those that missed nothing.
 * Returns how many are true. There is room behind what was told. */
AVX2 MELT size_t tell_answers(const uint8_t *told, size_t n, bool *answers,
                              bool answer, tell_nothing *nothing_in) {
    const __m256i ones = _mm256_set1_epi8(1);
    size_t total = 0;
    for (size_t i = 0; i < n; i += 32) {
        const size_t some = n - i < 32 ? n - i : 32;
        const __m256i nothing =
            nothing_in(_mm256_loadu_si256((const __m256i *)(told + i)));
        const __m256i yes = answer ? _mm256_and_si256(nothing, ones)
                                   : _mm256_andnot_si256(nothing, ones);
        const uint32_t which =
            (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(yes, ones));
        total +=
            (size_t)__builtin_popcountll(which & ((UINT64_C(1) << some) - 1));
        if (answers && some == 32) {
            _mm256_storeu_si256((__m256i *)(answers + i), yes);
        } else if (answers) {
            bool all[32];
            _mm256_storeu_si256((__m256i *)all, yes);
            memcpy(answers + i, all, some);
        }
    }
    return total;
}

/* What of a loop is fixed when it is compiled. */
struct manner {
    bool hashes; /* does the run have numbers?              */
    bool near;   /* are lines called from near by, too?     */
    bool answer; /* what to answer if a key misses nothing  */
};

AVX2 MELT size_t touch_run(const uint8_t *body, const struct shape *shape,
                           struct run run, bool *answers,
                           struct line_choice from, struct manner manner,
                           touch_one *one, touch_eight *eight,
                           tell_nothing *nothing_in) {
    const struct field part = {body, *shape};
    const size_t first = to_call_first(&run), with = with_ahead(&run);
    const size_t eights = with & ~(size_t)7;
    uint8_t told[RUN + 32];
    size_t i = 0;
    call_some(&part, run, run.called, first, manner.hashes);
    for (; i < eights; i += 8) {
        if (manner.hashes) hash_eight_at(run, i + AHEAD);
        const struct calls calls = {true, manner.near, run.hashes + i + AHEAD,
                                    near_to(run, i)};
        eight(&part, run.hashes + i, from, calls, told + i);
    }
    call_some(&part, run, i + AHEAD, with + AHEAD, manner.hashes);
    for (; i + 8 <= run.n; i += 8) {
        const struct calls calls = {false, manner.near, NULL, near_to(run, i)};
        eight(&part, run.hashes + i, from, calls, told + i);
    }
    memset(told + i, 0, 32);
    size_t total = tell_answers(told, i, answers, manner.answer, nothing_in);
    for (; i < run.n; i++) {
        const uint64_t *const hash = &run.hashes[i];
        const bool yes = one(line_of(&part, *hash), hash, from);
        if (answers) answers[i] = yes;
        total += yes;
    }
    return total;
}

/* ---- Eight additions beside other threads -------------------------------- */

/* Store what a key misses in its line, and tell in which words of 64 bits, one
 * bit each. */
typedef uint32_t find_missing(const uint8_t *line, const uint64_t *hash,
                              struct line_choice from, struct line_mask *to);

/* Add a key, and tell in which words it missed something. */
AVX2 MELT uint32_t share_one(uint8_t *line, const uint64_t *hash,
                             struct line_choice from, find_missing *find) {
    struct line_mask missing;
    const uint32_t words = find(line, hash, from, &missing);
    line_share(line, &missing, words);
    return words;
}

/* Do two of eight keys, perhaps, go to the same line? Each low half of an
 * address is compared with those one to four places on, all around. */
AVX2 MELT bool have_line_in_common(uint8_t *const *lines) {
    enum { TWO_ON = 0x39, FOUR_ON = 0x4E };
    const __m256 first = _mm256_loadu_ps((const float *)lines);
    const __m256 last = _mm256_loadu_ps((const float *)(lines + 4));
    const __m256i all =
        _mm256_castps_si256(_mm256_shuffle_ps(first, last, 0x88));
    const __m256i one_on = _mm256_permutevar8x32_epi32(
        all, _mm256_setr_epi32(1, 2, 3, 4, 5, 6, 7, 0));
    const __m256i two_on = _mm256_permute4x64_epi64(all, TWO_ON);
    const __m256i three_on = _mm256_permute4x64_epi64(one_on, TWO_ON);
    const __m256i four_on = _mm256_permute4x64_epi64(all, FOUR_ON);
    const __m256i same =
        _mm256_or_si256(_mm256_or_si256(_mm256_cmpeq_epi32(all, one_on),
                                        _mm256_cmpeq_epi32(all, two_on)),
                        _mm256_or_si256(_mm256_cmpeq_epi32(all, three_on),
                                        _mm256_cmpeq_epi32(all, four_on)));
    return !_mm256_testz_si256(same, same);
}

/* The locked instructions for eight keys come in one row, after everything
 * else: each waits for the stores before it, and a row for each key would end
 * where no processor foresees it. Only a key that goes to the same line as one
 * before it has to see what that one did. */
AVX2 MELT uint64_t share_eight(const struct field *part, const uint64_t *hashes,
                               struct line_choice from, struct calls calls,
                               find_missing *find) {
    struct line_mask missing[8];
    uint8_t *lines[8];
    uint64_t words = 0; /* of eight keys, eight bits each */
    for (size_t j = 0; j < 8; j++) lines[j] = line_of(part, hashes[j]);
    const bool crossed = have_line_in_common(lines);
    for (size_t j = 0; j < 8; j++) {
        call_at(part, calls, j);
        if (__builtin_expect(crossed, false))
            words |= (uint64_t)share_one(lines[j], &hashes[j], from, find)
                     << 8 * j;
        else
            words |= (uint64_t)find(lines[j], &hashes[j], from, &missing[j])
                     << 8 * j;
    }
    if (crossed) return words;
    for (uint64_t left = words; left; left &= left - 1) {
        const size_t at = (size_t)__builtin_ctzll(left);
        set64(lines[at / 8] + at % 8 * 8, missing[at / 8].word[at % 8]);
    }
    return words;
}

/* ---- The kernels --------------------------------------------------------- */

/* So many lines fit into few third-level caches. From memory it pays to call
 * lines from near by too; in cache that would cost a tenth. */
enum { FAR_OFF = (32 << 20) / LINE_BYTES };

/* A has_run or add_run. That `twice` is set to what it is looks idle, but tells
 * the compiler that it is a constant in what follows. */
#define LINE_RUN(name, TARGET, constant, takes_numbers, answer, one, eight,    \
                 nothing_in)                                                   \
    TARGET MELT bool name##_one(uint8_t *line, const uint64_t *hash,           \
                                struct line_choice from) {                     \
        return one(line, hash, from);                                          \
    }                                                                          \
    TARGET static size_t name(constant uint8_t *body,                          \
                              const struct shape *shape, struct run run,       \
                              bool *answers) {                                 \
        const struct manner numbers = {true, true, answer};                    \
        const struct manner far = {false, true, answer};                       \
        const struct manner close = {false, false, answer};                    \
        struct line_choice from = line_choices[shape->probes];                 \
        if (from.twice) {                                                      \
            from.twice = true;                                                 \
            if (takes_numbers && run.numbers)                                  \
                return touch_run(body, shape, run, answers, from, numbers,     \
                                 name##_one, eight, nothing_in);               \
            return touch_run(body, shape, run, answers, from, far, name##_one, \
                             eight, nothing_in);                               \
        }                                                                      \
        from.twice = false;                                                    \
        if (takes_numbers && run.numbers)                                      \
            return touch_run(body, shape, run, answers, from, numbers,         \
                             name##_one, eight, nothing_in);                   \
        if (shape->blocks >= FAR_OFF)                                          \
            return touch_run(body, shape, run, answers, from, far, name##_one, \
                             eight, nothing_in);                               \
        return touch_run(body, shape, run, answers, from, close, name##_one,   \
                         eight, nothing_in);                                   \
    }

/* The kernels of the line kind, of the level's has_run and add_run, and of what
 * finds the bits that a key misses, for adding it beside other threads. */
#define LINE_KERNELS_OF_RUNS(level, cpu, TARGET, find)                         \
    TARGET MELT void level##_share_eight(                                      \
        const struct field *part, const uint64_t *hashes,                      \
        struct line_choice from, struct calls calls, uint8_t *told) {          \
        store64(told, share_eight(part, hashes, from, calls, find));           \
    }                                                                          \
    LINE_RUN(level##_share_run, TARGET, , false, false, share_line_##level,    \
             level##_share_eight, are_zeros)                                   \
    SINGLES(line_##level##_has, line_##level##_add, TARGET, one_##level##_has, \
            one_##level##_add)                                                 \
    SINGLES(line_##level##_shared_has, line_##level##_shared_add, TARGET,      \
            one_##level##_has, one_##level##_share)                            \
    const struct kernel line_##level = {cpu,                                   \
                                        line_##level##_has,                    \
                                        line_##level##_add,                    \
                                        level##_has_run,                       \
                                        level##_add_run,                       \
                                        NULL,                                  \
                                        NULL,                                  \
                                        line_has_in_any,                       \
                                        true};                                 \
    const struct kernel line_##level##_shared = {cpu,                          \
                                                 line_##level##_shared_has,    \
                                                 line_##level##_shared_add,    \
                                                 level##_has_run,              \
                                                 level##_share_run,            \
                                                 NULL,                         \
                                                 NULL,                         \
                                                 line_has_in_any,              \
                                                 true};

#endif
