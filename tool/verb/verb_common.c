/*
 * calyx common: the lines that all files have, exactly and in the memory that
 * it is given.
 *
 * The first file is read last, and its lines are printed as they are read: they
 * were in all others, or not. mapped/one_pass.c says what happens if all fits
 * into memory. Else, if all files can be read twice, the hashes of the smallest
 * of the others and of the first come first: only lines whose hash both have
 * are compared, with all files.
 *
 * With --at-least, files are read in their order, and keys are judged in the
 * end.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exact/approx.h"
#include "files/result.h"
#include "frame/file_list.h"
#include "input/part_lines.h"
#include "verb/exact_run.h"

static bool count;
static uint64_t at_least;

/* ---- The rules ---------------------------------------------------------- */

/* Of all files: what counts is to be in all so far. */
static enum destination visit_in_all(const struct set_operation *op,
                                     struct tally *tally, bool fresh,
                                     uint64_t file) {
    (void)fresh;
    if (tally->count != file) return NOT_PRINTED;
    tally->count++;
    return may_print(op, file) ? TO_OUTPUT : NOT_PRINTED;
}

/* Of some files. */
static enum destination visit_in_some(const struct set_operation *op,
                                      struct tally *tally, bool fresh,
                                      uint64_t file) {
    (void)op;
    if (fresh || tally->file != file) tally->count++;
    tally->file = file & FILES_MASK;
    return NOT_PRINTED;
}

/* ---- What is read ------------------------------------------------------- */

static int by_size(const void *a, const void *b) {
    const uint64_t x = ((const struct file_group *)a)->is.bytes;
    const uint64_t y = ((const struct file_group *)b)->is.bytes;
    return (x > y) - (x < y);
}

/* In reading order. For lines of all files: the smallest first, since its keys
 * are stored, and the first of the command line last. */
enum { CLASS_OF_STORED, CLASS_OF_PRINTED, CLASS_OF_OTHERS };
static struct file_group *readings_of(int n, char **files, bool of_all) {
    const size_t last = (size_t)n - 1;
    struct file_group *const readings =
        alloc_memory((size_t)n * sizeof *readings);
    bool rereadable = true; /* the others */
    for (int i = 0; i < n; i++) {
        char **const file = &files[of_all ? (i + 1) % n : i];
        readings[i] =
            (struct file_group){1, file, CLASS_OF_OTHERS, sample_file(*file)};
        rereadable &= i == n - 1 || readings[i].is.rereadable;
    }
    if (of_all && rereadable) qsort(readings, last, sizeof *readings, by_size);
    readings[0].class = CLASS_OF_STORED;
    readings[last].class = CLASS_OF_PRINTED;
    return readings;
}

/* A key that all files have was seen in the file that is stored, and in the
 * file that is printed: the files between are not hashed. */
static const struct hash_condition seen_in_both = {
    SEEN_IN(CLASS_OF_STORED) | SEEN_IN(CLASS_OF_PRINTED),
    SEEN_IN(CLASS_OF_STORED) | SEEN_IN(CLASS_OF_PRINTED)};

static size_t own_figures(const struct figures *f, struct figure *own) {
    own[0] = (struct figure){"common", (double)f->printed, true};
    own[1] = (struct figure){"false_candidates", (double)(f->keys - f->printed),
                             true};
    return 2;
}

/* ---- With filters alone ------------------------------------------------- */

static int run_approx(int n, char **files) {
    if (count || at_least)
        fail("--approx does not go with --count and --at-least: filters know "
             "only of all files");
    struct file_group *const readings = readings_of(n, files, true);
    const struct file_group *const first = &readings[n - 1];
    const struct approx approx = approx_for(&readings[0].is, &first->is, n > 2);
    if (only_plans()) {
        struct sample sum = first->is;
        for (int i = 0; i < n - 1; i++) sample_add(&sum, &readings[i].is);
        approx_plan(&approx, &sum);
        return EXIT_YES;
    }
    char text[TEXT_SIZE];
    warn("approximate: up to %s of the lines that are not common are printed, "
         "and a line that %s repeats is printed again",
         rate_text(approx.rate, text), files[0]);
    struct output *const output =
        output_open(result_path_of_lines(), result_replaces());
    lines_go_to(output, n, files, LINES_OF_FIRST_FILE);
    calyx_filter *f = approx_first(&approx, files);
    double rate = 0; /* at most: a line that a file lacks is let through by the
                        filter of that file, or by a later one */
    for (int i = 0; i < n - 1; i++) {
        calyx_filter *const next = approx_filter(&approx);
        approx_add(next, 1, readings[i].files, f);
        calyx_free(f);
        f = next;
        calyx_info info;
        calyx_describe(f, &info);
        rate = fmin(0.999, rate + info.fpr_now);
    }
    const struct approx_result result =
        approx_print(f, 1, files, PRINT_PRESENT, output);
    /* the other absent lines were not printed */
    const double wrong =
        (double)(result.totals.lines - result.printed) * rate / (1 - rate);
    warn("about %s of the lines printed are not common%s",
         count_text((uint64_t)(wrong + 0.5), text), n > 2 ? ", or fewer" : "");
    approx_report(&approx, &result, "expected_rate", rate);
    calyx_free(f);
    free(readings);
    return result.printed ? EXIT_YES : EXIT_NO;
}

/* ---- The verb ------------------------------------------------------------ */

static int run_verb(int n, char **files) {
    expect_one_standard_input(NULL, n, files);
    if (approx_rate() > 0) return run_approx(n, files);
    if (at_least > (uint64_t)n)
        fail("--at-least: expected a number from 1 to %d, the number of files, "
             "found %" PRIu64,
             n, at_least);
    if (n > FILES_MASK) fail("at most %d files can be compared", FILES_MASK);
    const double started = seconds_now();
    const size_t files_count = (size_t)n;
    const bool of_all = !at_least || at_least == files_count;
    struct file_group *const readings = readings_of(n, files, of_all);
    struct exact_run run = {
        .job = {.op = {.readings = files_count,
                       /* a key that is first met later cannot be in enough
                          files */
                       .storing = of_all ? 1 : files_count + 1 - at_least,
                       .printing = of_all ? 1 : files_count,
                       .tallies = true,
                       .on_present = of_all ? visit_in_all : visit_in_some,
                       .least = of_all ? 0 : at_least,
                       .most = UINT64_MAX,
                       .of_all_files = of_all,
                       .counts = count,
                       .prints_marked = true},
                .readings = readings,
                .condition = seen_in_both},
        .count = n,
        .files = files,
        .started = started,
        .header = (of_all ? LINES_OF_FIRST_FILE : LINES_OF_ALL_FILES) |
                  (count ? COUNT_BEFORE_LINES : 0),
        .own_figures = own_figures,
    };
    const int status = exact_run(&run);
    free(readings);
    return status;
}

static const struct group options = {
    "Options",
    {
        {0, "at-least", "K",
         "Print the lines that at least K of the files have, instead of all.",
         parse_positive, &at_least},
        {'c', "count", NULL,
         "Print before each line how many files have it, and a tab.",
         parse_flag, &count},
        APPROX_OPTION(
            "Use filters alone, in one pass and with a few bits for "
            "each line: up to RATE (by default 1%, or the rate that -S "
            "allows) of the lines that are not common are printed, "
            "too. None is lost. Of files of known size, the filter "
            "has the keys of the smallest."),
        FILE_LIST_OPTION,
    },
};

const struct verb verb_common = {
    .name = "common",
    .summary = "print the lines that all files have, exactly",
    .synopsis = "[-S SIZE] [-o OUT] [OPTION]... FILE FILE...",
    .prose =
        {"Prints the distinct lines that all files have, each once, in the "
         "order of the first file. The answer is exact; the files need not be "
         "sorted, and may be larger than memory.",
         "With --at-least K it prints the lines that K files have, in the "
         "order of their first occurrence. Lines are compared by all bytes of "
         "the key.",
         "The first file is read last. Files are read once if they fit into "
         "the memory with 12 bytes more for each line of the smallest, and if "
         "whole lines are compared. Else, if no file is compressed, the first "
         "file and the smallest other file are read twice: first for the "
         "hashes of their lines, which show the lines that may be common, then "
         "to compare these lines byte by byte with all files, in more passes "
         "if the memory requires it. Pipes and compressed files are always "
         "read once: what does not fit into memory goes to temporary files.",
         CHANGING_FILES},
    .common = {"output", "memory", "count", "at-least", "dry-run",
               "ignore-case", "fields", "csv"},
    .groups = {&options, &result_group, &budget_group, &part_lines_group,
               &key_group, &work_group, &progress_group},
    .examples = {{"calyx common -S 4G monday.txt tuesday.txt -o both.txt",
                  "what two huge lists share, in 4 GB of memory"},
                 {"calyx common --at-least 3 -c day-*.txt.zst",
                  "lines of at least three files, and of how many"},
                 {"calyx common -k 1 -t , a.csv b.csv",
                  "lines of a.csv whose first field b.csv has, too"}},
    .status = "0 if a line was printed, 1 if none was, 2 on an error, with a "
              "message on standard error.",
    .least = 2,
    .most = -1,
    .run = run_verb,
};
