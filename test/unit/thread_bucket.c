/* The bucket kind with many threads: lookups while the table grows. */
#include <pthread.h>

#include "support.h"

enum { KEYS = SANITIZED ? 6000 : 60000, READERS = 3, WRITERS = 3 };

struct shared {
    calyx_filter *f;
    uint64_t added; /* numbers below this are there */
    uint64_t lost;
    bool done;
};

static uint64_t added_to(const struct shared *s) {
    return __atomic_load_n(&s->added, __ATOMIC_ACQUIRE);
}

static void *look_up(void *context) {
    struct shared *const s = context;
    uint64_t i = 0, lost = 0;
    while (!__atomic_load_n(&s->done, __ATOMIC_ACQUIRE)) {
        const uint64_t n = added_to(s);
        if (n == 0) continue;
        i = (i * UINT64_C(6364136223846793005) + 1442695040888963407);
        const uint64_t number = (i >> 20) % n;
        const uint64_t two[2] = {number, n - 1};
        lost += !calyx_has_u64(s->f, number);
        lost += 2 - calyx_has_many_u64(s->f, two, 2, NULL);
    }
    __atomic_fetch_add(&s->lost, lost, __ATOMIC_RELAXED);
    return NULL;
}

static calyx_filter *make_shared(void) {
    return make_filter((calyx_options){
        .kind = "bucket", .capacity = 100, .growth = 2, .concurrent = true});
}

static void lookups_miss_no_key_while_the_table_grows(void **state) {
    (void)state;
    struct shared s = {.f = make_shared()};
    pthread_t readers[READERS];
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, look_up, &s), 0);

    for (uint64_t i = 0; i < KEYS; i++) {
        assert_ok(calyx_add_u64(s.f, i, NULL));
        __atomic_store_n(&s.added, i + 1, __ATOMIC_RELEASE);
        const uint64_t other = KEYS + i / 2; /* moves entries of others */
        if (i % 2 == 0) assert_ok(calyx_add_u64(s.f, other, NULL));
        if (i % 2) assert_ok(calyx_remove(s.f, &other, sizeof other, NULL));
    }
    __atomic_store_n(&s.done, true, __ATOMIC_RELEASE);
    for (int i = 0; i < READERS; i++) pthread_join(readers[i], NULL);

    assert_int_equal(s.lost, 0);
    assert_has_numbers(s.f, 0, KEYS);
    assert_int_equal(info_of(s.f).items, KEYS);
    calyx_free(s.f);
}

struct writer_part {
    calyx_filter *f;
    uint64_t from;
};

static void *add_part(void *context) {
    const struct writer_part *const w = context;
    for (uint64_t i = 0; i < KEYS / WRITERS; i += 50) {
        uint64_t numbers[50];
        for (uint64_t j = 0; j < 50; j++) numbers[j] = w->from + i + j;
        calyx_add_many_u64(w->f, numbers, 50, NULL, NULL);
    }
    return NULL;
}

static void writers_take_turns_and_lose_nothing(void **state) {
    (void)state;
    struct shared s = {.f = make_shared()};
    struct writer_part parts[WRITERS];
    pthread_t writers[WRITERS];
    for (uint64_t i = 0; i < WRITERS; i++) {
        parts[i] = (struct writer_part){s.f, i * (KEYS / WRITERS)};
        assert_int_equal(pthread_create(&writers[i], NULL, add_part, &parts[i]),
                         0);
    }
    /* Copies and bytes of a table that grows meanwhile are whole. */
    for (int i = 0; i < 5; i++) {
        calyx_filter *copy = NULL;
        assert_ok(calyx_copy(s.f, &copy, NULL));
        assert_true(info_of(copy).items <= KEYS);
        calyx_free(copy);
        assert_true(info_of(s.f).items <= KEYS);
    }
    for (int i = 0; i < WRITERS; i++) pthread_join(writers[i], NULL);

    assert_has_numbers(s.f, 0, KEYS / WRITERS * WRITERS);
    assert_int_equal(info_of(s.f).items, KEYS / WRITERS * WRITERS);
    calyx_free(s.f);
}

/* The function that gets the bytes has the table for itself. */
static bool put_and_change(void *context, const void *bytes, size_t size) {
    calyx_filter *const f = context;
    const uint64_t key = 12345678;
    bool found = true;
    calyx_info info;
    (void)bytes, (void)size;
    assert_int_equal(calyx_add_u64(f, key, NULL), CALYX_CANNOT);
    assert_int_equal(calyx_add_many_u64(f, &key, 1, NULL, NULL), CALYX_CANNOT);
    assert_int_equal(calyx_remove_u64(f, 1, &found), CALYX_CANNOT);
    assert_int_equal(calyx_remove_many_u64(f, &key, 1, NULL, NULL),
                     CALYX_CANNOT);
    assert_true(calyx_has_u64(f, 1));
    calyx_describe(f, &info);
    assert_int_equal(info.items, 1000);
    return true;
}

static void a_table_cannot_change_while_its_own_thread_writes_it(void **state) {
    (void)state;
    calyx_filter *f = make_filter((calyx_options){
        .kind = "bucket", .capacity = 100, .growth = 2, .concurrent = true});
    add_numbers(f, 0, 1000);
    assert_ok(calyx_write(f, put_and_change, f, NULL));
    add_numbers(f, 1000, 1100);
    assert_has_numbers(f, 0, 1100);
    calyx_free(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lookups_miss_no_key_while_the_table_grows),
        cmocka_unit_test(writers_take_turns_and_lose_nothing),
        cmocka_unit_test(a_table_cannot_change_while_its_own_thread_writes_it),
    };
    return RUN_TESTS(tests);
}
