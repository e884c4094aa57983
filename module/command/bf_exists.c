/* BF.EXISTS, BF.MEXISTS: look items up. */
#include <string.h>

#include "command/command.h"
#include "command/items.h"
#include "command/open_key.h"
#include "server/reply.h"
#include "server/steps.h"

static int run_exists(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 3) return RM_WrongArity(ctx);
    struct filter *f;
    size_t size;
    const char *item = RM_StringPtrLen(argv[2], &size);
    filter_prefetch(item, size);
    if (!find_filter(ctx, argv[1], MUST_BE_COMPLETE, &f)) return RM_OK;
    if (f) filter_prefetch_next(f);
    const bool found = f && f->layout->has(f, item, size);
    stats.lookups++;
    stats.positives += found;
    return RM_ReplyWithBool(ctx, found);
}

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
    struct items_job *const j = (struct items_job *)job;
    if (j->gone)
        return RM_ReplyWithError(
            ctx, "ERR the filter was deleted, emptied or replaced while it was "
                 "queried; query all items again");
    RM_ReplyWithArray(ctx, (long)j->items.n);
    return reply_bools(ctx, j->items.answers, j->items.n);
}

static int look_up_in_steps(RedisModuleCtx *ctx, const struct filter *f,
                            RedisModuleString **argv, int argc) {
    struct items_job *const j =
        items_job_new(ctx, filter_life(f), argv, argc, 2, sizeof *j);
    j->job.step = look_up_step;
    j->job.reply = reply_found;
    return steps_start(ctx, &j->job);
}

void look_up_items(RedisModuleCtx *ctx, const struct filter *f,
                   RedisModuleString **argv, int argc) {
    struct items items;
    items_open(&items, argv + 2, argc - 2);
    if (f && items_need_steps(&items, f, false) && steps_can_wait(ctx)) {
        look_up_in_steps(ctx, f, argv, argc);
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
}

static int run_mexists(RedisModuleCtx *ctx, RedisModuleString **argv,
                       int argc) {
    if (argc < 3) return RM_WrongArity(ctx);
    struct filter *f;
    if (find_filter(ctx, argv[1], MUST_BE_COMPLETE, &f))
        look_up_items(ctx, f, argv, argc);
    return RM_OK;
}

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
