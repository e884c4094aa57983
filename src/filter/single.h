/*
 * One hash in one filter: what single.c and batch.c share. All of it is on the
 * path of every key, so it is inlined.
 */
#ifndef CALYX_SINGLE_H
#define CALYX_SINGLE_H

#include "filter/filter.h"

static inline bool in_part(const calyx_filter *f, const struct part *p,
                           uint64_t hash) {
    return f->kernel->has(p->body, &p->shape, hash);
}

/* Does the hash have bits in a damaged range of this part? Then the answer is
 * "yes": the key may have been there. Verifies these ranges if necessary. */
static inline bool is_damaged_at(const calyx_filter *f, const struct part *p,
                                 uint64_t hash) {
    return may_be_damaged(f) && !f->ranges->is_intact(f, p, hash);
}

/* Does a lookup in a static filter meet a damaged range on its way through the
 * layers? Verifies the ranges that it reads. */
static inline bool meets_damage(const calyx_filter *f, uint64_t hash) {
    for (const struct part *p = f->first_layer; p; p = p->next_layer) {
        if (!f->ranges->is_intact(f, p, hash)) return true;
        if (f->kernel->has_in_layer(p->body, &p->shape, hash) != LAYER_BUMPED)
            return false;
        hash = f->kind->construction->next_hash(hash);
    }
    return false;
}

/* What to return for a filter that is read-only. */
static inline calyx_status refuse_change(const calyx_filter *f) {
    return is_static(f) ? CALYX_CANNOT : CALYX_READ_ONLY;
}

/* ---- Room in the newest part --------------------------------------------- */

/* test/control/claim_room.c puts another thread's claim here. */
#ifndef CALYX_BEFORE_CLAIM
#define CALYX_BEFORE_CLAIM() (void)0
#endif

/*
 * If the filter is bounded: claim room for at most n keys before adding them,
 * so that several threads together do not exceed the capacity of a part.
 * Returns the number claimed. They are counted; the caller takes duplicates off
 * again.
 *
 * Until then other threads may see the part as full, so a concurrent filter
 * claims at most 1/64 of the room at a time, or 256 keys.
 */
static inline uint64_t claim_room(const calyx_filter *f, struct part *p,
                                  uint64_t n) {
    enum { CLAIM_MAX = 256, CLAIM_SHARE = 64 };
    uint64_t items = items_of(p), room;
    do {
        room = items < p->capacity ? p->capacity - items : 0;
        const uint64_t share = room / CLAIM_SHARE;
        const uint64_t most = share > CLAIM_MAX ? share : CLAIM_MAX;
        if (f->concurrent && room > most) room = most;
        if (room > n) room = n;
        CALYX_BEFORE_CLAIM();
    } while (room &&
             !__atomic_compare_exchange_n(&p->items, &items, items + room, true,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return room;
}

static inline void uncount_items(struct part *p, uint64_t removed) {
    p->items -= removed < p->items ? removed : p->items;
}

/* ---- In single.c --------------------------------------------------------- */

/* Add a hash to any filter that can be changed: one that is bounded, has grown
 * or is in a file too. */
calyx_status add_hash_general(calyx_filter *f, uint64_t hash, bool *fresh);

enum removal remove_hash(calyx_filter *f, uint64_t hash);

/* After a hash was added to a filter with an allow list: take its keys off the
 * list. Was the key, which may be NULL, fresh? */
bool leave_list(calyx_filter *f, uint64_t hash, const void *key, size_t size,
                bool was_fresh);

#endif
