/* What BF.MERGE, its steps and BF.SIMILARITY share: native filters whose bits
 * are laid over each other, in steps. */
#ifndef CALYX_MODULE_OVERLAY_H
#define CALYX_MODULE_OVERLAY_H

#include "layout/layout.h"
#include "server/api.h"

/* Can its bits be laid over the bits of another? Else replies; `which` names
 * it.
 */
bool is_mergeable(RedisModuleCtx *ctx, const struct filter *f,
                  const char *which);

/* Find the filter under a key that must hold such a one. Else replies and
 * returns NULL. */
struct filter *find_mergeable(RedisModuleCtx *ctx, RedisModuleString *name,
                              const char *which);

/* The bytes of bits in a step, of each of two filters. A counting filter has
 * four times as many bytes of counters. */
uint64_t step_bytes(const struct filter *f);
/* Of all sources that may be merged at once, without steps. */
uint64_t bytes_at_once(const struct filter *f);
/* Is each item in one place of a table that grows? */
bool grows_in_place(const struct filter *f);
uint64_t row_bytes(const struct filter *f);

/* Delete a target that a failed command has made: half of it is no use. */
void delete_target(RedisModuleCtx *ctx, RedisModuleString *name);

/* After a step that changed a target: after the last the filter is complete. */
void end_step(RedisModuleCtx *ctx, RedisModuleString *name,
              struct filter *target, bool last);

/* Put a copy of a filter under a missing key, in steps (bf_copypart.c). `argv`
 * begins with the command, the target and the source. */
int copy_in_steps(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                  RedisModuleKey *key, const struct filter *source);

/* Count a step over that many bytes for INFO. */
void count_step(const struct filter *f, uint64_t bytes);

#endif
