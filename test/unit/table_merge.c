/* Tables of distinct keys are merged, whatever they have grown to. */
#include <stdlib.h>
#include <string.h>

#include "support_tables.h"

static calyx_filter *make_growing(uint64_t capacity, double fpr) {
    return make_filter((calyx_options){
        .kind = "distinct", .capacity = capacity, .fpr = fpr, .growth = 2});
}

/* The numbers from `from` on. */
static void add_some(calyx_filter *f, uint64_t from, uint64_t n) {
    for (uint64_t i = from; i < from + n; i++)
        assert_ok(calyx_add_u64(f, i, NULL));
}

static void assert_has(const calyx_filter *f, uint64_t from, uint64_t n) {
    for (uint64_t i = from; i < from + n; i++)
        if (!calyx_has_u64(f, i)) fail_msg("%llu", (unsigned long long)i);
}

static uint64_t found_of(const calyx_filter *f, uint64_t from, uint64_t n) {
    uint64_t found = 0;
    for (uint64_t i = from; i < from + n; i++) found += calyx_has_u64(f, i);
    return found;
}

enum { OTHERS = 1 << 30, ABSENT = 1 << 29 };

static uint64_t items_in(const calyx_filter *f) {
    return info_of(f).items;
}

/* The other has none of our keys. What is found in either of them is found in
 * the union. */
static void merge_two(calyx_filter *f, uint64_t n, const calyx_filter *other,
                      uint64_t others) {
    enum { TRIED = 2000 };
    bool had[TRIED];
    calyx_error why;
    const uint64_t before = items_in(f);
    for (uint64_t i = 0; i < TRIED; i++)
        had[i] =
            calyx_has_u64(f, ABSENT + i) || calyx_has_u64(other, ABSENT + i);
    if (calyx_merge(f, other, &why) != CALYX_OK) fail_msg("%s", why.text);
    assert_has(f, 0, n);
    assert_has(f, OTHERS, others);
    for (uint64_t i = 0; i < TRIED; i++)
        assert_true(!had[i] || calyx_has_u64(f, ABSENT + i));
    assert_in_range(items_in(f), before, before + items_in(other) + 8);
    assert_true(found_of(f, ABSENT, TRIED) < TRIED / 40);
}

static void merge_sizes(uint64_t capacity, double fpr, uint64_t n,
                        uint64_t others) {
    calyx_filter *const f = make_growing(capacity, fpr);
    calyx_filter *const other = make_growing(capacity, fpr);
    add_some(f, 0, n);
    add_some(other, OTHERS, others);
    merge_two(f, n, other, others);
    const uint64_t items = items_in(f);
    assert_ok(calyx_merge(f, other, NULL));
    assert_int_equal(items_in(f), items); /* all were there */
    add_some(f, n, 3 * n); /* what was merged moves as the table grows */
    assert_has(f, 0, 4 * n);
    assert_has(f, OTHERS, others);
    calyx_free(f);
    calyx_free(other);
}

static void a_union_has_the_keys_of_both(void **unused) {
    static const uint64_t sizes[] = {0, 1, 60, 500, 5000, 60000};
    (void)unused;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++) {
            merge_sizes(10, 0.01, sizes[i], sizes[j]);
            if (sizes[i] + sizes[j] < 10000)
                merge_sizes(1000, 0.001, sizes[i], sizes[j]);
        }
}

/* A key that came early to one and late to the other has codes of different
 * lengths: the shorter one takes the place of the longer. */
static void keys_that_both_have_take_no_more_room(void **unused) {
    enum { N = 20000 };
    (void)unused;
    calyx_filter *const f = make_growing(10, 0.01);
    calyx_filter *const other = make_growing(10, 0.01);
    for (uint64_t i = 0; i < N; i++) {
        assert_ok(calyx_add_u64(f, i, NULL));
        assert_ok(calyx_add_u64(other, N - 1 - i, NULL));
    }
    assert_ok(calyx_merge(f, other, NULL));
    assert_has(f, 0, N);
    assert_true(items_in(f) <= N + N / 100);
    calyx_free(f);
    calyx_free(other);
}

/* Groups are on their way in most of these. */
static void tables_are_merged_while_they_grow(void **unused) {
    (void)unused;
    for (uint64_t n = 90; n < 1500; n += 61) {
        merge_sizes(100, 0.01, n, 700);
        merge_sizes(100, 0.01, 700, n);
    }
}

static void fixed_tables_are_merged_until_they_are_full(void **unused) {
    static const double rates[] = {0.05, 0.01, 0.001, 1e-5};
    (void)unused;
    for (size_t i = 0; i < 4; i++) {
        const calyx_options want = {
            .kind = "distinct", .capacity = 4000, .fpr = rates[i]};
        calyx_filter *const f = make_filter(want);
        calyx_filter *const other = make_filter(want);
        calyx_error why;
        add_some(f, 0, 2000);
        add_some(other, OTHERS, 1900);
        if (calyx_merge(f, other, &why) != CALYX_OK) fail_msg("%s", why.text);
        assert_has(f, 0, 2000);
        assert_has(f, OTHERS, 1900);
        calyx_status status = CALYX_OK;
        for (uint64_t n = 0; status == CALYX_OK && n < 20; n++) {
            add_some(other, OTHERS + 1900 + 100 * n, 100);
            status = calyx_merge(f, other, &why);
        }
        for (uint64_t at = 1; status == CALYX_OK && at < 20; at++) {
            assert_ok(calyx_clear(other));
            add_some(other, OTHERS + 10000 * at, 2000);
            status = calyx_merge(f, other, &why);
        }
        assert_int_equal(status, CALYX_FULL);
        assert_non_null(strstr(why.text, "some of the other's keys"));
        assert_has(f, 0, 2000);
        assert_has(f, OTHERS, 1900);
        calyx_free(f);
        calyx_free(other);
    }
}

static void keys_may_come_between_the_steps(void **unused) {
    (void)unused;
    for (uint64_t start = 50; start < 400; start += 70) {
        calyx_filter *const f = make_growing(150, 0.01);
        calyx_filter *const other = make_growing(150, 0.01);
        uint64_t more = 0, steps = 0;
        add_some(f, 0, 300);
        add_some(other, OTHERS, start);
        calyx_progress at = {0};
        const uint64_t end = info_of(other).row_bytes;
        while (at.at < end) {
            assert_ok(calyx_merge_some(f, other, 64, &at, NULL));
            add_some(other, OTHERS + start + more, 20);
            add_some(f, 300 + more, 20);
            more += 20;
            steps++;
        }
        assert_true(steps >= 4);
        assert_has(f, 0, 300 + more);
        assert_has(f, OTHERS, start);
        calyx_free(f);
        calyx_free(other);
    }
}

/* Another thread may add between the call that returns the end and the first
 * step. */
static void the_other_may_grow_before_the_first_step(void **unused) {
    enum { BEFORE = 1000, AFTER = 2000 };
    (void)unused;
    calyx_filter *const f = make_growing(100, 0.01);
    calyx_filter *const other = make_growing(100, 0.01);
    calyx_progress at = {0};
    add_some(other, 0, BEFORE);
    const uint64_t end = info_of(other).row_bytes;
    add_some(other, BEFORE, AFTER);
    assert_true(info_of(other).row_bytes > end);
    while (at.at < end) assert_ok(calyx_merge_some(f, other, 4096, &at, NULL));
    assert_has(f, 0, BEFORE + AFTER);
    calyx_free(f);
    calyx_free(other);
}

/* A replica of a server gets `at` and the first of the bits. */
static void a_step_depends_on_two_numbers_alone(void **unused) {
    enum { MORE = 30 };
    (void)unused;
    calyx_filter *const f = make_growing(100, 0.01);
    calyx_filter *const other = make_growing(100, 0.01);
    calyx_filter *replica;
    calyx_progress at = {0};
    add_some(f, 0, 300);
    add_some(other, OTHERS, 4000);
    assert_ok(calyx_copy(f, &replica, NULL));
    const uint64_t end = info_of(other).row_bytes;
    for (uint64_t n = 300; at.at < end; n += MORE) {
        calyx_progress same = {.at = at.at, .bits = {at.bits[0]}};
        assert_ok(calyx_merge_some(f, other, 10000, &at, NULL));
        assert_ok(calyx_merge_some(replica, other, 10000, &same, NULL));
        assert_true(same.at == at.at && same.bits[0] == at.bits[0]);
        add_some(f, n, MORE);
        add_some(replica, n, MORE);
    }
    assert_has(replica, OTHERS, 4000);
    assert_int_equal(items_in(replica), items_in(f));
    calyx_free(f);
    calyx_free(replica);
    calyx_free(other);
}

static void what_does_not_fit_is_refused(void **unused) {
    (void)unused;
    calyx_filter *const f = make_growing(100, 0.01);
    calyx_filter *const larger = make_growing(1000, 0.01);
    calyx_filter *const line = make_filter((calyx_options){.kind = "line"});
    calyx_error why;
    calyx_overlap overlap;
    add_some(f, 0, 100);
    assert_int_equal(calyx_merge(f, larger, &why), CALYX_MISMATCH);
    assert_int_equal(calyx_merge(f, line, &why), CALYX_MISMATCH);
    assert_int_equal(calyx_intersect(f, f, &why), CALYX_CANNOT);
    assert_int_equal(calyx_compare(f, f, &overlap, &why), CALYX_CANNOT);
    assert_ok(calyx_merge(f, f, &why));
    assert_int_equal(items_in(f), 100);
    calyx_free(f);
    calyx_free(larger);
    calyx_free(line);
}

/* A code of which no table could have made so short a one. */
static void a_forged_table_is_damaged(void **unused) {
    (void)unused;
    calyx_filter *const f = make_growing(150, 0.01);
    calyx_filter *const other = make_growing(150, 0.01);
    calyx_error why;
    add_some(f, 0, 3000);
    add_some(other, OTHERS, 3000);
    uint8_t *const line = other->newest->body;
    memset(line, 0, 62);
    line[1] = 0x80; /* a slot of one bit and the stop bit */
    line[62] = 1;
    assert_int_equal(calyx_merge(f, other, &why), CALYX_DAMAGED);
    assert_has(f, 0, 3000);
    calyx_free(f);
    calyx_free(other);
}

static void a_forged_number_of_keys_takes_no_memory(void **unused) {
    (void)unused;
    calyx_filter *const f = make_growing(100, 0.01);
    calyx_filter *const other = make_growing(100, 0.01);
    calyx_error why;
    add_some(other, OTHERS, 50);
    f->newest->items = other->newest->items = UINT64_C(1) << 24;
    if (calyx_merge(f, other, &why) != CALYX_OK) fail_msg("%s", why.text);
    assert_has(f, OTHERS, 50);
    assert_true(info_of(f).memory < 1 << 20); /* 2^24 take 40 */
    calyx_free(f);
    calyx_free(other);
}

/* ---- Prefixes ------------------------------------------------------------ */

/* Every hash of the same group whose fraction begins with the same bits. */
static void assert_has_all_of(const calyx_filter *f,
                              struct hash_prefix prefix) {
    const uint64_t groups = f->table->t.groups;
    const struct scaled first = scale_whole(prefix.hash, groups);
    const uint64_t rest = UINT64_MAX >> prefix.bits;
    for (uint64_t i = 0; i < 300; i++) {
        const struct scaled at = {first.whole,
                                  (first.rest & ~rest) | (mixed(i) & rest)};
        const uint64_t hash = unscale_whole(at, groups);
        if (((hash * groups ^ first.rest) & ~rest) != 0) continue;
        if (!calyx_has_hash(f, hash))
            fail_msg("bits %u, hash %llx", prefix.bits,
                     (unsigned long long)hash);
    }
}

/* Also those that have fewer bits than the level: they go to many groups. */
static void a_prefix_stands_for_all_its_hashes(void **unused) {
    uint32_t tried = 0, done = 0;
    (void)unused;
    for (uint64_t n = 50; n < 30000; n = n * 5 / 3) {
        calyx_filter *const f = make_growing(150, 0.01);
        add_some(f, 0, n);
        if (scale_of(&f->table->t, f->table->t.stage, UINT64_MAX).level < 2 ||
            scale_of(&f->table->t, f->table->t.stage, 0).level < 2) {
            calyx_free(f);
            continue;
        }
        uint32_t added = 0; /* a bit for each: a full bucket has no room */
        for (uint32_t bits = 1; bits < 30; bits++) {
            const struct hash_prefix prefix = {mixed(bits + n), bits};
            if (bucket_add_prefix(&f->table->t, &prefix) == NO_ROOM) continue;
            assert_has_all_of(f, prefix);
            added |= UINT32_C(1) << bits;
        }
        tried += 29;
        done += (uint32_t)__builtin_popcount(added);
        add_some(f, n, 4 * n);
        for (uint32_t bits = 1; bits < 30; bits++)
            if (added >> bits & 1)
                assert_has_all_of(f,
                                  (struct hash_prefix){mixed(bits + n), bits});
        calyx_free(f);
    }
    assert_true(tried > 200 && done > tried * 3 / 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_union_has_the_keys_of_both),
        cmocka_unit_test(keys_that_both_have_take_no_more_room),
        cmocka_unit_test(tables_are_merged_while_they_grow),
        cmocka_unit_test(fixed_tables_are_merged_until_they_are_full),
        cmocka_unit_test(keys_may_come_between_the_steps),
        cmocka_unit_test(the_other_may_grow_before_the_first_step),
        cmocka_unit_test(a_step_depends_on_two_numbers_alone),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(a_forged_table_is_damaged),
        cmocka_unit_test(a_forged_number_of_keys_takes_no_memory),
        cmocka_unit_test(a_prefix_stands_for_all_its_hashes),
    };
    return RUN_TESTS(tests);
}
