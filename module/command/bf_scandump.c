/* BF.SCANDUMP, BF.LOADCHUNK: dump and load any filter, as RedisBloom does. */
#include "command/command.h"
#include "command/open_key.h"
#include "command/replicate.h"
#include "server/reply.h"
#include "server/steps.h"

static int reply_piece(RedisModuleCtx *ctx, const struct piece *piece) {
    RM_ReplyWithArray(ctx, 2);
    RM_ReplyWithLongLong(ctx, piece->at);
    return RM_ReplyWithStringBuffer(ctx, piece->bytes ? piece->bytes : "",
                                    piece->size);
}

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

static int run_scandump(RedisModuleCtx *ctx, RedisModuleString **argv,
                        int argc) {
    if (argc != 3) return RM_WrongArity(ctx);
    struct filter *f;
    if (find_filter(ctx, argv[1], MUST_EXIST, &f)) dump_step(ctx, f, argv[2]);
    return RM_OK;
}

static int loaded(RedisModuleCtx *ctx, RedisModuleString *name,
                  const struct filter *f) {
    RM_SignalModifiedKey(ctx, name);
    if (!filter_is_partial(f))
        RM_NotifyKeyspaceEvent(ctx, RM_NOTIFY_GENERIC, "bloom.load", name);
    return RM_ReplyWithSimpleString(ctx, "OK");
}

static void load_head(RedisModuleCtx *ctx, RedisModuleString *name,
                      RedisModuleKey *key, const char *bytes, size_t size) {
    const struct filter *f =
        create_from_head(ctx, key, bytes, size, MEMORY_NEW);
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
    if (!filter_is_partial(f)) steps_note_change(rare_of(f)->life);
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

static int run_loadchunk(RedisModuleCtx *ctx, RedisModuleString **argv,
                         int argc) {
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

static RedisModuleCommandArg dump_args[] = {KEY, VALUE(INTEGER, "iterator"),
                                            END};

static RedisModuleCommandArg load_args[] = {KEY, VALUE(INTEGER, "iterator"),
                                            VALUE(STRING, "data"), END};

const struct command bf_scandump = {
    .name = "bf.scandump",
    .run = run_scandump,
    .flags = "readonly fast",
    .categories = "read bloom",
    .docs = {.summary =
                 "Returns the next piece of a Bloom filter, to be saved.",
             .complexity = "O(n), with n the size of the piece",
             .tips = "dont_cache",
             .arity = 3,
             .key_specs = key_read,
             .args = dump_args},
};

const struct command bf_loadchunk = {
    .name = "bf.loadchunk",
    .run = run_loadchunk,
    .flags = "write deny-oom",
    .categories = "write bloom",
    .docs = {.summary = "Loads a piece of a Bloom filter that was dumped.",
             .complexity = "O(n), with n the size of the piece",
             .arity = 4,
             .key_specs = key_updated,
             .args = load_args},
};
