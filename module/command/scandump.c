/* BF.SCANDUMP, BF.LOADCHUNK, CF.SCANDUMP, CF.LOADCHUNK: dump and load any
 * filter, as RedisBloom does. */
#include "command/command.h"
#include "command/open_key.h"
#include "command/replicate.h"
#include "layout/rebuild.h"
#include "server/reply.h"
#include "server/steps.h"

/* A dump must not see half of a compaction. */
static bool is_compacted(RedisModuleCtx *ctx, struct filter *f) {
    if (may_change(ctx, f)) return true;
    RM_ReplyWithError(ctx, "ERR the filter is being compacted; try again when "
                           "that is done");
    return false;
}

/* ---- Dumping ------------------------------------------------------------- */

static void reply_piece(RedisModuleCtx *ctx, const struct piece *piece,
                        enum family family) {
    RM_ReplyWithArray(ctx, 2);
    RM_ReplyWithLongLong(ctx, piece->at);
    if (!piece->bytes && family == CUCKOO)
        RM_ReplyWithNull(ctx);
    else
        RM_ReplyWithStringBuffer(ctx, piece->bytes ? piece->bytes : "",
                                 piece->size);
    RM_Free(piece->owned);
}

static int scandump(RedisModuleCtx *ctx, RedisModuleString *name, long long at,
                    enum family family) {
    struct filter *f;
    if (!find_filter(ctx, name,
                     MUST_EXIST | MUST_BE_COMPLETE | words_of[family].flags,
                     &f) ||
        !is_compacted(ctx, f))
        return RM_OK;
    struct piece piece = {0}; /* RedisBloom dumps no cuckoo filter without items
                               */
    if (!f->layout->is_cuckoo || filter_items(f) > 0)
        piece = at == 0 ? f->layout->dump_head(f) : f->layout->dump_from(f, at);
    reply_piece(ctx, &piece, family);
    return RM_OK;
}

static int run_scandump(RedisModuleCtx *ctx, RedisModuleString **argv,
                        int argc) {
    struct filter *f;
    long long at;
    if (argc != 3) return RM_WrongArity(ctx);
    if (RM_StringToLongLong(argv[2], &at) == RM_OK)
        return scandump(ctx, argv[1], at, BLOOM);
    if (!find_filter(ctx, argv[1], MUST_EXIST, &f)) return RM_OK;
    return RM_ReplyWithError(ctx, "Second argument must be numeric");
}

static int run_cf_scandump(RedisModuleCtx *ctx, RedisModuleString **argv,
                           int argc) {
    long long at;
    if (argc != 3) return RM_WrongArity(ctx);
    if (RM_StringToLongLong(argv[2], &at) != RM_OK || at < 0)
        return RM_ReplyWithError(ctx, "Invalid position");
    return scandump(ctx, argv[1], at, CUCKOO);
}

/* ---- Loading ------------------------------------------------------------- */

/* What a command has to load into a key, and for whom. */
struct loading {
    enum family family;
    RedisModuleString *name;
    long long at;
    const char *bytes;
    size_t size;
};

static int loaded(RedisModuleCtx *ctx, const struct loading *l,
                  const struct filter *f) {
    RM_SignalModifiedKey(ctx, l->name);
    if (!filter_is_partial(f))
        RM_NotifyKeyspaceEvent(ctx, RM_NOTIFY_GENERIC,
                               words_of[l->family].loaded, l->name);
    return RM_ReplyWithSimpleString(ctx, "OK");
}

static struct filter *create(RedisModuleCtx *ctx, const struct loading *l,
                             RedisModuleKey *key) {
    if (l->family == BLOOM)
        return create_from_head(ctx, key, BLOOM, l->bytes, l->size, MEMORY_NEW);
    if (native_layout.is_head(l->bytes, l->size) ||
        cuckoo_layout.is_head(l->bytes, l->size))
        return create_from_head(ctx, key, CUCKOO, l->bytes, l->size,
                                MEMORY_IN_STEPS);
    loads_refused++;
    reply_text(ctx, "Invalid header (it has %llu bytes, not %d)",
               (unsigned long long)l->size, CUCKOO_HEADER);
    return NULL;
}

static int created(RedisModuleCtx *ctx, const struct loading *l,
                   const struct filter *f) {
    if (f->layout == &redisbloom_layout)
        replicate_chain_header(ctx, l->name,
                               f->chain); /* also of one in an old form */
    else
        RM_ReplicateVerbatim(ctx);
    return loaded(ctx, l, f);
}

static int load_piece(RedisModuleCtx *ctx, const struct loading *l,
                      struct filter *f) {
    calyx_error why = {.text = ""};
    bool changed = false;
    if (!filter_is_partial(f)) steps_note_change(extra_of(f)->identity);
    if (!filter_is_partial(f)) rebuild_lose(rebuild_of(f), REBUILD_IN_BULK);
    calyx_status status =
        filter_load_piece(f, l->at, l->bytes, l->size, &changed, &why);
    if (status != CALYX_OK && is_replayed(ctx) && filter_accept_partial(f))
        status = filter_load_piece(f, l->at, l->bytes, l->size, &changed, &why);
    if (status != CALYX_OK) {
        loads_refused++;
        return reply_text(
            ctx, l->family == CUCKOO ? "Couldn't load chunk! (%s)" : "ERR %s",
            why.text);
    }
    if (!changed) return RM_ReplyWithSimpleString(ctx, "OK");
    if (f->layout == &redisbloom_layout)
        replicate_chain_chunk(ctx, l->name, f->chain, l->at, l->size);
    else
        RM_ReplicateVerbatim(ctx);
    return loaded(ctx, l, f);
}

static int load(RedisModuleCtx *ctx, const struct loading *l) {
    struct filter *f, *made = NULL;
    bool takes = false;
    RedisModuleKey *key =
        open_filter(ctx, l->name, words_of[l->family].flags, &f);
    if (!key) return RM_OK;
    if (f && l->family == CUCKOO && l->at == 1)
        RM_ReplyWithError(ctx, "ERR item exists");
    else if (f && f->uncommitted)
        reply_partial(ctx, f);
    else if (f)
        takes = is_compacted(ctx, f);
    else if (l->at == 1)
        made = create(ctx, l, key);
    else
        reply_not_found(ctx);
    RM_CloseKey(key); /* a listener of the event may delete it */
    if (made) return created(ctx, l, made);
    return takes ? load_piece(ctx, l, f) : RM_OK;
}

static int run_loadchunk(RedisModuleCtx *ctx, RedisModuleString **argv,
                         int argc) {
    struct loading l = {.family = BLOOM};
    if (argc != 4) return RM_WrongArity(ctx);
    l.name = argv[1];
    l.bytes = RM_StringPtrLen(argv[3], &l.size);
    if (RM_StringToLongLong(argv[2], &l.at) != RM_OK)
        return RM_ReplyWithError(ctx, "ERR Second argument must be numeric");
    return load(ctx, &l);
}

static int run_cf_loadchunk(RedisModuleCtx *ctx, RedisModuleString **argv,
                            int argc) {
    struct loading l = {.family = CUCKOO};
    if (argc != 4) return RM_WrongArity(ctx);
    l.name = argv[1];
    l.bytes = RM_StringPtrLen(argv[3], &l.size);
    if (RM_StringToLongLong(argv[2], &l.at) != RM_OK || l.at == 0)
        return RM_ReplyWithError(ctx, "Invalid position");
    return load(ctx, &l);
}

/* ---- The commands -------------------------------------------------------- */

static RedisModuleCommandArg dump_args[] = {KEY, VALUE(INTEGER, "iterator"),
                                            END};

static RedisModuleCommandArg load_args[] = {KEY, VALUE(INTEGER, "iterator"),
                                            VALUE(STRING, "data"), END};

const struct command bf_scandump = {
    .name = "bf.scandump",
    .run = run_scandump,
    .flags = "readonly fast",
    .categories = "read bloom",
    .summary = "Returns the next piece of a Bloom filter, to be saved.",
    .complexity = "O(n), with n the size of the piece",
    .tips = "dont_cache",
    .arity = 3,
    .key_specs = key_read,
    .args = dump_args,
};

const struct command bf_loadchunk = {
    .name = "bf.loadchunk",
    .run = run_loadchunk,
    .flags = "write deny-oom",
    .categories = "write bloom",
    .summary = "Loads a piece of a Bloom filter that was dumped.",
    .complexity = "O(n), with n the size of the piece",
    .arity = 4,
    .key_specs = key_updated,
    .args = load_args,
};

static RedisModuleCommandArg cf_dump_args[] = {KEY, VALUE(INTEGER, "position"),
                                               END};

static RedisModuleCommandArg cf_load_args[] = {KEY, VALUE(INTEGER, "position"),
                                               VALUE(STRING, "data"), END};

const struct command cf_scandump = {
    .name = "cf.scandump",
    .run = run_cf_scandump,
    .flags = "readonly fast",
    .categories = "read cuckoo",
    .summary = "Returns the next chunk of a cuckoo filter, to be saved.",
    .complexity = "O(n), with n the size of the chunk",
    .tips = "dont_cache",
    .arity = 3,
    .key_specs = key_read,
    .args = cf_dump_args,
};

const struct command cf_loadchunk = {
    .name = "cf.loadchunk",
    .run = run_cf_loadchunk,
    .flags = "write deny-oom",
    .categories = "write cuckoo",
    .summary = "Loads a chunk of a cuckoo filter that was dumped.",
    .complexity = "O(n), with n the size of the chunk",
    .arity = 4,
    .key_specs = key_updated,
    .args = cf_load_args,
};
