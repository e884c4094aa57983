/* Allow lists: keys that are known not to be in a filter. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "engine/allow_list.h"
#include "store/format.h"
#include "support_files.h"

static bool allow(calyx_filter *f, const char *text) {
    calyx_error why;
    bool fresh;
    if (calyx_allow(f, text, strlen(text), &fresh, &why) != CALYX_OK)
        fail_msg("%s", why.text);
    return fresh;
}

static bool is_allowed(const calyx_filter *f, const char *text) {
    return calyx_is_allowed(f, text, strlen(text));
}

static bool disallow(calyx_filter *f, const char *text) {
    bool found;
    assert_ok(calyx_disallow(f, text, strlen(text), &found));
    return found;
}

/* A filter with so few bits that about half of all keys are false positives,
 * and one of these: a number that was not added. */
enum { ADDED = 1000 };

static calyx_filter *make_crowded(const char *kind) {
    calyx_filter *const f = make_filter((calyx_options){
        .kind = kind, .capacity = ADDED, .fpr = 0.4, .seed = 5});
    add_numbers(f, 0, ADDED);
    return f;
}

static uint64_t false_positive(const calyx_filter *f, uint64_t from) {
    while (!calyx_has_u64(f, from)) from++;
    return from;
}

static void allow_number(calyx_filter *f, uint64_t number) {
    uint8_t key[8];
    store64(key, number);
    assert_ok(calyx_allow(f, key, sizeof key, NULL, NULL));
}

static bool is_number_allowed(const calyx_filter *f, uint64_t number) {
    uint8_t key[8];
    store64(key, number);
    return calyx_is_allowed(f, key, sizeof key);
}

/* ---- The list ------------------------------------------------------------ */

static void keys_are_allowed_and_disallowed(void **state) {
    (void)state;
    calyx_filter *f = make_filter((calyx_options){0});
    assert_int_equal(info_of(f).allowed, 0);
    assert_false(is_allowed(f, "rose"));
    assert_false(disallow(f, "rose"));
    assert_true(allow(f, "rose"));
    assert_false(allow(f, "rose"));
    assert_true(allow(f, "")); /* a key of 0 bytes is a key */
    assert_true(allow(f, "ros"));
    assert_int_equal(info_of(f).allowed, 3);
    assert_true(is_allowed(f, ""));
    assert_true(is_allowed(f, "ros"));
    assert_false(is_allowed(f, "roses"));
    assert_true(disallow(f, "ros"));
    assert_false(is_allowed(f, "ros"));
    assert_true(is_allowed(f, "rose"));
    assert_true(disallow(f, ""));
    assert_true(disallow(f, "rose"));
    assert_null(f->allowed); /* lookups are as fast as before */
    calyx_free(f);
}

static void a_list_of_many_keys_has_each_of_them_once(void **state) {
    (void)state;
    enum { KEYS = 5000 };
    calyx_filter *f = make_filter((calyx_options){0});
    for (uint64_t i = 0; i < KEYS; i++) allow_number(f, i);
    for (uint64_t i = 1; i < KEYS; i += 2) {
        uint8_t key[8];
        store64(key, i);
        assert_ok(calyx_disallow(f, key, sizeof key, NULL));
    }
    for (uint64_t i = 0; i < KEYS; i += 4) allow_number(f, i);
    assert_int_equal(info_of(f).allowed, KEYS / 2);
    bool seen[KEYS] = {false};
    uint64_t at = 0, n = 0;
    calyx_key key;
    while (calyx_next_allowed(f, &at, &key)) {
        assert_int_equal(key.size, 8);
        const uint64_t number = load64(key.data);
        assert_in_range(number, 0, KEYS - 1);
        assert_false(seen[number]);
        assert_int_equal(number % 2, 0);
        seen[number] = true;
        n++;
    }
    assert_int_equal(n, KEYS / 2);
    calyx_free(f);
}

static void a_list_that_is_changed_for_long_does_not_grow(void **state) {
    (void)state;
    calyx_filter *f = make_filter((calyx_options){0});
    for (uint64_t i = 0; i < 10; i++) allow_number(f, i);
    for (uint64_t i = 0; i < 100000; i++) {
        uint8_t key[8];
        store64(key, i);
        assert_ok(calyx_disallow(f, key, sizeof key, NULL));
        allow_number(f, i + 10);
    }
    assert_int_equal(info_of(f).allowed, 10);
    assert_in_range(list_memory_bytes(f), 1, 2048);
    calyx_free(f);
}

static void a_list_is_bounded(void **state) {
    (void)state;
    calyx_filter *f = make_filter((calyx_options){0});
    static char key[CALYX_ALLOW_MOST];
    calyx_error why;
    assert_int_equal(calyx_allow(f, key, sizeof key - 3, NULL, &why),
                     CALYX_FULL);
    assert_non_null(strstr(why.text, "at most 262144 bytes"));
    assert_null(f->allowed);
    assert_ok(calyx_allow(f, key, sizeof key - 4, NULL, &why));
    assert_int_equal(calyx_allow(f, "", 0, NULL, &why), CALYX_FULL);
    assert_true(calyx_is_allowed(f, key, sizeof key - 4));
    assert_ok(calyx_disallow(f, key, sizeof key - 4, NULL));
    assert_true(allow(f, ""));
    calyx_free(f);
}

/* ---- Lookups ------------------------------------------------------------- */

static void an_allowed_key_is_not_found_by_any_call_with_keys(void **state) {
    (void)state;
    EACH_KIND(kind) {
        calyx_filter *f = make_crowded(*kind);
        const uint64_t wrong = false_positive(f, ADDED);
        uint8_t bytes[8];
        store64(bytes, wrong);
        allow_number(f, wrong);
        assert_false(calyx_has_u64(f, wrong));
        assert_false(calyx_has(f, bytes, 8));
        assert_int_equal(calyx_count_u64(f, wrong), 0);
        assert_int_equal(calyx_count(f, bytes, 8), 0);
        assert_has_numbers(f, 0, ADDED);
        /* those calls that have only a hash look at the bits */
        assert_true(calyx_has_hash(f, calyx_hash_u64(f, wrong)));
        calyx_free(f);
    }
}

static void batched_lookups_answer_like_single_ones(void **state) {
    (void)state;
    enum { ASKED = 20000 };
    static uint64_t numbers[ASKED];
    static uint8_t bytes[ASKED][8];
    static calyx_key keys[ASKED];
    static bool found[ASKED];
    for (uint64_t i = 0; i < ASKED; i++) {
        numbers[i] = i;
        store64(bytes[i], i);
        keys[i] = (calyx_key){bytes[i], 8};
    }
    EACH_KIND(kind) {
        for (int grows = 0; grows < 2; grows++) {
            calyx_filter *f =
                make_filter((calyx_options){.kind = *kind,
                                            .capacity = grows ? 100 : ADDED,
                                            .fpr = 0.4,
                                            .growth = grows ? 2 : 0});
            add_numbers(f, 0, ADDED);
            for (uint64_t i = ADDED; i < ASKED; i += 3) allow_number(f, i);
            const uint64_t yes = count_found(f, 0, ASKED);
            assert_int_equal(calyx_has_many_u64(f, numbers, ASKED, NULL), yes);
            assert_int_equal(calyx_has_many(f, keys, ASKED, NULL), yes);
            assert_int_equal(calyx_has_many(f, keys, ASKED, found), yes);
            for (uint64_t i = 0; i < ASKED; i++)
                assert_int_equal(found[i], calyx_has_u64(f, i));
            assert_int_equal(calyx_has_many_u64(f, numbers, ASKED, found), yes);
            for (uint64_t i = ADDED; i < ASKED; i += 3) assert_false(found[i]);
            calyx_free(f);
        }
    }
}

static void a_filter_with_a_list_is_not_inlined_but_answers_alike(
    void **state) {
    (void)state;
    calyx_filter *f = make_crowded("line");
    const uint64_t wrong = false_positive(f, ADDED);
    allow_number(f, wrong);
    calyx_inline_view view;
    calyx_inline_reader reader;
    calyx_inline_view_of(f, &view);
    calyx_inline_reader_of(f, &reader);
    assert_int_equal(view.words[CALYX_INLINE_NUMBER], 0);
    assert_int_equal(reader.view.words[CALYX_INLINE_NUMBER], 0);
    calyx_free(f);
}

static void a_filter_with_a_list_is_not_made_small(void **state) {
    (void)state;
    calyx_filter *f = make_filter((calyx_options){
        .kind = "split", .capacity = 20, .fpr = 0.01, .growth = 2});
    calyx_small small;
    void *bits;
    assert_true(allow(f, "rose"));
    assert_false(calyx_make_small(f, &small, &bits));
    assert_true(disallow(f, "rose"));
    const calyx_memory memory = f->memory;
    assert_true(calyx_make_small(f, &small, &bits));
    calyx_room room;
    f = calyx_open_small(&small, bits, &memory, &room);
    assert_int_equal(calyx_allow(f, "rose", 4, NULL, NULL), CALYX_READ_ONLY);
    memory.release(memory.context, bits, calyx_small_bytes(&small));
}

/* ---- Adding and removing ------------------------------------------------- */

enum { WAYS = 8 };

/* Add a number in one of the ways there are. */
static bool add_in_way(calyx_filter *f, int way, uint64_t number) {
    uint8_t bytes[8];
    bool fresh = true;
    store64(bytes, number);
    const calyx_key key = {bytes, 8};
    const uint64_t hash = calyx_hash(f, bytes, 8);
    switch (way) {
        case 0: assert_ok(calyx_add(f, bytes, 8, &fresh)); break;
        case 1: assert_ok(calyx_add_u64(f, number, &fresh)); break;
        case 2: assert_ok(calyx_add_many(f, &key, 1, &fresh, NULL)); break;
        case 3:
            assert_ok(calyx_add_many_u64(f, &number, 1, &fresh, NULL));
            break;
        case 4: assert_ok(calyx_add_many(f, &key, 1, NULL, NULL)); break;
        case 5: assert_ok(calyx_add(f, bytes, 8, NULL)); break;
        /* a hash has no key of which to say that it was not there */
        case 6: assert_ok(calyx_add_hash(f, hash, NULL)); break;
        default: assert_ok(calyx_add_hashes(f, &hash, 1, NULL, NULL));
    }
    return fresh;
}

static void an_added_key_leaves_the_list(void **state) {
    (void)state;
    EACH_KIND(kind) {
        for (int way = 0; way < WAYS; way++) {
            calyx_filter *f = make_crowded(*kind);
            const uint64_t first = false_positive(f, ADDED);
            const uint64_t second = false_positive(f, first + 1);
            const uint64_t items = info_of(f).items;
            allow_number(f, first);
            allow_number(f, second);
            assert_true(add_in_way(f, way, first));
            assert_true(calyx_has_u64(f, first));
            assert_false(is_number_allowed(f, first));
            assert_false(calyx_has_u64(f, second));
            assert_int_equal(info_of(f).allowed, 1);
            if (way < 6) assert_int_equal(info_of(f).items, items + 1);
            calyx_free(f);
        }
    }
}

static void a_key_that_could_not_be_added_stays_on_the_list(void **state) {
    (void)state;
    calyx_filter *f =
        make_filter((calyx_options){.capacity = 10, .strict = true});
    for (uint64_t i = 0; info_of(f).items < 10; i++) add_numbers(f, i, i + 1);
    uint64_t absent = 100;
    while (calyx_has_u64(f, absent)) absent++;
    allow_number(f, absent);
    assert_int_equal(calyx_add_u64(f, absent, NULL), CALYX_FULL);
    assert_int_equal(calyx_add_many_u64(f, &absent, 1, NULL, NULL), CALYX_FULL);
    assert_true(is_number_allowed(f, absent));
    calyx_free(f);
}

static void an_allowed_key_is_not_removed(void **state) {
    (void)state;
    EACH_KIND(kind) {
        if (!(calyx_kind_can(*kind) & CALYX_CAN_REMOVE)) continue;
        calyx_filter *f = make_crowded(*kind);
        for (uint64_t n = 0, wrong = ADDED; n < 50; n++) {
            wrong = false_positive(f, wrong + 1);
            allow_number(f, wrong);
            bool found = true;
            if (n % 2)
                assert_ok(calyx_remove_u64(f, wrong, &found));
            else
                assert_ok(calyx_remove_many_u64(f, &wrong, 1, &found, NULL));
            assert_false(found);
        }
        assert_has_numbers(f, 0, ADDED);
        uint64_t there = 0;
        size_t removed;
        bool found;
        assert_ok(calyx_remove_many_u64(f, &there, 1, &found, &removed));
        assert_true(found);
        assert_int_equal(removed, 1);
        calyx_free(f);
    }
}

/* ---- Files and bytes ----------------------------------------------------- */

static void put(calyx_filter *f) {
    assert_true(allow(f, "tulip"));
    assert_true(allow(f, "tul"));
    assert_true(allow(f, ""));
    assert_true(allow(f, "rose"));
}

static void assert_put(calyx_filter *f) {
    assert_true(is_allowed(f, "tulip"));
    assert_true(is_allowed(f, "tul"));
    assert_true(is_allowed(f, ""));
    assert_true(is_allowed(f, "rose"));
    assert_false(is_allowed(f, "tuli"));
    assert_int_equal(info_of(f).allowed, 4);
    calyx_free(f);
}

static uint8_t *encode(const calyx_filter *f, size_t *size) {
    *size = (size_t)calyx_encoded_size(f);
    uint8_t *const bytes = aligned_alloc(64, *size);
    assert_non_null(bytes);
    assert_ok(calyx_encode(f, bytes, *size, NULL));
    return bytes;
}

static void lists_survive_bytes_and_heads(void **state) {
    (void)state;
    const uint8_t secret[16] = "not so secret";
    EACH_KIND(kind) {
        for (int keyed = 0; keyed < 2; keyed++) {
            const calyx_open_options how = {.key = secret};
            calyx_filter *f = make_filter(
                             (calyx_options){.kind = *kind,
                                             .hash = keyed ? "siphash" : NULL,
                                             .key = keyed ? secret : NULL}),
                         *g;
            put(f);
            add_numbers(f, 0, 100);
            size_t size;
            uint8_t *const bytes = encode(f, &size);
            assert_ok(calyx_decode(bytes, size, &how, &g, NULL));
            size_t again;
            uint8_t *const same = encode(g, &again);
            assert_int_equal(again, size);
            assert_memory_equal(same, bytes, size);
            free(same);
            assert_has_numbers(g, 0, 100);
            assert_put(g);
            assert_ok(calyx_view(bytes, size, &how, &g, NULL));
            assert_ok(calyx_verify(g, NULL));
            assert_int_equal(calyx_allow(g, "a", 1, NULL, NULL),
                             CALYX_READ_ONLY);
            assert_int_equal(calyx_disallow(g, "rose", 4, NULL),
                             CALYX_READ_ONLY);
            assert_put(g);
            const size_t head = calyx_head_size(f);
            assert_ok(calyx_encode_head(f, bytes, head, NULL));
            assert_ok(calyx_decode_head(bytes, head, &how, &g, NULL));
            assert_put(g);
            free(bytes);
            assert_put(f);
        }
    }
}

static void the_order_of_allowing_does_not_show_in_the_bytes(void **state) {
    (void)state;
    calyx_filter *f = make_filter((calyx_options){0});
    calyx_filter *g = make_filter((calyx_options){0});
    for (uint64_t i = 0; i < 1000; i++) allow_number(f, i);
    for (uint64_t i = 1000; i-- > 0;) allow_number(g, i);
    assert_true(allow(g, "for a moment"));
    assert_true(disallow(g, "for a moment"));
    size_t size, other;
    uint8_t *const a = encode(f, &size), *const b = encode(g, &other);
    assert_int_equal(size, other);
    assert_memory_equal(a, b, size);
    free(a);
    free(b);
    calyx_free(f);
    calyx_free(g);
}

static void a_filter_whose_list_is_empty_again_has_the_bytes_of_before(
    void **state) {
    (void)state;
    calyx_filter *f = make_filter((calyx_options){0});
    size_t size, other;
    add_numbers(f, 0, 10);
    uint8_t *const before = encode(f, &size);
    put(f);
    add(f, "tulip"), add(f, "tul"), add(f, ""), add(f, "rose");
    assert_non_null(f->allowed); /* with no key on it */
    calyx_filter *g = make_filter((calyx_options){0});
    add_numbers(g, 0, 10);
    add(g, "tulip"), add(g, "tul"), add(g, ""), add(g, "rose");
    uint8_t *const after = encode(f, &other), *const plain = encode(g, &size);
    assert_int_equal(size, other);
    assert_memory_equal(after, plain, size);
    free(before);
    free(after);
    free(plain);
    calyx_free(f);
    calyx_free(g);
}

static void lists_survive_files_and_are_not_changed_in_place(void **state) {
    (void)state;
    calyx_filter *f = make_filter((calyx_options){0}), *g;
    calyx_error why;
    put(f);
    assert_ok(calyx_save(f, path, NULL));
    assert_put(load(path));
    assert_put(map(path, CALYX_READ));
    assert_int_equal(calyx_map(path, CALYX_WRITE, NULL, &g, &why),
                     CALYX_CANNOT);
    assert_non_null(strstr(why.text, "allow list"));
    assert_ok(verify_file(path)); /* and was not touched */
    calyx_live *live;
    assert_ok(calyx_live_open(path, NULL, &live, NULL));
    const calyx_filter *now = calyx_live_acquire(live);
    assert_true(is_allowed(now, "tulip"));
    calyx_live_release(live, now);
    calyx_live_free(live);
    assert_put(f);
}

static void a_static_filter_has_a_list(void **state) {
    (void)state;
    calyx_builder *b;
    const calyx_builder_options want = {
        .filter = {.kind = "ribbon", .fpr = 0.4}};
    assert_ok(calyx_builder_new(&want, &b, NULL));
    uint64_t numbers[ADDED];
    for (uint64_t i = 0; i < ADDED; i++) numbers[i] = i;
    assert_ok(calyx_builder_add_many_u64(b, numbers, ADDED, NULL));
    calyx_filter *f, *g;
    assert_ok(calyx_builder_finish(b, &f, NULL));
    calyx_builder_free(b);
    const uint64_t wrong = false_positive(f, ADDED);
    allow_number(f, wrong);
    assert_false(calyx_has_u64(f, wrong));
    assert_int_equal(calyx_has_many_u64(f, &wrong, 1, NULL), 0);
    assert_int_equal(calyx_has_many_u64(f, numbers, ADDED, NULL), ADDED);
    size_t size;
    uint8_t *const bytes = encode(f, &size);
    assert_ok(calyx_view(bytes, size, NULL, &g, NULL));
    assert_false(calyx_has_u64(g, wrong));
    calyx_free(g);
    free(bytes);
    calyx_free(f);
}

/* Opened in place, only verifying looks at gaps. */
static bool is_noticed_in_place(const uint8_t *bytes, size_t size) {
    calyx_filter *g;
    if (calyx_view(bytes, size, NULL, &g, NULL) != CALYX_OK) return true;
    const calyx_status status = calyx_verify(g, NULL);
    calyx_free(g);
    return status != CALYX_OK;
}

static bool is_noticed_by_layout(const uint8_t *bytes, size_t size) {
    calyx_layout *l;
    calyx_section s;
    if (calyx_layout_new(bytes, size, &l, NULL) != CALYX_OK) return true;
    assert_true(calyx_layout_section(l, 1, &s));
    assert_int_equal(s.type, CALYX_SECTION_ALLOW);
    const calyx_status status =
        calyx_layout_check(l, 1, 0, bytes + s.at, (size_t)s.bytes, NULL);
    calyx_layout_free(l);
    return status != CALYX_OK;
}

static void every_damaged_byte_of_a_list_is_noticed(void **state) {
    (void)state;
    calyx_filter *f = make_filter((calyx_options){0}), *g = NULL;
    put(f);
    size_t size;
    uint8_t *const bytes = encode(f, &size);
    const size_t head = calyx_head_size(f);
    const size_t gap = load32(bytes + 32) + encoded_list_bytes(f);
    assert_in_range(gap, 129, head - 1);
    for (size_t i = 0; i < head; i++) {
        bytes[i] ^= 4;
        assert_int_not_equal(calyx_decode(bytes, size, NULL, &g, NULL),
                             CALYX_OK);
        assert_int_not_equal(calyx_decode_head(bytes, head, NULL, &g, NULL),
                             CALYX_OK);
        assert_true(is_noticed_in_place(bytes, size));
        assert_true(i >= gap || is_noticed_by_layout(bytes, size));
        bytes[i] ^= 4;
    }
    assert_false(is_noticed_in_place(bytes, size));
    free(bytes);
    calyx_free(f);
}

/* What a list of these bytes is called by the gate, in a header that is
 * signed. */
static calyx_status status_of(const void *list, uint32_t size) {
    calyx_filter *f = make_filter((calyx_options){0}), *g = NULL;
    struct description d;
    assert_true(describe_filter(f, LINE_ALIGNED, &d));
    describe_list(&d, list, size);
    const size_t head = (size_t)d.layout.body_at[0];
    uint8_t *const bytes = calloc(1, head + MOST_HEADER);
    assert_non_null(bytes);
    store_header(&d, bytes);
    memcpy(bytes + d.layout.header_bytes, list, size);
    const calyx_status status = calyx_decode_head(bytes, head, NULL, &g, NULL);
    free(bytes);
    calyx_free(f);
    calyx_free(g);
    return status;
}

#define STATUS_OF(text) status_of(text, sizeof text - 1)

static void lists_that_make_no_sense_are_refused(void **state) {
    (void)state;
    assert_ok(STATUS_OF("\1\0\0\0a\1\0\0\0b"));
    assert_ok(STATUS_OF("\0\0\0\0\1\0\0\0a\2\0\0\0aa"));
    assert_int_equal(STATUS_OF("\1\0\0\0b\1\0\0\0a"), CALYX_DAMAGED);
    assert_int_equal(STATUS_OF("\1\0\0\0a\1\0\0\0a"), CALYX_DAMAGED);
    assert_int_equal(STATUS_OF("\2\0\0\0aa\1\0\0\0a"), CALYX_DAMAGED);
    assert_int_equal(STATUS_OF("\1\0\0\0"), CALYX_DAMAGED);
    assert_int_equal(STATUS_OF("\1\0\0\0ab"), CALYX_DAMAGED);
    assert_int_equal(STATUS_OF("\xFF\xFF\xFF\xFF"), CALYX_DAMAGED);
    /* 2^32 - 1 bytes would end at byte 3, where a sound entry begins */
    uint8_t wraps[4 + 3 + 255] = {0xFF, 0xFF, 0xFF, 0xFF};
    memset(wraps + 7, 1, sizeof wraps - 7);
    assert_int_equal(status_of(wraps, sizeof wraps), CALYX_DAMAGED);
    static uint8_t large[CALYX_ALLOW_MOST + 1];
    store32(large, CALYX_ALLOW_MOST - 4);
    assert_ok(status_of(large, CALYX_ALLOW_MOST));
    store32(large, CALYX_ALLOW_MOST - 3);
    assert_int_equal(status_of(large, CALYX_ALLOW_MOST + 1), CALYX_DAMAGED);
}

static void a_layout_knows_the_list(void **state) {
    (void)state;
    calyx_filter *f = make_filter((calyx_options){0});
    put(f);
    size_t size;
    uint8_t *const bytes = encode(f, &size);
    calyx_layout *l;
    calyx_section s = {0};
    calyx_info info;
    assert_ok(calyx_layout_new(bytes, size, &l, NULL));
    assert_false(calyx_layout_allows(l, "rose", 4));
    uint32_t i = 0;
    uint64_t end = 0;
    for (; calyx_layout_section(l, i, &s); i++) {
        assert_true(s.at >= end);
        end = s.at + s.bytes;
        if (s.type == CALYX_SECTION_ALLOW)
            assert_ok(calyx_layout_check(l, i, 0, bytes + s.at, (size_t)s.bytes,
                                         NULL));
    }
    assert_int_equal(end, size);
    assert_true(calyx_layout_allows(l, "rose", 4));
    assert_true(calyx_layout_allows(l, "", 0));
    assert_false(calyx_layout_allows(l, "roses", 5));
    calyx_layout_describe(l, NULL, &info);
    assert_int_equal(info.allowed, 4);
    calyx_layout_free(l);
    free(bytes);
    calyx_free(f);
}

/* ---- Whole filters ------------------------------------------------------- */

static void lists_are_copied_with_the_filter(void **state) {
    (void)state;
    calyx_filter *f = make_filter((calyx_options){.kind = "counting"}), *g;
    put(f);
    assert_ok(calyx_copy(f, &g, NULL));
    assert_put(g);
    assert_ok(calyx_new_like(f, &g, NULL));
    assert_put(g);
    assert_ok(calyx_new_alike(f, &g, NULL));
    assert_int_equal(info_of(g).allowed, 0);
    assert_ok(calyx_merge(g, f, NULL));
    assert_put(g);
    assert_ok(calyx_freeze(f, &g, NULL));
    assert_put(g);
    assert_ok(calyx_fold(f, 1, &g, NULL));
    assert_put(g);
    assert_ok(calyx_clear(f));
    assert_put(f);
}

static calyx_status merge(calyx_filter *f, const calyx_filter *other) {
    return calyx_merge(f, other, NULL);
}

static void a_union_allows_what_neither_filter_has(void **state) {
    (void)state;
    EACH_KIND(kind) {
        if (!(calyx_kind_can(*kind) & CALYX_CAN_MERGE)) continue;
        const calyx_options want = {.kind = *kind, .capacity = 1000};
        calyx_filter *f = make_filter(want), *g = make_filter(want);
        assert_true(allow(f, "in neither"));
        assert_true(allow(f, "in the other"));
        assert_true(allow(f, "on both lists"));
        assert_true(allow(g, "on both lists"));
        assert_true(allow(g, "in this"));
        assert_true(allow(g, "in none"));
        add(g, "in the other");
        add(f, "in this");
        assert_ok(merge(f, g));
        assert_true(has(f, "in the other"));
        assert_true(has(f, "in this"));
        assert_true(is_allowed(f, "in neither"));
        assert_true(is_allowed(f, "in none"));
        assert_true(is_allowed(f, "on both lists"));
        assert_int_equal(info_of(f).allowed, 3);
        assert_int_equal(info_of(g).allowed, 3); /* as before */
        calyx_free(f);
        calyx_free(g);
    }
}

static void a_key_allowed_between_the_steps_of_a_union_is_found(void **state) {
    (void)state;
    EACH_KIND(kind) {
        if (!(calyx_kind_can(*kind) & CALYX_CAN_MERGE)) continue;
        const calyx_options want = {.kind = *kind, .capacity = 1000};
        calyx_filter *f = make_filter(want), *g = make_filter(want);
        const uint64_t end = info_of(g).row_bytes;
        calyx_progress at = {0};
        add(g, "in the other");
        assert_ok(calyx_merge_some(f, g, 64, &at, NULL));
        assert_true(at.at < end);
        assert_true(allow(f, "in the other"));
        assert_true(allow(f, "in neither"));
        while (at.at < end) assert_ok(calyx_merge_some(f, g, 640, &at, NULL));
        assert_true(has(f, "in the other"));
        assert_true(is_allowed(f, "in neither"));
        calyx_free(f);
        calyx_free(g);
    }
}

static void a_union_of_lists_that_are_too_long_changes_nothing(void **state) {
    (void)state;
    calyx_filter *f = make_filter((calyx_options){0});
    calyx_filter *g = make_filter((calyx_options){0});
    static char key[CALYX_ALLOW_MOST / 2];
    assert_ok(calyx_allow(f, key, sizeof key, NULL, NULL));
    key[0] = 1;
    assert_ok(calyx_allow(g, key, sizeof key, NULL, NULL));
    add(g, "rose");
    assert_int_equal(calyx_fits(f, g, NULL), CALYX_FULL);
    assert_int_equal(merge(f, g), CALYX_FULL);
    assert_false(has(f, "rose"));
    assert_int_equal(calyx_intersect(f, g, NULL), CALYX_FULL);
    assert_int_equal(info_of(f).allowed, 1);
    calyx_free(f);
    calyx_free(g);
}

static void an_intersection_allows_what_either_did(void **state) {
    (void)state;
    calyx_filter *f = make_crowded("line"), *g = make_crowded("line");
    const uint64_t here = false_positive(f, ADDED);
    const uint64_t there = false_positive(f, here + 1);
    allow_number(f, here);
    allow_number(g, there);
    assert_ok(calyx_intersect(f, g, NULL));
    assert_false(calyx_has_u64(f, here));
    assert_false(calyx_has_u64(f, there));
    assert_has_numbers(f, 0, ADDED);
    calyx_free(f);
    calyx_free(g);
}

static void a_file_in_place_takes_keys_of_a_filter_with_a_list(void **state) {
    (void)state;
    calyx_filter *f = make_filter((calyx_options){0}), *g;
    calyx_filter *other = make_filter((calyx_options){0});
    put(other);
    add(other, "iris");
    assert_ok(calyx_save(f, path, NULL));
    g = map(path, CALYX_WRITE);
    assert_ok(merge(g, other));
    assert_true(has(g, "iris"));
    assert_int_equal(info_of(g).allowed, 0);
    assert_ok(calyx_close(g, NULL));
    calyx_free(f);
    calyx_free(other);
}

/* ---- Memory -------------------------------------------------------------- */

static void *move_block(void *context, void *block, size_t size) {
    void *const moved = counted_allocate(context, size, 64);
    memcpy(moved, block, size);
    counted_release(context, block, size);
    return moved;
}

static void lists_are_counted_moved_and_freed(void **state) {
    (void)state;
    struct books books = {0};
    const calyx_memory memory = hooks_of(&books);
    calyx_filter *f = make_filter((calyx_options){.memory = &memory});
    const uint64_t before = info_of(f).memory;
    for (uint64_t i = 0; i < 300; i++) allow_number(f, i);
    assert_true(info_of(f).memory >= before + 300 * 12);
    assert_int_equal(info_of(f).memory, books.bytes);
    f = calyx_relocate(f, move_block, &books);
    for (uint64_t i = 0; i < 300; i++) assert_true(is_number_allowed(f, i));
    calyx_free(f);
    assert_int_equal(blocks_of(&books), 0);
}

/* Make a filter with a list, copy, merge, write and read it. */
static calyx_status use_memory(const calyx_memory *memory) {
    const calyx_options want = {.capacity = 100, .memory = memory};
    const calyx_open_options how = {.memory = memory};
    calyx_filter *f = NULL, *g = NULL, *h = NULL;
    uint8_t bytes[4096];
    calyx_status status = calyx_new(&want, &f, NULL);
    for (uint64_t i = 0; i < 40 && status == CALYX_OK; i++)
        status = calyx_allow(f, &i, sizeof i, NULL, NULL);
    if (status == CALYX_OK) status = calyx_copy(f, &g, NULL);
    if (status == CALYX_OK) status = calyx_allow(g, "x", 1, NULL, NULL);
    if (status == CALYX_OK) status = calyx_merge(f, g, NULL);
    if (status == CALYX_OK) {
        const size_t size = (size_t)calyx_encoded_size(f);
        assert_in_range(size, 1, sizeof bytes);
        status = calyx_encode(f, bytes, size, NULL);
        if (status == CALYX_OK)
            status = calyx_decode(bytes, size, &how, &h, NULL);
        if (status == CALYX_OK) assert_int_equal(info_of(h).allowed, 41);
    }
    calyx_free(f);
    calyx_free(g);
    calyx_free(h);
    return status;
}

static void any_allocation_may_fail(void **state) {
    (void)state;
    size_t at = 0;
    for (calyx_status status = CALYX_NO_MEMORY; status != CALYX_OK;) {
        struct books books = {.fails_at = ++at};
        const calyx_memory memory = hooks_of(&books);
        status = use_memory(&memory);
        assert_true(status == CALYX_OK || status == CALYX_NO_MEMORY);
        assert_int_equal(blocks_of(&books), 0);
    }
    assert_in_range(at, 10, 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_allowed_and_disallowed),
        cmocka_unit_test(a_list_of_many_keys_has_each_of_them_once),
        cmocka_unit_test(a_list_that_is_changed_for_long_does_not_grow),
        cmocka_unit_test(a_list_is_bounded),
        cmocka_unit_test(an_allowed_key_is_not_found_by_any_call_with_keys),
        cmocka_unit_test(batched_lookups_answer_like_single_ones),
        cmocka_unit_test(a_filter_with_a_list_is_not_inlined_but_answers_alike),
        cmocka_unit_test(a_filter_with_a_list_is_not_made_small),
        cmocka_unit_test(an_added_key_leaves_the_list),
        cmocka_unit_test(a_key_that_could_not_be_added_stays_on_the_list),
        cmocka_unit_test(an_allowed_key_is_not_removed),
        cmocka_unit_test(lists_survive_bytes_and_heads),
        cmocka_unit_test(the_order_of_allowing_does_not_show_in_the_bytes),
        cmocka_unit_test(
            a_filter_whose_list_is_empty_again_has_the_bytes_of_before),
        IN_FOLDER(lists_survive_files_and_are_not_changed_in_place),
        cmocka_unit_test(a_static_filter_has_a_list),
        cmocka_unit_test(every_damaged_byte_of_a_list_is_noticed),
        cmocka_unit_test(lists_that_make_no_sense_are_refused),
        cmocka_unit_test(a_layout_knows_the_list),
        cmocka_unit_test(lists_are_copied_with_the_filter),
        cmocka_unit_test(a_union_allows_what_neither_filter_has),
        cmocka_unit_test(a_key_allowed_between_the_steps_of_a_union_is_found),
        cmocka_unit_test(a_union_of_lists_that_are_too_long_changes_nothing),
        cmocka_unit_test(an_intersection_allows_what_either_did),
        IN_FOLDER(a_file_in_place_takes_keys_of_a_filter_with_a_list),
        cmocka_unit_test(lists_are_counted_moved_and_freed),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return RUN_TESTS(tests);
}
