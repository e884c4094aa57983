/* The types of values, as the server knows them. */
#ifndef CALYX_MODULE_TYPE_H
#define CALYX_MODULE_TYPE_H

#include "layout/layout.h"
#include "server/api.h"

int type_register(RedisModuleCtx *ctx);

/* Whose commands work on a filter; on native ones that items can be deleted
 * from, the commands of both. */
enum family { BLOOM, CUCKOO };

/* What a key holds, for commands of a family; for BF commands. */
enum key_type { KEY_MISSING, KEY_FILTER, KEY_OTHER };
enum key_type type_for(RedisModuleKey *key, enum family family,
                       struct filter **f);
enum key_type type_of(RedisModuleKey *key, struct filter **f);

/* Put a filter under a key, which is open for writing. */
void type_attach(RedisModuleKey *key, struct filter *f);

/* Detach a filter from its key; a placeholder stays there. */
void type_detach(RedisModuleKey *key, const struct filter *f);

/* A rebuild of the filter of a key, which is open for writing, began or ended:
 * give the key the type that goes with it. Its expiry stays. */
void type_follow_rebuild(RedisModuleKey *key, struct filter *f);

/* What the server takes for a key and does not count itself: an object and the
 * record of a module's value, of 16 bytes each, and a place in a table. */
enum { SERVERS_STRUCTS = 16 + 16 + 8 };

/* RDB files and payloads that were refused. */
extern uint64_t loads_refused;

#endif
