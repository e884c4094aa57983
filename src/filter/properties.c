/*
 * Properties: small named texts that travel with a filter.
 *
 * They are stored as the records of the file format (doc/FORMAT.md), in one
 * block of memory, so that records of a later version survive unread. A record
 * is
 *
 *     u16 type | u16 bytes of what follows | ...
 *
 * and the record of a property goes on with its name and its value, each with a
 * byte 0 at its end.
 */
#include <string.h>

#include "base/bits.h"
#include "base/error.h"
#include "base/memory.h"
#include "filter/filter.h"

enum { PROPERTY = 1, RECORD_HEAD = 4 };

static uint32_t record_bytes(const uint8_t *record) {
    return RECORD_HEAD + load16(record + 2);
}

static bool is_property(const uint8_t *record) {
    return load16(record) == PROPERTY;
}

static const char *name_of(const uint8_t *record) {
    return (const char *)record + RECORD_HEAD;
}

/* Of a record that is sound: the value ends with the record. */
static const char *value_of(const uint8_t *record) {
    const char *const name = name_of(record);
    return name + strlen(name) + 1;
}

/* Where the property of this name is among n bytes of records; n if nowhere. */
static uint32_t find(const uint8_t *at, uint32_t n, const char *name) {
    uint32_t i = 0;
    while (i < n &&
           !(is_property(at + i) && strcmp(name_of(at + i), name) == 0))
        i += record_bytes(at + i);
    return i;
}

/* Exactly two texts, the first not empty, in exactly these bytes. */
static bool is_sound_property(const char *texts, uint32_t size) {
    const char *const end = memchr(texts, 0, size);
    if (!end || end == texts || end - texts > PROPERTY_NAME_BYTES) return false;
    const uint32_t left = size - (uint32_t)(end + 1 - texts);
    return left > 0 && memchr(end + 1, 0, left) == end + left;
}

bool are_records(const uint8_t *bytes, uint32_t size) {
    if (size > PROPERTIES_BYTES) return false;
    for (uint32_t at = 0, n; at < size; at += n) {
        const uint8_t *const record = bytes + at;
        if (size - at < RECORD_HEAD) return false;
        n = record_bytes(record);
        if (n > size - at || load16(record) == 0) return false;
        if (!is_property(record)) continue;
        if (!is_sound_property(name_of(record), n - RECORD_HEAD) ||
            find(bytes, at, name_of(record)) != at)
            return false;
    }
    return true;
}

static size_t block_bytes(uint32_t records) {
    return sizeof(struct properties) + records;
}

/* Allocate a block for these records, and free the old one. */
static struct properties *take_records(const calyx_filter *f, uint32_t bytes) {
    struct properties *const made =
        f->memory.allocate(f->memory.context, block_bytes(bytes), ALIGNMENT);
    if (made) made->bytes = bytes;
    return made;
}

void drop_properties(calyx_filter *f) {
    if (!f->properties) return;
    f->memory.release(f->memory.context, f->properties,
                      block_bytes(f->properties->bytes));
    f->properties = NULL;
}

void move_properties(calyx_filter *f, calyx_move_function *move,
                     void *context) {
    if (!f->properties) return;
    f->properties =
        move(context, f->properties, block_bytes(f->properties->bytes));
}

calyx_status set_records(calyx_filter *f, const uint8_t *bytes, uint32_t size) {
    struct properties *const made = size ? take_records(f, size) : NULL;
    if (size && !made) return CALYX_NO_MEMORY;
    if (size) memcpy(made->records, bytes, size);
    drop_properties(f);
    f->properties = made;
    return CALYX_OK;
}

calyx_status copy_properties(calyx_filter *to, const calyx_filter *from) {
    const struct properties *const p = from->properties;
    return p ? set_records(to, p->records, p->bytes) : CALYX_OK;
}

const char *calyx_property(const calyx_filter *f, const char *name) {
    const struct properties *const p = f->properties;
    if (!p) return NULL;
    const uint32_t at = find(p->records, p->bytes, name);
    return at < p->bytes ? value_of(p->records + at) : NULL;
}

calyx_status calyx_set_property(calyx_filter *f, const char *name,
                                const char *value, calyx_error *why) {
    const size_t name_bytes = strlen(name);
    const size_t texts = value ? name_bytes + 1 + strlen(value) + 1 : 0;
    if (is_in_place(f))
        return fail(why, CALYX_READ_ONLY,
                    "the properties of a file cannot be changed in place; "
                    "change the properties of a copy, and save it");
    if (name_bytes < 1 || name_bytes > PROPERTY_NAME_BYTES)
        return fail(why, CALYX_BAD_ARGUMENT,
                    "the name of a property has 1 to %d bytes, not %llu",
                    PROPERTY_NAME_BYTES, (unsigned long long)name_bytes);
    uint8_t records[PROPERTIES_BYTES] = {0};
    uint32_t used = f->properties ? f->properties->bytes : 0;
    if (used) memcpy(records, f->properties->records, used);
    const uint32_t old = find(records, used, name);
    if (old < used) {
        const uint32_t n = record_bytes(records + old);
        used -= n;
        memmove(records + old, records + old + n, used - old);
    }
    if (value && texts + RECORD_HEAD > PROPERTIES_BYTES - used)
        return fail(why, CALYX_BAD_ARGUMENT,
                    "the properties of a filter have at most %d bytes, with %d "
                    "and two ends for each; %u are taken, and %.64s needs %llu",
                    PROPERTIES_BYTES, RECORD_HEAD, used, name,
                    (unsigned long long)texts + RECORD_HEAD);
    if (value) {
        uint8_t *const record = records + used;
        store16(record, PROPERTY);
        store16(record + 2, (uint32_t)texts);
        memcpy(record + RECORD_HEAD, name, name_bytes + 1);
        strcpy((char *)record + RECORD_HEAD + name_bytes + 1, value);
        used += (uint32_t)texts + RECORD_HEAD;
    }
    if (set_records(f, records, used) == CALYX_OK) return CALYX_OK;
    return fail(why, CALYX_NO_MEMORY, "no memory for a property");
}
