/*
 * The engine of filters whose parts are the segments of one table: kinds with
 * `is_segment`.
 * Such a filter grows by a quarter of a doubling: it allocates a segment, and
 * then each addition moves one group of buckets, until all have moved. A key is
 * in one segment, however many there are. While it is small, and its codes have
 * bits to spare, it doubles as a whole instead.
 *
 * One thread writes at a time; if the filter is concurrent, writers take turns,
 * and readers need not wait for them, except while entries of their own group
 * move.
 */
#ifndef CALYX_TABLE_ENGINE_H
#define CALYX_TABLE_ENGINE_H

#include "base/memory.h"
#include "bucket/bucket.h"
#include "engine/engine.h"

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

/* The table of a filter with one part, in this memory. */
void open_table(calyx_filter *f, struct filter_table *table);

/* Do the segments lie in rows? */
bool has_rows(const calyx_filter *f);

#endif
