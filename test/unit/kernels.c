/* Every kernel of a kind leaves the bits, and gives the answers, of the plain
 * scalar one, which defines them. */
#include <stdlib.h>
#include <string.h>

#include "filter/filter.h"
#include "hash/xxh3.h"
#include "kind/batch_loops.h"
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
        if (kernel_runs(*list, cpu_best())) test(kind, shape, *list);
        if ((*list)->level == CPU_SCALAR) break;
    }
}

/* Run a test on every kernel that this machine runs, plain and shared, of every
 * kind, with every number of probes and various numbers of blocks. The kernels
 * of tables are compared in bucket.c. */
static void on_every_kernel(look *test) {
    static const uint64_t blocks[] = {1, 2, 3, 7, 1000, 2003};
    EACH_KIND_OF_BITS(name) {
        const struct kind *kind = kind_named(*name);
        for (size_t b = 0; b < sizeof blocks / sizeof blocks[0]; b++)
            for (uint32_t k = kind->probe_step; k <= kind->most_probes;
                 k += kind->probe_step) {
                const struct shape shape = {.blocks = blocks[b], .probes = k};
                on_list(kind, &shape, kind->kernels, test);
                on_list(kind, &shape, kind->atomic_kernels, test);
            }
    }
}

/* ---- Hashes -------------------------------------------------------------- */

enum { HASHES = 1800 };

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
static const size_t runs[] = {0,  1,   1,   2,   3,   5,   8,        13,
                              50, 100, 127, 128, 128, 129, BATCH_MAX};
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

/* A run with hashes of its own, and no more of them than it has, so that a
 * sanitizer sees every step outside. */
static struct batch own_run(const uint64_t *hashes, size_t n, size_t more) {
    const size_t all = n + more;
    uint64_t *own = malloc(all ? all * sizeof *own : 1);
    assert_non_null(own);
    memcpy(own, hashes, all * sizeof *own);
    struct batch run = batch_of(own, n);
    run.more = more;
    return run;
}

static void free_run(struct batch run) {
    free((void *)run.hashes);
}

/* Of the lines of a run none, some or all were called before, and none or some
 * hashes follow. Each run is touched in two parts. */
static void add_in_runs(const struct kind *kind, const struct shape *shape,
                        const struct kernel *kernel) {
    const struct kernel *scalar = scalar_of(kind);
    const uint64_t *hashes = some_hashes(shape->blocks);
    const struct bed want = make_bed(kind, shape), is = make_bed(kind, shape);
    for (size_t r = 0, at = 0; r < RUNS; at += runs[r++]) {
        bool missing[BATCH_MAX], fresh[BATCH_MAX];
        size_t total = 0;
        for (size_t i = 0; i < runs[r]; i++)
            total += missing[i] = scalar->add(want.body, shape, hashes[at + i]);
        const size_t following = r + 1 < RUNS && r % 2 ? runs[r + 1] : 0;
        const struct batch run = own_run(hashes + at, runs[r], following);
        const size_t part = runs[r] / 3;
        struct batch first = run, rest = run;
        first.prefetched = prologue_length(&run) * (r % 3) / 2;
        first.n = part;
        first.more += run.n - part;
        rest.hashes += part;
        rest.n -= part;
        rest.prefetched = prologue_length(&rest);

        size_t added =
            kernel->add_batch(is.body, shape, first, r % 3 ? fresh : NULL);
        added += kernel->add_batch(is.body, shape, rest,
                                   r % 3 ? fresh + part : NULL);

        assert_int_equal(added, total);
        if (r % 3) assert_memory_equal(fresh, missing, runs[r]);
        assert_same(&is, &want);
        free_run(run);
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
    static const size_t aheads[] = {0, 1, 7, 8, 9, 40, 128};
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
            bool found[BATCH_MAX];
            size_t total = 0;
            for (size_t i = 0; i < runs[r]; i++) total += answers[at + i];
            const size_t left = HASHES - at - runs[r];
            const size_t ahead = aheads[a] < left ? aheads[a] : left;
            struct batch run = own_run(hashes + at, runs[r], ahead);

            assert_int_equal(kernel->has_batch(bed.body, shape, run, found),
                             total);
            run.prefetched = prologue_length(&run);
            assert_int_equal(kernel->has_batch(bed.body, shape, run, NULL),
                             total);
            assert_memory_equal(found, answers + at, runs[r]);
            free_run(run);
        }
    free(bed.body);
}

static void runs_give_the_answers_that_singles_do(void **state) {
    (void)state;
    on_every_kernel(ask_in_runs);
}

/* Numbers of a run are hashed when their lines are prefetched, not all at once.
 */
static void ask_for_numbers(const struct kind *kind, const struct shape *shape,
                            const struct kernel *kernel) {
    if (!kernel->hashes_numbers) return;
    const struct hash *hash = hash_named("xxh3");
    const struct secret secret = {.seed = 5};
    const struct kernel *scalar = scalar_of(kind);
    const uint64_t *numbers = some_hashes(shape->blocks + 4);
    const struct bed bed = make_bed(kind, shape);
    uint64_t hashes[HASHES];
    for (size_t i = 0; i < HASHES; i++)
        hashes[i] = hash->number(hash, &secret, numbers[i]);
    for (size_t i = 0; i < (shape->blocks < 10 ? 12 : HASHES); i += 2)
        scalar->add(bed.body, shape, hashes[i]);
    const struct batch given = own_run(numbers, HASHES, 0);
    const struct batch room = own_run(numbers, HASHES, 0);
    struct batch run = {.hashes = room.hashes,
                        .numbers = given.hashes,
                        .flip = xxh3_flip(secret.seed)};
    for (size_t r = 0, at = 0; r < RUNS; at += runs[r++]) {
        bool found[BATCH_MAX];
        run.n = runs[r];
        run.more = HASHES - at - run.n;

        kernel->has_batch(bed.body, shape, run, found);

        const size_t hashed =
            run.n +
            (run.more < PREFETCH_DISTANCE ? run.more : PREFETCH_DISTANCE);
        assert_memory_equal(run.hashes, hashes + at, hashed * 8);
        for (size_t i = 0; i < run.n; i++)
            assert_int_equal(found[i],
                             scalar->has(bed.body, shape, hashes[at + i]));
        run.prefetched = hashed - run.n;
        run.hashes += run.n;
        run.numbers += run.n;
    }
    free_run(given);
    free_run(room);
    free(bed.body);
}

static void numbers_are_hashed_on_their_way(void **state) {
    (void)state;
    on_every_kernel(ask_for_numbers);
}

/* Kernels may have loops of their own for bodies that no cache holds. */
static void kernels_agree_on_bodies_beyond_the_cache(void **state) {
    (void)state;
    static look *const tests[] = {add_in_runs, ask_in_runs, ask_for_numbers};
    EACH_KIND(name) {
        const struct kind *kind = kind_named(*name);
        const uint64_t blocks = (UINT64_C(33) << 23) / kind->block_bits;
        if (kind->counting)
            continue; /* its lookups are the lookups of a line filter */
        const uint32_t least =
            kind->segments ? kind->segments->growing_probes : 8;
        for (uint32_t k = least; k <= kind->most_probes && k <= 16; k += 8) {
            const struct shape shape = {.blocks = blocks, .probes = k};
            for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
                on_list(kind, &shape, kind->kernels, tests[i]);
                on_list(kind, &shape, kind->atomic_kernels, tests[i]);
            }
        }
    }
}

/* Of all that was added, once or oftener, each run takes some away; and some
 * that is not there. In a body of one line, counters come to 15 and stay. */
static void remove_in_runs(const struct kind *kind, const struct shape *shape,
                           const struct kernel *kernel) {
    const struct kernel *scalar = scalar_of(kind);
    if (!kernel->remove_batch) return;
    const uint64_t *hashes = some_hashes(shape->blocks + 2);
    const struct bed want = make_bed(kind, shape), is = make_bed(kind, shape),
                     singly = make_bed(kind, shape);
    for (size_t i = 0; i < HASHES - HASHES / 4; i++)
        for (size_t times = i % 7 == 0 ? 7 : 1; times > 0; times--) {
            scalar->add(want.body, shape, hashes[i]);
            kernel->add(is.body, shape, hashes[i]);
            kernel->add(singly.body, shape, hashes[i]);
        }
    size_t stuck = 0;
    for (size_t r = 0, at = HASHES; r < RUNS; r++) {
        bool there[BATCH_MAX], found[BATCH_MAX];
        size_t total = 0;
        at -= runs[r];
        for (size_t i = 0; i < runs[r]; i++) {
            const uint64_t hash = hashes[at + i];
            const enum removal became = scalar->remove(want.body, shape, hash);
            there[i] = became != KEY_ABSENT;
            total += became == KEY_REMOVED;
            stuck += became == KEY_STUCK;
            assert_int_equal(kernel->remove(singly.body, shape, hash), became);
        }
        const size_t left = HASHES - at - runs[r];
        const size_t ahead = r % 2 == 0         ? 0
                             : left < BATCH_MAX ? left
                                                : BATCH_MAX;
        const struct batch run = own_run(hashes + at, runs[r], ahead);

        assert_int_equal(
            kernel->remove_batch(is.body, shape, run, r % 3 ? found : NULL),
            total);

        if (r % 3) assert_memory_equal(found, there, runs[r]);
        assert_same(&is, &want);
        assert_same(&singly, &want);
        free_run(run);
    }
    assert_true(stuck > 0 || shape->blocks > 1);
    free(want.body);
    free(is.body);
    free(singly.body);
}

static void runs_remove_what_singles_do(void **state) {
    (void)state;
    on_every_kernel(remove_in_runs);
}

/* ---- Counters, held to an array of plain numbers ------------------------- */

enum { LINES = 3, PER_LINE = 512, SHEET = LINES * PER_LINE / 8 };

/* The places of a hash are those that it sets in an empty body. */
static void count_places(const struct kind *kind, const struct shape *shape,
                         uint64_t hash, int by, int *counts) {
    const struct bed bed = make_bed(kind, shape);
    scalar_of(kind)->add(bed.body, shape, hash);
    for (size_t i = 0; i < LINES * PER_LINE; i++)
        if (bed.body[i / 8] >> i % 8 & 1 && counts[i] < 15) counts[i] += by;
    free(bed.body);
}

static void assert_counts(const uint8_t *body, const int *counts) {
    uint8_t used[LINES] = {0};
    for (size_t i = 0; i < LINES * PER_LINE; i++) {
        int count = body[i / 8] >> i % 8 & 1;
        for (size_t k = 0; k < 4; k++) {
            const int bit = body[(k + 1) * SHEET + i / 8] >> i % 8 & 1;
            count += bit << k;
            if (k >= 2 && bit) used[i / PER_LINE] |= (uint8_t)(k - 1);
        }
        assert_int_equal(count < 15 ? count : 15, counts[i]);
    }
    assert_int_equal(body[5 * SHEET], used[0] | used[1] << 2 | used[2] << 4);
}

/* First more is added than removed, then what is left is removed: so counters
 * come through all values, and some to 15. */
static void count_and_compare(const struct kind *kind,
                              const struct kernel *kernel) {
    enum { STEPS = 1500 };
    const struct shape shape = {.blocks = LINES, .probes = 16};
    const struct bed bed = make_bed(kind, &shape);
    struct generator random = {9};
    static int counts[LINES * PER_LINE];
    uint64_t held[STEPS];
    size_t helds = 0;
    memset(counts, 0, sizeof counts);
    for (size_t step = 0; step < 2 * STEPS; step++) {
        const bool adds = step < STEPS && random_word(&random) % 4 > 0;
        if (!adds && helds == 0) continue;
        if (adds) held[helds++] = random_word(&random);
        const uint64_t hash = held[adds ? helds - 1 : --helds];
        if (adds)
            kernel->add(bed.body, &shape, hash);
        else
            assert_true(kernel->remove(bed.body, &shape, hash) != KEY_ABSENT);
        count_places(kind, &shape, hash, adds ? 1 : -1, counts);
        assert_counts(bed.body, counts);
    }
    int most = 0;
    for (size_t i = 0; i < LINES * PER_LINE; i++)
        if (counts[i] > most) most = counts[i];
    assert_int_equal(most, 15);
    assert_int_equal(helds, 0);
    free(bed.body);
}

static void every_kernel_counts_as_a_plain_array_does(void **state) {
    (void)state;
    const struct kind *kind = kind_named("counting");
    const struct kernel *const *list = kind->kernels;
    for (;; list++) {
        if (kernel_runs(*list, cpu_best())) count_and_compare(kind, *list);
        if ((*list)->level == CPU_SCALAR) break;
    }
}

/* Parts of several sizes and numbers of probes, each with some of the hashes.
 */
static void ask_many_parts(const struct kind *kind, const struct shape *shape,
                           const struct kernel *kernel) {
    enum { PARTS = 5 };
    if (!kernel->has_in_any || shape->blocks > 1000) return;
    const struct kernel *scalar = scalar_of(kind);
    const uint64_t *hashes = some_hashes(shape->blocks + 3);
    struct bed beds[PARTS];
    struct part_view parts[PARTS];
    for (size_t p = 0; p < PARTS; p++) {
        parts[p].shape = (struct shape){.blocks = shape->blocks + 7 * p,
                                        .probes = shape->probes};
        if (p == 3) parts[p].shape.probes = 1 + shape->probes % 16;
        beds[p] = make_bed(kind, &parts[p].shape);
        parts[p].body = beds[p].body;
        for (size_t i = p; i < HASHES / 2; i += 11)
            scalar->add(beds[p].body, &parts[p].shape, hashes[i]);
    }
    for (size_t n = 0; n <= HASHES; n += n < 20 ? 1 : 73) {
        bool found[HASHES] = {false};
        found[n / 2] = true; /* what is true stays true */
        kernel->has_in_any(parts, PARTS, hashes, n, found);
        for (size_t i = 0; i < n; i++) {
            bool any = i == n / 2;
            for (size_t p = 0; p < PARTS; p++)
                any |= scalar->has(parts[p].body, &parts[p].shape, hashes[i]);
            assert_int_equal(found[i], any);
        }
    }
    for (size_t p = 0; p < PARTS; p++) free(beds[p].body);
}

static void many_parts_answer_as_each_of_them(void **state) {
    (void)state;
    on_every_kernel(ask_many_parts);
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

static bool never(void) {
    return false;
}

static bool always(void) {
    return true;
}

static void a_kernel_that_this_processor_lacks_instructions_for_is_skipped(
    void **state) {
    (void)state;
    const enum cpu_level best = cpu_best();
    const struct kernel missing = {.level = best, .runs = never};
    const struct kernel there = {.level = best, .runs = always};
    const struct kernel plain = {.level = CPU_SCALAR};
    const struct kernel *const first[] = {&there, &plain};
    const struct kernel *const second[] = {&missing, &plain};
    const struct kernel *const third[] = {&missing, &there, &plain};
    assert_ptr_equal(kernel_up_to(first, best), &there);
    assert_ptr_equal(kernel_up_to(second, best), &plain);
    assert_ptr_equal(kernel_up_to(third, best), &there);
}

/* A key sets `probes` bits, or fewer where two of its own coincide. */
static void one_key_sets_its_probes(void **state) {
    (void)state;
    EACH_KIND_OF_BITS(name) {
        const struct kind *kind = kind_named(*name);
        for (uint32_t k = kind->probe_step; k <= kind->most_probes;
             k += kind->probe_step) {
            const struct shape shape = {.blocks = 100000, .probes = k};
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
        cmocka_unit_test(
            a_kernel_that_this_processor_lacks_instructions_for_is_skipped),
        cmocka_unit_test(one_key_sets_its_probes),
        cmocka_unit_test(every_kernel_leaves_the_bits_of_the_scalar_one),
        cmocka_unit_test(runs_leave_the_bits_that_singles_do),
        cmocka_unit_test(runs_give_the_answers_that_singles_do),
        cmocka_unit_test(numbers_are_hashed_on_their_way),
        cmocka_unit_test(kernels_agree_on_bodies_beyond_the_cache),
        cmocka_unit_test(many_parts_answer_as_each_of_them),
        cmocka_unit_test(runs_remove_what_singles_do),
        cmocka_unit_test(every_kernel_counts_as_a_plain_array_does),
    };
    return RUN_TESTS(tests);
}
