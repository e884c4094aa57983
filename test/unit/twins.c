/* Every call comes for keys, numbers and hashes, and does the same. */
#include <calyx/inline.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "support.h"

enum { KEYS = 500 };

static const uint8_t secret[16] = "sixteen letters";

static calyx_options hashed(const char *kind, const char *hash) {
    const bool keyed = strcmp(hash, "siphash") == 0;
    return (calyx_options){.kind = kind,
                           .capacity = KEYS,
                           .hash = hash,
                           .seed = keyed ? 0 : 7,
                           .key = keyed ? secret : NULL};
}

#define EACH_HASH(hash) \
    for (const char *const *hash = calyx_hashes(); *hash; hash++)

static void the_hash_of_a_number_is_the_hash_of_its_bytes(void **state) {
    (void)state;
    EACH_HASH(hash) {
        calyx_filter *f = make_filter(hashed("line", *hash));
        struct generator from = {1};
        for (int i = 0; i < KEYS; i++) {
            const uint64_t number = random_word(&from);
            uint8_t bytes[8];
            store64(bytes, number);
            assert_int_equal(calyx_hash_u64(f, number),
                             calyx_hash(f, bytes, sizeof bytes));
        }
        calyx_free(f);
    }
}

/* By bytes, number and hash. */
static void assert_counts_agree(const calyx_filter *f, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        uint8_t bytes[8];
        store64(bytes, i);
        const uint32_t count = calyx_count(f, bytes, 8);
        assert_int_equal(calyx_count_u64(f, i), count);
        if (!calyx_is_allowed(f, bytes, 8))
            assert_int_equal(calyx_count_hash(f, calyx_hash_u64(f, i)), count);
    }
}

/* Key i is added i % 4 times; a key on the list counts 0. */
static void keys_are_counted_alike_by_bytes_number_and_hash(void **state) {
    (void)state;
    for (int mode = 0; mode < 4; mode++) EACH_KIND(kind) {
            calyx_options want = {.kind = *kind, .capacity = 4 * KEYS};
            if (mode & 1) {
                want.growth = 2;
                want.capacity = KEYS;
            }
            calyx_info plan;
            if (calyx_plan(&want, &plan, NULL) != CALYX_OK) continue;
            calyx_filter *f = make_filter(want);
            for (uint64_t i = 0; plan.can & CALYX_CAN_ADD && i < 8 * KEYS; i++)
                if (i / 2 % 4 > i % 2) calyx_add_u64(f, i / 2, NULL);
            if (mode & 2)
                assert_ok(calyx_allow(f, "\1\0\0\0\0\0\0\0", 8, NULL, NULL));
            assert_counts_agree(f, 4 * KEYS);
            assert_int_equal(calyx_count_u64(f, 1) == 0,
                             mode & 2 || !(plan.can & CALYX_CAN_ADD));
            calyx_free(f);
        }
}

/* Add by number, by bytes and by hash in turn; look up by all three, and many
 * numbers at once. */
static void assert_twins_agree(calyx_options want) {
    calyx_filter *f = make_filter(want);
    const bool can_add = calyx_kind_can(want.kind) & CALYX_CAN_ADD;
    calyx_prefetch_hint hint;
    calyx_prefetch_hint_of(f, &hint);
    uint64_t numbers[KEYS];
    bool together[KEYS];
    for (uint64_t i = 0; i < KEYS; i++) {
        numbers[i] = i;
        uint8_t bytes[8];
        store64(bytes, i);
        const uint64_t hash = calyx_hash_u64(f, i);
        calyx_prefetch(&hint, bytes, 8);
        bool fresh = false;
        if (can_add && i < KEYS / 2)
            assert_ok(i % 3 == 0   ? calyx_add_hash(f, hash, &fresh)
                      : i % 3 == 1 ? calyx_add_u64(f, i, &fresh)
                                   : calyx_add(f, bytes, 8, NULL));
        const bool has = calyx_has_hash(f, hash);
        if (can_add && i < KEYS / 2) assert_true(has);
        assert_int_equal(has, calyx_has_u64(f, i));
        assert_int_equal(has, calyx_has(f, bytes, 8));
        assert_int_equal(calyx_count_hash(f, hash), calyx_count(f, bytes, 8));
        assert_int_equal(calyx_count_u64(f, i), calyx_count(f, bytes, 8));
    }
    calyx_has_many_u64(f, numbers, KEYS, together);
    for (uint64_t i = 0; i < KEYS; i++)
        assert_int_equal(together[i], calyx_has_u64(f, i));
    calyx_free(f);
}

static void all_calls_of_every_kind_and_hash_agree(void **state) {
    (void)state;
    EACH_KIND(kind) EACH_HASH(hash) assert_twins_agree(hashed(*kind, *hash));
}

static void what_is_added_by_one_twin_is_removed_by_another(void **state) {
    (void)state;
    EACH_KIND(kind) {
        calyx_filter *f =
            make_filter((calyx_options){.kind = *kind, .capacity = KEYS});
        const uint64_t hash = calyx_hash_u64(f, 5);
        bool found = false;
        if (!(calyx_kind_can(*kind) & CALYX_CAN_REMOVE)) {
            assert_int_equal(calyx_remove_hash(f, hash, NULL), CALYX_CANNOT);
            assert_int_equal(calyx_remove_u64(f, 5, NULL), CALYX_CANNOT);
        } else {
            assert_ok(calyx_add_hash(f, hash, NULL));
            assert_ok(calyx_remove_u64(f, 5, &found));
            assert_true(found);
            assert_ok(calyx_add_u64(f, 5, NULL));
            assert_ok(calyx_remove_hash(f, hash, &found));
            assert_true(found);
            assert_ok(calyx_remove_hash(f, hash, &found));
            assert_false(found);
        }
        calyx_free(f);
    }
}

static void filters_have_the_same_hash_if_they_agree_on_keys(void **state) {
    (void)state;
    const calyx_options all[] = {
        {.capacity = 9},
        {.kind = "flat", .capacity = 99},
        {.capacity = 9, .seed = 1},
        {.capacity = 9, .hash = "xxh64"},
        {.capacity = 9, .hash = "siphash", .key = secret},
        {.capacity = 99, .hash = "siphash", .key = (uint8_t[16]){1}},
    };
    enum { ALL = sizeof all / sizeof all[0] };
    for (int i = 0; i < ALL; i++)
        for (int j = 0; j < ALL; j++) {
            calyx_filter *a = make_filter(all[i]), *b = make_filter(all[j]);
            const bool same =
                calyx_hash(a, "rose", 4) == calyx_hash(b, "rose", 4);
            assert_int_equal(calyx_same_hash(a, b), same);
            assert_int_equal(same, i == j || i + j == 1);
            calyx_free(a);
            calyx_free(b);
        }
}

static void a_reader_has_the_answers_of_a_const_filter(void **state) {
    (void)state;
    EACH_KIND(kind) for (int mode = 0; mode < 4; mode++) {
        calyx_options want = {.kind = *kind,
                              .capacity = KEYS / 4,
                              .fpr = 0.1,
                              .strict = mode & 1,
                              .concurrent = mode & 2};
        calyx_info plan;
        if (calyx_plan(&want, &plan, NULL) != CALYX_OK) continue;
        calyx_filter *f = make_filter(want);
        for (uint64_t i = 0; i < KEYS / 4; i++) calyx_add_u64(f, i, NULL);
        calyx_live *live = NULL;
        assert_ok(calyx_live_new(f, &live, NULL));
        const calyx_filter *now = calyx_live_acquire(live);
        calyx_inline_reader reader;
        calyx_inline_reader_of(now, &reader);
        for (uint64_t i = 0; i < KEYS; i++)
            assert_int_equal(calyx_inline_reader_has_u64(&reader, i),
                             calyx_has_u64(now, i));
        calyx_live_release(live, now);
        calyx_live_free(live);
    }
}

static void the_memory_of_a_filter_is_what_it_allocated(void **state) {
    (void)state;
    EACH_KIND(kind) {
        struct books books = {0};
        const calyx_memory memory = hooks_of(&books);
        calyx_filter *f = make_filter((calyx_options){
            .kind = *kind, .capacity = 5000, .memory = &memory});
        assert_int_equal(info_of(f).memory, books.bytes);
        if (calyx_set_comment(f, "roses") == CALYX_OK)
            assert_int_equal(info_of(f).memory, books.bytes);
        if (calyx_set_property(f, "colour", "red", NULL) == CALYX_OK)
            assert_int_equal(info_of(f).memory, books.bytes);
        calyx_free(f);
    }
}

static void a_filter_that_grew_has_the_memory_it_allocated(void **state) {
    (void)state;
    for (int shared = 0; shared < 2; shared++) EACH_KIND(kind) {
            struct books books = {0};
            const calyx_memory memory = hooks_of(&books);
            const calyx_options want = {.kind = *kind,
                                        .capacity = 100,
                                        .growth = 2,
                                        .concurrent = shared,
                                        .memory = &memory};
            calyx_info plan;
            if (calyx_plan(&want, &plan, NULL) != CALYX_OK) continue;
            assert_int_equal(plan.memory, 0);
            if (!(plan.can & CALYX_CAN_ADD)) continue;
            calyx_filter *f = make_filter(want);
            for (uint64_t i = 0; i < 20 * KEYS; i++)
                assert_ok(calyx_add_u64(f, i, NULL));
            assert_int_equal(info_of(f).memory, books.bytes);
            calyx_free(f);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_hash_of_a_number_is_the_hash_of_its_bytes),
        cmocka_unit_test(all_calls_of_every_kind_and_hash_agree),
        cmocka_unit_test(keys_are_counted_alike_by_bytes_number_and_hash),
        cmocka_unit_test(what_is_added_by_one_twin_is_removed_by_another),
        cmocka_unit_test(filters_have_the_same_hash_if_they_agree_on_keys),
        cmocka_unit_test(a_reader_has_the_answers_of_a_const_filter),
        cmocka_unit_test(the_memory_of_a_filter_is_what_it_allocated),
        cmocka_unit_test(a_filter_that_grew_has_the_memory_it_allocated),
    };
    return RUN_TESTS(tests);
}
