/*
 * BF.DEL, BF.MDEL and BF.COUNT, for counting filters, CF.DEL and CF.COMPACT.
 * Filters that items can be deleted from count every addition: an item is gone
 * when it was deleted as often as it was added. Deleting an item that is
 * certainly absent changes nothing and is not replicated.
 *
 * A deletion from a cuckoo filter may make it compact itself, too. The
 * compaction of a large one takes steps (server/steps.h). Replicas get the
 * command when it begins: what comes later, in the stream or in a file that
 * they are sent, is what is there when it has ended. So nothing may change the
 * filter until then. Commands that would wait; lookups go on, as each
 * fingerprint is always in some part.
 */
#include <string.h>

#include "command/command.h"
#include "command/items.h"
#include "command/open_key.h"
#include "layout/rebuild.h"
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

/* Delete all items of a command or of a step, and replicate them. A
 * compaction that this begins is completed here, unless it has steps, too. */
static void delete_items(RedisModuleCtx *ctx, RedisModuleString *name,
                         struct filter *f, enum family family,
                         struct items *items, bool in_steps) {
    items_before_change(ctx, f, items);
    const size_t deleted =
        filter_remove(f, items->keys, items->n, items->answers);
    stats.deleted += deleted;
    if (deleted == 0) return;
    if (rebuild_of(f)) rebuild_note_deleted(f, items);
    if (!in_steps) filter_end_compaction(f);
    if (!in_steps && deleted == items->n)
        RM_ReplicateVerbatim(ctx);
    else
        items_replicate(ctx, family == CUCKOO ? "CF.DEL" : "BF.MDEL", name,
                        NULL, items, items->answers, items->n);
    note_change(ctx, name, words_of[family].deleted);
}

static size_t delete_some(RedisModuleCtx *ctx, struct items_job *j,
                          struct filter *f, struct items *some) {
    delete_items(ctx, j->job.argv[1], f, j->family, some, true);
    return some->n;
}

static int reply_deleted(RedisModuleCtx *ctx, struct items_job *j) {
    if (j->family == CUCKOO) /* its only item */
        return j->gone ? RM_ReplyWithError(ctx, "Not found")
                       : items_reply(ctx, &j->items, 1);
    RM_ReplyWithArray(ctx, (long)j->at + j->gone);
    items_reply(ctx, &j->items, j->at);
    if (!j->gone) return RM_OK;
    return items_reply_gone(
        ctx, j, "items were deleted; this one and those after it were not");
}

static const struct items_work deleting = {.run = delete_some,
                                           .reply = reply_deleted,
                                           .writes = true,
                                           .size = sizeof(struct items_job)};

static void delete_now(RedisModuleCtx *ctx, RedisModuleString *name,
                       struct filter *f, enum family family,
                       struct items *items, bool single) {
    memset(items->answers, false, items->n);
    if (f) delete_items(ctx, name, f, family, items, false);
    if (!single) RM_ReplyWithArray(ctx, (long)items->n);
    items_reply(ctx, items, items->n);
}

/* In steps if they are too many for one, or if a compaction is under way, or
 * may begin. */
static int delete_from(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                       struct filter *f, enum family family, bool single) {
    struct items items;
    items_open(&items, argv + 2, argc - 2);
    const bool compacts =
        f && f->layout->may_compact && f->layout->may_compact(f);
    const bool many = f && !single && items_need_steps(&items, f, true);
    if (((many || compacts) && steps_can_wait(ctx)) ||
        (f && !may_change(ctx, f)))
        steps_start(
            ctx, &items_job_new(ctx, f, family, &deleting, argv, argc, 2)->job);
    else
        delete_now(ctx, argv[1], f, family, &items, single);
    items_close(&items);
    return RM_OK;
}

static int run_del(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    struct filter *f;
    if (argc != 3) return RM_WrongArity(ctx);
    if (!find_removable(ctx, argv[1], FOR_WRITING, &f)) return RM_OK;
    return delete_from(ctx, argv, argc, f, BLOOM, true);
}

static int run_mdel(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    struct filter *f;
    if (argc < 3) return RM_WrongArity(ctx);
    if (!find_removable(ctx, argv[1], FOR_WRITING, &f)) return RM_OK;
    return delete_from(ctx, argv, argc, f, BLOOM, false);
}

static int run_cf_del(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    struct filter *f;
    if (argc != 3) return RM_WrongArity(ctx);
    if (!find_filter(ctx, argv[1],
                     FOR_WRITING | MUST_BE_COMPLETE | FOR_CF_COMMAND, &f))
        return RM_OK;
    return f ? delete_from(ctx, argv, argc, f, CUCKOO, true)
             : RM_ReplyWithError(ctx, "Not found"); /* in RedisBloom's words */
}

static int run_count(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 3) return RM_WrongArity(ctx);
    struct filter *f;
    size_t size;
    const char *item = RM_StringPtrLen(argv[2], &size);
    if (!find_removable(ctx, argv[1], 0, &f)) return RM_OK;
    return RM_ReplyWithLongLong(
        ctx, f ? (long long)f->layout->count(f, item, size) : 0);
}

/* ---- Compaction ---------------------------------------------------------- */

/* Begin it and replicate that, unless there is nothing to do. */
static void begin_compaction(RedisModuleCtx *ctx, RedisModuleString *name,
                             struct filter *f, bool in_steps) {
    if (!f->layout->compact || !f->layout->compact(f)) return;
    if (!in_steps) filter_end_compaction(f);
    RM_Replicate(ctx, "CF.COMPACT", "s", name);
    note_change(ctx, name, "cuckoo.compact");
}

struct compact_job {
    struct job job;
    uint64_t identity;
    bool begun;
};

static bool compact_step(RedisModuleCtx *ctx, struct job *job) {
    struct compact_job *const j = (struct compact_job *)job;
    struct filter *f = find_again(ctx, job->argv[1], j->identity);
    if (f && !j->begun && !filter_is_compacting(f)) {
        j->begun = true;
        begin_compaction(ctx, job->argv[1], f, true);
        f = find_again(ctx, job->argv[1], j->identity);
    }
    return !f || (filter_compaction_step(f) && j->begun);
}

static int reply_no_filter(RedisModuleCtx *ctx) {
    return RM_ReplyWithError(ctx, "Cuckoo filter was not found");
}

static int reply_compacted(RedisModuleCtx *ctx, struct job *job) {
    if (!((const struct compact_job *)job)->begun) return reply_no_filter(ctx);
    return RM_ReplyWithSimpleString(ctx, "OK");
}

static int run_cf_compact(RedisModuleCtx *ctx, RedisModuleString **argv,
                          int argc) {
    struct filter *f;
    if (argc != 2) return RM_WrongArity(ctx);
    if (!find_filter(ctx, argv[1],
                     FOR_WRITING | MUST_BE_COMPLETE | FOR_CF_COMMAND, &f))
        return RM_OK;
    if (!f) return reply_no_filter(ctx);
    if (f->layout->compact && steps_can_wait(ctx)) {
        struct compact_job *const j = RM_Calloc(1, sizeof *j);
        steps_keep_arguments(ctx, &j->job, argv, argc);
        j->job.step = compact_step;
        j->job.reply = reply_compacted;
        j->job.writes = true;
        j->identity = filter_identity(f);
        return steps_start(ctx, &j->job);
    }
    filter_end_compaction(f);
    begin_compaction(ctx, argv[1], f, false);
    return RM_ReplyWithSimpleString(ctx, "OK");
}

/* ---- The commands -------------------------------------------------------- */

const struct command bf_del = {
    .name = "bf.del",
    .run = run_del,
    .flags = "write",
    .categories = "write bloom",
    .summary = "Deletes an item from a counting filter.",
    .complexity = COST_OF_ITEM,
    .arity = 3,
    .key_specs = key_read_and_updated,
    .args = item_args,
};

const struct command bf_mdel = {
    .name = "bf.mdel",
    .run = run_mdel,
    .flags = "write",
    .categories = "write bloom",
    .summary = "Deletes items from a counting filter.",
    .complexity = COST_OF_ITEMS,
    .arity = -3,
    .key_specs = key_read_and_updated,
    .args = items_args,
};

const struct command bf_count = {
    .name = "bf.count",
    .run = run_count,
    .flags = "readonly fast",
    .categories = "read bloom",
    .summary = "Returns how often an item was added to a counting filter, at "
               "most.",
    .complexity = COST_OF_ITEM,
    .arity = 3,
    .key_specs = key_read,
    .args = item_args,
};

const struct command cf_del = {
    .name = "cf.del",
    .run = run_cf_del,
    .flags = "write fast",
    .categories = "write cuckoo",
    .summary = "Deletes an item from a cuckoo filter, once.",
    .complexity = "O(p), with p the parts of the filter, unless it "
                  "compacts itself",
    .arity = 3,
    .key_specs = key_read_and_updated,
    .args = item_args,
};

const struct command cf_compact = {
    .name = "cf.compact",
    .run = run_cf_compact,
    .flags = "write",
    .categories = "write slow cuckoo",
    .summary = "Moves the items of a cuckoo filter into its oldest "
               "parts.",
    .complexity = "O(n * p), with n items and p parts of the filter",
    .arity = 2,
    .key_specs = key_updated,
    .args = key_args,
};
