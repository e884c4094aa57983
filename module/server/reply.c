/* Replies. Where RESP3 has maps and booleans, the server makes arrays and
 * integers of them for clients that speak RESP2. */
#include "server/reply.h"

#include <stdarg.h>
#include <stdio.h>

#include "server/allocator.h"
#include "server/prefault.h"

/* ---- Errors -------------------------------------------------------------- */

int reply_wrong_type(RedisModuleCtx *ctx) {
    return RM_ReplyWithError(
        ctx,
        "WRONGTYPE Operation against a key holding the wrong kind of value");
}

int reply_not_found(RedisModuleCtx *ctx) {
    return RM_ReplyWithError(ctx, "ERR not found");
}

int reply_text(RedisModuleCtx *ctx, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return RM_ReplyWithError(ctx, text);
}

int reply_not_made(RedisModuleCtx *ctx, calyx_status status,
                   const calyx_error *why) {
    if (status == CALYX_NO_MEMORY)
        return reply_text(ctx, "ERR Insufficient memory to create filter: %s",
                          why->text);
    return reply_text(ctx, "ERR could not create filter: %s", why->text);
}

int reply_not_added(RedisModuleCtx *ctx, calyx_status status,
                    const calyx_error *why) {
    if (status == CALYX_FULL)
        return RM_ReplyWithError(ctx, "ERR non scaling filter is full");
    return reply_text(ctx, "ERR problem inserting into filter: %s", why->text);
}

/* ---- Answers ------------------------------------------------------------- */

static int reply_ok(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    (void)argv, (void)argc;
    return RM_ReplyWithSimpleString(ctx, "OK");
}

static void unblock(void *client) {
    RM_UnblockClient(client, NULL);
}

/* Without a time limit of the server's: one that ends while the client is being
 * unblocked would cost it the reply. */
int reply_ok_when_prefaulted(RedisModuleCtx *ctx, uint64_t begun) {
    if (prefault_last() == begun || is_replayed(ctx) ||
        RM_GetContextFlags(ctx) & RM_CTX_DENY_BLOCKING)
        return reply_ok(ctx, NULL, 0);
    RedisModuleBlockedClient *client =
        RM_BlockClient(ctx, reply_ok, NULL, NULL, 0);
    if (!prefault_notify(begun, unblock, client)) unblock(client);
    return RM_OK;
}
