/*
 * The kinds of lines in WebAssembly with vectors: a line is four registers of
 * 4 words. There is no shift by a different amount in each word, so a bit is
 * looked up: byte b of 1 << n is entry n - 8b of a table that has eight powers
 * of two, and zeros everywhere else.
 */
#include "base/cpu.h"
#if ON_SIMD128

#include <wasm_simd128.h>

#include "kind/counting.h"

#define TARGET

/* ---- The vocabulary (line_vector_template.h) ----------------------------- */

typedef struct {
    v128_t quarter[4];
} vline;

ALWAYS_INLINE vline vload(const void *line) {
    const v128_t *const at = line;
    return (vline){{wasm_v128_load(at), wasm_v128_load(at + 1),
                    wasm_v128_load(at + 2), wasm_v128_load(at + 3)}};
}

ALWAYS_INLINE void vstore(void *line, vline a) {
    v128_t *const at = line;
    for (int i = 0; i < 4; i++) wasm_v128_store(at + i, a.quarter[i]);
}

ALWAYS_INLINE vline vor(vline a, vline b) {
    for (int i = 0; i < 4; i++)
        a.quarter[i] = wasm_v128_or(a.quarter[i], b.quarter[i]);
    return a;
}

ALWAYS_INLINE vline vand(vline a, vline b) {
    for (int i = 0; i < 4; i++)
        a.quarter[i] = wasm_v128_and(a.quarter[i], b.quarter[i]);
    return a;
}

ALWAYS_INLINE vline vxor(vline a, vline b) {
    for (int i = 0; i < 4; i++)
        a.quarter[i] = wasm_v128_xor(a.quarter[i], b.quarter[i]);
    return a;
}

ALWAYS_INLINE vline vandnot(vline a, vline b) {
    for (int i = 0; i < 4; i++)
        a.quarter[i] = wasm_v128_andnot(a.quarter[i], b.quarter[i]);
    return a;
}

ALWAYS_INLINE bool vany(vline a) {
    return wasm_v128_any_true(
        wasm_v128_or(wasm_v128_or(a.quarter[0], a.quarter[1]),
                     wasm_v128_or(a.quarter[2], a.quarter[3])));
}

ALWAYS_INLINE uint32_t vwords(vline a) {
    uint32_t words = 0;
    for (int i = 0; i < 4; i++)
        words |= wasm_i64x2_bitmask(
                     wasm_i64x2_ne(a.quarter[i], wasm_i64x2_const_splat(0)))
                 << 2 * i;
    return words;
}

/* Add one bit in each of four columns to the two quarters of a line that hold
 * them, but none where a row has no top bit. */
ALWAYS_INLINE void spread(vline *mask, int quarter, v128_t product,
                          v128_t row) {
    const v128_t powers =
        wasm_u8x16_const(1, 2, 4, 8, 16, 32, 64, 128, 0, 0, 0, 0, 0, 0, 0, 0);
    const v128_t bytes = wasm_u32x4_const_splat(0x18100800);
    const v128_t absent = wasm_i32x4_shr(wasm_v128_not(row), 31);
    /* 63 - spot: its bit in the second word, and 32 more than in the first. */
    const v128_t bit = wasm_u32x4_shr(wasm_v128_not(product), FIRST_SPOT);
    const v128_t bits = wasm_i8x16_shuffle(bit, bit, 0, 0, 0, 0, 4, 4, 4, 4, 8,
                                           8, 8, 8, 12, 12, 12, 12);
    const v128_t high = wasm_v128_or(wasm_i8x16_sub(bits, bytes), absent);
    const v128_t low =
        wasm_v128_or(wasm_i8x16_sub(high, wasm_i8x16_const_splat(32)), absent);
    mask->quarter[quarter] =
        wasm_v128_or(mask->quarter[quarter], wasm_i8x16_swizzle(powers, low));
    mask->quarter[quarter + 2] = wasm_v128_or(mask->quarter[quarter + 2],
                                              wasm_i8x16_swizzle(powers, high));
}

ALWAYS_INLINE vline vmask(const uint64_t *hash, struct line_choice choice) {
    const uint8_t *const row =
        (const uint8_t *)line_rows + line_chosen(*hash, choice);
    const v128_t all = wasm_i32x4_const_splat(INT32_MIN);
    const v128_t low = wasm_v128_load32_splat(hash);
    vline mask = {{0}};
    for (int i = 0; i < 2; i++) {
        const v128_t product =
            wasm_i32x4_mul(low, wasm_v128_load(&line_salt[4 * i]));
        const v128_t columns = wasm_v128_load(row + 16 * i);
        spread(&mask, i, product, choice.twice ? all : columns);
        if (choice.twice)
            spread(&mask, i, wasm_i32x4_shl(product, FIRST_SPOT - SECOND_SPOT),
                   columns);
    }
    return mask;
}

/* ---- One key ------------------------------------------------------------- */

ALWAYS_INLINE bool in_line(const uint8_t *line, const uint64_t *hash,
                           struct line_choice choice) {
    return !vany(vandnot(vmask(hash, choice), vload(line)));
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

const struct kernel line_simd128 = {
    .level = CPU_SIMD128,
    .has = line_has,
    .add = line_add,
    .has_batch = line_has_batch,
    .add_batch = line_add_batch,
};

#if !CALYX_NO_LINE2
const struct kernel line2_simd128 = {
    .level = CPU_SIMD128,
    .has = line2_has,
    .add = line2_add,
    .has_batch = line2_has_batch,
    .add_batch = line2_add_batch,
};

const struct kernel line2_simd128_atomic = {
    .level = CPU_SIMD128,
    .has = line2_has,
    .add = line2_add_atomic,
    .has_batch = line2_has_batch,
    .add_batch = line2_add_batch_atomic,
};
#endif

#if !CALYX_NO_COUNTING
const struct kernel counting_simd128 = {
    .level = CPU_SIMD128,
    .has = line_has,
    .add = counting_add,
    .has_batch = line_has_batch,
    .add_batch = counting_add_batch,
    .remove = counting_remove,
    .remove_batch = counting_remove_batch,
};
#endif

#endif
