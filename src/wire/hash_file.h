/*
 * Hash files: hashes of keys, 8 bytes each, of one of N ranges of all hashes,
 * or of one of N shards. 'calyx hash' writes them and 'calyx build --part'
 * reads them, maybe on another machine. doc/FORMAT.md describes the bytes: a
 * head, chunks, an end.
 *
 * A file also has the hashes after its range, up to 1/32 of a range: the last
 * block of a part may end there.
 */
#ifndef CALYX_WIRE_HASH_FILE_H
#define CALYX_WIRE_HASH_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HASH_START_BYTES = 64,
    HASH_TEXT_MOST = 4096,
    HASH_HEAD_MOST = HASH_START_BYTES + HASH_TEXT_MOST + 8,
    HASH_NAME_BYTES = 16,
    HASH_CHUNK_START = 8,
    HASH_CHUNK_MOST = 8192, /* hashes */
    HASH_CHUNK_BYTES = HASH_CHUNK_START + 8 * HASH_CHUNK_MOST + 8,
    HASH_END_BYTES = HASH_CHUNK_START + 8 + 8
};

struct hash_head {
    uint32_t part, parts; /* from 1 to parts */
    uint64_t seed;
    uint64_t check; /* the hash of HASH_CHECK_TEXT */
    char hash[HASH_NAME_BYTES];
    uint32_t text_bytes; /* of the options for keys */
    bool by_shard;       /* not by range: of shard part - 1 */
};

/* The same text as in filters. */
#define HASH_CHECK_TEXT "calyx: is this the same hash?"

/* The lowest hash of part `part`, from 1 to parts + 1; 0 after the last. */
uint64_t hash_part_start(uint32_t part, uint32_t parts);
/* Hashes after its range that a file has. */
uint64_t hash_part_margin(uint32_t parts);

/* Write the head with its text and its checksum; returns its size. */
size_t hash_put_head(uint8_t *to, const struct hash_head *head,
                     const char *text);

/* NULL if the first HASH_START_BYTES are the first bytes of a hash file, or
 * what is wrong. Then come `text_bytes` and 8 bytes; hash_check_head looks at
 * all of it. */
const char *hash_check_start(const uint8_t *start, struct hash_head *head);
const char *hash_check_head(const uint8_t *bytes, const struct hash_head *head);

/* A chunk of n hashes, from 1 to HASH_CHUNK_MOST, that are at to +
 * HASH_CHUNK_START already, or the end, with their total; returns its size. */
size_t hash_put_chunk(uint8_t *to, uint64_t number, size_t n);
size_t hash_put_end(uint8_t *to, uint64_t number, uint64_t total);

/* How many bytes follow the HASH_CHUNK_START of a chunk, 0 if that is none; and
 * whether all of it is sound. An end has 0 hashes. */
size_t hash_chunk_rest(const uint8_t *start, size_t *hashes);
bool hash_check_chunk(const uint8_t *chunk, size_t size, uint64_t number);
uint64_t hash_end_total(const uint8_t *end);

#endif
