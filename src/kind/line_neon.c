/*
 * The kinds of lines on ARM of 64 bits, which always has NEON: a line is four
 * registers of 4 words. A shift takes a different amount in each word, and
 * shifts out all bits where it is 32 or more.
 */
#include "base/cpu.h"
#if ON_NEON

#include <arm_neon.h>

#include "kind/counting.h"

#define TARGET

/* ---- The vocabulary (line_vector_template.h) ----------------------------- */

typedef uint32x4x4_t vline;

ALWAYS_INLINE vline vload(const void *line) {
    const uint32_t *const at = line;
    return (vline){{vld1q_u32(at), vld1q_u32(at + 4), vld1q_u32(at + 8),
                    vld1q_u32(at + 12)}};
}

ALWAYS_INLINE void vstore(void *line, vline a) {
    uint32_t *const at = line;
    for (int i = 0; i < 4; i++) vst1q_u32(at + 4 * i, a.val[i]);
}

ALWAYS_INLINE vline vor(vline a, vline b) {
    for (int i = 0; i < 4; i++) a.val[i] = vorrq_u32(a.val[i], b.val[i]);
    return a;
}

ALWAYS_INLINE vline vand(vline a, vline b) {
    for (int i = 0; i < 4; i++) a.val[i] = vandq_u32(a.val[i], b.val[i]);
    return a;
}

ALWAYS_INLINE vline vxor(vline a, vline b) {
    for (int i = 0; i < 4; i++) a.val[i] = veorq_u32(a.val[i], b.val[i]);
    return a;
}

ALWAYS_INLINE vline vandnot(vline a, vline b) {
    for (int i = 0; i < 4; i++) a.val[i] = vbicq_u32(a.val[i], b.val[i]);
    return a;
}

ALWAYS_INLINE bool any_bit(uint32x4_t a) {
    return vmaxvq_u32(a) != 0;
}

ALWAYS_INLINE bool vany(vline a) {
    return any_bit(vorrq_u32(vorrq_u32(a.val[0], a.val[1]),
                             vorrq_u32(a.val[2], a.val[3])));
}

ALWAYS_INLINE uint32_t vwords(vline a) {
    uint32_t words = 0;
    for (int i = 0; i < 4; i++) {
        const uint64x2_t two = vreinterpretq_u64_u32(a.val[i]);
        words |= (uint32_t)(vgetq_lane_u64(two, 0) != 0) << 2 * i;
        words |= (uint32_t)(vgetq_lane_u64(two, 1) != 0) << (2 * i + 1);
    }
    return words;
}

/* What selects the columns of a key, four at a time. */
struct four_columns {
    uint32x4_t product, row;
};

ALWAYS_INLINE struct four_columns columns_of(const uint64_t *hash,
                                             struct line_choice choice,
                                             int half) {
    const uint8_t *const row =
        (const uint8_t *)line_rows + line_chosen(*hash, choice);
    return (struct four_columns){
        vmulq_n_u32(vld1q_u32(&line_salt[4 * half]), (uint32_t)*hash),
        vld1q_u32((const uint32_t *)(const void *)(row + 16 * half)),
    };
}

ALWAYS_INLINE uint32x4_t all_columns(void) {
    return vdupq_n_u32(UINT32_C(1) << 31);
}

ALWAYS_INLINE uint32x4_t second_spots(uint32x4_t product) {
    return vshlq_n_u32(product, FIRST_SPOT - SECOND_SPOT);
}

/* Add one bit in each of four columns of a row to the two quarters of a line
 * that hold them. Of a shift to the left, nothing is left. */
ALWAYS_INLINE void spread(vline *mask, int half, uint32x4_t product,
                          uint32x4_t row) {
    const int32x4_t right =
        vnegq_s32(vreinterpretq_s32_u32(vshrq_n_u32(product, FIRST_SPOT)));
    const int32x4_t beyond = vaddq_s32(right, vdupq_n_s32(32));
    mask->val[half] = vorrq_u32(mask->val[half], vshlq_u32(row, right));
    mask->val[half + 2] =
        vorrq_u32(mask->val[half + 2], vshlq_u32(row, beyond));
}

ALWAYS_INLINE void spread_half(vline *mask, int half, const uint64_t *hash,
                               struct line_choice choice) {
    const struct four_columns key = columns_of(hash, choice, half);
    spread(mask, half, key.product, choice.twice ? all_columns() : key.row);
    if (choice.twice) spread(mask, half, second_spots(key.product), key.row);
}

ALWAYS_INLINE vline vmask(const uint64_t *hash, struct line_choice choice) {
    const uint32x4_t zero = vdupq_n_u32(0);
    vline mask = {{zero, zero, zero, zero}};
    spread_half(&mask, 0, hash, choice);
    spread_half(&mask, 1, hash, choice);
    return mask;
}

/* ---- One key ------------------------------------------------------------- */

/* Columns of the row that lack the bit of the key, as top bits. The top bit of
 * a product selects one of the two words of a column; the next 5 shift the bit
 * of the key to the top. */
ALWAYS_INLINE uint32x4_t missing(const uint32_t *line, int half,
                                 uint32x4_t product, uint32x4_t row) {
    const uint32x4_t second =
        vreinterpretq_u32_s32(vshrq_n_s32(vreinterpretq_s32_u32(product), 31));
    const uint32x4_t word = vbslq_u32(second, vld1q_u32(line + 4 * half + 8),
                                      vld1q_u32(line + 4 * half));
    const uint32x4_t left = vshrq_n_u32(vshlq_n_u32(product, 1), 27);
    return vbicq_u32(row, vshlq_u32(word, vreinterpretq_s32_u32(left)));
}

ALWAYS_INLINE uint32x4_t missing_in_half(const uint8_t *line, int half,
                                         const uint64_t *hash,
                                         struct line_choice choice) {
    const uint32_t *const words = (const uint32_t *)(const void *)line;
    const struct four_columns key = columns_of(hash, choice, half);
    if (!choice.twice) return missing(words, half, key.product, key.row);
    return vorrq_u32(missing(words, half, key.product, all_columns()),
                     missing(words, half, second_spots(key.product), key.row));
}

/* No loop over the halves: compilers unroll none at -O2. */
ALWAYS_INLINE bool in_line(const uint8_t *line, const uint64_t *hash,
                           struct line_choice choice) {
    return !any_bit(vorrq_u32(missing_in_half(line, 0, hash, choice),
                              missing_in_half(line, 1, hash, choice)));
}

ALWAYS_INLINE bool add_to_line(uint8_t *line, const uint64_t *hash,
                               struct line_choice choice) {
    const vline mask = vmask(hash, choice), old = vload(line);
    vstore(line, vor(old, mask));
    return vany(vandnot(mask, old));
}

#include "kind/line_vector_template.h"

#include "kind/line_template.h"

#if !CALYX_NO_COUNTING
#include "kind/counting_template.h"
#endif

/* ---- The kernels --------------------------------------------------------- */

const struct kernel line_neon = {
    .level = CPU_NEON,
    .has = line_has,
    .add = line_add,
    .has_batch = line_has_batch,
    .add_batch = line_add_batch,
};

#if !CALYX_NO_LINE2
const struct kernel line2_neon = {
    .level = CPU_NEON,
    .has = line2_has,
    .add = line2_add,
    .has_batch = line2_has_batch,
    .add_batch = line2_add_batch,
};

const struct kernel line2_neon_atomic = {
    .level = CPU_NEON,
    .has = line2_has,
    .add = line2_add_atomic,
    .has_batch = line2_has_batch,
    .add_batch = line2_add_batch_atomic,
};
#endif

#if !CALYX_NO_COUNTING
const struct kernel counting_neon = {
    .level = CPU_NEON,
    .has = line_has,
    .add = counting_add,
    .has_batch = line_has_batch,
    .add_batch = counting_add_batch,
    .remove = counting_remove,
    .remove_batch = counting_remove_batch,
};
#endif

#endif
