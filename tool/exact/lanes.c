/*
 * Lines out: to an output directly, or to runs. A run is a spill of lines in
 * the order of their sequence numbers; a k-way merge prints them.
 */
#include <stdlib.h>
#include <string.h>

#include "exact/key_engine.h"

/* ---- To the output ------------------------------------------------------- */

void lane_open(struct lane *lane, struct output *output, uint64_t memory) {
    enum { ROOM = 1 << 17, LEAST = 1 << 14, MOST = 1 << 18 };
    const uint64_t share = memory / 4 / MOST_RUNS;
    *lane = (struct lane){.output = output};
    if (!output) return;
    lane->room = ROOM;
    lane->bytes = alloc_memory(ROOM);
    lane->runs = alloc_memory(MOST_RUNS * sizeof(struct spill *));
    lane->run_buffer = share < LEAST  ? LEAST
                       : share > MOST ? MOST
                                      : (size_t)share;
}

void lane_flush(struct lane *lane) {
    if (lane->size) output_write(lane->output, lane->bytes, lane->size);
    lane->size = 0;
}

static void put_text(struct lane *lane, const void *bytes, size_t size) {
    if (size > lane->room - lane->size) lane_flush(lane);
    if (size > lane->room) {
        output_write(lane->output, bytes, size);
        return;
    }
    if (size) memcpy(lane->bytes + lane->size, bytes, size);
    lane->size += size;
}

static void put_count(struct lane *lane, uint64_t count) {
    char text[24], *at = text + sizeof text;
    *--at = '\t';
    do *--at = (char)('0' + count % 10);
    while (count /= 10);
    put_text(lane, at, (size_t)(text + sizeof text - at));
}

void lane_print(struct lane *lane, const calyx_key *line, uint64_t count) {
    const char end = record_end();
    lane->printed++;
    if (count) put_count(lane, count);
    put_text(lane, line->data, line->size);
    put_text(lane, &end, 1);
}

/* ---- Merging runs -------------------------------------------------------- */

enum { AT_ONCE = 64 };
struct run_reader {
    struct spill *run;
    struct record records[AT_ONCE];
    size_t next, count;
};

static const struct record *top(const struct run_reader *r) {
    return &r->records[r->next];
}

static bool advance(struct run_reader *r) {
    r->next++;
    if (r->next < r->count) return true;
    r->next = 0;
    r->count = spill_read(r->run, r->records, AT_ONCE);
    return r->count > 0;
}

/* A binary heap: the smallest sequence number is at its root. */
static void sift_down(struct run_reader **heap, size_t count, size_t at) {
    struct run_reader *const r = heap[at];
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

/* To another run, or to the output if that is NULL. */
static void merge_runs(struct lane *lane, struct spill *to) {
    struct run_reader *heap[MOST_RUNS];
    size_t count = 0;
    for (size_t i = 0; i < lane->run_count; i++) {
        struct run_reader *const r = alloc_memory(sizeof *r);
        r->run = lane->runs[i];
        r->next = r->count = 0;
        if (advance(r)) heap[count++] = r;
    }
    for (size_t i = count; i-- > 0;) sift_down(heap, count, i);
    while (count > 0) {
        struct run_reader *const r = heap[0];
        const struct record *const record = top(r);
        if (to)
            spill_put(to, record);
        else
            lane_print(lane, &record->key, record->number);
        if (!advance(r)) {
            spill_close(r->run);
            free(r);
            heap[0] = heap[--count];
        }
        if (count) sift_down(heap, count, 0);
    }
    lane->run_count = 0;
}

struct spill *run_new(void) {
    enum { RUN_BUFFER = 1 << 16 };
    return spill_new(RUN_BUFFER);
}

static void append_run(struct lane *lane, struct spill *run) {
    spill_rewind(run, lane->run_buffer);
    lane->runs[lane->run_count++] = run;
}

void lane_add_run(struct lane *lane, struct spill *run) {
    if (!run) return;
    append_run(lane, run);
    if (lane->run_count < MOST_RUNS) return;
    struct spill *const merged = run_new();
    merge_runs(lane, merged);
    append_run(lane, merged);
}

void lane_close(struct lane *lane) {
    if (!lane->output) return;
    merge_runs(lane, NULL);
    lane_flush(lane);
    free(lane->bytes);
    free(lane->runs);
}
