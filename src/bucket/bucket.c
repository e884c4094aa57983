/*
 * The bucket kind: a table of fingerprints that removes keys and grows.
 *
 * A key goes to one bucket of 64 bytes, which has slots of 8 to 23 bits. What
 * is stored of the key is a code: the bits of its hash behind those that chose
 * the bucket. The first bit of the code says from which end of the bucket slots
 * are used, and is not stored (bucket_slots.h). A lookup compares all slots of
 * one bucket at once. Entries that found it full are spilled elsewhere
 * (bucket_spill.c); a byte of the bucket says which lookups may need these.
 *
 * Growth needs no keys, for the hash bits that choose between more buckets are
 * the first bits of the code: the idea of InfiniFilter (Dayan, Bercea,
 * Reviriego, Pagh 2023) and Aleph filters (Dayan, Bercea, Pagh 2024), in
 * buckets of a cache line, which vectors compare, in place of a quotient table.
 *
 * Address. With G groups of buckets, hash * G / 2^64 is the group y and a
 * fraction f, of 64 bits. A group has 4 to 7 positions. Position c of p holds
 * the keys with f * p from c to c + 1. The table grows by a quarter at a time:
 * from 4 positions to 5, 6, 7, and at 8 it has twice the groups with 4
 * positions each: level + 1. Each such stage adds a segment of G buckets, one
 * for each group, and moves the groups one after the other, in small steps.
 *
 * Code. The bits of f behind the first two. Position and code together say
 * these two again: a position is at most a quarter of f wide. At level 0 a code
 * is `width` bits (a slot of 0 is stored as 1). Above, it is width - 1 bits and
 * a stop bit, the lowest 1: a doubling takes the first bit of a code away,
 * moves the others up, and the stop bit with them. So old codes are shorter,
 * and each doubling leaves the old keys twice as likely to be taken for another
 * key; but they are half as many among all. So each doubling adds the same to
 * the rate: doc/MATH.md. A code that has run out of bits goes to all buckets
 * that it may belong to.
 *
 * Segments. Position c of group y is found without a directory of groups. With
 * z the number of trailing zeros of y, at most `level`:
 *
 *     c >= 4       segment 1 + 4 level + c - 4          bucket y
 *     z == level   segment 0                   c * groups + y / 2^level
 *     else         segment 1 + 4 (level - 1 - z) + c      y / 2^(z + 1)
 *
 * for a group with an odd number was position 4 to 7 of half its number one
 * level ago, and the others were position 0 to 3.
 */
#include "bucket/bucket.h"

#include <math.h>

#include "bucket/bucket_template.h"

static bool find(const uint8_t *line, uint32_t want, uint32_t varies) {
    bool found = false;
    for (uint32_t i = 0; i < SPILL_ENTRIES; i++) {
        const uint32_t entry = load32(line + 4 * i);
        found |= (entry != 0) & code_matches(entry, want, varies);
    }
    return found;
}

void table_of(struct bucket_table *t, const uint8_t *body,
              const struct shape *shape) {
    t->groups = shape->blocks / POSITIONS;
    t->base_blocks = shape->blocks;
    t->stage = 0;
    t->width = width_of(shape);
    t->adds = SPILL_FAR;
    t->shared = false;
    set_segment(t, 0, (uint8_t *)body);
}

/* ---- Shared tables --------------------------------------------------------
 */

void copy_line(uint8_t *to, const uint8_t *line) {
    for (size_t i = 0; i < BUCKET_BYTES; i += 8)
        store64(to + i, little64(__atomic_load_n((const uint64_t *)(line + i),
                                                 __ATOMIC_ACQUIRE)));
}

static void change_version(struct bucket_table *t,
                           const struct bucket_address *a) {
    if (t->shared) __atomic_fetch_add(version_of(t, a), 1, __ATOMIC_ACQ_REL);
}

void begin_move(struct bucket_table *t, const struct bucket_address *a) {
    change_version(t, a);
}

void end_move(struct bucket_table *t, const struct bucket_address *a) {
    change_version(t, a);
}

/* ---- The scalar kernel --------------------------------------------------- */

static struct bucket_scan scan(const uint8_t *line, uint32_t width,
                               uint32_t want, uint32_t varies) {
    const uint32_t slots = slots_of(width);
    const uint32_t lane = (want & slot_mask(width)) >> planes_of(width);
    struct lane_masks masks = {0};
    for (uint32_t i = 0; i < slots; i++) {
        const uint32_t code = get_lane(line, i, width);
        masks.equal |= (uint64_t)(code == lane) << i;
        masks.begun |= (uint64_t)code_matches(code, lane, varies) << i;
        masks.zero |= (uint64_t)(code == 0) << i;
    }
    return scan_planes(line, width, want, varies, masks);
}

static bool scalar_has(const struct bucket_table *t, uint64_t hash) {
    return has_in_table(t, hash, scan, find);
}

static size_t scalar_has_batch(const struct bucket_table *t, struct batch batch,
                               bool *found) {
    return has_batch_in_table(t, batch, found, scan, find, prepare_one_by_one);
}

static enum insertion scalar_add(struct bucket_table *t, uint64_t hash,
                                 bool *fresh) {
    return add_to_table(t, hash, fresh, scan);
}

static size_t scalar_add_batch(struct bucket_table *t, struct batch batch,
                               bool *fresh, size_t *added) {
    return add_batch_to_table(t, batch, fresh, added, scan, prepare_one_by_one);
}

static enum removal scalar_remove(struct bucket_table *t, uint64_t hash) {
    return remove_from_table(t, hash, scan);
}

static uint32_t scalar_count(const struct bucket_table *t, uint64_t hash) {
    return count_in_table(t, hash, scan, find);
}

static const struct table_kernel bucket_table_scalar = {
    .has = scalar_has,
    .has_batch = scalar_has_batch,
    .add = scalar_add,
    .add_batch = scalar_add_batch,
    .remove = scalar_remove,
    .count = scalar_count,
};

static bool bucket_has(const uint8_t *body, const struct shape *shape,
                       uint64_t hash) {
    return has_in_body(body, shape, hash, scan, find);
}

static bool bucket_add(uint8_t *body, const struct shape *shape,
                       uint64_t hash) {
    return add_to_body(body, shape, hash, scan);
}

static size_t bucket_has_batch(const uint8_t *body, const struct shape *shape,
                               struct batch batch, bool *found) {
    return has_batch_in_body(body, shape, batch, found, scan, find,
                             prepare_one_by_one);
}

static size_t bucket_add_batch(uint8_t *body, const struct shape *shape,
                               struct batch batch, bool *fresh) {
    return add_batch_to_body(body, shape, batch, fresh, scan,
                             prepare_one_by_one);
}

static enum removal bucket_remove(uint8_t *body, const struct shape *shape,
                                  uint64_t hash) {
    return remove_from_body(body, shape, hash, scan);
}

static size_t bucket_remove_batch(uint8_t *body, const struct shape *shape,
                                  struct batch batch, bool *found) {
    return remove_batch_from_body(body, shape, batch, found, scan);
}

static const struct kernel bucket_scalar = {
    .level = CPU_SCALAR,
    .has = bucket_has,
    .add = bucket_add,
    .has_batch = bucket_has_batch,
    .add_batch = bucket_add_batch,
    .remove = bucket_remove,
    .remove_batch = bucket_remove_batch,
    .table = &bucket_table_scalar,
};

/* ---- Count, room, rate --------------------------------------------------- */

static uint32_t count(const uint8_t *body, const struct shape *shape,
                      uint64_t hash) {
    struct bucket_table t;
    table_of(&t, body, shape);
    return count_in_table(&t, hash, scan, find);
}

/* By simulations of 4 to 2^20 buckets with 21 to 64 slots: at 86.6 % of the
 * slots, the lines for spilled entries are half full, 6 deviations from full,
 * and beyond that the number of probes grows. */
double bucket_room(uint64_t blocks, uint32_t width) {
    return floor(0.866 * (double)blocks * slots_of(width));
}

/* 88.5 % of the slots: a bucket that has no room is no error here, but lets its
 * group move early. */
double bucket_growing_room(uint64_t blocks, uint32_t width) {
    return floor(0.885 * (double)blocks * slots_of(width));
}

/* Of the keys in its bucket, each agrees with an absent key in all bits of the
 * code with odds 2^-width, and a little more, as a slot of 0 is stored as 1;
 * their number has a Poisson distribution. */
static double fpr(const struct shape *shape, double items) {
    const uint32_t width = width_of(shape);
    const uint64_t blocks = shape->blocks / POSITIONS * POSITIONS;
    if (blocks == 0 || items > bucket_room(blocks, width)) return 1;
    const double odds = ldexp(1 + ldexp(4, -(int)width), -(int)width);
    return -expm1(-odds * items / (double)blocks);
}

static uint64_t counter_lines(const struct shape *shape) {
    return spill_lines(shape->blocks);
}

static bool is_shape(const struct shape *shape) {
    return shape->wide <= shape->blocks;
}

/* Segment n of a table that begins with segment `first`. */
static bool is_segment(const struct shape *first, uint32_t number,
                       const struct shape *shape) {
    struct bucket_table t;
    table_of(&t, NULL, first);
    return t.groups >= 1 && shape->probes == first->probes &&
           segment_blocks(&t, number) == shape->blocks &&
           (number > 0 || shape->wide == 0);
}

static const struct kernel *const kernels[] = {
#if ON_AVX512
    &bucket_avx512,
#endif
#if ON_X86
    &bucket_avx2,
#endif
    &bucket_scalar,
};

const struct kind kind_bucket = {
    .name = "bucket",
    .code = 10,
    .hash = "xxh3",
    .can = CALYX_CAN_ADD | CALYX_CAN_REMOVE | CALYX_CAN_COUNT | CALYX_CAN_GROW |
           CALYX_CAN_SHARE | CALYX_CAN_GROW_IN_PLACE,
    .block_bits = 8 * BUCKET_BYTES,
    .counter_bits = 8 * BUCKET_BYTES / SPILL_BUCKETS,
    .counter_lines = counter_lines,
    .is_shape = is_shape,
    .is_segment = is_segment,
    .most_blocks = UINT64_C(1) << 36,
    .most_probes = WIDTH_MOST - WIDTH_LEAST + 1,
    .probe_step = 1,
    .least_fpr = 1.2e-6,
    .fpr = fpr,
    .kernels = kernels,
    .atomic_kernels = kernels,
    .count = count,
};
