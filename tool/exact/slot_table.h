/*
 * The slots of a hash table with open addressing, for tables of keys that are
 * stored elsewhere: in key_table.h, or in the text of mapped files.
 *
 * A slot: a tag of 24 bits above, the place of a key below; 0: free. A key has
 * a slot in a cache line where its search begins, and goes round the line to
 * the first free slot; if the line is full, to the lines after it. A slot is
 * never freed, and always of the same key, so threads need no lock to find and
 * to claim slots. A tag matches a wrong key once in 16 million times: the owner
 * compares the bytes.
 *
 * The table begins with B cache lines, and doubles. Hash * B is a number of 128
 * bits: its upper half is the line in the table as it began, and the upper bits
 * of its lower half are the tag. After g doublings the number of the line has g
 * bits more, which are the upper ones of the tag. So a table doubles without a
 * look at the keys: a slot stands after its line at most as far as the lines
 * before it are full, and if these are fewer than 2^g, its tag says the line.
 */
#ifndef CALYX_TOOL_SLOT_TABLE_H
#define CALYX_TOOL_SLOT_TABLE_H

#include <stdatomic.h>

#include "tool.h"

enum { PLACE_BITS = 40, LINE_SLOTS = 8 };

struct slot_table {
    _Atomic uint64_t *slots;
    uint64_t count; /* slots */
    uint64_t begun; /* cache lines in the beginning */
    unsigned doublings;
    _Atomic uint64_t used; /* slots; counted by the owner */
};

/* For about this many keys: then 2 of 3 slots are used, if all differ. False if
 * there is no memory. */
bool slot_table_open(struct slot_table *table, uint64_t keys);
void slot_table_close(struct slot_table *table);

/* Bytes of a table for this many keys. */
uint64_t slot_table_bytes(uint64_t keys);

/* Double it. `hashes_of` is called for slots whose line is not certain by the
 * tag. The pages of the old table are freed on the way, so that both take
 * hardly more than the new one. False if there is no memory. No other thread
 * may use the table meanwhile. */
typedef void slot_hashes(const void *owner, const uint64_t *slots, size_t n,
                         uint64_t *hashes);
bool slot_table_double(struct slot_table *table, slot_hashes *hashes_of,
                       const void *owner);

/* ---- Slots --------------------------------------------------------------- */

/* The slot of a line where the search for a tag, or for a slot with it, begins.
 */
static inline uint64_t first_in_line(uint64_t tag) {
    return tag >> PLACE_BITS & (LINE_SLOTS - 1);
}

/* A hash, as the table uses it. */
struct slot_hash {
    uint64_t first; /* slot */
    uint64_t tag;   /* in the upper bits */
};

static inline struct slot_hash slot_hash(const struct slot_table *t,
                                         uint64_t hash) {
    const unsigned __int128 product = (unsigned __int128)hash * t->begun;
    const uint64_t high = (uint64_t)(product >> 64), low = (uint64_t)product;
    const uint64_t line =
        high << t->doublings | low >> 1 >> (63 - t->doublings);
    const uint64_t tag = low >> PLACE_BITS << PLACE_BITS;
    return (struct slot_hash){LINE_SLOTS * line + first_in_line(tag), tag};
}

/* Where the search goes on after a slot. */
static inline uint64_t next_slot(const struct slot_table *t, uint64_t at,
                                 uint64_t tag) {
    const uint64_t next = at / LINE_SLOTS * LINE_SLOTS + (at + 1) % LINE_SLOTS;
    if (next % LINE_SLOTS != first_in_line(tag)) return next;
    return next + LINE_SLOTS < t->count ? next + LINE_SLOTS : next % LINE_SLOTS;
}

static inline uint64_t load_slot(const struct slot_table *t, uint64_t at) {
    return atomic_load_explicit(&t->slots[at], memory_order_acquire);
}

/* For the only thread that writes. The key at the place was written before. */
static inline void store_slot(struct slot_table *t, uint64_t at,
                              uint64_t slot) {
    atomic_store_explicit(&t->slots[at], slot, memory_order_release);
}

/* False if it changed; then `was` is what it is. */
static inline bool swap_slot(struct slot_table *t, uint64_t at, uint64_t *was,
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
