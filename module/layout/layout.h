/*
 * What a key holds: a filter in one of five layouts, behind one interface.
 *
 *     native         a filter of the library; what new filters are
 *     window         several native ones; see window.h
 *     redisbloom     a chain as RedisBloom makes it; see redisbloom_chain.h
 *     valkey-bloom   parts as valkey-bloom makes them; see valkey_bloom.h
 *     cuckoo         RedisBloom's cuckoo filters; see cuckoo.h
 *
 * BF commands work on all except the last, CF commands on the last and on
 * native filters that items can be deleted from.
 *
 * A layout is a struct of functions; commands see only the calls below.
 */
#ifndef CALYX_MODULE_LAYOUT_H
#define CALYX_MODULE_LAYOUT_H

#include <calyx/calyx.h>

#include "cuckoo/cuckoo.h"
#include "foreign/redisbloom_chain.h"
#include "foreign/valkey_bloom.h"
#include "server/api.h"

/* How to make a filter. It has everything that the bits depend on, and is
 * replicated. */
struct filter_params {
    const struct filter_layout *layout;
    double error;
    uint64_t capacity;
    uint32_t expansion;     /* 0: it does not grow          */
    uint32_t unused_growth; /* what the header of a redisbloom one says then */
    bool random_seed;       /* a new one, or                */
    uint64_t seed;          /*   this; native only, as is   */
    const char *kind;       /* NULL for what suits the rate */
    bool removable;         /*   and items can be deleted   */
    bool unreserved;        /*   and nobody said for how many items it is */
    uint64_t window;        /* milliseconds; 0: no window   */
    uint32_t generations;
    uint64_t began;                         /* Unix time in milliseconds    */
    double tightening;                      /* valkey-bloom only, as is     */
    uint8_t valkey_seed[VALKEY_SEED_BYTES]; /* if not random */
    uint32_t bucket_size, iterations;       /* cuckoo only   */
};

bool params_can_remove(const struct filter_params *params);

enum { MOST_EXPANSION = 32768 };
#define MOST_CAPACITY (INT64_C(1) << 40)

/* What BF.GUARD says of an item. */
enum guard_answer { ABSENT, CACHED, MAYBE, GUARD_ANSWERS };

/* Fields that are 0 in most filters. */
struct extra {
    uint64_t loaded_sum; /* checksum of what BF.RESTORE has; see transfer.h  */
    uint64_t identity;   /* unique; changes when the filter is emptied       */
    uint64_t generation; /* of BF.SWAP: how often its key was swapped       */
    uint64_t rewrites;   /* changes that invalidate dumps; see native.c      */
    uint64_t guarded[GUARD_ANSWERS]; /* answers of this server              */
    struct rebuild *rebuild; /* one that is open; else NULL: rebuild.h       */
};

/* One per key. There may be millions of keys with a few items each: so it has
 * 64 bytes, and a native filter of one small part has no other struct. */
struct filter {
    const struct filter_layout *layout;
    union {
        calyx_filter *native; /* but see native_of */
        void *bits;           /* if it is small    */
        struct chain *chain;
        struct valkey_bloom *valkey;
        struct time_window *window;
        struct cuckoo *cuckoo;
    };
    struct extra *extra; /* see extra_of, extra_for                   */
    uint16_t expansion;  /* of a native filter, as in BF.RESERVE    */
    bool can_remove;     /* items can be deleted from it            */
    bool repeats_matter; /* adding what is there changes it         */
    bool uncommitted;    /* BF.RESTORE has not committed it yet     */
    bool is_small;
    union {
        calyx_small small;
        struct {
            uint64_t bytes;   /* of its bits, and of them those that are    */
            uint64_t arrived; /* there: all, except while it is loaded by
                                 BF.LOADCHUNK, BF.RESTORE                   */
            uint64_t counted_items, counted_bytes; /* by the statistics    */
        };
    };
};

/* To read, and to write. */
const struct extra *extra_of(const struct filter *f);
struct extra *extra_for(struct filter *f);

/* A number that no other filter has. */
uint64_t filter_identity(const struct filter *f);

/* Items, as counted by the statistics. */
static inline uint64_t filter_items(const struct filter *f) {
    return f->is_small ? f->small.items : f->counted_items;
}

/* Bytes of its bits. */
static inline uint64_t filter_bytes(const struct filter *f) {
    return f->is_small ? calyx_small_bytes(&f->small) : f->bytes;
}

/* The filter of the library, for lookups and reading; a small one is built in
 * `room`. */
calyx_filter *native_of(const struct filter *f, calyx_room *room);

/* The same for changes: the filter is no longer small. NULL without memory. */
calyx_filter *native_for(struct filter *f);

/* A whole native filter may have grown, or is new. */
void filter_note_bytes(struct filter *f);

/* Make a new or loaded filter small, if it is complete and small enough. */
void filter_compact(struct filter *f);

/* For BF.INFO and CF.INFO, and for steps. */
struct filter_facts {
    uint64_t capacity, size, parts, items;
    uint32_t expansion;    /* 0: it does not grow                            */
    bool in_place;         /* its parts are one table: an item is in one     */
    uint64_t lines;        /* cache lines that a lookup reads                */
    uint64_t change_lines; /* and a change, mostly                        */
    /* Of what CF commands work on; buckets of the first part. */
    uint64_t buckets, bucket_size, iterations, deletes;
};

/* For BF.DEBUG: one part. */
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
    void *owned; /* for RM_Free; may be NULL */
};

/* Items to add, and how far that came. */
struct addition {
    const calyx_key *keys;
    size_t n;
    bool *fresh;   /* of each: it was not there                             */
    bool *changed; /* of each: it changed the filter. The same array as
                      `fresh`, unless repeats matter to the filter and both
                      are wanted                                            */
    size_t done;   /* items that are in; after an error the next is not     */
    calyx_error *why; /* for an error */
    bool only_new;  /* leave out items that are there                         */
    bool must_fit;  /* a cuckoo filter that is full grows, though it may not  */
    bool in_step;   /* layouts with `counts_lines` end after a step's lines   */
    uint64_t lines; /* that they touched                                      */
};

struct filter_layout {
    const char *name;
    const char *type;  /* of values in RDB files and payloads               */
    int encoding;      /* of these, as this module writes them              */
    bool reads_older;  /* `load` reads other encodings, too                 */
    bool is_foreign;   /* another module reads its streams and files        */
    bool is_cuckoo;    /* for CF commands alone                             */
    bool counts_lines; /* what an addition takes is known only afterwards   */
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
    /* Add the items from number `done` on, up to one that is refused. */
    calyx_status (*add)(struct filter *f, struct addition *a);
    /* Remove items; returns how many were there. And count how often an item
     * was added, at most. NULL: no filter of this layout `can_remove`. */
    size_t (*remove)(struct filter *f, const calyx_key *keys, size_t n,
                     bool *found);
    uint64_t (*count)(const struct filter *f, const void *key, size_t size);

    /* Compaction, which takes steps; NULL: this layout needs none. `remove`
     * begins one only if `may_compact` was true before; `compact` begins one
     * unless there is nothing to do. Until it has ended lookups are right, but
     * nothing may change the filter; copying and saving complete it.
     * `compact_some` goes on, for a step or to the end, and returns the cache
     * lines that it touched. */
    bool (*may_compact)(const struct filter *f);
    bool (*compact)(struct filter *f);
    bool (*is_compacting)(const struct filter *f);
    uint64_t (*compact_some)(struct filter *f, bool in_step);

    /* Take a filter that is partly loaded for a complete one; NULL: never. */
    void (*accept_partial)(struct filter *f);

    /* Put an item on the allow list, or take it off; `*done` says whether it
     * was off, or on. NULL: this layout has no room for a list. */
    calyx_status (*allow)(struct filter *f, const calyx_key *item, bool *done,
                          calyx_error *why);
    calyx_status (*disallow)(struct filter *f, const calyx_key *item,
                             bool *done, calyx_error *why);
    /* The filter whose list it is; a small one is built in `room`. */
    const calyx_filter *(*with_list)(const struct filter *f, calyx_room *room);
    void (*describe)(const struct filter *f, struct filter_facts *facts);
    /* Bytes of the server's allocator, without `extra`. */
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
    valkey_layout, window_layout, cuckoo_layout;
extern const struct filter_layout
    *const layouts[]; /* of BF commands, by name; ends with NULL */
const struct filter_layout *layout_named(const char *name, size_t size);

/* Make a filter. On success `params` holds all that was chosen. */
calyx_status filter_new(struct filter_params *params, struct filter **out,
                        calyx_error *why);
calyx_status filter_copy(const struct filter *f, struct filter **out,
                         calyx_error *why);
void filter_free(struct filter *f);

/* Empty a filter in O(1): new memory is allocated, and another thread frees the
 * old one if it is large. */
calyx_status filter_clear(struct filter *f, calyx_error *why);

/* An empty native filter with as many parts as this one, of the same shapes. */
calyx_status filter_alike(const struct filter *f, struct filter **out,
                          calyx_error *why);

/* The same with its numbers of items: a copy whose bits are to come. */
calyx_status filter_copy_head(const struct filter *f, struct filter **out,
                              calyx_error *why);

/* A filter without content, for a key that is about to be deleted. */
struct filter *filter_placeholder(const struct filter_layout *layout);

/* As `add` of its layout. */
calyx_status filter_add(struct filter *f, struct addition *a);

/* As `remove` of its layout. */
size_t filter_remove(struct filter *f, const calyx_key *keys, size_t n,
                     bool *found);

/* Before a change that cannot wait: complete the compaction that is under way.
 * And a step of it: true if there is none then. */
void filter_end_compaction(struct filter *f);
bool filter_compaction_step(struct filter *f);

static inline bool filter_is_compacting(const struct filter *f) {
    return f->layout->is_compacting && f->layout->is_compacting(f);
}

/* RedisBloom uses filters that are partly loaded, and accepts chunks in any
 * order. If `f` is a partial one of its layouts, declare it complete; else
 * return false. Only for streams that use such a filter. */
bool filter_accept_partial(struct filter *f);

/* The layout whose dumps have such a head, of those that BF commands work on.
 * Make a filter from it. */
const struct filter_layout *layout_of_head(const void *bytes, size_t size);
calyx_status filter_load_head(const struct filter_layout *layout,
                              const void *bytes, size_t size,
                              struct filter **out, calyx_error *why);
calyx_status filter_load_piece(struct filter *f, int64_t at, const void *bytes,
                               size_t size, bool *changed, calyx_error *why);
calyx_status filter_load(const struct filter_layout *layout, RedisModuleIO *io,
                         int encoding, struct filter **out, calyx_error *why);

/* Make a filter of the payload of valkey-bloom's BF.LOAD, without its bits;
 * then copy these, at most `most` bytes at a time, until it is no longer
 * partial. */
calyx_status filter_begin_payload(const void *payload, size_t size,
                                  struct filter **out, calyx_error *why);
void filter_copy_payload(struct filter *f, const void *payload, uint64_t most);
calyx_status valkey_begin_filter(const void *payload, size_t size,
                                 struct filter *f, calyx_error *why);

/* Most commands use the same filter as the one before. So prefetch the item's
 * memory there before the key is opened, and say afterwards which filter it
 * was. */
void filter_prefetch(const void *item, size_t size);
void filter_prefetch_next(const struct filter *f);

/* Whose commands load its pieces. */
static inline const char *load_command(const struct filter *f) {
    return f->layout->is_cuckoo ? "CF.LOADCHUNK" : "BF.LOADCHUNK";
}

static inline bool filter_is_partial(const struct filter *f) {
    return !f->is_small && (f->arrived < f->bytes || f->uncommitted);
}

/* Update the statistics after a change. */
void filter_count(struct filter *f);

/* Of all cuckoo filters, or of all others. Another thread may free some. */
struct module_totals {
    uint64_t filters, bytes, items;
};
struct module_totals filter_totals(bool cuckoo);

#endif
