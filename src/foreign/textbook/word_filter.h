/*
 * Textbook Bloom filters that other programs write as one file: a head, and
 * `modulus` bits. What differs is the head, the order of the bits, and the rule
 * by which a key selects its bits.
 *
 * The file stays as it is, and lookups go to the bits in it. So what goes back
 * is what came, byte for byte, whatever the head had.
 */
#ifndef CALYX_FOREIGN_WORD_FILTER_H
#define CALYX_FOREIGN_WORD_FILTER_H

#include <calyx/calyx.h>

#include "foreign/textbook/layout_line.h"

struct foreign_filter;
struct foreign_facts;
struct foreign_sink;
struct record_sink;

struct word_filter {
    const struct word_rule *rule;
    uint8_t *file;
    uint64_t size;
    uint64_t head;    /* bytes before the bits */
    uint64_t modulus; /* bits that keys can set */
    uint64_t inverse; /* of the modulus (derived) */
    uint32_t probes;
    uint32_t seed;
    uint32_t counter; /* where in the head new keys are counted, by 8 bytes,
                         little-endian; 0: nowhere                          */
    enum bit_order order;
    struct {
        uint8_t shift, byte_flip, mask, bit_flip;
    } place;                 /* of a bit, by the order (derived) */
    struct layout_line line; /* of a layout that was given as a line */
};

/* Where a key stands between two of its bits. */
struct word_walk {
    uint64_t a, b, c, d;
    uint32_t number;                  /* of the next bit */
    const struct word_filter *filter; /* for rules that hash for each bit */
    const uint8_t *key;
    size_t size;
};

struct word_rule {
    const char *name; /* of the variant */
    void (*start)(const struct word_filter *w, const void *key, size_t size,
                  struct word_walk *walk);
    /* The next bit: any number, taken modulo `modulus`. */
    uint64_t (*next)(struct word_walk *walk);
};

/* A `next` that two libraries have: a + i b in 32 bits with a sign, for i = 1,
 * 2, ..; of a negative sum, the complement. */
uint64_t word_next_32(struct word_walk *walk);

enum {
    /* The lowest rate that a double can hold takes 1074. */
    WORD_MOST_PROBES = 4096,
};
#define WORD_MOST_BITS (UINT64_C(1) << 48)

/* Fill in the file of a new filter, all zeros except its head. */
calyx_status word_make(const struct word_filter *like, struct foreign_filter *f,
                       calyx_error *why);
/* Take over a file whose head was read. */
void word_take(const struct word_filter *w, struct foreign_filter *f);
/* Check what all layouts must have. `probes` and `modulus` are set only if this
 * succeeds. */
calyx_status word_check(struct word_filter *w, uint64_t modulus,
                        uint64_t probes, calyx_error *why);
/* The same for a file whose head counts words, in 32 bits with a sign. */
calyx_status word_check_words(struct word_filter *w, uint64_t words,
                              uint64_t probes, calyx_error *why);
/* How large Guava makes a filter, and Spark, which has its formulas. */
calyx_status word_size_as_guava(uint64_t capacity, double rate, uint64_t *words,
                                uint32_t *probes, calyx_error *why);
/* Bytes of the bits. */
uint64_t word_body(const struct word_filter *w);
/* The file must have a head of this size. */
calyx_status word_expect_head(uint64_t size, uint64_t head, calyx_error *why);
/* The file ends after its bits, and no bit is set at a position that no key
 * has. For layouts that are not made of words. */
calyx_status word_expect_bits(struct word_filter *w, calyx_error *why);
/* The file ends after its words. */
calyx_status word_expect_size(const struct word_filter *w, uint64_t words,
                              calyx_error *why);

/* Members of a layout. */
void word_free(struct foreign_filter *f);
void word_has_many(const struct foreign_filter *f, const calyx_key *keys,
                   size_t n, bool *found);
calyx_status word_add_many(struct foreign_filter *f, const calyx_key *keys,
                           size_t n, calyx_error *why);
void word_describe(const struct foreign_filter *f, struct foreign_facts *facts);
void word_write(const struct foreign_filter *f, const struct foreign_sink *to);
calyx_status word_save(const struct foreign_filter *f,
                       const struct record_sink *to, calyx_error *why);

/* ---- Numbers in heads ---------------------------------------------------- */

static inline uint64_t big_endian(const uint8_t *at, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) value = value << 8 | at[i];
    return value;
}

static inline void put_big_endian(uint8_t *at, uint64_t value, int bytes) {
    for (int i = bytes; i > 0; i--, value >>= 8) at[i - 1] = (uint8_t)value;
}

#endif
