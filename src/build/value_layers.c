/*
 * The value layers of an exact filter: hashes of all keys of the universe that
 * pass its first layers go to a spool. Their lowest bit says whether the key is
 * excluded (kind.h), so a key that is both included and excluded becomes two
 * hashes that follow each other.
 */
#include <string.h>

#include "base/error.h"
#include "base/parallel.h"
#include "build/layers.h"

enum { AT_ONCE = 1024 };

struct passing {
    const calyx_filter *f;
    uint64_t (*next_value_hash)(uint64_t hash);
    bool excluded, all_pass;
    struct hash_spool to; /* under the monitor */
    struct monitor monitor;
    uint64_t distinct, both; /* atomic */
};

static calyx_status keep(struct passing *work, const uint64_t *hashes, size_t n,
                         calyx_error *why) {
    monitor_enter(&work->monitor);
    const calyx_status status = spool_add(&work->to, hashes, n, why);
    monitor_leave(&work->monitor);
    return status;
}

static calyx_status pass_some(struct passing *work, const uint64_t *hashes,
                              size_t n, calyx_error *why) {
    bool passes[AT_ONCE];
    uint64_t passed[AT_ONCE];
    size_t count = 0;
    memset(passes, true, sizeof passes);
    if (work->excluded && !work->all_pass)
        calyx_has_hashes(work->f, hashes, n, passes);
    for (size_t i = 0; i < n; i++) {
        passed[count] = work->next_value_hash(hashes[i]) | work->excluded;
        count += passes[i];
    }
    return keep(work, passed, count, why);
}

static calyx_status pass_range(void *context, const struct hash_range *range,
                               calyx_error *why) {
    calyx_status status = CALYX_OK;
    for (size_t at = 0, n; at < range->n && status == CALYX_OK; at += n) {
        n = range->n - at < AT_ONCE ? range->n - at : AT_ONCE;
        status = pass_some(context, range->hashes + at, n, why);
    }
    return status;
}

/* No range ends with the first of two such hashes. */
static calyx_status count_both(void *context, const struct hash_range *range,
                               calyx_error *why) {
    struct passing *const work = context;
    uint64_t both = 0;
    (void)why;
    for (size_t i = 1; i < range->n; i++)
        both += (range->hashes[i - 1] | 1) == range->hashes[i];
    __atomic_fetch_add(&work->distinct, range->n, __ATOMIC_RELAXED);
    __atomic_fetch_add(&work->both, both, __ATOMIC_RELAXED);
    return CALYX_OK;
}

static calyx_status fail_both(uint64_t both, calyx_error *why) {
    return fail(why, CALYX_MISMATCH,
                "%llu keys are both included and excluded; or, if none was "
                "given as both, two keys have the same hash, and another seed "
                "helps",
                (unsigned long long)both);
}

/* Fills in the spool of the keys that pass. */
static calyx_status spool_passing(const struct layer_options *how,
                                  struct passing *work,
                                  const struct universe *all,
                                  calyx_error *why) {
    calyx_status status = spool_read_all(all->included, how->threads,
                                         pass_range, work, false, why);
    work->excluded = true;
    if (status == CALYX_OK)
        status = spool_read_all(all->excluded, how->threads, pass_range, work,
                                false, why);
    if (status == CALYX_OK) status = spool_seal(&work->to, how->threads, why);
    if (status == CALYX_OK)
        status = spool_read_all(&work->to, how->threads, count_both, work,
                                false, why);
    return status == CALYX_OK && work->both ? fail_both(work->both, why)
                                            : status;
}

static calyx_status add_passing(const struct layer_options *how,
                                calyx_filter *f, struct passing *work,
                                const struct universe *all,
                                uint64_t memory_bytes, calyx_error *why) {
    const struct part *const before = f->newest;
    calyx_status status = spool_passing(how, work, all, why);
    if (status != CALYX_OK) return status;
    const struct part like = {
        .shape = f->kind->construction->value_layer(work->distinct),
        .items = work->distinct,
        .fpr = 0.5};
    status = add_layers(how, f, &like, &work->to, memory_of_next(memory_bytes),
                        0, why);
    if (status != CALYX_OK) return status;
    struct part *first = f->newest;
    while (first->older != before) first = first->older;
    first->capacity = all->keys;
    first->items = all->included_keys;
    return CALYX_OK;
}

calyx_status add_value_layers(const struct layer_options *how, calyx_filter *f,
                              const struct universe *all, uint64_t memory_bytes,
                              calyx_error *why) {
    struct passing work = {.f = f,
                           .next_value_hash =
                               f->kind->construction->next_value_hash,
                           .all_pass = !f->newest};
    if (!monitor_init(&work.monitor))
        return fail(why, CALYX_NO_MEMORY, "no memory for a monitor");
    spool_init(&work.to, how->memory, spool_hashes(memory_bytes), how->folder,
               1);
    const calyx_status status =
        add_passing(how, f, &work, all, memory_bytes, why);
    spool_end(&work.to);
    monitor_end(&work.monitor);
    return status;
}
