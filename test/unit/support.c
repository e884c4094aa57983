#if defined(__linux__)
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE */
#endif
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "filter/filter.h"
#include "support.h"

calyx_filter *make_filter(calyx_options want) {
    calyx_filter *f = NULL;
    calyx_error why;
    if (!want.capacity && !want.bits) want.capacity = 1000;
    want.seeded = true; /* every run is the same run */
    if (calyx_new(&want, &f, &why) != CALYX_OK) fail_msg("%s", why.text);
    return f;
}

calyx_info info_of(const calyx_filter *f) {
    calyx_info info;
    calyx_describe(f, &info);
    return info;
}

const char *const *adding_kinds(void) {
    static const char *names[32];
    size_t n = 0;
    for (const char *const *kind = calyx_kinds(); *kind; kind++)
        if (calyx_kind_can(*kind) & CALYX_CAN_ADD) names[n++] = *kind;
    assert_true(n < sizeof names / sizeof names[0]);
    names[n] = NULL;
    return names;
}

bool counts_additions(const char *kind) {
    return calyx_kind_can(kind) & CALYX_CAN_COUNT;
}

bool is_table(const char *kind) {
    return kind_named(kind)->is_table;
}

bool is_bits_alone(const char *kind) {
    return !is_table(kind) && !counts_additions(kind);
}

size_t table_blocks(const char *kind, uint32_t parts) {
    if (!is_table(kind)) return 0;
    return parts > 1 ? 2 : 1;
}

bool add(calyx_filter *f, const char *text) {
    bool fresh;
    assert_ok(calyx_add(f, text, strlen(text), &fresh));
    return fresh;
}

bool has(const calyx_filter *f, const char *text) {
    return calyx_has(f, text, strlen(text));
}

void add_numbers(calyx_filter *f, uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; i++) assert_ok(calyx_add_u64(f, i, NULL));
}

uint64_t count_found(const calyx_filter *f, uint64_t from, uint64_t to) {
    uint64_t found = 0;
    for (uint64_t i = from; i < to; i++) found += calyx_has_u64(f, i);
    return found;
}

void assert_has_numbers(const calyx_filter *f, uint64_t from, uint64_t to) {
    assert_int_equal(count_found(f, from, to), to - from);
}

static bool same_body(const calyx_filter *a, const struct part *p,
                      const calyx_filter *b, const struct part *q) {
    if (p->shape.blocks != q->shape.blocks ||
        p->shape.probes != q->shape.probes)
        return false;
    const uint64_t bytes = body_bytes(a->kind, &p->shape);
    for (uint64_t at = 0; at < bytes;) {
        size_t size = (size_t)(bytes - at);
        const uint8_t *const here = body_at(a, p, at, &size);
        const uint8_t *const there = body_at(b, q, at, &size);
        if (memcmp(here, there, size) != 0) return false;
        at += size;
    }
    return true;
}

bool same_bodies(const calyx_filter *a, const calyx_filter *b) {
    const struct part *p = a->newest, *q = b->newest;
    while (p && q && a->kind == b->kind && same_body(a, p, b, q))
        p = p->older, q = q->older;
    return !p && !q;
}

/* Before each block stand its size and a mark. The counters are atomic and
 * relaxed: they order nothing that the thread sanitizer is to watch. */
enum { BEFORE = 64 };
static const size_t ALLOCATED = 0xCA1AB1E;

static size_t add_to(size_t *counter, size_t n) {
    return __atomic_add_fetch(counter, n, __ATOMIC_RELAXED);
}

void *counted_allocate(void *context, size_t size, size_t alignment) {
    struct books *books = context;
    assert_true(size > 0);
    assert_true(alignment > 0 && alignment <= BEFORE);
    assert_true((alignment & (alignment - 1)) == 0);
    const size_t call = add_to(&books->calls, 1);
    if (books->fails_at && (call == books->fails_at ||
                            (books->for_good && call > books->fails_at)))
        return NULL;

    const size_t rounded = BEFORE + (size + BEFORE - 1) / BEFORE * BEFORE;
    size_t *start = aligned_alloc(BEFORE, rounded);
    assert_non_null(start);
    memset(start, 0, rounded);
    start[0] = size;
    start[1] = ALLOCATED;
    add_to(&books->blocks, 1);
    const size_t bytes = add_to(&books->bytes, size);
    if (bytes > __atomic_load_n(&books->most, __ATOMIC_RELAXED))
        __atomic_store_n(&books->most, bytes, __ATOMIC_RELAXED);
    return (char *)start + BEFORE;
}

void counted_release(void *context, void *block, size_t size) {
    struct books *books = context;
    size_t *start = (size_t *)(void *)((char *)block - BEFORE);
    assert_int_equal(start[1], ALLOCATED); /* else it was released before */
    assert_int_equal(start[0], size);
    memset(start, 0xEE, BEFORE + size);
    free(start);
    add_to(&books->blocks, (size_t)-1);
    add_to(&books->bytes, 0 - size);
}

calyx_memory hooks_of(struct books *books) {
    return (calyx_memory){counted_allocate, counted_release, books};
}

size_t blocks_of(const struct books *books) {
    return __atomic_load_n(&books->blocks, __ATOMIC_RELAXED);
}

static void *map_pages(void *context, size_t size, size_t alignment) {
    (void)context, (void)alignment; /* pages are aligned to more */
    void *block = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return block == MAP_FAILED ? NULL : block;
}

static void unmap_pages(void *context, void *block, size_t size) {
    (void)context;
    munmap(block, size);
}

const calyx_memory sparse_memory = {map_pages, unmap_pages, NULL};

/* SplitMix64, by Sebastiano Vigna: a counter, mixed. */
uint64_t random_word(struct generator *from) {
    uint64_t x = from->state += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

uint64_t random_below(struct generator *from, uint64_t limit) {
    return (uint64_t)((unsigned __int128)random_word(from) * limit >> 64);
}

static double odds_of(uint64_t x, uint64_t n, double p) {
    const double all = (double)n, some = (double)x;
    return exp(lgamma(all + 1) - lgamma(some + 1) - lgamma(all - some + 1) +
               some * log(p) + (all - some) * log1p(-p));
}

/* The terms are summed from x upwards, until they no longer matter; below the
 * mean they still rise, and all but the last few do. */
double odds_at_least(uint64_t x, uint64_t n, double p) {
    if (x == 0 || p >= 1) return 1;
    if (p <= 0) return 0;
    double sum = 0;
    for (uint64_t i = x; i <= n; i++) {
        const double term = odds_of(i, n, p);
        sum += term;
        if ((double)i > (double)n * p && term <= sum * 1e-12) break;
    }
    return fmin(1, sum);
}

const char *temporary_or(const char *otherwise) {
    const char *folder = getenv("TMPDIR");
    if (!folder || !*folder) return otherwise;
    if (strlen(folder) < FOLDER_BYTES - 30) return folder;
    print_message("TMPDIR is too long for messages; %s is used\n", otherwise);
    return otherwise;
}

/* At most x succeed if at least n - x fail. */
double odds_at_most(uint64_t x, uint64_t n, double p) {
    return x >= n ? 1 : odds_at_least(n - x, n, 1 - p);
}

bool at_best_level(void) {
    const char *const level = getenv("CALYX_KERNEL");
    return !level || strcmp(level, *calyx_kernels()) == 0;
}
