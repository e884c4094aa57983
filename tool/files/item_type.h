/*
 * What a program makes of an item before its filter hashes it: Guava calls that
 * a funnel. Lines are text here; in a filter of numbers, their bytes are looked
 * up.
 */
#ifndef CALYX_TOOL_ITEM_TYPE_H
#define CALYX_TOOL_ITEM_TYPE_H

#include "tool.h"

struct item_type {
    const char *name;
    const char *wanted; /* what a line must be */
    size_t room, least; /* bytes for a key: for each of its own, and more */
    /* The bytes of a key. Their number, or SIZE_MAX if it is none of these. */
    size_t (*encode)(const calyx_key *key, uint8_t *to);
};

/* For the completion, too. */
#define ITEM_TYPES "text|utf16|int32|int64"

/* The value of --items, into a const struct item_type *. */
void parse_items(const struct verb_option *option, const char *value);

/* "" is text. NULL if there is none of this name. */
const struct item_type *item_type_named(const char *name);

/* From now on, lines whose keys are no items of this type are errors. */
void expect_items(const struct item_type *type);

/* The same keys in this type, which is expected; they live until
 * item_keys_free. `n` is at most BATCH_ROOM of input/records.h. */
struct item_keys {
    calyx_key *keys;
    uint8_t *bytes;
};
struct item_keys items_of(const struct item_type *type, const calyx_key *keys,
                          size_t n);
void item_keys_free(struct item_keys *items);

#endif
