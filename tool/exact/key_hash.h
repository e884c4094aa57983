/*
 * Hashes of keys for the exact verbs, with a random seed for each process.
 * Level 0 is for the input; each level of spills has another
 * seed.
 */
#ifndef CALYX_TOOL_KEY_HASH_H
#define CALYX_TOOL_KEY_HASH_H

#include "tool.h"

/* Options of a filter that takes the hashes of a level. */
calyx_options key_hash_options(unsigned level);

/* Call this at level 0 before there are threads: it draws the seed. */
calyx_filter *key_hasher(unsigned level);

void hash_keys(const calyx_filter *hasher, const calyx_key *keys, size_t n,
               uint64_t *hashes);

#endif
