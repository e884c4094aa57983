/*
 * Cuckoo filters in RedisBloom's layout (Fan, Andersen, Kaminsky, Mitzenmacher
 * 2014: "Cuckoo Filter: Practically Better Than Bloom"). Nothing in cuckoo.c,
 * cuckoo_compact.c and cuckoo_dump.c knows a server: they work on bytes.
 *
 * A filter is a list of parts. A part is a table of buckets, a bucket a few
 * slots, a slot one byte: 0 if it is free, else a fingerprint from 1 to 255. An
 * item has two buckets in each part, and its fingerprint is in one of them. If
 * both are full, others are moved to their second bucket; if that does not help
 * either, a part is added, `expansion` times as large as the last.
 *
 * Commands see such a filter through layout/cuckoo_layout.c.
 *
 * Statuses, error texts and memory are as in calyx.h: a failed call changes
 * nothing, and explains why. The hash has no seed, as this layout wants it:
 * whoever chooses the items can choose false positives.
 */
#ifndef CALYX_MODULE_CUCKOO_H
#define CALYX_MODULE_CUCKOO_H

#include <calyx/calyx.h>

/* ---- The layout ---------------------------------------------------------- */

enum {
    CUCKOO_MOST_BUCKET_SIZE = 255,
    CUCKOO_MOST_ITERATIONS = 65535,
    CUCKOO_MOST_EXPANSION = 32768,
    CUCKOO_MOST_PARTS = 65535
};

/* Of one part. RedisBloom uses only 32 bits of an offset, and so loses items in
 * larger ones. */
#define CUCKOO_MOST_PART_BYTES (UINT64_C(1) << 32)

struct cuckoo_part {
    uint8_t *slots;
    uint64_t buckets; /* a power of two */
};

/* Where a compaction is; see cuckoo_compact.c. */
struct compaction {
    uint32_t part; /* that is being emptied; 0: no compaction is under way */
    bool whole;    /* go on with the next part if this cannot be emptied    */
    bool left;     /* it cannot                                             */
    uint64_t at;   /* slots of it that are done                             */
};

/* Written only by cuckoo*.c; defragmentation may move `part` and `slots`. */
struct cuckoo {
    struct cuckoo_part *part; /* oldest first */
    uint32_t parts;
    uint32_t held; /* those that have memory: the parts, and empty ones after
                      them that a compaction has dropped                     */
    uint32_t room; /* those that fit into the memory of `part`               */
    uint16_t bucket_size, iterations;
    uint16_t expansion; /* a power of two; 0: it does not grow               */
    struct compaction compaction;
    uint64_t items;   /* slots that are in use                               */
    uint64_t claimed; /* what the header of a dump says of them, until the
                         dump has arrived                                    */
    uint64_t deletes; /* since the last compaction                           */
    uint64_t bytes;   /* slots of all parts                                  */
    uint64_t arrived; /* of them those that are there: all, except while a
                         dump is being loaded, chunk by chunk                */
    calyx_memory memory;
};

/* ---- Making -------------------------------------------------------------- */

struct cuckoo_params {
    uint64_t capacity; /* at least twice the bucket size */
    uint32_t bucket_size, iterations, expansion;
};

calyx_status cuckoo_new(const struct cuckoo_params *params,
                        const calyx_memory *memory, struct cuckoo **out,
                        calyx_error *why);
calyx_status cuckoo_copy(const struct cuckoo *c, struct cuckoo **out,
                         calyx_error *why);
void cuckoo_free(struct cuckoo *c); /* NULL is fine */

/* ---- Items --------------------------------------------------------------- */

struct cuckoo_hash {
    uint64_t first, second;
    uint8_t fingerprint;
};
struct cuckoo_hash cuckoo_hash_of(const void *item, size_t size);

static inline bool cuckoo_is_partial(const struct cuckoo *c) {
    return c->arrived < c->bytes;
}

/* Do not look items up in a partly loaded filter, and do not change it: that
 * would give false negatives. */
bool cuckoo_has(const struct cuckoo *c, struct cuckoo_hash h);
size_t cuckoo_has_many(const struct cuckoo *c, const calyx_key *items, size_t n,
                       bool *found);

/* How often its fingerprint is there: at least as often as it was added. If
 * both buckets are one, each is counted twice, as RedisBloom does. */
uint64_t cuckoo_count(const struct cuckoo *c, struct cuckoo_hash h);

/* Add an item, again if it is there. `*lines` grows by the cache lines that
 * were touched. CALYX_FULL: it may not grow. CALYX_CANNOT: it should grow, but
 * the next part would be too large. */
calyx_status cuckoo_add(struct cuckoo *c, struct cuckoo_hash h, uint64_t *lines,
                        calyx_error *why);

/* Remove a fingerprint of this item. False if there is none. */
bool cuckoo_remove(struct cuckoo *c, struct cuckoo_hash h);

/* A filter that must not be full, though it may not grow, grows from now on. */
void cuckoo_let_grow(struct cuckoo *c);

/* Where the newest part is. It may be stale: it is only used to prefetch. */
struct cuckoo_hint {
    const uint8_t *slots;
    uint64_t mask;
    uint32_t bucket_size;
};
struct cuckoo_hint cuckoo_hint_of(const struct cuckoo *c);

static inline void cuckoo_prefetch(const struct cuckoo_hint *hint,
                                   struct cuckoo_hash h) {
    __builtin_prefetch(hint->slots +
                       (h.first & hint->mask) * hint->bucket_size);
    __builtin_prefetch(hint->slots +
                       (h.second & hint->mask) * hint->bucket_size);
}

/* ---- Compaction ---------------------------------------------------------- */

/* RedisBloom compacts after a deletion when this is true. */
bool cuckoo_wants_compaction(const struct cuckoo *c);

/* Begin to move fingerprints to older parts; those that become empty are
 * dropped. `whole` as CF.COMPACT does it, else as after a deletion. Between two
 * steps lookups are right, but nothing may be changed, dumped or saved. */
void cuckoo_compact(struct cuckoo *c, bool whole);

static inline bool cuckoo_is_compacting(const struct cuckoo *c) {
    return c->compaction.part != 0;
}

/* Go on until about `most_lines` cache lines were touched. Returns how many
 * were. Frees nothing, so that a child of the server can do it, too. */
uint64_t cuckoo_compact_step(struct cuckoo *c, uint64_t most_lines);

/* Complete a compaction. */
void cuckoo_finish_compaction(struct cuckoo *c);

/* Free the parts that were dropped. */
void cuckoo_trim(struct cuckoo *c);

/* ---- The whole filter ---------------------------------------------------- */

/* The numbers of a filter: its own, or what a header or an RDB file says, of
 * which nothing can be trusted. Buckets are the buckets of the first part. */
struct cuckoo_numbers {
    uint64_t items, buckets, deletes, parts, bucket_size, iterations, expansion;
};
struct cuckoo_numbers cuckoo_describe(const struct cuckoo *c);

/* Bytes, by RedisBloom's structs. */
uint64_t cuckoo_size(const struct cuckoo *c);

/* A hash of everything that is saved: equal filters have equal ones. */
uint64_t cuckoo_digest(const struct cuckoo *c);

/* ---- Dumps: CF.SCANDUMP, CF.LOADCHUNK ------------------------------------ */

/* A dump is a header with all numbers, then the slots of all parts in chunks,
 * each with a position: the bytes up to its end, plus 1. */
enum { CUCKOO_HEADER = 38, CUCKOO_ENCODING = 4 }; /* of RDB files */
#define CUCKOO_MOST_CHUNK ((size_t)16 << 20)

void cuckoo_dump_header(const struct cuckoo *c, uint8_t header[CUCKOO_HEADER]);

/* The chunk that begins at `*at`, which becomes the position that goes with it.
 * It does not go over the end of a part. NULL, and 0 in both, when there is
 * none. Of a partial filter only what has arrived. */
const void *cuckoo_dump_chunk(const struct cuckoo *c, int64_t *at,
                              size_t *size);

struct cuckoo_numbers cuckoo_read_header(const uint8_t header[CUCKOO_HEADER]);

/* Refuse what no filter can be. `*bytes`: slots of all its parts. */
calyx_status cuckoo_check(const struct cuckoo_numbers *is, uint64_t *bytes,
                          calyx_error *why);

/* Buckets of a part of a filter that was checked. */
uint64_t cuckoo_claimed_buckets(const struct cuckoo_numbers *is,
                                uint32_t number);

/* A filter with these numbers and no parts, which nobody may use yet; and a
 * part more for it, with slots that are all free unless they are given. The
 * filter owns them then. */
calyx_status cuckoo_blank(const struct cuckoo_numbers *is,
                          const calyx_memory *memory, struct cuckoo **out,
                          calyx_error *why);
calyx_status cuckoo_push(struct cuckoo *c, uint64_t buckets, uint8_t *slots,
                         calyx_error *why);

/* Make a filter of a header: partial, until its chunks have come. One without
 * items is complete. */
calyx_status cuckoo_load_header(const struct cuckoo_numbers *is,
                                const calyx_memory *memory, struct cuckoo **out,
                                calyx_error *why);

/* Put bytes in their place. Chunks must come without gaps; one may come again.
 * `*changed` says whether anything did. */
calyx_status cuckoo_load_chunk(struct cuckoo *c, int64_t at, const void *bytes,
                               size_t size, bool *changed, calyx_error *why);

/* Take a partial filter for a complete one. */
void cuckoo_accept(struct cuckoo *c);

/* ---- Between cuckoo*.c --------------------------------------------------- */

/* The second bucket of a fingerprint in bucket `hash`, and the other way
 * round. */
static inline uint64_t cuckoo_other(uint8_t fingerprint, uint64_t hash) {
    return hash ^ fingerprint * UINT64_C(0x5BD1E995);
}

/* The first slot of this value in either bucket; NULL if there is none. */
uint8_t *cuckoo_slot(const struct cuckoo *c, const struct cuckoo_part *p,
                     uint8_t value, uint64_t first, uint64_t second);

static inline uint64_t cuckoo_part_bytes(const struct cuckoo *c,
                                         const struct cuckoo_part *p) {
    return p->buckets * c->bucket_size;
}

/* Slots that are in use. */
uint64_t cuckoo_used(const uint8_t *slots, uint64_t n);

/* Set the error and return the status. */
calyx_status cuckoo_fail(calyx_error *why, calyx_status status,
                         const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
