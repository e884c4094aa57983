/* Filters used where their bytes are: view.c, ranges.c and map.c. */
#ifndef CALYX_VIEW_H
#define CALYX_VIEW_H

#include "store/format.h"
#include "store/owner.h"

/* Encoded bytes in place. */
struct image {
    struct lent_bytes lent; /* what the filter knows; first, for image_of */
    uint8_t *base;
    struct description d;
    struct state state;
    uint8_t *range_states; /* enum range_state of each range, see ranges.h */

    bool is_mapped; /* from a file */
    /* Of a file that is changed in place. */
    int fd;     /* else -1                                                   */
    int failed; /* errno of a sync that failed: the state of the disk is then
                   unknown; or 0                                             */
    struct owner owner;
    char *path; /* absolute if possible; path_bytes of memory                */
    size_t path_bytes;
    uint32_t marking; /* a thread marks ranges                                */
    uint64_t marked;  /* number of ranges that are marked                     */
    uint64_t ahead;   /* the next range of the newest part to mark ahead      */
};

/* NULL: the filter has memory of its own. */
static inline struct image *image_of(const calyx_filter *f) {
    return (struct image *)f->lent;
}

/* Make a read-only filter on bytes in place. It owns a copy of the image
 * struct; callers that own more set another `release`. */
calyx_status view_image(uint8_t *base, uint64_t size,
                        const calyx_open_options *how, calyx_filter **out,
                        calyx_error *why);

/* Read the current state from the slots. */
calyx_status check_end(const struct image *image, struct state *state,
                       calyx_error *why);

#endif
