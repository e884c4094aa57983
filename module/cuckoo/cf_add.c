/*
 * CF.ADD, CF.ADDNX, CF.INSERT, CF.INSERTNX: add items; make the filter if it is
 * missing.
 *
 * Replicas and the AOF get the result: a filter is made there with every
 * parameter, and gets the items that were added here, by commands that
 * RedisBloom knows. An item that was refused has changed nothing.
 */
#include <string.h>

#include "command/command.h"
#include "command/items.h"
#include "command/replicate.h"
#include "cuckoo/cf.h"
#include "cuckoo/cuckoo_type.h"
#include "server/allocator.h"
#include "server/prefault.h"
#include "server/reply.h"
#include "server/steps.h"
#include "settings.h"

/* How items are added. */
struct cuckoo_adding {
    bool only_new;                /* CF.ADDNX, CF.INSERTNX    */
    bool single;                  /* CF.ADD, CF.ADDNX         */
    const struct cf_params *made; /* NULL: the filter existed */
};

/* What it took, and why the last item that was refused was. */
struct cuckoo_result {
    uint64_t lines;
    calyx_status status;
    calyx_error why;
};

/* ---- Adding -------------------------------------------------------------- */

/* RedisBloom replicates CF.ADD only if it succeeded: then it must do so here.
 */
static bool must_succeed(RedisModuleCtx *ctx, const struct cuckoo_adding *how) {
    return how->single && is_replayed(ctx);
}

/* `answers`: it was added; `changed`: it was refused. Neither: it was there. */
static void add_item(RedisModuleCtx *ctx, struct cuckoo *c,
                     struct cuckoo_hash h, const struct cuckoo_adding *how,
                     struct items *items, size_t i, uint64_t *lines,
                     struct cuckoo_result *result) {
    items->answers[i] = items->changed[i] = false;
    if (how->only_new && cuckoo_has(c, h)) {
        *lines += 2 * (uint64_t)c->parts;
        return;
    }
    calyx_status status = cuckoo_add(c, h, lines, &result->why);
    if (status == CALYX_FULL && must_succeed(ctx, how)) {
        cuckoo_let_grow(c);
        status = cuckoo_add(c, h, lines, &result->why);
    }
    items->answers[i] = status == CALYX_OK;
    items->changed[i] = status != CALYX_OK;
    if (status != CALYX_OK) result->status = status;
}

/* The lines after which adding ends. */
static uint64_t most_lines(const struct cuckoo *c, bool in_steps) {
    if (!in_steps) return UINT64_MAX;
    return cf_step_lines(4 * (uint64_t)c->parts + 2 * (uint64_t)c->iterations);
}

/* Add all items, or those of a step, at least one. Returns their number. */
static size_t add_some(RedisModuleCtx *ctx, struct cuckoo *c,
                       const struct cuckoo_adding *how, struct items *items,
                       bool in_steps, struct cuckoo_result *result) {
    enum { BATCH = 16 };
    struct cuckoo_hash h[BATCH];
    uint64_t lines = 0;
    size_t done = 0;
    while (done < items->n && lines < most_lines(c, in_steps)) {
        const size_t left = items->n - done, n = left < BATCH ? left : BATCH;
        const struct cuckoo_hint hint = cuckoo_hint_of(c);
        for (size_t j = 0; j < n; j++) {
            const calyx_key *const item = &items->keys[done + j];
            h[j] = cuckoo_hash_of(item->data, item->size);
            cuckoo_prefetch(&hint, h[j]);
            lines += item->size / BYTES_HASHED_AS_LINE;
        }
        for (size_t j = 0; j < n && (j == 0 || lines < most_lines(c, in_steps));
             j++)
            add_item(ctx, c, h[j], how, items, done++, &lines, result);
    }
    result->lines = lines;
    return done;
}

/* ---- To native filters --------------------------------------------------- */

/* Add items, each in its turn, as many as the library adds at once. */
static void add_all_native(struct filter *f, struct items *items,
                           struct cuckoo_result *result) {
    for (size_t i = 0; i < items->n;) {
        struct addition a = {.keys = items->keys,
                             .n = items->n,
                             .fresh = items->answers,
                             .changed = items->changed,
                             .done = i,
                             .why = &result->why};
        const calyx_status status = filter_add(f, &a);
        memset(items->answers + i, true, a.done - i);
        memset(items->changed + i, false, a.done - i);
        i = a.done;
        if (status == CALYX_OK || i == items->n) continue;
        result->status = status;
        items->answers[i] = false;
        items->changed[i++] = true;
    }
}

/* One by one: an item may be there because of one before. */
static void add_new_native(struct filter *f, struct items *items,
                           struct cuckoo_result *result) {
    for (size_t i = 0; i < items->n; i++) {
        struct items one = items_slice(items, i, 1);
        *one.answers = *one.changed = false;
        if (!f->layout->has(f, one.keys->data, one.keys->size))
            add_all_native(f, &one, result);
    }
}

static size_t add_native(RedisModuleCtx *ctx, struct filter *f,
                         const struct cuckoo_adding *how, struct items *items,
                         struct cuckoo_result *result) {
    items_before_change(ctx, f, items);
    if (how->only_new)
        add_new_native(f, items, result);
    else
        add_all_native(f, items, result);
    return items->n;
}

/* ---- To either ----------------------------------------------------------- */

/* Add items, all or those of a step, count and replicate them. Nothing of
 * `f` may be used afterwards: a listener of the event may delete it. */
static size_t add_items(RedisModuleCtx *ctx, RedisModuleString *name,
                        struct cf_filter f, const struct cuckoo_adding *how,
                        struct items *items, bool in_steps,
                        struct cuckoo_result *result) {
    struct memory_request request;
    result->status = CALYX_OK;
    memory_begin(&request, ctx,
                 f.native ? filter_bytes(f.native) : f.cuckoo->bytes);
    if (items->n > 1) prefault_pause(true);
    const size_t done =
        f.native ? add_native(ctx, f.native, how, items, result)
                 : add_some(ctx, f.cuckoo, how, items, in_steps, result);
    if (items->n > 1) prefault_pause(false);
    memory_end(&result->why);
    size_t added = 0;
    for (size_t i = 0; i < done; i++) added += items->answers[i];
    stats.adds += done;
    stats.fresh += added;
    stats.refused += result->status == CALYX_NO_MEMORY;
    if (f.cuckoo) cuckoo_note(f.cuckoo);

    if (how->made) cf_replicate_new(ctx, name, f, how->made);
    if (!how->made && added == items->n && !in_steps)
        RM_ReplicateVerbatim(ctx);
    else
        items_replicate(ctx, "CF.INSERT", name, "ITEMS", items, items->answers,
                        done);
    if (how->made) note_change(ctx, name, "cuckoo.reserve");
    if (added) note_change(ctx, name, "cuckoo.add");
    return done;
}

/* ---- Replies ------------------------------------------------------------- */

static int reply_refusal(RedisModuleCtx *ctx,
                         const struct cuckoo_result *result) {
    if (result->status == CALYX_FULL)
        return RM_ReplyWithError(ctx, "Filter is full");
    if (result->status == CALYX_NO_MEMORY)
        return reply_text(ctx, "ERR Insufficient memory: %s", result->why.text);
    return reply_text(ctx, "ERR the filter cannot grow: %s", result->why.text);
}

/* A refused item is -1; in RESP3 the array of CF.INSERT has booleans. */
static int reply_added(RedisModuleCtx *ctx, const struct cuckoo_adding *how,
                       const struct items *items, size_t done,
                       const struct cuckoo_result *result) {
    if (how->single && items->changed[0]) return reply_refusal(ctx, result);
    if (how->single) return RM_ReplyWithBool(ctx, items->answers[0]);
    const bool booleans =
        !how->only_new && RM_GetContextFlags(ctx) & RM_CTX_RESP3;
    for (size_t i = 0; i < done; i++) {
        if (booleans)
            RM_ReplyWithBool(ctx, items->answers[i]);
        else
            RM_ReplyWithLongLong(ctx,
                                 items->changed[i] ? -1 : items->answers[i]);
    }
    return RM_OK;
}

/* ---- In steps ------------------------------------------------------------ */

struct cuckoo_add_job {
    struct items_job items;
    struct cuckoo_adding how;
    struct cf_params made; /* `how` may point here */
    bool native;
    struct cuckoo_result result;
};

static bool cuckoo_add_step(RedisModuleCtx *ctx, struct job *job) {
    struct cuckoo_add_job *const j = (struct cuckoo_add_job *)job;
    struct cf_filter f = {NULL, NULL};
    if (j->native)
        f.native = find_again(ctx, job->argv[1], j->items.life);
    else
        f.cuckoo = cf_find_again(ctx, job->argv[1], j->items.life);
    j->items.gone = cf_is_missing(f);
    if (j->items.gone) return true;
    if (f.cuckoo && !cf_compact_step(f.cuckoo)) return false;
    struct items rest = f.native ? items_next(&j->items, f.native)
                                 : items_slice(&j->items.items, j->items.at,
                                               j->items.items.n - j->items.at);
    j->items.at +=
        add_items(ctx, job->argv[1], f, &j->how, &rest, true, &j->result);
    if (!j->native) steps_count(j->result.lines);
    j->how.made = NULL;
    return j->items.at == j->items.items.n;
}

static int reply_cuckoo_adds(RedisModuleCtx *ctx, struct job *job) {
    struct cuckoo_add_job *const j = (struct cuckoo_add_job *)job;
    static const char GONE[] =
        "ERR the filter was deleted or replaced while items were added; this "
        "one and those after it were not";
    if (!j->how.single)
        RM_ReplyWithArray(ctx, (long)j->items.at + j->items.gone);
    if (!j->how.single || !j->items.gone)
        reply_added(ctx, &j->how, &j->items.items, j->items.at, &j->result);
    return j->items.gone ? RM_ReplyWithError(ctx, GONE) : RM_OK;
}

static int add_in_steps(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                        int first_item, struct cf_filter f,
                        const struct cuckoo_adding *how) {
    const uint64_t life = f.native ? filter_life(f.native) : f.cuckoo->life;
    struct cuckoo_add_job *const j = (struct cuckoo_add_job *)items_job_new(
        ctx, life, argv, argc, first_item, sizeof *j);
    j->native = f.native;
    j->items.job.step = cuckoo_add_step;
    j->items.job.reply = reply_cuckoo_adds;
    j->items.job.writes = true;
    j->how = *how;
    if (how->made) {
        j->made = *how->made;
        j->how.made = &j->made;
    }
    return steps_start(ctx, &j->items.job);
}

/* ---- The handlers -------------------------------------------------------- */

/* Many items may make a filter grow many times; few are too many only if it has
 * many parts, or is full. */
static bool may_exceed_step(const struct cuckoo *c, size_t items) {
    const uint64_t of_one =
        2 * (uint64_t)c->parts + (c->expansion ? 0 : c->iterations);
    return items > FEW_ITEMS || items * of_one > STEP_LINES;
}

static bool need_steps(RedisModuleCtx *ctx, struct cf_filter f,
                       const struct items *items, bool single) {
    const bool many =
        !single && (f.native ? items_need_steps(items, f.native, true)
                             : may_exceed_step(f.cuckoo, items->n));
    return (many && steps_can_wait(ctx)) ||
           (f.cuckoo && !cf_may_change(ctx, f.cuckoo));
}

static void add_all(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                    int first_item, struct cf_filter f,
                    const struct cuckoo_adding *how) {
    struct items items;
    struct cuckoo_result result = {.why = {.text = ""}};
    items_open(&items, argv + first_item, argc - first_item);
    if (need_steps(ctx, f, &items, how->single)) {
        add_in_steps(ctx, argv, argc, first_item, f, how);
    } else {
        const size_t done =
            add_items(ctx, argv[1], f, how, &items, false, &result);
        if (!how->single) RM_ReplyWithArray(ctx, (long)done);
        reply_added(ctx, how, &items, done, &result);
    }
    items_close(&items);
}

/* RedisBloom refuses all items if a filter already has `cf-max-expansions`
 * parts, but not those by which it gets them. */
static bool has_most_parts(RedisModuleCtx *ctx, uint64_t parts) {
    if (parts < (uint64_t)settings.cf_max_expansions || is_replayed(ctx))
        return false;
    RM_ReplyWithError(ctx, "Maximum expansions reached");
    return true;
}

/* `options` NULL stands for the defaults. */
static int add(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
               const struct cf_options *options, int first_item,
               struct cuckoo_adding how) {
    struct cf_filter f;
    struct cf_params params =
        options ? options->params : cf_default_params(is_replayed(ctx));
    if (how.single) cf_hash(argv[first_item]); /* prefetch */
    RedisModuleKey *key = RM_OpenKey(ctx, argv[1], RM_READ | RM_WRITE);
    const enum key_type type = cf_type_of(key, &f);
    const unsigned flags = FOR_WRITING | MUST_BE_COMPLETE |
                           (options && options->no_create ? MUST_EXIST : 0);
    const bool native = f.native || (!f.cuckoo && params.is_native);
    bool there =
        cf_accept(ctx, type, flags, f) &&
        (native || !has_most_parts(ctx, f.cuckoo ? f.cuckoo->parts : 1));
    if (there && cf_is_missing(f)) {
        how.made = &params;
        there = cf_create(ctx, key, &params, &f);
    }
    RM_CloseKey(key);
    if (!there) return RM_OK;
    cf_prefetch_next(f);
    add_all(ctx, argv, argc, first_item, f, &how);
    return RM_OK;
}

static int add_single(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                      bool only_new) {
    if (argc != 3) return RM_WrongArity(ctx);
    return add(ctx, argv, argc, NULL, 2,
               (struct cuckoo_adding){.only_new = only_new, .single = true});
}

static int insert(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                  bool only_new) {
    struct cf_options options;
    const char *wrong = cf_parse_insert(argv, argc, is_replayed(ctx), &options);
    if (wrong)
        return *wrong ? RM_ReplyWithError(ctx, wrong) : RM_WrongArity(ctx);
    return add(ctx, argv, argc, &options, options.items,
               (struct cuckoo_adding){.only_new = only_new});
}

static int run_cf_add(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    return add_single(ctx, argv, argc, false);
}

static int run_cf_addnx(RedisModuleCtx *ctx, RedisModuleString **argv,
                        int argc) {
    return add_single(ctx, argv, argc, true);
}

static int run_cf_insert(RedisModuleCtx *ctx, RedisModuleString **argv,
                         int argc) {
    return insert(ctx, argv, argc, false);
}

static int run_cf_insertnx(RedisModuleCtx *ctx, RedisModuleString **argv,
                           int argc) {
    return insert(ctx, argv, argc, true);
}

/* ---- The commands -------------------------------------------------------- */

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
    .docs = {.summary =
                 "Adds an item to a cuckoo filter, which is made if missing.",
             .complexity = COST_OF_ADDING,
             .arity = 3,
             .key_specs = key_updated,
             .args = item_args},
};

const struct command cf_addnx = {
    .name = "cf.addnx",
    .run = run_cf_addnx,
    .flags = "write deny-oom",
    .categories = "write cuckoo",
    .docs = {.summary = "Adds an item to a cuckoo filter, which is made if "
                        "missing, unless it is there.",
             .complexity = COST_OF_ADDING,
             .arity = 3,
             .key_specs = key_read_and_updated,
             .args = item_args},
};

const struct command cf_insert = {
    .name = "cf.insert",
    .run = run_cf_insert,
    .flags = "write deny-oom",
    .categories = "write cuckoo",
    .docs = {.summary = "Adds items to a cuckoo filter, which is made with "
                        "these options if missing.",
             .complexity = "O(n * (p + i)), with n items, p parts of the "
                           "filter and i its iterations",
             .arity = -4,
             .key_specs = key_updated,
             .args = cf_insert_args},
};

const struct command cf_insertnx = {
    .name = "cf.insertnx",
    .run = run_cf_insertnx,
    .flags = "write deny-oom",
    .categories = "write cuckoo",
    .docs = {.summary = "Adds those items to a cuckoo filter that are not "
                        "there.",
             .complexity = "O(n * (p + i)), with n items, p parts of the "
                           "filter and i its iterations",
             .arity = -4,
             .key_specs = key_read_and_updated,
             .args = cf_insert_args},
};
