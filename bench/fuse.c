/*
 * A peer for static filters: binary fuse filters (Graf and Lemire 2022), 3-wise
 * and 4-wise, written for this benchmark.
 *
 * A key has a fingerprint, and slots in 3 or 4 neighbouring segments; the slots
 * of a key XOR to its fingerprint. Building is peeling: a slot that only one
 * key has left can be given whatever that key needs, so this key is put aside,
 * and slots are filled in the reverse order. Fingerprints have as many bits as
 * the rate asks for, rounded up, and are packed. Keys come in shards of at most
 * 2^20 by the high bits of their hashes, so that peeling works in the cache.
 */
#define XXH_INLINE_ALL
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "bench.h"

enum { MOST_WISE = 4, SHARD_KEYS = 1 << 20, AHEAD = 32 };

struct shard {
    uint64_t base; /* its first slot */
    uint64_t seed;
    uint32_t segment; /* slots of one: a power of two                     */
    uint32_t reach;   /* slots that the first of a key may be             */
    uint64_t slots;
};

struct fuse {
    int wise, bits;
    uint64_t *hashes; /* of all keys, until it is built */
    uint64_t n, room;
    uint64_t shard_count, bytes;
    struct shard *shards;
    uint8_t *body;
};

/* ---- From a hash to its slots -------------------------------------------- */

struct place {
    uint64_t slot[MOST_WISE];
    uint32_t fingerprint;
};

static inline uint64_t high_product(uint64_t a, uint64_t b) {
    return (uint64_t)((unsigned __int128)a * b >> 64);
}

static inline uint64_t mix(uint64_t x) {
    const uint64_t factor = UINT64_C(0x9FB21C651E98DF25);
    return high_product(x, factor) ^ x * factor;
}

/* Into memory: as a value it would be stored in words, and copied by vectors
 * that have to wait for them. */
static inline __attribute__((always_inline)) void find_place(
    const struct shard *s, int bits, uint64_t hash, int wise, struct place *p) {
    const uint64_t h = mix(hash ^ s->seed);
    const uint64_t g = h * UINT64_C(0xD6E8FEB86659FD93);
    const uint64_t first = high_product(h, s->reach);
    p->slot[0] = s->base + first;
    for (int j = 1; j < wise; j++)
        p->slot[j] = s->base + ((first + (uint64_t)j * s->segment) ^
                                (g >> (64 - 20 * j) & (s->segment - 1)));
    p->fingerprint =
        (uint32_t)((h ^ h >> 29) * UINT64_C(0x9E3779B97F4A7C15) >> 32) >>
        (32 - bits);
}

static inline uint32_t load(const uint8_t *body, int bits, uint64_t slot) {
    uint32_t word;
    const uint64_t bit = slot * (uint64_t)bits;
    memcpy(&word, body + bit / 8, sizeof word);
    return word >> bit % 8;
}

/* The XOR of the slots and the fingerprint: 0 for a key. */
static inline __attribute__((always_inline)) uint32_t difference(
    const uint8_t *body, int bits, const struct place *p, int wise) {
    uint32_t x = p->fingerprint;
    for (int j = 0; j < wise; j++) x ^= load(body, bits, p->slot[j]);
    return x & ((1u << bits) - 1);
}

/* ---- Lookups ------------------------------------------------------------- */

static inline const struct shard *shard_of(const struct fuse *f,
                                           uint64_t hash) {
    return &f->shards[high_product(hash, f->shard_count)];
}

static inline __attribute__((always_inline)) size_t has_each(
    const struct fuse *f, const uint64_t *hashes, size_t n, bool *found,
    int wise) {
    size_t total = 0;
    for (size_t i = 0; i < n; i++) {
        struct place p;
        find_place(shard_of(f, hashes[i]), f->bits, hashes[i], wise, &p);
        total += found[i] = difference(f->body, f->bits, &p, wise) == 0;
    }
    return total;
}

/* Slots are prefetched 32 keys before they are read. */
static inline __attribute__((always_inline)) size_t has_batch(
    const struct fuse *f, const uint64_t *hashes, size_t n, bool *found,
    int wise) {
    const uint8_t *const body = f->body;
    const int bits = f->bits;
    struct place ring[AHEAD];
    size_t total = 0;
    for (size_t i = 0; i < n + AHEAD; i++) {
        struct place *const p = &ring[i % AHEAD];
        if (i >= AHEAD)
            total += found[i - AHEAD] = difference(body, bits, p, wise) == 0;
        if (i >= n) continue;
        find_place(shard_of(f, hashes[i]), bits, hashes[i], wise, p);
        for (int j = 0; j < wise; j++)
            __builtin_prefetch(body + p->slot[j] * (uint64_t)bits / 8, 0, 3);
    }
    return total;
}

static size_t look_up(const struct fuse *f, bool single, const uint64_t *hashes,
                      size_t n, bool *found) {
    if (f->wise == 3)
        return single ? has_each(f, hashes, n, found, 3)
                      : has_batch(f, hashes, n, found, 3);
    return single ? has_each(f, hashes, n, found, 4)
                  : has_batch(f, hashes, n, found, 4);
}

/* ---- Building ------------------------------------------------------------ */

/* The sizes that Graf and Lemire found by experiment. */
static void plan_shard(struct shard *s, uint64_t n, int wise) {
    const double l = log(n < 2 ? 2 : (double)n);
    const double factor = wise == 3 ? fmax(1.125, 0.875 + 0.25 * log(1e6) / l)
                                    : fmax(1.075, 0.77 + 0.305 * log(6e5) / l);
    const double exponent =
        wise == 3 ? l / log(3.33) + 2.25 : l / log(2.91) - 0.5;
    s->segment = 1u << (int)fmin(18, fmax(2, floor(exponent)));
    uint64_t count =
        ((uint64_t)((double)n * factor) + s->segment - 1) / s->segment;
    count = count < (uint64_t)wise ? 1 : count - (uint64_t)(wise - 1);
    s->reach = (uint32_t)(count * s->segment);
    s->slots = s->reach + (uint64_t)(wise - 1) * s->segment;
}

/* Memory for peeling one shard. */
struct peeling {
    uint8_t *count, *which; /* keys of a slot; which slot a key is alone in */
    uint64_t *sum, *order;  /* XOR of the keys of a slot; keys put aside    */
    uint32_t *stack;
};

static bool peel(const struct fuse *f, const struct shard *shard,
                 const uint64_t *keys, size_t n, struct peeling *w) {
    struct shard s = *shard;
    size_t top = 0, done = 0;
    s.base = 0;
    memset(w->count, 0, s.slots);
    memset(w->sum, 0, s.slots * sizeof *w->sum);
    for (size_t i = 0; i < n; i++) {
        struct place p;
        find_place(&s, f->bits, keys[i], f->wise, &p);
        for (int j = 0; j < f->wise; j++) {
            if (w->count[p.slot[j]] == UINT8_MAX) return false;
            w->count[p.slot[j]]++;
            w->sum[p.slot[j]] ^= keys[i];
        }
    }
    for (uint64_t i = 0; i < s.slots; i++)
        if (w->count[i] == 1) w->stack[top++] = (uint32_t)i;
    while (top > 0) {
        const uint64_t slot = w->stack[--top];
        if (w->count[slot] != 1) continue;
        const uint64_t key = w->sum[slot];
        struct place p;
        find_place(&s, f->bits, key, f->wise, &p);
        w->order[done] = key;
        for (int j = 0; j < f->wise; j++) {
            if (p.slot[j] == slot) w->which[done] = (uint8_t)j;
            w->sum[p.slot[j]] ^= key;
            if (--w->count[p.slot[j]] == 1)
                w->stack[top++] = (uint32_t)p.slot[j];
        }
        done++;
    }
    return done == n;
}

static void assign(const struct fuse *f, const struct shard *s, size_t n,
                   const struct peeling *w) {
    while (n-- > 0) {
        struct place p;
        find_place(s, f->bits, w->order[n], f->wise, &p);
        const uint32_t x = difference(f->body, f->bits, &p, f->wise);
        const uint64_t bit = p.slot[w->which[n]] * (uint64_t)f->bits;
        uint32_t word;
        memcpy(&word, f->body + bit / 8, sizeof word);
        word ^= x << bit % 8;
        memcpy(f->body + bit / 8, &word, sizeof word);
    }
}

/* Group keys by shard, by counting. Returns where each shard ends. */
static uint64_t *group_by_shard(struct fuse *f) {
    uint64_t *const ends = calloc(f->shard_count + 1, sizeof *ends);
    uint64_t *const grouped = malloc((f->n + 1) * sizeof *grouped);
    for (uint64_t i = 0; i < f->n; i++)
        ends[high_product(f->hashes[i], f->shard_count) + 1]++;
    for (uint64_t s = 1; s <= f->shard_count; s++) ends[s] += ends[s - 1];
    for (uint64_t i = 0; i < f->n; i++)
        grouped[ends[high_product(f->hashes[i], f->shard_count)]++] =
            f->hashes[i];
    free(f->hashes);
    f->hashes = grouped;
    return ends;
}

static struct peeling allocate_peeling(uint64_t slots, int wise) {
    return (struct peeling){malloc(slots), malloc(slots), malloc(8 * slots),
                            malloc(8 * slots),
                            malloc(4 * slots * (uint64_t)wise)};
}

static void free_peeling(struct peeling *w) {
    free(w->count), free(w->which), free(w->sum), free(w->order);
    free(w->stack);
}

static void build(struct fuse *f) {
    uint64_t slots = 0, most = 0;
    f->shard_count = f->n / SHARD_KEYS + 1;
    f->shards = calloc(f->shard_count, sizeof *f->shards);
    uint64_t *const ends = group_by_shard(f);
    for (uint64_t i = 0; i < f->shard_count; i++) {
        struct shard *const s = &f->shards[i];
        plan_shard(s, ends[i] - (i ? ends[i - 1] : 0), f->wise);
        s->base = slots;
        slots += s->slots;
        most = s->slots > most ? s->slots : most;
    }
    f->bytes = (slots * (uint64_t)f->bits + 7) / 8 + 8;
    f->body = take_pages(f->bytes);
    struct peeling w = allocate_peeling(most, f->wise);
    for (uint64_t i = 0; i < f->shard_count; i++) {
        struct shard *const s = &f->shards[i];
        const uint64_t from = i ? ends[i - 1] : 0;
        const size_t n = (size_t)(ends[i] - from);
        for (s->seed = i; !peel(f, s, f->hashes + from, n, &w);)
            s->seed = mix(s->seed + 1); /* one in some hundred fails */
        assign(f, s, n, &w);
    }
    free_peeling(&w);
    free(ends);
    free(f->hashes);
    f->hashes = NULL;
}

/* ---- As a contestant ----------------------------------------------------- */

static bool make(struct contestant *c, uint64_t n, double fpr) {
    struct fuse *const f = calloc(1, sizeof *f);
    (void)n;
    f->wise = strstr(c->name, "3") ? 3 : 4;
    f->bits = (int)ceil(-log2(fpr));
    c->self = f;
    return f->bits <= 24;
}

static void clear(struct contestant *c) {
    struct fuse *const f = c->self;
    if (f->body) give_pages(f->body, f->bytes);
    free(f->shards);
    free(f->hashes);
    *f = (struct fuse){.wise = f->wise, .bits = f->bits};
}

static void end(struct contestant *c) {
    clear(c);
    free(c->self);
}

static bool can(const struct contestant *c, const struct task *task) {
    (void)c;
    return (task->form == HASHES || task->form == NUMBERS) && !task->batch &&
           task->verb == HAS;
}

static uint64_t hash_of(uint64_t number) {
    return XXH3_64bits_withSeed(&number, sizeof number, 0);
}

static void add(struct fuse *f, const struct segment *s) {
    if (f->n + s->n > f->room) {
        f->room = 2 * (f->n + s->n);
        f->hashes = realloc(f->hashes, f->room * sizeof *f->hashes);
    }
    for (size_t i = 0; i < s->n; i++)
        f->hashes[f->n++] = hash_of(s->numbers[i]);
}

static size_t run(struct contestant *c, const struct task *task,
                  struct segment *s) {
    struct fuse *const f = c->self;
    uint64_t hashes[SEGMENT];
    if (task->verb != HAS) {
        add(f, s);
        return 0;
    }
    if (!f->body) build(f);
    if (task->form == HASHES)
        return look_up(f, task->single, s->hashes, s->n, s->answers);
    for (size_t i = 0; i < s->n; i++) hashes[i] = hash_of(s->numbers[i]);
    return look_up(f, task->single, hashes, s->n, s->answers);
}

static uint64_t bytes(const struct contestant *c) {
    const struct fuse *const f = c->self;
    return f->bytes + f->shard_count * sizeof *f->shards;
}

static const struct trade trade = {make, clear, end, can, run, bytes};

int fuse_contestants(struct contestant *to) {
    to[0] = (struct contestant){
        .name = "fuse 3-wise", .trade = &trade, .answers = true};
    to[1] = (struct contestant){
        .name = "fuse 4-wise", .trade = &trade, .answers = true};
    return 2;
}
