/* Cuckoo filters as values of the server: type `MBbloomCF`, RedisBloom's. */
#ifndef CALYX_MODULE_CUCKOO_TYPE_H
#define CALYX_MODULE_CUCKOO_TYPE_H

#include "cuckoo/cuckoo.h"
#include "server/api.h"
#include "type.h"

int cuckoo_type_register(RedisModuleCtx *ctx);

/* What a key holds: KEY_FILTER if it is a cuckoo filter. */
enum key_type cuckoo_type_of(RedisModuleKey *key, struct cuckoo **c);

/* Put a new filter under a key, which is open for writing. */
void cuckoo_attach(RedisModuleKey *key, struct cuckoo *c);

/* Update the statistics after a change. */
void cuckoo_note(struct cuckoo *c);

/* Of all cuckoo filters. Another thread may free some. */
struct cuckoo_totals {
    uint64_t filters, bytes, items;
};
struct cuckoo_totals cuckoo_totals(void);

#endif
