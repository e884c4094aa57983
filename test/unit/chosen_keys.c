/*
 * Keys that somebody has chosen so that all go to one bucket of a growing
 * table. Such a filter takes them all, takes every other key, grows no faster
 * than its keys allow, and no addition waits for the whole table to move.
 */
#include <stdlib.h>

#include "support_tables.h"

enum { CHOSEN = 2000, ORDINARY = 20000 };

static const char *const kinds[] = {"bucket", "distinct"};
static const uint64_t capacities[] = {1, 100, 1000, 100000};

static calyx_filter *make_growing(const char *kind, uint64_t capacity) {
    return make_filter((calyx_options){.kind = kind,
                                       .capacity = capacity,
                                       .fpr = 0.01,
                                       .growth = 2,
                                       .seeded = true});
}

/* Hashes that share their first bits: 8, 12 or 16. */
static uint64_t chosen(uint64_t i, int bits) {
    return UINT64_C(0xA5A5) >> (16 - bits) << (64 - bits) | mixed(i) >> bits;
}

static void add_chosen(calyx_filter *f, uint64_t from, uint64_t to, int bits) {
    for (uint64_t i = from; i < to; i++)
        assert_ok(add_hash(f, chosen(i, bits)));
}

static void add_ordinary(calyx_filter *f, uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; i++) assert_ok(add_hash(f, mixed(~i)));
}

static void assert_has_all(const calyx_filter *f, int bits) {
    uint64_t *const hashes = malloc((CHOSEN + ORDINARY) * sizeof *hashes);
    assert_non_null(hashes);
    for (uint64_t i = 0; i < CHOSEN; i++) hashes[i] = chosen(i, bits);
    for (uint64_t i = 0; i < ORDINARY; i++) hashes[CHOSEN + i] = mixed(~i);
    for (uint64_t i = 0; i < CHOSEN + ORDINARY; i++)
        assert_true(has_hash(f, hashes[i]));
    assert_int_equal(calyx_has_hashes(f, hashes, CHOSEN + ORDINARY, NULL),
                     CHOSEN + ORDINARY);
    free(hashes);
}

/* Do measured and stated rate agree, up to bad luck? */
static void assert_says_its_rate(const calyx_filter *f) {
    enum { ABSENT = 200000 };
    const double now = info_of(f).fpr_now;
    uint64_t passed = 0;
    for (uint64_t i = 0; i < ABSENT; i++)
        passed += has_hash(f, mixed(i + (UINT64_C(1) << 40)));
    assert_true(odds_at_least(passed, ABSENT, 1.1 * now) > UNLIKELY);
    assert_true(odds_at_most(passed, ABSENT, 0.8 * now) > UNLIKELY);
}

static void chosen_keys_never_fill_a_growing_table(void **state) {
    (void)state;
    for (size_t k = 0; k < 2; k++)
        for (size_t c = 0; c < sizeof capacities / sizeof *capacities; c++)
            for (int bits = 8; bits <= 16; bits += 4) {
                calyx_filter *f = make_growing(kinds[k], capacities[c]);
                add_chosen(f, 0, CHOSEN, bits);
                add_ordinary(f, 0, ORDINARY);
                assert_has_all(f, bits);
                assert_true(info_of(f).saturated > 0);
                assert_says_its_rate(f);
                calyx_free(f);
            }
}

/* Every key 12 times: tables that are still small have buckets with too many
 * copies. One key of a bucket becomes permanent in each half before a bucket is
 * saturated. */
static void copies_of_keys_seldom_saturate_a_bucket(void **state) {
    (void)state;
    enum { TABLES = 200, KEYS = 30, COPIES = 12 };
    int saturated = 0;
    for (uint64_t i = 0; i < TABLES; i++) {
        calyx_filter *f = make_growing("bucket", 1);
        for (uint64_t k = 0; k < KEYS * COPIES; k++)
            assert_ok(add_hash(f, mixed(i * KEYS + k / COPIES)));
        for (uint64_t k = 0; k < KEYS * COPIES; k++) {
            const uint64_t hash = mixed(i * KEYS + k % KEYS);
            assert_true(has_hash(f, hash));
            assert_true(calyx_count_hash(f, hash) >= COPIES - k / KEYS);
            assert_ok(calyx_remove_hash(f, hash, NULL));
        }
        saturated += info_of(f).saturated > 0;
        calyx_free(f);
    }
    assert_true(saturated <= TABLES / 100); /* one in ten if none did */
}

static void a_filter_with_saturated_buckets_is_the_same_after_a_file(
    void **state) {
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        calyx_filter *f = make_growing(kinds[k], 100), *copy, *read;
        uint64_t size;
        add_chosen(f, 0, CHOSEN, 12);
        add_ordinary(f, 0, ORDINARY / 2);
        assert_ok(calyx_copy(f, &copy, NULL));
        size = calyx_encoded_size(f);
        void *const bytes = malloc((size_t)size);
        assert_ok(calyx_encode(f, bytes, size, NULL));
        assert_ok(calyx_decode(bytes, size, NULL, &read, NULL));
        assert_true(same_bodies(f, copy) && same_bodies(f, read));
        assert_int_equal(info_of(read).saturated, info_of(f).saturated);
        add_ordinary(read, ORDINARY / 2, ORDINARY);
        assert_has_all(read, 12);
        free(bytes);
        calyx_free(f);
        calyx_free(copy);
        calyx_free(read);
    }
}

static void memory_is_bounded_by_the_keys(void **state) {
    (void)state;
    for (size_t k = 0; k < 2; k++)
        for (int bits = 8; bits <= 16; bits += 4) {
            calyx_filter *f = make_growing(kinds[k], 100000);
            const uint64_t was = info_of(f).memory;
            add_chosen(f, 0, CHOSEN, bits);
            assert_int_equal(info_of(f).memory, was);
            calyx_free(f);

            f = make_growing(kinds[k], 1000);
            calyx_filter *other = make_growing(kinds[k], 1000);
            add_chosen(f, 0, CHOSEN, bits);
            add_ordinary(f, 0, ORDINARY);
            add_ordinary(other, 0, 2 * (CHOSEN + ORDINARY));
            assert_true(info_of(f).bytes <= 2 * info_of(other).bytes);
            calyx_free(f);
            calyx_free(other);
        }
}

/* Groups that have moved since the table was made. */
static uint64_t moves_of(const calyx_filter *f) {
    const struct bucket_table *const t = &f->table->t;
    uint64_t moves = t->stage & MOVED_MASK;
    for (uint32_t i = 0; i < stage_number(t->stage); i++)
        moves += t->groups << i / POSITIONS;
    return moves;
}

static void no_addition_moves_more_than_1025_groups(void **state) {
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        calyx_filter *f = make_growing(kinds[k], 200000);
        add_ordinary(f, 0, 150000);
        uint64_t was = moves_of(f);
        for (uint64_t i = 0; i < CHOSEN; i++) {
            assert_ok(add_hash(f, chosen(i, 16)));
            const uint64_t now = moves_of(f);
            assert_true(now - was <= 1025); /* one is usual */
            was = now;
        }
        assert_true(was > 1024 && info_of(f).saturated > 0);
        calyx_free(f);
    }
}

static void unions_have_the_saturated_buckets_of_both(void **state) {
    (void)state;
    for (size_t c = 0; c < sizeof capacities / sizeof *capacities; c++)
        for (int flip = 0; flip <= 1; flip++) {
            calyx_filter *f = make_growing("distinct", capacities[c]);
            calyx_filter *other = make_growing("distinct", capacities[c]);
            add_chosen(flip ? other : f, 0, CHOSEN, 12);
            add_ordinary(flip ? f : other, 0, ORDINARY);
            assert_ok(calyx_merge(f, other, NULL));
            assert_has_all(f, 12);
            assert_true(info_of(f).saturated > 0);
            calyx_free(f);
            calyx_free(other);
        }
}

static void keys_of_a_saturated_bucket_are_found_when_they_are_removed(
    void **state) {
    (void)state;
    calyx_filter *f = make_growing("bucket", 1000);
    add_chosen(f, 0, CHOSEN, 16);
    assert_true(info_of(f).saturated > 0);
    for (uint64_t i = 0; i < CHOSEN; i++) {
        bool found;
        assert_ok(calyx_remove_hash(f, chosen(i, 16), &found));
        assert_true(found);
    }
    assert_true(has_hash(f, chosen(0, 16)));
    calyx_free(f);
}

static void concurrent_tables_take_chosen_keys(void **state) {
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        calyx_filter *f = make_filter((calyx_options){.kind = kinds[k],
                                                      .capacity = 1000,
                                                      .growth = 2,
                                                      .concurrent = true,
                                                      .seeded = true});
        add_chosen(f, 0, CHOSEN, 12);
        add_ordinary(f, 0, ORDINARY);
        assert_has_all(f, 12);
        assert_true(info_of(f).saturated > 0);
        calyx_free(f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chosen_keys_never_fill_a_growing_table),
        cmocka_unit_test(copies_of_keys_seldom_saturate_a_bucket),
        cmocka_unit_test(
            a_filter_with_saturated_buckets_is_the_same_after_a_file),
        cmocka_unit_test(memory_is_bounded_by_the_keys),
        cmocka_unit_test(no_addition_moves_more_than_1025_groups),
        cmocka_unit_test(unions_have_the_saturated_buckets_of_both),
        cmocka_unit_test(
            keys_of_a_saturated_bucket_are_found_when_they_are_removed),
        cmocka_unit_test(concurrent_tables_take_chosen_keys),
    };
    return RUN_TESTS(tests);
}
