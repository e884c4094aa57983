/*
 * The loops of the vector kernels over runs of line filters.
 *
 * They go by eights, whose answers then fit into one store: a question has to
 * fit into the time in which memory brings the next line, so every instruction
 * counts. For the same reason LINE_RUN has each loop compiled three times: for
 * keys that take a second bit, and for others in a filter that the caches hold,
 * and in one that they do not.
 */
#ifndef CALYX_LINE_RUNS_H
#define CALYX_LINE_RUNS_H

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

AVX2 MELT void hash_from(struct run run, size_t i) {
    for (; i + 8 <= run.n; i += 8) hash_eight_at(run, i);
    for (; i < run.n; i++) hash_one_at(run, i);
}

MELT uint8_t *line_of(const struct field *part, uint64_t hash) {
    return (uint8_t *)part->body + line_offset(hash, &part->shape);
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

/* Touch the line of a hash, and tell whether anything was missing by a number
 * of at most 255, of which one, here called `nothing`, tells that nothing was.
 * The same for eight hashes, with calls: a byte for each, 0 for nothing. */
typedef uint32_t touch_one(uint8_t *line, const uint64_t *hash,
                           struct line_choice from);
typedef uint64_t touch_eight(const struct field *part, const uint64_t *hashes,
                             struct line_choice from, struct calls calls);

/* The eight hashes NEAR on from hash i, if their lines were called; else those
 * at hand, which does no harm. */
MELT const uint64_t *near_to(struct run now, struct run next, size_t i,
                             size_t called) {
    const size_t at = i + NEAR;
    if (at + 8 <= now.n) return now.hashes + at;
    if (at >= now.n && at - now.n + 8 <= called)
        return next.hashes + (at - now.n);
    return now.hashes + i;
}

/* Turn what eight keys missed into answers: `answer` for those that missed
 * nothing. Returns how many are true. */
MELT size_t tell_eight(bool *answers, size_t i, uint64_t missing, bool answer) {
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t some =
        (((missing | 128 * ones) - ones) | missing) >> 7 & ones;
    const uint64_t eight = answer ? some ^ ones : some;
    if (answers) store64(answers + i, eight);
    return (size_t)__builtin_popcountll(eight);
}

AVX2 MELT size_t touch_run(const uint8_t *body, const struct shape *shape,
                           struct run now, struct run next, bool *answers,
                           struct line_choice from, bool near, bool answer,
                           uint32_t nothing, touch_one *one,
                           touch_eight *eight) {
    const struct field part = {body, *shape};
    const size_t both = (now.n < next.n ? now.n : next.n) & ~(size_t)7;
    size_t i = 0, total = 0;
    /* Where nothing is awaited for long, hashing in between gains nothing. */
    if (!near && next.numbers) hash_from(next, 0);
    for (; i < both; i += 8) {
        if (near && next.numbers) hash_eight_at(next, i);
        const struct calls calls = {true, near, next.hashes + i,
                                    near_to(now, next, i, i + 8)};
        total += tell_eight(answers, i,
                            eight(&part, now.hashes + i, from, calls), answer);
    }
    if (near && next.numbers) hash_from(next, i);
    for (size_t j = i; j < next.n; j++)
        call_line(line_of(&part, next.hashes[j]));
    for (; i + 8 <= now.n; i += 8) {
        const struct calls calls = {false, near, NULL,
                                    near_to(now, next, i, 0)};
        total += tell_eight(answers, i,
                            eight(&part, now.hashes + i, from, calls), answer);
    }
    for (; i < now.n; i++) {
        const uint64_t *const hash = &now.hashes[i];
        const bool yes =
            (one(line_of(&part, *hash), hash, from) == nothing) == answer;
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

/* A touch_eight of a touch_one. */
#define LINE_EIGHT(one, TARGET, nothing)                                      \
    TARGET MELT uint64_t one##_eight(                                         \
        const struct field *part, const uint64_t *hashes,                     \
        struct line_choice from, struct calls calls) {                        \
        uint64_t told = 0;                                                    \
        _Pragma("GCC unroll 8") for (size_t j = 0; j < 8; j++) {              \
            call_at(part, calls, j);                                          \
            told |= (uint64_t)one(line_of(part, hashes[j]), &hashes[j], from) \
                    << 8 * j;                                                 \
        }                                                                     \
        return told ^ (nothing)*UINT64_C(0x0101010101010101);                 \
    }

/* So many lines fit into no third-level cache. From memory it pays to call
 * lines from near by too, which else costs a tenth. */
enum { FAR_OFF = (32 << 20) / LINE_BYTES };

/* A has_run or add_run. That `twice` is set to what it is looks idle, but tells
 * the compiler that it is a constant in what follows. */
#define LINE_RUN(name, TARGET, constant, answer, nothing, one)                 \
    TARGET static size_t name(constant uint8_t *body,                          \
                              const struct shape *shape, struct run now,       \
                              struct run next, bool *answers) {                \
        struct line_choice from = line_choices[shape->probes];                 \
        if (from.twice) {                                                      \
            from.twice = true;                                                 \
            return touch_run(body, shape, now, next, answers, from, true,      \
                             answer, nothing, one, one##_eight);               \
        }                                                                      \
        from.twice = false;                                                    \
        if (shape->blocks >= FAR_OFF)                                          \
            return touch_run(body, shape, now, next, answers, from, true,      \
                             answer, nothing, one, one##_eight);               \
        return touch_run(body, shape, now, next, answers, from, false, answer, \
                         nothing, one, one##_eight);                           \
    }

/* The kernels of the line kind, of functions that the level brings: ask for a
 * key, and tell 0 if nothing was missing; add it, and tell LINE_ALL then; and
 * find what it misses, for adding it beside other threads. */
#define LINE_KERNELS_OF_RUNS(level, cpu, TARGET, missed, kept, find)           \
    TARGET MELT uint32_t level##_has_at(uint8_t *line, const uint64_t *hash,   \
                                        struct line_choice from) {             \
        return missed(line, hash, from);                                       \
    }                                                                          \
    LINE_EIGHT(level##_has_at, TARGET, 0)                                      \
    LINE_EIGHT(kept, TARGET, LINE_ALL)                                         \
    TARGET MELT uint32_t level##_share_at(uint8_t *line, const uint64_t *hash, \
                                          struct line_choice from) {           \
        return share_one(line, hash, from, find);                              \
    }                                                                          \
    TARGET MELT uint64_t level##_share_at_eight(                               \
        const struct field *part, const uint64_t *hashes,                      \
        struct line_choice from, struct calls calls) {                         \
        return share_eight(part, hashes, from, calls, find);                   \
    }                                                                          \
    LINE_RUN(line_##level##_has_run, TARGET, const, true, 0, level##_has_at)   \
    LINE_RUN(line_##level##_add_run, TARGET, , false, LINE_ALL, kept)          \
    LINE_RUN(line_##level##_share_run, TARGET, , false, 0, level##_share_at)   \
    SINGLES(line_##level##_has, line_##level##_add, TARGET, one_##level##_has, \
            one_##level##_add)                                                 \
    SINGLES(line_##level##_shared_has, line_##level##_shared_add, TARGET,      \
            one_##level##_has, one_##level##_share)                            \
    const struct kernel line_##level = {cpu,                                   \
                                        line_##level##_has,                    \
                                        line_##level##_add,                    \
                                        line_##level##_has_run,                \
                                        line_##level##_add_run,                \
                                        NULL,                                  \
                                        NULL,                                  \
                                        line_has_in_any,                       \
                                        true};                                 \
    const struct kernel line_##level##_shared = {cpu,                          \
                                                 line_##level##_shared_has,    \
                                                 line_##level##_shared_add,    \
                                                 line_##level##_has_run,       \
                                                 line_##level##_share_run,     \
                                                 NULL,                         \
                                                 NULL,                         \
                                                 line_has_in_any,              \
                                                 true};

#endif
