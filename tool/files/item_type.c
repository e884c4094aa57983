#include "files/item_type.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "input/records.h"

/* ---- Numbers ------------------------------------------------------------- */

enum { MOST_DIGITS = 20 }; /* of a number with its sign */

static bool number_from(const calyx_key *key, long long *number) {
    char text[MOST_DIGITS + 1];
    if (key->size < 1 || key->size > MOST_DIGITS) return false;
    memcpy(text, key->data, key->size);
    text[key->size] = '\0';
    const size_t sign = text[0] == '-';
    if (strspn(text + sign, "0123456789") != key->size - sign ||
        key->size == sign)
        return false;
    errno = 0;
    *number = strtoll(text, NULL, 10);
    return errno == 0;
}

static size_t put_number(long long number, uint8_t *to, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        to[i] = (uint8_t)((unsigned long long)number >> 8 * i);
    return bytes;
}

static size_t encode_int64(const calyx_key *key, uint8_t *to) {
    long long number;
    return number_from(key, &number) ? put_number(number, to, 8) : SIZE_MAX;
}

static size_t encode_int32(const calyx_key *key, uint8_t *to) {
    long long number;
    if (!number_from(key, &number) || number < INT32_MIN || number > INT32_MAX)
        return SIZE_MAX;
    return put_number(number, to, 4);
}

/* ---- UTF-16 -------------------------------------------------------------- */

/* The next character of UTF-8, as Unicode 15 defines it (table 3-7); moves on.
 * UINT32_MAX if there is none. */
static uint32_t next_character(const uint8_t **at, const uint8_t *end) {
    const uint32_t first = *(*at)++;
    if (first < 0x80) return first;
    const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    if (first < 0xC2 || first > 0xF4 || end - *at < more) return UINT32_MAX;
    uint32_t character = first & (0x3Fu >> more);
    for (int i = 0; i < more; i++) {
        const uint32_t byte = *(*at)++;
        if (byte >> 6 != 2) return UINT32_MAX;
        character = character << 6 | (byte & 0x3F);
    }
    const bool is_half = character >= 0xD800 && character < 0xE000;
    return character < least[more] || character > 0x10FFFF || is_half
               ? UINT32_MAX
               : character;
}

static size_t encode_utf16(const calyx_key *key, uint8_t *to) {
    const uint8_t *at = key->data, *const end = at + key->size;
    size_t size = 0;
    while (at < end) {
        uint32_t character = next_character(&at, end);
        if (character == UINT32_MAX) return SIZE_MAX;
        if (character >= 0x10000) {
            character -= 0x10000;
            size += put_number(0xD800 | character >> 10, to + size, 2);
            character = 0xDC00 | (character & 0x3FF);
        }
        size += put_number(character, to + size, 2);
    }
    return size;
}

/* ---- The types ----------------------------------------------------------- */

static const struct item_type types[] = {
    {"text", "text", 0, 0, NULL},
    {"utf16", "text in UTF-8", 2, 0, encode_utf16},
    {"int32", "a whole number from -2147483648 to 2147483647", 0, 4,
     encode_int32},
    {"int64", "a whole number from -2^63 to 2^63 - 1", 0, 8, encode_int64},
};
enum { TYPES = sizeof types / sizeof *types };

const struct item_type *item_type_named(const char *name) {
    if (!*name) return &types[0];
    for (int i = 0; i < TYPES; i++)
        if (strcmp(types[i].name, name) == 0) return &types[i];
    return NULL;
}

void parse_items(const struct verb_option *option, const char *value) {
    const struct item_type *const type = item_type_named(value);
    if (!type || !*value)
        fail("--%s: expected text, utf16, int32 or int64, found '%s'",
             option->name, value);
    *(const struct item_type **)option->into = type;
}

/* ---- Keys ---------------------------------------------------------------- */

/* Of all filters that are queried. */
static const struct item_type *expected[TYPES];

static bool is_item(const struct item_type *type, const calyx_key *key,
                    char *error) {
    const size_t room = type->least + type->room * key->size;
    uint8_t small[256], *const to =
                            room > sizeof small ? alloc_memory(room) : small;
    const bool yes = type->encode(key, to) != SIZE_MAX;
    if (to != small) free(to);
    if (!yes)
        snprintf(error, FIELD_ERROR_ROOM,
                 "the items of the filter are %s, and '%.*s' is not %s",
                 type->name, key->size < 60 ? (int)key->size : 60,
                 (const char *)key->data, type->wanted);
    return yes;
}

static bool is_expected(const calyx_key *key, char *error) {
    for (int i = 0; i < TYPES; i++)
        if (expected[i] && !is_item(expected[i], key, error)) return false;
    return true;
}

void expect_items(const struct item_type *type) {
    if (!type->encode) return; /* any bytes are text */
    expected[type - types] = type;
    key_is_usable = is_expected;
}

struct item_keys items_of(const struct item_type *type, const calyx_key *keys,
                          size_t n) {
    size_t room = 0;
    for (size_t i = 0; i < n; i++)
        room += type->least + type->room * keys[i].size;
    struct item_keys items = {.keys =
                                  alloc_memory((n + 1) * sizeof *items.keys),
                              .bytes = alloc_memory(room + 1)};
    uint8_t *to = items.bytes;
    for (size_t i = 0; i < n; i++) {
        const size_t size = type->encode(&keys[i], to);
        items.keys[i] = (calyx_key){to, size};
        to += size;
    }
    return items;
}

void item_keys_free(struct item_keys *items) {
    free(items->keys);
    free(items->bytes);
}
