/*
 * The values of a module's type, in an RDB file or in what DUMP replies. A
 * server has one way to write and read them, a file another.
 */
#ifndef CALYX_FOREIGN_RDB_VALUES_H
#define CALYX_FOREIGN_RDB_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Receives the values; it stores its errors itself. */
struct rdb_writer {
    void (*put_unsigned)(void *context, uint64_t value);
    void (*put_double)(void *context, double value);
    void (*put_string)(void *context, const void *bytes, size_t size);
    void *context;
};

/* Returns them in the same order; false or NULL on failure. The filter then
 * owns a string, and frees it by its memory hooks. */
struct rdb_reader {
    bool (*get_unsigned)(void *context, uint64_t *value);
    bool (*get_double)(void *context, double *value);
    void *(*get_string)(void *context, size_t *size);
    void *context;
    bool (*next_is_string)(void *context); /* of valkey-bloom's type */
};

/* A reader, and whether it failed. After a failure it returns 0 for everything,
 * which no check accepts. */
struct rdb_input {
    const struct rdb_reader *from;
    bool failed;
};

static inline uint64_t rdb_get_unsigned(struct rdb_input *in) {
    uint64_t value = 0;
    if (!in->failed && !in->from->get_unsigned(in->from->context, &value))
        in->failed = true;
    return in->failed ? 0 : value;
}

static inline double rdb_get_double(struct rdb_input *in) {
    double value = 0;
    if (!in->failed && !in->from->get_double(in->from->context, &value))
        in->failed = true;
    return in->failed ? 0 : value;
}

static inline uint8_t *rdb_get_string(struct rdb_input *in, uint64_t *bytes) {
    size_t size = 0;
    uint8_t *string =
        in->failed ? NULL : in->from->get_string(in->from->context, &size);
    if (!string) in->failed = true;
    *bytes = size;
    return string;
}

#endif
