/*
 * Damage is an error. Bytes that were cut, extended, flipped or forged make no
 * filter; at worst, where nobody looks, they make the filter they always did.
 */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "kind/kind.h"
#include "store/encoding.h"
#include "store/ranges.h"
#include "support.h"

/* A sanitizer looks at each access, not at each bit that was flipped. */
enum { FLIPS = SANITIZED ? 10000 : 100000 };

/* ---- Bytes of a filter --------------------------------------------------- */

struct bytes {
    uint8_t *at; /* aligned for a view */
    size_t size, used;
};

static struct bytes room_for(size_t size) {
    uint8_t *at = aligned_alloc(64, (size + 63) / 64 * 64);
    assert_non_null(at);
    memset(at, 0, (size + 63) / 64 * 64);
    return (struct bytes){at, size, 0};
}

static bool put(void *context, const void *bytes, size_t size) {
    struct bytes *to = context;
    assert_true(size <= to->size - to->used);
    memcpy(to->at + to->used, bytes, size);
    to->used += size;
    return true;
}

/* As calyx_encode and calyx_save would have them. */
static struct bytes encoded(const calyx_filter *f, uint32_t alignment) {
    struct description d;
    assert_true(describe_filter(f, alignment, &d));
    struct bytes bytes = room_for((size_t)d.layout.file_bytes);
    assert_ok(write_filter(f, alignment, put, &bytes, NULL));
    assert_int_equal(bytes.used, bytes.size);
    return bytes;
}

/* As many bytes as that, and not one more: a sanitizer sees who goes on. */
static struct bytes cut(struct bytes bytes, size_t size) {
    const struct bytes part = room_for(size);
    memcpy(part.at, bytes.at, size < bytes.size ? size : bytes.size);
    return part;
}

static void flip(struct bytes bytes, uint64_t bit) {
    bytes.at[bit / 8] = (uint8_t)(bytes.at[bit / 8] ^ 1u << bit % 8);
}

/* Flat filters get a number of bits that leaves some after the last. */
static calyx_filter *make_small(const char *kind) {
    calyx_filter *f = make_filter(
        (calyx_options){.kind = kind, .capacity = 150, .growth = 2});
    add_numbers(f, 0, 250);
    assert_int_equal(info_of(f).parts, 2);
    assert_ok(calyx_set_comment(f, "small"));
    return f;
}

/* ---- Refusal ------------------------------------------------------------- */

static calyx_filter *const untouched = (calyx_filter *)(uintptr_t)64;

static calyx_status decode_status(struct bytes bytes, calyx_error *why) {
    calyx_filter *f = untouched;
    const calyx_status status =
        calyx_decode(bytes.at, bytes.size, NULL, &f, why);
    if (status == CALYX_OK)
        calyx_free(f);
    else
        assert_ptr_equal(f, untouched);
    return status;
}

/* Of a view that is verified. */
static calyx_status view_status(struct bytes bytes, calyx_error *why) {
    calyx_filter *f = untouched;
    calyx_status status = calyx_view(bytes.at, bytes.size, NULL, &f, why);
    if (status == CALYX_OK) {
        status = calyx_verify(f, why);
        calyx_free(f);
    } else {
        assert_ptr_equal(f, untouched);
    }
    return status;
}

static void assert_damaged(struct bytes bytes) {
    calyx_error why = {0};
    assert_int_not_equal(decode_status(bytes, &why), CALYX_OK);
    assert_true(strlen(why.text) > 10);
    why = (calyx_error){0};
    assert_int_not_equal(view_status(bytes, &why), CALYX_OK);
    assert_true(strlen(why.text) > 10);
}

/* It opens, and is what it was before. */
static void assert_unharmed(struct bytes bytes, const calyx_filter *was) {
    calyx_filter *f = NULL;
    assert_ok(calyx_decode(bytes.at, bytes.size, NULL, &f, NULL));
    assert_true(same_bodies(f, was));
    assert_int_equal(info_of(f).items, info_of(was).items);
    calyx_free(f);
    assert_ok(view_status(bytes, NULL));
}

/* ---- Cut, extended, flipped ---------------------------------------------- */

static const uint32_t alignments[] = {LINE_ALIGNED, PAGE_ALIGNED};

static void bytes_cut_anywhere_are_refused(void **state) {
    (void)state;
    EACH_KIND(kind) {
        calyx_filter *f = make_small(*kind);
        for (int i = 0; i < 2; i++) {
            const struct bytes bytes = encoded(f, alignments[i]);
            assert_ok(decode_status(bytes, NULL));
            assert_ok(view_status(bytes, NULL));
            for (size_t size = 0; size < bytes.size; size++) {
                const struct bytes rest = cut(bytes, size);
                assert_damaged(rest);
                free(rest.at);
            }
            free(bytes.at);
        }
        calyx_free(f);
    }
}

static void bytes_with_more_after_them_are_refused(void **state) {
    (void)state;
    EACH_KIND(kind) {
        calyx_filter *f = make_small(*kind);
        const struct bytes bytes = encoded(f, LINE_ALIGNED);
        for (size_t more = 1; more <= 4096; more++) {
            const struct bytes longer = cut(bytes, bytes.size + more);
            assert_damaged(longer);
            free(longer.at);
        }
        free(bytes.at);
        calyx_free(f);
    }
}

/* The slot that is not in use yet is the one thing that nobody looks at. */
static void any_flipped_bit_is_refused_or_without_effect(void **state) {
    (void)state;
    EACH_KIND(kind) {
        calyx_filter *f = make_small(*kind);
        for (int i = 0; i < 2; i++) {
            const struct bytes bytes = encoded(f, alignments[i]);
            struct description d;
            assert_true(describe_filter(f, alignments[i], &d));
            const uint64_t spare = d.layout.slot_at[1];
            const uint64_t step = i == 0 ? 1 : 7; /* there are more zeros */
            for (uint64_t bit = 0; bit < 8 * bytes.size; bit += step) {
                flip(bytes, bit);
                if (bit / 8 >= spare && bit / 8 < spare + SLOT_BYTES)
                    assert_unharmed(bytes, f);
                else
                    assert_damaged(bytes);
                flip(bytes, bit);
            }
            assert_unharmed(bytes, f);
            free(bytes.at);
        }
        calyx_free(f);
    }
}

/* Without a look at the bodies: the header is checked on opening. */
static void a_header_with_a_flipped_bit_is_not_even_viewed(void **state) {
    (void)state;
    calyx_filter *f = make_small("line");
    const struct bytes bytes = encoded(f, LINE_ALIGNED);
    const uint32_t header_bytes = load32(bytes.at + 32);
    for (uint64_t bit = 0; bit < 8 * (uint64_t)header_bytes; bit++) {
        flip(bytes, bit);
        calyx_filter *view = NULL;
        assert_int_not_equal(
            calyx_view(bytes.at, bytes.size, NULL, &view, NULL), CALYX_OK);
        assert_null(view);
        flip(bytes, bit);
    }
    free(bytes.at);
    calyx_free(f);
}

static void a_header_with_two_flipped_bits_is_refused(void **state) {
    (void)state;
    calyx_filter *f = make_small("line");
    const struct bytes bytes = encoded(f, LINE_ALIGNED);
    struct generator from = {2};
    for (int i = 0; i < FLIPS; i++) {
        const uint64_t a = random_below(&from, UINT64_C(8) * 256),
                       b = random_below(&from, UINT64_C(8) * 256);
        if (a == b) continue;
        flip(bytes, a), flip(bytes, b);
        assert_int_not_equal(decode_status(bytes, NULL), CALYX_OK);
        flip(bytes, a), flip(bytes, b);
    }
    free(bytes.at);
    calyx_free(f);
}

/* ---- Large bodies -------------------------------------------------------- */

static calyx_filter *make_large(const char *kind, uint64_t bits) {
    calyx_filter *f = make_filter((calyx_options){.kind = kind, .bits = bits});
    for (uint64_t i = 0; i < bits / 16; i++)
        assert_ok(calyx_add_u64(f, i, NULL));
    return f;
}

/* A file with these bytes. */
struct file {
    char path[FOLDER_BYTES];
    int fd;
};

static struct file file_of(struct bytes bytes) {
    struct file file;
    snprintf(file.path, sizeof file.path, "%s/calyx_damage_XXXXXX",
             temporary_or("/tmp"));
    file.fd = mkstemp(file.path);
    assert_true(file.fd >= 0);
    assert_int_equal(write(file.fd, bytes.at, bytes.size), bytes.size);
    return file;
}

static void end_file(struct file *file) {
    close(file->fd);
    unlink(file->path);
}

static calyx_status map_status(const struct file *file, calyx_error *why) {
    calyx_filter *f = untouched;
    calyx_status status = calyx_map(file->path, CALYX_READ, NULL, &f, why);
    if (status == CALYX_OK) {
        status = calyx_verify(f, why);
        calyx_free(f);
    } else {
        assert_ptr_equal(f, untouched);
    }
    return status;
}

static calyx_status load_status(const struct file *file, calyx_error *why) {
    calyx_filter *f = untouched;
    const calyx_status status = calyx_load(file->path, NULL, &f, why);
    if (status == CALYX_OK)
        calyx_free(f);
    else
        assert_ptr_equal(f, untouched);
    return status;
}

static void ten_thousand_flips_in_a_body_are_all_found(void **state) {
    (void)state;
    calyx_filter *f = make_large("line", 1 << 20);
    const struct bytes bytes = encoded(f, PAGE_ALIGNED);
    struct file file = file_of(bytes);
    const uint64_t start = load64(bytes.at + 128 + 40),
                   size = load64(bytes.at + 128 + 48);
    struct generator from = {1};
    assert_ok(map_status(&file, NULL));
    for (int i = 0; i < FLIPS / 10; i++) {
        const uint64_t bit = 8 * start + random_below(&from, 8 * size);
        const off_t at = (off_t)(bit / 8);
        flip(bytes, bit);
        assert_int_equal(pwrite(file.fd, bytes.at + at, 1, at), 1);
        assert_int_equal(decode_status(bytes, NULL), CALYX_DAMAGED);
        assert_int_equal(view_status(bytes, NULL), CALYX_DAMAGED);
        assert_int_equal(map_status(&file, NULL), CALYX_DAMAGED);
        flip(bytes, bit);
        assert_int_equal(pwrite(file.fd, bytes.at + at, 1, at), 1);
    }
    assert_ok(map_status(&file, NULL));
    assert_ok(load_status(&file, NULL));
    end_file(&file);
    free(bytes.at);
    calyx_free(f);
}

static void a_file_cut_anywhere_is_refused(void **state) {
    (void)state;
    calyx_filter *f = make_small("flat");
    const struct bytes bytes = encoded(f, PAGE_ALIGNED);
    struct file file = file_of(bytes);
    for (size_t size = bytes.size; size-- > 0;) {
        calyx_error why = {0};
        assert_int_equal(ftruncate(file.fd, (off_t)size), 0);
        assert_int_equal(load_status(&file, &why), CALYX_DAMAGED);
        assert_non_null(strstr(why.text, file.path));
        why = (calyx_error){0};
        assert_int_equal(map_status(&file, &why), CALYX_DAMAGED);
        assert_non_null(strstr(why.text, file.path));
    }
    end_file(&file);
    free(bytes.at);
    calyx_free(f);
}

static void a_file_that_grew_is_refused(void **state) {
    (void)state;
    calyx_filter *f = make_small("line");
    const struct bytes bytes = encoded(f, PAGE_ALIGNED);
    struct file file = file_of(bytes);
    for (size_t more = 1; more <= 8192; more += more < 64 ? 1 : 509) {
        assert_int_equal(ftruncate(file.fd, (off_t)(bytes.size + more)), 0);
        assert_int_equal(load_status(&file, NULL), CALYX_DAMAGED);
        assert_int_equal(map_status(&file, NULL), CALYX_DAMAGED);
    }
    end_file(&file);
    free(bytes.at);
    calyx_free(f);
}

/* A lost sector, a lost page: what a disk does. */
static void a_body_with_zeros_in_it_is_refused(void **state) {
    (void)state;
    calyx_filter *f = make_large("split", 1 << 20);
    const struct bytes bytes = encoded(f, PAGE_ALIGNED);
    const size_t units[] = {512, 4096};
    for (int i = 0; i < 2; i++)
        for (size_t at = 0; at < load64(bytes.at + 24); at += units[i]) {
            const size_t left = bytes.size - at,
                         n = left < units[i] ? left : units[i];
            uint8_t kept[4096];
            memcpy(kept, bytes.at + at, n);
            memset(bytes.at + at, 0, n);
            if (memcmp(kept, bytes.at + at, n) != 0) assert_damaged(bytes);
            memcpy(bytes.at + at, kept, n);
        }
    assert_unharmed(bytes, f);
    free(bytes.at);
    calyx_free(f);
}

static void swap(uint8_t *a, uint8_t *b, size_t size) {
    for (size_t i = 0; i < size; i++) {
        const uint8_t kept = a[i];
        a[i] = b[i];
        b[i] = kept;
    }
}

/* Each piece fits a checksum; but not the one for its place. */
static void pieces_in_each_others_place_are_refused(void **state) {
    (void)state;
    calyx_filter *f = make_large("line", (uint64_t)24 << 20);
    const struct bytes bytes = encoded(f, LINE_ALIGNED);
    uint8_t *body = bytes.at + load64(bytes.at + 128 + 40);
    uint8_t *table = body + load64(bytes.at + 128 + 48);
    assert_unharmed(bytes, f);

    swap(body, body + RANGE_BYTES, RANGE_BYTES);
    assert_damaged(bytes);
    swap(table, table + 8, 8); /* and the checksums with them */
    assert_damaged(bytes);
    swap(body, body + RANGE_BYTES, RANGE_BYTES);
    assert_damaged(bytes);

    free(bytes.at);
    calyx_free(f);
}

static void the_end_of_another_filter_is_refused(void **state) {
    (void)state;
    calyx_filter *f = make_filter((calyx_options){.seed = 1}),
                 *g = make_filter((calyx_options){.seed = 2});
    const struct bytes of_f = encoded(f, LINE_ALIGNED),
                       of_g = encoded(g, LINE_ALIGNED);
    assert_int_equal(of_f.size, of_g.size);
    memcpy(of_f.at + of_f.size - 128, of_g.at + of_g.size - 128, 128);
    assert_damaged(of_f);
    free(of_f.at);
    free(of_g.at);
    calyx_free(f);
    calyx_free(g);
}

/* ---- Forgery ------------------------------------------------------------- */

/* doc/FORMAT.md, written down once more. */
enum {
    VERSION = 8,
    ORDER_WORD = 12,
    MUST = 16,
    MAY = 20,
    FILE_BYTES = 24,
    HEADER_BYTES = 32,
    ALIGNMENT = 36,
    KIND = 40,
    HASH = 42,
    FLAGS = 44,
    SEED = 48,
    HASH_CHECK = 56,
    FPR = 64,
    GROWTH = 72,
    PARTS = 80,
    COMMENT_SIZE = 84,
    RECORDS_SIZE = 88,
    LIST_SIZE = 92,
    LIST_SUM = 96,
    RESERVED = 104,
    PART = 128, /* the first record, and what is in it */
    BLOCKS = PART + 0,
    PROBES = PART + 8,
    PART_RESERVED = PART + 12,
    PART_CAPACITY = PART + 16,
    PART_ITEMS = PART + 24,
    PART_FPR = PART + 32,
    BODY_AT = PART + 40,
    BODY_BYTES = PART + 48,
    PART_REST = PART + 56
};

static void sign_slot(uint8_t *slot, uint64_t header_sum) {
    store64(slot + 32, header_sum);
    store64(slot + 56, checksum(slot, 56, 0));
}

/* Make the checksums of header and slot right again, where they are. */
static void sign(struct bytes bytes, size_t header_bytes, size_t slot_at) {
    const uint64_t sum = checksum(bytes.at, header_bytes - 8, 0);
    store64(bytes.at + header_bytes - 8, sum);
    sign_slot(bytes.at + slot_at, sum);
}

static uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

struct forgery {
    const char *what;
    size_t at, size;
    uint64_t value;
    calyx_status status;
    const char *says; /* a word of the text */
};

static void forge(struct bytes bytes, const struct forgery *is) {
    for (size_t i = 0; i < is->size; i++)
        bytes.at[is->at + i] = (uint8_t)(is->value >> 8 * i);
}

static void assert_refused(struct bytes bytes, const struct forgery *is) {
    for (int i = 0; i < 2; i++) {
        calyx_error why = {0};
        const calyx_status status =
            i ? decode_status(bytes, &why) : view_status(bytes, &why);
        if (status != is->status || !strstr(why.text, is->says))
            fail_msg("%s: status %d, \"%s\"", is->what, status, why.text);
        assert_int_equal(why.status, status);
    }
}

/* A line filter of one part, with all else as it should be. */
static void try_forgery(const struct forgery *is) {
    calyx_filter *f = make_filter((calyx_options){0});
    assert_ok(calyx_set_comment(f, "forged"));
    add(f, "rose");
    const struct bytes bytes = encoded(f, LINE_ALIGNED);
    const size_t header_bytes = load32(bytes.at + HEADER_BYTES);
    forge(bytes, is);
    sign(bytes, header_bytes, bytes.size - 128);
    if (is->status == CALYX_OK)
        assert_unharmed(bytes, f);
    else
        assert_refused(bytes, is);
    free(bytes.at);
    calyx_free(f);
}

static void signing_again_changes_nothing(void **state) {
    (void)state;
    try_forgery(&(struct forgery){"nothing", VERSION, 4, 1, CALYX_OK, ""});
}

#define BAD(what, at, size, value, says) \
    { what, at, size, value, CALYX_DAMAGED, says }
#define NEW(what, at, size, value, says) \
    { what, at, size, value, CALYX_TOO_NEW, says }

static const uint64_t BIG = UINT64_C(1) << 63;

static void hostile_headers_are_refused(void **state) {
    (void)state;
    const struct forgery forgeries[] = {
        BAD("another name", 0, 1, 0x88, "its first 8 bytes"),
        BAD("other line ends", 4, 1, '\n', "its first 8 bytes"),
        NEW("version 0", VERSION, 4, 0, "version 0"),
        NEW("version 2", VERSION, 4, 2, "version 2"),
        NEW("version -1", VERSION, 4, UINT32_MAX, "version"),
        BAD("swapped bytes", ORDER_WORD, 4, 0x0D0C0B0A, "order"),
        BAD("no byte order", ORDER_WORD, 4, 0, "order"),
        NEW("a feature", MUST, 4, 4, "features"),
        BAD("a list that is missing", MUST, 4, 1, "header"),
        NEW("the last feature", MUST, 4, UINT64_C(1) << 31, "0x80000000"),
        {"what may be ignored", MAY, 4, 1, CALYX_OK, ""},
        {"all that may be", MAY, 4, UINT32_MAX, CALYX_OK, ""},
        BAD("no bytes", FILE_BYTES, 8, 0, "0 bytes long"),
        BAD("all bytes", FILE_BYTES, 8, UINT64_MAX, "bytes long"),
        BAD("2^63 bytes", FILE_BYTES, 8, BIG, "bytes long"),
        BAD("no header", HEADER_BYTES, 4, 0, "header of 0"),
        BAD("a short header", HEADER_BYTES, 4, 199, "header of 199"),
        BAD("a long header", HEADER_BYTES, 4, 12289, "header of 12289"),
        BAD("a very long one", HEADER_BYTES, 4, UINT32_MAX, "header of"),
        BAD("alignment 0", ALIGNMENT, 4, 0, "header"),
        BAD("alignment 1", ALIGNMENT, 4, 1, "header"),
        BAD("alignment 63", ALIGNMENT, 4, 63, "header"),
        BAD("alignment 128", ALIGNMENT, 4, 128, "header"),
        BAD("alignment 4095", ALIGNMENT, 4, 4095, "header"),
        BAD("alignment 4096", ALIGNMENT, 4, 4096, "header"),
        BAD("alignment 2^31", ALIGNMENT, 4, UINT64_C(1) << 31, "header"),
        NEW("kind 0", KIND, 2, 0, "kind 0"),
        NEW("kind 99", KIND, 2, 99, "kind 99"),
        NEW("kind 65535", KIND, 2, 65535, "kind 65535"),
        NEW("hash 0", HASH, 2, 0, "hash 0"),
        NEW("hash 99", HASH, 2, 99, "hash 99"),
        BAD("an unknown flag", FLAGS, 4, 2, "header"),
        BAD("all flags", FLAGS, 4, UINT32_MAX, "header"),
        {"another seed", SEED, 8, 1, CALYX_WRONG_KEY, "hash"},
        {"another hash", HASH_CHECK, 8, 1, CALYX_WRONG_KEY, "hash"},
        {"fpr 0", FPR, 8, bits_of(0), CALYX_OK, ""},
        {"fpr -0", FPR, 8, bits_of(-0.0), CALYX_OK, ""},
        {"fpr 1", FPR, 8, bits_of(1), CALYX_OK, ""},
        BAD("fpr -1", FPR, 8, bits_of(-1), "header"),
        BAD("fpr nan", FPR, 8, bits_of((double)NAN), "header"),
        BAD("fpr inf", FPR, 8, bits_of((double)INFINITY), "header"),
        BAD("growth nan", GROWTH, 8, bits_of((double)NAN), "header"),
        BAD("growth inf", GROWTH, 8, bits_of((double)INFINITY), "header"),
        BAD("growth 0.5", GROWTH, 8, bits_of(0.5), "header"),
        BAD("growth 1", GROWTH, 8, bits_of(1), "header"),
        BAD("growth 17", GROWTH, 8, bits_of(17), "header"),
        BAD("growth -2", GROWTH, 8, bits_of(-2), "header"),
        BAD("parts 0", PARTS, 4, 0, "0 parts"),
        BAD("parts 2", PARTS, 4, 2, "part"),
        BAD("parts 96", PARTS, 4, 96, "part"),
        BAD("parts 97", PARTS, 4, 97, "97 parts"),
        BAD("parts 2^26", PARTS, 4, 1 << 26, "parts"),
        BAD("parts 2^32-1", PARTS, 4, UINT32_MAX, "4294967295 parts"),
        BAD("comment 1001", COMMENT_SIZE, 4, 1001, "header"),
        BAD("comment 2^32-1", COMMENT_SIZE, 4, UINT32_MAX, "header"),
        BAD("a long comment", COMMENT_SIZE, 4, 1000, "header"),
        BAD("a longer comment", COMMENT_SIZE, 4, 7, "comment"),
        BAD("a shorter comment", COMMENT_SIZE, 4, 5, "header"),
        BAD("NUL in the comment", PART + 64 + 2, 1, 0, "comment"),
        BAD("a property of 1 byte", RECORDS_SIZE, 4, 1, "properties"),
        BAD("a property of zeros", RECORDS_SIZE, 4, 8, "properties"),
        BAD("properties 4097", RECORDS_SIZE, 4, 4097, "header"),
        BAD("properties 2^32-1", RECORDS_SIZE, 4, UINT32_MAX, "header"),
        BAD("a list without its feature", LIST_SIZE, 4, 8, "header"),
        BAD("the sum of no list", LIST_SUM, 8, 1, "header"),
        BAD("reserved", RESERVED, 1, 1, "header"),
        BAD("the last reserved", 127, 1, 0x80, "header"),
        BAD("after the comment", PART + 64 + 6, 1, 1, "header"),
        BAD("blocks 0", BLOCKS, 8, 0, "0 blocks"),
        BAD("blocks 2^35+1", BLOCKS, 8, (UINT64_C(1) << 35) + 1, "blocks"),
        BAD("blocks 2^58", BLOCKS, 8, UINT64_C(1) << 58, "blocks"),
        BAD("blocks 2^63", BLOCKS, 8, BIG, "blocks"),
        BAD("blocks 2^64-1", BLOCKS, 8, UINT64_MAX, "blocks"),
        BAD("a block more", BLOCKS, 8, 1000, "part 0"),
        BAD("2^32 blocks", BLOCKS, 8, UINT64_C(1) << 32, "part 0"),
        BAD("probes 0", PROBES, 4, 0, "0 probes"),
        BAD("probes 17", PROBES, 4, 17, "17 probes"),
        BAD("probes 65", PROBES, 4, 65, "65 probes"),
        BAD("probes 2^31", PROBES, 4, UINT64_C(1) << 31, "probes"),
        BAD("probes 2^32-1", PROBES, 4, UINT32_MAX, "probes"),
        BAD("part reserved", PART_RESERVED, 1, 1, "part 0"),
        BAD("part rest", PART_REST + 7, 1, 1, "part 0"),
        BAD("capacity 0", PART_CAPACITY, 8, 0, "part 0"),
        BAD("capacity 2^63", PART_CAPACITY, 8, BIG, "part 0"),
        BAD("capacity 2^64-1", PART_CAPACITY, 8, UINT64_MAX, "part 0"),
        {"items 2^64-1", PART_ITEMS, 8, UINT64_MAX, CALYX_OK, ""},
        {"part fpr 0", PART_FPR, 8, bits_of(0), CALYX_OK, ""},
        {"part fpr 1", PART_FPR, 8, bits_of(1), CALYX_OK, ""},
        BAD("part fpr -1", PART_FPR, 8, bits_of(-1), "part 0"),
        BAD("part fpr nan", PART_FPR, 8, bits_of((double)NAN), "part 0"),
        BAD("part fpr inf", PART_FPR, 8, bits_of((double)INFINITY), "part 0"),
        BAD("body at 0", BODY_AT, 8, 0, "body"),
        BAD("body at 2^63", BODY_AT, 8, BIG, "body"),
        BAD("body at 2^64-1", BODY_AT, 8, UINT64_MAX, "body"),
        BAD("a body of 0", BODY_BYTES, 8, 0, "body"),
        BAD("a body of 2^63", BODY_BYTES, 8, BIG, "body"),
        BAD("a body of 2^64-1", BODY_BYTES, 8, UINT64_MAX, "body"),
    };
    for (size_t i = 0; i < sizeof forgeries / sizeof *forgeries; i++)
        try_forgery(&forgeries[i]);
}

/* With a capacity of 10^10 in 64 bytes, one key more took 18 GB; with a rate of
 * 0 every key doubled a table. */
static void a_growing_filter_cannot_claim_more_keys_than_its_blocks_have(
    void **state) {
    (void)state;
    const struct forgery forgeries[] = {
        BAD("capacity 10^10", PART_CAPACITY, 8, UINT64_C(10000000000),
            "cannot have"),
        BAD("capacity 2^44", PART_CAPACITY, 8, UINT64_C(1) << 44,
            "cannot have"),
        BAD("part fpr 0", PART_FPR, 8, bits_of(0), "cannot have"),
    };
    for (const char *const *kind = adding_kinds(); *kind; kind++)
        for (size_t i = 0; i < sizeof forgeries / sizeof *forgeries; i++) {
            calyx_filter *f = make_filter(
                (calyx_options){.kind = *kind, .capacity = 100, .growth = 2});
            const struct bytes bytes = encoded(f, LINE_ALIGNED);
            const size_t header_bytes = load32(bytes.at + HEADER_BYTES);
            forge(bytes, &forgeries[i]);
            sign(bytes, header_bytes, bytes.size - 128);
            assert_refused(bytes, &forgeries[i]);
            free(bytes.at);
            calyx_free(f);
        }
}

/* A header of pages has room for it: only its own limit is passed. */
static void a_comment_longer_than_allowed_is_refused(void **state) {
    (void)state;
    for (uint32_t size = 999; size < 3800;
         size = size < 1005 ? size + 1 : size + 700) {
        calyx_filter *f = make_filter((calyx_options){0});
        const struct bytes bytes = encoded(f, PAGE_ALIGNED);
        memset(bytes.at + PART + 64, 'x', size);
        store32(bytes.at + COMMENT_SIZE, size);
        sign(bytes, 4096, bytes.size - 1024);
        const struct forgery is =
            BAD("a comment", COMMENT_SIZE, 4, size, "numbers of the header");
        if (size > 1000)
            assert_refused(bytes, &is);
        else
            assert_unharmed(bytes, f);
        free(bytes.at);
        calyx_free(f);
    }
}

/* Each number of a record and of the file, one off. */
static void a_number_that_is_one_off_is_refused(void **state) {
    (void)state;
    static const size_t places[] = {FILE_BYTES, BODY_AT, BODY_BYTES, BLOCKS};
    for (const char *const *kind = adding_kinds(); *kind; kind++)
        for (size_t i = 0; i < sizeof places / sizeof *places; i++)
            for (int by = -1; by <= 1; by += 2) {
                /* Of small blocks, one more may fit into the same body. */
                const uint32_t block_bits = kind_named(*kind)->block_bits;
                const int64_t step = places[i] == BLOCKS ? 512 / block_bits : 1;
                calyx_filter *f = make_filter((calyx_options){.kind = *kind});
                const struct bytes bytes = encoded(f, LINE_ALIGNED);
                const uint64_t is = load64(bytes.at + places[i]);
                store64(bytes.at + places[i], is + (uint64_t)(by * step));
                sign(bytes, load32(bytes.at + HEADER_BYTES), bytes.size - 128);
                assert_damaged(bytes);
                free(bytes.at);
                calyx_free(f);
            }
}

static void bodies_that_overlap_or_are_swapped_are_refused(void **state) {
    (void)state;
    EACH_KIND(kind) {
        calyx_filter *f = make_small(*kind);
        const struct bytes bytes = encoded(f, LINE_ALIGNED);
        uint8_t *first = bytes.at + PART, *second = first + 64;
        const size_t header_bytes = load32(bytes.at + HEADER_BYTES);
        const uint64_t at = load64(second + 40);

        store64(second + 40, load64(first + 40)); /* both at one place */
        sign(bytes, header_bytes, bytes.size - 128);
        assert_damaged(bytes);
        store64(second + 40, at - 64);
        sign(bytes, header_bytes, bytes.size - 128);
        assert_damaged(bytes);
        store64(second + 40, at);
        swap(first + 40, second + 40, 16); /* places and sizes */
        sign(bytes, header_bytes, bytes.size - 128);
        assert_damaged(bytes);
        swap(first + 40, second + 40, 16);
        sign(bytes, header_bytes, bytes.size - 128);
        assert_unharmed(bytes, f);
        free(bytes.at);
        calyx_free(f);
    }
}

/* What one kind may have, another may not. */
static void each_kind_keeps_to_its_own_probes(void **state) {
    (void)state;
    EACH_KIND(name) {
        calyx_filter *f = make_filter((calyx_options){.kind = *name});
        const struct kind *const kind = f->kind;
        const struct bytes bytes = encoded(f, LINE_ALIGNED);
        for (uint32_t probes = 0; probes < 250; probes++) {
            store32(bytes.at + PROBES, probes);
            sign(bytes, load32(bytes.at + HEADER_BYTES), bytes.size - 128);
            const bool fits = probes >= 1 && probes <= kind->most_probes &&
                              probes % kind->probe_step == 0;
            assert_int_equal(decode_status(bytes, NULL),
                             fits ? CALYX_OK : CALYX_DAMAGED);
        }
        free(bytes.at);
        calyx_free(f);
    }
}

static void bits_after_the_last_block_are_refused(void **state) {
    (void)state;
    calyx_filter *f =
        make_filter((calyx_options){.kind = "flat", .bits = 1001});
    assert_true(info_of(f).bits % 512 != 0);
    struct bytes bytes = encoded(f, LINE_ALIGNED);
    uint8_t *body = bytes.at + load64(bytes.at + BODY_AT);
    const uint64_t size = load64(bytes.at + BODY_BYTES);
    const uint64_t bits = load64(bytes.at + BLOCKS);
    for (uint64_t bit = bits; bit < 8 * size; bit++) {
        const uint8_t kept = body[bit / 8];
        body[bit / 8] = (uint8_t)(kept | 1u << bit % 8);
        store64(body + size, checksum(body, (size_t)size, 0));
        uint8_t *slot = bytes.at + bytes.size - 128;
        store64(slot + 24, checksum(body + size, 8, 0));
        sign_slot(slot, load64(slot + 32));
        calyx_error why;
        assert_int_equal(decode_status(bytes, &why), CALYX_DAMAGED);
        assert_non_null(strstr(why.text, "after the last"));
        assert_int_equal(view_status(bytes, NULL), CALYX_DAMAGED);
        body[bit / 8] = kept;
    }
    free(bytes.at);
    calyx_free(f);
}

static void a_hostile_end_is_refused(void **state) {
    (void)state;
    static const struct {
        size_t at, size;
        uint64_t value;
    } ends[] = {
        {0, 8, 0},  /* no generation       */
        {8, 4, 0},  /* no state            */
        {8, 4, 3},  /* an unknown state    */
        {24, 8, 1}, /* other tables        */
    };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        calyx_filter *f = make_filter((calyx_options){0});
        const struct bytes bytes = encoded(f, LINE_ALIGNED);
        uint8_t *slot = bytes.at + bytes.size - 128;
        for (size_t j = 0; j < ends[i].size; j++)
            slot[ends[i].at + j] = (uint8_t)(ends[i].value >> 8 * j);
        sign_slot(slot, load64(slot + 32));
        assert_damaged(bytes);
        free(bytes.at);
        calyx_free(f);
    }
}

/* A writer would number its slots on, and beyond 2^63 they are not valid. */
static void a_file_of_the_last_generations_is_not_changed(void **state) {
    (void)state;
    static const uint64_t generations[] = {
        1, (UINT64_C(1) << 62) - 1, UINT64_C(1) << 62, (UINT64_C(1) << 63) - 1};
    for (size_t i = 0; i < sizeof generations / sizeof *generations; i++) {
        calyx_filter *f = make_filter((calyx_options){0});
        const struct bytes bytes = encoded(f, PAGE_ALIGNED);
        struct description d;
        assert_true(describe_filter(f, PAGE_ALIGNED, &d));
        uint8_t *slot = bytes.at + d.layout.slot_at[0];
        store64(slot, generations[i]);
        sign_slot(slot, load64(slot + 32));
        struct file file = file_of(bytes);
        calyx_filter *mapped = untouched;
        calyx_error why;
        const bool can = generations[i] < UINT64_C(1) << 62;
        assert_int_equal(calyx_map(file.path, CALYX_WRITE, NULL, &mapped, &why),
                         can ? CALYX_OK : CALYX_CANNOT);
        if (can) {
            assert_ok(calyx_add(mapped, "rose", 4, NULL));
            assert_ok(calyx_close(mapped, NULL));
        } else {
            assert_ptr_equal(mapped, untouched);
            assert_non_null(strstr(why.text, "its generation is"));
        }
        assert_ok(map_status(&file, &why));
        end_file(&file);
        free(bytes.at);
        calyx_free(f);
    }
}

/* Numbers that only describe may be odd: a rate may round to 0 or 1, and keys
 * may have been counted up to any number. */
static void odd_numbers_do_no_harm(void **state) {
    (void)state;
    static const uint64_t items[] = {0, 1, UINT64_C(1) << 63, UINT64_MAX};
    for (int i = 0; i < 4; i++)
        for (int strict = 0; strict < 2; strict++) {
            calyx_filter *f = make_filter((calyx_options){.strict = strict});
            const struct bytes bytes = encoded(f, LINE_ALIGNED);
            uint8_t *slot = bytes.at + bytes.size - 128;
            store64(slot + 16, items[i]);
            sign_slot(slot, load64(slot + 32));
            calyx_filter *back = NULL;
            assert_ok(calyx_decode(bytes.at, bytes.size, NULL, &back, NULL));
            assert_int_equal(info_of(back).items, items[i]);
            const calyx_status added = calyx_add(back, "rose", 4, NULL);
            assert_int_equal(added, strict && i > 1 ? CALYX_FULL : CALYX_OK);
            if (added == CALYX_OK) assert_true(has(back, "rose"));
            calyx_free(back);
            free(bytes.at);
            calyx_free(f);
        }
}

/* Whatever number stands anywhere in a signed header, the library gives an
 * error or a filter that can be queried and added to. */
static void no_forged_header_brings_the_library_down(void **state) {
    (void)state;
    static const uint64_t values[] = {0,
                                      1,
                                      2,
                                      63,
                                      64,
                                      65,
                                      255,
                                      4096,
                                      UINT32_MAX,
                                      UINT64_C(1) << 31,
                                      UINT64_C(1) << 32,
                                      UINT64_C(1) << 44,
                                      (UINT64_C(1) << 53) + 1,
                                      UINT64_C(1) << 63,
                                      UINT64_MAX};
    EACH_KIND(kind) {
        struct generator from = {3};
        calyx_filter *f = make_small(*kind);
        const struct bytes bytes = encoded(f, LINE_ALIGNED);
        const struct bytes forged = cut(bytes, bytes.size);
        const size_t header_bytes = load32(bytes.at + HEADER_BYTES);
        const int rounds = SANITIZED ? 5000 : 20000;
        for (int i = 0; i < rounds; i++) {
            memcpy(forged.at, bytes.at, bytes.size);
            const uint64_t n = 1 + random_below(&from, 3);
            for (uint64_t j = 0; j < n; j++)
                store64(forged.at + 8 * random_below(&from, header_bytes / 8),
                        values[random_below(&from, 15)]);
            sign(forged, header_bytes, bytes.size - 128);
            calyx_filter *g = NULL;
            if (calyx_decode(forged.at, forged.size, NULL, &g, NULL) !=
                CALYX_OK)
                continue;
            info_of(g);
            /* It may grow by more than there is memory for. */
            const calyx_status added = calyx_add(g, "rose", 4, NULL);
            assert_true(added == CALYX_FULL || added == CALYX_NO_MEMORY ||
                        has(g, "rose"));
            calyx_free(g);
        }
        free(forged.at);
        free(bytes.at);
        calyx_free(f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_cut_anywhere_are_refused),
        cmocka_unit_test(bytes_with_more_after_them_are_refused),
        cmocka_unit_test(any_flipped_bit_is_refused_or_without_effect),
        cmocka_unit_test(a_header_with_a_flipped_bit_is_not_even_viewed),
        cmocka_unit_test(a_header_with_two_flipped_bits_is_refused),
        cmocka_unit_test(ten_thousand_flips_in_a_body_are_all_found),
        cmocka_unit_test(a_file_cut_anywhere_is_refused),
        cmocka_unit_test(a_file_that_grew_is_refused),
        cmocka_unit_test(a_body_with_zeros_in_it_is_refused),
        cmocka_unit_test(pieces_in_each_others_place_are_refused),
        cmocka_unit_test(the_end_of_another_filter_is_refused),
        cmocka_unit_test(signing_again_changes_nothing),
        cmocka_unit_test(hostile_headers_are_refused),
        cmocka_unit_test(
            a_growing_filter_cannot_claim_more_keys_than_its_blocks_have),
        cmocka_unit_test(a_comment_longer_than_allowed_is_refused),
        cmocka_unit_test(a_number_that_is_one_off_is_refused),
        cmocka_unit_test(bodies_that_overlap_or_are_swapped_are_refused),
        cmocka_unit_test(each_kind_keeps_to_its_own_probes),
        cmocka_unit_test(bits_after_the_last_block_are_refused),
        cmocka_unit_test(a_hostile_end_is_refused),
        cmocka_unit_test(a_file_of_the_last_generations_is_not_changed),
        cmocka_unit_test(odd_numbers_do_no_harm),
        cmocka_unit_test(no_forged_header_brings_the_library_down),
    };
    return RUN_TESTS(tests);
}
