/* Finding the functions of the server. */
#include "server/api.h"

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
