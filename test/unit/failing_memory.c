/*
 * Memory that fails at its n-th call, for every n until it no longer matters:
 * once, or from then on. Whatever was there before is there afterwards, and
 * all that was taken comes back.
 */
#include <stdlib.h>
#include <string.h>

#include "support.h"

/* ---- Memory that fails ----------------------------------------------------
 */

/* Let the n-th call from now on fail; 0 lets none fail. */
static void fail_at(struct books *s, size_t n, bool for_good) {
    s->calls = 0;
    s->fails_at = n;
    s->for_good = for_good;
}

static bool has_failed(const struct books *s) {
    return s->fails_at && s->calls >= s->fails_at;
}

/* ---- Making filters, and filters of filters ------------------------------ */

enum { KEYS = 3000, SMALL = 400 };

/* Calls that make a filter of one that is there, which may be NULL. */
typedef calyx_status make_call(const calyx_filter *f, const calyx_options *want,
                               calyx_filter **out, calyx_error *why);

static calyx_status make_new(const calyx_filter *f, const calyx_options *want,
                             calyx_filter **out, calyx_error *why) {
    (void)f;
    calyx_options seeded = *want;
    seeded.seeded = true;
    return calyx_new(&seeded, out, why);
}

static calyx_status make_copy(const calyx_filter *f, const calyx_options *want,
                              calyx_filter **out, calyx_error *why) {
    (void)want;
    return calyx_copy(f, out, why);
}

static calyx_status make_like(const calyx_filter *f, const calyx_options *want,
                              calyx_filter **out, calyx_error *why) {
    (void)want;
    return calyx_new_like(f, out, why);
}

/* By 1, since the parts of a grown filter have no other factor in common. */
static calyx_status make_folded(const calyx_filter *f,
                                const calyx_options *want, calyx_filter **out,
                                calyx_error *why) {
    (void)want;
    return calyx_fold(f, 1, out, why);
}

static calyx_status make_frozen(const calyx_filter *f,
                                const calyx_options *want, calyx_filter **out,
                                calyx_error *why) {
    (void)want;
    return calyx_freeze(f, out, why);
}

/* Make a filter while the n-th call for memory fails, and see that a failure
 * leaves nothing behind. False once n is past the last call. */
static bool survives(make_call *make, const calyx_filter *from,
                     const calyx_options *want, struct books *s, size_t n,
                     bool for_good) {
    const size_t blocks = s->blocks;
    const calyx_info before = from ? info_of(from) : (calyx_info){0};
    calyx_filter *const untouched = (calyx_filter *)(uintptr_t)64;
    calyx_filter *made = untouched;
    calyx_error why;
    memset(&why, 'x', sizeof why);
    fail_at(s, n, for_good);

    const calyx_status status = make(from, want, &made, n % 2 ? &why : NULL);
    const bool failed = has_failed(s);
    fail_at(s, 0, false);

    if (failed) {
        assert_int_equal(status, CALYX_NO_MEMORY);
        assert_int_equal(s->blocks, blocks);
        assert_ptr_equal(made, untouched);
        if (n % 2) {
            assert_int_equal(why.status, CALYX_NO_MEMORY);
            assert_non_null(strstr(why.text, "no memory"));
        }
        assert_ok(make(from, want, &made, NULL)); /* there is memory again */
    } else {
        assert_ok(status);
    }
    if (from) {
        const calyx_info after = info_of(from);
        assert_int_equal(after.items, before.items);
        assert_true(after.fill == before.fill);
        assert_has_numbers(from, 0, SMALL);
        if (make == make_like)
            assert_int_equal(info_of(made).items, 0);
        else
            assert_has_numbers(made, 0, SMALL);
    }
    calyx_free(made);
    assert_int_equal(s->blocks, blocks);
    return failed;
}

static size_t survive_all(make_call *make, const calyx_filter *from,
                          const calyx_options *want, struct books *s) {
    size_t n = 1;
    while (survives(make, from, want, s, n, false)) n++;
    for (size_t i = 1; i < n; i++)
        assert_true(survives(make, from, want, s, i, true));
    return n - 1;
}

/* A filter of several parts, so that there is much that can fail. */
static calyx_filter *make_grown(const calyx_options *want) {
    calyx_filter *f = make_filter(*want);
    add_numbers(f, 0, SMALL);
    assert_true(info_of(f).parts > 1);
    return f;
}

static void a_filter_that_cannot_be_made_leaves_nothing_behind(void **state) {
    (void)state;
    EACH_KIND(kind) {
        struct books s = {0};
        const calyx_memory hooks = hooks_of(&s);
        const calyx_options want = {
            .kind = *kind, .capacity = 1000, .memory = &hooks};

        const size_t failures = survive_all(make_new, NULL, &want, &s);

        assert_int_equal(failures, 3); /* the filter, a part, its body */
    }
}

static void a_copy_that_cannot_be_made_leaves_nothing_behind(void **state) {
    (void)state;
    make_call *const makes[] = {make_copy, make_folded};
    EACH_KIND(kind) {
        struct books s = {0};
        const calyx_memory hooks = hooks_of(&s);
        const calyx_options want = {
            .kind = *kind, .capacity = 150, .growth = 2, .memory = &hooks};
        calyx_filter *f = make_grown(&want);

        /* A filter that counts and has grown cannot be folded. */
        const bool folds =
            calyx_kind_can(*kind) & CALYX_CAN_FOLD && !counts_additions(*kind);
        const uint32_t parts = info_of(f).parts;
        for (int i = 0; i < 1 + folds; i++) {
            const size_t failures = survive_all(makes[i], f, &want, &s);
            assert_int_equal(failures,
                             1 + 2 * parts + table_blocks(*kind, parts));
        }
        assert_int_equal(survive_all(make_like, f, &want, &s),
                         3 + table_blocks(*kind, 1));

        calyx_free(f);
        assert_int_equal(s.blocks, 0);
    }
}

static void a_filter_that_cannot_be_folded_stays_whole(void **state) {
    (void)state;
    struct books s = {0};
    const calyx_memory hooks = hooks_of(&s);
    calyx_filter *f =
        make_filter((calyx_options){.bits = 64 * 512, .memory = &hooks});
    add_numbers(f, 0, SMALL);
    for (size_t n = 1; n <= 3; n++) {
        calyx_filter *folded = NULL;
        fail_at(&s, n, true);
        assert_int_equal(calyx_fold(f, 4, &folded, NULL), CALYX_NO_MEMORY);
        assert_null(folded);
        assert_int_equal(s.blocks, 3);
    }
    assert_has_numbers(f, 0, SMALL);
    calyx_free(f);
    assert_int_equal(s.blocks, 0);
}

static void a_filter_that_cannot_be_frozen_stays_whole(void **state) {
    (void)state;
    struct books s = {0};
    const calyx_memory hooks = hooks_of(&s);
    const calyx_options want = {
        .kind = "counting", .capacity = 50, .growth = 2, .memory = &hooks};
    calyx_filter *f = make_grown(&want);

    const size_t failures = survive_all(make_frozen, f, &want, &s);

    assert_int_equal(failures, 1 + 2 * info_of(f).parts);
    calyx_free(f);
    assert_int_equal(s.blocks, 0);
}

/* ---- Growing ------------------------------------------------------------- */

/* Add number i, which fails for want of memory: it may be tried again, what was
 * there is there, and keys that are there can still be added. */
static void assert_cannot_grow(calyx_filter *f, struct books *s, uint64_t i) {
    const calyx_info before = info_of(f);
    const size_t blocks = s->blocks;
    fail_at(s, 1, true);

    bool fresh = false;
    assert_int_equal(calyx_add_u64(f, i, NULL), CALYX_NO_MEMORY);
    /* Where it takes a slot, it needs memory, too. */
    const bool takes_slot =
        is_table(before.kind) && counts_additions(before.kind);
    assert_int_equal(calyx_add_u64(f, i / 2, &fresh),
                     takes_slot ? CALYX_NO_MEMORY : CALYX_OK);
    const calyx_info after = info_of(f);

    fail_at(s, 0, false);
    assert_false(fresh);
    assert_int_equal(s->blocks, blocks);
    assert_int_equal(after.parts, before.parts);
    assert_true(after.fill == before.fill);
    assert_has_numbers(f, 0, i);
}

/* Add numbers one by one, with the n-th call for memory failing. Returns
 * whether it did. */
static bool grows_after(const char *kind, size_t n, bool for_good) {
    struct books s = {0};
    const calyx_memory hooks = hooks_of(&s);
    calyx_filter *f = make_filter((calyx_options){
        .kind = kind, .capacity = 50, .growth = 2, .memory = &hooks});
    bool failed = false;
    fail_at(&s, n, for_good);
    for (uint64_t i = 0; i < KEYS; i++) {
        const calyx_status status = calyx_add_u64(f, i, NULL);
        if (status == CALYX_OK) continue;
        assert_int_equal(status, CALYX_NO_MEMORY);
        assert_false(failed);
        failed = true;
        if (for_good)
            assert_cannot_grow(f, &s, i);
        else
            assert_has_numbers(f, 0, i);
        assert_ok(calyx_add_u64(f, i, NULL));
    }
    assert_has_numbers(f, 0, KEYS);
    assert_true(info_of(f).capacity >= KEYS);
    calyx_free(f);
    assert_int_equal(s.blocks, 0);
    return failed;
}

static void a_filter_that_cannot_grow_keeps_its_keys(void **state) {
    (void)state;
    EACH_KIND(kind) {
        size_t n = 1;
        while (grows_after(*kind, n, false)) n++;
        assert_true(n > 4); /* two calls a part, and some parts */
        for (size_t i = 1; i < n; i++) assert_true(grows_after(*kind, i, true));
    }
}

/* The same in one call for all that is left. */
static bool grows_in_batches_after(const char *kind, size_t n, bool for_good) {
    struct books s = {0};
    const calyx_memory hooks = hooks_of(&s);
    calyx_filter *f = make_filter((calyx_options){
        .kind = kind, .capacity = 50, .growth = 2, .memory = &hooks});
    static uint64_t numbers[KEYS];
    for (uint64_t i = 0; i < KEYS; i++) numbers[i] = i;
    unsigned char fresh[KEYS];
    memset(fresh, 7, sizeof fresh);
    size_t done = KEYS + 1;
    fail_at(&s, n, for_good);

    const calyx_status status =
        calyx_add_many_u64(f, numbers, KEYS, (bool *)fresh, &done);

    /* A table tries again, if some keys of a batch were added. */
    const bool failed =
        has_failed(&s) && !(is_table(kind) && status == CALYX_OK);
    assert_int_equal(status, failed ? CALYX_NO_MEMORY : CALYX_OK);
    assert_in_range(done, failed ? 0 : KEYS, failed ? KEYS - 1 : KEYS);
    assert_has_numbers(f, 0, done);
    assert_int_equal(calyx_has_many_u64(f, numbers, done, NULL), done);
    for (size_t i = 0; i < KEYS; i++)
        assert_true(i < done ? fresh[i] <= 1 : fresh[i] == 7);
    if (failed && for_good) assert_cannot_grow(f, &s, done);
    fail_at(&s, 0, false);
    assert_ok(calyx_add_many_u64(f, numbers + done, KEYS - done, NULL, &done));
    assert_has_numbers(f, 0, KEYS);
    calyx_free(f);
    assert_int_equal(s.blocks, 0);
    return failed;
}

static void a_batch_stops_where_memory_does(void **state) {
    (void)state;
    EACH_KIND(kind) {
        size_t n = 1;
        while (grows_in_batches_after(*kind, n, is_table(*kind))) n++;
        assert_true(n > 4);
        for (size_t i = 1; i < n; i++) {
            grows_in_batches_after(*kind, i, false);
            assert_true(grows_in_batches_after(*kind, i, true));
        }
    }
}

/* ---- What needs no memory ------------------------------------------------ */

static void calls_on_a_filter_that_does_not_grow_need_no_memory(void **state) {
    (void)state;
    EACH_KIND(kind) {
        struct books s = {0};
        const calyx_memory hooks = hooks_of(&s);
        const calyx_options want = {
            .kind = *kind, .capacity = 1000, .memory = &hooks};
        calyx_filter *a = make_filter(want), *b = make_filter(want);
        calyx_overlap overlap;
        calyx_info info;
        fail_at(&s, 1, true);

        /* If it can, past its capacity of 1000. */
        add_numbers(a, 0, is_table(*kind) ? 1000 : 2000);
        add_numbers(b, 100, 300);
        if (calyx_kind_can(*kind) & CALYX_CAN_INTERSECT) {
            assert_ok(calyx_compare(a, b, &overlap, NULL));
            assert_ok(calyx_merge(a, b, NULL));
            assert_ok(calyx_intersect(a, b, NULL));
        }
        calyx_describe(a, &info);
        calyx_remove(a, "rose", 4, NULL);
        assert_int_equal(calyx_count(b, "rose", 4), 0);
        assert_ok(calyx_plan(&want, &info, NULL));
        assert_ok(calyx_clear(b));

        assert_int_equal(s.calls, 0);
        assert_int_equal(s.blocks, 2 * 3);
        assert_has_numbers(a, 100, 300);
        calyx_free(a);
        calyx_free(b);
        assert_int_equal(s.blocks, 0);
    }
}

static void clearing_releases_what_growth_allocated(void **state) {
    (void)state;
    struct books s = {0};
    const calyx_memory hooks = hooks_of(&s);
    const calyx_options want = {.capacity = 50, .growth = 2, .memory = &hooks};
    calyx_filter *f = make_grown(&want);

    assert_ok(calyx_clear(f));

    assert_int_equal(s.blocks, 3); /* the filter, a part, its body */
    calyx_free(f);
    assert_int_equal(s.blocks, 0);
}

/* The filter keeps the hooks, not the struct that they came in. */
static void hooks_may_go_once_the_filter_is_made(void **state) {
    (void)state;
    struct books s = {0};
    calyx_memory hooks = hooks_of(&s);
    calyx_filter *f = make_filter((calyx_options){.memory = &hooks}), *copy;
    memset(&hooks, 0, sizeof hooks);

    assert_ok(calyx_copy(f, &copy, NULL));

    assert_int_equal(s.blocks, 6);
    calyx_free(f);
    calyx_free(copy);
    assert_int_equal(s.blocks, 0);
}

static void no_filter_may_be_freed(void **state) {
    (void)state;
    calyx_free(NULL);
}

/* 2^44 bits, 2 TiB: refused by memory, not by a number that overflowed.
 * The hooks stand in for a system that has not got so much. */
static void *take_little(void *context, size_t size, size_t alignment) {
    return size > 4096 ? NULL : counted_allocate(context, size, alignment);
}

static void the_largest_filter_is_refused_by_memory_alone(void **state) {
    (void)state;
    struct books s = {0};
    const calyx_memory hooks = {take_little, counted_release, &s};
    const calyx_options want = {
        .kind = "flat", .bits = UINT64_C(1) << 44, .memory = &hooks};
    calyx_filter *f = NULL;
    calyx_error why;

    assert_int_equal(calyx_new(&want, &f, &why), CALYX_NO_MEMORY);

    assert_non_null(strstr(why.text, "2199023255552 bytes"));
    assert_null(f);
    assert_int_equal(s.blocks, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_filter_that_cannot_be_made_leaves_nothing_behind),
        cmocka_unit_test(a_copy_that_cannot_be_made_leaves_nothing_behind),
        cmocka_unit_test(a_filter_that_cannot_be_folded_stays_whole),
        cmocka_unit_test(a_filter_that_cannot_be_frozen_stays_whole),
        cmocka_unit_test(a_filter_that_cannot_grow_keeps_its_keys),
        cmocka_unit_test(a_batch_stops_where_memory_does),
        cmocka_unit_test(calls_on_a_filter_that_does_not_grow_need_no_memory),
        cmocka_unit_test(clearing_releases_what_growth_allocated),
        cmocka_unit_test(hooks_may_go_once_the_filter_is_made),
        cmocka_unit_test(no_filter_may_be_freed),
        cmocka_unit_test(the_largest_filter_is_refused_by_memory_alone),
    };
    return RUN_TESTS(tests);
}
