/* Finding the functions of the server. */
#include "server/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NOLINTBEGIN(bugprone-macro-parentheses): a type needs none */
#define REQUIRED(type, name, parameters) type(*name) parameters;
#define OPTIONAL(type, name, parameters) type(*name) parameters;
/* NOLINTEND(bugprone-macro-parentheses) */
#include "server/api_calls.h"

static const struct {
    const char *name; /* "RM_OpenKey" */
    void *function;   /* its variable */
    bool required;
} calls[] = {
#define REQUIRED(type, name, parameters) {#name, &name, true},
#define OPTIONAL(type, name, parameters) {#name, &name, false},
#include "server/api_calls.h"
};

typedef int get_api(const char *name, void *function);

const char *server_find(RedisModuleCtx *ctx) {
    get_api *find;
    memcpy(&find, ctx, sizeof find);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const char *const name = calls[i].name + strlen("RM_");
        char full[64];
        snprintf(full, sizeof full, "RedisModule_%s", name);
        if (find(full, calls[i].function) == RM_OK) continue;
        if (calls[i].required) return name;
        memset(calls[i].function, 0, sizeof(void (*)(void)));
    }
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
