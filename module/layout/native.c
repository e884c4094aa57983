/*
 * The native layout: a filter of the library, which grows. Its RDB form is the
 * library's file format, cut into strings of at most 1 MiB.
 *
 * A dump of BF.SCANDUMP is the head of wire/dump.h and pieces:
 *
 *     u64 where it begins, u64 hash of what follows, bits
 *
 * The hash of a piece is the hash of the filter's keys, with its seed. Bits may
 * be set during a dump: it has every key that was there at the start. But
 * cleared bits would lose keys that are still there, and a counter is spread
 * over the row, so a changed one would be half old and half new. `rewrites`
 * counts such changes and goes into the hash: pieces from before and after do
 * not fit. So does the member `moves` of calyx_info: a table that grows moves
 * items to where pieces were before.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout/first_part.h"
#include "layout/layout.h"
#include "layout/transfer.h"
#include "server/allocator.h"
#include "server/steps.h"
#include "wire/bytes.h"
#include "wire/dump.h"

enum {
    PIECE_START = 16,    /* before the bits of a piece    */
    MOST_PIECE = 4 << 20 /* bits: copied in a millisecond */
};

static calyx_status damaged(calyx_error *why, const char *text) {
    why->status = CALYX_DAMAGED;
    snprintf(why->text, sizeof why->text, "%s", text);
    return CALYX_DAMAGED;
}

/* ---- Making -------------------------------------------------------------- */

static calyx_status make(struct filter_params *params, struct filter *f,
                         calyx_error *why) {
    const double rate = first_part_rate(params);
    if (params->random_seed)
        RM_GetRandomBytes((unsigned char *)&params->seed, sizeof params->seed);
    params->random_seed = false;
    const calyx_options want = {
        .kind = params->kind,
        .capacity = params->capacity,
        .fpr = params->error,
        .growth = dump_growth(params->expansion),
        .strict = params->expansion == 0,
        .seed = params->seed,
        .seeded = true, /* replicas replay SEED 0, too */
        .memory = &aligned_memory,
        .first_fpr = rate,
    };
    const calyx_status status = calyx_new(&want, &f->native, why);
    if (status != CALYX_OK) return status;
    f->expansion = (uint16_t)params->expansion;
    filter_note_bytes(f);
    return CALYX_OK;
}

static calyx_status copy(const struct filter *f, struct filter *to,
                         calyx_error *why) {
    calyx_room room;
    to->expansion = f->expansion;
    to->bytes = filter_bytes(f);
    to->arrived = f->is_small ? to->bytes : f->arrived;
    to->uncommitted = f->uncommitted;
    if (extra_of(f)->loaded_sum)
        extra_for(to)->loaded_sum = extra_of(f)->loaded_sum;
    return calyx_copy(native_of(f, &room), &to->native, why);
}

static calyx_status make_like(const struct filter *f, struct filter *to,
                              calyx_error *why) {
    calyx_room room;
    const calyx_status status =
        calyx_new_like(native_of(f, &room), &to->native, why);
    if (status != CALYX_OK) return status;
    to->expansion = f->expansion;
    filter_note_bytes(to);
    return CALYX_OK;
}

static void free_filter(struct filter *f) {
    if (f->is_small)
        aligned_memory.release(NULL, f->bits, (size_t)filter_bytes(f));
    else
        calyx_free(f->native);
}

/* ---- Keys ---------------------------------------------------------------- */

/* noinline: only small filters need the stack. */
static __attribute__((noinline)) bool has_in_small(const struct filter *f,
                                                   const void *key,
                                                   size_t size) {
    calyx_room room;
    return calyx_has(native_of(f, &room), key, size);
}

static bool has(const struct filter *f, const void *key, size_t size) {
    return f->is_small ? has_in_small(f, key, size)
                       : calyx_has(f->native, key, size);
}

static size_t has_many(const struct filter *f, const calyx_key *keys, size_t n,
                       bool *found) {
    calyx_room room;
    return calyx_has_many(native_of(f, &room), keys, n, found);
}

static calyx_status explain_add(const struct filter *f, calyx_status status,
                                calyx_error *why) {
    calyx_room room;
    calyx_info info;
    if (status == CALYX_OK) return status;
    why->status = status;
    calyx_info_of(native_of(f, &room), &info);
    if (status == CALYX_FULL && f->expansion > 0) {
        why->status = CALYX_CANNOT;
        snprintf(why->text, sizeof why->text, "it cannot grow any further");
    } else if (info.can & CALYX_CAN_STATIC) {
        snprintf(why->text, sizeof why->text,
                 "%s filters are built once from all their keys; put another "
                 "in its place by 'calyx push --swap', or add to a second one",
                 info.kind);
    } else {
        snprintf(why->text, sizeof why->text, "%s", calyx_status_text(status));
    }
    return why->status;
}

static calyx_status add_keys(calyx_filter *native, const calyx_key *keys,
                             size_t n, bool *fresh, size_t *done) {
    if (n != 1) return calyx_add_many(native, keys, n, fresh, done);
    const calyx_status status =
        calyx_add(native, keys->data, keys->size, fresh);
    *done = status == CALYX_OK;
    return status;
}

/* A small filter that has to grow is no longer small. */
static calyx_status add_to_small(struct filter *f, const calyx_key *keys,
                                 size_t n, bool *fresh, size_t *done) {
    calyx_room room;
    calyx_filter *native = native_of(f, &room);
    size_t more = 0;
    calyx_status status = add_keys(native, keys, n, fresh, done);
    calyx_close_small(native, &f->small);
    if (status != CALYX_FULL || f->expansion == 0) return status;
    native = native_for(f);
    if (!native) return CALYX_NO_MEMORY;
    status = add_keys(native, keys + *done, n - *done, fresh + *done, &more);
    *done += more;
    return status;
}

/* The items up to number `end`. */
static calyx_status add_up_to(struct filter *f, struct addition *a,
                              size_t end) {
    const uint64_t before = memory_allocations();
    const calyx_key *const keys = a->keys + a->done;
    bool *const fresh = a->fresh + a->done;
    const size_t n = end - a->done;
    size_t done = 0;
    const calyx_status status =
        f->is_small ? add_to_small(f, keys, n, fresh, &done)
                    : add_keys(f->native, keys, n, fresh, &done);
    if (f->can_remove) {
        memset(a->changed + a->done, true, done);
        extra_for(f)->rewrites += done;
    }
    a->done += done;
    if (memory_allocations() != before && !f->is_small) filter_note_bytes(f);
    return explain_add(f, status, a->why);
}

/* One by one, if only new ones are added: an item may be there because of one
 * before. */
static calyx_status add_items(struct filter *f, struct addition *a) {
    calyx_status status = CALYX_OK;
    if (!a->only_new) return add_up_to(f, a, a->n);
    while (a->done < a->n && status == CALYX_OK) {
        const size_t i = a->done;
        if (has(f, a->keys[i].data, a->keys[i].size))
            a->fresh[a->done++] = a->changed[i] = false;
        else
            status = add_up_to(f, a, i + 1);
    }
    return status;
}

static size_t remove_items(struct filter *f, const calyx_key *keys, size_t n,
                           bool *found) {
    size_t removed = 0;
    calyx_remove_many(f->native, keys, n, found, &removed);
    if (removed) extra_for(f)->rewrites += removed;
    return removed;
}

static uint64_t count(const struct filter *f, const void *key, size_t size) {
    return calyx_count(f->native, key, size);
}

/* ---- The allow list ------------------------------------------------------ */

/* A small filter has no room for a list. */
static calyx_status allow(struct filter *f, const calyx_key *item, bool *done,
                          calyx_error *why) {
    calyx_filter *const native = native_for(f);
    *done = false;
    if (!native) {
        snprintf(why->text, sizeof why->text, "no memory");
        return why->status = CALYX_NO_MEMORY;
    }
    return calyx_allow(native, item->data, item->size, done, why);
}

static calyx_status disallow(struct filter *f, const calyx_key *item,
                             bool *done, calyx_error *why) {
    (void)why;
    *done = false;
    return f->is_small
               ? CALYX_OK
               : calyx_disallow(f->native, item->data, item->size, done);
}

static const calyx_filter *with_list(const struct filter *f, calyx_room *room) {
    return native_of(f, room);
}

/* ---- Description --------------------------------------------------------- */

/* These are calyx_move_functions that leave everything where it is. */
static void *sum_requested(void *sum, void *block, size_t size) {
    *(uint64_t *)sum += size;
    return block;
}

static void *sum_allocated(void *sum, void *block, size_t size) {
    (void)size;
    *(uint64_t *)sum += memory_of(block);
    return block;
}

static uint64_t sum_blocks(const struct filter *f, calyx_move_function *add) {
    uint64_t sum = sizeof *f;
    if (f->is_small)
        add(&sum, f->bits, (size_t)filter_bytes(f));
    else
        calyx_relocate(f->native, add, &sum);
    return sum;
}

static uint64_t memory_used(const struct filter *f) {
    return sum_blocks(f, sum_allocated);
}

/* The lines of an item in a table that grows in place: its bucket, and where
 * that has spilled to. An addition also moves a group of up to 8 buckets, and
 * rarely more: 11 lines on average while the table grows. */
enum { TABLE_LINES = 2, TABLE_CHANGE_LINES = 16 };

/* For CF.INFO, a bucket is a line. */
static void describe(const struct filter *f, struct filter_facts *facts) {
    calyx_room room;
    calyx_info info;
    calyx_info_of(native_of(f, &room), &info);
    const bool in_place = info.can & CALYX_CAN_GROW_IN_PLACE;
    const uint64_t buckets = info.bits / (8 * LINE_BYTES);
    *facts = (struct filter_facts){
        .capacity = info.capacity,
        .size = sum_blocks(f, sum_requested),
        .parts = info.parts,
        .items = info.items,
        .expansion = f->expansion,
        .in_place = in_place,
        .lines = in_place ? TABLE_LINES : info.parts,
        .change_lines = in_place ? TABLE_CHANGE_LINES : info.parts,
        .buckets = buckets,
        .bucket_size = buckets ? info.capacity / buckets : 0,
    };
}

static bool describe_part(const struct filter *f, uint32_t number,
                          struct part_facts *facts) {
    calyx_part part;
    calyx_room room;
    if (!calyx_part_of(native_of(f, &room), number, &part)) return false;
    *facts = (struct part_facts){
        .bytes = part.bytes,
        .bits = part.bits,
        .capacity = part.capacity,
        .items = part.items,
        .hashes = part.probes,
        .hash_bits = 64,
        .error = part.fpr,
    };
    return true;
}

/* ---- Dumps --------------------------------------------------------------- */

/* Without memory for a piece the process ends, as for any reply of that size.
 * In the child that saves this is right: the old file stays. */
static struct piece dump_head(const struct filter *f) {
    calyx_room room;
    const calyx_filter *const native = native_of(f, &room);
    const size_t size = calyx_head_size(native);
    uint8_t *head = RM_Alloc(DUMP_PREFIX_BYTES + size);
    dump_put_prefix(head, &(struct dump_prefix){
                              .expansion = f->expansion,
                              .generation = extra_of(f)->generation,
                              .rewrites = extra_of(f)->rewrites,
                          });
    calyx_encode_head(native, head + DUMP_PREFIX_BYTES, size, NULL);
    return (struct piece){1, head, DUMP_PREFIX_BYTES + size, head};
}

static uint64_t hash_piece(const struct filter *f, const uint8_t *bits,
                           uint64_t size) {
    static const uint64_t GOLDEN = UINT64_C(0x9E3779B97F4A7C15);
    calyx_room room;
    calyx_info info;
    const calyx_filter *const native = native_of(f, &room);
    calyx_info_of(native, &info);
    return calyx_hash(native, bits, (size_t)size) ^
           (extra_of(f)->rewrites + info.moves) * GOLDEN;
}

static struct piece dump_from(const struct filter *f, int64_t at) {
    const uint64_t from = (uint64_t)at - 1;
    const uint64_t arrived = f->is_small ? filter_bytes(f) : f->arrived;
    calyx_room room;
    if (at < 1 || from >= arrived) return (struct piece){0};
    const uint64_t left = arrived - from;
    const size_t size = left < MOST_PIECE ? (size_t)left : MOST_PIECE;
    uint8_t *bytes = RM_Alloc(PIECE_START + size);
    calyx_get_bits(native_of(f, &room), from, bytes + PIECE_START, size);
    store_u64(bytes, from);
    store_u64(bytes + 8, hash_piece(f, bytes + PIECE_START, size));
    return (struct piece){at + (int64_t)size, bytes, PIECE_START + size, bytes};
}

static bool is_head(const void *bytes, size_t size) {
    struct dump_prefix prefix;
    return dump_get_prefix(bytes, size, &prefix);
}

static void note_changes(struct filter *f, uint64_t generation,
                         uint64_t rewrites) {
    if (!generation && !rewrites && !f->extra) return;
    extra_for(f)->generation = generation;
    extra_for(f)->rewrites = rewrites;
}

static calyx_status load_head(const void *bytes, size_t size, struct filter *f,
                              calyx_error *why) {
    const calyx_open_options how = {.memory = &aligned_memory};
    struct dump_prefix prefix;
    if (!dump_get_prefix(bytes, size, &prefix) ||
        prefix.expansion > MOST_EXPANSION)
        return damaged(why, "the bytes are not the head of a filter");
    const calyx_status status =
        calyx_decode_head((const uint8_t *)bytes + DUMP_PREFIX_BYTES,
                          size - DUMP_PREFIX_BYTES, &how, &f->native, why);
    if (status != CALYX_OK) return status;
    f->expansion = (uint16_t)prefix.expansion;
    note_changes(f, prefix.generation, prefix.rewrites);
    calyx_info info;
    calyx_info_of(f->native, &info);
    if ((info.growth > 0) != (prefix.expansion > 0)) {
        calyx_free(f->native);
        return damaged(why, "the head says both that it grows and that it does "
                            "not");
    }
    f->bytes = info.bytes;
    return CALYX_OK;
}

/* Only where a key is in bits alone may these be merged with others that have
 * arrived; not in a static filter, nor in a table. */
static bool may_merge(const struct filter *f, uint64_t from,
                      const uint8_t *bytes, uint64_t n) {
    uint8_t here[4096];
    calyx_info info;
    calyx_info_of(f->native, &info);
    if (from >= f->arrived) return true;
    if (info.can & CALYX_CAN_MERGE && !(info.can & CALYX_CAN_GROW_IN_PLACE))
        return true;
    if (n > f->arrived - from) n = f->arrived - from;
    for (uint64_t i = 0, some; i < n; i += some) {
        some = n - i < sizeof here ? n - i : sizeof here;
        if (calyx_get_bits(f->native, from + i, here, (size_t)some) !=
                CALYX_OK ||
            memcmp(here, bytes + i, (size_t)some) != 0)
            return false;
    }
    return true;
}

static calyx_status load_piece(struct filter *f, int64_t at, const void *bytes,
                               size_t size, bool *changed, calyx_error *why) {
    const uint8_t *const piece = bytes;
    *changed = false;
    if (size < PIECE_START)
        return damaged(why, "received bad data: a piece has at least 16 bytes");
    const uint64_t n = size - PIECE_START;
    if (at < 1 || (uint64_t)at - 1 < n)
        return damaged(why, "received bad data: it would begin before byte 0");
    const uint64_t end = (uint64_t)at - 1, from = end - n;
    if (end > f->bytes)
        return damaged(why, "invalid offset - no link found: it would end "
                            "after the filter");
    if (load_u64(piece) != from ||
        load_u64(piece + 8) != hash_piece(f, piece + PIECE_START, n))
        return damaged(why, "received bad data: a piece that is damaged, of "
                            "another filter, with another iterator, or from "
                            "after it was changed");
    if (from > f->arrived) {
        why->status = CALYX_DAMAGED;
        snprintf(why->text, sizeof why->text,
                 "received bad data: the next piece must begin at byte %llu, "
                 "not at %llu",
                 (unsigned long long)f->arrived, (unsigned long long)from);
        return CALYX_DAMAGED;
    }
    if (!may_merge(f, from, piece + PIECE_START, n))
        return damaged(why, "received bad data: the filter has other bits "
                            "there, and its kind cannot be merged");
    if (calyx_put_bits(f->native, from, piece + PIECE_START, (size_t)n) !=
        CALYX_OK)
        return damaged(why, "received bad data: bits after the last");
    if (end > f->arrived) f->arrived = end;
    *changed = true;
    return CALYX_OK;
}

/* ---- Saving and loading -------------------------------------------------- */

static bool put_string(void *io, const void *bytes, size_t size) {
    RM_SaveStringBuffer(io, bytes, size);
    return true;
}

static void save_partial(const struct filter *f, RedisModuleIO *io) {
    struct piece piece = dump_head(f);
    while (piece.at) {
        RM_SaveStringBuffer(io, piece.bytes, piece.size);
        RM_Free(piece.owned);
        piece = dump_from(f, piece.at);
    }
}

/* Beside the expansion, which is smaller. */
enum { UNCOMMITTED = 1 << 16 };

static void save(const struct filter *f, RedisModuleIO *io) {
    RM_SaveUnsigned(io, f->expansion | (f->uncommitted ? UNCOMMITTED : 0));
    const uint64_t bytes = filter_bytes(f);
    calyx_room room;
    RM_SaveUnsigned(io, f->is_small ? bytes : f->arrived);
    RM_SaveUnsigned(io, bytes);
    RM_SaveUnsigned(io, extra_of(f)->generation);
    RM_SaveUnsigned(io, extra_of(f)->rewrites);
    if (filter_is_partial(f))
        save_partial(f, io);
    else if (calyx_write(native_of(f, &room), put_string, io, NULL) != CALYX_OK)
        abort(); /* no memory: no file is better than half a filter */
}

/* Strings from the server, read in pieces of any size. */
struct source {
    RedisModuleIO *io;
    char *string;
    size_t size, used;
};

static bool next_string(struct source *from) {
    static const size_t MOST = MOST_PIECE + PIECE_START;
    if (from->string) RM_Free(from->string);
    from->used = from->size = 0;
    from->string = RM_LoadStringBuffer(from->io, &from->size);
    return from->string && !RM_IsIOError(from->io) && from->size > 0 &&
           from->size <= MOST;
}

static bool get_bytes(void *context, void *buffer, size_t size) {
    struct source *from = context;
    uint8_t *to = buffer;
    while (size > 0) {
        if (from->used == from->size && !next_string(from)) return false;
        const size_t left = from->size - from->used;
        const size_t n = size < left ? size : left;
        memcpy(to, from->string + from->used, n);
        from->used += n;
        to += n;
        size -= n;
    }
    return true;
}

static calyx_status load_whole(struct source *from, struct filter *f,
                               calyx_error *why) {
    const calyx_open_options how = {.memory = &aligned_memory};
    const calyx_status status =
        calyx_read(get_bytes, from, &how, &f->native, why);
    if (status != CALYX_OK) return status;
    if (from->used == from->size) return CALYX_OK;
    calyx_free(f->native);
    return damaged(why, "there are bytes after the end of the filter");
}

static calyx_status load_partial(struct source *from, struct filter *f,
                                 calyx_error *why) {
    const uint64_t arrived = f->arrived;
    if (!next_string(from)) return damaged(why, "the head is missing");
    calyx_status status = load_head(from->string, from->size, f, why);
    if (status != CALYX_OK) return status;
    f->arrived = 0;
    while (status == CALYX_OK && f->arrived < arrived) {
        const uint64_t before = f->arrived;
        bool changed;
        if (!next_string(from) || from->size < PIECE_START)
            status = damaged(why, "a piece is missing");
        else
            status =
                load_piece(f, (int64_t)(before + from->size - PIECE_START + 1),
                           from->string, from->size, &changed, why);
        if (status == CALYX_OK && f->arrived == before)
            status = damaged(why, "a piece is empty");
    }
    if (status == CALYX_OK && f->arrived != arrived)
        status = damaged(why, "there are more pieces than were promised");
    if (status != CALYX_OK) calyx_free(f->native);
    return status;
}

static calyx_status load(RedisModuleIO *io, int encoding, struct filter *f,
                         calyx_error *why) {
    (void)encoding;
    const uint64_t first = RM_LoadUnsigned(io);
    const bool uncommitted = first & UNCOMMITTED;
    const uint64_t expansion = first & ~(uint64_t)UNCOMMITTED;
    const uint64_t arrived = RM_LoadUnsigned(io);
    const uint64_t bytes = RM_LoadUnsigned(io);
    const uint64_t generation = RM_LoadUnsigned(io);
    const uint64_t rewrites = RM_LoadUnsigned(io);
    if (RM_IsIOError(io) || expansion > MOST_EXPANSION || arrived > bytes)
        return damaged(why, "its first numbers are missing or impossible");
    struct source from = {.io = io};
    f->arrived = arrived;
    const bool whole = arrived == bytes && !uncommitted;
    const calyx_status status =
        whole ? load_whole(&from, f, why) : load_partial(&from, f, why);
    if (from.string) RM_Free(from.string);
    if (status != CALYX_OK) return status;

    calyx_info info;
    calyx_info_of(f->native, &info);
    f->expansion = (uint16_t)expansion;
    note_changes(f, generation, rewrites);
    f->bytes = info.bytes;
    f->uncommitted = uncommitted;
    if (info.bytes == bytes && (info.growth > 0) == (expansion > 0) &&
        transfer_resume(f))
        return CALYX_OK;
    calyx_free(f->native);
    return damaged(why, "its first numbers do not fit the filter");
}

static bool add_to_digest(void *digest, const void *bytes, size_t size) {
    RM_DigestAddStringBuffer(digest, bytes, size);
    return true;
}

static void digest_filter(const struct filter *f, RedisModuleDigest *digest) {
    const uint64_t arrived = f->is_small ? filter_bytes(f) : f->arrived;
    calyx_room room;
    RM_DigestAddLongLong(digest, f->expansion);
    RM_DigestAddLongLong(digest, (long long)arrived);
    RM_DigestAddLongLong(digest, (long long)extra_of(f)->generation);
    RM_DigestAddLongLong(digest, (long long)extra_of(f)->rewrites);
    RM_DigestAddLongLong(digest, f->uncommitted);
    calyx_write(native_of(f, &room), add_to_digest, digest, NULL);
}

static void move(struct filter *f, RedisModuleDefragCtx *ctx) {
    if (f->is_small)
        f->bits = memory_move(ctx, f->bits, (size_t)filter_bytes(f));
    else
        f->native = calyx_relocate(f->native, memory_move, ctx);
}

const struct filter_layout native_layout = {
    .name = "native",
    .type = "calyxbf-1",
    .encoding = 2,
    .make = make,
    .copy = copy,
    .free = free_filter,
    .make_like = make_like,
    .has = has,
    .has_many = has_many,
    .add = add_items,
    .remove = remove_items,
    .count = count,
    .allow = allow,
    .disallow = disallow,
    .with_list = with_list,
    .describe = describe,
    .memory = memory_used,
    .describe_part = describe_part,
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
