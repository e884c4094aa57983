#include "exact/slot_table.h"

#include <sys/mman.h>

/* ---- Memory -------------------------------------------------------------- */

static uint64_t lines_for(uint64_t keys) {
    return (keys + keys / 2) / LINE_SLOTS + 1;
}

uint64_t slot_table_bytes(uint64_t keys) {
    return lines_for(keys) * LINE_SLOTS * sizeof(uint64_t);
}

static bool alloc_slots(struct slot_table *t, uint64_t count) {
    const uint64_t size = count * sizeof *t->slots;
    void *const slots =
        mmap(NULL, size, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (slots == MAP_FAILED) return false;
    if (size >= (1u << 22)) madvise(slots, size, MADV_HUGEPAGE);
    t->slots = slots;
    t->count = count;
    return true;
}

bool slot_table_open(struct slot_table *t, uint64_t keys) {
    *t = (struct slot_table){.begun = lines_for(keys)};
    return alloc_slots(t, LINE_SLOTS * t->begun);
}

void slot_table_close(struct slot_table *t) {
    if (t->slots) munmap((void *)t->slots, t->count * sizeof *t->slots);
}

/* ---- Doubling ------------------------------------------------------------ */

/* Slots whose line is not certain by the tag. */
enum { DOUBTFUL_ROOM = 512 };
struct doubtful_slots {
    size_t count;
    uint64_t slots[DOUBTFUL_ROOM];
};

static void put_slot(struct slot_table *t, uint64_t at, uint64_t slot) {
    while (load_slot(t, at)) at = next_slot(t, at, slot);
    store_slot(t, at, slot);
}

static void put_doubtful(struct slot_table *t, struct doubtful_slots *doubtful,
                         slot_hashes *hashes_of, const void *owner) {
    uint64_t hashes[DOUBTFUL_ROOM];
    hashes_of(owner, doubtful->slots, doubtful->count, hashes);
    for (size_t i = 0; i < doubtful->count; i++)
        put_slot(t, slot_hash(t, hashes[i]).first, doubtful->slots[i]);
    doubtful->count = 0;
}

/* The line of this slot. */
static bool line_is_full(const struct slot_table *t, uint64_t at) {
    bool full = true;
    for (uint64_t i = 0; i < LINE_SLOTS; i++)
        full &= load_slot(t, at / LINE_SLOTS * LINE_SLOTS + i) != 0;
    return full;
}

/* Number of full lines at the end of a table: slots that found no room there
 * are in its first lines. */
static uint64_t full_lines_at_end(const struct slot_table *t) {
    uint64_t n = 0;
    while (LINE_SLOTS * n < t->count &&
           line_is_full(t, t->count - 1 - LINE_SLOTS * n))
        n++;
    return n;
}

/* Move the slots in a line to a table of twice the size. The `full` lines
 * before it are. */
static void move_line(struct slot_table *t, const struct slot_table *old,
                      uint64_t line, uint64_t full,
                      struct doubtful_slots *doubtful) {
    const unsigned g = old->doublings;
    const uint64_t mask = (UINT64_C(1) << g) - 1;
    for (uint64_t i = 0; i < LINE_SLOTS; i++) {
        const uint64_t slot = load_slot(old, LINE_SLOTS * line + i);
        if (!slot) continue;
        if (full > mask) {
            doubtful->slots[doubtful->count++] = slot;
            continue;
        }
        const uint64_t bits = slot >> (63 - g); /* of the new line */
        const uint64_t after = (line - (bits >> 1)) & mask;
        const uint64_t of =
            line < after ? line + old->count / LINE_SLOTS : line;
        put_slot(t,
                 LINE_SLOTS * (2 * (of - after) + (bits & 1)) +
                     first_in_line(slot),
                 slot);
    }
}

/* Free the lines that were moved, except the last ones. */
static void free_moved(const struct slot_table *old, uint64_t line) {
    enum { AT_ONCE = 1 << 18 }; /* slots: 2 MiB */
    const uint64_t at = LINE_SLOTS * line;
    if (at % AT_ONCE == 0 && at > 0)
        madvise((void *)&old->slots[at - AT_ONCE], AT_ONCE * sizeof(uint64_t),
                MADV_DONTNEED);
}

bool slot_table_double(struct slot_table *t, slot_hashes *hashes_of,
                       const void *owner) {
    enum { MOST_DOUBLINGS = 20 }; /* leaves 4 bits of the tag */
    struct doubtful_slots doubtful;
    struct slot_table old = *t;
    if (t->doublings == MOST_DOUBLINGS || !alloc_slots(t, 2 * old.count))
        return false;
    t->doublings++;
    doubtful.count = 0;
    uint64_t full = full_lines_at_end(&old);
    for (uint64_t i = 0; i < old.count / LINE_SLOTS; i++) {
        if (doubtful.count + LINE_SLOTS > DOUBTFUL_ROOM)
            put_doubtful(t, &doubtful, hashes_of, owner);
        move_line(t, &old, i, full, &doubtful);
        full = line_is_full(&old, LINE_SLOTS * i) ? full + 1 : 0;
        free_moved(&old, i);
    }
    put_doubtful(t, &doubtful, hashes_of, owner);
    slot_table_close(&old);
    return true;
}
