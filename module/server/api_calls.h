/*
 * The functions of the server that Calyx uses: a row for each, with the type of
 * its result, its name and its parameters. Whoever includes this defines what
 * becomes of a row, as REQUIRED and OPTIONAL; both end here. api.h says more.
 */

REQUIRED(int, RM_IsModuleNameBusy, (const char *name))
REQUIRED(void, RM_SetModuleAttribs,
         (RedisModuleCtx *, const char *name, int version, int api))
REQUIRED(void, RM_SetModuleOptions, (RedisModuleCtx *, int options))
REQUIRED(int, RM_CreateCommand,
         (RedisModuleCtx *, const char *name, command_function *,
          const char *flags, int first_key, int last_key, int step))
REQUIRED(RedisModuleCommand *, RM_GetCommand,
         (RedisModuleCtx *, const char *name))
REQUIRED(int, RM_SetCommandInfo,
         (RedisModuleCommand *, const RedisModuleCommandInfo *))
REQUIRED(RedisModuleType *, RM_CreateDataType,
         (RedisModuleCtx *, const char *name, int encoding,
          RedisModuleTypeMethods *))
REQUIRED(void, RM_Log, (RedisModuleCtx *, const char *level, const char *, ...))
REQUIRED(void, RM_LogIOError,
         (RedisModuleIO *, const char *level, const char *, ...))

/* memory */
REQUIRED(void *, RM_Alloc, (size_t))
REQUIRED(void *, RM_Calloc, (size_t n, size_t size))
REQUIRED(void *, RM_Realloc, (void *block, size_t size))
REQUIRED(void *, RM_TryAlloc, (size_t))
REQUIRED(size_t, RM_MallocSize, (void *))
REQUIRED(void, RM_Free, (void *))

/* keys and strings */
REQUIRED(RedisModuleKey *, RM_OpenKey,
         (RedisModuleCtx *, RedisModuleString *, int mode))
REQUIRED(int, RM_SelectDb, (RedisModuleCtx *, int))
REQUIRED(int, RM_GetSelectedDb, (RedisModuleCtx *))
REQUIRED(void, RM_CloseKey, (RedisModuleKey *))
REQUIRED(const RedisModuleString *, RM_GetKeyNameFromModuleKey,
         (RedisModuleKey *))
REQUIRED(const RedisModuleString *, RM_GetKeyNameFromIO, (RedisModuleIO *))
REQUIRED(int, RM_KeyType, (RedisModuleKey *))
REQUIRED(RedisModuleType *, RM_ModuleTypeGetType, (RedisModuleKey *))
REQUIRED(void *, RM_ModuleTypeGetValue, (RedisModuleKey *))
REQUIRED(int, RM_ModuleTypeSetValue,
         (RedisModuleKey *, RedisModuleType *, void *))
REQUIRED(int, RM_ModuleTypeReplaceValue,
         (RedisModuleKey *, RedisModuleType *, void *value, void **old))
REQUIRED(int, RM_UnlinkKey, (RedisModuleKey *))
REQUIRED(long long, RM_GetAbsExpire, (RedisModuleKey *))
REQUIRED(int, RM_SetAbsExpire, (RedisModuleKey *, long long milliseconds))
REQUIRED(int, RM_SignalModifiedKey, (RedisModuleCtx *, RedisModuleString *))
REQUIRED(int, RM_NotifyKeyspaceEvent,
         (RedisModuleCtx *, int type, const char *event, RedisModuleString *))
REQUIRED(const char *, RM_StringPtrLen, (const RedisModuleString *, size_t *))
REQUIRED(int, RM_StringToLongLong, (const RedisModuleString *, long long *))
REQUIRED(int, RM_StringToDouble, (const RedisModuleString *, double *))
REQUIRED(RedisModuleString *, RM_CreateString,
         (RedisModuleCtx *, const char *, size_t))
REQUIRED(RedisModuleString *, RM_HoldString,
         (RedisModuleCtx *, RedisModuleString *))
REQUIRED(void, RM_FreeString, (RedisModuleCtx *, RedisModuleString *))
REQUIRED(int, RM_StringCompare,
         (const RedisModuleString *, const RedisModuleString *))

/* dictionaries */
REQUIRED(RedisModuleDict *, RM_CreateDict, (RedisModuleCtx *))
REQUIRED(void, RM_FreeDict, (RedisModuleCtx *, RedisModuleDict *))
REQUIRED(uint64_t, RM_DictSize, (RedisModuleDict *))
REQUIRED(int, RM_DictReplaceC,
         (RedisModuleDict *, void *key, size_t, void *value))
REQUIRED(void *, RM_DictGetC,
         (RedisModuleDict *, void *key, size_t, int *missing))
REQUIRED(int, RM_DictDelC, (RedisModuleDict *, void *key, size_t, void *old))
REQUIRED(RedisModuleDictIter *, RM_DictIteratorStartC,
         (RedisModuleDict *, const char *how, void *key, size_t))
REQUIRED(void *, RM_DictNextC, (RedisModuleDictIter *, size_t *, void **value))
REQUIRED(void, RM_DictIteratorStop, (RedisModuleDictIter *))

/* other commands */
REQUIRED(RedisModuleCallReply *, RM_Call,
         (RedisModuleCtx *, const char *name, const char *, ...))
REQUIRED(int, RM_CallReplyType, (RedisModuleCallReply *))
REQUIRED(int, RM_ReplyWithCallReply, (RedisModuleCtx *, RedisModuleCallReply *))
REQUIRED(void, RM_FreeCallReply, (RedisModuleCallReply *))

/* replies */
REQUIRED(int, RM_WrongArity, (RedisModuleCtx *))
REQUIRED(int, RM_ReplyWithError, (RedisModuleCtx *, const char *))
REQUIRED(int, RM_ReplyWithSimpleString, (RedisModuleCtx *, const char *))
REQUIRED(int, RM_ReplyWithLongLong, (RedisModuleCtx *, long long))
REQUIRED(int, RM_ReplyWithBool, (RedisModuleCtx *, int))
REQUIRED(int, RM_ReplyWithDouble, (RedisModuleCtx *, double))
REQUIRED(int, RM_ReplyWithNull, (RedisModuleCtx *))
REQUIRED(int, RM_ReplyWithArray, (RedisModuleCtx *, long))
REQUIRED(int, RM_ReplyWithMap, (RedisModuleCtx *, long))
REQUIRED(int, RM_ReplyWithStringBuffer,
         (RedisModuleCtx *, const char *, size_t))
REQUIRED(RedisModuleBlockedClient *, RM_BlockClient,
         (RedisModuleCtx *, command_function *reply, command_function *timeout,
          void (*free)(RedisModuleCtx *, void *), long long milliseconds))
REQUIRED(int, RM_UnblockClient, (RedisModuleBlockedClient *, void *))
REQUIRED(void *, RM_GetBlockedClientPrivateData, (RedisModuleCtx *))

/* replication */
REQUIRED(int, RM_Replicate, (RedisModuleCtx *, const char *, const char *, ...))
REQUIRED(int, RM_ReplicateVerbatim, (RedisModuleCtx *))
REQUIRED(int, RM_GetContextFlags, (RedisModuleCtx *))
REQUIRED(int, RM_AvoidReplicaTraffic, (void))

/* time and events */
REQUIRED(long long, RM_Milliseconds, (void))
REQUIRED(uint64_t, RM_CreateTimer,
         (RedisModuleCtx *, long long milliseconds, timer_function *, void *))
REQUIRED(int, RM_SubscribeToKeyspaceEvents,
         (RedisModuleCtx *, int types, event_function *))

/* saving and loading */
REQUIRED(void, RM_SaveUnsigned, (RedisModuleIO *, uint64_t))
REQUIRED(uint64_t, RM_LoadUnsigned, (RedisModuleIO *))
REQUIRED(void, RM_SaveDouble, (RedisModuleIO *, double))
REQUIRED(double, RM_LoadDouble, (RedisModuleIO *))
REQUIRED(void, RM_SaveStringBuffer, (RedisModuleIO *, const char *, size_t))
REQUIRED(char *, RM_LoadStringBuffer, (RedisModuleIO *, size_t *))
REQUIRED(int, RM_IsIOError, (RedisModuleIO *))
REQUIRED(void, RM_EmitAOF, (RedisModuleIO *, const char *, const char *, ...))
REQUIRED(void, RM_DigestAddStringBuffer,
         (RedisModuleDigest *, const char *, size_t))
REQUIRED(void, RM_DigestAddLongLong, (RedisModuleDigest *, long long))
REQUIRED(void, RM_DigestEndSequence, (RedisModuleDigest *))
REQUIRED(void *, RM_DefragAlloc, (RedisModuleDefragCtx *, void *))

/* configuration and statistics */
REQUIRED(int, RM_RegisterStringConfig,
         (RedisModuleCtx *, const char *name, const char *value,
          unsigned int flags, get_string_config *, set_string_config *,
          apply_config *, void *))
REQUIRED(int, RM_RegisterNumericConfig,
         (RedisModuleCtx *, const char *name, long long value,
          unsigned int flags, long long min, long long max,
          get_numeric_config *, set_numeric_config *, apply_config *, void *))
REQUIRED(int, RM_RegisterEnumConfig,
         (RedisModuleCtx *, const char *name, int value, unsigned int flags,
          const char **names, const int *values, int n, get_choice_config *,
          set_choice_config *, apply_config *, void *))
REQUIRED(int, RM_LoadConfigs, (RedisModuleCtx *))
REQUIRED(int, RM_RegisterInfoFunc, (RedisModuleCtx *, info_function *))
REQUIRED(int, RM_InfoAddSection, (RedisModuleInfoCtx *, const char *))
REQUIRED(int, RM_InfoAddFieldULongLong,
         (RedisModuleInfoCtx *, const char *, unsigned long long))
REQUIRED(int, RM_InfoAddFieldCString,
         (RedisModuleInfoCtx *, const char *, const char *))
REQUIRED(RedisModuleServerInfoData *, RM_GetServerInfo,
         (RedisModuleCtx *, const char *section))
REQUIRED(void, RM_FreeServerInfo,
         (RedisModuleCtx *, RedisModuleServerInfoData *))
REQUIRED(unsigned long long, RM_ServerInfoGetFieldUnsigned,
         (RedisModuleServerInfoData *, const char *, int *why))
REQUIRED(const char *, RM_ServerInfoGetFieldC,
         (RedisModuleServerInfoData *, const char *))
REQUIRED(int, RM_GetServerVersion, (void))
REQUIRED(void, RM_GetRandomBytes, (unsigned char *, size_t))

/* later than Redis 7.0 and Valkey 7.2 */
OPTIONAL(int, RM_AddACLCategory, (RedisModuleCtx *, const char *))
OPTIONAL(int, RM_SetCommandACLCategories, (RedisModuleCommand *, const char *))

#undef REQUIRED
#undef OPTIONAL
