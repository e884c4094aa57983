/*
 * BF.ADD, BF.MADD, BF.INSERT, CF.ADD, CF.ADDNX, CF.INSERT, CF.INSERTNX: add
 * items to a filter, and make it first if it is missing.
 *
 * Replicas and the AOF get the result, not the command: a filter is made there
 * with every parameter and the seed, and gets the items that changed it here.
 * So they hold the same bits whatever their own configuration is.
 *
 * BF commands end with an item that is refused; CF commands refuse it alone.
 */
#include <string.h>

#include "command/cf_options.h"
#include "command/command.h"
#include "command/items.h"
#include "command/open_key.h"
#include "command/options.h"
#include "command/replicate.h"
#include "layout/rebuild.h"
#include "layout/window.h"
#include "server/allocator.h"
#include "server/reply.h"
#include "server/steps.h"
#include "settings.h"

/* How a command adds items. */
struct add_request {
    enum family family;
    bool single;                      /* a plain reply                  */
    bool only_new;                    /* CF.ADDNX, CF.INSERTNX          */
    bool our_words;                   /* CF.INSERT with some of ours    */
    const struct filter_params *made; /* by this command; else NULL */
};

/* The first `done` items are done. `status` says why the last refused item was
 * refused. */
struct added {
    size_t done;
    calyx_status status;
    calyx_error why;
};

/* ---- Replication --------------------------------------------------------- */

/* Replicate the first `done` items, except items that changed nothing. A filter
 * of BF commands is made with its first items. */
static void replicate_items(RedisModuleCtx *ctx, RedisModuleString *name,
                            const struct filter *f,
                            const struct add_request *how,
                            const struct items *items, size_t done) {
    if (how->family == CUCKOO) {
        if (how->made) replicate_new(ctx, name, f, how->made, NULL, 0);
        items_replicate(ctx, "CF.INSERT", name, "ITEMS", items, items->changed,
                        done);
        return;
    }
    if (!how->made) {
        items_replicate(ctx, "BF.MADD", name, NULL, items, items->changed,
                        done);
        return;
    }
    RedisModuleString *few[FEW_ITEMS];
    size_t n;
    RedisModuleString **chosen =
        items_chosen(items, items->changed, done, few, &n);
    replicate_new(ctx, name, f, how->made, chosen, n);
    if (chosen != few) RM_Free(chosen);
}

/* BF.INSERT may have words that the other module does not know. Streams have
 * none of our words in CF.INSERT. */
static bool may_replicate_verbatim(const struct filter *f,
                                   const struct add_request *how) {
    if (how->made) return false;
    return how->family == CUCKOO ? !how->our_words : !f->layout->is_foreign;
}

/* RedisBloom and valkey-bloom also replicate items that they refused. If the
 * filter is full here, it was full there: no error. */
static bool was_refused_there(RedisModuleCtx *ctx, const struct filter *f,
                              calyx_status status) {
    return status == CALYX_FULL && f->layout->is_foreign && is_replayed(ctx);
}

/* ---- Adding -------------------------------------------------------------- */

static calyx_status add_until_refused(RedisModuleCtx *ctx, struct filter *f,
                                      struct addition *a) {
    const calyx_status status = filter_add(f, a);
    return was_refused_there(ctx, f, status) ? CALYX_OK : status;
}

/* RedisBloom replicates CF.ADD only if it succeeded: then it must do so here.
 */
static bool must_fit(RedisModuleCtx *ctx, const struct add_request *how) {
    return how->single && is_replayed(ctx);
}

/* Refused items are passed over. */
static calyx_status add_each(RedisModuleCtx *ctx, struct filter *f,
                             const struct add_request *how, struct items *items,
                             struct addition *a) {
    calyx_status last = CALYX_OK, status;
    a->only_new = how->only_new;
    memset(items->refused, false, items->n);
    while (a->done < a->n && (status = filter_add(f, a)) != CALYX_OK) {
        if (status == CALYX_FULL && !a->must_fit && must_fit(ctx, how)) {
            a->must_fit = true;
            continue;
        }
        last = status;
        items->answers[a->done] = false;
        items->refused[a->done++] = true;
    }
    return last;
}

static size_t count_flags(const bool *flags, size_t n) {
    size_t set = 0;
    for (size_t i = 0; i < n; i++) set += flags[i];
    return set;
}

/* Add all items of a command or of a step, and replicate them. Nothing
 * of `f` may be used afterwards: a listener of the event may delete it. */
static void add_items(RedisModuleCtx *ctx, RedisModuleString *name,
                      struct filter *f, const struct add_request *how,
                      struct items *items, bool in_step, struct added *added) {
    added->why.text[0] = '\0';
    if (!f->repeats_matter || how->family == CUCKOO)
        items->changed = items->answers; /* for CF commands each item is new */
    struct addition a = {.keys = items->keys,
                         .n = items->n,
                         .fresh = items->answers,
                         .changed = items->changed,
                         .in_step = in_step,
                         .why = &added->why};
    struct memory_request request;
    memory_begin(&request, ctx, filter_bytes(f));
    if (items->n > 1) memory_is_touched();
    if (f->can_remove) items_before_change(ctx, f, items);
    added->status = how->family == CUCKOO ? add_each(ctx, f, how, items, &a)
                                          : add_until_refused(ctx, f, &a);
    memory_end(&added->why);
    if (a.lines && in_step) steps_count(a.lines);
    added->done = a.done;
    const size_t changes = count_flags(items->changed, a.done);
    stats.adds += a.done;
    stats.fresh += items->changed == items->answers
                       ? changes
                       : count_flags(items->answers, a.done);
    stats.refused += added->status == CALYX_NO_MEMORY;

    if (!in_step && changes == items->n && may_replicate_verbatim(f, how))
        RM_ReplicateVerbatim(ctx);
    else
        replicate_items(ctx, name, f, how, items, a.done);
    if (rebuild_of(f))
        rebuild_note_added(ctx, name, f,
                           &(struct recorded_items){
                               items->argv, items->keys, items->changed,
                               how->family == CUCKOO ? items->refused : NULL,
                               a.done});
    if (how->made) note_change(ctx, name, words_of[how->family].reserved);
    if (changes) note_change(ctx, name, words_of[how->family].added);
}

calyx_status items_add(RedisModuleCtx *ctx, RedisModuleString *name,
                       struct filter *f, RedisModuleString **argv, int n,
                       calyx_error *why) {
    struct items items;
    struct added added;
    items_open(&items, argv, n);
    if (f->repeats_matter) rotation_run(ctx, name, f);
    add_items(ctx, name, f, &(struct add_request){.family = BLOOM}, &items,
              true, &added);
    items_close(&items);
    *why = added.why;
    return added.status;
}

/* ---- Replies ------------------------------------------------------------- */

/* In RedisBloom's words. */
static int reply_refusal(RedisModuleCtx *ctx, const struct added *added) {
    if (added->status == CALYX_FULL)
        return RM_ReplyWithError(ctx, "Filter is full");
    if (added->status == CALYX_NO_MEMORY)
        return reply_text(ctx, "ERR Insufficient memory: %s", added->why.text);
    return reply_text(ctx, "ERR the filter cannot grow: %s", added->why.text);
}

/* A refused item is -1; in RESP3 the array of CF.INSERT has booleans. */
static void reply_each(RedisModuleCtx *ctx, const struct add_request *how,
                       const struct items *items, size_t done) {
    const bool booleans =
        !how->only_new && RM_GetContextFlags(ctx) & RM_CTX_RESP3;
    for (size_t i = 0; i < done; i++)
        if (booleans)
            RM_ReplyWithBool(ctx, items->answers[i]);
        else
            RM_ReplyWithLongLong(ctx,
                                 items->refused[i] ? -1 : items->answers[i]);
}

/* A plain reply for a single item, else an array. The array ends with the error
 * of a BF command, or, with `more`, with a reply that the caller adds. */
static int reply_added(RedisModuleCtx *ctx, const struct add_request *how,
                       const struct items *items, const struct added *added,
                       bool more) {
    const bool cuckoo = how->family == CUCKOO;
    const bool failed = added->status != CALYX_OK && !cuckoo && !more;
    if (how->single && cuckoo)
        return items->refused[0] ? reply_refusal(ctx, added)
                                 : RM_ReplyWithBool(ctx, items->answers[0]);
    if (!how->single)
        RM_ReplyWithArray(ctx, (long)added->done + (failed || more));
    if (cuckoo)
        reply_each(ctx, how, items, added->done);
    else
        items_reply(ctx, items, added->done);
    return failed ? reply_not_added(ctx, added->status, &added->why) : RM_OK;
}

/* ---- In steps ------------------------------------------------------------ */

struct add_job {
    struct items_job items;
    struct add_request how; /* `made` by the first step; then NULL */
    struct added added;
};

static size_t add_some(RedisModuleCtx *ctx, struct items_job *job,
                       struct filter *f, struct items *some) {
    struct add_job *const j = (struct add_job *)job;
    if (f->repeats_matter) rotation_run(ctx, job->job.argv[1], f);
    add_items(ctx, job->job.argv[1], f, &j->how, some, true, &j->added);
    j->how.made = NULL;
    job->ended = j->added.status != CALYX_OK && job->family == BLOOM;
    return j->added.done;
}

static int reply_adds(RedisModuleCtx *ctx, struct items_job *job) {
    struct add_job *const j = (struct add_job *)job;
    j->added.done = job->at;
    if (!job->gone)
        return reply_added(ctx, &j->how, &job->items, &j->added, false);
    if (!j->how.single) reply_added(ctx, &j->how, &job->items, &j->added, true);
    return items_reply_gone(
        ctx, job, "items were added; this one and those after it were not");
}

static const struct items_work adding = {.run = add_some,
                                         .reply = reply_adds,
                                         .writes = true,
                                         .size = sizeof(struct add_job)};

/* ---- The handlers -------------------------------------------------------- */

/* The fast path of most commands: one item, to an existing filter that repeats
 * do not matter to. */
static int add_single(RedisModuleCtx *ctx, RedisModuleString **argv,
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
    }
    if (rebuild_of(f))
        rebuild_note_added(
            ctx, argv[1], f,
            &(struct recorded_items){argv + 2, item, &fresh, NULL, 1});
    if (fresh) note_change(ctx, argv[1], "bloom.add");
    return RM_ReplyWithBool(ctx, fresh);
}

/* In steps if they are too many for one, or a compaction is under way. */
static void add_all(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                    int first_item, struct filter *f,
                    const struct add_request *how) {
    struct items items;
    struct added added;
    items_open(&items, argv + first_item, argc - first_item);
    const bool many = !how->single && items_need_steps(&items, f, true);
    if ((many && steps_can_wait(ctx)) || !may_change(ctx, f)) {
        struct items_job *const j =
            items_job_new(ctx, f, how->family, &adding, argv, argc, first_item);
        ((struct add_job *)j)->how = *how;
        steps_start(ctx, &j->job);
    } else {
        if (f->repeats_matter) rotation_run(ctx, argv[1], f);
        add_items(ctx, argv[1], f, how, &items, false, &added);
        reply_added(ctx, how, &items, &added, false);
    }
    items_close(&items);
}

/* RedisBloom refuses all items if a filter already has `cf-max-expansions`
 * parts, but not those by which it gets them. */
static bool has_most_parts(RedisModuleCtx *ctx, const struct filter *f,
                           const struct filter_params *params) {
    struct filter_facts facts = {.parts = 1};
    if (!(f ? f->layout : params->layout)->is_cuckoo) return false;
    if (f) f->layout->describe(f, &facts);
    if (facts.parts < (uint64_t)settings.cf_max_expansions || is_replayed(ctx))
        return false;
    RM_ReplyWithError(ctx, "Maximum expansions reached");
    return true;
}

/* What a filter is made of without options. */
static struct filter_params usual_params(RedisModuleCtx *ctx,
                                         enum family family) {
    if (family == CUCKOO) return cf_default_params(is_replayed(ctx));
    return is_replayed(ctx) ? redisbloom_params() : default_params();
}

/* `options` NULL stands for the defaults. */
static int add(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
               const struct options *options, int first_item,
               struct add_request how) {
    struct filter *f;
    struct filter_params params;
    calyx_key item;
    if (how.single) {
        item.data = RM_StringPtrLen(argv[first_item], &item.size);
        filter_prefetch(item.data, item.size);
    }
    const unsigned must = options && options->no_create ? MUST_EXIST : 0;
    RedisModuleKey *key = open_filter(
        ctx, argv[1], MUST_BE_COMPLETE | must | words_of[how.family].flags, &f);
    if (!key) return RM_OK;
    if (!f) params = options ? options->params : usual_params(ctx, how.family);
    bool there = how.family == BLOOM || !has_most_parts(ctx, f, &params);
    if (there && !f) {
        how.made = &params;
        f = create_filter(ctx, key, &params);
        there = f;
    }
    RM_CloseKey(key); /* now: meanwhile the prefetched line arrives */
    if (!there) return RM_OK;
    if (how.single) filter_prefetch_next(f);
    if (how.single && !how.made && !f->repeats_matter)
        return add_single(ctx, argv, f, &item);
    add_all(ctx, argv, argc, first_item, f, &how);
    return RM_OK;
}

static int add_one(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                   struct add_request how) {
    if (argc != 3) return RM_WrongArity(ctx);
    how.single = true;
    return add(ctx, argv, argc, NULL, 2, how);
}

static int run_add(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    return add_one(ctx, argv, argc, (struct add_request){.family = BLOOM});
}

static int run_cf_add(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    return add_one(ctx, argv, argc, (struct add_request){.family = CUCKOO});
}

static int run_cf_addnx(RedisModuleCtx *ctx, RedisModuleString **argv,
                        int argc) {
    return add_one(ctx, argv, argc,
                   (struct add_request){.family = CUCKOO, .only_new = true});
}

static int run_madd(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 3) return RM_WrongArity(ctx);
    return add(ctx, argv, argc, NULL, 2, (struct add_request){.family = BLOOM});
}

static int run_insert(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    struct options options;
    const bool theirs =
        is_replayed(ctx) && redisbloom_parse_insert(argv, argc, &options);
    const char *wrong = theirs ? NULL : parse_insert(argv, argc, &options);
    if (wrong)
        return *wrong ? RM_ReplyWithError(ctx, wrong) : RM_WrongArity(ctx);
    return add(ctx, argv, argc, &options, options.items,
               (struct add_request){.family = BLOOM});
}

static int cf_insert_items(RedisModuleCtx *ctx, RedisModuleString **argv,
                           int argc, bool only_new) {
    struct options options;
    const char *wrong = cf_parse_insert(argv, argc, is_replayed(ctx), &options);
    if (wrong)
        return *wrong ? RM_ReplyWithError(ctx, wrong) : RM_WrongArity(ctx);
    return add(ctx, argv, argc, &options, options.items,
               (struct add_request){.family = CUCKOO,
                                    .only_new = only_new,
                                    .our_words = options.our_words});
}

static int run_cf_insert(RedisModuleCtx *ctx, RedisModuleString **argv,
                         int argc) {
    return cf_insert_items(ctx, argv, argc, false);
}

static int run_cf_insertnx(RedisModuleCtx *ctx, RedisModuleString **argv,
                           int argc) {
    return cf_insert_items(ctx, argv, argc, true);
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
    .summary = "Adds an item to a Bloom filter, which is made if missing.",
    .complexity = COST_OF_ITEM,
    .arity = 3,
    .key_specs = key_read_and_updated,
    .args = item_args,
};

const struct command bf_madd = {
    .name = "bf.madd",
    .run = run_madd,
    .flags = "write deny-oom",
    .categories = "write bloom",
    .summary = "Adds items to a Bloom filter, which is made if missing.",
    .complexity = COST_OF_ITEMS,
    .arity = -3,
    .key_specs = key_read_and_updated,
    .args = items_args,
};

const struct command bf_insert = {
    .name = "bf.insert",
    .run = run_insert,
    .flags = "write deny-oom",
    .categories = "write bloom",
    .summary = "Adds items to a Bloom filter, which is made with these "
               "options if missing.",
    .complexity = COST_OF_ITEMS,
    .arity = -4,
    .key_specs = key_read_and_updated,
    .args = insert_args,
};

#define COST_OF_ADDING \
    "O(p + i), with p the parts of the filter and i its iterations"

static RedisModuleCommandArg cf_insert_args[] = {
    KEY,
    OPTION(INTEGER, "CAPACITY", "capacity"),
    OPTION(PURE_TOKEN, "NOCREATE", "nocreate"),
    CF_OPTIONS,
    {.name = "item",
     .type = RM_ARG_STRING,
     .key_spec_index = -1,
     .token = "ITEMS",
     .flags = RM_ARG_MULTIPLE},
    END};

const struct command cf_add = {
    .name = "cf.add",
    .run = run_cf_add,
    .flags = "write deny-oom",
    .categories = "write cuckoo",
    .summary = "Adds an item to a cuckoo filter, which is made if missing.",
    .complexity = COST_OF_ADDING,
    .arity = 3,
    .key_specs = key_updated,
    .args = item_args,
};

const struct command cf_addnx = {
    .name = "cf.addnx",
    .run = run_cf_addnx,
    .flags = "write deny-oom",
    .categories = "write cuckoo",
    .summary = "Adds an item to a cuckoo filter, which is made if "
               "missing, unless it is there.",
    .complexity = COST_OF_ADDING,
    .arity = 3,
    .key_specs = key_read_and_updated,
    .args = item_args,
};

const struct command cf_insert = {
    .name = "cf.insert",
    .run = run_cf_insert,
    .flags = "write deny-oom",
    .categories = "write cuckoo",
    .summary = "Adds items to a cuckoo filter, which is made with "
               "these options if missing.",
    .complexity = "O(n * (p + i)), with n items, p parts of the "
                  "filter and i its iterations",
    .arity = -4,
    .key_specs = key_updated,
    .args = cf_insert_args,
};

const struct command cf_insertnx = {
    .name = "cf.insertnx",
    .run = run_cf_insertnx,
    .flags = "write deny-oom",
    .categories = "write cuckoo",
    .summary = "Adds those items to a cuckoo filter that are not "
               "there.",
    .complexity = "O(n * (p + i)), with n items, p parts of the "
                  "filter and i its iterations",
    .arity = -4,
    .key_specs = key_read_and_updated,
    .args = cf_insert_args,
};
