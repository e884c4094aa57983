/*
 * calyx minus: the lines of one file that no other file has, exactly and in the
 * memory that it is given.
 *
 * The other files are read first. Lines that a filter of the first file lacks
 * are dropped at once. Then the lines of the first file are printed as they are
 * read, unless keys of the others were spilled.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "exact/approx.h"
#include "exact/prefilter.h"
#include "files/filter_file.h"
#include "files/result.h"
#include "input/part_lines.h"
#include "input/source.h"
#include "verb/exact_run.h"

static bool unique;
static uint64_t first; /* the number of the first file: it is read last */

/* ---- The rule ------------------------------------------------------------ */

static bool is_first(uint64_t file) {
    return file == first;
}

static bool inserts(uint64_t file) {
    return unique || !is_first(file);
}

static enum destination visit(struct tally *tally, bool fresh, uint64_t file) {
    (void)tally;
    return fresh && is_first(file) ? TO_OUTPUT : NOT_PRINTED;
}

static enum destination absent(uint64_t file) {
    return is_first(file) ? TO_OUTPUT : NOT_PRINTED;
}

/* ---- Lists and filters among the others ------------------------------------
 */

static char **lists;
static calyx_filter **filters;
static int list_count, filter_count;

/* By its name, so that a damaged filter is not read as a list; or by its bytes.
 * Those of a pipe cannot be put back: if they are a filter's, they are refused
 * when they are read as lines. */
static bool is_filter(const char *path) {
    const char *const dot = strrchr(path, '.');
    struct stat is;
    if (accepts_any_bytes()) return false;
    if (dot && strcmp(dot, ".calyx") == 0) return true;
    if (stat(path, &is) != 0 || !S_ISREG(is.st_mode)) return false;
    struct byte_source *const source = source_open(path);
    const bool filter = source_is_filter(source);
    source_close(source);
    return filter;
}

static void sort_operands(int n, char **files) {
    lists = alloc_memory((size_t)n * sizeof *lists);
    filters = alloc_memory((size_t)n * sizeof *filters);
    const char **const names = alloc_memory((size_t)n * sizeof *names);
    for (int i = 1; i < n; i++) {
        if (!is_filter(files[i])) {
            lists[list_count++] = files[i];
            continue;
        }
        calyx_filter *const f = filter_open_whole(files[i]);
        calyx_info info;
        char text[TEXT_SIZE];
        calyx_describe(f, &info);
        warn("%s is a filter: about %s of the lines that it does not have are "
             "dropped, too; none that it has is printed",
             files[i], rate_text(info.fpr_now, text));
        names[filter_count] = files[i];
        filters[filter_count++] = f;
    }
    key_options_use((size_t)filter_count, names, filters);
    free(names);
}

static void drop(const calyx_key *keys, size_t n, bool *dropped) {
    bool found[BATCH_ROOM];
    for (int f = 0; f < filter_count; f++) {
        calyx_has_many(filters[f], keys, n, found);
        for (size_t i = 0; i < n; i++) dropped[i] |= found[i];
    }
}

/* ---- With a filter alone ---------------------------------------------------
 */

static int run_approx(char *file) {
    if (unique || filter_count)
        fail("--approx does not go with --unique, nor with filters; use 'calyx "
             "check -v' to query a filter");
    char text[TEXT_SIZE];
    warn("approximate: up to %s of the lines of %s that no other file has are "
         "lost",
         rate_text(approx_rate(), text), file);
    struct output *const output =
        output_open(result_path_of_lines(), result_replaces());
    calyx_filter *const f = approx_filter();
    approx_add(f, list_count, lists, NULL);
    struct input_totals totals;
    const uint64_t printed =
        approx_print(f, 1, &file, PRINT_ABSENT, output, &totals);
    output_close(output);
    calyx_info info;
    calyx_describe(f, &info);
    const double lost = (double)printed * info.fpr_now / (1 - info.fpr_now);
    warn("about %s lines were lost", count_text((uint64_t)(lost + 0.5), text));
    if (wants_report()) {
        const struct figure figures[] = {
            {"printed", (double)printed, true},
            {"lost", lost, false},
            {"filter_bytes", (double)info.bytes, true},
        };
        report(&totals, figures, sizeof figures / sizeof *figures);
    }
    calyx_free(f);
    return printed ? EXIT_YES : EXIT_NO;
}

static uint64_t memory_of_prefilter(void) {
    return budget() / 4;
}

/* ---- The verb ------------------------------------------------------------ */

struct minus_input {
    struct sample of_first, of_others;
    bool prefiltered;
};

static struct figures subtract(struct exact_run *run) {
    const struct minus_input *const in = run->context;
    calyx_filter *const prefilter =
        in->prefiltered ? prefilter_of(run->files[0], NULL, in->of_first.lines,
                                       memory_of_prefilter())
                        : NULL;
    const struct sample nothing = {0};
    struct engine *const engine = engine_start(
        &run->rule, budget_without(prefilter_bytes(prefilter)),
        in->prefiltered || !run->plan.known ? &nothing : &in->of_others);
    for (int i = 0; i < list_count; i++)
        engine_read(engine, 1, lists + i, prefilter, NULL);
    engine_read(engine, 1, run->files, NULL, NULL);
    expect_same_files(in->prefiltered);
    calyx_free(prefilter);
    struct figures f = engine_end(engine);
    f.passes = 1 + in->prefiltered;
    return f;
}

static size_t own_figures(const struct figures *f, struct figure *own) {
    own[0] = (struct figure){"printed", (double)f->printed, true};
    return 1;
}

static int run_verb(int n, char **files) {
    expect_one_standard_input(n, files);
    sort_operands(n, files);
    if (approx_rate() > 0) return run_approx(files[0]);
    first = (uint64_t)list_count;

    const double started = seconds_now();
    struct minus_input in = {.of_first = sample_file(files[0]),
                             .of_others = sample_files(list_count, lists)};
    /* it costs a pass over the first file, and may save storing the others */
    in.prefiltered = in.of_first.rereadable &&
                     prefilter_pays(in.of_others.bytes, budget()) &&
                     in.of_others.bytes >= in.of_first.bytes / 2;
    struct sample sum = in.of_others;
    sample_add(&sum, &in.of_first);
    struct exact_run run = {
        .rule = {.inserts = inserts,
                 .may_print = is_first,
                 .visit = visit,
                 .absent = unique ? NULL : absent,
                 .drop = filter_count ? drop : NULL},
        .plan = {.sum = sum,
                 .prefiltered = in.of_first,
                 .prefilter = in.prefiltered
                                  ? prefilter_bytes_for(in.of_first.lines,
                                                        memory_of_prefilter())
                                  : 0,
                 .what_remains = "are in other files",
                 .passes = 1 + in.prefiltered,
                 .known = sum.rereadable},
        .count = n,
        .files = files,
        .started = started,
        .run = subtract,
        .context = &in,
        .own_figures = own_figures,
    };
    const int status = exact_run(&run);
    for (int i = 0; i < filter_count; i++) calyx_free(filters[i]);
    free(filters);
    free(lists);
    return status;
}

static const struct group options = {
    "Options",
    (const struct verb_option[]){
        {'u', "unique", NULL,
         "Print each line once, even if the first file has it several times.",
         parse_flag, &unique},
        APPROX_OPTION("Use a filter of the other files alone, in one pass and "
                      "with a few bits for each line: up to RATE (by default "
                      "1%) of the lines that would be printed are lost."),
        {0},
    },
};

const struct verb verb_minus = {
    .name = "minus",
    .summary = "print the lines of one file that no other has, exactly",
    .synopsis = "[-S SIZE] [-o OUT] [OPTION]... FILE FILE...",
    .prose =
        (const char *const[]){
            "Prints the lines of the first file that are in none of the "
            "others, in order, including repetitions. The files need not be "
            "sorted, and may be larger than memory. Lines are compared by all "
            "bytes of the key.",
            "A file that is a filter, or whose name ends in .calyx, stands for "
            "the list that the filter was built from. Then a few lines that "
            "are not in that list are missing in the result; a warning says "
            "so. Pipes are read once. What does not fit into memory goes to "
            "temporary files.",
            NULL},
    .groups = (const struct group *const[]){&options, &result_group,
                                            &budget_group, &part_lines_group,
                                            &key_group, &secret_group,
                                            &work_group, &progress_group, NULL},
    .examples =
        (const struct example[]){
            {"calyx minus new.txt seen.txt -o fresh.txt",
             "what was never seen, in its order"},
            {"calyx minus -S 1G a.txt.gz b.txt.gz c.txt.gz",
             "huge lists in a gigabyte of memory"},
            {"calyx minus new.txt seen.calyx",
             "a filter instead of a list: nearly exact, and small"},
            {0},
        },
    .status = "0 if a line was printed, 1 if none was, 2 on an error, with a "
              "message on standard error.",
    .least = 2,
    .most = -1,
    .run = run_verb,
};
