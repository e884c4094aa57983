/* The commands, and what they have counted. */
#ifndef CALYX_MODULE_COMMANDS_H
#define CALYX_MODULE_COMMANDS_H

#include "filter.h"
#include "server_api.h"

int commands_register(RedisModuleCtx *ctx);

struct counts {
    uint64_t questions, positives; /* items asked for, and "yes" answers */
    uint64_t adds, fresh;          /* items given, and those that were new */
    uint64_t refused;              /* filters not made or grown, for memory */
};
extern struct counts counts;

/* ---- For those in other files -------------------------------------------- */

/* Open a key that must hold a filter, for reading. Unless there is one, replies
 * and returns NULL, with nothing to close. */
struct filter *open_there(RedisModuleCtx *ctx, RedisModuleString *name,
                          RedisModuleKey **key);

/* Make a filter of the head of a dump, and put it under a key that is empty and
 * open for writing; else reply and return NULL. */
struct filter *make_of_head(RedisModuleCtx *ctx, RedisModuleKey *key,
                            const char *bytes, size_t size);

/* Tell those who watch the key. */
void note_change(RedisModuleCtx *ctx, RedisModuleString *name,
                 const char *event);

/* docs.c: what COMMAND DOCS tells of a command, or NULL. */
const RedisModuleCommandInfo *docs_of(const char *command);

#endif
