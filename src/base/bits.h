/* Small integer tools: no state, no branches, no surprises.
 *
 * Bodies and files are little-endian on every machine. Words in them are read
 * and written through the functions below, never by casting a pointer. */
#ifndef CALYX_BITS_H
#define CALYX_BITS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Turn a word of the machine into a little-endian one, and back. */
static inline uint16_t little16(uint16_t x) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return __builtin_bswap16(x);
#else
    return x;
#endif
}

static inline uint32_t little32(uint32_t x) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return __builtin_bswap32(x);
#else
    return x;
#endif
}

static inline uint64_t little64(uint64_t x) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return __builtin_bswap64(x);
#else
    return x;
#endif
}

static inline uint64_t rotate_left(uint64_t x, int by) {
    return x << by | x >> (64 - by);
}

/* The builtin, which _FORTIFY_SOURCE does not wrap: words have a fixed size,
 * and with the wrapper gcc inlines less of what is made of them. */
static inline uint32_t load16(const void *p) {
    uint16_t x;
    __builtin_memcpy(&x, p, sizeof x);
    return little16(x);
}

static inline void store16(void *p, uint32_t x) {
    const uint16_t little = little16((uint16_t)x);
    __builtin_memcpy(p, &little, sizeof little);
}

static inline uint32_t load32(const void *p) {
    uint32_t x;
    __builtin_memcpy(&x, p, sizeof x);
    return little32(x);
}

static inline uint64_t load64(const void *p) {
    uint64_t x;
    __builtin_memcpy(&x, p, sizeof x);
    return little64(x);
}

static inline void store32(void *p, uint32_t x) {
    x = little32(x);
    __builtin_memcpy(p, &x, sizeof x);
}

static inline void store64(void *p, uint64_t x) {
    x = little64(x);
    __builtin_memcpy(p, &x, sizeof x);
}

/* Words of a body that other threads may be adding to; aligned. A plain |=
 * would now and then lose the bits that another thread set between its load and
 * its store. The old word is not returned: most processors can set bits
 * atomically, but few can also return the old ones. */
static inline uint32_t peek32(const void *p) {
    return little32(__atomic_load_n((const uint32_t *)p, __ATOMIC_RELAXED));
}

static inline uint64_t peek64(const void *p) {
    return little64(__atomic_load_n((const uint64_t *)p, __ATOMIC_RELAXED));
}

/* Where only one thread writes at a time. */
static inline void poke32(void *p, uint32_t x) {
    __atomic_store_n((uint32_t *)p, little32(x), __ATOMIC_RELAXED);
}

static inline void poke64(void *p, uint64_t x) {
    __atomic_store_n((uint64_t *)p, little64(x), __ATOMIC_RELAXED);
}

/* Copy such words; the size is a multiple of 8. */
static inline void peek_bytes(void *to, const void *from, uint64_t size) {
    for (uint64_t i = 0; i < size; i += 8)
        store64((uint8_t *)to + i, peek64((const uint8_t *)from + i));
}

static inline void set64(void *p, uint64_t bits) {
    __atomic_fetch_or((uint64_t *)p, little64(bits), __ATOMIC_RELAXED);
}

/* Change a byte from one value to another, if it has that one. Compilers for
 * RISC-V call libatomic for a byte; so it is done with the word around it, all
 * of which must be the caller's. */
static inline bool change_byte(uint8_t *p, uint8_t from, uint8_t to) {
#if defined(__riscv)
    uint32_t *const word = (uint32_t *)(void *)(p - (uintptr_t)p % 4);
    const unsigned shift = 8 * ((uintptr_t)p % 4);
    uint32_t old = __atomic_load_n(word, __ATOMIC_RELAXED);
    while ((uint8_t)(old >> shift) == from)
        if (__atomic_compare_exchange_n(
                word, &old, old ^ (uint32_t)(from ^ to) << shift, true,
                __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return true;
    return false;
#else
    return __atomic_compare_exchange_n(p, &from, to, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
#endif
}

#if UINTPTR_MAX > UINT32_MAX
__extension__ typedef unsigned __int128 wide_product; /* not of ISO C */
#endif

/* Spread a hash evenly over [0, n): a multiplication in place of a division.
 * Only the high bits of the hash matter much. Dividing n by a whole number
 * divides every result by it, rounded down; that is what makes folding work. */
static inline uint64_t scale64(uint64_t hash, uint64_t n) {
#if UINTPTR_MAX > UINT32_MAX
    uint64_t high = (uint64_t)((wide_product)hash * n >> 64);
#ifdef __clang__
    /* Else clang joins this shift and the caller's into one shift over both
     * words of the product: a slow instruction, 40 % of a lookup. */
    __asm__("" : "+r"(high));
#endif
    return high;
#else
    /* A machine of 32 bits multiplies no such words, and calling a function
     * that does takes longer than the rest of a lookup. */
    const uint64_t high = hash >> 32, low = (uint32_t)hash;
    const uint64_t middle = high * (uint32_t)n + (low * (uint32_t)n >> 32);
    const uint64_t other = low * (n >> 32) + (uint32_t)middle;
    return high * (n >> 32) + (middle >> 32) + (other >> 32);
#endif
}

#if defined(__x86_64__)
/* The same for processors with BMI2, by mulx, which has no fixed registers for
 * its result. */
static inline uint64_t scale64_mulx(uint64_t hash, uint64_t n) {
    uint64_t high;
    __asm__("mulx {%1, %0, %0|%0, %0, %1}" : "=r"(high) : "r"(hash), "d"(n));
    return high;
}
#endif

/* hash * n as two words: scale64, and the fraction after it. */
struct scaled {
    uint64_t whole, rest;
};

static inline struct scaled scale_whole(uint64_t hash, uint64_t n) {
#if UINTPTR_MAX > UINT32_MAX
    const wide_product product = (wide_product)hash * n;
    return (struct scaled){(uint64_t)(product >> 64), (uint64_t)product};
#else
    return (struct scaled){scale64(hash, n), hash * n};
#endif
}

/* The lowest hash whose product with n is this or more; `to.whole` is less than
 * n, and n less than 2^63. Long division, for machines without integers of 128
 * bits. */
static inline uint64_t unscale_whole(struct scaled to, uint64_t n) {
#if UINTPTR_MAX > UINT32_MAX
    const wide_product product = (wide_product)to.whole << 64 | to.rest;
    return (uint64_t)((product + n - 1) / n);
#else
    uint64_t quotient = 0, left = to.whole;
    for (uint32_t i = 64; i-- > 0;) {
        left = 2 * left + (to.rest >> i & 1);
        quotient = 2 * quotient + (left >= n);
        if (left >= n) left -= n;
    }
    return quotient + (left > 0);
#endif
}

/* The lowest hash that scale64 takes to this number below n. */
static inline uint64_t lowest_scaled64(uint64_t number, uint64_t n) {
    return unscale_whole((struct scaled){number, 0}, n);
}

static inline uint32_t scale32(uint32_t hash, uint32_t n) {
    return (uint32_t)((uint64_t)hash * n >> 32);
}

#endif
