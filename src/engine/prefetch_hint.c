/*
 * Prefetch the memory of a key before its lookup. A hint is a copy of all that
 * leads from a key to its lines, so it does not read the filter, which may have
 * been freed; a prefetch of an invalid address does nothing.
 */
#include <string.h>

#include "engine/prefetch_hint.h"
#include "kind/batch_loops.h"

_Static_assert(sizeof(struct prefetch_hint) <= sizeof(calyx_prefetch_hint),
               "a hint fits");

static bool is_far(const calyx_filter *f, const struct part *p) {
    return bits_bytes(f->kind, &p->shape) >= PART_LEAST;
}

void hint_of_parts(const calyx_filter *f, const struct part *p,
                   struct prefetch_hint *hint) {
    hint->shape = p->shape;
    hint->stride = f->kind->one_block ? f->kind->block_bits / 8 : 0;
    do
        hint->part[hint->parts++] =
            (struct hinted_part){p->body, p->shape.blocks};
    while (hint->stride && hint->parts < PARTS_MOST && (p = p->older) &&
           is_far(f, p));
}

void calyx_prefetch_hint_of(const calyx_filter *f, calyx_prefetch_hint *hint) {
    struct prefetch_hint *const inner = (struct prefetch_hint *)hint;
    memset(hint, 0, sizeof *hint);
    if (!f->engine->fill_hint)
        hint_of_parts(f, newest_of(f), inner);
    else if (!f->engine->fill_hint(f, inner))
        return;
    inner->kernel = f->kernel;
    inner->hash = f->hash;
    inner->secret = f->secret;
}

/* noinline: it needs an array, and few kinds need it. */
static NOINLINE void prefetch_blocks(const struct prefetch_hint *inner,
                                     uint64_t hash) {
    const struct batch after = {.hashes = &hash, .more = 1};
    inner->kernel->has_batch(inner->part[0].body, &inner->shape, after, NULL);
}

static inline void prefetch_hash(const struct prefetch_hint *inner,
                                 uint64_t hash) {
    if (inner->parts == 0) {
        prefetch_l1(line_in_newest(&inner->newest, hash));
        return;
    }
    if (inner->stride) {
        for (uint64_t i = 0; i < inner->parts; i++)
            prefetch_l1(inner->part[i].body +
                        inner->stride * scale64(hash, inner->part[i].blocks));
        return;
    }
    prefetch_blocks(inner, hash);
}

void calyx_prefetch(const calyx_prefetch_hint *hint, const void *key,
                    size_t size) {
    const struct prefetch_hint *const inner =
        (const struct prefetch_hint *)hint;
    if (inner->kernel)
        prefetch_hash(inner, inner->hash->one(&inner->secret, key, size));
}
