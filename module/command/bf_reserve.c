/* BF.RESERVE: make an empty filter. */
#include "command/command.h"
#include "command/open_key.h"
#include "command/options.h"
#include "command/replicate.h"
#include "server/prefault.h"
#include "server/reply.h"

static int run_reserve(RedisModuleCtx *ctx, RedisModuleString **argv,
                       int argc) {
    struct options options;
    const bool theirs =
        is_replayed(ctx) && redisbloom_parse_reserve(argv, argc, &options);
    const char *wrong = theirs ? NULL : parse_reserve(argv, argc, &options);
    if (wrong)
        return *wrong ? RM_ReplyWithError(ctx, wrong) : RM_WrongArity(ctx);

    struct filter *f = NULL;
    const uint64_t begun = prefault_last();
    RedisModuleKey *key = RM_OpenKey(ctx, argv[1], RM_READ | RM_WRITE);
    switch (type_of(key, &f)) {
        case KEY_OTHER: reply_wrong_type(ctx); break;
        case KEY_FILTER: RM_ReplyWithError(ctx, "ERR item exists"); break;
        case KEY_MISSING:
            f = create_filter(ctx, key, &options.params);
            if (!f) break;
            RM_CloseKey(key); /* a listener of the event may delete it */
            replicate_new(ctx, argv[1], f, &options.params, NULL, 0);
            note_change(ctx, argv[1], "bloom.reserve");
            return reply_ok_when_prefaulted(ctx, begun);
    }
    RM_CloseKey(key);
    return RM_OK;
}

static RedisModuleCommandArg reserve_args[] = {
    KEY,
    VALUE(DOUBLE, "error_rate"),
    VALUE(INTEGER, "capacity"),
    OPTION(INTEGER, "EXPANSION", "expansion"),
    OPTION(PURE_TOKEN, "NONSCALING", "nonscaling"),
    CALYX_OPTIONS,
    END};

const struct command bf_reserve = {
    .name = "bf.reserve",
    .run = run_reserve,
    .flags = "write deny-oom",
    .categories = "write fast bloom",
    .docs = {.summary = "Makes a Bloom filter of a given size and error rate.",
             .complexity = "O(1)",
             .arity = -4,
             .key_specs = key_updated,
             .args = reserve_args},
};
