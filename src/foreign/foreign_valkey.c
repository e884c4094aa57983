/*
 * valkey-bloom's filters, valkey_bloom.h, behind foreign_filter.h. The file is
 * what the server's DUMP replies, or the payload of BF.LOAD; the only record is
 * the latter.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "foreign/dump_payload.h"
#include "foreign/valkey_bloom.h"

static const char type[] = "bloomfltr";
enum { ENCODING = 1 };

/* With the fixed seed: the same keys make the same bits. */
static calyx_status make(uint64_t capacity, double rate,
                         struct foreign_filter *f, calyx_error *why) {
    struct valkey_params params = {
        .rate = rate, .tightening = 0.5, .expansion = 2}; /* its defaults */
    memcpy(params.seed, valkey_fixed_seed, sizeof params.seed);
    return valkey_new(capacity, &params, NULL, &f->valkey, why);
}

static void free_filter(struct foreign_filter *f) {
    valkey_free(f->valkey);
}

static void has_many(const struct foreign_filter *f, const calyx_key *keys,
                     size_t n, bool *found) {
    for (size_t i = 0; i < n; i++)
        found[i] = valkey_has(f->valkey, keys[i].data, keys[i].size);
}

static calyx_status add_many(struct foreign_filter *f, const calyx_key *keys,
                             size_t n, calyx_error *why) {
    calyx_status status = CALYX_OK;
    bool fresh;
    for (size_t i = 0; i < n && status == CALYX_OK; i++)
        status = valkey_add(f->valkey, keys[i].data, keys[i].size, &fresh, why);
    return status;
}

static void describe(const struct foreign_filter *f,
                     struct foreign_facts *facts) {
    const struct valkey_bloom *const v = f->valkey;
    double none = 1;
    *facts = (struct foreign_facts){
        .variant = v->params.seed_is_random ? "" : "the fixed seed",
        .capacity = valkey_capacity(v),
        .rate = v->params.rate,
        .counts = true,
        .items = v->items,
        .bits = 8 * v->bytes,
        .parts = v->parts,
        .probes = v->part[v->parts - 1].hashes,
    };
    for (uint32_t i = 0; i < v->parts; i++) {
        const struct valkey_part *const p = &v->part[i];
        const uint64_t set =
            foreign_count_bits(p->blob + VALKEY_BLOB_HEAD, p->bytes);
        facts->set += set;
        none *= 1 - pow((double)set / (8 * (double)p->bytes), p->hashes);
    }
    facts->rate_now = 1 - none;
}

/* ---- The file ------------------------------------------------------------ */

/* The next part. Versions before 1.0 have its blob first, others last. */
static calyx_status read_part(struct payload_reader *r, struct valkey_bloom *v,
                              bool last, calyx_error *why) {
    const bool blob_first = payload_next_is_string(r);
    uint64_t capacity = 0, items = 0;
    size_t size = 0;
    uint8_t *blob = NULL;
    if (blob_first) blob = payload_get_string(r, &size);
    payload_get_unsigned(r, &capacity);
    items = capacity;
    if (last) payload_get_unsigned(r, &items);
    if (!blob_first) blob = payload_get_string(r, &size);
    const calyx_status status =
        r->failed ? CALYX_DAMAGED
                  : valkey_push_blob(v, blob, size, capacity, items, why);
    if (status != CALYX_OK) free(blob);
    return status;
}

static calyx_status read_params(struct payload_reader *r, uint64_t *parts,
                                struct valkey_params *params,
                                calyx_error *why) {
    uint64_t expansion = 0, random = 0;
    payload_get_unsigned(r, parts);
    payload_get_unsigned(r, &expansion);
    payload_get_double(r, &params->rate);
    payload_get_double(r, &params->tightening);
    payload_get_unsigned(r, &random);
    if (r->failed) return CALYX_DAMAGED;
    if (*parts > VALKEY_MOST_PARTS || expansion > UINT32_MAX || random > 1)
        return layout_fail(why, CALYX_DAMAGED,
                           "its first numbers are impossible: %llu parts, "
                           "expansion %llu, random seed %llu",
                           (unsigned long long)*parts,
                           (unsigned long long)expansion,
                           (unsigned long long)random);
    params->expansion = (uint32_t)expansion;
    params->seed_is_random = random;
    return CALYX_OK;
}

static calyx_status read_dump(struct payload_reader *r, struct valkey_bloom **v,
                              calyx_error *why) {
    struct valkey_params params = {0};
    uint64_t parts = 0;
    calyx_status status = read_params(r, &parts, &params, why);
    if (status == CALYX_OK) status = valkey_begin_load(&params, NULL, v, why);
    if (status != CALYX_OK) return status;
    while (status == CALYX_OK && (*v)->parts < parts)
        status = read_part(r, *v, (*v)->parts + 1 == parts, why);
    if (status == CALYX_OK) status = valkey_end_load(*v, parts, why);
    if (status == CALYX_OK) status = payload_close(r);
    if (status != CALYX_OK) valkey_free(*v);
    return status;
}

static calyx_status read_file(uint8_t *bytes, size_t size,
                              struct foreign_filter *f, calyx_error *why) {
    struct payload_reader r;
    int encoding;
    calyx_status status;
    if (payload_looks_so(bytes, size)) {
        status = payload_open(&r, bytes, size, type, &encoding, why);
        if (status == CALYX_OK && encoding != ENCODING)
            status = layout_fail(why, CALYX_DAMAGED,
                                 "its encoding is %d; %d is known", encoding,
                                 ENCODING);
        if (status == CALYX_OK) status = read_dump(&r, &f->valkey, why);
    } else {
        status = valkey_begin_payload(bytes, size, NULL, &f->valkey, why);
        if (status == CALYX_OK)
            valkey_copy_payload(f->valkey, bytes, UINT64_MAX);
    }
    if (status == CALYX_OK) free(bytes);
    return status;
}

static calyx_status write_file(const struct foreign_filter *f,
                               const struct foreign_sink *to,
                               calyx_error *why) {
    (void)why;
    const struct valkey_bloom *const v = f->valkey;
    struct payload_writer w;
    payload_begin(&w, type, ENCODING, to);
    payload_put_unsigned(&w, v->parts);
    payload_put_unsigned(&w, v->params.expansion);
    payload_put_double(&w, v->params.rate);
    payload_put_double(&w, v->params.tightening);
    payload_put_unsigned(&w, v->params.seed_is_random);
    for (uint32_t i = 0; i < v->parts; i++) {
        const struct valkey_part *const p = &v->part[i];
        payload_put_unsigned(&w, p->capacity);
        if (i + 1 == v->parts) payload_put_unsigned(&w, p->items);
        payload_put_string(&w, p->blob, VALKEY_BLOB_HEAD + p->bytes);
    }
    payload_end(&w);
    return CALYX_OK;
}

static calyx_status save(const struct foreign_filter *f,
                         const struct record_sink *to, calyx_error *why) {
    const size_t size = valkey_payload_size(f->valkey);
    uint8_t *const payload = malloc(size);
    if (!payload)
        return layout_fail(why, CALYX_NO_MEMORY, "no memory for %zu bytes",
                           size);
    valkey_put_payload(f->valkey, payload);
    to->put(to->context, 1, payload, size);
    free(payload);
    return CALYX_OK;
}

const struct foreign_layout foreign_valkey_bloom = {
    .name = "valkey-bloom",
    .file = "the server's reply to DUMP of a filter of valkey-bloom, or the "
            "payload of its BF.LOAD",
    .make = make,
    .free = free_filter,
    .has_many = has_many,
    .add_many = add_many,
    .describe = describe,
    .read = read_file,
    .write = write_file,
    .save = save,
};
