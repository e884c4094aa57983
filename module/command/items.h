/* The items of a command, as the library takes them. */
#ifndef CALYX_MODULE_ITEMS_H
#define CALYX_MODULE_ITEMS_H

#include <calyx/calyx.h>

#include "server/api.h"

enum { FEW_ITEMS = 64 }; /* most commands have no more: those need no memory */

struct items {
    RedisModuleString **argv;
    size_t n;
    calyx_key *keys;
    bool *answers, *changed; /* room for two flags of each */
    calyx_key few_keys[FEW_ITEMS];
    bool few_flags[2 * FEW_ITEMS];
};

void items_open(struct items *items, RedisModuleString **argv, int n);
void items_close(struct items *items);

/* Some of them, as a view: nothing to close. */
struct items items_slice(const struct items *items, size_t from, size_t n);

/* Those of the first n items that have their flag set, in their order. `few` is
 * where they go if there are no more than FEW_ITEMS; give others to RM_Free. */
RedisModuleString **items_chosen(const struct items *items, const bool *flags,
                                 size_t n, RedisModuleString **few,
                                 size_t *chosen);

/* Replicate a command of a key and such items. */
void items_replicate(RedisModuleCtx *ctx, const char *command,
                     RedisModuleString *name, const struct items *items,
                     const bool *flags, size_t n);

#endif
