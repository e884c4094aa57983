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

/* A build can leave out all kinds but line: -DCALYX_NO_RIBBON=1. */
#ifndef CALYX_NO_LINE2
#define CALYX_NO_LINE2 0
#endif
#ifndef CALYX_NO_SPLIT
#define CALYX_NO_SPLIT 0
#endif
#ifndef CALYX_NO_FLAT
#define CALYX_NO_FLAT 0
#endif
#ifndef CALYX_NO_COUNTING
#define CALYX_NO_COUNTING 0
#endif
#ifndef CALYX_NO_RIBBON
#define CALYX_NO_RIBBON 0
#endif
#ifndef CALYX_NO_BUCKET
#define CALYX_NO_BUCKET 0
#endif

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

/*
 * How a static kind (CALYX_CAN_STATIC) is made of all its hashes at once.
 *
 * A static filter is a short list of layers, the parts of the filter. The first
 * layer takes all hashes. Some it cannot hold: it bumps them to the next layer,
 * which is smaller, by other hashes. The last layer bumps none. A lookup goes
 * through the layers until one has not bumped the hash.
 *
 * A layer is cut into lots, one for each range of hashes, and a lot is one
 * range of bytes. Lots do not depend on each other: threads build them in any
 * order, and the bytes are always the same. The caller
 *
 *     sorts the hashes and removes duplicates;
 *     shape = layer(n, fpr)             n may be 0 for the first layer
 *     for each lot from 0 to lots(shape) - 1:
 *         build(shape, lot, its hashes, ...) -> its bytes, bumped hashes
 *     if any were bumped, goes on with these: the next layer.
 *
 * An exact filter answers without an error for all keys of a set that is known,
 * the universe. After the layers of the included keys it has value layers, of
 * the hashes of all keys of the universe that pass the first ones: included
 * keys, and excluded ones by chance. The bit that a value layer stores for a
 * hash is the answer. The lowest bit of these hashes is not theirs: lookups
 * clear it, and in what `build` takes and bumps it is 1 for excluded keys. The
 * excluded hash then gets the complement of what a lookup compares with.
 *
 * All functions are pure: they allocate nothing and do no I/O.
 */
struct lot {
    uint64_t first;     /* lowest hash; the next lot begins after the highest */
    uint64_t at, bytes; /* in the body; lots follow each other without gaps   */
};

struct construction {
    uint32_t most_layers; /* if the last of these bumps, building has failed:
                             hashes are not mixed, or were chosen to do so  */
    size_t scratch_bytes; /* for `build`, for any lot; 64-byte aligned      */

    /* The shape of a layer for this number of distinct hashes; and of a value
     * layer. */
    struct shape (*layer)(uint64_t hashes, double fpr);
    struct shape (*value_layer)(uint64_t hashes);
    /* Share of the hashes that a layer of this number is expected to bump. */
    double (*bumped_share)(uint64_t hashes, bool values);
    uint64_t (*lots)(const struct shape *shape);
    struct lot (*lot)(const struct shape *shape, uint64_t number);

    /*
     * Build one lot from the hashes of its range: ascending, each once, any
     * number. Writes all its bytes, and puts the hashes that it bumps into
     * `bumped`, which has room for n and may be the same array: rehashed for
     * the next layer, in no order. Returns their number.
     */
    size_t (*build)(const struct shape *shape, uint64_t number,
                    const uint64_t *hashes, size_t n, void *scratch,
                    uint8_t *bytes, uint64_t *bumped);

    /* The hash of a key in the next layer. Different hashes stay different. */
    uint64_t (*next_hash)(uint64_t hash);
    /* The same for value layers: in the first one, from the hash of the key. */
    uint64_t (*next_value_hash)(uint64_t hash);

    /* Was this hash bumped? From the copies that has_in_copies takes. */
    bool (*is_bumped_in_copies)(const struct shape *shape, uint64_t hash,
                                const uint8_t *copies);
};

/* How a kind counts what was added. */
struct counting {
    /* How often a hash was added, at most. */
    uint32_t (*count)(const uint8_t *body, const struct shape *shape,
                      uint64_t hash);
    /* Make the counters of a block, and its bits, the sums of the counters here
     * and in the other block, or the lesser of the two. NULL: cannot merge. */
    void (*join)(uint8_t *body, const struct shape *shape, uint64_t block,
                 const struct block_ref *other, enum joining how);
    /* Byte offsets of the counters that adding a hash may change, at most
     * MOST_COUNTER_OFFSETS; each stands for its 64 bytes. Returns their number.
     * NULL if unknown. */
    size_t (*counter_offsets)(const struct shape *shape, uint64_t hash,
                              uint64_t *at);
};

/* Kinds that grow within one table: the parts of a filter are the segments of
 * the table, and a key is in one of them (engine/table_engine.h). */
struct segments {
    uint32_t least_blocks;   /* of the first segment               */
    uint32_t growing_probes; /* the fewest of a table that grows   */
    /* Is this the segment of that number, if the first one has this shape? */
    bool (*is_segment)(const struct shape *first, uint32_t number,
                       const struct shape *shape);
    /* The shape that a table for a few keys begins with, if it has this many
     * probes once it has grown. It takes memory as keys come, and doubles as a
     * whole, unless it is shared by threads. *capacity becomes the number that
     * it has room for, if that is more. False if there is no such shape, or
     * there are too many keys. NULL: never. */
    bool (*begins_small)(uint32_t probes, bool shared, uint64_t *capacity,
                         struct shape *shape);
    /* What it doubles to, to have room for this number of keys; not NULL if
     * begins_small is not. */
    struct shape (*shape_for)(const struct shape *first, uint64_t keys);
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
    /* Lines of 64 bytes for counters, if they are not a multiple of blocks;
     * then counter_bits is their share of a large body. Else NULL. */
    uint64_t (*counter_lines)(const struct shape *shape);
    bool one_block; /* a key has all its bits in one, which scale64 picks */
    bool is_table;  /* keys are fingerprints in slots, not bits that are set */
    /* Bits that lookups read, if blocks differ in size; then block_bits is 0.
     * Else NULL. */
    uint64_t (*body_bits)(const struct shape *shape);
    /* Whether such a shape exists, beyond the limits below; NULL: it does. */
    bool (*is_shape)(const struct shape *shape);

    /* Byte offsets in the body that a lookup reads, at most most_probes; each
     * stands for its 64 bytes. Returns their number. NULL if one_block is set,
     * or if unknown: then a mapped file is verified whole before its first
     * use. */
    size_t (*offsets)(const struct shape *shape, uint64_t hash, uint64_t *at);
    /* The answer from copies of these bytes: 64 for each offset, aligned, in
     * their order. NULL if one_block is set, or `offsets` is NULL. */
    bool (*has_in_copies)(const struct shape *shape, uint64_t hash,
                          const uint8_t *copies);

    /* One hash in bits at any address, not a byte longer than the blocks are,
     * that nobody else changes. NULL for kinds that are more than bits. */
    bool (*has_in_bits)(const uint8_t *bits, const struct shape *shape,
                        uint64_t hash);
    void (*add_to_bits)(uint8_t *bits, const struct shape *shape,
                        uint64_t hash);

    uint64_t most_blocks; /* that a shape may have             */
    uint32_t most_probes;
    uint32_t probe_step; /* the fewest; others are multiples  */
    double least_fpr;    /* the lowest that it can promise    */

    /* The rate to expect once this many keys are in. */
    double (*fpr)(const struct shape *shape, double items);
    /* Nearly the same in much less time, to search by; NULL if fpr is fast.
     * *error becomes an upper estimate of what its logarithm is wrong by. */
    double (*quick_fpr)(const struct shape *shape, double items, double *error);

    /* Bits of a key in the mean, where two of its probes may be the same bit
     * however large the filter; else NULL: as many as probes. */
    double (*bits_of_key)(uint32_t probes);

    const struct kernel *const *kernels; /* best first, scalar last */
    /* For many adding threads; NULL if one must add alone. Kinds with one_block
     * and tables need not add atomically: engine/stripes.h has locks. */
    const struct kernel *const *atomic_kernels;

    /* What only some families of kinds have; else NULL. */
    const struct counting *counting; /* keys can be removed     */
    const struct segments *segments; /* the parts are one table */
    const struct kind *fixed;        /* filters of this name that do not grow */
    const struct construction *construction; /* static                  */
};

/* Bits of a body that count keys: they come after the bits of lookups. */
uint64_t kind_counter_bits(const struct kind *kind, const struct shape *shape);

/* Bits of a body that lookups read. */
uint64_t kind_bits(const struct kind *kind, const struct shape *shape);

/* As `offsets` and `has_in_copies`, for any kind; 0 offsets if unknown. */
size_t kind_offsets(const struct kind *kind, const struct shape *shape,
                    uint64_t hash, uint64_t *at);
bool kind_has_in_copies(const struct kind *kind, const struct shape *shape,
                        uint64_t hash, const uint8_t *copies);

const struct kind *kind_named(const char *name); /* NULL if there is none */
const struct kind *kind_coded(uint32_t code);    /* NULL if there is none */

/* All kinds; the kinds that calyx_kinds() lists come first. */
extern const struct kind *const kind_table[];
extern const uint32_t kind_count;

/* NULL if there is none. */
static inline const struct kind *kind_at(uint32_t number) {
    return number < kind_count ? kind_table[number] : NULL;
}

/* A kind that this build does not have, and the macro that left it out. */
struct left_out {
    const char *name, *by;
    uint32_t code;
};

/* Found by the name, unless it is NULL, or by the code. NULL if there is none.
 */
const struct left_out *kind_left_out(const char *name, uint32_t code);

#endif
