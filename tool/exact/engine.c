#include "exact/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exact/engine_internal.h"
#include "exact/key_hash.h"

/* ---- Candidates of a block, in parallel ---------------------------------- */

static bool is_in_text(const struct text_block *block, const void *bytes) {
    const uintptr_t at = (uintptr_t)bytes, text = (uintptr_t)block->text;
    return at >= text && at <= text + block->size;
}

/* Keys outside of the text are copied. Their address is NULL until all are
 * there, since the copies may move. */
static void add_candidate(struct text_block *block, uint64_t hash,
                          size_t number, const calyx_key *key,
                          const calyx_key *line) {
    if (block->candidate_count == block->candidate_room) {
        block->candidate_room =
            block->candidate_room ? 2 * block->candidate_room : 1024;
        block->candidates =
            resize_memory(block->candidates,
                          block->candidate_room * sizeof *block->candidates);
    }
    struct candidate *const c = &block->candidates[block->candidate_count++];
    *c = (struct candidate){hash, number, *key, *line};
    if (is_in_text(block, key->data)) return;
    if (key->size > block->key_room - block->key_size) {
        block->key_room = 2 * block->key_room + key->size + 4096;
        block->key_bytes = resize_memory(block->key_bytes, block->key_room);
    }
    if (key->size)
        memcpy(block->key_bytes + block->key_size, key->data, key->size);
    c->key.data = NULL;
    block->key_size += key->size;
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

/* All keys of a batch: their indexes in it, and their hashes. */
static size_t choose_all(const struct engine *e, const struct key_batch *batch,
                         size_t *chosen, uint64_t *hashes) {
    hash_keys(e->input.hasher, batch->keys, batch->count, hashes);
    for (size_t i = 0; i < batch->count; i++) chosen[i] = i;
    return batch->count;
}

/* The same for keys of this pass whose lines are marked, from `line` on. */
static size_t choose_marked(const struct engine *e,
                            const struct key_batch *batch, uint64_t line,
                            size_t *chosen, uint64_t *hashes) {
    calyx_key keys[BATCH_ROOM];
    size_t marked = 0, n = 0;
    for (size_t i = 0; i < batch->count; i++) {
        chosen[marked] = i;
        keys[marked] = batch->keys[i];
        marked += marks_has(e->rule->marks, line + i);
    }
    hash_keys(e->input.hasher, keys, marked, hashes);
    for (size_t i = 0; i < marked; i++) {
        chosen[n] = chosen[i];
        hashes[n] = hashes[i];
        n += is_of_pass(e, hashes[i]);
    }
    return n;
}

/* Number of the first line of a block, and where its last line must be. */
static uint64_t first_line(const struct engine *e,
                           const struct text_block *block, uint64_t *end) {
    const uint64_t *const first = e->found->first_blocks + e->file - 1;
    const uint64_t number = first[0] + block->number;
    if (number >= first[1]) return *end = e->found->lines;
    *end = e->found->block_starts[number + 1];
    return e->found->block_starts[number];
}

static void find_candidates(struct text_block *block, struct key_batch *batch) {
    const struct engine *const e = block->context;
    struct line_marks *const marks = e->rule->marks;
    uint64_t hashes[BATCH_ROOM], end = 0;
    const uint64_t first = marks ? first_line(e, block, &end) : 0;
    size_t chosen[BATCH_ROOM];
    bool dropped[BATCH_ROOM] = {false};
    const bool drops = e->rule->drop && e->rule->may_print(e->file - 1);
    batch_start(batch, block);
    while (batch_next(batch, block)) {
        const uint64_t line = first + block->lines;
        if (marks && batch->count > end - line) break;
        const size_t n = marks ? choose_marked(e, batch, line, chosen, hashes)
                               : choose_all(e, batch, chosen, hashes);
        if (drops) {
            memset(dropped, 0, sizeof dropped);
            e->rule->drop(batch->keys, batch->count, dropped);
            for (size_t i = 0; marks && i < batch->count; i++)
                if (dropped[i]) marks_set(marks, line + i);
        }
        for (size_t i = 0; i < n; i++) {
            const size_t at = chosen[i];
            if (!dropped[at])
                add_candidate(block, hashes[i], block->lines + at,
                              &batch->keys[at], &batch->lines[at]);
        }
        if (marks)
            note_ends(block, batch);
        else
            block->lines += batch->count;
    }
    if (marks && first + block->lines != end)
        snprintf(block->trouble, sizeof block->trouble,
                 "changed while it was read");
    point_to_copies(block);
}

/* ---- Candidates of a block, in order ------------------------------------- */

static bool visit_candidates(struct text_block *block,
                             struct key_batch *batch) {
    (void)batch;
    struct engine *const e = block->context;
    const struct rule *const rule = e->rule;
    const struct candidate *const c = block->candidates;
    const size_t n = block->candidate_count;
    const bool prints = !rule->marks && rule->may_print(e->file - 1);
    for (size_t i = 0; i < n; i++) {
        const size_t slot = i + AHEAD_SLOT, entry = i + AHEAD_ENTRY;
        partition_prefetch(&e->input, c[slot < n ? slot : n - 1].hash,
                           c[entry < n ? entry : n - 1].hash);
        const struct record record = {
            .sequence = e->sequence + c[i].number,
            .key = c[i].key,
            .line = c[i].line,
            .has_line = prints && (c[i].key.data != c[i].line.data ||
                                   c[i].key.size != c[i].line.size),
        };
        partition_visit(&e->input, c[i].hash, &record, e->file - 1);
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
    e->input = (struct partition){.engine = e,
                                  .memory = memory,
                                  .direct = true,
                                  .hasher = key_hasher(0),
                                  .keys = partition_keys(rule, memory)};
    set_expect(e->input.keys, expected->lines);
    partition_start(&e->input, 0, expected->bytes);
    return e;
}

void engine_read(struct engine *e, int count, char **files) {
    if (e->file == e->file_room) {
        e->file_room = 2 * e->file_room + 8;
        e->starts = resize_memory(e->starts, e->file_room * sizeof *e->starts);
    }
    e->starts[e->file++] = e->sequence;
    const struct stages stages = {.in_parallel = find_candidates,
                                  .in_order = visit_candidates,
                                  .context = e};
    const struct input_totals totals = run_pipeline(&stages, count, files);
    e->figures.lines += totals.lines;
    e->figures.bytes += totals.bytes;
}

/* Print a block in the last pass, unless lines before it are not known yet. */
static bool visit_and_print(struct text_block *block, struct key_batch *batch) {
    struct engine *const e = block->context;
    visit_candidates(block, batch);
    if (!e->input.full && !e->pending_count && !block->trouble[0])
        marks_print_block(e->rule->marks, block);
    return true;
}

/* A pass costs as much as its bytes. A spilled record costs about four times
 * its bytes: it is written, read and hashed again. Then the files are read to
 * print them. */
static unsigned passes_for(const struct engine *e, const struct sample *keys) {
    const struct candidates *const found = e->found;
    const uint64_t passes =
        set_bytes(e->rule, keys) / memory_of_keys(e->rule, e->memory) + 1;
    if (passes > MOST_PASSES) return 1;
    const double size = (double)found->bytes / (double)(found->lines + 1) + 6;
    const double left = 1 - 1 / (double)passes;
    const double spilling =
        4 * left * size * (double)found->marked + (double)found->bytes;
    return (double)(passes - 1) * (double)found->bytes < spilling
               ? (unsigned)passes
               : 1;
}

static void read_pass(struct engine *e, const struct reading *readings,
                      size_t count) {
    const bool last = e->pass + 1 == e->passes;
    e->sequence = 0;
    for (e->file = 0; e->file < count;) {
        const struct reading *const r = &readings[e->file];
        const bool prints = last && e->rule->may_print(e->file);
        const struct stages stages = {.in_parallel = find_candidates,
                                      .in_order = prints ? visit_and_print
                                                         : visit_candidates,
                                      .output = e->rule->output,
                                      .context = e};
        e->file++;
        run_pipeline(&stages, r->count, r->files);
        if (e->sequence != e->found->starts[e->file])
            fail_at(r->files[0], 0, "changed while it was read");
    }
}

unsigned engine_read_candidates(struct engine *e,
                                const struct reading *readings, size_t count,
                                const struct candidates *found) {
    const double size = (double)found->bytes / (double)(found->lines + 1);
    const struct sample keys = {
        .lines = found->keys, .bytes = (uint64_t)(size * (double)found->keys)};
    e->found = found;
    e->starts = alloc_memory((count + 1) * sizeof *e->starts);
    memcpy(e->starts, found->starts, (count + 1) * sizeof *e->starts);
    e->passes = passes_for(e, &keys);
    for (e->pass = 0;; e->pass++) {
        set_expect(e->input.keys, keys.lines / e->passes);
        read_pass(e, readings, count);
        if (e->pass + 1 == e->passes) return e->passes;
        partition_end(&e->input);
        set_clear(e->input.keys, memory_of_keys(e->rule, e->memory));
        partition_start(&e->input, 0, keys.bytes / e->passes);
    }
}

struct figures engine_end(struct engine *e) {
    partition_end(&e->input);
    set_free(e->input.keys);
    calyx_free(e->input.hasher);
    run_pending(e);
    for (int i = 0; i < 2; i++) lane_close(&e->lanes[i]);
    struct figures figures = e->figures;
    figures.printed = e->lanes[0].printed;
    figures.second = e->lanes[1].printed;
    figures.spilled = spill_written();
    free(e->starts);
    free(e->pending);
    free(e);
    return figures;
}
