/* BF.LOAD: a filter as valkey-bloom writes it into its AOF, in one payload. */
#include "command/command.h"
#include "command/open_key.h"
#include "server/allocator.h"
#include "server/reply.h"

static int reply_not_loaded(RedisModuleCtx *ctx, calyx_status status,
                            const calyx_error *why) {
    stats.refused += status == CALYX_NO_MEMORY;
    loads_refused += status != CALYX_NO_MEMORY;
    if (status == CALYX_NO_MEMORY) return reply_not_made(ctx, status, why);
    if (status == CALYX_TOO_NEW)
        return RM_ReplyWithError(
            ctx, "ERR bloom object decoding failed. Unsupported version");
    return reply_text(ctx, "ERR bloom object decoding failed: %s", why->text);
}

static int load(RedisModuleCtx *ctx, RedisModuleString **argv,
                RedisModuleKey *key) {
    struct filter *f = NULL;
    calyx_error why = {.text = ""};
    size_t size;
    const char *const payload = RM_StringPtrLen(argv[2], &size);
    switch (type_of(key, &f)) {
        case KEY_OTHER: return reply_wrong_type(ctx);
        case KEY_FILTER:
            return RM_ReplyWithError(ctx,
                                     "BUSYKEY Target key name already exists.");
        case KEY_MISSING: break;
    }
    struct memory_request request;
    memory_begin(&request, ctx, 0);
    const calyx_status status = filter_load_payload(payload, size, &f, &why);
    memory_end(&why);
    if (status != CALYX_OK) return reply_not_loaded(ctx, status, &why);
    type_attach(key, f);
    RM_ReplicateVerbatim(ctx);
    note_change(ctx, argv[1], "bloom.load");
    return RM_ReplyWithSimpleString(ctx, "OK");
}

static int run_load(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 3) return RM_WrongArity(ctx);
    RedisModuleKey *key = RM_OpenKey(ctx, argv[1], RM_READ | RM_WRITE);
    load(ctx, argv, key);
    RM_CloseKey(key);
    return RM_OK;
}

static RedisModuleCommandArg load_args[] = {KEY, VALUE(STRING, "payload"), END};

const struct command bf_load = {
    .name = "bf.load",
    .run = run_load,
    .flags = "write deny-oom",
    .categories = "write bloom",
    .docs = {.summary = "Loads a filter of valkey-bloom from its payload.",
             .complexity = "O(m), with m the bytes of the payload",
             .arity = 3,
             .key_specs = key_updated,
             .args = load_args},
};
