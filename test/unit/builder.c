/*
 * The builder: the same filter whatever the order of the keys, the memory and
 * the threads; each key found; memory within its limit; nothing left behind.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "build/hash_spool.h"
#include "support.h"
#include "support_files.h"

enum { KEYS = SANITIZED ? 30000 : 100000, TIGHT = 64 << 10 };

/* ---- Helpers ------------------------------------------------------------- */

static calyx_builder *make_builder(calyx_builder_options want) {
    calyx_builder *b = NULL;
    calyx_error why = {0};
    if (calyx_builder_new(&want, &b, &why) != CALYX_OK)
        fail_msg("no builder: %s", why.text);
    return b;
}

static calyx_filter *finish(calyx_builder *b) {
    calyx_filter *f = NULL;
    calyx_error why = {0};
    if (calyx_builder_finish(b, &f, &why) != CALYX_OK)
        fail_msg("not finished: %s", why.text);
    return f;
}

static calyx_filter *finish_and_free(calyx_builder *b) {
    calyx_filter *const f = finish(b);
    calyx_builder_free(b);
    return f;
}

static bool can(const char *kind, calyx_abilities ability) {
    return calyx_kind_can(kind) & ability;
}

/* A table gets each key once. */
static bool counts_copies(const char *kind) {
    return can(kind, CALYX_CAN_COUNT) && !can(kind, CALYX_CAN_GROW_IN_PLACE);
}

/* Numbers from `from` on: forward, backward, or in a random order. */
enum order { FORWARD, BACKWARD, SHUFFLED };

static uint64_t *numbers_in(enum order order, uint64_t from, size_t n) {
    uint64_t *const numbers = malloc((n + 1) * sizeof *numbers);
    struct generator random = {1};
    for (size_t i = 0; i < n; i++)
        numbers[i] = from + (order == BACKWARD ? n - 1 - i : i);
    for (size_t i = n; order == SHUFFLED && i > 1; i--) {
        const size_t j = (size_t)random_below(&random, i);
        const uint64_t other = numbers[j];
        numbers[j] = numbers[i - 1];
        numbers[i - 1] = other;
    }
    return numbers;
}

static void give_numbers(calyx_builder *b, enum order order, uint64_t from,
                         size_t n) {
    uint64_t *const numbers = numbers_in(order, from, n);
    assert_ok(calyx_builder_add_many_u64(b, numbers, n, NULL));
    free(numbers);
}

/* Are two filters the same in every byte of their encoding? */
static void assert_same_bytes(const calyx_filter *a, const calyx_filter *b) {
    const size_t size = (size_t)calyx_encoded_size(a);
    assert_int_equal(calyx_encoded_size(b), size);
    void *const bytes = malloc(size), *const other = malloc(size);
    assert_ok(calyx_encode(a, bytes, size, NULL));
    assert_ok(calyx_encode(b, other, size, NULL));
    assert_memory_equal(bytes, other, size);
    free(bytes);
    free(other);
}

/* ---- The same filter ----------------------------------------------------- */

static void a_built_filter_has_the_bits_of_one_that_keys_were_added_to(
    void **state) {
    (void)state;
    EACH_KIND(kind) {
        calyx_filter *const direct =
            make_filter((calyx_options){.kind = *kind, .capacity = KEYS});
        add_numbers(direct, 0, KEYS);
        calyx_builder *const b =
            make_builder((calyx_builder_options){.filter = {.kind = *kind}});
        give_numbers(b, SHUFFLED, 0, KEYS);
        calyx_filter *const built = finish_and_free(b);
        assert_has_numbers(built, 0, KEYS);
        assert_true(same_bodies(direct, built) || is_table(*kind));
        assert_int_equal(info_of(built).capacity, KEYS);
        calyx_free(direct);
        calyx_free(built);
    }
}

static void order_memory_and_threads_do_not_change_a_byte(void **state) {
    (void)state;
    EACH_BUILT_KIND(kind) {
        calyx_builder *b = make_builder(
            (calyx_builder_options){.filter = {.kind = *kind, .seed = 7}});
        give_numbers(b, FORWARD, 0, KEYS);
        calyx_filter *const first = finish_and_free(b);
        assert_has_numbers(first, 0, KEYS);
        for (enum order order = FORWARD; order <= SHUFFLED; order++)
            for (uint32_t threads = 1; threads <= 4; threads += 3)
                for (int tight = 0; tight < 2; tight++) {
                    b = make_builder((calyx_builder_options){
                        .filter = {.kind = *kind, .seed = 7},
                        .folder = folder,
                        .memory_bytes = tight ? TIGHT : 0,
                        .threads = threads});
                    give_numbers(b, order, 0, KEYS);
                    calyx_filter *const same = finish_and_free(b);
                    assert_same_bytes(first, same);
                    calyx_free(same);
                }
        calyx_free(first);
    }
}

/* Keys are added as they come, except by the builder with little memory, and by
 * the builder whose filter is to be mapped from a file. */
static void a_large_filter_of_known_size_is_the_same_in_any_order(
    void **state) {
    (void)state;
    enum { MANY = 200000 };
    static const char *const kinds[] = {"line", "line2", "split", "flat"};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const calyx_builder_options want = {
            .filter = {.kind = kinds[k], .capacity = MANY, .seed = 7},
            .folder = folder};
        calyx_builder_options tight = want, mapped = want;
        tight.memory_bytes = TIGHT;
        mapped.file_backed = true;
        calyx_builder *const b = make_builder(want);
        give_numbers(b, FORWARD, 0, MANY);
        calyx_filter *const first = finish_and_free(b);
        calyx_filter *const added = make_filter(want.filter);
        add_numbers(added, 0, MANY);
        assert_has_numbers(first, 0, MANY);
        assert_true(same_bodies(first, added));
        assert_true(info_of(first).items > MANY - MANY / 200);
        assert_true(info_of(first).items < MANY + MANY / 200);

        calyx_builder *const ways[] = {make_builder(want), make_builder(want),
                                       make_builder(tight),
                                       make_builder(mapped)};
        give_numbers(ways[0], BACKWARD, 0, MANY);
        give_numbers(ways[0], SHUFFLED, 0, MANY / 2); /* again */
        give_numbers(ways[1], SHUFFLED, 0, MANY / 4);
        calyx_builder *const rest = make_builder(want);
        give_numbers(rest, FORWARD, MANY / 4, MANY - MANY / 4);
        assert_ok(calyx_builder_merge(ways[1], rest, NULL));
        uint64_t left;
        assert_ok(calyx_builder_count(rest, &left, NULL));
        assert_int_equal(left, 0);
        calyx_error why = {0};
        assert_int_equal(calyx_builder_merge(rest, ways[2], &why),
                         CALYX_MISMATCH);
        assert_non_null(strstr(why.text, "memory"));
        calyx_builder_free(rest);
        give_numbers(ways[2], SHUFFLED, 0, MANY);
        give_numbers(ways[3], BACKWARD, 0, MANY);
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
            calyx_filter *const same = finish_and_free(ways[i]);
            assert_same_bytes(first, same);
            calyx_free(same);
        }
        calyx_free(first);
        calyx_free(added);
    }
}

static void keys_numbers_and_hashes_are_the_same_keys(void **state) {
    (void)state;
    enum { SOME = 3000 };
    EACH_BUILT_KIND(kind) {
        const calyx_builder_options want = {.filter = {.kind = *kind}};
        calyx_builder *ways[4];
        for (int i = 0; i < 4; i++) ways[i] = make_builder(want);
        uint64_t numbers[SOME], hashes[SOME];
        calyx_key keys[SOME];
        for (uint64_t i = 0; i < SOME; i++) {
            numbers[i] = i;
            keys[i] = (calyx_key){&numbers[i], sizeof numbers[i]};
            assert_ok(calyx_builder_add(ways[0], &i, sizeof i, NULL));
        }
        calyx_info info;
        const calyx_options one = {.kind = *kind, .capacity = 1};
        assert_ok(calyx_plan(&one, &info, NULL));
        calyx_filter *const hasher =
            make_filter((calyx_options){.hash = info.hash});
        calyx_hash_many(hasher, keys, SOME, hashes);
        assert_ok(calyx_builder_add_many(ways[1], keys, SOME, NULL));
        assert_ok(calyx_builder_add_many_u64(ways[2], numbers, SOME, NULL));
        assert_ok(calyx_builder_add_hashes(ways[3], hashes, SOME, NULL));
        calyx_filter *const first = finish_and_free(ways[0]);
        assert_has_numbers(first, 0, SOME);
        for (int i = 1; i < 4; i++) {
            calyx_filter *const same = finish_and_free(ways[i]);
            assert_same_bytes(first, same);
            calyx_free(same);
        }
        calyx_free(first);
        calyx_free(hasher);
    }
}

static void builders_that_were_merged_make_the_filter_of_one(void **state) {
    (void)state;
    EACH_BUILT_KIND(kind)
    for (int tight = 0; tight < 2; tight++) {
        const calyx_builder_options want = {.filter = {.kind = *kind},
                                            .folder = folder,
                                            .memory_bytes = tight ? TIGHT : 0};
        calyx_builder *const one = make_builder(want);
        give_numbers(one, FORWARD, 0, KEYS);
        calyx_builder *const b = make_builder(want);
        for (uint64_t i = 0; i < 5; i++) {
            calyx_builder *const other = make_builder(want);
            give_numbers(other, SHUFFLED, i * KEYS / 5, KEYS / 5);
            assert_ok(calyx_builder_merge(b, other, NULL));
            calyx_filter *const empty = finish_and_free(other);
            assert_int_equal(info_of(empty).items, 0);
            calyx_free(empty);
        }
        calyx_filter *const a = finish_and_free(one);
        calyx_filter *const same = finish_and_free(b);
        assert_same_bytes(a, same);
        calyx_free(a);
        calyx_free(same);
    }
}

static void builders_of_different_filters_are_not_merged(void **state) {
    (void)state;
    const calyx_builder_options wants[] = {
        {.filter = {.kind = "line"}},
        {.filter = {.kind = "flat"}},
        {.filter = {.kind = "line", .seed = 1}},
        {.filter = {.kind = "line", .hash = "xxh64"}},
    };
    calyx_builder *const b = make_builder(wants[0]);
    for (size_t i = 1; i < sizeof wants / sizeof *wants; i++) {
        calyx_builder *const other = make_builder(wants[i]);
        calyx_error why = {0};
        assert_int_equal(calyx_builder_merge(b, other, &why), CALYX_MISMATCH);
        assert_non_null(strstr(why.text, "builder"));
        calyx_builder_free(other);
    }
    assert_ok(calyx_builder_merge(b, b, NULL));
    calyx_builder_free(b);
}

/* ---- Numbers of keys ----------------------------------------------------- */

static void every_small_number_of_keys_can_be_built(void **state) {
    (void)state;
    EACH_BUILT_KIND(kind)
    for (uint64_t n = 0; n < 70; n++) {
        calyx_builder *const b =
            make_builder((calyx_builder_options){.filter = {.kind = *kind}});
        give_numbers(b, BACKWARD, 0, n);
        give_numbers(b, FORWARD, 0, n);
        calyx_filter *const f = finish_and_free(b);
        assert_has_numbers(f, 0, n);
        assert_true(info_of(f).items <= 2 * n);
        calyx_free(f);
    }
}

static void equal_keys_are_one_key(void **state) {
    (void)state;
    uint64_t *const same = malloc(KEYS * sizeof *same);
    for (size_t i = 0; i < KEYS; i++) same[i] = i % 3;
    EACH_BUILT_KIND(kind) {
        calyx_builder *const b =
            make_builder((calyx_builder_options){.filter = {.kind = *kind},
                                                 .memory_bytes = TIGHT,
                                                 .folder = "/nonexistent"});
        for (int i = 0; i < 10; i++) /* more than memory has room for */
            assert_ok(calyx_builder_add_many_u64(b, same, KEYS, NULL));
        calyx_filter *const f = finish_and_free(b);
        const calyx_info info = info_of(f);
        assert_has_numbers(f, 0, 3);
        assert_int_equal(info.items, counts_copies(*kind) ? 10 * KEYS : 3);
        assert_in_range(info.capacity, 3, 100);
        calyx_free(f);
    }
    free(same);
}

static void kinds_with_counters_count_every_copy(void **state) {
    (void)state;
    enum { MOST = 20 };
    EACH_BUILT_KIND(kind) {
        if (!counts_copies(*kind)) continue;
        for (int tight = 0; tight < 2; tight++) {
            calyx_builder *const b = make_builder(
                (calyx_builder_options){.filter = {.kind = *kind, .fpr = 1e-6},
                                        .folder = folder,
                                        .memory_bytes = tight ? TIGHT : 0});
            uint64_t added = 0;
            for (uint64_t copies = 1; copies <= MOST; copies++)
                for (uint64_t i = 0; i < copies; i++) {
                    give_numbers(b, FORWARD, copies * 1000, 1000);
                    added += 1000;
                }
            calyx_filter *const f = finish_and_free(b);
            uint64_t wrong = 0;
            for (uint64_t i = 1000; i < (MOST + 1) * 1000; i++) {
                const uint32_t count = calyx_count(f, &i, sizeof i);
                wrong += count != (i / 1000 < 15 ? i / 1000 : 15);
            }
            assert_in_range(wrong, 0, 5); /* false positives of others */
            assert_int_equal(info_of(f).items, added);
            calyx_free(f);
        }
    }
}

/* Small integers as hashes: all in one slice, and more than fit into memory. */
static void crowded_hashes_lose_nothing(void **state) {
    (void)state;
    EACH_KIND(kind) {
        uint64_t *const hashes = numbers_in(SHUFFLED, 0, KEYS);
        for (size_t i = 0; i < KEYS; i++) hashes[i] += UINT64_C(5) << 60;
        calyx_builder *const b =
            make_builder((calyx_builder_options){.filter = {.kind = *kind},
                                                 .folder = folder,
                                                 .memory_bytes = TIGHT,
                                                 .threads = 3});
        assert_ok(calyx_builder_add_hashes(b, hashes, KEYS, NULL));
        calyx_filter *const f = finish_and_free(b);
        assert_int_equal(calyx_has_hashes(f, hashes, KEYS, NULL), KEYS);
        assert_int_equal(info_of(f).capacity, KEYS);
        calyx_free(f);
        free(hashes);
    }
}

static void a_builder_can_go_on_after_it_finished(void **state) {
    (void)state;
    EACH_BUILT_KIND(kind)
    for (int sized = 0; sized < 2; sized++)
        for (int tight = 0; tight < 2; tight++) {
            const calyx_builder_options want = {
                .filter = {.kind = *kind, .capacity = sized ? 200000 : 0},
                .folder = folder,
                .memory_bytes = tight ? TIGHT : 0};
            calyx_builder *const b = make_builder(want);
            give_numbers(b, SHUFFLED, 0, KEYS / 2);
            calyx_filter *const half = finish(b), *const again = finish(b);
            assert_same_bytes(half, again);
            give_numbers(b, SHUFFLED, KEYS / 2, KEYS - KEYS / 2);
            calyx_filter *const whole = finish_and_free(b);
            assert_has_numbers(whole, 0, KEYS);
            calyx_builder *const at_once = make_builder(want);
            give_numbers(at_once, FORWARD, 0, KEYS);
            calyx_filter *const same = finish_and_free(at_once);
            assert_same_bytes(whole, same);
            calyx_free(half);
            calyx_free(again);
            calyx_free(whole);
            calyx_free(same);
        }
}

/* ---- Options ------------------------------------------------------------- */

static void options_that_make_no_sense_are_refused(void **state) {
    (void)state;
    struct books books = {0};
    const calyx_memory hooks = hooks_of(&books);
    const struct {
        calyx_builder_options want;
        const char *text;
    } wrong[] = {
        {{.filter = {.kind = "lien"}}, "no kind is named"},
        {{.filter = {.fpr = 2}}, "fpr must lie between"},
        {{.filter = {.capacity = UINT64_C(1) << 50}}, "capacity must be"},
        {{.filter = {.reserved = {1}}}, "calyx_options"},
        {{.reserved = {0, 1}}, "calyx_builder_options"},
        {{.threads = 65}, "threads must be at most 64, not 65"},
        {{.memory_bytes = 1000}, "memory_bytes must be at least 65536"},
        {{.filter = {.memory = &hooks}, .file_backed = true}, "file_backed"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        calyx_builder *b = NULL;
        calyx_error why = {0};
        assert_int_equal(calyx_builder_new(&wrong[i].want, &b, &why),
                         CALYX_BAD_ARGUMENT);
        assert_null(b);
        assert_non_null(strstr(why.text, wrong[i].text));
    }
    assert_int_equal(books.blocks, 0);
    calyx_builder_free(NULL);
}

/* What the options point to may go as soon as the builder is made. */
static void a_builder_does_not_need_the_memory_of_its_options(void **state) {
    (void)state;
    char kind[] = "flat", hash[] = "xxh64", where[] = "/nonexistent";
    struct books books = {0};
    calyx_memory hooks = hooks_of(&books);
    calyx_builder *const b = make_builder((calyx_builder_options){
        .filter = {.kind = kind, .hash = hash, .memory = &hooks},
        .folder = where,
        .memory_bytes = TIGHT});
    memset(kind, 'x', sizeof kind);
    memset(hash, 'x', sizeof hash);
    memset(where, 'x', sizeof where - 1);
    memset(&hooks, 0, sizeof hooks);
    give_numbers(b, FORWARD, 0, 100);
    calyx_filter *const f = finish(b);
    assert_string_equal(info_of(f).kind, "flat");
    assert_string_equal(info_of(f).hash, "xxh64");
    uint64_t *const more = numbers_in(FORWARD, 0, KEYS);
    calyx_error why = {0};
    assert_int_equal(calyx_builder_add_many_u64(b, more, KEYS, &why), CALYX_IO);
    assert_non_null(strstr(why.text, "/nonexistent"));
    assert_int_equal(why.os_code, ENOENT);
    free(more);
    calyx_builder_free(b);
    calyx_free(f);
    assert_int_equal(books.blocks, 0);
}

static void capacity_bits_and_growth_are_as_in_calyx_new(void **state) {
    (void)state;
    const calyx_options wants[] = {
        {.capacity = 5000},
        {.bits = 1 << 20},
        {.bits = 1 << 20, .fpr = 0.05},
        {.growth = 2},
        {.capacity = 500, .growth = 2},
    };
    for (size_t i = 0; i < sizeof wants / sizeof *wants; i++) {
        calyx_builder *const b =
            make_builder((calyx_builder_options){.filter = wants[i]});
        give_numbers(b, SHUFFLED, 0, 10000);
        calyx_filter *const f = finish_and_free(b);
        assert_has_numbers(f, 0, 10000);
        calyx_options want = wants[i];
        if (!want.capacity && !(want.bits && want.fpr > 0))
            want.capacity = 10000;
        calyx_filter *const planned = make_filter(want);
        if (want.growth == 0) {
            assert_int_equal(info_of(f).bits, info_of(planned).bits);
            assert_int_equal(info_of(f).capacity, info_of(planned).capacity);
        }
        assert_true((info_of(f).parts > 1) == (i == 4));
        assert_int_equal(info_of(f).seed, 0);
        calyx_free(planned);
        calyx_free(f);
    }
    calyx_builder *const strict = make_builder(
        (calyx_builder_options){.filter = {.capacity = 100, .strict = true}});
    give_numbers(strict, FORWARD, 0, 200);
    calyx_filter *none = NULL;
    calyx_error why = {0};
    assert_int_equal(calyx_builder_finish(strict, &none, &why), CALYX_FULL);
    assert_null(none);
    assert_non_null(strstr(why.text, "full"));
    calyx_builder_free(strict);
}

/* ---- Memory and files ---------------------------------------------------- */

static void a_builder_keeps_to_its_memory(void **state) {
    (void)state;
    EACH_BUILT_KIND(kind)
    for (uint32_t threads = 1; threads <= 4; threads++) {
        enum { LIMIT = 4 * TIGHT };
        struct books books = {0};
        const calyx_memory hooks = hooks_of(&books);
        calyx_builder *const b = make_builder(
            (calyx_builder_options){.filter = {.kind = *kind, .memory = &hooks},
                                    .folder = folder,
                                    .memory_bytes = LIMIT,
                                    .threads = threads});
        for (int i = 0; i < 3; i++)
            give_numbers(b, SHUFFLED, (uint64_t)i * KEYS, KEYS);
        assert_in_range(books.most, 1, LIMIT);
        calyx_filter *const f = finish(b);
        /* a thread that builds lots has at most 512 KiB of its own */
        const size_t scratch =
            can(*kind, CALYX_CAN_STATIC) ? threads * (512 << 10) : 0;
        assert_in_range(books.most, 1,
                        LIMIT + info_of(f).bytes + scratch + 4096);
        assert_has_numbers(f, 0, 3 * KEYS);
        calyx_builder_free(b);
        calyx_free(f);
        assert_int_equal(books.blocks, 0);
    }
}

/* One attempt in which the n-th allocation fails. False once n is past the
 * last. */
static bool survives(const char *kind, size_t n, bool for_good) {
    enum { SOME = 20000 };
    struct books books = {0};
    const calyx_memory hooks = hooks_of(&books);
    uint64_t *const numbers = numbers_in(SHUFFLED, 0, SOME);
    calyx_builder *b = NULL, *other = NULL;
    calyx_filter *f = NULL;
    calyx_error why = {0};
    const calyx_builder_options want = {
        .filter = {.kind = kind, .memory = &hooks},
        .folder = folder,
        .memory_bytes = TIGHT,
        .threads = 2};
    books.fails_at = n;
    books.for_good = for_good;
    calyx_status status = calyx_builder_new(&want, &b, &why);
    if (status == CALYX_OK) status = calyx_builder_new(&want, &other, &why);
    if (status == CALYX_OK)
        status = calyx_builder_add_many_u64(b, numbers, SOME / 2, &why);
    if (status == CALYX_OK)
        status = calyx_builder_add_many_u64(other, numbers + SOME / 2, SOME / 2,
                                            &why);
    if (status == CALYX_OK) status = calyx_builder_merge(b, other, &why);
    if (status == CALYX_OK) status = calyx_builder_finish(b, &f, &why);
    const bool failed = books.calls >= n;
    assert_int_equal(status, failed ? CALYX_NO_MEMORY : CALYX_OK);
    if (failed) assert_non_null(strstr(why.text, "no memory"));
    if (failed) assert_null(f);
    if (f) assert_has_numbers(f, 0, SOME);
    books.fails_at = 0;
    if (b && failed) { /* with memory, all goes on */
        calyx_free(f);
        assert_ok(calyx_builder_add_many_u64(b, numbers, SOME, NULL));
        f = finish(b);
        assert_has_numbers(f, 0, SOME);
    }
    calyx_free(f);
    calyx_builder_free(b);
    calyx_builder_free(other);
    assert_int_equal(books.blocks, 0);
    free(numbers);
    return failed;
}

static void memory_that_fails_loses_no_key_and_leaks_nothing(void **state) {
    (void)state;
    EACH_BUILT_KIND(kind)
    for (int for_good = 0; for_good < 2; for_good++) {
        size_t n = 1;
        while (survives(*kind, n, for_good)) n++;
        assert_in_range(n, 8, 200);
    }
}

static void a_saved_filter_is_the_finished_one(void **state) {
    (void)state;
    EACH_BUILT_KIND(kind)
    for (int backed = 0; backed < 3; backed++) {
        /* 1 MiB and more of bits, or none would be in a file */
        const size_t keys = can(*kind, CALYX_CAN_COUNT) ? 250000 : 640000;
        calyx_builder *const b = make_builder((calyx_builder_options){
            .filter = {.kind = *kind,
                       .capacity = backed > 1 ? keys : 0,
                       .fpr = 1e-4},
            .folder = folder,
            .memory_bytes = backed > 1 ? 0 : 1 << 20,
            .file_backed = backed == 1});
        calyx_filter *const texts = make_filter((calyx_options){.bits = 4096});
        assert_ok(calyx_set_comment(texts, "of words"));
        assert_ok(calyx_builder_copy_texts(b, texts, NULL));
        calyx_free(texts);
        give_numbers(b, SHUFFLED, 0, keys);
        calyx_filter *const f = finish(b);
        assert_true(calyx_has_u64(f, 1) && calyx_has_u64(f, keys - 1));
        calyx_error why = {0};
        assert_int_equal(calyx_builder_save(b, path, &why), CALYX_OK);
        calyx_builder_free(b);
        calyx_filter *const loaded = load(path), *copy;
        assert_same_bytes(f, loaded);
        assert_string_equal(calyx_comment(loaded), "of words");
        assert_ok(calyx_copy(f, &copy, NULL)); /* without the builder */
        assert_same_bytes(f, copy);
        calyx_free(copy);
        calyx_free(f);
        calyx_free(loaded);
        if (SANITIZED) return;
    }
}

/* The way to add keys to a static filter: a second one beside it. Either file
 * can be replaced while both are served. */
static void two_live_files_answer_for_old_keys_and_new_ones(void **state) {
    (void)state;
    EACH_BUILT_KIND(kind) {
        calyx_builder *const b = make_builder((calyx_builder_options){
            .filter = {.kind = *kind, .fpr = 1e-6}, .folder = folder});
        give_numbers(b, FORWARD, 0, 1000);
        assert_ok(calyx_builder_save(b, path, NULL));
        calyx_filter *const new = make_filter((calyx_options){.fpr = 1e-6});
        add_numbers(new, 1000, 1100);
        assert_ok(calyx_save(new, other_path, NULL));
        calyx_free(new);

        calyx_live *live[2];
        assert_ok(calyx_live_open(path, NULL, &live[0], NULL));
        assert_ok(calyx_live_open(other_path, NULL, &live[1], NULL));
        give_numbers(b, FORWARD, 1000, 1000); /* the next night */
        assert_ok(calyx_builder_save(b, path, NULL));
        calyx_builder_free(b);
        for (int night = 0; night < 2; night++) {
            const calyx_filter *const old = calyx_live_acquire(live[0]);
            const calyx_filter *const more = calyx_live_acquire(live[1]);
            uint64_t found = 0;
            for (uint64_t i = 0; i < 2000; i++)
                found += calyx_has_u64(old, i) || calyx_has_u64(more, i);
            assert_in_range(found, night ? 2000 : 1100, night ? 2000 : 1105);
            calyx_live_release(live[0], old);
            calyx_live_release(live[1], more);
            bool changed;
            assert_ok(calyx_live_refresh(live[0], &changed, NULL));
            assert_true(changed == (night == 0));
        }
        calyx_live_free(live[0]);
        calyx_live_free(live[1]);
    }
}

static void a_folder_that_is_not_there_is_named(void **state) {
    (void)state;
    calyx_builder *const b = make_builder((calyx_builder_options){
        .folder = "/nonexistent", .memory_bytes = TIGHT});
    uint64_t *const numbers = numbers_in(FORWARD, 0, KEYS);
    calyx_error why = {0};
    assert_int_equal(calyx_builder_add_many_u64(b, numbers, KEYS, &why),
                     CALYX_IO);
    assert_int_equal(why.os_code, ENOENT);
    assert_non_null(strstr(why.text, "/nonexistent: cannot make a temporary"));
    free(numbers);
    calyx_builder_free(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_built_filter_has_the_bits_of_one_that_keys_were_added_to),
        IN_FOLDER(order_memory_and_threads_do_not_change_a_byte),
        IN_FOLDER(a_large_filter_of_known_size_is_the_same_in_any_order),
        cmocka_unit_test(keys_numbers_and_hashes_are_the_same_keys),
        IN_FOLDER(builders_that_were_merged_make_the_filter_of_one),
        cmocka_unit_test(builders_of_different_filters_are_not_merged),
        cmocka_unit_test(every_small_number_of_keys_can_be_built),
        cmocka_unit_test(equal_keys_are_one_key),
        IN_FOLDER(kinds_with_counters_count_every_copy),
        IN_FOLDER(crowded_hashes_lose_nothing),
        IN_FOLDER(a_builder_can_go_on_after_it_finished),
        cmocka_unit_test(options_that_make_no_sense_are_refused),
        cmocka_unit_test(a_builder_does_not_need_the_memory_of_its_options),
        cmocka_unit_test(capacity_bits_and_growth_are_as_in_calyx_new),
        IN_FOLDER(a_builder_keeps_to_its_memory),
        IN_FOLDER(memory_that_fails_loses_no_key_and_leaks_nothing),
        IN_FOLDER(a_saved_filter_is_the_finished_one),
        IN_FOLDER(two_live_files_answer_for_old_keys_and_new_ones),
        cmocka_unit_test(a_folder_that_is_not_there_is_named),
    };
    return RUN_TESTS(tests);
}
