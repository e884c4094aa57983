/*
 * The exact engine: decides which lines have equal keys, in bounded memory.
 *
 * It works like a Grace hash join. A partition is a sequence of records in the
 * order of the input; the first partition is the input itself. The engine reads
 * a partition and stores its keys in an exact table. When the table is full,
 * records of other keys are spilled to one of several files, chosen by hash, so
 * all records of a key stay together and in order. Each spill file then becomes
 * a partition of its own, hashed with another seed. Lines are printed directly
 * until the first record is spilled. From then on they go to runs, which are
 * merged by sequence number at the end.
 *
 * With marks, of files that can be read twice, no line is stored to be printed
 * later: the engine turns the marks of candidates into marks of the lines to
 * print, and a pass over the files prints these lines.
 *
 * Every partition resolves at least one key. So the engine terminates with the
 * right answer even if all keys have the same hash; a good hash only makes it
 * fast. Input that fits into memory is one partition, and no file is created.
 */
#ifndef CALYX_TOOL_KEY_ENGINE_H
#define CALYX_TOOL_KEY_ENGINE_H

#include <pthread.h>

#include "exact/key_table.h"
#include "exact/marks.h"
#include "exact/method.h"
#include "exact/spill.h"

enum {
    MOST_SPILLS = 128,
    MOST_RUNS = 128, /* then they are merged into one */
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
    struct key_engine *engine;
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

struct key_engine {
    const struct set_operation *op;
    uint64_t memory;
    struct figures figures;
    struct lane lanes[2];
    struct partition input; /* the first partition */

    uint64_t sequence; /* of the next line */
    uint64_t file;     /* the current one, a number */
    /* If set, no line is printed or stored. Instead, of the lines that may be
     * printed and are marked, those for the first output keep their mark, if
     * op->prints_marked; or else only the others. */
    struct line_marks *marks;

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

/* The same for a candidate that was looked up. */
struct candidate;
void partition_visit_candidate(struct partition *partition,
                               const struct candidate *candidate,
                               const struct record *record, uint64_t file);

/* Was a record with this hash spilled? Perhaps, or no. Any thread. */
bool may_be_spilled(const struct partition *partition, uint64_t hash);

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
void run_pending(struct key_engine *engine);

/* ---- Shares of the memory, and what follows from them (forecast.c) ------- */

uint64_t memory_of_keys(const struct set_operation *op, uint64_t memory);
uint64_t memory_of_spilled_keys(uint64_t memory);
size_t memory_of_spill(uint64_t memory, unsigned spills);

/* Keys to expect in this many lines: slots beyond an eighth of the memory must
 * be earned, as many keys may be equal. */
uint64_t keys_of_lines(const struct set_operation *op, uint64_t memory,
                       uint64_t lines);

/* Of the payload of a key. */
size_t tally_size(const struct set_operation *op);

/* Number of spills for a partition of this many bytes; 0: unknown. */
unsigned spills_for(const struct set_operation *op, uint64_t memory,
                    uint64_t bytes);

/* Bytes of a record in a spill, if its line is stored apart from its key or
 * not; and all bytes that a partition will spill, with its own partitions. */
double record_size(const struct line_counts *counts, bool has_line);
struct partition_forecast {
    double keys, lines, record; /* record: bytes */
    uint64_t memory;
    double capacity;   /* keys */
    uint64_t expected; /* bytes */
};
double partition_spills(const struct set_operation *op,
                        const struct partition_forecast *forecast,
                        unsigned level);

/* ---- The engine (key_engine.c) ------------------------------------------- */

/* A line that is visited in the order of the input. */
struct candidate {
    uint64_t hash;
    uint64_t number : 63; /* of its line in the block, from 0 */
    uint64_t is_copy : 1;
    calyx_key key;
    union {
        calyx_key line;
        struct stored_key *stored; /* the key in a table, or a copy for it */
    };
};

/* Of a block: its block->work. */
struct block_candidates {
    struct candidate *all;
    size_t count, room;
    char *key_bytes; /* of keys that are not there as they are in the line */
    size_t key_size, key_room;
};
void block_candidates_free(void *candidates);

/* Add one; `line` may be NULL. Its key has no address until point_to_copies is
 * called. */
struct candidate *add_candidate(struct text_block *block, uint64_t hash,
                                size_t number, const calyx_key *key,
                                const calyx_key *line);
void point_to_copies(struct text_block *block);

/* Visit the candidates of a block, in the order of the input. */
void visit_candidates(struct key_engine *engine, struct text_block *block);

/* Lines of a batch that op->without drops. False if that drops none of this
 * file. */
bool find_dropped(const struct key_engine *engine,
                  const struct key_batch *batch, bool *dropped);

/* `memory` bounds the engine. `expected` is the estimated input; zeros if
 * unknown. `op` must outlive the engine; `marks` may be NULL. */
struct key_engine *engine_start(const struct set_operation *op,
                                struct line_marks *marks, uint64_t memory,
                                const struct sample *expected);

/* Process the remaining partitions, merge the runs, free the engine. */
struct figures engine_end(struct key_engine *engine);

#endif
