#include "foreign/textbook/word_filter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "foreign/foreign_filter.h"
#include "foreign/modulo.h"
#include "wire/bytes.h"

/* ---- Bits ---------------------------------------------------------------- */

uint64_t word_next_32(struct word_walk *walk) {
    walk->a += walk->b;
    const uint32_t sum = (uint32_t)walk->a;
    return sum >> 31 ? ~sum : sum;
}

/* Without branches: all probes of a lookup use it. */
static void derive_place(struct word_filter *w) {
    const bool has_bits = w->order != BYTE_EACH;
    w->place.shift = has_bits ? 3 : 0;
    w->place.mask = has_bits ? 7 : 0;
    w->place.byte_flip = w->order == IN_BIG_WORDS ? 7 : 0;
    w->place.bit_flip = w->order == MSB_FIRST ? 7 : 0;
}

/* The byte of a bit. A big-endian word has its lowest byte last. */
static uint8_t *byte_of(const struct word_filter *w, uint64_t bit) {
    return w->file + w->head + ((bit >> w->place.shift) ^ w->place.byte_flip);
}

/* The bit within its byte. */
static unsigned place_of(const struct word_filter *w, uint64_t bit) {
    return ((unsigned)bit & w->place.mask) ^ w->place.bit_flip;
}

static uint64_t next_bit(const struct word_filter *w, struct word_walk *walk) {
    return modulo(w->rule->next(walk), w->modulus, w->inverse);
}

static struct word_walk walk_of(const struct word_filter *w,
                                const calyx_key *key) {
    return (struct word_walk){.filter = w, .key = key->data, .size = key->size};
}

/* The same bit of all keys that still have all so far: prefetched for each,
 * then tested. Memory is waited for once, not for each key: 40 % of the time in
 * a filter of 7 MB. */
enum { BATCH = 32 };
static void has_batch(const struct word_filter *w, const calyx_key *keys,
                      size_t n, bool *found) {
    struct word_walk walks[BATCH];
    uint64_t bits[BATCH];
    uint8_t left[BATCH]; /* the keys that may be found */
    for (size_t i = 0; i < n; i++) {
        walks[i] = walk_of(w, &keys[i]);
        w->rule->start(w, keys[i].data, keys[i].size, &walks[i]);
        left[i] = (uint8_t)i;
        found[i] = false;
    }
    for (uint32_t probe = 0; probe < w->probes && n > 0; probe++) {
        size_t kept = 0;
        for (size_t i = 0; i < n; i++) {
            bits[i] = next_bit(w, &walks[left[i]]);
            __builtin_prefetch(byte_of(w, bits[i]));
        }
        for (size_t i = 0; i < n; i++) {
            left[kept] = left[i];
            kept += *byte_of(w, bits[i]) >> place_of(w, bits[i]) & 1;
        }
        n = kept;
    }
    for (size_t i = 0; i < n; i++) found[left[i]] = true;
}

/* True if a bit was missing. */
static bool add(struct word_filter *w, const calyx_key *key) {
    struct word_walk walk = walk_of(w, key);
    bool fresh = false;
    w->rule->start(w, key->data, key->size, &walk);
    for (uint32_t i = 0; i < w->probes; i++) {
        const uint64_t bit = next_bit(w, &walk);
        uint8_t *const byte = byte_of(w, bit);
        const uint8_t mask = (uint8_t)(1u << place_of(w, bit));
        fresh |= !(*byte & mask);
        *byte |= mask;
    }
    return fresh;
}

void word_has_many(const struct foreign_filter *f, const calyx_key *keys,
                   size_t n, bool *found) {
    for (size_t from = 0; from < n; from += BATCH) {
        const size_t some = n - from < BATCH ? n - from : BATCH;
        has_batch(&f->words, keys + from, some, found + from);
    }
}

calyx_status word_add_many(struct foreign_filter *f, const calyx_key *keys,
                           size_t n, calyx_error *why) {
    (void)why;
    struct word_filter *const w = &f->words;
    uint64_t fresh = 0;
    for (size_t i = 0; i < n; i++) fresh += add(w, &keys[i]);
    uint8_t *const counter = w->file + w->counter;
    if (w->counter) store_u64(counter, load_u64(counter) + fresh);
    return CALYX_OK;
}

/* ---- Heads --------------------------------------------------------------- */

calyx_status word_expect_head(uint64_t size, uint64_t head, calyx_error *why) {
    if (size >= head) return CALYX_OK;
    return layout_fail(why, CALYX_DAMAGED,
                       "its head has %llu bytes, and %llu are there",
                       (unsigned long long)head, (unsigned long long)size);
}

calyx_status word_check(struct word_filter *w, uint64_t modulus,
                        uint64_t probes, calyx_error *why) {
    if (probes < 1 || probes > WORD_MOST_PROBES)
        return layout_fail(why, CALYX_DAMAGED,
                           "its head says that a key sets %llu bits; 1 to %d "
                           "are possible",
                           (unsigned long long)probes, WORD_MOST_PROBES);
    if (modulus < 1 || modulus > WORD_MOST_BITS)
        return layout_fail(why, CALYX_DAMAGED,
                           "its head says that it has %llu bits; 1 to 2^48 are "
                           "possible",
                           (unsigned long long)modulus);
    w->modulus = modulus;
    w->probes = (uint32_t)probes;
    return CALYX_OK;
}

calyx_status word_check_words(struct word_filter *w, uint64_t words,
                              uint64_t probes, calyx_error *why) {
    if (words < 1 || words > INT32_MAX)
        return layout_fail(why, CALYX_DAMAGED,
                           "its head says that it has %d words of bits",
                           (int)(uint32_t)words);
    const calyx_status status = word_check(w, 64 * words, probes, why);
    return status == CALYX_OK ? word_expect_size(w, words, why) : status;
}

calyx_status word_size_as_guava(uint64_t capacity, double rate, uint64_t *words,
                                uint32_t *probes, calyx_error *why) {
    double bits;
    const calyx_status status =
        foreign_size(capacity, rate, 64. * INT32_MAX, &bits, why);
    if (status != CALYX_OK) return status;
    bits = floor(bits);
    *words = (uint64_t)fmax(1, ceil(bits / 64));
    *probes = (uint32_t)fmax(1, floor(bits / (double)capacity * M_LN2 + 0.5));
    return CALYX_OK;
}

calyx_status word_expect_size(const struct word_filter *w, uint64_t words,
                              calyx_error *why) {
    const uint64_t wanted = w->head + 8 * words;
    if (w->size == wanted) return CALYX_OK;
    return layout_fail(why, CALYX_DAMAGED,
                       "its head says that it has %llu words of bits, which "
                       "makes %llu bytes in all, and %llu are there",
                       (unsigned long long)words, (unsigned long long)wanted,
                       (unsigned long long)w->size);
}

uint64_t word_body(const struct word_filter *w) {
    switch (w->order) {
        case BYTE_EACH: return w->modulus;
        case LSB_FIRST:
        case MSB_FIRST: return (w->modulus + 7) / 8;
        default: return (w->modulus + 63) / 64 * 8;
    }
}

/* The first byte that says more than 0 or 1. */
static calyx_status expect_flags(const struct word_filter *w,
                                 calyx_error *why) {
    const uint8_t *const body = w->file + w->head;
    for (uint64_t i = 0; i < w->modulus; i++)
        if (body[i] > 1)
            return layout_fail(why, CALYX_DAMAGED,
                               "in a layout of one byte for a bit each byte is "
                               "0 or 1, and byte %llu is %u",
                               (unsigned long long)i, body[i]);
    return CALYX_OK;
}

calyx_status word_expect_bits(struct word_filter *w, calyx_error *why) {
    derive_place(w);
    const uint64_t wanted = word_body(w), there = w->size - w->head;
    char hint[120] = "";
    if (there < wanted)
        snprintf(hint, sizeof hint,
                 "; if its owner leaves out zeros at the end, 'truncate -s "
                 "%llu FILE' adds them",
                 (unsigned long long)(w->head + wanted));
    if (there != wanted)
        return layout_fail(why, CALYX_DAMAGED,
                           "%llu bits take %llu bytes, and %llu are there%s",
                           (unsigned long long)w->modulus,
                           (unsigned long long)wanted,
                           (unsigned long long)there, hint);
    if (w->order == BYTE_EACH) return expect_flags(w, why);
    for (uint64_t bit = w->modulus; bit < 8 * wanted; bit++)
        if (*byte_of(w, bit) >> place_of(w, bit) & 1)
            return layout_fail(why, CALYX_DAMAGED,
                               "bit %llu is set, and the layout has %llu bits: "
                               "their number or their order is another one",
                               (unsigned long long)bit,
                               (unsigned long long)w->modulus);
    return CALYX_OK;
}

/* ---- The whole ----------------------------------------------------------- */

calyx_status word_make(const struct word_filter *like, struct foreign_filter *f,
                       calyx_error *why) {
    struct word_filter w = *like;
    w.size = w.head + word_body(&w);
    w.file = w.size <= SIZE_MAX ? calloc(1, (size_t)w.size) : NULL;
    if (!w.file)
        return layout_fail(why, CALYX_NO_MEMORY, "no memory for %llu bytes",
                           (unsigned long long)w.size);
    word_take(&w, f);
    return CALYX_OK;
}

void word_take(const struct word_filter *w, struct foreign_filter *f) {
    f->words = *w;
    f->words.inverse = inverse_of(w->modulus);
    derive_place(&f->words);
}

void word_free(struct foreign_filter *f) {
    free(f->words.file);
}

void word_describe(const struct foreign_filter *f,
                   struct foreign_facts *facts) {
    const struct word_filter *const w = &f->words;
    *facts = (struct foreign_facts){
        .variant = w->rule->name,
        .bits = w->modulus,
        .set = foreign_count_bits(w->file + w->head, word_body(w)),
        .parts = 1,
        .probes = w->probes,
    };
    const double fill = (double)facts->set / (double)facts->bits;
    facts->rate_now = pow(fmin(1, fill), w->probes);
    facts->distinct =
        fill < 1 ? -(double)w->modulus / w->probes * log1p(-fill) : 0;
}

void word_write(const struct foreign_filter *f, const struct foreign_sink *to) {
    to->put(to->context, f->words.file, (size_t)f->words.size);
}

calyx_status word_save(const struct foreign_filter *f,
                       const struct record_sink *to, calyx_error *why) {
    (void)why;
    const struct word_filter *const w = &f->words;
    for (uint64_t at = 0; at < w->size;) {
        const uint64_t left = w->size - at;
        const size_t n =
            left < FOREIGN_MOST_PIECE ? (size_t)left : FOREIGN_MOST_PIECE;
        at += n;
        to->put(to->context, at, w->file + at - n, n);
    }
    return CALYX_OK;
}
