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

/* A filter as wanted, or the test fails with the library's own words. */
calyx_filter *make_filter(calyx_options want);

/* The description of a filter, as a value. */
calyx_info info_of(const calyx_filter *f);

/* Add and ask for text. `add` tells whether it was fresh. */
bool add(calyx_filter *f, const char *text);
bool has(const calyx_filter *f, const char *text);

/* Do two filters have the same parts, to the last bit and counter? */
bool same_bodies(const calyx_filter *a, const calyx_filter *b);

/* Random words: the same from the same seed, on every machine. Any seed does,
 * and `random_below` is even enough for tests. */
struct generator {
    uint64_t state;
};
uint64_t random_word(struct generator *from);
uint64_t random_below(struct generator *from, uint64_t limit);

/* The exact odds that of n trials with the chance p each, at least (or at most)
 * x succeed. */
double odds_at_least(uint64_t x, uint64_t n, double p);
double odds_at_most(uint64_t x, uint64_t n, double p);

/* Where temporary files go: to TMPDIR, if it is set. Messages cut names of
 * files after 100 bytes, and tests look for whole ones: a TMPDIR of 70 bytes
 * and more is not used, which is said. Folders in it are named in FOLDER_BYTES.
 */
enum { FOLDER_BYTES = 100 };
const char *temporary_or(const char *otherwise);

/* What a test of chance may leave to bad luck. */
#define UNLIKELY 1e-9

#endif
