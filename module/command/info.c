/* BF.INFO, BF.CARD, BF.DEBUG, CF.INFO, CF.DEBUG: describe a filter. */
#include <stdio.h>

#include "command/command.h"
#include "command/open_key.h"
#include "command/options.h"
#include "layout/rebuild.h"
#include "layout/window.h"
#include "server/reply.h"
#include "settings.h"

/* ---- As RedisBloom has it ------------------------------------------------ */

enum { FIELDS = 5 };

static const struct {
    const char *word, *title;
} fields[FIELDS] = {
    {"CAPACITY", "Capacity"},         {"SIZE", "Size"},
    {"FILTERS", "Number of filters"}, {"ITEMS", "Number of items inserted"},
    {"EXPANSION", "Expansion rate"},
};

static void reply_value(RedisModuleCtx *ctx, const struct filter_facts *facts,
                        int field) {
    const uint64_t values[FIELDS] = {facts->capacity, facts->size, facts->parts,
                                     facts->items, facts->expansion};
    if (field == FIELDS - 1 && facts->expansion == 0)
        RM_ReplyWithNull(ctx);
    else
        RM_ReplyWithLongLong(ctx, (long long)values[field]);
}

static int reply_facts(RedisModuleCtx *ctx, const struct filter *f) {
    struct filter_facts facts;
    f->layout->describe(f, &facts);
    RM_ReplyWithMap(ctx, FIELDS);
    for (int i = 0; i < FIELDS; i++) {
        RM_ReplyWithSimpleString(ctx, fields[i].title);
        reply_value(ctx, &facts, i);
    }
    return RM_OK;
}

/* A map of one in RESP3; else only the value. */
static void begin_field(RedisModuleCtx *ctx, const char *title) {
    if (RM_GetContextFlags(ctx) & RM_CTX_RESP3) {
        RM_ReplyWithMap(ctx, 1);
        RM_ReplyWithSimpleString(ctx, title);
    } else {
        RM_ReplyWithArray(ctx, 1);
    }
}

/* Fields that RedisBloom does not have are only replied by name. */
static int reply_our_fact(RedisModuleCtx *ctx, const struct filter *f,
                          RedisModuleString *field) {
    const struct time_window *w = is_window(f) ? f->window : NULL;
    const struct rebuild *r = rebuild_of(f);
    calyx_info info = {0};
    calyx_room room;
    if (f->layout->with_list)
        calyx_info_of(f->layout->with_list(f, &room), &info);
    const struct {
        const char *word, *title;
        uint64_t value;
    } ours[] = {
        {"WINDOW", "Window in milliseconds", w ? w->milliseconds : 0},
        {"GENERATIONS", "Generations", w ? w->panes - 1 : 0},
        {"GENERATION", "Generation", extra_of(f)->generation},
        {"ALLOWED", "Allowed items", info.allowed},
        {"REBUILD", "Rebuild", r ? r->terms.token : 0},
        {"RECORDED", "Recorded for the rebuild", r ? rebuild_items(r) : 0},
        {"ABSENT", "Guarded: absent", extra_of(f)->guarded[ABSENT]},
        {"CACHED", "Guarded: cached", extra_of(f)->guarded[CACHED]},
        {"MAYBE", "Guarded: maybe", extra_of(f)->guarded[MAYBE]},
    };
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (is_word(field, ours[i].word)) {
            begin_field(ctx, ours[i].title);
            return RM_ReplyWithLongLong(ctx, (long long)ours[i].value);
        }
    return RM_ReplyWithError(ctx, f->layout == &valkey_layout
                                      ? "ERR invalid information value"
                                      : "Invalid information value");
}

static int reply_fact(RedisModuleCtx *ctx, const struct filter *f,
                      RedisModuleString *field) {
    struct filter_facts facts;
    int i = 0;
    while (i < FIELDS && !is_word(field, fields[i].word)) i++;
    if (i == FIELDS) return reply_our_fact(ctx, f, field);
    f->layout->describe(f, &facts);
    begin_field(ctx, fields[i].title);
    reply_value(ctx, &facts, i);
    return RM_OK;
}

/* ---- As valkey-bloom has it, for filters of its layout ------------------- */

enum { THEIR_RATE = FIELDS, THEIR_TIGHTENING, THEIR_MOST, THEIR_FIELDS };

static const struct {
    const char *word, *title;
    int field;
} their_fields[THEIR_FIELDS] = {
    {"CAPACITY", "Capacity", 0},
    {"SIZE", "Size", 1},
    {"FILTERS", "Number of filters", 2},
    {"ITEMS", "Number of items inserted", 3},
    {"ERROR", "Error rate", THEIR_RATE},
    {"EXPANSION", "Expansion rate", 4},
    {"TIGHTENING", "Tightening ratio", THEIR_TIGHTENING},
    {"MAXSCALEDCAPACITY", "Max scaled capacity", THEIR_MOST},
};

/* The last two are only of filters that grow. */
static int their_number(const struct valkey_bloom *v) {
    return v->params.expansion ? THEIR_FIELDS : THEIR_FIELDS - 2;
}

static int reply_their_value(RedisModuleCtx *ctx, const struct filter *f,
                             int field) {
    const struct valkey_bloom *const v = f->valkey;
    struct filter_facts facts;
    enum valkey_limit limit;
    f->layout->describe(f, &facts);
    if (field == THEIR_RATE) return RM_ReplyWithDouble(ctx, v->params.rate);
    if (field == THEIR_TIGHTENING)
        return RM_ReplyWithDouble(ctx, v->params.tightening);
    if (field == THEIR_MOST)
        return RM_ReplyWithLongLong(
            ctx, (long long)valkey_scaled_capacity(
                     v->part[0].capacity, &v->params,
                     (uint64_t)settings.max_filter_bytes, 0, &limit));
    reply_value(ctx, &facts, field);
    return RM_OK;
}

static int reply_their_facts(RedisModuleCtx *ctx, const struct filter *f) {
    const int n = their_number(f->valkey);
    RM_ReplyWithArray(ctx, 2 * n);
    for (int i = 0; i < n; i++) {
        RM_ReplyWithSimpleString(ctx, their_fields[i].title);
        reply_their_value(ctx, f, their_fields[i].field);
    }
    return RM_OK;
}

/* The value alone, where RedisBloom has an array of one. Our own fields are
 * there as for any filter. */
static int reply_their_fact(RedisModuleCtx *ctx, const struct filter *f,
                            RedisModuleString *field) {
    const int n = their_number(f->valkey);
    for (int i = 0; i < n; i++)
        if (is_word(field, their_fields[i].word))
            return reply_their_value(ctx, f, their_fields[i].field);
    return reply_our_fact(ctx, f, field);
}

/* ---- The handlers -------------------------------------------------------- */

static int reply_parts(RedisModuleCtx *ctx, const struct filter *f) {
    struct filter_facts facts;
    struct part_facts part;
    char text[200];
    f->layout->describe(f, &facts);
    RM_ReplyWithArray(ctx, (long)facts.parts + 1);
    int size = snprintf(text, sizeof text, "size:%llu",
                        (unsigned long long)facts.items);
    RM_ReplyWithStringBuffer(ctx, text, (size_t)size);
    for (uint32_t i = 0; f->layout->describe_part(f, i, &part); i++) {
        size = snprintf(text, sizeof text,
                        "bytes:%llu bits:%llu hashes:%u hashwidth:%u "
                        "capacity:%llu size:%llu ratio:%g",
                        (unsigned long long)part.bytes,
                        (unsigned long long)part.bits, part.hashes,
                        part.hash_bits, (unsigned long long)part.capacity,
                        (unsigned long long)part.items, part.error);
        RM_ReplyWithStringBuffer(ctx, text, (size_t)size);
    }
    return RM_OK;
}

static int run_info(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 2 || argc > 3) return RM_WrongArity(ctx);
    struct filter *f;
    if (!find_filter(ctx, argv[1], MUST_EXIST, &f)) return RM_OK;
    if (f->layout == &valkey_layout)
        return argc == 2 ? reply_their_facts(ctx, f)
                         : reply_their_fact(ctx, f, argv[2]);
    return argc == 2 ? reply_facts(ctx, f) : reply_fact(ctx, f, argv[2]);
}

static int run_card(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 2) return RM_WrongArity(ctx);
    struct filter *f;
    struct filter_facts facts = {0};
    if (!find_filter(ctx, argv[1], MUST_BE_COMPLETE, &f)) return RM_OK;
    if (f) f->layout->describe(f, &facts);
    return RM_ReplyWithLongLong(ctx, (long long)facts.items);
}

static int run_debug(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 2) return RM_WrongArity(ctx);
    struct filter *f;
    if (!find_filter(ctx, argv[1], MUST_EXIST, &f)) return RM_OK;
    return reply_parts(ctx, f);
}

static int run_cf_info(RedisModuleCtx *ctx, RedisModuleString **argv,
                       int argc) {
    if (argc != 2) return RM_WrongArity(ctx);
    struct filter *f;
    struct filter_facts facts;
    if (!find_filter(ctx, argv[1], MUST_EXIST | FOR_CF_COMMAND, &f))
        return RM_OK;
    f->layout->describe(f, &facts);
    const struct {
        const char *title;
        uint64_t value;
    } cf_fields[] = {
        {"Size", facts.size},
        {"Number of buckets", facts.buckets},
        {"Number of filters", facts.parts},
        {"Number of items inserted", facts.items},
        {"Number of items deleted", facts.deletes},
        {"Bucket size", facts.bucket_size},
        {"Expansion rate", facts.expansion},
        {"Max iterations", facts.iterations},
    };
    enum { CF_FIELDS = sizeof cf_fields / sizeof *cf_fields };
    RM_ReplyWithMap(ctx, CF_FIELDS);
    for (int i = 0; i < CF_FIELDS; i++) {
        RM_ReplyWithSimpleString(ctx, cf_fields[i].title);
        RM_ReplyWithLongLong(ctx, (long long)cf_fields[i].value);
    }
    return RM_OK;
}

static int run_cf_debug(RedisModuleCtx *ctx, RedisModuleString **argv,
                        int argc) {
    if (argc != 2) return RM_WrongArity(ctx);
    struct filter *f;
    struct filter_facts facts;
    char text[240];
    if (!find_filter(ctx, argv[1], MUST_EXIST | FOR_CF_COMMAND, &f))
        return RM_OK;
    f->layout->describe(f, &facts);
    const int size = snprintf(
        text, sizeof text,
        "bktsize:%llu buckets:%llu items:%llu deletes:%llu filters:%llu "
        "max_iterations:%llu expansion:%u",
        (unsigned long long)facts.bucket_size,
        (unsigned long long)facts.buckets, (unsigned long long)facts.items,
        (unsigned long long)facts.deletes, (unsigned long long)facts.parts,
        (unsigned long long)facts.iterations, facts.expansion);
    return RM_ReplyWithStringBuffer(ctx, text, (size_t)size);
}

static RedisModuleCommandArg info_fields[] = {
    OPTION(PURE_TOKEN, "CAPACITY", "capacity"),
    OPTION(PURE_TOKEN, "SIZE", "size"),
    OPTION(PURE_TOKEN, "FILTERS", "filters"),
    OPTION(PURE_TOKEN, "ITEMS", "items"),
    OPTION(PURE_TOKEN, "EXPANSION", "expansion"),
    OPTION(PURE_TOKEN, "GENERATION", "generation"),
    OPTION(PURE_TOKEN, "ALLOWED", "allowed"),
    OPTION(PURE_TOKEN, "REBUILD", "rebuild"),
    OPTION(PURE_TOKEN, "RECORDED", "recorded"),
    OPTION(PURE_TOKEN, "ABSENT", "absent"),
    OPTION(PURE_TOKEN, "CACHED", "cached"),
    OPTION(PURE_TOKEN, "MAYBE", "maybe"),
    OPTION(PURE_TOKEN, "WINDOW", "window"),
    OPTION(PURE_TOKEN, "GENERATIONS", "generations"),
    OPTION(PURE_TOKEN, "ERROR", "error"),
    OPTION(PURE_TOKEN, "TIGHTENING", "tightening"),
    OPTION(PURE_TOKEN, "MAXSCALEDCAPACITY", "maxscaledcapacity"),
    END};

static RedisModuleCommandArg info_args[] = {KEY,
                                            {.name = "field",
                                             .type = RM_ARG_ONEOF,
                                             .key_spec_index = -1,
                                             .flags = RM_ARG_OPTIONAL,
                                             .subargs = info_fields},
                                            END};

const struct command bf_info = {
    .name = "bf.info",
    .run = run_info,
    .flags = "readonly fast",
    .categories = "read fast bloom",
    .summary = "Describes a Bloom filter.",
    .complexity = COST_OF_ITEM,
    .tips = "dont_cache",
    .arity = -2,
    .key_specs = key_read,
    .args = info_args,
};

const struct command bf_card = {
    .name = "bf.card",
    .run = run_card,
    .flags = "readonly fast",
    .categories = "read fast bloom",
    .summary = "Returns how many items were added to a Bloom filter.",
    .complexity = COST_OF_ITEM,
    .arity = 2,
    .key_specs = key_read,
    .args = key_args,
};

const struct command bf_debug = {
    .name = "bf.debug",
    .run = run_debug,
    .flags = "readonly fast",
    .categories = "read bloom",
    .summary = "Describes each part of a Bloom filter.",
    .complexity = COST_OF_ITEM,
    .tips = "dont_cache",
    .arity = 2,
    .key_specs = key_read,
    .args = key_args,
};

const struct command cf_info = {
    .name = "cf.info",
    .run = run_cf_info,
    .flags = "readonly fast",
    .categories = "read fast cuckoo",
    .summary = "Describes a cuckoo filter.",
    .complexity = "O(1)",
    .tips = "dont_cache",
    .arity = 2,
    .key_specs = key_read,
    .args = key_args,
};

const struct command cf_debug = {
    .name = "cf.debug",
    .run = run_cf_debug,
    .flags = "readonly fast",
    .categories = "read cuckoo",
    .summary = "Describes a cuckoo filter in one line.",
    .complexity = "O(1)",
    .tips = "dont_cache",
    .arity = 2,
    .key_specs = key_read,
    .args = key_args,
};
