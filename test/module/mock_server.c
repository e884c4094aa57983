#include "mock_server.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../../module/type.h"

RedisModuleTypeMethods mock_native, mock_redisbloom, mock_valkey, mock_window,
    mock_cuckoo, mock_rebuilding;
size_t mock_takes_left, mock_most_bytes, mock_blocks;

/* ---- Memory -------------------------------------------------------------- */

/* Blocks lie after their size, at 16 bytes but not at 64. */
enum { BEFORE = 16 };

static void *take(size_t size) {
    size_t *block = size > SIZE_MAX - BEFORE ? NULL : malloc(BEFORE + size);
    if (!block) return NULL;
    *block = size;
    mock_blocks++;
    return (char *)block + BEFORE;
}

static void give(void *block) {
    if (!block) return;
    mock_blocks--;
    free((char *)block - BEFORE);
}

static size_t size_of(void *block) {
    size_t size;
    memcpy(&size, (char *)block - BEFORE, sizeof size);
    return size;
}

static void *try_take(size_t size) {
    if (!mock_takes_left || size > mock_most_bytes) return NULL;
    mock_takes_left--;
    return take(size);
}

static void *allocate_zeros(size_t n, size_t size) {
    void *block = take(n * size);
    if (!block) abort(); /* as a server does */
    return memset(block, 0, n * size);
}

static void *must_take(size_t size) {
    void *block = take(size);
    if (!block) abort();
    return block;
}

static void *move(RedisModuleDefragCtx *ctx, void *block) {
    const size_t size = size_of(block);
    char *moved = must_take(size);
    memcpy(moved, block, size);
    memset(block, 0xA5, size);
    give(block);
    ctx->moved++;
    return moved;
}

/* ---- The stream ---------------------------------------------------------- */

static void put(RedisModuleIO *io, const void *bytes, size_t size) {
    io->bytes = realloc(io->bytes, io->size + size + 1);
    if (!io->bytes) abort();
    memcpy(io->bytes + io->size, bytes, size);
    io->size += size;
}

static void save_unsigned(RedisModuleIO *io, uint64_t value) {
    put(io, &value, sizeof value);
}

static void save_double(RedisModuleIO *io, double value) {
    put(io, &value, sizeof value);
}

static void save_string(RedisModuleIO *io, const char *bytes, size_t size) {
    save_unsigned(io, size);
    put(io, bytes, size);
}

static bool get(RedisModuleIO *io, void *to, size_t size) {
    memset(to, 0, size);
    if (io->failed || size > io->size - io->at) {
        io->failed = true;
        return false;
    }
    memcpy(to, io->bytes + io->at, size);
    io->at += size;
    return true;
}

static uint64_t load_unsigned(RedisModuleIO *io) {
    uint64_t value;
    get(io, &value, sizeof value);
    return value;
}

static double load_double(RedisModuleIO *io) {
    double value;
    get(io, &value, sizeof value);
    return value;
}

static char *load_string(RedisModuleIO *io, size_t *size) {
    const uint64_t n = load_unsigned(io);
    if (io->failed || n > io->size - io->at) {
        io->failed = true;
        return NULL;
    }
    char *bytes = must_take((size_t)n);
    get(io, bytes, (size_t)n);
    *size = (size_t)n;
    return bytes;
}

static int is_failed(RedisModuleIO *io) {
    return io->failed;
}

static void log_nothing(RedisModuleIO *io, const char *level, const char *text,
                        ...) {
    (void)io, (void)level, (void)text;
}

/* ---- Digests ------------------------------------------------------------- */

static void digest_bytes(RedisModuleDigest *to, const char *bytes,
                         size_t size) {
    for (size_t i = 0; i < size; i++)
        to->sum = (to->sum ^ (uint8_t)bytes[i]) * UINT64_C(0x100000001B3);
}

static void digest_number(RedisModuleDigest *to, long long number) {
    digest_bytes(to, (const char *)&number, sizeof number);
}

static void digest_end(RedisModuleDigest *to) {
    digest_number(to, 1);
}

uint64_t mock_digest(const RedisModuleTypeMethods *type, void *value) {
    RedisModuleDigest digest = {UINT64_C(0xCBF29CE484222325)};
    type->digest(&digest, value);
    return digest.sum;
}

/* As if from a file: what it says is obeyed. */
static int is_loading(RedisModuleCtx *ctx) {
    (void)ctx;
    return RM_CTX_LOADING;
}

/* ---- Starting ------------------------------------------------------------ */

static const RedisModuleString *no_name(RedisModuleIO *io) {
    (void)io;
    return NULL;
}

static void random_bytes(unsigned char *to, size_t size) {
    memset(to, 7, size);
}

static RedisModuleType *keep_type(RedisModuleCtx *ctx, const char *name,
                                  int encoding, RedisModuleTypeMethods *type) {
    (void)ctx, (void)encoding;
    RedisModuleTypeMethods *kept =
        strcmp(name, "MBbloom--") == 0   ? &mock_redisbloom
        : strcmp(name, "MBbloomCF") == 0 ? &mock_cuckoo
        : strcmp(name, "calyxbw-1") == 0 ? &mock_window
        : strcmp(name, "bloomfltr") == 0 ? &mock_valkey
        : strcmp(name, "calyxbr-1") == 0 ? &mock_rebuilding
                                         : &mock_native;
    *kept = *type;
    return (RedisModuleType *)kept;
}

/* ---- Keys ---------------------------------------------------------------- */

static const char *text_of(const RedisModuleString *string, size_t *size) {
    *size = strlen(string->text);
    return string->text;
}

void mock_start(void) {
    mock_takes_left = SIZE_MAX;
    mock_most_bytes = (size_t)64 << 20;
    RM_Alloc = must_take;
    RM_Calloc = allocate_zeros;
    RM_TryAlloc = try_take;
    RM_MallocSize = size_of;
    RM_Free = give;
    RM_DefragAlloc = move;
    RM_SaveUnsigned = save_unsigned;
    RM_SaveDouble = save_double;
    RM_SaveStringBuffer = save_string;
    RM_LoadUnsigned = load_unsigned;
    RM_LoadDouble = load_double;
    RM_LoadStringBuffer = load_string;
    RM_IsIOError = is_failed;
    RM_LogIOError = log_nothing;
    RM_DigestAddStringBuffer = digest_bytes;
    RM_DigestAddLongLong = digest_number;
    RM_DigestEndSequence = digest_end;
    RM_GetRandomBytes = random_bytes;
    RM_GetContextFlags = is_loading;
    RM_GetKeyNameFromIO = no_name;
    RM_CreateDataType = keep_type;
    RM_StringPtrLen = text_of;
    type_register(NULL);
}
