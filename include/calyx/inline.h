/*
 * calyx: lookups and additions of single keys without a call.
 *
 * A call into a shared library takes longer than a lookup in a filter that is
 * in the cache. While the processor waits for memory, the call also leaves less
 * room to execute the next lookup ahead. These functions become part of your
 * loop:
 *
 *     calyx_inline_view view;
 *     calyx_inline_view_of(f, &view);
 *     for (...) found += calyx_inline_has_u64(&view, number[i]);
 *
 * For any filter, answers and bits are the same as with calyx_has_u64 and its
 * like.
 * Inlined is the kind "line" of fixed size with its default hash, not
 * concurrent, in programs compiled for AVX2 (-mavx2, or -march=haswell and
 * later); anything else calls the library. Strings are hashed by a call, and
 * looked up inline. For many keys the batch calls of calyx.h are faster.
 *
 * src/kind/line.c explains how a line works; this is line_avx2.c for one key.
 */
#ifndef CALYX_INLINE_H
#define CALYX_INLINE_H

#include <calyx/calyx.h>

/* C++ programs may want no casts of C in their own code. */
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#endif

#if defined(__AVX2__) && defined(__SIZEOF_INT128__)
#define CALYX_INLINES 1
#include <immintrin.h>

static inline void *calyx_inline_address(const calyx_inline_view *view,
                                         calyx_inline_word word) {
    return (void *)(uintptr_t)view->words[word];
}

/* XXH3 of the 8 bytes of a number. */
static inline uint64_t calyx_inline_hash_u64(const calyx_inline_view *view,
                                             uint64_t x) {
    const uint64_t prime = UINT64_C(0x9FB21C651E98DF25);
    x = (x << 32 | x >> 32) ^ view->words[CALYX_INLINE_FLIP];
    x ^= (x << 49 | x >> 15) ^ (x << 24 | x >> 40);
    x *= prime;
    x = (x ^ ((x >> 35) + 8)) * prime;
    return x ^ x >> 28;
}

static inline __m256i *calyx_inline_line(const calyx_inline_view *view,
                                         uint64_t hash) {
    __extension__ typedef unsigned __int128 wide;
    const uint64_t line =
        (uint64_t)((wide)hash * view->words[CALYX_INLINE_COUNT] >> 64);
    return (__m256i *)calyx_inline_address(view, CALYX_INLINE_LINES) + 2 * line;
}

/* The product of a hash and the salt of each of the 8 columns: its highest 6
 * bits are the position of a key in the column. */
static inline __m256i calyx_inline_spots(const calyx_inline_view *view,
                                         uint64_t hash) {
    return _mm256_mullo_epi32(
        _mm256_set1_epi32((int)hash),
        _mm256_loadu_si256(
            (const __m256i *)calyx_inline_address(view, CALYX_INLINE_SALTS)));
}

static inline __m256i calyx_inline_row(const calyx_inline_view *view,
                                       uint64_t hash) {
    const uint8_t *row =
        (const uint8_t *)calyx_inline_address(view, CALYX_INLINE_ROWS) +
        (hash & view->words[CALYX_INLINE_ROW_MASK]);
    return _mm256_load_si256((const __m256i *)row);
}

/* The row of all columns, for keys with a second bit. */
static inline __m256i calyx_inline_all(void) {
    return _mm256_slli_epi32(_mm256_set1_epi32(1), 31);
}

/* The bit of a key in each column of a line, as the top bits of words. */
static inline __m256i calyx_inline_bits(const __m256i *line, __m256i spots) {
    const __m256 word = _mm256_blendv_ps(_mm256_castsi256_ps(line[0]),
                                         _mm256_castsi256_ps(line[1]),
                                         _mm256_castsi256_ps(spots));
    const __m256i spot = _mm256_srli_epi32(_mm256_add_epi32(spots, spots), 27);
    return _mm256_sllv_epi32(_mm256_castps_si256(word), spot);
}

/* Set one bit in each column of a row, in each half of the line. */
static inline void calyx_inline_set(__m256i *line, __m256i spots, __m256i row) {
    const __m256i spot = _mm256_srli_epi32(spots, 26);
    const __m256i beyond = _mm256_sub_epi32(spot, _mm256_set1_epi32(32));
    line[0] = _mm256_or_si256(line[0], _mm256_srlv_epi32(row, spot));
    line[1] = _mm256_or_si256(line[1], _mm256_srlv_epi32(row, beyond));
}

static inline bool calyx_inline_is_in_line(const calyx_inline_view *view,
                                           uint64_t hash) {
    const __m256i *line = calyx_inline_line(view, hash);
    const __m256i spots = calyx_inline_spots(view, hash);
    const __m256i row = calyx_inline_row(view, hash);
    const __m256i bits = calyx_inline_bits(line, spots);
    if (view->words[CALYX_INLINE_TWICE] == 0)
        return _mm256_testc_si256(bits, row);
    const __m256i second = calyx_inline_bits(line, _mm256_slli_epi32(spots, 6));
    return _mm256_testc_si256(bits, calyx_inline_all()) &
           _mm256_testc_si256(second, row);
}

static inline void calyx_inline_add_to_line(const calyx_inline_view *view,
                                            uint64_t hash, bool *fresh) {
    __m256i *line = calyx_inline_line(view, hash);
    const __m256i old0 = line[0], old1 = line[1];
    const __m256i spots = calyx_inline_spots(view, hash);
    const __m256i row = calyx_inline_row(view, hash);
    const bool twice = view->words[CALYX_INLINE_TWICE] != 0;
    calyx_inline_set(line, spots, twice ? calyx_inline_all() : row);
    if (twice) calyx_inline_set(line, _mm256_slli_epi32(spots, 6), row);
    const __m256i changed = _mm256_or_si256(_mm256_xor_si256(old0, line[0]),
                                            _mm256_xor_si256(old1, line[1]));
    const bool is_fresh = !_mm256_testz_si256(changed, changed);
    *(uint64_t *)calyx_inline_address(view, CALYX_INLINE_ITEMS) += is_fresh;
    if (fresh) *fresh = is_fresh;
}
#else
#define CALYX_INLINES 0
#endif

static inline calyx_filter *calyx_inline_filter(const calyx_inline_view *view) {
    return (calyx_filter *)(uintptr_t)view->words[CALYX_INLINE_FILTER];
}

/* Is this view inlined? Otherwise its filter is called. */
static inline bool calyx_inline_works(const calyx_inline_view *view) {
    return CALYX_INLINES &&
           view->words[CALYX_INLINE_NUMBER] == CALYX_INLINE_LAYOUT;
}

/* ---- Hashes -------------------------------------------------------------- */

/* For a string: calyx_inline_has_hash(&view, calyx_hash(f, key, size)) */
static inline bool calyx_inline_has_hash(const calyx_inline_view *view,
                                         uint64_t hash) {
#if CALYX_INLINES
    if (calyx_inline_works(view)) return calyx_inline_is_in_line(view, hash);
#endif
    return calyx_has_hash(calyx_inline_filter(view), hash);
}

static inline calyx_status calyx_inline_add_hash(const calyx_inline_view *view,
                                                 uint64_t hash, bool *fresh) {
#if CALYX_INLINES
    if (calyx_inline_works(view)) {
        calyx_inline_add_to_line(view, hash, fresh);
        return CALYX_OK;
    }
#endif
    return calyx_add_hash(calyx_inline_filter(view), hash, fresh);
}

static inline bool calyx_inline_reader_has_hash(
    const calyx_inline_reader *reader, uint64_t hash) {
    return calyx_inline_has_hash(&reader->view, hash);
}

/* ---- Numbers ------------------------------------------------------------- */

static inline bool calyx_inline_has_u64(const calyx_inline_view *view,
                                        uint64_t number) {
#if CALYX_INLINES
    if (calyx_inline_works(view))
        return calyx_inline_is_in_line(view,
                                       calyx_inline_hash_u64(view, number));
#endif
    return calyx_has_u64(calyx_inline_filter(view), number);
}

static inline calyx_status calyx_inline_add_u64(const calyx_inline_view *view,
                                                uint64_t number, bool *fresh) {
#if CALYX_INLINES
    if (calyx_inline_works(view)) {
        calyx_inline_add_to_line(view, calyx_inline_hash_u64(view, number),
                                 fresh);
        return CALYX_OK;
    }
#endif
    return calyx_add_u64(calyx_inline_filter(view), number, fresh);
}

static inline bool calyx_inline_reader_has_u64(
    const calyx_inline_reader *reader, uint64_t number) {
    return calyx_inline_has_u64(&reader->view, number);
}

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif
