/* The distinct kind: a table of fingerprints in which a key that is found takes
 * no room. What it shares with bucket is tested in bucket.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support_tables.h"

static calyx_filter *make_growing(uint64_t capacity, double fpr) {
    return make_filter((calyx_options){
        .kind = "distinct", .capacity = capacity, .fpr = fpr, .growth = 2});
}

static calyx_filter *make_fixed(uint64_t capacity, double fpr) {
    return make_filter(
        (calyx_options){.kind = "distinct", .capacity = capacity, .fpr = fpr});
}

/* The hashes mixed(0) to mixed(n - 1). */
static uint64_t *make_hashes(size_t n) {
    uint64_t *const hashes = malloc(n * sizeof *hashes);
    assert_non_null(hashes);
    for (size_t i = 0; i < n; i++) hashes[i] = mixed(i);
    return hashes;
}

/* Add many. Returns the number that were fresh. */
static size_t add_fresh(calyx_filter *f, const uint64_t *hashes, size_t n) {
    bool *const fresh = malloc(n);
    size_t count = 0, added = 0;
    assert_non_null(fresh);
    assert_ok(calyx_add_hashes(f, hashes, n, fresh, &added));
    assert_int_equal(added, n);
    for (size_t i = 0; i < n; i++) count += fresh[i];
    free(fresh);
    return count;
}

static void assert_has_hashes(const calyx_filter *f, const uint64_t *hashes,
                              size_t n) {
    assert_int_equal(calyx_has_hashes(f, hashes, n, NULL), n);
}

static void reverse(uint64_t *hashes, size_t n) {
    for (size_t i = 0; i < n / 2; i++) {
        const uint64_t last = hashes[n - 1 - i];
        hashes[n - 1 - i] = hashes[i];
        hashes[i] = last;
    }
}

static void shuffle(uint64_t *hashes, size_t n, struct generator *random) {
    for (size_t i = n; i > 1; i--) {
        const size_t j = (size_t)random_below(random, i);
        const uint64_t other = hashes[j];
        hashes[j] = hashes[i - 1];
        hashes[i - 1] = other;
    }
}

/* ---- Keys that come again -------------------------------------------------
 */

static void assert_takes_no_room(calyx_filter *f, uint64_t *hashes, size_t n) {
    calyx_filter *before = NULL;
    assert_ok(calyx_copy(f, &before, NULL));
    for (size_t i = 0; i < n; i += 3) {
        bool fresh = true;
        assert_ok(calyx_add_hashes(f, hashes + i, 1, &fresh, NULL));
        assert_false(fresh);
    }
    assert_int_equal(add_fresh(f, hashes, n), 0);
    reverse(hashes, n);
    assert_int_equal(add_fresh(f, hashes, n), 0);
    assert_ok(calyx_add_hashes(f, hashes, n, NULL, NULL));
    assert_true(same_bodies(f, before));
    assert_int_equal(info_of(f).items, info_of(before).items);
    calyx_free(before);
}

static void a_key_that_comes_again_takes_no_room_at_any_width(void **state) {
    (void)state;
    enum { KEYS = 4000 };
    uint32_t widths = 0;
    for (int grows = 0; grows <= 1; grows++)
        for (int i = 0; i <= (grows ? 8 : 18); i++) {
            uint64_t *const hashes = make_hashes(KEYS);
            calyx_filter *f = grows ? make_growing(300, rate_of(i))
                                    : make_fixed(KEYS, rate_of(i));
            const size_t fresh = add_fresh(f, hashes, KEYS);
            const calyx_info info = info_of(f);
            if (grows) widths |= 1u << info.probes;
            assert_int_equal(info.items, fresh);
            assert_true((double)fresh >= KEYS * (1 - rate_of(i)));
            assert_has_hashes(f, hashes, KEYS);

            assert_takes_no_room(f, hashes, KEYS);

            free(hashes);
            calyx_free(f);
        }
    assert_int_equal(widths, 0x1E00); /* 17 to 20 bits */
}

static void a_key_that_comes_again_takes_no_room_at_any_size(void **state) {
    (void)state;
    for (size_t n = 1; n <= 100000; n = n * 7 / 2 + 1) {
        uint64_t *const hashes = make_hashes(n);
        calyx_filter *fixed = make_fixed(n, 0.01),
                     *grown = make_growing(5, 0.01);
        add_fresh(fixed, hashes, n);
        add_fresh(grown, hashes, n);
        assert_takes_no_room(fixed, hashes, n);
        assert_takes_no_room(grown, hashes, n);
        free(hashes);
        calyx_free(fixed);
        calyx_free(grown);
    }
}

/* A batch is prefetched and compared by vectors, before its first keys are in:
 * so that keys come again next to each other, or soon, is a case of its own. */
static void a_key_is_once_in_a_batch_that_has_it_often(void **state) {
    (void)state;
    enum { KEYS = 5000, TIMES = 3 };
    static const size_t distances[] = {1, 2, 7, 16, 100, 1000, KEYS};
    uint64_t *const batch = malloc(TIMES * KEYS * sizeof *batch);
    bool *const fresh = malloc(TIMES * KEYS);
    assert_true(batch && fresh);
    for (int grows = 0; grows <= 1; grows++)
        for (size_t d = 0; d < sizeof distances / sizeof *distances; d++) {
            const size_t some = distances[d];
            calyx_filter *f =
                grows ? make_growing(40, 0.01) : make_fixed(KEYS, 0.01);
            calyx_filter *once =
                grows ? make_growing(40, 0.01) : make_fixed(KEYS, 0.01);
            size_t n = 0;
            for (size_t i = 0; i < KEYS; i += some)
                for (int times = 0; times < TIMES; times++)
                    for (size_t k = i; k < i + some && k < KEYS; k++)
                        batch[n++] = mixed(k);
            assert_int_equal(n, TIMES * KEYS);
            assert_ok(calyx_add_hashes(f, batch, n, fresh, NULL));
            size_t items = 0;
            for (size_t i = 0; i < n; i++) {
                bool is = false;
                assert_ok(calyx_add_hashes(once, batch + i, 1, &is, NULL));
                assert_int_equal(is, fresh[i]);
                items += is;
            }
            assert_int_equal(info_of(f).items, items);
            assert_true(items <= KEYS && (double)items > 0.97 * KEYS);
            assert_true(same_bodies(f, once));
            calyx_free(f);
            calyx_free(once);
        }
    free(fresh);
    free(batch);
}

static bool is_full(const calyx_filter *f) {
    calyx_info info;
    calyx_info_of(f, &info);
    return info.items >= info.capacity;
}

static void a_full_table_that_gets_known_keys_does_not_grow(void **state) {
    (void)state;
    for (uint64_t capacity = 100; capacity <= 10000; capacity *= 10) {
        calyx_filter *f = make_growing(capacity, 0.01);
        uint64_t n = 0;
        /* Full, with no group on its way: the next new key adds a segment. */
        while (n < 4 * capacity || f->table->t.stage & MOVED_MASK ||
               !is_full(f))
            assert_ok(add_hash(f, mixed(n++)));
        uint64_t *const hashes = make_hashes(n);
        const uint32_t parts = info_of(f).parts;

        assert_takes_no_room(f, hashes, n);

        assert_int_equal(info_of(f).parts, parts);
        while (is_full(f)) assert_ok(add_hash(f, mixed(n++)));
        assert_int_equal(info_of(f).parts, parts + 1);
        free(hashes);
        calyx_free(f);
    }
}

static void a_strict_table_that_is_full_takes_known_keys(void **state) {
    (void)state;
    calyx_filter *f = make_filter(
        (calyx_options){.kind = "distinct", .capacity = 500, .strict = true});
    uint64_t n = 0;
    while (add_hash(f, mixed(n)) == CALYX_OK) n++;
    assert_int_equal(info_of(f).items, 500);
    assert_true(n >= 500 && n < 530);
    uint64_t *const hashes = make_hashes(n);
    assert_takes_no_room(f, hashes, n);
    assert_int_equal(add_hash(f, mixed(n)), CALYX_FULL);
    free(hashes);
    calyx_free(f);
}

/* ---- Growth ---------------------------------------------------------------
 */

/* Every key three times, in other orders, over 14 doublings. From 1,000 keys
 * these are 16 million: less, unless there is time. */
static void no_key_is_lost_over_14_doublings(void **state) {
    (void)state;
    const bool huge = getenv("CALYX_HUGE") && !SANITIZED;
    for (size_t first = 10; first <= 1000; first *= 10) {
        const size_t most = first << (huge           ? 14
                                      : SANITIZED    ? 7
                                      : first < 1000 ? 14
                                                     : 10);
        struct generator random = {first};
        uint64_t *const hashes = make_hashes(most), fresh = 0;
        calyx_filter *f = make_growing(first, 0.01);
        for (size_t n = 0; n < most; n = n ? 2 * n : first) {
            const size_t more = n ? n : first;
            fresh += add_fresh(f, hashes + n, more);
            reverse(hashes + n, more);
            assert_int_equal(add_fresh(f, hashes + n, more), 0);
            shuffle(hashes, n + more, &random);
            assert_int_equal(add_fresh(f, hashes, n + more), 0);
            assert_has_hashes(f, hashes, n + more);
        }
        const calyx_info info = info_of(f);
        assert_int_equal(info.items, fresh);
        assert_true(info.items <= most &&
                    (double)info.items > 0.99 * (double)most);
        assert_true(info.fpr_now <= 0.01);
        assert_true(8 * (double)info.bytes <=
                    (most < 10000 ? 60 : 28) * (double)most);
        free(hashes);
        calyx_free(f);
    }
}

/* The table grows without keys until codes have run out of bits: a key that
 * comes again is still found, by what is left of its code. */
static void a_key_that_comes_again_is_found_by_the_shortest_code(void **state) {
    (void)state;
    enum { KEYS = 150, LEVELS = WIDTH_GROWING + 1 };
    calyx_filter *f = make_growing(KEYS, 0.01);
    uint64_t *const hashes = make_hashes(KEYS);
    const size_t items = add_fresh(f, hashes, KEYS);
    for (int level = 1; level <= LEVELS; level++) {
        for (int i = 0; i < POSITIONS; i++) grow_one_stage(f);
        assert_has_hashes(f, hashes, KEYS);
        assert_int_equal(add_fresh(f, hashes, KEYS), 0);
    }
    assert_int_equal(info_of(f).items, items);
    free(hashes);
    calyx_free(f);
}

/* ---- Borders --------------------------------------------------------------
 */

enum { NEAR = 6, SIDES = 2 * NEAR };

/* Hashes on both sides of a border, from next to it to further away than a code
 * reaches, which is a 2^(width + 2)th of a group. */
static void fill_neighbours(const struct bucket_table *t, uint64_t border_hash,
                            uint64_t hashes[SIDES]) {
    const uint64_t range =
        (UINT64_MAX >> (t->width + 2)) / groups_now(t, t->stage);
    for (uint64_t i = 0; i < NEAR; i++) {
        const uint64_t far = i * range / 3;
        hashes[2 * i] = border_hash - 1 - far;
        hashes[2 * i + 1] = border_hash + far;
    }
}

/* Codes whose range goes over a border between two positions: an entry may
 * stand on one side alone, or on both, and keys on the other side may be found
 * by it or not. Whatever was added is found at all later stages. */
static void keys_at_borders_stay_found_through_all_stages(void **state) {
    (void)state;
    enum { LEVELS = 3, LATER = 3 * POSITIONS, MOST = 7 * SIDES };
    static const double rates[] = {0.01, 0.0001};
    for (int r = 0; r < 2; r++)
        for (uint32_t stage = 0; stage < LEVELS * POSITIONS; stage++)
            for (int order = 0; order < 4; order++) {
                const uint32_t p = POSITIONS + stage % POSITIONS;
                uint64_t hashes[MOST];
                size_t n = 0;
                struct generator random = {stage + 1};
                calyx_filter *f = make_growing(1000, rates[r]);
                uint64_t i = add_until_stage(f, stage, 0);
                for (uint32_t c = 1; c < p; c++) {
                    const uint64_t at = border(&f->table->t, c, p);
                    fill_neighbours(&f->table->t, at, hashes + n);
                    n += SIDES;
                }
                if (order == 1) reverse(hashes, n);
                if (order > 1) shuffle(hashes, n, &random);
                if (order == 3) n /= 2; /* some sides have none */

                for (size_t k = 0; k < n; k++)
                    assert_ok(add_hash(f, hashes[k]));
                assert_int_equal(add_fresh(f, hashes, n), 0);

                for (uint32_t later = 1; later <= LATER; later++) {
                    if (later < 4)
                        i = add_until_stage(f, stage + later, i);
                    else
                        grow_one_stage(f);
                    assert_has_hashes(f, hashes, n);
                    assert_int_equal(add_fresh(f, hashes, n), 0);
                }
                calyx_free(f);
            }
}

/* Keys come to borders while a table grows, at each stage others. */
static void keys_come_to_borders_at_every_stage(void **state) {
    (void)state;
    enum { STAGES = 6 * POSITIONS, MOST = STAGES * 7 * SIDES };
    static uint64_t hashes[MOST];
    size_t n = 0;
    uint64_t i = 0;
    calyx_filter *f = make_growing(1000, 0.01);
    for (uint32_t stage = 0; stage < STAGES; stage++) {
        const uint32_t p = POSITIONS + stage % POSITIONS;
        i = add_until_stage(f, stage, i);
        for (uint32_t c = 1; c < p; c++) {
            uint64_t *const here = hashes + n;
            fill_neighbours(&f->table->t, border(&f->table->t, c, p), here);
            /* Those that are found are keys, too. */
            for (int k = 0; k < SIDES; k++) assert_ok(add_hash(f, here[k]));
            n += SIDES;
        }
        assert_has_hashes(f, hashes, n);
        assert_int_equal(add_fresh(f, hashes, n), 0);
    }
    for (uint64_t k = 1; k <= i; k++) assert_true(has_hash(f, mixed(k)));
    calyx_free(f);
}

/* ---- No room --------------------------------------------------------------
 */

/* Hashes that begin with the same bits: those that choose a bucket, but only
 * some of a code. */
static uint64_t crowded(uint64_t i) {
    return UINT64_C(7) << 60 | mixed(i) >> 6;
}

/* Two lines of the 21 get all keys: they answer "yes" for all theirs, which is
 * a tenth of all absent keys, and refuse none. */
static void crowded_lines_of_a_fixed_table_refuse_and_lose_none(void **state) {
    (void)state;
    enum { KEYS = 900 };
    calyx_filter *f = make_fixed(1000, 0.01);
    for (uint64_t i = 0; i < KEYS; i++) assert_ok(add_hash(f, crowded(i)));
    for (uint64_t i = 0; i < KEYS; i++) assert_true(has_hash(f, crowded(i)));
    const calyx_info info = info_of(f);
    assert_true(info.saturated >= 1 && info.saturated <= 2);
    assert_true(info.fpr_now < 0.11);
    assert_ok(add_hash(f, UINT64_C(1) << 62));
    calyx_free(f);
}

/* Hashes that agree in all bits of any code are one key for a table. */
static void hashes_that_begin_alike_take_one_slot(void **state) {
    (void)state;
    enum { ALIKE = 4096 };
    for (int grows = 0; grows <= 1; grows++) {
        calyx_filter *f =
            grows ? make_growing(1000, 0.01) : make_fixed(1000, 0.01);
        for (uint64_t i = 0; i < ALIKE; i++)
            assert_ok(add_hash(f, UINT64_C(0x123456789ABCD) << 12 | i));
        assert_int_equal(info_of(f).items, 1);
        for (int i = 0; grows && i < 10 * POSITIONS; i++) grow_one_stage(f);
        for (uint64_t i = 0; i < ALIKE; i++)
            assert_true(has_hash(f, UINT64_C(0x123456789ABCD) << 12 | i));
        calyx_free(f);
    }
}

/* ---- What it says and cannot ----------------------------------------------
 */

static void a_key_is_counted_once_and_never_removed(void **state) {
    (void)state;
    for (int grows = 0; grows <= 1; grows++) {
        calyx_filter *f =
            grows ? make_growing(100, 0.01) : make_fixed(2000, 0.01);
        const uint64_t number = 7;
        bool found = false;
        add_numbers(f, 0, 2000);
        for (int i = 0; i < 20; i++) assert_false(add(f, "rose") && i > 0);
        assert_int_equal(calyx_count(f, "rose", 4), 1);
        assert_int_equal(calyx_count_u64(f, number), 1);
        assert_int_equal(calyx_remove(f, "rose", 4, &found), CALYX_CANNOT);
        assert_int_equal(calyx_remove_u64(f, number, &found), CALYX_CANNOT);
        assert_int_equal(calyx_remove_many_u64(f, &number, 1, &found, NULL),
                         CALYX_CANNOT);
        assert_true(has(f, "rose") && calyx_has_u64(f, number));
        calyx_free(f);
    }
    assert_false(calyx_kind_can("distinct") &
                 (CALYX_CAN_REMOVE | CALYX_CAN_COUNT));
}

static void assert_keeps_rate(calyx_filter *f, uint64_t n, double fpr) {
    enum { ABSENT = 200000 };
    const double now = info_of(f).fpr_now;
    uint64_t passed = 0;
    for (uint64_t i = 0; i < ABSENT; i++) passed += has_hash(f, mixed(n + i));
    assert_true(now <= 1.02 * fpr);
    assert_true(odds_at_least(passed, ABSENT, now) > UNLIKELY);
    assert_true(odds_at_most(passed, ABSENT, now) > UNLIKELY);
}

/* Keys that came again do not count: neither in the rate that is described, nor
 * in the one that is measured. */
static void the_rate_is_as_planned_however_often_keys_come(void **state) {
    (void)state;
    enum { KEYS = 60000, TIMES = 3 };
    static const double rates[] = {0.2, 0.01, 0.001};
    uint64_t *const hashes = make_hashes(KEYS);
    for (int r = 0; r < 3; r++)
        for (int grows = 0; grows <= 1; grows++) {
            calyx_filter *f = grows ? make_growing(200, rates[r])
                                    : make_fixed(KEYS, rates[r]);
            for (int times = 0; times < TIMES; times++)
                add_fresh(f, hashes, KEYS);
            assert_keeps_rate(f, KEYS, rates[r]);
            calyx_free(f);
        }
    free(hashes);
}

static void all_kernels_leave_the_same_bytes(void **state) {
    (void)state;
    enum { KEYS = 9000 };
    uint64_t *const hashes = make_hashes(KEYS);
    struct generator random = {3};
    for (int i = 0; i < 17; i++) {
        calyx_options want = {.kind = "distinct",
                              .capacity = i % 2 ? KEYS : 300,
                              .fpr = rate_of(i),
                              .growth = i % 2 || i > 10 ? 0 : 2,
                              .kernel = "scalar"};
        if (want.growth == 0) want.capacity = KEYS;
        calyx_filter *scalar = make_filter(want);
        want.kernel = NULL;
        calyx_filter *best = make_filter(want);
        for (int times = 0; times < 2; times++) {
            for (size_t k = 0; k < KEYS; k++)
                assert_ok(add_hash(scalar, hashes[k]));
            add_fresh(best, hashes, KEYS);
            shuffle(hashes, KEYS, &random);
        }
        assert_true(same_bodies(scalar, best));
        calyx_free(scalar);
        calyx_free(best);
    }
    free(hashes);
}

/* From bytes it is made again as what it is: not as a table of copies. */
static void a_table_from_bytes_has_each_key_once(void **state) {
    (void)state;
    enum { KEYS = 3000 };
    uint64_t *const hashes = make_hashes(KEYS);
    calyx_filter *f = make_growing(100, 0.01), *again = NULL;
    add_fresh(f, hashes, KEYS);
    const size_t size = (size_t)calyx_encoded_size(f);
    uint8_t *const bytes = malloc(size);
    assert_non_null(bytes);
    assert_ok(calyx_encode(f, bytes, size, NULL));
    assert_ok(calyx_decode(bytes, size, NULL, &again, NULL));
    assert_string_equal(info_of(again).kind, "distinct");
    assert_takes_no_room(again, hashes, KEYS);
    assert_true(same_bodies(f, again));
    free(bytes);
    free(hashes);
    calyx_free(f);
    calyx_free(again);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_that_comes_again_takes_no_room_at_any_width),
        cmocka_unit_test(a_key_that_comes_again_takes_no_room_at_any_size),
        cmocka_unit_test(a_key_is_once_in_a_batch_that_has_it_often),
        cmocka_unit_test(a_full_table_that_gets_known_keys_does_not_grow),
        cmocka_unit_test(a_strict_table_that_is_full_takes_known_keys),
        cmocka_unit_test(no_key_is_lost_over_14_doublings),
        cmocka_unit_test(a_key_that_comes_again_is_found_by_the_shortest_code),
        cmocka_unit_test(keys_at_borders_stay_found_through_all_stages),
        cmocka_unit_test(keys_come_to_borders_at_every_stage),
        cmocka_unit_test(crowded_lines_of_a_fixed_table_refuse_and_lose_none),
        cmocka_unit_test(hashes_that_begin_alike_take_one_slot),
        cmocka_unit_test(a_key_is_counted_once_and_never_removed),
        cmocka_unit_test(the_rate_is_as_planned_however_often_keys_come),
        cmocka_unit_test(all_kernels_leave_the_same_bytes),
        cmocka_unit_test(a_table_from_bytes_has_each_key_once),
    };
    return RUN_TESTS(tests);
}
