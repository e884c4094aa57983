/*
 * Part files: one range of the hashes of a filter, built by itself, for
 * calyx_join. doc/FORMAT.md describes the bytes:
 *
 *     head | header of the filter | body range | bumped hashes | sums | last
 * sum
 *
 * A range of hashes is cut where units begin: the blocks of a filter whose keys
 * have one block, the lots of a static one. Every number from outside is
 * checked in part_file.c, and the header in it by format.c.
 */
#ifndef CALYX_PART_FILE_H
#define CALYX_PART_FILE_H

#include "build/layers.h"
#include "store/format.h"

enum {
    PART_HEAD_BYTES = 128,
    PART_HEADERS_MOST = PART_HEAD_BYTES + MOST_HEADER
};

/* What part `number` of `count` has; `number` counts from 1. */
struct part_range {
    struct lot_range units;
    uint64_t first_hash, last_hash; /* of no meaning without units */
    uint64_t at, bytes;             /* in the body of the first layer */
};
struct part_range range_of_part(const struct kind *kind,
                                const struct shape *shape, uint32_t number,
                                uint32_t count);

static inline bool is_in_range(const struct part_range *range, uint64_t hash) {
    return range->units.first < range->units.end && hash >= range->first_hash &&
           hash <= range->last_hash;
}

/* What the first bytes of a part file say, checked. */
struct part_head {
    uint32_t number, count;
    uint64_t items;  /* keys in the range, of static kinds with bumped ones */
    uint64_t bumped; /* hashes for the next layer */
    struct part_range range;
    uint64_t body_at, bumped_at, sums_at, file_bytes; /* in the file */
};

/* After the head comes the header of the whole filter, as if it were empty; it
 * goes to `d`. `size` bytes are there: as many as the file has, up to
 * PART_HEADERS_MOST. */
calyx_status check_part_head(const uint8_t *bytes, size_t size,
                             struct part_head *head, struct description *d,
                             calyx_error *why);

/* What to write: `body` has the range's bytes; `bumped` is sealed, or NULL. */
struct part_content {
    const calyx_filter *f; /* its kind, hash, texts and empty first part */
    uint32_t number, count;
    uint64_t items;
    struct part_range range;
    const uint8_t *body;
    const struct hash_spool *bumped;
};
calyx_status write_part(void *content, calyx_put_function *put, void *context,
                        calyx_error *why);

/* Bytes under one sum: they end where a range of 64 KiB of the whole body does,
 * and have its number, so that whole ones have the sums of the joined file. */
static inline size_t piece_size(uint64_t at, uint64_t end) {
    const uint64_t stop = (at / RANGE_BYTES + 1) * RANGE_BYTES;
    return (size_t)((stop < end ? stop : end) - at);
}

/* The sums of a part: first of the body, then of the bumped hashes. */
uint64_t body_pieces(const struct part_range *range);
uint64_t bumped_pieces(uint64_t bumped);
uint64_t bumped_sum(const void *bytes, size_t size, uint64_t number);
/* The last sum, of all sums and the head. */
uint64_t last_sum(const uint8_t *sums, size_t size, const uint8_t *head);

#endif
