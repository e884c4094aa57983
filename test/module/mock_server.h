/*
 * A server made of a few functions, to run the module's types without one: an
 * RDB stream in memory, memory that runs out on request, and an allocator that
 * moves every block, which Debian's never does.
 */
#ifndef CALYX_MOCK_SERVER_H
#define CALYX_MOCK_SERVER_H

#include "../../module/server/api.h"

/* Values as 8 bytes, little-endian; strings with their length before them. */
struct RedisModuleIO {
    uint8_t *bytes;
    size_t size, at;
    bool failed;
};

struct RedisModuleString {
    const char *text;
};

struct RedisModuleDefragCtx {
    size_t moved;
};

struct RedisModuleDigest {
    uint64_t sum;
};

/* What the module registered. */
extern RedisModuleTypeMethods mock_native, mock_redisbloom, mock_valkey,
    mock_window, mock_cuckoo, mock_rebuilding;

/* How many more times there is memory to be had by RM_TryAlloc, and the most
 * that is given at once. */
extern size_t mock_takes_left, mock_most_bytes;

/* Blocks that were allocated and not released. */
extern size_t mock_blocks;

void mock_start(void);
uint64_t mock_digest(const RedisModuleTypeMethods *type, void *value);

#endif
