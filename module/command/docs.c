/* What COMMAND DOCS and COMMAND INFO tell: summary, complexity, arguments and
 * keys of each command. doc/COMMANDS.md says more. */
#include <string.h>

#include "command/commands.h"

#define KEY NAMED_KEY("key", 0)
#define NAMED_KEY(text, spec) \
    { .name = (text), .type = RM_ARG_KEY, .key_spec_index = (spec) }
#define VALUE(kind, text) \
    { .name = (text), .type = RM_ARG_##kind, .key_spec_index = -1 }
#define ITEM VALUE(STRING, "item")
#define ITEMS                                                        \
    {                                                                \
        .name = "item", .type = RM_ARG_STRING, .key_spec_index = -1, \
        .flags = RM_ARG_MULTIPLE                                     \
    }
#define OPTION(kind, word, text)                                     \
    {                                                                \
        .name = (text), .type = RM_ARG_##kind, .key_spec_index = -1, \
        .token = (word), .flags = RM_ARG_OPTIONAL                    \
    }
#define WINDOW_OPTIONS                   \
    OPTION(DOUBLE, "WINDOW", "seconds"), \
        OPTION(INTEGER, "GENERATIONS", "generations")
#define OURS                                                         \
    OPTION(INTEGER, "SEED", "seed"), OPTION(STRING, "KIND", "kind"), \
        OPTION(STRING, "LAYOUT", "layout"),                          \
        OPTION(INTEGER, "BEGAN", "milliseconds")
#define END \
    { 0 }

static RedisModuleCommandArg key_args[] = {KEY, END};
static RedisModuleCommandArg item_args[] = {KEY, ITEM, END};
static RedisModuleCommandArg items_args[] = {KEY, ITEMS, END};
static RedisModuleCommandArg reserve_args[] = {
    KEY,
    VALUE(DOUBLE, "error_rate"),
    VALUE(INTEGER, "capacity"),
    OPTION(INTEGER, "EXPANSION", "expansion"),
    OPTION(PURE_TOKEN, "NONSCALING", "nonscaling"),
    OPTION(PURE_TOKEN, "COUNTING", "counting"),
    WINDOW_OPTIONS,
    OURS,
    END};
static RedisModuleCommandArg insert_args[] = {
    KEY,
    OPTION(INTEGER, "CAPACITY", "capacity"),
    OPTION(DOUBLE, "ERROR", "error"),
    OPTION(INTEGER, "EXPANSION", "expansion"),
    OPTION(PURE_TOKEN, "NOCREATE", "nocreate"),
    OPTION(PURE_TOKEN, "NONSCALING", "nonscaling"),
    OPTION(PURE_TOKEN, "COUNTING", "counting"),
    WINDOW_OPTIONS,
    OURS,
    {.name = "item",
     .type = RM_ARG_STRING,
     .key_spec_index = -1,
     .token = "ITEMS",
     .flags = RM_ARG_MULTIPLE},
    END};
static RedisModuleCommandArg info_fields[] = {
    OPTION(PURE_TOKEN, "CAPACITY", "capacity"),
    OPTION(PURE_TOKEN, "SIZE", "size"),
    OPTION(PURE_TOKEN, "FILTERS", "filters"),
    OPTION(PURE_TOKEN, "ITEMS", "items"),
    OPTION(PURE_TOKEN, "EXPANSION", "expansion"),
    OPTION(PURE_TOKEN, "GENERATION", "generation"),
    OPTION(PURE_TOKEN, "ABSENT", "absent"),
    OPTION(PURE_TOKEN, "CACHED", "cached"),
    OPTION(PURE_TOKEN, "MAYBE", "maybe"),
    OPTION(PURE_TOKEN, "WINDOW", "window"),
    OPTION(PURE_TOKEN, "GENERATIONS", "generations"),
    END};
static RedisModuleCommandArg info_args[] = {KEY,
                                            {.name = "field",
                                             .type = RM_ARG_ONEOF,
                                             .key_spec_index = -1,
                                             .flags = RM_ARG_OPTIONAL,
                                             .subargs = info_fields},
                                            END};
static RedisModuleCommandArg dump_args[] = {KEY, VALUE(INTEGER, "iterator"),
                                            END};
static RedisModuleCommandArg transfer_out_args[] = {
    KEY, VALUE(STRING, "cursor"), END};
static RedisModuleCommandArg begin_args[] = {VALUE(STRING, "checksum"),
                                             VALUE(STRING, "head"), END};
static RedisModuleCommandArg chunk_args[] = {VALUE(INTEGER, "number"),
                                             VALUE(STRING, "checksum"),
                                             VALUE(STRING, "bits"), END};
#define STEP(word, text, arguments)                                 \
    {                                                               \
        .name = (text), .type = RM_ARG_BLOCK, .key_spec_index = -1, \
        .token = (word), .subargs = (arguments)                     \
    }
static RedisModuleCommandArg transfer_steps[] = {
    STEP("BEGIN", "begin", begin_args),
    STEP("CHUNK", "chunk", chunk_args),
    {.name = "checksum",
     .type = RM_ARG_STRING,
     .key_spec_index = -1,
     .token = "COMMIT"},
    {.name = "status",
     .type = RM_ARG_PURE_TOKEN,
     .key_spec_index = -1,
     .token = "STATUS"},
    END};
static RedisModuleCommandArg transfer_in_args[] = {KEY,
                                                   {.name = "step",
                                                    .type = RM_ARG_ONEOF,
                                                    .key_spec_index = -1,
                                                    .subargs = transfer_steps},
                                                   END};
static RedisModuleCommandArg load_args[] = {KEY, VALUE(INTEGER, "iterator"),
                                            VALUE(STRING, "data"), END};
static RedisModuleCommandArg guard_args[] = {NAMED_KEY("filter", 0), ITEM,
                                             NAMED_KEY("cachekey", 0), END};
static RedisModuleCommandArg merge_args[] = {NAMED_KEY("target", 0),
                                             {.name = "source",
                                              .type = RM_ARG_KEY,
                                              .key_spec_index = 1,
                                              .flags = RM_ARG_MULTIPLE},
                                             END};
static RedisModuleCommandArg merge_part_args[] = {
    NAMED_KEY("target", 0),
    NAMED_KEY("source", 1),
    {.name = "at", .type = RM_ARG_INTEGER},
    {.name = "bits", .type = RM_ARG_INTEGER},
    {.name = "bytes", .type = RM_ARG_INTEGER},
    {.name = "last", .type = RM_ARG_STRING},
    END};
static RedisModuleCommandArg pair_args[] = {NAMED_KEY("first", 0),
                                            NAMED_KEY("second", 0), END};
static RedisModuleCommandArg rotate_args[] = {KEY,
                                              {.name = "rotations",
                                               .type = RM_ARG_INTEGER,
                                               .key_spec_index = -1,
                                               .flags = RM_ARG_OPTIONAL},
                                              {.name = "began",
                                               .type = RM_ARG_UNIX_TIME,
                                               .key_spec_index = -1,
                                               .flags = RM_ARG_OPTIONAL},
                                              END};
static RedisModuleCommandArg swap_args[] = {
    NAMED_KEY("live", 0), NAMED_KEY("staged", 1),
    OPTION(INTEGER, "GENERATION", "generation"), END};

/* Keys from `place` to `last` words behind it, -1 for all, `step` by step. */
#define KEYS_AT(place, last, step, how)                              \
    {                                                                \
        .flags = (how), .begin_search_type = RM_KEY_AT_INDEX,        \
        .bs.index.pos = (place), .find_keys_type = RM_KEYS_IN_RANGE, \
        .fk.range = {                                                \
            (last),                                                  \
            (step),                                                  \
            0                                                        \
        }                                                            \
    }
#define ONE_KEY(how) \
    { KEYS_AT(1, 0, 1, how), END }
static RedisModuleCommandKeySpec reads[] =
    ONE_KEY(RM_KEY_READ_ONLY | RM_KEY_ACCESS);
static RedisModuleCommandKeySpec writes[] =
    ONE_KEY(RM_KEY_READ_WRITE | RM_KEY_UPDATE);
static RedisModuleCommandKeySpec tells_and_writes[] =
    ONE_KEY(RM_KEY_READ_WRITE | RM_KEY_ACCESS | RM_KEY_UPDATE);

/* One range, of every other word: a cluster of Redis 7.0 looks at no more. */
static RedisModuleCommandKeySpec guard_keys[] = {
    KEYS_AT(1, 2, 2, RM_KEY_READ_ONLY | RM_KEY_ACCESS), END};
static RedisModuleCommandKeySpec pair_keys[] = {
    KEYS_AT(1, 1, 1, RM_KEY_READ_ONLY | RM_KEY_ACCESS), END};
static RedisModuleCommandKeySpec merge_keys[] = {
    KEYS_AT(1, 0, 1, RM_KEY_READ_WRITE | RM_KEY_UPDATE),
    KEYS_AT(2, -1, 1, RM_KEY_READ_ONLY | RM_KEY_ACCESS), END};
static RedisModuleCommandKeySpec merge_part_keys[] = {
    KEYS_AT(1, 0, 1, RM_KEY_READ_WRITE | RM_KEY_UPDATE),
    KEYS_AT(2, 0, 1, RM_KEY_READ_ONLY | RM_KEY_ACCESS), END};
static RedisModuleCommandKeySpec swap_keys[] = {
    KEYS_AT(1, 0, 1, RM_KEY_OVERWRITE | RM_KEY_UPDATE),
    KEYS_AT(2, 0, 1, RM_KEY_READ_WRITE | RM_KEY_ACCESS | RM_KEY_DELETE), END};

static const RedisModuleCommandInfoVersion version = {
    1, sizeof(RedisModuleCommandHistoryEntry),
    sizeof(RedisModuleCommandKeySpec), sizeof(RedisModuleCommandArg)};

static const struct doc {
    const char *command;
    RedisModuleCommandInfo info;
} docs[] = {
    {"bf.reserve",
     {.summary = "Makes a Bloom filter of a given size and error rate.",
      .complexity = "O(1)",
      .arity = -4,
      .key_specs = writes,
      .args = reserve_args}},
    {"bf.add",
     {.summary = "Adds an item to a Bloom filter, which is made if missing.",
      .complexity = "O(p), with p the parts of the filter; 1 until it grows",
      .arity = 3,
      .key_specs = tells_and_writes,
      .args = item_args}},
    {"bf.madd",
     {.summary = "Adds items to a Bloom filter, which is made if missing.",
      .complexity = "O(n * p), with n items and p parts of the filter",
      .arity = -3,
      .key_specs = tells_and_writes,
      .args = items_args}},
    {"bf.insert",
     {.summary = "Adds items to a Bloom filter, which is made as told if "
                 "missing.",
      .complexity = "O(n * p), with n items and p parts of the filter",
      .arity = -4,
      .key_specs = tells_and_writes,
      .args = insert_args}},
    {"bf.exists",
     {.summary = "Tells whether an item may be in a Bloom filter.",
      .complexity = "O(p), with p the parts of the filter; 1 until it grows",
      .arity = 3,
      .key_specs = reads,
      .args = item_args}},
    {"bf.mexists",
     {.summary = "Tells of each item whether it may be in a Bloom filter.",
      .complexity = "O(n * p), with n items and p parts of the filter",
      .arity = -3,
      .key_specs = reads,
      .args = items_args}},
    {"bf.info",
     {.summary = "Describes a Bloom filter.",
      .complexity = "O(p), with p the parts of the filter; 1 until it grows",
      .tips = "dont_cache",
      .arity = -2,
      .key_specs = reads,
      .args = info_args}},
    {"bf.card",
     {.summary = "Tells how many items were added to a Bloom filter.",
      .complexity = "O(p), with p the parts of the filter; 1 until it grows",
      .arity = 2,
      .key_specs = reads,
      .args = key_args}},
    {"bf.debug",
     {.summary = "Describes each part of a Bloom filter.",
      .complexity = "O(p), with p the parts of the filter; 1 until it grows",
      .tips = "dont_cache",
      .arity = 2,
      .key_specs = reads,
      .args = key_args}},
    {"bf.scandump",
     {.summary = "Gives the next piece of a Bloom filter, to be saved.",
      .complexity = "O(n), with n the size of the piece",
      .tips = "dont_cache",
      .arity = 3,
      .key_specs = reads,
      .args = dump_args}},
    {"bf.loadchunk",
     {.summary = "Takes a piece of a Bloom filter that was dumped.",
      .complexity = "O(n), with n the size of the piece",
      .arity = 4,
      .key_specs = writes,
      .args = load_args}},
    {"bf.dump",
     {.summary = "Gives the next chunk of a native filter, with a checksum.",
      .complexity = "O(1): at most 1 MiB",
      .tips = "dont_cache",
      .arity = 3,
      .key_specs = reads,
      .args = transfer_out_args}},
    {"bf.load",
     {.summary = "Loads a native filter chunk by chunk, and then commits it.",
      .complexity = "O(1): at most 1 MiB",
      .arity = -3,
      .key_specs = tells_and_writes,
      .args = transfer_in_args}},
    {"bf.del",
     {.summary = "Deletes an item from a counting filter.",
      .complexity = "O(p), with p the parts of the filter; 1 until it grows",
      .arity = 3,
      .key_specs = tells_and_writes,
      .args = item_args}},
    {"bf.mdel",
     {.summary = "Deletes items from a counting filter.",
      .complexity = "O(n * p), with n items and p parts of the filter",
      .arity = -3,
      .key_specs = tells_and_writes,
      .args = items_args}},
    {"bf.count",
     {.summary = "Tells how often an item was added to a counting filter, at "
                 "most.",
      .complexity = "O(p), with p the parts of the filter; 1 until it grows",
      .arity = 3,
      .key_specs = reads,
      .args = item_args}},
    {"bf.merge",
     {.summary = "Makes a Bloom filter the union of itself and others.",
      .complexity = "O(n * m), with n sources of m bytes; in steps",
      .arity = -3,
      .key_specs = merge_keys,
      .args = merge_args}},
    {"bf.mergepart",
     {.summary = "One step of a merge, as replicas and the AOF hear of it.",
      .complexity = "O(1): at most 512 KiB of each filter",
      .arity = 7,
      .key_specs = merge_part_keys,
      .args = merge_part_args}},
    {"bf.similarity",
     {.summary = "Estimates how much the items of two Bloom filters overlap.",
      .complexity = "O(m), with m the bytes of a filter; in steps",
      .arity = 3,
      .key_specs = pair_keys,
      .args = pair_args}},
    {"bf.clear",
     {.summary = "Empties a Bloom filter, which keeps its parameters.",
      .complexity = "O(1); what there was is freed in the background",
      .arity = 2,
      .key_specs = writes,
      .args = key_args}},
    {"bf.rotate",
     {.summary = "Makes a window forget its oldest generation.",
      .complexity = "O(1); what is large is freed in the background",
      .arity = -2,
      .key_specs = writes,
      .args = rotate_args}},
    {"bf.guard",
     {.summary = "Tells that an item is certainly absent, or its cached value, "
                 "or to ask the database.",
      .complexity = "O(p), with p the parts of the filter; 1 until it grows",
      .arity = 4,
      .key_specs = guard_keys,
      .args = guard_args}},
    {"bf.swap",
     {.summary = "Puts a staged Bloom filter in the place of the live one.",
      .complexity = "O(1); the old one is freed in the background",
      .arity = -3,
      .key_specs = swap_keys,
      .args = swap_args}},
};

const RedisModuleCommandInfo *docs_of(const char *command) {
    static RedisModuleCommandInfo info;
    for (size_t i = 0; i < sizeof docs / sizeof *docs; i++)
        if (strcmp(docs[i].command, command) == 0) {
            info = docs[i].info;
            info.version = &version;
            info.since = "0.1.0";
            return &info;
        }
    return NULL;
}
