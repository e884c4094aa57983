/*
 * The table of hashes, and the loops over many keys that they share.
 *
 * Each hash is written as one function on (state, key, size), where the state
 * is whatever can be computed from the seed or secret key once for many keys.
 */
#include "hash/hash.h"

#include <string.h>

#include "base/bits.h"
#include "base/compiler.h"
#include "hash/fnv1a.h"
#include "hash/murmur3.h"
#include "hash/siphash.h"
#include "hash/xxh3.h"

typedef uint64_t hash_function(const void *state, const void *key, size_t size);

/* Keys in memory are waited for like the lines of a filter, so they are
 * prefetched, too: the first and the last byte, without a branch on the length,
 * which would be mispredicted. */
enum { KEYS_AHEAD = 16 };

static inline void prefetch_key(const calyx_key *key) {
    const uintptr_t first = (uintptr_t)key->data;
    __builtin_prefetch((const void *)first);
    __builtin_prefetch((const void *)(first + key->size - 1));
}

ALWAYS_INLINE void hash_many(hash_function *hash, const void *state,
                             const calyx_key *keys, size_t n, size_t more,
                             uint64_t *hashes) {
    size_t i = 0;
    for (; i < n && i + KEYS_AHEAD < n + more; i++) {
        prefetch_key(&keys[i + KEYS_AHEAD]);
        hashes[i] = hash(state, keys[i].data, keys[i].size);
    }
    for (; i < n; i++) hashes[i] = hash(state, keys[i].data, keys[i].size);
}

/* The compiler sees that the size is 8, and drops what other sizes need. */
ALWAYS_INLINE uint64_t hash_number(hash_function *hash, const void *state,
                                   uint64_t number) {
    number = little64(number);
    return hash(state, &number, sizeof number);
}

ALWAYS_INLINE void hash_numbers(hash_function *hash, const void *state,
                                const uint64_t *numbers, size_t n,
                                uint64_t *hashes) {
    for (size_t i = 0; i < n; i++)
        hashes[i] = hash_number(hash, state, numbers[i]);
}

/* ---- xxh3: the default --------------------------------------------------- */

/*
 * XXH3 of 64 bits, as xxhash.h has it; for many keys, with a faster path for
 * keys of 17 to 96 bytes, as names and addresses have. XXH3 takes 16 bytes from
 * either end and, of those longer than 32, the next 16 too, and so on. Whether
 * there are more than 32 the processor can only guess, and where lengths are
 * mixed its wrong guesses cost more than they save. So here the inner bytes are
 * always hashed, for shorter keys those at a valid offset, and then discarded.
 * (The same for more than 64 bytes costs more than the guesses.)
 */

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

ALWAYS_INLINE uint64_t xxh3_of_bytes(const void *state, const void *key,
                                     size_t size) {
    const struct xxh3_words *const words = state;
    if (size <= 16 || size > 96)
        return XXH3_64bits_withSeed(key, size, words->seed);
    uint64_t sum = xxh3_outer(key, size, words) + xxh3_inner(key, size, words);
    if (size > 64) sum += xxh3_innermost(key, size, words);
    return xxh3_end(sum, size);
}

ALWAYS_INLINE uint64_t xxh3_of_17_to_32(const void *state, const void *key,
                                        size_t size) {
    return xxh3_end(xxh3_outer(key, size, state), size);
}

#else /* no product of 128 bits */

ALWAYS_INLINE uint64_t xxh3_of_bytes(const void *state, const void *key,
                                     size_t size) {
    const struct xxh3_words *const words = state;
    return XXH3_64bits_withSeed(key, size, words->seed);
}

#define xxh3_of_17_to_32 xxh3_of_bytes

#endif

/* Ids and digests often have one length. Keys of 17 to 32 bytes need no inner
 * bytes: while groups of eight keys all have 17 to 32 bytes, the branch is
 * always predicted. After the first group that does not, the sizes of the batch
 * are no longer compared. */
enum { GROUP = 8 };

static inline bool have_17_to_32_bytes(const calyx_key *keys) {
    size_t other = 0;
    for (size_t i = 0; i < GROUP; i++)
        other |= (keys[i].size - 17) & ~(size_t)15;
    return other == 0;
}

static uint64_t xxh3_one(const struct secret *secret, const void *key,
                         size_t size) {
    return XXH3_64bits_withSeed(key, size, secret->seed);
}

static void xxh3_many(const struct hash *hash, const struct secret *secret,
                      const calyx_key *keys, size_t n, size_t more,
                      uint64_t *hashes) {
    (void)hash;
    const struct xxh3_words words = xxh3_words_of(secret->seed);
    size_t i = 0;
    for (; i + GROUP <= n && have_17_to_32_bytes(keys + i); i += GROUP)
        hash_many(xxh3_of_17_to_32, &words, keys + i, GROUP,
                  n - i - GROUP + more, hashes + i);
    hash_many(xxh3_of_bytes, &words, keys + i, n - i, more, hashes + i);
}

static uint64_t xxh3_number(const struct hash *hash,
                            const struct secret *secret, uint64_t number) {
    (void)hash;
    return xxh3_of_number(number, secret->seed);
}

static void xxh3_numbers(const struct hash *hash, const struct secret *secret,
                         enum cpu_level level, const uint64_t *numbers,
                         size_t n, uint64_t *hashes) {
    (void)hash;
#if ON_X86
    if (level >= CPU_AVX2) {
        xxh3_numbers_avx2(secret->seed, numbers, n, hashes);
        return;
    }
#else
    (void)level;
#endif
    for (size_t i = 0; i < n; i++)
        hashes[i] = xxh3_of_number(numbers[i], secret->seed);
}

/* ---- xxh64: what Parquet uses, with seed 0 ------------------------------- */

static inline uint64_t xxh64_hash(const void *secret, const void *key,
                                  size_t size) {
    return XXH64(key, size, ((const struct secret *)secret)->seed);
}

static uint64_t xxh64_one(const struct secret *secret, const void *key,
                          size_t size) {
    return xxh64_hash(secret, key, size);
}

static void xxh64_many(const struct hash *hash, const struct secret *secret,
                       const calyx_key *keys, size_t n, size_t more,
                       uint64_t *hashes) {
    (void)hash;
    hash_many(xxh64_hash, secret, keys, n, more, hashes);
}

static uint64_t xxh64_number(const struct hash *hash,
                             const struct secret *secret, uint64_t number) {
    (void)hash;
    return hash_number(xxh64_hash, secret, number);
}

static void xxh64_numbers(const struct hash *hash, const struct secret *secret,
                          enum cpu_level level, const uint64_t *numbers,
                          size_t n, uint64_t *hashes) {
    (void)hash, (void)level;
    hash_numbers(xxh64_hash, secret, numbers, n, hashes);
}

/* ---- Hashes that take 10 ns and more for a key -------------------------- */

/* For keys that an adversary may choose: SipHash-2-4. */
static uint64_t siphash_one(const struct secret *secret, const void *key,
                            size_t size) {
    return siphash(secret->key, key, size);
}

/* What filters of other makers use. */
static uint64_t murmur3_one(const struct secret *secret, const void *key,
                            size_t size) {
    return murmur3(secret->seed, key, size);
}

/* The hash of many lectures. */
static uint64_t fnv1a_one(const struct secret *secret, const void *key,
                          size_t size) {
    return fnv1a(secret->seed, key, size);
}

/* A call for each key is a small part of their time. */
struct called {
    const struct hash *hash;
    const struct secret *secret;
};

static inline uint64_t call_one(const void *state, const void *key,
                                size_t size) {
    const struct called *const called = state;
    return called->hash->one(called->secret, key, size);
}

static void many_by_one(const struct hash *hash, const struct secret *secret,
                        const calyx_key *keys, size_t n, size_t more,
                        uint64_t *hashes) {
    hash_many(call_one, &(struct called){hash, secret}, keys, n, more, hashes);
}

static uint64_t number_by_one(const struct hash *hash,
                              const struct secret *secret, uint64_t number) {
    return hash_number(call_one, &(struct called){hash, secret}, number);
}

static void numbers_by_one(const struct hash *hash, const struct secret *secret,
                           enum cpu_level level, const uint64_t *numbers,
                           size_t n, uint64_t *hashes) {
    (void)level;
    hash_numbers(call_one, &(struct called){hash, secret}, numbers, n, hashes);
}

/* ---- The table ----------------------------------------------------------- */

static const struct hash table[] = {
    {
        .name = "xxh3",
        .code = 1,
        .is_xxh3 = true,
        .one = xxh3_one,
        .many = xxh3_many,
        .number = xxh3_number,
        .numbers = xxh3_numbers,
    },
    {
        .name = "xxh64",
        .code = 2,
        .one = xxh64_one,
        .many = xxh64_many,
        .number = xxh64_number,
        .numbers = xxh64_numbers,
    },
    {
        .name = "siphash",
        .code = 3,
        .keyed = true,
        .one = siphash_one,
        .many = many_by_one,
        .number = number_by_one,
        .numbers = numbers_by_one,
    },
    {
        .name = "murmur3",
        .code = 4,
        .one = murmur3_one,
        .many = many_by_one,
        .number = number_by_one,
        .numbers = numbers_by_one,
    },
    {
        .name = "fnv1a",
        .code = 5,
        .one = fnv1a_one,
        .many = many_by_one,
        .number = number_by_one,
        .numbers = numbers_by_one,
    },
};
enum { COUNT = sizeof table / sizeof table[0] };

static const char *const names[] = {"xxh3",    "xxh64", "siphash",
                                    "murmur3", "fnv1a", NULL};

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
