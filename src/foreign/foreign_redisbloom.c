/* RedisBloom's Bloom filters, redisbloom_chain.h, behind foreign_filter.h. The
 * file is what the server's DUMP replies; records are what BF.SCANDUMP does. */
#include <math.h>
#include <stdlib.h>

#include "foreign/dump_payload.h"
#include "foreign/redisbloom_chain.h"

static const char type[] = "MBbloom--";

static calyx_status make(uint64_t capacity, double rate,
                         struct foreign_filter *f, calyx_error *why) {
    enum { GROWTH = 2 }; /* its default */
    return chain_new(capacity, rate, CHAIN_GROWS, GROWTH, NULL, &f->chain, why);
}

static void free_filter(struct foreign_filter *f) {
    chain_free(f->chain);
}

static void has_many(const struct foreign_filter *f, const calyx_key *keys,
                     size_t n, bool *found) {
    chain_has_many(f->chain, keys, n, found);
}

static calyx_status add_many(struct foreign_filter *f, const calyx_key *keys,
                             size_t n, calyx_error *why) {
    return chain_add_many(f->chain, keys, n, NULL, NULL, why);
}

static void describe(const struct foreign_filter *f,
                     struct foreign_facts *facts) {
    const struct chain *const c = f->chain;
    const struct chain_info info = chain_describe(c);
    const struct chain_link *const newest = &c->link[c->links - 1];
    double none = 1;
    *facts = (struct foreign_facts){
        .variant = info.hash_bits == 32 ? "32-bit hashes" : "",
        .capacity = info.capacity,
        /* the first part of a filter that grows has half of what was wanted */
        .rate = c->link[0].error * (c->options & CHAIN_NO_SCALING ? 1 : 2),
        .counts = true,
        .items = info.items,
        .parts = info.links,
        .probes = newest->hashes,
    };
    for (uint32_t i = 0; i < c->links; i++) {
        const struct chain_link *const l = &c->link[i];
        const uint64_t set = foreign_count_bits(l->body, l->bytes);
        const double fill = (double)set / (double)l->modulus;
        facts->bits += l->modulus;
        facts->set += set;
        none *= 1 - pow(fmin(1, fill), l->hashes);
    }
    facts->rate_now = 1 - none;
}

/* ---- The file ------------------------------------------------------------ */

static calyx_status loaded(struct foreign_filter *f, calyx_error *why) {
    if (f->chain && !chain_is_partial(f->chain)) return CALYX_OK;
    return layout_fail(why, CALYX_DAMAGED,
                       "it is not complete: %llu of %llu bytes are there",
                       (unsigned long long)(f->chain ? f->chain->arrived : 0),
                       (unsigned long long)(f->chain ? f->chain->bytes : 0));
}

static calyx_status load_chain(const struct rdb_reader *from, int encoding,
                               struct foreign_filter *f, calyx_error *why) {
    calyx_status status = chain_load(from, encoding, NULL, &f->chain, why);
    if (status == CALYX_OK && loaded(f, why) != CALYX_OK) {
        chain_free(f->chain);
        status = CALYX_DAMAGED;
    }
    return status;
}

static calyx_status read_file(uint8_t *bytes, size_t size,
                              struct foreign_filter *f, calyx_error *why) {
    const calyx_status status =
        payload_read(bytes, size, type, load_chain, f, why);
    if (status == CALYX_OK) free(bytes);
    return status;
}

static void save_chain(const struct foreign_filter *f,
                       const struct rdb_writer *to) {
    chain_save(f->chain, to);
}

static void write_file(const struct foreign_filter *f,
                       const struct foreign_sink *to) {
    payload_write(f, type, CHAIN_ENCODING, save_chain, to);
}

/* ---- Records ------------------------------------------------------------- */

static calyx_status save(const struct foreign_filter *f,
                         const struct record_sink *to, calyx_error *why) {
    const size_t head_size = chain_header_size(f->chain);
    uint8_t *const head = malloc(head_size);
    if (!head)
        return layout_fail(why, CALYX_NO_MEMORY, "no memory for %zu bytes",
                           head_size);
    chain_dump_header(f->chain, head);
    to->put(to->context, 1, head, head_size);
    free(head);
    int64_t at = 1;
    size_t size;
    for (const void *chunk;
         (chunk = chain_dump_chunk(f->chain, CHAIN_MOST_CHUNK, &at, &size));)
        to->put(to->context, (uint64_t)at, chunk, size);
    return CALYX_OK;
}

static calyx_status load(struct foreign_filter *f, uint64_t iterator,
                         const void *bytes, size_t size, calyx_error *why) {
    if (!f->chain) return chain_load_header(bytes, size, NULL, &f->chain, why);
    if (iterator > INT64_MAX)
        return layout_fail(why, CALYX_DAMAGED,
                           "a piece of the filter has no possible place");
    return chain_load_chunk(f->chain, (int64_t)iterator, bytes, size, NULL,
                            why);
}

const struct foreign_layout foreign_redisbloom = {
    .name = "redisbloom",
    .file = "the server's reply to DUMP of a filter of RedisBloom",
    .make = make,
    .free = free_filter,
    .has_many = has_many,
    .add_many = add_many,
    .describe = describe,
    .read = read_file,
    .write = write_file,
    .save = save,
    .load = load,
    .loaded = loaded,
};
