/* The examples that books and lectures give, and the formulas behind them, on
 * the flat kind: m bits, k probes, n keys. */
#include <math.h>
#include <stdlib.h>

#include "support.h"

static calyx_filter *make_flat(uint64_t m, uint32_t k) {
    return make_filter((calyx_options){.kind = "flat", .bits = m, .probes = k});
}

/* (1 - e^(-kn/m))^k */
static double formula(double m, double n, double k) {
    return pow(1 - exp(-k * n / m), k);
}

static void four_words_fit_in_1000_bits_with_7_probes(void **state) {
    (void)state;
    calyx_filter *f = make_flat(1000, 7);
    assert_true(add(f, "hello"));
    assert_true(add(f, "world"));
    assert_true(add(f, "bloom"));
    assert_true(add(f, "filter"));

    assert_true(has(f, "hello") && has(f, "world"));
    assert_true(has(f, "bloom") && has(f, "filter"));
    assert_false(has(f, "hell") || has(f, "Hello") || has(f, "word"));
    assert_false(has(f, "blossom") || has(f, "filters") || has(f, ""));

    const calyx_info info = info_of(f);
    assert_int_equal(info.bits, 1000);
    assert_int_equal(info.probes, 7);
    assert_int_equal(info.items, 4);
    assert_true(info.fill > 0.02 && info.fill <= 28 / 1000.);
    assert_true(round(info.distinct) == 4);
    assert_true(info.fpr_now < 1e-10);
    calyx_free(f);
}

static void eight_items_fit_in_1024_bits_with_3_probes(void **state) {
    (void)state;
    static const uint64_t numbers[] = {1, 2, 3, 4, 5, 7};
    calyx_filter *f = make_flat(1 << 10, 3);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        assert_ok(calyx_add_u64(f, numbers[i], NULL));
    add(f, "hu");
    add(f, "Jemmy");

    assert_int_equal(info_of(f).items, 8);
    assert_true(calyx_has_u64(f, 3) && calyx_has_u64(f, 5));
    assert_true(has(f, "Jemmy"));
    assert_false(calyx_has_u64(f, 6) || calyx_has_u64(f, 8));
    assert_false(has(f, "Hu") || has(f, "Jenny"));
    calyx_free(f);
}

static uint64_t absent_keys_passed(const calyx_filter *f, uint64_t from,
                                   size_t n) {
    uint64_t *numbers = malloc(n * sizeof *numbers);
    assert_non_null(numbers);
    for (size_t i = 0; i < n; i++) numbers[i] = from + i;
    const uint64_t passed = calyx_has_many_u64(f, numbers, n, NULL);
    free(numbers);
    return passed;
}

/* Odds of a wrong alarm: 1 in 10^9 each way. */
static void ten_bits_a_key_give_about_one_percent(void **state) {
    (void)state;
    enum { N = SANITIZED ? 20000 : 200000, ABSENT = 5 * N };
    for (uint32_t k = 5; k <= 7; k++) {
        calyx_filter *f = make_filter((calyx_options){
            .kind = "flat", .bits = 10 * N, .capacity = N, .probes = k});
        add_numbers(f, 0, N);

        const uint64_t passed = absent_keys_passed(f, N, ABSENT);

        const double rate = formula(10 * N, N, k);
        assert_true(rate > 0.008 && rate < 0.0095);
        assert_float_equal(info_of(f).fpr, rate, 1e-5);
        assert_true(odds_at_least(passed, ABSENT, rate) > UNLIKELY);
        assert_true(odds_at_most(passed, ABSENT, rate) > UNLIKELY);
        calyx_free(f);
    }
}

static void ten_bits_a_key_want_seven_probes(void **state) {
    (void)state;
    calyx_info info;
    assert_ok(calyx_plan(
        &(calyx_options){.kind = "flat", .bits = 1000000, .capacity = 100000},
        &info, NULL));

    assert_int_equal(info.probes, 7);
    assert_float_equal(info.fpr, 0.0082, 0.0001);
}

/* The library counts n keys that each miss a bit with odds 1 - 1/m, where the
 * formula has the limit for large m; so they differ by little, and less so the
 * larger m is. */
static void the_expected_rate_is_the_formulas(void **state) {
    (void)state;
    static const struct {
        uint64_t m, n;
        uint32_t k;
    } table[] = {
        {1000, 4, 7},           {1000, 100, 7},
        {1024, 8, 3},           {10000, 1000, 1},
        {10000, 1000, 5},       {10000, 1000, 6},
        {10000, 1000, 7},       {10000, 1000, 14},
        {10000, 10000, 7},      {100000, 10000, 7},
        {1 << 20, 1, 64},       {1 << 20, 100000, 7},
        {1 << 24, 1 << 20, 11}, {UINT64_C(1) << 36, UINT64_C(1) << 32, 11},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const double m = (double)table[i].m, n = (double)table[i].n;
        double rate;
        assert_ok(calyx_rate_at(&(calyx_options){.kind = "flat",
                                                 .bits = table[i].m,
                                                 .probes = table[i].k},
                                table[i].n, &rate, NULL));

        /* An absent key may also have the hash of one of n keys. */
        const double k = table[i].k;
        const double want = formula(m, n, k) + ldexp(n, -64);
        assert_true(fabs(rate - want) <= want * (k * k / m + 1e-9));
    }
}

/* The rate by another way than the library's: the odds of each number of bits
 * being set, probe by probe. */
static double rate_by_chain(uint64_t m, uint32_t k, uint64_t n) {
    double *const odds = calloc((size_t)m + 1, sizeof *odds);
    assert_non_null(odds);
    const double bits = (double)m;
    odds[0] = 1;
    for (uint64_t probe = 0; probe < k * n; probe++) {
        for (uint64_t set = m; set > 0; set--)
            odds[set] = odds[set] * ((double)set / bits) +
                        odds[set - 1] * ((double)(m - set + 1) / bits);
        odds[0] = 0;
    }
    double rate = 0;
    for (uint64_t set = 1; set <= m; set++)
        rate += odds[set] * pow((double)set / bits, k);
    free(odds);
    return rate;
}

static const double few_rates[] = {0.5,  0.1,  0.01, 0.001,
                                   1e-4, 1e-6, 1e-9, 1e-14};
static const uint64_t few_keys[] = {1, 2, 3, 10, 30, 100};
enum {
    FEW_RATES = sizeof few_rates / sizeof *few_rates,
    FEW_KEYS = sizeof few_keys / sizeof *few_keys
};

static void flat_keeps_its_rate_for_few_keys(void **state) {
    (void)state;
    for (int i = 0; i < FEW_RATES; i++)
        for (int j = 0; j < FEW_KEYS; j++) {
            const uint64_t n = few_keys[j];
            const double fpr = few_rates[i];
            calyx_info info;
            assert_ok(calyx_plan(
                &(calyx_options){.kind = "flat", .capacity = n, .fpr = fpr},
                &info, NULL));
            assert_true(rate_by_chain(info.bits, info.probes, n) <=
                        fpr * (1 + 1e-5));
            /* and takes no more bits than it must */
            if (info.bits > 2)
                assert_true(rate_by_chain(info.bits - 1, info.probes, n) >
                            fpr * (1 - 1e-5));
        }
}

static void the_expected_rate_of_few_bits_is_exact_to_5_digits(void **state) {
    (void)state;
    static const uint32_t probes[] = {1, 2, 7, 10, 11, 20, 40, 64};
    for (uint64_t m = 1; m <= 512; m = 2 * m + m / 3)
        for (int i = 0; i < 8; i++)
            for (uint64_t n = 1; n <= 200; n = 3 * n + 1) {
                double rate;
                assert_ok(calyx_rate_at(&(calyx_options){.kind = "flat",
                                                         .capacity = 1,
                                                         .bits = m,
                                                         .probes = probes[i]},
                                        n, &rate, NULL));
                const double want = rate_by_chain(m, probes[i], n);
                if (fabs(rate - want) > 1e-5 * want + 1e-15)
                    fail_msg("m %d, k %u, n %d: %.15g, not %.15g", (int)m,
                             probes[i], (int)n, rate, want);
            }
}

static void nothing_passes_an_empty_filter(void **state) {
    (void)state;
    EACH_KIND(kind) {
        double rate;
        assert_ok(calyx_rate_at(&(calyx_options){.kind = *kind, .capacity = 9},
                                0, &rate, NULL));
        assert_true(rate == 0);

        calyx_filter *f = make_filter((calyx_options){.kind = *kind});
        assert_int_equal(absent_keys_passed(f, 0, 10000), 0);
        assert_true(info_of(f).fpr_now == 0 && info_of(f).fill == 0);
        calyx_free(f);
    }
}

/* bits * ln 2, rounded. */
static uint32_t best_probes(double bits_per_key) {
    return (uint32_t)fmax(1, round(bits_per_key * log(2)));
}

/* It tries all. */
static void the_flat_kind_has_the_textbook_s_number_of_probes(void **state) {
    (void)state;
    for (uint64_t each = 2; each <= 60; each++) {
        calyx_info info;
        assert_ok(calyx_plan(&(calyx_options){.kind = "flat",
                                              .bits = 100000 * each,
                                              .capacity = 100000},
                             &info, NULL));
        const uint32_t best = best_probes((double)each);
        assert_in_range(info.probes, best - 1, best + 1);
    }
}

/* No number of probes does better than the best, at the same size. */
static void other_numbers_of_probes_are_no_better(void **state) {
    (void)state;
    for (uint32_t bits = 2; bits <= 40; bits++) {
        const double n = 1000, m = bits * n;
        const double best = formula(m, n, best_probes(bits));
        for (uint32_t k = 1; k <= 64; k++)
            assert_true(formula(m, n, k) >= best * 0.98); /* k is rounded */

        calyx_info info;
        assert_ok(calyx_plan(&(calyx_options){.kind = "flat",
                                              .bits = 1000 * bits,
                                              .capacity = 1000},
                             &info, NULL));
        assert_true(info.fpr <= best * 1.01);
    }
}

/* m = -n ln p / (ln 2)^2; a whole number of probes costs up to 1 % more. */
static void memory_for_a_rate_is_the_textbooks(void **state) {
    (void)state;
    static const double rates[] = {0.1, 0.01, 0.001, 0.0001, 1e-6};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        const double n = 1e6, m = -n * log(rates[i]) / (log(2) * log(2));
        calyx_info info;
        assert_ok(calyx_plan(&(calyx_options){.kind = "flat",
                                              .capacity = 1000000,
                                              .fpr = rates[i]},
                             &info, NULL));

        assert_true((double)info.bits >= m * 0.9999);
        assert_true((double)info.bits <= m * 1.011);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_words_fit_in_1000_bits_with_7_probes),
        cmocka_unit_test(eight_items_fit_in_1024_bits_with_3_probes),
        cmocka_unit_test(ten_bits_a_key_give_about_one_percent),
        cmocka_unit_test(ten_bits_a_key_want_seven_probes),
        cmocka_unit_test(the_expected_rate_is_the_formulas),
        cmocka_unit_test(flat_keeps_its_rate_for_few_keys),
        cmocka_unit_test(the_expected_rate_of_few_bits_is_exact_to_5_digits),
        cmocka_unit_test(nothing_passes_an_empty_filter),
        cmocka_unit_test(the_flat_kind_has_the_textbook_s_number_of_probes),
        cmocka_unit_test(other_numbers_of_probes_are_no_better),
        cmocka_unit_test(memory_for_a_rate_is_the_textbooks),
    };
    return RUN_TESTS(tests);
}
