/* Keys: to find their filter or refuse, to put a new one there, to announce
 * changes. */
#ifndef CALYX_MODULE_OPEN_KEY_H
#define CALYX_MODULE_OPEN_KEY_H

#include "layout/layout.h"
#include "server/allocator.h"
#include "server/api.h"
#include "type.h"

enum {
    FOR_WRITING = 1,
    MUST_EXIST = 2,       /* else "not found"                          */
    MUST_BE_COMPLETE = 4, /* else "is still being loaded"              */
    MUST_BE_FREE = 8,     /* else "item exists"                        */
    FOR_CF_COMMAND = 16   /* else it is one that BF commands work on   */
};

/* Open a key for writing, and find its filter; `*f` is NULL if it is free.
 * Returns NULL after an error reply: the key holds another type, or not what
 * `flags` ask for. A filter of RedisBloom's that a replayed command writes to
 * is complete, whatever is missing: see command/replicate.h. */
RedisModuleKey *open_filter(RedisModuleCtx *ctx, RedisModuleString *name,
                            unsigned flags, struct filter **f);

/* The same with a key that is closed again: the filter stays valid until the
 * command ends or deletes the key. FOR_WRITING as flags say. */
bool find_filter(RedisModuleCtx *ctx, RedisModuleString *name, unsigned flags,
                 struct filter **f);

/* The filter under a key if it has this identity (filter_identity), else NULL:
 * for the next step of a job. */
struct filter *find_again(RedisModuleCtx *ctx, RedisModuleString *name,
                          uint64_t identity);

int reply_partial(RedisModuleCtx *ctx, const struct filter *f);

/* Before a change: true if no compaction is under way, or if it was completed
 * here, because the client cannot wait. False: wait for it, in steps. */
bool may_change(RedisModuleCtx *ctx, struct filter *f);

/* Make a filter, or one from the head of a dump, under a key that is empty and
 * open for writing. On failure: reply and return NULL. */
struct filter *create_filter(RedisModuleCtx *ctx, RedisModuleKey *key,
                             struct filter_params *params);
struct filter *create_from_head(RedisModuleCtx *ctx, RedisModuleKey *key,
                                enum family family, const char *bytes,
                                size_t size, enum memory_use use);

/* Signal a change to clients that WATCH the key or listen for events. */
void note_change(RedisModuleCtx *ctx, RedisModuleString *name,
                 const char *event);

#endif
