/*
 * What a key holds: a filter in one of two layouts, behind one interface. Every
 * command works on both.
 *
 *     native       a filter of the library; what new filters are
 *     redisbloom   a chain as RedisBloom makes it; see redisbloom.h
 *
 * and windows, which are several native ones; see window.h.
 *
 * A layout is a struct of functions; commands see only the calls below.
 */
#ifndef CALYX_MODULE_LAYOUT_H
#define CALYX_MODULE_LAYOUT_H

#include <calyx/calyx.h>

#include "layout/redisbloom_chain.h"
#include "server/api.h"

/* What to make. Everything that decides about the bits is in here, so that it
 * can be told to replicas. */
struct filter_params {
    const struct filter_layout *layout;
    double error;
    uint64_t capacity;
    uint32_t expansion;     /* 0: it does not grow          */
    uint32_t unused_growth; /* what the header of a redisbloom one says then */
    bool random_seed;       /* a new one, or                */
    uint64_t seed;          /*   this; native only, as is   */
    const char *kind;       /* NULL for what suits the rate */
    uint64_t window;        /* milliseconds; 0: no window   */
    uint32_t generations;
    uint64_t began; /* Unix time in milliseconds    */
};

bool params_can_remove(const struct filter_params *params);

enum { MOST_EXPANSION = 32768 };
#define MOST_CAPACITY (INT64_C(1) << 40)

/* What BF.GUARD says of an item. */
enum guard_answer { ABSENT, CACHED, MAYBE, GUARD_ANSWERS };

/* What is 0 of most filters. */
struct rare {
    uint64_t loaded_sum; /* of what BF.LOAD brought; see transfer.h          */
    uint64_t life;       /* another for each filter, and once it is emptied  */
    uint64_t generation; /* of BF.SWAP: how often its key was swapped       */
    uint64_t rewrites;   /* changes but for bits that were set; see native.c */
    uint64_t guarded[GUARD_ANSWERS]; /* by this server, since it has it     */
};

/* One for each key, and there may be millions, of a few items each: so it is
 * 64 bytes, and a native filter of one small part has no other struct. */
struct filter {
    const struct filter_layout *layout;
    union {
        calyx_filter *native; /* but see native_of */
        void *bits;           /* if it is small    */
        struct chain *chain;
        struct time_window *window;
    };
    struct rare *rare;   /* see rare_of, rare_for                   */
    uint16_t expansion;  /* as asked for; of a native one           */
    bool can_remove;     /* items can be deleted from it            */
    bool repeats_matter; /* adding what is there changes it         */
    bool uncommitted;    /* BF.LOAD began it, and was not told to end */
    bool is_small;
    union {
        calyx_small small;
        struct {
            uint64_t bytes;   /* of its bits, and of them those that are    */
            uint64_t arrived; /* there: all, except while it is loaded by
                                 BF.LOADCHUNK, BF.LOAD                      */
            uint64_t counted_items, counted_bytes; /* by the statistics    */
        };
    };
};

/* To be read, and to be written. */
const struct rare *rare_of(const struct filter *f);
struct rare *rare_for(struct filter *f);

/* A number that no other filter has. */
uint64_t filter_life(const struct filter *f);

/* As the statistics have them. */
static inline uint64_t filter_items(const struct filter *f) {
    return f->is_small ? f->small.items : f->counted_items;
}

/* Of its bits; `bytes` of one that is not small. */
static inline uint64_t filter_bytes(const struct filter *f) {
    return f->is_small ? calyx_small_bytes(&f->small) : f->bytes;
}

/* The filter of the library, to be asked and read; `room` is for a small one.
 */
calyx_filter *native_of(const struct filter *f, calyx_room *room);

/* The same to be changed: from now on it is not small. NULL without memory. */
calyx_filter *native_for(struct filter *f);

/* Make a filter small that is complete and can be: it was made or loaded. */
void filter_compact(struct filter *f);

/* What BF.INFO tells. */
struct filter_facts {
    uint64_t capacity, size, parts, items;
    uint32_t expansion; /* 0: it does not grow */
};

/* What BF.DEBUG tells of one part. */
struct part_facts {
    uint64_t bytes, bits, capacity, items;
    uint32_t hashes, hash_bits;
    double error;
};

/* A piece of a dump: its bytes, and the iterator that goes with it. */
struct piece {
    int64_t at;
    const void *bytes;
    size_t size;
    void *owned; /* to be given to RM_Free; may be NULL */
};

struct filter_layout {
    const char *name;
    calyx_status (*make)(struct filter_params *params, struct filter *f,
                         calyx_error *why);
    calyx_status (*copy)(const struct filter *f, struct filter *to,
                         calyx_error *why);
    void (*free)(struct filter *f);

    /* Make an empty filter as this one was when it was new. */
    calyx_status (*make_like)(const struct filter *f, struct filter *to,
                              calyx_error *why);
    bool (*has)(const struct filter *f, const void *key, size_t size);
    size_t (*has_many)(const struct filter *f, const calyx_key *keys, size_t n,
                       bool *found);
    calyx_status (*add_many)(struct filter *f, const calyx_key *keys, size_t n,
                             bool *fresh, bool *changed, size_t *done,
                             calyx_error *why);
    void (*describe)(const struct filter *f, struct filter_facts *facts);
    /* What the server's allocator has taken for it, but for `rare`. */
    uint64_t (*memory)(const struct filter *f);
    bool (*describe_part)(const struct filter *f, uint32_t number,
                          struct part_facts *facts);

    /* A dump: its head, then what follows iterator `at`, an empty piece at 0 at
     * the end. */
    struct piece (*dump_head)(const struct filter *f);
    struct piece (*dump_from)(const struct filter *f, int64_t at);
    bool (*is_head)(const void *bytes, size_t size);
    calyx_status (*load_head)(const void *bytes, size_t size, struct filter *f,
                              calyx_error *why);
    calyx_status (*load_piece)(struct filter *f, int64_t at, const void *bytes,
                               size_t size, bool *changed, calyx_error *why);

    void (*save)(const struct filter *f, RedisModuleIO *io);
    calyx_status (*load)(RedisModuleIO *io, int encoding, struct filter *f,
                         calyx_error *why);
    void (*digest)(const struct filter *f, RedisModuleDigest *digest);
    void (*move)(struct filter *f, RedisModuleDefragCtx *ctx);
};

extern const struct filter_layout native_layout, redisbloom_layout,
    window_layout;
extern const struct filter_layout
    *const layouts[];         /* by name; ends with NULL */
enum { NATIVE_ENCODING = 2 }; /* what is written in RDB files; 1 is read, too */
const struct filter_layout *layout_named(const char *name, size_t size);

/* Make a filter; on success `params` is completed with what was chosen. */
calyx_status filter_new(struct filter_params *params, struct filter **out,
                        calyx_error *why);
calyx_status filter_copy(const struct filter *f, struct filter **out,
                         calyx_error *why);
void filter_free(struct filter *f);

/* Forget everything. The memory is taken anew, and what there was is freed by
 * another thread if it is large; so it takes no time at any size. */
calyx_status filter_clear(struct filter *f, calyx_error *why);

/* An empty native filter with as many parts as this one, of the same shapes. */
calyx_status filter_alike(const struct filter *f, struct filter **out,
                          calyx_error *why);

/* A filter without anything in it, to stand under a key that is about to go. */
struct filter *filter_placeholder(const struct filter_layout *layout);

/* As calyx_add_many. `changed` tells which of the items changed something; it
 * is another array than `fresh` if repeats matter to the filter, else the same.
 */
calyx_status filter_add(struct filter *f, const calyx_key *keys, size_t n,
                        bool *fresh, bool *changed, size_t *done,
                        calyx_error *why);

/* As calyx_remove_many, of a filter that counts: how many were there. */
size_t filter_remove(struct filter *f, const calyx_key *keys, size_t n,
                     bool *found);

/* RedisBloom uses a filter whose dump has not arrived completely, and takes its
 * chunks in any order. If `f` is such a one, take it as complete: false if not.
 * Only where a stream does with it what we would refuse. */
bool filter_accept_partial(struct filter *f);

/* Make a filter of the head of a dump, of any layout. */
calyx_status filter_load_head(const void *bytes, size_t size,
                              struct filter **out, calyx_error *why);
calyx_status filter_load_piece(struct filter *f, int64_t at, const void *bytes,
                               size_t size, bool *changed, calyx_error *why);
calyx_status filter_load(const struct filter_layout *layout, RedisModuleIO *io,
                         int encoding, struct filter **out, calyx_error *why);

/* Most commands ask the filter that the last one asked. So before the key is
 * opened, which takes a while, the memory that the item needs there is called;
 * after that the guess is corrected, if need be. */
void filter_prefetch(const void *item, size_t size);
void filter_prefetch_next(const struct filter *f);

static inline bool filter_is_partial(const struct filter *f) {
    return !f->is_small && (f->arrived < f->bytes || f->uncommitted);
}

/* Bring `bytes` and the statistics up to date with what happened to it. */
void filter_count(struct filter *f);

/* Of all filters there are. Freeing may be done by another thread. */
struct module_totals {
    uint64_t filters, bytes, items;
};
struct module_totals filter_totals(void);

#endif
