/*
 * Any bytes give an error, or a filter that survives every call.
 *
 * The input is an encoded filter, or was one once. What is done with it, if it
 * opens, is chosen by a hash of it, so that inputs stay plain files. Most
 * mutations of such a file stop at its checksums; so the mutator below knows
 * the format (doc/FORMAT.md), changes one thing that means something, and
 * makes good the checksums, or some of them, or none.
 */
#include "fuzz.h"

#include <math.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static const uint8_t secret[16] = "sixteen secrets";

/* ---- The format, written a second time------------------------------------
 */

enum {
    FIXED = 128,
    RECORD = 64,
    SLOT = 64,
    MOST_PARTS = 96,
    MOST_COMMENT = 1000,
    RANGE = 1 << 16,
    MOST_RECORDS = 4096,
    MOST_LIST = 262144,
    AT_MUST = 16,
    AT_MAY = 20,
    AT_FILE_BYTES = 24,
    AT_HEADER_BYTES = 32,
    AT_ALIGNMENT = 36,
    AT_KIND = 40,
    AT_HASH = 42,
    AT_SEED = 48,
    AT_HASH_CHECK = 56,
    AT_PARTS = 80,
    AT_COMMENT_BYTES = 84,
    AT_RECORDS_BYTES = 88,
    AT_LIST_BYTES = 92,
    AT_LIST_SUM = 96,
    OF_BLOCKS = 0,
    OF_PROBES = 8,
    OF_ITEMS = 24,
    OF_BODY_AT = 40,
    OF_BODY_BYTES = 48,
    OF_WIDE = 56,
    IN_GENERATION = 0,
    IN_STATE = 8,
    IN_ITEMS = 16,
    IN_TABLES_SUM = 24,
    IN_HEADER_SUM = 32,
    IN_SUM = 56
};

/* Codes of kinds; 5 is not used, nor those below 3. */
enum { SPLIT = 3, FLAT = 4, LINE = 6, LINE2 = 7, COUNTING = 8, RIBBON = 9 };

static uint64_t get(const uint8_t *p, size_t bytes) {
    uint64_t x = 0;
    for (size_t i = bytes; i > 0; i--) x = x << 8 | p[i - 1];
    return x;
}

static void put(uint8_t *p, size_t bytes, uint64_t x) {
    for (size_t i = 0; i < bytes; i++, x >>= 8) p[i] = (uint8_t)x;
}

static uint64_t round_up(uint64_t n, uint64_t unit) {
    return (n + unit - 1) / unit * unit;
}

/* Where the sections of some bytes are, as far as their header says. */
struct places {
    uint64_t header, list_bytes, tables, tables_bytes, slot[2], end;
    uint64_t body[MOST_PARTS], body_bytes[MOST_PARTS];
    size_t parts;
};

/* Words of 2 bytes, and 64 bytes of flags after each 512 groups. */
static uint64_t ribbon_size(const uint8_t *record) {
    const uint64_t groups = get(record + OF_BLOCKS, 8);
    const uint64_t wide = get(record + OF_WIDE, 8);
    const uint64_t words = groups * (get(record + OF_PROBES, 4) % 32) +
                           (wide < groups ? wide : groups);
    return round_up((groups ? (groups - 1) / 512 : 0) * 64 + 2 * words, 64) +
           64;
}

static uint64_t body_size(uint64_t kind, const uint8_t *record) {
    const uint64_t blocks = get(record + OF_BLOCKS, 8);
    if (kind == RIBBON) return ribbon_size(record);
    static const struct {
        uint16_t bits, counters;
    } of[] = {[SPLIT] = {256, 0},
              [FLAT] = {1, 0},
              [LINE] = {512, 0},
              [LINE2] = {512, 0},
              [COUNTING] = {512, 2050}};
    const size_t k = kind <= COUNTING && of[kind].bits ? kind : LINE;
    return round_up(blocks * of[k].bits, 512) / 8 +
           round_up(blocks * of[k].counters, 512) / 8;
}

/* False if the header says nothing that could be followed. */
static bool find_places(const uint8_t *data, size_t size, struct places *at) {
    if (size < FIXED + RECORD) return false;
    at->parts = get(data + AT_PARTS, 4);
    const uint64_t comment = get(data + AT_COMMENT_BYTES, 4);
    const uint64_t records = get(data + AT_RECORDS_BYTES, 4);
    const uint64_t texts = comment + records;
    at->list_bytes = get(data + AT_LIST_BYTES, 4);
    const uint64_t unit = get(data + AT_ALIGNMENT, 4) == 4096 ? 4096 : 64;
    if (at->parts < 1 || at->parts > MOST_PARTS || comment > MOST_COMMENT ||
        records > MOST_RECORDS || at->list_bytes > MOST_LIST ||
        size < FIXED + at->parts * RECORD + texts + 8)
        return false;
    at->header = round_up(FIXED + at->parts * RECORD + texts + 8, unit);
    uint64_t end = round_up(at->header + at->list_bytes, unit);
    at->tables_bytes = 0;
    for (size_t i = 0; i < at->parts; i++) {
        const uint8_t *record = data + FIXED + i * RECORD;
        const uint64_t blocks = get(record + OF_BLOCKS, 8);
        if (blocks > UINT64_C(1) << 44) return false;
        at->body[i] = end;
        at->body_bytes[i] = body_size(get(data + AT_KIND, 2), record);
        at->tables_bytes += (at->body_bytes[i] + RANGE - 1) / RANGE * 8;
        end = round_up(end + at->body_bytes[i], unit);
    }
    const uint64_t apart = unit == 4096 ? 512 : SLOT;
    at->tables = end;
    at->slot[0] = round_up(end + at->tables_bytes, apart);
    at->slot[1] = at->slot[0] + apart;
    at->end = at->slot[1] + apart;
    return true;
}

/* ---- Making good ----------------------------------------------------------
 */

static const char hash_words[] = "calyx: is this the same hash?";
enum { HASH_WORDS = sizeof hash_words - 1 };

/* What siphash makes of the words with our key. */
static uint64_t siphash_check(void) {
    static uint64_t check;
    static bool asked;
    if (asked) return check;
    asked = true;
    calyx_filter *f;
    if (calyx_new(
            &(calyx_options){.capacity = 1, .hash = "siphash", .key = secret},
            &f, NULL) == CALYX_OK) {
        check = calyx_hash(f, hash_words, HASH_WORDS);
        calyx_free(f);
    }
    return check;
}

static uint64_t hash_check(uint64_t hash, uint64_t seed) {
    switch (hash) {
        case 1: return XXH3_64bits_withSeed(hash_words, HASH_WORDS, seed);
        case 2: return XXH64(hash_words, HASH_WORDS, seed);
        default: return siphash_check();
    }
}

/* Fields that follow from others. */
static void derive_fields(uint8_t *data, const struct places *at) {
    put(data + AT_FILE_BYTES, 8, at->end);
    put(data + AT_HEADER_BYTES, 4, at->header);
    if (get(data + AT_HASH, 2) == 3) put(data + AT_SEED, 8, 0);
    put(data + AT_HASH_CHECK, 8,
        hash_check(get(data + AT_HASH, 2), get(data + AT_SEED, 8)));
    for (size_t i = 0; i < at->parts; i++) {
        uint8_t *record = data + FIXED + i * RECORD;
        put(record + OF_BODY_AT, 8, at->body[i]);
        put(record + OF_BODY_BYTES, 8, at->body_bytes[i]);
    }
}

static void sum_list(uint8_t *data, const struct places *at) {
    if (at->list_bytes)
        put(data + AT_LIST_SUM, 8,
            XXH3_64bits(data + at->header, at->list_bytes));
}

static void sum_header(uint8_t *data, const struct places *at) {
    put(data + at->header - 8, 8,
        XXH3_64bits_withSeed(data, at->header - 8, 0));
}

static void sum_tables(uint8_t *data, const struct places *at) {
    uint64_t chunk = 0;
    for (size_t i = 0; i < at->parts; i++)
        for (uint64_t from = 0; from < at->body_bytes[i]; from += RANGE) {
            const uint64_t left = at->body_bytes[i] - from;
            put(data + at->tables + 8 * chunk, 8,
                XXH3_64bits_withSeed(data + at->body[i] + from,
                                     left < RANGE ? left : RANGE, chunk));
            chunk++;
        }
}

static void sum_slots(uint8_t *data, const struct places *at) {
    for (int i = 0; i < 2; i++) {
        uint8_t *slot = data + at->slot[i];
        if (!get(slot + IN_GENERATION, 8)) continue;
        put(slot + IN_TABLES_SUM, 8,
            XXH3_64bits_withSeed(data + at->tables, at->tables_bytes, 0));
        put(slot + IN_HEADER_SUM, 8, get(data + at->header - 8, 8));
        put(slot + IN_SUM, 8, XXH3_64bits_withSeed(slot, IN_SUM, 0));
    }
}

/* ---- The mutator ----------------------------------------------------------
 */

struct dice {
    uint64_t state;
};

static uint64_t roll(struct dice *dice, uint64_t limit) {
    dice->state += UINT64_C(0x9E3779B97F4A7C15);
    return fuzz_mix(dice->state) % limit;
}

/* A number that somebody may have forgotten. */
static uint64_t odd_number(struct dice *dice, uint64_t now) {
    static const double reals[] = {0,    -0.0, 1,        1.25, 16,   1e-320,
                                   1e-9, 0.5,  INFINITY, NAN,  0.01, 0.999999};
    uint64_t bits;
    switch (roll(dice, 8)) {
        case 0: return 0;
        case 1: return now + 1;
        case 2: return now - 1;
        case 3: return UINT64_C(1) << roll(dice, 64);
        case 4: return (UINT64_C(1) << roll(dice, 64)) - 1;
        case 5: return roll(dice, 100);
        case 6:
            memcpy(&bits, &reals[roll(dice, sizeof reals / sizeof reals[0])],
                   sizeof bits);
            return bits;
        default: return fuzz_mix(dice->state);
    }
}

struct field {
    uint8_t at, bytes;
};

static const struct field header_fields[] = {
    {8, 4},  {12, 4}, {16, 4}, {20, 4}, {24, 8}, {32, 4},  {36, 4},
    {40, 2}, {42, 2}, {44, 4}, {48, 8}, {56, 8}, {64, 8},  {72, 8},
    {80, 4}, {84, 4}, {88, 4}, {92, 4}, {96, 8}, {104, 8}, {120, 8}};
static const struct field record_fields[] = {{0, 8},  {8, 4},  {12, 4},
                                             {16, 8}, {24, 8}, {32, 8},
                                             {40, 8}, {48, 8}, {56, 8}};
static const struct field slot_fields[] = {{0, 8},  {8, 4},  {12, 4}, {16, 8},
                                           {24, 8}, {32, 8}, {40, 8}, {56, 8}};

static void change_field(uint8_t *from, const struct field *fields, size_t n,
                         struct dice *dice) {
    const struct field *field = &fields[roll(dice, n)];
    uint8_t *at = from + field->at;
    put(at, field->bytes, odd_number(dice, get(at, field->bytes)));
}
#define CHANGE(from, fields, dice) \
    change_field(from, fields, sizeof fields / sizeof fields[0], dice)

/* One part more, like one that is there, or one less. Bodies are left where
 * they are: one is as good as another. */
static void change_parts(uint8_t *data, size_t size, const struct places *at,
                         struct dice *dice) {
    const bool more = roll(dice, 2);
    const uint64_t parts = at->parts + more - !more;
    if (parts < 1 || FIXED + parts * RECORD > size) return;
    if (more)
        memmove(data + FIXED + at->parts * RECORD,
                data + FIXED + roll(dice, at->parts) * RECORD, RECORD);
    put(data + AT_PARTS, 4, parts);
}

/* Another size, another kind, another alignment: things that hold together if
 * all that follows from them is derived anew. */
static void change_shape(uint8_t *data, const struct places *at,
                         struct dice *dice) {
    uint8_t *record = data + FIXED + roll(dice, at->parts) * RECORD;
    switch (roll(dice, 6)) {
        case 0: put(data + AT_KIND, 2, SPLIT + roll(dice, 7)); break;
        case 1: put(data + AT_HASH, 2, 1 + roll(dice, 3)); break;
        case 2: put(data + AT_ALIGNMENT, 4, roll(dice, 4) ? 64 : 4096); break;
        case 3: put(record + OF_BLOCKS, 8, 1 + roll(dice, 40)); break;
        case 4: put(record + OF_WIDE, 8, 32 * roll(dice, 3)); break;
        default: put(record + OF_PROBES, 4, 1 + roll(dice, 32)); break;
    }
}

/* As if the filter had been changed in place: a newer state in the other slot,
 * with the tables out of date or not. */
static void change_turn(uint8_t *data, const struct places *at,
                        struct dice *dice) {
    const uint64_t from = roll(dice, 2);
    const uint8_t *slot = data + at->slot[from];
    uint8_t *next = data + at->slot[1 - from];
    memmove(next, slot, SLOT);
    put(next + IN_GENERATION, 8, get(slot + IN_GENERATION, 8) + 1);
    put(next + IN_STATE, 4, 1 + roll(dice, 2));
    put(next + IN_ITEMS, 8, odd_number(dice, get(slot + IN_ITEMS, 8)));
}

static calyx_key key_at(size_t i);

/* An allow list of one key, or another byte in the one that is there, or none.
 * The bodies are left where they are. */
static void change_list(uint8_t *data, size_t size, const struct places *at,
                        struct dice *dice) {
    const calyx_key key = key_at(roll(dice, 7));
    if (at->list_bytes && at->header + at->list_bytes <= size &&
        roll(dice, 2)) {
        data[at->header + roll(dice, at->list_bytes)] =
            (uint8_t)roll(dice, 256);
        return;
    }
    const bool none = roll(dice, 4) == 0;
    if (at->header + 4 + key.size > size) return;
    put(data + AT_MUST, 4, !none);
    put(data + AT_LIST_BYTES, 4, none ? 0 : 4 + key.size);
    put(data + AT_LIST_SUM, 8, 0); /* unless it is made good */
    if (none) return;
    put(data + at->header, 4, key.size);
    memcpy(data + at->header + 4, key.data, key.size);
}

static void change_one_thing(uint8_t *data, size_t size,
                             const struct places *at, struct dice *dice) {
    const bool whole = at->end <= size;
    const size_t part = roll(dice, at->parts);
    switch (roll(dice, 10)) {
        case 0: CHANGE(data, header_fields, dice); break;
        case 1:
            CHANGE(data + FIXED + part * RECORD, record_fields, dice);
            break;
        case 2: change_parts(data, size, at, dice); break;
        case 3:
        case 4: change_shape(data, at, dice); break;
        case 5:
            if (whole)
                CHANGE(data + at->slot[roll(dice, 2)], slot_fields, dice);
            break;
        case 6:
            if (whole && at->body_bytes[part])
                data[at->body[part] + roll(dice, at->body_bytes[part])] =
                    (uint8_t)roll(dice, 256);
            break;
        case 7:
            if (whole) change_turn(data, at, dice);
            break;
        case 8: change_list(data, size, at, dice); break;
        default: LLVMFuzzerMutate(data, size, size); break;
    }
}

/* Let the bytes have the length that their header asks for, with the trailer
 * at the new end. */
static size_t fit_size(uint8_t *data, size_t size, size_t most,
                       const struct places *old, const struct places *new) {
    if (new->end > most) return size;
    uint8_t slots[2][SLOT];
    for (int i = 0; i < 2; i++) {
        memset(slots[i], 0, SLOT);
        if (old->slot[i] + SLOT <= size)
            memcpy(slots[i], data + old->slot[i], SLOT);
    }
    if (new->end > size) memset(data + size, 0, new->end - size);
    memset(data + new->tables, 0, new->end - new->tables);
    for (int i = 0; i < 2; i++) memcpy(data + new->slot[i], slots[i], SLOT);
    return new->end;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed) {
    struct dice dice = {seed};
    struct places old, new;
    if (roll(&dice, 16) == 0 || !find_places(data, size, &old))
        return LLVMFuzzerMutate(data, size, most);
    do change_one_thing(data, size, &old, &dice);
    while (roll(&dice, 2) && find_places(data, size, &old));

    if (!find_places(data, size, &new)) return size;
    const uint64_t care = roll(&dice, 16); /* most often, all is made good */
    if (care > 1) size = fit_size(data, size, most, &old, &new);
    if (new.end > size) return size;
    if (care > 2) derive_fields(data, &new);
    if (care > 3) sum_tables(data, &new);
    if (care > 3) sum_list(data, &new);
    if (care > 0) sum_header(data, &new);
    if (care > 0) sum_slots(data, &new);
    return size;
}

/* ---- A filter that opened -------------------------------------------------
 */

enum { KEYS = 12 };

/* Keys of all lengths up to the hash's longer ways of working. */
static calyx_key key_at(size_t i) {
    static const char text[] =
        "The calyx is the outermost whorl of parts that form a flower, and is "
        "usually green. It protects the flower in bud, and it supports the "
        "petals when in bloom. Botanists count the sepals that it is made of, "
        "and so can you; there are often as many as there are petals or so.";
    static const uint16_t length[KEYS] = {0,  3,  4,  8,   9,   16,
                                          17, 32, 64, 128, 129, 250};
    return (calyx_key){text, length[i]};
}

static void ask_all(const calyx_filter *f, bool *answers) {
    calyx_key keys[KEYS];
    for (size_t i = 0; i < KEYS; i++) keys[i] = key_at(i);
    const size_t found = calyx_has_many(f, keys, KEYS, answers);
    size_t total = 0;
    for (size_t i = 0; i < KEYS; i++) {
        DEMAND(answers[i] == calyx_has(f, keys[i].data, keys[i].size));
        DEMAND(answers[i] || calyx_count(f, keys[i].data, keys[i].size) == 0);
        total += answers[i];
    }
    DEMAND(found == total);
}

static void demand_same_answers(const calyx_filter *a, const calyx_filter *b) {
    bool of_a[KEYS], of_b[KEYS];
    ask_all(a, of_a);
    ask_all(b, of_b);
    DEMAND(memcmp(of_a, of_b, sizeof of_a) == 0);
}

/* Whatever `few` has, `many` has. */
static void demand_no_fewer(const calyx_filter *few, const calyx_filter *many) {
    bool of_few[KEYS], of_many[KEYS];
    ask_all(few, of_few);
    ask_all(many, of_many);
    for (size_t i = 0; i < KEYS; i++) DEMAND(of_many[i] || !of_few[i]);
}

static bool is_share(double x) {
    return x >= 0 && x <= 1;
}

static calyx_info described(const calyx_filter *f) {
    calyx_info info;
    calyx_describe(f, &info);
    DEMAND(is_share(info.fill) && is_share(info.fpr_now) && is_share(info.fpr));
    DEMAND(info.distinct >= 0 && isfinite(info.distinct));
    DEMAND(info.parts >= 1 && info.bits >= 1);
    DEMAND(info.capacity >= 1 || info.can & CALYX_CAN_STATIC);
    DEMAND(strlen(calyx_comment(f)) <= MOST_COMMENT);
    return info;
}

static uint8_t *encoded(const calyx_filter *f, size_t *size) {
    *size = (size_t)calyx_encoded_size(f);
    if (!*size) return NULL; /* too many parts */
    uint8_t *bytes = aligned_alloc(64, *size);
    DEMAND(bytes && *size % 64 == 0);
    calyx_error why;
    if (calyx_encode(f, bytes, *size, &why) != CALYX_OK) {
        DEMAND(why.status == CALYX_NO_MEMORY);
        free(bytes);
        return NULL;
    }
    return bytes;
}

/* The words of the input that an encoder would not have written so, although
 * they are right: what is changed in place, and what may be ignored. */
static bool is_as_written(const uint8_t *data, size_t size) {
    static const uint8_t zeros[SLOT];
    struct places at;
    if (!find_places(data, size, &at) || get(data + AT_ALIGNMENT, 4) != 64)
        return false;
    const uint8_t *slot = data + at.slot[0];
    const uint8_t *newest = data + FIXED + (at.parts - 1) * RECORD;
    return get(data + AT_MAY, 4) == 0 && get(slot + IN_STATE, 4) == 1 &&
           get(slot + 12, 4) == 0 && memcmp(slot + 40, zeros, 16) == 0 &&
           memcmp(data + at.slot[1], zeros, SLOT) == 0 &&
           get(slot + IN_ITEMS, 8) == get(newest + OF_ITEMS, 8);
}

/* The place and number of the slot in use are the writer's own affair. */
static bool same_but_generation(const uint8_t *a, const uint8_t *b,
                                size_t size) {
    struct places at;
    if (!find_places(a, size, &at)) return false;
    const size_t slot = at.slot[0];
    return memcmp(a, b, slot) == 0 &&
           memcmp(a + slot + 8, b + slot + 8, IN_SUM - 8) == 0 &&
           memcmp(a + slot + SLOT, b + slot + SLOT, size - slot - SLOT) == 0;
}

static void encode_again(const calyx_filter *f, const uint8_t *data,
                         size_t size, const calyx_open_options *how) {
    size_t first_size, second_size;
    uint8_t *first = encoded(f, &first_size);
    if (!first) return;
    if (data && is_as_written(data, size))
        DEMAND(first_size == size && same_but_generation(first, data, size));

    calyx_filter *again = NULL;
    calyx_error why;
    const calyx_status status =
        calyx_decode(first, first_size, how, &again, &why);
    DEMAND(status == CALYX_OK || status == CALYX_NO_MEMORY);
    if (status == CALYX_OK) {
        uint8_t *second = encoded(again, &second_size);
        DEMAND(!second || (second_size == first_size &&
                           memcmp(first, second, first_size) == 0));
        demand_same_answers(f, again);
        free(second);
        calyx_free(again);
    }
    free(first);
}

static bool put_until(void *context, const void *bytes, size_t size) {
    size_t *left = context;
    (void)bytes;
    return size <= *left ? *left -= size, true : false;
}

/* Who takes the bytes may stop at any time. */
static void write_some(const calyx_filter *f, uint64_t choice) {
    const size_t all = (size_t)calyx_encoded_size(f);
    if (!all) return;
    size_t left = choice % (all + 1);
    const bool whole = left == all;
    const calyx_status status = calyx_write(f, put_until, &left, NULL);
    DEMAND(status == (whole ? CALYX_OK : CALYX_IO) ||
           status == CALYX_NO_MEMORY);
}

static void fold_and_freeze(const calyx_filter *f, uint64_t choice) {
    static const uint64_t factors[] = {0, 1, 2, 3, 4, 7, 64, UINT64_MAX};
    calyx_filter *made;
    calyx_error why;
    if (calyx_fold(f, factors[choice % 8], &made, &why) == CALYX_OK) {
        demand_no_fewer(f, made);
        described(made);
        calyx_free(made);
    }
    if (calyx_freeze(f, &made, &why) == CALYX_OK) {
        demand_same_answers(f, made);
        described(made);
        calyx_free(made);
    }
}

static bool is_static(const calyx_filter *f) {
    calyx_info info;
    calyx_info_of(f, &info);
    return info.can & CALYX_CAN_STATIC;
}

/* What looks a key up in the list agrees with what lists it. */
static void look_at_list(const calyx_filter *f) {
    uint64_t at = 0, keys = 0;
    calyx_key key;
    for (; calyx_next_allowed(f, &at, &key); keys++) {
        DEMAND(calyx_is_allowed(f, key.data, key.size));
        DEMAND(!calyx_has(f, key.data, key.size));
    }
    DEMAND(keys == described(f).allowed);
}

static void combine(const calyx_filter *f) {
    calyx_filter *copy;
    calyx_overlap overlap;
    if (calyx_copy(f, &copy, NULL) != CALYX_OK) return;
    demand_same_answers(f, copy);
    if (calyx_compare(f, copy, &overlap, NULL) == CALYX_OK)
        DEMAND(overlap.either >= 0 && is_share(overlap.jaccard));
    const bool grown = described(f).parts > 1 || is_static(f);
    const bool lists = described(f).allowed > 0; /* take memory */
    calyx_status status = calyx_merge(copy, f, NULL);
    DEMAND(status == CALYX_OK || (grown && status == CALYX_CANNOT) ||
           (lists && status == CALYX_NO_MEMORY));
    demand_same_answers(f, copy);
    status = calyx_intersect(copy, f, NULL);
    DEMAND(status == CALYX_OK || (grown && status == CALYX_CANNOT) ||
           (lists && status == CALYX_NO_MEMORY));
    demand_same_answers(f, copy);
    described(copy);
    calyx_free(copy);
}

static void add_one(calyx_filter *f, size_t i) {
    const calyx_key key = key_at(i);
    bool fresh = false;
    const bool had = calyx_has(f, key.data, key.size);
    if (calyx_add(f, key.data, key.size, &fresh) == CALYX_OK) {
        DEMAND(calyx_has(f, key.data, key.size));
        DEMAND(!(had && fresh));
    } else {
        DEMAND(had == calyx_has(f, key.data, key.size));
    }
}

static void clear(calyx_filter *f, uint64_t choice) {
    const calyx_status status = calyx_clear(f);
    DEMAND(status == (is_static(f) ? CALYX_CANNOT : CALYX_OK));
    if (status != CALYX_OK) return;
    DEMAND(described(f).items == 0 && described(f).fill == 0);
    add_one(f, choice % KEYS);
}

static void add_many(calyx_filter *f) {
    enum { MANY = 300 };
    uint64_t hashes[MANY];
    bool fresh[MANY], found[MANY];
    size_t done = 0;
    for (size_t i = 0; i < MANY; i++) hashes[i] = fuzz_mix(i + 1);
    calyx_add_hashes(f, hashes, MANY, fresh, &done);
    DEMAND(done <= MANY && calyx_has_hashes(f, hashes, done, found) == done);
}

static void change(calyx_filter *f, uint64_t choice) {
    /* Planning how to grow takes long; once is enough. */
    const bool grows = described(f).growth > 0;
    if (grows && choice % 16) return;
    add_one(f, choice % KEYS);
    if (!grows && choice >> 8 & 1) add_many(f);
    bool found;
    const calyx_key key = key_at(choice % KEYS);
    if (calyx_remove(f, key.data, key.size, &found) == CALYX_OK && found)
        add_one(f, choice % KEYS);
    calyx_set_comment(f, choice % 3 ? "changed" : "");
    if (choice >> 9 & 1 &&
        calyx_allow(f, key.data, key.size, NULL, NULL) == CALYX_OK)
        DEMAND(!calyx_has(f, key.data, key.size));
    look_at_list(f);
}

static void use(calyx_filter *f, const uint8_t *data, size_t size,
                const calyx_open_options *how, uint64_t choice) {
    bool answers[KEYS];
    look_at_list(f);
    ask_all(f, answers);
    DEMAND(calyx_verify(f, NULL) == CALYX_OK);
    if (choice & 0x100) encode_again(f, data, size, how);
    if ((choice & 0x300) == 0) write_some(f, choice >> 16);
    if ((choice & 0x600) == 0) fold_and_freeze(f, choice >> 16);
    if ((choice & 0x600) == 0x200) combine(f);
    if ((choice & 0x600) == 0x400) {
        change(f, choice >> 24);
        if (choice & 0x1000) encode_again(f, NULL, 0, how);
        if (choice & 0x2000) fold_and_freeze(f, choice >> 20);
    }
    if ((choice & 0x6000) == 0) clear(f, choice);
}

static void use_in_place(const calyx_filter *view, uint64_t choice) {
    if (choice & 0x80000) DEMAND(described(view).read_only);
    const calyx_status no = is_static(view) ? CALYX_CANNOT : CALYX_READ_ONLY;
    DEMAND(calyx_add((calyx_filter *)view, "", 0, NULL) == no);
    DEMAND(calyx_clear((calyx_filter *)view) == no);
    DEMAND(calyx_sync((calyx_filter *)view, NULL) == CALYX_READ_ONLY);
    if ((choice & 0x70000) == 0) fold_and_freeze(view, choice >> 18);
    if ((choice & 0x70000) == 0x10000) combine(view);
    if ((choice & 0x70000) == 0x20000) {
        calyx_filter *copy;
        if (calyx_copy(view, &copy, NULL) != CALYX_OK) return;
        DEMAND(strcmp(calyx_comment(copy), calyx_comment(view)) == 0);
        change(copy, choice >> 24);
        calyx_free(copy);
    }
}

/* ---- The target -----------------------------------------------------------
 */

/* An error that says nothing until it is filled, and has no end. */
static calyx_error blank(void) {
    calyx_error why;
    memset(&why, 'x', sizeof why);
    return why;
}

static void demand_reason(calyx_status status, const calyx_error *why) {
    if (status == CALYX_OK) return;
    DEMAND(why->status == status);
    DEMAND(why->text[0] && memchr(why->text, 0, sizeof why->text));
    DEMAND(*calyx_status_text(status));
}

static bool get_from(void *context, void *buffer, size_t size) {
    struct choices *from = context;
    if (size > from->left) return false;
    memcpy(buffer, from->at, size);
    from->at += size;
    from->left -= size;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint64_t choice = fuzz_mix(XXH3_64bits(data, size));
    struct ration ration = {.most = (size_t)3 << 19, .calls_left = SIZE_MAX};
    if (choice >> 60 == 0) ration.calls_left = choice >> 40 & 15;
    const calyx_memory memory = {ration_take, ration_give, &ration};
    const char *const *kernels = calyx_kernels();
    const calyx_open_options how = {
        .key = secret,
        .kernel = kernels[(choice >> 32) % list_length(kernels)],
        .concurrent = (choice >> 36 & 7) == 0,
        .memory = &memory,
    };

    calyx_filter *f = NULL, *view = NULL, *streamed = NULL;
    calyx_error why = blank();
    const calyx_status decoded = calyx_decode(data, size, &how, &f, &why);
    demand_reason(decoded, &why);
    DEMAND(decoded == CALYX_OK ? f != NULL : !f && ration.taken == 0);
    DEMAND(decoded != CALYX_IO);
    /* The table of an allow list has up to 64 bytes for a key of 5. */
    const uint64_t list =
        decoded == CALYX_OK ? get(data + AT_LIST_BYTES, 4) : 0;
    DEMAND(ration.peak <= 2 * size + 65536 + 16 * list);

    uint8_t *copy = aligned_alloc(64, round_up(size + 1, 64));
    DEMAND(copy);
    if (size) memcpy(copy, data, size);
    why = blank();
    const calyx_status viewed = calyx_view(copy, size, &how, &view, &why);
    demand_reason(viewed, &why);
    if (viewed == CALYX_OK) {
        why = blank();
        const calyx_status verified = calyx_verify(view, &why);
        demand_reason(verified, &why);
        if (decoded == CALYX_OK) {
            DEMAND(verified == CALYX_OK || verified == CALYX_UNSEALED ||
                   verified == CALYX_NO_MEMORY);
            DEMAND(strcmp(calyx_comment(f), calyx_comment(view)) == 0);
            demand_same_answers(f, view);
        }
        DEMAND(verified != CALYX_OK || decoded == CALYX_OK ||
               decoded == CALYX_NO_MEMORY);
        use_in_place(view, choice);
        calyx_free(view);
    } else {
        DEMAND(!view && (decoded != CALYX_OK || viewed == CALYX_NO_MEMORY));
    }
    free(copy);

    if ((choice >> 56 & 15) == 0) {
        struct choices rest = {data, size};
        why = blank();
        const calyx_status read =
            calyx_read(get_from, &rest, &how, &streamed, &why);
        demand_reason(read, &why);
        if (f && read == CALYX_OK) demand_same_answers(f, streamed);
        DEMAND(decoded != CALYX_OK || read == CALYX_OK ||
               read == CALYX_NO_MEMORY);
        calyx_free(streamed);
    }

    if (f) use(f, data, size, &how, choice);
    calyx_free(f);
    DEMAND(ration.taken == 0);
    return 0;
}
