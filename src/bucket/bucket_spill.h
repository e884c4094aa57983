/* Spilled entries; bucket_spill.c says what they are. */
#ifndef CALYX_BUCKET_SPILL_H
#define CALYX_BUCKET_SPILL_H

#include "bucket/bucket.h"

/* Lines to look at, one after the other. */
struct probing {
    uint8_t *lines;
    uint64_t count, line;
    uint32_t number, most;
};

static inline struct probing first_probe(const struct bucket_table *t,
                                         const struct bucket_ref *at) {
    const uint64_t count = spill_lines(at->blocks);
    const uint64_t wanted = count <= FEW_LINES ? count : PROBES_MOST;
    const uint32_t most = UINT32_C(1) << (28 - t->width);
    return (struct probing){
        .lines = at->lines,
        .count = count,
        .line = at->index / SPILL_BUCKETS,
        .most = most < wanted ? most : (uint32_t)wanted,
    };
}

static inline bool next_probe(struct probing *p) {
    if (++p->number >= p->most) return false;
    const bool jumps = p->count > FEW_LINES && p->number < FEW_LINES;
    p->line += jumps ? p->number : 1;
    if (p->line >= p->count) p->line %= p->count;
    return true;
}

/* The bits of an entry above the code. */
static inline uint32_t tag_of(const struct bucket_ref *at, uint32_t probe) {
    return (uint32_t)(at->index % SPILL_BUCKETS) | probe << 4;
}

static inline uint32_t get_spill_word(const void *word) {
    return little32(__atomic_load_n((const uint32_t *)word, __ATOMIC_ACQUIRE));
}

/* Did entries go on from this line? */
static inline bool passes_on(const uint8_t *line) {
    return get_spill_word(line + 4 * SPILL_ENTRIES) != 0;
}

static inline bool goes_on(const struct probing *p) {
    return passes_on(p->lines + p->line * BUCKET_BYTES);
}

/* `bucket` is the line of the bucket, or a copy of it. A code and its tag match
 * as one word: the stop bit is the lowest 1 of both. */
static inline bool has_spilled(const struct bucket_table *t,
                               const struct bucket_ref *at,
                               const uint8_t *bucket) {
    struct probing p = first_probe(t, at);
    if (is_saturated(bucket)) return true;
    do {
        const uint8_t *const line = p.lines + p.line * BUCKET_BYTES;
        const uint32_t want = at->want | tag_of(at, p.number) << t->width;
        bool found = false;
        for (uint32_t i = 0; i < SPILL_ENTRIES; i++) {
            const uint32_t entry = get_spill_word(line + 4 * i);
            found |= (entry != 0) & code_matches(entry, want, at->varies);
        }
        if (found) return true;
    } while (goes_on(&p) && next_probe(&p));
    return false;
}

struct spilled_entry {
    uint32_t *word; /* NULL: none */
    uint32_t probe, code;
};

/* The spilled entries of a bucket that match what is wanted. */
struct spill_scan {
    uint32_t entries; /* of the bucket, matching or not       */
    uint32_t classes; /* of these                             */
    uint32_t again;   /* classes of two entries or more       */
    uint32_t hits;
    struct copies copies; /* of hits */
    struct spilled_entry longest, any;
};
struct spill_scan scan_spilled(const struct bucket_table *t,
                               const struct bucket_ref *at);

/* False if there is no room as far as the entry may go. */
bool spill(const struct bucket_table *t, const struct bucket_ref *at,
           uint32_t code, enum spilling how);
/* Add a code to a full bucket: one of its entries is spilled, or the code. */
bool spill_from(struct bucket_table *t, const struct bucket_ref *at,
                uint32_t code);

/* Entries that additions may spill from one bucket. In a full table of distinct
 * keys one bucket in 10^10 spills as many as these: it does not grow early. */
static inline uint32_t spill_most(const struct bucket_table *t) {
    return t->adds == SPILL_NEAR ? SPILL_MOST / 4 * 3 : SPILL_MOST;
}

void drop_spilled(const struct bucket_table *t, const struct bucket_ref *at,
                  const struct spilled_entry *entry);
/* Copy the codes of the entries of a bucket, up to `most`, and let all entries
 * stay or go. Returns their number, which may be more. */
enum after_listing { SPILLED_STAY, SPILLED_GO };
uint32_t list_spilled(const struct bucket_table *t, const struct bucket_ref *at,
                      uint32_t *codes, uint32_t most, enum after_listing then);

/* Let a bucket answer "yes" for all keys. A saturated bucket counts
 * as an entry that went on from its first line, so that lookups do not end
 * there. The caller lets readers look again. */
void saturate_bucket(const struct bucket_table *t, const struct bucket_ref *at);
/* The bucket of this place has moved: its first line no longer counts it. */
void leave_saturated(const struct bucket_table *t, const struct bucket_ref *at);

#endif
