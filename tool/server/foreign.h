/*
 * Servers without Calyx: filters of RedisBloom and valkey-bloom. A Calyx filter
 * cannot become one of theirs, since it does not know its keys and they hash in
 * another way. So theirs are made from a list of keys, by commands that both
 * modules and Calyx have: BF.RESERVE, BF.INSERT with NOCREATE, BF.CARD.
 *
 * Clients must not query half a filter, which would say no to keys that are
 * still to come. So it is filled under another key, and renamed when it is
 * complete.
 */
#ifndef CALYX_TOOL_FOREIGN_H
#define CALYX_TOOL_FOREIGN_H

#include "server/cluster.h"
#include "server/shards.h"

/* A module: by its name in --as, or NULL. */
struct foreign_module;
const struct foreign_module *foreign_named(const char *name);
const char *foreign_names(void); /* "redisbloom or valkey-bloom" */

/* An option's value, into a const struct foreign_module *. */
void parse_foreign(const struct verb_option *option, const char *value);

struct foreign_push {
    const struct foreign_module *as;
    struct name target; /* the key of the filter                           */
    struct name key;    /* the key that it is filled under; what is there is
                           thrown away                                      */
    bool swap;          /* replace what is under the target                */
    uint64_t items;     /* 0: count the lines first                        */
    double rate;
};

/* Make a filter of the keys in a list. */
void foreign_push_list(struct cluster *server, const struct url *address,
                       const struct foreign_push *push, char *list);

#endif
