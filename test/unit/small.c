/* Small filters without structs: the same answers, bits and bytes as with them.
 */
#include <string.h>

#include "base/memory.h"
#include "filter/filter.h"
#include "support.h"

static const calyx_options SMALL = {
    .capacity = 100, .growth = 1.6, .first_fpr = 0.001, .seed = 7};
static const calyx_options TABLE = {
    .capacity = 150, .growth = 2, .kind = "distinct", .seed = 7};

/* All that a file of it would have. */
static void assert_same_bytes(const calyx_filter *a, const calyx_filter *b) {
    const uint64_t size = calyx_encoded_size(a);
    assert_int_equal(calyx_encoded_size(b), size);
    uint8_t *of_a = test_malloc(size), *of_b = test_malloc(size);
    assert_ok(calyx_encode(a, of_a, size, NULL));
    assert_ok(calyx_encode(b, of_b, size, NULL));
    assert_memory_equal(of_a, of_b, size);
    test_free(of_a);
    test_free(of_b);
}

static void give_bits(const calyx_small *small, void *bits) {
    memory_default.release(NULL, bits, calyx_small_bytes(small));
}

static void an_open_small_filter_is_the_filter(void **state) {
    (void)state;
    const calyx_options wants[] = {
        SMALL,
        {.capacity = 1000, .fpr = 1e-4, .strict = true, .kind = "line2"},
        {.capacity = 3000, .strict = true, .kind = "flat", .seed = 1},
        {.capacity = 300, .growth = 4, .kind = "split"},
        TABLE,
        {.capacity = 1000, .strict = true, .kind = "distinct"},
    };
    for (size_t i = 0; i < sizeof wants / sizeof *wants; i++) {
        calyx_filter *whole = make_filter(wants[i]), *f = make_filter(wants[i]);
        calyx_small small;
        calyx_room room;
        void *bits;
        add_numbers(whole, 0, 100);
        add_numbers(f, 0, 50);
        assert_true(calyx_make_small(f, &small, &bits));
        f = calyx_open_small(&small, bits, &memory_default, &room);
        add_numbers(f, 50, 100);
        calyx_close_small(f, &small);
        memset(&room, 0xA5, sizeof room);
        f = calyx_open_small(&small, bits, &memory_default, &room);
        assert_same_bytes(f, whole);
        for (uint64_t key = 0; key < 2000; key++)
            assert_int_equal(calyx_has_u64(f, key), calyx_has_u64(whole, key));
        give_bits(&small, bits);
        calyx_free(whole);
    }
}

static void assert_grows_when_whole(calyx_options want) {
    calyx_filter *whole = make_filter(want), *f = make_filter(want);
    calyx_small small;
    calyx_room room;
    void *bits;
    add_numbers(whole, 0, 5000);
    assert_true(calyx_make_small(f, &small, &bits));
    f = calyx_open_small(&small, bits, &memory_default, &room);
    uint64_t key = 0;
    while (calyx_add_u64(f, key, NULL) == CALYX_OK) key++;
    assert_int_equal(calyx_add_u64(f, key, NULL), CALYX_FULL);
    assert_true(calyx_has_u64(f, 0) && info_of(f).items == want.capacity);
    assert_int_equal(calyx_clear(f), CALYX_READ_ONLY);
    assert_int_equal(calyx_set_comment(f, "x"), CALYX_READ_ONLY);
    assert_int_equal(calyx_set_property(f, "x", "y", NULL), CALYX_READ_ONLY);
    calyx_close_small(f, &small);
    assert_ok(calyx_from_small(&small, bits, &memory_default, &f));
    add_numbers(f, key, 5000);
    assert_same_bytes(f, whole);
    calyx_free(f);
    calyx_free(whole);
}

static void a_full_small_filter_grows_when_it_is_whole_again(void **state) {
    (void)state;
    assert_grows_when_whole(SMALL);
    assert_grows_when_whole(TABLE);
}

/* An allocator that has a number of blocks left. */
static void *allocate_some(void *left, size_t size, size_t alignment) {
    if (*(int *)left == 0) return NULL;
    --*(int *)left;
    return memory_default.allocate(NULL, size, alignment);
}

static void release_some(void *left, void *block, size_t size) {
    (void)left;
    memory_default.release(NULL, block, size);
}

static void a_small_filter_stays_without_memory_for_a_whole_one(void **state) {
    (void)state;
    calyx_filter *f = make_filter(TABLE);
    calyx_small small;
    calyx_room room;
    void *bits;
    add_numbers(f, 0, 100);
    assert_true(calyx_make_small(f, &small, &bits));
    int blocks = 0, left;
    const calyx_memory memory = {allocate_some, release_some, &left};
    do {
        f = calyx_open_small(&small, bits, &memory, &room);
        assert_has_numbers(f, 0, 100);
        left = blocks++;
    } while (calyx_from_small(&small, bits, &memory, &f) == CALYX_NO_MEMORY);
    assert_int_equal(blocks, 4); /* the filter, its part and its table */
    assert_has_numbers(f, 0, 100);
    calyx_free(f);
}

/* The filter must be as it was. */
static void assert_stays(calyx_options want, uint64_t keys) {
    calyx_filter *f = make_filter(want);
    calyx_small small;
    void *bits = NULL;
    add_numbers(f, 0, keys);
    assert_false(calyx_make_small(f, &small, &bits));
    assert_null(bits);
    assert_has_numbers(f, 0, keys);
    calyx_free(f);
}

static void a_filter_that_32_bytes_cannot_describe_is_not_made_small(
    void **state) {
    (void)state;
    const calyx_options strict = {.capacity = 100, .strict = true};
    calyx_options want = strict;
    want.strict = false;
    assert_stays(want, 10);   /* its rate may rise */
    assert_stays(SMALL, 200); /* has grown */
    want = strict, want.capacity = 65536;
    assert_stays(want, 10);
    want = strict, want.kind = "counting";
    assert_stays(want, 10);
    want = strict, want.kind = "bucket";
    assert_stays(want, 10);
    assert_stays(TABLE, 200); /* has grown */
    want = strict, want.concurrent = true;
    assert_stays(want, 10);
    want = strict, want.hash = "xxh64";
    assert_stays(want, 10);
    want = strict, want.kind = "flat", want.fpr = 1e-6; /* 20 probes */
    assert_stays(want, 10);
    want = SMALL, want.growth = 1.61;
    assert_stays(want, 10);
    want = SMALL, want.growth = 13;
    assert_stays(want, 10);
}

static void what_was_said_of_a_filter_is_not_lost(void **state) {
    (void)state;
    calyx_filter *f = make_filter(SMALL);
    calyx_small small;
    void *bits;
    assert_ok(calyx_set_comment(f, "roses"));
    assert_false(calyx_make_small(f, &small, &bits));
    assert_string_equal(calyx_comment(f), "roses");
    calyx_free(f);
    f = make_filter(SMALL);
    assert_ok(calyx_set_property(f, "from", "the garden", NULL));
    assert_false(calyx_make_small(f, &small, &bits));
    assert_string_equal(calyx_property(f, "from"), "the garden");
    calyx_free(f);
}

/* The bits of a table in rows are released with its structs. Elsewhere it may
 * be small. */
static void assert_remembers_if_small(calyx_filter *f, uint64_t keys) {
    const calyx_memory memory = memory_default;
    calyx_small small;
    void *bits = NULL;
    if (calyx_make_small(f, &small, &bits))
        assert_ok(calyx_from_small(&small, bits, &memory, &f));
    assert_has_numbers(f, 0, keys);
    calyx_free(f);
}

static void a_table_in_rows_stays_as_it_is(void **state) {
    (void)state;
    enum { MANY = 60000, KEYS = 10000, FEW = 90 };
    calyx_options want = TABLE;
    calyx_filter *const cleared = make_filter(want);
    want.capacity = 2 * KEYS;
    calyx_filter *const large = make_filter(want);
    add_numbers(large, 0, KEYS);
    assert_remembers_if_small(large, KEYS);
    add_numbers(cleared, 0, MANY);
    assert_ok(calyx_clear(cleared));
    add_numbers(cleared, 0, FEW);
    assert_remembers_if_small(cleared, FEW);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_open_small_filter_is_the_filter),
        cmocka_unit_test(a_full_small_filter_grows_when_it_is_whole_again),
        cmocka_unit_test(a_small_filter_stays_without_memory_for_a_whole_one),
        cmocka_unit_test(
            a_filter_that_32_bytes_cannot_describe_is_not_made_small),
        cmocka_unit_test(what_was_said_of_a_filter_is_not_lost),
        cmocka_unit_test(a_table_in_rows_stays_as_it_is),
    };
    return RUN_TESTS(tests);
}
