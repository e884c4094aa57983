/*
 * An exact set of keys in memory, with room for a few words beside each.
 *
 *     slots    a hash table with open addressing, one word a slot:
 *              24 bits of the hash, and where the entry stands
 *     entries  one behind the other, in the order in which they came:
 *              hash, sizes, what the caller keeps, key, line
 *
 * A slot is wrong about a key once in 16 million times; then the hash and the
 * bytes of the key decide, so that the answer is right with any hash. Entries
 * carry their hash, so the slots can be thrown away before larger ones are
 * made: both together never take more than the budget.
 */
#ifndef CALYX_TOOL_SET_H
#define CALYX_TOOL_SET_H

#include "tool.h"

struct key_set;

struct entry {
    uint64_t hash;
    uint32_t key_size;
    uint32_t line_behind; /* 0: none; else its size, and 1 */
    /* what the caller keeps, the key and the line stand behind it */
};

/* `beside`: bytes that the caller keeps with each key, a multiple of 8. The
 * budget is for all memory of the set; the first key is taken whatever its
 * size. */
struct key_set *set_new(uint64_t budget, size_t beside);
void set_free(struct key_set *set);

/* Forget all keys, and keep to another budget from now on. */
void set_clear(struct key_set *set, uint64_t budget);

/* About so many keys will be put: saves growing. For an empty set. */
void set_expect(struct key_set *set, uint64_t keys);

/* NULL if it is not there. An entry stays in its place until the next put. */
struct entry *set_find(const struct key_set *set, const calyx_key *key,
                       uint64_t hash);

/* Put a key that is not there; what is kept beside it is zeros. `line`, if any,
 * is kept with it. NULL if there is no room. */
struct entry *set_insert(struct key_set *set, const calyx_key *key,
                         uint64_t hash, const calyx_key *line);

/* For those who know what they will ask for: two steps ahead of it. */
void set_prefetch_slot(const struct key_set *set, uint64_t hash);
void set_prefetch_entry(const struct key_set *set, uint64_t hash);

uint64_t set_count(const struct key_set *set);

/* All entries in the order in which they were put: start with NULL. */
struct entry *set_next(const struct key_set *set, const struct entry *entry);

/* Parts of an entry: what the caller keeps beside it, and the line, which is
 * the key if none was given. */
void *set_payload(const struct key_set *set, const struct entry *entry);
calyx_key set_line(const struct key_set *set, const struct entry *entry);

#endif
