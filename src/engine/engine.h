/*
 * The filter, and what the engines behind it have in common.
 *
 * A filter is a short chain of parts of one kind, newest first. What its calls
 * do depends on how these parts work together. That is decided once, when the
 * filter is made: it gets one of seven engines.
 *
 *     bits      one part without a limit, one thread adds  (bits_engine.c)
 *     striped   the same, many threads add                 (stripes.c)
 *     chain     parts with limits: a full one is followed by a larger one
 *                                                          (chain_engine.c)
 *     layers    static: a lookup goes through the layers until one has not
 *               bumped the key                             (layers_engine.c)
 *     exact     static: first layers say which keys pass, value layers
 *               which of these are included                (exact_engine.c)
 *     table     parts that are the segments of one table   (table_engine.c)
 *     fixed     one table that does not grow               (fixed_engine.c)
 *
 * Two wrappers stand before an engine where they are needed, and only there:
 * `mapped` compares bytes that are used in place with their checksums, and
 * `listed` looks keys up in the allow list.
 */
#ifndef CALYX_ENGINE_H
#define CALYX_ENGINE_H

#include <calyx/calyx.h>
#include <stddef.h>

#include "engine/key_list.h"
#include "hash/hash.h"
#include "kind/kind.h"

struct part {
    struct part *older; /* NULL in the oldest                              */
    uint8_t *body;
    struct shape shape;
    uint64_t capacity; /* keys it is to hold                               */
    uint64_t items;    /* keys it took; concurrent adders count atomically */
    double fpr;        /* its rate at capacity                             */
    uint64_t range;    /* number of its first range, in an image           */
    struct part *next_layer; /* of a static filter; NULL in the last       */
    uint8_t *lines; /* of a table: where the counters are that follow the
                       bits, if not after these; else NULL: see body_at   */
};

/* ---- Engines ------------------------------------------------------------- */

/* The calls of filters with an allow list, which need the bytes of keys. */
struct calls_of_keys {
    bool (*has)(const calyx_filter *f, const void *key, size_t size);
    calyx_status (*add)(calyx_filter *f, const void *key, size_t size,
                        bool *fresh);
    calyx_status (*remove)(calyx_filter *f, const void *key, size_t size,
                           enum removal *became);
    uint32_t (*count)(const calyx_filter *f, const void *key, size_t size);
};

/* What the public calls become: the calls of an engine or of a wrapper. */
struct calls {
    /* One hash. `fresh` may be NULL. Only filters that count have `remove`. */
    bool (*has)(const calyx_filter *f, uint64_t hash);
    calyx_status (*add)(calyx_filter *f, uint64_t hash, bool *fresh);
    calyx_status (*remove)(calyx_filter *f, uint64_t hash,
                           enum removal *became);
    uint32_t (*count)(const calyx_filter *f, uint64_t hash);
    const struct calls_of_keys *of_keys; /* NULL: hashes are enough */

    /* Returns the number of keys that are there; `found` may be NULL. */
    size_t (*has_many)(const calyx_filter *f, const struct key_list *keys,
                       bool *found);
    /* Add the first hashes of a batch: at least one, if the call succeeds;
     * *done becomes their number. `fresh` may be NULL. */
    calyx_status (*add_some)(calyx_filter *f, struct key_window *w, bool *fresh,
                             size_t *done);
    /* Remove all hashes of a batch; *removed becomes the number of hashes that
     * were there and did not stay. `found` may be NULL. */
    calyx_status (*remove_batch)(calyx_filter *f, struct key_window *w,
                                 bool *found, size_t *removed);
    size_t most_hashes; /* in a batch, where hashes are given */
};

struct prefetch_hint;

/* NULL stands for nothing to do, in all members but `calls`. */
struct engine {
    struct calls calls;
    bool is_direct; /* <calyx/inline.h> may read the bits of a single part */

    /* Of a file: do the bytes that a lookup of this hash reads match? */
    bool (*is_intact)(const calyx_filter *f, uint64_t hash);

    /* What the engine has beside the parts. It is made with the head and
     * before the first part, changes with each part, and when all have moved
     * or only the first is left; it moves, and is freed. */
    calyx_status (*open)(calyx_filter *f);
    calyx_status (*open_first)(calyx_filter *f, const struct shape *first);
    calyx_status (*take_part)(calyx_filter *f);
    void (*renew)(calyx_filter *f);
    void (*relocate)(calyx_filter *f, calyx_move_function *move, void *context);
    void (*close)(calyx_filter *f);

    /* The memory of bodies; NULL: each is one block. */
    bool (*take_body)(const calyx_filter *f, struct part *p);
    void (*give_body)(const calyx_filter *f, struct part *p);
    void (*move_body)(const calyx_filter *f, struct part *p,
                      calyx_move_function *move, void *context);

    /* Let threads add from now on. */
    calyx_status (*share)(calyx_filter *f);
    /* Around what reads all of a filter that other threads may be adding to. */
    void (*lock)(const calyx_filter *f);
    void (*unlock)(const calyx_filter *f);

    /* Members of a description, and the memory of what the engine has beside
     * the parts; for `describe`, the members that need the bits.
     * `counts` are the bits set in each part, the oldest first; NULL counts
     * them. */
    void (*add_info)(const calyx_filter *f, calyx_info *info);
    void (*describe)(const calyx_filter *f, const uint64_t *counts,
                     calyx_info *info);

    /* May keys of two filters stand at the same places? */
    calyx_status (*check_alike)(const calyx_filter *a, const calyx_filter *b,
                                calyx_error *why);
    /* A step of calyx_merge_some; NULL: bits are united. */
    calyx_status (*merge_some)(calyx_filter *f, const calyx_filter *other,
                               uint64_t most, calyx_progress *at,
                               calyx_error *why);
    /* Returns false if there is no hint. NULL: the newest parts. */
    bool (*fill_hint)(const calyx_filter *f, struct prefetch_hint *hint);
};

extern const struct engine bits_engine, striped_engine, chain_engine,
    layers_engine, exact_engine, table_engine, fixed_engine;
extern const struct calls mapped_calls, listed_calls;

/* Choose the engine of a head. A file may have several parts without growth: so
 * it is chosen again with each part of an engine that has only one. */
void choose_engine(calyx_filter *f);
calyx_status choose_engine_again(calyx_filter *f);
/* And its calls, after ranges or a list were set, or dropped. */
void choose_calls(calyx_filter *f);
/* The calls without the list. */
const struct calls *unlisted_calls(const calyx_filter *f);
bool is_wrapped(const calyx_filter *f);

/* ---- Filters ------------------------------------------------------------- */

/* Bytes that a filter uses in place, in ranges with a checksum each, as far as
 * this layer must know them; store/view.h has the rest. The numbers are
 * atomic. */
struct lent_bytes {
    /* Take the bytes back, at the end of the filter. */
    calyx_status (*release)(calyx_filter *f, calyx_error *why);
    /* A word of them that reads 0 once their file was cut short; else NULL.
     * Then zeros may stand where bits were set, and no answer is certain. */
    const uint64_t *guard;

    uint64_t unverified; /* not compared with their checksums yet            */
    uint64_t damaged;    /* found not to match                               */
    uint64_t damage_at;  /* where the first damage is, in the image; or 0     */
    uint64_t unmarked;   /* neither marked for a change, nor damaged         */

    /* Do the bits of a key in this part match their checksums? They are
     * compared unless that was done before. */
    bool (*is_intact)(const calyx_filter *f, const struct part *p,
                      uint64_t hash);
    /* Compare all that were not compared yet. */
    void (*verify_rest)(const calyx_filter *f);
    /* Judge by its bits how many keys a file has whose last writer died. */
    void (*repair_items)(const calyx_filter *f);
    /* Before bits are set, to mark their ranges as being changed. *n becomes
     * how many of the keys, from the first on, may be added; at least one, if
     * the call succeeds. */
    calyx_status (*mark)(calyx_filter *f, const uint64_t *hashes, size_t *n);
    calyx_status (*mark_all)(calyx_filter *f, bool only_newest);
};

struct calyx_filter {
    /* What a lookup reads of it, in 64 bytes. */
    const struct calls *calls;
    struct part *newest; /* published whole: readers may be on their way */
    const struct kernel *kernel;
    const struct hash *hash;
    union { /* what the engine has beside the parts; else NULL */
        struct part *first_layer;
        struct filter_table *table;
        struct stripes *stripes;
        struct fixed_turns *turns;
    };
    struct secret secret;

    const struct kind *kind;
    const struct engine *engine;
    calyx_memory memory;
    double fpr, growth;
    bool strict, concurrent;
    bool read_only;    /* a view, mapped for reading, or static */
    bool open_small;   /* by calyx_open_small: it can have no other memory */
    uint8_t live_slot; /* in a calyx_live, if it is in one */

    /* Few filters have these; else NULL. */
    struct lent_bytes *lent; /* its bodies are among them */
    char *comment;           /* COMMENT_BYTES of memory */
    struct properties *properties;
    struct allow_list *allowed; /* see allow_list.h */
};

enum { HOT_BYTES = 64 };
_Static_assert(offsetof(struct calyx_filter, kind) <= HOT_BYTES,
               "a lookup reads 64 bytes of a filter");

static inline struct part *newest_of(const struct calyx_filter *f) {
    return __atomic_load_n(&f->newest, __ATOMIC_ACQUIRE);
}

static inline const struct part *first_part(const struct calyx_filter *f) {
    const struct part *p = newest_of(f);
    while (p->older) p = p->older;
    return p;
}

static inline bool in_part(const calyx_filter *f, const struct part *p,
                           uint64_t hash) {
    return f->kernel->has(p->body, &p->shape, hash);
}

/* May other threads, or another process, set bits while these are read? */
static inline bool is_shared(const struct calyx_filter *f) {
    return f->concurrent || f->lent;
}

/* Can it have no other memory than it has? */
static inline bool is_in_place(const struct calyx_filter *f) {
    return f->lent || f->open_small;
}

static inline bool is_static(const struct calyx_filter *f) {
    return f->kind->construction != NULL;
}

static inline bool is_counting(const struct calyx_filter *f) {
    return f->kind->counting != NULL;
}

/* Is a body more than the bits of its blocks? */
static inline bool has_counters(const struct kind *kind) {
    return kind->counter_bits != 0;
}

static inline uint64_t items_of(const struct part *p) {
    return __atomic_load_n(&p->items, __ATOMIC_RELAXED);
}

/* Count that many keys more in a part. */
static inline void count_items(const struct calyx_filter *f, struct part *p,
                               uint64_t more) {
    if (f->concurrent)
        __atomic_fetch_add(&p->items, more, __ATOMIC_RELAXED);
    else
        p->items += more;
}

/* What to return for a filter that is read-only. */
static inline calyx_status refuse_change(const calyx_filter *f) {
    return is_static(f) ? CALYX_CANNOT : CALYX_READ_ONLY;
}

static inline void lock_whole(const calyx_filter *f) {
    if (f->engine->lock) f->engine->lock(f);
}

static inline void unlock_whole(const calyx_filter *f) {
    if (f->engine->unlock) f->engine->unlock(f);
}

/* ---- Bytes in place: mapped.c -------------------------------------------- */

/* Was the file under this filter cut short? */
bool is_truncated(const calyx_filter *f);
/* Where the first range is that was found damaged, in the image; or 0. */
uint64_t damage_at(const calyx_filter *f);
/* Before all bits of a filter are read, or set: compare, or mark, all ranges.
 * Nothing for a filter in memory of its own. */
void verify_whole(const calyx_filter *f);
calyx_status mark_whole(calyx_filter *f);

/* ---- Parts: parts.c ------------------------------------------------------ */

/* Bytes of a body, and how many of them, at its start, hold the bits that
 * lookups read; counters follow. Both are multiples of 64. */
uint64_t body_bytes(const struct kind *kind, const struct shape *shape);
uint64_t bits_bytes(const struct kind *kind, const struct shape *shape);

/* The bytes of bits of a part and of those older than it. */
uint64_t row_bytes_to(const struct kind *kind, const struct part *p);

/* Are the counters of a part elsewhere than after its bits? */
bool is_in_pieces(const struct part *p);
/* Where a byte of a body is. *size becomes the number of bytes that follow each
 * other there, itself among them, or stays if these are more: a body may lie in
 * two pieces. */
uint8_t *body_at(const calyx_filter *f, const struct part *p, uint64_t from,
                 size_t *size);
/* Copy bytes of it, or to it. */
void get_from_body(const calyx_filter *f, const struct part *p, uint64_t from,
                   uint8_t *to, size_t size);
void put_to_body(const calyx_filter *f, const struct part *p, uint64_t from,
                 const uint8_t *bytes, size_t size);

/* Memory of a filter: for bodies, for structs, which need no line of their own;
 * and released. */
void *take_block(const calyx_memory *memory, size_t size);
void *take_struct(const calyx_memory *memory, size_t size);
void give_block(const calyx_memory *memory, void *block, size_t size);

/* A body in one block. */
bool take_whole_body(const calyx_filter *f, struct part *p);
void give_whole_body(const calyx_filter *f, struct part *p);

/* A part like this one, with a body of zeros; NULL without memory. */
struct part *make_part(const calyx_filter *f, const struct part *like);
/* Give the filter such a part, or one with a body that is lent. */
calyx_status allocate_part(struct calyx_filter *f, const struct part *like);
calyx_status borrow_part(struct calyx_filter *f, const struct part *like,
                         uint8_t *body);

/* Before the filter is freed: the body of its first part stays whose it is. */
void return_first_part(calyx_filter *f);

/* The memory of a part that the filter no longer has. */
void free_part(const struct calyx_filter *f, struct part *p);
void free_newest(calyx_filter *f);

/* What a filter is, apart from its parts, comment and image; and what a part
 * is, apart from its body and the next. Other threads may be adding. */
struct calyx_filter head_of(const struct calyx_filter *f);
struct part like_part(const struct part *p);

/* Allocate a filter with this head, without parts. */
calyx_status allocate_head(const struct calyx_filter *head, calyx_filter **out);
/* The memory of the head and of the parts' structs, without bodies. */
void give_structs(struct calyx_filter *f);

/* ---- What engines share -------------------------------------------------- */

/* A step over the hashes of a list by what an engine does with a batch. */
typedef size_t has_batch_function(const calyx_filter *f, struct batch batch,
                                  bool *found);
size_t has_in_batches(const calyx_filter *f, const struct key_list *keys,
                      bool *found, has_batch_function *has_batch,
                      bool kernel_hashes);
/* Is it faster if the kernel hashes numbers while it waits for memory? */
bool should_kernel_hash(const calyx_filter *f, const struct part *p,
                        const struct key_list *keys);
bool is_large(const calyx_filter *f, const struct part *p);

/* Of filters with one part that never changes. */
bool bits_has(const calyx_filter *f, uint64_t hash);
size_t bits_has_many(const calyx_filter *f, const struct key_list *keys,
                     bool *found);

/* Of layers, exact or not. */
calyx_status take_layer(calyx_filter *f);
void link_layers(calyx_filter *f);
calyx_status refuse_add(calyx_filter *f, uint64_t hash, bool *fresh);
calyx_status refuse_add_some(calyx_filter *f, struct key_window *w, bool *fresh,
                             size_t *done);
bool fill_layer_hint(const calyx_filter *f, struct prefetch_hint *hint);

/* Of bits, striped and chains. */
calyx_status remove_from_parts(calyx_filter *f, uint64_t hash,
                               enum removal *became);
calyx_status remove_batch_from_parts(calyx_filter *f, struct key_window *w,
                                     bool *found, size_t *removed);
uint32_t count_in_parts(const calyx_filter *f, uint64_t hash);
bool are_parts_intact(const calyx_filter *f, uint64_t hash);
void describe_parts(const calyx_filter *f, const uint64_t *counts,
                    calyx_info *info);
calyx_status check_alike_parts(const calyx_filter *a, const calyx_filter *b,
                               calyx_error *why);
calyx_status check_shape(const struct part *p, const struct part *q,
                         calyx_error *why);

/* Add a part after one that is full, unless another thread did. */
calyx_status grow(struct calyx_filter *f, struct part *full);
/* Choose capacity, rate and shape of the part to follow the `last` one; false
 * if no more keys can be promised. */
bool plan_growth(const struct calyx_filter *f, const struct part *last,
                 struct part *next);

/* ---- Rates --------------------------------------------------------------- */

/* The rate to expect of a part with this number of keys: the rate of its bits,
 * and n / 2^64 for absent keys with the hash of one of n keys. */
double expected_rate(const struct kind *kind, const struct shape *shape,
                     double items);

/* How many keys would set this many bits of the part. */
double keys_for_bits(const struct kind *kind, const struct shape *shape,
                     uint64_t set);
/* The same, given the share of bits that are not set. */
double keys_for_unset(const struct kind *kind, const struct shape *shape,
                      double unset);
/* The same for a part as it is, rounded. */
uint64_t keys_by_bits(const struct kind *kind, const struct part *p);
double bits_of_key(const struct kind *kind, const struct shape *shape);
uint64_t count_bits(const struct kind *kind, const struct part *p);

#endif
