#include "http/unit_cache.h"

#include <stdlib.h>
#include <string.h>

enum { CACHE_BYTES = 32 << 20 };

/* Open addressing, at most half full. */
struct unit_cache {
    struct cached_unit {
        uint64_t at;
        size_t number; /* of the unit's bytes, from 1 on; 0: nothing here */
    } * entries;
    size_t mask; /* entries - 1 */
    size_t unit_bytes, capacity, used;
    uint8_t *bytes;
};

struct unit_cache *unit_cache_new(size_t unit_bytes) {
    struct unit_cache *const c = alloc_memory(sizeof *c);
    const size_t capacity = CACHE_BYTES / unit_bytes;
    size_t entries = 2;
    while (entries < 2 * capacity) entries *= 2;
    *c = (struct unit_cache){.entries =
                                 alloc_memory(entries * sizeof *c->entries),
                             .mask = entries - 1,
                             .unit_bytes = unit_bytes,
                             .capacity = capacity,
                             .bytes = alloc_memory(CACHE_BYTES)};
    unit_cache_clear(c);
    return c;
}

void unit_cache_free(struct unit_cache *c) {
    free(c->entries);
    free(c->bytes);
    free(c);
}

size_t unit_cache_capacity(const struct unit_cache *c) {
    return c->capacity;
}

size_t unit_cache_room(const struct unit_cache *c) {
    return c->capacity - c->used;
}

void unit_cache_clear(struct unit_cache *c) {
    memset(c->entries, 0, (c->mask + 1) * sizeof *c->entries);
    c->used = 0;
}

/* The entry of this place, or the empty one where it would go. */
static struct cached_unit *entry_at(const struct unit_cache *c, uint64_t at) {
    size_t i = (size_t)(at * UINT64_C(0x9E3779B97F4A7C15) >> 20) & c->mask;
    while (c->entries[i].number && c->entries[i].at != at)
        i = (i + 1) & c->mask;
    return &c->entries[i];
}

const uint8_t *unit_cache_find(const struct unit_cache *c, uint64_t at) {
    const size_t number = entry_at(c, at)->number;
    return number ? c->bytes + (number - 1) * c->unit_bytes : NULL;
}

void unit_cache_put(struct unit_cache *c, struct unit unit,
                    const uint8_t *bytes) {
    struct cached_unit *const entry = entry_at(c, unit.at);
    if (entry->number) return;
    *entry = (struct cached_unit){unit.at, ++c->used};
    memcpy(c->bytes + (entry->number - 1) * c->unit_bytes, bytes, unit.size);
}
