/* A table that begins with one bucket doubles as a whole, while its codes have
 * bits to spare. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support_tables.h"

static const double rates[] = {0.1, 0.01, 0.001, 0.0003};
enum { RATES = sizeof rates / sizeof *rates, OTHERS = 1 << 30 };

static calyx_filter *make_table_at(double fpr) {
    return make_filter((calyx_options){
        .kind = "distinct", .capacity = 1, .fpr = fpr, .growth = 2});
}

static uint32_t spare_of(const calyx_filter *f) {
    return spare_bits(&first_part(f)->shape);
}

static void add_hashes(calyx_filter *f, uint64_t from, uint64_t n) {
    for (uint64_t i = from; i < from + n; i++) assert_ok(add_hash(f, mixed(i)));
}

static void assert_has_hashes(const calyx_filter *f, uint64_t from,
                              uint64_t n) {
    for (uint64_t i = from; i < from + n; i++)
        if (!has_hash(f, mixed(i))) fail_msg("%llu", (unsigned long long)i);
}

/* ---- Growth -------------------------------------------------------------- */

static void no_key_is_lost_and_all_keep_24_bits(void **state) {
    (void)state;
    for (int r = 0; r < RATES; r++) {
        calyx_filter *f = make_table_at(rates[r]);
        uint64_t bytes = 0, sizes = 0;
        assert_int_equal(first_part(f)->shape.blocks, 1);
        for (uint64_t n = 1; n <= 6000; n++) {
            add_hashes(f, n, 1);
            const calyx_info info = info_of(f);
            if (info.bytes == bytes) continue;
            bytes = info.bytes;
            sizes++;
            assert_has_hashes(f, 1, n);
            if (info.parts > 1) continue;
            assert_true(fabs(info.fpr_now - ldexp((double)n, -24)) < 1e-7);
        }
        assert_has_hashes(f, 1, 6000);
        assert_true(sizes > 6);
        assert_int_equal(spare_of(f), 0);
        assert_true(info_of(f).parts > 1 && info_of(f).fpr_now <= rates[r]);
        calyx_free(f);
    }
}

static void batches_and_single_keys_leave_the_same_bytes(void **state) {
    (void)state;
    enum { KEYS = 5000 };
    static uint64_t hashes[KEYS];
    calyx_filter *one = make_table_at(0.01), *many = make_table_at(0.01);
    size_t done = 0;
    for (uint64_t i = 0; i < KEYS; i++) hashes[i] = mixed(i);
    add_hashes(one, 0, KEYS);
    assert_ok(calyx_add_hashes(many, hashes, KEYS, NULL, &done));
    assert_int_equal(done, KEYS);
    assert_true(same_bodies(one, many));
    assert_int_equal(calyx_has_hashes(many, hashes, KEYS, NULL), KEYS);
    calyx_free(one);
    calyx_free(many);
}

/* At 0.01, 1,800 keys are the most of 64 buckets. Chains of the server took
 * 328 bytes for 100, 1,320 for 400 and 10,184 for 1,200. */
static void a_small_table_takes_little_memory(void **state) {
    (void)state;
    static const struct {
        uint64_t keys, bytes;
    } most[] = {{50, 192},   {70, 256},   {110, 384},   {230, 768},
                {430, 1280}, {850, 2432}, {1800, 4672}, {3500, 9152}};
    calyx_filter *f = make_table_at(0.01);
    uint64_t n = 0;
    for (size_t i = 0; i < sizeof most / sizeof *most; i++) {
        add_hashes(f, n, most[i].keys - n);
        n = most[i].keys;
        assert_int_equal(info_of(f).bytes, most[i].bytes);
    }
    calyx_free(f);
}

/* A slot of 0 is stored as 1; so is the end of a longer run of zeros. */
static void codes_of_zeros_and_ones_stay_found(void **state) {
    (void)state;
    static uint64_t hashes[64 * 32];
    size_t n = 0;
    for (uint64_t first = 0; first < 64; first++)
        for (uint64_t low = 0; low < 32; low++)
            hashes[n++] = first << 58 | low / 4 << 39 | low % 4 << 37;
    calyx_filter *f = make_table_at(0.01);
    for (size_t i = 0; i < n; i++) {
        assert_ok(add_hash(f, hashes[i]));
        for (size_t j = 0; j <= i; j += 1 + i / 50)
            assert_true(has_hash(f, hashes[j]));
    }
    for (uint64_t i = 0; i < 20000; i++) assert_ok(add_hash(f, mixed(i)));
    for (size_t i = 0; i < n; i++) assert_true(has_hash(f, hashes[i]));
    calyx_free(f);
}

/* All in one bucket, however many there are. */
static void hashes_that_begin_alike_stay(void **state) {
    (void)state;
    enum { ALIKE = 4000 };
    calyx_filter *f = make_table_at(0.01);
    for (uint64_t i = 0; i < ALIKE; i++) assert_ok(add_hash(f, i << 40));
    for (uint64_t i = 0; i < ALIKE; i++) assert_true(has_hash(f, i << 40));
    assert_true(info_of(f).bytes < 1 << 16);
    calyx_free(f);
}

static void known_keys_do_not_let_a_full_table_double(void **state) {
    (void)state;
    calyx_filter *f = make_table_at(0.01);
    const uint64_t most = info_of(f).capacity;
    bool fresh = true;
    add_hashes(f, 0, most);
    for (uint64_t i = 0; i < most; i++) {
        const uint64_t hash = mixed(i);
        assert_ok(calyx_add_hash(f, hash, &fresh));
        assert_false(fresh);
    }
    assert_int_equal(first_part(f)->shape.blocks, 1);
    assert_int_equal(info_of(f).moves, UINT64_MAX - 6);
    add_hashes(f, most, 1);
    assert_int_equal(first_part(f)->shape.blocks, 2);
    assert_int_equal(info_of(f).moves, UINT64_MAX - 5);
    calyx_free(f);
}

static void a_filter_for_more_keys_or_many_threads_begins_larger(void **state) {
    (void)state;
    static const struct {
        uint64_t capacity, begins, bytes; /* as made, and as planned */
        double fpr;
        bool concurrent;
    } cases[] = {
        {1, 192, 192, 0.01, false},    {51, 192, 192, 0.01, false},
        {52, 192, 256, 0.01, false},   {100, 192, 384, 0.01, false},
        {127, 192, 768, 0.01, false},  {128, 768, 768, 0.01, false},
        {1, 9152, 9152, 0.01, true},   {81, 192, 384, 0.0003, false},
        {82, 768, 768, 0.0003, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const calyx_options want = {.kind = "distinct",
                                    .capacity = cases[i].capacity,
                                    .growth = 2,
                                    .fpr = cases[i].fpr,
                                    .concurrent = cases[i].concurrent};
        calyx_info info;
        calyx_filter *f = make_filter(want);
        assert_ok(calyx_plan(&want, &info, NULL));
        assert_int_equal(info.bytes, cases[i].bytes);
        assert_int_equal(info_of(f).bytes, cases[i].begins);
        assert_true(info.capacity >= want.capacity);
        assert_int_equal(info_of(f).capacity, info.capacity);
        for (uint64_t n = 0; n < want.capacity; n++)
            assert_ok(add_hash(f, mixed(n)));
        assert_int_equal(info_of(f).bytes, info.bytes);
        calyx_free(f);
    }
}

/* ---- Merging ------------------------------------------------------------- */

static void tables_of_all_sizes_are_merged(void **state) {
    (void)state;
    static const uint64_t sizes[] = {0, 3, 60, 200, 1500, 3000, 15000};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    for (int r = 1; r < 3; r++)
        for (int i = 0; i < SIZES * SIZES; i++) {
            const uint64_t ours = sizes[i % SIZES], others = sizes[i / SIZES];
            calyx_filter *f = make_table_at(rates[r]);
            calyx_filter *other = make_table_at(rates[r]);
            calyx_error why;
            add_hashes(f, 0, ours);
            add_hashes(other, OTHERS, others);
            if (calyx_merge(f, other, &why) != CALYX_OK)
                fail_msg("%s", why.text);
            assert_has_hashes(f, 0, ours);
            assert_has_hashes(f, OTHERS, others);
            assert_true(info_of(f).fpr_now <= rates[r]);
            add_hashes(f, ours, 300);
            assert_has_hashes(f, 0, ours + 300);
            assert_has_hashes(f, OTHERS, others);
            calyx_free(f);
            calyx_free(other);
        }
}

/* As a caller does who cannot wait: the size is read before the first step. */
static void keys_come_to_the_other_between_steps(void **state) {
    (void)state;
    for (uint64_t n = 3; n < 3000; n *= 3) {
        calyx_filter *f = make_table_at(0.01), *other = make_table_at(0.01);
        calyx_progress at = {0};
        uint64_t more = n;
        add_hashes(f, 0, 100);
        add_hashes(other, OTHERS, n);
        const uint64_t end = info_of(other).row_bytes;
        while (at.at < end) {
            assert_ok(calyx_merge_some(f, other, 64, &at, NULL));
            add_hashes(other, OTHERS + more, 15);
            more += 15;
        }
        assert_has_hashes(f, 0, 100);
        assert_has_hashes(f, OTHERS, n);
        calyx_free(f);
        calyx_free(other);
    }
}

static void a_table_that_threads_share_merges_with_small_ones(void **state) {
    (void)state;
    for (uint64_t n = 10; n < 20000; n *= 10) {
        calyx_filter *f = make_table_at(0.01);
        calyx_filter *shared = make_filter((calyx_options){.kind = "distinct",
                                                           .capacity = 1,
                                                           .fpr = 0.01,
                                                           .growth = 2,
                                                           .concurrent = true});
        add_hashes(f, 0, n);
        add_hashes(shared, OTHERS, n);
        assert_ok(calyx_merge(shared, f, NULL));
        assert_has_hashes(shared, 0, n);
        assert_ok(calyx_merge(f, shared, NULL));
        assert_has_hashes(f, 0, n);
        assert_has_hashes(f, OTHERS, n);
        calyx_free(f);
        calyx_free(shared);
    }
}

static void a_table_at_another_rate_is_not_merged(void **state) {
    (void)state;
    calyx_filter *f = make_table_at(0.01), *other = make_table_at(0.001);
    calyx_error why;
    assert_int_equal(calyx_merge(f, other, &why), CALYX_MISMATCH);
    assert_non_null(strstr(why.text, "128 blocks with 9 probes"));
    calyx_free(f);
    calyx_free(other);
}

/* ---- Bytes --------------------------------------------------------------- */

static uint8_t *encode(const calyx_filter *f, uint64_t *size) {
    *size = calyx_encoded_size(f);
    uint8_t *const bytes = test_malloc(*size);
    assert_ok(calyx_encode(f, bytes, *size, NULL));
    return bytes;
}

static void a_loaded_table_grows_on(void **state) {
    (void)state;
    for (int concurrent = 0; concurrent < 2; concurrent++)
        for (uint64_t n = 0; n < 4000; n = 2 * n + 20) {
            const calyx_open_options how = {.concurrent = concurrent};
            calyx_filter *f = make_table_at(0.01), *loaded;
            calyx_error why;
            add_hashes(f, 0, n);
            uint64_t size;
            uint8_t *const bytes = encode(f, &size);
            if (calyx_decode(bytes, size, &how, &loaded, &why) != CALYX_OK)
                fail_msg("%s", why.text);
            assert_int_equal(info_of(loaded).concurrent, concurrent);
            assert_int_equal(spare_of(loaded), concurrent ? 0 : spare_of(f));
            assert_has_hashes(loaded, 0, n);
            add_hashes(loaded, n, 5000);
            assert_has_hashes(loaded, 0, n + 5000);
            add_hashes(f, n, 5000);
            assert_int_equal(info_of(loaded).items, info_of(f).items);
            assert_true(concurrent || same_bodies(loaded, f));
            test_free(bytes);
            calyx_free(f);
            calyx_free(loaded);
        }
}

static void a_head_is_not_loaded_for_many_threads(void **state) {
    (void)state;
    const calyx_open_options how = {.concurrent = true};
    calyx_filter *f = make_table_at(0.01), *loaded;
    const size_t size = calyx_head_size(f);
    uint8_t *const head = test_malloc(size);
    calyx_error why;
    assert_ok(calyx_encode_head(f, head, size, NULL));
    assert_int_equal(calyx_decode_head(head, size, &how, &loaded, &why),
                     CALYX_CANNOT);
    assert_non_null(strstr(why.text, "read it into memory"));
    assert_ok(calyx_decode_head(head, size, NULL, &loaded, &why));
    calyx_free(loaded);
    calyx_free(f);
    test_free(head);
}

static void a_view_is_not_for_many_threads(void **state) {
    (void)state;
    const calyx_open_options how = {.concurrent = true};
    calyx_filter *f = make_table_at(0.01), *view, *copy;
    calyx_error why;
    add_hashes(f, 0, 40);
    const uint64_t size = calyx_encoded_size(f);
    uint8_t *const bytes = aligned_alloc(64, size + 64 - size % 64);
    assert_non_null(bytes);
    assert_ok(calyx_encode(f, bytes, size, NULL));
    assert_int_equal(calyx_view(bytes, size, &how, &view, &why), CALYX_CANNOT);
    assert_non_null(strstr(why.text, "read it into memory"));
    assert_ok(calyx_view(bytes, size, NULL, &view, &why));
    assert_has_hashes(view, 0, 40);
    assert_ok(calyx_copy(view, &copy, NULL));
    add_hashes(copy, 40, 5000);
    assert_has_hashes(copy, 0, 5040);
    calyx_free(copy);
    calyx_free(view);
    calyx_free(f);
    free(bytes);
}

static void small_filters_grow_and_are_small_again(void **state) {
    (void)state;
    calyx_filter *f = make_table_at(0.01);
    const calyx_memory memory = f->memory;
    calyx_small small;
    void *bits;
    uint64_t doublings = 0;
    assert_true(calyx_make_small(f, &small, &bits));
    for (uint64_t i = 0; i < 3000; i++) {
        calyx_room room;
        f = calyx_open_small(&small, bits, &memory, &room);
        const calyx_status status = add_hash(f, mixed(i));
        calyx_close_small(f, &small);
        if (status != CALYX_OK) {
            assert_int_equal(status, CALYX_FULL);
            assert_ok(calyx_from_small(&small, bits, &memory, &f));
            assert_ok(add_hash(f, mixed(i)));
            assert_true(calyx_make_small(f, &small, &bits));
            doublings++;
        }
        f = calyx_open_small(&small, bits, &memory, &room);
        assert_has_hashes(f, i < 50 ? 0 : i - 50, i < 50 ? i + 1 : 51);
    }
    assert_int_equal(doublings, 7);
    assert_ok(calyx_from_small(&small, bits, &memory, &f));
    assert_has_hashes(f, 0, 3000);
    calyx_free(f);
}

/* ---- Forged -------------------------------------------------------------- */

static void shapes_that_no_table_has_are_refused(void **state) {
    (void)state;
    static const struct shape forged[] = {
        {1, 16, 0, {8}},   {1, 16, 0, {1}},          {1, 15, 0, {7}},
        {3, 15, 0, {6}},   {128, 16, 0, {1}},        {64, 16, 0, {7}},
        {2, 9, 0, {0}},    {1, 16, 0, {UINT64_MAX}}, {1, 16, 0, {0}},
        {4, 14, 0, {128}}, {64, 9, 0, {64}},
    };
    for (size_t i = 0; i < sizeof forged / sizeof *forged; i++) {
        calyx_filter *const sound = make_table_at(0.01);
        const struct calyx_filter head = head_of(sound);
        const struct part like = {
            .shape = forged[i], .capacity = 10, .fpr = 1e-4};
        calyx_filter *f, *loaded;
        calyx_error why;
        calyx_free(sound);
        assert_ok(allocate_head(&head, &f));
        assert_ok(allocate_part(f, &like));
        uint64_t size;
        uint8_t *const bytes = encode(f, &size);
        assert_int_equal(calyx_decode(bytes, size, NULL, &loaded, &why),
                         CALYX_DAMAGED);
        test_free(bytes);
        calyx_free(f);
    }
}

/* Entries that no additions make: answers may be wrong, but none brings the
 * library down, and what cannot double stays as it is. */
static void forged_entries_do_no_harm(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        calyx_filter *f = make_table_at(rates[seed % RATES]), *other;
        struct generator random = {seed};
        const calyx_open_options how = {.concurrent = true};
        calyx_error why;
        add_hashes(f, 0, random_below(&random, 2000));
        struct part *const p = f->newest;
        const size_t some = (size_t)body_bytes(f->kind, &p->shape);
        for (size_t i = 0; i < some; i++)
            if (seed % 3 == 0 || random_below(&random, 50) == 0)
                p->body[i] = (uint8_t)random_below(&random, 256);
        uint64_t size;
        uint8_t *const bytes = encode(f, &size);
        if (calyx_decode(bytes, size, &how, &other, &why) == CALYX_OK)
            calyx_free(other);
        else
            assert_int_equal(why.status, CALYX_DAMAGED);
        for (uint64_t i = 0; i < 3000; i++) {
            const calyx_status status = add_hash(f, mixed(i));
            assert_true(status == CALYX_OK || status == CALYX_FULL);
        }
        info_of(f);
        test_free(bytes);
        calyx_free(f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_key_is_lost_and_all_keep_24_bits),
        cmocka_unit_test(batches_and_single_keys_leave_the_same_bytes),
        cmocka_unit_test(a_small_table_takes_little_memory),
        cmocka_unit_test(codes_of_zeros_and_ones_stay_found),
        cmocka_unit_test(hashes_that_begin_alike_stay),
        cmocka_unit_test(known_keys_do_not_let_a_full_table_double),
        cmocka_unit_test(a_filter_for_more_keys_or_many_threads_begins_larger),
        cmocka_unit_test(tables_of_all_sizes_are_merged),
        cmocka_unit_test(keys_come_to_the_other_between_steps),
        cmocka_unit_test(a_table_that_threads_share_merges_with_small_ones),
        cmocka_unit_test(a_table_at_another_rate_is_not_merged),
        cmocka_unit_test(a_loaded_table_grows_on),
        cmocka_unit_test(a_head_is_not_loaded_for_many_threads),
        cmocka_unit_test(a_view_is_not_for_many_threads),
        cmocka_unit_test(small_filters_grow_and_are_small_again),
        cmocka_unit_test(shapes_that_no_table_has_are_refused),
        cmocka_unit_test(forged_entries_do_no_harm),
    };
    return RUN_TESTS(tests);
}
