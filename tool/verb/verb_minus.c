/*
 * calyx minus: the lines of one file that no other file has, exactly and in the
 * memory that it is given.
 *
 * The other files are read first. Then the lines of the first file are printed
 * as they are read, unless keys of the others were spilled. mapped/one_pass.c
 * says what happens if all fits into memory. Else, if all files can be read
 * twice, their hashes come first: only lines of the first file whose hash
 * another file has are compared.
 */
#include <stdlib.h>
#include <string.h>

#include "exact/approx.h"
#include "files/filter_file.h"
#include "files/result.h"
#include "frame/file_list.h"
#include "input/part_lines.h"
#include "input/source.h"
#include "verb/exact_run.h"

static bool unique;

/* ---- The operation ------------------------------------------------------- */

static enum destination visit(const struct set_operation *op,
                              struct tally *tally, bool fresh, uint64_t file) {
    (void)tally;
    return fresh && may_print(op, file) ? TO_OUTPUT : NOT_PRINTED;
}

/* ---- Lists and filters among the others --------------------------------- */

/* What the first file has to do without. */
struct others {
    char **lists;
    calyx_filter **filters;
    int list_count, filter_count;
};

/* By its name, so that a damaged filter is not read as a list; or by its bytes.
 * The bytes of a pipe cannot be put back: if they are a filter's, they are
 * refused when they are read as lines. */
static bool is_filter(const char *path) {
    const char *const dot = strrchr(path, '.');
    if (accepts_any_bytes()) return false;
    if (dot && strcmp(dot, ".calyx") == 0) return true;
    return file_is(path, A_FILTER);
}

static struct others sort_operands(int n, char **files) {
    struct others o = {.lists = alloc_memory((size_t)n * sizeof *o.lists),
                       .filters = alloc_memory((size_t)n * sizeof *o.filters)};
    const char **const names = alloc_memory((size_t)n * sizeof *names);
    for (int i = 1; i < n; i++) {
        if (!is_filter(files[i])) {
            o.lists[o.list_count++] = files[i];
            continue;
        }
        calyx_filter *const f = filter_open_whole(files[i]);
        calyx_info info;
        char text[TEXT_SIZE];
        calyx_describe(f, &info);
        warn("%s is a filter: about %s of the lines that it does not have%s "
             "are dropped, too; none that it has is printed",
             files[i], rate_text(info.fpr_now, text),
             info.universe ? ", outside of its universe," : "");
        names[o.filter_count] = files[i];
        o.filters[o.filter_count++] = f;
    }
    key_options_use((size_t)o.filter_count, names, o.filters);
    free(names);
    return o;
}

/* ---- With a filter alone ------------------------------------------------ */

static int run_approx(char **files, const struct others *o) {
    char *const file = files[0];
    if (unique || o->filter_count)
        fail("--approx does not go with --unique, nor with filters; use 'calyx "
             "check -v' to query a filter");
    const struct sample first_is = sample_file(file);
    const struct sample lists_are = sample_files(o->list_count, o->lists);
    const struct approx approx = approx_for(&lists_are, &first_is, false);
    if (only_plans()) {
        struct sample sum = lists_are;
        sample_add(&sum, &first_is);
        approx_plan(&approx, &sum);
        return EXIT_YES;
    }
    char text[TEXT_SIZE];
    warn("approximate: up to %s of the lines of %s that no other file has are "
         "lost",
         rate_text(approx.rate, text), file);
    struct output *const output =
        output_open(result_path_of_lines(), result_replaces());
    lines_go_to(output, 1, files, LINES_OF_FIRST_FILE);
    calyx_filter *const f = approx_filter(&approx);
    calyx_filter *const before = approx_first(&approx, files);
    approx_add(f, o->list_count, o->lists, before);
    calyx_free(before);
    const struct approx_result result =
        approx_print(f, 1, files, PRINT_ABSENT, output);
    const double rate = result.filter.fpr_now;
    const double lost = (double)result.printed * rate / (1 - rate);
    warn("about %s lines were lost", count_text((uint64_t)(lost + 0.5), text));
    approx_report(&approx, &result, "lost", lost);
    calyx_free(f);
    return result.printed ? EXIT_YES : EXIT_NO;
}

/* ---- The verb ------------------------------------------------------------ */

/* The other lists, then the first file. */
enum { CLASS_OF_FIRST, CLASS_OF_OTHERS };
static struct file_group *readings_of(char **files, const struct others *o) {
    struct file_group *const readings =
        alloc_memory(((size_t)o->list_count + 1) * sizeof *readings);
    for (int i = 0; i < o->list_count; i++)
        readings[i] = (struct file_group){1, o->lists + i, CLASS_OF_OTHERS,
                                          sample_file(o->lists[i])};
    readings[o->list_count] =
        (struct file_group){1, files, CLASS_OF_FIRST, sample_file(files[0])};
    return readings;
}

/* Lines of the first file with other hashes are printed. */
static struct hash_condition to_be_compared(void) {
    const uint32_t in_both = SEEN_IN(CLASS_OF_FIRST) | SEEN_IN(CLASS_OF_OTHERS);
    return (struct hash_condition){
        in_both, unique ? SEEN_TWICE_IN(CLASS_OF_FIRST) : in_both};
}

static size_t own_figures(const struct figures *f, struct figure *own) {
    own[0] = (struct figure){"printed", (double)f->printed, true};
    return 1;
}

static int run_exactly(int n, char **files, const struct others *others) {
    const double started = seconds_now();
    struct file_group *const readings = readings_of(files, others);
    struct exact_run run = {
        .job = {.op = {.readings = (size_t)others->list_count + 1,
                       .storing = (size_t)others->list_count + unique,
                       .printing = 1,
                       .on_present = visit,
                       .prints_absent = !unique,
                       .without = others->filters,
                       .without_count = others->filter_count},
                .readings = readings,
                .condition = to_be_compared()},
        .count = n,
        .files = files,
        .started = started,
        .own_figures = own_figures,
    };
    const int status = exact_run(&run);
    free(readings);
    return status;
}

static int run_verb(int n, char **files) {
    expect_one_standard_input(NULL, n, files);
    const struct others others = sort_operands(n, files);
    const int status = approx_rate() > 0 ? run_approx(files, &others)
                                         : run_exactly(n, files, &others);
    for (int i = 0; i < others.filter_count; i++) calyx_free(others.filters[i]);
    free(others.filters);
    free(others.lists);
    return status;
}

static const struct group options = {
    "Options",
    {
        {'u', "unique", NULL,
         "Print each line once, even if the first file has it several times.",
         parse_flag, &unique},
        APPROX_OPTION("Use a filter of the other files alone, in one pass and "
                      "with a few bits for each line: up to RATE (by default "
                      "1%, or the rate that -S allows) of the lines that would "
                      "be printed are lost."),
        FILE_LIST_OPTION,
    },
};

const struct verb verb_minus = {
    .name = "minus",
    .summary = "print the lines of one file that no other has, exactly",
    .synopsis = "[-S SIZE] [-o OUT] [OPTION]... FILE FILE...",
    .prose =
        {"Prints the lines of the first file that are in none of the others, "
         "in order, including repetitions. The answer is exact: lines are "
         "compared by all bytes of the key. The files need not be sorted, and "
         "may be larger than memory.",
         "A file that is a filter, or whose name ends in .calyx, stands for "
         "the list that the filter was built from. Then a few lines that are "
         "not in that list are missing in the result; a warning says so.",
         "Files are read once if they fit into the memory with 12 bytes more "
         "for each line of the other files, and if whole lines are compared. "
         "Else files that are not compressed are read twice: first for the "
         "hashes of all lines, which find the lines that other files may have, "
         "then to compare these byte by byte, in more passes if the memory "
         "requires it. Pipes and compressed files are always read once: what "
         "does not fit into memory goes to temporary files.",
         CHANGING_FILES},
    .common = {"output", "memory", "unique", "dry-run", "ignore-case", "fields",
               "csv"},
    .groups = {&options, &result_group, &budget_group, &part_lines_group,
               &key_group, &secret_group, &work_group, &progress_group},
    .examples = {{"calyx minus new.txt seen.txt -o fresh.txt",
                  "what was never seen, in its order"},
                 {"calyx minus -S 1G a.txt.gz b.txt.gz c.txt.gz",
                  "huge lists in a gigabyte of memory"},
                 {"calyx minus new.txt seen.calyx",
                  "a filter instead of a list: nearly exact, and small"}},
    .status = "0 if a line was printed, 1 if none was, 2 on an error, with a "
              "message on standard error.",
    .least = 2,
    .most = -1,
    .run = run_verb,
};
