/*
 * What a command is. Each file bf_*.c or cf_*.c describes its commands in one
 * place: the handler, the flags and ACL categories, and what COMMAND DOCS says.
 * It exports one struct per command; table.c lists them. doc/COMMANDS.md says
 * more.
 */
#ifndef CALYX_MODULE_COMMAND_H
#define CALYX_MODULE_COMMAND_H

#include "layout/layout.h"
#include "server/api.h"
#include "type.h"

struct command {
    const char *name;
    command_function *run;
    const char *flags, *categories;
    const char *summary, *complexity, *tips; /* of COMMAND DOCS */
    int arity;
    RedisModuleCommandKeySpec *key_specs;
    RedisModuleCommandArg *args;
};

extern const struct command bf_reserve, bf_add, bf_madd, bf_insert, bf_exists,
    bf_mexists, bf_info, bf_card, bf_debug, bf_scandump, bf_loadchunk, bf_dump,
    bf_load, bf_restore, bf_del, bf_mdel, bf_count, bf_guard, bf_swap, bf_merge,
    bf_mergepart, bf_copypart, bf_similarity, bf_clear, bf_rotate, bf_allow,
    bf_disallow, bf_allowed, bf_rebuild;
extern const struct command cf_reserve, cf_add, cf_addnx, cf_insert,
    cf_insertnx, cf_exists, cf_mexists, cf_count, cf_del, cf_compact,
    cf_scandump, cf_loadchunk, cf_info, cf_debug;

int commands_register(RedisModuleCtx *ctx);

/* Counters of the INFO section. */
struct stats {
    uint64_t lookups, positives;     /* items looked up, and found           */
    uint64_t adds, fresh;            /* items added, and those that were new */
    uint64_t deleted;                /* items that were there to delete      */
    uint64_t refused;                /* filters not made or grown: memory    */
    uint64_t rotations;              /* of windows                           */
    uint64_t guarded[GUARD_ANSWERS]; /* answers of BF.GUARD; without a       */
    uint64_t guarded_without_filter; /*   usable filter                      */
};
extern struct stats stats;

/* ---- COMMAND DOCS -------------------------------------------------------- */

#define COST_OF_ITEM  "O(p), with p the parts of the filter; 1 until it grows"
#define COST_OF_ITEMS "O(n * p), with n items and p parts of the filter"

/* The arguments: a list that ends with END. */
#define NAMED_KEY(text, spec) \
    { .name = (text), .type = RM_ARG_KEY, .key_spec_index = (spec) }
#define KEY NAMED_KEY("key", 0)
#define VALUE(kind, text) \
    { .name = (text), .type = RM_ARG_##kind, .key_spec_index = -1 }
#define ITEM VALUE(STRING, "item")
#define OPTION(kind, word, text)                                     \
    {                                                                \
        .name = (text), .type = RM_ARG_##kind, .key_spec_index = -1, \
        .token = (word), .flags = RM_ARG_OPTIONAL                    \
    }
#define END \
    { 0 }

/* Options of BF.RESERVE and BF.INSERT that RedisBloom does not have. */
#define CALYX_OPTIONS                                                    \
    OPTION(PURE_TOKEN, "COUNTING", "counting"),                          \
        OPTION(DOUBLE, "WINDOW", "seconds"),                             \
        OPTION(INTEGER, "GENERATIONS", "generations"),                   \
        OPTION(INTEGER, "SEED", "seed"), OPTION(STRING, "KIND", "kind"), \
        OPTION(STRING, "LAYOUT", "layout"),                              \
        OPTION(INTEGER, "BEGAN", "milliseconds")

extern RedisModuleCommandArg key_args[], item_args[], items_args[];

/* The keys: the word at `place` and those up to `last` words after it, -1 for
 * all, `step` by step. */
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

extern RedisModuleCommandKeySpec key_read[], key_updated[],
    key_read_and_updated[];

/* What differs where BF and CF commands have one handler. */
struct family_words {
    unsigned flags;                                  /* for find_filter */
    const char *reserved, *added, *deleted, *loaded; /* events */
    const char *gone; /* how a filter may disappear between two steps */
};
extern const struct family_words words_of[]; /* by `enum family` */

/* ---- add.c --------------------------------------------------------------- */

/* Add items to a filter of BF commands, and replicate them, as BF.MADD does. A
 * listener may delete the filter. */
struct items;
calyx_status items_add(RedisModuleCtx *ctx, RedisModuleString *name,
                       struct filter *f, RedisModuleString **argv, int n,
                       calyx_error *why);

/* ---- whole/bf_rebuild.c -------------------------------------------------- */

/* Items were added to a filter that is being rebuilt, except refused ones;
 * `refused` may be NULL. An item that changed nothing there is not replicated
 * as an addition, and may be missing in the new filter: so it is replicated as
 * recorded. */
struct recorded_items {
    RedisModuleString **argv;
    const calyx_key *keys;
    const bool *changed, *refused;
    size_t n;
};
void rebuild_note_added(RedisModuleCtx *ctx, RedisModuleString *name,
                        struct filter *f, const struct recorded_items *items);

/* Items were deleted from a filter, those whose answer is true. */
void rebuild_note_deleted(struct filter *f, const struct items *items);

/* ---- bf_rotate.c --------------------------------------------------------- */

/* Start the timer; hear of keys that are renamed, from the first window on.
 * Servers before Redis 7.4 copy each event for each module that listens. */
void rotation_start(RedisModuleCtx *ctx);
void rotation_listen(RedisModuleCtx *ctx);

/* Before a window is changed: rotate it if that is due, and replicate it. */
void rotation_run(RedisModuleCtx *ctx, RedisModuleString *name,
                  struct filter *f);

/* May a generation of `span` milliseconds begin then? Else replies. */
bool rotation_may_begin(RedisModuleCtx *ctx, uint64_t began, uint64_t span);

#endif
