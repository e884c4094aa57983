/*
 * The commands. A handler parses, opens the key, makes one call, replies; and
 * one that changed something tells the replicas what it did, not what it was
 * asked: a filter is made there with every parameter and the seed, and gets the
 * items that were new here. So replicas and the AOF hold the same bits whatever
 * their own configuration is.
 */
#include "commands.h"

#include <stdio.h>

#include "handlers.h"
#include "memory.h"
#include "options.h"
#include "pages.h"
#include "reply.h"
#include "settings.h"
#include "transfer.h"
#include "type.h"

struct counts counts;

/* ---- Keys ---------------------------------------------------------------- */

struct filter *open_there(RedisModuleCtx *ctx, RedisModuleString *name,
                          RedisModuleKey **key) {
    struct filter *f = NULL;
    *key = RM_OpenKey(ctx, name, RM_READ);
    const enum standing is = type_of(*key, &f);
    if (is == FILTER) return f;
    if (*key) RM_CloseKey(*key);
    if (is == MISSING)
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

/* ---- Items --------------------------------------------------------------- */

/* The items of a command, as the library takes them. Most commands have few:
 * those need no memory. */
struct items {
    RedisModuleString **argv;
    size_t n;
    calyx_key *keys;
    bool *answers;
    calyx_key few_keys[64];
    bool few_answers[64];
};

static void open_items(struct items *items, RedisModuleString **argv, int n) {
    items->argv = argv;
    items->n = (size_t)n;
    const bool few = items->n <= sizeof items->few_answers;
    items->keys =
        few ? items->few_keys : RM_Alloc(items->n * sizeof *items->keys);
    items->answers = few ? items->few_answers : RM_Alloc(items->n);
    for (size_t i = 0; i < items->n; i++)
        items->keys[i].data = RM_StringPtrLen(argv[i], &items->keys[i].size);
}

static void close_items(struct items *items) {
    if (items->keys == items->few_keys) return;
    RM_Free(items->keys);
    RM_Free(items->answers);
}

/* ---- Replication --------------------------------------------------------- */

/* Numbers of a wish, as text that gives the same numbers again. */
struct wish_text {
    char error[32], capacity[24], expansion[16], seed[24];
};

static struct wish_text write_wish(const struct wish *wish) {
    struct wish_text text;
    snprintf(text.error, sizeof text.error, "%.17g", wish->error);
    snprintf(text.capacity, sizeof text.capacity, "%llu",
             (unsigned long long)wish->capacity);
    snprintf(text.expansion, sizeof text.expansion, "%u", wish->expansion);
    snprintf(text.seed, sizeof text.seed, "%llu",
             (unsigned long long)wish->seed);
    return text;
}

static void replicate_new(RedisModuleCtx *ctx, RedisModuleString *name,
                          const struct wish *wish) {
    const struct wish_text text = write_wish(wish);
    RM_Replicate(ctx, "BF.RESERVE", "scccccccccc", name, text.error,
                 text.capacity, "EXPANSION", text.expansion, "LAYOUT",
                 wish->layout->name, "KIND", wish->kind, "SEED", text.seed);
}

static void replicate_new_with(RedisModuleCtx *ctx, RedisModuleString *name,
                               const struct wish *wish,
                               RedisModuleString **items, size_t n) {
    const struct wish_text text = write_wish(wish);
    RM_Replicate(ctx, "BF.INSERT", "scccccccccccccv", name, "ERROR", text.error,
                 "CAPACITY", text.capacity, "EXPANSION", text.expansion,
                 "LAYOUT", wish->layout->name, "KIND", wish->kind, "SEED",
                 text.seed, "ITEMS", items, n);
}

/* Those of the first `done` items that were fresh, in their order: the others
 * changed nothing. */
static void replicate_items(RedisModuleCtx *ctx, RedisModuleString *name,
                            const struct wish *made, const struct items *items,
                            size_t done) {
    RedisModuleString *few[64];
    RedisModuleString **fresh =
        done <= 64 ? few : RM_Alloc(done * sizeof(void *));
    size_t n = 0;
    for (size_t i = 0; i < done; i++)
        if (items->answers[i]) fresh[n++] = items->argv[i];
    if (made && n == 0)
        replicate_new(ctx, name, made);
    else if (made)
        replicate_new_with(ctx, name, made, fresh, n);
    else if (n > 0)
        RM_Replicate(ctx, "BF.MADD", "sv", name, fresh, n);
    if (fresh != few) RM_Free(fresh);
}

/* ---- Making -------------------------------------------------------------- */

/* Make a filter and put it under the key; else reply and return NULL. */
static struct filter *make(RedisModuleCtx *ctx, RedisModuleKey *key,
                           struct wish *wish) {
    struct filter *f = NULL;
    calyx_error why = {.text = ""};
    memory_judge(ctx, 0);
    const calyx_status status = filter_new(wish, &f, &why);
    memory_trust();
    if (status == CALYX_OK) {
        type_put(key, f);
        return f;
    }
    counts.refused += status == CALYX_NO_MEMORY;
    reply_not_made(ctx, status, &why);
    return NULL;
}

static int reserve(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    struct options options;
    const char *wrong = parse_reserve(argv, argc, &options);
    if (wrong)
        return *wrong ? RM_ReplyWithError(ctx, wrong) : RM_WrongArity(ctx);

    struct filter *f = NULL;
    RedisModuleKey *key = RM_OpenKey(ctx, argv[1], RM_READ | RM_WRITE);
    switch (type_of(key, &f)) {
        case OTHER: reply_wrong_type(ctx); break;
        case FILTER: RM_ReplyWithError(ctx, "ERR item exists"); break;
        case MISSING:
            if (!make(ctx, key, &options.wish)) break;
            replicate_new(ctx, argv[1], &options.wish);
            note_change(ctx, argv[1], "bloom.reserve");
            RM_ReplyWithSimpleString(ctx, "OK");
    }
    RM_CloseKey(key);
    return RM_OK;
}

/* ---- Adding -------------------------------------------------------------- */

/* Add items to a filter, which was `made` by this command unless that is NULL.
 * A single one is answered by itself, several by an array, which ends with the
 * error if there was one. */
static int add_items(RedisModuleCtx *ctx, RedisModuleString *name,
                     struct filter *f, const struct wish *made,
                     struct items *items, bool single) {
    calyx_error why; /* not cleared, which would take longer than adding */
    size_t done = 0;
    why.text[0] = '\0';
    memory_judge(ctx, f->bytes);
    if (!single) pages_hold(true);
    const calyx_status status =
        filter_add(f, items->keys, items->n, items->answers, &done, &why);
    if (!single) pages_hold(false);
    memory_trust();
    size_t fresh = 0;
    for (size_t i = 0; i < done; i++) fresh += items->answers[i];
    counts.adds += done;
    counts.fresh += fresh;
    counts.refused += status == CALYX_NO_MEMORY;

    if (!made && fresh == items->n)
        RM_ReplicateVerbatim(ctx);
    else
        replicate_items(ctx, name, made, items, done);
    if (made) note_change(ctx, name, "bloom.reserve");
    if (fresh) note_change(ctx, name, "bloom.add");

    if (!single) RM_ReplyWithArray(ctx, (long)done + (status != CALYX_OK));
    reply_bools(ctx, items->answers, done);
    return status == CALYX_OK ? RM_OK : reply_not_added(ctx, status, &why);
}

/* `options` NULL stands for the defaults. */
static int add(RedisModuleCtx *ctx, RedisModuleString *name,
               struct options *options, RedisModuleString **argv, int n,
               bool single) {
    struct filter *f = NULL;
    struct wish wish, *made = NULL;
    if (single) {
        size_t size;
        const char *item = RM_StringPtrLen(*argv, &size);
        filter_guess(item, size);
    }
    RedisModuleKey *key = RM_OpenKey(ctx, name, RM_READ | RM_WRITE);
    const enum standing is = type_of(key, &f);
    if (is == OTHER) {
        reply_wrong_type(ctx);
    } else if (is == MISSING && options && options->no_create) {
        reply_not_found(ctx);
    } else if (is == MISSING) {
        wish = options ? options->wish : settings_wish();
        made = &wish;
        f = make(ctx, key, made);
    } else if (filter_is_partial(f)) {
        reply_partial(ctx, f);
        f = NULL;
    }
    if (f) {
        struct items items;
        if (single) filter_aim(f);
        open_items(&items, argv, n);
        add_items(ctx, name, f, made, &items, single);
        close_items(&items);
    }
    RM_CloseKey(key);
    return RM_OK;
}

static int add_one(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 3) return RM_WrongArity(ctx);
    return add(ctx, argv[1], NULL, argv + 2, 1, true);
}

static int add_many(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 3) return RM_WrongArity(ctx);
    return add(ctx, argv[1], NULL, argv + 2, argc - 2, false);
}

static int insert(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    struct options options;
    const char *wrong = parse_insert(argv, argc, &options);
    if (wrong)
        return *wrong ? RM_ReplyWithError(ctx, wrong) : RM_WrongArity(ctx);
    return add(ctx, argv[1], &options, argv + options.items,
               argc - options.items, false);
}

/* ---- Asking -------------------------------------------------------------- */

static int ask_one(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 3) return RM_WrongArity(ctx);
    struct filter *f = NULL;
    size_t size;
    const char *item = RM_StringPtrLen(argv[2], &size);
    filter_guess(item, size);
    RedisModuleKey *key = RM_OpenKey(ctx, argv[1], RM_READ);
    const enum standing is = type_of(key, &f);
    if (is == OTHER) {
        reply_wrong_type(ctx);
    } else if (is == FILTER && filter_is_partial(f)) {
        reply_partial(ctx, f);
    } else {
        if (f) filter_aim(f);
        const bool found = is == FILTER && f->layout->has(f, item, size);
        counts.questions++;
        counts.positives += found;
        RM_ReplyWithBool(ctx, found);
    }
    if (key) RM_CloseKey(key);
    return RM_OK;
}

static void ask_items(RedisModuleCtx *ctx, const struct filter *f,
                      RedisModuleString **argv, int n) {
    struct items items;
    open_items(&items, argv, n);
    if (f)
        counts.positives +=
            f->layout->has_many(f, items.keys, items.n, items.answers);
    else
        for (size_t i = 0; i < items.n; i++) items.answers[i] = false;
    counts.questions += items.n;
    RM_ReplyWithArray(ctx, n);
    reply_bools(ctx, items.answers, items.n);
    close_items(&items);
}

static int ask_many(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 3) return RM_WrongArity(ctx);
    struct filter *f = NULL;
    RedisModuleKey *key = RM_OpenKey(ctx, argv[1], RM_READ);
    const enum standing is = type_of(key, &f);
    if (is == OTHER)
        reply_wrong_type(ctx);
    else if (is == FILTER && filter_is_partial(f))
        reply_partial(ctx, f);
    else
        ask_items(ctx, f, argv + 2, argc - 2);
    if (key) RM_CloseKey(key);
    return RM_OK;
}

/* ---- Telling ------------------------------------------------------------- */

static int card(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 2) return RM_WrongArity(ctx);
    struct filter *f = NULL;
    RedisModuleKey *key = RM_OpenKey(ctx, argv[1], RM_READ);
    const enum standing is = type_of(key, &f);
    struct facts facts = {0};
    if (f) f->layout->tell(f, &facts);
    if (is == OTHER)
        reply_wrong_type(ctx);
    else if (is == FILTER && filter_is_partial(f))
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
    RM_ReplicateVerbatim(ctx);
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
        type_put(key, f);
    } else if (status == CALYX_NO_MEMORY) {
        counts.refused++;
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
    if (f) loaded(ctx, name, f);
}

static int load_piece(RedisModuleCtx *ctx, RedisModuleString *name,
                      struct filter *f, long long at, const char *bytes,
                      size_t size) {
    calyx_error why = {.text = ""};
    bool changed = false;
    if (filter_load_piece(f, at, bytes, size, &changed, &why) != CALYX_OK) {
        loads_refused++;
        return reply_text(ctx, "ERR %s", why.text);
    }
    return changed ? loaded(ctx, name, f) : RM_ReplyWithSimpleString(ctx, "OK");
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
    const enum standing is = type_of(key, &f);
    if (is == OTHER)
        reply_wrong_type(ctx);
    else if (is == FILTER && f->uncommitted)
        reply_partial(ctx, f);
    else if (is == FILTER)
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
    {"bf.mexists", ask_many, "readonly fast", "read bloom"},
    {"bf.info", info, "readonly fast", "read fast bloom"},
    {"bf.card", card, "readonly fast", "read fast bloom"},
    {"bf.debug", debug, "readonly fast", "read bloom"},
    {"bf.scandump", scan_dump, "readonly fast", "read bloom"},
    {"bf.loadchunk", load_chunk, "write deny-oom", "write bloom"},
    {0},
};

static const struct command *const lists[] = {
    commands, guard_commands, swap_commands, transfer_commands, NULL,
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
