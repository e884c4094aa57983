/*
 * The bucket kind, seen from its kernels and from growth: where a hash goes in
 * a table, and what is stored of it there. bucket.c explains both.
 */
#ifndef CALYX_BUCKET_H
#define CALYX_BUCKET_H

#include <stdbool.h>

#include "bucket/bucket_slots.h"
#include "kind/kind.h"
#include "kind/prefetch.h"

enum {
    POSITIONS = 4,      /* buckets of a group, at the start of a level      */
    SEGMENTS_MOST = 96, /* as many as a file has parts                      */
    SEGMENT_PLACES = 128,
    STRIPES = 64,     /* of versions                                      */
    COPIES_MOST = 15, /* of one code in a bucket: then it stays           */

    SPILL_BUCKETS = 16, /* that share a line of spilled entries             */
    SPILL_MORE = 3,     /* lines, and up to 7 for small segments            */
    SPILL_ENTRIES = 15, /* of 32 bits, in such a line                       */
    FEW_LINES = 32,     /* probes look at all of so few lines, in order     */
    PROBES_MOST = 256,  /* for an entry; with 24 bits a slot, 16            */
    SPILL_MOST = 48     /* entries that additions may spill from one bucket */
};

/*
 * How far from its bucket an entry may be spilled: as far as probes go; or less
 * in a table that grows. There moves go as far, and additions leave them room,
 * as a table with a group that cannot move is full for ever. Additions that
 * would have to go far let the table grow.
 */
enum spilling { SPILL_FAR, SPILL_HALF, SPILL_NEAR };

static const uint64_t MOVED_MASK = (UINT64_C(1) << 56) - 1;

/*
 * A table: the segments that it has grown to. `stage` has the number of the
 * stage in its high 8 bits and below them the number of groups that have moved
 * on to the next stage. One word, so that readers see both at once.
 */
struct bucket_table {
    uint64_t groups;      /* at level 0                                   */
    uint64_t base_blocks; /* buckets of segment 0: 4 a group, or up to 3 more */
    uint64_t stage;
    uint32_t width;
    enum spilling adds; /* how far an entry may go that is added          */
    bool shared; /* other threads read while one writes                   */
    uint32_t versions[STRIPES];     /* odd while entries move, if shared      */
    uint8_t *start[SEGMENT_PLACES]; /* of each position, by stage       */
    uint8_t *segment[SEGMENT_PLACES]; /* that it is in                    */
    uint8_t *spill[SEGMENT_PLACES];   /* lines for what it has spilled    */
};

/* A bucket, and what to look for in it. */
struct bucket_place {
    uint8_t *segment;
    uint64_t index, blocks; /* of the bucket; of the segment               */
    uint32_t want;          /* the code of a key, without its stop bit     */
    uint32_t varies;        /* all ones if codes end in a stop bit, else 0 */
};

static inline uint32_t width_of(const struct shape *shape) {
    return shape->probes + WIDTH_LEAST - 1;
}

static inline uint64_t stage_of(const struct bucket_table *t) {
    return __atomic_load_n(&t->stage, __ATOMIC_ACQUIRE);
}

static inline uint32_t stage_number(uint64_t stage) {
    return (uint32_t)(stage >> 56);
}

/* Buckets of a segment. Segment 1 + n comes with stage n. */
static inline uint64_t segment_blocks(const struct bucket_table *t,
                                      uint32_t number) {
    return number == 0 ? t->base_blocks : t->groups << (number - 1) / POSITIONS;
}

/*
 * Lines for spilled entries, behind the buckets. When a growing table is full,
 * 0.77 entries of each bucket are spilled, with a deviation of 1.7, and there
 * is room for 15 / 16. The lines beyond that are for 6 deviations of the sum,
 * which are most of it in a segment of a few hundred buckets.
 */
static inline uint64_t spill_lines(uint64_t blocks) {
    const uint64_t more = blocks / 32 < 7 ? blocks / 32 : 7;
    return (blocks + SPILL_BUCKETS - 1) / SPILL_BUCKETS + SPILL_MORE + more;
}

static inline uint8_t *segment_at(const struct bucket_table *t,
                                  uint32_t number) {
    return t
        ->start[(number == 0 ? 0 : number + POSITIONS - 1) % SEGMENT_PLACES];
}

/* Segment 0 has four positions, the others one each. */
static inline void set_segment(struct bucket_table *t, uint32_t number,
                               uint8_t *body) {
    const uint32_t at = number ? number + POSITIONS - 1 : 0;
    const uint64_t blocks = segment_blocks(t, number);
    for (uint32_t c = 0; c < (number ? 1 : POSITIONS); c++) {
        t->start[at + c] = body + c * t->groups * BUCKET_BYTES;
        t->segment[at + c] = body;
        t->spill[at + c] = body + blocks * BUCKET_BYTES;
    }
}

/* Where position c of group y at this level is: bucket.c says why. A branch on
 * c could not be foreseen: `old` is all ones, or 0. */
struct bucket_line {
    uint32_t place; /* in the lists of a table */
    uint64_t number;
};

ALWAYS_INLINE struct bucket_line find_line(uint32_t level, uint64_t y,
                                           uint32_t c) {
    const uint32_t even = (uint32_t)__builtin_ctzll(y | UINT64_C(1) << level);
    const uint32_t is_new = c / POSITIONS, old = is_new - 1;
    const uint32_t shift = (even + (even < level)) & old;
    const uint32_t back = level + is_new - (even & old);
    return (struct bucket_line){
        .place = (POSITIONS * back + c % POSITIONS) % SEGMENT_PLACES,
        .number = y >> shift,
    };
}

/* The same, with what spilled entries need. */
static inline void find_bucket(const struct bucket_table *t, uint32_t level,
                               uint64_t y, uint32_t c,
                               struct bucket_place *at) {
    const uint32_t even = (uint32_t)__builtin_ctzll(y | UINT64_C(1) << level);
    const uint32_t segment = c >= POSITIONS ? 1 + POSITIONS * level + c % 4
                             : even == level
                                 ? 0
                                 : 1 + POSITIONS * (level - 1 - even) + c;
    at->segment = segment_at(t, segment);
    at->blocks = segment_blocks(t, segment);
    const struct bucket_line line = find_line(level, y, c);
    at->index = line.number + (segment == 0 ? c * t->groups : 0);
}

/* The code of the bits behind the first two of a fraction. */
ALWAYS_INLINE uint32_t code_of(uint64_t fraction, uint32_t width,
                               uint32_t level) {
    const uint32_t bits = (uint32_t)(fraction << 2 >> (64 - width));
    return level ? bits & ~UINT32_C(1)
                 : bits | ((bits & slot_mask(width)) == 0);
}

/* Group, fraction and number of positions of a hash at a stage. */
struct bucket_address {
    uint64_t y, fraction;
    uint32_t level, positions;
};

ALWAYS_INLINE struct bucket_address address_of(const struct bucket_table *t,
                                               uint64_t stage, uint64_t hash) {
    const uint32_t number = stage_number(stage);
    const uint32_t last = number % POSITIONS == POSITIONS - 1;
    struct bucket_address a = {.level = number / POSITIONS};
    const uint64_t groups = t->groups << a.level;
    a.y = scale64(hash, groups);
    a.fraction = hash * groups;
    const uint32_t moved = a.y < (stage & MOVED_MASK), doubled = moved & last;
    a.positions = POSITIONS + number % POSITIONS + moved - POSITIONS * doubled;
    a.y = a.y << doubled | (a.fraction >> 63 & doubled);
    a.fraction <<= doubled;
    a.level += doubled;
    return a;
}

static inline uint32_t *version_of(const struct bucket_table *t,
                                   const struct bucket_address *a) {
    return (uint32_t *)&t->versions[a->y % STRIPES];
}

static inline uint32_t position_of(uint64_t fraction, uint32_t positions) {
    return (uint32_t)((fraction >> 32) * positions >> 32);
}

ALWAYS_INLINE struct bucket_place place_of(const struct bucket_table *t,
                                           uint64_t stage, uint64_t hash) {
    const struct bucket_address a = address_of(t, stage, hash);
    struct bucket_place at;
    find_bucket(t, a.level, a.y, position_of(a.fraction, a.positions), &at);
    at.want = code_of(a.fraction, t->width, a.level);
    at.varies = a.level ? UINT32_MAX : 0;
    return at;
}

/* The code to store of a key. */
static inline uint32_t new_code(const struct bucket_place *at) {
    return at->want | (at->varies & 1);
}

static inline uint8_t *bucket_line(const struct bucket_place *at) {
    return at->segment + at->index * BUCKET_BYTES;
}

/* A line, and what to look for in it. */
struct bucket_query {
    const uint8_t *line;
    uint32_t place, want, varies;
};

ALWAYS_INLINE struct bucket_query query_of(const struct bucket_table *t,
                                           uint64_t stage, uint64_t hash,
                                           uint32_t width) {
    const struct bucket_address a = address_of(t, stage, hash);
    const struct bucket_line at =
        find_line(a.level, a.y, position_of(a.fraction, a.positions));
    return (struct bucket_query){
        .line = t->start[at.place] + at.number * BUCKET_BYTES,
        .place = at.place,
        .want = code_of(a.fraction, width, a.level),
        .varies = a.level ? UINT32_MAX : 0,
    };
}

/* ---- bucket.c ------------------------------------------------------------ */

enum insertion { KEY_ADDED, KEY_AT_MOST, NO_ROOM };

/* The kernel of a table, with all its segments. */
struct table_kernel {
    bool (*has)(const struct bucket_table *t, uint64_t hash);
    size_t (*has_batch)(const struct bucket_table *t, struct batch batch,
                        bool *found);
    /* A key of which there are COPIES_MOST is not added again. */
    enum insertion (*add)(struct bucket_table *t, uint64_t hash, bool *fresh);
    /* Until a hash finds no room. Returns the number of those before it, and of
     * these that were added. No group may be moving from level 0 to 1. */
    size_t (*add_batch)(struct bucket_table *t, struct batch batch, bool *fresh,
                        size_t *added);
    enum removal (*remove)(struct bucket_table *t, uint64_t hash);
    uint32_t (*count)(const struct bucket_table *t, uint64_t hash);
};

extern const struct kernel bucket_avx2, bucket_avx512;

/* A table of one segment. */
void table_of(struct bucket_table *t, const uint8_t *body,
              const struct shape *shape);

/* Keys that `blocks` buckets hold without running out of room, except once in
 * 10^9 fillings. */
double bucket_room(uint64_t blocks, uint32_t width);
/* Keys that they hold in a table that grows, before it does. */
double bucket_growing_room(uint64_t blocks, uint32_t width);

/* The same line, that another thread may be writing to. */
void copy_line(uint8_t *to, const uint8_t *line);

/* Around a change that moves entries of a group: readers that may have seen
 * the middle of it look again. */
void begin_move(struct bucket_table *t, const struct bucket_address *a);
void end_move(struct bucket_table *t, const struct bucket_address *a);

/* ---- bucket_grow.c ------------------------------------------------------- */

/* Groups of a table at its present stage. When all have moved it ends. */
static inline uint64_t groups_now(const struct bucket_table *t,
                                  uint64_t stage) {
    return t->groups << stage_number(stage) / POSITIONS;
}

/* Move the next group to the next stage, whose segment is there. False if its
 * entries have no room; then nothing has changed. */
bool bucket_move_group(struct bucket_table *t);

/* Number of entries, and the rate that they come to. */
struct bucket_sums {
    uint64_t entries;
    double rate;
};
struct bucket_sums bucket_sum(const struct bucket_table *t, uint32_t segments);

#endif
