/*
 * Entries that found their bucket full: spilled, to a line that 16 buckets
 * share, after the buckets of a segment.
 *
 *     [ bucket 0 | bucket 1 | ... | line 0 | line 1 | ... ]
 *
 * A line has 15 entries of 32 bits: the code, then 4 bits that say which of the
 * 16 buckets it belongs to, then the number of the probe that found room. Probe
 * n of a bucket goes to line index / 16 + n (n + 1) / 2, around the end, and
 * from the 32nd on to the next line: jumps find one line in four, if their
 * number is a multiple of 45. It goes to line index / 16 + n if there are 32
 * lines or less, so that it finds all. The last word of a line is the number of
 * entries that found it full and went on; where it is 0, a lookup ends.
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
                           const struct bucket_ref *at, uint32_t end,
                           int change) {
    struct probing p = first_probe(t, at);
    for (uint32_t i = 0; i < end; i++) {
        uint32_t *const passing = word_of(&p, SPILL_ENTRIES);
        put_word(passing, get_spill_word(passing) + (uint32_t)change);
        next_probe(&p);
    }
}

/* Entries of the bucket in the line of a probe: a bit for each. No branch, as
 * which entries match could not be foreseen. */
static uint32_t entries_in(const struct bucket_table *t,
                           const struct bucket_ref *at,
                           const struct probing *p) {
    const uint32_t tag = tag_of(at, p->number);
    uint32_t entries = 0;
    for (uint32_t i = 0; i < SPILL_ENTRIES; i++) {
        const uint32_t entry = get_spill_word(word_of(p, i));
        entries |= (uint32_t)((entry != 0) & (entry >> t->width == tag)) << i;
    }
    return entries;
}

static struct spilled_entry entry_at(const struct bucket_table *t,
                                     const struct probing *p, uint32_t i) {
    uint32_t *const word = word_of(p, i);
    return (struct spilled_entry){
        .word = word,
        .probe = p->number,
        .code = get_spill_word(word) & code_mask(t->width),
    };
}

struct spill_scan scan_spilled(const struct bucket_table *t,
                               const struct bucket_ref *at) {
    struct spill_scan scan = {0};
    struct probing p = first_probe(t, at);
    do {
        uint32_t left = entries_in(t, at, &p);
        for (; left; left &= left - 1) {
            const struct spilled_entry here =
                entry_at(t, &p, (uint32_t)__builtin_ctz(left));
            const uint32_t code = here.code;
            scan.entries++;
            const uint32_t classes = classes_of(code, t->width, at->varies);
            scan.again |= scan.classes & classes;
            scan.classes |= classes;
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
bool spill(const struct bucket_table *t, const struct bucket_ref *at,
           uint32_t code, enum spilling how) {
    struct probing p = first_probe(t, at);
    p.most = add_probes(how, &p);
    do {
        const uint32_t entry = code | tag_of(at, p.number) << t->width;
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
    const uint32_t slots = slots_of(width), own = class_of(code, width);
    const uint64_t may_go = all_slots(width) & ~permanent_slots(line, width);
    const uint32_t classes = get_classes(line);
    const bool has_one = is_among(class_bit(code, width), code, width, varies);
    uint64_t counts = (uint64_t)has_one << 8 * own; /* a byte for each class */
    uint64_t most = has_one;
    uint32_t best = own, slot[CLASSES];
    if (is_among(classes, code, width, varies)) return slots;
    for (uint32_t i = 0; classes && i < slots; i++)
        if (may_go >> i & 1 &&
            is_among(classes, get_slot(line, i, width), width, varies))
            return i;
    for (uint32_t i = 0; i < slots; i++) {
        const uint32_t other = get_slot(line, i, width);
        const uint32_t number = class_of(other, width);
        const uint64_t one =
            may_go >> i & (classes_of(other, width, varies) != ALL_CLASSES);
        counts += one << 8 * number;
        if (one) slot[number] = i;
        const uint64_t n = counts >> 8 * number & 0xFF;
        best = n > most ? number : best;
        most = n > most ? n : most;
    }
    return most == 0 || (best == own && has_one) ? slots : slot[best];
}

bool spill_from(struct bucket_table *t, const struct bucket_ref *at,
                uint32_t code) {
    uint8_t *const line = bucket_line(at);
    const uint32_t width = t->width, slots = slots_of(width);
    const uint32_t slot = slot_to_spill(line, code, width, at->varies);
    const uint32_t leaves = slot < slots ? get_code(line, slot, width) : code;
    if (!spill(t, at, leaves, t->adds)) return false;
    put_classes(line,
                get_classes(line) | classes_of(leaves, width, at->varies));
    if (slot == slots) return true;
    begin_move(t, at->group);
    replace_code(line, width, all_slots(width), slot, code);
    end_move(t, at->group);
    return true;
}

void drop_spilled(const struct bucket_table *t, const struct bucket_ref *at,
                  const struct spilled_entry *entry) {
    put_word(entry->word, 0);
    change_passing(t, at, entry->probe, -1);
}

uint32_t list_spilled(const struct bucket_table *t, const struct bucket_ref *at,
                      uint32_t *codes, uint32_t most, enum after_listing then) {
    struct probing p = first_probe(t, at);
    uint32_t n = 0;
    do {
        uint32_t left = entries_in(t, at, &p);
        for (; left; left &= left - 1) {
            const struct spilled_entry here =
                entry_at(t, &p, (uint32_t)__builtin_ctz(left));
            if (n < most) codes[n] = here.code;
            n++;
            if (then == SPILLED_GO) drop_spilled(t, at, &here);
        }
    } while (goes_on(&p) && next_probe(&p));
    return n;
}

void saturate_bucket(const struct bucket_table *t,
                     const struct bucket_ref *at) {
    _Alignas(8) uint8_t line[BUCKET_BYTES] = {0};
    if (is_saturated(bucket_line(at))) return;
    list_spilled(t, at, NULL, 0, SPILLED_GO);
    change_passing(t, at, 1, 1);
    store16(line + LOW_AT, 0xFFFF);
    put_line(bucket_line(at), line);
}

void leave_saturated(const struct bucket_table *t,
                     const struct bucket_ref *at) {
    change_passing(t, at, 1, -1);
}
