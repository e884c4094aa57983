/*
 * Filters of other programs: which bits a key has, and what is refused. The
 * positions are as in the programs, computed apart from this code; items of
 * every length that takes another path of their hashes.
 */
#include <stdlib.h>
#include <string.h>

#include "foreign/dump_file.h"
#include "foreign/dump_payload.h"
#include "foreign/redisbloom_chain.h"
#include "support.h"
#include "wire/bytes.h"

enum { PROBES = 5, ITEMS = 5, WORDS = 16 };

static uint8_t last_item[33]; /* 200, 201, .. 232 */
static const calyx_key items[ITEMS] = {
    {"", 0}, {"a", 1}, {"hello", 5}, {"0123456789abcdef", 16}, {last_item, 33}};

struct vector {
    const struct foreign_layout *layout;
    const char *head; /* of a file with 16 words */
    size_t head_size;
    bool is_big_endian;
    const uint16_t (*bits)[PROBES]; /* of each item */
};

#define HEAD(text) text, sizeof text - 1

static const uint16_t guava_64_bits[ITEMS][PROBES] = {
    {0, 0, 0, 0, 0},
    {137, 483, 829, 151, 497},
    {770, 27, 308, 589, 870},
    {423, 641, 859, 53, 271},
    {380, 410, 440, 470, 500}};
static const uint16_t guava_32_bits[ITEMS][PROBES] = {
    {0, 0, 0, 0, 0},
    {494, 851, 839, 541, 125},
    {693, 407, 484, 462, 385},
    {827, 207, 412, 8, 395},
    {922, 583, 41, 500, 1005}};
static const uint16_t spark_1_bits[ITEMS][PROBES] = {{0, 0, 0, 0, 0},
                                                     {593, 859, 759, 693, 925},
                                                     {1017, 525, 1003, 539, 34},
                                                     {436, 951, 732, 655, 4},
                                                     {216, 18, 770, 488, 723}};
static const uint16_t spark_2_bits[ITEMS][PROBES] = {{506, 696, 886, 52, 242},
                                                     {647, 205, 787, 345, 927},
                                                     {268, 755, 218, 705, 168},
                                                     {698, 200, 726, 228, 754},
                                                     {683, 123, 587, 27, 491}};
static const uint16_t bits_and_blooms_bits[ITEMS][PROBES] = {
    {0, 493, 986, 970, 832},
    {801, 842, 105, 863, 365},
    {306, 845, 898, 343, 570},
    {583, 836, 675, 564, 615},
    {492, 654, 796, 808, 156}};
static const uint16_t dcso_bits[ITEMS][PROBES] = {{983, 213, 815, 549, 423},
                                                  {394, 110, 34, 798, 154},
                                                  {453, 423, 965, 479, 101},
                                                  {243, 49, 27, 137, 379},
                                                  {397, 455, 229, 591, 29}};

static const struct vector vectors[] = {
    {&foreign_guava, HEAD("\1\5\0\0\0\x10"), true, guava_64_bits},
    {&foreign_guava, HEAD("\0\5\0\0\0\x10"), true, guava_32_bits},
    {&foreign_spark, HEAD("\0\0\0\1\0\0\0\5\0\0\0\x10"), true, spark_1_bits},
    {&foreign_spark, HEAD("\0\0\0\2\0\0\0\5\0\0\0\7\0\0\0\x10"), true,
     spark_2_bits},
    {&foreign_bits_and_blooms, /* 1000 bits in 16 words */
     HEAD("\0\0\0\0\0\0\3\xE8\0\0\0\0\0\0\0\5\0\0\0\0\0\0\3\xE8"), true,
     bits_and_blooms_bits},
    {&foreign_bits_and_blooms,
     HEAD("\0\0\0\0\0\0\3\xE8\0\0\0\0\0\0\0\5\xE8\3\0\0\0\0\0\0"), false,
     bits_and_blooms_bits},
    {&foreign_dcso,
     HEAD("\1\0\0\0\0\0\0\0\x64\0\0\0\0\0\0\0\0\0\0\0\0\0\xE0\x3F"
          "\5\0\0\0\0\0\0\0\xE8\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
     false, dcso_bits},
};
enum { VECTORS = sizeof vectors / sizeof *vectors };

/* ---- Filters ------------------------------------------------------------- */

static struct foreign_filter empty(const struct vector *v) {
    struct foreign_filter f;
    calyx_error why = {0};
    const size_t size = v->head_size + 8 * WORDS;
    uint8_t *const file = calloc(1, size);
    assert_non_null(file);
    memcpy(file, v->head, v->head_size);
    const struct foreign_choice choice = {.layout = v->layout};
    if (foreign_read(&choice, file, size, &f, &why) != CALYX_OK)
        fail_msg("%s: %s", v->layout->name, why.text);
    return f;
}

static uint8_t *byte_of(const struct foreign_filter *f, const struct vector *v,
                        unsigned bit) {
    return f->words.file + v->head_size +
           (bit / 64 * 8 + (v->is_big_endian ? 7 - bit / 8 % 8 : bit / 8 % 8));
}

static bool foreign_has(const struct foreign_filter *f, const calyx_key *key) {
    bool found;
    f->layout->has_many(f, key, 1, &found);
    return found;
}

static void set_bits(struct foreign_filter *f, const struct vector *v,
                     size_t item) {
    for (int b = 0; b < PROBES; b++)
        *byte_of(f, v, v->bits[item][b]) |=
            (uint8_t)(1u << v->bits[item][b] % 8);
}

static void each_item(void (*check)(const struct vector *v, size_t item)) {
    for (size_t i = 0; i < sizeof last_item; i++)
        last_item[i] = (uint8_t)(200 + i);
    for (size_t n = 0; n < VECTORS; n++)
        for (size_t i = 0; i < ITEMS; i++) check(&vectors[n], i);
}

static void assert_found_by_bits(const struct vector *v, size_t item) {
    struct foreign_filter f = empty(v);
    set_bits(&f, v, item);
    assert_true(foreign_has(&f, &items[item]));
    for (int b = 0; b < PROBES; b++) {
        uint8_t *const byte = byte_of(&f, v, v->bits[item][b]);
        const uint8_t was = *byte;
        *byte &= (uint8_t) ~(1u << v->bits[item][b] % 8);
        assert_false(foreign_has(&f, &items[item]));
        *byte = was;
    }
    v->layout->free(&f);
}

static void a_key_is_found_by_exactly_the_bits_that_its_owner_sets(
    void **state) {
    (void)state;
    each_item(assert_found_by_bits);
}

static void assert_added_as_bits(const struct vector *v, size_t item) {
    struct foreign_filter f = empty(v), wanted = empty(v);
    set_bits(&wanted, v, item);
    assert_int_equal(v->layout->add_many(&f, &items[item], 1, NULL), CALYX_OK);
    assert_memory_equal(f.words.file + v->head_size,
                        wanted.words.file + v->head_size, 8 * WORDS);
    v->layout->free(&f);
    v->layout->free(&wanted);
}

static void adding_a_key_sets_exactly_the_bits_that_its_owner_sets(
    void **state) {
    (void)state;
    each_item(assert_added_as_bits);
}

/* ---- Files and records --------------------------------------------------- */

struct bytes {
    uint8_t *at;
    size_t size, used;
};

static void put(void *context, const void *bytes, size_t size) {
    struct bytes *const to = context;
    to->at = realloc(to->at, to->size + size + 1);
    assert_non_null(to->at);
    memcpy(to->at + to->size, bytes, size);
    to->size += size;
}

static bool get(void *context, void *bytes, size_t size) {
    struct bytes *const from = context;
    if (size > from->size - from->used) return false;
    memcpy(bytes, from->at + from->used, size);
    from->used += size;
    return true;
}

static struct foreign_filter filled(const struct foreign_layout *layout,
                                    uint64_t keys) {
    struct foreign_filter f;
    const struct foreign_choice choice = {.layout = layout};
    assert_int_equal(foreign_make(&choice, keys, 0.01, &f, NULL), CALYX_OK);
    for (uint64_t i = 0; i < keys; i++) {
        const calyx_key key = {&i, sizeof i};
        assert_int_equal(layout->add_many(&f, &key, 1, NULL), CALYX_OK);
    }
    return f;
}

/* Bits alone do not say their layout. */
static struct foreign_choice choice_of(const struct foreign_filter *f) {
    struct foreign_choice choice = {.layout = f->layout};
    if (f->layout == &foreign_bits) choice.line = f->words.line;
    return choice;
}

static struct bytes dumped(const struct foreign_filter *f) {
    struct bytes out = {0};
    struct dump_writer w;
    const struct dump_head head = {.layout = f->layout, .items = "int64"};
    dump_begin(&w, &head, (struct foreign_sink){put, &out});
    assert_int_equal(dump_filter(&w, f, NULL), CALYX_OK);
    dump_end(&w);
    return out;
}

static calyx_status load(struct bytes *from, struct foreign_filter *f,
                         calyx_error *why) {
    struct dump_reader r = {.get = get, .context = from};
    calyx_status status = dump_open(&r, why);
    if (status == CALYX_OK) status = dump_load(&r, f, why);
    if (status == CALYX_OK) assert_string_equal(r.head.items, "int64");
    free(r.bytes);
    return status;
}

static void a_filter_of_any_layout_survives_its_file_and_a_dump(void **state) {
    (void)state;
    for (const struct foreign_layout *const *l = foreign_layouts; *l; l++) {
        struct foreign_filter f = filled(*l, 2000), read, loaded;
        struct bytes file = {0}, again = {0}, dump = dumped(&f);
        const struct foreign_sink to = {put, &file}, to_again = {put, &again};
        (*l)->write(&f, &to);
        assert_int_equal(load(&dump, &loaded, NULL), CALYX_OK);
        assert_int_equal(dump.used, dump.size);
        (*l)->write(&loaded, &to_again);
        assert_int_equal(file.size, again.size);
        assert_memory_equal(file.at, again.at, file.size);
        const struct foreign_choice choice = choice_of(&f);
        assert_int_equal(foreign_read(&choice, file.at, file.size, &read, NULL),
                         CALYX_OK);
        for (uint64_t i = 0; i < 2000; i++)
            assert_true(foreign_has(&read, &(calyx_key){&i, sizeof i}) &&
                        foreign_has(&loaded, &(calyx_key){&i, sizeof i}));
        struct foreign_facts facts;
        (*l)->describe(&read, &facts);
        assert_true(facts.bits > 2000 && facts.set > 2000);
        assert_true(facts.rate_now > 0.001 && facts.rate_now < 0.015);
        if (facts.counts) assert_in_range(facts.items, 1950, 2000);
        (*l)->free(&f);
        (*l)->free(&read);
        (*l)->free(&loaded);
        free(again.at);
        free(dump.at);
    }
}

static void a_dump_with_any_byte_changed_or_cut_is_refused(void **state) {
    (void)state;
    for (const struct foreign_layout *const *l = foreign_layouts; *l; l++) {
        struct foreign_filter f = filled(*l, 20), damaged;
        struct bytes dump = dumped(&f);
        const size_t line = strcspn((const char *)dump.at, "\n");
        for (size_t i = 0; i < dump.size; i++) {
            calyx_error why = {0};
            dump.used = 0;
            dump.at[i] ^= 0x10;
            if (i < line - strlen("int64") || i >= line) {
                assert_int_not_equal(load(&dump, &damaged, &why), CALYX_OK);
                assert_true(why.text[0]);
            }
            dump.at[i] ^= 0x10;
            struct bytes cut = {dump.at, i, 0};
            assert_int_not_equal(load(&cut, &damaged, &why), CALYX_OK);
        }
        (*l)->free(&f);
        free(dump.at);
    }
}

/* ---- What DUMP replies ----------------------------------------------------
 */

static void the_checksum_of_a_payload_is_crc_64_of_jones(void **state) {
    (void)state;
    assert_int_equal(payload_sum(0, "123456789", 9),
                     UINT64_C(0xE9C6D914C4B8D9CA));
    assert_int_equal(payload_sum(payload_sum(0, "1234", 4), "56789", 5),
                     UINT64_C(0xE9C6D914C4B8D9CA));
}

/* With its checksum made right. */
static calyx_status read_signed(const struct foreign_layout *layout,
                                const struct bytes *file, calyx_error *why) {
    struct foreign_filter f;
    uint8_t *const copy = malloc(file->size);
    assert_non_null(copy);
    memcpy(copy, file->at, file->size);
    store_u64(copy + file->size - 8, payload_sum(0, copy, file->size - 8));
    const struct foreign_choice choice = {.layout = layout};
    const calyx_status status =
        foreign_read(&choice, copy, file->size, &f, why);
    if (status == CALYX_OK)
        layout->free(&f);
    else
        free(copy);
    return status;
}

static void a_payload_with_wrong_values_is_refused_or_a_filter(void **state) {
    (void)state;
    const struct foreign_layout *const of[] = {&foreign_redisbloom,
                                               &foreign_valkey_bloom};
    for (int l = 0; l < 2; l++) {
        struct foreign_filter f = filled(of[l], 30);
        struct bytes file = {0};
        const struct foreign_sink to = {put, &file};
        of[l]->write(&f, &to);
        assert_int_equal(read_signed(of[l], &file, NULL), CALYX_OK);
        for (size_t i = 0; i < file.size - 8; i++)
            for (unsigned value = 0; value < 256; value++) {
                calyx_error why = {0};
                const uint8_t was = file.at[i];
                file.at[i] = (uint8_t)value;
                if (read_signed(of[l], &file, &why) != CALYX_OK)
                    assert_true(why.text[0]);
                file.at[i] = was;
            }
        file.at[file.size - 1] ^= 1;
        struct foreign_filter no;
        calyx_error why = {0};
        assert_int_not_equal(
            foreign_read(&(struct foreign_choice){.layout = of[l]}, file.at,
                         file.size, &no, &why),
            CALYX_OK);
        assert_non_null(strstr(why.text, "its checksum is"));
        of[l]->free(&f);
        free(file.at);
    }
}

/* A copy of a payload with other bytes in place of some. */
static struct bytes replaced(const struct bytes *file, size_t at, size_t size,
                             const void *by, size_t by_size) {
    struct bytes out = {0};
    put(&out, file->at, at);
    put(&out, by, by_size);
    put(&out, file->at + at + size, file->size - at - size);
    return out;
}

static void a_payload_with_more_values_is_refused(void **state) {
    (void)state;
    enum { LAST = 1 + 2 + 8 }; /* the end, the version, the checksum */
    struct foreign_filter f = filled(&foreign_redisbloom, 30);
    struct bytes file = {0};
    foreign_redisbloom.write(&f, &(struct foreign_sink){put, &file});
    static const uint8_t number[] = {2, 7}, end[] = {0};
    struct bytes more[] = {replaced(&file, file.size - LAST, 0, number, 2),
                           replaced(&file, file.size - LAST, 0, end, 1)};
    for (int i = 0; i < 2; i++) {
        calyx_error why = {0};
        assert_int_equal(read_signed(&foreign_redisbloom, &more[i], &why),
                         CALYX_DAMAGED);
        assert_true(why.text[0]);
        free(more[i].at);
    }
    foreign_redisbloom.free(&f);
    free(file.at);
}

/* The bits of a filter as the server compresses them, here in pieces of 8
 * literal bytes; then with a repetition of 264 bytes that has no room. */
static void a_compressed_payload_is_read_and_never_overflows(void **state) {
    (void)state;
    enum { LENGTH = 2, PIECE = 8 };
    struct foreign_filter f = filled(&foreign_redisbloom, 2000);
    const struct chain_link *const link = &f.chain->link[0];
    struct bytes file = {0}, packed = {0};
    foreign_redisbloom.write(&f, &(struct foreign_sink){put, &file});
    size_t at = 0;
    while (memcmp(file.at + at, link->body, (size_t)link->bytes) != 0) at++;
    assert_in_range(link->bytes, 64, 8192); /* lengths have two bytes */
    for (size_t i = 0; i < link->bytes; i += PIECE) {
        put(&packed, &(uint8_t){PIECE - 1}, 1);
        put(&packed, link->body + i, PIECE);
    }
    for (int overflows = 0; overflows < 2; overflows++) {
        calyx_error why = {0};
        if (overflows) put(&packed, (const uint8_t[]){0xE0, 0xFF, 0x00}, 3);
        struct bytes string = {0};
        uint8_t lengths[] = {0xC3, 0, 0, file.at[at - 2], file.at[at - 1]};
        put_big_endian(lengths + 1, packed.size | 1 << 14, 2);
        put(&string, lengths, sizeof lengths);
        put(&string, packed.at, packed.size);
        struct bytes all =
            replaced(&file, at - LENGTH, LENGTH + (size_t)link->bytes,
                     string.at, string.size);
        const calyx_status status =
            read_signed(&foreign_redisbloom, &all, &why);
        assert_int_equal(status != CALYX_OK, overflows);
        assert_true(!overflows || strstr(why.text, "compressed string"));
        free(string.at);
        free(all.at);
    }
    foreign_redisbloom.free(&f);
    free(packed.at);
    free(file.at);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_key_is_found_by_exactly_the_bits_that_its_owner_sets),
        cmocka_unit_test(
            adding_a_key_sets_exactly_the_bits_that_its_owner_sets),
        cmocka_unit_test(a_filter_of_any_layout_survives_its_file_and_a_dump),
        cmocka_unit_test(a_dump_with_any_byte_changed_or_cut_is_refused),
        cmocka_unit_test(the_checksum_of_a_payload_is_crc_64_of_jones),
        cmocka_unit_test(a_payload_with_wrong_values_is_refused_or_a_filter),
        cmocka_unit_test(a_payload_with_more_values_is_refused),
        cmocka_unit_test(a_compressed_payload_is_read_and_never_overflows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
