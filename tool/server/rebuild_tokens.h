/*
 * Rebuilds: a filter in a server is made anew from a list. BF.REBUILD … BEGIN
 * before the list is read, and BF.SWAP … REBUILD with the token that it
 * returned, bring along what was added meanwhile.
 */
#ifndef CALYX_TOOL_REBUILD_TOKENS_H
#define CALYX_TOOL_REBUILD_TOKENS_H

#include "server/cluster.h"
#include "server/shards.h"

/* Tokens of one filter, or of all its shards. */
struct rebuild_tokens {
    uint64_t count; /* 0: no rebuild */
    uint64_t token[MOST_SHARDS];
};

/* A list with commas, into a struct rebuild_tokens. */
void parse_tokens(const struct verb_option *option, const char *value);
void print_tokens(const struct rebuild_tokens *tokens);

/* With `shards` 0: of the filter as a whole. */
void rebuild_begin(const struct url *address, uint64_t shards,
                   struct rebuild_tokens *tokens);
void rebuild_abort(const struct url *address, uint64_t shards,
                   const struct rebuild_tokens *tokens);

#endif
