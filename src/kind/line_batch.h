/* What the vector levels of x86 need before they include
 * line_batch_template.h. */
#ifndef CALYX_LINE_BATCH_H
#define CALYX_LINE_BATCH_H

#include <string.h>

#include "hash/xxh3_avx2.h"
#include "kind/avx2.h"
#include "kind/line.h"

ALWAYS_INLINE uint8_t *line_of(const struct part_view *part, uint64_t hash) {
    return (uint8_t *)part->body + line_offset(hash, &part->shape);
}

/* Eight hashes to prefetch into L2, and eight into L1, if wanted. */
struct prefetch_8 {
    bool into_l2, into_l1;
    const uint64_t *far, *near;
};

ALWAYS_INLINE void prefetch_at(const struct part_view *part,
                               struct prefetch_8 ahead, size_t i) {
    if (ahead.into_l2) prefetch_l2(line_of(part, ahead.far[i]));
    if (ahead.into_l1) prefetch_l1(line_of(part, ahead.near[i]));
}

/* The has_in_any of all vector kernels of x86; in line_avx2.c. */
void line_has_in_any(const struct part_view *parts, size_t count,
                     const uint64_t *hashes, size_t n, bool *found);

#endif
