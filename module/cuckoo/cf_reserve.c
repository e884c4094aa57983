/* CF.RESERVE: make an empty cuckoo filter. */
#include "command/command.h"
#include "command/replicate.h"
#include "cuckoo/cf.h"
#include "server/prefault.h"
#include "server/reply.h"

static int run_cf_reserve(RedisModuleCtx *ctx, RedisModuleString **argv,
                          int argc) {
    struct cf_options options;
    const char *wrong =
        cf_parse_reserve(argv, argc, is_replayed(ctx), &options);
    if (wrong)
        return *wrong ? RM_ReplyWithError(ctx, wrong) : RM_WrongArity(ctx);

    struct cf_filter f;
    const uint64_t begun = prefault_last();
    RedisModuleKey *key = RM_OpenKey(ctx, argv[1], RM_READ | RM_WRITE);
    const enum key_type type = cf_type_of(key, &f);
    if (type == KEY_OTHER)
        reply_wrong_type(ctx);
    else if (type == KEY_FILTER)
        RM_ReplyWithError(ctx, "ERR item exists");
    else
        cf_create(ctx, key, &options.params, &f);
    RM_CloseKey(key); /* a listener of the event may delete it */
    if (type != KEY_MISSING || cf_is_missing(f)) return RM_OK;
    cf_replicate_new(ctx, argv[1], f, &options.params);
    note_change(ctx, argv[1], "cuckoo.reserve");
    return reply_ok_when_prefaulted(ctx, begun);
}

static RedisModuleCommandArg cf_reserve_args[] = {
    KEY,
    VALUE(INTEGER, "capacity"),
    OPTION(INTEGER, "BUCKETSIZE", "bucketsize"),
    OPTION(INTEGER, "MAXITERATIONS", "maxiterations"),
    OPTION(INTEGER, "EXPANSION", "expansion"),
    CF_OPTIONS,
    END};

const struct command cf_reserve = {
    .name = "cf.reserve",
    .run = run_cf_reserve,
    .flags = "write deny-oom",
    .categories = "write fast cuckoo",
    .docs = {.summary = "Makes a cuckoo filter of a given capacity.",
             .complexity = "O(1)",
             .arity = -3,
             .key_specs = key_updated,
             .args = cf_reserve_args},
};
