/*
 * Runs of lookups: BF.EXISTS of one filter, one after the other, as clients
 * send them in a pipeline. While a run is watched (calyx-lookup-runs), the
 * server calls the module for each command that it has read, before it looks
 * the command up and checks who may run it. That allows two things:
 *
 * - The memory of the item is prefetched that much earlier.
 * - The key is not opened again if nothing but such lookups has happened since
 *   it was: the server shows every command, says when it deletes a key or
 *   replaces all of them, and each turn of its event loop begins anew.
 *
 * The calls make other commands 3 % slower. So by default runs are watched from
 * when most commands belong to one, until they do not.
 */
#ifndef CALYX_MODULE_LOOKUP_RUN_H
#define CALYX_MODULE_LOOKUP_RUN_H

#include "layout/layout.h"
#include "server/api.h"

/* Begin or end to watch, as the setting says. */
void runs_apply(RedisModuleCtx *ctx);

bool runs_are_watched(void);

/* Look an item up for BF.EXISTS; false after an error reply. */
bool run_look_up(RedisModuleCtx *ctx, RedisModuleString *name,
                 RedisModuleString *item, bool *found);

#endif
