/* Raw bits: out of a filter, and into another. */
#include <string.h>

#include "support.h"

enum { KEYS = 3000 };

static calyx_filter *filled(calyx_options want) {
    calyx_filter *f = make_filter(want);
    add_numbers(f, 0, KEYS);
    return f;
}

/* The options that go with the bits of this filter. */
static calyx_options options_of(const calyx_filter *f) {
    const calyx_info info = info_of(f);
    return (calyx_options){.kind = info.kind,
                           .hash = info.hash,
                           .seed = info.seed,
                           .probes = info.probes,
                           .bits = info.bits,
                           .capacity = info.capacity};
}

static void a_filter_of_the_bits_answers_alike(void **state) {
    (void)state;
    EACH_KIND(kind) {
        if (!is_bits_alone(*kind)) continue;
        calyx_filter *f = filled((calyx_options){
            .kind = *kind, .capacity = KEYS, .fpr = 0.01, .seed = 5});
        uint64_t size;
        const void *bits = calyx_bits(f, &size);
        assert_int_equal(size, (info_of(f).bits + 7) / 8);
        const calyx_options want = options_of(f);

        calyx_filter *twin;
        assert_ok(calyx_from_bits(&want, bits, size, &twin, NULL));

        assert_true(same_bodies(f, twin));
        for (uint64_t i = 0; i < KEYS; i++) assert_true(calyx_has_u64(twin, i));
        const double items = (double)info_of(twin).items;
        assert_true(items > 0.9 * (double)KEYS && items < 1.1 * (double)KEYS);
        calyx_free(f);
        calyx_free(twin);
    }
}

static void the_bits_are_copied(void **state) {
    (void)state;
    uint8_t bits[32] = {1};
    const calyx_options want = {.kind = "split"};
    calyx_filter *f;
    assert_ok(calyx_from_bits(&want, bits, sizeof bits, &f, NULL));
    bits[0] = 2;
    uint64_t size;
    assert_int_equal(*(const uint8_t *)calyx_bits(f, &size), 1);
    assert_int_equal(size, 32);
    calyx_free(f);
}

static void grown_filters_have_no_one_row_of_bits(void **state) {
    (void)state;
    calyx_filter *f = filled((calyx_options){.capacity = 10, .growth = 2});
    uint64_t size;
    assert_null(calyx_bits(f, &size));
    calyx_free(f);
}

static void assert_refused(calyx_options want, size_t size, calyx_status status,
                           const char *text) {
    static const uint8_t ones[128] = {[0] = 1, [12] = 0x10};
    calyx_filter *f = NULL;
    calyx_error why;
    assert_int_equal(calyx_from_bits(&want, ones, size, &f, &why), status);
    assert_null(f);
    assert_non_null(strstr(why.text, text));
    assert_int_equal(calyx_from_bits(&want, ones, size, &f, NULL), status);
}

static void bits_that_do_not_fit_their_options_are_refused(void **state) {
    (void)state;
    const calyx_status bad = CALYX_BAD_ARGUMENT;
    assert_refused((calyx_options){.kind = "split", .bits = 512}, 32, bad,
                   "512 bits take 64 bytes, but 32 are given");
    assert_refused((calyx_options){.kind = "split"}, 40, bad,
                   "a multiple of 256 bits, not 320");
    assert_refused((calyx_options){.kind = "split"}, 0, bad, "no bits");
    assert_refused((calyx_options){.kind = "line"}, 64, bad, "the probes");
    assert_refused((calyx_options){.kind = "split", .growth = 2}, 32, bad,
                   "growing");
    assert_refused((calyx_options){.kind = "counting", .probes = 6}, 64,
                   CALYX_CANNOT, "counters");
    assert_refused((calyx_options){.kind = "none"}, 64, bad, "none");
    /* bit 100 is set, in byte 12 */
    assert_refused((calyx_options){.kind = "flat", .bits = 100, .probes = 3},
                   13, CALYX_DAMAGED, "after the last of the 100 bits");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_filter_of_the_bits_answers_alike),
        cmocka_unit_test(the_bits_are_copied),
        cmocka_unit_test(grown_filters_have_no_one_row_of_bits),
        cmocka_unit_test(bits_that_do_not_fit_their_options_are_refused),
    };
    return RUN_TESTS(tests);
}
