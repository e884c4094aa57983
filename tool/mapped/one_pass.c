#include "mapped/one_pass.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "exact/key_hash.h"
#include "input/part_lines.h"
#include "input/source.h"
#include "mapped/mapped_text.h"

/* ---- The table ----------------------------------------------------------- */

/* A slot: 24 bits of the hash above, a place below; 0: free. A key is in the
 * first free slot of a cache line, or of the lines behind it if that is full. A
 * slot is never freed, and always of the same key, so no lock is needed. */
enum { PLACE_BITS = 40, LINE_SLOTS = 8, CLAIMED_AHEAD = 2 * BATCH_ROOM };

struct place_table {
    _Atomic uint64_t *slots;
    uint64_t lines; /* cache lines */
    uint64_t most;  /* slots that may be used before another batch */
    _Atomic uint64_t used;
};

/* 2 of 3 slots are used, if the estimate is right and all keys differ. */
static uint64_t table_lines(uint64_t keys) {
    const uint64_t batches = CLAIMED_AHEAD * (uint64_t)thread_count();
    return (keys + keys / 2 + batches) / LINE_SLOTS + 1;
}

static uint64_t table_size(uint64_t keys) {
    return table_lines(keys) * LINE_SLOTS * sizeof(uint64_t);
}

static bool table_open(struct place_table *t, uint64_t keys) {
    const uint64_t size = table_size(keys);
    *t = (struct place_table){.lines = table_lines(keys)};
    t->most =
        t->lines * (LINE_SLOTS - 1) - BATCH_ROOM * (uint64_t)thread_count();
    void *const slots =
        mmap(NULL, size, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (slots == MAP_FAILED) return false;
    if (size >= (1u << 22)) madvise(slots, size, MADV_HUGEPAGE);
    t->slots = slots;
    return true;
}

static void table_close(struct place_table *t) {
    if (t->slots)
        munmap((void *)t->slots, t->lines * LINE_SLOTS * sizeof *t->slots);
}

static uint64_t first_place_slot(const struct place_table *t, uint64_t hash) {
    return LINE_SLOTS * (uint64_t)((unsigned __int128)hash * t->lines >> 64);
}

static uint64_t next_place_slot(const struct place_table *t, uint64_t at) {
    return at + 1 < t->lines * LINE_SLOTS ? at + 1 : 0;
}

static uint64_t load_place(const struct place_table *t, uint64_t at) {
    return atomic_load_explicit(&t->slots[at], memory_order_relaxed);
}

/* False if it changed; then `was` is what it is. */
static bool swap_place(struct place_table *t, uint64_t at, uint64_t *was,
                       uint64_t slot) {
    return atomic_compare_exchange_strong_explicit(
        &t->slots[at], was, slot, memory_order_relaxed, memory_order_relaxed);
}

static uint64_t slot_for(uint64_t hash, uint64_t place) {
    return hash << PLACE_BITS | place;
}

static bool has_tag(uint64_t slot, uint64_t hash) {
    return (slot ^ hash << PLACE_BITS) >> PLACE_BITS == 0;
}

static uint64_t place_in(uint64_t slot) {
    return slot & ((UINT64_C(1) << PLACE_BITS) - 1);
}

/* ---- The pass ------------------------------------------------------------ */

/* What the lines of a file do. */
struct file_role {
    bool claims_absent;   /* a key that is not there yet */
    bool prints_absent;   /* and if it does not claim it */
    bool claims_previous; /* a key of the file before */
    bool prints;          /* a line that claims its key */
};

struct pass_state {
    const struct rule *rule;
    calyx_filter *hasher;
    struct mapped_text text;
    struct place_table table;
    struct file_role role;           /* of the current reading */
    const struct mapped_file *files; /* of it */
    _Atomic bool full;               /* the table is */
    _Atomic uint64_t compared;

    /* Places of lines that lost their slot to an earlier line, in blocks that
     * have not been printed yet. */
    pthread_mutex_t lock;
    uint64_t *lost;
    size_t lost_count, lost_room;

    uint64_t printed, written; /* lines, bytes */
};

/* Some lines, and what becomes of them. */
struct batch_state {
    const struct key_batch *batch;
    uint64_t place; /* of the block's text */
    const char *text;
    uint64_t hashes[BATCH_ROOM];
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

/* Forget those of a block. Returns whether there were any. */
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
static void prefetch_slots(const struct place_table *t, uint64_t hash) {
    __builtin_prefetch((const void *)&t->slots[first_place_slot(t, hash)], 0,
                       2);
}

/* When that is there: if it is full, prefetch the next. */
static void prefetch_overflow(const struct place_table *t, uint64_t hash) {
    const uint64_t last = first_place_slot(t, hash) + LINE_SLOTS - 1;
    __builtin_prefetch(
        (const void *)&t->slots[last + (load_place(t, last) > 0)]);
}

/* The first look: claim a free slot, unless the tag is there. */
static void claim_free_slot(struct pass_state *p, struct batch_state *b,
                            size_t i) {
    struct place_table *const t = &p->table;
    const struct file_role role = p->role;
    const uint64_t hash = b->hashes[i];
    uint64_t at = first_place_slot(t, hash), slot;
    for (;; at = next_place_slot(t, at)) {
        slot = load_place(t, at);
        if (!slot && role.claims_absent)
            swap_place(t, at, &slot, slot_for(hash, place_of(b, i)));
        if (!slot || has_tag(slot, hash)) break;
    }
    b->index[b->matches] = i;
    b->at[b->matches] = at;
    b->found[b->matches] = slot;
    b->matches += slot != 0;
    b->printed[i] =
        !slot && (role.claims_absent ? role.prints : role.prints_absent);
}

static void claim_free_slots(struct pass_state *p, struct batch_state *b) {
    enum { SLOTS_AHEAD = 64, OVERFLOW_AHEAD = 10 };
    struct place_table *const t = &p->table;
    const size_t n = b->batch->count;
    b->matches = 0;
    for (size_t i = 0; i < n && i < SLOTS_AHEAD; i++)
        prefetch_slots(t, b->hashes[i]);
    for (size_t i = 0; i < n; i++) {
        if (i + SLOTS_AHEAD < n) prefetch_slots(t, b->hashes[i + SLOTS_AHEAD]);
        if (i + OVERFLOW_AHEAD < n)
            prefetch_overflow(t, b->hashes[i + OVERFLOW_AHEAD]);
        claim_free_slot(p, b, i);
    }
    if (p->role.claims_absent) t->used += n - b->matches;
}

/* A line whose key has a slot. False if that changed meanwhile. */
static bool claim_from(struct pass_state *p, struct batch_state *b, size_t i,
                       uint64_t at, uint64_t slot) {
    const struct file_role role = p->role;
    const uint64_t place = place_of(b, i), holder = place_in(slot);
    const size_t reading = p->files->reading;
    const size_t of_holder = mapped_file_of(&p->text, holder)->reading;
    const bool takes = of_holder == reading
                           ? role.prints && place < holder
                           : role.claims_previous && of_holder + 1 == reading;
    if (!takes) return true;
    if (!swap_place(&p->table, at, &slot, slot_for(b->hashes[i], place)))
        return false;
    if (of_holder == reading) add_lost(p, holder);
    b->printed[i] = role.prints;
    return true;
}

/* From a slot with its tag on. */
static void compare_line(struct pass_state *p, struct batch_state *b, size_t i,
                         uint64_t at) {
    struct place_table *const t = &p->table;
    const uint64_t hash = b->hashes[i];
    const calyx_key *const line = &b->batch->lines[i];
    for (;;) {
        uint64_t slot = load_place(t, at);
        if (!slot && p->role.claims_absent &&
            swap_place(t, at, &slot, slot_for(hash, place_of(b, i)))) {
            t->used++;
            b->printed[i] = p->role.prints;
            return;
        }
        if (!slot) {
            b->printed[i] = p->role.prints_absent;
            return;
        }
        if (!has_tag(slot, hash) ||
            !mapped_line_is(&p->text, place_in(slot), line))
            at = next_place_slot(t, at);
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
    const struct mapped_file *const file = &p->files[block->file_number - 1];
    *place = file->start + block->offset;
    if (block->size <= file->end - file->start &&
        block->offset <= file->end - file->start - block->size)
        return true;
    snprintf(block->trouble, sizeof block->trouble,
             "changed while it was read");
    return false;
}

typedef void visit_lines(struct pass_state *p, struct batch_state *b);

static void visit_block(struct text_block *block, struct key_batch *batch,
                        visit_lines *visit) {
    struct pass_state *const p = block->context;
    struct batch_state b = {.batch = batch, .text = block->text};
    if (!find_block(p, block, &b.place)) return;
    batch_start(batch, block);
    while (batch_next(batch, block)) {
        if (p->table.used > p->table.most) p->full = true;
        if (p->full) return;
        hash_keys(p->hasher, batch->lines, batch->count, b.hashes);
        visit(p, &b);
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
        const uint64_t hash = b->hashes[i];
        const uint64_t wanted = slot_for(hash, place_of(b, i));
        uint64_t at = first_place_slot(&p->table, hash), slot;
        while ((slot = load_place(&p->table, at)) && slot != wanted)
            at = next_place_slot(&p->table, at);
        b->printed[i] = slot != 0;
    }
}

static bool finish_block(struct text_block *block, struct key_batch *batch) {
    struct pass_state *const p = block->context;
    const uint64_t place =
        p->files[block->file_number - 1].start + block->offset;
    if (take_lost(p, place, place + block->size)) {
        block->out_size = block->stretch_size = 0;
        block->lines = block->selected = 0;
        visit_block(block, batch, find_holders);
    }
    if (p->full) block->out_size = block->stretch_size = 0;
    p->printed += block->selected;
    p->written += block->out_size + block->stretch_size;
    return !p->full;
}

/* ---- All of it ----------------------------------------------------------- */

bool one_pass_fits(const struct rule *rule, const struct engine_plan *plan,
                   uint64_t memory) {
    enum { MOST_FILES = 1024 };
    size_t files = 0;
    for (size_t i = 0; i < plan->reading_count; i++)
        files += (size_t)plan->readings[i].count;
    if (plan->second || rule->drop || !keys_are_whole_lines() ||
        selects_part() || files > MOST_FILES)
        return false;
    const uint64_t text = mapped_text_size(files, plan->sum.bytes);
    return text < UINT64_C(1) << PLACE_BITS && text < memory &&
           table_size(plan->stored_lines) <= memory - text;
}

static struct file_role role_of(const struct rule *rule, size_t reading) {
    const bool inserts = rule->inserts(reading);
    return (struct file_role){
        .claims_absent = inserts,
        .prints_absent = !inserts && rule->absent(reading) == TO_OUTPUT,
        .claims_previous = rule->of_all_files && reading > 0,
        .prints = rule->may_print(reading)};
}

static void read_files(struct pass_state *p, const struct engine_plan *plan,
                       struct figures *figures) {
    const struct stages stages = {.in_parallel = claim_block,
                                  .in_order = finish_block,
                                  .output = p->rule->output,
                                  .context = p};
    p->files = p->text.files;
    for (size_t i = 0; i < plan->reading_count && !p->full; i++) {
        const struct reading *const r = &plan->readings[i];
        p->role = role_of(p->rule, i);
        const struct input_totals totals =
            run_pipeline(&stages, r->count, r->files);
        figures->lines += totals.lines;
        figures->bytes += totals.bytes;
        p->files += r->count;
    }
    figures->read = figures->bytes;
}

bool one_pass(const struct rule *rule, const struct engine_plan *plan,
              struct figures *figures) {
    struct pass_state p = {.rule = rule,
                           .hasher = key_hasher(0),
                           .lock = PTHREAD_MUTEX_INITIALIZER};
    *figures = (struct figures){.passes = 1, .partitions = 1};
    const bool starts =
        mapped_text_open(&p.text, plan->readings, plan->reading_count) &&
        table_open(&p.table, plan->stored_lines);
    if (starts) read_files(&p, plan, figures);
    const bool done = starts && !p.full;
    if (done) expect_same_files();
    if (!done) output_skip(rule->output, p.written);
    figures->candidates = p.compared;
    figures->keys = p.table.used;
    figures->printed = p.printed;
    mapped_text_close(&p.text);
    table_close(&p.table);
    calyx_free(p.hasher);
    free(p.lost);
    return done;
}
