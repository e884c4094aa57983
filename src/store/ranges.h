/* Checksums by range, of filters used in place. */
#ifndef CALYX_RANGES_H
#define CALYX_RANGES_H

#include "store/view.h"

enum range_state {
    RANGE_UNVERIFIED,
    RANGE_INTACT,  /* matches its checksum, or another process changes it */
    RANGE_MARKING, /* intact; the mark in the tables is not on disk yet   */
    RANGE_MARKED,  /* this process may change it                          */
    RANGE_DAMAGED
};

/* Begin and end verification of a filter's image. */
calyx_status open_ranges(calyx_filter *f, bool verifies, calyx_error *why);
void close_ranges(calyx_filter *f);

/* Offset of a part's first checksum in the tables. */
uint64_t first_entry(const struct description *d, uint32_t part);
uint8_t *entry_of(const struct image *image, uint64_t number);
uint64_t number_of_ranges(const struct image *image);

struct byte_range {
    uint64_t at; /* in the image */
    size_t size;
};
struct byte_range range_at(const struct image *image, uint64_t number);

/* Of a mapped file: the system need not read ahead, as ranges are read whole,
 * each before it is verified. */
void expect_few_reads(struct image *image);

/* Is this range intact? Compares it with its checksum the first time. */
bool verify_range(const calyx_filter *f, uint64_t number);
enum range_state state_of(const struct image *image, uint64_t number);
/* Set a state, and update the counters of struct lent_bytes. */
void set_state(struct image *image, uint64_t number, enum range_state state);

/* Compare all ranges, including those that were compared before. */
calyx_status verify_all_ranges(const calyx_filter *f, calyx_error *why);

/* The numbers of the ranges that hold the bits of a key. Returns 0 if any range
 * of the part may. */
enum { MOST_RANGES_OF_KEY = 64 };
size_t ranges_of_key(const calyx_filter *f, const struct part *p, uint64_t hash,
                     uint64_t *numbers);

/* Number of keys in the newest part: the number of the slot; or, if its writer
 * died, an estimate from the bits of unsealed ranges, if that is higher. */
uint64_t recovered_items(const struct kind *kind, const struct part *p,
                         const struct state *state, const uint8_t *entries);

/* Compute the checksums of all ranges that have none. */
void seal_ranges(const struct image *image);

calyx_status fail_range(calyx_error *why, uint64_t at);

#endif
