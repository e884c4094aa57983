#include "command/open_key.h"

#include "command/command.h"
#include "layout/window.h"
#include "server/allocator.h"
#include "server/reply.h"
#include "server/steps.h"

int reply_partial(RedisModuleCtx *ctx, const struct filter *f) {
    return reply_text(ctx,
                      "ERR the filter is still being loaded: %llu of its %llu "
                      "bytes are here; go on with %s, or delete it",
                      (unsigned long long)f->arrived,
                      (unsigned long long)f->bytes,
                      f->uncommitted ? "BF.RESTORE" : load_command(f));
}

static bool accept(RedisModuleCtx *ctx, RedisModuleKey *key, unsigned flags,
                   struct filter **found) {
    *found = NULL;
    const enum key_type type =
        type_for(key, flags & FOR_CF_COMMAND ? CUCKOO : BLOOM, found);
    struct filter *const f = *found;
    if (type == KEY_OTHER)
        reply_wrong_type(ctx);
    else if (f && flags & MUST_BE_FREE)
        RM_ReplyWithError(ctx, "ERR item exists");
    else if (type == KEY_MISSING && flags & MUST_EXIST)
        reply_not_found(ctx);
    else if (flags & MUST_BE_COMPLETE && f && filter_is_partial(f) &&
             !(flags & FOR_WRITING && is_replayed(ctx) &&
               filter_accept_partial(f)))
        reply_partial(ctx, f);
    else
        return true;
    return false;
}

RedisModuleKey *open_filter(RedisModuleCtx *ctx, RedisModuleString *name,
                            unsigned flags, struct filter **f) {
    RedisModuleKey *key = RM_OpenKey(ctx, name, RM_READ | RM_WRITE);
    if (accept(ctx, key, flags | FOR_WRITING, f)) return key;
    RM_CloseKey(key);
    return NULL;
}

bool find_filter(RedisModuleCtx *ctx, RedisModuleString *name, unsigned flags,
                 struct filter **f) {
    RedisModuleKey *key = RM_OpenKey(
        ctx, name, flags & FOR_WRITING ? RM_READ | RM_WRITE : RM_READ);
    const bool found = accept(ctx, key, flags, f);
    if (key) RM_CloseKey(key);
    return found;
}

struct filter *find_again(RedisModuleCtx *ctx, RedisModuleString *name,
                          uint64_t identity) {
    struct filter *f = NULL;
    RedisModuleKey *key = RM_OpenKey(ctx, name, RM_READ);
    if (type_of(key, &f) == KEY_OTHER) type_for(key, CUCKOO, &f);
    if (key) RM_CloseKey(key);
    return f && extra_of(f)->identity == identity ? f : NULL;
}

bool may_change(RedisModuleCtx *ctx, struct filter *f) {
    if (filter_is_compacting(f) && steps_can_wait(ctx)) return false;
    filter_end_compaction(f);
    return true;
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

/* CF commands refuse a filter from which nothing can be deleted. */
static calyx_status load_cuckoo_head(const char *bytes, size_t size,
                                     struct filter **f, calyx_error *why) {
    const bool native = native_layout.is_head(bytes, size);
    const calyx_status status = filter_load_head(
        native ? &native_layout : &cuckoo_layout, bytes, size, f, why);
    if (status != CALYX_OK || (*f)->can_remove) return status;
    filter_free(*f);
    *f = NULL;
    return cuckoo_fail(why, CALYX_DAMAGED,
                       "it is the head of a filter from which items cannot be "
                       "deleted: load it by BF.LOADCHUNK");
}

struct filter *create_from_head(RedisModuleCtx *ctx, RedisModuleKey *key,
                                enum family family, const char *bytes,
                                size_t size, enum memory_use use) {
    struct filter *f = NULL;
    calyx_error why = {.text = ""};
    struct memory_request request;
    memory_begin(&request, ctx, 0);
    request.use = use;
    const calyx_status status =
        family == CUCKOO ? load_cuckoo_head(bytes, size, &f, &why)
                         : filter_load_head(layout_of_head(bytes, size), bytes,
                                            size, &f, &why);
    memory_end(&why);
    if (status == CALYX_OK) {
        type_attach(key, f);
    } else if (status == CALYX_NO_MEMORY) {
        stats.refused++;
        reply_not_made(ctx, status, &why);
    } else {
        loads_refused++;
        reply_text(ctx,
                   family == CUCKOO ? "Couldn't create filter! (%s)"
                                    : "ERR received bad data: %s",
                   why.text);
    }
    return f;
}
