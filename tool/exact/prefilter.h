/*
 * Filters that remove lines before any key is stored: lines that cannot be in
 * the result. They cost one more pass over the files, which is cheap, and save
 * memory and temporary files.
 */
#ifndef CALYX_TOOL_PREFILTER_H
#define CALYX_TOOL_PREFILTER_H

#include "exact/budget.h"
#include "input/pipeline.h"

/* An empty one for about `keys` keys, in at most `memory` bytes. */
calyx_filter *prefilter_new(uint64_t keys, uint64_t memory);

/* A filter of the keys of a file; only of those that `before` has, if given.
 * For about `keys` of them, in at most `memory` bytes. */
calyx_filter *prefilter_of(char *file, const calyx_filter *before,
                           uint64_t keys, uint64_t memory);

/* A filter of the keys that occur more than once, and a few others: a key that
 * it lacks occurs once. For about `lines` lines, in at most `memory` bytes,
 * plus twice that while it is built. */
struct repeats {
    calyx_filter *filter;
    struct input_totals totals;
};
struct repeats prefilter_of_repeats(int count, char **files, uint64_t lines,
                                    uint64_t memory);

/* Is it worth a pass, for lines of this many bytes? A few are stored faster. */
bool prefilter_pays(uint64_t bytes, uint64_t memory);

uint64_t prefilter_bytes(const calyx_filter *prefilter); /* NULL: 0 */
uint64_t prefilter_keys(const calyx_filter *prefilter);  /* in it, about */

/* Bytes of one that is not made yet. */
uint64_t prefilter_bytes_for(uint64_t keys, uint64_t memory);

#endif
