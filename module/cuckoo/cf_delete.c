/*
 * CF.DEL and CF.COMPACT. A deletion may make the filter compact itself, too.
 *
 * The compaction of a large filter takes steps (server/steps.h). Replicas get
 * the command when it begins: what comes later, in the stream or in a file that
 * they are sent, is what is there when it has ended. So nothing may change the
 * filter until then. Commands that would wait; lookups go on, as each
 * fingerprint is always in some part.
 */
#include "command/command.h"
#include "command/items.h"
#include "command/replicate.h"
#include "cuckoo/cf.h"
#include "cuckoo/cuckoo_type.h"
#include "server/reply.h"
#include "server/steps.h"

/* What is to be done with a filter: delete this item, or if there is none,
 * compact it. */
struct cuckoo_change {
    RedisModuleString *name, *item;
    bool found; /* the item was there */
};

/* Do it, begin the compaction, and replicate that. Nothing of `c` may be used
 * afterwards: a listener of the event may delete it. */
static void begin_change(RedisModuleCtx *ctx, struct cuckoo *c,
                         struct cuckoo_change *change) {
    if (!change->item) {
        if (c->parts == 1 && c->deletes == 0) return;
        cuckoo_compact(c, true);
        cuckoo_note(c);
        RM_Replicate(ctx, "CF.COMPACT", "s", change->name);
        note_change(ctx, change->name, "cuckoo.compact");
        return;
    }
    change->found = cuckoo_remove(c, cf_hash(change->item));
    if (!change->found) return;
    stats.deleted++;
    if (cuckoo_wants_compaction(c)) cuckoo_compact(c, false);
    cuckoo_note(c);
    RM_Replicate(ctx, "CF.DEL", "ss", change->name, change->item);
    note_change(ctx, change->name, "cuckoo.del");
}

static int reply_change(RedisModuleCtx *ctx,
                        const struct cuckoo_change *change) {
    if (change->item) return RM_ReplyWithBool(ctx, change->found);
    return RM_ReplyWithSimpleString(ctx, "OK");
}

/* In RedisBloom's words. */
static int reply_no_filter(RedisModuleCtx *ctx, bool deletes) {
    return RM_ReplyWithError(ctx, deletes ? "Not found"
                                          : "Cuckoo filter was not found");
}

/* ---- In steps ------------------------------------------------------------ */

struct cuckoo_change_job {
    struct job job;
    struct cuckoo_change change;
    uint64_t life;
    bool begun;
};

static bool change_step(RedisModuleCtx *ctx, struct job *job) {
    struct cuckoo_change_job *const j = (struct cuckoo_change_job *)job;
    struct cuckoo *c = cf_find_again(ctx, j->change.name, j->life);
    if (c && !cuckoo_is_compacting(c) && !j->begun) {
        begin_change(ctx, c, &j->change);
        j->begun = true;
        c = cf_find_again(ctx, j->change.name, j->life);
    }
    if (!c) return true;
    return cf_compact_step(c) && j->begun;
}

static int reply_change_job(RedisModuleCtx *ctx, struct job *job) {
    const struct cuckoo_change_job *const j = (struct cuckoo_change_job *)job;
    return j->begun ? reply_change(ctx, &j->change)
                    : reply_no_filter(ctx, j->change.item != NULL);
}

/* ---- The handlers -------------------------------------------------------- */

static int change_in_steps(RedisModuleCtx *ctx, RedisModuleString **argv,
                           int argc, uint64_t life) {
    struct cuckoo_change_job *const j = RM_Calloc(1, sizeof *j);
    steps_keep_arguments(ctx, &j->job, argv, argc);
    j->job.step = change_step;
    j->job.reply = reply_change_job;
    j->job.writes = true;
    j->change.name = j->job.argv[1];
    j->change.item = argc > 2 ? j->job.argv[2] : NULL;
    j->life = life;
    return steps_start(ctx, &j->job);
}

/* Deletions mostly leave nothing to compact. */
static bool may_compact(const struct cuckoo *c) {
    struct cuckoo after = *c;
    after.items--;
    after.deletes++;
    return cuckoo_wants_compaction(&after);
}

/* A native filter has nothing to compact: it is one table. */
static int change_native(RedisModuleCtx *ctx, RedisModuleString **argv,
                         int argc, struct filter *f) {
    struct items items;
    if (argc == 2) return RM_ReplyWithSimpleString(ctx, "OK");
    items_open(&items, argv + 2, 1);
    delete_items(ctx, argv[1], f, &items, true, "cuckoo.del");
    return reply_bools(ctx, items.answers, 1);
}

static int change(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    struct cf_filter f;
    const bool deletes = argc > 2;
    if (!cf_find(ctx, argv[1], FOR_WRITING | MUST_BE_COMPLETE, &f))
        return RM_OK;
    if (cf_is_missing(f)) return reply_no_filter(ctx, deletes);
    if (f.native) return change_native(ctx, argv, argc, f.native);
    struct cuckoo *c = f.cuckoo;
    const bool compacts = !deletes || may_compact(c);
    if ((compacts || cuckoo_is_compacting(c)) && steps_can_wait(ctx))
        return change_in_steps(ctx, argv, argc, c->life);
    cf_may_change(ctx, c);
    struct cuckoo_change now = {.name = argv[1],
                                .item = deletes ? argv[2] : NULL};
    const uint64_t life = c->life;
    begin_change(ctx, c, &now);
    if (compacts) c = cf_find_again(ctx, argv[1], life);
    if (compacts && c) cf_may_change(ctx, c);
    return reply_change(ctx, &now);
}

static int run_cf_del(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    return argc == 3 ? change(ctx, argv, argc) : RM_WrongArity(ctx);
}

static int run_cf_compact(RedisModuleCtx *ctx, RedisModuleString **argv,
                          int argc) {
    return argc == 2 ? change(ctx, argv, argc) : RM_WrongArity(ctx);
}

const struct command cf_del = {
    .name = "cf.del",
    .run = run_cf_del,
    .flags = "write fast",
    .categories = "write cuckoo",
    .docs = {.summary = "Deletes an item from a cuckoo filter, once.",
             .complexity = "O(p), with p the parts of the filter, unless it "
                           "compacts itself",
             .arity = 3,
             .key_specs = key_read_and_updated,
             .args = item_args},
};

const struct command cf_compact = {
    .name = "cf.compact",
    .run = run_cf_compact,
    .flags = "write",
    .categories = "write slow cuckoo",
    .docs = {.summary = "Moves the items of a cuckoo filter into its oldest "
                        "parts.",
             .complexity = "O(n * p), with n items and p parts of the filter",
             .arity = 2,
             .key_specs = key_updated,
             .args = key_args},
};
