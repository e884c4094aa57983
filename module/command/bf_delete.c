/*
 * BF.DEL, BF.MDEL and BF.COUNT: for filters that were made to count, and so can
 * forget. Every addition counts there, also of an item that is there already;
 * it is gone when it was deleted as often as it was added. What certainly is
 * not there is not deleted, which changes nothing and is not replicated.
 */
#include <stdio.h>

#include "command/commands.h"
#include "command/handlers.h"
#include "command/items.h"
#include "layout/window.h"
#include "server/reply.h"
#include "type.h"

static int reply_cannot(RedisModuleCtx *ctx, const struct filter *f) {
    static const char REMEDY[] = "make one with BF.RESERVE … COUNTING";
    if (f->layout == &redisbloom_layout)
        return reply_text(
            ctx,
            "ERR the filter does not count: the redisbloom layout "
            "has no room for counters; %s",
            REMEDY);
    if (is_window(f))
        return RM_ReplyWithError(ctx, "ERR the filter does not count: it is a "
                                      "window, which forgets by itself");
    calyx_room room;
    calyx_info info;
    calyx_outline(native_of(f, &room), &info);
    return reply_text(ctx,
                      "ERR the filter does not count: it is of kind %s; %s",
                      info.kind, REMEDY);
}

/* A filter that counts, or a missing one, for which `*f` is NULL. Else replies
 * and returns false. */
static bool may_delete(RedisModuleCtx *ctx, RedisModuleKey *key,
                       struct filter **f) {
    const enum key_type type = type_of(key, f);
    if (type == KEY_OTHER)
        reply_wrong_type(ctx);
    else if (type == KEY_FILTER && !(*f)->can_remove)
        reply_cannot(ctx, *f);
    else if (type == KEY_FILTER && filter_is_partial(*f))
        reply_partial(ctx, *f);
    else
        return true;
    return false;
}

/* ---- Deleting ------------------------------------------------------------ */

static void delete_items(RedisModuleCtx *ctx, RedisModuleString *name,
                         struct filter *f, struct items *items) {
    const size_t deleted =
        filter_remove(f, items->keys, items->n, items->answers);
    stats.deleted += deleted;
    if (deleted == 0) return;
    if (deleted == items->n)
        RM_ReplicateVerbatim(ctx);
    else
        items_replicate(ctx, "BF.MDEL", name, items, items->answers, items->n);
    note_change(ctx, name, "bloom.del");
}

static int forget(RedisModuleCtx *ctx, RedisModuleString **argv, int n,
                  bool single) {
    struct filter *f = NULL;
    RedisModuleKey *key = RM_OpenKey(ctx, argv[1], RM_READ | RM_WRITE);
    if (may_delete(ctx, key, &f)) {
        struct items items;
        items_open(&items, argv + 2, n);
        for (size_t i = 0; i < items.n; i++) items.answers[i] = false;
        if (f) delete_items(ctx, argv[1], f, &items);
        if (!single) RM_ReplyWithArray(ctx, n);
        reply_bools(ctx, items.answers, items.n);
        items_close(&items);
    }
    RM_CloseKey(key);
    return RM_OK;
}

static int delete_one(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 3) return RM_WrongArity(ctx);
    return forget(ctx, argv, 1, true);
}

static int delete_many(RedisModuleCtx *ctx, RedisModuleString **argv,
                       int argc) {
    if (argc < 3) return RM_WrongArity(ctx);
    return forget(ctx, argv, argc - 2, false);
}

/* ---- Counting ------------------------------------------------------------ */

static int count(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 3) return RM_WrongArity(ctx);
    struct filter *f = NULL;
    RedisModuleKey *key = RM_OpenKey(ctx, argv[1], RM_READ);
    if (may_delete(ctx, key, &f)) {
        size_t size;
        const char *item = RM_StringPtrLen(argv[2], &size);
        RM_ReplyWithLongLong(ctx, f ? calyx_count(f->native, item, size) : 0);
    }
    if (key) RM_CloseKey(key);
    return RM_OK;
}

const struct command counting_commands[] = {
    {"bf.del", delete_one, "write", "write bloom"},
    {"bf.mdel", delete_many, "write", "write bloom"},
    {"bf.count", count, "readonly fast", "read bloom"},
    {0}};
