/* The types of the module on a server that moves memory, runs out of it, and
 * cuts streams short: what a real one does too seldom to be tested with. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../module/layout/layout.h"
#include "../../module/layout/window.h"
#include "../../module/server/allocator.h"
#include "../../module/server/pages.h"
#include "../../module/server/prefault.h"
#include "mock_server.h"
#include "support.h"

static const struct {
    const struct filter_layout *layout;
    RedisModuleTypeMethods *type;
    int encoding;
} all[] = {{&native_layout, &mock_native, 2},
           {&redisbloom_layout, &mock_redisbloom, 4},
           {&valkey_layout, &mock_valkey, 1},
           {&window_layout, &mock_window, 1},
           {&cuckoo_layout, &mock_cuckoo, 4}};
enum { TYPES = sizeof all / sizeof *all };

static calyx_status add_items(struct filter *f, unsigned n) {
    calyx_status status = CALYX_OK;
    for (unsigned i = 0; i < n && status == CALYX_OK; i++) {
        const calyx_key key = {&i, sizeof i};
        bool fresh, changed;
        calyx_error why;
        struct addition a = {.keys = &key,
                             .n = 1,
                             .fresh = &fresh,
                             .changed = f->repeats_matter ? &changed : &fresh,
                             .why = &why};
        status = filter_add(f, &a);
    }
    return status;
}

static bool has_numbers(const struct filter *f, unsigned n) {
    for (unsigned i = 0; i < n; i++)
        if (!f->layout->has(f, &i, sizeof i)) return false;
    return true;
}

static struct filter *make(const struct filter_layout *layout, unsigned items) {
    struct filter_params params = {.layout = layout,
                                   .error = 0.01,
                                   .capacity = 100,
                                   .expansion = 2,
                                   .seed = 5,
                                   .window = 1000,
                                   .generations = 3,
                                   .tightening = 0.5,
                                   .bucket_size = 4,
                                   .iterations = 20};
    struct filter *f = NULL;
    calyx_error why;
    if (filter_new(&params, &f, &why) != CALYX_OK) return NULL;
    assert_ok(add_items(f, items));
    return f;
}

static void a_filter_that_was_moved_is_the_same(void **state) {
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        struct filter *f = make(all[i].layout, 5000);
        const uint64_t before = mock_digest(all[i].type, f);
        for (int turn = 0; turn < 20; turn++) {
            RedisModuleDefragCtx ctx = {0};
            void *value = f;
            assert_int_equal(all[i].type->defrag(&ctx, NULL, &value), 0);
            f = value;
            assert_true(ctx.moved > 5);
            assert_int_equal(mock_digest(all[i].type, f), before);
        }
        assert_true(has_numbers(f, 5000));
        assert_ok(add_items(f, 9000));
        assert_true(has_numbers(f, 9000));
        all[i].type->free(f);
    }
    assert_int_equal(mock_blocks, 0);
}

static void what_is_saved_is_loaded(void **state) {
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        struct filter *f = make(all[i].layout, 5000);
        RedisModuleIO io = {0};
        all[i].type->rdb_save(&io, f);
        struct filter *g = all[i].type->rdb_load(&io, all[i].encoding);
        assert_non_null(g);
        assert_int_equal(io.at, io.size);
        assert_int_equal(mock_digest(all[i].type, f),
                         mock_digest(all[i].type, g));
        all[i].type->free(f);
        all[i].type->free(g);
        free(io.bytes);
    }
    assert_int_equal(mock_blocks, 0);
}

static void a_stream_that_ends_early_is_refused_at_every_byte(void **state) {
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        struct filter *f = make(all[i].layout, 300);
        RedisModuleIO io = {0};
        all[i].type->rdb_save(&io, f);
        for (size_t size = 0; size < io.size; size++) {
            RedisModuleIO cut = {io.bytes, size, 0, false};
            assert_null(all[i].type->rdb_load(&cut, all[i].encoding));
        }
        all[i].type->free(f);
        free(io.bytes);
    }
    assert_int_equal(mock_blocks, 0);
}

static void without_memory_nothing_changes_and_nothing_leaks(void **state) {
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        bool done = false;
        for (size_t takes = 0; !done; takes++) {
            mock_takes_left = takes;
            struct filter *f = make(all[i].layout, 0), *copy = NULL;
            const unsigned items = 3000;
            if (f) {
                done = add_items(f, items) == CALYX_OK;
                struct filter_facts facts;
                f->layout->describe(f, &facts);
                assert_true(has_numbers(f, (unsigned)facts.items));
                done &= filter_copy(f, &copy, NULL) == CALYX_OK;
                if (copy) all[i].type->free(copy);
                all[i].type->free(f);
            }
            assert_int_equal(mock_blocks, 0);
            assert_true(takes < 1000);
        }
        mock_takes_left = SIZE_MAX;
    }
}

static void loading_without_memory_is_refused(void **state) {
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        struct filter *f = make(all[i].layout, 3000), *g = NULL;
        RedisModuleIO io = {0};
        all[i].type->rdb_save(&io, f);
        for (size_t takes = 0; !g; takes++) {
            RedisModuleIO again = {io.bytes, io.size, 0, false};
            mock_takes_left = takes;
            const size_t blocks = mock_blocks;
            g = all[i].type->rdb_load(&again, all[i].encoding);
            if (!g) assert_int_equal(mock_blocks, blocks);
            assert_true(takes < 1000);
        }
        mock_takes_left = SIZE_MAX;
        all[i].type->free(f);
        all[i].type->free(g);
        free(io.bytes);
    }
    assert_int_equal(mock_blocks, 0);
}

/* ---- Windows ------------------------------------------------------------- */

static struct filter *make_window(uint64_t capacity, uint32_t generations) {
    struct filter_params params = {.layout = &window_layout,
                                   .error = 0.01,
                                   .capacity = capacity,
                                   .expansion = 2,
                                   .seed = 5,
                                   .window = 1000,
                                   .generations = generations};
    struct filter *f = NULL;
    calyx_error why;
    assert_ok(filter_new(&params, &f, &why));
    return f;
}

static void rotating_a_window_allocates_no_memory(void **state) {
    (void)state;
    /* Panes that are written to, whose pages are renewed, and that have grown.
     */
    static const uint64_t capacities[] = {100, 1000000, 20000000, 3000};
    for (size_t i = 0; i < sizeof capacities / sizeof *capacities; i++) {
        struct filter *f = make_window(capacities[i], 2);
        assert_ok(add_items(f, 9000));
        const uint64_t takes = memory_allocations();
        const size_t blocks = mock_blocks;
        mock_takes_left = 0;
        window_rotate(f, 2, 0);
        assert_true(has_numbers(f, 9000));
        window_rotate(f, 1, 0);
        for (unsigned n = 0; n < 9000; n++)
            assert_false(f->layout->has(f, &n, sizeof n));
        window_rotate(f, 65, 0);
        assert_int_equal(memory_allocations(), takes);
        assert_true(mock_blocks <= blocks);
        mock_takes_left = SIZE_MAX;
        assert_ok(add_items(f, 9000));
        assert_true(has_numbers(f, 9000));
        mock_window.free(f);
    }
    assert_int_equal(mock_blocks, 0);
}

/* Load it as an RDB file would, and from the head of a dump. */
static int loads(struct filter *f) {
    RedisModuleIO io = {0};
    mock_window.rdb_save(&io, f);
    struct filter *g = mock_window.rdb_load(&io, 1), *h = NULL;
    const struct piece head = window_layout.dump_head(f);
    calyx_error why = {.text = ""};
    filter_load_head(layout_of_head(head.bytes, head.size), head.bytes,
                     head.size, &h, &why);
    const int loaded = (g != NULL) + (h != NULL);
    if (!h) assert_non_null(strstr(why.text, "do not fit together"));
    if (g) mock_window.free(g);
    if (h) mock_window.free(h);
    RM_Free(head.owned);
    free(io.bytes);
    return loaded;
}

static void a_window_of_generations_that_differ_is_refused(void **state) {
    (void)state;
    struct filter_params params = {.layout = &window_layout,
                                   .error = 0.01,
                                   .capacity = 600,
                                   .expansion = 2,
                                   .seed = 5,
                                   .kind = "line",
                                   .window = 1000,
                                   .generations = 3};
    struct filter_params other_seed = params, other_kind = params,
                         other_size = params, other_rate = params,
                         other_growth = params, fixed = params;
    other_seed.seed = 6;
    other_kind.kind = "flat";
    other_size.capacity = 6000;
    other_rate.error = 0.001;
    other_growth.expansion = 3;
    fixed.expansion = 0;
    struct filter_params *const others[] = {
        &params,     &other_seed,   &other_kind, &other_size,
        &other_rate, &other_growth, &fixed};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        for (uint32_t pane = 0; pane < 4; pane++) {
            struct filter *f = NULL, *g = NULL;
            calyx_error why;
            assert_ok(filter_new(&params, &f, &why));
            assert_ok(filter_new(others[i], &g, &why));
            assert_ok(add_items(f, 1000)); /* the newest has grown */
            const struct filter kept = f->window->pane[pane];
            f->window->pane[pane] = g->window->pane[pane];
            g->window->pane[pane] = kept;
            assert_int_equal(loads(f), i == 0 ? 2 : 0);
            mock_window.free(f);
            mock_window.free(g);
        }
    assert_int_equal(mock_blocks, 0);
}

static void a_renewed_block_is_zeros_and_others_stay(void **state) {
    (void)state;
    enum { SIZE = 9 << 20, AROUND = 100 };
    uint8_t *const bytes = malloc(SIZE + 2 * AROUND);
    assert_non_null(bytes);
    for (int turn = 0; turn < 3; turn++) {
        memset(bytes, 7, SIZE + 2 * AROUND);
        pages_renew(bytes + AROUND, SIZE);
        for (size_t i = 0; i < SIZE + 2 * AROUND; i++)
            if ((i < AROUND || i >= SIZE + AROUND ? 7 : 0) != bytes[i])
                fail_msg("byte %zu is %d", i, bytes[i]);
    }
    free(bytes);
}

/* ---- Children ------------------------------------------------------------ */

static bool stop;

static void *hold_pages(void *unused) {
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        prefault_pause(true);
        prefault_pause(false);
    }
    return unused;
}

/* What a child of BGSAVE could wait for is a lock that another thread had when
 * it was born. Each takes and gives a block of that size, as it would to
 * save a filter of half a terabyte. */
static void a_child_does_not_wait_for_threads_it_has_not(void **state) {
    (void)state;
    enum { CHILDREN = 60, SECONDS = 300, BYTES = 8 << 20 };
    const calyx_memory *m = &aligned_memory;
    void *block = m->allocate(m->context, BYTES, 64); /* starts the thread */
    assert_non_null(block);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, hold_pages, NULL), 0);
    int sound = 0;
    for (int i = 0; i < CHILDREN && sound == i; i++) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(SECONDS);
            void *other = m->allocate(m->context, BYTES, 64);
            if (other) m->release(m->context, other, BYTES);
            _exit(other ? 0 : 1);
        }
        int status;
        sound += waitpid(child, &status, 0) == child && status == 0;
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    m->release(m->context, block, BYTES);
    assert_int_equal(sound, CHILDREN);
    assert_int_equal(mock_blocks, 0);
}

/* First inputs for fuzz/fuzz_module.c. */
static int write_corpus(const char *folder) {
    static const unsigned items[] = {0, 50, 300};
    for (int i = 0; i < TYPES; i++)
        for (int n = 0; n < 3; n++) {
            char path[500];
            struct filter *f = make(all[i].layout, items[n]);
            RedisModuleIO io = {0};
            all[i].type->rdb_save(&io, f);
            snprintf(path, sizeof path, "%s/type%d-%u", folder, i, items[n]);
            FILE *file = fopen(path, "wb");
            if (!file) return 2;
            fputc(all[i].encoding * 5 + i, file); /* of 5 types */
            fwrite(io.bytes, io.size, 1, file);
            fclose(file);
            all[i].type->free(f);
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
        cmocka_unit_test(rotating_a_window_allocates_no_memory),
        cmocka_unit_test(a_window_of_generations_that_differ_is_refused),
        cmocka_unit_test(a_renewed_block_is_zeros_and_others_stay),
        cmocka_unit_test(a_child_does_not_wait_for_threads_it_has_not),
    };
    return RUN_TESTS(tests);
}
