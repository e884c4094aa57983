#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "filter/filter.h"
#include "support.h"

calyx_filter *make_filter(calyx_options want) {
    calyx_filter *f = NULL;
    calyx_error why;
    if (calyx_new(&want, &f, &why) != CALYX_OK) fail_msg("%s", why.text);
    return f;
}

calyx_info info_of(const calyx_filter *f) {
    calyx_info info;
    calyx_describe(f, &info);
    return info;
}

bool add(calyx_filter *f, const char *text) {
    bool fresh;
    assert_ok(calyx_add(f, text, strlen(text), &fresh));
    return fresh;
}

bool has(const calyx_filter *f, const char *text) {
    return calyx_has(f, text, strlen(text));
}

static bool same_body(const struct kind *kind, const struct part *p,
                      const struct part *q) {
    return p->shape.blocks == q->shape.blocks &&
           p->shape.probes == q->shape.probes &&
           memcmp(p->body, q->body, (size_t)body_bytes(kind, &p->shape)) == 0;
}

bool same_bodies(const calyx_filter *a, const calyx_filter *b) {
    const struct part *p = a->newest, *q = b->newest;
    while (p && q && a->kind == b->kind && same_body(a->kind, p, q))
        p = p->older, q = q->older;
    return !p && !q;
}

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
