/*
 * Where a filter is in a server:
 *
 *     redis://[USER:PASSWORD@]HOST[:PORT][/DB]/KEY      rediss:// for TLS
 *     redis+unix://[USER:PASSWORD@]/PATH?key=KEY[&db=DB]
 *     KEY, at the server that $CALYX_REDIS_URL names
 *
 * USER, PASSWORD, PATH and KEY may have bytes written as %2F, and must for an @
 * behind the first / or ?. What is not said there is taken from
 * $CALYX_REDIS_USER and $CALYX_REDIS_PASSWORD.
 *
 * A password on the command line can be seen by everybody who lists processes.
 * So main has it overwritten there before it does anything else, from :// to
 * the last @, whether that makes sense or not; words then show *** in its
 * place, and only as_given knows better. That is why no message can show it,
 * whichever word it quotes. The price: a file of such a name is not found,
 * unless that begins with ./, ../ or /.
 */
#ifndef CALYX_TOOL_ADDRESS_H
#define CALYX_TOOL_ADDRESS_H

#include "tool.h"

struct address {
    char *host;   /* NULL: */
    char *socket; /*   the path of a UNIX socket */
    int port, db;
    bool tls;
    char *user, *password; /* NULL if there is none */
    char *key;
    size_t key_size;
    char *shown; /* the same without user and password, for messages */
};

/* Take the passwords out of the words of the command line. */
void hide_passwords(int count, char **words);

/* A word before that. For what is kept, never for a message. */
const char *as_given(const char *word);

/* What such a word says; fails if it is none. */
struct address address_of(const char *word);

#endif
