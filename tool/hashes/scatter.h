/*
 * Hashes of lines, written in the order of the input and read by range.
 *
 * A range is what hashes with the same high bits have in common. A record of 8
 * bytes has the number of a line, and below the bits of the range as many bits
 * of its hash as there is room for, 32 at most. Each thread has a writer with
 * an open chunk of memory for each range, and collects a cache line of records
 * before it is written there, past the cache, as in the partitioning of a radix
 * join. A full chunk stays in memory while the limit allows it. All others go
 * to one temporary file.
 */
#ifndef CALYX_TOOL_SCATTER_H
#define CALYX_TOOL_SCATTER_H

#include "tool.h"

struct scatter;
struct scatter_writer;

/* For about `lines` lines, and never more than `most_lines`; in `memory` bytes,
 * with a writer for each of `writers` threads. */
struct scatter *scatter_new(uint64_t lines, uint64_t most_lines,
                            uint64_t memory, size_t writers);
void scatter_free(struct scatter *scatter);

/* Take a writer for a while. Any thread. */
struct scatter_writer *scatter_take(struct scatter *scatter);
void scatter_return(struct scatter_writer *writer);

/* Add the hashes of consecutive lines, from this line on. */
void scatter_add(struct scatter_writer *writer, const uint64_t *hashes,
                 size_t n, uint64_t line);

/* When all lines are there: no writer may be used any more. */
void scatter_end(struct scatter *scatter);

unsigned scatter_ranges(const struct scatter *scatter);

/* What a record is made of: below a tag of the hash, the number of the line, in
 * this many bits. */
unsigned scatter_line_bits(const struct scatter *scatter);

static inline uint64_t record_line(uint64_t record, unsigned line_bits) {
    return record & ((UINT64_C(1) << line_bits) - 1);
}

static inline uint32_t record_tag(uint64_t record, unsigned line_bits) {
    return (uint32_t)(record >> line_bits);
}

/* Pass the records of a range to `visit`, some at a time, in no order; until it
 * returns false. Returns whether it never did. Several threads may read
 * different ranges. `buffer` is for records that are not in memory: of `room`
 * bytes, at least scatter_chunk. If all of the range fit there, they stay until
 * the next range is read with it. */
struct records_buffer {
    uint64_t *records;
    uint64_t room;  /* bytes */
    uint64_t holds; /* a range and 1; 0: none */
};
typedef bool scatter_visit(void *context, const uint64_t *records, size_t n);
bool scatter_read(const struct scatter *scatter, unsigned range,
                  struct records_buffer *buffer, scatter_visit *visit,
                  void *context);
size_t scatter_chunk(const struct scatter *scatter); /* bytes */

/* Bytes of the temporary file, if a scatter for `estimated` lines gets `lines`.
 */
uint64_t scatter_spills(uint64_t estimated, uint64_t lines, uint64_t memory,
                        size_t writers);

#endif
