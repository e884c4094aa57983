/*
 * Bits where they lie: in a block of a storage engine, at any address. No
 * filter is made of them and nothing is allocated; a shape by value says how to
 * read them. raw_bits.c makes filters of such bits.
 */
#include "base/compiler.h"
#include "base/error.h"
#include "filter/filter.h"

static struct shape inner_of(calyx_shape shape) {
    return (struct shape){.blocks = shape.blocks, .probes = shape.probes};
}

/* NULL if this is no shape: a caller may have read it from somewhere. On the
 * path of every lookup, so it checks what keeps them within the bits. */
static inline const struct kind *kind_of(calyx_shape shape) {
    const struct kind *const kind = kind_at(shape.kind - 1);
    const bool fits = kind && kind->has_in_bits &&
                      shape.blocks - 1 < kind->most_blocks &&
                      shape.probes - kind->probe_step <
                          kind->most_probes - kind->probe_step + 1;
    return fits ? kind : NULL;
}

calyx_status calyx_shape_plan(const calyx_options *want, calyx_shape *shape,
                              calyx_error *why) {
    struct calyx_filter head;
    struct part first;
    const calyx_status status = plan_filter(want, &head, &first, why);
    if (status != CALYX_OK) return status;
    if (!head.kind->has_in_bits)
        return fail(why, CALYX_CANNOT, "a %s filter is more than bits",
                    head.kind->name);
    if (want->growth > 0)
        return fail(why, CALYX_CANNOT, "bits do not grow, and growth is %g",
                    want->growth);
    *shape = (calyx_shape){
        .blocks = first.shape.blocks, .probes = first.shape.probes, .kind = 1};
    while (kind_at(shape->kind - 1) != head.kind) shape->kind++;
    return CALYX_OK;
}

uint64_t calyx_shape_bytes(calyx_shape shape) {
    const struct kind *const kind = kind_of(shape);
    return kind ? (shape.blocks * kind->block_bits + 7) / 8 : 0;
}

NO_CANARY bool calyx_bits_has(calyx_shape shape, const void *bits,
                              uint64_t hash) {
    const struct kind *const kind = kind_of(shape);
    const struct shape inner = inner_of(shape);
    return !kind || kind->has_in_bits(bits, &inner, hash);
}

calyx_status calyx_bits_add(calyx_shape shape, void *bits,
                            const uint64_t *hashes, size_t n) {
    const struct kind *const kind = kind_of(shape);
    const struct shape inner = inner_of(shape);
    if (!kind) return CALYX_BAD_ARGUMENT;
    for (size_t i = 0; i < n; i++) kind->add_to_bits(bits, &inner, hashes[i]);
    return CALYX_OK;
}
