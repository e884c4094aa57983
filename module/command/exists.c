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

static void look_up(const struct filter *f, struct items *items) {
    if (f)
        stats.positives +=
            f->layout->has_many(f, items->keys, items->n, items->answers);
    else
        memset(items->answers, false, items->n);
    stats.lookups += items->n;
}

static int reply_found(RedisModuleCtx *ctx, const struct items *items) {
    RM_ReplyWithArray(ctx, (long)items->n);
    return items_reply(ctx, items, items->n);
}

static size_t look_up_some(RedisModuleCtx *ctx, struct items_job *j,
                           struct filter *f, struct items *some) {
    (void)ctx, (void)j;
    look_up(f, some);
    return some->n;
}

static int reply_job(RedisModuleCtx *ctx, struct items_job *j) {
    if (!j->gone) return reply_found(ctx, &j->items);
    return items_reply_gone(ctx, j, "it was queried; query all items again");
}

static const struct items_work looking_up = {
    .run = look_up_some, .reply = reply_job, .size = sizeof(struct items_job)};

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
        struct items_job *const j =
            items_job_new(ctx, f, family, &looking_up, argv, argc, 2);
        steps_start(ctx, &j->job);
    } else {
        look_up(f, &items);
        reply_found(ctx, &items);
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
    .summary = "Checks whether an item may be in a Bloom filter.",
    .complexity = COST_OF_ITEM,
    .arity = 3,
    .key_specs = key_read,
    .args = item_args,
};

const struct command bf_mexists = {
    .name = "bf.mexists",
    .run = run_mexists,
    .flags = "readonly",
    .categories = "read bloom",
    .summary = "Checks for each item whether it may be in a Bloom filter.",
    .complexity = COST_OF_ITEMS,
    .arity = -3,
    .key_specs = key_read,
    .args = items_args,
};

const struct command cf_exists = {
    .name = "cf.exists",
    .run = run_cf_exists,
    .flags = "readonly fast",
    .categories = "read cuckoo",
    .summary = "Checks whether an item may be in a cuckoo filter.",
    .complexity = COST_OF_ITEM,
    .arity = 3,
    .key_specs = key_read,
    .args = item_args,
};

const struct command cf_mexists = {
    .name = "cf.mexists",
    .run = run_cf_mexists,
    .flags = "readonly fast",
    .categories = "read cuckoo",
    .summary = "Checks for each item whether it may be in a cuckoo filter.",
    .complexity = COST_OF_ITEMS,
    .arity = -3,
    .key_specs = key_read,
    .args = items_args,
};

const struct command cf_count = {
    .name = "cf.count",
    .run = run_cf_count,
    .flags = "readonly fast",
    .categories = "read cuckoo",
    .summary = "Returns how often an item was added to a cuckoo "
               "filter, at most.",
    .complexity = COST_OF_ITEM,
    .arity = 3,
    .key_specs = key_read,
    .args = item_args,
};
