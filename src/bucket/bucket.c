/*
 * The growing table: fingerprints that can be removed, in a table that grows
 * without its keys. Start here; the other files of this folder refer to it.
 *
 * THE IDEA. A key goes to one bucket of 64 bytes. What is stored of the key is
 * a code: the bits of its hash after those that chose the bucket. A lookup
 * compares all slots of that one cache line at once. To double the table, each
 * code gives its first bit away, which chooses between two buckets:
 *
 *     hash of a key  0 1 1 0 1 1   0 1   1 0 1 0 0 1 1 0 0 1 0 1 1 0 1 0   1 1
 *                    the group | quarter | the code
 *
 *     new                                1 0 1 0 0 1 1 0 0 1 0 1 1 0 1 0 [1]
 *     one doubling on                    0 1 0 0 1 1 0 0 1 0 1 1 0 1 0 [1] 0
 *     two                                1 0 0 1 1 0 0 1 0 1 1 0 1 0 [1] 0 0
 *
 * The stop bit, the lowest 1, marks how many bits are left; only the bits
 * above it are compared. A doubling makes the old keys twice as likely to be
 * taken for another key, but they are half as many among all: so each doubling
 * adds the same to the rate (doc/MATH.md). New keys always get codes of full
 * length. This is the idea of InfiniFilter (Dayan, Bercea, Reviriego, Pagh
 * 2023) and of Aleph filters (Dayan, Bercea, Pagh 2024), who keep codes in a
 * quotient table; here they are in buckets that vectors compare.
 *
 * A BUCKET (bucket_slots.h). The first bit of a code chooses an end of the
 * line, and is not stored: so 31 codes of 17 bits fit.
 *
 *     0                                                     62     63
 *     [ 0.. 0.. 0.. 0.. | empty ...... | 1.. 1.. 1.. 1.. ]  [low]  [classes]
 *
 * `low` counts the codes that begin with 0. An entry that finds its bucket
 * full is spilled to a line that 16 buckets share (bucket_spill.c). It has one
 * of 8 classes, by three bits of its code; `classes` says which a bucket has
 * spilled, so that 3 % of lookups read a second line in a full table.
 *
 * GROWTH (bucket_grow.c). Buckets are in the order of hashes, in groups of 4
 * to 7, and the table grows by one bucket a group at a time, 14 to 25 %:
 *
 *     stage 0    |g0      |g1      |g2      |            4 buckets a group
 *     moving     |g0      |g1      |.g2.......|          the last group first
 *     stage 1    |g0        |g1        |g2        |      5 buckets a group
 *     ...
 *     stage 4    |g0      |g1      |g2      |g3 ...      2 groups of 4 each
 *
 * So a table stays 70 to 89 % full, and an addition moves one group: nobody
 * waits for a doubling. Each stage adds a segment of memory after the others;
 * no segment is copied to a larger one. In numbers: with B buckets a key is in
 * bucket hash * B / 2^64. A table has G groups of p positions, and hash * G /
 * 2^64 is the group y and a fraction f of 64 bits. After 4, 5, 6 and 7
 * positions come twice the groups with 4: the next level. Group y has the
 * buckets from p * y on; it moves to (p + 1) * y and on, which are new, or
 * were left by a group that moved before. The code is the bits of f after the
 * first two: position and code together say these two again, as a position is
 * at most a quarter of f wide. At level 0, before the first doubling, a code
 * has `width` bits and no stop bit, and a slot of 0 is stored as 1; above it
 * has width - 1 bits. A code that has run out of bits goes to all buckets that
 * it may belong to. A table that never grows needs none of this: table/fixed.c.
 *
 * SPARE BITS. A table for few keys begins with one bucket and codes of 24
 * bits, more than it needs. While its codes have bits to spare, it doubles as
 * a whole: all entries have the first 24 bits of a hash, before and after, so
 * nothing is lost, and a small table takes little memory
 * (engine/table_engine.c).
 *
 * READERS BESIDE A WRITER. An addition writes one slot, and disturbs no
 * reader. What moves entries counts a version of its group up before and
 * after: a reader that found nothing compares the versions, and looks again if
 * one changed.
 *
 * TRADED. 19.8 bits a key in a full table at 1 %, 25.4 after it grew, for one
 * line a lookup at any size, where a chain of filters reads one a part. Each
 * entry is moved four times a doubling, 5.5 times on average in a table that
 * grew from little, which is half of the time of an addition. Keys that were
 * chosen against a known seed fill a bucket and its spill lines: it is then
 * saturated, and answers "yes".
 */
#include "bucket/bucket.h"

#include <math.h>

#include "bucket/bucket_has_batch.h"
#include "bucket/bucket_remove.h"

void table_of(struct bucket_table *t, const uint8_t *body,
              const struct shape *shape) {
    const uint64_t blocks = shape->blocks;
    t->groups = blocks < POSITIONS ? 1 : blocks / POSITIONS;
    t->base_blocks = blocks;
    t->halvings = blocks >= POSITIONS ? 0 : blocks > 1 ? 1 : 2;
    t->stage = 0;
    t->width = width_of(shape);
    t->most_copies = COPIES_MOST;
    t->adds = SPILL_FAR;
    t->shared = false;
    t->versions = NULL;
    t->start = t->first;
    t->row_segments = 0;
    t->lines_of = NULL;
    set_segment(t, 0, body);
}

/* ---- Shared tables --------------------------------------------------------
 */

void copy_line(uint8_t *to, const uint8_t *line) {
    for (size_t i = 0; i < BUCKET_BYTES; i += 8)
        store64(to + i, little64(__atomic_load_n((const uint64_t *)(line + i),
                                                 __ATOMIC_ACQUIRE)));
}

static void change_version(struct bucket_table *t, uint64_t group) {
    if (t->shared)
        __atomic_fetch_add(version_of(t, group), 1, __ATOMIC_ACQ_REL);
}

void begin_move(struct bucket_table *t, uint64_t group) {
    change_version(t, group);
}

void end_move(struct bucket_table *t, uint64_t group) {
    change_version(t, group);
}

/* ---- The scalar kernel --------------------------------------------------- */

static struct lane_masks compare16(const uint8_t *line, uint32_t lane,
                                   uint32_t varies) {
    struct lane_masks masks = {0};
    for (uint32_t i = 0; i < BUCKET_BYTES / 2; i++) {
        const uint32_t code = load16(line + 2 * i);
        masks.equal |= (uint64_t)(code == lane) << i;
        masks.begun |= (uint64_t)(code != 0 && code_matches(code, lane, varies))
                       << i;
        masks.zero |= (uint64_t)(code == 0) << i;
    }
    return masks;
}

static struct lane_match match16(const uint8_t *line, uint32_t code,
                                 uint32_t varies) {
    const struct lane_masks masks =
        compare16(line, lane_of(code, WIDTH_GROWING), varies);
    return (struct lane_match){
        .lanes = (uint32_t)(varies ? masks.begun : masks.equal),
        .last = load32(line + LAST_AT),
    };
}

static bool find(const uint8_t *line, uint32_t want, uint32_t varies) {
    bool found = false;
    for (uint32_t i = 0; i < SPILL_ENTRIES; i++) {
        const uint32_t entry = load32(line + 4 * i);
        found |= (entry != 0) & code_matches(entry, want, varies);
    }
    return found;
}

#define TARGET
#define STEPS                                                  \
    ((struct bucket_steps){                                    \
        .scans = {.compare16 = compare16, .match16 = match16}, \
        .scale = scale64,                                      \
        .resolve = resolve_each,                               \
        .find = find,                                          \
    })
#include "bucket/bucket_kernel_template.h"

static const struct kernel bucket_scalar = BUCKET_KERNEL(CPU_SCALAR);

struct table_answer table_answer_of(const struct bucket_table *t,
                                    uint64_t hash) {
    const struct bucket_scale scale = scale_of(t, stage_of(t), hash);
    const struct bucket_ref at = locate(t, scale, hash);
    const uint8_t *const line = bucket_line(&at);
    const uint32_t stop = at.varies & 1; /* codes end in a stop bit */
    const bool may_be = may_be_spilled(line, t->width, at.want);
    return (struct table_answer){
        .bucket = at.index,
        .buckets = at.blocks,
        .slots =
            scan_bucket(line, t->width, at.want, at.varies, STEPS.scans).hits,
        .segment = segment_of(scale64(hash, scale.units)),
        .code = at.want >> stop,
        .bits = t->width - stop,
        .may_be_spilled = may_be,
        .is_spilled = may_be && has_spilled(t, &at, line),
    };
}

/* ---- Count, room, rate --------------------------------------------------- */

static uint32_t count(const uint8_t *body, const struct shape *shape,
                      uint64_t hash) {
    struct bucket_table t;
    table_of(&t, body, shape);
    return table_count(&t, hash);
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

uint64_t first_room(const struct shape *first) {
    const uint64_t blocks = first->blocks;
    const uint32_t width = width_of(first);
    return spare_bits(first)
               ? blocks * slots_of(width) + spill_lines(blocks) * SPILL_ENTRIES
               : (uint64_t)bucket_growing_room(blocks, width);
}

/* Is the first segment one that has spare bits? */
static bool has_spare_bits(const struct shape *first) {
    const uint64_t blocks = first->blocks, spare = first->spare;
    return spare > 0 && spare <= SPARE_BITS_MOST &&
           width_of(first) >= WIDTH_GROWING + spare &&
           blocks <= BLOCKS_SPARED && (blocks & (blocks - 1)) == 0 &&
           blocks << spare >= POSITIONS && blocks << spare <= BLOCKS_SPARED;
}

/* Of the keys in its bucket, each agrees with an absent key in all bits of the
 * code with odds 2^-width, and a little more, as a slot of 0 is stored as 1;
 * their number has a Poisson distribution. */
static double fpr(const struct shape *planned, double items) {
    const struct shape shape = doubled_shape(
        planned, has_spare_bits(planned) ? spare_bits(planned) : 0);
    const uint32_t width = width_of(&shape);
    const uint64_t blocks = shape.blocks / POSITIONS * POSITIONS;
    if (blocks == 0 || items > bucket_room(blocks, width)) return 1;
    const double odds = ldexp(1 + ldexp(4, -(int)width), -(int)width);
    return -expm1(-odds * items / (double)blocks);
}

static uint64_t counter_lines(const struct shape *shape) {
    return spill_lines(shape->blocks);
}

static bool is_shape(const struct shape *shape) {
    return width_of(shape) >= WIDTH_GROWING &&
           (shape->in_use <= shape->blocks || shape->spare <= SPARE_BITS_MOST);
}

/* Segment n of a table that begins with segment `first`. */
static bool is_segment(const struct shape *first, uint32_t number,
                       const struct shape *shape) {
    struct bucket_table t;
    table_of(&t, NULL, first);
    return first->spare == 0 && first->blocks >= POSITIONS &&
           shape->probes == first->probes &&
           segment_blocks(&t, number) == shape->blocks &&
           (number == 0 || shape->in_use <= shape->blocks);
}

static bool is_distinct_segment(const struct shape *first, uint32_t number,
                                const struct shape *shape) {
    return (number == 0 && has_spare_bits(first)) ||
           is_segment(first, number, shape);
}

/* Fewer keys than these: tables for more begin with room for all. */
enum { FEW_KEYS = 128 };

static bool begins_small(uint32_t probes, bool shared, uint64_t *capacity,
                         struct shape *shape) {
    const uint32_t width = probes + WIDTH_OF_ONE - 1;
    const struct shape one = {
        .blocks = 1,
        .probes = probes + (WIDTH_MOST - width),
        .spare = WIDTH_MOST - width,
    };
    if (*capacity >= FEW_KEYS || !has_spare_bits(&one)) return false;
    const struct shape last = doubled_shape(&one, spare_bits(&one));
    const uint64_t last_room = first_room(&last);
    if (*capacity > last_room) return false;
    const uint64_t room = shared ? last_room : first_room(&one);
    if (*capacity < room) *capacity = room;
    *shape = shared ? last : one;
    return true;
}

static struct shape shape_for(const struct shape *first, uint64_t keys) {
    struct shape shape = *first;
    while (spare_bits(&shape) && first_room(&shape) < keys)
        shape = doubled_shape(&shape, 1);
    return shape;
}

static const struct kernel *const kernels[] = {
#if ON_AVX512
    &bucket_avx512,
#endif
#if ON_X86
    &bucket_avx2,
#endif
#if BUCKET_ON_128
    &bucket_128,
#endif
    &bucket_scalar,
};

enum {
    CAN_TABLE = CALYX_CAN_ADD | CALYX_CAN_GROW | CALYX_CAN_SHARE |
                CALYX_CAN_GROW_IN_PLACE
};

static const struct counting copies = {.count = count};

static const struct segments bucket_segments = {
    .least_blocks = POSITIONS,
    .growing_probes = WIDTH_GROWING - WIDTH_OF_ONE + 1,
    .is_segment = is_segment,
};
static const struct segments distinct_segments = {
    .least_blocks = POSITIONS,
    .growing_probes = WIDTH_GROWING - WIDTH_OF_ONE + 1,
    .is_segment = is_distinct_segment,
    .begins_small = begins_small,
    .shape_for = shape_for,
};

extern const struct kind kind_fixed_bucket, kind_fixed_distinct;

/* What all kinds of table have. */
#define TABLE_OF_BUCKETS                                              \
    .is_table = true, .hash = "xxh3", .block_bits = 8 * BUCKET_BYTES, \
    .counter_bits = 8 * BUCKET_BYTES / SPILL_BUCKETS,                 \
    .counter_lines = counter_lines, .is_shape = is_shape,             \
    .most_blocks = UINT64_C(1) << 35,                                 \
    .most_probes = WIDTH_MOST - WIDTH_OF_ONE + 1, .probe_step = 1,    \
    .least_fpr = 1e-6, .fpr = fpr, .kernels = kernels,                \
    .atomic_kernels = kernels

const struct kind kind_bucket = {
    .name = "bucket",
    .code = 10,
    .can = CAN_TABLE | CALYX_CAN_REMOVE | CALYX_CAN_COUNT,
    .counting = &copies,
    .segments = &bucket_segments,
    .fixed = &kind_fixed_bucket,
    TABLE_OF_BUCKETS,
};

/* A key that is found is not added again. */
const struct kind kind_distinct = {
    .name = "distinct",
    .code = 11,
    .can = CAN_TABLE | CALYX_CAN_MERGE,
    .segments = &distinct_segments,
    .fixed = &kind_fixed_distinct,
    TABLE_OF_BUCKETS,
};
