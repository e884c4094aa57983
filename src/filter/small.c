/*
 * Small filters without structs: 32 bytes describe one, and the structs are
 * filled in on the caller's stack when it is used. That takes about 10 ns, and
 * saves about 200 bytes.
 */
#include <string.h>

#include "engine/table_engine.h"
#include "filter/filter.h"

/* Growth comes in steps of 0.05 here; others are not made small. */
static const double GROWTH_UNIT = 20;

struct room {
    struct calyx_filter filter;
    struct part part;
    struct filter_table table;
};

_Static_assert(sizeof(calyx_small) == 32, "no padding");
_Static_assert(sizeof(struct room) <= sizeof(calyx_room), "a filter fits");

static const struct kind *kind_of(const calyx_small *small) {
    return kind_coded(small->code / 16);
}

/* A table that does not grow has more probes than fit beside the code: they
 * are where its growth would be, and beside the code is whether it is strict.
 */
static bool is_fixed(const struct kind *kind) {
    return kind->is_table && !kind->segments;
}

static uint32_t probes_of(const calyx_small *small) {
    return is_fixed(kind_of(small)) ? small->growth : small->code % 16 + 1u;
}

static bool is_strict(const calyx_small *small) {
    return is_fixed(kind_of(small)) ? small->code % 16 : small->growth == 0;
}

/* The spare bits of a table are above the number of its blocks. */
enum { BLOCKS_BITS = 12 };

static uint16_t pack_blocks(const struct kind *kind,
                            const struct shape *shape) {
    const uint64_t spare = kind->is_table ? shape->spare << BLOCKS_BITS : 0;
    return (uint16_t)(shape->blocks | spare);
}

static struct shape shape_of(const calyx_small *small) {
    const bool is_table = kind_of(small)->is_table;
    const uint64_t mask = is_table ? (1 << BLOCKS_BITS) - 1 : UINT16_MAX;
    return (struct shape){
        .blocks = small->blocks & mask,
        .probes = probes_of(small),
        .spare = is_table ? small->blocks >> BLOCKS_BITS : 0,
    };
}

/* Once for each kind: to look at the environment takes longer than the rest. */
static const struct kernel *kernel_for(uint8_t code) {
    static const struct kernel *chosen[16];
    const struct kernel *kernel =
        __atomic_load_n(&chosen[code], __ATOMIC_RELAXED);
    if (kernel) return kernel;
    struct calyx_filter head = {.kind = kind_coded(code)};
    choose_kernel(NULL, &head, NULL);
    __atomic_store_n(&chosen[code], head.kernel, __ATOMIC_RELAXED);
    return head.kernel;
}

static struct calyx_filter small_head(const calyx_small *small,
                                      const calyx_memory *memory) {
    struct calyx_filter head = {
        .kind = kind_of(small),
        .secret.seed = small->seed,
        .memory = *memory,
        .fpr = small->fpr,
        .growth = is_fixed(kind_of(small)) ? 0 : small->growth / GROWTH_UNIT,
        .strict = is_strict(small),
    };
    head.hash = hash_named(head.kind->hash);
    head.kernel = kernel_for(small->code / 16);
    choose_engine(&head);
    return head;
}

static struct part small_part(const calyx_small *small, void *bits) {
    return (struct part){
        .body = bits,
        .shape = shape_of(small),
        .capacity = small->capacity,
        .items = small->items,
        .fpr = small->first_fpr,
    };
}

/* Does `small` describe all of the filter? */
static bool describes_all(const calyx_filter *f, const calyx_small *small) {
    const struct part *const p = newest_of(f);
    const struct shape shape = shape_of(small);
    const struct calyx_filter head = small_head(small, &f->memory);
    return !p->older && !is_in_pieces(p) && !is_wrapped(f) && !f->comment &&
           !f->properties && !f->concurrent && !is_counting(f) &&
           !is_static(f) && f->kernel == head.kernel && f->hash == head.hash &&
           !f->hash->keyed && f->growth == head.growth &&
           f->strict == head.strict && p->capacity == small->capacity &&
           p->items == small->items && p->shape.blocks == shape.blocks &&
           p->shape.probes == shape.probes && p->shape.spare == shape.spare;
}

bool calyx_make_small(calyx_filter *f, calyx_small *small, void **bits) {
    const struct part *const p = newest_of(f);
    const bool fixed = is_fixed(f->kind);
    const double growth = fixed ? p->shape.probes : f->growth * GROWTH_UNIT;
    const uint32_t beside = fixed ? f->strict : p->shape.probes - 1;
    if (f->kind->code > 15 || growth > UINT8_MAX) return false;
    const calyx_small made = {
        .seed = f->secret.seed,
        .fpr = f->fpr,
        .first_fpr = p->fpr,
        .capacity = (uint16_t)p->capacity,
        .items = (uint16_t)p->items,
        .blocks = pack_blocks(f->kind, &p->shape),
        .growth = (uint8_t)growth,
        .code = (uint8_t)(16 * f->kind->code + beside % 16),
    };
    if (!describes_all(f, &made)) return false;
    *small = made;
    *bits = p->body;
    give_structs(f);
    return true;
}

calyx_filter *calyx_open_small(const calyx_small *small, void *bits,
                               const calyx_memory *memory, calyx_room *room) {
    struct room *const r = (struct room *)room;
    r->filter = small_head(small, memory);
    r->part = small_part(small, bits);
    r->filter.newest = &r->part;
    r->filter.open_small = true;
#if !CALYX_NO_BUCKET
    if (r->filter.kind->segments) open_table(&r->filter, &r->table);
#endif
    return &r->filter;
}

void calyx_close_small(const calyx_filter *f, calyx_small *small) {
    small->items = (uint16_t)newest_of(f)->items;
}

calyx_status calyx_from_small(const calyx_small *small, void *bits,
                              const calyx_memory *memory, calyx_filter **out) {
    const struct calyx_filter head = small_head(small, memory);
    const struct part like = small_part(small, bits);
    calyx_filter *f;
    calyx_status status = allocate_head(&head, &f);
    if (status != CALYX_OK) return status;
    status = borrow_part(f, &like, bits);
    if (status == CALYX_OK)
        *out = f;
    else
        give_structs(f);
    return status;
}

size_t calyx_small_bytes(const calyx_small *small) {
    const struct shape shape = shape_of(small);
    return (size_t)body_bytes(kind_of(small), &shape);
}
