/* CF.INFO, CF.DEBUG: describe a cuckoo filter. */
#include <stdio.h>

#include "command/command.h"
#include "cuckoo/cf.h"
#include "server/steps.h"

/* Buckets of a native filter are lines. It never moves items to make room. */
static struct cuckoo_facts describe_native(const struct filter *f) {
    struct filter_facts facts;
    calyx_info info;
    f->layout->describe(f, &facts);
    calyx_info_of(f->native, &info);
    const uint64_t buckets = info.bits / (8 * LINE_BYTES);
    return (struct cuckoo_facts){
        .size = facts.size,
        .buckets = buckets,
        .parts = facts.parts,
        .items = facts.items,
        .bucket_size = buckets ? facts.capacity / buckets : 0,
        .expansion = facts.expansion,
    };
}

static struct cuckoo_facts describe(struct cf_filter f) {
    return f.native ? describe_native(f.native) : cuckoo_describe(f.cuckoo);
}

static int run_cf_info(RedisModuleCtx *ctx, RedisModuleString **argv,
                       int argc) {
    if (argc != 2) return RM_WrongArity(ctx);
    struct cf_filter f;
    if (!cf_find(ctx, argv[1], MUST_EXIST, &f)) return RM_OK;
    const struct cuckoo_facts facts = describe(f);
    const struct {
        const char *title;
        uint64_t value;
    } fields[] = {
        {"Size", facts.size},
        {"Number of buckets", facts.buckets},
        {"Number of filters", facts.parts},
        {"Number of items inserted", facts.items},
        {"Number of items deleted", facts.deletes},
        {"Bucket size", facts.bucket_size},
        {"Expansion rate", facts.expansion},
        {"Max iterations", facts.iterations},
    };
    enum { FIELDS = sizeof fields / sizeof *fields };
    RM_ReplyWithMap(ctx, FIELDS);
    for (int i = 0; i < FIELDS; i++) {
        RM_ReplyWithSimpleString(ctx, fields[i].title);
        RM_ReplyWithLongLong(ctx, (long long)fields[i].value);
    }
    return RM_OK;
}

static int run_cf_debug(RedisModuleCtx *ctx, RedisModuleString **argv,
                        int argc) {
    if (argc != 2) return RM_WrongArity(ctx);
    struct cf_filter f;
    char text[240];
    if (!cf_find(ctx, argv[1], MUST_EXIST, &f)) return RM_OK;
    const struct cuckoo_facts facts = describe(f);
    const int size = snprintf(
        text, sizeof text,
        "bktsize:%llu buckets:%llu items:%llu deletes:%llu filters:%llu "
        "max_iterations:%llu expansion:%llu",
        (unsigned long long)facts.bucket_size,
        (unsigned long long)facts.buckets, (unsigned long long)facts.items,
        (unsigned long long)facts.deletes, (unsigned long long)facts.parts,
        (unsigned long long)facts.iterations,
        (unsigned long long)facts.expansion);
    return RM_ReplyWithStringBuffer(ctx, text, (size_t)size);
}

const struct command cf_info = {
    .name = "cf.info",
    .run = run_cf_info,
    .flags = "readonly fast",
    .categories = "read fast cuckoo",
    .docs = {.summary = "Describes a cuckoo filter.",
             .complexity = "O(1)",
             .tips = "dont_cache",
             .arity = 2,
             .key_specs = key_read,
             .args = key_args},
};

const struct command cf_debug = {
    .name = "cf.debug",
    .run = run_cf_debug,
    .flags = "readonly fast",
    .categories = "read cuckoo",
    .docs = {.summary = "Describes a cuckoo filter in one line.",
             .complexity = "O(1)",
             .tips = "dont_cache",
             .arity = 2,
             .key_specs = key_read,
             .args = key_args},
};
