/*
 * HighwayHash with 128 bits (Alakuijala, Cox and Wassenberg, 2016), of a key
 * that is given as a whole. The state is four lanes of 64 bits; each round
 * multiplies halves of them, and permutes bytes within pairs of lanes, so that
 * the weak low bytes of products meet the strong middle ones.
 */
#ifndef CALYX_FOREIGN_HIGHWAYHASH_H
#define CALYX_FOREIGN_HIGHWAYHASH_H

#include <stddef.h>

#include "wire/bytes.h"

enum { HIGHWAY_LANES = 4, HIGHWAY_PACKET = 32 };

struct highway_state {
    uint64_t v0[HIGHWAY_LANES], v1[HIGHWAY_LANES];
    uint64_t mul0[HIGHWAY_LANES], mul1[HIGHWAY_LANES];
};

struct highway_digest {
    uint64_t first, second;
};

static inline uint64_t highway_swap(uint64_t x) {
    return x >> 32 | x << 32;
}

static inline struct highway_state highway_begin(
    const uint64_t key[HIGHWAY_LANES]) {
    /* digits of pi */
    struct highway_state s = {
        .mul0 = {UINT64_C(0xDBE6D5D5FE4CCE2F), UINT64_C(0xA4093822299F31D0),
                 UINT64_C(0x13198A2E03707344), UINT64_C(0x243F6A8885A308D3)},
        .mul1 = {UINT64_C(0x3BD39E10CB0EF593), UINT64_C(0xC0ACF169B5F18A8C),
                 UINT64_C(0xBE5466CF34E90C6C), UINT64_C(0x452821E638D01377)}};
    for (int i = 0; i < HIGHWAY_LANES; i++) {
        s.v0[i] = s.mul0[i] ^ key[i];
        s.v1[i] = s.mul1[i] ^ highway_swap(key[i]);
    }
    return s;
}

/* Byte i of the sixteen of two lanes comes from byte order[i]; the result is
 * added to the lanes of `to`. */
static inline void highway_zip(uint64_t *to, const uint64_t *from) {
    static const uint8_t order[] = {3,  12, 2,  5,  14, 1, 15, 0,
                                    11, 4,  10, 13, 9,  6, 8,  7};
    for (int lane = 0; lane < 2; lane++) {
        uint64_t merged = 0;
        for (int i = 0; i < 8; i++) {
            const unsigned at = order[8 * lane + i];
            merged |= (from[at / 8] >> at % 8 * 8 & 0xFF) << 8 * i;
        }
        to[lane] += merged;
    }
}

static inline void highway_update(struct highway_state *s,
                                  const uint64_t packet[HIGHWAY_LANES]) {
    for (int i = 0; i < HIGHWAY_LANES; i++) {
        s->v1[i] += s->mul0[i] + packet[i];
        s->mul0[i] ^= (s->v1[i] & UINT32_MAX) * (s->v0[i] >> 32);
        s->v0[i] += s->mul1[i];
        s->mul1[i] ^= (s->v0[i] & UINT32_MAX) * (s->v1[i] >> 32);
    }
    highway_zip(s->v0, s->v1);
    highway_zip(s->v0 + 2, s->v1 + 2);
    highway_zip(s->v1, s->v0);
    highway_zip(s->v1 + 2, s->v0 + 2);
}

static inline void highway_packet(struct highway_state *s,
                                  const uint8_t bytes[HIGHWAY_PACKET]) {
    uint64_t packet[HIGHWAY_LANES];
    for (int i = 0; i < HIGHWAY_LANES; i++) packet[i] = load_u64(bytes + 8 * i);
    highway_update(s, packet);
}

/* The last 1 to 31 bytes. Their number goes into all lanes; the bytes beyond a
 * multiple of 4 go to places where they cannot be taken for others. */
static inline void highway_rest(struct highway_state *s, const uint8_t *bytes,
                                unsigned size) {
    const unsigned odd = size % 4, even = size - odd;
    uint8_t packet[HIGHWAY_PACKET] = {0};
    for (int i = 0; i < HIGHWAY_LANES; i++) {
        const uint32_t low = (uint32_t)s->v1[i],
                       high = (uint32_t)(s->v1[i] >> 32);
        s->v0[i] += (uint64_t)size << 32 | size;
        s->v1[i] = (uint64_t)(high << size | high >> (32 - size)) << 32 |
                   (low << size | low >> (32 - size));
    }
    memcpy(packet, bytes, even);
    if (size >= 16) {
        memcpy(packet + 28, bytes + size - 4, 4);
    } else if (odd) {
        packet[16] = bytes[even];
        packet[17] = bytes[even + odd / 2];
        packet[18] = bytes[size - 1];
    }
    highway_packet(s, packet);
}

static inline struct highway_digest highway_128(
    const uint64_t key[HIGHWAY_LANES], const uint8_t *bytes, size_t size) {
    enum { LAST_ROUNDS = 6 };
    struct highway_state s = highway_begin(key);
    for (; size >= HIGHWAY_PACKET;
         size -= HIGHWAY_PACKET, bytes += HIGHWAY_PACKET)
        highway_packet(&s, bytes);
    if (size) highway_rest(&s, bytes, (unsigned)size);
    for (int i = 0; i < LAST_ROUNDS; i++) {
        const uint64_t permuted[] = {
            highway_swap(s.v0[2]), highway_swap(s.v0[3]), highway_swap(s.v0[0]),
            highway_swap(s.v0[1])};
        highway_update(&s, permuted);
    }
    return (struct highway_digest){s.v0[0] + s.mul0[0] + s.v1[2] + s.mul1[2],
                                   s.v0[1] + s.mul0[1] + s.v1[3] + s.mul1[3]};
}

#endif
