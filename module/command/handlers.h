/*
 * What the files with commands share: how a command is registered, opening
 * keys, telling of changes. A file with commands exports a list of them, which
 * ends with a name of NULL and stands in the table in commands.c.
 */
#ifndef CALYX_MODULE_HANDLERS_H
#define CALYX_MODULE_HANDLERS_H

#include "layout/layout.h"
#include "server/api.h"

struct command {
    const char *name;
    command_function *run;
    const char *flags, *categories;
};

extern const struct command counting_commands[], guard_commands[],
    swap_commands[], transfer_commands[], whole_commands[], window_commands[];

/* Open a key that must hold a filter, for reading. Unless there is one, replies
 * and returns NULL, with nothing to close. */
struct filter *open_there(RedisModuleCtx *ctx, RedisModuleString *name,
                          RedisModuleKey **key);

/* Tell those who watch a key, or listen for events. */
void note_change(RedisModuleCtx *ctx, RedisModuleString *name,
                 const char *event);

/* Make a filter of the head of a dump, and put it under a key that is empty and
 * open for writing; else reply and return NULL. */
struct filter *make_of_head(RedisModuleCtx *ctx, RedisModuleKey *key,
                            const char *bytes, size_t size);

#endif
