/*
 * Layouts in one line: what is read, what is refused and with which words; and
 * the hashes of textbooks by the values that their authors published.
 */
#include <string.h>

#include "foreign/foreign_filter.h"
#include "foreign/textbook/highwayhash.h"
#include "support.h"

/* ---- Hashes -------------------------------------------------------------- */

static uint64_t first_of(const char *hash, const char *key, uint32_t seed) {
    const struct line_hash *const h = line_hash_named(hash);
    assert_non_null(h);
    return h->of((const uint8_t *)key, strlen(key), seed).first;
}

/* MurmurHash3: of its tests and of the package spaolacci/murmur3; FNV: of its
 * page; python: what /usr/bin/python3 3.11 prints. */
static void the_hashes_of_lines_are_the_published_ones(void **state) {
    (void)state;
    assert_int_equal(first_of("murmur3-32", "", 0), 0);
    assert_int_equal(first_of("murmur3-32", "", 1), 0x514E28B7);
    assert_int_equal(first_of("murmur3-32", "", 0xFFFFFFFF), 0x81F16F39);
    assert_int_equal(first_of("murmur3-32", "hello", 0), 0x248BFA47);
    assert_int_equal(first_of("murmur3-32", "hello, world", 0), 0x149BBB7F);
    assert_int_equal(first_of("murmur3-32",
                              "The quick brown fox jumps over the lazy dog",
                              0x9747B28C),
                     0x2FA826CD);
    assert_int_equal(first_of("murmur3-64", "hello", 0),
                     UINT64_C(0xCBD8A7B341BD9B02));
    assert_int_equal(first_of("murmur3-64", "hello, world", 0),
                     UINT64_C(0x342FAC623A5EBC8E));
    assert_int_equal(first_of("fnv1a", "", 0), UINT64_C(0xCBF29CE484222325));
    assert_int_equal(first_of("fnv1a", "a", 0), UINT64_C(0xAF63DC4C8601EC8C));
    assert_int_equal(first_of("fnv1a", "foobar", 0),
                     UINT64_C(0x85944171F73967E8));
    assert_int_equal(first_of("fnv1a-32", "foobar", 0), 0xBF9CF968);
    assert_int_equal(first_of("python", "", 0), 0);
    assert_int_equal((int64_t)first_of("python", "hello", 0),
                     INT64_C(-2096571579003691106));
    assert_int_equal(first_of("bkdr", "hello", 31), 99162322);
    const struct line_numbers both =
        line_hash_named("murmur3-128")->of((const uint8_t *)"hello", 5, 0);
    assert_int_equal(both.first, UINT64_C(0xCBD8A7B341BD9B02));
    assert_int_equal(both.second, UINT64_C(0x5B1E906A48AE1D19));
}

/* Of the tests of its authors: keys of 0, 1, .. 64 bytes 0, 1, 2, .. */
static const uint64_t highway_halves[][2] = {
    {UINT64_C(0x0FED268F9D8FFEC7), UINT64_C(0x33565E767F093E6F)},
    {UINT64_C(0xD6B0A8893681E7A8), UINT64_C(0xDC291DF9EB9CDCB4)},
    {UINT64_C(0x3D15AD265A16DA04), UINT64_C(0x78085638DC32E868)},
    {UINT64_C(0x0607621B295F0BEB), UINT64_C(0xBFE69A0FD9CEDD79)},
    {UINT64_C(0x26399EB46DACE49E), UINT64_C(0x2E922AD039319208)},
    {UINT64_C(0x3250BDC386D12ED8), UINT64_C(0x193810906C63C23A)},
    {UINT64_C(0x6F476AB3CB896547), UINT64_C(0x7CDE576F37ED1019)},
    {UINT64_C(0x2A401FCA697171B4), UINT64_C(0xBE1F03FF9F02796C)},
    {UINT64_C(0xA1E96D84280552E8), UINT64_C(0x695CF1C63BEC0AC2)},
    {UINT64_C(0x142A2102F31E63B2), UINT64_C(0x1A85B98C5B5000CC)},
    {UINT64_C(0x51A1B70E26B6BC5B), UINT64_C(0x929E1F3B2DA45559)},
    {UINT64_C(0x88990362059A415B), UINT64_C(0xBED21F22C47B7D13)},
    {UINT64_C(0xCD1F1F5F1CAF9566), UINT64_C(0xA818BA8CE0F9C8D4)},
    {UINT64_C(0xA225564112FE6157), UINT64_C(0xB2E94C78B8DDB848)},
    {UINT64_C(0xBD492FEBD1CC0919), UINT64_C(0xCECD1DBC025641A2)},
    {UINT64_C(0x142237A52BC4AF54), UINT64_C(0xE0796C0B6E26BCD7)},
    {UINT64_C(0x414460FFD5A401AD), UINT64_C(0x029EA3D5019F18C8)},
    {UINT64_C(0xC52A4B96C51C9962), UINT64_C(0xECB878B1169B5EA0)},
    {UINT64_C(0xD940CA8F11FBEACE), UINT64_C(0xF93A46D616F8D531)},
    {UINT64_C(0x8AC49D0AE5C0CBF5), UINT64_C(0x3FFDBF8DF51D7C93)},
    {UINT64_C(0xAC6D279B852D00A8), UINT64_C(0x7DCD3A6BA5EBAA46)},
    {UINT64_C(0xF11621BD93F08A56), UINT64_C(0x3173C398163DD9D5)},
    {UINT64_C(0x0C4CE250F68CF89F), UINT64_C(0xB3123CDA411898ED)},
    {UINT64_C(0x15AB97ED3D9A51CE), UINT64_C(0x7CE274479169080E)},
    {UINT64_C(0xCD001E198D4845B8), UINT64_C(0xD0D9D98BD8AA2D77)},
    {UINT64_C(0x34F3D617A0493D79), UINT64_C(0x7DD304F6397F7E16)},
    {UINT64_C(0x5CB56890A9F4C6B6), UINT64_C(0x130829166567304F)},
    {UINT64_C(0x30DA6F8B245BD1C0), UINT64_C(0x6F828B7E3FD9748C)},
    {UINT64_C(0xE0580349204C12C0), UINT64_C(0x93F6DA0CAC5F441C)},
    {UINT64_C(0xF648731BA5073045), UINT64_C(0x5FB897114FB65976)},
    {UINT64_C(0x024F8354738A5206), UINT64_C(0x509A4918EB7E0991)},
    {UINT64_C(0x06E7B465E8A57C29), UINT64_C(0x52415E3A07F5D446)},
    {UINT64_C(0x1984DF66C1434AAA), UINT64_C(0x16FC1958F9B3E4B9)},
    {UINT64_C(0x111678AFE0C6C36C), UINT64_C(0xF958B59DE5A2849D)},
    {UINT64_C(0x773FBC8440FB0490), UINT64_C(0xC96ED5D243658536)},
    {UINT64_C(0x91E3DC710BB6C941), UINT64_C(0xEA336A0BC1EEACE9)},
    {UINT64_C(0x25CFE3815D7AD9D4), UINT64_C(0xF2E94F8C828FC59E)},
    {UINT64_C(0xB9FB38B83CC288F2), UINT64_C(0x7479C4C8F850EC04)},
    {UINT64_C(0x1D85D5C525982B8C), UINT64_C(0x6E26B1C16F48DBF4)},
    {UINT64_C(0x8A4E55BD6060BDE7), UINT64_C(0x2134D599058B3FD0)},
    {UINT64_C(0x2A958FF994778F36), UINT64_C(0xE8052D1AE61D6423)},
    {UINT64_C(0x89233AE6BE453233), UINT64_C(0x3ACF9C87D7E8C0B9)},
    {UINT64_C(0x4458F5E27EA9C8D5), UINT64_C(0x418FB49BCA2A5140)},
    {UINT64_C(0x090301837ED12A68), UINT64_C(0x1017F69633C861E6)},
    {UINT64_C(0x330DD84704D49590), UINT64_C(0x339DF1AD3A4BA6E4)},
    {UINT64_C(0x569363A663F2C576), UINT64_C(0x363B3D95E3C95EF6)},
    {UINT64_C(0xACC8D08586B90737), UINT64_C(0x2BA0E8087D4E28E9)},
    {UINT64_C(0x39C27A27C86D9520), UINT64_C(0x8DB620A45160932E)},
    {UINT64_C(0x8E6A4AEB671A072D), UINT64_C(0x6ED3561A10E47EE6)},
    {UINT64_C(0x0011D765B1BEC74A), UINT64_C(0xD80E6E656EDE842E)},
    {UINT64_C(0x2515D62B936AC64C), UINT64_C(0xCE088794D7088A7D)},
    {UINT64_C(0x91621552C16E23AF), UINT64_C(0x264F0094EB23CCEF)},
    {UINT64_C(0x1E21880D97263480), UINT64_C(0xD8654807D3A31086)},
    {UINT64_C(0x39D76AAF097F432D), UINT64_C(0xA517E1E09D074739)},
    {UINT64_C(0x0F17A4F337C65A14), UINT64_C(0x2F51215F69F976D4)},
    {UINT64_C(0xA0FB5CDA12895E44), UINT64_C(0x568C3DC4D1F13CD1)},
    {UINT64_C(0x93C8FC00D89C46CE), UINT64_C(0xBAD5DA947E330E69)},
    {UINT64_C(0x817C07501D1A5694), UINT64_C(0x584D6EE72CBFAC2B)},
    {UINT64_C(0x91D668AF73F053BF), UINT64_C(0xF98E647683C1E0ED)},
    {UINT64_C(0x5281E1EF6B3CCF8B), UINT64_C(0xBC4CC3DF166083D8)},
    {UINT64_C(0xAAD61B6DBEAAEEB9), UINT64_C(0xFF969D000C16787B)},
    {UINT64_C(0x4325D84FC0475879), UINT64_C(0x14B919BD905F1C2D)},
    {UINT64_C(0x79A176D1AA6BA6D1), UINT64_C(0xF1F720C5A53A2B86)},
    {UINT64_C(0x74BD7018022F3EF0), UINT64_C(0x3AEA94A8AD5F4BCB)},
    {UINT64_C(0x98BB1F7198D4C4F2), UINT64_C(0xE0BC0571DE918FC8)},
};

static void highwayhash_has_the_published_values_for_all_lengths(void **state) {
    (void)state;
    enum { LENGTHS = sizeof highway_halves / sizeof *highway_halves };
    static const uint64_t key[] = {
        UINT64_C(0x0706050403020100), UINT64_C(0x0F0E0D0C0B0A0908),
        UINT64_C(0x1716151413121110), UINT64_C(0x1F1E1D1C1B1A1918)};
    uint8_t bytes[LENGTHS];
    assert_int_equal(LENGTHS, 65);
    for (size_t i = 0; i < LENGTHS; i++) {
        const struct highway_digest hash = highway_128(key, bytes, i);
        assert_int_equal(hash.first, highway_halves[i][0]);
        assert_int_equal(hash.second, highway_halves[i][1]);
        bytes[i] = (uint8_t)i;
    }
}

/* ---- Lines --------------------------------------------------------------- */

static void a_line_is_read_and_written_in_full(void **state) {
    (void)state;
    static const char *const lines[][2] = {
        {"murmur3-32 seeds 41..47 mod 5000000 msb",
         "murmur3-32 signed seeds 41..47 mod 5000000 msb"},
        {"fnv1a double 7 mod 1000",
         "fnv1a unsigned double 7 xor 0xffffffff mod 1000 lsb"},
        {"murmur3-64 seeds 0..2 mask 1024 byte",
         "murmur3-64 unsigned seeds 0..2 mod 1024 byte"},
        {" murmur3-32  unsigned\twrap double 3 seeds 9,4294967295 mod "
         "281474976710656 lsb ",
         "murmur3-32 unsigned wrap double 3 seeds 9,4294967295 mod "
         "281474976710656 lsb"},
        {"murmur3-128 double 4096 mod 1",
         "murmur3-128 unsigned double 4096 mod 1 lsb"},
        {"python double 1 xor 0x7fffffffffffffff mod 8",
         "python signed double 1 xor 0x7fffffffffffffff mod 8 lsb"},
        {"fnv1a double 1 xor 18446744073709551615 mod 8",
         "fnv1a unsigned double 1 xor 0xffffffffffffffff mod 8 lsb"},
        {"bkdr seeds 5,7,11,13,31..33 mask 0x10000",
         "bkdr signed seeds 5,7,11,13,31..33 mod 65536 lsb"},
        {"murmur3-32 seeds 0..63 mod 9", "murmur3-32 signed seeds 0..63 mod 9 "
                                         "lsb"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct layout_line line, again;
        calyx_error why = {0};
        if (layout_line_parse(lines[i][0], &line, &why) != CALYX_OK)
            fail_msg("%s: %s", lines[i][0], why.text);
        assert_string_equal(line.text, lines[i][1]);
        assert_int_equal(layout_line_parse(line.text, &again, &why), CALYX_OK);
        assert_memory_equal(&again, &line, sizeof line);
    }
}

static void a_line_with_the_most_and_longest_seeds_is_written_whole(
    void **state) {
    (void)state;
    char text[LINE_MOST_TEXT] = "murmur3-32 unsigned seeds ";
    for (uint32_t i = 0; i < LINE_MOST_SEEDS; i++)
        sprintf(text + strlen(text), "%s%u", i ? "," : "", 4294967295u - 2 * i);
    strcat(text, " mod 281474976710656 byte");
    struct layout_line line;
    assert_int_equal(layout_line_parse(text, &line, NULL), CALYX_OK);
    assert_string_equal(line.text, text);
    char longer[LINE_MOST_TEXT + 1];
    memset(longer, ' ', LINE_MOST_TEXT);
    longer[LINE_MOST_TEXT] = '\0';
    calyx_error why = {0};
    assert_int_equal(layout_line_parse(longer, &line, &why),
                     CALYX_BAD_ARGUMENT);
    assert_non_null(strstr(why.text, "has 832 characters"));
}

static void a_wrong_line_names_the_word_that_is_wrong(void **state) {
    (void)state;
    static const char *const lines[][2] = {
        {"", "the layout ends: missing murmur3-32, "},
        {"sha1 double 7 mod 8", "found 'sha1'"},
        {"fnv1a", "the layout ends: missing 'seeds' or 'double'"},
        {"fnv1a 7 mod 8", "expected 'seeds' or 'double', found '7'"},
        {"fnv1a signed unsigned double 7 mod 8", "found 'unsigned'"},
        {"fnv1a double",
         "'double' takes a whole number from 1 to 4096, not ''"},
        {"fnv1a double 0 mod 8",
         "'double' takes a whole number from 1 to 4096, not '0'"},
        {"fnv1a double 4097 mod 8", "4096, not '4097'"},
        {"fnv1a double -7 mod 8", "4096, not '-7'"},
        {"fnv1a double 7 xor 0 mod 8", "'xor' takes a whole number from 1 to "},
        {"python double 7 xor 0x8000000000000000 mod 8",
         "from 1 to 9223372036854775807, not '0x8000000000000000'"},
        {"fnv1a double 7 xor 99999999999999999999 mod 8",
         "not '99999999999999999999'"},
        {"murmur3-128 double 7 xor 5 mod 8", "'xor' does not go with "
                                             "murmur3-128"},
        {"murmur3-32 double 7 seeds 1..3 mod 8",
         "'double' takes two seeds, not 3"},
        {"fnv1a seeds 1..7 mod 8", "'seeds' does not go with fnv1a, which has "
                                   "no seed"},
        {"murmur3-32 seeds mod 8", "as 41..47 or 3,5,7, not 'mod'"},
        {"murmur3-32 seeds 47..41 mod 8", "not '47..41'"},
        {"murmur3-32 seeds 1, 2 mod 8", "not '1,'"},
        {"murmur3-32 seeds 1,,2 mod 8", "not '1,,2'"},
        {"murmur3-32 seeds 1..x mod 8", "not '1..x'"},
        {"murmur3-32 seeds -1 mod 8", "not '-1'"},
        {"murmur3-32 seeds 4294967296 mod 8", "not '4294967296'"},
        {"murmur3-32 seeds 0..64 mod 8", "'0..64' has more than 64 seeds"},
        {"murmur3-32 seeds 0..4294967295 mod 8", "has more than 64 seeds"},
        {"murmur3-32 seeds 1..40,1..25 mod 8", "has more than 64 seeds"},
        {"fnv1a double 7", "the layout ends: missing 'mod' or 'mask'"},
        {"fnv1a double 7 modulo 8", "expected 'mod' or 'mask', found 'modulo'"},
        {"fnv1a double 7 mod",
         "'mod' takes a whole number from 1 to 281474976710656, not ''"},
        {"fnv1a double 7 mod 0", "not '0'"},
        {"fnv1a double 7 mod -1000", "not '-1000'"},
        {"fnv1a double 7 mod 281474976710657", "not '281474976710657'"},
        {"fnv1a double 7 mod 18446744073709551617",
         "not '18446744073709551617'"},
        {"fnv1a double 7 mod 1e6", "not '1e6'"},
        {"fnv1a double 7 mod 0x", "not '0x'"},
        {"fnv1a double 7 mask 1023", "a power of 2 (1024 for the mask 1023), "
                                     "not '1023'"},
        {"fnv1a double 7 mod 8 big",
         "expected 'lsb', 'msb', 'byte' or the end, "
         "found 'big'"},
        {"fnv1a double 7 mod 8 lsb msb", "found 'msb'"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct layout_line line;
        calyx_error why = {0};
        assert_int_equal(layout_line_parse(lines[i][0], &line, &why),
                         CALYX_BAD_ARGUMENT);
        if (!strstr(why.text, lines[i][1]))
            fail_msg("'%s': %s", lines[i][0], why.text);
    }
}

/* ---- Positions ----------------------------------------------------------- */

/* The positions that a key sets in an empty filter, as bytes of 0 and 1. */
static void assert_positions(const char *text, const char *key,
                             const uint64_t *wanted, size_t count) {
    struct foreign_choice choice;
    struct foreign_filter f;
    calyx_error why = {0};
    if (foreign_choose(text, &choice, &why) != CALYX_OK)
        fail_msg("%s", why.text);
    assert_int_equal(foreign_make(&choice, 1, 0.5, &f, &why), CALYX_OK);
    const calyx_key one = {key, strlen(key)};
    bool found;
    f.layout->has_many(&f, &one, 1, &found);
    assert_false(found);
    assert_int_equal(f.layout->add_many(&f, &one, 1, &why), CALYX_OK);
    f.layout->has_many(&f, &one, 1, &found);
    assert_true(found);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(f.words.file[wanted[i]], 1);
        f.words.file[wanted[i]] = 0;
        f.layout->has_many(&f, &one, 1, &found);
        assert_false(found);
    }
    assert_int_equal(foreign_count_bits(f.words.file, f.words.size), 0);
    f.layout->free(&f);
}

#define POSITIONS(...)               \
    (const uint64_t[]){__VA_ARGS__}, \
        sizeof(uint64_t[]){__VA_ARGS__} / sizeof(uint64_t)

/* FNV-1a of "a" is 12638187200555641996: in Python, all sums are exact; else
 * they are taken modulo 2^64. Computed with Python. */
static void signs_and_sums_are_as_in_the_line(void **state) {
    (void)state;
    assert_positions("fnv1a double 4 mod 1009 byte", "a",
                     POSITIONS(473, 189, 914, 630));
    assert_positions("fnv1a signed double 4 mod 1009 byte", "a",
                     POSITIONS(89, 430, 771, 103));
    assert_positions("fnv1a wrap double 4 mod 1009 byte", "a",
                     POSITIONS(473, 814, 146, 871));
    assert_positions("fnv1a signed wrap double 4 mod 1009 byte", "a",
                     POSITIONS(89, 814, 146, 487));
    assert_positions("fnv1a double 4 xor 12345 mod 1009 byte", "a",
                     POSITIONS(473, 927, 372, 826));
    assert_positions("python double 4 mod 1009 byte", "a",
                     POSITIONS(821, 869, 917, 965));
    assert_positions("murmur3-32 seeds 0..3 mod 1009 byte", "tulip",
                     POSITIONS(954, 594, 379, 460));
    assert_positions("murmur3-32 unsigned seeds 0..3 mod 1009 byte", "tulip",
                     POSITIONS(328, 977, 762, 843));
    assert_positions("murmur3-32 double 4 seeds 0,1 mod 1009 byte", "tulip",
                     POSITIONS(954, 539, 124, 718));
    assert_positions("murmur3-32 unsigned double 4 seeds 0,1 mod 1009 byte",
                     "tulip", POSITIONS(328, 296, 264, 232));
    assert_positions("murmur3-64 seeds 0..3 mod 1009 byte", "tulip",
                     POSITIONS(41, 236, 631, 777));
}

static void bits_lie_in_the_order_of_the_line(void **state) {
    (void)state;
    static const struct {
        const char *line;
        size_t size;
        size_t at;
        uint8_t byte;
    } orders[] = {{"bkdr seeds 31 mod 100 lsb", 13, 97 / 8, 1 << 97 % 8},
                  {"bkdr seeds 31 mod 100 msb", 13, 97 / 8, 0x80 >> 97 % 8},
                  {"bkdr seeds 31 mod 100 byte", 100, 97, 1}};
    for (int i = 0; i < 3; i++) {
        struct foreign_choice choice;
        struct foreign_filter f;
        assert_int_equal(foreign_choose(orders[i].line, &choice, NULL),
                         CALYX_OK);
        assert_int_equal(foreign_make(&choice, 1, 0.5, &f, NULL), CALYX_OK);
        const calyx_key a = {"a", 1}; /* 97 */
        f.layout->add_many(&f, &a, 1, NULL);
        assert_int_equal(f.words.size, orders[i].size);
        assert_int_equal(f.words.file[orders[i].at], orders[i].byte);
        assert_int_equal(foreign_count_bits(f.words.file, f.words.size), 1);
        f.layout->free(&f);
    }
}

/* ---- Bits ---------------------------------------------------------------- */

static calyx_status read_raw(const char *line, const void *bytes, size_t size,
                             calyx_error *why) {
    struct foreign_choice choice;
    struct foreign_filter f;
    uint8_t *const copy = malloc(size + 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    assert_int_equal(foreign_choose(line, &choice, why), CALYX_OK);
    const calyx_status status = foreign_read(&choice, copy, size, &f, why);
    if (status == CALYX_OK)
        f.layout->free(&f);
    else
        free(copy);
    return status;
}

static void bits_that_the_layout_does_not_have_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *line, *bytes;
        size_t size;
        const char *error; /* NULL: they are right */
    } files[] = {
        {"fnv1a double 2 mod 12 lsb", "\xFF\x0F", 2, NULL},
        {"fnv1a double 2 mod 12 msb", "\xFF\xF0", 2, NULL},
        {"fnv1a double 2 mod 2 byte", "\1\0", 2, NULL},
        {"fnv1a double 2 mod 12 lsb", "\xFF\x1F", 2,
         "bit 12 is set, and the "
         "layout has 12 bits"},
        {"fnv1a double 2 mod 12 msb", "\xFF\x01", 2, "bit 15 is set"},
        {"fnv1a double 2 mod 2 byte", "\0\2", 2, "byte 1 is 2"},
        {"fnv1a double 2 mod 12 lsb", "\xFF", 1,
         "12 bits take 2 bytes, and 1 are there; if its owner leaves out zeros "
         "at the end, 'truncate -s 2 FILE' adds them"},
        {"fnv1a double 2 mod 12 lsb", "", 0, "2 bytes, and 0 are there"},
        {"fnv1a double 2 mod 12 lsb", "\0\0\0", 3, "2 bytes, and 3 are there"},
        {"fnv1a double 2 mod 281474976710656 lsb", "\0", 1,
         "35184372088832 bytes, and 1 are there"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        calyx_error why = {0};
        const calyx_status status =
            read_raw(files[i].line, files[i].bytes, files[i].size, &why);
        assert_int_equal(status == CALYX_OK, !files[i].error);
        if (files[i].error && !strstr(why.text, files[i].error))
            fail_msg("%s: %s", files[i].line, why.text);
    }
}

static void known_flaws_are_named(void **state) {
    (void)state;
    static const struct {
        const char *line, *flaw;
    } lines[] = {
        {"fnv1a double 7 mod 1000", "the second hash depends on the first"},
        {"fnv1a double 7 mod 1000003", NULL},
        {"fnv1a-32 double 7 mod 1000003", "the second hash depends"},
        {"murmur3-32 double 7 seeds 1,2 mod 1000", NULL},
        {"murmur3-128 double 7 mod 1000", NULL},
        {"murmur3-32 seeds 1,2,1 mod 1000", "a seed is there twice"},
        {"murmur3-32 seeds 1,2 mod 4294967296", NULL},
        {"murmur3-32 seeds 1,2 mod 4294967297", "does not reach all"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct layout_line line;
        assert_int_equal(layout_line_parse(lines[i].line, &line, NULL),
                         CALYX_OK);
        const char *const flaw = layout_line_flaw(&line);
        assert_int_equal(!flaw, !lines[i].flaw);
        if (flaw) assert_non_null(strstr(flaw, lines[i].flaw));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_hashes_of_lines_are_the_published_ones),
        cmocka_unit_test(highwayhash_has_the_published_values_for_all_lengths),
        cmocka_unit_test(a_line_is_read_and_written_in_full),
        cmocka_unit_test(
            a_line_with_the_most_and_longest_seeds_is_written_whole),
        cmocka_unit_test(a_wrong_line_names_the_word_that_is_wrong),
        cmocka_unit_test(signs_and_sums_are_as_in_the_line),
        cmocka_unit_test(bits_lie_in_the_order_of_the_line),
        cmocka_unit_test(bits_that_the_layout_does_not_have_are_refused),
        cmocka_unit_test(known_flaws_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
