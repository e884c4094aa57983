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

/*
 * Blocks that follow each other, for a table that grows: they share huge pages,
 * where each block by itself would have its end on small ones, and a block
 * under 2 MiB all of it. What is left is reserved for those that follow, which
 * takes addresses, but no memory. All zero to begin with.
 */
struct memory_row {
    void *at;
    size_t left;
    size_t ready; /* of what is left: may be written */
};
/* A block of zeros; NULL if it is small, or there are no addresses: then take
 * it elsewhere. */
void *memory_take_next(struct memory_row *row, size_t size);
void memory_give_from_row(void *block, size_t size);
/* Release what is left. The blocks stay. */
void memory_end_row(struct memory_row *row);

#endif
