#include "layout/transfer.h"

uint64_t chunks_here(const struct filter *f) {
    return dump_chunks(f->arrived);
}

struct chunk read_chunk(const struct filter *f, uint64_t number) {
    struct chunk chunk = {.size = dump_chunk_size(filter_bytes(f), number)};
    calyx_room room;
    chunk.bytes = RM_Alloc(chunk.size);
    calyx_get_bits(native_of(f, &room), number * DUMP_CHUNK_BYTES, chunk.bytes,
                   chunk.size);
    chunk.sum = dump_sum(chunk.bytes, chunk.size);
    return chunk;
}

/* ---- Persistence --------------------------------------------------------- */

void transfer_rewrite(RedisModuleIO *io, RedisModuleString *key,
                      const struct filter *f) {
    const struct piece head = f->layout->dump_head(f);
    RM_EmitAOF(io, "BF.RESTORE", "sccb", key, "BEGIN",
               dump_sum_text(dump_sum(head.bytes, head.size)).text,
               (const char *)head.bytes, head.size);
    RM_Free(head.owned);
    for (uint64_t n = 0; n < chunks_here(f); n++) {
        const struct chunk chunk = read_chunk(f, n);
        RM_EmitAOF(io, "BF.RESTORE", "sclcb", key, "CHUNK", (long long)n,
                   dump_sum_text(chunk.sum).text, (const char *)chunk.bytes,
                   chunk.size);
        RM_Free(chunk.bytes);
    }
}

bool transfer_resume(struct filter *f) {
    if (!f->uncommitted) return true;
    if (f->arrived % DUMP_CHUNK_BYTES && f->arrived != f->bytes) return false;
    extra_for(f)->loaded_sum = 0;
    for (uint64_t n = 0; n < chunks_here(f); n++) {
        const struct chunk chunk = read_chunk(f, n);
        f->extra->loaded_sum = dump_sum_with(f->extra->loaded_sum, chunk.sum);
        RM_Free(chunk.bytes);
    }
    return true;
}
