/*
 * The floor: what no filter that touches memory can be faster than.
 *
 * "floor" touches one random cache line a key and does nothing else with it:
 * reads a word to ask, reads it and writes it back to add. Its loops are the
 * best of some forty that were tried: four keys an iteration; the line is
 * prefetched into the second-level cache far ahead, perhaps into the first a
 * few keys ahead, and touched by then. How far is best depends on the machine
 * and the size, so there are several loops, and the fastest in each round is
 * the floor of that round. It has as many lines as a line filter for the same
 * keys, all of them on huge pages.
 *
 * Given hashes, it does no hashing; given numbers, it mixes them one by one, by
 * the least that a filter can afford: so were the figures of other libraries
 * measured. URLs are hashed alone, by "hash alone", and the floor for them is
 * the sum of the two.
 */
#define XXH_INLINE_ALL
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "bench.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

enum { LINE = 64, RING = 512 };

struct floor {
    uint64_t lines;
    uint8_t *body;
};

static bool make(struct contestant *c, uint64_t n, double fpr) {
    calyx_info info;
    const calyx_options like = {.capacity = n, .fpr = fpr};
    if (calyx_plan(&like, &info, NULL) != CALYX_OK) return false;
    struct floor *f = malloc(sizeof *f);
    f->lines = info.bytes / LINE;
    f->body = take_pages(f->lines * LINE);
    c->self = f;
    return f->body != NULL;
}

static void clear(struct contestant *c) {
    struct floor *f = c->self;
    memset(f->body, 0, f->lines * LINE);
}

static void end(struct contestant *c) {
    struct floor *f = c->self;
    give_pages(f->body, f->lines * LINE);
    free(f);
}

static uint64_t bytes(const struct contestant *c) {
    const struct floor *f = c->self;
    return f->lines * LINE;
}

static bool can(const struct contestant *c, const struct task *task) {
    (void)c;
    return !task->single && !task->batch &&
           (task->form == HASHES || task->form == NUMBERS) &&
           (task->verb == HAS || task->verb == ADD);
}

/* ---- The loops ----------------------------------------------------------- */

ALWAYS_INLINE uint64_t *line_at(struct floor f, uint64_t hash) {
    const uint64_t line = (uint64_t)((unsigned __int128)hash * f.lines >> 64);
    return (uint64_t *)(f.body + LINE * line);
}

/* A word of the line, not always the same: a load waits for earlier stores that
 * look alike in the low 12 bits of their address, and would do so all the time
 * if only one word in each line were written. */
ALWAYS_INLINE size_t touch(uint64_t *line, uint64_t hash, bool writes) {
    uint64_t *const word = &line[writes ? hash % 8 : 0];
    const uint64_t old = *word;
    if (writes) *word = old | 1;
    return (size_t)old;
}

/* What is done for one key, with others called on the way. */
ALWAYS_INLINE size_t step_hash(struct floor f, const uint64_t *hashes, size_t i,
                               bool writes, size_t far, size_t near) {
    if (far) __builtin_prefetch(line_at(f, hashes[i + far]), 0, 2);
    if (near) __builtin_prefetch(line_at(f, hashes[i + near]), 0, 3);
    return touch(line_at(f, hashes[i]), hashes[i], writes);
}

ALWAYS_INLINE size_t touch_hashes(struct floor f, const uint64_t *hashes,
                                  size_t n, bool writes, size_t far,
                                  size_t near) {
    size_t sum = 0, i = 0;
    for (size_t called = 0; called < n && called < far; called++)
        __builtin_prefetch(line_at(f, hashes[called]), 0, 2);
    for (; i + far + 4 <= n; i += 4) {
        sum += step_hash(f, hashes, i, writes, far, near);
        sum += step_hash(f, hashes, i + 1, writes, far, near);
        sum += step_hash(f, hashes, i + 2, writes, far, near);
        sum += step_hash(f, hashes, i + 3, writes, far, near);
    }
    for (; i < n; i++) sum += touch(line_at(f, hashes[i]), hashes[i], writes);
    return sum;
}

/* The end of Murmur 3, without which numbers in a row raise a filter's rate. */
ALWAYS_INLINE uint64_t mix(uint64_t number) {
    number ^= number >> 33;
    number *= UINT64_C(0xFF51AFD7ED558CCD);
    number ^= number >> 33;
    number *= UINT64_C(0xC4CEB9FE1A85EC53);
    return number ^ number >> 33;
}

/* The same, with the lines kept in a ring from the hashing to the touch. */
ALWAYS_INLINE size_t step_number(struct floor f, const uint64_t *numbers,
                                 uint64_t **ring, size_t i, bool writes,
                                 size_t far, size_t near) {
    uint64_t *const called = line_at(f, mix(numbers[i + far]));
    __builtin_prefetch(called, 0, 2);
    ring[(i + far) % RING] = called;
    if (near) __builtin_prefetch(ring[(i + near) % RING], 0, 3);
    return touch(ring[i % RING], (uint64_t)i, writes);
}

ALWAYS_INLINE size_t touch_numbers(struct floor f, const uint64_t *numbers,
                                   size_t n, bool writes, size_t far,
                                   size_t near) {
    uint64_t *ring[RING];
    size_t sum = 0, i = 0, called = 0;
    for (; called < n && called < far; called++) {
        ring[called] = line_at(f, mix(numbers[called]));
        __builtin_prefetch(ring[called], 0, 2);
    }
    for (; i + far + 4 <= n; i += 4) {
        sum += step_number(f, numbers, ring, i, writes, far, near);
        sum += step_number(f, numbers, ring, i + 1, writes, far, near);
        sum += step_number(f, numbers, ring, i + 2, writes, far, near);
        sum += step_number(f, numbers, ring, i + 3, writes, far, near);
    }
    for (called = i + far; called < n; called++)
        ring[called % RING] = line_at(f, mix(numbers[called]));
    for (; i < n; i++) sum += touch(ring[i % RING], (uint64_t)i, writes);
    return sum;
}

#define LOOPS(far, near)                                                       \
    static size_t loop_##far##_##near(struct floor f, const struct task *task, \
                                      const struct segment *s) {               \
        if (task->form == HASHES)                                              \
            return task->verb == HAS                                           \
                       ? touch_hashes(f, s->hashes, s->n, false, far, near)    \
                       : touch_hashes(f, s->hashes, s->n, true, far, near);    \
        return task->verb == HAS                                               \
                   ? touch_numbers(f, s->numbers, s->n, false, far, near)      \
                   : touch_numbers(f, s->numbers, s->n, true, far, near);      \
    }

LOOPS(0, 0)
LOOPS(32, 0)
LOOPS(128, 0)
LOOPS(256, 0)
LOOPS(32, 12)
LOOPS(64, 12)
LOOPS(128, 12)
LOOPS(128, 8)
LOOPS(256, 8)

typedef size_t loop(struct floor, const struct task *, const struct segment *);
static loop *const loops[] = {loop_0_0,    loop_32_0,  loop_128_0,
                              loop_256_0,  loop_32_12, loop_64_12,
                              loop_128_12, loop_128_8, loop_256_8};
enum { LOOPS_COUNT = sizeof loops / sizeof loops[0] };

/* The loops take turns by segment, on the same memory: the fastest segment of a
 * pass is then the fastest loop's. */
static size_t run(struct contestant *c, const struct task *task,
                  struct segment *s) {
    const struct floor *f = c->self;
    static _Thread_local unsigned turn;
    return loops[turn++ % LOOPS_COUNT](*f, task, s);
}

/* ---- The hash alone ------------------------------------------------------ */

static bool hash_make(struct contestant *c, uint64_t n, double fpr) {
    (void)c, (void)n, (void)fpr;
    return true;
}

static void hash_clear(struct contestant *c) {
    (void)c;
}

static uint64_t hash_bytes(const struct contestant *c) {
    (void)c;
    return 0;
}

static bool hash_can(const struct contestant *c, const struct task *task) {
    (void)c;
    return task->form != HASHES && !task->single && !task->batch &&
           task->verb == HAS;
}

static size_t hash_run(struct contestant *c, const struct task *task,
                       struct segment *s) {
    (void)c;
    enum { AHEAD = 16 };
    if (task->form == NUMBERS) {
        for (size_t i = 0; i < s->n; i++)
            s->hashes[i] =
                XXH3_64bits_withSeed(&s->numbers[i], sizeof s->numbers[i], 0);
        return 0;
    }
    for (size_t i = 0; i < s->n; i++) {
        const calyx_key *ahead = &s->urls[i + AHEAD < s->n ? i + AHEAD : i];
        __builtin_prefetch(ahead->data);
        s->hashes[i] =
            XXH3_64bits_withSeed(s->urls[i].data, s->urls[i].size, 0);
    }
    return 0;
}

static const struct trade floor_trade = {make, clear, end, can, run, bytes};
static const struct trade hash_trade = {hash_make, hash_clear, hash_clear,
                                        hash_can,  hash_run,   hash_bytes};

int floor_contestants(struct contestant *to) {
    to[0] = (struct contestant){.name = "floor", .trade = &floor_trade};
    to[1] = (struct contestant){.name = "hash alone", .trade = &hash_trade};
    return 2;
}
