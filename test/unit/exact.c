/*
 * Exact filters: every key of the universe is queried, in every way there is,
 * at the processor level of the run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

/* The keys are the numbers below `keys`; those below `included` are in. */
struct universe {
    uint64_t keys, included;
};

static const struct universe universes[] = {
    {1, 0},        {1, 1},       {2, 1},       {100, 0},       {100, 100},
    {100, 3},      {3000, 1},    {3000, 1500}, {3000, 2999},   {20000, 19},
    {20000, 5000}, {20000, 200}, {50000, 500}, {50000, 25000},
};
enum { UNIVERSES = sizeof universes / sizeof *universes };

static calyx_builder *make_builder(calyx_builder_options want) {
    calyx_builder *b = NULL;
    want.filter.kind = "ribbon";
    want.filter.exact = true;
    assert_ok(calyx_builder_new(&want, &b, NULL));
    return b;
}

/* Numbers at equal steps, so that included and excluded ones come mixed. */
static void give_numbers(calyx_builder *b, const struct universe *all,
                         uint64_t step) {
    for (uint64_t i = 0; i < all->keys; i++) {
        const uint64_t key = i * step % all->keys;
        if (key < all->included)
            assert_ok(calyx_builder_add(b, &key, sizeof key, NULL));
        else
            assert_ok(calyx_builder_exclude(b, &key, sizeof key, NULL));
    }
}

static calyx_filter *build(const struct universe *all,
                           calyx_builder_options want) {
    calyx_builder *const b = make_builder(want);
    calyx_filter *f = NULL;
    give_numbers(b, all, 1);
    assert_ok(calyx_builder_finish(b, &f, NULL));
    calyx_builder_free(b);
    return f;
}

static void assert_exact(const calyx_filter *f, const struct universe *all) {
    uint64_t *const numbers = malloc(all->keys * sizeof *numbers);
    bool *const found = malloc(all->keys * sizeof *found);
    assert_true(numbers && found);
    for (uint64_t i = 0; i < all->keys; i++) numbers[i] = i;
    assert_int_equal(calyx_has_many_u64(f, numbers, all->keys, found),
                     all->included);
    assert_int_equal(calyx_has_many_u64(f, numbers, all->keys, NULL),
                     all->included);
    for (uint64_t i = 0; i < all->keys; i++) {
        assert_int_equal(found[i], i < all->included);
        assert_int_equal(calyx_has_u64(f, i), i < all->included);
    }
    const calyx_info is = info_of(f);
    assert_int_equal(is.universe, all->keys);
    assert_int_equal(is.items, all->included);
    free(numbers);
    free(found);
}

struct image {
    uint8_t *bytes;
    size_t size;
};

static struct image encode(const calyx_filter *f) {
    struct image image = {.size = (size_t)calyx_encoded_size(f)};
    image.bytes = aligned_alloc(64, (image.size + 63) / 64 * 64);
    assert_non_null(image.bytes);
    assert_ok(calyx_encode(f, image.bytes, image.size, NULL));
    return image;
}

static void every_key_of_every_universe_is_answered_right(void **state) {
    (void)state;
    for (int i = 0; i < UNIVERSES; i++) {
        calyx_filter *const f =
            build(&universes[i], (calyx_builder_options){0});
        const struct image image = encode(f);
        calyx_filter *other = NULL;
        assert_exact(f, &universes[i]);
        assert_ok(calyx_decode(image.bytes, image.size, NULL, &other, NULL));
        assert_exact(other, &universes[i]);
        calyx_free(other);
        assert_ok(calyx_view(image.bytes, image.size, NULL, &other, NULL));
        assert_exact(other, &universes[i]);
        calyx_free(other);
        assert_ok(calyx_copy(f, &other, NULL));
        assert_exact(other, &universes[i]);
        calyx_free(other);
        calyx_free(f);
        free(image.bytes);
    }
}

/* In any order, by several builders and threads, and with little memory. */
static void the_same_keys_make_the_same_bytes(void **state) {
    (void)state;
    const struct universe all = {70001, 7000};
    const calyx_builder_options ways[] = {
        {.memory_bytes = 64 << 10},
        {.threads = 4},
        {.threads = 3, .memory_bytes = 64 << 10},
    };
    calyx_filter *const f = build(&all, (calyx_builder_options){0});
    assert_exact(f, &all);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        calyx_builder *const a = make_builder(ways[i]);
        calyx_builder *const b = make_builder(ways[i]);
        calyx_filter *same = NULL;
        give_numbers(a, &all, 17);
        give_numbers(b, &all, 23);
        assert_ok(calyx_builder_merge(a, b, NULL));
        assert_ok(calyx_builder_finish(a, &same, NULL));
        assert_true(same_bodies(f, same));
        calyx_free(same);
        calyx_builder_free(a);
        calyx_builder_free(b);
    }
    calyx_free(f);
}

static void a_key_that_is_both_is_an_error_with_their_number(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        const calyx_builder_options little = {.memory_bytes = 64 << 10};
        calyx_builder *const b =
            make_builder(i ? little : (calyx_builder_options){0});
        calyx_filter *f = NULL;
        calyx_error why;
        give_numbers(b, &(struct universe){40000, i ? 20000 : 400}, 1);
        for (uint64_t key = 100; key < 117; key++)
            assert_ok(calyx_builder_exclude(b, &key, sizeof key, NULL));
        assert_int_equal(calyx_builder_finish(b, &f, &why), CALYX_MISMATCH);
        assert_non_null(strstr(why.text, "17 keys are both"));
        calyx_builder_free(b);
    }
}

static bool has_in_pieces(const calyx_layout *layout, const struct image *image,
                          uint64_t hash) {
    bool found = false;
    for (uint32_t part = 0;;) {
        uint64_t at[CALYX_LINES_MOST];
        uint8_t lines[CALYX_LINES_MOST * CALYX_LINE_BYTES];
        const size_t n = calyx_layout_lines(layout, part, hash, at);
        assert_true(n > 0);
        for (size_t i = 0; i < n; i++)
            memcpy(lines + i * CALYX_LINE_BYTES, image->bytes + at[i],
                   CALYX_LINE_BYTES);
        found ^= calyx_layout_has(layout, part, hash, lines);
        part = calyx_layout_next(layout, part, hash, lines);
        if (!part) return found;
    }
}

/* The last layer that is explained has the answer. */
static bool has_by_tests(const calyx_filter *f, uint64_t key) {
    calyx_test tests[512];
    const size_t n = calyx_explain(f, &key, sizeof key, tests, 512);
    assert_in_range(n, 1, 512);
    const uint32_t last = tests[n - 1].part;
    bool all = tests[n - 1].type != CALYX_TEST_BUMPED;
    for (size_t i = 0; i < n; i++)
        all &= tests[i].part != last || tests[i].type == CALYX_TEST_BUMPED ||
               tests[i].passes;
    return all;
}

static void lookups_in_pieces_and_explained_have_the_same_answers(
    void **state) {
    (void)state;
    for (int i = 0; i < UNIVERSES; i++) {
        calyx_filter *const f =
            build(&universes[i], (calyx_builder_options){0});
        const struct image image = encode(f);
        calyx_layout *layout = NULL;
        assert_ok(calyx_layout_new(image.bytes, image.size, &layout, NULL));
        calyx_info is;
        calyx_layout_describe(layout, NULL, &is);
        assert_int_equal(is.universe, universes[i].keys);
        for (uint64_t key = 0; key < 2 * universes[i].keys; key++) {
            const uint64_t hash = calyx_hash(f, &key, sizeof key);
            assert_int_equal(has_in_pieces(layout, &image, hash),
                             calyx_has_u64(f, key));
            assert_int_equal(has_by_tests(f, key), calyx_has_u64(f, key));
        }
        calyx_layout_free(layout);
        calyx_free(f);
        free(image.bytes);
    }
}

static void keys_outside_pass_at_the_rate_that_it_says(void **state) {
    (void)state;
    enum { TRIALS = 100000 };
    static const double wanted[] = {0, 0.3, 0.001};
    for (int i = 0; i < 3; i++) {
        const struct universe all = {30000, 3000};
        calyx_filter *const f =
            build(&all, (calyx_builder_options){.filter.fpr = wanted[i]});
        const double rate = info_of(f).fpr;
        assert_exact(f, &all);
        assert_true(wanted[i] == 0 || rate <= wanted[i]);
        const uint64_t passed = count_found(f, all.keys, all.keys + TRIALS);
        assert_true(odds_at_least(passed, TRIALS, rate) > UNLIKELY);
        assert_true(odds_at_most(passed, TRIALS, rate) > UNLIKELY);
        calyx_free(f);
    }
}

static void a_plan_says_size_and_rate_and_no_rate_is_smaller(void **state) {
    (void)state;
    static const struct universe many[] = {
        {300000, 10000}, {100000, 50000}, {100000, 20000}};
    for (int i = 0; i < 3; i++) {
        calyx_options want = {.kind = "ribbon",
                              .exact = true,
                              .capacity = many[i].included,
                              .excluded = many[i].keys - many[i].included};
        calyx_info plan, stricter;
        calyx_filter *const f = build(&many[i], (calyx_builder_options){0});
        const calyx_info is = info_of(f);
        assert_ok(calyx_plan(&want, &plan, NULL));
        assert_true(plan.fpr == is.fpr);
        assert_int_equal(plan.universe, many[i].keys);
        assert_in_range(100 * plan.bytes, 97 * is.bytes, 103 * is.bytes);
        for (want.fpr = 0.5; want.fpr > 1e-5; want.fpr /= 2) {
            assert_ok(calyx_plan(&want, &stricter, NULL));
            assert_true(stricter.bytes >= plan.bytes);
            assert_true(stricter.fpr <= want.fpr);
        }
        calyx_free(f);
    }
}

/* Every day some keys come, some go, and the universe grows. */
static void an_updated_filter_is_exact_for_the_new_universe(void **state) {
    (void)state;
    enum { DAYS = 5 };
    struct universe all = {20000, 1000};
    calyx_filter *f = build(&all, (calyx_builder_options){0});
    for (int day = 0; day < DAYS; day++) {
        calyx_builder *const b = make_builder((calyx_builder_options){0});
        calyx_filter *changes = NULL, *next = NULL;
        all.included = day % 2 ? all.included - 10 : all.included + 30;
        all.keys += 100;
        for (uint64_t key = 0; key < all.keys; key++) {
            if (calyx_has_u64(f, key) != (key < all.included))
                assert_ok(calyx_builder_add(b, &key, sizeof key, NULL));
            else
                assert_ok(calyx_builder_exclude(b, &key, sizeof key, NULL));
        }
        assert_ok(calyx_builder_finish(b, &changes, NULL));
        assert_ok(calyx_update(f, changes, all.included, &next, NULL));
        assert_exact(next, &all);
        const struct image image = encode(next);
        calyx_layout *layout = NULL;
        calyx_free(f);
        assert_ok(calyx_decode(image.bytes, image.size, NULL, &f, NULL));
        assert_exact(f, &all);
        assert_true(info_of(f).fpr == info_of(next).fpr);
        assert_ok(calyx_layout_new(image.bytes, image.size, &layout, NULL));
        for (uint64_t key = 0; key < all.keys; key++)
            assert_int_equal(
                has_in_pieces(layout, &image, calyx_hash(f, &key, sizeof key)),
                key < all.included);
        calyx_layout_free(layout);
        calyx_free(changes);
        calyx_free(next);
        calyx_builder_free(b);
        free(image.bytes);
    }
    calyx_free(f);
}

static void updates_that_do_not_fit_are_refused(void **state) {
    (void)state;
    const struct universe all = {2000, 100}, half = {2000, 1000};
    calyx_filter *const f = build(&all, (calyx_builder_options){0});
    calyx_filter *const many = build(&half, (calyx_builder_options){0});
    calyx_filter *const seeded =
        build(&all, (calyx_builder_options){.filter.seed = 1});
    calyx_filter *const plain = make_filter((calyx_options){0});
    calyx_filter *out = NULL;
    calyx_error why;
    assert_int_equal(calyx_update(f, many, 5, &out, &why), CALYX_CANNOT);
    assert_int_equal(calyx_update(f, seeded, 5, &out, &why), CALYX_MISMATCH);
    assert_int_equal(calyx_update(f, plain, 5, &out, &why), CALYX_CANNOT);
    assert_int_equal(calyx_update(plain, f, 5, &out, &why), CALYX_CANNOT);
    calyx_free(f);
    calyx_free(many);
    calyx_free(seeded);
    calyx_free(plain);
}

static void options_that_do_not_fit_are_refused(void **state) {
    (void)state;
    const struct {
        calyx_builder_options want;
        calyx_status status;
    } cases[] = {
        {{.filter = {.kind = "line", .exact = true}}, CALYX_CANNOT},
        {{.filter = {.kind = "ribbon", .exact = true, .bits = 100000}},
         CALYX_BAD_ARGUMENT},
        {{.filter = {.kind = "ribbon", .excluded = 5}}, CALYX_BAD_ARGUMENT},
        {{.filter = {.kind = "ribbon", .exact = true, .capacity = 100},
          .part = 1,
          .parts = 2},
         CALYX_CANNOT},
        {{.filter = {.kind = "ribbon", .exact = true, .fpr = 1e-12}},
         CALYX_BAD_ARGUMENT},
    };
    calyx_builder *b = NULL;
    calyx_error why;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(calyx_builder_new(&cases[i].want, &b, &why),
                         cases[i].status);
    const calyx_builder_options plain = {.filter.kind = "ribbon"};
    assert_ok(calyx_builder_new(&plain, &b, NULL));
    assert_int_equal(calyx_builder_exclude(b, "a", 1, &why), CALYX_CANNOT);
    calyx_builder *const exact = make_builder((calyx_builder_options){0});
    assert_int_equal(calyx_builder_merge(b, exact, &why), CALYX_MISMATCH);
    calyx_builder_free(exact);
    calyx_builder_free(b);
}

/* A key is said to be absent only by bytes that match their checksums. */
static void damaged_bytes_never_say_no(void **state) {
    (void)state;
    const struct universe all = {4000, 400};
    calyx_filter *const f = build(&all, (calyx_builder_options){0});
    const struct image image = encode(f);
    const size_t body = calyx_head_size(f);
    const size_t bytes = (size_t)info_of(f).bytes;
    for (size_t at = 0; at < bytes; at += 13) {
        calyx_filter *view = NULL;
        image.bytes[body + at] ^= 0xFF;
        assert_ok(calyx_view(image.bytes, image.size, NULL, &view, NULL));
        assert_has_numbers(view, 0, all.included);
        calyx_free(view);
        image.bytes[body + at] ^= 0xFF;
    }
    calyx_free(f);
    free(image.bytes);
}

/* The header with other bytes, under a checksum that is right. */
static calyx_status decode_forged(const struct image *image, size_t at,
                                  uint32_t value, calyx_error *why) {
    struct image forged = {malloc(image->size), image->size};
    calyx_filter *f = NULL;
    assert_non_null(forged.bytes);
    memcpy(forged.bytes, image->bytes, image->size);
    for (int i = 0; i < 4; i++)
        forged.bytes[at + (size_t)i] = (uint8_t)(value >> 8 * i);
    const uint8_t *const h = forged.bytes;
    const size_t size =
        h[32] | (size_t)h[33] << 8 | (size_t)h[34] << 16; /* header bytes */
    uint64_t sum = 0;
    calyx_options xxh3 = {.capacity = 1};
    calyx_filter *const hasher = make_filter(xxh3);
    sum = calyx_hash(hasher, forged.bytes, size - 8);
    for (int i = 0; i < 8; i++)
        forged.bytes[size - 8 + (size_t)i] = (uint8_t)(sum >> 8 * i);
    calyx_free(hasher);
    const calyx_status status =
        calyx_decode(forged.bytes, forged.size, NULL, &f, why);
    calyx_free(f);
    free(forged.bytes);
    return status;
}

static void forged_value_layers_are_refused(void **state) {
    (void)state;
    enum { MUST = 16, RECORD = 128, NEXT = 64, PROBES = 8, VALUES = 12 };
    calyx_filter *const f =
        build(&(struct universe){20000, 2000}, (calyx_builder_options){0});
    const struct image image = encode(f);
    const uint32_t last = info_of(f).parts - 1;
    const size_t record = RECORD + NEXT * (size_t)last;
    calyx_error why;
    assert_int_equal(decode_forged(&image, MUST, 0, &why), CALYX_DAMAGED);
    assert_int_equal(decode_forged(&image, MUST, 4, &why), CALYX_TOO_NEW);
    assert_int_equal(decode_forged(&image, record + VALUES, 0, &why),
                     CALYX_DAMAGED);
    assert_non_null(strstr(why.text, "no value layer"));
    assert_int_equal(decode_forged(&image, record + VALUES, 2, &why),
                     CALYX_DAMAGED);
    assert_int_equal(decode_forged(&image, RECORD + VALUES, 1, &why),
                     CALYX_DAMAGED);
    assert_non_null(strstr(why.text, "value layer"));
    calyx_free(f);
    free(image.bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_of_every_universe_is_answered_right),
        cmocka_unit_test(the_same_keys_make_the_same_bytes),
        cmocka_unit_test(a_key_that_is_both_is_an_error_with_their_number),
        cmocka_unit_test(lookups_in_pieces_and_explained_have_the_same_answers),
        cmocka_unit_test(keys_outside_pass_at_the_rate_that_it_says),
        cmocka_unit_test(a_plan_says_size_and_rate_and_no_rate_is_smaller),
        cmocka_unit_test(an_updated_filter_is_exact_for_the_new_universe),
        cmocka_unit_test(updates_that_do_not_fit_are_refused),
        cmocka_unit_test(options_that_do_not_fit_are_refused),
        cmocka_unit_test(damaged_bytes_never_say_no),
        cmocka_unit_test(forged_value_layers_are_refused),
    };
    return RUN_TESTS(tests);
}
