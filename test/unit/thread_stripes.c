/*
 * The locks of a concurrent filter whose keys have one block each. A batch that
 * expects other threads is grouped before it is added. That must not show: the
 * answers, the bits and the number of keys are as in a plain filter.
 */
#include "engine/stripes.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "support.h"

enum { MOST = 5000 };

/* From now on batches are grouped, as if other threads had been met. */
static void expect_others(calyx_filter *f) {
    assert_non_null(f->stripes);
    f->stripes->crowded = UINT32_MAX;
}

/* Hashes by their number; repeated ones are wanted, too. */
typedef uint64_t hash_rule(struct generator *from, size_t i);

static uint64_t evenly(struct generator *from, size_t i) {
    (void)i;
    return random_word(from);
}

static uint64_t often_repeated(struct generator *from, size_t i) {
    (void)i;
    return random_below(from, 100) * UINT64_C(0x0123456789ABCDEF);
}

static uint64_t in_one_group(struct generator *from, size_t i) {
    (void)i;
    return UINT64_C(5) << 61 | random_word(from) >> 3;
}

static uint64_t at_the_ends_of_groups(struct generator *from, size_t i) {
    const uint64_t edge = random_below(from, 9) << 61;
    return i % 2 ? edge - 1 - random_below(from, 3)
                 : edge + random_below(from, 3);
}

static hash_rule *const rules[] = {evenly, often_repeated, in_one_group,
                                   at_the_ends_of_groups};
enum { RULES = sizeof rules / sizeof *rules };

/* A plain filter, and one that groups its batches. */
struct pair {
    calyx_filter *plain, *shared;
};

static struct pair make_pair(calyx_options want) {
    struct pair made;
    made.plain = make_filter(want);
    want.concurrent = true;
    made.shared = make_filter(want);
    expect_others(made.shared);
    return made;
}

static void free_pair(struct pair pair) {
    calyx_free(pair.plain);
    calyx_free(pair.shared);
}

static void assert_adds_alike(struct pair to, hash_rule *rule, size_t n) {
    static uint64_t hashes[MOST];
    static bool by_groups[MOST], by_one[MOST];
    struct generator seed = {n};
    for (size_t i = 0; i < n; i++) hashes[i] = rule(&seed, i);
    assert_ok(calyx_clear(to.plain));
    assert_ok(calyx_clear(to.shared));

    for (int round = 0; round < 2; round++) {
        size_t done, done_by_one;
        const calyx_status status =
            calyx_add_hashes(to.shared, hashes, n, by_groups, &done);
        assert_int_equal(
            calyx_add_hashes(to.plain, hashes, n, by_one, &done_by_one),
            status);
        assert_int_equal(done, done_by_one);
        assert_memory_equal(by_groups, by_one, done);
    }
    for (size_t i = 0; i < n; i++) hashes[i] = ~hashes[i];
    assert_int_equal(calyx_add_hashes(to.shared, hashes, n, NULL, NULL),
                     calyx_add_hashes(to.plain, hashes, n, NULL, NULL));

    assert_true(same_bodies(to.shared, to.plain));
    assert_int_equal(info_of(to.shared).items, info_of(to.plain).items);
}

static const size_t numbers[] = {1, 7, 31, 32, 33, 500, 1024, 2047, 2049, MOST};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

/* Which of the keys that share a block seem to be there already depends on
 * their order. Groups keep it, unless a block belongs to two of them: so these
 * filters have a multiple of 8 blocks. */
enum { EIGHT_BLOCKS = 8 * 512 }; /* bits */

static void a_grouped_batch_answers_and_sets_bits_as_a_plain_one(void **state) {
    (void)state;
    static const uint64_t sizes[] = {1, 4, 5, 60, 1000};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const struct pair pair =
            make_pair((calyx_options){.bits = sizes[s] * EIGHT_BLOCKS});
        for (size_t i = 0; i < NUMBERS; i++)
            for (size_t r = 0; r < RULES; r++)
                assert_adds_alike(pair, rules[r], numbers[i]);
        free_pair(pair);
    }
}

static void a_grouped_batch_stops_where_a_strict_filter_is_full(void **state) {
    (void)state;
    const struct pair pair = make_pair((calyx_options){
        .capacity = 2000, .bits = 8 * EIGHT_BLOCKS, .strict = true});
    for (size_t i = 0; i < NUMBERS; i++)
        assert_adds_alike(pair, evenly, numbers[i]);
    free_pair(pair);
}

static void grouped_batches_let_a_filter_grow(void **state) {
    (void)state;
    static uint64_t hashes[MOST];
    struct generator seed = {2};
    calyx_filter *const f = make_filter(
        (calyx_options){.capacity = 100, .growth = 2, .concurrent = true});
    expect_others(f);
    for (size_t i = 0; i < MOST; i++) hashes[i] = random_word(&seed);

    assert_ok(calyx_add_hashes(f, hashes, MOST, NULL, NULL));

    const calyx_info info = info_of(f);
    assert_int_equal(calyx_has_hashes(f, hashes, MOST, NULL), MOST);
    assert_true(info.parts > 1);
    assert_true(info.items <= MOST && info.items > MOST * 98 / 100);
    calyx_free(f);
}

/* Few blocks, and such that most of them belong to two groups. */
static void a_grouped_batch_sets_its_bits_in_a_filter_of_any_size(
    void **state) {
    (void)state;
    static uint64_t hashes[MOST];
    struct generator seed = {3};
    for (size_t i = 0; i < MOST; i++) hashes[i] = random_word(&seed);
    for (uint64_t blocks = 1; blocks < 100; blocks++) {
        const struct pair to =
            make_pair((calyx_options){.bits = blocks * 512, .probes = 6});
        assert_ok(calyx_add_hashes(to.plain, hashes, 20 * blocks, NULL, NULL));
        assert_ok(calyx_add_hashes(to.shared, hashes, 20 * blocks, NULL, NULL));
        assert_true(same_bodies(to.shared, to.plain));
        free_pair(to);
    }
}

static void a_filter_for_one_thread_has_no_stripes(void **state) {
    (void)state;
    calyx_filter *const f = make_filter((calyx_options){0});
    assert_null(f->stripes);
    calyx_free(f);
}

/* ---- A stripe that another thread holds ---------------------------------- */

static uint64_t some_hashes[MOST];

static void *add_hashes(void *f) {
    const calyx_status status =
        calyx_add_hashes(f, some_hashes, MOST, NULL, NULL);
    return status == CALYX_OK ? f : NULL;
}

/* The batch meets a lock in its first group. */
static void a_batch_adds_what_it_can_and_waits_for_the_rest(void **state) {
    (void)state;
    calyx_filter *const f =
        make_filter((calyx_options){.capacity = 100000, .concurrent = true});
    struct stripe *const first = &f->stripes->stripe[0];
    struct generator seed = {1};
    for (size_t i = 0; i < MOST; i++) some_hashes[i] = random_word(&seed);
    some_hashes[0] = 0;
    some_hashes[1] = UINT64_MAX / 2;
    __atomic_store_n(&first->locked, 1, __ATOMIC_RELAXED);

    pthread_t thread;
    void *added;
    assert_int_equal(pthread_create(&thread, NULL, add_hashes, f), 0);
    while (!calyx_has_hash(f, some_hashes[1])) sched_yield();
    assert_false(calyx_has_hash(f, some_hashes[0]));
    assert_true(__atomic_load_n(&f->stripes->crowded, __ATOMIC_RELAXED) > 0);
    __atomic_store_n(&first->locked, 0, __ATOMIC_RELEASE);
    pthread_join(thread, &added);

    assert_ptr_equal(added, f);
    assert_int_equal(calyx_has_hashes(f, some_hashes, MOST, NULL), MOST);
    for (size_t i = 0; i < STRIPE_COUNT; i++)
        assert_int_equal(f->stripes->stripe[i].locked, 0);
    calyx_free(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_grouped_batch_answers_and_sets_bits_as_a_plain_one),
        cmocka_unit_test(a_grouped_batch_stops_where_a_strict_filter_is_full),
        cmocka_unit_test(grouped_batches_let_a_filter_grow),
        cmocka_unit_test(a_grouped_batch_sets_its_bits_in_a_filter_of_any_size),
        cmocka_unit_test(a_filter_for_one_thread_has_no_stripes),
        cmocka_unit_test(a_batch_adds_what_it_can_and_waits_for_the_rest),
    };
    return RUN_TESTS(tests);
}
