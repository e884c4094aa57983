#include "exact/key_engine.h"

#include <stdlib.h>
#include <string.h>

#include "exact/key_hash.h"

/* ---- Candidates of a block ----------------------------------------------- */

void block_candidates_free(void *candidates) {
    struct block_candidates *const b = candidates;
    free(b->all);
    free(b->key_bytes);
}

static bool is_in_text(const struct text_block *block, const void *bytes) {
    const uintptr_t at = (uintptr_t)bytes, text = (uintptr_t)block->text;
    return at >= text && at <= text + block->size;
}

/* Keys outside of the text are copied. The copies may move until all are there.
 */
struct candidate *add_candidate(struct text_block *block, uint64_t hash,
                                size_t number, const calyx_key *key,
                                const calyx_key *line) {
    struct block_candidates *const b = block->work;
    b->all = with_room(b->all, &b->room, b->count + 1, sizeof *b->all);
    struct candidate *const c = &b->all[b->count++];
    *c = (struct candidate){
        .hash = hash, .number = number & INT64_MAX, .key = *key};
    if (line) c->line = *line;
    if (is_in_text(block, key->data)) return c;
    /* an empty key has a place, too */
    b->key_bytes =
        with_room(b->key_bytes, &b->key_room, b->key_size + key->size + 1, 1);
    if (key->size) memcpy(b->key_bytes + b->key_size, key->data, key->size);
    c->key.data = NULL;
    b->key_size += key->size;
    return c;
}

void point_to_copies(struct text_block *block) {
    struct block_candidates *const b = block->work;
    const char *copy = b->key_bytes;
    for (size_t i = 0; i < b->count; i++) {
        struct candidate *const c = &b->all[i];
        if (c->key.data) continue;
        c->key.data = copy;
        copy += c->key.size;
    }
}

bool find_dropped(const struct key_engine *e, const struct key_batch *batch,
                  bool *dropped) {
    const struct set_operation *const op = e->op;
    const bool any = op->without_count && may_print(op, e->file);
    bool found[BATCH_ROOM];
    memset(dropped, 0, batch->count);
    for (int f = 0; any && f < op->without_count; f++) {
        calyx_has_many(op->without[f], batch->keys, batch->count, found);
        for (size_t i = 0; i < batch->count; i++) dropped[i] |= found[i];
    }
    return any;
}

/* ---- In order ------------------------------------------------------------ */

static void visit_candidate(struct key_engine *e, const struct candidate *c) {
    struct record record = {.sequence = e->sequence + c->number, .key = c->key};
    if (e->marks) {
        partition_visit_candidate(&e->input, c, &record, e->file);
        return;
    }
    record.line = c->line;
    record.has_line =
        may_print(e->op, e->file) &&
        (c->key.data != c->line.data || c->key.size != c->line.size);
    partition_visit(&e->input, c->hash, &record, e->file);
}

void visit_candidates(struct key_engine *e, struct text_block *block) {
    struct block_candidates *const b = block->work;
    const struct candidate *const c = b->all;
    const size_t n = b->count;
    for (size_t i = 0; i < n; i++) {
        const size_t slot = i + AHEAD_SLOT, entry = i + AHEAD_ENTRY;
        partition_prefetch(&e->input, c[slot < n ? slot : n - 1].hash,
                           c[entry < n ? entry : n - 1].hash);
        visit_candidate(e, &c[i]);
    }
    b->count = b->key_size = 0;
    e->sequence += block->lines;
    e->figures.candidates += n;
    for (int i = 0; i < 2; i++) lane_flush(&e->lanes[i]);
}

/* ---- Start and end ------------------------------------------------------- */

struct key_engine *engine_start(const struct set_operation *op,
                                struct line_marks *marks, uint64_t memory,
                                const struct sample *expected) {
    struct key_engine *const e = alloc_memory(sizeof *e);
    *e = (struct key_engine){.op = op,
                             .marks = marks,
                             .memory = memory,
                             .lock = PTHREAD_MUTEX_INITIALIZER,
                             .changed = PTHREAD_COND_INITIALIZER};
    lane_open(&e->lanes[0], marks ? NULL : op->output, memory);
    lane_open(&e->lanes[1], marks ? NULL : op->second, memory);
    e->input = (struct partition){
        .engine = e,
        .memory = memory,
        .direct = true,
        .hasher = key_hasher(0),
        .keys = key_table_new(tally_size(op), op->least > 0)};
    partition_start(&e->input, 0, keys_of_lines(op, memory, expected->lines),
                    expected->bytes);
    return e;
}

struct figures engine_end(struct key_engine *e) {
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
    free(e->pending);
    free(e);
    return figures;
}
