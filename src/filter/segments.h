/*
 * Filters whose parts are the segments of one table: kinds with `is_segment`.
 * Such a filter grows by a quarter of a doubling: it allocates a segment, and
 * then each addition moves one group of buckets, until all have moved. A key is
 * in one segment, however many there are. While it is small, and its codes have
 * bits to spare, it doubles as a whole instead.
 *
 * One thread writes at a time; if the filter is concurrent, writers take turns,
 * and readers need not wait for them, except while entries of their own group
 * move.
 */
#ifndef CALYX_SEGMENTS_H
#define CALYX_SEGMENTS_H

#include "base/memory.h"
#include "bucket/bucket.h"
#include "filter/filter.h"

struct filter_table {
    struct bucket_table t;
    uint32_t places; /* in the list of segments; 0: t.first   */
    uint32_t segments;
    uint32_t locked;         /* by a thread, if concurrent          */
    uint32_t times;          /* that this thread has locked it      */
    const void *by;          /* the thread                          */
    uint64_t capacity;       /* of all segments                     */
    struct table_rows *rows; /* that segments lie in; NULL: none  */
};

/* Rows for the buckets of segments, from the first on, and for their lines for
 * spilled entries. */
struct table_rows {
    struct memory_row buckets, lines;
    uint8_t *lines_of[SEGMENTS_MOST]; /* by the number of the segment */
};

/* Number of doublings that the rate of a growing filter is planned for. When
 * codes have no bits left, the last doublings add more than planned: so the
 * rate is promised for one doubling less. */
enum { PLANNED_DOUBLINGS = 20, KEPT_DOUBLINGS = PLANNED_DOUBLINGS - 1 };

/* Keys up to which a growing table that begins with this part keeps its rate.
 */
uint64_t grows_to(const struct part *first);

/* A table without segments, before its first part is made. */
calyx_status make_table(calyx_filter *f, const struct shape *first);
/* The newest part is a segment of the table. */
calyx_status add_segment(calyx_filter *f);
/* The table of a filter with one part, in this memory. */
void open_table(calyx_filter *f, struct filter_table *table);
/* Parts have moved, or only the first is left. */
void renew_segments(calyx_filter *f);
/* The memory of a table, without its segments. */
void free_table(calyx_filter *f);
void relocate_table(calyx_filter *f, calyx_move_function *move, void *context);
uint64_t table_bytes(const calyx_filter *f);

/* Let the body of the next part lie in the rows of the table: the buckets of
 * its segments follow each other there, as do their lines for spilled entries.
 * Older parts may move there first. False if it cannot have rows, or these are
 * full, or an older segment lies elsewhere. */
bool join_rows(const calyx_filter *f, struct part *p);
bool has_rows(const calyx_filter *f);
/* The newest part leaves them. */
void leave_rows(const calyx_filter *f, const struct part *p);
/* Were huge pages requested for them? */
bool has_huge_rows(const calyx_filter *f);

/* Let other threads use a table that had bits to spare. It spends them now, as
 * it must not double as a whole later. */
calyx_status make_concurrent(calyx_filter *f);

bool has_in_segments(const calyx_filter *f, uint64_t hash);
calyx_status add_to_segments(calyx_filter *f, uint64_t hash, bool *fresh);
/* The first hashes of a batch; *done becomes their number, at least 1. */
calyx_status add_batch_to_segments(calyx_filter *f, const struct batch *batch,
                                   bool *fresh, size_t *done);
enum removal remove_from_segments(calyx_filter *f, uint64_t hash);
size_t remove_batch_from_segments(calyx_filter *f, const struct batch *batch,
                                  bool *found);
uint32_t count_in_segments(const calyx_filter *f, uint64_t hash);

/* A step of a merge: over this number of buckets of the other, or as many moves
 * of groups, by which the table grows first. */
struct table_merge {
    uint64_t buckets;
    uint64_t from; /* the hash whose bucket is the next */
    bool done;
};

/* Add the entries of another table of the same first shape, once both have no
 * bits to spare. Only for kinds that do not count. */
calyx_status merge_segments(calyx_filter *f, const calyx_filter *other,
                            struct table_merge *merge);

/* The members of a description that need the bits. */
void describe_segments(const calyx_filter *f, calyx_info *info);

/* Around what reads all of a table that other threads may be adding to. The
 * function that gets its bytes may call such a function again; it cannot change
 * the filter. */
void lock_table(const calyx_filter *f);
void unlock_table(const calyx_filter *f);
bool is_table_locked_here(const calyx_filter *f);

#endif
