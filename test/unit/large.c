/*
 * Bodies of more than 2^33 bits, where a position no longer fits in 32 bits and
 * a byte offset no longer in 31. The memory is mapped plainly, so that only the
 * pages that keys fall on are paid for.
 */
#if defined(__linux__)
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE, mincore */
#endif
#include "filter/filter.h"

#include <string.h>
#include <sys/mman.h>

#include "support.h"

static const uint64_t BITS = (UINT64_C(1) << 33) + (UINT64_C(1) << 30);
enum { KEYS = 5000, PAGE = 4096 };

/* A filter of that number of bits, or NULL and a word why there is none. */
static calyx_filter *make_large(const char *kind, uint64_t bits,
                                const calyx_memory *memory) {
    const calyx_options want = {
        .kind = kind, .bits = bits, .fpr = 0.001, .memory = memory};
    calyx_filter *f = NULL;
    const calyx_status status = calyx_new(&want, &f, NULL);
    if (status == CALYX_NO_MEMORY) {
        print_message("not run: %s, no memory for %llu bits\n", kind,
                      (unsigned long long)bits);
        return NULL;
    }
    assert_ok(status);
    return f;
}

/* Numbers that differ in all their bits, singly and in batches. */
static uint64_t number(uint64_t i) {
    struct generator g = {i};
    return random_word(&g);
}

static void add_keys(calyx_filter *f) {
    static uint64_t numbers[KEYS / 2];
    for (uint64_t i = 0; i < KEYS / 2; i++) {
        assert_ok(calyx_add_u64(f, number(i), NULL));
        numbers[i] = number(KEYS / 2 + i);
    }
    assert_ok(calyx_add_many_u64(f, numbers, KEYS / 2, NULL, NULL));
}

static uint64_t count_random_found(const calyx_filter *f, uint64_t from,
                                   uint64_t to) {
    uint64_t found = 0;
    for (uint64_t i = from; i < to; i++) found += calyx_has_u64(f, number(i));
    return found;
}

/* Bits that are set between two bits of the body, on pages that are there: the
 * others would come as zeros, one by one. */
static uint64_t bits_between(const calyx_filter *f, uint64_t from,
                             uint64_t to) {
    static unsigned char is_there[1 << 16];
    uint8_t *const start = f->newest->body + from / 8;
    const size_t bytes = (size_t)(to - from) / 8, count = bytes / PAGE;
    assert_true(count <= sizeof is_there);
    assert_int_equal(mincore(start, bytes, is_there), 0);
    uint64_t set = 0;
    for (size_t page = 0; page < count; page++)
        for (size_t at = 0; at < PAGE && (is_there[page] & 1); at += 8) {
            uint64_t word;
            memcpy(&word, start + page * PAGE + at, sizeof word);
            set += (uint64_t)__builtin_popcountll(word);
        }
    return set;
}

/* Each of 36 pieces of 2^28 bits has its share of the bits that are set, no
 * more and no less than chance would give it 999,999,999 times of 10^9. A block
 * holds some bits of one key, so it is keys that are drawn; they have no more
 * luck than the bits would have alone. Not for tables: how many bits a key sets
 * there depends on its code. */
static void assert_is_spread_evenly(const calyx_filter *f) {
    const uint64_t piece = UINT64_C(1) << 28, count = BITS / piece;
    const double share = 1 / (double)count;
    const uint32_t probes = f->newest->shape.probes;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t set = bits_between(f, i * piece, (i + 1) * piece);
        const uint64_t keys = set / probes;
        assert_true(odds_at_least(keys, KEYS, share) > UNLIKELY);
        assert_true(odds_at_most(keys + 1, KEYS, share) > UNLIKELY);
    }
}

static void a_body_past_2_to_the_33_bits_is_used_to_its_end(void **state) {
    (void)state;
    EACH_KIND(kind) {
        calyx_filter *f = make_large(*kind, BITS, &sparse_memory);
        if (!f) continue;
        assert_true(f->newest->shape.blocks * f->kind->block_bits == BITS);

        add_keys(f);

        assert_int_equal(count_random_found(f, 0, KEYS), KEYS);
        if (!is_table(*kind)) assert_is_spread_evenly(f);
        assert_true(bits_between(f, UINT64_C(1) << 33, BITS) > 0);
        /* So empty a filter knows every absent key; a body of 2^32 bits that
         * took all these keys would not be much fuller, but see above. */
        assert_true(count_random_found(f, KEYS, 11 * KEYS) < 3);
        calyx_free(f);
    }
}

/* 8 GiB, mapped and hardly touched: positions past 2^36. */
static void a_flat_body_past_2_to_the_36_bits_is_used_to_its_end(void **state) {
    (void)state;
    const uint64_t bits = (UINT64_C(1) << 36) + 12345;
    calyx_filter *f = make_large("flat", bits, &sparse_memory);
    if (!f) return;

    add_keys(f);

    assert_int_equal(count_random_found(f, 0, KEYS), KEYS);
    const uint64_t piece = UINT64_C(1) << 30, last = bits / piece * piece;
    assert_true(bits_between(f, last - piece, last) > 0);
    calyx_free(f);
}

/* 256 GiB and more, of which a page a key is touched. Vector kernels work out
 * the lines of a run by 32-bit products, and here must not. */
static void more_than_2_to_the_32_lines_are_found_in_runs(void **state) {
    (void)state;
    const uint64_t lines = (UINT64_C(1) << 32) + (UINT64_C(1) << 20);
    static uint64_t numbers[KEYS];
    static bool found[KEYS];
    for (uint64_t i = 0; i < KEYS; i++) numbers[i] = number(i);
    const char *const of_lines[] = {"line", "line2", "counting", NULL};
    for (const char *const *kind = of_lines; *kind; kind++) {
        calyx_filter *f = make_large(*kind, 512 * lines, &sparse_memory);
        if (!f) continue;
        assert_true(f->newest->shape.blocks == lines);

        add_keys(f); /* half of them singly, half in runs */

        assert_int_equal(count_random_found(f, 0, KEYS), KEYS);
        assert_int_equal(calyx_has_many_u64(f, numbers, KEYS, found), KEYS);
        assert_true(count_random_found(f, KEYS, 11 * KEYS) < 3);
        size_t removed;
        if (strcmp(*kind, "counting") == 0) {
            assert_ok(
                calyx_remove_many_u64(f, numbers, KEYS / 2, found, &removed));
            assert_int_equal(removed, KEYS / 2);
            assert_true(count_random_found(f, 0, KEYS / 2) < 3);
            assert_int_equal(count_random_found(f, KEYS / 2, KEYS), KEYS / 2);
        }
        calyx_free(f);
    }
}

/* Each key comes off the counters that it went to: none is shared by all that
 * are a multiple of 2^32 apart. */
static void counters_past_2_to_the_33_are_distinct(void **state) {
    (void)state;
    calyx_filter *f = make_large("counting", BITS, &sparse_memory);
    if (!f) return;
    add_keys(f);

    for (uint64_t i = 0; i < KEYS; i++) {
        const uint64_t key = number(i);
        uint8_t bytes[8];
        for (int j = 0; j < 8; j++) bytes[j] = (uint8_t)(key >> 8 * j);
        assert_int_equal(calyx_count(f, bytes, sizeof bytes), 1);
        if (i % 2) assert_ok(calyx_remove(f, bytes, sizeof bytes, NULL));
    }

    uint64_t left = 0;
    for (uint64_t i = 0; i < KEYS; i += 2) left += calyx_has_u64(f, number(i));
    assert_int_equal(left, KEYS / 2);
    assert_true(count_random_found(f, 0, KEYS) < KEYS / 2 + 3);
    calyx_free(f);
}

/* The memory that people get asks for huge pages; few keys pay for few. */
static void the_memory_by_default_holds_a_large_body_that_folds(void **state) {
    (void)state;
    enum { FEW = 50 };
    calyx_filter *f = make_large("line", BITS, NULL), *folded = NULL;
    if (!f) return;
    for (uint64_t i = 0; i < FEW; i++)
        assert_ok(calyx_add_u64(f, number(i), NULL));

    assert_ok(calyx_fold(f, 1024, &folded, NULL));

    assert_int_equal(count_random_found(f, 0, FEW), FEW);
    assert_int_equal(count_random_found(folded, 0, FEW), FEW);
    const calyx_info large = info_of(f), small = info_of(folded);
    assert_int_equal(large.bits, BITS);
    assert_int_equal(large.bytes, BITS / 8);
    assert_int_equal(small.bits, BITS / 1024);
    assert_true(large.distinct > FEW - 1 && large.distinct < FEW + 1);
    assert_true(small.distinct > FEW - 1 && small.distinct < FEW + 1);
    calyx_free(f);
    calyx_free(folded);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_body_past_2_to_the_33_bits_is_used_to_its_end),
        cmocka_unit_test(a_flat_body_past_2_to_the_36_bits_is_used_to_its_end),
        cmocka_unit_test(more_than_2_to_the_32_lines_are_found_in_runs),
        cmocka_unit_test(counters_past_2_to_the_33_are_distinct),
        cmocka_unit_test(the_memory_by_default_holds_a_large_body_that_folds),
    };
    return RUN_TESTS(tests);
}
