/*
 * Candidates: lines whose keys may equal those of other lines.
 *
 * The first pass over the files hashes all lines, and scatters the hashes into
 * ranges. In each range a small table finds the hashes that meet a condition,
 * such as to occur twice. Their lines are marked. Lines with different hashes
 * are different, so a line without a mark needs no further look; only those
 * with a mark are compared byte by byte, in a second pass.
 */
#ifndef CALYX_TOOL_CANDIDATES_H
#define CALYX_TOOL_CANDIDATES_H

#include "exact/budget.h"
#include "exact/marks.h"

/* Files that are read as one. */
struct reading {
    int count;
    char **files;
    unsigned class; /* below CLASSES: for the condition */
};

/* A hash is seen in classes of files. It meets the condition if it was seen in
 * all classes of `either`, and twice where that says so; or of `or_else`. */
enum { CLASSES = 16 };
struct hash_condition {
    uint32_t either, or_else;
};
#define SEEN_IN(class)       (UINT32_C(1) << (class))
#define SEEN_TWICE_IN(class) (SEEN_IN(class) << CLASSES)

static inline bool meets_condition(const struct hash_condition *condition,
                                   uint64_t seen) {
    return ((seen & condition->either) == condition->either) |
           ((seen & condition->or_else) == condition->or_else);
}

struct candidates {
    struct line_marks *marks;
    uint64_t lines, bytes;  /* read */
    uint64_t marked;        /* lines */
    uint64_t keys;          /* different hashes of these */
    uint64_t *starts;       /* of each reading: its first line; and the end */
    uint64_t *block_starts; /* of each block of the pipeline: its first line;
                               and the end */
    uint64_t *block_sums;   /* of each block: a hash of its text */
    uint64_t *first_blocks; /* of each reading */
};

/* Find them in at most `memory` bytes, for about `lines` lines. Returns false
 * if there are many more, and lines->marks would take too much of it. */
bool candidates_find(struct candidates *found, const struct reading *readings,
                     size_t count, const struct hash_condition *condition,
                     uint64_t lines, uint64_t memory);
void candidates_free(struct candidates *found);

/* Bytes of hashes that go to a temporary file, if `estimated` lines turn out to
 * be `lines`. */
uint64_t hashes_spilled(uint64_t estimated, uint64_t lines, uint64_t memory);

/* Is a pass for hashes worth it? If few lines would be stored without, that is
 * faster; and very many do not fit, even as marks. `sum` is of all lines. */
bool hashes_pay(const struct sample *stored, const struct sample *sum,
                uint64_t memory);

#endif
