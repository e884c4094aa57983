/* What a prefetch hint has inside: each engine fills it. */
#ifndef CALYX_PREFETCH_HINT_H
#define CALYX_PREFETCH_HINT_H

#include "bucket/bucket.h"
#include "engine/engine.h"

/* The newest parts, as far as they are hardly in a near cache. */
enum { PARTS_MOST = 8, PART_LEAST = 64 << 10 };
struct hinted_part {
    const uint8_t *body;
    uint64_t blocks;
};

/* How words of a hint are read. */
struct __attribute__((may_alias)) prefetch_hint {
    const struct kernel *kernel; /* these two are never freed; NULL: no hint */
    const struct hash *hash;
    struct secret secret;
    struct shape shape; /* of the newest part                               */
    uint64_t stride;    /* bytes of a block, if a key goes to one; else 0   */
    uint64_t parts;     /* 0: a table that has grown                        */
    union {
        struct hinted_part part[PARTS_MOST];
        struct newest_segments newest;
    };
};

/* Prefetch in this part and the older ones; only in this one, if a key goes to
 * several blocks. */
void hint_of_parts(const calyx_filter *f, const struct part *p,
                   struct prefetch_hint *hint);

#endif
