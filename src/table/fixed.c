/*
 * Tables of fixed size: the kinds bucket and distinct, when they never grow.
 *
 * A key goes to one line of 64 bytes, there to one of 20 runs, and leaves a
 * remainder of its hash in a slot of the run:
 *
 *     hash * lines     = line . rest         a number of 64 bits before and
 *     rest * 20        = run . rest          after the point; of the first
 *     rest * R         = remainder . (lost)  rest, the high 32 bits count
 *
 *     bit 0                                    448        508    512
 *     [ slot 0 | slot 1 | ... | slot s-1 | - ]  [ 20 counts | flags ]
 *
 * So a run with m slots takes an absent key for one of its own with odds m / R,
 * and R is chosen, of floats with a mantissa of 4 bits, to meet the rate that
 * was promised: doc/MATH.md. The counts take 64 bits of a line, 1.1 to 2.9 bits
 * a slot, and buy the log2(20) bits that say which run a slot belongs to.
 *
 * This is the idea of a quotient filter within a cache line: of the vector
 * quotient filter (Pandey, Conway, Durie, Bender, Farach-Colton, Johnson 2021),
 * of TC-shortcut and the prefix filter (Even, Even, Morrison 2022), whose
 * header is a bitmap in unary. That takes a bit less than counts where slots
 * are wide, and any number of runs. But to find a run in it takes a select,
 * which few processors have, and a comparison of all slots with vectors. Here
 * one product adds up the counts, a run is within a word or two, and words
 * compare its slots: the code is the same for all processors and all widths.
 * A cuckoo filter (Fan, Andersen, Kaminsky, Mitzenmacher 2014) reads two lines
 * for a key, and must move others to add one.
 *
 * Spilling. At 86 % of all slots, one line in seven is full, and 1 to 3 % of
 * the keys are elsewhere. Which, is decided so that few lookups look for them,
 * as in a prefix filter: a full line keeps the keys of its highest runs. A key
 * for a run before the first slot, or for the run that has it, is spilled; for
 * a later run the first slot is spilled to make room. Also spilled is the key
 * that finds 7 others in its run. So a lookup goes on only if its line has
 * spilled keys, and either no slots are before its run or the run has 7. When a
 * key is removed, a spilled key of its line takes the room, of the highest run
 * possible.
 *
 * After the lines there is a spill line for each 16 of them, with 15 words of
 * 32 bits, and a number:
 *
 *     word = 1 + run * R + remainder | line % 16 << 24 | probe << 28, or 0
 *
 * A key whose spill line is full goes to another one: probe n to n (n + 1) / 2
 * lines after the first, or to n lines after it if there are 32 spill lines or
 * less. The last number of a spill line counts the words that found it full and
 * went on; where it is 0, a lookup ends.
 *
 * A line from which no more keys can be spilled is saturated: it has no slots,
 * and answers "yes" for all its keys. That takes 48 spilled keys of one line,
 * which keys have that were chosen for it, or many additions of the same.
 */
#include "table/fixed.h"

#include <math.h>

/* The room is the share of all slots that leaves spill lines hardly more than
 * 60 % full: simulated. */
#define FORM(width, in_word, pattern, keys)                                  \
    {                                                                        \
        .bits = (width), .slots = SLOTS_BITS / (width), .fields = (in_word), \
        .ones = UINT64_C(pattern), .high = UINT64_C(pattern) << ((width)-1), \
        .room = (keys)                                                       \
    }
const struct slot_form slot_forms[] = {
    FORM(8, 7, 0x0001010101010101, 3087),
    FORM(9, 6, 0x0000201008040201, 2696),
    FORM(10, 5, 0x0000010040100401, 2416),
    FORM(11, 5, 0x0000100200400801, 2193),
    FORM(12, 4, 0x0000001001001001, 2025),
    FORM(13, 4, 0x0000008004002001, 1858),
    FORM(14, 4, 0x0000040010004001, 1746),
    FORM(15, 3, 0x0000000040008001, 1578),
    FORM(16, 3, 0x0000000100010001, 1522),
    FORM(17, 3, 0x0000000400020001, 1411),
    FORM(18, 3, 0x0000001000040001, 1299),
    FORM(19, 3, 0x0000004000080001, 1243),
    FORM(20, 2, 0x0000000000100001, 1187),
};

/* ---- Spilled keys -------------------------------------------------------- */

/* As many as entries of full tables need, and 6 deviations of their number. */
uint64_t fixed_spill_lines(uint64_t blocks) {
    enum { MORE = 3, MORE_MOST = 7, FEW = 8 };
    const uint64_t more = blocks / 32 < MORE_MOST ? blocks / 32 : MORE_MOST;
    if (blocks < FEW) return 2;
    return (blocks + SPILL_SHARE - 1) / SPILL_SHARE + MORE + more;
}

enum { CODE_BITS = 24, PROBE_SHIFT = 28, LINES_IN_ORDER = 32 };
static const uint32_t CODE_MASK = (UINT32_C(1) << CODE_BITS) - 1;

/* The spill lines that a line goes to, one after the other. */
struct spill_probe {
    uint8_t *lines;
    uint64_t count, at;
    uint32_t number, most;
    uint32_t sixteenth; /* line % 16 */
};

static struct spill_probe first_spill(const struct fixed_table *t,
                                      uint64_t line) {
    const uint64_t count = fixed_spill_lines(t->blocks);
    return (struct spill_probe){
        .lines = fixed_line(t, t->blocks),
        .count = count,
        .at = line / SPILL_SHARE,
        .most = count < SPILL_PROBES ? (uint32_t)count : SPILL_PROBES,
        .sixteenth = line % SPILL_SHARE,
    };
}

static bool next_spill(struct spill_probe *p) {
    if (++p->number >= p->most) return false;
    p->at += p->count > LINES_IN_ORDER ? p->number : 1;
    p->at %= p->count;
    return true;
}

static uint8_t *spill_word(const struct spill_probe *p, uint32_t i) {
    return p->lines + p->at * LINE_SIZE + 4 * i;
}

static uint32_t get_passed(const struct spill_probe *p) {
    return get_half_word(spill_word(p, SPILL_WORDS));
}

/* The bits of a word above the code. */
static uint32_t spill_tag(const struct spill_probe *p) {
    return p->sixteenth | p->number << (PROBE_SHIFT - CODE_BITS);
}

static uint32_t code_of_place(const struct fixed_table *t,
                              const struct fixed_place *at) {
    return (uint32_t)(at->run * t->remainders + at->remainder) + 1;
}

/* Not below RUNS in a damaged table. */
static uint64_t run_of_code(const struct fixed_table *t, uint32_t code) {
    return (code - 1) / t->remainders;
}

/* A spilled key of a line, or none. */
struct spilled {
    uint8_t *word; /* NULL: none */
    uint32_t code, probe;
};

/* What a line has spilled. */
struct spilled_keys {
    uint32_t n, matches;    /* all; of this key                           */
    struct spilled match;   /* one of these                               */
    struct spilled returns; /* of the highest run that has room, or none  */
};

static struct spilled_keys scan_spilled(const struct fixed_table *t,
                                        uint64_t line, uint32_t code,
                                        uint64_t header) {
    struct spilled_keys scan = {0};
    struct spill_probe p = first_spill(t, line);
    if (!(header & SPILLED)) return scan;
    do {
        for (uint32_t i = 0; i < SPILL_WORDS; i++) {
            const uint32_t word = get_half_word(spill_word(&p, i));
            const struct spilled here = {spill_word(&p, i), word & CODE_MASK,
                                         p.number};
            if (here.code == 0 || word >> CODE_BITS != spill_tag(&p)) continue;
            scan.n++;
            if (here.code == code) scan.match = here, scan.matches++;
            const uint64_t run = run_of_code(t, here.code);
            if (here.code > scan.returns.code && run < RUNS &&
                run_count(header, run) < RUN_MOST)
                scan.returns = here;
        }
    } while (get_passed(&p) && next_spill(&p));
    return scan;
}

static bool has_spilled_code(const struct fixed_table *t, uint64_t line,
                             uint32_t code) {
    struct spill_probe p = first_spill(t, line);
    do {
        const uint32_t want = code | spill_tag(&p) << CODE_BITS;
        bool found = false;
        for (uint32_t i = 0; i < SPILL_WORDS; i++)
            found |= get_half_word(spill_word(&p, i)) == want;
        if (found) return true;
    } while (get_passed(&p) && next_spill(&p));
    return false;
}

/* Count a word that passes the spill lines before its probe, or no longer. */
static void change_passed(const struct fixed_table *t, uint64_t line,
                          uint32_t probe, uint32_t change) {
    struct spill_probe p = first_spill(t, line);
    for (uint32_t i = 0; i < probe; i++) {
        put_half_word(spill_word(&p, SPILL_WORDS), get_passed(&p) + change);
        next_spill(&p);
    }
}

/* False if there is no room. */
static bool spill(const struct fixed_table *t, uint64_t line, uint32_t code) {
    struct spill_probe p = first_spill(t, line);
    do {
        for (uint32_t i = 0; i < SPILL_WORDS; i++) {
            if (get_half_word(spill_word(&p, i))) continue;
            change_passed(t, line, p.number, 1);
            put_half_word(spill_word(&p, i), code | spill_tag(&p) << CODE_BITS);
            return true;
        }
    } while (next_spill(&p));
    return false;
}

static void drop_spilled(const struct fixed_table *t, uint64_t line,
                         const struct spilled *entry) {
    put_half_word(entry->word, 0);
    change_passed(t, line, entry->probe, UINT32_MAX);
}

/* ---- Slots --------------------------------------------------------------- */

static void put_in_line(const struct fixed_table *t, uint8_t *line,
                        uint64_t run, uint64_t remainder) {
    const uint64_t header = get_header(line);
    open_slot(t, line, run_begin(header, run), remainder);
    put_header(line, header + (UINT64_C(1) << 3 * run));
}

static void take_from_line(const struct fixed_table *t, uint8_t *line,
                           uint64_t run, uint64_t slot) {
    close_slot(t, line, slot);
    put_header(line, get_header(line) - (UINT64_C(1) << 3 * run));
}

void fixed_saturate(const struct fixed_table *t, uint64_t line) {
    uint8_t *const at = fixed_line(t, line);
    if (get_header(at) & SATURATED) return;
    for (;;) {
        const struct spilled_keys scan =
            scan_spilled(t, line, 0, get_header(at) & ~ALL_COUNTS);
        if (!scan.returns.word) break;
        drop_spilled(t, line, &scan.returns);
    }
    put_header(at, SPILLED | SATURATED);
    for (uint64_t i = 0; i < HEADER_WORD; i++) put_word(at + 8 * i, 0);
}

bool fixed_look_again(const struct fixed_table *t,
                      const struct fixed_place *at) {
    const uint8_t *const line = fixed_line(t, at->line);
    const uint64_t header = get_header(line);
    if (header & SATURATED) return true;
    if (match_run(t, line, header, at).n > 0) return true;
    return header & SPILLED &&
           has_spilled_code(t, at->line, code_of_place(t, at));
}

/* The run of the first slot of a line that has slots. */
static uint64_t first_run(uint64_t header) {
    return (uint64_t)__builtin_ctzll(header & ALL_COUNTS) / 3;
}

/* Put a key where it belongs in a line that is full, or whose run is. */
static bool spill_for(const struct fixed_table *t,
                      const struct fixed_place *at) {
    uint8_t *const line = fixed_line(t, at->line);
    const uint64_t header = get_header(line);
    const bool stays =
        run_count(header, at->run) < RUN_MOST && run_begin(header, at->run) > 0;
    struct fixed_place leaves = *at;
    if (stays) {
        leaves.run = first_run(header);
        leaves.remainder = get_remainder(t, line, 0);
    }
    if (!spill(t, at->line, code_of_place(t, &leaves))) return false;
    put_header(line, header | SPILLED);
    if (!stays) return true;
    take_from_line(t, line, leaves.run, 0);
    put_in_line(t, line, at->run, at->remainder);
    return true;
}

static void add_to_full(const struct fixed_table *t,
                        const struct fixed_place *at, uint32_t spilled) {
    if (spilled >= SPILL_FROM_MOST || !spill_for(t, at))
        fixed_saturate(t, at->line);
}

struct fixed_addition fixed_add_spilling(const struct fixed_table *t,
                                         const struct fixed_place *at,
                                         uint64_t most_copies) {
    const uint8_t *const line = fixed_line(t, at->line);
    const uint64_t header = get_header(line);
    if (header & SATURATED) return (struct fixed_addition){false, true};
    const struct spilled_keys scan =
        scan_spilled(t, at->line, code_of_place(t, at), header);
    const uint64_t copies = match_run(t, line, header, at).n + scan.matches;
    if (copies < most_copies) add_to_full(t, at, scan.n);
    const bool more =
        copies == 0 || copies + 1 < most_copies || get_header(line) & SATURATED;
    return (struct fixed_addition){copies == 0, more};
}

bool fixed_add_place(const struct fixed_table *t,
                     const struct fixed_place *at) {
    uint8_t *const line = fixed_line(t, at->line);
    const uint64_t header = get_header(line);
    if (header & SATURATED) return false;
    if (slots_used(header) >= t->form.slots ||
        run_count(header, at->run) == RUN_MOST)
        return fixed_add_spilling(t, at, 1).fresh;
    if (match_run(t, line, header, at).n > 0) return false;
    put_in_line(t, line, at->run, at->remainder);
    return true;
}

/* A key was taken from a line that has spilled others: one returns. */
static void return_spilled(const struct fixed_table *t, uint64_t number) {
    uint8_t *const line = fixed_line(t, number);
    const uint64_t header = get_header(line);
    struct spilled_keys scan = scan_spilled(t, number, 0, header);
    if (scan.returns.word && slots_used(header) < t->form.slots) {
        const uint64_t run = run_of_code(t, scan.returns.code);
        put_in_line(t, line, run, scan.returns.code - 1 - run * t->remainders);
        drop_spilled(t, number, &scan.returns);
        scan.n--;
    }
    if (scan.n == 0) put_header(line, get_header(line) & ~SPILLED);
}

enum removal fixed_remove(const struct fixed_table *t,
                          const struct fixed_place *at) {
    uint8_t *const line = fixed_line(t, at->line);
    const uint64_t header = get_header(line);
    const struct run_matches here = match_run(t, line, header, at);
    struct spilled_keys there = {0};
    if (header & SATURATED) return KEY_STUCK;
    if (header & SPILLED)
        there = scan_spilled(t, at->line, code_of_place(t, at), header);
    if (here.n + there.matches == 0) return KEY_ABSENT;
    if (here.n + there.matches >= FIXED_COPIES_MOST) return KEY_STUCK;
    if (there.match.word)
        drop_spilled(t, at->line, &there.match);
    else
        take_from_line(t, line, at->run, here.slot);
    if (header & SPILLED) return_spilled(t, at->line);
    return KEY_REMOVED;
}

uint32_t fixed_count(const struct fixed_table *t,
                     const struct fixed_place *at) {
    const uint8_t *const line = fixed_line(t, at->line);
    const uint64_t header = get_header(line);
    if (header & SATURATED) return FIXED_COPIES_MOST;
    const uint64_t n =
        match_run(t, line, header, at).n +
        scan_spilled(t, at->line, code_of_place(t, at), header).matches;
    return n < FIXED_COPIES_MOST ? (uint32_t)n : FIXED_COPIES_MOST;
}

/* ---- Whole tables -------------------------------------------------------- */

static void list_key(struct line_keys *keys, uint64_t line, uint64_t run,
                     uint64_t remainder) {
    if (keys->n < LINE_KEYS_MOST)
        keys->key[keys->n++] = (struct fixed_place){line, run, remainder};
}

/* A key of a run before others is listed later, so that a line that takes the
 * keys of another one has the highest runs first, and spills none of them. */
void fixed_list(const struct fixed_table *t, uint64_t line,
                struct line_keys *keys) {
    const uint8_t *const at = fixed_line(t, line);
    const uint64_t header = get_header(at);
    uint64_t slot = slots_used(header);
    keys->n = 0;
    keys->saturated = header & SATURATED;
    for (uint64_t run = RUNS; run-- > 0;)
        for (uint64_t i = run_count(header, run); i > 0 && slot > 0; i--)
            list_key(keys, line, run, get_remainder(t, at, --slot));
    struct spill_probe p = first_spill(t, line);
    if (keys->saturated || !(header & SPILLED)) return;
    do {
        for (uint32_t i = 0; i < SPILL_WORDS; i++) {
            const uint32_t word = get_half_word(spill_word(&p, i));
            const uint32_t code = word & CODE_MASK;
            if (code == 0 || word >> CODE_BITS != spill_tag(&p)) continue;
            const uint64_t run = run_of_code(t, code);
            if (run < RUNS)
                list_key(keys, line, run, code - 1 - run * t->remainders);
        }
    } while (get_passed(&p) && next_spill(&p));
}

struct fixed_sums fixed_sum(const struct fixed_table *t) {
    struct fixed_sums sums = {0};
    for (uint64_t i = 0; i < t->blocks; i++) {
        const uint64_t header = get_header(fixed_line(t, i));
        sums.entries += slots_used(header);
        sums.saturated += (header & SATURATED) != 0;
    }
    for (uint64_t i = 0; i < fixed_spill_lines(t->blocks); i++)
        for (uint32_t j = 0; j < SPILL_WORDS; j++)
            sums.entries +=
                get_half_word(fixed_line(t, t->blocks + i) + 4 * j) != 0;
    return sums;
}

struct fixed_answer fixed_answer_of(const struct fixed_table *t,
                                    const struct fixed_place *at) {
    const uint8_t *const line = fixed_line(t, at->line);
    const uint64_t header = get_header(line);
    const struct run_matches here = match_run(t, line, header, at);
    const bool may_be = may_have_spilled(header, run_begin(header, at->run),
                                         run_count(header, at->run));
    return (struct fixed_answer){
        .slot = here.slot,
        .code = at->run * t->remainders + at->remainder,
        .is_in_line = here.n > 0,
        .may_be_spilled = may_be,
        .is_spilled = may_be && fixed_look_again(t, at),
    };
}

/* ---- The kinds ----------------------------------------------------------- */

static double fpr(const struct shape *shape, double items) {
    const double remainders = remainders_of(shape->probes);
    if (items > (double)fixed_room(shape->blocks, shape->probes)) return 1;
    return -expm1(-items / ((double)shape->blocks * RUNS * remainders));
}

static uint64_t spill_lines_of(const struct shape *shape) {
    return fixed_spill_lines(shape->blocks);
}

static uint32_t count(const uint8_t *body, const struct shape *shape,
                      uint64_t hash) {
    const struct fixed_table t = fixed_table_of(body, shape);
    const struct fixed_place at = fixed_place_of(&t, hash);
    return fixed_count(&t, &at);
}

static size_t look_at_4(const struct fixed_table *t, const struct batch *batch,
                        bool *found, struct again_list *again, size_t *yes) {
    (void)t, (void)batch, (void)found, (void)again, (void)yes;
    return 0;
}

static void insert_slot(const struct fixed_table *t, uint8_t *line,
                        uint64_t slot, uint64_t remainder, uint64_t header) {
    open_slot(t, line, slot, remainder);
    put_header(line, header);
}

#define TARGET
#include "table/fixed_kernel_template.h"

static const struct kernel bucket_scalar = FIXED_BUCKET_KERNEL(CPU_SCALAR);
static const struct kernel distinct_scalar = FIXED_DISTINCT_KERNEL(CPU_SCALAR);

#if ON_X86
extern const struct kernel fixed_bucket_avx2, fixed_distinct_avx2;
#endif

static const struct kernel *const bucket_kernels[] = {
#if ON_X86
    &fixed_bucket_avx2,
#endif
    &bucket_scalar,
};

static const struct kernel *const distinct_kernels[] = {
#if ON_X86
    &fixed_distinct_avx2,
#endif
    &distinct_scalar,
};

static const struct counting copies = {.count = count};

enum {
    CAN_TABLE = CALYX_CAN_ADD | CALYX_CAN_GROW | CALYX_CAN_SHARE |
                CALYX_CAN_GROW_IN_PLACE
};

#define FIXED_TABLE                                                      \
    .hash = "xxh3", .block_bits = 8 * LINE_SIZE,                         \
    .counter_bits = 8 * LINE_SIZE / SPILL_SHARE,                         \
    .counter_lines = spill_lines_of, .most_blocks = UINT64_C(1) << 35,   \
    .is_table = true, .most_probes = FIXED_PROBES_MOST, .probe_step = 1, \
    .least_fpr = 1e-6, .fpr = fpr

const struct kind kind_fixed_bucket = {
    .name = "bucket",
    .code = 12,
    .can = CAN_TABLE | CALYX_CAN_REMOVE | CALYX_CAN_COUNT,
    .counting = &copies,
    .kernels = bucket_kernels,
    .atomic_kernels = bucket_kernels,
    FIXED_TABLE,
};

/* A key that is found is not added again. */
const struct kind kind_fixed_distinct = {
    .name = "distinct",
    .code = 13,
    .can = CAN_TABLE | CALYX_CAN_MERGE,
    .kernels = distinct_kernels,
    .atomic_kernels = distinct_kernels,
    FIXED_TABLE,
};
