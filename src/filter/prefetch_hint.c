/*
 * Prefetch the memory of a key before its lookup. A hint is a copy of all that
 * leads from a key to its lines, so it does not read the filter, which may have
 * been freed; a prefetch of an invalid address does nothing.
 */
#include <string.h>

#include "filter/segments.h"
#include "kind/batch_loops.h"

/* The newest parts, as far as they are hardly in a near cache. */
enum { PARTS_MOST = 8, PART_LEAST = 64 << 10 };
struct hinted_part {
    const uint8_t *body;
    uint64_t blocks;
};

/* How words of a hint are read. */
struct __attribute__((may_alias)) prefetch_hint {
    const struct kernel *kernel; /* these two are never freed; NULL: no hint */
    const struct hash *hash;
    struct secret secret;
    struct shape shape; /* of the newest part                               */
    uint64_t stride;    /* bytes of a block, if a key goes to one; else 0   */
    uint64_t parts;     /* 0: a table that has grown                        */
    union {
        struct hinted_part part[PARTS_MOST];
        struct newest_segments newest;
    };
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

static bool is_far(const calyx_filter *f, const struct part *p) {
    return bits_bytes(f->kind, &p->shape) >= PART_LEAST;
}

/* Only the newest, if a key goes to several blocks. */
static void hint_of_parts(const calyx_filter *f, const struct part *p,
                          struct prefetch_hint *inner) {
    inner->stride = f->kind->one_block ? f->kind->block_bits / 8 : 0;
    do
        inner->part[inner->parts++] =
            (struct hinted_part){p->body, p->shape.blocks};
    while (inner->stride && inner->parts < PARTS_MOST && !f->table &&
           (p = p->older) && is_far(f, p));
}

/* A table that has grown beside readers has no hint: its segments may be
 * changing. */
void calyx_prefetch_hint_of(const calyx_filter *f, calyx_prefetch_hint *hint) {
    const struct part *p = f->first_layer ? f->first_layer : newest_of(f);
    const bool has_segments = f->table && p->older;
    struct prefetch_hint *const inner = (struct prefetch_hint *)hint;
    memset(hint, 0, sizeof *hint);
    if (has_segments && f->concurrent) return;
    inner->kernel = f->kernel;
    inner->hash = f->hash;
    inner->secret = f->secret;
    inner->shape = p->shape;
    if (has_segments)
        hint_of_table(&f->table->t, &inner->newest);
    else
        hint_of_parts(f, p, inner);
}

/* noinline: it needs an array, and few kinds need it. */
static NOINLINE void prefetch_blocks(const struct prefetch_hint *inner,
                                     uint64_t hash) {
    const struct batch behind = {.hashes = &hash, .more = 1};
    inner->kernel->has_batch(inner->part[0].body, &inner->shape, behind, NULL);
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
