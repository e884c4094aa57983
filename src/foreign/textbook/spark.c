/*
 * Spark's BloomFilter.writeTo (org.apache.spark.util.sketch), big-endian:
 *
 *     i32 1, i32 probes, i32 words, the words                  version 1
 *     i32 2, i32 probes, i32 seed, i32 words, the words        version 2
 *
 * A key has two hashes of 32 bits, the second seeded with the first. Version 1
 * adds them in 32 bits, so only the first 2^31 bits are ever used; version 2,
 * of Spark 4.1, adds in 64 bits. Spark hashes an integer of any type as 8
 * bytes, little-endian.
 */
#include "foreign/foreign_filter.h"
#include "foreign/textbook/murmur3_32.h"

enum { HEAD_1 = 12, HEAD_2 = 16 };

/* ---- The hash ------------------------------------------------------------ */

/* MurmurHash3 with 32 bits, except for the last bytes of a key whose length is
 * no multiple of 4: each is a word of its own, with its sign. */
static uint32_t spark_hash(const uint8_t *key, size_t size, uint32_t seed) {
    uint32_t hash = seed;
    size_t at = 0;
    for (; size - at >= 4; at += 4)
        hash = murmur3_32_word(hash, load_u32(key + at));
    for (; at < size; at++)
        hash = murmur3_32_word(hash, (uint32_t)(int8_t)key[at]);
    return murmur3_32_end(hash, size);
}

/* ---- Bits ---------------------------------------------------------------- */

static void start_1(const struct word_filter *w, const void *key, size_t size,
                    struct word_walk *walk) {
    const uint32_t hash = spark_hash(key, size, w->seed);
    walk->a = hash;
    walk->b = spark_hash(key, size, hash);
}

/* A hash with its sign, in 64 bits. */
static uint64_t wide(uint32_t hash) {
    return (uint64_t)(int64_t)(int32_t)hash;
}

static void start_2(const struct word_filter *w, const void *key, size_t size,
                    struct word_walk *walk) {
    start_1(w, key, size, walk);
    walk->a = wide((uint32_t)walk->a) * INT32_MAX;
    walk->b = wide((uint32_t)walk->b);
}

static uint64_t next_2(struct word_walk *walk) {
    walk->a += walk->b;
    return walk->a >> 63 ? ~walk->a : walk->a;
}

static const struct word_rule rules[] = {
    [1] = {"version 1", start_1, word_next_32},
    [2] = {"version 2", start_2, next_2},
};

/* ---- Files --------------------------------------------------------------- */

/* Version 1, which every Spark reads, for as many bits as it can use. */
static calyx_status make(uint64_t capacity, double rate,
                         struct foreign_filter *f, calyx_error *why) {
    uint64_t words;
    uint32_t probes;
    const calyx_status status =
        word_size_as_guava(capacity, rate, &words, &probes, why);
    if (status != CALYX_OK) return status;
    const uint32_t version = 64 * words <= UINT64_C(1) << 31 ? 1 : 2;
    const struct word_filter like = {.rule = &rules[version],
                                     .head = version == 1 ? HEAD_1 : HEAD_2,
                                     .modulus = 64 * words,
                                     .probes = probes,
                                     .order = IN_BIG_WORDS};
    if (word_make(&like, f, why) != CALYX_OK) return CALYX_NO_MEMORY;
    uint8_t *const head = f->words.file;
    put_big_endian(head, version, 4);
    put_big_endian(head + 4, probes, 4);
    put_big_endian(head + like.head - 4, words, 4); /* the seed is 0 */
    return CALYX_OK;
}

static calyx_status read_file(uint8_t *bytes, size_t size,
                              struct foreign_filter *f, calyx_error *why) {
    struct word_filter w = {.file = bytes, .size = size, .order = IN_BIG_WORDS};
    if (word_expect_head(size, HEAD_1, why) != CALYX_OK) return CALYX_DAMAGED;
    const uint64_t version = big_endian(bytes, 4);
    if (version != 1 && version != 2)
        return layout_fail(why, CALYX_DAMAGED,
                           "its first 4 bytes, the version, are %llu; 1 and 2 "
                           "are known",
                           (unsigned long long)version);
    w.head = version == 1 ? HEAD_1 : HEAD_2;
    if (word_expect_head(size, w.head, why) != CALYX_OK) return CALYX_DAMAGED;
    const calyx_status status = word_check_words(
        &w, big_endian(bytes + w.head - 4, 4), big_endian(bytes + 4, 4), why);
    if (status != CALYX_OK) return status;
    w.rule = &rules[version];
    w.seed = version == 2 ? (uint32_t)big_endian(bytes + 8, 4) : 0;
    word_take(&w, f);
    return CALYX_OK;
}

const struct foreign_layout foreign_spark = {
    .name = "spark",
    .file = "what BloomFilter.writeTo of Spark writes",
    .make = make,
    .free = word_free,
    .has_many = word_has_many,
    .add_many = word_add_many,
    .describe = word_describe,
    .read = read_file,
    .write = word_write,
    .save = word_save,
};
