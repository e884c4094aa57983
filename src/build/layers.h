/* Static kinds: the layers of a filter, from the sorted hashes of a spool. */
#ifndef CALYX_LAYERS_H
#define CALYX_LAYERS_H

#include "build/hash_spool.h"
#include "filter/filter.h"

struct layer_options {
    const calyx_memory *memory; /* that threads work in */
    const char *folder;         /* of temporary files */
    uint32_t threads;
};

/* The spool of all keys gets 80 % of the memory, and what a layer bumps 80 % of
 * the rest. */
size_t spool_hashes(uint64_t memory_bytes);
uint64_t memory_of_next(uint64_t memory_bytes);

/* Lots of one layer, which are one range of its body. */
struct lot_range {
    uint64_t first, end;
};

/* Build these lots from the `n` hashes of a spool, all of which are in their
 * range. `body` is where the body of the whole layer begins; bytes of other
 * lots are not touched. What the lots bump goes to `next`. */
calyx_status build_lots(const struct layer_options *how,
                        const struct kind *kind, const struct shape *shape,
                        struct lot_range lots, const struct hash_spool *s,
                        uint64_t n, uint8_t *body, struct hash_spool *next,
                        calyx_error *why);

/* Add a layer like this one, of the hashes in the spool, and layers of what it
 * bumps, until one bumps nothing. `number` counts the layers, from 0 on. */
calyx_status add_layers(const struct layer_options *how, calyx_filter *f,
                        const struct part *like, const struct hash_spool *s,
                        uint64_t memory_bytes, uint32_t number,
                        calyx_error *why);

/* Add the value layers of an exact filter, which has its first layers, unless
 * all keys are to pass. The hashes of the keys are in two sealed spools. */
struct universe {
    const struct hash_spool *included, *excluded;
    uint64_t keys, included_keys; /* distinct */
};

calyx_status add_value_layers(const struct layer_options *how, calyx_filter *f,
                              const struct universe *all, uint64_t memory_bytes,
                              calyx_error *why);

#endif
