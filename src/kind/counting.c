/*
 * The counting kind: a line filter that can forget. Behind the lines stands a
 * counter of 4 bits for each of their bits, which tells how many keys set it.
 *
 *     [ line 0 | line 1 | ... | counters of line 0 | counters of line 1 | ... ]
 *       64 bytes                256 bytes
 *
 * Questions read the lines alone, and cost what a line filter's do. Adding and
 * removing also read and write the counters of the key's bits; a bit is cleared
 * when its counter comes down to 0.
 *
 * A counter that reaches 15 stays there for good. From then on it cannot tell
 * how many keys it stands for, and counting down would one day clear a bit that
 * some key still needs. So no overflow makes a key vanish; the price is that a
 * bit which 15 keys shared at once stays set until the filter is cleared.
 */
#include "kind/kind.h"
#include "kind/line.h"

enum { COUNTERS_BYTES = 256, HIGHEST = 15 };

static uint8_t *counters_of(uint8_t *body, const struct shape *shape,
                            uint64_t hash) {
    return body + LINE_BYTES * (size_t)shape->blocks +
           line_offset(hash, shape) / LINE_BYTES * COUNTERS_BYTES;
}

/* Two counters share a byte, the even one in its low half. */
static uint32_t counter(const uint8_t *counters, uint32_t i) {
    return (uint32_t)counters[i / 2] >> 4 * (i % 2) & HIGHEST;
}

static void change_by(uint8_t *counters, uint32_t i, int one) {
    const int place = 1 << 4 * (i % 2);
    counters[i / 2] = (uint8_t)(counters[i / 2] + one * place);
}

bool counting_add(uint8_t *body, const struct shape *shape,
                  const uint64_t *given) {
    const uint64_t hash = *given;
    uint8_t *const line = body + line_offset(hash, shape);
    uint8_t *const counters = counters_of(body, shape, hash);
    uint64_t words = line_words(hash, shape->probes);
    bool missing = false;
    for (; words; words &= words - 1) {
        const int word = line_first(words);
        const uint32_t spot = line_spot(hash, word);
        const uint32_t i = 32 * (uint32_t)word + spot;
        if (counter(counters, i) < HIGHEST) change_by(counters, i, 1);
        uint8_t *at = line + 4 * word;
        const uint32_t old = load32(at), bit = UINT32_C(1) << spot;
        missing |= !(old & bit);
        store32(at, old | bit);
    }
    return missing;
}

static void counting_remove(uint8_t *body, const struct shape *shape,
                            uint64_t hash) {
    uint8_t *const line = body + line_offset(hash, shape);
    uint8_t *const counters = counters_of(body, shape, hash);
    uint64_t words = line_words(hash, shape->probes);
    for (; words; words &= words - 1) {
        const int word = line_first(words);
        const uint32_t spot = line_spot(hash, word);
        const uint32_t i = 32 * (uint32_t)word + spot;
        const uint32_t count = counter(counters, i);
        if (count == HIGHEST || count == 0) continue;
        change_by(counters, i, -1);
        if (count > 1) continue;
        uint8_t *at = line + 4 * word;
        store32(at, load32(at) & ~(UINT32_C(1) << spot));
    }
}

static uint32_t counting_count(const uint8_t *body, const struct shape *shape,
                               uint64_t hash) {
    const uint8_t *counters = counters_of((uint8_t *)body, shape, hash);
    uint64_t words = line_words(hash, shape->probes);
    uint32_t least = HIGHEST;
    for (; words; words &= words - 1) {
        const int word = line_first(words);
        const uint32_t i = 32 * (uint32_t)word + line_spot(hash, word);
        const uint32_t count = counter(counters, i);
        if (count < least) least = count;
    }
    return least;
}

/* The counters lie on four cache lines, and a key with six probes meets all of
 * them more often than not. */
void counting_call(const uint8_t *body, const struct shape *shape,
                   uint64_t hash, enum distance distance) {
    const uint8_t *counters = counters_of((uint8_t *)body, shape, hash);
    line_call(body, shape, hash, distance);
    for (int i = 0; i < COUNTERS_BYTES; i += LINE_BYTES)
        call_line(counters + i, distance);
}

static double counting_fpr(const struct shape *shape, double items) {
    return line_fpr(shape->blocks, shape->probes, items);
}

static const struct kernel *const counting_kernels[] = {
    LINE_LEVELS(counting, )};

const struct kind kind_counting = {
    .name = "counting",
    .code = 5,
    .hash = "xxh3",
    .block_bits = 8 * LINE_BYTES,
    .counter_bits = 8 * COUNTERS_BYTES,
    .most_blocks = UINT64_C(1) << 35,
    .most_probes = LINE_WORDS,
    .probe_step = 1,
    .least_fpr = 1e-8,
    .fpr = counting_fpr,
    .kernels = counting_kernels,
    .remove = counting_remove,
    .count = counting_count,
};
