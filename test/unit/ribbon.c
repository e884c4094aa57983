/*
 * The ribbon kind: its construction against textbook Gaussian elimination, its
 * shapes, its files, and what it refuses. Most filters here are built in
 * memory, in the simplest way; the last tests compare that with the library's
 * builder.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "filter/filter.h"
#include "ribbon/ribbon.h"
#include "support.h"

/* ---- Building in the simplest way ---------------------------------------- */

static int compare(const void *a, const void *b) {
    const uint64_t *const x = a, *const y = b;
    return *x < *y ? -1 : *x > *y;
}

static size_t sort_distinct(uint64_t *hashes, size_t n) {
    size_t distinct = 0;
    qsort(hashes, n, sizeof *hashes, compare);
    for (size_t i = 0; i < n; i++)
        if (distinct == 0 || hashes[i] != hashes[distinct - 1])
            hashes[distinct++] = hashes[i];
    return distinct;
}

/* Build the lots of a layer in the order that `step` gives, which has no common
 * divisor with their number. Returns how many hashes were bumped; they are in
 * `bumped`. */
static size_t build_lots(const struct shape *shape, uint8_t *body,
                         const uint64_t *hashes, size_t n, uint64_t step,
                         uint64_t *bumped) {
    const struct construction *const c = &ribbon_construction;
    const uint64_t lots = c->lots(shape);
    void *const scratch = malloc(c->scratch_bytes);
    assert_non_null(scratch);
    size_t total = 0;
    for (uint64_t i = 0; i < lots; i++) {
        const uint64_t number = i * step % lots;
        const struct lot lot = c->lot(shape, number);
        size_t from = 0, to = n;
        while (from < n && hashes[from] < lot.first) from++;
        if (number + 1 < lots) {
            const struct lot next = c->lot(shape, number + 1);
            assert_int_equal(lot.at + lot.bytes, next.at);
            for (to = from; to < n && hashes[to] < next.first;) to++;
        }
        memset(body + lot.at, 0xA5, (size_t)lot.bytes);
        total += c->build(shape, number, hashes + from, to - from, scratch,
                          body + lot.at, bumped + total);
    }
    free(scratch);
    return total;
}

/* NULL if it would take too many layers. */
static calyx_filter *build_hashes(double fpr, const uint64_t *hashes,
                                  size_t n) {
    const calyx_options want = {.kind = "ribbon", .capacity = 1000, .fpr = fpr};
    uint64_t *const left = malloc((n + 1) * sizeof *left);
    uint64_t *const bumped = malloc((n + 1) * sizeof *left);
    calyx_filter head, *f = NULL;
    struct part first;
    assert_true(left && bumped);
    if (n > 0) memcpy(left, hashes, n * sizeof *left);
    assert_ok(plan_filter(&want, &head, &first, NULL));
    assert_ok(allocate_head(&head, &f));
    uint32_t layers = 0;
    do {
        n = sort_distinct(left, n);
        const struct part like = {.shape = ribbon_construction.layer(n, fpr),
                                  .fpr = fpr};
        assert_ok(allocate_part(f, &like));
        struct part *const p = f->newest;
        const size_t bumps = build_lots(&p->shape, p->body, left, n, 1, bumped);
        p->items = p->capacity = n - bumps;
        memcpy(left, bumped, bumps * sizeof *left);
        n = bumps;
    } while (n > 0 && ++layers < ribbon_construction.most_layers);
    free(left);
    free(bumped);
    if (n == 0) return f;
    calyx_free(f);
    return NULL;
}

static uint64_t *random_hashes(uint64_t seed, size_t n) {
    struct generator from = {seed};
    uint64_t *const hashes = malloc((n + 1) * sizeof *hashes);
    assert_non_null(hashes);
    for (size_t i = 0; i < n; i++) hashes[i] = random_word(&from);
    return hashes;
}

/* All of them, one by one and in batches. */
static void assert_has_hashes(const calyx_filter *f, const uint64_t *hashes,
                              size_t n) {
    assert_int_equal(calyx_has_hashes(f, hashes, n, NULL), n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(calyx_has_hashes(f, &hashes[i], 1, NULL), 1);
}

/* ---- The construction ---------------------------------------------------- */

static void every_small_number_of_keys_is_found(void **state) {
    (void)state;
    static const double rates[] = {0.9,  0.5,  0.3,  0.1,    0.01,
                                   1e-3, 1e-5, 1e-7, 0x1p-31};
    for (size_t n = 0; n <= 300; n += n < 100 ? 1 : 7)
        for (size_t r = 0; r < sizeof rates / sizeof rates[0]; r++) {
            uint64_t *const hashes = random_hashes(n, n);
            calyx_filter *const f = build_hashes(rates[r], hashes, n);
            assert_non_null(f);
            assert_has_hashes(f, hashes, n);
            assert_int_equal(info_of(f).items, n);
            calyx_free(f);
            free(hashes);
        }
}

static void a_filter_without_keys_says_no_to_everything(void **state) {
    (void)state;
    enum { N = 100000 };
    uint64_t *const hashes = random_hashes(1, N);
    calyx_filter *const f = build_hashes(0.5, NULL, 0);
    assert_int_equal(calyx_has_hashes(f, hashes, N, NULL), 0);
    assert_false(calyx_has_u64(f, 1));
    assert_true(info_of(f).fpr_now == 0);
    calyx_free(f);
    free(hashes);
}

static void the_rate_is_the_one_wanted_at_any_value(void **state) {
    (void)state;
    enum { KEYS = 30000, ABSENT = SANITIZED ? 100000 : 1000000 };
    static const double rates[] = {0.5, 0.37, 0.26, 0.1, 0.03, 0.01, 0.002};
    uint64_t *const hashes = random_hashes(2, KEYS);
    uint64_t *const absent = random_hashes(3, ABSENT);
    for (size_t r = 0; r < sizeof rates / sizeof rates[0]; r++) {
        calyx_filter *const f = build_hashes(rates[r], hashes, KEYS);
        const size_t found = calyx_has_hashes(f, absent, ABSENT, NULL);
        const double expected = info_of(f).fpr_now;
        if (!(expected <= (1 + 1e-9) * rates[r] && expected > 0.97 * rates[r]))
            fail_msg("%g is far from %g", expected, rates[r]);
        assert_true(odds_at_least(found, ABSENT, rates[r]) > UNLIKELY);
        assert_true(odds_at_most(found, ABSENT, 0.97 * rates[r]) > UNLIKELY);
        calyx_free(f);
    }
    free(hashes);
    free(absent);
}

/* The targets of the kind: bytes of all layers, and of their records in a file.
 * The bumped share has a standard deviation of 0.02 %. */
static void a_million_keys_take_few_bits_and_plans_say_how_many(void **state) {
    (void)state;
    enum { KEYS = SANITIZED ? 100000 : 1000000 };
    static const struct {
        double fpr, bits;
    } wanted[] = {{0.01, 6.90}, {0.001, 10.25}, {0.0001, 13.65}};
    uint64_t *const hashes = random_hashes(4, KEYS);
    for (size_t i = 0; i < 3; i++) {
        calyx_filter *const f = build_hashes(wanted[i].fpr, hashes, KEYS);
        const calyx_info is = info_of(f);
        const double bits =
            8 * (double)(is.bytes + 64 * is.parts) / (double)KEYS;
        const double slack = SANITIZED ? 1.01 : 1;
        if (bits > slack * wanted[i].bits)
            fail_msg("%g bits a key at %g, not %g", bits, wanted[i].fpr,
                     wanted[i].bits);
        calyx_info plan;
        assert_ok(calyx_plan(&(calyx_options){.kind = "ribbon",
                                              .capacity = KEYS,
                                              .fpr = wanted[i].fpr},
                             &plan, NULL));
        assert_true(fabs((double)plan.bytes / (double)is.bytes - 1) < 0.005);
        calyx_free(f);
    }
    free(hashes);
}

static void few_keys_take_no_more_than_in_a_line_filter(void **state) {
    (void)state;
    enum { KEYS = 1000 };
    for (uint64_t seed = 0; seed < 50; seed++) {
        uint64_t *const hashes = random_hashes(seed, KEYS);
        calyx_filter *const f = build_hashes(0.01, hashes, KEYS);
        calyx_filter *const line =
            make_filter((calyx_options){.capacity = KEYS, .fpr = 0.01});
        assert_true(calyx_encoded_size(f) <= calyx_encoded_size(line));
        calyx_free(f);
        calyx_free(line);
        free(hashes);
    }
}

/* Lots depend on nothing but their own hashes. */
static void lots_can_be_built_in_any_order(void **state) {
    (void)state;
    enum { KEYS = 60000 };
    uint64_t *const hashes = random_hashes(5, KEYS);
    uint64_t *const bumped = malloc(2 * KEYS * sizeof *bumped);
    assert_int_equal(sort_distinct(hashes, KEYS), KEYS);
    const struct shape shape = ribbon_construction.layer(KEYS, 0.01);
    const size_t bytes = (size_t)ribbon_bytes(&shape);
    uint8_t *const a = malloc(bytes), *const b = malloc(bytes);
    assert_true(a && b && bumped);
    assert_int_equal(ribbon_construction.lots(&shape), 8);
    assert_true(shape.wide % LOT_GROUPS != 0); /* one lot has both widths */
    const size_t in_order = build_lots(&shape, a, hashes, KEYS, 1, bumped);
    const size_t jumping =
        build_lots(&shape, b, hashes, KEYS, 5, bumped + KEYS);
    assert_int_equal(in_order, jumping);
    assert_memory_equal(a, b, bytes);
    qsort(bumped, in_order, sizeof *bumped, compare);
    qsort(bumped + KEYS, jumping, sizeof *bumped, compare);
    assert_memory_equal(bumped, bumped + KEYS, in_order * sizeof *bumped);
    free(a);
    free(b);
    free(bumped);
    free(hashes);
}

/* The lowest hash of each lot is the first that its groups have. */
static void lots_begin_at_their_lowest_hash(void **state) {
    (void)state;
    static const uint64_t keys[] = {1,       8000,    100000,
                                    1000000, 7654321, UINT64_C(1) << 40};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const struct shape shape = ribbon_construction.layer(keys[i], 0.01);
        const uint64_t lots = ribbon_construction.lots(&shape);
        for (uint64_t n = 0; n < lots; n += 1 + lots / 1000) {
            const uint64_t first = ribbon_construction.lot(&shape, n).first;
            assert_int_equal(group_of(first, &shape), n * LOT_GROUPS);
            if (n)
                assert_int_equal(group_of(first - 1, &shape),
                                 n * LOT_GROUPS - 1);
        }
        assert_int_equal(ribbon_construction.lot(&shape, 0).first, 0);
    }
}

/* Of hashes in one group, at most 48 find room; they wander down the layers. */
static void hashes_that_are_not_mixed_move_down_the_layers(void **state) {
    (void)state;
    enum { KEYS = 2000 };
    uint64_t hashes[KEYS];
    for (size_t i = 0; i < KEYS; i++) hashes[i] = i;
    calyx_filter *const f = build_hashes(0.01, hashes, KEYS);
    assert_non_null(f);
    assert_has_hashes(f, hashes, KEYS);
    assert_int_equal(f->first_layer->items, 0);
    calyx_free(f);
}

/* One more than fit into the 48 rows that a group covers. */
static void a_group_with_too_many_keys_is_bumped_whole(void **state) {
    (void)state;
    enum { KEYS = 49 };
    const struct shape shape = {.blocks = 3, .probes = 7};
    uint64_t hashes[KEYS], bumped[KEYS];
    uint8_t bytes[128];
    assert_int_equal(ribbon_bytes(&shape), sizeof bytes);
    for (uint64_t i = 0; i < KEYS; i++) hashes[i] = ribbon_next_hash(i) >> 2;
    sort_distinct(hashes, KEYS);
    assert_int_equal(build_lots(&shape, bytes, hashes, KEYS, 1, bumped), KEYS);
    for (uint64_t group = 0; group < 3; group++)
        assert_int_equal(is_bumped(bytes + flags_at(group, &shape), group),
                         group == 0);
    for (size_t i = 0; i < KEYS; i++)
        assert_true(bumped[i] == ribbon_next_hash(hashes[i]));
}

/* ---- Against the textbook ------------------------------------------------ */

/*
 * A layer of few keys, solved as a textbook does: one matrix of all equations,
 * in dense rows, with elimination by any pivot. Groups are tried one after the
 * other; one is bumped if the matrix with its equations has no solution. The
 * solution need not be the same, but the flags must be, and every equation of
 * the layer has to hold.
 */
enum { DENSE_ROWS = 1024, DENSE_WORDS = DENSE_ROWS / 64 };

struct dense {
    uint64_t coefficients[DENSE_WORDS];
    uint32_t result;
};

static struct dense dense_of(const struct shape *shape, uint64_t hash) {
    struct dense d = {{0}, 0};
    const uint64_t group = group_of(hash, shape), mixed = ribbon_mix(hash);
    const uint64_t first = GROUP_ROWS * first_group(group, shape);
    for (uint64_t i = 0; i < SPAN_GROUPS * GROUP_ROWS; i++)
        if (ribbon_coefficients(mixed) >> i & 1)
            d.coefficients[(first + i) / 64] |= UINT64_C(1) << (first + i) % 64;
    d.result = ribbon_result(mixed) & result_mask(words_of(group, shape));
    return d;
}

static bool bit_of(const struct dense *d, size_t row) {
    return d->coefficients[row / 64] >> row % 64 & 1;
}

/* Add an equation to a matrix in echelon form; false if it contradicts. */
static bool add_dense(struct dense *matrix, bool *used, struct dense d) {
    for (size_t row = 0; row < DENSE_ROWS; row++) {
        if (!bit_of(&d, row)) continue;
        if (!used[row]) {
            matrix[row] = d;
            used[row] = true;
            return true;
        }
        for (size_t i = 0; i < DENSE_WORDS; i++)
            d.coefficients[i] ^= matrix[row].coefficients[i];
        d.result ^= matrix[row].result;
    }
    return d.result == 0;
}

static void flags_agree_with_textbook_elimination(void **state) {
    (void)state;
    static struct dense matrix[DENSE_ROWS], saved[DENSE_ROWS];
    static bool used[DENSE_ROWS], saved_used[DENSE_ROWS];
    size_t all_bumped = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        const size_t keys = 20 + 15 * (size_t)seed;
        const double fpr = seed % 3 ? 0.01 : 0.3;
        uint64_t *const hashes = random_hashes(seed, keys);
        uint64_t *const bumped = malloc(keys * sizeof *bumped);
        assert_int_equal(sort_distinct(hashes, keys), keys);
        const struct shape shape = ribbon_construction.layer(keys, fpr);
        assert_true(shape.blocks * GROUP_ROWS <= DENSE_ROWS);
        uint8_t *const body = malloc((size_t)ribbon_bytes(&shape));
        const size_t bumps = build_lots(&shape, body, hashes, keys, 1, bumped);
        memset(matrix, 0, sizeof matrix);
        memset(used, 0, sizeof used);
        size_t at = 0, expected = 0;
        for (uint64_t group = 0; group < shape.blocks; group++) {
            memcpy(saved, matrix, sizeof matrix);
            memcpy(saved_used, used, sizeof used);
            const size_t from = at;
            bool fits = true;
            for (; at < keys && group_of(hashes[at], &shape) == group; at++)
                fits &= add_dense(matrix, used, dense_of(&shape, hashes[at]));
            assert_int_equal(is_bumped(body + flags_at(group, &shape), group),
                             !fits);
            if (fits) continue;
            expected += at - from;
            memcpy(matrix, saved, sizeof matrix);
            memcpy(used, saved_used, sizeof used);
        }
        assert_int_equal(bumps, expected);
        all_bumped += bumps;
        for (size_t i = 0; i < keys; i++)
            assert_int_not_equal(
                ribbon_scalar.has_in_layer(body, &shape, hashes[i]), LAYER_NO);
        free(hashes);
        free(bumped);
        free(body);
    }
    assert_true(all_bumped > 0);
}

/* ---- Kernels ------------------------------------------------------------- */

/* Every number of words, with and without wide groups, on random bytes. */
static void every_kernel_answers_as_the_scalar_one(void **state) {
    (void)state;
    enum { HASHES = 3000 };
    static const uint64_t blocks[] = {3, 40, 512, 515, 1500};
    uint64_t *const hashes = random_hashes(7, HASHES);
    const struct kind *const kind = kind_named("ribbon");
    struct generator from = {8};
    for (uint32_t words = 1; words <= MOST_WORDS; words++)
        for (size_t b = 0; b < 10; b++) {
            struct shape shape = {.blocks = blocks[b % 5], .probes = words};
            if (b >= 5 && words < MOST_WORDS)
                shape.wide = b == 9 ? 1056 : 32; /* in the third lot, or not */
            if (!kind->is_shape(&shape)) continue;
            const size_t bytes = (size_t)ribbon_bytes(&shape);
            uint8_t *const body = aligned_alloc(64, bytes);
            for (size_t i = 0; i < bytes; i++)
                body[i] = (uint8_t)(random_word(&from) & random_word(&from));
            for (const struct kernel *const *k = kind->kernels;; k++) {
                bool found[BATCH_MAX];
                uint16_t bumped[BATCH_MAX + 1];
                size_t at = 0;
                const bool runs = kernel_runs(*k, cpu_best());
                for (size_t n = 0; runs && n < 40; n++) {
                    const size_t some = n < 39 ? n : BATCH_MAX;
                    const struct batch batch = {.hashes = hashes + at,
                                                .n = some,
                                                .more = n % 3 ? 70 : 0,
                                                .prefetched = n % 2};
                    const size_t bumps = (*k)->has_batch_in_layer(
                        body, &shape, batch, found, bumped);
                    size_t next = 0, yes = 0;
                    for (size_t i = 0; i < some; i++) {
                        const enum layer_answer is = ribbon_scalar.has_in_layer(
                            body, &shape, hashes[at + i]);
                        assert_int_equal(
                            (*k)->has_in_layer(body, &shape, hashes[at + i]),
                            is);
                        assert_int_equal(found[i], is == LAYER_YES);
                        if (is == LAYER_BUMPED)
                            assert_int_equal(bumped[next++], i);
                        yes += is == LAYER_YES;
                    }
                    assert_int_equal(next, bumps);
                    assert_int_equal((*k)->has_batch(body, &shape, batch, NULL),
                                     yes);
                    at += some;
                }
                if ((*k)->level == CPU_SCALAR) break;
            }
            free(body);
        }
    free(hashes);
}

/* Over 1024 of 60,000 are bumped, which is more than wait for the next layer at
 * a time. */
static void a_large_batch_answers_as_single_lookups_do(void **state) {
    (void)state;
    enum { KEYS = 30000, ALL = 60000 };
    uint64_t *const hashes = random_hashes(13, ALL);
    bool *const found = malloc(ALL);
    calyx_filter *const f = build_hashes(0.01, hashes, KEYS);
    const struct part *const first = f->first_layer;
    size_t yes = 0, bumped = 0;
    const size_t total = calyx_has_hashes(f, hashes, ALL, found);
    for (size_t i = 0; i < ALL; i++) {
        assert_int_equal(found[i], calyx_has_hash(f, hashes[i]));
        assert_true(found[i] || i >= KEYS);
        yes += found[i];
        bumped += f->kernel->has_in_layer(first->body, &first->shape,
                                          hashes[i]) == LAYER_BUMPED;
    }
    assert_true(bumped > BATCH_MAX);
    assert_int_equal(total, yes);
    assert_int_equal(calyx_has_hashes(f, hashes, ALL, NULL), yes);
    calyx_free(f);
    free(found);
    free(hashes);
}

/* Random bytes in all lines that these hashes read. */
static void fill_lines(const struct kind *kind, const struct shape *shape,
                       const uint64_t *hashes, size_t n, uint8_t *body) {
    struct generator from = {12};
    for (size_t i = 0; i < n; i++) {
        uint64_t at[CALYX_LINES_MOST];
        const size_t lines = kind->offsets(shape, hashes[i], at);
        for (size_t j = 0; j < lines; j++)
            for (size_t k = 0; k < 64; k += 8)
                store64(body + at[j] + k,
                        random_word(&from) & random_word(&from));
    }
}

/* On both sides of 2^31 bytes, where places no longer fit lanes of 32 bits. The
 * body is mapped, and its pages come when they are written. */
static void every_kernel_finds_places_beyond_2_gigabytes(void **state) {
    (void)state;
    enum { HASHES = 300 };
    const struct kind *const kind = kind_named("ribbon");
    uint64_t *const hashes = random_hashes(11, HASHES);
    hashes[0] = UINT64_MAX;
    for (uint32_t words = 6; words < 30; words += 8)
        for (int beyond = 0; beyond < 2; beyond++) {
            const uint64_t lots =
                INT32_MAX / (2 * LOT_GROUPS * words + FLAG_BYTES) + 2;
            struct shape shape = {.probes = words,
                                  .blocks = lots * LOT_GROUPS + 7};
            while (!beyond && ribbon_bytes(&shape) > INT32_MAX)
                shape.blocks -= LOT_GROUPS;
            assert_int_equal(ribbon_bytes(&shape) > INT32_MAX, beyond);
            const size_t bytes = (size_t)ribbon_bytes(&shape);
            uint8_t *const body =
                mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            assert_true(body != MAP_FAILED);
            fill_lines(kind, &shape, hashes, HASHES, body);
            for (const struct kernel *const *k = kind->kernels;; k++) {
                bool found[HASHES];
                uint16_t bumped[HASHES + 1];
                if (kernel_runs(*k, cpu_best()))
                    (*k)->has_batch_in_layer(
                        body, &shape, batch_of(hashes, HASHES), found, bumped);
                for (size_t i = 0; kernel_runs(*k, cpu_best()) && i < HASHES;
                     i++)
                    assert_int_equal(
                        found[i], ribbon_scalar.has(body, &shape, hashes[i]));
                if ((*k)->level == CPU_SCALAR) break;
            }
            munmap(body, bytes);
        }
    free(hashes);
}

/* Numbers of groups beyond 32 bits: the vector kernels leave them to the scalar
 * one. The body is mapped, and its pages come when they are written. */
static void places_beyond_32_bits_are_within_the_body(void **state) {
    (void)state;
    const struct shape shape =
        ribbon_construction.layer(UINT64_C(100000000000), 0.5);
    const struct kind *const kind = kind_named("ribbon");
    assert_true(shape.blocks > UINT32_MAX);
    struct generator from = {9};
    for (int i = 0; i < 1000; i++) {
        const uint64_t hash = i ? random_word(&from) : UINT64_MAX;
        uint64_t at[CALYX_LINES_MOST];
        const size_t n = kind->offsets(&shape, hash, at);
        for (size_t j = 0; j < n; j++)
            assert_true(at[j] + 64 <= ribbon_bytes(&shape));
    }
}

/* ---- Shapes from outside ------------------------------------------------- */

/* Every place of every hash is within the body, for each shape that passes. */
static void no_shape_that_passes_reads_outside(void **state) {
    (void)state;
    const struct kind *const kind = kind_named("ribbon");
    size_t passed = 0;
    struct generator from = {10};
    for (uint64_t blocks = 0; blocks < 1100; blocks++)
        for (uint64_t wide = 0; wide <= blocks + 40; wide += 8) {
            const struct shape shape = {
                .blocks = blocks,
                .probes = 1 + (uint32_t)random_below(&from, MOST_WORDS),
                .wide = wide};
            if (!kind->is_shape(&shape)) continue;
            passed++;
            for (uint64_t g = 0; g < blocks; g += g < 40 ? 1 : 13) {
                const uint64_t first = first_group(g, &shape);
                const uint64_t end = words_at(first, &shape) +
                                     SPAN_GROUPS * 2 * words_of(g, &shape);
                assert_true(first <= g && first / LOT_GROUPS == g / LOT_GROUPS);
                assert_int_equal(words_of(first, &shape), words_of(g, &shape));
                assert_int_equal(words_of(first + SPAN_GROUPS - 1, &shape),
                                 words_of(g, &shape));
                assert_true(end <= flags_at(g, &shape));
                assert_true(flags_at(g, &shape) + FLAG_BYTES <=
                            ribbon_bytes(&shape));
            }
        }
    assert_true(passed > 10000);
}

/* ---- Whole filters ------------------------------------------------------- */

static calyx_filter *build_numbers(calyx_options want, uint64_t from,
                                   uint64_t to) {
    calyx_builder *b = NULL;
    calyx_filter *f = NULL;
    calyx_error why;
    want.kind = "ribbon";
    const calyx_builder_options options = {.filter = want};
    assert_ok(calyx_builder_new(&options, &b, &why));
    for (uint64_t i = from; i < to; i++)
        assert_ok(calyx_builder_add_many_u64(b, &i, 1, &why));
    if (calyx_builder_finish(b, &f, &why) != CALYX_OK) fail_msg("%s", why.text);
    calyx_builder_free(b);
    return f;
}

static void the_builder_makes_the_same_bytes(void **state) {
    (void)state;
    enum { KEYS = 50000 };
    calyx_filter *const f =
        build_numbers((calyx_options){.fpr = 0.003}, 0, KEYS);
    uint64_t *const all = malloc(KEYS * sizeof *all);
    for (uint64_t i = 0; i < KEYS; i++) all[i] = calyx_hash(f, &i, 8);
    calyx_filter *const plain = build_hashes(0.003, all, KEYS);
    assert_true(same_bodies(f, plain));
    assert_int_equal(info_of(f).items, KEYS);
    assert_has_hashes(f, all, KEYS);
    calyx_free(f);
    calyx_free(plain);
    free(all);
}

/* The lowest and the highest hash of each lot, among others. Lots are built two
 * at a time if there are more than 64. */
static void the_builder_keeps_hashes_at_the_borders_of_lots(void **state) {
    (void)state;
    enum { KEYS = 560000 };
    const struct construction *const c = &ribbon_construction;
    const struct shape shape = c->layer(KEYS, 0.001);
    uint64_t *const hashes = random_hashes(11, KEYS);
    const size_t lots = (size_t)c->lots(&shape);
    assert_in_range(lots, 65, KEYS / 2);
    for (size_t i = 1; i < lots; i++) {
        hashes[2 * i] = c->lot(&shape, i).first;
        hashes[2 * i + 1] = c->lot(&shape, i).first - 1;
    }
    const calyx_builder_options options = {
        .filter = {.kind = "ribbon", .fpr = 0.001}};
    calyx_builder *b = NULL;
    calyx_filter *f = NULL;
    assert_ok(calyx_builder_new(&options, &b, NULL));
    assert_ok(calyx_builder_add_hashes(b, hashes, KEYS, NULL));
    assert_ok(calyx_builder_finish(b, &f, NULL));
    assert_int_equal(f->first_layer->shape.blocks, shape.blocks);
    assert_has_hashes(f, hashes, KEYS);
    calyx_free(f);
    calyx_builder_free(b);
    free(hashes);
}

static void a_copy_and_its_bytes_have_the_same_answers(void **state) {
    (void)state;
    enum { KEYS = 20000 };
    calyx_filter *f = build_numbers((calyx_options){.fpr = 0.01}, 0, KEYS);
    calyx_filter *copy = NULL, *decoded = NULL, *view = NULL;
    const size_t size = (size_t)calyx_encoded_size(f);
    uint8_t *const bytes = aligned_alloc(64, (size + 63) / 64 * 64);
    assert_ok(calyx_encode(f, bytes, size, NULL));
    assert_ok(calyx_copy(f, &copy, NULL));
    assert_ok(calyx_decode(bytes, size, NULL, &decoded, NULL));
    assert_ok(calyx_view(bytes, size, NULL, &view, NULL));
    assert_true(same_bodies(f, copy) && same_bodies(f, decoded));
    for (uint64_t i = 0; i < 2 * KEYS; i++) {
        const bool is = calyx_has_u64(f, i);
        assert_true(is || i >= KEYS);
        assert_int_equal(calyx_has_u64(copy, i), is);
        assert_int_equal(calyx_has_u64(decoded, i), is);
        assert_int_equal(calyx_has_u64(view, i), is);
        assert_int_equal(calyx_count(f, &i, 8), is);
    }
    calyx_free(f);
    calyx_free(copy);
    calyx_free(decoded);
    calyx_free(view);
    free(bytes);
}

/* A view of an encoded filter; the bytes can be damaged. */
struct image_of_filter {
    uint8_t *bytes;
    size_t size;
};

static struct image_of_filter encode_aligned(const calyx_filter *f) {
    const size_t size = (size_t)calyx_encoded_size(f);
    uint8_t *const bytes = aligned_alloc(64, (size + 63) / 64 * 64);
    assert_ok(calyx_encode(f, bytes, size, NULL));
    return (struct image_of_filter){bytes, size};
}

/* Two ranges at most in each layer, since flags and words of a lot are within
 * 32 KiB; 4 lookups in 100 go to the second layer. */
static void a_lookup_in_place_verifies_only_what_it_reads(void **state) {
    (void)state;
    enum { KEYS = 400000 };
    calyx_filter *const f = build_numbers((calyx_options){0}, 0, KEYS);
    const struct image_of_filter image = encode_aligned(f);
    calyx_filter *view = NULL;
    assert_ok(calyx_view(image.bytes, image.size, NULL, &view, NULL));
    const uint64_t all = view->lent->unverified;
    assert_true(all >= 6);
    assert_true(calyx_has_u64(view, 0));
    assert_true(view->lent->unverified < all);
    assert_true(view->lent->unverified + 4 >= all);
    assert_true(count_found(view, 0, KEYS) == KEYS);
    assert_ok(calyx_health(view, NULL));
    calyx_free(view);
    calyx_free(f);
    free(image.bytes);
}

/* Each byte of the body in turn, in both layers: lookups that read its range
 * say yes, whatever the byte says, one by one and in batches. */
static void damaged_bytes_never_say_no(void **state) {
    (void)state;
    enum { KEYS = 3000 };
    calyx_filter *const f = build_numbers((calyx_options){0}, 0, KEYS);
    const calyx_info is = info_of(f);
    const struct image_of_filter image = encode_aligned(f);
    const size_t body = calyx_head_size(f);
    assert_true(is.parts >= 2);
    uint64_t numbers[KEYS];
    for (uint64_t i = 0; i < KEYS; i++) numbers[i] = i;
    for (size_t at = 0; at < is.bytes; at += 37) {
        calyx_filter *view = NULL;
        image.bytes[body + at] ^= 0xFF;
        assert_ok(calyx_view(image.bytes, image.size, NULL, &view, NULL));
        if (at % 2)
            assert_int_equal(calyx_has_many_u64(view, numbers, KEYS, NULL),
                             KEYS);
        else
            assert_has_numbers(view, 0, KEYS);
        assert_int_equal(calyx_health(view, NULL), CALYX_DAMAGED);
        calyx_free(view);
        image.bytes[body + at] ^= 0xFF;
    }
    calyx_free(f);
    free(image.bytes);
}

/* As a page does that reads a file in pieces. */
static bool has_in_pieces(const calyx_layout *layout,
                          const struct image_of_filter *image, uint64_t hash) {
    bool found = false;
    for (uint32_t part = 0;;) {
        uint64_t at[CALYX_LINES_MOST];
        uint8_t lines[CALYX_LINES_MOST * CALYX_LINE_BYTES];
        const size_t n = calyx_layout_lines(layout, part, hash, at);
        assert_true(n > 0);
        for (size_t i = 0; i < n; i++) {
            assert_true(at[i] + CALYX_LINE_BYTES <= image->size);
            memcpy(lines + i * CALYX_LINE_BYTES, image->bytes + at[i],
                   CALYX_LINE_BYTES);
        }
        found ^= calyx_layout_has(layout, part, hash, lines);
        part = calyx_layout_next(layout, part, hash, lines);
        if (!part) return found;
    }
}

static void a_file_read_in_pieces_has_the_same_answers(void **state) {
    (void)state;
    enum { KEYS = 5000 };
    static const double rates[] = {0.3, 0.01, 1e-6};
    for (size_t r = 0; r < 3; r++) {
        calyx_filter *const f =
            build_numbers((calyx_options){.fpr = rates[r]}, 0, KEYS);
        const struct image_of_filter image = encode_aligned(f);
        calyx_layout *layout = NULL;
        assert_ok(calyx_layout_new(image.bytes, image.size, &layout, NULL));
        for (uint64_t i = 0; i < 2 * KEYS; i++) {
            const uint64_t hash = calyx_hash(f, &i, sizeof i);
            assert_int_equal(has_in_pieces(layout, &image, hash),
                             calyx_has_u64(f, i));
        }
        calyx_layout_free(layout);
        calyx_free(f);
        free(image.bytes);
    }
}

/* Head and bits, as a server sends them; and moved to other memory. */
static void a_filter_in_sections_has_the_same_answers(void **state) {
    (void)state;
    enum { KEYS = 5000 };
    calyx_filter *const f = build_numbers((calyx_options){0}, 0, KEYS);
    uint8_t head[CALYX_HEADER_MOST];
    const size_t size = calyx_head_size(f);
    const uint64_t bytes = info_of(f).bytes;
    calyx_filter *made = NULL;
    assert_ok(calyx_encode_head(f, head, size, NULL));
    assert_ok(calyx_decode_head(head, size, NULL, &made, NULL));
    for (uint64_t from = 0; from < bytes; from += 1000) {
        uint8_t some[1000];
        const size_t n = bytes - from < 1000 ? (size_t)(bytes - from) : 1000;
        assert_ok(calyx_get_bits(f, from, some, n));
        assert_ok(calyx_put_bits(made, from, some, n));
    }
    assert_true(same_bodies(f, made));
    assert_has_numbers(made, 0, KEYS);
    calyx_free(f);
    calyx_free(made);
}

static void what_would_change_it_is_refused_with_a_way_out(void **state) {
    (void)state;
    calyx_filter *f = build_numbers((calyx_options){.fpr = 0.01}, 0, 100);
    calyx_filter *other = NULL;
    const uint64_t number = 1;
    calyx_error why;
    calyx_overlap overlap;
    assert_int_equal(calyx_add(f, "a", 1, NULL), CALYX_CANNOT);
    assert_int_equal(calyx_add_u64(f, 1, NULL), CALYX_CANNOT);
    assert_int_equal(calyx_add_many_u64(f, &number, 1, NULL, NULL),
                     CALYX_CANNOT);
    assert_int_equal(calyx_remove(f, "a", 1, NULL), CALYX_CANNOT);
    assert_int_equal(calyx_clear(f), CALYX_CANNOT);
    assert_int_equal(calyx_merge(f, f, &why), CALYX_CANNOT);
    assert_non_null(strstr(why.text, "build another"));
    assert_non_null(strstr(why.text, "of kind line"));
    assert_int_equal(calyx_intersect(f, f, &why), CALYX_CANNOT);
    assert_int_equal(calyx_compare(f, f, &overlap, &why), CALYX_CANNOT);
    assert_int_equal(calyx_fits(f, f, &why), CALYX_CANNOT);
    assert_int_equal(calyx_fold(f, 1, &other, &why), CALYX_CANNOT);
    assert_int_equal(calyx_freeze(f, &other, &why), CALYX_CANNOT);
    assert_int_equal(calyx_new_like(f, &other, &why), CALYX_CANNOT);
    assert_int_equal(calyx_new_alike(f, &other, &why), CALYX_CANNOT);
    const calyx_options want = {.kind = "ribbon", .capacity = 1000};
    assert_int_equal(calyx_new(&want, &other, &why), CALYX_CANNOT);
    static const uint8_t zeros[4096];
    assert_int_equal(calyx_from_bits(&want, zeros, sizeof zeros, &other, &why),
                     CALYX_CANNOT);
    uint64_t size;
    calyx_small small;
    void *bits;
    assert_null(calyx_bits(f, &size));
    assert_false(calyx_make_small(f, &small, &bits));
    assert_true(info_of(f).read_only);
    assert_int_equal(calyx_kind_can("ribbon"),
                     CALYX_CAN_STATIC | CALYX_CAN_PARTS);
    calyx_free(f);
}

static void options_that_it_decides_itself_are_refused(void **state) {
    (void)state;
    static const calyx_options wrong[] = {
        {.kind = "ribbon", .probes = 7},
        {.kind = "ribbon", .growth = 2},
        {.kind = "ribbon", .strict = true},
        {.kind = "ribbon", .concurrent = true},
    };
    calyx_info info;
    calyx_error why;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(calyx_plan(&wrong[i], &info, &why), CALYX_CANNOT);
    const calyx_options low = {.kind = "ribbon", .fpr = 1e-10};
    assert_int_equal(calyx_plan(&low, &info, &why), CALYX_BAD_ARGUMENT);
}

static void a_size_decides_the_rate_or_the_number_of_keys(void **state) {
    (void)state;
    calyx_info rate, keys;
    assert_ok(calyx_plan(&(calyx_options){.kind = "ribbon",
                                          .bits = 7000000,
                                          .capacity = 1000000},
                         &rate, NULL));
    assert_true(rate.fpr > 0.009 && rate.fpr < 0.0101);
    assert_true(rate.bits <= 7000000 && rate.bits > 6900000);
    double again;
    assert_ok(calyx_rate_at(&(calyx_options){.kind = "ribbon",
                                             .bits = rate.bits,
                                             .capacity = rate.capacity,
                                             .probes = rate.probes},
                            1, &again, NULL));
    assert_true(fabs(again / rate.fpr - 1) < 0.001);
    assert_ok(calyx_plan(
        &(calyx_options){.kind = "ribbon", .bits = 7000000, .fpr = rate.fpr},
        &keys, NULL));
    assert_true(keys.capacity > 999000 && keys.capacity < 1003000);
    calyx_error why;
    assert_int_equal(calyx_plan(&(calyx_options){.kind = "ribbon",
                                                 .bits = 1000,
                                                 .capacity = 1000000},
                                &rate, &why),
                     CALYX_BAD_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_small_number_of_keys_is_found),
        cmocka_unit_test(a_filter_without_keys_says_no_to_everything),
        cmocka_unit_test(the_rate_is_the_one_wanted_at_any_value),
        cmocka_unit_test(a_million_keys_take_few_bits_and_plans_say_how_many),
        cmocka_unit_test(few_keys_take_no_more_than_in_a_line_filter),
        cmocka_unit_test(lots_can_be_built_in_any_order),
        cmocka_unit_test(lots_begin_at_their_lowest_hash),
        cmocka_unit_test(hashes_that_are_not_mixed_move_down_the_layers),
        cmocka_unit_test(a_group_with_too_many_keys_is_bumped_whole),
        cmocka_unit_test(flags_agree_with_textbook_elimination),
        cmocka_unit_test(every_kernel_answers_as_the_scalar_one),
        cmocka_unit_test(a_large_batch_answers_as_single_lookups_do),
        cmocka_unit_test(every_kernel_finds_places_beyond_2_gigabytes),
        cmocka_unit_test(places_beyond_32_bits_are_within_the_body),
        cmocka_unit_test(no_shape_that_passes_reads_outside),
        cmocka_unit_test(the_builder_makes_the_same_bytes),
        cmocka_unit_test(the_builder_keeps_hashes_at_the_borders_of_lots),
        cmocka_unit_test(a_copy_and_its_bytes_have_the_same_answers),
        cmocka_unit_test(a_lookup_in_place_verifies_only_what_it_reads),
        cmocka_unit_test(damaged_bytes_never_say_no),
        cmocka_unit_test(a_file_read_in_pieces_has_the_same_answers),
        cmocka_unit_test(a_filter_in_sections_has_the_same_answers),
        cmocka_unit_test(what_would_change_it_is_refused_with_a_way_out),
        cmocka_unit_test(options_that_it_decides_itself_are_refused),
        cmocka_unit_test(a_size_decides_the_rate_or_the_number_of_keys),
    };
    return RUN_TESTS(tests);
}
