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

NO_CANARY static calyx_status bits_add(calyx_filter *f, uint64_t hash,
                                       bool *fresh) {
    struct part *const p = f->newest;
    *fresh = f->kernel->add(p->body, &p->shape, hash);
    p->items += *fresh | is_counting(f);
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

size_t bits_has_many(const calyx_filter *f, const struct key_list *keys,
                     bool *found) {
    return has_in_batches(f, keys, found, has_batch,
                          should_kernel_hash(f, f->newest, keys));
}

static calyx_status bits_add_some(calyx_filter *f, struct key_window *w,
                                  bool *fresh, size_t *done) {
    struct part *const p = f->newest;
    const size_t n = *done = w->batch.n;
    const size_t added =
        f->kernel->add_batch(p->body, &p->shape, w->batch, fresh);
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
