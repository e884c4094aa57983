#include "foreign/textbook/line_hash.h"

#include <string.h>

#include "foreign/textbook/murmur3_32.h"
#include "hash/murmur3.h"
#include "hash/siphash.h"

static struct line_numbers of_murmur3_32(const uint8_t *key, size_t size,
                                         uint32_t seed) {
    return (struct line_numbers){murmur3_32(key, size, seed), 0};
}

/* MurmurHash3 with 128 bits for 64-bit machines. */
static struct line_numbers of_murmur3_128(const uint8_t *key, size_t size,
                                          uint32_t seed) {
    const struct murmur3_digest hash = murmur3_128(seed, key, size);
    return (struct line_numbers){hash.first, hash.second};
}

/* FNV-1a as it is published; hash/fnv1a.h mixes it once more. */
static struct line_numbers of_fnv1a(const uint8_t *key, size_t size,
                                    uint32_t seed) {
    (void)seed;
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ key[i]) * UINT64_C(0x100000001B3);
    return (struct line_numbers){hash, 0};
}

static struct line_numbers of_fnv1a_32(const uint8_t *key, size_t size,
                                       uint32_t seed) {
    (void)seed;
    uint32_t hash = 0x811C9DC5;
    for (size_t i = 0; i < size; i++) hash = (hash ^ key[i]) * 0x01000193;
    return (struct line_numbers){hash, 0};
}

/* Python's hash() of bytes or of ASCII text, since 3.11, where PYTHONHASHSEED
 * is 0: SipHash-1-3 with a key of zeros. Python's functions return -1 for an
 * error, so no hash is -1; nothing hashes to 0. */
static struct line_numbers of_python(const uint8_t *key, size_t size,
                                     uint32_t seed) {
    (void)seed;
    static const uint8_t zeros[16];
    struct siphash_state s = siphash_begin(zeros);
    const size_t whole = size - size % 8;
    if (size == 0) return (struct line_numbers){0, 0};
    for (size_t i = 0; i < whole; i += 8) siphash_word(&s, load64(key + i), 1);
    siphash_word(&s, siphash_last_word(size % 8 ? key + whole : NULL, size), 1);
    const uint64_t hash = siphash_end(&s, 3);
    return (struct line_numbers){hash == UINT64_MAX ? hash - 1 : hash, 0};
}

/* The seed is the factor: 31, 131, 1313. Java's String.hashCode has 31. */
static struct line_numbers of_bkdr(const uint8_t *key, size_t size,
                                   uint32_t seed) {
    uint32_t hash = 0;
    for (size_t i = 0; i < size; i++) hash = hash * seed + key[i];
    return (struct line_numbers){hash, 0};
}

static const struct line_hash hashes[] = {
    {.name = "murmur3-32",
     .bits = 32,
     .has_seed = true,
     .is_signed = true,
     .of = of_murmur3_32},
    {.name = "murmur3-64", .bits = 64, .has_seed = true, .of = of_murmur3_128},
    {.name = "murmur3-128",
     .bits = 64,
     .has_two = true,
     .has_seed = true,
     .of = of_murmur3_128},
    {.name = "fnv1a", .bits = 64, .of = of_fnv1a},
    {.name = "fnv1a-32", .bits = 32, .of = of_fnv1a_32},
    {.name = "python", .bits = 64, .is_signed = true, .of = of_python},
    {.name = "bkdr",
     .bits = 32,
     .has_seed = true,
     .is_signed = true,
     .of = of_bkdr},
};
enum { HASHES = sizeof hashes / sizeof *hashes };

const char line_hash_names[] =
    "murmur3-32, murmur3-64, murmur3-128, fnv1a, fnv1a-32, python or bkdr";

const struct line_hash *line_hash_named(const char *name) {
    for (int i = 0; i < HASHES; i++)
        if (strcmp(hashes[i].name, name) == 0) return &hashes[i];
    return NULL;
}
