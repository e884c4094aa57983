#include "wire/dump.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "wire/bytes.h"

/* ---- Heads --------------------------------------------------------------- */

static const char MAGIC[8] = "CALYXBF\2";

void dump_put_prefix(uint8_t *head, const struct dump_prefix *prefix) {
    memcpy(head, MAGIC, sizeof MAGIC);
    store_u64(head + 8, prefix->expansion);
    store_u64(head + 16, prefix->generation);
    store_u64(head + 24, prefix->rewrites);
}

bool dump_get_prefix(const void *bytes, size_t size,
                     struct dump_prefix *prefix) {
    const uint8_t *const head = bytes;
    if (size < DUMP_PREFIX_BYTES || memcmp(head, MAGIC, sizeof MAGIC) != 0)
        return false;
    *prefix = (struct dump_prefix){load_u64(head + 8), load_u64(head + 16),
                                   load_u64(head + 24)};
    return true;
}

/* RedisBloom's expansion makes each part that many times larger than the last;
 * growth here makes the whole larger. Less growth wastes less: a filter that
 * has just grown has that much room to spare. 0.8 keeps a filter that has to
 * grow tenfold within 20 bits a key at 1 %, where 2 takes 30. */
static const double GROWTH_OF_EXPANSION = 0.8;

double dump_growth(uint64_t expansion) {
    const double growth = GROWTH_OF_EXPANSION * (double)expansion;
    if (expansion == 0) return 0;
    return growth < 1.25 ? 1.25 : growth > 16 ? 16 : growth;
}

uint32_t dump_expansion(double growth) {
    if (growth <= 0) return 0;
    const double expansion = round(growth / GROWTH_OF_EXPANSION);
    return expansion < 1 ? 1 : (uint32_t)expansion;
}

/* ---- Chunks -------------------------------------------------------------- */

uint64_t dump_chunks(uint64_t bytes) {
    return bytes / DUMP_CHUNK_BYTES + (bytes % DUMP_CHUNK_BYTES != 0);
}

size_t dump_chunk_size(uint64_t bytes, uint64_t number) {
    const uint64_t left = bytes - number * DUMP_CHUNK_BYTES;
    return left < DUMP_CHUNK_BYTES ? (size_t)left : DUMP_CHUNK_BYTES;
}

/* ---- Checksums ----------------------------------------------------------- */

uint64_t dump_sum(const void *bytes, size_t size) {
    return XXH64(bytes, size, 0);
}

uint64_t dump_sum_with(uint64_t sum, uint64_t of_chunk) {
    uint8_t both[16];
    store_u64(both, sum);
    store_u64(both + 8, of_chunk);
    return dump_sum(both, sizeof both);
}

struct dump_text dump_sum_text(uint64_t sum) {
    struct dump_text digits;
    snprintf(digits.text, sizeof digits.text, "%016llx",
             (unsigned long long)sum);
    return digits;
}

bool dump_read_sum(const char *text, size_t size, uint64_t *sum) {
    static const char digits[] = "0123456789abcdefABCDEF";
    uint64_t read = 0;
    if (size != DUMP_DIGITS) return false;
    for (size_t i = 0; i < size; i++) {
        const char *const at = text[i] ? strchr(digits, text[i]) : NULL;
        if (!at) return false;
        const int value = (int)(at - digits);
        read = read << 4 | (uint64_t)(value < 16 ? value : value - 6);
    }
    *sum = read;
    return true;
}
