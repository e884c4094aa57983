/*
 * A filter for each block of a table, as LevelDB stores it:
 *
 *     bits of a flat filter, whole bytes | mark, 2 bytes, little-endian
 *
 * The mark is the number of probes less 1 in its low 4 bits, and 12 bits of a
 * sum of all the rest, since LevelDB by default does not check what it reads:
 * a bit that is lost on the disk would be a key that is lost. A filter that
 * does not fit its mark, or none at all, answers "maybe"; one damage in 4096
 * passes unnoticed.
 *
 * LevelDB's blocks have some 30 keys, so a filter has some 300 bits. Of the
 * kinds, flat is the one that can be so small: a line has 512. The bits are
 * built and looked up where they lie, without a calyx_filter.
 */
#include "policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MARK_BYTES = 2, PROBE_BITS = 4, MOST_PROBES = 1 << PROBE_BITS };

struct policy {
    int bits_per_key;
    calyx_filter *keys;            /* nobody adds to it: it knows how to hash */
    calyx_shape flat[MOST_PROBES]; /* of 1 probe, and so on; of any size */
};

/* The blocks of this kind are bits. */
static calyx_shape shape_of(const struct policy *policy, size_t size,
                            uint32_t probes) {
    calyx_shape shape = policy->flat[probes - 1];
    shape.blocks = 8 * (uint64_t)size;
    return shape;
}

/* ---- Asking ---------------------------------------------------------------
 */

static uint64_t word_at(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* Short, as it is computed for every lookup: a product for each 8 bytes, none
 * of which waits for another. The last word overlaps the one before. There are
 * 7 bytes at least. */
static uint64_t sum_of(const uint8_t *bits, size_t size) {
    const uint64_t prime = UINT64_C(0x9FB21C651E98DF25);
    const uint64_t step = UINT64_C(0x9E3779B97F4A7C16); /* even: all are odd */
    uint64_t sum = size, factor = prime;
    uint8_t few[8] = {0};
    const uint8_t *last = few;
    if (size < 8)
        memcpy(few, bits, size);
    else
        last = bits + size - 8;
    for (size_t i = 0; i + 8 < size; i += 8, factor += step)
        sum += word_at(bits + i) * factor;
    sum += word_at(last) * factor;
    return (sum ^ sum >> 32) * prime;
}

static unsigned mark_of(const uint8_t *bits, size_t size, uint32_t probes) {
    const unsigned low = probes - 1;
    return ((unsigned)(sum_of(bits, size) >> 52) ^ low) << PROBE_BITS | low;
}

/* Only a "no" needs a sound filter: a wrong "maybe" reads a block in vain. */
static uint8_t may_match(void *state, const char *key, size_t key_size,
                         const char *stored, size_t length) {
    const struct policy *const policy = state;
    const uint8_t *const filter = (const uint8_t *)stored;
    if (length <= MARK_BYTES) return 1;
    const size_t size = length - MARK_BYTES;
    const unsigned mark = filter[size] | (unsigned)filter[size + 1] << 8;
    const uint32_t probes = mark % MOST_PROBES + 1;
    return calyx_bits_has(shape_of(policy, size, probes), filter,
                          calyx_hash(policy->keys, key, key_size)) ||
           mark_of(filter, size, probes) != mark;
}

/* ---- Making ---------------------------------------------------------------
 */

static void fill(const struct policy *policy, const char *const *keys,
                 const size_t *sizes, int n, uint32_t probes, uint8_t *bits,
                 size_t size) {
    const calyx_shape shape = shape_of(policy, size, probes);
    memset(bits, 0, size);
    for (int i = 0; i < n; i++) {
        const uint64_t hash = calyx_hash(policy->keys, keys[i], sizes[i]);
        calyx_bits_add(shape, bits, &hash, 1);
    }
}

/* The textbook's best number: bits * ln 2. */
static uint32_t best_probes(double bits_a_key) {
    const double best = 0.69314718 * bits_a_key + 0.5;
    return best < 1 ? 1 : best < MOST_PROBES ? (uint32_t)best : MOST_PROBES;
}

/* As large as LevelDB's own, which has whole bytes of bits and one byte after
 * them; we have one less, and two. LevelDB gives it back with free(), and takes
 * a filter of no bytes for one of no keys: without memory for any there is no
 * right answer left. */
static char *create(void *state, const char *const *keys, const size_t *sizes,
                    int n, size_t *length) {
    const struct policy *const policy = state;
    const uint64_t wanted = (uint64_t)n * (uint64_t)policy->bits_per_key;
    const size_t size = (size_t)((wanted < 64 ? 64 : wanted) - 1) / 8;
    uint8_t *const filter = malloc(size + MARK_BYTES);
    if (!filter) {
        fputs("calyx_leveldb_policy: out of memory\n", stderr);
        abort();
    }
    const double bits_a_key = 8 * (double)size / (n > 0 ? n : 1);
    const uint32_t probes = best_probes(bits_a_key);
    fill(policy, keys, sizes, n, probes, filter, size);
    const unsigned mark = mark_of(filter, size, probes);
    filter[size] = (uint8_t)mark;
    filter[size + 1] = (uint8_t)(mark >> 8);
    *length = size + MARK_BYTES;
    return (char *)filter;
}

/* ---- The policy -----------------------------------------------------------
 */

/* LevelDB uses only filters that were stored under this name. Whoever changes
 * what is stored changes the number. */
static const char *name(void *state) {
    (void)state;
    return "calyx.flat.3";
}

static void end(void *state) {
    struct policy *const policy = state;
    calyx_free(policy->keys);
    free(policy);
}

static calyx_status start(struct policy *policy, int bits_per_key,
                          calyx_error *why) {
    const calyx_options keys = {.kind = "flat", .capacity = 1, .seed = 1};
    policy->bits_per_key = bits_per_key;
    calyx_status status = calyx_shape_plan(&keys, &policy->flat[0], why);
    for (uint32_t i = MOST_PROBES; i-- > 0;) {
        policy->flat[i] = policy->flat[0];
        policy->flat[i].probes = i + 1;
    }
    if (status == CALYX_OK) status = calyx_new(&keys, &policy->keys, why);
    return status;
}

static void *refuse(calyx_error *why, calyx_status status, const char *text) {
    if (!why) return NULL;
    *why = (calyx_error){.status = status};
    snprintf(why->text, sizeof why->text, "%s", text);
    return NULL;
}

leveldb_filterpolicy_t *calyx_leveldb_policy(int bits_per_key,
                                             calyx_error *why) {
    if (bits_per_key < 1 || bits_per_key > 32) {
        char text[80];
        snprintf(text, sizeof text, "bits_per_key must be 1 to 32, not %d",
                 bits_per_key);
        return refuse(why, CALYX_BAD_ARGUMENT, text);
    }
    struct policy *const policy = calloc(1, sizeof *policy);
    if (!policy)
        return refuse(why, CALYX_NO_MEMORY, "out of memory for a policy");
    if (start(policy, bits_per_key, why) != CALYX_OK) {
        end(policy);
        return NULL;
    }
    return leveldb_filterpolicy_create(policy, end, create, may_match, name);
}
