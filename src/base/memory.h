/* Where memory comes from when the caller does not say. */
#ifndef CALYX_MEMORY_H
#define CALYX_MEMORY_H

#include <calyx/calyx.h>

enum { ALIGNMENT = 64 }; /* of bodies: a cache line, and the widest register */

/* malloc for what is small. Large blocks come straight from the system, so that
 * a page is paid for when it is first written. */
extern const calyx_memory memory_default;

/* Does a block of this size from memory_default lie on huge pages, as far as
 * the system grants them? */
bool memory_is_huge(size_t size);

/* The bytes that memory_default unmaps when it releases a block of this size; 0
 * if it does not unmap. So a mapping of as many can take the place of one. */
size_t memory_mapped_bytes(size_t size);

#endif
