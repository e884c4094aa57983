/*
 * Calls of the library in the form that cgo takes without checks: pointers have
 * types without pointers in them, and a status and a yes or no are one number.
 * All statuses but CALYX_OK are negative.
 */
#ifndef CALYX_GO_CALLS_H
#define CALYX_GO_CALLS_H

#include <calyx/calyx.h>

static inline int add_bytes(calyx_filter *f, const uint8_t *key, size_t size) {
    bool fresh;
    const calyx_status status = calyx_add(f, key, size, &fresh);
    return status != CALYX_OK ? status : fresh;
}

static inline int add_number(calyx_filter *f, uint64_t number) {
    bool fresh;
    const calyx_status status = calyx_add_u64(f, number, &fresh);
    return status != CALYX_OK ? status : fresh;
}

static inline int remove_bytes(calyx_filter *f, const uint8_t *key,
                               size_t size) {
    bool found;
    const calyx_status status = calyx_remove(f, key, size, &found);
    return status != CALYX_OK ? status : found;
}

static inline bool has_bytes(const calyx_filter *f, const uint8_t *key,
                             size_t size) {
    return calyx_has(f, key, size);
}

static inline uint32_t count_bytes(const calyx_filter *f, const uint8_t *key,
                                   size_t size) {
    return calyx_count(f, key, size);
}

/* Keys that lie one after the other in one block, as Go packs them: C must not
 * be given a Go array of addresses. */
enum { PACKED_MOST = 1024 };

static inline void unpack(const uint8_t *bytes, const size_t *ends, size_t n,
                          calyx_key *keys) {
    size_t start = 0;
    for (size_t i = 0; i < n; i++) {
        keys[i] = (calyx_key){bytes + start, ends[i] - start};
        start = ends[i];
    }
}

static inline calyx_status add_packed(calyx_filter *f, const uint8_t *bytes,
                                      const size_t *ends, size_t n, bool *fresh,
                                      size_t *done) {
    calyx_key keys[PACKED_MOST];
    unpack(bytes, ends, n, keys);
    return calyx_add_many(f, keys, n, fresh, done);
}

static inline void has_packed(const calyx_filter *f, const uint8_t *bytes,
                              const size_t *ends, size_t n, bool *found) {
    calyx_key keys[PACKED_MOST];
    unpack(bytes, ends, n, keys);
    calyx_has_many(f, keys, n, found);
}

static inline calyx_status builder_add_packed(calyx_builder *b,
                                              const uint8_t *bytes,
                                              const size_t *ends, size_t n,
                                              calyx_error *why) {
    calyx_key keys[PACKED_MOST];
    unpack(bytes, ends, n, keys);
    return calyx_builder_add_many(b, keys, n, why);
}

static inline calyx_status encode_bytes(const calyx_filter *f, uint8_t *buffer,
                                        size_t size, calyx_error *why) {
    return calyx_encode(f, buffer, size, why);
}

static inline calyx_status decode_bytes(const uint8_t *bytes, size_t size,
                                        const calyx_open_options *how,
                                        calyx_filter **out, calyx_error *why) {
    return calyx_decode(bytes, size, how, out, why);
}

/* A file that is read in pieces: all of a lookup, from hashes and bytes that Go
 * has: twice the part to look into next, or 0, and 1 more if this part has the
 * key. */
static inline uint32_t layout_answer(const calyx_layout *l, uint32_t part,
                                     uint64_t hash, const uint8_t *lines) {
    return 2 * calyx_layout_next(l, part, hash, lines) +
           calyx_layout_has(l, part, hash, lines);
}

static inline calyx_status layout_new(const uint8_t *bytes, size_t size,
                                      calyx_layout **out, calyx_error *why) {
    return calyx_layout_new(bytes, size, out, why);
}

static inline calyx_status layout_hash(const calyx_layout *l,
                                       const uint8_t *key, size_t size,
                                       uint64_t *hash) {
    return calyx_layout_hash(l, key, size, hash);
}

static inline bool layout_allows(const calyx_layout *l, const uint8_t *key,
                                 size_t size) {
    return calyx_layout_allows(l, key, size);
}

static inline calyx_status layout_add(const calyx_layout *l, uint32_t part,
                                      uint64_t hash, uint8_t *line) {
    return calyx_layout_add(l, part, hash, line);
}

/* Finds a section of a type; its index, or -1. */
static inline int layout_section(const calyx_layout *l, calyx_section_type type,
                                 calyx_section *s) {
    for (uint32_t i = 0; calyx_layout_section(l, i, s); i++)
        if (s->type == type) return (int)i;
    return -1;
}

/* The members of an error, read where C's types are at home. */
static inline const char *error_text(const calyx_error *why) {
    return why->text;
}

#endif
