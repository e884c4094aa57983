/*
 * One connection to a server, plain or by TLS. hiredis connects and reads
 * replies; built without it, opening fails and says how to get it, and all else
 * here is then never called.
 */
#ifndef CALYX_TOOL_CONNECTION_H
#define CALYX_TOOL_CONNECTION_H

#include "server/url.h"

#ifdef CALYX_HAVE_HIREDIS
#define BY_HIREDIS
#else
#define BY_HIREDIS __attribute__((weak)) /* not there, and never called */
#endif

/* A command: its words, which are not copied. The second is the key. */
struct call {
    calyx_key *words;
    size_t count, room;
};

/* The name of a key in the server. */
struct name {
    char *text; /* ends with a zero that does not count */
    size_t size;
};

/* Begin a new one, in the same memory; call_for with the key. */
void call_start(struct call *call, const char *command);
void call_for(struct call *call, const char *command, const struct name *key);
void call_add(struct call *call, const void *word, size_t size);
void call_text(struct call *call, const char *word);
void call_free(struct call *call);

struct reply;

/* NULL if it is none, or not of that form; no parts if it is no array. */
BY_HIREDIS const char *reply_error(const struct reply *reply);
BY_HIREDIS const char *reply_text(const struct reply *reply, size_t *size);
BY_HIREDIS bool reply_number(const struct reply *reply, long long *number);
BY_HIREDIS const struct reply *reply_part(const struct reply *reply,
                                          size_t number);
BY_HIREDIS size_t reply_parts(const struct reply *reply);
BY_HIREDIS void reply_free(struct reply *reply);

struct connection;

/* Why a connection failed. Final: the server does not want us, or we do not
 * trust it, so another try would end the same way. */
struct trouble {
    char text[640];
    bool is_final;
};

/* Connect to the host and port, or to the socket of the URL; verify the host if
 * the URL is for TLS; authenticate. NULL, and why, if that fails. */
struct connection *connection_open(const struct url *address, const char *host,
                                   int port, struct trouble *trouble);
BY_HIREDIS void connection_close(struct connection *link);

/* Put commands together, send them all, then take the replies in order; NULL if
 * the connection broke. Taking sends, too. */
BY_HIREDIS void connection_post(struct connection *link,
                                const struct call *call);
BY_HIREDIS void connection_send(struct connection *link);
BY_HIREDIS struct reply *connection_receive(struct connection *link);
BY_HIREDIS const struct trouble *connection_trouble(
    const struct connection *link); /* why NULL */

#endif
