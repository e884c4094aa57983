/*
 * What the package for JavaScript needs beside the page's bridge: keys in
 * batches, and statuses. filter.js is the other half.
 *
 * A status and a yes or no are one number: all statuses but CALYX_OK are
 * negative.
 */
#include <calyx/calyx.h>

#ifdef __wasm__
#define EXPORT(type, name) \
    __attribute__((export_name(#name))) type package_##name
#else
#define EXPORT(type, name) type package_##name
#endif

enum { PACKED_MOST = 1024, PACKED_BYTES = 1 << 16 };

static calyx_error why;

EXPORT(const char *, reason)(void) {
    return why.text;
}

EXPORT(const char *, status_text)(int status) {
    return calyx_status_text((calyx_status)status);
}

EXPORT(int, merge)(calyx_filter *f, const calyx_filter *other) {
    return calyx_merge(f, other, &why);
}

EXPORT(int, clear)(calyx_filter *f) {
    return calyx_clear(f);
}

EXPORT(double, items)(const calyx_filter *f) {
    calyx_info is;
    calyx_info_of(f, &is);
    return (double)is.items;
}

EXPORT(int, add_key)(calyx_filter *f, const void *key, size_t size) {
    bool fresh;
    const calyx_status status = calyx_add(f, key, size, &fresh);
    return status != CALYX_OK ? (int)status : fresh;
}

/* ---- Keys that JavaScript packed: one after the other in one block --------
 */

static struct {
    char bytes[PACKED_BYTES];
    uint32_t ends[PACKED_MOST];
    bool results[PACKED_MOST];
    size_t done; /* keys that were added */
} packed;

EXPORT(char *, packed_bytes)(void) {
    return packed.bytes;
}

EXPORT(uint32_t *, packed_ends)(void) {
    return packed.ends;
}

EXPORT(bool *, packed_results)(void) {
    return packed.results;
}

EXPORT(size_t, packed_done)(void) {
    return packed.done;
}

EXPORT(int, packed_most)(void) {
    return PACKED_MOST;
}

EXPORT(int, packed_room)(void) {
    return PACKED_BYTES;
}

static const calyx_key *unpack(size_t n) {
    static calyx_key keys[PACKED_MOST];
    uint32_t start = 0;
    for (size_t i = 0; i < n; i++) {
        keys[i] = (calyx_key){packed.bytes + start, packed.ends[i] - start};
        start = packed.ends[i];
    }
    return keys;
}

EXPORT(int, add_packed)(calyx_filter *f, size_t n) {
    return calyx_add_many(f, unpack(n), n, packed.results, &packed.done);
}

EXPORT(void, has_packed)(const calyx_filter *f, size_t n) {
    calyx_has_many(f, unpack(n), n, packed.results);
}

EXPORT(int, builder_add_packed)(calyx_builder *b, size_t n) {
    return calyx_builder_add_many(b, unpack(n), n, &why);
}
