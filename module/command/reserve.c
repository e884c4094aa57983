/* BF.RESERVE, CF.RESERVE: make an empty filter. */
#include "command/cf_options.h"
#include "command/command.h"
#include "command/open_key.h"
#include "command/options.h"
#include "command/replicate.h"
#include "server/prefault.h"
#include "server/reply.h"

static int make(RedisModuleCtx *ctx, RedisModuleString *name,
                struct filter_params *params, enum family family) {
    struct filter *f = NULL;
    const uint64_t begun = prefault_last();
    RedisModuleKey *key = RM_OpenKey(ctx, name, RM_READ | RM_WRITE);
    switch (type_for(key, family, &f)) {
        case KEY_OTHER: reply_wrong_type(ctx); break;
        case KEY_FILTER: RM_ReplyWithError(ctx, "ERR item exists"); break;
        case KEY_MISSING:
            f = create_filter(ctx, key, params);
            if (!f) break;
            RM_CloseKey(key); /* a listener of the event may delete it */
            replicate_new(ctx, name, f, params, NULL, 0);
            note_change(ctx, name, words_of[family].reserved);
            return reply_ok_when_prefaulted(ctx, begun);
    }
    RM_CloseKey(key);
    return RM_OK;
}

static int run_reserve(RedisModuleCtx *ctx, RedisModuleString **argv,
                       int argc) {
    struct options options;
    const bool theirs =
        is_replayed(ctx) && redisbloom_parse_reserve(argv, argc, &options);
    const char *wrong = theirs ? NULL : parse_reserve(argv, argc, &options);
    if (wrong)
        return *wrong ? RM_ReplyWithError(ctx, wrong) : RM_WrongArity(ctx);
    return make(ctx, argv[1], &options.params, BLOOM);
}

static int run_cf_reserve(RedisModuleCtx *ctx, RedisModuleString **argv,
                          int argc) {
    struct options options;
    const char *wrong =
        cf_parse_reserve(argv, argc, is_replayed(ctx), &options);
    if (wrong)
        return *wrong ? RM_ReplyWithError(ctx, wrong) : RM_WrongArity(ctx);
    return make(ctx, argv[1], &options.params, CUCKOO);
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
    .summary = "Makes a Bloom filter of a given size and error rate.",
    .complexity = "O(1)",
    .arity = -4,
    .key_specs = key_updated,
    .args = reserve_args,
};

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
    .summary = "Makes a cuckoo filter of a given capacity.",
    .complexity = "O(1)",
    .arity = -3,
    .key_specs = key_updated,
    .args = cf_reserve_args,
};
