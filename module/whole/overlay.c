#include "whole/overlay.h"

#include "command/open_key.h"
#include "layout/window.h"
#include "server/reply.h"
#include "server/steps.h"

bool is_mergeable(RedisModuleCtx *ctx, const struct filter *f,
                  const char *which) {
    if (f->layout->is_foreign)
        reply_text(ctx,
                   "ERR the %s is of the %s layout, which counts items as they "
                   "come; only native filters can be laid over each other",
                   which, f->layout->name);
    else if (is_window(f))
        reply_text(ctx,
                   "ERR the %s is a window, which has a filter for each of its "
                   "generations; they cannot be laid over others",
                   which);
    else if (filter_is_partial(f))
        reply_partial(ctx, f);
    else
        return true;
    return false;
}

struct filter *find_mergeable(RedisModuleCtx *ctx, RedisModuleString *name,
                              const char *which) {
    struct filter *f;
    if (!find_filter(ctx, name, 0, &f)) return NULL;
    if (!f) reply_text(ctx, "ERR not found: the %s", which);
    return f && is_mergeable(ctx, f, which) ? f : NULL;
}

void delete_target(RedisModuleCtx *ctx, RedisModuleString *name) {
    RedisModuleKey *key = RM_OpenKey(ctx, name, RM_READ | RM_WRITE);
    RM_UnlinkKey(key);
    RM_CloseKey(key);
    RM_Replicate(ctx, "UNLINK", "s", name);
    RM_SignalModifiedKey(ctx, name);
    RM_NotifyKeyspaceEvent(ctx, RM_NOTIFY_GENERIC, "del", name);
}

void end_step(RedisModuleCtx *ctx, RedisModuleString *name,
              struct filter *target, bool last) {
    if (!last) {
        RM_SignalModifiedKey(ctx, name);
        return;
    }
    target->uncommitted = false;
    filter_compact(target);
    note_change(ctx, name, "bloom.merge");
}

bool grows_in_place(const struct filter *f) {
    struct filter_facts facts;
    f->layout->describe(f, &facts);
    return facts.in_place;
}

uint64_t step_bytes(const struct filter *f) {
    const uint64_t both = (uint64_t)STEP_LINES * LINE_BYTES / 2;
    return f->can_remove ? both / 8 : both;
}

/* A bucket of a table has about 25 items, which are added one by one. So a step
 * of the library takes fewer. */
enum { TABLE_SHORTER = 32 };

uint64_t bytes_at_once(const struct filter *f) {
    return grows_in_place(f) ? step_bytes(f) / TABLE_SHORTER : step_bytes(f);
}

uint64_t row_bytes(const struct filter *f) {
    calyx_room room;
    calyx_info info;
    calyx_info_of(native_of(f, &room), &info);
    return info.row_bytes;
}

void count_step(const struct filter *f, uint64_t bytes) {
    const uint64_t bodies = grows_in_place(f) ? TABLE_SHORTER
                            : f->can_remove   ? 10
                                              : 2;
    steps_count(bodies * bytes / LINE_BYTES);
}
