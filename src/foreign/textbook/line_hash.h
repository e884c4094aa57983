/*
 * The hashes that a layout in one line can name. Each is what its best-known
 * function returns, with the sign that this function gives it.
 */
#ifndef CALYX_FOREIGN_LINE_HASH_H
#define CALYX_FOREIGN_LINE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The numbers of a key. With 32 bits they are not extended yet. */
struct line_numbers {
    uint64_t first, second; /* the second only if the hash has two */
};

struct line_hash {
    const char *name;
    int bits; /* of a number */
    bool has_two, has_seed, is_signed;
    struct line_numbers (*of)(const uint8_t *key, size_t size, uint32_t seed);
};

const struct line_hash *line_hash_named(const char *name); /* NULL: none */
/* "murmur3-32, murmur3-64, ..." */
extern const char line_hash_names[];

#endif
