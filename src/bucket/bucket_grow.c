/*
 * A table grows: one group after the other goes from p positions to p + 1, or
 * from 7 positions to two groups of 4. bucket.c says what that means.
 *
 * What is stored of a key, its position and its code, is a range of
 * fractions. In the next stage the entry stands in each position
 * that this range touches: in two, if the border between them is within it.
 * That befalls one in 2^width new entries. The two are one entry again in the
 * stage after, else they would be 2^n after n levels: doubling f takes
 * multiples of a fifth to multiples of a fifth. If a key has been removed in
 * one of the two positions meanwhile, the other one stays: a false positive.
 * Keys that were added meanwhile have an entry in one position only; that two
 * of them are not taken for one is the care of add_at_border.
 *
 * A short code, of at most 2 bits, may belong to several ranges and stands in
 * all of them. It stands once in each bucket, whatever the number of its keys,
 * and is never removed.
 *
 * A move always succeeds. Where entries find no room, the codes with the most
 * copies are joined; a bucket that is too full even then is saturated, as are
 * both buckets that the keys of a saturated one go to. Each saturated bucket
 * answers "yes" for its share of all hashes from then on. Chosen keys bring a
 * bucket to that, and seven or more copies of many keys, in a table that is
 * still small; different keys with mixed hashes do not.
 */
#include <math.h>
#include <string.h>

#include "bucket/bucket_entries.h"

enum { TARGETS = 2 * POSITIONS };

/* Codes that stand in a position and in the next. */
enum { STRADDLERS_MOST = 64 };
struct straddlers {
    uint32_t n;
    uint32_t code[STRADDLERS_MOST];
};

/* A group on its way. */
struct move {
    struct bucket_table *t;
    struct bucket_scale from;
    struct bucket_ref at[TARGETS], to[TARGETS];
    struct entries before[TARGETS], after[TARGETS];
    bool has_permanent; /* a slot, in any of its buckets */
    uint32_t saturated; /* targets that are: a bit for each */
    struct straddlers straddlers, next_straddlers;
};

static const uint32_t ALL_TARGETS = (UINT32_C(1) << TARGETS) - 1;

static bool doubles(const struct move *m) {
    return m->from.positions + 1 == TARGETS;
}

/* ---- Codes --------------------------------------------------------------- */

/* A code of at least two bits, as it is once the first one chooses the group:
 * shorter by one. */
static uint32_t shorter_code(uint32_t code, uint32_t width, uint32_t level) {
    if (level > 0) return code << 1 & code_mask(width);
    uint32_t bits;
    const uint32_t left = code_bits(code, width, level, &bits) - 1;
    bits &= (UINT32_C(1) << left) - 1;
    return (bits << 1 | 1) << (width - 1 - left);
}

/* ---- Entries that are within one position -------------------------------- */

/*
 * The keys of position c go to c or c + 1: the border between these is within
 * it. Codes say where in a quarter of the fractions a key is, and a position is
 * at most a quarter wide: so the distance of a code from the beginning of the
 * position, modulo a quarter, says where in the position it is. Here a quarter
 * is 2^32.
 */
struct position_borders {
    uint32_t begin;
    uint64_t border, end; /* from the beginning on */
};

ALWAYS_INLINE struct position_borders borders_in(uint64_t c,
                                                 uint64_t positions) {
    const struct fraction_range here = range_of_position(c, positions);
    const uint64_t border = range_of_position(c, positions + 1).high + 1;
    return (struct position_borders){
        .begin = (uint32_t)(here.low << 2 >> 32),
        .border = (border - here.low) >> 30,
        .end = (here.high + 1 - here.low) >> 30,
    };
}

/* The same without divisions by a number that is not known before. */
static struct position_borders borders_of(uint64_t c, uint64_t positions) {
    return positions == 4   ? borders_in(c, 4)
           : positions == 5 ? borders_in(c, 5)
           : positions == 6 ? borders_in(c, 6)
                            : borders_in(c, 7);
}

/* Split the entries of a position. False if any is short, or touches a border,
 * so that it may be in two positions. At level 0 a code may stand for the bits
 * one below: so its range begins there. */
ALWAYS_INLINE bool split_position(struct move *m, uint32_t c, uint32_t level,
                                  bool shorten) {
    const uint32_t width = m->t->width;
    const struct position_borders at = borders_of(c, m->from.positions);
    const struct entries *const from = &m->before[c];
    struct entries *const stay = &m->after[c], *const go = &m->after[c + 1];
    uint32_t stays = stay->n, goes = 0;
    uint64_t bad = 0;
    if (stays + from->n > ENTRIES_MOST) return false;
    for (uint32_t i = 0; i < from->n; i++) {
        const uint32_t code = from->code[i];
        const uint32_t stop = level ? code & -code : 1;
        const uint64_t length = (uint64_t)stop << (33 - width);
        const uint32_t bits = level ? code ^ stop : code & ~UINT32_C(1);
        const uint32_t distance = (bits << (32 - width)) - at.begin;
        const bool is_beyond = distance >= at.border;
        const uint64_t end = is_beyond ? at.end : at.border;
        const uint32_t next = shorten ? shorter_code(code, width, level) : code;
        bad |= level ? stop >> (width - 2 - SHORT_BITS) : 0;
        bad |= distance + length > end;
        stay->code[stays] = next;
        go->code[goes] = next;
        stays += !is_beyond;
        goes += is_beyond;
    }
    stay->n = stays;
    go->n = goes;
    return !bad;
}

static bool split_group(struct move *m) {
    const uint32_t level = m->from.level;
    m->after[0].n = 0;
    for (uint32_t c = 0; c < m->from.positions; c++)
        if (!(level > 0 ? doubles(m) ? split_position(m, c, 1, true)
                                     : split_position(m, c, 1, false)
                        : split_position(m, c, 0, doubles(m))))
            return false;
    return true;
}

/* ---- Entries that may be in two ------------------------------------------ */

static bool append(struct entries *to, uint32_t code) {
    if (to->n == ENTRIES_MOST) return false;
    to->code[to->n++] = code;
    return true;
}

static bool append_once(struct entries *to, uint32_t code) {
    for (uint32_t i = 0; i < to->n; i++)
        if (to->code[i] == code) return true;
    return append(to, code);
}

/* A short code stands once in a bucket. One that has run out of bits stands for
 * both that have one. */
static bool append_short(const struct move *m, struct entries *to,
                         uint32_t code, uint32_t bits) {
    const uint32_t width = m->t->width, first = UINT32_C(1) << (width - 1);
    if (!doubles(m)) return append_once(to, code);
    if (bits > 1)
        return append_once(to, shorter_code(code, width, m->from.level));
    return append_once(to, first >> 1) && append_once(to, first | first >> 1);
}

/* An entry in two positions is one entry. Is this the second of two, the first
 * of which was found in the position before? Then they are a pair, and gone. */
static bool ends_pair(struct straddlers *s, uint32_t code) {
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->code[i] != code) continue;
        s->code[i] = s->code[--s->n];
        return true;
    }
    return false;
}

/* Put an entry into the positions that it belongs to in the next stage. */
static bool place_entry(struct move *m, uint32_t position, uint32_t code) {
    const uint64_t p = m->from.positions, next_p = p + 1;
    const struct fraction_range here = range_of_position(position, p);
    uint32_t bits;
    const uint32_t n = code_bits(code, m->t->width, m->from.level, &bits);
    const bool is_short = n <= SHORT_BITS;
    for (uint64_t two = 0; two < 4; two++) {
        const uint64_t low = two << 62 | (uint64_t)bits << (62 - n);
        const uint64_t high = low + (UINT64_C(1) << (62 - n)) - 1;
        if (high < here.low || low > here.high) continue;
        struct straddlers *const next = &m->next_straddlers;
        const bool paired =
            !is_short && low < here.low && ends_pair(&m->straddlers, code);
        if (!is_short && high > here.high && next->n < STRADDLERS_MOST)
            next->code[next->n++] = code;
        if (paired) continue;
        const uint64_t last = scale64(high, next_p);
        for (uint64_t c = scale64(low, next_p); c <= last; c++) {
            struct entries *const to = &m->after[c];
            const bool done =
                is_short ? append_short(m, to, code, n)
                : doubles(m)
                    ? append(to, shorter_code(code, m->t->width, m->from.level))
                    : append(to, code);
            if (!done) return false;
        }
    }
    return true;
}

static bool place_group(struct move *m) {
    for (uint32_t c = 0; c < TARGETS; c++) m->after[c].n = 0;
    m->next_straddlers.n = 0;
    for (uint32_t c = 0; c < m->from.positions; c++) {
        m->straddlers = m->next_straddlers;
        m->next_straddlers.n = 0;
        for (uint32_t i = 0; i < m->before[c].n; i++)
            if (!place_entry(m, c, m->before[c].code[i])) return false;
    }
    return true;
}

/* ---- A group ------------------------------------------------------------- */

bool list_bucket(const struct bucket_table *t, const struct bucket_ref *at,
                 struct entries *to, enum after_listing then) {
    const uint8_t *const line = bucket_line(at);
    take_line(line, t->width, to);
    if (!get_classes(line)) return true;
    to->n += list_spilled(t, at, to->code + to->n, ENTRIES_MOST - to->n, then);
    return to->n <= ENTRIES_MOST;
}

/* Take all entries out of the group. */
static void take_group(struct move *m) {
    for (uint32_t c = 0; c < m->from.positions; c++) {
        const struct bucket_ref *const at = &m->at[c];
        const uint8_t *const line = bucket_line(at);
        const bool saturated = is_saturated(line);
        m->has_permanent |= permanent_slots(line, m->t->width) != 0;
        if (saturated) leave_saturated(m->t, at);
        if (!list_bucket(m->t, at, &m->before[c], SPILLED_GO) || saturated) {
            m->before[c].n = 0;
            m->saturated |= UINT32_C(3) << c;
        }
    }
}

static uint32_t copies_among(const struct entries *all, uint32_t code) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < all->n; i++) n += all->code[i] == code;
    return n;
}

/* Let one entry, the first, stand for all copies of a code. */
static void join_copies(struct entries *all, uint32_t code) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < all->n; i++)
        if (all->code[i] != code) all->code[n++] = all->code[i];
    memmove(all->code + 1, all->code, n * sizeof *all->code);
    all->code[0] = code;
    all->n = n + 1;
}

/* Of each half, one code that has COPIES_MOST copies or more is joined and gets
 * the permanent slot: the first one that a line is filled with. Returns the
 * bits that say so. */
static uint32_t join_permanent(struct entries *all, uint32_t width) {
    uint32_t bits = 0;
    for (uint32_t i = 0; i < all->n; i++) {
        const uint32_t code = all->code[i];
        const uint32_t bit = permanent_bit(code, width);
        if (bits & bit || copies_among(all, code) < COPIES_MOST) continue;
        join_copies(all, code);
        bits |= bit;
    }
    return bits;
}

/* Of each half that has no permanent slot, the code with the most copies is
 * joined and gets one. Returns the bits for all permanent slots. */
static uint32_t join_most_copied(struct entries *all, uint32_t width,
                                 uint32_t permanent) {
    for (;;) {
        uint32_t most = 1, code = 0;
        for (uint32_t i = 0; i < all->n; i++) {
            if (permanent & permanent_bit(all->code[i], width)) continue;
            const uint32_t copies = copies_among(all, all->code[i]);
            if (copies <= most) continue;
            most = copies;
            code = all->code[i];
        }
        if (most == 1) return permanent;
        join_copies(all, code);
        permanent |= permanent_bit(code, width);
    }
}

/* Take those to the end that do not fit into a line, and will be spilled: of
 * the classes with the most entries, for the reason that bucket_spill.c gives.
 * Those before `first` stay. */
static void sort_by_class(struct entries *all, uint32_t first, uint32_t slots,
                          uint32_t width, uint32_t varies) {
    uint32_t count[CLASSES] = {0}, chosen = 0, found = 0, end = all->n;
    for (uint32_t i = first; i < all->n; i++)
        if (classes_of(all->code[i], width, varies) != ALL_CLASSES)
            count[class_of(all->code[i], width)]++;
    while (found < all->n - slots) {
        uint32_t best = 0;
        for (uint32_t i = 1; i < CLASSES; i++)
            if (count[i] > count[best]) best = i;
        if (count[best] == 0) break; /* the others have all classes */
        chosen |= UINT32_C(0x80) >> best;
        found += count[best];
        count[best] = 0;
    }
    for (uint32_t i = all->n; i-- > first && end > slots;) {
        const uint32_t code = all->code[i];
        if (classes_of(code, width, varies) & ~chosen) continue;
        all->code[i] = all->code[--end];
        all->code[end] = code;
    }
}

/* Put the entries of a bucket into its line, and spill the others. False if
 * there is no room for all of these. */
static bool fill_bucket(struct bucket_table *t, const struct bucket_ref *at,
                        struct entries *from, uint32_t permanent,
                        uint32_t varies) {
    const uint32_t width = t->width, slots = slots_of(width);
    const uint32_t here = from->n < slots ? from->n : slots;
    uint32_t classes = 0;
    bool has_room = true;
    _Alignas(8) uint8_t line[BUCKET_BYTES];
    if (here < from->n)
        sort_by_class(from, (uint32_t)__builtin_popcount(permanent), slots,
                      width, varies);
    if (width == WIDTH_GROWING)
        fill_halves(line, WIDTH_GROWING, from->code, here);
    else
        fill_halves(line, width, from->code, here);
    for (uint32_t i = here; i < from->n && has_room; i++) {
        has_room = spill(t, at, from->code[i], SPILL_FAR);
        classes |= classes_of(from->code[i], width, varies);
    }
    line[LOW_AT] |= (uint8_t)permanent;
    line[CLASSES_AT] = (uint8_t)classes;
    put_line(bucket_line(at), line);
    return has_room;
}

static void put_entries(struct bucket_table *t, const struct bucket_ref *at,
                        struct entries *from, uint32_t permanent,
                        uint32_t varies) {
    if (fill_bucket(t, at, from, permanent, varies)) return;
    list_spilled(t, at, NULL, 0, SPILLED_GO);
    const uint32_t joined = join_most_copied(from, t->width, permanent);
    if (joined == permanent || !fill_bucket(t, at, from, joined, varies))
        saturate_bucket(t, at);
}

static void put_group(struct move *m) {
    const uint32_t varies = m->from.level || doubles(m) ? UINT32_MAX : 0;
    for (uint32_t c = 0; c <= m->from.positions; c++) {
        struct entries *const all = &m->after[c];
        const bool saturated = m->saturated >> c & 1;
        if (saturated) all->n = 0;
        const uint32_t permanent =
            m->has_permanent ? join_permanent(all, m->t->width) : 0;
        put_entries(m->t, &m->to[c], all, permanent, varies);
        if (saturated) saturate_bucket(m->t, &m->to[c]);
    }
}

/* The last group that has not moved: so its lines in the next stage are new, or
 * were left by groups after it, or are its own. */
void bucket_move_group(struct bucket_table *t) {
    const uint64_t stage = t->stage, y = groups_left(t, stage) - 1;
    const uint32_t number = stage_number(stage);
    struct move m;
    m.t = t;
    m.from = scale_at(t, number);
    m.has_permanent = false;
    m.saturated = 0;
    const uint64_t first = y * m.from.positions, first_to = first + y;
    for (uint32_t c = 0; c < m.from.positions; c++) {
        find_bucket(t, (first + c) / t->groups, first + c, &m.at[c]);
        m.at[c].varies = varies_at(&m.from);
    }
    for (uint32_t c = 0; c <= m.from.positions; c++)
        find_bucket(t, (first_to + c) / t->groups, first_to + c, &m.to[c]);
    /* The group before will be moved soon. */
    if (m.at[0].index >= m.from.positions)
        for (uint32_t c = 1; c <= m.from.positions; c++)
            prefetch_l1(bucket_line(&m.at[0]) - c * BUCKET_BYTES);
    begin_move(t, y);
    take_group(&m);
    if (!split_group(&m) && !place_group(&m)) m.saturated = ALL_TARGETS;
    put_group(&m);
    __atomic_store_n(&t->stage,
                     y > 0 ? stage + 1 : (uint64_t)(number + 1) << 56,
                     __ATOMIC_RELEASE);
    end_move(t, y);
}

/* ---- Permanent codes ----------------------------------------------------- */

/* In place of the entries that match, COPIES_MOST of the shortest. False if
 * none has a bit, as in a forged file, or there are too many others. */
static bool shorten_matching(struct entries *all, const struct bucket_ref *at) {
    uint32_t n = 0, shortest = 0;
    for (uint32_t i = 0; i < all->n; i++) {
        const uint32_t code = all->code[i];
        if (!code_matches(code, at->want, at->varies))
            all->code[n++] = code;
        else if (!shortest || is_longer(shortest, code))
            shortest = code;
    }
    if (!shortest || n > ENTRIES_MOST - COPIES_MOST) return false;
    for (uint32_t i = 0; i < COPIES_MOST; i++) all->code[n++] = shortest;
    all->n = n;
    return true;
}

/* The shortest matches whoever matched another one. So no key is lost, and the
 * rate is the same. The bucket has no more entries than before, so these find
 * room where those were. */
bool bucket_make_permanent(struct bucket_table *t,
                           const struct bucket_ref *at) {
    struct entries all;
    if (!list_bucket(t, at, &all, SPILLED_STAY) || !shorten_matching(&all, at))
        return false;
    const uint32_t permanent = join_permanent(&all, t->width);
    begin_move(t, at->group);
    list_spilled(t, at, NULL, 0, SPILLED_GO);
    put_entries(t, at, &all, permanent, at->varies);
    end_move(t, at->group);
    return true;
}

/* Of a key in the bucket, that is: any bits that a code matches will do. */
bool bucket_relieve(struct bucket_table *t, uint64_t hash) {
    struct bucket_ref at = locate(t, scale_of(t, t->stage, hash), hash);
    struct entries all;
    uint32_t most = 1;
    take_slots(bucket_line(&at), t->width, &all);
    for (uint32_t i = 0; i < all.n; i++) {
        const uint32_t copies = copies_among(&all, all.code[i]);
        if (copies <= most ||
            has_permanent(bucket_line(&at), t->width, all.code[i]))
            continue;
        most = copies;
        at.want = all.code[i];
    }
    return most > 1 && bucket_make_permanent(t, &at);
}

/* ---- Saturated buckets ----------------------------------------------------
 */

uint64_t bucket_saturate(struct bucket_table *t, uint64_t hash) {
    const struct bucket_scale scale = scale_of(t, t->stage, hash);
    const struct bucket_ref at = locate(t, scale, hash);
    const uint64_t bucket = scale64(hash, scale.buckets);
    begin_move(t, at.group);
    saturate_bucket(t, &at);
    end_move(t, at.group);
    return bucket + 1 < scale.buckets
               ? lowest_scaled64(bucket + 1, scale.buckets)
               : 0;
}

void bucket_saturate_range(struct bucket_table *t, uint64_t low,
                           uint64_t high) {
    do low = bucket_saturate(t, low);
    while (low != 0 && low <= high);
}

/* ---- Sums ---------------------------------------------------------------- */

static void sum_code(const struct bucket_table *t, uint32_t level,
                     uint32_t code, struct bucket_sums *sums) {
    uint32_t bits;
    const uint32_t n = code_bits(code, t->width, level, &bits);
    sums->entries++;
    sums->rate +=
        ldexp(1. / (double)(t->groups << level), -(int)(n + 2 - t->halvings));
}

/* The codes in the buckets from `begin` to `end`, at this stage. */
static void sum_buckets(const struct bucket_table *t, uint32_t number,
                        uint64_t begin, uint64_t end,
                        struct bucket_sums *sums) {
    for (uint64_t i = begin; i < end; i++) {
        uint8_t line[BUCKET_BYTES];
        copy_line(line, line_at(t, i / t->groups, i));
        sums->saturated += is_saturated(line);
        for (uint64_t used = used_slots(line, t->width); used;
             used &= used - 1) {
            const uint32_t slot = (uint32_t)__builtin_ctzll(used);
            sum_code(t, number / POSITIONS, get_code(line, slot, t->width),
                     sums);
        }
    }
}

static void sum_spilled(const struct bucket_table *t, uint32_t segment,
                        struct bucket_sums *sums) {
    const uint32_t level = stage_number(stage_of(t)) / POSITIONS;
    const uint64_t blocks = segment_blocks(t, segment);
    const uint64_t unit = segment_begin(segment);
    const uint8_t *const lines =
        segment_lines(t, segment, line_at(t, unit, unit * t->groups));
    const uint64_t words = spill_lines(blocks) * (SPILL_ENTRIES + 1);
    for (uint64_t i = 0; i < words; i++) {
        const uint32_t entry = get_spill_word(lines + 4 * i);
        if (i % (SPILL_ENTRIES + 1) < SPILL_ENTRIES && entry != 0)
            sum_code(t, level, entry & code_mask(t->width), sums);
    }
}

struct bucket_sums bucket_sum(const struct bucket_table *t, uint32_t segments) {
    struct bucket_sums sums = {0};
    const uint64_t stage = stage_of(t);
    const uint32_t number = stage_number(stage);
    const uint64_t left = groups_left(t, stage);
    const struct bucket_scale here = scale_at(t, number);
    sum_buckets(t, number, 0, left * here.positions >> t->halvings, &sums);
    sum_buckets(t, number + 1, left * (here.positions + 1),
                here.groups * (here.positions + 1), &sums);
    for (uint32_t s = 0; s < segments; s++) sum_spilled(t, s, &sums);
    const double share = fmin(1, (double)sums.saturated / (double)here.buckets);
    sums.rate = share - (1 - share) * expm1(-sums.rate);
    return sums;
}
