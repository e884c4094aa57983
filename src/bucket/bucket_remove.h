/*
 * Removal from the bucket kind, and the count of a key. Short and permanent
 * entries and saturated buckets stay: they stand for more keys than one.
 */
#ifndef CALYX_BUCKET_REMOVE_H
#define CALYX_BUCKET_REMOVE_H

#include "bucket/bucket_add.h"

/* Take a slot. If the bucket was full, an entry that it spilled comes back. */
ALWAYS_INLINE void empty_slot(const struct bucket_table *t,
                              const struct bucket_ref *at, uint32_t width,
                              uint32_t i, uint64_t used,
                              const struct spilled_entry *back) {
    uint8_t *const line = bucket_line(at);
    if (!back->word) {
        take_code(line, width, used, i);
        return;
    }
    replace_code(line, width, used, i, back->code);
    drop_spilled(t, at, back);
}

/* Of these slots, the one with the longest code. */
ALWAYS_INLINE uint32_t longest_of(const uint8_t *line, uint32_t width,
                                  uint64_t hits) {
    uint32_t longest = 0, slot = 0;
    for (; hits; hits &= hits - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(hits);
        const uint32_t code = get_code(line, i, width);
        if (!longest || is_longer(code, longest)) longest = code, slot = i;
    }
    return slot;
}

/* Do COPIES_MOST entries have this code? */
ALWAYS_INLINE bool has_most_copies(const uint8_t *line, uint32_t width,
                                   uint32_t varies, uint64_t hits,
                                   struct spill_scan *there, uint32_t code) {
    uint32_t n = (uint32_t)__builtin_popcountll(hits) + there->hits;
    if (__builtin_expect(n < COPIES_MOST, true)) return false;
    n = there->hits ? *copies_of(&there->copies, code, varies) : 0;
    for (; hits; hits &= hits - 1)
        n += get_code(line, (uint32_t)__builtin_ctzll(hits), width) == code;
    return n >= COPIES_MOST;
}

/*
 * Of the entries that match, the longest leaves. All entries that match a hash
 * have a beginning of the same bits, so whoever matched the longest matches the
 * others, too: every key that stays still has an entry of its own.
 */
ALWAYS_INLINE enum removal remove_from_table(struct bucket_table *t,
                                             uint64_t hash, uint32_t width,
                                             struct bucket_steps steps) {
    const struct bucket_scale scale = scale_of(t, t->stage, hash);
    const struct bucket_ref at = locate(t, scale, hash);
    uint8_t *const line = bucket_line(&at);
    if (is_saturated(line)) return KEY_STUCK;
    const struct bucket_scan here =
        scan_bucket(line, width, at.want, at.varies, steps.scans);
    struct spill_scan there;
    there.hits = 0;
    there.longest.word = there.any.word = NULL;
    if (get_classes(line)) there = scan_spilled(t, &at);
    if (!here.hits && !there.longest.word) return KEY_ABSENT;
    const uint32_t slot = longest_of(line, width, here.hits);
    const uint32_t longest = get_code(line, slot, width);
    const bool spilled = there.longest.word &&
                         (!here.hits || is_longer(there.longest.code, longest));
    const uint32_t code = spilled ? there.longest.code : longest;
    if (has_most_copies(line, width, at.varies, here.hits, &there, code) ||
        is_short(code, width, at.varies) ||
        (!spilled && permanent_slots(line, width) >> slot & 1))
        return KEY_STUCK;
    begin_move(t, at.group);
    if (spilled)
        drop_spilled(t, &at, &there.longest);
    else
        empty_slot(t, &at, width, slot, here.used, &there.any);
    if (there.any.word) {
        const uint32_t left = spilled ? code : there.any.code;
        const uint32_t gone = classes_of(left, width, at.varies) & ~there.again;
        put_classes(line, there.classes & ~gone);
    }
    end_move(t, at.group);
    return KEY_REMOVED;
}

ALWAYS_INLINE uint32_t count_in_table(const struct bucket_table *t,
                                      uint64_t hash, struct bucket_steps steps,
                                      table_lookup *has) {
    if (!has(t, hash)) return 0;
    const struct bucket_ref at =
        locate(t, scale_of(t, stage_of(t), hash), hash);
    struct line_copy copy = {{0}};
    copy_line(copy.bytes, bucket_line(&at));
    if (is_saturated(copy.bytes)) return COPIES_MOST;
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
