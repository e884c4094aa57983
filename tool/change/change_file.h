/*
 * A change: what makes a new file of an old one, byte for byte, of any kind.
 * doc/FORMAT.md describes it. Files that belong together differ in few bytes at
 * the same places: bits of added keys, or layers after the old ones.
 *
 *     header | gaps | values
 *
 * The gaps are numbers in turn: bytes that are equal, bytes that differ. The
 * values are these bytes, XORed with the old ones: a new bit is one of eight
 * values. All of it is packed, by zstd or else gzip.
 */
#ifndef CALYX_TOOL_CHANGE_FILE_H
#define CALYX_TOOL_CHANGE_FILE_H

#include "input/source.h"
#include "tool.h"

enum { CHANGE_CHUNK = 1 << 16, CHANGE_HEADER = 72 };

/* A checksum of bytes that come in chunks: of the chunk, then of both sums. */
struct running_sum {
    calyx_filter *hasher;
    uint64_t sum;
};

struct change_facts {
    uint64_t old_size, old_sum, new_size, new_sum;
    uint64_t gap_bytes, value_bytes;
};

void sum_begin(struct running_sum *s);
void sum_add(struct running_sum *s, const void *chunk, size_t size);
void sum_end(struct running_sum *s);

/* The header, with its checksum; and back: fails with the name if it is wrong.
 */
void store_change(const struct change_facts *facts, uint64_t content_sum,
                  uint8_t header[CHANGE_HEADER]);
uint64_t load_change(const char *name, const uint8_t header[CHANGE_HEADER],
                     struct change_facts *facts);

#endif
