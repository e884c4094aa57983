/*
 * A filter in a server, or all shards of one in a cluster, asked for many keys
 * at a time: each node gets all its questions at once, and then the answers are
 * waited for.
 *
 * A server says no for a key that is missing. That must not pass for an answer:
 * so it is asked after each batch whether the filter is there.
 */
#ifndef CALYX_TOOL_QUERY_H
#define CALYX_TOOL_QUERY_H

#include "tool.h"

/* `shards` 0: as the server says. Fails if there is no such filter. */
void query_open(const char *url, uint64_t shards);
void query_close(void);
const char *query_name(void); /* the URL, without a password */

/* The options for keys that it was built with, in memory for free(); NULL if
 * the server does not say. */
char *query_key_options(void);

/* Keys, copied one behind the other. Starts as zeros. */
struct key_list {
    size_t *ends; /* of each key */
    size_t count, room;
    char *bytes;
    size_t size, byte_room;
};
void key_list_add(struct key_list *question, const calyx_key *keys, size_t n);

/* Which of them the filter may have, in memory for free(); the question is
 * empty then. Any thread. */
bool *query_keys(struct key_list *question);

#endif
