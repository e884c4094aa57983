/*
 * The ribbon kind on ARM of 64 bits: 8 words of result bits are one register.
 * The parity of a word is the lowest bit of the number of its bits. Queries are
 * prepared one by one, as NEON has no product of 64 bits.
 */
#include "base/cpu.h"
#if ON_NEON

#include <arm_neon.h>

#include "ribbon/ribbon_batch.h"

/* Bits 0, 2, 4 and so on of x, each the lowest bit of a lane. */
ALWAYS_INLINE uint16x8_t even_bits(uint32_t x) {
    static const int16_t right[8] = {0, -2, -4, -6, -8, -10, -12, -14};
    return vshlq_u16(vdupq_n_u16((uint16_t)x), vld1q_s16(right));
}

/* 8 words of each of three groups, from `words` on: in the lowest bit of a
 * lane, is the sum not the result? Lanes whose word the mask lacks are 0 there.
 */
ALWAYS_INLINE uint16x8_t wrong_sums(const uint8_t *words, uint64_t stride,
                                    uint64_t coefficients, uint32_t result,
                                    uint32_t mask) {
    uint16x8_t x = vdupq_n_u16(0);
    for (int j = 0; j < SPAN_GROUPS; j++) {
        const uint8x16_t rows = vld1q_u8(words + (size_t)j * stride);
        const uint16_t chosen = (uint16_t)(coefficients >> GROUP_ROWS * j);
        x = veorq_u16(
            x, vandq_u16(vreinterpretq_u16_u8(rows), vdupq_n_u16(chosen)));
    }
    const uint16x8_t ones = vpaddlq_u8(vcntq_u8(vreinterpretq_u8_u16(x)));
    return vandq_u16(veorq_u16(ones, even_bits(result)), even_bits(mask));
}

/* 16 words whose results are at the even places. */
ALWAYS_INLINE uint16x8_t wrong_sums_16(const uint8_t *words, uint64_t stride,
                                       uint64_t coefficients, uint32_t result,
                                       uint32_t mask) {
    return vorrq_u16(
        wrong_sums(words, stride, coefficients, result, mask),
        wrong_sums(words + 16, stride, coefficients, result >> 16, mask >> 16));
}

ALWAYS_INLINE bool equations_hold(const uint8_t *words, uint64_t stride,
                                  uint64_t mixed, enum read_width width) {
    const uint64_t coefficients = ribbon_coefficients(mixed);
    const uint32_t result = ribbon_result(mixed);
    const uint32_t mask = result_mask((uint32_t)stride / 2);
    uint16x8_t wrong;
    if (width == READ_8)
        wrong = wrong_sums(words, stride, coefficients, result, mask);
    else
        wrong = wrong_sums_16(words, stride, coefficients, result, mask);
    if (width == READ_32)
        wrong = vorrq_u16(wrong, wrong_sums_16(words + 32, stride, coefficients,
                                               result >> 1, mask >> 1));
    return (vmaxvq_u16(vshlq_n_u16(wrong, 15)) == 0);
}

static enum layer_answer ribbon_neon_has_in_layer(const uint8_t *body,
                                                  const struct shape *shape,
                                                  uint64_t hash) {
    const uint64_t group = group_of(hash, shape);
    const bool bumped = is_bumped(body + flags_at(group, shape), group);
    const uint8_t *const at = body + words_at(first_group(group, shape), shape);
    return layer_answer(bumped,
                        equations_hold(at, 2 * words_of(group, shape),
                                       ribbon_mix(hash), read_width_of(shape)));
}

static bool ribbon_neon_has(const uint8_t *body, const struct shape *shape,
                            uint64_t hash) {
    return ribbon_neon_has_in_layer(body, shape, hash) == LAYER_YES;
}

ALWAYS_INLINE bool neon_holds(const struct query_ring *ring, size_t at,
                              enum read_width width) {
    return equations_hold(words_in(ring, at), ring->stride[at],
                          ring->coefficients[at], width);
}

static size_t ribbon_neon_has_batch_in_layer(const uint8_t *body,
                                             const struct shape *shape,
                                             struct batch batch, bool *found,
                                             uint16_t *bumped) {
    return ribbon_batch_generic(body, shape, batch, found, bumped, 1,
                                prepare_one, neon_holds);
}

static size_t ribbon_neon_has_batch(const uint8_t *body,
                                    const struct shape *shape,
                                    struct batch batch, bool *found) {
    return ribbon_has_batch(&ribbon_neon, body, shape, batch, found);
}

const struct kernel ribbon_neon = {
    .level = CPU_NEON,
    .has = ribbon_neon_has,
    .has_batch = ribbon_neon_has_batch,
    .has_in_layer = ribbon_neon_has_in_layer,
    .has_batch_in_layer = ribbon_neon_has_batch_in_layer,
};

#endif
