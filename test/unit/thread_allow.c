/*
 * An allow list beside threads that add the keys on it and threads that look
 * them up: whoever has added a key finds it at once, and nobody else is
 * disturbed.
 */
#include <pthread.h>

#include "support.h"

enum { THREADS = 4, ADDED = 2000, LISTED = 2000 };

struct worker {
    pthread_t thread;
    pthread_barrier_t *start;
    calyx_filter *f;
    uint64_t first; /* of the numbers it adds: every THREADS-th */
    bool batched;
    uint64_t lost, stale, failed;
};

/* Numbers up to ADDED are in the filter from the start, the next ones are on
 * its list. */
static void *add_listed(void *argument) {
    struct worker *const w = argument;
    pthread_barrier_wait(w->start);
    for (uint64_t i = w->first; i < ADDED + LISTED; i += THREADS) {
        bool fresh = false;
        w->failed += (w->batched ? calyx_add_many_u64(w->f, &i, 1, &fresh, NULL)
                                 : calyx_add_u64(w->f, i, &fresh)) != CALYX_OK;
        w->failed += !fresh; /* no other thread adds it */
        w->lost += !calyx_has_u64(w->f, i);
        w->lost += calyx_has_many_u64(w->f, &i, 1, NULL) != 1;
    }
    return NULL;
}

/* Keys that were added before are there all the time; and a key that has left
 * the list does not come back. */
static void *look_up(void *argument) {
    struct worker *const w = argument;
    bool seen[LISTED] = {false};
    pthread_barrier_wait(w->start);
    for (uint64_t round = 0; round < 5; round++)
        for (uint64_t i = 0; i < ADDED + LISTED; i++) {
            const bool found = calyx_has_u64(w->f, i);
            if (i < ADDED)
                w->lost += !found;
            else if (found)
                seen[i - ADDED] = true;
            else
                w->stale += seen[i - ADDED];
        }
    return NULL;
}

static void threads_that_add_listed_keys_find_them(void **state) {
    (void)state;
    EACH_KIND(kind) {
        if (!(calyx_kind_can(*kind) & CALYX_CAN_SHARE)) continue;
        calyx_filter *const f = make_filter((calyx_options){
            .kind = *kind,
            .capacity = is_table(*kind) ? ADDED + LISTED : ADDED,
            .fpr = 0.3,
            .concurrent = true});
        add_numbers(f, 0, ADDED);
        for (uint64_t i = ADDED; i < ADDED + LISTED; i++) {
            uint8_t key[8];
            for (int b = 0; b < 8; b++) key[b] = (uint8_t)(i >> 8 * b);
            assert_ok(calyx_allow(f, key, sizeof key, NULL, NULL));
        }
        const uint64_t items = info_of(f).items;
        struct worker workers[2 * THREADS] = {0};
        pthread_barrier_t start;
        pthread_barrier_init(&start, NULL, 2 * THREADS);
        for (uint64_t i = 0; i < 2 * THREADS; i++) {
            workers[i] = (struct worker){
                .start = &start, .f = f, .first = ADDED + i, .batched = i % 2};
            assert_int_equal(pthread_create(&workers[i].thread, NULL,
                                            i < THREADS ? add_listed : look_up,
                                            &workers[i]),
                             0);
        }
        for (int i = 0; i < 2 * THREADS; i++)
            pthread_join(workers[i].thread, NULL);
        pthread_barrier_destroy(&start);
        for (int i = 0; i < 2 * THREADS; i++) {
            assert_int_equal(workers[i].failed, 0);
            assert_int_equal(workers[i].lost, 0);
            assert_int_equal(workers[i].stale, 0);
        }
        assert_int_equal(info_of(f).allowed, 0);
        assert_int_equal(info_of(f).items, items + LISTED);
        assert_has_numbers(f, 0, ADDED + LISTED);
        calyx_free(f);
    }
}

/* Writing beside adders: each file is sound, and has no key on its list that
 * was added before it was written. */
static void files_written_beside_adders_are_sound(void **state) {
    (void)state;
    static uint8_t bytes[1 << 17];
    calyx_filter *const f = make_filter(
        (calyx_options){.capacity = ADDED + LISTED, .concurrent = true});
    for (uint64_t i = ADDED; i < ADDED + LISTED; i++) {
        uint8_t key[8];
        for (int b = 0; b < 8; b++) key[b] = (uint8_t)(i >> 8 * b);
        assert_ok(calyx_allow(f, key, sizeof key, NULL, NULL));
    }
    struct worker workers[THREADS];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, THREADS + 1);
    for (uint64_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){
            .start = &start, .f = f, .first = ADDED + i, .batched = i % 2};
        assert_int_equal(
            pthread_create(&workers[i].thread, NULL, add_listed, &workers[i]),
            0);
    }
    pthread_barrier_wait(&start);
    for (uint64_t left = LISTED, before; left > 0;) {
        calyx_filter *g;
        before = info_of(f).allowed;
        const size_t size = (size_t)calyx_encoded_size(f);
        assert_in_range(size, 1, sizeof bytes);
        const calyx_status status = calyx_encode(f, bytes, size, NULL);
        if (status == CALYX_BAD_ARGUMENT) continue; /* it is shorter by now */
        assert_ok(status);
        assert_ok(calyx_decode(bytes, size, NULL, &g, NULL));
        left = info_of(g).allowed;
        assert_true(left <= before);
        calyx_free(g);
        assert_ok(calyx_copy(f, &g, NULL));
        assert_true(info_of(g).allowed <= before);
        calyx_free(g);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        assert_int_equal(workers[i].lost + workers[i].failed, 0);
    }
    pthread_barrier_destroy(&start);
    assert_has_numbers(f, ADDED, ADDED + LISTED);
    calyx_free(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_that_add_listed_keys_find_them),
        cmocka_unit_test(files_written_beside_adders_are_sound),
    };
    return RUN_TESTS(tests);
}
