/*
 * Prefetch the memory of a key before its lookup. A hint is a copy of all that
 * leads from a key to a line of the newest part, so it does not read the
 * filter, which may have been freed; a prefetch of an invalid address does
 * nothing.
 */
#include <string.h>

#include "filter/segments.h"
#include "kind/batch_loops.h"

/* How words of a hint are read. */
struct __attribute__((may_alias)) prefetch_hint {
    const struct kernel *kernel; /* these two are never freed; NULL: no hint */
    const struct hash *hash;
    struct secret secret;
    const uint8_t *body;
    struct shape shape;
    uint64_t stride; /* bytes of a block, if a key goes to one; else 0 */
    struct newest_segments newest; /* of a table that has grown        */
};

_Static_assert(sizeof(struct prefetch_hint) <= sizeof(calyx_prefetch_hint),
               "a hint fits");

/* The stage that groups are moving to: they soon have, and then the hint is not
 * taken again. */
static void hint_of_table(const struct bucket_table *t,
                          struct newest_segments *newest) {
    const uint64_t stage = stage_of(t);
    const bool is_moving = (stage & MOVED_MASK) != 0;
    const struct bucket_scale scale =
        scale_at(t, stage_number(stage) + is_moving);
    copy_newest(t, &scale, newest);
}

/* A table that has grown beside readers has no hint: its segments may be
 * changing. */
void calyx_prefetch_hint_of(const calyx_filter *f, calyx_prefetch_hint *hint) {
    const struct part *p = f->first_layer ? f->first_layer : newest_of(f);
    struct prefetch_hint *const inner = (struct prefetch_hint *)hint;
    memset(hint, 0, sizeof *hint);
    if (f->table && p->older) {
        if (f->concurrent) return;
        hint_of_table(&f->table->t, &inner->newest);
    }
    inner->kernel = f->kernel;
    inner->hash = f->hash;
    inner->secret = f->secret;
    inner->body = p->body;
    inner->shape = p->shape;
    inner->stride = f->kind->one_block ? f->kind->block_bits / 8 : 0;
}

static inline void prefetch_hash(const struct prefetch_hint *inner,
                                 uint64_t hash) {
    if (inner->newest.units) {
        prefetch_l1(line_in_newest(&inner->newest, hash));
        return;
    }
    if (inner->stride) {
        prefetch_l1(inner->body +
                    inner->stride * scale64(hash, inner->shape.blocks));
        return;
    }
    const struct batch behind = {.hashes = &hash, .more = 1};
    inner->kernel->has_batch(inner->body, &inner->shape, behind, NULL);
}

/* NULL if it is no hint. */
static inline const struct prefetch_hint *inner_of(
    const calyx_prefetch_hint *hint) {
    const struct prefetch_hint *const inner =
        (const struct prefetch_hint *)hint;
    return inner->kernel ? inner : NULL;
}

void calyx_prefetch(const calyx_prefetch_hint *hint, const void *key,
                    size_t size) {
    const struct prefetch_hint *const inner = inner_of(hint);
    if (inner)
        prefetch_hash(inner, inner->hash->one(&inner->secret, key, size));
}

void calyx_prefetch_u64(const calyx_prefetch_hint *hint, uint64_t number) {
    const struct prefetch_hint *const inner = inner_of(hint);
    if (inner)
        prefetch_hash(inner,
                      inner->hash->number(inner->hash, &inner->secret, number));
}

void calyx_prefetch_hash(const calyx_prefetch_hint *hint, uint64_t hash) {
    const struct prefetch_hint *const inner = inner_of(hint);
    if (inner) prefetch_hash(inner, hash);
}
