/*
 * The kinds of lines in WebAssembly with vectors: a line is four registers of
 * 4 words. There is no shift by a different amount in each word, so a bit is
 * looked up: byte b of 1 << n is entry n - 8b of a table that has eight powers
 * of two, and zeros wherever else one looks.
 */
#include "base/cpu.h"
#if ON_SIMD128

#include <wasm_simd128.h>

#include "kind/counting.h"
#include "kind/line.h"

struct line {
    v128_t quarter[4];
};

/* Add one bit in each of four columns to the two quarters of a line that hold
 * them, but none where a row has no top bit. */
MELT void spread(struct line *mask, int quarter, v128_t product, v128_t row) {
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

MELT struct line mask_of(const uint64_t *hash, struct line_choice from) {
    const uint8_t *const row =
        (const uint8_t *)line_rows + line_chosen(*hash, from);
    const v128_t all = wasm_i32x4_const_splat(INT32_MIN);
    const v128_t low = wasm_v128_load32_splat(hash);
    struct line mask = {{0}};
    for (int i = 0; i < 2; i++) {
        const v128_t product =
            wasm_i32x4_mul(low, wasm_v128_load(&line_salt[4 * i]));
        const v128_t columns = wasm_v128_load(row + 16 * i);
        spread(&mask, i, product, from.twice ? all : columns);
        if (from.twice)
            spread(&mask, i, wasm_i32x4_shl(product, FIRST_SPOT - SECOND_SPOT),
                   columns);
    }
    return mask;
}

/* What a quarter of the mask has and the line has not. */
MELT v128_t missing_in(const uint8_t *line, const struct line *mask, int i) {
    return wasm_v128_andnot(mask->quarter[i], wasm_v128_load(line + 16 * i));
}

MELT v128_t missing_of(const uint8_t *line, const struct line *mask) {
    return wasm_v128_or(
        wasm_v128_or(missing_in(line, mask, 0), missing_in(line, mask, 1)),
        wasm_v128_or(missing_in(line, mask, 2), missing_in(line, mask, 3)));
}

MELT bool in_line_simd128(const uint8_t *line, const uint64_t *hash,
                          struct line_choice from) {
    const struct line mask = mask_of(hash, from);
    return !wasm_v128_any_true(missing_of(line, &mask));
}

MELT void add_quarter(uint8_t *line, const struct line *mask, int i) {
    uint8_t *const at = line + 16 * i;
    wasm_v128_store(at, wasm_v128_or(mask->quarter[i], wasm_v128_load(at)));
}

MELT bool add_to_line_simd128(uint8_t *line, const uint64_t *hash,
                              struct line_choice from) {
    const struct line mask = mask_of(hash, from);
    const bool missing = wasm_v128_any_true(missing_of(line, &mask));
    add_quarter(line, &mask, 0);
    add_quarter(line, &mask, 1);
    add_quarter(line, &mask, 2);
    add_quarter(line, &mask, 3);
    return missing;
}

MELT bool share_line_simd128(uint8_t *line, const uint64_t *hash,
                             struct line_choice from) {
    const struct line mask = mask_of(hash, from);
    struct line_mask bits;
    uint32_t words = 0;
    for (int i = 0; i < 4; i++) {
        const v128_t missing = missing_in(line, &mask, i);
        wasm_v128_store(&bits.word[2 * i], missing);
        words |= wasm_i64x2_bitmask(
                     wasm_i64x2_ne(missing, wasm_i64x2_const_splat(0)))
                 << 2 * i;
    }
    line_share(line, &bits, words);
    return words != 0;
}

LINE_SINGLES(simd128, , in_line_simd128, add_to_line_simd128,
             share_line_simd128)
LINE_KERNELS(simd128, CPU_SIMD128, )
LINE2_KERNELS(simd128, CPU_SIMD128, )
COUNTING_KERNEL(counting_simd128, CPU_SIMD128, , one_simd128_has,
                line_simd128_has_run, counting_low_scalar, counting_high_scalar,
                counting_remove_scalar, NULL, false)

#endif
