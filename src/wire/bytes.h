/* Numbers in dumps and files of hashes: 8 or 4 bytes, the lowest first; of a
 * double the bytes of the IEEE format. */
#ifndef CALYX_WIRE_BYTES_H
#define CALYX_WIRE_BYTES_H

#include <stdint.h>
#include <string.h>

static inline void store_u64(uint8_t *to, uint64_t value) {
    for (int i = 0; i < 8; i++) to[i] = (uint8_t)(value >> 8 * i);
}

static inline uint64_t load_u64(const uint8_t *from) {
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--) value = value << 8 | from[i];
    return value;
}

static inline void store_f64(uint8_t *to, double value) {
    uint64_t word;
    memcpy(&word, &value, sizeof word);
    store_u64(to, word);
}

static inline double load_f64(const uint8_t *from) {
    const uint64_t word = load_u64(from);
    double value;
    memcpy(&value, &word, sizeof value);
    return value;
}

static inline void store_u32(uint8_t *to, uint32_t value) {
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(value >> 8 * i);
}

static inline uint32_t load_u32(const uint8_t *from) {
    uint32_t value = 0;
    for (int i = 3; i >= 0; i--) value = value << 8 | from[i];
    return value;
}

#endif
