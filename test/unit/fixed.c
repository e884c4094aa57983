/* Tables of fixed size: the kinds bucket and distinct without growth. What they
 * share with tables that grow is tested in bucket.c and distinct.c. */
#include "table/fixed.h"

#include <stdlib.h>
#include <string.h>

#include "support_tables.h"

static calyx_filter *make_table(const char *kind, uint64_t capacity,
                                double fpr) {
    return make_filter(
        (calyx_options){.kind = kind, .capacity = capacity, .fpr = fpr});
}

static bool is_zero(const calyx_filter *f) {
    const struct part *const p = f->newest;
    const size_t bytes = (size_t)body_bytes(f->kind, &p->shape);
    for (size_t i = 0; i < bytes; i++)
        if (p->body[i]) return false;
    return true;
}

/* ---- A model --------------------------------------------------------------
 */

/* Keys by number, each with the copies that were added and not removed. */
enum { MODEL_KEYS = 1500, COPIES_BELOW = 14 };

static void assert_is_model(const calyx_filter *f, const uint8_t *copies) {
    for (uint64_t i = 0; i < MODEL_KEYS; i++) {
        if (copies[i] == 0) continue;
        assert_true(has_hash(f, mixed(i)));
        assert_true(calyx_count_hash(f, mixed(i)) >= copies[i]);
    }
}

/* Fill a table with keys, some many times, empty it to a third,
 * and again; so lines spill and take back keys all the time. */
static void churn(calyx_filter *f, struct generator *random, uint8_t *copies,
                  uint64_t most) {
    uint64_t items = 0;
    for (int turn = 0; turn < 4; turn++) {
        while (items < most) {
            const uint64_t i = random_below(random, MODEL_KEYS);
            if (copies[i] == COPIES_BELOW) continue;
            assert_ok(add_hash(f, mixed(i)));
            copies[i]++, items++;
        }
        assert_is_model(f, copies);
        while (items > most / 3) {
            const uint64_t i = random_below(random, MODEL_KEYS);
            bool found;
            if (copies[i] == 0) continue;
            assert_ok(calyx_remove_hash(f, mixed(i), &found));
            assert_true(found);
            copies[i]--, items--;
        }
        assert_is_model(f, copies);
    }
}

static void a_table_keeps_each_copy_at_every_width(void **state) {
    (void)state;
    struct generator random = {7};
    for (int i = 0; i <= 18; i++) {
        uint8_t copies[MODEL_KEYS] = {0};
        calyx_filter *f = make_table("bucket", 2000, rate_of(i));
        churn(f, &random, copies, 1600);
        assert_int_equal(info_of(f).saturated, 0);
        for (uint64_t k = 0; k < MODEL_KEYS; k++)
            for (; copies[k]; copies[k]--)
                assert_ok(calyx_remove_hash(f, mixed(k), NULL));
        assert_true(is_zero(f));
        assert_int_equal(info_of(f).items, 0);
        calyx_free(f);
    }
}

/* The scalar kernel is the definition: all others leave the same bytes. */
static void kernels_leave_the_same_bytes(void **state) {
    (void)state;
    enum { KEYS = 5000 };
    for (int i = 0; i <= 18; i++) {
        calyx_filter *f[2];
        uint64_t hashes[KEYS];
        bool found[2][KEYS];
        for (uint64_t k = 0; k < KEYS; k++) hashes[k] = mixed(k);
        for (int j = 0; j < 2; j++) {
            f[j] = make_filter((calyx_options){
                .kind = "bucket",
                .capacity = KEYS,
                .fpr = rate_of(i),
                .kernel = j ? NULL : "scalar",
            });
            assert_ok(calyx_add_hashes(f[j], hashes, KEYS, NULL, NULL));
        }
        assert_true(same_bodies(f[0], f[1]));
        for (uint64_t k = 0; k < KEYS; k++) hashes[k] = mixed(k * 7 / 2);
        for (int j = 0; j < 2; j++)
            calyx_has_hashes(f[j], hashes, KEYS, found[j]);
        assert_memory_equal(found[0], found[1], sizeof *found);
        for (int j = 0; j < 2; j++) calyx_free(f[j]);
    }
}

/* ---- Rates ----------------------------------------------------------------
 */

/* The rate of a full table is between 0.8 and 1.0 of the promise, from 5 % to
 * 1.2e-6, below which slots would need more than 20 bits. */
static void every_rate_is_nearly_the_promise(void **state) {
    (void)state;
    for (double fpr = 0.05; fpr > 1.2e-6; fpr *= 0.93) {
        const calyx_options want = {
            .kind = "bucket", .capacity = 10000000, .fpr = fpr};
        double rate;
        assert_ok(calyx_rate_at(&want, want.capacity, &rate, NULL));
        assert_true(rate <= fpr * (1 + 1e-9));
        assert_true(rate >= 0.8 * fpr);
    }
}

/* ---- Copies ---------------------------------------------------------------
 */

static void the_15th_copy_stays_and_takes_no_more_room(void **state) {
    (void)state;
    calyx_filter *f = make_table("bucket", 100, 0.01);
    for (int i = 0; i < 14; i++) assert_ok(add_hash(f, mixed(1)));
    for (int i = 0; i < 14; i++) {
        bool found;
        assert_ok(calyx_remove_hash(f, mixed(1), &found));
        assert_true(found);
    }
    assert_false(has_hash(f, mixed(1)));

    for (int i = 0; i < 1000; i++) assert_ok(add_hash(f, mixed(1)));

    assert_int_equal(calyx_count_hash(f, mixed(1)), 15);
    assert_int_equal(info_of(f).distinct, 15);
    for (int i = 0; i < 20; i++) calyx_remove_hash(f, mixed(1), NULL);
    assert_true(has_hash(f, mixed(1)));
    assert_ok(add_hash(f, mixed(2)));
    calyx_free(f);
}

/* However the copies come: one by one, in a batch, beside readers. */
static void copies_count_the_same_in_a_batch(void **state) {
    (void)state;
    enum { KEYS = 40, EACH = 20 };
    uint64_t hashes[KEYS * EACH], items[3];
    for (uint64_t i = 0; i < KEYS * EACH; i++) hashes[i] = mixed(i / EACH);
    for (int i = 0; i < 3; i++) {
        calyx_filter *f = make_filter((calyx_options){
            .kind = "bucket", .capacity = 20000, .concurrent = i == 2});
        if (i == 0)
            for (int k = 0; k < KEYS * EACH; k++)
                assert_ok(add_hash(f, hashes[k]));
        else
            assert_ok(calyx_add_hashes(f, hashes, KEYS * EACH, NULL, NULL));
        assert_int_equal(info_of(f).saturated, 0);
        items[i] = info_of(f).items;
        calyx_free(f);
    }
    assert_int_equal(items[0], KEYS * 14);
    assert_int_equal(items[1], items[0]);
    assert_int_equal(items[2], items[0]);
}

/* Sorted hashes crowd one line after the other: too many are refused, too. */
static void too_many_keys_are_refused_in_any_order(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        calyx_filter *f = make_table(i ? "bucket" : "distinct", 300, 0.01);
        uint64_t n = 0;
        while (n < 9000 && add_hash(f, n << 51) == CALYX_OK) n++;
        assert_true(n >= 300 && n < 2000);
        for (uint64_t k = 0; k < n; k++) assert_true(has_hash(f, k << 51));
        calyx_free(f);
    }
}

/* ---- Bytes that nobody wrote -----------------------------------------------
 */

/* Sanitizers look on. */
static void any_bytes_can_be_used(void **state) {
    (void)state;
    struct generator random = {11};
    for (int i = 0; i < 57; i++) {
        calyx_filter *f = make_table("bucket", 300, rate_of(i / 3));
        struct part *const p = f->newest;
        const size_t bytes = (size_t)body_bytes(f->kind, &p->shape);
        for (size_t k = 0; k < bytes; k++)
            p->body[k] = (uint8_t)(random_word(&random) |
                                   (i % 3 == 1 ? random_word(&random) : 0));
        if (i % 3 == 2) memset(p->body, 0xFF, bytes);
        for (uint64_t k = 0; k < 300; k++) {
            has_hash(f, mixed(k));
            calyx_count_hash(f, mixed(k));
            if (k % 3 == 0) calyx_remove_hash(f, mixed(k), NULL);
            if (k % 2 == 0) add_hash(f, mixed(k));
        }
        info_of(f);
        calyx_free(f);
    }
}

static void any_bytes_can_be_merged(void **state) {
    (void)state;
    struct generator random = {13};
    for (int i = 0; i <= 18; i++) {
        calyx_filter *f = make_table("distinct", 300, rate_of(i));
        calyx_filter *other = make_table("distinct", 300, rate_of(i));
        const struct part *const p = other->newest;
        const size_t bytes = (size_t)body_bytes(f->kind, &p->shape);
        for (size_t k = 0; k < bytes; k++)
            p->body[k] = (uint8_t)random_word(&random);
        calyx_merge(f, other, NULL);
        for (uint64_t k = 0; k < 300; k++) has_hash(f, mixed(k));
        calyx_free(f);
        calyx_free(other);
    }
}

/* ---- Merging ---------------------------------------------------------------
 */

static void a_union_has_the_keys_of_both(void **state) {
    (void)state;
    enum { KEYS = 6000 };
    for (int i = 0; i <= 18; i++) {
        calyx_filter *a = make_table("distinct", KEYS, rate_of(i));
        calyx_filter *b = make_table("distinct", KEYS, rate_of(i));
        for (uint64_t k = 0; k < KEYS; k++)
            assert_ok(add_hash(k % 3 ? a : b, mixed(k)));
        for (uint64_t k = 0; k < KEYS; k += 5) assert_ok(add_hash(b, mixed(k)));

        assert_ok(calyx_merge(a, b, NULL));

        for (uint64_t k = 0; k < KEYS; k++) assert_true(has_hash(a, mixed(k)));
        const calyx_info info = info_of(a);
        assert_int_equal(info.items, info.distinct);
        assert_true(info.items <= KEYS);
        assert_int_equal(info.saturated, 0);
        calyx_free(a);
        calyx_free(b);
    }
}

static void a_union_without_room_is_refused_and_loses_none(void **state) {
    (void)state;
    calyx_filter *a = make_table("distinct", 1000, 0.01);
    calyx_filter *b = make_table("distinct", 1000, 0.01);
    for (uint64_t k = 0; k < 1000; k++) {
        assert_ok(add_hash(a, mixed(k)));
        assert_ok(add_hash(b, mixed(5000 + k)));
    }
    assert_int_equal(calyx_merge(a, b, NULL), CALYX_FULL);
    for (uint64_t k = 0; k < 1000; k++) assert_true(has_hash(a, mixed(k)));
    assert_int_equal(info_of(a).saturated, 0);
    calyx_free(a);
    calyx_free(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_keeps_each_copy_at_every_width),
        cmocka_unit_test(kernels_leave_the_same_bytes),
        cmocka_unit_test(every_rate_is_nearly_the_promise),
        cmocka_unit_test(the_15th_copy_stays_and_takes_no_more_room),
        cmocka_unit_test(copies_count_the_same_in_a_batch),
        cmocka_unit_test(too_many_keys_are_refused_in_any_order),
        cmocka_unit_test(any_bytes_can_be_used),
        cmocka_unit_test(any_bytes_can_be_merged),
        cmocka_unit_test(a_union_has_the_keys_of_both),
        cmocka_unit_test(a_union_without_room_is_refused_and_loses_none),
    };
    return RUN_TESTS(tests);
}
