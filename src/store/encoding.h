/* A filter as a sequence of bytes: writer.c and reader.c. */
#ifndef CALYX_ENCODING_H
#define CALYX_ENCODING_H

#include "store/format.h"

/* Where the bytes of a body come from that is not in memory: the next `size` of
 * them, at most CHUNK, in order. */
struct body_source {
    calyx_status (*read)(void *context, uint64_t from, uint8_t *buffer,
                         size_t size, calyx_error *why);
    void *context;
};

/* Write a filter as it is described: parts without a body come from the source,
 * NULL if there are none. */
calyx_status write_described(const calyx_filter *f, struct description *d,
                             const struct body_source *source,
                             calyx_put_function *put, void *context,
                             calyx_error *why);

calyx_status write_filter(const calyx_filter *f, uint32_t alignment,
                          calyx_put_function *put, void *context,
                          calyx_error *why);

/* `size` is the number of bytes there are, or 0 if unknown. If it is known and
 * wrong, no memory is allocated. `state` becomes the state of the current slot;
 * it is unchanged if reading did not get that far. */
calyx_status read_filter(calyx_get_function *get, void *context, uint64_t size,
                         const calyx_open_options *how, calyx_filter **out,
                         struct state *state, calyx_error *why);

/* Give a filter the comment and the properties of its header. */
calyx_status set_texts(calyx_filter *f, const struct description *d,
                       calyx_error *why);

/* Give it the allow list, of the description's bytes, after checking them. */
calyx_status set_list(calyx_filter *f, const struct description *d,
                      const uint8_t *list, calyx_error *why);

/* Has the whole the size that its header says? */
calyx_status check_size(const struct description *d, uint64_t size,
                        calyx_error *why);
/* check_tail of all parts. */
calyx_status check_tails(const calyx_filter *f, calyx_error *why);

#endif
