/*
 * calyx dedup: the first line of each key, in the order of the input, exactly
 * and in the memory that it is given. exact/method.h says how.
 */
#include <stdio.h>
#include <string.h>

#include "exact/approx.h"
#include "files/result.h"
#include "frame/file_list.h"
#include "input/part_lines.h"
#include "verb/exact_run.h"

static const char *dups;
static bool count, only_dups, only_unique;

/* ---- The operation ------------------------------------------------------- */

static enum destination visit_once(const struct set_operation *op,
                                   struct tally *tally, bool fresh,
                                   uint64_t file) {
    (void)op, (void)tally, (void)file;
    return fresh ? TO_OUTPUT : TO_SECOND;
}

static enum destination visit_and_count(const struct set_operation *op,
                                        struct tally *tally, bool fresh,
                                        uint64_t file) {
    (void)op, (void)file;
    tally->count++;
    return fresh ? NOT_PRINTED : TO_SECOND;
}

static bool tallies(void) {
    return count || only_dups || only_unique;
}

/* ---- With a filter alone ------------------------------------------------ */

static int run_approx(int files_count, char **files) {
    if (tallies() || dups)
        fail("--approx does not go with --count, --only-dups, --only-unique "
             "and --dups: a filter does not count, and cannot distinguish a "
             "first "
             "line from a false positive");
    const struct sample sum = sample_files(files_count, files);
    const struct approx approx = approx_for(&sum, NULL, false);
    if (only_plans()) {
        approx_plan(&approx, &sum);
        return EXIT_YES;
    }
    char text[TEXT_SIZE];
    warn("approximate: up to %s of the distinct lines are mistaken for "
         "duplicates, and lost",
         rate_text(approx.rate, text));
    calyx_filter *const f = approx_filter(&approx);
    struct output *const output =
        output_open(result_path_of_lines(), result_replaces());
    lines_go_to(output, files_count, files, LINES_OF_ALL_FILES);
    const struct approx_result result =
        approx_print(f, files_count, files, PRINT_AND_ADD_ABSENT, output);
    /* the rate never was higher than it is in the end */
    const double lost = (double)result.printed * result.filter.fpr_now;
    warn("about %s distinct lines were lost, or fewer",
         count_text((uint64_t)(lost + 0.5), text));
    approx_report(&approx, &result, "lost_at_most", lost);
    calyx_free(f);
    return EXIT_YES;
}

/* ---- The verb ------------------------------------------------------------ */

/* A key that occurs once needs no comparison. */
static const struct hash_condition repeated = {SEEN_TWICE_IN(0),
                                               SEEN_TWICE_IN(0)};

static size_t own_figures(const struct figures *f, struct figure *own) {
    own[0] = (struct figure){"printed", (double)f->printed, true};
    own[1] = (struct figure){"duplicates", (double)(f->lines - f->keys), true};
    return 2;
}

static int run_verb(int n, char **files) {
    if (only_dups && only_unique)
        fail("--only-dups and --only-unique together leave nothing");
    expect_one_standard_input(NULL, n, files);
    if (approx_rate() > 0) return run_approx(n, files);

    const double started = seconds_now();
    const struct file_group all = {n, files, 0, sample_files(n, files)};
    struct exact_run run = {
        .job = {.op = {.readings = 1,
                       .storing = 1,
                       .printing = 1,
                       .tallies = tallies(),
                       .on_present = tallies() ? visit_and_count : visit_once,
                       .least = !tallies()  ? 0
                                : only_dups ? 2
                                            : 1,
                       .most = only_unique ? 1 : UINT64_MAX,
                       .counts = count},
                .readings = &all,
                .condition = repeated},
        .count = n,
        .files = files,
        .second = dups,
        .header = LINES_OF_ALL_FILES | (count ? COUNT_BEFORE_LINES : 0),
        .started = started,
        .own_figures = own_figures,
    };
    exact_run(&run);
    return EXIT_YES;
}

static const struct group options = {
    "Options",
    {
        {'c', "count", NULL,
         "Print before each line the number of lines with its key, and a tab.",
         parse_flag, &count},
        {'d', "only-dups", NULL,
         "Print only lines whose key occurs more than once; each once.",
         parse_flag, &only_dups},
        {'u', "only-unique", NULL, "Print only lines whose key occurs once.",
         parse_flag, &only_unique},
        {0, "dups", "FILE",
         "Write all lines but the first of each key to FILE, in their order.",
         parse_text, &dups},
        APPROX_OPTION(
            "Use a filter alone, in one pass and with a few bits for "
            "each line: up to RATE (by default 1%, or the rate that -S "
            "allows) of the distinct lines are mistaken for "
            "duplicates and lost."),
        FILE_LIST_OPTION,
    },
};

const struct verb verb_dedup = {
    .name = "dedup",
    .summary = "print each different line once, in order, exactly",
    .synopsis = "[-S SIZE] [-o OUT] [OPTION]... [FILE]...",
    .prose =
        {"Prints the first line of each key, in the order of the input; lines "
         "are compared by all bytes of the key. Unlike 'sort -u' it keeps the "
         "order; unlike 'awk !seen[$0]++' it works in the memory that you give "
         "it.",
         "If whole lines are compared and the input fits into the memory, it "
         "is "
         "read once. Plain files fit with 12 bytes more for each line; pipes "
         "and compressed files fit into half of the memory, with up to 24 "
         "bytes "
         "more for each line. Other plain files are read two to seven times: "
         "first for the hashes of all lines, which find the keys that may "
         "occur "
         "again, then to compare these keys byte by byte, in as many passes as "
         "the memory requires. For other pipes and compressed files, and with "
         "--count, --only-dups and --only-unique, keys are stored in memory. "
         "When that is full, lines with other keys are partitioned by hash "
         "into "
         "temporary files, processed partition by partition, and printed in "
         "order at the end.",
         CHANGING_FILES},
    .common = {"output", "memory", "count", "only-dups", "only-unique", "dups",
               "dry-run", "fields", "csv"},
    .groups = {&options, &result_group, &budget_group, &part_lines_group,
               &key_group, &work_group, &progress_group},
    .examples =
        {{"calyx dedup urls.txt more.txt.gz -o all.txt",
          "one list of two, in their order"},
         {"calyx dedup -S 1G --dups again.txt huge.txt >once.txt",
          "in a gigabyte of memory, with duplicates apart"},
         {"calyx dedup -c --csv -k 2 people.csv",
          "how often each value of a column occurs"},
         {"calyx dedup --csv --header -k email people.csv",
          "one line for each value of a named column, below the header"},
         {"tail -f log | calyx dedup --approx=1/10000",
          "a stream without end"}},
    .most = -1,
    .run = run_verb,
};
