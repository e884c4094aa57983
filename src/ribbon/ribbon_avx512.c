/* The ribbon kind on x86 with AVX-512. */
#include "base/cpu.h"
#if ON_X86

#define TARGET                                                               \
    __attribute__((target("avx2,bmi2,avx512f,avx512vl"), no_sanitize("threa" \
                                                                     "d")))

#include "ribbon/ribbon_template.h"

TARGET static enum layer_answer ribbon_avx512_has_in_layer(
    const uint8_t *body, const struct shape *shape, uint64_t hash) {
    return vector_has_in_layer(body, shape, hash);
}

TARGET static bool ribbon_avx512_has(const uint8_t *body,
                                     const struct shape *shape, uint64_t hash) {
    return vector_has_in_layer(body, shape, hash) == LAYER_YES;
}

TARGET static size_t ribbon_avx512_has_batch_in_layer(const uint8_t *body,
                                                      const struct shape *shape,
                                                      struct batch batch,
                                                      bool *found,
                                                      uint16_t *bumped) {
    return vector_has_batch_in_layer(body, shape, batch, found, bumped);
}

static size_t ribbon_avx512_has_batch(const uint8_t *body,
                                      const struct shape *shape,
                                      struct batch batch, bool *found) {
    return ribbon_has_batch(&ribbon_avx512, body, shape, batch, found);
}

const struct kernel ribbon_avx512 = {
    .level = CPU_AVX512,
    .has = ribbon_avx512_has,
    .has_batch = ribbon_avx512_has_batch,
    .has_in_layer = ribbon_avx512_has_in_layer,
    .has_batch_in_layer = ribbon_avx512_has_batch_in_layer,
};

#endif
