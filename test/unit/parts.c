/*
 * Files made of parts: joined, they are the file that one machine writes, to
 * the last byte; a part that is missing, double, foreign or damaged is refused
 * by name; a part takes its share of the memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "build/part_file.h"
#include "support.h"
#include "support_files.h"

enum { MOST = 40 };

static char names[MOST][PATH_MAX];
static const char *paths[MOST];

static int make_names(void **state) {
    const int made = make_folder(state);
    for (int i = 0; i < MOST; i++) {
        snprintf(names[i], sizeof names[i], "%s/%d", folder, i);
        paths[i] = names[i];
    }
    return made;
}

static int end_names(void **state) {
    for (int i = 0; i < MOST; i++) unlink(names[i]);
    return end_folder(state);
}

/* ---- Helpers ------------------------------------------------------------- */

static const uint8_t secret[16] = "sixteen secrets";

static calyx_builder *make_builder(calyx_options filter, uint32_t part,
                                   uint32_t parts) {
    const calyx_builder_options want = {
        .filter = filter, .part = part, .parts = parts, .threads = 2};
    calyx_builder *b = NULL;
    calyx_error why = {0};
    if (calyx_builder_new(&want, &b, &why) != CALYX_OK)
        fail_msg("no builder: %s", why.text);
    return b;
}

static void label(calyx_filter *f) {
    assert_ok(calyx_set_comment(f, "of parts"));
    assert_ok(calyx_set_property(f, "key-options", "-i", NULL));
}

static void add_texts(calyx_builder *b) {
    calyx_filter *f = make_filter((calyx_options){0});
    label(f);
    assert_ok(calyx_builder_copy_texts(b, f, NULL));
    calyx_free(f);
}

/* The numbers below n, every third twice. */
static uint64_t *some_numbers(uint64_t n) {
    uint64_t *const numbers = malloc((n + 1) * sizeof *numbers);
    for (uint64_t i = 0; i < n; i++) numbers[i] = i % 3 ? i : i / 2;
    return numbers;
}

static uint64_t count_distinct_of(const uint64_t *numbers, uint64_t n) {
    bool *const seen = calloc(n + 1, 1);
    uint64_t count = 0;
    for (uint64_t i = 0; i < n; i++) {
        count += !seen[numbers[i]];
        seen[numbers[i]] = true;
    }
    free(seen);
    return count;
}

static void save_part(calyx_options filter, const uint64_t *numbers, uint64_t n,
                      uint32_t part, uint32_t parts, const char *name) {
    calyx_builder *const b = make_builder(filter, part, parts);
    calyx_error why = {0};
    add_texts(b);
    assert_ok(calyx_builder_add_many_u64(b, numbers, n, NULL));
    if (calyx_builder_save(b, name, &why) != CALYX_OK)
        fail_msg("not saved: %s", why.text);
    calyx_builder_free(b);
}

/* As one machine does it: adding all keys in their order, or one builder. */
static void save_whole(calyx_options filter, const uint64_t *numbers,
                       uint64_t n, const char *name) {
    if (calyx_kind_can(filter.kind) & CALYX_CAN_STATIC) {
        calyx_builder *const b = make_builder(filter, 0, 0);
        add_texts(b);
        assert_ok(calyx_builder_add_many_u64(b, numbers, n, NULL));
        assert_ok(calyx_builder_save(b, name, NULL));
        calyx_builder_free(b);
        return;
    }
    calyx_filter *const f = make_filter(filter);
    label(f);
    assert_ok(calyx_add_many_u64(f, numbers, n, NULL, NULL));
    assert_ok(calyx_save(f, name, NULL));
    calyx_free(f);
}

static uint8_t *read_whole(const char *name, size_t *size) {
    FILE *const file = fopen(name, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    uint8_t *const bytes = malloc(*size + 1);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

static void write_whole(const char *name, const uint8_t *bytes, size_t size) {
    FILE *const file = fopen(name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static void assert_same_files(const char *a, const char *b) {
    size_t size, other;
    uint8_t *const x = read_whole(a, &size), *const y = read_whole(b, &other);
    assert_int_equal(size, other);
    assert_memory_equal(x, y, size);
    free(x);
    free(y);
}

static void assert_refused(size_t n, calyx_status status, const char *words) {
    calyx_error why = {0};
    unlink(path);
    assert_int_equal(calyx_join(paths, n, NULL, path, &why), status);
    if (!strstr(why.text, words)) fail_msg("%s, not %s", why.text, words);
    assert_int_not_equal(access(path, F_OK), 0);
}

#define EACH_KIND_OF_PARTS(kind)                                 \
    for (const char *const *kind = calyx_kinds(); *kind; kind++) \
        if (calyx_kind_can(*kind) & CALYX_CAN_PARTS)

/* ---- The same file ------------------------------------------------------- */

static void check_join(calyx_options want, uint64_t n, uint32_t parts) {
    uint64_t *const numbers = some_numbers(n);
    const uint64_t distinct = count_distinct_of(numbers, n);
    want.capacity = distinct ? distinct : 1;
    save_whole(want, numbers, n, other_path);
    for (uint32_t i = 0; i < parts; i++) /* in any order */
        save_part(want, numbers, n, parts - i, parts, names[i]);
    calyx_error why = {0};
    if (calyx_join(paths, parts, NULL, path, &why) != CALYX_OK)
        fail_msg("%s, %u parts: %s", want.kind, parts, why.text);
    assert_same_files(path, other_path);
    free(numbers);
}

static void parts_joined_are_the_file_of_one_machine(void **state) {
    (void)state;
    static const uint32_t counts[] = {1, 2, 7};
    static const uint64_t keys[] = {0, 9, 3000, 70000};
    EACH_KIND_OF_PARTS(kind)
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            check_join((calyx_options){.kind = *kind, .fpr = 0.01}, keys[k],
                       counts[i]);
}

static void other_hashes_and_rates_are_joined_alike(void **state) {
    (void)state;
    EACH_KIND_OF_PARTS(kind) {
        check_join((calyx_options){.kind = *kind, .fpr = 1e-4, .seed = 7},
                   20000, 3);
        check_join((calyx_options){.kind = *kind, .hash = "xxh64"}, 20000, 3);
        check_join(
            (calyx_options){
                .kind = *kind, .fpr = 0.2, .hash = "siphash", .key = secret},
            20000, 3);
    }
}

static void more_parts_than_blocks_are_joined_alike(void **state) {
    (void)state;
    EACH_KIND_OF_PARTS(kind)
    check_join((calyx_options){.kind = *kind}, 200, MOST);
}

/* A static part says how many keys it has; if capacity says another number,
 * nothing is lost. */
static void a_static_filter_planned_for_another_number_has_all_keys(
    void **state) {
    (void)state;
    enum { N = 30000 };
    uint64_t *const numbers = some_numbers(N);
    static const uint64_t planned[] = {1, 1000, 200000};
    EACH_KIND_OF_PARTS(kind)
    for (int i = 0; i < 3; i++) {
        const calyx_options want = {.kind = *kind, .capacity = planned[i]};
        for (uint32_t part = 1; part <= 3; part++)
            save_part(want, numbers, N, part, 3, names[part - 1]);
        assert_ok(calyx_join(paths, 3, NULL, path, NULL));
        calyx_filter *const f = load(path);
        for (uint64_t k = 0; k < N; k++)
            assert_true(calyx_has_u64(f, numbers[k]));
        calyx_free(f);
    }
    free(numbers);
}

static void a_joined_filter_verifies_and_has_its_keys(void **state) {
    (void)state;
    EACH_KIND_OF_PARTS(kind) {
        check_join((calyx_options){.kind = *kind}, 50000, 5);
        assert_ok(verify_file(path));
        calyx_filter *const f = map(path, CALYX_READ);
        uint64_t *const numbers = some_numbers(50000);
        for (int i = 0; i < 50000; i++)
            assert_true(calyx_has_u64(f, numbers[i]));
        assert_string_equal(calyx_comment(f), "of parts");
        free(numbers);
        calyx_free(f);
    }
}

/* ---- Ranges -------------------------------------------------------------- */

static void parts_cover_all_hashes_once(void **state) {
    (void)state;
    static const uint32_t counts[] = {1, 2, 3, 100, 65536};
    EACH_KIND_OF_PARTS(kind)
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        uint64_t next = 0;
        bool over = false;
        for (uint32_t part = 1; part <= counts[i]; part++) {
            uint64_t first, last;
            calyx_filter head;
            struct part like;
            const calyx_options want = {.kind = *kind, .capacity = 40000};
            assert_ok(plan_filter(&want, &head, &like, NULL));
            const struct part_range r =
                range_of_part(head.kind, &like.shape, part, counts[i]);
            first = r.first_hash;
            last = r.last_hash;
            if (r.units.first == r.units.end) continue;
            assert_false(over);
            assert_int_equal(first, next);
            over = last == UINT64_MAX;
            next = last + 1;
        }
        assert_true(over);
    }
}

/* A part of a filter of over 1 TB, whose bytes begin beyond 2^32. */
static void a_part_of_a_huge_filter_takes_its_share_of_memory(void **state) {
    (void)state;
    const calyx_options want = {.capacity = UINT64_C(1) << 40};
    calyx_builder *const b = make_builder(want, 65535, 65536);
    uint64_t first, last;
    assert_true(calyx_builder_range(b, &first, &last));
    assert_true(first >> 48 == 65534 && last - first < UINT64_C(1) << 49);
    const uint64_t hashes[] = {
        0, first - 1, first, first + (last - first) / 2, last, last + 1};
    assert_ok(calyx_builder_add_hashes(b, hashes, 6, NULL));
    assert_ok(calyx_builder_save(b, path, NULL));
    calyx_builder_free(b);
    size_t size;
    uint8_t *const bytes = read_whole(path, &size);
    struct part_head head;
    struct description d;
    assert_ok(check_part_head(bytes, PART_HEADERS_MOST, &head, &d, NULL));
    assert_int_equal(head.items, 3);
    assert_true(head.range.at > UINT64_C(1) << 40);
    assert_true(size < 30 << 20 && size == head.file_bytes);
    free(bytes);
}

/* ---- What cannot be joined ----------------------------------------------- */

static void save_three(calyx_options want) {
    uint64_t *const numbers = some_numbers(5000);
    for (uint32_t i = 1; i <= 3; i++)
        save_part(want, numbers, 5000, i, 3, names[i - 1]);
    free(numbers);
}

static void a_missing_or_double_part_is_named(void **state) {
    (void)state;
    const calyx_options want = {.capacity = 5000};
    save_three(want);
    assert_refused(2, CALYX_MISMATCH, "part 3 of 3 is missing");
    const char *const third = paths[2];
    paths[2] = paths[1];
    assert_refused(3, CALYX_MISMATCH, "are both part 2 of 3");
    paths[2] = third;
    paths[0] = "/nowhere";
    assert_refused(3, CALYX_IO, "/nowhere: cannot open it");
    assert_refused(0, CALYX_BAD_ARGUMENT, "expected 1 to 65536 parts");
}

static void parts_of_two_filters_are_refused_with_the_difference(void **state) {
    (void)state;
    static const struct {
        calyx_options want;
        uint32_t parts;
        const char *words;
    } others[] = {
        {{.capacity = 5000}, 4, "one of 4"},
        {{.capacity = 5000, .kind = "split"}, 3, "differ in kind"},
        {{.capacity = 5000, .hash = "xxh64"}, 3, "differ in hash"},
        {{.capacity = 5000, .seed = 1}, 3, "differ in seed"},
        {{.capacity = 5001}, 3, "differ in number of keys"},
        {{.capacity = 5000, .fpr = 0.02}, 3, "differ in number of keys"},
    };
    save_three((calyx_options){.capacity = 5000});
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        save_part(others[i].want, NULL, 0, 3, others[i].parts, names[2]);
        assert_refused(3, CALYX_MISMATCH, others[i].words);
    }
    const calyx_options keyed = {
        .capacity = 5000, .hash = "siphash", .key = secret};
    calyx_options other_key = keyed;
    other_key.key = (const uint8_t *)"another sixteen.";
    save_three(keyed);
    save_part(other_key, NULL, 0, 3, 3, names[2]);
    assert_refused(3, CALYX_MISMATCH, "differ in secret key");
}

/* Every byte of a small part file counts. */
static void a_changed_byte_anywhere_is_found(void **state) {
    (void)state;
    EACH_KIND_OF_PARTS(kind) {
        uint64_t *const numbers = some_numbers(300);
        const calyx_options want = {.kind = *kind, .capacity = 300};
        for (uint32_t i = 1; i <= 2; i++)
            save_part(want, numbers, 300, i, 2, names[i - 1]);
        size_t size;
        uint8_t *const bytes = read_whole(names[0], &size);
        for (size_t at = 0; at < size; at += at < 260    ? 1
                                             : at < 4220 ? 211
                                                         : 3) {
            calyx_error why = {0};
            bytes[at] ^= 0x10;
            write_whole(names[0], bytes, size);
            const calyx_status status = calyx_join(paths, 2, NULL, path, &why);
            assert_true(status == CALYX_DAMAGED || status == CALYX_TOO_NEW);
            assert_non_null(strstr(why.text, names[0]));
            bytes[at] ^= 0x10;
        }
        for (size_t cut = 1; cut < size; cut += 1 + size / 50) {
            write_whole(names[0], bytes, size - cut);
            assert_refused(2, CALYX_DAMAGED, names[0]);
        }
        write_whole(names[0], bytes, size);
        assert_ok(calyx_join(paths, 2, NULL, path, NULL));
        free(bytes);
        free(numbers);
    }
}

/* The sums are right, so only the numbers are wrong. */
static void a_forged_number_of_keys_is_refused(void **state) {
    (void)state;
    enum { KEYS = 40000, AT_ITEMS = 32, AT_SUM = 120 }; /* doc/FORMAT.md */
    uint64_t *const numbers = some_numbers(KEYS);
    const calyx_options want = {.kind = "ribbon",
                                .capacity = count_distinct_of(numbers, KEYS)};
    struct part_head head;
    struct description d;
    size_t size;
    for (uint32_t i = 1; i <= 2; i++)
        save_part(want, numbers, KEYS, i, 2, names[i - 1]);
    uint8_t *const bytes = read_whole(names[0], &size);
    assert_ok(check_part_head(bytes, PART_HEADERS_MOST, &head, &d, NULL));
    assert_true(head.bumped > 0);
    store64(bytes + AT_ITEMS, head.bumped - 1);
    store64(bytes + AT_SUM, checksum(bytes, AT_SUM, 0));
    store64(bytes + size - 8,
            last_sum(bytes + head.sums_at,
                     (size_t)(head.file_bytes - 8 - head.sums_at), bytes));
    write_whole(names[0], bytes, size);
    assert_refused(2, CALYX_DAMAGED, "the numbers of its head make no sense");
    free(bytes);
    free(numbers);
}

static void a_part_is_no_filter(void **state) {
    (void)state;
    calyx_filter *f;
    calyx_error why = {0};
    save_three((calyx_options){.capacity = 5000});
    assert_int_equal(calyx_load(paths[0], NULL, &f, &why), CALYX_DAMAGED);
    assert_non_null(strstr(why.text, "join all parts"));
    save_whole((calyx_options){.kind = "line"}, NULL, 0, names[0]);
    assert_refused(3, CALYX_DAMAGED, "not a part of a calyx filter");
}

static void kinds_with_two_places_for_a_key_refuse_parts(void **state) {
    (void)state;
    for (const char *const *kind = calyx_kinds(); *kind; kind++) {
        if (calyx_kind_can(*kind) & CALYX_CAN_PARTS) continue;
        const calyx_builder_options want = {
            .filter = {.kind = *kind, .capacity = 100}, .part = 1, .parts = 2};
        calyx_builder *b;
        calyx_error why = {0};
        assert_int_equal(calyx_builder_new(&want, &b, &why), CALYX_CANNOT);
        assert_non_null(strstr(why.text, "made of parts"));
    }
}

static void options_that_no_part_can_have_are_refused(void **state) {
    (void)state;
    const calyx_builder_options wrong[] = {
        {.filter = {.capacity = 9}, .part = 0, .parts = 2},
        {.filter = {.capacity = 9}, .part = 3, .parts = 2},
        {.filter = {.capacity = 9}, .part = 1, .parts = 65537},
        {.filter = {.capacity = 9}, .part = 1},
        {.filter = {.fpr = 0.1}, .part = 1, .parts = 2},
        {.filter = {.capacity = 9, .growth = 2}, .part = 1, .parts = 2},
        {.filter = {.capacity = 9, .strict = true}, .part = 1, .parts = 2},
        {.filter = {.capacity = 9, .concurrent = true}, .part = 1, .parts = 2},
        {.filter = {.capacity = 9}, .part = 1, .parts = 2, .file_backed = true},
        {.filter = {.kind = "ribbon", .capacity = 9, .bits = 1 << 16},
         .part = 1,
         .parts = 2},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        calyx_builder *b;
        assert_int_equal(calyx_builder_new(&wrong[i], &b, NULL),
                         CALYX_BAD_ARGUMENT);
    }
}

static void a_builder_of_a_part_can_only_be_saved(void **state) {
    (void)state;
    calyx_filter *f;
    calyx_builder *const a = make_builder((calyx_options){.capacity = 9}, 1, 2);
    calyx_builder *const b = make_builder((calyx_options){.capacity = 9}, 1, 2);
    assert_int_equal(calyx_builder_finish(a, &f, NULL), CALYX_CANNOT);
    assert_int_equal(calyx_builder_merge(a, b, NULL), CALYX_CANNOT);
    calyx_builder_free(a);
    calyx_builder_free(b);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_names, end_names)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(parts_joined_are_the_file_of_one_machine),
        TEST(more_parts_than_blocks_are_joined_alike),
        TEST(other_hashes_and_rates_are_joined_alike),
        TEST(a_static_filter_planned_for_another_number_has_all_keys),
        TEST(a_joined_filter_verifies_and_has_its_keys),
        TEST(parts_cover_all_hashes_once),
        TEST(a_part_of_a_huge_filter_takes_its_share_of_memory),
        TEST(a_missing_or_double_part_is_named),
        TEST(parts_of_two_filters_are_refused_with_the_difference),
        TEST(a_changed_byte_anywhere_is_found),
        TEST(a_forged_number_of_keys_is_refused),
        TEST(a_part_is_no_filter),
        TEST(kinds_with_two_places_for_a_key_refuse_parts),
        TEST(options_that_no_part_can_have_are_refused),
        TEST(a_builder_of_a_part_can_only_be_saved),
    };
    return RUN_TESTS(tests);
}
