#include "exact/engine.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "exact/set.h"
#include "exact/spill.h"

enum {
    MOST_SPILLS = 128,
    MOST_RUNS = 128, /* then they are merged into one */
    RUN_BUFFER = 1 << 16,
    MOST_PARTS = 6,
};

/* Where lines go: the output, or runs until all are there. */
struct lane {
    struct output *output;
    char *bytes; /* for the output */
    size_t size, room;
    struct spill **runs;
    size_t run_count;
    uint64_t printed;
};

static struct {
    const struct rule *rule;
    uint64_t memory;
    struct figures figures;
    struct lane lanes[2];

    uint64_t sequence; /* of the next line */
    uint64_t *starts;  /* of each file: sequence number of its first line */
    uint64_t file, file_room;
    unsigned part, parts; /* of the keys, that are read for; parts: 0, all */

    /* Rounds to come: the last first, so that files go soon. From the first
     * round on, these, the lanes and the figures are for who holds the lock. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct pending {
        struct spill *spill;
        unsigned level;
    } * pending;
    size_t pending_count, busy; /* busy: rounds at work */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER,
         .changed = PTHREAD_COND_INITIALIZER};

/* A round, which one thread works on. */
struct partition {
    uint64_t memory;
    struct key_set *keys;
    unsigned level;
    calyx_filter *hasher, *spilled_keys; /* spilled_keys: a filter */
    bool full, direct;
    struct spill *runs[2]; /* for each lane; NULL: none yet */
    struct spill *spills[MOST_SPILLS];
    unsigned spill_count;
};
static struct partition first_partition;

/* ---- Hashes ------------------------------------------------------------- */

static uint64_t seed;
static bool poor_hash; /* all keys get one of three hashes: for tests */

static calyx_options hash_options(unsigned level) {
    if (!seed) {
        if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
            fail_os("the system", "give random bytes");
        seed |= 1;
        poor_hash = getenv("CALYX_TEST_POOR_HASH") != NULL;
    }
    return (calyx_options){.hash = "xxh3", .seed = seed + 2 * level};
}

static calyx_filter *make(const calyx_options *want) {
    calyx_error why;
    calyx_filter *f;
    if (calyx_new(want, &f, &why) != CALYX_OK) fail_with(&why);
    return f;
}

static calyx_filter *make_hasher(unsigned level) {
    calyx_options want = hash_options(level);
    return make(&want);
}

static void hash_keys(const calyx_filter *hasher, const calyx_key *keys,
                      size_t n, uint64_t *hashes) {
    calyx_hash_many(hasher, keys, n, hashes);
    if (!poor_hash) return;
    for (size_t i = 0; i < n; i++)
        hashes[i] = hashes[i] % 3 * UINT64_C(0x5555555555555555);
}

/* The first round hashes as the sieve does. Made before there are threads: two
 * that made it at once would hash with different seeds. */
static calyx_filter *first_hasher;

static void make_first_hasher(void) {
    if (!first_hasher) first_hasher = make_hasher(0);
}

calyx_options prefilter_options(void) {
    make_first_hasher();
    return hash_options(0);
}

void prefilter_hashes(const calyx_key *keys, size_t n, uint64_t *hashes) {
    hash_keys(first_hasher, keys, n, hashes);
}

/* ---- Shares of the memory ------------------------------------------------ */

static uint64_t memory_of_keys(uint64_t memory) {
    return memory / 8 * (all.rule && all.rule->absent ? 6 : 7);
}

/* What the exact set takes for them: slots are doubled, so there are 3 a key at
 * most, and 2 on average. */
static uint64_t kept_bytes(const struct sample *of) {
    const uint64_t beside = all.rule->tallies ? sizeof(struct tally) : 0;
    return of->bytes + of->lines * (sizeof(struct entry) + beside + 4 + 2 * 8);
}

/* To know which of the later lines may have been put off. */
static uint64_t memory_of_filter(uint64_t memory) {
    return memory < 8192 ? 1024 : memory / 8;
}

static size_t memory_of_spill(uint64_t memory, unsigned spills) {
    const uint64_t share = memory / 8 / spills;
    return share < 4096 ? 4096 : share > 1 << 18 ? 1 << 18 : (size_t)share;
}

/* Enough that each fits, with some to spare; a power of two. */
static unsigned spills_for(uint64_t memory, uint64_t bytes) {
    unsigned n = 8;
    while (n < MOST_SPILLS && n * memory_of_keys(memory) / 4 < bytes) n *= 2;
    return bytes ? n : 32;
}

/* ---- Lines out ----------------------------------------------------------- */

static void flush(struct lane *lane) {
    if (lane->size) output_write(lane->output, lane->bytes, lane->size);
    lane->size = 0;
}

static void put_text(struct lane *lane, const void *bytes, size_t size) {
    if (size > lane->room - lane->size) flush(lane);
    if (size > lane->room) {
        output_write(lane->output, bytes, size);
        return;
    }
    if (size) memcpy(lane->bytes + lane->size, bytes, size);
    lane->size += size;
}

static void print(struct lane *lane, const calyx_key *line, uint64_t count) {
    const char end = record_end();
    lane->printed++;
    if (count) {
        char text[24];
        put_text(lane, text,
                 (size_t)snprintf(text, sizeof text, "%" PRIu64 "\t", count));
    }
    put_text(lane, line->data, line->size);
    put_text(lane, &end, 1);
}

static void put_line(struct partition *partition, enum destination destination,
                     const calyx_key *line, uint64_t sequence, uint64_t count) {
    if (destination == NOT_PRINTED) return;
    if (all.rule->marks) {
        if (destination == TO_SECOND) marks_set(all.rule->marks, sequence);
        return;
    }
    struct lane *const lane = &all.lanes[destination - TO_OUTPUT];
    struct spill **const run = &partition->runs[destination - TO_OUTPUT];
    if (!lane->output) return;
    if (partition->direct) {
        print(lane, line, count);
        return;
    }
    if (!*run) *run = spill_new(RUN_BUFFER);
    spill_put(*run, &(struct record){
                        .sequence = sequence, .number = count, .key = *line});
}

/* ---- Merging runs -------------------------------------------------------- */

enum { AT_ONCE = 64 };
struct reader {
    struct spill *run;
    struct record records[AT_ONCE];
    size_t next, count;
};

static const struct record *top(const struct reader *r) {
    return &r->records[r->next];
}

static bool read_on(struct reader *r) {
    r->next++;
    if (r->next < r->count) return true;
    r->next = 0;
    r->count = spill_read(r->run, r->records, AT_ONCE);
    return r->count > 0;
}

/* The heap: no reader stands before its parent. */
static void sink(struct reader **heap, size_t count, size_t at) {
    struct reader *const r = heap[at];
    const uint64_t sequence = top(r)->sequence;
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count &&
            top(heap[child + 1])->sequence < top(heap[child])->sequence)
            child++;
        if (sequence < top(heap[child])->sequence) break;
        heap[at] = heap[child];
    }
    heap[at] = r;
}

/* To the output, or to another run. */
static void merge(struct lane *lane, struct spill *to) {
    struct reader *heap[MOST_RUNS];
    size_t count = 0;
    for (size_t i = 0; i < lane->run_count; i++) {
        struct reader *const r = alloc_memory(sizeof *r);
        r->run = lane->runs[i];
        r->next = r->count = 0;
        if (read_on(r)) heap[count++] = r;
    }
    for (size_t i = count; i-- > 0;) sink(heap, count, i);
    while (count > 0) {
        struct reader *const r = heap[0];
        /* neighbours often stand in one run */
        const struct record *const record = top(r);
        if (to)
            spill_put(to, record);
        else
            print(lane, &record->key, record->number);
        if (!read_on(r)) {
            spill_close(r->run);
            free(r);
            heap[0] = heap[--count];
        }
        if (count) sink(heap, count, 0);
    }
    lane->run_count = 0;
}

static void end_run(struct lane *lane, struct spill *run) {
    const uint64_t share = all.memory / 4 / MOST_RUNS;
    spill_rewind(run, share < 1 << 14   ? 1 << 14
                      : share > 1 << 18 ? 1 << 18
                                        : (size_t)share);
    lane->runs[lane->run_count++] = run;
}

static void keep_run(struct lane *lane, struct spill *run) {
    if (!run) return;
    end_run(lane, run);
    if (lane->run_count < MOST_RUNS) return;
    struct spill *const one = spill_new(RUN_BUFFER);
    merge(lane, one);
    end_run(lane, one);
}

/* ---- A record in a round ------------------------------------------------- */

/* What is printed from now on stands behind lines that are not known yet. */
static void begin_spilling(struct partition *partition) {
    partition->full = true;
    partition->direct = false;
    if (all.rule->absent) {
        calyx_options want = hash_options(partition->level);
        want.bits = 8 * memory_of_filter(partition->memory);
        want.capacity = want.bits / 10;
        partition->spilled_keys = make(&want);
    }
    for (unsigned i = 0; i < partition->spill_count; i++)
        partition->spills[i] = spill_new(
            memory_of_spill(partition->memory, partition->spill_count));
}

static void spill_record(struct partition *partition, uint64_t hash,
                         const struct record *r) {
    if (!partition->full) begin_spilling(partition);
    const unsigned at = (unsigned)(hash >> 57) & (partition->spill_count - 1);
    spill_put(partition->spills[at], r);
}

/* All lines before were of files that are read whole; so was their key put
 * off, or is it new? */
static bool may_be_spilled(const struct partition *partition, uint64_t hash) {
    bool found;
    return partition->full &&
           calyx_has_hashes(partition->spilled_keys, &hash, 1, &found);
}

static void meet(struct partition *partition, uint64_t hash,
                 const struct record *r, uint64_t file) {
    const struct rule *const rule = all.rule;
    struct entry *e = set_find(partition->keys, &r->key, hash);
    const bool fresh = !e;
    if (!e && !rule->takes(file)) {
        if (may_be_spilled(partition, hash))
            spill_record(partition, hash, r);
        else
            put_line(partition, rule->absent(file), &r->line, r->sequence, 0);
        return;
    }
    if (!e) {
        const bool keeps_line = rule->keeps && r->has_line;
        if (!partition->full)
            e = set_insert(partition->keys, &r->key, hash,
                           keeps_line ? &r->line : NULL);
        if (!e) {
            spill_record(partition, hash, r);
            if (partition->spilled_keys)
                calyx_add_hashes(partition->spilled_keys, &hash, 1, NULL, NULL);
            return;
        }
    }
    struct tally *const tally = set_payload(partition->keys, e);
    if (fresh && rule->tallies) tally->first = r->sequence;
    const enum destination destination = rule->meet(tally, fresh, file);
    put_line(partition, destination, &r->line, r->sequence,
             rule->counts && destination == TO_OUTPUT ? tally->count : 0);
}

/* Memory is asked for before it is needed. */
enum { AHEAD_SLOT = 24, AHEAD_ENTRY = 10 };

static void fetch(const struct key_set *keys, uint64_t slot, uint64_t entry) {
    set_prefetch_slot(keys, slot);
    set_prefetch_entry(keys, entry);
}

static struct key_set *new_keys(uint64_t memory) {
    return set_new(memory_of_keys(memory),
                   all.rule->tallies ? sizeof(struct tally) : 0);
}

/* ---- Rounds -------------------------------------------------------------- */

static void start_partition(struct partition *partition, unsigned level,
                            uint64_t expected) {
    partition->level = level;
    partition->full = false;
    partition->spill_count = spills_for(partition->memory, expected);
}

static void judge(struct partition *partition) {
    for (const struct entry *e = NULL; (e = set_next(partition->keys, e));) {
        const struct tally *const tally = set_payload(partition->keys, e);
        if (!all.rule->keeps(tally)) continue;
        const calyx_key line = set_line(partition->keys, e);
        put_line(partition, TO_OUTPUT, &line, tally->first,
                 all.rule->counts ? tally->count : 0);
    }
}

static void leave_spills(struct partition *partition) {
    all.pending = resize_memory(all.pending,
                                (all.pending_count + partition->spill_count) *
                                    sizeof *all.pending);
    for (unsigned i = 0; i < partition->spill_count; i++) {
        if (!spill_size(partition->spills[i])) {
            spill_close(partition->spills[i]);
            continue;
        }
        spill_rewind(partition->spills[i], 1 << 18);
        all.pending[all.pending_count++] =
            (struct pending){partition->spills[i], partition->level + 1};
    }
}

static void end_partition(struct partition *partition) {
    if (all.rule->keeps) judge(partition);
    calyx_free(partition->spilled_keys);
    partition->spilled_keys = NULL;
    pthread_mutex_lock(&all.lock);
    all.figures.partitions++;
    all.figures.keys += set_count(partition->keys);
    if (partition->full) leave_spills(partition);
    for (int i = 0; i < 2; i++) {
        keep_run(&all.lanes[i], partition->runs[i]);
        partition->runs[i] = NULL;
    }
    pthread_mutex_unlock(&all.lock);
}

/* The file of a record; those asked for come in order. */
static uint64_t file_of(uint64_t sequence, uint64_t file) {
    while (file + 1 < all.file && all.starts[file + 1] <= sequence) file++;
    return file;
}

static void read_spill(struct partition *partition, struct spill *spill) {
    enum { BATCH_SIZE = 512 };
    struct record records[BATCH_SIZE];
    calyx_key keys[BATCH_SIZE];
    uint64_t hashes[BATCH_SIZE], file = 0;
    for (size_t n; (n = spill_read(spill, records, BATCH_SIZE)) > 0;) {
        for (size_t i = 0; i < n; i++) keys[i] = records[i].key;
        hash_keys(partition->hasher, keys, n, hashes);
        for (size_t i = 0; i < n; i++) {
            const size_t slot = i + AHEAD_SLOT, entry = i + AHEAD_ENTRY;
            fetch(partition->keys, hashes[slot < n ? slot : n - 1],
                  hashes[entry < n ? entry : n - 1]);
            file = file_of(records[i].sequence, file);
            meet(partition, hashes[i], &records[i], file);
        }
    }
}

/* The next round, or false when none is left, nor any that could leave more. */
static bool take_pending(struct pending *next) {
    pthread_mutex_lock(&all.lock);
    while (!all.pending_count && all.busy)
        pthread_cond_wait(&all.changed, &all.lock);
    const bool found = all.pending_count > 0;
    if (found) {
        *next = all.pending[--all.pending_count];
        all.busy++;
    }
    pthread_mutex_unlock(&all.lock);
    return found;
}

static void end_pending(void) {
    pthread_mutex_lock(&all.lock);
    all.busy--;
    pthread_cond_broadcast(&all.changed);
    pthread_mutex_unlock(&all.lock);
}

static void *work_on_pending(void *memory) {
    struct partition *const partition = alloc_memory(sizeof *partition);
    *partition = (struct partition){.memory = *(const uint64_t *)memory};
    partition->keys = new_keys(partition->memory);
    for (struct pending next; take_pending(&next);) {
        set_clear(partition->keys, memory_of_keys(partition->memory));
        set_expect(partition->keys, spill_records(next.spill));
        partition->hasher = make_hasher(next.level);
        start_partition(partition, next.level, spill_size(next.spill));
        read_spill(partition, next.spill);
        spill_close(next.spill);
        end_partition(partition);
        calyx_free(partition->hasher);
        end_pending();
    }
    set_free(partition->keys);
    free(partition);
    return NULL;
}

/* More threads would leave each too little memory for one spill. */
static void run_pending_partitions(void) {
    enum { MOST_WORKERS = 2 };
    if (!all.pending_count) return;
    const size_t threads = thread_count();
    const size_t workers = threads < MOST_WORKERS ? threads : MOST_WORKERS;
    uint64_t memory = all.memory / workers;
    pthread_t other;
    if (workers == 2) {
        const int failed =
            pthread_create(&other, NULL, work_on_pending, &memory);
        if (failed) fail("cannot start a thread: %s", strerror(failed));
    }
    work_on_pending(&memory);
    if (workers == 2) pthread_join(other, NULL);
}

/* ---- The first round: files ---------------------------------------------- */

static const calyx_filter *prefilter;
static calyx_filter *passed_keys;

static bool stands_in(const struct text_block *block, const void *bytes) {
    const uintptr_t at = (uintptr_t)bytes, text = (uintptr_t)block->text;
    return at >= text && at <= text + block->size;
}

/* Keys that stand elsewhere are copied; they are offsets until all are there,
 * since the bytes may move. */
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
    if (stands_in(block, key->data)) return;
    if (key->size > block->key_room - block->key_size) {
        block->key_room = 2 * block->key_room + key->size + 4096;
        block->key_bytes = resize_memory(block->key_bytes, block->key_room);
    }
    if (key->size)
        memcpy(block->key_bytes + block->key_size, key->data, key->size);
    c->key.data = NULL;
    block->key_size += key->size;
}

static bool is_of_part(uint64_t hash) {
    return all.parts < 2 ||
           ((hash >> 32 & UINT16_MAX) * all.parts) >> 16 == all.part;
}

/* The keys of a batch that are of interest: their numbers in it, and hashes. */
static size_t choose(const struct key_batch *batch, size_t *chosen,
                     uint64_t *hashes) {
    bool found[BATCH_ROOM];
    size_t n = 0;
    prefilter_hashes(batch->keys, batch->count, hashes);
    for (size_t i = 0; i < batch->count; i++) {
        chosen[n] = i;
        hashes[n] = hashes[i];
        n += is_of_part(hashes[i]);
    }
    if (!prefilter) return n;
    calyx_has_hashes(prefilter, hashes, n, found);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        chosen[kept] = chosen[i];
        hashes[kept] = hashes[i];
        kept += found[i];
    }
    return kept;
}

static void in_parallel(struct text_block *block, struct key_batch *batch) {
    uint64_t hashes[BATCH_ROOM];
    size_t chosen[BATCH_ROOM];
    bool dropped[BATCH_ROOM] = {false};
    const bool drops = all.rule->drop && all.rule->prints(all.file - 1);
    batch_start(batch, block);
    while (batch_next(batch, block)) {
        const size_t n = choose(batch, chosen, hashes);
        if (drops) {
            memset(dropped, 0, sizeof dropped);
            all.rule->drop(batch->keys, batch->count, dropped);
        }
        for (size_t i = 0; i < n; i++) {
            const size_t at = chosen[i];
            if (!dropped[at])
                add_candidate(block, hashes[i], block->lines + at,
                              &batch->keys[at], &batch->lines[at]);
        }
        if (all.rule->marks)
            note_ends(block, batch);
        else
            block->lines += batch->count;
    }
    const char *made = block->key_bytes;
    for (size_t i = 0; i < block->candidate_count; i++) {
        struct candidate *const c = &block->candidates[i];
        if (c->key.data) continue;
        c->key.data = made;
        made += c->key.size;
    }
}

static void add_passed(const struct candidate *c, size_t n) {
    uint64_t hashes[BATCH];
    for (size_t at = 0, some; at < n; at += some) {
        some = n - at < BATCH ? n - at : BATCH;
        for (size_t i = 0; i < some; i++) hashes[i] = c[at + i].hash;
        calyx_add_hashes(passed_keys, hashes, some, NULL, NULL);
    }
}

static bool in_order(struct text_block *block, struct key_batch *batch) {
    (void)batch;
    const struct candidate *const c = block->candidates;
    const size_t n = block->candidate_count;
    const bool prints = !all.rule->marks && all.rule->prints(all.file - 1);
    if (all.rule->marks &&
        all.sequence + block->lines > marks_lines(all.rule->marks))
        fail_at(block->file, 0, "changed while it was read");
    for (size_t i = 0; i < n; i++) {
        const size_t slot = i + AHEAD_SLOT, entry = i + AHEAD_ENTRY;
        fetch(first_partition.keys, c[slot < n ? slot : n - 1].hash,
              c[entry < n ? entry : n - 1].hash);
        const struct record record = {
            .sequence = all.sequence + c[i].number,
            .key = c[i].key,
            .line = c[i].line,
            .has_line = prints && (c[i].key.data != c[i].line.data ||
                                   c[i].key.size != c[i].line.size),
        };
        meet(&first_partition, c[i].hash, &record, all.file - 1);
    }
    if (passed_keys) add_passed(c, n);
    all.sequence += block->lines;
    all.figures.candidates += n;
    for (int i = 0; i < 2; i++) flush(&all.lanes[i]);
    return true;
}

void engine_start(const struct rule *rule, uint64_t memory,
                  const struct sample *expected) {
    enum { ROOM = 1 << 17 };
    expect_spill();
    make_first_hasher();
    all.rule = rule;
    all.memory = memory;
    first_partition = (struct partition){.memory = memory, .direct = true};
    for (int i = 0; i < 2; i++) {
        struct lane *const lane = &all.lanes[i];
        lane->output = i == 0 ? rule->output : rule->second;
        if (rule->marks) lane->output = NULL;
        if (!lane->output) continue;
        lane->room = ROOM;
        lane->bytes = alloc_memory(ROOM);
        lane->runs = alloc_memory(MOST_RUNS * sizeof(struct spill *));
    }
    first_partition.keys = new_keys(memory);
    set_expect(first_partition.keys, expected->lines);
    start_partition(&first_partition, 0, expected->bytes);
}

void engine_read(int count, char **files, const calyx_filter *through,
                 calyx_filter *passed) {
    if (all.file == all.file_room) {
        all.file_room = 2 * all.file_room + 8;
        all.starts =
            resize_memory(all.starts, all.file_room * sizeof *all.starts);
    }
    all.starts[all.file++] = all.sequence;
    prefilter = through;
    passed_keys = passed;
    const struct stages stages = {.in_parallel = in_parallel,
                                  .in_order = in_order};
    const struct input_totals totals = run_pipeline(&stages, count, files);
    all.figures.lines += totals.lines;
    all.figures.bytes += totals.bytes;
}

/* ---- In parts, with marks ------------------------------------------------ */

static bool visit_and_print(struct text_block *block, struct key_batch *batch) {
    in_order(block, batch);
    if (!first_partition.full && !all.pending_count)
        marks_print_block(all.rule->marks, block);
    return true;
}

/* To put keys off costs about as much as to read the files six times: they
 * are written, read, hashed again, and then the files are read to print them.
 */
static unsigned parts_for(const struct sample *expected) {
    const uint64_t kept = kept_bytes(expected);
    const uint64_t parts = kept / memory_of_keys(all.memory) + 1;
    return parts > MOST_PARTS ? 1 : (unsigned)parts;
}

unsigned engine_read_in_passes(int count, char **files,
                               const calyx_filter *through,
                               const struct sample *expected) {
    prefilter = through;
    all.file = 1;
    all.parts = parts_for(expected);
    for (all.part = 0;; all.part++) {
        const bool last = all.part + 1 == all.parts;
        const struct stages stages = {.in_parallel = in_parallel,
                                      .in_order =
                                          last ? visit_and_print : in_order,
                                      .output = all.rule->output};
        set_expect(first_partition.keys, expected->lines / all.parts);
        all.sequence = 0;
        run_pipeline(&stages, count, files);
        if (last) return all.parts;
        end_partition(&first_partition);
        set_clear(first_partition.keys, memory_of_keys(all.memory));
        start_partition(&first_partition, 0, expected->bytes / all.parts);
    }
}

struct figures engine_end(void) {
    end_partition(&first_partition);
    set_free(first_partition.keys);
    run_pending_partitions();
    for (int i = 0; i < 2; i++) {
        struct lane *const lane = &all.lanes[i];
        if (!lane->output) continue;
        merge(lane, NULL);
        flush(lane);
        free(lane->bytes);
        free(lane->runs);
    }
    all.figures.printed = all.lanes[0].printed;
    all.figures.second = all.lanes[1].printed;
    all.figures.spilled = spill_written();
    free(all.starts);
    free(all.pending);
    calyx_free(first_hasher);
    first_hasher = NULL;
    return all.figures;
}

/* ---- --dry-run ------------------------------------------------------------
 */

/* How many lines a sieve lets through is known when it is made. So with one,
 * what can be told is how many may be let through. */
static void print_spills(const struct engine_plan *o, uint64_t memory) {
    char text[TEXT_SIZE];
    const uint64_t kept = kept_bytes(o->prefilter ? &o->prefiltered : &o->sum);
    const uint64_t room = memory_of_keys(budget_without(o->prefilter)) *
                          (o->parts ? MOST_PARTS : 1);
    if (kept <= room) {
        printf("spills         none\n");
        return;
    }
    printf("spills         ");
    if (o->prefilter)
        printf("none if at most %.0f %% of these %s, else ",
               100 * (double)room / (double)kept, o->what_remains);
    printf("up to %u in %s\n", spills_for(memory, o->sum.bytes),
           spill_folder());
    /* what is put off is written once, and what is printed then, too */
    const uint64_t most = o->parts ? o->sum.bytes : 2 * o->sum.bytes;
    printf("temporary      up to %s%s\n", size_text(most, text),
           o->prefilter ? ", if all do" : "");
}

void print_plan(const struct engine_plan *o) {
    char text[TEXT_SIZE], more[TEXT_SIZE];
    const uint64_t memory = budget();
    all.rule = o->rule;
    printf("memory         %s\n", size_text(memory, text));
    if (!o->known) {
        printf("input          a pipe, of unknown size\n"
               "passes         1\n"
               "spills         none if the keys fit, else %u in %s\n",
               spills_for(memory, 0), spill_folder());
        return;
    }
    printf("input          about %s lines, %s\n",
           count_text(o->sum.lines, text), size_text(o->sum.bytes, more));
    printf("passes         %d", o->passes);
    if (o->parts) printf(" to %d", o->passes + MOST_PARTS - 1);
    printf("\n");
    if (o->prefilter)
        printf("filter         of about %s lines, first, in %s\n",
               count_text(o->prefiltered.lines, text),
               size_text(o->prefilter, more));
    print_spills(o, memory);
    /* a line costs about 100 ns beside its reading */
    printf("expected time  about %.1f s\n",
           o->sum.seconds * o->passes + 1e-7 * (double)o->sum.lines);
}
