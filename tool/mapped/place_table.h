/*
 * The table of the one-pass method: a place of the text for each key.
 *
 * A slot: a tag of 24 bits above, a place below; 0: free. A key is in the first
 * free slot of a cache line, or of the lines behind it if that is full. A slot
 * is never freed, and always of the same key, so threads need no lock to find
 * and to claim slots.
 *
 * The table begins with B cache lines, and doubles. Hash * B is a number of 128
 * bits: its upper half is the line in the table as it began, and the upper bits
 * of its lower half are the tag. After g doublings the number of the line has g
 * bits more, which are the upper ones of the tag. So a table doubles without a
 * look at the text: a slot stands behind its line at most as far as the lines
 * before it are full, and if these are fewer than 2^g, its tag says the line.
 */
#ifndef CALYX_TOOL_PLACE_TABLE_H
#define CALYX_TOOL_PLACE_TABLE_H

#include "mapped/mapped_text.h"

enum { PLACE_BITS = 40, LINE_SLOTS = 8 };

struct place_table {
    _Atomic uint64_t *slots;
    uint64_t lines; /* cache lines */
    uint64_t begun; /* cache lines in the beginning */
    unsigned doublings;
    uint64_t most; /* slots that may be used before another batch */
    _Atomic uint64_t used;
};

/* For about this many keys: then 2 of 3 slots are used, if all differ. False if
 * there is no memory. */
bool table_open(struct place_table *table, uint64_t keys);
void table_close(struct place_table *table);

/* Bytes of a table for this many keys, and of one that has doubled. */
uint64_t table_bytes(uint64_t keys);
uint64_t table_bytes_doubled(const struct place_table *table);

/* Double it; `hasher` hashes the lines of the text. The pages of the old table
 * are freed on the way, so that both take hardly more than the new one. False
 * if there is no memory. No other thread may use the table meanwhile. */
bool table_double(struct place_table *table, const struct mapped_text *text,
                  const calyx_filter *hasher);

/* ---- Slots --------------------------------------------------------------- */

/* A hash, as the table uses it. */
struct place_hash {
    uint64_t first; /* slot of its line */
    uint64_t tag;   /* in the upper bits */
};

static inline struct place_hash place_hash(const struct place_table *t,
                                           uint64_t hash) {
    const unsigned __int128 product = (unsigned __int128)hash * t->begun;
    const uint64_t high = (uint64_t)(product >> 64), low = (uint64_t)product;
    const uint64_t line =
        high << t->doublings | low >> 1 >> (63 - t->doublings);
    return (struct place_hash){LINE_SLOTS * line,
                               low >> PLACE_BITS << PLACE_BITS};
}

static inline uint64_t next_place_slot(const struct place_table *t,
                                       uint64_t at) {
    return at + 1 < t->lines * LINE_SLOTS ? at + 1 : 0;
}

static inline uint64_t load_place(const struct place_table *t, uint64_t at) {
    return atomic_load_explicit(&t->slots[at], memory_order_acquire);
}

/* False if it changed; then `was` is what it is. The text at the place was
 * written before. */
static inline bool swap_place(struct place_table *t, uint64_t at, uint64_t *was,
                              uint64_t slot) {
    return atomic_compare_exchange_strong_explicit(
        &t->slots[at], was, slot, memory_order_acq_rel, memory_order_acquire);
}

static inline bool has_tag(uint64_t slot, uint64_t tag) {
    return (slot ^ tag) >> PLACE_BITS == 0;
}

static inline uint64_t place_in(uint64_t slot) {
    return slot & ((UINT64_C(1) << PLACE_BITS) - 1);
}

#endif
