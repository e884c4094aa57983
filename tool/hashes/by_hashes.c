/*
 * The method for plain files that do not fit into memory: they are read for
 * their hashes first, which mark candidates (candidates.h). Then only the
 * candidates are compared, with their keys in memory: in more passes if the
 * keys do not fit, or spilled (key_engine.h) if that costs less. The last pass
 * prints.
 */
#include <stdio.h>
#include <string.h>

#include "exact/key_engine.h"
#include "exact/key_hash.h"
#include "exact/slot_table.h"
#include "hashes/candidates.h"
#include "input/source.h"

/* Is a pass for hashes worth it? If few lines would be stored without, that is
 * faster; and very many do not fit, even as marks. */
static bool fits(const struct exact_job *job) {
    const uint64_t few = (uint64_t)4 << 20, memory = budget();
    return job->known && job->sum.plain && !job->op.least && !job->op.counts &&
           (job->stored.bytes >= few || job->stored.bytes >= memory / 4) &&
           job->hashed.lines <= most_lines_in(memory);
}

/* A pass costs as much as its bytes. A spilled record costs about four times
 * its bytes: it is written, read and hashed again. Then the files are read to
 * print them. */
static unsigned passes_for(const struct set_operation *op, uint64_t memory,
                           const struct line_counts *counts) {
    enum { MOST_PASSES = 6 };
    const double size = (double)counts->bytes / (double)(counts->lines + 1);
    const uint64_t stored =
        slot_table_bytes(counts->keys) +
        (uint64_t)((size + stored_key_size(tally_size(op))) *
                   (double)counts->keys);
    const uint64_t passes = stored / memory_of_keys(op, memory) + 1;
    if (passes > MOST_PASSES) return 1;
    const double left = 1 - 1 / (double)passes;
    const double spilling =
        4 * left * (size + 6) * (double)counts->marked + (double)counts->bytes;
    return (double)(passes - 1) * (double)counts->bytes < spilling
               ? (unsigned)passes
               : 1;
}

/* ---- Candidates of a block ----------------------------------------------- */

struct candidate_pass {
    struct key_engine *engine;
    const struct candidates *found;
    unsigned pass, passes;
    /* Of files that were not hashed: what the last pass read, and the lines
     * that were compared. */
    struct input_totals others;
    uint64_t compared;
};

static bool is_of_pass(const struct candidate_pass *p, uint64_t hash) {
    return p->passes < 2 ||
           ((hash >> 32 & UINT16_MAX) * p->passes) >> 16 == p->pass;
}

/* Keys of a batch that are looked up, and what is found. */
struct batch_lookups {
    size_t count;
    size_t index[BATCH_ROOM]; /* in the batch */
    calyx_key keys[BATCH_ROOM];
    uint64_t hashes[BATCH_ROOM];
    struct stored_key *stored[BATCH_ROOM];
};

/* The `chosen` keys that are of this pass. */
static void choose_keys(const struct candidate_pass *p,
                        const struct key_batch *batch, const bool *chosen,
                        struct batch_lookups *l) {
    size_t all = 0, n = 0;
    for (size_t i = 0; i < batch->count; i++) {
        l->index[all] = i;
        l->keys[all] = batch->keys[i];
        all += chosen[i];
    }
    hash_keys(p->engine->input.hasher, l->keys, all, l->hashes);
    for (size_t i = 0; i < all; i++) {
        l->index[n] = l->index[i];
        l->keys[n] = l->keys[i];
        l->hashes[n] = l->hashes[i];
        n += is_of_pass(p, l->hashes[i]);
    }
    l->count = n;
}

/* Forget the keys that are stored, after visiting them. */
static void visit_stored(struct key_engine *e, uint64_t line,
                         struct batch_lookups *l) {
    size_t n = 0;
    for (size_t i = 0; i < l->count; i++) {
        if (l->stored[i])
            partition_visit_stored(
                &e->input, NULL, false,
                &(struct record){.sequence = line + l->index[i]}, e->file);
        l->index[n] = l->index[i];
        l->keys[n] = l->keys[i];
        l->hashes[n] = l->hashes[i];
        n += !l->stored[i];
    }
    memset(l->stored, 0, n * sizeof *l->stored);
    l->count = n;
}

/* Look up the chosen lines of a batch. Lines become candidates, to be visited
 * in order, if their key is absent; with tallies, if it is present, too. An
 * absent key of a file that was not hashed is done, unless it may be spilled.
 */
static void look_up(struct text_block *block, const struct key_batch *batch,
                    uint64_t line, const bool *chosen, bool hashed) {
    const struct candidate_pass *const p = block->context;
    struct key_engine *const e = p->engine;
    struct batch_lookups l;
    l.keys[0] = (calyx_key){0};
    bool is_copy[BATCH_ROOM];
    choose_keys(p, batch, chosen, &l);
    key_table_find(e->input.keys, l.keys, l.hashes, l.count, l.stored);
    if (!e->op->tallies) visit_stored(e, line, &l);
    for (size_t i = 0; i < l.count; i++) is_copy[i] = !l.stored[i];
    if (stores_keys(e->op, e->file))
        key_table_copy(e->input.keys, l.keys, l.count, l.stored);
    for (size_t i = 0; i < l.count; i++) {
        const size_t at = l.index[i];
        if (!hashed && !l.stored[i] && !may_be_spilled(&e->input, l.hashes[i]))
            continue;
        struct candidate *const c = add_candidate(
            block, l.hashes[i], block->lines + at, &l.keys[i], NULL);
        c->stored = l.stored[i];
        c->is_copy = is_copy[i] && l.stored[i];
    }
}

/* Number of the first line of a block, and where its last line must be. False
 * if it is not the block that it was in the first pass. */
static bool find_lines(const struct candidate_pass *p,
                       const struct text_block *block, uint64_t *first,
                       uint64_t *end) {
    const struct candidates *const found = p->found;
    const uint64_t *const blocks = found->first_blocks + p->engine->file;
    const uint64_t number = blocks[0] + block->number;
    if (number >= blocks[1] ||
        (file_was_touched(block->file) &&
         calyx_hash(p->engine->input.hasher, block->text, block->size) !=
             found->block_sums[number]))
        return false;
    *first = found->block_starts[number];
    *end = found->block_starts[number + 1];
    return true;
}

/* A dropped line is not printed, and so keeps or gets a mark. */
static void drop_lines(const struct key_engine *e,
                       const struct key_batch *batch, uint64_t line,
                       bool *dropped) {
    const bool any = find_dropped(e, batch, dropped);
    for (size_t i = 0; any && i < batch->count; i++)
        if (dropped[i]) marks_set(e->marks, line + i);
}

/* In a file that was hashed: lines with marks. */
static void find_marked(struct text_block *block, struct key_batch *batch) {
    const struct candidate_pass *const p = block->context;
    const struct key_engine *const e = p->engine;
    bool dropped[BATCH_ROOM];
    uint64_t first = 0, end = 1;
    const bool same = find_lines(p, block, &first, &end);
    batch_start(batch, block);
    while (same && batch_next(batch, block)) {
        bool chosen[BATCH_ROOM];
        const uint64_t line = first + block->lines;
        if (batch->count > end - line) break;
        drop_lines(e, batch, line, dropped);
        for (size_t i = 0; i < batch->count; i++)
            chosen[i] = marks_has(e->marks, line + i) & !dropped[i];
        look_up(block, batch, line, chosen, true);
        note_ends(block, batch);
    }
    if (first + block->lines != end)
        snprintf(block->trouble, sizeof block->trouble,
                 "changed while it was read");
    point_to_copies(block);
}

/* In a file that was not hashed: lines whose key is stored, or may be spilled.
 */
static void find_stored(struct text_block *block, struct key_batch *batch) {
    bool chosen[BATCH_ROOM];
    memset(chosen, true, sizeof chosen);
    batch_start(batch, block);
    while (batch_next(batch, block)) {
        look_up(block, batch, 0, chosen, false);
        block->lines += batch->count;
    }
    point_to_copies(block);
}

/* ---- Passes -------------------------------------------------------------- */

static bool visit(struct text_block *block, struct key_batch *batch) {
    (void)batch;
    const struct candidate_pass *const p = block->context;
    visit_candidates(p->engine, block);
    return true;
}

/* Print a block in the last pass, unless lines before it are not known yet. */
static bool visit_and_print(struct text_block *block, struct key_batch *batch) {
    const struct candidate_pass *const p = block->context;
    const struct key_engine *const e = p->engine;
    visit(block, batch);
    if (!e->input.full && !e->pending_count && !block->trouble[0])
        marks_print_block(e->marks, block);
    return true;
}

/* Returns the bytes that were read. */
static uint64_t read_pass(struct candidate_pass *p,
                          const struct exact_job *job) {
    struct key_engine *const e = p->engine;
    const bool last = p->pass + 1 == p->passes;
    uint64_t bytes = 0;
    p->others = (struct input_totals){0};
    for (e->file = 0; e->file < job->op.readings; e->file++) {
        const struct file_group *const r = &job->readings[e->file];
        const bool hashed = is_hashed(&job->op, e->file);
        const bool prints = last && may_print(&job->op, e->file);
        const struct stages stages = {
            .in_parallel = hashed ? find_marked : find_stored,
            .in_order = prints ? visit_and_print : visit,
            .output = job->op.output,
            .context = p,
            .work_size = sizeof(struct block_candidates),
            .free_work = block_candidates_free};
        const uint64_t before = e->figures.candidates;
        e->sequence = p->found->starts[e->file];
        const struct input_totals totals =
            run_pipeline(&stages, r->count, r->files);
        bytes += totals.bytes;
        if (!hashed) {
            p->others.lines += totals.lines;
            p->others.bytes += totals.bytes;
            p->compared += e->figures.candidates - before;
        } else if (e->sequence != p->found->starts[e->file + 1])
            fail_at(r->files[0], 0, "changed while it was read");
    }
    return bytes;
}

/* If the keys do not fit: in passes over a share of the keys each, or by
 * spilling. The last pass prints, unless records were spilled. */
static struct figures compare_candidates(const struct exact_job *job,
                                         const struct candidates *found) {
    const uint64_t size = found->bytes / (found->lines + 1);
    const uint64_t memory = budget_without(marks_bytes(found->lines));
    const struct line_counts counts = {
        .lines = found->lines + job->sum.lines - job->hashed.lines,
        .bytes = found->bytes + job->sum.bytes - job->hashed.bytes,
        .marked = found->marked,
        .keys = found->keys};
    struct candidate_pass p = {
        .engine =
            engine_start(&job->op, found->marks, memory, &(struct sample){0}),
        .found = found,
        .passes = passes_for(&job->op, memory, &counts)};
    uint64_t read = found->bytes;
    for (; p.pass < p.passes; p.pass++) {
        struct partition *const input = &p.engine->input;
        if (p.pass) partition_end(input);
        partition_start(input, 0, found->keys / p.passes + found->keys / 64,
                        size * found->marked / p.passes);
        key_table_reserve(input->keys);
        read += read_pass(&p, job);
    }
    struct figures figures = engine_end(p.engine);
    figures.passes = 1 + p.passes;
    figures.read = read;
    figures.lines = found->lines + p.others.lines;
    figures.bytes = found->bytes + p.others.bytes;
    figures.candidates = found->marked + p.compared;
    return figures;
}

/* ---- Run ----------------------------------------------------------------- */

/* Print what was not printed. */
static void print_rest(const struct exact_job *job, struct line_marks *marks,
                       uint64_t first, struct figures *f) {
    const struct set_operation *const op = &job->op;
    const struct file_group *const last = &job->readings[job->op.readings - 1];
    for (int i = 0; i < 1 + (op->second != NULL); i++) {
        if (i) marks_start(marks, first, !op->prints_marked);
        const uint64_t bytes = marks_print(marks, last->count, last->files,
                                           i ? op->second : op->output);
        f->read += bytes;
        f->passes += bytes > 0;
    }
}

static void compare_and_print(const struct exact_job *job,
                              const struct candidates *found,
                              struct figures *f) {
    const struct set_operation *const op = &job->op;
    struct line_marks *const marks = found->marks;
    const uint64_t first = found->starts[job->op.readings - job->op.printing];
    const uint64_t *const last = found->first_blocks + job->op.readings - 1;
    marks->sums = found->block_sums + last[0];
    marks->sum_count = last[1] - last[0];
    marks_start(marks, first, op->prints_marked);
    *f = compare_candidates(job, found);
    print_rest(job, marks, first, f);
    expect_same_files();
    const uint64_t marked = marks_count(marks, first);
    /* lines that were never marked have a key of their own */
    if (first == 0) f->keys += found->lines - found->marked;
    f->printed = op->prints_marked ? marked : found->lines - first - marked;
}

static bool run(struct exact_job *job, struct figures *f) {
    struct candidates found;
    const bool fit = candidates_find(&found, job, budget());
    *f = (struct figures){.read = found.bytes, .passes = 1};
    if (fit) compare_and_print(job, &found, f);
    candidates_free(&found);
    return fit;
}

/* ---- Cost ---------------------------------------------------------------- */

static struct forecast cost(const struct exact_job *job,
                            const struct line_counts *counts) {
    const struct set_operation *const op = &job->op;
    const double both = counts->stored + counts->printed;
    const double hashed = both < 1 ? both : 1; /* share of the bytes */
    const uint64_t lines = (uint64_t)(hashed * (double)counts->lines);
    const uint64_t memory = budget_without(marks_bytes(lines));
    const unsigned passes = passes_for(op, memory, counts);
    const double record = record_size(counts, false);
    const double size = record - 3 + (double)tally_size(op) + 8;
    const uint64_t slots = 8 * (counts->keys + counts->keys / 2);
    const uint64_t room = memory_of_keys(op, memory);
    const double capacity =
        (double)(room - (slots < room / 2 ? slots : room / 2)) / size;
    const struct partition_forecast input = {
        .keys = (double)counts->keys,
        .lines = (double)counts->marked,
        .record = record,
        .memory = memory,
        .capacity = capacity,
        .expected = counts->bytes / (counts->lines + 1) * counts->marked};
    const double records = passes > 1 ? 0 : partition_spills(op, &input, 0);
    const uint64_t hashes = hashes_spilled(job->hashed.lines, lines, budget());
    const bool prints = passes == 1 && (double)counts->keys > capacity;
    const unsigned second = job->second;
    const double printing = counts->printed * (double)counts->bytes;
    return (struct forecast){
        .passes = 1 + passes + prints + second,
        .read =
            passes * counts->bytes + (uint64_t)(hashed * (double)counts->bytes +
                                                (prints + second) * printing),
        .spilled = hashes + (uint64_t)records,
        .temporary = (double)hashes > records ? hashes : (uint64_t)records};
}

const struct method by_hashes = {
    .fits = fits, .cost = cost, .run = run, .finds_candidates = true};
