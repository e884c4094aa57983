/* Finding the functions of the server. */
#include "server/api.h"

#include <stdlib.h>
#include <string.h>

/* NOLINTNEXTLINE(bugprone-macro-parentheses): a type needs none */
#define DEFINE(type, name, parameters) type(*RM_##name) parameters;
REQUIRED(DEFINE)
OPTIONAL(DEFINE)

typedef int get_api(const char *name, void *function);

const char *server_find(RedisModuleCtx *ctx) {
    get_api *find;
    memcpy(&find, ctx, sizeof find);
#define FIND_REQUIRED(type, name, parameters) \
    if (find("RedisModule_" #name, &RM_##name) != RM_OK) return #name;
#define FIND_OPTIONAL(type, name, parameters) \
    if (find("RedisModule_" #name, &RM_##name) != RM_OK) RM_##name = NULL;
    REQUIRED(FIND_REQUIRED)
    OPTIONAL(FIND_OPTIONAL)
    return NULL;
}

/* ---- What it is ---------------------------------------------------------- */

static int valkey_major = -1; /* unknown */

int server_valkey_major(RedisModuleCtx *ctx) {
    if (valkey_major >= 0) return valkey_major;
    RedisModuleServerInfoData *const info = RM_GetServerInfo(ctx, "server");
    const char *const version =
        info ? RM_ServerInfoGetFieldC(info, "valkey_version") : NULL;
    valkey_major = version ? atoi(version) : 0;
    if (info) RM_FreeServerInfo(ctx, info);
    return valkey_major;
}

bool is_slot_import(RedisModuleCtx *ctx) {
    return valkey_major >= 9 && RM_GetContextFlags(ctx) & RM_CTX_SLOT_IMPORT;
}

bool is_replayed(RedisModuleCtx *ctx) {
    return RM_GetContextFlags(ctx) & (RM_CTX_REPLICATED | RM_CTX_LOADING) ||
           is_slot_import(ctx);
}
