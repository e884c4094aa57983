/*
 * Filters in chunks, as BF.DUMP and BF.LOAD of the server module have them;
 * doc/COMMANDS.md tells how. A filter is its head and a row of bits, of which a
 * chunk is 1 MiB, the last one less; the sum of all chunks is made of theirs.
 */
#ifndef CALYX_TOOL_CHUNKS_H
#define CALYX_TOOL_CHUNKS_H

#include "tool.h"

enum { CHUNK_BYTES = 1 << 20 };

uint64_t chunk_count(uint64_t bytes);
size_t chunk_size(uint64_t bytes, uint64_t number);

uint64_t sum_of(const void *bytes, size_t size);
uint64_t sum_with(uint64_t sum, uint64_t of_chunk);

/* As 16 hexadecimal digits. */
struct sum_digits {
    char text[17];
};
struct sum_digits sum_text(uint64_t sum);
bool sum_from(const char *text, size_t size, uint64_t *sum);

/* The head as a server wants it, in memory of its own; and the filter that such
 * a head describes, without bits. */
uint8_t *head_of(const calyx_filter *f, size_t *size);
calyx_status filter_of_head(const uint8_t *head, size_t size,
                            calyx_filter **out, calyx_error *why);

/* Do they tell of the same filter, whatever else a server notes there? */
bool are_heads_of_one(const uint8_t *a, size_t size_a, const uint8_t *b,
                      size_t size_b);

#endif
