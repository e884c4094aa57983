/*
 * The part of the module API of Redis and Valkey that Calyx uses, in our own
 * declarations: Debian ships no header for it. A server hands out its functions
 * by name, through a pointer that stands first in the context of a module that
 * is being loaded; so a function is a variable here, filled in by server_find.
 *
 * Names follow the documentation of the API (RM_OpenKey is RedisModule_OpenKey
 * there), which is where to read what they do. api_calls.h lists them. Servers
 * from Redis 7.0 and Valkey 7.2 on have all that is REQUIRED; what is OPTIONAL
 * came later, and is NULL in older ones.
 */
#ifndef CALYX_MODULE_API_H
#define CALYX_MODULE_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct RedisModuleCtx RedisModuleCtx;
typedef struct RedisModuleKey RedisModuleKey;
typedef struct RedisModuleString RedisModuleString;
typedef struct RedisModuleIO RedisModuleIO;
typedef struct RedisModuleType RedisModuleType;
typedef struct RedisModuleDigest RedisModuleDigest;
typedef struct RedisModuleInfoCtx RedisModuleInfoCtx;
typedef struct RedisModuleDefragCtx RedisModuleDefragCtx;
typedef struct RedisModuleCommand RedisModuleCommand;
typedef struct RedisModuleServerInfoData RedisModuleServerInfoData;
typedef struct RedisModuleCallReply RedisModuleCallReply;
typedef struct RedisModuleBlockedClient RedisModuleBlockedClient;
typedef struct RedisModuleDict RedisModuleDict;
typedef struct RedisModuleDictIter RedisModuleDictIter;

enum { RM_OK = 0, RM_ERR = 1, RM_API_VERSION = 1 };
enum { RM_READ = 1, RM_WRITE = 2 };
enum { RM_KEYTYPE_EMPTY = 0 };
enum { RM_NOTIFY_GENERIC = 1 << 2 };
enum { RM_REPLY_STRING = 0, RM_REPLY_ERROR = 1, RM_REPLY_NULL = 4 };

/* RM_GetContextFlags */
enum {
    RM_CTX_REPLICA = 1 << 3,     /* of another server       */
    RM_CTX_REPLICATED = 1 << 12, /* from the primary        */
    RM_CTX_LOADING = 1 << 13,    /* from the AOF or the RDB */
    RM_CTX_DENY_BLOCKING = 1 << 21,
    RM_CTX_RESP3 = 1 << 22,
    RM_CTX_SLOT_IMPORT = 1 << 25 /* Valkey 9: from the node that a slot comes
                                    from; Redis has another flag there */
};

/* RM_SetModuleOptions */
enum {
    RM_HANDLES_IO_ERRORS = 1 << 0,
    RM_SIGNALS_MODIFIED_KEYS = 1 << 1, /* itself, and only when they were */
    RM_HANDLES_ASYNC_LOAD = 1 << 2,
    RM_HANDLES_SLOT_MIGRATION = 1 << 5 /* Valkey 9: CLUSTER MIGRATESLOTS */
};

/* RM_Register*Config */
enum {
    RM_CONFIG_DEFAULT = 0,
    RM_CONFIG_HIDDEN = 1 << 4,    /* from CONFIG GET, but by its name */
    RM_CONFIG_MEMORY = 1 << 7,    /* takes units, such as 1gb */
    RM_CONFIG_UNPREFIXED = 1 << 9 /* Redis 8 and later        */
};

typedef int command_function(RedisModuleCtx *ctx, RedisModuleString **argv,
                             int argc);
typedef void timer_function(RedisModuleCtx *ctx, void *context);
typedef int event_function(RedisModuleCtx *ctx, int type, const char *event,
                           RedisModuleString *key);
typedef void info_function(RedisModuleInfoCtx *ctx, int for_crash_report);

typedef RedisModuleString *get_string_config(const char *name, void *context);
typedef int set_string_config(const char *name, RedisModuleString *value,
                              void *context, RedisModuleString **why);
typedef long long get_numeric_config(const char *name, void *context);
typedef int set_numeric_config(const char *name, long long value, void *context,
                               RedisModuleString **why);
typedef int get_choice_config(const char *name, void *context);
typedef int set_choice_config(const char *name, int value, void *context,
                              RedisModuleString **why);
typedef int apply_config(RedisModuleCtx *ctx, void *context,
                         RedisModuleString **why);

/* What a type of values can do; NULL for what it cannot. */
typedef struct RedisModuleTypeMethods {
    uint64_t version; /* RM_TYPE_METHODS: up to copy and defrag */
    void *(*rdb_load)(RedisModuleIO *io, int encoding);
    void (*rdb_save)(RedisModuleIO *io, void *value);
    void (*aof_rewrite)(RedisModuleIO *io, RedisModuleString *key, void *value);
    size_t (*mem_usage)(const void *value);
    void (*digest)(RedisModuleDigest *digest, void *value);
    void (*free)(void *value);
    int (*aux_load)(RedisModuleIO *io, int encoding, int when);
    void (*aux_save)(RedisModuleIO *io, int when);
    int aux_save_triggers;
    size_t (*free_effort)(RedisModuleString *key, const void *value);
    void (*unlink)(RedisModuleString *key, const void *value);
    void *(*copy)(RedisModuleString *from, RedisModuleString *to,
                  const void *value);
    int (*defrag)(RedisModuleDefragCtx *ctx, RedisModuleString *key,
                  void **value);
} RedisModuleTypeMethods;

enum { RM_TYPE_METHODS = 3 };

/* For COMMAND DOCS and COMMAND INFO. */
enum {
    RM_ARG_STRING = 0,
    RM_ARG_INTEGER,
    RM_ARG_DOUBLE,
    RM_ARG_KEY,
    RM_ARG_PATTERN,
    RM_ARG_UNIX_TIME,
    RM_ARG_PURE_TOKEN,
    RM_ARG_ONEOF,
    RM_ARG_BLOCK
};
enum { RM_ARG_OPTIONAL = 1 << 0, RM_ARG_MULTIPLE = 1 << 1 };

typedef struct RedisModuleCommandArg {
    const char *name;
    int type;
    int key_spec_index;
    const char *token, *summary, *since;
    int flags;
    const char *deprecated_since;
    struct RedisModuleCommandArg *subargs;
    const char *display_text;
} RedisModuleCommandArg;

typedef struct RedisModuleCommandHistoryEntry {
    const char *since, *changes;
} RedisModuleCommandHistoryEntry;

enum {
    RM_KEY_READ_ONLY = 1 << 0,
    RM_KEY_READ_WRITE = 1 << 1,
    RM_KEY_OVERWRITE = 1 << 2,
    RM_KEY_ACCESS = 1 << 4,
    RM_KEY_UPDATE = 1 << 5,
    RM_KEY_DELETE = 1 << 7
};
enum { RM_KEY_AT_INDEX = 2, RM_KEYS_IN_RANGE = 2 };

typedef struct RedisModuleCommandKeySpec {
    const char *notes;
    uint64_t flags;
    int begin_search_type;
    union {
        struct {
            int pos;
        } index;
        struct {
            const char *keyword;
            int startfrom;
        } keyword;
    } bs;
    int find_keys_type;
    union {
        struct {
            int lastkey, keystep, limit;
        } range;
        struct {
            int keynumidx, firstkey, keystep;
        } keynum;
    } fk;
} RedisModuleCommandKeySpec;

typedef struct RedisModuleCommandInfoVersion {
    int version;
    size_t size_of_history_entry, size_of_key_spec, size_of_arg;
} RedisModuleCommandInfoVersion;

typedef struct RedisModuleCommandInfo {
    const RedisModuleCommandInfoVersion *version;
    const char *summary, *complexity, *since;
    RedisModuleCommandHistoryEntry *history;
    const char *tips;
    int arity;
    RedisModuleCommandKeySpec *key_specs;
    RedisModuleCommandArg *args;
} RedisModuleCommandInfo;

#define REQUIRED(type, name, parameters) extern type(*name) parameters;
#define OPTIONAL(type, name, parameters) extern type(*name) parameters;
#include "server/api_calls.h"

/* Fill in the functions above. Returns the name of one that is REQUIRED and
 * that this server does not have, or NULL if all is well. */
const char *server_find(RedisModuleCtx *ctx);

/* The major version of Valkey; 0 in Redis. */
int server_valkey_major(RedisModuleCtx *ctx);

/* Does the command come from the primary, the AOF, or the node that a slot
 * comes from? Then it has been accepted there, and is obeyed here. NULL: does
 * the server load? */
bool is_replayed(RedisModuleCtx *ctx);
/* From the node that a slot comes from? */
bool is_slot_import(RedisModuleCtx *ctx);

#endif
