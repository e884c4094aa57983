/*
 * A rebuild: a filter is being made anew from a list, and will take the place
 * of the live one. What is added to the live filter while the list is read may
 * be missing in the list. So the live filter records these items, until BF.SWAP
 * … REBUILD adds them to the new one and exchanges the two in one step.
 *
 *     BEGIN       read the list, build, push              SWAP … REBUILD
 *       |---------------------------------------------------|
 *           items added to the live filter are recorded here
 *
 * Items are recorded, not bits: the new filter may have any kind, size and
 * seed.
 *
 * Deletions. A filter from which items can be deleted counts. For each item the
 * rebuild has a count, too: an addition adds 1, a deletion subtracts 1, but not
 * below 0. So an item that was there when the list was read, and was deleted
 * later, stays in the new filter until the next rebuild. The rebuild cannot
 * know whether the list has it, and a deletion of an item that is not there
 * would make a counting filter forget others. For each item, whenever the list
 * was read:
 *
 *     count in the list + count recorded here >= right count
 *
 * since a count that stops at 0 is at least the sum of all changes after the
 * list was read, whenever that was.
 *
 * Bounded. If the items would take more than `most` bytes, all are dropped, and
 * the swap is refused.
 *
 * In the value. The rebuild belongs to the live filter: it is saved, moved,
 * renamed and deleted with it. Another module's format has no room for that, so
 * meanwhile the key has a type of its own (type.c).
 */
#ifndef CALYX_MODULE_REBUILD_H
#define CALYX_MODULE_REBUILD_H

#include <calyx/calyx.h>

#include "layout/layout.h"
#include "server/api.h"

/* What an item takes beside its bytes; and the largest count: a filter counts
 * to 15, and does not delete an item that it has more often. */
enum { REBUILD_ITEM_BYTES = 64, REBUILD_MOST_COPIES = 16 };

#define REBUILD_MOST_BYTES (INT64_C(1) << 40)
/* 2^53 - 1: exact in any language. */
#define REBUILD_MOST_TOKEN ((INT64_C(1) << 53) - 1)

/* Why the recorded items are of no use. */
enum rebuild_lost {
    REBUILD_GOOD,
    REBUILD_TOO_MANY, /* more than `most` bytes */
    REBUILD_IN_BULK,  /* keys came by BF.MERGE, BF.LOADCHUNK */
    REBUILD_LOST_WAYS
};

/* Numbers that are replicated. */
struct rebuild_terms {
    uint64_t token; /* names the rebuild          */
    uint64_t until; /* Unix time in milliseconds  */
    uint64_t most;  /* bytes                      */
    enum rebuild_lost lost;
};

struct rebuild {
    struct rebuild_terms terms;
    RedisModuleDict *recorded; /* item: its count, from 1 */
    uint64_t bytes;

    /* Of the swap that is under way: it has added the items up to `cursor`. An
     * item that is recorded after that, at or before `cursor`, is in `late`
     * until it is added, too. */
    uint64_t swap; /* a number for each; 0: none */
    RedisModuleDict *late;
    RedisModuleString *cursor; /* NULL: at the beginning */
    bool passed;               /* all of `recorded`          */
};

static inline struct rebuild *rebuild_of(const struct filter *f) {
    return f->extra ? f->extra->rebuild : NULL;
}

/* `rebuild_end` does nothing if none is open. Large ones are freed by another
 * thread. */
void rebuild_begin(struct filter *f, const struct rebuild_terms *terms);
void rebuild_end(struct filter *f);
void rebuild_free(struct rebuild *r);

/* An item was added to the filter, or deleted from it. In a filter that cannot
 * delete, an item is recorded once. */
void rebuild_record(struct filter *f, const calyx_key *item);
void rebuild_cancel(struct rebuild *r, const calyx_key *item);

/* Give the items up; NULL: nothing to do. */
void rebuild_lose(struct rebuild *r, enum rebuild_lost why);
uint64_t rebuild_items(const struct rebuild *r);

/* A swap begins, from the first item. */
uint64_t rebuild_start_swap(struct rebuild *r);

/* The items of a step, each to be added as often as `times` says. */
enum { REBUILD_BATCH = 2048 };
struct rebuild_batch {
    uint64_t item_lines; /* cache lines that adding an item takes; set before */
    RedisModuleString *items[REBUILD_BATCH]; /* to be freed       */
    uint64_t times[REBUILD_BATCH];
    size_t n;
    uint64_t work; /* lines, as in steps.h           */
    bool last;     /* none is left after these       */
};
void rebuild_next(struct rebuild *r, struct rebuild_batch *b);

uint64_t rebuild_memory(const struct rebuild *r);
void rebuild_save(const struct rebuild *r, RedisModuleIO *io);
bool rebuild_load(RedisModuleIO *io, struct filter *f);
void rebuild_rewrite(const struct rebuild *r, RedisModuleIO *io,
                     RedisModuleString *key);
void rebuild_digest(const struct rebuild *r, RedisModuleDigest *to);

/* Open ones, for INFO. */
uint64_t rebuilds_open(void);

#endif
