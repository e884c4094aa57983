/*
 * Calling the memory of a key ahead of the question. An aim is a copy of what
 * leads from a key to a line of the newest part, so it does not look at the
 * filter, which may be gone; and calling memory that is not there does nothing.
 */
#include <string.h>

#include "filter/filter.h"
#include "kind/batch.h"

struct aim {
    const struct kernel *kernel; /* these two are never freed; NULL: no aim */
    const struct hash *hash;
    struct secret secret;
    const uint8_t *body;
    struct shape shape;
    uint64_t stride; /* bytes of a block, if a key goes to one; else 0 */
};

_Static_assert(sizeof(struct aim) <= sizeof(calyx_aim), "an aim fits");

void calyx_take_aim(const calyx_filter *f, calyx_aim *aim) {
    const struct part *p = newest_of(f);
    const uint64_t stride = f->kind->one_block ? f->kind->block_bits / 8 : 0;
    const struct aim inner = {f->kernel, f->hash,  f->secret,
                              p->body,   p->shape, stride};
    memset(aim, 0, sizeof *aim);
    memcpy(aim, &inner, sizeof inner);
}

void calyx_prefetch(const calyx_aim *aim, const void *key, size_t size) {
    struct aim inner;
    memcpy(&inner, aim, sizeof inner);
    if (!inner.kernel) return;
    const uint64_t hash = inner.hash->one(&inner.secret, key, size);
    if (inner.stride) {
        prefetch_l1(inner.body +
                    inner.stride * scale64(hash, inner.shape.blocks));
        return;
    }
    const struct batch behind = {.hashes = &hash, .more = 1};
    inner.kernel->has_batch(inner.body, &inner.shape, behind, NULL);
}
