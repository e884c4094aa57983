/*
 * Programs that were compiled with an older header go on working: the structs
 * of 0.1 are copied here, and given to the library of today. A field that is
 * added must take `reserved` words, and 0 in it must mean what it meant before.
 */
#include <string.h>

#include "support.h"

struct options_0_1 {
    const char *kind;
    uint64_t capacity;
    double fpr;
    uint64_t bits;
    double growth, first_fpr;
    uint32_t probes;
    bool strict, concurrent;
    const char *hash;
    uint64_t seed;
    const uint8_t *key;
    const char *kernel;
    const calyx_memory *memory;
    uint64_t reserved[8];
};

struct opening_0_1 {
    const uint8_t *key;
    const char *kernel;
    bool concurrent;
    uint64_t most_bytes;
    const calyx_memory *memory;
    calyx_verification verify;
    uint64_t reserved[8];
};

struct workload_0_1 {
    double filter_time, store_time, present, key_bytes;
    uint64_t reserved[4];
};

struct info_0_1 {
    const char *kind, *kernel, *hash;
    uint64_t seed, capacity, items, bits, bytes;
    uint32_t parts, probes;
    double growth, fpr, fpr_now, fill, distinct;
    bool strict, concurrent, read_only, huge_pages;
    uint32_t can;
    uint64_t reserved[8];
};

struct part_0_1 {
    uint64_t capacity, items, bits, bytes;
    uint32_t probes;
    double fpr;
    uint64_t reserved[4];
};

struct costs_0_1 {
    calyx_cost filter, table, nothing;
    uint64_t reserved[4];
};

struct overlap_0_1 {
    double either, both, jaccard;
    uint64_t reserved[4];
};

/* Bytes behind a struct, which the library must leave alone. */
enum { FENCE = 0x5A };
#define FENCED(type)        \
    struct {                \
        type s;             \
        uint8_t fence[256]; \
    }
#define RAISE(fenced) memset(&(fenced), FENCE, sizeof(fenced))
#define assert_fence(fenced)                                \
    for (size_t at_ = 0; at_ < sizeof(fenced).fence; at_++) \
    assert_int_equal((fenced).fence[at_], FENCE)

static calyx_filter *make_old(const struct options_0_1 *want) {
    calyx_filter *f;
    assert_ok(calyx_new((const calyx_options *)(const void *)want, &f, NULL));
    return f;
}

static void options_of_an_older_header_mean_the_same(void **state) {
    (void)state;
    const struct options_0_1 want = {.kind = "flat",
                                     .capacity = 1000,
                                     .fpr = 0.001,
                                     .growth = 2,
                                     .first_fpr = 0.0001,
                                     .concurrent = true,
                                     .hash = "xxh64",
                                     .seed = 7,
                                     .kernel = "scalar"};
    calyx_filter *f = make_old(&want);
    const calyx_info is = info_of(f);
    assert_string_equal(is.kind, "flat");
    assert_string_equal(is.hash, "xxh64");
    assert_string_equal(is.kernel, "scalar");
    assert_true(is.capacity == 1000 && is.seed == 7 && is.growth == 2);
    assert_true(is.concurrent && !is.strict && is.fpr == 0.001);
    calyx_part first;
    assert_true(calyx_part_of(f, 0, &first));
    assert_true(first.fpr <= 0.0001);
    calyx_free(f);
}

static void the_library_writes_nothing_behind_older_structs(void **state) {
    (void)state;
    const struct options_0_1 want = {.capacity = 1000};
    calyx_filter *f = make_old(&want);
    add(f, "rose");
    FENCED(struct info_0_1) info;
    FENCED(struct part_0_1) part;
    FENCED(struct overlap_0_1) overlap;
    FENCED(struct costs_0_1) costs;
    RAISE(info), RAISE(part), RAISE(overlap), RAISE(costs);

    calyx_describe(f, (calyx_info *)(void *)&info.s);
    assert_fence(info);
    assert_string_equal(info.s.kind, "line");
    assert_true(info.s.items == 1 && info.s.parts == 1 && info.s.fpr == 0.01);
    assert_true(info.s.can & CALYX_CAN_ADD && info.s.distinct > 0.5);

    assert_true(calyx_part_of(f, 0, (calyx_part *)(void *)&part.s));
    assert_fence(part);
    assert_true(part.s.items == 1 && part.s.bytes == info.s.bytes);

    assert_ok(calyx_compare(f, f, (calyx_overlap *)(void *)&overlap.s, NULL));
    assert_fence(overlap);
    assert_true(overlap.s.jaccard == 1);

    const struct workload_0_1 load = {1, 100, 0.5, 8, {0}};
    assert_ok(calyx_weigh((const calyx_options *)(const void *)&want,
                          (const calyx_workload *)(const void *)&load,
                          (calyx_costs *)(void *)&costs.s, NULL));
    assert_fence(costs);
    assert_true(costs.s.nothing.time == 100 && costs.s.table.time == 51);
    calyx_free(f);
}

static void a_filter_is_opened_as_an_older_header_says(void **state) {
    (void)state;
    const struct options_0_1 want = {.capacity = 100};
    calyx_filter *f = make_old(&want), *g;
    const size_t size = (size_t)calyx_encoded_size(f);
    void *bytes = test_malloc(size);
    assert_ok(calyx_encode(f, bytes, size, NULL));
    struct opening_0_1 how = {.kernel = "scalar", .concurrent = true};
    const calyx_open_options *const given = (const void *)&how;
    assert_ok(calyx_decode(bytes, size, given, &g, NULL));
    assert_string_equal(info_of(g).kernel, "scalar");
    assert_true(info_of(g).concurrent);
    calyx_free(g);
    how.most_bytes = size - 1;
    assert_int_equal(calyx_decode(bytes, size, given, &g, NULL),
                     CALYX_BAD_ARGUMENT);
    test_free(bytes);
    calyx_free(f);
}

/* What a newer header would set, this library cannot heed. */
static void options_that_this_library_does_not_know_are_refused(void **state) {
    (void)state;
    calyx_error why;
    calyx_filter *f = make_filter((calyx_options){.capacity = 100}), *g;
    for (int i = 0; i < 8; i++) {
        calyx_options want = {.capacity = 100};
        want.reserved[i] = 1;
        assert_int_equal(calyx_new(&want, &g, &why), CALYX_BAD_ARGUMENT);
        assert_non_null(strstr(why.text, "calyx_options"));

        calyx_open_options how = {0};
        how.reserved[i] = 1;
        const size_t size = (size_t)calyx_encoded_size(f);
        void *bytes = test_malloc(size);
        assert_ok(calyx_encode(f, bytes, size, NULL));
        assert_int_equal(calyx_decode(bytes, size, &how, &g, &why),
                         CALYX_BAD_ARGUMENT);
        assert_non_null(strstr(why.text, "calyx_open_options"));
        test_free(bytes);
    }
    for (int i = 0; i < 4; i++) {
        calyx_workload load = {.store_time = 1};
        calyx_costs costs;
        load.reserved[i] = 1;
        assert_int_equal(calyx_weigh(&(calyx_options){0}, &load, &costs, &why),
                         CALYX_BAD_ARGUMENT);
    }
    calyx_free(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_of_an_older_header_mean_the_same),
        cmocka_unit_test(the_library_writes_nothing_behind_older_structs),
        cmocka_unit_test(a_filter_is_opened_as_an_older_header_says),
        cmocka_unit_test(options_that_this_library_does_not_know_are_refused),
    };
    return RUN_TESTS(tests);
}
