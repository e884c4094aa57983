/* Planning both ways: memory from a rate, the rate from memory, the capacity
 * from both; and what it says of times. */
#include "filter/filter.h"

#include <math.h>
#include <string.h>

#include "support.h"

static const uint64_t MOST_KEYS = UINT64_C(1) << 40;
static const uint64_t MOST_BITS = UINT64_C(1) << 44;

static const double RATES[] = {0.3,  0.1,  0.03, 0.01,  1e-3,
                               1e-4, 1e-6, 1e-8, 1e-10, 1e-12};
enum { RATES_THERE = sizeof RATES / sizeof RATES[0] };

/* The textbook: a filter of the best size has log2(1/fpr) / ln 2 bits a key. */
static double textbook_bits(double fpr) {
    return -log2(fpr) / log(2);
}

/* A plan that must be one. */
static calyx_info plan_of(calyx_options want) {
    calyx_info info;
    calyx_error why;
    if (calyx_plan(&want, &info, &why) != CALYX_OK) fail_msg("%s", why.text);
    return info;
}

static double rate_of(calyx_options want, uint64_t items) {
    double rate;
    calyx_error why;
    if (calyx_rate_at(&want, items, &rate, &why) != CALYX_OK)
        fail_msg("%s", why.text);
    return rate;
}

/* Walk the grid of keys and rates, as far as a kind goes along. */
typedef void on_plan(const calyx_options *want, const calyx_info *info);

/* Half of it under a sanitizer, which makes numbers four times as slow. */
static void on_grid(on_plan *look) {
    const uint64_t step = SANITIZED ? 16 : 4;
    EACH_KIND(kind) {
        int planned = 0;
        for (uint64_t keys = 1; keys <= MOST_KEYS; keys *= step)
            for (int i = 0; i < RATES_THERE; i++) {
                const calyx_options want = {
                    .kind = *kind, .capacity = keys, .fpr = RATES[i]};
                calyx_info info;
                if (calyx_plan(&want, &info, NULL) != CALYX_OK) continue;
                look(&want, &info);
                planned++;
            }
        assert_true(planned > (SANITIZED ? 50 : 100)); /* of 110 or 210 */
    }
}

/* ---- Both ways ----------------------------------------------------------- */

static void look_at_promise(const calyx_options *want, const calyx_info *info) {
    assert_true(info->fpr == want->fpr);
    assert_int_equal(info->capacity, want->capacity);
    assert_true(rate_of(*want, want->capacity) <= want->fpr);
}

static void the_memory_planned_keeps_the_rate(void **state) {
    (void)state;
    on_grid(look_at_promise);
}

/* For filters of many blocks, where one more or less is little. */
static bool is_fine_grained(const calyx_info *info) {
    return info->bits > 10000 * 512;
}

/* A bit more in each slot halves the rate of a table. Slots have 8 bits at
 * least, which is enough for 1 %. */
static const double TABLE_STEP = 0.3;

static void look_at_rate(const calyx_options *want, const calyx_info *info) {
    const calyx_info back = plan_of((calyx_options){
        .kind = want->kind, .capacity = want->capacity, .bits = info->bits});
    assert_int_equal(back.bits, info->bits);
    assert_int_equal(back.bytes, info->bytes);
    assert_true(back.fpr <= want->fpr * (1 + 1e-9));
    /* A 4096th more blocks than needed, so that it folds: 1 % in rate, at
     * rates whose bits are worth 25 steps of the logarithm. */
    if (is_fine_grained(info) && !(is_table(want->kind) && want->fpr > 0.01))
        assert_true(back.fpr >=
                    (is_table(want->kind) ? TABLE_STEP : 0.98) * want->fpr);
}

static void the_rate_follows_from_the_memory(void **state) {
    (void)state;
    on_grid(look_at_rate);
}

/* 1 where these bits have no room for the keys. */
static double rate_in(const char *kind, uint64_t keys, uint64_t bits) {
    const calyx_options want = {.kind = kind, .capacity = keys, .bits = bits};
    calyx_info info;
    if (is_table(kind) && calyx_plan(&want, &info, NULL) != CALYX_OK) return 1;
    return plan_of(want).fpr;
}

static void look_at_capacity(const calyx_options *want,
                             const calyx_info *info) {
    const calyx_info back = plan_of((calyx_options){
        .kind = want->kind, .fpr = want->fpr, .bits = info->bits});
    assert_int_equal(back.bits, info->bits);
    assert_true(back.capacity >= want->capacity);
    if (is_fine_grained(info))
        assert_true((double)back.capacity <= 1.001 * (double)want->capacity);
    /* One key more than that would break the promise. */
    if (back.capacity < MOST_KEYS)
        assert_true(rate_in(want->kind,
                            back.capacity + back.capacity / 1000 + 1,
                            info->bits) > want->fpr);
}

static void rate_and_memory_give_the_capacity(void **state) {
    (void)state;
    on_grid(look_at_capacity);
}

/* Memory that would hold more keys than a hash can distinguish is no mistake.
 */
static void memory_to_spare_is_not_refused(void **state) {
    (void)state;
    const calyx_info info = plan_of((calyx_options){
        .kind = "flat", .bits = UINT64_C(1) << 17, .fpr = 1e-15});
    assert_true(info.capacity > 1000);
    assert_true((double)info.capacity <= ldexp(1e-15, 60));
}

/* Small filters, which are not rounded up to fold, have no block to spare. */
static void look_at_thrift(const calyx_options *want, const calyx_info *info) {
    const struct kind *kind = kind_named(want->kind);
    const uint64_t blocks = info->bits / kind->block_bits;
    if (blocks == 1 || blocks >= 2 * 4096) return;
    if (rate_in(want->kind, want->capacity, info->bits - kind->block_bits) <=
        want->fpr)
        fail_msg("%s: %llu keys at %g take a block too many: %llu, %u probes",
                 want->kind, (unsigned long long)want->capacity, want->fpr,
                 (unsigned long long)blocks, info->probes);
}

static void no_block_is_planned_that_could_be_spared(void **state) {
    (void)state;
    on_grid(look_at_thrift);
}

/* Searches trust quick_fpr where it is further than that from the rate wanted.
 */
static void quick_rates_are_wrong_by_less_than_they_say(void **state) {
    (void)state;
    int compared = 0;
    EACH_KIND(name) {
        const struct kind *const kind = kind_named(*name);
        if (!kind->quick_fpr) continue;
        for (struct shape s = {.blocks = 1}; s.blocks < 1 << 24; s.blocks *= 9)
            for (s.probes = kind->probe_step; s.probes <= kind->most_probes;
                 s.probes += kind->probe_step)
                for (double load = 0.25; load < 200; load *= 3) {
                    const double items = ceil((double)s.blocks * load);
                    const double exact = kind->fpr(&s, items);
                    double error;
                    const double quick = kind->quick_fpr(&s, items, &error);
                    if (fabs(log(quick / exact)) > error / 2)
                        fail_msg("%s, %llu blocks, %u probes, %g keys: %g, %g, "
                                 "error %g",
                                 *name, (unsigned long long)s.blocks, s.probes,
                                 items, quick, exact, error);
                    compared++;
                }
    }
    assert_true(compared > 1000);
}

/* No filter of bits does better than the textbook's, and no fingerprints than
 * the logarithm of the rate; one that seemed to would be a wrong formula. 1 %
 * is for rounding: bits are whole, rates are not. */
static void look_at_textbook(const calyx_options *want,
                             const calyx_info *info) {
    const double each = (double)info->bits / (double)want->capacity;
    const double least =
        is_table(want->kind) ? -log2(want->fpr) : textbook_bits(want->fpr);
    if (each < 0.99 * least)
        fail_msg("%s: %g bits a key for %g", want->kind, each, want->fpr);
}

static void nothing_undercuts_the_textbook(void **state) {
    (void)state;
    on_grid(look_at_textbook);
}

static void a_million_keys_take_few_bits(void **state) {
    (void)state;
    const struct {
        const char *kind;
        double fpr, most;
    } rows[] = {
        {"line", 0.01, 9.95},   {"line", 1e-3, 15.7},  {"line", 1e-4, 22.3},
        {"line2", 1e-3, 14.75}, {"line2", 1e-4, 20.0}, {"flat", 0.01, 9.6},
        {"flat", 1e-3, 14.4},   {"flat", 1e-4, 19.2},  {"split", 0.01, 11},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const calyx_info info = plan_of((calyx_options){
            .kind = rows[i].kind, .capacity = 1000000, .fpr = rows[i].fpr});
        const double each = (double)info.bits / 1e6;
        if (each > rows[i].most)
            fail_msg("%s: %g bits for %g", rows[i].kind, each, rows[i].fpr);
    }
}

/* ---- Large numbers ------------------------------------------------------- */

static void sizes_up_to_the_limits_are_exact(void **state) {
    (void)state;
    EACH_KIND(kind) {
        const struct kind *k = kind_named(*kind);
        const uint64_t most = k->most_blocks < MOST_BITS / k->block_bits
                                  ? k->most_blocks * k->block_bits
                                  : MOST_BITS;
        for (uint64_t bits = is_table(*kind) ? 4 * 512 : 512; bits <= most;
             bits *= 2) {
            const calyx_info info =
                plan_of((calyx_options){.kind = *kind, .bits = bits});
            assert_int_equal(info.bits, bits);
            const struct shape shape = {.blocks = bits / k->block_bits};
            const uint64_t counters = kind_counter_bits(k, &shape);
            assert_int_equal(info.bytes, (bits + 511) / 512 * 64 +
                                             (counters + 511) / 512 * 64);
        }
        const calyx_info largest =
            plan_of((calyx_options){.kind = *kind, .bits = most});
        assert_true(largest.capacity == MOST_KEYS ||
                    largest.capacity > most / 12);
    }
}

static void the_most_keys_take_the_bits_they_should(void **state) {
    (void)state;
    const calyx_info flat =
        plan_of((calyx_options){.kind = "flat", .capacity = MOST_KEYS});
    const calyx_info line =
        plan_of((calyx_options){.kind = "line", .capacity = MOST_KEYS});

    const double flat_each = (double)flat.bits / (double)MOST_KEYS;
    const double line_each = (double)line.bits / (double)MOST_KEYS;

    assert_true(flat_each > 9.58 && flat_each < 9.60);
    assert_true(line_each > 9.88 && line_each < 9.95);
}

/* ---- A plan is what is made ---------------------------------------------- */

static void assert_made_as_planned(calyx_options want) {
    const calyx_info plan = plan_of(want);
    calyx_filter *f = make_filter(want);
    const calyx_info made = info_of(f);
    assert_string_equal(plan.kind, made.kind);
    assert_string_equal(plan.kernel, made.kernel);
    assert_string_equal(plan.hash, made.hash);
    assert_int_equal(plan.seed, made.seed);
    assert_int_equal(plan.capacity, made.capacity);
    assert_int_equal(plan.items, made.items);
    assert_int_equal(plan.bits, made.bits);
    assert_int_equal(plan.bytes, made.bytes);
    assert_int_equal(plan.parts, made.parts);
    assert_int_equal(plan.probes, made.probes);
    assert_true(plan.growth == made.growth && plan.fpr == made.fpr);
    assert_int_equal(plan.strict, made.strict);
    assert_int_equal(plan.concurrent, made.concurrent);
    assert_int_equal(plan.huge_pages, made.huge_pages);
    calyx_free(f);
}

static uint32_t probes_up_to_8(const char *name) {
    const struct kind *const kind = kind_named(name);
    return kind->most_probes < 8 ? kind->most_probes : 8 - 8 % kind->probe_step;
}

static void a_filter_is_made_as_planned(void **state) {
    (void)state;
    EACH_KIND(kind) {
        const bool shared = kind_named(*kind)->atomic_kernels != NULL;
        assert_made_as_planned((calyx_options){.kind = *kind, .growth = 2});
        assert_made_as_planned(
            (calyx_options){.kind = *kind, .capacity = 1000, .fpr = 1e-6});
        assert_made_as_planned(
            (calyx_options){.kind = *kind, .capacity = 1, .strict = true});
        assert_made_as_planned(
            (calyx_options){.kind = *kind, .capacity = 77777, .growth = 3});
        assert_made_as_planned(
            (calyx_options){.kind = *kind, .bits = 123457, .seed = 9});
        assert_made_as_planned(
            (calyx_options){.kind = *kind, .bits = 123457, .capacity = 10000});
        assert_made_as_planned(
            (calyx_options){.kind = *kind,
                            .bits = 123457,
                            .fpr = 0.001,
                            .probes = probes_up_to_8(*kind)});
        assert_made_as_planned((calyx_options){
            .kind = *kind, .capacity = 40000000, .concurrent = shared});
    }
}

/* ---- Any m --------------------------------------------------------------- */

enum { LEAST_M = 8, MOST_M = 4096 };

/* Static kinds choose their layers by the keys. */
static uint64_t bits_of_m(const struct kind *kind, uint64_t m) {
    return kind->construction ? m : m / kind->block_bits * kind->block_bits;
}

static void check_bits(const struct kind *kind, uint64_t m) {
    const uint64_t keys = 20;
    const calyx_options want = {
        .kind = kind->name,
        .bits = m,
        .capacity = keys,
        .probes = kind->segments ? 0 : probes_up_to_8(kind->name)};
    calyx_info info;
    if (calyx_plan(&want, &info, NULL) != CALYX_OK) {
        assert_true(m < 512 || (kind->segments && m < 4 * 512));
        return;
    }
    assert_true(kind->construction ? info.bits <= m
                                   : info.bits == bits_of_m(kind, m));
    if (kind->construction) return; /* made of keys, not of a plan */
    assert_true(fabs(rate_of(want, keys) / info.fpr - 1) < 1e-6);
    calyx_filter *f = make_filter(want);
    assert_int_equal(info_of(f).bits, info.bits);
    assert_int_equal(info_of(f).probes, info.probes);
    assert_true(info_of(f).fpr == info.fpr);
    calyx_free(f);
}

static void any_number_of_bits_is_taken_as_it_is(void **state) {
    (void)state;
    EACH_KIND(kind)
    for (uint64_t m = LEAST_M; m <= MOST_M; m++)
        check_bits(kind_named(*kind), m);
    assert_int_equal(
        plan_of((calyx_options){.kind = "flat", .bits = 8, .capacity = 1}).bits,
        8);
}

static void a_filter_of_1000_bits_for_100_keys_agrees_with_the_book(
    void **state) {
    (void)state;
    const calyx_options want = {
        .kind = "flat", .bits = 1000, .capacity = 100, .probes = 7};
    const double formula = pow(1 - exp(-0.7), 7); /* 0.8194 % */
    assert_true(fabs(rate_of(want, 100) / formula - 1) < 0.01);
    assert_int_equal(plan_of(want).bits, 1000);
    assert_int_equal(plan_of(want).bytes, 128);
}

/* The rate of `keys` in these bits, which are the most for these bytes; 1 if
 * they do not fit. */
static double rate_within(const struct kind *kind, uint64_t bytes,
                          uint64_t bits, uint64_t keys) {
    const calyx_options want = {
        .kind = kind->name, .bits = bits, .capacity = keys};
    calyx_info info;
    if (calyx_plan(&want, &info, NULL) != CALYX_OK) return 1;
    assert_true(info.bytes <= bytes);
    if (kind->construction) return info.fpr;
    const struct shape more = {.blocks = bits / kind->block_bits + 1};
    assert_true(body_bytes(kind, &more) > bytes);
    return info.fpr;
}

static void check_memory(const struct kind *kind, uint64_t keys) {
    double last = 1;
    uint64_t before = 0;
    for (uint64_t bytes = LEAST_M; bytes <= MOST_M; bytes++) {
        uint64_t bits;
        if (calyx_bits_within(kind->name, bytes, &bits, NULL) != CALYX_OK ||
            bits == before)
            continue;
        const double rate = rate_within(kind, bytes, bits, keys);
        if (rate > last || bits < before)
            fail_msg("%s: %d bytes for %d keys are worse than less", kind->name,
                     (int)bytes, (int)keys);
        last = rate;
        before = bits;
    }
    assert_true(last < 0.2);
}

static void more_memory_is_never_exceeded_and_never_worse(void **state) {
    (void)state;
    EACH_KIND(kind)
    for (uint64_t keys = 10; keys <= 1000; keys *= 10)
        check_memory(kind_named(*kind), keys);
}

static void sizes_that_no_filter_has_are_refused(void **state) {
    (void)state;
    uint64_t bits;
    calyx_error why;
    EACH_KIND(kind) {
        assert_int_equal(calyx_bits_within(*kind, 63, &bits, &why),
                         CALYX_BAD_ARGUMENT);
        assert_non_null(strstr(why.text, "bytes, not 63"));
        assert_int_equal(
            calyx_bits_within(*kind, MOST_BITS / 8 + 1, &bits, &why),
            CALYX_BAD_ARGUMENT);
        assert_ok(calyx_bits_within(*kind, MOST_BITS / 8, &bits, &why));
        assert_true(bits > MOST_BITS / 32 && bits <= MOST_BITS);
    }
    assert_int_equal(calyx_bits_within("flatt", 64, &bits, &why),
                     CALYX_BAD_ARGUMENT);
    assert_ok(calyx_bits_within(NULL, 64, &bits, &why));
    assert_int_equal(bits, 512);
}

/* ---- Rates and probes ---------------------------------------------------- */

static void lower_rates_take_no_fewer_probes(void **state) {
    (void)state;
    EACH_KIND(kind) {
        uint32_t probes = 0;
        for (double fpr = 0.9; fpr > 1e-12; fpr *= 0.9) {
            const calyx_options want = {
                .kind = *kind, .capacity = 1000000, .fpr = fpr};
            calyx_info info;
            if (calyx_plan(&want, &info, NULL) != CALYX_OK) break;
            assert_true(info.probes >= probes);
            probes = info.probes;
        }
        assert_true(probes >= probes_up_to_8(*kind));
    }
}

static void lower_rates_take_more_memory(void **state) {
    (void)state;
    EACH_KIND(kind) {
        uint64_t bits = 0;
        for (double fpr = 0.9; fpr > 1e-12; fpr *= 0.9) {
            const calyx_options want = {
                .kind = *kind, .capacity = 1000000, .fpr = fpr};
            calyx_info info;
            if (calyx_plan(&want, &info, NULL) != CALYX_OK) break;
            assert_true(info.bits > bits ||
                        (is_table(*kind) && info.bits == bits));
            bits = info.bits;
        }
    }
}

/* Few blocks with many keys, too: planning looks at such shapes on its way. */
static void check_rates_of_small_shapes(const struct kind *kind,
                                        uint32_t probes) {
    enum { STEPS = 40 };
    double rates[STEPS]; /* of these keys in fewer blocks */
    for (int i = 0; i < STEPS; i++) rates[i] = 1;
    for (uint64_t blocks = 1; blocks < 3000; blocks += blocks / 4 + 1) {
        const struct shape shape = {.blocks = blocks, .probes = probes};
        double last = 0, keys = 1;
        for (int i = 0; i < STEPS; i++, keys = ceil(1.5 * keys)) {
            const double rate = expected_rate(kind, &shape, keys);
            if (!(rate >= last - 1e-12 && rate <= rates[i] + 1e-12))
                fail_msg("%s, %u probes: %.0f keys in %u blocks have the rate "
                         "%g, fewer keys %g, fewer blocks %g",
                         kind->name, probes, keys, (unsigned)blocks, rate, last,
                         rates[i]);
            last = rates[i] = rate;
        }
        assert_true(last > 0.999);
    }
}

static void the_rate_of_bits_rises_with_keys_and_falls_with_blocks(
    void **state) {
    (void)state;
    for (uint32_t i = 0; i < kind_count; i++) {
        const struct kind *const kind = kind_table[i];
        if (kind->construction || kind->segments) continue;
        check_rates_of_small_shapes(kind, kind->probe_step);
        check_rates_of_small_shapes(kind, kind->most_probes);
    }
}

static void the_rate_rises_with_the_items(void **state) {
    (void)state;
    EACH_KIND(kind) {
        const calyx_options want = {.kind = *kind, .capacity = 100000};
        double last = rate_of(want, 0);
        assert_true(last == 0);
        for (uint64_t items = 1; items <= 4 * MOST_KEYS;
             items += items / 8 + 1) {
            const double rate = rate_of(want, items);
            /* Sums of terms near 1 are exact to 13 digits or so. */
            assert_true(rate >= last - 1e-12 && rate <= 1);
            last = rate;
        }
        assert_true(last > 0.999);
        assert_true(rate_of(want, 100000) <= 0.01);
        assert_true(rate_of(want, 101000) > 0.01);
    }
}

static void the_textbook_formula_is_nearly_the_flat_kind_s(void **state) {
    (void)state;
    const calyx_options want = {
        .kind = "flat", .bits = 10000, .probes = 7, .capacity = 1000};

    const double rate = rate_of(want, 1000);

    const double unset = pow(1 - 1. / 10000, 7 * 1000);
    assert_true(fabs(rate - pow(1 - unset, 7)) < 1e-5);
    assert_true(fabs(rate - pow(1 - exp(-0.7), 7)) < 1e-5);
}

/* ---- Is it worth it? ----------------------------------------------------- */

/* A filter that takes 1, a store that takes 1000; one lookup in ten is about
 * a key that is there. With 1 %, the store is read for those, and for 1 % of
 * the nine others: 0.109 times in all. */
static void a_filter_saves_what_the_sum_says(void **state) {
    (void)state;
    const calyx_options want = {.capacity = 1000, .fpr = 0.01};
    const calyx_workload load = {
        .filter_time = 1, .store_time = 1000, .present = 0.1};
    calyx_costs costs;

    assert_ok(calyx_weigh(&want, &load, &costs, NULL));

    assert_true(fabs(costs.filter.time - 110) < 1e-9);
    assert_true(fabs(costs.table.time - 101) < 1e-9);
    assert_true(costs.nothing.time == 1000);
    assert_int_equal(costs.filter.bytes, plan_of(want).bytes);
    assert_int_equal(costs.table.bytes, 2 * 8 * 1000);
    assert_int_equal(costs.nothing.bytes, 0);
}

static void a_filter_is_no_use_where_all_keys_are_there(void **state) {
    (void)state;
    const calyx_options want = {.capacity = 1000, .fpr = 0.01};
    const calyx_workload load = {
        .filter_time = 1, .store_time = 10, .present = 1};
    calyx_costs costs;

    assert_ok(calyx_weigh(&want, &load, &costs, NULL));

    assert_true(costs.filter.time == 11 && costs.table.time == 11);
    assert_true(costs.filter.time > costs.nothing.time);
}

static void where_no_key_is_there_only_the_rate_reaches_the_store(
    void **state) {
    (void)state;
    const calyx_options want = {.capacity = 1000, .fpr = 0.25};
    const calyx_workload load = {.store_time = 8, .key_bytes = 20};
    calyx_costs costs;

    assert_ok(calyx_weigh(&want, &load, &costs, NULL));

    assert_true(costs.filter.time == 2 && costs.table.time == 0);
    assert_true(costs.nothing.time == 8);
    assert_int_equal(costs.table.bytes, 40000);
}

static void the_largest_workload_does_not_overflow(void **state) {
    (void)state;
    const calyx_options want = {.capacity = MOST_KEYS};
    const calyx_workload load = {1e300, 1e300, 1, 1e6, {0}};
    calyx_costs costs;

    assert_ok(calyx_weigh(&want, &load, &costs, NULL));

    assert_true(costs.filter.time == 2e300);
    assert_int_equal(costs.table.bytes, 2000000 * MOST_KEYS);
}

/* 100 * 1e-6 is less than 1e-4 by one part in 2^53. */
static void the_lowest_rate_may_be_computed(void **state) {
    (void)state;
    const double product = 100 * 1e-6;
    assert_true(product < 1e-4);
    const calyx_options want = {.capacity = 9, .fpr = product, .growth = 2};
    calyx_info info;
    calyx_error why;
    if (calyx_plan(&want, &info, &why) != CALYX_OK) fail_msg("%s", why.text);
    assert_true(info.fpr == 1e-4);
    const calyx_options lower = {.capacity = 9, .fpr = 9.9e-5, .growth = 2};
    assert_int_equal(calyx_plan(&lower, &info, NULL), CALYX_BAD_ARGUMENT);
}

static const char *kind_of(calyx_options want) {
    calyx_info info;
    assert_ok(calyx_plan(&want, &info, NULL));
    return info.kind;
}

static void growth_from_an_unknown_size_is_a_table(void **state) {
    (void)state;
    const double grows = 2;
    assert_string_equal(kind_of((calyx_options){.growth = grows}), "distinct");
    const calyx_options chains[] = {
        {.growth = grows, .capacity = 1000},
        {.growth = grows, .concurrent = true},
        {.growth = grows, .first_fpr = 0.001},
        {.capacity = 1000},
    };
    for (size_t i = 0; i < sizeof chains / sizeof *chains; i++)
        assert_string_equal(kind_of(chains[i]), "line");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lowest_rate_may_be_computed),
        cmocka_unit_test(the_memory_planned_keeps_the_rate),
        cmocka_unit_test(the_rate_follows_from_the_memory),
        cmocka_unit_test(rate_and_memory_give_the_capacity),
        cmocka_unit_test(memory_to_spare_is_not_refused),
        cmocka_unit_test(no_block_is_planned_that_could_be_spared),
        cmocka_unit_test(quick_rates_are_wrong_by_less_than_they_say),
        cmocka_unit_test(nothing_undercuts_the_textbook),
        cmocka_unit_test(a_million_keys_take_few_bits),
        cmocka_unit_test(sizes_up_to_the_limits_are_exact),
        cmocka_unit_test(the_most_keys_take_the_bits_they_should),
        cmocka_unit_test(a_filter_is_made_as_planned),
        cmocka_unit_test(any_number_of_bits_is_taken_as_it_is),
        cmocka_unit_test(
            a_filter_of_1000_bits_for_100_keys_agrees_with_the_book),
        cmocka_unit_test(more_memory_is_never_exceeded_and_never_worse),
        cmocka_unit_test(sizes_that_no_filter_has_are_refused),
        cmocka_unit_test(lower_rates_take_no_fewer_probes),
        cmocka_unit_test(lower_rates_take_more_memory),
        cmocka_unit_test(
            the_rate_of_bits_rises_with_keys_and_falls_with_blocks),
        cmocka_unit_test(the_rate_rises_with_the_items),
        cmocka_unit_test(the_textbook_formula_is_nearly_the_flat_kind_s),
        cmocka_unit_test(a_filter_saves_what_the_sum_says),
        cmocka_unit_test(a_filter_is_no_use_where_all_keys_are_there),
        cmocka_unit_test(where_no_key_is_there_only_the_rate_reaches_the_store),
        cmocka_unit_test(the_largest_workload_does_not_overflow),
        cmocka_unit_test(growth_from_an_unknown_size_is_a_table),
    };
    return RUN_TESTS(tests);
}
