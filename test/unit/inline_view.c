/* Keys added and asked for through <calyx/inline.h>: the same answers and the
 * same bits as through the functions, for every filter there is. Compiled for
 * AVX2 where there is any, and run once for each level of the library. */
#include <calyx/inline.h>
#include <stdio.h>

#include "filter/filter.h"
#include "support.h"

enum { KEYS = 3000 };

/* Where nothing is inlined, both sides would be the same call. */
static void need_inlining(void) {
    calyx_filter *f = make_filter((calyx_options){.kind = "line"});
    calyx_inline_view quick;
    calyx_inline_view_of(f, &quick);
    const bool inlines = CALYX_INLINES && quick.words[CALYX_INLINE_NUMBER];
    calyx_free(f);
    if (inlines) return;
    print_message("SKIPPED: nothing is inlined without AVX2, or by the scalar "
                  "kernel\n");
    skip();
}

static void add_hash_both_ways(calyx_filter *plain,
                               const calyx_inline_view *quick, uint64_t hash) {
    for (int i = 0; i < 2; i++) {
        bool fresh = false, quick_fresh = true;
        const calyx_status status = calyx_add_hash(plain, hash, &fresh);
        assert_int_equal(calyx_inline_add_hash(quick, hash, &quick_fresh),
                         status);
        if (status == CALYX_OK) assert_int_equal(quick_fresh, fresh);
    }
}

/* As many keys as there is room for, some of them twice. */
static void use_both_ways(calyx_options want) {
    calyx_filter *plain = make_filter(want), *f = make_filter(want);
    calyx_inline_view quick;
    struct generator dice = {1};
    calyx_inline_view_of(f, &quick);

    for (int i = 0; i < KEYS; i++) {
        const uint64_t number =
            i % 8 ? random_word(&dice) : random_below(&dice, 100);
        bool fresh = false, quick_fresh = true;
        const calyx_status status = calyx_add_u64(plain, number, &fresh);
        assert_int_equal(calyx_inline_add_u64(&quick, number, &quick_fresh),
                         status);
        if (status == CALYX_OK) assert_int_equal(quick_fresh, fresh);
        calyx_inline_add_u64(&quick, number, NULL);
        calyx_add_u64(plain, number, NULL);
        add_hash_both_ways(plain, &quick, random_word(&dice));
    }

    assert_true(same_bodies(plain, f));
    assert_int_equal(info_of(f).items, info_of(plain).items);
    for (int i = 0; i < KEYS; i++) {
        const uint64_t number =
            i % 2 ? random_word(&dice) : random_below(&dice, 200);
        assert_int_equal(calyx_inline_has_u64(&quick, number),
                         calyx_has_u64(plain, number));
        const uint64_t hash =
            i % 2 ? random_word(&dice) : calyx_hash_u64(f, number);
        assert_int_equal(calyx_inline_has_hash(&quick, hash),
                         calyx_has_hash(plain, hash));
    }
    calyx_free(plain);
    calyx_free(f);
}

static void inline_calls_answer_like_functions_for_every_filter(void **state) {
    (void)state;
    need_inlining();
    const uint64_t seeds[] = {0, 1, UINT64_C(0x8123456789ABCDEF)};
    const uint8_t key[16] = {1, 2, 3};
    for (const char *const *kind = adding_kinds(); *kind; kind++)
        for (const char *const *hash = calyx_hashes(); *hash; hash++)
            for (int i = 0; i < 3; i++) {
                calyx_options want = {.kind = *kind,
                                      .hash = *hash,
                                      .capacity = KEYS,
                                      .key = key,
                                      .seed = seeds[i]};
                if (hash_named(*hash)->keyed)
                    want.seed = 0;
                else
                    want.key = NULL;
                use_both_ways(want);
                want.capacity = 200;
                want.strict = true;
                use_both_ways(want);
                want.strict = false;
                want.growth = 2;
                use_both_ways(want);
            }
}

static void inline_calls_answer_like_functions_for_any_probes(void **state) {
    (void)state;
    need_inlining();
    for (uint32_t probes = 1; probes <= 16; probes++)
        use_both_ways((calyx_options){.capacity = KEYS, .probes = probes});
}

static void only_a_plain_line_filter_is_inlined(void **state) {
    (void)state;
    const struct {
        calyx_options want;
        bool inlined;
    } cases[] = {{{.kind = "line"}, true},
                 {{.kind = "line", .seed = 5}, true},
                 {{.kind = "line", .kernel = "scalar"}, false},
                 {{.kind = "line", .hash = "xxh64"}, false},
                 {{.kind = "line", .strict = true}, false},
                 {{.kind = "line", .growth = 2}, false},
                 {{.kind = "line", .concurrent = true}, false},
                 {{.kind = "counting"}, false},
                 {{.kind = "split", .hash = "xxh3"}, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        calyx_filter *f = make_filter(cases[i].want);
        const bool vectors = f->kernel->level != CPU_SCALAR;
        calyx_inline_view quick;
        calyx_inline_view_of(f, &quick);
        assert_int_equal(quick.words[CALYX_INLINE_NUMBER] != 0,
                         cases[i].inlined && vectors);
        calyx_free(f);
    }
}

/* A later library numbers its layout otherwise, and means other things by the
 * words: the program calls it, and reads none of them. */
static void a_view_of_another_layout_is_answered_by_a_call(void **state) {
    (void)state;
    const uint64_t others[] = {0, CALYX_INLINE_LAYOUT + 1, UINT64_MAX};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        calyx_filter *f = make_filter((calyx_options){.capacity = KEYS});
        calyx_inline_view view;
        calyx_inline_view_of(f, &view);
        view.words[CALYX_INLINE_NUMBER] = others[i];
        for (size_t j = CALYX_INLINE_FILTER + 1;
             j < sizeof view.words / sizeof view.words[0]; j++)
            view.words[j] = 1; /* no address */
        for (uint64_t n = 0; n < KEYS; n++) {
            bool fresh = false;
            assert_ok(calyx_inline_add_u64(&view, n, &fresh));
            assert_true(calyx_inline_has_u64(&view, n));
            assert_true(calyx_inline_has_hash(&view, calyx_hash_u64(f, n)));
        }
        uint64_t found = 0;
        for (uint64_t n = KEYS; n < 2 * KEYS; n++)
            found += calyx_inline_has_u64(&view, n);
        assert_in_range(found, 0, KEYS / 30); /* 1 % are expected */
        assert_in_range(info_of(f).items, KEYS * 95 / 100, KEYS);
        calyx_free(f);
    }
}

int main(void) {
#if ON_X86
    if (CALYX_INLINES && !__builtin_cpu_supports("avx2")) {
        fputs("this test was compiled for AVX2, which is not here\n", stderr);
        return 1;
    }
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inline_calls_answer_like_functions_for_every_filter),
        cmocka_unit_test(inline_calls_answer_like_functions_for_any_probes),
        cmocka_unit_test(only_a_plain_line_filter_is_inlined),
        cmocka_unit_test(a_view_of_another_layout_is_answered_by_a_call),
    };
    return RUN_TESTS(tests);
}
