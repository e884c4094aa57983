#include "exact/engine.h"

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

/* The keys of a batch to look at: their indexes in it, and their hashes. */
static size_t choose(const struct engine *e, const struct key_batch *batch,
                     size_t *chosen, uint64_t *hashes) {
    bool found[BATCH_ROOM];
    size_t n = 0;
    hash_keys(e->input.hasher, batch->keys, batch->count, hashes);
    for (size_t i = 0; i < batch->count; i++) {
        chosen[n] = i;
        hashes[n] = hashes[i];
        n += is_of_pass(e, hashes[i]);
    }
    if (!e->prefilter) return n;
    calyx_has_hashes(e->prefilter, hashes, n, found);
    size_t passed = 0;
    for (size_t i = 0; i < n; i++) {
        chosen[passed] = chosen[i];
        hashes[passed] = hashes[i];
        passed += found[i];
    }
    return passed;
}

static void find_candidates(struct text_block *block, struct key_batch *batch) {
    const struct engine *const e = block->context;
    uint64_t hashes[BATCH_ROOM];
    size_t chosen[BATCH_ROOM];
    bool dropped[BATCH_ROOM] = {false};
    const bool drops = e->rule->drop && e->rule->may_print(e->file - 1);
    batch_start(batch, block);
    while (batch_next(batch, block)) {
        const size_t n = choose(e, batch, chosen, hashes);
        if (drops) {
            memset(dropped, 0, sizeof dropped);
            e->rule->drop(batch->keys, batch->count, dropped);
        }
        for (size_t i = 0; i < n; i++) {
            const size_t at = chosen[i];
            if (!dropped[at])
                add_candidate(block, hashes[i], block->lines + at,
                              &batch->keys[at], &batch->lines[at]);
        }
        if (e->rule->marks)
            note_ends(block, batch);
        else
            block->lines += batch->count;
    }
    point_to_copies(block);
}

/* ---- Candidates of a block, in order ------------------------------------- */

static void add_passed(calyx_filter *passed, const struct candidate *c,
                       size_t n) {
    uint64_t hashes[BATCH];
    for (size_t at = 0, some; at < n; at += some) {
        some = n - at < BATCH ? n - at : BATCH;
        for (size_t i = 0; i < some; i++) hashes[i] = c[at + i].hash;
        calyx_add_hashes(passed, hashes, some, NULL, NULL);
    }
}

static bool visit_candidates(struct text_block *block,
                             struct key_batch *batch) {
    (void)batch;
    struct engine *const e = block->context;
    const struct rule *const rule = e->rule;
    const struct candidate *const c = block->candidates;
    const size_t n = block->candidate_count;
    const bool prints = !rule->marks && rule->may_print(e->file - 1);
    if (rule->marks && e->sequence + block->lines > marks_lines(rule->marks))
        fail_at(block->file, 0, "changed while it was read");
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
    if (e->passed) add_passed(e->passed, c, n);
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

void engine_read(struct engine *e, int count, char **files,
                 const calyx_filter *prefilter, calyx_filter *passed) {
    if (e->file == e->file_room) {
        e->file_room = 2 * e->file_room + 8;
        e->starts = resize_memory(e->starts, e->file_room * sizeof *e->starts);
    }
    e->starts[e->file++] = e->sequence;
    e->prefilter = prefilter;
    e->passed = passed;
    const struct stages stages = {.in_parallel = find_candidates,
                                  .in_order = visit_candidates,
                                  .context = e};
    const struct input_totals totals = run_pipeline(&stages, count, files);
    e->figures.lines += totals.lines;
    e->figures.bytes += totals.bytes;
}

static bool visit_and_print(struct text_block *block, struct key_batch *batch) {
    struct engine *const e = block->context;
    visit_candidates(block, batch);
    if (!e->input.full && !e->pending_count)
        marks_print_block(e->rule->marks, block);
    return true;
}

/* Spilling costs about as much as six passes: records are written, read and
 * hashed again, and then the files are read to print them. */
static unsigned passes_for(const struct engine *e,
                           const struct sample *expected) {
    const uint64_t passes =
        set_bytes(e->rule, expected) / memory_of_keys(e->rule, e->memory) + 1;
    return passes > MOST_PASSES ? 1 : (unsigned)passes;
}

unsigned engine_read_in_passes(struct engine *e, int count, char **files,
                               const calyx_filter *prefilter,
                               const struct sample *expected) {
    e->prefilter = prefilter;
    e->file = 1;
    e->passes = passes_for(e, expected);
    for (e->pass = 0;; e->pass++) {
        const bool last = e->pass + 1 == e->passes;
        const struct stages stages = {.in_parallel = find_candidates,
                                      .in_order = last ? visit_and_print
                                                       : visit_candidates,
                                      .output = e->rule->output,
                                      .context = e};
        set_expect(e->input.keys, expected->lines / e->passes);
        e->sequence = 0;
        run_pipeline(&stages, count, files);
        if (last) return e->passes;
        partition_end(&e->input);
        set_clear(e->input.keys, memory_of_keys(e->rule, e->memory));
        partition_start(&e->input, 0, expected->bytes / e->passes);
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
