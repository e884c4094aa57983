/*
 * The engine of filters that are one table of fixed size (table/fixed.c).
 *
 * Threads that share a table write in turn. Readers take no lock: a line says
 * nothing of its own while it changes, so a number for each 64th line is odd
 * for that time, and a reader that sees it odd, or changed, looks again. It
 * does so a few times, and then answers "yes", as a filter may: it never waits
 * for a writer that lost its processor. While nobody writes, one number for the
 * whole table says so, and a batch is looked up as without threads.
 */
#include "engine/fixed_engine.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/spin_lock.h"
#include "kind/prefetch.h"
#include "table/fixed.h"

#if !CALYX_NO_BUCKET

/* ---- Turns --------------------------------------------------------------- */

/* Its address is another one in each thread. */
static _Thread_local char this_thread;

static bool is_locked_here(const calyx_filter *f) {
    return f->turns &&
           __atomic_load_n(&f->turns->by, __ATOMIC_RELAXED) == &this_thread;
}

static void lock_table(const calyx_filter *f) {
    struct fixed_turns *const turns = f->turns;
    if (!turns) return;
    if (!is_locked_here(f)) {
        spin_lock(&turns->locked);
        __atomic_store_n(&turns->by, &this_thread, __ATOMIC_RELAXED);
    }
    turns->times++;
}

static void unlock_table(const calyx_filter *f) {
    struct fixed_turns *const turns = f->turns;
    if (!turns || --turns->times > 0) return;
    __atomic_store_n(&turns->by, NULL, __ATOMIC_RELAXED);
    spin_unlock(&turns->locked);
}

/* Around a change, by one thread at a time. A reader that sees a word of the
 * change sees the odd number: see put_word. */
static void begin_change(uint32_t *version) {
    __atomic_store_n(version, *version + 1, __ATOMIC_RELAXED);
}

static void end_change(uint32_t *version) {
    __atomic_store_n(version, *version + 1, __ATOMIC_RELEASE);
}

static uint32_t get_version(const uint32_t *version) {
    return __atomic_load_n(version, __ATOMIC_ACQUIRE);
}

static bool is_unchanged(const uint32_t *version, uint32_t before) {
    return __atomic_load_n(version, __ATOMIC_RELAXED) == before;
}

static void begin_writing(const calyx_filter *f) {
    lock_table(f);
    if (f->turns && f->turns->times == 1) begin_change(&f->turns->writers);
}

static void end_writing(const calyx_filter *f) {
    if (f->turns && f->turns->times == 1) end_change(&f->turns->writers);
    unlock_table(f);
}

static uint32_t *version_of(const calyx_filter *f, uint64_t hash) {
    const uint64_t line = scale64(hash, f->newest->shape.blocks);
    return &f->turns->versions[line % LINE_STRIPES];
}

static calyx_status share_table(calyx_filter *f) {
    f->turns = take_struct(&f->memory, sizeof *f->turns);
    if (!f->turns) return CALYX_NO_MEMORY;
    memset(f->turns, 0, sizeof *f->turns);
    f->concurrent = true;
    return CALYX_OK;
}

static calyx_status open_turns(calyx_filter *f) {
    f->turns = NULL;
    return f->concurrent ? share_table(f) : CALYX_OK;
}

static void close_turns(calyx_filter *f) {
    if (f->turns) give_block(&f->memory, f->turns, sizeof *f->turns);
}

static void relocate_turns(calyx_filter *f, calyx_move_function *move,
                           void *context) {
    if (f->turns) f->turns = move(context, f->turns, sizeof *f->turns);
}

/* ---- Lookups ------------------------------------------------------------- */

static bool fixed_has(const calyx_filter *f, uint64_t hash) {
    enum { LOOKS = 32 };
    if (!f->turns) return in_part(f, f->newest, hash);
    const uint32_t *const version = version_of(f, hash);
    for (int i = 0; i < LOOKS; i++) {
        const uint32_t before = get_version(version);
        const bool has = in_part(f, f->newest, hash);
        if (before % 2 == 0 && is_unchanged(version, before)) return has;
    }
    return true;
}

static size_t has_one_by_one(const calyx_filter *f, struct batch batch,
                             bool *found) {
    size_t yes = 0;
    for (size_t i = 0; i < batch.n; i++) {
        const bool has = fixed_has(f, batch.hashes[i]);
        if (found) found[i] = has;
        yes += has;
    }
    return yes;
}

/* The lines are in a near cache if a writer has come between. */
static size_t has_batch(const calyx_filter *f, struct batch batch,
                        bool *found) {
    const struct part *const p = f->newest;
    const uint32_t before = f->turns ? get_version(&f->turns->writers) : 0;
    const size_t yes = f->kernel->has_batch(p->body, &p->shape, batch, found);
    if (!f->turns ||
        (before % 2 == 0 && is_unchanged(&f->turns->writers, before)))
        return yes;
    return has_one_by_one(f, batch, found);
}

static size_t fixed_has_many(const calyx_filter *f, const struct key_list *keys,
                             bool *found) {
    return has_in_batches(f, keys, found, has_batch, false);
}

static uint32_t fixed_count_of(const calyx_filter *f, uint64_t hash) {
    const struct part *const p = f->newest;
    if (!is_counting(f)) return fixed_has(f, hash);
    lock_table(f);
    const uint32_t n = f->kind->counting->count(p->body, &p->shape, hash);
    unlock_table(f);
    return n;
}

/* ---- Changes ------------------------------------------------------------- */

/* Keys that may still be added. */
static uint64_t room_of(const calyx_filter *f) {
    const struct part *const p = f->newest;
    const uint64_t most = f->strict ? p->capacity : fixed_limit(&p->shape);
    const uint64_t items = items_of(p);
    return items < most ? most - items : 0;
}

/* Does a key that was found, and added, count as one more? As in struct
 * fixed_addition. */
static bool counts_again(const calyx_filter *f, uint64_t hash) {
    const struct part *const p = f->newest;
    const struct fixed_table t = fixed_table_of(p->body, &p->shape);
    const struct fixed_place at = fixed_place_of(&t, hash);
    if (get_header(fixed_line(&t, at.line)) & SATURATED) return true;
    return is_counting(f) && fixed_count(&t, &at) < FIXED_COPIES_MOST;
}

static void count_more(calyx_filter *f, uint64_t more) {
    struct part *const p = f->newest;
    __atomic_store_n(&p->items, items_of(p) + more, __ATOMIC_RELAXED);
}

static bool add_hash(calyx_filter *f, uint64_t hash) {
    struct part *const p = f->newest;
    if (!f->turns) return f->kernel->add(p->body, &p->shape, hash);
    uint32_t *const version = version_of(f, hash);
    begin_change(version);
    const bool fresh = f->kernel->add(p->body, &p->shape, hash);
    end_change(version);
    return fresh;
}

static calyx_status add_locked(calyx_filter *f, uint64_t hash, bool *fresh) {
    const bool may_be_there = f->strict || !is_counting(f);
    *fresh = false;
    if (room_of(f) == 0 && !(may_be_there && in_part(f, f->newest, hash)))
        return CALYX_FULL;
    *fresh = add_hash(f, hash);
    count_more(f, *fresh || counts_again(f, hash));
    return CALYX_OK;
}

static calyx_status fixed_add(calyx_filter *f, uint64_t hash, bool *fresh) {
    bool is_fresh;
    if (is_locked_here(f)) return CALYX_CANNOT;
    begin_writing(f);
    const calyx_status status = add_locked(f, hash, &is_fresh);
    end_writing(f);
    if (fresh && status == CALYX_OK) *fresh = is_fresh;
    return status;
}

/* Inlined: gcc drops a call that only prefetches. */
ALWAYS_INLINE void prefetch_hash(const calyx_filter *f,
                                 const struct batch *batch, size_t i) {
    const struct part *const p = f->newest;
    if (i >= batch->n + batch->more) return;
    prefetch_l2(p->body +
                LINE_SIZE * scale64(batch->hashes[i], p->shape.blocks));
}

/* Readers must know of each line that changes. Returns how many keys count as
 * one more. */
static size_t add_each(calyx_filter *f, const struct batch *batch,
                       bool *fresh) {
    size_t more = 0;
    for (size_t i = 0; i < batch->n; i++) {
        prefetch_hash(f, batch, i + PREFETCH_DISTANCE);
        const bool is_fresh = add_hash(f, batch->hashes[i]);
        if (fresh) fresh[i] = is_fresh;
        more += is_fresh || counts_again(f, batch->hashes[i]);
    }
    return more;
}

/* A shared table is left to others in between. */
static calyx_status fixed_add_some(calyx_filter *f, struct key_window *w,
                                   bool *fresh, size_t *done) {
    enum { TURN = 256 };
    struct part *const p = f->newest;
    calyx_status status = CALYX_OK;
    if (is_locked_here(f)) return CALYX_CANNOT;
    begin_writing(f);
    const size_t most = f->turns && w->batch.n > TURN ? TURN : w->batch.n;
    const struct batch these = {
        .hashes = w->batch.hashes,
        .n = lesser_of(most, (size_t)room_of(f)),
        .more = w->batch.n + w->batch.more - lesser_of(most, room_of(f)),
        .prefetched = w->batch.prefetched,
    };
    *done = these.n;
    if (these.n == 0) {
        bool ignored;
        status = add_locked(f, w->batch.hashes[0], fresh ? fresh : &ignored);
        *done = status == CALYX_OK;
    } else {
        const size_t more =
            f->turns ? add_each(f, &these, fresh)
                     : f->kernel->add_batch(p->body, &p->shape, these, fresh);
        count_more(f, more);
        note_prefetched(&w->batch, these.n);
    }
    end_writing(f);
    return status;
}

static enum removal remove_hash(calyx_filter *f, uint64_t hash) {
    struct part *const p = f->newest;
    uint32_t *const version = f->turns ? version_of(f, hash) : NULL;
    if (version) begin_change(version);
    const enum removal became = f->kernel->remove(p->body, &p->shape, hash);
    if (version) end_change(version);
    return became;
}

static void count_removed(calyx_filter *f, uint64_t removed) {
    const uint64_t items = items_of(f->newest);
    __atomic_store_n(&f->newest->items, items > removed ? items - removed : 0,
                     __ATOMIC_RELAXED);
}

static calyx_status fixed_remove_one(calyx_filter *f, uint64_t hash,
                                     enum removal *became) {
    if (is_locked_here(f)) return CALYX_CANNOT;
    begin_writing(f);
    *became = remove_hash(f, hash);
    count_removed(f, *became == KEY_REMOVED);
    end_writing(f);
    return CALYX_OK;
}

static calyx_status fixed_remove_batch(calyx_filter *f, struct key_window *w,
                                       bool *found, size_t *removed) {
    struct part *const p = f->newest;
    const struct batch *const batch = &w->batch;
    if (is_locked_here(f)) return CALYX_CANNOT;
    begin_writing(f);
    *removed = 0;
    if (!f->turns)
        *removed = f->kernel->remove_batch(p->body, &p->shape, *batch, found);
    for (size_t i = 0; f->turns && i < batch->n; i++) {
        prefetch_hash(f, batch, i + PREFETCH_DISTANCE);
        const enum removal became = remove_hash(f, batch->hashes[i]);
        if (found) found[i] = became != KEY_ABSENT;
        *removed += became == KEY_REMOVED;
    }
    count_removed(f, *removed);
    end_writing(f);
    return CALYX_OK;
}

/* ---- Merging ------------------------------------------------------------- */

static calyx_status check_alike(const calyx_filter *a, const calyx_filter *b,
                                calyx_error *why) {
    return check_shape(a->newest, b->newest, why);
}

static calyx_status merge_line(calyx_filter *f, const struct fixed_table *to,
                               const struct fixed_table *from, uint64_t line) {
    struct line_keys keys;
    calyx_status status = CALYX_OK;
    uint32_t *const version =
        f->turns ? &f->turns->versions[line % LINE_STRIPES] : NULL;
    fixed_list(from, line, &keys);
    if (version) begin_change(version);
    for (uint32_t i = 0; i < keys.n && status == CALYX_OK; i++) {
        if (room_of(f) > 0)
            count_more(f, fixed_add_place(to, &keys.key[i]));
        else if (!fixed_look_again(to, &keys.key[i]))
            status = CALYX_FULL;
    }
    if (keys.saturated) fixed_saturate(to, line);
    if (version) end_change(version);
    return status;
}

/* A step over some lines of the other table. */
static calyx_status merge_some(calyx_filter *f, const calyx_filter *other,
                               uint64_t most, calyx_progress *at,
                               calyx_error *why) {
    enum { SHORTER = 32 }; /* a line takes as long as this many lines of bits */
    const struct part *const p = f->newest, *const q = other->newest;
    const struct fixed_table to = fixed_table_of(p->body, &p->shape);
    const struct fixed_table from = fixed_table_of(q->body, &q->shape);
    const uint64_t lines = most / SHORTER / LINE_SIZE;
    uint64_t line = at->at / LINE_SIZE;
    if (is_locked_here(f) || is_locked_here(other))
        return fail(why, CALYX_CANNOT, "%s", calyx_status_text(CALYX_CANNOT));
    /* In this order in all threads. */
    const bool f_first = (uintptr_t)f < (uintptr_t)other;
    if (!f_first) lock_table(other);
    begin_writing(f);
    if (f_first) lock_table(other);
    calyx_status status = CALYX_OK;
    for (uint64_t i = 0; status == CALYX_OK && i < (lines ? lines : 1) &&
                         line < q->shape.blocks;
         i++)
        status = merge_line(f, &to, &from, line++);
    end_writing(f);
    unlock_table(other);
    if (status != CALYX_OK)
        return fail(why, status,
                    "%s; the filter now has some of the other's keys, and all "
                    "of its own",
                    calyx_status_text(status));
    at->at = line * LINE_SIZE;
    return CALYX_OK;
}

/* ---- Description --------------------------------------------------------- */

static void describe_fixed(const calyx_filter *f, const uint64_t *counts,
                           calyx_info *info) {
    (void)counts; /* the number of bits set says nothing */
    const struct part *const p = newest_of(f);
    const double blocks = (double)p->shape.blocks;
    const double slots = blocks * slot_form_of(p->shape.probes)->slots;
    const double codes = blocks * RUNS * remainders_of(p->shape.probes);
    struct fixed_sums sums = {.entries = info->items};
    if (p->body) {
        const struct fixed_table t = fixed_table_of(p->body, &p->shape);
        lock_table(f);
        sums = fixed_sum(&t);
        unlock_table(f);
    }
    const double saturated = (double)sums.saturated / blocks;
    info->distinct = (double)sums.entries;
    info->saturated = sums.saturated;
    info->fpr_now = fmin(1, saturated - expm1(-(double)sums.entries / codes));
    info->fill = fmin(1, (double)sums.entries / slots);
}

static void add_info(const calyx_filter *f, calyx_info *info) {
    if (f->turns) info->memory += sizeof *f->turns;
}

const struct engine fixed_engine = {
    .calls =
        {
            .has = fixed_has,
            .add = fixed_add,
            .remove = fixed_remove_one,
            .count = fixed_count_of,
            .has_many = fixed_has_many,
            .add_some = fixed_add_some,
            .remove_batch = fixed_remove_batch,
            .most_hashes = BATCH_MAX,
        },
    .is_intact = are_parts_intact,
    .open = open_turns,
    .relocate = relocate_turns,
    .close = close_turns,
    .share = share_table,
    .lock = lock_table,
    .unlock = unlock_table,
    .add_info = add_info,
    .describe = describe_fixed,
    .check_alike = check_alike,
    .merge_some = merge_some,
};
#endif
