/*
 * calyx common: the lines that all files have, exactly and in the memory that
 * it is given.
 *
 * The first file is read last, and its lines are printed as they are read: they
 * were in all others, or not. If all files can be read twice, a chain of
 * filters comes before: one of the smallest file; one of those lines of the
 * next that the first may have; and so on. So most lines that are not common
 * are dropped at once.
 *
 * With --at-least, files are read in their order, and keys are judged in the
 * end.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "exact/approx.h"
#include "exact/prefilter.h"
#include "files/result.h"
#include "input/part_lines.h"
#include "verb/exact_run.h"

static bool count;
static uint64_t at_least, files_count;

/* ---- The rule for all files ----------------------------------------------
 */

static bool is_read_first(uint64_t file) {
    return file == 0;
}

static bool is_read_last(uint64_t file) {
    return file + 1 == files_count;
}

/* What counts is to be in all files so far. */
static enum destination visit_in_all(struct tally *tally, bool fresh,
                                     uint64_t file) {
    (void)fresh;
    if (tally->count != file) return NOT_PRINTED;
    tally->count++;
    return is_read_last(file) ? TO_OUTPUT : NOT_PRINTED;
}

static enum destination absent(uint64_t file) {
    (void)file;
    return NOT_PRINTED;
}

/* ---- The rule for some ----------------------------------------------------
 */

/* A key that is first met later cannot be in enough files. */
static bool inserts(uint64_t file) {
    return file + at_least <= files_count;
}

static enum destination visit_in_some(struct tally *tally, bool fresh,
                                      uint64_t file) {
    if (fresh || tally->file != file) tally->count++;
    tally->file = file & FILES_MASK;
    return NOT_PRINTED;
}

static bool selects(const struct tally *tally) {
    return tally->count >= at_least;
}

/* ---- The chain of filters -------------------------------------------------
 */

struct operand {
    char *file;
    bool is_first; /* of the command line: to be read last */
    struct sample is;
};

static int by_size(const void *a, const void *b) {
    const uint64_t x = ((const struct operand *)a)->is.bytes;
    const uint64_t y = ((const struct operand *)b)->is.bytes;
    return (x > y) - (x < y);
}

/* There are two while the second is made. */
static uint64_t memory_of_prefilter(void) {
    return budget() / 8 * 3;
}

static bool fits(uint64_t keys) {
    return prefilter_bytes_for(keys, UINT64_MAX) <= memory_of_prefilter();
}

/* In the order of the chain: by size, but the first file does not come last if
 * a filter of it fits, since that saves one reading. */
static struct operand *sample_operands(int n, char **files,
                                       struct sample *sum) {
    struct operand *const operands = alloc_memory((size_t)n * sizeof *operands);
    *sum = (struct sample){.rereadable = true};
    for (int i = 0; i < n; i++) {
        operands[i] = (struct operand){files[i], i == 0, sample_file(files[i])};
        sample_add(sum, &operands[i].is);
    }
    qsort(operands, (size_t)n, sizeof *operands, by_size);
    const struct operand last = operands[n - 1];
    if (last.is_first && fits(last.is.lines)) {
        operands[n - 1] = operands[n - 2];
        operands[n - 2] = last;
    }
    return operands;
}

/* A chain of filters of all files except at least one, the smallest first;
 * `*next` is then the file to be read through the last of them, and not the
 * first of the command line. If a filter had too little memory for its keys,
 * too many absent keys pass it, so the files are filtered once more. */
static calyx_filter *chain(const struct operand *operands, int n, int *next) {
    calyx_filter *prefilter = NULL;
    uint64_t keys = operands[0].is.lines;
    bool cramped = false;
    int i = 0;
    for (; i < n - 1 || (cramped && i < 2 * n) || operands[i % n].is_first;
         i++) {
        cramped = !fits(keys);
        calyx_filter *const of_both = prefilter_of(
            operands[i % n].file, prefilter, keys, memory_of_prefilter());
        calyx_free(prefilter);
        prefilter = of_both;
        keys = prefilter_keys(prefilter) + 1;
    }
    *next = i % n;
    return prefilter;
}

/* What is read: the operands in the order of the chain, and the sum. */
struct common_input {
    struct operand *operands;
    const struct sample *sum;
    bool of_all, prefiltered;
};

/* Read one file through the prefilter, then the others, then the first of the
 * command line. */
static struct engine *read_with_prefilter(const struct exact_run *run,
                                          struct operand *operands) {
    int start;
    calyx_filter *const prefilter = chain(operands, run->count, &start);
    /* few keys pass; and if many do, a filter would not help */
    const struct sample *const is = &operands[start].is;
    const uint64_t keys = prefilter_keys(prefilter);
    const uint64_t most = keys < is->lines ? keys : is->lines;
    calyx_filter *const passed = prefilter_new(most / 2, budget() / 8);
    const struct sample expected = {.bytes =
                                        is->bytes / (is->lines + 1) * most};
    const uint64_t taken = prefilter_bytes(prefilter) + prefilter_bytes(passed);
    struct engine *const engine =
        engine_start(&run->rule, budget_without(taken), &expected);
    engine_read(engine, 1, &operands[start].file, prefilter, passed);
    calyx_free(prefilter);
    int first = 0;
    for (int i = 0; i < run->count; i++)
        if (operands[i].is_first)
            first = i;
        else if (i != start)
            engine_read(engine, 1, &operands[i].file, passed, NULL);
    engine_read(engine, 1, &operands[first].file, passed, NULL);
    calyx_free(passed);
    return engine;
}

static struct engine *read_directly(const struct exact_run *run,
                                    const struct common_input *in) {
    const struct sample nothing = {0};
    struct engine *const engine = engine_start(
        &run->rule, budget(), in->sum->rereadable ? in->sum : &nothing);
    for (int i = in->of_all; i < run->count; i++)
        engine_read(engine, 1, run->files + i, NULL, NULL);
    if (in->of_all) engine_read(engine, 1, run->files, NULL, NULL);
    return engine;
}

static struct figures find_common(struct exact_run *run) {
    const struct common_input *const in = run->context;
    struct engine *const engine = in->prefiltered
                                      ? read_with_prefilter(run, in->operands)
                                      : read_directly(run, in);
    expect_same_files(in->prefiltered);
    struct figures f = engine_end(engine);
    f.passes = 1 + in->prefiltered;
    return f;
}

static size_t own_figures(const struct figures *f, struct figure *own) {
    own[0] = (struct figure){"common", (double)f->printed, true};
    own[1] = (struct figure){"false_candidates", (double)(f->keys - f->printed),
                             true};
    return 2;
}

/* ---- With filters alone ---------------------------------------------------
 */

static int run_approx(int n, char **files) {
    if (count || at_least)
        fail("--approx does not go with --count and --at-least: filters know "
             "only of all files");
    char text[TEXT_SIZE];
    warn("approximate: up to %s of the lines that are not common are printed, "
         "and a line that %s repeats is printed again",
         rate_text(approx_rate(), text), files[0]);
    struct output *const output =
        output_open(result_path_of_lines(), result_replaces());
    calyx_filter *f = NULL;
    for (int i = 1; i < n; i++) {
        calyx_filter *const next = approx_filter();
        approx_add(next, 1, files + i, f);
        calyx_free(f);
        f = next;
    }
    struct input_totals totals;
    const uint64_t printed =
        approx_print(f, 1, files, PRINT_PRESENT, output, &totals);
    output_close(output);
    calyx_info info;
    calyx_describe(f, &info);
    /* the other absent lines were not printed */
    const double wrong =
        (double)(totals.lines - printed) * info.fpr_now / (1 - info.fpr_now);
    warn("about %s of the lines printed are not common",
         count_text((uint64_t)(wrong + 0.5), text));
    if (wants_report()) {
        const struct figure figures[] = {
            {"printed", (double)printed, true},
            {"expected_rate", info.fpr_now, false},
            {"filter_bytes", (double)info.bytes, true},
        };
        report(&totals, figures, sizeof figures / sizeof *figures);
    }
    calyx_free(f);
    return printed ? EXIT_YES : EXIT_NO;
}

/* ---- The verb ------------------------------------------------------------ */

static int run_verb(int n, char **files) {
    expect_one_standard_input(n, files);
    if (approx_rate() > 0) return run_approx(n, files);
    if (at_least > (uint64_t)n)
        fail("option --at-least wants a number from 1 to %d, the number of "
             "files, not %" PRIu64,
             n, at_least);
    if (n > FILES_MASK) fail("at most %d files can be compared", FILES_MASK);
    files_count = (uint64_t)n;
    if (!at_least) at_least = files_count;

    const double started = seconds_now();
    struct sample sum;
    struct operand *const operands = sample_operands(n, files, &sum);
    const struct sample least = operands[0].is;
    const bool of_all = at_least == files_count;
    const bool prefiltered =
        sum.rereadable && of_all && prefilter_pays(least.bytes, budget());
    struct common_input in = {operands, &sum, of_all, prefiltered};
    struct exact_run run = {
        .rule = {.tallies = true,
                 .inserts = of_all ? is_read_first : inserts,
                 .may_print = of_all ? is_read_last : inserts,
                 .visit = of_all ? visit_in_all : visit_in_some,
                 .absent = at_least > 1 ? absent : NULL,
                 .selects = of_all ? NULL : selects,
                 .counts = count},
        .plan = {.sum = sum,
                 .prefiltered = least,
                 .prefilter = prefiltered
                                  ? prefilter_bytes_for(least.lines,
                                                        memory_of_prefilter())
                                  : 0,
                 .what_remains = "are common",
                 .passes = 1 + prefiltered,
                 .known = sum.rereadable},
        .count = n,
        .files = files,
        .started = started,
        .run = find_common,
        .context = &in,
        .own_figures = own_figures,
    };
    const int status = exact_run(&run);
    free(operands);
    return status;
}

static const struct group options = {
    "Options",
    (const struct verb_option[]){
        {0, "at-least", "K",
         "Print the lines that at least K of the files have, instead of all.",
         parse_positive, &at_least},
        {'c', "count", NULL,
         "Print before each line how many files have it, and a tab.",
         parse_flag, &count},
        APPROX_OPTION("Use filters alone, in one pass and with a few bits for "
                      "each line: up to RATE (by default 1%) of the lines that "
                      "are not common are printed, too. None is lost."),
        {0},
    },
};

const struct verb verb_common = {
    .name = "common",
    .summary = "print the lines that all files have, exactly",
    .synopsis = "[-S SIZE] [-o OUT] [OPTION]... FILE FILE...",
    .prose =
        (const char *const[]){
            "Prints the distinct lines that all files have, each once, in the "
            "order of the first file; or with --at-least K those that K files "
            "have, in the order of their first occurrence. The files need not "
            "be sorted, and may be larger than memory. Lines are compared by "
            "all bytes of the key.",
            "The first file is read last. Regular files are read twice, except "
            "one of them: first into filters, which remove nearly all lines "
            "that are not common, then to compare the rest exactly; and more "
            "often if there is too little memory for the filters. Pipes are "
            "read once. What does not fit into memory goes to temporary files.",
            NULL},
    .groups =
        (const struct group *const[]){&options, &result_group, &budget_group,
                                      &part_lines_group, &key_group,
                                      &work_group, &progress_group, NULL},
    .examples =
        (const struct example[]){
            {"calyx common -S 4G monday.txt tuesday.txt -o both.txt",
             "what two huge lists share, in 4 GB of memory"},
            {"calyx common --at-least 3 -c day-*.txt.zst",
             "lines of at least three files, and of how many"},
            {"calyx common -k 1 -t , a.csv b.csv",
             "lines of a.csv whose first field b.csv has, too"},
            {0},
        },
    .status = "0 if a line was printed, 1 if none was, 2 on an error, with a "
              "message on standard error.",
    .least = 2,
    .most = -1,
    .run = run_verb,
};
