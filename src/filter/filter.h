/*
 * What the public calls share: planning, checks, texts, descriptions. A filter
 * itself, its parts and what its calls do, is in engine/engine.h.
 */
#ifndef CALYX_FILTER_H
#define CALYX_FILTER_H

#include "engine/engine.h"

enum {
    COMMENT_BYTES = 1001,
    PROPERTIES_BYTES = 4096, /* of all of them, at most       */
    PROPERTY_NAME_BYTES = 64 /* at most, without a byte 0     */
};

/* Small named texts, as the records that a file has of them. */
struct properties {
    uint32_t bytes; /* of records */
    uint8_t records[];
};

/* Are these bytes records that are sound? */
bool are_records(const uint8_t *bytes, uint32_t size);
calyx_status set_records(struct calyx_filter *f, const uint8_t *bytes,
                         uint32_t size);
calyx_status copy_properties(struct calyx_filter *to,
                             const struct calyx_filter *from);
void drop_properties(struct calyx_filter *f);
/* Comment and properties. */
calyx_status copy_texts(struct calyx_filter *to,
                        const struct calyx_filter *from);
void move_properties(struct calyx_filter *f, calyx_move_function *move,
                     void *context);

/* What options come to: the head of a filter, without parts, and the first. */
calyx_status plan_filter(const calyx_options *want, struct calyx_filter *head,
                         struct part *first, calyx_error *why);

/* Fails with a text that says what to do instead if filters of this kind cannot
 * be `done`: "merged". */
calyx_status check_can(const struct kind *kind, uint32_t ability,
                       const char *done, calyx_error *why);

/* Do two filters set the same bits for a key, if their shapes are alike? */
calyx_status check_same_hash(const calyx_filter *a, const calyx_filter *b,
                             calyx_error *why);

/* Before and after the bits of a filter are read as a whole: do they match
 * their checksums, and were they all there? */
calyx_status check_whole(const struct calyx_filter *f, calyx_error *why);

/* Choose the kernel by name (NULL for the best). */
calyx_status choose_kernel(const char *name, struct calyx_filter *f,
                           calyx_error *why);

/* Put bits of another body, which may be shared, into this one. */
void or_bits(uint8_t *body, const uint8_t *other, uint64_t bytes);

/* As calyx_describe, given the bits set in each part, the oldest first; NULL
 * counts them. */
void describe_bits(const struct calyx_filter *f, const uint64_t *counts,
                   calyx_info *info);

#endif
