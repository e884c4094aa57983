/* A file that is read in pieces: calyx_layout. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

struct file {
    calyx_filter *filter;
    uint8_t *bytes;
    size_t size;
    calyx_layout *layout;
};

static struct file make_file(calyx_options want, uint64_t keys) {
    struct file file = {.filter = make_filter(want)};
    assert_ok(calyx_set_comment(file.filter, "a note"));
    for (uint64_t i = 0; i < keys; i++)
        assert_ok(calyx_add_u64(file.filter, i, NULL));
    file.size = (size_t)calyx_encoded_size(file.filter);
    file.bytes = malloc(file.size);
    assert_non_null(file.bytes);
    assert_ok(calyx_encode(file.filter, file.bytes, file.size, NULL));
    assert_ok(calyx_layout_new(file.bytes, file.size, &file.layout, NULL));
    return file;
}

static struct file make_grown(const char *kind) {
    return make_file(
        (calyx_options){.kind = kind, .capacity = 100, .growth = 2, .seed = 7},
        40000);
}

static void free_file(struct file *file) {
    calyx_layout_free(file->layout);
    calyx_free(file->filter);
    free(file->bytes);
}

/* Check all sections of a type; the last status that is not CALYX_OK. */
static calyx_status check(struct file *file, calyx_section_type type) {
    calyx_status worst = CALYX_OK;
    calyx_section s;
    for (uint32_t i = 0; calyx_layout_section(file->layout, i, &s); i++)
        for (uint64_t from = 0; s.type == type && from < s.bytes;
             from += s.step) {
            const uint64_t left = s.bytes - from;
            const calyx_status status = calyx_layout_check(
                file->layout, i, from, file->bytes + s.at + from,
                (size_t)(left < s.step ? left : s.step), NULL);
            if (status != CALYX_OK) worst = status;
        }
    return worst;
}

static bool has_in_pieces(const struct file *file, uint64_t number) {
    uint8_t lines[CALYX_LINES_MOST * CALYX_LINE_BYTES];
    uint64_t at[CALYX_LINES_MOST], hash = 0;
    calyx_part part;
    assert_ok(calyx_layout_hash(file->layout, &number, sizeof number, &hash));
    for (uint32_t i = 0; calyx_layout_part(file->layout, i, &part); i++) {
        const size_t n = calyx_layout_lines(file->layout, i, hash, at);
        assert_in_range(n, 1, CALYX_LINES_MOST);
        for (size_t j = 0; j < n; j++)
            memcpy(lines + j * CALYX_LINE_BYTES, file->bytes + at[j],
                   CALYX_LINE_BYTES);
        if (calyx_layout_has(file->layout, i, hash, lines)) return true;
    }
    return false;
}

static void lookups_in_pieces_answer_like_the_filter(void **unused) {
    (void)unused;
    EACH_KIND_OF_BITS(kind) {
        struct file file = make_grown(*kind);
        for (uint64_t i = 0; i < 120000; i++)
            assert_int_equal(has_in_pieces(&file, i),
                             calyx_has_u64(file.filter, i));
        free_file(&file);
    }
}

static void count_bits(const struct file *file, uint64_t *set) {
    calyx_section s;
    calyx_part part;
    for (uint32_t i = 0; calyx_layout_section(file->layout, i, &s); i++) {
        if (s.type != CALYX_SECTION_BODY) continue;
        assert_true(calyx_layout_part(file->layout, s.number, &part));
        set[s.number] = 0;
        for (uint64_t b = 0; b < part.bits; b++)
            set[s.number] += file->bytes[s.at + b / 8] >> b % 8 & 1;
    }
}

static void a_layout_describes_the_filter_as_calyx_describe_does(
    void **unused) {
    (void)unused;
    EACH_KIND(kind) {
        struct file file = make_grown(*kind);
        assert_int_equal(check(&file, CALYX_SECTION_TABLES), CALYX_UNSEALED);
        check(&file, CALYX_SECTION_SLOT);
        const calyx_info wanted = info_of(file.filter);
        uint64_t set[96];
        calyx_info info;
        count_bits(&file, set);
        calyx_layout_describe(file.layout, set, &info);
        assert_string_equal(info.kind, *kind);
        assert_string_equal(info.hash, wanted.hash);
        assert_string_equal(calyx_layout_comment(file.layout), "a note");
        assert_int_equal(info.seed, 7);
        assert_int_equal(info.items, wanted.items);
        assert_int_equal(info.parts, wanted.parts);
        assert_int_equal(info.bytes, wanted.bytes);
        if (is_table(*kind)) { /* what is in its slots, the bits do not say */
            assert_true(info.distinct == (double)info.items);
            assert_true(fabs(info.fill - wanted.fill) < 0.02);
            assert_true(info.fpr_now >= wanted.fpr_now);
        } else {
            assert_true(info.fill == wanted.fill);
            assert_true(info.distinct == wanted.distinct);
            assert_true(info.fpr_now == wanted.fpr_now);
        }
        calyx_layout_describe(file.layout, NULL, &info);
        assert_true(info.fill == 0);
        free_file(&file);
    }
}

static void every_flipped_bit_of_a_body_is_found(void **unused) {
    (void)unused;
    struct file file =
        make_file((calyx_options){.kind = "flat", .bits = 3000}, 100);
    assert_int_equal(check(&file, CALYX_SECTION_BODY), CALYX_UNSEALED);
    check(&file, CALYX_SECTION_SLOT);
    assert_ok(check(&file, CALYX_SECTION_TABLES));
    assert_ok(check(&file, CALYX_SECTION_BODY));
    calyx_section body;
    assert_true(calyx_layout_section(file.layout, 1, &body));
    for (uint64_t bit = 0; bit < 8 * body.bytes; bit++) {
        uint8_t *const byte = file.bytes + body.at + bit / 8;
        *byte ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(check(&file, CALYX_SECTION_BODY), CALYX_DAMAGED);
        *byte ^= (uint8_t)(1 << bit % 8);
    }
    free_file(&file);
}

static void flipped_bits_of_tables_and_slots_are_found(void **unused) {
    (void)unused;
    struct file file = make_file((calyx_options){0}, 100);
    calyx_section tables, slot;
    assert_true(calyx_layout_section(file.layout, 2, &tables));
    assert_true(calyx_layout_section(file.layout, 3, &slot));
    assert_int_equal(tables.type, CALYX_SECTION_TABLES);
    assert_int_equal(slot.type, CALYX_SECTION_SLOT);
    for (uint64_t bit = 0; bit < 8 * slot.bytes; bit++) {
        file.bytes[slot.at + bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(calyx_layout_check(file.layout, 3, 0,
                                            file.bytes + slot.at,
                                            (size_t)slot.bytes, NULL),
                         CALYX_DAMAGED);
        file.bytes[slot.at + bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    check(&file, CALYX_SECTION_SLOT);
    file.bytes[tables.at] ^= 1;
    assert_int_equal(check(&file, CALYX_SECTION_TABLES), CALYX_DAMAGED);
    free_file(&file);
}

static void what_is_no_header_has_no_layout(void **unused) {
    (void)unused;
    struct file file = make_file((calyx_options){0}, 100);
    calyx_section header;
    calyx_layout *none = NULL;
    calyx_error why;
    assert_true(calyx_layout_section(file.layout, 0, &header));
    assert_int_equal(header.type, CALYX_SECTION_HEADER);
    for (size_t cut = 0; cut < header.bytes; cut++)
        assert_int_equal(calyx_layout_new(file.bytes, cut, &none, &why),
                         CALYX_DAMAGED);
    for (uint64_t at = 0; at < header.bytes; at++) {
        file.bytes[at] ^= 4;
        assert_int_not_equal(
            calyx_layout_new(file.bytes, file.size, &none, &why), CALYX_OK);
        file.bytes[at] ^= 4;
    }
    assert_null(none);
    free_file(&file);
}

static void a_layout_of_a_keyed_filter_describes_it_without_its_key(
    void **unused) {
    (void)unused;
    static const uint8_t key[16] = "0123456789abcde";
    struct file file =
        make_file((calyx_options){.hash = "siphash", .key = key}, 100);
    calyx_info info;
    uint64_t hash;
    calyx_layout_describe(file.layout, NULL, &info);
    assert_string_equal(info.hash, "siphash");
    assert_int_equal(calyx_layout_hash(file.layout, "", 0, &hash),
                     CALYX_WRONG_KEY);
    free_file(&file);
}

static void a_layout_with_the_secret_key_answers_and_refuses_another_key(
    void **unused) {
    (void)unused;
    static const uint8_t key[16] = "0123456789abcde";
    static const uint8_t wrong[16] = "0123456789abcdX";
    struct file file =
        make_file((calyx_options){.hash = "siphash", .key = key}, 100);
    calyx_error why;
    uint64_t hash;
    assert_int_equal(calyx_layout_set_key(file.layout, wrong, &why),
                     CALYX_WRONG_KEY);
    assert_non_null(strstr(why.text, "another secret key"));
    assert_int_equal(calyx_layout_hash(file.layout, "", 0, &hash),
                     CALYX_WRONG_KEY);
    assert_ok(calyx_layout_set_key(file.layout, key, &why));
    for (uint64_t i = 0; i < 100; i++) assert_true(has_in_pieces(&file, i));
    /* one that is refused later does not change the hash */
    assert_int_equal(calyx_layout_set_key(file.layout, wrong, &why),
                     CALYX_WRONG_KEY);
    for (uint64_t i = 0; i < 100; i++) assert_true(has_in_pieces(&file, i));
    free_file(&file);
}

static void a_layout_has_the_properties_of_the_file(void **unused) {
    (void)unused;
    calyx_filter *const f = make_filter((calyx_options){.capacity = 10});
    assert_ok(calyx_set_property(f, "colour", "red", NULL));
    const size_t size = (size_t)calyx_encoded_size(f);
    uint8_t *const bytes = malloc(size);
    assert_non_null(bytes);
    assert_ok(calyx_encode(f, bytes, size, NULL));
    calyx_layout *layout;
    assert_ok(calyx_layout_new(bytes, size, &layout, NULL));
    free(bytes);
    assert_string_equal(calyx_layout_property(layout, "colour"), "red");
    assert_null(calyx_layout_property(layout, "size"));
    calyx_layout_free(layout);
    calyx_free(f);
}

static void bytes_that_no_section_has_are_refused(void **unused) {
    (void)unused;
    struct file file = make_file((calyx_options){0}, 100);
    const uint8_t *const bytes = file.bytes;
    calyx_section s;
    uint64_t at[CALYX_LINES_MOST];
    assert_int_equal(calyx_layout_check(file.layout, 1, 0, bytes, 7, NULL),
                     CALYX_BAD_ARGUMENT);
    assert_int_equal(calyx_layout_check(file.layout, 1, 64, bytes, 64, NULL),
                     CALYX_BAD_ARGUMENT);
    assert_int_equal(calyx_layout_check(file.layout, 9, 0, bytes, 0, NULL),
                     CALYX_BAD_ARGUMENT);
    assert_true(calyx_layout_section(file.layout, 5, &s));
    assert_int_equal(s.type, CALYX_SECTION_END);
    assert_int_equal(s.at, file.size);
    assert_false(calyx_layout_section(file.layout, 6, &s));
    assert_int_equal(calyx_layout_lines(file.layout, 1, 0, at), 0);
    assert_false(calyx_layout_has(file.layout, 1, 0, bytes));
    free_file(&file);
}

/* The bits that a key sets in its lines: those that a lookup needs. */
static void a_key_added_to_copies_of_its_lines_is_in_them(void **unused) {
    (void)unused;
    uint32_t kinds = 0;
    EACH_KIND_OF_BITS(kind) {
        struct file file = make_grown(*kind);
        const uint32_t part = info_of(file.filter).parts - 1;
        uint8_t none[CALYX_LINES_MOST * CALYX_LINE_BYTES] = {0};
        kinds += calyx_layout_add(file.layout, part, 1, none) == CALYX_OK;
        for (uint64_t i = 1, hash; i < 2000; i++) {
            uint8_t line[CALYX_LINES_MOST * CALYX_LINE_BYTES] = {0};
            assert_ok(calyx_layout_hash(file.layout, &i, sizeof i, &hash));
            if (calyx_layout_add(file.layout, part, hash, line) != CALYX_OK) {
                assert_memory_equal(line, (uint8_t[sizeof line]){0},
                                    sizeof line);
                continue;
            }
            assert_true(calyx_layout_has(file.layout, part, hash, line));
            for (size_t b = 0; b < 8 * sizeof line; b++) {
                if (!(line[b / 8] >> b % 8 & 1)) continue;
                line[b / 8] ^= (uint8_t)(1 << b % 8);
                assert_false(calyx_layout_has(file.layout, part, hash, line));
                line[b / 8] ^= (uint8_t)(1 << b % 8);
            }
        }
        assert_int_equal(calyx_layout_add(file.layout, part + 1, 1, none),
                         calyx_layout_add(file.layout, part, 1, none)
                             ? CALYX_CANNOT
                             : CALYX_BAD_ARGUMENT);
        free_file(&file);
    }
    assert_int_equal(kinds, 1); /* line */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lookups_in_pieces_answer_like_the_filter),
        cmocka_unit_test(a_layout_describes_the_filter_as_calyx_describe_does),
        cmocka_unit_test(every_flipped_bit_of_a_body_is_found),
        cmocka_unit_test(flipped_bits_of_tables_and_slots_are_found),
        cmocka_unit_test(what_is_no_header_has_no_layout),
        cmocka_unit_test(
            a_layout_of_a_keyed_filter_describes_it_without_its_key),
        cmocka_unit_test(
            a_layout_with_the_secret_key_answers_and_refuses_another_key),
        cmocka_unit_test(a_layout_has_the_properties_of_the_file),
        cmocka_unit_test(bytes_that_no_section_has_are_refused),
        cmocka_unit_test(a_key_added_to_copies_of_its_lines_is_in_them),
    };
    return RUN_TESTS(tests);
}
