/* The values of a key in an RDB file or payload of the server. */
#ifndef CALYX_MODULE_RDB_IO_H
#define CALYX_MODULE_RDB_IO_H

#include "foreign/rdb_values.h"
#include "server/api.h"

struct rdb_writer rdb_writer_to(RedisModuleIO *io);
struct rdb_reader rdb_reader_from(RedisModuleIO *io);

#endif
