/*
 * A filter for each block of a table, as LevelDB stores it:
 *
 *     bits of a flat filter, whole bytes | mark, 2 bytes, little-endian
 *
 * The mark is the number of probes less 1 in its low 4 bits, and 12 bits of a
 * hash of all the rest, since LevelDB by default does not check what it reads:
 * a bit that is lost on the disk would be a key that is lost. A filter that
 * does not fit its mark, or none at all, answers "maybe"; one damage in 4096
 * passes unnoticed.
 *
 * LevelDB's blocks have some 30 keys, so a filter has some 300 bits. Of the
 * kinds, flat is the one that can be so small: a line has 512. Calyx makes the
 * filters; lookups read them in place, by the rule of doc/FORMAT.md, since
 * making a calyx_filter of them again would take longer than many a disk.
 */
#include "policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MARK_BYTES = 2, PROBE_BITS = 4, MOST_PROBES = 1 << PROBE_BITS };

/* Two filters that nobody adds to: they know how to hash. */
struct policy {
    int bits_per_key;
    calyx_filter *keys, *marks;
};

/* ---- Asking ---------------------------------------------------------------
 */

static unsigned mark_of(const struct policy *policy, const uint8_t *bits,
                        size_t size, uint32_t probes) {
    const uint64_t hash = calyx_hash(policy->marks, bits, size);
    const unsigned low = probes - 1;
    return ((unsigned)(hash >> 52) ^ low) << PROBE_BITS | low;
}

/* The probes of a filter that is sound, or 0. */
static uint32_t probes_of(const struct policy *policy, const uint8_t *filter,
                          size_t length) {
    if (length <= MARK_BYTES) return 0;
    const size_t size = length - MARK_BYTES;
    const unsigned mark = filter[size] | (unsigned)filter[size + 1] << 8;
    const uint32_t probes = mark % MOST_PROBES + 1;
    return mark_of(policy, filter, size, probes) == mark ? probes : 0;
}

static uint8_t may_match(void *state, const char *key, size_t key_size,
                         const char *stored, size_t length) {
    const struct policy *const policy = state;
    const uint8_t *const filter = (const uint8_t *)stored;
    const uint32_t probes = probes_of(policy, filter, length);
    const uint64_t bits = 8 * ((uint64_t)length - MARK_BYTES);
    uint64_t x = calyx_hash(policy->keys, key, key_size);
    for (uint32_t i = 0; i < probes; i++) {
        const uint64_t bit = (uint64_t)((unsigned __int128)x * bits >> 64);
        if (!(filter[bit / 8] >> bit % 8 & 1)) return 0;
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    }
    return 1;
}

/* ---- Making ---------------------------------------------------------------
 */

/* The bits of a filter with these keys. False if there is no memory. */
static bool fill(const struct policy *policy, const char *const *keys,
                 const size_t *sizes, int n, uint32_t probes, uint8_t *bits,
                 size_t size) {
    const calyx_options want = {.kind = "flat",
                                .capacity = n > 0 ? (uint64_t)n : 1,
                                .bits = 8 * (uint64_t)size,
                                .probes = probes};
    calyx_filter *f;
    if (calyx_new(&want, &f, NULL) != CALYX_OK) return false;
    for (int i = 0; i < n; i++) {
        const uint64_t hash = calyx_hash(policy->keys, keys[i], sizes[i]);
        calyx_add_hashes(f, &hash, 1, NULL, NULL);
    }
    uint64_t bytes;
    memcpy(bits, calyx_bits(f, &bytes), size);
    calyx_free(f);
    return true;
}

/* As large as LevelDB's own, which has whole bytes of bits and one byte behind
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
    uint32_t probes = calyx_best_probes(bits_a_key);
    if (probes > MOST_PROBES) probes = MOST_PROBES;
    *length = size + MARK_BYTES;
    if (fill(policy, keys, sizes, n, probes, filter, size)) {
        const unsigned mark = mark_of(policy, filter, size, probes);
        filter[size] = (uint8_t)mark;
        filter[size + 1] = (uint8_t)(mark >> 8);
    } else {
        *length = 1; /* too short to be sound: "maybe" */
        *filter = 0;
    }
    return (char *)filter;
}

/* ---- The policy -----------------------------------------------------------
 */

/* LevelDB uses only filters that were stored under this name. Whoever changes
 * what is stored changes the number. */
static const char *name(void *state) {
    (void)state;
    return "calyx.flat.1";
}

static void end(void *state) {
    struct policy *const policy = state;
    calyx_free(policy->keys);
    calyx_free(policy->marks);
    free(policy);
}

static calyx_status start(struct policy *policy, int bits_per_key,
                          calyx_error *why) {
    const calyx_options keys = {.kind = "flat", .capacity = 1, .seed = 1};
    const calyx_options marks = {.kind = "flat", .capacity = 1, .seed = 2};
    policy->bits_per_key = bits_per_key;
    const calyx_status status = calyx_new(&keys, &policy->keys, why);
    return status == CALYX_OK ? calyx_new(&marks, &policy->marks, why) : status;
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
