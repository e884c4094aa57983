/*
 * Filters that take strangers out before anything is kept: lines that certainly
 * cannot be in the result. The files are read once more for it, which is cheap;
 * what it saves is memory, and what that does not hold, disk.
 */
#ifndef CALYX_TOOL_PREFILTER_H
#define CALYX_TOOL_PREFILTER_H

#include "exact/budget.h"
#include "input/pipeline.h"

/* An empty one for about so many keys, in at most `memory` bytes. */
calyx_filter *prefilter_new(uint64_t keys, uint64_t memory);

/* A filter of the keys of a file, of those only that `before` may have, if it
 * is given. For about `keys` of them, in at most `memory` bytes. */
calyx_filter *prefilter_of(char *file, const calyx_filter *before,
                           uint64_t keys, uint64_t memory);

/* A filter of the keys that stand in the files more than once, and few others:
 * what it lacks, stands there once. For about so many lines, in at most
 * `memory` bytes, and twice as much again while it is made. */
struct repeats {
    calyx_filter *prefilter;
    struct input_totals totals;
};
struct repeats prefilter_of_repeats(int count, char **files, uint64_t lines,
                                    uint64_t memory);

/* Worth it, for so many bytes of lines? Few are sooner kept than sieved. */
bool prefilter_pays(uint64_t bytes, uint64_t memory);

uint64_t prefilter_bytes(
    const calyx_filter *prefilter); /* of memory; NULL: 0 */

uint64_t prefilter_keys(const calyx_filter *prefilter); /* in it, about */

/* Bytes of memory before it is made. */
uint64_t prefilter_bytes_for(uint64_t keys, uint64_t memory);

#endif
