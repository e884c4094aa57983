/*
 * The layout of an encoded filter, and the one gate for foreign bytes: every
 * number that comes from outside is checked in format.c, and nothing after it
 * checks again. doc/FORMAT.md describes the bytes.
 *
 *     header | allow list | body | body | ... | tables | trailer
 *
 * The header says what the filter is and is never changed, nor is the allow
 * list, which most filters lack. Bodies follow, the
 * oldest part first; then a checksum for each 64 KiB of each body; then two
 * slots, of which the valid one with the higher generation has the state of
 * the rest. A filter that is changed in place writes the slots in turn, so that
 * one of them is valid at any time.
 */
#ifndef CALYX_FORMAT_H
#define CALYX_FORMAT_H

#include "engine/allow_list.h"
#include "filter/filter.h"

enum {
    FIXED_BYTES = 128,  /* of the header, before the parts  */
    RECORD_BYTES = 64,  /* of each part, in the header      */
    SLOT_BYTES = 64,    /* what is used of each slot        */
    MOST_PARTS = 96,    /* growing from 1 to 2^40 keys by 1.25 takes fewer */
    CHUNK = 1 << 20,    /* bytes written or read at a time  */
    MOST_HEADER = 12288 /* for all parts, a comment, properties */
};

/* Bytes of a range, which has one checksum. The first lookup in a range reads
 * all of it; smaller ranges would make the tables larger. */
static const uint64_t RANGE_BYTES = (uint64_t)1 << 16;

/* In the tables: this range is being changed and has no checksum. */
static const uint64_t UNSEALED = UINT64_C(0x5EA1ED0FF1B2D4C3);

/* Sections start at multiples of the alignment: pages for files, which may be
 * mapped; cache lines for bytes. */
enum { PAGE_ALIGNED = 4096, LINE_ALIGNED = 64 };

/* Where things are, in bytes from the start. */
struct file_layout {
    uint32_t alignment;
    uint32_t header_bytes;
    uint64_t body_at[MOST_PARTS], body_bytes[MOST_PARTS];
    uint64_t tables_at, tables_bytes;
    uint64_t slot_at[2];
    uint64_t file_bytes;
};

/* What a header says, checked. */
struct description {
    calyx_filter head; /* without parts, kernel, memory and key */
    uint32_t parts;
    struct part part[MOST_PARTS]; /* oldest first, without bodies          */
    char comment[COMMENT_BYTES];
    uint32_t records_bytes; /* of properties and the like, after it  */
    uint8_t records[PROPERTIES_BYTES];
    const uint8_t *list; /* the allow list, to be written         */
    uint32_t list_bytes; /* 0: there is none                      */
    uint64_t list_sum;   /* its checksum                          */
    uint64_t hash_check;
    uint64_t header_sum; /* the header's checksum                 */
    struct file_layout layout;
};

/* What a slot says. */
struct state {
    int slot;              /* which of the two */
    uint64_t generation;   /* never 0; the higher one counts */
    bool sealed;           /* the tables fit the bodies      */
    uint64_t items;        /* of the newest part             */
    uint64_t sealed_items; /* the same when it was last sealed; 0 if it is */
    uint64_t tables_sum;   /* checksum of all tables         */
};

/* What a filter would be written as; false if it has too many parts. The
 * checksum of the allow list is left out. */
bool describe_filter(const calyx_filter *f, uint32_t alignment,
                     struct description *d);
/* The same with this allow list, which the filter may have shortened since. */
void describe_list(struct description *d, const uint8_t *list, uint32_t bytes);
/* Also notes its checksum, which the slots need. */
void store_header(struct description *d, uint8_t *header);
void store_slot(const struct description *d, const struct state *state,
                uint8_t slot[SLOT_BYTES]);

/* How long is the header that starts with these bytes? The second fails if
 * there are fewer than that, too. */
calyx_status check_start(const uint8_t start[FIXED_BYTES],
                         uint32_t *header_bytes, calyx_error *why);
calyx_status check_first_bytes(const uint8_t *bytes, uint64_t size,
                               uint32_t *header_bytes, calyx_error *why);
/* A whole header. */
calyx_status check_header(const uint8_t *header, struct description *d,
                          calyx_error *why);
/* The bytes of the allow list. */
calyx_status check_list(const struct description *d, const uint8_t *list,
                        calyx_error *why);
/* One slot: false, and the state stays, unless it is sound and newer. */
bool check_slot(const struct description *d, int number, const uint8_t *slot,
                struct state *state);
/* The two slots. */
calyx_status check_slots(const struct description *d, const uint8_t *slots[2],
                         struct state *state, calyx_error *why);

/* The tables, if they are sealed, against their own checksum. */
calyx_status check_tables(const struct state *state, const uint8_t *tables,
                          uint64_t size, calyx_error *why);
/* Bytes between sections, of which the first is byte `at`. */
calyx_status check_zeros(const uint8_t *bytes, uint64_t size, uint64_t at,
                         calyx_error *why);
bool all_zero(const uint8_t *bytes, size_t size);
/* Bits after the last block, or its counters, up to the end of its 64 bytes
 * belong to no key and must be 0: those in these bytes of a body. */
calyx_status check_tail(const struct kind *kind, const struct shape *shape,
                        uint64_t from, const uint8_t *bytes, size_t size,
                        calyx_error *why);

/* Is it a table whose codes have bits to spare? */
bool doubles_as_whole(const struct description *d);
/* Such a table cannot be concurrent; it can become so when it is read. */
calyx_status check_shared(const struct description *d, calyx_error *why);

/* Complete the head with what only the caller knows. */
calyx_status open_head(struct description *d, const calyx_open_options *how,
                       calyx_error *why);

/* XXH3 with a seed, so that ranges that were swapped do not match. */
uint64_t checksum(const void *bytes, size_t size, uint64_t seed);

/* The checksum of a range, by its number; never UNSEALED. */
uint64_t range_sum(const void *bytes, size_t size, uint64_t number);
/* The same of bytes that other threads may be changing. */
uint64_t range_sum_shared(const void *bytes, size_t size, uint64_t number);

/* Put the checksums of all ranges of a chunk into the tables, from range
 * *number on. */
void sum_chunk(const uint8_t *chunk, size_t size, uint8_t *tables,
               uint64_t *number);

/* Where the allow list is, if there is one. */
static inline uint64_t list_at(const struct description *d) {
    return d->layout.header_bytes;
}

static inline size_t chunk_size(uint64_t left) {
    return left < CHUNK ? (size_t)left : CHUNK;
}

/* Number of ranges in a body, and the size of the range at an offset. */
static inline uint64_t ranges_of(uint64_t bytes) {
    return (bytes + RANGE_BYTES - 1) / RANGE_BYTES;
}
static inline size_t range_size(uint64_t bytes, uint64_t from) {
    return (size_t)(bytes - from < RANGE_BYTES ? bytes - from : RANGE_BYTES);
}

#endif
