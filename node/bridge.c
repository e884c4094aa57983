/*
 * JavaScript's view of the library, compiled with it to WebAssembly. Kinds,
 * hashes and kernels go by their number in calyx_kinds() and so on. A call with
 * more than one result leaves them in `fields`, each with its name, and the
 * reason of a failure in `why`; calyx.js, the other half, reads both from
 * memory.
 *
 * Every number but a hash goes as a double, which holds what the library can
 * count, 2^44, without loss.
 */
#include <calyx/calyx.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __wasm__
#define EXPORT(type, name) __attribute__((export_name(#name))) type page_##name
#else
#define EXPORT(type, name) type page_##name
#endif

/* Results: names and values, up to a field without a name. */
static struct field {
    const char *name;
    const char *text; /* or NULL: the value is a number */
    double number;
} fields[24];
static int fields_used;
static calyx_error why;

static void put(const char *name, double number) {
    fields[fields_used++] = (struct field){name, NULL, number};
}

static void put_text(const char *name, const char *text) {
    fields[fields_used++] = (struct field){name, text, 0};
}

EXPORT(const struct field *, fields_at)(void) {
    fields[fields_used] = (struct field){0};
    fields_used = 0;
    return fields;
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

/* Memory for keys and slices of files. */
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

/* Nothing here can fail with an error of a system, whose texts take 1 kB. */
char *strerror(int code) {
    static char none[1];
    (void)code;
    return none;
}

/* JavaScript has these functions, too; the functions of the C library, with
 * their tables, would take 13 kB. */
#ifdef __wasm__
#define FROM_MATH(name)                                               \
    __attribute__((import_module("math"),                             \
                   import_name(#name))) double math_##name(double x); \
    double name(double x) {                                           \
        return math_##name(x);                                        \
    }
FROM_MATH(exp)
FROM_MATH(expm1)
FROM_MATH(log)
FROM_MATH(log1p)
FROM_MATH(log2)
__attribute__((import_module("math"), import_name("pow"))) double math_pow(
    double x, double y);
double pow(double x, double y) {
    return math_pow(x, y);
}
#endif

/* ---- Planning ------------------------------------------------------------ */

static calyx_options shaped(int kind, double capacity, double bits,
                            double probes) {
    return (calyx_options){.kind = kind < 0 ? NULL : calyx_kinds()[kind],
                           .capacity = (uint64_t)capacity,
                           .bits = (uint64_t)bits,
                           .probes = (uint32_t)probes};
}

/* Two of keys, rate and the size are not 0; the size is `bits`, or else what
 * fits into `memory` bytes. `probes` 0 is the best number. The result `rate` is
 * that at capacity, `fpr` the promise. */
EXPORT(int, plan)
(int kind, double keys, double rate, double memory, double bits,
 double probes) {
    calyx_options want = shaped(kind, keys, bits, probes);
    want.fpr = rate;
    calyx_info is;
    double at_capacity = 0;
    calyx_status status = CALYX_OK;
    if (memory > 0 && !(bits > 0))
        status =
            calyx_bits_within(want.kind, (uint64_t)memory, &want.bits, &why);
    if (status == CALYX_OK) status = calyx_plan(&want, &is, &why);
    if (status == CALYX_OK)
        status = calyx_rate_at(&want, is.capacity, &at_capacity, &why);
    if (status != CALYX_OK) return status;
    put_text("kind", is.kind);
    put("keys", (double)is.capacity);
    put("bytes", (double)is.bytes);
    put("bits", (double)is.bits);
    put("probes", is.probes);
    put("rate", at_capacity);
    put("fpr", is.fpr);
    return CALYX_OK;
}

/* The rate of a filter of this shape with `items` keys; NaN if there is none.
 */
EXPORT(double, rate_at)(int kind, double bits, double probes, double items) {
    const calyx_options want = shaped(kind, 1, bits, probes);
    double rate = NAN;
    calyx_rate_at(&want, (uint64_t)items, &rate, &why);
    return rate;
}

/* The mean time of a lookup with a filter, with a table, by the store alone. */
EXPORT(int, weigh)
(int kind, double capacity, double bits, double probes, double filter_time,
 double store_time, double present, double key_bytes) {
    const calyx_options want = shaped(kind, capacity, bits, probes);
    const calyx_workload load = {.filter_time = filter_time,
                                 .store_time = store_time,
                                 .present = present,
                                 .key_bytes = key_bytes};
    calyx_costs costs;
    const calyx_status status = calyx_weigh(&want, &load, &costs, &why);
    if (status != CALYX_OK) return status;
    put("withFilter", costs.filter.time);
    put("withTable", costs.table.time);
    put("alone", costs.nothing.time);
    return CALYX_OK;
}

/* What a kind can do, by name. */
EXPORT(void, abilities)(int kind) {
    const uint32_t can = calyx_kind_can(calyx_kinds()[kind]);
    if (can & CALYX_CAN_ADD) put("add", 1);
    if (can & CALYX_CAN_STATIC) put("static", 1);
    if (can & CALYX_CAN_COUNT) put("count", 1);
    if (can & CALYX_CAN_REMOVE) put("remove", 1);
    if (can & CALYX_CAN_MERGE) put("merge", 1);
    if (can & CALYX_CAN_GROW) put("grow", 1);
    if (can & CALYX_CAN_SHARE) put("share", 1);
}

/* The bits of the smallest filter of a kind, which has one block. */
EXPORT(double, least_bits)(int kind) {
    calyx_info is;
    for (uint64_t bits = 1; bits <= 1 << 20; bits *= 2) {
        const calyx_options want = {
            .kind = calyx_kinds()[kind], .capacity = 1, .bits = bits};
        if (calyx_plan(&want, &is, NULL) == CALYX_OK) return (double)is.bits;
    }
    return 0;
}

/* ---- Filters ------------------------------------------------------------- */

/* Zeros, and a negative kind or hash, are defaults. NULL on failure. */
EXPORT(calyx_filter *, make)
(int kind, double capacity, double fpr, double bits, double probes,
 double growth, int hash, uint64_t seed, int kernel) {
    calyx_options want = shaped(kind, capacity, bits, probes);
    want.kernel = calyx_kernels()[kernel];
    want.fpr = fpr;
    want.growth = growth;
    want.hash = hash < 0 ? NULL : calyx_hashes()[hash];
    want.seed = seed;
    want.seeded = true; /* JavaScript has the random numbers */
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

/* Put a key on the allow list: lookups of it return no. */
EXPORT(int, allow)(calyx_filter *f, const void *key, size_t size) {
    return calyx_allow(f, key, size, NULL, &why);
}

EXPORT(double, count_of)(const calyx_filter *f, const void *key, size_t size) {
    return calyx_count(f, key, size);
}

EXPORT(uint64_t, hash_of)(const calyx_filter *f, const void *key, size_t size) {
    return calyx_hash(f, key, size);
}

EXPORT(int, get_bits)
(const calyx_filter *f, double from, void *to, size_t size) {
    return calyx_get_bits(f, (uint64_t)from, to, size);
}

/* A filter of these bits, which another had; NULL on failure. */
EXPORT(calyx_filter *, from_bits)
(int kind, double capacity, double bits, double probes, const void *bytes,
 size_t size) {
    const calyx_options want = shaped(kind, capacity, bits, probes);
    calyx_filter *f = NULL;
    calyx_from_bits(&want, bytes, size, &f, &why);
    return f;
}

/* ---- Builders, which kinds without calyx_add need -------------------------
 */

/* NULL on failure. */
EXPORT(calyx_builder *, builder_new)(int kind, double fpr) {
    const calyx_builder_options want = {
        .filter = {.kind = calyx_kinds()[kind], .fpr = fpr}};
    calyx_builder *b = NULL;
    calyx_builder_new(&want, &b, &why);
    return b;
}

EXPORT(int, builder_add)(calyx_builder *b, const void *key, size_t size) {
    return calyx_builder_add(b, key, size, &why);
}

/* A filter of the keys so far; NULL on failure. */
EXPORT(calyx_filter *, builder_finish)(calyx_builder *b) {
    calyx_filter *f = NULL;
    calyx_builder_finish(b, &f, &why);
    return f;
}

EXPORT(void, builder_free)(calyx_builder *b) {
    calyx_builder_free(b);
}

/* ---- What a filter is ---------------------------------------------------- */

/* Sets `counters` to how often each bit was set, as far as the kind counts;
 * else to 0 or 1. doc/FORMAT.md: the bits come first, then as many planes of
 * the same size, of which the counter minus 1 is made, lowest first. */
EXPORT(void, get_counters)
(const calyx_filter *f, const uint8_t *body, uint8_t *counters) {
    enum { MOST = 15 };
    calyx_info is;
    calyx_info_of(f, &is);
    const bool counts = is.can & CALYX_CAN_COUNT &&
                        !(is.can & CALYX_CAN_GROW_IN_PLACE); /* by copies */
    const uint64_t planes = counts ? 8 * is.bytes / is.bits - 1 : 0;
    for (uint64_t bit = 0; bit < is.bits; bit++) {
        unsigned counter = body[bit / 8] >> bit % 8 & 1, more = 0;
        for (uint64_t plane = 1; counter && plane <= planes; plane++) {
            const uint64_t at = bit + plane * is.bits;
            more |= (body[at / 8] >> at % 8 & 1U) << (plane - 1);
        }
        counter += more;
        counters[bit] = (uint8_t)(counter < MOST ? counter : MOST);
    }
}

/* Sets `slots` to the slots of a table, line by line, and returns how many it
 * has: 0 if a slot is not in use, else its run, from 1 on, and below that its
 * remainder of 8 bits. doc/FORMAT.md, tables of fixed size, with 1 probe: the
 * last 8 bytes of a line have the number of slots of each run, in 3 bits. */
EXPORT(size_t, get_slots)(const uint8_t *body, size_t size, uint16_t *slots) {
    enum { LINE = 64, SLOTS = 56, RUNS = 20 };
    const size_t lines = size / LINE;
    for (size_t i = 0; i < lines; i++, body += LINE, slots += SLOTS) {
        uint64_t counts;
        size_t slot = 0;
        memcpy(&counts, body + SLOTS, sizeof counts);
        memset(slots, 0, SLOTS * sizeof *slots);
        for (unsigned run = 1; run <= RUNS; run++, counts >>= 3)
            for (size_t n = counts & 7; n > 0 && slot < SLOTS; n--, slot++)
                slots[slot] = (uint16_t)(run << 8 | body[slot]);
    }
    return lines * SLOTS;
}

EXPORT(double, encoded_size)(const calyx_filter *f) {
    return (double)calyx_encoded_size(f);
}

/* The filter as the bytes of a file. */
EXPORT(int, encode)(const calyx_filter *f, void *to, size_t size) {
    return calyx_encode(f, to, size, &why);
}

/* The filter of the bytes of a file; NULL on failure. */
EXPORT(calyx_filter *, decode)(const void *bytes, size_t size) {
    calyx_filter *f = NULL;
    calyx_decode(bytes, size, NULL, &f, &why);
    return f;
}

/* What is known of a filter. */
static void put_info(const calyx_info *is) {
    static char seed[21];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)is->seed);
    put_text("kind", is->kind);
    put_text("hash", is->hash);
    put_text("seed", seed);
    put("keys", (double)is->items);
    put("capacity", (double)is->capacity);
    put("bits", (double)is->bits);
    put("bytes", (double)is->bytes);
    put("parts", is->parts);
    put("probes", is->probes);
    put("growth", is->growth);
    put("strict", is->strict);
    put("ratePromised", is->fpr);
    put("rate", is->fpr_now);
    put("fill", is->fill);
    put("distinct", is->distinct);
    put("allowed", (double)is->allowed);
}

EXPORT(void, describe)(const calyx_filter *f) {
    calyx_info is;
    calyx_describe(f, &is);
    put_info(&is);
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

EXPORT(int, builder_add_numbers)(calyx_builder *b, double from, double n) {
    calyx_status status = CALYX_OK;
    for (double done = 0; done < n && status == CALYX_OK; done += RUN)
        status = calyx_builder_add_many_u64(
            b, numbers, fill_run(from + done, n - done), &why);
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

/* ---- Files, in pieces ---------------------------------------------------- */

EXPORT(int, header_most)(void) {
    return CALYX_HEADER_MOST;
}

EXPORT(int, line_bytes)(void) {
    return CALYX_LINE_BYTES;
}

static double big_endian(const uint8_t *bytes) {
    return (double)((uint32_t)bytes[0] << 24 | bytes[1] << 16 | bytes[2] << 8 |
                    bytes[3]);
}

static void put_known(const char *name, double bits, double probes) {
    put_text("name", name);
    put("bits", bits);
    put("probes", probes);
}

static void put_layout(const char *layout, double bits, double probes) {
    put_known("layout", bits, probes);
    put_text("layout", layout);
}

/* Parquet's header is in Thrift's compact protocol: the number of bytes, by 7
 * bits and doubled, then three choices of one each. */
static bool is_parquet(const uint8_t *head, double *bits) {
    static const uint8_t choices[] = {0x1c, 0x1c, 0,    0, 0x1c, 0x1c, 0,
                                      0,    0x1c, 0x1c, 0, 0,    0};
    uint64_t doubled = 0;
    int at = 1;
    do doubled |= (uint64_t)(head[at] & 0x7f) << 7 * (at - 1);
    while (head[at++] >= 0x80 && at < 6);
    *bits = 4 * (double)doubled;
    return head[0] == 0x15 && memcmp(head + at, choices, sizeof choices) == 0;
}

/* What a file of `size` bytes is that is no filter of Calyx, by its first 64
 * bytes; nothing if they are not known. doc/OTHERS.md says who writes it. */
EXPORT(void, recognize)(const uint8_t *head, double size) {
    static const struct {
        const char *bytes, *name;
    } starts[] = {{"\x1f\x8b", "gzip"},      {"\x28\xb5\x2f\xfd", "zstd"},
                  {"calyx dump 1 ", "dump"}, {"\x07\x81", "server"},
                  {"PAR1", "parquet.whole"}, {"\xac\xed", "java"}};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (strncmp((const char *)head, starts[i].bytes,
                    strlen(starts[i].bytes)) == 0)
            return put_text("name", starts[i].name);
    double bits;
    if (is_parquet(head, &bits)) return put_known("parquet", bits, 8);
    const double guava = big_endian(head + 2);
    if (head[0] <= 1 && head[1] > 0 && size == 6 + 8 * guava)
        return put_layout("guava", 64 * guava, head[1]);
    const double version = big_endian(head); /* 2 has a seed */
    const double spark = big_endian(head + (version == 2 ? 12 : 8));
    if ((version == 1 || version == 2) && size == 8 + 4 * version + 8 * spark)
        put_layout("spark", 64 * spark, big_endian(head + 4));
}

/* NULL on failure. */
EXPORT(calyx_layout *, layout_new)(const void *bytes, size_t size) {
    calyx_layout *layout = NULL;
    calyx_layout_new(bytes, size, &layout, &why);
    return layout;
}

EXPORT(void, layout_free)(calyx_layout *layout) {
    calyx_layout_free(layout);
}

/* `asks`: can keys be looked up? Not without the secret key of the hash, nor if
 * the kind does not say which bytes it reads. */
EXPORT(int, layout_describe)(const calyx_layout *layout, const uint64_t *set) {
    calyx_info is;
    uint64_t hash = 0, at[CALYX_LINES_MOST];
    const bool keyed =
        calyx_layout_hash(layout, "", 0, &hash) == CALYX_WRONG_KEY;
    calyx_layout_describe(layout, set, &is);
    put_info(&is);
    put_text("comment", calyx_layout_comment(layout));
    put("secret", keyed);
    put("asks", !keyed && calyx_layout_lines(layout, 0, hash, at) > 0);
    return CALYX_OK;
}

/* 0 if there is no such part. */
EXPORT(int, layout_part)(const calyx_layout *layout, int number) {
    calyx_part part;
    if (!calyx_layout_part(layout, (uint32_t)number, &part)) return 0;
    put("items", (double)part.items);
    put("capacity", (double)part.capacity);
    put("bits", (double)part.bits);
    put("bytes", (double)part.bytes);
    put("probes", part.probes);
    return 1;
}

/* 0 if there is no such section. */
EXPORT(int, layout_section)(const calyx_layout *layout, int index) {
    static const char *const names[] = {
        [CALYX_SECTION_HEADER] = "header", [CALYX_SECTION_BODY] = "body",
        [CALYX_SECTION_TABLES] = "tables", [CALYX_SECTION_SLOT] = "slot",
        [CALYX_SECTION_END] = "end",       [CALYX_SECTION_ALLOW] = "allow"};
    calyx_section section;
    if (!calyx_layout_section(layout, (uint32_t)index, &section)) return 0;
    put_text("name", names[section.type]);
    put("number", section.number);
    put("at", (double)section.at);
    put("bytes", (double)section.bytes);
    put("step", (double)section.step);
    return 1;
}

/* "good"; "open" if there is no checksum to compare with; or "bad". */
EXPORT(const char *, layout_check)
(calyx_layout *layout, int index, double from, const void *bytes, size_t size) {
    switch (calyx_layout_check(layout, (uint32_t)index, (uint64_t)from, bytes,
                               size, &why)) {
        case CALYX_OK: return "good";
        case CALYX_UNSEALED: return "open";
        default: return "bad";
    }
}

/* Is the key on the allow list, which was checked? */
EXPORT(int, layout_allows)
(const calyx_layout *layout, const void *key, size_t size) {
    return calyx_layout_allows(layout, key, size);
}

EXPORT(uint64_t, layout_hash)
(const calyx_layout *layout, const void *key, size_t size) {
    uint64_t hash = 0;
    calyx_layout_hash(layout, key, size, &hash);
    return hash;
}

/* Sets `at` to the places in the file of the lines that a lookup reads. */
EXPORT(int, layout_lines)
(const calyx_layout *layout, int part, uint64_t hash, double *at) {
    uint64_t places[CALYX_LINES_MOST];
    const size_t n = calyx_layout_lines(layout, (uint32_t)part, hash, places);
    for (size_t i = 0; i < n; i++) at[i] = (double)places[i];
    return (int)n;
}

EXPORT(int, layout_has)
(const calyx_layout *layout, int part, uint64_t hash, const void *lines) {
    return calyx_layout_has(layout, (uint32_t)part, hash, lines);
}

/* Sets the bits of a hash in a copy of its line. */
EXPORT(int, layout_add)
(const calyx_layout *layout, int part, uint64_t hash, void *line) {
    return calyx_layout_add(layout, (uint32_t)part, hash, line);
}

EXPORT(int, layout_next)
(const calyx_layout *layout, int part, uint64_t hash, const void *lines) {
    return (int)calyx_layout_next(layout, (uint32_t)part, hash, lines);
}

/* How many bits are set? */
EXPORT(double, count_bits)(const uint64_t *words, size_t size) {
    uint64_t set = 0;
    for (size_t i = 0; i < size / 8; i++)
        set += (uint64_t)__builtin_popcountll(words[i]);
    return (double)set;
}
