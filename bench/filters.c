/* Our own filters, through libcalyx.so, as anybody would call them. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* The bits that a filter takes once it has grown to n keys. */
static uint64_t grown_bits(const calyx_options *grown, uint64_t n) {
    calyx_filter *f;
    calyx_info info;
    uint64_t hashes[1024];
    if (calyx_new(grown, &f, NULL) != CALYX_OK) return 0;
    for (uint64_t i = 0; i < n; i += 1024) {
        for (uint64_t j = 0; j < 1024; j++) hashes[j] = mixed(i + j + 1);
        const size_t some = n - i < 1024 ? (size_t)(n - i) : 1024;
        calyx_add_hashes(f, hashes, some, NULL, NULL);
    }
    calyx_describe(f, &info);
    calyx_free(f);
    return 8 * info.bytes;
}

static bool make(struct contestant *c, uint64_t n, double fpr) {
    calyx_options want = {.kind = c->kind,
                          .kernel = c->kernel,
                          .capacity = n,
                          .fpr = fpr,
                          .concurrent = c->shared,
                          .growth = c->growth,
                          .seeded = true};
    if (c->growth > 0) /* ten parts, doubling */
        want.capacity = c->first ? c->first : n / 1023 + 1;
    if (c->like_grown) {
        want.bits = grown_bits(&want, n);
        want.capacity = n;
        want.fpr = want.growth = 0;
    }
    calyx_filter *f;
    calyx_info info;
    calyx_error why;
    if (c->by_hand &&
        (calyx_plan(&want, &info, NULL) != CALYX_OK || info.probes > 8))
        return false;
    if (calyx_new(&want, &f, &why) != CALYX_OK) {
        fprintf(stderr, "calyx-bench: %s: %s\n", c->name, why.text);
        return false;
    }
    c->self = f;
    return true;
}

static void clear(struct contestant *c) {
    calyx_clear(c->self);
}

static void end(struct contestant *c) {
    calyx_free(c->self);
}

/* Segments carry xxh3 hashes, which is not what every kind hashes by. */
static bool can(const struct contestant *c, const struct task *task) {
    if (c->quick || c->by_hand)
        return task->single &&
               (task->form == NUMBERS || task->form == HASHES) &&
               (task->verb == HAS || task->verb == ADD);
    if (task->verb == REMOVE) return calyx_kind_can(c->kind) & CALYX_CAN_REMOVE;
    return task->form != HASHES || strcmp(c->kind, "split") != 0;
}

static size_t has_each(const calyx_filter *f, const struct task *task,
                       struct segment *s) {
    size_t found = 0;
    if (task->form == NUMBERS)
        for (size_t i = 0; i < s->n; i++)
            found += s->answers[i] = calyx_has_u64(f, s->numbers[i]);
    else if (task->form == HASHES)
        for (size_t i = 0; i < s->n; i++)
            found += s->answers[i] = calyx_has_hash(f, s->hashes[i]);
    else
        for (size_t i = 0; i < s->n; i++)
            found += s->answers[i] =
                calyx_has(f, s->urls[i].data, s->urls[i].size);
    return found;
}

static size_t call_size(const struct task *task, const struct segment *s,
                        size_t from) {
    const size_t left = s->n - from, most = (size_t)task->batch;
    return most && most < left ? most : left;
}

static size_t has_many(const calyx_filter *f, const struct task *task,
                       struct segment *s) {
    size_t found = 0;
    for (size_t i = 0, n; i < s->n; i += n) {
        bool *const answers = s->answers + i;
        n = call_size(task, s, i);
        switch (task->form) {
            case HASHES:
                found += calyx_has_hashes(f, s->hashes + i, n, answers);
                break;
            case NUMBERS:
                found += calyx_has_many_u64(f, s->numbers + i, n, answers);
                break;
            default: found += calyx_has_many(f, s->urls + i, n, answers);
        }
    }
    return found;
}

static void add_each(calyx_filter *f, const struct task *task,
                     struct segment *s) {
    bool *const fresh = task->verb == ADD_FRESH ? s->answers : NULL;
    if (task->form == NUMBERS)
        for (size_t i = 0; i < s->n; i++)
            calyx_add_u64(f, s->numbers[i], fresh ? fresh + i : NULL);
    else if (task->form == HASHES)
        for (size_t i = 0; i < s->n; i++)
            calyx_add_hash(f, s->hashes[i], fresh ? fresh + i : NULL);
    else
        for (size_t i = 0; i < s->n; i++)
            calyx_add(f, s->urls[i].data, s->urls[i].size,
                      fresh ? fresh + i : NULL);
}

static void add_many(calyx_filter *f, const struct task *task,
                     struct segment *s) {
    for (size_t i = 0, n; i < s->n; i += n) {
        bool *const fresh = task->verb == ADD_FRESH ? s->answers + i : NULL;
        n = call_size(task, s, i);
        switch (task->form) {
            case HASHES:
                calyx_add_hashes(f, s->hashes + i, n, fresh, NULL);
                break;
            case NUMBERS:
                calyx_add_many_u64(f, s->numbers + i, n, fresh, NULL);
                break;
            default: calyx_add_many(f, s->urls + i, n, fresh, NULL);
        }
    }
}

static size_t remove_each(calyx_filter *f, struct segment *s) {
    size_t found = 0;
    for (size_t i = 0; i < s->n; i++) {
        calyx_remove(f, &s->numbers[i], sizeof s->numbers[i], &s->answers[i]);
        found += s->answers[i];
    }
    return found;
}

static size_t remove_many(calyx_filter *f, struct segment *s) {
    size_t found;
    calyx_remove_many_u64(f, s->numbers, s->n, s->answers, &found);
    return found;
}

static size_t run(struct contestant *c, const struct task *task,
                  struct segment *s) {
    calyx_filter *f = c->self;
    if ((c->quick || c->by_hand) && task->single) {
        if (task->verb == HAS)
            return c->quick ? quick_has(f, task->form, s)
                            : hand_has(f, task->form, s);
        c->quick ? quick_add(f, task->form, s) : hand_add(f, task->form, s);
        return 0;
    }
    if (task->verb == HAS)
        return task->single ? has_each(f, task, s) : has_many(f, task, s);
    if (task->verb == REMOVE)
        return task->single ? remove_each(f, s) : remove_many(f, s);
    if (task->single)
        add_each(f, task, s);
    else
        add_many(f, task, s);
    return 0;
}

static uint64_t bytes(const struct contestant *c) {
    calyx_info info;
    calyx_describe(c->self, &info);
    return info.bytes;
}

static const struct trade trade = {make, clear, end, can, run, bytes};

/* ---- Kinds that are built once from all keys ----------------------------- */

/* Keys go to a builder; the filter is built when it is first asked. */
struct built {
    calyx_builder *builder;
    calyx_filter *filter; /* or NULL */
    calyx_builder_options want;
};

static bool begin(struct contestant *c) {
    struct built *const b = c->self;
    calyx_error why;
    if (calyx_builder_new(&b->want, &b->builder, &why) == CALYX_OK) return true;
    fprintf(stderr, "calyx-bench: %s: %s\n", c->name, why.text);
    return false;
}

static bool built_make(struct contestant *c, uint64_t n, double fpr) {
    struct built *const b = calloc(1, sizeof *b);
    c->self = b;
    b->want.filter =
        (calyx_options){.kind = c->kind, .kernel = c->kernel, .fpr = fpr};
    b->want.memory_bytes = 16 * n + (1 << 20); /* no files */
    b->want.threads = c->shared ? 2 : 1;
    return begin(c);
}

static void built_end(struct contestant *c) {
    struct built *const b = c->self;
    calyx_builder_free(b->builder);
    calyx_free(b->filter);
    free(b);
}

static void built_clear(struct contestant *c) {
    struct built *const b = c->self;
    calyx_builder_free(b->builder);
    calyx_free(b->filter);
    b->filter = NULL;
    begin(c);
}

/* With two threads, only building is of interest. */
static bool built_can(const struct contestant *c, const struct task *task) {
    return task->verb == HAS && !c->shared;
}

static void built_add(struct built *b, const struct task *task,
                      const struct segment *s) {
    if (task->form == NUMBERS)
        calyx_builder_add_many_u64(b->builder, s->numbers, s->n, NULL);
    else
        calyx_builder_add_many(b->builder, s->urls, s->n, NULL);
}

static size_t built_run(struct contestant *c, const struct task *task,
                        struct segment *s) {
    struct built *const b = c->self;
    if (task->verb != HAS) {
        built_add(b, task, s);
        return 0;
    }
    if (!b->filter) {
        calyx_builder_finish(b->builder, &b->filter, NULL);
        calyx_builder_free(b->builder);
        b->builder = NULL;
    }
    return task->single ? has_each(b->filter, task, s)
                        : has_many(b->filter, task, s);
}

static uint64_t built_bytes(const struct contestant *c) {
    const struct built *const b = c->self;
    calyx_info info;
    calyx_info_of(b->filter, &info);
    return info.bytes;
}

static const struct trade built_trade = {built_make, built_clear, built_end,
                                         built_can,  built_run,   built_bytes};

/* ---- Which --------------------------------------------------------------- */

bool is_listed(const char *list, const char *name) {
    const size_t size = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += size)
        if ((at == list || at[-1] == ',') && (!at[size] || at[size] == ','))
            return true;
    return false;
}

/* A kind without a kernel at a level takes the next lower one, and would only
 * run the same code twice. */
static bool has_kernel(const char *kind, const char *kernel) {
    const calyx_options want = {.kind = kind, .capacity = 1, .kernel = kernel};
    calyx_info info;
    return calyx_plan(&want, &info, NULL) == CALYX_OK &&
           strcmp(info.kernel, kernel) == 0;
}

const char *best_level(const char *kind) {
    const char *const *level = calyx_kernels();
    while (!has_kernel(kind, *level)) level++;
    return *level;
}

static void enter(struct contestant *c, const char *kind, const char *kernel,
                  const char *more) {
    const bool is_static = calyx_kind_can(kind) & CALYX_CAN_STATIC;
    *c = (struct contestant){.trade = is_static ? &built_trade : &trade,
                             .answers = true,
                             .kind = kind,
                             .kernel = kernel};
    snprintf(c->name, sizeof c->name, "%s/%s%s", kind, kernel, more);
}

int calyx_contestants(struct contestant *to, const char *kinds) {
    const char *const *const kernels = calyx_kernels();
    int count = 0;
    for (const char *const *kind = calyx_kinds(); *kind; kind++) {
        if (kinds && !is_listed(kinds, *kind)) continue;
        for (const char *const *level = kernels; *level; level++)
            if (has_kernel(*kind, *level))
                enter(to + count++, *kind, *level, "");
        const char *const best = best_level(*kind);
        if (calyx_kind_can(*kind) & CALYX_CAN_GROW_IN_PLACE) {
            enter(to + count, *kind, best, " grown");
            to[count].growth = 2;
            to[count++].first = 1000;
        }
        if (!(calyx_kind_can(*kind) & CALYX_CAN_STATIC)) continue;
        enter(to + count, *kind, best, " by 2 threads");
        to[count++].shared = true;
    }
    if (kinds && !is_listed(kinds, "line")) return count;
    const char *const best = best_level("line");
    if (strcmp(best, "avx2") == 0) {
        enter(to + count, "line", best, " quick");
        to[count++].quick = true;
        enter(to + count, "line", best, " by hand");
        to[count++].by_hand = true;
    }
    enter(to + count, "line", best, " shared");
    to[count++].shared = true;
    enter(to + count, "line", best, " grown");
    to[count++].growth = 2;
    enter(to + count, "line", best, " as large as grown");
    to[count].growth = 2;
    to[count++].like_grown = true;
    return count;
}
