#include "server/chunks.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t chunk_count(uint64_t bytes) {
    return bytes / CHUNK_BYTES + (bytes % CHUNK_BYTES != 0);
}

size_t chunk_size(uint64_t bytes, uint64_t number) {
    const uint64_t left = bytes - number * CHUNK_BYTES;
    return left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
}

/* ---- Sums ---------------------------------------------------------------- */

uint64_t sum_of(const void *bytes, size_t size) {
    return XXH64(bytes, size, 0);
}

static void store(uint8_t *to, uint64_t number, int bytes) {
    for (int i = 0; i < bytes; i++) to[i] = (uint8_t)(number >> 8 * i);
}

uint64_t sum_with(uint64_t sum, uint64_t of_chunk) {
    uint8_t both[16];
    store(both, sum, 8);
    store(both + 8, of_chunk, 8);
    return sum_of(both, sizeof both);
}

struct sum_digits sum_text(uint64_t sum) {
    struct sum_digits digits;
    snprintf(digits.text, sizeof digits.text, "%016" PRIx64, sum);
    return digits;
}

bool sum_from(const char *text, size_t size, uint64_t *sum) {
    return size == 16 && strspn(text, "0123456789abcdefABCDEF") >= size &&
           sscanf(text, "%16" SCNx64, sum) == 1;
}

/* ---- Heads --------------------------------------------------------------- */

static const char MAGIC[8] = "CALYXBF\2";
enum { HEAD_START = 32 };

/* A server describes a growing filter by its expansion; growth is 0.8 of that.
 * The filter itself uses its growth. */
static uint32_t expansion_of(double growth) {
    if (growth <= 0) return 0;
    const double expansion = round(growth / 0.8);
    return expansion < 1 ? 1 : (uint32_t)expansion;
}

uint8_t *head_of(const calyx_filter *f, size_t *size) {
    calyx_info info;
    calyx_error why;
    const size_t inner = calyx_head_size(f);
    uint8_t *const head = alloc_memory(HEAD_START + inner);
    memset(head, 0, HEAD_START);
    calyx_outline(f, &info);
    memcpy(head, MAGIC, sizeof MAGIC);
    store(head + sizeof MAGIC, expansion_of(info.growth), 8);
    if (calyx_encode_head(f, head + HEAD_START, inner, &why) != CALYX_OK)
        fail_with(&why);
    *size = HEAD_START + inner;
    return head;
}

bool are_heads_of_one(const uint8_t *a, size_t size_a, const uint8_t *b,
                      size_t size_b) {
    return size_a == size_b && size_a >= HEAD_START &&
           memcmp(a + HEAD_START, b + HEAD_START, size_a - HEAD_START) == 0;
}

calyx_status filter_of_head(const uint8_t *head, size_t size,
                            calyx_filter **out, calyx_error *why) {
    if (size >= HEAD_START && memcmp(head, MAGIC, sizeof MAGIC) == 0)
        return calyx_decode_head(head + HEAD_START, size - HEAD_START, NULL,
                                 out, why);
    why->status = CALYX_DAMAGED;
    snprintf(why->text, sizeof why->text,
             "the bytes are not the head of a filter");
    return CALYX_DAMAGED;
}
