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
    STRIPES = 64,       /* of versions                                      */
    COPIES_MOST = 15,   /* of one code in a bucket: then it stays           */

    SPARE_BITS_MOST = WIDTH_MOST - WIDTH_GROWING,
    BLOCKS_SPARED = 1 << SPARE_BITS_MOST, /* at most, when all are spent    */

    SPILL_BUCKETS = 16, /* that share a line of spilled entries             */
    SPILL_MORE = 3,     /* lines, and up to 7 for small segments            */
    SPILL_ENTRIES = 15, /* of 32 bits, in such a line                       */
    FEW_LINES = 32,     /* probes look at all of this number, in order; of
                           more, this number of probes jump                 */
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

/* Places in the list of segments: see segment_index. */
enum {
    FIRST_PLACES = 12, /* of segment 0; each other segment has one */
    SEGMENT_PLACES = FIRST_PLACES + SEGMENTS_MOST - 1,
    NEWEST = 32 /* places of 8 levels */
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
    uint32_t halvings; /* of 4 buckets: 1 if the table has 2, 2 if it has 1 */
    uint32_t width;
    uint32_t most_copies; /* of a code: COPIES_MOST, or 1: distinct ones  */
    enum spilling adds;   /* how far an entry may go that is added          */
    bool shared; /* other threads read while one writes                   */
    uint32_t *versions; /* STRIPES, odd while entries move; NULL if unshared */
    /* By segment_index: where bucket 0 of the table would be, if all buckets
     * were in this segment. `first` until it grows. */
    uintptr_t *start;
    /* Number of segments, from the first on, that lie in a row: so their
     * buckets have one start. */
    uint32_t row_segments;
    /* By the number of a segment: its lines for spilled entries, if they do
     * not follow its buckets; else NULL. NULL if there is no such segment. */
    uint8_t **lines_of;
    uintptr_t first[FIRST_PLACES];
};

/* A bucket, and what to look for in it. */
struct bucket_ref {
    uint8_t *segment, *lines; /* buckets; lines for spilled entries        */
    uint64_t index, blocks;   /* of the bucket; of the segment               */
    uint64_t group;           /* of a key                                    */
    uint32_t want;            /* the code of a key, without its stop bit     */
    uint32_t varies;          /* all ones if codes end in a stop bit, else 0 */
};

static inline uint32_t width_of(const struct shape *shape) {
    return shape->probes + WIDTH_OF_ONE - 1;
}

/* Bits that the codes of a table can spare: as often it doubles as a whole,
 * while it has one segment. Only tables of distinct keys have some. */
static inline uint32_t spare_bits(const struct shape *first) {
    return (uint32_t)first->spare;
}

/* The shape that a first segment doubles to, n times. */
static inline struct shape doubled_shape(const struct shape *first,
                                         uint32_t n) {
    return (struct shape){
        .blocks = first->blocks << n,
        .probes = first->probes - n,
        .spare = first->spare - n,
    };
}

static inline uint64_t stage_of(const struct bucket_table *t) {
    return __atomic_load_n(&t->stage, __ATOMIC_ACQUIRE);
}

static inline uint32_t stage_number(uint64_t stage) {
    return (uint32_t)(stage >> 56);
}

/* Groups of a table at its present stage. When all have moved it ends. */
static inline uint64_t groups_now(const struct bucket_table *t,
                                  uint64_t stage) {
    return t->groups << stage_number(stage) / POSITIONS;
}

/* Groups that have not moved: the first ones. */
static inline uint64_t groups_left(const struct bucket_table *t,
                                   uint64_t stage) {
    return groups_now(t, stage) - (stage & MOVED_MASK);
}

/* ---- Segments ------------------------------------------------------------ */

/* Buckets of a segment. Segment 1 + n comes with stage n. */
static inline uint64_t segment_blocks(const struct bucket_table *t,
                                      uint32_t number) {
    return number == 0 ? t->base_blocks : t->groups << (number - 1) / POSITIONS;
}

/* Its first bucket, counting through the table, / groups. */
static inline uint64_t segment_begin(uint32_t number) {
    if (number == 0) return 0;
    return (uint64_t)(POSITIONS + (number - 1) % POSITIONS)
           << (number - 1) / POSITIONS;
}

/* Units of the segment that begins with this one, from POSITIONS on. */
static inline uint64_t segment_units(uint64_t unit) {
    return UINT64_C(1) << (61 - __builtin_clzll(unit));
}

/* The segment of a bucket, from its number / groups. Segments begin at 0, 4, 5,
 * 6, 7, 8, 10, 12, 14, 16, 20 and so on: at all numbers of 3 bits and some
 * zeros. */
static inline uint32_t segment_of(uint64_t unit) {
    if (unit < POSITIONS) return 0;
    const uint32_t level = 61 - (uint32_t)__builtin_clzll(unit);
    return 1 + POSITIONS * level + (uint32_t)(unit >> level) - POSITIONS;
}

/* The same as a place in a list, from the number of leading zeros and the 3
 * bits after them. Segment 0 has places 0, 4, 8 and 10, as 0, 1, 2 and 3 have
 * other bits; segment n has place n + 11. */
enum { MOST_ZEROS = 63 };
ALWAYS_INLINE uint32_t segment_index(uint64_t unit) {
    const uint32_t zeros = (uint32_t)__builtin_clzll(unit | 1);
    return 4 * (MOST_ZEROS - zeros) + (uint32_t)(unit << zeros >> 61);
}

/*
 * Lines for spilled entries, after the buckets. When a growing table is full,
 * 0.77 entries of each bucket are spilled, with a deviation of 1.7, and there
 * is room for 15 / 16. The lines beyond that are for 6 deviations of the sum,
 * which are most of it in a segment of a few hundred buckets. Less than 8
 * buckets have 2 lines: with 1, one in 30,000 tables for 100 keys has a group
 * that cannot move before it has 300; with 2, none in 2 million.
 */
static inline uint64_t spill_lines(uint64_t blocks) {
    if (blocks < SPILL_BUCKETS / 2) return 2;
    const uint64_t more = blocks / 32 < 7 ? blocks / 32 : 7;
    return (blocks + SPILL_BUCKETS - 1) / SPILL_BUCKETS + SPILL_MORE + more;
}

static inline bool is_in_row(const struct bucket_table *t, uint32_t number) {
    return number < t->row_segments;
}

/* Lines of a segment whose buckets begin here. */
static inline uint8_t *segment_lines(const struct bucket_table *t,
                                     uint32_t number, uint8_t *segment) {
    uint8_t *const apart = t->lines_of ? t->lines_of[number] : NULL;
    return apart ? apart : segment + segment_blocks(t, number) * BUCKET_BYTES;
}

static inline void set_segment(struct bucket_table *t, uint32_t number,
                               const uint8_t *body) {
    const uint64_t unit = segment_begin(number);
    const uintptr_t start =
        (uintptr_t)body - (uintptr_t)(unit * t->groups) * BUCKET_BYTES;
    t->start[segment_index(unit)] = start;
    for (uint64_t i = 1; number == 0 && i < POSITIONS; i++)
        t->start[segment_index(i)] = start;
}

ALWAYS_INLINE uint8_t *line_at(const struct bucket_table *t, uint64_t unit,
                               uint64_t bucket) {
    return (uint8_t *)(t->start[segment_index(unit)] +
                       (uintptr_t)bucket * BUCKET_BYTES);
}

/* Fill in where a bucket of the table is, from its number / groups and it. */
static inline void find_bucket(const struct bucket_table *t, uint64_t unit,
                               uint64_t bucket, struct bucket_ref *at) {
    const uint32_t number = segment_of(unit);
    at->index = bucket - segment_begin(number) * t->groups;
    at->segment = line_at(t, unit, bucket) - at->index * BUCKET_BYTES;
    at->blocks = segment_blocks(t, number);
    at->lines = segment_lines(t, number, at->segment);
}

/* ---- Addresses ----------------------------------------------------------- */

/* The numbers that hashes are scaled to at a stage. */
struct bucket_scale {
    uint64_t groups;
    uint64_t quarters; /* of groups: codes are the bits after it     */
    uint64_t buckets;  /* of all groups                              */
    uint64_t units;    /* buckets / groups at level 0                */
    uint32_t level, positions;
};

/* A table of less than 4 buckets has one group, at level 0. */
ALWAYS_INLINE struct bucket_scale scale_at(const struct bucket_table *t,
                                           uint32_t number) {
    const uint32_t level = number / POSITIONS;
    const uint32_t positions = POSITIONS + number % POSITIONS;
    const uint64_t groups = t->groups << level;
    return (struct bucket_scale){
        .groups = groups,
        .quarters = groups * POSITIONS >> t->halvings,
        .buckets = groups * positions >> t->halvings,
        .units = (uint64_t)positions << level,
        .level = level,
        .positions = positions,
    };
}

/* For a hash: its group may have moved on to the next stage. */
ALWAYS_INLINE struct bucket_scale scale_of(const struct bucket_table *t,
                                           uint64_t stage, uint64_t hash) {
    const bool moved =
        scale64(hash, groups_now(t, stage)) >= groups_left(t, stage);
    return scale_at(t, stage_number(stage) + moved);
}

/* The code of a key: the bits of its hash after the bits that choose the
 * group and a quarter of it. If codes vary, the stop bit is not there yet, and
 * its bit does not count. */
ALWAYS_INLINE uint32_t code_from(uint64_t rest, uint32_t width,
                                 uint32_t varies) {
    const uint32_t bits = (uint32_t)(rest >> (64 - width));
    if (varies) return bits;
    return bits | ((bits & slot_mask(width)) == 0);
}

ALWAYS_INLINE uint32_t code_of(uint64_t hash, struct bucket_scale scale,
                               uint32_t width, uint32_t varies) {
    return code_from(hash * scale.quarters, width, varies);
}

static inline uint32_t varies_at(const struct bucket_scale *scale) {
    return scale->level ? UINT32_MAX : 0;
}

ALWAYS_INLINE uint8_t *line_of_hash(const struct bucket_table *t, uint64_t hash,
                                    struct bucket_scale scale) {
    return line_at(t, scale64(hash, scale.units), scale64(hash, scale.buckets));
}

/* What leads to the lines of most hashes: the starts of the newest segments, by
 * segment_index less `place`. All but one in 256 hashes are there. */
struct newest_segments {
    uintptr_t start[NEWEST];
    uint64_t place, buckets, units;
};

static inline void copy_newest(const struct bucket_table *t,
                               const struct bucket_scale *scale,
                               struct newest_segments *to) {
    const uint64_t last = segment_index(scale->units - 1);
    to->place = (last | 3) - (NEWEST - 1);
    to->buckets = scale->buckets;
    to->units = scale->units;
    for (uint64_t i = 0; i < NEWEST; i++)
        to->start[i] = to->place + i <= last ? t->start[to->place + i] : 0;
}

/* NULL if it is in an older segment. */
static inline const uint8_t *line_in_newest(const struct newest_segments *of,
                                            uint64_t hash) {
    const uint64_t i = segment_index(scale64(hash, of->units)) - of->place;
    if (i >= NEWEST) return NULL;
    return (const uint8_t *)(of->start[i] +
                             (uintptr_t)scale64(hash, of->buckets) *
                                 BUCKET_BYTES);
}

/*
 * The starts of all segments, by a coarse scale on which each segment begins
 * with a unit: so a batch finds a line by two products and a load. Only the
 * oldest segments are too small for that scale. The units of these have 0; not
 * one in 32 hashes goes there.
 */
enum {
    COARSE_LEVELS = 5,
    COARSE_UNITS = 2 * POSITIONS << COARSE_LEVELS /* at most */
};
struct segment_starts {
    uint64_t units, buckets;
    uintptr_t start[COARSE_UNITS];
};

static inline void fill_starts(const struct bucket_table *t,
                               const struct bucket_scale *scale,
                               struct segment_starts *to) {
    const uint32_t shift =
        scale->level > COARSE_LEVELS ? scale->level - COARSE_LEVELS : 0;
    uint64_t unit = 0;
    to->units = scale->units >> shift;
    to->buckets = scale->buckets;
    for (; unit < POSITIONS; unit++)
        to->start[unit] = shift ? 0 : t->start[segment_index(0)];
    while (unit < to->units) {
        const uintptr_t start = t->start[segment_index(unit << shift)];
        const uint64_t end = unit + segment_units(unit);
        for (; unit < end; unit++) to->start[unit] = start;
    }
}

static inline struct bucket_ref locate(const struct bucket_table *t,
                                       struct bucket_scale scale,
                                       uint64_t hash) {
    struct bucket_ref at;
    find_bucket(t, scale64(hash, scale.units), scale64(hash, scale.buckets),
                &at);
    at.group = scale64(hash, scale.groups);
    at.varies = varies_at(&scale);
    at.want = code_of(hash, scale, t->width, at.varies);
    return at;
}

/* Of the group of a hash. */
static inline uint32_t *version_of(const struct bucket_table *t,
                                   uint64_t group) {
    return &t->versions[group % STRIPES];
}

/* The code to store of a key. */
static inline uint32_t new_code(const struct bucket_ref *at) {
    return at->want | (at->varies & 1);
}

static inline uint8_t *bucket_line(const struct bucket_ref *at) {
    return at->segment + at->index * BUCKET_BYTES;
}

/* ---- bucket.c ------------------------------------------------------------ */

enum insertion { KEY_ADDED, KEY_AT_MOST, NO_ROOM };

/* The kernel of a table, with all its segments. */
struct table_kernel {
    bool (*has)(const struct bucket_table *t, uint64_t hash);
    size_t (*has_batch)(const struct bucket_table *t, struct batch batch,
                        bool *found);
    /* A key of which there are most_copies is not added again. */
    enum insertion (*add)(struct bucket_table *t, uint64_t hash, bool *fresh);
    /* Until a hash finds no room. Returns the number of those before it, and of
     * these that were added. */
    size_t (*add_batch)(struct bucket_table *t, struct batch batch, bool *fresh,
                        size_t *added);
    enum removal (*remove)(struct bucket_table *t, uint64_t hash);
    uint32_t (*count)(const struct bucket_table *t, uint64_t hash);
};

/* Vectors of 128 bits. They would take a tenth of a small WebAssembly module.
 */
#if ON_NEON || (ON_SIMD128 && !defined(__OPTIMIZE_SIZE__))
#define BUCKET_ON_128 1
#endif

extern const struct kernel bucket_avx2, bucket_avx512, bucket_128;

/* A table of one segment. */
void table_of(struct bucket_table *t, const uint8_t *body,
              const struct shape *shape);

/* Keys that `blocks` buckets hold without running out of room, except once in
 * 10^9 fillings. */
double bucket_room(uint64_t blocks, uint32_t width);
/* Keys that they hold in a table that grows, before it does. */
double bucket_growing_room(uint64_t blocks, uint32_t width);
/* Keys that the first segment of such a table holds before it grows: with spare
 * bits, as many entries as it has room for. */
uint64_t first_room(const struct shape *first);

/* What a lookup finds: slots of the bucket that match the code. If none does,
 * and the bucket has spilled codes of its class, an entry may match. */
struct table_answer {
    uint64_t bucket, buckets; /* the number, of all of the segment */
    uint64_t slots;
    uint32_t segment, code, bits;
    bool may_be_spilled, is_spilled;
};
struct table_answer table_answer_of(const struct bucket_table *t,
                                    uint64_t hash);

/* The same line, that another thread may be writing to. */
void copy_line(uint8_t *to, const uint8_t *line);

/* Around a change that moves entries of a group: readers that may have seen
 * the middle of it look again. */
void begin_move(struct bucket_table *t, uint64_t group);
void end_move(struct bucket_table *t, uint64_t group);

/* ---- bucket_grow.c ------------------------------------------------------- */

/* Move the next group to the next stage, whose segment is there. */
void bucket_move_group(struct bucket_table *t);

/* Let the shortest of the entries that match a key take the place of all of
 * them and be permanent; or COPIES_MOST of it, if another one has the permanent
 * slot. False if there is no room for these; then nothing has changed. */
bool bucket_make_permanent(struct bucket_table *t, const struct bucket_ref *at);

/* Make room in the bucket of a hash: the code that has most copies there
 * becomes permanent. False if none has two, or it cannot. */
bool bucket_relieve(struct bucket_table *t, uint64_t hash);

/* Let the bucket of a hash answer "yes" for all keys. Returns the lowest hash
 * of the next bucket; 0 if it is the last. */
uint64_t bucket_saturate(struct bucket_table *t, uint64_t hash);
/* The buckets of all hashes from `low` to `high`. */
void bucket_saturate_range(struct bucket_table *t, uint64_t low, uint64_t high);

/* Number of entries and of saturated buckets, and the rate that they come to.
 */
struct bucket_sums {
    uint64_t entries, saturated;
    double rate;
};
struct bucket_sums bucket_sum(const struct bucket_table *t, uint32_t segments);

/* ---- bucket_merge.c ------------------------------------------------------ */

/* All hashes that begin alike: what an entry knows of the hash of its key. */
struct hash_prefix {
    uint64_t hash; /* the lowest */
    uint32_t bits; /* that are known: see known_bits in bucket_merge.c */
};

enum {
    BUCKET_PREFIXES = 1024, /* that the entries of a bucket make, at most */
    PREFIXES_MOST = 2 * BUCKET_PREFIXES
};
struct prefix_list {
    uint32_t n;
    struct hash_prefix prefix[PREFIXES_MOST];
};

/* Append the entries of the bucket of a hash. *next is set to the lowest hash
 * of the next bucket; 0 if it is the last. A saturated bucket has none; a
 * damaged one has entries that no table makes. */
enum listing { BUCKET_LISTED, BUCKET_SATURATED, BUCKET_DAMAGED };
enum listing bucket_list(const struct bucket_table *t, uint64_t hash,
                         struct prefix_list *to, uint64_t *next);

/* Would any key that begins so get the same code, in the same bucket? Then add
 * it as a hash; else as a prefix, to a table of distinct codes. */
bool bucket_is_whole(const struct bucket_table *t,
                     const struct hash_prefix *prefix);
enum insertion bucket_add_prefix(struct bucket_table *t,
                                 const struct hash_prefix *prefix);
/* Saturate all buckets that it may belong to. */
void bucket_saturate_prefix(struct bucket_table *t,
                            const struct hash_prefix *prefix);

#endif
