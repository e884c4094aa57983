/* Heads of filters, as BF.DUMP and BF.RESTORE have them: see wire/dump.h. */
#ifndef CALYX_TOOL_CHUNKS_H
#define CALYX_TOOL_CHUNKS_H

#include "tool.h"
#include "wire/dump.h"

/* The head as a server wants it, in memory of its own; and the filter that such
 * a head describes, without bits. */
uint8_t *head_of(const calyx_filter *f, size_t *size);
calyx_status filter_of_head(const uint8_t *head, size_t size,
                            calyx_filter **out, calyx_error *why);

/* Do they describe the same filter, whatever else a server notes there? */
bool are_heads_of_one(const uint8_t *a, size_t size_a, const uint8_t *b,
                      size_t size_b);

#endif
