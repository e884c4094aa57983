/* libbloom, as Debian ships it: the filter of the textbook, one key a call. */
#include "bench.h"

#if CALYX_BENCH_LIBBLOOM
#include <bloom.h>
#include <limits.h>
#include <stdlib.h>

static bool make(struct contestant *c, uint64_t n, double fpr) {
    struct bloom *b = malloc(sizeof *b);
    c->self = b;
    return n <= INT_MAX && bloom_init(b, n < 1000 ? 1000 : (int)n, fpr) == 0;
}

static void clear(struct contestant *c) {
    bloom_reset(c->self);
}

static void end(struct contestant *c) {
    bloom_free(c->self);
    free(c->self);
}

/* It knows no batches; what it does a key at a time is what its user gets. */
static bool can(const struct contestant *c, const struct task *task) {
    (void)c;
    return task->form != HASHES && !task->batch &&
           (task->verb == HAS || task->verb == ADD);
}

static size_t run(struct contestant *c, const struct task *task,
                  struct segment *s) {
    size_t found = 0;
    if (task->verb == HAS && task->form == NUMBERS)
        for (size_t i = 0; i < s->n; i++)
            found += s->answers[i] = bloom_check(c->self, &s->numbers[i], 8);
    else if (task->verb == HAS)
        for (size_t i = 0; i < s->n; i++)
            found += s->answers[i] =
                bloom_check(c->self, s->urls[i].data, (int)s->urls[i].size);
    else if (task->form == NUMBERS)
        for (size_t i = 0; i < s->n; i++) bloom_add(c->self, &s->numbers[i], 8);
    else
        for (size_t i = 0; i < s->n; i++)
            bloom_add(c->self, s->urls[i].data, (int)s->urls[i].size);
    return found;
}

static uint64_t bytes(const struct contestant *c) {
    const struct bloom *b = c->self;
    return (uint64_t)b->bytes;
}

static const struct trade trade = {make, clear, end, can, run, bytes};

int libbloom_contestants(struct contestant *to) {
    *to = (struct contestant){
        .name = "libbloom", .trade = &trade, .answers = true};
    return 1;
}
#else
int libbloom_contestants(struct contestant *to) {
    (void)to;
    return 0;
}
#endif
