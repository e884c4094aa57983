/*
 * The types: `calyxbf-1` for native filters, `calyxbw-1` for windows of them,
 * and the types of other modules for filters in their layouts: `MBbloom--` and
 * `MBbloomCF` of RedisBloom, `bloomfltr` of valkey-bloom. They differ only in
 * how they are saved. While a rebuild is open for a filter of any layout, its
 * type is `calyxbr-1`, which also saves the recorded items.
 */
#include "type.h"

#include <limits.h>
#include <string.h>

#include "foreign/redisbloom_chain.h"
#include "layout/rebuild.h"
#include "layout/transfer.h"
#include "layout/window.h"
#include "server/allocator.h"

static const struct filter_layout *const stored[] = {
    &native_layout, &redisbloom_layout, &valkey_layout, &window_layout,
    &cuckoo_layout};
enum {
    LAYOUTS = sizeof stored / sizeof *stored,
    REBUILDING = LAYOUTS, /* a filter of any layout, and its rebuild */
    TYPES,
    REBUILDING_ENCODING = 1
};
static RedisModuleType *types[TYPES];

uint64_t loads_refused;

/* ---- Persistence --------------------------------------------------------- */

static void *load(const struct filter_layout *layout, RedisModuleIO *io,
                  int encoding) {
    struct filter *f = NULL;
    calyx_error why = {.text = "the file or payload ends early"};
    struct memory_request request;
    memory_begin(&request, NULL, 0);
    request.use = MEMORY_LOADED;
    const calyx_status status = filter_load(layout, io, encoding, &f, &why);
    memory_end(&why);
    if (status == CALYX_OK) return f;
    loads_refused++;
    RM_LogIOError(io, "warning", "a %sfilter was refused: %s",
                  layout->is_cuckoo ? "cuckoo " : "", why.text);
    return NULL;
}

static void set_window_name(struct filter *f, const RedisModuleString *name) {
    if (!is_window(f) || !name) return;
    size_t size;
    const char *text = RM_StringPtrLen(name, &size);
    rotation_name(f->window, text, size);
}

static void *load_native(RedisModuleIO *io, int encoding) {
    return load(&native_layout, io, encoding);
}

static void *load_window(RedisModuleIO *io, int encoding) {
    struct filter *f = load(&window_layout, io, encoding);
    if (f) set_window_name(f, RM_GetKeyNameFromIO(io));
    return f;
}

static void *load_redisbloom(RedisModuleIO *io, int encoding) {
    return load(&redisbloom_layout, io, encoding);
}

static void *load_cuckoo(RedisModuleIO *io, int encoding) {
    return load(&cuckoo_layout, io, encoding);
}

static void *load_valkey(RedisModuleIO *io, int encoding) {
    return load(&valkey_layout, io, encoding);
}

static void save(RedisModuleIO *io, void *value) {
    const struct filter *f = value;
    f->layout->save(f, io);
}

/* ---- With a rebuild ------------------------------------------------------ */

/* The type and the encoding of the filter, the filter, the rebuild. */
static void save_rebuilding(RedisModuleIO *io, void *value) {
    const struct filter *f = value;
    RM_SaveStringBuffer(io, f->layout->type, strlen(f->layout->type));
    RM_SaveUnsigned(io, (uint64_t)f->layout->encoding);
    save(io, value);
    rebuild_save(rebuild_of(f), io);
}

static const struct filter_layout *load_layout(RedisModuleIO *io) {
    size_t size;
    const struct filter_layout *found = NULL;
    char *const type = RM_LoadStringBuffer(io, &size);
    for (int i = 0; type && i < LAYOUTS; i++)
        if (strlen(stored[i]->type) == size &&
            memcmp(stored[i]->type, type, size) == 0)
            found = stored[i];
    if (type) RM_Free(type);
    return found;
}

static void *load_rebuilding(RedisModuleIO *io, int encoding) {
    const struct filter_layout *const layout =
        encoding == REBUILDING_ENCODING ? load_layout(io) : NULL;
    const uint64_t inner = layout ? RM_LoadUnsigned(io) : 0;
    struct filter *const f =
        inner && inner <= INT_MAX ? load(layout, io, (int)inner) : NULL;
    if (f) set_window_name(f, RM_GetKeyNameFromIO(io));
    if (f && rebuild_load(io, f)) return f;
    RM_LogIOError(io, "warning", "a filter with a rebuild was refused");
    if (!f) return NULL;
    loads_refused++;
    filter_free(f);
    return NULL;
}

/* As valkey-bloom does it. */
static void rewrite_valkey(RedisModuleIO *io, RedisModuleString *key,
                           const struct valkey_bloom *v) {
    const size_t size = valkey_payload_size(v);
    uint8_t *const payload = RM_Alloc(size);
    valkey_put_payload(v, payload);
    RM_EmitAOF(io, "BF.LOAD", "sb", key, (const char *)payload, size);
    RM_Free(payload);
}

/* As BF.SCANDUMP would dump it, or CF.SCANDUMP, which dumps no filter without
 * items: no record is larger than a piece. */
static void rewrite(RedisModuleIO *io, RedisModuleString *key, void *value) {
    const struct filter *f = value;
    if (f->uncommitted) {
        transfer_rewrite(io, key, f);
        return;
    }
    if (f->layout == &valkey_layout && !filter_is_partial(f)) {
        rewrite_valkey(io, key, f->valkey);
        return;
    }
    struct piece piece = f->layout->dump_head(f);
    while (piece.at) {
        RM_EmitAOF(io, load_command(f), "slb", key, (long long)piece.at,
                   (const char *)piece.bytes, piece.size);
        RM_Free(piece.owned);
        piece = f->layout->dump_from(f, piece.at);
    }
}

static void rewrite_rebuilding(RedisModuleIO *io, RedisModuleString *key,
                               void *value) {
    const struct rebuild *const r = rebuild_of(value);
    rewrite(io, key, value);
    if (r) rebuild_rewrite(r, io, key);
}

/* ---- The rest ------------------------------------------------------------ */

static size_t usage(const void *value) {
    const struct filter *f = value;
    const size_t extra = f->extra ? RM_MallocSize(f->extra) : 0;
    return SERVERS_STRUCTS + extra + (size_t)f->layout->memory(f) +
           (size_t)rebuild_memory(rebuild_of(f));
}

static void digest(RedisModuleDigest *to, void *value) {
    const struct filter *f = value;
    f->layout->digest(f, to);
    if (rebuild_of(f)) rebuild_digest(rebuild_of(f), to);
    RM_DigestEndSequence(to);
}

static void end(void *value) {
    filter_free(value);
}

/* The server frees off its main thread what takes an effort of more than 64. */
static size_t effort(RedisModuleString *key, const void *value) {
    (void)key;
    const struct filter *f = value;
    const uint32_t parts = f->layout->is_cuckoo ? f->cuckoo->parts : 0;
    return 1 + (size_t)(filter_bytes(f) >> 16) + parts / 64 +
           (size_t)(rebuild_memory(rebuild_of(f)) >> 16);
}

static void *copy(RedisModuleString *from, RedisModuleString *to,
                  const void *value) {
    (void)from;
    struct filter *f = NULL;
    struct memory_request request;
    memory_begin(&request, NULL, 0);
    filter_copy(value, &f, NULL);
    memory_end(NULL);
    if (f) set_window_name(f, to);
    return f;
}

/* Large blocks are never moved by the allocator; the rest takes no time. */
static int move(RedisModuleDefragCtx *ctx, RedisModuleString *key,
                void **value) {
    (void)key;
    memory_move_plain(ctx, value);
    struct filter *f = *value;
    memory_move_plain(ctx, &f->extra);
    f->layout->move(f, ctx);
    return 0;
}

int type_register(RedisModuleCtx *ctx) {
    static void *(*const loads[LAYOUTS])(RedisModuleIO *, int) = {
        load_native, load_redisbloom, load_valkey, load_window, load_cuckoo};
    RedisModuleTypeMethods methods = {
        .version = RM_TYPE_METHODS,
        .rdb_save = save,
        .aof_rewrite = rewrite,
        .mem_usage = usage,
        .digest = digest,
        .free = end,
        .free_effort = effort,
        .copy = copy,
        .defrag = move,
    };
    for (int i = 0; i < LAYOUTS; i++) {
        methods.rdb_load = loads[i];
        types[i] = RM_CreateDataType(ctx, stored[i]->type, stored[i]->encoding,
                                     &methods);
        if (!types[i]) return RM_ERR;
    }
    methods.rdb_load = load_rebuilding;
    methods.rdb_save = save_rebuilding;
    methods.aof_rewrite = rewrite_rebuilding;
    types[REBUILDING] =
        RM_CreateDataType(ctx, "calyxbr-1", REBUILDING_ENCODING, &methods);
    return types[REBUILDING] ? RM_OK : RM_ERR;
}

static bool is_of(const struct filter *f, enum family family) {
    return family == CUCKOO ? f->can_remove : !f->layout->is_cuckoo;
}

enum key_type type_for(RedisModuleKey *key, enum family family,
                       struct filter **f) {
    const RedisModuleType *type = key ? RM_ModuleTypeGetType(key) : NULL;
    int i = 0;
    while (i < TYPES && types[i] != type) i++;
    if (type && i < TYPES) {
        struct filter *const there = RM_ModuleTypeGetValue(key);
        if (!is_of(there, family)) return KEY_OTHER;
        *f = there;
        return KEY_FILTER;
    }
    if (!key || RM_KeyType(key) == RM_KEYTYPE_EMPTY) return KEY_MISSING;
    return KEY_OTHER;
}

enum key_type type_of(RedisModuleKey *key, struct filter **f) {
    return type_for(key, BLOOM, f);
}

static RedisModuleType *type_with(const struct filter *f) {
    int i = 0;
    while (stored[i] != f->layout) i++;
    return types[rebuild_of(f) ? REBUILDING : i];
}

void type_attach(RedisModuleKey *key, struct filter *f) {
    RM_ModuleTypeSetValue(key, type_with(f), f);
    set_window_name(f, RM_GetKeyNameFromModuleKey(key));
}

void type_detach(RedisModuleKey *key, const struct filter *f) {
    void *detached;
    RM_ModuleTypeReplaceValue(key, RM_ModuleTypeGetType(key),
                              filter_placeholder(f->layout), &detached);
}

void type_follow_rebuild(RedisModuleKey *key, struct filter *f) {
    const long long expires = RM_GetAbsExpire(key);
    if (RM_ModuleTypeGetType(key) == type_with(f)) return;
    type_detach(key, f);
    type_attach(key, f);
    RM_SetAbsExpire(key, expires);
}
