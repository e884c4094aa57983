/*
 * MurmurHash3 with 32 bits (Appleby, 2011), in steps: Spark's treats the last
 * bytes of a key in a way of its own.
 */
#ifndef CALYX_FOREIGN_MURMUR3_32_H
#define CALYX_FOREIGN_MURMUR3_32_H

#include <stddef.h>

#include "wire/bytes.h"

static inline uint32_t rotate_left_32(uint32_t x, int by) {
    return x << by | x >> (32 - by);
}

static inline uint32_t murmur3_32_scramble(uint32_t word) {
    return rotate_left_32(word * 0xCC9E2D51, 15) * 0x1B873593;
}

static inline uint32_t murmur3_32_word(uint32_t hash, uint32_t word) {
    return rotate_left_32(hash ^ murmur3_32_scramble(word), 13) * 5 +
           0xE6546B64;
}

static inline uint32_t murmur3_32_end(uint32_t hash, size_t size) {
    hash ^= (uint32_t)size;
    hash = (hash ^ hash >> 16) * 0x85EBCA6B;
    hash = (hash ^ hash >> 13) * 0xC2B2AE35;
    return hash ^ hash >> 16;
}

static inline uint32_t murmur3_32(const uint8_t *key, size_t size,
                                  uint32_t seed) {
    uint32_t hash = seed, last = 0;
    size_t at = 0;
    for (; size - at >= 4; at += 4)
        hash = murmur3_32_word(hash, load_u32(key + at));
    for (size_t i = size; i > at; i--) last = last << 8 | key[i - 1];
    return murmur3_32_end(hash ^ murmur3_32_scramble(last), size);
}

#endif
