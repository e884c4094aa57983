/*
 * The road of a key: bytes to hash, hash to parts, one at a time or in runs.
 *
 * While a run of hashes is asked or added, the memory that the next needs is on
 * its way (kind/kernel.h tells how); so the keys behind a run are hashed
 * before.
 */
#include <string.h>

#include "base/compiler.h"
#include "filter/filter.h"
#include "hash/xxh3.h"
#include "kind/batch.h"

/* ---- One hash ------------------------------------------------------------ */

static bool in_part(const calyx_filter *f, const struct part *p,
                    uint64_t hash) {
    return f->kernel->has(p->body, &p->shape, hash);
}

/* Is a "no" of this part not to be trusted? Then the answer is "yes". */
static bool is_damaged_at(const calyx_filter *f, const struct part *p,
                          uint64_t hash) {
    return may_be_damaged(f) && !f->ranges->is_intact(f, p, hash);
}

/* Newest first: it is the largest, and holds most of the keys. */
static __attribute__((noinline)) bool in_any_part(const calyx_filter *f,
                                                  uint64_t hash) {
    for (const struct part *p = newest_of(f); p; p = p->older)
        if (is_damaged_at(f, p, hash) || in_part(f, p, hash)) return true;
    return is_truncated(f); /* then no "no" can be trusted */
}

/* Where there is but one part, nothing here waits for the answer: so the
 * caller's next question may be under way before this one is answered. */
static inline bool has_hash(const calyx_filter *f, uint64_t hash) {
    const struct part *p = newest_of(f);
    if (p->older || f->image) return in_any_part(f, hash);
    return in_part(f, p, hash);
}

/*
 * In a counting filter a key lives in the oldest part that has it. A part that
 * is no longer the newest never gains a bit: it is added to only if it has the
 * key already. So once a part was passed over, because it did not have the key,
 * it never will; and remove finds the part that add chose.
 */
static struct part *home_of(const calyx_filter *f, uint64_t hash) {
    struct part *home = NULL;
    for (struct part *p = newest_of(f); p; p = p->older)
        if (in_part(f, p, hash)) home = p;
    return home;
}

/* Does the number of keys in the newest part matter? */
static bool is_bounded(const calyx_filter *f) {
    return f->growth > 0 || f->strict;
}

/* A test lets another thread claim room here, at the worst of times. */
#ifndef CALYX_BEFORE_CLAIM
#define CALYX_BEFORE_CLAIM() (void)0
#endif

/* Claim room for at most n keys in a part, before they are added, so that
 * threads cannot fill it together beyond its capacity. What was claimed for
 * keys that it already had is given back after; as others may be refused till
 * then, a thread claims little at a time where there are others. */
static uint64_t claim_room(const calyx_filter *f, struct part *p, uint64_t n) {
    enum { MOST = 256 };
    if (!is_bounded(f)) return n;
    if (f->concurrent && n > MOST) n = MOST;
    uint64_t items = items_of(p), room;
    do {
        room = items < p->capacity ? p->capacity - items : 0;
        if (room > n) room = n;
        CALYX_BEFORE_CLAIM();
    } while (room &&
             !__atomic_compare_exchange_n(&p->items, &items, items + room, true,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return room;
}

static void count_items(const calyx_filter *f, struct part *p, uint64_t claimed,
                        uint64_t taken) {
    const uint64_t more = taken - (is_bounded(f) ? claimed : 0);
    if (f->concurrent)
        __atomic_fetch_add(&p->items, more, __ATOMIC_RELAXED);
    else
        p->items += more;
}

static calyx_status add_at_home(calyx_filter *f, struct part *home,
                                uint64_t hash, bool *fresh) {
    *fresh = false;
    if (!is_counting(f)) return CALYX_OK;
    f->kernel->add(home->body, &home->shape, hash);
    home->items++;
    return CALYX_OK;
}

static __attribute__((noinline)) calyx_status add_bounded(calyx_filter *f,
                                                          uint64_t hash,
                                                          bool *fresh) {
    struct part *p;
    size_t one = 1;
    const calyx_status marked =
        f->ranges ? f->ranges->mark(f, &hash, &one) : CALYX_OK;
    if (marked != CALYX_OK) return marked;
    for (;;) {
        p = newest_of(f);
        const bool full = is_bounded(f) && items_of(p) >= p->capacity;
        const bool looks = p->older || full;
        struct part *home = looks ? home_of(f, hash) : NULL;
        if (home) return add_at_home(f, home, hash, fresh);
        if (claim_room(f, p, 1)) break;
        const calyx_status grown = f->growth > 0 ? grow(f, p) : CALYX_FULL;
        if (grown != CALYX_OK) return grown;
    }
    *fresh = f->kernel->add(p->body, &p->shape, hash);
    count_items(f, p, 1, *fresh || is_counting(f));
    return CALYX_OK;
}

/* As in has_hash, nothing waits for the answer where it need not. */
static inline calyx_status add_hash(calyx_filter *f, uint64_t hash,
                                    bool *fresh) {
    struct part *p = newest_of(f);
    if (f->read_only) return CALYX_READ_ONLY;
    if (p->older || is_bounded(f) || f->image)
        return add_bounded(f, hash, fresh);
    *fresh = f->kernel->add(p->body, &p->shape, hash);
    count_items(f, p, 0, *fresh | is_counting(f));
    return CALYX_OK;
}

static void uncount_items(struct part *p, uint64_t removed) {
    p->items -= removed < p->items ? removed : p->items;
}

/* An only part is not asked first: whether it has the key shows on removing. */
static enum removal remove_hash(calyx_filter *f, uint64_t hash) {
    struct part *const newest = newest_of(f);
    struct part *const home = newest->older ? home_of(f, hash) : newest;
    if (!home) return KEY_ABSENT;
    const enum removal became =
        f->kernel->remove(home->body, &home->shape, hash);
    uncount_items(home, became == KEY_REMOVED);
    return became;
}

/* ---- Where hashes come from ---------------------------------------------- */

/* Keys in one of three forms; the other two are NULL. */
struct keys {
    const calyx_key *bytes;
    const uint64_t *numbers, *hashes;
    size_t n;
};

/* The hashes that are on their way: a run, and behind it what the next begins
 * with. If they were not given, they are in the room. */
struct window {
    struct batch run;
    size_t passed;  /* keys that have left it                          */
    bool by_kernel; /* are numbers hashed when their lines are called? */
    uint64_t room[BATCH_MAX + PREFETCH_DISTANCE];
};

static size_t at_most(size_t n, size_t limit) {
    return n < limit ? n : limit;
}

/* The hashes of n keys from some place on, perhaps in the room given. */
static const uint64_t *hash_some(const calyx_filter *f, const struct keys *keys,
                                 size_t from, size_t n, uint64_t *room) {
    if (keys->hashes) return keys->hashes + from;
    if (keys->bytes)
        f->hash->many(&f->secret, keys->bytes + from, n, keys->n - from - n,
                      room);
    else
        f->hash->numbers(&f->secret, f->kernel->level, keys->numbers + from, n,
                         room);
    return room;
}

/* Let keys into the window, behind those that are in it. */
static void fill_window(const calyx_filter *f, const struct keys *keys,
                        struct window *w) {
    const size_t left = keys->n - w->passed, kept = w->run.more;
    const size_t all =
        keys->hashes ? left : at_most(left, BATCH_MAX + PREFETCH_DISTANCE);
    w->run.n = at_most(all, BATCH_MAX);
    w->run.more = all - w->run.n;
    if (all == 0) return; /* nor may there be an array */
    if (keys->hashes) {
        w->run.hashes = keys->hashes + w->passed;
        return;
    }
    memmove(w->room, w->run.hashes, kept * sizeof *w->room);
    w->run.hashes = w->room;
    if (w->by_kernel)
        w->run.numbers = keys->numbers + w->passed;
    else
        hash_some(f, keys, w->passed + kept, all - kept, w->room + kept);
}

static void open_window(const calyx_filter *f, const struct keys *keys,
                        struct window *w, bool by_kernel) {
    w->passed = 0;
    w->by_kernel = by_kernel;
    w->run =
        (struct batch){.hashes = w->room, .flip = xxh3_flip(f->secret.seed)};
    fill_window(f, keys, w);
}

/* A kernel has touched the first n hashes. */
static void note_prefetched(struct batch *run, size_t n) {
    run->prefetched = at_most(n + PREFETCH_DISTANCE, run->n + run->more);
}

/* n hashes leave the window; more come in when the run is over. */
static void pass(const calyx_filter *f, const struct keys *keys,
                 struct window *w, size_t n) {
    w->passed += n;
    w->run.hashes += n;
    w->run.n -= n;
    w->run.prefetched -= at_most(w->run.prefetched, n);
    if (w->run.n == 0) fill_window(f, keys, w);
}

/* ---- Asking many --------------------------------------------------------- */

enum { LEAST_LARGE_BYTES = 16 << 20 }; /* a part that the caches hardly hold */

static bool is_large(const calyx_filter *f, const struct part *p) {
    return bits_bytes(f->kind, &p->shape) >= LEAST_LARGE_BYTES;
}

/* Ask these parts, the given one and the older, for hashes at once, as far as
 * the kernel can; what remains is left to the caller. */
static const struct part *has_in_many(const calyx_filter *f,
                                      const struct part *p,
                                      const uint64_t *hashes, size_t n,
                                      bool *found) {
    while (f->kernel->has_in_any && p) {
        struct part_view fields[PARTS_AT_ONCE];
        size_t count = 0;
        for (; p && count < PARTS_AT_ONCE; p = p->older, count++) {
            if (p->shape.blocks >> 32) break;
            fields[count] = (struct part_view){p->body, p->shape};
        }
        if (count == 0) break;
        f->kernel->has_in_any(fields, count, hashes, n, found);
    }
    return p;
}

/* Ask one part after the other for the hashes of a run not found yet. */
static void has_in_each(const calyx_filter *f, const struct part *p,
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

/* Ask one part as if it were the only one. From memory that is a fifth faster
 * than all parts at once. */
static void has_in_large(const calyx_filter *f, const struct part *p,
                         const uint64_t *hashes, size_t n, bool *found) {
    bool here[BATCH_MAX];
    f->kernel->has_batch(p->body, &p->shape, batch_of(hashes, n), here);
    for (size_t i = 0; i < n; i++) found[i] |= here[i];
}

/* Which hashes of a run are in this part, or an older one? The newest parts are
 * the largest; of few hashes none has one ahead to call, and all parts at once
 * have more on their way. */
static size_t has_in_these(const calyx_filter *f, const struct part *p,
                           const uint64_t *hashes, size_t n, bool *found) {
    memset(found, false, n);
    for (; p && n > PREFETCH_DISTANCE && is_large(f, p); p = p->older)
        has_in_large(f, p, hashes, n, found);
    p = has_in_many(f, p, hashes, n, found);
    if (p) has_in_each(f, p, hashes, n, found);
    return count_true(found, n);
}

/* Will so many keys come by most of the ranges that are left? */
static bool is_most(const uint64_t *left, size_t keys) {
    const uint64_t n = __atomic_load_n(left, __ATOMIC_RELAXED);
    return n > 0 && keys >= n;
}

/* Compare the ranges of a run of keys with their checksums. */
static __attribute__((noinline)) void check_run(const calyx_filter *f,
                                                const struct part *p,
                                                const uint64_t *hashes,
                                                size_t n) {
    for (; p; p = p->older)
        for (size_t i = 0; i < n; i++) f->ranges->is_intact(f, p, hashes[i]);
}

/* Answer "yes" for keys in ranges that are damaged; tells how many are "yes"
 * now. */
static __attribute__((noinline)) size_t answer_yes_where_damaged(
    const calyx_filter *f, const struct part *p, const uint64_t *hashes,
    size_t n, bool *found) {
    for (; p; p = p->older)
        for (size_t i = 0; i < n; i++)
            if (!found[i]) found[i] = is_damaged_at(f, p, hashes[i]);
    return count_true(found, n);
}

/* If the file was cut short, no "no" can be trusted. */
static size_t answer_yes_if_truncated(const calyx_filter *f, size_t yes,
                                      bool *found, size_t n) {
    if (yes == n || !is_truncated(f)) return yes;
    if (found) memset(found, true, n);
    return n;
}

/*
 * The higher a hash, the farther on is its line, in every part. So hashes in
 * rough order walk through all the parts from front to end, and find lines and
 * pages near at hand that the hashes before them wanted. That is worth more
 * than the time it takes, if hashes are many, and parts large.
 */
enum {
    ORDERED = 4096, /* hashes at a time: twice as many gain a tenth, but take
                       90 KiB of stack in place of 50 */
    DRAWER_BITS = 8,
    DRAWERS = 1 << DRAWER_BITS,
    LEAST_ORDERED = 1024,
    LEAST_ORDERED_BYTES = 1 << 20
};
_Static_assert(ORDERED <= UINT16_MAX, "places are numbers of 16 bits");

static bool pays_to_order(const calyx_filter *f, const struct part *p,
                          size_t n) {
    if (!p->older || !f->kernel->has_in_any || n < LEAST_ORDERED) return false;
    uint64_t bytes = 0;
    for (; p; p = p->older) bytes += bits_bytes(f->kind, &p->shape);
    return bytes >= LEAST_ORDERED_BYTES;
}

/* Tells which to take first, second, and so on. */
static void find_order(uint16_t *order, const uint64_t *hashes, size_t n) {
    const int shift = 64 - DRAWER_BITS;
    uint16_t next[DRAWERS + 1] = {0};
    for (size_t i = 0; i < n; i++) next[(hashes[i] >> shift) + 1]++;
    for (size_t i = 1; i < DRAWERS; i++)
        next[i] = (uint16_t)(next[i] + next[i - 1]);
    for (size_t i = 0; i < n; i++)
        order[next[hashes[i] >> shift]++] = (uint16_t)i;
}

static __attribute__((noinline)) size_t has_in_order(const calyx_filter *f,
                                                     const struct part *p,
                                                     const struct keys *keys,
                                                     bool *found) {
    uint64_t room[ORDERED];
    uint16_t order[ORDERED];
    size_t total = 0;
    for (size_t from = 0, n; from < keys->n; from += n) {
        n = at_most(keys->n - from, ORDERED);
        const uint64_t *const hashes = hash_some(f, keys, from, n, room);
        bool *const answers = found ? found + from : NULL;
        size_t yes = 0;
        find_order(order, hashes, n);
        for (size_t i = 0, some; i < n; i += some) {
            uint64_t taken[BATCH_MAX];
            bool here[BATCH_MAX];
            some = at_most(n - i, BATCH_MAX);
            for (size_t j = 0; j < some; j++) taken[j] = hashes[order[i + j]];
            if (may_be_damaged(f)) check_run(f, p, taken, some);
            size_t these = has_in_these(f, p, taken, some, here);
            if (may_be_damaged(f))
                these = answer_yes_where_damaged(f, p, taken, some, here);
            yes += these;
            for (size_t j = 0; answers && j < some; j++)
                answers[order[i + j]] = here[j];
        }
        total += answer_yes_if_truncated(f, yes, answers, n);
    }
    return total;
}

/* Does it pay that the kernel hashes numbers while it waits for lines? In cache
 * it waits for none, and is slower for it by a twentieth. */
static bool hashes_on_its_way(const calyx_filter *f, const struct part *p,
                              const struct keys *keys) {
    return keys->numbers && !p->older && is_large(f, p) && f->hash->is_xxh3 &&
           f->kernel->hashes_numbers && !may_be_damaged(f);
}

static __attribute__((noinline)) size_t has_in_runs(const calyx_filter *f,
                                                    const struct part *p,
                                                    const struct keys *keys,
                                                    bool *found) {
    bool here[BATCH_MAX];
    size_t total = 0;
    struct window w;
    open_window(f, keys, &w, hashes_on_its_way(f, p, keys));
    while (w.run.n > 0) {
        const size_t n = w.run.n;
        bool *const answers = found ? found : here;
        if (may_be_damaged(f)) check_run(f, p, w.run.hashes, n);
        size_t yes =
            p->older ? has_in_these(f, p, w.run.hashes, n, answers)
                     : f->kernel->has_batch(p->body, &p->shape, w.run, answers);
        if (may_be_damaged(f))
            yes = answer_yes_where_damaged(f, p, w.run.hashes, n, answers);
        total += answer_yes_if_truncated(f, yes, answers, n);
        note_prefetched(&w.run, n);
        pass(f, keys, &w, n);
        if (found) found += n;
    }
    return total;
}

/* Neither is melted in, so that the stack is not taken for both. */
static size_t has_keys(const calyx_filter *f, const struct keys *keys,
                       bool *found) {
    const struct part *p = newest_of(f);
    /* In order it is faster than here and there. */
    if (f->ranges && is_most(&f->ranges->unverified, keys->n))
        f->ranges->verify_rest(f);
    return pays_to_order(f, p, keys->n) ? has_in_order(f, p, keys, found)
                                        : has_in_runs(f, p, keys, found);
}

/* ---- Adding many --------------------------------------------------------- */

/* Add a run to a filter that has grown: what an older part has stays there.
 * Tells how many were fresh, as the kernel does. */
static size_t add_to_grown(calyx_filter *f, struct part *p,
                           const uint64_t *hashes, size_t n, bool *fresh) {
    uint64_t new[BATCH_MAX];
    bool here[BATCH_MAX], answers[BATCH_MAX];
    has_in_these(f, p->older, hashes, n, here);
    size_t news = 0;
    for (size_t i = 0; i < n; i++) {
        new[news] = hashes[i];
        news += !here[i];
    }
    const size_t total =
        f->kernel->add_batch(p->body, &p->shape, batch_of(new, news), answers);
    if (fresh)
        for (size_t i = 0, j = 0; i < n; i++)
            fresh[i] = !here[i] && answers[j++];
    return total;
}

/* Add the first n hashes of a run to a filter that has not grown. */
static size_t add_to_only(calyx_filter *f, struct part *p, struct batch *run,
                          size_t n, bool *fresh) {
    struct batch first = *run;
    first.n = n;
    first.more += run->n - n;
    note_prefetched(run, n);
    return f->kernel->add_batch(p->body, &p->shape, first, fresh);
}

/* Add as many of a run as one step can, at least one: until the newest part is
 * full, or a key at a time where every key must be looked at. */
static calyx_status add_some(calyx_filter *f, struct batch *run, bool *fresh,
                             size_t *done) {
    struct part *p = newest_of(f);
    const bool singly = p->older && is_counting(f);
    size_t may = run->n;
    const calyx_status marked =
        f->ranges ? f->ranges->mark(f, run->hashes, &may) : CALYX_OK;
    if (marked != CALYX_OK) return marked;
    const size_t n = singly ? 0 : (size_t)claim_room(f, p, may);
    if (n == 0) {
        bool ignored;
        *done = 1;
        return add_hash(f, *run->hashes, fresh ? fresh : &ignored);
    }
    const size_t missing = p->older ? add_to_grown(f, p, run->hashes, n, fresh)
                                    : add_to_only(f, p, run, n, fresh);
    count_items(f, p, n, is_counting(f) ? n : missing);
    *done = n;
    return CALYX_OK;
}

static calyx_status add_keys(calyx_filter *f, const struct keys *keys,
                             bool *fresh, size_t *done) {
    if (done) *done = 0;
    if (f->read_only) return CALYX_READ_ONLY;
    calyx_status status = CALYX_OK;
    if (f->ranges && is_most(&f->ranges->unmarked, keys->n))
        f->ranges->mark_all(f, true); /* what fails shows below */
    struct window w;
    open_window(f, keys, &w, false);
    while (w.run.n > 0) {
        size_t some;
        status = add_some(f, &w.run, fresh ? fresh + w.passed : NULL, &some);
        if (status != CALYX_OK) break;
        pass(f, keys, &w, some);
    }
    if (done) *done = w.passed;
    return status;
}

/* ---- Removing many ------------------------------------------------------- */

/* From a filter that has grown, key by key, since each may have its home in
 * another part. */
static size_t remove_batch(calyx_filter *f, struct part *p, struct batch run,
                           bool *found) {
    if (!p->older) {
        const size_t removed =
            f->kernel->remove_batch(p->body, &p->shape, run, found);
        uncount_items(p, removed);
        return removed;
    }
    size_t total = 0;
    for (size_t i = 0; i < run.n; i++) {
        const enum removal became = remove_hash(f, run.hashes[i]);
        if (found) found[i] = became != KEY_ABSENT;
        total += became == KEY_REMOVED;
    }
    return total;
}

static calyx_status remove_keys(calyx_filter *f, const struct keys *keys,
                                bool *found, size_t *removed) {
    if (removed) *removed = 0;
    if (!is_counting(f)) return CALYX_CANNOT;
    if (f->read_only) return CALYX_READ_ONLY;
    struct part *p = newest_of(f);
    size_t total = 0;
    struct window w;
    open_window(f, keys, &w, false);
    while (w.run.n > 0) {
        const size_t n = w.run.n;
        total += remove_batch(f, p, w.run, found);
        note_prefetched(&w.run, n);
        pass(f, keys, &w, n);
        if (found) found += n;
    }
    if (removed) *removed = total;
    return CALYX_OK;
}

/* ---- The public calls ---------------------------------------------------- */

uint64_t calyx_hash(const calyx_filter *f, const void *key, size_t size) {
    return f->hash->one(&f->secret, key, size);
}

void calyx_hash_many(const calyx_filter *f, const calyx_key *keys, size_t n,
                     uint64_t *hashes) {
    f->hash->many(&f->secret, keys, n, 0, hashes);
}

/* A call through a pointer would cost as much as this hash. */
static inline bool is_xxh3(const calyx_filter *f) {
    return __builtin_expect(f->hash->is_xxh3, true);
}

static uint64_t hash_number(const calyx_filter *f, uint64_t number) {
    if (is_xxh3(f)) return xxh3_of_number(number, f->secret.seed);
    return f->hash->number(&f->secret, number);
}

/* Not melted in, so that other hashes do not cost xxh3 anything. */
static __attribute__((noinline)) bool has_number(const calyx_filter *f,
                                                 uint64_t number) {
    return has_hash(f, f->hash->number(&f->secret, number));
}

bool calyx_has(const calyx_filter *f, const void *key, size_t size) {
    return has_hash(f, calyx_hash(f, key, size));
}

bool calyx_has_u64(const calyx_filter *f, uint64_t number) {
    if (!is_xxh3(f)) return has_number(f, number);
    return has_hash(f, xxh3_of_number(number, f->secret.seed));
}

NO_CANARY calyx_status calyx_add(calyx_filter *f, const void *key, size_t size,
                                 bool *fresh) {
    bool ignored;
    return add_hash(f, calyx_hash(f, key, size), fresh ? fresh : &ignored);
}

NO_CANARY calyx_status calyx_add_u64(calyx_filter *f, uint64_t number,
                                     bool *fresh) {
    bool ignored;
    return add_hash(f, hash_number(f, number), fresh ? fresh : &ignored);
}

calyx_status calyx_remove(calyx_filter *f, const void *key, size_t size,
                          bool *found) {
    if (!is_counting(f)) return CALYX_CANNOT;
    if (f->read_only) return CALYX_READ_ONLY;
    const uint64_t hash = calyx_hash(f, key, size);
    const enum removal became = remove_hash(f, hash);
    if (found) *found = became != KEY_ABSENT;
    return CALYX_OK;
}

uint32_t calyx_count(const calyx_filter *f, const void *key, size_t size) {
    enum { MOST = 15 }; /* or more */
    const uint64_t hash = calyx_hash(f, key, size);
    /* Counters lie all over the body. */
    if (f->ranges && is_counting(f)) f->ranges->verify_rest(f);
    if (may_be_damaged(f) && has_hash(f, hash))
        return is_counting(f) ? MOST : 1;
    const struct part *home = home_of(f, hash);
    uint32_t count = home != NULL;
    if (home && is_counting(f))
        count = f->kind->count(home->body, &home->shape, hash);
    return count ? count : is_truncated(f);
}

calyx_status calyx_add_many(calyx_filter *f, const calyx_key *keys, size_t n,
                            bool *fresh, size_t *done) {
    return add_keys(f, &(struct keys){.bytes = keys, .n = n}, fresh, done);
}

size_t calyx_has_many(const calyx_filter *f, const calyx_key *keys, size_t n,
                      bool *found) {
    return has_keys(f, &(struct keys){.bytes = keys, .n = n}, found);
}

calyx_status calyx_remove_many(calyx_filter *f, const calyx_key *keys, size_t n,
                               bool *found, size_t *removed) {
    return remove_keys(f, &(struct keys){.bytes = keys, .n = n}, found,
                       removed);
}

calyx_status calyx_remove_many_u64(calyx_filter *f, const uint64_t *numbers,
                                   size_t n, bool *found, size_t *removed) {
    return remove_keys(f, &(struct keys){.numbers = numbers, .n = n}, found,
                       removed);
}

calyx_status calyx_add_many_u64(calyx_filter *f, const uint64_t *numbers,
                                size_t n, bool *fresh, size_t *done) {
    return add_keys(f, &(struct keys){.numbers = numbers, .n = n}, fresh, done);
}

size_t calyx_has_many_u64(const calyx_filter *f, const uint64_t *numbers,
                          size_t n, bool *found) {
    return has_keys(f, &(struct keys){.numbers = numbers, .n = n}, found);
}

calyx_status calyx_add_hashes(calyx_filter *f, const uint64_t *hashes, size_t n,
                              bool *fresh, size_t *done) {
    return add_keys(f, &(struct keys){.hashes = hashes, .n = n}, fresh, done);
}

size_t calyx_has_hashes(const calyx_filter *f, const uint64_t *hashes, size_t n,
                        bool *found) {
    return has_keys(f, &(struct keys){.hashes = hashes, .n = n}, found);
}

calyx_status calyx_remove_hashes(calyx_filter *f, const uint64_t *hashes,
                                 size_t n, bool *found, size_t *removed) {
    return remove_keys(f, &(struct keys){.hashes = hashes, .n = n}, found,
                       removed);
}
