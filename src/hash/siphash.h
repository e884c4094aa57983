/*
 * SipHash-2-4 (Aumasson and Bernstein, 2012): a hash with a secret key of 16
 * bytes, for keys that an adversary may choose. Without the key nobody can
 * predict its results, nor find keys that collide. About 1 cycle a byte, and 30
 * for a short key.
 */
#ifndef CALYX_SIPHASH_H
#define CALYX_SIPHASH_H

#include <stddef.h>

#include "base/bits.h"

struct siphash_state {
    uint64_t v0, v1, v2, v3;
};

static inline void siphash_round(struct siphash_state *s) {
    s->v0 += s->v1;
    s->v1 = rotate_left(s->v1, 13) ^ s->v0;
    s->v0 = rotate_left(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = rotate_left(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = rotate_left(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = rotate_left(s->v1, 17) ^ s->v2;
    s->v2 = rotate_left(s->v2, 32);
}

/* With one or two rounds. */
static inline void siphash_word(struct siphash_state *s, uint64_t word,
                                int rounds) {
    s->v3 ^= word;
    siphash_round(s);
    if (rounds == 2) siphash_round(s);
    s->v0 ^= word;
}

/* The last 0 to 7 bytes, and above them the size. */
static inline uint64_t siphash_last_word(const uint8_t *bytes, size_t size) {
    uint64_t word = (uint64_t)size << 56;
    for (size_t i = 0; i < size % 8; i++) word |= (uint64_t)bytes[i] << 8 * i;
    return word;
}

static inline struct siphash_state siphash_begin(const uint8_t secret[16]) {
    const uint64_t k0 = load64(secret), k1 = load64(secret + 8);
    return (struct siphash_state){
        UINT64_C(0x736F6D6570736575) ^ k0,
        UINT64_C(0x646F72616E646F6D) ^ k1,
        UINT64_C(0x6C7967656E657261) ^ k0,
        UINT64_C(0x7465646279746573) ^ k1,
    };
}

static inline uint64_t siphash_end(struct siphash_state *s, int rounds) {
    s->v2 ^= 0xFF;
    for (int i = 0; i < rounds; i++) siphash_round(s);
    return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

static inline uint64_t siphash(const uint8_t secret[16], const void *key,
                               size_t size) {
    struct siphash_state s = siphash_begin(secret);
    const uint8_t *bytes = key;
    const size_t whole = size - size % 8;
    for (size_t i = 0; i < whole; i += 8)
        siphash_word(&s, load64(bytes + i), 2);
    siphash_word(&s, siphash_last_word(size % 8 ? bytes + whole : NULL, size),
                 2);
    return siphash_end(&s, 4);
}

#endif
