/*
 * An exact set of keys in memory, which several threads search while one adds.
 *
 *     slots    a hash table with open addressing, one word a slot:
 *              24 bits of the hash, and the place of the key
 *     keys     one after the other: payload, size, bytes
 *
 * For a number of keys that is known before: unlike struct key_set it does not
 * grow, and a key takes 4 bytes more than its own, and 12 in slots. Threads
 * copy keys that they do not find to a place of their own, which is published
 * in the order of the input.
 */
#ifndef CALYX_TOOL_KEY_TABLE_H
#define CALYX_TOOL_KEY_TABLE_H

#include "tool.h"

struct key_table;
struct stored_key;

/* For about `keys` keys, in `memory` bytes, with a payload of a multiple of 8
 * bytes. */
struct key_table *key_table_new(uint64_t keys, uint64_t memory, size_t payload);
void key_table_free(struct key_table *table); /* NULL is fine */

/* Forget all keys. */
void key_table_clear(struct key_table *table);

/* Bytes for keys of this many bytes together. */
uint64_t key_table_bytes(uint64_t keys, uint64_t bytes, size_t payload);

/* Find some keys; NULL for those that are not there. Any thread. */
void key_table_find(const struct key_table *table, const calyx_key *keys,
                    const uint64_t *hashes, size_t n,
                    struct stored_key **found);

/* Copy the keys for which `stored` is NULL, with a payload of zeros. It stays
 * NULL if there is no room. Any thread. */
void key_table_copy(struct key_table *table, const calyx_key *keys, size_t n,
                    struct stored_key **stored);

/* Add a copy, unless the key is there or there is no room. Returns the one that
 * is in the table then, or NULL. One thread at a time. */
struct stored_key *key_table_add(struct key_table *table, uint64_t hash,
                                 struct stored_key *copy);
void key_table_prefetch(const struct key_table *table, uint64_t hash);

void *stored_payload(const struct key_table *table, struct stored_key *stored);
uint64_t key_table_count(const struct key_table *table);

#endif
