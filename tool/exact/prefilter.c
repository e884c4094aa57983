#include "exact/prefilter.h"

#include "exact/key_hash.h"

struct prefilter_job {
    const calyx_filter *before; /* NULL: all keys pass */
    calyx_filter *made, *seen;
};

/* Hash the keys of a block, and leave those that `before` has. */
static void hash_passing_keys(struct text_block *block,
                              struct key_batch *batch) {
    const struct prefilter_job *const job = block->context;
    bool found[BATCH_ROOM];
    batch_start(batch, block);
    while (batch_next(batch, block)) {
        const size_t n = batch->count;
        uint64_t *const hashes =
            room_for_hashes(block, block->selected + n) + block->selected;
        hash_keys(job->made, batch->keys, n, hashes);
        block->lines += n;
        if (!job->before) {
            block->selected += n;
            continue;
        }
        calyx_has_hashes(job->before, hashes, n, found);
        block->selected += select_hashes(hashes, found, n);
    }
}

static bool add_keys(struct text_block *block, struct key_batch *batch) {
    (void)batch;
    const struct prefilter_job *const job = block->context;
    calyx_add_hashes(job->made, block->hashes, block->selected, NULL, NULL);
    return true;
}

calyx_filter *prefilter_new(uint64_t keys, uint64_t memory) {
    calyx_options want = key_hash_options(0);
    calyx_error why;
    calyx_filter *f;
    want.capacity = keys ? keys : 1;
    want.bits = 8 * prefilter_bytes_for(keys, memory);
    if (calyx_new(&want, &f, &why) != CALYX_OK) fail_with(&why);
    return f;
}

/* 10 bits for each key if memory allows. */
uint64_t prefilter_bytes_for(uint64_t keys, uint64_t memory) {
    const uint64_t least = 1 << 13, wanted = keys + keys / 4;
    const uint64_t bytes = wanted < memory ? wanted : memory;
    return bytes < least ? least : bytes;
}

calyx_filter *prefilter_of(char *file, const calyx_filter *before,
                           uint64_t keys, uint64_t memory) {
    struct prefilter_job job = {.before = before,
                                .made = prefilter_new(keys, memory)};
    const struct stages stages = {.in_parallel = hash_passing_keys,
                                  .in_order = add_keys,
                                  .context = &job};
    run_pipeline(&stages, 1, &file);
    return job.made;
}

/* ---- Repeated keys ------------------------------------------------------- */

/* In order: if two equal lines were added at once, both might count as the
 * first. */
static bool add_repeats(struct text_block *block, struct key_batch *batch) {
    (void)batch;
    const struct prefilter_job *const job = block->context;
    bool fresh[BATCH];
    for (size_t at = 0; at < block->selected; at += BATCH) {
        uint64_t *const hashes = block->hashes + at;
        const size_t left = block->selected - at;
        const size_t n = left < BATCH ? left : BATCH;
        calyx_add_hashes(job->seen, hashes, n, fresh, NULL);
        for (size_t i = 0; i < n; i++) fresh[i] = !fresh[i];
        calyx_add_hashes(job->made, hashes, select_hashes(hashes, fresh, n),
                         NULL, NULL);
    }
    return true;
}

/* At most half of the lines can have distinct repeated keys. */
struct repeats prefilter_of_repeats(int count, char **files, uint64_t lines,
                                    uint64_t memory) {
    struct prefilter_job job = {.seen = prefilter_new(lines, 2 * memory),
                                .made = prefilter_new(lines / 2, memory)};
    const struct stages stages = {.in_parallel = hash_passing_keys,
                                  .in_order = add_repeats,
                                  .context = &job};
    const struct input_totals totals = run_pipeline(&stages, count, files);
    calyx_free(job.seen);
    return (struct repeats){job.made, totals};
}

/* ---- Facts --------------------------------------------------------------- */

bool prefilter_pays(uint64_t bytes, uint64_t memory) {
    const uint64_t few = (uint64_t)4 << 20;
    return bytes >= few || bytes >= memory / 4;
}

uint64_t prefilter_bytes(const calyx_filter *prefilter) {
    if (!prefilter) return 0;
    calyx_info info;
    calyx_info_of(prefilter, &info);
    return info.bytes;
}

uint64_t prefilter_keys(const calyx_filter *prefilter) {
    calyx_info info;
    calyx_info_of(prefilter, &info);
    return info.items;
}
