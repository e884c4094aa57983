/* Writing and reading filters, for the files beside codec.c. */
#ifndef CALYX_CODEC_H
#define CALYX_CODEC_H

#include "store/format.h"

calyx_status write_filter(const calyx_filter *f, uint32_t alignment,
                          calyx_put *put, void *context, calyx_error *why);

/* `size` is the number of bytes there are, or 0 if nobody knows; if it is known
 * and wrong, no memory is taken. `state` is what the slot says that counts; if
 * none was reached, it is left alone. */
calyx_status read_filter(calyx_get *get, void *context, uint64_t size,
                         const calyx_opening *how, calyx_filter **out,
                         struct state *state, calyx_error *why);

/* Give a filter the comment and the properties that its header has. */
calyx_status set_texts(calyx_filter *f, const struct description *d,
                       calyx_error *why);

/* Encoded bytes that a filter uses where they are. */
struct image {
    uint8_t *base;
    struct description d;
    struct state state;

    struct ranges ranges;
    uint8_t *range_states; /* one for each range, see ranges.c */

    /* For a file that is changed in place. */
    int fd;     /* else -1                                             */
    int failed; /* errno of a sync that failed: what is on disk is not
                   known                                               */
    char *path; /* absolute if possible; path_bytes of memory          */
    size_t path_bytes;
    bool marking;    /* a thread marks ranges                               */
    uint64_t marked; /* how many are                                        */
    uint64_t ahead;  /* in the newest part, up to here ranges were looked at */
};

/* Make a read-only filter on bytes in place. It owns a copy of the image
 * struct; a caller with more to give back sets another `release`. */
calyx_status view_image(uint8_t *base, uint64_t size, const calyx_opening *how,
                        calyx_filter **out, calyx_error *why);

/* What the slots say now. */
calyx_status check_end(const struct image *image, struct state *state,
                       calyx_error *why);

/* ---- ranges.c ------------------------------------------------------------ */

enum range_state {
    RANGE_UNVERIFIED,
    RANGE_INTACT,  /* matches its checksum, or is being changed by somebody else
                    */
    RANGE_MARKING, /* sound, and marked in the tables; not on disk yet */
    RANGE_MARKED,  /* to be changed by this process  */
    RANGE_DAMAGED
};

/* Watch over the ranges of a filter's image, from the start to the end. */
calyx_status open_ranges(calyx_filter *f, bool checks, calyx_error *why);
void close_ranges(calyx_filter *f);

/* Offset of a part's first checksum in the tables. */
uint64_t first_entry(const struct description *d, uint32_t part);
uint8_t *entry_of(const struct image *image, uint64_t number);
uint64_t number_of_ranges(const struct image *image);

struct range {
    uint64_t at; /* in the image */
    size_t size;
};
struct range range_at(const struct image *image, uint64_t number);

/* Is this range sound? Compares it unless that was done before. */
bool verify_range(const calyx_filter *f, uint64_t number);
enum range_state state_of(const struct image *image, uint64_t number);
/* Give it another state, and keep the numbers of struct ranges right. */
void set_state(struct image *image, uint64_t number, enum range_state state);

/* Compare all ranges, whatever was done before. */
calyx_status verify_all_ranges(const calyx_filter *f, calyx_error *why);

/* The numbers of the ranges in which a key has its bits; 0: it may be any of
 * the part. */
enum { MOST_RANGES_OF_KEY = 64 };
size_t ranges_of_key(const calyx_filter *f, const struct part *p, uint64_t hash,
                     uint64_t *numbers);

/* How many keys the newest part has: as the slot says, or, if its writer died,
 * at least as many as the bits of unsealed ranges tell. */
uint64_t recovered_items(const struct kind *kind, const struct part *p,
                         const struct state *state, const uint8_t *entries);

/* Compute the checksums of all ranges that have none. */
void seal_ranges(const struct image *image);

calyx_status fail_range(calyx_error *why, uint64_t at);

#endif
