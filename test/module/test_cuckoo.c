/* Cuckoo filters on a server that moves memory, runs out of it, and cuts
 * streams short; and what only a single step of a compaction can show. */
#include <stdlib.h>
#include <string.h>

#include "../../module/layout/layout.h"
#include "../../module/server/allocator.h"
#include "mock_server.h"
#include "support.h"

static struct cuckoo_hash hash_of(unsigned number) {
    return cuckoo_hash_of(&number, sizeof number);
}

static unsigned add_range(struct cuckoo *c, unsigned from, unsigned to) {
    uint64_t lines = 0;
    unsigned n = from;
    while (n < to && cuckoo_add(c, hash_of(n), &lines, NULL) == CALYX_OK) n++;
    return n;
}

static bool has_range(const struct cuckoo *c, unsigned from, unsigned to) {
    for (unsigned n = from; n < to; n++)
        if (!cuckoo_has(c, hash_of(n))) return false;
    return true;
}

/* With parts that double. */
static struct filter *make(unsigned items) {
    struct filter_params params = {.layout = &cuckoo_layout,
                                   .capacity = 64,
                                   .bucket_size = 4,
                                   .iterations = 20,
                                   .expansion = 2};
    struct filter *f = NULL;
    if (filter_new(&params, &f, NULL) != CALYX_OK) return NULL;
    assert_int_equal(add_range(f->cuckoo, 0, items), items);
    return f;
}

static void a_cuckoo_filter_that_was_moved_is_the_same(void **state) {
    (void)state;
    struct filter *f = make(5000);
    const uint64_t before = mock_digest(&mock_cuckoo, f);
    for (int turn = 0; turn < 20; turn++) {
        RedisModuleDefragCtx ctx = {0};
        void *value = f;
        assert_int_equal(mock_cuckoo.defrag(&ctx, NULL, &value), 0);
        f = value;
        assert_int_equal(ctx.moved, 3 + f->cuckoo->held);
        assert_int_equal(mock_digest(&mock_cuckoo, f), before);
    }
    assert_int_equal(add_range(f->cuckoo, 5000, 9000), 9000);
    assert_true(has_range(f->cuckoo, 0, 9000));
    mock_cuckoo.free(f);
    assert_int_equal(mock_blocks, 0);
}

static void a_saved_cuckoo_filter_is_loaded_or_refused_at_every_byte(
    void **state) {
    (void)state;
    struct filter *f = make(300);
    RedisModuleIO io = {0};
    mock_cuckoo.rdb_save(&io, f);
    struct filter *again = mock_cuckoo.rdb_load(&io, 4);
    assert_non_null(again);
    assert_int_equal(mock_digest(&mock_cuckoo, f),
                     mock_digest(&mock_cuckoo, again));
    mock_cuckoo.free(again);
    for (size_t size = 0; size < io.size; size++) {
        RedisModuleIO cut = {io.bytes, size, 0, false};
        assert_null(mock_cuckoo.rdb_load(&cut, 4));
    }
    mock_cuckoo.free(f);
    free(io.bytes);
    assert_int_equal(mock_blocks, 0);
}

static void without_memory_a_cuckoo_filter_stays_as_it_was(void **state) {
    (void)state;
    enum { ITEMS = 3000 };
    bool done = false;
    for (size_t takes = 0; !done; takes++) {
        mock_takes_left = takes;
        struct filter *f = make(0), *copy = NULL;
        if (f) {
            const unsigned added = add_range(f->cuckoo, 0, ITEMS);
            assert_int_equal(f->cuckoo->items, added);
            assert_true(has_range(f->cuckoo, 0, added));
            done = added == ITEMS && filter_copy(f, &copy, NULL) == CALYX_OK;
            if (copy) mock_cuckoo.free(copy);
            mock_cuckoo.free(f);
        }
        assert_int_equal(mock_blocks, 0);
        assert_true(takes < 1000);
    }
    mock_takes_left = SIZE_MAX;
}

/* ---- Compaction ---------------------------------------------------------- */

/* A filter of three parts or more, that can lose one. */
static struct filter *make_sparse(void) {
    struct filter *f = make(1000);
    assert_true(f->cuckoo->parts > 3);
    for (unsigned n = 0; n < 700; n++)
        assert_true(cuckoo_remove(f->cuckoo, hash_of(n)));
    return f;
}

static void a_compaction_by_single_lines_is_that_at_once(void **state) {
    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        struct filter *f = make_sparse(), *g = make_sparse();
        struct cuckoo *const c = f->cuckoo, *const other = g->cuckoo;
        cuckoo_compact(c, whole);
        cuckoo_finish_compaction(c);
        cuckoo_compact(other, whole);
        int steps = 0;
        while (cuckoo_is_compacting(other)) {
            assert_true(has_range(other, 700, 1000));
            assert_true(cuckoo_compact_step(other, 1) <= 1 + 2 * other->held);
            steps++;
        }
        assert_true(steps > 20);
        assert_true(c->parts < c->held);
        assert_int_equal(cuckoo_digest(c), cuckoo_digest(other));
        assert_true(has_range(other, 700, 1000));
        assert_int_equal(other->items, 300);
        filter_free(f);
        filter_free(g);
    }
    assert_int_equal(mock_blocks, 0);
}

static void a_part_that_was_dropped_is_used_again_or_freed(void **state) {
    (void)state;
    struct filter *f = make_sparse(), *g = make_sparse();
    struct cuckoo *const c = f->cuckoo, *const other = g->cuckoo;
    cuckoo_compact(c, true);
    cuckoo_finish_compaction(c);
    cuckoo_compact(other, true);
    cuckoo_finish_compaction(other);
    const size_t blocks = mock_blocks;
    cuckoo_trim(other);
    assert_true(mock_blocks < blocks);
    assert_int_equal(other->held, other->parts);
    assert_int_equal(add_range(c, 2000, 5000), 5000);
    assert_int_equal(add_range(other, 2000, 5000), 5000);
    assert_int_equal(cuckoo_digest(c), cuckoo_digest(other));
    assert_int_equal(c->bytes, other->bytes);
    filter_free(f);
    filter_free(g);
    assert_int_equal(mock_blocks, 0);
}

static void a_save_in_the_midst_of_a_compaction_is_what_comes_out(
    void **state) {
    (void)state;
    struct filter *f = make_sparse(), *g = make_sparse();
    struct cuckoo *const c = f->cuckoo, *const other = g->cuckoo;
    RedisModuleIO midst = {0}, end = {0};
    cuckoo_compact(c, true);
    cuckoo_compact_step(c, 5);
    assert_true(cuckoo_is_compacting(c));
    const size_t blocks = mock_blocks;
    mock_cuckoo.rdb_save(&midst, f); /* as a child does: frees nothing */
    assert_int_equal(mock_blocks, blocks);
    cuckoo_compact(other, true);
    cuckoo_finish_compaction(other);
    mock_cuckoo.rdb_save(&end, g);
    assert_int_equal(midst.size, end.size);
    assert_memory_equal(midst.bytes, end.bytes, end.size);
    free(midst.bytes);
    free(end.bytes);
    filter_free(f);
    filter_free(g);
    assert_int_equal(mock_blocks, 0);
}

static void an_item_that_finds_no_place_leaves_every_slot_as_it_was(
    void **state) {
    (void)state;
    const struct cuckoo_params params = {
        .capacity = 64, .bucket_size = 2, .iterations = 65535, .expansion = 0};
    struct cuckoo *c = NULL;
    uint64_t lines = 0;
    assert_ok(cuckoo_new(&params, &plain_memory, &c, NULL));
    unsigned refused = 0;
    for (unsigned n = 0; n < 200; n++) {
        const uint64_t before = cuckoo_digest(c);
        if (cuckoo_add(c, hash_of(n), &lines, NULL) == CALYX_OK) continue;
        assert_int_equal(cuckoo_digest(c), before);
        refused++;
    }
    assert_true(refused > 100 && c->items > 50);
    cuckoo_free(c);
    assert_int_equal(mock_blocks, 0);
}

int main(void) {
    mock_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cuckoo_filter_that_was_moved_is_the_same),
        cmocka_unit_test(
            a_saved_cuckoo_filter_is_loaded_or_refused_at_every_byte),
        cmocka_unit_test(without_memory_a_cuckoo_filter_stays_as_it_was),
        cmocka_unit_test(a_compaction_by_single_lines_is_that_at_once),
        cmocka_unit_test(a_part_that_was_dropped_is_used_again_or_freed),
        cmocka_unit_test(a_save_in_the_midst_of_a_compaction_is_what_comes_out),
        cmocka_unit_test(
            an_item_that_finds_no_place_leaves_every_slot_as_it_was),
    };
    return RUN_TESTS(tests);
}
