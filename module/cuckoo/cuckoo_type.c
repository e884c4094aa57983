/*
 * The type of cuckoo filters. In an RDB file, in encoding 4:
 *
 *     unsigned parts, buckets of the first, items, deletes, bucket size,
 *              iterations, expansion
 *
 * and for each part
 *
 *     unsigned buckets
 *     string   slots
 *
 * A filter that is partly loaded begins with two numbers more, ours: 0, which
 * RedisBloom refuses as a number of parts, as it should, and the bytes that
 * have arrived.
 *
 * A compaction is completed before its filter is saved, copied or compared: it
 * was replicated when it began. The child that saves does so in its own memory.
 */
#include "cuckoo/cuckoo_type.h"

#include "server/allocator.h"

enum { CUCKOO_ENCODING = 4 };

static RedisModuleType *cuckoo_type;

/* ---- Totals -------------------------------------------------------------- */

/* The main thread adds; any thread may free. */
static struct cuckoo_totals made, freed;

static void add_to(uint64_t *total, uint64_t more) {
    __atomic_fetch_add(total, more, __ATOMIC_RELAXED);
}

static uint64_t less(uint64_t total, const uint64_t *gone) {
    return total - __atomic_load_n(gone, __ATOMIC_RELAXED);
}

struct cuckoo_totals cuckoo_totals(void) {
    return (struct cuckoo_totals){
        .filters = less(made.filters, &freed.filters),
        .bytes = less(made.bytes, &freed.bytes),
        .items = less(made.items, &freed.items),
    };
}

void cuckoo_note(struct cuckoo *c) {
    const struct cuckoo_facts facts = cuckoo_describe(c);
    made.items += facts.items - c->counted_items;
    made.bytes += facts.size - c->counted_bytes;
    c->counted_items = facts.items;
    c->counted_bytes = facts.size;
}

/* A new filter, or one that was loaded or copied. */
static struct cuckoo *begin_life(struct cuckoo *c) {
    static uint64_t lives;
    c->life = ++lives;
    made.filters++;
    cuckoo_note(c);
    return c;
}

static void end_life(void *value) {
    struct cuckoo *const c = value;
    add_to(&freed.filters, 1);
    add_to(&freed.items, c->counted_items);
    add_to(&freed.bytes, c->counted_bytes);
    cuckoo_free(c);
}

/* ---- Persistence --------------------------------------------------------- */

static void save(RedisModuleIO *io, void *value) {
    struct cuckoo *const c = value;
    cuckoo_finish_compaction(c);
    const struct cuckoo_facts facts = cuckoo_describe(c);
    if (cuckoo_is_partial(c)) {
        RM_SaveUnsigned(io, 0);
        RM_SaveUnsigned(io, c->arrived);
    }
    RM_SaveUnsigned(io, facts.parts);
    RM_SaveUnsigned(io, facts.buckets);
    RM_SaveUnsigned(io, facts.items);
    RM_SaveUnsigned(io, facts.deletes);
    RM_SaveUnsigned(io, facts.bucket_size);
    RM_SaveUnsigned(io, facts.iterations);
    RM_SaveUnsigned(io, facts.expansion);
    for (uint32_t i = 0; i < c->parts; i++) {
        const struct cuckoo_part *const p = &c->part[i];
        RM_SaveUnsigned(io, p->buckets);
        RM_SaveStringBuffer(io, (const char *)p->slots,
                            (size_t)cuckoo_part_bytes(c, p));
    }
}

static calyx_status load_part(RedisModuleIO *io, const struct cuckoo_claim *is,
                              struct cuckoo *c, calyx_error *why) {
    size_t size = 0;
    const uint32_t number = c->parts;
    const uint64_t wanted = cuckoo_claimed_buckets(is, number);
    const uint64_t buckets = RM_LoadUnsigned(io);
    char *const slots = RM_LoadStringBuffer(io, &size);
    calyx_status status = CALYX_DAMAGED;
    if (!slots || RM_IsIOError(io))
        status = CALYX_IO;
    else if (buckets != wanted)
        cuckoo_fail(why, CALYX_DAMAGED,
                    "part %u has %llu buckets, not %llu: each part has %u "
                    "times as many as the last",
                    number + 1, (unsigned long long)buckets,
                    (unsigned long long)wanted, c->expansion);
    else if (size != buckets * c->bucket_size)
        cuckoo_fail(why, CALYX_DAMAGED,
                    "part %u has %llu bytes, not %llu buckets of %u",
                    number + 1, (unsigned long long)size,
                    (unsigned long long)buckets, c->bucket_size);
    else
        status = cuckoo_push(c, buckets, (uint8_t *)slots, why);
    if (status == CALYX_OK)
        c->items += cuckoo_used((uint8_t *)slots, size);
    else if (slots)
        c->memory.release(c->memory.context, slots, size);
    return status;
}

/* Nothing may be where nothing has arrived. */
static calyx_status load_arrived(struct cuckoo *c, uint64_t arrived,
                                 calyx_error *why) {
    uint64_t begin = 0, late = 0;
    for (uint32_t i = 0; i < c->parts; i++) {
        const uint64_t bytes = cuckoo_part_bytes(c, &c->part[i]);
        const uint64_t from = arrived > begin ? arrived - begin : 0;
        if (from < bytes)
            late += cuckoo_used(c->part[i].slots + from, bytes - from);
        begin += bytes;
    }
    if (arrived >= c->bytes || late)
        return cuckoo_fail(why, CALYX_DAMAGED,
                           "the filter is said to be partial, with %llu of its "
                           "%llu bytes, but %llu slots behind them are in use",
                           (unsigned long long)arrived,
                           (unsigned long long)c->bytes,
                           (unsigned long long)late);
    c->arrived = arrived;
    return CALYX_OK;
}

/* RedisBloom before its version of June 2026 sent its replicas the header of a
 * dump without the slots. */
static void warn_of_lost(RedisModuleIO *io, const struct cuckoo *c) {
    if (c->items != c->claimed)
        RM_LogIOError(io, "warning",
                      "a cuckoo filter is said to have %llu items, but has "
                      "%llu: its items were lost before it was saved, or "
                      "changed while it was dumped",
                      (unsigned long long)c->claimed,
                      (unsigned long long)c->items);
}

static calyx_status load_parts(RedisModuleIO *io, const struct cuckoo_claim *is,
                               bool partial, uint64_t arrived, struct cuckoo *c,
                               calyx_error *why) {
    calyx_status status = CALYX_OK;
    while (status == CALYX_OK && c->parts < is->parts)
        status = load_part(io, is, c, why);
    if (status != CALYX_OK) return status;
    c->claimed = is->items;
    if (partial) return load_arrived(c, arrived, why);
    warn_of_lost(io, c);
    c->arrived = c->bytes;
    return CALYX_OK;
}

static calyx_status load_value(RedisModuleIO *io, struct cuckoo **out,
                               calyx_error *why) {
    struct cuckoo_claim is = {.parts = RM_LoadUnsigned(io)};
    uint64_t arrived = 0, bytes;
    const bool partial = is.parts == 0;
    if (partial) {
        arrived = RM_LoadUnsigned(io);
        is.parts = RM_LoadUnsigned(io);
    }
    is.buckets = RM_LoadUnsigned(io);
    is.items = RM_LoadUnsigned(io);
    is.deletes = RM_LoadUnsigned(io);
    is.bucket_size = RM_LoadUnsigned(io);
    is.iterations = RM_LoadUnsigned(io);
    is.expansion = RM_LoadUnsigned(io);
    if (RM_IsIOError(io)) return CALYX_IO;
    calyx_status status = cuckoo_check(&is, &bytes, why);
    if (status == CALYX_OK && !memory_fits(bytes)) return CALYX_NO_MEMORY;
    if (status == CALYX_OK) status = cuckoo_blank(&is, &plain_memory, out, why);
    if (status != CALYX_OK) return status;
    status = load_parts(io, &is, partial, arrived, *out, why);
    if (status != CALYX_OK) cuckoo_free(*out);
    return status;
}

static void *refuse(RedisModuleIO *io, const char *why) {
    loads_refused++;
    RM_LogIOError(io, "warning", "a cuckoo filter was refused: %s", why);
    return NULL;
}

static void *load(RedisModuleIO *io, int encoding) {
    if (encoding < CUCKOO_ENCODING)
        return refuse(io, "it is of a version before RedisBloom 2.2, which had "
                          "other hashes: no item would be found; make it again "
                          "from its items");
    if (encoding > CUCKOO_ENCODING)
        return refuse(io, "its encoding is newer than 4");
    struct cuckoo *c = NULL;
    calyx_error why = {.text = "the file or payload ends early"};
    struct memory_request request;
    memory_begin(&request, NULL, 0);
    request.use = MEMORY_LOADED;
    const calyx_status status = load_value(io, &c, &why);
    memory_end(&why);
    return status == CALYX_OK ? begin_life(c) : refuse(io, why.text);
}

/* As CF.SCANDUMP would dump it, but one without items, too. */
static void rewrite(RedisModuleIO *io, RedisModuleString *key, void *value) {
    struct cuckoo *const c = value;
    uint8_t header[CUCKOO_HEADER];
    int64_t at = 1;
    size_t size;
    const char *bytes;
    cuckoo_finish_compaction(c);
    cuckoo_dump_header(c, header);
    RM_EmitAOF(io, "CF.LOADCHUNK", "slb", key, 1LL, (const char *)header,
               sizeof header);
    while ((bytes = cuckoo_dump_chunk(c, &at, &size)))
        RM_EmitAOF(io, "CF.LOADCHUNK", "slb", key, (long long)at, bytes, size);
}

/* ---- The rest ------------------------------------------------------------ */

static size_t usage(const void *value) {
    const struct cuckoo *const c = value;
    size_t sum = SERVERS_STRUCTS + RM_MallocSize((void *)(uintptr_t)value) +
                 RM_MallocSize(c->part);
    for (uint32_t i = 0; i < c->held; i++)
        sum += RM_MallocSize(c->part[i].slots);
    return sum;
}

static void digest(RedisModuleDigest *to, void *value) {
    cuckoo_finish_compaction(value);
    RM_DigestAddLongLong(to, (long long)cuckoo_digest(value));
    RM_DigestEndSequence(to);
}

/* The server frees off its main thread what takes an effort of more than 64. */
static size_t effort(RedisModuleString *key, const void *value) {
    (void)key;
    const struct cuckoo *const c = value;
    return 1 + (size_t)(c->bytes >> 16) + c->parts / 64;
}

static void *copy(RedisModuleString *from, RedisModuleString *to,
                  const void *value) {
    (void)from, (void)to;
    struct cuckoo *const c = (struct cuckoo *)(uintptr_t)value, *out = NULL;
    struct memory_request request;
    cuckoo_finish_compaction(c);
    memory_begin(&request, NULL, 0);
    const bool fits = memory_fits(c->bytes);
    if (fits) cuckoo_copy(c, &out, NULL);
    memory_end(NULL);
    return out ? begin_life(out) : NULL;
}

static int move(RedisModuleDefragCtx *ctx, RedisModuleString *key,
                void **value) {
    (void)key;
    memory_move_plain(ctx, value);
    struct cuckoo *const c = *value;
    memory_move_plain(ctx, &c->part);
    for (uint32_t i = 0; i < c->held; i++)
        memory_move_plain(ctx, &c->part[i].slots);
    return 0;
}

int cuckoo_type_register(RedisModuleCtx *ctx) {
    RedisModuleTypeMethods methods = {
        .version = RM_TYPE_METHODS,
        .rdb_load = load,
        .rdb_save = save,
        .aof_rewrite = rewrite,
        .mem_usage = usage,
        .digest = digest,
        .free = end_life,
        .free_effort = effort,
        .copy = copy,
        .defrag = move,
    };
    cuckoo_type =
        RM_CreateDataType(ctx, "MBbloomCF", CUCKOO_ENCODING, &methods);
    return cuckoo_type ? RM_OK : RM_ERR;
}

enum key_type cuckoo_type_of(RedisModuleKey *key, struct cuckoo **c) {
    const RedisModuleType *type = key ? RM_ModuleTypeGetType(key) : NULL;
    if (type && type == cuckoo_type) {
        *c = RM_ModuleTypeGetValue(key);
        return KEY_FILTER;
    }
    if (!key || RM_KeyType(key) == RM_KEYTYPE_EMPTY) return KEY_MISSING;
    return KEY_OTHER;
}

void cuckoo_attach(RedisModuleKey *key, struct cuckoo *c) {
    RM_ModuleTypeSetValue(key, cuckoo_type, begin_life(c));
}
