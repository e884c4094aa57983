/*
 * The page's view of the library, compiled with it to WebAssembly. Kinds,
 * hashes and kernels go by their number in calyx_kinds() and so on, results
 * that are more than one number stay in `out`, and why a call failed in `why`;
 * the page reads both from memory. calyx.js is the other half.
 *
 * Every number but a hash or a seed goes as a double, which holds what the
 * library can count, 2^44, without loss.
 */
#include <calyx/calyx.h>
#include <math.h>
#include <stdlib.h>

#define EXPORT(type, name) __attribute__((export_name(#name))) type page_##name

static double out[8];
static calyx_error why;

EXPORT(double *, out_at)(void) {
    return out;
}

EXPORT(const char *, why_at)(void) {
    return why.text;
}

EXPORT(const char *, version)(void) {
    return calyx_version();
}

EXPORT(const char *, kind_name)(int i) {
    return calyx_kinds()[i];
}

EXPORT(const char *, hash_name)(int i) {
    return calyx_hashes()[i];
}

EXPORT(const char *, kernel_name)(int i) {
    return calyx_kernels()[i];
}

/* Memory for keys and slices of files, aligned as calyx_view wants it. */
EXPORT(void *, take)(size_t size) {
    return aligned_alloc(64, (size + 63) / 64 * 64);
}

EXPORT(void, give)(void *block) {
    free(block);
}

/* The only thing that the library would ask of a system: is there a kernel set
 * by CALYX_KERNEL? */
char *getenv(const char *name) {
    (void)name;
    return NULL;
}

/* ---- Planning ------------------------------------------------------------ */

/* As `calyx plan --memory`: a number of bits is asked for, and counters come on
 * top, so take fewer until all fits. */
static calyx_status plan_memory(calyx_options *want, uint64_t memory,
                                calyx_info *is) {
    want->bits = 8 * memory;
    calyx_status status;
    while ((status = calyx_plan(want, is, &why)) == CALYX_OK &&
           is->bytes > memory) {
        const double share = (double)memory / (double)is->bytes;
        const uint64_t fewer = (uint64_t)((double)want->bits * share);
        want->bits = fewer < want->bits ? fewer : want->bits - 1;
    }
    return status;
}

/* Two of the three are not 0. Leaves capacity, bytes, bits, probes, the rate at
 * capacity, and the rate that is promised. */
EXPORT(int, plan)(int kind, double keys, double rate, double memory) {
    calyx_options want = {
        .kind = calyx_kinds()[kind], .capacity = (uint64_t)keys, .fpr = rate};
    calyx_info is;
    calyx_status status = memory > 0 ? plan_memory(&want, (uint64_t)memory, &is)
                                     : calyx_plan(&want, &is, &why);
    if (status == CALYX_OK)
        status = calyx_rate_at(&want, is.capacity, &out[4], &why);
    if (status != CALYX_OK) return status;
    out[0] = (double)is.capacity;
    out[1] = (double)is.bytes;
    out[2] = (double)is.bits;
    out[3] = is.probes;
    out[5] = is.fpr;
    return CALYX_OK;
}

static calyx_options shaped(int kind, double capacity, double bits,
                            double probes) {
    return (calyx_options){.kind = calyx_kinds()[kind],
                           .capacity = (uint64_t)capacity,
                           .bits = (uint64_t)bits,
                           .probes = (uint32_t)probes};
}

/* The rate of such a filter with so many keys; NaN if there is no such. */
EXPORT(double, rate_at)(int kind, double bits, double probes, double items) {
    const calyx_options want = shaped(kind, 1, bits, probes);
    double rate = NAN;
    calyx_rate_at(&want, (uint64_t)items, &rate, &why);
    return rate;
}

/* Leaves the mean time of a question with a filter, a table, the store alone,
 * and the memory of the first two. */
EXPORT(int, weigh)
(int kind, double capacity, double bits, double probes, double filter_time,
 double store_time, double present, double key_bytes) {
    const calyx_options want = shaped(kind, capacity, bits, probes);
    const calyx_workload load = {filter_time, store_time, present, key_bytes};
    calyx_costs costs;
    const calyx_status status = calyx_weigh(&want, &load, &costs, &why);
    if (status != CALYX_OK) return status;
    out[0] = costs.filter.time;
    out[1] = costs.table.time;
    out[2] = costs.nothing.time;
    out[3] = (double)costs.filter.bytes;
    out[4] = (double)costs.table.bytes;
    return CALYX_OK;
}

/* What a kind can do: 1 remove, 2 merge, 4 grow, 8 add from many threads. */
EXPORT(int, abilities)(int kind) {
    const uint32_t can = calyx_kind_can(calyx_kinds()[kind]);
    return !!(can & CALYX_CAN_REMOVE) | !!(can & CALYX_CAN_MERGE) << 1 |
           !!(can & CALYX_CAN_GROW) << 2 | !!(can & CALYX_CAN_SHARE) << 3;
}

/* ---- Filters ------------------------------------------------------------- */

/* Zeros are defaults, as in calyx_options. NULL on failure. */
EXPORT(calyx_filter *, make)
(int kind, double capacity, double fpr, double bits, double probes,
 double growth, int hash, uint64_t seed, int kernel) {
    calyx_options want = shaped(kind, capacity, bits, probes);
    want.kernel = calyx_kernels()[kernel];
    want.fpr = fpr;
    want.growth = growth;
    want.hash = calyx_hashes()[hash];
    want.seed = seed;
    calyx_filter *f = NULL;
    calyx_new(&want, &f, &why);
    return f;
}

EXPORT(void, drop)(calyx_filter *f) {
    calyx_free(f);
}

EXPORT(int, add)(calyx_filter *f, const void *key, size_t size) {
    return calyx_add(f, key, size, NULL);
}

EXPORT(int, has)(const calyx_filter *f, const void *key, size_t size) {
    return calyx_has(f, key, size);
}

/* 1 if it was there to forget. */
EXPORT(int, forget)(calyx_filter *f, const void *key, size_t size) {
    bool found = false;
    const calyx_status status = calyx_remove(f, key, size, &found);
    return status == CALYX_OK ? found : (int)status;
}

EXPORT(double, count_of)(const calyx_filter *f, const void *key, size_t size) {
    return calyx_count(f, key, size);
}

EXPORT(uint64_t, hash_of)(const calyx_filter *f, const void *key, size_t size) {
    return calyx_hash(f, key, size);
}

EXPORT(int, add_hash)(calyx_filter *f, uint64_t hash) {
    return calyx_add_hashes(f, &hash, 1, NULL, NULL);
}

EXPORT(int, has_hash)(const calyx_filter *f, uint64_t hash) {
    return calyx_has_hashes(f, &hash, 1, NULL) == 1;
}

EXPORT(int, get_bits)
(const calyx_filter *f, double from, void *to, size_t size) {
    return calyx_get_bits(f, (uint64_t)from, to, size);
}

EXPORT(int, put_bits)
(calyx_filter *f, double from, const void *bytes, size_t size) {
    return calyx_put_bits(f, (uint64_t)from, bytes, size);
}

/* Leaves bytes, items, capacity, fpr_now, fill, distinct, parts, probes. */
EXPORT(void, describe)(const calyx_filter *f) {
    calyx_info is;
    calyx_describe(f, &is);
    out[0] = (double)is.bytes;
    out[1] = (double)is.items;
    out[2] = (double)is.capacity;
    out[3] = is.fpr_now;
    out[4] = is.fill;
    out[5] = is.distinct;
    out[6] = is.parts;
    out[7] = is.probes;
}

/* ---- Many numbers ---------------------------------------------------------
 */

enum { RUN = 4096 };
static uint64_t numbers[RUN];

static size_t fill_run(double from, double left) {
    const size_t n = left < RUN ? (size_t)left : RUN;
    for (size_t i = 0; i < n; i++) numbers[i] = (uint64_t)from + i;
    return n;
}

/* Add n whole numbers, `from` and on. */
EXPORT(int, add_numbers)(calyx_filter *f, double from, double n) {
    calyx_status status = CALYX_OK;
    for (double done = 0; done < n && status == CALYX_OK; done += RUN)
        status = calyx_add_many_u64(f, numbers, fill_run(from + done, n - done),
                                    NULL, NULL);
    return status;
}

/* How many of them are said to be there? */
EXPORT(double, has_numbers)(const calyx_filter *f, double from, double n) {
    double found = 0;
    for (double done = 0; done < n; done += RUN)
        found += (double)calyx_has_many_u64(
            f, numbers, fill_run(from + done, n - done), NULL);
    return found;
}

/* ---- Files --------------------------------------------------------------- */

/* Memory up to a limit, so that a head can be checked whatever size it tells:
 * bodies come last, and when there is no memory for them the head was sound. */
static double most_bytes;

static void *take_some(void *context, size_t size, size_t alignment) {
    (void)context;
    if ((double)size > most_bytes) return NULL;
    void *const block = aligned_alloc(alignment, (size + alignment - 1) /
                                                     alignment * alignment);
    if (!block) return NULL;
    most_bytes -= (double)size;
    return __builtin_memset(block, 0, size);
}

static void give_back(void *context, void *block, size_t size) {
    (void)context, (void)size;
    free(block);
}

static calyx_filter *opened;

/* Check the head of a file. Its filter, without bits, is in `opened` unless it
 * would take more than `most` bytes. */
EXPORT(int, open_head)(const void *bytes, size_t size, double most) {
    static const calyx_memory some = {take_some, give_back, NULL};
    const calyx_opening how = {.memory = &some};
    most_bytes = most;
    opened = NULL;
    return calyx_decode_head(bytes, size, &how, &opened, &why);
}

EXPORT(calyx_filter *, opened_filter)(void) {
    return opened;
}

/* The checksum of the format is the hash xxh3; a filter lends it. */
EXPORT(uint64_t, checksum)(const void *bytes, size_t size, uint64_t seed) {
    const calyx_options want = {.capacity = 1, .hash = "xxh3", .seed = seed};
    calyx_filter *f = NULL;
    if (calyx_new(&want, &f, &why) != CALYX_OK) return 0;
    const uint64_t sum = calyx_hash(f, bytes, size);
    calyx_free(f);
    return sum;
}

/* How many bits are set? */
EXPORT(double, count_bits)(const uint64_t *words, size_t size) {
    uint64_t set = 0;
    for (size_t i = 0; i < size / 8; i++)
        set += (uint64_t)__builtin_popcountll(words[i]);
    return (double)set;
}
