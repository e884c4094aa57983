/*
 * The URL of a filter in a server:
 *
 *     redis://[USER:PASSWORD@]HOST[:PORT][/DB]/KEY      rediss:// for TLS
 *     redis+unix://[USER:PASSWORD@]/PATH?key=KEY[&db=DB]
 *     KEY, at the server that $CALYX_REDIS_URL names
 *
 * USER, PASSWORD, PATH and KEY may have bytes written as %2F, and must for an @
 * after the first / or ?. The defaults of user and password are
 * $CALYX_REDIS_USER and $CALYX_REDIS_PASSWORD.
 */
#ifndef CALYX_TOOL_URL_H
#define CALYX_TOOL_URL_H

#include "tool.h"

struct url {
    char *host;   /* NULL: */
    char *socket; /*   the path of a UNIX socket */
    int port, db;
    bool tls;
    char *user, *password; /* NULL if there is none */
    char *key;
    size_t key_size;
    char *shown; /* the same without user and password, for messages */
};

/* Parse a word of the command line; fails if it is no URL of a filter. */
struct url parse_url(const char *word);

#endif
