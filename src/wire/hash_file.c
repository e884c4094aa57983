#include "wire/hash_file.h"

#include <string.h>

#include "base/bits.h"
#include "wire/bytes.h"
#include "wire/dump.h"

static const uint8_t magic[8] = {0x89, 'C', 'L', 'H', '\r', '\n', 0x1A, '\n'};
static const uint32_t HASH_VERSION = 1, HASH_BYTE_ORDER = 0x0A0B0C0D;

/* Places in the start. */
enum {
    HASH_AT_VERSION = 8,
    HASH_AT_BYTE_ORDER = 12,
    HASH_AT_PART = 16,
    HASH_AT_PARTS = 20,
    HASH_AT_SEED = 24,
    HASH_AT_CHECK = 32,
    HASH_AT_NAME = 40,
    HASH_AT_TEXT_BYTES = 56,
    HASH_AT_BY_SHARD = 60
};

/* ---- Ranges -------------------------------------------------------------- */

uint64_t hash_part_start(uint32_t part, uint32_t parts) {
    return part > parts ? 0 : lowest_scaled64(part - 1, parts);
}

uint64_t hash_part_margin(uint32_t parts) {
    return UINT64_MAX / parts / 32;
}

/* ---- The head ------------------------------------------------------------ */

size_t hash_put_head(uint8_t *to, const struct hash_head *head,
                     const char *text) {
    const size_t end = HASH_START_BYTES + head->text_bytes;
    memset(to, 0, HASH_START_BYTES);
    memcpy(to, magic, sizeof magic);
    store_u32(to + HASH_AT_VERSION, HASH_VERSION);
    store_u32(to + HASH_AT_BYTE_ORDER, HASH_BYTE_ORDER);
    store_u32(to + HASH_AT_PART, head->part);
    store_u32(to + HASH_AT_PARTS, head->parts);
    store_u64(to + HASH_AT_SEED, head->seed);
    store_u64(to + HASH_AT_CHECK, head->check);
    memcpy(to + HASH_AT_NAME, head->hash, HASH_NAME_BYTES);
    store_u32(to + HASH_AT_TEXT_BYTES, head->text_bytes);
    store_u32(to + HASH_AT_BY_SHARD, head->by_shard);
    memcpy(to + HASH_START_BYTES, text, head->text_bytes);
    store_u64(to + end, dump_sum(to, end));
    return end + 8;
}

const char *hash_check_start(const uint8_t *start, struct hash_head *head) {
    if (memcmp(start, magic, sizeof magic) != 0)
        return "not a file of hashes: it starts with other bytes";
    if (load_u32(start + HASH_AT_BYTE_ORDER) != HASH_BYTE_ORDER)
        return "damaged: its bytes are in another order";
    if (load_u32(start + HASH_AT_VERSION) != HASH_VERSION)
        return "it is of a version that this calyx does not know";
    *head = (struct hash_head){
        .part = load_u32(start + HASH_AT_PART),
        .parts = load_u32(start + HASH_AT_PARTS),
        .seed = load_u64(start + HASH_AT_SEED),
        .check = load_u64(start + HASH_AT_CHECK),
        .text_bytes = load_u32(start + HASH_AT_TEXT_BYTES),
        .by_shard = load_u32(start + HASH_AT_BY_SHARD) == 1,
    };
    memcpy(head->hash, start + HASH_AT_NAME, HASH_NAME_BYTES);
    if (head->part < 1 || head->part > head->parts || head->parts > 65536 ||
        head->text_bytes > HASH_TEXT_MOST || head->hash[0] == '\0' ||
        head->hash[HASH_NAME_BYTES - 1] != '\0' ||
        load_u32(start + HASH_AT_BY_SHARD) > 1)
        return "damaged: the numbers of its head make no sense";
    return NULL;
}

const char *hash_check_head(const uint8_t *bytes,
                            const struct hash_head *head) {
    const size_t end = HASH_START_BYTES + head->text_bytes;
    if (load_u64(bytes + end) != dump_sum(bytes, end))
        return "damaged: its head does not match its checksum";
    if (memchr(bytes + HASH_START_BYTES, 0, head->text_bytes))
        return "damaged: its options for keys have a NUL in them";
    return NULL;
}

/* ---- Chunks -------------------------------------------------------------- */

/* The number is in the bytes under the checksum: a swap is noticed. */
static size_t seal(uint8_t *chunk, uint64_t number, size_t count, size_t end) {
    store_u32(chunk, (uint32_t)count);
    store_u32(chunk + 4, (uint32_t)number);
    store_u64(chunk + end, dump_sum(chunk, end));
    return end + 8;
}

size_t hash_put_chunk(uint8_t *to, uint64_t number, size_t n) {
    return seal(to, number, n, HASH_CHUNK_START + 8 * n);
}

size_t hash_put_end(uint8_t *to, uint64_t number, uint64_t total) {
    store_u64(to + HASH_CHUNK_START, total);
    return seal(to, number, 0, HASH_CHUNK_START + 8);
}

size_t hash_chunk_rest(const uint8_t *start, size_t *hashes) {
    const uint32_t count = load_u32(start);
    *hashes = count;
    if (count > HASH_CHUNK_MOST) return 0;
    return 8 * (size_t)(count ? count : 1) + 8;
}

bool hash_check_chunk(const uint8_t *chunk, size_t size, uint64_t number) {
    return load_u32(chunk + 4) == (uint32_t)number &&
           load_u64(chunk + size - 8) == dump_sum(chunk, size - 8);
}

uint64_t hash_end_total(const uint8_t *end) {
    return load_u64(end + HASH_CHUNK_START);
}
