/*
 * BF.DUMP and BF.LOAD: native filters in chunks, for transfers that may break
 * off anywhere and go on later.
 *
 * The bits of a filter are one row of bytes; a chunk is 1 MiB of it, the last
 * one less. Each chunk has a checksum, XXH64 with seed 0. The checksum of the
 * whole is made of these, so it can be verified without reading again:
 *
 *     sum = 0;  for each chunk:  sum = XXH64(sum, XXH64(chunk))
 *
 * with both numbers as 8 little-endian bytes. Commands write them as 16
 * hexadecimal digits.
 *
 * A filter that is loaded is `uncommitted` until BF.LOAD COMMIT: it refuses
 * lookups, also on replicas and after a restart.
 */
#ifndef CALYX_MODULE_TRANSFER_H
#define CALYX_MODULE_TRANSFER_H

#include "layout/layout.h"
#include "server/api.h"

/* Small enough that no command takes a millisecond, though each of its pages
 * may be touched for the first time. */
enum { CHUNK = 1 << 20 };

/* The chunks of a body of this size, and of what has arrived of a filter. */
uint64_t chunks_in(uint64_t bytes);
uint64_t chunks_here(const struct filter *f);
size_t chunk_size(const struct filter *f, uint64_t number);

struct chunk {
    uint8_t *bytes; /* for RM_Free */
    size_t size;
    uint64_t sum;
};
struct chunk read_chunk(const struct filter *f, uint64_t number);

/* The sum of a chunk; that of all up to it, from that of all before. */
uint64_t sum_of(const void *bytes, size_t size);
uint64_t next_sum(uint64_t sum, uint64_t of_chunk);

/* A sum in hexadecimal. */
enum { DIGITS = 16 };
struct sum_text {
    char text[DIGITS + 1];
};
struct sum_text write_sum(uint64_t sum);

/* The commands that would bring an uncommitted filter to where it is. */
void transfer_rewrite(RedisModuleIO *io, RedisModuleString *key,
                      const struct filter *f);

/* After a filter came from an RDB file: find the sum again, if it needs one.
 * False if that number of bytes cannot have arrived. */
bool transfer_resume(struct filter *f);

#endif
