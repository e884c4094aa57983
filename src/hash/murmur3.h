/*
 * MurmurHash3 for 64-bit machines (Appleby, 2011), which has 128 bits: what
 * many filters of other makers use. Filters of Calyx take the first 64. Two
 * lanes of 64 bits take 16 bytes at a time. A seed does not protect it:
 * collisions for all seeds are known.
 */
#ifndef CALYX_MURMUR3_H
#define CALYX_MURMUR3_H

#include <stddef.h>

#include "base/bits.h"

/* The final mix: each bit of x changes each bit of the result with odds 1/2. */
static inline uint64_t murmur3_mix(uint64_t x) {
    x = (x ^ x >> 33) * UINT64_C(0xFF51AFD7ED558CCD);
    x = (x ^ x >> 33) * UINT64_C(0xC4CEB9FE1A85EC53);
    return x ^ x >> 33;
}

static inline uint64_t murmur3_scramble(uint64_t word, uint64_t first, int by,
                                        uint64_t second) {
    return rotate_left(word * first, by) * second;
}

/* Up to 8 bytes, the first in the lowest place; the rest is 0. */
static inline uint64_t murmur3_short_word(const uint8_t *bytes, size_t size) {
    uint64_t word = 0;
    for (size_t i = 0; i < size && i < 8; i++)
        word |= (uint64_t)bytes[i] << 8 * i;
    return word;
}

/* The two lanes, and at the end the hash. */
struct murmur3_digest {
    uint64_t first, second;
};

static const uint64_t murmur3_a = UINT64_C(0x87C37B91114253D5);
static const uint64_t murmur3_b = UINT64_C(0x4CF5AD432745937F);

/* All of the key except its last bytes, size % 16. */
static inline struct murmur3_digest murmur3_blocks(struct murmur3_digest lanes,
                                                   const uint8_t *bytes,
                                                   size_t size) {
    uint64_t h1 = lanes.first, h2 = lanes.second;
    for (; size >= 16; size -= 16, bytes += 16) {
        h1 ^= murmur3_scramble(load64(bytes), murmur3_a, 31, murmur3_b);
        h1 = (rotate_left(h1, 27) + h2) * 5 + 0x52DCE729;
        h2 ^= murmur3_scramble(load64(bytes + 8), murmur3_b, 33, murmur3_a);
        h2 = (rotate_left(h2, 31) + h1) * 5 + 0x38495AB5;
    }
    return (struct murmur3_digest){h1, h2};
}

/* The last bytes, of a key with `size` in all. */
static inline struct murmur3_digest murmur3_end(struct murmur3_digest lanes,
                                                const uint8_t *bytes,
                                                size_t size) {
    uint64_t h1 = lanes.first, h2 = lanes.second;
    const size_t left = size % 16;
    if (left > 8)
        h2 ^= murmur3_scramble(murmur3_short_word(bytes + 8, left - 8),
                               murmur3_b, 33, murmur3_a);
    if (left)
        h1 ^= murmur3_scramble(murmur3_short_word(bytes, left), murmur3_a, 31,
                               murmur3_b);
    h1 ^= size;
    h2 ^= size;
    h1 += h2;
    h2 += h1;
    const uint64_t second = murmur3_mix(h2), first = murmur3_mix(h1) + second;
    return (struct murmur3_digest){first, first + second};
}

static inline struct murmur3_digest murmur3_128(uint64_t seed, const void *key,
                                                size_t size) {
    const struct murmur3_digest lanes =
        murmur3_blocks((struct murmur3_digest){seed, seed}, key, size);
    return murmur3_end(lanes, (const uint8_t *)key + size / 16 * 16, size);
}

static inline uint64_t murmur3(uint64_t seed, const void *key, size_t size) {
    return murmur3_128(seed, key, size).first;
}

#endif
