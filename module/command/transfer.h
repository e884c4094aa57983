/*
 * BF.DUMP and BF.LOAD: native filters in chunks, for transfers that may break
 * off anywhere and go on later.
 *
 * The bits of a filter are one row, and a chunk is 1 MiB of it, the last one
 * less; so it is known of any filter which chunks it has. Each has a checksum,
 * XXH64 with seed 0; and a sum is made of all, in order, so that the whole can
 * be verified without being read again:
 *
 *     sum = 0;  for each chunk:  sum = XXH64(sum, XXH64(chunk))
 *
 * with both numbers as 8 little-endian bytes. In commands they are written as
 * 16 hexadecimal digits.
 *
 * A filter that is loaded is `uncommitted` until it is told to commit, and so
 * answers no question, on replicas and after a restart as here.
 */
#ifndef CALYX_MODULE_TRANSFER_H
#define CALYX_MODULE_TRANSFER_H

#include "layout/layout.h"
#include "server/api.h"

/* The commands that would bring an uncommitted filter to where it is. */
void transfer_rewrite(RedisModuleIO *io, RedisModuleString *key,
                      const struct filter *f);

/* After a filter came from an RDB file: find the sum again, if it needs one.
 * False if so many bytes cannot have arrived. */
bool transfer_resume(struct filter *f);

#endif
