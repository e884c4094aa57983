/*
 * The valkey-bloom layout: valkey_bloom.h behind the interface of layout.h.
 *
 * In RDB files of versions before 1.0 a part has its blob first, with the same
 * encoding. The server's API cannot look ahead, so the setting
 * calyx-valkey-order says which it is.
 */
#include <string.h>

#include "foreign/valkey_bloom.h"
#include "layout/layout.h"
#include "layout/rdb_io.h"
#include "server/allocator.h"
#include "settings.h"

static void note_bytes(struct filter *f) {
    f->bytes = f->valkey->bytes;
    f->arrived = f->valkey->arrived;
}

static calyx_status noted(struct filter *f, calyx_status status) {
    if (status == CALYX_OK) note_bytes(f);
    return status;
}

static void choose_seed(struct filter_params *params) {
    if (params->random_seed && settings.valkey_random_seed)
        RM_GetRandomBytes(params->valkey_seed, VALKEY_SEED_BYTES);
    params->random_seed = false;
}

static calyx_status make(struct filter_params *params, struct filter *f,
                         calyx_error *why) {
    choose_seed(params);
    struct valkey_params wanted = {
        .rate = params->error,
        .tightening = params->tightening,
        .expansion = params->expansion,
        .seed_is_random = memcmp(params->valkey_seed, valkey_fixed_seed,
                                 VALKEY_SEED_BYTES) != 0,
    };
    memcpy(wanted.seed, params->valkey_seed, VALKEY_SEED_BYTES);
    return noted(f, valkey_new(params->capacity, &wanted, &plain_memory,
                               &f->valkey, why));
}

static calyx_status copy(const struct filter *f, struct filter *to,
                         calyx_error *why) {
    return noted(to, valkey_copy(f->valkey, &to->valkey, why));
}

static calyx_status make_like(const struct filter *f, struct filter *to,
                              calyx_error *why) {
    return noted(to, valkey_new_like(f->valkey, &to->valkey, why));
}

static void free_filter(struct filter *f) {
    valkey_free(f->valkey);
}

/* ---- Items --------------------------------------------------------------- */

static bool has(const struct filter *f, const void *key, size_t size) {
    return valkey_has(f->valkey, key, size);
}

static size_t has_many(const struct filter *f, const calyx_key *keys, size_t n,
                       bool *found) {
    size_t total = 0;
    for (size_t i = 0; i < n; i++) {
        found[i] = valkey_has(f->valkey, keys[i].data, keys[i].size);
        total += found[i];
    }
    return total;
}

static calyx_status add_items(struct filter *f, struct addition *a) {
    calyx_status status = CALYX_OK;
    for (; a->done < a->n; a->done++) {
        const calyx_key *const key = &a->keys[a->done];
        status = valkey_add(f->valkey, key->data, key->size, &a->fresh[a->done],
                            a->why);
        if (status != CALYX_OK) break;
    }
    note_bytes(f);
    return status;
}

/* ---- Descriptions -------------------------------------------------------- */

static uint64_t memory_used(const struct filter *f) {
    const struct valkey_bloom *const v = f->valkey;
    uint64_t sum =
        sizeof *f + RM_MallocSize(f->valkey) + RM_MallocSize(v->part);
    for (uint32_t i = 0; i < v->parts; i++)
        sum += RM_MallocSize(v->part[i].blob);
    return sum;
}

static void describe(const struct filter *f, struct filter_facts *facts) {
    const struct valkey_bloom *const v = f->valkey;
    const uint64_t lines = v->parts + v->part[v->parts - 1].hashes / 8;
    *facts = (struct filter_facts){
        .capacity = valkey_capacity(v),
        .size = valkey_size(v->parts, v->bytes),
        .parts = v->parts,
        .items = v->items,
        .expansion = v->params.expansion,
        .lines = lines,
        .change_lines = lines,
    };
}

static bool describe_part(const struct filter *f, uint32_t number,
                          struct part_facts *facts) {
    if (number >= f->valkey->parts) return false;
    const struct valkey_part *const p = &f->valkey->part[number];
    *facts = (struct part_facts){
        .bytes = p->bytes,
        .bits = 8 * p->bytes,
        .capacity = p->capacity,
        .items = p->items,
        .hashes = p->hashes,
        .hash_bits = 64,
        .error = valkey_rate(&f->valkey->params, number),
    };
    return true;
}

/* ---- Dumps --------------------------------------------------------------- */

static struct piece dump_head(const struct filter *f) {
    const size_t size = valkey_head_size(f->valkey);
    uint8_t *const head = RM_Alloc(size);
    valkey_put_head(f->valkey, head);
    return (struct piece){1, head, size, head};
}

/* As many bytes as RedisBloom has in a chunk, of one part. */
static struct piece dump_from(const struct filter *f, int64_t at) {
    const struct valkey_bloom *const v = f->valkey;
    const uint64_t from = (uint64_t)at - 1;
    uint64_t size = 0;
    const uint8_t *const bits =
        at > 0 && from < v->arrived ? valkey_bits_from(v, from, &size) : NULL;
    if (!bits) return (struct piece){0};
    if (size > v->arrived - from) size = v->arrived - from;
    if (size > CHAIN_MOST_CHUNK) size = CHAIN_MOST_CHUNK;
    return (struct piece){at + (int64_t)size, bits, (size_t)size, NULL};
}

static calyx_status load_head(const void *bytes, size_t size, struct filter *f,
                              calyx_error *why) {
    return noted(f,
                 valkey_load_head(bytes, size, &plain_memory, &f->valkey, why));
}

static calyx_status load_piece(struct filter *f, int64_t at, const void *bytes,
                               size_t size, bool *changed, calyx_error *why) {
    struct valkey_bloom *const v = f->valkey;
    const uint8_t *const more = bytes;
    *changed = false;
    if (at <= 0 || (uint64_t)at <= size)
        return layout_fail(why, CALYX_BAD_ARGUMENT,
                           "received bad data: a piece of %zu bytes cannot end "
                           "at iterator %lld",
                           size, (long long)at);
    const uint64_t from = (uint64_t)at - size - 1;
    uint64_t there = 0;
    uint8_t *const bits = valkey_bits_from(v, from, &there);
    if (!bits || size > there || from > v->arrived)
        return layout_fail(why, CALYX_BAD_ARGUMENT,
                           "received bad data: the next piece must begin at "
                           "byte %llu, not at %llu, and end with its part",
                           (unsigned long long)v->arrived,
                           (unsigned long long)from);
    for (size_t i = 0; i < size; i++) {
        *changed |= (more[i] & ~bits[i]) != 0;
        bits[i] |= more[i];
    }
    if (from + size > v->arrived) {
        v->arrived = from + size;
        *changed = true;
    }
    note_bytes(f);
    return CALYX_OK;
}

/* ---- Saving and loading -------------------------------------------------- */

enum { CAPACITY_FIRST, BITMAP_FIRST }; /* settings.valkey_order */

static void save(const struct filter *f, RedisModuleIO *io) {
    const struct rdb_writer to = rdb_writer_to(io);
    valkey_save(f->valkey, settings.valkey_order == BITMAP_FIRST, &to);
}

static bool is_bitmap_first(void *io) {
    (void)io; /* which cannot look ahead */
    return settings.valkey_order == BITMAP_FIRST;
}

static calyx_status load(RedisModuleIO *io, int encoding, struct filter *f,
                         calyx_error *why) {
    struct rdb_reader from = rdb_reader_from(io);
    from.next_is_string = is_bitmap_first;
    const calyx_status status =
        valkey_load(&from, encoding, &plain_memory, &f->valkey, why);
    if (status != CALYX_IO) return noted(f, status);
    return layout_fail(why, CALYX_DAMAGED,
                       settings.valkey_order == BITMAP_FIRST
                           ? "part 0 does not begin with its bits; if another "
                             "version of valkey-bloom wrote it, set "
                             "calyx-valkey-order to capacity-first"
                           : "part 0 does not begin with its capacity; if "
                             "another version of valkey-bloom wrote it, set "
                             "calyx-valkey-order to bitmap-first");
}

calyx_status valkey_begin_filter(const void *payload, size_t size,
                                 struct filter *f, calyx_error *why) {
    return noted(
        f, valkey_begin_payload(payload, size, &plain_memory, &f->valkey, why));
}

void filter_copy_payload(struct filter *f, const void *payload, uint64_t most) {
    valkey_copy_payload(f->valkey, payload, most);
    note_bytes(f);
}

static void digest_filter(const struct filter *f, RedisModuleDigest *digest) {
    const struct piece head = dump_head(f);
    RM_DigestAddStringBuffer(digest, head.bytes, head.size);
    RM_Free(head.owned);
    for (uint32_t i = 0; i < f->valkey->parts; i++) {
        const struct valkey_part *const p = &f->valkey->part[i];
        RM_DigestAddStringBuffer(
            digest, (const char *)p->blob + VALKEY_BLOB_HEAD, (size_t)p->bytes);
    }
    RM_DigestAddLongLong(digest, (long long)f->arrived);
}

static void move(struct filter *f, RedisModuleDefragCtx *ctx) {
    memory_move_plain(ctx, &f->valkey);
    memory_move_plain(ctx, &f->valkey->part);
    for (uint32_t i = 0; i < f->valkey->parts; i++)
        memory_move_plain(ctx, &f->valkey->part[i].blob);
}

const struct filter_layout valkey_layout = {
    .name = "valkey-bloom",
    .type = "bloomfltr",
    .encoding = VALKEY_ENCODING,
    .is_foreign = true,
    .make = make,
    .copy = copy,
    .free = free_filter,
    .make_like = make_like,
    .has = has,
    .has_many = has_many,
    .add = add_items,
    .describe = describe,
    .memory = memory_used,
    .describe_part = describe_part,
    .dump_head = dump_head,
    .dump_from = dump_from,
    .is_head = valkey_is_head,
    .load_head = load_head,
    .load_piece = load_piece,
    .save = save,
    .load = load,
    .digest = digest_filter,
    .move = move,
};
