/*
 * SipHash-1-3 (Aumasson and Bernstein 2012, with one round for each word and
 * three at the end), as valkey-bloom hashes items: the length of the item as a
 * word, then its bytes.
 */
#ifndef CALYX_FOREIGN_SIPHASH13_H
#define CALYX_FOREIGN_SIPHASH13_H

#include <stddef.h>
#include <stdint.h>

#include "wire/bytes.h"

struct sip_state {
    uint64_t v0, v1, v2, v3;
};

static inline uint64_t sip_rotate(uint64_t x, int bits) {
    return x << bits | x >> (64 - bits);
}

static inline void sip_round(struct sip_state *s) {
    s->v0 += s->v1;
    s->v2 += s->v3;
    s->v1 = sip_rotate(s->v1, 13) ^ s->v0;
    s->v3 = sip_rotate(s->v3, 16) ^ s->v2;
    s->v0 = sip_rotate(s->v0, 32);
    s->v2 += s->v1;
    s->v0 += s->v3;
    s->v1 = sip_rotate(s->v1, 17) ^ s->v2;
    s->v3 = sip_rotate(s->v3, 21) ^ s->v0;
    s->v2 = sip_rotate(s->v2, 32);
}

static inline void sip_word(struct sip_state *s, uint64_t word) {
    s->v3 ^= word;
    sip_round(s);
    s->v0 ^= word;
}

/* The bytes behind the last whole word, the lowest first. */
static inline uint64_t sip_tail(const uint8_t *bytes, size_t n) {
    uint64_t word = 0;
    for (size_t i = 0; i < n; i++) word |= (uint64_t)bytes[i] << 8 * i;
    return word;
}

static inline uint64_t sip_end(struct sip_state *s, uint64_t length,
                               uint64_t tail) {
    sip_word(s, length << 56 | tail);
    s->v2 ^= 0xFF;
    for (int i = 0; i < 3; i++) sip_round(s);
    return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

static inline struct sip_state sip_begin(const uint8_t key[16]) {
    const uint64_t k0 = load_u64(key), k1 = load_u64(key + 8);
    return (struct sip_state){
        k0 ^ UINT64_C(0x736F6D6570736575), k1 ^ UINT64_C(0x646F72616E646F6D),
        k0 ^ UINT64_C(0x6C7967656E657261), k1 ^ UINT64_C(0x7465646279746573)};
}

/* Of an item, behind its length. */
static inline uint64_t siphash13_of_item(const uint8_t key[16],
                                         const void *item, size_t size) {
    const uint8_t *at = item;
    struct sip_state s = sip_begin(key);
    sip_word(&s, size);
    for (size_t left = size; left >= 8; left -= 8, at += 8)
        sip_word(&s, load_u64(at));
    return sip_end(&s, (uint64_t)size + 8, sip_tail(at, size % 8));
}

#endif
