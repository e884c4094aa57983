/*
 * BF.ADD, BF.MADD, BF.INSERT: add items to a filter, and make it first if it is
 * missing.
 *
 * Replicas and the AOF get the result, not the command: a filter is made there
 * with every parameter and the seed, and gets the items that were new here. So
 * they hold the same bits whatever their own configuration is.
 */
#include "command/command.h"
#include "command/items.h"
#include "command/open_key.h"
#include "command/options.h"
#include "command/replicate.h"
#include "layout/window.h"
#include "server/allocator.h"
#include "server/prefault.h"
#include "server/reply.h"
#include "server/steps.h"

/* Those of the first `done` items that changed something. */
static void replicate_items(RedisModuleCtx *ctx, RedisModuleString *name,
                            const struct filter *f,
                            const struct filter_params *made,
                            const struct items *items, const bool *changed,
                            size_t done) {
    if (!made) {
        items_replicate(ctx, "BF.MADD", name, NULL, items, changed, done);
        return;
    }
    RedisModuleString *few[FEW_ITEMS];
    size_t n;
    RedisModuleString **chosen = items_chosen(items, changed, done, few, &n);
    replicate_new(ctx, name, f, made, chosen, n);
    if (chosen != few) RM_Free(chosen);
}

/* RedisBloom and valkey-bloom also replicate items that they refused. If the
 * filter is full here, it was full there: no error. */
static bool was_refused_there(RedisModuleCtx *ctx, const struct filter *f,
                              calyx_status status) {
    return status == CALYX_FULL && f->layout->is_foreign && is_replayed(ctx);
}

/* The first `done` items are in; the next is not if `status` is an error. */
struct added {
    size_t done;
    calyx_status status;
    calyx_error why;
};

/* Add items, `all` of the command or some, and replicate them. `made`: how this
 * command made the filter; NULL if it existed. */
static void add_items(RedisModuleCtx *ctx, RedisModuleString *name,
                      struct filter *f, const struct filter_params *made,
                      struct items *items, bool all, struct added *added) {
    added->why.text[0] = '\0';
    struct memory_request request;
    memory_begin(&request, ctx, filter_bytes(f));
    if (items->n > 1) prefault_pause(true);
    if (f->can_remove) items_before_change(ctx, f, items);
    bool *const changed = f->repeats_matter ? items->changed : items->answers;
    struct addition a = {.keys = items->keys,
                         .n = items->n,
                         .fresh = items->answers,
                         .changed = changed,
                         .why = &added->why};
    added->status = filter_add(f, &a);
    added->done = a.done;
    if (items->n > 1) prefault_pause(false);
    memory_end(&added->why);
    if (was_refused_there(ctx, f, added->status)) added->status = CALYX_OK;
    size_t fresh = 0, changes = 0;
    for (size_t i = 0; i < added->done; i++) fresh += items->answers[i];
    for (size_t i = 0; i < added->done; i++) changes += changed[i];
    stats.adds += added->done;
    stats.fresh += fresh;
    stats.refused += added->status == CALYX_NO_MEMORY;

    /* BF.INSERT may have words that the other module does not know. */
    if (!made && all && changes == items->n && !f->layout->is_foreign)
        RM_ReplicateVerbatim(ctx);
    else
        replicate_items(ctx, name, f, made, items, changed, added->done);
    if (made) note_change(ctx, name, "bloom.reserve");
    if (changes) note_change(ctx, name, "bloom.add");
}

/* A plain reply for a single item, else an array, which ends with the error if
 * there was one. */
static int reply_added(RedisModuleCtx *ctx, const struct items *items,
                       const struct added *added, bool single) {
    const bool failed = added->status != CALYX_OK;
    if (!single) RM_ReplyWithArray(ctx, (long)added->done + failed);
    reply_bools(ctx, items->answers, added->done);
    return failed ? reply_not_added(ctx, added->status, &added->why) : RM_OK;
}

/* ---- In steps ------------------------------------------------------------ */

struct add_job {
    struct items_job items;
    const struct filter_params *made; /* by the first step; then NULL */
    struct added added;
};

static bool add_step(RedisModuleCtx *ctx, struct job *job) {
    struct add_job *const j = (struct add_job *)job;
    struct filter *const f = find_again(ctx, job->argv[1], j->items.life);
    j->items.gone = !f;
    if (!f) return true;
    if (f->repeats_matter) rotation_run(ctx, job->argv[1], f);
    struct items some = items_next(&j->items, f);
    add_items(ctx, job->argv[1], f, j->made, &some, false, &j->added);
    j->made = NULL;
    j->items.at += j->added.done;
    return j->added.status != CALYX_OK || j->items.at == j->items.items.n;
}

static int reply_adds(RedisModuleCtx *ctx, struct job *job) {
    struct add_job *const j = (struct add_job *)job;
    j->added.done = j->items.at;
    if (!j->items.gone)
        return reply_added(ctx, &j->items.items, &j->added, false);
    RM_ReplyWithArray(ctx, (long)j->items.at + 1);
    reply_bools(ctx, j->items.items.answers, j->items.at);
    return RM_ReplyWithError(
        ctx, "ERR the filter was deleted, emptied or replaced while items were "
             "added; this one and those after it were not");
}

static int add_in_steps(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                        int first_item, struct filter *f,
                        const struct filter_params *made) {
    struct items_job *const j = items_job_new(
        ctx, filter_life(f), argv, argc, first_item, sizeof(struct add_job));
    j->job.step = add_step;
    j->job.reply = reply_adds;
    j->job.writes = true;
    ((struct add_job *)j)->made = made;
    return steps_start(ctx, &j->job);
}

/* ---- The handlers -------------------------------------------------------- */

/* The fast path of most commands: one item, to an existing filter that repeats
 * do not matter to. */
static int add_single(RedisModuleCtx *ctx, RedisModuleString *name,
                      struct filter *f, const calyx_key *item) {
    calyx_error why;
    bool fresh = false;
    struct addition a = {
        .keys = item, .n = 1, .fresh = &fresh, .changed = &fresh, .why = &why};
    why.text[0] = '\0';
    struct memory_request request;
    memory_begin(&request, ctx, filter_bytes(f));
    const calyx_status status = filter_add(f, &a);
    memory_end(&why);
    if (was_refused_there(ctx, f, status)) return RM_ReplyWithBool(ctx, false);
    if (status != CALYX_OK) {
        stats.refused += status == CALYX_NO_MEMORY;
        return reply_not_added(ctx, status, &why);
    }
    stats.adds++;
    if (fresh) {
        stats.fresh++;
        RM_ReplicateVerbatim(ctx);
        note_change(ctx, name, "bloom.add");
    }
    return RM_ReplyWithBool(ctx, fresh);
}

/* In steps if they are too many for one. */
static void add_all(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                    int first_item, struct filter *f,
                    const struct filter_params *made, bool single) {
    struct items items;
    struct added added;
    items_open(&items, argv + first_item, argc - first_item);
    if (!single && items_need_steps(&items, f, true) && steps_can_wait(ctx)) {
        add_in_steps(ctx, argv, argc, first_item, f, made);
    } else {
        if (f->repeats_matter) rotation_run(ctx, argv[1], f);
        add_items(ctx, argv[1], f, made, &items, true, &added);
        reply_added(ctx, &items, &added, single);
    }
    items_close(&items);
}

/* `options` NULL stands for the defaults. */
static int add(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
               struct options *options, int first_item, bool single) {
    RedisModuleString *const name = argv[1];
    struct filter *f = NULL;
    struct filter_params params, *made = NULL;
    calyx_key item;
    if (single) {
        item.data = RM_StringPtrLen(argv[first_item], &item.size);
        filter_prefetch(item.data, item.size);
    }
    RedisModuleKey *key = RM_OpenKey(ctx, name, RM_READ | RM_WRITE);
    const enum key_type type = type_of(key, &f);
    if (type == KEY_OTHER) {
        reply_wrong_type(ctx);
    } else if (type == KEY_MISSING && options && options->no_create) {
        reply_not_found(ctx);
    } else if (type == KEY_MISSING) {
        params = options            ? options->params
                 : is_replayed(ctx) ? redisbloom_params()
                                    : default_params();
        made = &params;
        f = create_filter(ctx, key, made);
    } else if (filter_is_partial(f) &&
               !(is_replayed(ctx) && filter_accept_partial(f))) {
        reply_partial(ctx, f);
        f = NULL;
    }
    RM_CloseKey(key); /* now: meanwhile the prefetched line arrives */
    if (f && single && !made && !f->repeats_matter) {
        filter_prefetch_next(f);
        add_single(ctx, name, f, &item);
    } else if (f) {
        if (single) filter_prefetch_next(f);
        add_all(ctx, argv, argc, first_item, f, made, single);
    }
    return RM_OK;
}

static int run_add(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 3) return RM_WrongArity(ctx);
    return add(ctx, argv, argc, NULL, 2, true);
}

static int run_madd(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 3) return RM_WrongArity(ctx);
    return add(ctx, argv, argc, NULL, 2, false);
}

static int run_insert(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    struct options options;
    const bool theirs =
        is_replayed(ctx) && redisbloom_parse_insert(argv, argc, &options);
    const char *wrong = theirs ? NULL : parse_insert(argv, argc, &options);
    if (wrong)
        return *wrong ? RM_ReplyWithError(ctx, wrong) : RM_WrongArity(ctx);
    return add(ctx, argv, argc, &options, options.items, false);
}

/* ---- The commands -------------------------------------------------------- */

static RedisModuleCommandArg insert_args[] = {
    KEY,
    OPTION(INTEGER, "CAPACITY", "capacity"),
    OPTION(DOUBLE, "ERROR", "error"),
    OPTION(INTEGER, "EXPANSION", "expansion"),
    OPTION(PURE_TOKEN, "NOCREATE", "nocreate"),
    OPTION(PURE_TOKEN, "NONSCALING", "nonscaling"),
    OPTION(DOUBLE, "TIGHTENING", "tightening"),
    OPTION(INTEGER, "VALIDATESCALETO", "validatescaleto"),
    CALYX_OPTIONS,
    {.name = "item",
     .type = RM_ARG_STRING,
     .key_spec_index = -1,
     .token = "ITEMS",
     .flags = RM_ARG_MULTIPLE},
    END};

const struct command bf_add = {
    .name = "bf.add",
    .run = run_add,
    .flags = "write deny-oom",
    .categories = "write bloom",
    .docs = {.summary =
                 "Adds an item to a Bloom filter, which is made if missing.",
             .complexity = COST_OF_ITEM,
             .arity = 3,
             .key_specs = key_read_and_updated,
             .args = item_args},
};

const struct command bf_madd = {
    .name = "bf.madd",
    .run = run_madd,
    .flags = "write deny-oom",
    .categories = "write bloom",
    .docs = {.summary =
                 "Adds items to a Bloom filter, which is made if missing.",
             .complexity = COST_OF_ITEMS,
             .arity = -3,
             .key_specs = key_read_and_updated,
             .args = items_args},
};

const struct command bf_insert = {
    .name = "bf.insert",
    .run = run_insert,
    .flags = "write deny-oom",
    .categories = "write bloom",
    .docs = {.summary =
                 "Adds items to a Bloom filter, which is made with these "
                 "options if missing.",
             .complexity = COST_OF_ITEMS,
             .arity = -4,
             .key_specs = key_read_and_updated,
             .args = insert_args},
};
