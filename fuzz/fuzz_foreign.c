/*
 * Files and dumps of other programs' filters: any bytes give an error, or a
 * filter that survives every call, forgets nothing and goes back as it came.
 *
 * The first byte of an input selects a layout, and whether its file or a dump
 * follows; before bits without a head, a line says their layout. The checksum
 * of a DUMP reply is made right first, and the checksum of a dump if the byte
 * says so: else hardly any change would get past it.
 */
#include "foreign/dump_file.h"
#include "foreign/dump_payload.h"
#include "foreign/redisbloom_chain.h"
#include "foreign/valkey_bloom.h"
#include "fuzz.h"
#include "wire/bytes.h"
#include "wire/dump.h"

enum { LAYOUTS = 8, AS_DUMP = 8, MOST_PROMISED = 16 << 20 };

struct file {
    uint8_t *at;
    size_t size, used;
};

static void put(void *context, const void *bytes, size_t size) {
    struct file *const to = context;
    to->at = realloc(to->at, to->size + size + 1);
    DEMAND(to->at);
    if (size) memcpy(to->at + to->size, bytes, size);
    to->size += size;
}

static bool get(void *context, void *bytes, size_t size) {
    struct file *const from = context;
    if (size > from->size - from->used) return false;
    if (size) memcpy(bytes, from->at + from->used, size);
    from->used += size;
    return true;
}

/* ---- Checksums ----------------------------------------------------------- */

static void sign_payload(struct file *f) {
    if (payload_looks_so(f->at, f->size))
        store_u64(f->at + f->size - 8, payload_sum(0, f->at, f->size - 8));
}

/* Follow the records; if there is an end, write its sum. False if a header of
 * RedisBloom promises more memory than a fuzzer should take. */
static bool sign_dump(const struct file *f) {
    const uint8_t *const line = memchr(f->at, '\n', f->size);
    size_t at = line ? (size_t)(line - f->at) + 1 : f->size;
    uint64_t sum = 0, promised = 0;
    for (bool first = true; f->size - at >= 16; first = false) {
        const uint64_t size = load_u64(f->at + at + 8);
        const uint8_t *const record = f->at + at;
        at += 16;
        if (load_u64(record) == 0 && size == 0 && f->size - at >= 8)
            store_u64(f->at + at, sum);
        if ((load_u64(record) == 0 && size == 0) || size > f->size - at) break;
        if (first &&
            chain_header_bytes(f->at + at, (size_t)size, &promised, NULL) ==
                CALYX_OK &&
            promised > MOST_PROMISED)
            return false;
        sum = dump_sum_with(sum, dump_sum(record, 16));
        sum = dump_sum_with(sum, dump_sum(f->at + at, (size_t)size));
        at += (size_t)size;
    }
    return true;
}

/* ---- What must be so ----------------------------------------------------- */

static bool read_bytes(const struct foreign_choice *choice,
                       const struct file *from, struct foreign_filter *f) {
    calyx_error why = {0};
    uint8_t *const copy = malloc(from->size + 1);
    DEMAND(copy);
    if (from->size) memcpy(copy, from->at, from->size);
    const calyx_status status = foreign_read(choice, copy, from->size, f, &why);
    DEMAND(status == CALYX_OK || why.text[0]);
    if (status != CALYX_OK) free(copy);
    return status == CALYX_OK;
}

static bool read_dump(struct file *from, struct foreign_filter *f) {
    struct dump_reader r = {.get = get, .context = from};
    calyx_error why = {0};
    calyx_status status = dump_open(&r, &why);
    if (status == CALYX_OK) status = dump_load(&r, f, &why);
    DEMAND(status == CALYX_OK || why.text[0]);
    free(r.bytes);
    return status == CALYX_OK;
}

static struct file file_of(const struct foreign_filter *f) {
    struct file out = {0};
    f->layout->write(f, &(struct foreign_sink){put, &out});
    return out;
}

static struct file dump_of(const struct foreign_filter *f) {
    struct file out = {0};
    struct dump_writer w;
    dump_begin(&w, &(struct dump_head){.layout = f->layout},
               (struct foreign_sink){put, &out});
    DEMAND(dump_filter(&w, f, NULL) == CALYX_OK);
    dump_end(&w);
    return out;
}

/* There and back, by its file and by a dump. */
static void demand_same(const struct foreign_filter *f) {
    struct foreign_filter again;
    struct file file = file_of(f), dump = dump_of(f);
    struct foreign_choice choice = {.layout = f->layout};
    if (f->layout == &foreign_bits) choice.line = f->words.line;
    DEMAND(read_bytes(&choice, &file, &again));
    struct file second = file_of(&again);
    DEMAND(second.size == file.size &&
           memcmp(second.at, file.at, file.size) == 0);
    f->layout->free(&again);
    free(second.at);
    DEMAND(read_dump(&dump, &again) && dump.used == dump.size);
    second = file_of(&again);
    DEMAND(second.size == file.size &&
           memcmp(second.at, file.at, file.size) == 0);
    f->layout->free(&again);
    free(second.at);
    free(file.at);
    free(dump.at);
}

/* A filter may grow to any multiple of its size; here, to what a fuzzer can
 * take. */
static bool grows_slowly(const struct foreign_filter *f) {
    enum { MOST_GROWTH = 16 };
    if (f->layout == &foreign_redisbloom)
        return f->chain->growth <= MOST_GROWTH;
    if (f->layout == &foreign_valkey_bloom)
        return f->valkey->params.expansion <= MOST_GROWTH;
    return true;
}

static void add_and_query(struct foreign_filter *f, uint64_t choice) {
    enum { KEYS = 40 };
    uint64_t words[KEYS][3];
    calyx_key keys[KEYS];
    bool before[KEYS], after[KEYS];
    for (size_t i = 0; i < KEYS; i++) {
        for (size_t w = 0; w < 3; w++)
            words[i][w] = fuzz_mix(choice + i * 3 + w);
        keys[i] = (calyx_key){words[i], i % 25};
    }
    f->layout->has_many(f, keys, KEYS, before);
    calyx_error why = {0};
    const calyx_status status = f->layout->add_many(f, keys, KEYS, &why);
    f->layout->has_many(f, keys, KEYS, after);
    DEMAND(status == CALYX_OK || why.text[0]);
    for (size_t i = 0; i < KEYS; i++)
        DEMAND(after[i] || (!before[i] && status != CALYX_OK));
}

/* What the first byte selects; a line moves to the choice. */
static bool choose(uint8_t first, struct file *in,
                   struct foreign_choice *choice) {
    *choice =
        (struct foreign_choice){.layout = foreign_layouts[first % 8 % LAYOUTS]};
    if (first & AS_DUMP || choice->layout != &foreign_bits) return true;
    calyx_error why = {0};
    uint8_t *const end = memchr(in->at, '\n', in->size);
    if (!end) return false;
    *end = '\0';
    const char *const line = (const char *)in->at;
    const bool good = foreign_choose(line, choice, &why) == CALYX_OK;
    DEMAND(good || why.text[0]);
    in->size -= (size_t)(end + 1 - in->at);
    memmove(in->at, end + 1, in->size);
    return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) return 0;
    struct foreign_choice layout;
    struct foreign_filter f;
    struct file in = {malloc(size), size - 1, 0};
    DEMAND(in.at);
    memcpy(in.at, data + 1, size - 1);
    uint64_t choice = size;
    for (size_t i = 0; i < size; i++) choice = fuzz_mix(choice ^ data[i]);
    const bool as_dump = data[0] & AS_DUMP;
    bool loaded = choose(data[0], &in, &layout);
    if (!loaded) {
        free(in.at);
        return 0;
    }
    if (as_dump) {
        loaded = sign_dump(&in) && read_dump(&in, &f);
    } else {
        sign_payload(&in);
        loaded = read_bytes(&layout, &in, &f);
    }
    if (loaded) {
        struct foreign_facts facts;
        f.layout->describe(&f, &facts);
        DEMAND(facts.bits > 0 && facts.parts > 0 && facts.probes > 0);
        DEMAND(facts.rate_now >= 0 && facts.rate_now <= 1);
        demand_same(&f);
        if (grows_slowly(&f)) add_and_query(&f, choice);
        demand_same(&f);
        f.layout->free(&f);
    }
    free(in.at);
    return 0;
}

/* ---- Seeds --------------------------------------------------------------- */

/* A small filter and one that has grown, of each layout, in both forms. */
size_t fuzz_seed(unsigned number, uint8_t *data, size_t most) {
    if (number >= 4 * LAYOUTS) return 0;
    const bool as_dump = number & 1, large = number & 2;
    const struct foreign_layout *const layout = foreign_layouts[number / 4];
    struct foreign_filter f;
    DEMAND(foreign_make(&(struct foreign_choice){.layout = layout}, 20, 0.02,
                        &f, NULL) == CALYX_OK);
    for (uint64_t i = 0; i < (large ? 150 : 15); i++) {
        const calyx_key key = {&i, 1 + i % 8};
        DEMAND(layout->add_many(&f, &key, 1, NULL) == CALYX_OK);
    }
    struct file bytes = {0};
    if (as_dump) {
        bytes = dump_of(&f);
    } else if (layout == &foreign_bits) {
        put(&bytes, f.words.line.text, strlen(f.words.line.text));
        put(&bytes, "\n", 1);
    }
    const struct file bits = as_dump ? (struct file){0} : file_of(&f);
    put(&bytes, bits.at, bits.size);
    free(bits.at);
    DEMAND(bytes.size < most);
    data[0] = (uint8_t)(number / 4 + (as_dump ? AS_DUMP : 0));
    memcpy(data + 1, bytes.at, bytes.size);
    layout->free(&f);
    const size_t size = bytes.size + 1;
    free(bytes.at);
    return size;
}

/* ---- The mutator --------------------------------------------------------- */

/* Changes a number of the head into one that somebody may have forgotten, in
 * either byte order, and leaves the rest to the general one. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed) {
    static const uint64_t numbers[] = {0,
                                       1,
                                       63,
                                       64,
                                       65,
                                       4096,
                                       4097,
                                       INT32_MAX,
                                       UINT32_MAX,
                                       UINT64_C(1) << 32,
                                       UINT64_C(1) << 48,
                                       INT64_MAX,
                                       UINT64_MAX};
    const uint64_t dice = fuzz_mix(seed);
    const size_t width = dice >> 8 & 1 ? 8 : 4;
    const size_t among = size < 128 ? size : 128;
    if (dice % 3 == 0 || among < width + 1)
        return LLVMFuzzerMutate(data, size, most);
    uint8_t *const field = data + 1 + (dice >> 16) % (among - width);
    uint64_t word = numbers[(dice >> 40) % (sizeof numbers / sizeof *numbers)];
    if (dice >> 9 & 1) word += dice >> 60;
    for (size_t i = 0; i < width; i++)
        field[dice >> 10 & 1 ? i : width - 1 - i] = (uint8_t)(word >> 8 * i);
    return size;
}
