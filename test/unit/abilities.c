/* What a kind says that it can do is what it does. */
#include <string.h>

#include "filter/filter.h"
#include "support.h"

static const uint32_t ALL = 2 * CALYX_CAN_GROW_IN_PLACE - 1;

static bool plans(calyx_options want) {
    calyx_info info;
    return calyx_plan(&want, &info, NULL) == CALYX_OK;
}

static bool builds_parts(const char *kind) {
    const calyx_builder_options want = {
        .filter = {.kind = kind, .capacity = 50}, .part = 1, .parts = 2};
    calyx_builder *b = NULL;
    const bool builds = calyx_builder_new(&want, &b, NULL) == CALYX_OK;
    calyx_builder_free(b);
    return builds;
}

/* In a table the newest part counts the keys of all. */
static bool grows_in_place(const char *kind) {
    calyx_filter *f = make_filter(
        (calyx_options){.kind = kind, .capacity = 100, .growth = 2});
    calyx_part newest;
    for (uint64_t i = 0; i < 10000; i++) assert_ok(calyx_add_u64(f, i, NULL));
    const calyx_info info = info_of(f);
    assert_true(info.parts > 1);
    assert_true(calyx_part_of(f, info.parts - 1, &newest));
    calyx_free(f);
    return newest.items == info.items;
}

/* The abilities of a kind, by trying. */
static uint32_t tried(const char *kind) {
    const calyx_options want = {.kind = kind, .bits = 4096, .capacity = 50};
    calyx_filter *a = make_filter(want), *b = make_filter(want), *c = NULL;
    uint32_t can = 0;
    if (calyx_add(a, "rose", 4, NULL) == CALYX_OK) can |= CALYX_CAN_ADD;
    calyx_add(a, "rose", 4, NULL);
    if (calyx_count(a, "rose", 4) == 2) can |= CALYX_CAN_COUNT;
    if (calyx_fold(a, 2, &c, NULL) == CALYX_OK) can |= CALYX_CAN_FOLD;
    if (calyx_merge(b, a, NULL) == CALYX_OK) can |= CALYX_CAN_MERGE;
    if (calyx_intersect(b, a, NULL) == CALYX_OK) can |= CALYX_CAN_INTERSECT;
    if (calyx_remove(a, "rose", 4, NULL) == CALYX_OK) can |= CALYX_CAN_REMOVE;
    if (plans((calyx_options){.kind = kind, .growth = 2}))
        can |= CALYX_CAN_GROW;
    if (plans((calyx_options){.kind = kind, .capacity = 9, .concurrent = true}))
        can |= CALYX_CAN_SHARE;
    if (builds_parts(kind)) can |= CALYX_CAN_PARTS;
    if (grows_in_place(kind)) can |= CALYX_CAN_GROW_IN_PLACE;
    calyx_free(a);
    calyx_free(b);
    calyx_free(c);
    return can;
}

static void every_kind_can_do_what_it_says_and_no_more(void **state) {
    (void)state;
    for (const char *const *kind = adding_kinds(); *kind; kind++)
        assert_int_equal(calyx_kind_can(*kind) & ~(uint32_t)CALYX_CAN_RANGE,
                         tried(*kind));
}

/* Byte offset of the one byte that a key changes first. */
static size_t place_of(calyx_filter *f, uint64_t hash) {
    uint64_t size;
    calyx_clear(f);
    assert_ok(calyx_add_hashes(f, &hash, 1, NULL, NULL));
    const uint8_t *bits = calyx_bits(f, &size);
    size_t at = 0;
    while (!bits[at]) at++;
    return at;
}

/* Hashes that grow by a 16th of all cross at least one block each. */
static void a_kind_of_ranges_has_the_bits_of_higher_hashes_after_it(
    void **state) {
    (void)state;
    EACH_KIND_OF_BITS(kind) {
        calyx_filter *f = make_filter(
            (calyx_options){.kind = *kind, .bits = 1 << 16, .capacity = 100});
        bool in_order = true;
        struct generator from = {1};
        for (uint64_t i = 0, last = 0; i < 16; i++) {
            const uint64_t low = random_word(&from) >> 8;
            const uint64_t place = place_of(f, i << 60 | low);
            in_order &= place >= last;
            last = place;
        }
        assert_int_equal(in_order,
                         calyx_kind_can(*kind) & CALYX_CAN_RANGE ? 1 : 0);
        calyx_free(f);
    }
}

static void filters_plans_and_kinds_say_the_same(void **state) {
    (void)state;
    EACH_KIND(kind) {
        const calyx_options want = {.kind = *kind, .capacity = 9};
        calyx_filter *f = make_filter(want);
        calyx_info plan;
        assert_ok(calyx_plan(&want, &plan, NULL));
        assert_int_equal(plan.can, calyx_kind_can(*kind));
        assert_int_equal(info_of(f).can, plan.can);
        assert_int_equal(plan.can & ~ALL, 0);
        calyx_free(f);
    }
}

static void an_unknown_kind_can_do_nothing(void **state) {
    (void)state;
    assert_int_equal(calyx_kind_can("cuckoo"), 0);
    assert_int_equal(calyx_kind_can(""), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_can_do_what_it_says_and_no_more),
        cmocka_unit_test(
            a_kind_of_ranges_has_the_bits_of_higher_hashes_after_it),
        cmocka_unit_test(filters_plans_and_kinds_say_the_same),
        cmocka_unit_test(an_unknown_kind_can_do_nothing),
    };
    return RUN_TESTS(tests);
}
