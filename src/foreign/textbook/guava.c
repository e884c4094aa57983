/*
 * Guava's BloomFilter.writeTo, big-endian:
 *
 *     u8 strategy, u8 probes, i32 words, the words
 *
 * The hash is MurmurHash3 with 128 bits and seed 0, of the bytes that the
 * funnel of the program makes of an item. The file does not name the funnel.
 * Strategy 1 is MURMUR128_MITZ_64, the default since Guava 12; 0 is
 * MURMUR128_MITZ_32, which uses only the first half of the hash.
 */
#include "foreign/foreign_filter.h"
#include "hash/murmur3.h"

enum { HEAD = 6, MITZ_32 = 0, MITZ_64 = 1 };

static void start_64(const struct word_filter *w, const void *key, size_t size,
                     struct word_walk *walk) {
    (void)w;
    const struct murmur3_digest hash = murmur3_128(0, key, size);
    walk->a = hash.first;
    walk->b = hash.second;
}

static uint64_t next_64(struct word_walk *walk) {
    const uint64_t sum = walk->a;
    walk->a += walk->b;
    return sum & INT64_MAX;
}

static void start_32(const struct word_filter *w, const void *key, size_t size,
                     struct word_walk *walk) {
    (void)w;
    const uint64_t hash = murmur3_128(0, key, size).first;
    walk->a = hash & UINT32_MAX;
    walk->b = hash >> 32;
}

static const struct word_rule rules[] = {
    [MITZ_32] = {"MURMUR128_MITZ_32", start_32, word_next_32},
    [MITZ_64] = {"MURMUR128_MITZ_64", start_64, next_64},
};

static calyx_status make(uint64_t capacity, double rate,
                         struct foreign_filter *f, calyx_error *why) {
    uint64_t words;
    uint32_t probes;
    const calyx_status status =
        word_size_as_guava(capacity, rate, &words, &probes, why);
    if (status != CALYX_OK) return status;
    if (probes > UINT8_MAX)
        return layout_fail(why, CALYX_CANNOT,
                           "Guava has room for at most 255 bits of a key, and "
                           "this rate takes %u",
                           probes);
    const struct word_filter like = {.rule = &rules[MITZ_64],
                                     .head = HEAD,
                                     .modulus = 64 * words,
                                     .probes = probes,
                                     .order = IN_BIG_WORDS};
    if (word_make(&like, f, why) != CALYX_OK) return CALYX_NO_MEMORY;
    f->words.file[0] = MITZ_64;
    f->words.file[1] = (uint8_t)probes;
    put_big_endian(f->words.file + 2, words, 4);
    return CALYX_OK;
}

static calyx_status read_file(uint8_t *bytes, size_t size,
                              struct foreign_filter *f, calyx_error *why) {
    struct word_filter w = {
        .file = bytes, .size = size, .head = HEAD, .order = IN_BIG_WORDS};
    if (word_expect_head(size, HEAD, why) != CALYX_OK) return CALYX_DAMAGED;
    if (bytes[0] == 0xAC && bytes[1] == 0xED)
        return layout_fail(why, CALYX_DAMAGED,
                           "it is a serialized Java object; Guava's "
                           "BloomFilter.writeTo makes the right file");
    if (bytes[0] > MITZ_64)
        return layout_fail(why, CALYX_DAMAGED,
                           "its first byte, the strategy, is %u; 0 and 1 are "
                           "known",
                           bytes[0]);
    const calyx_status status =
        word_check_words(&w, big_endian(bytes + 2, 4), bytes[1], why);
    if (status != CALYX_OK) return status;
    w.rule = &rules[bytes[0]];
    word_take(&w, f);
    return CALYX_OK;
}

const struct foreign_layout foreign_guava = {
    .name = "guava",
    .file = "what BloomFilter.writeTo of Guava writes",
    .make = make,
    .free = word_free,
    .has_many = word_has_many,
    .add_many = word_add_many,
    .describe = word_describe,
    .read = read_file,
    .write = word_write,
    .save = word_save,
};
