/*
 * Single lookups without a call: by <calyx/inline.h>, and the same by hand, as
 * the yardstick of single calls. This file is compiled for AVX2, so that there
 * is something to inline; whoever calls it has made sure of the machine.
 *
 * What is done by hand knows that a key has at most eight probes, keeps what it
 * needs of the filter in registers, and counts no items. Nothing less answers
 * the same.
 */
#include <calyx/inline.h>

#include "hashed.h"

#define INLINED static inline __attribute__((always_inline))

/* ---- By inline.h --------------------------------------------------------- */

size_t quick_has(calyx_filter *f, enum form form, struct segment *s) {
    size_t found = 0;
    calyx_inline_view quick;
    calyx_inline_view_of(f, &quick);
    if (form == HASHES)
        for (size_t i = 0; i < s->n; i++)
            found += s->answers[i] =
                calyx_inline_has_hash(&quick, s->hashes[i]);
    else
        for (size_t i = 0; i < s->n; i++)
            found += s->answers[i] =
                calyx_inline_has_u64(&quick, s->numbers[i]);
    return found;
}

void quick_add(calyx_filter *f, enum form form, const struct segment *s) {
    calyx_inline_view quick;
    calyx_inline_view_of(f, &quick);
    if (form == HASHES)
        for (size_t i = 0; i < s->n; i++)
            calyx_inline_add_hash(&quick, s->hashes[i], NULL);
    else
        for (size_t i = 0; i < s->n; i++)
            calyx_inline_add_u64(&quick, s->numbers[i], NULL);
}

/* ---- By hand ------------------------------------------------------------- */

#if CALYX_INLINES
struct by_hand {
    __m256i *lines, salts;
    uint64_t count, row_mask;
    const uint8_t *rows;
};

static struct by_hand by_hand_of(calyx_filter *f) {
    calyx_inline_view view;
    calyx_inline_view_of(f, &view);
    return (struct by_hand){
        .lines = calyx_inline_address(&view, CALYX_INLINE_LINES),
        .salts =
            _mm256_loadu_si256(calyx_inline_address(&view, CALYX_INLINE_SALTS)),
        .count = view.words[CALYX_INLINE_COUNT],
        .row_mask = view.words[CALYX_INLINE_ROW_MASK],
        .rows = calyx_inline_address(&view, CALYX_INLINE_ROWS)};
}

INLINED __m256i row_of(const struct by_hand *f, uint64_t hash) {
    return *(const __m256i *)(f->rows + (hash & f->row_mask));
}

INLINED bool has_by_hand(const struct by_hand *f, uint64_t hash) {
    const __m256i *line = f->lines + 2 * high_product(hash, f->count);
    const __m256i spots =
        _mm256_mullo_epi32(_mm256_set1_epi32((int)hash), f->salts);
    return _mm256_testc_si256(calyx_inline_bits(line, spots), row_of(f, hash));
}

INLINED void add_by_hand(const struct by_hand *f, uint64_t hash) {
    calyx_inline_set(f->lines + 2 * high_product(hash, f->count),
                     _mm256_mullo_epi32(_mm256_set1_epi32((int)hash), f->salts),
                     row_of(f, hash));
}

INLINED size_t has_each(const struct by_hand *f, enum form form,
                        struct segment *s) {
    size_t found = 0;
    for (size_t i = 0; i < s->n; i++)
        found += s->answers[i] = has_by_hand(f, hash_at(s, form, i));
    return found;
}

INLINED void add_each(const struct by_hand *f, enum form form,
                      const struct segment *s) {
    for (size_t i = 0; i < s->n; i++) add_by_hand(f, hash_at(s, form, i));
}

size_t hand_has(calyx_filter *f, enum form form, struct segment *s) {
    const struct by_hand hand = by_hand_of(f);
    return form == HASHES ? has_each(&hand, HASHES, s)
                          : has_each(&hand, NUMBERS, s);
}

void hand_add(calyx_filter *f, enum form form, const struct segment *s) {
    const struct by_hand hand = by_hand_of(f);
    if (form == HASHES)
        add_each(&hand, HASHES, s);
    else
        add_each(&hand, NUMBERS, s);
}
#else
size_t hand_has(calyx_filter *f, enum form form, struct segment *s) {
    return quick_has(f, form, s);
}

void hand_add(calyx_filter *f, enum form form, const struct segment *s) {
    quick_add(f, form, s);
}
#endif
