#include "sieve.h"

#include "settle.h"

static const calyx_filter *asked;
static calyx_filter *made;

static void work(struct block *block, struct batch *batch) {
    bool found[BATCH_ROOM];
    batch_start(batch, block);
    while (batch_next(batch, block)) {
        const size_t n = batch->count;
        uint64_t *const hashes =
            room_for_hashes(block, block->selected + n) + block->selected;
        sieve_hashes(batch->keys, n, hashes);
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

static bool turn(struct block *block, struct batch *batch) {
    (void)batch;
    calyx_add_hashes(made, block->hashes, block->selected, NULL, NULL);
    return true;
}

calyx_filter *sieve_of(char *file, const calyx_filter *before, uint64_t keys,
                       uint64_t memory) {
    calyx_options want = sieve_options();
    calyx_error why;
    const uint64_t wanted = 10 * keys, most = 8 * memory; /* bits */
    want.capacity = keys;
    want.bits = wanted < most ? wanted : most;
    if (want.bits < 1 << 16) want.bits = 1 << 16;
    if (calyx_new(&want, &made, &why) != CALYX_OK) fail_with(&why);
    asked = before;
    const struct work todo = {.work = work, .turn = turn};
    stream(&todo, 1, &file);
    return made;
}

bool sieve_pays(uint64_t bytes, uint64_t memory) {
    const uint64_t few = (uint64_t)4 << 20;
    return bytes >= few || bytes >= memory / 4;
}

uint64_t sieve_bytes(const calyx_filter *sieve) {
    if (!sieve) return 0;
    calyx_info info;
    calyx_outline(sieve, &info);
    return info.bytes;
}
