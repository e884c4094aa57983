/*
 * WriteTo of the Go package bits-and-blooms/bloom, before that willf/bloom:
 *
 *     u64 bits, u64 probes           big-endian
 *     u64 length, the words          big-endian, or as the program chose
 *
 * Programs may switch the byte order of the package bitset, which writes the
 * second line. The length is at least the number of bits, and shows the order:
 * only one of the two fits the size of the file.
 *
 * There are four hashes: MurmurHash3 with 128 bits of the key, and of the key
 * and a byte 1.
 */
#include <math.h>
#include <string.h>

#include "foreign/foreign_filter.h"
#include "hash/murmur3.h"
#include "wire/bytes.h"

enum { HEAD = 24 };

/* Of the key, and of the key and a byte 1. */
static void start(const struct word_filter *w, const void *key, size_t size,
                  struct word_walk *walk) {
    (void)w;
    enum { BLOCK = 16 };
    struct murmur3_digest lanes =
        murmur3_blocks((struct murmur3_digest){0, 0}, key, size);
    uint8_t last[BLOCK] = {0};
    const size_t left = size % BLOCK;
    if (left) memcpy(last, (const uint8_t *)key + size - left, left);
    const struct murmur3_digest plain = murmur3_end(lanes, last, size);
    last[left] = 1;
    if (left == BLOCK - 1) lanes = murmur3_blocks(lanes, last, BLOCK);
    const struct murmur3_digest longer = murmur3_end(lanes, last, size + 1);
    walk->a = plain.first;
    walk->b = plain.second;
    walk->c = longer.first;
    walk->d = longer.second;
}

/* The first two hashes by turns, and multiples of the others in pairs: a, b +
 * d, a + 2 d, b + 3 c, a + 4 c, b + 5 d, .. */
static uint64_t next(struct word_walk *walk) {
    const uint64_t i = walk->number++;
    const uint64_t times = (i + i % 2) % 4 ? walk->d : walk->c;
    return (i % 2 ? walk->b : walk->a) + i * times;
}

static const struct word_rule rule = {"", start, next};

static calyx_status make(uint64_t capacity, double rate,
                         struct foreign_filter *f, calyx_error *why) {
    double bits;
    const calyx_status status =
        foreign_size(capacity, rate, (double)WORD_MOST_BITS, &bits, why);
    if (status != CALYX_OK) return status;
    const double whole = fmax(1, ceil(bits));
    const struct word_filter like = {
        .rule = &rule,
        .head = HEAD,
        .modulus = (uint64_t)whole,
        .probes = (uint32_t)ceil(M_LN2 * whole / (double)capacity),
        .order = IN_BIG_WORDS};
    if (word_make(&like, f, why) != CALYX_OK) return CALYX_NO_MEMORY;
    uint8_t *const head = f->words.file;
    put_big_endian(head, like.modulus, 8);
    put_big_endian(head + 8, like.probes, 8);
    put_big_endian(head + 16, like.modulus, 8);
    return CALYX_OK;
}

/* Are there words for this many bits? */
static bool fits(uint64_t length, uint64_t bits, uint64_t size) {
    return length >= bits && length <= WORD_MOST_BITS &&
           size == HEAD + 8 * ((length + 63) / 64);
}

static calyx_status read_file(uint8_t *bytes, size_t size,
                              struct foreign_filter *f, calyx_error *why) {
    struct word_filter w = {
        .rule = &rule, .file = bytes, .size = size, .head = HEAD};
    if (word_expect_head(size, HEAD, why) != CALYX_OK) return CALYX_DAMAGED;
    const calyx_status status =
        word_check(&w, big_endian(bytes, 8), big_endian(bytes + 8, 8), why);
    if (status != CALYX_OK) return status;
    const uint64_t length = big_endian(bytes + 16, 8);
    const bool is_big = fits(length, w.modulus, size);
    w.order = is_big ? IN_BIG_WORDS : IN_WORDS;
    if (!is_big && !fits(load_u64(bytes + 16), w.modulus, size))
        return layout_fail(why, CALYX_DAMAGED,
                           "its head says that it has %llu bits in a set of "
                           "%llu, and %zu bytes are there",
                           (unsigned long long)w.modulus,
                           (unsigned long long)length, size);
    word_take(&w, f);
    return CALYX_OK;
}

const struct foreign_layout foreign_bits_and_blooms = {
    .name = "bits-and-blooms",
    .file = "what WriteTo of bits-and-blooms/bloom (Go) writes",
    .make = make,
    .free = word_free,
    .has_many = word_has_many,
    .add_many = word_add_many,
    .describe = word_describe,
    .read = read_file,
    .write = word_write,
    .save = word_save,
};
