/*
 * A server, or all nodes of a cluster, behind one address.
 *
 * Commands go to the node that has their key: a cluster redirects by MOVED and
 * ASK. A broken connection is made again, through another node if need be,
 * until the time of --wait is over.
 */
#ifndef CALYX_TOOL_CLUSTER_H
#define CALYX_TOOL_CLUSTER_H

#include "server/connection.h"

/* --wait TIME */
extern const struct group server_group;

struct cluster;

/* Fails if it cannot be reached, or does not want us. */
struct cluster *cluster_open(const struct url *address);
const struct url *cluster_address(const struct cluster *server);
void cluster_close(struct cluster *server);

/* The reply to a command, which may be an error; waits for a server that is
 * away, and fails when that takes too long. The command may be sent more than
 * once; with `once` it is not if it may have been done already: then NULL. */
struct reply *cluster_query(struct cluster *server, const struct call *call,
                            bool once);

/* The same of one that must not fail, and two such commands: is there
 * anything under the key, and remove it. `call` is memory for the command. */
struct reply *cluster_demand(struct cluster *server, const struct call *call);
bool cluster_has_key(struct cluster *server, struct call *call,
                     const struct name *key);
void cluster_unlink(struct cluster *server, struct call *call,
                    const struct name *key);

/* Many commands at a time: post some, send them all, then receive as many
 * replies, in the same order. NULL means a broken connection, a node that is no
 * longer the right one, or the like: repeat by cluster_query when all are
 * received. */
int cluster_post(struct cluster *server, const struct call *call);
void cluster_send(struct cluster *server);
struct reply *cluster_receive(struct cluster *server, int node);

/* Fail with an error of the server, in words for people. */
_Noreturn void fail_reply(const struct url *address, const struct call *call,
                          const char *error);

/* Fail with a reply that is not as it should be; `how` may be "". */
_Noreturn void fail_answer(const struct url *address, const struct call *call,
                           const char *how);

#endif
