/*
 * A table grows: one group after the other goes from p positions to p + 1, or
 * from 7 positions to two groups of 4. bucket.c says what that means.
 *
 * What is stored of a key, its position and its code, is a range of the first
 * 32 bits of its fraction. In the next stage the entry stands in each position
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
 */
#include <math.h>
#include <string.h>

#include "bucket/bucket_spill.h"

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
    struct bucket_address from; /* y, level, positions */
    uint32_t entries;           /* taken so far, with where they go */
    uint32_t code[ENTRIES_MOST];
    uint8_t to[ENTRIES_MOST];
    struct straddlers before, after;
    struct spill_log log;
    uint8_t lines[TARGETS][BUCKET_BYTES]; /* as they were */
};

/* Number of bits of a code, and these bits as a number. */
static uint32_t code_bits(uint32_t code, uint32_t width, uint32_t level,
                          uint32_t *bits) {
    if (level > 0) {
        const uint32_t stop = (uint32_t)__builtin_ctz(code);
        *bits = code >> stop >> 1;
        return width - 1 - stop;
    }
    if (code > 1) {
        *bits = code;
        return width;
    }
    *bits = 0; /* was 0 or 1 */
    return width - 1;
}

/* A code, as it is once the first bit chooses the group: shorter by one. */
static uint32_t shorter_code(uint32_t code, uint32_t width, uint32_t level) {
    if (level > 0) {
        const uint32_t shorter = code << 1 & code_mask(width);
        return shorter ? shorter : code;
    }
    uint32_t bits;
    const uint32_t left = code_bits(code, width, level, &bits) - 1;
    bits &= (UINT32_C(1) << left) - 1;
    return (bits << 1 | 1) << (width - 1 - left);
}

/* The first 32 bits of a fraction, from `low` to `high`. */
struct fraction_range {
    uint64_t low, high;
};

static struct fraction_range range_of_position(uint64_t c, uint64_t positions) {
    return (struct fraction_range){
        .low = ((c << 32) + positions - 1) / positions,
        .high = (((c + 1) << 32) + positions - 1) / positions - 1,
    };
}

static bool put_code(struct move *m, uint64_t position, uint32_t code) {
    if (m->entries == ENTRIES_MOST) return false;
    m->to[m->entries] = (uint8_t)position;
    m->code[m->entries++] = code;
    return true;
}

static bool is_there(const struct move *m, uint64_t position, uint32_t code) {
    for (uint32_t i = 0; i < m->entries; i++)
        if (m->to[i] == position && m->code[i] == code) return true;
    return false;
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
    const uint32_t next = next_p == TARGETS
                              ? shorter_code(code, m->t->width, m->from.level)
                              : code;
    for (uint64_t two = 0; two < 4; two++) {
        const uint64_t low = two << 30 | (uint64_t)bits << (30 - n);
        const uint64_t high = low + (UINT64_C(1) << (30 - n)) - 1;
        if (high < here.low || low > here.high) continue;
        const bool paired =
            !is_short && low < here.low && ends_pair(&m->before, code);
        if (!is_short && high > here.high && m->after.n < STRADDLERS_MOST)
            m->after.code[m->after.n++] = code;
        if (paired) continue;
        for (uint64_t c = low * next_p >> 32; c <= high * next_p >> 32; c++) {
            if (is_short && is_there(m, c, next)) continue;
            if (!put_code(m, c, next)) return false;
        }
    }
    return true;
}

static struct bucket_place bucket_at(const struct move *m, uint32_t position) {
    struct bucket_place at = {0};
    find_bucket(m->t, m->from.level, m->from.y, position, &at);
    return at;
}

/* Take all entries out of the group, into the lists of the next stage. */
static bool take_group(struct move *m) {
    const uint32_t width = m->t->width;
    for (uint32_t c = 0; c < m->from.positions; c++) {
        const struct bucket_place at = bucket_at(m, c);
        uint32_t codes[ENTRIES_MOST];
        uint32_t used = 0;
        for (; used < slots_of(width); used++) {
            codes[used] = get_slot(m->lines[c], used, width);
            if (codes[used] == 0) break;
        }
        if (used == slots_of(width))
            used += take_spilled(m->t, &at, codes + used, ENTRIES_MOST - used,
                                 &m->log);
        if (used > ENTRIES_MOST) return false;
        m->before = m->after;
        m->after.n = 0;
        for (uint32_t i = 0; i < used; i++)
            if (!place_entry(m, c, codes[i])) return false;
    }
    return true;
}

static void put_line(uint8_t *line, const uint8_t *bytes) {
    for (size_t i = 0; i < BUCKET_BYTES; i += 8)
        __atomic_store_n((uint64_t *)(line + i), little64(load64(bytes + i)),
                         __ATOMIC_RELEASE);
}

static bool put_group(struct move *m) {
    const uint32_t width = m->t->width;
    for (uint32_t c = 0; c <= m->from.positions; c++) {
        const struct bucket_place at = bucket_at(m, c);
        _Alignas(8) uint8_t line[BUCKET_BYTES] = {0};
        uint32_t used = 0;
        for (uint32_t i = 0; i < m->entries; i++) {
            if (m->to[i] != c) continue;
            if (used < slots_of(width))
                put_slot(line, used++, width, m->code[i]);
            else if (!spill(m->t, &at, m->code[i], &m->log))
                return false;
        }
        put_line(bucket_line(&at), line);
    }
    return true;
}

static void undo(struct move *m) {
    undo_spills(&m->log);
    for (uint32_t c = 0; c <= m->from.positions; c++) {
        const struct bucket_place at = bucket_at(m, c);
        put_line(bucket_line(&at), m->lines[c]);
    }
}

bool bucket_move_group(struct bucket_table *t) {
    const uint64_t stage = t->stage, y = stage & MOVED_MASK;
    const uint32_t number = stage_number(stage);
    struct move m;
    m.t = t;
    m.from = (struct bucket_address){
        .y = y,
        .level = number / POSITIONS,
        .positions = POSITIONS + number % POSITIONS,
    };
    m.entries = 0;
    m.after.n = 0;
    m.log.n = 0;
    for (uint32_t c = 0; c <= m.from.positions; c++) {
        const struct bucket_place at = bucket_at(&m, c);
        memcpy(m.lines[c], bucket_line(&at), BUCKET_BYTES);
    }
    begin_move(t, &m.from);
    const bool moved = take_group(&m) && put_group(&m);
    if (!moved)
        undo(&m);
    else
        __atomic_store_n(&t->stage,
                         y + 1 < groups_now(t, stage)
                             ? stage + 1
                             : (uint64_t)(number + 1) << 56,
                         __ATOMIC_RELEASE);
    end_move(t, &m.from);
    return moved;
}

/* ---- Sums ---------------------------------------------------------------- */

/* The group of a bucket: find_bucket the other way round. */
static uint64_t group_of(const struct bucket_table *t, uint32_t level,
                         uint32_t segment, uint64_t index) {
    if (segment == 0) return index % t->groups << level;
    const uint32_t born = (segment - 1) / POSITIONS;
    return born >= level ? index : (2 * index + 1) << (level - 1 - born);
}

static void sum_code(const struct bucket_table *t, uint32_t level,
                     uint32_t code, struct bucket_sums *sums) {
    uint32_t bits;
    const uint32_t n = code_bits(code, t->width, level, &bits);
    sums->entries++;
    sums->rate += ldexp(1. / (double)(t->groups << level), -(int)(n + 2));
}

struct bucket_sums bucket_sum(const struct bucket_table *t, uint32_t segments) {
    struct bucket_sums sums = {0};
    const uint64_t stage = stage_of(t);
    const uint32_t number = stage_number(stage), level = number / POSITIONS;
    const bool doubles = number % POSITIONS == POSITIONS - 1;
    for (uint32_t s = 0; s < segments; s++) {
        const uint64_t blocks = segment_blocks(t, s);
        for (uint64_t i = 0; i < blocks; i++) {
            const bool moved =
                doubles && group_of(t, level, s, i) < (stage & MOVED_MASK);
            uint8_t line[BUCKET_BYTES];
            copy_line(line, segment_at(t, s) + i * BUCKET_BYTES);
            for (uint32_t slot = 0; slot < slots_of(t->width); slot++) {
                const uint32_t code = get_slot(line, slot, t->width);
                if (code == 0) break;
                sum_code(t, level + moved, code, &sums);
            }
        }
        const uint8_t *const lines = segment_at(t, s) + blocks * BUCKET_BYTES;
        const uint64_t words = spill_lines(blocks) * (SPILL_ENTRIES + 1);
        for (uint64_t i = 0; i < words; i++) {
            const uint32_t entry = get_spill_word(lines + 4 * i);
            const uint32_t code = entry & code_mask(t->width);
            if (i % (SPILL_ENTRIES + 1) < SPILL_ENTRIES && code != 0)
                sum_code(t, level, code, &sums);
        }
    }
    sums.rate = -expm1(-sums.rate);
    return sums;
}
