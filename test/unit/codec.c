/*
 * Filters to bytes and back. Whatever a filter is, its bytes make the same one
 * again; and whatever goes wrong on the way leaves nothing behind.
 */
#include <stdlib.h>
#include <string.h>

#include "filter/filter.h"
#include "kind/kind.h"
#include "store/format.h"
#include "support.h"

static const uint8_t secret[16] = {0x5C, 0x0F, 0xA1, 0x93, 0x3E, 0x77,
                                   0xD2, 0x48, 0x86, 0x1B, 0xC9, 0x64,
                                   0xF0, 0x2D, 0xBA, 0x55};
static const calyx_open_options with_secret = {.key = secret};

/* ---- Bytes --------------------------------------------------------------- */

struct bytes {
    uint8_t *at; /* aligned for a view */
    size_t size;
};

static struct bytes room_for(size_t size) {
    uint8_t *at = aligned_alloc(64, (size + 63) / 64 * 64);
    assert_non_null(at);
    return (struct bytes){at, size};
}

static struct bytes encoded(const calyx_filter *f) {
    const struct bytes bytes = room_for((size_t)calyx_encoded_size(f));
    calyx_error why;
    if (calyx_encode(f, bytes.at, bytes.size, &why) != CALYX_OK)
        fail_msg("%s", why.text);
    return bytes;
}

static calyx_filter *decoded(struct bytes bytes,
                             const calyx_open_options *how) {
    calyx_filter *f = NULL;
    calyx_error why;
    if (calyx_decode(bytes.at, bytes.size, how, &f, &why) != CALYX_OK)
        fail_msg("%s", why.text);
    return f;
}

static calyx_filter *viewed(struct bytes bytes, const calyx_open_options *how) {
    calyx_filter *f = NULL;
    calyx_error why;
    if (calyx_view(bytes.at, bytes.size, how, &f, &why) != CALYX_OK)
        fail_msg("%s", why.text);
    return f;
}

/* A pipe from calyx_write to calyx_read, that stops at a certain call. */
struct pipe {
    struct bytes bytes;
    size_t used, calls, stops_at; /* 0: never */
};

static bool put(void *context, const void *bytes, size_t size) {
    struct pipe *pipe = context;
    assert_true(size > 0 && size <= (size_t)1 << 20);
    assert_true(size <= pipe->bytes.size - pipe->used);
    if (++pipe->calls == pipe->stops_at) return false;
    assert_true(!pipe->stops_at || pipe->calls < pipe->stops_at);
    memcpy(pipe->bytes.at + pipe->used, bytes, size);
    pipe->used += size;
    return true;
}

static bool get(void *context, void *buffer, size_t size) {
    struct pipe *pipe = context;
    assert_true(size > 0);
    if (++pipe->calls == pipe->stops_at) return false;
    assert_true(!pipe->stops_at || pipe->calls < pipe->stops_at);
    if (size > pipe->bytes.size - pipe->used) return false;
    memcpy(buffer, pipe->bytes.at + pipe->used, size);
    pipe->used += size;
    return true;
}

static struct bytes written(const calyx_filter *f) {
    struct pipe pipe = {.bytes = room_for((size_t)calyx_encoded_size(f))};
    assert_ok(calyx_write(f, put, &pipe, NULL));
    assert_int_equal(pipe.used, pipe.bytes.size);
    return pipe.bytes;
}

static calyx_filter *read_back(struct bytes bytes,
                               const calyx_open_options *how) {
    struct pipe pipe = {.bytes = bytes};
    calyx_filter *f = NULL;
    calyx_error why;
    if (calyx_read(get, &pipe, how, &f, &why) != CALYX_OK)
        fail_msg("%s", why.text);
    assert_int_equal(pipe.used, bytes.size);
    return f;
}

/* ---- Filters of all sorts ------------------------------------------------ */

static void add_until_full(calyx_filter *f, uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; i++) {
        const calyx_status status = calyx_add_u64(f, i, NULL);
        if (status == CALYX_FULL) break; /* it is strict */
        assert_ok(status);
    }
}

typedef void look(calyx_filter *f, const calyx_options *made);

enum { CAPACITY = 100 };

/* Empty, half full, full, and fuller than that. */
static const uint64_t fills[] = {0, CAPACITY / 2, CAPACITY, 3 * CAPACITY};
static const char *const comments[] = {"", "made on a Monday"};

static void look_at(const calyx_options *want, look *each) {
    for (size_t i = 0; i < sizeof fills / sizeof *fills; i++)
        for (size_t j = 0; j < 2; j++) {
            calyx_filter *f = make_filter(*want);
            add_until_full(f, 0, fills[i]);
            assert_ok(calyx_set_comment(f, comments[j]));
            each(f, want);
            calyx_free(f);
        }
}

/* Every kind with every hash, growing and not, strict and not. */
static void look_at_all(look *each) {
    for (const char *const *kind = adding_kinds(); *kind; kind++)
        for (const char *const *hash = calyx_hashes(); *hash; hash++)
            for (int i = 0; i < 3; i++) {
                const bool keyed = strcmp(*hash, "siphash") == 0;
                look_at(&(calyx_options){.kind = *kind,
                                         .hash = *hash,
                                         .capacity = CAPACITY,
                                         .growth = i == 1 ? 2 : 0,
                                         .strict = i == 2,
                                         .seed = keyed ? 0 : 7,
                                         .key = keyed ? secret : NULL},
                        each);
            }
}

static void assert_same_info(const calyx_info *a, const calyx_info *b) {
    assert_string_equal(a->kind, b->kind);
    assert_string_equal(a->hash, b->hash);
    assert_int_equal(a->seed, b->seed);
    assert_int_equal(a->capacity, b->capacity);
    assert_int_equal(a->items, b->items);
    assert_int_equal(a->bits, b->bits);
    assert_int_equal(a->bytes, b->bytes);
    assert_int_equal(a->parts, b->parts);
    assert_int_equal(a->probes, b->probes);
    assert_true(a->growth == b->growth && a->fpr == b->fpr);
    assert_true(a->fpr_now == b->fpr_now && a->fill == b->fill);
    assert_true(a->distinct == b->distinct && a->strict == b->strict);
}

static void assert_same_filter(const calyx_filter *a, const calyx_filter *b) {
    const calyx_info of_a = info_of(a), of_b = info_of(b);
    assert_same_info(&of_a, &of_b);
    assert_true(same_bodies(a, b));
    assert_string_equal(calyx_comment(a), calyx_comment(b));
    for (uint64_t i = 0; i < 5 * CAPACITY; i++) {
        assert_true(calyx_has_u64(a, i) == calyx_has_u64(b, i));
        assert_int_equal(calyx_count(a, &i, sizeof i),
                         calyx_count(b, &i, sizeof i));
    }
}

static void assert_same_bytes(struct bytes a, struct bytes b) {
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.at, b.at, a.size);
}

/* ---- There and back ------------------------------------------------------ */

/* Equal to the first, and its bytes are too. */
static void assert_came_back(const calyx_filter *f, calyx_filter *back,
                             struct bytes bytes) {
    assert_same_filter(f, back);
    const struct bytes again = encoded(back);
    assert_same_bytes(bytes, again);
    free(again.at);
    calyx_free(back);
}

static void look_there_and_back(calyx_filter *f, const calyx_options *made) {
    const calyx_open_options how = {.key = made->key};
    const struct bytes bytes = encoded(f), pieces = written(f);

    assert_same_bytes(bytes, pieces);
    assert_came_back(f, decoded(bytes, &how), bytes);
    assert_came_back(f, viewed(bytes, &how), bytes);
    assert_came_back(f, read_back(bytes, &how), bytes);
    free(pieces.at);
    free(bytes.at);
}

static void bytes_make_the_same_filter_again(void **state) {
    (void)state;
    look_at_all(look_there_and_back);
}

static void look_at_later_life(calyx_filter *f, const calyx_options *made) {
    const calyx_open_options how = {.key = made->key};
    const struct bytes bytes = encoded(f);
    calyx_filter *back = decoded(bytes, &how);
    add_until_full(f, 0, 5 * CAPACITY);
    add_until_full(back, 0, 5 * CAPACITY);
    assert_same_filter(f, back);
    calyx_free(back);
    free(bytes.at);
}

/* Also where it grows, and where it is full. */
static void a_decoded_filter_goes_on_as_the_first_does(void **state) {
    (void)state;
    look_at_all(look_at_later_life);
}

static void counters_come_back(void **state) {
    (void)state;
    calyx_filter *f = make_filter((calyx_options){.kind = "counting"});
    for (int i = 0; i < 3; i++) add(f, "rose");
    add(f, "iris");
    const struct bytes bytes = encoded(f);

    calyx_filter *back = decoded(bytes, NULL);

    assert_int_equal(calyx_count(back, "rose", 4), 3);
    assert_ok(calyx_remove(back, "iris", 4, NULL));
    assert_false(has(back, "iris"));
    calyx_free(back);
    calyx_free(f);
    free(bytes.at);
}

static void a_filter_can_be_opened_for_many_threads(void **state) {
    (void)state;
    EACH_KIND(kind) {
        calyx_filter *f = make_filter((calyx_options){.kind = *kind});
        add(f, "rose");
        const struct bytes bytes = encoded(f);
        const calyx_open_options how = {.concurrent = true};
        calyx_filter *back = NULL;
        calyx_error why;

        const calyx_status status =
            calyx_decode(bytes.at, bytes.size, &how, &back, &why);

        if (kind_named(*kind)->atomic_kernels) {
            assert_ok(status);
            assert_true(info_of(back).concurrent && has(back, "rose"));
            add(back, "iris");
            assert_true(has(back, "iris"));
        } else {
            assert_int_equal(status, CALYX_CANNOT);
            assert_non_null(strstr(why.text, *kind));
        }
        calyx_free(back);
        calyx_free(f);
        free(bytes.at);
    }
}

static void a_comment_may_have_1000_bytes(void **state) {
    (void)state;
    calyx_filter *f = make_filter((calyx_options){0});
    char text[1002];
    memset(text, 0xFE, sizeof text);
    text[1001] = 0;
    assert_int_equal(calyx_set_comment(f, text), CALYX_BAD_ARGUMENT);
    text[1000] = 0;
    assert_ok(calyx_set_comment(f, text));
    const struct bytes bytes = encoded(f);

    calyx_filter *back = decoded(bytes, NULL), *view = viewed(bytes, NULL);

    assert_string_equal(calyx_comment(back), text);
    assert_string_equal(calyx_comment(view), text);
    calyx_free(view);
    calyx_free(back);
    calyx_free(f);
    free(bytes.at);
}

static void a_kernel_can_be_chosen_on_opening(void **state) {
    (void)state;
    calyx_filter *f = make_filter((calyx_options){0});
    const struct bytes bytes = encoded(f);
    for (const char *const *kernel = calyx_kernels(); *kernel; kernel++) {
        const calyx_open_options how = {.kernel = *kernel};
        calyx_filter *back = decoded(bytes, &how);
        calyx_filter *made = make_filter((calyx_options){.kernel = *kernel});
        assert_string_equal(info_of(back).kernel, info_of(made).kernel);
        calyx_free(made);
        calyx_free(back);
    }
    const calyx_open_options wrong = {.kernel = "abacus"};
    calyx_filter *back = NULL;
    assert_int_equal(calyx_decode(bytes.at, bytes.size, &wrong, &back, NULL),
                     CALYX_BAD_ARGUMENT);
    assert_null(back);
    calyx_free(f);
    free(bytes.at);
}

/* ---- Always the same bytes ----------------------------------------------- */

static void equal_filters_have_equal_bytes(void **state) {
    (void)state;
    EACH_KIND(kind) {
        const calyx_options want = {
            .kind = *kind, .capacity = 50, .growth = 2, .kernel = "scalar"};
        calyx_filter *f = make_filter(want);
        add_until_full(f, 0, 300);
        const struct bytes bytes = encoded(f);
        for (const char *const *kernel = calyx_kernels(); *kernel; kernel++) {
            calyx_options other = want;
            other.kernel = *kernel;
            calyx_filter *g = make_filter(other);
            add_until_full(g, 0, 300);
            const struct bytes of_g = encoded(g);
            assert_same_bytes(bytes, of_g);
            free(of_g.at);
            calyx_free(g);
        }
        calyx_free(f);
        free(bytes.at);
    }
}

/* Leave a pattern on the stack, where the next call will have its own. */
static __attribute__((noinline)) void soil_stack(int pattern) {
    volatile uint8_t soil[64 << 10];
    for (size_t i = 0; i < sizeof soil; i++) soil[i] = (uint8_t)pattern;
}

static struct bytes encoded_on_soil(const char *kind, int pattern) {
    void *heap = malloc(64 << 10);
    memset(heap, pattern, 64 << 10);
    free(heap);
    soil_stack(pattern);
    calyx_filter *f =
        make_filter((calyx_options){.kind = kind, .capacity = 50, .growth = 2});
    add_until_full(f, 0, 300);
    assert_ok(calyx_set_comment(f, "a long comment, and then a short one"));
    assert_ok(calyx_set_comment(f, "short"));
    const struct bytes bytes = room_for((size_t)calyx_encoded_size(f));
    memset(bytes.at, pattern, bytes.size);
    soil_stack(pattern);
    assert_ok(calyx_encode(f, bytes.at, bytes.size, NULL));
    calyx_free(f);
    return bytes;
}

static void nothing_but_the_filter_gets_into_its_bytes(void **state) {
    (void)state;
    EACH_KIND(kind) {
        const struct bytes clean = encoded_on_soil(*kind, 0),
                           soiled = encoded_on_soil(*kind, 0xAA);
        assert_same_bytes(clean, soiled);
        free(clean.at);
        free(soiled.at);
    }
}

/* ---- Sizes and pieces ---------------------------------------------------- */

static calyx_filter *make_large(const calyx_memory *hooks) {
    calyx_filter *f = make_filter(
        (calyx_options){.bits = (uint64_t)28 << 20, .memory = hooks});
    add_until_full(f, 0, 1000);
    return f;
}

static void a_large_filter_comes_in_pieces_of_a_mebibyte(void **state) {
    (void)state;
    calyx_filter *f = make_large(NULL);
    assert_true(info_of(f).bytes > (uint64_t)3 << 20);

    const struct bytes pieces = written(f), whole = encoded(f);

    assert_same_bytes(pieces, whole);
    free(pieces.at);
    free(whole.at);
    calyx_free(f);
}

static void a_buffer_of_another_size_is_refused(void **state) {
    (void)state;
    calyx_filter *f = make_filter((calyx_options){0});
    const struct bytes bytes = encoded(f);
    uint8_t before[64];
    memcpy(before, bytes.at, sizeof before);
    const size_t sizes[] = {0, 1, bytes.size - 1, bytes.size + 1, SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        calyx_error why;
        assert_int_equal(calyx_encode(f, bytes.at, sizes[i], &why),
                         CALYX_BAD_ARGUMENT);
        assert_non_null(strstr(why.text, "buffer"));
    }
    assert_memory_equal(before, bytes.at, sizeof before);
    calyx_free(f);
    free(bytes.at);
}

/* A chain like the chain of a filter grown as far as one can be, without
 * bodies. */
static uint32_t most_parts(double growth) {
    calyx_filter *f =
        make_filter((calyx_options){.capacity = 1, .growth = growth});
    struct part *const first = f->newest;
    struct part next = {0};
    uint32_t parts = 1;
    while (plan_growth(f, f->newest, &next)) {
        assert_ok(borrow_part(f, &next, NULL));
        parts++;
    }
    while (f->newest != first) {
        struct part *p = f->newest;
        f->newest = p->older;
        f->memory.release(f->memory.context, p, sizeof *p);
    }
    calyx_free(f);
    return parts;
}

static void no_filter_grows_to_more_parts_than_a_file_can_have(void **state) {
    (void)state;
    assert_true(most_parts(1.25) <= MOST_PARTS);
    assert_true(most_parts(2) <= MOST_PARTS);
}

/* ---- Stops on the way ---------------------------------------------------- */

static void writing_can_be_stopped_at_any_piece(void **state) {
    (void)state;
    struct books books = {0};
    const calyx_memory hooks = hooks_of(&books);
    calyx_filter *f = make_large(&hooks);
    const size_t blocks = books.blocks;
    const struct bytes bytes = room_for((size_t)calyx_encoded_size(f));
    size_t n = 1;
    for (;; n++) {
        struct pipe pipe = {.bytes = bytes, .stops_at = n};
        calyx_error why = {0};
        const calyx_status status = calyx_write(f, put, &pipe, &why);
        assert_int_equal(books.blocks, blocks);
        if (status == CALYX_OK) break;
        assert_int_equal(status, CALYX_IO);
        assert_int_equal(why.status, CALYX_IO);
        assert_non_null(strstr(why.text, "stopped"));
        assert_int_equal(pipe.calls, n); /* not asked again */
    }
    assert_true(n > 4);
    calyx_free(f);
    free(bytes.at);
}

static void reading_can_be_stopped_at_any_piece(void **state) {
    (void)state;
    calyx_filter *f = make_large(NULL);
    assert_ok(calyx_set_comment(f, "large"));
    const struct bytes bytes = encoded(f);
    struct books books = {0};
    const calyx_memory hooks = hooks_of(&books);
    const calyx_open_options how = {.memory = &hooks};
    size_t n = 1;
    for (;; n++) {
        struct pipe pipe = {.bytes = bytes, .stops_at = n};
        calyx_filter *back = NULL;
        calyx_error why = {0};
        const calyx_status status = calyx_read(get, &pipe, &how, &back, &why);
        if (status == CALYX_OK) {
            assert_same_filter(f, back);
            calyx_free(back);
            break;
        }
        assert_int_equal(status, CALYX_IO);
        assert_int_equal(why.status, CALYX_IO);
        assert_null(back);
        assert_int_equal(books.blocks, 0);
    }
    assert_true(n > 6);
    assert_int_equal(books.blocks, 0);
    calyx_free(f);
    free(bytes.at);
}

/* ---- Views --------------------------------------------------------------- */

static void a_view_must_be_aligned(void **state) {
    (void)state;
    calyx_filter *f = make_filter((calyx_options){0});
    const struct bytes bytes = encoded(f);
    const struct bytes room = room_for(bytes.size + 64);
    for (size_t shift = 1; shift < 64; shift++) {
        memcpy(room.at + shift, bytes.at, bytes.size);
        calyx_filter *view = NULL, *back = NULL;
        calyx_error why;
        assert_int_equal(
            calyx_view(room.at + shift, bytes.size, NULL, &view, &why),
            CALYX_BAD_ARGUMENT);
        assert_null(view);
        assert_non_null(strstr(why.text, "64"));
        assert_ok(calyx_decode(room.at + shift, bytes.size, NULL, &back, NULL));
        calyx_free(back); /* which takes any address */
    }
    calyx_free(f);
    free(room.at);
    free(bytes.at);
}

static void assert_cannot_change(calyx_filter *view, calyx_filter *other) {
    const uint64_t number = 1, hash = UINT64_C(0x9E3779B97F4A7C15);
    const calyx_key key = {"tulip", 5};
    size_t done = 9;
    assert_int_equal(calyx_add(view, "tulip", 5, NULL), CALYX_READ_ONLY);
    assert_int_equal(calyx_add_u64(view, number, NULL), CALYX_READ_ONLY);
    assert_int_equal(calyx_add_many(view, &key, 1, NULL, &done),
                     CALYX_READ_ONLY);
    assert_int_equal(done, 0);
    assert_int_equal(calyx_add_many_u64(view, &number, 1, NULL, NULL),
                     CALYX_READ_ONLY);
    assert_int_equal(calyx_add_hashes(view, &hash, 1, NULL, NULL),
                     CALYX_READ_ONLY);
    const uint32_t can = info_of(view).can;
    const bool removes = can & CALYX_CAN_REMOVE, merges = can & CALYX_CAN_MERGE;
    const bool intersects = can & CALYX_CAN_INTERSECT;
    const calyx_key rose = {"rose", 4};
    assert_int_equal(calyx_remove_many(view, &rose, 1, NULL, NULL),
                     removes ? CALYX_READ_ONLY : CALYX_CANNOT);
    assert_int_equal(calyx_remove(view, "rose", 4, NULL),
                     removes ? CALYX_READ_ONLY : CALYX_CANNOT);
    assert_int_equal(calyx_clear(view), CALYX_READ_ONLY);
    assert_int_equal(calyx_merge(view, other, NULL),
                     merges ? CALYX_READ_ONLY : CALYX_CANNOT);
    assert_int_equal(calyx_intersect(view, other, NULL),
                     intersects ? CALYX_READ_ONLY : CALYX_CANNOT);
    assert_int_equal(calyx_set_comment(view, "mine"), CALYX_READ_ONLY);
    assert_int_equal(calyx_sync(view, NULL), CALYX_READ_ONLY);
}

static void a_view_cannot_be_changed(void **state) {
    (void)state;
    EACH_KIND(kind) {
        calyx_filter *f = make_filter((calyx_options){.kind = *kind});
        calyx_filter *other = make_filter((calyx_options){.kind = *kind});
        add(f, "rose");
        const struct bytes bytes = encoded(f), before = encoded(f);
        calyx_filter *view = viewed(bytes, NULL);
        assert_true(info_of(view).read_only);

        assert_cannot_change(view, other);

        assert_ok(calyx_verify(view, NULL));
        if (info_of(view).can & CALYX_CAN_MERGE) { /* it can be a source */
            assert_ok(calyx_merge(other, view, NULL));
            assert_true(has(other, "rose"));
        }
        assert_true(has(view, "rose"));
        calyx_free(view);
        assert_same_bytes(bytes, before);
        calyx_free(other);
        calyx_free(f);
        free(before.at);
        free(bytes.at);
    }
}

static void a_copy_of_a_view_can_be_changed(void **state) {
    (void)state;
    EACH_KIND(kind) {
        calyx_filter *f = make_filter(
            (calyx_options){.kind = *kind, .capacity = 50, .growth = 2});
        add_until_full(f, 0, 200);
        assert_ok(calyx_set_comment(f, "first"));
        const struct bytes bytes = encoded(f);
        calyx_filter *view = viewed(bytes, NULL), *copy = NULL;

        assert_ok(calyx_copy(view, &copy, NULL));
        calyx_free(view);
        free(bytes.at);

        assert_false(info_of(copy).read_only);
        assert_same_filter(f, copy);
        add(copy, "tulip");
        add_until_full(copy, 200, 900);
        assert_true(has(copy, "tulip"));
        assert_ok(calyx_set_comment(copy, "second"));
        assert_ok(calyx_clear(copy));
        calyx_free(copy);
        calyx_free(f);
    }
}

/* ---- Secret keys --------------------------------------------------------- */

static calyx_filter *make_secret(void) {
    calyx_filter *f =
        make_filter((calyx_options){.hash = "siphash", .key = secret});
    add(f, "rose");
    return f;
}

static void assert_wrong_key(struct bytes bytes,
                             const calyx_open_options *how) {
    struct pipe pipe = {.bytes = bytes};
    calyx_filter *back = NULL;
    calyx_error why;
    assert_int_equal(calyx_decode(bytes.at, bytes.size, how, &back, &why),
                     CALYX_WRONG_KEY);
    assert_non_null(strstr(why.text, "secret key"));
    assert_int_equal(calyx_view(bytes.at, bytes.size, how, &back, NULL),
                     CALYX_WRONG_KEY);
    assert_int_equal(calyx_read(get, &pipe, how, &back, NULL), CALYX_WRONG_KEY);
    assert_null(back);
}

static void without_its_secret_key_a_filter_does_not_open(void **state) {
    (void)state;
    calyx_filter *f = make_secret();
    const struct bytes bytes = encoded(f);

    calyx_filter *back = decoded(bytes, &with_secret);
    assert_true(has(back, "rose"));
    calyx_free(back);

    assert_wrong_key(bytes, NULL);
    for (size_t bit = 0; bit < 8 * sizeof secret; bit++) {
        uint8_t wrong[16];
        memcpy(wrong, secret, sizeof wrong);
        wrong[bit / 8] = (uint8_t)(wrong[bit / 8] ^ 1u << bit % 8);
        assert_wrong_key(bytes, &(calyx_open_options){.key = wrong});
    }
    calyx_free(f);
    free(bytes.at);
}

/* Not even four bytes of it, which would stand there by chance once in some
 * hundred thousand files. */
static void a_secret_key_is_not_in_the_bytes(void **state) {
    (void)state;
    calyx_filter *f = make_secret();
    const struct bytes bytes = encoded(f);
    for (size_t at = 0; at + 4 <= bytes.size; at++)
        for (size_t i = 0; i + 4 <= sizeof secret; i++)
            assert_true(memcmp(bytes.at + at, secret + i, 4) != 0);
    calyx_free(f);
    free(bytes.at);
}

static void a_key_given_for_nothing_does_no_harm(void **state) {
    (void)state;
    calyx_filter *f = make_filter((calyx_options){0});
    add(f, "rose");
    const struct bytes bytes = encoded(f);
    calyx_filter *back = decoded(bytes, &with_secret);
    assert_true(has(back, "rose"));
    assert_ok(calyx_merge(back, f, NULL)); /* they still fit together */
    calyx_free(back);
    calyx_free(f);
    free(bytes.at);
}

/* ---- Memory -------------------------------------------------------------- */

static void what_is_larger_than_wanted_is_refused(void **state) {
    (void)state;
    calyx_filter *f = make_filter((calyx_options){0});
    const struct bytes bytes = encoded(f);
    struct books books = {0};
    const calyx_memory hooks = hooks_of(&books);
    calyx_open_options how = {.most_bytes = bytes.size - 1, .memory = &hooks};
    struct pipe pipe = {.bytes = bytes};
    calyx_filter *back = NULL;
    calyx_error why;
    assert_int_equal(calyx_decode(bytes.at, bytes.size, &how, &back, &why),
                     CALYX_BAD_ARGUMENT);
    assert_non_null(strstr(why.text, "the limit is"));
    assert_int_equal(calyx_view(bytes.at, bytes.size, &how, &back, NULL),
                     CALYX_BAD_ARGUMENT);
    assert_int_equal(calyx_read(get, &pipe, &how, &back, NULL),
                     CALYX_BAD_ARGUMENT);
    assert_int_equal(books.calls, 0);

    how.most_bytes = bytes.size;
    back = decoded(bytes, &how);
    calyx_free(back);
    calyx_free(f);
    free(bytes.at);
}

typedef calyx_status open_call(struct bytes bytes,
                               const calyx_open_options *how,
                               calyx_filter **out, calyx_error *why);

static calyx_status open_decoded(struct bytes bytes,
                                 const calyx_open_options *how,
                                 calyx_filter **out, calyx_error *why) {
    return calyx_decode(bytes.at, bytes.size, how, out, why);
}

static calyx_status open_viewed(struct bytes bytes,
                                const calyx_open_options *how,
                                calyx_filter **out, calyx_error *why) {
    return calyx_view(bytes.at, bytes.size, how, out, why);
}

static calyx_status open_read(struct bytes bytes, const calyx_open_options *how,
                              calyx_filter **out, calyx_error *why) {
    struct pipe pipe = {.bytes = bytes};
    return calyx_read(get, &pipe, how, out, why);
}

static open_call *const open_calls[] = {open_decoded, open_viewed, open_read};

static void opening_survives_any_lack_of_memory(open_call *open,
                                                struct bytes bytes,
                                                const calyx_filter *f) {
    for (size_t n = 1;; n++) {
        struct books books = {.fails_at = n};
        const calyx_memory hooks = hooks_of(&books);
        const calyx_open_options how = {.memory = &hooks};
        calyx_filter *back = NULL;
        calyx_error why = {0};
        const calyx_status status = open(bytes, &how, &back, &why);
        if (status == CALYX_OK) {
            assert_same_filter(f, back);
            calyx_free(back);
            assert_int_equal(books.blocks, 0);
            assert_true(n > info_of(f).parts);
            return;
        }
        assert_int_equal(status, CALYX_NO_MEMORY);
        assert_null(back);
        assert_int_equal(books.blocks, 0);
        assert_int_equal(why.status, CALYX_NO_MEMORY);
        assert_non_null(strstr(why.text, "memory"));
    }
}

static void without_memory_nothing_is_opened_and_nothing_lost(void **state) {
    (void)state;
    EACH_KIND(kind) {
        calyx_filter *f = make_filter(
            (calyx_options){.kind = *kind, .capacity = 50, .growth = 2});
        add_until_full(f, 0, 300);
        assert_ok(calyx_set_comment(f, "costs memory too"));
        const struct bytes bytes = encoded(f);
        for (int i = 0; i < 3; i++)
            opening_survives_any_lack_of_memory(open_calls[i], bytes, f);
        calyx_free(f);
        free(bytes.at);
    }
}

static void without_memory_nothing_is_encoded(void **state) {
    (void)state;
    struct books books = {0};
    const calyx_memory hooks = hooks_of(&books);
    calyx_filter *f = make_filter(
        (calyx_options){.capacity = 50, .growth = 2, .memory = &hooks});
    add_until_full(f, 0, 300);
    const struct bytes bytes = encoded(f);
    const size_t blocks = books.blocks;
    const calyx_info before = info_of(f);

    books.fails_at = books.calls + 1;
    calyx_error why = {0};
    assert_int_equal(calyx_encode(f, bytes.at, bytes.size, &why),
                     CALYX_NO_MEMORY);
    assert_non_null(strstr(why.text, "memory"));
    assert_int_equal(books.blocks, blocks);

    const struct bytes again = encoded(f); /* there is memory again */
    const calyx_info after = info_of(f);
    assert_same_info(&before, &after);
    assert_same_bytes(bytes, again);
    calyx_free(f);
    assert_int_equal(books.blocks, 0);
    free(again.at);
    free(bytes.at);
}

/* What is read takes about its own size; what is viewed takes a few kilobytes,
 * whatever its size. */
static void opening_takes_no_more_memory_than_the_bytes_call_for(void **state) {
    (void)state;
    calyx_filter *f = make_large(NULL);
    const struct bytes bytes = encoded(f);
    for (int i = 0; i < 3; i++) {
        struct books books = {0};
        const calyx_memory hooks = hooks_of(&books);
        const calyx_open_options how = {.memory = &hooks};
        calyx_filter *back = NULL;
        assert_ok(open_calls[i](bytes, &how, &back, NULL));
        const bool view = open_calls[i] == open_viewed;
        assert_true(books.most < (view ? 0 : bytes.size) + (16 << 10));
        calyx_free(back);
        assert_int_equal(books.blocks, 0);
    }
    calyx_free(f);
    free(bytes.at);
}

/* The header of a filter of this shape, which there is not, and room for some
 * bytes after it: as sound as the library itself would write it. */
static struct bytes header_claiming(const char *kind, uint64_t blocks,
                                    size_t size) {
    calyx_filter *f = make_filter((calyx_options){.kind = kind});
    struct part claimed = *f->newest;
    claimed.shape.blocks = blocks;
    calyx_filter liar = *f;
    liar.newest = &claimed;
    struct description d;
    assert_true(describe_filter(&liar, LINE_ALIGNED, &d));
    const struct bytes bytes = room_for(size);
    memset(bytes.at, 0, size);
    assert_true(d.layout.header_bytes <= size);
    store_header(&d, bytes.at);
    calyx_free(f);
    return bytes;
}

/* Around 2^31, 2^32 and 2^33 bits, and as large as a shape can be. */
static void a_large_claim_takes_no_memory(void **state) {
    (void)state;
    EACH_KIND(name) {
        const struct kind *kind = kind_named(*name);
        for (int power = 31; power <= 45; power++)
            for (int more = -1; more <= 1; more++) {
                uint64_t blocks = (UINT64_C(1) << power) / kind->block_bits;
                blocks += (uint64_t)(int64_t)more;
                if (power == 45 || blocks > kind->most_blocks)
                    blocks = kind->most_blocks;
                const struct bytes bytes = header_claiming(*name, blocks, 4096);
                struct books books = {0};
                const calyx_memory hooks = hooks_of(&books);
                const calyx_open_options how = {.memory = &hooks};
                calyx_filter *back = NULL;
                calyx_error why;
                assert_int_equal(
                    calyx_decode(bytes.at, bytes.size, &how, &back, &why),
                    CALYX_DAMAGED);
                assert_non_null(strstr(why.text, "4096"));
                assert_int_equal(
                    calyx_view(bytes.at, bytes.size, &how, &back, &why),
                    CALYX_DAMAGED);
                assert_null(back);
                assert_int_equal(books.calls, 0);
                free(bytes.at);
            }
    }
}

/* Who reads without knowing the size says how much is too much. */
static void a_large_claim_of_a_stream_is_bounded_by_most_bytes(void **state) {
    (void)state;
    const struct bytes bytes =
        header_claiming("line", kind_named("line")->most_blocks, 4096);
    struct books books = {0};
    const calyx_memory hooks = hooks_of(&books);
    const calyx_open_options how = {.memory = &hooks, .most_bytes = 1 << 20};
    struct pipe pipe = {.bytes = bytes};
    calyx_filter *back = NULL;
    assert_int_equal(calyx_read(get, &pipe, &how, &back, NULL),
                     CALYX_BAD_ARGUMENT);
    assert_null(back);
    assert_int_equal(books.calls, 0);
    free(bytes.at);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_make_the_same_filter_again),
        cmocka_unit_test(a_decoded_filter_goes_on_as_the_first_does),
        cmocka_unit_test(counters_come_back),
        cmocka_unit_test(a_filter_can_be_opened_for_many_threads),
        cmocka_unit_test(a_comment_may_have_1000_bytes),
        cmocka_unit_test(a_kernel_can_be_chosen_on_opening),
        cmocka_unit_test(equal_filters_have_equal_bytes),
        cmocka_unit_test(nothing_but_the_filter_gets_into_its_bytes),
        cmocka_unit_test(a_large_filter_comes_in_pieces_of_a_mebibyte),
        cmocka_unit_test(a_buffer_of_another_size_is_refused),
        cmocka_unit_test(no_filter_grows_to_more_parts_than_a_file_can_have),
        cmocka_unit_test(writing_can_be_stopped_at_any_piece),
        cmocka_unit_test(reading_can_be_stopped_at_any_piece),
        cmocka_unit_test(a_view_must_be_aligned),
        cmocka_unit_test(a_view_cannot_be_changed),
        cmocka_unit_test(a_copy_of_a_view_can_be_changed),
        cmocka_unit_test(without_its_secret_key_a_filter_does_not_open),
        cmocka_unit_test(a_secret_key_is_not_in_the_bytes),
        cmocka_unit_test(a_key_given_for_nothing_does_no_harm),
        cmocka_unit_test(what_is_larger_than_wanted_is_refused),
        cmocka_unit_test(without_memory_nothing_is_opened_and_nothing_lost),
        cmocka_unit_test(without_memory_nothing_is_encoded),
        cmocka_unit_test(opening_takes_no_more_memory_than_the_bytes_call_for),
        cmocka_unit_test(a_large_claim_takes_no_memory),
        cmocka_unit_test(a_large_claim_of_a_stream_is_bounded_by_most_bytes),
    };
    return RUN_TESTS(tests);
}
