/* Bits where they lie: at any address they have the answers of a filter, and
 * building them leaves the bits of one. */
#include <stdlib.h>
#include <string.h>

#include "support.h"

enum { KEYS = 1000, QUERIES = 5000 };

static bool has_shape(const char *kind) {
    calyx_shape shape;
    return calyx_shape_plan(&(calyx_options){.kind = kind, .capacity = 9},
                            &shape, NULL) == CALYX_OK;
}

#define EACH_SHAPED_KIND(kind) EACH_KIND(kind) if (has_shape(*kind))

/* A filter with n keys, its hashes, and its shape. */
static calyx_filter *make_like(calyx_options want, uint64_t *hashes, size_t n,
                               calyx_shape *shape) {
    calyx_filter *f = make_filter(want);
    struct generator from = {n};
    for (size_t i = 0; i < n; i++) hashes[i] = random_word(&from);
    assert_ok(calyx_add_hashes(f, hashes, n, NULL, NULL));
    calyx_error why = {0};
    if (calyx_shape_plan(&want, shape, &why) != CALYX_OK)
        fail_msg("%s", why.text);
    return f;
}

/* Exactly as many bytes as there must be, so that a sanitizer sees one more. */
static void assert_alike(calyx_options want, size_t n, size_t unaligned) {
    uint64_t hashes[KEYS], queries[QUERIES], size;
    calyx_shape shape;
    calyx_filter *f = make_like(want, hashes, n, &shape);
    const void *const bits = calyx_bits(f, &size);
    assert_int_equal(calyx_shape_bytes(shape), size);

    uint8_t *const memory = aligned_alloc(64, (size_t)(size + 127) / 64 * 64);
    uint8_t *const there = unaligned ? malloc((size_t)size + unaligned) : NULL;
    uint8_t *const at = unaligned ? there + unaligned : memory;
    memset(at, 0, (size_t)size);
    assert_ok(calyx_bits_add(shape, at, hashes, n));
    assert_memory_equal(at, bits, (size_t)size);

    bool wanted[QUERIES];
    struct generator from = {n};
    for (int i = 0; i < QUERIES; i++) queries[i] = random_word(&from);
    calyx_has_hashes(f, queries, QUERIES, wanted);
    for (int i = 0; i < QUERIES; i++)
        assert_int_equal(calyx_bits_has(shape, at, queries[i]), wanted[i]);
    free(memory);
    free(there);
    calyx_free(f);
}

static void bits_at_any_address_are_as_in_a_filter(void **state) {
    (void)state;
    const double rates[] = {0.3, 0.01, 1e-5};
    EACH_SHAPED_KIND(kind)
    for (size_t i = 0; i < 3; i++)
        for (size_t unaligned = 0; unaligned < 9; unaligned += 1 + i) {
            const calyx_options want = {
                .kind = *kind, .capacity = KEYS, .fpr = rates[i]};
            assert_alike(want, KEYS, unaligned);
        }
}

static void a_filter_of_one_key_is_as_small_as_its_kind_allows(void **state) {
    (void)state;
    EACH_SHAPED_KIND(kind)
    for (size_t n = 1; n <= 31; n += 10)
        assert_alike((calyx_options){.kind = *kind, .capacity = n}, n, 3);
    calyx_shape shape;
    assert_ok(calyx_shape_plan(&(calyx_options){.kind = "flat", .capacity = 1},
                               &shape, NULL));
    assert_in_range(calyx_shape_bytes(shape), 1, 2);
}

static void adding_in_portions_is_building_at_once(void **state) {
    (void)state;
    EACH_SHAPED_KIND(kind) {
        uint64_t hashes[KEYS];
        calyx_shape shape;
        calyx_filter *f =
            make_like((calyx_options){.kind = *kind, .capacity = KEYS}, hashes,
                      KEYS, &shape);
        uint64_t size;
        const void *const bits = calyx_bits(f, &size);
        uint8_t *const at = calloc(1, (size_t)size);
        for (size_t i = 0; i < KEYS; i += 100)
            assert_ok(calyx_bits_add(shape, at, hashes + i, 100));
        assert_memory_equal(at, bits, (size_t)size);
        free(at);
        calyx_free(f);
    }
}

static void a_shape_takes_another_number_of_blocks(void **state) {
    (void)state;
    EACH_SHAPED_KIND(kind) {
        calyx_shape few, many;
        const calyx_options want = {
            .kind = *kind, .capacity = KEYS, .probes = 8};
        assert_ok(calyx_shape_plan(&want, &many, NULL));
        assert_ok(calyx_shape_plan(
            &(calyx_options){.kind = *kind, .capacity = 1, .probes = 8}, &few,
            NULL));
        few.blocks = many.blocks;
        assert_memory_equal(&few, &many, sizeof few);
    }
}

static void what_is_no_shape_answers_maybe(void **state) {
    (void)state;
    calyx_shape flat;
    assert_ok(calyx_shape_plan(&(calyx_options){.kind = "flat", .capacity = 9},
                               &flat, NULL));
    calyx_shape line;
    assert_ok(calyx_shape_plan(&(calyx_options){.capacity = 9}, &line, NULL));
    const calyx_shape bad[] = {
        {0},
        {.blocks = 1, .probes = 1, .kind = 999},
        {.blocks = 0, .probes = 1, .kind = flat.kind},
        {.blocks = 9, .probes = 0, .kind = flat.kind},
        {.blocks = 9, .probes = 65, .kind = flat.kind},
        {.blocks = UINT64_MAX, .probes = 1, .kind = flat.kind},
        {.blocks = 0, .probes = 4, .kind = line.kind},
        {.blocks = 1, .probes = 17, .kind = line.kind},
    };
    const uint64_t hash = 1;
    uint8_t bits[64] = {0};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(calyx_shape_bytes(bad[i]), 0);
        assert_true(calyx_bits_has(bad[i], bits, hash));
        assert_int_equal(calyx_bits_add(bad[i], bits, &hash, 1),
                         CALYX_BAD_ARGUMENT);
    }
    for (int i = 0; i < 64; i++) assert_int_equal(bits[i], 0);
}

/* The number of a kind may come from somewhere, too. */
static void a_shape_of_any_kind_has_bytes_or_none(void **state) {
    (void)state;
    for (uint32_t kind = 0; kind < 100; kind++) {
        const uint64_t bytes = calyx_shape_bytes(
            (calyx_shape){.blocks = 2, .probes = 8, .kind = kind});
        assert_true(bytes == 128 || bytes == 64 || bytes == 1 || bytes == 0);
    }
}

static void what_is_more_than_bits_has_no_shape(void **state) {
    (void)state;
    calyx_shape shape = {0};
    calyx_error why = {0};
    const calyx_options grows = {.capacity = 9, .growth = 2};
    assert_int_equal(calyx_shape_plan(&grows, &shape, &why), CALYX_CANNOT);
    assert_non_null(strstr(why.text, "growth is 2"));
    const calyx_options counts = {.kind = "counting", .capacity = 9};
    assert_int_equal(calyx_shape_plan(&counts, &shape, &why), CALYX_CANNOT);
    assert_non_null(strstr(why.text, "counting filter is more than bits"));
    const calyx_options is_static = {.kind = "ribbon", .capacity = 9};
    assert_int_equal(calyx_shape_plan(&is_static, &shape, &why), CALYX_CANNOT);
    assert_non_null(strstr(why.text, "ribbon filter is more than bits"));
    assert_int_equal(calyx_shape_plan(&(calyx_options){0}, &shape, &why),
                     CALYX_BAD_ARGUMENT);
    assert_int_equal(shape.blocks, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_at_any_address_are_as_in_a_filter),
        cmocka_unit_test(a_filter_of_one_key_is_as_small_as_its_kind_allows),
        cmocka_unit_test(adding_in_portions_is_building_at_once),
        cmocka_unit_test(a_shape_takes_another_number_of_blocks),
        cmocka_unit_test(what_is_no_shape_answers_maybe),
        cmocka_unit_test(a_shape_of_any_kind_has_bytes_or_none),
        cmocka_unit_test(what_is_more_than_bits_has_no_shape),
    };
    return RUN_TESTS(tests);
}
