/*
 * One bucket: a line of 64 bytes, with slots for codes of `width` bits.
 *
 *     [ lanes | planes | low | classes ]
 *
 * The first bit of a code is not stored, which leaves room for more slots:
 * codes that begin with 0 are in the first slots, codes that begin with 1 in
 * the last ones, empty slots between them. A byte has the number of the first
 * ones, and a byte the classes of the codes that were spilled. The first and
 * the last slot may be permanent: one of them stands for 15 copies of its code,
 * which no removal takes away. Codes may have a stop bit, their lowest 1, and
 * then only the bits above it count.
 *
 * A bucket that more keys went to than it holds is saturated: all slots are
 * empty, the last two bytes are 0xFF, and every lookup answers "yes". As all
 * classes count as spilled, a lookup notices that only where it looks for
 * spilled entries.
 *
 * A slot is stored in two ways. Its high 16 bits are a lane. The others are one
 * bit in each of some planes, which follow the lanes, the plane of the lowest
 * bit first; each has one bit for each slot. So vectors compare lanes without
 * unpacking them, and words compare planes.
 */
#ifndef CALYX_BUCKET_SLOTS_H
#define CALYX_BUCKET_SLOTS_H

#include <string.h>

#include "base/bits.h"
#include "base/compiler.h"

enum {
    WIDTH_OF_ONE = 9, /* bits of a code: a shape's probes are 1 at this   */
    WIDTH_MOST = 24,
    WIDTH_GROWING = 17, /* at least; of filters at 1 %, with its own loops  */
    BUCKET_BYTES = 64,
    LANE_BITS = 16,
    SPILLED_BIT = 7,
    LOW_AT = 62,   /* byte: number of codes that begin with 0          */
    LOW_MASK = 63, /* of that byte                                     */
    PERMANENT_FIRST = 0x40, /* in that byte, too                         */
    PERMANENT_LAST = 0x80,
    CLASSES_AT = 63, /* byte: classes of the entries that were spilled   */
    LAST_AT = 60,    /* the word of 32 bits with both, in its high half   */
    CLASSES = 8,
    ALL_CLASSES = 0xFF,
    SHORT_BITS = 2 /* of a code: then it stays                         */
};

/* ---- Codes --------------------------------------------------------------- */

static inline uint32_t code_mask(uint32_t width) {
    return (UINT32_C(1) << width) - 1;
}

/* A code without its first bit, which says where in the line its slot is. */
ALWAYS_INLINE uint32_t slot_mask(uint32_t width) {
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

/* Codes that match one key are equal if they have one length: so copies of each
 * are counted by their stop bits. */
struct copies {
    uint32_t of[WIDTH_MOST];
};

static inline uint32_t *copies_of(struct copies *copies, uint32_t code,
                                  uint32_t varies) {
    const uint32_t stop = code ? (uint32_t)__builtin_ctz(code) : 0;
    return &copies->of[varies ? stop : 0];
}

static inline void count_copy(struct copies *copies, uint32_t code,
                              uint32_t varies) {
    ++*copies_of(copies, code, varies);
}

/* ---- Slots --------------------------------------------------------------- */

ALWAYS_INLINE uint32_t slots_of(uint32_t width) {
    return 8 * LOW_AT / (width - 1);
}

ALWAYS_INLINE uint64_t all_slots(uint32_t width) {
    return UINT64_MAX >> (64 - slots_of(width));
}

ALWAYS_INLINE uint32_t planes_of(uint32_t width) {
    return width - 1 - LANE_BITS;
}

ALWAYS_INLINE uint32_t lane_of(uint32_t code, uint32_t width) {
    return (code & slot_mask(width)) >> planes_of(width);
}

/* Where a plane is in a line: its first bit is bit `shift` of the word at this
 * byte, which has all of it. */
struct plane_place {
    uint32_t byte, shift;
};

ALWAYS_INLINE struct plane_place plane_at(uint32_t j, uint32_t width) {
    const uint32_t bit = slots_of(width) * (LANE_BITS + j);
    const uint32_t byte = bit / 8 < 56 ? bit / 8 : 56;
    return (struct plane_place){byte, bit - 8 * byte};
}

ALWAYS_INLINE uint64_t get_plane(const uint8_t *line, uint32_t j,
                                 uint32_t width) {
    const struct plane_place at = plane_at(j, width);
    return load64(line + at.byte) >> at.shift;
}

static inline void put_plane(uint8_t *line, uint32_t j, uint32_t width,
                             uint64_t plane) {
    const struct plane_place at = plane_at(j, width);
    const uint64_t mask = all_slots(width) << at.shift;
    store64(line + at.byte,
            (load64(line + at.byte) & ~mask) | (plane << at.shift & mask));
}

static inline uint32_t get_slot(const uint8_t *line, uint32_t i,
                                uint32_t width) {
    uint32_t slot = (uint32_t)load16(line + 2 * i) << planes_of(width);
    for (uint32_t j = 0; j < planes_of(width); j++)
        slot |= (uint32_t)(get_plane(line, j, width) >> i & 1) << j;
    return slot;
}

/* ---- Lines -------------------------------------------------------------- */

/* Number of slots of codes that begin with 0. A byte from a damaged file may be
 * anything. */
static inline uint32_t low_slots(const uint8_t *line, uint32_t width) {
    const uint32_t slots = slots_of(width), low = line[LOW_AT] & LOW_MASK;
    return low < slots ? low : slots;
}

/* The bit that says that the half of a code has a permanent one. */
static inline uint32_t permanent_bit(uint32_t code, uint32_t width) {
    return code >> (width - 1) & 1 ? PERMANENT_LAST : PERMANENT_FIRST;
}

static inline bool has_permanent(const uint8_t *line, uint32_t width,
                                 uint32_t code) {
    return line[LOW_AT] & permanent_bit(code, width);
}

/* Permanent slots. In a damaged file they may be empty. */
static inline uint64_t permanent_slots(const uint8_t *line, uint32_t width) {
    const uint64_t first = (line[LOW_AT] & PERMANENT_FIRST) != 0;
    const uint64_t last = (line[LOW_AT] & PERMANENT_LAST) != 0;
    return first | last << (slots_of(width) - 1);
}

ALWAYS_INLINE uint64_t slots_below(uint32_t slot) {
    return (UINT64_C(1) << slot) - 1;
}

/* All ones if a code begins with 1, else 0. */
ALWAYS_INLINE uint64_t flip_of(uint32_t code, uint32_t width) {
    return -(uint64_t)(code >> (width - 1) & 1);
}

/* Slots of codes that begin as this one does; empty slots may be among them,
 * and bits after the last slot. */
ALWAYS_INLINE uint64_t slots_like(const uint8_t *line, uint32_t code,
                                  uint32_t width) {
    return slots_below(line[LOW_AT] & LOW_MASK) ^ flip_of(code, width);
}

/* Readers may be reading the line. No lane, and no bit of a plane, is in two
 * words. */
ALWAYS_INLINE void put_slot(uint8_t *line, uint32_t i, uint32_t width,
                            uint32_t slot) {
    for (uint32_t j = 0; j < planes_of(width); j++) {
        const uint32_t bit = slots_of(width) * (LANE_BITS + j) + i;
        uint64_t *const word = (uint64_t *)(line + bit / 64 * 8);
        const uint64_t mask = UINT64_C(1) << bit % 64;
        const uint64_t set = (uint64_t)(slot >> j & 1) << bit % 64;
        const uint64_t old = little64(__atomic_load_n(word, __ATOMIC_RELAXED));
        __atomic_store_n(word, little64((old & ~mask) | set), __ATOMIC_RELEASE);
    }
    __atomic_store_n((uint16_t *)(line + 2 * i),
                     little16((uint16_t)(slot >> planes_of(width))),
                     __ATOMIC_RELEASE);
}

static inline void put_byte(uint8_t *line, uint32_t at, uint32_t byte) {
    __atomic_store_n(line + at, (uint8_t)byte, __ATOMIC_RELEASE);
}

static inline void put_low(uint8_t *line, uint32_t low) {
    put_byte(line, LOW_AT, (line[LOW_AT] & ~(uint32_t)LOW_MASK) | low);
}

/* Store a code in a line where these slots are in use, at least one not. Which
 * half could not be foreseen: no branch. */
ALWAYS_INLINE void put_code(uint8_t *line, uint32_t width, uint64_t used,
                            uint32_t code) {
    const uint64_t empty = ~used & all_slots(width);
    const uint32_t high = code >> (width - 1) & 1;
    const uint32_t first = (uint32_t)__builtin_ctzll(empty);
    const uint32_t last = 63 - (uint32_t)__builtin_clzll(empty);
    const uint32_t i = first + ((last - first) & -high);
    put_slot(line, i, width, code & slot_mask(width));
    put_low(line, first + 1 - high);
}

/* Take the code in slot i out of a line where these slots are in use. Another
 * code of the same half takes its place: never the permanent one. Returns the
 * slots that are in use then. */
ALWAYS_INLINE uint64_t take_code(uint8_t *line, uint32_t width, uint64_t used,
                                 uint32_t i) {
    const uint32_t low = low_slots(line, width);
    const uint32_t from =
        i < low ? low - 1 : (uint32_t)__builtin_ctzll(used >> low) + low;
    if (from != i) put_slot(line, i, width, get_slot(line, from, width));
    put_slot(line, from, width, 0);
    if (i < low) put_low(line, low - 1);
    return used & ~(UINT64_C(1) << from);
}

/* Write a line of `n` codes, as many as it has slots or fewer. Nobody else
 * reads it yet. Each slot is written in both halves, and what is too much is
 * written over: which half could not be foreseen. */
ALWAYS_INLINE void fill_halves(uint8_t *line, uint32_t width,
                               const uint32_t *codes, uint32_t n) {
    const uint32_t planes = planes_of(width), slots = slots_of(width);
    uint64_t plane[WIDTH_MOST - WIDTH_GROWING + 1] = {0};
    uint32_t low = 0, last = slots - 1;
    memset(line, 0, BUCKET_BYTES);
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t slot = codes[k] & slot_mask(width);
        const uint32_t high = codes[k] >> (width - 1) & 1;
        const uint32_t i = low + ((last - low) & -high);
        store16(line + 2 * low, slot >> planes);
        store16(line + 2 * last, slot >> planes);
        for (uint32_t j = 0; j < planes; j++)
            plane[j] |= (uint64_t)(slot >> j & 1) << i;
        low += 1 - high;
        last -= high;
    }
    if (n < slots) {
        store16(line + 2 * low, 0);
        store16(line + 2 * last, 0);
    }
    for (uint32_t j = 0; j < planes; j++) put_plane(line, j, width, plane[j]);
    line[LOW_AT] = (uint8_t)low;
}

/* Has the bucket of this line more keys than it holds? The first byte names
 * more slots than there are. */
static inline bool is_saturated(const uint8_t *line) {
    return load16(line + LOW_AT) == 0xFFFF;
}

static inline void put_line(uint8_t *line, const uint8_t *bytes) {
    for (size_t i = 0; i < BUCKET_BYTES; i += 8)
        __atomic_store_n((uint64_t *)(line + i), little64(load64(bytes + i)),
                         __ATOMIC_RELEASE);
}

/* Slots in use. */
static inline uint64_t used_slots(const uint8_t *line, uint32_t width) {
    uint64_t used = 0;
    for (uint32_t i = 0; i < slots_of(width); i++)
        used |= (uint64_t)(get_slot(line, i, width) != 0) << i;
    return used;
}

/* The code in a slot that is in use. */
static inline uint32_t get_code(const uint8_t *line, uint32_t i,
                                uint32_t width) {
    const uint32_t high = i >= low_slots(line, width);
    return get_slot(line, i, width) | high << (width - 1);
}

/* Put a code in place of the code in slot i. */
ALWAYS_INLINE void replace_code(uint8_t *line, uint32_t width, uint64_t used,
                                uint32_t i, uint32_t code) {
    put_code(line, width, take_code(line, width, used, i), code);
}

/* ---- Classes of spilled entries ------------------------------------------ */

/*
 * Spilled entries have classes: each is a bit in the bucket that they come
 * from. Only lookups of a class that is there go on to look for them. The class
 * is the fourth to sixth bit of the code, and a code that has run out of these
 * bits has all classes.
 */
ALWAYS_INLINE uint32_t class_of(uint32_t code, uint32_t width) {
    return code >> (width - 6) & (CLASSES - 1);
}

/* Its bit: class 0 is the highest one. */
static inline uint32_t class_bit(uint32_t code, uint32_t width) {
    return UINT32_C(0x80) >> class_of(code, width);
}

static inline uint32_t classes_of(uint32_t code, uint32_t width,
                                  uint32_t varies) {
    if (varies && (code & (code_mask(width) >> 6)) == 0) return ALL_CLASSES;
    return class_bit(code, width);
}

static inline uint32_t get_classes(const uint8_t *line) {
    return line[CLASSES_AT];
}

static inline void put_classes(uint8_t *line, uint32_t classes) {
    put_byte(line, CLASSES_AT, classes);
}

/* ---- Scans --------------------------------------------------------------- */

/* What a scan finds in the lanes of a line: a bit for each. */
struct lane_masks {
    uint64_t equal; /* to the code of the key                            */
    uint64_t begun; /* the same, as far as the stop bit, which is there   */
    uint64_t zero;
};

/* Less of it: `begun` if codes vary, else `equal`; and the last word of the
 * line, which is cheaper to take from the vector than to load once more. */
struct lane_match {
    uint32_t lanes, last;
};

/* How a processor level compares: lanes, where `begun` is not needed unless
 * codes vary; lanes that are slots, with the code of a key, in which bit 0 is
 * set if codes vary. */
struct lane_scans {
    struct lane_masks (*compare16)(const uint8_t *line, uint32_t lane,
                                   uint32_t varies);
    struct lane_match (*match16)(const uint8_t *line, uint32_t code,
                                 uint32_t varies);
};

/* What a scan of a bucket finds. */
struct bucket_scan {
    uint64_t hits, used; /* slots that match; that are in use */
};

/* Slots of both halves. Going up through the planes, those bits of a slot count
 * that are above its stop bit; codes without one all count. */
ALWAYS_INLINE struct bucket_scan scan_slots16(const uint8_t *line,
                                              uint32_t width, uint32_t want,
                                              uint32_t varies,
                                              struct lane_scans scans) {
    const uint64_t all = all_slots(width);
    const struct lane_masks lanes =
        scans.compare16(line, lane_of(want, width), varies);
    uint64_t counts = varies ? 0 : all, used = ~lanes.zero, differ = 0;
    for (uint32_t j = 0; j < planes_of(width); j++) {
        const uint64_t plane = get_plane(line, j, width);
        differ |= counts & (plane ^ -(uint64_t)(want >> j & 1));
        counts |= plane & all;
        used |= plane;
    }
    const uint64_t agree = (counts & lanes.equal) | (~counts & lanes.begun);
    return (struct bucket_scan){
        .hits = agree & ~differ & all,
        .used = used & all,
    };
}

ALWAYS_INLINE struct bucket_scan scan_bucket(const uint8_t *line,
                                             uint32_t width, uint32_t want,
                                             uint32_t varies,
                                             struct lane_scans scans) {
    struct bucket_scan found = scan_slots16(line, width, want, varies, scans);
    found.hits &= slots_like(line, want, width);
    return found;
}

/* What a line says of a key. */
struct line_answer {
    bool has;
    uint8_t spilled; /* is its class among the spilled ones? bit 7 */
};

/* Is a slot a lane of 16 bits, without planes? */
ALWAYS_INLINE bool is_lane(uint32_t width) {
    return width == WIDTH_GROWING;
}

/* Then from the lanes that match and the last word of the line. */
ALWAYS_INLINE struct line_answer lanes_answer(uint32_t lanes, uint32_t last,
                                              uint32_t want) {
    const uint64_t like =
        slots_below(last >> 16 & LOW_MASK) ^ flip_of(want, WIDTH_GROWING);
    return (struct line_answer){
        .has = (lanes & like & all_slots(WIDTH_GROWING)) != 0,
        .spilled = (uint8_t)(last >> 24 << class_of(want, WIDTH_GROWING)),
    };
}

ALWAYS_INLINE struct line_answer match_line(const uint8_t *line, uint32_t width,
                                            uint32_t want, uint32_t varies,
                                            struct lane_scans scans) {
    const uint64_t hits = scan_slots16(line, width, want, varies, scans).hits;
    return (struct line_answer){
        .has = (hits & slots_like(line, want, width)) != 0,
        .spilled = (uint8_t)(line[CLASSES_AT] << class_of(want, width)),
    };
}

static inline bool may_be_spilled(const uint8_t *line, uint32_t width,
                                  uint32_t code) {
    return get_classes(line) & class_bit(code, width);
}

#endif
