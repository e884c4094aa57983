/*
 * Sorting of 64-bit words in place, by some bits after the others from the
 * highest on (MSD radix sort, "American flag": McIlroy, Bostic, McIlroy 1993).
 * Made for hashes: fast if the high bits are evenly spread, correct for all.
 */
#ifndef CALYX_RADIX_SORT_H
#define CALYX_RADIX_SORT_H

#include <stddef.h>
#include <stdint.h>

enum { PARTITION_BITS_MOST = 12 };

/* Group words by their highest `bits` bits, 0 to PARTITION_BITS_MOST; ends[v]
 * becomes the place after the last word whose bits are v. */
void partition_words(uint64_t *words, size_t n, int bits, uint64_t *ends);

/* Sort words that differ in their lowest `bits` bits only. */
void sort_words(uint64_t *words, size_t n, int bits);

/* Remove words of a sorted array beyond the first `copies` equal ones. Returns
 * the number that is left; *distinct becomes the number of different words. */
size_t limit_copies(uint64_t *words, size_t n, uint32_t copies,
                    uint64_t *distinct);

#endif
