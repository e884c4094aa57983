/* Calls on filters as a whole: copy, clear, merge, intersect, compare, fold,
 * freeze and describe; and what counting filters count. */
#include "base/bits.h"
#include "filter/filter.h"

#include <math.h>
#include <string.h>

#include "support.h"

/* A rate measured on n absent keys is not so far from what it should be that it
 * would happen by bad luck once in 10^9 times, on either side. */
static void assert_rate(uint64_t found, uint64_t n, double rate) {
    if (odds_at_least(found, n, rate) < UNLIKELY ||
        odds_at_most(found, n, rate) < UNLIKELY)
        fail_msg("%llu of %llu absent keys found, at a rate of %g",
                 (unsigned long long)found, (unsigned long long)n, rate);
}

/* An estimate is within six times the deviation allowed. */
static void assert_about(double is, double should_be, double deviation) {
    if (!(fabs(is - should_be) <= 6 * deviation))
        fail_msg("%g is not about %g", is, should_be);
}

static const uint64_t ABSENT = UINT64_C(1) << 40; /* and those above it */

/* ---- Copy and clear ------------------------------------------------------ */

static void a_copy_answers_the_same(void **state) {
    (void)state;
    EACH_KIND(kind) {
        calyx_filter *f = make_filter((calyx_options){
            .kind = *kind, .capacity = 200, .growth = 2, .seed = 7});
        add_numbers(f, 0, 1000);
        calyx_filter *copy = NULL;

        assert_ok(calyx_copy(f, &copy, NULL));

        assert_true(same_bodies(f, copy));
        const calyx_info a = info_of(f), b = info_of(copy);
        assert_true(a.parts > 1);
        assert_int_equal(memcmp(&a, &b, sizeof a), 0);
        calyx_free(f);
        assert_has_numbers(copy, 0, 1000);
        calyx_free(copy);
    }
}

static void a_copy_goes_its_own_way(void **state) {
    (void)state;
    EACH_KIND(kind) {
        calyx_filter *f = make_filter((calyx_options){.kind = *kind}), *copy;
        add(f, "rose");
        assert_ok(calyx_copy(f, &copy, NULL));

        add(f, "iris");
        add(copy, "tulip");

        assert_true(has(f, "rose") && has(f, "iris") && !has(f, "tulip"));
        assert_true(has(copy, "rose") && !has(copy, "iris") &&
                    has(copy, "tulip"));
        calyx_free(f);
        calyx_free(copy);
    }
}

static void a_copy_grows_as_the_filter_would(void **state) {
    (void)state;
    EACH_KIND(kind) {
        calyx_filter *f = make_filter((calyx_options){
                         .kind = *kind, .capacity = 100, .growth = 2}),
                     *copy;
        add_numbers(f, 0, 150);
        assert_ok(calyx_copy(f, &copy, NULL));

        add_numbers(f, 150, 2000);
        add_numbers(copy, 150, 2000);

        assert_true(same_bodies(f, copy));
        calyx_free(f);
        calyx_free(copy);
    }
}

static void what_is_made_like_another_is_as_that_was_new(void **state) {
    (void)state;
    EACH_KIND(kind) {
        const calyx_options want = {
            .kind = *kind, .capacity = 300, .growth = 2, .seed = 3};
        calyx_filter *f = make_filter(want), *new = make_filter(want), *like;
        add_numbers(f, 0, 3000);
        assert_ok(calyx_set_comment(f, "of numbers"));
        assert_ok(calyx_set_comment(new, "of numbers"));

        assert_ok(calyx_new_like(f, &like, NULL));

        const calyx_info a = info_of(like), b = info_of(new);
        assert_int_equal(memcmp(&a, &b, sizeof a), 0);
        assert_string_equal(calyx_comment(like), "of numbers");
        assert_has_numbers(f, 0, 3000); /* which is left alone */
        add_numbers(like, 0, 3000);     /* and it grows the same way */
        add_numbers(new, 0, 3000);
        assert_true(same_bodies(like, new));
        calyx_free(f);
        calyx_free(new);
        calyx_free(like);
    }
}

/* The first MiB is all of a small filter, and a fair sample of a large one. */
static void check_estimate(const char *kind, uint64_t bits, uint64_t keys) {
    calyx_filter *f = make_filter(
        (calyx_options){.kind = kind, .bits = bits, .capacity = keys / 2});
    add_numbers(f, 0, keys);
    calyx_info all, some;
    calyx_describe(f, &all);
    calyx_estimate(f, &some);
    assert_true(fabs(some.fpr_now / all.fpr_now - 1) < 0.01);
    assert_true(fabs(some.distinct / all.distinct - 1) < 0.01);
    if (bits <= 8 << 20) assert_true(some.fpr_now == all.fpr_now);
    calyx_free(f);
}

static void an_estimate_is_a_description_from_the_first_bits(void **state) {
    (void)state;
    EACH_KIND_THAT_CAN(kind, CALYX_CAN_ADD) {
        check_estimate(*kind, 1 << 20, is_table(*kind) ? 10000 : 40000);
        if (!SANITIZED && !is_table(*kind))
            check_estimate(*kind, 12 << 20, 1200000);
    }
}

static void clear_forgets_all_and_keeps_the_parameters(void **state) {
    (void)state;
    EACH_KIND(kind) {
        const calyx_options want = {
            .kind = *kind, .capacity = 300, .growth = 2, .seed = 3};
        calyx_filter *f = make_filter(want), *new = make_filter(want);
        const calyx_info before = info_of(f);
        add_numbers(f, 0, 3000);
        assert_true(info_of(f).parts > 1);

        assert_ok(calyx_clear(f));

        calyx_info after = info_of(f);
        after.memory = before.memory; /* a table keeps its longer list */
        assert_int_equal(memcmp(&before, &after, sizeof before), 0);
        assert_true(same_bodies(f, new));
        assert_int_equal(count_found(f, 0, 3000), 0);
        add_numbers(f, 0, 3000); /* and it grows again */
        add_numbers(new, 0, 3000);
        assert_true(same_bodies(f, new));
        calyx_free(f);
        calyx_free(new);
    }
}

/* ---- Merge --------------------------------------------------------------- */

/* After a merge the filter answers yes for the keys of both. */
static void merge_is_a_union(void **state) {
    (void)state;
    EACH_KIND_THAT_CAN(kind, CALYX_CAN_MERGE) {
        calyx_filter *reds = make_filter((calyx_options){.kind = *kind});
        calyx_filter *blues = make_filter((calyx_options){.kind = *kind});
        add(reds, "rose");
        add(blues, "iris");

        assert_ok(calyx_fits(reds, blues, NULL));
        assert_false(has(reds, "iris")); /* which was only looked up */
        assert_ok(calyx_merge(reds, blues, NULL));

        assert_true(has(reds, "rose") && has(reds, "iris"));
        assert_true(!has(blues, "rose")); /* the source is left alone */
        calyx_free(reds);
        calyx_free(blues);
    }
}

static void merging_equals_adding_both(void **state) {
    (void)state;
    EACH_KIND_THAT_CAN(kind, CALYX_CAN_MERGE) {
        const calyx_options want = {.kind = *kind, .capacity = 3000};
        calyx_filter *a = make_filter(want), *b = make_filter(want);
        calyx_filter *both = make_filter(want), *source;
        add_numbers(a, 0, 2000);
        add_numbers(b, 1000, 3000);
        add_numbers(both, 0, 2000);
        add_numbers(both, 1000, 3000);
        assert_ok(calyx_copy(b, &source, NULL));

        assert_ok(calyx_merge(a, b, NULL));

        assert_true(same_bodies(a, both) || is_table(*kind));
        assert_int_equal(count_found(a, 0, 3000), 3000);
        assert_true(same_bodies(b, source));
        /* 9.6 bits a key give the number of keys to within 1 %. */
        if (counts_additions(*kind))
            assert_int_equal(info_of(a).items, 4000);
        else
            assert_about((double)info_of(a).items, 3000, 15);
        calyx_free(a);
        calyx_free(b);
        calyx_free(both);
        calyx_free(source);
    }
}

static void merging_a_filter_with_itself_changes_nothing(void **state) {
    (void)state;
    EACH_KIND_THAT_CAN(kind, CALYX_CAN_MERGE) {
        calyx_filter *f = make_filter((calyx_options){.kind = *kind}), *before;
        add_numbers(f, 0, 1000);
        assert_ok(calyx_copy(f, &before, NULL));

        assert_ok(calyx_merge(f, f, NULL));
        if (calyx_kind_can(*kind) & CALYX_CAN_INTERSECT)
            assert_ok(calyx_intersect(f, f, NULL));

        assert_true(same_bodies(f, before));
        assert_int_equal(info_of(f).items, info_of(before).items);
        calyx_free(f);
        calyx_free(before);
    }
}

static void merging_an_empty_filter_changes_nothing(void **state) {
    (void)state;
    EACH_KIND_THAT_CAN(kind, CALYX_CAN_MERGE) {
        calyx_filter *f = make_filter((calyx_options){.kind = *kind}), *before;
        calyx_filter *empty = make_filter((calyx_options){.kind = *kind});
        add_numbers(f, 0, 1000);
        assert_ok(calyx_copy(f, &before, NULL));

        assert_ok(calyx_merge(f, empty, NULL));

        assert_true(same_bodies(f, before));
        assert_int_equal(info_of(f).items, info_of(before).items);
        calyx_free(f);
        calyx_free(before);
        calyx_free(empty);
    }
}

/* Two filters that have grown alike, with the same keys in different parts. */
static void make_grown_pair(const char *kind, calyx_filter **a,
                            calyx_filter **b) {
    const calyx_options want = {.kind = kind, .capacity = 1000, .growth = 2};
    *a = make_filter(want);
    *b = make_filter(want);
    add_numbers(*a, 0, 4000);
    add_numbers(*b, 2000, 6000);
    assert_true(info_of(*a).parts > 1);
    assert_int_equal(info_of(*a).parts, info_of(*b).parts);
}

/* Their full parts would be overfull: at 1 %, the union had a rate of 19 %. */
static void of_grown_filters_only_tables_merge(void **state) {
    (void)state;
    EACH_KIND_THAT_CAN(kind, CALYX_CAN_MERGE) {
        if (counts_additions(*kind)) continue;
        calyx_filter *a, *b, *before;
        calyx_error why;
        make_grown_pair(*kind, &a, &b);
        assert_ok(calyx_copy(a, &before, NULL));

        if (is_table(*kind)) {
            assert_ok(calyx_merge(a, b, &why));
            assert_has_numbers(a, 0, 6000);
            assert_true(info_of(a).fpr_now < 0.01);
        } else {
            calyx_progress at = {0};
            assert_int_equal(calyx_fits(a, b, &why), CALYX_CANNOT);
            assert_int_equal(calyx_merge(a, b, &why), CALYX_CANNOT);
            assert_non_null(strstr(why.text, "kind distinct"));
            assert_int_equal(calyx_merge_some(a, b, 64, &at, &why),
                             CALYX_CANNOT);
            assert_true(same_bodies(a, before));
        }
        calyx_free(a);
        calyx_free(b);
        calyx_free(before);
    }
}

/* A counting filter of several parts takes a key off the part that has it. A
 * merge would fill older parts, so that they seem to have keys of newer ones;
 * to take those off there would rob other keys. */
static void grown_counting_filters_refuse_to_merge(void **state) {
    (void)state;
    calyx_filter *a, *b, *before;
    make_grown_pair("counting", &a, &b);
    assert_ok(calyx_copy(a, &before, NULL));

    assert_int_equal(calyx_fits(a, b, NULL), CALYX_CANNOT);
    assert_int_equal(calyx_merge(a, b, NULL), CALYX_CANNOT);

    assert_true(same_bodies(a, before));
    calyx_free(a);
    calyx_free(b);
    calyx_free(before);
}

static calyx_status remove_number(calyx_filter *f, uint64_t number,
                                  bool *found) {
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(number >> 8 * i);
    return calyx_remove(f, bytes, sizeof bytes, found);
}

/* ---- Intersect ----------------------------------------------------------- */

static void intersection_keeps_the_keys_of_both(void **state) {
    (void)state;
    EACH_KIND_THAT_CAN(kind, CALYX_CAN_INTERSECT) {
        const calyx_options want = {.kind = *kind, .capacity = 20000};
        calyx_filter *a = make_filter(want), *b = make_filter(want), *source;
        add_numbers(a, 0, 10000);
        add_numbers(b, 8000, 20000);
        assert_ok(calyx_copy(b, &source, NULL));

        assert_ok(calyx_intersect(a, b, NULL));

        assert_has_numbers(a, 8000, 10000);
        assert_true(same_bodies(b, source));
        /* Others pass only where they passed one filter as an absent key. */
        const uint64_t others =
            count_found(a, 0, 8000) + count_found(a, 10000, 20000);
        assert_true(odds_at_least(others, 18000, 0.01) > UNLIKELY);
        assert_true(info_of(a).items <= 10000);
        calyx_free(a);
        calyx_free(b);
        calyx_free(source);
    }
}

/* Where a key stands in one part here and in another there, no part has it in
 * common. */
static void grown_filters_refuse_to_intersect(void **state) {
    (void)state;
    EACH_KIND(kind) {
        calyx_filter *a, *b, *before;
        make_grown_pair(*kind, &a, &b);
        assert_ok(calyx_copy(a, &before, NULL));

        assert_int_equal(calyx_intersect(a, b, NULL), CALYX_CANNOT);

        assert_true(same_bodies(a, before));
        calyx_free(a);
        calyx_free(b);
        calyx_free(before);
    }
}

/* A counter of the intersection is no less than the keys of both need. */
static void removing_after_an_intersection_loses_no_other(void **state) {
    (void)state;
    const calyx_options want = {.kind = "counting", .capacity = 5000};
    calyx_filter *a = make_filter(want), *b = make_filter(want);
    add_numbers(a, 0, 4000);
    add_numbers(b, 1000, 5000);

    assert_ok(calyx_intersect(a, b, NULL));
    for (uint64_t i = 1000; i < 2500; i++) assert_ok(remove_number(a, i, NULL));

    assert_has_numbers(a, 2500, 4000);
    calyx_free(a);
    calyx_free(b);
}

/* ---- Compare ------------------------------------------------------------- */

/* How far the number of keys, judged by the fill, may stray. Not derived, but a
 * generous guess: that it grows as the root of the keys. Keys are fixed, so
 * what passes once passes always. */
static double deviation_of(double keys) {
    return 0.7 * sqrt(keys) + 1;
}

static void an_overlap_is_estimated_well(void **state) {
    (void)state;
    enum { N = 50000 };
    const uint64_t percents[] = {0, 10, 50, 100};
    EACH_KIND_THAT_CAN(kind, CALYX_CAN_INTERSECT) {
        const calyx_options want = {.kind = *kind, .capacity = 2 * N};
        calyx_filter *a = make_filter(want);
        add_numbers(a, 0, N);
        for (int i = 0; i < 4; i++) {
            const uint64_t common = N * percents[i] / 100;
            calyx_filter *b = make_filter(want);
            add_numbers(b, N - common, 2 * N - common);
            calyx_overlap overlap;

            assert_ok(calyx_compare(a, b, &overlap, NULL));

            const double both = (double)common, either = 2 * N - both;
            const double stray = deviation_of(2 * N);
            assert_about(overlap.either, either, stray);
            assert_about(overlap.both, both, 2 * stray);
            assert_about(overlap.jaccard, both / either, 3 * stray / either);
            assert_true(overlap.jaccard >= 0 && overlap.jaccard <= 1);
            calyx_free(b);
        }
        calyx_free(a);
    }
}

static void empty_filters_are_equal(void **state) {
    (void)state;
    EACH_KIND_THAT_CAN(kind, CALYX_CAN_INTERSECT) {
        calyx_filter *a = make_filter((calyx_options){.kind = *kind});
        calyx_filter *b = make_filter((calyx_options){.kind = *kind});
        calyx_overlap overlap;

        assert_ok(calyx_compare(a, b, &overlap, NULL));

        assert_true(overlap.either == 0 && overlap.both == 0);
        assert_true(overlap.jaccard == 1);
        add(a, "rose");
        assert_ok(calyx_compare(a, b, &overlap, NULL));
        assert_about(overlap.either, 1, 0.01);
        assert_true(overlap.both == 0 && overlap.jaccard == 0);
        calyx_free(a);
        calyx_free(b);
    }
}

/* A body whose every bit is set says no more than that there were many. */
static void a_body_that_is_full_is_still_described(void **state) {
    (void)state;
    EACH_KIND_OF_BITS(kind) {
        calyx_filter *a =
            make_filter((calyx_options){.kind = *kind, .bits = 512});
        calyx_overlap overlap;
        add_numbers(a, 0, 20000);

        assert_ok(calyx_compare(a, a, &overlap, NULL));

        const calyx_info info = info_of(a);
        assert_true(info.fill == 1);
        assert_true(isfinite(info.distinct) && info.distinct > 100);
        assert_true(info.fpr_now > 0.9 && info.fpr_now <= 1);
        assert_true(isfinite(overlap.either) && overlap.jaccard == 1);
        calyx_free(a);
    }
}

/* ---- Fold ---------------------------------------------------------------- */

static void a_folded_filter_is_one_made_smaller(void **state) {
    (void)state;
    EACH_KIND_THAT_CAN(kind, CALYX_CAN_FOLD) {
        calyx_options want = {.kind = *kind, .bits = 128 * 512, .fpr = 0.01};
        calyx_filter *f = make_filter(want);
        add_numbers(f, 0, 2000);
        want.probes = info_of(f).probes;
        for (uint64_t factor = 1; factor <= 8; factor *= 2) {
            want.bits = 128 * 512 / factor;
            calyx_filter *small = make_filter(want), *folded = NULL;
            add_numbers(small, 0, 2000);

            assert_ok(calyx_fold(f, factor, &folded, NULL));

            assert_true(same_bodies(folded, small));
            assert_has_numbers(folded, 0, 2000);
            assert_int_equal(info_of(folded).bits, info_of(f).bits / factor);
            calyx_free(small);
            calyx_free(folded);
        }
        calyx_free(f);
    }
}

/* Odd factors serve too, if they divide. */
static void a_filter_folds_by_any_divisor(void **state) {
    (void)state;
    EACH_KIND_THAT_CAN(kind, CALYX_CAN_FOLD) {
        calyx_options want = {.kind = *kind, .bits = 105 * 512, .fpr = 0.01};
        calyx_filter *f = make_filter(want), *folded = NULL;
        add_numbers(f, 0, 2000);
        want.probes = info_of(f).probes;
        want.bits = 512 * 7;
        calyx_filter *small = make_filter(want);
        add_numbers(small, 0, 2000);

        assert_ok(calyx_fold(f, 15, &folded, NULL));

        assert_true(same_bodies(folded, small));
        calyx_free(f);
        calyx_free(folded);
        calyx_free(small);
    }
}

/* To any smaller size: what the smaller one has is there, and where the size is
 * a divisor it is the same filter. */
static void a_filter_folds_to_the_size_of_another(void **state) {
    (void)state;
    static const uint64_t sizes[] = {105, 104, 63, 53, 52, 35, 2, 1};
    EACH_KIND_THAT_CAN(kind, CALYX_CAN_FOLD) {
        calyx_options want = {.kind = *kind, .bits = 105 * 512, .fpr = 0.01};
        calyx_filter *f = make_filter(want);
        add_numbers(f, 0, 2000);
        want.probes = info_of(f).probes;
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            want.bits = 512 * sizes[i];
            calyx_filter *small = make_filter(want), *folded = NULL;
            const bool divides = 105 % sizes[i] == 0;

            const calyx_status status =
                calyx_fold_like(f, small, &folded, NULL);

            if (counts_additions(*kind) && !divides) {
                assert_int_equal(status, CALYX_CANNOT);
                calyx_free(small);
                continue;
            }
            assert_ok(status);
            assert_has_numbers(folded, 0, 2000);
            assert_int_equal(info_of(folded).items, info_of(f).items);
            add_numbers(small, 0, 2000);
            if (divides) assert_true(same_bodies(folded, small));
            calyx_clear(small);
            add_numbers(small, 5000, 5100);
            assert_ok(calyx_merge(small, folded, NULL));
            assert_has_numbers(small, 0, 2000);
            assert_has_numbers(small, 5000, 5100);
            calyx_free(small);
            calyx_free(folded);
        }
        calyx_free(f);
    }
}

/* A block stays one block, or becomes two neighbours. */
static void folding_to_another_size_costs_little_where_it_is_much_smaller(
    void **state) {
    (void)state;
    enum { N = 20000 };
    calyx_options want = {.bits = 10001 * 512, .probes = 6};
    calyx_filter *f = make_filter(want), *folded = NULL;
    add_numbers(f, 0, N);
    want.bits = 1000 * 512;
    calyx_filter *small = make_filter(want);
    assert_ok(calyx_fold_like(f, small, &folded, NULL));
    double rate;
    assert_ok(calyx_rate_at(&want, N + N / 10, &rate, NULL));
    assert_true(info_of(folded).fpr_now < 1.05 * rate);
    calyx_free(f);
    calyx_free(folded);
    calyx_free(small);
}

static void filters_that_differ_are_not_folded_to_each_others_size(
    void **state) {
    (void)state;
    static const struct {
        calyx_options other;
        calyx_status status;
        const char *text;
    } rows[] = {
        {{.bits = 40 * 512, .probes = 6}, CALYX_MISMATCH, "fold the larger"},
        {{.bits = 10 * 512, .probes = 7}, CALYX_MISMATCH, "7"},
        {{.bits = 10 * 512, .probes = 6, .seed = 5}, CALYX_MISMATCH, "seeds"},
        {{.kind = "flat", .bits = 10 * 512, .probes = 6},
         CALYX_MISMATCH,
         "kind flat"},
        {{.capacity = 10, .growth = 2}, CALYX_CANNOT, "grown"},
    };
    calyx_filter *f =
        make_filter((calyx_options){.bits = 20 * 512, .probes = 6});
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        calyx_filter *other = make_filter(rows[i].other), *folded = NULL;
        if (rows[i].other.growth > 0) add_numbers(other, 0, 1000);
        calyx_error why;
        assert_int_equal(calyx_fold_like(f, other, &folded, &why),
                         rows[i].status);
        assert_non_null(strstr(why.text, rows[i].text));
        assert_null(folded);
        calyx_free(other);
    }
    calyx_free(f);
}

static void a_folded_filter_has_the_rate_of_a_small_one(void **state) {
    (void)state;
    enum { N = 100000 };
    EACH_KIND_THAT_CAN(kind, CALYX_CAN_FOLD) {
        calyx_filter *f = make_filter((calyx_options){
            .kind = *kind, .capacity = N, .bits = 392 * 8 * 512});
        add_numbers(f, 0, N);
        const calyx_info whole = info_of(f);
        double last = whole.fpr_now;
        for (uint64_t factor = 2; factor <= 8; factor *= 2) {
            calyx_filter *folded = NULL;
            assert_ok(calyx_fold(f, factor, &folded, NULL));
            const calyx_info info = info_of(folded);

            const uint64_t found = count_found(folded, ABSENT, ABSENT + N);

            const calyx_options like = {.kind = *kind,
                                        .bits = whole.bits / factor,
                                        .probes = whole.probes};
            double rate;
            assert_ok(calyx_rate_at(&like, N, &rate, NULL));
            assert_rate(found, N, rate);
            assert_about(info.fpr_now, rate, 0.01 * rate);
            assert_true(info.fpr_now > last);
            assert_int_equal(info.items, whole.items);
            assert_about(info.distinct, N, 2 * deviation_of(N));
            last = info.fpr_now;
            calyx_free(folded);
        }
        calyx_free(f);
    }
}

/* Large filters are made to be folded: by every power of two up to a 4096th of
 * their blocks. */
static void large_filters_can_be_folded_often(void **state) {
    (void)state;
    EACH_KIND(kind) {
        for (uint64_t keys = 100000; keys < 10000000; keys = keys * 7 / 3) {
            const calyx_options want = {.kind = *kind, .capacity = keys};
            calyx_filter head;
            struct part first;
            assert_ok(plan_filter(&want, &head, &first, NULL));
            const uint64_t blocks = first.shape.blocks;
            for (uint64_t factor = 2; factor <= blocks / 4096; factor *= 2)
                assert_int_equal(blocks % factor, 0);
        }
    }
}

static void a_grown_filter_folds_part_by_part(void **state) {
    (void)state;
    EACH_KIND_THAT_CAN(kind, CALYX_CAN_FOLD) {
        calyx_filter *f = make_filter((calyx_options){
                         .kind = *kind, .capacity = 500000, .growth = 2}),
                     *folded = NULL;
        add_numbers(f, 0, 600000);
        assert_int_equal(info_of(f).parts, 2);

        const calyx_status status = calyx_fold(f, 2, &folded, NULL);

        /* An older part that was folded may seem to have keys of a newer one,
         * and remove would take them off there. */
        if (counts_additions(*kind)) {
            assert_int_equal(status, CALYX_CANNOT);
            assert_null(folded);
        } else {
            assert_ok(status);
            assert_has_numbers(folded, 0, 600000);
            add_numbers(folded, 600000, 610000); /* and it grows on */
            assert_has_numbers(folded, 0, 610000);
        }
        calyx_free(f);
        calyx_free(folded);
    }
}

/* ---- Freeze -------------------------------------------------------------- */

static void a_frozen_filter_answers_the_same(void **state) {
    (void)state;
    enum { N = 100000 };
    calyx_filter *f = make_filter(
        (calyx_options){.kind = "counting", .capacity = N, .seed = 5});
    calyx_filter *frozen = NULL;
    add_numbers(f, 0, N + N / 2);
    for (uint64_t i = N; i < N + N / 2; i++)
        assert_ok(remove_number(f, i, NULL));

    assert_ok(calyx_freeze(f, &frozen, NULL));

    for (uint64_t i = 0; i < 2 * N; i++)
        assert_true(calyx_has_u64(f, i) == calyx_has_u64(frozen, i));
    assert_has_numbers(frozen, 0, N);
    const calyx_info info = info_of(frozen);
    assert_string_equal(info.kind, "line");
    assert_int_equal(info.seed, 5);
    assert_int_equal(info.items, N);
    assert_int_equal(info.bytes, info_of(f).bits / 8);
    assert_in_range(info_of(f).bytes, info.bytes * 5, info.bytes * 6);
    assert_true(info.fpr_now == info_of(f).fpr_now);
    calyx_free(f);
    calyx_free(frozen);
}

/* What was frozen is a line filter like any other. */
static void a_frozen_filter_merges_with_a_line_filter(void **state) {
    (void)state;
    calyx_filter *f = make_filter((calyx_options){.kind = "counting"});
    calyx_filter *line = make_filter((calyx_options){.kind = "line"});
    calyx_filter *frozen = NULL;
    add(f, "rose");
    add(line, "iris");

    assert_ok(calyx_freeze(f, &frozen, NULL));
    assert_ok(calyx_merge(frozen, line, NULL));
    add(frozen, "tulip");

    assert_true(has(frozen, "rose") && has(frozen, "iris"));
    assert_int_equal(calyx_remove(frozen, "rose", 4, NULL), CALYX_CANNOT);
    assert_true(!has(f, "tulip"));
    calyx_free(f);
    calyx_free(line);
    calyx_free(frozen);
}

static void a_grown_counting_filter_freezes_and_grows_on(void **state) {
    (void)state;
    calyx_filter *f = make_filter(
        (calyx_options){.kind = "counting", .capacity = 100, .growth = 2});
    calyx_filter *frozen = NULL;
    add_numbers(f, 0, 1000);

    assert_ok(calyx_freeze(f, &frozen, NULL));
    add_numbers(frozen, 1000, 5000);

    assert_has_numbers(frozen, 0, 5000);
    assert_true(info_of(frozen).parts > info_of(f).parts);
    calyx_free(f);
    calyx_free(frozen);
}

/* ---- Describe ------------------------------------------------------------ */

static void a_filter_is_described_as_it_is(void **state) {
    (void)state;
    enum { N = 100000 };
    EACH_KIND(kind) {
        calyx_filter *f = make_filter((calyx_options){.kind = *kind,
                                                      .capacity = N,
                                                      .fpr = 0.02,
                                                      .hash = "xxh64",
                                                      .seed = 9,
                                                      .strict = true,
                                                      .kernel = "scalar"});
        add_numbers(f, 0, N);

        const calyx_info info = info_of(f);

        const struct part *p = f->newest;
        assert_string_equal(info.kind, *kind);
        assert_string_equal(info.kernel, "scalar");
        assert_string_equal(info.hash, "xxh64");
        assert_int_equal(info.seed, 9);
        assert_int_equal(info.parts, 1);
        assert_int_equal(info.capacity, N);
        assert_int_equal(info.probes, p->shape.probes);
        assert_int_equal(info.bits, p->shape.blocks * f->kind->block_bits);
        assert_int_equal(info.bytes, body_bytes(f->kind, &p->shape));
        assert_true(info.bytes >= info.bits / 8);
        assert_true(info.fpr == 0.02 && info.growth == 0);
        assert_true(info.strict && !info.concurrent && !info.huge_pages);

        /* A false positive on the way in is not counted: at most 2 %. */
        if (counts_additions(*kind))
            assert_int_equal(info.items, N);
        else
            assert_true(odds_at_least(N - info.items, N, 0.02) > UNLIKELY);
        assert_about(info.distinct, N, deviation_of(N));
        /* Few bits a block and few probes: the fill is near a half. Slots can
         * be used up. */
        assert_true(info.fill > 0.3 &&
                    info.fill < (is_table(*kind) ? 0.9 : 0.7));
        assert_rate(count_found(f, ABSENT, ABSENT + N), N, info.fpr_now);
        assert_true(info.fpr_now < 1.05 * info.fpr);
        calyx_free(f);
    }
}

static void an_empty_filter_is_described_as_empty(void **state) {
    (void)state;
    EACH_KIND(kind) {
        calyx_filter *f = make_filter((calyx_options){.kind = *kind});

        const calyx_info info = info_of(f);

        assert_int_equal(info.items, 0);
        assert_true(info.fill == 0 && info.distinct == 0);
        assert_true(info.fpr_now == 0);
        calyx_free(f);
    }
}

static void the_fill_gives_the_distinct_keys_at_any_fill(void **state) {
    (void)state;
    enum { N = 100000 };
    EACH_KIND_OF_BITS(kind) {
        calyx_filter *f =
            make_filter((calyx_options){.kind = *kind, .capacity = N});
        uint64_t keys = 0;
        for (uint64_t more = 10; more <= 2 * N; more *= 2) {
            add_numbers(f, keys, more);
            add_numbers(f, 0, 10); /* known keys are nothing new */
            keys = more;
            assert_about(info_of(f).distinct, (double)keys,
                         2 * deviation_of((double)keys));
        }
        calyx_free(f);
    }
}

/* Also where keys have many probes, of which two may be the same bit. */
static void the_fill_gives_the_distinct_keys_at_any_rate(void **state) {
    (void)state;
    enum { N = 300000 };
    const double rates[] = {1e-3, 1e-4, 1e-6};
    EACH_KIND(kind) {
        for (int i = 0; i < 3; i++) {
            calyx_filter *f = make_filter(
                (calyx_options){.kind = *kind, .capacity = N, .fpr = rates[i]});
            add_numbers(f, 0, N);
            assert_about(info_of(f).distinct, N, 0.25 * sqrt(N));
            calyx_free(f);
        }
    }
}

static void *take_plain(void *context, size_t size, size_t alignment) {
    (void)context;
    static _Alignas(64) uint8_t blocks[3][33 << 20];
    static int next;
    assert_true(size <= sizeof blocks[0] && alignment <= 64);
    return blocks[next++ % 3];
}

static void give_plain(void *context, void *block, size_t size) {
    (void)context, (void)block, (void)size;
}

static void large_bodies_request_huge_pages(void **state) {
    (void)state;
    const uint64_t bits = UINT64_C(8) * (2 << 20);
    const calyx_memory plain = {take_plain, give_plain, NULL};
    calyx_filter *small = make_filter((calyx_options){.bits = bits - 512});
    calyx_filter *large = make_filter((calyx_options){.bits = bits});
    calyx_filter *own =
        make_filter((calyx_options){.bits = bits, .memory = &plain});

    assert_false(info_of(small).huge_pages);
    assert_false(info_of(own).huge_pages);
#if defined(__linux__)
    assert_true(info_of(large).huge_pages);
#endif

    calyx_free(small);
    calyx_free(large);
    calyx_free(own);
}

static void a_concurrent_filter_says_so(void **state) {
    (void)state;
    EACH_KIND(kind) {
        if (counts_additions(*kind)) continue;
        calyx_filter *f =
            make_filter((calyx_options){.kind = *kind, .concurrent = true});
        assert_true(info_of(f).concurrent);
        calyx_free(f);
    }
}

/* ---- Count and remove ---------------------------------------------------- */

static void a_counting_filter_counts(void **state) {
    (void)state;
    calyx_filter *f = make_filter((calyx_options){.kind = "counting"});
    for (uint32_t times = 1; times <= 20; times++) {
        assert_int_equal(add(f, "rose"), times == 1);
        assert_int_equal(calyx_count(f, "rose", 4), times < 15 ? times : 15);
    }
    assert_int_equal(calyx_count(f, "iris", 4), 0);
    assert_int_equal(info_of(f).items, 20);
    calyx_free(f);
}

static void other_kinds_count_to_one(void **state) {
    (void)state;
    EACH_KIND(kind) {
        if (counts_additions(*kind)) continue;
        calyx_filter *f = make_filter((calyx_options){.kind = *kind});
        assert_true(add(f, "rose"));
        assert_false(add(f, "rose"));
        assert_int_equal(calyx_count(f, "rose", 4), 1);
        assert_int_equal(calyx_count(f, "iris", 4), 0);
        assert_int_equal(info_of(f).items, 1);
        calyx_free(f);
    }
}

static void remove_returns_whether_the_key_was_there(void **state) {
    (void)state;
    calyx_filter *f = make_filter((calyx_options){.kind = "counting"});
    bool found = false;
    add(f, "rose");
    add(f, "rose");

    assert_ok(calyx_remove(f, "iris", 4, &found));
    assert_false(found);
    assert_int_equal(info_of(f).items, 2);
    for (int times = 1; times <= 2; times++) {
        assert_true(has(f, "rose"));
        assert_ok(calyx_remove(f, "rose", 4, &found));
        assert_true(found);
    }
    assert_ok(calyx_remove(f, "rose", 4, &found));
    assert_false(found);

    const calyx_info info = info_of(f);
    assert_true(!has(f, "rose") && info.items == 0 && info.fill == 0);
    calyx_free(f);
}

/* By bytes and numbers; from a filter of one part, and a grown one.
 * Every third key is there twice, and numbers from N on are not. */
static void removing_many_is_removing_each(void **state) {
    (void)state;
    enum { N = 3000, ASKED = N + 500 };
    static bool found[ASKED], want_found[ASKED];
    static uint64_t numbers[ASKED];
    static uint8_t bytes[ASKED][8];
    static calyx_key keys[ASKED];
    for (int form = 0; form < 4; form++) {
        const calyx_options want = {.kind = "counting",
                                    .capacity = form < 2 ? 2 * N : N / 8,
                                    .growth = form < 2 ? 0 : 2};
        calyx_filter *f = make_filter(want), *singly = NULL;
        add_numbers(f, 0, N);
        for (uint64_t i = 0; i < N; i += 3)
            assert_ok(calyx_add_u64(f, i, NULL));
        assert_ok(calyx_copy(f, &singly, NULL));
        size_t removed = 0, want_removed = 0;
        for (size_t i = 0; i < ASKED; i++) {
            numbers[i] = i;
            store64(bytes[i], i);
            keys[i] = (calyx_key){bytes[i], 8};
            assert_ok(remove_number(singly, i, &want_found[i]));
            want_removed += want_found[i];
        }

        if (form % 2 == 0)
            assert_ok(calyx_remove_many(f, keys, ASKED, found, &removed));
        else
            assert_ok(
                calyx_remove_many_u64(f, numbers, ASKED, found, &removed));

        assert_memory_equal(found, want_found, ASKED);
        assert_int_equal(removed, want_removed);
        assert_true(same_bodies(f, singly));
        assert_int_equal(info_of(f).items, info_of(singly).items);
        for (uint64_t i = 0; i < N; i += 3) assert_true(calyx_has_u64(f, i));
        assert_ok(calyx_remove_many(f, NULL, 0, NULL, &removed));
        assert_int_equal(removed, 0);
        calyx_free(f);
        calyx_free(singly);
    }
}

/* A counter at 15 no longer knows how many keys it stands for. */
static void a_counter_that_is_full_stays(void **state) {
    (void)state;
    calyx_filter *f = make_filter((calyx_options){.kind = "counting"});
    for (int i = 0; i < 15; i++) add(f, "rose");

    for (int i = 0; i < 30; i++) assert_ok(calyx_remove(f, "rose", 4, NULL));

    assert_true(has(f, "rose"));
    assert_int_equal(calyx_count(f, "rose", 4), 15);
    calyx_free(f);
}

static void removing_all_leaves_an_empty_body(void **state) {
    (void)state;
    const calyx_options want = {
        .kind = "counting", .capacity = 500, .growth = 2};
    calyx_filter *f = make_filter(want);
    add_numbers(f, 0, 5000);
    assert_true(info_of(f).parts > 1);

    for (uint64_t i = 0; i < 5000; i++) {
        bool found;
        assert_ok(remove_number(f, i, &found));
        assert_true(found);
    }

    assert_int_equal(info_of(f).items, 0);
    assert_true(info_of(f).fill == 0);
    calyx_free(f);
}

static void merged_counters_are_sums(void **state) {
    (void)state;
    const calyx_options want = {.kind = "counting"};
    calyx_filter *a = make_filter(want), *b = make_filter(want);
    for (int i = 0; i < 3; i++) add(a, "rose");
    for (int i = 0; i < 4; i++) add(b, "rose");
    for (int i = 0; i < 9; i++) add(a, "iris"), add(b, "iris");

    assert_ok(calyx_merge(a, b, NULL));

    assert_int_equal(calyx_count(a, "rose", 4), 7);
    assert_int_equal(calyx_count(a, "iris", 4), 15);
    assert_int_equal(calyx_count(b, "rose", 4), 4);
    calyx_free(a);
    calyx_free(b);
}

/* ---- In steps ------------------------------------------------------------ */

static void merge_in_steps(calyx_filter *f, const calyx_filter *other,
                           struct generator *g) {
    const uint64_t end = info_of(other).row_bytes;
    calyx_progress at = {0};
    while (at.at < end) {
        const uint64_t before = at.at, most = 64 + random_below(g, 1000);
        assert_ok(calyx_merge_some(f, other, most, &at, NULL));
        if (is_table(info_of(f).kind)) /* which may have to grow first */
            assert_true(at.at >= before);
        else
            assert_true(at.at > before && at.at - before <= most);
    }
    assert_int_equal(at.at, end);
}

static void merging_in_steps_is_merging_at_once(void **state) {
    (void)state;
    struct generator g = {3};
    for (int grows = 0; grows <= 1; grows++)
        EACH_KIND_THAT_CAN(kind, CALYX_CAN_MERGE) {
            const calyx_options want = {.kind = *kind,
                                        .capacity = grows ? 300 : 3000,
                                        .growth = grows ? 2 : 0};
            if (grows && counts_additions(*kind)) continue;
            calyx_filter *a = make_filter(want), *b = make_filter(want), *copy,
                         *empty;
            add_numbers(b, 1000, 3000);
            if (grows && !is_table(*kind)) { /* into an empty one alone */
                calyx_free(a);
                assert_ok(calyx_new_alike(b, &a, NULL));
            } else {
                add_numbers(a, 0, 2000);
            }
            assert_ok(calyx_copy(a, &copy, NULL));
            assert_ok(calyx_new_alike(b, &empty, NULL));
            assert_int_equal(info_of(empty).items, 0);
            assert_int_equal(info_of(empty).parts, info_of(b).parts);

            assert_ok(calyx_merge(a, b, NULL));
            merge_in_steps(copy, b, &g);
            merge_in_steps(empty, b, &g);

            const bool is_order = is_table(*kind); /* that decides bytes */
            assert_true(is_order ||
                        (same_bodies(a, copy) && same_bodies(b, empty)));
            assert_has_numbers(copy, grows && !is_order ? 1000 : 0, 3000);
            assert_has_numbers(empty, 1000, 3000);
            assert_int_equal(info_of(a).items, info_of(copy).items);
            assert_int_equal(info_of(b).items, info_of(empty).items);
            merge_in_steps(empty, empty, &g); /* which changes nothing */
            assert_true(is_order || same_bodies(b, empty));
            calyx_free(a);
            calyx_free(b);
            calyx_free(copy);
            calyx_free(empty);
        }
}

static void both_filters_may_grow_between_steps(void **state) {
    (void)state;
    EACH_KIND_THAT_CAN(kind, CALYX_CAN_MERGE) {
        const calyx_options want = {
            .kind = *kind, .capacity = 3000, .growth = 2};
        calyx_filter *a = make_filter(want), *b = make_filter(want);
        add_numbers(a, 0, 2900);
        add_numbers(b, 5000, 7900);
        const uint64_t end = info_of(b).row_bytes;
        calyx_progress at = {0};
        calyx_status status = CALYX_OK;
        for (int turn = 0; at.at < end && status == CALYX_OK; turn++) {
            status = calyx_merge_some(a, b, 640, &at, NULL);
            if (turn == 1) add_numbers(a, 10000, 13000);
            if (turn == 2) add_numbers(b, 20000, 23000);
        }
        if (counts_additions(*kind)) { /* an older part must not gain counts */
            assert_int_equal(status, CALYX_CANNOT);
        } else {
            assert_ok(status);
            assert_has_numbers(a, 5000, 7900);
        }
        assert_has_numbers(a, 0, 2900);
        assert_has_numbers(a, 10000, 13000);
        calyx_free(a);
        calyx_free(b);
    }
}

static void comparing_in_steps_is_comparing_at_once(void **state) {
    (void)state;
    struct generator g = {4};
    EACH_KIND_THAT_CAN(kind, CALYX_CAN_INTERSECT) {
        const calyx_options want = {.kind = *kind, .capacity = 3000};
        calyx_filter *a = make_filter(want), *b = make_filter(want);
        add_numbers(a, 0, 2000);
        add_numbers(b, 1000, 3000);
        calyx_overlap once, stepwise;
        calyx_progress at = {0};
        assert_ok(calyx_compare(a, b, &once, NULL));
        while (at.at < info_of(a).row_bytes)
            assert_ok(calyx_compare_some(a, b, 64 + random_below(&g, 1000), &at,
                                         &stepwise, NULL));
        assert_memory_equal(&once, &stepwise, sizeof once);
        calyx_free(a);
        calyx_free(b);
    }
}

static void a_step_outside_of_the_row_is_refused(void **state) {
    (void)state;
    calyx_filter *a = make_filter((calyx_options){.capacity = 3000});
    calyx_filter *b = make_filter((calyx_options){.capacity = 3000});
    calyx_filter *other = make_filter((calyx_options){.capacity = 9000});
    add_numbers(b, 0, 100);
    const uint64_t end = info_of(b).row_bytes;
    const uint64_t wrong[][2] = {
        {end, 64}, {end + 64, 64}, {UINT64_MAX, 64},           {1, 64},
        {0, 63},   {0, 0},         {-(uint64_t)64, UINT64_MAX}};
    calyx_overlap overlap;
    calyx_error why;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        calyx_progress at = {.at = wrong[i][0]};
        assert_int_equal(calyx_merge_some(a, b, wrong[i][1], &at, &why),
                         CALYX_BAD_ARGUMENT);
        assert_int_equal(
            calyx_compare_some(a, b, wrong[i][1], &at, &overlap, &why),
            CALYX_BAD_ARGUMENT);
        assert_int_equal(at.at, wrong[i][0]);
    }
    calyx_progress at = {0};
    assert_int_equal(calyx_merge_some(a, other, 64, &at, &why), CALYX_MISMATCH);
    assert_int_equal(info_of(a).fill > 0, 0);
    calyx_free(a);
    calyx_free(b);
    calyx_free(other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_answers_the_same),
        cmocka_unit_test(a_copy_goes_its_own_way),
        cmocka_unit_test(a_copy_grows_as_the_filter_would),
        cmocka_unit_test(what_is_made_like_another_is_as_that_was_new),
        cmocka_unit_test(an_estimate_is_a_description_from_the_first_bits),
        cmocka_unit_test(clear_forgets_all_and_keeps_the_parameters),
        cmocka_unit_test(merge_is_a_union),
        cmocka_unit_test(merging_equals_adding_both),
        cmocka_unit_test(merging_a_filter_with_itself_changes_nothing),
        cmocka_unit_test(merging_an_empty_filter_changes_nothing),
        cmocka_unit_test(of_grown_filters_only_tables_merge),
        cmocka_unit_test(grown_counting_filters_refuse_to_merge),
        cmocka_unit_test(intersection_keeps_the_keys_of_both),
        cmocka_unit_test(grown_filters_refuse_to_intersect),
        cmocka_unit_test(removing_after_an_intersection_loses_no_other),
        cmocka_unit_test(an_overlap_is_estimated_well),
        cmocka_unit_test(empty_filters_are_equal),
        cmocka_unit_test(a_body_that_is_full_is_still_described),
        cmocka_unit_test(a_folded_filter_is_one_made_smaller),
        cmocka_unit_test(a_filter_folds_by_any_divisor),
        cmocka_unit_test(a_filter_folds_to_the_size_of_another),
        cmocka_unit_test(
            folding_to_another_size_costs_little_where_it_is_much_smaller),
        cmocka_unit_test(
            filters_that_differ_are_not_folded_to_each_others_size),
        cmocka_unit_test(a_folded_filter_has_the_rate_of_a_small_one),
        cmocka_unit_test(large_filters_can_be_folded_often),
        cmocka_unit_test(a_grown_filter_folds_part_by_part),
        cmocka_unit_test(a_frozen_filter_answers_the_same),
        cmocka_unit_test(a_frozen_filter_merges_with_a_line_filter),
        cmocka_unit_test(a_grown_counting_filter_freezes_and_grows_on),
        cmocka_unit_test(a_filter_is_described_as_it_is),
        cmocka_unit_test(an_empty_filter_is_described_as_empty),
        cmocka_unit_test(the_fill_gives_the_distinct_keys_at_any_fill),
        cmocka_unit_test(the_fill_gives_the_distinct_keys_at_any_rate),
        cmocka_unit_test(large_bodies_request_huge_pages),
        cmocka_unit_test(a_concurrent_filter_says_so),
        cmocka_unit_test(a_counting_filter_counts),
        cmocka_unit_test(other_kinds_count_to_one),
        cmocka_unit_test(remove_returns_whether_the_key_was_there),
        cmocka_unit_test(removing_many_is_removing_each),
        cmocka_unit_test(a_counter_that_is_full_stays),
        cmocka_unit_test(removing_all_leaves_an_empty_body),
        cmocka_unit_test(merged_counters_are_sums),
        cmocka_unit_test(merging_in_steps_is_merging_at_once),
        cmocka_unit_test(both_filters_may_grow_between_steps),
        cmocka_unit_test(comparing_in_steps_is_comparing_at_once),
        cmocka_unit_test(a_step_outside_of_the_row_is_refused),
    };
    return RUN_TESTS(tests);
}
