#include "exact/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exact/engine_internal.h"
#include "exact/key_hash.h"
#include "input/source.h"

/* ---- Candidates of a block, in parallel ---------------------------------- */

static bool is_in_text(const struct text_block *block, const void *bytes) {
    const uintptr_t at = (uintptr_t)bytes, text = (uintptr_t)block->text;
    return at >= text && at <= text + block->size;
}

/* `line` may be NULL. Keys outside of the text are copied. Their address is
 * NULL until all are there, since the copies may move. */
static struct candidate *add_candidate(struct text_block *block, uint64_t hash,
                                       size_t number, const calyx_key *key,
                                       const calyx_key *line) {
    block->candidates =
        with_room(block->candidates, &block->candidate_room,
                  block->candidate_count + 1, sizeof *block->candidates);
    struct candidate *const c = &block->candidates[block->candidate_count++];
    *c = (struct candidate){
        .hash = hash, .number = number & INT64_MAX, .key = *key};
    if (line) c->line = *line;
    if (is_in_text(block, key->data)) return c;
    /* an empty key has a place, too */
    block->key_bytes = with_room(block->key_bytes, &block->key_room,
                                 block->key_size + key->size + 1, 1);
    if (key->size)
        memcpy(block->key_bytes + block->key_size, key->data, key->size);
    c->key.data = NULL;
    block->key_size += key->size;
    return c;
}

static void point_to_copies(struct text_block *block) {
    const char *copy = block->key_bytes;
    for (size_t i = 0; i < block->candidate_count; i++) {
        struct candidate *const c = &block->candidates[i];
        if (c->key.data) continue;
        c->key.data = copy;
        copy += c->key.size;
    }
}

static bool is_of_pass(const struct engine *e, uint64_t hash) {
    return e->passes < 2 ||
           ((hash >> 32 & UINT16_MAX) * e->passes) >> 16 == e->pass;
}

/* Keys of a batch that are looked up, and what is found. */
struct batch_lookups {
    size_t count;
    size_t index[BATCH_ROOM]; /* in the batch */
    calyx_key keys[BATCH_ROOM];
    uint64_t hashes[BATCH_ROOM];
    struct stored_key *stored[BATCH_ROOM];
};

/* Those of this pass whose lines are marked, from `line` on, and not dropped.
 */
static void choose_marked(const struct engine *e, const struct key_batch *batch,
                          uint64_t line, const bool *dropped,
                          struct batch_lookups *l) {
    size_t marked = 0, n = 0;
    for (size_t i = 0; i < batch->count; i++) {
        l->index[marked] = i;
        l->keys[marked] = batch->keys[i];
        marked += marks_has(e->rule->marks, line + i) & !dropped[i];
    }
    hash_keys(e->input.hasher, l->keys, marked, l->hashes);
    for (size_t i = 0; i < marked; i++) {
        l->index[n] = l->index[i];
        l->keys[n] = l->keys[i];
        l->hashes[n] = l->hashes[i];
        n += is_of_pass(e, l->hashes[i]);
    }
    l->count = n;
}

/* Forget the keys that are stored, after visiting them. */
static void visit_stored(struct engine *e, uint64_t line,
                         struct batch_lookups *l) {
    size_t n = 0;
    for (size_t i = 0; i < l->count; i++) {
        if (l->stored[i])
            partition_visit_stored(
                &e->input, NULL, false,
                &(struct record){.sequence = line + l->index[i]}, e->file - 1);
        l->index[n] = l->index[i];
        l->keys[n] = l->keys[i];
        l->hashes[n] = l->hashes[i];
        n += !l->stored[i];
    }
    memset(l->stored, 0, n * sizeof *l->stored);
    l->count = n;
}

/* Look up the marked lines of a batch. What is left to be done in order are
 * keys that are not there yet; and with tallies, all. */
static void look_up(struct text_block *block, const struct key_batch *batch,
                    uint64_t line, const bool *dropped) {
    struct engine *const e = block->context;
    struct batch_lookups l;
    l.keys[0] = (calyx_key){0};
    bool is_copy[BATCH_ROOM];
    choose_marked(e, batch, line, dropped, &l);
    key_table_find(e->input.keys, l.keys, l.hashes, l.count, l.stored);
    if (!e->rule->tallies) visit_stored(e, line, &l);
    for (size_t i = 0; i < l.count; i++) is_copy[i] = !l.stored[i];
    if (e->rule->inserts(e->file - 1))
        key_table_copy(e->input.keys, l.keys, l.count, l.stored);
    for (size_t i = 0; i < l.count; i++) {
        const size_t at = l.index[i];
        struct candidate *const c = add_candidate(
            block, l.hashes[i], block->lines + at, &l.keys[i], NULL);
        c->stored = l.stored[i];
        c->is_copy = is_copy[i] && l.stored[i];
    }
}

/* Number of the first line of a block, and where its last line must be. False
 * if it is not the block that it was in the first pass. */
static bool find_lines(const struct engine *e, const struct text_block *block,
                       uint64_t *first, uint64_t *end) {
    const uint64_t *const blocks = e->found->first_blocks + e->file - 1;
    const uint64_t number = blocks[0] + block->number;
    if (number >= blocks[1] ||
        (file_was_touched(block->file) &&
         calyx_hash(e->input.hasher, block->text, block->size) !=
             e->found->block_sums[number]))
        return false;
    *first = e->found->block_starts[number];
    *end = e->found->block_starts[number + 1];
    return true;
}

static bool drops_lines(const struct engine *e) {
    return e->rule->drop && e->rule->may_print(e->file - 1);
}

/* All lines are candidates. */
static void find_all(struct text_block *block, struct key_batch *batch) {
    const struct engine *const e = block->context;
    uint64_t hashes[BATCH_ROOM];
    bool dropped[BATCH_ROOM];
    batch_start(batch, block);
    while (batch_next(batch, block)) {
        hash_keys(e->input.hasher, batch->keys, batch->count, hashes);
        memset(dropped, 0, sizeof dropped);
        if (drops_lines(e)) e->rule->drop(batch->keys, batch->count, dropped);
        for (size_t i = 0; i < batch->count; i++)
            if (!dropped[i])
                add_candidate(block, hashes[i], block->lines + i,
                              &batch->keys[i], &batch->lines[i]);
        block->lines += batch->count;
    }
    point_to_copies(block);
}

/* A dropped line is not printed, and so keeps or gets a mark. */
static void drop_lines(const struct engine *e, const struct key_batch *batch,
                       uint64_t line, bool *dropped) {
    memset(dropped, 0, batch->count);
    e->rule->drop(batch->keys, batch->count, dropped);
    for (size_t i = 0; i < batch->count; i++)
        if (dropped[i]) marks_set(e->rule->marks, line + i);
}

/* Only lines with marks are. */
static void find_marked(struct text_block *block, struct key_batch *batch) {
    const struct engine *const e = block->context;
    bool dropped[BATCH_ROOM] = {false};
    uint64_t first = 0, end = 1;
    const bool same = find_lines(e, block, &first, &end);
    batch_start(batch, block);
    while (same && batch_next(batch, block)) {
        const uint64_t line = first + block->lines;
        if (batch->count > end - line) break;
        if (drops_lines(e)) drop_lines(e, batch, line, dropped);
        look_up(block, batch, line, dropped);
        note_ends(block, batch);
    }
    if (first + block->lines != end)
        snprintf(block->trouble, sizeof block->trouble,
                 "changed while it was read");
    point_to_copies(block);
}

/* ---- Candidates of a block, in order ------------------------------------- */

static void visit_candidate(struct engine *e, const struct candidate *c) {
    struct record record = {.sequence = e->sequence + c->number, .key = c->key};
    if (e->rule->marks) {
        partition_visit_candidate(&e->input, c, &record, e->file - 1);
        return;
    }
    record.line = c->line;
    record.has_line =
        e->rule->may_print(e->file - 1) &&
        (c->key.data != c->line.data || c->key.size != c->line.size);
    partition_visit(&e->input, c->hash, &record, e->file - 1);
}

static bool visit_candidates(struct text_block *block,
                             struct key_batch *batch) {
    (void)batch;
    struct engine *const e = block->context;
    const struct candidate *const c = block->candidates;
    const size_t n = block->candidate_count;
    for (size_t i = 0; i < n; i++) {
        const size_t slot = i + AHEAD_SLOT, entry = i + AHEAD_ENTRY;
        partition_prefetch(&e->input, c[slot < n ? slot : n - 1].hash,
                           c[entry < n ? entry : n - 1].hash);
        visit_candidate(e, &c[i]);
    }
    e->sequence += block->lines;
    e->figures.candidates += n;
    for (int i = 0; i < 2; i++) lane_flush(&e->lanes[i]);
    return true;
}

/* ---- Start, read, end ---------------------------------------------------- */

struct engine *engine_start(const struct rule *rule, uint64_t memory,
                            const struct sample *expected) {
    expect_spill();
    struct engine *const e = alloc_memory(sizeof *e);
    *e = (struct engine){.rule = rule,
                         .memory = memory,
                         .lock = PTHREAD_MUTEX_INITIALIZER,
                         .changed = PTHREAD_COND_INITIALIZER};
    lane_open(&e->lanes[0], rule->marks ? NULL : rule->output, memory);
    lane_open(&e->lanes[1], rule->marks ? NULL : rule->second, memory);
    e->input = (struct partition){
        .engine = e, .memory = memory, .direct = true, .hasher = key_hasher(0)};
    e->input.keys = key_table_new(tally_size(rule), rule->selects != NULL);
    partition_start(&e->input, 0, keys_of_lines(rule, memory, expected->lines),
                    expected->bytes);
    return e;
}

void engine_read(struct engine *e, int count, char **files) {
    e->starts =
        with_room(e->starts, &e->file_room, e->file + 1, sizeof *e->starts);
    e->starts[e->file++] = e->sequence;
    const struct stages stages = {.in_parallel = find_all,
                                  .in_order = visit_candidates,
                                  .kept = e->rule->kept,
                                  .context = e};
    const struct input_totals totals = run_pipeline(&stages, count, files);
    e->figures.lines += totals.lines;
    e->figures.bytes += totals.bytes;
    e->figures.read += totals.bytes;
}

/* Print a block in the last pass, unless lines before it are not known yet. */
static bool visit_and_print(struct text_block *block, struct key_batch *batch) {
    struct engine *const e = block->context;
    visit_candidates(block, batch);
    if (!e->input.full && !e->pending_count && !block->trouble[0])
        marks_print_block(e->rule->marks, block);
    return true;
}

static void read_pass(struct engine *e, const struct reading *readings,
                      size_t count) {
    const bool last = e->pass + 1 == e->passes;
    e->sequence = 0;
    for (e->file = 0; e->file < count;) {
        const struct reading *const r = &readings[e->file];
        const bool prints = last && e->rule->may_print(e->file);
        const struct stages stages = {.in_parallel = find_marked,
                                      .in_order = prints ? visit_and_print
                                                         : visit_candidates,
                                      .output = e->rule->output,
                                      .context = e};
        e->file++;
        e->figures.read += run_pipeline(&stages, r->count, r->files).bytes;
        if (e->sequence != e->found->starts[e->file])
            fail_at(r->files[0], 0, "changed while it was read");
    }
}

unsigned engine_read_candidates(struct engine *e,
                                const struct reading *readings, size_t count,
                                const struct candidates *found) {
    const double size = (double)found->bytes / (double)(found->lines + 1);
    const uint64_t bytes = (uint64_t)(size * (double)found->keys);
    const struct line_counts counts = {.lines = found->lines,
                                       .bytes = found->bytes,
                                       .marked = found->marked,
                                       .keys = found->keys};
    e->found = found;
    e->starts = alloc_memory((count + 1) * sizeof *e->starts);
    memcpy(e->starts, found->starts, (count + 1) * sizeof *e->starts);
    e->passes = passes_for(e->rule, e->memory, &counts);
    for (e->pass = 0; e->pass < e->passes; e->pass++) {
        if (e->pass) partition_end(&e->input);
        partition_start(&e->input, 0,
                        found->keys / e->passes + found->keys / 64,
                        bytes / e->passes);
        key_table_reserve(e->input.keys);
        read_pass(e, readings, count);
    }
    return e->passes;
}

struct figures engine_end(struct engine *e) {
    partition_end(&e->input);
    key_table_free(e->input.keys);
    calyx_free(e->input.hasher);
    run_pending(e);
    for (int i = 0; i < 2; i++) lane_close(&e->lanes[i]);
    struct figures figures = e->figures;
    figures.printed = e->lanes[0].printed;
    figures.second = e->lanes[1].printed;
    figures.spilled = spill_written();
    figures.temporary = spill_peak();
    free(e->starts);
    free(e->pending);
    free(e);
    return figures;
}
