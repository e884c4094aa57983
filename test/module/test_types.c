/* The types of the module on a server that moves memory, runs out of it, and
 * cuts streams short: what a real one does too seldom to be tested with. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../module/filter.h"
#include "../../module/memory.h"
#include "mock_server.h"
#include "support.h"

static const struct {
    const struct layout *layout;
    RedisModuleTypeMethods *type;
} both[] = {{&native_layout, &mock_native},
            {&redisbloom_layout, &mock_redisbloom}};

static calyx_status add_numbers(struct filter *f, unsigned n) {
    calyx_status status = CALYX_OK;
    for (unsigned i = 0; i < n && status == CALYX_OK; i++) {
        const calyx_key key = {&i, sizeof i};
        bool fresh;
        size_t done;
        calyx_error why;
        status = filter_add(f, &key, 1, &fresh, &done, &why);
    }
    return status;
}

static bool has_numbers(const struct filter *f, unsigned n) {
    for (unsigned i = 0; i < n; i++)
        if (!f->layout->has(f, &i, sizeof i)) return false;
    return true;
}

static struct filter *make(const struct layout *layout, unsigned items) {
    struct wish wish = {.layout = layout,
                        .error = 0.01,
                        .capacity = 100,
                        .expansion = 2,
                        .seed = 5};
    struct filter *f = NULL;
    calyx_error why;
    if (filter_new(&wish, &f, &why) != CALYX_OK) return NULL;
    assert_ok(add_numbers(f, items));
    return f;
}

static void a_filter_that_was_moved_is_the_same(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct filter *f = make(both[i].layout, 5000);
        const uint64_t before = mock_digest(both[i].type, f);
        for (int turn = 0; turn < 20; turn++) {
            RedisModuleDefragCtx ctx = {0};
            void *value = f;
            assert_int_equal(both[i].type->defrag(&ctx, NULL, &value), 0);
            f = value;
            assert_true(ctx.moved > 5);
            assert_int_equal(mock_digest(both[i].type, f), before);
        }
        assert_true(has_numbers(f, 5000));
        assert_ok(add_numbers(f, 9000));
        assert_true(has_numbers(f, 9000));
        both[i].type->free(f);
    }
    assert_int_equal(mock_blocks, 0);
}

static void what_is_saved_is_loaded(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct filter *f = make(both[i].layout, 5000);
        RedisModuleIO io = {0};
        both[i].type->rdb_save(&io, f);
        struct filter *g = both[i].type->rdb_load(&io, i ? 4 : 2);
        assert_non_null(g);
        assert_int_equal(io.at, io.size);
        assert_int_equal(mock_digest(both[i].type, f),
                         mock_digest(both[i].type, g));
        both[i].type->free(f);
        both[i].type->free(g);
        free(io.bytes);
    }
    assert_int_equal(mock_blocks, 0);
}

static void a_stream_that_ends_early_is_refused_at_every_byte(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct filter *f = make(both[i].layout, 300);
        RedisModuleIO io = {0};
        both[i].type->rdb_save(&io, f);
        for (size_t size = 0; size < io.size; size++) {
            RedisModuleIO cut = {io.bytes, size, 0, false};
            assert_null(both[i].type->rdb_load(&cut, i ? 4 : 2));
        }
        both[i].type->free(f);
        free(io.bytes);
    }
    assert_int_equal(mock_blocks, 0);
}

static void without_memory_nothing_changes_and_nothing_leaks(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        bool all = false;
        for (size_t takes = 0; !all; takes++) {
            mock_takes_left = takes;
            struct filter *f = make(both[i].layout, 0), *copy = NULL;
            const unsigned items = 3000;
            if (f) {
                all = add_numbers(f, items) == CALYX_OK;
                struct facts facts;
                f->layout->tell(f, &facts);
                assert_true(has_numbers(f, (unsigned)facts.items));
                all &= filter_copy(f, &copy, NULL) == CALYX_OK;
                if (copy) both[i].type->free(copy);
                both[i].type->free(f);
            }
            assert_int_equal(mock_blocks, 0);
            assert_true(takes < 1000);
        }
        mock_takes_left = SIZE_MAX;
    }
}

static void loading_without_memory_is_refused(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct filter *f = make(both[i].layout, 3000), *g = NULL;
        RedisModuleIO io = {0};
        both[i].type->rdb_save(&io, f);
        for (size_t takes = 0; !g; takes++) {
            RedisModuleIO again = {io.bytes, io.size, 0, false};
            mock_takes_left = takes;
            const size_t blocks = mock_blocks;
            g = both[i].type->rdb_load(&again, i ? 4 : 2);
            if (!g) assert_int_equal(mock_blocks, blocks);
            assert_true(takes < 1000);
        }
        mock_takes_left = SIZE_MAX;
        both[i].type->free(f);
        both[i].type->free(g);
        free(io.bytes);
    }
    assert_int_equal(mock_blocks, 0);
}

/* First inputs for fuzz/fuzz_module.c. */
static int write_corpus(const char *folder) {
    static const unsigned items[] = {0, 50, 300};
    for (int i = 0; i < 2; i++)
        for (int n = 0; n < 3; n++) {
            char path[500];
            struct filter *f = make(both[i].layout, items[n]);
            RedisModuleIO io = {0};
            both[i].type->rdb_save(&io, f);
            snprintf(path, sizeof path, "%s/%s-%u", folder,
                     both[i].layout->name, items[n]);
            FILE *file = fopen(path, "wb");
            if (!file) return 2;
            fputc(i ? 4 << 1 | 1 : 2 << 1, file);
            fwrite(io.bytes, io.size, 1, file);
            fclose(file);
            both[i].type->free(f);
            free(io.bytes);
        }
    return 0;
}

int main(int argc, char **argv) {
    mock_start();
    if (argc == 2) return write_corpus(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_filter_that_was_moved_is_the_same),
        cmocka_unit_test(what_is_saved_is_loaded),
        cmocka_unit_test(a_stream_that_ends_early_is_refused_at_every_byte),
        cmocka_unit_test(without_memory_nothing_changes_and_nothing_leaks),
        cmocka_unit_test(loading_without_memory_is_refused),
    };
    return RUN_TESTS(tests);
}
