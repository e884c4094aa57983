/*
 * One logical filter in N shards: N files, or N keys of a cluster. A key
 * belongs to shard XXH64(key, seed 0) mod N, whatever the hash of the filters:
 * every language has XXH64, and it is independent of the bits within a shard.
 * Shard i of NAME is under the key NAME:{i}, whose slot is the slot of "i";
 * NAME:shards holds their number.
 */
#ifndef CALYX_TOOL_SHARDS_H
#define CALYX_TOOL_SHARDS_H

#include "input/pipeline.h"
#include "server/cluster.h"

enum { MOST_SHARDS = 1024 };

/* A number from 1 to MOST_SHARDS, into a uint64_t. */
void parse_shards(const struct verb_option *option, const char *value);

uint32_t shard_of(const calyx_key *key, uint64_t shards);

/* As hash_block, but grouped by shard, in the order of the lines; the hashes of
 * shard i end at block->ends[i]. */
void hash_for_shards(struct text_block *block, struct key_batch *batch,
                     const calyx_filter *f, uint64_t shards);

/* The shard of a file: seen.calyx becomes seen.3-of-16.calyx. */
char *shard_file(const char *stem, uint64_t number, uint64_t shards);

/* Fail if the files are not there. */
void look_for_shards(const char *stem, uint64_t shards);

/* The key of a shard, in memory of its own; with `shards` 0, the name of the
 * filter as a whole. */
struct name shard_name(const struct url *address, uint64_t number,
                       uint64_t shards);

/* How many shards the server has by this name; 0 if it does not say. */
uint64_t shards_there(struct cluster *server, const struct url *address);
void shards_note(struct cluster *server, const struct url *address,
                 uint64_t shards);

#endif
