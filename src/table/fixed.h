/*
 * A table of fixed size: one line, as its kernel sees it. fixed.c explains the
 * table.
 *
 *     bit 0                                    448        508    512
 *     [ slot 0 | slot 1 | ... | slot s-1 | - ]  [ 20 counts | flags ]
 *
 * A slot has r bits. The slots of run 0 come first, then the slots of run 1,
 * and so on; a count of 3 bits says how many each of the 20 runs has. Slots
 * after the last run are 0. Readers may be reading a line while it changes, so
 * it is read and written in words of 64 bits; fixed_engine.c says how a reader
 * notices.
 */
#ifndef CALYX_FIXED_H
#define CALYX_FIXED_H

#include <stdbool.h>

#include "base/bits.h"
#include "base/compiler.h"
#include "kind/kind.h"

enum {
    RUNS = 20,    /* of a line                                           */
    RUN_MOST = 7, /* slots of a run: what a count of 3 bits can say      */
    SLOT_BITS_LEAST = 8,
    SLOT_BITS_MOST = 20,
    LINE_WORDS = 8,
    LINE_SIZE = 64,
    SLOTS_BITS = 448, /* of a line, for all slots                        */
    HEADER_WORD = 7,
    FIXED_COPIES_MOST = 15, /* of a key: then it stays                   */

    SPILL_SHARE = 16,    /* lines that share a spill line                  */
    SPILL_WORDS = 15,    /* entries of a spill line                        */
    SPILL_PROBES = 16,   /* spill lines that an entry may go to            */
    SPILL_FROM_MOST = 48 /* entries that one line may spill              */
};

#define ALL_COUNTS ((UINT64_C(1) << 3 * RUNS) - 1)
enum { SPILLED_FLAG = 60 };
#define SPILLED   (UINT64_C(1) << SPILLED_FLAG)
#define SATURATED (UINT64_C(1) << 61)

/* ---- Shapes -------------------------------------------------------------- */

/*
 * The probes p of a shape stand for the number of remainders: a float with a
 * mantissa of 4 bits, (16 + (p - 1) % 16) * 2^((p - 1) / 16 + 1), from 32 on.
 */
enum { MANTISSA = 16, FIXED_PROBES_MOST = 234 };

ALWAYS_INLINE uint32_t remainders_of(uint32_t probes) {
    const uint32_t p = probes - 1;
    return (MANTISSA + p % MANTISSA) << (p / MANTISSA + 1);
}

/* Bits of a slot: enough for all remainders. */
ALWAYS_INLINE uint32_t slot_bits_of(uint32_t probes) {
    const uint32_t p = probes - 1;
    const uint32_t bits = 5 + p / MANTISSA + (p % MANTISSA != 0);
    return bits < SLOT_BITS_LEAST ? SLOT_BITS_LEAST : bits;
}

/* What lookups need of the width of slots. */
struct slot_form {
    uint32_t bits, slots;
    uint32_t fields;     /* slots that 57 bits have: any bit of a byte on */
    uint64_t ones, high; /* the lowest bit of each field; the highest bit */
    uint32_t room;       /* keys for 64 lines that a table is planned for */
};
extern const struct slot_form slot_forms[];

ALWAYS_INLINE const struct slot_form *slot_form_of(uint32_t probes) {
    return &slot_forms[slot_bits_of(probes) - SLOT_BITS_LEAST];
}

/* ---- Where a key goes ---------------------------------------------------- */

/* A table in memory. */
struct fixed_table {
    uint8_t *lines;
    uint64_t blocks; /* lines, with the spill lines after them */
    uint64_t remainders;
    struct slot_form form;
};

struct fixed_place {
    uint64_t line;      /* its number       */
    uint64_t run;       /* below RUNS       */
    uint64_t remainder; /* below remainders */
};

ALWAYS_INLINE struct fixed_table fixed_table_of(const uint8_t *body,
                                                const struct shape *shape) {
    return (struct fixed_table){
        .lines = (uint8_t *)(uintptr_t)body,
        .blocks = shape->blocks,
        .remainders = remainders_of(shape->probes),
        .form = *slot_form_of(shape->probes),
    };
}

/* In hash * blocks, the bits after the number of the line choose the run, and
 * the bits after the run the remainder. */
ALWAYS_INLINE struct fixed_place fixed_place_of(const struct fixed_table *t,
                                                uint64_t hash) {
    const uint64_t runs = (hash * t->blocks >> 32) * RUNS;
    return (struct fixed_place){
        .line = scale64(hash, t->blocks),
        .run = runs >> 32,
        .remainder = (uint32_t)runs * t->remainders >> 32,
    };
}

ALWAYS_INLINE uint8_t *fixed_line(const struct fixed_table *t, uint64_t line) {
    return t->lines + line * LINE_SIZE;
}

/* The first that the keys of a line are spilled to. */
ALWAYS_INLINE uint8_t *spill_line_of(const struct fixed_table *t,
                                     uint64_t line) {
    return fixed_line(t, t->blocks + line / SPILL_SHARE);
}

/* ---- Words ----------------------------------------------------------------
 */

/* A reader that loads a word of a change loads the version of its line, which
 * is stored before and loaded after, as the change left it. */
ALWAYS_INLINE uint64_t get_word(const uint8_t *word) {
    return little64(__atomic_load_n((const uint64_t *)word, __ATOMIC_ACQUIRE));
}

ALWAYS_INLINE void put_word(uint8_t *word, uint64_t value) {
    __atomic_store_n((uint64_t *)word, little64(value), __ATOMIC_RELEASE);
}

ALWAYS_INLINE uint32_t get_half_word(const uint8_t *word) {
    return little32(__atomic_load_n((const uint32_t *)word, __ATOMIC_ACQUIRE));
}

ALWAYS_INLINE void put_half_word(uint8_t *word, uint32_t value) {
    __atomic_store_n((uint32_t *)word, little32(value), __ATOMIC_RELEASE);
}

/* ---- Lines --------------------------------------------------------------- */

ALWAYS_INLINE uint64_t get_header(const uint8_t *line) {
    return get_word(line + 8 * HEADER_WORD);
}

/* The sum of the first counts of a header: pairs are added in fields of 6 bits,
 * and a product adds up the fields. A damaged line may have any, up to 63. */
ALWAYS_INLINE uint64_t sum_counts(uint64_t counts) {
    const uint64_t odd = UINT64_C(0x01C71C71C71C71C7);
    const uint64_t sums = UINT64_C(0x0410410410410410);
    return ((counts & odd) + (counts >> 3 & odd)) * sums >> 58;
}

ALWAYS_INLINE uint64_t slots_used(uint64_t header) {
    return sum_counts(header & ALL_COUNTS);
}

/* The first slot of a run. */
ALWAYS_INLINE uint64_t run_begin(uint64_t header, uint64_t run) {
    return sum_counts(header & ((UINT64_C(1) << 3 * run) - 1));
}

ALWAYS_INLINE uint64_t run_count(uint64_t header, uint64_t run) {
    return header >> 3 * run & RUN_MOST;
}

/* The 64 bits of a line from this one on. */
ALWAYS_INLINE uint64_t get_window(const uint8_t *line, uint64_t bit) {
    const uint64_t word = bit / 64 % LINE_WORDS, shift = bit % 64;
    const uint64_t next = (word + 1) % LINE_WORDS;
    return get_word(line + 8 * word) >> shift | get_word(line + 8 * next)
                                                    << 1 << (63 - shift);
}

/* The highest bit of each of the first n fields of a window that equal the
 * remainder; n is at most form->fields. */
ALWAYS_INLINE uint64_t equal_fields(const struct slot_form *form,
                                    uint64_t window, uint64_t remainder,
                                    uint64_t n) {
    const uint64_t low = form->high - form->ones;
    const uint64_t differ = window ^ remainder * form->ones;
    const uint64_t equal = ~(((differ & low) + low) | differ) & form->high;
    return equal & ((UINT64_C(1) << n * form->bits) - 1);
}

/* The keys of a batch to look at again, by their places in it. */
struct again_list {
    size_t n;
    uint16_t at[BATCH_MAX + 1];
};

/* Slots of a run that have a remainder: their number, and one of them. */
struct run_matches {
    uint64_t n, slot;
};

static inline struct run_matches match_run(const struct fixed_table *t,
                                           const uint8_t *line, uint64_t header,
                                           const struct fixed_place *at) {
    struct run_matches matches = {0, 0};
    uint64_t slot = run_begin(header, at->run);
    uint64_t left = run_count(header, at->run);
    while (left > 0) {
        const uint64_t n = left < t->form.fields ? left : t->form.fields;
        const uint64_t equal = equal_fields(
            &t->form, get_window(line, slot * t->form.bits), at->remainder, n);
        if (equal) {
            matches.n += (uint64_t)__builtin_popcountll(equal);
            matches.slot =
                slot + (uint64_t)__builtin_ctzll(equal) / t->form.bits;
        }
        slot += n, left -= n;
    }
    return matches;
}

static inline uint64_t get_remainder(const struct fixed_table *t,
                                     const uint8_t *line, uint64_t slot) {
    return get_window(line, slot * t->form.bits) &
           ((UINT64_C(1) << t->form.bits) - 1);
}

/* All ones in the bits of a word that are below a bit of the line. */
ALWAYS_INLINE uint64_t bits_below(uint64_t bit, uint64_t word) {
    const uint64_t in_word = (UINT64_C(1) << bit % 64) - 1;
    return word < bit / 64 ? UINT64_MAX : word == bit / 64 ? in_word : 0;
}

/* Insert a slot: the slots from it on move up by one. */
ALWAYS_INLINE void open_slot(const struct fixed_table *t, uint8_t *line,
                             uint64_t slot, uint64_t remainder) {
    const uint64_t bits = t->form.bits, bit = slot * bits;
    const uint64_t low = remainder << bit % 64;
    const uint64_t high = remainder >> 1 >> (63 - bit % 64);
    uint64_t carry = 0;
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 7
#endif
    for (uint64_t i = 0; i < HEADER_WORD; i++) {
        const uint64_t old = get_word(line + 8 * i), keep = bits_below(bit, i);
        const uint64_t moved = old & ~keep;
        const uint64_t here = i == bit / 64       ? low
                              : i == bit / 64 + 1 ? high
                                                  : 0;
        put_word(line + 8 * i, (old & keep) | moved << bits | carry | here);
        carry = moved >> (64 - bits);
    }
}

/* Take a slot out: the slots after it move down by one. */
static inline void close_slot(const struct fixed_table *t, uint8_t *line,
                              uint64_t slot) {
    const uint64_t bits = t->form.bits, bit = slot * bits;
    for (uint64_t i = 0; i < HEADER_WORD; i++) {
        const uint64_t old = get_word(line + 8 * i), keep = bits_below(bit, i);
        const uint64_t next =
            i + 1 < HEADER_WORD ? get_word(line + 8 * i + 8) : 0;
        const uint64_t moved = old >> bits | next << (64 - bits);
        put_word(line + 8 * i, (old & keep) | (moved & ~keep));
    }
}

ALWAYS_INLINE void put_header(uint8_t *line, uint64_t header) {
    put_word(line + 8 * HEADER_WORD, header);
}

/* May keys of a run that are not in it be spilled? Not with what fixed.c says
 * of the order in which a line spills. */
ALWAYS_INLINE bool may_have_spilled(uint64_t header, uint64_t begin,
                                    uint64_t count) {
    return header >> SPILLED_FLAG & 1 & ((begin == 0) | (count == RUN_MOST));
}

/* ---- fixed.c ------------------------------------------------------------- */

uint64_t fixed_spill_lines(uint64_t blocks);

/* Keys that a table is planned for; and at most, beyond which spill lines soon
 * run full. */
static inline uint64_t fixed_room(uint64_t blocks, uint32_t probes) {
    return blocks * slot_form_of(probes)->room / 64;
}

static inline uint64_t fixed_limit(const struct shape *shape) {
    const uint64_t room = fixed_room(shape->blocks, shape->probes);
    return room + room / 64;
}

/* The lookup of a key that is not in the first slots of its run. */
bool fixed_look_again(const struct fixed_table *t,
                      const struct fixed_place *at);

/* Is the key new? Does it count as one more? Not a copy that takes no slot, nor
 * the last that takes one: it stays. Yes in a saturated line, where all keys
 * are found: so a table that saturates is full at last. */
struct fixed_addition {
    bool fresh, counts;
};

/* An addition to a line that has no room in it, or not in the run. */
struct fixed_addition fixed_add_spilling(const struct fixed_table *t,
                                         const struct fixed_place *at,
                                         uint64_t most_copies);
enum removal fixed_remove(const struct fixed_table *t,
                          const struct fixed_place *at);
uint32_t fixed_count(const struct fixed_table *t, const struct fixed_place *at);

/* The keys of a line and of what it spilled: their places. */
enum { LINE_KEYS_MOST = 64 + SPILL_FROM_MOST + 8 };
struct line_keys {
    uint32_t n;
    bool saturated;
    struct fixed_place key[LINE_KEYS_MOST];
};
void fixed_list(const struct fixed_table *t, uint64_t line,
                struct line_keys *keys);
/* Add a key, unless it is there. Returns whether it was not. */
bool fixed_add_place(const struct fixed_table *t, const struct fixed_place *at);
/* Let a line answer "yes" for all its keys. */
void fixed_saturate(const struct fixed_table *t, uint64_t line);

struct fixed_sums {
    uint64_t entries, saturated;
};
struct fixed_sums fixed_sum(const struct fixed_table *t);

/* What a lookup finds, for calyx_explain. */
struct fixed_answer {
    uint64_t slot, code;
    bool is_in_line, may_be_spilled, is_spilled;
};
struct fixed_answer fixed_answer_of(const struct fixed_table *t,
                                    const struct fixed_place *at);

#endif
