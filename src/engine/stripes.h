/*
 * Adding from many threads to a kind whose keys lie in one block each (lock
 * striping).
 *
 * The blocks of a part are divided into stripes, ranges of equal size. A thread
 * adds to a stripe by plain loads and stores while it holds the lock of the
 * stripe. A locked instruction takes 2.4 ns, and a new key would need three of
 * them to set its bits; a lock takes one, for all keys of a batch that lie in
 * one stripe. Lookups take no locks: bits are only ever set.
 *
 * A thread that meets no other takes all locks for a batch. If it meets one,
 * the batch is grouped first, by the high bits of its hashes, which takes 1 ns
 * a key; a group is added while its stripes are locked, and if one of them is
 * taken, after the other groups.
 */
#ifndef CALYX_STRIPES_H
#define CALYX_STRIPES_H

#include "engine/engine.h"

enum {
    STRIPE_BITS = 4,
    STRIPE_COUNT = 1 << STRIPE_BITS,
    STRIPE_BATCH_MAX = 4096 /* hashes in a batch at most */
};

struct stripe {
    _Alignas(64) uint32_t locked; /* a cache line each */
};

struct stripes {
    struct stripe stripe[STRIPE_COUNT];
    uint32_t crowded; /* batches to group before trying all locks again */
};

/* Give a new filter its stripes, if it needs them: many threads add to it, and
 * the bits of a key are in one block. */
calyx_status allocate_stripes(calyx_filter *f);
void move_stripes(calyx_filter *f, calyx_move_function *move, void *context);
void add_stripes_info(const calyx_filter *f, calyx_info *info);
void free_stripes(calyx_filter *f);

/* As the kernel's add and add_batch, of a filter with stripes. */
bool add_to_stripe(calyx_filter *f, struct part *p, uint64_t hash);
size_t add_batch_to_stripes(calyx_filter *f, struct part *p, struct batch batch,
                            bool *fresh);

/* Of any filter. */
static inline bool add_to_part(calyx_filter *f, struct part *p, uint64_t hash) {
    return f->stripes ? add_to_stripe(f, p, hash)
                      : f->kernel->add(p->body, &p->shape, hash);
}

static inline size_t add_batch_to_part(calyx_filter *f, struct part *p,
                                       struct batch batch, bool *fresh) {
    return f->stripes ? add_batch_to_stripes(f, p, batch, fresh)
                      : f->kernel->add_batch(p->body, &p->shape, batch, fresh);
}

#endif
