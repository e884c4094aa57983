/* Between valkey_bloom.c and valkey_codec.c. */
#ifndef CALYX_FOREIGN_VALKEY_BLOB_H
#define CALYX_FOREIGN_VALKEY_BLOB_H

#include "foreign/valkey_bloom.h"

/* A filter without parts, which nobody may use yet; and one part more for it,
 * with a blob of its own if it has none. The filter owns the blob then. */
calyx_status valkey_blank(const struct valkey_params *params,
                          const calyx_memory *memory, struct valkey_bloom **out,
                          calyx_error *why);
calyx_status valkey_push(struct valkey_bloom *v, struct valkey_part *p,
                         calyx_error *why);

/* What stands before the bits. */
void valkey_put_blob_head(uint8_t *blob, const struct valkey_part *p,
                          const uint8_t *seed);

#endif
