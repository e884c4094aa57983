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
    calyx_status status = CALYX_OK;
    for (size_t i = 0; i < n && status == CALYX_OK; i++)
        status = chain_add(f->chain, keys[i].data, keys[i].size, NULL, why);
    return status;
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

static bool get_unsigned(void *r, uint64_t *value) {
    return payload_get_unsigned(r, value);
}

static bool get_double(void *r, double *value) {
    return payload_get_double(r, value);
}

static void *get_string(void *r, size_t *size) {
    return payload_get_string(r, size);
}

static calyx_status loaded(const struct foreign_filter *f, calyx_error *why) {
    if (f->chain && !chain_is_partial(f->chain)) return CALYX_OK;
    return layout_fail(why, CALYX_DAMAGED,
                       "it is not complete: %llu of %llu bytes are there",
                       (unsigned long long)(f->chain ? f->chain->arrived : 0),
                       (unsigned long long)(f->chain ? f->chain->bytes : 0));
}

static calyx_status read_file(uint8_t *bytes, size_t size,
                              struct foreign_filter *f, calyx_error *why) {
    struct payload_reader r;
    calyx_error payload_why = {0};
    int encoding;
    if (payload_open(&r, bytes, size, type, &encoding, why) != CALYX_OK)
        return CALYX_DAMAGED;
    r.why = &payload_why;
    const struct chain_reader from = {get_unsigned, get_double, get_string, &r};
    calyx_status status = chain_load(&from, encoding, NULL, &f->chain, why);
    if (status == CALYX_OK) {
        status = payload_close(&r);
        if (status == CALYX_OK) status = loaded(f, why);
        if (status != CALYX_OK) chain_free(f->chain);
    }
    if (r.failed && why) *why = payload_why; /* the cause of the other */
    if (status == CALYX_OK) free(bytes);
    return status;
}

static void put_unsigned(void *w, uint64_t value) {
    payload_put_unsigned(w, value);
}

static void put_double(void *w, double value) {
    payload_put_double(w, value);
}

static void put_string(void *w, const void *bytes, size_t size) {
    payload_put_string(w, bytes, size);
}

static calyx_status write_file(const struct foreign_filter *f,
                               const struct foreign_sink *to,
                               calyx_error *why) {
    (void)why;
    struct payload_writer w;
    payload_begin(&w, type, CHAIN_ENCODING, to);
    chain_save(f->chain, &(struct chain_writer){put_unsigned, put_double,
                                                put_string, &w});
    payload_end(&w);
    return CALYX_OK;
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
