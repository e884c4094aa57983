/* The bucket kind: a table that removes keys and grows in small steps. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support_tables.h"
#include "table/fixed.h"

static calyx_filter *make_growing(uint64_t capacity, double fpr) {
    return make_filter((calyx_options){
        .kind = "bucket", .capacity = capacity, .fpr = fpr, .growth = 2});
}

static calyx_filter *make_fixed(uint64_t capacity, double fpr) {
    return make_filter(
        (calyx_options){.kind = "bucket", .capacity = capacity, .fpr = fpr});
}

static bool remove_hash(calyx_filter *f, uint64_t hash) {
    bool found = false;
    assert_ok(calyx_remove_hash(f, hash, &found));
    return found;
}

/* ---- Sizes --------------------------------------------------------------- */

static double bits_per_key(uint64_t capacity, double fpr, double growth) {
    const calyx_options want = {
        .kind = "bucket", .capacity = capacity, .fpr = fpr, .growth = growth};
    calyx_info info;
    assert_ok(calyx_plan(&want, &info, NULL));
    return 8 * (double)info.bytes / (double)capacity;
}

static void a_full_table_takes_the_bits_that_were_promised(void **state) {
    (void)state;
    assert_true(bits_per_key(1000000, 0.01, 0) <= 14);
    assert_true(bits_per_key(1000000, 0.001, 0) <= 18);
    assert_true(bits_per_key(100000000, 0.01, 0) <= 14);
    assert_true(bits_per_key(1000000, 0.01, 2) <= 20.3);
    assert_true(bits_per_key(1000, 0.01, 0) <= 17);
}

/* Beyond 10^6 keys, so that what small segments round up does not matter. */
static void growth_holds_20_bits_a_key_when_full_and_at_most_26(void **state) {
    (void)state;
    if (SANITIZED) skip(); /* sizes are the same there */
    enum { BEFORE = 1100000, KEYS = 2300000 };
    calyx_filter *f = make_growing(1000, 0.01);
    double most = 0, least = 100;
    for (uint64_t i = 0; i < KEYS; i++) {
        assert_ok(calyx_add_u64(f, i, NULL));
        if (i < BEFORE) continue;
        calyx_info info;
        calyx_info_of(f, &info);
        const double bits = 8 * (double)info.bytes / (double)info.items;
        most = fmax(most, bits);
        least = fmin(least, bits);
    }
    assert_true(most <= 26);
    assert_true(least <= 20);
    calyx_free(f);
}

/* Each of these grows through 24 stages, all of whose segments must have room
 * for what is spilled; small ones have the least. */
static void growth_has_room_with_many_seeds(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < (SANITIZED ? 4 : 40); seed++) {
        calyx_filter *f = make_filter((calyx_options){
            .kind = "bucket", .capacity = 1000, .growth = 2, .seed = seed});
        add_numbers(f, 0, 60000);
        const calyx_info info = info_of(f);
        assert_true(info.capacity <= 76000); /* no group moved early */
        calyx_free(f);
    }
}

/* Copies fill buckets unevenly: without early growth 5 of these 8 have a group
 * that cannot move, and are full for ever. */
static void copies_of_keys_do_not_fill_a_table_that_grows(void **state) {
    (void)state;
    enum { KEYS = 60000 };
    for (uint64_t seed = 1; seed <= (SANITIZED ? 2 : 8); seed++) {
        calyx_filter *f = make_filter((calyx_options){
            .kind = "bucket", .capacity = 1000, .growth = 2, .seed = seed});
        struct generator from = {seed};
        for (int i = 0; i < 2 * KEYS; i++)
            assert_ok(calyx_add_u64(f, random_word(&from) % KEYS, NULL));
        const calyx_info info = info_of(f);
        assert_true(8 * info.bytes <= 40 * info.items);
        calyx_free(f);
    }
}

/* Only codes of 17 bits and more have a stop bit. */
static void a_table_that_grows_has_wide_codes(void **state) {
    (void)state;
    calyx_filter *f = make_growing(1000, 0.3);
    assert_int_equal(info_of(f).probes, 9);
    add_numbers(f, 0, 5000);
    assert_has_numbers(f, 0, 5000);
    calyx_free(f);
}

/* ---- Every width, every kernel ------------------------------------------- */

static void every_width_has_its_keys_and_keeps_its_rate(void **state) {
    (void)state;
    enum { KEYS = 20000, ABSENT = 40000 };
    uint32_t widths = 0;
    for (int i = 0; i <= 18; i++) {
        calyx_filter *f = make_fixed(KEYS, rate_of(i));
        add_numbers(f, 0, KEYS);
        const calyx_info info = info_of(f);
        widths |= 1u << slot_form_of(info.probes)->bits;

        assert_has_numbers(f, 0, KEYS);
        const double passed =
            (double)count_found(f, KEYS, KEYS + ABSENT) / (double)ABSENT;
        assert_true(info.fpr_now <= 1.02 * rate_of(i));
        assert_true(fabs(passed - info.fpr_now) <=
                    6.5 * sqrt(info.fpr_now / (double)ABSENT) +
                        7 / (double)ABSENT);
        calyx_free(f);
    }
    assert_int_equal(widths, 0x1FFF00); /* 8 to 20 bits */
}

static void all_kernels_leave_the_same_bytes(void **state) {
    (void)state;
    enum { KEYS = 9000 };
    for (int i = 0; i < 17; i += 2) {
        calyx_options want = {.kind = "bucket",
                              .capacity = i % 4 ? KEYS : 300,
                              .fpr = rate_of(i),
                              .growth = i % 4 || i > 10 ? 0 : 2,
                              .kernel = "scalar"};
        if (want.growth == 0) want.capacity = KEYS;
        calyx_filter *scalar = make_filter(want);
        want.kernel = NULL;
        calyx_filter *best = make_filter(want);
        add_numbers(scalar, 0, KEYS);
        add_numbers(best, 0, KEYS);
        for (uint64_t k = 0; k < KEYS; k += 3) {
            assert_ok(calyx_remove(scalar, &k, sizeof k, NULL));
            assert_ok(calyx_remove(best, &k, sizeof k, NULL));
        }

        assert_true(same_bodies(scalar, best));
        for (uint64_t k = 0; k < 2 * KEYS; k++)
            assert_int_equal(calyx_has_u64(scalar, k), calyx_has_u64(best, k));
        calyx_free(scalar);
        calyx_free(best);
    }
}

/* ---- Growth -------------------------------------------------------------- */

static void a_growing_table_has_every_key_at_any_time(void **state) {
    (void)state;
    static const double rates[] = {0.2, 0.01, 0.0001};
    for (int r = 0; r < 3; r++) {
        calyx_filter *f = make_growing(50, rates[r]);
        for (uint64_t i = 0; i < 6000; i++) {
            assert_ok(calyx_add_u64(f, i, NULL));
            if (i % 97 == 0) assert_has_numbers(f, 0, i + 1);
        }
        assert_has_numbers(f, 0, 6000);
        assert_int_equal(info_of(f).items, 6000);
        calyx_free(f);
    }
}

/* Batches add, and find, what single calls do, with all vector kernels, while
 * the table goes through many levels; some levels are in the first vectors of
 * addresses, some are not. */
static void batches_do_what_single_calls_do(void **state) {
    (void)state;
    enum { KEYS = 300000, SOME = 3001 };
    uint64_t *const hashes = malloc(KEYS * sizeof *hashes);
    bool found[SOME];
    assert_non_null(hashes);
    for (uint64_t i = 0; i < KEYS; i++) hashes[i] = mixed(i);
    const calyx_options shapes[] = {
        {.kind = "bucket", .capacity = KEYS},
        {.kind = "bucket", .capacity = KEYS, .fpr = 0.001},
        {.kind = "bucket", .capacity = KEYS, .growth = 2},
        {.kind = "bucket", .capacity = 40, .growth = 2},
    };
    for (size_t shape = 0; shape < sizeof shapes / sizeof *shapes; shape++) {
        calyx_filter *f = make_filter(shapes[shape]);
        calyx_filter *one = make_filter(shapes[shape]);
        for (size_t i = 0, n; i < KEYS; i += n) {
            n = KEYS - i < SOME ? KEYS - i : SOME;
            assert_ok(calyx_add_hashes(f, hashes + i, n, NULL, NULL));
            for (size_t k = i; k < i + n; k++)
                assert_ok(add_hash(one, hashes[k]));
            const size_t begin = i / 2;
            assert_int_equal(calyx_has_hashes(f, hashes + begin, n, NULL), n);
            for (size_t k = 0; k < SOME; k++) found[k] = false;
            if (i + n + SOME > KEYS) continue;
            calyx_has_hashes(f, hashes + i + n, SOME, found);
            for (size_t k = 0; k < SOME; k += 7)
                assert_int_equal(found[k],
                                 calyx_has_hash(f, hashes[i + n + k]));
        }
        assert_int_equal(calyx_has_hashes(f, hashes, KEYS, NULL), KEYS);
        assert_true(same_bodies(f, one));
        calyx_free(f);
        calyx_free(one);
    }
    free(hashes);
}

#if defined(__linux__)
/* Bytes that count for a limit: `ulimit -d`. */
static uint64_t data_bytes(void) {
    char line[200];
    uint64_t kib = 0;
    FILE *const status = fopen("/proc/self/status", "r");
    assert_non_null(status);
    while (fgets(line, sizeof line, status))
        if (strncmp(line, "VmData:", 7) == 0)
            kib = strtoull(line + 7, NULL, 10);
    fclose(status);
    return kib << 10;
}

static void segments_that_are_to_come_take_addresses_alone(void **state) {
    (void)state;
    if (SANITIZED) skip(); /* its memory counts, too */
    const uint64_t before = data_bytes();
    calyx_filter *f = make_growing(1000, 0.01);
    add_numbers(f, 0, 2000000);
    assert_true(data_bytes() - before < 2 * info_of(f).bytes + (4 << 20));
    calyx_free(f);
}
#endif

/* An addition moves one group at most: 8 lines, and what they spilled. */
static void an_addition_moves_at_most_one_group(void **state) {
    (void)state;
    const bool huge = getenv("CALYX_HUGE") && !SANITIZED;
    const uint64_t keys = huge ? 100000000 : 100000;
    calyx_filter *f = make_growing(1000, 0.01);
    for (uint64_t i = 0; i < keys; i++) {
        const uint64_t before = f->table->t.stage;
        assert_ok(calyx_add_u64(f, i, NULL));
        const uint64_t after = f->table->t.stage;
        const bool next = after == (uint64_t)(stage_number(before) + 1) << 56;
        assert_true(after == before || after == before + 1 || next);
    }
    calyx_free(f);
}

static void the_rate_of_a_grown_table_is_as_described(void **state) {
    (void)state;
    enum { KEYS = 150000, ABSENT = 400000 };
    calyx_filter *f = make_growing(100, 0.01);
    uint64_t *const numbers = malloc(ABSENT * sizeof *numbers);
    assert_non_null(numbers);
    for (uint64_t i = 0; i < ABSENT; i++) numbers[i] = i;
    assert_ok(calyx_add_many_u64(f, numbers, KEYS, NULL, NULL));
    const calyx_info info = info_of(f);
    for (uint64_t i = 0; i < ABSENT; i++) numbers[i] = KEYS + i;

    const double passed =
        (double)calyx_has_many_u64(f, numbers, ABSENT, NULL) / (double)ABSENT;

    /* 10.6 doublings of the 20 that share the rate. */
    assert_true(info.fpr_now <= 0.01 * 10.6 / (double)PLANNED_DOUBLINGS);
    assert_true(fabs(passed - info.fpr_now) <=
                6.5 * sqrt(info.fpr_now / (double)ABSENT));
    free(numbers);
    calyx_free(f);
}

/* What a hint of a table knows leads to the right lines, at all stages. */
static void newest_segments_have_the_lines_of_most_hashes(void **state) {
    (void)state;
    enum { HASHES = 4000 };
    calyx_filter *f = make_growing(40, 0.01);
    for (int number = 1; number <= 14 * POSITIONS; number++) {
        grow_one_stage(f);
        const struct bucket_table *const t = &f->table->t;
        const struct bucket_scale scale = scale_at(t, stage_number(t->stage));
        struct newest_segments newest;
        copy_newest(t, &scale, &newest);
        uint32_t older = 0;
        for (uint64_t i = 0; i < HASHES; i++) {
            const uint8_t *const line = line_in_newest(&newest, mixed(i));
            older += line == NULL;
            assert_true(!line || line == line_of_hash(t, mixed(i), scale));
        }
        assert_true(older < HASHES / 128);
    }
    calyx_free(f);
}

/* What a batch knows of them does so for all but one in 32. */
static void coarse_units_have_the_segments_of_most_hashes(void **state) {
    (void)state;
    enum { HASHES = 4000 };
    calyx_filter *f = make_growing(40, 0.01);
    for (int number = 1; number <= 14 * POSITIONS; number++) {
        grow_one_stage(f);
        const struct bucket_table *const t = &f->table->t;
        const struct bucket_scale scale = scale_at(t, stage_number(t->stage));
        struct segment_starts starts;
        fill_starts(t, &scale, &starts);
        uint32_t older = 0;
        for (uint64_t i = 0; i < HASHES; i++) {
            const uint64_t hash = mixed(i), unit = scale64(hash, scale.units);
            const uintptr_t start = starts.start[scale64(hash, starts.units)];
            older += start == 0;
            assert_true(!start || start == t->start[segment_index(unit)]);
        }
        assert_true(older <= HASHES / 24);
    }
    calyx_free(f);
}

/* Lookups of these classes need a second line. If each new code that finds its
 * bucket full were spilled, 8 % would. */
static void spilled_entries_are_of_few_classes(void **state) {
    (void)state;
    enum { KEYS = 200000 };
    calyx_filter *filled = make_growing(KEYS, 0.01);
    calyx_filter *grown = make_growing(1000, 0.01);
    add_numbers(filled, 0, KEYS);
    add_numbers(grown, 0, KEYS);
    add_numbers(grown, KEYS, info_of(grown).capacity);
    const calyx_filter *const both[] = {filled, grown};
    for (int k = 0; k < 2; k++) {
        const struct bucket_table *const t = &both[k]->table->t;
        const struct bucket_scale scale = scale_at(t, stage_number(t->stage));
        uint64_t classes = 0, spilled = 0;
        for (uint64_t i = 0; i < scale.buckets; i++) {
            const uint8_t *const line = line_at(t, i / t->groups, i);
            classes += (uint64_t)__builtin_popcount(line[CLASSES_AT]);
            spilled += line[CLASSES_AT] != 0;
        }
        const double lines = (double)scale.buckets;
        assert_true((double)spilled >= 0.15 * lines);
        assert_true((double)classes <= 0.04 * CLASSES * lines);
    }
    calyx_free(filled);
    calyx_free(grown);
}

/* Grow without keys, until the codes have run out of bits. */
static void keys_stay_when_their_codes_run_out_of_bits(void **state) {
    (void)state;
    enum { KEYS = 100, LEVELS = WIDTH_GROWING + 1 };
    calyx_filter *f = make_growing(KEYS, 0.01);
    add_numbers(f, 0, KEYS);
    for (int level = 1; level <= LEVELS; level++) {
        for (int i = 0; i < POSITIONS; i++) grow_one_stage(f);
        assert_has_numbers(f, 0, KEYS);
        add_numbers(f, 0, KEYS / 10); /* longer codes of the same keys */
        for (uint64_t k = 0; k < KEYS / 10; k++)
            assert_true(calyx_count_u64(f, k) >=
                        (level < 15 ? 1u + (uint32_t)level : 15));
    }
    for (uint64_t k = 0; k < KEYS; k += 2) {
        bool found = false;
        assert_ok(calyx_remove(f, &k, sizeof k, &found));
        assert_true(found);
    }
    for (uint64_t k = 1; k < KEYS; k += 2) assert_true(calyx_has_u64(f, k));
    calyx_free(f);
}

/* ---- Removal ------------------------------------------------------------- */

static void what_was_added_and_removed_is_gone(void **state) {
    (void)state;
    enum { KEYS = 30000 };
    for (int grows = 0; grows <= 1; grows++) {
        calyx_filter *f =
            grows ? make_growing(2000, 0.01) : make_fixed(KEYS, 0.01);
        add_numbers(f, 0, KEYS);
        for (uint64_t k = 0; k < KEYS; k++) {
            bool found = false;
            assert_ok(calyx_remove(f, &k, sizeof k, &found));
            assert_true(found);
            if (k % 1000 == 0) assert_has_numbers(f, k + 1, KEYS);
        }
        assert_int_equal(info_of(f).items, 0);
        /* Of entries that stand in two positions one may stay. */
        assert_true(info_of(f).distinct <= (grows ? 20 : 0));
        calyx_free(f);
    }
}

/* Keys with the same code on both sides of a border, each with an entry in its
 * own position alone: a move must not take them for one key. */
static void neighbours_across_a_border_are_two_keys(void **state) {
    (void)state;
    enum { POSITIONS_NOW = 7, LEVELS = 3 };
    for (uint32_t stage = 1; stage < POSITIONS * LEVELS; stage++) {
        const uint32_t p = POSITIONS + stage % POSITIONS;
        uint64_t hashes[POSITIONS_NOW][2];
        if (p == POSITIONS) continue; /* borders between codes */
        for (int times = 1; times <= 20; times += 6) {
            calyx_filter *f = make_growing(1000, 0.01);
            const uint64_t i = add_until_stage(f, stage, 0);
            for (uint32_t c = 1; c < p; c++) {
                hashes[c][1] = border(&f->table->t, c, p);
                hashes[c][0] = hashes[c][1] - 1;
                for (int j = 0; j < times; j++) {
                    assert_ok(add_hash(f, hashes[c][0]));
                    assert_ok(add_hash(f, hashes[c][1]));
                }
            }
            add_until_stage(f, stage + 1, i);

            for (uint32_t c = 1; c < p; c++) {
                const uint64_t goes = hashes[c][c % 2];
                for (int j = 0; j < times; j++)
                    assert_true(remove_hash(f, goes));
                assert_true(has_hash(f, hashes[c][!(c % 2)]));
            }
            calyx_free(f);
        }
    }
}

/* An entry that was added before the table doubled twice has fewer bits. It may
 * match a key that was added later, and must stay when that key is removed. */
static void a_removed_key_leaves_the_shorter_entry_of_another(void **state) {
    (void)state;
    for (int bit = 0; bit < 64; bit++) {
        calyx_filter *f = make_growing(20, 0.01);
        const uint64_t old = mixed(5), late = old ^ UINT64_C(1) << bit;
        assert_ok(add_hash(f, old));
        for (int i = 0; i < 2 * POSITIONS; i++) grow_one_stage(f);
        assert_ok(add_hash(f, late));
        assert_true(remove_hash(f, late));
        assert_true(has_hash(f, old));
        calyx_free(f);
    }
}

/* Random additions and removals, beside a table of what must be there. */
static void a_table_agrees_with_its_model(void **state) {
    (void)state;
    enum { KEYS = 700, STEPS = 30000 };
    static const double rates[] = {0.3, 0.01, 0.00005};
    for (int r = 0; r < 3; r++) {
        struct generator random = {17};
        uint32_t times[KEYS] = {0};
        calyx_filter *f = make_growing(20, rates[r]);
        for (int step = 0; step < STEPS; step++) {
            const size_t i = (size_t)random_below(&random, KEYS);
            const uint64_t hash = mixed(i);
            if (random_below(&random, 5) < 3 && times[i] < 4) {
                assert_ok(add_hash(f, hash));
                times[i]++;
            } else if (times[i] > 0) {
                assert_true(remove_hash(f, hash));
                times[i]--;
            }
            assert_true(times[i] == 0 || has_hash(f, hash));
            if (step % 2000) continue;
            for (size_t k = 0; k < KEYS; k++)
                assert_true(times[k] == 0 || has_hash(f, mixed(k)));
        }
        calyx_free(f);
    }
}

static void one_key_is_counted_to_15_and_then_stays(void **state) {
    (void)state;
    calyx_filter *f = make_fixed(1000, 0.001);
    for (uint32_t i = 1; i <= 40; i++) {
        add(f, "rose");
        assert_int_equal(calyx_count(f, "rose", 4), i < 15 ? i : 15);
    }
    bool found = false;
    for (int i = 0; i < 50; i++) assert_ok(calyx_remove(f, "rose", 4, &found));
    assert_true(found && has(f, "rose"));
    assert_false(has(f, "tulip"));
    assert_ok(calyx_remove(f, "tulip", 5, &found));
    assert_false(found);
    calyx_free(f);
}

/* A key that comes with every second addition takes 15 slots in all, not 15 of
 * each length that codes had, and never leaves. */
static void a_key_that_comes_often_does_not_fill_a_table_that_grows(
    void **state) {
    (void)state;
    enum { KEYS = SANITIZED ? 40000 : 200000 };
    for (int often = 1; often <= 10; often += 3) {
        calyx_filter *f = make_growing(100, 0.01);
        for (uint64_t i = 0; i < KEYS; i++) {
            assert_ok(calyx_add_u64(f, i, NULL));
            for (int n = 0; n < often; n++) add(f, "rose");
        }
        assert_in_range(info_of(f).items, KEYS, KEYS + 60);
        assert_int_equal(calyx_count(f, "rose", 4), 15);
        for (int n = 0; n < 100; n++) {
            bool found = false;
            assert_ok(calyx_remove(f, "rose", 4, &found));
            assert_true(found);
        }
        assert_true(has(f, "rose"));
        assert_has_numbers(f, 0, KEYS);
        calyx_free(f);
    }
}

/* Some keys come by the hundred, in turn or one after the other, and go again,
 * while others come once: no key is refused, and none is lost. */
static void copies_of_few_keys_leave_room_for_others(void **state) {
    (void)state;
    enum { OFTEN = 300, ADDITIONS = 60000, ONCE = 20000 };
    for (int in_turn = 0; in_turn <= 1; in_turn++)
        for (uint64_t capacity = 100; capacity <= 1000; capacity *= 10) {
            uint32_t copies[OFTEN] = {0};
            struct generator from = {capacity};
            calyx_filter *f = make_growing(capacity, 0.01);
            for (uint64_t i = 0; i < ADDITIONS; i++) {
                const uint64_t key =
                    in_turn ? i % OFTEN : i / (ADDITIONS / OFTEN);
                assert_ok(calyx_add_u64(f, key, NULL));
                copies[key]++;
                if (i % 3 == 0)
                    assert_ok(calyx_add_u64(f, OFTEN + i / 3, NULL));
                const uint64_t other = random_word(&from) % OFTEN;
                if (i % 2 || copies[other] == 0) continue;
                assert_ok(calyx_remove_u64(f, other, NULL));
                copies[other]--;
            }
            for (uint64_t key = 0; key < OFTEN; key++)
                assert_true(!copies[key] || calyx_has_u64(f, key));
            assert_has_numbers(f, OFTEN, OFTEN + ONCE);
            assert_true(info_of(f).bytes <= 4 * ONCE);
            calyx_free(f);
        }
}

static void a_growing_table_says_up_to_which_keys_it_keeps_its_rate(
    void **state) {
    (void)state;
    const calyx_options small = {
        .kind = "bucket", .capacity = 1, .growth = 2, .seeded = true};
    const calyx_options fixed = {.kind = "bucket", .capacity = 1};
    const calyx_options chain = {.kind = "line", .capacity = 1, .growth = 2};
    calyx_info plan;
    assert_ok(calyx_plan(&small, &plan, NULL));
    assert_int_equal(plan.grows_to, UINT64_C(109) << 19);
    calyx_filter *f = make_filter(small);
    add_numbers(f, 0, 5000);
    assert_int_equal(info_of(f).grows_to, plan.grows_to);
    calyx_free(f);
    assert_ok(calyx_plan(&fixed, &plan, NULL));
    assert_int_equal(plan.grows_to, 0);
    assert_ok(calyx_plan(&chain, &plan, NULL));
    assert_int_equal(plan.grows_to, 0);
}

/* ---- No room ------------------------------------------------------------- */

/* Hashes that all go to one bucket at any size. */
static uint64_t crowded(uint64_t i) {
    return UINT64_C(0x123456789ABCD) << 12 | i;
}

static void crowded_hashes_end_in_an_error_and_nothing_is_lost(void **state) {
    (void)state;
    for (int grows = 0; grows <= 1; grows++) {
        calyx_filter *f =
            grows ? make_growing(1000, 0.01) : make_fixed(1000, 0.01);
        uint64_t n = 0;
        calyx_status status;
        for (int same = 0;
             (status = add_hash(f, crowded(n % 4096))) == CALYX_OK &&
             same < 5000;
             same++)
            n++;
        /* Hashes that agree in all bits of the code stay at 15 copies. */
        assert_true(status == CALYX_FULL || status == CALYX_OK);
        for (uint64_t i = 0; i < n && i < 4096; i++)
            assert_true(has_hash(f, crowded(i)));
        for (uint64_t i = 0; i < 500; i++) assert_ok(add_hash(f, mixed(i)));
        for (uint64_t i = 0; i < 500; i++) assert_true(has_hash(f, mixed(i)));
        assert_true(info_of(f).capacity <= 20 * 1000);
        calyx_free(f);
    }
}

/* Codes that differ, in two lines: the first bits are the same. */
static void crowded_lines_of_a_fixed_table_answer_yes(void **state) {
    (void)state;
    enum { KEYS = 900 };
    calyx_filter *f = make_fixed(1000, 0.01);
    for (uint64_t i = 0; i < KEYS; i++)
        assert_ok(add_hash(f, UINT64_C(7) << 60 | mixed(i) >> 6));
    for (uint64_t i = 0; i < KEYS; i++)
        assert_true(has_hash(f, UINT64_C(7) << 60 | mixed(i) >> 6));
    const calyx_info info = info_of(f);
    assert_true(info.saturated >= 1 && info.saturated <= 2);
    assert_ok(add_hash(f, UINT64_C(1) << 62));
    calyx_free(f);
}

/* All hashes of bucket 0 of a table of 256 buckets or less. */
static uint64_t hash_in_first(uint64_t i) {
    return mixed(i) >> 8;
}

/* 31 entries in its slots, and in a forged file 225 in the first 15 lines of
 * spilled ones: as many as a move takes. */
static void a_bucket_of_256_entries_is_saturated(void **state) {
    (void)state;
    enum { SLOTS = 31, LINES = 15, CODE = 0x8001 };
    calyx_filter *f = make_growing(5000, 0.01);
    const struct part *const p = f->newest;
    assert_true(p->shape.blocks <= 256 && spill_lines(p->shape.blocks) > LINES);
    assert_int_equal(f->table->t.width, WIDTH_GROWING);
    for (uint64_t i = 0; i < SLOTS; i++)
        assert_ok(add_hash(f, hash_in_first(i / 2)));
    p->body[CLASSES_AT] = 0xFF;
    for (uint32_t n = 0; n < LINES; n++) {
        uint8_t *const line = p->body + (p->shape.blocks + n) * BUCKET_BYTES;
        for (uint32_t i = 0; i < SPILL_ENTRIES; i++)
            store32(line + 4 * i, (CODE + 2 * (n * SPILL_ENTRIES + i)) |
                                      (n << 4) << WIDTH_GROWING);
        store32(line + 4 * SPILL_ENTRIES, 1000);
    }
    assert_ok(add_hash(f, hash_in_first(SLOTS)));
    assert_int_equal(info_of(f).saturated, 1);
    for (uint64_t i = 0; i <= SLOTS; i++)
        assert_true(has_hash(f, hash_in_first(i / 2)));
    calyx_free(f);
}

static void a_fixed_table_takes_keys_until_it_is_full(void **state) {
    (void)state;
    calyx_filter *f = make_fixed(10000, 0.01);
    uint64_t n = 0;
    while (calyx_add_u64(f, n, NULL) == CALYX_OK) n++;
    assert_true(n >= 10000 && n < 12500);
    assert_has_numbers(f, 0, n);
    assert_int_equal(info_of(f).items, n);
    assert_int_equal(info_of(f).parts, 1);
    calyx_free(f);

    f = make_filter(
        (calyx_options){.kind = "bucket", .capacity = 500, .strict = true});
    add_numbers(f, 0, 500);
    assert_int_equal(calyx_add_u64(f, 1000, NULL), CALYX_FULL);
    assert_ok(calyx_add_u64(f, 0, NULL)); /* it is there */
    calyx_free(f);
}

/* ---- Copies, bytes, files ------------------------------------------------ */

static calyx_filter *decoded(const calyx_filter *f) {
    const size_t size = (size_t)calyx_encoded_size(f);
    uint8_t *bytes = aligned_alloc(64, (size + 63) / 64 * 64);
    calyx_filter *again = NULL, *view = NULL;
    calyx_error why;
    assert_non_null(bytes);
    assert_ok(calyx_encode(f, bytes, size, NULL));
    if (calyx_decode(bytes, size, NULL, &again, &why) != CALYX_OK)
        fail_msg("%s", why.text);
    assert_ok(calyx_view(bytes, size, NULL, &view, NULL));
    for (uint64_t i = 0; i < 3000; i++)
        assert_int_equal(calyx_has_u64(view, i), calyx_has_u64(f, i));
    assert_int_equal(calyx_add_u64(view, 1, NULL), CALYX_READ_ONLY);
    calyx_free(view);
    free(bytes);
    return again;
}

/* At any time, also while groups move. */
static void a_table_from_bytes_goes_on_as_the_first_does(void **state) {
    (void)state;
    calyx_filter *f = make_growing(40, 0.01);
    for (uint64_t i = 0; i < 2000; i++) {
        assert_ok(calyx_add_u64(f, i, NULL));
        if (i % 61 && i % 64) continue;
        calyx_filter *copy = NULL, *again = decoded(f);
        assert_ok(calyx_copy(f, &copy, NULL));
        assert_true(same_bodies(f, again) && same_bodies(f, copy));
        for (uint64_t k = i + 1; k < i + 40; k++) {
            assert_ok(calyx_add_u64(copy, k, NULL));
            assert_ok(calyx_add_u64(again, k, NULL));
        }
        assert_true(same_bodies(copy, again));
        assert_has_numbers(again, 0, i + 40);
        calyx_free(copy);
        calyx_free(again);
    }
    calyx_free(f);
}

/* There are none where addresses are few. */
static bool can_have_rows(void) {
    struct memory_row row;
    const bool can = memory_make_row(&row, 1 << 20, 0);
    if (can) memory_end_row(&row);
    return can;
}

/* Do all segments of a table lie in rows? */
static bool is_in_rows(const calyx_filter *f) {
    const struct filter_table *const table = f->table;
    bool all = table->rows && table->t.row_segments == table->segments;
    for (const struct part *p = f->newest; p; p = p->older)
        all &= p->lines != NULL;
    return all;
}

/* The buckets of a large table follow each other, in a row: so their lines for
 * spilled entries lie elsewhere. Nothing else differs from a table that has
 * other memory, and no row. */
static void check_rows(uint64_t capacity) {
    enum { KEYS = 400000, MORE = 20000 };
    struct books books = {0};
    const calyx_memory memory = {counted_allocate, counted_release, &books};
    const calyx_options want = {
        .kind = "bucket", .capacity = capacity, .fpr = 0.01, .growth = 2};
    calyx_options apart = want;
    apart.memory = &memory;
    calyx_filter *f = make_filter(want), *g = make_filter(apart);
    for (int turn = 0; turn < 2; turn++) {
        calyx_filter *copy = NULL, *again;
        add_numbers(f, 0, KEYS);
        add_numbers(g, 0, KEYS);
        assert_true(same_bodies(f, g) && !has_rows(g));
        again = decoded(f);
        assert_ok(calyx_copy(f, &copy, NULL));
        assert_int_equal(is_in_rows(f) && is_in_rows(again) && is_in_rows(copy),
                         can_have_rows());
        assert_true(same_bodies(f, again) && same_bodies(f, copy));
        add_numbers(copy, KEYS, KEYS + MORE);
        add_numbers(again, KEYS, KEYS + MORE);
        add_numbers(g, KEYS, KEYS + MORE);
        assert_true(same_bodies(copy, g) && same_bodies(again, g));
        assert_has_numbers(again, 0, KEYS + MORE);
        calyx_free(copy);
        calyx_free(again);
        assert_ok(calyx_clear(f)); /* and once more, in the same row */
        assert_ok(calyx_clear(g));
        assert_int_equal(count_found(f, 0, 1000), 0);
    }
    calyx_free(f);
    calyx_free(g);
    assert_int_equal(books.bytes, 0);
}

/* Small segments move to the rows when the table grows. */
static void a_table_in_a_row_is_as_one_elsewhere(void **state) {
    (void)state;
    check_rows(100);
}

static void a_table_whose_first_segment_is_large_begins_in_a_row(void **state) {
    (void)state;
    check_rows(50000);
}

/* Readers may be in segments that would have to move. */
static void a_concurrent_table_has_no_row(void **state) {
    (void)state;
    calyx_filter *const f = make_filter((calyx_options){.kind = "bucket",
                                                        .capacity = 100,
                                                        .fpr = 0.01,
                                                        .growth = 2,
                                                        .concurrent = true});
    add_numbers(f, 0, 200000);
    assert_true(!f->table->rows && !f->newest->lines);
    assert_has_numbers(f, 0, 200000);
    calyx_free(f);
}

/* A row, and then no addresses are left for it. */
static void a_table_goes_on_after_its_row(void **state) {
    (void)state;
    enum { KEYS = 300000, MORE = 900000, BATCH = 1000 };
    calyx_filter *f = make_growing(100, 0.01), *g = make_growing(100, 0.01);
    uint64_t hashes[BATCH];
    add_numbers(f, 0, KEYS);
    add_numbers(g, 0, KEYS);
    struct memory_row *const row =
        f->table->rows ? &f->table->rows->buckets : NULL;
    const size_t size = row ? row->size : 0;
    if (row) row->size = 0;
    add_numbers(f, KEYS, MORE);
    add_numbers(g, KEYS, MORE);
    assert_true(!f->newest->lines && same_bodies(f, g));
    for (uint64_t i = 0; i < MORE; i += BATCH) {
        for (uint64_t k = 0; k < BATCH; k++)
            hashes[k] = calyx_hash_u64(f, i + k);
        assert_int_equal(calyx_has_hashes(f, hashes, BATCH, NULL), BATCH);
        assert_int_equal(calyx_has_hashes(g, hashes, BATCH, NULL), BATCH);
    }
    calyx_filter *again = decoded(f);
    assert_true(same_bodies(again, g));
    if (row) row->size = size;
    calyx_free(again);
    calyx_free(f);
    calyx_free(g);
}

static bool grows_in_rows(void) {
    calyx_filter *const f = make_growing(100, 0.01);
    add_numbers(f, 0, 200000);
    assert_has_numbers(f, 0, 200000);
    const bool is = is_in_rows(f);
    assert_true(is || (!f->table->rows && !f->newest->lines));
    calyx_free(f);
    return is;
}

/* Its first bytes are copied to a huge page when it has many. */
static void a_row_keeps_its_bytes_when_it_takes_a_huge_page(void **state) {
    (void)state;
    enum { SMALL = 200000, LARGE = 1 << 20, ALL = 6 << 20 };
    struct memory_row row;
    if (!memory_make_row(&row, ALL, LARGE)) {
        skip();
        return;
    }
    assert_true(memory_extend_row(&row, SMALL) && row.begins_small);
    for (uint64_t i = 0; i < SMALL; i++) row.at[i] = (char)(i * i >> 8);
    const char *const before = row.at;
    assert_true(memory_extend_row(&row, LARGE) && !row.begins_small);
    assert_true(memory_extend_row(&row, ALL) && row.at == before);
    assert_false(memory_extend_row(&row, ALL + 1));
    for (uint64_t i = 0; i < ALL; i++)
        assert_int_equal(row.at[i], i < SMALL ? (char)(i * i >> 8) : 0);
    memory_end_row(&row);
}

/* Rows take mappings, of which a process has 65,530. A table needs two rows. */
static void many_tables_leave_mappings_for_others(void **state) {
    (void)state;
    static struct memory_row rows[ROWS_MOST + 1];
    uint32_t n = 0;
    while (n <= ROWS_MOST && memory_make_row(&rows[n], 1 << 20, 0)) n++;
    assert_true(n <= ROWS_MOST);
    assert_false(grows_in_rows());
    if (n) memory_end_row(&rows[--n]);
    assert_false(grows_in_rows());
    while (n) memory_end_row(&rows[--n]);
    assert_int_equal(grows_in_rows(), can_have_rows());
}

static void a_file_is_mapped_for_reading_and_not_for_writing(void **state) {
    (void)state;
    char path[FOLDER_BYTES];
    snprintf(path, sizeof path, "%s/calyx_bucket_XXXXXX", temporary_or("/tmp"));
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    calyx_filter *f = make_growing(100, 0.01), *g = NULL;
    calyx_error why;
    add_numbers(f, 0, 5000);
    assert_ok(calyx_save(f, path, NULL));

    assert_ok(calyx_map(path, CALYX_READ, NULL, &g, NULL));
    assert_has_numbers(g, 0, 5000);
    for (uint64_t i = 5000; i < 9000; i++)
        assert_int_equal(calyx_has_u64(g, i), calyx_has_u64(f, i));
    calyx_free(g);
    assert_int_equal(calyx_map(path, CALYX_WRITE, NULL, &g, &why),
                     CALYX_CANNOT);
    assert_non_null(strstr(why.text, "load and save it"));
    calyx_free(f);
    close(fd);
    unlink(path);
}

static void what_a_table_cannot_is_refused(void **state) {
    (void)state;
    calyx_filter *f = make_fixed(1000, 0.01), *g = make_fixed(1000, 0.01);
    calyx_filter *made = NULL;
    calyx_overlap overlap;
    uint64_t size;
    assert_int_equal(calyx_merge(f, g, NULL), CALYX_CANNOT);
    assert_int_equal(calyx_intersect(f, g, NULL), CALYX_CANNOT);
    assert_int_equal(calyx_compare(f, g, &overlap, NULL), CALYX_CANNOT);
    assert_int_equal(calyx_fold(f, 2, &made, NULL), CALYX_CANNOT);
    assert_int_equal(calyx_freeze(f, &made, NULL), CALYX_CANNOT);
    assert_null(calyx_bits(f, &size));
    calyx_free(f);
    calyx_free(g);
}

static void a_cleared_table_starts_again(void **state) {
    (void)state;
    calyx_filter *f = make_growing(100, 0.01), *g = make_growing(100, 0.01);
    add_numbers(f, 0, 3000);
    assert_ok(calyx_clear(f));
    assert_int_equal(count_found(f, 0, 3000), 0);
    add_numbers(f, 5000, 7000);
    add_numbers(g, 5000, 7000);
    assert_true(same_bodies(f, g));
    calyx_free(f);
    calyx_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] =
    { cmocka_unit_test(a_full_table_takes_the_bits_that_were_promised),
      cmocka_unit_test(growth_holds_20_bits_a_key_when_full_and_at_most_26),
      cmocka_unit_test(growth_has_room_with_many_seeds),
      cmocka_unit_test(copies_of_keys_do_not_fill_a_table_that_grows),
      cmocka_unit_test(a_table_that_grows_has_wide_codes),
      cmocka_unit_test(every_width_has_its_keys_and_keeps_its_rate),
      cmocka_unit_test(all_kernels_leave_the_same_bytes),
      cmocka_unit_test(a_growing_table_has_every_key_at_any_time),
      cmocka_unit_test(batches_do_what_single_calls_do),
      cmocka_unit_test(newest_segments_have_the_lines_of_most_hashes),
      cmocka_unit_test(coarse_units_have_the_segments_of_most_hashes),
      cmocka_unit_test(spilled_entries_are_of_few_classes),
#if defined(__linux__)
      cmocka_unit_test(segments_that_are_to_come_take_addresses_alone),
#endif
      cmocka_unit_test(an_addition_moves_at_most_one_group),
      cmocka_unit_test(the_rate_of_a_grown_table_is_as_described),
      cmocka_unit_test(keys_stay_when_their_codes_run_out_of_bits),
      cmocka_unit_test(what_was_added_and_removed_is_gone),
      cmocka_unit_test(neighbours_across_a_border_are_two_keys),
      cmocka_unit_test(a_removed_key_leaves_the_shorter_entry_of_another),
      cmocka_unit_test(a_table_agrees_with_its_model),
      cmocka_unit_test(one_key_is_counted_to_15_and_then_stays),
      cmocka_unit_test(a_key_that_comes_often_does_not_fill_a_table_that_grows),
      cmocka_unit_test(copies_of_few_keys_leave_room_for_others),
      cmocka_unit_test(crowded_hashes_end_in_an_error_and_nothing_is_lost),
      cmocka_unit_test(a_growing_table_says_up_to_which_keys_it_keeps_its_rate),
      cmocka_unit_test(crowded_lines_of_a_fixed_table_answer_yes),
      cmocka_unit_test(a_bucket_of_256_entries_is_saturated),
      cmocka_unit_test(a_fixed_table_takes_keys_until_it_is_full),
      cmocka_unit_test(a_table_from_bytes_goes_on_as_the_first_does),
      cmocka_unit_test(a_table_in_a_row_is_as_one_elsewhere),
      cmocka_unit_test(a_table_whose_first_segment_is_large_begins_in_a_row),
      cmocka_unit_test(a_concurrent_table_has_no_row),
      cmocka_unit_test(a_row_keeps_its_bytes_when_it_takes_a_huge_page),
      cmocka_unit_test(a_table_goes_on_after_its_row),
      cmocka_unit_test(many_tables_leave_mappings_for_others),
      cmocka_unit_test(a_file_is_mapped_for_reading_and_not_for_writing),
      cmocka_unit_test(what_a_table_cannot_is_refused),
      cmocka_unit_test(a_cleared_table_starts_again),
    };
    return RUN_TESTS(tests);
}
