/*
 * A filter that is replaced while it is queried: readers miss no key, the old
 * one lives as long as anyone has it and no longer, and a file that cannot be
 * used replaces nothing.
 */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "filter/filter.h"
#include "support.h"
#include "support_files.h"

enum { BLOCKS = 3 }; /* of a filter: itself, a part, its body */

/* ---- Two readers and a thousand swaps ------------------------------------ */

enum { READERS = 2, SWAPS = 1000, KEYS = 64 };

/* Every filter has these keys, and one that no other has. */
static calyx_filter *make_edition(uint64_t edition, const calyx_memory *hooks) {
    calyx_filter *f =
        make_filter((calyx_options){.capacity = 200, .memory = hooks});
    add_numbers(f, 0, KEYS);
    assert_ok(calyx_add_u64(f, KEYS + edition, NULL));
    return f;
}

struct reader {
    calyx_live *live;
    uint64_t asked, missed;
    uint64_t *stop;
    pthread_t thread;
};

static void *keep_asking(void *context) {
    struct reader *reader = context;
    while (!__atomic_load_n(reader->stop, __ATOMIC_RELAXED)) {
        const calyx_filter *f = calyx_live_acquire(reader->live);
        for (uint64_t i = 0; i < KEYS; i++)
            reader->missed += !calyx_has_u64(f, i);
        calyx_live_release(reader->live, f);
        __atomic_add_fetch(&reader->asked, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* Returns when each has asked at least once, however busy the machine is. */
static void start(struct reader *readers, calyx_live *live, uint64_t *stop) {
    for (int i = 0; i < READERS; i++) {
        readers[i] = (struct reader){.live = live, .stop = stop};
        assert_int_equal(
            pthread_create(&readers[i].thread, NULL, keep_asking, &readers[i]),
            0);
    }
    for (int i = 0; i < READERS; i++)
        while (!__atomic_load_n(&readers[i].asked, __ATOMIC_RELAXED))
            sched_yield();
}

static void finish(struct reader *readers, uint64_t *stop) {
    __atomic_store_n(stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < READERS; i++) {
        pthread_join(readers[i].thread, NULL);
        assert_int_equal(readers[i].missed, 0);
    }
}

static void readers_miss_no_key_while_filters_are_swapped(void **state) {
    (void)state;
    struct books books = {0};
    const calyx_memory hooks = hooks_of(&books);
    calyx_live *live = NULL;
    assert_ok(calyx_live_new(make_edition(0, &hooks), &live, NULL));
    struct reader readers[READERS];
    uint64_t stop = 0;
    start(readers, live, &stop);
    for (uint64_t i = 1; i <= SWAPS; i++) {
        calyx_filter *next = make_edition(i, &hooks);
        assert_ok(calyx_live_swap(live, next, NULL));
        const calyx_filter *now = calyx_live_acquire(live);
        assert_true(calyx_has_u64(now, KEYS + i)); /* it is the new one */
        calyx_live_release(live, now);
    }
    finish(readers, &stop);
    assert_int_equal(blocks_of(&books), BLOCKS + 1); /* the rest is gone */
    calyx_live_free(live);
    assert_int_equal(blocks_of(&books), 0);
}

struct swapper {
    calyx_live *live;
    const calyx_memory *hooks;
    pthread_t thread;
};

static void *keep_swapping(void *context) {
    const struct swapper *swapper = context;
    for (uint64_t i = 0; i < SWAPS / 2; i++) {
        calyx_filter *next = make_edition(i, swapper->hooks);
        while (calyx_live_swap(swapper->live, next, NULL) != CALYX_OK) continue;
    }
    return NULL;
}

static void two_threads_may_swap(void **state) {
    (void)state;
    struct books books = {0};
    const calyx_memory hooks = hooks_of(&books);
    calyx_live *live = NULL;
    assert_ok(calyx_live_new(make_edition(0, &hooks), &live, NULL));
    struct reader readers[READERS];
    struct swapper swappers[2] = {{live, &hooks, 0}, {live, &hooks, 0}};
    uint64_t stop = 0;
    start(readers, live, &stop);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&swappers[i].thread, NULL,
                                        keep_swapping, &swappers[i]),
                         0);
    for (int i = 0; i < 2; i++) pthread_join(swappers[i].thread, NULL);
    finish(readers, &stop);
    assert_int_equal(blocks_of(&books), BLOCKS + 1);
    calyx_live_free(live);
    assert_int_equal(blocks_of(&books), 0);
}

/* ---- How long a filter lives --------------------------------------------- */

static void a_taken_filter_outlives_the_swap(void **state) {
    (void)state;
    struct books books = {0};
    const calyx_memory hooks = hooks_of(&books);
    calyx_live *live = NULL;
    assert_ok(calyx_live_new(make_edition(0, &hooks), &live, NULL));
    const calyx_filter *first = calyx_live_acquire(live);
    const calyx_filter *again = calyx_live_acquire(live);
    assert_ptr_equal(first, again);
    for (uint64_t i = 1; i <= 3; i++)
        assert_ok(calyx_live_swap(live, make_edition(i, &hooks), NULL));

    assert_true(calyx_has_u64(first, KEYS)); /* the last of its kind */
    assert_int_equal(blocks_of(&books), 1 + 2 * BLOCKS);
    calyx_live_release(live, first);
    assert_true(calyx_has_u64(again, KEYS));
    assert_int_equal(blocks_of(&books), 1 + 2 * BLOCKS);
    calyx_live_release(live, again);
    assert_int_equal(blocks_of(&books), 1 + BLOCKS); /* at once */

    const calyx_filter *last = calyx_live_acquire(live);
    assert_true(calyx_has_u64(last, KEYS + 3));
    calyx_live_release(live, last);
    calyx_live_free(live);
    assert_int_equal(blocks_of(&books), 0);
}

static void a_filter_that_nobody_has_is_freed_by_the_swap(void **state) {
    (void)state;
    struct books books = {0};
    const calyx_memory hooks = hooks_of(&books);
    calyx_live *live = NULL;
    assert_ok(calyx_live_new(make_edition(0, &hooks), &live, NULL));
    for (int i = 0; i < 10; i++)
        calyx_live_release(live, calyx_live_acquire(live));
    assert_ok(calyx_live_swap(live, make_edition(1, &hooks), NULL));
    assert_int_equal(blocks_of(&books), 1 + BLOCKS);
    assert_ok(calyx_live_swap(live, make_edition(2, &hooks), NULL));
    assert_int_equal(blocks_of(&books), 1 + BLOCKS);
    calyx_live_free(live);
    assert_int_equal(blocks_of(&books), 0);
}

static void old_filters_that_are_held_can_be_too_many(void **state) {
    (void)state;
    enum { OLD = 255 };
    struct books books = {0};
    const calyx_memory hooks = hooks_of(&books);
    calyx_live *live = NULL;
    assert_ok(calyx_live_new(make_edition(0, &hooks), &live, NULL));
    const calyx_filter *held[OLD];
    for (uint64_t i = 0; i < OLD; i++) {
        held[i] = calyx_live_acquire(live);
        assert_ok(calyx_live_swap(live, make_edition(i + 1, &hooks), NULL));
    }
    calyx_filter *next = make_edition(OLD + 1, &hooks);
    calyx_error why;
    assert_int_equal(calyx_live_swap(live, next, &why), CALYX_FULL);
    assert_non_null(strstr(why.text, "255"));
    for (uint64_t i = 0; i < OLD; i++)
        assert_true(calyx_has_u64(held[i], KEYS + i));
    const calyx_filter *now = calyx_live_acquire(live);
    assert_true(calyx_has_u64(now, KEYS + OLD)); /* all is as it was */
    calyx_live_release(live, now);

    calyx_live_release(live, held[100]);
    assert_ok(calyx_live_swap(live, next, NULL)); /* it was still ours */
    for (int i = 0; i < OLD; i++)
        if (i != 100) calyx_live_release(live, held[i]);
    assert_int_equal(blocks_of(&books), 1 + BLOCKS);
    calyx_live_free(live);
    assert_int_equal(blocks_of(&books), 0);
}

static void without_memory_the_filter_stays_with_its_owner(void **state) {
    (void)state;
    struct books books = {0};
    const calyx_memory hooks = hooks_of(&books);
    calyx_filter *f = make_edition(0, &hooks);
    calyx_live *live = NULL;
    calyx_error why;
    books.fails_at = books.calls + 1;
    assert_int_equal(calyx_live_new(f, &live, &why), CALYX_NO_MEMORY);
    assert_null(live);
    assert_non_null(strstr(why.text, "memory"));
    assert_true(calyx_has_u64(f, 1));
    calyx_free(f);
    assert_int_equal(blocks_of(&books), 0);
    calyx_live_free(NULL);
}

/* ---- Writers, and rebuilds that lose no key ------------------------------ */

enum { WRITERS = 2, REBUILDS = SANITIZED ? 5 : 20, PORTION = 3000 };

static const calyx_options growing = {
    .capacity = 100, .growth = 2, .concurrent = true, .seeded = true};

static calyx_live *make_live(const calyx_memory *hooks) {
    calyx_live *live = NULL;
    calyx_options want = growing;
    want.memory = hooks;
    assert_ok(calyx_live_new(make_filter(want), &live, NULL));
    return live;
}

static calyx_status add_live(calyx_live *live, uint64_t number) {
    return calyx_live_add(live, &number, sizeof number, NULL, NULL);
}

static bool live_has(calyx_live *live, uint64_t number) {
    const calyx_filter *f = calyx_live_acquire(live);
    const bool has = calyx_has(f, &number, sizeof number);
    calyx_live_release(live, f);
    return has;
}

struct writer {
    calyx_live *live;
    uint64_t from, added, missed;
    uint64_t allowed; /* a portion more for each rebuild */
    uint64_t *stop;
    pthread_t thread;
};

/* What was added is there at once, and later. */
static void *keep_writing(void *context) {
    struct writer *writer = context;
    while (!__atomic_load_n(writer->stop, __ATOMIC_RELAXED)) {
        const uint64_t n = writer->added;
        if (n == __atomic_load_n(&writer->allowed, __ATOMIC_RELAXED)) {
            sched_yield();
            continue;
        }
        if (add_live(writer->live, writer->from + n) != CALYX_OK) abort();
        __atomic_store_n(&writer->added, n + 1, __ATOMIC_RELEASE);
        writer->missed += !live_has(writer->live, writer->from + n);
        writer->missed += !live_has(writer->live, writer->from + n / 2);
    }
    return NULL;
}

/* The list is what was there when it was read. A part of each portion comes
 * before the rebuild is finished, the rest beside that and after it. */
static void rebuild(calyx_live *live, struct writer *writers) {
    uint64_t token = 0;
    assert_ok(calyx_live_begin(live, 0, &token, NULL));
    calyx_filter *next = make_filter(growing);
    for (int i = 0; i < WRITERS; i++) {
        const uint64_t listed =
            __atomic_load_n(&writers[i].added, __ATOMIC_ACQUIRE);
        for (uint64_t n = 0; n < listed; n++) {
            const uint64_t key = writers[i].from + n;
            assert_ok(calyx_add(next, &key, sizeof key, NULL));
        }
        __atomic_add_fetch(&writers[i].allowed, PORTION, __ATOMIC_RELAXED);
        while (__atomic_load_n(&writers[i].added, __ATOMIC_RELAXED) <
               listed + PORTION / 3)
            sched_yield();
    }
    assert_ok(calyx_live_finish(live, token, next, NULL));
}

static void no_key_is_lost_by_rebuilds_beside_writers(void **state) {
    (void)state;
    calyx_live *live = make_live(NULL);
    struct writer writers[WRITERS];
    uint64_t stop = 0;
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){
            .live = live, .from = (uint64_t)i << 32, .stop = &stop};
        assert_int_equal(
            pthread_create(&writers[i].thread, NULL, keep_writing, &writers[i]),
            0);
    }
    for (int i = 0; i < REBUILDS; i++) rebuild(live, writers);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < WRITERS; i++) {
        pthread_join(writers[i].thread, NULL);
        assert_int_equal(writers[i].missed, 0);
        for (uint64_t n = 0; n < writers[i].added; n++)
            assert_true(live_has(live, writers[i].from + n));
    }
    calyx_live_free(live);
}

/* Between the list and the swap; keys of all sizes, and many of them. */
static void keys_that_were_added_meanwhile_are_in_the_new_filter(void **state) {
    (void)state;
    enum { MANY = 30000, LARGE = 100000 };
    struct books books = {0};
    const calyx_memory hooks = hooks_of(&books);
    calyx_live *live = make_live(&hooks);
    char *large = calloc(1, LARGE);
    uint64_t token = 0;
    assert_non_null(large);
    assert_ok(calyx_live_begin(live, 0, &token, NULL));
    assert_ok(calyx_live_add(live, "", 0, NULL, NULL));
    for (uint64_t i = 0; i < MANY; i++) assert_ok(add_live(live, i));
    assert_ok(calyx_live_add(live, large, LARGE, NULL, NULL));
    bool fresh = true;
    assert_ok(calyx_live_add(live, large, LARGE, &fresh, NULL));
    assert_false(fresh);

    calyx_filter *next = make_filter(growing);
    assert_ok(calyx_live_finish(live, token, next, NULL));
    const calyx_filter *now = calyx_live_acquire(live);
    assert_ptr_equal(now, next);
    assert_true(calyx_has(now, "", 0) && calyx_has(now, large, LARGE));
    calyx_live_release(live, now);
    for (uint64_t i = 0; i < MANY; i++) assert_true(live_has(live, i));
    calyx_live_free(live);
    assert_int_equal(blocks_of(&books), 0);
    free(large);
}

static void assert_not_finished(calyx_live *live, uint64_t token,
                                calyx_status status, const char *text) {
    calyx_filter *next = make_filter(growing);
    calyx_error why = {0};
    assert_int_equal(calyx_live_finish(live, token, next, &why), status);
    assert_non_null(strstr(why.text, text));
    assert_true(live_has(live, 1));
    calyx_free(next); /* it is still ours */
}

static void who_begins_last_has_the_rebuild_of_a_live_filter(void **state) {
    (void)state;
    calyx_live *live = make_live(NULL);
    uint64_t first = 0, second = 0;
    assert_ok(add_live(live, 1));
    assert_not_finished(live, 0, CALYX_MISMATCH, "not open");
    assert_ok(calyx_live_begin(live, 0, &first, NULL));
    assert_ok(add_live(live, 2)); /* in the list of the second */
    assert_ok(calyx_live_begin(live, 0, &second, NULL));
    assert_true(first != second);
    assert_ok(add_live(live, 3));
    assert_not_finished(live, first, CALYX_MISMATCH, "another began");
    assert_ok(calyx_live_finish(live, second, make_filter(growing), NULL));
    assert_true(!live_has(live, 1) && !live_has(live, 2) && live_has(live, 3));
    assert_ok(add_live(live, 1));
    assert_not_finished(live, second, CALYX_MISMATCH, "not open");
    calyx_live_free(live);
}

static void more_keys_than_may_be_recorded_are_not_forgotten(void **state) {
    (void)state;
    enum { FEW = 10, KEY = 16 }; /* bytes: the number and its size */
    calyx_live *live = make_live(NULL);
    uint64_t token = 0;
    assert_ok(calyx_live_begin(live, FEW * KEY, &token, NULL));
    for (uint64_t i = 0; i < FEW; i++) assert_ok(add_live(live, i));
    assert_ok(add_live(live, FEW));
    assert_true(live_has(live, FEW));
    assert_not_finished(live, token, CALYX_FULL, "160 bytes");
    assert_ok(calyx_live_begin(live, FEW * KEY, &token, NULL));
    for (uint64_t i = 0; i < FEW; i++) assert_ok(add_live(live, i));
    assert_ok(calyx_live_finish(live, token, make_filter(growing), NULL));
    calyx_live_free(live);
}

static void a_new_filter_that_is_too_small_replaces_nothing(void **state) {
    (void)state;
    calyx_live *live = make_live(NULL);
    uint64_t token = 0;
    calyx_error why = {0};
    assert_ok(calyx_live_begin(live, 0, &token, NULL));
    for (uint64_t i = 0; i < 100; i++) assert_ok(add_live(live, i));
    calyx_filter *small =
        make_filter((calyx_options){.capacity = 10, .strict = true});
    assert_int_equal(calyx_live_finish(live, token, small, &why), CALYX_FULL);
    assert_non_null(strstr(why.text, "does not take"));
    calyx_free(small);
    assert_ok(calyx_live_finish(live, token, make_filter(growing), NULL));
    for (uint64_t i = 0; i < 100; i++) assert_true(live_has(live, i));
    calyx_live_free(live);
}

static void a_key_that_cannot_be_recorded_is_reported(void **state) {
    (void)state;
    struct books books = {0};
    const calyx_memory hooks = hooks_of(&books);
    calyx_live *live = make_live(&hooks);
    uint64_t token = 0;
    assert_ok(calyx_live_begin(live, 0, &token, NULL));
    books.fails_at = books.calls + 1;
    assert_ok(add_live(live, 1));
    assert_not_finished(live, token, CALYX_NO_MEMORY, "no memory to record");
    calyx_live_free(live);
    assert_int_equal(blocks_of(&books), 0);
}

static void only_concurrent_filters_are_added_to_beside_readers(void **state) {
    (void)state;
    calyx_live *live = NULL;
    calyx_error why = {0};
    assert_ok(calyx_live_new(make_edition(0, NULL), &live, NULL));
    assert_int_equal(calyx_live_add(live, "x", 1, NULL, &why), CALYX_CANNOT);
    assert_non_null(strstr(why.text, "concurrent"));
    calyx_live_free(live);
    calyx_options strict = growing;
    strict.strict = true;
    strict.growth = 0;
    strict.capacity = 1;
    assert_ok(calyx_live_new(make_filter(strict), &live, NULL));
    uint64_t token = 0, n = 0;
    assert_ok(calyx_live_begin(live, 0, &token, NULL));
    while (calyx_live_add(live, &n, sizeof n, NULL, &why) == CALYX_OK) n++;
    assert_int_equal(why.status, CALYX_FULL);
    calyx_live_free(live);
}

/* ---- A file that is followed --------------------------------------------- */

static void save_edition(uint64_t edition) {
    calyx_filter *f = make_edition(edition, NULL);
    assert_ok(calyx_save(f, path, NULL));
    calyx_free(f);
}

static bool serves(calyx_live *live, uint64_t edition) {
    const calyx_filter *f = calyx_live_acquire(live);
    const bool has = calyx_has_u64(f, KEYS + edition) && calyx_has_u64(f, 1);
    calyx_live_release(live, f);
    return has;
}

static calyx_live *follow(const calyx_open_options *how) {
    calyx_live *live = NULL;
    calyx_error why;
    if (calyx_live_open(path, how, &live, &why) != CALYX_OK)
        fail_msg("%s", why.text);
    return live;
}

static void assert_refreshes(calyx_live *live, bool expected) {
    bool changed = !expected;
    calyx_error why;
    if (calyx_live_refresh(live, &changed, &why) != CALYX_OK)
        fail_msg("%s", why.text);
    assert_true(changed == expected);
}

static void a_replaced_file_is_noticed(void **state) {
    (void)state;
    save_edition(0);
    calyx_live *live = follow(NULL);
    assert_refreshes(live, false);
    assert_true(serves(live, 0));
    for (uint64_t i = 1; i <= 10; i++) {
        save_edition(i);
        assert_true(serves(live, i - 1)); /* until it is refreshed */
        assert_refreshes(live, true);
        assert_true(serves(live, i));
        assert_refreshes(live, false);
    }
    save_edition(11);
    assert_ok(calyx_live_refresh(live, NULL, NULL));
    assert_true(serves(live, 11));
    calyx_live_free(live);
}

/* The size is always the same here; let the time be too. */
static void a_file_of_the_same_time_is_noticed(void **state) {
    (void)state;
    const struct timespec times[2] = {{1000000000, 0}, {1000000000, 0}};
    save_edition(0);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    calyx_live *live = follow(NULL);
    for (uint64_t i = 1; i <= 10; i++) {
        save_edition(i);
        assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
        assert_refreshes(live, true);
        assert_true(serves(live, i));
    }
    calyx_live_free(live);
}

static void replace_by_bytes(const void *bytes, size_t size) {
    const int fd = open(other_path, O_CREAT | O_TRUNC | O_WRONLY, 0666);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), size);
    close(fd);
    assert_int_equal(rename(other_path, path), 0);
}

static void assert_keeps(calyx_live *live, uint64_t edition,
                         calyx_status status) {
    for (int i = 0; i < 2; i++) { /* it says so each time */
        bool changed = true;
        calyx_error why = {0};
        assert_int_equal(calyx_live_refresh(live, &changed, &why), status);
        assert_false(changed);
        assert_int_equal(why.status, status);
        assert_non_null(strstr(why.text, path));
        assert_true(serves(live, edition));
    }
}

static void a_file_that_cannot_be_used_replaces_nothing(void **state) {
    (void)state;
    struct books books = {0};
    const calyx_memory hooks = hooks_of(&books);
    save_edition(0);
    calyx_live *live = follow(&(calyx_open_options){.memory = &hooks});
    const size_t blocks = blocks_of(&books);

    uint8_t bytes[4096] = "no filter at all";
    replace_by_bytes(bytes, sizeof bytes);
    assert_keeps(live, 0, CALYX_DAMAGED);
    replace_by_bytes(bytes, 0);
    assert_keeps(live, 0, CALYX_DAMAGED);
    assert_int_equal(unlink(path), 0);
    assert_keeps(live, 0, CALYX_IO);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_keeps(live, 0, CALYX_DAMAGED);
    assert_int_equal(rmdir(path), 0);

    save_edition(1);
    assert_int_equal(truncate(path, 5000), 0);
    assert_keeps(live, 0, CALYX_DAMAGED);
    save_edition(2); /* and when all is well again */
    assert_refreshes(live, true);
    assert_true(serves(live, 2));
    assert_int_equal(blocks_of(&books), blocks);
    calyx_live_free(live);
    assert_int_equal(blocks_of(&books), 0);
}

static void what_cannot_be_opened_is_not_followed(void **state) {
    (void)state;
    struct books books = {0};
    const calyx_memory hooks = hooks_of(&books);
    const calyx_open_options how = {.memory = &hooks};
    calyx_live *live = NULL;
    calyx_error why = {0};
    assert_int_equal(calyx_live_open(path, &how, &live, &why), CALYX_IO);
    assert_non_null(strstr(why.text, path));
    assert_null(live);
    assert_int_equal(blocks_of(&books), 0);

    save_edition(0);
    for (size_t n = 1;; n++) {
        books = (struct books){.fails_at = n};
        why = (calyx_error){0};
        const calyx_status status = calyx_live_open(path, &how, &live, &why);
        if (status == CALYX_OK) break;
        assert_int_equal(status, CALYX_NO_MEMORY);
        assert_int_equal(why.status, CALYX_NO_MEMORY);
        assert_null(live);
        assert_int_equal(blocks_of(&books), 0);
    }
    calyx_live_free(live);
    assert_int_equal(blocks_of(&books), 0);
}

static void only_what_follows_a_file_can_be_refreshed(void **state) {
    (void)state;
    calyx_live *live = NULL;
    assert_ok(calyx_live_new(make_edition(0, NULL), &live, NULL));
    bool changed = true;
    calyx_error why;
    assert_int_equal(calyx_live_refresh(live, &changed, &why), CALYX_CANNOT);
    assert_false(changed);
    calyx_live_free(live);
}

/* What the caller said on opening holds for every file that follows, though the
 * caller's own memory of it is gone. */
static void how_to_open_is_remembered(void **state) {
    (void)state;
    save_edition(0);
    char *kernel = strdup("scalar");
    calyx_live *live = follow(&(calyx_open_options){.kernel = kernel});
    memset(kernel, 'x', strlen(kernel));
    free(kernel);
    save_edition(1);
    assert_refreshes(live, true);
    const calyx_filter *f = calyx_live_acquire(live);
    assert_string_equal(info_of(f).kernel, "scalar");
    calyx_live_release(live, f);
    calyx_live_free(live);
}

static void a_secret_key_is_remembered(void **state) {
    (void)state;
    uint8_t key[16] = "sixteen letters";
    calyx_filter *f =
        make_filter((calyx_options){.hash = "siphash", .key = key});
    add(f, "rose");
    assert_ok(calyx_save(f, path, NULL));
    calyx_live *live = follow(&(calyx_open_options){.key = key});
    add(f, "iris");
    assert_ok(calyx_save(f, path, NULL));
    memset(key, 0, sizeof key);
    assert_refreshes(live, true);
    const calyx_filter *now = calyx_live_acquire(live);
    assert_true(has(now, "rose") && has(now, "iris"));
    calyx_live_release(live, now);
    calyx_live_free(live);
    calyx_free(f);
}

static void a_relative_path_stays_where_it_was(void **state) {
    (void)state;
    char home[PATH_MAX];
    assert_non_null(getcwd(home, sizeof home));
    save_edition(0);
    assert_int_equal(chdir(folder), 0);
    calyx_live *live = NULL;
    assert_ok(calyx_live_open(strrchr(path, '/') + 1, NULL, &live, NULL));
    assert_int_equal(chdir("/"), 0);
    save_edition(1);
    assert_refreshes(live, true);
    assert_true(serves(live, 1));
    calyx_live_free(live);
    assert_int_equal(chdir(home), 0);
}

static void *keep_refreshing(void *context) {
    struct reader *reader = context;
    while (!__atomic_load_n(reader->stop, __ATOMIC_RELAXED)) {
        if (calyx_live_refresh(reader->live, NULL, NULL) != CALYX_OK)
            reader->missed++;
        reader->asked++;
    }
    return NULL;
}

static void readers_miss_no_key_while_the_file_is_replaced(void **state) {
    (void)state;
    save_edition(0);
    calyx_live *live = follow(NULL);
    struct reader readers[READERS], refreshers[2];
    uint64_t stop = 0;
    start(readers, live, &stop);
    for (int i = 0; i < 2; i++) {
        refreshers[i] = (struct reader){.live = live, .stop = &stop};
        assert_int_equal(pthread_create(&refreshers[i].thread, NULL,
                                        keep_refreshing, &refreshers[i]),
                         0);
    }
    for (uint64_t i = 1; i <= 50; i++) save_edition(i);
    finish(readers, &stop);
    for (int i = 0; i < 2; i++) {
        pthread_join(refreshers[i].thread, NULL);
        assert_int_equal(refreshers[i].missed, 0);
    }
    calyx_live_refresh(live, NULL, NULL);
    assert_true(serves(live, 50));
    calyx_live_free(live);
}

/* ---- Bytes of a filter that others add to -------------------------------- */

enum { ROUNDS = SANITIZED ? 100 : 1000, TO_ADD = 5000 };

struct adder {
    calyx_filter *f;
    uint64_t added;
    pthread_t thread;
};

static void *keep_adding(void *context) {
    struct adder *adder = context;
    for (uint64_t i = 0; i < TO_ADD; i++) {
        if (calyx_add_u64(adder->f, i, NULL) != CALYX_OK) abort();
        __atomic_store_n(&adder->added, i + 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void assert_encoded_has_numbers(const void *bytes, size_t size,
                                       uint64_t n) {
    calyx_filter *f = NULL;
    calyx_error why;
    if (calyx_decode(bytes, size, NULL, &f, &why) != CALYX_OK)
        fail_msg("%s", why.text);
    assert_has_numbers(f, 0, n);
    calyx_free(f);
}

/* Another thread may make the filter grow at any moment: then the buffer is too
 * small, and encoding says so; it does not write after its end. */
static void encode_while_it_grows(const struct adder *adder, bool looks) {
    static const uint8_t mark[64] = "the end of the buffer";
    const uint64_t added = __atomic_load_n(&adder->added, __ATOMIC_ACQUIRE);
    const size_t size = (size_t)calyx_encoded_size(adder->f);
    uint8_t *bytes = malloc(size + sizeof mark);
    assert_non_null(bytes);
    memcpy(bytes + size, mark, sizeof mark);
    const calyx_status status = calyx_encode(adder->f, bytes, size, NULL);
    assert_memory_equal(bytes + size, mark, sizeof mark);
    if (status != CALYX_OK)
        assert_int_equal(status, CALYX_BAD_ARGUMENT);
    else if (looks)
        assert_encoded_has_numbers(bytes, size, added);
    free(bytes);
}

/* With room for all; and growing all the while, by as little as can be. */
static void bytes_have_every_key_added_before_them(void **state) {
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        const bool grows = round % 10 > 0;
        struct adder adder = {0};
        adder.f = make_filter((calyx_options){.capacity = grows ? 1 : TO_ADD,
                                              .growth = grows ? 1.25 : 0,
                                              .concurrent = true});
        assert_int_equal(
            pthread_create(&adder.thread, NULL, keep_adding, &adder), 0);
        for (int i = 0;
             __atomic_load_n(&adder.added, __ATOMIC_ACQUIRE) < TO_ADD; i++)
            encode_while_it_grows(&adder, i % 16 == 0);
        pthread_join(adder.thread, NULL);
        encode_while_it_grows(&adder, true);
        calyx_free(adder.f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_miss_no_key_while_filters_are_swapped),
        cmocka_unit_test(two_threads_may_swap),
        cmocka_unit_test(a_taken_filter_outlives_the_swap),
        cmocka_unit_test(a_filter_that_nobody_has_is_freed_by_the_swap),
        cmocka_unit_test(old_filters_that_are_held_can_be_too_many),
        cmocka_unit_test(without_memory_the_filter_stays_with_its_owner),
        cmocka_unit_test(no_key_is_lost_by_rebuilds_beside_writers),
        cmocka_unit_test(keys_that_were_added_meanwhile_are_in_the_new_filter),
        cmocka_unit_test(who_begins_last_has_the_rebuild_of_a_live_filter),
        cmocka_unit_test(more_keys_than_may_be_recorded_are_not_forgotten),
        cmocka_unit_test(a_new_filter_that_is_too_small_replaces_nothing),
        cmocka_unit_test(a_key_that_cannot_be_recorded_is_reported),
        cmocka_unit_test(only_concurrent_filters_are_added_to_beside_readers),
        IN_FOLDER(a_replaced_file_is_noticed),
        IN_FOLDER(a_file_of_the_same_time_is_noticed),
        IN_FOLDER(a_file_that_cannot_be_used_replaces_nothing),
        IN_FOLDER(what_cannot_be_opened_is_not_followed),
        cmocka_unit_test(only_what_follows_a_file_can_be_refreshed),
        IN_FOLDER(a_relative_path_stays_where_it_was),
        IN_FOLDER(how_to_open_is_remembered),
        IN_FOLDER(a_secret_key_is_remembered),
        IN_FOLDER(readers_miss_no_key_while_the_file_is_replaced),
        cmocka_unit_test(bytes_have_every_key_added_before_them),
    };
    return RUN_TESTS(tests);
}
