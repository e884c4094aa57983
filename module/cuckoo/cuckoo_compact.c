/*
 * Compaction: fingerprints move to older parts, so that the newest can be
 * dropped. In steps, as large filters have many; the order in which slots are
 * taken and places are looked for is RedisBloom's, so that the same bytes
 * result.
 */
#include <string.h>

#include "cuckoo/cuckoo.h"

bool cuckoo_wants_compaction(const struct cuckoo *c) {
    return c->parts > 1 && (double)c->deletes > (double)c->items * 0.10;
}

static void begin_part(struct cuckoo *c, uint32_t part) {
    c->compaction.part = part;
    c->compaction.at = 0;
    c->compaction.left = false;
    if (part == 0) c->deletes = 0;
}

void cuckoo_compact(struct cuckoo *c, bool whole) {
    c->compaction.whole = whole;
    begin_part(c, c->parts - 1);
}

static void end_part(struct cuckoo *c) {
    const uint32_t part = c->compaction.part;
    if (!c->compaction.left && part == c->parts - 1) {
        c->parts--;
        c->bytes -= cuckoo_part_bytes(c, &c->part[part]);
        c->arrived = c->bytes;
    }
    begin_part(c, c->compaction.left && !c->compaction.whole ? 0 : part - 1);
}

/* The bucket number serves as the hash: older parts have as many buckets, or a
 * power of two times less. */
static bool move_down(struct cuckoo *c, uint8_t *slot, uint64_t bucket,
                      uint64_t *lines) {
    const uint64_t other = cuckoo_other(*slot, bucket);
    for (uint32_t i = 0; i < c->compaction.part; i++) {
        uint8_t *const to = cuckoo_slot(c, &c->part[i], 0, bucket, other);
        *lines += 2;
        if (!to) continue;
        *to = *slot;
        *slot = 0;
        return true;
    }
    return false;
}

/* The next slot that is in use, from `at` on. */
static uint64_t next_used(const uint8_t *slots, uint64_t at, uint64_t end) {
    for (uint64_t word; end - at >= sizeof word; at += sizeof word) {
        memcpy(&word, slots + at, sizeof word);
        if (word) break;
    }
    while (at < end && !slots[at]) at++;
    return at;
}

/* A piece of the part, up to `end`, if that does not take too many lines; at
 * least one slot. */
static void compact_slots(struct cuckoo *c, uint64_t end, uint64_t most_lines,
                          uint64_t *lines) {
    uint8_t *const slots = c->part[c->compaction.part].slots;
    uint64_t at = next_used(slots, c->compaction.at, end);
    while (at < end && *lines < most_lines) {
        if (!move_down(c, slots + at, at / c->bucket_size, lines))
            c->compaction.left = true;
        at = next_used(slots, at + 1, end);
    }
    c->compaction.at = at;
}

uint64_t cuckoo_compact_step(struct cuckoo *c, uint64_t most_lines) {
    enum { LINE = 64 };
    uint64_t lines = 0;
    while (cuckoo_is_compacting(c) && lines < most_lines) {
        const uint64_t at = c->compaction.at;
        const uint64_t bytes =
            cuckoo_part_bytes(c, &c->part[c->compaction.part]);
        compact_slots(c, bytes - at < LINE ? bytes : at + LINE, most_lines,
                      &lines);
        lines++;
        if (c->compaction.at == bytes) end_part(c);
    }
    return lines;
}

void cuckoo_finish_compaction(struct cuckoo *c) {
    while (cuckoo_is_compacting(c)) cuckoo_compact_step(c, UINT64_MAX);
}
