/* What the files cf_*.c share: options, keys, replication. */
#ifndef CALYX_MODULE_CF_H
#define CALYX_MODULE_CF_H

#include "command/open_key.h"
#include "cuckoo/cuckoo.h"
#include "server/api.h"

/* ---- Options ------------------------------------------------------------- */

struct cf_options {
    struct cuckoo_params params;
    bool no_create;
    int items; /* index of the first item; 0 if there is none */
};

/* NULL, or the text of an error; "" for a wrong number of arguments. The texts
 * are RedisBloom's, and stay valid until the next call. Clients have to say
 * words whole. What is `replayed` is read as RedisBloom reads it. */
const char *cf_parse_reserve(RedisModuleString **argv, int argc, bool replayed,
                             struct cf_options *out);
const char *cf_parse_insert(RedisModuleString **argv, int argc, bool replayed,
                            struct cf_options *out);

/* What a filter is made of that CF.ADD makes. */
struct cuckoo_params cf_default_params(bool replayed);

/* Replicate that a filter was made, with every parameter. */
void cf_replicate_new(RedisModuleCtx *ctx, RedisModuleString *name,
                      const struct cuckoo *c,
                      const struct cuckoo_params *params);

/* ---- Keys ---------------------------------------------------------------- */

/* As find_filter, with the flags of open_key.h, for a cuckoo filter. One that
 * a replayed command uses is complete, whatever is missing: see
 * command/replicate.h. */
bool cf_find(RedisModuleCtx *ctx, RedisModuleString *name, unsigned flags,
             struct cuckoo **c);

/* The same for a key that is open. */
bool cf_accept(RedisModuleCtx *ctx, enum key_type type, unsigned flags,
               struct cuckoo *c);

/* The filter under a key if it has this life, else NULL: for the next step. */
struct cuckoo *cf_find_again(RedisModuleCtx *ctx, RedisModuleString *name,
                             uint64_t life);

/* Make a filter under a key that is empty and open for writing. On failure:
 * reply and return NULL. */
struct cuckoo *cf_create(RedisModuleCtx *ctx, RedisModuleKey *key,
                         const struct cuckoo_params *params);

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
void cf_prefetch_next(const struct cuckoo *c);

#endif
