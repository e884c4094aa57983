/* Keys of cuckoo filters: to find the filter or refuse, and to make one. */
#include "command/command.h"
#include "command/replicate.h"
#include "cuckoo/cf.h"
#include "cuckoo/cuckoo_type.h"
#include "server/allocator.h"
#include "server/reply.h"
#include "server/steps.h"

static int reply_loading(RedisModuleCtx *ctx, const struct cuckoo *c) {
    return reply_text(ctx,
                      "ERR the filter is still being loaded: %llu of its %llu "
                      "bytes are here; go on with CF.LOADCHUNK, or delete it",
                      (unsigned long long)c->arrived,
                      (unsigned long long)c->bytes);
}

enum key_type cf_type_of(RedisModuleKey *key, struct cf_filter *f) {
    struct filter *native = NULL;
    *f = (struct cf_filter){NULL, NULL};
    const enum key_type type = cuckoo_type_of(key, &f->cuckoo);
    if (type != KEY_OTHER || type_of(key, &native) != KEY_FILTER ||
        !native->can_remove)
        return type;
    f->native = native;
    return KEY_FILTER;
}

bool cf_accept(RedisModuleCtx *ctx, enum key_type type, unsigned flags,
               struct cf_filter f) {
    struct cuckoo *const c = f.cuckoo;
    if (type == KEY_OTHER) {
        reply_wrong_type(ctx);
        return false;
    }
    if (type == KEY_MISSING && flags & MUST_EXIST) {
        reply_not_found(ctx);
        return false;
    }
    if (f.native && flags & MUST_BE_COMPLETE && filter_is_partial(f.native)) {
        reply_partial(ctx, f.native);
        return false;
    }
    if (!c || !(flags & MUST_BE_COMPLETE) || !cuckoo_is_partial(c)) return true;
    if (flags & FOR_WRITING && is_replayed(ctx)) {
        cuckoo_accept(c);
        cuckoo_note(c);
        return true;
    }
    reply_loading(ctx, c);
    return false;
}

bool cf_find(RedisModuleCtx *ctx, RedisModuleString *name, unsigned flags,
             struct cf_filter *f) {
    RedisModuleKey *key = RM_OpenKey(
        ctx, name, flags & FOR_WRITING ? RM_READ | RM_WRITE : RM_READ);
    const enum key_type type = cf_type_of(key, f);
    if (key) RM_CloseKey(key);
    return cf_accept(ctx, type, flags, *f);
}

struct cuckoo *cf_find_again(RedisModuleCtx *ctx, RedisModuleString *name,
                             uint64_t life) {
    struct cuckoo *c = NULL;
    RedisModuleKey *key = RM_OpenKey(ctx, name, RM_READ);
    cuckoo_type_of(key, &c);
    if (key) RM_CloseKey(key);
    return c && c->life == life ? c : NULL;
}

static struct cuckoo *create_cuckoo(RedisModuleCtx *ctx, RedisModuleKey *key,
                                    const struct cuckoo_params *params) {
    struct cuckoo *c = NULL;
    calyx_error why = {.text = ""};
    struct memory_request request;
    memory_begin(&request, ctx, 0);
    const calyx_status status = cuckoo_new(params, &plain_memory, &c, &why);
    memory_end(&why);
    if (status == CALYX_OK) {
        cuckoo_attach(key, c);
        return c;
    }
    stats.refused += status == CALYX_NO_MEMORY;
    reply_not_made(ctx, status, &why);
    return NULL;
}

bool cf_create(RedisModuleCtx *ctx, RedisModuleKey *key,
               struct cf_params *params, struct cf_filter *f) {
    if (params->is_native)
        f->native = create_filter(ctx, key, &params->native);
    else
        f->cuckoo = create_cuckoo(ctx, key, &params->cuckoo);
    return !cf_is_missing(*f);
}

bool cf_may_change(RedisModuleCtx *ctx, struct cuckoo *c) {
    if (cuckoo_is_compacting(c) && steps_can_wait(ctx)) return false;
    cuckoo_finish_compaction(c);
    cuckoo_trim(c);
    return true;
}

uint64_t cf_step_lines(uint64_t of_one) {
    return STEP_LINES - (of_one < STEP_LINES / 2 ? of_one : STEP_LINES / 2);
}

bool cf_compact_step(struct cuckoo *c) {
    if (cuckoo_is_compacting(c)) {
        const uint64_t most = cf_step_lines(2 * (uint64_t)c->parts + 1);
        steps_count(cuckoo_compact_step(c, most));
        if (cuckoo_is_compacting(c)) return false;
    }
    cuckoo_trim(c); /* also if a save has completed it */
    cuckoo_note(c);
    return true;
}

/* ---- Prefetching --------------------------------------------------------- */

static uint8_t no_slots[1];
static struct cuckoo_hint hint = {no_slots, 0, 0};

static bool last_was_native;

struct cuckoo_hash cf_hash(RedisModuleString *item) {
    size_t size;
    const char *bytes = RM_StringPtrLen(item, &size);
    if (last_was_native) filter_prefetch(bytes, size);
    const struct cuckoo_hash h = cuckoo_hash_of(bytes, size);
    cuckoo_prefetch(&hint, h);
    return h;
}

void cf_prefetch_next(struct cf_filter f) {
    last_was_native = f.native;
    if (f.native)
        filter_prefetch_next(f.native);
    else
        hint = cuckoo_hint_of(f.cuckoo);
}
