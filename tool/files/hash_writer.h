/* Files of hashes, one for each of N ranges: what 'calyx hash' makes. */
#ifndef CALYX_TOOL_HASH_WRITER_H
#define CALYX_TOOL_HASH_WRITER_H

#include "tool.h"

enum { MOST_HASH_PARTS = 1024 }; /* files that are open at once */

struct hash_writer;

/* Create folder/1-of-N.hashes to N-of-N.hashes, for hashes and options for keys
 * as in `hasher`. */
struct hash_writer *hash_writer_open(const char *folder, uint32_t parts,
                                     bool by_shard, const calyx_filter *hasher,
                                     bool replace);

/* Add hashes by range; or, by shard, the hashes of file `part`, from 0 on. */
void hash_writer_add(struct hash_writer *writer, const uint64_t *hashes,
                     size_t n);
void hash_writer_put(struct hash_writer *writer, uint32_t part,
                     const uint64_t *hashes, size_t n);

/* The files appear. Returns the bytes of all of them. */
uint64_t hash_writer_close(struct hash_writer *writer);

#endif
