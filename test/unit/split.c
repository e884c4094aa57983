/* The split kind is Parquet's split-block Bloom filter, bit for bit. */
#include <string.h>

#include "filter/filter.h"
#include "support.h"

/* Values as Parquet encodes them plainly: byte arrays without their length,
 * INT64 as 8 bytes, little-endian. */
#define VALUE(text) \
    { text, sizeof text - 1 }
static const calyx_key values[] = {
    VALUE("hello"),
    VALUE("parquet"),
    VALUE("bloom"),
    VALUE("filter"),
    VALUE(""),
    VALUE("a value of more than thirty-two bytes"),
    VALUE("\0\0\0\0\0\0\0\0"),
    VALUE("\1\0\0\0\0\0\0\0"),
    VALUE("\xff\xff\xff\xff\xff\xff\xff\xff"),
    VALUE("\0\0\0\0\0\1\0\0"),
};
enum { VALUES = sizeof values / sizeof values[0] };

/* Made by a program that shares no line with the library: XXH64 and the filter
 * in Python, each from its own specification. */
static const uint8_t hello_alone[32] = {
    0x00, 0x00, 0x10, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x04, 0x00,
    0x00, 0x80, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x80, 0x00, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x08,
};

static const uint8_t all_in_one_block[32] = {
    0x44, 0x82, 0xb0, 0x2a, 0x21, 0x0a, 0x40, 0x96, 0x21, 0x25, 0x40,
    0x2a, 0xc0, 0x00, 0x0b, 0x32, 0x31, 0x42, 0x80, 0x04, 0x04, 0x24,
    0x60, 0xb8, 0x54, 0x41, 0x14, 0x70, 0x02, 0x51, 0x08, 0x48,
};

static const uint8_t all_in_five_blocks[5 * 32] = {
    0x00, 0x80, 0x90, 0x00, 0x00, 0x02, 0x00, 0x90, 0x01, 0x04, 0x00, 0x08,
    0xc0, 0x00, 0x00, 0x10, 0x21, 0x02, 0x00, 0x00, 0x00, 0x04, 0x20, 0x80,
    0x04, 0x00, 0x00, 0x50, 0x00, 0x00, 0x08, 0x08, 0x04, 0x02, 0x20, 0x00,
    0x00, 0x08, 0x40, 0x04, 0x00, 0x21, 0x40, 0x00, 0x00, 0x00, 0x08, 0x22,
    0x10, 0x00, 0x80, 0x04, 0x00, 0x20, 0x00, 0x18, 0x10, 0x41, 0x00, 0x00,
    0x02, 0x50, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x08, 0x00, 0x00,
    0x20, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x10, 0x00, 0x00, 0x00,
    0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x40,
    0x40, 0x00, 0x00, 0x08, 0x20, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x22,
    0x00, 0x00, 0x03, 0x00, 0x20, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x28,
    0x40, 0x00, 0x04, 0x00, 0x00, 0x01, 0x00, 0x08, 0x00, 0x00, 0x00, 0x20,
    0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x10,
    0x00, 0x40, 0x00, 0x00, 0x00, 0x00, 0x40, 0x00, 0x00, 0x00, 0x00, 0x20,
    0x00, 0x00, 0x00, 0x40,
};

static calyx_filter *make_split(uint64_t blocks, bool concurrent) {
    return make_filter((calyx_options){
        .kind = "split", .bits = 256 * blocks, .concurrent = concurrent});
}

static void add_values(calyx_filter *f, size_t n) {
    assert_ok(calyx_add_many(f, values, n, NULL, NULL));
}

static void known_values_give_parquets_block(void **state) {
    (void)state;
    for (int concurrent = 0; concurrent < 2; concurrent++) {
        calyx_filter *f = make_split(1, concurrent);

        add_values(f, 1);
        assert_memory_equal(f->newest->body, hello_alone, sizeof hello_alone);

        add_values(f, VALUES);
        assert_memory_equal(f->newest->body, all_in_one_block,
                            sizeof all_in_one_block);
        calyx_free(f);
    }
}

static void known_values_go_to_parquets_blocks(void **state) {
    (void)state;
    for (int concurrent = 0; concurrent < 2; concurrent++) {
        calyx_filter *f = make_split(5, concurrent);

        add_values(f, VALUES);

        assert_int_equal(f->newest->shape.blocks, 5);
        assert_memory_equal(f->newest->body, all_in_five_blocks,
                            sizeof all_in_five_blocks);
        assert_int_equal(calyx_has_many(f, values, VALUES, NULL), VALUES);
        calyx_free(f);
    }
}

static void split_filters_hash_with_xxh64_and_seed_0(void **state) {
    (void)state;
    calyx_filter *f = make_split(1, false);

    assert_string_equal(info_of(f).hash, "xxh64");
    assert_int_equal(info_of(f).seed, 0);
    assert_int_equal(calyx_hash(f, "hello", 5), 0x26c7827d889f6da3);
    calyx_free(f);
}

/* The specification's own pseudo-code, in C: block_insert under filter_insert,
 * with its names. */
static const uint32_t salt[8] = {0x47b6137b, 0x44974d91, 0x8824ad5b,
                                 0xa2b7289d, 0x705495c7, 0x2df1424b,
                                 0x9efc4947, 0x5c6bfb31};

static void filter_insert(uint32_t (*filter)[8], uint64_t z, uint64_t x) {
    const uint64_t i = ((x >> 32) * z) >> 32;
    for (int word = 0; word < 8; word++) {
        const uint32_t y = (uint32_t)x * salt[word];
        filter[i][word] |= UINT32_C(1) << (y >> 27);
    }
}

static void random_hashes_go_where_the_specification_sends_them(void **state) {
    (void)state;
    enum { MOST = 1000, HASHES = 5000 };
    static const uint64_t sizes[] = {1, 2, 3, 7, 64, 999, MOST};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        static uint32_t filter[MOST][8];
        memset(filter, 0, sizeof filter);
        uint64_t hashes[HASHES];
        struct generator random = {s};
        const size_t n = sizes[s] < 64 ? 20 : HASHES; /* a few stay unset */
        for (size_t i = 0; i < n; i++) {
            hashes[i] = random_word(&random);
            filter_insert(filter, sizes[s], hashes[i]);
        }
        calyx_filter *f = make_split(sizes[s], false);

        assert_ok(calyx_add_hashes(f, hashes, n, NULL, NULL));

        for (uint64_t i = 0; i < sizes[s]; i++)
            for (int word = 0; word < 8; word++) {
                const uint8_t *at = f->newest->body + 32 * i + 4 * word;
                assert_int_equal((uint32_t)at[0] | (uint32_t)at[1] << 8 |
                                     (uint32_t)at[2] << 16 |
                                     (uint32_t)at[3] << 24,
                                 filter[i][word]);
            }
        calyx_free(f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_values_give_parquets_block),
        cmocka_unit_test(known_values_go_to_parquets_blocks),
        cmocka_unit_test(split_filters_hash_with_xxh64_and_seed_0),
        cmocka_unit_test(random_hashes_go_where_the_specification_sends_them),
    };
    return RUN_TESTS(tests);
}
