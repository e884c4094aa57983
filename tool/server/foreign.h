/*
 * Servers without Calyx: filters of RedisBloom and valkey-bloom, and bits in
 * strings that clients have set by SETBIT. A Calyx filter cannot become one of
 * theirs, since it does not know its keys and they hash in another way. So
 * theirs are made from a list of keys, or moved as they are.
 *
 * Clients must not query half a filter, which would say no to keys that are
 * still to come. So it is filled under another key, and renamed when it is
 * complete.
 */
#ifndef CALYX_TOOL_FOREIGN_H
#define CALYX_TOOL_FOREIGN_H

#include "foreign/foreign_filter.h"
#include "server/cluster.h"
#include "server/shards.h"

struct foreign_module {
    struct foreign_choice choice; /* --as has its name */
    const char *type;             /* by TYPE           */
    bool in_chunks;  /* has BF.SCANDUMP and BF.LOADCHUNK; else BF.LOAD */
    bool is_string;  /* of bits, by GETRANGE and SETRANGE */
    bool has_config; /* and a hash {KEY}:config */
};

/* The value of --as, into a const struct foreign_module *. */
void parse_foreign(const struct verb_option *option, const char *value);

struct foreign_session {
    struct cluster *server;
    const struct url *address;
    const struct foreign_module *as;
    struct name target; /* the key of the filter                           */
    struct name key;    /* the key that it is filled under; what is there is
                           thrown away                                      */
    bool swap;          /* replace what is under the target                */
    struct call call;   /* its memory serves all commands                  */
};

/* Fail if the target is taken; clear the other key. */
void foreign_begin(struct foreign_session *s);
/* Rename, and free the memory of the session. */
void foreign_publish(struct foreign_session *s);

/* Fail if what is under the key is not of this type. */
void foreign_expect_type(struct foreign_session *s);

/* Bits in a string: into memory, and into a server, as it is. */
void foreign_fetch_string(struct foreign_session *s, struct foreign_filter *f);
void foreign_push_string(struct foreign_session *s,
                         const struct foreign_filter *f);
/* The same as the first, of a choice, at a URL. Returns the URL without a
 * password. */
const char *foreign_fetch(const char *url, const struct foreign_choice *choice,
                          struct foreign_filter *f);

/* Make a filter of the keys in a list, by BF.RESERVE, BF.INSERT with NOCREATE,
 * and BF.CARD. `items` 0: count the lines first. */
void foreign_push_list(struct foreign_session *s, uint64_t items, double rate,
                       char *list);

/* A filter as it is, from a server (without a target) and into one. */
void foreign_pull(struct foreign_session *s, struct output *output);
void foreign_push_dump(struct foreign_session *s, const char *path);

/* Is what is under the key of that module? `found` is its type. */
enum { FOREIGN_TYPE = 64 };
bool foreign_has_type(struct foreign_session *s, char found[FOREIGN_TYPE]);

#endif
