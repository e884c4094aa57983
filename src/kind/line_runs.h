/*
 * The loops of the vector kernels over runs of line filters.
 *
 * Where the line of a key is, and which row of words it takes, is worked out
 * for eight hashes at a time when the line is called, and kept for the touch.
 * Work that is done once, by vectors, and early: each of the three counts,
 * since a question has to fit into the time in which memory brings the next
 * line.
 */
#ifndef CALYX_LINE_RUNS_H
#define CALYX_LINE_RUNS_H

#include "hash/xxh3_avx2.h"
#include "kind/avx2.h"
#include "kind/line.h"

/* What turns a hash into a line and a row. */
struct road {
    struct field part;
    struct line_choice choice;
};

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

/* line_row for eight hashes, as distances from all_rows. */
AVX2 MELT __m256i rows_of(__m256i first, __m256i last,
                          struct line_choice choice) {
    const __m256 halves = _mm256_shuffle_ps(_mm256_castsi256_ps(first),
                                            _mm256_castsi256_ps(last), 0x88);
    const __m256i low =
        _mm256_permute4x64_epi64(_mm256_castps_si256(halves), 0xD8);
    const __m256i salt = _mm256_set1_epi32((int)line_salt[LINE_CHOICE]);
    const __m256i mixed = _mm256_srli_epi32(_mm256_mullo_epi32(low, salt), 16);
    const __m256i rows = _mm256_set1_epi32(choice.rows);
    const __m256i row = _mm256_srli_epi32(_mm256_mullo_epi32(mixed, rows), 16);
    const __m256i start = _mm256_set1_epi32(choice.first);
    return _mm256_slli_epi32(_mm256_add_epi32(start, row), 4);
}

AVX2 MELT void store_lines(uintptr_t *to, const uint64_t *hashes,
                           const struct field *part) {
    for (size_t i = 0; i < 8; i += 4) {
        const __m256i four = _mm256_loadu_si256((const __m256i *)&hashes[i]);
        _mm256_storeu_si256((__m256i *)&to[i], lines_of(four, part));
    }
}

AVX2 MELT void store_rows(uint32_t *to, const uint64_t *hashes,
                          struct line_choice choice) {
    const __m256i first = _mm256_loadu_si256((const __m256i *)hashes);
    const __m256i last = _mm256_loadu_si256((const __m256i *)&hashes[4]);
    _mm256_storeu_si256((__m256i *)to, rows_of(first, last, choice));
}

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

AVX2 MELT void work_out_eight(const struct road *road, struct run run,
                              size_t i) {
    if (run.numbers) {
        hash_four_at(run, i);
        hash_four_at(run, i + 4);
    }
    store_lines(&run.lines[i], &run.hashes[i], &road->part);
    store_rows(&run.rows[i], &run.hashes[i], road->choice);
}

/* Rows are told by their distance in bytes from here. */
MELT const uint8_t *all_rows(void) {
    return (const uint8_t *)line_rows;
}

AVX2 MELT void work_out_one(const struct road *road, struct run run, size_t i) {
    if (run.numbers) hash_one_at(run, i);
    const struct field *part = &road->part;
    const uint8_t *row = line_row(run.hashes[i], part->shape.probes);
    run.lines[i] =
        (uintptr_t)part->body + line_offset(run.hashes[i], &part->shape);
    run.rows[i] = (uint32_t)(row - all_rows());
}

AVX2 MELT uint8_t *line_at(struct run run, size_t i) {
    return (uint8_t *)run.lines[i];
}

AVX2 MELT const uint8_t *row_at(struct run run, size_t i) {
    return all_rows() + run.rows[i];
}

/* The has_in_any of all vector kernels. */
void line_has_in_any(const struct field *parts, size_t count,
                     const uint64_t *hashes, size_t n, bool *found);

/* Eight lines each to call on the way, from far off and from near by. */
struct calls {
    const uintptr_t *far, *near; /* NULL: none from far off */
};

AVX2 MELT void call_at(struct calls calls, size_t i) {
    if (calls.far) call_line((const uint8_t *)calls.far[i]);
    call_near((const uint8_t *)calls.near[i]);
}

/* Touch hash i of a run; or eight from i on, with calls. */
typedef bool touch_one(struct run now, size_t i);
typedef void touch_eight(struct run now, size_t i, struct calls calls,
                         bool *to);

/* The eight lines NEAR hashes on, if they were worked out; else those at hand,
 * which does no harm. */
AVX2 MELT const uintptr_t *near_to(struct run now, struct run next, size_t i,
                                   size_t called) {
    const size_t at = i + NEAR;
    if (at + 8 <= now.n) return now.lines + at;
    if (at >= now.n && at - now.n + 8 <= called)
        return next.lines + (at - now.n);
    return now.lines + i;
}

AVX2 MELT size_t touch_run(const uint8_t *body, const struct shape *shape,
                           struct run now, struct run next, bool *answers,
                           touch_one *one, touch_eight *eight) {
    const struct road road = {{body, *shape}, line_choices[shape->probes]};
    const bool small = shape->blocks >> 32 == 0; /* for lines_of */
    const size_t both = (now.n < next.n ? now.n : next.n) & ~(size_t)7;
    bool own[RUN];
    bool *const to = answers ? answers : own;
    size_t i = 0;
    for (; small && i < both; i += 8) {
        work_out_eight(&road, next, i);
        const struct calls calls = {next.lines + i,
                                    near_to(now, next, i, i + 8)};
        eight(now, i, calls, to);
    }
    size_t called = i;
    for (; small && called + 8 <= next.n; called += 8) {
        work_out_eight(&road, next, called);
        for (size_t j = 0; j < 8; j++) call_line(line_at(next, called + j));
    }
    for (; called < next.n; called++) {
        work_out_one(&road, next, called);
        call_line(line_at(next, called));
    }
    for (; i + 8 <= now.n; i += 8)
        eight(now, i, (struct calls){NULL, near_to(now, next, i, 0)}, to);
    for (; i < now.n; i++) to[i] = one(now, i);
    return count_true(to, now.n);
}

/* ---- Eight additions beside other threads -------------------------------- */

/* Store what a key misses in its line, and tell in which words of 64 bits, one
 * bit each. */
typedef uint32_t find_missing(const uint8_t *line, const uint64_t *hash,
                              const uint8_t *row, struct line_mask *to);

/* Do two of eight keys, perhaps, go to the same line? Each low half of an
 * address is compared with those one to four places on, all around. */
AVX2 MELT bool have_line_in_common(const uintptr_t *lines) {
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
AVX2 MELT void share_eight(struct run now, size_t i, struct calls calls,
                           bool *to, touch_one *share, find_missing *find) {
    struct line_mask missing[8];
    uint64_t words = 0; /* of eight keys, eight bits each */
    const bool crossed = have_line_in_common(&now.lines[i]);
    for (size_t j = 0; j < 8; j++) {
        call_at(calls, j);
        if (__builtin_expect(crossed, false))
            to[i + j] = share(now, i + j);
        else
            words |= (uint64_t)find(line_at(now, i + j), &now.hashes[i + j],
                                    row_at(now, i + j), &missing[j])
                     << 8 * j;
    }
    if (crossed) return;
    for (uint64_t left = words; left; left &= left - 1) {
        const size_t at = (size_t)__builtin_ctzll(left);
        set64(line_at(now, i + at / 8) + at % 8 * 8,
              missing[at / 8].word[at % 8]);
    }
    for (size_t j = 0; j < 8; j++) to[i + j] = words >> 8 * j & 255;
}

/* The kernels of the line kind, of functions that the level brings:
 * LINE_SINGLES tells which, `in_eight` and `add_eight` take eight at a time,
 * and `missing` is its find_missing. */
#define LINE_RUN(name, TARGET, constant, one, eight)                     \
    TARGET static size_t name(constant uint8_t *body,                    \
                              const struct shape *shape, struct run now, \
                              struct run next, bool *answers) {          \
        return touch_run(body, shape, now, next, answers, one, eight);   \
    }

#define EACH_OF_EIGHT(name, TARGET, one)                                \
    TARGET MELT void name(struct run now, size_t i, struct calls calls, \
                          bool *to) {                                   \
        for (size_t j = 0; j < 8; j++) {                                \
            call_at(calls, j);                                          \
            to[i + j] = one(now, i + j);                                \
        }                                                               \
    }

#define LINE_KERNELS_OF_EIGHT(level, cpu, TARGET, in, in_eight, add,           \
                              add_eight, share, missing)                       \
    TARGET MELT bool level##_has_at(struct run now, size_t i) {                \
        return in(line_at(now, i), &now.hashes[i], row_at(now, i));            \
    }                                                                          \
    TARGET MELT bool level##_add_at(struct run now, size_t i) {                \
        return add(line_at(now, i), &now.hashes[i], row_at(now, i));           \
    }                                                                          \
    TARGET MELT bool level##_share_at(struct run now, size_t i) {              \
        return share(line_at(now, i), &now.hashes[i], row_at(now, i));         \
    }                                                                          \
    LINE_RUN(line_##level##_has_run, TARGET, const, level##_has_at, in_eight)  \
    LINE_RUN(line_##level##_add_run, TARGET, , level##_add_at, add_eight)      \
    TARGET MELT void level##_share_eight(struct run now, size_t i,             \
                                         struct calls calls, bool *to) {       \
        share_eight(now, i, calls, to, level##_share_at, missing);             \
    }                                                                          \
    LINE_RUN(line_##level##_share_run, TARGET, , level##_share_at,             \
             level##_share_eight)                                              \
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
