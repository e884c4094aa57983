/*
 * RedisBloom's data: any values, headers and chunks give an error, or a filter
 * that survives every call and forgets nothing.
 *
 * The first byte of an input is an encoding, and values of an RDB file follow;
 * or it is 255, and a dump follows: iterator, size and bytes of each chunk, the
 * header first. Numbers have 8 bytes, little-endian; strings have their length
 * before them. test/module/redisbloom_data.py --corpus makes such inputs. What
 * is done with a filter that loads is chosen by a hash of the input.
 */
#include "foreign/redisbloom_chain.h"
#include "fuzz.h"

#include <math.h>

enum { DUMP = 255, MOST_BYTES = 4 << 20 };

/* ---- Values out of bytes, and into them ---------------------------------- */

struct source {
    struct choices in;
    struct ration *ration; /* the strings are taken from it */
};

static bool get_unsigned(void *context, uint64_t *value) {
    struct source *from = context;
    if (from->in.left < 8) return false;
    *value = choose_bytes(&from->in, 8);
    return true;
}

static bool get_double(void *context, double *value) {
    uint64_t word;
    if (!get_unsigned(context, &word)) return false;
    memcpy(value, &word, sizeof word);
    return true;
}

static void *get_string(void *context, size_t *size) {
    struct source *from = context;
    uint64_t n;
    if (!get_unsigned(from, &n) || n > from->in.left) return NULL;
    void *string = ration_take(from->ration, (size_t)n, 16);
    if (!string) return NULL;
    memcpy(string, from->in.at, (size_t)n);
    from->in.at += n;
    from->in.left -= (size_t)n;
    *size = (size_t)n;
    return string;
}

struct sink {
    uint8_t *at;
    size_t size;
};

static void put_bytes(void *context, const void *bytes, size_t size) {
    struct sink *to = context;
    to->at = realloc(to->at, to->size + size + 1);
    DEMAND(to->at);
    memcpy(to->at + to->size, bytes, size);
    to->size += size;
}

static void put_unsigned(void *context, uint64_t value) {
    uint8_t word[8];
    for (size_t i = 0; i < 8; i++) word[i] = (uint8_t)(value >> 8 * i);
    put_bytes(context, word, sizeof word);
}

static void put_double(void *context, double value) {
    uint64_t word;
    memcpy(&word, &value, sizeof word);
    put_unsigned(context, word);
}

static void put_string(void *context, const void *bytes, size_t size) {
    put_unsigned(context, size);
    put_bytes(context, bytes, size);
}

static struct chain *load(const uint8_t *data, size_t size, int encoding,
                          const calyx_memory *memory) {
    struct source from = {{data, size}, memory->context};
    struct chain *c;
    calyx_error why = {0};
    const calyx_status status = chain_load(
        &(struct rdb_reader){get_unsigned, get_double, get_string, &from, NULL},
        encoding, memory, &c, &why);
    DEMAND((status == CALYX_OK) == (c != NULL));
    DEMAND(status == CALYX_OK || why.text[0]);
    return c;
}

/* Wrong chunks are left out, as a client would that only logs its errors. */
static struct chain *load_dump(const uint8_t *data, size_t size,
                               const calyx_memory *memory) {
    struct source from = {{data, size}, memory->context};
    struct chain *c = NULL;
    uint64_t at, bytes = 0;
    size_t n;
    void *chunk;
    while (get_unsigned(&from, &at) && (chunk = get_string(&from, &n))) {
        calyx_error why = {0};
        const uint64_t before = c ? chain_digest(c) : 0;
        bool changed = false;
        if (c) {
            const calyx_status status =
                chain_load_chunk(c, (int64_t)at, chunk, n, &changed, &why);
            DEMAND(changed == (chain_digest(c) != before));
            DEMAND(status == CALYX_OK || (!changed && why.text[0]));
        } else if (chain_header_bytes(chunk, n, &bytes, &why) == CALYX_OK) {
            const calyx_status status =
                chain_load_header(chunk, n, memory, &c, &why);
            DEMAND((status == CALYX_OK) == (c != NULL));
            DEMAND(status == CALYX_OK || status == CALYX_NO_MEMORY);
            DEMAND(!c || (c->bytes == bytes && chain_is_partial(c)));
        } else {
            DEMAND(why.text[0]);
        }
        ration_give(memory->context, chunk, n);
    }
    return c;
}

/* ---- What must be so ----------------------------------------------------- */

static void demand_same_saved(const struct chain *c,
                              const calyx_memory *memory) {
    struct sink out = {0};
    chain_save(
        c, &(struct rdb_writer){put_unsigned, put_double, put_string, &out});
    struct chain *again = load(out.at, out.size, CHAIN_ENCODING, memory);
    DEMAND(!again || chain_digest(again) == chain_digest(c));
    const struct ration *ration = memory->context;
    DEMAND(again || ration->peak > MOST_BYTES / 4 || !ration->calls_left);
    chain_free(again);
    free(out.at);
}

static void demand_same_dumped(const struct chain *c, size_t most,
                               const calyx_memory *memory) {
    struct sink out = {0};
    const size_t size = chain_header_size(c);
    uint8_t *header = malloc(size);
    DEMAND(header);
    chain_dump_header(c, header);
    put_unsigned(&out, 1);
    put_string(&out, header, size);
    free(header);
    int64_t at = 1;
    size_t n;
    for (const void *chunk; (chunk = chain_dump_chunk(c, most, &at, &n));) {
        DEMAND(n > 0 && n <= most);
        put_unsigned(&out, (uint64_t)at);
        put_string(&out, chunk, n);
    }
    DEMAND(at == 0 && n == 0);
    struct chain *again = load_dump(out.at, out.size, memory);
    /* without memory for a chunk it stays partial */
    DEMAND(!again || again->arrived < c->arrived ||
           chain_digest(again) == chain_digest(c));
    chain_free(again);
    free(out.at);
}

static void demand_same_copied(const struct chain *c) {
    struct chain *copy;
    const calyx_status status = chain_copy(c, &copy, NULL);
    DEMAND((status == CALYX_OK) == (copy != NULL));
    DEMAND(!copy || chain_digest(copy) == chain_digest(c));
    chain_free(copy);
}

/* Keys of all lengths, added in two ways; and nothing is forgotten. */
static void add_and_ask(struct chain *c, uint64_t choice) {
    enum { KEYS = 60 };
    uint64_t words[KEYS][3];
    calyx_key keys[KEYS];
    bool before[KEYS], fresh[KEYS], after[KEYS];
    calyx_error why = {0};
    for (size_t i = 0; i < KEYS; i++) {
        for (size_t w = 0; w < 3; w++)
            words[i][w] = fuzz_mix(choice + i * 3 + w);
        keys[i] = (calyx_key){words[i], i % 25};
    }
    const size_t counted = chain_has_many(c, keys, KEYS, before);
    size_t found = 0;
    for (size_t i = 0; i < KEYS; i++) {
        DEMAND(chain_has(c, keys[i].data, keys[i].size) == before[i]);
        found += before[i];
    }
    DEMAND(found == counted);

    size_t done = 0;
    calyx_status status = CALYX_OK;
    const uint64_t items = c->items;
    if (choice & 1)
        status = chain_add_many(c, keys, KEYS, fresh, &done, &why);
    else
        for (; done < KEYS && status == CALYX_OK; done += status == CALYX_OK)
            status = chain_add(c, keys[done].data, keys[done].size,
                               &fresh[done], &why);
    DEMAND(status == CALYX_OK ? done == KEYS : why.text[0] != 0);
    chain_has_many(c, keys, KEYS, after);
    found = 0;
    for (size_t i = 0; i < KEYS; i++) {
        DEMAND(after[i] || (i >= done && !before[i]));
        if (i < done) DEMAND(!(fresh[i] && before[i]));
        if (i < done) found += fresh[i];
    }
    DEMAND(c->items == items + found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) return 0;
    uint64_t choice = size;
    for (size_t i = 0; i < size; i++) choice = fuzz_mix(choice ^ data[i]);
    struct ration ration = {
        .most = MOST_BYTES,
        .calls_left = choice % 8 ? SIZE_MAX : (choice >> 8) % 40,
    };
    const calyx_memory memory = {ration_take, ration_give, &ration};

    struct chain *c = data[0] == DUMP
                          ? load_dump(data + 1, size - 1, &memory)
                          : load(data + 1, size - 1, data[0], &memory);
    if (c) {
        demand_same_saved(c, &memory);
        demand_same_dumped(c, 1 + (choice >> 16) % 300, &memory);
        demand_same_copied(c);
        if (chain_is_partial(c))
            DEMAND(chain_add(c, "", 0, NULL, NULL) == CALYX_CANNOT);
        else
            add_and_ask(c, choice >> 3);
        demand_same_saved(c, &memory);
        const struct chain_info info = chain_describe(c);
        DEMAND(info.items <= info.capacity);
    }
    chain_free(c);
    DEMAND(ration.taken == 0);
    return 0;
}

/* ---- The mutator --------------------------------------------------------- */

/* Changes one number into one that somebody may have forgotten. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed) {
    static const double reals[] = {0,        -0.0, 1,    0.5,    0.25,
                                   INFINITY, NAN,  1e-9, 1e-320, 0.9999};
    const uint64_t dice = fuzz_mix(seed);
    const size_t fields = size < 9 ? 0 : (size - 1) / 8;
    if (dice % 3 == 0 || !fields) return LLVMFuzzerMutate(data, size, most);
    /* the first ones matter more than what is in a body */
    const size_t among = dice & 4 && fields > 16 ? 16 : fields;
    uint8_t *field = data + 1 + 8 * ((dice >> 8) % among);
    uint64_t word = 0;
    for (size_t i = 8; i > 0; i--) word = word << 8 | field[i - 1];
    switch (dice >> 40 & 7) {
        case 0: word++; break;
        case 1: word--; break;
        case 2: word = UINT64_C(1) << (dice >> 48) % 64; break;
        case 3: word = ~word; break;
        case 4: word = (dice >> 48) % 64; break;
        case 5: word *= 2; break;
        case 6: word = UINT64_MAX - (dice >> 48) % 4; break;
        default:
            memcpy(&word, &reals[(dice >> 48) % (sizeof reals / sizeof *reals)],
                   sizeof word);
    }
    for (size_t i = 0; i < 8; i++, word >>= 8) field[i] = (uint8_t)word;
    return size;
}
