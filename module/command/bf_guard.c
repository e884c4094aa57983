/*
 * BF.GUARD: what stands before a database. One question tells whether an item
 * is certainly absent, or its value from the cache, or "maybe: ask the
 * database".
 *
 * It fails open. Whenever there is no filter that can be relied on, the answer
 * is "maybe": the key is missing, was evicted, has expired, is partly loaded;
 * or the server is still loading, when items that are in its files may not have
 * come yet. BF.EXISTS has to say 0 for a missing key, as RedisBloom does; a
 * guard that relied on that would hide the whole database the moment a filter
 * is evicted.
 *
 * The filter is asked first: an item that was deleted from it is absent, though
 * the cache may still have it.
 */
#include "command/commands.h"
#include "command/handlers.h"
#include "server/reply.h"
#include "type.h"

static const char *const words[] = {"absent", "cached", "maybe"};

static void begin_answer(RedisModuleCtx *ctx, struct filter *f,
                         enum guard_answer answer) {
    stats.guarded[answer]++;
    if (f) rare_for(f)->guarded[answer]++;
    RM_ReplyWithArray(ctx, 2);
    RM_ReplyWithSimpleString(ctx, words[answer]);
}

static int answer_nothing(RedisModuleCtx *ctx, struct filter *f,
                          enum guard_answer answer) {
    begin_answer(ctx, f, answer);
    return RM_ReplyWithNull(ctx);
}

/* By the server's own GET, which leaves the value as it is encoded; reading it
 * through the module API would encode it anew. */
static int answer_from_cache(RedisModuleCtx *ctx, struct filter *f,
                             RedisModuleString *name) {
    RedisModuleCallReply *value = RM_Call(ctx, "GET", "s", name);
    const int type = value ? RM_CallReplyType(value) : RM_REPLY_NULL;
    if (!value) {
        RM_ReplyWithError(ctx, "ERR the cache cannot be asked: this server "
                               "does not let modules call GET");
    } else if (type == RM_REPLY_NULL) {
        answer_nothing(ctx, f, MAYBE);
    } else {
        if (type != RM_REPLY_ERROR) begin_answer(ctx, f, CACHED);
        RM_ReplyWithCallReply(ctx, value);
    }
    if (value) RM_FreeCallReply(value);
    return RM_OK;
}

static int guard(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 4) return RM_WrongArity(ctx);
    if (RM_GetContextFlags(ctx) & RM_CTX_LOADING) {
        stats.guarded_without_filter++;
        return answer_nothing(ctx, NULL, MAYBE);
    }
    struct filter *f = NULL;
    size_t size;
    const char *item = RM_StringPtrLen(argv[2], &size);
    filter_prefetch(item, size);
    RedisModuleKey *key = RM_OpenKey(ctx, argv[1], RM_READ);
    const enum key_type type = type_of(key, &f);
    const bool usable = type == KEY_FILTER && !filter_is_partial(f);
    if (usable) filter_prefetch_next(f);
    if (type == KEY_OTHER) {
        reply_wrong_type(ctx);
    } else if (usable && !f->layout->has(f, item, size)) {
        answer_nothing(ctx, f, ABSENT);
    } else {
        stats.guarded_without_filter += !usable;
        answer_from_cache(ctx, f, argv[3]);
    }
    if (key) RM_CloseKey(key);
    return RM_OK;
}

const struct command guard_commands[] = {
    {"bf.guard", guard, "readonly fast allow-loading", "read bloom"}, {0}};
