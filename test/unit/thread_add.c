/*
 * Filters that many threads add to and ask at once. A thread finds its own key
 * as soon as it was added; everybody finds all keys in the end.
 * test/control/lost_keys.c shows that this test would notice if bits were set
 * without locks.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support.h"

#if defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZED 1
#endif
#endif
#ifndef THREAD_SANITIZED
#define THREAD_SANITIZED 0
#endif

/* The thread sanitizer is slow, and finds a race in the first few thousand. */
enum { SHARE = THREAD_SANITIZED ? 40 : SANITIZED ? 10 : 1 };

/* Kinds that take many writers; a new kind is tested the day it is added. */
#define EACH_SHARED_KIND(kind)                                    \
    for (const char *const *kind = adding_kinds(); *kind; kind++) \
        if (takes_many_writers(*kind))

static bool takes_many_writers(const char *kind) {
    const calyx_options want = {
        .kind = kind, .capacity = 1, .concurrent = true};
    calyx_info info;
    return calyx_plan(&want, &info, NULL) == CALYX_OK;
}

/* ---- What a thread does -------------------------------------------------- */

enum { BATCH = 500 };

/* cmocka's assertions belong to the main thread; the others count. */
struct worker {
    pthread_t thread;
    pthread_barrier_t *start;
    calyx_filter *f;
    uint64_t from, to; /* the numbers it adds, or asks for */
    bool batched;
    uint64_t lost;  /* keys it had added, and did not find at once */
    uint64_t fresh; /* keys reported to it as new                  */
    uint64_t failed;
    bool stop; /* set from outside */
};

static void add_singly(struct worker *w) {
    for (uint64_t i = w->from; i < w->to; i++) {
        bool fresh = false;
        w->failed += calyx_add_u64(w->f, i, &fresh) != CALYX_OK;
        w->lost += !calyx_has_u64(w->f, i);
        w->fresh += fresh;
    }
}

static void add_in_batches(struct worker *w) {
    uint64_t numbers[BATCH];
    bool fresh[BATCH];
    for (uint64_t i = w->from; i < w->to;) {
        size_t n = 0, done;
        while (n < BATCH && i < w->to) numbers[n++] = i++;
        w->failed += calyx_add_many_u64(w->f, numbers, n, fresh, &done) != 0;
        w->lost += n - calyx_has_many_u64(w->f, numbers, n, NULL);
        for (size_t j = 0; j < n; j++) w->fresh += fresh[j];
    }
}

static void *adder(void *argument) {
    struct worker *w = argument;
    pthread_barrier_wait(w->start);
    if (w->batched)
        add_in_batches(w);
    else
        add_singly(w);
    return NULL;
}

/* Asks for what was there before the others began, which must never be gone,
 * and for absent keys, which may do as they like. */
static void *asker(void *argument) {
    struct worker *w = argument;
    pthread_barrier_wait(w->start);
    for (int round = 0; round < 3; round++)
        for (uint64_t i = w->from; i < w->to; i++) {
            w->lost += !calyx_has_u64(w->f, i);
            w->fresh += !calyx_has_u64(w->f, ~i);
        }
    return NULL;
}

/* Start them all at once, and wait for all. */
static void run(struct worker *workers, int adders, int askers) {
    pthread_barrier_t start;
    const int all = adders + askers;
    assert_int_equal(pthread_barrier_init(&start, NULL, (unsigned)all), 0);
    for (int i = 0; i < all; i++) {
        workers[i].start = &start;
        assert_int_equal(pthread_create(&workers[i].thread, NULL,
                                        i < adders ? adder : asker,
                                        &workers[i]),
                         0);
    }
    for (int i = 0; i < all; i++) pthread_join(workers[i].thread, NULL);
    pthread_barrier_destroy(&start);
    for (int i = 0; i < all; i++) {
        assert_int_equal(workers[i].lost, 0);
        assert_int_equal(workers[i].failed, 0);
    }
}

static uint64_t count_missing(const calyx_filter *f, uint64_t from,
                              uint64_t to) {
    uint64_t numbers[BATCH], missing = 0;
    while (from < to) {
        size_t n = 0;
        while (n < BATCH && from < to) numbers[n++] = from++;
        missing += n - calyx_has_many_u64(f, numbers, n, NULL);
    }
    return missing;
}

/* ---- Every key is found -------------------------------------------------- */

static void threads_with_keys_of_their_own_lose_none(void **state) {
    (void)state;
    enum { EACH = 200000 / SHARE };
    EACH_SHARED_KIND(kind) {
        for (int adders = 2; adders <= 4; adders++) {
            calyx_filter *f =
                make_filter((calyx_options){.kind = *kind,
                                            .capacity = (uint64_t)adders * EACH,
                                            .concurrent = true});
            struct worker workers[4] = {{0}};
            for (int i = 0; i < adders; i++)
                workers[i] = (struct worker){.f = f,
                                             .from = (uint64_t)i * EACH,
                                             .to = (uint64_t)(i + 1) * EACH,
                                             .batched = i % 2};

            run(workers, adders, 0);

            const uint64_t keys = (uint64_t)adders * EACH;
            assert_int_equal(count_missing(f, 0, keys), 0);
            uint64_t fresh = 0;
            for (int i = 0; i < adders; i++) fresh += workers[i].fresh;
            assert_int_equal(info_of(f).items,
                             counts_additions(*kind) ? keys : fresh);
            assert_true(fresh <= keys);
            /* All but the false positives were fresh: 1 % at the end. */
            assert_true(odds_at_least(keys - fresh, keys, 0.01) > UNLIKELY);
            calyx_free(f);
        }
    }
}

/* Two threads that add the same key may both count it, so the items
 * lie between the keys and the adds. */
static void threads_with_the_same_keys_lose_none(void **state) {
    (void)state;
    enum { KEYS = 200000 / SHARE };
    EACH_SHARED_KIND(kind) {
        const uint64_t copies = counts_additions(*kind) ? 4 : 1;
        /* Copies fill slots unevenly: a table has to grow. */
        calyx_filter *f =
            make_filter((calyx_options){.kind = *kind,
                                        .capacity = copies * KEYS,
                                        .growth = is_table(*kind) ? 2 : 0,
                                        .concurrent = true});
        struct worker workers[4];
        for (int i = 0; i < 4; i++)
            workers[i] = (struct worker){.f = f, .to = KEYS, .batched = i % 2};

        run(workers, 4, 0);

        assert_int_equal(count_missing(f, 0, KEYS), 0);
        const calyx_info info = info_of(f);
        assert_true(odds_at_most(info.items, KEYS, 0.99) > UNLIKELY ||
                    info.items > KEYS * 99 / 100);
        assert_true(info.items <= 4 * KEYS);
        const double distinct = info.distinct / (double)copies;
        assert_true(distinct > 0.97 * (double)KEYS &&
                    distinct < 1.03 * (double)KEYS);
        calyx_free(f);
    }
}

static void lookups_beside_additions_miss_no_key(void **state) {
    (void)state;
    enum { EACH = 100000 / SHARE };
    EACH_SHARED_KIND(kind) {
        calyx_filter *f = make_filter((calyx_options){
            .kind = *kind, .capacity = 3 * EACH, .concurrent = true});
        add_numbers(f, 0, EACH);
        struct worker workers[4] = {
            {.f = f, .from = EACH, .to = 2 * EACH},
            {.f = f, .from = 2 * EACH, .to = 3 * EACH, .batched = true},
            {.f = f, .to = EACH},
            {.f = f, .to = EACH},
        };

        run(workers, 2, 2);

        assert_int_equal(count_missing(f, 0, 3 * EACH), 0);
        calyx_free(f);
    }
}

/* The bytes that threads leave are those that one alone leaves. */
static void many_threads_leave_the_bits_of_one(void **state) {
    (void)state;
    enum { EACH = 50000 / SHARE };
    EACH_SHARED_KIND(kind) {
        if (is_table(*kind)) continue; /* by the order of the keys */
        const calyx_options shared = {
            .kind = *kind, .capacity = 2 * EACH, .concurrent = true};
        const calyx_options alone = {.kind = *kind, .capacity = 2 * EACH};
        calyx_filter *many = make_filter(shared), *one = make_filter(alone);
        struct worker workers[2] = {{.f = many, .to = EACH, .batched = true},
                                    {.f = many, .from = EACH, .to = 2 * EACH}};
        for (uint64_t i = 0; i < 2 * EACH; i++)
            assert_ok(calyx_add_u64(one, i, NULL));

        run(workers, 2, 0);

        assert_true(same_bodies(many, one));
        calyx_free(many);
        calyx_free(one);
    }
}

/* ---- On purpose in each other's way -------------------------------------- */

/* A body so small that threads meet on its lines all the time, again and again
 * from empty. test/control/lost_keys.c does the same. */
static void threads_that_meet_on_every_line_lose_no_key(void **state) {
    (void)state;
    enum { EACH = 1000, ROUNDS = 1000 / SHARE };
    EACH_SHARED_KIND(kind) {
        calyx_filter *f = make_filter((calyx_options){
            .kind = *kind, .capacity = 2 * EACH, .concurrent = true});
        for (uint64_t round = 0; round < ROUNDS; round++) {
            const uint64_t first = 2 * EACH * round;
            struct worker workers[2] = {
                {.f = f, .from = first, .to = first + EACH, .batched = true},
                {.f = f,
                 .from = first + EACH,
                 .to = first + 2 * EACH,
                 .batched = true}};

            run(workers, 2, 0);

            assert_int_equal(count_missing(f, first, first + 2 * EACH), 0);
            assert_ok(calyx_clear(f));
        }
        calyx_free(f);
    }
}

static void two_threads_add_twenty_million_keys_and_lose_none(void **state) {
    (void)state;
    enum { EACH = 10000000 / SHARE };
    calyx_filter *f =
        make_filter((calyx_options){.capacity = 2 * EACH, .concurrent = true});
    struct worker workers[2] = {
        {.f = f, .to = EACH, .batched = true},
        {.f = f, .from = EACH, .to = 2 * EACH, .batched = true}};

    run(workers, 2, 0);

    assert_int_equal(count_missing(f, 0, 2 * EACH), 0);
    assert_int_equal(info_of(f).items, workers[0].fresh + workers[1].fresh);
    calyx_free(f);
}

/* ---- Growth -------------------------------------------------------------- */

static void a_filter_grows_while_threads_add(void **state) {
    (void)state;
    enum { EACH = 200000 / SHARE };
    EACH_SHARED_KIND(kind) {
        calyx_filter *f = make_filter((calyx_options){
            .kind = *kind, .capacity = 100, .growth = 1.5, .concurrent = true});
        add_numbers(f, 0, 100);
        struct worker workers[4] = {
            {.f = f, .from = 100, .to = EACH},
            {.f = f, .from = EACH, .to = 2 * EACH, .batched = true},
            {.f = f, .from = EACH, .to = 2 * EACH}, /* the same */
            {.f = f, .to = 100},
        };

        run(workers, 3, 1);

        assert_int_equal(count_missing(f, 0, 2 * EACH), 0);
        assert_true(info_of(f).items <= 3 * EACH);
        calyx_free(f);
    }
}

/* Memory that takes its time, as it does when a thread is put to sleep while it
 * makes a part. */
static void *take_slowly(void *context, size_t size, size_t alignment) {
    (void)context;
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    const size_t rounded = (size + alignment - 1) / alignment * alignment;
    void *block = aligned_alloc(alignment, rounded);
    return block ? memset(block, 0, rounded) : NULL;
}

static void release(void *context, void *block, size_t size) {
    (void)context, (void)size;
    free(block);
}

/* Other threads may put a few keys more into a part that is full, but not all
 * that they have: it would say yes to everything, for good. */
static void a_filter_that_grows_slowly_keeps_its_rate(void **state) {
    (void)state;
    enum { EACH = 20000, ASKED = 100000 };
    const calyx_memory slow = {take_slowly, release, NULL};
    EACH_SHARED_KIND(kind) {
        calyx_filter *f = make_filter((calyx_options){.kind = *kind,
                                                      .capacity = 1000,
                                                      .growth = 2,
                                                      .memory = &slow,
                                                      .concurrent = true});
        struct worker workers[2] = {{.f = f, .to = EACH},
                                    {.f = f, .from = EACH, .to = 2 * EACH}};

        run(workers, 2, 0);

        assert_int_equal(count_missing(f, 0, 2 * EACH), 0);
        const uint64_t absent = UINT64_C(1) << 40;
        const uint64_t found = ASKED - count_missing(f, absent, absent + ASKED);
        if (odds_at_least(found, ASKED, 0.01) < UNLIKELY)
            fail_msg("%s: %llu of %d absent keys found, at a promise of 1 %%",
                     *kind, (unsigned long long)found, ASKED);
        calyx_free(f);
    }
}

/* Descriptions, too, may be requested at any time. */
static void *describer(void *argument) {
    struct worker *w = argument;
    pthread_barrier_wait(w->start);
    for (uint64_t last = 0, round = 0; round < 200; round++) {
        const calyx_info info = info_of(w->f);
        w->lost += info.items < last || info.parts < 1 || info.fill > 1;
        last = info.items;
    }
    return NULL;
}

static void a_filter_can_be_described_while_threads_add(void **state) {
    (void)state;
    enum { EACH = 100000 / SHARE };
    EACH_SHARED_KIND(kind) {
        calyx_filter *f = make_filter((calyx_options){
            .kind = *kind, .capacity = 1000, .growth = 2, .concurrent = true});
        pthread_barrier_t start;
        struct worker adds = {.f = f, .to = EACH, .start = &start};
        struct worker describes = {.f = f, .start = &start};
        assert_int_equal(pthread_barrier_init(&start, NULL, 2), 0);

        pthread_create(&adds.thread, NULL, adder, &adds);
        pthread_create(&describes.thread, NULL, describer, &describes);
        pthread_join(adds.thread, NULL);
        pthread_join(describes.thread, NULL);

        assert_int_equal(adds.lost + adds.failed + describes.lost, 0);
        pthread_barrier_destroy(&start);
        calyx_free(f);
    }
}

/* ---- Calls that read a whole filter -------------------------------------- */

/* Does `copy` have all keys that were in the filter before it was made? */
static uint64_t lost_keys(const calyx_filter *copy, uint64_t keys) {
    return keys - count_found(copy, 0, keys);
}

/* Those that combine filters: see read_whole. */
static uint64_t combine_whole(const calyx_filter *f, const calyx_filter *copy,
                              const calyx_filter *empty, uint64_t keys) {
    const uint32_t can = info_of(f).can;
    calyx_filter *half = NULL, *merged = NULL;
    calyx_overlap overlap;
    uint64_t wrong = calyx_copy(empty, &merged, NULL) != CALYX_OK;
    wrong += calyx_merge(merged, f, NULL) != CALYX_OK;
    if (wrong) return wrong;
    wrong += lost_keys(merged, keys);
    if (can & CALYX_CAN_INTERSECT) {
        wrong += calyx_intersect(merged, f, NULL) != CALYX_OK;
        wrong += lost_keys(merged, keys);
        wrong += calyx_compare(f, copy, &overlap, NULL) != CALYX_OK;
    }
    if (can & CALYX_CAN_FOLD) {
        wrong += calyx_fold(f, 2, &half, NULL) != CALYX_OK;
        if (half) wrong += lost_keys(half, keys);
    }
    calyx_free(half);
    calyx_free(merged);
    return wrong;
}

/* Every call that takes a filter as const and reads all of it. Returns the
 * number of keys that a result lacks, and of errors. */
static uint64_t read_whole(const calyx_filter *f, const calyx_filter *empty,
                           uint64_t keys) {
    calyx_filter *copy = NULL, *decoded = NULL;
    uint64_t wrong = calyx_copy(f, &copy, NULL) != CALYX_OK;
    if (copy) wrong += lost_keys(copy, keys);
    if (copy && info_of(f).can & CALYX_CAN_MERGE)
        wrong += combine_whole(f, copy, empty, keys);
    const size_t size = (size_t)calyx_encoded_size(f);
    void *const bytes = malloc(size);
    wrong += calyx_encode(f, bytes, size, NULL) != CALYX_OK;
    wrong += calyx_decode(bytes, size, NULL, &decoded, NULL) != CALYX_OK;
    if (decoded) wrong += lost_keys(decoded, keys);
    free(bytes);
    calyx_free(copy);
    calyx_free(decoded);
    return wrong;
}

static void whole_filters_can_be_read_while_a_thread_adds(void **state) {
    (void)state;
    enum { BEFORE = 2000, EACH = 200000 / SHARE, ROUNDS = 5 };
    EACH_SHARED_KIND(kind) {
        const calyx_options want = {.kind = *kind,
                                    .bits = is_table(*kind) ? 1 << 22 : 1 << 17,
                                    .concurrent = true};
        calyx_filter *f = make_filter(want), *empty = make_filter(want);
        add_numbers(f, 0, BEFORE);
        pthread_barrier_t start;
        struct worker adds = {
            .f = f, .from = BEFORE, .to = EACH, .start = &start};
        assert_int_equal(pthread_barrier_init(&start, NULL, 2), 0);
        pthread_create(&adds.thread, NULL, adder, &adds);
        pthread_barrier_wait(&start);
        uint64_t wrong = 0;
        for (int i = 0; i < ROUNDS; i++) wrong += read_whole(f, empty, BEFORE);
        pthread_join(adds.thread, NULL);

        assert_int_equal(wrong + adds.lost + adds.failed, 0);
        pthread_barrier_destroy(&start);
        calyx_free(f);
        calyx_free(empty);
    }
}

static void *copier(void *argument) {
    struct worker *w = argument;
    pthread_barrier_wait(w->start);
    for (int round = 0; round < 20; round++) {
        calyx_filter *copy = NULL;
        w->failed += calyx_copy(w->f, &copy, NULL) != CALYX_OK;
        if (copy) w->lost += lost_keys(copy, w->to);
        calyx_free(copy);
    }
    return NULL;
}

static void a_filter_can_be_copied_while_it_grows(void **state) {
    (void)state;
    enum { BEFORE = 500, EACH = 100000 / SHARE };
    EACH_SHARED_KIND(kind) {
        calyx_filter *f = make_filter((calyx_options){
            .kind = *kind, .capacity = 1000, .growth = 2, .concurrent = true});
        add_numbers(f, 0, BEFORE);
        pthread_barrier_t start;
        struct worker adds = {
            .f = f, .from = BEFORE, .to = EACH, .start = &start};
        struct worker copies = {.f = f, .to = BEFORE, .start = &start};
        assert_int_equal(pthread_barrier_init(&start, NULL, 2), 0);
        pthread_create(&adds.thread, NULL, adder, &adds);
        pthread_create(&copies.thread, NULL, copier, &copies);
        pthread_join(adds.thread, NULL);
        pthread_join(copies.thread, NULL);

        assert_int_equal(adds.lost + adds.failed, 0);
        assert_int_equal(copies.lost + copies.failed, 0);
        pthread_barrier_destroy(&start);
        calyx_free(f);
    }
}

static void *filler(void *argument) {
    struct worker *w = argument;
    pthread_barrier_wait(w->start);
    for (uint64_t i = w->from; i < w->to; i++) {
        const calyx_status status = calyx_add_u64(w->f, i, NULL);
        if (status == CALYX_OK)
            w->lost += !calyx_has_u64(w->f, i);
        else
            w->failed += status != CALYX_FULL;
    }
    return NULL;
}

/* A strict filter may let in one too many for each other thread at its door. */
static void a_strict_filter_fills_up_while_threads_add(void **state) {
    (void)state;
    enum { CAPACITY = 5000 };
    EACH_SHARED_KIND(kind) {
        calyx_filter *f = make_filter((calyx_options){.kind = *kind,
                                                      .capacity = CAPACITY,
                                                      .strict = true,
                                                      .concurrent = true});
        pthread_barrier_t start;
        struct worker workers[2] = {
            {.f = f, .from = 0, .to = CAPACITY, .start = &start},
            {.f = f, .from = CAPACITY, .to = 2 * CAPACITY, .start = &start}};
        assert_int_equal(pthread_barrier_init(&start, NULL, 2), 0);

        for (int i = 0; i < 2; i++)
            pthread_create(&workers[i].thread, NULL, filler, &workers[i]);
        for (int i = 0; i < 2; i++) {
            pthread_join(workers[i].thread, NULL);
            assert_int_equal(workers[i].lost + workers[i].failed, 0);
        }

        /* A table stores false positives, too: 1 %. */
        const uint64_t more = is_table(*kind) ? CAPACITY / 25 : 1;
        assert_in_range(info_of(f).items, CAPACITY, CAPACITY + more);
        pthread_barrier_destroy(&start);
        calyx_free(f);
    }
}

enum { REPEATED = 2000 };

/* Add the same keys again and again. */
static void *repeater(void *argument) {
    struct worker *w = argument;
    uint64_t numbers[REPEATED];
    for (uint64_t i = 0; i < REPEATED; i++) numbers[i] = i;
    pthread_barrier_wait(w->start);
    while (!__atomic_load_n(&w->stop, __ATOMIC_RELAXED))
        w->failed +=
            calyx_add_many_u64(w->f, numbers, REPEATED, NULL, NULL) != CALYX_OK;
    return NULL;
}

/* A thread that adds many keys claims room for them, also for those that turn
 * out to be there; but never so much that others are refused long before. */
static void a_strict_filter_keeps_little_room_for_keys_it_has(void **state) {
    (void)state;
    /* 1/64 of the room, if the thread claims first and then has to wait */
    enum { CAPACITY = 20000, CLAIMED = (CAPACITY - REPEATED) / 64 };
    calyx_filter *f = make_filter((calyx_options){
        .capacity = CAPACITY, .strict = true, .concurrent = true});
    uint64_t next = 0, had = 0;
    bool fresh;
    for (; next < REPEATED; next++) {
        assert_int_equal(calyx_add_u64(f, next, &fresh), CALYX_OK);
        had += fresh;
    }
    pthread_barrier_t start;
    struct worker repeats = {.f = f, .start = &start};
    assert_int_equal(pthread_barrier_init(&start, NULL, 2), 0);
    pthread_create(&repeats.thread, NULL, repeater, &repeats);

    pthread_barrier_wait(&start);
    while (calyx_add_u64(f, next++, &fresh) == CALYX_OK) had += fresh;
    __atomic_store_n(&repeats.stop, true, __ATOMIC_RELAXED);
    pthread_join(repeats.thread, NULL);

    assert_in_range(had, CAPACITY - CLAIMED, CAPACITY);
    assert_int_equal(repeats.failed, 0);
    pthread_barrier_destroy(&start);
    calyx_free(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_with_keys_of_their_own_lose_none),
        cmocka_unit_test(threads_with_the_same_keys_lose_none),
        cmocka_unit_test(lookups_beside_additions_miss_no_key),
        cmocka_unit_test(many_threads_leave_the_bits_of_one),
        cmocka_unit_test(threads_that_meet_on_every_line_lose_no_key),
        cmocka_unit_test(two_threads_add_twenty_million_keys_and_lose_none),
        cmocka_unit_test(a_filter_grows_while_threads_add),
        cmocka_unit_test(a_filter_that_grows_slowly_keeps_its_rate),
        cmocka_unit_test(a_filter_can_be_described_while_threads_add),
        cmocka_unit_test(whole_filters_can_be_read_while_a_thread_adds),
        cmocka_unit_test(a_filter_can_be_copied_while_it_grows),
        cmocka_unit_test(a_strict_filter_fills_up_while_threads_add),
        cmocka_unit_test(a_strict_filter_keeps_little_room_for_keys_it_has),
    };
    return RUN_TESTS(tests);
}
