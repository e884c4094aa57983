/* How the exact engine divides its memory. */
#include "exact/engine_internal.h"

uint64_t memory_of_keys(const struct rule *rule, uint64_t memory) {
    return memory / 8 * (rule->absent ? 6 : 7);
}

size_t tally_size(const struct rule *rule) {
    return rule->tallies ? sizeof(struct tally) : 0;
}

/* Slots double, so there are at most 3 for each key, and 2 on average. */
uint64_t set_bytes(const struct rule *rule, const struct sample *sample) {
    return sample->bytes + sample->lines * (sizeof(struct entry) +
                                            tally_size(rule) + 4 + 2 * 8);
}

uint64_t memory_of_spilled_keys(uint64_t memory) {
    return memory < 8192 ? 1024 : memory / 8;
}

size_t memory_of_spill(uint64_t memory, unsigned spills) {
    const uint64_t share = memory / 8 / spills;
    return share < 4096 ? 4096 : share > 1 << 18 ? 1 << 18 : (size_t)share;
}

/* Enough that each spill fits, with a margin; a power of two. */
unsigned spills_for(const struct rule *rule, uint64_t memory, uint64_t bytes) {
    unsigned n = 8;
    while (n < MOST_SPILLS && n * memory_of_keys(rule, memory) / 4 < bytes)
        n *= 2;
    return bytes ? n : 32;
}
