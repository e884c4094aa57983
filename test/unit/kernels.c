/* Every kernel of a kind leaves the bits, and gives the answers, of the plain
 * scalar one, which defines them. */
#include <stdlib.h>
#include <string.h>

#include "filter/filter.h"
#include "support.h"

/* ---- All there are ------------------------------------------------------- */

/* A body of exactly its size, so that a sanitizer sees every step outside. */
struct bed {
    uint8_t *body;
    size_t size;
};

static struct bed make_bed(const struct kind *kind, const struct shape *shape) {
    struct bed bed = {.size = (size_t)body_bytes(kind, shape)};
    bed.body = aligned_alloc(64, bed.size);
    assert_non_null(bed.body);
    memset(bed.body, 0, bed.size);
    return bed;
}

/* cmocka's own comparison takes a byte at a time. */
static void assert_same(const struct bed *is, const struct bed *want) {
    assert_true(memcmp(is->body, want->body, want->size) == 0);
}

static const struct kernel *scalar_of(const struct kind *kind) {
    return kernel_up_to(kind->kernels, CPU_SCALAR);
}

typedef void look(const struct kind *kind, const struct shape *shape,
                  const struct kernel *kernel);

static void on_list(const struct kind *kind, const struct shape *shape,
                    const struct kernel *const *list, look *test) {
    for (; list; list++) {
        if ((*list)->level <= cpu_best()) test(kind, shape, *list);
        if ((*list)->level == CPU_SCALAR) break;
    }
}

/* Run a test on every kernel that this machine runs, plain and shared, of every
 * kind, with every number of probes and various numbers of blocks. */
static void on_every_kernel(look *test) {
    static const uint64_t blocks[] = {1, 2, 3, 7, 1000, 2003};
    for (const char *const *name = calyx_kinds(); *name; name++) {
        const struct kind *kind = kind_named(*name);
        for (size_t b = 0; b < sizeof blocks / sizeof blocks[0]; b++)
            for (uint32_t k = kind->probe_step; k <= kind->most_probes;
                 k += kind->probe_step) {
                const struct shape shape = {blocks[b], k};
                on_list(kind, &shape, kind->kernels, test);
                on_list(kind, &shape, kind->shared, test);
            }
    }
}

/* ---- Hashes -------------------------------------------------------------- */

enum { HASHES = 600 };

/* The first are at the edges; every fifth is there twice. */
static const uint64_t *some_hashes(uint64_t seed) {
    static const uint64_t edges[] = {0,
                                     UINT64_MAX,
                                     1,
                                     UINT64_C(1) << 63,
                                     UINT32_MAX,
                                     ~(uint64_t)UINT32_MAX,
                                     UINT64_C(0x8000000080000000)};
    static uint64_t hashes[HASHES];
    struct generator random = {seed};
    for (size_t i = 0; i < HASHES; i++)
        hashes[i] = i % 5 == 4 ? hashes[i - 3] : random_word(&random);
    memcpy(hashes, edges, sizeof edges);
    return hashes;
}

/* Runs of these sizes are added one after the other, with the bodies compared
 * in between: a small body is soon full of ones, and would show no more. */
static const size_t runs[] = {0, 1, 1, 2, 3, 5, 12, 13, 50, 200, 256};
enum { RUNS = sizeof runs / sizeof runs[0] };

/* ---- The tests ----------------------------------------------------------- */

static void add_singly(const struct kind *kind, const struct shape *shape,
                       const struct kernel *kernel) {
    const struct kernel *scalar = scalar_of(kind);
    const uint64_t *hash = some_hashes(shape->blocks);
    const struct bed want = make_bed(kind, shape), is = make_bed(kind, shape);
    for (size_t r = 0; r < RUNS; r++) {
        for (size_t i = 0; i < runs[r]; i++, hash++) {
            const bool missing = !scalar->has(want.body, shape, *hash);
            assert_int_equal(kernel->has(is.body, shape, *hash), !missing);
            assert_int_equal(scalar->add(want.body, shape, *hash), missing);
            assert_int_equal(kernel->add(is.body, shape, *hash), missing);
            assert_true(kernel->has(is.body, shape, *hash));
        }
        assert_same(&is, &want);
    }
    free(want.body);
    free(is.body);
}

static void every_kernel_leaves_the_bits_of_the_scalar_one(void **state) {
    (void)state;
    on_every_kernel(add_singly);
}

/* `ahead` goes from none to all that are left, as far as a run goes. */
static void add_in_runs(const struct kind *kind, const struct shape *shape,
                        const struct kernel *kernel) {
    const struct kernel *scalar = scalar_of(kind);
    const uint64_t *hashes = some_hashes(shape->blocks);
    const struct bed want = make_bed(kind, shape), is = make_bed(kind, shape);
    for (size_t r = 0, at = 0; r < RUNS; at += runs[r++]) {
        bool missing[RUN], fresh[RUN];
        size_t total = 0;
        for (size_t i = 0; i < runs[r]; i++)
            total += missing[i] = scalar->add(want.body, shape, hashes[at + i]);
        const size_t left = HASHES - at - runs[r];
        const size_t ahead = r % 3 == 0 ? 0 : r % 3 == 1 ? left : left / 7;

        assert_int_equal(
            kernel->add_run(is.body, shape, hashes + at, 0, runs[r], NULL), 0);
        assert_int_equal(kernel->add_run(is.body, shape, hashes + at, runs[r],
                                         ahead, r % 2 ? fresh : NULL),
                         total);

        if (r % 2) assert_memory_equal(fresh, missing, runs[r]);
        assert_same(&is, &want);
    }
    free(want.body);
    free(is.body);
}

static void runs_leave_the_bits_that_singles_do(void **state) {
    (void)state;
    on_every_kernel(add_in_runs);
}

static void ask_in_runs(const struct kind *kind, const struct shape *shape,
                        const struct kernel *kernel) {
    static const size_t aheads[] = {0, 1, 11, 12, 13, 40, 256};
    const struct kernel *scalar = scalar_of(kind);
    const uint64_t *hashes = some_hashes(shape->blocks + 1);
    const struct bed bed = make_bed(kind, shape);
    const size_t members = shape->blocks < 10 ? 12 : HASHES / 2;
    for (size_t i = 0; i < members; i++)
        scalar->add(bed.body, shape, hashes[2 * (i % (HASHES / 2))]);
    bool answers[HASHES];
    for (size_t i = 0; i < HASHES; i++)
        answers[i] = scalar->has(bed.body, shape, hashes[i]);

    for (size_t a = 0; a < sizeof aheads / sizeof aheads[0]; a++)
        for (size_t r = 0, at = 0; r < RUNS; at += runs[r++]) {
            bool found[RUN];
            size_t total = 0;
            for (size_t i = 0; i < runs[r]; i++) total += answers[at + i];
            const size_t left = HASHES - at - runs[r];
            const size_t ahead = aheads[a] < left ? aheads[a] : left;

            assert_int_equal(kernel->has_run(bed.body, shape, hashes + at,
                                             runs[r], ahead, found),
                             total);
            assert_int_equal(kernel->has_run(bed.body, shape, hashes + at,
                                             runs[r], ahead, NULL),
                             total);
            assert_memory_equal(found, answers + at, runs[r]);
        }
    free(bed.body);
}

static void runs_give_the_answers_that_singles_do(void **state) {
    (void)state;
    on_every_kernel(ask_in_runs);
}

static void every_kind_has_a_scalar_kernel_last(void **state) {
    (void)state;
    for (const char *const *name = calyx_kinds(); *name; name++) {
        const struct kind *kind = kind_named(*name);
        const struct kernel *const *list = kind->kernels;
        for (; (*list)->level != CPU_SCALAR; list++)
            assert_true(list[1]->level < list[0]->level);
    }
}

/* A key sets `probes` bits, or fewer where two of its own coincide. */
static void one_key_sets_its_probes(void **state) {
    (void)state;
    for (const char *const *name = calyx_kinds(); *name; name++) {
        const struct kind *kind = kind_named(*name);
        for (uint32_t k = kind->probe_step; k <= kind->most_probes;
             k += kind->probe_step) {
            const struct shape shape = {100000, k};
            struct part part = {.shape = shape};
            const struct bed bed = make_bed(kind, &shape);
            part.body = bed.body;

            scalar_of(kind)->add(bed.body, &shape, UINT64_C(0x123456789ABCDEF));

            const uint64_t set = count_bits(kind, &part);
            assert_in_range(set, k == 1 ? 1 : k - 1, k);
            free(bed.body);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_has_a_scalar_kernel_last),
        cmocka_unit_test(one_key_sets_its_probes),
        cmocka_unit_test(every_kernel_leaves_the_bits_of_the_scalar_one),
        cmocka_unit_test(runs_leave_the_bits_that_singles_do),
        cmocka_unit_test(runs_give_the_answers_that_singles_do),
    };
    return RUN_TESTS(tests);
}
