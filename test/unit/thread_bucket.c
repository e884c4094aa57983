/* Tables of fingerprints with many threads: lookups while they grow. */
#include <pthread.h>

#include "support.h"

enum { KEYS = SANITIZED ? 6000 : 60000, READERS = 3, WRITERS = 3, MANY = 64 };

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
        uint64_t many[MANY];
        for (uint64_t j = 0; j < MANY; j++) many[j] = (number + j * j) % n;
        lost += !calyx_has_u64(s->f, number);
        lost +=
            2 - calyx_has_many_u64(s->f, (uint64_t[]){number, n - 1}, 2, NULL);
        lost += MANY - calyx_has_many_u64(s->f, many, MANY, NULL);
    }
    __atomic_fetch_add(&s->lost, lost, __ATOMIC_RELAXED);
    return NULL;
}

#define EACH_TABLE(kind) EACH_KIND(kind) if (is_table(*kind))

static const uint64_t OTHERS_FROM = UINT64_C(1) << 40;

static calyx_filter *make_shared(const char *kind, uint64_t capacity) {
    return make_filter((calyx_options){.kind = kind,
                                       .capacity = capacity ? capacity : 100,
                                       .growth = 2,
                                       .concurrent = true});
}

/* Where additions count, all of n; else a key may have been found before. */
static void assert_items(const calyx_filter *f, uint64_t n) {
    const calyx_info info = info_of(f);
    assert_in_range(info.items, counts_additions(info.kind) ? n : n - n / 50,
                    n);
}

/* Move entries of other keys. */
static void change(calyx_filter *f, uint64_t i, bool removes) {
    const uint64_t other = KEYS + i / 2;
    if (i % 2 == 0)
        assert_ok(calyx_add_u64(f, other, NULL));
    else if (removes)
        assert_ok(calyx_remove_u64(f, other, NULL));
    else
        assert_ok(calyx_add_u64(f, i / 3, NULL)); /* it is there */
}

/* `others` are there before. */
static void run_lookups_while_it_grows(const char *kind, uint64_t others) {
    const bool removes = calyx_kind_can(kind) & CALYX_CAN_REMOVE;
    struct shared s = {.f = make_shared(kind, others)};
    pthread_t readers[READERS];
    add_numbers(s.f, OTHERS_FROM, OTHERS_FROM + others);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, look_up, &s), 0);

    for (uint64_t i = 0; i < KEYS; i++) {
        assert_ok(calyx_add_u64(s.f, i, NULL));
        __atomic_store_n(&s.added, i + 1, __ATOMIC_RELEASE);
        change(s.f, i, removes);
    }
    __atomic_store_n(&s.done, true, __ATOMIC_RELEASE);
    for (int i = 0; i < READERS; i++) pthread_join(readers[i], NULL);

    assert_int_equal(s.lost, 0);
    assert_has_numbers(s.f, 0, KEYS);
    assert_items(s.f, others + (removes ? KEYS : KEYS + KEYS / 2));
    calyx_free(s.f);
}

static void lookups_miss_no_key_while_the_table_grows(void **state) {
    (void)state;
    EACH_TABLE(kind) run_lookups_while_it_grows(*kind, 0);
}

/* Its segments have 64 KiB and more, and lie in a row. */
static void lookups_miss_no_key_while_a_large_table_grows(void **state) {
    (void)state;
    EACH_TABLE(kind) run_lookups_while_it_grows(*kind, 240000);
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

static void run_writers(const char *kind) {
    struct shared s = {.f = make_shared(kind, 0)};
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
    assert_items(s.f, KEYS / WRITERS * WRITERS);
    calyx_free(s.f);
}

static void writers_take_turns_and_lose_nothing(void **state) {
    (void)state;
    EACH_TABLE(kind) run_writers(*kind);
}

/* All add the same keys: each is there once, and fresh for one of them. */
static void *add_all(void *context) {
    struct shared *const s = context;
    uint64_t fresh = 0;
    for (uint64_t i = 0; i < KEYS; i += 50) {
        uint64_t numbers[50];
        bool is_fresh[50] = {false};
        for (uint64_t j = 0; j < 50; j++) numbers[j] = i + j;
        calyx_add_many_u64(s->f, numbers, 50, is_fresh, NULL);
        for (int j = 0; j < 50; j++) fresh += is_fresh[j];
        s->lost += calyx_has_many_u64(s->f, numbers, 50, NULL) != 50;
    }
    s->added = fresh;
    return NULL;
}

static void writers_of_the_same_keys_take_room_for_one(void **state) {
    (void)state;
    EACH_TABLE(kind) {
        if (counts_additions(*kind)) continue;
        calyx_filter *f = make_shared(*kind, 0);
        struct shared each[WRITERS];
        pthread_t writers[WRITERS];
        uint64_t fresh = 0;
        for (int i = 0; i < WRITERS; i++) {
            each[i] = (struct shared){.f = f};
            assert_int_equal(
                pthread_create(&writers[i], NULL, add_all, &each[i]), 0);
        }
        for (int i = 0; i < WRITERS; i++) {
            pthread_join(writers[i], NULL);
            assert_int_equal(each[i].lost, 0);
            fresh += each[i].added;
        }
        assert_int_equal(info_of(f).items, fresh);
        assert_items(f, KEYS);
        assert_has_numbers(f, 0, KEYS);
        calyx_free(f);
    }
}

/* The function that gets the bytes has the table for itself. */
static bool put_and_change(void *context, const void *bytes, size_t size) {
    calyx_filter *const f = context;
    const uint64_t key = 12345678;
    bool found = true;
    (void)bytes, (void)size;
    assert_int_equal(calyx_add_u64(f, key, NULL), CALYX_CANNOT);
    assert_int_equal(calyx_add_many_u64(f, &key, 1, NULL, NULL), CALYX_CANNOT);
    assert_int_equal(calyx_remove_u64(f, 1, &found), CALYX_CANNOT);
    assert_int_equal(calyx_remove_many_u64(f, &key, 1, NULL, NULL),
                     CALYX_CANNOT);
    assert_true(calyx_has_u64(f, 1));
    assert_items(f, 1000);
    return true;
}

static void a_table_cannot_change_while_its_own_thread_writes_it(void **state) {
    (void)state;
    EACH_TABLE(kind) {
        calyx_filter *f = make_shared(*kind, 0);
        add_numbers(f, 0, 1000);
        assert_ok(calyx_write(f, put_and_change, f, NULL));
        add_numbers(f, 1000, 1100);
        assert_has_numbers(f, 0, 1100);
        calyx_free(f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lookups_miss_no_key_while_the_table_grows),
        cmocka_unit_test(lookups_miss_no_key_while_a_large_table_grows),
        cmocka_unit_test(writers_take_turns_and_lose_nothing),
        cmocka_unit_test(writers_of_the_same_keys_take_room_for_one),
        cmocka_unit_test(a_table_cannot_change_while_its_own_thread_writes_it),
    };
    return RUN_TESTS(tests);
}
