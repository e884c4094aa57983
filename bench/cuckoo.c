/*
 * A peer that removes keys: a cuckoo filter (Fan, Andersen, Kaminsky and
 * Mitzenmacher 2014), written for this benchmark.
 *
 * A key has a fingerprint of 12 bits and two buckets of four fingerprints. The
 * fingerprint and either bucket give the other one: the two add up to a number
 * that only the fingerprint decides. So the number of buckets need not be a
 * power of two, as it has to where they are XORed. A bucket is 48 bits, and is
 * compared at once.
 */
#include <stdlib.h>
#include <string.h>

#include "hashed.h"

enum { BITS = 12, WAYS = 4, BUCKET = BITS * WAYS / 8, MOST_KICKS = 2000 };

static const uint64_t ones = UINT64_C(0x001001001001);
static const uint64_t tops = UINT64_C(0x800800800800);
static const double load_most = 0.94;

struct cuckoo {
    uint64_t buckets, dice;
    uint8_t *body;
};

struct place {
    uint64_t first, second, fingerprint;
};

static size_t body_bytes(const struct cuckoo *f) {
    return (size_t)(BUCKET * f->buckets + sizeof(uint64_t));
}

static uint64_t other_bucket(const struct cuckoo *f, uint64_t bucket,
                             uint64_t fingerprint) {
    const uint64_t sum =
        high_product(fingerprint * UINT64_C(0x9E3779B97F4A7C15), f->buckets);
    return sum >= bucket ? sum - bucket : sum + f->buckets - bucket;
}

/* 0 is an empty slot. */
static inline struct place place_of(const struct cuckoo *f, uint64_t hash) {
    struct place p = {.first = high_product(hash, f->buckets)};
    p.fingerprint = 1 + ((hash & UINT32_MAX) * 4095 >> 32);
    p.second = other_bucket(f, p.first, p.fingerprint);
    return p;
}

static inline uint64_t bucket_at(const struct cuckoo *f, uint64_t bucket) {
    uint64_t word;
    memcpy(&word, f->body + BUCKET * bucket, sizeof word);
    return word & ((UINT64_C(1) << 48) - 1);
}

static inline void put_bucket(struct cuckoo *f, uint64_t bucket,
                              uint64_t word) {
    memcpy(f->body + BUCKET * bucket, &word, BUCKET);
}

/* The top bits of slots that may have a fingerprint; the lowest one has. */
static inline uint64_t slots_of(uint64_t word, uint64_t fingerprint) {
    const uint64_t difference = word ^ fingerprint * ones;
    return (difference - ones) & ~difference & tops;
}

static inline bool has(const struct cuckoo *f, uint64_t hash) {
    const struct place p = place_of(f, hash);
    return (slots_of(bucket_at(f, p.first), p.fingerprint) |
            slots_of(bucket_at(f, p.second), p.fingerprint)) != 0;
}

/* Replace one fingerprint of a bucket, if it has it. */
static bool replace(struct cuckoo *f, uint64_t bucket, uint64_t old,
                    uint64_t new) {
    const uint64_t word = bucket_at(f, bucket), slots = slots_of(word, old);
    if (!slots) return false;
    const int shift = __builtin_ctzll(slots) - (BITS - 1);
    put_bucket(f, bucket, word ^ (old ^ new) << shift);
    return true;
}

/* A bucket that is full gives a place to the fingerprint, and the one that had
 * it goes to its own other bucket, and so on. */
static void add(struct cuckoo *f, uint64_t hash) {
    const struct place p = place_of(f, hash);
    uint64_t bucket = p.second, fingerprint = p.fingerprint;
    if (replace(f, p.first, 0, fingerprint)) return;
    for (int kicks = 0; !replace(f, bucket, 0, fingerprint); kicks++) {
        if (kicks == MOST_KICKS) {
            fputs("calyx-bench: the cuckoo filter is full\n", stderr);
            exit(1);
        }
        f->dice = mixed(f->dice);
        const int shift = BITS * (int)(f->dice >> 62);
        const uint64_t word = bucket_at(f, bucket);
        const uint64_t out = word >> shift & 4095;
        put_bucket(f, bucket, word ^ (out ^ fingerprint) << shift);
        fingerprint = out;
        bucket = other_bucket(f, bucket, fingerprint);
    }
}

static bool drop(struct cuckoo *f, uint64_t hash) {
    const struct place p = place_of(f, hash);
    return replace(f, p.first, p.fingerprint, 0) ||
           replace(f, p.second, p.fingerprint, 0);
}

/* ---- The contestant ------------------------------------------------------ */

/* Its rate is 0.18 %, whatever it is to be. */
static bool make(struct contestant *c, uint64_t n, double fpr) {
    struct cuckoo *const f = calloc(1, sizeof *f);
    (void)fpr;
    f->buckets = (uint64_t)((double)n / (WAYS * load_most)) + 1;
    f->dice = 1;
    f->body = take_pages(body_bytes(f));
    c->self = f;
    return f->body != NULL;
}

static void clear(struct contestant *c) {
    struct cuckoo *const f = c->self;
    memset(f->body, 0, body_bytes(f));
}

static void end(struct contestant *c) {
    struct cuckoo *const f = c->self;
    give_pages(f->body, body_bytes(f));
    free(f);
}

/* It knows no batches; what it does a key at a time is what its user gets. */
static bool can(const struct contestant *c, const struct task *task) {
    (void)c;
    return (task->form == NUMBERS || task->form == HASHES) &&
           task->verb != ADD_FRESH && !task->batch;
}

static size_t run(struct contestant *c, const struct task *task,
                  struct segment *s) {
    struct cuckoo *const f = c->self;
    size_t found = 0;
    for (size_t i = 0; i < s->n; i++) {
        const uint64_t hash = hash_at(s, task->form, i);
        if (task->verb == HAS)
            found += s->answers[i] = has(f, hash);
        else if (task->verb == REMOVE)
            found += drop(f, hash);
        else
            add(f, hash);
    }
    return found;
}

static uint64_t bytes(const struct contestant *c) {
    return body_bytes(c->self);
}

static const struct trade trade = {make, clear, end, can, run, bytes};

int cuckoo_contestants(struct contestant *to) {
    *to = (struct contestant){
        .name = "cuckoo 12", .trade = &trade, .answers = true};
    return 1;
}
