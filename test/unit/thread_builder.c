/*
 * Threads that each fill a builder of their own, builders that are merged, and
 * a filter that several threads make of them: the bytes are those that one
 * thread makes.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"
#include "support_files.h"

enum { THREADS = 4, KEYS = SANITIZED ? 40000 : 200000, TIGHT = 64 << 10 };

/* cmocka's assertions belong to the main thread. */
struct filler {
    pthread_t thread;
    calyx_builder *builder;
    uint64_t from, to;
    calyx_status status;
};

static void *fill(void *argument) {
    struct filler *const w = argument;
    for (uint64_t i = w->from; i < w->to && w->status == CALYX_OK; i++)
        w->status = calyx_builder_add(w->builder, &i, sizeof i, NULL);
    return NULL;
}

static calyx_builder *make_builder(const char *kind, uint32_t threads,
                                   bool tight) {
    calyx_builder *b = NULL;
    const calyx_builder_options want = {.filter = {.kind = kind},
                                        .folder = folder,
                                        .memory_bytes = tight ? TIGHT : 0,
                                        .threads = threads};
    assert_ok(calyx_builder_new(&want, &b, NULL));
    return b;
}

/* Threads add all numbers, some of them twice; then all builders are one. */
static calyx_builder *filled_by_threads(const char *kind, bool tight) {
    struct filler fillers[THREADS];
    for (uint64_t i = 0; i < THREADS; i++) {
        const uint64_t share = KEYS / THREADS, end = (i + 1) * share + 100;
        fillers[i] =
            (struct filler){.builder = make_builder(kind, THREADS, tight),
                            .from = i * share,
                            .to = end < KEYS ? end : KEYS};
        pthread_create(&fillers[i].thread, NULL, fill, &fillers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(fillers[i].thread, NULL);
        assert_ok(fillers[i].status);
        if (i == 0) continue;
        assert_ok(
            calyx_builder_merge(fillers[0].builder, fillers[i].builder, NULL));
        calyx_builder_free(fillers[i].builder);
    }
    return fillers[0].builder;
}

static void *encoded(const calyx_filter *f, size_t *size) {
    *size = (size_t)calyx_encoded_size(f);
    void *const bytes = malloc(*size);
    assert_ok(calyx_encode(f, bytes, *size, NULL));
    return bytes;
}

static void threads_build_the_bytes_that_one_thread_builds(void **state) {
    (void)state;
    EACH_BUILT_KIND(kind) {
        if (calyx_kind_can(*kind) & CALYX_CAN_COUNT &&
            !(calyx_kind_can(*kind) & CALYX_CAN_GROW_IN_PLACE))
            continue; /* by copies */
        calyx_builder *const alone = make_builder(*kind, 1, false);
        for (uint64_t i = 0; i < KEYS; i++)
            assert_ok(calyx_builder_add(alone, &i, sizeof i, NULL));
        calyx_filter *expected, *f;
        assert_ok(calyx_builder_finish(alone, &expected, NULL));
        calyx_builder_free(alone);
        size_t size, same;
        void *const bytes = encoded(expected, &size);
        for (int tight = 0; tight < 2; tight++) {
            calyx_builder *const b = filled_by_threads(*kind, tight);
            assert_ok(calyx_builder_finish(b, &f, NULL));
            calyx_builder_free(b);
            assert_has_numbers(f, 0, KEYS);
            void *const others = encoded(f, &same);
            assert_int_equal(size, same);
            assert_memory_equal(bytes, others, size);
            free(others);
            calyx_free(f);
        }
        free(bytes);
        calyx_free(expected);
    }
}

/* A thread that fails while others wait for their turn ends all of them. */
static void a_failure_ends_all_threads(void **state) {
    (void)state;
    calyx_builder *b;
    const calyx_builder_options want = {
        .filter = {.capacity = KEYS / 10, .strict = true},
        .folder = folder,
        .memory_bytes = TIGHT,
        .threads = THREADS};
    for (int i = 0; i < 5; i++) {
        assert_ok(calyx_builder_new(&want, &b, NULL));
        for (uint64_t j = 0; j < KEYS; j++)
            assert_ok(calyx_builder_add(b, &j, sizeof j, NULL));
        calyx_filter *f = NULL;
        calyx_error why = {0};
        assert_int_equal(calyx_builder_finish(b, &f, &why), CALYX_FULL);
        assert_int_equal(why.status, CALYX_FULL);
        assert_null(f);
        calyx_builder_free(b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FOLDER(threads_build_the_bytes_that_one_thread_builds),
        IN_FOLDER(a_failure_ends_all_threads),
    };
    return RUN_TESTS(tests);
}
