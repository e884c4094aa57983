/*
 * Prefetch the memory of a key before its lookup. A hint is a copy of all that
 * leads from a key to a line of the newest part, so it does not read the
 * filter, which may have been freed; a prefetch of an invalid address does
 * nothing.
 */
#include <string.h>

#include "filter/filter.h"
#include "kind/batch_loops.h"

struct prefetch_hint {
    const struct kernel *kernel; /* these two are never freed; NULL: no hint */
    const struct hash *hash;
    struct secret secret;
    const uint8_t *body;
    struct shape shape;
    uint64_t stride; /* bytes of a block, if a key goes to one; else 0 */
};

_Static_assert(sizeof(struct prefetch_hint) <= sizeof(calyx_prefetch_hint),
               "a hint fits");

/* A table that has grown has no hint: addresses of all its segments would not
 * fit, and a line of the newest alone is mostly the wrong one. */
void calyx_prefetch_hint_of(const calyx_filter *f, calyx_prefetch_hint *hint) {
    const struct part *p = f->first_layer ? f->first_layer : newest_of(f);
    const uint64_t stride = f->kind->one_block ? f->kind->block_bits / 8 : 0;
    const struct prefetch_hint inner = {f->kernel, f->hash,  f->secret,
                                        p->body,   p->shape, stride};
    memset(hint, 0, sizeof *hint);
    if (f->table && p->older) return;
    memcpy(hint, &inner, sizeof inner);
}

static inline struct prefetch_hint inner_of(const calyx_prefetch_hint *hint) {
    struct prefetch_hint inner;
    memcpy(&inner, hint, sizeof inner);
    return inner;
}

static inline void prefetch_hash(const struct prefetch_hint *inner,
                                 uint64_t hash) {
    if (inner->stride) {
        prefetch_l1(inner->body +
                    inner->stride * scale64(hash, inner->shape.blocks));
        return;
    }
    const struct batch behind = {.hashes = &hash, .more = 1};
    inner->kernel->has_batch(inner->body, &inner->shape, behind, NULL);
}

void calyx_prefetch(const calyx_prefetch_hint *hint, const void *key,
                    size_t size) {
    const struct prefetch_hint inner = inner_of(hint);
    if (inner.kernel)
        prefetch_hash(&inner, inner.hash->one(&inner.secret, key, size));
}

void calyx_prefetch_u64(const calyx_prefetch_hint *hint, uint64_t number) {
    const struct prefetch_hint inner = inner_of(hint);
    if (inner.kernel)
        prefetch_hash(&inner,
                      inner.hash->number(inner.hash, &inner.secret, number));
}

void calyx_prefetch_hash(const calyx_prefetch_hint *hint, uint64_t hash) {
    const struct prefetch_hint inner = inner_of(hint);
    if (inner.kernel) prefetch_hash(&inner, hash);
}
