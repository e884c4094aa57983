#include "mapped/place_table.h"

#include <stdatomic.h>
#include <sys/mman.h>

#include "exact/key_hash.h"
#include "input/pipeline.h"

/* ---- Memory -------------------------------------------------------------- */

static uint64_t table_lines(uint64_t keys) {
    enum { CLAIMED_AHEAD = 2 * BATCH_ROOM };
    const uint64_t batches = CLAIMED_AHEAD * (uint64_t)thread_count();
    return (keys + keys / 2 + batches) / LINE_SLOTS + 1;
}

static uint64_t size_of_lines(uint64_t lines) {
    return lines * LINE_SLOTS * sizeof(uint64_t);
}

static bool alloc_lines(struct place_table *t, uint64_t lines) {
    const uint64_t size = size_of_lines(lines);
    void *const slots =
        mmap(NULL, size, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (slots == MAP_FAILED) return false;
    if (size >= (1u << 22)) madvise(slots, size, MADV_HUGEPAGE);
    t->slots = slots;
    t->lines = lines;
    t->most =
        lines * LINE_SLOTS / 4 * 3 - BATCH_ROOM * (uint64_t)thread_count();
    return true;
}

bool table_open(struct place_table *t, uint64_t keys) {
    *t = (struct place_table){.begun = table_lines(keys)};
    return alloc_lines(t, t->begun);
}

void table_close(struct place_table *t) {
    if (t->slots) munmap((void *)t->slots, size_of_lines(t->lines));
}

uint64_t table_bytes(uint64_t keys) {
    return size_of_lines(table_lines(keys));
}

uint64_t table_bytes_doubled(const struct place_table *t) {
    return size_of_lines(2 * t->lines);
}

/* ---- Doubling -------------------------------------------------- */

/* Slots whose line is not certain by the tag. */
struct doubtful_slots {
    size_t count;
    uint64_t slots[BATCH_ROOM];
};

static void put_slot(struct place_table *t, uint64_t at, uint64_t slot) {
    while (load_place(t, at)) at = next_place_slot(t, at);
    atomic_store_explicit(&t->slots[at], slot, memory_order_relaxed);
}

/* Hash their keys again. */
static void put_doubtful(struct place_table *t, const struct mapped_text *text,
                         const calyx_filter *hasher,
                         struct doubtful_slots *doubtful) {
    calyx_key keys[BATCH_ROOM];
    uint64_t hashes[BATCH_ROOM];
    const size_t n = doubtful->count;
    keys[0] = (calyx_key){0};
    for (size_t i = 0; i < n; i++)
        keys[i] = mapped_line(text, place_in(doubtful->slots[i]));
    hash_keys(hasher, keys, n, hashes);
    for (size_t i = 0; i < n; i++)
        put_slot(t, place_hash(t, hashes[i]).first, doubtful->slots[i]);
    doubtful->count = 0;
}

static bool line_is_full(const struct place_table *t, uint64_t line) {
    return load_place(t, LINE_SLOTS * line + LINE_SLOTS - 1) != 0;
}

/* Number of full lines at the end of a table: slots that found no room there
 * are in its first lines. */
static uint64_t full_lines_at_end(const struct place_table *t) {
    uint64_t n = 0;
    while (n < t->lines && line_is_full(t, t->lines - 1 - n)) n++;
    return n;
}

/* Move the slots in a line to a table of twice the size. The `full` lines
 * before it are. */
static void move_line(struct place_table *t, const struct place_table *old,
                      uint64_t line, uint64_t full,
                      struct doubtful_slots *doubtful) {
    const unsigned g = old->doublings;
    const uint64_t mask = (UINT64_C(1) << g) - 1;
    for (uint64_t i = 0; i < LINE_SLOTS; i++) {
        const uint64_t slot = load_place(old, LINE_SLOTS * line + i);
        if (!slot) return;
        if (full > mask) {
            doubtful->slots[doubtful->count++] = slot;
            continue;
        }
        const uint64_t bits = slot >> (63 - g); /* of the new line */
        const uint64_t behind = (line - (bits >> 1)) & mask;
        const uint64_t of = line < behind ? line + old->lines : line;
        put_slot(t, LINE_SLOTS * (2 * (of - behind) + (bits & 1)), slot);
    }
}

/* Free the lines that were moved, except the last ones. */
static void free_moved(const struct place_table *old, uint64_t line) {
    enum { AT_ONCE = 1 << 15 }; /* 2 MiB */
    if (line % AT_ONCE == 0 && line > 0)
        madvise((void *)&old->slots[LINE_SLOTS * (line - AT_ONCE)],
                size_of_lines(AT_ONCE), MADV_DONTNEED);
}

bool table_double(struct place_table *t, const struct mapped_text *text,
                  const calyx_filter *hasher) {
    enum { MOST_DOUBLINGS = 20 }; /* leaves 4 bits of the tag */
    struct doubtful_slots doubtful = {0};
    struct place_table old = *t;
    if (t->doublings == MOST_DOUBLINGS || !alloc_lines(t, 2 * old.lines))
        return false;
    t->doublings++;
    uint64_t full = full_lines_at_end(&old);
    for (uint64_t i = 0; i < old.lines; i++) {
        if (doubtful.count + LINE_SLOTS > BATCH_ROOM)
            put_doubtful(t, text, hasher, &doubtful);
        move_line(t, &old, i, full, &doubtful);
        full = line_is_full(&old, i) ? full + 1 : 0;
        free_moved(&old, i);
    }
    put_doubtful(t, text, hasher, &doubtful);
    table_close(&old);
    return true;
}
