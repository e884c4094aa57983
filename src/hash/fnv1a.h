/*
 * FNV-1a with 64 bits (Fowler, Noll and Vo): for each byte an exclusive or and
 * a product. Short enough for a lecture, and slow, since each byte waits for
 * the one before it. Its last byte hardly reaches the high bits, which select a
 * block here, so MurmurHash3's final mix follows.
 */
#ifndef CALYX_FNV1A_H
#define CALYX_FNV1A_H

#include "hash/murmur3.h"

static inline uint64_t fnv1a(uint64_t seed, const void *key, size_t size) {
    const uint8_t *bytes = key;
    uint64_t hash = UINT64_C(0xCBF29CE484222325) ^ seed;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001B3);
    return murmur3_mix(hash);
}

#endif
