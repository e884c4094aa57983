#include "exact/prefilter.h"

#include "exact/engine.h"

static const calyx_filter *asked;
static calyx_filter *made;

static void in_parallel(struct text_block *block, struct key_batch *batch) {
    bool found[BATCH_ROOM];
    batch_start(batch, block);
    while (batch_next(batch, block)) {
        const size_t n = batch->count;
        uint64_t *const hashes =
            room_for_hashes(block, block->selected + n) + block->selected;
        prefilter_hashes(batch->keys, n, hashes);
        block->lines += n;
        if (!asked) {
            block->selected += n;
            continue;
        }
        calyx_has_hashes(asked, hashes, n, found);
        size_t kept = 0;
        for (size_t i = 0; i < n; i++) {
            hashes[kept] = hashes[i];
            kept += found[i];
        }
        block->selected += kept;
    }
}

static bool in_order(struct text_block *block, struct key_batch *batch) {
    (void)batch;
    calyx_add_hashes(made, block->hashes, block->selected, NULL, NULL);
    return true;
}

calyx_filter *prefilter_new(uint64_t keys, uint64_t memory) {
    calyx_options want = prefilter_options();
    calyx_error why;
    calyx_filter *f;
    want.capacity = keys ? keys : 1;
    want.bits = 8 * prefilter_bytes_for(keys, memory);
    if (calyx_new(&want, &f, &why) != CALYX_OK) fail_with(&why);
    return f;
}

/* Ten bits a key, or as many as there may be. */
uint64_t prefilter_bytes_for(uint64_t keys, uint64_t memory) {
    const uint64_t least = 1 << 13, wanted = keys + keys / 4;
    const uint64_t bytes = wanted < memory ? wanted : memory;
    return bytes < least ? least : bytes;
}

calyx_filter *prefilter_of(char *file, const calyx_filter *before,
                           uint64_t keys, uint64_t memory) {
    made = prefilter_new(keys, memory);
    asked = before;
    const struct stages stages = {.in_parallel = in_parallel,
                                  .in_order = in_order};
    run_pipeline(&stages, 1, &file);
    return made;
}

/* ---- Keys that come again ------------------------------------------------ */

static calyx_filter *seen;

/* In turns: of two equal lines that are added at once, both might be taken for
 * the first. */
static bool note_repeats(struct text_block *block, struct key_batch *batch) {
    (void)batch;
    bool fresh[BATCH];
    for (size_t at = 0; at < block->selected; at += BATCH) {
        uint64_t *const hashes = block->hashes + at;
        const size_t left = block->selected - at;
        const size_t n = left < BATCH ? left : BATCH;
        calyx_add_hashes(seen, hashes, n, fresh, NULL);
        size_t again = 0;
        for (size_t i = 0; i < n; i++) {
            hashes[again] = hashes[i];
            again += !fresh[i];
        }
        calyx_add_hashes(made, hashes, again, NULL, NULL);
    }
    return true;
}

/* A key that comes again has two lines. */
struct repeats prefilter_of_repeats(int count, char **files, uint64_t lines,
                                    uint64_t memory) {
    seen = prefilter_new(lines, 2 * memory);
    made = prefilter_new(lines / 2, memory);
    asked = NULL;
    const struct stages stages = {.in_parallel = in_parallel,
                                  .in_order = note_repeats};
    const struct input_totals totals = run_pipeline(&stages, count, files);
    calyx_free(seen);
    return (struct repeats){made, totals};
}

/* ---- Questions ----------------------------------------------------------- */

bool prefilter_pays(uint64_t bytes, uint64_t memory) {
    const uint64_t few = (uint64_t)4 << 20;
    return bytes >= few || bytes >= memory / 4;
}

uint64_t prefilter_bytes(const calyx_filter *prefilter) {
    if (!prefilter) return 0;
    calyx_info info;
    calyx_outline(prefilter, &info);
    return info.bytes;
}

uint64_t prefilter_keys(const calyx_filter *prefilter) {
    calyx_info info;
    calyx_outline(prefilter, &info);
    return info.items;
}
