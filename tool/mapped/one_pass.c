/*
 * The exact verbs in one pass, if the text and a table fit into memory.
 *
 * A slot of the table holds the place of a line in the text, and a tag
 * of its hash. A line whose tag is there is compared with the bytes at that
 * place, so the answer is exact with any hash. The line claims the slot of its
 * key if it is the first so far, or if the verb says so: what is printed are
 * the lines of the last file that hold their slot in the end.
 *
 * All threads use the table at once. Of two equal lines of one file the earlier
 * one gets the slot, even if it comes later: it then takes it from the other,
 * whose block has not been printed yet, since blocks are printed in order.
 *
 * If the table and the text outgrow the memory, the first bytes of the output
 * are written; output_skip makes the output drop them when they are written
 * again. What was read of pipes is in job->kept, to be read again.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "exact/key_hash.h"
#include "exact/method.h"
#include "exact/slot_table.h"
#include "exact/spill.h"
#include "input/part_lines.h"
#include "input/source.h"
#include "mapped/mapped_text.h"

/* ---- The pass ------------------------------------------------------------ */

/* What the lines of a file do. */
struct file_role {
    bool claims_absent;   /* a key that is not there yet */
    bool prints_absent;   /* and if it does not claim it */
    bool claims_previous; /* a key of the file before */
    bool prints;          /* a line that claims its key */
};

struct pass_state {
    const struct set_operation *op;
    calyx_filter *hasher;
    uint64_t memory;
    struct mapped_text text;
    struct slot_table table;
    pthread_rwlock_t doubling; /* of the table; readers use it */
    struct file_role role;     /* of the current reading */
    size_t reading, first;     /* its number, and of its first file */
    bool keeps;                /* its text is stored */
    uint64_t claimed_at_once;  /* slots, by all threads, at most */
    _Atomic bool full;         /* there is no memory for more */
    _Atomic uint64_t compared;

    /* Places of lines that lost their slot to an earlier line, in blocks that
     * have not been printed yet. */
    pthread_mutex_t lock;
    uint64_t *lost;
    size_t lost_count, lost_room;

    uint64_t lines, printed, written; /* written: bytes */
};

/* Some lines, and what becomes of them. */
struct batch_state {
    const struct key_batch *batch;
    uint64_t place; /* of the block's text */
    const char *text;
    struct slot_hash hashes[BATCH_ROOM];
    bool printed[BATCH_ROOM];
    size_t matches;             /* lines whose tag is there: */
    size_t index[BATCH_ROOM];   /* in the batch */
    uint64_t at[BATCH_ROOM];    /* slots */
    uint64_t found[BATCH_ROOM]; /* and what was there */
};

static uint64_t place_of(const struct batch_state *b, size_t i) {
    return b->place +
           (uint64_t)((const char *)b->batch->lines[i].data - b->text);
}

static void add_lost(struct pass_state *p, uint64_t place) {
    pthread_mutex_lock(&p->lock);
    p->lost =
        with_room(p->lost, &p->lost_room, p->lost_count + 1, sizeof *p->lost);
    p->lost[p->lost_count++] = place;
    pthread_mutex_unlock(&p->lock);
}

/* Forget the lines of a block. Returns whether there were any. */
static bool take_lost(struct pass_state *p, uint64_t from, uint64_t to) {
    size_t left = 0;
    pthread_mutex_lock(&p->lock);
    const size_t all = p->lost_count;
    for (size_t i = 0; i < all; i++) {
        p->lost[left] = p->lost[i];
        left += p->lost[i] < from || p->lost[i] >= to;
    }
    p->lost_count = left;
    pthread_mutex_unlock(&p->lock);
    return left < all;
}

/* ---- Lines of a batch ---------------------------------------------------- */

/* Prefetch the cache line of a hash into L2, which waits for more at once. */
static void prefetch_slots(const struct slot_table *t, struct slot_hash hash) {
    __builtin_prefetch((const void *)&t->slots[hash.first], 0, 2);
}

/* The first look: claim a free slot, unless the tag is there. */
static void claim_free_slot(struct pass_state *p, struct batch_state *b,
                            size_t i) {
    struct slot_table *const t = &p->table;
    const struct file_role role = p->role;
    const struct slot_hash hash = b->hashes[i];
    uint64_t at = hash.first, slot;
    for (;; at = next_slot(t, at, hash.tag)) {
        slot = load_slot(t, at);
        if (!slot && role.claims_absent)
            swap_slot(t, at, &slot, hash.tag | place_of(b, i));
        if (!slot || has_tag(slot, hash.tag)) break;
    }
    b->index[b->matches] = i;
    b->at[b->matches] = at;
    b->found[b->matches] = slot;
    b->matches += slot != 0;
    b->printed[i] =
        !slot && (role.claims_absent ? role.prints : role.prints_absent);
}

static void claim_free_slots(struct pass_state *p, struct batch_state *b) {
    enum { SLOTS_AHEAD = 64 };
    struct slot_table *const t = &p->table;
    const size_t n = b->batch->count;
    b->matches = 0;
    for (size_t i = 0; i < n && i < SLOTS_AHEAD; i++)
        prefetch_slots(t, b->hashes[i]);
    for (size_t i = 0; i < n; i++) {
        if (i + SLOTS_AHEAD < n) prefetch_slots(t, b->hashes[i + SLOTS_AHEAD]);
        claim_free_slot(p, b, i);
    }
    if (p->role.claims_absent) t->used += n - b->matches;
}

/* A line whose key has a slot. False if that changed meanwhile. */
static bool claim_from(struct pass_state *p, struct batch_state *b, size_t i,
                       uint64_t at, uint64_t slot) {
    const struct file_role role = p->role;
    const uint64_t place = place_of(b, i), holder = place_in(slot);
    const size_t reading = p->reading;
    const size_t of_holder = p->text.readings[mapped_file_of(&p->text, holder)];
    const bool takes = of_holder == reading
                           ? role.prints && place < holder
                           : role.claims_previous && of_holder + 1 == reading;
    if (!takes) return true;
    if (!swap_slot(&p->table, at, &slot, b->hashes[i].tag | place))
        return false;
    if (of_holder == reading) add_lost(p, holder);
    b->printed[i] = role.prints;
    return true;
}

/* From a slot with its tag on. */
static void compare_line(struct pass_state *p, struct batch_state *b, size_t i,
                         uint64_t at) {
    struct slot_table *const t = &p->table;
    const uint64_t tag = b->hashes[i].tag;
    const calyx_key *const line = &b->batch->lines[i];
    for (;;) {
        uint64_t slot = load_slot(t, at);
        if (!slot && p->role.claims_absent &&
            swap_slot(t, at, &slot, tag | place_of(b, i))) {
            t->used++;
            b->printed[i] = p->role.prints;
            return;
        }
        if (!slot) {
            b->printed[i] = p->role.prints_absent;
            return;
        }
        if (!has_tag(slot, tag) ||
            !mapped_line_is(&p->text, place_in(slot), line))
            at = next_slot(t, at, tag);
        else if (claim_from(p, b, i, at, slot))
            return;
    }
}

static void compare_matches(struct pass_state *p, struct batch_state *b) {
    enum { LINES_AHEAD = 32 };
    const size_t n = b->matches;
    for (size_t i = 0; i < n + LINES_AHEAD; i++) {
        if (i < n)
            mapped_line_prefetch(&p->text, place_in(b->found[i]),
                                 b->batch->lines[b->index[i]].size);
        if (i < LINES_AHEAD) continue;
        const size_t k = i - LINES_AHEAD;
        compare_line(p, b, b->index[k], b->at[k]);
    }
    p->compared += n;
}

static void print_lines(struct text_block *block, const struct batch_state *b) {
    const calyx_key *const lines = b->batch->lines;
    const size_t n = b->batch->count;
    for (size_t i = 0; i < n; i++) {
        if (!b->printed[i]) continue;
        const size_t first = i;
        while (i < n && b->printed[i]) i++;
        const char *const from = lines[first].data;
        const char *const last = lines[i - 1].data;
        block_output_lines(block, from,
                           (size_t)(last - from) + lines[i - 1].size + 1);
        block->selected += i - first;
    }
}

/* ---- Blocks -------------------------------------------------------------- */

/* Where it is; false if its file was shorter when it was mapped. */
static bool find_block(struct pass_state *p, struct text_block *block,
                       uint64_t *place) {
    const struct text_range *const range =
        &p->text.ranges[p->first + block->file_number - 1];
    *place = range->start + block->offset;
    if (p->text.kept) return true;
    const uint64_t size = range->end - range->start;
    if (block->size <= size && block->offset <= size - block->size) return true;
    snprintf(block->trouble, sizeof block->trouble,
             "changed while it was read");
    return false;
}

static bool needs_doubling(const struct pass_state *p) {
    return p->table.used + p->claimed_at_once > p->table.count / 4 * 3 &&
           p->role.claims_absent && !p->full;
}

/* Hash lines again. */
static void hash_places(const void *pass, const uint64_t *slots, size_t n,
                        uint64_t *hashes) {
    const struct pass_state *const p = pass;
    calyx_key lines[BATCH_ROOM];
    lines[0] = (calyx_key){0};
    for (size_t i = 0; i < n; i++)
        lines[i] = mapped_line(&p->text, place_in(slots[i]));
    hash_keys(p->hasher, lines, n, hashes);
}

static void double_table(struct pass_state *p) {
    pthread_rwlock_wrlock(&p->doubling);
    const uint64_t text = p->text.kept ? p->text.kept->end : p->text.size;
    if (needs_doubling(p) &&
        (2 * p->table.count * sizeof(uint64_t) + text > p->memory ||
         !slot_table_double(&p->table, hash_places, p)))
        p->full = true;
    pthread_rwlock_unlock(&p->doubling);
}

/* From here on there is room for a batch. False if there is no memory. */
static bool begin_batch(struct pass_state *p) {
    for (;;) {
        pthread_rwlock_rdlock(&p->doubling);
        if (!needs_doubling(p)) break;
        pthread_rwlock_unlock(&p->doubling);
        double_table(p);
    }
    return !p->full;
}

static void end_batch(struct pass_state *p) {
    pthread_rwlock_unlock(&p->doubling);
}

typedef void visit_lines(struct pass_state *p, struct batch_state *b);

static bool visit_batch(struct pass_state *p, struct batch_state *b,
                        visit_lines *visit) {
    uint64_t hashes[BATCH_ROOM];
    hash_keys(p->hasher, b->batch->lines, b->batch->count, hashes);
    const bool has_room = begin_batch(p);
    if (has_room) {
        for (size_t i = 0; i < b->batch->count; i++)
            b->hashes[i] = slot_hash(&p->table, hashes[i]);
        visit(p, b);
    }
    end_batch(p);
    return has_room;
}

static void visit_block(struct text_block *block, struct key_batch *batch,
                        visit_lines *visit) {
    struct pass_state *const p = block->context;
    struct batch_state b = {.batch = batch, .text = block->text};
    if (!find_block(p, block, &b.place)) return;
    batch_start(batch, block);
    while (batch_next(batch, block)) {
        if (!visit_batch(p, &b, visit)) return;
        block->lines += batch->count;
        print_lines(block, &b);
    }
}

static void claim_lines(struct pass_state *p, struct batch_state *b) {
    claim_free_slots(p, b);
    compare_matches(p, b);
}

static void claim_block(struct text_block *block, struct key_batch *batch) {
    visit_block(block, batch, claim_lines);
}

/* Print the lines that hold their slots. */
static void find_holders(struct pass_state *p, struct batch_state *b) {
    for (size_t i = 0; i < b->batch->count; i++) {
        const uint64_t wanted = b->hashes[i].tag | place_of(b, i);
        uint64_t at = b->hashes[i].first, slot;
        while ((slot = load_slot(&p->table, at)) && slot != wanted)
            at = next_slot(&p->table, at, wanted);
        b->printed[i] = slot != 0;
    }
}

/* Keeping the text pays if there are many keys in it: fewer are fast in the
 * engine, which stores keys only. */
static bool has_few_keys(const struct pass_state *p) {
    enum { LINES_OF_KEY = 8 };
    static const uint64_t looked_at = 64000000; /* bytes before */
    const uint64_t least = p->memory / 16;
    return p->text.kept->end > (least < looked_at ? least : looked_at) &&
           p->table.used < p->lines / LINES_OF_KEY;
}

static bool finish_block(struct text_block *block, struct key_batch *batch) {
    struct pass_state *const p = block->context;
    uint64_t place;
    if (find_block(p, block, &place) &&
        take_lost(p, place, place + block->size)) {
        block->out_size = block->stretch_size = 0;
        block->lines = block->selected = 0;
        visit_block(block, batch, find_holders);
    }
    p->lines += block->lines;
    if (p->keeps && (p->text.kept->full || has_few_keys(p))) p->full = true;
    if (p->full) block->out_size = block->stretch_size = 0;
    p->printed += block->selected;
    p->written += block->out_size + block->stretch_size;
    return !p->full;
}

/* ---- All of it ----------------------------------------------------------- */

/* A kept text may have to be read again by the engine, whose memory fills while
 * the memory of the text is freed. */
static uint64_t memory_of_text(const struct exact_job *job, uint64_t memory) {
    return job->known && job->sum.plain ? memory : memory / 2;
}

/* Slots that all threads may claim before they look for room again. */
static uint64_t claimed_at_once(void) {
    return BATCH_ROOM * (uint64_t)thread_count();
}

/* Keys that the table is made for. */
static uint64_t expected_keys(const struct exact_job *job) {
    return job->stored.lines + 2 * claimed_at_once();
}

static bool fits(const struct exact_job *job) {
    enum { MOST_FILES = 1024 };
    const struct set_operation *const op = &job->op;
    const uint64_t memory = budget();
    const size_t files = files_of_readings(job->readings, job->op.readings);
    if (op->least || op->counts || job->second || op->without_count ||
        !keys_are_whole_lines() || selects_part() || files > MOST_FILES)
        return false;
    const uint64_t text = mapped_text_size(files, job->sum.bytes);
    return text < UINT64_C(1) << PLACE_BITS &&
           text < memory_of_text(job, memory) &&
           slot_table_bytes(expected_keys(job)) <= memory - text;
}

static struct file_role role_of(const struct set_operation *op,
                                size_t reading) {
    const bool stores = stores_keys(op, reading);
    return (struct file_role){.claims_absent = stores,
                              .prints_absent = !stores && op->prints_absent,
                              .claims_previous =
                                  op->of_all_files && reading > 0,
                              .prints = may_print(op, reading)};
}

/* Only lines that claim a slot are looked at again. Readings that claim come
 * before those that do not. */
static void read_files(struct pass_state *p, const struct exact_job *job,
                       struct figures *figures) {
    for (size_t i = 0; i < job->op.readings && !p->full; i++) {
        const struct file_group *const r = &job->readings[i];
        p->reading = i;
        p->role = role_of(p->op, i);
        p->keeps =
            p->text.kept && (p->role.claims_absent || p->role.claims_previous);
        const struct stages stages = {.in_parallel = claim_block,
                                      .in_order = finish_block,
                                      .output = p->op->output,
                                      .kept = p->keeps ? p->text.kept : NULL,
                                      .context = p};
        const struct input_totals totals =
            run_pipeline(&stages, r->count, r->files);
        /* the last block may have ended where the room did */
        if (p->keeps && p->text.kept->full) p->full = true;
        figures->lines += totals.lines;
        figures->bytes += totals.bytes;
        p->first += files_of_readings(r, 1);
    }
    figures->read = figures->bytes;
}

static bool open_text(struct pass_state *p, struct exact_job *job) {
    if (job->known && job->sum.plain)
        return mapped_text_open(&p->text, job->readings, job->op.readings);
    const uint64_t most = UINT64_C(1) << PLACE_BITS;
    const uint64_t room = memory_of_text(job, p->memory);
    return mapped_text_keep(&p->text, job->readings, job->op.readings,
                            &job->kept, room < most ? room : most);
}

static struct forecast cost(const struct exact_job *job,
                            const struct line_counts *counts) {
    (void)job;
    return (struct forecast){.passes = 1, .read = counts->bytes};
}

static bool run(struct exact_job *job, struct figures *figures) {
    struct kept_text *const kept = &job->kept;
    struct pass_state p = {.op = &job->op,
                           .hasher = key_hasher(0),
                           .memory = budget(),
                           .claimed_at_once = claimed_at_once(),
                           .doubling = PTHREAD_RWLOCK_INITIALIZER,
                           .lock = PTHREAD_MUTEX_INITIALIZER};
    *figures = (struct figures){.passes = 1, .partitions = 1};
    expect_spill(); /* it may be needed after all */
    const bool starts =
        open_text(&p, job) && slot_table_open(&p.table, expected_keys(job));
    if (starts) read_files(&p, job, figures);
    const bool done = starts && !p.full;
    if (done) expect_same_files();
    if (!done) output_skip(job->op.output, p.written);
    figures->candidates = p.compared;
    figures->keys = p.table.used;
    figures->printed = p.printed;
    mapped_text_close(&p.text);
    slot_table_close(&p.table);
    calyx_free(p.hasher);
    free(p.lost);
    if (done)
        kept_text_close(kept);
    else if (kept->bytes)
        kept_text_again(kept);
    if (kept->bytes) figures->read = 0; /* the pipe is not read again */
    return done;
}

const struct method one_pass = {.fits = fits, .cost = cost, .run = run};
