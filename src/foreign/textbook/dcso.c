/*
 * Files of DCSO's bloom (Go, C), of flor since 2018, and of poppy's version 1,
 * little-endian:
 *
 *     u64 flags, u64 capacity, f64 rate, u64 probes, u64 bits, u64 keys,
 *     the words, and data of the user up to the end
 *
 * The low byte of the flags is the version, 1. The hash is FNV-1 with 64 bits;
 * each bit comes of a step of a generator modulo a prime.
 *
 * If the number of bits has a large power of 2 as a factor, the generator has
 * short cycles: at 2^24 bits, measured, 23 % of absent keys pass instead of 1
 * %.
 */
#include <math.h>

#include "foreign/foreign_filter.h"
#include "wire/bytes.h"

enum {
    VERSION = 1,
    AT_CAPACITY = 8,
    AT_RATE = 16,
    AT_PROBES = 24,
    AT_BITS = 32,
    AT_KEYS = 40,
    HEAD = 48,
    SHORT_CYCLES = 1 << 18 /* the rate is 1.4 times too high at this factor */
};

static const uint64_t prime = UINT64_MAX - 58;       /* 2^64 - 59   */
static const uint64_t generator = UINT64_MAX - 1468; /* 2^64 - 1469 */

/* FNV-1 multiplies before it adds a byte; hash/fnv1a.h does it after. */
static void start(const struct word_filter *w, const void *key, size_t size,
                  struct word_walk *walk) {
    (void)w;
    const uint8_t *const bytes = key;
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < size; i++)
        hash = hash * UINT64_C(0x100000001B3) ^ bytes[i];
    walk->a = hash % prime;
}

static uint64_t next(struct word_walk *walk) {
    return walk->a = walk->a * generator % prime;
}

static const struct word_rule rule = {"version 1", start, next};

static calyx_status make(uint64_t capacity, double rate,
                         struct foreign_filter *f, calyx_error *why) {
    double bits;
    const calyx_status status =
        foreign_size(capacity, rate, (double)WORD_MOST_BITS, &bits, why);
    if (status != CALYX_OK) return status;
    const double whole = fmax(1, floor(bits));
    const struct word_filter like = {
        .rule = &rule,
        .head = HEAD,
        .modulus = (uint64_t)whole,
        .probes = (uint32_t)ceil(M_LN2 * whole / (double)capacity),
        .counter = AT_KEYS};
    if (word_make(&like, f, why) != CALYX_OK) return CALYX_NO_MEMORY;
    uint8_t *const head = f->words.file;
    store_u64(head, VERSION);
    store_u64(head + AT_CAPACITY, capacity);
    store_f64(head + AT_RATE, rate);
    store_u64(head + AT_PROBES, like.probes);
    store_u64(head + AT_BITS, like.modulus);
    return CALYX_OK;
}

static calyx_status read_file(uint8_t *bytes, size_t size,
                              struct foreign_filter *f, calyx_error *why) {
    struct word_filter w = {.rule = &rule,
                            .file = bytes,
                            .size = size,
                            .head = HEAD,
                            .counter = AT_KEYS};
    if (word_expect_head(size, HEAD, why) != CALYX_OK) return CALYX_DAMAGED;
    if (bytes[0] != VERSION)
        return layout_fail(why, CALYX_DAMAGED,
                           "its first byte, the version, is %u; 1 is known",
                           bytes[0]);
    const calyx_status status = word_check(&w, load_u64(bytes + AT_BITS),
                                           load_u64(bytes + AT_PROBES), why);
    if (status != CALYX_OK) return status;
    const uint64_t words = (w.modulus + 63) / 64;
    if ((size - HEAD) / 8 < words) /* the user's data may follow */
        return word_expect_size(&w, words, why);
    word_take(&w, f);
    return CALYX_OK;
}

static void describe(const struct foreign_filter *f,
                     struct foreign_facts *facts) {
    const uint8_t *const head = f->words.file;
    word_describe(f, facts);
    facts->capacity = load_u64(head + AT_CAPACITY);
    facts->rate = load_f64(head + AT_RATE);
    facts->counts = true;
    facts->items = load_u64(head + AT_KEYS);
    if (f->words.modulus % SHORT_CYCLES == 0)
        facts->note =
            "its number of bits is a multiple of 2^18, at which the generator "
            "of this layout has short cycles: far more absent keys pass than "
            "the rate says, up to 23 % instead of 1 %";
}

const struct foreign_layout foreign_dcso = {
    .name = "dcso",
    .file = "a file of DCSO's bloom, or of poppy in version 1",
    .make = make,
    .free = word_free,
    .has_many = word_has_many,
    .add_many = word_add_many,
    .describe = describe,
    .read = read_file,
    .write = word_write,
    .save = word_save,
};
