/*
 * Chains of links: making, growing, adding, lookups. (Files and dumps are in
 * redisbloom_rdb.c.)
 *
 * A key has two hashes, a and b, the second seeded with the first. Its bits in
 * a link are at
 *
 *     (a + i * b) mod 2^64, mod modulus        for i = 0, 1, .. hashes - 1
 *
 * where bit x is bit x % 8 of byte x / 8. So a key
 * touches as many cache lines as it has bits, all over the body. Prefetching
 * did not help for one key. Of many keys, a few bits of each are prefetched
 * before the first is read, and keys that miss one are dropped: 50 % of the
 * time. The division is a multiplication.
 *
 * The first filters of RedisBloom, in 2017, had hashes of 32 bits, and i * b
 * was computed in 32 bits. Where n2 is 0 that leads to other bits than the
 * rule above, by which later versions of RedisBloom look for the same keys, in
 * vain. Here the keys of such links are looked for by both rules.
 */
#include "foreign/redisbloom_chain.h"

#include <math.h>
#include <string.h>

#include "foreign/layout_memory.h"
#include "foreign/modulo.h"
#include "foreign/murmur.h"

enum {
    BATCH = 32,        /* keys per batch                           */
    STRIDE = 4,        /* bits of each key that are prefetched     */
    CACHED = 256 << 10 /* bytes of a body that needs no prefetch   */
};

static const uint64_t first_seed = UINT64_C(0xC6A4A7935BD1E995);
static const uint32_t first_seed32 = 0x9747B28C;

/* Digits as RedisBloom has them: its numbers are to come out to the bit. */
static const double ln2 = 0.693147180559945;
static const double ln2_squared = 0.480453013918201;

static const double tightening = 0.5;

/* ---- Where the bits are -------------------------------------------------- */

struct hash_pair {
    uint64_t a, b;
};

static struct hash_pair hash_key(const struct chain *c, const void *key,
                                 size_t size) {
    if (c->options & CHAIN_FORCE64) {
        const uint64_t a = murmur64(key, size, first_seed);
        return (struct hash_pair){a, murmur64(key, size, a)};
    }
    const uint32_t a = murmur32(key, size, first_seed32);
    return (struct hash_pair){a, murmur32(key, size, a)};
}

void link_derive(struct chain_link *l) {
    l->modulus = l->n2 ? UINT64_C(1) << l->n2 : l->bits;
    l->inverse = inverse_of(l->modulus);
}

static inline uint64_t position(const struct chain_link *l, uint64_t sum) {
    return modulo(sum, l->modulus, l->inverse);
}

static inline uint32_t bit_at(const struct chain_link *l, uint64_t at) {
    return (uint32_t)l->body[at >> 3] >> (at & 7) & 1;
}

static inline void prefetch(const struct chain_link *l, uint64_t at) {
    __builtin_prefetch(l->body + (at >> 3));
}

static inline uint32_t bit_of(const struct chain_link *l, uint64_t sum) {
    return bit_at(l, position(l, sum));
}

/* ---- One key ------------------------------------------------------------- */

static bool link_has(const struct chain_link *l, struct hash_pair h) {
    for (uint32_t i = 0; i < l->hashes; i++, h.a += h.b)
        if (!bit_of(l, h.a)) return false;
    return true;
}

/* The same by the rule of 2017. */
static bool link_has_by_32(const struct chain_link *l, struct hash_pair h) {
    uint32_t sum = (uint32_t)h.a;
    for (uint32_t i = 0; i < l->hashes; i++, sum += (uint32_t)h.b)
        if (!bit_of(l, sum)) return false;
    return true;
}

/* May keys have been added by the rule of 2017? */
static bool may_be_by_32(const struct chain *c, const struct chain_link *l) {
    return !(c->options & CHAIN_FORCE64) && l->n2 == 0;
}

static bool one_has(const struct chain *c, const struct chain_link *l,
                    struct hash_pair h) {
    return link_has(l, h) || (may_be_by_32(c, l) && link_has_by_32(l, h));
}

/* In any link from the newest down to `oldest`? The newest are the largest, and
 * hold most of the keys. */
static bool any_has(const struct chain *c, uint32_t oldest,
                    struct hash_pair h) {
    for (uint32_t i = c->links; i > oldest; i--)
        if (one_has(c, &c->link[i - 1], h)) return true;
    return false;
}

bool chain_has(const struct chain *c, const void *key, size_t size) {
    return any_has(c, 0, hash_key(c, key, size));
}

static void link_add(struct chain_link *l, struct hash_pair h) {
    for (uint32_t i = 0; i < l->hashes; i++, h.a += h.b) {
        const uint64_t at = position(l, h.a);
        l->body[at >> 3] = (uint8_t)(l->body[at >> 3] | 1u << (at & 7));
    }
    l->items++;
}

/* ---- Sizes --------------------------------------------------------------- */

double link_bpe(double error) {
    return fabs(log(error) / ln2_squared);
}

double link_hashes(double bpe) {
    return ceil(ln2 * bpe);
}

/* The smallest power of two above `need`, and room for more entries in it. */
static void round_up(struct chain_link *l, double need) {
    const int above = ilogb(need) + 1;
    l->n2 = (uint8_t)(above > 0 ? above : 0);
    l->bits = UINT64_C(1) << l->n2;
    const uint64_t spare = (uint64_t)((double)l->bits - need);
    l->entries += (uint64_t)((double)spare / l->bpe);
}

/* The numbers of a link for `size` entries, or with 2^size bits. */
static calyx_status plan(uint64_t size, double error, uint32_t options,
                         struct chain_link *l, calyx_error *why) {
    if (!(error > 0 && error < 1))
        return layout_fail(why, CALYX_CANNOT,
                           "a link must have an error rate above 0 and below "
                           "1, not %g",
                           error);
    *l = (struct chain_link){
        .entries = size, .error = error, .bpe = link_bpe(error)};
    const double hashes = link_hashes(l->bpe);
    const double need = (options & CHAIN_ENTS_IS_BITS)
                            ? ldexp(1, size < 64 ? (int)size : 64)
                            : (double)size * l->bpe;
    if (size < 1 || size > MOST_ENTRIES || !(need < (double)MOST_BITS) ||
        hashes > (double)MOST_HASHES)
        return layout_fail(why, CALYX_CANNOT,
                           "a link for %llu entries at the error rate %g would "
                           "have %g bits and %g hashes; there can be less than "
                           "%g bits and at most %d hashes",
                           (unsigned long long)size, error, need, hashes,
                           (double)MOST_BITS, MOST_HASHES);
    l->hashes = (uint32_t)hashes;

    if (options & CHAIN_ENTS_IS_BITS) {
        l->n2 = (uint8_t)size;
        l->bits = UINT64_C(1) << size;
        l->entries = (uint64_t)(need / l->bpe);
    } else if (options & CHAIN_NOROUND) {
        l->bits = need < 1 ? 1 : (uint64_t)need;
    } else {
        round_up(l, need);
    }
    if (l->entries < 1)
        return layout_fail(why, CALYX_CANNOT,
                           "a link of %llu bits has no room for an entry of %g",
                           (unsigned long long)l->bits, l->bpe);
    l->bytes = (l->bits + 63) / 64 * 8;
    l->bits = l->bytes * 8;
    link_derive(l);
    return CALYX_OK;
}

static calyx_status plan_first(uint64_t capacity, double error,
                               uint32_t options, struct chain_link *l,
                               calyx_error *why) {
    if (capacity < 1)
        return layout_fail(why, CALYX_BAD_ARGUMENT,
                           "capacity must be at least 1, not 0");
    if (!(error > 0 && error < 1))
        return layout_fail(why, CALYX_BAD_ARGUMENT,
                           "error rate must be above 0 and below 1, not %g",
                           error);
    if (!(options & CHAIN_NO_SCALING)) error *= tightening;
    return plan(capacity, error, options, l, why);
}

static calyx_status plan_next(const struct chain *c, struct chain_link *l,
                              calyx_error *why) {
    const struct chain_link *last = &c->link[c->links - 1];
    uint64_t size;
    if (c->links >= MOST_LINKS ||
        __builtin_mul_overflow(last->entries, c->growth, &size))
        return layout_fail(why, CALYX_CANNOT,
                           "a filter of %u links, the last for %llu entries, "
                           "cannot grow %u times",
                           c->links, (unsigned long long)last->entries,
                           c->growth);
    return plan(size, last->error * tightening, c->options, l, why);
}

/* Does a key that is new need a new link? */
static bool newest_is_full(const struct chain *c) {
    const struct chain_link *last = &c->link[c->links - 1];
    return last->items >= last->entries;
}

/* ---- Making -------------------------------------------------------------- */

calyx_status chain_blank(const calyx_memory *memory, struct chain **out,
                         calyx_error *why) {
    if (!memory) memory = &layout_malloc;
    struct chain *c = layout_allocate(memory, sizeof *c, why);
    if (!c) return CALYX_NO_MEMORY;
    c->memory = *memory;
    *out = c;
    return CALYX_OK;
}

calyx_status chain_push(struct chain *c, struct chain_link *l,
                        calyx_error *why) {
    struct chain_link *const link = layout_more_room(
        &c->memory, c->link, c->links, &c->room, sizeof *link, why);
    if (!link) return CALYX_NO_MEMORY;
    c->link = link;
    if (!l->body) l->body = layout_allocate(&c->memory, l->bytes, why);
    if (!l->body) return CALYX_NO_MEMORY;
    c->link[c->links++] = *l;
    c->bytes += l->bytes;
    c->items += l->items;
    return CALYX_OK;
}

calyx_status chain_new(uint64_t capacity, double error, uint32_t options,
                       uint32_t growth, const calyx_memory *memory,
                       struct chain **out, calyx_error *why) {
    struct chain_link first;
    struct chain *c;
    *out = NULL;
    if (growth < 1 && !(options & CHAIN_NO_SCALING))
        return layout_fail(why, CALYX_BAD_ARGUMENT,
                           "expansion of a filter that grows must be at least "
                           "1, not 0");
    calyx_status status = plan_first(capacity, error, options, &first, why);
    if (status == CALYX_OK) status = chain_blank(memory, &c, why);
    if (status != CALYX_OK) return status;
    c->options = options;
    c->growth = growth;
    status = chain_push(c, &first, why);
    if (status != CALYX_OK) {
        chain_free(c);
        return status;
    }
    c->arrived = c->bytes;
    *out = c;
    return CALYX_OK;
}

/* A chain with the first n links of another, which are empty. */
static calyx_status copy_links(const struct chain *c, uint32_t n,
                               struct chain **out, calyx_error *why) {
    struct chain *copy;
    *out = NULL;
    if (chain_blank(&c->memory, &copy, why) != CALYX_OK) return CALYX_NO_MEMORY;
    copy->options = c->options;
    copy->growth = c->growth;
    for (uint32_t i = 0; i < n; i++) {
        struct chain_link l = c->link[i];
        l.body = NULL;
        l.items = 0;
        if (chain_push(copy, &l, why) != CALYX_OK) {
            chain_free(copy);
            return CALYX_NO_MEMORY;
        }
    }
    copy->arrived = copy->bytes;
    *out = copy;
    return CALYX_OK;
}

calyx_status chain_new_like(const struct chain *c, struct chain **out,
                            calyx_error *why) {
    return copy_links(c, 1, out, why);
}

calyx_status chain_copy(const struct chain *c, struct chain **out,
                        calyx_error *why) {
    const calyx_status status = copy_links(c, c->links, out, why);
    if (status != CALYX_OK) return status;
    struct chain *const copy = *out;
    for (uint32_t i = 0; i < c->links; i++) {
        memcpy(copy->link[i].body, c->link[i].body, (size_t)c->link[i].bytes);
        copy->link[i].items = c->link[i].items;
    }
    copy->items = c->items;
    copy->arrived = c->arrived;
    return CALYX_OK;
}

void chain_free(struct chain *c) {
    if (!c) return;
    const calyx_memory memory = c->memory;
    for (uint32_t i = 0; i < c->links; i++)
        memory.release(memory.context, c->link[i].body,
                       (size_t)c->link[i].bytes);
    if (c->room)
        memory.release(memory.context, c->link, c->room * sizeof *c->link);
    memory.release(memory.context, c, sizeof *c);
}

struct chain_info chain_describe(const struct chain *c) {
    /* RedisBloom counts the structs of a chain and of a link, as it has them */
    enum { THEIR_CHAIN = 32, THEIR_LINK = 64 };
    struct chain_info info = {
        .size = THEIR_CHAIN + c->links * (uint64_t)THEIR_LINK + c->bytes,
        .items = c->items,
        .links = c->links,
        .growth = (c->options & CHAIN_NO_SCALING) ? 0 : c->growth,
        .hash_bits = (c->options & CHAIN_FORCE64) ? 64 : 32,
    };
    for (uint32_t i = 0; i < c->links; i++) info.capacity += c->link[i].entries;
    return info;
}

/* ---- Adding -------------------------------------------------------------- */

static calyx_status grow(struct chain *c, calyx_error *why) {
    struct chain_link next;
    if (c->options & CHAIN_NO_SCALING)
        return layout_fail(why, CALYX_FULL, "non scaling filter is full");
    const calyx_status status = plan_next(c, &next, why);
    if (status != CALYX_OK) return status;
    if (chain_push(c, &next, why) != CALYX_OK) return CALYX_NO_MEMORY;
    c->arrived = c->bytes;
    return CALYX_OK;
}

/* Add a key that is in no link older than `oldest`. */
static calyx_status add_hash(struct chain *c, uint32_t oldest,
                             struct hash_pair h, bool *fresh,
                             calyx_error *why) {
    *fresh = false;
    if (any_has(c, oldest, h)) return CALYX_OK;
    if (newest_is_full(c)) {
        const calyx_status status = grow(c, why);
        if (status != CALYX_OK) return status;
    }
    link_add(&c->link[c->links - 1], h);
    c->items++;
    *fresh = true;
    return CALYX_OK;
}

static calyx_status refuse_partial(const struct chain *c, calyx_error *why) {
    if (!chain_is_partial(c)) return CALYX_OK;
    return layout_fail(
        why, CALYX_CANNOT,
        "the filter is being loaded: %llu of its %llu bytes have "
        "arrived",
        (unsigned long long)c->arrived, (unsigned long long)c->bytes);
}

calyx_status chain_add(struct chain *c, const void *key, size_t size,
                       bool *fresh, calyx_error *why) {
    bool unused;
    const calyx_status status = refuse_partial(c, why);
    if (status != CALYX_OK) return status;
    return add_hash(c, 0, hash_key(c, key, size), fresh ? fresh : &unused, why);
}

/* ---- Many keys ----------------------------------------------------------- */

/* Keep the keys of the n keys in `which` that have all their bits in the link,
 * and return their number. Reads STRIDE bits of each key at a time. */
static size_t keep_found(const struct chain_link *l,
                         const struct hash_pair *hashes, uint8_t *which,
                         size_t n) {
    uint64_t at[BATCH][STRIDE];
    for (uint32_t from = 0; from < l->hashes && n; from += STRIDE) {
        const uint32_t left = l->hashes - from;
        const uint32_t bits = left < STRIDE ? left : STRIDE;
        for (size_t j = 0; j < n; j++) {
            const struct hash_pair h = hashes[which[j]];
            for (uint32_t i = 0; i < bits; i++) {
                at[j][i] = position(l, h.a + (from + i) * h.b);
                prefetch(l, at[j][i]);
            }
        }
        size_t left_over = 0;
        for (size_t j = 0; j < n; j++) {
            uint32_t all = 1;
            for (uint32_t i = 0; i < bits; i++) all &= bit_at(l, at[j][i]);
            which[left_over] = which[j];
            left_over += all;
        }
        n = left_over;
    }
    return n;
}

static void link_has_some(const struct chain *c, const struct chain_link *l,
                          const struct hash_pair *hashes, const uint8_t *which,
                          size_t n, bool *found) {
    if (l->bytes <= CACHED || may_be_by_32(c, l)) {
        for (size_t j = 0; j < n; j++)
            found[which[j]] = one_has(c, l, hashes[which[j]]);
        return;
    }
    uint8_t in[BATCH];
    memcpy(in, which, n);
    const size_t left_over = keep_found(l, hashes, in, n);
    for (size_t j = 0; j < left_over; j++) found[in[j]] = true;
}

/* Which of up to BATCH keys are in one of the oldest `links`? */
static void link_has_somes(const struct chain *c, uint32_t links,
                           const struct hash_pair *hashes, size_t n,
                           bool *found) {
    uint8_t which[BATCH] = {0};
    size_t left = n;
    for (size_t j = 0; j < n; j++) which[j] = (uint8_t)j, found[j] = false;
    for (uint32_t i = links; i > 0 && left; i--) {
        link_has_some(c, &c->link[i - 1], hashes, which, left, found);
        size_t open = 0;
        for (size_t j = 0; j < left; j++) {
            which[open] = which[j];
            open += !found[which[j]];
        }
        left = open;
    }
}

static size_t hash_batch(const struct chain *c, const calyx_key *keys, size_t n,
                         struct hash_pair *hashes) {
    const size_t batch = n < BATCH ? n : BATCH;
    for (size_t j = 0; j < batch; j++)
        hashes[j] = hash_key(c, keys[j].data, keys[j].size);
    return batch;
}

size_t chain_has_many(const struct chain *c, const calyx_key *keys, size_t n,
                      bool *found) {
    struct hash_pair hashes[BATCH];
    bool unused[BATCH];
    size_t total = 0, batch;
    for (size_t done = 0; done < n; done += batch) {
        batch = hash_batch(c, keys + done, n - done, hashes);
        bool *answers = found ? found + done : unused;
        link_has_somes(c, c->links, hashes, batch, answers);
        for (size_t j = 0; j < batch; j++) total += answers[j];
    }
    return total;
}

/* Prefetch the lines that keys will change; no more than a cache can hold. */
static void prefetch_all(const struct chain_link *l,
                         const struct hash_pair *hashes, size_t n,
                         const bool *seen) {
    enum { MOST = 32 };
    const uint32_t bits = l->hashes < MOST ? l->hashes : MOST;
    if (l->bytes <= CACHED) return;
    for (size_t j = 0; j < n; j++)
        for (uint32_t i = 0; i < bits && !seen[j]; i++)
            prefetch(l, position(l, hashes[j].a + i * hashes[j].b));
}

/* Adding changes only the newest link, so look the whole batch up in the older
 * ones first. The rest is done key by key. */
static calyx_status add_batch(struct chain *c, const struct hash_pair *hashes,
                              size_t n, bool *fresh, size_t *done,
                              calyx_error *why) {
    const uint32_t older = c->links - 1;
    bool seen[BATCH];
    link_has_somes(c, older, hashes, n, seen);
    prefetch_all(&c->link[older], hashes, n, seen);

    for (size_t j = 0; j < n; j++, ++*done) {
        fresh[j] = false;
        if (seen[j]) continue;
        const calyx_status status =
            add_hash(c, older, hashes[j], &fresh[j], why);
        if (status != CALYX_OK) return status;
    }
    return CALYX_OK;
}

calyx_status chain_add_many(struct chain *c, const calyx_key *keys, size_t n,
                            bool *fresh, size_t *done, calyx_error *why) {
    struct hash_pair hashes[BATCH];
    bool unused[BATCH];
    size_t added = 0;
    calyx_status status = refuse_partial(c, why);
    while (status == CALYX_OK && added < n) {
        const size_t batch = hash_batch(c, keys + added, n - added, hashes);
        status = add_batch(c, hashes, batch, fresh ? fresh + added : unused,
                           &added, why);
    }
    if (done) *done = added;
    return status;
}
