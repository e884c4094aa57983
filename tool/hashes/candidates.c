#include "hashes/candidates.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "exact/key_hash.h"
#include "hashes/scatter.h"

/* ---- How the memory is divided ------------------------------------------- */

/* Marks take at most 3 eighths, tables and buffers of ranges 2. The rest is
 * for hashes. */
uint64_t most_lines_in(uint64_t memory) {
    return memory / 8 * 3 * 8;
}

/* The estimate is of the first megabyte of each file. */
static uint64_t most_lines(uint64_t lines, uint64_t memory) {
    const uint64_t doubled = 2 * lines + (1 << 20);
    const uint64_t most = most_lines_in(memory);
    return doubled < most ? doubled : most;
}

static uint64_t memory_of_hashes(uint64_t lines, uint64_t memory) {
    return memory / 4 * 3 - marks_bytes(most_lines(lines, memory));
}

uint64_t hashes_spilled(uint64_t estimated, uint64_t lines, uint64_t memory) {
    return scatter_spills(estimated, lines, memory_of_hashes(estimated, memory),
                          thread_count());
}

/* ---- The first pass ------------------------------------------------------ */

struct hash_pass {
    struct candidates *found;
    struct scatter *scatter;
    calyx_filter *hasher;
    uint64_t most_lines;
    size_t blocks, block_room, sum_room;
};

/* Of a block. */
struct hash_work {
    uint64_t sum;  /* a hash of its text */
    uint64_t line; /* number of its first line */
};

static void hash_lines(struct text_block *block, struct key_batch *batch) {
    const struct hash_pass *const job = block->context;
    struct hash_work *const work = block->work;
    work->sum = calyx_hash(job->hasher, block->text, block->size);
    batch_start(batch, block);
    while (batch_next(batch, block)) {
        uint64_t *const hashes =
            room_for_hashes(block, block->lines + batch->count);
        hash_keys(job->hasher, batch->keys, batch->count,
                  hashes + block->lines);
        block->lines += batch->count;
    }
}

/* The number of the first line of the next block, or of the end; and the hash
 * of its text. */
static void note_start(struct hash_pass *job, uint64_t sum) {
    struct candidates *const found = job->found;
    found->block_starts =
        with_room(found->block_starts, &job->block_room, job->blocks + 1,
                  sizeof *found->block_starts);
    found->block_sums = with_room(found->block_sums, &job->sum_room,
                                  job->blocks + 1, sizeof *found->block_sums);
    found->block_sums[job->blocks] = sum;
    found->block_starts[job->blocks++] = found->lines;
}

static bool number_lines(struct text_block *block, struct key_batch *batch) {
    (void)batch;
    struct hash_pass *const job = block->context;
    struct candidates *const found = job->found;
    struct hash_work *const work = block->work;
    work->line = found->lines;
    note_start(job, work->sum);
    found->lines += block->lines;
    found->bytes += block->size;
    return found->lines <= job->most_lines;
}

static void scatter_hashes(struct text_block *block) {
    struct hash_pass *const job = block->context;
    const struct hash_work *const work = block->work;
    struct scatter_writer *const writer = scatter_take(job->scatter);
    if (work->line + block->lines <= job->most_lines)
        scatter_add(writer, block->hashes, block->lines, work->line);
    scatter_return(writer);
}

/* False if there are too many lines. */
static bool hash_files(struct hash_pass *job, const struct exact_job *exact) {
    const size_t count = exact->op.readings;
    struct candidates *const found = job->found;
    const struct stages stages = {.in_parallel = hash_lines,
                                  .in_order = number_lines,
                                  .after_order = scatter_hashes,
                                  .context = job,
                                  .work_size = sizeof(struct hash_work)};
    for (size_t i = 0; i < count; i++) {
        found->starts[i] = found->lines;
        found->first_blocks[i] = job->blocks;
        if (!is_hashed(&exact->op, i)) continue;
        run_pipeline(&stages, exact->readings[i].count,
                     exact->readings[i].files);
        if (found->lines > job->most_lines) return false;
    }
    found->starts[count] = found->lines;
    found->first_blocks[count] = job->blocks;
    note_start(job, 0);
    return true;
}

enum { MOST_WORKERS = 8 };

/* ---- Ranges -------------------------------------------------------------- */

/* A table of the tags of a range, with what was seen of each: in a slot, the
 * tag in the high half, SEEN_IN and SEEN_TWICE_IN in the low half; 0: free. */
struct tag_table {
    uint64_t *slots;
    uint64_t mask, used, most; /* most: slots */
};

struct range_job {
    struct candidates *found;
    const struct scatter *scatter;
    const struct file_group *readings;
    size_t count;
    const struct hash_condition *condition;
    uint64_t memory; /* for each thread: half for a table, half for a buffer */
    _Atomic unsigned next_range;
};

struct range_work {
    struct range_job *job;
    pthread_t thread;
    struct line_marks *marks; /* its own, joined with the others' at the end */
    struct tag_table table;
    struct records_buffer buffer;
    /* tags are split into this many parts, if a table for all is too large */
    unsigned part, part_bits;
    unsigned line_bits;
    size_t reading; /* of the last record */
    uint64_t marked, keys;
};

static uint64_t *slot_of(const struct tag_table *t, uint32_t tag) {
    for (uint64_t at = tag;; at++) {
        uint64_t *const slot = &t->slots[at & t->mask];
        if (!*slot || *slot >> 32 == tag) return slot;
    }
}

static void table_new(struct tag_table *t, uint64_t slots) {
    t->slots = alloc_memory(slots * sizeof *t->slots);
    memset(t->slots, 0, slots * sizeof *t->slots);
    t->mask = slots - 1;
}

/* At most 5 of 8 slots are used. */
static bool table_has_room(struct tag_table *t) {
    if (8 * t->used < 5 * (t->mask + 1)) return true;
    if (2 * (t->mask + 1) > t->most) return false;
    const struct tag_table old = *t;
    table_new(t, 2 * (old.mask + 1));
    for (uint64_t i = 0; i <= old.mask; i++)
        if (old.slots[i])
            *slot_of(t, (uint32_t)(old.slots[i] >> 32)) = old.slots[i];
    free(old.slots);
    return true;
}

static uint32_t class_of(struct range_work *w, uint64_t line) {
    const uint64_t *const starts = w->job->found->starts;
    if (w->job->count == 1) return w->job->readings[0].class;
    while (line < starts[w->reading]) w->reading--;
    while (line >= starts[w->reading + 1]) w->reading++;
    return w->job->readings[w->reading].class;
}

static bool is_of_part(const struct range_work *w, uint32_t tag) {
    return !w->part_bits ||
           tag >> (64 - w->line_bits - w->part_bits) == w->part;
}

static bool note_tags(void *context, const uint64_t *records, size_t n) {
    struct range_work *const w = context;
    const unsigned line_bits = w->line_bits;
    for (size_t i = 0; i < n; i++) {
        const uint32_t tag = record_tag(records[i], line_bits);
        if (!is_of_part(w, tag)) continue;
        uint64_t *slot = slot_of(&w->table, tag);
        if (!*slot) {
            if (!table_has_room(&w->table)) return false;
            slot = slot_of(&w->table, tag);
            *slot = (uint64_t)tag << 32;
            w->table.used++;
        }
        const uint32_t class = class_of(w, record_line(records[i], line_bits));
        *slot |= *slot & SEEN_IN(class) ? SEEN_TWICE_IN(class) : SEEN_IN(class);
    }
    return true;
}

/* Without branches, as which line meets the condition cannot be predicted. */
static bool mark_lines(void *context, const uint64_t *records, size_t n) {
    enum { AT_ONCE = 256 };
    struct range_work *const w = context;
    const unsigned line_bits = w->line_bits;
    const struct hash_condition condition = *w->job->condition;
    uint64_t lines[AT_ONCE];
    for (size_t i = 0; i < n;) {
        const size_t end = n - i < AT_ONCE ? n : i + AT_ONCE;
        size_t count = 0;
        for (; i < end; i++) {
            const uint32_t tag = record_tag(records[i], line_bits);
            lines[count] = record_line(records[i], line_bits);
            const bool meets =
                meets_condition(&condition, *slot_of(&w->table, tag));
            count += (size_t)is_of_part(w, tag) & meets;
        }
        for (size_t k = 0; k < count; k++) marks_set_alone(w->marks, lines[k]);
        w->marked += count;
    }
    return true;
}

/* Count the keys that meet the condition, and empty the table. */
static uint64_t empty_table(struct range_work *w) {
    uint64_t keys = 0;
    const struct hash_condition condition = *w->job->condition;
    for (uint64_t i = 0; i <= w->table.mask; i++) {
        keys += meets_condition(&condition, w->table.slots[i]);
        w->table.slots[i] = 0;
    }
    w->table.used = 0;
    return keys;
}

/* Twice as many parts each time that the table is full. */
static void work_on_range(struct range_work *w, unsigned range) {
    const struct scatter *const s = w->job->scatter;
    w->part = w->part_bits = 0;
    while (w->part >> w->part_bits == 0) {
        if (scatter_read(s, range, &w->buffer, note_tags, w)) {
            scatter_read(s, range, &w->buffer, mark_lines, w);
            w->keys += empty_table(w);
            w->part++;
        } else {
            empty_table(w);
            w->part *= 2;
            w->part_bits++;
        }
    }
}

static void *work_on_ranges(void *context) {
    enum { FIRST_SLOTS = 1 << 10, LEAST_SLOTS = 1 << 12 };
    struct range_work *const w = context;
    struct range_job *const job = w->job;
    const uint64_t share = job->memory / 2;
    const size_t chunk = scatter_chunk(job->scatter);
    w->buffer.room = share < chunk ? chunk : share;
    w->buffer.records = alloc_memory(w->buffer.room);
    w->table.most = LEAST_SLOTS;
    while (2 * w->table.most * sizeof(uint64_t) <= share) w->table.most *= 2;
    table_new(&w->table, FIRST_SLOTS);
    for (unsigned range;
         (range = job->next_range++) < scatter_ranges(job->scatter);)
        work_on_range(w, range);
    free(w->buffer.records);
    free(w->table.slots);
    return NULL;
}

static void start_worker(struct range_work *w) {
    w->marks = marks_new(w->job->found->lines);
    start_thread(&w->thread, work_on_ranges, w);
}

static void join_worker(struct candidates *found, struct range_work *w) {
    if (w->marks != found->marks) {
        pthread_join(w->thread, NULL);
        marks_join(found->marks, w->marks);
        marks_free(w->marks);
    }
    found->marked += w->marked;
    found->keys += w->keys;
}

/* Each worker has marks of its own, as far as there is memory for them. */
static size_t worker_count(uint64_t lines, uint64_t memory) {
    const uint64_t marks = memory / marks_bytes(lines) + 1;
    const size_t threads = thread_count();
    const size_t most = threads < MOST_WORKERS ? threads : MOST_WORKERS;
    return marks < most ? (size_t)marks : most;
}

static void mark_candidates(struct range_job *job, uint64_t memory) {
    struct candidates *const found = job->found;
    const size_t workers = worker_count(found->lines, memory / 2);
    struct range_work work[MOST_WORKERS];
    job->memory = memory / 2 / workers;
    for (size_t i = 0; i < workers; i++) {
        work[i] =
            (struct range_work){.job = job,
                                .marks = found->marks,
                                .line_bits = scatter_line_bits(job->scatter)};
        if (i) start_worker(&work[i]);
    }
    work_on_ranges(&work[0]);
    for (size_t i = 0; i < workers; i++) join_worker(found, &work[i]);
}

/* ---- Both ---------------------------------------------------------------- */

bool candidates_find(struct candidates *found, const struct exact_job *job,
                     uint64_t memory) {
    const size_t count = job->op.readings;
    const uint64_t lines = job->hashed.lines;
    *found = (struct candidates){
        .starts = alloc_memory((count + 1) * sizeof *found->starts),
        .first_blocks = alloc_memory((count + 1) * sizeof *found->starts)};
    const uint64_t most = most_lines(lines, memory);
    struct hash_pass hashing = {
        .found = found,
        .hasher = key_hasher(0),
        .scatter = scatter_new(lines, most, memory_of_hashes(lines, memory),
                               thread_count()),
        .most_lines = most};
    const bool fits = hash_files(&hashing, job);
    calyx_free(hashing.hasher);
    scatter_end(hashing.scatter);
    if (fits) {
        found->marks = marks_new(found->lines);
        struct range_job ranges = {.found = found,
                                   .scatter = hashing.scatter,
                                   .readings = job->readings,
                                   .count = count,
                                   .condition = &job->condition};
        mark_candidates(&ranges, memory / 4);
    }
    scatter_free(hashing.scatter);
    return fits;
}

void candidates_free(struct candidates *found) {
    marks_free(found->marks);
    free(found->starts);
    free(found->block_starts);
    free(found->block_sums);
    free(found->first_blocks);
}
