/* A filter taken apart into its head and ranges of its bits, and put together
 * again; outlines; and filters that their allocator moves. */
#include <stdlib.h>
#include <string.h>

#include "filter/filter.h"
#include "support.h"

/* Keys that its first part is for. */
enum { FIRST = 150 };

static calyx_filter *make_grown(const char *kind) {
    calyx_filter *f = make_filter((calyx_options){
        .kind = kind, .capacity = FIRST, .growth = 2, .seed = 7});
    assert_ok(calyx_set_comment(f, "a note"));
    add_numbers(f, 0, 3000);
    return f;
}

static calyx_info outline_of(const calyx_filter *f) {
    calyx_info info;
    calyx_info_of(f, &info);
    return info;
}

static calyx_filter *head_alone(const calyx_filter *f) {
    uint8_t head[12288];
    const size_t size = calyx_head_size(f);
    calyx_filter *copy = NULL;
    assert_ok(calyx_encode_head(f, head, size, NULL));
    assert_ok(calyx_decode_head(head, size, NULL, &copy, NULL));
    return copy;
}

static void put_in_steps(calyx_filter *to, const calyx_filter *from,
                         size_t step) {
    uint8_t *piece = malloc(step);
    assert_non_null(piece);
    const uint64_t all = outline_of(from).bytes;
    for (uint64_t at = 0; at < all; at += step) {
        const size_t n = all - at < step ? (size_t)(all - at) : step;
        assert_ok(calyx_get_bits(from, at, piece, n));
        assert_ok(calyx_put_bits(to, at, piece, n));
    }
    free(piece);
}

static void head_and_bits_make_the_filter_again(void **state) {
    (void)state;
    const size_t steps[] = {1, 61, 1000, 1 << 20};
    EACH_KIND(kind) for (size_t i = 0; i < 4; i++) {
        calyx_filter *f = make_grown(*kind), *copy = head_alone(f);
        assert_false(same_bodies(f, copy));

        put_in_steps(copy, f, steps[i]);

        assert_true(same_bodies(f, copy));
        assert_string_equal(calyx_comment(copy), "a note");
        assert_int_equal(outline_of(copy).items, outline_of(f).items);
        for (uint64_t n = 0; n < 3000; n++) assert_true(calyx_has_u64(copy, n));
        calyx_free(f);
        calyx_free(copy);
    }
}

/* The lines of all bytes that differ. */
static void assert_only_these_changed(const uint8_t *before,
                                      const uint8_t *after, uint64_t bytes,
                                      const uint64_t *lines, size_t n) {
    for (uint64_t at = 0; at < bytes; at += 64) {
        bool known = false;
        for (size_t i = 0; i < n; i++) known |= lines[i] == at;
        if (!known) assert_memory_equal(before + at, after + at, 64);
    }
}

static void a_key_changes_only_its_lines(void **state) {
    (void)state;
    EACH_KIND_OF_BITS(kind) {
        calyx_filter *f = make_grown(*kind);
        const calyx_info is = outline_of(f);
        const uint64_t bytes = is.bytes;
        uint8_t *const before = malloc(2 * bytes), *const after =
                                                       before + bytes;
        uint64_t lines[1000];
        assert_non_null(before);
        for (uint64_t key = 2900; key < 3100; key++) {
            const size_t n =
                calyx_lines_of_key(f, &key, sizeof key, lines, 1000);
            assert_true(n > 0 && n <= 1000);
            assert_ok(calyx_get_bits(f, 0, before, bytes));
            const bool removes = is.can & CALYX_CAN_REMOVE && key % 2;
            assert_ok(removes ? calyx_remove(f, &key, sizeof key, NULL)
                              : calyx_add(f, &key, sizeof key, NULL));
            assert_ok(calyx_get_bits(f, 0, after, bytes));
            assert_only_these_changed(before, after, bytes, lines, n);
        }
        free(before);
        calyx_free(f);
    }
}

static void no_more_lines_are_stored_than_there_is_room_for(void **state) {
    (void)state;
    calyx_filter *f = make_filter(
        (calyx_options){.kind = "counting", .capacity = 100, .seed = 7});
    uint64_t lines[3] = {1, 1, 1};
    assert_int_equal(calyx_lines_of_key(f, "rose", 4, lines, 2), 6);
    assert_true(lines[0] % 64 == 0 && lines[1] % 64 == 0 && lines[2] == 1);
    calyx_free(f);
}

static void putting_twice_does_no_harm(void **state) {
    (void)state;
    calyx_filter *f = make_grown("line"), *copy = head_alone(f);
    put_in_steps(copy, f, 64);
    put_in_steps(copy, f, 100);
    assert_true(same_bodies(f, copy));
    calyx_free(f);
    calyx_free(copy);
}

static void ranges_outside_are_refused(void **state) {
    (void)state;
    calyx_filter *f = make_grown("line");
    const uint64_t all = outline_of(f).bytes;
    uint8_t bytes[2] = {0};
    assert_int_equal(calyx_get_bits(f, all - 1, bytes, 2), CALYX_BAD_ARGUMENT);
    assert_int_equal(calyx_get_bits(f, UINT64_MAX, bytes, 2),
                     CALYX_BAD_ARGUMENT);
    assert_int_equal(calyx_put_bits(f, all, bytes, 1), CALYX_BAD_ARGUMENT);
    assert_ok(calyx_put_bits(f, all, bytes, 0));
    calyx_free(f);
}

static void bits_after_the_last_are_refused(void **state) {
    (void)state;
    calyx_filter *f = make_filter(
        (calyx_options){.kind = "flat", .bits = 500, .capacity = 10});
    uint8_t bytes[64] = {0};
    bytes[62] = 0x10; /* bit 500 */
    assert_int_equal(calyx_put_bits(f, 0, bytes, 64), CALYX_DAMAGED);
    assert_int_equal(calyx_put_bits(f, 62, bytes + 62, 1), CALYX_DAMAGED);
    bytes[62] = 0x08;
    assert_ok(calyx_put_bits(f, 0, bytes, 64));
    assert_int_equal(f->newest->body[62], 0x08);
    calyx_free(f);
}

static void bits_after_the_counters_are_refused(void **state) {
    (void)state;
    calyx_filter *f =
        make_filter((calyx_options){.kind = "counting", .capacity = 100});
    const uint64_t last = outline_of(f).bytes - 1;
    const uint8_t byte = 0x80;
    assert_int_equal(calyx_put_bits(f, last, &byte, 1), CALYX_DAMAGED);
    calyx_free(f);
}

static void damaged_heads_are_refused(void **state) {
    (void)state;
    calyx_filter *f = make_grown("line"), *copy = NULL;
    uint8_t head[12288];
    const size_t size = calyx_head_size(f);
    assert_int_equal(calyx_encode_head(f, head, size - 1, NULL),
                     CALYX_BAD_ARGUMENT);
    assert_ok(calyx_encode_head(f, head, size, NULL));
    for (size_t cut = 0; cut < size; cut++)
        assert_int_not_equal(calyx_decode_head(head, cut, NULL, &copy, NULL),
                             CALYX_OK);
    for (size_t i = 0; i < size; i++) {
        head[i] ^= 1;
        assert_int_not_equal(calyx_decode_head(head, size, NULL, &copy, NULL),
                             CALYX_OK);
        head[i] ^= 1;
    }
    assert_null(copy);
    calyx_free(f);
}

static void an_outline_is_a_description_without_the_fill(void **state) {
    (void)state;
    EACH_KIND(kind) {
        calyx_filter *f = make_grown(*kind);
        calyx_info brief = outline_of(f), full = info_of(f);
        full.fpr_now = full.fill = full.distinct = 0;
        assert_memory_equal(&brief, &full, sizeof brief);
        calyx_free(f);
    }
}

static void parts_add_up_to_the_whole(void **state) {
    (void)state;
    EACH_KIND(kind) {
        calyx_filter *f = make_grown(*kind);
        const calyx_info info = outline_of(f);
        calyx_part sum = {0}, part;
        uint32_t parts = 0;
        for (; calyx_part_of(f, parts, &part); parts++) {
            if (parts == 0) assert_int_equal(part.capacity, FIRST);
            sum.capacity += part.capacity;
            sum.items += part.items;
            sum.bits += part.bits;
            sum.bytes += part.bytes;
            sum.fpr += part.fpr;
        }
        assert_true(parts > 1);
        assert_int_equal(parts, info.parts);
        assert_int_equal(sum.capacity, info.capacity);
        assert_int_equal(sum.items, info.items);
        assert_int_equal(sum.bits, info.bits);
        assert_int_equal(sum.bytes, info.bytes);
        assert_true(sum.fpr <= info.fpr);
        assert_int_equal(part.probes, info.probes);
        calyx_free(f);
    }
}

static void *move_it(void *context, void *block, size_t size) {
    const size_t rounded = (size + 63) / 64 * 64;
    void *new = aligned_alloc(64, rounded);
    assert_non_null(new);
    memcpy(new, block, size);
    memset(block, 0xA5, size); /* whoever still looks there will notice */
    free(block);
    ++*(int *)context;
    return new;
}

static void a_filter_that_was_moved_is_the_same(void **state) {
    (void)state;
    EACH_KIND(kind) {
        calyx_filter *f = make_grown(*kind), *copy = NULL;
        assert_ok(calyx_copy(f, &copy, NULL));
        int moved = 0;

        f = calyx_relocate(f, move_it, &moved);

        const uint32_t parts = outline_of(f).parts;
        assert_int_equal(moved, 2 + 2 * parts + table_blocks(*kind, parts));
        assert_true(same_bodies(f, copy));
        assert_ok(calyx_add_u64(f, 5000, NULL));
        assert_string_equal(calyx_comment(f), "a note");
        calyx_free(f);
        calyx_free(copy);
    }
}

static void *allocate_aligned(void *blocks, size_t size, size_t alignment) {
    const size_t rounded = (size + 63) / 64 * 64;
    void *const block = aligned_alloc(64, rounded);
    assert_true(block && alignment <= 64);
    ++*(int *)blocks;
    return memset(block, 0, rounded);
}

static void release_aligned(void *blocks, void *block, size_t size) {
    memset(block, 0xA5, size);
    free(block);
    --*(int *)blocks;
}

/* There the lines of large segments are blocks of their own. */
static void a_table_in_memory_of_the_caller_moves_with_its_lines(void **state) {
    (void)state;
    enum { KEYS = 20000 };
    static const char *const tables[] = {"bucket", "distinct"};
    for (int i = 0; i < 2; i++) {
        int blocks = 0, moved = 0;
        const calyx_memory memory = {allocate_aligned, release_aligned,
                                     &blocks};
        calyx_filter *f = make_filter((calyx_options){.kind = tables[i],
                                                      .capacity = 100,
                                                      .growth = 2,
                                                      .memory = &memory});
        calyx_filter *copy;
        add_numbers(f, 0, KEYS);
        assert_ok(calyx_copy(f, &copy, NULL));
        const int had = blocks / 2;

        f = calyx_relocate(f, move_it, &moved);

        assert_int_equal(moved, had);
        assert_true(moved > 3 + 2 * (int)outline_of(f).parts);
        assert_true(same_bodies(f, copy));
        add_numbers(f, KEYS, 2 * KEYS);
        add_numbers(copy, KEYS, 2 * KEYS);
        assert_true(same_bodies(f, copy));
        assert_has_numbers(f, 0, 2 * KEYS);
        calyx_free(f);
        calyx_free(copy);
        assert_int_equal(blocks, 0);
    }
}

static void a_prefetch_hint_may_outlive_its_filter(void **state) {
    (void)state;
    calyx_prefetch_hint hint = {{0}};
    calyx_prefetch(&hint, "rose", 4);
    EACH_KIND(kind) {
        calyx_filter *f = make_grown(*kind), *copy = NULL;
        assert_ok(calyx_copy(f, &copy, NULL));
        calyx_prefetch_hint_of(f, &hint);
        calyx_prefetch(&hint, "rose", 4);
        assert_true(same_bodies(f, copy)); /* it changes nothing */
        calyx_free(f);
        calyx_free(copy);
        calyx_prefetch(&hint, "rose", 4);
        calyx_prefetch(&hint, "", 0);
    }
}

/* It has the newest parts of a chain that are large. */
static void a_prefetch_hint_of_large_parts_changes_nothing(void **state) {
    (void)state;
    enum { KEYS = 400000 };
    calyx_filter *const f =
        make_filter((calyx_options){.capacity = 100, .fpr = 0.01, .growth = 2});
    calyx_prefetch_hint hint;
    add_numbers(f, 0, KEYS);
    calyx_prefetch_hint_of(f, &hint);
    for (uint64_t i = 0; i < KEYS; i += 100) calyx_prefetch(&hint, &i, 8);
    assert_has_numbers(f, 0, KEYS);
    calyx_free(f);
    for (uint64_t i = 0; i < 1000; i++) calyx_prefetch(&hint, &i, 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prefetch_hint_of_large_parts_changes_nothing),
        cmocka_unit_test(head_and_bits_make_the_filter_again),
        cmocka_unit_test(a_key_changes_only_its_lines),
        cmocka_unit_test(no_more_lines_are_stored_than_there_is_room_for),
        cmocka_unit_test(putting_twice_does_no_harm),
        cmocka_unit_test(ranges_outside_are_refused),
        cmocka_unit_test(bits_after_the_last_are_refused),
        cmocka_unit_test(bits_after_the_counters_are_refused),
        cmocka_unit_test(damaged_heads_are_refused),
        cmocka_unit_test(an_outline_is_a_description_without_the_fill),
        cmocka_unit_test(parts_add_up_to_the_whole),
        cmocka_unit_test(a_filter_that_was_moved_is_the_same),
        cmocka_unit_test(a_table_in_memory_of_the_caller_moves_with_its_lines),
        cmocka_unit_test(a_prefetch_hint_may_outlive_its_filter),
    };
    return RUN_TESTS(tests);
}
