/*
 * Layers of static filters. The lots of a layer do not depend on each other:
 * threads build them, or other machines, each its range of hashes, and the
 * bytes are the same.
 */
#include "build/layers.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/parallel.h"

size_t spool_hashes(uint64_t memory_bytes) {
    const uint64_t hashes = memory_bytes / 10;
    return hashes < SIZE_MAX / 16 ? (size_t)hashes : SIZE_MAX / 16;
}

uint64_t memory_of_next(uint64_t memory_bytes) {
    return memory_bytes / 5;
}

struct layer_work {
    const struct construction *kind;
    struct shape shape;
    struct lot_range lots; /* the units of the spool */
    uint8_t *body;
    struct hash_spool *next; /* hashes that are bumped; under the monitor */
    struct monitor monitor;
    /* Of each thread; the second unless hashes can be overwritten. */
    void *scratch[THREADS_MOST];
    uint64_t *bumped[THREADS_MOST];
    uint64_t bumped_room; /* hashes of the largest lot */
};

static uint64_t first_of_lot(void *context, uint64_t unit) {
    const struct layer_work *const work = context;
    return work->kind->lot(&work->shape, work->lots.first + unit).first;
}

/* The number of hashes of a lot, which come first in the array. */
static size_t count_in_lot(const struct layer_work *work, uint64_t lot,
                           const uint64_t *hashes, size_t n) {
    if (lot + 1 == work->lots.end) return n;
    const uint64_t end = work->kind->lot(&work->shape, lot + 1).first;
    size_t count = 0;
    while (count < n && hashes[count] < end) count++;
    return count;
}

static calyx_status measure_lots(void *context, const struct hash_range *range,
                                 calyx_error *why) {
    struct layer_work *const work = context;
    size_t done = 0;
    (void)why;
    for (uint64_t i = range->first_unit; i < range->end_unit; i++) {
        const size_t n = count_in_lot(work, work->lots.first + i,
                                      range->hashes + done, range->n - done);
        if (n > work->bumped_room) work->bumped_room = n;
        done += n;
    }
    return CALYX_OK;
}

static calyx_status bump(struct layer_work *work, const uint64_t *hashes,
                         size_t n, calyx_error *why) {
    if (n == 0) return CALYX_OK;
    monitor_enter(&work->monitor);
    const calyx_status status = spool_add(work->next, hashes, n, why);
    monitor_leave(&work->monitor);
    return status;
}

static calyx_status build_units(void *context, const struct hash_range *range,
                                calyx_error *why) {
    struct layer_work *const work = context;
    calyx_status status = CALYX_OK;
    size_t done = 0;
    for (uint64_t i = range->first_unit;
         i < range->end_unit && status == CALYX_OK; i++) {
        const uint64_t lot = work->lots.first + i;
        const uint64_t *const hashes = range->hashes + done;
        uint64_t *const bumped = range->overwritable
                                     ? range->overwritable + done
                                     : work->bumped[range->thread];
        const size_t n = count_in_lot(work, lot, hashes, range->n - done);
        const uint64_t at = work->kind->lot(&work->shape, lot).at;
        status = bump(work, bumped,
                      work->kind->build(&work->shape, lot, hashes, n,
                                        work->scratch[range->thread],
                                        work->body + at, bumped),
                      why);
        done += n;
    }
    return status;
}

static bool allocate_work(struct layer_work *work, const calyx_memory *memory,
                          uint32_t threads) {
    for (uint32_t i = 0; i < threads; i++) {
        work->scratch[i] = memory->allocate(
            memory->context, work->kind->scratch_bytes, ALIGNMENT);
        if (!work->scratch[i]) return false;
        if (!work->bumped_room) continue;
        work->bumped[i] = memory->allocate(
            memory->context, (size_t)(8 * work->bumped_room), sizeof(uint64_t));
        if (!work->bumped[i]) return false;
    }
    return true;
}

static void free_work(struct layer_work *work, const calyx_memory *memory) {
    for (uint32_t i = 0; i < THREADS_MOST; i++) {
        if (work->scratch[i])
            memory->release(memory->context, work->scratch[i],
                            work->kind->scratch_bytes);
        if (work->bumped[i])
            memory->release(memory->context, work->bumped[i],
                            (size_t)(8 * work->bumped_room));
    }
}

calyx_status build_lots(const struct layer_options *options,
                        const struct kind *kind, const struct shape *shape,
                        struct lot_range lots, const struct hash_spool *s,
                        uint64_t n, uint8_t *body, struct hash_spool *next,
                        calyx_error *why) {
    const uint64_t units = lots.end - lots.first;
    if (units == 0) return CALYX_OK;
    struct layer_work work = {.kind = kind->construction,
                              .shape = *shape,
                              .lots = lots,
                              .body = body,
                              .next = next};
    struct spool_visit how = {.units = units,
                              .first = first_of_lot,
                              .visit = measure_lots,
                              .context = &work,
                              .least_room =
                                  (size_t)(4 * (n / units + SPOOL_LEAST)),
                              .in_order = true};
    calyx_status status = CALYX_OK;
    if (!s->run_count) status = spool_read(s, 1, &how, why);
    if (status != CALYX_OK) return status;
    if (!allocate_work(&work, options->memory, options->threads) ||
        !monitor_init(&work.monitor)) {
        status = fail(why, CALYX_NO_MEMORY,
                      "no memory for %u threads that build a filter",
                      options->threads);
    } else {
        how.visit = build_units;
        how.in_order = false;
        status = spool_read(s, options->threads, &how, why);
        monitor_end(&work.monitor);
    }
    free_work(&work, options->memory);
    return status;
}

/* Add a layer of these hashes to the filter. The hashes that it bumps go to
 * `next`. */
static calyx_status add_layer(const struct layer_options *how, calyx_filter *f,
                              struct part like, const struct hash_spool *s,
                              struct hash_spool *next, calyx_error *why) {
    if (allocate_part(f, &like) != CALYX_OK)
        return fail(why, CALYX_NO_MEMORY,
                    "no memory for the %llu bytes of a %s filter",
                    (unsigned long long)body_bytes(f->kind, &like.shape),
                    f->kind->name);
    const struct lot_range all = {0, f->kind->construction->lots(&like.shape)};
    const calyx_status status =
        build_lots(how, f->kind, &like.shape, all, s, like.items,
                   f->newest->body, next, why);
    f->newest->items = like.items - next->added;
    f->newest->capacity = f->newest->items;
    return status;
}

static calyx_status fail_too_many_layers(calyx_error *why,
                                         const struct kind *kind) {
    return fail(why, CALYX_BAD_ARGUMENT,
                "these hashes cannot be built into %u layers of a %s filter: "
                "they must be well mixed, or were chosen to prevent it; "
                "another seed or a secret key helps",
                kind->construction->most_layers, kind->name);
}

calyx_status add_layers(const struct layer_options *how, calyx_filter *f,
                        const struct part *like, const struct hash_spool *s,
                        uint64_t memory_bytes, uint32_t number,
                        calyx_error *why) {
    const struct construction *const kind = f->kind->construction;
    struct hash_spool next;
    if (number == kind->most_layers) return fail_too_many_layers(why, f->kind);
    spool_init(&next, how->memory, spool_hashes(memory_bytes), how->folder, 1);
    calyx_status status = add_layer(how, f, *like, s, &next, why);
    if (status == CALYX_OK && next.added) {
        const struct part rest = {
            .shape = like->shape.values ? kind->value_layer(next.added)
                                        : kind->layer(next.added, like->fpr),
            .items = next.added,
            .fpr = like->fpr};
        status = spool_seal(&next, how->threads, why);
        if (status == CALYX_OK)
            status = add_layers(how, f, &rest, &next,
                                memory_of_next(memory_bytes), number + 1, why);
    }
    spool_end(&next);
    return status;
}
