/*
 * The bucket kind with vectors of 128 bits, NEON and WebAssembly: a bucket is
 * four vectors. What is common to both is written with the vector types of gcc
 * and clang, whose comparisons give lanes of all ones or 0; only to gather
 * these into an integer takes instructions of each.
 */
#include "bucket/bucket.h"

#if BUCKET_ON_128
#if ON_NEON
#include <arm_neon.h>
#else
#include <wasm_simd128.h>
#endif

#include "bucket/bucket_has_batch.h"
#include "bucket/bucket_remove.h"

#define TARGET __attribute__((no_sanitize("thread")))

enum { VECTORS = BUCKET_BYTES / 16 };
typedef uint8_t v16x8 __attribute__((vector_size(16)));
typedef uint16_t v8x16 __attribute__((vector_size(16)));
typedef uint32_t v4x32 __attribute__((vector_size(16)));
typedef uint64_t v2x64 __attribute__((vector_size(16)));

/* A bit for each of 32 bytes of all ones or 0. */
TARGET ALWAYS_INLINE uint32_t bits_of(v16x8 low, v16x8 high) {
#if ON_NEON
    const v16x8 powers = {1, 2, 4, 8, 16, 32, 64, 128,
                          1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t two =
        vpaddq_u8((uint8x16_t)(low & powers), (uint8x16_t)(high & powers));
    const uint8x16_t four = vpaddq_u8(two, two);
    return vgetq_lane_u32(vreinterpretq_u32_u8(vpaddq_u8(four, four)), 0);
#else
    return wasm_i8x16_bitmask((v128_t)low) |
           (uint32_t)wasm_i8x16_bitmask((v128_t)high) << 16;
#endif
}

/* The low bytes of lanes. */
TARGET ALWAYS_INLINE v16x8 bytes_of(v8x16 a, v8x16 b) {
    return __builtin_shufflevector((v16x8)a, (v16x8)b, 0, 2, 4, 6, 8, 10, 12,
                                   14, 16, 18, 20, 22, 24, 26, 28, 30);
}

TARGET ALWAYS_INLINE uint32_t lanes_of(const v8x16 *hits) {
    return bits_of(bytes_of(hits[0], hits[1]), bytes_of(hits[2], hits[3]));
}

/* Lanes that agree with what is wanted as far as their stop bit. Bit 0 of what
 * is wanted is 1: a stop bit, or after one. An empty lane less 1 stays 0 here,
 * so all its bits count, and bit 0 differs. */
TARGET ALWAYS_INLINE uint32_t begun(const v8x16 *line, v8x16 want) {
    v8x16 hits[VECTORS];
    for (int i = 0; i < VECTORS; i++) {
        const v8x16 code = line[i], less = code + (v8x16)(code != 0);
        hits[i] = (v8x16)(((code ^ want) & ~(code ^ less)) == 0);
    }
    return lanes_of(hits);
}

TARGET ALWAYS_INLINE uint32_t equal16(const v8x16 *line, v8x16 want) {
    v8x16 hits[VECTORS];
    for (int i = 0; i < VECTORS; i++) hits[i] = (v8x16)(line[i] == want);
    return lanes_of(hits);
}

TARGET ALWAYS_INLINE struct lane_masks compare16(const uint8_t *line,
                                                 uint32_t lane,
                                                 uint32_t varies) {
    const v8x16 *const at = (const v8x16 *)line;
    const v8x16 want = (v8x16){0} + (uint16_t)lane;
    return (struct lane_masks){
        .equal = equal16(at, want),
        .begun = varies ? begun(at, want | 1) : 0,
        .zero = equal16(at, (v8x16){0}),
    };
}

TARGET ALWAYS_INLINE struct lane_match match16(const uint8_t *line,
                                               uint32_t code, uint32_t varies) {
    const v8x16 *const at = (const v8x16 *)line;
    const v8x16 want = (v8x16){0} + (uint16_t)code;
    return (struct lane_match){
        .lanes = varies ? begun(at, want) : equal16(at, want),
        .last = load32(line + LAST_AT),
    };
}

/* The last word is no entry. */
TARGET ALWAYS_INLINE bool find(const uint8_t *line, uint32_t want,
                               uint32_t varies) {
    const v4x32 *const at = (const v4x32 *)line;
    v4x32 found = {0};
    for (int i = 0; i < VECTORS; i++) {
        const v4x32 entry = at[i], last = {0, 0, 0, i == VECTORS - 1};
        const v4x32 differ = (entry ^ want) & ~((entry ^ (entry - 1)) & varies);
        found |=
            (v4x32)(differ == 0) & (v4x32)(entry != 0) & (v4x32)(last == 0);
    }
    const v2x64 halves = (v2x64)found;
    return (halves[0] | halves[1]) != 0;
}

#define STEPS                                                  \
    ((struct bucket_steps){                                    \
        .scans = {.compare16 = compare16, .match16 = match16}, \
        .scale = scale64,                                      \
        .resolve = resolve_each,                               \
        .find = find,                                          \
    })
#include "bucket/bucket_kernel_template.h"

#if ON_NEON
const struct kernel bucket_128 = BUCKET_KERNEL(CPU_NEON);
#else
const struct kernel bucket_128 = BUCKET_KERNEL(CPU_SIMD128);
#endif
#endif
