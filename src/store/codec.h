/* Writing and reading filters, for the files beside codec.c. */
#ifndef CALYX_CODEC_H
#define CALYX_CODEC_H

#include "store/format.h"

calyx_status write_filter(const calyx_filter *f, uint32_t alignment,
                          calyx_put *put, void *context, calyx_error *why);

/* `size` is the number of bytes there are, or 0 if nobody knows; if it is known
 * and wrong, no memory is taken. */
calyx_status read_filter(calyx_get *get, void *context, uint64_t size,
                         const calyx_opening *how, calyx_filter **out,
                         calyx_error *why);

/* Give a filter the comment that its header has, if any. */
calyx_status keep_comment(calyx_filter *f, const struct description *d,
                          calyx_error *why);

/* Encoded bytes that a filter uses where they are. */
struct image {
    uint8_t *base;
    struct description d;
    struct state state;
    int fd;     /* of a file that is changed in place, else -1    */
    int failed; /* errno of a sync that failed: what is on disk is not known */
};

/* Make a read-only filter on bytes in place. It owns a copy of the image
 * struct; a caller with more to give back sets another `release`. */
calyx_status view_image(uint8_t *base, uint64_t size, const calyx_opening *how,
                        calyx_filter **out, calyx_error *why);

/* Compute the checksums of all bodies, as they are now, into `tables`. */
void sum_bodies(const struct image *image, uint8_t *tables);

#endif
