/* What a lookup tests, compared with what it answers. */

#include "support.h"

enum { TESTS_MOST = 4096 };
static calyx_test tests[TESTS_MOST];

static size_t explain(const calyx_filter *f, uint64_t number) {
    const size_t n =
        calyx_explain(f, &number, sizeof number, tests, TESTS_MOST);
    assert_in_range(n, 1, TESTS_MOST);
    return n;
}

/* The answer that follows from the tests, as calyx.h says. */
static bool answer_of(size_t n) {
    bool all = true, any = false;
    for (size_t i = 0; i < n; i++) {
        const bool ends = i + 1 == n || tests[i + 1].part != tests[i].part;
        switch (tests[i].type) {
            case CALYX_TEST_BIT:
                all &= tests[i].passes;
                if (ends) any |= all, all = true;
                break;
            case CALYX_TEST_CODE:
            case CALYX_TEST_SPILLED: any |= tests[i].passes; break;
            case CALYX_TEST_BUMPED:
                assert_true(tests[i].passes || !ends);
                break;
            case CALYX_TEST_SUM:
                all &= tests[i].passes;
                if (ends) any = all;
                break;
        }
        assert_true(tests[i].block < tests[i].blocks);
    }
    return any;
}

/* Keys that are there, and as many that are not; returns how many of these
 * pass. */
static uint64_t check_answers(const calyx_filter *f, uint64_t keys,
                              uint64_t step) {
    uint64_t passed = 0;
    for (uint64_t key = 0; key < 2 * keys; key += step) {
        const bool found = calyx_has_u64(f, key);
        assert_true(answer_of(explain(f, key)) == found);
        passed += found && key >= keys;
    }
    return passed;
}

static void the_tests_of_a_key_give_the_answer_of_a_lookup(void **state) {
    (void)state;
    enum { KEYS = 1000 };
    EACH_BUILT_KIND(kind) {
        const calyx_builder_options want = {
            .filter = {.kind = *kind, .fpr = 0.05}};
        calyx_builder *b;
        calyx_filter *f;
        assert_ok(calyx_builder_new(&want, &b, NULL));
        for (uint64_t key = 0; key < KEYS; key++)
            assert_ok(calyx_builder_add(b, &key, sizeof key, NULL));
        assert_ok(calyx_builder_finish(b, &f, NULL));
        calyx_builder_free(b);
        assert_true(check_answers(f, KEYS, 1) > 0);
        calyx_free(f);
    }
}

static void so_do_the_tests_in_all_parts_of_a_grown_filter(void **state) {
    (void)state;
    EACH_KIND(kind) {
        calyx_filter *f = make_filter((calyx_options){.kind = *kind,
                                                      .capacity = 200,
                                                      .fpr = 0.2,
                                                      .growth = 2,
                                                      .seed = 1});
        add_numbers(f, 0, 1500);
        assert_true(info_of(f).parts > 1);
        check_answers(f, 1500, 13);
        calyx_free(f);
    }
}

/* A bit that two probes share is listed by both. */
static size_t different_bits(size_t n) {
    size_t different = 0;
    for (size_t i = 0; i < n; i++) {
        size_t before = 0;
        while (before < i && tests[before].at != tests[i].at) before++;
        different += before == i;
    }
    return different;
}

static void adding_a_key_sets_the_bits_that_are_tested_and_no_others(
    void **state) {
    (void)state;
    EACH_KIND_OF_BITS(kind)
    for (uint64_t key = 0; key < 100; key++) {
        calyx_filter *f =
            make_filter((calyx_options){.kind = *kind, .capacity = 50});
        const size_t n = explain(f, key);
        for (size_t i = 0; i < n; i++) assert_false(tests[i].passes);
        assert_ok(calyx_add_u64(f, key, NULL));
        assert_int_equal(explain(f, key), n);
        for (size_t i = 0; i < n; i++) assert_true(tests[i].passes);
        const calyx_info is = info_of(f);
        assert_int_equal(different_bits(n),
                         (size_t)(is.fill * (double)is.bits + 0.5));
        calyx_free(f);
    }
}

static void a_short_list_gets_the_first_tests(void **state) {
    (void)state;
    calyx_filter *f = make_filter((calyx_options){.kind = "line"});
    const uint64_t key = 7;
    const size_t n = explain(f, key);
    calyx_test first[2] = {{.part = 99}, {.part = 99}};
    assert_int_equal(calyx_explain(f, &key, sizeof key, first, 1), n);
    assert_int_equal(first[0].at, tests[0].at);
    assert_int_equal(first[1].part, 99);
    assert_int_equal(calyx_explain(f, &key, sizeof key, NULL, 0), n);
    calyx_free(f);
}

int main(void) {
    const struct CMUnitTest all[] = {
        cmocka_unit_test(the_tests_of_a_key_give_the_answer_of_a_lookup),
        cmocka_unit_test(so_do_the_tests_in_all_parts_of_a_grown_filter),
        cmocka_unit_test(
            adding_a_key_sets_the_bits_that_are_tested_and_no_others),
        cmocka_unit_test(a_short_list_gets_the_first_tests),
    };
    return RUN_TESTS(all);
}
