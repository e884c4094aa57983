/*
 * The engine of a plain filter: one part without a limit, to which one thread
 * adds. Its parts never change, so nothing but the kernel stands on its road.
 *
 * There is no branch on an answer, so the processor can start the caller's next
 * lookup before this one is finished.
 */
#include "base/compiler.h"
#include "engine/engine.h"

bool bits_has(const calyx_filter *f, uint64_t hash) {
    return in_part(f, f->newest, hash);
}

static calyx_status bits_add(calyx_filter *f, uint64_t hash, bool *fresh) {
    struct part *const p = f->newest;
    const bool is_fresh = f->kernel->add(p->body, &p->shape, hash);
    p->items += is_fresh | is_counting(f);
    if (fresh) *fresh = is_fresh;
    return CALYX_OK;
}

enum {
    LARGE_BYTES = 16 << 20
}; /* a part beyond the caches has at least these */

bool is_large(const calyx_filter *f, const struct part *p) {
    return bits_bytes(f->kind, &p->shape) >= LARGE_BYTES;
}

/* In a cache the kernel does not wait, and is 5 % slower. */
bool should_kernel_hash(const calyx_filter *f, const struct part *p,
                        const struct key_list *keys) {
    return keys->numbers && is_large(f, p) && f->hash->is_xxh3 &&
           f->kernel->hashes_numbers;
}

static size_t has_batch(const calyx_filter *f, struct batch batch,
                        bool *found) {
    const struct part *const p = f->newest;
    return f->kernel->has_batch(p->body, &p->shape, batch, found);
}

/* So few keys need no prefetch: the processor begins the next lookups while the
 * first ones wait for memory. A batch would be slower: it is a struct, which a
 * kernel copies just after it was written, and a copy by wider loads than the
 * stores waits for all instructions before it. */
enum { FEW = 16 };

static NOINLINE NO_CANARY size_t has_few(const calyx_filter *f,
                                         const struct key_list *keys,
                                         bool *found) {
    uint64_t buffer[FEW];
    const uint64_t *const hashes = hash_keys(f, keys, 0, keys->n, buffer);
    size_t total = 0;
    for (size_t i = 0; i < keys->n; i++) {
        const bool yes = bits_has(f, hashes[i]);
        if (found) found[i] = yes;
        total += yes;
    }
    return total;
}

static size_t add_few(calyx_filter *f, struct part *p, const uint64_t *hashes,
                      size_t n, bool *fresh) {
    size_t total = 0;
    for (size_t i = 0; i < n; i++) {
        const bool is_fresh = f->kernel->add(p->body, &p->shape, hashes[i]);
        if (fresh) fresh[i] = is_fresh;
        total += is_fresh;
    }
    return total;
}

size_t bits_has_many(const calyx_filter *f, const struct key_list *keys,
                     bool *found) {
    if (keys->n <= FEW) return has_few(f, keys, found);
    return has_in_batches(f, keys, found, has_batch,
                          should_kernel_hash(f, f->newest, keys));
}

static calyx_status bits_add_some(calyx_filter *f, struct key_window *w,
                                  bool *fresh, size_t *done) {
    struct part *const p = f->newest;
    const size_t n = *done = w->batch.n;
    const size_t added =
        n + w->batch.more <= FEW
            ? add_few(f, p, w->batch.hashes, n, fresh)
            : f->kernel->add_batch(p->body, &p->shape, w->batch, fresh);
    note_prefetched(&w->batch, n);
    p->items += is_counting(f) ? n : added;
    return CALYX_OK;
}

const struct engine bits_engine = {
    .calls =
        {
            .has = bits_has,
            .add = bits_add,
            .remove = remove_from_parts,
            .count = count_in_parts,
            .has_many = bits_has_many,
            .add_some = bits_add_some,
            .remove_batch = remove_batch_from_parts,
            .most_hashes = BATCH_MAX,
        },
    .is_direct = true,
    .is_intact = are_parts_intact,
    .take_part = choose_engine_again,
    .describe = describe_parts,
    .check_alike = check_alike_parts,
};
