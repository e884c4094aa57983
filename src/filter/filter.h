/*
 * The filter: a short chain of parts of one kind, newest first. A fixed filter
 * has one part. A growing one takes another, larger one each time the last is
 * full; a key is in the filter if it is in any part. The parts of a static
 * filter are its layers, the first of which is the oldest part; a key is in the
 * filter if the first layer that has not bumped it has it.
 */
#ifndef CALYX_FILTER_H
#define CALYX_FILTER_H

#include <calyx/calyx.h>

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
    union {
        struct part *next_layer; /* of a static filter; NULL in the last     */
        uint8_t *lines; /* of a table: where the counters are that follow the
                           bits, if not behind these; else NULL: see body_at */
    };
};

/* Ranges of bytes that a filter uses in place, each under a checksum, as far as
 * this layer must know of them; store/ranges.c does the rest. The numbers are
 * atomic. */
struct ranges {
    uint64_t unverified; /* not compared with their checksums yet            */
    uint64_t damaged;    /* found not to match                               */
    uint64_t damage_at;  /* where the first of these is, in the image; or 0  */
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
    const struct kind *kind;
    const struct kernel *kernel;
    const struct hash *hash;
    struct secret secret;
    calyx_memory memory;
    struct part *newest;      /* published whole: readers may be on their way */
    struct part *first_layer; /* of a static filter; else NULL */
    struct filter_table *table; /* of kinds with `is_segment`; else NULL */
    struct stripes *stripes; /* of a concurrent filter whose keys have one block
                                each; else NULL */
    double fpr, growth;
    bool strict, concurrent;
    bool read_only;    /* a view, mapped for reading, or static */
    bool special;      /* has an image, a table or an allow list: one branch on
                          the path of single keys; see note_special */
    bool open_small;   /* by calyx_open_small: it can have no other memory */
    uint8_t live_slot; /* in a calyx_live, if it is in one */
    char *comment;     /* COMMENT_BYTES of memory, or NULL */
    struct properties *properties; /* or NULL */
    struct allow_list *allowed;    /* or NULL; see allow_list.h */

    /* A filter whose bodies are part of a larger piece of memory, lent to it.
     * Who lent them takes them back by `release`. */
    void *image;
    struct ranges *ranges; /* of the image; else NULL */
    calyx_status (*release)(calyx_filter *f, calyx_error *why);
    /* A word of the image that reads 0 once its file was cut short; else NULL.
     * Then zeros may stand where bits were set, and no answer is certain. */
    const uint64_t *guard;
};

enum {
    COMMENT_BYTES = 1001,
    PROPERTIES_BYTES = 4096, /* of all of them, at most       */
    PROPERTY_NAME_BYTES = 64 /* at most, without a byte 0     */
};

/* Small named texts, as the records that a file has of them. */
struct properties {
    uint32_t bytes; /* of records */
    uint8_t records[];
};

/* Are these bytes records that are sound? */
bool are_records(const uint8_t *bytes, uint32_t size);
calyx_status set_records(struct calyx_filter *f, const uint8_t *bytes,
                         uint32_t size);
calyx_status copy_properties(struct calyx_filter *to,
                             const struct calyx_filter *from);
void drop_properties(struct calyx_filter *f);
/* Comment and properties. */
calyx_status copy_texts(struct calyx_filter *to,
                        const struct calyx_filter *from);
void move_properties(struct calyx_filter *f, calyx_move_function *move,
                     void *context);

/* What options come to: the head of a filter, without parts, and the first. */
calyx_status plan_filter(const calyx_options *want, struct calyx_filter *head,
                         struct part *first, calyx_error *why);

/* Fails with a text that says what to do instead if filters of this kind cannot
 * be `done`: "merged". */
calyx_status check_can(const struct kind *kind, uint32_t ability,
                       const char *done, calyx_error *why);

/* Do two filters set the same bits for a key, if their shapes are alike? */
calyx_status check_same_hash(const calyx_filter *a, const calyx_filter *b,
                             calyx_error *why);

/* Choose capacity, rate and shape of the part to follow the `last` one; false
 * if no more keys can be promised. */
bool plan_growth(const struct calyx_filter *f, const struct part *last,
                 struct part *next);

/* Bytes of a body, and how many of them, at its start, hold the bits that
 * lookups read; counters follow. Both are multiples of 64. */
uint64_t body_bytes(const struct kind *kind, const struct shape *shape);
uint64_t bits_bytes(const struct kind *kind, const struct shape *shape);

/* Are the counters of a part elsewhere than behind its bits? */
bool is_in_pieces(const calyx_filter *f, const struct part *p);
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

/* Give the filter a part like this one, with a body of zeros, or a lent one. */
calyx_status allocate_part(struct calyx_filter *f, const struct part *like);
calyx_status borrow_part(struct calyx_filter *f, const struct part *like,
                         uint8_t *body);

/* The memory of a part that the filter no longer has. */
void free_part(const struct calyx_filter *f, struct part *p);

/* The memory of the head and of the parts' structs, without bodies. */
void give_structs(struct calyx_filter *f);

/* What a filter is, apart from its parts, comment and image; and what a part
 * is, apart from its body and the next. Other threads may be adding. */
struct calyx_filter head_of(const struct calyx_filter *f);
struct part like_part(const struct part *p);

/* Allocate a filter with this head, without parts. */
calyx_status allocate_head(const struct calyx_filter *head, calyx_filter **out);

/* Add a part after one that is full, unless another thread did. */
calyx_status grow(struct calyx_filter *f, struct part *full);

/* Before and after the bits of a filter are read as a whole: do they match
 * their checksums, and were they all there? */
calyx_status check_whole(const struct calyx_filter *f, calyx_error *why);

/* Choose the kernel by name (NULL for the best). */
calyx_status choose_kernel(const char *name, struct calyx_filter *f,
                           calyx_error *why);

static inline struct part *newest_of(const struct calyx_filter *f) {
    return __atomic_load_n(&f->newest, __ATOMIC_ACQUIRE);
}

static inline const struct part *first_part(const struct calyx_filter *f) {
    const struct part *p = newest_of(f);
    while (p->older) p = p->older;
    return p;
}

/* Was the file under this filter cut short? */
static inline bool is_truncated(const struct calyx_filter *f) {
    return f->guard && __atomic_load_n(f->guard, __ATOMIC_RELAXED) == 0;
}

/* Must a key's ranges be looked at before its bits are? */
static inline bool may_be_damaged(const struct calyx_filter *f) {
    return f->ranges &&
           (__atomic_load_n(&f->ranges->unverified, __ATOMIC_ACQUIRE) ||
            __atomic_load_n(&f->ranges->damaged, __ATOMIC_RELAXED));
}

/* May other threads, or another process, set bits while these are read? */
static inline bool is_shared(const struct calyx_filter *f) {
    return f->concurrent || f->image;
}

/* After one of the three was set, or dropped. */
static inline void note_special(struct calyx_filter *f) {
    f->special = f->image || f->table || f->allowed;
}

static inline bool is_static(const struct calyx_filter *f) {
    return f->kind->construction != NULL;
}

static inline bool is_counting(const struct calyx_filter *f) {
    return f->kind->count != NULL;
}

/* Is a body more than the bits of its blocks? */
static inline bool has_counters(const struct kind *kind) {
    return kind->counter_bits != 0;
}

/* Is there a limit to the number of keys in the newest part? */
static inline bool is_bounded(const struct calyx_filter *f) {
    return f->growth > 0 || f->strict;
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

/* Put bits of another body, which may be shared, into this one. */
void or_bits(uint8_t *body, const uint8_t *other, uint64_t bytes);

/* The rate to expect of a part with this number of keys: that of its bits, and
 * n / 2^64 for absent keys with the hash of one of n keys. */
double expected_rate(const struct kind *kind, const struct shape *shape,
                     double items);

/* How many keys would set this many bits of the part. */
double keys_for_bits(const struct kind *kind, const struct shape *shape,
                     uint64_t set);
/* The same, given the share of bits that are not set. */
double keys_for_unset(const struct kind *kind, const struct shape *shape,
                      double unset);
double bits_of_key(const struct kind *kind, const struct shape *shape);
uint64_t count_bits(const struct kind *kind, const struct part *p);

/* As calyx_describe, given the bits set in each part, the oldest first; NULL
 * counts them. */
void describe_bits(const struct calyx_filter *f, const uint64_t *counts,
                   calyx_info *info);

#endif
