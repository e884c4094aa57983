/*
 * Filters of valkey-bloom as bytes: the payload of its BF.LOAD, and heads of
 * dumps. Little-endian:
 *
 *     u8 1, u32 expansion, f64 rate, f64 tightening, u8 seed is random,
 *     u64 number of parts; for each: u64 bytes of the blob, blob, i64 items,
 *     i64 capacity
 *
 * Everything is checked before memory is allocated for it.
 */
#include <string.h>

#include "foreign/valkey_bloom.h"
#include "wire/bytes.h"

enum {
    AT_EXPANSION = 1,
    AT_RATE = 5,
    AT_TIGHTENING = 13,
    AT_RANDOM = 21,
    AT_PARTS = 22,
    OBJECT_HEAD = 30,
    BLOB_SEED = 13, /* offset in a blob */
    BESIDE_BLOB = 24
};

static const uint8_t MARK[8] = {'C', 'A', 'L', 'Y', 'X', 'V', 'B', 1};

typedef unsigned long long number;

/* ---- Checks -------------------------------------------------------------- */

static bool is_rate(double x) {
    return x > 0 && x < 1; /* false for NaN */
}

static calyx_status check_params(const struct valkey_params *params,
                                 calyx_error *why) {
    if (is_rate(params->rate) && is_rate(params->tightening)) return CALYX_OK;
    return layout_fail(why, CALYX_DAMAGED,
                       "the rate and the tightening ratio must be above 0 and "
                       "below 1, and are %g and %g",
                       params->rate, params->tightening);
}

/* A part whose blob has `size` bytes, of which `there` are here: all, or only
 * its head. */
static calyx_status check_blob(const uint8_t *blob, uint64_t size,
                               uint64_t there, struct valkey_part *p,
                               calyx_error *why) {
    if (there < VALKEY_BLOB_HEAD || size <= VALKEY_BLOB_HEAD)
        return layout_fail(why, CALYX_DAMAGED,
                           "a part has at least 46 bytes, not %llu",
                           (number)size);
    const uint64_t bytes = load_u64(blob + 1);
    p->bytes = size - VALKEY_BLOB_HEAD;
    p->hashes = load_u32(blob + 9);
    if (blob[0] != 1 || bytes != p->bytes || bytes > VALKEY_MOST_BYTES)
        return layout_fail(why, CALYX_DAMAGED,
                           "a part of version 1 with %llu bytes of bits is "
                           "wanted, found version %u with %llu",
                           (number)p->bytes, blob[0], (number)bytes);
    if (p->hashes < 1 || p->hashes > VALKEY_MOST_HASHES)
        return layout_fail(why, CALYX_DAMAGED,
                           "a part has 1 to %d hashes, not %u",
                           VALKEY_MOST_HASHES, p->hashes);
    return CALYX_OK;
}

static calyx_status check_seed(struct valkey_bloom *v, const uint8_t *seed,
                               calyx_error *why) {
    uint8_t *const ours = v->params.seed;
    if (v->parts == 0) memcpy(ours, seed, VALKEY_SEED_BYTES);
    if (memcmp(ours, seed, VALKEY_SEED_BYTES) != 0)
        return layout_fail(why, CALYX_DAMAGED,
                           "its parts have different seeds");
    if (!v->params.seed_is_random &&
        memcmp(ours, valkey_fixed_seed, VALKEY_SEED_BYTES) != 0)
        return layout_fail(why, CALYX_DAMAGED,
                           "Object in fixed seed mode, but seed does not match "
                           "FIXED_SEED.");
    return CALYX_OK;
}

/* Parts are `expansion` times as large as the one before. */
static calyx_status check_capacity(const struct valkey_bloom *v,
                                   const struct valkey_part *p,
                                   calyx_error *why) {
    uint64_t wanted = p->capacity;
    const bool possible =
        v->parts == 0 ||
        !__builtin_mul_overflow(v->part[v->parts - 1].capacity,
                                (uint64_t)v->params.expansion, &wanted);
    if (possible && p->capacity == wanted && p->capacity > 0 &&
        p->capacity <= INT64_MAX && p->items <= p->capacity)
        return CALYX_OK;
    return layout_fail(why, CALYX_DAMAGED,
                       "part %u has %llu items and is for %llu, but should be "
                       "for %llu",
                       v->parts, (number)p->items, (number)p->capacity,
                       (number)wanted);
}

static calyx_status check_part(struct valkey_bloom *v, const uint8_t *blob,
                               uint64_t size, uint64_t there,
                               struct valkey_part *p, calyx_error *why) {
    calyx_status status = check_blob(blob, size, there, p, why);
    if (status == CALYX_OK) status = check_seed(v, blob + BLOB_SEED, why);
    if (status == CALYX_OK) status = check_capacity(v, p, why);
    return status;
}

/* ---- Loading ------------------------------------------------------------- */

static calyx_status begin_load(const struct valkey_params *params,
                               const calyx_memory *memory,
                               struct valkey_bloom **out, calyx_error *why) {
    const calyx_status status = check_params(params, why);
    return status == CALYX_OK ? valkey_blank(params, memory, out, why) : status;
}

static calyx_status end_load(struct valkey_bloom *v, uint64_t parts,
                             calyx_error *why) {
    v->arrived = v->bytes;
    if (v->parts == parts && parts > 0) return CALYX_OK;
    return layout_fail(why, CALYX_DAMAGED,
                       "the filter has %u parts; %llu were promised", v->parts,
                       (number)parts);
}

/* The next part of a payload, or of a head, which has no bits. Moves on. */
static calyx_status load_part(struct valkey_bloom *v, const uint8_t **at,
                              const uint8_t *end, bool only_head,
                              calyx_error *why) {
    struct valkey_part p = {0};
    const uint64_t left = (uint64_t)(end - *at);
    const uint64_t size = left < 8 ? 0 : load_u64(*at);
    const uint64_t there = only_head ? VALKEY_BLOB_HEAD : size;
    if (left < BESIDE_BLOB || there > left - BESIDE_BLOB)
        return layout_fail(why, CALYX_DAMAGED, "the filter ends in part %u",
                           v->parts);
    const uint8_t *const blob = *at + 8;
    p.items = load_u64(blob + there);
    p.capacity = load_u64(blob + there + 8);
    calyx_status status = check_part(v, blob, size, there, &p, why);
    if (status == CALYX_OK) status = valkey_push(v, &p, why);
    *at = blob + there + 16;
    return status;
}

static calyx_status load_object(const uint8_t *at, size_t size, bool only_head,
                                const calyx_memory *memory,
                                struct valkey_bloom **out, calyx_error *why) {
    const uint8_t *const end = at + size;
    struct valkey_bloom *v;
    *out = NULL;
    if (size < OBJECT_HEAD || at[AT_RANDOM] > 1)
        return layout_fail(why, CALYX_DAMAGED,
                           "the bytes are no filter of valkey-bloom");
    if (at[0] != 1)
        return layout_fail(why, CALYX_TOO_NEW,
                           "the filter is of version %u; 1 can be read", at[0]);
    const struct valkey_params params = {
        .expansion = load_u32(at + AT_EXPANSION),
        .rate = load_f64(at + AT_RATE),
        .tightening = load_f64(at + AT_TIGHTENING),
        .seed_is_random = at[AT_RANDOM],
    };
    const uint64_t parts = load_u64(at + AT_PARTS);
    calyx_status status = begin_load(&params, memory, &v, why);
    if (status != CALYX_OK) return status;
    at += OBJECT_HEAD;
    while (status == CALYX_OK && v->parts < parts &&
           v->parts < VALKEY_MOST_PARTS)
        status = load_part(v, &at, end, only_head, why);
    if (status == CALYX_OK) status = end_load(v, parts, why);
    if (status == CALYX_OK && at != end)
        status = layout_fail(why, CALYX_DAMAGED,
                             "there are %llu bytes after the filter",
                             (number)(end - at));
    if (status != CALYX_OK) {
        valkey_free(v);
        return status;
    }
    v->arrived = 0;
    *out = v;
    return CALYX_OK;
}

calyx_status valkey_begin_payload(const uint8_t *payload, size_t size,
                                  const calyx_memory *memory,
                                  struct valkey_bloom **out, calyx_error *why) {
    return load_object(payload, size, false, memory, out, why);
}

void valkey_copy_payload(struct valkey_bloom *v, const uint8_t *payload,
                         uint64_t most) {
    const uint8_t *blob = payload + OBJECT_HEAD + 8;
    uint64_t begins = 0; /* of the part, in the bits of all */
    for (uint32_t i = 0; i < v->parts && most > 0; i++) {
        const struct valkey_part *const p = &v->part[i];
        if (v->arrived < begins + p->bytes) {
            const uint64_t from = v->arrived - begins, left = p->bytes - from;
            const uint64_t some = left < most ? left : most;
            memcpy(p->blob + VALKEY_BLOB_HEAD + from,
                   blob + VALKEY_BLOB_HEAD + from, (size_t)some);
            v->arrived += some;
            most -= some;
        }
        begins += p->bytes;
        blob += VALKEY_BLOB_HEAD + p->bytes + BESIDE_BLOB;
    }
}

/* ---- Writing ------------------------------------------------------------- */

void valkey_put_blob_head(uint8_t *blob, const struct valkey_part *p,
                          const uint8_t *seed) {
    blob[0] = 1;
    store_u64(blob + 1, p->bytes);
    store_u32(blob + 9, p->hashes);
    memcpy(blob + BLOB_SEED, seed, VALKEY_SEED_BYTES);
}

/* All of it, with the bits or without. */
static void put_object(const struct valkey_bloom *v, bool only_head,
                       uint8_t *to) {
    to[0] = 1;
    store_u32(to + AT_EXPANSION, v->params.expansion);
    store_f64(to + AT_RATE, v->params.rate);
    store_f64(to + AT_TIGHTENING, v->params.tightening);
    to[AT_RANDOM] = v->params.seed_is_random;
    store_u64(to + AT_PARTS, v->parts);
    to += OBJECT_HEAD;
    for (uint32_t i = 0; i < v->parts; i++) {
        const struct valkey_part *const p = &v->part[i];
        const uint64_t size = VALKEY_BLOB_HEAD + p->bytes;
        const uint64_t there = only_head ? VALKEY_BLOB_HEAD : size;
        store_u64(to, size);
        memcpy(to + 8, p->blob, (size_t)there);
        store_u64(to + 8 + there, p->items);
        store_u64(to + 16 + there, p->capacity);
        to += BESIDE_BLOB + there;
    }
}

static size_t size_without_bits(const struct valkey_bloom *v) {
    return OBJECT_HEAD + v->parts * (size_t)(BESIDE_BLOB + VALKEY_BLOB_HEAD);
}

size_t valkey_payload_size(const struct valkey_bloom *v) {
    return size_without_bits(v) + (size_t)v->bytes;
}

void valkey_put_payload(const struct valkey_bloom *v, uint8_t *payload) {
    put_object(v, false, payload);
}

/* ---- RDB files and DUMP payloads ----------------------------------------- */

/* Beside the number of parts, which is smaller: the bytes that have arrived
 * follow. */
static const uint64_t PARTIAL = UINT64_C(1) << 32;

static void save_numbers(const struct valkey_part *p, bool last,
                         const struct rdb_writer *to) {
    to->put_unsigned(to->context, p->capacity);
    if (last) to->put_unsigned(to->context, p->items);
}

void valkey_save(const struct valkey_bloom *v, bool blobs_first,
                 const struct rdb_writer *to) {
    const bool partial = v->arrived < v->bytes;
    to->put_unsigned(to->context, v->parts | (partial ? PARTIAL : 0));
    to->put_unsigned(to->context, v->params.expansion);
    to->put_double(to->context, v->params.rate);
    to->put_double(to->context, v->params.tightening);
    to->put_unsigned(to->context, v->params.seed_is_random);
    for (uint32_t i = 0; i < v->parts; i++) {
        const struct valkey_part *const p = &v->part[i];
        const bool last = i + 1 == v->parts;
        if (!blobs_first) save_numbers(p, last, to);
        to->put_string(to->context, p->blob,
                       (size_t)(VALKEY_BLOB_HEAD + p->bytes));
        if (blobs_first) save_numbers(p, last, to);
    }
    if (partial) to->put_unsigned(to->context, v->arrived);
}

static calyx_status ended(const struct valkey_bloom *v, bool blob_first,
                          calyx_error *why) {
    if (v->parts)
        return layout_fail(why, CALYX_DAMAGED, "the filter ends in part %u",
                           v->parts);
    return layout_fail(why, CALYX_IO, "part 0 does not begin with its %s",
                       blob_first ? "bits" : "capacity");
}

static calyx_status load_saved_part(struct rdb_input *in,
                                    struct valkey_bloom *v, bool last,
                                    calyx_error *why) {
    const bool blob_first = in->from->next_is_string(in->from->context);
    struct valkey_part p = {0};
    uint64_t size = 0;
    if (blob_first) p.blob = rdb_get_string(in, &size);
    p.capacity = rdb_get_unsigned(in);
    p.items = last ? rdb_get_unsigned(in) : p.capacity;
    if (!blob_first) p.blob = rdb_get_string(in, &size);
    calyx_status status = in->failed
                              ? ended(v, blob_first, why)
                              : check_part(v, p.blob, size, size, &p, why);
    if (status == CALYX_OK) status = valkey_push(v, &p, why);
    if (status != CALYX_OK && p.blob)
        v->memory.release(v->memory.context, p.blob, (size_t)size);
    return status;
}

static calyx_status load_arrived(struct rdb_input *in, struct valkey_bloom *v,
                                 calyx_error *why) {
    const uint64_t arrived = rdb_get_unsigned(in);
    if (in->failed || arrived >= v->bytes)
        return layout_fail(why, CALYX_DAMAGED,
                           "the filter is said to be partial, and is not");
    v->arrived = arrived;
    return CALYX_OK;
}

static calyx_status load_saved_parts(struct rdb_input *in, uint64_t parts,
                                     struct valkey_bloom *v, calyx_error *why) {
    calyx_status status = CALYX_OK;
    while (status == CALYX_OK && v->parts < parts)
        status = load_saved_part(in, v, v->parts + 1 == parts, why);
    return status == CALYX_OK ? end_load(v, parts, why) : status;
}

calyx_status valkey_load(const struct rdb_reader *from, int encoding,
                         const calyx_memory *memory, struct valkey_bloom **out,
                         calyx_error *why) {
    struct rdb_input in = {from, false};
    struct valkey_params params = {0};
    struct valkey_bloom *v;
    *out = NULL;
    if (encoding != VALKEY_ENCODING)
        return layout_fail(why, CALYX_TOO_NEW,
                           "its encoding is %d; %d is known", encoding,
                           VALKEY_ENCODING);
    const uint64_t first = rdb_get_unsigned(&in), parts = first & ~PARTIAL;
    const uint64_t expansion = rdb_get_unsigned(&in);
    params.rate = rdb_get_double(&in);
    params.tightening = rdb_get_double(&in);
    const uint64_t random = rdb_get_unsigned(&in);
    if (in.failed || expansion > UINT32_MAX || random > 1 ||
        parts > VALKEY_MOST_PARTS)
        return layout_fail(why, CALYX_DAMAGED,
                           "its first numbers are missing or impossible: %llu "
                           "parts, expansion %llu, random seed %llu",
                           (number)parts, (number)expansion, (number)random);
    params.expansion = (uint32_t)expansion;
    params.seed_is_random = random;
    calyx_status status = begin_load(&params, memory, &v, why);
    if (status != CALYX_OK) return status;
    status = load_saved_parts(&in, parts, v, why);
    if (status == CALYX_OK && first & PARTIAL)
        status = load_arrived(&in, v, why);
    if (status == CALYX_OK)
        *out = v;
    else
        valkey_free(v);
    return status;
}

/* ---- Dumps --------------------------------------------------------------- */

size_t valkey_head_size(const struct valkey_bloom *v) {
    return sizeof MARK + size_without_bits(v);
}

void valkey_put_head(const struct valkey_bloom *v, uint8_t *head) {
    memcpy(head, MARK, sizeof MARK);
    put_object(v, true, head + sizeof MARK);
}

bool valkey_is_head(const void *head, size_t size) {
    return size > sizeof MARK && memcmp(head, MARK, sizeof MARK) == 0;
}

calyx_status valkey_load_head(const uint8_t *head, size_t size,
                              const calyx_memory *memory,
                              struct valkey_bloom **out, calyx_error *why) {
    if (!valkey_is_head(head, size))
        return layout_fail(why, CALYX_DAMAGED,
                           "the bytes are not the head of a filter");
    return load_object(head + sizeof MARK, size - sizeof MARK, true, memory,
                       out, why);
}

uint8_t *valkey_bits_from(const struct valkey_bloom *v, uint64_t from,
                          uint64_t *size) {
    for (uint32_t i = 0; i < v->parts; i++) {
        const struct valkey_part *const p = &v->part[i];
        if (from < p->bytes) {
            *size = p->bytes - from;
            return p->blob + VALKEY_BLOB_HEAD + from;
        }
        from -= p->bytes;
    }
    return NULL;
}
