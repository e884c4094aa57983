/* What BF.MERGE and BF.SIMILARITY share: native filters whose bits are laid
 * over each other, in steps. */
#ifndef CALYX_MODULE_OVERLAY_H
#define CALYX_MODULE_OVERLAY_H

#include "layout/layout.h"
#include "server/api.h"

/* Can its bits be laid over those of another? Else replies; `which` names it.
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
uint64_t row_bytes(const struct filter *f);

/* Count a step over that many bytes for INFO. */
void count_step(const struct filter *f, uint64_t bytes);

#endif
