/* One partition of the exact engine, and the queue of those to come. */
#include <stdlib.h>
#include <string.h>

#include "exact/key_engine.h"
#include "exact/key_hash.h"

void partition_start(struct partition *p, unsigned level, uint64_t keys,
                     uint64_t bytes) {
    p->level = level;
    p->full = false;
    key_table_start(p->keys, p->hasher, keys,
                    memory_of_keys(p->engine->op, p->memory));
    p->spill_count = spills_for(p->engine->op, p->memory, bytes);
}

/* ---- Records ------------------------------------------------------------- */

static void put_line(struct partition *p, enum destination destination,
                     const calyx_key *line, uint64_t sequence, uint64_t count) {
    if (destination == NOT_PRINTED) return;
    struct lane *const lane = &p->engine->lanes[destination - TO_OUTPUT];
    struct spill **const run = &p->runs[destination - TO_OUTPUT];
    if (!lane->output) return;
    if (p->direct) {
        lane_print(lane, line, count);
        return;
    }
    if (!*run) *run = run_new();
    spill_put(*run, &(struct record){
                        .sequence = sequence, .number = count, .key = *line});
}

/* Put a line that was visited, or mark it. */
static void put_visited(struct partition *p, enum destination destination,
                        const struct record *r, uint64_t file, uint64_t count) {
    const struct set_operation *const op = p->engine->op;
    if (!p->engine->marks) {
        put_line(p, destination, &r->line, r->sequence, count);
        return;
    }
    if (may_print(op, file) && (destination == TO_OUTPUT) != op->prints_marked)
        marks_clear(p->engine->marks, r->sequence);
}

/* From now on lines go to runs: they follow lines that are not known yet. */
static void begin_spilling(struct partition *p) {
    p->full = true;
    p->direct = false;
    if (some_only_read(p->engine->op)) {
        calyx_options want = key_hash_options(p->level);
        calyx_error why;
        want.bits = 8 * memory_of_spilled_keys(p->memory);
        want.capacity = want.bits / 10;
        if (calyx_new(&want, &p->spilled_keys, &why) != CALYX_OK)
            fail_with(&why);
    }
    for (unsigned i = 0; i < p->spill_count; i++)
        p->spills[i] = spill_new(memory_of_spill(p->memory, p->spill_count));
}

/* In a spill the number of a record is the number of its file. */
static void spill_record(struct partition *p, uint64_t hash,
                         const struct record *r, uint64_t file) {
    if (!p->full) begin_spilling(p);
    const unsigned at = (unsigned)(hash >> 57) & (p->spill_count - 1);
    struct record spilled = *r;
    spilled.number = file;
    spill_put(p->spills[at], &spilled);
}

bool may_be_spilled(const struct partition *p, uint64_t hash) {
    bool found;
    return p->full && calyx_has_hashes(p->spilled_keys, &hash, 1, &found);
}

/* A record of a file that does not insert. All files that insert were read
 * before, so the filter of spilled keys is complete. */
static void visit_absent(struct partition *p, uint64_t hash,
                         const struct record *r, uint64_t file) {
    if (may_be_spilled(p, hash))
        spill_record(p, hash, r, file);
    else
        put_visited(p, p->engine->op->prints_absent ? TO_OUTPUT : NOT_PRINTED,
                    r, file, 0);
}

/* A new key that does not fit. */
static void spill_key(struct partition *p, uint64_t hash,
                      const struct record *r, uint64_t file) {
    spill_record(p, hash, r, file);
    if (p->spilled_keys)
        calyx_add_hashes(p->spilled_keys, &hash, 1, NULL, NULL);
}

void partition_visit_stored(struct partition *p, struct tally *tally,
                            bool fresh, const struct record *r, uint64_t file) {
    const struct set_operation *const op = p->engine->op;
    if (fresh && op->tallies) tally->first = r->sequence;
    const enum destination destination = op->on_present(op, tally, fresh, file);
    put_visited(p, destination, r, file,
                op->counts && destination == TO_OUTPUT ? tally->count : 0);
}

void partition_visit(struct partition *p, uint64_t hash, const struct record *r,
                     uint64_t file) {
    const struct set_operation *const op = p->engine->op;
    struct stored_key *stored = key_table_find_one(p->keys, &r->key, hash);
    const bool fresh = !stored;
    if (!stored && !stores_keys(op, file)) {
        visit_absent(p, hash, r, file);
        return;
    }
    if (!stored) {
        if (!p->full)
            stored = key_table_insert(p->keys, &r->key, hash,
                                      r->has_line ? &r->line : NULL);
        if (!stored) {
            spill_key(p, hash, r, file);
            return;
        }
    }
    partition_visit_stored(p, stored_payload(p->keys, stored), fresh, r, file);
}

/* Its key may have been added since it was looked up. */
void partition_visit_candidate(struct partition *p, const struct candidate *c,
                               const struct record *r, uint64_t file) {
    struct stored_key *stored = c->is_copy ? NULL : c->stored;
    if (c->is_copy && !p->full)
        stored = key_table_add(p->keys, c->hash, c->stored);
    else if (!stored)
        stored = key_table_find_one(p->keys, &r->key, c->hash);
    if (stored)
        partition_visit_stored(p, stored_payload(p->keys, stored),
                               c->is_copy && stored == c->stored, r, file);
    else if (stores_keys(p->engine->op, file))
        spill_key(p, c->hash, r, file);
    else
        visit_absent(p, c->hash, r, file);
}

/* ---- The end of a partition ---------------------------------------------- */

static void select_lines(struct partition *p) {
    const struct set_operation *const op = p->engine->op;
    for (struct stored_key *k = NULL; (k = key_table_next(p->keys, k));) {
        const struct tally *const tally = stored_payload(p->keys, k);
        if (tally->count < op->least || tally->count > op->most) continue;
        const calyx_key line = stored_line(p->keys, k);
        put_line(p, TO_OUTPUT, &line, tally->first,
                 op->counts ? tally->count : 0);
    }
}

static void queue_spills(struct partition *p) {
    struct key_engine *const e = p->engine;
    e->pending = resize_memory(e->pending, (e->pending_count + p->spill_count) *
                                               sizeof *e->pending);
    for (unsigned i = 0; i < p->spill_count; i++) {
        if (!spill_size(p->spills[i])) {
            spill_close(p->spills[i]);
            continue;
        }
        spill_rewind(p->spills[i], 1 << 18);
        e->pending[e->pending_count++] =
            (struct pending){p->spills[i], p->level + 1};
    }
}

void partition_end(struct partition *p) {
    struct key_engine *const e = p->engine;
    if (e->op->least) select_lines(p);
    calyx_free(p->spilled_keys);
    p->spilled_keys = NULL;
    pthread_mutex_lock(&e->lock);
    e->figures.partitions++;
    e->figures.keys += key_table_count(p->keys);
    if (p->full) queue_spills(p);
    for (int i = 0; i < 2; i++) {
        lane_add_run(&e->lanes[i], p->runs[i]);
        p->runs[i] = NULL;
    }
    pthread_mutex_unlock(&e->lock);
}

/* ---- Spills as partitions ------------------------------------------------ */

static void read_spill(struct partition *p, struct spill *spill) {
    enum { BATCH_SIZE = 512 };
    struct record records[BATCH_SIZE];
    calyx_key keys[BATCH_SIZE];
    uint64_t hashes[BATCH_SIZE];
    for (size_t n; (n = spill_read(spill, records, BATCH_SIZE)) > 0;) {
        for (size_t i = 0; i < n; i++) keys[i] = records[i].key;
        hash_keys(p->hasher, keys, n, hashes);
        for (size_t i = 0; i < n; i++) {
            const size_t slot = i + AHEAD_SLOT, entry = i + AHEAD_ENTRY;
            partition_prefetch(p, hashes[slot < n ? slot : n - 1],
                               hashes[entry < n ? entry : n - 1]);
            partition_visit(p, hashes[i], &records[i], records[i].number);
        }
    }
}

/* False when the queue is empty and no partition at work could add to it. */
static bool next_pending(struct key_engine *e, struct pending *next) {
    pthread_mutex_lock(&e->lock);
    while (!e->pending_count && e->busy)
        pthread_cond_wait(&e->changed, &e->lock);
    const bool found = e->pending_count > 0;
    if (found) {
        *next = e->pending[--e->pending_count];
        e->busy++;
    }
    pthread_mutex_unlock(&e->lock);
    return found;
}

static void end_pending(struct key_engine *e) {
    pthread_mutex_lock(&e->lock);
    e->busy--;
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->lock);
}

/* More threads would leave each too little memory for one spill. */
enum { MOST_WORKERS = 2 };

static size_t worker_count(void) {
    const size_t threads = thread_count();
    return threads < MOST_WORKERS ? threads : MOST_WORKERS;
}

static void *work_on_pending(void *engine) {
    struct key_engine *const e = engine;
    struct partition *const p = alloc_memory(sizeof *p);
    *p = (struct partition){.engine = e, .memory = e->memory / worker_count()};
    p->keys = key_table_new(tally_size(e->op), e->op->least > 0);
    for (struct pending next; next_pending(e, &next);) {
        p->hasher = key_hasher(next.level);
        const uint64_t lines = spill_records(next.spill);
        partition_start(p, next.level, keys_of_lines(e->op, p->memory, lines),
                        spill_size(next.spill));
        read_spill(p, next.spill);
        spill_close(next.spill);
        partition_end(p);
        calyx_free(p->hasher);
        end_pending(e);
    }
    key_table_free(p->keys);
    free(p);
    return NULL;
}

void run_pending(struct key_engine *e) {
    if (!e->pending_count) return;
    pthread_t other;
    const bool two = worker_count() == 2;
    if (two) start_thread(&other, work_on_pending, e);
    work_on_pending(e);
    if (two) pthread_join(other, NULL);
}
