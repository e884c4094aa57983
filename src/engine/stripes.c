#include "engine/stripes.h"

#include <string.h>

#include "base/bits.h"
#include "base/spin_lock.h"
#include "kind/batch_loops.h"

/* test/control/lost_keys.c shows what happens without the locks. */
#if CALYX_NO_STRIPE_LOCKS
#define try_lock(lock)    ((void)(lock), true)
#define spin_lock(lock)   ((void)(lock))
#define spin_unlock(lock) ((void)(lock))
#endif

calyx_status allocate_stripes(calyx_filter *f) {
    if (!f->concurrent || !f->kind->one_block) return CALYX_OK;
    f->stripes = f->memory.allocate(f->memory.context, sizeof *f->stripes,
                                    _Alignof(struct stripes));
    if (!f->stripes) return CALYX_NO_MEMORY;
    memset(f->stripes, 0, sizeof *f->stripes);
    return CALYX_OK;
}

void move_stripes(calyx_filter *f, calyx_move_function *move, void *context) {
    if (f->stripes) f->stripes = move(context, f->stripes, sizeof *f->stripes);
}

void add_stripes_info(const calyx_filter *f, calyx_info *info) {
    if (f->stripes) info->memory += sizeof *f->stripes;
}

void free_stripes(calyx_filter *f) {
    if (f->stripes) give_block(&f->memory, f->stripes, sizeof *f->stripes);
}

/* ---- Stripes of blocks --------------------------------------------------- */

/* A stripe has 2^shift blocks, so that all blocks are in at most STRIPE_COUNT.
 */
static int stripe_shift(const struct shape *shape) {
    const int bits = 64 - __builtin_clzll((shape->blocks - 1) | 1);
    return bits > STRIPE_BITS ? bits - STRIPE_BITS : 0;
}

/* The stripes that have the blocks of some range of hashes. */
struct stripe_range {
    size_t first, last;
};

static struct stripe_range stripes_of(const struct shape *shape, uint64_t first,
                                      uint64_t last) {
    const int shift = stripe_shift(shape);
    return (struct stripe_range){
        (size_t)(scale64(first, shape->blocks) >> shift),
        (size_t)(scale64(last, shape->blocks) >> shift)};
}

static void unlock_range(struct stripes *s, struct stripe_range range) {
    for (size_t i = range.first; i <= range.last; i++)
        spin_unlock(&s->stripe[i].locked);
}

/* Always from the first on, so that no two threads wait for each other. */
static void lock_range(struct stripes *s, struct stripe_range range) {
    for (size_t i = range.first; i <= range.last; i++)
        spin_lock(&s->stripe[i].locked);
}

static bool try_lock_range(struct stripes *s, struct stripe_range range) {
    for (size_t i = range.first; i <= range.last; i++) {
        if (try_lock(&s->stripe[i].locked)) continue;
        if (i > range.first)
            unlock_range(s, (struct stripe_range){range.first, i - 1});
        return false;
    }
    return true;
}

/* ---- One key ------------------------------------------------------------- */

/* The block is on its way while the lock is. */
bool add_to_stripe(calyx_filter *f, struct part *p, uint64_t hash) {
    const uint64_t block = scale64(hash, p->shape.blocks);
    uint32_t *const lock =
        &f->stripes->stripe[block >> stripe_shift(&p->shape)].locked;
    prefetch_l1(p->body + block * (f->kind->block_bits / 8));
    spin_lock(lock);
    const bool fresh = f->kernel->add(p->body, &p->shape, hash);
    spin_unlock(lock);
    return fresh;
}

/* ---- Is anybody else adding? --------------------------------------------- */

/* A hint, so that it may be wrong by a few. */
enum { CROWDED = 256 };

static void note_crowd(struct stripes *s) {
    __atomic_store_n(&s->crowded, CROWDED, __ATOMIC_RELAXED);
}

static bool expects_crowd(struct stripes *s) {
    const uint32_t left = __atomic_load_n(&s->crowded, __ATOMIC_RELAXED);
    if (left) __atomic_store_n(&s->crowded, left - 1, __ATOMIC_RELAXED);
    return left != 0;
}

/* ---- Group by group ------------------------------------------------------ */

enum {
    GROUP_BITS = 3, /* of a hash, its highest */
    GROUPS = 1 << GROUP_BITS,
    /* A quarter more than a group of an even batch has. */
    GROUP_ROOM = STRIPE_BATCH_MAX / GROUPS * 5 / 4
};

/* Hashes of a batch, grouped by their highest bits; within a group they are in
 * the order of the batch. */
struct grouped_batch {
    uint64_t hashes[GROUPS * GROUP_ROOM];
    uint16_t place[GROUPS * GROUP_ROOM]; /* in the batch */
    size_t end[GROUPS];                  /* of the hashes of a group */
    size_t n;
    size_t prefetched; /* up to this hash */
};

/* Put each hash after the last one of its group. There is room for all. */
ALWAYS_INLINE void scatter(struct grouped_batch *g, const uint64_t *hashes,
                           size_t from, size_t to, bool places) {
    for (size_t i = from; i < to; i++) {
        const uint64_t hash = hashes[i];
        const size_t at = g->end[hash >> (64 - GROUP_BITS)]++;
        g->hashes[at] = hash;
        if (places) g->place[at] = (uint16_t)i;
    }
}

/* Hashes for which there is room, whatever their groups. */
static size_t room_of_fullest(const struct grouped_batch *g) {
    size_t room = GROUP_ROOM;
    for (size_t i = 0; i < GROUPS; i++) {
        const size_t left = (i + 1) * GROUP_ROOM - g->end[i];
        if (left < room) room = left;
    }
    return room;
}

/* Close the gaps after the groups. */
static void compact(struct grouped_batch *g, bool places) {
    size_t sum = 0;
    for (size_t i = 0; i < GROUPS; i++) {
        const size_t from = i * GROUP_ROOM, n = g->end[i] - from;
        memmove(g->hashes + sum, g->hashes + from, n * sizeof *g->hashes);
        if (places)
            memmove(g->place + sum, g->place + from, n * sizeof *g->place);
        g->end[i] = sum += n;
    }
}

/* Group the first hashes of a batch: most or all, unless they are uneven. */
static void group_hashes(struct grouped_batch *g, struct batch batch,
                         bool places) {
    enum { FEW = 16 }; /* for which it is not worth to look for room */
    for (size_t i = 0; i < GROUPS; i++) g->end[i] = i * GROUP_ROOM;
    g->n = g->prefetched = 0;
    for (size_t room; g->n < batch.n && (room = room_of_fullest(g)) >= FEW;) {
        const size_t left = batch.n - g->n;
        const size_t to = g->n + (left < room ? left : room);
        if (places)
            scatter(g, batch.hashes, g->n, to, true);
        else
            scatter(g, batch.hashes, g->n, to, false);
        g->n = to;
    }
    compact(g, places);
}

/* Add the hashes of a group, whose stripes are locked. The kernel prefetches
 * the lines of the next groups on the way. */
static size_t add_group(calyx_filter *f, struct part *p,
                        struct grouped_batch *g, size_t group, bool *fresh) {
    const size_t from = group ? g->end[group - 1] : 0, to = g->end[group];
    bool here[GROUP_ROOM];
    const struct batch batch = {
        .hashes = g->hashes + from,
        .n = to - from,
        .more = g->n - to,
        .prefetched = g->prefetched > from ? g->prefetched - from : 0};
    const size_t added =
        f->kernel->add_batch(p->body, &p->shape, batch, fresh ? here : NULL);
    if (g->prefetched < to + PREFETCH_DISTANCE)
        g->prefetched = to + PREFETCH_DISTANCE;
    if (fresh)
        for (size_t i = from; i < to; i++) fresh[g->place[i]] = here[i - from];
    return added;
}

static struct stripe_range stripes_of_group(const struct shape *shape,
                                            size_t group) {
    const uint64_t first = (uint64_t)group << (64 - GROUP_BITS);
    return stripes_of(shape, first, first + (UINT64_MAX >> GROUP_BITS));
}

/* Groups that have to wait come last. */
static size_t add_groups(calyx_filter *f, struct part *p,
                         struct grouped_batch *g, bool *fresh) {
    size_t added = 0, waiting[GROUPS], waits = 0;
    for (size_t i = 0; i < GROUPS; i++) {
        const struct stripe_range range = stripes_of_group(&p->shape, i);
        if (g->end[i] == (i ? g->end[i - 1] : 0)) continue;
        if (!try_lock_range(f->stripes, range)) {
            waiting[waits++] = i;
            continue;
        }
        added += add_group(f, p, g, i, fresh);
        unlock_range(f->stripes, range);
    }
    if (waits) note_crowd(f->stripes);
    for (size_t i = 0; i < waits; i++) {
        const struct stripe_range range =
            stripes_of_group(&p->shape, waiting[i]);
        lock_range(f->stripes, range);
        added += add_group(f, p, g, waiting[i], fresh);
        unlock_range(f->stripes, range);
    }
    return added;
}

static NOINLINE size_t add_grouped(calyx_filter *f, struct part *p,
                                   struct batch batch, bool *fresh) {
    struct grouped_batch g;
    size_t added = 0;
    while (batch.n > 0) {
        group_hashes(&g, batch, fresh != NULL);
        added += add_groups(f, p, &g, fresh);
        batch.hashes += g.n;
        batch.n -= g.n;
        if (fresh) fresh += g.n;
    }
    return added;
}

/* ---- A batch ------------------------------------------------------------- */

/* Add a batch while all locks are held. */
static size_t add_in_pieces(calyx_filter *f, struct part *p, struct batch batch,
                            bool *fresh) {
    size_t added = 0;
    struct batch piece = batch;
    for (size_t left = batch.n; left > 0; left -= piece.n) {
        piece.n = left < BATCH_MAX ? left : BATCH_MAX;
        piece.more = left + batch.more - piece.n;
        added += f->kernel->add_batch(p->body, &p->shape, piece, fresh);
        piece.hashes += piece.n;
        piece.prefetched =
            piece.more < PREFETCH_DISTANCE ? piece.more : PREFETCH_DISTANCE;
        if (fresh) fresh += piece.n;
    }
    return added;
}

static size_t add_singly(calyx_filter *f, struct part *p, struct batch batch,
                         bool *fresh) {
    size_t added = 0;
    for (size_t i = 0; i < batch.n; i++) {
        const bool is_fresh = add_to_stripe(f, p, batch.hashes[i]);
        if (fresh) fresh[i] = is_fresh;
        added += is_fresh;
    }
    return added;
}

size_t add_batch_to_stripes(calyx_filter *f, struct part *p, struct batch batch,
                            bool *fresh) {
    enum { FEW = 32 }; /* hashes that are not worth all locks */
    const struct stripe_range all = {0, STRIPE_COUNT - 1};
    struct stripes *const s = f->stripes;
    if (batch.n < FEW) return add_singly(f, p, batch, fresh);
    if (expects_crowd(s)) return add_grouped(f, p, batch, fresh);
    if (!try_lock_range(s, all)) {
        note_crowd(s);
        return add_grouped(f, p, batch, fresh);
    }
    const size_t added = add_in_pieces(f, p, batch, fresh);
    unlock_range(s, all);
    return added;
}

/* ---- The engine of a fixed filter ---------------------------------------- */

static calyx_status striped_add(calyx_filter *f, uint64_t hash, bool *fresh) {
    struct part *const p = f->newest;
    const bool is_fresh = add_to_stripe(f, p, hash);
    count_items(f, p, is_fresh | is_counting(f));
    if (fresh) *fresh = is_fresh;
    return CALYX_OK;
}

static calyx_status striped_add_some(calyx_filter *f, struct key_window *w,
                                     bool *fresh, size_t *done) {
    struct part *const p = f->newest;
    const struct batch batch = w->batch;
    note_prefetched(&w->batch, batch.n);
    const size_t added = add_batch_to_stripes(f, p, batch, fresh);
    count_items(f, p, is_counting(f) ? batch.n : added);
    *done = batch.n;
    return CALYX_OK;
}

const struct engine striped_engine = {
    .calls =
        {
            .has = bits_has,
            .add = striped_add,
            .remove = remove_from_parts,
            .count = count_in_parts,
            .has_many = bits_has_many,
            .add_some = striped_add_some,
            .remove_batch = remove_batch_from_parts,
            .most_hashes = STRIPE_BATCH_MAX,
        },
    .is_direct = true,
    .is_intact = are_parts_intact,
    .open = allocate_stripes,
    .take_part = choose_engine_again,
    .relocate = move_stripes,
    .add_info = add_stripes_info,
    .close = free_stripes,
    .describe = describe_parts,
    .check_alike = check_alike_parts,
};

_Static_assert((int)GROUP_ROOM <= (int)BATCH_MAX, "a group fits a batch");
_Static_assert(STRIPE_BATCH_MAX <= UINT16_MAX, "places have 16 bits");
