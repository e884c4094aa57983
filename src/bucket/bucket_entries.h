/* The entries of a bucket, and what their codes say of hashes. */
#ifndef CALYX_BUCKET_ENTRIES_H
#define CALYX_BUCKET_ENTRIES_H

#include "bucket/bucket_spill.h"

enum { ENTRIES_MOST = 256 /* of a bucket, with those that it spilled */ };

/* The codes of a bucket. */
struct entries {
    uint32_t n;
    uint32_t code[ENTRIES_MOST];
};

/* Number of bits of a code, and these bits as a number. A code without a stop
 * bit, which only a forged file has, is taken for one of no bits. */
static inline uint32_t code_bits(uint32_t code, uint32_t width, uint32_t level,
                                 uint32_t *bits) {
    if (level > 0) {
        const uint32_t first = UINT32_C(1) << (width - 1);
        const uint32_t stop = (uint32_t)__builtin_ctz(code | first);
        *bits = code >> stop >> 1;
        return width - 1 - stop;
    }
    if ((code & slot_mask(width)) > 1) {
        *bits = code;
        return width;
    }
    *bits = code >> 1; /* a slot of 1 was 0 or 1 */
    return width - 1;
}

/* Fractions from `low` to `high`. */
struct fraction_range {
    uint64_t low, high;
};

/* c * 2^64 / positions, rounded up; 0 in place of 2^64. */
ALWAYS_INLINE uint64_t position_begin(uint64_t c, uint64_t positions) {
    const uint64_t whole = UINT64_MAX / positions;
    const uint64_t rest = UINT64_MAX % positions + 1;
    return c * whole + (c * rest + positions - 1) / positions;
}

ALWAYS_INLINE struct fraction_range range_of_position(uint64_t c,
                                                      uint64_t positions) {
    return (struct fraction_range){
        .low = position_begin(c, positions),
        .high = position_begin(c + 1, positions) - 1,
    };
}

static inline void take_slots(const uint8_t *line, uint32_t width,
                              struct entries *to) {
    const uint32_t slots = slots_of(width), low = low_slots(line, width);
    const uint32_t first = UINT32_C(1) << (width - 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < slots; i++) {
        const uint32_t slot = get_slot(line, i, width);
        to->code[n] = i < low ? slot : slot | first;
        n += slot != 0;
    }
    to->n = n;
}

/* The entries of a line; of a permanent slot, as many as it stands for. */
static inline void take_line(const uint8_t *line, uint32_t width,
                             struct entries *to) {
    if (width == WIDTH_GROWING)
        take_slots(line, WIDTH_GROWING, to);
    else
        take_slots(line, width, to);
    uint64_t slots = permanent_slots(line, width);
    for (; slots; slots &= slots - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(slots);
        const uint32_t code = get_code(line, i, width);
        for (uint32_t n = 1; get_slot(line, i, width) && n < COPIES_MOST; n++)
            to->code[to->n++] = code;
    }
}

/* Copy all entries of a bucket, and let its spilled entries stay or go.
 * False if there are more than a table makes, as in a forged file. In
 * bucket_grow.c. */
bool list_bucket(const struct bucket_table *t, const struct bucket_ref *at,
                 struct entries *to, enum after_listing then);

#endif
