/*
 * The pipeline: processes all lines of the input, with one thread for each
 * processor, and with results in the order of the input.
 *
 * Every thread does the same: it reads a block, alone; works on it, in parallel
 * with the others; and when all blocks before it are done, finishes it, alone
 * and in order. So there are as many blocks as threads, no queues, and no
 * thread that only waits for others; the ordered stage needs no locks. With one
 * thread it is a plain loop.
 */
#ifndef CALYX_TOOL_PIPELINE_H
#define CALYX_TOOL_PIPELINE_H

#include "input/lines.h"
#include "input/records.h"

/* -j N, --stats, --json-stats FILE */
extern const struct group work_group;
size_t thread_count(void);
uint32_t builder_threads(void); /* no more than a calyx_builder takes */

struct stages {
    /* In parallel with other blocks. NULL: nothing. */
    void (*in_parallel)(struct text_block *block, struct key_batch *batch);
    /* In the order of the input, within begin_change and end_change unless
     * `unguarded`. Then the output of the block is written, and an error in the
     * block ends the process. NULL: nothing. Return false to end the pipeline
     * here. */
    bool (*in_order)(struct text_block *block, struct key_batch *batch);
    /* In parallel again, for a block that is done in order. NULL: nothing. */
    void (*after_order)(struct text_block *block);
    bool unguarded;         /* in_order may wait, and guards its own changes */
    bool numbered;          /* blocks have the number of their first line */
    bool goes_on;           /* after a file that cannot be read */
    const char *so_far;     /* what stays if reading fails, for the message */
    struct output *output;  /* for block->out; NULL if there is none */
    struct kept_text *kept; /* where the bytes are stored, or were; or NULL */
    void *context;          /* for block->context */
    /* For block->work, of zeros at first; and to free what is in it. NULL:
     * nothing. */
    size_t work_size;
    void (*free_work)(void *work);
};

struct input_totals {
    uint64_t lines, bytes;
    double seconds;
    uint64_t unread; /* files that could not be read to their end */
};

/* Run until the input ends, or in_order returns false. */
struct input_totals run_pipeline(const struct stages *stages, int count,
                                 char **files);

/* The number of lines. Fails for what can be read only once. */
uint64_t count_lines(int count, char **files);

/* Hash the keys of all lines into block->hashes, which block->lines counts; and
 * where lines end into block->ends, if `ends`. `f` says how. */
void hash_block(struct text_block *block, struct key_batch *batch,
                const calyx_filter *f, bool ends);

/* The lines of a batch, counted in block->lines, and where they end, in
 * block->ends. */
void note_ends(struct text_block *block, const struct key_batch *batch);

/* Move the hashes with `chosen[i]` to the front. Returns their number. */
size_t select_hashes(uint64_t *hashes, const bool *chosen, size_t n);

/* block->hashes and block->ends, with room for `lines`. */
uint64_t *room_for_hashes(struct text_block *block, size_t lines);
size_t *room_for_ends(struct text_block *block, size_t lines);

/* ---- Figures of --stats and --json-stats --------------------------------- */

struct figure {
    const char *name; /* "expected_rate" */
    double value;
    bool whole; /* a count */
};

/* Print them if an option says so: totals first, then figures. */
bool wants_report(void);
void report(const struct input_totals *totals, const struct figure *figures,
            size_t count);

#endif
