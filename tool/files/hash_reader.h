/* Files of hashes, as 'calyx hash' made them: what 'calyx build --part' reads.
 */
#ifndef CALYX_TOOL_HASH_READER_H
#define CALYX_TOOL_HASH_READER_H

#include "input/source.h"
#include "tool.h"
#include "wire/hash_file.h"

/* Are the operands files of hashes? These are regular files, since they are
 * looked at before they are read; a pipe has lines. Fails if some are and
 * others are not. */
bool are_hash_files(int count, char **files);

struct hash_reader;

/* Open one and read its head. */
struct hash_reader *hash_reader_open(const char *path);
const struct hash_head *hash_reader_head(const struct hash_reader *reader);
const char *hash_reader_text(const struct hash_reader *reader);

/* The next hashes, at most HASH_CHUNK_MOST; 0 at the end, when all of them were
 * there. Fails if the file is damaged. */
size_t hash_reader_next(struct hash_reader *reader, const uint64_t **hashes);
void hash_reader_close(struct hash_reader *reader);

/* Fail unless the hashes are made for this filter. */
void hash_reader_expect(const struct hash_reader *reader,
                        const calyx_filter *hasher);

#endif
