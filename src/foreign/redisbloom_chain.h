/*
 * Filters in RedisBloom's own layout, so that its data can be moved here, used,
 * and moved back. Nothing in this file knows a server: it works on bytes.
 *
 * Such a filter is a chain of links. A link is a textbook Bloom filter: a key
 * sets `hashes` bits anywhere in its body. When the newest link holds the keys
 * it was made for, another is added, `growth` times as large and at half its
 * rate; a key is in the filter if it is in any link.
 *
 *     struct chain *c;
 *     if (chain_new(1000, 0.01, CHAIN_GROWS, 2, NULL, &c, &why) != CALYX_OK)
 *         return reply(why.text);
 *     chain_add(c, "rose", 4, &fresh, &why);
 *     chain_has(c, "rose", 4);      // true, always
 *     chain_free(c);
 *
 * Statuses, error texts, keys and memory are as in calyx.h: a failed call
 * changes nothing, and explains why. The hash has no seed, as this layout wants
 * it: whoever chooses the keys can choose false positives.
 */
#ifndef CALYX_FOREIGN_REDISBLOOM_CHAIN_H
#define CALYX_FOREIGN_REDISBLOOM_CHAIN_H

#include <calyx/calyx.h>

#include "foreign/layout_error.h"
#include "foreign/rdb_values.h"

/* ---- The layout ---------------------------------------------------------- */

/* Options of a chain, by RedisBloom's numbers. */
enum {
    CHAIN_NOROUND = 1,      /* bodies as large as needed, not a power of two  */
    CHAIN_ENTS_IS_BITS = 2, /* the size is given as the logarithm of the bits */
    CHAIN_FORCE64 = 4,      /* 64-bit hashes; before version 1.1 they had 32  */
    CHAIN_NO_SCALING = 8,   /* never a second link: a full filter refuses     */

    CHAIN_GROWS = CHAIN_NOROUND | CHAIN_FORCE64, /* what new filters have */
    CHAIN_FIXED = CHAIN_GROWS | CHAIN_NO_SCALING
};

/* Above this rate RedisBloom 8 makes filters of this rate; 2.8 does not. */
#define CHAIN_MOST_ERROR 0.25

/* More bytes than this are never in one chunk of a dump. */
#define CHAIN_MOST_CHUNK ((size_t)16 << 20)

/* Written only by redisbloom_*.c; defragmentation may move `body` and `link`.
 */
struct chain_link {
    uint8_t *body;
    uint64_t bytes;   /* of the body                                         */
    uint64_t bits;    /* as saved                                            */
    uint64_t entries; /* keys it was made for                                */
    uint64_t items;   /* keys it has                                         */
    double error;     /* the rate it was made for                            */
    double bpe;       /* bits for each entry                                 */
    uint32_t hashes;  /* bits that a key sets                                */
    uint8_t n2;       /* if not 0, only 2^n2 of the bits are used            */
    uint64_t modulus; /* of positions: 2^n2, or bits        (derived)        */
    uint64_t inverse; /* 2^64 / modulus, or a little less   (derived)        */
};

struct chain {
    struct chain_link *link; /* oldest first; keys are added to the last */
    uint32_t links;
    uint32_t room; /* links that fit into the memory of `link` */
    uint32_t options;
    uint32_t growth;  /* means nothing with CHAIN_NO_SCALING               */
    uint64_t items;   /* in all links                                      */
    uint64_t bytes;   /* of all bodies                                     */
    uint64_t arrived; /* bytes of bodies that are there: all, except while
                         a dump is being loaded, chunk by chunk            */
    calyx_memory memory;
};

/* ---- Making -------------------------------------------------------------- */

/* Make an empty chain, for `capacity` keys (with CHAIN_ENTS_IS_BITS, the
 * logarithm of its bits) at the rate `error`, 0 < error < 1. A chain that grows
 * starts at half that rate. `memory` NULL stands for malloc. */
calyx_status chain_new(uint64_t capacity, double error, uint32_t options,
                       uint32_t growth, const calyx_memory *memory,
                       struct chain **out, calyx_error *why);

calyx_status chain_copy(const struct chain *c, struct chain **out,
                        calyx_error *why);

/* An empty chain, as this one was when it was new. */
calyx_status chain_new_like(const struct chain *c, struct chain **out,
                            calyx_error *why);

/* NULL is fine. */
void chain_free(struct chain *c);

/* ---- Keys ---------------------------------------------------------------- */

/* Do not look up keys in a partly loaded chain: that would give false
 * negatives. Adding to it is refused. */
static inline bool chain_is_partial(const struct chain *c) {
    return c->arrived < c->bytes;
}

/* As calyx_add and calyx_has. CALYX_FULL: it may not grow. CALYX_CANNOT: it
 * should grow, but the next link would be too large, or its rate no number; or
 * the chain is partial. */
calyx_status chain_add(struct chain *c, const void *key, size_t size,
                       bool *fresh, calyx_error *why);
bool chain_has(const struct chain *c, const void *key, size_t size);

/* As calyx_add_many and calyx_has_many. */
calyx_status chain_add_many(struct chain *c, const calyx_key *keys, size_t n,
                            bool *fresh, size_t *done, calyx_error *why);
size_t chain_has_many(const struct chain *c, const calyx_key *keys, size_t n,
                      bool *found);

/* ---- The whole chain ----------------------------------------------------- */

struct chain_info {
    uint64_t capacity;  /* entries of all links                             */
    uint64_t size;      /* what BF.INFO calls Size: by RedisBloom's structs */
    uint64_t items;     /* what BF.INFO calls Number of items inserted      */
    uint32_t links;     /* what it calls Number of filters                  */
    uint32_t growth;    /* its Expansion rate; 0 if it does not grow        */
    uint32_t hash_bits; /* 64, or 32 in old filters                         */
};
struct chain_info chain_describe(const struct chain *c);

/* A hash of everything that is saved, except the growth of a chain that does
 * not grow, which means nothing: equal chains have equal ones. */
uint64_t chain_digest(const struct chain *c);

/* ---- Saved in an RDB file or a DUMP payload: type "MBbloom--" ------------ */

enum { CHAIN_ENCODING = 4 }; /* what is written; 0 to 4 can be read */

/* A partial chain is saved with an option and a number more, which RedisBloom
 * does not know: it refuses it, as it should. */
void chain_save(const struct chain *c, const struct rdb_writer *to);

/* CALYX_IO: the reader gave up. CALYX_DAMAGED: the values are no chain. */
calyx_status chain_load(const struct rdb_reader *from, int encoding,
                        const calyx_memory *memory, struct chain **out,
                        calyx_error *why);

/* ---- Dumped by BF.SCANDUMP, loaded by BF.LOADCHUNK ----------------------- */

/* A dump is a header with all numbers, then the bodies in chunks, each with an
 * iterator: the bytes up to its end, plus 1.
 *
 *     size_t size = chain_header_size(c);
 *     chain_dump_header(c, buffer);                    // iterator 1
 *     int64_t at = 1;
 *     while ((bytes = chain_dump_chunk(c, CHAIN_MOST_CHUNK, &at, &size)))
 *         ...                                          // iterator at
 *
 * A chunk never goes over the end of a link. Adding in between tears a dump:
 * newer bits, older stats. */
size_t chain_header_size(const struct chain *c);
void chain_dump_header(const struct chain *c, void *buffer);

/* The chunk that begins at `*at`, which becomes the iterator that goes with it.
 * NULL, and 0 in both, when there is none. Of a partial chain only what has
 * arrived: a dump of it makes another that is partial in the same way. */
const void *chain_dump_chunk(const struct chain *c, size_t most, int64_t *at,
                             size_t *size);

/* How large the bodies will be that a header promises. */
calyx_status chain_header_bytes(const void *header, size_t size,
                                uint64_t *bytes, calyx_error *why);

/* Make a chain of a header: partial, until its chunks have come. */
calyx_status chain_load_header(const void *header, size_t size,
                               const calyx_memory *memory, struct chain **out,
                               calyx_error *why);

/* Chunks must come without gaps; one may come twice. Their bits are added to
 * those that are there, so that no key is lost whatever they are. The text of
 * an error begins as RedisBloom's does. `*changed`, unless NULL, says whether
 * anything did. */
calyx_status chain_load_chunk(struct chain *c, int64_t at, const void *bytes,
                              size_t size, bool *changed, calyx_error *why);

/* ---- Between redisbloom_chain.c and redisbloom_rdb.c -------------------- */

enum { MOST_LINKS = 1100, MOST_HASHES = 1075 };
#define MOST_BITS    (UINT64_C(1) << 48)
#define MOST_ENTRIES MOST_BITS

/* The numbers of a link of this error, and its bits for each entry. */
double link_bpe(double error);
double link_hashes(double bpe);

/* Fill in what follows from n2 and bits. */
void link_derive(struct chain_link *l);

/* A chain with no links, which nobody may use yet; and one link more for it,
 * with a body of zeros if it has none. The chain owns the body then. */
calyx_status chain_blank(const calyx_memory *memory, struct chain **out,
                         calyx_error *why);
calyx_status chain_push(struct chain *c, struct chain_link *l,
                        calyx_error *why);

#endif
