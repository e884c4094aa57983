/* The hashes are the well-known ones, and every road to a filter's bits uses
 * them in the same way. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/compiler.h" /* before xxhash.h: -Og */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/bits.h"
#include "hash/hash.h"
#include "hash/murmur3.h"
#include "support.h"

static const uint8_t sip_key[16] = {0, 1, 2,  3,  4,  5,  6,  7,
                                    8, 9, 10, 11, 12, 13, 14, 15};

static calyx_options hashed_with(const char *name, uint64_t seed) {
    const bool keyed = hash_named(name)->keyed;
    return (calyx_options){
        .hash = name, .seed = keyed ? 0 : seed, .key = keyed ? sip_key : NULL};
}

static uint64_t hash_of(const char *name, uint64_t seed, const void *key,
                        size_t size) {
    calyx_filter *f = make_filter(hashed_with(name, seed));
    const uint64_t hash = calyx_hash(f, key, size);
    calyx_free(f);
    return hash;
}

/* ---- Published values ---------------------------------------------------- */

struct vector {
    size_t size;
    uint64_t seed, hash;
};

/* The buffer and seeds of the self-test that comes with xxHash 0.8. */
#define PRIME32 UINT64_C(2654435761)
#define PRIME64 UINT64_C(11400714785074694797)

static void fill_sanity_buffer(uint8_t *buffer, size_t size) {
    uint64_t x = PRIME32;
    for (size_t i = 0; i < size; i++, x *= PRIME64)
        buffer[i] = (uint8_t)(x >> 56);
}

static const struct vector xxh3_vectors[] = {
    {0, 0, 0x2D06800538D394C2},    {0, PRIME64, 0xA8A6B918B2F0364A},
    {1, 0, 0xC44BDFF4074EECDB},    {1, PRIME64, 0x032BE332DD766EF8},
    {6, 0, 0x27B56A84CD2D7325},    {6, PRIME64, 0x84589C116AB59AB9},
    {12, 0, 0xA713DAF0DFBB77E7},   {12, PRIME64, 0xE7303E1B2336DE0E},
    {24, 0, 0xA3FE70BF9D3510EB},   {24, PRIME64, 0x850E80FC35BDD690},
    {48, 0, 0x397DA259ECBA1F11},   {48, PRIME64, 0xADC2CBAA44ACC616},
    {80, 0, 0xBCDEFBBB2C47C90A},   {80, PRIME64, 0xC6DD0CB699532E73},
    {195, 0, 0xCD94217EE362EC3A},  {195, PRIME64, 0xBA68003D370CB3D9},
    {403, 0, 0xCDEB804D65C6DEA4},  {403, PRIME64, 0x6259F6ECFD6443FD},
    {512, 0, 0x617E49599013CB6B},  {512, PRIME64, 0x3CE457DE14C27708},
    {2048, 0, 0xDD59E2C3A5F038E0}, {2048, PRIME64, 0x66F81670669ABABC},
    {2240, 0, 0x6E73A90539CF2948}, {2240, PRIME64, 0x757BA8487D1B5247},
    {2367, 0, 0xCB37AEB9E5D361ED}, {2367, PRIME64, 0xD2DB3415B942B42A},
};

static const struct vector xxh64_vectors[] = {
    {0, 0, 0xEF46DB3751D8E999},   {0, PRIME32, 0xAC75FDA2929B17EF},
    {1, 0, 0xE934A84ADB052768},   {1, PRIME32, 0x5014607643A9B4C3},
    {4, 0, 0x9136A0DCA57457EE},   {4, PRIME32, 0xCAAB286BD8E9FDB5},
    {14, 0, 0x8282DCC4994E35C8},  {14, PRIME32, 0xC3BD6BF63DEB6DF0},
    {222, 0, 0xB641AE8CB691C174}, {222, PRIME32, 0x20CB8AB7AE10C14A},
};

static void check_vectors(const char *name, const struct vector *vectors,
                          size_t n) {
    uint8_t buffer[2367];
    fill_sanity_buffer(buffer, sizeof buffer);
    for (size_t i = 0; i < n; i++) {
        const struct vector *is = &vectors[i];
        assert_int_equal(hash_of(name, is->seed, buffer, is->size), is->hash);
    }
}

static void xxh3_gives_its_published_values(void **state) {
    (void)state;
    check_vectors("xxh3", xxh3_vectors,
                  sizeof xxh3_vectors / sizeof xxh3_vectors[0]);
    assert_int_equal(hash_of("xxh3", 0, "a", 1), 0xE6C632B61E964E1F);
    assert_int_equal(hash_of("xxh3", 0, "abc", 3), 0x78AF5F94892F3950);
}

/* Ours has roads of its own for some lengths. The key ends where its memory
 * does, and begins where it begins, so that no byte beyond may be read. */
static void xxh3_agrees_with_the_library_at_every_length(void **state) {
    (void)state;
    struct generator random = {2};
    for (size_t size = 1; size <= 300; size++)
        for (int round = 0; round < 50; round++) {
            uint8_t *key = malloc(size);
            for (size_t i = 0; i < size; i++)
                key[i] = (uint8_t)random_word(&random);
            const uint64_t seed = random_word(&random) >> round;
            const struct secret secret = {.seed = seed};
            assert_int_equal(hash_named("xxh3")->one(&secret, key, size),
                             XXH3_64bits_withSeed(key, size, seed));
            free(key);
        }
}

static void xxh64_gives_its_published_values(void **state) {
    (void)state;
    check_vectors("xxh64", xxh64_vectors,
                  sizeof xxh64_vectors / sizeof xxh64_vectors[0]);
    assert_int_equal(hash_of("xxh64", 0, "a", 1), 0xD24EC4F1A98C6E5B);
    assert_int_equal(hash_of("xxh64", 0, "abc", 3), 0x44BC2CF5AD770999);
}

/* The key is 00 to 0f and the message 00, 01, 02 and so on, as in the paper by
 * Aumasson and Bernstein and the 64 vectors of its reference code. */
static void siphash_gives_its_published_values(void **state) {
    (void)state;
    static const struct vector vectors[] = {
        {0, 0, 0x726fdb47dd0e0e31},  {1, 0, 0x74f839c593dc67fd},
        {2, 0, 0x0d6c8009d9a94f5a},  {3, 0, 0x85676696d7fb7e2d},
        {4, 0, 0xcf2794e0277187b7},  {5, 0, 0x18765564cd99a68d},
        {6, 0, 0xcbc9466e58fee3ce},  {7, 0, 0xab0200f58b01d137},
        {8, 0, 0x93f5f5799a932462},  {15, 0, 0xa129ca6149be45e5},
        {63, 0, 0x958a324ceb064572},
    };
    uint8_t message[64];
    for (size_t i = 0; i < sizeof message; i++) message[i] = (uint8_t)i;

    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++)
        assert_int_equal(hash_of("siphash", 0, message, vectors[i].size),
                         vectors[i].hash);
}

struct text_vector {
    const char *key;
    uint64_t hash;
};

/* As the tests of its ports have them. */
static void murmur3_gives_its_published_values(void **state) {
    (void)state;
    static const struct text_vector vectors[] = {
        {"", 0},
        {"hello", 0xcbd8a7b341bd9b02},
        {"hello, world", 0x342fac623a5ebc8e},
        {"19 Jan 2038 at 3:14:07 AM", 0xb89e5988b737affc},
        {"The quick brown fox jumps over the lazy dog.", 0xcd99481f9ee902c9},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++)
        assert_int_equal(
            hash_of("murmur3", 0, vectors[i].key, strlen(vectors[i].key)),
            vectors[i].hash);
}

/* The vectors of FNV's authors, before the final mix. */
static void fnv1a_gives_its_published_values_mixed(void **state) {
    (void)state;
    static const struct text_vector vectors[] = {
        {"", 0xcbf29ce484222325},
        {"a", 0xaf63dc4c8601ec8c},
        {"foobar", 0x85944171f73967e8},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++)
        assert_int_equal(
            hash_of("fnv1a", 0, vectors[i].key, strlen(vectors[i].key)),
            murmur3_mix(vectors[i].hash));
}

static void every_listed_hash_is_tested_here(void **state) {
    (void)state;
    static const char *const tested[] = {"xxh3", "xxh64", "siphash", "murmur3",
                                         "fnv1a"};
    size_t i = 0;
    for (const char *const *name = calyx_hashes(); *name; name++, i++) {
        assert_true(i < sizeof tested / sizeof tested[0]);
        assert_string_equal(*name, tested[i]);
    }
}

/* ---- One at a time, many, numbers ---------------------------------------- */

static const struct secret any_secret = {
    .seed = 42, .key = {9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 1, 2, 3, 4, 5, 6}};

static void many_keys_hash_as_each_of_them_does(void **state) {
    (void)state;
    enum { KEYS = 600 };
    static uint8_t bytes[2 * KEYS];
    struct generator random = {1};
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)random_word(&random);
    calyx_key keys[KEYS];
    for (size_t i = 0; i < KEYS; i++) keys[i] = (calyx_key){bytes + i, i};

    for (const char *const *name = calyx_hashes(); *name; name++) {
        const struct hash *hash = hash_named(*name);
        uint64_t hashes[KEYS];
        hash->many(hash, &any_secret, keys, KEYS, 0, hashes);
        for (size_t i = 0; i < KEYS; i++)
            assert_int_equal(hashes[i],
                             hash->one(&any_secret, keys[i].data, i));
    }
}

static void check_numbers(const struct hash *hash, const struct secret *secret,
                          const uint64_t *numbers, size_t n) {
    uint64_t *const hashes = malloc(n * sizeof *hashes + 1);
    for (int level = 0; level <= (int)cpu_best(); level++) {
        memset(hashes, 0, n * sizeof *hashes);
        hash->numbers(hash, secret, (enum cpu_level)level, numbers, n, hashes);
        for (size_t i = 0; i < n; i++) {
            uint8_t bytes[8];
            for (size_t j = 0; j < 8; j++)
                bytes[j] = (uint8_t)(numbers[i] >> 8 * j);
            assert_int_equal(hashes[i], hash->one(secret, bytes, 8));
        }
    }
    free(hashes);
}

static void a_number_hashes_as_its_eight_little_endian_bytes(void **state) {
    (void)state;
    const uint64_t numbers[] = {
        0, 1, 255, 256, UINT64_C(0x0123456789ABCDEF), UINT64_MAX};
    enum { NUMBERS = sizeof numbers / sizeof numbers[0] };

    for (const char *const *name = calyx_hashes(); *name; name++)
        check_numbers(hash_named(*name), &any_secret, numbers, NUMBERS);
}

/* At every level, and with any number of them left over; nothing beyond them is
 * read or written. */
static void many_numbers_hash_as_single_ones_with_any_seed(void **state) {
    (void)state;
    struct generator random = {3};
    for (const char *const *name = calyx_hashes(); *name; name++)
        for (int round = 0; round < 2000; round++) {
            struct secret secret = any_secret;
            secret.seed = random_word(&random) >> round % 64;
            const size_t n = (size_t)round % 100;
            uint64_t *const numbers = malloc(n * sizeof *numbers + 1);
            for (size_t i = 0; i < n; i++) numbers[i] = random_word(&random);
            check_numbers(hash_named(*name), &secret, numbers, n);
            free(numbers);
        }
}

/* ---- In a filter --------------------------------------------------------- */

static void a_key_its_hash_and_its_number_leave_the_same_bits(void **state) {
    (void)state;
    for (const char *const *name = calyx_hashes(); *name; name++) {
        calyx_filter *by_key = make_filter(hashed_with(*name, 7));
        calyx_filter *by_hash = make_filter(hashed_with(*name, 7));
        calyx_filter *by_number = make_filter(hashed_with(*name, 7));
        for (uint64_t number = 0; number < 1000; number++) {
            uint8_t bytes[8];
            store64(bytes, number);
            const uint64_t hash = calyx_hash(by_hash, bytes, 8);
            assert_ok(calyx_add(by_key, bytes, 8, NULL));
            assert_ok(calyx_add_hashes(by_hash, &hash, 1, NULL, NULL));
            assert_ok(calyx_add_u64(by_number, number, NULL));
            assert_int_equal(calyx_has_hashes(by_key, &hash, 1, NULL), 1);
        }

        assert_true(same_bodies(by_key, by_hash));
        assert_true(same_bodies(by_key, by_number));
        calyx_free(by_key);
        calyx_free(by_hash);
        calyx_free(by_number);
    }
}

/* Each filter holds one key at a rate of one in a million, so that an absent
 * key which passed here by chance would be a surprise; the seed is fixed. */
static const double RARE = 1e-6;

static void many_hashes_are_the_same_as_single_ones(void **state) {
    (void)state;
    static const calyx_key keys[] = {{"rose", 4}, {"", 0}, {"rose\0iris", 9}};
    enum { KEYS = sizeof keys / sizeof keys[0] };
    for (const char *const *name = calyx_hashes(); *name; name++) {
        calyx_filter *f = make_filter(hashed_with(*name, 7));
        uint64_t hashes[KEYS];
        calyx_hash_many(f, keys, KEYS, hashes);
        for (size_t i = 0; i < KEYS; i++)
            assert_int_equal(hashes[i],
                             calyx_hash(f, keys[i].data, keys[i].size));
        calyx_free(f);
    }
}

static void bytes_after_a_nul_belong_to_the_key(void **state) {
    (void)state;
    EACH_KIND(kind) {
        calyx_filter *f =
            make_filter((calyx_options){.kind = *kind, .fpr = RARE});
        assert_ok(calyx_add(f, "a\0b", 3, NULL));

        assert_true(calyx_has(f, "a\0b", 3));
        assert_false(calyx_has(f, "a\0c", 3));
        assert_false(calyx_has(f, "a\0b", 2));
        assert_false(calyx_has(f, "a", 1));
        assert_false(calyx_has(f, "a\0b\0", 4));
        calyx_free(f);
    }
}

static void the_empty_key_is_a_key(void **state) {
    (void)state;
    for (const char *const *hash = calyx_hashes(); *hash; hash++) {
        calyx_options want = hashed_with(*hash, 0);
        want.fpr = RARE;
        calyx_filter *f = make_filter(want);
        assert_false(calyx_has(f, "", 0));

        bool fresh;
        assert_ok(calyx_add(f, NULL, 0, &fresh));

        assert_true(fresh);
        assert_true(calyx_has(f, "", 0));
        assert_true(calyx_has(f, NULL, 0));
        assert_int_equal(calyx_has_many(f, &(calyx_key){NULL, 0}, 1, NULL), 1);
        assert_false(calyx_has(f, "\0", 1));
        calyx_free(f);
    }
}

static void another_seed_gives_another_hash(void **state) {
    (void)state;
    assert_int_not_equal(hash_of("xxh3", 0, "rose", 4),
                         hash_of("xxh3", 1, "rose", 4));
    assert_int_not_equal(hash_of("xxh64", 0, "rose", 4),
                         hash_of("xxh64", 1, "rose", 4));
}

static void another_secret_key_gives_another_hash(void **state) {
    (void)state;
    uint8_t other_key[16];
    memcpy(other_key, sip_key, sizeof other_key);
    other_key[15] ^= 1;
    calyx_filter *f =
        make_filter((calyx_options){.hash = "siphash", .key = other_key});

    assert_int_not_equal(calyx_hash(f, "rose", 4),
                         hash_of("siphash", 0, "rose", 4));
    calyx_free(f);
}

static void random_bytes_differ_from_call_to_call(void **state) {
    (void)state;
    uint8_t a[1000] = {0}, b[1000] = {0};
    assert_ok(calyx_random(a, sizeof a - 1, NULL));
    assert_ok(calyx_random(b, sizeof b, NULL));
    assert_int_equal(a[sizeof a - 1], 0); /* nothing beyond the end */
    for (size_t i = 0; i + 8 < sizeof a; i += 8)
        assert_memory_not_equal(a + i, b + i, 8); /* once in 2^57 runs */
    assert_ok(calyx_random(NULL, 0, NULL));
}

/* ---- Long keys ----------------------------------------------------------- */

enum { PIECE = 1 << 20 };

static uint64_t xxh3_in_pieces(const uint8_t *key, size_t size) {
    XXH3_state_t *hasher = XXH3_createState();
    XXH3_64bits_reset(hasher);
    for (size_t at = 0; at < size; at += PIECE)
        XXH3_64bits_update(hasher, key + at,
                           size - at < PIECE ? size - at : PIECE);
    const uint64_t hash = XXH3_64bits_digest(hasher);
    XXH3_freeState(hasher);
    return hash;
}

/* Which kernel runs makes no difference to a hash; once is enough. */
static bool is_the_scalar_run(void) {
    const char *kernel = getenv("CALYX_KERNEL");
    return !kernel || strcmp(kernel, "scalar") == 0;
}

/* xxHash itself never sees more than a piece of it at a time. */
static void a_key_of_over_4_gib_is_hashed_whole(void **state) {
    (void)state;
    if (SANITIZED || !is_the_scalar_run()) skip();
    const size_t size = (UINT64_C(1) << 32) + 5;
    uint8_t *const key =
        mmap(NULL, size, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(key != MAP_FAILED);
    key[0] = 'a';
    key[size - 1] = 'z';
    calyx_filter *f = make_filter((calyx_options){.fpr = RARE});

    const uint64_t hash = calyx_hash(f, key, size);
    assert_ok(calyx_add(f, key, size, NULL));

    assert_int_equal(hash, xxh3_in_pieces(key, size));
    assert_int_equal(calyx_has_hashes(f, &hash, 1, NULL), 1);
    assert_false(calyx_has(f, key, 5)); /* the length in 32 bits */
    calyx_free(f);
    munmap(key, size);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(xxh3_gives_its_published_values),
        cmocka_unit_test(xxh3_agrees_with_the_library_at_every_length),
        cmocka_unit_test(xxh64_gives_its_published_values),
        cmocka_unit_test(siphash_gives_its_published_values),
        cmocka_unit_test(random_bytes_differ_from_call_to_call),
        cmocka_unit_test(murmur3_gives_its_published_values),
        cmocka_unit_test(fnv1a_gives_its_published_values_mixed),
        cmocka_unit_test(every_listed_hash_is_tested_here),
        cmocka_unit_test(many_keys_hash_as_each_of_them_does),
        cmocka_unit_test(a_number_hashes_as_its_eight_little_endian_bytes),
        cmocka_unit_test(many_numbers_hash_as_single_ones_with_any_seed),
        cmocka_unit_test(a_key_its_hash_and_its_number_leave_the_same_bits),
        cmocka_unit_test(many_hashes_are_the_same_as_single_ones),
        cmocka_unit_test(bytes_after_a_nul_belong_to_the_key),
        cmocka_unit_test(the_empty_key_is_a_key),
        cmocka_unit_test(another_seed_gives_another_hash),
        cmocka_unit_test(another_secret_key_gives_another_hash),
        cmocka_unit_test(a_key_of_over_4_gib_is_hashed_whole),
    };
    return RUN_TESTS(tests);
}
