/* CF.EXISTS, CF.MEXISTS, CF.COUNT: look items up. */
#include <string.h>

#include "command/command.h"
#include "command/items.h"
#include "cuckoo/cf.h"
#include "server/reply.h"
#include "server/steps.h"

static bool native_has(const struct filter *f, RedisModuleString *item) {
    size_t size;
    const char *bytes = RM_StringPtrLen(item, &size);
    return f->layout->has(f, bytes, size);
}

static uint32_t native_count(const struct filter *f, RedisModuleString *item) {
    size_t size;
    const char *bytes = RM_StringPtrLen(item, &size);
    return calyx_count(f->native, bytes, size);
}

static int run_cf_exists(RedisModuleCtx *ctx, RedisModuleString **argv,
                         int argc) {
    if (argc != 3) return RM_WrongArity(ctx);
    struct cf_filter f;
    const struct cuckoo_hash h = cf_hash(argv[2]);
    if (!cf_find(ctx, argv[1], MUST_BE_COMPLETE, &f)) return RM_OK;
    if (!cf_is_missing(f)) cf_prefetch_next(f);
    const bool found = f.native ? native_has(f.native, argv[2])
                                : f.cuckoo && cuckoo_has(f.cuckoo, h);
    stats.lookups++;
    stats.positives += found;
    return RM_ReplyWithBool(ctx, found);
}

static int run_cf_count(RedisModuleCtx *ctx, RedisModuleString **argv,
                        int argc) {
    if (argc != 3) return RM_WrongArity(ctx);
    struct cf_filter f;
    const struct cuckoo_hash h = cf_hash(argv[2]);
    if (!cf_find(ctx, argv[1], MUST_BE_COMPLETE, &f)) return RM_OK;
    const uint64_t count = f.native   ? native_count(f.native, argv[2])
                           : f.cuckoo ? cuckoo_count(f.cuckoo, h)
                                      : 0;
    stats.lookups++;
    stats.positives += count > 0;
    return RM_ReplyWithLongLong(ctx, (long long)count);
}

/* ---- Many items ---------------------------------------------------------- */

static uint64_t item_lines(const struct cuckoo *c) {
    return 2 * (uint64_t)c->parts;
}

static void look_up(const struct cuckoo *c, const struct items *items) {
    if (c)
        stats.positives +=
            cuckoo_has_many(c, items->keys, items->n, items->answers);
    else
        memset(items->answers, false, items->n);
    stats.lookups += items->n;
}

static bool cuckoo_look_up_step(RedisModuleCtx *ctx, struct job *job) {
    struct items_job *const j = (struct items_job *)job;
    const struct cuckoo *c = cf_find_again(ctx, job->argv[1], j->life);
    j->gone = !c;
    if (!c) return true;
    const struct items some = items_next_by(j, item_lines(c));
    look_up(c, &some);
    j->at += some.n;
    return j->at == j->items.n;
}

static int reply_cuckoo_found(RedisModuleCtx *ctx, struct job *job) {
    struct items_job *const j = (struct items_job *)job;
    if (j->gone)
        return RM_ReplyWithError(
            ctx, "ERR the filter was deleted or replaced while it was queried; "
                 "query all items again");
    RM_ReplyWithArray(ctx, (long)j->items.n);
    return reply_bools(ctx, j->items.answers, j->items.n);
}

static void look_up_in_steps(RedisModuleCtx *ctx, const struct cuckoo *c,
                             RedisModuleString **argv, int argc) {
    struct items_job *const j =
        items_job_new(ctx, c->life, argv, argc, 2, sizeof *j);
    j->job.step = cuckoo_look_up_step;
    j->job.reply = reply_cuckoo_found;
    steps_start(ctx, &j->job);
}

static int run_cf_mexists(RedisModuleCtx *ctx, RedisModuleString **argv,
                          int argc) {
    if (argc < 3) return RM_WrongArity(ctx);
    struct cf_filter f;
    struct items items;
    if (!cf_find(ctx, argv[1], MUST_BE_COMPLETE, &f)) return RM_OK;
    if (f.native) {
        look_up_items(ctx, f.native, argv, argc);
        return RM_OK;
    }
    const struct cuckoo *const c = f.cuckoo;
    items_open(&items, argv + 2, argc - 2);
    if (c && items_exceed_step(&items, item_lines(c)) && steps_can_wait(ctx)) {
        look_up_in_steps(ctx, c, argv, argc);
    } else {
        look_up(c, &items);
        RM_ReplyWithArray(ctx, argc - 2);
        reply_bools(ctx, items.answers, items.n);
    }
    items_close(&items);
    return RM_OK;
}

const struct command cf_exists = {
    .name = "cf.exists",
    .run = run_cf_exists,
    .flags = "readonly fast",
    .categories = "read cuckoo",
    .docs = {.summary = "Checks whether an item may be in a cuckoo filter.",
             .complexity = COST_OF_ITEM,
             .arity = 3,
             .key_specs = key_read,
             .args = item_args},
};

const struct command cf_mexists = {
    .name = "cf.mexists",
    .run = run_cf_mexists,
    .flags = "readonly fast",
    .categories = "read cuckoo",
    .docs = {.summary =
                 "Checks for each item whether it may be in a cuckoo filter.",
             .complexity = COST_OF_ITEMS,
             .arity = -3,
             .key_specs = key_read,
             .args = items_args},
};

const struct command cf_count = {
    .name = "cf.count",
    .run = run_cf_count,
    .flags = "readonly fast",
    .categories = "read cuckoo",
    .docs = {.summary = "Returns how often an item was added to a cuckoo "
                        "filter, at most.",
             .complexity = COST_OF_ITEM,
             .arity = 3,
             .key_specs = key_read,
             .args = item_args},
};
