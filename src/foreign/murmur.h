/*
 * MurmurHash2 by Austin Appleby, in 32 and in 64 bits ("64A"): the hashes of
 * RedisBloom's filters. Words of a key are little-endian on every
 * machine. Not for keys that an enemy chooses; see redisbloom_chain.h.
 */
#ifndef CALYX_FOREIGN_MURMUR_H
#define CALYX_FOREIGN_MURMUR_H

#include <stddef.h>

#include "base/bits.h"

/* 1 to 7 bytes as a little-endian number, without a loop: both ends are read,
 * and what they have in common is the same. */
static inline uint64_t murmur_tail(const uint8_t *p, size_t bytes) {
    if (bytes >= 4)
        return load32(p) | (uint64_t)load32(p + bytes - 4) << 8 * (bytes - 4);
    const size_t middle = bytes / 2, last = bytes - 1;
    return p[0] | (uint64_t)p[middle] << 8 * middle |
           (uint64_t)p[last] << 8 * last;
}

static inline uint64_t murmur64(const void *key, size_t size, uint64_t seed) {
    const uint64_t mix = UINT64_C(0xC6A4A7935BD1E995);
    const uint8_t *p = key;
    uint64_t h = seed ^ (uint64_t)size * mix;
    for (size_t left = size; left >= 8; left -= 8, p += 8) {
        uint64_t word = load64(p) * mix;
        word = (word ^ word >> 47) * mix;
        h = (h ^ word) * mix;
    }
    if (size % 8) h = (h ^ murmur_tail(p, size % 8)) * mix;
    h = (h ^ h >> 47) * mix;
    return h ^ h >> 47;
}

static inline uint32_t murmur32(const void *key, size_t size, uint32_t seed) {
    const uint32_t mix = 0x5BD1E995;
    const uint8_t *p = key;
    uint32_t h = seed ^ (uint32_t)size;
    for (size_t left = size; left >= 4; left -= 4, p += 4) {
        uint32_t word = load32(p) * mix;
        word = (word ^ word >> 24) * mix;
        h = h * mix ^ word;
    }
    if (size % 4) h = (h ^ (uint32_t)murmur_tail(p, size % 4)) * mix;
    h = (h ^ h >> 13) * mix;
    return h ^ h >> 15;
}

#endif
