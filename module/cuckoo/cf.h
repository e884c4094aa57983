/* What the files cf_*.c share: options, keys, replication. */
#ifndef CALYX_MODULE_CF_H
#define CALYX_MODULE_CF_H

#include "command/open_key.h"
#include "cuckoo/cuckoo.h"
#include "server/api.h"

/*
 * CF commands work on filters in two layouts:
 *
 *     redisbloom   RedisBloom's cuckoo filters, byte for byte: cuckoo.h
 *     native       native filters that items can be deleted from
 *                  (layout/layout.h), which BF commands work on, too
 *
 * A key has one of the two, or neither if it is missing.
 */
struct cf_filter {
    struct cuckoo *cuckoo;
    struct filter *native;
};

static inline bool cf_is_missing(struct cf_filter f) {
    return !f.cuckoo && !f.native;
}

/* ---- Options ------------------------------------------------------------- */

/* How to make a filter. */
struct cf_params {
    bool is_native;
    struct cuckoo_params cuckoo; /* unless it is native          */
    struct filter_params native; /* if it is; see layout/layout.h */
};

struct cf_options {
    struct cf_params params;
    bool no_create;
    int items; /* index of the first item; 0 if there is none */
};

/* Those that RedisBloom does not have, for COMMAND DOCS. */
#define CF_OPTIONS                                                     \
    OPTION(DOUBLE, "ERROR", "error"), OPTION(INTEGER, "SEED", "seed"), \
        OPTION(STRING, "LAYOUT", "layout")

/* NULL, or the text of an error; "" for a wrong number of arguments. The texts
 * are RedisBloom's, and stay valid until the next call. Clients have to say
 * words whole. What is `replayed` is read as RedisBloom reads it. */
const char *cf_parse_reserve(RedisModuleString **argv, int argc, bool replayed,
                             struct cf_options *out);
const char *cf_parse_insert(RedisModuleString **argv, int argc, bool replayed,
                            struct cf_options *out);

/* What a filter is made of that CF.ADD makes. */
struct cf_params cf_default_params(bool replayed);

/* Replicate that a filter was made, with every parameter. A stream or AOF makes
 * native ones by BF.RESERVE, with LAYOUT and KIND. */
void cf_replicate_new(RedisModuleCtx *ctx, RedisModuleString *name,
                      struct cf_filter f, const struct cf_params *params);

/* ---- Keys ---------------------------------------------------------------- */

/* What an open key holds: KEY_FILTER if CF commands work on it. */
enum key_type cf_type_of(RedisModuleKey *key, struct cf_filter *f);

/* As find_filter, with the flags of open_key.h, for what CF commands work on. A
 * cuckoo filter that a replayed command uses is complete, whatever is missing:
 * see command/replicate.h. */
bool cf_find(RedisModuleCtx *ctx, RedisModuleString *name, unsigned flags,
             struct cf_filter *f);

/* The same for a key that is open. */
bool cf_accept(RedisModuleCtx *ctx, enum key_type type, unsigned flags,
               struct cf_filter f);

/* The cuckoo filter under a key if it has this life, else NULL: for the next
 * step. */
struct cuckoo *cf_find_again(RedisModuleCtx *ctx, RedisModuleString *name,
                             uint64_t life);

/* Make a filter under a key that is empty and open for writing. On failure:
 * reply and return false. */
bool cf_create(RedisModuleCtx *ctx, RedisModuleKey *key,
               struct cf_params *params, struct cf_filter *f);

/* Before a change: true if no compaction is under way, or if it had to be
 * completed here, because the client cannot wait. False: wait for it, in
 * steps. */
bool cf_may_change(RedisModuleCtx *ctx, struct cuckoo *c);

/* The lines after which a step ends that does something of up to `of_one` lines
 * again and again. */
uint64_t cf_step_lines(uint64_t of_one);

/* A step of a compaction: true if there is none, or it is done. */
bool cf_compact_step(struct cuckoo *c);

/* Most commands use the same filter as the one before. So prefetch the item's
 * buckets there before the key is opened, and say afterwards which filter it
 * was. */
struct cuckoo_hash cf_hash(RedisModuleString *item);
void cf_prefetch_next(struct cf_filter f);

#endif
