/*
 * What the command and the server module say to each other: a filter as BF.DUMP
 * sends it and BF.RESTORE takes it. Both programs link this file; the library
 * does not have it. doc/COMMANDS.md describes the steps.
 *
 * A dump is a head and chunks. The head is a prefix and the library's head:
 *
 *     "CALYXBF\2", u64 expansion, u64 generation, u64 rewrites,
 *     calyx_encode_head
 *
 * A chunk is 1 MiB of the filter's bits, the last one less. The checksum of a
 * head or chunk is its XXH64 with seed 0; the checksum of several chunks is
 * made from theirs, in order.
 */
#ifndef CALYX_WIRE_DUMP_H
#define CALYX_WIRE_DUMP_H

#include <calyx/calyx.h>

enum {
    DUMP_PREFIX_BYTES = 32,
    DUMP_CHUNK_BYTES = 1 << 20, /* no command takes a millisecond for it */
    DUMP_DIGITS = 16            /* of a checksum, hexadecimal            */
};

/* What a server knows of a filter beside its bits. */
struct dump_prefix {
    uint64_t expansion;  /* as in BF.RESERVE; 0 if it does not grow        */
    uint64_t generation; /* changes with each load or reset                */
    uint64_t rewrites;   /* changes that invalidate a dump half taken      */
};

void dump_put_prefix(uint8_t *head, const struct dump_prefix *prefix);
/* False if these bytes do not start with a prefix. */
bool dump_get_prefix(const void *head, size_t size, struct dump_prefix *prefix);

/* The growth of a filter with this expansion, and the other way round. */
double dump_growth(uint64_t expansion);
uint32_t dump_expansion(double growth);

/* The number of chunks of a filter with this many bytes of bits, and the size
 * of one of them. */
uint64_t dump_chunks(uint64_t bytes);
size_t dump_chunk_size(uint64_t bytes, uint64_t number);

/* A checksum; and the checksum of chunks followed by one more. */
uint64_t dump_sum(const void *bytes, size_t size);
uint64_t dump_sum_with(uint64_t sum, uint64_t of_chunk);

/* Checksums as text. False if it is not 16 hexadecimal digits. */
struct dump_text {
    char text[DUMP_DIGITS + 1];
};
struct dump_text dump_sum_text(uint64_t sum);
bool dump_read_sum(const char *text, size_t size, uint64_t *sum);

#endif
