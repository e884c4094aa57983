/* What the fuzz targets share: a way to fail, a way to read choices from the
 * input, and memory that runs out. */
#ifndef CALYX_FUZZ_H
#define CALYX_FUZZ_H

#include <calyx/calyx.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Brought by libFuzzer, or by replay.c where there is none. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

/* Inputs that a target makes by itself, so that they follow changes of a
 * format: number 0 and on. Returns their size, 0 if there is no such input.
 * Optional. */
size_t fuzz_seed(unsigned number, uint8_t *data, size_t most);

/* Unlike assert, in every build. A fuzzer takes an abort for a finding. */
#define DEMAND(truth) \
    ((truth) ? (void)0 : fuzz_broken(#truth, __FILE__, __LINE__))

static inline void fuzz_broken(const char *truth, const char *file, int line) {
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, truth);
    abort();
}

/* ---- Choices from the input ---------------------------------------------- */

struct choices {
    const uint8_t *at;
    size_t left;
};

/* The next few bytes as a little-endian number; zeros once they run out. */
static inline uint64_t choose_bytes(struct choices *from, size_t bytes) {
    uint64_t word = 0;
    for (size_t i = 0; i < bytes && from->left; i++, from->left--)
        word |= (uint64_t)*from->at++ << 8 * i;
    return word;
}

static inline size_t choose_below(struct choices *from, size_t limit) {
    return choose_bytes(from, limit > 256 ? 2 : 1) % limit;
}

static inline uint64_t fuzz_mix(uint64_t x) {
    x = (x ^ x >> 32) * UINT64_C(0x9E3779B97F4A7C15);
    return (x ^ x >> 29) * UINT64_C(0xD6E8FEB86659FD93);
}

static inline size_t list_length(const char *const *names) {
    size_t n = 0;
    while (names[n]) n++;
    return n;
}

static inline const char *choose_name(struct choices *from,
                                      const char *const *names) {
    return names[choose_below(from, list_length(names))];
}

/* ---- Memory that runs out ------------------------------------------------ */

struct ration {
    size_t taken, peak, most;
    size_t calls_left; /* how many more times it gives anything */
};

static inline void *ration_take(void *context, size_t size, size_t alignment) {
    struct ration *ration = context;
    if (size > ration->most - ration->taken || !ration->calls_left) return NULL;
    const size_t rounded = (size + alignment - 1) / alignment * alignment;
    void *block = aligned_alloc(alignment, rounded);
    if (!block) return NULL;
    ration->calls_left--;
    ration->taken += size;
    if (ration->taken > ration->peak) ration->peak = ration->taken;
    return memset(block, 0, rounded);
}

static inline void ration_give(void *context, void *block, size_t size) {
    struct ration *ration = context;
    DEMAND(block && ration->taken >= size);
    ration->taken -= size;
    free(block);
}

#endif
