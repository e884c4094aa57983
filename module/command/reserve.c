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
    struct filter *f;
    const uint64_t begun = prefault_last();
    RedisModuleKey *key =
        open_filter(ctx, name, MUST_BE_FREE | words_of[family].flags, &f);
    if (!key) return RM_OK;
    f = create_filter(ctx, key, params);
    RM_CloseKey(key); /* a listener of the event may delete it */
    if (!f) return RM_OK;
    replicate_new(ctx, name, f, params, NULL, 0);
    note_change(ctx, name, words_of[family].reserved);
    return reply_ok_when_prefaulted(ctx, begun);
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
