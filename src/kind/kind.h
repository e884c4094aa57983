/*
 * A kind of filter, seen from above: how many bytes it wants, and how to set
 * and test bits in them. Kinds own no memory, do no I/O and keep no state; the
 * bytes, and the promise that they fit the shape, come from the caller.
 *
 * To add a kind: write src/kind/<name>.c with one `const struct kind
 * kind_<name>`, and add its name to the list in kinds.c.
 */
#ifndef CALYX_KIND_H
#define CALYX_KIND_H

#include <calyx/calyx.h>

#include "kind/kernel.h"

/* One block of another body, to be joined with one of ours. */
struct block_ref {
    const uint8_t *body;
    const struct shape *shape;
    uint64_t number;
};

enum { MOST_COUNTER_OFFSETS = 8 };

enum joining { SUMS, LEAST }; /* to merge or fold; to intersect */

/* What every kind can whose keys are bits that are only ever set. */
enum {
    CAN_BLOOM = CALYX_CAN_ADD | CALYX_CAN_MERGE | CALYX_CAN_INTERSECT |
                CALYX_CAN_FOLD | CALYX_CAN_GROW | CALYX_CAN_SHARE
};

struct kind {
    const char *name; /* "line": what people type                           */
    uint16_t code;    /* in files; given out once, never given again        */
    const char *hash; /* the default hash                                   */
    uint32_t can;     /* CALYX_CAN_ADD | ...                                */

    /* A body is `blocks` times as many bits as these, rounded up to 64 bytes:
     * first the bits that lookups read, then, for kinds that count, counters.
     */
    uint32_t block_bits;
    uint32_t counter_bits;
    bool one_block; /* a key has all its bits in one, which scale64 picks */

    /* Byte offsets in the body that a lookup reads, at most most_probes; each
     * stands for its 64 bytes. Returns their number. NULL if one_block is set,
     * or if unknown: then a mapped file is verified whole before its first
     * use. */
    size_t (*offsets)(const struct shape *shape, uint64_t hash, uint64_t *at);
    /* The answer from copies of these bytes: 64 for each offset, aligned, in
     * their order. NULL if one_block is set, or `offsets` is NULL. */
    bool (*has_in_copies)(const struct shape *shape, uint64_t hash,
                          const uint8_t *copies);

    uint64_t most_blocks; /* that a shape may have             */
    uint32_t most_probes;
    uint32_t probe_step; /* the fewest; others are multiples  */
    double least_fpr;    /* the lowest that it can promise    */

    /* The rate to expect once this many keys are in. */
    double (*fpr)(const struct shape *shape, double items);

    /* Bits of a key in the mean, where two of its probes may be the same bit
     * however large the filter; else NULL: as many as probes. */
    double (*bits_of_key)(uint32_t probes);

    const struct kernel *const *kernels;        /* best first, scalar last */
    const struct kernel *const *atomic_kernels; /* for many adding threads; NULL
                                                   if one must add alone */

    /* Only for kinds that count; else NULL. `count` returns how often a hash
     * was added, at most. `join` makes the counters of a block, and its bits,
     * the sums of those here and in the other, or the lesser of the two. */
    uint32_t (*count)(const uint8_t *body, const struct shape *shape,
                      uint64_t hash);
    void (*join)(uint8_t *body, const struct shape *shape, uint64_t block,
                 const struct block_ref *other, enum joining how);
    /* Byte offsets of the counters that adding a hash may change, at most
     * MOST_COUNTER_OFFSETS; each stands for its 64 bytes. Returns their number.
     * NULL if unknown. */
    size_t (*counter_offsets)(const struct shape *shape, uint64_t hash,
                              uint64_t *at);
};

/* As `offsets` and `has_in_copies`, for any kind; 0 offsets if unknown. */
size_t kind_offsets(const struct kind *kind, const struct shape *shape,
                    uint64_t hash, uint64_t *at);
bool kind_has_in_copies(const struct kind *kind, const struct shape *shape,
                        uint64_t hash, const uint8_t *copies);

const struct kind *kind_named(const char *name); /* NULL if there is none */
const struct kind *kind_coded(uint32_t code);    /* NULL if there is none */
/* The name of a kind that once had this code; NULL if none had. */
const char *kind_retired(uint32_t code);

#endif
