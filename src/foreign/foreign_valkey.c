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

static calyx_status load_parts(const struct rdb_reader *from, int encoding,
                               struct foreign_filter *f, calyx_error *why) {
    struct valkey_bloom *v;
    calyx_status status = valkey_load(from, encoding, NULL, &v, why);
    if (status != CALYX_OK) return status;
    if (v->arrived < v->bytes) {
        status = layout_fail(why, CALYX_DAMAGED,
                             "it is not complete: %llu of %llu bytes are there",
                             (unsigned long long)v->arrived,
                             (unsigned long long)v->bytes);
        valkey_free(v);
    }
    f->valkey = v;
    return status;
}

static calyx_status read_file(uint8_t *bytes, size_t size,
                              struct foreign_filter *f, calyx_error *why) {
    const bool dump = payload_looks_so(bytes, size);
    const calyx_status status =
        dump ? payload_read(bytes, size, type, load_parts, f, why)
             : valkey_begin_payload(bytes, size, NULL, &f->valkey, why);
    if (status != CALYX_OK) return status;
    if (!dump) valkey_copy_payload(f->valkey, bytes, UINT64_MAX);
    free(bytes);
    return CALYX_OK;
}

static void save_parts(const struct foreign_filter *f,
                       const struct rdb_writer *to) {
    valkey_save(f->valkey, false, to);
}

static void write_file(const struct foreign_filter *f,
                       const struct foreign_sink *to) {
    payload_write(f, type, VALKEY_ENCODING, save_parts, to);
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
