/*
 * BF.DUMP and BF.RESTORE: native filters in chunks, for transfers that may
 * break off anywhere and go on later.
 *
 * wire/dump.h has the format.
 *
 * A filter that is loaded is `uncommitted` until BF.RESTORE COMMIT: it refuses
 * lookups, also on replicas and after a restart.
 */
#ifndef CALYX_MODULE_TRANSFER_H
#define CALYX_MODULE_TRANSFER_H

#include "layout/layout.h"
#include "server/api.h"
#include "wire/dump.h"

/* The number of chunks that have arrived. */
uint64_t chunks_here(const struct filter *f);

struct chunk {
    uint8_t *bytes; /* for RM_Free */
    size_t size;
    uint64_t sum;
};
struct chunk read_chunk(const struct filter *f, uint64_t number);

/* The commands that would bring an uncommitted filter to where it is. */
void transfer_rewrite(RedisModuleIO *io, RedisModuleString *key,
                      const struct filter *f);

/* After a filter came from an RDB file: find the sum again, if it needs one.
 * False if that number of bytes cannot have arrived. */
bool transfer_resume(struct filter *f);

#endif
