/*
 * An exact set of keys in memory, with a payload of a few words for each.
 *
 *     slots    a hash table with open addressing, one word a slot:
 *              24 bits of the hash, and the position of the entry
 *     entries  one after the other, in insertion order:
 *              hash, sizes, payload, key, line
 *
 * A slot matches a wrong key once in 16 million times. Then the hash and the
 * bytes of the key decide, so the answer is exact with any hash. Entries
 * contain their hash, so the slots can be freed before larger ones are
 * allocated: both together never exceed the budget.
 */
#ifndef CALYX_TOOL_SET_H
#define CALYX_TOOL_SET_H

#include "tool.h"

struct key_set;

struct entry {
    uint64_t hash;
    uint32_t key_size;
    uint32_t line_behind; /* 0: none; else its size, and 1 */
    /* followed by the payload, the key and the line */
};

/* `payload`: bytes that the caller stores with each key, a multiple of 8. The
 * budget covers all memory of the set; the first key is accepted whatever its
 * size. */
struct key_set *set_new(uint64_t budget, size_t payload);
void set_free(struct key_set *set);

/* Forget all keys, and keep to another budget from now on. */
void set_clear(struct key_set *set, uint64_t budget);

/* Reserve slots for about `keys` keys. For an empty set. */
void set_expect(struct key_set *set, uint64_t keys);

/* NULL if it is not there. An entry stays in its place until the next put. */
struct entry *set_find(const struct key_set *set, const calyx_key *key,
                       uint64_t hash);

/* Insert a key that is absent, with a payload of zeros, and with `line` unless
 * that is NULL. Returns NULL if there is no room. */
struct entry *set_insert(struct key_set *set, const calyx_key *key,
                         uint64_t hash, const calyx_key *line);

/* Prefetch for a later set_find, in two steps. */
void set_prefetch_slot(const struct key_set *set, uint64_t hash);
void set_prefetch_entry(const struct key_set *set, uint64_t hash);

uint64_t set_count(const struct key_set *set);

/* All entries in the order in which they were put: start with NULL. */
struct entry *set_next(const struct key_set *set, const struct entry *entry);

/* Number of keys that fit into a budget, if an entry with all that is behind it
 * takes this many bytes. */
uint64_t set_capacity(uint64_t budget, uint64_t entry_size);

/* Parts of an entry: what the caller keeps beside it, and the line, which is
 * the key if none was given. */
void *set_payload(const struct key_set *set, const struct entry *entry);
calyx_key set_line(const struct key_set *set, const struct entry *entry);

#endif
