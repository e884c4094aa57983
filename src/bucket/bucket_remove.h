/*
 * Removal from the bucket kind, and the count of a key. Short and permanent
 * entries and saturated buckets stay: they stand for more keys than one.
 */
#ifndef CALYX_BUCKET_REMOVE_H
#define CALYX_BUCKET_REMOVE_H

#include "bucket/bucket_add.h"

/* Take a slot. If the bucket was full, an entry that it spilled comes back. */
static inline void empty_slot(const struct bucket_table *t,
                              const struct bucket_place *at, uint32_t i,
                              uint64_t used, const struct spill_scan *there) {
    uint8_t *const line = bucket_line(at);
    take_code(line, t->width, used, i);
    if (!there->any.word) return;
    put_code(line, t->width, used_slots(line, t->width), there->any.code);
    drop_spilled(t, at, &there->any);
}

/*
 * Of the entries that match, the longest leaves. All entries that match a hash
 * have a beginning of the same bits, so whoever matched the longest matches the
 * others, too: every key that stays still has an entry of its own.
 */
ALWAYS_INLINE enum removal remove_from_table(struct bucket_table *t,
                                             uint64_t hash,
                                             struct bucket_steps steps) {
    const struct bucket_scale scale = scale_of(t, t->stage, hash);
    const struct bucket_place at = place_of(t, scale, hash);
    uint8_t *const line = bucket_line(&at);
    if (is_saturated(line, t->width)) return KEY_STUCK;
    const struct bucket_scan here =
        scan_bucket(line, t->width, at.want, at.varies, steps.scans);
    struct spill_scan there = get_classes(line, t->width)
                                  ? scan_spilled(t, &at)
                                  : (struct spill_scan){0};
    uint32_t longest = 0, slot = 0;
    for (uint64_t hits = here.hits; hits; hits &= hits - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(hits);
        const uint32_t code = get_code(line, i, t->width);
        if (!longest || is_longer(code, longest)) longest = code, slot = i;
    }
    if (!here.hits && !there.longest.word) return KEY_ABSENT;
    const bool spilled = there.longest.word &&
                         (!here.hits || is_longer(there.longest.code, longest));
    const uint32_t code = spilled ? there.longest.code : longest;
    count_slots(line, t->width, at.varies, here.hits, &there.copies);
    if (*copies_of(&there.copies, code, at.varies) >= COPIES_MOST ||
        is_short(code, t->width, at.varies) ||
        (!spilled && permanent_slots(line, t->width) >> slot & 1))
        return KEY_STUCK;
    begin_move(t, scale64(hash, scale.groups));
    if (spilled)
        drop_spilled(t, &at, &there.longest);
    else
        empty_slot(t, &at, slot, here.used, &there);
    if (there.any.word)
        put_classes(line, t->width, scan_spilled(t, &at).classes);
    end_move(t, scale64(hash, scale.groups));
    return KEY_REMOVED;
}

ALWAYS_INLINE uint32_t count_in_table(const struct bucket_table *t,
                                      uint64_t hash, struct bucket_steps steps,
                                      table_lookup *has) {
    if (!has(t, hash)) return 0;
    const struct bucket_place at =
        place_of(t, scale_of(t, stage_of(t), hash), hash);
    struct line_copy copy = {{0}};
    copy_line(copy.bytes, bucket_line(&at));
    if (is_saturated(copy.bytes, t->width)) return COPIES_MOST;
    const struct bucket_scan here =
        scan_bucket(copy.bytes, t->width, at.want, at.varies, steps.scans);
    if (here.hits & permanent_slots(copy.bytes, t->width)) return COPIES_MOST;
    struct spill_scan there = may_be_spilled(copy.bytes, t->width, at.want)
                                  ? scan_spilled(t, &at)
                                  : (struct spill_scan){0};
    count_slots(copy.bytes, t->width, at.varies, here.hits, &there.copies);
    /* A short code stands once, however often its keys were added. */
    if (any_stays(&there.copies, t->width, at.varies)) return COPIES_MOST;
    const uint32_t n = (uint32_t)__builtin_popcountll(here.hits) + there.hits;
    if (n == 0) return 1; /* it was moved, or removed, meanwhile */
    return n < COPIES_MOST ? n : COPIES_MOST;
}

#endif
