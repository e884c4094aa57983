/*
 * Whatever people may ask for by mistake: they get a status, and a text that
 * says what was wanted and what was found. Nothing else happens.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

static const uint64_t MOST_KEYS = UINT64_C(1) << 40;
static const uint64_t MOST_BITS = UINT64_C(1) << 44;
static const uint8_t KEY[16] = "sixteen secrets";
static const uint8_t OTHER_KEY[16] = "sixteen Secrets";

/* ---- Options that no filter can be made of ------------------------------- */

/* What was wanted, and what was found, stand in the text. */
struct refusal {
    calyx_options want;
    calyx_status status;
    const char *wanted, *found;
};

#define BAD   CALYX_BAD_ARGUMENT
#define KINDS "there are: line, line2, "

static const struct refusal refusals[] = {
    /* Capacity, and bits. */
    {{.capacity = (UINT64_C(1) << 40) + 1},
     BAD,
     "at most 2^40",
     "1099511627777"},
    {{.capacity = UINT64_MAX}, BAD, "at most 2^40", "18446744073709551615"},
    {{.bits = (UINT64_C(1) << 44) + 1}, BAD, "at most 2^44", "17592186044417"},
    {{.bits = UINT64_MAX}, BAD, "at most 2^44", "18446744073709551615"},
    {{.bits = 511}, BAD, "line filters have at least 512 bits", "511"},
    {{.kind = "line2", .bits = 1}, BAD, "at least 512 bits", "1"},
    {{.kind = "split", .bits = 255}, BAD, "at least 256 bits", "255"},
    {{.kind = "counting", .bits = 100}, BAD, "at least 512 bits", "100"},
    {{.kind = "bucket", .bits = 511}, BAD, "at least 512 bits", "511"},
    {{.kind = "split", .bits = UINT64_C(1) << 40},
     BAD,
     "split filters have at most 1099511627520 bits",
     "1099511627776"},
    {{.capacity = UINT64_C(1) << 40, .fpr = 1e-6},
     BAD,
     "line filter cannot be large enough",
     "1099511627776 keys"},
    {{.kind = "split", .capacity = UINT64_C(1) << 40},
     BAD,
     "split filter cannot be large enough",
     "1099511627776 keys"},
    {{.probes = 1, .capacity = 1000000000, .fpr = 1e-6},
     BAD,
     "cannot be large enough",
     "1000000000 keys at a rate of 1e-06"},
    {{.kind = "flat", .bits = 4, .fpr = 0.01}, BAD, "hold no key", "4 bits"},
    {{.capacity = 1000, .fpr = 0.01, .bits = 10000},
     BAD,
     "any two of them decide the third",
     "all given"},

    {{0}, BAD, "needs capacity, the number of keys to hold", "growth"},
    {{.fpr = 0.001}, BAD, "needs capacity, the number of keys", "bits"},

    /* The rate. */
    {{.fpr = 1}, BAD, "fpr must lie between 0 and 1", "1"},
    {{.fpr = 1.5}, BAD, "fpr must lie between 0 and 1", "1.5"},
    {{.fpr = -0.01}, BAD, "fpr must lie between 0 and 1", "-0.01"},
    {{.fpr = NAN}, BAD, "fpr must lie between 0 and 1", "nan"},
    {{.fpr = INFINITY}, BAD, "fpr must lie between 0 and 1", "inf"},
    {{.fpr = -INFINITY}, BAD, "fpr must lie between 0 and 1", "-inf"},
    {{.fpr = 5e-324}, BAD, "line filters keep rates down to 1e-08", "e-324"},
    {{.kind = "flat", .fpr = 5e-324}, BAD, "rates down to 1e-15", "e-324"},
    {{.kind = "line2", .fpr = 1e-15}, BAD, "rates down to 1e-14", "1e-15"},
    {{.fpr = 1e-9}, BAD, "of all kinds flat goes lowest, to 1e-15", "1e-09"},
    {{.fpr = 1e-9, .growth = 2}, BAD, "flat goes lowest, to 1e-11", "1e-09"},
    {{.kind = "split", .fpr = 1e-8}, BAD, "rates down to 1e-07", "1e-08"},
    {{.kind = "counting", .fpr = 1e-9}, BAD, "rates down to 1e-08", "1e-09"},
    {{.fpr = 1e-5, .growth = 2},
     BAD,
     "growing distinct filters keep rates down",
     "1e-05"},

    /* Rates that a hash of 64 bits cannot keep with this number of keys: two
     * keys with one hash are one key. */
    {{.kind = "flat", .capacity = UINT64_C(1) << 40, .fpr = 1e-9},
     BAD,
     "a hash of 64 bits",
     "1e-09"},
    {{.kind = "line2", .capacity = UINT64_C(1) << 30, .fpr = 1e-10},
     BAD,
     "a hash of 64 bits",
     "1e-10"},

    /* Names. The text lists those there are. */
    {{.kind = "spilt"}, BAD, KINDS, "'spilt'"},
    {{.kind = ""}, BAD, KINDS, "''"},
    {{.kind = "Line"}, BAD, KINDS, "'Line'"},
    {{.kind = "line "}, BAD, KINDS, "'line '"},
    {{.hash = "md5"}, BAD, "xxh3, xxh64", "'md5'"},
    {{.hash = ""}, BAD, "xxh3, xxh64", "''"},
    {{.kernel = "mmx"}, BAD, "scalar", "'mmx'"},

    /* Probes. */
    {{.probes = 17}, BAD, "line filters take 1 to 16 probes", "17"},
    {{.kind = "flat", .probes = 65}, BAD, "1 to 64 probes", "65"},
    {{.kind = "flat", .probes = UINT32_MAX}, BAD, "1 to 64", "4294967295"},
    {{.kind = "line2", .probes = 7}, BAD, "in steps of 2", "7"},
    {{.kind = "line2", .probes = 34}, BAD, "2 to 32 probes", "34"},
    {{.kind = "split", .probes = 7}, BAD, "8 probes", "7"},
    {{.kind = "split", .probes = 16}, BAD, "8 probes", "16"},
    {{.kind = "counting", .probes = 65}, BAD, "1 to 16 probes", "65"},

    /* Growth. */
    {{.growth = NAN}, BAD, "growth must be 0 or from 1.25 to 16", "nan"},
    {{.growth = 0.5}, BAD, "growth must be 0 or from 1.25 to 16", "0.5"},
    {{.growth = 1.24}, BAD, "growth must be 0 or from 1.25 to 16", "1.24"},
    {{.growth = 17}, BAD, "growth must be 0 or from 1.25 to 16", "17"},
    {{.growth = -2}, BAD, "growth must be 0 or from 1.25 to 16", "-2"},
    {{.growth = INFINITY}, BAD, "growth must be 0 or from 1.25 to 16", "inf"},
    {{.growth = 2, .bits = 10000}, BAD, "give capacity and fpr", "not bits"},
    {{.growth = 2, .probes = 5}, BAD, "give capacity and fpr", "probes"},
    {{.growth = 2, .strict = true}, BAD, "never full", "strict"},

    /* Hashes, seeds and keys. */
    {{.key = KEY}, BAD, "xxh3 takes a seed", "not a key"},
    {{.kind = "split", .key = KEY}, BAD, "xxh64 takes a seed", "not a key"},

    {{.kind = "counting", .concurrent = true},
     CALYX_CANNOT,
     "one writer at a time",
     "concurrent"},
};
enum { REFUSALS = sizeof refusals / sizeof refusals[0] };

/* A text as the header promises it: one line, terminated, and some words. */
static void assert_is_one_line(const calyx_error *why) {
    const char *end = memchr(why->text, 0, sizeof why->text);
    assert_non_null(end);
    assert_true(end > why->text);
    for (const char *c = why->text; c < end; c++)
        if ((unsigned char)*c < ' ') fail_msg("not one line: %s", why->text);
}

static void assert_says(const calyx_error *why, calyx_status status,
                        const char *wanted, const char *found) {
    assert_int_equal(why->status, status);
    assert_is_one_line(why);
    if (!strstr(why->text, wanted) || !strstr(why->text, found))
        fail_msg("'%s' should say '%s' and '%s'", why->text, wanted, found);
}

/* Letters where a text should come to stand, so that it has to end itself. */
static calyx_error unwritten(void) {
    calyx_error why;
    memset(&why, 'x', sizeof why);
    return why;
}

static void assert_refused(const struct refusal *r) {
    calyx_filter *const untouched = (calyx_filter *)(uintptr_t)64;
    calyx_filter *f = untouched;
    calyx_error why = unwritten();

    const calyx_status status = calyx_new(&r->want, &f, &why);

    if (status == CALYX_OK)
        fail_msg("made, though it should say '%s' and '%s'", r->wanted,
                 r->found);
    assert_int_equal(status, r->status);
    assert_says(&why, r->status, r->wanted, r->found);
    assert_ptr_equal(f, untouched);
}

static void every_bad_option_is_refused_in_words_that_help(void **state) {
    (void)state;
    for (int i = 0; i < REFUSALS; i++) assert_refused(&refusals[i]);
}

static void siphash_wants_a_key_and_no_seed(void **state) {
    (void)state;
    const struct refusal without = {
        {.hash = "siphash"}, BAD, "siphash needs a key of 16 bytes", "siphash"};
    const struct refusal seeded = {{.hash = "siphash", .key = KEY, .seed = 1},
                                   BAD,
                                   "siphash takes a key of 16 bytes",
                                   "not a seed"};

    assert_refused(&without);
    assert_refused(&seeded);
}

static void planning_refuses_what_making_refuses(void **state) {
    (void)state;
    const calyx_workload load = {1, 100, 0.5, 8, {0}};
    for (int i = 0; i < REFUSALS; i++) {
        const struct refusal *r = &refusals[i];
        calyx_info info = {.items = 7};
        calyx_costs costs = {.nothing = {7, 7}};
        double rate = 7;
        calyx_error why[3] = {unwritten(), unwritten(), unwritten()};

        const calyx_status planned = calyx_plan(&r->want, &info, &why[0]);
        const calyx_status rated = calyx_rate_at(&r->want, 1, &rate, &why[1]);
        const calyx_status weighed =
            calyx_weigh(&r->want, &load, &costs, &why[2]);

        assert_int_equal(planned, r->status);
        assert_int_equal(rated, r->status);
        assert_int_equal(weighed, r->status);
        for (int j = 0; j < 3; j++)
            assert_says(&why[j], r->status, r->wanted, r->found);
        assert_true(info.items == 7 && rate == 7 && costs.nothing.time == 7);
    }
}

static void refusals_need_no_error_to_write_to(void **state) {
    (void)state;
    const calyx_workload load = {1, 100, 0.5, 8, {0}};
    for (int i = 0; i < REFUSALS; i++) {
        const struct refusal *r = &refusals[i];
        calyx_filter *f = NULL;
        calyx_info info;
        calyx_costs costs;
        double rate;
        assert_int_equal(calyx_new(&r->want, &f, NULL), r->status);
        assert_int_equal(calyx_plan(&r->want, &info, NULL), r->status);
        assert_int_equal(calyx_rate_at(&r->want, 1, &rate, NULL), r->status);
        assert_int_equal(calyx_weigh(&r->want, &load, &costs, NULL), r->status);
    }
}

/* ---- Zero is the default, and the limits themselves are fine ------------- */

static void zero_means_line_at_one_percent_of_fixed_size(void **state) {
    (void)state;
    calyx_info info;
    assert_ok(calyx_plan(&(calyx_options){.capacity = 9}, &info, NULL));
    assert_string_equal(info.kind, "line");
    assert_true(info.fpr == 0.01);
    assert_true(info.growth == 0);
}

static void a_filter_that_grows_begins_with_a_thousand_keys(void **state) {
    (void)state;
    calyx_info info;
    assert_ok(calyx_plan(&(calyx_options){.growth = 2}, &info, NULL));
    assert_int_equal(info.capacity, 1000);
}

static void the_limits_themselves_are_within_them(void **state) {
    (void)state;
    calyx_info info;
    const calyx_options fine[] = {
        {.capacity = MOST_KEYS},
        {.kind = "flat", .capacity = MOST_KEYS},
        {.bits = MOST_BITS},
        {.bits = 512, .fpr = 0.5},
        {.kind = "flat", .bits = 1, .capacity = 1},
        {.capacity = 9, .fpr = 1e-8},
        {.capacity = 9, .fpr = 0.9999999999999999},
        {.kind = "flat", .capacity = 9, .probes = 64},
        {.kind = "line2", .capacity = 9, .probes = 32},
        {.kind = "split", .capacity = 9, .probes = 8},
        {.growth = 1.25},
        {.growth = 16},
        {.capacity = 9, .seed = UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++)
        assert_ok(calyx_plan(&fine[i], &info, NULL));
}

/* ---- Names --------------------------------------------------------------- */

static void a_name_of_any_length_leaves_the_text_whole(void **state) {
    (void)state;
    static char name[5000];
    memset(name, 'y', sizeof name - 1);
    const calyx_options long_names[] = {
        {.kind = name}, {.hash = name}, {.kernel = name}};
    for (int i = 0; i < 3; i++) {
        calyx_filter *f = NULL;
        calyx_error why = unwritten();
        assert_int_equal(calyx_new(&long_names[i], &f, &why), BAD);
        assert_says(&why, BAD, "there are: ", "yyyy");
    }
}

/* Names come from people, files and networks; the text must stay one line that
 * can go into a log. */
static void a_name_with_line_breaks_leaves_the_text_one_line(void **state) {
    (void)state;
    const calyx_options broken[] = {
        {.kind = "li\nne"}, {.hash = "xxh\r\n3"}, {.kernel = "\x1b[31m"}};
    for (int i = 0; i < 3; i++) {
        calyx_filter *f = NULL;
        calyx_error why = unwritten();
        assert_int_equal(calyx_new(&broken[i], &f, &why), BAD);
        assert_is_one_line(&why);
    }
}

static char *kernel_before; /* CALYX_KERNEL, as the test found it */

static int remember_environment(void **state) {
    (void)state;
    const char *is = getenv("CALYX_KERNEL");
    kernel_before = is ? strdup(is) : NULL;
    return 0;
}

static int restore_environment(void **state) {
    (void)state;
    if (kernel_before)
        setenv("CALYX_KERNEL", kernel_before, 1);
    else
        unsetenv("CALYX_KERNEL");
    free(kernel_before);
    return 0;
}

static bool is_kernel_here(const char *wanted) {
    for (const char *const *name = calyx_kernels(); *name; name++)
        if (strcmp(*name, wanted) == 0) return true;
    return false;
}

/* `line` may have no kernel for the best level of the processor. */
static void assert_has_usual_kernel(const calyx_filter *f) {
    unsetenv("CALYX_KERNEL");
    calyx_filter *usual = make_filter((calyx_options){0});
    assert_string_equal(info_of(f).kernel, info_of(usual).kernel);
    calyx_free(usual);
}

static void an_unknown_kernel_in_the_environment_is_refused(void **state) {
    (void)state;
    const struct refusal r = {{0}, BAD, "scalar", "'quantum'"};

    setenv("CALYX_KERNEL", "quantum", 1);

    assert_refused(&r);
}

/* One of these is of another processor, wherever the test runs. */
static void a_kernel_of_other_processors_in_the_environment_is_the_best(
    void **state) {
    (void)state;
    const char *const foreign = is_kernel_here("neon") ? "avx2" : "neon";
    setenv("CALYX_KERNEL", foreign, 1);

    calyx_filter *f = make_filter((calyx_options){0});

    assert_has_usual_kernel(f);
    calyx_free(f);
    const struct refusal r = {{.kernel = foreign}, BAD, "scalar", foreign};
    assert_refused(&r); /* an option is meant for this processor */
}

static void an_empty_kernel_in_the_environment_is_none(void **state) {
    (void)state;
    setenv("CALYX_KERNEL", "", 1);

    calyx_filter *f = make_filter((calyx_options){0});

    assert_has_usual_kernel(f);
    calyx_free(f);
}

static void a_kernel_asked_for_overrides_the_environment(void **state) {
    (void)state;
    setenv("CALYX_KERNEL", "quantum", 1);

    calyx_filter *f = make_filter((calyx_options){.kernel = "scalar"});

    assert_string_equal(info_of(f).kernel, "scalar");
    calyx_free(f);
}

/* ---- Filters that do not fit together ------------------------------------ */

struct mismatch {
    calyx_options one, other;
    const char *wanted, *found;
};

static const struct mismatch mismatches[] = {
    {{.kind = "line"}, {.kind = "flat"}, "kind line", "kind flat"},
    {{.kind = "line"}, {.kind = "counting"}, "kind line", "kind counting"},
    {{.hash = "xxh3"}, {.hash = "xxh64"}, "with xxh3", "with xxh64"},
    {{.seed = 1}, {.seed = 2}, "their seeds differ", "the same seed"},
    {{.capacity = 1000}, {.capacity = 2000}, "blocks", "same number of keys"},
    {{.fpr = 0.01}, {.fpr = 0.001}, "probes", "same rate"},
    {{.bits = 5120, .probes = 4}, {.bits = 5120, .probes = 5}, " 4", " 5"},
};
enum { MISMATCHES = sizeof mismatches / sizeof mismatches[0] };

/* Neither union nor intersection nor comparison, in either order; and all are
 * left as they were. */
static void assert_do_not_fit(calyx_filter *a, calyx_filter *b,
                              const char *wanted, const char *found) {
    add(a, "rose");
    add(b, "iris");
    calyx_overlap overlap = {7, 7, 7, {0}};
    calyx_error why[4] = {unwritten(), unwritten(), unwritten(), unwritten()};
    const calyx_status no = CALYX_MISMATCH;

    assert_int_equal(calyx_merge(a, b, &why[0]), no);
    assert_int_equal(calyx_merge(b, a, &why[1]), no);
    assert_int_equal(calyx_intersect(a, b, &why[2]), no);
    assert_int_equal(calyx_compare(a, b, &overlap, &why[3]), no);
    assert_int_equal(calyx_merge(a, b, NULL), no);
    assert_int_equal(calyx_fits(a, b, NULL), no);
    assert_int_equal(calyx_intersect(a, b, NULL), no);
    assert_int_equal(calyx_compare(a, b, &overlap, NULL), no);

    for (int i = 0; i < 4; i++) assert_says(&why[i], no, wanted, found);
    assert_true(overlap.either == 7 && overlap.both == 7);
    assert_true(has(a, "rose") && !has(a, "iris"));
    assert_true(has(b, "iris") && !has(b, "rose"));
}

static void filters_made_differently_do_not_fit(void **state) {
    (void)state;
    for (int i = 0; i < MISMATCHES; i++) {
        const struct mismatch *m = &mismatches[i];
        calyx_filter *a = make_filter(m->one), *b = make_filter(m->other);
        assert_do_not_fit(a, b, m->wanted, m->found);
        calyx_free(a);
        calyx_free(b);
    }
}

static void filters_with_different_keys_do_not_fit(void **state) {
    (void)state;
    calyx_filter *a =
        make_filter((calyx_options){.hash = "siphash", .key = KEY});
    calyx_filter *b =
        make_filter((calyx_options){.hash = "siphash", .key = OTHER_KEY});

    assert_do_not_fit(a, b, "different secret keys", "filters");

    calyx_free(a);
    calyx_free(b);
}

/* A text goes into logs. The secret does not. */
static void an_error_about_secret_keys_does_not_show_them(void **state) {
    (void)state;
    calyx_filter *a =
        make_filter((calyx_options){.hash = "siphash", .key = KEY});
    calyx_filter *b =
        make_filter((calyx_options){.hash = "siphash", .key = OTHER_KEY});
    calyx_error why = unwritten();

    assert_int_equal(calyx_merge(a, b, &why), CALYX_MISMATCH);

    assert_null(strstr(why.text, "secrets"));
    assert_null(strstr(why.text, "73697874")); /* the same in hexadecimal */
    calyx_free(a);
    calyx_free(b);
}

static void filters_grown_differently_do_not_fit(void **state) {
    (void)state;
    const calyx_options want = {.capacity = 100, .growth = 2};
    calyx_filter *a = make_filter(want), *b = make_filter(want);
    add_numbers(b, 0, 200);

    assert_int_not_equal(info_of(a).parts, info_of(b).parts);
    calyx_error why = unwritten();
    assert_int_equal(calyx_merge(a, b, &why), CALYX_CANNOT);

    assert_says(&why, CALYX_CANNOT, "kind distinct", "have grown");
    assert_int_equal(info_of(a).items, 0);
    calyx_free(a);
    calyx_free(b);
}

static void filters_that_have_grown_cannot_be_compared(void **state) {
    (void)state;
    const calyx_options want = {.capacity = 100, .growth = 2};
    calyx_filter *a = make_filter(want), *b = make_filter(want);
    add_numbers(a, 0, 200);
    add_numbers(b, 100, 300);
    calyx_overlap overlap = {7, 7, 7, {0}};
    calyx_error why = unwritten();

    assert_int_equal(calyx_compare(a, b, &overlap, &why), CALYX_CANNOT);

    assert_says(&why, CALYX_CANNOT, "needs filters of one part", "grown");
    assert_true(overlap.either == 7);
    calyx_free(a);
    calyx_free(b);
}

/* ---- What a kind cannot do ----------------------------------------------- */

static void only_counting_filters_forget_and_freeze(void **state) {
    (void)state;
    EACH_KIND(kind) {
        if (counts_additions(*kind)) continue;
        calyx_filter *f = make_filter((calyx_options){.kind = *kind});
        calyx_filter *frozen = NULL;
        calyx_error why = unwritten();
        bool found = true;
        add(f, "rose");

        const calyx_status removed = calyx_remove(f, "rose", 4, &found);
        const calyx_status froze = calyx_freeze(f, &frozen, &why);

        assert_int_equal(removed, CALYX_CANNOT);
        assert_true(has(f, "rose") && found);
        assert_int_equal(info_of(f).items, 1);
        assert_int_equal(froze, CALYX_CANNOT);
        assert_says(&why, CALYX_CANNOT, "only counting filters", *kind);
        assert_null(frozen);
        assert_int_equal(calyx_freeze(f, &frozen, NULL), CALYX_CANNOT);
        assert_int_equal(calyx_remove(f, "rose", 4, NULL), CALYX_CANNOT);
        const calyx_key rose = {"rose", 4};
        assert_int_equal(calyx_remove_many(f, &rose, 1, NULL, NULL),
                         CALYX_CANNOT);
        assert_true(has(f, "rose"));
        calyx_free(f);
    }
}

static void folding_wants_a_factor_that_divides(void **state) {
    (void)state;
    const uint64_t factors[] = {0, 3, 16, 20, UINT64_MAX};
    calyx_filter *f = make_filter((calyx_options){.bits = 10 * 512});
    add(f, "rose");
    for (int i = 0; i < 5; i++) {
        calyx_filter *folded = NULL;
        calyx_error why = unwritten();
        char factor[24];
        snprintf(factor, sizeof factor, "by %llu",
                 (unsigned long long)factors[i]);

        assert_int_equal(calyx_fold(f, factors[i], &folded, &why), BAD);

        assert_says(&why, BAD, "10 blocks", factor);
        assert_null(folded);
        assert_int_equal(calyx_fold(f, factors[i], &folded, NULL), BAD);
    }
    assert_true(has(f, "rose"));
    calyx_free(f);
}

/* ---- Planning ------------------------------------------------------------ */

static void a_workload_that_cannot_be_is_refused(void **state) {
    (void)state;
    const calyx_workload impossible[] = {
        {-1, 100, 0.5, 8, {0}},       {NAN, 100, 0.5, 8, {0}},
        {INFINITY, 100, 0.5, 8, {0}}, {1, -100, 0.5, 8, {0}},
        {1, NAN, 0.5, 8, {0}},        {1, INFINITY, 0.5, 8, {0}},
        {1, 100, -0.1, 8, {0}},       {1, 100, 1.1, 8, {0}},
        {1, 100, NAN, 8, {0}},        {1, 100, 0.5, -8, {0}},
        {1, 100, 0.5, NAN, {0}},      {1, 100, 0.5, INFINITY, {0}},
    };
    const calyx_options want = {.capacity = 1000};
    for (size_t i = 0; i < sizeof impossible / sizeof impossible[0]; i++) {
        calyx_costs costs = {.nothing = {7, 7}};
        calyx_error why = unwritten();
        assert_int_equal(calyx_weigh(&want, &impossible[i], &costs, &why), BAD);
        assert_says(&why, BAD, "must be 0 or more", "present from 0 to 1");
        assert_true(costs.nothing.time == 7);
    }
}

/* Of bits and a rate follows a capacity, and of a capacity a rate; what follows
 * must be what a hash of 64 bits can keep: an absent key has the hash of one of
 * n keys with odds n / 2^64. */
static void no_plan_promises_more_than_its_hash_can_keep(void **state) {
    (void)state;
    const calyx_options wants[] = {
        {.kind = "flat", .bits = MOST_BITS, .fpr = 1e-15},
        {.kind = "flat", .bits = MOST_BITS, .capacity = 1000},
        {.kind = "line2", .bits = MOST_BITS, .fpr = 1e-14},
        {.kind = "line2", .bits = MOST_BITS, .capacity = 1000},
        {.kind = "line", .bits = MOST_BITS, .capacity = 1000},
    };
    for (size_t i = 0; i < sizeof wants / sizeof wants[0]; i++) {
        calyx_info info;
        if (calyx_plan(&wants[i], &info, NULL) != CALYX_OK) continue;
        const double twins = ldexp((double)info.capacity, -64);
        if (info.fpr < twins)
            fail_msg("%s promises %g with %g keys, whose hashes alone make %g",
                     info.kind, info.fpr, (double)info.capacity, twins);
    }
}

/* ---- All of them --------------------------------------------------------- */

static void every_status_has_a_phrase_of_its_own(void **state) {
    (void)state;
    const char *unknown = calyx_status_text((calyx_status)12345);
    assert_string_equal(calyx_status_text((calyx_status)-12345), unknown);
    for (int a = CALYX_OK; a >= CALYX_MISMATCH; a--) {
        const char *text = calyx_status_text((calyx_status)a);
        assert_string_not_equal(text, unknown);
        for (int b = CALYX_OK; b > a; b--)
            assert_string_not_equal(text, calyx_status_text((calyx_status)b));
    }
}

/* Do all that fails above, while somebody listens at stdout and stderr. */
static void do_everything_wrong(void) {
    calyx_filter *a = make_filter((calyx_options){.seed = 1});
    calyx_filter *b = make_filter((calyx_options){.seed = 2}), *f;
    calyx_overlap overlap;
    calyx_error why;
    for (int i = 0; i < REFUSALS; i++) calyx_new(&refusals[i].want, &f, &why);
    for (int i = 0; i < REFUSALS; i++) calyx_new(&refusals[i].want, &f, NULL);
    calyx_merge(a, b, &why);
    calyx_intersect(a, b, &why);
    calyx_compare(a, b, &overlap, &why);
    calyx_fold(a, 0, &f, &why);
    calyx_freeze(a, &f, &why);
    calyx_remove(a, "rose", 4, NULL);
    calyx_free(a);
    calyx_free(b);
}

static void nothing_is_printed(void **state) {
    (void)state;
    FILE *heard = tmpfile();
    assert_non_null(heard);
    fflush(NULL);
    const int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
    dup2(fileno(heard), STDOUT_FILENO);
    dup2(fileno(heard), STDERR_FILENO);

    do_everything_wrong();

    fflush(NULL);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    close(out);
    close(err);
    const off_t bytes = lseek(fileno(heard), 0, SEEK_END);
    fclose(heard);
    assert_int_equal(bytes, 0);
}

/* What a newer header would set, this library cannot heed. */
static void options_that_this_library_does_not_know_are_refused(void **state) {
    (void)state;
    calyx_error why;
    calyx_filter *f = make_filter((calyx_options){.capacity = 100}), *g;
    for (int i = 0; i < 5; i++) {
        calyx_options want = {.capacity = 100};
        want.reserved[i] = 1;
        assert_int_equal(calyx_new(&want, &g, &why), CALYX_BAD_ARGUMENT);
        assert_non_null(strstr(why.text, "calyx_options"));
    }
    for (int i = 0; i < 8; i++) {

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
        cmocka_unit_test(every_bad_option_is_refused_in_words_that_help),
        cmocka_unit_test(siphash_wants_a_key_and_no_seed),
        cmocka_unit_test(planning_refuses_what_making_refuses),
        cmocka_unit_test(refusals_need_no_error_to_write_to),
        cmocka_unit_test(zero_means_line_at_one_percent_of_fixed_size),
        cmocka_unit_test(a_filter_that_grows_begins_with_a_thousand_keys),
        cmocka_unit_test(the_limits_themselves_are_within_them),
        cmocka_unit_test(a_name_of_any_length_leaves_the_text_whole),
        cmocka_unit_test(a_name_with_line_breaks_leaves_the_text_one_line),
        cmocka_unit_test_setup_teardown(
            an_unknown_kernel_in_the_environment_is_refused,
            remember_environment, restore_environment),
        cmocka_unit_test_setup_teardown(
            a_kernel_of_other_processors_in_the_environment_is_the_best,
            remember_environment, restore_environment),
        cmocka_unit_test_setup_teardown(
            an_empty_kernel_in_the_environment_is_none, remember_environment,
            restore_environment),
        cmocka_unit_test_setup_teardown(
            a_kernel_asked_for_overrides_the_environment, remember_environment,
            restore_environment),
        cmocka_unit_test(filters_made_differently_do_not_fit),
        cmocka_unit_test(filters_with_different_keys_do_not_fit),
        cmocka_unit_test(an_error_about_secret_keys_does_not_show_them),
        cmocka_unit_test(filters_grown_differently_do_not_fit),
        cmocka_unit_test(filters_that_have_grown_cannot_be_compared),
        cmocka_unit_test(only_counting_filters_forget_and_freeze),
        cmocka_unit_test(folding_wants_a_factor_that_divides),
        cmocka_unit_test(a_workload_that_cannot_be_is_refused),
        cmocka_unit_test(no_plan_promises_more_than_its_hash_can_keep),
        cmocka_unit_test(every_status_has_a_phrase_of_its_own),
        cmocka_unit_test(nothing_is_printed),
        cmocka_unit_test(options_that_this_library_does_not_know_are_refused),
    };
    return RUN_TESTS(tests);
}
