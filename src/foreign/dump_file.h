/*
 * The file in which Calyx stores a filter of another program: a line and
 * records.
 *
 *     "calyx dump 1 LAYOUT\n", or "calyx dump 1 LAYOUT ITEMS\n"
 *     u64 iterator, u64 bytes, the bytes     of each record
 *     u64 0, u64 0, u64 checksum             of the records, as in wire/dump.h
 *
 * Of RedisBloom, a record is what BF.SCANDUMP replies. valkey-bloom has one,
 * the payload of BF.LOAD. Of all others, records are pieces of their file; of
 * 'bits', the first record is the line that says their layout.
 * ITEMS says what the program makes of a key before it is hashed, if that are
 * not its bytes.
 */
#ifndef CALYX_FOREIGN_DUMP_FILE_H
#define CALYX_FOREIGN_DUMP_FILE_H

#include "foreign/foreign_filter.h"

enum { DUMP_MOST_LINE = 80, DUMP_MOST_ITEMS = 15 };

struct dump_head {
    const struct foreign_layout *layout;
    char items[DUMP_MOST_ITEMS + 1]; /* "": the bytes of a key */
};

/* ---- Writing ------------------------------------------------------------- */

struct dump_writer {
    struct foreign_sink to;
    uint64_t sum;
};

void dump_begin(struct dump_writer *w, const struct dump_head *head,
                struct foreign_sink to);
void dump_record(struct dump_writer *w, uint64_t iterator, const void *bytes,
                 size_t size);
void dump_end(struct dump_writer *w);

/* All records of a filter. */
calyx_status dump_filter(struct dump_writer *w, const struct foreign_filter *f,
                         calyx_error *why);

/* ---- Reading ------------------------------------------------------------- */

struct dump_reader {
    /* Gets exactly `size` bytes, or returns false. */
    bool (*get)(void *context, void *bytes, size_t size);
    void *context;
    struct dump_head head;
    uint64_t sum;
    /* the last record: */
    uint64_t iterator;
    uint8_t *bytes; /* free it at the end */
    size_t size, room;
    bool at_end; /* there is none, and the checksum is right */
};

/* The first line. */
calyx_status dump_open(struct dump_reader *r, calyx_error *why);
/* The next record. */
calyx_status dump_next(struct dump_reader *r, calyx_error *why);
/* The filter of all records, after the line. */
calyx_status dump_load(struct dump_reader *r, struct foreign_filter *f,
                       calyx_error *why);

#endif
