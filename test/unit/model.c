/*
 * Never a false negative: random operations on a filter and on an exact set
 * beside it. Whatever the set holds, the filter must find, singly and in
 * batches; that it finds more is its nature. A counting filter is held to a
 * multiset. The kernel is the one that CALYX_KERNEL asks for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "filter/filter.h"
#include "support.h"

/* ---- The keys there are -------------------------------------------------- */

enum { KEYS = 2000, MOST_BATCH = 1000 };

/* The even ones are numbers, which go in and out in every form; the odd ones
 * are strings of 4 to 43 bytes, some with NUL in them. */
static struct {
    uint64_t number[KEYS];
    char text[KEYS][48];
    calyx_key key[KEYS];
} all;

static bool is_number(size_t i) {
    return i % 2 == 0;
}

static void make_keys(void) {
    for (size_t i = 0; i < KEYS; i++) {
        all.number[i] = i;
        if (is_number(i)) {
            store64(all.text[i], i);
            all.key[i] = (calyx_key){all.text[i], 8};
        } else {
            snprintf(all.text[i], sizeof all.text[i], "%04d", (int)i);
            all.key[i] = (calyx_key){all.text[i], 4 + i % 40};
        }
    }
}

/* ---- The filter and its model -------------------------------------------- */

struct world {
    calyx_options want;
    calyx_filter *f;
    uint32_t times[KEYS]; /* how often each was added; 0 or 1 if not counting */
    uint64_t items;       /* that the filter should report */
    bool knows_items;     /* false once it may only estimate them */
    struct generator random;
};

static bool counts(const struct world *w) {
    return w->f->kind->counting != NULL;
}

static size_t any(struct world *w, size_t limit) {
    return (size_t)random_below(&w->random, limit);
}

/* Of a key that a table has 15 times no more is stored, nor counted. */
static void note_add(struct world *w, size_t i, bool fresh) {
    if (is_table(w->want.kind) &&
        calyx_count(w->f, all.key[i].data, all.key[i].size) == 15)
        w->knows_items = false;
    if (fresh) assert_int_equal(w->times[i], 0);
    w->times[i] = counts(w) ? w->times[i] + 1 : 1;
    w->items += counts(w) || fresh;
}

/* A strict filter refuses only what is new to it, and only when it is full. A
 * table of fixed size also refuses what finds no slot. */
static void note_refusal(const struct world *w, calyx_status status, size_t i) {
    assert_int_equal(status, CALYX_FULL);
    if (is_table(w->want.kind)) {
        assert_true(w->want.growth == 0);
        return;
    }
    assert_true(w->want.strict);
    assert_int_equal(w->times[i], 0);
    const calyx_info info = info_of(w->f);
    assert_true(info.items >= info.capacity);
}

/* ---- Asking -------------------------------------------------------------- */

static void check_batch(const struct world *w, const bool *answers, size_t from,
                        size_t n) {
    bool found[KEYS];
    size_t total = 0, numbers = 0;
    uint64_t hashes[KEYS], number[KEYS];
    bool number_answers[KEYS];
    for (size_t i = 0; i < n; i++) {
        const calyx_key *key = &all.key[from + i];
        hashes[i] = calyx_hash(w->f, key->data, key->size);
        total += answers[from + i];
        if (!is_number(from + i)) continue;
        number_answers[numbers] = answers[from + i];
        number[numbers++] = all.number[from + i];
    }
    const calyx_key *keys = all.key + from;

    assert_int_equal(calyx_has_many(w->f, keys, n, found), total);
    assert_int_equal(calyx_has_many(w->f, keys, n, NULL), total);
    assert_memory_equal(found, answers + from, n);
    assert_int_equal(calyx_has_hashes(w->f, hashes, n, found), total);
    assert_memory_equal(found, answers + from, n);
    calyx_has_many_u64(w->f, number, numbers, found);
    assert_memory_equal(found, number_answers, numbers);
}

static void check_key(const struct world *w, size_t i, bool answer) {
    const calyx_key *key = &all.key[i];
    const uint32_t count = calyx_count(w->f, key->data, key->size);
    if (w->times[i] > 0) assert_true(answer);
    assert_true(count >= (w->times[i] < 15 ? w->times[i] : 15));
    assert_int_equal(count > 0, answer);
    if (is_number(i)) assert_int_equal(calyx_has_u64(w->f, i), answer);
}

static void check(struct world *w) {
    bool answers[KEYS];
    for (size_t i = 0; i < KEYS; i++) {
        answers[i] = calyx_has(w->f, all.key[i].data, all.key[i].size);
        check_key(w, i, answers[i]);
    }
    const size_t cut = any(w, KEYS);
    check_batch(w, answers, 0, cut);
    check_batch(w, answers, cut, KEYS - cut);
    if (w->knows_items) assert_int_equal(info_of(w->f).items, w->items);
}

/* ---- Adding -------------------------------------------------------------- */

static void add_single(struct world *w) {
    const size_t i = any(w, KEYS);
    const calyx_key *key = &all.key[i];
    const uint64_t hash = calyx_hash(w->f, key->data, key->size);
    bool fresh;
    calyx_status status;
    switch (any(w, 3)) {
        case 0: status = calyx_add_hashes(w->f, &hash, 1, &fresh, NULL); break;
        case 1:
            if (is_number(i)) {
                status = calyx_add_u64(w->f, i, &fresh);
                break;
            }
            /* fall through */
        default: status = calyx_add(w->f, key->data, key->size, &fresh);
    }
    if (status == CALYX_OK)
        note_add(w, i, fresh);
    else
        note_refusal(w, status, i);
}

/* Many sizes are small, and some are over a run. */
static size_t any_batch(struct world *w) {
    static const size_t limits[] = {1, 3, 20, 257, MOST_BATCH + 1};
    return any(w, limits[any(w, sizeof limits / sizeof limits[0])]);
}

/* Keys from a narrow range, so that some come twice. */
static void pick(struct world *w, size_t *picked, size_t n, bool numbers) {
    const size_t range = 1 + any(w, KEYS / 2), from = any(w, KEYS - range);
    for (size_t i = 0; i < n; i++) {
        picked[i] = from + any(w, range);
        if (numbers) picked[i] -= picked[i] % 2;
    }
}

static void add_batch(struct world *w) {
    const size_t n = any_batch(w), form = any(w, 3);
    size_t picked[MOST_BATCH], done;
    calyx_key keys[MOST_BATCH];
    uint64_t words[MOST_BATCH];
    bool fresh[MOST_BATCH];
    pick(w, picked, n, form == 1);
    for (size_t i = 0; i < n; i++) {
        keys[i] = all.key[picked[i]];
        words[i] = form == 1 ? all.number[picked[i]]
                             : calyx_hash(w->f, keys[i].data, keys[i].size);
    }
    const calyx_status status =
        form == 0   ? calyx_add_many(w->f, keys, n, fresh, &done)
        : form == 1 ? calyx_add_many_u64(w->f, words, n, fresh, &done)
                    : calyx_add_hashes(w->f, words, n, fresh, &done);

    assert_true(done <= n);
    for (size_t i = 0; i < done; i++) note_add(w, picked[i], fresh[i]);
    if (done < n)
        note_refusal(w, status, picked[done]);
    else
        assert_ok(status);
}

/* ---- Removing ------------------------------------------------------------ */

/* A key that is not in the set is taken out only if the filter is certain that
 * it is absent, as documented. */
static void remove_one(struct world *w) {
    const size_t i = any(w, KEYS);
    const calyx_key *key = &all.key[i];
    const bool present = w->times[i] > 0;
    if (!present && calyx_has(w->f, key->data, key->size)) return;
    const bool stuck = calyx_count(w->f, key->data, key->size) == 15;
    const bool table = is_table(w->want.kind);
    const uint64_t before = table ? info_of(w->f).items : 0;
    bool found;

    const calyx_status status =
        calyx_remove(w->f, key->data, key->size, &found);

    if (!counts(w)) {
        assert_int_equal(status, CALYX_CANNOT);
        return;
    }
    assert_ok(status);
    assert_int_equal(found, present);
    w->times[i] -= present;
    if (table) /* it is stuck also if few bits are left */
        w->items -= before - info_of(w->f).items;
    else
        w->items -= present && !stuck;
}

static void remove_some(struct world *w) {
    for (size_t n = any(w, 300); n > 0; n--) remove_one(w);
}

/* ---- The whole filter ---------------------------------------------------- */

static void replace(struct world *w, calyx_filter *by) {
    calyx_free(w->f);
    w->f = by;
}

static void copy(struct world *w) {
    calyx_filter *other = NULL;
    assert_ok(calyx_copy(w->f, &other, NULL));
    assert_true(same_bodies(w->f, other));
    replace(w, other);
}

static void clear(struct world *w) {
    assert_ok(calyx_clear(w->f));
    memset(w->times, 0, sizeof w->times);
    w->items = 0;
    w->knows_items = true;
    check(w);
}

/* Another world, that began as this one or empty and went its own way. */
static struct world *another(struct world *w) {
    struct world *other = malloc(sizeof *other);
    assert_non_null(other);
    *other = *w;
    other->random.state = random_word(&w->random);
    assert_ok(calyx_copy(w->f, &other->f, NULL));
    if (any(w, 2)) clear(other);
    for (int i = 0; i < 3; i++) add_batch(other);
    remove_some(other);
    return other;
}

static void end(struct world *w) {
    calyx_free(w->f);
    free(w);
}

static uint32_t sum(uint32_t a, uint32_t b) {
    return a + b;
}

static uint32_t either(uint32_t a, uint32_t b) {
    return a | b;
}

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

typedef calyx_status unite(calyx_filter *, const calyx_filter *, calyx_error *);

/* Filters that grew may refuse, since their parts may differ. A table that is
 * full has some of the other's keys. */
static void with_another(struct world *w, unite *call,
                         uint32_t (*times)(uint32_t, uint32_t)) {
    struct world *other = another(w);
    check(other);

    const calyx_status status = call(w->f, other->f, NULL);

    if (status == CALYX_OK) {
        for (size_t i = 0; i < KEYS; i++)
            w->times[i] = times(w->times[i], other->times[i]);
        w->knows_items = false;
    } else {
        const bool is_full = status == CALYX_FULL && is_table(w->want.kind);
        assert_true(status == CALYX_MISMATCH || status == CALYX_CANNOT ||
                    is_full);
        assert_true(w->want.growth > 0 || is_table(w->want.kind));
        if (is_full) w->knows_items = false;
    }
    check(other); /* is left alone */
    end(other);
}

static void merge(struct world *w) {
    with_another(w, calyx_merge, counts(w) ? sum : either);
}

static void intersect(struct world *w) {
    with_another(w, calyx_intersect, least);
}

/* By the first number that will do. */
static void fold(struct world *w) {
    static const uint64_t factors[] = {2, 3, 5, 7};
    for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++) {
        calyx_filter *folded = NULL;
        if (calyx_fold(w->f, factors[i], &folded, NULL) != CALYX_OK) continue;
        replace(w, folded);
        return;
    }
}

static void freeze(struct world *w) {
    calyx_filter *frozen = NULL;
    const calyx_status status = calyx_freeze(w->f, &frozen, NULL);
    if (!counts(w) || is_table(w->want.kind)) {
        assert_int_equal(status, CALYX_CANNOT);
        return;
    }
    assert_ok(status);
    assert_string_equal(info_of(frozen).kind, "line");
    for (size_t i = 0; i < KEYS; i++) {
        const calyx_key *key = &all.key[i];
        assert_int_equal(calyx_has(frozen, key->data, key->size),
                         calyx_has(w->f, key->data, key->size));
    }
    calyx_free(frozen);
}

/* ---- The game ------------------------------------------------------------ */

/* Adding is most of it; after each step of the list all is checked. */
static void play(const calyx_options *want, uint64_t seed) {
    static void (*const steps[])(struct world *) = {
        copy,  merge,  remove_some, intersect, freeze,
        merge, freeze, remove_some, fold,      clear,
    };
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->want = *want;
    w->f = make_filter(*want);
    w->knows_items = true;
    w->random.state = seed;
    for (int step = 0; step < 20; step++) {
        for (size_t n = any(w, 50); n > 0; n--) add_single(w);
        for (size_t n = any(w, 4); n > 0; n--) add_batch(w);
        steps[any(w, sizeof steps / sizeof steps[0])](w);
        check(w);
    }
    end(w);
}

static void play_all_kinds(calyx_options want) {
    enum { GAMES = SANITIZED ? 1 : 5 };
    EACH_KIND(kind) {
        want.kind = *kind;
        if (want.concurrent && !kind_named(*kind)->atomic_kernels) continue;
        for (uint64_t seed = 1; seed <= GAMES; seed++) play(&want, seed);
    }
}

static void a_fixed_filter_forgets_nothing(void **state) {
    (void)state;
    play_all_kinds((calyx_options){.capacity = 4000});
    play_all_kinds((calyx_options){.capacity = 300, .fpr = 0.001});
}

static void a_growing_filter_forgets_nothing(void **state) {
    (void)state;
    play_all_kinds((calyx_options){.capacity = 100, .growth = 2});
    play_all_kinds((calyx_options){.capacity = 7, .growth = 1.25, .fpr = 0.1});
}

static void a_strict_filter_forgets_nothing(void **state) {
    (void)state;
    play_all_kinds((calyx_options){.capacity = 700, .strict = true});
    play_all_kinds((calyx_options){.capacity = 1, .strict = true});
}

static void a_concurrent_filter_forgets_nothing(void **state) {
    (void)state;
    play_all_kinds((calyx_options){.capacity = 3000, .concurrent = true});
    play_all_kinds(
        (calyx_options){.capacity = 100, .growth = 2, .concurrent = true});
}

static void any_hash_forgets_nothing(void **state) {
    (void)state;
    static const uint8_t key[16] = "0123456789abcde";
    for (const char *const *hash = calyx_hashes(); *hash; hash++)
        play_all_kinds(
            (calyx_options){.capacity = 2000,
                            .hash = *hash,
                            .key = strcmp(*hash, "siphash") == 0 ? key : NULL});
}

/* ---- Strict -------------------------------------------------------------- */

static void a_strict_filter_says_when_it_is_full(void **state) {
    (void)state;
    EACH_KIND(kind) {
        calyx_filter *f = make_filter((calyx_options){
            .kind = *kind, .capacity = 500, .fpr = 1e-6, .strict = true});
        bool fresh[KEYS];
        size_t done;

        const calyx_status status =
            calyx_add_many_u64(f, all.number, KEYS, fresh, &done);

        assert_int_equal(status, CALYX_FULL);
        assert_int_equal(done, 500);
        assert_int_equal(info_of(f).items, 500);
        assert_int_equal(calyx_has_many_u64(f, all.number, done, NULL), done);
        calyx_filter *before = NULL;
        assert_ok(calyx_copy(f, &before, NULL));
        assert_int_equal(calyx_add_u64(f, 1000, NULL), CALYX_FULL);
        assert_true(same_bodies(f, before));
        assert_ok(calyx_add_u64(f, 499, &fresh[0]));
        assert_false(fresh[0]);
        calyx_free(before);
        calyx_free(f);
    }
}

/* ---- Counting ------------------------------------------------------------ */

static bool remove_number(calyx_filter *f, uint64_t number) {
    uint8_t bytes[8];
    bool found;
    store64(bytes, number);
    assert_ok(calyx_remove(f, bytes, sizeof bytes, &found));
    return found;
}

/* In a single line, where every counter is shared by many keys. */
static void a_counter_that_overflowed_takes_no_other_key_along(void **state) {
    (void)state;
    calyx_filter *f = make_filter(
        (calyx_options){.kind = "counting", .bits = 512, .capacity = 60});
    add_numbers(f, 0, 60);
    for (int i = 0; i < 20; i++) add(f, "twenty times");
    assert_int_equal(calyx_count(f, "twenty times", 12), 15);

    for (int i = 0; i < 20; i++) {
        bool found;
        assert_ok(calyx_remove(f, "twenty times", 12, &found));
        assert_true(found);
    }

    assert_has_numbers(f, 0, 60);
    assert_true(has(f, "twenty times")); /* stuck, as promised */
    assert_int_equal(info_of(f).items, 80);

    const calyx_key key = {"twenty times", 12};
    const calyx_key twice[] = {key, key};
    bool found[2];
    size_t removed;
    assert_ok(calyx_remove_many(f, twice, 2, found, &removed));
    assert_true(found[0] && found[1] && removed == 0);
    assert_int_equal(info_of(f).items, 80);
    calyx_free(f);
}

static void a_key_is_counted_up_to_fifteen(void **state) {
    (void)state;
    calyx_filter *f = make_filter((calyx_options){.kind = "counting"});
    for (uint32_t i = 0; i < 20; i++) {
        assert_int_equal(calyx_count(f, "rose", 4), i < 15 ? i : 15);
        add(f, "rose");
    }
    calyx_free(f);
}

static void what_was_added_and_removed_leaves_no_trace(void **state) {
    (void)state;
    calyx_filter *f = make_filter((calyx_options){.kind = "counting"});
    calyx_filter *empty = make_filter((calyx_options){.kind = "counting"});
    for (int times = 0; times < 2; times++)
        for (size_t i = 0; i < 1000; i++)
            assert_ok(calyx_add(f, all.key[i].data, all.key[i].size, NULL));

    for (int times = 0; times < 2; times++)
        for (size_t i = 0; i < 1000; i++)
            assert_ok(calyx_remove(f, all.key[i].data, all.key[i].size, NULL));

    assert_true(same_bodies(f, empty));
    assert_int_equal(info_of(f).items, 0);
    calyx_free(f);
    calyx_free(empty);
}

static void removing_an_absent_key_changes_nothing(void **state) {
    (void)state;
    for (int grows = 0; grows < 2; grows++) {
        calyx_filter *f = make_filter((calyx_options){
            .kind = "counting", .capacity = 500, .growth = grows ? 2 : 0});
        add_numbers(f, 0, 2000);
        calyx_filter *before = NULL;
        assert_ok(calyx_copy(f, &before, NULL));

        size_t absent = 0;
        for (uint64_t i = 2000; i < 12000; i++) {
            if (calyx_has_u64(f, i)) continue;
            assert_false(remove_number(f, i));
            absent++;
        }

        assert_true(absent > 1000);
        assert_true(same_bodies(f, before));
        assert_int_equal(info_of(f).items, 2000);
        calyx_free(before);
        calyx_free(f);
    }
}

/* ---- Filters that grew --------------------------------------------------- */

enum { GROWN = 20000 }; /* numbers, from a capacity of 1000 */

static calyx_filter *make_growing(const char *kind, uint64_t capacity) {
    return make_filter(
        (calyx_options){.kind = kind, .capacity = capacity, .growth = 2});
}

static void add_every_second(calyx_filter *f, uint64_t first) {
    for (uint64_t i = first; i < GROWN; i += 2)
        assert_ok(calyx_add_u64(f, i, NULL));
}

static void take_out_the_even_and_ask_for_the_odd(calyx_filter *f) {
    for (uint64_t i = 0; i < GROWN; i += 2) assert_true(remove_number(f, i));
    for (uint64_t i = 1; i < GROWN; i += 2) assert_true(calyx_has_u64(f, i));
}

/* A merge or fold of filters that grew may refuse. If it does not, remove must
 * still find the part that a key was added to; now that the parts are fuller,
 * the key may seem to be in an older one as well. */
static void removing_after_a_merge_takes_no_other_key(void **state) {
    (void)state;
    calyx_filter *evens = make_growing("counting", 1000);
    calyx_filter *odds = make_growing("counting", 1000);
    add_every_second(evens, 0);
    add_every_second(odds, 1);

    const calyx_status status = calyx_merge(evens, odds, NULL);

    if (status == CALYX_OK)
        take_out_the_even_and_ask_for_the_odd(evens);
    else
        assert_int_equal(status, CALYX_CANNOT);
    calyx_free(evens);
    calyx_free(odds);
}

/* Among these capacities there are some whose parts one number divides. */
static void removing_after_a_fold_takes_no_other_key(void **state) {
    (void)state;
    for (uint64_t capacity = 1000; capacity < 1050; capacity += 5) {
        calyx_filter *f = make_growing("counting", capacity), *folded = NULL;
        add_numbers(f, 0, GROWN);
        for (uint64_t factor = 2; factor < 6 && !folded; factor++)
            if (calyx_fold(f, factor, &folded, NULL) == CALYX_OK)
                take_out_the_even_and_ask_for_the_odd(folded);
        calyx_free(folded);
        calyx_free(f);
    }
}

/* The same key may stand in an old part here and in a new one there. */
static void a_merge_adds_the_counts_of_grown_filters(void **state) {
    (void)state;
    calyx_filter *early = make_growing("counting", 100);
    calyx_filter *late = make_growing("counting", 100);
    add(early, "rose");
    for (uint64_t i = 0; i < 300; i++) {
        assert_ok(calyx_add_u64(early, i, NULL));
        assert_ok(calyx_add_u64(late, i, NULL));
    }
    add(late, "rose");

    const calyx_status status = calyx_merge(early, late, NULL);

    if (status == CALYX_OK)
        assert_true(calyx_count(early, "rose", 4) >= 2);
    else
        assert_int_equal(status, CALYX_CANNOT);
    calyx_free(early);
    calyx_free(late);
}

/* The same numbers in another order stand in other parts. */
static void an_intersection_of_grown_filters_keeps_what_both_have(
    void **state) {
    (void)state;
    EACH_KIND(kind) {
        calyx_filter *rising = make_growing(*kind, 100);
        calyx_filter *falling = make_growing(*kind, 100);
        for (uint64_t i = 0; i < 2000; i++) {
            assert_ok(calyx_add_u64(rising, i, NULL));
            assert_ok(calyx_add_u64(falling, 1999 - i, NULL));
        }

        const calyx_status status = calyx_intersect(rising, falling, NULL);

        if (status != CALYX_OK) assert_int_equal(status, CALYX_CANNOT);
        assert_int_equal(calyx_has_many_u64(rising, all.number, 2000, NULL),
                         2000);
        calyx_free(rising);
        calyx_free(falling);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fixed_filter_forgets_nothing),
        cmocka_unit_test(a_growing_filter_forgets_nothing),
        cmocka_unit_test(a_strict_filter_forgets_nothing),
        cmocka_unit_test(a_concurrent_filter_forgets_nothing),
        cmocka_unit_test(any_hash_forgets_nothing),
        cmocka_unit_test(a_strict_filter_says_when_it_is_full),
        cmocka_unit_test(a_counter_that_overflowed_takes_no_other_key_along),
        cmocka_unit_test(a_key_is_counted_up_to_fifteen),
        cmocka_unit_test(what_was_added_and_removed_leaves_no_trace),
        cmocka_unit_test(removing_an_absent_key_changes_nothing),
        cmocka_unit_test(removing_after_a_merge_takes_no_other_key),
        cmocka_unit_test(a_merge_adds_the_counts_of_grown_filters),
        cmocka_unit_test(removing_after_a_fold_takes_no_other_key),
        cmocka_unit_test(an_intersection_of_grown_filters_keeps_what_both_have),
    };
    make_keys();
    return RUN_TESTS(tests);
}
