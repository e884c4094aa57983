/* What the tests share: making filters without ceremony, keys from a fixed
 * seed, and the odds of a count. */
#ifndef CALYX_TEST_SUPPORT_H
#define CALYX_TEST_SUPPORT_H

#include <calyx/calyx.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* A sanitizer makes everything several times slower. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* Run a list of tests, as a program's last word. */
#define RUN_TESTS(tests) cmocka_run_group_tests(tests, NULL, NULL)

#define assert_ok(call) assert_int_equal(call, CALYX_OK)

/* CALYX_CASE='a_list_*': only the tests of a program whose names match. */
__attribute__((constructor)) static void choose_tests(void) {
    cmocka_set_test_filter(getenv("CALYX_CASE"));
}

/* A filter as wanted, by default of 1000 keys, or the test fails with the
 * library's own words. */
calyx_filter *make_filter(calyx_options want);

/* The description of a filter, as a value. */
calyx_info info_of(const calyx_filter *f);

/* The kinds whose filters are made by adding, for tests that add; as
 * calyx_kinds(). */
const char *const *adding_kinds(void);

#define EACH_KIND(kind) \
    for (const char *const *kind = adding_kinds(); *kind; kind++)

/* All kinds, for tests of builders, which make static filters, too. */
#define EACH_BUILT_KIND(kind) \
    for (const char *const *kind = calyx_kinds(); *kind; kind++)

#define EACH_KIND_THAT_CAN(kind, ability) \
    EACH_KIND(kind) if (calyx_kind_can(*kind) & (ability))

/* Does every addition count, also of a key that is there? */
bool counts_additions(const char *kind);

/* Does a filter of this kind have slots for its keys, and not only bits that
 * they set? Then it is full at last, and the bytes depend on the order of the
 * keys. */
bool is_table(const char *kind);

/* Do additions only set bits, and is there nothing else in a filter of this
 * kind? Then its file can be changed in place, and its bits make it again. */
bool is_bits_alone(const char *kind);

/* Blocks of memory that a filter of this number of parts has for its table,
 * without the parts: the table and, once it has grown, a list. */
size_t table_blocks(const char *kind, uint32_t parts);

#define EACH_KIND_OF_BITS(kind) EACH_KIND(kind) if (!is_table(*kind))

/* Add and look up text. `add` returns whether it was fresh. */
bool add(calyx_filter *f, const char *text);
bool has(const calyx_filter *f, const char *text);

/* Add and look up, one by one, the numbers from `from` up to, but without,
 * `to`.
 */
void add_numbers(calyx_filter *f, uint64_t from, uint64_t to);
uint64_t count_found(const calyx_filter *f, uint64_t from, uint64_t to);
void assert_has_numbers(const calyx_filter *f, uint64_t from, uint64_t to);

/* Do two filters have the same parts, to the last bit and counter? */
bool same_bodies(const calyx_filter *a, const calyx_filter *b);

/* Memory that is counted, from any thread, and that can fail. Releasing checks
 * that the block was allocated here, with this size. */
struct books {
    size_t calls, fails_at; /* the call that fails; 0: none      */
    bool for_good;          /* every call from then on fails too */
    size_t blocks, bytes;   /* in use                            */
    size_t most;            /* bytes in use at any time          */
};
calyx_memory hooks_of(struct books *books);
size_t blocks_of(const struct books *books);
void *counted_allocate(void *books, size_t size, size_t alignment);
void counted_release(void *books, void *block, size_t size);

/* Memory for huge filters: only the pages that are written exist. */
extern const calyx_memory sparse_memory;

/* Random words: the same from the same seed, on every machine. Any seed does,
 * and `random_below` is even enough for tests. */
struct generator {
    uint64_t state;
};
uint64_t random_word(struct generator *from);
uint64_t random_below(struct generator *from, uint64_t limit);

/* The exact odds that, of n trials with the chance p each, at least (or at
 * most) x succeed. */
double odds_at_least(uint64_t x, uint64_t n, double p);
double odds_at_most(uint64_t x, uint64_t n, double p);

/* Where temporary files go: to TMPDIR, if it is set. Messages cut names of
 * files after 100 bytes, and tests look for whole ones: a TMPDIR of 70 bytes
 * and more is not used, which is said. Folders in it are named in FOLDER_BYTES.
 */
enum { FOLDER_BYTES = 100 };
const char *temporary_or(const char *otherwise);

/* Is this the run at the processor's best level? ctest runs most tests at each.
 */
bool at_best_level(void);

/* What a test of chance may leave to bad luck. */
#define UNLIKELY 1e-9

#endif
