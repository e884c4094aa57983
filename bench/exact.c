/* Exact sets that somebody might take instead: a table with open addressing,
 * and a sorted array asked by binary search. Of numbers only. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* ---- A table, half full at most, probed along ---------------------------- */

/* Zero stands for an empty place; no member is zero. */
struct table {
    uint64_t mask, bytes;
    uint64_t *place;
};

static bool table_make(struct contestant *c, uint64_t n, double fpr) {
    (void)fpr;
    struct table *t = malloc(sizeof *t);
    uint64_t places = 16;
    while (places < 2 * n) places *= 2;
    t->mask = places - 1;
    t->bytes = places * sizeof *t->place;
    t->place = take_pages(t->bytes);
    c->self = t;
    return t->place != NULL;
}

static void table_clear(struct contestant *c) {
    struct table *t = c->self;
    memset(t->place, 0, t->bytes);
}

static void table_end(struct contestant *c) {
    struct table *t = c->self;
    give_pages(t->place, t->bytes);
    free(t);
}

static uint64_t *find(const struct table *t, uint64_t key) {
    uint64_t at = mixed(key) & t->mask;
    while (t->place[at] && t->place[at] != key) at = (at + 1) & t->mask;
    return &t->place[at];
}

static size_t table_run(struct contestant *c, const struct task *task,
                        struct segment *s) {
    const struct table *t = c->self;
    size_t found = 0;
    if (task->verb == HAS)
        for (size_t i = 0; i < s->n; i++)
            found += s->answers[i] = *find(t, s->numbers[i]) != 0;
    else
        for (size_t i = 0; i < s->n; i++)
            *find(t, s->numbers[i]) = s->numbers[i];
    return found;
}

static uint64_t table_bytes(const struct contestant *c) {
    const struct table *t = c->self;
    return t->bytes;
}

/* ---- A sorted array ------------------------------------------------------ */

/* It is sorted when first asked. */
struct sorted {
    uint64_t n, most;
    bool is_sorted;
    uint64_t *key;
};

static bool sorted_make(struct contestant *c, uint64_t n, double fpr) {
    (void)fpr;
    struct sorted *a = calloc(1, sizeof *a);
    a->most = n;
    a->key = take_pages(n * sizeof *a->key);
    c->self = a;
    return a->key != NULL;
}

static void sorted_clear(struct contestant *c) {
    struct sorted *a = c->self;
    a->n = 0;
}

static void sorted_end(struct contestant *c) {
    struct sorted *a = c->self;
    give_pages(a->key, a->most * sizeof *a->key);
    free(a);
}

static int compare(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static size_t sorted_run(struct contestant *c, const struct task *task,
                         struct segment *s) {
    struct sorted *a = c->self;
    if (task->verb != HAS) {
        for (size_t i = 0; i < s->n && a->n < a->most; i++)
            a->key[a->n++] = s->numbers[i];
        a->is_sorted = false;
        return 0;
    }
    if (!a->is_sorted) qsort(a->key, a->n, sizeof *a->key, compare);
    a->is_sorted = true;
    size_t found = 0;
    for (size_t i = 0; i < s->n; i++)
        found += s->answers[i] = bsearch(&s->numbers[i], a->key, a->n,
                                         sizeof *a->key, compare) != NULL;
    return found;
}

static uint64_t sorted_bytes(const struct contestant *c) {
    const struct sorted *a = c->self;
    return a->most * sizeof *a->key;
}

static bool can(const struct contestant *c, const struct task *task) {
    (void)c;
    return task->form == NUMBERS && task->single && task->verb == HAS;
}

static const struct trade table_trade = {table_make, table_clear, table_end,
                                         can,        table_run,   table_bytes};
static const struct trade sorted_trade = {
    sorted_make, sorted_clear, sorted_end, can, sorted_run, sorted_bytes};

int exact_contestants(struct contestant *to) {
    to[0] = (struct contestant){.name = "table, exact",
                                .trade = &table_trade,
                                .answers = true,
                                .exact = true};
    to[1] = (struct contestant){.name = "sorted array, exact",
                                .trade = &sorted_trade,
                                .answers = true,
                                .exact = true};
    return 2;
}
