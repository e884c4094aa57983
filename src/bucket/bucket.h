/*
 * The bucket kind, seen from its kernels and from growth: where a hash goes in
 * a table, and what is stored of it there. bucket.c explains both.
 */
#ifndef CALYX_BUCKET_H
#define CALYX_BUCKET_H

#include <stdbool.h>

#include "base/bits.h"
#include "kind/kind.h"
#include "kind/prefetch.h"

enum {
    BUCKET_BYTES = 64,
    WIDTH_LEAST = 8, /* bits of a slot; a shape's probes are 1 at this */
    WIDTH_MOST = 24,
    POSITIONS = 4,      /* buckets of a group, at the start of a level      */
    SEGMENTS_MOST = 96, /* as many as a file has parts                      */
    SEGMENT_PLACES = 128,
    STRIPES = 64,     /* of versions                                      */
    COPIES_MOST = 15, /* of one code in a bucket: then it stays           */
    SHORT_BITS = 2,   /* of a code: then it stays                         */

    SPILL_BUCKETS = 16, /* that share a line of spilled entries             */
    SPILL_MORE = 3,     /* lines, so that small segments have enough        */
    SPILL_ENTRIES = 15, /* of 32 bits, in such a line                       */
    PROBES_MOST = 32,   /* for an entry; with 24 bits a slot, 16            */
    SPILL_MOST = 48     /* entries that additions may spill from one bucket */
};

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
    bool shared; /* other threads read while one writes                   */
    uint32_t versions[STRIPES];     /* odd while entries move, if shared      */
    uint8_t *start[SEGMENT_PLACES]; /* of each position, by stage       */
};

/* A bucket, and what to look for in it. */
struct bucket_place {
    uint8_t *segment;
    uint64_t index, blocks; /* of the bucket; of the segment               */
    uint32_t want;          /* the code of a key, without its stop bit     */
    uint32_t varies;        /* all ones if codes end in a stop bit, else 0 */
};

static inline uint32_t slots_of(uint32_t width) {
    return 8 * BUCKET_BYTES / width;
}

static inline uint32_t width_of(const struct shape *shape) {
    return shape->probes + WIDTH_LEAST - 1;
}

static inline uint32_t code_mask(uint32_t width) {
    return (UINT32_C(1) << width) - 1;
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

static inline uint8_t *segment_at(const struct bucket_table *t,
                                  uint32_t number) {
    return t
        ->start[(number == 0 ? 0 : number + POSITIONS - 1) % SEGMENT_PLACES];
}

static inline void set_segment(struct bucket_table *t, uint32_t number,
                               uint8_t *body) {
    if (number > 0) {
        t->start[number + POSITIONS - 1] = body;
        return;
    }
    for (uint32_t c = 0; c < POSITIONS; c++)
        t->start[c] = body + c * t->groups * BUCKET_BYTES;
}

/* Position c of group y at this level: bucket.c says why it is there. Segment 0
 * has four positions, the others one each. No branches: none could be foreseen.
 */
ALWAYS_INLINE uint8_t *find_line(const struct bucket_table *t, uint32_t level,
                                 uint64_t y, uint32_t c) {
    const uint32_t even = (uint32_t)__builtin_ctzll(y | UINT64_C(1) << level);
    const uint32_t shift = c >= POSITIONS ? 0 : even + (even < level);
    const uint32_t back = c >= POSITIONS ? level + 1 : level - even;
    const uint32_t at = POSITIONS * back + c % POSITIONS;
    return t->start[at % SEGMENT_PLACES] + (y >> shift) * BUCKET_BYTES;
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
    at->index =
        (uint64_t)(find_line(t, level, y, c) - at->segment) / BUCKET_BYTES;
}

/* The code of the bits behind the first two of a fraction. */
ALWAYS_INLINE uint32_t code_of(uint64_t fraction, uint32_t width,
                               uint32_t level) {
    const uint32_t bits = (uint32_t)(fraction << 2 >> (64 - width));
    return level ? bits & ~UINT32_C(1) : bits | (bits == 0);
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

/* Does a code that is stored, not 0, agree with the bits wanted? Those above
 * its stop bit count; all of them, if codes have none. */
ALWAYS_INLINE bool code_matches(uint32_t code, uint32_t want, uint32_t varies) {
    const uint32_t ignored = (code ^ (code - 1)) & varies;
    return ((code ^ want) & ~ignored) == 0;
}

/* Does the first of two codes that match the same key have more bits? */
static inline bool is_longer(uint32_t code, uint32_t than) {
    return (code & -code) < (than & -than);
}

/* Has a code with a stop bit so few bits left that it stays for good? */
static inline bool is_short(uint32_t code, uint32_t width, uint32_t varies) {
    return varies && (code & (code_mask(width) >> (SHORT_BITS + 1))) == 0;
}

#define UNROLL _Pragma("GCC unroll 16")

/* ---- Slots --------------------------------------------------------------- */

static inline uint8_t *bucket_line(const struct bucket_place *at) {
    return at->segment + at->index * BUCKET_BYTES;
}

/*
 * A slot is stored in two ways. Its high bits are a lane: 8 bits, or 16 if the
 * width is 16 or more; lane i is at the bits from i * lane bits on. The others
 * are one bit in each of width - lane bits planes, which follow the lanes, the
 * plane of the lowest bit first; each has one bit for each slot. So vectors
 * compare lanes without unpacking them, and words compare planes.
 */
static inline uint32_t lane_bits(uint32_t width) {
    return width < 16 ? 8 : 16;
}

static inline uint32_t planes_of(uint32_t width) {
    return width - lane_bits(width);
}

static inline uint64_t get_plane(const uint8_t *line, uint32_t j,
                                 uint32_t width) {
    const uint32_t bit = slots_of(width) * (lane_bits(width) + j);
    const uint32_t byte = bit / 8 < 56 ? bit / 8 : 56;
    return load64(line + byte) >> (bit - 8 * byte);
}

static inline uint32_t get_lane(const uint8_t *line, uint32_t i,
                                uint32_t width) {
    return lane_bits(width) == 8 ? line[i] : load16(line + 2 * i);
}

/* Is the last slot in use? Mostly the lane says so. */
static inline bool is_bucket_full(const uint8_t *line, uint32_t width) {
    const uint32_t last = slots_of(width) - 1;
    uint64_t used = get_lane(line, last, width);
    for (uint32_t j = 0; !used && j < planes_of(width); j++)
        used = get_plane(line, j, width) >> last & 1;
    return used != 0;
}

static inline uint32_t get_slot(const uint8_t *line, uint32_t i,
                                uint32_t width) {
    uint32_t code = get_lane(line, i, width) << planes_of(width);
    for (uint32_t j = 0; j < planes_of(width); j++)
        code |= (uint32_t)(get_plane(line, j, width) >> i & 1) << j;
    return code;
}

/* A line, and what to look for in it. */
struct bucket_query {
    const uint8_t *line;
    uint32_t want, varies;
};

ALWAYS_INLINE struct bucket_query query_of(const struct bucket_table *t,
                                           uint64_t stage, uint64_t hash,
                                           uint32_t width) {
    const struct bucket_address a = address_of(t, stage, hash);
    return (struct bucket_query){
        .line =
            find_line(t, a.level, a.y, position_of(a.fraction, a.positions)),
        .want = code_of(a.fraction, width, a.level),
        .varies = a.level ? UINT32_MAX : 0,
    };
}

/* What a scan of a bucket finds: a bit for each slot that matches, and the
 * number of slots in use; they are the first ones. */
struct bucket_scan {
    uint64_t hits;
    uint32_t used;
};

/* What a scan finds in the lanes: a bit for each slot. */
struct lane_masks {
    uint64_t equal; /* to that of the key                               */
    uint64_t begun; /* the same, as far as the stop bit, if it is there */
    uint64_t zero;
};

/* The lanes and the planes together. Going up through the planes, those bits
 * of a slot count that are above its stop bit; codes without one all count. */
ALWAYS_INLINE struct bucket_scan scan_planes(const uint8_t *line,
                                             uint32_t width, uint32_t want,
                                             uint32_t varies,
                                             struct lane_masks lanes) {
    const uint64_t all = UINT64_MAX >> (64 - slots_of(width));
    uint64_t counts = varies ? 0 : all, used = ~lanes.zero, differ = 0;
    UNROLL
    for (uint32_t j = 0; j < planes_of(width); j++) {
        const uint64_t plane = get_plane(line, j, width);
        differ |= counts & (plane ^ -(uint64_t)(want >> j & 1));
        counts |= plane & all;
        used |= plane;
    }
    const uint64_t agree = (counts & lanes.equal) | (~counts & lanes.begun);
    used &= all;
    return (struct bucket_scan){
        .hits = agree & ~differ & (varies ? used : all),
        .used = used ? 64 - (uint32_t)__builtin_clzll(used) : 0,
    };
}

typedef struct bucket_scan scan_bucket(const uint8_t *line, uint32_t width,
                                       uint32_t want, uint32_t varies);

/* ---- bucket.c ------------------------------------------------------------ */

enum insertion { KEY_ADDED, KEY_AT_MOST, NO_ROOM };

/* The kernel of a table, with all its segments. */
struct table_kernel {
    bool (*has)(const struct bucket_table *t, uint64_t hash);
    size_t (*has_batch)(const struct bucket_table *t, struct batch batch,
                        bool *found);
    /* A key of which there are COPIES_MOST is not added again. */
    enum insertion (*add)(struct bucket_table *t, uint64_t hash, bool *fresh);
    enum removal (*remove)(struct bucket_table *t, uint64_t hash);
    uint32_t (*count)(const struct bucket_table *t, uint64_t hash);
};

extern const struct table_kernel bucket_table_scalar, bucket_table_avx2;
extern const struct kernel bucket_avx2;

/* A table of one segment. */
void table_of(struct bucket_table *t, const uint8_t *body,
              const struct shape *shape);

/* Keys that `blocks` buckets hold without running out of room, except once in
 * 10^9 fillings. */
double bucket_room(uint64_t blocks, uint32_t width);

void put_slot(uint8_t *line, uint32_t i, uint32_t width, uint32_t code);
/* The same line, that another thread may be writing to. */
void copy_line(uint8_t *to, const uint8_t *line);

/* Around a change that moves entries of a group: readers that may have seen
 * the middle of it look again. */
void begin_move(struct bucket_table *t, const struct bucket_address *a);
void end_move(struct bucket_table *t, const struct bucket_address *a);

/* Lines for spilled entries, behind the buckets. */
static inline uint64_t spill_lines(uint64_t blocks) {
    return (blocks + SPILL_BUCKETS - 1) / SPILL_BUCKETS + SPILL_MORE;
}

static inline const uint8_t *spill_line_of(const struct bucket_place *at) {
    return at->segment +
           (at->blocks + at->index / SPILL_BUCKETS) * BUCKET_BYTES;
}

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
