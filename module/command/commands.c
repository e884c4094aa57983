/*
 * The commands. A handler parses, opens the key, makes one call, replies; and
 * one that changed something tells the replicas what it did, not what it was
 * asked: a filter is made there with every parameter and the seed, and gets the
 * items that were new here. So replicas and the AOF hold the same bits whatever
 * their own configuration is.
 */
#include "command/commands.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "command/handlers.h"
#include "command/items.h"
#include "command/options.h"
#include "command/replicate.h"
#include "command/transfer.h"
#include "layout/window.h"
#include "server/allocator.h"
#include "server/pages.h"
#include "server/reply.h"
#include "server/steps.h"
#include "settings.h"
#include "type.h"

struct stats stats;

/* ---- Keys ---------------------------------------------------------------- */

struct filter *open_there(RedisModuleCtx *ctx, RedisModuleString *name,
                          RedisModuleKey **key) {
    struct filter *f = NULL;
    *key = RM_OpenKey(ctx, name, RM_READ);
    const enum key_type type = type_of(*key, &f);
    if (type == KEY_FILTER) return f;
    if (*key) RM_CloseKey(*key);
    if (type == KEY_MISSING)
        reply_not_found(ctx);
    else
        reply_wrong_type(ctx);
    return NULL;
}

void note_change(RedisModuleCtx *ctx, RedisModuleString *name,
                 const char *event) {
    RM_SignalModifiedKey(ctx, name);
    RM_NotifyKeyspaceEvent(ctx, RM_NOTIFY_GENERIC, event, name);
}

/* ---- Replication --------------------------------------------------------- */

/* A params in words, which are options that make the same filter again. */
struct argument_list {
    RedisModuleCtx *ctx;
    RedisModuleString *word[18];
    size_t n;
};

__attribute__((format(printf, 3, 4))) static void say(
    struct argument_list *words, const char *option, const char *format, ...) {
    char value[40];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    words->word[words->n++] =
        RM_CreateString(words->ctx, option, strlen(option));
    words->word[words->n++] = RM_CreateString(words->ctx, value, strlen(value));
}

static void say_number(struct argument_list *words, const char *option,
                       uint64_t number) {
    say(words, option, "%llu", (unsigned long long)number);
}

static struct argument_list words_for(RedisModuleCtx *ctx,
                                      const struct filter_params *params) {
    struct argument_list words = {.ctx = ctx};
    say(&words, "ERROR", "%.17g", params->error);
    say_number(&words, "CAPACITY", params->capacity);
    say_number(&words, "EXPANSION", params->expansion);
    say(&words, "LAYOUT", "%s", params->layout->name);
    say(&words, "KIND", "%s", params->kind);
    say_number(&words, "SEED", params->seed);
    if (!params->window) return words;
    say(&words, "WINDOW", "%llu.%03u",
        (unsigned long long)params->window / 1000,
        (unsigned)(params->window % 1000));
    say_number(&words, "GENERATIONS", params->generations);
    say_number(&words, "BEGAN", params->began);
    return words;
}

static void free_words(struct argument_list *words) {
    while (words->n > 0) RM_FreeString(words->ctx, words->word[--words->n]);
}

static void replicate_new(RedisModuleCtx *ctx, RedisModuleString *name,
                          const struct filter *f,
                          const struct filter_params *params,
                          RedisModuleString **items, size_t n) {
    enum { RATE = 1, CAPACITY = 3, REST = 4 }; /* the first have their places */
    if (f->layout == &redisbloom_layout) {
        replicate_chain(ctx, name, f->chain, items, n);
        return;
    }
    struct argument_list words = words_for(ctx, params);
    if (n == 0)
        RM_Replicate(ctx, "BF.RESERVE", "sssv", name, words.word[RATE],
                     words.word[CAPACITY], words.word + REST, words.n - REST);
    else
        RM_Replicate(ctx, "BF.INSERT", "svcv", name, words.word, words.n,
                     "ITEMS", items, n);
    free_words(&words);
}

/* Those of the first `done` items that changed something: the others did not.
 */
static void replicate_items(RedisModuleCtx *ctx, RedisModuleString *name,
                            const struct filter *f,
                            const struct filter_params *made,
                            const struct items *items, const bool *changed,
                            size_t done) {
    if (!made) {
        items_replicate(ctx, "BF.MADD", name, items, changed, done);
        return;
    }
    RedisModuleString *few[FEW_ITEMS];
    size_t n;
    RedisModuleString **chosen = items_chosen(items, changed, done, few, &n);
    replicate_new(ctx, name, f, made, chosen, n);
    if (chosen != few) RM_Free(chosen);
}

/* ---- Making -------------------------------------------------------------- */

/* Make a filter and put it under the key; else reply and return NULL. */
static struct filter *make(RedisModuleCtx *ctx, RedisModuleKey *key,
                           struct filter_params *params) {
    struct filter *f = NULL;
    calyx_error why = {.text = ""};
    if (params->window &&
        !rotation_may_begin(ctx, params->began,
                            span_of(params->window, params->generations)))
        return NULL;
    memory_judge(ctx, 0);
    const calyx_status status = filter_new(params, &f, &why);
    memory_trust();
    if (status == CALYX_OK) {
        if (is_window(f)) rotation_listen(ctx);
        type_attach(key, f);
        return f;
    }
    stats.refused += status == CALYX_NO_MEMORY;
    reply_not_made(ctx, status, &why);
    return NULL;
}

static int reserve(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    struct options options;
    const bool theirs =
        is_replayed(ctx) && redisbloom_parse_reserve(argv, argc, &options);
    const char *wrong = theirs ? NULL : parse_reserve(argv, argc, &options);
    if (wrong)
        return *wrong ? RM_ReplyWithError(ctx, wrong) : RM_WrongArity(ctx);

    struct filter *f = NULL;
    const uint64_t begun = prefault_last();
    RedisModuleKey *key = RM_OpenKey(ctx, argv[1], RM_READ | RM_WRITE);
    switch (type_of(key, &f)) {
        case KEY_OTHER: reply_wrong_type(ctx); break;
        case KEY_FILTER: RM_ReplyWithError(ctx, "ERR item exists"); break;
        case KEY_MISSING:
            f = make(ctx, key, &options.params);
            if (!f) break;
            RM_CloseKey(key); /* who is told of the event may delete it */
            replicate_new(ctx, argv[1], f, &options.params, NULL, 0);
            note_change(ctx, argv[1], "bloom.reserve");
            return reply_ok_when_prefaulted(ctx, begun);
    }
    RM_CloseKey(key);
    return RM_OK;
}

/* ---- Adding -------------------------------------------------------------- */

/* RedisBloom replicates what it refused, too. A filter that is full here was
 * full there: that is no error of the stream. */
static bool was_refused_there(RedisModuleCtx *ctx, const struct filter *f,
                              calyx_status status) {
    return status == CALYX_FULL && f->layout == &redisbloom_layout &&
           is_replayed(ctx);
}

/* What became of items: the first `done` are in, the next is not if `status` is
 * an error. */
struct added {
    size_t done;
    calyx_status status;
    calyx_error why;
};

/* Add items to a filter, which was `made` by this command unless that is NULL,
 * and tell replicas. They may be `all` items of the command, or some. */
static void add_items(RedisModuleCtx *ctx, RedisModuleString *name,
                      struct filter *f, const struct filter_params *made,
                      struct items *items, bool all, struct added *added) {
    added->done = 0;
    added->why.text[0] = '\0';
    memory_judge(ctx, filter_bytes(f));
    if (items->n > 1) prefault_pause(true);
    bool *const changed = f->repeats_matter ? items->changed : items->answers;
    added->status = filter_add(f, items->keys, items->n, items->answers,
                               changed, &added->done, &added->why);
    if (items->n > 1) prefault_pause(false);
    memory_trust();
    if (was_refused_there(ctx, f, added->status)) added->status = CALYX_OK;
    if (added->status != CALYX_OK) memory_explain(&added->why);
    size_t fresh = 0, changes = 0;
    for (size_t i = 0; i < added->done; i++) fresh += items->answers[i];
    for (size_t i = 0; i < added->done; i++) changes += changed[i];
    stats.adds += added->done;
    stats.fresh += fresh;
    stats.refused += added->status == CALYX_NO_MEMORY;

    /* BF.INSERT may have words that RedisBloom does not know. */
    if (!made && all && changes == items->n && f->layout != &redisbloom_layout)
        RM_ReplicateVerbatim(ctx);
    else
        replicate_items(ctx, name, f, made, items, changed, added->done);
    if (made) note_change(ctx, name, "bloom.reserve");
    if (changes) note_change(ctx, name, "bloom.add");
}

/* A single one is answered by itself, several by an array, which ends with the
 * error if there was one. */
static int reply_added(RedisModuleCtx *ctx, const struct items *items,
                       const struct added *added, bool single) {
    const bool failed = added->status != CALYX_OK;
    if (!single) RM_ReplyWithArray(ctx, (long)added->done + failed);
    reply_bools(ctx, items->answers, added->done);
    return failed ? reply_not_added(ctx, added->status, &added->why) : RM_OK;
}

/* ---- Many items, in steps ------------------------------------------------ */

struct items_job {
    struct job job;
    struct items items;
    size_t at;                        /* items that are done */
    uint64_t life;                    /* of the filter       */
    bool gone;                        /* it is not there any more */
    const struct filter_params *made; /* by the first step; then NULL */
    struct added added;
};

static struct items_job *new_items_job(RedisModuleCtx *ctx,
                                       const struct filter *f,
                                       RedisModuleString **argv, int argc,
                                       int first_item) {
    struct items_job *const j = RM_Calloc(1, sizeof *j);
    steps_keep_arguments(ctx, &j->job, argv, argc);
    items_open(&j->items, j->job.argv + first_item, argc - first_item);
    j->life = filter_life(f);
    return j;
}

static void end_items(struct job *job) {
    items_close(&((struct items_job *)job)->items);
}

/* The items of the next step. */
static struct items next_items(struct items_job *j, const struct filter *f) {
    const uint64_t lines = item_lines(f);
    const size_t n =
        items_in_step(j->items.keys + j->at, j->items.n - j->at, lines);
    steps_count(n * lines);
    return items_slice(&j->items, j->at, n);
}

static bool is_long(const struct filter *f, const struct items *items) {
    return items_in_step(items->keys, items->n, item_lines(f)) < items->n;
}

static bool add_step(RedisModuleCtx *ctx, struct job *job) {
    struct items_job *const j = (struct items_job *)job;
    struct filter *const f = steps_open(ctx, job->argv[1], j->life);
    j->gone = !f;
    if (!f) return true;
    if (f->repeats_matter) rotation_run(ctx, job->argv[1], f);
    struct items some = next_items(j, f);
    add_items(ctx, job->argv[1], f, j->made, &some, false, &j->added);
    j->made = NULL;
    j->at += j->added.done;
    return j->added.status != CALYX_OK || j->at == j->items.n;
}

static int reply_gone(RedisModuleCtx *ctx, const char *meanwhile) {
    return reply_text(ctx,
                      "ERR the filter was deleted, emptied or replaced while "
                      "%s",
                      meanwhile);
}

static int reply_adds(RedisModuleCtx *ctx, struct job *job) {
    struct items_job *const j = (struct items_job *)job;
    j->added.done = j->at;
    if (!j->gone) return reply_added(ctx, &j->items, &j->added, false);
    RM_ReplyWithArray(ctx, (long)j->at + 1);
    reply_bools(ctx, j->items.answers, j->at);
    return reply_gone(ctx, "items were added; this one and those after it "
                           "were not");
}

static int add_in_steps(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                        int first_item, struct filter *f,
                        const struct filter_params *made) {
    struct items_job *const j = new_items_job(ctx, f, argv, argc, first_item);
    j->job.step = add_step;
    j->job.reply = reply_adds;
    j->job.end = end_items;
    j->job.writes = true;
    j->made = made;
    return steps_start(ctx, &j->job);
}

static bool ask_step(RedisModuleCtx *ctx, struct job *job) {
    struct items_job *const j = (struct items_job *)job;
    const struct filter *f = steps_open(ctx, job->argv[1], j->life);
    j->gone = !f;
    if (!f) return true;
    const struct items some = next_items(j, f);
    stats.positives += f->layout->has_many(f, some.keys, some.n, some.answers);
    stats.lookups += some.n;
    j->at += some.n;
    return j->at == j->items.n;
}

static int reply_asked(RedisModuleCtx *ctx, struct job *job) {
    struct items_job *const j = (struct items_job *)job;
    if (j->gone)
        return reply_gone(ctx, "it was asked; ask again for all items");
    RM_ReplyWithArray(ctx, (long)j->items.n);
    return reply_bools(ctx, j->items.answers, j->items.n);
}

static int ask_in_steps(RedisModuleCtx *ctx, const struct filter *f,
                        RedisModuleString **argv, int argc) {
    struct items_job *const j = new_items_job(ctx, f, argv, argc, 2);
    j->job.step = ask_step;
    j->job.reply = reply_asked;
    j->job.end = end_items;
    return steps_start(ctx, &j->job);
}

/* ---- Adding -------------------------------------------------------------- */

/* The same of one item, to a filter that was there and that repeats do not
 * matter to: what most commands are, and with less to be done around it. */
static int add_single(RedisModuleCtx *ctx, RedisModuleString *name,
                      struct filter *f, const calyx_key *item) {
    calyx_error why;
    bool fresh = false;
    size_t done = 0;
    why.text[0] = '\0';
    memory_judge(ctx, filter_bytes(f));
    const calyx_status status =
        filter_add(f, item, 1, &fresh, &fresh, &done, &why);
    memory_trust();
    if (was_refused_there(ctx, f, status)) return RM_ReplyWithBool(ctx, false);
    if (status != CALYX_OK) {
        memory_explain(&why);
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

/* Items of which more are given than a step takes, or all at once. */
static void add_all(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                    int first_item, struct filter *f,
                    const struct filter_params *made, bool single) {
    struct items items;
    struct added added;
    items_open(&items, argv + first_item, argc - first_item);
    if (!single && is_long(f, &items) && steps_can_wait(ctx)) {
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
                                    : settings_params();
        made = &params;
        f = make(ctx, key, made);
    } else if (filter_is_partial(f) &&
               !(is_replayed(ctx) && filter_accept_partial(f))) {
        reply_partial(ctx, f);
        f = NULL;
    }
    RM_CloseKey(key); /* now: meanwhile the line of the guess comes */
    if (f && single && !made && !f->repeats_matter) {
        filter_prefetch_next(f);
        add_single(ctx, name, f, &item);
    } else if (f) {
        if (single) filter_prefetch_next(f);
        add_all(ctx, argv, argc, first_item, f, made, single);
    }
    return RM_OK;
}

static int add_one(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 3) return RM_WrongArity(ctx);
    return add(ctx, argv, argc, NULL, 2, true);
}

static int add_many(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 3) return RM_WrongArity(ctx);
    return add(ctx, argv, argc, NULL, 2, false);
}

static int insert(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    struct options options;
    const bool theirs =
        is_replayed(ctx) && redisbloom_parse_insert(argv, argc, &options);
    const char *wrong = theirs ? NULL : parse_insert(argv, argc, &options);
    if (wrong)
        return *wrong ? RM_ReplyWithError(ctx, wrong) : RM_WrongArity(ctx);
    return add(ctx, argv, argc, &options, options.items, false);
}

/* ---- Asking -------------------------------------------------------------- */

static int ask_one(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 3) return RM_WrongArity(ctx);
    struct filter *f = NULL;
    size_t size;
    const char *item = RM_StringPtrLen(argv[2], &size);
    filter_prefetch(item, size);
    RedisModuleKey *key = RM_OpenKey(ctx, argv[1], RM_READ);
    const enum key_type type = type_of(key, &f);
    if (key) RM_CloseKey(key); /* now: meanwhile the line of the guess comes */
    if (type == KEY_OTHER) {
        reply_wrong_type(ctx);
    } else if (type == KEY_FILTER && filter_is_partial(f)) {
        reply_partial(ctx, f);
    } else {
        if (f) filter_prefetch_next(f);
        const bool found = type == KEY_FILTER && f->layout->has(f, item, size);
        stats.lookups++;
        stats.positives += found;
        RM_ReplyWithBool(ctx, found);
    }
    return RM_OK;
}

static void ask_items(RedisModuleCtx *ctx, const struct filter *f,
                      RedisModuleString **argv, int argc) {
    struct items items;
    items_open(&items, argv + 2, argc - 2);
    if (f && is_long(f, &items) && steps_can_wait(ctx)) {
        ask_in_steps(ctx, f, argv, argc);
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

static int ask_many(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 3) return RM_WrongArity(ctx);
    struct filter *f = NULL;
    RedisModuleKey *key = RM_OpenKey(ctx, argv[1], RM_READ);
    const enum key_type type = type_of(key, &f);
    if (type == KEY_OTHER)
        reply_wrong_type(ctx);
    else if (type == KEY_FILTER && filter_is_partial(f))
        reply_partial(ctx, f);
    else
        ask_items(ctx, f, argv, argc);
    if (key) RM_CloseKey(key);
    return RM_OK;
}

/* ---- Telling ------------------------------------------------------------- */

static int card(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 2) return RM_WrongArity(ctx);
    struct filter *f = NULL;
    RedisModuleKey *key = RM_OpenKey(ctx, argv[1], RM_READ);
    const enum key_type type = type_of(key, &f);
    struct filter_facts facts = {0};
    if (f) f->layout->describe(f, &facts);
    if (type == KEY_OTHER)
        reply_wrong_type(ctx);
    else if (type == KEY_FILTER && filter_is_partial(f))
        reply_partial(ctx, f);
    else
        RM_ReplyWithLongLong(ctx, (long long)facts.items);
    if (key) RM_CloseKey(key);
    return RM_OK;
}

static int info(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 2 || argc > 3) return RM_WrongArity(ctx);
    RedisModuleKey *key;
    const struct filter *f = open_there(ctx, argv[1], &key);
    if (!f) return RM_OK;
    if (argc == 2)
        reply_facts(ctx, f);
    else
        reply_fact(ctx, f, argv[2]);
    RM_CloseKey(key);
    return RM_OK;
}

static int debug(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 2) return RM_WrongArity(ctx);
    RedisModuleKey *key;
    const struct filter *f = open_there(ctx, argv[1], &key);
    if (!f) return RM_OK;
    reply_parts(ctx, f);
    RM_CloseKey(key);
    return RM_OK;
}

/* ---- Dumping and loading ------------------------------------------------- */

static void dump_step(RedisModuleCtx *ctx, const struct filter *f,
                      RedisModuleString *iterator) {
    long long at;
    if (RM_StringToLongLong(iterator, &at) != RM_OK) {
        RM_ReplyWithError(ctx, "Second argument must be numeric");
    } else if (filter_is_partial(f)) {
        reply_partial(ctx, f);
    } else {
        const struct piece piece =
            at == 0 ? f->layout->dump_head(f) : f->layout->dump_from(f, at);
        reply_piece(ctx, &piece);
        RM_Free(piece.owned);
    }
}

static int scan_dump(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 3) return RM_WrongArity(ctx);
    RedisModuleKey *key;
    const struct filter *f = open_there(ctx, argv[1], &key);
    if (!f) return RM_OK;
    dump_step(ctx, f, argv[2]);
    RM_CloseKey(key);
    return RM_OK;
}

static int loaded(RedisModuleCtx *ctx, RedisModuleString *name,
                  const struct filter *f) {
    RM_SignalModifiedKey(ctx, name);
    if (!filter_is_partial(f))
        RM_NotifyKeyspaceEvent(ctx, RM_NOTIFY_GENERIC, "bloom.load", name);
    return RM_ReplyWithSimpleString(ctx, "OK");
}

struct filter *make_of_head(RedisModuleCtx *ctx, RedisModuleKey *key,
                            const char *bytes, size_t size) {
    struct filter *f = NULL;
    calyx_error why = {.text = ""};
    memory_judge(ctx, 0);
    const calyx_status status = filter_load_head(bytes, size, &f, &why);
    memory_trust();
    if (status == CALYX_OK) {
        type_attach(key, f);
    } else if (status == CALYX_NO_MEMORY) {
        stats.refused++;
        reply_not_made(ctx, status, &why);
    } else {
        loads_refused++;
        reply_text(ctx, "ERR received bad data: %s", why.text);
    }
    return f;
}

static void load_head(RedisModuleCtx *ctx, RedisModuleString *name,
                      RedisModuleKey *key, const char *bytes, size_t size) {
    const struct filter *f = make_of_head(ctx, key, bytes, size);
    if (!f) return;
    if (f->layout == &redisbloom_layout)
        replicate_chain_header(ctx, name,
                               f->chain); /* also of one in an old form */
    else
        RM_ReplicateVerbatim(ctx);
    loaded(ctx, name, f);
}

static int load_piece(RedisModuleCtx *ctx, RedisModuleString *name,
                      struct filter *f, long long at, const char *bytes,
                      size_t size) {
    calyx_error why = {.text = ""};
    bool changed = false;
    calyx_status status = filter_load_piece(f, at, bytes, size, &changed, &why);
    if (status != CALYX_OK && is_replayed(ctx) && filter_accept_partial(f))
        status = filter_load_piece(f, at, bytes, size, &changed, &why);
    if (status != CALYX_OK) {
        loads_refused++;
        return reply_text(ctx, "ERR %s", why.text);
    }
    if (!changed) return RM_ReplyWithSimpleString(ctx, "OK");
    if (f->layout == &redisbloom_layout)
        replicate_chain_chunk(ctx, name, f->chain, at, size);
    else
        RM_ReplicateVerbatim(ctx);
    return loaded(ctx, name, f);
}

static int load_chunk(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 4) return RM_WrongArity(ctx);
    struct filter *f = NULL;
    long long at;
    size_t size;
    const char *bytes = RM_StringPtrLen(argv[3], &size);
    if (RM_StringToLongLong(argv[2], &at) != RM_OK)
        return RM_ReplyWithError(ctx, "ERR Second argument must be numeric");

    RedisModuleKey *key = RM_OpenKey(ctx, argv[1], RM_READ | RM_WRITE);
    const enum key_type type = type_of(key, &f);
    if (type == KEY_OTHER)
        reply_wrong_type(ctx);
    else if (type == KEY_FILTER && f->uncommitted)
        reply_partial(ctx, f);
    else if (type == KEY_FILTER)
        load_piece(ctx, argv[1], f, at, bytes, size);
    else if (at == 1)
        load_head(ctx, argv[1], key, bytes, size);
    else
        reply_not_found(ctx);
    RM_CloseKey(key);
    return RM_OK;
}

/* ---- The table ----------------------------------------------------------- */

static const struct command commands[] = {
    {"bf.reserve", reserve, "write deny-oom", "write fast bloom"},
    {"bf.add", add_one, "write deny-oom", "write bloom"},
    {"bf.madd", add_many, "write deny-oom", "write bloom"},
    {"bf.insert", insert, "write deny-oom", "write bloom"},
    {"bf.exists", ask_one, "readonly fast", "read bloom"},
    {"bf.mexists", ask_many, "readonly", "read bloom"},
    {"bf.info", info, "readonly fast", "read fast bloom"},
    {"bf.card", card, "readonly fast", "read fast bloom"},
    {"bf.debug", debug, "readonly fast", "read bloom"},
    {"bf.scandump", scan_dump, "readonly fast", "read bloom"},
    {"bf.loadchunk", load_chunk, "write deny-oom", "write bloom"},
    {0},
};

static const struct command *const lists[] = {
    commands,          counting_commands, guard_commands,  swap_commands,
    transfer_commands, whole_commands,    window_commands, NULL,
};

/* Categories of one's own came with Redis 7.4 and Valkey 8. */
static bool has_categories(RedisModuleCtx *ctx) {
    return RM_AddACLCategory && RM_SetCommandACLCategories &&
           RM_AddACLCategory(ctx, "bloom") == RM_OK;
}

static int command_register(RedisModuleCtx *ctx, const struct command *c,
                            bool categories) {
    if (RM_CreateCommand(ctx, c->name, c->run, c->flags, 1, 1, 1) != RM_OK)
        return RM_ERR;
    RedisModuleCommand *command = RM_GetCommand(ctx, c->name);
    if (!command) return RM_ERR;
    if (categories &&
        RM_SetCommandACLCategories(command, c->categories) != RM_OK)
        return RM_ERR;
    return RM_SetCommandInfo(command, docs_of(c->name));
}

int commands_register(RedisModuleCtx *ctx) {
    const bool categories = has_categories(ctx);
    for (const struct command *const *list = lists; *list; list++)
        for (const struct command *c = *list; c->name; c++) {
            if (command_register(ctx, c, categories) == RM_OK) continue;
            RM_Log(ctx, "warning", "the server does not take the command %s",
                   c->name);
            return RM_ERR;
        }
    return RM_OK;
}
