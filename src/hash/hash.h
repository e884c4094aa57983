/*
 * From the bytes of a key to 64 well-mixed bits. Which function does it is
 * part of what a filter is: two filters that hash differently have nothing to
 * say to each other.
 */
#ifndef CALYX_HASH_H
#define CALYX_HASH_H

#include <calyx/calyx.h>

#include "base/cpu.h"

/* What makes one filter's hash differ from another's. */
struct secret {
    uint64_t seed;
    uint8_t key[16];
};

struct hash {
    const char *name; /* "xxh3": what people type                       */
    uint16_t code;    /* in files; given out once, never given again    */
    bool keyed;       /* wants the key; others use the seed             */
    bool is_xxh3;     /* xxh3.h does the same                           */
    uint64_t (*one)(const struct secret *secret, const void *key, size_t size);
    /* Of n keys, which `more` will follow in the array. `hash` is this one. */
    void (*many)(const struct hash *hash, const struct secret *secret,
                 const calyx_key *keys, size_t n, size_t more,
                 uint64_t *hashes);
    /* The same as the 8 little-endian bytes of each number. */
    uint64_t (*number)(const struct hash *hash, const struct secret *secret,
                       uint64_t number);
    void (*numbers)(const struct hash *hash, const struct secret *secret,
                    enum cpu_level level, const uint64_t *numbers, size_t n,
                    uint64_t *hashes);
};

const struct hash *hash_named(const char *name); /* NULL if there is none */
const struct hash *hash_coded(uint32_t code);    /* NULL if there is none */

#endif
