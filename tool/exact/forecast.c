/*
 * How the exact engine divides its memory, and what it will do with it: passes,
 * bytes read and bytes spilled, before it begins.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#include "exact/engine_internal.h"
#include "exact/slot_table.h"

/* ---- Shares of the memory ------------------------------------------------ */

uint64_t memory_of_keys(const struct rule *rule, uint64_t memory) {
    return memory / 8 * (rule->absent ? 6 : 7);
}

uint64_t keys_of_lines(const struct rule *rule, uint64_t memory,
                       uint64_t lines) {
    const uint64_t most = memory_of_keys(rule, memory) / 96;
    return lines < most ? lines : most;
}

size_t tally_size(const struct rule *rule) {
    return rule->tallies ? sizeof(struct tally) : 0;
}

uint64_t memory_of_spilled_keys(uint64_t memory) {
    return memory < 8192 ? 1024 : memory / 8;
}

size_t memory_of_spill(uint64_t memory, unsigned spills) {
    const uint64_t share = memory / 8 / spills;
    return share < 4096 ? 4096 : share > 1 << 18 ? 1 << 18 : (size_t)share;
}

/* Enough that each spill fits, with a margin; a power of two. */
unsigned spills_for(const struct rule *rule, uint64_t memory, uint64_t bytes) {
    unsigned n = 8;
    while (n < MOST_SPILLS && n * memory_of_keys(rule, memory) / 4 < bytes)
        n *= 2;
    return bytes ? n : 32;
}

/* A pass costs as much as its bytes. A spilled record costs about four times
 * its bytes: it is written, read and hashed again. Then the files are read to
 * print them. */
unsigned passes_for(const struct rule *rule, uint64_t memory,
                    const struct line_counts *counts) {
    const double size = (double)counts->bytes / (double)(counts->lines + 1);
    const uint64_t stored =
        slot_table_bytes(counts->keys) +
        (uint64_t)((size + stored_key_size(tally_size(rule))) *
                   (double)counts->keys);
    const uint64_t passes = stored / memory_of_keys(rule, memory) + 1;
    if (passes > MOST_PASSES) return 1;
    const double left = 1 - 1 / (double)passes;
    const double spilling =
        4 * left * (size + 6) * (double)counts->marked + (double)counts->bytes;
    return (double)(passes - 1) * (double)counts->bytes < spilling
               ? (unsigned)passes
               : 1;
}

/* ---- Forecasts ----------------------------------------------------------- */

struct forecast {
    uint64_t passes, read, spilled;
    uint64_t temporary; /* bytes of temporary files at once */
};

/* Bytes of a record in a spill: two numbers and the sizes before key and line.
 */
static double record_size(const struct engine_plan *p,
                          const struct line_counts *counts) {
    const double key = counts->distinct_key_size;
    const bool has_line = counts->made_keys && !p->condition;
    return 3.3 + (key < 128 ? 0 : 1) + key +
           (has_line ? counts->distinct_size : 0);
}

/* A spill that fits into its buffer is not written. */
static double written(double bytes, double spills, double buffer) {
    return bytes / spills < buffer ? 0 : bytes;
}

/* A partition: what is known of it before, and what it has. */
struct partition_forecast {
    double keys, lines, record; /* record: bytes */
    uint64_t memory;
    double capacity;   /* keys */
    uint64_t expected; /* bytes */
};

/* Bytes that it spills, and those that the partitions that they become spill.
 */
static double partition_spills(const struct rule *rule,
                               const struct partition_forecast *f,
                               unsigned level) {
    enum { DEEPEST = 8 };
    if (f->keys <= f->capacity || level > DEEPEST) return 0;
    const double left = 1 - f->capacity / f->keys;
    const double bytes = left * f->lines * f->record;
    const unsigned spills = spills_for(rule, f->memory, f->expected);
    const double buffer = (double)memory_of_spill(f->memory, spills);
    const uint64_t workers = level == 0 && thread_count() > 1 ? 2 : 1;
    const uint64_t memory = f->memory / workers;
    const struct partition_forecast next = {
        .keys = left * f->keys / spills,
        .lines = left * f->lines / spills,
        .record = f->record,
        .memory = memory,
        .capacity = (double)key_table_capacity(
            keys_of_lines(rule, memory, (uint64_t)(left * f->lines / spills)),
            memory_of_keys(rule, memory),
            f->record - 3 + stored_key_size(tally_size(rule))),
        .expected = (uint64_t)(bytes / spills)};
    return written(bytes, spills, buffer) +
           spills * partition_spills(rule, &next, level + 1);
}

/* One pass for hashes, one or more for candidates, and one that prints if
 * records are spilled. */
static struct forecast forecast_on_hashes(const struct rule *rule,
                                          const struct engine_plan *p,
                                          const struct line_counts *counts) {
    const uint64_t memory = budget_without(marks_bytes(counts->lines));
    const unsigned passes = passes_for(rule, memory, counts);
    const double record = record_size(p, counts);
    const double size = record - 3 + (double)tally_size(rule) + 8;
    const uint64_t slots = 8 * (counts->keys + counts->keys / 2);
    const uint64_t room = memory_of_keys(rule, memory);
    const double capacity =
        (double)(room - (slots < room / 2 ? slots : room / 2)) / size;
    const struct partition_forecast input = {
        .keys = (double)counts->keys,
        .lines = (double)counts->marked,
        .record = record,
        .memory = memory,
        .capacity = capacity,
        .expected = counts->bytes / (counts->lines + 1) * counts->marked};
    const double records = passes > 1 ? 0 : partition_spills(rule, &input, 0);
    const uint64_t hashes =
        hashes_spilled(p->sum.lines, counts->lines, budget());
    const bool prints = passes == 1 && (double)counts->keys > capacity;
    const unsigned second = p->second;
    const double printing = counts->printed * (double)counts->bytes;
    return (struct forecast){
        .passes = 1 + passes + prints + second,
        .read = (1 + passes) * counts->bytes +
                (uint64_t)((prints + second) * printing),
        .spilled = hashes + (uint64_t)records,
        .temporary = (double)hashes > records ? hashes : (uint64_t)records};
}

/* Lines that are printed after records were spilled go to runs: those of
 * `left`, the share of the keys that do not fit; and if another file is read
 * last, all of its lines. */
static double runs_of(const struct rule *rule, const struct engine_plan *p,
                      const struct line_counts *counts, double left) {
    const double distinct = (double)counts->distinct;
    const double keys = (double)counts->keys;
    const double size = counts->distinct_size + 3;
    if (rule->selects)
        return size * (p->selected == SELECT_ALL        ? distinct
                       : p->selected == SELECT_REPEATED ? keys
                                                        : distinct - keys);
    if (!rule->absent) return size * left * distinct;
    if (rule->prints_marked) return size * left * keys;
    return size * counts->printed * (double)(counts->lines - counts->marked);
}

/* Lines that are not in a file that inserts keys matter only if they repeat
 * one. */
static double lines_that_matter(const struct rule *rule,
                                const struct line_counts *counts) {
    const double lines = (double)(counts->lines - counts->hot);
    if (!rule->absent) return lines;
    return counts->stored * lines +
           (1 - counts->stored) * (double)counts->marked;
}

static struct forecast forecast_directly(const struct rule *rule,
                                         const struct engine_plan *p,
                                         const struct line_counts *counts) {
    struct forecast f = {.passes = 1, .read = counts->bytes};
    const uint64_t memory = budget();
    const double stored =
        counts->distinct_key_size +
        (rule->selects && counts->made_keys ? counts->distinct_size : 0);
    const double capacity = (double)key_table_capacity(
        keys_of_lines(rule, memory, p->sum.lines), memory_of_keys(rule, memory),
        stored + stored_key_size(tally_size(rule)));
    const double keys = counts->stored * (double)counts->distinct;
    if (keys <= capacity) return f;
    const double left = 1 - capacity / keys;
    const struct partition_forecast input = {
        .keys = keys,
        .lines = lines_that_matter(rule, counts),
        .record = record_size(p, counts),
        .memory = memory,
        .capacity = capacity,
        .expected = p->sum.bytes};
    const double records = partition_spills(rule, &input, 0);
    const double runs = runs_of(rule, p, counts, left);
    /* a run of the first partition is there before any spill is read, and two
     * spills of about 16 stay while they are */
    const double first = rule->selects ? (1 - left) * runs
                         : rule->absent && !rule->prints_marked ? runs
                                                                : 0;
    const double most = records + first + records / 8;
    f.spilled = (uint64_t)(records + runs);
    f.temporary = (uint64_t)(most > runs ? most : runs);
    if (f.temporary > f.spilled) f.temporary = f.spilled;
    return f;
}

static struct forecast forecast(const struct rule *rule,
                                const struct engine_plan *p,
                                const struct line_counts *counts) {
    if (p->one_pass)
        return (struct forecast){.passes = 1, .read = counts->bytes};
    return p->condition ? forecast_on_hashes(rule, p, counts)
                        : forecast_directly(rule, p, counts);
}

/* ---- Likely and worst ---------------------------------------------------- */

/* No line is like those that were looked at: with hashes, all are candidates,
 * each key twice; else no two are equal. */
static struct line_counts worst_of(const struct engine_plan *p,
                                   const struct line_counts *likely) {
    struct line_counts worst = *likely;
    worst.hot = 0;
    worst.marked = worst.lines;
    worst.distinct = worst.lines;
    worst.keys = p->condition ? worst.lines / 2 : 0;
    return worst;
}

/* What --assume says: a tenth of the lines have a key that occurs twice. */
static struct line_counts assumed_counts(const struct engine_plan *p) {
    const uint64_t lines = p->sum.lines, twice = lines / 10;
    const double size = (double)p->sum.bytes / (double)lines;
    const double files = (double)p->reading_count;
    return (struct line_counts){.lines = lines,
                                .bytes = p->sum.bytes,
                                .marked = twice,
                                .keys = twice / 2,
                                .distinct = lines - twice / 2,
                                .stored = (double)p->storing / files,
                                .printed = (double)p->printing / files,
                                .distinct_size = size,
                                .distinct_key_size = size - 1};
}

static struct line_counts likely_counts(const struct engine_plan *p) {
    struct line_counts counts;
    if (assumes_lines()) return assumed_counts(p);
    guess_counts(p, &counts);
    return counts;
}

/* Bytes that the folder for temporary files has left; UINT64_MAX: unknown. */
static uint64_t free_space(void) {
    struct statvfs is;
    const char *const test = getenv("CALYX_TEST_SPACE"); /* less, in tests */
    if (test) return strtoull(test, NULL, 10);
    if (statvfs(spill_folder(), &is) != 0) return UINT64_MAX;
    return (uint64_t)is.f_bavail * is.f_frsize;
}

void expect_space(const struct rule *rule, const struct engine_plan *p) {
    const uint64_t space = free_space();
    if (!p->known || space / 4 > p->sum.bytes + 10 * p->sum.lines) return;
    const struct line_counts counts = likely_counts(p);
    const struct forecast f = forecast(rule, p, &counts);
    char wanted[TEXT_SIZE], found[TEXT_SIZE];
    if (f.temporary <= space) return;
    fail("about %s of temporary files are likely, and %s has %s left; -T names "
         "another folder, -S gives more memory, --force begins all the same",
         size_text(f.temporary, wanted), spill_folder(),
         size_text(space, found));
}

/* ---- --dry-run ----------------------------------------------------------- */

/* Reading the files, writing and reading temporary files at 1 GB/s, and about
 * 50 ns a line and pass. */
static double seconds_of(const struct engine_plan *p,
                         const struct line_counts *counts,
                         const struct forecast *f) {
    const double passes = (double)f->read / (double)(counts->bytes + 1);
    return p->sum.seconds * passes + 2e-9 * (double)f->spilled +
           5e-8 * (double)counts->lines * passes;
}

static const char *time_text(double seconds, char *text) {
    if (seconds < 600)
        snprintf(text, TEXT_SIZE, "%.1f s", seconds);
    else if (seconds < 36000)
        snprintf(text, TEXT_SIZE, "%.0f min", seconds / 60);
    else
        snprintf(text, TEXT_SIZE, "%.1f h", seconds / 3600);
    return text;
}

static void print_row(const char *name, const char *likely, const char *worst) {
    printf("%-14s %-14s %s\n", name, likely, worst);
}

static void print_sizes(const char *name, uint64_t likely, uint64_t worst) {
    char text[TEXT_SIZE], more[TEXT_SIZE];
    print_row(name, likely ? size_text(likely, text) : "none",
              worst ? size_text(worst, more) : "none");
}

static void print_counts(const char *name, uint64_t likely, uint64_t worst) {
    char text[TEXT_SIZE], more[TEXT_SIZE];
    print_row(name, count_text(likely, text), count_text(worst, more));
}

static void print_space(uint64_t likely) {
    char text[TEXT_SIZE];
    const uint64_t space = free_space();
    if (space == UINT64_MAX) return;
    printf("free space     %s in %s%s\n", size_text(space, text),
           spill_folder(),
           space < likely ? ": too little, even for the likely case" : "");
}

void print_plan(const struct rule *rule, const struct engine_plan *p) {
    char text[TEXT_SIZE], more[TEXT_SIZE];
    if (assumes_lines() && !p->known)
        fail("option --assume is about files: name one, which need not exist");
    printf("memory         %s\n", size_text(budget(), text));
    if (!p->known) {
        printf("input          a pipe, of unknown size\n"
               "passes         1\n"
               "spilled        none if the keys fit, else up to twice the "
               "input\n");
        print_space(0);
        return;
    }
    const struct line_counts likely = likely_counts(p);
    const struct line_counts worst = worst_of(p, &likely);
    const struct forecast f = forecast(rule, p, &likely);
    const struct forecast w = forecast(rule, p, &worst);
    printf("input          about %s lines, %s\n",
           count_text(likely.lines, text), size_text(likely.bytes, more));
    printf("               likely         worst\n");
    if (p->condition && !p->one_pass)
        print_counts("candidates", likely.marked, worst.marked);
    print_counts("passes", f.passes, w.passes);
    print_sizes("read", f.read, w.read);
    print_sizes("spilled", f.spilled, w.spilled);
    print_sizes("temporary", f.temporary, w.temporary);
    print_row("time, about", time_text(seconds_of(p, &likely, &f), text),
              time_text(seconds_of(p, &worst, &w), more));
    print_space(f.temporary);
    const struct figure figures[] = {
        {"passes", (double)f.passes, true},
        {"read_bytes", (double)f.read, true},
        {"spilled_bytes", (double)f.spilled, true},
        {"temporary_bytes", (double)f.temporary, true},
        {"worst_passes", (double)w.passes, true},
        {"worst_read_bytes", (double)w.read, true},
        {"worst_spilled_bytes", (double)w.spilled, true},
        {"worst_temporary_bytes", (double)w.temporary, true}};
    const struct input_totals totals = {likely.lines, likely.bytes,
                                        seconds_of(p, &likely, &f), 0};
    report(&totals, figures, sizeof figures / sizeof *figures);
}
