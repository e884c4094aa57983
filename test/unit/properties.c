/* Properties: small texts that travel with a filter. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "store/ranges.h"
#include "support.h"

static void set(calyx_filter *f, const char *name, const char *value) {
    calyx_error why;
    if (calyx_set_property(f, name, value, &why) != CALYX_OK)
        fail_msg("%s", why.text);
}

static void assert_property(const calyx_filter *f, const char *name,
                            const char *value) {
    if (value)
        assert_string_equal(calyx_property(f, name), value);
    else
        assert_null(calyx_property(f, name));
}

static void a_property_is_set_replaced_and_removed(void **state) {
    (void)state;
    calyx_filter *f = make_filter((calyx_options){0});
    assert_property(f, "a", NULL);
    set(f, "a", NULL); /* what is not there is not an error */
    set(f, "a", "1");
    set(f, "b", "");
    set(f, "c", "a longer text\nof two lines");
    assert_property(f, "a", "1");
    assert_property(f, "b", "");
    set(f, "a", "another");
    assert_property(f, "a", "another");
    assert_property(f, "c", "a longer text\nof two lines");
    set(f, "b", NULL);
    assert_property(f, "b", NULL);
    assert_property(f, "a", "another");
    assert_property(f, "aa", NULL);
    set(f, "a", NULL);
    set(f, "c", NULL);
    assert_null(f->properties);
    calyx_free(f);
}

static void names_and_sizes_are_bounded(void **state) {
    (void)state;
    calyx_filter *f = make_filter((calyx_options){0});
    char name[66] = "", text[4097] = "";
    calyx_error why = {0};
    memset(name, 'n', 65);
    assert_int_equal(calyx_set_property(f, name, "x", &why),
                     CALYX_BAD_ARGUMENT);
    assert_int_equal(calyx_set_property(f, "", "x", &why), CALYX_BAD_ARGUMENT);
    name[64] = 0;
    set(f, name, "x");
    set(f, name, NULL);
    memset(text, 't', sizeof text - 1);
    assert_int_equal(calyx_set_property(f, "n", text, &why),
                     CALYX_BAD_ARGUMENT);
    text[4096 - 4 - 3] = 0; /* one record, and the two texts' ends */
    set(f, "n", text);
    assert_int_equal(calyx_set_property(f, "m", "", &why), CALYX_BAD_ARGUMENT);
    assert_property(f, "n", text);
    text[9] = 0;
    set(f, "n", text);
    set(f, "m", "");
    calyx_free(f);
}

static void put(struct calyx_filter *f) {
    assert_ok(calyx_set_comment(f, "with properties"));
    set(f, "key-options", "-i -k 2");
    set(f, "empty", "");
}

static void assert_put(calyx_filter *f) {
    assert_string_equal(calyx_comment(f), "with properties");
    assert_property(f, "key-options", "-i -k 2");
    assert_property(f, "empty", "");
    assert_property(f, "other", NULL);
    calyx_free(f);
}

static void properties_survive_bytes_and_heads(void **state) {
    (void)state;
    EACH_KIND(kind) {
        calyx_filter *f = make_filter((calyx_options){.kind = *kind}), *g;
        put(f);
        const size_t size = (size_t)calyx_encoded_size(f);
        void *bytes = aligned_alloc(64, size);
        assert_ok(calyx_encode(f, bytes, size, NULL));
        assert_ok(calyx_decode(bytes, size, NULL, &g, NULL));
        assert_put(g);
        assert_ok(calyx_view(bytes, size, NULL, &g, NULL));
        assert_int_equal(calyx_set_property(g, "a", "b", NULL),
                         CALYX_READ_ONLY);
        assert_put(g);
        const size_t head = calyx_head_size(f);
        assert_ok(calyx_encode_head(f, bytes, head, NULL));
        assert_ok(calyx_decode_head(bytes, head, NULL, &g, NULL));
        assert_put(g);
        free(bytes);
        assert_put(f);
    }
}

static void properties_survive_files(void **state) {
    (void)state;
    char path[FOLDER_BYTES + 30];
    snprintf(path, sizeof path, "%s/calyx_properties_%ld", temporary_or("/tmp"),
             (long)getpid());
    calyx_filter *f = make_filter((calyx_options){0}), *g;
    put(f);
    assert_ok(calyx_save(f, path, NULL));
    assert_ok(calyx_load(path, NULL, &g, NULL));
    assert_put(g);
    for (int writes = 0; writes < 2; writes++) {
        const calyx_access access = writes ? CALYX_WRITE : CALYX_READ;
        assert_ok(calyx_map(path, access, NULL, &g, NULL));
        assert_put(g);
    }
    unlink(path);
    assert_put(f);
}

static void properties_are_copied_with_the_filter(void **state) {
    (void)state;
    calyx_filter *f = make_filter((calyx_options){.kind = "counting"}), *g;
    put(f);
    assert_ok(calyx_copy(f, &g, NULL));
    assert_put(g);
    assert_ok(calyx_new_like(f, &g, NULL));
    assert_put(g);
    assert_ok(calyx_freeze(f, &g, NULL));
    assert_put(g);
    assert_ok(calyx_fold(f, 1, &g, NULL));
    assert_put(g);
    assert_put(f);
}

/* A header with these records in it, signed; what does the gate say? */
static calyx_status status_of(const void *records, uint32_t size,
                              calyx_filter **out) {
    calyx_filter *f = make_filter((calyx_options){0});
    assert_ok(set_records(f, records, size));
    uint8_t head[MOST_HEADER];
    const size_t bytes = calyx_head_size(f);
    assert_ok(calyx_encode_head(f, head, bytes, NULL));
    calyx_free(f);
    return calyx_decode_head(head, bytes, NULL, out, NULL);
}

#define STATUS_OF(text) status_of(text, sizeof text - 1, &f)

static void records_that_make_no_sense_are_refused(void **state) {
    (void)state;
    calyx_filter *f = NULL;
    assert_ok(STATUS_OF("\1\0\4\0a\0b\0"));
    calyx_free(f);
    f = NULL;
    assert_int_equal(STATUS_OF("\1"), CALYX_DAMAGED);
    assert_int_equal(STATUS_OF("\1\0\4"), CALYX_DAMAGED);
    assert_int_equal(STATUS_OF("\1\0\5\0a\0b\0"), CALYX_DAMAGED); /* too long */
    assert_int_equal(STATUS_OF("\1\0\xFF\xFF"
                               "a\0b\0"),
                     CALYX_DAMAGED);
    assert_int_equal(STATUS_OF("\1\0\3\0a\0b"), CALYX_DAMAGED); /* no end */
    assert_int_equal(STATUS_OF("\1\0\2\0a\0"), CALYX_DAMAGED);  /* no value */
    assert_int_equal(STATUS_OF("\1\0\1\0a"), CALYX_DAMAGED);
    assert_int_equal(STATUS_OF("\1\0\0\0"), CALYX_DAMAGED);
    assert_int_equal(STATUS_OF("\1\0\3\0\0b\0"), CALYX_DAMAGED); /* no name */
    assert_int_equal(STATUS_OF("\1\0\5\0a\0b\0\0"), CALYX_DAMAGED);
    assert_int_equal(STATUS_OF("\0\0\4\0a\0b\0"), CALYX_DAMAGED); /* type 0 */
    assert_int_equal(STATUS_OF("\1\0\4\0a\0b\0\1\0\4\0a\0c\0"),
                     CALYX_DAMAGED); /* twice */
    assert_null(f);
}

/* As a later version may write them. */
static void records_of_an_unknown_type_are_stored_and_skipped(void **state) {
    (void)state;
    static const char records[] =
        "\2\0\5\0\0\0\0\0\xFF\1\0\4\0a\0b\0\xFF\xFF\0\0";
    calyx_filter *f = NULL;
    assert_ok(status_of(records, sizeof records - 1, &f));
    assert_property(f, "a", "b");
    set(f, "a", NULL);
    set(f, "c", "d");
    assert_property(f, "c", "d");
    assert_int_equal(f->properties->bytes, sizeof records - 1);
    assert_memory_equal(f->properties->records, records, 9);
    calyx_free(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_property_is_set_replaced_and_removed),
        cmocka_unit_test(names_and_sizes_are_bounded),
        cmocka_unit_test(properties_survive_bytes_and_heads),
        cmocka_unit_test(properties_survive_files),
        cmocka_unit_test(properties_are_copied_with_the_filter),
        cmocka_unit_test(records_that_make_no_sense_are_refused),
        cmocka_unit_test(records_of_an_unknown_type_are_stored_and_skipped),
    };
    return RUN_TESTS(tests);
}
