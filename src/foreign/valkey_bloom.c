/*
 * Filters of valkey-bloom: making, growing, adding, lookups. (Payloads are in
 * valkey_codec.c.)
 *
 * An item has two hashes, a and b, by the two halves of the seed. Its bits in a
 * part are at
 *
 *     a, b, and (a + i * b) mod 2^64, mod 2^64 - 59    for i = 2, 3, ...
 *
 * each modulo the number of bits; bit x is bit x % 8 of byte x / 8. Note that
 * the second is b itself.
 */
#include "foreign/valkey_bloom.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "foreign/layout_memory.h"
#include "foreign/modulo.h"
#include "hash/siphash.h"

const uint8_t valkey_fixed_seed[VALKEY_SEED_BYTES] = {
    0x59, 0x0F, 0xF5, 0x22, 0xEA, 0x78, 0x11, 0xDA, 0xA7, 0x14, 0xD8,
    0x09, 0x3B, 0x3E, 0x7B, 0xD9, 0x1D, 0x89, 0x8A, 0x73, 0x3E, 0x98,
    0x88, 0x87, 0x30, 0x7F, 0x97, 0xCD, 0x28, 0x07, 0x33, 0x83};

/* ---- Where the bits are -------------------------------------------------- */

struct sip_pair {
    uint64_t a, b;
};

/* SipHash-1-3, as valkey-bloom hashes items: the size of the item as a word,
 * then its bytes. */
static uint64_t siphash13_of_item(const uint8_t secret[16], const void *item,
                                  size_t size) {
    const uint8_t *at = item;
    struct siphash_state s = siphash_begin(secret);
    siphash_word(&s, size, 1);
    for (size_t left = size; left >= 8; left -= 8, at += 8)
        siphash_word(&s, load64(at), 1);
    siphash_word(&s, siphash_last_word(at, size + 8), 1);
    return siphash_end(&s, 3);
}

static struct sip_pair hash_item(const struct valkey_bloom *v, const void *item,
                                 size_t size) {
    const uint8_t *const seed = v->params.seed;
    return (struct sip_pair){siphash13_of_item(seed, item, size),
                             siphash13_of_item(seed + 16, item, size)};
}

static inline uint64_t position(const struct valkey_part *p, uint64_t sum) {
    return modulo(sum, 8 * p->bytes, p->inverse);
}

static inline uint64_t position_of(const struct valkey_part *p,
                                   struct sip_pair h, uint32_t i) {
    static const uint64_t PRIME = UINT64_C(0) - 59;
    if (i < 2) return position(p, i == 0 ? h.a : h.b);
    const uint64_t sum = h.a + i * h.b;
    return position(p, sum < PRIME ? sum : sum - PRIME);
}

static bool part_has(const struct valkey_part *p, struct sip_pair h) {
    const uint8_t *const bits = p->blob + VALKEY_BLOB_HEAD;
    for (uint32_t i = 0; i < p->hashes; i++) {
        const uint64_t at = position_of(p, h, i);
        if (!(bits[at >> 3] >> (at & 7) & 1)) return false;
    }
    return true;
}

/* The newest parts are the largest, and hold most of the items. */
static bool any_part_has(const struct valkey_bloom *v, struct sip_pair h) {
    for (uint32_t i = v->parts; i > 0; i--)
        if (part_has(&v->part[i - 1], h)) return true;
    return false;
}

bool valkey_has(const struct valkey_bloom *v, const void *item, size_t size) {
    return any_part_has(v, hash_item(v, item, size));
}

/* ---- Sizes --------------------------------------------------------------- */

/* As valkey-bloom computes it, to the last bit: by repeated squaring. */
static double power(double base, uint32_t exponent) {
    double result = 1;
    for (; exponent; exponent /= 2, base *= base)
        if (exponent % 2) result *= base;
    return result;
}

double valkey_rate(const struct valkey_params *params, uint32_t number) {
    return params->rate * power(params->tightening, number);
}

/* The numbers of a part for this capacity and rate. */
static calyx_status plan_part(uint64_t capacity, double rate,
                              struct valkey_part *p, calyx_error *why) {
    static const double ln2 = 0.6931471805599453;
    if (!(rate > DBL_MIN && rate < 1))
        return layout_fail(why, CALYX_CANNOT,
                           "false positive degrades to 0 on scale out");
    const double bytes =
        ceil((double)capacity * log(rate) / (-8 * (ln2 * ln2)));
    const double hashes = round(bytes * 8 / (double)capacity * ln2);
    if (capacity < 1 || capacity > INT64_MAX ||
        !(bytes < (double)VALKEY_MOST_BYTES) ||
        hashes > (double)VALKEY_MOST_HASHES)
        return layout_fail(why, CALYX_CANNOT,
                           "bad capacity: a part for %llu items at the rate %g "
                           "would have %g bytes",
                           (unsigned long long)capacity, rate, bytes);
    *p = (struct valkey_part){.bytes = bytes < 1 ? 1 : (uint64_t)bytes,
                              .capacity = capacity,
                              .hashes = hashes < 1 ? 1 : (uint32_t)hashes};
    return CALYX_OK;
}

static calyx_status plan_next(const struct valkey_bloom *v,
                              struct valkey_part *p, calyx_error *why) {
    uint64_t capacity;
    if (v->params.expansion == 0)
        return layout_fail(why, CALYX_FULL, "non scaling filter is full");
    if (v->parts >= VALKEY_MOST_PARTS)
        return layout_fail(why, CALYX_CANNOT,
                           "bloom object reached max number of filters");
    if (__builtin_mul_overflow(v->part[v->parts - 1].capacity,
                               v->params.expansion, &capacity))
        capacity = UINT64_MAX;
    return plan_part(capacity, valkey_rate(&v->params, v->parts), p, why);
}

/* Its structs have these sizes; the vector of parts has room for 1, 4, 8 ... */
uint64_t valkey_size(uint32_t parts, uint64_t bytes) {
    enum { OBJECT = 48, PART = 24 + 184 };
    uint64_t room = 4;
    while (room < parts) room *= 2;
    return OBJECT + 8 * (parts > 1 ? room : 1) + PART * (uint64_t)parts + bytes;
}

uint64_t valkey_capacity(const struct valkey_bloom *v) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < v->parts; i++)
        if (__builtin_add_overflow(sum, v->part[i].capacity, &sum))
            return UINT64_MAX;
    return sum;
}

uint64_t valkey_scaled_capacity(uint64_t capacity,
                                const struct valkey_params *params,
                                uint64_t most_bytes, uint64_t enough,
                                enum valkey_limit *limit) {
    uint64_t total = 0, bytes = 0;
    for (uint32_t n = 0; n < VALKEY_MOST_PARTS; n++) {
        struct valkey_part p;
        *limit = VALKEY_RATE;
        if (!(valkey_rate(params, n) > DBL_MIN)) return total;
        *limit = VALKEY_LARGE;
        if (plan_part(capacity, valkey_rate(params, n), &p, NULL) != CALYX_OK)
            return total;
        bytes += p.bytes;
        *limit = VALKEY_MEMORY;
        if (most_bytes && valkey_size(n + 1, bytes) > most_bytes) return total;
        *limit = VALKEY_ENOUGH;
        total += capacity;
        if ((enough && total >= enough) || params->expansion == 0) return total;
        *limit = VALKEY_LARGE;
        if (total > INT64_MAX ||
            __builtin_mul_overflow(capacity, params->expansion, &capacity))
            return total;
    }
    return total;
}

/* ---- Making -------------------------------------------------------------- */

static void release(const struct valkey_bloom *v, void *block, uint64_t size) {
    v->memory.release(v->memory.context, block, (size_t)size);
}

calyx_status valkey_blank(const struct valkey_params *params,
                          const calyx_memory *memory, struct valkey_bloom **out,
                          calyx_error *why) {
    if (!memory) memory = &layout_malloc;
    struct valkey_bloom *const v = layout_allocate(memory, sizeof *v, why);
    if (!v) return CALYX_NO_MEMORY;
    v->params = *params;
    v->memory = *memory;
    *out = v;
    return CALYX_OK;
}

calyx_status valkey_push(struct valkey_bloom *v, struct valkey_part *p,
                         calyx_error *why) {
    struct valkey_part *const part = layout_more_room(
        &v->memory, v->part, v->parts, &v->room, sizeof *part, why);
    if (!part) return CALYX_NO_MEMORY;
    v->part = part;
    if (!p->blob) {
        p->blob = layout_allocate(&v->memory, VALKEY_BLOB_HEAD + p->bytes, why);
        if (!p->blob) return CALYX_NO_MEMORY;
        valkey_put_blob_head(p->blob, p, v->params.seed);
    }
    p->inverse = inverse_of(8 * p->bytes);
    v->part[v->parts++] = *p;
    v->bytes += p->bytes;
    v->items += p->items;
    return CALYX_OK;
}

calyx_status valkey_new(uint64_t capacity, const struct valkey_params *params,
                        const calyx_memory *memory, struct valkey_bloom **out,
                        calyx_error *why) {
    struct valkey_part first;
    struct valkey_bloom *v;
    *out = NULL;
    calyx_status status = plan_part(capacity, params->rate, &first, why);
    if (status == CALYX_OK) status = valkey_blank(params, memory, &v, why);
    if (status != CALYX_OK) return status;
    status = valkey_push(v, &first, why);
    if (status != CALYX_OK) {
        valkey_free(v);
        return status;
    }
    v->arrived = v->bytes;
    *out = v;
    return CALYX_OK;
}

/* The first n parts of another, without items. */
static calyx_status copy_shapes(const struct valkey_bloom *v, uint32_t n,
                                struct valkey_bloom **out, calyx_error *why) {
    struct valkey_bloom *copy;
    *out = NULL;
    if (valkey_blank(&v->params, &v->memory, &copy, why) != CALYX_OK)
        return CALYX_NO_MEMORY;
    for (uint32_t i = 0; i < n; i++) {
        struct valkey_part p = v->part[i];
        p.blob = NULL;
        p.items = 0;
        if (valkey_push(copy, &p, why) != CALYX_OK) {
            valkey_free(copy);
            return CALYX_NO_MEMORY;
        }
    }
    copy->arrived = copy->bytes;
    *out = copy;
    return CALYX_OK;
}

calyx_status valkey_new_like(const struct valkey_bloom *v,
                             struct valkey_bloom **out, calyx_error *why) {
    return copy_shapes(v, 1, out, why);
}

calyx_status valkey_copy(const struct valkey_bloom *v,
                         struct valkey_bloom **out, calyx_error *why) {
    const calyx_status status = copy_shapes(v, v->parts, out, why);
    if (status != CALYX_OK) return status;
    for (uint32_t i = 0; i < v->parts; i++) {
        struct valkey_part *const to = &(*out)->part[i];
        memcpy(to->blob, v->part[i].blob,
               (size_t)(VALKEY_BLOB_HEAD + to->bytes));
        to->items = v->part[i].items;
    }
    (*out)->items = v->items;
    (*out)->arrived = v->arrived;
    return CALYX_OK;
}

void valkey_free(struct valkey_bloom *v) {
    if (!v) return;
    for (uint32_t i = 0; i < v->parts; i++)
        release(v, v->part[i].blob, VALKEY_BLOB_HEAD + v->part[i].bytes);
    if (v->room) release(v, v->part, v->room * sizeof *v->part);
    release(v, v, sizeof *v);
}

/* ---- Adding -------------------------------------------------------------- */

static calyx_status grow(struct valkey_bloom *v, calyx_error *why) {
    struct valkey_part next;
    calyx_status status = plan_next(v, &next, why);
    if (status == CALYX_OK) status = valkey_push(v, &next, why);
    if (status == CALYX_OK) v->arrived = v->bytes;
    return status;
}

calyx_status valkey_add(struct valkey_bloom *v, const void *item, size_t size,
                        bool *fresh, calyx_error *why) {
    const struct sip_pair h = hash_item(v, item, size);
    *fresh = false;
    if (any_part_has(v, h)) return CALYX_OK;
    struct valkey_part *p = &v->part[v->parts - 1];
    if (p->items >= p->capacity) {
        const calyx_status status = grow(v, why);
        if (status != CALYX_OK) return status;
        p = &v->part[v->parts - 1];
    }
    uint8_t *const bits = p->blob + VALKEY_BLOB_HEAD;
    for (uint32_t i = 0; i < p->hashes; i++) {
        const uint64_t at = position_of(p, h, i);
        bits[at >> 3] = (uint8_t)(bits[at >> 3] | 1u << (at & 7));
    }
    p->items++;
    v->items++;
    *fresh = true;
    return CALYX_OK;
}
