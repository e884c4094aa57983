/*
 * Cuckoo filters: making, adding, lookups, removal.
 *
 *     hash         MurmurHash64A of the item, seed 0
 *     fingerprint  hash mod 255 + 1
 *     buckets      hash mod n, and (hash xor fingerprint * 0x5BD1E995) mod n
 *
 * with n buckets in a part, a power of two: so each of the two gives the other.
 *
 * Where a fingerprint goes is part of the layout, as filters shall come to the
 * same bytes here and in RedisBloom: the first free slot in the newest part
 * that has one; else the newest part is rearranged.
 */
#include "cuckoo/cuckoo.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "foreign/murmur.h"

enum { BATCH = 32 }; /* items that are prefetched together */

calyx_status cuckoo_fail(calyx_error *why, calyx_status status,
                         const char *format, ...) {
    if (!why) return status;
    va_list args;
    va_start(args, format);
    vsnprintf(why->text, sizeof why->text, format, args);
    va_end(args);
    why->status = status;
    why->os_code = 0;
    return status;
}

/* ---- Buckets ------------------------------------------------------------- */

struct cuckoo_hash cuckoo_hash_of(const void *item, size_t size) {
    const uint64_t hash = murmur64(item, size, 0);
    const uint8_t fingerprint = (uint8_t)(hash % 255 + 1);
    return (struct cuckoo_hash){hash, cuckoo_other(fingerprint, hash),
                                fingerprint};
}

static inline uint8_t *bucket_of(const struct cuckoo *c,
                                 const struct cuckoo_part *p, uint64_t hash) {
    return p->slots + (hash & (p->buckets - 1)) * c->bucket_size;
}

static inline uint8_t *slot_in(uint8_t *bucket, uint32_t size, uint8_t value) {
    enum { FEW = 8 }; /* a call takes longer than to look at these */
    if (size > FEW) return memchr(bucket, value, size);
    for (uint32_t i = 0; i < size; i++)
        if (bucket[i] == value) return bucket + i;
    return NULL;
}

uint8_t *cuckoo_slot(const struct cuckoo *c, const struct cuckoo_part *p,
                     uint8_t value, uint64_t first, uint64_t second) {
    uint8_t *const slot =
        slot_in(bucket_of(c, p, first), c->bucket_size, value);
    return slot ? slot
                : slot_in(bucket_of(c, p, second), c->bucket_size, value);
}

static inline void prefetch_part(const struct cuckoo *c,
                                 const struct cuckoo_part *p,
                                 struct cuckoo_hash h) {
    __builtin_prefetch(bucket_of(c, p, h.first));
    __builtin_prefetch(bucket_of(c, p, h.second));
}

struct cuckoo_hint cuckoo_hint_of(const struct cuckoo *c) {
    const struct cuckoo_part *const newest = &c->part[c->parts - 1];
    return (struct cuckoo_hint){newest->slots, newest->buckets - 1,
                                c->bucket_size};
}

/* ---- Sizes --------------------------------------------------------------- */

static uint64_t power_of_two(uint64_t least) {
    uint64_t n = 1;
    while (n < least) n *= 2;
    return n;
}

/* Bytes of the slots that such a filter is made with; 0 if it cannot be. */
static uint64_t first_bytes(const struct cuckoo_params *params) {
    const uint64_t size = params->bucket_size;
    if (size < 1 || params->capacity / size > CUCKOO_MOST_PART_BYTES) return 0;
    const uint64_t bytes = power_of_two(params->capacity / size) * size;
    return bytes > CUCKOO_MOST_PART_BYTES ? 0 : bytes;
}

/* ---- Making -------------------------------------------------------------- */

enum { ALIGNMENT = 16 }; /* the alignment of malloc; slots need no more */

static void *take(const calyx_memory *memory, uint64_t size, calyx_error *why) {
    void *block = size <= SIZE_MAX ? memory->allocate(memory->context,
                                                      (size_t)size, ALIGNMENT)
                                   : NULL;
    if (!block)
        cuckoo_fail(why, CALYX_NO_MEMORY, "there is no memory of %llu bytes",
                    (unsigned long long)size);
    return block;
}

calyx_status cuckoo_blank(const struct cuckoo_numbers *is,
                          const calyx_memory *memory, struct cuckoo **out,
                          calyx_error *why) {
    *out = NULL;
    struct cuckoo *const c = take(memory, sizeof *c, why);
    if (!c) return CALYX_NO_MEMORY;
    c->bucket_size = (uint16_t)is->bucket_size;
    c->iterations = (uint16_t)is->iterations;
    c->expansion = (uint16_t)is->expansion;
    c->deletes = is->deletes;
    c->memory = *memory;
    *out = c;
    return CALYX_OK;
}

static bool make_room(struct cuckoo *c, calyx_error *why) {
    if (c->held < c->room) return true;
    const uint32_t room = c->room ? 2 * c->room : 1;
    struct cuckoo_part *part = take(&c->memory, room * sizeof *part, why);
    if (!part) return false;
    if (c->room) {
        memcpy(part, c->part, c->held * sizeof *part);
        c->memory.release(c->memory.context, c->part, c->room * sizeof *part);
    }
    c->part = part;
    c->room = room;
    return true;
}

calyx_status cuckoo_push(struct cuckoo *c, uint64_t buckets, uint8_t *slots,
                         calyx_error *why) {
    const uint64_t bytes = buckets * c->bucket_size;
    if (!make_room(c, why)) return CALYX_NO_MEMORY;
    if (!slots) slots = take(&c->memory, bytes, why);
    if (!slots) return CALYX_NO_MEMORY;
    c->part[c->parts++] = (struct cuckoo_part){slots, buckets};
    c->held = c->parts;
    c->bytes += bytes;
    return CALYX_OK;
}

calyx_status cuckoo_new(const struct cuckoo_params *params,
                        const calyx_memory *memory, struct cuckoo **out,
                        calyx_error *why) {
    const uint64_t bytes = first_bytes(params);
    *out = NULL;
    if (!bytes)
        return cuckoo_fail(why, CALYX_CANNOT,
                           "a part for %llu items would be larger than 4 GiB",
                           (unsigned long long)params->capacity);
    const struct cuckoo_numbers is = {
        .bucket_size = params->bucket_size,
        .iterations = params->iterations,
        .expansion = params->expansion ? power_of_two(params->expansion) : 0};
    struct cuckoo *c;
    if (cuckoo_blank(&is, memory, &c, why) != CALYX_OK) return CALYX_NO_MEMORY;
    if (cuckoo_push(c, bytes / params->bucket_size, NULL, why) != CALYX_OK) {
        cuckoo_free(c);
        return CALYX_NO_MEMORY;
    }
    c->arrived = c->bytes;
    *out = c;
    return CALYX_OK;
}

calyx_status cuckoo_copy(const struct cuckoo *c, struct cuckoo **out,
                         calyx_error *why) {
    const struct cuckoo_numbers is = {.bucket_size = c->bucket_size,
                                      .iterations = c->iterations,
                                      .expansion = c->expansion,
                                      .deletes = c->deletes};
    struct cuckoo *copy;
    *out = NULL;
    calyx_status status = cuckoo_blank(&is, &c->memory, &copy, why);
    if (status != CALYX_OK) return status;
    for (uint32_t i = 0; i < c->parts && status == CALYX_OK; i++) {
        const struct cuckoo_part *p = &c->part[i];
        status = cuckoo_push(copy, p->buckets, NULL, why);
        if (status == CALYX_OK)
            memcpy(copy->part[i].slots, p->slots,
                   (size_t)cuckoo_part_bytes(c, p));
    }
    if (status != CALYX_OK) {
        cuckoo_free(copy);
        return status;
    }
    copy->items = c->items;
    copy->claimed = c->claimed;
    copy->arrived = c->arrived;
    *out = copy;
    return CALYX_OK;
}

void cuckoo_trim(struct cuckoo *c) {
    while (c->held > c->parts) {
        const struct cuckoo_part *p = &c->part[--c->held];
        c->memory.release(c->memory.context, p->slots,
                          (size_t)cuckoo_part_bytes(c, p));
    }
}

void cuckoo_free(struct cuckoo *c) {
    if (!c) return;
    const calyx_memory memory = c->memory;
    c->parts = 0;
    cuckoo_trim(c);
    if (c->room)
        memory.release(memory.context, c->part, c->room * sizeof *c->part);
    memory.release(memory.context, c, sizeof *c);
}

/* ---- Lookups ------------------------------------------------------------- */

static inline bool part_has(const struct cuckoo *c, const struct cuckoo_part *p,
                            struct cuckoo_hash h) {
    return cuckoo_slot(c, p, h.fingerprint, h.first, h.second) != NULL;
}

/* Buckets are prefetched four parts ahead. */
bool cuckoo_has(const struct cuckoo *c, struct cuckoo_hash h) {
    enum { AHEAD = 4 };
    for (uint32_t i = c->parts; i > 0; i--) {
        if (i > AHEAD) prefetch_part(c, &c->part[i - 1 - AHEAD], h);
        if (part_has(c, &c->part[i - 1], h)) return true;
    }
    return false;
}

/* Which of up to BATCH items are there? */
static size_t has_batch(const struct cuckoo *c, const struct cuckoo_hash *hash,
                        size_t n, bool *found) {
    size_t total = 0;
    for (size_t j = 0; j < n; j++) found[j] = false;
    for (uint32_t i = c->parts; i > 0 && total < n; i--) {
        const struct cuckoo_part *const p = &c->part[i - 1];
        for (size_t j = 0; j < n; j++)
            if (!found[j]) prefetch_part(c, p, hash[j]);
        for (size_t j = 0; j < n; j++)
            if (!found[j]) total += found[j] = part_has(c, p, hash[j]);
    }
    return total;
}

size_t cuckoo_has_many(const struct cuckoo *c, const calyx_key *items, size_t n,
                       bool *found) {
    struct cuckoo_hash hash[BATCH];
    size_t total = 0, some;
    for (size_t done = 0; done < n; done += some) {
        some = n - done < BATCH ? n - done : BATCH;
        for (size_t j = 0; j < some; j++)
            hash[j] =
                cuckoo_hash_of(items[done + j].data, items[done + j].size);
        total += has_batch(c, hash, some, found + done);
    }
    return total;
}

static uint64_t count_in(const uint8_t *bucket, uint32_t size, uint8_t value) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < size; i++) n += bucket[i] == value;
    return n;
}

uint64_t cuckoo_count(const struct cuckoo *c, struct cuckoo_hash h) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < c->parts; i++) {
        const struct cuckoo_part *const p = &c->part[i];
        n += count_in(bucket_of(c, p, h.first), c->bucket_size, h.fingerprint);
        n += count_in(bucket_of(c, p, h.second), c->bucket_size, h.fingerprint);
    }
    return n;
}

uint64_t cuckoo_used(const uint8_t *slots, uint64_t n) {
    uint64_t used = 0;
    for (uint64_t i = 0; i < n; i++) used += slots[i] != 0;
    return used;
}

/* ---- Adding -------------------------------------------------------------- */

static uint8_t *free_slot(const struct cuckoo *c, struct cuckoo_hash h,
                          uint64_t *lines) {
    for (uint32_t i = c->parts; i > 0; i--) {
        uint8_t *const slot =
            cuckoo_slot(c, &c->part[i - 1], 0, h.first, h.second);
        *lines += 2;
        if (slot) return slot;
    }
    return NULL;
}

static uint8_t exchange(uint8_t *slot, uint8_t fingerprint) {
    const uint8_t old = *slot;
    *slot = fingerprint;
    return old;
}

/* Make room in the newest part: put the fingerprint into its first bucket,
 * take out another, put that into its other bucket, and so on, until there is a
 * free slot. The slot that is taken out of a bucket moves on by one each time.
 * If there is none after `iterations`, all that is undone. */
static bool rearrange(struct cuckoo *c, struct cuckoo_hash h, uint64_t *lines) {
    const struct cuckoo_part *const p = &c->part[c->parts - 1];
    const uint32_t size = c->bucket_size;
    uint8_t fingerprint = h.fingerprint;
    uint64_t bucket = h.first;
    uint32_t victim = 0;
    for (uint32_t i = 0; i < c->iterations; i++) {
        fingerprint = exchange(bucket_of(c, p, bucket) + victim, fingerprint);
        bucket = cuckoo_other(fingerprint, bucket);
        uint8_t *const slot = slot_in(bucket_of(c, p, bucket), size, 0);
        ++*lines;
        if (slot) {
            *slot = fingerprint;
            return true;
        }
        victim = victim + 1 < size ? victim + 1 : 0;
    }
    for (uint32_t i = 0; i < c->iterations; i++) {
        victim = victim ? victim - 1 : size - 1;
        bucket = cuckoo_other(fingerprint, bucket);
        fingerprint = exchange(bucket_of(c, p, bucket) + victim, fingerprint);
    }
    *lines += c->iterations;
    return false;
}

static calyx_status grow(struct cuckoo *c, calyx_error *why) {
    const uint64_t buckets = c->part[c->parts - 1].buckets * c->expansion;
    if (c->expansion == 0)
        return cuckoo_fail(why, CALYX_FULL, "the filter is full");
    if (c->parts == CUCKOO_MOST_PARTS ||
        buckets > CUCKOO_MOST_PART_BYTES / c->bucket_size)
        return cuckoo_fail(why, CALYX_CANNOT,
                           "part %u would have %llu buckets of %u slots; there "
                           "can be %d parts, each of up to 4 GiB",
                           c->parts + 1, (unsigned long long)buckets,
                           c->bucket_size, CUCKOO_MOST_PARTS);
    if (c->held > c->parts) { /* one that was dropped, and is empty */
        c->bytes += cuckoo_part_bytes(c, &c->part[c->parts++]);
    } else if (cuckoo_push(c, buckets, NULL, why) != CALYX_OK) {
        return CALYX_NO_MEMORY;
    }
    c->arrived = c->bytes;
    return CALYX_OK;
}

calyx_status cuckoo_add(struct cuckoo *c, struct cuckoo_hash h, uint64_t *lines,
                        calyx_error *why) {
    uint8_t *slot = free_slot(c, h, lines);
    if (!slot && !rearrange(c, h, lines)) {
        const calyx_status status = grow(c, why);
        if (status != CALYX_OK) return status;
        slot = free_slot(c, h, lines); /* in the new part */
    }
    if (slot) *slot = h.fingerprint;
    c->items++;
    return CALYX_OK;
}

void cuckoo_let_grow(struct cuckoo *c) {
    if (c->expansion == 0) c->expansion = 1;
}

bool cuckoo_remove(struct cuckoo *c, struct cuckoo_hash h) {
    for (uint32_t i = c->parts; i > 0; i--) {
        uint8_t *const slot =
            cuckoo_slot(c, &c->part[i - 1], h.fingerprint, h.first, h.second);
        if (!slot) continue;
        *slot = 0;
        c->items--;
        c->deletes++;
        return true;
    }
    return false;
}

/* ---- The whole filter ---------------------------------------------------- */

/* The structs of a filter and of a part count, as RedisBloom has them. */
uint64_t cuckoo_size(const struct cuckoo *c) {
    enum { THEIR_FILTER = 40, THEIR_PART = 16 };
    return THEIR_FILTER + c->parts * (uint64_t)THEIR_PART + c->bytes;
}

struct cuckoo_numbers cuckoo_describe(const struct cuckoo *c) {
    return (struct cuckoo_numbers){
        .buckets = c->part[0].buckets,
        .parts = c->parts,
        .items = cuckoo_is_partial(c) ? c->claimed : c->items,
        .deletes = c->deletes,
        .bucket_size = c->bucket_size,
        .expansion = c->expansion,
        .iterations = c->iterations,
    };
}

uint64_t cuckoo_digest(const struct cuckoo *c) {
    uint8_t header[CUCKOO_HEADER];
    cuckoo_dump_header(c, header);
    uint64_t digest = murmur64(header, sizeof header, c->arrived);
    for (uint32_t i = 0; i < c->parts; i++)
        digest = murmur64(c->part[i].slots,
                          (size_t)cuckoo_part_bytes(c, &c->part[i]), digest);
    return digest;
}
