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
 * A row: addresses for what grows at its end, and need not move for that. What
 * is not in use takes addresses, but no memory.
 */
struct memory_row {
    char *at; /* NULL: there is none                         */
    size_t size;
    size_t ready;      /* bytes that may be read and written          */
    size_t huge_from;  /* bytes in use                                */
    bool begins_small; /* the first 2 MiB are on small pages          */
};
enum { ROWS_MOST = 4096 };
/* False if there are no addresses to spare, or that many rows. It lies on huge
 * pages, the first 2 MiB only once `huge_from` bytes are in use. */
bool memory_make_row(struct memory_row *row, size_t size, size_t huge_from);
/* Let its first bytes be used. Those that were not before are zeros. */
bool memory_extend_row(struct memory_row *row, size_t to);
/* Bytes from here on are not in use any longer. */
void memory_shrink_row(struct memory_row *row, size_t to);
void memory_end_row(struct memory_row *row);

#endif
