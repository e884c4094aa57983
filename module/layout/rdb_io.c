#include "layout/rdb_io.h"

static void put_unsigned(void *io, uint64_t value) {
    RM_SaveUnsigned(io, value);
}

static void put_double(void *io, double value) {
    RM_SaveDouble(io, value);
}

static void put_string(void *io, const void *bytes, size_t size) {
    RM_SaveStringBuffer(io, bytes, size);
}

struct rdb_writer rdb_writer_to(RedisModuleIO *io) {
    return (struct rdb_writer){put_unsigned, put_double, put_string, io};
}

static bool get_unsigned(void *io, uint64_t *value) {
    *value = RM_LoadUnsigned(io);
    return !RM_IsIOError(io);
}

static bool get_double(void *io, double *value) {
    *value = RM_LoadDouble(io);
    return !RM_IsIOError(io);
}

static void *get_string(void *io, size_t *size) {
    char *string = RM_LoadStringBuffer(io, size);
    if (!string || !RM_IsIOError(io)) return string;
    RM_Free(string);
    return NULL;
}

struct rdb_reader rdb_reader_from(RedisModuleIO *io) {
    return (struct rdb_reader){.get_unsigned = get_unsigned,
                               .get_double = get_double,
                               .get_string = get_string,
                               .context = io};
}
