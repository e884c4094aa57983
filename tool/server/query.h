/*
 * Queries a filter in a server, or all shards of one in a cluster, for many
 * keys at a time, or adds them: each node gets all its commands at once, then
 * the replies are received. Whether a module has the filter, or it is stored as
 * plain strings (plain.h), is found out here.
 *
 * A server answers 0 for a filter that does not exist. That must not count as
 * an answer, so each batch also checks that the filter exists.
 */
#ifndef CALYX_TOOL_QUERY_H
#define CALYX_TOOL_QUERY_H

#include "tool.h"

/* `shards` 0: as the server says. Fails if there is no such filter. `key`: the
 * secret key, which only plain strings want, or NULL. */
void query_open(const char *url, uint64_t shards, const uint8_t *key);
void query_close(void);
const char *query_name(void); /* the URL, without a password */

/* The options for keys that it was built with, in memory for free(); NULL if
 * the server does not say. */
char *query_key_options(void);

/* Keys, copied one after another. Starts as zeros. */
struct remote_keys {
    size_t *ends; /* of each key */
    size_t count, room;
    char *bytes;
    size_t size, byte_room;
    bool adds; /* add them */
};
void remote_keys_add(struct remote_keys *list, const calyx_key *keys, size_t n);

/* Which of them the filter may have, or with `adds` which were not there
 * before, in memory for free(); the list is empty then. Any thread. */
bool *query_keys(struct remote_keys *list);

#endif
