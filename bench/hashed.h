/* The hashes of a segment's keys, for contestants that take hashes. */
#ifndef BENCH_HASHED_H
#define BENCH_HASHED_H

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "bench.h"

static inline uint64_t hash_at(const struct segment *s, enum form form,
                               size_t i) {
    if (form == HASHES) return s->hashes[i];
    if (form == NUMBERS)
        return XXH3_64bits_withSeed(&s->numbers[i], sizeof s->numbers[i], 0);
    return XXH3_64bits_withSeed(s->urls[i].data, s->urls[i].size, 0);
}

/* The hashes of the keys from `from` on, at most n, for a call with many. */
static inline const uint64_t *hashes_at(struct segment *s, enum form form,
                                        size_t from, size_t n) {
    if (form != HASHES)
        for (size_t i = from; i < from + n; i++)
            s->hashes[i] = hash_at(s, form, i);
    return s->hashes + from;
}

static inline uint64_t high_product(uint64_t a, uint64_t b) {
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)((wide)a * b >> 64);
}

#endif
