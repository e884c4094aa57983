/*
 * One bucket: a line of 64 bytes, with slots for codes.
 *
 *     [ lanes | planes | low slots | classes ]
 *
 * A code has `width` bits. Its first bit is not stored: codes that begin with 0
 * are in the first slots, codes that begin with 1 in the last ones, empty slots
 * between them. A byte has the number of the first ones. That saves one bit for
 * each slot, 31 of 512, and leaves room for the classes.
 */
#ifndef CALYX_BUCKET_SLOTS_H
#define CALYX_BUCKET_SLOTS_H

#include "base/bits.h"
#include "base/compiler.h"

enum {
    WIDTH_LEAST = 9, /* bits of a code; a shape's probes are 1 at this   */
    WIDTH_MOST = 24,
    WIDTH_FIXED = 12, /* of filters at 1 %: these have their own kernels  */
    WIDTH_GROWING = 17,
    BUCKET_BYTES = 64,
    LOW_AT = 62,     /* byte: number of codes that begin with 0          */
    CLASSES_AT = 63, /* byte: classes of the entries that were spilled   */
    CLASSES = 8,
    SHORT_BITS = 2 /* of a code: then it stays                         */
};

/* ---- Codes --------------------------------------------------------------- */

static inline uint32_t code_mask(uint32_t width) {
    return (UINT32_C(1) << width) - 1;
}

static inline uint32_t slot_mask(uint32_t width) {
    return code_mask(width - 1);
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

/* ---- Slots --------------------------------------------------------------- */

static inline uint32_t slots_of(uint32_t width) {
    return 8 * LOW_AT / (width - 1);
}

static inline uint64_t all_slots(uint32_t width) {
    return UINT64_MAX >> (64 - slots_of(width));
}

/*
 * A slot is stored in two ways. Its high bits are a lane: 8 bits, or 16 if the
 * slot has 16 or more; lane i is at the bits from i * lane bits on. The others
 * are one bit in each of some planes, which follow the lanes, the plane of the
 * lowest bit first; each has one bit for each slot. So vectors compare lanes
 * without unpacking them, and words compare planes.
 */
static inline uint32_t lane_bits(uint32_t width) {
    return width - 1 < 16 ? 8 : 16;
}

static inline uint32_t planes_of(uint32_t width) {
    return width - 1 - lane_bits(width);
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

static inline uint32_t get_slot(const uint8_t *line, uint32_t i,
                                uint32_t width) {
    uint32_t slot = get_lane(line, i, width) << planes_of(width);
    for (uint32_t j = 0; j < planes_of(width); j++)
        slot |= (uint32_t)(get_plane(line, j, width) >> i & 1) << j;
    return slot;
}

/* Number of slots of codes that begin with 0: the first ones. Those of codes
 * that begin with 1 are the last ones. Empty slots, which are 0, are between.
 * A byte from a damaged file may be anything. */
static inline uint32_t low_slots(const uint8_t *line, uint32_t width) {
    const uint32_t slots = slots_of(width);
    return line[LOW_AT] < slots ? line[LOW_AT] : slots;
}

/* The code in a slot, 0 if there is none. */
static inline uint32_t get_code(const uint8_t *line, uint32_t i,
                                uint32_t width) {
    const uint32_t slot = get_slot(line, i, width);
    const bool is_high = slot != 0 && i >= low_slots(line, width);
    return slot | (uint32_t)is_high << (width - 1);
}

/* The last two bytes as one number. */
ALWAYS_INLINE uint32_t get_header(const uint8_t *line) {
    return load16(line + LOW_AT);
}

/* Slots of codes that begin with 0, or if `flip` is all slots, with 1; empty
 * ones may be among them. */
ALWAYS_INLINE uint64_t slots_like(uint32_t header, uint64_t flip) {
    return ((UINT64_C(1) << header % 64) - 1) ^ flip;
}

ALWAYS_INLINE uint64_t flip_of(uint32_t code, uint32_t width) {
    return -(uint64_t)(code >> (width - 1) & 1) & all_slots(width);
}

/*
 * Spilled entries have 8 classes, by the fourth to sixth bit of the code: each
 * is a bit of a byte in the bucket that they come from. Only lookups of a class
 * that is there go on to look for them. A code that has run out of these bits
 * has all classes.
 */
ALWAYS_INLINE uint32_t class_of(uint32_t code, uint32_t width) {
    return code >> (width - 6) & (CLASSES - 1);
}

static inline uint32_t classes_of(uint32_t code, uint32_t width,
                                  uint32_t varies) {
    if (varies && (code & (code_mask(width) >> 6)) == 0) return 0xFF;
    return UINT32_C(1) << class_of(code, width);
}

/* The bit of its class in the header. */
ALWAYS_INLINE uint32_t class_bit(uint32_t code, uint32_t width) {
    return 8 * (CLASSES_AT - LOW_AT) + class_of(code, width);
}

ALWAYS_INLINE bool may_be_spilled(const uint8_t *line, uint32_t width,
                                  uint32_t code) {
    return get_header(line) >> class_bit(code, width) & 1;
}

/* ---- Changes ------------------------------------------------------------- */

/* Readers may be reading the line. No lane, and no bit of a plane, is in two
 * words. */
ALWAYS_INLINE void put_slot(uint8_t *line, uint32_t i, uint32_t width,
                            uint32_t slot) {
    const uint32_t lane = slot >> planes_of(width);
    for (uint32_t j = 0; j < planes_of(width); j++) {
        const uint32_t bit = slots_of(width) * (lane_bits(width) + j) + i;
        uint64_t *const word = (uint64_t *)(line + bit / 64 * 8);
        const uint64_t mask = UINT64_C(1) << bit % 64;
        const uint64_t set = (uint64_t)(slot >> j & 1) << bit % 64;
        const uint64_t old = little64(__atomic_load_n(word, __ATOMIC_RELAXED));
        __atomic_store_n(word, little64((old & ~mask) | set), __ATOMIC_RELEASE);
    }
    if (lane_bits(width) == 8)
        __atomic_store_n(line + i, (uint8_t)lane, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint16_t *)(line + 2 * i), little16((uint16_t)lane),
                         __ATOMIC_RELEASE);
}

static inline void put_header(uint8_t *line, uint32_t at, uint32_t byte) {
    __atomic_store_n(line + at, (uint8_t)byte, __ATOMIC_RELEASE);
}

/* Store a code in a line where these slots are in use, at least one not. */
ALWAYS_INLINE void put_code(uint8_t *line, uint32_t width, uint64_t used,
                            uint32_t code) {
    const uint64_t empty = ~used & all_slots(width);
    const bool is_high = code >> (width - 1);
    const uint32_t i = is_high ? 63 - (uint32_t)__builtin_clzll(empty)
                               : (uint32_t)__builtin_ctzll(empty);
    put_slot(line, i, width, code & slot_mask(width));
    if (!is_high) put_header(line, LOW_AT, i + 1);
}

/* Write a line of `n` codes, as many as it has slots or fewer. Nobody else
 * reads it yet. */
static inline void fill_line(uint8_t *line, uint32_t width,
                             const uint32_t *codes, uint32_t n) {
    const uint32_t planes = planes_of(width), slots = slots_of(width);
    uint64_t plane[WIDTH_MOST] = {0};
    uint32_t low = 0, high = slots;
    memset(line, 0, BUCKET_BYTES);
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t slot = codes[k] & slot_mask(width);
        const uint32_t i = codes[k] >> (width - 1) ? --high : low++;
        if (lane_bits(width) == 8)
            line[i] = (uint8_t)(slot >> planes);
        else
            store16(line + 2 * i, slot >> planes);
        for (uint32_t j = 0; j < planes; j++)
            plane[j] |= (uint64_t)(slot >> j & 1) << i;
    }
    for (uint32_t j = 0; j < planes; j++) {
        const uint32_t bit = slots * (lane_bits(width) + j);
        const uint32_t byte = bit / 8 < 56 ? bit / 8 : 56;
        store64(line + byte,
                load64(line + byte) | plane[j] << (bit - 8 * byte));
    }
    line[LOW_AT] = (uint8_t)low;
}

/* Take the code in slot i out of a line where these slots are in use. Another
 * one of the same half takes its place. */
static inline void take_code(uint8_t *line, uint32_t width, uint64_t used,
                             uint32_t i) {
    const uint32_t low = low_slots(line, width);
    const uint32_t from =
        i < low ? low - 1 : (uint32_t)__builtin_ctzll(used >> low) + low;
    if (from != i) put_slot(line, i, width, get_slot(line, from, width));
    put_slot(line, from, width, 0);
    if (i < low) put_header(line, LOW_AT, low - 1);
}

/* ---- Scans --------------------------------------------------------------- */

#define UNROLL _Pragma("GCC unroll 16")

/* What a scan of a bucket finds: a bit for each slot that matches but for the
 * first bit of the code, and for each slot in use. Bits behind those of slots
 * may be set among the hits. */
struct bucket_scan {
    uint64_t hits, used;
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
    const uint64_t all = all_slots(width);
    uint64_t counts = varies ? 0 : all, used = ~lanes.zero, differ = 0;
    UNROLL
    for (uint32_t j = 0; j < planes_of(width); j++) {
        const uint64_t plane = get_plane(line, j, width);
        differ |= counts & (plane ^ -(uint64_t)(want >> j & 1));
        counts |= plane & all;
        used |= plane;
    }
    const uint64_t agree = (counts & lanes.equal) | (~counts & lanes.begun);
    return (struct bucket_scan){
        .hits = agree & ~differ & (varies ? used : UINT64_MAX),
        .used = used & all,
    };
}

typedef struct bucket_scan scan_bucket(const uint8_t *line, uint32_t width,
                                       uint32_t want, uint32_t varies);

/* The same, and the first bit of the code matches. */
ALWAYS_INLINE struct bucket_scan scan_like(const uint8_t *line, uint32_t width,
                                           uint32_t want, uint32_t varies,
                                           scan_bucket *scan) {
    struct bucket_scan found = scan(line, width, want, varies);
    found.hits &=
        slots_like(get_header(line), flip_of(want, width)) & all_slots(width);
    return found;
}

#endif
