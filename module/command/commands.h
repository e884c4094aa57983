/* The commands, and what they have counted. */
#ifndef CALYX_MODULE_COMMANDS_H
#define CALYX_MODULE_COMMANDS_H

#include "layout/layout.h"
#include "server/api.h"

int commands_register(RedisModuleCtx *ctx);

struct stats {
    uint64_t lookups, positives; /* items asked for, and "yes" answers */
    uint64_t adds, fresh;        /* items given, and those that were new */
    uint64_t deleted;            /* items that were there to delete */
    uint64_t refused;            /* filters not made or grown, for memory */
    uint64_t
        guarded[GUARD_ANSWERS]; /* answers of BF.GUARD, and how many were */
    uint64_t guarded_without_filter; /*   given without a filter to rely on */
};
extern struct stats stats;

/* docs.c: what COMMAND DOCS tells of a command, or NULL. */
const RedisModuleCommandInfo *docs_of(const char *command);

#endif
