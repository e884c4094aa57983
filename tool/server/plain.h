/*
 * Filters as plain strings, on servers that load no module. doc/FORMAT.md
 * describes the keys: a hash NAME, and pieces of the file as the strings
 * NAME:GENERATION:0, NAME:GENERATION:1 and so on.
 *
 * The library says which lines of the file answer a lookup (calyx_layout), and
 * which of their bits a key has; this reads and sets them in the server.
 *
 * A piece that was evicted would read as zeros once a client adds to it again,
 * and a key would seem to be absent. So each piece begins with the generation,
 * which only push writes, and which is read after all lines: an
 * answer counts only if it was there.
 */
#ifndef CALYX_TOOL_PLAIN_H
#define CALYX_TOOL_PLAIN_H

#include "server/cluster.h"

enum {
    GENERATION_BYTES = 8, /* letters and digits, also the start of each piece */
    PLAIN_PIECE_LEAST = 1 << 16, /* bytes of a string, at most: the options */
    PLAIN_PIECE_MOST = 1 << 26,
    PLAIN_PIECES_MOST = 1 << 20
};

/* What the hash says. */
struct plain_place {
    struct name name;                      /* of the hash */
    char generation[GENERATION_BYTES + 1]; /* "": there is no filter */
    uint64_t bytes;                        /* of the file */
    uint64_t piece; /* bytes of the file in each piece but the last */
    uint64_t items;
};

static inline uint64_t plain_pieces(const struct plain_place *p) {
    return (p->bytes + p->piece - 1) / p->piece;
}

/* Bytes of the file in this piece. */
static inline uint64_t plain_piece_bytes(const struct plain_place *p,
                                         uint64_t number) {
    const uint64_t left = p->bytes - number * p->piece;
    return left < p->piece ? left : p->piece;
}

/* The key of a piece, in memory of its own. */
struct name plain_piece_name(const struct plain_place *place, uint64_t number);

/* What is under a key: the only place that knows. Unknown: this user may not
 * call TYPE. */
enum plain_kind { PLAIN_UNKNOWN, PLAIN_NOTHING, PLAIN_FILTER, PLAIN_OTHER };
enum plain_kind plain_kind_of(struct cluster *server, struct call *call,
                              const struct name *key);

/* A plain filter that is queried, by one thread at a time. */
struct plain_filter;

/* Fails if there is no whole plain filter. `key`: the secret key, or NULL. */
struct plain_filter *plain_open(struct cluster *server,
                                const struct url *address, const uint8_t *key);
void plain_close(struct plain_filter *filter);
const struct plain_place *plain_place_of(const struct plain_filter *filter);
const struct url *plain_address(const struct plain_filter *filter);
const calyx_layout *plain_layout(const struct plain_filter *filter);

/* Were keys added since it was pushed? Ask after its bytes were read. Also
 * updates the number of items. False if the filter was replaced: then this is
 * not known. */
bool plain_is_changed(struct plain_filter *filter, bool *is);

/* Fail if its kind does not say what a lookup reads, or a secret key is
 * missing.
 */
void plain_expect_lookups(const struct plain_filter *filter);

/* Which of these keys may it have? All answers are of one generation. */
void plain_has(struct plain_filter *filter, const calyx_key *keys, size_t n,
               bool *found);

/* Add them, and set which were not there. Fails if it cannot be added to. */
void plain_add(struct plain_filter *filter, const calyx_key *keys, size_t n,
               bool *fresh);

/* Bytes of the file. False if the filter has changed or is gone, and then
 * plain_renew opens what is there now. */
struct plain_range {
    uint64_t at;
    size_t size;
    uint8_t *bytes;
};
bool plain_read(struct plain_filter *filter, const struct plain_range *ranges,
                size_t n);
void plain_renew(struct plain_filter *filter);

/* ---- Whole files: plain_file.c ------------------------------------------- */

struct plain_push {
    struct cluster *server;
    const struct url *address;
    const char *file;           /* not packed                             */
    const calyx_filter *filter; /* the same, verified                     */
    bool swap;
    double expire;  /* seconds until all of it expires; 0: as it is, or never */
    uint64_t piece; /* bytes of a string, at most                             */
};

void plain_push(const struct plain_push *push);

/* All bytes of the file, checked, in memory of their own. If keys were added
 * since it was pushed, the bytes are a file that a writer left open: read it as
 * such, and save it again. */
struct plain_file {
    uint8_t *bytes; /* aligned to 64 */
    size_t size;
    bool is_open;
};
struct plain_file plain_pull(struct plain_filter *filter);

#endif
