#include "command/open_key.h"

#include "command/command.h"
#include "layout/window.h"
#include "server/allocator.h"
#include "server/reply.h"

int reply_partial(RedisModuleCtx *ctx, const struct filter *f) {
    return reply_text(ctx,
                      "ERR the filter is still being loaded: %llu of its %llu "
                      "bytes are here; go on with %s, or delete it",
                      (unsigned long long)f->arrived,
                      (unsigned long long)f->bytes,
                      f->uncommitted ? "BF.RESTORE" : "BF.LOADCHUNK");
}

bool find_filter(RedisModuleCtx *ctx, RedisModuleString *name, unsigned flags,
                 struct filter **f) {
    *f = NULL;
    RedisModuleKey *key = RM_OpenKey(
        ctx, name, flags & FOR_WRITING ? RM_READ | RM_WRITE : RM_READ);
    const enum key_type type = type_of(key, f);
    const bool is_partial = *f && filter_is_partial(*f);
    if (key) RM_CloseKey(key);
    if (type == KEY_OTHER)
        reply_wrong_type(ctx);
    else if (type == KEY_MISSING && flags & MUST_EXIST)
        reply_not_found(ctx);
    else if (flags & MUST_BE_COMPLETE && is_partial)
        reply_partial(ctx, *f);
    else
        return true;
    return false;
}

struct filter *find_again(RedisModuleCtx *ctx, RedisModuleString *name,
                          uint64_t life) {
    struct filter *f = NULL;
    RedisModuleKey *key = RM_OpenKey(ctx, name, RM_READ);
    type_of(key, &f);
    if (key) RM_CloseKey(key);
    return f && rare_of(f)->life == life ? f : NULL;
}

void note_change(RedisModuleCtx *ctx, RedisModuleString *name,
                 const char *event) {
    RM_SignalModifiedKey(ctx, name);
    RM_NotifyKeyspaceEvent(ctx, RM_NOTIFY_GENERIC, event, name);
}

/* ---- New filters --------------------------------------------------------- */

struct filter *create_filter(RedisModuleCtx *ctx, RedisModuleKey *key,
                             struct filter_params *params) {
    struct filter *f = NULL;
    calyx_error why = {.text = ""};
    if (params->window &&
        !rotation_may_begin(ctx, params->began,
                            span_of(params->window, params->generations)))
        return NULL;
    struct memory_request request;
    memory_begin(&request, ctx, 0);
    const calyx_status status = filter_new(params, &f, &why);
    memory_end(&why);
    if (status == CALYX_OK) {
        if (is_window(f)) rotation_listen(ctx);
        type_attach(key, f);
        return f;
    }
    stats.refused += status == CALYX_NO_MEMORY;
    reply_not_made(ctx, status, &why);
    return NULL;
}

struct filter *create_from_head(RedisModuleCtx *ctx, RedisModuleKey *key,
                                const char *bytes, size_t size,
                                enum memory_use use) {
    struct filter *f = NULL;
    calyx_error why = {.text = ""};
    struct memory_request request;
    memory_begin(&request, ctx, 0);
    request.use = use;
    const calyx_status status = filter_load_head(bytes, size, &f, &why);
    memory_end(&why);
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
