/*
 * The types of the server module: any RDB stream gives nothing, or a filter
 * that survives every call, and is the same after it was saved and loaded
 * again.
 *
 * The first byte of an input chooses the type and its encoding; the stream
 * follows, as mock_server.h has it. The library's own
 * format is fuzzed by fuzz_decode, which mends checksums; this is about what is
 * around it.
 */
#include "../module/filter.h"
#include "../test/module/mock_server.h"
#include "fuzz.h"

static void use(struct filter *f) {
    static const calyx_key keys[] = {{"rose", 4}, {"", 0}, {"iris", 4}};
    bool fresh[3], found[3];
    size_t done = 0;
    struct facts facts;
    struct part_facts part;
    calyx_error why;
    f->layout->tell(f, &facts);
    for (uint32_t i = 0; i < facts.parts; i++)
        DEMAND(f->layout->tell_part(f, i, &part));
    if (filter_is_partial(f)) return;
    if (filter_add(f, keys, 3, fresh, &done, &why) == CALYX_OK)
        DEMAND(f->layout->has_many(f, keys, 3, found) == 3);
    RM_Free(f->layout->dump_head(f).owned);
    RM_Free(f->layout->dump_from(f, 1).owned);
}

static void come_back(const RedisModuleTypeMethods *type, struct filter *f,
                      int encoding) {
    RedisModuleIO io = {0};
    type->rdb_save(&io, f);
    struct filter *again = type->rdb_load(&io, encoding);
    DEMAND(again && io.at == io.size);
    DEMAND(mock_digest(type, again) == mock_digest(type, f));
    type->free(again);
    free(io.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!RM_Alloc) mock_start();
    if (size < 1) return 0;
    mock_most_bytes = (size_t)1 << 20;
    const bool theirs = *data & 1;
    const RedisModuleTypeMethods *type =
        theirs ? &mock_redisbloom : &mock_native;
    RedisModuleIO io = {(uint8_t *)(uintptr_t)(data + 1), size - 1, 0, false};
    const int encoding = *data >> 1 & 7;
    struct filter *f = type->rdb_load(&io, encoding);
    if (f) {
        come_back(type, f, theirs ? 4 : 2);
        use(f);
        come_back(type, f, theirs ? 4 : 2);
        type->free(f);
    }
    DEMAND(mock_blocks == 0);
    return 0;
}
