/*
 * The layout of RedisBloom's cuckoo filters: cuckoo/cuckoo.h behind the
 * interface of layout.h. In an RDB file, in encoding 4:
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
#include "cuckoo/cuckoo.h"
#include "layout/layout.h"
#include "server/allocator.h"
#include "server/steps.h"

static void note_bytes(struct filter *f) {
    f->bytes = f->cuckoo->bytes;
    f->arrived = f->cuckoo->arrived;
}

/* The last step of making. */
static calyx_status noted(struct filter *f, calyx_status status) {
    if (status != CALYX_OK) return status;
    f->can_remove = f->repeats_matter = true;
    note_bytes(f);
    return CALYX_OK;
}

static calyx_status make(struct filter_params *params, struct filter *f,
                         calyx_error *why) {
    const struct cuckoo_params wanted = {.capacity = params->capacity,
                                         .bucket_size = params->bucket_size,
                                         .iterations = params->iterations,
                                         .expansion = params->expansion};
    return noted(f, cuckoo_new(&wanted, &plain_memory, &f->cuckoo, why));
}

static calyx_status copy(const struct filter *f, struct filter *to,
                         calyx_error *why) {
    cuckoo_finish_compaction(f->cuckoo);
    if (!memory_fits(f->cuckoo->bytes)) return CALYX_NO_MEMORY;
    return noted(to, cuckoo_copy(f->cuckoo, &to->cuckoo, why));
}

static void free_filter(struct filter *f) {
    cuckoo_free(f->cuckoo);
}

/* ---- Items --------------------------------------------------------------- */

static bool has(const struct filter *f, const void *key, size_t size) {
    return cuckoo_has(f->cuckoo, cuckoo_hash_of(key, size));
}

static size_t has_many(const struct filter *f, const calyx_key *keys, size_t n,
                       bool *found) {
    return cuckoo_has_many(f->cuckoo, keys, n, found);
}

static uint64_t count(const struct filter *f, const void *key, size_t size) {
    return cuckoo_count(f->cuckoo, cuckoo_hash_of(key, size));
}

/* The lines after which a step ends that does something of up to `of_one` lines
 * again and again. */
static uint64_t step_lines(uint64_t of_one) {
    return STEP_LINES - (of_one < STEP_LINES / 2 ? of_one : STEP_LINES / 2);
}

/* Adding an item looks at each part, and rearranges the newest. */
static bool is_over(const struct cuckoo *c, const struct addition *a) {
    return a->in_step && a->lines >= step_lines(4 * (uint64_t)c->parts +
                                                2 * (uint64_t)c->iterations);
}

/* The next item, whose hash this is. */
static calyx_status add_next(struct cuckoo *c, struct cuckoo_hash h,
                             struct addition *a) {
    const bool there = a->only_new && cuckoo_has(c, h);
    calyx_status status = CALYX_OK;
    if (there) {
        a->lines += 2 * (uint64_t)c->parts;
    } else {
        status = cuckoo_add(c, h, &a->lines, a->why);
        if (status == CALYX_FULL && a->must_fit) {
            cuckoo_let_grow(c);
            status = cuckoo_add(c, h, &a->lines, a->why);
        }
    }
    if (status != CALYX_OK) return status;
    a->fresh[a->done] = a->changed[a->done] = !there;
    a->done++;
    return CALYX_OK;
}

/* At least one item, even if `in_step`. */
static calyx_status add_items(struct filter *f, struct addition *a) {
    enum { BATCH = 16 };
    struct cuckoo_hash h[BATCH];
    struct cuckoo *const c = f->cuckoo;
    calyx_status status = CALYX_OK;
    while (a->done < a->n && status == CALYX_OK && !is_over(c, a)) {
        const size_t left = a->n - a->done, n = left < BATCH ? left : BATCH;
        const struct cuckoo_hint hint = cuckoo_hint_of(c);
        for (size_t i = 0; i < n; i++) {
            const calyx_key *const item = &a->keys[a->done + i];
            h[i] = cuckoo_hash_of(item->data, item->size);
            cuckoo_prefetch(&hint, h[i]);
            a->lines += item->size / BYTES_HASHED_AS_LINE;
        }
        for (size_t i = 0;
             i < n && status == CALYX_OK && (i == 0 || !is_over(c, a)); i++)
            status = add_next(c, h[i], a);
    }
    note_bytes(f);
    return status;
}

static size_t remove_items(struct filter *f, const calyx_key *keys, size_t n,
                           bool *found) {
    struct cuckoo *const c = f->cuckoo;
    size_t removed = 0;
    for (size_t i = 0; i < n; i++) {
        cuckoo_finish_compaction(c);
        found[i] = cuckoo_remove(c, cuckoo_hash_of(keys[i].data, keys[i].size));
        removed += found[i];
        if (found[i] && cuckoo_wants_compaction(c)) cuckoo_compact(c, false);
    }
    return removed;
}

/* ---- Compaction ---------------------------------------------------------- */

/* Deletions mostly leave nothing to compact. */
static bool may_compact(const struct filter *f) {
    struct cuckoo after = *f->cuckoo;
    after.items--;
    after.deletes++;
    return cuckoo_wants_compaction(&after);
}

static bool compact(struct filter *f) {
    struct cuckoo *const c = f->cuckoo;
    if (c->parts == 1 && c->deletes == 0) return false;
    cuckoo_compact(c, true);
    return true;
}

static bool is_compacting(const struct filter *f) {
    return cuckoo_is_compacting(f->cuckoo);
}

/* What was dropped is freed here, also if a save has completed the compaction.
 */
static uint64_t compact_some(struct filter *f, bool in_step) {
    struct cuckoo *const c = f->cuckoo;
    const uint64_t lines = cuckoo_compact_step(
        c, in_step ? step_lines(2 * (uint64_t)c->parts + 1) : UINT64_MAX);
    if (cuckoo_is_compacting(c) || c->held == c->parts) return lines;
    cuckoo_trim(c);
    note_bytes(f);
    filter_count(f);
    return lines;
}

/* ---- Description --------------------------------------------------------- */

static uint64_t memory_used(const struct filter *f) {
    const struct cuckoo *const c = f->cuckoo;
    uint64_t sum =
        sizeof *f + RM_MallocSize(f->cuckoo) + RM_MallocSize(c->part);
    for (uint32_t i = 0; i < c->held; i++)
        sum += RM_MallocSize(c->part[i].slots);
    return sum;
}

/* Many items may make a filter grow many times: 65 and more take steps. One
 * that does not grow may be rearranged for each item. */
static void describe(const struct filter *f, struct filter_facts *facts) {
    enum { GROWTH_LINES = STEP_LINES / 64 - 1 };
    const struct cuckoo_numbers is = cuckoo_describe(f->cuckoo);
    const uint64_t lines = 2 * is.parts;
    *facts = (struct filter_facts){
        .size = cuckoo_size(f->cuckoo),
        .parts = is.parts,
        .items = is.items,
        .expansion = (uint32_t)is.expansion,
        .lines = lines,
        .change_lines = !is.expansion          ? lines + is.iterations
                        : lines < GROWTH_LINES ? GROWTH_LINES
                                               : lines,
        .buckets = is.buckets,
        .bucket_size = is.bucket_size,
        .iterations = is.iterations,
        .deletes = is.deletes,
    };
}

/* ---- Dumps --------------------------------------------------------------- */

static struct piece dump_head(const struct filter *f) {
    uint8_t *const head = RM_Alloc(CUCKOO_HEADER);
    cuckoo_finish_compaction(f->cuckoo);
    cuckoo_dump_header(f->cuckoo, head);
    return (struct piece){1, head, CUCKOO_HEADER, head};
}

static struct piece dump_from(const struct filter *f, int64_t at) {
    struct piece piece = {.at = at};
    piece.bytes = cuckoo_dump_chunk(f->cuckoo, &piece.at, &piece.size);
    return piece;
}

static bool is_head(const void *bytes, size_t size) {
    (void)bytes; /* any numbers: `load_head` checks them */
    return size == CUCKOO_HEADER;
}

static calyx_status load_head(const void *bytes, size_t size, struct filter *f,
                              calyx_error *why) {
    (void)size;
    const struct cuckoo_numbers is = cuckoo_read_header(bytes);
    uint64_t slots;
    const calyx_status status = cuckoo_check(&is, &slots, why);
    if (status != CALYX_OK) return status;
    if (!memory_fits(slots)) return CALYX_NO_MEMORY;
    return noted(f, cuckoo_load_header(&is, &plain_memory, &f->cuckoo, why));
}

static calyx_status load_piece(struct filter *f, int64_t at, const void *bytes,
                               size_t size, bool *changed, calyx_error *why) {
    const calyx_status status =
        cuckoo_load_chunk(f->cuckoo, at, bytes, size, changed, why);
    note_bytes(f);
    filter_count(f);
    return status;
}

static void accept_partial(struct filter *f) {
    cuckoo_accept(f->cuckoo);
    note_bytes(f);
}

/* ---- Saving and loading -------------------------------------------------- */

static void save(const struct filter *f, RedisModuleIO *io) {
    struct cuckoo *const c = f->cuckoo;
    cuckoo_finish_compaction(c);
    const struct cuckoo_numbers facts = cuckoo_describe(c);
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

static calyx_status load_part(RedisModuleIO *io,
                              const struct cuckoo_numbers *is, struct cuckoo *c,
                              calyx_error *why) {
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
                           "%llu bytes, but %llu slots after them are in use",
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

static calyx_status load_parts(RedisModuleIO *io,
                               const struct cuckoo_numbers *is, bool partial,
                               uint64_t arrived, struct cuckoo *c,
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
    struct cuckoo_numbers is = {.parts = RM_LoadUnsigned(io)};
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

static calyx_status load(RedisModuleIO *io, int encoding, struct filter *f,
                         calyx_error *why) {
    if (encoding < CUCKOO_ENCODING)
        return cuckoo_fail(
            why, CALYX_DAMAGED,
            "it is of a version before RedisBloom 2.2, which had "
            "other hashes: no item would be found; make it again "
            "from its items");
    if (encoding > CUCKOO_ENCODING)
        return cuckoo_fail(why, CALYX_TOO_NEW, "its encoding is newer than 4");
    return noted(f, load_value(io, &f->cuckoo, why));
}

static void digest_filter(const struct filter *f, RedisModuleDigest *digest) {
    cuckoo_finish_compaction(f->cuckoo);
    RM_DigestAddLongLong(digest, (long long)cuckoo_digest(f->cuckoo));
}

static void move(struct filter *f, RedisModuleDefragCtx *ctx) {
    memory_move_plain(ctx, &f->cuckoo);
    memory_move_plain(ctx, &f->cuckoo->part);
    for (uint32_t i = 0; i < f->cuckoo->held; i++)
        memory_move_plain(ctx, &f->cuckoo->part[i].slots);
}

const struct filter_layout cuckoo_layout = {
    .name = "redisbloom", /* of LAYOUT in CF commands */
    .type = "MBbloomCF",
    .encoding = CUCKOO_ENCODING,
    .reads_older = true,
    .is_foreign = true,
    .is_cuckoo = true,
    .counts_lines = true,
    .make = make,
    .copy = copy,
    .free = free_filter,
    .has = has,
    .has_many = has_many,
    .add = add_items,
    .remove = remove_items,
    .count = count,
    .may_compact = may_compact,
    .compact = compact,
    .is_compacting = is_compacting,
    .compact_some = compact_some,
    .accept_partial = accept_partial,
    .describe = describe,
    .memory = memory_used,
    .dump_head = dump_head,
    .dump_from = dump_from,
    .is_head = is_head,
    .load_head = load_head,
    .load_piece = load_piece,
    .save = save,
    .load = load,
    .digest = digest_filter,
    .move = move,
};
