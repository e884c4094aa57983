/* CF.SCANDUMP, CF.LOADCHUNK: dump and load a cuckoo filter, as RedisBloom does.
 */
#include "command/command.h"
#include "command/replicate.h"
#include "cuckoo/cf.h"
#include "cuckoo/cuckoo_type.h"
#include "server/allocator.h"
#include "server/reply.h"
#include "server/steps.h"

/* A dump must not see half of a compaction. */
static bool is_compacted(RedisModuleCtx *ctx, struct cuckoo *c) {
    if (cf_may_change(ctx, c)) return true;
    RM_ReplyWithError(ctx, "ERR the filter is being compacted; try again when "
                           "that is done");
    return false;
}

/* ---- Dumping ------------------------------------------------------------- */

static int reply_chunk(RedisModuleCtx *ctx, long long at, const void *bytes,
                       size_t size) {
    RM_ReplyWithArray(ctx, 2);
    RM_ReplyWithLongLong(ctx, at);
    return bytes ? RM_ReplyWithStringBuffer(ctx, bytes, size)
                 : RM_ReplyWithNull(ctx);
}

/* RedisBloom has no dump of a filter without items. */
static int dump_from(RedisModuleCtx *ctx, const struct cuckoo *c,
                     long long position) {
    uint8_t header[CUCKOO_HEADER];
    int64_t at = position;
    size_t size;
    if (c->items == 0) return reply_chunk(ctx, 0, NULL, 0);
    if (position == 0) {
        cuckoo_dump_header(c, header);
        return reply_chunk(ctx, 1, header, sizeof header);
    }
    const void *bytes = cuckoo_dump_chunk(c, &at, &size);
    return reply_chunk(ctx, at, bytes, size);
}

static int run_cf_scandump(RedisModuleCtx *ctx, RedisModuleString **argv,
                           int argc) {
    if (argc != 3) return RM_WrongArity(ctx);
    struct cuckoo *c;
    long long position;
    if (RM_StringToLongLong(argv[2], &position) != RM_OK || position < 0)
        return RM_ReplyWithError(ctx, "Invalid position");
    if (!cf_find(ctx, argv[1], MUST_EXIST | MUST_BE_COMPLETE, &c) ||
        !is_compacted(ctx, c))
        return RM_OK;
    return dump_from(ctx, c, position);
}

/* ---- Loading ------------------------------------------------------------- */

static int reply_loaded(RedisModuleCtx *ctx, RedisModuleString *name,
                        struct cuckoo *c) {
    const bool complete = !cuckoo_is_partial(c);
    cuckoo_note(c);
    RM_ReplicateVerbatim(ctx);
    RM_SignalModifiedKey(ctx, name);
    if (complete)
        RM_NotifyKeyspaceEvent(ctx, RM_NOTIFY_GENERIC, "cuckoo.load", name);
    return RM_ReplyWithSimpleString(ctx, "OK");
}

static calyx_status make_of(RedisModuleCtx *ctx, const uint8_t *header,
                            struct cuckoo **c, calyx_error *why) {
    const struct cuckoo_claim is = cuckoo_read_header(header);
    struct memory_request request;
    uint64_t bytes;
    calyx_status status = cuckoo_check(&is, &bytes, why);
    if (status != CALYX_OK) return status;
    memory_begin(&request, ctx, 0);
    request.use = MEMORY_IN_STEPS;
    status = memory_fits(bytes) ? cuckoo_load_header(&is, &plain_memory, c, why)
                                : CALYX_NO_MEMORY;
    memory_end(why);
    return status;
}

static void load_header(RedisModuleCtx *ctx, RedisModuleKey *key,
                        const char *bytes, size_t size, struct cuckoo **c) {
    calyx_error why = {.text = ""};
    if (size != CUCKOO_HEADER) {
        loads_refused++;
        reply_text(ctx, "Invalid header (it has %llu bytes, not %d)",
                   (unsigned long long)size, CUCKOO_HEADER);
        return;
    }
    const calyx_status status = make_of(ctx, (const uint8_t *)bytes, c, &why);
    if (status == CALYX_OK) {
        cuckoo_attach(key, *c);
    } else if (status == CALYX_NO_MEMORY) {
        stats.refused++;
        reply_not_made(ctx, status, &why);
    } else {
        loads_refused++;
        reply_text(ctx, "Couldn't create filter! (%s)", why.text);
    }
}

/* Chunks of a replayed stream may come in any order. */
static int load_chunk(RedisModuleCtx *ctx, RedisModuleString *name,
                      struct cuckoo *c, long long at, const char *bytes,
                      size_t size) {
    calyx_error why = {.text = ""};
    bool changed;
    if (!is_compacted(ctx, c)) return RM_OK;
    calyx_status status = cuckoo_load_chunk(c, at, bytes, size, &changed, &why);
    if (status != CALYX_OK && is_replayed(ctx) && cuckoo_is_partial(c)) {
        cuckoo_accept(c);
        status = cuckoo_load_chunk(c, at, bytes, size, &changed, &why);
    }
    if (status != CALYX_OK) {
        loads_refused++;
        return reply_text(ctx, "Couldn't load chunk! (%s)", why.text);
    }
    return changed ? reply_loaded(ctx, name, c)
                   : RM_ReplyWithSimpleString(ctx, "OK");
}

static int run_cf_loadchunk(RedisModuleCtx *ctx, RedisModuleString **argv,
                            int argc) {
    if (argc != 4) return RM_WrongArity(ctx);
    struct cuckoo *c = NULL;
    long long at;
    size_t size;
    const char *bytes = RM_StringPtrLen(argv[3], &size);
    if (RM_StringToLongLong(argv[2], &at) != RM_OK || at == 0)
        return RM_ReplyWithError(ctx, "Invalid position");
    RedisModuleKey *key = RM_OpenKey(ctx, argv[1], RM_READ | RM_WRITE);
    const enum key_type type = cuckoo_type_of(key, &c);
    if (type == KEY_OTHER)
        reply_wrong_type(ctx);
    else if (type == KEY_FILTER && at == 1)
        RM_ReplyWithError(ctx, "ERR item exists");
    else if (type == KEY_MISSING && at == 1)
        load_header(ctx, key, bytes, size, &c);
    else if (type == KEY_MISSING)
        reply_not_found(ctx);
    RM_CloseKey(key); /* a listener of the event may delete it */
    if (type == KEY_MISSING && c) reply_loaded(ctx, argv[1], c);
    if (type == KEY_FILTER && at != 1)
        load_chunk(ctx, argv[1], c, at, bytes, size);
    return RM_OK;
}

static RedisModuleCommandArg cf_dump_args[] = {KEY, VALUE(INTEGER, "position"),
                                               END};

static RedisModuleCommandArg cf_load_args[] = {KEY, VALUE(INTEGER, "position"),
                                               VALUE(STRING, "data"), END};

const struct command cf_scandump = {
    .name = "cf.scandump",
    .run = run_cf_scandump,
    .flags = "readonly fast",
    .categories = "read cuckoo",
    .docs = {.summary =
                 "Returns the next chunk of a cuckoo filter, to be saved.",
             .complexity = "O(n), with n the size of the chunk",
             .tips = "dont_cache",
             .arity = 3,
             .key_specs = key_read,
             .args = cf_dump_args},
};

const struct command cf_loadchunk = {
    .name = "cf.loadchunk",
    .run = run_cf_loadchunk,
    .flags = "write deny-oom",
    .categories = "write cuckoo",
    .docs = {.summary = "Loads a chunk of a cuckoo filter that was dumped.",
             .complexity = "O(n), with n the size of the chunk",
             .arity = 4,
             .key_specs = key_updated,
             .args = cf_load_args},
};
