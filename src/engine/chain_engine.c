/*
 * The engine of filters whose parts have limits: a strict filter, and one that
 * grows by parts. It takes another, larger part each time the newest is full; a
 * key is in the filter if it is in any part.
 *
 * Filters that many threads add to are here too if they grow or have a limit,
 * or if a key of theirs has bits in more than one block.
 */
#include <string.h>

#include "base/bits.h"
#include "base/compiler.h"
#include "base/error.h"
#include "engine/engine.h"
#include "engine/stripes.h"
#include "kind/batch_loops.h"

/* ---- One hash ------------------------------------------------------------ */

/* Newest part first: it is the largest, and holds most of the keys. */
static NOINLINE bool has_in_older(const calyx_filter *f, const struct part *p,
                                  uint64_t hash) {
    for (; p; p = p->older)
        if (in_part(f, p, hash)) return true;
    return false;
}

static bool chain_has(const calyx_filter *f, uint64_t hash) {
    const struct part *const p = newest_of(f);
    return p->older ? has_in_older(f, p, hash) : in_part(f, p, hash);
}

/*
 * The part of a key: the oldest part that has it; NULL if none does.
 *
 * A counting filter adds a key to its part, or, if it has none, to the newest.
 * So older parts never gain a bit: a part that did not have the key when it was
 * added never will, and remove finds the part that add chose.
 */
static struct part *part_of(const calyx_filter *f, uint64_t hash) {
    struct part *oldest = NULL;
    for (struct part *p = newest_of(f); p; p = p->older)
        if (in_part(f, p, hash)) oldest = p;
    return oldest;
}

static calyx_status add_again(calyx_filter *f, struct part *p, uint64_t hash,
                              bool *fresh) {
    if (fresh) *fresh = false;
    if (!is_counting(f)) return CALYX_OK;
    f->kernel->add(p->body, &p->shape, hash);
    p->items++;
    return CALYX_OK;
}

uint32_t count_in_parts(const calyx_filter *f, uint64_t hash) {
    const struct part *const p = part_of(f, hash);
    if (!p || !is_counting(f)) return p != NULL;
    return f->kind->counting->count(p->body, &p->shape, hash);
}

static void uncount_items(struct part *p, uint64_t removed) {
    p->items -= removed < p->items ? removed : p->items;
}

/* The kernel's remove looks for the key itself, so a filter with one part need
 * not be queried first. */
calyx_status remove_from_parts(calyx_filter *f, uint64_t hash,
                               enum removal *became) {
    struct part *const newest = newest_of(f);
    struct part *const p = newest->older ? part_of(f, hash) : newest;
    *became = KEY_ABSENT;
    if (!p) return CALYX_OK;
    *became = f->kernel->remove(p->body, &p->shape, hash);
    uncount_items(p, *became == KEY_REMOVED);
    return CALYX_OK;
}

/* ---- Growth -------------------------------------------------------------- */

/* Several threads may find the same part full. Each makes the next one; the
 * first publishes it, and the others free theirs. So none waits. */
calyx_status grow(calyx_filter *f, struct part *full) {
    struct part next = {0};
    if (is_in_place(f) || !plan_growth(f, full, &next)) return CALYX_FULL;
    struct part *made = make_part(f, &next);
    if (!made) /* unless another thread had more luck */
        return newest_of(f) != full ? CALYX_OK : CALYX_NO_MEMORY;
    made->older = full;
    if (!__atomic_compare_exchange_n(&f->newest, &full, made, false,
                                     __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        free_part(f, made);
    return CALYX_OK;
}

/* ---- Room in the newest part --------------------------------------------- */

/* Is there a limit to the number of keys in the newest part? */
static bool is_bounded(const calyx_filter *f) {
    return f->growth > 0 || f->strict;
}

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
static uint64_t claim_room(const calyx_filter *f, struct part *p, uint64_t n) {
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

/* ---- Add one ------------------------------------------------------------- */

static calyx_status chain_add(calyx_filter *f, uint64_t hash, bool *fresh) {
    struct part *p;
    for (;;) {
        p = newest_of(f);
        const bool full = is_bounded(f) && items_of(p) >= p->capacity;
        struct part *const has = p->older || full ? part_of(f, hash) : NULL;
        if (has) return add_again(f, has, hash, fresh);
        if (!is_bounded(f) || claim_room(f, p, 1)) break;
        const calyx_status grown = f->growth > 0 ? grow(f, p) : CALYX_FULL;
        if (grown != CALYX_OK) return grown;
    }
    const bool is_fresh = add_to_part(f, p, hash);
    const uint64_t claimed = is_bounded(f);
    count_items(f, p, (is_fresh || is_counting(f)) - claimed);
    if (fresh) *fresh = is_fresh;
    return CALYX_OK;
}

/* ---- Query many ---------------------------------------------------------- */

/* Query this part and the older ones together, as far as the kernel can.
 * Returns the first part that is left to the caller. */
static const struct part *has_together(const calyx_filter *f,
                                       const struct part *p,
                                       const uint64_t *hashes, size_t n,
                                       bool *found) {
    while (f->kernel->has_in_any && p) {
        struct part_view views[PARTS_AT_ONCE];
        size_t count = 0;
        for (; p && count < PARTS_AT_ONCE; p = p->older, count++) {
            if (p->shape.blocks >> 32) break;
            views[count] = (struct part_view){p->body, p->shape};
        }
        if (count == 0) break;
        f->kernel->has_in_any(views, count, hashes, n, found);
    }
    return p;
}

/* Query one part after the other, each for the hashes not found yet. */
static void has_one_by_one(const calyx_filter *f, const struct part *p,
                           const uint64_t *hashes, size_t n, bool *found) {
    uint64_t left[BATCH_MAX];
    uint16_t place[BATCH_MAX];
    bool here[BATCH_MAX];
    for (; p; p = p->older) {
        size_t lefts = 0;
        for (size_t i = 0; i < n; i++) {
            left[lefts] = hashes[i];
            place[lefts] = (uint16_t)i;
            lefts += !found[i];
        }
        f->kernel->has_batch(p->body, &p->shape, batch_of(left, lefts), here);
        for (size_t i = 0; i < lefts; i++) found[place[i]] = here[i];
    }
}

/* Query a large part by itself: 20 % faster than together with others, once it
 * is in memory and not in a cache. */
static void has_alone(const calyx_filter *f, const struct part *p,
                      const uint64_t *hashes, size_t n, bool *found) {
    bool here[BATCH_MAX];
    f->kernel->has_batch(p->body, &p->shape, batch_of(hashes, n), here);
    for (size_t i = 0; i < n; i++) found[i] |= here[i];
}

/* Query this part and all older ones. The newest parts are the largest. A batch
 * without hashes to prefetch has more memory accesses in flight if all parts
 * are queried together. */
static size_t has_in_parts(const calyx_filter *f, const struct part *p,
                           const uint64_t *hashes, size_t n, bool *found) {
    memset(found, false, n);
    for (; p && n > PREFETCH_DISTANCE && is_large(f, p); p = p->older)
        has_alone(f, p, hashes, n, found);
    p = has_together(f, p, hashes, n, found);
    if (p) has_one_by_one(f, p, hashes, n, found);
    return count_true(found, n);
}

/* Query the part that was the only one when the lookup began, whatever other
 * threads add meanwhile: if the kernel hashes the keys, there are no hashes to
 * query other parts with. */
static size_t has_batch_in_first(const calyx_filter *f, struct batch batch,
                                 bool *found) {
    const struct part *const p = first_part(f);
    return f->kernel->has_batch(p->body, &p->shape, batch, found);
}

static size_t has_batch_in_all(const calyx_filter *f, struct batch batch,
                               bool *found) {
    return has_in_parts(f, newest_of(f), batch.hashes, batch.n, found);
}

/*
 * The higher a hash, the higher the address of its line, in every part. So
 * hashes that are roughly sorted walk through all parts from the first line to
 * the last, and reuse the lines and pages of the hashes before them. That
 * outweighs the sorting if there are many hashes, and the parts are large.
 */
enum {
    SORTED_MAX = 4096, /* hashes at a time: 8192 are 10 % faster, but take 90
                          KiB of stack instead of 50 */
    BUCKET_BITS = 8,
    BUCKETS = 1 << BUCKET_BITS,
    SORTED_LEAST = BATCH_MAX + 1, /* no batch of `mapped`, whose frames are
                                     large enough without */
    SORTED_LEAST_BYTES = 1 << 20
};
_Static_assert(SORTED_MAX <= UINT16_MAX, "places are numbers of 16 bits");

static bool is_sorting_faster(const calyx_filter *f, const struct part *p,
                              size_t n) {
    if (!f->kernel->has_in_any || n < SORTED_LEAST) return false;
    uint64_t bytes = 0;
    for (; p; p = p->older) bytes += bits_bytes(f->kind, &p->shape);
    return bytes >= SORTED_LEAST_BYTES;
}

/* Sort by the highest bits: order[0] is the place of the first hash. */
static void bucket_sort(uint16_t *order, const uint64_t *hashes, size_t n) {
    const int shift = 64 - BUCKET_BITS;
    uint16_t next[BUCKETS + 1] = {0};
    for (size_t i = 0; i < n; i++) next[(hashes[i] >> shift) + 1]++;
    for (size_t i = 1; i < BUCKETS; i++)
        next[i] = (uint16_t)(next[i] + next[i - 1]);
    for (size_t i = 0; i < n; i++)
        order[next[hashes[i] >> shift]++] = (uint16_t)i;
}

static NOINLINE size_t has_sorted(const calyx_filter *f, const struct part *p,
                                  const struct key_list *keys, bool *found) {
    uint64_t buffer[SORTED_MAX];
    uint16_t order[SORTED_MAX];
    size_t yes = 0;
    for (size_t from = 0, n; from < keys->n; from += n) {
        n = lesser_of(keys->n - from, SORTED_MAX);
        const uint64_t *const hashes = hash_keys(f, keys, from, n, buffer);
        bucket_sort(order, hashes, n);
        for (size_t i = 0, some; i < n; i += some) {
            uint64_t sorted[BATCH_MAX];
            bool here[BATCH_MAX];
            some = lesser_of(n - i, BATCH_MAX);
            for (size_t j = 0; j < some; j++) sorted[j] = hashes[order[i + j]];
            yes += has_in_parts(f, p, sorted, some, here);
            for (size_t j = 0; found && j < some; j++)
                found[from + order[i + j]] = here[j];
        }
    }
    return yes;
}

static size_t chain_has_many(const calyx_filter *f, const struct key_list *keys,
                             bool *found) {
    const struct part *const p = newest_of(f);
    if (!p->older)
        return has_in_batches(f, keys, found, has_batch_in_first,
                              should_kernel_hash(f, p, keys));
    return is_sorting_faster(f, p, keys->n)
               ? has_sorted(f, p, keys, found)
               : has_in_batches(f, keys, found, has_batch_in_all, false);
}

/* ---- Add many ------------------------------------------------------------ */

/* Add hashes to a filter that has grown, except those that an older part has.
 * Returns the number of fresh ones. */
static size_t add_to_grown(calyx_filter *f, struct part *p,
                           const uint64_t *hashes, size_t n, bool *fresh) {
    uint64_t new[BATCH_MAX];
    bool here[BATCH_MAX], answers[BATCH_MAX];
    has_in_parts(f, p->older, hashes, n, here);
    size_t news = 0;
    for (size_t i = 0; i < n; i++) {
        new[news] = hashes[i];
        news += !here[i];
    }
    const size_t total = add_batch_to_part(f, p, batch_of(new, news), answers);
    if (fresh)
        for (size_t i = 0, j = 0; i < n; i++)
            fresh[i] = !here[i] && answers[j++];
    return total;
}

/* Add the first n hashes of a batch to the only part of a filter. */
static size_t add_to_only(calyx_filter *f, struct part *p, struct batch *batch,
                          size_t n, bool *fresh) {
    struct batch first = *batch;
    first.n = n;
    first.more += batch->n - n;
    note_prefetched(batch, n);
    return add_batch_to_part(f, p, first, fresh);
}

/* As many as there is room for in the newest part; or one, if the filter has to
 * grow, or each key has a part of its own. */
static calyx_status chain_add_some(calyx_filter *f, struct key_window *w,
                                   bool *fresh, size_t *done) {
    struct part *const p = newest_of(f);
    const struct batch *const batch = &w->batch;
    const bool one_by_one = p->older && is_counting(f), claims = is_bounded(f);
    size_t n = one_by_one ? 0 : batch->n;
    if (claims && n > 0) n = (size_t)claim_room(f, p, n);
    if (n == 0) {
        bool ignored;
        *done = 1;
        return chain_add(f, *batch->hashes, fresh ? fresh : &ignored);
    }
    const size_t added = p->older ? add_to_grown(f, p, batch->hashes, n, fresh)
                                  : add_to_only(f, p, &w->batch, n, fresh);
    const uint64_t counted = is_counting(f) ? n : added;
    count_items(f, p, counted - (claims ? n : 0));
    *done = n;
    return CALYX_OK;
}

/* ---- Remove many --------------------------------------------------------- */

/* A filter that has grown removes one by one: each key has a part of its own.
 */
calyx_status remove_batch_from_parts(calyx_filter *f, struct key_window *w,
                                     bool *found, size_t *removed) {
    struct part *const p = newest_of(f);
    const struct batch *const batch = &w->batch;
    if (!p->older) {
        *removed = f->kernel->remove_batch(p->body, &p->shape, *batch, found);
        uncount_items(p, *removed);
        return CALYX_OK;
    }
    *removed = 0;
    for (size_t i = 0; i < batch->n; i++) {
        enum removal became;
        remove_from_parts(f, batch->hashes[i], &became);
        if (found) found[i] = became != KEY_ABSENT;
        *removed += became == KEY_REMOVED;
    }
    return CALYX_OK;
}

/* ---- Description --------------------------------------------------------- */

/* Lookups in a part leave an absent key unfound with odds of their own. */
void describe_parts(const calyx_filter *f, const uint64_t *counts,
                    calyx_info *info) {
    double certainly_not = 1; /* odds that an absent key is not found */
    uint64_t set = 0, bits = 0;
    uint32_t left = info->parts;
    for (const struct part *p = newest_of(f); p; p = p->older) {
        const uint64_t here = counts ? counts[--left] : count_bits(f->kind, p);
        set += here;
        bits += kind_bits(f->kind, &p->shape);
        const double keys = keys_for_bits(f->kind, &p->shape, here);
        info->distinct += keys;
        const bool has_all = here == kind_bits(f->kind, &p->shape);
        certainly_not *=
            has_all ? 0 : 1 - expected_rate(f->kind, &p->shape, keys);
    }
    info->fpr_now = 1 - certainly_not;
    info->fill = (double)set / (double)bits;
}

calyx_status check_shape(const struct part *p, const struct part *q,
                         calyx_error *why) {
    if (p->shape.blocks == q->shape.blocks &&
        p->shape.probes == q->shape.probes)
        return CALYX_OK;
    return fail(why, CALYX_MISMATCH,
                "one filter has a part of %llu blocks with %u probes "
                "where the other has %llu with %u; make both for the "
                "same number of keys, at the same rate",
                (unsigned long long)p->shape.blocks, p->shape.probes,
                (unsigned long long)q->shape.blocks, q->shape.probes);
}

calyx_status check_alike_parts(const calyx_filter *a, const calyx_filter *b,
                               calyx_error *why) {
    const struct part *p = newest_of(a), *q = newest_of(b);
    calyx_status status = CALYX_OK;
    for (; p && q && status == CALYX_OK; p = p->older, q = q->older)
        status = check_shape(p, q, why);
    if (status == CALYX_OK && (p || q))
        return fail(why, CALYX_MISMATCH,
                    "the filters have grown to different numbers of parts");
    return status;
}

const struct engine chain_engine = {
    .calls =
        {
            .has = chain_has,
            .add = chain_add,
            .remove = remove_from_parts,
            .count = count_in_parts,
            .has_many = chain_has_many,
            .add_some = chain_add_some,
            .remove_batch = remove_batch_from_parts,
            .most_hashes = BATCH_MAX,
        },
    .is_direct = true,
    .is_intact = are_parts_intact,
    .open = allocate_stripes,
    .relocate = move_stripes,
    .add_info = add_stripes_info,
    .close = free_stripes,
    .describe = describe_parts,
    .check_alike = check_alike_parts,
};
