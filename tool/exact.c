#include "exact.h"

#include <stdlib.h>
#include <string.h>

struct entry {
    uint64_t hash;
    void *bytes; /* NULL: the entry is free */
    size_t size;
};

struct exact {
    struct entry *entries;
    size_t count, room; /* a power of two */
};

struct exact *exact_new(void) {
    struct exact *const set = take_memory(sizeof *set);
    *set = (struct exact){.room = 1024};
    set->entries = take_memory(set->room * sizeof *set->entries);
    memset(set->entries, 0, set->room * sizeof *set->entries);
    return set;
}

/* The entry of a key, or the free one where it belongs. */
static struct entry *find(const struct exact *set, const calyx_key *key,
                          uint64_t hash) {
    for (size_t at = (size_t)hash;; at++) {
        struct entry *const e = &set->entries[at & (set->room - 1)];
        if (!e->bytes) return e;
        if (e->hash == hash && e->size == key->size &&
            memcmp(e->bytes, key->data, key->size) == 0)
            return e;
    }
}

static void grow(struct exact *set) {
    const struct exact old = *set;
    set->room *= 2;
    set->entries = take_memory(set->room * sizeof *set->entries);
    memset(set->entries, 0, set->room * sizeof *set->entries);
    for (size_t i = 0; i < old.room; i++) {
        const struct entry *const e = &old.entries[i];
        if (e->bytes) *find(set, &(calyx_key){e->bytes, e->size}, e->hash) = *e;
    }
    free(old.entries);
}

void exact_add(struct exact *set, const calyx_key *key, uint64_t hash) {
    if (2 * set->count >= set->room) grow(set);
    struct entry *const e = find(set, key, hash);
    if (e->bytes) return;
    *e = (struct entry){hash, take_memory(key->size + 1), key->size};
    if (key->size) memcpy(e->bytes, key->data, key->size);
    set->count++;
}

bool exact_has(const struct exact *set, const calyx_key *key, uint64_t hash) {
    return find(set, key, hash)->bytes != NULL;
}
