/*
 * An exact table of keys in memory, with a payload of a few words for each.
 *
 *     slots    where the keys are: slot_table.h
 *     keys     in sequence, in the order of the input:
 *              payload, size, bytes; and the line, in a table with lines
 *
 * The bytes of the key decide, so the answer is exact with any hash.
 *
 * One thread inserts keys, and the table grows. Or several threads search while
 * one adds, in a table that is reserved for them and does not grow: they copy
 * keys that they do not find to a place of their own, which is published in the
 * order of the input.
 */
#ifndef CALYX_TOOL_KEY_TABLE_H
#define CALYX_TOOL_KEY_TABLE_H

#include "tool.h"

struct key_table;
struct stored_key;

/* With a payload of a multiple of 8 bytes. */
struct key_table *key_table_new(size_t payload, bool with_lines);
void key_table_free(struct key_table *table); /* NULL is fine */

/* Forget all keys. From now on `hasher` makes the hashes, about `keys` keys are
 * expected, and `memory` bounds the slots and the keys. The first key
 * is accepted whatever its size. */
void key_table_start(struct key_table *table, const calyx_filter *hasher,
                     uint64_t keys, uint64_t memory);

/* Memory for all keys, so that several threads may search and copy. */
void key_table_reserve(struct key_table *table);

/* Find one key or several; NULL for an absent key. Any thread. */
struct stored_key *key_table_find_one(const struct key_table *table,
                                      const calyx_key *key, uint64_t hash);
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

/* Insert a key that is absent, with a payload of zeros, and with `line` in a
 * table with lines. NULL if there is no room. Keys move. */
struct stored_key *key_table_insert(struct key_table *table,
                                    const calyx_key *key, uint64_t hash,
                                    const calyx_key *line);

/* Prefetch for a later search, in two steps. */
void key_table_prefetch(const struct key_table *table, uint64_t hash);
void key_table_prefetch_key(const struct key_table *table, uint64_t hash);

uint64_t key_table_count(const struct key_table *table);

/* All keys that were inserted, in their order: start with NULL. */
struct stored_key *key_table_next(const struct key_table *table,
                                  struct stored_key *stored);

/* What is stored with a key. */
void *stored_payload(const struct key_table *table, struct stored_key *stored);
calyx_key stored_line(const struct key_table *table, struct stored_key *stored);

/* Bytes that a key takes beside its own and its slots, on average; and the
 * number of keys that fit into `memory`, if each takes `size` bytes with that
 * and about `expected` are expected. */
double stored_key_size(size_t payload);
uint64_t key_table_capacity(uint64_t expected, uint64_t memory, double size);

#endif
