/*
 * Filters in pieces, as BF.RESTORE, BF.LOADCHUNK and `calyx pull` take them:
 * any head gives an error, or a filter that survives every call; ranges of bits
 * beyond the row are refused, and change nothing.
 *
 * The input is no head but a list of choices: which filter to make, what to
 * change in the head that the library writes for it, which ranges of its bits
 * to put where. So the corpus outlives changes of the format. The checksum of a
 * head is made good again, or few changes would come further than that.
 */
#include "fuzz.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { MOST_HEAD = 1 << 16, MOST_RANGE = 600, SUM = 8 };

static const uint8_t secret[16] = "sixteen secrets";

static calyx_error blank(void) {
    calyx_error why;
    memset(&why, 'x', sizeof why);
    return why;
}

static void demand_reason(calyx_status status, const calyx_error *why) {
    if (status == CALYX_OK) return;
    DEMAND(why->status == status && status != CALYX_IO);
    DEMAND(why->text[0] && memchr(why->text, 0, sizeof why->text));
}

/* ---- A filter ------------------------------------------------------------ */

static calyx_filter *make(struct choices *from, const calyx_memory *memory) {
    const char *const kind = choose_name(from, calyx_kinds());
    const char *const hash = choose_name(from, calyx_hashes());
    const double growths[] = {0, 1.25, 2, 16};
    calyx_options want = {
        .kind = kind,
        .hash = hash,
        .capacity = 1 + choose_bytes(from, 2) % 3000,
        .growth = growths[choose_below(from, 4)],
        .seeded = true,
        .memory = memory,
    };
    if (strcmp(hash, "siphash") == 0)
        want.key = secret;
    else
        want.seed = choose_bytes(from, 1);
    calyx_filter *f = NULL;
    if (calyx_new(&want, &f, NULL) != CALYX_OK) return NULL;
    const uint64_t keys = choose_bytes(from, 2) % 4000;
    for (uint64_t i = 0; i < keys; i++) calyx_add_u64(f, i, NULL);
    char comment[1001];
    const size_t size = choose_bytes(from, 2) % sizeof comment;
    memset(comment, 'c', size);
    comment[size] = '\0';
    calyx_set_comment(f, comment);
    return f;
}

/* ---- Its head, changed --------------------------------------------------- */

static uint64_t sum_of(const uint8_t *head, size_t size) {
    return XXH3_64bits_withSeed(head, size - SUM, 0);
}

static void store(uint8_t *to, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) to[i] = (uint8_t)(value >> 8 * i);
}

static void change(struct choices *from, uint8_t *head, size_t *size) {
    static const uint8_t widths[] = {1, 2, 4, 8};
    const size_t width = widths[choose_below(from, 4)];
    const size_t at = choose_bytes(from, 2) % *size;
    if (width > *size - at) return;
    switch (choose_below(from, 6)) {
        case 0: store(head + at, 0, width); break;
        case 1: store(head + at, UINT64_MAX, width); break;
        case 2: head[at] ^= (uint8_t)(1u << choose_below(from, 8)); break;
        case 3: store(head + at, choose_bytes(from, width), width); break;
        case 4: *size = at ? at : 1; break;
        default: {
            const size_t more = (size_t)64 << choose_below(from, 9);
            if (*size + more > MOST_HEAD) return;
            memset(head + *size, 0, more);
            *size += more;
        }
    }
}

/* How many changes were made. */
static size_t change_head(struct choices *from, uint8_t *head, size_t *size) {
    const size_t changes = choose_below(from, 5);
    for (size_t i = 0; i < changes; i++) change(from, head, size);
    if (changes && choose_below(from, 8) && *size > SUM)
        store(head + *size - SUM, sum_of(head, *size), SUM);
    return changes;
}

/* The whole of a head, and nothing after it. */
static void demand_its_size(const uint8_t *head, size_t size,
                            const calyx_open_options *how) {
    uint8_t *exact = calloc(1, size + 64);
    DEMAND(exact);
    memcpy(exact, head, size);
    calyx_filter *g = NULL;
    DEMAND(calyx_decode_head(exact, size + 64, how, &g, NULL) != CALYX_OK);
    DEMAND(calyx_decode_head(exact, size - 1, how, &g, NULL) != CALYX_OK);
    free(exact);
}

/* ---- Its bits ------------------------------------------------------------ */

/* A range, within the row or not. */
static void put_a_range(struct choices *from, calyx_filter *g, uint64_t bytes) {
    uint8_t put[MOST_RANGE], before[MOST_RANGE], after[MOST_RANGE];
    const size_t size = choose_bytes(from, 2) % (MOST_RANGE + 1);
    const uint64_t starts[] = {choose_bytes(from, 3) % (bytes + 2), bytes,
                               UINT64_MAX - 5, bytes - size, bytes - size + 1};
    const uint64_t at = starts[choose_below(from, 5)];
    const bool within = at <= bytes && size <= bytes - at;
    const uint64_t salt = choose_bytes(from, 1);
    for (size_t i = 0; i < size; i++)
        put[i] = salt ? (uint8_t)(fuzz_mix(salt + i) & fuzz_mix(i)) : 0;
    DEMAND((calyx_get_bits(g, at, before, size) == CALYX_OK) == within);
    const calyx_status status = calyx_put_bits(g, at, put, size);
    DEMAND(within ? status == CALYX_OK || status == CALYX_DAMAGED
                  : status == CALYX_BAD_ARGUMENT);
    if (!within) return;
    DEMAND(calyx_get_bits(g, at, after, size) == CALYX_OK);
    for (size_t i = 0; i < size; i++)
        DEMAND(after[i] ==
               (status == CALYX_OK ? (before[i] | put[i]) : before[i]));
}

/* All of the bits, in pieces from the last to the first: the same filter. */
static void put_all(struct choices *from, const calyx_filter *f,
                    calyx_filter *g, uint64_t bytes) {
    uint8_t piece[MOST_RANGE];
    const size_t most = 1 + choose_bytes(from, 2) % MOST_RANGE;
    for (uint64_t end = bytes; end > 0;) {
        const size_t size = end < most ? (size_t)end : most;
        end -= size;
        DEMAND(calyx_get_bits(f, end, piece, size) == CALYX_OK);
        DEMAND(calyx_put_bits(g, end, piece, size) == CALYX_OK);
    }
    for (uint64_t i = 0; i < 5000; i++)
        DEMAND(calyx_has_u64(f, i) == calyx_has_u64(g, i));
    DEMAND(strcmp(calyx_comment(f), calyx_comment(g)) == 0);
}

static void use(struct choices *from, const calyx_filter *f, calyx_filter *g,
                bool same) {
    calyx_info info, of_f;
    calyx_info_of(g, &info);
    calyx_info_of(f, &of_f);
    DEMAND(info.parts >= 1 && info.bytes % 64 == 0);
    if (same) {
        DEMAND(info.bytes == of_f.bytes && info.items == of_f.items);
        put_all(from, f, g, info.bytes);
    }
    const size_t ranges = choose_below(from, 4);
    for (size_t i = 0; i < ranges; i++) put_a_range(from, g, info.bytes);
    calyx_describe(g, &info);
    DEMAND(info.fill >= 0 && info.fill <= 1);
    static uint8_t head[MOST_HEAD];
    const size_t size = calyx_head_size(g);
    DEMAND(size > 0 && size <= sizeof head);
    DEMAND(calyx_encode_head(g, head, size, NULL) == CALYX_OK);
    DEMAND(calyx_encode_head(g, head, size - 1, NULL) == CALYX_BAD_ARGUMENT);
    if (calyx_add_u64(g, 77, NULL) == CALYX_OK) DEMAND(calyx_has_u64(g, 77));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct choices from = {data, size};
    struct ration ration = {.most = (size_t)3 << 19, .calls_left = SIZE_MAX};
    const calyx_memory memory = {ration_take, ration_give, &ration};
    calyx_filter *f = make(&from, &memory), *g = NULL;
    if (!f) return 0;
    static uint8_t head[MOST_HEAD];
    size_t bytes = calyx_head_size(f);
    DEMAND(bytes > SUM && bytes <= sizeof head);
    DEMAND(calyx_encode_head(f, head, bytes, NULL) == CALYX_OK);
    uint8_t sum[SUM];
    store(sum, sum_of(head, bytes), SUM);
    DEMAND(memcmp(sum, head + bytes - SUM, SUM) == 0);

    const bool same = change_head(&from, head, &bytes) == 0;
    uint8_t *exact = malloc(bytes); /* so that a sanitizer sees its end */
    DEMAND(exact);
    memcpy(exact, head, bytes);
    const size_t taken = ration.taken;
    calyx_open_options how = {.key = secret, .memory = &memory};
    if (choose_below(&from, 8) == 1) ration.calls_left = choose_below(&from, 8);
    calyx_error why = blank();
    const calyx_status status = calyx_decode_head(exact, bytes, &how, &g, &why);
    demand_reason(status, &why);
    DEMAND(status == CALYX_OK ? g != NULL : !g && ration.taken == taken);
    DEMAND(!same || status == CALYX_OK || status == CALYX_NO_MEMORY);
    free(exact);
    ration.calls_left = SIZE_MAX;
    if (same) demand_its_size(head, bytes, &how);
    if (g) use(&from, f, g, same);
    calyx_free(g);
    calyx_free(f);
    DEMAND(ration.taken == 0);
    return 0;
}
