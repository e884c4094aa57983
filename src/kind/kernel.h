/*
 * What a kernel is: the functions that set and test the bits of one kind of
 * filter at one processor level.
 *
 * All kernels of a kind write exactly the same bits. So a filter that was built
 * on one machine can be read on any other. The scalar kernel is the
 * definition; unit tests hold the others to it.
 */
#ifndef CALYX_KERNEL_H
#define CALYX_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"

/* The numbers that decide where the bits of a hash go. */
struct shape {
    uint64_t blocks;
    uint32_t probes;
    uint32_t values;   /* 1: a value layer of an exact filter, whose bit is the
                          answer (kind.h); else 0                            */
    union {            /* 0 for kinds whose blocks are all alike       */
        uint64_t wide; /* static kinds: these first blocks have one probe
                          more                                           */
        uint64_t in_use; /* a table's newest segment: blocks that have keys */
        uint64_t spare;  /* a table's only segment: bits that its codes spare */
        uint64_t variable; /* whichever it is, for files                     */
    };
};

enum {
    BATCH_MAX = 1024, /* hashes in a batch at most */
    PREFETCH_DISTANCE =
        128 /* hashes between the prefetch of a cache line into
               L2 and its use, so the number of lines in flight */
};

/* Hashes to process, and hashes after them that a later batch will process. */
struct batch {
    const uint64_t *hashes;
    size_t n, more;
    size_t prefetched; /* hashes that the previous batch has prefetched */
    /* For kernels with .hashes_numbers: the numbers to hash into the memory of
     * `hashes` on the way, and the xxh3_flip of the seed. Else NULL. */
    const uint64_t *numbers;
    uint64_t flip;
};

/* A batch with nothing before or after it. */
static inline struct batch batch_of(const uint64_t *hashes, size_t n) {
    return (struct batch){.hashes = hashes, .n = n};
}

/* A part of a filter, as a kernel sees it. */
struct part_view {
    const uint8_t *body;
    struct shape shape;
};

/* What became of a key to remove. It is stuck if all its counters have come to
 * their highest value, where they stay. */
enum removal { KEY_ABSENT = 0, KEY_REMOVED = 1, KEY_STUCK = 2 };

/* What a layer of a static filter says of a hash. If it was bumped, the next
 * layer has the answer; beyond the last layer it is "no". */
enum layer_answer { LAYER_NO = 0, LAYER_YES = 1, LAYER_BUMPED = 2 };

struct kernel {
    enum cpu_level level;

    /* Does this processor have what the kernel needs beyond its level? NULL if
     * that is nothing. */
    bool (*runs)(void);

    /* One hash. `add` returns whether any bit was missing; it is NULL for
     * static kinds. */
    bool (*has)(const uint8_t *body, const struct shape *shape, uint64_t hash);
    bool (*add)(uint8_t *body, const struct shape *shape, uint64_t hash);

    /* Each hash of a batch. The first PREFETCH_DISTANCE hashes after it are
     * prefetched. `found` and `fresh` may be NULL. Both return the number of
     * trues. */
    size_t (*has_batch)(const uint8_t *body, const struct shape *shape,
                        struct batch batch, bool *found);
    size_t (*add_batch)(uint8_t *body, const struct shape *shape,
                        struct batch batch, bool *fresh);

    /* Remove a hash; or each of a batch, where `found` says which were there,
     * and the number of those that were removed is returned. Absent and stuck
     * ones change nothing. NULL for kinds that cannot remove. */
    enum removal (*remove)(uint8_t *body, const struct shape *shape,
                           uint64_t hash);
    size_t (*remove_batch)(uint8_t *body, const struct shape *shape,
                           struct batch batch, bool *found);

    /* Look up n hashes in several parts, of fewer than 2^32 blocks each, at
     * once: sets `found` for those that any part has, and leaves the others.
     * NULL if that is no faster than one part after the other. */
    void (*has_in_any)(const struct part_view *parts, size_t count,
                       const uint64_t *hashes, size_t n, bool *found);

    /* One layer of a static filter; NULL for other kinds. `found` is set for
     * each hash, to false if it was bumped, and `bumped`, which has room for
     * one more than the batch, to the places in the batch of those that were.
     * Returns their number. */
    enum layer_answer (*has_in_layer)(const uint8_t *body,
                                      const struct shape *shape, uint64_t hash);
    size_t (*has_batch_in_layer)(const uint8_t *body, const struct shape *shape,
                                 struct batch batch, bool *found,
                                 uint16_t *bumped);

    /* Kinds whose parts are segments of one table; else NULL. */
    const struct table_kernel *table;

    /* Does has_batch take batches of numbers? It hashes them while it waits for
     * memory, which then costs next to nothing. */
    bool hashes_numbers;
};

enum { PARTS_AT_ONCE = 16 }; /* the most parts that has_in_any takes */

/* On this processor, if it goes up to `level`. */
static inline bool kernel_runs(const struct kernel *kernel,
                               enum cpu_level level) {
    return kernel->level <= level && (!kernel->runs || kernel->runs());
}

/* The first that runs of a list that is ordered best level first and ends with
 * CPU_SCALAR. Called once a filter. */
static inline const struct kernel *kernel_up_to(
    const struct kernel *const *list, enum cpu_level level) {
    while (!kernel_runs(*list, level)) list++;
    return *list;
}

#endif
