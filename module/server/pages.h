/* The pages that large blocks lie on. */
#ifndef CALYX_MODULE_PAGES_H
#define CALYX_MODULE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The whole pages in a block. */
struct page_span {
    char *at, *end;
};
struct page_span whole_pages(void *block, size_t size);

/* Fill a new block with zeros: by fresh pages where the system has them. False
 * if it has not; the block is then unchanged. */
bool pages_clear(void *block, size_t size);

/* Fill a block that is in use with zeros, of any size in less than 1 ms and
 * without allocating: its pages are moved aside, and another thread releases
 * them. Before Linux 5.7, which cannot move pages, they are released here:
 * about 0.1 ms per MiB. */
void pages_renew(void *block, size_t size);

/* Before a block is freed: release its pages, as pages_renew does. Else the
 * server's thread would pay for that when it allocates the block again. */
void pages_release(void *block, size_t size);

/* A hint: use huge pages for a block that is not touched yet. */
void pages_advise_huge(void *block, size_t size);

#endif
