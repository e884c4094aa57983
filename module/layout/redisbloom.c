/* The redisbloom layout: redisbloom_chain.h behind the interface of layout.h.
 */
#include "layout/layout.h"
#include "layout/rdb_io.h"
#include "server/allocator.h"

static void note_bytes(struct filter *f) {
    f->bytes = f->chain->bytes;
    f->arrived = f->chain->arrived;
}

static calyx_status noted(struct filter *f, calyx_status status) {
    if (status == CALYX_OK) note_bytes(f);
    return status;
}

static calyx_status make(struct filter_params *params, struct filter *f,
                         calyx_error *why) {
    const bool grows = params->expansion > 0;
    return noted(f, chain_new(params->capacity, params->error,
                              grows ? CHAIN_GROWS : CHAIN_FIXED,
                              grows ? params->expansion : params->unused_growth,
                              &plain_memory, &f->chain, why));
}

static calyx_status copy(const struct filter *f, struct filter *to,
                         calyx_error *why) {
    return noted(to, chain_copy(f->chain, &to->chain, why));
}

static calyx_status make_like(const struct filter *f, struct filter *to,
                              calyx_error *why) {
    return noted(to, chain_new_like(f->chain, &to->chain, why));
}

static void free_filter(struct filter *f) {
    chain_free(f->chain);
}

static bool has(const struct filter *f, const void *key, size_t size) {
    return chain_has(f->chain, key, size);
}

static size_t has_many(const struct filter *f, const calyx_key *keys, size_t n,
                       bool *found) {
    return chain_has_many(f->chain, keys, n, found);
}

static calyx_status add_items(struct filter *f, struct addition *a) {
    size_t done = 0;
    const calyx_status status =
        chain_add_many(f->chain, a->keys + a->done, a->n - a->done,
                       a->fresh + a->done, &done, a->why);
    a->done += done;
    note_bytes(f);
    return status;
}

static uint64_t memory_used(const struct filter *f) {
    const struct chain *const c = f->chain;
    uint64_t sum = sizeof *f + RM_MallocSize(f->chain) + RM_MallocSize(c->link);
    for (uint32_t i = 0; i < c->links; i++)
        sum += RM_MallocSize(c->link[i].body);
    return sum;
}

static void describe(const struct filter *f, struct filter_facts *facts) {
    const struct chain_info info = chain_describe(f->chain);
    const uint64_t lines =
        info.links + f->chain->link[info.links - 1].hashes / 8;
    *facts = (struct filter_facts){
        .capacity = info.capacity,
        .size = info.size,
        .parts = info.links,
        .items = info.items,
        .expansion = info.growth,
        .lines = lines,
        .change_lines = lines,
    };
}

static bool describe_part(const struct filter *f, uint32_t number,
                          struct part_facts *facts) {
    if (number >= f->chain->links) return false;
    const struct chain_link *link = &f->chain->link[number];
    *facts = (struct part_facts){
        .bytes = link->bytes,
        .bits = link->bits,
        .capacity = link->entries,
        .items = link->items,
        .hashes = link->hashes,
        .hash_bits = chain_describe(f->chain).hash_bits,
        .error = link->error,
    };
    return true;
}

static void accept_partial(struct filter *f) {
    f->chain->arrived = f->arrived = f->bytes;
}

/* ---- Dumps --------------------------------------------------------------- */

static struct piece dump_head(const struct filter *f) {
    const size_t size = chain_header_size(f->chain);
    void *head = RM_Alloc(size);
    chain_dump_header(f->chain, head);
    return (struct piece){1, head, size, head};
}

static struct piece dump_from(const struct filter *f, int64_t at) {
    struct piece piece = {.at = at};
    piece.bytes =
        chain_dump_chunk(f->chain, CHAIN_MOST_CHUNK, &piece.at, &piece.size);
    return piece;
}

static bool is_head(const void *bytes, size_t size) {
    uint64_t promised;
    return chain_header_bytes(bytes, size, &promised, NULL) == CALYX_OK;
}

static calyx_status load_head(const void *bytes, size_t size, struct filter *f,
                              calyx_error *why) {
    return noted(f,
                 chain_load_header(bytes, size, &plain_memory, &f->chain, why));
}

static calyx_status load_piece(struct filter *f, int64_t at, const void *bytes,
                               size_t size, bool *changed, calyx_error *why) {
    return noted(f, chain_load_chunk(f->chain, at, bytes, size, changed, why));
}

/* ---- Saving and loading -------------------------------------------------- */

static void save(const struct filter *f, RedisModuleIO *io) {
    const struct rdb_writer to = rdb_writer_to(io);
    chain_save(f->chain, &to);
}

static calyx_status load(RedisModuleIO *io, int encoding, struct filter *f,
                         calyx_error *why) {
    const struct rdb_reader from = rdb_reader_from(io);
    return noted(f, chain_load(&from, encoding, &plain_memory, &f->chain, why));
}

static void digest_filter(const struct filter *f, RedisModuleDigest *digest) {
    RM_DigestAddLongLong(digest, (long long)chain_digest(f->chain));
    RM_DigestAddLongLong(digest, (long long)f->arrived);
}

static void move(struct filter *f, RedisModuleDefragCtx *ctx) {
    memory_move_plain(ctx, &f->chain);
    memory_move_plain(ctx, &f->chain->link);
    for (uint32_t i = 0; i < f->chain->links; i++)
        memory_move_plain(ctx, &f->chain->link[i].body);
}

const struct filter_layout redisbloom_layout = {
    .name = "redisbloom",
    .type = "MBbloom--",
    .encoding = CHAIN_ENCODING,
    .reads_older = true,
    .is_foreign = true,
    .make = make,
    .copy = copy,
    .free = free_filter,
    .make_like = make_like,
    .has = has,
    .has_many = has_many,
    .add = add_items,
    .accept_partial = accept_partial,
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
