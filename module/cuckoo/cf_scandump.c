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

/* The pieces of BF.SCANDUMP. */
static int dump_native(RedisModuleCtx *ctx, const struct filter *f,
                       long long position) {
    const struct piece piece = position == 0
                                   ? f->layout->dump_head(f)
                                   : f->layout->dump_from(f, position);
    reply_chunk(ctx, piece.at, piece.bytes, piece.size);
    RM_Free(piece.owned);
    return RM_OK;
}

static int run_cf_scandump(RedisModuleCtx *ctx, RedisModuleString **argv,
                           int argc) {
    if (argc != 3) return RM_WrongArity(ctx);
    struct cf_filter f;
    long long position;
    if (RM_StringToLongLong(argv[2], &position) != RM_OK || position < 0)
        return RM_ReplyWithError(ctx, "Invalid position");
    if (!cf_find(ctx, argv[1], MUST_EXIST | MUST_BE_COMPLETE, &f)) return RM_OK;
    if (f.native) return dump_native(ctx, f.native, position);
    return is_compacted(ctx, f.cuckoo) ? dump_from(ctx, f.cuckoo, position)
                                       : RM_OK;
}

/* ---- Loading ------------------------------------------------------------- */

static int reply_loaded(RedisModuleCtx *ctx, RedisModuleString *name,
                        struct cf_filter f) {
    const bool complete =
        f.native ? !filter_is_partial(f.native) : !cuckoo_is_partial(f.cuckoo);
    if (f.cuckoo) cuckoo_note(f.cuckoo);
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

static int refuse_header(RedisModuleCtx *ctx, calyx_status status,
                         const calyx_error *why) {
    if (status == CALYX_NO_MEMORY) {
        stats.refused++;
        return reply_not_made(ctx, status, why);
    }
    loads_refused++;
    return reply_text(ctx, "Couldn't create filter! (%s)", why->text);
}

static void load_cuckoo_header(RedisModuleCtx *ctx, RedisModuleKey *key,
                               const char *bytes, size_t size,
                               struct cuckoo **c) {
    calyx_error why = {.text = ""};
    if (size != CUCKOO_HEADER) {
        loads_refused++;
        reply_text(ctx, "Invalid header (it has %llu bytes, not %d)",
                   (unsigned long long)size, CUCKOO_HEADER);
        return;
    }
    const calyx_status status = make_of(ctx, (const uint8_t *)bytes, c, &why);
    if (status == CALYX_OK)
        cuckoo_attach(key, *c);
    else
        refuse_header(ctx, status, &why);
}

/* A filter from which nothing can be deleted is not for CF commands. */
static void load_native_head(RedisModuleCtx *ctx, RedisModuleKey *key,
                             const char *bytes, size_t size,
                             struct filter **f) {
    calyx_error why = {.text = ""};
    struct memory_request request;
    memory_begin(&request, ctx, 0);
    calyx_status status = filter_load_head(bytes, size, f, &why);
    memory_end(&why);
    if (status == CALYX_OK && (*f)->can_remove) {
        type_attach(key, *f);
        return;
    }
    if (status == CALYX_OK) {
        filter_free(*f);
        *f = NULL;
        status = cuckoo_fail(&why, CALYX_DAMAGED,
                             "it is the head of a filter from which items "
                             "cannot be deleted: load it by BF.LOADCHUNK");
    }
    refuse_header(ctx, status, &why);
}

static void load_header(RedisModuleCtx *ctx, RedisModuleKey *key,
                        const char *bytes, size_t size, struct cf_filter *f) {
    if (native_layout.is_head(bytes, size))
        load_native_head(ctx, key, bytes, size, &f->native);
    else
        load_cuckoo_header(ctx, key, bytes, size, &f->cuckoo);
}

/* Chunks of a replayed stream may come in any order. */
static calyx_status load_cuckoo_chunk(RedisModuleCtx *ctx, struct cuckoo *c,
                                      long long at, const char *bytes,
                                      size_t size, bool *changed,
                                      calyx_error *why) {
    calyx_status status = cuckoo_load_chunk(c, at, bytes, size, changed, why);
    if (status == CALYX_OK || !is_replayed(ctx) || !cuckoo_is_partial(c))
        return status;
    cuckoo_accept(c);
    return cuckoo_load_chunk(c, at, bytes, size, changed, why);
}

static int load_chunk(RedisModuleCtx *ctx, RedisModuleString *name,
                      struct cf_filter f, long long at, const char *bytes,
                      size_t size) {
    calyx_error why = {.text = ""};
    bool changed = false;
    if (f.native && f.native->uncommitted) return reply_partial(ctx, f.native);
    if (f.native && !filter_is_partial(f.native))
        steps_note_change(rare_of(f.native)->life);
    if (f.cuckoo && !is_compacted(ctx, f.cuckoo)) return RM_OK;
    const calyx_status status =
        f.native
            ? filter_load_piece(f.native, at, bytes, size, &changed, &why)
            : load_cuckoo_chunk(ctx, f.cuckoo, at, bytes, size, &changed, &why);
    if (status != CALYX_OK) {
        loads_refused++;
        return reply_text(ctx, "Couldn't load chunk! (%s)", why.text);
    }
    return changed ? reply_loaded(ctx, name, f)
                   : RM_ReplyWithSimpleString(ctx, "OK");
}

static int run_cf_loadchunk(RedisModuleCtx *ctx, RedisModuleString **argv,
                            int argc) {
    if (argc != 4) return RM_WrongArity(ctx);
    struct cf_filter f;
    long long at;
    size_t size;
    const char *bytes = RM_StringPtrLen(argv[3], &size);
    if (RM_StringToLongLong(argv[2], &at) != RM_OK || at == 0)
        return RM_ReplyWithError(ctx, "Invalid position");
    RedisModuleKey *key = RM_OpenKey(ctx, argv[1], RM_READ | RM_WRITE);
    const enum key_type type = cf_type_of(key, &f);
    if (type == KEY_OTHER)
        reply_wrong_type(ctx);
    else if (type == KEY_FILTER && at == 1)
        RM_ReplyWithError(ctx, "ERR item exists");
    else if (type == KEY_MISSING && at == 1)
        load_header(ctx, key, bytes, size, &f);
    else if (type == KEY_MISSING)
        reply_not_found(ctx);
    RM_CloseKey(key); /* a listener of the event may delete it */
    if (type == KEY_MISSING && !cf_is_missing(f)) reply_loaded(ctx, argv[1], f);
    if (type == KEY_FILTER && at != 1)
        load_chunk(ctx, argv[1], f, at, bytes, size);
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
