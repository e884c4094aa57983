/* BF.EXISTS, BF.MEXISTS, CF.EXISTS, CF.MEXISTS, CF.COUNT: look items up. */
#include <string.h>

#include "command/command.h"
#include "command/items.h"
#include "command/open_key.h"
#include "server/reply.h"
#include "server/steps.h"

/* ---- One item ------------------------------------------------------------ */

static int exists(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                  enum family family) {
    if (argc != 3) return RM_WrongArity(ctx);
    struct filter *f;
    size_t size;
    const char *item = RM_StringPtrLen(argv[2], &size);
    filter_prefetch(item, size);
    if (!find_filter(ctx, argv[1], MUST_BE_COMPLETE | words_of[family].flags,
                     &f))
        return RM_OK;
    if (f) filter_prefetch_next(f);
    const bool found = f && f->layout->has(f, item, size);
    stats.lookups++;
    stats.positives += found;
    return RM_ReplyWithBool(ctx, found);
}

static int run_exists(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    return exists(ctx, argv, argc, BLOOM);
}

static int run_cf_exists(RedisModuleCtx *ctx, RedisModuleString **argv,
                         int argc) {
    return exists(ctx, argv, argc, CUCKOO);
}

static int run_cf_count(RedisModuleCtx *ctx, RedisModuleString **argv,
                        int argc) {
    if (argc != 3) return RM_WrongArity(ctx);
    struct filter *f;
    size_t size;
    const char *item = RM_StringPtrLen(argv[2], &size);
    filter_prefetch(item, size);
    if (!find_filter(ctx, argv[1], MUST_BE_COMPLETE | FOR_CF_COMMAND, &f))
        return RM_OK;
    if (f) filter_prefetch_next(f);
    const uint64_t count = f ? f->layout->count(f, item, size) : 0;
    stats.lookups++;
    stats.positives += count > 0;
    return RM_ReplyWithLongLong(ctx, (long long)count);
}

/* ---- Many items, in steps if they are too many for one ------------------- */

static bool look_up_step(RedisModuleCtx *ctx, struct job *job) {
    struct items_job *const j = (struct items_job *)job;
    const struct filter *f = find_again(ctx, job->argv[1], j->life);
    j->gone = !f;
    if (!f) return true;
    const struct items some = items_next(j, f);
    stats.positives += f->layout->has_many(f, some.keys, some.n, some.answers);
    stats.lookups += some.n;
    j->at += some.n;
    return j->at == j->items.n;
}

static int reply_found(RedisModuleCtx *ctx, struct job *job) {
    const struct items_job *const j = (struct items_job *)job;
    if (j->gone)
        return reply_text(ctx,
                          "ERR the filter was %s while it was queried; query "
                          "all items again",
                          words_of[j->family].gone);
    RM_ReplyWithArray(ctx, (long)j->items.n);
    return reply_bools(ctx, j->items.answers, j->items.n);
}

static int look_up_in_steps(RedisModuleCtx *ctx, const struct filter *f,
                            RedisModuleString **argv, int argc,
                            enum family family) {
    struct items_job *const j =
        items_job_new(ctx, f, family, argv, argc, 2, sizeof *j);
    j->job.step = look_up_step;
    j->job.reply = reply_found;
    return steps_start(ctx, &j->job);
}

static int mexists(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                   enum family family) {
    if (argc < 3) return RM_WrongArity(ctx);
    struct filter *f;
    struct items items;
    if (!find_filter(ctx, argv[1], MUST_BE_COMPLETE | words_of[family].flags,
                     &f))
        return RM_OK;
    items_open(&items, argv + 2, argc - 2);
    if (f && items_need_steps(&items, f, false) && steps_can_wait(ctx)) {
        look_up_in_steps(ctx, f, argv, argc, family);
    } else {
        if (f)
            stats.positives +=
                f->layout->has_many(f, items.keys, items.n, items.answers);
        else
            memset(items.answers, false, items.n);
        stats.lookups += items.n;
        RM_ReplyWithArray(ctx, argc - 2);
        reply_bools(ctx, items.answers, items.n);
    }
    items_close(&items);
    return RM_OK;
}

static int run_mexists(RedisModuleCtx *ctx, RedisModuleString **argv,
                       int argc) {
    return mexists(ctx, argv, argc, BLOOM);
}

static int run_cf_mexists(RedisModuleCtx *ctx, RedisModuleString **argv,
                          int argc) {
    return mexists(ctx, argv, argc, CUCKOO);
}

/* ---- The commands -------------------------------------------------------- */

const struct command bf_exists = {
    .name = "bf.exists",
    .run = run_exists,
    .flags = "readonly fast",
    .categories = "read bloom",
    .docs = {.summary = "Checks whether an item may be in a Bloom filter.",
             .complexity = COST_OF_ITEM,
             .arity = 3,
             .key_specs = key_read,
             .args = item_args},
};

const struct command bf_mexists = {
    .name = "bf.mexists",
    .run = run_mexists,
    .flags = "readonly",
    .categories = "read bloom",
    .docs = {.summary =
                 "Checks for each item whether it may be in a Bloom filter.",
             .complexity = COST_OF_ITEMS,
             .arity = -3,
             .key_specs = key_read,
             .args = items_args},
};

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
