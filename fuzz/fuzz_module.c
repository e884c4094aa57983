/*
 * The types of the server module: any RDB stream gives nothing, or a filter
 * that survives every call, and is the same after it was saved and loaded
 * again.
 *
 * The first byte of an input chooses the type and its encoding; the stream
 * follows, as mock_server.h has it. The library's own
 * format is fuzzed by fuzz_decode, which repairs checksums; this is about what
 * is around it.
 */
#include "../module/layout/layout.h"
#include "../module/layout/window.h"
#include "../module/server/allocator.h"
#include "../test/module/mock_server.h"
#include "fuzz.h"

enum { CUCKOO = 4 };
static const RedisModuleTypeMethods *const types[] = {
    &mock_native, &mock_redisbloom, &mock_valkey, &mock_window, &mock_cuckoo};
static const int saved[] = {2, 4, 1, 1, 4}; /* encodings that are written */
enum { ALL_TYPES = sizeof types / sizeof *types };

/* ---- Inputs made here ---------------------------------------------------- */

static void add_numbers(struct filter *f, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        const calyx_key key = {&i, sizeof i};
        bool fresh, changed;
        calyx_error why;
        struct addition a = {.keys = &key,
                             .n = 1,
                             .fresh = &fresh,
                             .changed = f->repeats_matter ? &changed : &fresh,
                             .why = &why};
        filter_add(f, &a);
        if (is_window(f) && i % 100 == 99) window_rotate(f, 1, 1000 * i);
    }
}

/* As BF.LOADCHUNK leaves it after the head, and some pieces. */
static struct filter *part_of(const struct filter *f, unsigned pieces) {
    struct filter *half = NULL;
    calyx_error why;
    struct piece piece = f->layout->dump_head(f);
    DEMAND(filter_load_head(layout_of_head(piece.bytes, piece.size),
                            piece.bytes, piece.size, &half, &why) == CALYX_OK);
    RM_Free(piece.owned);
    piece.at = 1;
    for (unsigned i = 0; i < pieces; i++) {
        bool changed;
        piece = f->layout->dump_from(f, piece.at);
        if (!piece.at) break;
        DEMAND(filter_load_piece(half, piece.at, piece.bytes, piece.size,
                                 &changed, &why) == CALYX_OK);
        RM_Free(piece.owned);
    }
    return half;
}

static size_t write_seed(unsigned type, void *value, uint8_t *data,
                         size_t most) {
    RedisModuleIO io = {0};
    types[type]->rdb_save(&io, value);
    types[type]->free(value);
    DEMAND(io.size < most);
    data[0] = (uint8_t)(saved[type] * ALL_TYPES + (int)type);
    memcpy(data + 1, io.bytes, io.size);
    const size_t size = 1 + io.size;
    free(io.bytes);
    return size;
}

/* A cuckoo filter of some parts; of every second the first 20 bytes have
 * arrived. */
static size_t cuckoo_seed(unsigned number, uint8_t *data, size_t most) {
    struct filter_params params = {.layout = &cuckoo_layout,
                                   .capacity = UINT64_C(16) << number,
                                   .bucket_size = 1 + number,
                                   .iterations = 20,
                                   .expansion = number};
    struct filter *f = NULL;
    calyx_error why;
    DEMAND(filter_new(&params, &f, &why) == CALYX_OK);
    add_numbers(f, 30 * number);
    if (number % 2) {
        const struct piece head = f->layout->dump_head(f);
        bool changed;
        filter_free(f);
        DEMAND(filter_load_head(&cuckoo_layout, head.bytes, head.size, &f,
                                &why) == CALYX_OK);
        RM_Free(head.owned);
        DEMAND(filter_load_piece(f, 21, "a few bytes of a body", 20, &changed,
                                 &why) == CALYX_OK);
    }
    return write_seed(CUCKOO, f, data, most);
}

/* Filters of each type, empty, filled and grown, whole and partly loaded. */
size_t fuzz_seed(unsigned number, uint8_t *data, size_t most) {
    static const struct filter_layout *const made[] = {
        &native_layout, &redisbloom_layout, &valkey_layout, &window_layout};
    static const unsigned items[] = {0, 50, 600};
    enum { TYPES = 4, SIZES = 3, STATES = 3, FILTERS = TYPES * SIZES * STATES };
    enum { CUCKOOS = 5 };
    if (number >= FILTERS + CUCKOOS) return 0;
    if (!RM_Alloc) mock_start();
    mock_most_bytes = (size_t)1 << 20;
    if (number >= FILTERS) return cuckoo_seed(number - FILTERS, data, most);
    const unsigned type = number % TYPES, state = number / TYPES / SIZES;
    struct filter_params params = {.layout = made[type],
                                   .error = 0.01,
                                   .capacity = 100,
                                   .expansion = state == 1 ? 0 : 2,
                                   .seed = number,
                                   .tightening = 0.5,
                                   .window = 1000,
                                   .generations = 1 + state};
    struct filter *f = NULL;
    calyx_error why;
    DEMAND(filter_new(&params, &f, &why) == CALYX_OK);
    add_numbers(f, items[number / TYPES % SIZES]);
    if (state == 2) {
        struct filter *const half = part_of(f, number % 2);
        filter_free(f);
        f = half;
    }
    return write_seed(type, f, data, most);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed);

/* Half of the changes are to the numbers at the start, which no checksum
 * guards; some inputs are one of those above. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed) {
    enum { NUMBERS = 96 };
    const uint64_t choice = fuzz_mix(seed + UINT64_C(1));
    if (choice % 64 == 0 || size < 2) {
        static uint8_t made[1 << 16];
        const size_t n = fuzz_seed(choice >> 8 & 63, made, sizeof made);
        if (n && n <= most) {
            memcpy(data, made, n);
            return n;
        }
    }
    if (choice & 64 && size > NUMBERS) {
        LLVMFuzzerMutate(data, NUMBERS, NUMBERS);
        return size;
    }
    return LLVMFuzzerMutate(data, size, most);
}

/* ---- The target ---------------------------------------------------------- */

static void use(struct filter *f) {
    static const calyx_key keys[] = {{"rose", 4}, {"", 0}, {"iris", 4}};
    bool fresh[3], changed[3], found[3];
    struct filter_facts facts;
    struct part_facts part;
    calyx_error why;
    struct addition a = {.keys = keys,
                         .n = 3,
                         .fresh = fresh,
                         .changed = f->repeats_matter ? changed : fresh,
                         .why = &why};
    f->layout->describe(f, &facts);
    for (uint32_t i = 0; i < facts.parts; i++)
        DEMAND(f->layout->describe_part(f, i, &part));
    if (filter_is_partial(f)) return;
    if (filter_add(f, &a) == CALYX_OK)
        DEMAND(f->layout->has_many(f, keys, 3, found) == 3);
    RM_Free(f->layout->dump_head(f).owned);
    RM_Free(f->layout->dump_from(f, 1).owned);
    if (!is_window(f)) return;
    window_rotate(f, 1, 5);
    const bool kept = f->window->panes > 1;
    DEMAND(f->layout->has_many(f, keys, 3, found) == 3 || !kept || a.done < 3);
    window_rotate(f, f->window->panes, 6);
    f->layout->describe(f, &facts);
    DEMAND(facts.items == 0);
}

/* Items are added, moved and removed; none that was added is missing. */
static void use_cuckoo(struct filter *f) {
    enum { ITEMS = 60 };
    unsigned number[ITEMS];
    calyx_key keys[ITEMS];
    bool added[ITEMS] = {false}, found;
    calyx_error why;
    if (filter_is_partial(f)) return;
    for (unsigned i = 0; i < ITEMS; i++) {
        number[i] = i;
        keys[i] = (calyx_key){&number[i], sizeof number[i]};
    }
    struct addition a = {.keys = keys,
                         .n = ITEMS,
                         .fresh = added,
                         .changed = added,
                         .why = &why};
    filter_add(f, &a);
    cuckoo_compact(f->cuckoo, true);
    while (cuckoo_is_compacting(f->cuckoo)) cuckoo_compact_step(f->cuckoo, 10);
    for (unsigned i = 0; i < a.done; i++)
        DEMAND(f->layout->has(f, keys[i].data, keys[i].size));
    filter_end_compaction(f);
    for (unsigned i = 0; i < a.done; i++)
        DEMAND(filter_remove(f, &keys[i], 1, &found) == 1);
    filter_end_compaction(f);
    cuckoo_compact(f->cuckoo, false);
}

static void come_back(const RedisModuleTypeMethods *type, void *f,
                      int encoding) {
    RedisModuleIO io = {0};
    type->rdb_save(&io, f);
    void *again = type->rdb_load(&io, encoding);
    DEMAND(again && io.at == io.size);
    DEMAND(mock_digest(type, again) == mock_digest(type, f));
    type->free(again);
    free(io.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!RM_Alloc) mock_start();
    if (size < 1) return 0;
    mock_most_bytes = (size_t)1 << 20;
    const unsigned number = *data % ALL_TYPES;
    const RedisModuleTypeMethods *type = types[number];
    RedisModuleIO io = {(uint8_t *)(uintptr_t)(data + 1), size - 1, 0, false};
    void *const f = type->rdb_load(&io, *data / ALL_TYPES % 8);
    if (f) {
        come_back(type, f, saved[number]);
        if (type == &mock_cuckoo)
            use_cuckoo(f);
        else
            use(f);
        come_back(type, f, saved[number]);
        type->free(f);
    }
    DEMAND(mock_blocks == 0);
    return 0;
}
