/* Replies, and the texts of errors, in the words of RedisBloom. */
#ifndef CALYX_MODULE_REPLY_H
#define CALYX_MODULE_REPLY_H

#include <calyx/calyx.h>

#include "server/api.h"

/* All of these return RM_OK, as a command does that has replied. */
int reply_wrong_type(RedisModuleCtx *ctx);
int reply_not_found(RedisModuleCtx *ctx);
int reply_text(RedisModuleCtx *ctx, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Why a filter could not be made, or not be added to. */
int reply_not_made(RedisModuleCtx *ctx, calyx_status status,
                   const calyx_error *why);
int reply_not_added(RedisModuleCtx *ctx, calyx_status status,
                    const calyx_error *why);

/* OK. If touching of pages was `begun` since, then only when that is done: who
 * adds to the filter before would wait for each page, and all clients with him.
 * Until then the server serves the others. */
int reply_ok_when_prefaulted(RedisModuleCtx *ctx, uint64_t begun);

#endif
