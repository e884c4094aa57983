/*
 * A filter against an exact set. The input is a little program: first the
 * options of two filters, then what is done with them. Beside each filter runs
 * a table of how often each key is in it; whatever happened, the filter must
 * say yes to every key that the table has. (No promise about the others: the
 * filters are small, and often far too full.)
 */
#include "fuzz.h"

enum { UNIVERSE = 32, MOST_STEPS = 100, HIGHEST = 15 };

static const uint8_t secret[16] = "sixteen secrets";

/* A filter, and the truth about it. */
struct pair {
    calyx_filter *f;
    uint32_t times[UNIVERSE]; /* each key is in it */
    bool counts;
};

/* ---- Keys -----------------------------------------------------------------
 */

/* Keys of different lengths; one in four is the bytes of a number. */
static calyx_key key_at(size_t i) {
    static uint8_t bytes[UNIVERSE][2 * UNIVERSE];
    static bool made;
    if (!made)
        for (size_t k = 0; k < UNIVERSE; k++) {
            for (size_t at = 0; at < sizeof bytes[k]; at++)
                bytes[k][at] = (uint8_t)(fuzz_mix(k) >> at % 7 * 8);
            memset(bytes[k], 0, 8);
            bytes[k][0] = (uint8_t)k;
        }
    made = true;
    return (calyx_key){bytes[i], i % 4 ? 1 + 2 * i : 8};
}

static bool ask(const calyx_filter *f, size_t i) {
    const calyx_key key = key_at(i);
    const bool found = calyx_has(f, key.data, key.size);
    if (i % 4 == 0) DEMAND(calyx_has_u64(f, i) == found);
    return found;
}

/* ---- The promise ----------------------------------------------------------
 */

static void demand_all(const calyx_filter *f, const struct pair *p) {
    calyx_key keys[UNIVERSE];
    bool found[UNIVERSE];
    for (size_t i = 0; i < UNIVERSE; i++) keys[i] = key_at(i);
    size_t total = 0;
    const size_t counted = calyx_has_many(f, keys, UNIVERSE, found);
    for (size_t i = 0; i < UNIVERSE; i++) {
        DEMAND(found[i] || !p->times[i]);
        total += found[i];
    }
    DEMAND(counted == total);
    const size_t one = (size_t)fuzz_mix(total) % UNIVERSE;
    DEMAND(ask(f, one) == found[one]);
}

static void demand_counts(const struct pair *p) {
    if (!p->counts) return;
    for (size_t i = 0; i < UNIVERSE; i++) {
        const calyx_key key = key_at(i);
        const uint32_t least = p->times[i] < HIGHEST ? p->times[i] : HIGHEST;
        DEMAND(calyx_count(p->f, key.data, key.size) >= least);
    }
}

/* ---- Steps ----------------------------------------------------------------
 */

static void add_step(struct pair *p, size_t i) {
    const calyx_key key = key_at(i);
    bool fresh = false;
    const calyx_status status =
        i % 4 || i % 8 ? calyx_add(p->f, key.data, key.size, &fresh)
                       : calyx_add_u64(p->f, i, &fresh);
    DEMAND(status == CALYX_OK || status == CALYX_FULL ||
           status == CALYX_NO_MEMORY);
    DEMAND(!fresh || !p->times[i]);
    if (status == CALYX_OK) p->times[i]++;
}

static void add_many_step(struct pair *p, size_t from, size_t n) {
    calyx_key keys[UNIVERSE];
    bool fresh[UNIVERSE] = {false};
    size_t done = 0;
    for (size_t i = 0; i < n; i++) keys[i] = key_at((from + i) % UNIVERSE);
    const calyx_status status = calyx_add_many(p->f, keys, n, fresh, &done);
    DEMAND(status == CALYX_OK ? done == n : done < n);
    for (size_t i = 0; i < done; i++) {
        uint32_t *times = &p->times[(from + i) % UNIVERSE];
        DEMAND(!fresh[i] || !*times);
        ++*times;
    }
}

/* Only a key that is there, or one that certainly is not, may be removed. */
static void remove_step(struct pair *p, size_t i) {
    const calyx_key key = key_at(i);
    const bool seems = calyx_has(p->f, key.data, key.size);
    if (p->times[i] == 0 && seems) return;
    bool found;
    const calyx_status status = calyx_remove(p->f, key.data, key.size, &found);
    if (!p->counts) {
        DEMAND(status == CALYX_CANNOT);
        return;
    }
    DEMAND(status == CALYX_OK && found == seems);
    if (found) p->times[i]--;
}

/* Only a key that is not there may be allowed. */
static void allow_step(struct pair *p, size_t i) {
    const calyx_key key = key_at(i);
    if (p->times[i]) return;
    const calyx_status status =
        calyx_allow(p->f, key.data, key.size, NULL, NULL);
    DEMAND(status == CALYX_OK || status == CALYX_NO_MEMORY);
    if (status == CALYX_OK) DEMAND(!ask(p->f, i));
}

static void disallow_step(struct pair *p, size_t i) {
    const calyx_key key = key_at(i);
    const bool was = calyx_is_allowed(p->f, key.data, key.size);
    bool found;
    DEMAND(calyx_disallow(p->f, key.data, key.size, &found) == CALYX_OK);
    DEMAND(found == was && !calyx_is_allowed(p->f, key.data, key.size));
}

static void replace(struct pair *p, calyx_filter *f) {
    demand_all(f, p);
    calyx_free(p->f);
    p->f = f;
}

static void merge_step(struct pair *p, const struct pair *other) {
    if (calyx_merge(p->f, other->f, NULL) != CALYX_OK) return;
    for (size_t i = 0; i < UNIVERSE; i++) p->times[i] += other->times[i];
}

static void intersect_step(struct pair *p, const struct pair *other) {
    if (calyx_intersect(p->f, other->f, NULL) != CALYX_OK) return;
    for (size_t i = 0; i < UNIVERSE; i++)
        if (other->times[i] < p->times[i]) p->times[i] = other->times[i];
}

static void fold_step(struct pair *p, uint64_t factor) {
    calyx_filter *folded;
    if (calyx_fold(p->f, factor, &folded, NULL) == CALYX_OK) replace(p, folded);
}

static void freeze_step(const struct pair *p) {
    calyx_filter *frozen;
    if (calyx_freeze(p->f, &frozen, NULL) != CALYX_OK) return;
    demand_all(frozen, p);
    calyx_free(frozen);
}

static void encode_step(struct pair *p, const calyx_memory *memory) {
    const size_t size = (size_t)calyx_encoded_size(p->f);
    if (!size) return;
    uint8_t *bytes = aligned_alloc(64, size);
    DEMAND(bytes);
    const calyx_open_options how = {.key = secret, .memory = memory};
    calyx_filter *view, *decoded;
    if (calyx_encode(p->f, bytes, size, NULL) == CALYX_OK) {
        calyx_status status = calyx_view(bytes, size, &how, &view, NULL);
        if (status == CALYX_OK) {
            demand_all(view, p);
            status = calyx_verify(view, NULL);
            calyx_free(view);
        }
        DEMAND(status == CALYX_OK || status == CALYX_NO_MEMORY);
        status = calyx_decode(bytes, size, &how, &decoded, NULL);
        DEMAND(status == CALYX_OK || status == CALYX_NO_MEMORY);
        if (status == CALYX_OK) replace(p, decoded);
    }
    free(bytes);
}

static void copy_step(struct pair *p) {
    calyx_filter *copy;
    if (calyx_copy(p->f, &copy, NULL) == CALYX_OK) replace(p, copy);
}

static void clear_step(struct pair *p) {
    DEMAND(calyx_clear(p->f) == CALYX_OK);
    memset(p->times, 0, sizeof p->times);
}

static void look_step(const struct pair *p) {
    calyx_info info;
    calyx_describe(p->f, &info);
    DEMAND(info.fill >= 0 && info.fill <= 1);
    DEMAND(info.fpr_now >= 0 && info.fpr_now <= 1);
}

static void step(struct pair *p, struct pair *other, const calyx_memory *memory,
                 struct choices *from) {
    const size_t what = choose_below(from, 32);
    const size_t i = choose_below(from, UNIVERSE);
    switch (what) {
        case 0: merge_step(p, other); break;
        case 1: intersect_step(p, other); break;
        case 2: fold_step(p, 1 + i % 8); break;
        case 3: freeze_step(p); break;
        case 4: encode_step(p, memory); break;
        case 5: copy_step(p); break;
        case 6: clear_step(p); break;
        case 7: look_step(p); break;
        case 8:
        case 9:
        case 10: add_many_step(p, i, 1 + choose_below(from, UNIVERSE)); break;
        case 11:
        case 12:
        case 13:
        case 14: remove_step(p, i); break;
        case 15:
        case 16:
        case 17: allow_step(p, i); break;
        case 18: disallow_step(p, i); break;
        default: add_step(p, i); break;
    }
    demand_all(p->f, p);
    demand_counts(p);
}

/* ---- The target -----------------------------------------------------------
 */

static calyx_options choose_options(struct choices *from) {
    static const double rates[] = {0, 0.5, 0.1, 0.01, 0.001, 1e-6, 0.9, 0.02};
    static const double growths[] = {0, 0, 1.25, 2, 4, 16};
    const size_t flags = choose_below(from, 256);
    calyx_options want = {
        .kind = choose_name(from, calyx_kinds()),
        .hash = choose_name(from, calyx_hashes()),
        .kernel = choose_name(from, calyx_kernels()),
        .capacity = choose_below(from, 100),
        .fpr = rates[choose_below(from, sizeof rates / sizeof rates[0])],
        .growth = growths[choose_below(from, sizeof growths / sizeof *growths)],
        .concurrent = flags & 1,
        .strict = flags & 2,
        .seed = flags & 4 ? choose_bytes(from, 8) : 0,
        .seeded = true,
        .bits = flags & 8 ? choose_bytes(from, 2) : 0,
        .probes = flags & 16 ? (uint32_t)choose_bytes(from, 1) : 0,
    };
    if (strcmp(want.hash, "siphash") == 0) {
        want.key = secret;
        want.seed = 0;
    }
    return want;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct choices from = {data, size};
    struct ration ration = {.most = (size_t)3 << 19, .calls_left = SIZE_MAX};
    const calyx_memory memory = {ration_take, ration_give, &ration};
    calyx_options want = choose_options(&from);
    want.memory = &memory;

    struct pair pair[2] = {0};
    if (calyx_new(&want, &pair[0].f, NULL) == CALYX_OK)
        (void)calyx_copy(pair[0].f, &pair[1].f, NULL); /* or too large */
    pair[0].counts = pair[1].counts =
        calyx_kind_can(want.kind) & CALYX_CAN_COUNT;
    for (int i = 0; pair[0].f && pair[1].f && from.left && i < MOST_STEPS;
         i++) {
        const size_t which = choose_below(&from, 2);
        step(&pair[which], &pair[1 - which], &memory, &from);
    }
    calyx_free(pair[0].f);
    calyx_free(pair[1].f);
    DEMAND(ration.taken == 0);
    return 0;
}
