/*
 * The LevelDB policy without LevelDB: its functions, as they are handed over,
 * so that the sanitizers see all of it. test/integrations/leveldb_files.c has
 * real databases.
 */
#include "policy.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

/* ---- LevelDB's side of the policy -----------------------------------------
 */

struct leveldb_filterpolicy_t {
    void *state;
    void (*end)(void *);
    char *(*create)(void *, const char *const *, const size_t *, int, size_t *);
    uint8_t (*may_match)(void *, const char *, size_t, const char *, size_t);
    const char *(*name)(void *);
};

leveldb_filterpolicy_t *leveldb_filterpolicy_create(
    void *state, void (*end)(void *),
    char *(*create)(void *, const char *const *, const size_t *, int, size_t *),
    uint8_t (*may_match)(void *, const char *, size_t, const char *, size_t),
    const char *(*name)(void *)) {
    leveldb_filterpolicy_t *policy = malloc(sizeof *policy);
    *policy = (leveldb_filterpolicy_t){state, end, create, may_match, name};
    return policy;
}

void leveldb_filterpolicy_destroy(leveldb_filterpolicy_t *policy) {
    policy->end(policy->state);
    free(policy);
}

/* The policy calls calyx_new through here (ld's --wrap). */
calyx_status __real_calyx_new(const calyx_options *want, calyx_filter **out,
                              calyx_error *why);
calyx_status __wrap_calyx_new(const calyx_options *want, calyx_filter **out,
                              calyx_error *why);
static int until_memory_ends = -1;

calyx_status __wrap_calyx_new(const calyx_options *want, calyx_filter **out,
                              calyx_error *why) {
    if (until_memory_ends > 0) until_memory_ends--;
    if (until_memory_ends != 0) return __real_calyx_new(want, out, why);
    if (why) *why = (calyx_error){.status = CALYX_NO_MEMORY, .text = "full"};
    return CALYX_NO_MEMORY;
}

/* ---- Filters of numbered keys ---------------------------------------------
 */

enum { MOST = 2000, KEY_BYTES = 12 };

struct filter {
    leveldb_filterpolicy_t *policy;
    char *bytes;
    size_t size;
};

static void write_key(char *to, uint64_t number) {
    snprintf(to, KEY_BYTES + 1, "%012llu", (unsigned long long)number);
}

static struct filter of(leveldb_filterpolicy_t *policy, uint64_t first, int n) {
    struct filter f = {.policy = policy};
    char text[MOST][KEY_BYTES + 1];
    const char *keys[MOST];
    size_t sizes[MOST];
    for (int i = 0; i < n; i++) {
        write_key(text[i], first + (uint64_t)i);
        keys[i] = text[i];
        sizes[i] = KEY_BYTES;
    }
    f.bytes = policy->create(policy->state, keys, sizes, n, &f.size);
    return f;
}

static bool asks(const struct filter *f, const char *bytes, size_t size,
                 uint64_t number) {
    char key[KEY_BYTES + 1];
    write_key(key, number);
    return f->policy->may_match(f->policy->state, key, KEY_BYTES, bytes, size);
}

static bool maybe(const struct filter *f, uint64_t number) {
    return asks(f, f->bytes, f->size, number);
}

static leveldb_filterpolicy_t *policy_of(int bits_per_key) {
    calyx_error why;
    leveldb_filterpolicy_t *policy = calyx_leveldb_policy(bits_per_key, &why);
    if (!policy) fail_msg("%s", why.text);
    return policy;
}

/* ---- What it promises -----------------------------------------------------
 */

static const int few_bits[] = {1, 5, 10, 17, 32};

static void no_key_is_lost(void **state) {
    (void)state;
    for (size_t b = 0; b < sizeof few_bits / sizeof *few_bits; b++) {
        leveldb_filterpolicy_t *policy = policy_of(few_bits[b]);
        leveldb_filterpolicy_t *reader = policy_of(10); /* as good as any */
        for (int n = 1; n <= MOST; n += 1 + n / 4) {
            struct filter f = of(policy, 7000, n);
            for (int i = 0; i < n; i++)
                assert_true(maybe(&f, 7000 + (uint64_t)i));
            f.policy = reader;
            for (int i = 0; i < n; i++)
                assert_true(maybe(&f, 7000 + (uint64_t)i));
            free(f.bytes);
        }
        leveldb_filterpolicy_destroy(reader);
        leveldb_filterpolicy_destroy(policy);
    }
}

/* LevelDB's own: n times the bits a key, at least 64, in whole bytes, and one
 * byte for the probes. */
static void a_filter_is_as_large_as_leveldbs(void **state) {
    (void)state;
    for (size_t b = 0; b < sizeof few_bits / sizeof *few_bits; b++) {
        leveldb_filterpolicy_t *policy = policy_of(few_bits[b]);
        for (int n = 0; n < 100; n++) {
            struct filter f = of(policy, 1, n);
            const int bits = n * few_bits[b] < 64 ? 64 : n * few_bits[b];
            assert_int_equal(f.size, (bits + 7) / 8 + 1);
            free(f.bytes);
        }
        leveldb_filterpolicy_destroy(policy);
    }
}

/* Asked in place, the bits say what the library says of them. */
static void the_leveldb_policy_answers_as_the_library_does(void **state) {
    (void)state;
    leveldb_filterpolicy_t *policy = policy_of(10);
    for (int n = 1; n <= 300; n += 13) {
        struct filter f = of(policy, 0, n);
        const calyx_options want = {.kind = "flat",
                                    .capacity = (uint64_t)n,
                                    .seed = 1,
                                    .probes = (f.bytes[f.size - 2] & 15) + 1u};
        calyx_filter *same = NULL;
        assert_ok(calyx_from_bits(&want, f.bytes, f.size - 2, &same, NULL));
        for (uint64_t i = 0; i < 5000; i++) {
            char key[KEY_BYTES + 1];
            write_key(key, i);
            assert_true(maybe(&f, i) == calyx_has(same, key, KEY_BYTES));
        }
        calyx_free(same);
        free(f.bytes);
    }
    leveldb_filterpolicy_destroy(policy);
}

static void absent_keys_pass_at_the_rate_of_a_flat_filter(void **state) {
    (void)state;
    enum { FILTERS = 2000, KEYS = 35, ABSENT = 100 };
    leveldb_filterpolicy_t *policy = policy_of(10);
    const calyx_options want = {
        .kind = "flat", .capacity = KEYS, .bits = 8 * 43, .probes = 7};
    double rate;
    assert_ok(calyx_rate_at(&want, KEYS, &rate, NULL));
    uint64_t passed = 0;
    for (uint64_t i = 0; i < FILTERS; i++) {
        struct filter f = of(policy, 1000 * i, KEYS);
        assert_int_equal(f.size, 43 + 2);
        for (uint64_t j = 0; j < ABSENT; j++)
            passed += maybe(&f, 1000 * i + 500 + j);
        free(f.bytes);
    }
    assert_true(odds_at_most(passed, FILTERS * ABSENT, 1.05 * rate) > UNLIKELY);
    assert_true(odds_at_least(passed, FILTERS * ABSENT, rate) > UNLIKELY);
    leveldb_filterpolicy_destroy(policy);
}

static void any_bytes_are_a_key(void **state) {
    (void)state;
    leveldb_filterpolicy_t *policy = policy_of(10);
    const char *keys[] = {"", "a\0b", "a\0c", "same", "same"};
    const size_t sizes[] = {0, 3, 3, 4, 4};
    size_t size;
    char *f = policy->create(policy->state, keys, sizes, 5, &size);
    for (int i = 0; i < 5; i++)
        assert_true(
            policy->may_match(policy->state, keys[i], sizes[i], f, size));
    assert_false(policy->may_match(policy->state, "a\0d", 3, f, size));
    free(f);
    leveldb_filterpolicy_destroy(policy);
}

/* ---- What is read is not trusted ------------------------------------------
 */

/* Of all single bits that may turn over, one in 4096 is not noticed; and most
 * of those do no harm. */
static void damaged_filters_say_maybe(void **state) {
    (void)state;
    enum { KEYS = 35 };
    leveldb_filterpolicy_t *policy = policy_of(10);
    uint64_t flips = 0, unnoticed = 0;
    for (uint64_t first = 0; first < 100 * KEYS; first += KEYS) {
        struct filter f = of(policy, first, KEYS);
        for (size_t bit = 0; bit < 8 * f.size; bit++, flips++) {
            f.bytes[bit / 8] = (char)(f.bytes[bit / 8] ^ 1 << bit % 8);
            bool noticed = true;
            for (uint64_t i = 0; i < 20; i++) /* all pass: 1 in 10^40 */
                noticed &= maybe(&f, 1000000 + i);
            unnoticed += !noticed;
            f.bytes[bit / 8] = (char)(f.bytes[bit / 8] ^ 1 << bit % 8);
        }
        free(f.bytes);
    }
    assert_true(odds_at_least(unnoticed, flips, 1. / 4096) > UNLIKELY);
    leveldb_filterpolicy_destroy(policy);
}

static void what_is_no_filter_says_maybe(void **state) {
    (void)state;
    leveldb_filterpolicy_t *policy = policy_of(10);
    struct filter f = of(policy, 0, 35);
    uint64_t cut = 0;
    for (size_t size = 0; size < f.size; size++)
        cut += !asks(&f, f.bytes, size, 999999);
    assert_int_equal(cut, 0);
    char *exact = malloc(1); /* the sanitizer would see a step beyond */
    *exact = 0;
    assert_true(asks(&f, exact, 1, 1));
    assert_true(asks(&f, exact, 0, 1));
    free(exact);

    struct generator random = {1};
    uint64_t unnoticed = 0;
    char noise[64];
    for (int i = 0; i < 100000; i++) {
        for (size_t j = 0; j < sizeof noise; j++)
            noise[j] = (char)random_word(&random);
        unnoticed += !asks(&f, noise, 3 + (size_t)i % 61, 1);
    }
    assert_true(odds_at_least(unnoticed, 100000, 1. / 4096) > UNLIKELY);
    free(f.bytes);
    leveldb_filterpolicy_destroy(policy);
}

/* ---- What can go wrong ----------------------------------------------------
 */

static void a_leveldb_policy_is_refused_without_memory(void **state) {
    (void)state;
    calyx_error why = {0};
    until_memory_ends = 1;
    assert_null(calyx_leveldb_policy(10, &why));
    until_memory_ends = -1;
    assert_int_equal(why.status, CALYX_NO_MEMORY);
}

static void making_a_filter_takes_no_memory_but_its_own(void **state) {
    (void)state;
    leveldb_filterpolicy_t *policy = policy_of(10);
    until_memory_ends = 0; /* a calyx_filter could not be made */
    struct filter f = of(policy, 0, 35);
    until_memory_ends = -1;
    for (uint64_t i = 0; i < 35; i++) assert_true(maybe(&f, i));
    free(f.bytes);
    leveldb_filterpolicy_destroy(policy);
}

static void bits_out_of_range_are_refused(void **state) {
    (void)state;
    const int bad[] = {0, -1, 33, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        calyx_error why = {0};
        char number[16];
        snprintf(number, sizeof number, "%d", bad[i]);
        assert_null(calyx_leveldb_policy(bad[i], &why));
        assert_int_equal(why.status, CALYX_BAD_ARGUMENT);
        assert_non_null(strstr(why.text, number));
        assert_null(calyx_leveldb_policy(bad[i], NULL));
    }
}

/* ---- Threads --------------------------------------------------------------
 */

static void *use(void *context) {
    leveldb_filterpolicy_t *policy = context;
    uint64_t lost = 0;
    for (uint64_t first = 0; first < 200 * 40; first += 40) {
        struct filter f = of(policy, first, 40);
        for (uint64_t i = 0; i < 40; i++) lost += !maybe(&f, first + i);
        free(f.bytes);
    }
    return lost ? context : NULL;
}

static void threads_may_share_a_policy(void **state) {
    (void)state;
    leveldb_filterpolicy_t *policy = policy_of(10);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use, policy), 0);
    for (int i = 0; i < 4; i++) {
        void *lost;
        pthread_join(threads[i], &lost);
        assert_null(lost);
    }
    assert_string_equal(policy->name(policy->state), "calyx.flat.3");
    leveldb_filterpolicy_destroy(policy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_key_is_lost),
        cmocka_unit_test(a_filter_is_as_large_as_leveldbs),
        cmocka_unit_test(the_leveldb_policy_answers_as_the_library_does),
        cmocka_unit_test(absent_keys_pass_at_the_rate_of_a_flat_filter),
        cmocka_unit_test(any_bytes_are_a_key),
        cmocka_unit_test(damaged_filters_say_maybe),
        cmocka_unit_test(what_is_no_filter_says_maybe),
        cmocka_unit_test(a_leveldb_policy_is_refused_without_memory),
        cmocka_unit_test(making_a_filter_takes_no_memory_but_its_own),
        cmocka_unit_test(bits_out_of_range_are_refused),
        cmocka_unit_test(threads_may_share_a_policy),
    };
    return RUN_TESTS(tests);
}
