/* What the files of the exact engine share. */
#ifndef CALYX_TOOL_ENGINE_INTERNAL_H
#define CALYX_TOOL_ENGINE_INTERNAL_H

#include <pthread.h>

#include "exact/engine.h"
#include "exact/key_table.h"
#include "exact/spill.h"

enum {
    MOST_SPILLS = 128,
    MOST_RUNS = 128, /* then they are merged into one */
    MOST_PASSES = 6, /* of engine_read_candidates */
};

/* ---- Output lanes and their runs (lanes.c) ------------------------------- */

/* One of the two outputs. */
struct lane {
    struct output *output;
    char *bytes; /* buffer for the output */
    size_t size, room;
    struct spill **runs; /* sorted by sequence number */
    size_t run_count, run_buffer;
    uint64_t printed;
};

/* `memory` is the engine's. */
void lane_open(struct lane *lane, struct output *output, uint64_t memory);
void lane_print(struct lane *lane, const calyx_key *line, uint64_t count);
void lane_flush(struct lane *lane);

struct spill *run_new(void);

/* Add a finished run; NULL is fine. */
void lane_add_run(struct lane *lane, struct spill *run);

/* Print all runs in order, and free the lane's memory. */
void lane_close(struct lane *lane);

/* ---- Partitions (partition.c) -------------------------------------------- */

/* One thread works on a partition. */
struct partition {
    struct engine *engine;
    uint64_t memory;
    struct key_table *keys;
    unsigned level; /* 0 for the input; each spill adds 1 */
    calyx_filter *hasher;
    calyx_filter *spilled_keys; /* a filter of them; NULL if not needed */
    bool full;                  /* records are spilled */
    bool direct;                /* lines are printed, not put into runs */
    struct spill *runs[2];      /* for each lane; NULL: none yet */
    struct spill *spills[MOST_SPILLS];
    unsigned spill_count;
};

struct engine {
    const struct rule *rule;
    uint64_t memory;
    struct figures figures;
    struct lane lanes[2];
    struct partition input; /* the first partition */

    uint64_t sequence; /* of the next line */
    uint64_t *starts;  /* of each file: sequence number of its first line */
    uint64_t file;
    size_t file_room;
    /* Of engine_read_candidates; passes is 0 for one with all keys: */
    const struct candidates *found;
    unsigned pass, passes;

    /* Partitions to process, last in first out, so that files are freed soon.
     * Once the input is read, the lock guards these, the lanes and figures. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct pending {
        struct spill *spill;
        unsigned level;
    } * pending;
    size_t pending_count, busy; /* busy: partitions being processed */
};

/* With no keys, for about `keys` different ones in `bytes` of records; zeros if
 * unknown. */
void partition_start(struct partition *partition, unsigned level, uint64_t keys,
                     uint64_t bytes);

/* Process the next record, of this file. */
void partition_visit(struct partition *partition, uint64_t hash,
                     const struct record *record, uint64_t file);

/* The same with a table, for a candidate that was looked up. */
void partition_visit_candidate(struct partition *partition,
                               const struct candidate *candidate,
                               const struct record *record, uint64_t file);

/* A line whose key is stored; `tally` is NULL if there is none. Any thread, if
 * there are marks and no tallies. */
void partition_visit_stored(struct partition *partition, struct tally *tally,
                            bool fresh, const struct record *record,
                            uint64_t file);

/* Prefetch for records that will be visited soon. */
enum { AHEAD_SLOT = 24, AHEAD_ENTRY = 10 };
static inline void partition_prefetch(const struct partition *partition,
                                      uint64_t slot, uint64_t entry) {
    key_table_prefetch(partition->keys, slot);
    key_table_prefetch_key(partition->keys, entry);
}

/* Select lines, and queue the spills. */
void partition_end(struct partition *partition);

/* Process all spills, and the spills that they leave. */
void run_pending(struct engine *engine);

/* ---- Shares of the memory, and what follows from them (forecast.c) ------- */

uint64_t memory_of_keys(const struct rule *rule, uint64_t memory);
uint64_t memory_of_spilled_keys(uint64_t memory);
size_t memory_of_spill(uint64_t memory, unsigned spills);

/* Keys to expect in this many lines: slots beyond an eighth of the memory must
 * be earned, as many keys may be equal. */
uint64_t keys_of_lines(const struct rule *rule, uint64_t memory,
                       uint64_t lines);

/* Of the payload of a key. */
size_t tally_size(const struct rule *rule);

/* Number of spills for a partition of this many bytes; 0: unknown. */
unsigned spills_for(const struct rule *rule, uint64_t memory, uint64_t bytes);

/* An input, counted or guessed. */
struct line_counts {
    uint64_t lines, bytes;
    uint64_t marked;   /* candidates */
    uint64_t keys;     /* different keys of these */
    uint64_t distinct; /* different keys of all lines */
    uint64_t hot;      /* lines that repeat a frequent key */
    double distinct_size, distinct_key_size; /* of a line, of a key, on average
                                                over different keys */
    double stored, printed; /* shares of the bytes: of storing and of printing
                               readings */
    bool made_keys;         /* keys are not there as they are in the line */
};

/* Passes over candidates: if their keys do not fit, one for each share of them,
 * or a single one that spills, whichever costs less. */
unsigned passes_for(const struct rule *rule, uint64_t memory,
                    const struct line_counts *counts);

/* ---- A look at the input (guess.c) -------------------------------------- */

void guess_counts(const struct engine_plan *plan, struct line_counts *counts);

#endif
