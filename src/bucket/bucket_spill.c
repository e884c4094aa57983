/*
 * Entries that found their bucket full: spilled, to a line that 16 buckets
 * share, behind the buckets of a segment.
 *
 *     [ bucket 0 | bucket 1 | ... | line 0 | line 1 | ... ]
 *
 * A line has 15 entries of 32 bits: the code, then 4 bits that say which of the
 * 16 buckets it belongs to, then the number of the probe that found room; in
 * runs, where a code may be 0, the highest bit is 1. Probe
 * n of a bucket goes to line index / 16 + n (n + 1) / 2, around the end, and
 * from the 32nd on to the next line: jumps find one line in four, if their
 * number is a multiple of 45. It goes to line index / 16 + n if there are 32
 * lines or less, so that it finds all. The
 * last word of a line is the number of entries that found it full and went on;
 * where it is 0, a lookup ends.
 *
 * At 87 % of all slots, 2 % of the entries are spilled, and a tenth of these
 * went on; one in 10^6 needs more than 8 probes.
 */
#include "bucket/bucket_spill.h"

static uint32_t *word_of(const struct probing *p, uint32_t i) {
    return (uint32_t *)(p->lines + p->line * BUCKET_BYTES) + i;
}

static void put_word(uint32_t *word, uint32_t value) {
    __atomic_store_n(word, little32(value), __ATOMIC_RELEASE);
}

/* Count an entry that goes on over the lines before probe `end`, or no longer
 * does. */
static void change_passing(const struct bucket_table *t,
                           const struct bucket_place *at, uint32_t end,
                           int change) {
    struct probing p = first_probe(t, at);
    for (uint32_t i = 0; i < end; i++) {
        uint32_t *const passing = word_of(&p, SPILL_ENTRIES);
        put_word(passing, get_spill_word(passing) + (uint32_t)change);
        next_probe(&p);
    }
}

struct spill_scan scan_spilled(const struct bucket_table *t,
                               const struct bucket_place *at) {
    struct spill_scan scan = {0};
    struct probing p = first_probe(t, at);
    do {
        const uint32_t tag = tag_of(t->width, at, p.number);
        for (uint32_t i = 0; i < SPILL_ENTRIES; i++) {
            const uint32_t entry = get_spill_word(word_of(&p, i));
            const uint32_t code = entry & code_mask(t->width);
            if (entry == 0 || entry >> t->width != tag) continue;
            const struct spilled_entry here = {word_of(&p, i), p.number, code};
            scan.entries++;
            scan.classes |= classes_of(code, t->width, at->varies);
            scan.any = here;
            if (!code_matches(code, at->want, at->varies)) continue;
            scan.hits++;
            count_copy(&scan.copies, code, at->varies);
            if (!scan.longest.word || is_longer(code, scan.longest.code))
                scan.longest = here;
        }
    } while (goes_on(&p) && next_probe(&p));
    return scan;
}

static uint32_t lesser(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* Probes for an entry that is added. Of few lines, additions leave some. */
static uint32_t add_probes(enum spilling how, const struct probing *p) {
    enum { FAR = 32 };
    if (how == SPILL_FAR) return p->most;
    if (p->most < p->count)
        return how == SPILL_HALF ? lesser(p->most / 2, 2 * FAR)
                                 : lesser(p->most / 4, FAR);
    const uint32_t left = (1 + p->most / 8) * (how == SPILL_HALF ? 1 : 2);
    return p->most > left ? p->most - left : 1;
}

/* The lines before are counted first: no lookup may end before the entry. */
bool spill(const struct bucket_table *t, const struct bucket_place *at,
           uint32_t code, enum spilling how) {
    struct probing p = first_probe(t, at);
    p.most = add_probes(how, &p);
    do {
        const uint32_t entry = code | tag_of(t->width, at, p.number)
                                          << t->width;
        for (uint32_t i = 0; i < SPILL_ENTRIES; i++) {
            if (get_spill_word(word_of(&p, i)) != 0) continue;
            change_passing(t, at, p.number, 1);
            put_word(word_of(&p, i), entry);
            return true;
        }
    } while (next_probe(&p));
    return false;
}

/* Would no more lookups go on than now, if a code were spilled from a bucket
 * with these classes? */
static bool is_among(uint32_t classes, uint32_t code, uint32_t width,
                     uint32_t varies) {
    return (classes_of(code, width, varies) & ~classes) == 0;
}

/*
 * The slot of a full bucket whose entry is spilled to make room for a new code;
 * the number of slots if the new code is. Lookups go on to spilled entries by
 * class, so they shall be of few classes: of one that was spilled before, else
 * of the one with the most entries. In a full table 3 % of all lookups go on; 8
 * % if new codes were spilled.
 */
static uint32_t slot_to_spill(const uint8_t *line, uint32_t code,
                              uint32_t width, uint32_t varies) {
    const uint32_t classes = get_classes(line, width), slots = slots_of(width);
    const uint32_t own = class_of(code, width);
    const uint64_t permanent = permanent_slots(line, width);
    const bool has_one = is_among(class_bit(code, width), code, width, varies);
    uint32_t count[CLASSES] = {0}, slot[CLASSES], best = own;
    if (is_among(classes, code, width, varies)) return slots;
    count[own] = has_one;
    slot[own] = slots;
    for (uint32_t i = 0; i < slots; i++) {
        const uint32_t other = get_code(line, i, width);
        const uint32_t number = class_of(other, width);
        if (permanent >> i & 1) continue;
        if (is_among(classes, other, width, varies)) return i;
        if (!is_among(class_bit(other, width), other, width, varies)) continue;
        if (number != own || !has_one) slot[number] = i;
        if (++count[number] > count[best]) best = number;
    }
    return slot[best];
}

bool spill_from(struct bucket_table *t, const struct bucket_place *at,
                uint32_t code) {
    uint8_t *const line = bucket_line(at);
    const uint32_t width = t->width, slots = slots_of(width);
    const uint32_t slot =
        has_runs(width) ? slots : slot_to_spill(line, code, width, at->varies);
    const uint32_t leaves = slot < slots ? get_code(line, slot, width) : code;
    if (!spill(t, at, leaves, t->adds)) return false;
    put_classes(line, width,
                get_classes(line, width) |
                    classes_of(leaves, width, at->varies));
    if (slot == slots) return true;
    begin_move(t, at->group);
    take_code(line, width, all_slots(width), slot);
    put_code(line, width, used_slots(line, width), code);
    end_move(t, at->group);
    return true;
}

void drop_spilled(const struct bucket_table *t, const struct bucket_place *at,
                  const struct spilled_entry *entry) {
    put_word(entry->word, 0);
    change_passing(t, at, entry->probe, -1);
}

uint32_t list_spilled(const struct bucket_table *t,
                      const struct bucket_place *at, uint32_t *codes,
                      uint32_t most, enum after_listing then) {
    struct probing p = first_probe(t, at);
    uint32_t n = 0;
    do {
        const uint32_t tag = tag_of(t->width, at, p.number);
        for (uint32_t i = 0; i < SPILL_ENTRIES; i++) {
            const uint32_t entry = get_spill_word(word_of(&p, i));
            const uint32_t code = entry & code_mask(t->width);
            if (entry == 0 || entry >> t->width != tag) continue;
            if (n < most) codes[n] = code;
            n++;
            if (then == SPILLED_GO)
                drop_spilled(
                    t, at,
                    &(struct spilled_entry){word_of(&p, i), p.number, code});
        }
    } while (goes_on(&p) && next_probe(&p));
    return n;
}

void saturate_bucket(const struct bucket_table *t,
                     const struct bucket_place *at) {
    _Alignas(8) uint8_t line[BUCKET_BYTES] = {0};
    if (is_saturated(bucket_line(at), t->width)) return;
    list_spilled(t, at, NULL, 0, SPILLED_GO);
    change_passing(t, at, 1, 1);
    store16(line + LOW_AT, 0xFFFF);
    put_line(bucket_line(at), line);
}

void leave_saturated(const struct bucket_table *t,
                     const struct bucket_place *at) {
    change_passing(t, at, 1, -1);
}
