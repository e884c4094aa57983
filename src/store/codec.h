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

/* Give a filter the comment and the properties that its header has. */
calyx_status keep_texts(calyx_filter *f, const struct description *d,
                        calyx_error *why);

/* Encoded bytes that a filter uses where they are. */
struct image {
    uint8_t *base;
    struct description d;
    struct state state;
    int fd;     /* of a file that is changed in place, else -1    */
    int failed; /* errno of a sync that failed: what is on disk is not known */
    char *path; /* of that file, absolute if possible; path_bytes of memory */
    size_t path_bytes;
};

/* Make a read-only filter on bytes in place. It owns a copy of the image
 * struct; a caller with more to give back sets another `release`. */
calyx_status view_image(uint8_t *base, uint64_t size, const calyx_opening *how,
                        calyx_filter **out, calyx_error *why);

/* Compute the checksums of all bodies, as they are now, into `tables`. */
void sum_bodies(const struct image *image, uint8_t *tables);

#endif
