#include "files/key_sketch.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { INDEX_BITS = 16, REGISTERS = 1 << INDEX_BITS, REST = 64 - INDEX_BITS };

struct key_sketch {
    _Atomic uint8_t registers[REGISTERS]; /* 0 to REST + 1 */
};

struct key_sketch *sketch_new(void) {
    struct key_sketch *const s = alloc_memory(sizeof *s);
    memset((void *)s, 0, sizeof *s);
    return s;
}

void sketch_free(struct key_sketch *s) {
    free(s);
}

/* The bit after the rest of the hash ends a rest of zeros. */
static uint8_t rank_of(uint64_t hash) {
    const uint64_t rest = hash << INDEX_BITS | UINT64_C(1) << (INDEX_BITS - 1);
    return (uint8_t)(__builtin_clzll(rest) + 1);
}

/* Nearly always the register is as large already. */
void sketch_add(struct key_sketch *s, const uint64_t *hashes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        _Atomic uint8_t *const reg = &s->registers[hashes[i] >> REST];
        const uint8_t rank = rank_of(hashes[i]);
        uint8_t was = atomic_load_explicit(reg, memory_order_relaxed);
        while (was < rank && !atomic_compare_exchange_weak(reg, &was, rank)) {}
    }
}

/* ---- Ertl's estimator ----------------------------------------------------
 *
 * "New cardinality estimation algorithms for HyperLogLog sketches",
 * algorithm 6. sigma and tau correct for registers that are 0 or as large as
 * they get. */

static double sigma(double x) {
    if (x == 1) return INFINITY;
    double sum = x, last = -1;
    for (double y = 1; sum != last; y *= 2) {
        x *= x;
        last = sum;
        sum += x * y;
    }
    return sum;
}

static double tau(double x) {
    if (x == 0 || x == 1) return 0;
    double sum = 1 - x, last = -1;
    for (double y = 0.5; sum != last; y /= 2) {
        x = sqrt(x);
        last = sum;
        sum -= (1 - x) * (1 - x) * y;
    }
    return sum / 3;
}

uint64_t sketch_upper(const struct key_sketch *s) {
    static const double standard_error = 1.04 / 256; /* of sqrt(REGISTERS) */
    double counts[REST + 2] = {0};
    for (size_t i = 0; i < REGISTERS; i++) counts[s->registers[i]]++;
    const double m = REGISTERS;
    double z = m * tau(1 - counts[REST + 1] / m);
    for (int k = REST; k > 0; k--) z = 0.5 * (z + counts[k]);
    z += m * sigma(counts[0] / m);
    const double keys = m * m / (2 * log(2) * z);
    return 1 + (uint64_t)(keys * (1 + 3 * standard_error));
}
