#include "hash/hash.h"

#include <string.h>

#if CALYX_HAVE_SODIUM
#include <sodium/crypto_shorthash.h>
#endif

#include "base/bits.h"
#include "hash/xxh3.h"

/* The bytes of a key that come from memory are awaited as long as the line of
 * the filter that it asks, so they are called for in time too: the first and
 * the last, without a branch on the length, which would be foreseen badly. */
enum { AHEAD = 16 };

static inline void call_key(const calyx_key *key) {
    const uintptr_t first = (uintptr_t)key->data;
    __builtin_prefetch((const void *)first);
    __builtin_prefetch((const void *)(first + key->size - 1));
}

/* Make what a struct hash wants of a function on one key, which melts into all
 * of them. It is given what it can `make` of the secret once for many keys. For
 * numbers the compiler sees that the size is 8, and drops what other sizes
 * would need. */
#define HASH(name, function, made, make)                                      \
    static uint64_t name(const struct secret *secret, const void *key,        \
                         size_t size) {                                       \
        const made own = make(secret);                                        \
        return function(&own, key, size);                                     \
    }                                                                         \
    static void name##_many(const struct secret *secret,                      \
                            const calyx_key *keys, size_t n, size_t more,     \
                            uint64_t *hashes) {                               \
        const made own = make(secret);                                        \
        size_t i = 0;                                                         \
        for (; i < n && i + AHEAD < n + more; i++) {                          \
            call_key(&keys[i + AHEAD]);                                       \
            hashes[i] = function(&own, keys[i].data, keys[i].size);           \
        }                                                                     \
        for (; i < n; i++)                                                    \
            hashes[i] = function(&own, keys[i].data, keys[i].size);           \
    }                                                                         \
    static inline uint64_t name##_number(const struct secret *secret,         \
                                         uint64_t number) {                   \
        number = little64(number);                                            \
        return name(secret, &number, sizeof number);                          \
    }                                                                         \
    static void name##_numbers(const struct secret *secret,                   \
                               enum cpu_level level, const uint64_t *numbers, \
                               size_t n, uint64_t *hashes) {                  \
        (void)level;                                                          \
        for (size_t i = 0; i < n; i++)                                        \
            hashes[i] = name##_number(secret, numbers[i]);                    \
    }

static inline struct secret same(const struct secret *secret) {
    return *secret;
}

/* ---- xxh3: the default --------------------------------------------------- */

static inline struct xxh3_words words_of(const struct secret *secret) {
    return xxh3_words_of(secret->seed);
}
HASH(xxh3, xxh3_of_bytes, struct xxh3_words, words_of)

static void xxh3_numbers_at(const struct secret *secret, enum cpu_level level,
                            const uint64_t *numbers, size_t n,
                            uint64_t *hashes) {
#if ON_X86
    if (level >= CPU_AVX2) {
        xxh3_numbers_avx2(secret->seed, numbers, n, hashes);
        return;
    }
#endif
    xxh3_numbers(secret, level, numbers, n, hashes);
}

/* ---- xxh64: what Parquet uses, with seed 0 ------------------------------- */

static inline uint64_t xxh64_of(const struct secret *secret, const void *key,
                                size_t size) {
    return XXH64(key, size, secret->seed);
}
HASH(xxh64, xxh64_of, struct secret, same)

/* ---- siphash: SipHash-2-4, for keys that an adversary may choose --------- */

#if CALYX_HAVE_SODIUM
static inline uint64_t siphash_of(const struct secret *secret, const void *key,
                                  size_t size) {
    uint8_t out[crypto_shorthash_BYTES];
    crypto_shorthash(out, key, size, secret->key);
    return load64(out);
}
HASH(siphash, siphash_of, struct secret, same)
#endif

/* ---- The table ----------------------------------------------------------- */

static const struct hash table[] = {
    {"xxh3", 1, false, true, xxh3, xxh3_many, xxh3_number, xxh3_numbers_at},
    {"xxh64", 2, false, false, xxh64, xxh64_many, xxh64_number, xxh64_numbers},
#if CALYX_HAVE_SODIUM
    {"siphash", 3, true, false, siphash, siphash_many, siphash_number,
     siphash_numbers},
#endif
};
enum { COUNT = sizeof table / sizeof table[0] };

static const char *const names[] = {
    "xxh3",
    "xxh64",
#if CALYX_HAVE_SODIUM
    "siphash",
#endif
    NULL,
};

const struct hash *hash_named(const char *name) {
    for (int i = 0; i < COUNT; i++)
        if (strcmp(table[i].name, name) == 0) return &table[i];
    return NULL;
}

const struct hash *hash_coded(uint32_t code) {
    for (int i = 0; i < COUNT; i++)
        if (table[i].code == code) return &table[i];
    return NULL;
}

const char *const *calyx_hashes(void) {
    return names;
}
