/*
 * The road of a key: bytes to hash, hash to parts, one at a time or in runs.
 *
 * While a run of hashes is asked or added, the memory that the next needs is on
 * its way (kind/kernel.h tells how); so the next is hashed before that.
 */
#include <string.h>

#include "filter/filter.h"
#include "hash/xxh3.h"

static const struct run no_run = {.n = 0};

/* ---- One hash ------------------------------------------------------------ */

static bool in_part(const calyx_filter *f, const struct part *p,
                    uint64_t hash) {
    return f->kernel->has(p->body, &p->shape, hash);
}

/* Newest first: it is the largest, and holds most of the keys. */
static __attribute__((noinline)) bool has_in_any(const calyx_filter *f,
                                                 uint64_t hash) {
    for (const struct part *p = newest_of(f); p; p = p->older)
        if (in_part(f, p, hash)) return true;
    return is_cut(f); /* then no "no" can be trusted */
}

/* Where there is but one part, nothing here waits for the answer: so the
 * caller's next question may be under way before this one is answered. */
static inline bool has_hash(const calyx_filter *f, uint64_t hash) {
    const struct part *p = newest_of(f);
    if (p->older || f->guard) return has_in_any(f, hash);
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

/* Claim room for at most n keys in a part, before they are added, so that
 * threads cannot fill it together beyond its capacity. What was claimed for
 * keys that it already had is given back after. */
static uint64_t claim_room(const calyx_filter *f, struct part *p, uint64_t n) {
    if (!is_bounded(f)) return n;
    uint64_t items = items_of(p), room;
    do {
        room = items < p->capacity ? p->capacity - items : 0;
        if (room > n) room = n;
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
    if (p->older || is_bounded(f)) return add_bounded(f, hash, fresh);
    *fresh = f->kernel->add(p->body, &p->shape, hash);
    count_items(f, p, 0, *fresh | is_counting(f));
    return CALYX_OK;
}

static void uncount_items(struct part *p, uint64_t removed) {
    p->items -= removed < p->items ? removed : p->items;
}

/* An only part is not asked first: whether it has the key shows on removing. */
static bool remove_hash(calyx_filter *f, uint64_t hash) {
    struct part *const newest = newest_of(f);
    struct part *const home = newest->older ? home_of(f, hash) : newest;
    if (!home) return false;
    const bool here = f->kernel->remove(home->body, &home->shape, hash);
    uncount_items(home, here);
    return here;
}

/* ---- Where hashes come from ---------------------------------------------- */

/* Keys in one of three forms; the other two are NULL. */
struct keys {
    const calyx_key *bytes;
    const uint64_t *numbers, *hashes;
    size_t n;
};

/* Two runs of hashes on their way through a kernel: one to touch now, and the
 * next, whose lines are called meanwhile. Each has its own half of the room. */
struct window {
    struct run now, next;
    bool by_kernel;               /* are numbers hashed, when called?      */
    bool now_called, next_called; /* were their lines?                     */
    size_t hashed;                /* how many keys are behind it, or in it */
    uint64_t hashes[2][RUN];
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

/* The run that follows the window. */
static struct run hash_next(const calyx_filter *f, const struct keys *keys,
                            struct window *w) {
    const size_t from = w->hashed, n = at_most(keys->n - from, RUN);
    if (n == 0) return no_run; /* nor may there be an array */
    const size_t half = from / RUN % 2;
    w->hashed += n;
    if (w->by_kernel)
        return (struct run){w->hashes[half], n, keys->numbers + from,
                            xxh3_flip(f->secret.seed)};
    return run_of(hash_some(f, keys, from, n, w->hashes[half]), n);
}

static void open_window(const calyx_filter *f, const struct keys *keys,
                        struct window *w, bool by_kernel) {
    w->hashed = 0;
    w->by_kernel = by_kernel;
    w->now_called = w->next_called = false;
    w->now = hash_next(f, keys, w);
    w->next = hash_next(f, keys, w);
}

static void move_window(const calyx_filter *f, const struct keys *keys,
                        struct window *w) {
    w->now = w->next;
    w->now_called = w->next_called;
    w->next = hash_next(f, keys, w);
    w->next_called = false;
}

/* ---- Asking many --------------------------------------------------------- */

enum {
    STRETCH = 1024,              /* hashes at most to ask several parts for */
    LEAST_LARGE_BYTES = 16 << 20 /* a part that the caches hardly hold      */
};
_Static_assert(STRETCH < 2048, "count_true counts fewer than 2048");

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
        struct field fields[FIELDS_AT_ONCE];
        size_t count = 0;
        for (; p && count < FIELDS_AT_ONCE; p = p->older, count++) {
            if (p->shape.blocks >> 32) break;
            fields[count] = (struct field){p->body, p->shape};
        }
        if (count == 0) break;
        f->kernel->has_in_any(fields, count, hashes, n, found);
    }
    return p;
}

/* Ask one part after the other for the hashes of a run not found yet. */
static void has_in_each(const calyx_filter *f, const struct part *p,
                        const uint64_t *hashes, size_t n, bool *found) {
    uint64_t left[RUN];
    uint16_t place[RUN];
    bool here[RUN];
    for (; p; p = p->older) {
        size_t lefts = 0;
        for (size_t i = 0; i < n; i++) {
            left[lefts] = hashes[i];
            place[lefts] = (uint16_t)i;
            lefts += !found[i];
        }
        const struct run run = run_of(left, lefts);
        f->kernel->has_run(p->body, &p->shape, no_run, run, NULL);
        f->kernel->has_run(p->body, &p->shape, run, no_run, here);
        for (size_t i = 0; i < lefts; i++) found[place[i]] = here[i];
    }
}

/* Ask one part as if it were the only one: run after run, the lines of the next
 * on their way. From memory that is a fifth faster than all parts at once. */
static void has_in_large(const calyx_filter *f, const struct part *p,
                         const uint64_t *hashes, size_t n, bool *found) {
    bool here[RUN];
    struct run now = run_of(hashes, at_most(n, RUN));
    f->kernel->has_run(p->body, &p->shape, no_run, now, NULL);
    for (size_t from = 0; from < n;) {
        const size_t then = from + now.n;
        const struct run next = run_of(hashes + then, at_most(n - then, RUN));
        f->kernel->has_run(p->body, &p->shape, now, next, here);
        for (size_t i = 0; i < now.n; i++) found[from + i] |= here[i];
        from = then;
        now = next;
    }
}

/* Which hashes, at most STRETCH, are in this part, or an older one? The newest
 * parts are the largest; with one run of hashes there is no next to call, and
 * all parts at once have more on their way. */
static size_t has_in_these(const calyx_filter *f, const struct part *p,
                           const uint64_t *hashes, size_t n, bool *found) {
    memset(found, false, n);
    for (; p && n > RUN && is_large(f, p); p = p->older)
        has_in_large(f, p, hashes, n, found);
    p = has_in_many(f, p, hashes, n, found);
    for (size_t i = 0; p && i < n; i += RUN)
        has_in_each(f, p, hashes + i, at_most(n - i, RUN), found + i);
    return count_true(found, n);
}

/* If the file was cut short, no "no" can be trusted. */
static size_t unless_cut(const calyx_filter *f, size_t yes, bool *found,
                         size_t n) {
    if (yes == n || !is_cut(f)) return yes;
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
                       twice the 50 KiB of stack */
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
            uint64_t taken[STRETCH];
            bool here[STRETCH];
            some = at_most(n - i, STRETCH);
            for (size_t j = 0; j < some; j++) taken[j] = hashes[order[i + j]];
            yes += has_in_these(f, p, taken, some, here);
            for (size_t j = 0; answers && j < some; j++)
                answers[order[i + j]] = here[j];
        }
        total += unless_cut(f, yes, answers, n);
    }
    return total;
}

/* Does it pay that the kernel hashes numbers while it waits for lines? In cache
 * it waits for none, and is slower for it by a twentieth. */
static bool hashes_on_its_way(const calyx_filter *f, const struct part *p,
                              const struct keys *keys) {
    return keys->numbers && !p->older && is_large(f, p) && f->hash->is_xxh3 &&
           f->kernel->hashes_numbers;
}

static size_t has_keys(const calyx_filter *f, const struct keys *keys,
                       bool *found) {
    const struct part *p = newest_of(f);
    if (pays_to_order(f, p, keys->n)) return has_in_order(f, p, keys, found);
    bool here[RUN];
    size_t total = 0;
    struct window w;
    open_window(f, keys, &w, hashes_on_its_way(f, p, keys));
    if (!p->older) f->kernel->has_run(p->body, &p->shape, no_run, w.now, NULL);
    for (; w.now.n; move_window(f, keys, &w)) {
        const size_t n = w.now.n;
        bool *const answers = found ? found : here;
        const size_t yes = p->older
                               ? has_in_these(f, p, w.now.hashes, n, answers)
                               : f->kernel->has_run(p->body, &p->shape, w.now,
                                                    w.next, answers);
        total += unless_cut(f, yes, answers, n);
        if (found) found += n;
    }
    return total;
}

/* ---- Adding many --------------------------------------------------------- */

/* Add a run to a filter that has grown: what an older part has stays there.
 * Tells how many were fresh, as the kernel does. */
static size_t add_to_grown(calyx_filter *f, struct part *p,
                           const uint64_t *hashes, size_t n, bool *fresh) {
    uint64_t new[RUN];
    bool here[RUN], answers[RUN];
    has_in_these(f, p->older, hashes, n, here);
    size_t news = 0;
    for (size_t i = 0; i < n; i++) {
        new[news] = hashes[i];
        news += !here[i];
    }
    const struct run run = run_of(new, news);
    f->kernel->add_run(p->body, &p->shape, no_run, run, NULL);
    const size_t total =
        f->kernel->add_run(p->body, &p->shape, run, no_run, answers);
    if (fresh)
        for (size_t i = 0, j = 0; i < n; i++)
            fresh[i] = !here[i] && answers[j++];
    return total;
}

/* Add n hashes of the window's first run, from some place on, to a filter that
 * has not grown. */
static size_t add_to_only(calyx_filter *f, struct part *p, struct window *w,
                          size_t from, size_t n, bool *fresh) {
    const struct run run = run_of(w->now.hashes + from, n);
    if (!w->now_called)
        f->kernel->add_run(p->body, &p->shape, no_run, run, NULL);
    const struct run next = w->next_called ? no_run : w->next;
    w->next_called = true;
    return f->kernel->add_run(p->body, &p->shape, run, next, fresh);
}

/* Add as many of a run as one step can, at least one: until the newest part is
 * full, or a key at a time where every key must be looked at. */
static calyx_status add_some(calyx_filter *f, struct window *w, size_t from,
                             bool *fresh, size_t *done) {
    struct part *p = newest_of(f);
    const uint64_t *const hashes = w->now.hashes + from;
    const bool singly = p->older && is_counting(f);
    const size_t n = singly ? 0 : (size_t)claim_room(f, p, w->now.n - from);
    if (n == 0) {
        bool ignored;
        *done = 1;
        return add_hash(f, *hashes, fresh ? fresh : &ignored);
    }
    const size_t missing = p->older ? add_to_grown(f, p, hashes, n, fresh)
                                    : add_to_only(f, p, w, from, n, fresh);
    count_items(f, p, n, is_counting(f) ? n : missing);
    *done = n;
    return CALYX_OK;
}

static calyx_status add_keys(calyx_filter *f, const struct keys *keys,
                             bool *fresh, size_t *done) {
    if (done) *done = 0;
    if (f->read_only) return CALYX_READ_ONLY;
    calyx_status status = CALYX_OK;
    size_t total = 0;
    struct window w;
    open_window(f, keys, &w, false);
    for (; w.now.n && status == CALYX_OK; move_window(f, keys, &w)) {
        for (size_t from = 0, some; from < w.now.n; from += some) {
            status = add_some(f, &w, from, fresh ? fresh + total : NULL, &some);
            if (status != CALYX_OK) break;
            total += some;
        }
    }
    if (done) *done = total;
    return status;
}

/* ---- Removing many ------------------------------------------------------- */

/* From a filter that has grown, key by key, since each may have its home in
 * another part. */
static size_t remove_run(calyx_filter *f, struct part *p,
                         const struct window *w, bool *found) {
    if (!p->older) {
        const size_t here =
            f->kernel->remove_run(p->body, &p->shape, w->now, w->next, found);
        uncount_items(p, here);
        return here;
    }
    size_t total = 0;
    for (size_t i = 0; i < w->now.n; i++) {
        const bool here = remove_hash(f, w->now.hashes[i]);
        if (found) found[i] = here;
        total += here;
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
    if (!p->older)
        f->kernel->remove_run(p->body, &p->shape, no_run, w.now, NULL);
    for (; w.now.n; move_window(f, keys, &w)) {
        total += remove_run(f, p, &w, found);
        if (found) found += w.now.n;
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

/* The call of a function that may be any costs as much as this hash. */
static inline bool is_xxh3(const calyx_filter *f) {
    return __builtin_expect(f->hash->is_xxh3, true);
}

static uint64_t hash_number(const calyx_filter *f, uint64_t number) {
    if (is_xxh3(f)) return xxh3_of_number(number, f->secret.seed);
    return f->hash->number(&f->secret, number);
}

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

calyx_status calyx_add(calyx_filter *f, const void *key, size_t size,
                       bool *fresh) {
    bool ignored;
    return add_hash(f, calyx_hash(f, key, size), fresh ? fresh : &ignored);
}

calyx_status calyx_add_u64(calyx_filter *f, uint64_t number, bool *fresh) {
    bool ignored;
    return add_hash(f, hash_number(f, number), fresh ? fresh : &ignored);
}

calyx_status calyx_remove(calyx_filter *f, const void *key, size_t size,
                          bool *found) {
    if (!is_counting(f)) return CALYX_CANNOT;
    if (f->read_only) return CALYX_READ_ONLY;
    const uint64_t hash = calyx_hash(f, key, size);
    const bool here = remove_hash(f, hash);
    if (found) *found = here;
    return CALYX_OK;
}

uint32_t calyx_count(const calyx_filter *f, const void *key, size_t size) {
    const uint64_t hash = calyx_hash(f, key, size);
    const struct part *home = home_of(f, hash);
    uint32_t count = home != NULL;
    if (home && is_counting(f))
        count = f->kind->count(home->body, &home->shape, hash);
    return count ? count : is_cut(f);
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
