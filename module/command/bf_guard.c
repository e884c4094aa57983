/*
 * BF.GUARD: protects a database. One lookup says that an item is certainly
 * absent, returns its value from the cache, or says "maybe: query the
 * database".
 *
 * It fails open. Whenever there is no filter that can be relied on, the answer
 * is "maybe": the key is missing, was evicted, has expired, is partly loaded;
 * or the server is still loading, when items that are in its files may not have
 * come yet. BF.EXISTS has to say 0 for a missing key, as RedisBloom does; a
 * guard that relied on that would hide the whole database the moment a filter
 * is evicted.
 *
 * The filter is looked up first: an item that was deleted from it is absent
 * even if the cache has it.
 */
#include "command/command.h"
#include "command/open_key.h"
#include "server/reply.h"

static const char *const words[] = {"absent", "cached", "maybe"};

static void begin_answer(RedisModuleCtx *ctx, struct filter *f,
                         enum guard_answer answer) {
    stats.guarded[answer]++;
    if (f) extra_for(f)->guarded[answer]++;
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
        RM_ReplyWithError(ctx, "ERR the cache cannot be read: this server "
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

static int run_guard(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 4) return RM_WrongArity(ctx);
    if (RM_GetContextFlags(ctx) & RM_CTX_LOADING) {
        stats.guarded_without_filter++;
        return answer_nothing(ctx, NULL, MAYBE);
    }
    struct filter *f;
    size_t size;
    const char *item = RM_StringPtrLen(argv[2], &size);
    filter_prefetch(item, size);
    if (!find_filter(ctx, argv[1], 0, &f)) return RM_OK;
    const bool usable = f && !filter_is_partial(f);
    if (usable) filter_prefetch_next(f);
    if (usable && !f->layout->has(f, item, size))
        return answer_nothing(ctx, f, ABSENT);
    stats.guarded_without_filter += !usable;
    return answer_from_cache(ctx, f, argv[3]);
}

static RedisModuleCommandArg guard_args[] = {NAMED_KEY("filter", 0), ITEM,
                                             NAMED_KEY("cachekey", 0), END};

/* One range, of every other word: a cluster of Redis 7.0 looks at no more. */
static RedisModuleCommandKeySpec guard_keys[] = {
    KEYS_AT(1, 2, 2, RM_KEY_READ_ONLY | RM_KEY_ACCESS), END};

const struct command bf_guard = {
    .name = "bf.guard",
    .run = run_guard,
    .flags = "readonly fast allow-loading",
    .categories = "read bloom",
    .summary = "Says that an item is certainly absent, returns its cached "
               "value, or says to query the database.",
    .complexity = COST_OF_ITEM,
    .arity = 4,
    .key_specs = guard_keys,
    .args = guard_args,
};
