/*
 * The wrapper of filters that are used where their bytes are, in memory or in a
 * mapped file (store/view.c, store/map.c). Before bits are read, their ranges
 * are compared with the checksums; before bits are set, their ranges are
 * marked. Where a range is damaged, or the file was cut short, a key may have
 * been there: then the answer is "yes".
 */
#include <string.h>

#include "engine/engine.h"
#include "kind/batch_loops.h"

static const struct calls *inner_of(const calyx_filter *f) {
    return &f->engine->calls;
}

static bool is_zero(const uint64_t *number) {
    return __atomic_load_n(number, __ATOMIC_ACQUIRE) == 0;
}

/* Must a key's ranges be looked at before its bits are? */
static bool may_be_damaged(const calyx_filter *f) {
    return !is_zero(&f->lent->unverified) || !is_zero(&f->lent->damaged);
}

/* Will this number of keys use most of the ranges that are left? Then one pass
 * over all of them, in order, is faster. */
static bool uses_most(size_t keys, const uint64_t *left) {
    return !is_zero(left) && keys >= __atomic_load_n(left, __ATOMIC_RELAXED);
}

/* ---- One hash ------------------------------------------------------------ */

static bool mapped_has(const calyx_filter *f, uint64_t hash) {
    if (may_be_damaged(f) && !f->engine->is_intact(f, hash)) return true;
    return inner_of(f)->has(f, hash) || is_truncated(f);
}

static calyx_status mapped_add(calyx_filter *f, uint64_t hash, bool *fresh) {
    size_t one = 1;
    if (f->read_only) return refuse_change(f);
    const calyx_status marked = f->lent->mark(f, &hash, &one);
    return marked == CALYX_OK ? inner_of(f)->add(f, hash, fresh) : marked;
}

/* What removes keys, cannot be changed in place. */
static calyx_status mapped_remove(calyx_filter *f, uint64_t hash,
                                  enum removal *became) {
    (void)f, (void)hash, (void)became;
    return CALYX_READ_ONLY;
}

/* The counters of a key are in other ranges than its bits. */
static uint32_t mapped_count(const calyx_filter *f, uint64_t hash) {
    enum { COUNT_MAX = 15 }; /* or more */
    if (is_counting(f)) f->lent->verify_rest(f);
    if (may_be_damaged(f) && mapped_has(f, hash))
        return is_counting(f) ? COUNT_MAX : 1;
    const uint32_t count = inner_of(f)->count(f, hash);
    return count ? count : is_truncated(f);
}

/* ---- Many ---------------------------------------------------------------- */

/* Returns the number of "yes". */
static size_t has_where_intact(const calyx_filter *f, struct batch batch,
                               bool *found) {
    const struct key_list these = {.hashes = batch.hashes, .n = batch.n};
    bool damaged[BATCH_MAX];
    for (size_t i = 0; i < batch.n; i++)
        damaged[i] = !f->engine->is_intact(f, batch.hashes[i]);
    inner_of(f)->has_many(f, &these, found);
    for (size_t i = 0; i < batch.n; i++) found[i] |= damaged[i];
    return count_true(found, batch.n);
}

static size_t mapped_has_many(const calyx_filter *f,
                              const struct key_list *keys, bool *found) {
    if (uses_most(keys->n, &f->lent->unverified)) f->lent->verify_rest(f);
    const size_t yes =
        may_be_damaged(f)
            ? has_in_batches(f, keys, found, has_where_intact, false)
            : inner_of(f)->has_many(f, keys, found);
    if (yes == keys->n || !is_truncated(f)) return yes;
    if (found) memset(found, true, keys->n);
    return keys->n;
}

/* Add the first n hashes of a window. */
static calyx_status add_first(calyx_filter *f, struct key_window *w, size_t n,
                              bool *fresh, size_t *done) {
    const size_t later = w->batch.n - n;
    w->batch.n -= later;
    w->batch.more += later;
    const calyx_status status = inner_of(f)->add_some(f, w, fresh, done);
    w->batch.n += later;
    w->batch.more -= later;
    return status;
}

static calyx_status mapped_add_some(calyx_filter *f, struct key_window *w,
                                    bool *fresh, size_t *done) {
    size_t n = w->batch.n;
    if (f->read_only) return refuse_change(f);
    if (uses_most(w->keys->n - w->done, &f->lent->unmarked))
        f->lent->mark_all(f, true); /* `mark` returns its errors */
    const calyx_status marked = f->lent->mark(f, w->batch.hashes, &n);
    return marked == CALYX_OK ? add_first(f, w, n, fresh, done) : marked;
}

static calyx_status mapped_remove_batch(calyx_filter *f, struct key_window *w,
                                        bool *found, size_t *removed) {
    (void)f, (void)w, (void)found, (void)removed;
    return CALYX_READ_ONLY;
}

const struct calls mapped_calls = {
    .has = mapped_has,
    .add = mapped_add,
    .remove = mapped_remove,
    .count = mapped_count,
    .has_many = mapped_has_many,
    .add_some = mapped_add_some,
    .remove_batch = mapped_remove_batch,
    .most_hashes = BATCH_MAX,
};

/* ---- The state of the bytes ---------------------------------------------- */

bool are_parts_intact(const calyx_filter *f, uint64_t hash) {
    for (const struct part *p = newest_of(f); p; p = p->older)
        if (!f->lent->is_intact(f, p, hash)) return false;
    return true;
}

bool is_truncated(const calyx_filter *f) {
    const uint64_t *const guard = f->lent ? f->lent->guard : NULL;
    return guard && __atomic_load_n(guard, __ATOMIC_RELAXED) == 0;
}

uint64_t damage_at(const calyx_filter *f) {
    return f->lent ? __atomic_load_n(&f->lent->damage_at, __ATOMIC_RELAXED) : 0;
}

void verify_whole(const calyx_filter *f) {
    if (!f->lent) return;
    f->lent->verify_rest(f);
    f->lent->repair_items(f);
}

calyx_status mark_whole(calyx_filter *f) {
    return f->lent ? f->lent->mark_all(f, false) : CALYX_OK;
}
