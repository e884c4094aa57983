/*
 * A key that was opened, and what it holds. Opening takes a tenth of the time
 * of BF.EXISTS, so a lookup that follows another one in the same filter does
 * without. command/lookup_run.h says when that is right.
 */
#ifndef CALYX_MODULE_KNOWN_KEY_H
#define CALYX_MODULE_KNOWN_KEY_H

#include "server/api.h"

/* The key is open, and the context's. Not for one that may expire, since the
 * server says nothing when its time has come. */
void known_key_set(RedisModuleCtx *ctx, RedisModuleString *name,
                   RedisModuleKey *key, void *value);

/* What the key holds, or NULL if that is not known. */
void *known_key_value(RedisModuleCtx *ctx, const RedisModuleString *name);

/* A key may now hold something else, or its value may have moved. */
void known_key_forget(void);

#endif
