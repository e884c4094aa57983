/*
 * Entries of one table for another: each as the beginning of a hash, which is
 * all that is known of its key.
 *
 * hash * G is the group at level 0, G in number, and a fraction within it. An
 * entry at level n, with a code of b bits, knows n + 2 + b bits of the
 * fraction: n that chose among the groups that this one has become, two by its
 * position, and the code. Where a table has the same G, these bits say where
 * the entry goes and what its code is there, at any stage; it goes to several
 * buckets, if its bits do not choose one.
 *
 * They do so, too, where both G are powers of two: then the number of the group
 * is the first bits of the hash. Tables with spare bits have such G.
 */
#include "bucket/bucket_entries.h"

_Static_assert(BUCKET_PREFIXES >= 4 * ENTRIES_MOST, "one for each quarter");

/* ---- Entries as prefixes ------------------------------------------------- */

/* The first bits of a fraction. */
static uint64_t first_bits(uint64_t fraction, uint32_t bits) {
    return bits == 0 ? 0 : fraction >> (64 - bits) << (64 - bits);
}

/* Bits of a prefix that choose the group at level 0, if G is a power of two.
 * If not, rounded down: only tables of the same G count them. */
static uint32_t group_bits(const struct bucket_table *t) {
    return 63 - (uint32_t)__builtin_clzll(t->groups);
}

/* Bits of the fraction that choose among the buckets of a group of 4. */
static uint32_t quarter_bits(const struct bucket_table *t) {
    return 2 - t->halvings;
}

static struct hash_prefix prefix_of(const struct bucket_table *t,
                                    uint64_t group, uint64_t fraction,
                                    uint32_t bits) {
    return (struct hash_prefix){
        .hash = unscale_whole((struct scaled){group, fraction}, t->groups),
        .bits = group_bits(t) + bits,
    };
}

/* Bits that a prefix knows of the fraction. */
static uint32_t known_bits(const struct bucket_table *t,
                           const struct hash_prefix *prefix) {
    return prefix->bits - group_bits(t);
}

static uint64_t fraction_of(const struct bucket_table *t,
                            const struct hash_prefix *prefix) {
    return first_bits(prefix->hash * t->groups, known_bits(t, prefix));
}

/* A bucket, where it is in its group. */
struct group_bucket {
    struct bucket_ref at;
    struct bucket_scale scale;
    uint64_t group;
    uint32_t position;
};

static struct group_bucket bucket_in_group(const struct bucket_table *t,
                                           uint64_t group, uint32_t position,
                                           struct bucket_scale scale) {
    struct group_bucket here = {
        .scale = scale, .group = group, .position = position};
    const uint64_t bucket = group * scale.positions + position;
    find_bucket(t, bucket / t->groups, bucket, &here.at);
    here.at.group = group;
    here.at.varies = varies_at(&scale);
    return here;
}

/* What a code in this bucket says, for each quarter of the fractions that it
 * may be in: one, unless it is short. */
static bool list_prefixes_of(const struct bucket_table *t,
                             const struct group_bucket *here, uint32_t code,
                             struct prefix_list *to) {
    const uint32_t level = here->scale.level;
    const struct fraction_range all =
        range_of_position(here->position, here->scale.positions);
    uint32_t bits = code, n = t->width;
    n = code_bits(code, t->width, level, &bits);
    if (level + n + 1 < t->width) return false; /* no key had so few */
    if (t->halvings) {
        const uint32_t known = quarter_bits(t) + n;
        const uint64_t all_bits = (uint64_t)here->position << n | bits;
        to->prefix[to->n++] = prefix_of(t, 0, all_bits << (64 - known), known);
        return true;
    }
    const uint64_t known = level ? here->group << (64 - level) : 0;
    for (uint64_t two = 0; two < 4; two++) {
        const uint64_t low = two << 62 | (uint64_t)bits << (62 - n);
        const uint64_t high = low + (UINT64_C(1) << (62 - n)) - 1;
        if (high < all.low || low > all.high) continue;
        to->prefix[to->n++] = prefix_of(t, here->group >> level,
                                        known | low >> level, level + 2 + n);
    }
    return true;
}

enum listing bucket_list(const struct bucket_table *t, uint64_t hash,
                         struct prefix_list *to, uint64_t *next) {
    const struct bucket_scale scale = scale_of(t, stage_of(t), hash);
    const uint64_t bucket = scale64(hash, scale.buckets);
    const struct group_bucket here =
        bucket_in_group(t, bucket / scale.positions,
                        (uint32_t)(bucket % scale.positions), scale);
    struct entries all;
    *next = bucket + 1 < scale.buckets
                ? lowest_scaled64(bucket + 1, scale.buckets)
                : 0;
    if (is_saturated(bucket_line(&here.at))) return BUCKET_SATURATED;
    if (!list_bucket(t, &here.at, &all, SPILLED_STAY)) return BUCKET_DAMAGED;
    for (uint32_t i = 0; i < all.n; i++)
        if (!list_prefixes_of(t, &here, all.code[i], to)) return BUCKET_DAMAGED;
    return BUCKET_LISTED;
}

/* ---- Prefixes as entries ------------------------------------------------- */

/* Its fractions in the group that it belongs to at this level. */
static struct fraction_range range_of_prefix(const struct bucket_table *t,
                                             const struct hash_prefix *prefix,
                                             uint32_t level) {
    const uint64_t low = fraction_of(t, prefix);
    const uint32_t known = known_bits(t, prefix);
    const uint64_t rest = known < 64 ? UINT64_MAX >> known : 0;
    return (struct fraction_range){
        .low = low << level,
        .high = (low | rest) << level | ((UINT64_C(1) << level) - 1),
    };
}

/* Does it have all bits of a new code? At level 0 a slot of 0 is stored as 1:
 * so one bit less will do for it. */
static bool has_all_bits(const struct bucket_table *t,
                         const struct hash_prefix *prefix, uint32_t level,
                         uint64_t low) {
    const uint32_t wanted = level + quarter_bits(t) + t->width - (level > 0);
    const uint32_t known = known_bits(t, prefix);
    const uint32_t code = (uint32_t)(low << quarter_bits(t) >> (64 - t->width));
    return known >= wanted || (known + 1 == wanted && level == 0 &&
                               (code & slot_mask(t->width)) == 0);
}

bool bucket_is_whole(const struct bucket_table *t,
                     const struct hash_prefix *prefix) {
    const struct bucket_scale scale = scale_of(t, t->stage, prefix->hash);
    const struct fraction_range range = range_of_prefix(t, prefix, scale.level);
    return has_all_bits(t, prefix, scale.level, range.low) &&
           scale64(range.low, scale.positions) ==
               scale64(range.high, scale.positions);
}

/* Does an entry stand for all keys of this code? */
static bool is_covered(const struct entries *by, uint32_t code,
                       uint32_t varies) {
    for (uint32_t i = 0; i < by->n; i++)
        if (code_matches(by->code[i], code, varies) &&
            !(varies && is_longer(by->code[i], code)))
            return true;
    return false;
}

/* Put it in place of a longer code, of the same key most likely, whose keys it
 * stands for. False if there is none. */
static bool replace_longer(struct bucket_table *t, const struct bucket_ref *at,
                           uint32_t code) {
    uint8_t *const line = bucket_line(at);
    const uint64_t used = used_slots(line, t->width);
    for (uint64_t left = used; left && at->varies; left &= left - 1) {
        const uint32_t slot = (uint32_t)__builtin_ctzll(left);
        const uint32_t other = get_code(line, slot, t->width);
        if (!is_longer(other, code) || !code_matches(code, other, at->varies))
            continue;
        begin_move(t, at->group);
        replace_code(line, t->width, used, slot, code);
        end_move(t, at->group);
        return true;
    }
    return false;
}

static enum insertion add_code(struct bucket_table *t,
                               const struct bucket_ref *at, uint32_t code) {
    const uint32_t slots = slots_of(t->width);
    struct entries all;
    if (is_saturated(bucket_line(at))) return KEY_AT_MOST;
    if (!list_bucket(t, at, &all, SPILLED_STAY)) return NO_ROOM;
    if (is_covered(&all, code, at->varies)) return KEY_AT_MOST;
    if (replace_longer(t, at, code)) return KEY_AT_MOST;
    const uint64_t used = used_slots(bucket_line(at), t->width);
    if (used != all_slots(t->width))
        put_code(bucket_line(at), t->width, used, code);
    else if (all.n >= slots + spill_most(t) || !spill_from(t, at, code))
        return NO_ROOM;
    return KEY_ADDED;
}

/* A code of a fraction, with as many bits as are known, up to the bits of a
 * new code. */
static uint32_t code_of_bits(uint64_t fraction, uint32_t known,
                             uint32_t width) {
    const uint32_t n = known < width - 1 ? known : width - 1;
    const uint32_t bits = (uint32_t)(fraction << 2 >> (64 - n));
    return (2 * bits + 1) << (width - 1 - n);
}

/* To each bucket that it may belong to. */
static enum insertion add_in_group(struct bucket_table *t,
                                   const struct hash_prefix *prefix,
                                   struct bucket_scale scale) {
    const struct fraction_range range = range_of_prefix(t, prefix, scale.level);
    const uint32_t code =
        scale.level == 0
            ? code_from(range.low << 2, t->width, 0)
            : code_of_bits(range.low, known_bits(t, prefix) - scale.level - 2,
                           t->width);
    const uint64_t group = scale64(prefix->hash, scale.groups);
    const uint64_t last = scale64(range.high, scale.positions);
    enum insertion became = KEY_AT_MOST;
    for (uint64_t c = scale64(range.low, scale.positions); c <= last; c++) {
        const struct group_bucket here =
            bucket_in_group(t, group, (uint32_t)c, scale);
        const enum insertion added = add_code(t, &here.at, code);
        if (added == NO_ROOM) return NO_ROOM;
        if (added == KEY_ADDED) became = KEY_ADDED;
    }
    return became;
}

enum insertion bucket_add_prefix(struct bucket_table *t,
                                 const struct hash_prefix *prefix) {
    const struct bucket_scale scale = scale_of(t, t->stage, prefix->hash);
    if (scale.level == 0 && !has_all_bits(t, prefix, 0, fraction_of(t, prefix)))
        return NO_ROOM;
    const uint32_t known = known_bits(t, prefix);
    if (known >= scale.level + 3) return add_in_group(t, prefix, scale);
    enum insertion became = KEY_AT_MOST;
    for (uint64_t bit = 0; bit < 2; bit++) {
        const struct hash_prefix half =
            prefix_of(t, scale64(prefix->hash, t->groups),
                      fraction_of(t, prefix) | bit << (63 - known), known + 1);
        const enum insertion added = bucket_add_prefix(t, &half);
        if (added == NO_ROOM) return NO_ROOM;
        if (added == KEY_ADDED) became = KEY_ADDED;
    }
    return became;
}

void bucket_saturate_prefix(struct bucket_table *t,
                            const struct hash_prefix *prefix) {
    const uint64_t group = scale64(prefix->hash, t->groups);
    const uint64_t fraction = fraction_of(t, prefix);
    uint64_t hash = prefix->hash;
    do hash = bucket_saturate(t, hash);
    while (hash != 0 && scale64(hash, t->groups) == group &&
           first_bits(hash * t->groups, known_bits(t, prefix)) == fraction);
}
