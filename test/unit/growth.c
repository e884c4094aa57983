/*
 * Filters that outgrow what they were made for. Those that may grow keep their
 * promise at a price in bits; the others say what rate is left.
 */
#include "filter/filter.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

/* Numbers in batches: from `from` up to, but without, `to`. */
enum { BATCH = 4096 };

static size_t fill_batch(uint64_t *numbers, uint64_t from, uint64_t to) {
    size_t n = 0;
    while (n < BATCH && from < to) numbers[n++] = from++;
    return n;
}

static void add_in_batches(calyx_filter *f, uint64_t from, uint64_t to) {
    uint64_t numbers[BATCH];
    for (size_t n; (n = fill_batch(numbers, from, to)); from += n) {
        size_t done;
        assert_ok(calyx_add_many_u64(f, numbers, n, NULL, &done));
        assert_int_equal(done, n);
    }
}

static uint64_t count_found_in_batches(const calyx_filter *f, uint64_t from,
                                       uint64_t to) {
    uint64_t numbers[BATCH], found = 0;
    for (size_t n; (n = fill_batch(numbers, from, to)); from += n)
        found += calyx_has_many_u64(f, numbers, n, NULL);
    return found;
}

static void assert_has_in_batches(const calyx_filter *f, uint64_t from,
                                  uint64_t to) {
    assert_int_equal(count_found_in_batches(f, from, to), to - from);
}

static const uint64_t ABSENT = UINT64_C(1) << 40; /* and those above it */

/* The rate measured on n absent keys does not contradict this one: were it the
 * true one, more than 1 in 10^9 measurements would be as high. */
static void assert_rate_at_most(const calyx_filter *f, uint64_t n, double fpr) {
    const uint64_t found = count_found_in_batches(f, ABSENT, ABSENT + n);
    if (odds_at_least(found, n, fpr) < UNLIKELY)
        fail_msg("%llu of %llu absent keys found", (unsigned long long)found,
                 (unsigned long long)n);
}

static double bits_a_key(const calyx_filter *f, uint64_t keys) {
    return 8 * (double)info_of(f).bytes / (double)keys;
}

/* ---- The promise and its price ------------------------------------------- */

/* Ten million keys, at the best level that there is. The others and sanitizers
 * are slower, and have no part in how a filter grows. */
static uint64_t many(void) {
    return at_best_level() && !SANITIZED ? 10000000 : 1000000;
}

static void grows_to_many(uint64_t capacity, double growth, double most_bits) {
    const uint64_t keys = many();
    calyx_filter *f = make_filter(
        (calyx_options){.capacity = capacity, .fpr = 0.01, .growth = growth});

    add_in_batches(f, 0, keys);

    assert_has_in_batches(f, 0, keys);
    assert_rate_at_most(f, keys / 10, 0.01);
    const calyx_info info = info_of(f);
    assert_true(info.fpr == 0.01 && info.fpr_now <= 0.01);
    assert_true(info.capacity >= info.items);
    /* A key that an older part seems to have is not added again: that is less
     * than 1 %, and neither shows in the fill. */
    assert_true(info.items > keys / 100 * 99 && info.items <= keys);
    assert_true(fabs(info.distinct / (double)info.items - 1) < 0.005);
    const double bits = bits_a_key(f, keys);
    if (bits > most_bits)
        fail_msg("from %llu by %g: %g bits a key in %u parts",
                 (unsigned long long)capacity, growth, bits, info.parts);
    calyx_free(f);
}

static void from_a_thousand_to_many_a_filter_keeps_its_rate(void **state) {
    (void)state;
    grows_to_many(1000, 1.6, 28);
    grows_to_many(1000, 2, 28);
}

static void from_a_hundred_to_many_a_filter_keeps_its_rate(void **state) {
    (void)state;
    grows_to_many(100, 2, 28);
}

static void a_growing_filter_of_the_right_size_costs_little(void **state) {
    (void)state;
    grows_to_many(many(), 2, 11.0);
}

static void from_a_tenth_a_filter_costs_twice(void **state) {
    (void)state;
    grows_to_many(many() / 10, 1.6, 21);
}

static void every_kind_grows_and_keeps_its_rate(void **state) {
    (void)state;
    enum { N = 200000 };
    const double growths[] = {1.25, 2, 16};
    EACH_KIND(kind) {
        for (int i = 0; i < 3; i++) {
            calyx_filter *f = make_filter((calyx_options){
                .kind = *kind, .capacity = 1000, .growth = growths[i]});

            add_in_batches(f, 0, N);

            assert_has_in_batches(f, 0, N);
            assert_rate_at_most(f, N, 0.01);
            assert_true(info_of(f).parts > 2);
            calyx_free(f);
        }
    }
}

/* The rate holds on the way, too, just before each part is full. */
static void the_rate_holds_at_every_size(void **state) {
    (void)state;
    calyx_filter *f =
        make_filter((calyx_options){.capacity = 1000, .growth = 1.6});
    for (uint64_t keys = 1000, from = 0; keys < 500000;
         from = keys, keys = keys * 5 / 4) {
        add_in_batches(f, from, keys);
        assert_rate_at_most(f, 100000, 0.01);
        assert_true(info_of(f).fpr_now < 0.01);
    }
    assert_has_in_batches(f, 0, 400000);
    calyx_free(f);
}

static void adding_one_by_one_grows_as_adding_many_does(void **state) {
    (void)state;
    EACH_KIND(kind) {
        const calyx_options want = {
            .kind = *kind, .capacity = 100, .growth = 1.5};
        calyx_filter *single = make_filter(want), *many = make_filter(want);

        for (uint64_t i = 0; i < 20000; i++)
            assert_ok(calyx_add_u64(single, i, NULL));
        add_in_batches(many, 0, 20000);

        assert_int_equal(info_of(single).parts, info_of(many).parts);
        assert_int_equal(info_of(single).items, info_of(many).items);
        assert_true(same_bodies(single, many));
        calyx_free(single);
        calyx_free(many);
    }
}

/* Half of these keys are among the first `keys` that were added. */
static void check_many_against_one(const calyx_filter *f, uint64_t keys) {
    enum { LOOKUPS = 9000 };
    static const size_t sizes[] = {1, 3, 511, 1023, 1024, 4095, 4097, LOOKUPS};
    static uint64_t numbers[LOOKUPS];
    static bool want[LOOKUPS], found[LOOKUPS];
    struct generator random = {5};
    for (size_t i = 0; i < LOOKUPS; i++) {
        numbers[i] = random_below(&random, 2 * keys);
        want[i] = calyx_has_u64(f, numbers[i]);
    }
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        const size_t n = sizes[s];
        size_t total = 0;
        for (size_t i = 0; i < n; i++) total += want[i];
        memset(found, 2, sizeof found);
        assert_int_equal(calyx_has_many_u64(f, numbers, n, found), total);
        assert_memory_equal(found, want, n);
        assert_int_equal(calyx_has_many_u64(f, numbers, n, NULL), total);
    }
}

/* A batch may be looked up in another order than the order of its keys. */
static void a_grown_filter_answers_batches_like_single_lookups(void **state) {
    (void)state;
    enum { KEYS = 600000 };
    calyx_filter *f =
        make_filter((calyx_options){.capacity = 500, .growth = 2, .fpr = 0.05});
    add_in_batches(f, 0, KEYS);
    assert_true(info_of(f).parts > 5);
    assert_true(info_of(f).bytes > 1 << 20);
    check_many_against_one(f, KEYS);
    calyx_free(f);
}

/* Large parts are queried one by one, the others together. */
static void a_grown_filter_with_large_parts_answers_like_single_lookups(
    void **state) {
    (void)state;
    enum { KEYS = 3300000, LARGE = 16 << 20 };
    calyx_filter *f = make_filter(
        (calyx_options){.capacity = 1000000, .growth = 3, .fpr = 0.001});
    add_in_batches(f, 0, KEYS);
    calyx_part oldest, newest;
    assert_true(calyx_part_of(f, 0, &oldest));
    assert_true(calyx_part_of(f, info_of(f).parts - 1, &newest));
    assert_true(oldest.bytes < LARGE && newest.bytes >= LARGE);
    assert_true(newest.items > 0);
    check_many_against_one(f, KEYS);
    calyx_free(f);
}

/* There the kernel hashes numbers on its way, with any seed. */
static void a_large_filter_of_one_part_answers_batches_like_single_lookups(
    void **state) {
    (void)state;
    enum { KEYS = 5000 };
    static const char *const kinds[] = {"line", "counting"};
    for (uint64_t seed = 0; seed < 4; seed++) {
        calyx_filter *f = make_filter(
            (calyx_options){.kind = kinds[seed % 2],
                            .capacity = 2000000,
                            .bits = (uint64_t)100 << 23,
                            .seed = seed * UINT64_C(0x123456789ABCDEF)});
        add_in_batches(f, 0, KEYS);
        check_many_against_one(f, KEYS);
        calyx_free(f);
    }
}

/* A kernel that lets a filter grow within its first batch, as another thread
 * may. */
static struct {
    const struct kernel *kernel;
    calyx_filter *f; /* NULL: it has grown */
} growing;

static size_t grow_and_look(const uint8_t *body, const struct shape *shape,
                            struct batch batch, bool *found) {
    calyx_filter *const f = growing.f;
    growing.f = NULL;
    if (f) {
        f->newest->items = f->newest->capacity;
        assert_ok(calyx_add_u64(f, ABSENT, NULL));
        assert_int_equal(info_of(f).parts, 2);
    }
    return growing.kernel->has_batch(body, shape, batch, found);
}

/* The kernel hashes numbers on its way: also those after the first batch, which
 * has absent keys alone. */
static void a_lookup_finds_all_keys_while_the_filter_grows(void **state) {
    (void)state;
    enum { KEYS = 3 * BATCH_MAX, LARGE = 16 << 20 };
    uint64_t numbers[KEYS];
    bool found[KEYS];
    for (size_t i = 0; i < KEYS; i++)
        numbers[i] = i < BATCH_MAX ? ABSENT + 1 + i : i;
    calyx_filter *f =
        make_filter((calyx_options){.capacity = 20000000, .growth = 2});
    assert_true(info_of(f).bytes >= LARGE);
    add_in_batches(f, BATCH_MAX, KEYS);

    struct kernel kernel = *f->kernel;
    kernel.has_batch = grow_and_look;
    growing.kernel = f->kernel, growing.f = f;
    f->kernel = &kernel;
    calyx_has_many_u64(f, numbers, KEYS, found);
    f->kernel = growing.kernel;

    assert_null(growing.f);
    for (size_t i = BATCH_MAX; i < KEYS; i++) assert_true(found[i]);
    calyx_free(f);
}

/* Known keys are not new: they take no room. */
static void adding_the_same_keys_again_does_not_grow(void **state) {
    (void)state;
    EACH_KIND_OF_BITS(kind) {
        calyx_filter *f = make_filter(
            (calyx_options){.kind = *kind, .capacity = 1000, .growth = 2});
        add_in_batches(f, 0, 5000);
        const calyx_info before = info_of(f);

        add_in_batches(f, 0, 4000); /* not those that fill the newest part */

        const calyx_info after = info_of(f);
        if (counts_additions(*kind))
            assert_int_equal(after.items, before.items + 4000);
        else
            assert_int_equal(after.items, before.items);
        assert_true(after.fill == before.fill);
        assert_int_equal(after.parts, before.parts);
        calyx_free(f);
    }
}

/* Also while groups of a table move: a server sends its replicas only the keys
 * that were new. */
static void known_keys_leave_every_byte_of_a_growing_table(void **state) {
    (void)state;
    const calyx_options want = {
        .kind = "distinct", .capacity = 1000, .growth = 2};
    calyx_filter *f = make_filter(want), *other = make_filter(want);
    assert_int_equal(info_of(f).moves, 0);
    for (uint64_t key = 0; key < 5000; key++) {
        bool fresh;
        assert_ok(calyx_add_u64(f, key, &fresh));
        if (fresh) assert_ok(calyx_add_u64(other, key, NULL));
        for (uint64_t again = key % 7; again <= key; again += 1000)
            assert_ok(calyx_add_u64(f, again, NULL));
        if (key % 100) continue;
        const uint64_t size = calyx_encoded_size(f);
        assert_int_equal(calyx_encoded_size(other), size);
        uint8_t *const a = test_malloc(size), *const b = test_malloc(size);
        assert_ok(calyx_encode(f, a, size, NULL));
        assert_ok(calyx_encode(other, b, size, NULL));
        assert_memory_equal(a, b, size);
        assert_int_equal(info_of(f).moves, info_of(other).moves);
        test_free(a);
        test_free(b);
    }
    assert_true(info_of(f).moves > 0);
    calyx_free(f);
    calyx_free(other);
}

/* An old key that the newest part seems to have, too, is counted in the old
 * part alone. Were it removed from the newest, other keys would lose their
 * bits. */
static void removing_old_keys_takes_nothing_from_newer_ones(void **state) {
    (void)state;
    enum { OLD = 20000, ALL = 60000 };
    calyx_filter *f = make_filter((calyx_options){
        .kind = "counting", .capacity = OLD, .fpr = 0.25, .growth = 3});
    add_numbers(f, 0, ALL);
    const struct part *newest = f->newest;
    assert_true(newest->older && !newest->older->older);
    uint64_t in_both = 0;
    for (uint64_t i = 0; i < OLD; i++) {
        const uint64_t hash = f->hash->number(f->hash, &f->secret, i);
        in_both += f->kernel->has(newest->body, &newest->shape, hash);
    }
    assert_true(in_both > 10); /* else it shows nothing */

    for (uint64_t i = 0; i < OLD; i++) {
        bool found = false;
        assert_ok(calyx_remove_many_u64(f, &i, 1, &found, NULL));
        assert_true(found);
    }

    assert_has_in_batches(f, OLD, ALL);
    calyx_free(f);
}

static void the_first_part_is_full_at_its_capacity(void **state) {
    (void)state;
    EACH_KIND(kind) {
        calyx_filter *f = make_filter((calyx_options){
            .kind = *kind, .capacity = 1000, .growth = 2, .fpr = 0.001});
        uint64_t fresh_keys = 0, i = 0;
        for (; fresh_keys < 1000; i++) {
            bool fresh;
            assert_ok(calyx_add_u64(f, i, &fresh));
            fresh_keys += fresh || counts_additions(*kind);
            assert_int_equal(info_of(f).parts, 1);
        }
        while (calyx_has_u64(f, i)) i++; /* absent keys that seem known */

        assert_ok(calyx_add_u64(f, i, NULL));

        assert_int_equal(info_of(f).parts, 2);
        calyx_free(f);
    }
}

/* ---- The schedule, on paper ---------------------------------------------- */

/* The parts a filter would have, one by one, without bodies. */
struct chain {
    struct calyx_filter filter;
    struct part parts[400];
    uint32_t count;
};

static void begin(struct chain *c, const calyx_options *want) {
    calyx_error why;
    if (plan_filter(want, &c->filter, &c->parts[0], &why) != CALYX_OK)
        fail_msg("%s", why.text);
    c->filter.newest = &c->parts[0];
    c->count = 1;
}

static bool add_part(struct chain *c) {
    assert_true(c->count < 400);
    struct part *next = &c->parts[c->count];
    *next = (struct part){0};
    if (!plan_growth(&c->filter, c->filter.newest, next)) return false;
    next->older = c->filter.newest;
    c->filter.newest = next;
    c->count++;
    return true;
}

static double capacity_of(const struct chain *c) {
    double sum = 0;
    for (uint32_t i = 0; i < c->count; i++) sum += (double)c->parts[i].capacity;
    return sum;
}

/* By the shape that was chosen, not by what was wanted of it. */
static double rate_of(const struct chain *c) {
    double sum = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        const struct part *p = &c->parts[i];
        sum += c->filter.kind->fpr(&p->shape, (double)p->capacity);
    }
    return sum;
}

static double bits_of(const struct chain *c) {
    double sum = 0;
    for (uint32_t i = 0; i < c->count; i++)
        sum += 8 * (double)body_bytes(c->filter.kind, &c->parts[i].shape);
    return sum;
}

static const double MOST_KEYS = (double)(UINT64_C(1) << 40);

/* However far a filter grows, the rates of its parts sum to no more than was
 * promised; and it grows to 2^40 keys, or until a part would be too large. */
static void the_rates_of_all_parts_sum_to_less_than_the_promise(void **state) {
    (void)state;
    static struct chain c;
    const double growths[] = {1.25, 1.5, 1.6, 2, 3, 5, 16};
    const uint64_t capacities[] = {
        1, 100, 1000, 50000, 1000000, UINT64_C(1) << 32, UINT64_C(1) << 40};
    const int step = SANITIZED ? 3 : 1; /* numbers are four times as slow */
    EACH_KIND(kind) {
        for (int i = 0; i < 7; i += step)
            for (int j = 0; j < 7; j++) {
                const calyx_options want = {.kind = *kind,
                                            .capacity = capacities[j],
                                            .fpr = 0.01,
                                            .growth = growths[i]};
                calyx_info info;
                if (calyx_plan(&want, &info, NULL) != CALYX_OK) continue;
                begin(&c, &want);
                while (add_part(&c)) assert_true(c.parts[c.count - 1].fpr > 0);
                assert_true(rate_of(&c) <= 0.01);
                assert_true(capacity_of(&c) <= MOST_KEYS);
                assert_true(capacity_of(&c) > MOST_KEYS / 512);
            }
    }
}

/* An absent key has the hash of one of n keys with odds n / 2^64, in whatever
 * part they are; a filter that promises less must stop growing before. */
static void the_promise_allows_for_keys_with_one_hash(void **state) {
    (void)state;
    static struct chain c;
    const double rates[] = {0.01, 1e-4, 1e-6, 1e-8, 1e-10, 1e-11};
    EACH_KIND(kind) {
        for (int i = 0; i < 6; i++) {
            const calyx_options want = {
                .kind = *kind, .fpr = rates[i], .growth = 2};
            calyx_info info;
            if (calyx_plan(&want, &info, NULL) != CALYX_OK) continue;
            begin(&c, &want);
            while (add_part(&c)) {}
            assert_true(rate_of(&c) <= 1.000001 * rates[i]);
            for (uint32_t j = 0; j < c.count; j++) {
                const struct part *p = &c.parts[j];
                const double keys = (double)p->capacity;
                const double twins = ldexp(keys, -64);
                assert_true(kind_named(*kind)->fpr(&p->shape, keys) + twins <=
                            1.000001 * p->fpr);
            }
        }
    }
}

static void each_part_multiplies_the_filter_by_its_growth(void **state) {
    (void)state;
    static struct chain c;
    const double growths[] = {1.25, 1.6, 2, 16};
    for (int i = 0; i < 4; i++) {
        begin(&c, &(calyx_options){.capacity = 100000, .growth = growths[i]});
        for (double before = capacity_of(&c); before * growths[i] < MOST_KEYS;
             before = capacity_of(&c)) {
            if (!add_part(&c)) break;
            const double ratio = capacity_of(&c) / before;
            assert_true(fabs(ratio / growths[i] - 1) < 1e-4);
        }
    }
}

/* What the schedule costs at the moments when it is full, from a thousand keys
 * to ten million, and how it compares with RedisBloom's, which takes 42.8. */
static void a_full_chain_takes_at_most_28_bits_a_key(void **state) {
    (void)state;
    static struct chain c;
    const double growths[] = {1.6, 2};
    for (int i = 0; i < 2; i++) {
        begin(&c, &(calyx_options){.capacity = 1000, .growth = growths[i]});
        while (capacity_of(&c) < 1e7) {
            assert_true(bits_of(&c) / capacity_of(&c) <= 28);
            assert_true(add_part(&c));
        }
    }
}

/* A filter of the server that nobody reserved: bytes in blocks of an allocator
 * at the sizes where RedisBloom takes 2,976 and 29,584; and no more parts than
 * in steps of four. */
static void from_a_hundred_keys_fine_growth_takes_little(void **state) {
    (void)state;
    static struct chain c;
    const struct {
        double keys, bytes;
        uint32_t parts;
    } most[] = {
        {1000, 2400, 3}, {1e4, 24000, 5}, {1e5, 260000, 8}, {1e6, 2750000, 13}};
    begin(&c, &(calyx_options){
                  .capacity = 100, .growth = 1.6, .first_fpr = 0.00095});
    assert_int_equal(body_bytes(c.filter.kind, &c.parts[0].shape), 192);
    for (int i = 0; i < 4; i++) {
        while (capacity_of(&c) < most[i].keys) assert_true(add_part(&c));
        assert_true(capacity_of(&c) < 1.25 * most[i].keys);
        assert_true(bits_of(&c) / 8 <= most[i].bytes);
        assert_true(c.count <= most[i].parts);
    }
    while (add_part(&c)) {}
    assert_true(rate_of(&c) <= 0.01);
}

/* Four sizes to each doubling, none of it unused. */
static void small_parts_of_fine_growth_fill_their_blocks(void **state) {
    (void)state;
    static struct chain c;
    EACH_KIND(kind) {
        begin(&c,
              &(calyx_options){.kind = *kind, .capacity = 100, .growth = 1.6});
        while (capacity_of(&c) < 20000) {
            assert_true(add_part(&c));
            const struct part *p = c.filter.newest;
            uint64_t bytes = body_bytes(c.filter.kind, &p->shape);
            assert_true(
                expected_rate(c.filter.kind, &p->shape, (double)p->capacity) <=
                1.000001 * p->fpr);
            if (c.filter.kind->counter_bits || bytes > 64 << 10) continue;
            while (bytes % 2 == 0 && bytes > 512) bytes /= 2;
            assert_true(bytes % 64 == 0 && bytes <= 512);
            assert_int_equal(p->shape.blocks * c.filter.kind->block_bits % 512,
                             0);
        }
    }
}

static void the_first_part_has_the_requested_rate(void **state) {
    (void)state;
    static struct chain c;
    begin(&c,
          &(calyx_options){.capacity = 1000, .growth = 2, .first_fpr = 0.009});
    assert_true(c.parts[0].fpr == 0.009);
    while (add_part(&c)) {}
    assert_true(rate_of(&c) <= 0.01);
    const calyx_options bad[] = {{.growth = 2, .first_fpr = 0.01},
                                 {.growth = 2, .first_fpr = -1},
                                 {.growth = 2, .first_fpr = NAN},
                                 {.first_fpr = 0.005},
                                 {.growth = 2, .fpr = 1e-3, .first_fpr = 2e-3}};
    for (int i = 0; i < 5; i++) {
        calyx_info info;
        assert_int_equal(calyx_plan(&bad[i], &info, NULL), CALYX_BAD_ARGUMENT);
    }
}

/* ---- Filters that do not grow -------------------------------------------- */

static void past_capacity_the_rate_rises_as_described(void **state) {
    (void)state;
    enum { N = 50000 };
    EACH_KIND_OF_BITS(kind) {
        calyx_filter *f =
            make_filter((calyx_options){.kind = *kind, .capacity = N});
        double last = 0;
        for (uint64_t times = 1; times <= 4; times++) {
            add_in_batches(f, (times - 1) * N, times * N);

            const calyx_info info = info_of(f);
            const uint64_t n = 200000;
            const uint64_t found =
                count_found_in_batches(f, ABSENT, ABSENT + n);

            if (odds_at_least(found, n, info.fpr_now) < UNLIKELY ||
                odds_at_most(found, n, info.fpr_now) < UNLIKELY)
                fail_msg("%s, %llu times full: %llu found, not %g", *kind,
                         (unsigned long long)times, (unsigned long long)found,
                         (double)n * info.fpr_now);
            assert_true(info.fpr == 0.01 && info.fpr_now > last);
            assert_int_equal(info.parts, 1);
            assert_int_equal(info.capacity, N);
            last = info.fpr_now;
        }
        assert_true(last > 0.1);
        assert_has_in_batches(f, 0, 4 * N);
        calyx_free(f);
    }
}

/* Add numbers until a strict filter is full; returns how many were fresh. */
static uint64_t fill_up(calyx_filter *f, uint64_t *next) {
    for (uint64_t fresh_keys = 0;; fresh_keys++, (*next)++) {
        bool fresh = false;
        const calyx_status status = calyx_add_u64(f, *next, &fresh);
        if (status == CALYX_FULL) return fresh_keys;
        assert_ok(status);
        if (!fresh) fresh_keys--;
    }
}

static void a_strict_filter_is_full_at_exactly_its_capacity(void **state) {
    (void)state;
    EACH_KIND(kind) {
        const bool counts = counts_additions(*kind);
        calyx_filter *f = make_filter(
            (calyx_options){.kind = *kind, .capacity = 5000, .strict = true});
        uint64_t next = 0;

        const uint64_t fresh_keys = fill_up(f, &next);

        /* Some count every addition, fresh or not. */
        assert_int_equal(counts ? next : fresh_keys, 5000);
        assert_int_equal(info_of(f).items, 5000);
        const calyx_info before = info_of(f);
        assert_int_equal(calyx_add_u64(f, next, NULL), CALYX_FULL);
        assert_true(info_of(f).fill == before.fill); /* nothing changed */
        bool fresh = true;
        assert_ok(calyx_add_u64(f, 0, &fresh)); /* known keys are welcome */
        assert_false(fresh);
        assert_has_in_batches(f, 0, next);
        calyx_free(f);
    }
}

static void a_batch_stops_where_a_strict_filter_is_full(void **state) {
    (void)state;
    enum { N = 6000 };
    EACH_KIND(kind) {
        const calyx_options want = {
            .kind = *kind, .capacity = 5000, .strict = true};
        calyx_filter *single = make_filter(want), *many = make_filter(want);
        uint64_t numbers[N], next = 0;
        for (uint64_t i = 0; i < N; i++) numbers[i] = i;
        fill_up(single, &next);
        size_t done = 0;

        const calyx_status status =
            calyx_add_many_u64(many, numbers, N, NULL, &done);

        assert_int_equal(status, CALYX_FULL);
        assert_int_equal(done, next);
        assert_true(same_bodies(single, many));
        assert_int_equal(info_of(many).items, 5000);
        calyx_free(single);
        calyx_free(many);
    }
}

static void a_strict_filter_has_room_again_after_clear(void **state) {
    (void)state;
    calyx_filter *f =
        make_filter((calyx_options){.capacity = 10, .strict = true});
    uint64_t next = 0;
    assert_int_equal(fill_up(f, &next), 10);

    assert_ok(calyx_clear(f));

    next = 0;
    assert_int_equal(fill_up(f, &next), 10);
    calyx_free(f);
}

/* ---- The stack ----------------------------------------------------------- */

enum { AT_ONCE = 5000 };

static const uint64_t *numbers_from(uint64_t first) {
    static uint64_t numbers[AT_ONCE];
    for (uint64_t i = 0; i < AT_ONCE; i++) numbers[i] = first + i;
    return numbers;
}

static void *ask_many(void *filter) {
    calyx_has_many_u64(filter, numbers_from(0), AT_ONCE, NULL);
    return NULL;
}

static void *add_many(void *filter) {
    calyx_add_many_u64(filter, numbers_from(1u << 30), AT_ONCE, NULL, NULL);
    return NULL;
}

static void *remove_many(void *filter) {
    calyx_remove_many_u64(filter, numbers_from(0), AT_ONCE, NULL, NULL);
    return NULL;
}

static void *do_nothing(void *filter) {
    return filter;
}

/* A thread is run on a stack that was painted, and that grows down. */
static size_t stack_taken(void *(*by)(void *), calyx_filter *f) {
    enum { ROOM = 1 << 20, PAINT = 0xA5 };
    uint8_t *stack = aligned_alloc(4096, ROOM);
    assert_non_null(stack);
    memset(stack, PAINT, ROOM);
    pthread_attr_t on_it;
    pthread_t thread;
    pthread_attr_init(&on_it);
    assert_int_equal(pthread_attr_setstack(&on_it, stack, ROOM), 0);
    assert_int_equal(pthread_create(&thread, &on_it, by, f), 0);
    pthread_join(thread, NULL);
    size_t untouched = 0;
    while (stack[untouched] == PAINT) untouched++;
    pthread_attr_destroy(&on_it);
    free(stack);
    return ROOM - untouched;
}

static size_t stack_taken_more(void *(*by)(void *), calyx_filter *f) {
    return stack_taken(by, f) - stack_taken(do_nothing, f);
}

/* As calyx.h says; of every kind, one of fixed size and one that has grown. */
static void many_keys_take_60_kib_of_stack_at_most(void **state) {
    (void)state;
    if (SANITIZED) skip(); /* frames are larger there */
    enum { USUAL = 40 << 10, ASKING_GROWN = 60 << 10, TABLE = 60 << 10 };
    for (const char *const *kind = adding_kinds(); *kind; kind++)
        for (int grows = 0; grows < 2; grows++) {
            calyx_filter *f = make_filter((calyx_options){
                .kind = *kind, .capacity = 1000, .growth = grows ? 2 : 0});
            add_in_batches(f, 0, grows ? 1000000 : 1000);
            const size_t most = is_table(*kind) ? TABLE : USUAL;
            assert_in_range(stack_taken_more(ask_many, f), 1,
                            grows ? ASKING_GROWN : most);
            assert_in_range(stack_taken_more(add_many, f), 1, most);
            assert_in_range(stack_taken_more(remove_many, f), 0, USUAL);
            calyx_free(f);
        }
}

/* Lookups where a range is damaged: more frames are on the stack. */
static void check_damaged(calyx_filter *f, size_t most) {
    calyx_filter *view;
    const size_t size = (size_t)calyx_encoded_size(f);
    uint8_t *const bytes = aligned_alloc(64, size);
    assert_non_null(bytes);
    assert_ok(calyx_encode(f, bytes, size, NULL));
    calyx_free(f);
    bytes[size / 2] ^= 1;
    assert_ok(calyx_view(bytes, size, NULL, &view, NULL));
    assert_in_range(stack_taken_more(ask_many, view), 1, most);
    assert_int_equal(calyx_health(view, NULL), CALYX_DAMAGED);
    calyx_free(view);
    free(bytes);
}

static void many_keys_take_as_little_stack_where_a_view_is_damaged(
    void **state) {
    (void)state;
    if (SANITIZED) skip();
    EACH_KIND(kind) {
        calyx_filter *f = make_filter(
            (calyx_options){.kind = *kind, .capacity = 1000, .growth = 2});
        add_in_batches(f, 0, 1000000);
        check_damaged(f, 60 << 10);
    }
    EACH_BUILT_KIND(kind) {
        const calyx_builder_options want = {.filter = {.kind = *kind}};
        calyx_builder *b;
        calyx_filter *f;
        assert_ok(calyx_builder_new(&want, &b, NULL));
        for (uint64_t from = 0; from < 100000; from += AT_ONCE)
            assert_ok(calyx_builder_add_many_u64(b, numbers_from(from), AT_ONCE,
                                                 NULL));
        assert_ok(calyx_builder_finish(b, &f, NULL));
        calyx_builder_free(b);
        const size_t kib = is_table(*kind) ? 60 : 40;
        check_damaged(f, kib << 10);
    }
}

/* ---- The seed ------------------------------------------------------------ */

static uint64_t seed_of(calyx_options want) {
    calyx_filter *f = NULL;
    assert_ok(calyx_new(&want, &f, NULL));
    const uint64_t seed = info_of(f).seed;
    calyx_free(f);
    return seed;
}

/* Equal seeds would come once in 2^64 runs. */
static void only_a_growing_filter_without_a_seed_takes_a_random_one(
    void **state) {
    (void)state;
    static const uint8_t key[16] = "sixteen secrets";
    const double grows = 2;
    assert_true(seed_of((calyx_options){.growth = grows}) !=
                seed_of((calyx_options){.growth = grows}));
    assert_true(seed_of((calyx_options){.growth = grows, .kind = "line"}) != 0);
    assert_int_equal(seed_of((calyx_options){.growth = grows, .seed = 7}), 7);
    assert_int_equal(seed_of((calyx_options){.growth = grows, .seeded = true}),
                     0);
    assert_int_equal(seed_of((calyx_options){.capacity = 9}), 0);
    assert_int_equal(seed_of((calyx_options){
                         .growth = grows, .hash = "siphash", .key = key}),
                     0);
}

static void what_comes_from_a_growing_filter_has_its_seed(void **state) {
    (void)state;
    const calyx_options want = {.growth = 2};
    calyx_filter *f, *from[3], *other;
    calyx_error why;
    assert_ok(calyx_new(&want, &f, NULL));
    const size_t size = (size_t)calyx_encoded_size(f);
    void *const bytes = test_malloc(size);
    assert_ok(calyx_encode(f, bytes, size, NULL));
    assert_ok(calyx_decode(bytes, size, NULL, &from[0], NULL));
    assert_ok(calyx_copy(f, &from[1], NULL));
    assert_ok(calyx_new_like(f, &from[2], NULL));
    for (int i = 0; i < 3; i++) {
        assert_ok(calyx_merge(f, from[i], &why));
        calyx_free(from[i]);
    }

    assert_ok(calyx_new(&want, &other, NULL));
    assert_int_equal(calyx_merge(f, other, &why), CALYX_MISMATCH);
    assert_non_null(strstr(why.text, "make both with the same seed"));
    calyx_free(other);
    calyx_free(f);
    test_free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_a_thousand_to_many_a_filter_keeps_its_rate),
        cmocka_unit_test(from_a_hundred_to_many_a_filter_keeps_its_rate),
        cmocka_unit_test(a_growing_filter_of_the_right_size_costs_little),
        cmocka_unit_test(from_a_tenth_a_filter_costs_twice),
        cmocka_unit_test(every_kind_grows_and_keeps_its_rate),
        cmocka_unit_test(the_rate_holds_at_every_size),
        cmocka_unit_test(adding_one_by_one_grows_as_adding_many_does),
        cmocka_unit_test(a_grown_filter_answers_batches_like_single_lookups),
        cmocka_unit_test(
            a_grown_filter_with_large_parts_answers_like_single_lookups),
        cmocka_unit_test(
            a_large_filter_of_one_part_answers_batches_like_single_lookups),
        cmocka_unit_test(a_lookup_finds_all_keys_while_the_filter_grows),
        cmocka_unit_test(adding_the_same_keys_again_does_not_grow),
        cmocka_unit_test(known_keys_leave_every_byte_of_a_growing_table),
        cmocka_unit_test(removing_old_keys_takes_nothing_from_newer_ones),
        cmocka_unit_test(the_first_part_is_full_at_its_capacity),
        cmocka_unit_test(the_first_part_has_the_requested_rate),
        cmocka_unit_test(past_capacity_the_rate_rises_as_described),
        cmocka_unit_test(a_strict_filter_is_full_at_exactly_its_capacity),
        cmocka_unit_test(a_batch_stops_where_a_strict_filter_is_full),
        cmocka_unit_test(a_strict_filter_has_room_again_after_clear),
        cmocka_unit_test(many_keys_take_60_kib_of_stack_at_most),
        cmocka_unit_test(
            many_keys_take_as_little_stack_where_a_view_is_damaged),
    };
    /* They plan, and have no kernel. */
    const struct CMUnitTest of_plans[] = {
        cmocka_unit_test(the_rates_of_all_parts_sum_to_less_than_the_promise),
        cmocka_unit_test(the_promise_allows_for_keys_with_one_hash),
        cmocka_unit_test(each_part_multiplies_the_filter_by_its_growth),
        cmocka_unit_test(a_full_chain_takes_at_most_28_bits_a_key),
        cmocka_unit_test(from_a_hundred_keys_fine_growth_takes_little),
        cmocka_unit_test(small_parts_of_fine_growth_fill_their_blocks),
        cmocka_unit_test(
            only_a_growing_filter_without_a_seed_takes_a_random_one),
        cmocka_unit_test(what_comes_from_a_growing_filter_has_its_seed),
    };
    const int failed = RUN_TESTS(tests);
    return failed + (at_best_level() ? RUN_TESTS(of_plans) : 0);
}
