#include "input/look.h"

#include <string.h>

/* Magic numbers of doc/FORMAT.md, of the formats' own specifications, and of
 * Unicode's byte order mark (Unicode 15, section 23.8). The mark of bzip2 is
 * followed by the digits of pi, or in an empty file by the digits of its root:
 * "BZh" alone may begin a line. */
static const struct look looks[] = {
    {A_FILTER, 8, "\x89\x43LX\r\n\x1a\n", "a calyx filter", NULL},
    {A_PART, 8, "\x89\x43LP\r\n\x1a\n", "a part of a calyx filter", NULL},
    {HASHES, 8, "\x89\x43LH\r\n\x1a\n", "a file of hashes", NULL},
    {A_DUMP, 13, "calyx dump 1 ", "a filter of another program", NULL},
    {PACKED_DATA, 6, "\xfd\x37zXZ", "xz data", "xz -dc"},
    {PACKED_DATA, 10, "BZh1\x31\x41\x59\x26\x53\x59", "bzip2 data",
     "bzip2 -dc"},
    {PACKED_DATA, 10, "BZh1\x17\x72\x45\x38\x50\x90", "bzip2 data",
     "bzip2 -dc"},
    {PACKED_DATA, 4, "\x04\x22\x4d\x18", "lz4 data", "lz4 -dc"},
    {PACKED_DATA, 4, "PK\x03\x04", "a zip archive", "unzip -p"},
    {PACKED_DATA, 6, "7z\xbc\xaf\x27\x1c", "a 7z archive", "7z x -so"},
    {PACKED_DATA, 2, "\x1f\x9d", "compress data", "gzip -dc"},
    {PACKED_DATA, 2, "\x1f\x8b", "gzip data, packed twice", "gzip -dc"},
    {PACKED_DATA, 4, "\x28\xb5\x2f\xfd", "zstd data, packed twice", "zstd -dc"},
    {WIDE_TEXT, 2, "\xff\xfe", "UTF-16 text", "iconv -f UTF-16 -t UTF-8"},
    {WIDE_TEXT, 2, "\xfe\xff", "UTF-16 text", "iconv -f UTF-16 -t UTF-8"},
    {WIDE_TEXT, 4, "\xff\xfe\0", "UTF-32 text", "iconv -f UTF-32 -t UTF-8"},
    {WIDE_TEXT, 4, "\0\0\xfe\xff", "UTF-32 text", "iconv -f UTF-32 -t UTF-8"},
    {UTF8_MARK, 3, "\xef\xbb\xbf", "UTF-8 text", NULL},
};

/* The digit of bzip2 is the size of its blocks. */
static bool fits(const struct look *look, size_t at, uint8_t byte) {
    if (look->magic[0] == 'B' && at == 3) return byte >= '1' && byte <= '9';
    return (uint8_t)look->magic[at] == byte;
}

static void compare(const struct look *look, const uint8_t *bytes, size_t size,
                    const struct look **best, bool *more) {
    size_t same = 0;
    while (same < size && same < look->size && fits(look, same, bytes[same]))
        same++;
    if (same == look->size && (!*best || look->size > (*best)->size))
        *best = look;
    if (same == size && same < look->size) *more = true;
}

static bool is_calyx(const struct look *look) {
    return look->kind == A_FILTER || look->kind == A_PART ||
           look->kind == HASHES;
}

/* Version 1 and the byte order, which follow the magic number of a filter. */
static bool continues_as_filter(const uint8_t *bytes) {
    return memcmp(bytes + 8, "\1\0\0\0\x0d\x0c\x0b\x0a", 8) == 0;
}

const struct look *look_at(const uint8_t *bytes, size_t size, bool *more) {
    static const struct look damaged = {
        A_FILTER, 0, "", "a calyx filter with damaged first bytes", NULL};
    const struct look *best = NULL;
    *more = false;
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++)
        compare(&looks[i], bytes, size, &best, more);
    if ((!best || !is_calyx(best)) && size >= LOOK_BYTES &&
        continues_as_filter(bytes))
        return &damaged;
    return best;
}

bool looks_like_text(const uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (bytes[i] < ' ' && (bytes[i] < '\t' || bytes[i] > '\r'))
            return false;
    return size > 0;
}
