/*
 * Bits where they lie: in a block of a storage engine, at any address. No
 * filter is made of them and nothing is allocated; a shape by value says how to
 * read them. raw_bits.c makes filters of such bits.
 */
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"
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

calyx_shape calyx_shape_resize(calyx_shape like, uint64_t bits,
                               uint32_t probes) {
    const struct kind *const kind = kind_at(like.kind - 1);
    calyx_shape shape = {.probes = probes, .kind = like.kind};
    if (kind && kind->has_in_bits && bits % kind->block_bits == 0)
        shape.blocks = bits / kind->block_bits;
    return kind_of(shape) ? shape : (calyx_shape){0};
}

uint64_t calyx_shape_bytes(calyx_shape shape) {
    const struct kind *const kind = kind_of(shape);
    return kind ? (shape.blocks * kind->block_bits + 7) / 8 : 0;
}

double calyx_shape_rate(calyx_shape shape, uint64_t keys) {
    const struct kind *const kind = kind_of(shape);
    const struct shape inner = inner_of(shape);
    return kind ? expected_rate(kind, &inner, (double)keys) : 1;
}

NO_CANARY bool calyx_bits_has(calyx_shape shape, const void *bits,
                              uint64_t hash) {
    const struct kind *const kind = kind_of(shape);
    const struct shape inner = inner_of(shape);
    return !kind || kind->has_in_bits(bits, &inner, hash);
}

/* NULL if no kernel can read these bits. Kernels want whole lines; those with
 * vectors take them from any address. */
static const struct kernel *kernel_for(const struct kind *kind,
                                       const struct shape *shape,
                                       const void *bits) {
    const struct kernel *const kernel = kernel_up_to(kind->kernels, cpu_best());
    const bool is_aligned = (uintptr_t)bits % ALIGNMENT == 0;
    const bool is_whole =
        shape->blocks * kind->block_bits % (8 * ALIGNMENT) == 0;
    return is_whole && (is_aligned || kernel->level != CPU_SCALAR) ? kernel
                                                                   : NULL;
}

static size_t has_many_by(const struct kernel *kernel,
                          const struct shape *shape, const void *bits,
                          const uint64_t *hashes, size_t n, bool *found) {
    size_t total = 0;
    for (size_t i = 0; i < n; i += BATCH_MAX) {
        const size_t some = n - i < BATCH_MAX ? n - i : BATCH_MAX;
        total += kernel->has_batch(bits, shape, batch_of(hashes + i, some),
                                   found ? found + i : NULL);
    }
    return total;
}

size_t calyx_bits_has_many(calyx_shape shape, const void *bits,
                           const uint64_t *hashes, size_t n, bool *found) {
    const struct kind *const kind = kind_of(shape);
    const struct shape inner = inner_of(shape);
    const struct kernel *const kernel =
        kind ? kernel_for(kind, &inner, bits) : NULL;
    if (kernel) return has_many_by(kernel, &inner, bits, hashes, n, found);
    size_t total = 0;
    for (size_t i = 0; i < n; i++) {
        const bool has = !kind || kind->has_in_bits(bits, &inner, hashes[i]);
        if (found) found[i] = has;
        total += has;
    }
    return total;
}

calyx_status calyx_bits_add(calyx_shape shape, void *bits,
                            const uint64_t *hashes, size_t n) {
    const struct kind *const kind = kind_of(shape);
    const struct shape inner = inner_of(shape);
    if (!kind) return CALYX_BAD_ARGUMENT;
    for (size_t i = 0; i < n; i++) kind->add_to_bits(bits, &inner, hashes[i]);
    return CALYX_OK;
}

calyx_status calyx_bits_build(calyx_shape shape, const uint64_t *hashes,
                              size_t n, void *buffer) {
    const uint64_t size = calyx_shape_bytes(shape);
    if (size == 0 || size > SIZE_MAX) return CALYX_BAD_ARGUMENT;
    memset(buffer, 0, (size_t)size);
    return calyx_bits_add(shape, buffer, hashes, n);
}
