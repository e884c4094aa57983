/*
 * Bytes of a file that were read before: units of the same size, by their place
 * in the file. Holds 32 MiB; when it is full, the caller clears it.
 */
#ifndef CALYX_TOOL_UNIT_CACHE_H
#define CALYX_TOOL_UNIT_CACHE_H

#include "tool.h"

/* The last unit of a section may have fewer bytes. */
struct unit {
    uint64_t at, size;
};

struct unit_cache;
struct unit_cache *unit_cache_new(size_t unit_bytes);
void unit_cache_free(struct unit_cache *cache);

size_t unit_cache_capacity(const struct unit_cache *cache); /* in units */
size_t unit_cache_room(const struct unit_cache *cache);     /* left, in units */
void unit_cache_clear(struct unit_cache *cache);

/* NULL if it is not there. Valid until unit_cache_clear. */
const uint8_t *unit_cache_find(const struct unit_cache *cache, uint64_t at);

/* There must be room, unless it is there already. */
void unit_cache_put(struct unit_cache *cache, struct unit unit,
                    const uint8_t *bytes);

#endif
