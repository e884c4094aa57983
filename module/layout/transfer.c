#include "layout/transfer.h"

#include <stdio.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "layout/bytes.h"

uint64_t chunks_in(uint64_t bytes) {
    return bytes / CHUNK + (bytes % CHUNK != 0);
}

size_t chunk_size(const struct filter *f, uint64_t number) {
    const uint64_t left = filter_bytes(f) - number * CHUNK;
    return left < CHUNK ? (size_t)left : CHUNK;
}

uint64_t chunks_here(const struct filter *f) {
    return chunks_in(f->arrived);
}

uint64_t sum_of(const void *bytes, size_t size) {
    return XXH64(bytes, size, 0);
}

uint64_t next_sum(uint64_t sum, uint64_t of_chunk) {
    uint8_t both[16];
    store_u64(both, sum);
    store_u64(both + 8, of_chunk);
    return sum_of(both, sizeof both);
}

struct chunk read_chunk(const struct filter *f, uint64_t number) {
    struct chunk chunk = {.size = chunk_size(f, number)};
    calyx_room room;
    chunk.bytes = RM_Alloc(chunk.size);
    calyx_get_bits(native_of(f, &room), number * CHUNK, chunk.bytes,
                   chunk.size);
    chunk.sum = sum_of(chunk.bytes, chunk.size);
    return chunk;
}

struct sum_text write_sum(uint64_t sum) {
    struct sum_text digits;
    snprintf(digits.text, sizeof digits.text, "%016llx",
             (unsigned long long)sum);
    return digits;
}

/* ---- Persistence --------------------------------------------------------- */

void transfer_rewrite(RedisModuleIO *io, RedisModuleString *key,
                      const struct filter *f) {
    const struct piece head = f->layout->dump_head(f);
    RM_EmitAOF(io, "BF.LOAD", "sccb", key, "BEGIN",
               write_sum(sum_of(head.bytes, head.size)).text,
               (const char *)head.bytes, head.size);
    RM_Free(head.owned);
    for (uint64_t n = 0; n < chunks_here(f); n++) {
        const struct chunk chunk = read_chunk(f, n);
        RM_EmitAOF(io, "BF.LOAD", "sclcb", key, "CHUNK", (long long)n,
                   write_sum(chunk.sum).text, (const char *)chunk.bytes,
                   chunk.size);
        RM_Free(chunk.bytes);
    }
}

bool transfer_resume(struct filter *f) {
    if (!f->uncommitted) return true;
    if (f->arrived % CHUNK && f->arrived != f->bytes) return false;
    rare_for(f)->loaded_sum = 0;
    for (uint64_t n = 0; n < chunks_here(f); n++) {
        const struct chunk chunk = read_chunk(f, n);
        f->rare->loaded_sum = next_sum(f->rare->loaded_sum, chunk.sum);
        RM_Free(chunk.bytes);
    }
    return true;
}
