/*
 * The method that always fits: keys are stored in memory; what does not fit is
 * spilled (key_engine.h).
 */
#include "exact/key_engine.h"
#include "exact/key_hash.h"
#include "input/source.h"

static bool fits(const struct exact_job *job) {
    (void)job;
    return true;
}

/* ---- Run ----------------------------------------------------------------- */

/* All lines are candidates. */
static void find_all(struct text_block *block, struct key_batch *batch) {
    const struct key_engine *const e = block->context;
    uint64_t hashes[BATCH_ROOM];
    bool dropped[BATCH_ROOM];
    batch_start(batch, block);
    while (batch_next(batch, block)) {
        hash_keys(e->input.hasher, batch->keys, batch->count, hashes);
        find_dropped(e, batch, dropped);
        for (size_t i = 0; i < batch->count; i++)
            if (!dropped[i])
                add_candidate(block, hashes[i], block->lines + i,
                              &batch->keys[i], &batch->lines[i]);
        block->lines += batch->count;
    }
    point_to_copies(block);
}

static bool visit(struct text_block *block, struct key_batch *batch) {
    (void)batch;
    visit_candidates(block->context, block);
    return true;
}

static bool run(struct exact_job *job, struct figures *figures) {
    const struct sample nothing = {0};
    struct figures sum = {0};
    expect_spill();
    struct key_engine *const e = engine_start(
        &job->op, NULL, budget(), job->known ? &job->sum : &nothing);
    const struct stages stages = {.in_parallel = find_all,
                                  .in_order = visit,
                                  .kept = job->kept.bytes ? &job->kept : NULL,
                                  .context = e,
                                  .work_size = sizeof(struct block_candidates),
                                  .free_work = block_candidates_free};
    for (size_t i = 0; i < job->op.readings; i++) {
        const struct file_group *const r = &job->readings[i];
        e->file = i;
        const struct input_totals totals =
            run_pipeline(&stages, r->count, r->files);
        sum.lines += totals.lines;
        sum.bytes += totals.bytes;
    }
    expect_same_files();
    *figures = engine_end(e);
    figures->lines = sum.lines;
    figures->bytes = figures->read = sum.bytes;
    figures->passes = 1;
    return true;
}

/* ---- Cost ---------------------------------------------------------------- */

/* Bytes of runs. Lines that are printed after records were spilled go to runs:
 * the lines of `left`, the share of the keys that do not fit; and all lines of
 * a last file that stores no keys. */
static double runs_of(const struct exact_job *job,
                      const struct line_counts *counts, double left) {
    const double distinct = (double)counts->distinct;
    const double keys = (double)counts->keys;
    const double size = counts->distinct_size + 3;
    if (job->op.least)
        return size * (job->op.least > 1   ? keys
                       : job->op.most == 1 ? distinct - keys
                                           : distinct);
    if (!some_only_read(&job->op)) return size * left * distinct;
    if (job->op.prints_marked) return size * left * keys;
    return size * counts->printed * (double)(counts->lines - counts->marked);
}

/* Lines of a file that stores no keys matter only if their key is stored. */
static double lines_that_matter(const struct set_operation *op,
                                const struct line_counts *counts) {
    const double lines = (double)(counts->lines - counts->hot);
    if (!some_only_read(op)) return lines;
    return counts->stored * lines +
           (1 - counts->stored) * (double)counts->marked;
}

static struct forecast cost(const struct exact_job *job,
                            const struct line_counts *counts) {
    const struct set_operation *const op = &job->op;
    struct forecast f = {.passes = 1, .read = counts->bytes};
    const uint64_t memory = budget();
    const double stored =
        counts->distinct_key_size +
        (op->least && counts->made_keys ? counts->distinct_size : 0);
    const double capacity = (double)key_table_capacity(
        keys_of_lines(op, memory, job->sum.lines), memory_of_keys(op, memory),
        stored + stored_key_size(tally_size(op)));
    const double keys = counts->stored * (double)counts->distinct;
    if (keys <= capacity) return f;
    const double left = 1 - capacity / keys;
    const struct partition_forecast input = {
        .keys = keys,
        .lines = lines_that_matter(op, counts),
        .record = record_size(counts, counts->made_keys),
        .memory = memory,
        .capacity = capacity,
        .expected = job->sum.bytes};
    const double records = partition_spills(op, &input, 0);
    const double runs = runs_of(job, counts, left);
    /* a run of the first partition is there before any spill is read, and two
     * spills of about 16 stay while they are */
    const double first = op->least           ? (1 - left) * runs
                         : op->prints_absent ? runs
                                             : 0;
    const double most = records + first + records / 8;
    f.spilled = (uint64_t)(records + runs);
    f.temporary = (uint64_t)(most > runs ? most : runs);
    if (f.temporary > f.spilled) f.temporary = f.spilled;
    return f;
}

const struct method by_spilling = {.fits = fits, .cost = cost, .run = run};
