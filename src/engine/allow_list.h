/*
 * The allow list of a filter: a short exact list of keys that are not in it, so
 * that lookups of them return no although their bits are set.
 *
 * Only what has the bytes of a key can look it up here: two keys may share a
 * hash. But a hash is enough to drop a key, which is what adding does: a key on
 * the list that was added is a false negative, one too few on the list is a
 * false positive.
 */
#ifndef CALYX_ALLOW_LIST_H
#define CALYX_ALLOW_LIST_H

#include "engine/engine.h"

/* Number of keys on the list. */
uint64_t listed_keys(const calyx_filter *f);

/* As a file has it: the keys in ascending order, each after its size (u32). */
bool is_encoded_list(const uint8_t *bytes, uint32_t size);
uint32_t encoded_list_bytes(const calyx_filter *f);

/* Is the key in an encoded list? */
bool is_in_encoded_list(const uint8_t *bytes, uint32_t size, const void *key,
                        size_t key_size);
uint64_t encoded_list_keys(const uint8_t *bytes, uint32_t size);

/* In memory of the filter. Other threads may drop keys meanwhile. */
struct encoded_list {
    uint8_t *bytes; /* NULL: there is none */
    uint32_t size, room;
};
calyx_status encode_list(const calyx_filter *f, struct encoded_list *out,
                         calyx_error *why);
void release_encoded_list(const calyx_filter *f, struct encoded_list *list);

/* Give the filter this list, which is sound, in place of its own. */
calyx_status decode_list(calyx_filter *f, const uint8_t *bytes, uint32_t size);

calyx_status copy_list(calyx_filter *to, const calyx_filter *from);
void drop_list(calyx_filter *f);
void move_list(calyx_filter *f, calyx_move_function *move, void *context);
uint64_t list_memory_bytes(const calyx_filter *f);

/* Before a filter is united with another: keep the keys of both lists that
 * neither filter has. CALYX_FULL if these are too many. */
calyx_status unite_lists(calyx_filter *f, const calyx_filter *other,
                         calyx_error *why);

/* Take the keys off the list that another filter has. */
void drop_listed_of(const calyx_filter *f, const calyx_filter *other);

/* What unite_lists would return. */
calyx_status check_lists(const calyx_filter *f, const calyx_filter *other,
                         calyx_error *why);

/* Before it is intersected: keep all; a key that is missing in one filter is
 * not in both. */
calyx_status intersect_lists(calyx_filter *f, const calyx_filter *other,
                             calyx_error *why);

#endif
