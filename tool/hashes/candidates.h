/*
 * Candidates: lines whose keys may equal the keys of other lines.
 *
 * The first pass over the files hashes the lines of files that store keys or
 * print lines, and scatters the hashes into ranges. In each range a small table
 * finds the hashes that meet a condition, such as to occur twice. Their lines
 * are marked. Lines with different hashes are different, so a line without a
 * mark needs no further look; only those with a mark are compared byte by byte,
 * in a second pass.
 */
#ifndef CALYX_TOOL_CANDIDATES_H
#define CALYX_TOOL_CANDIDATES_H

#include "exact/marks.h"
#include "exact/method.h"

struct candidates {
    struct line_marks *marks;
    uint64_t lines, bytes;  /* read */
    uint64_t marked;        /* lines */
    uint64_t keys;          /* different hashes of marked lines */
    uint64_t *starts;       /* of each reading: its first line, if it is hashed;
                               and the end */
    uint64_t *block_starts; /* of each block of the pipeline: its first line;
                               and the end */
    uint64_t *block_sums;   /* of each block: a hash of its text */
    uint64_t *first_blocks; /* of each reading */
};

/* Find candidates in at most `memory` bytes. Returns false if there are many
 * more lines than expected, and found->marks would take too much of it. */
bool candidates_find(struct candidates *found, const struct exact_job *job,
                     uint64_t memory);
void candidates_free(struct candidates *found);

/* Bytes of hashes that go to a temporary file, if `estimated` lines turn out to
 * be `lines`. */
uint64_t hashes_spilled(uint64_t estimated, uint64_t lines, uint64_t memory);

/* Lines whose marks take a good share of the memory, and no more. */
uint64_t most_lines_in(uint64_t memory);

#endif
