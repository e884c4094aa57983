/*
 * What the server's DUMP replies and RESTORE takes, for a key of a module's
 * type:
 *
 *     u8 7, the number of the type,
 *     values, each an opcode and what it is of,
 *     opcode 0, u16 version, u64 checksum         little-endian
 *
 * The checksum is CRC-64 (Jones), of all that precedes it.
 */
#ifndef CALYX_FOREIGN_DUMP_PAYLOAD_H
#define CALYX_FOREIGN_DUMP_PAYLOAD_H

#include "foreign/foreign_filter.h"

struct payload_reader {
    const uint8_t *first, *at, *end;
    calyx_error *why;
    bool failed; /* `why` has the first failure; all later calls fail, too */
};

/* A payload of a key of this type: nine letters. `*encoding` is its version. */
calyx_status payload_open(struct payload_reader *r, const uint8_t *bytes,
                          size_t size, const char *type, int *encoding,
                          calyx_error *why);
/* The next value. A string is malloc's. On failure false and NULL. */
bool payload_get_unsigned(struct payload_reader *r, uint64_t *value);
bool payload_get_double(struct payload_reader *r, double *value);
void *payload_get_string(struct payload_reader *r, size_t *size);
bool payload_next_is_string(const struct payload_reader *r);
/* There are no more values. */
calyx_status payload_close(struct payload_reader *r);

/* Does it begin as a payload of some module's type? */
bool payload_looks_so(const uint8_t *bytes, size_t size);

struct payload_writer {
    const struct foreign_sink *to;
    uint64_t sum;
};

void payload_begin(struct payload_writer *w, const char *type, int encoding,
                   const struct foreign_sink *to);
void payload_put_unsigned(struct payload_writer *w, uint64_t value);
void payload_put_double(struct payload_writer *w, double value);
void payload_put_string(struct payload_writer *w, const void *bytes,
                        uint64_t size);
void payload_end(struct payload_writer *w);

/* CRC-64 of bytes that follow those whose sum is known; 0 for none. */
uint64_t payload_sum(uint64_t sum, const void *bytes, size_t size);

#endif
