/*
 * Many threads use one mapped file: they compare ranges with their checksums,
 * mark them and set bits in them at the same time. None sees damage, and none
 * forgets a key.
 */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/ranges.h"
#include "support.h"

enum { THREADS = 4, OLD = 2000, EACH = 1500 };

static char path[PATH_MAX];

static calyx_filter *mapped(calyx_access access, const char *kind) {
    calyx_filter *f =
        make_filter((calyx_options){.kind = kind,
                                    .bits = UINT64_C(12) << 19, /* 12 ranges */
                                    .capacity = 100000});
    add_numbers(f, 0, OLD);
    assert_ok(calyx_save(f, path, NULL));
    calyx_free(f);
    const calyx_open_options how = {.concurrent = access == CALYX_WRITE};
    f = NULL;
    assert_ok(calyx_map(path, access, &how, &f, NULL));
    return f;
}

struct work {
    pthread_t thread;
    calyx_filter *f;
    uint64_t from;
    size_t missing;
    calyx_status status;
};

static void *look(void *context) {
    struct work *w = context;
    for (uint64_t i = 0; i < OLD; i++)
        w->missing += !calyx_has_u64(w->f, (i + w->from) % OLD);
    w->status = calyx_health(w->f, NULL);
    return NULL;
}

/* One thread adds one by one, the next many at once. */
static void *add_and_look(void *context) {
    struct work *w = context;
    uint64_t numbers[EACH];
    for (uint64_t i = 0; i < EACH; i++) numbers[i] = w->from + i;
    if (w->from / EACH % 2) {
        w->status = calyx_add_many_u64(w->f, numbers, 7, NULL, NULL);
        if (w->status == CALYX_OK)
            w->status = calyx_add_many_u64(w->f, numbers, EACH, NULL, NULL);
    } else {
        for (size_t i = 0; i < EACH && w->status == CALYX_OK; i++)
            w->status = calyx_add_u64(w->f, numbers[i], NULL);
    }
    w->missing = EACH - calyx_has_many_u64(w->f, numbers, EACH, NULL);
    if (w->status == CALYX_OK) look(w);
    return NULL;
}

static void run(calyx_filter *f, void *(*does)(void *)) {
    struct work work[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        work[i] = (struct work){.f = f, .from = OLD + i * EACH};
        assert_int_equal(pthread_create(&work[i].thread, NULL, does, &work[i]),
                         0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(work[i].thread, NULL);
        assert_ok(work[i].status);
        assert_int_equal(work[i].missing, 0);
    }
}

static void threads_that_read_compare_each_range_once(void **state) {
    (void)state;
    EACH_KIND(kind) {
        calyx_filter *f = mapped(CALYX_READ, *kind);
        run(f, look);
        const struct lent_bytes *r = f->lent;
        const uint64_t bits = bits_bytes(f->kind, &f->newest->shape);
        const uint64_t all = number_of_ranges(image_of(f));
        assert_int_equal(r->damaged, 0);
        assert_in_range(r->unverified, 0, all - bits / RANGE_BYTES);
        calyx_free(f);
    }
}

static void threads_that_add_mark_each_range_once(void **state) {
    (void)state;
    EACH_KIND(kind) {
        if (!is_bits_alone(*kind)) continue;
        calyx_filter *f = mapped(CALYX_WRITE, *kind);
        run(f, add_and_look);
        const struct image *image = image_of(f);
        assert_int_equal(image->marked, number_of_ranges(image));
        assert_int_equal(f->lent->unmarked, 0);
        assert_int_equal(f->lent->unverified, 0);
        assert_ok(calyx_close(f, NULL));
        const calyx_open_options whole = {.verify = CALYX_VERIFY_WHOLE};
        assert_ok(calyx_map(path, CALYX_READ, &whole, &f, NULL));
        for (uint64_t i = 0; i < OLD + THREADS * EACH; i++)
            assert_true(calyx_has_u64(f, i));
        assert_ok(calyx_verify(f, NULL));
        calyx_free(f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_that_read_compare_each_range_once),
        cmocka_unit_test(threads_that_add_mark_each_range_once),
    };
    snprintf(path, sizeof path, "%s/calyx_thread_ranges_%ld",
             temporary_or("/tmp"), (long)getpid());
    const int failed = RUN_TESTS(tests);
    unlink(path);
    return failed;
}
