/* The dump format that the command and the server module share: wire/dump.h. */
#include "wire/dump.h"

#include <string.h>

#include "support.h"

static void a_prefix_has_the_documented_bytes(void **unused) {
    (void)unused;
    uint8_t head[DUMP_PREFIX_BYTES];
    static const uint8_t wanted[DUMP_PREFIX_BYTES] = {
        'C', 'A', 'L', 'Y', 'X', 'B', 'F', 2, 4, 0, 0, 0, 0, 0, 0, 0,
        5,   1,   0,   0,   0,   0,   0,   0, 6, 0, 0, 0, 0, 0, 0, 7};
    dump_put_prefix(head, &(struct dump_prefix){
                              .expansion = 4,
                              .generation = 0x105,
                              .rewrites = UINT64_C(7) << 56 | 6,
                          });
    assert_memory_equal(head, wanted, sizeof wanted);
}

static void a_prefix_is_read_as_it_was_written(void **unused) {
    (void)unused;
    uint8_t head[DUMP_PREFIX_BYTES];
    const struct dump_prefix prefix = {2, UINT64_MAX, UINT64_C(1) << 40};
    struct dump_prefix read = {0};
    dump_put_prefix(head, &prefix);
    assert_true(dump_get_prefix(head, sizeof head, &read));
    assert_int_equal(read.expansion, prefix.expansion);
    assert_int_equal(read.generation, prefix.generation);
    assert_int_equal(read.rewrites, prefix.rewrites);
}

static void short_bytes_and_other_versions_are_no_prefix(void **unused) {
    (void)unused;
    uint8_t head[DUMP_PREFIX_BYTES];
    struct dump_prefix read;
    dump_put_prefix(head, &(struct dump_prefix){0});
    for (size_t cut = 0; cut < sizeof head; cut++)
        assert_false(dump_get_prefix(head, cut, &read));
    for (size_t i = 0; i < 8; i++) {
        head[i] ^= 1;
        assert_false(dump_get_prefix(head, sizeof head, &read));
        head[i] ^= 1;
    }
    assert_true(dump_get_prefix(head, sizeof head, &read));
}

static void growth_comes_back_to_the_expansion_it_was_made_from(void **unused) {
    (void)unused;
    assert_true(dump_growth(0) == 0);
    assert_true(dump_growth(1) == 1.25);
    assert_true(dump_growth(1000) == 16);
    assert_int_equal(dump_expansion(0), 0);
    assert_int_equal(dump_expansion(0.1), 1);
    for (uint32_t expansion = 2; expansion <= 20; expansion++)
        assert_int_equal(dump_expansion(dump_growth(expansion)), expansion);
}

static void chunks_cover_all_bytes(void **unused) {
    (void)unused;
    static const uint64_t sizes[] = {0,
                                     1,
                                     64,
                                     DUMP_CHUNK_BYTES - 1,
                                     DUMP_CHUNK_BYTES,
                                     DUMP_CHUNK_BYTES + 1,
                                     UINT64_C(5) << 40};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const uint64_t n = dump_chunks(sizes[i]);
        if (n == 0) {
            assert_int_equal(sizes[i], 0);
            continue;
        }
        const size_t last = dump_chunk_size(sizes[i], n - 1);
        assert_in_range(last, 1, DUMP_CHUNK_BYTES);
        assert_int_equal((n - 1) * DUMP_CHUNK_BYTES + last, sizes[i]);
    }
}

static void checksums_are_xxh64_and_depend_on_the_order(void **unused) {
    (void)unused;
    assert_int_equal(dump_sum("", 0), UINT64_C(0xEF46DB3751D8E999));
    assert_int_not_equal(dump_sum_with(1, 2), dump_sum_with(2, 1));
}

static void checksums_are_read_as_they_are_written(void **unused) {
    (void)unused;
    uint64_t read = 0;
    const struct dump_text text = dump_sum_text(UINT64_C(0x0123456789ABCDEF));
    assert_string_equal(text.text, "0123456789abcdef");
    assert_true(dump_read_sum(text.text, DUMP_DIGITS, &read));
    assert_int_equal(read, UINT64_C(0x0123456789ABCDEF));
    assert_true(dump_read_sum("FEDCBA9876543210", 16, &read));
    assert_int_equal(read, UINT64_C(0xFEDCBA9876543210));
    assert_false(dump_read_sum("fedcba987654321", 15, &read));
    assert_false(dump_read_sum("fedcba98765432100", 17, &read));
    assert_false(dump_read_sum("0xdcba9876543210", 16, &read));
    assert_false(dump_read_sum("\0edcba9876543210", 16, &read));
    assert_int_equal(read, UINT64_C(0xFEDCBA9876543210));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prefix_has_the_documented_bytes),
        cmocka_unit_test(a_prefix_is_read_as_it_was_written),
        cmocka_unit_test(short_bytes_and_other_versions_are_no_prefix),
        cmocka_unit_test(growth_comes_back_to_the_expansion_it_was_made_from),
        cmocka_unit_test(chunks_cover_all_bytes),
        cmocka_unit_test(checksums_are_xxh64_and_depend_on_the_order),
        cmocka_unit_test(checksums_are_read_as_they_are_written),
    };
    return RUN_TESTS(tests);
}
