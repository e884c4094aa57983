/*
 * The default hash, XXH3 of 64 bits, as xxhash.h has it, with two faster paths
 * for most keys.
 *
 * Numbers: inlined into callers, since a call would cost as much as the hash.
 *
 * Keys of 17 to 96 bytes, as names and addresses have: XXH3 takes 16 bytes from
 * either end and, of those longer than 32, the next 16 too, and so on. Whether
 * there are more than 32 the processor can only guess, and where lengths are
 * mixed its wrong guesses cost more than they save. So here the inner bytes are
 * always hashed, for shorter keys those at a valid offset, and then discarded.
 * (The same for more than 64 bytes costs more than the guesses.)
 */
#ifndef CALYX_XXH3_H
#define CALYX_XXH3_H

#include "base/compiler.h" /* before xxhash.h */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/bits.h"

static inline uint64_t xxh3_of_number(uint64_t number, uint64_t seed) {
    number = little64(number);
    return XXH3_64bits_withSeed(&number, sizeof number, seed);
}

/* A seed, and with it the words of XXH3's secret that keys of 17 to 96 bytes
 * meet, by twos. Who hashes many keys makes them once. */
struct xxh3_words {
    uint64_t seed, first[2], second[2], third[2], fourth[2], fifth[2], last[2];
};

static inline struct xxh3_words xxh3_words_of(uint64_t seed) {
    return (struct xxh3_words){
        .seed = seed,
        .first = {UINT64_C(0xBE4BA423396CFEB8) + seed,
                  UINT64_C(0x1CAD21F72C81017C) - seed},
        .second = {UINT64_C(0x78E5C0CC4EE679CB) + seed,
                   UINT64_C(0x2172FFCC7DD05A82) - seed},
        .third = {UINT64_C(0x8E2443F7744608B8) + seed,
                  UINT64_C(0x4C263A81E69035E0) - seed},
        .fourth = {UINT64_C(0xCB00C391BB52283C) + seed,
                   UINT64_C(0xA32E531B8B65D088) - seed},
        .fifth = {UINT64_C(0x4EF90DA297486471) + seed,
                  UINT64_C(0xD8ACDEA946EF1938) - seed},
        .last = {UINT64_C(0xDB979083E96DD4DE) + seed,
                 UINT64_C(0x1F67B3B7A4A44072) - seed},
    };
}

#if UINTPTR_MAX > UINT32_MAX

/* Sixteen bytes, each half flipped by a word, and multiplied. */
static inline uint64_t xxh3_mix(const uint8_t *bytes, const uint64_t *words) {
    const wide_product product = (wide_product)(load64(bytes) ^ words[0]) *
                                 (load64(bytes + 8) ^ words[1]);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t xxh3_outer(const uint8_t *key, size_t size,
                                  const struct xxh3_words *words) {
    return xxh3_mix(key, words->first) + xxh3_mix(key + size - 16, words->last);
}

/* 0 for keys of at most 32 bytes. */
static inline uint64_t xxh3_inner(const uint8_t *key, size_t size,
                                  const struct xxh3_words *words) {
    const uint64_t is_long = -(uint64_t)(size > 32); /* all ones, if it is */
    return is_long & (xxh3_mix(key + (is_long & 16), words->second) +
                      xxh3_mix(key + (is_long & (size - 32)), words->third));
}

/* For keys of more than 64 bytes. */
static inline uint64_t xxh3_innermost(const uint8_t *key, size_t size,
                                      const struct xxh3_words *words) {
    return xxh3_mix(key + 32, words->fourth) +
           xxh3_mix(key + size - 48, words->fifth);
}

static inline uint64_t xxh3_end(uint64_t sum, size_t size) {
    uint64_t hash = size * UINT64_C(0x9E3779B185EBCA87) + sum;
    hash = (hash ^ hash >> 37) * UINT64_C(0x165667919E3779F9);
    return hash ^ hash >> 32;
}

ALWAYS_INLINE uint64_t xxh3_of_bytes(const struct xxh3_words *words,
                                     const void *key, size_t size) {
    if (size <= 16 || size > 96)
        return XXH3_64bits_withSeed(key, size, words->seed);
    uint64_t sum = xxh3_outer(key, size, words) + xxh3_inner(key, size, words);
    if (size > 64) sum += xxh3_innermost(key, size, words);
    return xxh3_end(sum, size);
}

#else /* no product of 128 bits */

ALWAYS_INLINE uint64_t xxh3_of_bytes(const struct xxh3_words *words,
                                     const void *key, size_t size) {
    return XXH3_64bits_withSeed(key, size, words->seed);
}

#endif

/* What XXH3 flips the eight bytes of a number by, once their halves are
 * swapped: two words of its secret, less the seed, whose low half, turned round
 * byte by byte, is first xored onto the high one. */
static inline uint64_t xxh3_flip(uint64_t seed) {
    const uint64_t words =
        UINT64_C(0x1CAD21F72C81017C) ^ UINT64_C(0xDB979083E96DD4DE);
    const uint64_t turned = __builtin_bswap32((uint32_t)seed);
    return words - (seed ^ turned << 32);
}

/* xxh3_of_number of many, for processors that are CPU_AVX2 or better. */
void xxh3_numbers_avx2(uint64_t seed, const uint64_t *numbers, size_t n,
                       uint64_t *hashes);

#endif
