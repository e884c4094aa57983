/*
 * The keys of some lists, in memory, and which of them were found since: to
 * distinguish included keys of a universe from the others. The bytes of a key
 * decide, not a hash.
 */
#ifndef CALYX_TOOL_KNOWN_KEYS_H
#define CALYX_TOOL_KNOWN_KEYS_H

#include "input/pipeline.h"

struct known_keys;

/* Fails if they take more than `memory`. `hasher` stays the caller's. */
struct known_keys *known_keys_read(const calyx_filter *hasher, uint64_t memory,
                                   int count, char **files);
void known_keys_free(struct known_keys *known);

uint64_t known_keys_count(const struct known_keys *known);

/* Which of these are known? From now on they count as found. Any thread. */
void known_keys_find(struct known_keys *known, const calyx_key *keys,
                     const uint64_t *hashes, size_t n, bool *is_known);

/* All of them, in the order of the lists. */
typedef void known_key_visitor(void *context, const calyx_key *key, bool found);
void known_keys_visit(const struct known_keys *known, known_key_visitor *visit,
                      void *context);

/* Print the first keys that were not found, and return the number of all. */
uint64_t name_keys_not_found(const struct known_keys *known, const char *where);

#endif
