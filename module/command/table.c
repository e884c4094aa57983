/* The table of commands, and its registration. */
#include "command/command.h"
#include "command/open_key.h"

struct stats stats;

const struct family_words words_of[] = {
    [BLOOM] = {.reserved = "bloom.reserve",
               .added = "bloom.add",
               .deleted = "bloom.del",
               .loaded = "bloom.load",
               .gone = "deleted, emptied or replaced"},
    [CUCKOO] = {.flags = FOR_CF_COMMAND,
                .reserved = "cuckoo.reserve",
                .added = "cuckoo.add",
                .deleted = "cuckoo.del",
                .loaded = "cuckoo.load",
                .gone = "deleted or replaced"},
};

static const struct command *const table[] = {
    &bf_reserve,   &bf_add,      &bf_madd,       &bf_insert,   &bf_exists,
    &bf_mexists,   &bf_info,     &bf_card,       &bf_debug,    &bf_scandump,
    &bf_loadchunk, &bf_dump,     &bf_load,       &bf_restore,  &bf_del,
    &bf_mdel,      &bf_count,    &bf_guard,      &bf_swap,     &bf_merge,
    &bf_mergepart, &bf_copypart, &bf_similarity, &bf_clear,    &bf_rotate,
    &bf_allow,     &bf_disallow, &bf_allowed,    &bf_rebuild,  &cf_reserve,
    &cf_add,       &cf_addnx,    &cf_insert,     &cf_insertnx, &cf_exists,
    &cf_mexists,   &cf_count,    &cf_del,        &cf_compact,  &cf_scandump,
    &cf_loadchunk, &cf_info,     &cf_debug,
};

/* ---- Docs that several commands share ------------------------------------ */

RedisModuleCommandArg key_args[] = {KEY, END};
RedisModuleCommandArg item_args[] = {KEY, ITEM, END};
RedisModuleCommandArg items_args[] = {KEY,
                                      {.name = "item",
                                       .type = RM_ARG_STRING,
                                       .key_spec_index = -1,
                                       .flags = RM_ARG_MULTIPLE},
                                      END};

RedisModuleCommandKeySpec key_read[] = {
    KEYS_AT(1, 0, 1, RM_KEY_READ_ONLY | RM_KEY_ACCESS), END};
RedisModuleCommandKeySpec key_updated[] = {
    KEYS_AT(1, 0, 1, RM_KEY_READ_WRITE | RM_KEY_UPDATE), END};
RedisModuleCommandKeySpec key_read_and_updated[] = {
    KEYS_AT(1, 0, 1, RM_KEY_READ_WRITE | RM_KEY_ACCESS | RM_KEY_UPDATE), END};

/* ---- Registration -------------------------------------------------------- */

/* Modules can add categories since Redis 7.4 and Valkey 8. */
static bool has_categories(RedisModuleCtx *ctx) {
    return RM_AddACLCategory && RM_SetCommandACLCategories &&
           RM_AddACLCategory(ctx, "bloom") == RM_OK &&
           RM_AddACLCategory(ctx, "cuckoo") == RM_OK;
}

static int command_register(RedisModuleCtx *ctx, const struct command *c,
                            bool categories) {
    static const RedisModuleCommandInfoVersion version = {
        1, sizeof(RedisModuleCommandHistoryEntry),
        sizeof(RedisModuleCommandKeySpec), sizeof(RedisModuleCommandArg)};
    if (RM_CreateCommand(ctx, c->name, c->run, c->flags, 1, 1, 1) != RM_OK)
        return RM_ERR;
    RedisModuleCommand *command = RM_GetCommand(ctx, c->name);
    if (!command) return RM_ERR;
    if (categories &&
        RM_SetCommandACLCategories(command, c->categories) != RM_OK)
        return RM_ERR;
    const RedisModuleCommandInfo docs = {.version = &version,
                                         .summary = c->summary,
                                         .complexity = c->complexity,
                                         .since = "0.1.0",
                                         .tips = c->tips,
                                         .arity = c->arity,
                                         .key_specs = c->key_specs,
                                         .args = c->args};
    return RM_SetCommandInfo(command, &docs);
}

int commands_register(RedisModuleCtx *ctx) {
    const bool categories = has_categories(ctx);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (command_register(ctx, table[i], categories) == RM_OK) continue;
        RM_Log(ctx, "warning", "the server refuses the command %s",
               table[i]->name);
        return RM_ERR;
    }
    return RM_OK;
}
