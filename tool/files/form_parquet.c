/*
 * Parquet's form of a filter: a BloomFilterHeader in Thrift's compact protocol,
 * then the bits of a split filter that was hashed by xxh64 with seed 0. This is
 * what stands at the bloom_filter_offset of a column chunk.
 *
 *     struct BloomFilterHeader {
 *       1: i32 numBytes
 *       2: union { 1: struct { } BLOCK }         the algorithm
 *       3: union { 1: struct { } XXHASH }        the hash
 *       4: union { 1: struct { } UNCOMPRESSED }  the compression
 *     }
 *
 * In the compact protocol a field begins with a byte: 16 times the step from
 * the number of the last field, plus the type. A byte of 0 ends a struct.
 */
#include <string.h>

#include "files/form.h"

enum { STOP = 0, I32 = 5, STRUCT = 12 };
enum { BLOCK_BYTES = 32 };

/* Arrow and those made after it read up to this size, powers of two only. */
static const uint64_t ARROWS_MOST = UINT64_C(128) << 20;

/* ---- Out ---------------------------------------------------------------- */

/* Signed numbers are folded (0, -1, 1, -2, ...), and go in groups of 7 bits,
 * the lowest first; all but the last have the high bit set. */
static size_t put_number(uint8_t *to, uint32_t number) {
    uint64_t left = 2 * (uint64_t)number;
    size_t size = 0;
    for (; left >= 0x80; left >>= 7) to[size++] = (uint8_t)(left | 0x80);
    to[size++] = (uint8_t)left;
    return size;
}

static void check_fit(const calyx_filter *f, const char *path, size_t size) {
    calyx_info is;
    calyx_describe(f, &is);
    if (strcmp(is.kind, "split") != 0 || strcmp(is.hash, "xxh64") != 0 ||
        is.seed != 0)
        fail_at(
            path, 0,
            "Parquet requires kind split, hash xxh64 and seed 0; this is %s, "
            "%s and %llu. 'calyx build --kind split' makes the right one",
            is.kind, is.hash, (unsigned long long)is.seed);
    if (size > INT32_MAX)
        fail_at(path, 0,
                "Parquet counts at most %d bytes, and its bits take %zu",
                INT32_MAX, size);
    if (size > ARROWS_MOST || (size & (size - 1)) != 0)
        warn("%s: its bits take %zu bytes; Arrow and some other readers want a "
             "power of two up to 128 MiB, as from 'calyx build --memory 1MiB'",
             path, size);
}

static void write_parquet(const calyx_filter *f, const char *path,
                          struct output *to) {
    size_t size;
    const void *const bits = raw_bits(f, path, &size);
    check_fit(f, path, size);

    uint8_t header[32];
    size_t at = 0;
    header[at++] = 1 << 4 | I32;
    at += put_number(header + at, (uint32_t)size);
    for (int field = 2; field <= 4; field++) {
        header[at++] = 1 << 4 | STRUCT; /* the union */
        header[at++] = 1 << 4 | STRUCT; /* its one choice, which is empty */
        header[at++] = STOP;
        header[at++] = STOP;
    }
    header[at++] = STOP;
    output_write(to, header, at);
    output_write(to, bits, size);
}

/* ---- In ----------------------------------------------------------------- */

static _Noreturn void fail_header(const struct byte_source *from,
                                  const char *what) {
    fail_at(source_name(from), 0,
            "not the header of a Bloom filter in Parquet: %s; in a whole "
            "Parquet file, --offset says where the filter is: the "
            "bloom_filter_offset of its column",
            what);
}

static uint8_t get_byte(struct byte_source *from) {
    uint8_t byte;
    read_bytes(from, &byte, 1, "the header of a Bloom filter in Parquet");
    return byte;
}

static int64_t get_number(struct byte_source *from) {
    uint64_t folded = 0;
    for (int shift = 0; shift < 63; shift += 7) {
        const uint8_t byte = get_byte(from);
        folded |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return folded & 1 ? -(int64_t)(folded >> 1) - 1
                              : (int64_t)(folded >> 1);
    }
    fail_header(from, "a number in it has no end");
}

/* The start of a field: its type, or STOP. Numbers it in `*field`. */
static int get_field(struct byte_source *from, int64_t *field) {
    const uint8_t byte = get_byte(from);
    if (byte == STOP) return STOP;
    const int step = byte >> 4;
    *field = step ? *field + step : get_number(from);
    return byte & 15;
}

/* A union must have chosen the one thing that calyx knows, an empty struct. */
static void get_choice(struct byte_source *from, const char *unknown) {
    int64_t field = 0;
    if (get_field(from, &field) != STRUCT || field != 1 ||
        get_byte(from) != STOP || get_byte(from) != STOP)
        fail_header(from, unknown);
}

static void read_parquet(struct byte_source *from, calyx_options *is) {
    static const char *const unknown[] = {
        "its algorithm is not BLOCK", "its hash is not XXHASH",
        "its compression is not UNCOMPRESSED"};
    int64_t size = -1, field = 0;
    unsigned seen = 0;
    for (int type; (type = get_field(from, &field)) != STOP;) {
        if (field == 1 && type == I32)
            size = get_number(from);
        else if (field >= 2 && field <= 4 && type == STRUCT)
            get_choice(from, unknown[field - 2]);
        else
            fail_header(from, "it has a field that is unknown");
        seen |= 1u << field;
    }
    if (seen != (1u << 1 | 1u << 2 | 1u << 3 | 1u << 4))
        fail_header(from, "it lacks a field");
    if (size <= 0 || size > INT32_MAX || size % BLOCK_BYTES != 0)
        fail_at(source_name(from), 0,
                "the size of a Bloom filter in Parquet is a multiple of 32 "
                "bytes, not %lld",
                (long long)size);
    is->kind = "split";
    is->hash = "xxh64";
    is->bits = 8 * (uint64_t)size;
}

const struct foreign_form form_parquet = {"parquet", write_parquet,
                                          read_parquet};
