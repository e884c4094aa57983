/*
 * Cuckoo filters as RedisBloom dumps them: a header, then the slots.
 *
 *     u64 items, u64 buckets of the first part, u64 deletes, u64 parts,
 *     u16 bucket size, u16 iterations, u16 expansion          little-endian
 *
 * Part i has expansion^i times the buckets of the first. The value in an RDB
 * file has the same numbers (layout/cuckoo_layout.c). Whatever comes from
 * outside goes through one gate, cuckoo_check, before any number is used.
 */
#include <string.h>

#include "cuckoo/cuckoo.h"

typedef unsigned long long number; /* for printing */

/* ---- The header ---------------------------------------------------------- */

static uint8_t *put(uint8_t *p, size_t bytes, uint64_t value) {
    for (size_t i = 0; i < bytes; i++, value >>= 8) *p++ = (uint8_t)value;
    return p;
}

static uint64_t get(const uint8_t *p, size_t bytes) {
    uint64_t value = 0;
    for (size_t i = bytes; i > 0; i--) value = value << 8 | p[i - 1];
    return value;
}

void cuckoo_dump_header(const struct cuckoo *c, uint8_t header[CUCKOO_HEADER]) {
    const struct cuckoo_numbers facts = cuckoo_describe(c);
    uint8_t *p = put(header, 8, facts.items);
    p = put(p, 8, facts.buckets);
    p = put(p, 8, facts.deletes);
    p = put(p, 8, facts.parts);
    p = put(p, 2, facts.bucket_size);
    p = put(p, 2, facts.iterations);
    put(p, 2, facts.expansion);
}

struct cuckoo_numbers cuckoo_read_header(const uint8_t header[CUCKOO_HEADER]) {
    return (struct cuckoo_numbers){
        .items = get(header, 8),
        .buckets = get(header + 8, 8),
        .deletes = get(header + 16, 8),
        .parts = get(header + 24, 8),
        .bucket_size = get(header + 32, 2),
        .iterations = get(header + 34, 2),
        .expansion = get(header + 36, 2),
    };
}

/* ---- The gate ------------------------------------------------------------ */

static bool is_power_of_two(uint64_t n) {
    return n && !(n & (n - 1));
}

static calyx_status out_of_range(calyx_error *why, const char *what,
                                 uint64_t found, uint64_t least,
                                 uint64_t most) {
    return cuckoo_fail(why, CALYX_DAMAGED, "%s is %llu, not from %llu to %llu",
                       what, (number)found, (number)least, (number)most);
}

static calyx_status check_numbers(const struct cuckoo_numbers *is,
                                  calyx_error *why) {
    if (is->parts < 1 || is->parts > CUCKOO_MOST_PARTS)
        return out_of_range(why, "the number of parts", is->parts, 1,
                            CUCKOO_MOST_PARTS);
    if (is->bucket_size < 1 || is->bucket_size > CUCKOO_MOST_BUCKET_SIZE)
        return out_of_range(why, "the bucket size", is->bucket_size, 1,
                            CUCKOO_MOST_BUCKET_SIZE);
    if (is->iterations < 1 || is->iterations > CUCKOO_MOST_ITERATIONS)
        return out_of_range(why, "the number of iterations", is->iterations, 1,
                            CUCKOO_MOST_ITERATIONS);
    if (is->expansion > CUCKOO_MOST_EXPANSION)
        return out_of_range(why, "the expansion", is->expansion, 0,
                            CUCKOO_MOST_EXPANSION);
    if (is->expansion && !is_power_of_two(is->expansion))
        return cuckoo_fail(why, CALYX_DAMAGED,
                           "the expansion is %llu, not 0 or a power of two",
                           (number)is->expansion);
    if (!is->expansion && is->parts > 1)
        return cuckoo_fail(why, CALYX_DAMAGED,
                           "the filter does not grow, but has %llu parts",
                           (number)is->parts);
    if (!is_power_of_two(is->buckets))
        return cuckoo_fail(why, CALYX_DAMAGED,
                           "the number of buckets is %llu, not a power of two",
                           (number)is->buckets);
    return CALYX_OK;
}

/* No sum can overflow: 65535 parts of up to 2^32 bytes are less than 2^48. */
calyx_status cuckoo_check(const struct cuckoo_numbers *is, uint64_t *bytes,
                          calyx_error *why) {
    const calyx_status status = check_numbers(is, why);
    uint64_t buckets = is->buckets;
    *bytes = 0;
    if (status != CALYX_OK) return status;
    for (uint64_t i = 0; i < is->parts; i++, buckets *= is->expansion) {
        if (buckets > CUCKOO_MOST_PART_BYTES / is->bucket_size)
            return cuckoo_fail(why, CALYX_DAMAGED,
                               "part %llu has %llu buckets of %llu slots: more "
                               "than 4 GiB",
                               (number)i + 1, (number)buckets,
                               (number)is->bucket_size);
        *bytes += buckets * is->bucket_size;
    }
    if (is->items > *bytes)
        return cuckoo_fail(why, CALYX_DAMAGED,
                           "the filter has %llu items, but only %llu slots",
                           (number)is->items, (number)*bytes);
    return CALYX_OK;
}

uint64_t cuckoo_claimed_buckets(const struct cuckoo_numbers *is,
                                uint32_t number_of_part) {
    uint64_t buckets = is->buckets;
    if (is->expansion == 1) return buckets;
    for (uint32_t i = 0; i < number_of_part; i++) buckets *= is->expansion;
    return buckets;
}

/* ---- Loading ------------------------------------------------------------- */

calyx_status cuckoo_load_header(const struct cuckoo_numbers *is,
                                const calyx_memory *memory, struct cuckoo **out,
                                calyx_error *why) {
    uint64_t bytes;
    struct cuckoo *c;
    *out = NULL;
    calyx_status status = cuckoo_check(is, &bytes, why);
    if (status == CALYX_OK) status = cuckoo_blank(is, memory, &c, why);
    if (status != CALYX_OK) return status;
    for (uint32_t i = 0; i < is->parts && status == CALYX_OK; i++)
        status = cuckoo_push(c, cuckoo_claimed_buckets(is, i), NULL, why);
    if (status != CALYX_OK) {
        cuckoo_free(c);
        return status;
    }
    c->claimed = is->items;
    c->arrived = is->items ? 0 : c->bytes;
    *out = c;
    return CALYX_OK;
}

/* The part that has the byte at `from` of all slots, and where it begins. */
static const struct cuckoo_part *part_with(const struct cuckoo *c,
                                           uint64_t from, uint64_t *begin) {
    *begin = 0;
    for (uint32_t i = 0; i < c->parts; i++) {
        const uint64_t bytes = cuckoo_part_bytes(c, &c->part[i]);
        if (from - *begin < bytes) return &c->part[i];
        *begin += bytes;
    }
    return NULL;
}

calyx_status cuckoo_load_chunk(struct cuckoo *c, int64_t at, const void *bytes,
                               size_t size, bool *changed, calyx_error *why) {
    uint64_t begin;
    *changed = false;
    if (size == 0) return cuckoo_fail(why, CALYX_BAD_ARGUMENT, "it is empty");
    if (at <= 0 || (uint64_t)at <= size)
        return cuckoo_fail(why, CALYX_BAD_ARGUMENT,
                           "%llu bytes cannot end at position %lld",
                           (number)size, (long long)at);
    const uint64_t from = (uint64_t)at - 1 - size;
    const struct cuckoo_part *const p = part_with(c, from, &begin);
    if (!p || size > cuckoo_part_bytes(c, p) - (from - begin))
        return cuckoo_fail(why, CALYX_BAD_ARGUMENT,
                           "%llu bytes up to position %lld are not within one "
                           "part of this filter, which has %llu",
                           (number)size, (long long)at, (number)c->bytes);
    if (from > c->arrived)
        return cuckoo_fail(why, CALYX_BAD_ARGUMENT,
                           "it begins with byte %llu, but those from %llu on "
                           "are missing",
                           (number)from, (number)c->arrived);
    uint8_t *const slots = p->slots + (from - begin);
    const bool longer = from + size > c->arrived;
    *changed = longer || memcmp(slots, bytes, size) != 0;
    c->items -= cuckoo_used(slots, size);
    memcpy(slots, bytes, size);
    c->items += cuckoo_used(slots, size);
    if (longer) c->arrived = from + size;
    return CALYX_OK;
}

void cuckoo_accept(struct cuckoo *c) {
    c->arrived = c->bytes;
}

/* ---- Dumping ------------------------------------------------------------- */

const void *cuckoo_dump_chunk(const struct cuckoo *c, int64_t *at,
                              size_t *size) {
    uint64_t begin;
    const uint64_t from = (uint64_t)*at - 1;
    const struct cuckoo_part *const p =
        *at > 0 && from < c->arrived ? part_with(c, from, &begin) : NULL;
    if (!p) {
        *at = 0;
        *size = 0;
        return NULL;
    }
    const uint64_t part_end = begin + cuckoo_part_bytes(c, p);
    const uint64_t end = part_end < c->arrived ? part_end : c->arrived;
    *size = end - from < CUCKOO_MOST_CHUNK ? (size_t)(end - from)
                                           : CUCKOO_MOST_CHUNK;
    *at += (int64_t)*size;
    return p->slots + (from - begin);
}
