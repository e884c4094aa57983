/*
 * Every kernel leaves the same bits. One input drives as many filters as there
 * are kernels, alone and with concurrent adding; what one of them answers or
 * comes to hold, all must.
 */
#include "fuzz.h"

enum { MOST_FILTERS = 16, MOST_HASHES = 700, MOST_STEPS = 8 };

struct crowd {
    calyx_filter *f[MOST_FILTERS];
    size_t n;
};

/* Planning takes longer than all the rest, so one is made, and the others are
 * opened from its bytes. */
static void make_crowd(struct crowd *crowd, calyx_options want) {
    want.kernel = "scalar";
    want.seeded = true;
    crowd->n = 0;
    if (calyx_new(&want, &crowd->f[0], NULL) != CALYX_OK) return;
    const size_t size = (size_t)calyx_encoded_size(crowd->f[0]);
    uint8_t *bytes = malloc(size);
    DEMAND(bytes && calyx_encode(crowd->f[0], bytes, size, NULL) == CALYX_OK);
    crowd->n = 1;
    for (int shared = 0; shared < 2; shared++)
        for (const char *const *name = calyx_kernels(); *name; name++) {
            const calyx_open_options how = {
                .kernel = *name, .concurrent = shared, .memory = want.memory};
            const calyx_status status =
                calyx_decode(bytes, size, &how, &crowd->f[crowd->n], NULL);
            DEMAND(status == CALYX_OK || (shared && status == CALYX_CANNOT));
            crowd->n += status == CALYX_OK;
        }
    free(bytes);
}

/* Hashes of all sorts: well mixed, as keys have them, and the corners that no
 * hash would come to by chance. */
static size_t choose_hashes(struct choices *from, uint64_t *hashes) {
    const bool long_run = choose_below(from, 16) == 0;
    const size_t n = choose_below(from, long_run ? MOST_HASHES : 40);
    const uint64_t start = choose_bytes(from, 8);
    const size_t sort = choose_below(from, 4);
    for (size_t i = 0; i < n; i++) switch (sort) {
            case 0: hashes[i] = start + i; break;
            case 1: hashes[i] = start ^ UINT64_C(1) << i % 64; break;
            case 2: hashes[i] = start << i % 64; break;
            default: hashes[i] = fuzz_mix(start + i); break;
        }
    return n;
}

static void add_step(struct crowd *crowd, struct choices *from) {
    uint64_t hashes[MOST_HASHES];
    bool first[MOST_HASHES], fresh[MOST_HASHES];
    const size_t n = choose_hashes(from, hashes);
    const bool one_by_one = choose_below(from, 2);
    size_t first_done = 0, done;
    for (size_t i = 0; i < crowd->n; i++) {
        memset(fresh, 0, sizeof fresh);
        done = 0;
        size_t one = 1;
        if (one_by_one)
            for (; done < n && one; done += one)
                calyx_add_hashes(crowd->f[i], hashes + done, 1, fresh + done,
                                 &one);
        else
            calyx_add_hashes(crowd->f[i], hashes, n, fresh, &done);
        if (i == 0) {
            memcpy(first, fresh, sizeof first);
            first_done = done;
        }
        DEMAND(done == first_done && memcmp(first, fresh, done) == 0);
    }
}

static void ask_step(const struct crowd *crowd, struct choices *from) {
    uint64_t hashes[MOST_HASHES];
    bool first[MOST_HASHES], found[MOST_HASHES], one;
    const size_t n = choose_hashes(from, hashes);
    for (size_t i = 0; i < crowd->n; i++) {
        const size_t total = calyx_has_hashes(crowd->f[i], hashes, n, found);
        DEMAND(calyx_has_hashes(crowd->f[i], hashes, n, NULL) == total);
        if (i == 0) memcpy(first, found, sizeof first);
        DEMAND(memcmp(first, found, n) == 0);
        for (size_t k = 0; k < n; k += 37) {
            calyx_has_hashes(crowd->f[i], hashes + k, 1, &one);
            DEMAND(one == found[k]);
        }
    }
}

static void key_step(struct crowd *crowd, struct choices *from) {
    const size_t size = choose_below(from, 64);
    const calyx_key key = {from->at, size < from->left ? size : from->left};
    bool first = false, fresh;
    for (size_t i = 0; i < crowd->n; i++) {
        fresh = false;
        const calyx_status status =
            calyx_add(crowd->f[i], key.data, key.size, &fresh);
        if (i == 0) first = fresh;
        DEMAND(fresh == first);
        DEMAND(status != CALYX_OK ||
               calyx_has(crowd->f[i], key.data, key.size));
    }
}

static void demand_same_bytes(const struct crowd *crowd) {
    uint8_t *bytes[2] = {NULL, NULL};
    size_t sizes[2];
    for (size_t i = 0; i < crowd->n; i++) {
        const size_t which = i > 0;
        sizes[which] = (size_t)calyx_encoded_size(crowd->f[i]);
        bytes[which] = malloc(sizes[which] + 1);
        DEMAND(bytes[which]);
        if (calyx_encode(crowd->f[i], bytes[which], sizes[which], NULL) !=
            CALYX_OK)
            break;
        if (i == 0) continue;
        DEMAND(sizes[0] == sizes[1]);
        DEMAND(memcmp(bytes[0], bytes[1], sizes[0]) == 0);
        free(bytes[1]);
        bytes[1] = NULL;
    }
    free(bytes[0]);
    free(bytes[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    /* Growing takes long too, so few do. */
    static const double growths[16] = {[0] = 1.25, [1] = 2};
    struct choices from = {data, size};
    struct ration ration = {.most = (size_t)3 << 19, .calls_left = SIZE_MAX};
    const calyx_memory memory = {ration_take, ration_give, &ration};
    calyx_options want = {
        .kind = choose_name(&from, calyx_kinds()),
        .hash = choose_below(&from, 2) ? "xxh64" : "xxh3",
        .capacity = choose_below(&from, 1000),
        .growth =
            growths[choose_below(&from, sizeof growths / sizeof *growths)],
        .seed = choose_bytes(&from, 2),
        .memory = &memory,
    };
    const uint8_t exact = (uint8_t)choose_bytes(&from, 1);
    if (want.growth == 0) {
        want.strict = exact & 1;
        if (exact & 2) want.bits = 1 + choose_bytes(&from, 2);
        if (exact & 4) want.probes = 1 + (uint32_t)choose_below(&from, 64);
    }

    struct crowd crowd;
    make_crowd(&crowd, want);
    for (int i = 0; crowd.n && from.left && i < MOST_STEPS; i++)
        switch (choose_below(&from, 4)) {
            case 0: key_step(&crowd, &from); break;
            case 1: ask_step(&crowd, &from); break;
            default: add_step(&crowd, &from); break;
        }
    demand_same_bytes(&crowd);
    for (size_t i = 0; i < crowd.n; i++) calyx_free(crowd.f[i]);
    DEMAND(ration.taken == 0);
    return 0;
}
