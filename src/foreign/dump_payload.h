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
#include "foreign/rdb_values.h"

/* Make a filter of a payload of this type, nine letters. `load` reads its
 * values, all of them; a string is malloc's. */
typedef calyx_status load_values(const struct rdb_reader *from, int encoding,
                                 struct foreign_filter *f, calyx_error *why);
calyx_status payload_read(const uint8_t *bytes, size_t size, const char *type,
                          load_values *load, struct foreign_filter *f,
                          calyx_error *why);

/* Does it begin as a payload of some module's type? */
bool payload_looks_so(const uint8_t *bytes, size_t size);

typedef void save_values(const struct foreign_filter *f,
                         const struct rdb_writer *to);
void payload_write(const struct foreign_filter *f, const char *type,
                   int encoding, save_values *save,
                   const struct foreign_sink *to);

/* CRC-64 of bytes that follow those whose sum is known; 0 for none. */
uint64_t payload_sum(uint64_t sum, const void *bytes, size_t size);

#endif
