/*
 * BF.DEL, BF.MDEL and BF.COUNT, for counting filters. These count every
 * addition: an item is gone when it was deleted as often as it was added.
 * Deleting an item that is certainly absent changes nothing and is not
 * replicated.
 */
#include <string.h>

#include "command/command.h"
#include "command/items.h"
#include "command/open_key.h"
#include "layout/window.h"
#include "server/reply.h"
#include "server/steps.h"

static int reply_cannot(RedisModuleCtx *ctx, const struct filter *f) {
    static const char REMEDY[] = "make one with BF.RESERVE … COUNTING";
    if (f->layout->is_foreign)
        return reply_text(
            ctx,
            "ERR the filter does not count: the %s layout has no room for "
            "counters; %s",
            f->layout->name, REMEDY);
    if (is_window(f))
        return RM_ReplyWithError(ctx, "ERR the filter does not count: it is a "
                                      "window, which forgets by itself");
    calyx_room room;
    calyx_info info;
    calyx_info_of(native_of(f, &room), &info);
    return reply_text(ctx,
                      "ERR the filter does not count: it is of kind %s; %s",
                      info.kind, REMEDY);
}

/* Find a filter that items can be removed from; `*f` is NULL if the key is
 * missing. Else replies and returns false. */
static bool find_removable(RedisModuleCtx *ctx, RedisModuleString *name,
                           unsigned flags, struct filter **f) {
    if (!find_filter(ctx, name, flags, f)) return false;
    if (*f && !(*f)->can_remove)
        reply_cannot(ctx, *f);
    else if (*f && filter_is_partial(*f))
        reply_partial(ctx, *f);
    else
        return true;
    return false;
}

/* ---- Deleting ------------------------------------------------------------ */

static const char DELETED[] = "bloom.del"; /* the event */

void delete_items(RedisModuleCtx *ctx, RedisModuleString *name,
                  struct filter *f, struct items *items, bool all,
                  const char *event) {
    items_before_change(ctx, f, items);
    const size_t deleted =
        filter_remove(f, items->keys, items->n, items->answers);
    stats.deleted += deleted;
    if (deleted == 0) return;
    if (all && deleted == items->n)
        RM_ReplicateVerbatim(ctx);
    else
        items_replicate(ctx, "BF.MDEL", name, NULL, items, items->answers,
                        items->n);
    note_change(ctx, name, event);
}

static bool delete_step(RedisModuleCtx *ctx, struct job *job) {
    struct items_job *const j = (struct items_job *)job;
    struct filter *const f = find_again(ctx, job->argv[1], j->life);
    j->gone = !f;
    if (!f) return true;
    struct items some = items_next(j, f);
    delete_items(ctx, job->argv[1], f, &some, false, DELETED);
    j->at += some.n;
    return j->at == j->items.n;
}

static int reply_deleted(RedisModuleCtx *ctx, struct job *job) {
    const struct items_job *const j = (struct items_job *)job;
    RM_ReplyWithArray(ctx, (long)j->at + j->gone);
    reply_bools(ctx, j->items.answers, j->at);
    if (!j->gone) return RM_OK;
    return RM_ReplyWithError(
        ctx, "ERR the filter was deleted, emptied or replaced while items were "
             "deleted; this one and those after it were not");
}

static int delete_in_steps(RedisModuleCtx *ctx, const struct filter *f,
                           RedisModuleString **argv, int argc) {
    struct items_job *const j =
        items_job_new(ctx, filter_life(f), argv, argc, 2, sizeof *j);
    j->job.step = delete_step;
    j->job.reply = reply_deleted;
    j->job.writes = true;
    return steps_start(ctx, &j->job);
}

static void delete_now(RedisModuleCtx *ctx, RedisModuleString *name,
                       struct filter *f, struct items *items, bool single) {
    memset(items->answers, false, items->n);
    if (f) delete_items(ctx, name, f, items, true, DELETED);
    if (!single) RM_ReplyWithArray(ctx, (long)items->n);
    reply_bools(ctx, items->answers, items->n);
}

/* In steps if they are too many for one. */
static int delete (RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                   bool single) {
    struct filter *f;
    struct items items;
    if (!find_removable(ctx, argv[1], FOR_WRITING, &f)) return RM_OK;
    items_open(&items, argv + 2, argc - 2);
    if (f && !single && items_need_steps(&items, f, true) &&
        steps_can_wait(ctx))
        delete_in_steps(ctx, f, argv, argc);
    else
        delete_now(ctx, argv[1], f, &items, single);
    items_close(&items);
    return RM_OK;
}

static int run_del(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 3) return RM_WrongArity(ctx);
    return delete (ctx, argv, argc, true);
}

static int run_mdel(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 3) return RM_WrongArity(ctx);
    return delete (ctx, argv, argc, false);
}

static int run_count(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 3) return RM_WrongArity(ctx);
    struct filter *f;
    size_t size;
    const char *item = RM_StringPtrLen(argv[2], &size);
    if (!find_removable(ctx, argv[1], 0, &f)) return RM_OK;
    return RM_ReplyWithLongLong(ctx,
                                f ? calyx_count(f->native, item, size) : 0);
}

const struct command bf_del = {
    .name = "bf.del",
    .run = run_del,
    .flags = "write",
    .categories = "write bloom",
    .docs = {.summary = "Deletes an item from a counting filter.",
             .complexity = COST_OF_ITEM,
             .arity = 3,
             .key_specs = key_read_and_updated,
             .args = item_args},
};

const struct command bf_mdel = {
    .name = "bf.mdel",
    .run = run_mdel,
    .flags = "write",
    .categories = "write bloom",
    .docs = {.summary = "Deletes items from a counting filter.",
             .complexity = COST_OF_ITEMS,
             .arity = -3,
             .key_specs = key_read_and_updated,
             .args = items_args},
};

const struct command bf_count = {
    .name = "bf.count",
    .run = run_count,
    .flags = "readonly fast",
    .categories = "read bloom",
    .docs = {.summary =
                 "Returns how often an item was added to a counting filter, at "
                 "most.",
             .complexity = COST_OF_ITEM,
             .arity = 3,
             .key_specs = key_read,
             .args = item_args},
};
