/*
 * Runs of lookups: several BF.EXISTS in a row on the same filter, as clients
 * send them in a pipeline. While runs are watched (calyx-lookup-runs), the
 * server shows each command to the module as soon as it is read, before it
 * looks the command up and checks who may run it. That allows two things:
 *
 * - The memory of the item is prefetched that much earlier.
 * - The key is not opened again (server/known_key.h) if nothing but such
 *   lookups has happened since it was.
 *
 * What else happens to a key is noticed in three ways. Commands are shown. Not
 * shown are those that transactions run, so nothing is known of a key that was
 * opened there, or in a script or by another module; and, from Redis 7.2 on,
 * those that CLIENT PAUSE had postponed. But the server calls the type's
 * `unlink` when a key is deleted, renamed, overwritten, expired or evicted, and
 * fires an event when all keys of a database are. What remains, such as an
 * expiry that a postponed command sets, takes effect with the next turn of the
 * event loop.
 *
 * Showing makes other commands 3 to 5 % slower. So by default runs are watched
 * from when most commands belong to one, until they do not.
 */
#ifndef CALYX_MODULE_LOOKUP_RUN_H
#define CALYX_MODULE_LOOKUP_RUN_H

#include "layout/layout.h"
#include "server/api.h"

/* Start or stop watching, as the setting says. */
void runs_apply(RedisModuleCtx *ctx);

/* For INFO. */
bool runs_are_watched(void);

/* Look an item up for BF.EXISTS; false after an error reply. */
bool run_look_up(RedisModuleCtx *ctx, RedisModuleString *name,
                 RedisModuleString *item, bool *found);

#endif
