/*
 * Commands of a replication stream or an AOF, in the words of RedisBloom: read
 * as it reads them, and written so that it understands them.
 *
 * A stream does not say which module wrote it. But filters of our own layouts
 * are made in it by words that RedisBloom does not have (LAYOUT, KIND, SEED),
 * and the filters of valkey-bloom by words that only it has (TIGHTENING, SEED
 * with 32 bytes). Where these are missing, the filter is one of RedisBloom's,
 * or one of its layout that was made here, which is the same. So all sides can
 * be replaced by each other, with any settings.
 */
#ifndef CALYX_MODULE_REPLICATE_H
#define CALYX_MODULE_REPLICATE_H

#include "command/items.h"
#include "command/options.h"
#include "layout/layout.h"
#include "server/api.h"

/* Read BF.RESERVE or BF.INSERT by RedisBloom's grammar, as all its versions
 * together accept it. False if that is not possible: then it is one of ours. */
bool redisbloom_parse_reserve(RedisModuleString **argv, int argc,
                              struct options *out);
bool redisbloom_parse_insert(RedisModuleString **argv, int argc,
                             struct options *out);

/* What BF.ADD or BF.MADD makes in a stream, where it makes a filter. */
struct filter_params redisbloom_params(void);

/* Replicate that a filter of another module's layout was emptied, or replaced
 * another, by words that the module's server knows. The key expires then, in
 * Unix time in milliseconds; never if that is negative. */
void replicate_clear_plainly(RedisModuleCtx *ctx, RedisModuleString *name,
                             const struct filter *f, long long expires);
void replicate_swap_plainly(RedisModuleCtx *ctx, RedisModuleString *live,
                            RedisModuleString *staged, long long expires);

/* Replicate what was loaded into such a filter: its header, and the bytes of
 * its bodies that end at iterator `at`, with all bits that are set there.
 * RedisBloom puts them in the place of those that it has. */
void replicate_chain_header(RedisModuleCtx *ctx, RedisModuleString *name,
                            const struct chain *c);
void replicate_chain_chunk(RedisModuleCtx *ctx, RedisModuleString *name,
                           const struct chain *c, int64_t at, size_t size);

/* Replicate a filter that was made by `params`, and then got n items; a cuckoo
 * filter gets none. */
void replicate_new(RedisModuleCtx *ctx, RedisModuleString *name,
                   const struct filter *f, const struct filter_params *params,
                   RedisModuleString **items, size_t n);

#endif
